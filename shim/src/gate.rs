//! The gate: no thread of the job is inside the driver while the job is checkpointed.
//!
//! The driver's own lock holds back calls that enqueue. It does not hold back queries, and a thread that polls
//! `cuStreamQuery` while the control state is checkpointed reads pages that are gone, which kills the process
//! (docs/driver.md). So every entry point counts its caller in and out, and the gate closes in two steps:
//!
//! | state | work ([`enter`]) | everything else ([`enter_query`]) |
//! |---|---|---|
//! | open | passes | passes |
//! | counting: memory that the job may overwrite has not left the GPU yet, or a certain wait is looked for | passes while there is credit | passes |
//! | closing: the contexts are still being waited for | waits | passes, counted |
//! | closed | waits | waits |
//!
//! Calls that block until GPU work is done, and host callbacks on threads of the driver's that ask something, can
//! therefore end while the contexts become idle; then they are held as well.
//!
//! # How threads and the closer agree
//!
//! Each thread has a slot of its own. Entering is a plain store to the slot and a load of the gate; leaving is a store. The
//! store must be visible before the load is done, which costs a fence on each call, unless the closer makes every thread
//! of the process pass one: `membarrier(PRIVATE_EXPEDITED)` between closing the gate and reading the slots. Either
//! the thread then sees the gate, or the closer sees the slot. Where the kernel refuses `membarrier`, threads fence.
//!
//! # Turns
//!
//! Work that needs a thread of the host to continue would wait for ever behind a closed gate, and so would the gate. While the
//! gate is closing, the closer may give every thread that waits one call ([`begin_turn`], [`end_turn`]). A thread that takes its
//! turn says in its slot that it is inside before it looks whether the turn lasts; the closer ends the turn before it looks at
//! the slots.
//!
//! # Credit
//!
//! After a checkpoint the gate may open for so many calls of work alone ([`open_for`]), which were seen to leave alone what is still
//! being copied. A call beyond those waits, outside, until the gate opens entirely or closes. The calls of a gate that is open are not counted;
//! while somebody wants to know how many a thread makes from one wait to the next ([`count`]), the gate opens for any number of calls instead.
//!
//! A thread that is inside may enter again (the driver calls itself through exported names); a host callback runs on a
//! thread of the driver's, which is outside. Threads of the shim's own are never held ([`exempt`]).

use std::cell::Cell;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence,
};

/// Slots for threads; further threads share counters, which costs them an atomic addition a call.
const SLOTS: usize = 4096;

const OPEN: u32 = 0;
const COUNTING: u32 = 2;
const CLOSING: u32 = 3;
const CLOSED: u32 = 4;

/// What a slot says: the thread is outside.
const OUTSIDE: u32 = 0;

/// What a call is to the gate. The numbers are what slots hold, and the states in which the call passes are those
/// whose sum with it is below [`HELD`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
enum Level {
    /// Everything that is not work.
    Query = 1,
    /// It enqueues, or changes or asks about memory that may be unmapped.
    Work = 3,
}

const HELD: u32 = 5;

#[repr(align(64))]
struct Slot {
    inside: AtomicU32,
    /// The thread that has the slot; 0: nobody.
    owner: AtomicI32,
}

static SLOT: [Slot; SLOTS] = [const {
    Slot {
        inside: AtomicU32::new(OUTSIDE),
        owner: AtomicI32::new(0),
    }
}; SLOTS];
/// No slot from here on was ever taken.
static USED: AtomicUsize = AtomicUsize::new(0);
/// Calls of threads without a slot, by [`Level`].
static SHARED: [AtomicU32; 4] = [const { AtomicU32::new(0) }; 4];

/// The slot of every thread that is exempt: always inside, and never looked at.
static EXEMPT: Slot = Slot {
    inside: AtomicU32::new(Level::Query as u32),
    owner: AtomicI32::new(0),
};

