//! What the agent is told of the process's memory while the job runs, so that it can tell beforehand that an image would not fit.
//!
//! From tables of the shim's own: a driver that is busy with the job is asked nothing.

use phos_protocol::shim::Usage;
use phos_protocol::types::Device;

use crate::table::real;
use crate::{abi, context, memory, registry};

/// `CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT`.
const MULTIPROCESSORS: u32 = 16;
/// `CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR`.
const THREADS: u32 = 39;
/// Stack of a GPU thread, in bytes, above which a kernel is an exception. The driver's default is 1 KiB; it gives kernels more that
/// were compiled to need more, and keeps it.
const STACK: u64 = 4 << 10;

/// What was said last.
pub struct Told {
    /// What the stacks of all threads of the largest device may take, in bytes.
    stacks: u64,
    devices: usize,
    said: Option<Usage>,
}

fn attribute(device: i32, which: u32) -> u64 {
    let mut value = 0;
    // SAFETY: writes one integer.
    match unsafe { real::cuDeviceGetAttribute(&mut value, which, device) } {
        abi::SUCCESS => u64::try_from(value).unwrap_or_default(),
        _ => 0,
    }
}

impl Told {
    /// Nothing yet, of a process that sees these devices.
    pub fn new(devices: &[Device]) -> Self {
        let threads = devices
            .iter()
            .map(|d| attribute(d.ordinal, MULTIPROCESSORS) * attribute(d.ordinal, THREADS))
            .max();
        Self {
            stacks: threads.unwrap_or_default() * STACK,
            devices: devices.len(),
            said: None,
        }
    }

    /// To an agent that knows nothing.
    pub fn forget(&mut self) {
        self.said = None;
    }

    /// What is to be said, if that is not what was said last.
    pub fn news(&mut self) -> Option<Usage> {
        // Contexts that libraries have made are not all known, and stacks are a context's own.
        let contexts = context::live().len().max(self.devices);
        let usage = Usage {
            taken_over: registry::lock().bytes(),
            native: memory::native::bytes(),
            stacks: self.stacks.saturating_mul(contexts as u64),
        };
        (self.said.replace(usage) != Some(usage)).then_some(usage)
    }
}
