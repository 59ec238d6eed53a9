//! The requests of the sidecar, and what it is told without asking.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_protocol::agent::{JobState, ToAgent, ToSidecar};
use phos_protocol::shim::{Sequence, ToShim, Waits, WatchTime};
use phos_protocol::types::ProcessId;

use super::Init;
use super::hints::HintsTold;
use super::restore::Contents;
use crate::attempt::Input;
use crate::channels::shims::{ConnectionId, CudaProcess};
use crate::image::{ImageDirectory, Pages};
use crate::survey::Urgency;

/// Between two things that the sidecar hears of what rules checkpoints out: processes may say it as often as they like.
const TELL: Duration = Duration::from_secs(1);

/// Most bytes of a command that are told: a message has to hold it, and a manifest.
const TOLD: usize = 16 << 10;

/// What the sidecar is told of processes that rule checkpoints out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tell {
    /// The reason, if checkpoints are ruled out; otherwise nothing.
    WhatIs,
    /// The reason, or that there no longer is one.
    AlsoNothing,
}

/// The sidecar wants to know when the job waits for its work.
#[derive(Debug, Clone, Copy)]
pub(super) struct Watching {
    /// The number of the attempt that is to begin then.
    pub(super) seq: Sequence,
    /// Whether the sidecar was told of such a moment.
    pub(super) told: bool,
}

/// What the sidecar was told of processes that rule checkpoints out.
#[derive(Debug, Default)]
pub(super) struct Notice {
    /// When the sidecar was told last, if it was.
    pub(super) told: Option<Instant>,
    /// When the sidecar is to be told again, if it is.
    pub(super) due: Option<Instant>,
}

impl Init {
    pub(super) fn on_sidecar(&mut self, message: ToAgent, fds: Vec<OwnedFd>) {
        if matches!(self.job.state, JobState::Ended(_)) && self.restore.is_none() {
            self.wait_for_decision();
        }
        match message {
            ToAgent::Hello { version } => {
                tracing::info!(version, "sidecar connected");
                self.sidecar.greet();
                // What it is told of the job it acts upon: a restore that another sidecar began is over before that.
                if self.restore.is_some() {
                    self.welcome_is_due = true;
                } else {
                    self.welcome_sidecar();
                }
            }
            ToAgent::Start => {
                if self.job.state == JobState::Running || self.restore.is_some() {
                    let text = "the job runs already".to_owned();
                    self.sidecar.send(&ToSidecar::Started(Err(text)), &[]);
                } else {
                    self.start_job();
                }
            }
            ToAgent::GiveUp => match self.job.state {
                JobState::Ended(exit) => self.ending.exit = Some(exit.shell_code()),
                JobState::Waiting => self.ending.exit = Some(1),
                JobState::Running => tracing::warn!("the sidecar gave up a job that runs: ignored"),
            },
            ToAgent::RestoreMemory { allocations } => {
                if allocations.len() == fds.len() {
                    self.incoming
                        .memory
                        .extend(allocations.into_iter().zip(fds));
                } else {
                    // Found out at `Restore`: an allocation will be missing.
                    tracing::warn!("the sidecar sent another number of fds than allocations");
                }
            }
            ToAgent::NewImageDirectory => self.new_incoming(),
            ToAgent::CheckFiles => self.check_files(),
            ToAgent::Restore { gpus } => self.begin_restore(gpus, Contents::Here),
            ToAgent::Revive { gpus } => self.begin_restore(gpus, Contents::Awaited),
            ToAgent::Filled(outcome) => self.contents_are(outcome),
            ToAgent::Quiesce { seq, time, insist } => {
                let urgency = if insist {
                    Urgency::Insisted
                } else {
                    Urgency::Scheduled
                };
                self.begin_attempt(seq, time, urgency);
            }
            ToAgent::Watch { seq, time } if time != WatchTime::OVER => {
                self.watch_for_moment(seq, time)
            }
            ToAgent::Watch { .. } => self.end_watch(),
            ToAgent::WatchFor { seq, time, waits } => self.watch_for_wait(seq, time, waits),
            ToAgent::AwaitStep { seq, time } => self.await_step(seq, time),
            ToAgent::Newest(newest) => self.newest_is(newest),
            ToAgent::Credit { seq, credit } => self.credit(seq, credit),
            ToAgent::Dump { seq } => self.attempt(Input::Dump { seq }),
            ToAgent::Attach { seq } => self.attempt(Input::Attach { seq }),
            ToAgent::Abandon { seq } => {
                self.end_credit();
                self.attempt(Input::Abandon { seq: Some(seq) });
            }
            ToAgent::Finish { seq } => {
                self.images.remove(&seq);
            }
            ToAgent::MemoryReleased => self.memory_released(),
            ToAgent::TakenOver { epoch } => self.epoch = epoch,
            ToAgent::Fenced { reason } => self.on_fenced(reason),
            ToAgent::Terminate => {
                if self.ending.stopping.as_ref().is_some_and(|s| !s.signalled) {
                    self.signal_job();
                }
            }
        }
    }

