//! The application's own virtual memory calls (PyTorch's expandable segments, NCCL's buffers): the memory is made
//! exportable, and the application gets a handle of ours, which stays valid while the driver's comes and goes.
#![allow(non_snake_case)]

use std::ffi::c_void;

use phos_protocol::types::AllocationKind;

use super::{give_back, with_retry};
use crate::abi::{self, AccessDesc, AllocationProp};
use crate::registry::{self, Origin, Physical};
use crate::table::{Entry, tracked};
use crate::unsupported::{self, Reason};
use crate::{gate, log, mode};

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemCreate(
    entry: Entry,
    handle: *mut u64,
    size: usize,
    prop: *const c_void,
    flags: u64,
) -> u32 {
    let call = |prop: *const c_void| {
        let _inside = gate::enter();
        // SAFETY: the caller's promise; `prop` is its own or a copy with one more handle type.
        unsafe { tracked::cuMemCreate(entry, handle, size, prop, flags) }
    };
    if handle.is_null() || prop.is_null() || !mode::active() {
        return call(prop);
    }
    // SAFETY: the caller's promise that it is a CUmemAllocationProp.
    let asked = unsafe { prop.cast::<AllocationProp>().read() };
    let on_device =
        asked.kind == abi::ALLOCATION_PINNED && asked.location.kind == abi::LOCATION_DEVICE;
    let device = if on_device { asked.location.id } else { 0 };
    let types = asked.requested_handle_types;
    // Other usages (tiles of sparse arrays) take handles inside structures: the driver's own.
    let ours =
        on_device && asked.usage == 0 && types & !(abi::HANDLE_POSIX_FD | abi::HANDLE_FABRIC) == 0;
    let origin = if ours {
        let mut exportable = asked;
        exportable.requested_handle_types |= abi::HANDLE_POSIX_FD;
        let result = with_retry(device, size as u64, || call((&raw const exportable).cast()));
        if result != abi::SUCCESS {
            if result == abi::OUT_OF_MEMORY || types & abi::HANDLE_POSIX_FD != 0 {
                return result;
            }
            log::debug!(
                "cuMemCreate with an fd failed with {result}: made as the application asked"
            );
            return call(prop);
        }
        Origin::Own
    } else {
        let result = with_retry(device, size as u64, || call(prop));
        if result != abi::SUCCESS || on_device || types == 0 {
            return result;
        }
        unsupported::add(Reason::HostMemory);
        Origin::Foreign(Reason::HostMemory)
    };
    // SAFETY: the driver has just written it.
    let real = unsafe { *handle };
    let id = registry::lock().add(Physical {
        device,
        rdma: asked.rdma != 0,
        handle_types: types,
        ..Physical::made(origin, AllocationKind::Vmm, size as u64, real)
    });
    // SAFETY: the caller's promise that it can be written.
    unsafe { *handle = registry::virtual_handle(id) };
    abi::SUCCESS
}

