//! Peer access between contexts, mirrored onto taken-over memory by `cuMemSetAccess`, for what is mapped and what will be.
#![allow(non_snake_case)]

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::abi::{self, AccessDesc, Handle};
use crate::relaxed::Relaxed;
use crate::sync::lock;
use crate::table::{Entry, real, tracked};
use crate::{context, gate, log, mode, registry};

/// (Context whose memory is opened, context that may access it) → device of the latter.
static PEERS: Mutex<BTreeMap<(usize, usize), i32>> = Mutex::new(BTreeMap::new());

/// Devices that may access the memory of a context, besides its own. Sorted, each once.
pub fn accessors(context: usize) -> Vec<i32> {
    let mut devices: Vec<i32> = lock(&PEERS)
        .range((context, 0)..=(context, usize::MAX))
        .map(|(_, &device)| device)
        .collect();
    devices.sort_unstable();
    devices.dedup();
    devices
}

/// Forgets a context that is gone, as an accessor and as an owner.
pub fn context_gone(context: usize) {
    lock(&PEERS).retain(|(owner, accessor), _| *owner != context && *accessor != context);
}

fn apply(owner: usize, device: i32, flags: u32) {
    let ranges = registry::lock().ranges_of_context(owner);
    let right = AccessDesc::device(device, flags);
    let _relaxed = Relaxed::new();
    for range in ranges {
        let bytes = (range.end - range.start) as usize;
        // SAFETY: the range is mapped (nothing can be unmapped by the shim while this thread is inside the gate; a free
        // by the application at the same time makes the driver refuse), and one descriptor is passed.
        let result =
            unsafe { real::cuMemSetAccess(range.start, bytes, (&raw const right).cast(), 1) };
        if result == abi::SUCCESS {
            registry::lock().set_access(range, &[right]);
        } else {
            log::debug!("cuMemSetAccess for peer device {device} failed with {result}");
        }
    }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuCtxEnablePeerAccess(entry: Entry, peer: Handle, flags: u32) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuCtxEnablePeerAccess(entry, peer, flags) };
    if result == abi::SUCCESS
        && mode::active()
        && let Some((context, device)) = context::current()
    {
        // Noted first: an allocation made meanwhile looks here after it is in the registry.
        lock(&PEERS).insert((peer as usize, context), device);
        apply(peer as usize, device, abi::ACCESS_READ_WRITE);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuCtxDisablePeerAccess(entry: Entry, peer: Handle) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuCtxDisablePeerAccess(entry, peer) };
    if result == abi::SUCCESS
        && mode::active()
        && let Some((context, device)) = context::current()
    {
        lock(&PEERS).remove(&(peer as usize, context));
        // Another context of the same device may still have access.
        if !accessors(peer as usize).contains(&device) {
            apply(peer as usize, device, abi::ACCESS_NONE);
        }
    }
    result
}
