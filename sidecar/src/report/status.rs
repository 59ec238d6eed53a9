//! What is the case now.

use std::collections::BTreeMap;
use std::time::Duration;

use phos_storage::Durability;
use serde::{Deserialize, Serialize};

use super::reason::FailureReason;
use super::work::WorkReport;

/// A finished checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckpointReport {
    /// The checkpoint's number, in the log of its tier.
    pub id: u64,
    /// Whether that is its number on this machine (`L5`): it is copied to the store at its time.
    #[serde(default)]
    pub local: bool,
    /// What it survives. `None`: a sidecar of an older release did not say.
    #[serde(default)]
    pub durability: Option<Durability>,
    /// Why the checkpoint was taken, as the schedule names it.
    pub trigger: String,
    /// When it was stored, in ms since 1970. 0: a sidecar of an older release did not say.
    #[serde(default)]
    pub taken_ms: u64,
    /// When the stop began, in ms since 1970: the job's state is that of a moment later. 0: as above.
    #[serde(default)]
    pub held_at_ms: u64,
    /// The last step before it, if the program tells its steps.
    #[serde(default)]
    pub step: Option<u64>,
    /// How long the job was held, in ms.
    pub stop_ms: f64,
    /// The stop's parts, and the steps outside it, in ms.
    pub parts_ms: BTreeMap<String, f64>,
    /// Naming and copying off the GPUs while the job was held, in GB/s (10^9 bytes).
    #[serde(default)]
    pub rates: BTreeMap<String, f64>,
    /// The size of the whole image, in bytes.
    pub total_bytes: u64,
    /// Bytes of GPU memory whose content was not stored yet.
    pub changed_bytes: u64,
    /// The number of bytes that were copied off the GPUs.
    pub copied_bytes: u64,
    /// The number of bytes that the store grew by.
    pub stored_bytes: u64,
    /// From the trigger until it was visible, in seconds.
    pub seconds: f64,
}

/// The part in which a checkpoint took longer than it would have in a hurry, in ms, as its threads had what the job left of the processors.
pub const LEFT_TO_JOB: &str = "left_to_job";

impl CheckpointReport {
    /// Notes how much of its time it would have saved with its share of the processors.
    pub fn left_to_job(&mut self, time: Duration) {
        let ms = (time.as_secs_f64() * 1e4).round() / 10.0;
        if ms > 0.0 {
            self.parts_ms.insert(LEFT_TO_JOB.into(), ms);
        }
    }

    /// How long it would have taken with its share of the processors, from the trigger until it was visible.
    #[must_use]
    pub fn took_in_full(&self) -> Duration {
        let left = self.parts_ms.get(LEFT_TO_JOB).copied().unwrap_or(0.0) / 1e3;
        Duration::try_from_secs_f64(self.seconds - left).unwrap_or_default()
    }
}

/// What collections did since this sidecar started.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CollectionReport {
    /// Checkpoints that retention removed.
    pub removed: u64,
    /// The number of packs that were deleted.
    pub packs: u64,
    /// The bytes of the deleted packs.
    pub pack_bytes: u64,
    /// Bytes that were written again to empty packs of which little was needed.
    pub repacked_bytes: u64,
    /// Why the last one did not do all that there was to do.
    pub failure: Option<String>,
}

/// The newest checkpoint that was copied from this machine to the store.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RemoteReport {
    /// The checkpoint's number in the store.
    pub id: u64,
    /// The checkpoint's number on this machine.
    pub local: u64,
    /// When it became visible on this machine, in ms since 1970.
    pub taken_ms: u64,
    /// Bytes that the copy sent to the store.
    pub sent_bytes: u64,
    /// How long the copy took, in seconds.
    pub seconds: f64,
}

/// Says that the job's progress is not protected, since its checkpoints fail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unprotected {
    /// What was done since then would be lost: when the last checkpoint was stored, or the job began to run if that was
    /// later, in ms since 1970.
    pub since_ms: u64,
    /// Why the last attempt failed, in words for people.
    pub because: String,
    /// The same, for programs. `None`: a sidecar of an older release did not say.
    #[serde(default)]
    pub reason: Option<FailureReason>,
}

/// Says that the machine will be taken away.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreemptionReport {
    /// Who says so: `aws`, `gcp`, `azure`, `file`.
    pub source: String,
    /// What will happen, in the source's words.
    pub what: String,
    /// When, in ms since 1970, if that is known.
    pub at_ms: Option<u64>,
}

/// Everything that `phos-ft status` shows of a sidecar.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The name of the job.
    pub job: String,
    /// The address of the store.
    pub store: String,
    /// What the sidecar is doing, in words for people.
    pub state: String,
    /// The job's command, once the agent has told it.
    pub command: Vec<String>,
    /// Seconds between checkpoints.
    pub interval_seconds: f64,
    /// Checkpoints stored since this sidecar started.
    pub checkpoints: u64,
    /// Attempts that failed since this sidecar started.
    pub failures: u64,
    /// The last checkpoint that was stored by this sidecar; `None` before the first.
    pub last: Option<CheckpointReport>,
    /// Why the last failed attempt failed; `None` if none has.
    pub last_failure: Option<String>,
    /// From an attempt that failed until a checkpoint is stored.
    #[serde(default)]
    pub unprotected: Option<Unprotected>,
    /// Why what the store shows of the job's history is not what was seen of it, while that is so: a log that was rolled back, an
    /// older copy, another store.
    #[serde(default)]
    pub history_away: Option<String>,
    /// What rules checkpoints out at present, in the agent's words; `None` if nothing does.
    pub unsupported: Option<String>,
    /// How often the job was brought back under its agent.
    pub restarts: u32,
    /// The checkpoint that the job was resumed from.
    pub resumed_from: Option<u64>,
    /// Whether that is its number on this machine.
    #[serde(default)]
    pub resumed_locally: bool,
    /// With `--remote-interval`: what the store has of it.
    #[serde(default)]
    pub remote: Option<RemoteReport>,
    /// Why the last copy to the store failed, if it did.
    #[serde(default)]
    pub remote_failure: Option<String>,
    /// The notice that this machine will be taken away, while it is in force.
    #[serde(default)]
    pub preemption: Option<PreemptionReport>,
    /// Device memory of the job as of the last checkpoint, in bytes.
    pub device_bytes: u64,
    /// Long work that is under way.
    #[serde(default)]
    pub work: Vec<WorkReport>,
    /// Old checkpoints that were removed, once there was a collection.
    #[serde(default)]
    pub collected: Option<CollectionReport>,
}
