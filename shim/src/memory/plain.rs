//! `cuMemAlloc` and relatives on exportable memory.
#![allow(non_snake_case)]

use std::sync::Mutex;

use phos_protocol::types::AllocationKind;

use super::{Abilities, abilities, with_retry};
use crate::abi::{self, AccessDesc, AllocationProp};
use crate::link;
use crate::registry::slab::LARGEST;
use crate::registry::{self, Gone, Origin, Physical, Plain};
use crate::relaxed::Relaxed;
use crate::sync::lock;
use crate::table::{Entry, real, tracked};
use crate::{capture, context, gate, log, memory, mode, peers};

/// Pitch that the driver gives: a multiple of this fits every texture and copy.
const PITCH: usize = 512;

/// Frees that came while a stream capture was under way: freeing waits for the context, which a capture forbids.
static DEFERRED: Mutex<Vec<(u64, Plain)>> = Mutex::new(Vec::new());

/// Why an allocation was not made.
enum Failure {
    /// The driver's own allocator is to be asked.
    Native,
    /// The application is to be told this `CUresult`.
    Result(u32),
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemAlloc_v2(entry: Entry, pointer: *mut u64, bytes: usize) -> u32 {
    let native = || {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemAlloc_v2(entry, pointer, bytes) }
    };
    if pointer.is_null() || bytes == 0 || !mode::active() {
        return native();
    }
    let Some((context, device)) = context::current() else {
        return native();
    };
    with_retry(device, bytes as u64, || {
        match allocate(context, device, bytes as u64) {
            Ok(base) => {
                // SAFETY: the caller's promise that it can be written; checked for null above.
                unsafe { *pointer = base };
                abi::SUCCESS
            }
            Err(Failure::Native) => {
                let result = native();
                if result == abi::SUCCESS {
                    // SAFETY: the driver has just written it.
                    memory::native::left(unsafe { *pointer }, context, bytes as u64);
                }
                result
            }
            Err(Failure::Result(result)) => result,
        }
    })
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemAllocPitch_v2(
    entry: Entry,
    pointer: *mut u64,
    pitch: *mut usize,
    width: usize,
    height: usize,
    element: u32,
) -> u32 {
    let native = || {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemAllocPitch_v2(entry, pointer, pitch, width, height, element) }
    };
    let row = width.checked_next_multiple_of(PITCH);
    let bytes = row.and_then(|row| row.checked_mul(height));
    let (Some(row), Some(bytes)) = (row, bytes) else {
        return native();
    };
    if pointer.is_null()
        || pitch.is_null()
        || bytes == 0
        || !matches!(element, 4 | 8 | 16)
        || !mode::active()
    {
        return native();
    }
    let Some((context, device)) = context::current() else {
        return native();
    };
    with_retry(device, bytes as u64, || {
        match allocate(context, device, bytes as u64) {
            Ok(base) => {
                // SAFETY: the caller's promise that both can be written; checked for null above.
                unsafe {
                    *pointer = base;
                    *pitch = row;
                }
                abi::SUCCESS
            }
            Err(Failure::Native) => {
                let result = native();
                if result == abi::SUCCESS {
                    // SAFETY: the driver has just written both.
                    let (pointer, pitch) = unsafe { (*pointer, *pitch) };
                    memory::native::left(pointer, context, pitch.saturating_mul(height) as u64);
                }
                result
            }
            Err(Failure::Result(result)) => result,
        }
    })
}

fn allocate(context: usize, device: i32, bytes: u64) -> Result<u64, Failure> {
    let abilities = abilities(device);
    if !abilities.vmm {
        return Err(Failure::Native);
    }
    let _inside = gate::enter();
    if bytes > LARGEST {
        let size = bytes
            .checked_next_multiple_of(abilities.granularity)
            .ok_or(Failure::Result(abi::OUT_OF_MEMORY))?;
        let (base, id) = create(
            context,
            device,
            size,
            bytes,
            AllocationKind::Plain,
            abilities,
        )?;
        registry::lock().add_plain(
            base,
            Plain {
                requested: bytes,
                allocation: id,
                context,
                device,
                small: false,
            },
        );
        open_to_peers(context, device, base, size);
        return Ok(base);
    }
    if let Some(base) = registry::lock().take_small(context, device, bytes) {
        return Ok(base);
    }
    let size = abilities.granularity;
    let (slab, id) = create(context, device, size, size, AllocationKind::Slab, abilities)?;
    let base = {
        let mut registry = registry::lock();
        registry.add_slab(context, device, slab, size, id);
        registry.take_small(context, device, bytes)
    };
    open_to_peers(context, device, slab, size);
    base.ok_or(Failure::Native)
}

