//! Multicast objects, by which NCCL's ranks write to the memory of all their GPUs at once (NVLink SHARP, NVLS).
//!
//! The driver's checkpoint hangs while one is alive. So a checkpoint takes them apart, and they are made anew when every process has its
//! memory back (`control::rejoin`). No machine on which NVLink multicast may be used has tried this: it is done where the agent says so
//! ([`mode::takes_multicast`]), and otherwise an object that is alive rules checkpoints out.
//!
//! The application has a handle of ours for each, as for memory. What it binds stays, as what it maps does, also when it has let go of the handle. Binding waits in the driver until every rank has added its devices, and
//! inside the gate: a checkpoint that comes at that moment is tried again.
#![allow(non_snake_case)]

use std::ffi::c_void;

use phos_protocol::types::{AllocationId, AllocationKind};

use super::{give_back, real_handle};
use crate::abi::{self, MulticastProp};
use crate::registry::multicast::Binding;
use crate::registry::{self, Origin, Physical};
use crate::table::{Entry, tracked};
use crate::unsupported::{self, Reason};
use crate::{gate, mode};

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMulticastCreate(entry: Entry, handle: *mut u64, prop: *const c_void) -> u32 {
    // Until it is noted: a checkpoint that does not know of it would hang.
    let _inside = gate::enter();
    let call = |prop: *const c_void| {
        // SAFETY: the caller's promise; `prop` is its own or a copy with one more handle type.
        unsafe { tracked::cuMulticastCreate(entry, handle, prop) }
    };
    if handle.is_null() || prop.is_null() || !mode::active() {
        return call(prop);
    }
    // SAFETY: the caller's promise that it is a CUmulticastObjectProp.
    let asked = unsafe { prop.cast::<MulticastProp>().read() };
    let types = asked.handle_types;
    let mut ours = mode::takes_multicast()
        && asked.flags == 0
        && types & !u64::from(abi::HANDLE_POSIX_FD) == 0;
    let mut result = abi::INVALID_VALUE;
    if ours {
        let mut exportable = asked;
        exportable.handle_types |= u64::from(abi::HANDLE_POSIX_FD);
        result = call((&raw const exportable).cast());
        ours = result == abi::SUCCESS || types != 0;
    }
    if !ours {
        result = call(prop);
    }
    if result != abi::SUCCESS {
        return result;
    }
    if !ours {
        unsupported::add(Reason::Multicast);
    }
    // SAFETY: the driver has just written it.
    let real = unsafe { *handle };
    let id = registry::lock().add(Physical {
        exportable: ours,
        handle_types: types as u32,
        ..Physical::made(
            match ours {
                true => Origin::Own,
                false => Origin::Foreign(Reason::Multicast),
            },
            AllocationKind::Multicast {
                devices: asked.devices,
            },
            asked.size as u64,
            real,
        )
    });
    // SAFETY: the caller's promise that it can be written.
    unsafe { *handle = registry::virtual_handle(id) };
    abi::SUCCESS
}

