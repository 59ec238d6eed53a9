//! A job that is to end (its container, its machine): a last checkpoint as far as there is time for one, and another where one that was to be the last
//! fails early enough.

use std::time::{Duration, Instant};

use phos_policies::schedule::Event;
use phos_policies::terminate::{self, LastStep, TerminateInputs};
use phos_protocol::agent::ToAgent;

use crate::engine::Engine;
use crate::engine::session::link::LinkError;
use crate::engine::session::{Session, Termination};

impl Session<'_> {
    /// When the agent must be told that the job may end, if it asked.
    pub(in crate::engine) fn exit_at(&self) -> Option<Instant> {
        self.termination.filter(|t| !t.sent).map(|t| t.exit_at)
    }

    /// The agent wants to end in so much time: what can be done until then.
    pub(in crate::engine) fn terminating(&mut self, grace: Duration) {
        let now = self.engine.now();
        let in_flight = self.engine.in_progress.is_storing();
        let estimate = self.engine.last_took();
        let plan = terminate::plan(&TerminateInputs {
            now,
            grace,
            ending: Duration::from_millis(500).min(grace / 10),
            estimate,
            in_flight: in_flight.then(|| estimate.unwrap_or(grace / 4)),
        });
        tracing::info!(?grace, step = ?plan.step, "the job is to end");
        let exit_at = self.engine.origin + plan.exit_at;
        let mut termination = Termination {
            exit_at,
            after_flight: false,
            sent: false,
        };
        // Whatever follows waits for what is being stored now.
        self.engine.hurry();
        match plan.step {
            LastStep::Checkpoint => self.engine.want_last(plan.exit_at),
            LastStep::AbandonAndCheckpoint => {
                (self.engine.in_progress).cancel_for_job("the job ends before it can be stored");
                self.engine.want_last(plan.exit_at);
            }
            LastStep::FinishInFlight => termination.after_flight = true,
            LastStep::ExitNow => {}
        }
        self.termination = Some(termination);
    }

    /// Tells the agent, once, that the job may end.
    pub(in crate::engine) fn send_terminate(&mut self) -> Result<(), LinkError> {
        if let Some(t) = &mut self.termination
            && !t.sent
        {
            t.sent = true;
            tracing::info!("the job may end now");
            self.link.send(&ToAgent::Terminate)?;
        }
        Ok(())
    }

    /// The checkpoint that was being stored has ended: it may have been the last. Where it has failed, there may be time for another one.
    pub(in crate::engine) fn last_checkpoint_ended(
        &mut self,
        outcome: Outcome,
    ) -> Result<(), LinkError> {
        let Some(t) = self.termination.filter(|t| t.after_flight && !t.sent) else {
            return Ok(());
        };
        let left = t.exit_at.saturating_duration_since(Instant::now());
        if outcome == Outcome::Failed && self.has_time_for_another(left) {
            return Ok(());
        }
        self.send_terminate()
    }

    /// Has another checkpoint taken if it is likely to be stored in that time; whether it is.
    fn has_time_for_another(&mut self, left: Duration) -> bool {
        let now = self.engine.now();
        let plan = terminate::plan(&TerminateInputs {
            now,
            grace: left,
            // It is left out of that time already.
            ending: Duration::ZERO,
            estimate: self.engine.last_took(),
            in_flight: None,
        });
        let has = plan.step == LastStep::Checkpoint;
        if has {
            tracing::info!(
                ?left,
                "another last checkpoint is taken, as this one failed"
            );
            self.engine.want_last(plan.exit_at);
            if let Some(t) = &mut self.termination {
                t.after_flight = false;
            }
        }
        has
    }
}

/// What became of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Outcome {
    Stored,
    Failed,
}

impl Engine {
    /// One more checkpoint is wanted, until then.
    fn want_last(&mut self, until: Duration) {
        let now = self.now();
        self.schedule.on(Event::Terminate { until }, now);
    }

    /// How long the last checkpoint would have taken, from its trigger to its commit, had it been in a hurry.
    pub(in crate::engine) fn last_took(&self) -> Option<Duration> {
        let status = self.status.lock();
        let last = status.last.as_ref();
        last.map(|last| last.took_in_full())
    }
}

#[cfg(test)]
mod tests {
    use phos_policies::schedule::{Action, Trigger};

    use super::*;
    use crate::engine::checkpoint::programs::{Faults, Job, World};

    /// A job that is to end in ten seconds, while a checkpoint is being stored that took eight the last time and now fails at once; another one would take so
    /// many seconds.
    async fn last_one_fails(another_takes: f64) -> (Action, bool) {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let gpus = world.gpus.clone();
        let mut session = world.session().await;
        let now = session.engine.now();
        session.engine.schedule.on(Event::JobStarted, now);
        for pace in [0, 20] {
            gpus.set_pace(Duration::from_millis(pace));
            assert!(session.checkpoint(Trigger::Interval).await.is_ok());
            if pace == 0 {
                assert!(session.settle_checkpoint().await.is_ok());
            }
        }
        let takes = |session: &mut Session<'_>, seconds| {
            let mut status = session.engine.status.lock();
            let last = status.last.as_mut().unwrap();
            // What it left to the job is not planned with.
            last.seconds = seconds + 30.0;
            last.left_to_job(Duration::from_secs(30));
        };
        takes(&mut session, 8.0);
        assert!(!session.engine.in_progress.hurries());
        session.terminating(Duration::from_secs(10));
        assert!(session.engine.in_progress.hurries());
        assert!(session.engine.background.is_raised());
        assert!(session.termination.unwrap().after_flight);
        takes(&mut session, another_takes);
        (session.engine.in_progress).cancel_for_job("nobody wants it");
        assert!(session.settle_checkpoint().await.is_ok());
        assert_eq!(session.engine.status.lock().failures, 1);
        let next = session.engine.schedule.next(session.engine.now());
        let sent = session.termination.unwrap().sent;
        drop(session);
        world.end();
        (next, sent)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn where_the_last_one_fails_another_is_taken_if_there_is_time() {
        let another = (Action::Start(Trigger::Terminate), false);
        assert_eq!(last_one_fails(5.0).await, another);
        // The job may end at once.
        assert!(last_one_fails(20.0).await.1);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_checkpoint_hurries_after_which_there_is_time_for_the_last_one() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let mut session = world.storing().await;
        session.engine.background.lowered().await;
        session.terminating(Duration::from_secs(100));
        assert!(session.engine.in_progress.hurries());
        assert!(session.engine.background.is_raised());
        assert!(!session.termination.unwrap().after_flight);
        assert!(session.settle_checkpoint().await.is_ok());
        let next = session.engine.schedule.next(session.engine.now());
        assert_eq!(next, Action::Start(Trigger::Terminate));
        drop(session);
        world.end();
    }
}
