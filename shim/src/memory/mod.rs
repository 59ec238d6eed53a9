//! Wrappers of everything that makes, maps, frees or shares device memory.

pub mod arrays;
pub mod foreign;
pub mod host;
pub mod ipc;
pub mod multicast;
pub mod native;
pub mod plain;
pub mod pointers;
pub mod share;
pub mod vmm;

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::abi::{self, AllocationProp};
use crate::link;
use crate::registry::{self, Dropped, Origin};
use crate::sync::lock;
use crate::table::real;
use crate::{gate, log, mode, unsupported};

/// What a device can do for taken-over memory.
#[derive(Debug, Clone, Copy)]
pub struct Abilities {
    /// Whether plain allocations can be taken over at all.
    pub vmm: bool,
    /// Whether memory can be asked to be capable of GPUDirect RDMA.
    pub rdma: bool,
    /// Granularity of allocations, in bytes.
    pub granularity: u64,
}

static ABILITIES: Mutex<BTreeMap<i32, Abilities>> = Mutex::new(BTreeMap::new());

/// Asks the driver once per device.
pub fn abilities(device: i32) -> Abilities {
    if let Some(known) = lock(&ABILITIES).get(&device) {
        return *known;
    }
    let _inside = gate::enter_query();
    let attribute = |attribute| {
        let mut value = 0;
        // SAFETY: writes one integer.
        let result = unsafe { real::cuDeviceGetAttribute(&mut value, attribute, device) };
        result == abi::SUCCESS && value != 0
    };
    let rdma = attribute(abi::DEVICE_RDMA_WITH_VMM_SUPPORTED);
    let mut vmm = attribute(abi::DEVICE_VMM_SUPPORTED) && attribute(abi::DEVICE_POSIX_FD_SUPPORTED);
    let prop = AllocationProp {
        rdma: rdma.into(),
        ..AllocationProp::exportable(device)
    };
    let mut granularity = 0_usize;
    // SAFETY: writes one integer; the properties are complete.
    let result = unsafe {
        real::cuMemGetAllocationGranularity(&mut granularity, (&raw const prop).cast(), 0)
    };
    if result != abi::SUCCESS || !granularity.is_power_of_two() {
        vmm = false;
    }
    let abilities = Abilities {
        vmm,
        rdma,
        granularity: (granularity as u64).max(2 << 20),
    };
    if !vmm {
        log::info!(
            "device {device} has no exportable virtual memory: its memory stays the driver's (slower checkpoints)"
        );
    }
    lock(&ABILITIES).insert(device, abilities);
    abilities
}

/// Allocates; if there is no memory, has phos-ft give back what it holds and tries once more.
pub fn with_retry(device: i32, bytes: u64, mut attempt: impl FnMut() -> u32) -> u32 {
    let result = attempt();
    if result != abi::OUT_OF_MEMORY || !mode::active() {
        return result;
    }
    plain::free_deferred();
    if link::out_of_memory(device, bytes) {
        attempt()
    } else {
        result
    }
}

/// The driver's handle for one of the application's; `None` if it is one of the shim's and not valid.
pub fn real_handle(handle: u64) -> Option<u64> {
    match registry::handle_id(handle).filter(|_| mode::active()) {
        Some(id) => registry::lock().real_handle(id),
        None => Some(handle),
    }
}

/// Gives an allocation that nothing refers to any more back to the driver. To be called inside the gate.
pub fn give_back(dropped: Dropped) -> u32 {
    let result = match dropped.real {
        // SAFETY: a handle of the driver that the registry has just forgotten: nobody else will release it.
        Some(real_handle) => unsafe { real::cuMemRelease(real_handle) },
        None => abi::SUCCESS,
    };
    match dropped.origin {
        Origin::Foreign(reason) => unsupported::remove(reason),
        Origin::Own if dropped.held => link::freed(dropped.id),
        Origin::Imported(key) => link::let_go(key),
        _ => {}
    }
    let orphans = registry::lock().take_orphans();
    for orphan in orphans {
        give_back(orphan);
    }
    result
}
