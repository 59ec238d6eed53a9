//! Checkpoints go on from this machine to the store, with `--remote-interval`: the newest one at its time.
//!
//! # Out of the way
//!
//! A copy runs on the background threads, reads what it has to send from the disk, and waits while the job is held. It is
//! cut off for a restore. What it had sent is of use to the next one.

use std::time::{Duration, Instant};

use phos_policies::copies::Copies as Policy;
use phos_storage::{CheckpointNumber, CopyError, Epoch, GiveWay, Job, JobError};
use tokio::task::JoinHandle;

use super::hold::{Reading, reader};
use super::near::Near;
use super::status::{RemoteReport, Shared};
use super::tidy::Tidy;
use super::{Engine, EngineError, unix_millis};

/// A checkpoint that is in the store now.
pub(super) struct Copied {
    local: CheckpointNumber,
    number: CheckpointNumber,
    created: u64,
    sent: u64,
    took: Duration,
}

pub(super) type Outcome = Result<Option<Copied>, CopyError>;

/// What copies, and when.
pub(super) struct Copies {
    policy: Policy,
    origin: Instant,
    task: Option<JoinHandle<Outcome>>,
}

impl Copies {
    pub(super) fn new(every: Duration) -> Copies {
        Copies {
            policy: Policy::new(every),
            origin: Instant::now(),
            task: None,
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// A checkpoint is visible on this machine.
    pub(super) fn stored_here(&mut self, urgent: bool) {
        self.policy.stored_here(urgent);
    }

    /// A checkpoint went to the store at once.
    pub(super) fn stored_there(&mut self) {
        self.policy.stored_there(self.now());
    }

    /// Cuts a copy off.
    pub(super) fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            self.policy.ended(None, self.now());
        }
    }
}

impl Drop for Copies {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Waits for a copy to end; for ever without one. `None`: its task panicked, which is logged there. Cancel safe.
pub(super) async fn ended(copies: &mut Option<Copies>) -> Option<Outcome> {
    let Some(task) = copies.as_mut().and_then(|copies| copies.task.as_mut()) else {
        return std::future::pending().await;
    };
    task.await.ok()
}

/// Copies the newest checkpoint, unless the store has it.
async fn copy(near: Job, store: Job, epoch: Epoch, way: impl GiveWay) -> Outcome {
    let began = Instant::now();
    let who = reader("copy to the store");
    let (found, hold) = near.hold_newest(&who, unix_millis()).await?;
    let held = hold.map(Reading::keep);
    for skipped in &found.skipped {
        tracing::error!(
            checkpoint = %format!("L{}", skipped.number), reason = skipped.reason,
            "CHECKPOINT L{} IS DAMAGED and is passed over", skipped.number
        );
    }
    let Some(manifest) = found.manifest else {
        return Ok(None);
    };
    let there = store.list().await?.checkpoints;
    // Never one that is older than what the store has of this run: the newest record counts there.
    let known = (there.iter()).any(|c| c.is_current() && c.created >= manifest.created);
    let commit = if known {
        // Ours, or of one who has the job now and went on further.
        let now = store.state().await?;
        if now.epoch.is_some_and(|now| now != epoch) {
            return Err(CopyError::Job(JobError::Fenced {
                job: store.name().clone(),
                epoch,
                by: now
                    .holder
                    .map_or_else(String::new, |by| format!(" by {by}")),
            }));
        }
        None
    } else {
        let now = unix_millis();
        match store.copy_from(epoch, &near, &manifest, &way, now).await {
            Err(CopyError::Read(e)) => {
                // As a restore does: no checkpoint leans on the pack any more.
                if let Some(pack) = e.damaged_pack()
                    && let Err(e) = near.quarantine_pack(&pack, &e.to_string(), now).await
                {
                    tracing::warn!(error = %e, "the damage could not be noted");
                }
                return Err(CopyError::Read(e));
            }
            copied => Some(copied?),
        }
    };
    if let Some(held) = held {
        held.release().await;
    }
    Ok(commit.map(|commit| Copied {
        local: manifest.number,
        number: commit.number,
        created: manifest.created.0,
        sent: commit.stats.stored_bytes,
        took: began.elapsed(),
    }))
}

impl Engine {
    /// When the next copy is to begin, if one can be made.
    pub(super) fn next_copy(&self) -> Option<Instant> {
        let copies = self.copies.as_ref()?;
        // A copy of an older checkpoint must not come after one that goes to the store at once.
        let direct = self.flight.is_some() && !self.writes_near;
        if direct || !self.has_copies_to_make() {
            return None;
        }
        copies.policy.due().map(|due| copies.origin + due)
    }

    /// Begins a copy if one is due.
    pub(super) fn copy_if_due(&mut self) {
        let due = self.next_copy().is_some_and(|due| due <= Instant::now());
        let (Some(copies), Some(epoch)) = (&mut self.copies, self.epoch) else {
            return;
        };
        let Some(near) = self.near.as_ref().and_then(Near::reading).cloned() else {
            return;
        };
        if due {
            copies.policy.begin(copies.now());
            self.remote_encoding.checkpoint_begins(self.remote_interval);
            let way = self.tidy.way(Duration::ZERO);
            copies.task = Some(tokio::spawn(copy(near, self.job.clone(), epoch, way)));
        }
    }

