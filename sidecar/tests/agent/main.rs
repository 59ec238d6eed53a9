//! The agent as a process, with real CRIU, driven by a sidecar made of a few lines.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cuda;
mod process;
mod support;
