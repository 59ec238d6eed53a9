//! Checkpoints are copied from this machine to the store, with `--remote-interval`: the newest one at its time.
//!
//! # Out of the way
//!
//! A copy runs on the background threads, reads what it has to send from the disk, and waits while the job is held. It is
//! cut off for a restore. What it had sent is of use to the next one.

use std::time::{Duration, Instant};

use phos_policies::copies::{Copies as Policy, Urgency};
use phos_policies::schedule::Trigger;
use phos_policies::spare_time;
use phos_storage::{CheckpointNumber, Commit, CopyError, Epoch, GiveWay, Job, JobError, Manifest};
use tokio::task::JoinHandle;

use crate::background::{Background, Raised};
use crate::engine::Tier;
use crate::engine::reading::{Reading, reader};
use crate::engine::{CheckpointId, Engine, EngineError, unix_millis};
use crate::report::event::Event;
use crate::report::status::RemoteReport;

/// A checkpoint that is in the store now.
pub(in crate::engine) struct Copied {
    local: CheckpointNumber,
    number: CheckpointNumber,
    created: u64,
    sent: u64,
    took: Duration,
    left_to_job: Duration,
}

/// Why a checkpoint was not copied.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum NotCopied {
    /// There is nothing to copy any more, nor will there be.
    #[error("the checkpoints that were kept on this machine are gone")]
    Gone,
    #[error(transparent)]
    Failed(#[from] CopyError),
}

pub(in crate::engine) type Outcome = Result<Option<Copied>, NotCopied>;

/// Copies checkpoints to the store, one at a time, and decides when.
pub(in crate::engine) struct Replication {
    policy: Policy,
    origin: Instant,
    task: Option<JoinHandle<Outcome>>,
    /// Somebody waits for the copy under way.
    raised: Option<Raised>,
    /// Somebody waits for the one that is wanted.
    is_waited_for: bool,
    /// How long the last one would have taken with its share of the processors.
    last_took: Option<Duration>,
}

impl Replication {
    pub(in crate::engine) fn new(every: Duration) -> Replication {
        Replication {
            policy: Policy::new(every),
            origin: Instant::now(),
            task: None,
            raised: None,
            is_waited_for: false,
            last_took: None,
        }
    }

    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    /// A checkpoint is visible on this machine.
    pub(super) fn stored_here(&mut self, trigger: Trigger) {
        self.policy.stored_here(match trigger {
            Trigger::Interval => Urgency::Scheduled,
            Trigger::OnDemand | Trigger::Preemption | Trigger::Terminate => {
                self.is_waited_for = true;
                Urgency::Immediate
            }
        });
    }

    /// What a sidecar before this one left on this machine goes to the store as soon as can be.
    pub(in crate::engine) fn found_here(&mut self) {
        self.policy.stored_here(Urgency::Immediate);
    }

    /// A checkpoint went to the store at once.
    pub(in crate::engine) fn stored_there(&mut self) {
        self.is_waited_for = false;
        self.policy.stored_there(self.now());
    }

    /// How long the last copy would have taken in a hurry.
    pub(in crate::engine) fn last_took(&self) -> Option<Duration> {
        self.last_took
    }

    /// The copy that is under way, or else the one that is wanted, gives way to nobody.
    pub(in crate::engine) fn hurry(&mut self, background: &Background) {
        if self.task.is_some() {
            self.raised.get_or_insert_with(|| background.raise());
        } else {
            self.is_waited_for |= self.policy.is_pending();
        }
    }

    /// The job runs again, and nobody waits for copies any more.
    pub(in crate::engine) fn calm(&mut self) {
        self.raised = None;
        self.is_waited_for = false;
    }

    /// Cuts the copy off that is under way, if one is.
    pub(in crate::engine) fn stop(&mut self) {
        self.raised = None;
        if let Some(task) = self.task.take() {
            task.abort();
            self.policy.ended(None, self.now());
        }
    }
}

impl Drop for Replication {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}

/// Waits for a copy to end; for ever without one. `None`: its task panicked, which is logged there. Cancel safe.
pub(in crate::engine) async fn ended(replication: &mut Option<Replication>) -> Option<Outcome> {
    let Some(task) = replication
        .as_mut()
        .and_then(|replication| replication.task.as_mut())
    else {
        return std::future::pending().await;
    };
    task.await.ok()
}