static GATE: AtomicU32 = AtomicU32::new(OPEN);
/// Counts the turns: a thread that was waiting before the last one began may take it.
static TURN: AtomicU32 = AtomicU32::new(0);
/// Whether a turn may be taken.
static TURN_LASTS: AtomicBool = AtomicBool::new(false);
/// While the gate is counting: how many calls of work may still pass.
static CREDIT: AtomicU64 = AtomicU64::new(0);
/// Whether calls are counted whenever the gate is open.
static COUNTS: AtomicBool = AtomicBool::new(false);
/// Threads that take one from it, or have and do not say yet that they are inside.
static SPENDERS: AtomicU32 = AtomicU32::new(0);
/// Whether one had to wait since the gate was opened for so many.
static SPENT: AtomicBool = AtomicBool::new(false);
/// Whether the closer fences for everybody.
static ASYMMETRIC: AtomicBool = AtomicBool::new(false);
/// Whether a call of a thread that was already inside may have enqueued work since the gate began to close.
static NESTED: AtomicBool = AtomicBool::new(false);

struct Local {
    slot: Cell<Option<&'static Slot>>,
    /// No slot was left for it.
    shares: Cell<bool>,
    /// What it is inside as, where it shares counters.
    level: Cell<u32>,
    /// How many calls without a proof ([`enter_unscoped`]) are inside another call.
    nested: Cell<u32>,
    /// Calls of work that it has made while the gate was counting, since its last wait.
    made: Cell<u32>,
    /// The watch during which that wait was.
    watch: Cell<u32>,
}

#[cfg(not(target_arch = "x86_64"))]
impl Local {
    const fn new() -> Self {
        Self {
            slot: Cell::new(None),
            shares: Cell::new(false),
            level: Cell::new(0),
            nested: Cell::new(0),
            made: Cell::new(0),
            watch: Cell::new(0),
        }
    }
}

/// This thread's record. In a preloaded library, `thread_local!` is a call of the loader's for each access, which would be
/// most of what the gate costs: so the place is reserved by hand, in the block that every thread begins with (the
/// initial-exec model, which what is loaded at the start of a program may use). It is zero at first.
#[cfg(target_arch = "x86_64")]
mod local {
    std::arch::global_asm!(
        ".section .tbss.phos_gate_local,\"awT\",@nobits",
        ".balign 32",
        ".globl phos_gate_local",
        ".hidden phos_gate_local",
        ".type phos_gate_local, @object",
        ".size phos_gate_local, 32",
        "phos_gate_local:",
        ".zero 32",
        ".text",
    );

    const _: () = assert!(size_of::<super::Local>() <= 32 && align_of::<super::Local>() <= 32);

