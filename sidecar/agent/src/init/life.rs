//! The life of the job: its start, its end, and who decides what follows.

use std::time::{Duration, Instant};

use phos_protocol::agent::{Exit, JobState, ToSidecar};
use phos_protocol::types::ProcessId;
use phos_shared::run_dir;
use rustix::process::{Pid, Signal, kill_process_group};

use super::Init;
use super::restore::Restore;
use super::worker::Done;
use crate::AgentError;
use crate::attempt::Input;
use crate::channels::shims::listen_paths;
use crate::control::save_before_kill;
use crate::job::namespace::{all_ids, first_job_pid, free_range};
use crate::job::signals;
use crate::job::spawn;
use crate::job::stdio::{Generation, JobEnds};

/// How long saving the CUDA state of a job that is to be killed may take once it is locked.
const SAVE: Duration = Duration::from_secs(30);

/// Waiting for `Start`, `Restore` or `GiveUp`.
#[derive(Debug, Default)]
pub(super) struct Decision {
    /// Until when, if not for ever.
    pub(super) by: Option<Instant>,
    /// When to say again that a sidecar is waited for.
    pub(super) remind_at: Option<Instant>,
}

/// How far the killing of the job's processes is.
#[derive(Debug, Default)]
pub(super) struct Kill {
    /// The CUDA state of a job that is to be killed is being saved; it is killed then at the latest.
    pub(super) saving: Option<Instant>,
    /// SIGKILL was sent to everything; until when it may take.
    pub(super) until: Option<Instant>,
    /// A start waits for the old tree to go.
    start_wanted: bool,
}

impl Init {
    /// Nobody said `Start`, `Restore` or `GiveUp` in time.
    pub(super) fn nobody_decided(&mut self) {
        match self.job.state {
            JobState::Waiting
                if !self.sidecar.is_connected()
                    && run_dir::has_checkpoints(&self.config.job_dir()) =>
            {
                tracing::error!(
                    "no sidecar came, and the job has checkpoints: it is not begun anew without one. See what the sidecar waits \
                     for; to begin anew all the same, start it with --start-fresh"
                );
            }
            JobState::Waiting if !self.sidecar.is_connected() => {
                tracing::warn!(
                    "no sidecar came: the command is started afresh, without checkpoints until one comes"
                );
                self.start_job();
            }
            JobState::Ended(exit) if self.restore.is_none() => {
                tracing::warn!("nobody resumed the job: ending with its exit code");
                self.ending.exit = Some(exit.shell_code());
            }
            _ => {}
        }
    }

    /// Starts CMD afresh, now or when the old tree has gone.
    pub(super) fn start_job(&mut self) {
        if self.kill.until.is_some() {
            self.kill.start_wanted = true;
            return;
        }
        self.kill.start_wanted = false;
        self.decision.by = None;
        let again = matches!(self.job.state, JobState::Ended(_));
        self.forget_job();
        match self.try_start() {
            Ok(pid) => {
                tracing::info!(pid, "the job was started");
                self.job.root = Some(pid);
                self.job.state = JobState::Running;
                self.job.restored = false;
                if again {
                    self.job.restarts += 1;
                }
                self.sidecar.send(&ToSidecar::Started(Ok(())), &[]);
            }
            Err(e) => {
                self.sidecar
                    .send(&ToSidecar::Started(Err(e.to_string())), &[]);
                self.ending.failed = Some(e);
            }
        }
    }

    fn try_start(&mut self) -> Result<ProcessId, AgentError> {
        self.job.shim = self.tools.installed_shim.clone();
        self.job.other_socket = None;
        self.job.moved = Vec::new();
        self.listen()?;
        // Threads for the streams first: they live long and must not take PIDs of the job.
        let (ends, streams) = self.new_streams()?;
        self.tools.pids.set_next(first_job_pid())?;
        let shim = self.tools.installed_shim.as_ref();
        let user = self.tools.user.clone();
        let pid = spawn::start(&self.config, shim, user, ends, self.tools.limit)?;
        self.job.streams = Some(streams);
        Ok(pid)
    }

    /// Streams for a new generation, their threads below the PIDs of the job.
    pub(super) fn new_streams(&mut self) -> Result<(JobEnds, Generation), AgentError> {
        if let Some(old) = self.job.streams.take() {
            old.finish(Duration::from_millis(500));
        }
        self.low_pids(&[])?;
        let system = |what| move |cause| AgentError::System { what, cause };
        let (ends, generation) = self
            .tools
            .stdio
            .generation()
            .map_err(system("make the job's streams"))?;
        if let Some(user) = &self.tools.user {
            [&ends.stdin, &ends.stdout, &ends.stderr]
                .into_iter()
                .try_for_each(|stream| user.own(stream))
                .map_err(system("give the job's streams to its user"))?;
        }
        Ok((ends, generation))
    }

    /// The next processes and threads get low PIDs that are not in `reserved`.
    pub(super) fn low_pids(&self, reserved: &[u32]) -> Result<(), AgentError> {
        let mut taken = all_ids().unwrap_or_default();
        taken.extend(reserved);
        self.tools.pids.set_next(free_range(&taken, 512))?;
        Ok(())
    }

    /// Begins to listen for shims.
    pub(super) fn listen(&mut self) -> Result<(), AgentError> {
        let own = self.config.shim_socket();
        let paths = listen_paths(&own, self.job.other_socket.as_deref());
        self.shims
            .listen(&paths)
            .map_err(|(path, cause)| AgentError::Socket { path, cause })
    }

