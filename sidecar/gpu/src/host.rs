//! Pinned host memory, handed out in slots of one chunk: the bound on what the sidecar holds of the
//! job's memory at any time.
//!
//! ```text
//!   pool (its bound: --host-buffer)
//!   ├─ segment 64 MiB, pinned on first use ─ slot 1 MiB │ slot │ slot │ …
//!   └─ …
//! ```
//!
//! # Rules
//!
//! * A run is up to [`MAX_RUN`] neighbouring slots, so that one copy fills many chunks.
//! * After the copy, each chunk of a run is a [`Bytes`] over its slot; the slot is free again when the last clone of that `Bytes`
//!   is gone. Storing the chunk needs no copy.
//! * Waiting for a slot is how the pipeline slows down. It ends when the wait is cancelled.
//! * The bound may change at any time. Segments above it are given back to the system as soon as nobody uses a slot of them.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::error::GpuError;
use super::platform::{Gpu, PinnedMemory};

/// The size of a slot in bytes: that of the largest chunk.
pub const SLOT: usize = 1 << 20;

/// The most slots in a run: one copy of 16 MiB.
pub const MAX_RUN: usize = 16;

const SEGMENT_SLOTS: usize = 64;

/// How long the host is not asked again that had no memory.
const REFUSED: Duration = Duration::from_secs(10);

/// How long the thread that adjusts the pool rests at most before it looks again.
const REST: Duration = Duration::from_millis(20);

/// The pool grows and shrinks by so many bytes.
pub const SEGMENT: u64 = (SLOT * SEGMENT_SLOTS) as u64;
// A bit of `Segment::used` for each.
const _: () = assert!(SEGMENT_SLOTS == u64::BITS as usize && MAX_RUN <= SEGMENT_SLOTS);

/// Pinned memory of [`SEGMENT_SLOTS`] slots. It lives until the pool is dropped; `used` decides, under the pool's lock, who may
/// touch which slot.
struct Segment {
    memory: Box<dyn PinnedMemory>,
    used: u64,
}

struct State {
    /// `None`: given back to the system. The holder of a slot knows its segment by its place here.
    segments: Vec<Option<Segment>>,
    /// Segments that are there.
    pinned: usize,
    /// The most segments that are to be there.
    most: usize,
    /// So many of them are to be pinned before they are needed.
    ahead: usize,
    /// As many as may be pinned in the middle of a stop: the first bound.
    floor: usize,
    /// A thread makes as many of them as are to be.
    adjusting: bool,
    /// What is too much is given back in the middle of a stop as well: the host has too little.
    urgent: bool,
    /// The host had no more memory to give: it is not asked again before this time.
    not_before: Option<Instant>,
    /// Slots that nobody uses.
    free: usize,
    /// Segment where the last run was found: those before it are likely to be full.
    hint: usize,
    /// How many want no memory pinned in the background now.
    quiet: usize,
}

/// Pins so many bytes.
type Pin = Box<dyn Fn(usize) -> Result<Box<dyn PinnedMemory>, GpuError> + Send + Sync>;

/// A bounded pool of pinned host memory, handed out in runs of slots.
pub struct HostPool {
    pin: Pin,
    state: Mutex<State>,
    freed: Condvar,
    /// Wakes the thread that adjusts the pool, and those that wait for it.
    adjust: Condvar,
}

impl HostPool {
    /// A pool of at most `bytes` (at least one segment), pinned through this GPU's context and
    /// usable with all.
    pub fn new(gpu: &Arc<dyn Gpu>, bytes: u64) -> Arc<HostPool> {
        let gpu = Arc::clone(gpu);
        HostPool::with(Box::new(move |bytes| Arc::clone(&gpu).pin(bytes)), bytes)
    }

