//! Attach: memory imported from the agent's fds and mapped where it was. What is attached already is left alone, so that
//! an attach after half a detach, or after half an attach, does the rest.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};

use phos_protocol::shim::Refusal;
use phos_protocol::types::AllocationKey;

use super::stack;
use crate::abi::{self, AccessDesc};
use crate::registry::{self, Origin, Registry};
use crate::table::real;
use crate::{instances, log, mode};

/// Imports, maps and opens. The fds used are closed.
pub fn attach(memory: &mut BTreeMap<AllocationKey, OwnedFd>) -> Result<(), Refusal> {
    stack::take_back();
    instances::forget_machine();
    let mut registry = registry::lock();
    import(&mut registry, memory)?;
    let missing = registry.unmapped();
    for (base, mapping) in &missing {
        let handle = registry
            .physical(mapping.allocation)
            .and_then(|p| p.real)
            .ok_or_else(|| Refusal::Other(format!("no memory for the mapping at {base:#x}")))?;
        let (bytes, offset) = (mapping.bytes as usize, mapping.offset as usize);
        // SAFETY: the address range is still reserved for this process and nothing is mapped there.
        let result = unsafe { real::cuMemMap(*base, bytes, offset, handle, 0) };
        if result != abi::SUCCESS {
            return Err(refused("cuMemMap", result));
        }
        registry.set_mapped(*base..*base + 1, true);
    }
    for (range, rights) in registry.access_runs(&missing) {
        if set_access(range.start, range.end, &rights) == abi::SUCCESS {
            continue;
        }
        log::debug!(
            "cuMemSetAccess at {:#x} failed: one mapping at a time",
            range.start
        );
        for (base, mapping) in registry.mappings_in(range.clone()) {
            let result = set_access(base, (base + mapping.bytes).min(range.end), &rights);
            if result != abi::SUCCESS {
                return Err(refused("cuMemSetAccess", result));
            }
        }
    }
    Ok(())
}

fn import(
    registry: &mut Registry,
    memory: &mut BTreeMap<AllocationKey, OwnedFd>,
) -> Result<(), Refusal> {
    for (id, physical) in registry.all_mut() {
        if physical.real.is_some() {
            continue;
        }
        let key = match physical.origin {
            Origin::Own => AllocationKey {
                owner: mode::process(),
                id,
            },
            Origin::Imported(key) => key,
            Origin::Foreign(_) => continue,
        };
        let fd = memory.remove(&key).ok_or_else(|| {
            Refusal::Other(format!(
                "no fd came for allocation {} of process {}",
                key.id, key.owner
            ))
        })?;
        // An import of another process's memory is on whichever of our devices it was found on before.
        let device = matches!(physical.origin, Origin::Own).then_some(physical.device);
        let (result, handle) = instances::import(device, physical.instance, fd.as_fd());
        if result != abi::SUCCESS {
            return Err(refused("cuMemImportFromShareableHandle", result));
        }
        physical.real = Some(handle);
        physical.held = true;
    }
    Ok(())
}

fn set_access(start: u64, end: u64, rights: &[AccessDesc]) -> u32 {
    // SAFETY: the range was mapped just now; the descriptors are a slice.
    unsafe {
        real::cuMemSetAccess(
            start,
            (end - start) as usize,
            rights.as_ptr().cast(),
            rights.len(),
        )
    }
}

fn refused(call: &str, result: u32) -> Refusal {
    Refusal::Driver {
        call: call.to_owned(),
        result,
    }
}
