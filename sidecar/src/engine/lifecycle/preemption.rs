//! A machine that will be taken away: what is stored before that.
//!
//! The job is not ended: whoever takes the machine does that, and until then it trains. The job resumes elsewhere from the
//! last checkpoint that was stored.

use std::time::{Duration, SystemTime};

use phos_policies::preemption::Ask;
use phos_policies::schedule::Event;

use crate::engine::session::Session;
use crate::engine::tiers::replicate::Replication;
use crate::engine::unix_millis;
use crate::preemption::Notice;
use crate::report::event::Event as Happened;
use crate::report::status::PreemptionReport;

impl Session<'_> {
    /// The notice that is in force has changed.
    pub(super) fn noticed(&mut self, notice: Option<Notice>) {
        let now = self.engine.now();
        let Some(notice) = notice else {
            tracing::info!("the notice that this machine will be taken away was withdrawn");
            self.engine.preemption.plan.withdrawn();
            self.engine.status.lock().preemption = None;
            self.engine.happened(Happened::PreemptionWithdrawn);
            return;
        };
        self.engine.hurry();
        let at_ms = notice.at.map(|at| {
            let since = at
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
        });
        // What has passed already is as good as now.
        let left = at_ms.map(|at| Duration::from_millis(at.saturating_sub(unix_millis().0)));
        let report = PreemptionReport {
            source: notice.source.into(),
            what: notice.what.clone(),
            at_ms,
        };
        self.engine.status.lock().preemption = Some(report.clone());
        if self
            .engine
            .preemption
            .plan
            .notice(left.map(|left| now.saturating_add(left)))
        {
            self.engine.happened(Happened::PreemptionNoticed {
                source: report.source,
                what: report.what,
                ends_ms: at_ms,
            });
            tracing::warn!(
                source = notice.source,
                what = notice.what,
                left_s = left.map(|left| left.as_secs()),
                "this machine will be taken away: a checkpoint is taken and stored before that"
            );
        }
    }

    /// Has the schedule take what the notice calls for. When to ask again, if the plan says so.
    pub(super) fn heed_notice(&mut self) -> Option<Duration> {
        // A job that was told to end has its last checkpoint, and must not be held in its own grace time.
        if !self.running || self.termination.is_some() {
            return None;
        }
        let now = self.engine.now();
        let estimate = self.time_until_safe();
        let plan = &mut self.engine.preemption.plan;
        match plan.next(now, estimate) {
            Ask::Now => {
                plan.begun();
                // It comes after what is being stored now.
                self.engine.hurry();
                self.engine.schedule.on(Event::Preempted, now);
                None
            }
            Ask::At(at) => Some(at),
            Ask::Nothing => None,
        }
    }

    /// How long the last checkpoint would have taken in a hurry until it was in the store: what is on this machine only does not survive it.
    fn time_until_safe(&self) -> Option<Duration> {
        let took = self.engine.last_took()?;
        let is_local = (self.engine.status.lock().last.as_ref()).is_some_and(|last| last.local);
        let copy = (self.engine.tiers.replication.as_ref()).filter(|_| is_local);
        Some(took + copy.and_then(Replication::last_took).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use phos_policies::schedule::Trigger;

    use super::*;
    use crate::engine::checkpoint::programs::{Faults, Job, World};

    #[tokio::test(flavor = "multi_thread")]
    async fn a_checkpoint_that_is_being_stored_hurries_when_the_machine_is_to_be_taken_away() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let mut session = world.storing().await;
        session.noticed(None);
        assert!(!session.engine.in_progress.hurries());
        session.engine.background.lowered().await;
        session.noticed(Some(Notice {
            source: "file",
            what: "maintenance".into(),
            at: None,
        }));
        assert!(session.engine.in_progress.hurries());
        assert!(session.engine.background.is_raised());
        assert!(session.settle_checkpoint().await.is_ok());
        drop(session);
        world.end();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_last_one_before_the_machine_goes_waits_for_what_is_being_stored() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let gpus = world.gpus.clone();
        let mut session = world.session().await;
        session.running = true;
        session.noticed(Some(Notice {
            source: "file",
            what: "maintenance".into(),
            at: None,
        }));
        gpus.set_pace(Duration::from_millis(20));
        assert!(session.checkpoint(Trigger::Interval).await.is_ok());
        session.engine.background.lowered().await;
        assert!(!session.engine.in_progress.hurries());
        assert_eq!(session.heed_notice(), None);
        assert!(session.engine.in_progress.hurries());
        assert!(session.engine.background.is_raised());
        assert!(session.settle_checkpoint().await.is_ok());
        drop(session);
        world.end();
    }
}
