//! phos-ft: keeps an unmodified GPU training job alive through crashes and node loss.
//!
//! One binary, several processes (see `docs/architecture.md`):
//!
//! * the agent, PID 1 of the job's PID namespace, is a crate of its own ([`phos_agent`]): synchronous, no CUDA context, no network;
//! * [`engine`]: the sidecar; its own CUDA context with the job's memory imported ([`phos_gpu`]), policies, pipeline, store;
//! * [`background`]: the threads that store checkpoints beside the job;
//! * [`cli`]: the command line and what needs no job (`doctor`, `list`, `show`);
//! * [`heap`]: how the sidecar's heap grows;
//! * [`known_history`]: what this machine remembers of the job's history;
//! * [`lock`]: what one sidecar of a job has and another may want;
//! * [`observe`]: what people and machines see of it over HTTP;
//! * [`preemption`]: notices that this machine will be taken away;
//! * [`report`]: what the sidecar says of itself;
//! * [`size`]: sizes as people write and read them.

pub mod background;
pub mod cli;
pub mod engine;
pub mod heap;
pub mod known_history;
pub mod lock;
pub mod observe;
pub mod preemption;
pub mod report;
pub mod size;
