//! One checkpoint: from its trigger until it is visible or has failed.
//!
//! ```text
//!  begin ─ quiesce ─┬─ Dump ─────────────── Dumped ─┐
//!                   └─ import, name, snapshot, ─────┴─ Attach ─ Resumed ─┬─ (the job runs)
//!                      drain what must be                                └─ store: drain,
//!                                                                  CPU image, manifest, commit, Finish
//! ```
//!
//! * [`begin`]: the tier it goes to and its writer; another try at once where it came at a bad moment;
//! * [`manner`]: what follows from its trigger;
//! * [`quiesce`]: the job falls quiet, in short tries;
//! * [`stop`]: everything while the job is held, in which it is [`name`]d and [`drain`]ed;
//! * [`running`]: what leaves the GPUs right after that, from memory that the job may write again;
//! * [`store`]: the rest, while the job runs, through the [`pipeline`];
//! * [`outcome`]: how it ended and what follows;
//! * [`interval`]: how much time there is until the next one.
//!
//! `Dump` is asked for as soon as the job is quiet: nothing the agent does then changes the memory that
//! was handed out, so naming and draining run beside it.
//!
//! # Consistency
//!
//! Names are taken while the job is quiet. The job's memory is read until `Attach` is asked for and not
//! after that, but for what is copied beside it ([`running`]). The store checks what arrives against its name.
//!
//! # Crash consistency
//!
//! Whichever process dies, the agent brings the job back by itself; nothing is visible before the commit.
//!
//! # Cancellation
//!
//! A failure after `Quiesce` ends in `Abandon` (the job runs on), one after `Resumed` in a checkpoint that is given up.
//! [`Control`](pipeline::Control) ends the workers; every wait is bounded.

mod begin;
pub(super) mod buffer;
pub(super) mod cpu_image;
mod drain;
pub(super) mod interval;
mod manner;
mod name;
pub(super) mod outcome;
pub(super) mod pipeline;
pub(super) mod planning;
#[cfg(test)]
pub(super) mod programs;
mod quiesce;
mod running;
mod stop;
mod store;
mod urgent;

use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_policies::schedule::{Event, FailureKind, Trigger};
use phos_protocol::agent::ToAgent;
use tokio::task::JoinHandle;

use self::outcome::{Cause, Consequence, Failed, Stored};
use self::pipeline::Control;
use super::lifecycle::terminate::Outcome;
use super::session::{Session, Stop};
use super::tiers::collect::Busy;
use super::{Engine, LAST_STORE};
use crate::background::{Background, Raised};
use crate::report::event::Event as Happened;
use crate::report::reason::FailureReason;

/// The checkpoint that is being made: at most one.
#[derive(Default)]
pub(super) struct InProgress {
    /// The job is held for it; what its workers share.
    held: Option<Arc<Control>>,
    /// The job runs again, and the rest is being stored.
    flight: Option<Flight>,
}

/// A checkpoint whose job runs again.
struct Flight {
    control: Arc<Control>,
    task: JoinHandle<Result<Stored, Failed>>,
    /// Where somebody waits for it.
    raised: Option<Raised>,
}

impl InProgress {
    /// Whether one is being stored while the job runs.
    pub(super) fn is_storing(&self) -> bool {
        self.flight.is_some()
    }

    /// The job runs again; the rest is stored beside it.
    fn fly(&mut self, flight: Flight) {
        // The pinned memory, the store's order and `Finish` are all made for one.
        assert!(
            self.flight.is_none(),
            "a checkpoint was begun while another is being stored"
        );
        self.flight = Some(flight);
    }

    /// What the workers share of the checkpoint that is being made.
    fn controls(&self) -> impl Iterator<Item = &Arc<Control>> {
        let storing = self.flight.iter().map(|flight| &flight.control);
        storing.chain(&self.held)
    }

