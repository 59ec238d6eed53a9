//! `phos-ft top`: what the page shows, on a terminal, as it happens.
//!
//! A thread follows the events, which may come at any time; the terminal is drawn a few times a second from what it heard and from what the
//! sidecar says now. The terminal is put back when somebody presses a key for that, and at SIGTERM and SIGHUP.

use std::collections::VecDeque;
use std::io::{self, IsTerminal as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ratatui::Frame;
use ratatui::crossterm::event::{self, Event as Input, KeyCode, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Gauge, List, Paragraph, Row, Sparkline, Table};
use signal_hook::consts::{SIGHUP, SIGTERM};

use super::args::Common;
use super::client::{no_answer, socket};
use super::events::describe;
use super::look::time;
use super::{exit, fail};
use crate::engine::control::messages::{Answer, Request};
use crate::engine::control::socket::{Answers, ask};
use crate::engine::unix_millis;
use crate::report::event::{Ending, Event, Record};
use crate::report::status::{CheckpointReport, Report};
use crate::report::work::{Kind, WorkReport};
use crate::size::human;

/// How often the terminal is drawn, and the sidecar asked.
const TURN: Duration = Duration::from_millis(250);
/// How long the sidecar may take to say how it is.
const PATIENCE: Duration = Duration::from_secs(2);
/// Events that are shown, and stops that are drawn, at most.
const SHOWN: usize = 200;

/// What was heard until now.
#[derive(Debug, Default)]
struct Heard {
    events: VecDeque<Record>,
    /// The newest checkpoints that were stored.
    stored: VecDeque<CheckpointReport>,
    job: Job,
    /// There is a checkpoint of this life of the job.
    has_checkpoint: bool,
}

/// What the events say of the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Job {
    #[default]
    Unheard,
    /// It runs; what it has done since then would be lost, in ms since 1970.
    Runs { since_ms: u64 },
    /// It does not, and is brought back.
    Crashed,
    /// It is over.
    Over,
}

impl Heard {
    fn take(&mut self, record: Record) {
        match &record.event {
            Event::CheckpointStored(report) => {
                self.stored.push_back((**report).clone());
                self.has_checkpoint = true;
                if let Job::Runs { since_ms } = self.job {
                    let since_ms = since_ms.max(report.held_at_ms);
                    self.job = Job::Runs { since_ms };
                }
            }
            Event::JobStarted { .. } | Event::JobResumed(_) => {
                self.has_checkpoint = matches!(record.event, Event::JobResumed(_));
                self.job = Job::Runs {
                    since_ms: record.at_ms,
                };
            }
            // It ran before, and there may be a checkpoint of it.
            Event::JobFound if !matches!(self.job, Job::Runs { .. }) => {
                let newest = self.stored.back().map(|report| report.held_at_ms);
                self.job = Job::Runs {
                    since_ms: newest.unwrap_or(record.at_ms),
                };
            }
            Event::JobEnded { how, .. } => {
                self.job = match how {
                    Ending::Crashed => Job::Crashed,
                    Ending::Finished | Ending::Requested => Job::Over,
                };
            }
            Event::GivenUp { .. } | Event::Fenced { .. } => self.job = Job::Over,
            Event::AgentLost { .. } => self.job = Job::Unheard,
            _ => {}
        }
        self.events.push_back(record);
        if self.events.len() > SHOWN {
            self.events.pop_front();
        }
        if self.stored.len() > SHOWN {
            self.stored.pop_front();
        }
    }
}

#[derive(Debug, Clone, Default)]
struct Hearing(Arc<Mutex<Heard>>);

impl Hearing {
    fn lock(&self) -> MutexGuard<'_, Heard> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is drawn.
struct View<'a> {
    report: &'a Report,
    /// Since when the sidecar has not answered.
    away: Option<Instant>,
    heard: &'a Heard,
    now_ms: u64,
}

