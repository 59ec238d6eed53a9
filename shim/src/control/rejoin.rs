//! Multicast objects in a checkpoint: taken apart before memory is released, and made anew when every process has its memory back.
//!
//! ```text
//! leave    unbind, release          with the detach, when nothing is mapped any more
//! remake   create, export           one process for each object
//! join     import, add devices      all of them, when all objects are there
//! bind     bind, map, set access    all of them, when all devices are added: the driver waits for them
//! ```
//!
//! To leave does what is still to be done, so that a detach that stopped half way can be followed by the rest. The other parts are done once: a
//! process that cannot loses the job.

use std::os::fd::{AsFd, OwnedFd};

use phos_protocol::channel::BATCH;
use phos_protocol::shim::{HeldMulticast, Refusal};
use phos_protocol::types::{Allocation, AllocationId, AllocationKey, AllocationKind};

use super::attach::{self, refused};
use crate::abi::{self, MulticastProp};
use crate::memory::share;
use crate::registry::{self, Registry};
use crate::table::real;
use crate::{instances, log, mode};

/// Takes all objects apart. Nothing of them is mapped any more.
pub fn leave(registry: &mut Registry) -> Result<(), Refusal> {
    for id in registry.object_ids() {
        let Some(handle) = registry.physical(id).and_then(|physical| physical.real) else {
            continue;
        };
        let Some(object) = registry.object_mut(id) else {
            continue;
        };
        for binding in object.bindings.iter_mut().filter(|b| b.is_bound) {
            let (offset, bytes) = (binding.offset as usize, binding.bytes as usize);
            // SAFETY: bound by the application, and idle: the gate is closed and every context was waited for.
            let result = unsafe { real::cuMulticastUnbind(handle, binding.device, offset, bytes) };
            if result != abi::SUCCESS {
                // It goes with the object all the same.
                log::info!("cuMulticastUnbind failed with {result}");
            }
            binding.is_bound = false;
        }
        // SAFETY: a live handle of the driver, forgotten below.
        let result = unsafe { real::cuMemRelease(handle) };
        if result != abi::SUCCESS {
            return Err(refused("cuMemRelease", result));
        }
        if let Some(physical) = registry.physical_mut(id) {
            physical.real = None;
            physical.exportable = false;
            physical.held = false;
            physical.fd = None;
        }
    }
    Ok(())
}

/// Takes apart what a detach has left that stopped before: all processes make everything anew.
pub fn leave_rest() -> Result<(), Refusal> {
    let mut registry = registry::lock();
    for (base, mapping) in registry.mapped_objects() {
        // SAFETY: a mapping of the registry, idle and unused.
        let result = unsafe { real::cuMemUnmap(base, mapping.bytes as usize) };
        if result != abi::SUCCESS {
            return Err(refused("cuMemUnmap", result));
        }
        registry.note_unmapped(base..base + 1);
    }
    leave(&mut registry)
}

/// Whether the process has any.
pub fn has_objects() -> bool {
    !registry::lock().object_ids().is_empty()
}

fn described(registry: &Registry, id: AllocationId) -> Option<Allocation> {
    let physical = registry.physical(id)?;
    Some(registry::describe(mode::member(), id, physical))
}

/// What the process has, in pieces that each fit into a message to the agent.
pub fn held() -> Vec<Vec<HeldMulticast>> {
    let registry = registry::lock();
    let held: Vec<HeldMulticast> = (registry.object_ids().into_iter())
        .filter_map(|id| {
            let object = registry.object(id)?;
            Some(HeldMulticast {
                object: described(&registry, id)?,
                added: object.devices.len() as u32,
            })
        })
        .collect();
    held.chunks(BATCH).map(<[HeldMulticast]>::to_vec).collect()
}

/// Makes an object anew.
pub fn remake(key: AllocationKey) -> Result<(Allocation, OwnedFd), Refusal> {
    let mut registry = registry::lock();
    let id = known(&registry, key)?;
    let object = described(&registry, id).ok_or_else(|| unknown(key))?;
    let AllocationKind::Multicast { devices } = object.kind else {
        return Err(unknown(key));
    };
    let prop = MulticastProp {
        devices,
        size: object.bytes as usize,
        handle_types: abi::HANDLE_POSIX_FD.into(),
        flags: 0,
    };
    let mut handle = 0;
    // SAFETY: writes one handle; the properties are complete.
    let result = unsafe { real::cuMulticastCreate(&mut handle, (&raw const prop).cast()) };
    if result != abi::SUCCESS {
        return Err(refused("cuMulticastCreate", result));
    }
    if let Some(physical) = registry.physical_mut(id) {
        physical.real = Some(handle);
        physical.exportable = true;
    }
    let fd =
        share::export(handle).map_err(|result| refused("cuMemExportToShareableHandle", result))?;
    if let Some(physical) = registry.physical_mut(id) {
        // The agent has it from here on.
        physical.held = true;
    }
    Ok((object, fd))
}

