//! Which checkpoint the job is resumed from: the newest that is whole, in either tier, held so that no collection takes it away;
//! and the places that it is read from.

use std::time::Duration;

use phos_storage::{
    CheckpointNumber, CheckpointSummary, Job, JobError, Manifest, PackId, ReadError, Reader,
    UnixMillis,
};

use super::error::RestoreError;
use crate::engine::Tier;
use crate::engine::reading::{Reading, reader};
use crate::engine::session::Session;
use crate::engine::tiers::local::KEPT;
use crate::engine::{CheckpointId, unix_millis};

/// How long the store's list is waited for, where the newest checkpoint is on this machine. A request that is lost on its way is given up after
/// minutes.
const LISTED: Duration = Duration::from_secs(10);
/// How long another store is looked at that may have chunks as well.
const ELSEWHERE: Duration = Duration::from_secs(60);

/// A checkpoint to resume from, held so that no collection takes it away meanwhile.
pub(super) struct Found {
    pub(super) id: CheckpointId,
    /// Where it is: on this machine or in the store.
    pub(super) job: Job,
    pub(super) manifest: Manifest,
    pub(super) held: Option<Reading>,
}

/// The later the greater: when it became visible, in which tier, its number there.
pub(super) type Order = (UnixMillis, Tier, CheckpointNumber);

/// Whether a checkpoint is still visible and does not need this pack any more.
pub(super) async fn has_moved(job: &Job, number: CheckpointNumber, pack: &PackId) -> bool {
    let now = job.manifest(number).await;
    now.is_ok_and(|manifest| manifest.packs.iter().all(|p| p.id != *pack))
}

/// Keeps later checkpoints from referencing a damaged pack. A missing pack is not noted in the store: every look finds it
/// missing, and it counts again if it comes back.
pub(super) async fn note_damage(job: &Job, pack: &PackId, source: &ReadError) {
    if matches!(source, ReadError::PackLost { .. }) {
        job.forget_pack(pack);
        return;
    }
    let reason = source.to_string();
    let noted = job.quarantine_pack(pack, &reason, unix_millis()).await;
    if let Err(e) = noted {
        tracing::warn!(error = %e, "the damage could not be noted in the store");
    }
}

/// The newest checkpoints, as far as they can be read now: what may have chunks that others have, too. Who goes back to an earlier checkpoint leaves
/// behind all that are later, which may be all that there are on this machine, and have most of their memory in common with it.
pub(super) async fn newest(job: &Job) -> Vec<Manifest> {
    let look = async {
        let mut listed = job.list().await?.checkpoints;
        listed.sort_unstable_by_key(|c| std::cmp::Reverse((c.is_current(), c.number)));
        let mut found = Vec::new();
        for checkpoint in listed.iter().take(2 * KEPT as usize) {
            found.extend(job.manifest(checkpoint.number).await.ok());
        }
        Ok::<_, JobError>(found)
    };
    match tokio::time::timeout(ELSEWHERE, look).await {
        Ok(Ok(found)) => found,
        Ok(Err(e)) => {
            tracing::warn!(error = %e, "nothing is read from there");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("nothing is read from a store that does not answer");
            Vec::new()
        }
    }
}