/// Replication the newest checkpoint, unless the store has it.
async fn copy(local: Job, store: Job, epoch: Epoch, way: impl GiveWay) -> Outcome {
    let began = Instant::now();
    let who = reader("copy to the store");
    let newest = local.hold_newest(&who, unix_millis()).await;
    let (found, hold) = newest.map_err(|e| match e.is_absent() {
        true => NotCopied::Gone,
        false => CopyError::Job(e).into(),
    })?;
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
    let commit = send(&local, &store, epoch, &manifest, way).await?;
    if let Some(held) = held {
        held.release().await;
    }
    Ok(commit.map(|commit| Copied {
        local: manifest.number,
        number: commit.number,
        created: manifest.created.0,
        sent: commit.stats.stored_bytes,
        took: began.elapsed(),
        left_to_job: Duration::ZERO,
    }))
}

/// Sends a checkpoint, unless the store has it or a newer one.
async fn send(
    local: &Job,
    store: &Job,
    epoch: Epoch,
    manifest: &Manifest,
    way: impl GiveWay,
) -> Result<Option<Commit>, CopyError> {
    let there = store.list().await?.checkpoints;
    // Never one that is older than what the store has of this run: the newest record counts there.
    let known = (there.iter()).any(|c| c.is_current() && c.created >= manifest.created);
    if known {
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
        return Ok(None);
    }
    let now = unix_millis();
    let copied = store.copy_from(epoch, local, manifest, &way, now).await;
    if let Err(CopyError::Read(e)) = &copied
        && let Some(pack) = e.damaged_pack()
        // As a restore does: no checkpoint references the pack any more.
        && let Err(e) = local.quarantine_pack(&pack, &e.to_string(), now).await
    {
        tracing::warn!(error = %e, "the damage could not be noted");
    }
    copied.map(Some)
}

impl Engine {
    /// When the next copy is to begin, if one can be made.
    pub(in crate::engine) fn next_copy(&self) -> Option<Instant> {
        let replication = self.tiers.replication.as_ref()?;
        // A copy of an older checkpoint must not come after one that goes to the store at once.
        let direct = self.in_progress.is_storing() && self.tiers.target == Tier::Remote;
        if direct || !self.has_copies_to_make() {
            return None;
        }
        (replication.policy.due()).map(|due| replication.origin + due)
    }

    /// Begins a copy if one is due.
    pub(in crate::engine) fn copy_if_due(&mut self) {
        let due = self.next_copy().is_some_and(|due| due <= Instant::now());
        let (Some(epoch), Some(local)) = (self.ownership.epoch, self.tiers.local_history()) else {
            return;
        };
        let local = local.clone();
        let interval = self.tiers.remote_interval;
        let way = self.tiers.remote_collector.way(Duration::ZERO);
        if let Some(replication) = self.tiers.replication.as_mut().filter(|_| due) {
            if std::mem::take(&mut replication.is_waited_for) {
                replication.raised = Some(self.background.raise());
            }
            let patience = match replication.raised {
                Some(_) => Duration::ZERO,
                None => spare_time::at_most(interval, replication.last_took),
            };
            replication.policy.begin(replication.now());
            self.tiers.remote_encoding.checkpoint_begins(interval);
            let copy = copy(local, self.job.clone(), epoch, way);
            let background = self.background.clone();
            replication.task = Some(self.background.spawn(async move {
                let (outcome, left_to_job) = background.patiently(patience, copy).await;
                let with_time = |copied| Copied {
                    left_to_job,
                    ..copied
                };
                Ok(outcome?.map(with_time))
            }));
        }
    }

