//! The agent's part: it makes the directory for the CPU image, gets the memory, and brings the processes back.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::pin::{Pin, pin};
use std::time::{Duration, Instant};

use phos_protocol::agent::{RestoreTimes, ToAgent, ToSidecar};
use phos_protocol::channel::BATCH;
use phos_protocol::types::GpuUuid;
use phos_shared::failpoint::{self, Point};

use super::checks::CheckError;
use super::error::RestoreError;
use super::fill::Filled;
use super::transfer::Filling;
use crate::engine::image::Extra;
use crate::engine::memory::registry::Held;
use crate::engine::session::{Session, WaitError, at};

/// The agent's part: CRIU, control state, attach.
const RESTORE: Duration = Duration::from_secs(900);
/// A transfer of the rest of the memory, which somebody is waiting for, however long it takes.
const TRANSFER: Duration = Duration::from_secs(30 * 24 * 3600);

impl Session<'_> {
    /// An empty directory of the agent's for the CPU image.
    pub(super) async fn image_directory(&mut self) -> Result<OwnedFd, RestoreError> {
        self.link.send(&ToAgent::NewImageDirectory)?;
        let directory = self
            .answer(Duration::from_secs(60), |message, fds| match message {
                ToSidecar::ImageDirectory(outcome) => Ok(outcome.map(|()| fds.pop())),
                other => Err(other),
            })
            .await?;
        match directory {
            Ok(Some(directory)) => Ok(directory),
            Ok(None) => Err(RestoreError::Image("the agent sent no directory".into())),
            Err(reason) => Err(RestoreError::Image(reason)),
        }
    }

    /// Gives memory that is filled to the agent and lets it bring the job back.
    pub(super) async fn hand_over(
        &mut self,
        held: &[Held],
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
    ) -> Result<RestoreTimes, RestoreError> {
        self.send_memory(held)?;
        let gpus = moves(assigned);
        self.link.send(&ToAgent::Restore { gpus })?;
        self.answer(RESTORE, is_outcome).await?
    }

    /// Lets the agent bring the job back while its memory, which is given to it, is still being filled. Returns what both came to,
    /// and how long the processes waited for their memory. When it returns, nobody fills it any more.
    pub(super) async fn revive(
        &mut self,
        held: &[Held],
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
        filling: &Filling,
        mut filled: Pin<&mut impl Future<Output = Result<Filled, RestoreError>>>,
    ) -> Result<(Filled, RestoreTimes, Duration), RestoreError> {
        if let Err(e) = self.begin_revive(held, assigned) {
            filling.give_up();
            let _ = filled.await;
            return Err(e);
        }
        let began = Instant::now();
        let agent = self.link.sender();
        let mut outcome = None;
        // What a transfer takes has no bound; what the agent takes after it has.
        let mut until = None;
        let answer = {
            let mut answer = pin!(self.answer(TRANSFER, is_outcome));
            loop {
                tokio::select! {
                    answer = &mut answer => break answer,
                    ended = &mut filled, if outcome.is_none() => {
                        failpoint::reach(Point::SidecarBeforeFilled);
                        let told = ended.as_ref().map(drop).map_err(in_short);
                        outcome = Some(ended);
                        until = Some(Instant::now() + RESTORE);
                        if let Err(lost) = agent.send(&ToAgent::Filled(told)) {
                            break Err(lost.into());
                        }
                    }
                    () = at(until) => break Err(WaitError::Timeout(RESTORE)),
                }
            }
        };
        if outcome.is_none() {
            filling.give_up();
            let _ = filled.await;
        }
        let (times, filled) = match (answer, outcome) {
            (Err(lost), _) => return Err(lost.into()),
            (Ok(Ok(times)), Some(Ok(filled))) => (times, filled),
            // The job has ended before it wanted any memory.
            (Ok(Ok(times)), _) => (times, Filled::unread(held)),
            // The agent ended what it had brought back, as it was told.
            (Ok(Err(_)), Some(Err(e))) => return Err(e),
            (Ok(Err(e)), _) => return Err(e),
        };
        let ns = times.files_ns + times.criu_ns + times.control_restore_ns + times.attach_ns;
        let waited = began.elapsed().saturating_sub(Duration::from_nanos(ns));
        Ok((filled, times, waited))
    }

    fn begin_revive(
        &self,
        held: &[Held],
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
    ) -> Result<(), RestoreError> {
        self.send_memory(held)?;
        let gpus = moves(assigned);
        self.link.send(&ToAgent::Revive { gpus })?;
        Ok(())
    }

    fn send_memory(&self, held: &[Held]) -> Result<(), RestoreError> {
        for batch in held.chunks(BATCH) {
            let fds: Option<Vec<_>> = batch.iter().map(|h| h.memory.fd()).collect();
            let fds =
                fds.ok_or_else(|| RestoreError::Image("memory without a file descriptor".into()))?;
            let allocations = batch.iter().map(|h| h.allocation).collect();
            self.link
                .send_with(&ToAgent::RestoreMemory { allocations }, &fds)?;
        }
        Ok(())
    }
}

/// For a message: a packet holds no text of any length.
fn in_short(e: &RestoreError) -> String {
    e.to_string().chars().take(4096).collect()
}

/// Old GPU → new GPU; none if each stays.
fn moves(assigned: &BTreeMap<GpuUuid, GpuUuid>) -> Vec<(GpuUuid, GpuUuid)> {
    if assigned.iter().all(|(old, new)| old == new) {
        return Vec::new();
    }
    assigned.iter().map(|(a, b)| (*a, *b)).collect()
}

/// What the agent's part came to, if this says so.
fn is_outcome(
    message: ToSidecar,
    _fds: &mut Vec<OwnedFd>,
) -> Result<Result<RestoreTimes, RestoreError>, ToSidecar> {
    match message {
        ToSidecar::Restored(outcome) => Ok(outcome.map_err(RestoreError::Agent)),
        ToSidecar::NotRestorable { reason } => Ok(Err(RestoreError::Driver(reason))),
        ToSidecar::Refused { reason } => Ok(Err(CheckError::Refused(reason).into())),
        ToSidecar::CannotMove { reason } => Ok(Err(CheckError::Move(reason).into())),
        other => Err(other),
    }
}

/// What the processes call their GPUs → where these are now.
pub(super) fn aliases(
    extra: &Extra,
    assigned: &BTreeMap<GpuUuid, GpuUuid>,
) -> Vec<(GpuUuid, GpuUuid)> {
    let mut names: Vec<GpuUuid> = extra
        .processes
        .iter()
        .flat_map(|p| &p.devices)
        .map(|d| d.uuid)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            let was = extra
                .aliases
                .iter()
                .find(|(n, _)| *n == name)
                .map_or(name, |(_, to)| *to);
            let now = *assigned.get(&was)?;
            (now != name).then_some((name, now))
        })
        .collect()
}
