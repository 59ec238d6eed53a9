//! Who has the job: its epoch in the store's log, the lease that others wait for, and what this machine remembers of its
//! history.
//!
//! * [`take_over`]: the job becomes ours, and is not taken from another node that has it;
//! * [`lease`]: the courtesy that is renewed; [`stand_by`]: waiting for another's;
//!
//! # Consistency
//!
//! The store's log alone says who has the job. Everything else here is there so that nobody takes it from a node that is well,
//! or takes an outage for an empty history.

pub(super) mod lease;
mod stand_by;
mod take_over;

use std::time::Duration;

use phos_storage::Epoch;

use self::lease::{Keeper, Node};
use super::{Engine, unix_millis};
use crate::known_history::{KnownHistory, Remembered};

/// What this process knows of who has the job.
pub(super) struct Ownership {
    /// The epoch of this sidecar in the store's log; `None`: it has not taken the job over yet.
    pub(super) epoch: Option<Epoch>,
    /// The length of the lease; zero: no lease is kept.
    pub(super) lease: Duration,
    /// This machine, as leases name it.
    pub(super) node: Node,
    /// Renews the lease once the job was taken over.
    pub(super) keeper: Option<Keeper>,
    /// What this machine remembers of the job's history.
    pub(super) history: KnownHistory,
    /// Whether the job began with its first step in this process's time, as `--start-fresh` asked.
    pub(super) fresh: bool,
}

impl Engine {
    /// There is a checkpoint of the job, in the store or on its way there: from here on it is known on this machine which history
    /// it belongs to.
    pub(super) fn remember(&self) {
        let Some(known) = self.job.expected() else {
            return;
        };
        // Two small files.
        let fresh = self.ownership.fresh;
        self.ownership
            .history
            .note(Remembered { known, fresh }, unix_millis());
    }
}