    /// Takes note of how a copy ended.
    ///
    /// # Errors
    /// Another node has the job.
    pub(in crate::engine) fn copy_ended(
        &mut self,
        outcome: Option<Outcome>,
    ) -> Result<(), EngineError> {
        let (Some(replication), Some(epoch)) = (&mut self.tiers.replication, self.ownership.epoch)
        else {
            return Ok(());
        };
        replication.task = None;
        // One that failed is made up for.
        let failed = matches!(&outcome, None | Some(Err(_)));
        replication.is_waited_for |= failed && replication.raised.is_some();
        replication.raised = None;
        if let Some(Ok(Some(copied))) = &outcome {
            replication.last_took = Some(copied.took.saturating_sub(copied.left_to_job));
        }
        let now = replication.now();
        match &outcome {
            Some(Ok(None)) => replication.policy.had_nothing_to_do(),
            other => (replication.policy).ended(Some(matches!(other, Some(Ok(_)))), now),
        }
        match outcome {
            Some(Ok(Some(copied))) => self.copied(&copied, epoch),
            Some(Ok(None)) => self.status.lock().remote_failure = None,
            None => {}
            Some(Err(e @ NotCopied::Gone)) => {
                let message = e.to_string();
                self.happened(Event::CopyFailed {
                    message: message.clone(),
                });
                self.tier_is_lost(&message);
            }
            Some(Err(NotCopied::Failed(e))) if e.is_fenced() => {
                return Err(EngineError::Fenced(e.to_string()));
            }
            Some(Err(NotCopied::Failed(e))) => {
                tracing::error!(
                    error = %e,
                    "a checkpoint of this machine could not be copied to the store; it is tried again"
                );
                let message = e.to_string();
                self.status.lock().remote_failure = Some(message.clone());
                self.happened(Event::CopyFailed { message });
                if let (CopyError::Read(e), Some(local)) = (&e, &mut self.tiers.local)
                    && e.is_permanent()
                {
                    // The next one goes to the store, whole; until there is one here again, there is nothing to copy.
                    local.not_stored();
                }
            }
        }
        Ok(())
    }

    fn copied(&mut self, copied: &Copied, epoch: Epoch) {
        let local = CheckpointId {
            tier: Tier::Local,
            number: copied.local,
        };
        tracing::info!(
            %local,
            id = copied.number.0,
            sent = copied.sent,
            seconds = (copied.took.as_secs_f64() * 10.0).round() / 10.0,
            "a checkpoint of this machine is in the store"
        );
        let report = RemoteReport {
            id: copied.number.0,
            local: copied.local.0,
            taken_ms: copied.created,
            sent_bytes: copied.sent,
            seconds: copied.took.as_secs_f64(),
        };
        {
            let mut status = self.status.lock();
            status.remote = Some(report.clone());
            status.remote_failure = None;
        }
        if let Some(newest) = &mut self.newest
            && !newest.in_store
            && newest.number == copied.local.0
        {
            newest.number = copied.number.0;
            newest.in_store = true;
        }
        self.happened(Event::CheckpointCopied(report));
        self.remember();
        let collector = &mut self.tiers.remote_collector;
        collector.committed(&self.job, epoch, &self.status);
    }

    /// Makes what is left to copy urgent: the job is over, and this process or this machine may be next.
    pub(in crate::engine) fn hurry_copies(&mut self) {
        if let Some(replication) = &mut self.tiers.replication {
            replication.policy.hurry();
            replication.hurry(&self.background);
        }
    }

    /// Whether a copy runs or can be made.
    pub(in crate::engine) fn has_copies_to_make(&self) -> bool {
        let open = self.tiers.local_history().is_some();
        let replication = self.tiers.replication.as_ref();
        let pending = replication.is_some_and(|replication| replication.policy.is_pending());
        open && pending && self.ownership.epoch.is_some()
    }
}

#[cfg(test)]
mod tests {
    use phos_storage::{Always, JobName, Known, Store};

    use super::*;
    use crate::engine::store_options;

    async fn job() -> Job {
        let store = Store::open("memory://", store_options(None)).await.unwrap();
        store.initialise().await.unwrap();
        store.job(JobName::new("job").unwrap())
    }

    #[tokio::test]
    async fn what_is_gone_is_told_from_what_cannot_be_reached() {
        let (here, there) = (job().await, job().await);
        let id = "00112233445566778899aabbccddeeff".parse().unwrap();
        let history = Some(Known { id, tail: 7 });
        let copied = || copy(here.clone(), there.clone(), Epoch(1), Always);
        assert!(matches!(copied().await, Ok(None)));
        here.expect(history);
        assert!(matches!(copied().await, Err(NotCopied::Gone)));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_copy_that_is_waited_for_gives_way_to_nobody() {
        let background = Background::here();
        let mut replication = Replication::new(Duration::from_secs(60));
        replication.hurry(&background);
        assert!(!background.is_raised() && !replication.is_waited_for);
        replication.found_here();
        replication.hurry(&background);
        assert!(!background.is_raised() && replication.is_waited_for);
        replication.task = Some(tokio::spawn(std::future::pending()));
        replication.hurry(&background);
        assert!(background.is_raised());
        replication.stop();
        assert!(!background.is_raised(), "nobody waits for what was cut off");
        replication.calm();
        replication.stored_here(Trigger::Interval);
        assert!(!replication.is_waited_for);
        replication.stored_here(Trigger::Preemption);
        assert!(replication.is_waited_for);
    }
}