    /// Waits until the checkpoint that is being stored is visible or has failed; for ever if none is being stored. Cancel safe.
    pub(super) async fn landed(&mut self) -> Result<Stored, Failed> {
        let Some(flight) = &mut self.flight else {
            return std::future::pending().await;
        };
        let outcome = match (&mut flight.task).await {
            Ok(outcome) => outcome,
            Err(e) => {
                let ended = Cause::Task(format!("the task that stores it ended: {e}"));
                Err(ended.into_failed(Duration::ZERO))
            }
        };
        self.flight = None;
        outcome
    }

    /// Lets go of the one that is being stored: this process ends.
    pub(super) fn forget(&mut self) {
        self.flight = None;
    }
}

impl InProgress {
    /// What is being made gives way to nobody any more.
    fn hurry(&mut self, background: &Background) {
        self.controls().for_each(|control| control.hurry());
        self.raise(background);
    }

    /// Somebody waits for what is being stored.
    fn raise(&mut self, background: &Background) {
        if let Some(flight) = &mut self.flight {
            flight.raised.get_or_insert_with(|| background.raise());
        }
    }

    /// Whether all of it does.
    #[cfg(test)]
    pub(super) fn hurries(&self) -> bool {
        self.controls().all(|control| control.hurries())
    }

    /// Ends the checkpoint that is being made: the job, or its end, needs what it takes.
    pub(super) fn cancel_for_job(&self, reason: &str) {
        for control in self.controls() {
            control.cancel_for_others(reason);
        }
    }
}

impl Engine {
    /// The job or the machine is to end: what is being stored has to be in the store before, whatever that takes from the job.
    pub(super) fn hurry(&mut self) {
        self.in_progress.hurry(&self.background);
        if let Some(replication) = &mut self.tiers.replication {
            replication.hurry(&self.background);
        }
    }

    /// Somebody wants a checkpoint now, which comes after the one that is being stored.
    pub(super) fn wanted(&mut self) {
        self.in_progress.raise(&self.background);
        let now = self.now();
        self.schedule.on(Event::Requested, now);
    }

    /// Gives device memory back to the job, if a snapshot holds any. How much it was.
    pub(super) async fn release_memory(&mut self) -> u64 {
        // The threads of drains, for which this waits, share a lock with those that encode.
        let _raised = self.background.raise();
        let mut freed = 0;
        for control in self.in_progress.controls() {
            let held = control.snapshot_bytes() + control.borrowed();
            if held == 0 {
                continue;
            }
            freed += held;
            self.planning.crowded += u32::from(control.snapshot_bytes() > 0);
            if control.borrowed() > 0 {
                self.planning.speculation.was_wrong();
            }
            control.cancel_for_others("the job needed the device memory that the snapshot held");
            let deadline = Instant::now() + Duration::from_secs(5);
            while control.snapshot_bytes() + control.borrowed() > 0 && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        freed
    }

    /// Before the process ends: lets a checkpoint that is being stored become visible.
    pub(super) async fn settle(&mut self) {
        if !self.in_progress.is_storing() {
            return;
        }
        tracing::info!("storing the last checkpoint");
        self.hurry();
        let until = self.signals.asked.unwrap_or_else(Instant::now) + LAST_STORE;
        let landed = self.in_progress.landed();
        match tokio::time::timeout_at(until.into(), landed).await {
            Ok(Ok(stored)) => {
                tracing::info!(id = stored.report.id, "checkpoint");
                self.happened(Happened::CheckpointStored(Box::new(stored.report)));
            }
            Ok(Err(failed)) => {
                tracing::error!(reason = failed.message, "checkpoint given up");
                self.tell_failed(&failed);
            }
            Err(_) => {
                let message = "the last checkpoint could not be stored in time";
                tracing::error!("{message}");
                self.tell_failed(&Failed {
                    message: message.into(),
                    reason: FailureReason::TooSlow,
                    kind: FailureKind::Final,
                    stop: Duration::ZERO,
                    then: Consequence::Nothing,
                });
            }
        }
        self.in_progress.forget();
    }
}

impl Session<'_> {
    /// Takes a checkpoint up to the moment the job runs again; the rest continues beside it.
    pub(super) async fn checkpoint(&mut self, trigger: Trigger) -> Result<(), Stop> {
        self.engine.busy(Busy::Holding);
        let begun = self.begin_checkpoint(trigger).await;
        self.engine.busy(if self.engine.in_progress.is_storing() {
            Busy::Storing
        } else {
            Busy::No
        });
        begun
    }

