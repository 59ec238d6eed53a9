//! Detach: everything unmapped and released, addresses kept. The agent's fds keep the memory alive.

use phos_protocol::shim::Refusal;

use super::attach::refused;
use super::rejoin;
use crate::registry::{self, Origin};
use crate::table::real;
use crate::{abi, log, stack};

/// Unmaps and releases. On failure part of it is done, and the registry says which.
pub fn detach() -> Result<(), Refusal> {
    // The gate is closed and idle; only frees that wait at it look at the registry meanwhile.
    let mut registry = registry::lock();
    for run in registry.mapped_runs() {
        let bytes = (run.end - run.start) as usize;
        // SAFETY: mappings of the registry, idle and unused: the gate is closed and every context was waited for.
        let result = unsafe { real::cuMemUnmap(run.start, bytes) };
        if result == abi::SUCCESS {
            registry.note_unmapped(run);
            continue;
        }
        log::debug!("cuMemUnmap of {bytes} bytes failed with {result}: one mapping at a time");
        for (base, mapping) in registry.mappings_in(run) {
            // SAFETY: as above.
            let result = unsafe { real::cuMemUnmap(base, mapping.bytes as usize) };
            if result != abi::SUCCESS {
                return Err(refused("cuMemUnmap", result));
            }
            registry.note_unmapped(base..base + 1);
        }
    }
    rejoin::leave(&mut registry)?;
    for (_, physical) in registry.all_mut() {
        if matches!(physical.origin, Origin::Foreign(_)) {
            continue;
        }
        // An fd of the application's stays its own; ours would be in the way of a dump.
        physical.fd = None;
        let Some(handle) = physical.real else {
            continue;
        };
        // SAFETY: a live handle of the driver, forgotten below.
        let result = unsafe { real::cuMemRelease(handle) };
        if result != abi::SUCCESS {
            return Err(refused("cuMemRelease", result));
        }
        physical.real = None;
        physical.exportable = false;
    }
    drop(registry);
    stack::give_up();
    Ok(())
}
