//! Pinned host memory, handed out in slots of one chunk: the bound on what the sidecar holds of the
//! job's memory at any time.
//!
//! ```text
//!   pool (≤ --host-buffer)
//!   ├─ segment 64 MiB, pinned on first use ─ slot 1 MiB │ slot │ slot │ …
//!   └─ …
//! ```
//!
//! # Rules
//!
//! * A run is up to [`MAX_RUN`] neighbouring slots, so that one copy fills many chunks.
//! * After the copy, each chunk of a run is a [`Bytes`] over its slot; the slot is free again when
//!   the last clone of that `Bytes` is gone. Whoever stores the chunk needs no copy.
//! * Waiting for a slot is how the pipeline slows down. It ends when the wait is cancelled.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;

use super::error::GpuError;
use super::platform::{Gpu, PinnedMemory};

/// Bytes of a slot: the largest chunk.
pub const SLOT: usize = 1 << 20;

/// Most slots in a run: one copy of 16 MiB.
pub const MAX_RUN: usize = 16;

const SEGMENT_SLOTS: usize = 64;
// A bit of `Segment::used` for each.
const _: () = assert!(SEGMENT_SLOTS == u64::BITS as usize && MAX_RUN <= SEGMENT_SLOTS);

/// Pinned memory of [`SEGMENT_SLOTS`] slots. It lives until the pool is dropped; who may touch which slot is decided by `used`
/// under the pool's lock.
struct Segment {
    memory: Box<dyn PinnedMemory>,
    used: u64,
}

struct State {
    segments: Vec<Segment>,
    free: usize,
    /// Segment where the last run was found: those before it are likely to be full.
    hint: usize,
    /// How many want no memory pinned in the background now.
    quiet: usize,
}

/// The pool.
pub struct HostPool {
    gpu: Arc<dyn Gpu>,
    state: Mutex<State>,
    freed: Condvar,
    max_segments: usize,
}

