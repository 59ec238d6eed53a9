//! Code and conventions that the agent and the sidecar of one machine share.
//!
//! * [`run_dir`]: the directory that both use, and what the sidecar remembers there for the agent;
//! * [`failpoint`]: where a test lets a process die or wait;
//! * [`host_memory`]: how much memory there is;
//! * [`peer`]: who is at the other end of a socket;
//! * [`mapped`]: writing to a file from many threads;
//! * [`mask`]: commands without the secrets in them;
//! * [`scheduling`]: when a thread gets a processor.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod failpoint;
pub mod host_memory;
pub mod mapped;
pub mod mask;
pub mod peer;
pub mod run_dir;
pub mod scheduling;
