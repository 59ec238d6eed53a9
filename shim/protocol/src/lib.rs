//! The wire types that the shim, the agent and the sidecar share, and the channel they travel on.
//!
//! Two conversations use this crate:
//!
//! * [`shim`]: every CUDA process of the job ↔ the agent, over a socket private to the job;
//! * [`agent`]: the agent ↔ the sidecar, over a socket on a shared directory.
//!
//! # Rules
//!
//! * One message is one `SOCK_SEQPACKET` packet: an 8-byte header (magic, version) and a postcard
//!   payload, at most [`channel::MAX_PACKET`] bytes. Longer lists travel as batches.
//! * File descriptors travel beside the message that lists them, in the same order, at most
//!   [`channel::MAX_FDS`] per packet. The receiver owns what it received, also when it rejects the
//!   message.
//! * A packet is checked (size, magic, version) before it is parsed. A peer of another version is
//!   told so by [`channel::RecvError::Version`]; nothing is guessed.
//! * Both ends are of one build in most installations, but the shim is part of a restored process image and may be older than the
//!   agent: a change of any type here is a change of [`channel::VERSION`]. There are two exceptions: a new message at the end of
//!   those that a shim sends, since an older shim does not send it and no agent meets a newer shim; and a new message at the end
//!   of those that a shim is sent, if it is sent only to shims that have said that they understand it
//!   ([`shim::ToAgent::Watches`], [`shim::ToAgent::Communicates`], [`shim::ToAgent::TakesCredit`]). [`types::MemberId`] took the place of a bare PID without a new version, because for the first
//!   machine of a job its bytes are those of the PID.

#![deny(missing_docs)]

pub mod agent;
pub mod channel;
pub mod env;
pub mod shim;
pub mod types;