    #[inline(always)]
    pub fn get() -> *const super::Local {
        let at: *const super::Local;
        // SAFETY: reads the offset of the record in the thread's block and adds where the block is.
        unsafe {
            std::arch::asm!(
                "mov {at}, qword ptr [rip + phos_gate_local@GOTTPOFF]",
                "add {at}, qword ptr fs:[0]",
                at = out(reg) at,
                options(pure, readonly, nostack),
            );
        }
        at
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod local {
    thread_local! {
        // No destructor: one would take the loader's lock at its registration.
        static LOCAL: super::Local = const { super::Local::new() };
    }

    #[inline]
    pub fn get() -> *const super::Local {
        LOCAL.with(std::ptr::from_ref)
    }
}

#[inline]
fn local() -> &'static Local {
    // SAFETY: this thread's own record, all zero at first, which is valid: no slot, outside. It is used by this thread
    // only, and lives as long as the thread, which is as long as anybody here keeps the reference.
    unsafe { &*local::get() }
}

/// Proof of being inside; leaves when dropped. Stays on its thread.
#[must_use]
pub struct Inside(Entered);

#[derive(Clone, Copy)]
enum Entered {
    /// Inside by the thread's own slot.
    Slot(&'static Slot),
    /// Inside by the counters that threads without a slot share.
    Shared(&'static Local),
    /// Inside another call, which ends it.
    Nested,
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        end(self.0);
    }
}

/// Enters for work, waiting while the gate is closing or closed.
#[inline]
pub fn enter() -> Inside {
    Inside(begin(Level::Work))
}

/// Whether this thread is inside, or is never held.
pub fn is_inside() -> bool {
    let local = local();
    match local.slot.get() {
        Some(slot) => slot.inside.load(Ordering::Relaxed) != OUTSIDE,
        None => local.level.get() != 0,
    }
}

/// [`enter`], but instead of waiting none: for who holds a descriptor that must not be open in a process that is dumped.
pub fn try_enter() -> Option<Inside> {
    let local = local();
    let held = || match GATE.load(Ordering::SeqCst) {
        // It passes only if the gate is as it was then.
        COUNTING => !spend() || !may_pass(Level::Work, &Way::Credit),
        state => state + Level::Work as u32 >= HELD,
    };
    if is_inside() {
        // Who is inside already is never held.
        return Some(enter());
    }
    if let Some(slot) = local.slot.get() {
        slot.inside.store(Level::Work as u32, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if held() {
            slot.inside.store(OUTSIDE, Ordering::SeqCst);
            return None;
        }
        return Some(Inside(Entered::Slot(slot)));
    }
    let counter = &SHARED[Level::Work as usize];
    counter.fetch_add(1, Ordering::SeqCst);
    if held() {
        counter.fetch_sub(1, Ordering::SeqCst);
        return None;
    }
    local.level.set(Level::Work as u32);
    Some(Inside(Entered::Shared(local)))
}

/// Enters for a call that neither enqueues nor looks at memory, waiting while the gate is closed.
#[inline]
pub fn enter_query() -> Inside {
    Inside(begin(Level::Query))
}

/// As [`enter`], for callers that cannot hold the proof; to be followed by [`leave`] on the same thread.
pub fn enter_unscoped() {
    if let Entered::Nested = begin(Level::Work) {
        let local = local();
        local.nested.set(local.nested.get() + 1);
    }
}

/// Leaves what [`enter_unscoped`] entered last on this thread.
pub fn leave() {
    let local = local();
    match (local.nested.get(), local.slot.get()) {
        (0, Some(slot)) => end(Entered::Slot(slot)),
        (0, None) => end(Entered::Shared(local)),
        (nested, _) => local.nested.set(nested - 1),
    }
}

#[inline]
fn begin(level: Level) -> Entered {
    let local = local();
    match local.slot.get() {
        // What is counted is what the slot says: a counter of its own would cost as much again.
        Some(slot) if slot.inside.load(Ordering::Relaxed) == OUTSIDE => begin_with(slot, level),
        _ => begin_otherwise(local, level),
    }
}

#[inline]
fn begin_with(slot: &'static Slot, level: Level) -> Entered {
    slot.inside.store(level as u32, Ordering::Relaxed);
    order();
    if GATE.load(Ordering::Acquire) + level as u32 >= HELD {
        wait_outside(&slot.inside, level);
    }
    Entered::Slot(slot)
}

#[inline]
fn end(entered: Entered) {
    match entered {
        Entered::Slot(slot) => slot.inside.store(OUTSIDE, Ordering::Release),
        Entered::Shared(local) => {
            let level = local.level.replace(0);
            SHARED[level as usize].fetch_sub(1, Ordering::SeqCst);
        }
        Entered::Nested => {}
    }
}

/// The store to the slot before, the load of the gate after; see the module's page.
#[inline]
fn order() {
    if ASYMMETRIC.load(Ordering::Relaxed) {
        compiler_fence(Ordering::SeqCst);
    } else {
        fence(Ordering::SeqCst);
    }
}

/// Inside another call, for the first time on this thread, or without a slot.
#[inline(never)]
fn begin_otherwise(local: &'static Local, level: Level) -> Entered {
    if local.slot.get().is_some() || local.level.get() != 0 {
        if level == Level::Work && GATE.load(Ordering::Relaxed) != OPEN {
            NESTED.store(true, Ordering::SeqCst);
        }
        return Entered::Nested;
    }
    if !local.shares.get() {
        if let Some(slot) = claim() {
            local.slot.set(Some(slot));
            return begin_with(slot, level);
        }
        local.shares.set(true);
    }
    let counter = &SHARED[level as usize];
    let mut way = Way::Open;
    loop {
        counter.fetch_add(1, Ordering::SeqCst);
        way.is_said();
        if may_pass(level, &way) {
            local.level.set(level as u32);
            return Entered::Shared(local);
        }
        counter.fetch_sub(1, Ordering::SeqCst);
        way = wait_while_held(level);
    }
}

/// A slot for this thread: one that was never used, else one of a thread that has ended.
fn claim() -> Option<&'static Slot> {
    // SAFETY: no arguments.
    let me = unsafe { libc::gettid() };
    let mut used = USED.load(Ordering::Relaxed);
    while used < SLOTS {
        match USED.compare_exchange_weak(used, used + 1, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => {
                SLOT[used].owner.store(me, Ordering::Release);
                return SLOT.get(used);
            }
            Err(now) => used = now,
        }
    }
    SLOT.iter().find(|slot| {
        let owner = slot.owner.load(Ordering::Acquire);
        owner != 0
            && has_ended(owner)
            && slot
                .owner
                .compare_exchange(owner, me, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
    })
}

fn has_ended(thread: i32) -> bool {
    // SAFETY: signal 0 only asks whether the thread is there.
    let result = unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread, 0) };
    result != 0 && std::io::Error::last_os_error().raw_os_error() == Some(libc::ESRCH)
}

#[cold]
fn wait_outside(inside: &AtomicU32, level: Level) {
    loop {
        inside.store(OUTSIDE, Ordering::SeqCst);
        let way = wait_while_held(level);
        inside.store(level as u32, Ordering::SeqCst);
        way.is_said();
        fence(Ordering::SeqCst);
        if may_pass(level, &way) {
            return;
        }
    }
}

/// Whether a thread that has said that it is inside may pass the gate.
fn may_pass(level: Level, way: &Way) -> bool {
    let state = GATE.load(Ordering::SeqCst);
    state + (level as u32) < HELD
        || *way == Way::Credit && state == COUNTING
        || *way == Way::Turn && TURN_LASTS.load(Ordering::SeqCst)
}

/// Why a thread stops waiting at the gate.
#[derive(PartialEq, Eq)]
enum Way {
    /// The gate no longer holds its call back.
    Open,
    /// A turn has begun: the thread may make one call.
    Turn,
    /// One call was taken from the credit.
    Credit,
}

impl Way {
    /// The thread says that it is inside.
    fn is_said(&self) {
        if *self == Way::Credit {
            SPENDERS.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Takes one call from the credit, if there is one left.
fn spend() -> bool {
    let take = |credit: u64| credit.checked_sub(1);
    let taken = CREDIT.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take);
    if taken.is_err() {
        SPENT.store(true, Ordering::SeqCst);
        return false;
    }
    let made = &local().made;
    made.set(made.get().saturating_add(1));
    true
}

/// How many calls of work this thread has made since it was here last; none: not in this watch, so that they were not all counted.
pub fn calls_since_wait(watch: u32) -> Option<u32> {
    let local = local();
    let made = local.made.replace(0);
    (local.watch.replace(watch) == watch).then_some(made)
}

fn wait_while_held(level: Level) -> Way {
    let turn = TURN.load(Ordering::SeqCst);
    loop {
        let state = GATE.load(Ordering::SeqCst);
        if state + (level as u32) < HELD {
            return Way::Open;
        }
        if state == COUNTING {
            SPENDERS.fetch_add(1, Ordering::SeqCst);
            if spend() {
                return Way::Credit;
            }
            SPENDERS.fetch_sub(1, Ordering::SeqCst);
        }
        if TURN.load(Ordering::SeqCst) != turn {
            return Way::Turn;
        }
        // An interrupted or spurious return only looks again.
        let _ =
            rustix::thread::futex::wait(&GATE, rustix::thread::futex::Flags::PRIVATE, state, None);
    }
}

/// While the gate is closing: every thread that waits may make one call.
pub fn begin_turn() {
    TURN_LASTS.store(true, Ordering::SeqCst);
    TURN.fetch_add(1, Ordering::SeqCst);
    wake();
}

/// For a thread that was about to sleep when the turn began, or when there was credit again.
pub fn remind() {
    wake();
}

/// A thread that has not taken its turn continues to wait; one that has is inside ([`is_quiet`]).
pub fn end_turn() {
    TURN_LASTS.store(false, Ordering::SeqCst);
    fence(Ordering::SeqCst);
}

fn wake() {
    // It can fail only for a bad address.
    let _ =
        rustix::thread::futex::wake(&GATE, rustix::thread::futex::Flags::PRIVATE, u32::MAX >> 1);
}

/// Never holds this thread back from now on: it is one of the shim's, which works while the gate is closed.
pub fn exempt() {
    local().slot.set(Some(&EXEMPT));
}

const MEMBARRIER_PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const MEMBARRIER_REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: integers only.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Has the closer fence for everybody from now on, where the kernel can.
pub fn start() {
    if membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED) && membarrier(MEMBARRIER_PRIVATE_EXPEDITED)
    {
        ASYMMETRIC.store(true, Ordering::SeqCst);
    }
}

/// Every thread of the process sees the state of the gate from here on, or its slot is seen. False: the kernel, which
/// could, no longer does.
fn publish() -> bool {
    fence(Ordering::SeqCst);
    if !ASYMMETRIC.load(Ordering::SeqCst) {
        return true;
    }
    // A process that was restored may have to register again.
    membarrier(MEMBARRIER_PRIVATE_EXPEDITED)
        || membarrier(MEMBARRIER_REGISTER_PRIVATE_EXPEDITED)
            && membarrier(MEMBARRIER_PRIVATE_EXPEDITED)
}

/// Begins to close: work is held. Calls inside continue; see [`is_quiet`]. False: it cannot be told who is inside, and the gate
/// is open again.
#[must_use]
pub fn close() -> bool {
    NESTED.store(false, Ordering::SeqCst);
    GATE.store(CLOSING, Ordering::SeqCst);
    let known = publish();
    if !known {
        open();
    }
    known
}

/// Begins to close, on a thread of the application's that is inside: it makes no other call before the closer has. The closer
/// still has to [`close`], before it looks who is inside.
pub fn hold() {
    GATE.store(CLOSING, Ordering::SeqCst);
}

/// Closes for every call. False: as with [`close`].
#[must_use]
pub fn close_entirely() -> bool {
    GATE.store(CLOSED, Ordering::SeqCst);
    let known = publish();
    if !known {
        open();
    }
    known
}

fn nobody_inside(above: u32) -> bool {
    let used = USED.load(Ordering::Acquire).min(SLOTS);
    // Each slot by itself: after the state is published, nobody passes in a slot that was seen empty.
    SLOT[..used]
        .iter()
        .all(|s| s.inside.load(Ordering::Acquire) <= above)
        && SHARED
            .iter()
            .skip(above as usize + 1)
            .all(|s| s.load(Ordering::SeqCst) == 0)
}

/// Whether, since [`close`], all work that was inside has left. Once true it stays true until [`open`].
pub fn is_quiet() -> bool {
    nobody_inside(Level::Query as u32)
}

/// Whether, since [`close_entirely`], every call has left. Once true it stays true until [`open`].
pub fn is_idle() -> bool {
    nobody_inside(OUTSIDE)
}

/// Whether a call inside another one may have enqueued work since [`close`]: the contexts have to be waited for again.
pub fn was_nested() -> bool {
    NESTED.swap(false, Ordering::SeqCst)
}

/// Threads that ended inside a call (`pthread_exit` in a callback, cancellation) are no longer inside.
pub fn forget_the_dead() {
    for slot in &SLOT[..USED.load(Ordering::Acquire).min(SLOTS)] {
        let owner = slot.owner.load(Ordering::Acquire);
        if slot.inside.load(Ordering::Acquire) != OUTSIDE && owner != 0 && has_ended(owner) {
            slot.inside.store(OUTSIDE, Ordering::Release);
        }
    }
}

/// Opens the gate and wakes the threads that wait.
pub fn open() {
    if COUNTS.load(Ordering::SeqCst) {
        return open_for(u64::MAX);
    }
    GATE.store(OPEN, Ordering::SeqCst);
    wake();
}

/// The calls of each thread are counted from when the gate is opened next.
pub fn begin_counting() {
    COUNTS.store(true, Ordering::SeqCst);
}

/// They are not counted any more from when the gate is opened next.
pub fn end_counting() {
    COUNTS.store(false, Ordering::SeqCst);
}

/// While the gate is counting: so many more calls of work may pass.
pub fn add_credit(calls: u64) {
    SPENT.store(false, Ordering::SeqCst);
    CREDIT.fetch_add(calls, Ordering::SeqCst);
    wake();
}

/// Opens the gate for so many calls of work; a gate that is counting forgets what was left.
pub fn open_for(calls: u64) {
    SPENT.store(false, Ordering::SeqCst);
    CREDIT.store(calls, Ordering::SeqCst);
    GATE.store(COUNTING, Ordering::SeqCst);
    wake();
}

/// Whether the gate is counting, all calls that it was opened for have been made and have returned, and another one waits.
pub fn is_spent() -> bool {
    GATE.load(Ordering::SeqCst) == COUNTING
        && SPENT.load(Ordering::SeqCst)
        && CREDIT.load(Ordering::SeqCst) == 0
        && SPENDERS.load(Ordering::SeqCst) == 0
        && publish()
        && is_quiet()
}

/// In a forked child, which has one thread: forget everybody else.
pub fn reset_in_child() {
    COUNTS.store(false, Ordering::SeqCst);
    GATE.store(OPEN, Ordering::SeqCst);
    SPENDERS.store(0, Ordering::SeqCst);
    for slot in &SLOT[..USED.load(Ordering::Relaxed).min(SLOTS)] {
        slot.inside.store(OUTSIDE, Ordering::Relaxed);
    }
    for counter in &SHARED {
        counter.store(0, Ordering::Relaxed);
    }
    // This thread has another number here, and keeps its slot.
    let slot = local().slot.get();
    if let Some(slot) = slot.filter(|slot| !std::ptr::eq(*slot, &EXEMPT)) {
        // SAFETY: no arguments.
        let me = unsafe { libc::gettid() };
        slot.owner.store(me, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicU64;
    use std::time::{Duration, Instant};

    use super::*;

    static ONE_GATE: Mutex<()> = Mutex::new(());

    fn wait_until(what: impl Fn() -> bool) {
        let start = Instant::now();
        while !what() {
            assert!(start.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
    }

    fn nobody_is_inside_while_closed() {
        static HELD: AtomicU32 = AtomicU32::new(OPEN);
        static DONE: AtomicBool = AtomicBool::new(false);
        static WORK: AtomicU64 = AtomicU64::new(0);
        static QUERIES: AtomicU64 = AtomicU64::new(0);
        DONE.store(false, Ordering::SeqCst);
        let done = || DONE.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done() {
                        let _a = enter();
                        let _nested = enter_query();
                        assert_eq!(HELD.load(Ordering::SeqCst), OPEN);
                        WORK.fetch_add(1, Ordering::Relaxed);
                        assert_eq!(HELD.load(Ordering::SeqCst), OPEN);
                    }
                });
                scope.spawn(|| {
                    while !done() {
                        let _a = enter_query();
                        assert_ne!(HELD.load(Ordering::SeqCst), CLOSED);
                        QUERIES.fetch_add(1, Ordering::Relaxed);
                        assert_ne!(HELD.load(Ordering::SeqCst), CLOSED);
                    }
                });
            }
            for _ in 0..50 {
                let before = (WORK.load(Ordering::SeqCst), QUERIES.load(Ordering::SeqCst));
                wait_until(|| {
                    WORK.load(Ordering::SeqCst) > before.0
                        && QUERIES.load(Ordering::SeqCst) > before.1
                });
                assert!(close());
                wait_until(is_quiet);
                HELD.store(CLOSING, Ordering::SeqCst);
                let work = WORK.load(Ordering::SeqCst);
                // Queries go on while the contexts would be waited for, work does not.
                let queries = QUERIES.load(Ordering::SeqCst);
                wait_until(|| QUERIES.load(Ordering::SeqCst) > queries + 2);
                assert!(close_entirely());
                wait_until(is_idle);
                HELD.store(CLOSED, Ordering::SeqCst);
                let queries = QUERIES.load(Ordering::SeqCst);
                for _ in 0..20 {
                    std::thread::yield_now();
                }
                assert_eq!(work, WORK.load(Ordering::SeqCst));
                assert_eq!(queries, QUERIES.load(Ordering::SeqCst));
                HELD.store(OPEN, Ordering::SeqCst);
                open();
            }
            DONE.store(true, Ordering::SeqCst);
        });
        assert!(is_idle());
    }

