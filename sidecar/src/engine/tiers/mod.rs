//! Where checkpoints are kept: in the store, and with `--remote-interval` first in a tier on this machine.
//!
//! * [`placement`]: which tier the next checkpoint goes to, and what follows when it is there or could not be stored;
//! * [`local`]: the tier on this machine, and whether what is in it counts;
//! * [`replicate`]: from there to the store;
//! * [`collect`]: garbage collection in both, after checkpoints;
//! * [`encoding`]: how chunks are encoded, and how fast they are sent.
//!
//! The log in the store alone says who has the job. Times order the checkpoints of both tiers: with two logs there is no other
//! order.

pub(super) mod collect;
pub(super) mod encoding;
pub(super) mod local;
mod placement;
pub(super) mod replicate;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use phos_storage::{Job, Key, UnixMillis};

use self::collect::Collector;
use self::encoding::Adaptive;
use self::local::LocalTier;
use self::replicate::Replication;
use super::Tier;

/// Both tiers, and what works on them.
pub(super) struct Tiers {
    /// The one on this machine, if there is one.
    pub(super) local: Option<LocalTier>,
    /// Copies from there to the store.
    pub(super) replication: Option<Replication>,
    /// Where the checkpoint goes that is being made, or was made last.
    pub(super) target: Tier,
    /// The newest time at which a checkpoint became visible in either. Later ones are later, whatever the clocks say.
    pub(super) newest: UnixMillis,
    /// Time between copies to the store.
    pub(super) remote_interval: Option<Duration>,
    /// How hard chunks are compressed in each tier.
    pub(super) local_encoding: Arc<Adaptive>,
    pub(super) remote_encoding: Arc<Adaptive>,
    /// The collectors that remove old checkpoints, one for each tier.
    pub(super) local_collector: Collector,
    pub(super) remote_collector: Collector,
    /// Where one on this machine may be that this start does not use.
    pub(super) unused: Unused,
}

/// What it takes to look for checkpoints on this machine where `--remote-interval` was not given.
pub(super) struct Unused {
    pub(super) state_dir: PathBuf,
    /// Address of the store that they would belong to.
    pub(super) address: String,
    pub(super) key: Option<Key>,
}

impl Tiers {
    /// The history on this machine, if its checkpoints count.
    pub(super) fn local_history(&self) -> Option<&Job> {
        self.local.as_ref().and_then(LocalTier::reading)
    }
}
