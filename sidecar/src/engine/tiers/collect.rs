//! Garbage collection by the sidecar itself: after a checkpoint became visible, it removes what retention does not keep.
//!
//! # Out of the way
//!
//! It runs on the background threads, one request after the other in most places, and asks before each
//! step: while the job is held it waits; while a checkpoint is being stored it lets that go first, for a while each time,
//! so that a sidecar which is always storing still gets rid of what it does not keep. Where the job
//! leaves it next to nothing of the processors for a minute, it takes its share.
//!
//! # Crash consistency
//!
//! A collection may be cut off anywhere; the next one continues (see the collection of the storage crate).

use std::time::{Duration, Instant};

use futures::future::BoxFuture;
use phos_policies::retention::{Candidate, Retention};
use phos_storage::{
    CheckpointNumber, CollectError, CollectOptions, Collected, Epoch, GiveWay, Job,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::local::KEPT;
use crate::background::Background;
use crate::engine::unix_millis;
use crate::report::shared::Shared;
use crate::report::status::CollectionReport;

/// How long a step waits for a checkpoint that is being stored.
const PATIENCE: Duration = Duration::from_secs(2);
/// For so long it may starve beside a job that leaves it no processor: without an end, the store would only grow.
const SPARE: Duration = Duration::from_secs(60);
/// Without retention there is only what failed checkpoints left: it is looked for after so many.
const SELDOM: u32 = 64;
/// The most live bytes that are repacked at a time.
const REPACK: u64 = 1 << 30;

/// What the sidecar does for its job just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Busy {
    /// Nothing that a collection could be in the way of.
    No,
    /// Stores a checkpoint while the job runs.
    Storing,
    /// A checkpoint holds the job.
    Holding,
}

struct Way {
    busy: watch::Receiver<Busy>,
    patience: Duration,
}

impl GiveWay for Way {
    fn turn(&self) -> BoxFuture<'_, ()> {
        let mut busy = self.busy.clone();
        Box::pin(async move {
            // An error means that the sidecar ends: so does this task.
            let held = busy.wait_for(|now| *now != Busy::Holding).await.is_err();
            if !held {
                let free = busy.wait_for(|now| *now == Busy::No);
                let _ = tokio::time::timeout(self.patience, free).await;
            }
        })
    }
}

/// Asks the retention policy as the storage crate needs it.
pub fn keep(
    retention: Retention,
) -> impl Fn(&[phos_storage::Candidate]) -> std::collections::BTreeSet<CheckpointNumber> {
    move |candidates| {
        let candidates: Vec<Candidate> = (candidates.iter())
            .map(|c| Candidate {
                number: c.number.0,
                created_ms: c.created.0,
                branch: c.branch,
            })
            .collect();
        (retention.keep(&candidates).into_iter())
            .map(CheckpointNumber)
            .collect()
    }
}

/// Runs collections for the sidecar, and keeps them out of its way.
pub(in crate::engine) struct Collector {
    retention: Retention,
    busy: watch::Sender<Busy>,
    background: Background,
    task: Option<JoinHandle<()>>,
    since: u32,
}

impl Collector {
    pub(in crate::engine) fn new(retention: Retention, background: Background) -> Collector {
        Collector {
            retention,
            busy: watch::Sender::new(Busy::No),
            background,
            task: None,
            since: SELDOM,
        }
    }

    /// Collects what the tier on this machine does not need: with it, disk space is bounded.
    pub(in crate::engine) fn of_local_tier(background: Background) -> Collector {
        let retention = Retention {
            last: Some(KEPT),
            ..Retention::default()
        };
        Collector::new(retention, background)
    }

    /// Tells what the sidecar does now.
    pub(in crate::engine) fn is(&self, busy: Busy) {
        self.busy.send_replace(busy);
    }

