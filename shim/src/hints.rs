//! What a program may tell phos-ft of itself, if it likes: the functions of `shim/include/phos_ft.h`.
//!
//! | function | effect |
//! |---|---|
//! | [`phos_ft_step`] | a step of training has ended: the place for a checkpoint |
//! | [`phos_ft_no_checkpoint`] | no checkpoint from here to the end of the section |
//! | [`phos_ft_checkpoint`] | a checkpoint as soon as can be |
//! | [`phos_ft_last`] | the newest checkpoint |
//!
//! # Rules
//!
//! * Nothing depends on hints: a program that says wrong ones, or stops saying any, is checkpointed as one that says none.
//! * Where nobody waits for a step, telling one costs what a call of the driver's costs at the gate. Where somebody does, the thread stays in
//!   [`phos_ft_step`] until the control thread has had a look ([`LINGER`] at most if it has none), outside the gate; then it waits at the gate.
//! * Only the number of the last step is kept.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use phos_protocol::shim::{Newest, ToAgent};

use crate::rendezvous::Rendezvous;
use crate::sync::{lock, wait};
use crate::{gate, link, mode};

/// How long a thread stays whose step nobody takes up. The control thread ends its stay, whatever it finds; this is for one that cannot.
const LINGER: Duration = Duration::from_secs(2);
/// How long the first question for the newest checkpoint waits for the agent.
const ANSWER: Duration = Duration::from_secs(1);

/// Where a thread that ends a step is awaited.
pub static STEP_ENDS: Rendezvous = Rendezvous::new();

/// Whether the program has used any of the functions.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether it tells steps.
static STEPS: AtomicBool = AtomicBool::new(false);
/// The number of the last step.
static STEP: AtomicU64 = AtomicU64::new(0);
/// Sections that were begun and not ended, in the process of this number: one that was forked before CUDA was used is in none.
static SECTIONS: AtomicI64 = AtomicI64::new(0);
static SECTIONS_OF: AtomicU32 = AtomicU32::new(0);
/// A checkpoint was asked for when no agent was connected.
static ASKED: AtomicBool = AtomicBool::new(false);

static NEWEST: Mutex<Told> = Mutex::new(Told {
    heard: false,
    newest: None,
});
static CHANGED: Condvar = Condvar::new();

/// What the agent has said of the newest checkpoint.
struct Told {
    /// It has answered, if only that there is none.
    heard: bool,
    newest: Option<Newest>,
}

/// What the functions answer in a process that phos-ft does not look after.
const ABSENT: c_int = -1;

/// The newest checkpoint as the program gets it: `struct phos_ft_checkpoint` of `phos_ft.h`.
#[repr(C)]
#[derive(Debug)]
pub struct Checkpoint {
    /// The size of the structure that the program knows, in bytes. Only so much is written.
    size: usize,
    number: u64,
    unix_ms: u64,
    /// -1: no step was told before it.
    step: i64,
    in_store: c_int,
}

/// Notes that the program uses hints, and tells the agent the first time.
fn note_use() {
    if !USED.swap(true, Ordering::AcqRel) {
        link::tell_hints(&said());
    }
}

/// The same of one that tells its steps.
fn note_steps() {
    let is_new = !STEPS.swap(true, Ordering::AcqRel);
    if !USED.swap(true, Ordering::AcqRel) || is_new {
        link::tell_hints(&said());
    }
}

fn said() -> ToAgent {
    ToAgent::Hints {
        steps: STEPS.load(Ordering::Acquire),
    }
}

/// What an agent is told that has just connected.
pub fn greeting() -> impl Iterator<Item = ToAgent> {
    let used = USED.load(Ordering::Acquire).then(said);
    let asked = ASKED.swap(false, Ordering::AcqRel);
    used.into_iter().chain(asked.then_some(ToAgent::Request))
}

/// The last step that the program told, if it tells steps.
pub fn step() -> Option<u64> {
    STEPS
        .load(Ordering::Acquire)
        .then(|| STEP.load(Ordering::Acquire))
}

/// Whether the program is in a section without checkpoints. With the gate closed the answer stays true.
pub fn in_section() -> bool {
    SECTIONS.load(Ordering::Acquire) > 0
        && SECTIONS_OF.load(Ordering::Acquire) == std::process::id()
}

