//! What the end-to-end tests and the demo share: a world with a GPU (real or simulated), a store,
//! a run directory and files of a job, and the real binaries started in it.
//!
//! # Rules
//!
//! * Everything of a [`World`] lies below one temporary directory, and everything it started is
//!   gone, and unmounted, when it is dropped: also when a test panics.
//! * Nobody sleeps for a fixed time: [`wait_for`] polls a condition until a deadline and says what
//!   it was waiting for when it gives up.
//! * Binaries are the ones built beside this test (`target/<profile>/`), or those in
//!   `PHOS_BIN_DIR`.

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "tests, which read from top to bottom"
)]

mod device;
pub mod docker;
mod events;
mod gpu;
mod processes;
mod reference;
mod rewrite;
pub mod s3;
pub mod scenario;
mod trace;
mod world;

pub use device::DeviceNode;
pub use events::Event;
pub use gpu::{Gpu, SimGpu};
pub use processes::{Tree, kill_all, processes_with, stop_process};
pub use reference::APART;
pub use rewrite::rewrite_newest;
pub use trace::LossTrace;
pub use world::{COSTLY, Checkpoint, JobSpec, PhosFt, World, bin_dir, wait_every, wait_for};
