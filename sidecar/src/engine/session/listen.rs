//! Listens to the agent: to what it says by itself, and to answers that somebody waits for.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use phos_policies::schedule::Event as Scheduled;
use phos_protocol::agent::{ToAgent, ToSidecar};

use super::link::{LinkError, Packet};
use super::{Ended, Session, Stop, WaitError};
use crate::engine::{LINGER, stop_wanted};
use crate::report::event::Event;

impl Session<'_> {
    /// Deals with a message that nobody waits for.
    pub(in crate::engine) async fn event(
        &mut self,
        (message, fds): Packet,
    ) -> Result<(), LinkError> {
        if let Some(message) = self.unexpected(message, fds).await? {
            tracing::warn!(
                ?message,
                "the agent said something that was not expected now"
            );
        }
        Ok(())
    }

    /// Deals with events; gives anything else back.
    async fn unexpected(
        &mut self,
        message: ToSidecar,
        _fds: Vec<OwnedFd>,
    ) -> Result<Option<ToSidecar>, LinkError> {
        match message {
            ToSidecar::JobExited { exit, stopping } => {
                tracing::info!(?exit, stopping, "the job ended");
                self.ended = Some(Ended {
                    exit,
                    stopping,
                    found: false,
                });
            }
            ToSidecar::NeedMemory { gpu, bytes } => {
                let freed = self.engine.release_memory().await;
                tracing::info!(%gpu, bytes, freed, "the job needs device memory");
                self.link.send(&ToAgent::MemoryReleased)?;
            }
            ToSidecar::Terminating { grace_ms } => {
                self.terminating(Duration::from_millis(grace_ms))
            }
            ToSidecar::Unsupported { reason } => {
                if reason.is_empty() {
                    tracing::info!("checkpoints are possible again");
                } else {
                    tracing::warn!(reason, "checkpoints are ruled out for now");
                }
                let message = (!reason.is_empty()).then_some(reason);
                self.engine.status.lock().unsupported.clone_from(&message);
                self.engine.happened(match message {
                    Some(message) => Event::RuledOut { message },
                    None => Event::Possible,
                });
            }
            ToSidecar::Freed { keys } => self.registry.remove(&keys),
            ToSidecar::Hints { steps } => {
                tracing::info!(steps, "the program uses hints");
                self.has_hints = true;
                self.has_steps |= steps;
                self.tell_newest()?;
            }
            ToSidecar::Request => {
                let now = self.engine.now();
                self.program_asked = true;
                self.engine.schedule.on(Scheduled::Hinted, now);
            }
            // The rest of an attempt that was given up.
            ToSidecar::Resumed { .. }
            | ToSidecar::Table { .. }
            | ToSidecar::ControlSaved { .. } => {}
            ToSidecar::Quiesced { .. }
            | ToSidecar::Dumped { .. }
            | ToSidecar::Moment { .. }
            | ToSidecar::Step { .. }
            | ToSidecar::TakesCredit { .. }
            | ToSidecar::Spent { .. } => {}
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    /// Tells the job's program which checkpoint is the newest, if it uses hints.
    pub(in crate::engine) fn tell_newest(&self) -> Result<(), LinkError> {
        if !self.has_hints {
            return Ok(());
        }
        self.link.send(&ToAgent::Newest(self.engine.newest))
    }

    /// Waits for the message that `accept` takes; everything else is dealt with meanwhile. Ends early
    /// when the job ends.
    pub(in crate::engine) async fn answer<T>(
        &mut self,
        limit: Duration,
        mut accept: impl FnMut(ToSidecar, &mut Vec<OwnedFd>) -> Result<T, ToSidecar>,
    ) -> Result<T, WaitError> {
        let deadline = Instant::now() + limit;
        loop {
            let packet = tokio::time::timeout_at(deadline.into(), self.link.recv())
                .await
                .map_err(|_| WaitError::Timeout(limit))?;
            let (message, mut fds) = packet?;
            match accept(message, &mut fds) {
                Ok(answer) => return Ok(answer),
                Err(other) => {
                    self.event((other, fds)).await?;
                    if self.ended.is_some() {
                        return Err(WaitError::JobExited);
                    }
                }
            }
        }
    }

    /// Like [`Session::answer`], beside some other work.
    pub(in crate::engine) async fn event_while_waiting(
        &mut self,
        packet: Packet,
    ) -> Result<(), WaitError> {
        self.event(packet).await?;
        if self.ended.is_some() {
            return Err(WaitError::JobExited);
        }
        Ok(())
    }

    /// Waits while nothing runs, and continues to listen, so that an agent or a user who asks for an end gets it.
    pub(in crate::engine) async fn pause(&mut self, time: Duration) -> Result<(), Stop> {
        let until = Instant::now() + time;
        loop {
            let signals = &mut self.engine.signals;
            tokio::select! {
                packet = self.link.recv() => self.event(packet?).await?,
                () = stop_wanted(signals, LINGER) => return Err(Stop::Over),
                () = tokio::time::sleep_until(until.into()) => return Ok(()),
            }
            if self.termination.is_some() {
                self.send_terminate()?;
            }
        }
    }
}
