//! Allocations that stay the driver's: its pools, managed memory, and what could not be taken over.
//!
//! The driver saves them with the control state, into the host memory of the process: [`reserved_bytes`] says how much
//! that will be, with arrays.
#![allow(non_snake_case)]

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::c_void;
use std::sync::Mutex;

use super::with_retry;
use crate::abi::{self, Handle};
use crate::sync::lock;
use crate::table::{Entry, real, tracked};
use crate::unsupported::{self, Reason};
use crate::{context, gate, mode};

/// `CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT`, a u64: what the pool has taken from the device, in use or not.
const POOL_RESERVED: u32 = 5;
/// `CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT`, a u64: the same of allocations in graphs.
const GRAPHS_RESERVED: u32 = 2;

/// An allocation that `cuMemFree` frees.
#[derive(Debug, Clone, Copy)]
pub struct Native {
    context: usize,
    bytes: u64,
    managed: bool,
}

/// The driver's own allocations, by their device pointer.
static NATIVE: Mutex<BTreeMap<u64, Native>> = Mutex::new(BTreeMap::new());
/// Pools that the application made, by handle.
static POOLS: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

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
/// The same as for the driver's function.
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
/// The same as for the driver's function.
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
/// The same as for the driver's function.
pub unsafe fn cuMemAllocManaged(entry: Entry, pointer: *mut u64, bytes: usize, flags: u32) -> u32 {
    let attempt = || {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemAllocManaged(entry, pointer, bytes, flags) }
    };
    let result = with_retry(device(), bytes as u64, attempt);
    if result == abi::SUCCESS && !pointer.is_null() && mode::active() {
        let native = Native {
            context: context::current().map_or(0, |(context, _)| context),
            bytes: bytes as u64,
            managed: true,
        };
        // SAFETY: the driver has just written it.
        lock(&NATIVE).insert(unsafe { *pointer }, native);
        unsupported::add(Reason::Managed);
    }
    result
}

/// An allocation of so many bytes in a context was left to the driver.
pub fn left(pointer: u64, context: usize, bytes: u64) {
    let native = Native {
        context,
        bytes,
        managed: false,
    };
    lock(&NATIVE).insert(pointer, native);
}

/// The driver is about to free an allocation of its own; before, since it may give the address to another at once.
pub fn freeing(pointer: u64) -> Option<Native> {
    lock(&NATIVE).remove(&pointer)
}

/// Settles a free by the driver's result: memory that was not freed is still the driver's.
pub fn freed(pointer: u64, native: Native, result: u32) {
    if result != abi::SUCCESS {
        lock(&NATIVE).insert(pointer, native);
    } else if native.managed {
        unsupported::remove(Reason::Managed);
    }
}

/// A context is gone and its memory with it. Inside the gate.
pub fn context_gone(context: usize) {
    let mut managed = 0;
    lock(&NATIVE).retain(|_, native| {
        let gone = native.context == context;
        managed += usize::from(gone && native.managed);
        !gone
    });
    for _ in 0..managed {
        unsupported::remove(Reason::Managed);
    }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemPoolCreate(entry: Entry, pool: *mut Handle, properties: *const c_void) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemPoolCreate(entry, pool, properties) };
    if result == abi::SUCCESS && !pool.is_null() && mode::active() {
        // SAFETY: the driver has just written it.
        lock(&POOLS).insert(unsafe { *pool }.expose_provenance());
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemPoolDestroy(entry: Entry, pool: Handle) -> u32 {
    let _inside = gate::enter();
    // Before the driver may give the handle to another pool.
    let known = lock(&POOLS).remove(&pool.addr());
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemPoolDestroy(entry, pool) };
    if result != abi::SUCCESS && known {
        lock(&POOLS).insert(pool.expose_provenance());
    }
    result
}

/// Device memory in arrays and in what could not be taken over, in bytes: what is known without asking the driver.
pub fn bytes() -> u64 {
    lock(&NATIVE)
        .values()
        .fold(super::arrays::bytes(), |sum, native| {
            sum.saturating_add(native.bytes)
        })
}

/// The same with the driver's pools, over the first `devices` devices. The gate is closed: none comes or goes meanwhile.
pub fn reserved_bytes(devices: i32) -> u64 {
    let mut total = bytes();
    let mut pools: BTreeSet<usize> = lock(&POOLS).clone();
    for device in 0..devices {
        let mut pool: Handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        if unsafe { real::cuDeviceGetDefaultMemPool(&raw mut pool, device) } == abi::SUCCESS {
            pools.insert(pool.expose_provenance());
        }
        let mut bytes = 0_u64;
        // SAFETY: the attribute is a u64.
        let result = unsafe {
            real::cuDeviceGetGraphMemAttribute(device, GRAPHS_RESERVED, (&raw mut bytes).cast())
        };
        if result == abi::SUCCESS {
            total = total.saturating_add(bytes);
        }
    }
    for pool in pools {
        let mut bytes = 0_u64;
        let pool: Handle = std::ptr::with_exposed_provenance_mut(pool);
        // SAFETY: a live pool's handle, which the driver only compares; the attribute is a u64.
        let result =
            unsafe { real::cuMemPoolGetAttribute(pool, POOL_RESERVED, (&raw mut bytes).cast()) };
        if result == abi::SUCCESS {
            total = total.saturating_add(bytes);
        }
    }
    total
}
