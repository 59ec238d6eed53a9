//! The agent's part: it makes the directory for the CPU image, gets the memory, and brings the processes back.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::time::Duration;

use phos_protocol::agent::{RestoreTimes, ToAgent, ToSidecar};
use phos_protocol::channel::BATCH;
use phos_protocol::types::GpuUuid;

use super::checks::CheckError;
use super::error::RestoreError;
use crate::engine::image::Extra;
use crate::engine::memory::registry::Held;
use crate::engine::session::Session;

/// The agent's part: CRIU, control state, attach.
const RESTORE: Duration = Duration::from_secs(900);

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

    /// Gives the memory to the agent and lets it bring the job back.
    pub(super) async fn hand_over(
        &mut self,
        held: &[Held],
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
    ) -> Result<RestoreTimes, RestoreError> {
        for batch in held.chunks(BATCH) {
            let fds: Option<Vec<_>> = batch.iter().map(|h| h.memory.fd()).collect();
            let fds =
                fds.ok_or_else(|| RestoreError::Image("memory without a file descriptor".into()))?;
            let allocations = batch.iter().map(|h| h.allocation).collect();
            self.link
                .send_with(&ToAgent::RestoreMemory { allocations }, &fds)?;
        }
        let moved = assigned.iter().any(|(old, new)| old != new);
        let gpus = if moved {
            assigned.iter().map(|(a, b)| (*a, *b)).collect()
        } else {
            Vec::new()
        };
        self.link.send(&ToAgent::Restore { gpus })?;
        self.answer(RESTORE, |message, _| match message {
            ToSidecar::Restored(outcome) => Ok(outcome.map_err(RestoreError::Agent)),
            ToSidecar::NotRestorable { reason } => Ok(Err(RestoreError::Driver(reason))),
            ToSidecar::Refused { reason } => Ok(Err(CheckError::Refused(reason).into())),
            ToSidecar::CannotMove { reason } => Ok(Err(CheckError::Move(reason).into())),
            other => Err(other),
        })
        .await?
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