    /// Forgets everything about the processes there were.
    pub(super) fn forget_job(&mut self) {
        self.shims.close_all();
        self.processes.clear();
        self.waiting_for_memory.clear();
        self.lost.missing = None;
        self.vault.clear();
        self.multicasts.clear();
        self.survey.forget_processes();
    }

    /// SIGKILL to every process of the namespace but this one.
    pub(super) fn kill_everything(&mut self) {
        // No process to kill is no error here.
        // `kill(-1)`: the group of PID 1 is everybody.
        let _ = kill_process_group(Pid::INIT, Signal::KILL);
        self.kill.until = Some(Instant::now() + self.config.timeouts.reap);
    }

    /// Ends the job's processes. Those that were restored let go of their memory and have their CUDA state saved
    /// first, as far as that goes: killing them otherwise can hang the host on some drivers.
    pub(super) fn begin_kill(&mut self) {
        if !self.job.restored || self.processes.is_empty() || self.job.root.is_none() {
            self.kill_everything();
        } else if !self.begin_farewell() {
            self.save_and_kill();
        }
    }

    /// Saves the CUDA state of the job's processes, then ends them.
    pub(super) fn save_and_kill(&mut self) {
        let pids: Vec<ProcessId> = self.processes.keys().copied().collect();
        let control = self.tools.control.clone();
        let bound = self.config.timeouts.save_before_kill;
        let started = self.worker.run("save", move |_| {
            if let Ok(driver) = control.get() {
                save_before_kill(driver.as_ref(), &pids, bound);
            }
            Done::Saved
        });
        match started {
            Ok(()) => self.kill.saving = Some(Instant::now() + bound + SAVE),
            Err(_) => self.kill_everything(),
        }
    }

    /// Not even the end of the job brought a call of the driver to its end.
    pub(super) fn give_up_on_driver(&mut self) {
        self.ending.failed = Some(AgentError::DriverHangs);
    }

    /// Ends a job that cannot continue, so that it is resumed from a checkpoint as after a crash.
    pub(super) fn job_is_lost(&mut self, why: &str) {
        tracing::error!(
            why,
            "the job cannot go on and is ended; it resumes from its newest checkpoint"
        );
        self.begin_kill();
    }

    pub(super) fn reap(&mut self) {
        let reaped = signals::reap();
        for (pid, exit) in reaped.ended {
            if self.job.root == Some(pid) {
                self.on_job_exit(exit);
            } else if let Some(restore) = &self.restore {
                if restore.is_hopeless_without(pid) {
                    signals::kill_children();
                }
                self.early_exits.insert(pid, exit);
            }
        }
        if reaped.none_left && self.kill.until.is_some() {
            self.kill.until = None;
            self.on_tree_gone();
        }
    }

    /// Does what follows from the end of the job's main process.
    pub(super) fn on_job_exit(&mut self, exit: Exit) {
        tracing::info!(code = exit.shell_code(), "the job's main process ended");
        self.job.root = None;
        self.kill_everything();
        if self.restore.as_ref().is_some_and(Restore::wants_old_gone) {
            // It was killed to make room.
            return;
        }
        // Ended by who asked it to: as it would have ended alone.
        let interrupted = self
            .ending
            .interrupted
            .is_some_and(|at| at.elapsed() <= self.config.grace);
        let unread =
            (self.job.streams.as_ref()).is_some_and(|s| s.ended_for_want_of_a_reader(exit));
        if unread {
            tracing::warn!(
                code = exit.shell_code(),
                "the reader of the job's output has gone (as with `| head`), and the job ended of it: it is not brought back; \
                 the same command resumes it from its newest checkpoint"
            );
        }
        self.job.state = JobState::Ended(exit);
        // What of it may be of use to a restore the sidecar holds itself. The rest would only take the room of that.
        self.vault.clear();
        self.multicasts.clear();
        if exit.is_success() || unread {
            // Restored so near its end that it was there before the restore was over.
            self.restore_is_over();
        } else if self.restore.is_some() {
            self.restore_failed(&format!(
                "the job ended right after it was restored (code {})",
                exit.shell_code()
            ));
            if !self.is_stopping() && !interrupted {
                return;
            }
        }
        self.attempt(Input::JobEnded);
        let stopping = self.ending.stopping.is_some() || interrupted || unread;
        self.sidecar
            .send(&ToSidecar::JobExited { exit, stopping }, &[]);
        if self.ending.fenced.is_some() {
            self.end_fenced();
            return;
        }
        if stopping || exit.is_success() {
            self.ending.exit = Some(exit.shell_code());
            return;
        }
        self.wait_for_decision();
    }

    /// Starts or restarts the wait for `Start`, `Restore` or `GiveUp`.
    pub(super) fn wait_for_decision(&mut self) {
        let connected = self.sidecar.is_connected();
        self.decision.by = match self.job.state {
            JobState::Running => None,
            JobState::Waiting if connected => None,
            JobState::Waiting => self.config.sidecar_wait.map(|w| Instant::now() + w),
            JobState::Ended(_) if connected => Some(Instant::now() + self.config.decision_wait),
            JobState::Ended(_) => Some(Instant::now() + self.config.crash_wait),
        };
    }

    /// No process is left but this one.
    fn on_tree_gone(&mut self) {
        self.shims.close_all();
        self.processes.clear();
        self.restore_tree_gone();
        if self.kill.start_wanted {
            self.start_job();
        }
    }
}