    fn with(pin: Pin, bytes: u64) -> Arc<HostPool> {
        Arc::new(HostPool {
            pin,
            state: Mutex::new(State {
                segments: Vec::new(),
                pinned: 0,
                most: segments(bytes),
                ahead: 0,
                floor: segments(bytes),
                adjusting: false,
                urgent: false,
                not_before: None,
                free: 0,
                hint: 0,
                quiet: 0,
            }),
            freed: Condvar::new(),
            adjust: Condvar::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pins what is missing, and gives back what is too much and not used, in a thread of its own, so that no stop pays for
    /// it: pinning takes longer than copying. It ends early when the pool is no longer used or the host has no more; rests
    /// while [`HostPool::pause_pinning`] is in force.
    fn adjust_in_background(self: &Arc<Self>) {
        if std::mem::replace(&mut self.lock().adjusting, true) {
            self.adjust.notify_all();
            return;
        }
        let pool = Arc::downgrade(self);
        let adjust = move || {
            while let Some(pool) = pool.upgrade() {
                if !pool.adjust_on() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("phos-pin".into());
        if thread.spawn(adjust).is_err() {
            // Without the thread the pool grows when it is needed.
            self.lock().adjusting = false;
        }
    }

    /// Pins one more segment, gives some back, or rests. False: that was all.
    fn adjust_on(&self) -> bool {
        let surplus = {
            let mut state = self.lock();
            let is_enough = state.pinned >= state.target() || !state.may_ask();
            if is_enough && state.pinned <= state.most {
                state.adjusting = false;
                state.urgent = false;
                self.adjust.notify_all();
                return false;
            }
            let surplus = if state.gives_back() {
                state.surplus()
            } else {
                Vec::new()
            };
            if surplus.is_empty() && (state.quiet > 0 || state.pinned > state.most) {
                // Whatever wakes it: it looks again.
                drop(self.adjust.wait_timeout(state, REST));
                return true;
            }
            surplus
        };
        if !surplus.is_empty() {
            // Not under the lock, as below: the system takes its time.
            drop(surplus);
            return true;
        }
        // Who wants a slot that is free must not wait for pinning.
        let segment = self.pin();
        let mut state = self.lock();
        let surplus = match segment {
            Ok(segment) => self.add(&mut state, segment),
            Err(_) => {
                // What is pinned already will do.
                state.not_before = Some(Instant::now() + REFUSED);
                None
            }
        };
        drop(state);
        drop(surplus);
        true
    }

    /// Has so many bytes, as far as the bound allows, pinned in the background before they are needed.
    pub fn prepare(self: &Arc<Self>, bytes: u64) {
        // Rounded up: what is missing would be pinned while the job is held.
        self.lock().ahead = segments(bytes.saturating_add(SEGMENT - 1));
        self.adjust_in_background();
    }

    /// Whether all of that is pinned.
    pub fn is_prepared(&self) -> bool {
        let state = self.lock();
        state.pinned >= state.target()
    }

    /// Changes the bound. What is missing is pinned in the background, what is too much is given back there as soon as it is not
    /// used.
    pub fn resize(self: &Arc<Self>, bytes: u64) {
        {
            let mut state = self.lock();
            state.most = segments(bytes);
            state.not_before = None;
        }
        self.adjust_in_background();
    }

    /// The same where the host has too little memory: a stop that is under way does not keep what is too much.
    pub fn give_back(self: &Arc<Self>, bytes: u64) {
        self.lock().urgent = true;
        self.resize(bytes);
    }

    /// Waits until nothing more is pinned in the background, or until then; bytes that are pinned.
    pub fn wait_filled(&self, until: Instant) -> u64 {
        let mut state = self.lock();
        while state.adjusting && state.pinned < state.target() {
            let Some(left) = until.checked_duration_since(Instant::now()) else {
                break;
            };
            state = self
                .adjust
                .wait_timeout(state, left.min(REST))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.pinned as u64 * SEGMENT
    }

    /// No memory is pinned in the background until the guard is dropped: pinning takes the driver's locks, and
    /// with them the time of a job that is held.
    pub fn pause_pinning(self: &Arc<Self>) -> Quiet {
        self.lock().quiet += 1;
        Quiet(Arc::clone(self))
    }

    fn pin(&self) -> Result<Segment, GpuError> {
        let memory = (self.pin)(SLOT * SEGMENT_SLOTS)?;
        Ok(Segment { memory, used: 0 })
    }

    /// Takes a new segment in; gives it back, to be dropped without the lock, if the pool has grown to its bound meanwhile.
    #[must_use]
    fn add(&self, state: &mut State, segment: Segment) -> Option<Segment> {
        if state.pinned >= state.most {
            return Some(segment);
        }
        match state.segments.iter_mut().find(|place| place.is_none()) {
            Some(place) => *place = Some(segment),
            None => state.segments.push(Some(segment)),
        }
        state.pinned += 1;
        state.free += SEGMENT_SLOTS;
        self.freed.notify_one();
        None
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
        // During a stop no more is pinned than the little that is always allowed.
        let is_due = state.quiet == 0 || state.pinned < state.floor;
        let may_pin = (is_due && state.may_ask()) || state.pinned == 0;
        if state.free < slots && state.pinned < state.most && may_pin {
            match self.pin() {
                Ok(segment) => drop(self.add(state, segment)),
                Err(e) if state.pinned == 0 => return Err(e),
                // What is pinned already will do.
                Err(_) => state.not_before = Some(Instant::now() + REFUSED),
            }
        }
        Ok(())
    }

    /// The longest free run of at most `slots`.
    fn take(self: &Arc<Self>, state: &mut State, slots: usize) -> Option<HostRun> {
        let mut best: Option<(usize, usize, usize)> = None;
        let count = state.segments.len();
        let mut slots = slots;
        let mut first = state.hint;
        if state.pinned > state.most && state.gives_back() {
            // What is to be given back must become free: no more than the others have, and of those first.
            let used = state.pinned * SEGMENT_SLOTS - state.free;
            slots = slots.min((state.most * SEGMENT_SLOTS).saturating_sub(used));
            first = 0;
        }
        if slots == 0 {
            return None;
        }
        'search: for index in (0..count).map(|i| (first + i) % count) {
            let Some(segment) = state.segments[index].as_ref() else {
                continue;
            };
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
        let segment = state.segments[index].as_mut()?;
        segment.used |= mask(start, len);
        let base = segment.memory.base();
        state.free -= len;
        Some(HostRun {
            pool: Arc::clone(self),
            segment: index,
            start,
            len,
            base,
        })
    }

    fn release(&self, segment: usize, start: usize, len: usize) {
        let mut state = self.lock();
        if let Some(s) = state.segments.get_mut(segment).and_then(Option::as_mut) {
            s.used &= !mask(start, len);
            state.free += len;
        }
        let is_surplus = state.pinned > state.most;
        drop(state);
        if is_surplus {
            self.adjust.notify_all();
        }
        // The thread that pins waits here as well, and has no use for it.
        self.freed.notify_all();
    }

    /// The number of bytes that are pinned now.
    pub fn pinned(&self) -> u64 {
        self.lock().pinned as u64 * SEGMENT
    }

    /// Bytes that a stop can have now, without more being pinned than may be then.
    pub fn room(&self) -> u64 {
        let state = self.lock();
        let segments = state
            .pinned
            .max(state.floor)
            .min(state.most.max(state.pinned));
        let used = state.pinned * SEGMENT_SLOTS - state.free;
        (segments as u64)
            .saturating_mul(SEGMENT)
            .saturating_sub((used * SLOT) as u64)
    }

    /// The number of bytes that are handed out now.
    pub fn in_use(&self) -> u64 {
        let state = self.lock();
        state.pinned as u64 * SEGMENT - (state.free * SLOT) as u64
    }

    /// The most that the pool may pin, in bytes.
    pub fn limit(&self) -> u64 {
        (self.lock().most as u64).saturating_mul(SEGMENT)
    }
}

/// How many segments so many bytes are; at least one.
fn segments(bytes: u64) -> usize {
    usize::try_from(bytes / SEGMENT)
        .unwrap_or(usize::MAX)
        .max(1)
}

impl State {
    /// Segments that the background pins.
    fn target(&self) -> usize {
        self.ahead.min(self.most)
    }

    /// Whether the host may be asked for memory.
    fn may_ask(&self) -> bool {
        self.not_before.is_none_or(|at| Instant::now() >= at)
    }

    /// Whether what is too much is given back now. During a stop it is of use, and giving back takes the driver's locks.
    const fn gives_back(&self) -> bool {
        self.quiet == 0 || self.urgent
    }

    /// Takes segments that nobody uses out as long as there are more than are to be. To be dropped without the lock: the
    /// system takes its time.
    #[must_use]
    fn surplus(&mut self) -> Vec<Segment> {
        let too_many = self.pinned.saturating_sub(self.most);
        let unused = |place: &&mut Option<Segment>| place.as_ref().is_some_and(|s| s.used == 0);
        let taken: Vec<Segment> = (self.segments.iter_mut().rev())
            .filter(unused)
            .take(too_many)
            .filter_map(Option::take)
            .collect();
        self.pinned -= taken.len();
        self.free -= taken.len() * SEGMENT_SLOTS;
        taken
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
    /// The number of slots in the run.
    pub fn slots(&self) -> usize {
        self.len
    }

    /// The address of the run's first byte.
    pub(super) fn pointer(&self) -> *mut u8 {
        // SAFETY: start < SEGMENT_SLOTS, so this stays inside the segment.
        unsafe { self.base.add(self.start * SLOT) }
    }

    /// The bytes of the whole run, to be filled by the CPU.
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// What stands for pinned memory, counted.
    struct Plain(Vec<u8>, Arc<AtomicUsize>);

    // SAFETY: the vector is as long as was asked for and is never touched again.
    unsafe impl PinnedMemory for Plain {
        fn base(&self) -> *mut u8 {
            self.0.as_ptr().cast_mut()
        }
    }

    impl Drop for Plain {
        fn drop(&mut self) {
            self.1.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// A pool of so many segments, and how many are pinned.
    fn pool(segments: u64, most: usize) -> (Arc<HostPool>, Arc<AtomicUsize>) {
        let pinned = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&pinned);
        let pin = move |bytes| {
            if counted.load(Ordering::Relaxed) >= most {
                return Err(GpuError::NoGpu);
            }
            counted.fetch_add(1, Ordering::Relaxed);
            let memory = Plain(vec![0; bytes], Arc::clone(&counted));
            Ok(Box::new(memory) as Box<dyn PinnedMemory>)
        };
        (HostPool::with(Box::new(pin), segments * SEGMENT), pinned)
    }

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// Waits until it is so.
    fn until(what: &str, mut so: impl FnMut() -> bool) {
        let end = soon();
        while !so() {
            assert!(Instant::now() < end, "{what}");
            std::thread::yield_now();
        }
    }

    /// A part of a segment would be pinned while the job is held.
    #[test]
    fn what_is_prepared_is_there_to_its_last_byte() {
        let (pool, _) = pool(9, 100);
        pool.prepare(SEGMENT + 1);
        assert_eq!(pool.wait_filled(soon()), 2 * SEGMENT);
        pool.prepare(2 * SEGMENT);
        assert_eq!(pool.wait_filled(soon()), 2 * SEGMENT);
    }

    #[test]
    fn a_pool_grows_and_gives_back_what_nobody_uses() {
        let (pool, pinned) = pool(1, 100);
        pool.prepare(u64::MAX);
        assert_eq!(pool.wait_filled(soon()), SEGMENT);
        let first = pool.acquire(MAX_RUN, &|| false).unwrap();
        pool.resize(4 * SEGMENT);
        assert_eq!(pool.wait_filled(soon()), 4 * SEGMENT);
        assert_eq!(pool.limit(), 4 * SEGMENT);
        // All of it can be had at once.
        let mut runs: Vec<HostRun> = (0..4 * SEGMENT_SLOTS / MAX_RUN - 1)
            .map(|_| pool.try_acquire(MAX_RUN).unwrap().unwrap())
            .collect();
        assert!(pool.try_acquire(1).unwrap().is_none());
        assert_eq!(pool.in_use(), 4 * SEGMENT);

        // Nothing that is used goes, and nothing is used anew of what is to go.
        pool.resize(SEGMENT);
        let last = runs.pop().unwrap();
        drop(runs.pop());
        assert_eq!(pinned.load(Ordering::Relaxed), 4);
        assert!(pool.try_acquire(1).unwrap().is_none());
        drop(runs);
        drop(first);
        until("what nobody uses is given back", || {
            pinned.load(Ordering::Relaxed) <= 2
        });
        let chunks = last.into_chunks(&[SLOT; MAX_RUN]);
        assert_eq!(chunks.len(), MAX_RUN);
        drop(chunks);
        until("all of it is given back", || {
            (pool.in_use(), pinned.load(Ordering::Relaxed)) == (0, 1)
        });

        // What was given back is had again.
        pool.resize(2 * SEGMENT);
        assert_eq!(pool.wait_filled(soon()), 2 * SEGMENT);
        let run = pool.acquire(MAX_RUN, &|| false).unwrap();
        drop(pool);
        drop(run);
        // The thread may be looking at it still.
        until("nothing is left", || pinned.load(Ordering::Relaxed) == 0);
    }

    #[test]
    fn what_is_too_much_serves_a_stop_unless_the_host_is_short() {
        let (pool, pinned) = pool(3, 100);
        pool.prepare(u64::MAX);
        assert_eq!(pool.wait_filled(soon()), 3 * SEGMENT);
        let quiet = pool.pause_pinning();
        let held: Vec<HostRun> = (0..SEGMENT_SLOTS / MAX_RUN)
            .map(|_| pool.try_acquire(MAX_RUN).unwrap().unwrap())
            .collect();
        pool.resize(SEGMENT);
        // Beyond the bound, in the middle of a stop.
        let more = pool.try_acquire(MAX_RUN).unwrap();
        assert!(more.is_some());
        assert_eq!(pinned.load(Ordering::Relaxed), 3);
        pool.give_back(SEGMENT);
        assert!(pool.try_acquire(1).unwrap().is_none());
        drop((more, held));
        until("what nobody uses is given back", || {
            pinned.load(Ordering::Relaxed) == 1
        });
        drop(quiet);
    }

    #[test]
    fn a_host_without_more_memory_makes_do_with_what_it_gave() {
        let (pool, pinned) = pool(8, 3);
        pool.prepare(u64::MAX);
        assert_eq!(pool.wait_filled(soon()), 3 * SEGMENT);
        assert_eq!(
            (pinned.load(Ordering::Relaxed), pool.limit()),
            // It is what is wanted still.
            (3, 8 * SEGMENT)
        );
        let runs: Vec<HostRun> = (0..3 * SEGMENT_SLOTS / MAX_RUN)
            .map(|_| pool.try_acquire(MAX_RUN).unwrap().unwrap())
            .collect();
        assert!(pool.try_acquire(1).unwrap().is_none());
        drop(runs);
        assert_eq!(pool.in_use(), 0);
    }

    #[test]
    fn nothing_is_pinned_in_the_background_of_a_stop() {
        let (pool, pinned) = pool(4, 100);
        let quiet = pool.pause_pinning();
        pool.prepare(u64::MAX);
        let later = Instant::now() + Duration::from_millis(50);
        assert_eq!(pool.wait_filled(later), 0);
        assert_eq!(pinned.load(Ordering::Relaxed), 0);
        // Who needs memory at once has some made, up to the first bound.
        pool.resize(6 * SEGMENT);
        assert_eq!(pool.room(), 4 * SEGMENT);
        let runs: Vec<HostRun> = (0..4 * SEGMENT_SLOTS / MAX_RUN)
            .map(|_| pool.try_acquire(MAX_RUN).unwrap().unwrap())
            .collect();
        assert!(pool.try_acquire(1).unwrap().is_none());
        assert_eq!((pinned.load(Ordering::Relaxed), pool.room()), (4, 0));
        drop(runs);
        drop(quiet);
        assert_eq!(pool.wait_filled(soon()), 6 * SEGMENT);
    }
}
