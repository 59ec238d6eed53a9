//! Allocations that stay the driver's: its pools and managed memory.
#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::sync::Mutex;

use super::with_retry;
use crate::abi::{self, Handle};
use crate::sync::lock;
use crate::table::{Entry, tracked};
use crate::unsupported::{self, Reason};
use crate::{context, gate, mode};

static MANAGED: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

fn device() -> i32 {
    if mode::active() {
        context::current().map_or(0, |(_, device)| device)
    } else {
        0
    }
}

/// See the driver's documentation.
///
/// # Safety
/// As the driver's.
pub unsafe fn cuMemAllocAsync(
    entry: Entry,
    pointer: *mut u64,
    bytes: usize,
    stream: Handle,
) -> u32 {
    let attempt = || {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemAllocAsync(entry, pointer, bytes, stream) }
    };
    match attempt() {
        abi::OUT_OF_MEMORY => with_retry(device(), bytes as u64, attempt),
        result => result,
    }
}

/// See the driver's documentation.
///
/// # Safety
/// As the driver's.
pub unsafe fn cuMemAllocFromPoolAsync(
    entry: Entry,
    pointer: *mut u64,
    bytes: usize,
    pool: Handle,
    stream: Handle,
) -> u32 {
    let attempt = || {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemAllocFromPoolAsync(entry, pointer, bytes, pool, stream) }
    };
    match attempt() {
        abi::OUT_OF_MEMORY => with_retry(device(), bytes as u64, attempt),
        result => result,
    }
}

/// See the driver's documentation.
///
/// # Safety
/// As the driver's.
pub unsafe fn cuMemAllocManaged(entry: Entry, pointer: *mut u64, bytes: usize, flags: u32) -> u32 {
    let attempt = || {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemAllocManaged(entry, pointer, bytes, flags) }
    };
    let result = with_retry(device(), bytes as u64, attempt);
    if result == abi::SUCCESS && !pointer.is_null() && mode::active() {
        // SAFETY: the driver has just written it.
        lock(&MANAGED).insert(unsafe { *pointer });
        unsupported::add(Reason::Managed);
    }
    result
}

/// The driver freed an allocation of its own.
pub fn freed(pointer: u64) {
    if lock(&MANAGED).remove(&pointer) {
        unsupported::remove(Reason::Managed);
    }
}
