//! phos-ft: keeps an unmodified GPU training job alive through crashes and node loss.
//!
//! One binary, several processes (see `docs/architecture.md`):
//!
//! * [`agent`]: PID 1 of the job's PID namespace; synchronous, no CUDA context, no network;
//! * [`engine`]: the sidecar; its own CUDA context with the job's memory imported, policies,
//!   pipeline, store;
//! * [`gpu`]: the CUDA layer both use (the agent: only the driver's checkpoint calls);
//! * [`cli`]: the command line and what needs no job (`doctor`, `list`, `show`);
//! * [`heap`]: how the sidecar's heap grows;
//! * [`host_memory`]: how much memory there is;
//! * [`known_history`]: what this machine remembers of the job's history;
//! * [`run_dir`]: the directory that agent and sidecar share;
//! * [`size`]: sizes as people write and read them.

pub mod agent;
pub mod cli;
pub mod engine;
pub mod gpu;
pub mod heap;
pub mod host_memory;
pub mod known_history;
pub mod mask;
pub mod run_dir;
pub mod size;