    #[test]
    fn a_counting_gate_lets_so_many_calls_pass_and_no_more() {
        static DONE: AtomicBool = AtomicBool::new(false);
        static WORK: AtomicU64 = AtomicU64::new(0);
        static QUERIES: AtomicU64 = AtomicU64::new(0);
        let _one = crate::sync::lock(&ONE_GATE);
        start();
        let work = || WORK.load(Ordering::SeqCst);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    while !DONE.load(Ordering::SeqCst) {
                        let _inside = enter();
                        WORK.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            scope.spawn(|| {
                while !DONE.load(Ordering::SeqCst) {
                    let _inside = enter_query();
                    QUERIES.fetch_add(1, Ordering::SeqCst);
                }
            });
            wait_until(|| work() > 0);
            let mut expected = None;
            for credit in [0, 1, 100, 7] {
                // From a closed gate, as after a checkpoint, and then from one that is counting.
                let before = expected.unwrap_or_else(|| {
                    assert!(close_entirely());
                    wait_until(is_idle);
                    work()
                });
                match expected {
                    None => open_for(credit),
                    Some(_) => add_credit(credit),
                }
                wait_until(|| {
                    remind();
                    is_spent()
                });
                assert_eq!(work(), before + credit);
                expected = Some(before + credit);
                let queries = QUERIES.load(Ordering::SeqCst);
                wait_until(|| QUERIES.load(Ordering::SeqCst) > queries + 2);
            }
            let before = work();
            assert!(try_enter().is_none(), "who does not wait passes neither");
            // It closes as any other, and what was left of a credit is gone when it opens.
            open_for(u64::MAX);
            wait_until(|| work() > before + 100);
            assert!(close());
            wait_until(is_quiet);
            let closed = work();
            assert!(!is_spent());
            open();
            wait_until(|| work() > closed + 100);
            DONE.store(true, Ordering::SeqCst);
        });
    }

