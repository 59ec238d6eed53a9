//! The CUDA layer: everything that calls the driver, and all `unsafe` of the sidecar.
//!
//! * [`device`]: the driver, a GPU, its context; [`memory`]: device memory by fd;
//! * [`host`]: pinned slots; [`stream`]: copies in flight; [`digest`]: the BLAKE3 kernel;
//! * [`control`]: the driver's checkpoint calls, and [`usage`]: what processes hold, for the agent, which has no context.
//!
//! # Rules
//!
//! * Every call can fail and says which call it was. After a sticky error
//!   ([`error::GpuError::is_sticky`]) the process exits with a code of its own and its supervisor
//!   starts another; the job has its own context and does not notice.
//! * Methods block. The engine calls them from threads made for that.

mod api;
pub mod control;
pub mod device;
pub mod digest;
pub mod error;
pub mod host;
pub mod memory;
pub mod stream;
pub mod usage;

pub use device::{Driver, Gpu, GpuInfo, MemoryInfo};
pub use digest::{Digest, Digester};
pub use error::GpuError;
pub use host::{HostPool, HostRun, Quiet};
pub use memory::{DeviceMemory, Range};
pub use stream::{Pending, Stream};