/// The allocation behind a handle of the application, if the shim gave the handle out.
fn ours(handle: u64) -> Option<u64> {
    registry::handle_id(handle).filter(|_| mode::active())
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemRelease(entry: Entry, handle: u64) -> u32 {
    let _inside = gate::enter();
    let Some(id) = ours(handle) else {
        // SAFETY: the caller's promise.
        return unsafe { tracked::cuMemRelease(entry, handle) };
    };
    let released = registry::lock().release(id);
    match released {
        None => abi::INVALID_VALUE,
        Some(None) => abi::SUCCESS,
        Some(Some(dropped)) => give_back(dropped),
    }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemMap(
    entry: Entry,
    base: u64,
    size: usize,
    offset: usize,
    handle: u64,
    flags: u64,
) -> u32 {
    let _inside = gate::enter();
    let Some(id) = ours(handle) else {
        // SAFETY: the caller's promise.
        return unsafe { tracked::cuMemMap(entry, base, size, offset, handle, flags) };
    };
    let Some(real) = registry::lock().real_handle(id) else {
        return abi::INVALID_VALUE;
    };
    // SAFETY: the caller's promise, with the driver's handle in the place of ours.
    let result = unsafe { tracked::cuMemMap(entry, base, size, offset, real, flags) };
    if result == abi::SUCCESS {
        registry::lock().map(base, size as u64, offset as u64, id);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemUnmap(entry: Entry, base: u64, size: usize) -> u32 {
    let _inside = gate::enter();
    let Some(end) = base.checked_add(size as u64).filter(|_| mode::active()) else {
        // SAFETY: the caller's promise.
        return unsafe { tracked::cuMemUnmap(entry, base, size) };
    };
    // Out of the registry first: as soon as the driver has unmapped it, another thread may map there.
    let taken = registry::lock().take_mappings(base..end);
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemUnmap(entry, base, size) };
    if result != abi::SUCCESS {
        registry::lock().put_back(taken);
        return result;
    }
    let dropped = registry::lock().forget(&taken);
    for dropped in dropped {
        give_back(dropped);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemSetAccess(
    entry: Entry,
    base: u64,
    size: usize,
    rights: *const c_void,
    count: usize,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemSetAccess(entry, base, size, rights, count) };
    if result == abi::SUCCESS && !rights.is_null() && mode::active() {
        // SAFETY: the driver has just read that many descriptors there.
        let rights = unsafe { std::slice::from_raw_parts(rights.cast::<AccessDesc>(), count) };
        registry::lock().set_access(base..base.saturating_add(size as u64), rights);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemAddressReserve(
    entry: Entry,
    base: *mut u64,
    size: usize,
    alignment: usize,
    wanted: u64,
    flags: u64,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result =
        unsafe { tracked::cuMemAddressReserve(entry, base, size, alignment, wanted, flags) };
    if result == abi::SUCCESS && !base.is_null() && mode::active() {
        // SAFETY: the driver has just written it.
        let start = unsafe { *base };
        registry::lock().reserve(start..start.saturating_add(size as u64));
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemAddressFree(entry: Entry, base: u64, size: usize) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuMemAddressFree(entry, base, size) };
    if result == abi::SUCCESS && mode::active() {
        registry::lock().unreserve(base);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemRetainAllocationHandle(
    entry: Entry,
    handle: *mut u64,
    address: *mut c_void,
) -> u32 {
    let _inside = gate::enter();
    if mode::active() && !handle.is_null() {
        let mut registry = registry::lock();
        if let Some((_, mapping)) = registry.mapping_at(address as u64) {
            let plain = registry
                .physical(mapping.allocation)
                .is_some_and(|p| p.kind != AllocationKind::Vmm && !p.is_multicast());
            // What came from cuMemAlloc has no handle, as with the driver's own.
            if plain || !registry.retain(mapping.allocation) {
                return abi::INVALID_VALUE;
            }
            // SAFETY: the caller's promise that it can be written.
            unsafe { *handle = registry::virtual_handle(mapping.allocation) };
            return abi::SUCCESS;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { tracked::cuMemRetainAllocationHandle(entry, handle, address) }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemGetAllocationPropertiesFromHandle(
    entry: Entry,
    prop: *mut c_void,
    handle: u64,
) -> u32 {
    let _inside = gate::enter();
    let Some(id) = ours(handle) else {
        // SAFETY: the caller's promise.
        return unsafe { tracked::cuMemGetAllocationPropertiesFromHandle(entry, prop, handle) };
    };
    let found = {
        let registry = registry::lock();
        registry
            .real_handle(id)
            .zip(registry.physical(id).map(|p| p.handle_types))
    };
    let Some((real, types)) = found else {
        return abi::INVALID_VALUE;
    };
    // SAFETY: the caller's promise, with the driver's handle in the place of ours.
    let result = unsafe { tracked::cuMemGetAllocationPropertiesFromHandle(entry, prop, real) };
    if result == abi::SUCCESS && !prop.is_null() {
        // SAFETY: the driver has just written it.
        unsafe { (*prop.cast::<AllocationProp>()).requested_handle_types = types };
    }
    result
}
