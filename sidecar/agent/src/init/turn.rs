//! The event loop: what is listened to, in which order, and until when.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use phos_protocol::agent::JobState;
use rustix::event::{PollFd, PollFlags, poll};

use super::Init;
use super::requests::Tell;
use super::restore::Restore;
use super::stopping::Stopping;
use crate::AgentError;
use crate::attempt::Input;
use crate::channels::link::timespec;
use crate::channels::shims::ShimEvent;
use crate::channels::sidecar_link::SidecarEvent;

/// Between two reminders that the command is not started yet.
pub(super) const REMIND: Duration = Duration::from_secs(120);

/// Messages of shims that are heard before the sidecar, signals and deadlines have their turn again.
const SHIM_EVENTS: usize = 256;

impl Init {
    pub(super) fn turn(&mut self) -> Result<(), AgentError> {
        self.wait()?;
        while let Some(signal) = self.signals.next() {
            self.on_signal(signal);
        }
        self.reap();
        while let Some(done) = self.worker.take() {
            self.on_done(done);
        }
        self.sidecar.accept();
        while let Some(event) = self.sidecar.next_event() {
            match event {
                SidecarEvent::Message(message, fds) => self.on_sidecar(message, fds),
                SidecarEvent::Closed => self.on_sidecar_gone(),
            }
            // Between two messages, so that an answer never overtakes the end of the job.
            self.reap();
        }
        for id in self.shims.flush(self.config.timeouts.send) {
            self.on_shim_closed(id, None);
        }
        self.shims.accept(self.job.root);
        // The rest is heard next time round: processes of the job that flood this one keep it from nothing else.
        for _ in 0..SHIM_EVENTS {
            match self.shims.next_event() {
                Some(ShimEvent::Message(id, message, fds)) => self.on_shim(id, message, fds),
                Some(ShimEvent::Closed(id, why)) => self.on_shim_closed(id, why.as_deref()),
                None => break,
            }
        }
        self.watch_processes();
        // After what was said in time and had to wait here.
        self.on_time(Instant::now());
        Ok(())
    }

    fn wait(&self) -> Result<(), AgentError> {
        let deadline = [
            self.decision.by,
            self.decision.remind_at,
            self.notice.due,
            self.kill.saving,
            self.kill.until,
            self.lost.missing.as_ref().map(|missing| missing.at),
            self.shims.deadline(self.config.timeouts.send),
            self.checkpoint.deadline(),
            self.restore.as_ref().and_then(|r| r.deadline),
            self.ending.stopping.as_ref().and_then(Stopping::deadline),
        ]
        .into_iter()
        .flatten()
        .min();
        let limit = deadline.map(|at| {
            // Rounded up, so that the deadline has passed when poll returns.
            timespec(at.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
        });
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.push(PollFd::from_borrowed_fd(
            self.signals.as_fd(),
            PollFlags::IN,
        ));
        fds.push(PollFd::from_borrowed_fd(self.worker.fd(), PollFlags::IN));
        for (fd, events) in self.shims.fds() {
            fds.push(PollFd::from_borrowed_fd(fd, events));
        }
        for fd in self.sidecar.fds() {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        for process in self.processes.values() {
            if let Some(alive) = &process.alive {
                fds.push(PollFd::from_borrowed_fd(alive.as_fd(), PollFlags::IN));
            }
        }
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(AgentError::System {
                what: "wait for events",
                cause: e.into(),
            }),
        }
    }

    fn on_time(&mut self, now: Instant) {
        if self.kill.saving.is_some_and(|until| now >= until) {
            self.kill.saving = None;
            tracing::error!(
                "the driver does not save the job's CUDA state in time: the job is killed without"
            );
            self.kill_everything();
        }
        if self.kill.until.is_some_and(|until| now >= until) {
            self.kill.until = None;
            tracing::error!("processes of the job do not end after SIGKILL (stuck in the kernel)");
            // A worker's result is waited for, which has a deadline of its own.
            if !self.restore.as_ref().is_some_and(Restore::is_reviving) {
                self.restore_failed("processes of the old tree do not end after SIGKILL: they are stuck in the kernel; restart the machine or container");
            }
        }
        if self.lost.missing.as_ref().is_some_and(|m| now >= m.at) {
            self.rank_is_missing();
        }
        if self.checkpoint.deadline().is_some_and(|d| now >= d) {
            self.attempt(Input::Tick);
        }
        if self
            .restore
            .as_ref()
            .and_then(|r| r.deadline)
            .is_some_and(|d| now >= d)
        {
            self.restore_timed_out();
        }
        if self.decision.by.is_some_and(|d| now >= d) {
            self.decision.by = None;
            self.nobody_decided();
        }
        if self.decision.remind_at.is_some_and(|r| now >= r) {
            self.decision.remind_at = (self.job.state == JobState::Waiting).then(|| now + REMIND);
            if self.decision.remind_at.is_some() && !self.sidecar.is_connected() {
                tracing::warn!(
                    "the command is not started yet: no sidecar has come. Its log says what it waits for or why it ended \
                     (in containers that of the service phos-ft)"
                );
            }
        }
        if self.notice.due.is_some_and(|at| now >= at) {
            self.notice.due = None;
            self.notice.told = Some(now);
            self.tell_unsupported(Tell::AlsoNothing);
        }
        self.stopping_on_time(now);
    }
}
