//! The end of a job's processes: it is done, it is resumed, or it is given up.

use std::time::{Duration, Instant};

use phos_policies::restart::Decision;
use phos_protocol::agent::{Exit, ToAgent};

use super::Outcome;
use crate::engine::restore::Occasion;
use crate::engine::session::link::{Link, LinkError};
use crate::engine::session::{Ended, Session, Stop};
use crate::engine::tiers::replicate;
use crate::engine::{Engine, EngineError, LAST_STORE, random_u64, unix_millis};
use crate::report::event::{Ending, Event};

/// How long after an agent ended, and how often from then on, its successor is looked for.
const LOOK: Duration = Duration::from_millis(500);

impl Session<'_> {
    /// Deals with the end of the job.
    pub(super) async fn job_ended(&mut self, ended: Ended) -> Result<Outcome, Stop> {
        let Ended {
            exit,
            stopping,
            found,
        } = ended;
        self.job_stopped();
        // Nothing runs that could be left anything, until it is resumed.
        let _raised = self.engine.background.raise();
        if !found || !self.end_is_told() {
            let how = match stopping {
                true => Ending::Requested,
                false if exit.is_success() => Ending::Finished,
                false => Ending::Crashed,
            };
            self.tell_end(exit, how);
        }
        // A checkpoint whose job was attached again is whole without the job: the newest there is. The job's copies are not in its way any more, and
        // what comes next waits for it.
        self.engine.hurry();
        self.settle_checkpoint().await?;
        // Whatever its code: a job that answers SIGTERM with a success is not done, and the next start resumes what it trained.
        if stopping {
            tracing::info!(
                ?exit,
                "the job was ended; the next start resumes it from its newest checkpoint"
            );
            self.engine.status.state("ended on request");
            // It may have ended already: it waits for nothing then.
            let _ = self.link.send(&ToAgent::GiveUp);
            self.copy_the_rest().await?;
            return Ok(Outcome::Over);
        }
        if exit.is_success() {
            self.take_over().await?;
            // Not one that becomes visible after that.
            self.engine.stop_background();
            self.engine.mark_completed(0).await;
            tracing::info!("the job ended successfully");
            self.engine.status.state("ended successfully");
            // It may have ended already: it waits for nothing then.
            let _ = self.link.send(&ToAgent::GiveUp);
            return Ok(Outcome::Over);
        }
        self.crashed(exit).await
    }

    /// Whether a sidecar before this one has said that the job ended.
    fn end_is_told(&self) -> bool {
        let journal = self.engine.status.journal();
        let told = journal.newest_of(|event| {
            matches!(
                event,
                Event::JobStarted { .. }
                    | Event::JobFound
                    | Event::JobResumed(_)
                    | Event::JobEnded { .. }
            )
        });
        told.is_some_and(|told| matches!(told.event, Event::JobEnded { .. }))
    }

    fn tell_end(&self, exit: Exit, how: Ending) {
        self.engine.happened(Event::JobEnded {
            how,
            exit: match exit {
                Exit::Code(code) => format!("code {code}"),
                Exit::Signal(signal) => format!("signal {signal}"),
            },
        });
    }

    /// Brings the job back, if it did not crash too often.
    async fn crashed(&mut self, exit: Exit) -> Result<Outcome, Stop> {
        let (now, jitter) = (self.engine.now(), random_u64());
        let after = match self.engine.restarts.on_crash(now, jitter) {
            Decision::Restart { after, attempt } => {
                tracing::warn!(
                    ?exit,
                    attempt,
                    after_ms = after.as_millis() as u64,
                    "the job crashed; bringing it back"
                );
                after
            }
            Decision::GiveUp { restarts } => {
                tracing::error!(
                    ?exit,
                    restarts,
                    "the job crashed too often: giving up; see its log, or raise --max-restarts"
                );
                self.engine.status.state("gave up after too many crashes");
                let message = format!("the job crashed too often: {restarts} times");
                self.engine.happened(Event::GivenUp { message });
                self.link.send(&ToAgent::GiveUp)?;
                self.copy_the_rest().await?;
                return Ok(Outcome::Over);
            }
        };
        self.pause(after).await?;
        self.await_history().await?;
        self.stand_by().await?;
        self.take_over().await?;
        if self.restore_newest(Occasion::Crash).await?.is_some() {
            self.job_runs();
            return Ok(Outcome::Runs);
        }
        match exit {
            Exit::Signal(signal) => {
                tracing::warn!(
                    signal,
                    "there is no checkpoint yet: the job is started afresh"
                );
                self.start_afresh().await
            }
            Exit::Code(code) => {
                tracing::error!(
                    code,
                    "the job failed before its first checkpoint: there is nothing to resume"
                );
                self.engine
                    .status
                    .state("failed before its first checkpoint");
                self.engine.happened(Event::GivenUp {
                    message: "the job failed before its first checkpoint".into(),
                });
                self.link.send(&ToAgent::GiveUp)?;
                Ok(Outcome::Over)
            }
        }
    }

    /// Copies what is on this machine alone to the store, until the time for that is over or the next agent is there, which
    /// must not wait: what is left is copied when the job runs again.
    async fn copy_the_rest(&mut self) -> Result<(), EngineError> {
        let asked = self.engine.signals.asked.unwrap_or_else(Instant::now);
        let until = asked + LAST_STORE;
        let mut gone: Option<Instant> = None;
        let has_some = self.engine.has_copies_to_make();
        self.engine.hurry_copies();
        while self.engine.has_copies_to_make() {
            self.engine.copy_if_due();
            let due = self.engine.next_copy();
            let look = gone.map(|_| Instant::now() + LOOK);
            let wake = [due, look].into_iter().flatten().fold(until, Instant::min);
            tokio::select! {
                outcome = replicate::ended(&mut self.engine.tiers.replication) => self.engine.copy_ended(outcome)?,
                packet = self.link.recv(), if gone.is_none() => {
                    gone = packet.is_err().then(Instant::now);
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
            let may_follow = gone.is_some_and(|since| since.elapsed() >= LOOK);
            if may_follow && Link::connect(&self.engine.agent).is_ok() {
                tracing::info!(
                    "the next agent is there: the last checkpoint is sent once the job runs again"
                );
                break;
            }
            if Instant::now() >= until {
                tracing::error!(
                    "the last checkpoint is on this machine only: the store did not take it in time; it is sent when \
                     the job runs here again"
                );
                break;
            }
        }
        if has_some && self.engine.tiers.local_history().is_none() {
            tracing::error!(
                "the last checkpoint was on this machine only, and is gone: the next start resumes the newest of the store"
            );
        }
        Ok(())
    }

    /// Tells the agent to end the job for good, after a restore that cannot be.
    pub(in crate::engine) fn give_up(&mut self, reason: &str) -> Result<(), LinkError> {
        tracing::error!(reason, "the job cannot be resumed");
        self.engine
            .status
            .state(format!("cannot be resumed: {reason}"));
        let message = format!("the job cannot be resumed: {reason}");
        self.engine.happened(Event::GivenUp { message });
        self.link.send(&ToAgent::GiveUp)
    }
}

impl Engine {
    /// The job is done: it is not resumed any more.
    async fn mark_completed(&mut self, code: i32) {
        let Some(epoch) = self.ownership.epoch else {
            return;
        };
        if let Some(local) = &mut self.tiers.local {
            local.mark_completed(code).await;
        }
        match self.job.mark_completed(epoch, code, unix_millis()).await {
            Ok(()) => self.ownership.history.forget(),
            Err(e) => tracing::error!(
                error = %e,
                "it could not be noted that the job is done: the next start will resume it from its \
                 newest checkpoint; use another --job then"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::super::Wake;
    use super::*;
    use crate::engine::checkpoint::programs::{Faults, Job, World};

    /// Whether the checkpoint that is being stored hurries once this is waited for.
    async fn hurries_for(ends: Ends) -> bool {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let mut session = world.storing().await;
        assert!(!session.engine.in_progress.hurries());
        session.engine.background.lowered().await;
        let waits = match ends {
            Ends::Job => {
                let ended = Ended {
                    exit: Exit::Code(1),
                    stopping: true,
                    found: false,
                };
                let ends = tokio::time::timeout(Duration::ZERO, session.job_ended(ended));
                ends.await.is_err()
            }
            Ends::Sidecar => {
                let ends = tokio::time::timeout(Duration::ZERO, session.engine.settle());
                ends.await.is_err()
            }
        };
        assert!(waits && session.engine.in_progress.is_storing());
        let hurries = session.engine.in_progress.hurries();
        assert_eq!(session.engine.background.is_raised(), hurries);
        assert!(session.settle_checkpoint().await.is_ok());
        drop(session);
        world.end();
        hurries
    }

    #[derive(Clone, Copy)]
    enum Ends {
        Job,
        Sidecar,
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_checkpoint_hurries_that_the_end_of_the_job_or_of_the_sidecar_waits_for() {
        assert!(hurries_for(Ends::Job).await);
        assert!(hurries_for(Ends::Sidecar).await);
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_request_to_end_is_heard_while_a_checkpoint_is_being_stored() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let mut session = world.storing().await;
        assert!(!session.engine.patience(Duration::ZERO).is_zero());
        rustix::process::kill_process(rustix::process::getpid(), Signal::TERM).unwrap();
        let mut woke = session.wake(None).await;
        while matches!(woke, Wake::Packet(_)) {
            woke = session.wake(None).await;
        }
        assert!(matches!(woke, Wake::Asked));
        // Nor is any time left to the job by a checkpoint that begins now.
        assert!(session.engine.patience(Duration::ZERO).is_zero());
        // Once.
        while !matches!(woke, Wake::Checkpoint(_)) {
            woke = session.wake(None).await;
            assert!(matches!(woke, Wake::Checkpoint(Ok(_)) | Wake::Packet(_)));
        }
        drop(session);
        world.end();
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn what_is_being_stored_hurries_when_the_agent_is_lost() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let mut session = world.storing().await;
        session.engine.background.lowered().await;
        session.lost(&LinkError::Closed.into());
        assert!(session.engine.in_progress.hurries());
        assert!(session.engine.background.is_raised());
        drop(session);
        world.end();
    }
}