impl HostPool {
    /// A pool of at most `bytes` (at least one segment), pinned through this GPU's context and
    /// usable with all.
    pub fn new(gpu: &Arc<dyn Gpu>, bytes: u64) -> Arc<HostPool> {
        let segment = (SLOT * SEGMENT_SLOTS) as u64;
        Arc::new(HostPool {
            gpu: Arc::clone(gpu),
            state: Mutex::new(State {
                segments: Vec::new(),
                free: 0,
                hint: 0,
                quiet: 0,
            }),
            freed: Condvar::new(),
            max_segments: usize::try_from(bytes / segment)
                .unwrap_or(usize::MAX)
                .max(1),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins the rest of the pool in a thread of its own, so that no stop pays for it: pinning is ten
    /// times slower than copying. Ends early when the pool is no longer used or the host has no more; rests
    /// while [`HostPool::pause_pinning`] is in force.
    pub fn fill_in_background(self: &Arc<Self>) {
        let pool = Arc::downgrade(self);
        let fill = move || {
            while let Some(pool) = pool.upgrade() {
                {
                    let state = pool.lock();
                    if state.segments.len() >= pool.max_segments {
                        return;
                    }
                    if state.quiet > 0 {
                        let rest = Duration::from_millis(20);
                        // Whatever wakes it: it looks again.
                        drop(pool.freed.wait_timeout(state, rest));
                        continue;
                    }
                }
                // Not under the lock: who wants a slot that is free must not wait for pinning.
                let Ok(segment) = pool.pin() else { return };
                pool.add(&mut pool.lock(), segment);
            }
        };
        // Without the thread the pool grows when it is needed.
        let _ = std::thread::Builder::new()
            .name("phos-pin".into())
            .spawn(fill);
    }

    /// No memory is pinned in the background until the guard is dropped: pinning takes the driver's locks, and
    /// with them the time of a job that is held.
    pub fn pause_pinning(self: &Arc<Self>) -> Quiet {
        self.lock().quiet += 1;
        Quiet(Arc::clone(self))
    }

    fn pin(&self) -> Result<Segment, GpuError> {
        let memory = Arc::clone(&self.gpu).pin(SLOT * SEGMENT_SLOTS)?;
        Ok(Segment { memory, used: 0 })
    }

    /// Takes a new segment in; gives it back if the pool has grown to its bound meanwhile.
    fn add(&self, state: &mut State, segment: Segment) {
        if state.segments.len() >= self.max_segments {
            return;
        }
        state.segments.push(segment);
        state.free += SEGMENT_SLOTS;
        self.freed.notify_one();
    }

    /// A run of 1 to `slots` neighbouring slots. Waits until one is free; `cancelled` is asked many
    /// times a second.
    ///
    /// # Errors
    /// [`GpuError::Cancelled`], or host memory could not be pinned.
    pub fn acquire(
        self: &Arc<Self>,
        slots: usize,
        cancelled: &dyn Fn() -> bool,
    ) -> Result<HostRun, GpuError> {
        let slots = slots.clamp(1, MAX_RUN);
        let mut state = self.lock();
        loop {
            if cancelled() {
                return Err(GpuError::Cancelled);
            }
            self.make_room(&mut state, slots)?;
            if let Some(run) = self.take(&mut state, slots) {
                return Ok(run);
            }
            state = self
                .freed
                .wait_timeout(state, Duration::from_millis(20))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// As [`HostPool::acquire`], but none if it would have to wait.
    ///
    /// # Errors
    /// Host memory could not be pinned and there is none yet.
    pub fn try_acquire(self: &Arc<Self>, slots: usize) -> Result<Option<HostRun>, GpuError> {
        let slots = slots.clamp(1, MAX_RUN);
        let mut state = self.lock();
        self.make_room(&mut state, slots)?;
        Ok(self.take(&mut state, slots))
    }

    fn make_room(&self, state: &mut State, slots: usize) -> Result<(), GpuError> {
        if state.free < slots && state.segments.len() < self.max_segments {
            match self.pin() {
                Ok(segment) => self.add(state, segment),
                Err(e) if state.segments.is_empty() => return Err(e),
                // What is pinned already will do.
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The longest free run of at most `slots`.
    fn take(self: &Arc<Self>, state: &mut State, slots: usize) -> Option<HostRun> {
        let mut best: Option<(usize, usize, usize)> = None;
        let count = state.segments.len();
        'search: for index in (0..count).map(|i| (state.hint + i) % count) {
            let segment = &state.segments[index];
            if segment.used == u64::MAX {
                continue;
            }
            let mut start = 0;
            while start < SEGMENT_SLOTS {
                if segment.used & (1 << start) != 0 {
                    start += 1;
                    continue;
                }
                let mut len = 0;
                while len < slots
                    && start + len < SEGMENT_SLOTS
                    && segment.used & (1 << (start + len)) == 0
                {
                    len += 1;
                }
                if best.is_none_or(|(_, _, longest)| len > longest) {
                    best = Some((index, start, len));
                    if len == slots {
                        break 'search;
                    }
                }
                start += len;
            }
        }
        let (index, start, len) = best?;
        state.hint = index;
        let segment = &mut state.segments[index];
        segment.used |= mask(start, len);
        state.free -= len;
        Some(HostRun {
            pool: Arc::clone(self),
            segment: index,
            start,
            len,
            base: segment.memory.base(),
        })
    }

    fn release(&self, segment: usize, start: usize, len: usize) {
        let mut state = self.lock();
        if let Some(s) = state.segments.get_mut(segment) {
            s.used &= !mask(start, len);
            state.free += len;
        }
        drop(state);
        // The thread that pins waits here as well, and has no use for it.
        self.freed.notify_all();
    }

    /// Bytes handed out now.
    pub fn in_use(&self) -> u64 {
        let state = self.lock();
        ((state.segments.len() * SEGMENT_SLOTS - state.free) * SLOT) as u64
    }

    /// The bound, in bytes.
    pub fn limit(&self) -> u64 {
        (self.max_segments * SEGMENT_SLOTS * SLOT) as u64
    }
}

fn mask(start: usize, len: usize) -> u64 {
    let ones = if len >= 64 {
        u64::MAX
    } else {
        (1_u64 << len) - 1
    };
    ones << start
}

/// While it lives, see [`HostPool::pause_pinning`].
pub struct Quiet(Arc<HostPool>);

impl Drop for Quiet {
    fn drop(&mut self) {
        self.0.lock().quiet -= 1;
    }
}

/// Neighbouring slots, owned.
pub struct HostRun {
    pool: Arc<HostPool>,
    segment: usize,
    start: usize,
    len: usize,
    base: *mut u8,
}

// SAFETY: a run is the only owner of its slots.
unsafe impl Send for HostRun {}

impl HostRun {
    /// Number of slots.
    pub fn slots(&self) -> usize {
        self.len
    }

    /// Its first byte.
    pub(super) fn pointer(&self) -> *mut u8 {
        // SAFETY: start < SEGMENT_SLOTS, so this stays inside the segment.
        unsafe { self.base.add(self.start * SLOT) }
    }

    /// The whole run, to fill from the CPU.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the run owns these slots, the memory was given by the driver and is never moved;
        // `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(), self.len * SLOT) }
    }

    /// Gives back the slots behind the first `slots`.
    pub fn truncate(&mut self, slots: usize) {
        if slots < self.len {
            self.pool
                .release(self.segment, self.start + slots, self.len - slots);
            self.len = slots;
        }
    }

    /// Splits into one `Bytes` per slot; the i-th shows the first `lens[i]` bytes of its slot.
    pub fn into_chunks(mut self, lens: &[usize]) -> Vec<Bytes> {
        self.truncate(lens.len());
        let chunks = lens
            .iter()
            .take(self.len)
            .enumerate()
            .map(|(i, &len)| {
                Bytes::from_owner(Slot {
                    pool: Arc::clone(&self.pool),
                    segment: self.segment,
                    slot: self.start + i,
                    base: self.base,
                    len: len.min(SLOT),
                })
            })
            .collect();
        self.len = 0;
        chunks
    }
}

impl Drop for HostRun {
    fn drop(&mut self) {
        if self.len > 0 {
            self.pool.release(self.segment, self.start, self.len);
        }
    }
}

struct Slot {
    pool: Arc<HostPool>,
    segment: usize,
    slot: usize,
    base: *mut u8,
    len: usize,
}

// SAFETY: a slot is only read once it is shared, and its memory outlives it through `pool`.
unsafe impl Send for Slot {}
// SAFETY: as above.
unsafe impl Sync for Slot {}

impl AsRef<[u8]> for Slot {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: the slot is owned by this value and was filled before it was made; len ≤ SLOT.
        unsafe { std::slice::from_raw_parts(self.base.add(self.slot * SLOT), self.len) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.pool.release(self.segment, self.slot, 1);
    }
}
