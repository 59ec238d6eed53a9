//! What a sidecar says of itself: what is the case now, and what happened.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`status`] | what is the case now |
//! | [`reason`] | why checkpoints fail |
//! | [`event`] | what can happen, with the names under which programs know it |
//! | [`journal`] | how much of what happened is kept, and how others learn of it |
//! | [`timeline`] | how the phases of a stop follow each other |
//! | [`work`] | how far long work is |
//! | [`shared`] | all of this in one place, for those who change it and those who pass it on |
//!
//! The engine writes all of it and reads none: what people and machines see is made of this by `observe`, by the control socket and
//! by the command line. Nobody who looks can hold the engine up.

pub mod event;
pub mod journal;
pub mod reason;
pub(crate) mod shared;
pub mod status;
pub mod timeline;
pub mod work;