pub(super) fn run(common: &Common) -> u8 {
    let path = socket(common);
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return fail(
            "top draws on a terminal, and this is none: `phos-ft status` and `phos-ft events` print",
            exit::USAGE,
        );
    }
    let first = match ask(&path, &Request::Status) {
        Ok(Answer::Status(report)) => *report,
        Ok(_) => return fail("the sidecar answered something else", exit::FAILED),
        Err(e) => return no_answer(&path, &e),
    };
    let heard = Hearing::default();
    let listener = (path.clone(), heard.clone());
    // Ends with the process.
    std::thread::spawn(move || listen(&listener.0, &listener.1));
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP] {
        if let Err(e) = signal_hook::flag::register(signal, Arc::clone(&ended)) {
            return fail(format_args!("cannot watch for signals: {e}"), exit::SYSTEM);
        }
    }
    let mut terminal = ratatui::init();
    let ended = show(&mut terminal, &path, first, (&heard, &ended));
    ratatui::restore();
    match ended {
        Ok(()) => exit::OK,
        Err(e) => fail(format_args!("the terminal failed: {e}"), exit::FAILED),
    }
}

/// What the sidecar says of itself, if it does soon.
fn status(path: &Path) -> io::Result<Answer> {
    Answers::of(path, &Request::Status)?
        .within(PATIENCE)?
        .next_one()
}

fn listen(path: &Path, heard: &Hearing) {
    let mut after = 0;
    loop {
        if let Ok(mut answers) = Answers::of(path, &Request::Events { after }) {
            while let Ok(Answer::Event(event)) = answers.next_one() {
                if let Some(record) = event {
                    after = record.seq;
                    heard.lock().take(*record);
                }
            }
        }
        std::thread::sleep(TURN);
    }
}

