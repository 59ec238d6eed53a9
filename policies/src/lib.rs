//! When and how often to checkpoint, how often to ask a job to fall quiet, where its ranks are held, how to drain and with how much host memory, what may
//! leave while the job runs, whether to restart, when processes come back whose memory is being filled,
//! what fits into a grace time or before a preemption, which checkpoints to keep, how to encode, how fast to send, how long to wait for another
//! node, how a drain shares the link with the job and what is stored its processors, and how much of the time was of use.
//!
//! # Rules
//!
//! Everything here is a pure function or a small state machine: no I/O, no clocks, no randomness of its own. Time is a
//! [`Duration`](std::time::Duration) since any origin that the caller keeps to (the start of the process, say), and
//! must not run backwards; if it does, decisions come late, never twice. Nothing here allocates more than a few words
//! for each thing it is told of.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

pub mod copies;
pub mod cut;
pub mod drain;
pub mod encoding;
pub mod goodput;
pub mod host_buffer;
pub mod interval;
pub mod lease;
pub mod pace;
pub mod preemption;
pub mod restart;
pub mod retention;
pub mod revive;
pub mod schedule;
pub mod spare_time;
pub mod speculation;
pub mod terminate;
pub mod transfer;
pub mod tries;