impl Session<'_> {
    /// A checkpoint by its number, held so that no collection takes it away meanwhile.
    pub(super) async fn chosen(&self, id: CheckpointId) -> Result<Found, JobError> {
        let number = id.number;
        let job = if id.tier == Tier::Local {
            let local = self.engine.tiers.local_history();
            local.ok_or_else(|| JobError::NoCheckpoint {
                job: self.engine.job.name().clone(),
                number,
            })?
        } else {
            &self.engine.job
        };
        let (manifest, hold) = job.hold(number, &reader("restore"), unix_millis()).await?;
        let held = Reading::keep(hold);
        // What one on this machine lacks may be in the store; that is found when it is read.
        if id.tier == Tier::Remote {
            job.check_packs(&manifest).await?;
        }
        Ok(Found {
            id,
            job: job.clone(),
            manifest,
            held: Some(held),
        })
    }

    /// The checkpoints of this run below another in the order, on this machine and in the store, newest first; of two that are
    /// one, that on this machine comes first.
    ///
    /// While the store cannot be read, or does not answer, only those on this machine count, if the newest of all is among them and is not left out.
    async fn listed(&self, below: Option<Order>) -> Result<Vec<(Order, CheckpointId)>, JobError> {
        let mut all = Vec::new();
        if let Some(local) = self.engine.tiers.local_history() {
            match local.list().await {
                Ok(listing) => {
                    all.extend(listing.checkpoints.into_iter().map(|c| (Tier::Local, c)));
                }
                Err(e) => {
                    tracing::error!(error = %e, "the checkpoints on this machine cannot be read")
                }
            }
        }
        all.retain(|(_, summary): &(Tier, CheckpointSummary)| summary.is_current());
        let is_here = below.is_none()
            && all
                .iter()
                .any(|(_, c)| c.created >= self.engine.tiers.newest);
        let listing = self.engine.job.list();
        let listing = match is_here {
            true => tokio::time::timeout(LISTED, listing).await.ok(),
            false => Some(listing.await),
        };
        match listing {
            Some(Ok(listing)) => {
                let current = listing
                    .checkpoints
                    .into_iter()
                    .filter(CheckpointSummary::is_current);
                all.extend(current.map(|c| (Tier::Remote, c)));
            }
            Some(Err(e @ JobError::Store(_))) if !e.is_permanent() && is_here => {
                tracing::warn!(error = %e, "the store cannot be read now; the newest checkpoint is on this machine");
            }
            Some(Err(e)) => return Err(e),
            None => {
                tracing::warn!(
                    "the store does not answer; the newest checkpoint is on this machine"
                );
            }
        }
        let ordered = |(tier, c): (Tier, CheckpointSummary)| {
            let number = c.number;
            let id = CheckpointId { tier, number };
            (self.order(id, c.created), id)
        };
        let mut all: Vec<(Order, CheckpointId)> = all.into_iter().map(ordered).collect();
        all.retain(|(order, _)| below.is_none_or(|below| *order < below));
        all.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
        Ok(all)
    }

    /// Where a checkpoint stands in the order of all. With one log, that is its order, whatever the clocks say.
    pub(super) fn order(&self, id: CheckpointId, created: UnixMillis) -> Order {
        let created = match self.engine.tiers.local {
            Some(_) => created,
            None => UnixMillis(0),
        };
        (created, id.tier, id.number)
    }

    /// The newest checkpoint of this run that is whole, below another in the order. Why the first of those that are not
    /// was passed over is put into `passed_over`.
    pub(super) async fn candidate(
        &self,
        below: Option<Order>,
        passed_over: &mut Option<String>,
    ) -> Result<Option<Found>, JobError> {
        if below.is_none() && self.engine.tiers.local.is_none() {
            let job = &self.engine.job;
            let (found, hold) = job.hold_newest(&reader("restore"), unix_millis()).await?;
            for skipped in &found.skipped {
                tracing::error!(
                    checkpoint = skipped.number.0,
                    reason = skipped.reason,
                    "CHECKPOINT {} IS DAMAGED and is passed over",
                    skipped.number
                );
                passed_over
                    .get_or_insert_with(|| format!("{}: {}", skipped.number, skipped.reason));
            }
            let held = hold.map(Reading::keep);
            return Ok(found.manifest.map(|manifest| Found {
                id: CheckpointId {
                    tier: Tier::Remote,
                    number: manifest.number,
                },
                job: job.clone(),
                manifest,
                held,
            }));
        }
        for (_, id) in self.listed(below).await? {
            match self.chosen(id).await {
                Ok(found) => return Ok(Some(found)),
                Err(JobError::Removed { .. }) => {}
                Err(e @ JobError::Store(_)) if !e.is_permanent() && id.tier == Tier::Remote => {
                    return Err(e);
                }
                Err(e) => {
                    tracing::error!(
                        checkpoint = %id, reason = %e,
                        "CHECKPOINT {id} IS DAMAGED and is passed over"
                    );
                    passed_over.get_or_insert_with(|| e.to_string());
                }
            }
        }
        Ok(None)
    }

    /// Reads a checkpoint, as far as can be from those on this machine.
    pub(super) async fn nearest(&self, found: &Found) -> Result<Reader, RestoreError> {
        let reader = found.job.reader(&found.manifest);
        let mut reader = reader.map_err(|e| RestoreError::Image(e.to_string()))?;
        if let Some(local) = self.engine.tiers.local_history()
            && found.id.tier == Tier::Remote
        {
            for manifest in newest(local).await {
                reader = reader.nearer(local, &manifest);
            }
        }
        Ok(reader)
    }
}