/// The number of an object that is taken apart for checkpoints, if the handle is one's.
fn object(handle: u64) -> Option<AllocationId> {
    let id = registry::handle_id(handle).filter(|_| mode::active())?;
    registry::lock().object(id).is_some().then_some(id)
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMulticastAddDevice(entry: Entry, handle: u64, device: i32) -> u32 {
    let _inside = gate::enter();
    let Some(real) = real_handle(handle) else {
        return abi::INVALID_VALUE;
    };
    // SAFETY: the caller's promise, with the driver's handle in the place of ours.
    let result = unsafe { tracked::cuMulticastAddDevice(entry, real, device) };
    if result == abi::SUCCESS
        && let Some(id) = object(handle)
        && let Some(object) = registry::lock().object_mut(id)
    {
        object.devices.insert(device);
    }
    result
}

/// What is to be bound, as the application says it.
struct Bound {
    handle: u64,
    device: Option<i32>,
    offset: usize,
    bytes: usize,
    flags: u64,
}

impl Bound {
    fn new(handle: u64, device: Option<i32>, offset: usize, bytes: usize, flags: u64) -> Self {
        Self {
            handle,
            device,
            offset,
            bytes,
            flags,
        }
    }

    /// Notes that it was bound, to a part of an allocation that is the application's own. Anything else cannot be bound anew: it rules
    /// checkpoints out, for good, as nobody tells when it is over.
    fn done(self, memory: Option<(AllocationId, u64)>) {
        let Some(id) = object(self.handle) else {
            return;
        };
        let mut registry = registry::lock();
        let found =
            memory.and_then(|(memory, offset)| Some((memory, offset, registry.physical(memory)?)));
        match found {
            Some((memory, memory_offset, physical))
                if physical.kind == AllocationKind::Vmm
                    && !matches!(physical.origin, Origin::Foreign(_)) =>
            {
                let device = self.device.unwrap_or(physical.device);
                let binding = Binding {
                    device,
                    is_named: self.device.is_some(),
                    offset: self.offset as u64,
                    bytes: self.bytes as u64,
                    memory,
                    memory_offset,
                    flags: self.flags,
                    is_bound: true,
                };
                registry.bind(id, binding);
            }
            _ => {
                drop(registry);
                unsupported::set(Reason::Multicast);
            }
        }
    }
}

/// Binds memory by its handle. Inside the gate.
fn bind_memory(
    bound: Bound,
    memory: u64,
    memory_offset: usize,
    call: impl FnOnce(u64, u64) -> u32,
) -> u32 {
    let (Some(real), Some(real_memory)) = (real_handle(bound.handle), real_handle(memory)) else {
        return abi::INVALID_VALUE;
    };
    let result = call(real, real_memory);
    if result == abi::SUCCESS {
        let id = registry::handle_id(memory).filter(|_| mode::active());
        bound.done(id.map(|id| (id, memory_offset as u64)));
    }
    result
}

/// Binds what is mapped at an address. Inside the gate.
fn bind_address(bound: Bound, pointer: u64, call: impl FnOnce(u64) -> u32) -> u32 {
    let Some(real) = real_handle(bound.handle) else {
        return abi::INVALID_VALUE;
    };
    let memory = {
        let registry = registry::lock();
        let mapping = registry.mapping_at(pointer);
        // By its handle it can be bound as well, whatever becomes of the mapping.
        mapping
            .filter(|(base, mapping)| pointer - base + bound.bytes as u64 <= mapping.bytes)
            .map(|(base, mapping)| (mapping.allocation, mapping.offset + (pointer - base)))
    };
    let result = call(real);
    if result == abi::SUCCESS {
        bound.done(memory);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMulticastBindMem(
    entry: Entry,
    handle: u64,
    offset: usize,
    memory: u64,
    memory_offset: usize,
    bytes: usize,
    flags: u64,
) -> u32 {
    let _inside = gate::enter();
    let bound = Bound::new(handle, None, offset, bytes, flags);
    bind_memory(bound, memory, memory_offset, |real, memory| {
        // SAFETY: the caller's promise, with the driver's handles in the place of ours.
        unsafe {
            tracked::cuMulticastBindMem(entry, real, offset, memory, memory_offset, bytes, flags)
        }
    })
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
#[allow(clippy::too_many_arguments)]
pub unsafe fn cuMulticastBindMem_v2(
    entry: Entry,
    handle: u64,
    device: i32,
    offset: usize,
    memory: u64,
    memory_offset: usize,
    bytes: usize,
    flags: u64,
) -> u32 {
    let _inside = gate::enter();
    let bound = Bound::new(handle, Some(device), offset, bytes, flags);
    bind_memory(bound, memory, memory_offset, |real, memory| {
        // SAFETY: the caller's promise, with the driver's handles in the place of ours.
        unsafe {
            tracked::cuMulticastBindMem_v2(
                entry,
                real,
                device,
                offset,
                memory,
                memory_offset,
                bytes,
                flags,
            )
        }
    })
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMulticastBindAddr(
    entry: Entry,
    handle: u64,
    offset: usize,
    pointer: u64,
    bytes: usize,
    flags: u64,
) -> u32 {
    let _inside = gate::enter();
    let bound = Bound::new(handle, None, offset, bytes, flags);
    bind_address(bound, pointer, |real| {
        // SAFETY: the caller's promise, with the driver's handle in the place of ours.
        unsafe { tracked::cuMulticastBindAddr(entry, real, offset, pointer, bytes, flags) }
    })
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMulticastBindAddr_v2(
    entry: Entry,
    handle: u64,
    device: i32,
    offset: usize,
    pointer: u64,
    bytes: usize,
    flags: u64,
) -> u32 {
    let _inside = gate::enter();
    let bound = Bound::new(handle, Some(device), offset, bytes, flags);
    bind_address(bound, pointer, |real| {
        // SAFETY: the caller's promise, with the driver's handle in the place of ours.
        unsafe {
            tracked::cuMulticastBindAddr_v2(entry, real, device, offset, pointer, bytes, flags)
        }
    })
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMulticastUnbind(
    entry: Entry,
    handle: u64,
    device: i32,
    offset: usize,
    bytes: usize,
) -> u32 {
    let _inside = gate::enter();
    let Some(real) = real_handle(handle) else {
        return abi::INVALID_VALUE;
    };
    // SAFETY: the caller's promise, with the driver's handle in the place of ours.
    let result = unsafe { tracked::cuMulticastUnbind(entry, real, device, offset, bytes) };
    if result == abi::SUCCESS
        && let Some(id) = object(handle)
    {
        let dropped = registry::lock().unbind(id, device, offset as u64, bytes as u64);
        for dropped in dropped {
            give_back(dropped);
        }
    }
    result
}
