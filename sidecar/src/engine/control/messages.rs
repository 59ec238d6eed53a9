//! What is asked and answered on the control socket: a JSON line each.

use serde::{Deserialize, Serialize};

use crate::report::event::Record;
use crate::report::status::{CheckpointReport, Report};

/// A request on the control socket: one JSON line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Answered by [`Answer::Status`].
    Status,
    /// Take one now; answered by [`Answer::Checkpoint`] when it is visible.
    Checkpoint,
    /// Answered by one [`Answer::Event`] for each event after this number, those to come included, until one side leaves.
    Events {
        /// The number of an event; 0 for all that are kept.
        after: u64,
    },
}

/// An answer: one JSON line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The state of the sidecar, in answer to a request for it.
    Status(Box<Report>),
    /// A checkpoint is stored.
    Checkpoint(Box<CheckpointReport>),
    /// Something happened; or nothing for a while, which tells both sides that the other is there.
    Event(Option<Box<Record>>),
    /// The request failed, for this reason.
    Error(String),
}