    async fn begin_checkpoint(&mut self, trigger: Trigger) -> Result<(), Stop> {
        let now = self.engine.now();
        self.engine.schedule.on(Event::Started, now);
        let reason = self.engine.status.lock().unsupported.clone();
        self.engine.requests.serve(trigger);
        if let Some(reason) = reason {
            self.engine.failed(&Failed {
                message: reason,
                reason: FailureReason::Unsupported,
                kind: FailureKind::Permanent,
                stop: Duration::ZERO,
                then: Consequence::Nothing,
            });
            return Ok(());
        }
        self.engine.status.state("checkpointing");
        self.engine.happened(Happened::CheckpointStarted {
            trigger: trigger.as_str().into(),
        });
        match self.attempt(trigger).await {
            Ok(()) => {
                self.engine.status.state("running, storing a checkpoint");
                Ok(())
            }
            Err(failed) => {
                self.engine.status.state("running");
                self.failed(failed)
            }
        }
    }

    /// The checkpoint that was being stored is visible or has failed.
    pub(super) fn checkpoint_ended(&mut self, outcome: Result<Stored, Failed>) -> Result<(), Stop> {
        self.engine.busy(Busy::No);
        if self.running {
            self.engine.status.state("running");
        }
        let outcome = match outcome {
            Ok(stored) => {
                self.engine.committed(stored);
                self.tell_newest()?;
                Outcome::Stored
            }
            Err(failed) => {
                self.failed(failed)?;
                Outcome::Failed
            }
        };
        if let Some(seq) = self.attempt.storing.take() {
            self.link.send(&ToAgent::Finish { seq })?;
        }
        self.last_checkpoint_ended(outcome)?;
        Ok(())
    }

    /// Waits for the checkpoint that is being stored.
    pub(super) async fn settle_checkpoint(&mut self) -> Result<(), Stop> {
        while self.engine.in_progress.is_storing() {
            let outcome = self.engine.in_progress.landed().await;
            self.checkpoint_ended(outcome)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::programs::{Faults, Job, World};
    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn whoever_wants_a_checkpoint_waits_for_the_one_that_is_being_stored() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let mut session = world.storing().await;
        session.engine.background.lowered().await;
        session.engine.wanted();
        assert!(session.engine.background.is_raised());
        // The link is left to the job all the same.
        assert!(!session.engine.in_progress.hurries());
        assert!(session.settle_checkpoint().await.is_ok());
        session.engine.background.lowered().await;
        drop(session);
        world.end();
    }

    /// Who asks for a checkpoint.
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Asker {
        Program,
        Person,
    }

    /// Whether the background threads are raised all the time in which a checkpoint is being stored that somebody has asked for.
    async fn is_raised_for(asker: Asker) -> bool {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let gpus = Arc::clone(&world.gpus);
        let mut session = world.session().await;
        session.program_asked = asker == Asker::Program;
        gpus.set_pace(Duration::from_millis(20));
        assert!(session.checkpoint(Trigger::OnDemand).await.is_ok());
        let background = session.engine.background.clone();
        let is_raised = tokio::select! {
            biased;
            () = background.lowered() => false,
            landed = session.engine.in_progress.landed() => {
                assert!(landed.is_ok(), "it was not stored");
                true
            }
        };
        drop(session);
        world.end();
        is_raised
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_program_that_asks_is_left_the_processors_and_a_person_waits() {
        assert!(!is_raised_for(Asker::Program).await);
        assert!(is_raised_for(Asker::Person).await);
    }
}
