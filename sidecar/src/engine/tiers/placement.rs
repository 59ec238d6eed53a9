//! Which tier a checkpoint goes to, and what follows when it is there, or could not be stored.
//!
//! # Rules
//!
//! * A checkpoint goes to this machine, if there is a tier here, and from there to the store at its time.
//! * One that cannot be stored where it was to go costs the job a stop: the next one goes to the other tier.
//! * A checkpoint that goes to the store at once ends a copy of an older one.

use phos_policies::schedule::Trigger;
use phos_storage::{Epoch, Job};

use super::collect::Busy;
use super::local::LocalTier;
use crate::engine::Engine;
use crate::engine::Tier;
use crate::report::shared::Shared;

impl Engine {
    /// Decides where the next checkpoint goes; `None`: the job was not taken over.
    pub(in crate::engine) fn place_next(&mut self) -> Option<(Job, Epoch, Tier)> {
        let place = match self.tiers.local.as_ref().and_then(LocalTier::target) {
            Some((job, epoch)) => (job.clone(), epoch, Tier::Local),
            None => (self.job.clone(), self.ownership.epoch?, Tier::Remote),
        };
        self.tiers.target = place.2;
        let encoding = match place.2 {
            Tier::Local => &self.tiers.local_encoding,
            Tier::Remote => {
                if let Some(replication) = &mut self.tiers.replication {
                    replication.stop();
                }
                &self.tiers.remote_encoding
            }
        };
        encoding.checkpoint_begins(self.interval.current());
        Some(place)
    }

    /// A checkpoint is visible in a tier.
    pub(in crate::engine) fn stored(&mut self, tier: Tier, trigger: Trigger) {
        let Some(epoch) = self.ownership.epoch else {
            return;
        };
        let tiers = &mut self.tiers;
        let local = tiers.local.as_ref().and_then(LocalTier::writing);
        if let (Tier::Local, Some((job, local_epoch))) = (tier, local) {
            if let Some(replication) = &mut tiers.replication {
                replication.stored_here(trigger);
            }
            // Of what is collected here nobody is told.
            let unsaid = Shared::default();
            (tiers.local_collector).committed(job, local_epoch, &unsaid);
            if let Some(local) = &mut tiers.local {
                local.stored();
            }
        } else {
            if let Some(replication) = &mut tiers.replication {
                replication.stored_there();
                self.status.lock().remote_failure = None;
            }
            if let Some(local) = &mut tiers.local {
                // There may be room again.
                local.stored_there();
            }
            (tiers.remote_collector).committed(&self.job, epoch, &self.status);
        }
        self.copy_if_due();
    }

    /// A checkpoint could not be stored where it was to go: the next one goes to the other place.
    pub(in crate::engine) fn not_stored(&mut self) {
        let Some(local) = &mut self.tiers.local else {
            return;
        };
        match self.tiers.target {
            Tier::Local => {
                local.not_stored();
                tracing::warn!("the next checkpoint goes to the store, not to this machine");
            }
            Tier::Remote if local.writing().is_some() => {
                local.try_next();
                tracing::warn!("the next checkpoint goes to this machine");
            }
            Tier::Remote => {}
        }
    }

    /// The log on this machine no longer says that this sidecar has the job: its directory was deleted or replaced. The store's
    /// log says who has the job; what is left here is of no use.
    pub(in crate::engine) fn tier_is_lost(&mut self) {
        if let Some(local) = &mut self.tiers.local {
            local.lost();
            tracing::error!(
                "the checkpoints on this machine were deleted or replaced by others: from now on each goes to the store, \
                 until phos-ft is started again"
            );
        }
    }

    /// What runs beside the job is told what the sidecar does now.
    pub(in crate::engine) fn busy(&self, busy: Busy) {
        self.tiers.remote_collector.is(busy);
        self.tiers.local_collector.is(busy);
    }

    /// Cuts everything off that runs beside the job: it waits for a restore.
    pub(in crate::engine) fn stop_background(&mut self) {
        self.tiers.remote_collector.stop();
        self.tiers.local_collector.stop();
        if let Some(replication) = &mut self.tiers.replication {
            replication.stop();
        }
    }
}
