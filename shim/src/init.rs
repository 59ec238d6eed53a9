//! `cuInit`: where the shim starts.

use crate::table::{self, Entry};
use crate::unsupported::{self, Reason};
use crate::{abi, control, driver, exit, fork, gate, instances, log, mode};

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
#[allow(non_snake_case)]
pub unsafe fn cuInit(entry: Entry, flags: u32) -> u32 {
    let result = {
        let _inside = gate::enter();
        // SAFETY: the caller's promise.
        unsafe { table::tracked::cuInit(entry, flags) }
    };
    if result == abi::SUCCESS && mode::claim_start() {
        start();
    }
    result
}

fn start() {
    let Some(socket) = std::env::var_os(phos_protocol::env::SHIM_SOCKET) else {
        return;
    };
    if let Some(level) = std::env::var_os(phos_protocol::env::SHIM_LOG) {
        log::configure(&level.to_string_lossy());
    }
    if std::env::var_os(phos_protocol::env::SHIM_MULTICAST).is_some_and(|value| value == "1") {
        mode::set_takes_multicast();
    }
    let copies = driver::copies_mapped();
    if copies > 1 {
        unsupported::add(Reason::SeveralDrivers);
        log::error!(
            "{copies} copies of libcuda are mapped (dlmopen, or two files): calls may reach one that is not watched, \
             so this process cannot be checkpointed"
        );
    }
    gate::start();
    fork::register();
    instances::start();
    mode::set_active();
    exit::register();
    if let Err(error) = control::start(socket.into()) {
        // Without the thread nobody can ever close the gate: the job runs on without checkpoints.
        mode::set_inert();
        log::error!(
            "cannot start the control thread: {error}; this process runs without checkpoints"
        );
        return;
    }
    log::debug!("active");
}