    #[test]
    fn a_turn_is_one_call_and_then_everybody_waits_again() {
        static DONE: AtomicBool = AtomicBool::new(false);
        static CALLS: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
        let _one = crate::sync::lock(&ONE_GATE);
        start();
        let calls = || CALLS.each_ref().map(|calls| calls.load(Ordering::SeqCst));
        std::thread::scope(|scope| {
            for mine in &CALLS {
                scope.spawn(|| {
                    while !DONE.load(Ordering::SeqCst) {
                        let _inside = enter();
                        mine.fetch_add(1, Ordering::SeqCst);
                    }
                });
            }
            wait_until(|| calls().iter().all(|n| *n > 0));
            assert!(close());
            wait_until(is_quiet);
            let begun = Instant::now();
            let mut taken = 0;
            while taken < 30 {
                assert!(begun.elapsed() < Duration::from_secs(10));
                let before = calls();
                begin_turn();
                std::thread::yield_now();
                end_turn();
                wait_until(is_quiet);
                let after = calls();
                for _ in 0..20 {
                    std::thread::yield_now();
                }
                assert_eq!(after, calls(), "nobody goes on after the turn");
                let each = after
                    .iter()
                    .zip(&before)
                    .map(|(after, before)| after - before);
                assert!(each.clone().all(|calls| calls <= 1), "{before:?} {after:?}");
                taken += each.sum::<u64>();
            }
            DONE.store(true, Ordering::SeqCst);
            open();
        });
    }

