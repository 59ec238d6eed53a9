//! Pinned host memory. The driver leaves its mappings alone while the process is checkpointed, so that threads may continue to
//! compute on it, with one exception: write-combined memory is a mapping of the driver's own, which is gone between checkpoint
//! and restore, and whatever is written to it after the driver has copied it is lost (docs/driver.md). So such memory is made as
//! ordinary pinned memory, which the application can tell by its speed alone; it is told the flags that it asked for.
#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::sync::lock;
use crate::table::{Entry, tracked};
use crate::{abi, gate, mode};

/// `CU_MEMHOSTALLOC_WRITECOMBINED`.
const WRITE_COMBINED: u32 = 4;

/// Allocations that were asked to be write-combined, by address.
static ASKED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemHostAlloc(
    entry: Entry,
    pointer: *mut *mut c_void,
    bytes: usize,
    flags: u32,
) -> u32 {
    let _inside = gate::enter_query();
    let replaced = flags & WRITE_COMBINED != 0 && mode::active();
    let given = if replaced {
        flags & !WRITE_COMBINED
    } else {
        flags
    };
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemHostAlloc(entry, pointer, bytes, given) };
    if result == abi::SUCCESS && replaced && !pointer.is_null() {
        // SAFETY: the driver has just written it.
        lock(&ASKED).insert(unsafe { *pointer }.addr());
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemHostGetFlags(entry: Entry, flags: *mut u32, pointer: *mut c_void) -> u32 {
    let _inside = gate::enter_query();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemHostGetFlags(entry, flags, pointer) };
    if result == abi::SUCCESS && !flags.is_null() && lock(&ASKED).contains(&pointer.addr()) {
        // SAFETY: the driver has just written it.
        unsafe { *flags |= WRITE_COMBINED };
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemFreeHost(entry: Entry, pointer: *mut c_void) -> u32 {
    let _inside = gate::enter_query();
    // Before the driver may give the address to another allocation.
    let asked = lock(&ASKED).remove(&pointer.addr());
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemFreeHost(entry, pointer) };
    if result != abi::SUCCESS && asked {
        lock(&ASKED).insert(pointer.addr());
    }
    result
}
