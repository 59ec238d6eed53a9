//! `phos-ft events`: what happened to the job, and what happens next.

use std::io::{self, Write};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::args::{Common, EventsArgs, Output};
use super::client::{describe_checkpoint, no_answer, socket};
use super::look::time;
use super::{exit, fail};
use crate::engine::control::messages::{Answer, Request};
use crate::engine::control::socket::Answers;
use crate::report::event::{After, Ending, Event, Place, Record, Resumed};
use crate::size::human;

/// How long `--follow` waits for a sidecar, the first or the next one, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(100);

/// Why no more events come.
enum End {
    /// All there are were printed, and nobody wants those to come.
    Shown,
    /// Nobody reads them.
    NoReader,
    Sidecar(io::Error),
    Failed(u8),
}

pub(super) fn run(common: &Common, args: &EventsArgs) -> u8 {
    let path = socket(common);
    let mut shown = Shown {
        after: args.after,
        answered: false,
        over: false,
    };
    let mut alone: Option<Instant> = None;
    loop {
        let before = std::mem::take(&mut shown.answered);
        match print(&path, &mut shown, args) {
            End::Shown | End::NoReader => return exit::OK,
            End::Failed(code) => return code,
            // It ended with its job.
            End::Sidecar(_) if args.follow && shown.over => return exit::OK,
            // Another one takes its place.
            End::Sidecar(e) => {
                if shown.answered {
                    alone = None;
                }
                shown.answered |= before;
                let is_absent = matches!(
                    e.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                );
                if !shown.answered && !is_absent {
                    return no_answer(&path, &e);
                }
                if args.follow && !shown.answered && alone.is_none() {
                    eprintln!(
                        "phos-ft: no sidecar answers at {} yet: waiting for one, {} s at most",
                        path.display(),
                        PATIENCE.as_secs()
                    );
                }
                let since = *alone.get_or_insert_with(Instant::now);
                if !args.follow || since.elapsed() > PATIENCE {
                    return no_answer(&path, &e);
                }
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// What was seen so far.
struct Shown {
    /// The last event.
    after: u64,
    /// A sidecar answered.
    answered: bool,
    /// The job is over: nothing more comes once its sidecar has ended.
    over: bool,
}

impl Shown {
    fn take(&mut self, record: &Record) {
        self.after = record.seq;
        match &record.event {
            Event::JobEnded { how, .. } => self.over = *how != Ending::Crashed,
            Event::GivenUp { .. } | Event::Fenced { .. } => self.over = true,
            Event::JobStarted { .. } | Event::JobFound | Event::JobResumed(_) => self.over = false,
            _ => {}
        }
    }
}

/// Prints what a sidecar says, as long as it does.
fn print(path: &Path, shown: &mut Shown, args: &EventsArgs) -> End {
    let after = shown.after;
    let mut answers = match Answers::of(path, &Request::Events { after }) {
        Ok(answers) => answers,
        Err(e) => return End::Sidecar(e),
    };
    let mut out = io::stdout().lock();
    loop {
        let record = match answers.next_while_read(out.as_fd()) {
            Ok(Some(Answer::Event(Some(record)))) => record,
            Ok(Some(Answer::Event(None))) if args.follow => {
                shown.answered = true;
                continue;
            }
            Ok(Some(Answer::Event(None))) => return End::Shown,
            Ok(Some(Answer::Error(reason))) => return End::Failed(fail(reason, exit::FAILED)),
            Ok(Some(_)) => {
                let what = "the sidecar answered something else";
                return End::Failed(fail(what, exit::FAILED));
            }
            Ok(None) => return End::NoReader,
            // An event of a newer release.
            Err(e) if e.kind() == io::ErrorKind::InvalidData => continue,
            Err(e) => return End::Sidecar(e),
        };
        shown.answered = true;
        shown.take(&record);
        let line = match args.output.into() {
            Output::Json => serde_json::to_string(&record).unwrap_or_default(),
            Output::Text => text(&record),
        };
        let written = writeln!(out, "{line}").and_then(|()| out.flush());
        if written.is_err() {
            return End::NoReader;
        }
    }
}

fn text(record: &Record) -> String {
    format!("{}  {}", time(record.at_ms), describe(&record.event))
}

/// An event in one line.
pub(super) fn describe(event: &Event) -> String {
    match event {
        Event::SidecarStarted { version } => format!("phos-ft {version} started"),
        Event::JobStarted { command } => format!("job started: {}", command.join(" ")),
        Event::JobFound => "job found running".into(),
        Event::JobResumed(resumed) => describe_resumed(resumed),
        Event::JobEnded { how, exit } => match how {
            Ending::Finished => "job finished".into(),
            Ending::Requested => format!("job ended on request ({exit})"),
            Ending::Crashed => format!("JOB CRASHED ({exit})"),
        },
        Event::AgentLost { message } => format!("AGENT LOST: {message}"),
        Event::GivenUp { message } => format!("GIVEN UP: {message}"),
        Event::CheckpointStarted { trigger } => format!("checkpoint started ({trigger})"),
        Event::QuiesceRetried { reason, held_ms } => {
            format!(
                "job held for {held_ms:.0} ms, {}; tried again",
                reason.name()
            )
        }
        Event::CheckpointStored(report) => describe_checkpoint(report),
        Event::CheckpointFailed {
            message, stop_ms, ..
        } => format!("CHECKPOINT FAILED after {stop_ms:.0} ms of stop: {message}"),
        Event::CheckpointCopied(copy) => format!(
            "checkpoint L{} is in the store as {}: {} sent in {:.1} s",
            copy.local,
            copy.id,
            human(copy.sent_bytes),
            copy.seconds
        ),
        Event::CopyFailed { message } => format!("COPY TO THE STORE FAILED: {message}"),
        Event::Unprotected {
            message, since_ms, ..
        } => format!("UNPROTECTED since {}: {message}", time(*since_ms)),
        Event::Protected => "protected again".into(),
        Event::RuledOut { message } => format!("CHECKPOINTS RULED OUT: {message}"),
        Event::Possible => "checkpoints possible again".into(),
        Event::RestoreFailed {
            checkpoint,
            message,
        } => format!("CHECKPOINT {checkpoint} NOT RESTORED: {message}"),
        Event::Damaged {
            checkpoint,
            message,
        } => format!("CHECKPOINT {checkpoint} DAMAGED: {message}"),
        Event::StoreUnreachable { message } => format!("STORE UNREACHABLE: {message}"),
        Event::Fenced { message } => format!("FENCED: {message}"),
        Event::PreemptionNoticed {
            source,
            what,
            ends_ms,
        } => format!(
            "MACHINE WILL BE TAKEN AWAY{}: {what}, says {source}",
            ends_ms.map_or_else(String::new, |at| format!(" at {}", time(at)))
        ),
        Event::PreemptionWithdrawn => "machine stays after all".into(),
    }
}

fn describe_resumed(resumed: &Resumed) -> String {
    format!(
        "job resumed from checkpoint {} ({}) in {:.1} s, after {}: {} of {} fetched",
        resumed.checkpoint,
        match resumed.place {
            Place::Local => "on this machine",
            Place::Store => "in the store",
        },
        resumed.seconds,
        match resumed.after {
            After::Start => "the start",
            After::Crash => "a crash",
        },
        human(resumed.fetched_bytes),
        human(resumed.total_bytes)
    )
}