    /// Takes note of how a copy ended.
    ///
    /// # Errors
    /// Another node has the job.
    pub(super) fn copy_ended(&mut self, outcome: Option<Outcome>) -> Result<(), EngineError> {
        let (Some(copies), Some(epoch)) = (&mut self.copies, self.epoch) else {
            return Ok(());
        };
        copies.task = None;
        let now = copies.now();
        match &outcome {
            Some(Ok(None)) => copies.policy.had_nothing_to_do(),
            other => (copies.policy).ended(Some(matches!(other, Some(Ok(_)))), now),
        }
        match outcome {
            Some(Ok(Some(copied))) => {
                tracing::info!(
                    local = %format!("L{}", copied.local),
                    id = copied.number.0,
                    sent = copied.sent,
                    seconds = (copied.took.as_secs_f64() * 10.0).round() / 10.0,
                    "a checkpoint of this machine is in the store"
                );
                {
                    let mut status = self.status.lock();
                    status.remote = Some(RemoteReport {
                        id: copied.number.0,
                        local: copied.local.0,
                        taken_ms: copied.created,
                        sent_bytes: copied.sent,
                        seconds: copied.took.as_secs_f64(),
                    });
                    status.remote_failure = None;
                }
                self.remember();
                self.tidy.committed(&self.job, epoch, &self.status);
            }
            Some(Ok(None)) => self.status.lock().remote_failure = None,
            None => {}
            Some(Err(e)) if e.is_fenced() => return Err(EngineError::Fenced(e.to_string())),
            Some(Err(e)) => {
                tracing::error!(
                    error = %e,
                    "a checkpoint of this machine could not be copied to the store; it is tried again"
                );
                self.status.lock().remote_failure = Some(e.to_string());
                if let (CopyError::Read(e), Some(near)) = (&e, &mut self.near)
                    && e.is_permanent()
                {
                    // The next one goes to the store, whole; until there is one here again, there is nothing to copy.
                    near.not_stored();
                }
            }
        }
        Ok(())
    }

    /// Makes what is left to copy urgent: the job is over, and this process or this machine may be next.
    pub(super) fn hurry_copies(&mut self) {
        if let Some(copies) = &mut self.copies {
            copies.policy.hurry();
        }
    }

    /// Whether a copy runs or can be made.
    pub(super) fn has_copies_to_make(&self) -> bool {
        let open = self.near.as_ref().and_then(Near::reading).is_some();
        let pending = (self.copies.as_ref()).is_some_and(|copies| copies.policy.is_pending());
        open && pending && self.epoch.is_some()
    }

    /// Where the next checkpoint goes, and whether that is this machine; `None`: the job is not ours.
    pub(super) fn target(&self) -> Option<(Job, Epoch, bool)> {
        match self.near.as_ref().and_then(Near::target) {
            Some((job, epoch)) => Some((job.clone(), epoch, true)),
            None => Some((self.job.clone(), self.epoch?, false)),
        }
    }

    /// A checkpoint is visible, on this machine or in the store.
    pub(super) fn stored(&mut self, local: bool, urgent: bool) {
        let Some(epoch) = self.epoch else {
            return;
        };
        if let (true, Some((near, near_epoch))) =
            (local, self.near.as_ref().and_then(Near::writing))
        {
            if let Some(copies) = &mut self.copies {
                copies.stored_here(urgent);
            }
            let unsaid = Shared::default();
            self.near_tidy.committed(near, near_epoch, &unsaid);
            if let Some(near) = &mut self.near {
                near.stored();
            }
        } else {
            if let Some(copies) = &mut self.copies {
                copies.stored_there();
                self.status.lock().remote_failure = None;
            }
            if let Some(near) = &mut self.near {
                // There may be room again.
                near.stored_there();
            }
            self.tidy.committed(&self.job, epoch, &self.status);
        }
        self.copy_if_due();
    }

    /// A checkpoint goes to the store at once.
    pub(super) fn writes_directly(&mut self) {
        if let Some(copies) = &mut self.copies {
            copies.stop();
        }
    }

    /// A checkpoint could not be stored where it was to go: the next one goes to the other place.
    pub(super) fn not_stored(&mut self) {
        let Some(near) = &mut self.near else {
            return;
        };
        if self.writes_near {
            near.not_stored();
            tracing::warn!("the next checkpoint goes to the store, not to this machine");
        } else if near.writing().is_some() {
            near.try_next();
            tracing::warn!("the next checkpoint goes to this machine");
        }
    }

    /// The log on this machine does not say any more that the job is ours: its directory was deleted or replaced. Who has the job
    /// is said elsewhere; what is left here is of no use.
    pub(super) fn tier_is_lost(&mut self) {
        if let Some(near) = &mut self.near {
            near.lost();
            tracing::error!(
                "the checkpoints on this machine were deleted or replaced by others: from now on each goes to the store, \
                 until phos-ft is started again"
            );
        }
    }

    /// What runs beside the job tells what the sidecar does now.
    pub(super) fn busy(&self, busy: super::tidy::Busy) {
        self.tidy.is(busy);
        self.near_tidy.is(busy);
    }

    /// Cuts everything off that runs beside the job: it waits for a restore.
    pub(super) fn stop_background(&mut self) {
        self.tidy.stop();
        self.near_tidy.stop();
        if let Some(copies) = &mut self.copies {
            copies.stop();
        }
    }
}

/// Collects what the tier on this machine does not need: with it, disk space is bounded.
pub(super) fn near_tidy() -> Tidy {
    Tidy::new(phos_policies::retention::Retention {
        last: Some(super::near::KEPT),
        ..phos_policies::retention::Retention::default()
    })
}
