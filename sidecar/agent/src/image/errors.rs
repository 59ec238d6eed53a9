//! Why an image cannot be used or written, each with what helps.

use std::io;

/// Why an image cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// An operation of the file system failed.
    #[error("cannot {what}: {cause}{remedy}")]
    Io {
        /// What was tried, and with which path.
        what: String,
        /// The error that the system call returned.
        cause: io::Error,
        /// What the user can do about it.
        remedy: &'static str,
    },
    /// The description is not JSON, or not of this form.
    #[error(
        "agent.json of the image does not parse ({0}): the image is damaged; use the checkpoint before"
    )]
    Damaged(String),
    /// Written by a newer phos-ft.
    #[error(
        "the image has agent format {found}, this phos-ft ({}) reads up to {reads}: upgrade phos-ft to at least {by}",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// The format of the image.
        found: u32,
        /// The phos-ft version that wrote the image.
        by: String,
        /// The newest format that this program reads.
        reads: u32,
    },
    /// The image was made on another machine type.
    #[error("the image was taken on {image} and this machine is {here}: restore it on {image}")]
    Arch {
        /// The architecture of the machine that the image was made on.
        image: String,
        /// The architecture of this machine.
        here: String,
    },
}

impl ImageError {
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
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
