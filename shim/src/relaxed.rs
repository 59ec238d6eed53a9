//! Driver calls of the shim's own on a thread of the application's that may be in the midst of a stream capture.

use crate::table::real;
use crate::{abi, gate};

/// While it lives, calls of this thread are no part of a stream capture and do not disturb one.
pub struct Relaxed {
    before: Option<u32>,
}

impl Relaxed {
    /// Holds from now until it is dropped.
    pub fn new() -> Self {
        let _inside = gate::enter_query();
        let mut mode = abi::CAPTURE_RELAXED;
        // SAFETY: exchanges one integer; the setting is this thread's own.
        let result = unsafe { real::cuThreadExchangeStreamCaptureMode(&mut mode) };
        Self {
            before: (result == abi::SUCCESS).then_some(mode),
        }
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Some(mut mode) = self.before {
            let _inside = gate::enter_query();
            // SAFETY: puts the value back that was there.
            unsafe { real::cuThreadExchangeStreamCaptureMode(&mut mode) };
        }
    }
}
