//! What a job's history shows: its checkpoints, its state, its newest run.

use async_recursion::async_recursion as boxed;
use serde::{Deserialize, Serialize};

use super::history::{Step, Walk};
use super::{Job, JobError};
use crate::head::{HeadRecord, READS, RecordKind};
use crate::medium::Medium;
use crate::names::{CheckpointNumber, Epoch, UnixMillis};

/// What a checkpoint survives: the end of a process, or the loss of the machine as well.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// On this machine: survives processes, not the node.
    Local,
    /// In an object store: survives the loss of the node.
    Remote,
}

/// A checkpoint as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointSummary {
    /// The checkpoint's number in the log.
    pub number: CheckpointNumber,
    /// The epoch in which the checkpoint was committed.
    pub epoch: Epoch,
    /// When the checkpoint was committed.
    pub created: UnixMillis,
    /// The size of the whole image, in bytes.
    pub image_bytes: u64,
    /// Bytes of chunks that it added, before encoding.
    pub new_bytes: u64,
    /// The number of bytes that the checkpoint added to the store.
    pub stored_bytes: u64,
    /// How long the job was held back, in microseconds.
    pub stop_us: u64,
    /// The word for why the checkpoint was taken.
    pub trigger: String,
    /// What the checkpoint survives.
    pub durability: Durability,
    /// Whether the job ended by itself after it: it belongs to an earlier run.
    pub earlier_run: bool,
    /// Set if the job has continued from an older checkpoint since: the number of the take-over that left this one behind.
    pub branch: Option<u64>,
}

impl CheckpointSummary {
    /// Whether a crash may resume from it: it is of the current run, on the current branch.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        !self.earlier_run && self.branch.is_none()
    }
}

/// A checkpoint or record that was passed over, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedCheckpoint {
    /// The number of the checkpoint or record.
    pub number: CheckpointNumber,
    /// Why it was passed over.
    pub reason: String,
}

/// The visible checkpoints of a job, and those that were passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// The checkpoints that can be used, newest first.
    pub checkpoints: Vec<CheckpointSummary>,
    /// Records that cannot be read, newest first.
    pub damaged: Vec<SkippedCheckpoint>,
}

/// The state of a job's history, by its log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// Number of the newest record; 0 if the job has no history.
    pub tail: u64,
    /// The epoch in force; `None` if there is no history or its newest record is damaged.
    pub epoch: Option<Epoch>,
    /// Who took the job over last, if that record was met on the way to the newest checkpoint.
    pub holder: Option<String>,
    /// The newest checkpoint of the current run.
    pub newest: Option<CheckpointNumber>,
    /// The exit code of the job if it ended by itself and nothing was checkpointed since: a start begins afresh.
    pub completed: Option<i32>,
}

impl Job {
    /// Reads the log for the state of the job's history.
    #[boxed]
    pub async fn state(&self) -> Result<JobState, JobError> {
        let mut walk = Walk::new(self, 1).await?;
        let tail = walk.tail();
        let mut state = JobState {
            tail,
            epoch: None,
            holder: None,
            newest: None,
            completed: None,
        };
        if tail > 0 {
            let newest = self.record(tail).await?;
            state.epoch = newest.ok().map(|record| record.epoch);
        }
        while let Some(step) = walk.next().await? {
            if step.branch.is_some() {
                continue;
            }
            match step.record.map(|record| record.kind) {
                Ok(RecordKind::TakenOver { holder, .. }) => {
                    state.holder.get_or_insert(holder);
                }
                Ok(RecordKind::Checkpoint { .. }) => {
                    state.newest = Some(CheckpointNumber(step.number));
                    break;
                }
                Ok(RecordKind::Completed { exit_code }) => {
                    state.completed = Some(exit_code);
                    break;
                }
                Ok(RecordKind::Collected { .. }) | Err(_) => {}
            }
        }
        Ok(state)
    }

    /// Whether the job's current branch began with its beginning while there were checkpoints
    /// ([`take_over_from`](Self::take_over_from) none).
    #[boxed]
    pub async fn began_afresh(&self) -> Result<bool, JobError> {
        let mut walk = Walk::new(self, READS).await?;
        while walk.next().await?.is_some() {}
        Ok(walk.forks().began_afresh())
    }

    /// What a checkpoint that is stored here survives.
    #[must_use]
    pub fn durability(&self) -> Durability {
        match self.backend().medium() {
            Medium::Remote => Durability::Remote,
            Medium::Local | Medium::Discard => Durability::Local,
        }
    }

    /// All checkpoints, newest first, also those of earlier runs.
    #[boxed]
    pub async fn list(&self) -> Result<Listing, JobError> {
        let durability = self.durability();
        let mut walk = Walk::new(self, READS).await?;
        let mut listing = Listing::default();
        let mut earlier_run = false;
        while let Some(step) = walk.next().await? {
            let Step {
                number,
                record,
                branch,
                ..
            } = step;
            let number = CheckpointNumber(number);
            match record {
                Ok(HeadRecord {
                    epoch,
                    created,
                    kind:
                        RecordKind::Checkpoint {
                            image_bytes,
                            new_bytes,
                            stored_bytes,
                            stop_us,
                            trigger,
                            ..
                        },
                    ..
                }) => listing.checkpoints.push(CheckpointSummary {
                    number,
                    epoch,
                    created,
                    image_bytes,
                    new_bytes,
                    stored_bytes,
                    stop_us,
                    trigger,
                    durability,
                    earlier_run: earlier_run && branch.is_none(),
                    branch,
                }),
                Ok(HeadRecord {
                    kind: RecordKind::Completed { .. },
                    ..
                }) => earlier_run |= branch.is_none(),
                Ok(_) => {}
                Err(reason) => listing.damaged.push(SkippedCheckpoint { number, reason }),
            }
        }
        Ok(listing)
    }
}
