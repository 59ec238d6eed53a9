//! CUDA: everything that calls the driver, and all `unsafe` of the sidecar.
//!
//! * [`device`]: the driver, a GPU, its context; [`memory`]: device memory by fd; [`pinned`]: host memory;
//! * [`stream`]: copies in flight; [`digest`]: the BLAKE3 kernel;
//! * [`control`]: the driver's checkpoint calls, and [`usage`]: what processes hold, for the agent, which has no context.

mod api;
mod control;
mod device;
mod digest;
mod memory;
mod pinned;
mod stream;
mod usage;

pub(super) use self::control::Control;
pub(super) use self::device::Driver;
pub(super) use self::usage::Usage;