    #[test]
    fn who_may_not_wait_is_told() {
        let _one = crate::sync::lock(&ONE_GATE);
        let inside = enter();
        assert!(try_enter().is_some(), "inside already");
        drop(inside);
        assert!(close());
        assert!(try_enter().is_none() && is_quiet());
        assert!(close_entirely());
        assert!(try_enter().is_none() && is_idle());
        open();
        let inside = try_enter().unwrap();
        assert!(!is_idle());
        drop(inside);
        assert!(is_idle());
    }

    #[test]
    fn nobody_is_inside_while_closed_and_idle() {
        let _one = crate::sync::lock(&ONE_GATE);
        // Threads fence; then the closer does.
        ASYMMETRIC.store(false, Ordering::SeqCst);
        nobody_is_inside_while_closed();
        start();
        assert!(
            ASYMMETRIC.load(Ordering::SeqCst),
            "this kernel has membarrier"
        );
        nobody_is_inside_while_closed();
    }

    #[test]
    fn threads_beyond_the_slots_are_held_as_well_and_slots_of_the_dead_are_used_again() {
        let _one = crate::sync::lock(&ONE_GATE);
        start();
        let taken = USED.swap(SLOTS, Ordering::SeqCst);
        // SAFETY: no arguments.
        let me = unsafe { libc::gettid() };
        let owners: Vec<i32> = SLOT
            .iter()
            .map(|s| s.owner.swap(me, Ordering::SeqCst))
            .collect();
        std::thread::spawn(|| {
            let inside = enter();
            assert!(local().slot.get().is_none() && local().shares.get());
            assert!(close());
            assert!(!is_quiet());
            drop(inside);
            assert!(is_quiet());
            open();
        })
        .join()
        .unwrap();
        // A number that no thread has: the limit of process numbers is below it.
        SLOT[7].owner.store(i32::MAX, Ordering::SeqCst);
        std::thread::spawn(|| {
            drop(enter_query());
            let slot = local().slot.get().unwrap();
            assert!(std::ptr::eq(slot, &SLOT[7]));
        })
        .join()
        .unwrap();
        for (slot, owner) in SLOT.iter().zip(owners) {
            slot.owner.store(owner, Ordering::SeqCst);
        }
        USED.store(taken, Ordering::SeqCst);
    }

