//! What earlier checkpoints have shown, for the plan of the next one.

use std::collections::BTreeMap;
use std::time::Duration;

use phos_policies::speculation::{Speculation, Waits};
use phos_protocol::types::GpuUuid;

use super::outcome::Measured;
use super::running::{BESIDE, LeftAlone};

/// Where nothing was measured yet: bytes per second over the link of one GPU.
const LINK: u64 = 10_000_000_000;
/// Where nothing was measured yet: how long a dump holds the job back.
const DUMP: Duration = Duration::from_secs(1);

/// What earlier checkpoints have shown: how much changed and how long each step took. See the module's documentation.
#[derive(Debug)]
pub(in crate::engine) struct Planning {
    /// Device memory that the driver needs to bring the control state back, per GPU, in bytes: the most that
    /// was measured.
    pub(super) reserve: BTreeMap<GpuUuid, u64>,
    /// How long the last dump held the job back.
    pub(super) expected_dump: Duration,
    /// The rate of the link of one GPU, in bytes per second.
    pub(super) link_rate: u64,
    /// Bytes that the last checkpoint had to copy, if there was one.
    pub(super) changed: Option<u64>,
    /// Bytes of the last image of the job's processes, if there was one.
    pub(super) cpu_image: Option<u64>,
    /// Snapshots in a row that had to make way for the job.
    pub(super) crowded: u32,
    /// By how much stops are longer as memory is copied while the job is held, if that could be done while it runs.
    pub(super) longer: Option<Duration>,
    /// Whether memory is copied while the job runs.
    pub(super) speculation: Speculation,
    /// What the job was seen to leave alone after a checkpoint.
    pub(super) left_alone: LeftAlone,
}

impl Default for Planning {
    fn default() -> Planning {
        Planning {
            reserve: BTreeMap::new(),
            expected_dump: DUMP,
            link_rate: LINK,
            changed: None,
            cpu_image: None,
            crowded: 0,
            longer: None,
            speculation: Speculation::default(),
            left_alone: LeftAlone::default(),
        }
    }
}

impl Planning {
    /// Takes note of what a checkpoint measured.
    pub(super) fn committed(&mut self, measured: Measured) {
        self.measured(measured.dump, measured.link);
        self.changed = Some(measured.changed);
        self.cpu_image = Some(measured.cpu_image);
        self.crowded = self.crowded.saturating_sub(1);
        if measured.beside > 0 {
            self.speculation.was_right();
        }
    }

    /// Bytes that one GPU's link moves while the job runs, at most: in less time than the job may be held for it.
    pub(super) fn beside_at_most(&self) -> u64 {
        (self.link_rate as f64 * BESIDE.as_secs_f64()) as u64
    }

    /// Where in its steps the next checkpoint is to find the job, if its stop would be shorter there.
    pub(super) fn looks_for(&self) -> Option<Waits> {
        self.longer.and_then(|by| self.speculation.looks_for(by))
    }

    /// Takes note of how long a dump took, and of the rate of the link, if that could be told.
    pub(super) fn measured(&mut self, dump: Duration, link: Option<u64>) {
        self.expected_dump = dump;
        if let Some(rate) = link {
            self.link_rate = rate;
        }
    }

    /// The job was resumed: its memory has other names.
    pub(in crate::engine) fn resumed(&mut self) {
        self.speculation.forget();
        self.left_alone = LeftAlone::default();
    }

    /// Device memory that the driver needs at a restore, per GPU, in bytes.
    pub(super) fn reserves(&self) -> Vec<(GpuUuid, u64)> {
        self.reserve.iter().map(|(u, b)| (*u, *b)).collect()
    }
}
