//! The GPU layer: what the engine and the agent ask of a driver, and CUDA behind it.
//!
//! * [`platform`]: the traits of a driver, a GPU and its memory; [`stream`]: copies in flight; [`host`]: pinned slots;
//! * [`control`]: what the agent asks of a driver, without a context of its own;
//! * [`cuda`]: the implementation, and with it all calls of the driver. Another vendor's implementation would stand beside it,
//!   and nothing outside this folder names either;
//! * `in_memory`, with the feature of that name: one for tests, without a GPU.
//!
//! # Rules
//!
//! * Every call can fail and says which call it was. After a sticky error
//!   ([`error::GpuError::is_sticky`]) the process exits with a code of its own and its supervisor
//!   starts another; the job has its own context and does not notice.
//! * Methods block. The engine calls them from threads made for that.

pub mod control;
mod cuda;
pub mod error;
pub mod host;
#[cfg(feature = "in-memory")]
pub mod in_memory;
pub mod platform;
pub mod stream;

use std::sync::Arc;

pub use self::control::{ControlError, ControlState, DeviceUsage, ProcessState};
pub use self::error::{CallKind, GpuError};
pub use self::host::{HostPool, HostRun, Quiet};
pub use self::platform::{
    DeviceMemory, Digest, Digester, Gpu, GpuInfo, MemoryInfo, PinnedMemory, Platform, Range,
};
pub use self::stream::{Event, Pending, Queue, Stream};

/// The driver of this machine.
///
/// # Errors
/// There is no driver, or it lacks an entry point that is needed.
pub fn discover() -> Result<Arc<dyn Platform>, GpuError> {
    Ok(Arc::new(cuda::Driver::load()?))
}

/// The checkpoint calls of the driver of this machine. Takes 0.1 s to seconds.
///
/// # Errors
/// There is no driver, or one without these calls.
pub fn control() -> Result<Arc<dyn ControlState>, ControlError> {
    Ok(Arc::new(cuda::Control::open()?))
}

/// What says how much device memory processes hold. Takes some milliseconds.
pub fn usage() -> Box<dyn DeviceUsage> {
    Box::new(cuda::Usage::open())
}