    #[test]
    fn who_ended_inside_is_forgotten_and_the_exempt_are_never_held() {
        let _one = crate::sync::lock(&ONE_GATE);
        start();
        let ended = std::thread::spawn(|| {
            enter_unscoped();
            // SAFETY: no arguments.
            unsafe { libc::gettid() }
        })
        .join()
        .unwrap();
        assert!(close());
        wait_until(|| has_ended(ended));
        assert!(!is_quiet());
        forget_the_dead();
        assert!(is_quiet());
        assert!(close_entirely());
        std::thread::spawn(|| {
            exempt();
            drop(enter());
            drop(enter_query());
        })
        .join()
        .unwrap();
        assert!(was_nested());
        open();
    }

    /// `cargo test --release -p phos-shim -- --ignored --nocapture cost_of_the_gate`
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_the_gate() {
        let _one = crate::sync::lock(&ONE_GATE);
        for asymmetric in [false, true] {
            ASYMMETRIC.store(false, Ordering::SeqCst);
            if asymmetric {
                start();
            }
            for threads in [1, 2] {
                const ROUNDS: u32 = 20_000_000;
                let start = Instant::now();
                std::thread::scope(|scope| {
                    for _ in 0..threads {
                        scope.spawn(|| {
                            for _ in 0..ROUNDS {
                                drop(std::hint::black_box(enter()));
                            }
                        });
                    }
                });
                let ns = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
                println!(
                    "gate, {threads} thread(s), membarrier {asymmetric}: {ns:.1} ns per enter and leave"
                );
            }
        }
    }
}
