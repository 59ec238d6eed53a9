//! A wait of the job's for its own work has ended: this may be the moment for a checkpoint (`control/watch.rs`).
//!
//! A training loop that synchronises every hundred steps has seconds of kernels queued, and no short hold sees the end of
//! them. But when its own wait returns, the GPU may have nothing left to do, and the next launch has not been made. So, while the
//! agent wants to know, a thread whose wait has just ended stays here until the control thread has had a look: [`LINGER`] at
//! most, outside the gate.
//!
//! The calls that count are those that block until work is done, and queries of a stream that say that it is:
//! shim/generate/classes.toml names them (`wait`). Events are asked about for many reasons (caching allocators, watchdogs),
//! mostly in the midst of work.
//!
//! # Which wait
//!
//! A step may have several waits, and what the job does next depends on which one it is held at. They are told apart by how many calls of work the
//! thread has made since its wait before, which is the same in each step of most programs. While one of them is wanted ([`want_some`]), the gate
//! counts; the first wait of each thread is passed over, as not all of its calls were counted.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use phos_protocol::shim::{Calls, EXCEPT, Waits};

use crate::rendezvous::Rendezvous;
use crate::{abi, gate};

/// How long a thread stays: for the next look of the control thread's, on a busy machine.
const LINGER: Duration = Duration::from_millis(20);

/// Where a thread whose wait has ended is awaited.
pub static WAITED: Rendezvous = Rendezvous::new();

/// The number of the watch that only some waits end; 0: any does, or there is none.
static WATCH: AtomicU32 = AtomicU32::new(0);
/// The number of the last such watch.
static LAST: AtomicU32 = AtomicU32::new(0);
/// Which waits: from a number of calls to another, packed into one word each. The first: these; the others: but not these.
static SOME: [AtomicU64; EXCEPT + 1] = [const { AtomicU64::new(NONE) }; EXCEPT + 1];
/// The calls before the wait at which a thread stays; 0: not known.
static CALLS: AtomicU32 = AtomicU32::new(0);

/// From many to few: no number is among them.
const NONE: u64 = pack(Calls {
    least: u32::MAX,
    most: 0,
});

const fn pack(calls: Calls) -> u64 {
    (calls.least as u64) << 32 | calls.most as u64
}

/// Whether so many calls are among these.
fn has(some: &AtomicU64, calls: u32) -> bool {
    let some = some.load(Ordering::Relaxed);
    ((some >> 32) as u32..=some as u32).contains(&calls)
}

/// A wait of the job's has ended with this result, and the thread has left the gate.
#[inline]
pub fn waited(result: u32) {
    let watch = WATCH.load(Ordering::Acquire);
    if watch != 0 {
        waited_after_calls(result, watch);
    } else if WAITED.is_wanted() && result == abi::SUCCESS {
        WAITED.stay(LINGER, || {});
    }
}

#[cold]
fn waited_after_calls(result: u32, watch: u32) {
    if result != abi::SUCCESS || gate::is_inside() {
        return;
    }
    let Some(calls) = gate::calls_since_wait(watch) else {
        return;
    };
    let [these, but_not @ ..] = &SOME;
    if WAITED.is_wanted() && has(these, calls) && !but_not.iter().any(|some| has(some, calls)) {
        WAITED.stay(LINGER, || CALLS.store(calls, Ordering::SeqCst));
    }
}

/// One of these waits is wanted from now on, and each thread's calls are counted. The gate is opened: a thread whose wait is the first one that counts makes
/// no call after it that is not counted, and none that is wanted comes before all is set.
pub fn want_some(waits: &Waits) {
    let [these, but_not @ ..] = &SOME;
    these.store(pack(waits.after), Ordering::SeqCst);
    let except = waits.except.iter().map(|&calls| pack(calls));
    for (some, calls) in but_not.iter().zip(except.chain(std::iter::repeat(NONE))) {
        some.store(calls, Ordering::SeqCst);
    }
    let last = LAST.load(Ordering::SeqCst);
    let watch = last.checked_add(1).unwrap_or(1);
    LAST.store(watch, Ordering::SeqCst);
    CALLS.store(0, Ordering::SeqCst);
    gate::begin_counting();
    gate::open();
    WATCH.store(watch, Ordering::SeqCst);
    WAITED.want();
}

/// Any wait counts, and calls are not counted any more when the gate is opened next. Whether they were.
pub fn want_any() -> bool {
    gate::end_counting();
    WATCH.swap(0, Ordering::SeqCst) != 0
}

/// The calls of work that the thread which stays had made since its wait before, if they were counted.
pub fn calls() -> Option<u32> {
    Some(CALLS.load(Ordering::SeqCst)).filter(|calls| *calls > 0)
}

/// Resets the state in a forked child, which is asked nothing.
pub fn reset_in_child() {
    WATCH.store(0, Ordering::SeqCst);
    WAITED.reset_in_child();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_wait_of_several_is_told_by_the_calls_before_it() {
        let waits = |least, most, except: &[(u32, u32)]| Waits {
            after: Calls { least, most },
            except: (except.iter())
                .map(|&(least, most)| Calls { least, most })
                .collect(),
        };
        let wanted = |calls| {
            let [these, but_not @ ..] = &SOME;
            has(these, calls) && !but_not.iter().any(|some| has(some, calls))
        };
        want_some(&waits(32, u32::MAX, &[(90, 110), (32, 40)]));
        for calls in [0, 31, 32, 40, 90, 100, 110] {
            assert!(!wanted(calls), "{calls}");
        }
        for calls in [41, 89, 111, u32::MAX] {
            assert!(wanted(calls), "{calls}");
        }
        // More than there is room for are ignored, and none is left over.
        want_some(&waits(5, 5, &[(5, 5); EXCEPT + 3]));
        assert!(!wanted(5));
        want_some(&waits(5, 5, &[]));
        assert!(wanted(5) && !wanted(4) && !wanted(6));
        assert!(want_any() && !want_any());
    }
}