    /// Tells a sidecar that has said hello how things are.
    fn welcome_sidecar(&mut self) {
        let welcome = ToSidecar::Welcome {
            version: env!("CARGO_PKG_VERSION").into(),
            agent: self.id,
            job: self.job.state,
            restarts: self.job.restarts,
            command: told_command(&self.config.command),
            seq: self.last_seq,
            epoch: self.epoch,
        };
        if self.sidecar.send(&welcome, &[]) {
            // Until then nobody decides but the agent.
            self.decision.by = None;
            self.wait_for_decision();
        }
        self.tell_unsupported(Tell::WhatIs);
        self.tell_hints(HintsTold::Anew);
    }

    /// Tells the sidecar what its restore came to, or that a restore is over which another one began.
    pub(super) fn tell_restored(&mut self, answer: &ToSidecar) {
        if std::mem::take(&mut self.welcome_is_due) {
            self.welcome_sidecar();
        } else if self.sidecar.is_connected() {
            // One that has not said hello did not begin it.
            self.sidecar.send(answer, &[]);
        }
    }

    pub(super) fn on_sidecar_gone(&mut self) {
        tracing::info!("sidecar disconnected");
        self.welcome_is_due = false;
        self.memory_released();
        self.images.clear();
        if self.restore.is_none() {
            self.incoming.directory = None;
            self.incoming.memory.clear();
        }
        self.contents_are(Err(
            "the sidecar, which was filling its memory, is gone".into()
        ));
        self.end_credit();
        self.attempt(Input::Abandon { seq: None });
        self.end_watch();
        self.wait_for_decision();
        if let Some(stopping) = &self.ending.stopping
            && !stopping.signalled
            && stopping.sidecar_until.is_some()
        {
            self.signal_job();
        }
    }

    /// Has those tell when they wait for their work that did not fall quiet; all, if that is of none of them. If none can tell, the
    /// sidecar hears that at once, and tries again by itself.
    fn watch_for_moment(&mut self, seq: Sequence, time: WatchTime) {
        let able = |p: &CudaProcess| p.watches && p.connection.is_some();
        let any_busy = self.processes.values().any(|p| able(p) && p.busy);
        let asked = self
            .processes
            .values()
            .filter(|p| able(p) && (p.busy || !any_busy))
            .filter_map(|p| p.connection)
            .collect();
        self.await_moment(seq, asked, &ToShim::Watch { seq, time });
    }

    /// Has the processes that can tell one wait from another say when they are at one of these.
    fn watch_for_wait(&mut self, seq: Sequence, time: WatchTime, waits: Waits) {
        let able = self.processes.values().filter(|p| p.takes_credit);
        let asked = able.filter_map(|p| p.connection).collect();
        self.await_moment(seq, asked, &ToShim::WatchFor { seq, time, waits });
    }