fn show(
    terminal: &mut ratatui::DefaultTerminal,
    path: &Path,
    mut report: Report,
    (heard, ended): (&Hearing, &AtomicBool),
) -> io::Result<()> {
    let mut away = None;
    while !ended.load(Ordering::Relaxed) {
        match status(path) {
            Ok(Answer::Status(now)) => (report, away) = (*now, None),
            _ => away = away.or_else(|| Some(Instant::now())),
        }
        terminal.draw(|frame| {
            let view = View {
                report: &report,
                away,
                heard: &heard.lock(),
                now_ms: unix_millis().0,
            };
            draw(frame, &view);
        })?;
        if event::poll(TURN)?
            && let Input::Key(key) = event::read()?
        {
            let interrupted =
                key.code == KeyCode::Char('c') && key.modifiers.contains(KeyModifiers::CONTROL);
            if interrupted || matches!(key.code, KeyCode::Char('q') | KeyCode::Esc) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn draw(frame: &mut Frame<'_>, view: &View<'_>) {
    let works = &view.report.work;
    let bars = u16::try_from(works.len()).unwrap_or(0);
    let [head, middle, plot, table, log] = Layout::vertical([
        Constraint::Length(4),
        Constraint::Length(bars),
        Constraint::Length(6),
        Constraint::Min(4),
        Constraint::Percentage(40),
    ])
    .areas(frame.area());
    frame.render_widget(Paragraph::new(headlines(view)), head);
    let rows = Layout::vertical(works.iter().map(|_| Constraint::Length(1))).split(middle);
    for (work, row) in works.iter().zip(rows.iter()) {
        frame.render_widget(bar(work, view.now_ms), *row);
    }
    stops(frame, plot, view);
    checkpoints(frame, table, view);
    let lines = view.heard.events.iter().rev().map(|record| {
        let line = format!("{}  {}", time(record.at_ms), describe(&record.event));
        Line::styled(line, style_of(&record.event))
    });
    let block = Block::new().borders(Borders::TOP).title("events");
    frame.render_widget(List::new(lines).block(block), log);
}

fn bad() -> Style {
    Style::new().fg(Color::Red).add_modifier(Modifier::BOLD)
}

fn style_of(event: &Event) -> Style {
    match event {
        Event::CheckpointStored(_) | Event::Protected => Style::new().fg(Color::Green),
        Event::JobResumed(_) | Event::QuiesceRetried { .. } | Event::PreemptionNoticed { .. } => {
            Style::new().fg(Color::Yellow)
        }
        Event::JobEnded { .. }
        | Event::AgentLost { .. }
        | Event::GivenUp { .. }
        | Event::CheckpointFailed { .. }
        | Event::CopyFailed { .. }
        | Event::Unprotected { .. }
        | Event::RuledOut { .. }
        | Event::RestoreFailed { .. }
        | Event::Damaged { .. }
        | Event::StoreUnreachable { .. }
        | Event::Fenced { .. } => Style::new().fg(Color::Red),
        _ => Style::new(),
    }
}

/// Seconds in words.
fn ago(ms: u64) -> String {
    let seconds = ms / 1000;
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

/// Whether the job is safe, in one sentence.
fn verdict(view: &View<'_>) -> Span<'static> {
    let View {
        report,
        away,
        now_ms,
        heard,
    } = view;
    if let Some(since) = away {
        let seconds = since.elapsed().as_secs();
        return Span::styled(
            format!("THE SIDECAR HAS NOT ANSWERED FOR {seconds} s"),
            bad(),
        );
    }
    let warned = Style::new().fg(Color::Yellow);
    match heard.job {
        Job::Over => return Span::raw("the job is over"),
        Job::Crashed => return Span::styled("THE JOB CRASHED, and is brought back", bad()),
        Job::Unheard | Job::Runs { .. } => {}
    }
    let ruled_out = report.unsupported.as_ref().or(report.history_away.as_ref());
    if let Some(reason) = ruled_out {
        return Span::styled(format!("UNPROTECTED: {reason}"), bad());
    }
    if let Some(unprotected) = &report.unprotected {
        let since = ago(now_ms.saturating_sub(unprotected.since_ms));
        return Span::styled(
            format!("UNPROTECTED for {since}: {}", unprotected.because),
            bad(),
        );
    }
    match heard.job {
        Job::Runs { since_ms } => {
            let since = ago(now_ms.saturating_sub(since_ms));
            let good = Style::new().fg(Color::Green).add_modifier(Modifier::BOLD);
            match !heard.has_checkpoint {
                true => Span::styled(format!("no checkpoint yet, for {since}"), warned),
                false => Span::styled(
                    format!("protected: {since} of work would be lost now"),
                    good,
                ),
            }
        }
        _ => Span::styled("not heard of the job yet", warned),
    }
}

fn headlines(view: &View<'_>) -> Vec<Line<'static>> {
    let report = view.report;
    let copied = report.remote.as_ref().map_or_else(String::new, |copy| {
        format!(
            "; L{} is in the store, {} old",
            copy.local,
            ago(view.now_ms.saturating_sub(copy.taken_ms))
        )
    });
    vec![
        Line::from(vec![
            Span::styled(
                report.job.clone(),
                Style::new().add_modifier(Modifier::BOLD),
            ),
            Span::raw(format!("  {}  ", report.state)),
            verdict(view),
        ]),
        Line::raw(report.command.join(" ")),
        Line::raw(format!("store {}{copied}", report.store)),
        Line::raw(format!(
            "{} stored, {} failed, {} restarts, every {} s    q: quit",
            report.checkpoints, report.failures, report.restarts, report.interval_seconds
        )),
    ]
}

fn bar(work: &WorkReport, now_ms: u64) -> Gauge<'static> {
    let what = match work.kind {
        Kind::Drain => "drain ",
        Kind::Store => "store ",
        Kind::Resume => "resume",
    };
    let ratio = match work.total_bytes {
        0 => 1.0,
        total => (work.done_bytes as f64 / total as f64).min(1.0),
    };
    let seconds = now_ms.saturating_sub(work.since_ms) as f64 / 1e3;
    let label = format!(
        "{what} {} of {} in {seconds:.0} s",
        human(work.done_bytes),
        human(work.total_bytes)
    );
    Gauge::default()
        .gauge_style(Style::new().fg(Color::Blue))
        .ratio(ratio)
        .label(label)
}

fn stops(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let stored = &view.heard.stored;
    let width = usize::from(area.width);
    let newest: Vec<u64> = (stored.iter().skip(stored.len().saturating_sub(width)))
        .map(|report| report.stop_ms as u64)
        .collect();
    let longest = newest.iter().max().copied().unwrap_or(0);
    let last = newest.last().copied().unwrap_or(0);
    let title = format!("stops: last {last} ms, longest here {longest} ms");
    let block = Block::new().borders(Borders::TOP).title(title);
    let plot = Sparkline::default()
        .style(Style::new().fg(Color::Cyan))
        .data(&newest)
        .block(block);
    frame.render_widget(plot, area);
}

fn checkpoints(frame: &mut Frame<'_>, area: Rect, view: &View<'_>) {
    let header = [
        "checkpoint",
        "stored",
        "trigger",
        "stop",
        "changed",
        "grew",
        "took",
    ];
    let rows = view.heard.stored.iter().rev().map(|report| {
        Row::new([
            format!("{}{}", if report.local { "L" } else { "" }, report.id),
            time(report.taken_ms),
            report.trigger.clone(),
            format!("{:.0} ms", report.stop_ms),
            human(report.changed_bytes),
            human(report.stored_bytes),
            format!("{:.1} s", report.seconds),
        ])
    });
    let widths = [10, 21, 11, 10, 12, 12, 9].map(Constraint::Length);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    let table = Table::new(rows, widths)
        .header(Row::new(header).style(bold))
        .block(Block::new().borders(Borders::TOP));
    frame.render_widget(table, area);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;

    use super::*;
    use crate::report::status::Unprotected;

    fn stored(id: u64) -> Event {
        Event::CheckpointStored(Box::new(CheckpointReport {
            id,
            local: true,
            durability: None,
            trigger: "interval".into(),
            taken_ms: id * 60_000,
            held_at_ms: id * 60_000,
            step: None,
            stop_ms: 100.0 * id as f64,
            parts_ms: BTreeMap::new(),
            rates: BTreeMap::new(),
            total_bytes: 1 << 30,
            changed_bytes: 1 << 20,
            copied_bytes: 1 << 20,
            stored_bytes: 1 << 19,
            seconds: 1.0,
        }))
    }

    fn drawn(report: &Report, heard: &Heard, size: (u16, u16)) -> String {
        let mut terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        let view = View {
            report,
            away: None,
            heard,
            now_ms: 400_000,
        };
        terminal.draw(|frame| draw(frame, &view)).unwrap();
        terminal.backend().to_string()
    }

    #[test]
    fn it_says_whether_the_job_is_safe_and_how_far_work_is() {
        let mut heard = Heard::default();
        heard.take(Record {
            seq: 0,
            at_ms: 1,
            event: Event::JobFound,
        });
        for seq in 1..=5 {
            let event = stored(seq);
            heard.take(Record {
                seq,
                at_ms: seq * 60_000,
                event,
            });
        }
        let mut report = Report {
            job: "llama".into(),
            last: heard.stored.back().cloned(),
            ..Report::default()
        };
        report.work.push(WorkReport {
            kind: Kind::Drain,
            done_bytes: 1 << 20,
            total_bytes: 4 << 20,
            since_ms: 398_000,
        });
        let text = drawn(&report, &heard, (120, 40));
        for words in [
            "llama",
            "protected: 100 s of work would be lost now",
            "drain  1.0 MiB of 4.0 MiB in 2 s",
            "stops: last 500 ms, longest here 500 ms",
            "L5 ",
            "1970-01-01T00:05:00Z",
        ] {
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
        report.unprotected = Some(Unprotected {
            since_ms: 100_000,
            because: "no route to the store".into(),
            reason: None,
        });
        let text = drawn(&report, &heard, (120, 40));
        let words = "UNPROTECTED for 5 min: no route to the store";
        assert!(text.contains(words), "{text}");
        // A crash is what matters then, and after the resume what was done since.
        report.unprotected = None;
        let crashed = Event::JobEnded {
            how: Ending::Crashed,
            exit: String::new(),
        };
        let started = Event::JobStarted { command: vec![] };
        for (event, words) in [
            (crashed, "THE JOB CRASHED"),
            (started, "no checkpoint yet, for 10 s"),
            (stored(6), "protected: 10 s of work"),
        ] {
            heard.take(Record {
                seq: 9,
                at_ms: 390_000,
                event,
            });
            let text = drawn(&report, &heard, (120, 40));
            assert!(text.contains(words), "no {words:?} in\n{text}");
        }
    }

    #[test]
    fn it_draws_on_terminals_of_any_size() {
        let mut heard = Heard::default();
        for seq in 1..500 {
            let event = stored(seq);
            heard.take(Record {
                seq,
                at_ms: seq,
                event,
            });
        }
        assert_eq!((heard.events.len(), heard.stored.len()), (SHOWN, SHOWN));
        for size in [(1, 1), (20, 5), (80, 24), (300, 100)] {
            drawn(&Report::default(), &heard, size);
        }
    }
}
