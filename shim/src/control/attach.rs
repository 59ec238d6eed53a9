//! Attach: memory imported from the agent's fds and mapped where it was. What is attached already is left alone, so that an
//! attach after a detach or an attach that stopped half way does the rest.
//!
//! Fds are imported and closed as they come, a packet at a time: the process never has more of them than a packet brings.

use std::os::fd::{AsFd, OwnedFd};

use phos_protocol::shim::Refusal;
use phos_protocol::types::AllocationKey;

use super::rejoin;
use crate::abi::{self, AccessDesc};
use crate::registry::{self, Mapping, Origin, Registry};
use crate::table::real;
use crate::{instances, log, mode, stack};

/// An attach that began with the first packet of memory.
#[derive(Debug)]
pub struct Attaching {
    /// The first failure of the attach, which the agent is told in the end.
    outcome: Result<(), Refusal>,
}

impl Attaching {
    /// Before anything is imported.
    pub fn new() -> Self {
        stack::take_back();
        instances::forget_machine();
        Self { outcome: Ok(()) }
    }

    /// Imports a packet of memory; the fds are closed.
    pub fn import(&mut self, keys: Vec<AllocationKey>, fds: Vec<OwnedFd>) {
        if self.outcome.is_err() {
            return;
        }
        self.outcome = if keys.len() == fds.len() {
            keys.into_iter()
                .zip(fds)
                .try_for_each(|(key, fd)| import(key, fd))
        } else {
            Err(Refusal::Other(format!(
                "{} fds came for {} allocations",
                fds.len(),
                keys.len()
            )))
        };
    }

    /// Everything has come: maps it and sets the rights.
    ///
    /// Multicast objects come after it: see [`super::rejoin`].
    pub fn finish(self) -> Result<(), Refusal> {
        self.outcome?;
        rejoin::leave_rest()?;
        map_memory()
    }
}

fn import(key: AllocationKey, fd: OwnedFd) -> Result<(), Refusal> {
    let mut registry = registry::lock();
    // What the agent has and the process does not any more is no fault: it may have freed it just before.
    let Some(physical) = registry
        .by_key(key, mode::member())
        .and_then(|id| registry.physical_mut(id))
    else {
        return Ok(());
    };
    if physical.real.is_some() {
        return Ok(());
    }
    // An import of another process's memory is on whichever of our devices it was found on before.
    let device = matches!(physical.origin, Origin::Own).then_some(physical.device);
    let (result, handle) = instances::import(device, physical.instance, fd.as_fd());
    if result != abi::SUCCESS {
        return Err(refused("cuMemImportFromShareableHandle", result));
    }
    physical.real = Some(handle);
    physical.held = true;
    Ok(())
}

fn map_memory() -> Result<(), Refusal> {
    let mut registry = registry::lock();
    for (id, physical) in registry.all() {
        let key = match physical.origin {
            _ if physical.is_multicast() => continue,
            Origin::Own => AllocationKey {
                owner: mode::member(),
                id,
            },
            Origin::Imported(key) => key,
            Origin::Foreign(_) => continue,
        };
        if physical.real.is_none() {
            return Err(Refusal::Other(format!(
                "no fd came for allocation {} of process {}",
                key.id, key.owner
            )));
        }
    }
    let mut missing = registry.unmapped();
    missing.retain(|(_, mapping)| registry.object(mapping.allocation).is_none());
    map(&mut registry, &missing)
}

/// Maps what is missing where it was, with the rights that it had.
pub fn map(registry: &mut Registry, missing: &[(u64, Mapping)]) -> Result<(), Refusal> {
    for (base, mapping) in missing {
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
        registry.note_mapped(*base);
    }
    for (range, rights) in registry.access_runs(missing) {
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

pub fn refused(call: &str, result: u32) -> Refusal {
    Refusal::Driver {
        call: call.to_owned(),
        result,
    }
}
