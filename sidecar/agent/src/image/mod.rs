//! The image directory: where it lies and what the agent writes into it.
//!
//! ```text
//! criu/        CRIU's images and logs
//! files/NNN    contents of files the job has open for writing, and the shim's library
//! agent.json   everything a restore needs to know before it starts: AgentImage
//! ```
//!
//! The directory is the root of a tmpfs of its own that is mounted nowhere: only its fd exists. So no path is shared with the
//! sidecar, the job does not see it, and its memory is given back when the last fd is closed, in whatever order the processes
//! die.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`directory`] | where an image lies until it is stored |
//! | [`description`] | what `agent.json` says |
//! | [`files`] | what it says of the job's files |
//! | [`errors`] | what is said when it cannot be used or written |
//! | [`paths`] | how paths are written in it |

mod description;
mod directory;
mod errors;
mod files;
mod paths;

#[cfg(test)]
pub(crate) use description::tests;
pub use description::{
    AgentImage, Connections, FORMAT, ShimImage, StdioPipe, VaultImage, arch, kernel,
};
pub use directory::{AGENT_FILE, CRIU_DIR, FILES_DIR, ImageDirectory, Pages};
pub use errors::ImageError;
pub use files::{FileRecord, Kind, LinkedFile, NeededCopy, NeededPath, Place};
