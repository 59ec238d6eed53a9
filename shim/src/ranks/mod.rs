//! What this process does with other ranks through NCCL: what it has issued is counted, so that a checkpoint holds all ranks where
//! none of them waits for another on its GPU (`phos_policies::cut` has the algorithm).
//!
//! | module | its reason to change |
//! |---|---|
//! | [`library`] | where NCCL's own functions are, and who gets ours instead |
//! | [`calls`] | NCCL's functions, as programs call them |
//! | [`communicators`] | which communicators there are, and what they are called on every rank |
//! | [`position`] | what was issued, and how far the process continues before it is held |
//! | [`graphs`] | calls that were captured: they are issued when their graph is launched |
//!
//! # Rules
//!
//! * A call, or a group of them, is inside the gate from before it is counted until NCCL has issued it: none is held half way.
//!   Making communicators is not: ranks wait for each other there on their hosts, where being held does no harm.
//! * A call is counted when it can no longer be held back, and is taken back if NCCL refuses it. Where one is missed (a second copy of
//!   NCCL that is used by handle, a function that came later than these), ranks do not come to a cut, and the checkpoint is tried
//!   again; nothing worse.
//! * NCCL is called as it would have been without the shim, whatever copy of it that is.

pub mod calls;
mod communicators;
pub mod graphs;
pub mod library;
mod position;

pub use position::{
    are_too_many, counts, give_up, have_arrived, pursue, reset_in_child, there_are,
};
