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

use std::time::Duration;

use crate::abi;
use crate::rendezvous::Rendezvous;

/// How long a thread stays: for the next look of the control thread's, on a busy machine.
const LINGER: Duration = Duration::from_millis(20);

/// Where a thread whose wait has ended is awaited.
pub static WAITED: Rendezvous = Rendezvous::new();

/// A wait of the job's has ended with this result, and the thread has left the gate.
#[inline]
pub fn waited(result: u32) {
    if WAITED.is_wanted() && result == abi::SUCCESS {
        WAITED.stay(LINGER);
    }
}
