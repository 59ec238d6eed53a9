//! Tells the agent of the process's memory while the job runs, so that it knows beforehand when an image would not fit.
//!
//! The numbers come from the shim's own tables: a driver that is busy with the job is not asked.

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

/// What the agent was told last of the process's memory.
pub struct Told {
    /// The stacks of the device on which they take most, in bytes.
    stacks: u64,
    said: Option<Usage>,
}

fn attribute(device: i32, which: u32) -> Option<u64> {
    let mut value = 0;
    // SAFETY: writes one integer.
    let result = unsafe { real::cuDeviceGetAttribute(&mut value, which, device) };
    (result == abi::SUCCESS).then(|| u64::try_from(value).ok())?
}

/// The bytes that the stacks of all threads may take; for a device that does not say how many threads it has, this may be
/// anything.
fn stacks(device: i32) -> u64 {
    let threads = attribute(device, MULTIPROCESSORS)
        .zip(attribute(device, THREADS))
        .map(|(multiprocessors, threads)| multiprocessors.saturating_mul(threads));
    threads.map_or(u64::MAX, |threads| threads.saturating_mul(STACK))
}

impl Told {
    /// Nothing yet, of a process that sees these devices.
    pub fn new(devices: &[Device]) -> Self {
        let stacks = devices.iter().map(|device| stacks(device.ordinal)).max();
        Self {
            stacks: stacks.unwrap_or_default(),
            said: None,
        }
    }

    /// Forgets what was told, as a new agent knows nothing.
    pub fn forget(&mut self) {
        self.said = None;
    }

    /// What is to be said, if that is not what was said last.
    pub fn news(&mut self) -> Option<Usage> {
        // Stacks are a context's own.
        let contexts = context::most_on_a_device().max(1) as u64;
        let taken_over = registry::lock().bytes();
        let usage = Usage {
            taken_over,
            native: memory::native::bytes(),
            stacks: self.stacks.saturating_mul(contexts),
        };
        (self.said.replace(usage) != Some(usage)).then_some(usage)
    }
}