/// The agent has said what the newest checkpoint is (control thread).
pub fn newest(newest: Option<Newest>) {
    let mut told = lock(&NEWEST);
    told.heard = true;
    told.newest = newest.or(told.newest);
    drop(told);
    CHANGED.notify_all();
}

/// Resets the state in a forked child, which is asked nothing.
pub fn reset_in_child() {
    STEP_ENDS.reset_in_child();
    USED.store(false, Ordering::SeqCst);
    STEPS.store(false, Ordering::SeqCst);
    SECTIONS.store(0, Ordering::SeqCst);
}

/// See `phos_ft.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn phos_ft_step(step: u64) -> c_int {
    if !mode::active() {
        return ABSENT;
    }
    // Inside the gate: what a checkpoint says is what its image has.
    let inside = gate::enter();
    STEP.store(step, Ordering::Release);
    drop(inside);
    note_steps();
    if STEP_ENDS.is_wanted() {
        STEP_ENDS.stay(LINGER, || {});
        // A checkpoint is to find the program here, and not on its way to its next call.
        drop(gate::enter());
    }
    0
}

/// See `phos_ft.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn phos_ft_no_checkpoint(begins: c_int) -> c_int {
    if begins == 0 {
        // One that ends more than it began is told so, and changes nothing.
        let ends = |n: i64| (n > 0).then(|| n - 1);
        let ended = SECTIONS.fetch_update(Ordering::AcqRel, Ordering::Acquire, ends);
        return match ended {
            _ if !mode::active() => ABSENT,
            Ok(_) => 0,
            Err(_) => 1,
        };
    }
    // Inside the gate: who has seen no section with the gate closed finds none until it opens.
    let inside = mode::active().then(gate::enter);
    let own = std::process::id();
    if SECTIONS_OF.swap(own, Ordering::AcqRel) != own {
        SECTIONS.store(0, Ordering::Release);
    }
    SECTIONS.fetch_add(1, Ordering::AcqRel);
    let active = inside.is_some();
    drop(inside);
    if !active {
        return ABSENT;
    }
    note_use();
    0
}

/// See `phos_ft.h`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn phos_ft_checkpoint() -> c_int {
    if !mode::active() {
        return ABSENT;
    }
    note_use();
    if !link::tell_hints(&ToAgent::Request) {
        ASKED.store(true, Ordering::Release);
    }
    0
}

/// See `phos_ft.h`.
///
/// # Safety
/// `last` points to a `struct phos_ft_checkpoint` whose `size` is set.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn phos_ft_last(last: *mut Checkpoint) -> c_int {
    if !mode::active() || last.is_null() {
        return ABSENT;
    }
    note_use();
    let until = Instant::now() + ANSWER;
    let mut told = lock(&NEWEST);
    while !told.heard && link::is_connected() {
        let Some(left) = until.checked_duration_since(Instant::now()) else {
            break;
        };
        told = wait(&CHANGED, told, left);
    }
    // The first question waits, and no other.
    told.heard = true;
    let Some(newest) = told.newest else {
        return 0;
    };
    drop(told);
    let found = Checkpoint {
        size: 0,
        number: newest.number,
        unix_ms: newest.unix_ms,
        step: newest
            .step
            .and_then(|step| i64::try_from(step).ok())
            .unwrap_or(-1),
        in_store: newest.in_store.into(),
    };
    // SAFETY: the caller's promise: `size` is set, and as many bytes are there, of which no more are written than this structure has.
    unsafe {
        let size = (*last).size;
        let length = size.min(size_of::<Checkpoint>());
        let from = (&raw const found).cast::<u8>();
        std::ptr::copy_nonoverlapping(from, last.cast::<u8>(), length);
        if length >= size_of::<usize>() {
            (*last).size = size;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_process_that_is_not_looked_after_hints_do_nothing() {
        assert_eq!(phos_ft_step(3), ABSENT);
        assert_eq!(phos_ft_checkpoint(), ABSENT);
        // SAFETY: no structure is what is tested.
        assert_eq!(unsafe { phos_ft_last(std::ptr::null_mut()) }, ABSENT);
        assert_eq!((step(), greeting().count()), (None, 0));
    }

    #[test]
    fn sections_nest_and_count_before_cuda_is_used() {
        for (begins, then) in [(0, false), (1, true), (1, true), (0, true), (0, false)] {
            assert_eq!(phos_ft_no_checkpoint(begins), ABSENT);
            assert_eq!(in_section(), then);
        }
    }
}