    /// How work beside the job learns when it is its turn; it waits so long for a checkpoint that is being stored.
    pub(in crate::engine) fn way(&self, patience: Duration) -> impl GiveWay + 'static {
        Way {
            busy: self.busy.subscribe(),
            patience,
        }
    }

    /// A checkpoint became visible.
    pub(in crate::engine) fn committed(&mut self, job: &Job, epoch: Epoch, status: &Shared) {
        self.since += 1;
        let due = self.retention.is_set() || self.since > SELDOM;
        let running = self.task.as_ref().is_some_and(|task| !task.is_finished());
        if !due || running || job.store().is_discarding() {
            return;
        }
        self.since = 0;
        let (job, status, way) = (job.clone(), status.clone(), self.way(PATIENCE));
        let retention = self.retention;
        let background = self.background.clone();
        self.task = Some(self.background.spawn(async move {
            let began = Instant::now();
            let options = CollectOptions {
                epoch: Some(epoch),
                repack_bytes: REPACK,
                rounds: 1,
                ..CollectOptions::default()
            };
            let keep = keep(retention);
            let collect = job.collect_giving_way(&keep, options, unix_millis, &way);
            let outcome = background.at_leisure(SPARE, collect).await;
            note(outcome, began.elapsed(), &status);
        }));
    }

    /// Cuts a collection off: what it has to do is done by the next one.
    pub(in crate::engine) fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.stop();
    }
}

fn note(outcome: Result<Collected, CollectError>, took: Duration, status: &Shared) {
    let mut report = status.lock();
    let sum = report
        .collected
        .get_or_insert_with(CollectionReport::default);
    match outcome {
        Ok(done) => {
            sum.removed += done.removed.len() as u64;
            sum.packs += done.packs;
            sum.pack_bytes += done.pack_bytes;
            sum.repacked_bytes += done.repacked_bytes;
            sum.failure = None;
            if let Some(first) = done.blocked.first() {
                let reason = format!("checkpoint {}: {}", first.number, first.reason);
                tracing::warn!(
                    reason,
                    "nothing can be deleted while a checkpoint that is kept cannot be read"
                );
                sum.failure = Some(reason);
            }
            if !done.removed.is_empty() || done.packs > 0 {
                tracing::info!(
                    removed = done.removed.len(),
                    packs = done.packs,
                    bytes = done.pack_bytes,
                    repacked = done.repacked_bytes,
                    ms = took.as_millis() as u64,
                    "collected"
                );
            }
        }
        Err(error) => {
            tracing::warn!(%error, "the collection of old checkpoints ended early; the next one goes on");
            sum.failure = Some(error.to_string());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_waits_for_a_stop_and_lets_a_store_go_first() {
        let busy = watch::Sender::new(Busy::No);
        let way = |patience| Way {
            busy: busy.subscribe(),
            patience,
        };
        let (patient, hasty) = (way(Duration::from_secs(3600)), way(Duration::ZERO));
        patient.turn().await;
        // A store is waited for, but not for ever.
        busy.send_replace(Busy::Storing);
        assert!(futures::poll!(patient.turn()).is_pending());
        hasty.turn().await;
        // A stop is waited for until it ends.
        busy.send_replace(Busy::Holding);
        let mut turn = hasty.turn();
        assert!(futures::poll!(&mut turn).is_pending());
        busy.send_replace(Busy::No);
        turn.await;
        busy.send_replace(Busy::Holding);
        let last = way(Duration::ZERO);
        drop(busy);
        // The sidecar is gone.
        last.turn().await;
    }

    #[test]
    fn storage_and_policy_mean_the_same_checkpoints() {
        let candidates = [2, 3, 5].map(|n| phos_storage::Candidate {
            number: CheckpointNumber(n),
            created: phos_storage::UnixMillis(n * 1000),
            branch: None,
        });
        let rules = Retention {
            last: Some(2),
            ..Retention::default()
        };
        let kept: Vec<u64> = keep(rules)(&candidates).iter().map(|n| n.0).collect();
        assert_eq!(kept, [3, 5]);
    }
}