    /// Asks these for a moment; the first that tells one is passed on. Where nobody is asked, the sidecar hears that at once.
    pub(super) fn await_moment(
        &mut self,
        seq: Sequence,
        asked: Vec<ConnectionId>,
        question: &ToShim,
    ) {
        self.watching = Some(Watching { seq, told: false });
        if asked.is_empty() {
            let waited = false;
            self.sidecar.send(&ToSidecar::Moment { seq, waited }, &[]);
        }
        for id in asked {
            self.tell_shim(id, question);
        }
    }

    /// Ends the watch. A process that has said that it waits would be held for a request that does not come.
    pub(super) fn end_watch(&mut self) {
        if self.watching.take().is_none() {
            return;
        }
        let able = self.processes.values().filter(|p| p.watches);
        let asked: Vec<ConnectionId> = able.filter_map(|p| p.connection).collect();
        for id in asked {
            let (seq, time) = (0, WatchTime::OVER);
            self.tell_shim(id, &ToShim::Watch { seq, time });
        }
    }

    fn new_incoming(&mut self) {
        self.incoming.memory.clear();
        let made = ImageDirectory::create(
            self.config.image_limit,
            Pages::Small,
            &self.config.job_dir(),
        );
        match made {
            Ok(directory) => {
                let directory = self.incoming.directory.insert(Arc::new(directory));
                let answer = ToSidecar::ImageDirectory(Ok(()));
                self.sidecar.send(&answer, &[directory.fd()]);
            }
            Err(e) => {
                let answer = ToSidecar::ImageDirectory(Err(e.to_string()));
                self.sidecar.send(&answer, &[]);
            }
        }
    }

    pub(super) fn memory_released(&mut self) {
        for id in std::mem::take(&mut self.waiting_for_memory) {
            self.tell_shim(id, &ToShim::MemoryReleased);
        }
    }

    /// Tells the sidecar whether checkpoints are ruled out.
    pub(super) fn tell_unsupported(&mut self, tell: Tell) {
        let reason = self
            .processes
            .iter()
            .find_map(|(pid, p)| Some(format!("process {pid}: {}", p.unsupported.as_ref()?)));
        if reason.is_some() || tell == Tell::AlsoNothing {
            let reason = reason.unwrap_or_default();
            self.sidecar.send(&ToSidecar::Unsupported { reason }, &[]);
        }
    }

    /// A process rules checkpoints out, or does not any more: the sidecar hears it, now or when it has not heard so for a while.
    pub(super) fn set_unsupported(&mut self, pid: ProcessId, reason: Option<String>) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.unsupported == reason {
            return;
        }
        let now = Instant::now();
        if let Some(reason) = &reason
            && self.shims.lines.may(now)
        {
            tracing::warn!(pid, reason, "checkpoints are ruled out");
        }
        process.unsupported = reason;
        let due = self.notice.told.map_or(now, |told| now.max(told + TELL));
        self.notice.due.get_or_insert(due);
    }
}

/// The command as the sidecar and the store hear of it, without [secrets](phos_shared::mask). A longer one is cut to its
/// beginning and a digest of all of it, so that another command is still told apart.
fn told_command(command: &[std::ffi::OsString]) -> Vec<String> {
    let all: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let all = phos_shared::mask::command(&all);
    if all.iter().map(|word| word.len() + 1).sum::<usize>() <= TOLD {
        return all;
    }
    let mut hasher = blake3::Hasher::new();
    let mut told = Vec::new();
    let mut room = TOLD / 2;
    for word in &all {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
        if word.len() < room {
            room -= word.len() + 1;
            told.push(word.clone());
        } else {
            // Only what comes first.
            room = 0;
        }
    }
    told.push(format!(
        "… (in all {} words, BLAKE3 {})",
        all.len(),
        hasher.finalize().to_hex()
    ));
    told
}
