//! A wait of the job's for its own work has ended: this may be the moment for a checkpoint (`control/watch.rs`).
//!
//! A training loop that synchronises every hundred steps has seconds of kernels queued, and no short hold sees the end of
//! them. But when its own wait returns, the GPU may have nothing left to do, and the next launch has not been made. So, while the
//! agent wants to know, a thread whose wait has just ended stays here until the control thread has had a look: [`LINGER`] at
//! most, outside the gate.
//!
//! | state | a thread whose wait ends | the control thread |
//! |---|---|---|
//! | [`IDLE`] | passes, for the price of a load | |
//! | [`WANTED`] | makes it [`REACHED`], stays | looks every few ms |
//! | [`REACHED`] | passes | closes the gate, then makes it [`IDLE`] |
//!
//! The calls that count are those that block until work is done, and queries of a stream that say that it is:
//! shim/generate/classes.toml names them (`wait`). Events are asked about for many reasons (caching allocators, watchdogs),
//! mostly in the midst of work.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::{abi, gate};

/// How long a thread stays: for the next look of the control thread's, on a busy machine.
const LINGER: Duration = Duration::from_millis(20);

const IDLE: u32 = 0;
const WANTED: u32 = 1;
const REACHED: u32 = 2;

static STATE: AtomicU32 = AtomicU32::new(IDLE);

/// A wait of the job's has ended with this result, and the thread has left the gate.
#[inline]
pub fn waited(result: u32) {
    if STATE.load(Ordering::Relaxed) == WANTED && result == abi::SUCCESS {
        linger();
    }
}

#[cold]
fn linger() {
    // Inside another call, or one of the shim's own threads: not what the job waited for.
    if gate::is_inside() {
        return;
    }
    if STATE
        .compare_exchange(WANTED, REACHED, Ordering::SeqCst, Ordering::SeqCst)
        .is_err()
    {
        return;
    }
    let begun = Instant::now();
    while STATE.load(Ordering::SeqCst) == REACHED {
        let Some(left) = LINGER.checked_sub(begun.elapsed()) else {
            return;
        };
        let left = Timespec {
            tv_sec: 0,
            tv_nsec: left.subsec_nanos().into(),
        };
        // Interrupted, spurious or late: the loop looks again.
        let _ = futex::wait(&STATE, futex::Flags::PRIVATE, REACHED, Some(&left));
    }
}

/// The next wait of the job's that ends is one to be told of.
pub fn want() {
    STATE.store(WANTED, Ordering::SeqCst);
}

/// Whether one has ended since [`want`].
pub fn is_reached() -> bool {
    STATE.load(Ordering::SeqCst) == REACHED
}

/// Ends the watch: a thread that stays continues, to the gate or past it.
pub fn forget() {
    if STATE.swap(IDLE, Ordering::SeqCst) == REACHED {
        // It can fail only for a bad address.
        let _ = futex::wake(&STATE, futex::Flags::PRIVATE, u32::MAX >> 1);
    }
}

/// Resets the state in a forked child, which is asked nothing.
pub fn reset_in_child() {
    STATE.store(IDLE, Ordering::SeqCst);
}
