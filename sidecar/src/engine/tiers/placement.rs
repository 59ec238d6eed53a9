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
use crate::report::reason::FailureReason;
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
        if tier == Tier::Local {
            let Some((job, local_epoch)) = local else {
                // Given up meanwhile: no start looks for what is there.
                self.newest_is_lost(
                    "the newest checkpoint was stored in a local tier that was given up",
                );
                return;
            };
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
    pub(in crate::engine) fn tier_is_lost(&mut self, because: &str) {
        let is_uncopied = self.has_copies_to_make();
        if let Some(local) = &mut self.tiers.local
            && local.reading().is_some()
        {
            local.lost();
            tracing::error!(
                "the checkpoints on this machine were deleted or replaced by others: from now on each goes to the store, \
                 until phos-ft is started again"
            );
        }
        if is_uncopied {
            self.newest_is_lost(because);
        }
    }

    /// The newest checkpoint is on this machine no more, and was never in the store: the job is protected by an older one.
    fn newest_is_lost(&mut self, because: &str) {
        let in_store = {
            let mut status = self.status.lock();
            status.remote_failure = Some(because.to_owned());
            status.remote.as_ref().map_or(0, |copied| copied.taken_ms)
        };
        let since_ms = in_store.max(self.run.since.0);
        self.unprotected(since_ms, because, FailureReason::Store);
        self.newest = self.newest.filter(|newest| newest.in_store);
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

#[cfg(test)]
mod tests {
    use phos_protocol::shim::Newest;

    use super::*;
    use crate::engine::checkpoint::programs::{Faults, Job as Program, World};

    #[tokio::test(flavor = "multi_thread")]
    async fn what_was_stored_in_a_tier_that_was_given_up_protects_nothing() {
        let (mut world, _quiet) = World::new(Program::new(1, 1), 1, Faults::None).await;
        let engine = &mut world.engine;
        engine.ownership.epoch = Some(Epoch(1));
        let newest = |in_store| Newest {
            number: 7,
            unix_ms: 1,
            step: None,
            in_store,
        };
        engine.newest = Some(newest(true));
        engine.stored(Tier::Remote, Trigger::Interval);
        assert!(engine.status.lock().unprotected.is_none());
        engine.newest = Some(newest(false));
        engine.stored(Tier::Local, Trigger::Interval);
        {
            let status = engine.status.lock();
            assert!(status.unprotected.is_some() && status.remote_failure.is_some());
        }
        assert!(engine.newest.is_none(), "a program is told of it");
        engine.protected();
        assert!(engine.status.lock().unprotected.is_none());
    }
}
