//! Stream captures under way. A checkpoint waits for their end: what is captured is not executed, and the half-made
//! graph is state of the driver.
use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::abi::Handle;
use crate::sync::lock;
use crate::table::{Entry, NAMES};

const PER_THREAD: usize = 2;

/// A capturing stream: its handle and, for the per-thread stream, whose.
pub type Key = (usize, i32);

/// The captures under way, each with the context that it was begun in.
static CAPTURES: Mutex<BTreeMap<Key, usize>> = Mutex::new(BTreeMap::new());

/// Whether a capture is under way.
pub fn any() -> bool {
    !lock(&CAPTURES).is_empty()
}

/// Captures of a destroyed context ended with it.
pub fn context_gone(context: usize) {
    lock(&CAPTURES).retain(|_, c| *c != context);
}

/// The stream that a call of this entry point means.
pub fn key(entry: Entry, stream: Handle) -> Key {
    let stream = stream as usize;
    let per_thread = stream == PER_THREAD
        || (stream == 0 && NAMES[entry.index()].to_bytes().ends_with(b"_ptsz"));
    if per_thread {
        // SAFETY: no arguments.
        (PER_THREAD, unsafe { libc::gettid() })
    } else {
        (stream, 0)
    }
}

/// A capture begins, in this context.
pub fn begin(key: Key, context: usize) {
    lock(&CAPTURES).insert(key, context);
}

/// A capture is over. True: it was under way, and was the last one.
pub fn end(key: Key) -> bool {
    let mut captures = lock(&CAPTURES);
    captures.remove(&key).is_some() && captures.is_empty()
}
