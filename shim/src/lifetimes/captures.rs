//! The calls that begin stream captures and end them. Memory that was freed meanwhile is freed when the last one ends.
#![allow(non_snake_case)]

use std::ffi::c_void;

use crate::abi::{self, Handle};
use crate::capture::{self, Key};
use crate::table::{Entry, tracked};
use crate::{context, gate, memory, mode, ranks};

fn begun(result: u32, entry: Entry, stream: Handle) -> u32 {
    if result == abi::SUCCESS && mode::active() {
        let context = context::current().map_or(0, |(context, _)| context);
        capture::begin(capture::key(entry, stream), context);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamBeginCapture(entry: Entry, stream: Handle) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    begun(
        unsafe { tracked::cuStreamBeginCapture(entry, stream) },
        entry,
        stream,
    )
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamBeginCapture_v2(entry: Entry, stream: Handle, mode: u32) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    begun(
        unsafe { tracked::cuStreamBeginCapture_v2(entry, stream, mode) },
        entry,
        stream,
    )
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamBeginCaptureToGraph(
    entry: Entry,
    stream: Handle,
    graph: Handle,
    dependencies: *const Handle,
    edges: *const c_void,
    count: usize,
    mode: u32,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe {
        tracked::cuStreamBeginCaptureToGraph(entry, stream, graph, dependencies, edges, count, mode)
    };
    if result == abi::SUCCESS {
        ranks::graphs::captures_into(graph);
    }
    begun(result, entry, stream)
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamBeginCaptureToCig(entry: Entry, stream: Handle, params: *mut c_void) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuStreamBeginCaptureToCig(entry, stream, params) };
    begun(result, entry, stream)
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamBeginRecaptureToGraph(
    entry: Entry,
    stream: Handle,
    mode: u32,
    graph: Handle,
    callback: Handle,
    user_data: *mut c_void,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe {
        tracked::cuStreamBeginRecaptureToGraph(entry, stream, mode, graph, callback, user_data)
    };
    begun(result, entry, stream)
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamEndCaptureToCig(entry: Entry, stream: Handle) -> u32 {
    let result = {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuStreamEndCaptureToCig(entry, stream) }
    };
    if result != abi::STREAM_CAPTURE_WRONG_THREAD {
        ended(capture::key(entry, stream));
    }
    result
}

fn ended(key: Key) {
    if mode::active() && capture::end(key) {
        memory::plain::free_deferred();
    }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuStreamEndCapture(entry: Entry, stream: Handle, graph: *mut Handle) -> u32 {
    let result = {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuStreamEndCapture(entry, stream, graph) }
    };
    // Whatever else it answers, the capture is over: an invalidated one ends with an error.
    if result != abi::STREAM_CAPTURE_WRONG_THREAD {
        ended(capture::key(entry, stream));
    }
    result
}

macro_rules! stream_destroy {
    ($name:ident) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, stream: Handle) -> u32 {
            let result = {
                let _inside = gate::enter();
                // SAFETY: the caller's promise.
                unsafe { tracked::$name(entry, stream) }
            };
            if result == abi::SUCCESS {
                ended((stream as usize, 0));
            }
            result
        }
    };
}
stream_destroy!(cuStreamDestroy);
stream_destroy!(cuStreamDestroy_v2);
