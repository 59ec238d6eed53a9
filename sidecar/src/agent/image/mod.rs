//! The image directory: where it lies and what the agent writes into it.
//!
//! ```text
//! criu/        CRIU's images and logs
//! files/NNN    contents of files the job has open for writing, and the shim's library
//! agent.json   everything a restore needs to know before it starts: AgentImage
//! ```
//!
//! The directory is the root of a tmpfs of its own that is mounted nowhere: only its fd exists. So no path is
//! shared with the sidecar, the job does not see it, and its memory is given back when the last fd is closed,
//! whoever dies in whatever order.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`directory`] | where an image lies until it is stored |
//! | [`description`] | what `agent.json` says |
//! | [`files`] | what it says of the job's files |
//! | [`paths`] | how paths are written in it |

mod description;
mod directory;
mod files;
mod paths;

use std::io;

#[cfg(test)]
pub(in crate::agent) use description::tests;
pub use description::{
    AgentImage, FORMAT, ShimImage, StdioPipe, VaultImage, WITHOUT_LINKED, arch, kernel,
};
pub use directory::ImageDirectory;
pub use files::{FileRecord, Kind, LinkedFile, NeededCopy, NeededPath, Place};

/// Name of [`AgentImage`] in the directory.
pub const AGENT_FILE: &str = "agent.json";
/// CRIU's images.
pub const CRIU_DIR: &str = "criu";
/// File contents.
pub const FILES_DIR: &str = "files";

/// Why an image cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file system said no.
    #[error("cannot {what}: {cause}{remedy}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Not JSON, or not this JSON.
    #[error(
        "agent.json of the image does not parse ({0}): the image is damaged; use the checkpoint before"
    )]
    Damaged(String),
    /// Written by a newer phos-ft.
    #[error(
        "the image has agent format {found}, this phos-ft ({}) reads up to {FORMAT}: upgrade phos-ft to at least {by}",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// In the image.
        found: u32,
        /// The writer's version.
        by: String,
    },
    /// Another machine type.
    #[error("the image was taken on {image} and this machine is {here}: restore it on {image}")]
    Arch {
        /// Of the image.
        image: String,
        /// Of this machine.
        here: String,
    },
}

impl ImageError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::Io {
            what,
            remedy: match cause.raw_os_error() {
                Some(libc::ENOSPC | libc::ENOMEM) => {
                    ": free host memory or raise --image-limit (the image lies in memory until it is stored)"
                }
                Some(libc::EPERM | libc::EACCES) => ": run as root with CAP_SYS_ADMIN",
                _ => "",
            },
            cause,
        }
    }
}
