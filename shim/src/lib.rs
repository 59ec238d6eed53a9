//! `libphos_shim.so`: preloaded into a GPU training job, it keeps the job's device memory where it can outlive the
//! process (design §2), and holds the job still when the agent asks (design §4).
//!
//! ```text
//!            application, libcudart, cuBLAS, NCCL …
//!     exports │ dlsym │ cuGetProcAddress            interpose, table (generated from cuda.h)
//!             ▼
//!   gate ── lifetimes ── memory::{plain, vmm, share, …}, ranks, peers     wrappers
//!             │                 │
//!             │            registry                what exists; no driver calls, no I/O
//!             ▼                 ▲
//!          driver (the real libcuda)   control: the conversation with the agent, on its own thread
//! ```
//!
//! # Rules of this crate
//!
//! * A process that never initialises CUDA pays a comparison per `dlsym`, `ioctl` and `mmap`, a look for `mmap` at its start and nothing else: no thread, no file, no
//!   environment variable is read before the first successful `cuInit`.
//! * Wrappers take the lock of the registry for moments only; no lock is held across a driver call that synchronises,
//!   across `dlopen`, `dlsym` or the start of a thread.
//! * Whatever changes what the registry knows happens inside the gate: while it is closed and idle, registry and driver
//!   agree and only the control thread touches either.
//! * Nothing panics; a failure of the shim's own is answered by doing what the driver alone would have done.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod abi;
mod capture;
mod context;
mod control;
mod driver;
mod events;
mod exit;
mod fork;
mod gate;
mod hints;
mod init;
mod instances;
mod interpose;
mod lifetimes;
mod link;
mod log;
mod memory;
mod mode;
mod moment;
mod peers;
mod ranks;
mod registry;
mod relaxed;
mod rendezvous;
mod saved;
mod stack;
mod sync;
mod table;
mod unsupported;
