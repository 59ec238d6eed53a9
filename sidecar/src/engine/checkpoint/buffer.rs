//! The host memory in which device memory waits for the store: as large as the next stop may need it.
//!
//! # Rules
//!
//! * It grows before the job is held, never during a stop, and a checkpoint waits a minute at most for that.
//! * The job comes first for the host's memory: a shortage is noticed within a second, and all but the least is given back as
//!   soon as it is not in use.
//! * After a checkpoint that the agent refused or could not make, the buffer stays at the least until one succeeds: it may have
//!   held the memory that was missing.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use phos_gpu::HostPool;
use phos_gpu::host::SEGMENT;
use phos_policies::host_buffer::{self, Bounds, Device, HostMemory};
use phos_policies::schedule::Trigger;
use phos_shared::host_memory;

use super::outcome::Cause;
use crate::engine::Engine;
use crate::engine::session::{Session, at};
use crate::size::human;

/// How long a checkpoint waits for memory to be pinned. The stop then does with what there is.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the host's memory is looked at while the buffer has more of it than the least.
const LOOK: Duration = Duration::from_secs(1);

/// Decides how large the pinned buffer is to be, and has it grow between checkpoints: see the module's documentation.
#[derive(Debug)]
pub(in crate::engine) struct Buffer {
    bounds: Bounds,
    /// Whether people were told that the buffer is too small.
    told: bool,
    /// Whether somebody looks whether the host has memory.
    watched: bool,
    /// The agent refused or could not make a checkpoint since the last one.
    failed: bool,
}

impl Buffer {
    /// A buffer that keeps to these bounds.
    pub(in crate::engine) const fn new(bounds: Bounds) -> Buffer {
        Buffer {
            bounds,
            told: false,
            watched: false,
            failed: false,
        }
    }

    /// A checkpoint was made.
    pub(super) const fn made(&mut self) {
        self.failed = false;
    }

    /// The agent refused or could not make one: the next has all the memory that this one did not have.
    pub(super) const fn missed(&mut self) {
        self.failed = true;
    }

    /// How large a buffer, now of `now` bytes, is to be that may have to hold `needed`.
    fn size(&self, now: u64, needed: u64, host: Option<HostMemory>) -> u64 {
        if self.failed {
            return self.bounds.least;
        }
        host_buffer::size(self.bounds, now, needed, host) / SEGMENT * SEGMENT
    }
}

impl Session<'_> {
    /// Makes the buffer as large as this checkpoint may need it.
    pub(super) async fn prepare_buffer(&mut self, trigger: Trigger) -> Result<(), Cause> {
        if matches!(trigger, Trigger::Preemption | Trigger::Terminate) {
            // There is no time.
            return Ok(());
        }
        let Some(pool) = self.engine.resize_buffer() else {
            return Ok(());
        };
        let until = Instant::now() + PATIENCE;
        let mut filled = tokio::task::spawn_blocking(move || pool.wait_filled(until));
        loop {
            let time_is_up = self.exit_at();
            tokio::select! {
                bytes = &mut filled => {
                    tracing::debug!(bytes = bytes.unwrap_or_default(), "host memory is pinned");
                    return Ok(());
                }
                packet = self.link.recv() => {
                    self.event_while_waiting(packet?).await?;
                    if self.termination.is_some() {
                        return Ok(());
                    }
                }
                () = at(time_is_up) => return Ok(()),
            }
        }
    }
}

impl Engine {
    /// Changes the size of the buffer where that is of use. The pool, if it has less than it is to have.
    fn resize_buffer(&mut self) -> Option<Arc<HostPool>> {
        let pool = Arc::clone(self.gpus.host().ok()?);
        let free = self.free_memory().ok()?;
        let rooms = self.snapshot_rooms(&free);
        let devices: Vec<Device> = free
            .iter()
            .map(|(uuid, memory)| Device {
                used: memory.total.saturating_sub(memory.free),
                spare: rooms.get(uuid).copied().unwrap_or(0),
            })
            .collect();
        let Bounds { least, most } = self.buffer.bounds;
        if least < most {
            self.choose_size(&pool, &devices);
        }
        // No more than all that could leave.
        pool.prepare(devices.iter().map(|device| device.used).sum());
        (!pool.is_prepared()).then_some(pool)
    }

    fn choose_size(&mut self, pool: &Arc<HostPool>, devices: &[Device]) {
        let needed = host_buffer::needed(devices, self.planning.changed);
        let needed = needed.checked_next_multiple_of(SEGMENT).unwrap_or(needed);
        let now = pool.limit();
        let host = host(pool, self.planning.cpu_image);
        let size = self.buffer.size(now, needed, host);
        if size < needed && !self.buffer.failed && !self.buffer.told {
            self.buffer.told = true;
            tracing::warn!(
                "up to {} may have to leave the GPUs while the job is held, and the host buffer has {}: where more than that \
                 changed, stops last as long as the store takes for the rest (more memory for the sidecar, or a larger \
                 --host-buffer, makes them shorter)",
                human(needed),
                human(size)
            );
        }
        if size == now {
            return;
        }
        tracing::info!(
            "the host buffer has {} now: up to {} may have to leave the GPUs while the job is held",
            human(size),
            human(needed)
        );
        pool.resize(size);
        if !std::mem::replace(&mut self.buffer.watched, true) {
            tokio::spawn(watch(Arc::downgrade(pool), self.buffer.bounds.least));
        }
    }
}

/// Memory of the host, beside a pool and an image of the job's processes of so many bytes.
fn host(pool: &HostPool, image: Option<u64>) -> Option<HostMemory> {
    host_memory::now().map(|memory| HostMemory {
        total: memory.total,
        available: memory.available,
        pinned: pool.pinned(),
        // What the driver saves is in the processes' memory as well.
        image: image.map(|bytes| bytes.saturating_add(bytes / 2)),
    })
}

/// Gives memory back when the host has too little, as long as there is a pool.
async fn watch(pool: Weak<HostPool>, least: u64) {
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(pool) = pool.upgrade() else { return };
        let is_short = || host(&pool, None).is_some_and(host_buffer::is_short);
        if pool.limit() > least && is_short() {
            tracing::warn!(
                "the host has little memory left: the host buffer goes back to {}",
                human(least)
            );
            pool.give_back(least);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_that_was_refused_has_the_next_one_do_with_the_least() {
        let mut buffer = Buffer::new(Bounds {
            least: 4 * SEGMENT,
            most: u64::MAX,
        });
        let size = |buffer: &Buffer| buffer.size(4 * SEGMENT, 9 * SEGMENT + 1, None);
        assert_eq!(size(&buffer), 9 * SEGMENT);
        buffer.missed();
        assert_eq!(size(&buffer), 4 * SEGMENT);
        buffer.made();
        assert_eq!(size(&buffer), 9 * SEGMENT);
    }
}