/// Creates and maps memory and notes it. Inside the gate.
fn create(
    context: usize,
    device: i32,
    size: u64,
    requested: u64,
    kind: AllocationKind,
    abilities: Abilities,
) -> Result<(u64, u64), Failure> {
    let _relaxed = Relaxed::new();
    let prop = AllocationProp {
        rdma: abilities.rdma.into(),
        ..AllocationProp::exportable(device)
    };
    let (mut handle, mut base) = (0, 0);
    // SAFETY: writes one handle; the properties are complete.
    match unsafe { real::cuMemCreate(&mut handle, size as usize, (&raw const prop).cast(), 0) } {
        abi::SUCCESS => {}
        abi::OUT_OF_MEMORY => return Err(Failure::Result(abi::OUT_OF_MEMORY)),
        other => {
            log::debug!("cuMemCreate of {size} bytes failed with {other}: left to the driver");
            return Err(Failure::Native);
        }
    }
    let rights: Vec<AccessDesc> = std::iter::once(device)
        .chain(peers::accessors(context))
        .map(|d| AccessDesc::device(d, abi::ACCESS_READ_WRITE))
        .collect();
    let bytes = size as usize;
    // SAFETY: each step uses what the one before returned, and undoes it if the next fails.
    let result = unsafe {
        let mut result = real::cuMemAddressReserve(&mut base, bytes, 0, 0, 0);
        if result == abi::SUCCESS {
            result = real::cuMemMap(base, bytes, 0, handle, 0);
            if result == abi::SUCCESS {
                result = real::cuMemSetAccess(base, bytes, rights.as_ptr().cast(), rights.len());
                if result != abi::SUCCESS {
                    real::cuMemUnmap(base, bytes);
                }
            }
            if result != abi::SUCCESS {
                real::cuMemAddressFree(base, bytes);
            }
        }
        if result != abi::SUCCESS {
            real::cuMemRelease(handle);
        }
        result
    };
    match result {
        abi::SUCCESS => {}
        abi::OUT_OF_MEMORY => return Err(Failure::Result(result)),
        other => {
            log::debug!("mapping {size} bytes failed with {other}: left to the driver");
            return Err(Failure::Native);
        }
    }
    let mut registry = registry::lock();
    let id = registry.add(Physical {
        origin: Origin::Own,
        instance: None,
        device,
        bytes: size,
        requested,
        kind,
        rdma: abilities.rdma,
        handle_types: 0,
        real: Some(handle),
        exportable: true,
        held: false,
        fd: None,
        references: 0,
        mappings: 0,
    });
    registry.map(base, size, 0, id);
    registry.set_access(base..base + size, &rights);
    Ok((base, id))
}

/// Peers that were let in between the mapping and its note in the registry.
fn open_to_peers(context: usize, device: i32, base: u64, size: u64) {
    let peers = peers::accessors(context);
    if peers.is_empty() {
        return;
    }
    let rights: Vec<AccessDesc> = std::iter::once(device)
        .chain(peers)
        .map(|d| AccessDesc::device(d, abi::ACCESS_READ_WRITE))
        .collect();
    let _relaxed = Relaxed::new();
    // SAFETY: the range was mapped by the caller and is known to nobody else yet.
    let result =
        unsafe { real::cuMemSetAccess(base, size as usize, rights.as_ptr().cast(), rights.len()) };
    if result == abi::SUCCESS {
        registry::lock().set_access(base..base + size, &rights);
    }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemFree_v2(entry: Entry, pointer: u64) -> u32 {
    let taken = if pointer != 0 && mode::active() {
        registry::lock().take_plain(pointer)
    } else {
        None
    };
    let Some(plain) = taken else {
        let inside = gate::enter();
        let native = memory::native::freeing(pointer);
        // SAFETY: the caller's promise.
        let result = unsafe { tracked::cuMemFree_v2(entry, pointer) };
        drop(inside);
        if let Some(native) = native {
            memory::native::freed(pointer, native, result);
        }
        return result;
    };
    if capture::any() {
        lock(&DEFERRED).push((pointer, plain));
        return abi::SUCCESS;
    }
    // Outside the gate and every lock: it may last as long as the GPU works.
    let synchronized = {
        let _relaxed = Relaxed::new();
        context::synchronize_for_free(plain.context)
    };
    if synchronized != abi::SUCCESS {
        registry::lock().add_plain(pointer, plain);
        return synchronized;
    }
    let _inside = gate::enter();
    free_idle(pointer, plain)
}

/// Frees memory that no work uses any more. Inside the gate, or by the control thread while it is closed.
fn free_idle(pointer: u64, plain: Plain) -> u32 {
    let gone = registry::lock().free_plain(pointer, plain);
    gone.map_or(abi::SUCCESS, return_to_driver)
}

fn return_to_driver(gone: Gone) -> u32 {
    let _relaxed = Relaxed::new();
    let bytes = gone.bytes as usize;
    let mut result = abi::SUCCESS;
    // SAFETY: a mapping, handle and reservation of the shim's own that the registry has just forgotten.
    unsafe {
        if gone.mapped {
            result = real::cuMemUnmap(gone.base, bytes);
        }
        if let Some(handle) = gone.real {
            let released = real::cuMemRelease(handle);
            result = if result == abi::SUCCESS {
                released
            } else {
                result
            };
        }
        real::cuMemAddressFree(gone.base, bytes);
    }
    if gone.held {
        link::freed(gone.id);
    }
    result
}

/// Frees what could not be freed during a capture, if none is under way. Outside the gate.
pub fn free_deferred() {
    if capture::any() {
        return;
    }
    let deferred = std::mem::take(&mut *lock(&DEFERRED));
    for (pointer, plain) in deferred {
        let synchronized = {
            let _relaxed = Relaxed::new();
            context::synchronize_for_free(plain.context)
        };
        if synchronized == abi::SUCCESS {
            let _inside = gate::enter();
            free_idle(pointer, plain);
        } else {
            lock(&DEFERRED).push((pointer, plain));
        }
    }
}

/// The same for the control thread, while the gate is closed and every context idle.
pub fn free_deferred_while_closed() {
    let deferred = std::mem::take(&mut *lock(&DEFERRED));
    for (pointer, plain) in deferred {
        free_idle(pointer, plain);
    }
}

/// A context is gone: what was allocated in it is free. Inside the gate.
pub fn context_gone(context: usize) {
    lock(&DEFERRED).retain(|(_, plain)| plain.context != context);
    let gone = registry::lock().free_context(context);
    for gone in gone {
        let result = return_to_driver(gone);
        if result != abi::SUCCESS {
            log::debug!(
                "freeing {:#x} of a destroyed context failed with {result}",
                gone.base
            );
        }
    }
}
