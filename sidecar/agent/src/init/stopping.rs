//! How the agent ends: signals, the grace period of SIGTERM, and a job that another node has taken over.

use std::time::Instant;

use phos_protocol::agent::{JobState, ToSidecar};
use rustix::process::Signal;

use super::Init;
use super::restore::Restore;
use crate::AgentError;
use crate::attempt::Input;
use crate::init::fence;
use crate::job::signals;

/// SIGTERM was received.
#[derive(Debug)]
pub(super) struct Stopping {
    /// The time until which the sidecar may work, if it is waited for.
    pub(super) sidecar_until: Option<Instant>,
    kill_at: Instant,
    pub(super) signalled: bool,
    killed: bool,
}

impl Stopping {
    /// The next time at which something is to be done.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.signalled {
            return (!self.killed).then_some(self.kill_at);
        }
        let asked_until = self.sidecar_until.unwrap_or(self.kill_at);
        Some(asked_until.min(self.kill_at))
    }
}

/// Why and how the agent is about to end, if it is.
#[derive(Debug, Default)]
pub(super) struct Ending {
    pub(super) stopping: Option<Stopping>,
    /// When the job was last sent SIGINT or SIGQUIT by somebody.
    pub(super) interrupted: Option<Instant>,
    /// Another node has the job: who, as the sidecar said. The job is being ended.
    pub(super) fenced: Option<String>,
    /// The code that the agent ends with, when it is to end.
    pub(super) exit: Option<i32>,
    /// The error that the agent ends with, if it fails.
    pub(super) failed: Option<AgentError>,
}

impl Init {
    pub(super) fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::CHILD => {}
            Signal::TERM => self.on_terminate(),
            other => {
                if let Some(root) = self.job.root {
                    if matches!(other, Signal::INT | Signal::QUIT) {
                        self.ending.interrupted = Some(Instant::now());
                    }
                    signals::send(root, other);
                } else if matches!(other, Signal::INT | Signal::QUIT | Signal::HUP) {
                    // Nothing runs: the signal is for us.
                    self.ending.exit = Some(self.code_without_job(other));
                }
            }
        }
    }

    fn code_without_job(&self, signal: Signal) -> i32 {
        match self.job.state {
            JobState::Ended(exit) => exit.shell_code(),
            _ => 128 + signal.as_raw(),
        }
    }

    fn on_terminate(&mut self) {
        if let Some(stopping) = &self.ending.stopping {
            if !stopping.signalled {
                self.signal_job();
            }
            return;
        }
        if self.job.root.is_none() && self.restore.is_none() {
            self.ending.exit = Some(self.code_without_job(Signal::TERM));
            return;
        }
        if self.restore.as_ref().is_some_and(Restore::waits_for_memory) {
            self.end_without_memory();
            return;
        }
        let now = Instant::now();
        let share = self.config.grace * 4 / 5;
        let is_told = self.sidecar.is_connected() && !self.welcome_is_due;
        let ask = is_told && self.job.root.is_some();
        self.ending.stopping = Some(Stopping {
            sidecar_until: ask.then_some(now + share),
            kill_at: now + self.config.grace,
            signalled: false,
            killed: false,
        });
        let grace_ms = u64::try_from(share.as_millis()).unwrap_or(u64::MAX);
        if !(ask && self.sidecar.send(&ToSidecar::Terminating { grace_ms }, &[])) {
            self.signal_job();
        }
    }

    /// Ends while processes wait for their memory. They can neither have a checkpoint nor do anything of use with the grace time; the
    /// checkpoint that they are of is there.
    pub(super) fn end_without_memory(&mut self) {
        self.ending.exit = Some(128 + Signal::TERM.as_raw());
    }

    /// SIGTERM to the job's main process.
    pub(super) fn signal_job(&mut self) {
        self.attempt(Input::Abandon { seq: None });
        let Some(stopping) = &mut self.ending.stopping else {
            return;
        };
        if let Some(root) = self.job.root {
            stopping.signalled = true;
            signals::send(root, Signal::TERM);
        }
    }

    pub(super) fn stopping_on_time(&mut self, now: Instant) {
        let Some(stopping) = &mut self.ending.stopping else {
            return;
        };
        if stopping.killed {
            return;
        }
        if now >= stopping.kill_at {
            stopping.killed = true;
            tracing::warn!("the job did not end within the grace time: SIGKILL");
            if self.job.root.is_some() {
                self.begin_kill();
            } else {
                self.ending.exit = Some(self.code_without_job(Signal::TERM));
            }
        } else if !stopping.signalled && stopping.sidecar_until.is_some_and(|u| now >= u) {
            stopping.sidecar_until = None;
            self.signal_job();
        }
    }

    /// Another node has taken the job over. What runs here could never be stored again, and two of it would work on the
    /// same files: it is ended as by SIGTERM, without a last checkpoint, and the next agent in this container is told.
    pub(super) fn on_fenced(&mut self, reason: String) {
        tracing::error!(
            reason,
            "another node has this job: it is ended here, without a checkpoint"
        );
        fence::note(&self.config.job_dir(), &reason);
        self.ending.fenced = Some(reason);
        if self.job.root.is_none() {
            self.end_fenced();
            return;
        }
        self.ending.stopping = Some(Stopping {
            sidecar_until: None,
            kill_at: Instant::now() + self.config.grace,
            signalled: false,
            killed: false,
        });
        self.signal_job();
    }

    pub(super) fn end_fenced(&mut self) {
        self.ending.failed = self.ending.fenced.take().map(|reason| AgentError::Fenced {
            job: self.config.job.clone(),
            reason,
            note: fence::path(&self.config.job_dir()),
        });
    }

    /// Something has been decided: nobody is waited for.
    pub(super) fn decide_by_nobody(&mut self) {
        self.decision.by = None;
    }

    /// Whether the job was told to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.ending.stopping.is_some()
    }
}