/// Imports objects that others have made; the fds are closed.
pub fn import(keys: &[AllocationKey], fds: Vec<OwnedFd>) -> Result<(), Refusal> {
    if keys.len() != fds.len() {
        let (fds, keys) = (fds.len(), keys.len());
        let what = format!("{fds} fds came for {keys} multicast objects");
        return Err(Refusal::Other(what));
    }
    let mut registry = registry::lock();
    for (&key, fd) in keys.iter().zip(fds) {
        let id = known(&registry, key)?;
        let Some(physical) = registry.physical_mut(id).filter(|p| p.real.is_none()) else {
            continue;
        };
        // It lies on no device.
        let (result, handle) = instances::import(None, None, fd.as_fd());
        if result != abi::SUCCESS {
            return Err(refused("cuMemImportFromShareableHandle", result));
        }
        physical.real = Some(handle);
        physical.held = true;
    }
    Ok(())
}

/// Adds the devices that were added.
pub fn add_devices() -> Result<(), Refusal> {
    let registry = registry::lock();
    for id in registry.object_ids() {
        let handle = handle(&registry, id)?;
        let devices = registry.object(id).map(|object| object.devices.clone());
        for device in devices.unwrap_or_default() {
            // SAFETY: a live handle of an object.
            let result = unsafe { real::cuMulticastAddDevice(handle, device) };
            if result != abi::SUCCESS {
                return Err(refused("cuMulticastAddDevice", result));
            }
        }
    }
    Ok(())
}

/// Binds what was bound, and maps the objects where they were.
pub fn bind() -> Result<(), Refusal> {
    let mut registry = registry::lock();
    for id in registry.object_ids() {
        let handle = handle(&registry, id)?;
        let bindings = registry.object(id).map(|object| object.bindings.clone());
        for (index, binding) in bindings.unwrap_or_default().into_iter().enumerate() {
            if binding.is_bound {
                continue;
            }
            let memory = registry
                .physical(binding.memory)
                .and_then(|memory| memory.real);
            let memory = memory.ok_or_else(|| {
                let which = binding.memory;
                Refusal::Other(format!(
                    "allocation {which}, which a multicast object reaches, is not there"
                ))
            })?;
            let (at, from) = (binding.offset as usize, binding.memory_offset as usize);
            let (bytes, flags) = (binding.bytes as usize, binding.flags);
            // SAFETY: live handles of an object and of memory, bound as they were.
            let result = unsafe {
                if binding.is_named {
                    let device = binding.device;
                    real::cuMulticastBindMem_v2(handle, device, at, memory, from, bytes, flags)
                } else {
                    real::cuMulticastBindMem(handle, at, memory, from, bytes, flags)
                }
            };
            if result != abi::SUCCESS {
                return Err(refused("cuMulticastBindMem", result));
            }
            let object = registry.object_mut(id);
            if let Some(binding) = object.and_then(|object| object.bindings.get_mut(index)) {
                binding.is_bound = true;
            }
        }
    }
    let missing = registry.unmapped();
    attach::map(&mut registry, &missing)
}

fn handle(registry: &Registry, id: AllocationId) -> Result<u64, Refusal> {
    let physical = registry.physical(id);
    physical
        .and_then(|physical| physical.real)
        .ok_or_else(|| Refusal::Other(format!("no fd came for multicast object {id}")))
}

fn known(registry: &Registry, key: AllocationKey) -> Result<AllocationId, Refusal> {
    registry
        .by_key(key, mode::member())
        .filter(|id| registry.object(*id).is_some())
        .ok_or_else(|| unknown(key))
}

fn unknown(key: AllocationKey) -> Refusal {
    let AllocationKey { owner, id } = key;
    Refusal::Other(format!(
        "there is no multicast object {id} of process {owner} here"
    ))
}
