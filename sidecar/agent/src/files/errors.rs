//! Why files of the job could not be copied or put back, each with what helps.

use std::io;
use std::path::{Path, PathBuf};

/// Why files could not be copied or put back.
#[derive(Debug, thiserror::Error)]
pub enum FilesError {
    /// Paths of the job are not here, or are not what they were.
    #[error(
        "{what}. Mount the volumes and use the image that the job had at the checkpoint, or go back to a checkpoint that does \
         without with `phos-ft restore ID`{}",
        if *.content {
            "; files that the job writes are carried by the checkpoint itself up to --max-file-size"
        } else {
            ""
        }
    )]
    Differ {
        /// Each with what is wrong.
        what: String,
        /// Whether one of them is a file that a larger `--max-file-size` would have kept.
        content: bool,
    },
    /// Shared memory is as much the job's memory as any: without it there is no checkpoint.
    #[error(
        "the job's shared memory {} has {} MiB and the image has room for {} MiB: raise --image-limit, or free host memory",
        .path.display(), .bytes >> 20, .room >> 20
    )]
    NoRoom {
        /// The path of the file to be copied.
        path: PathBuf,
        /// The bytes that its content takes.
        bytes: u64,
        /// The bytes that there is room for.
        room: u64,
    },
    /// The content is needed and was not kept.
    #[error(
        "{} {found}, and its content is not in the checkpoint because it had {length} bytes and the limit was lower: put the \
         file back by hand (at least {length} bytes), or take checkpoints with a larger --max-file-size",
        .path.display()
    )]
    NoContent {
        /// The path of the file.
        path: PathBuf,
        /// What is wrong with the file, in words.
        found: String,
        /// The length that the file had at the checkpoint, in bytes.
        length: u64,
    },
    /// Something else has its name.
    #[error("{} is {kind} now and was a regular file at the checkpoint: move it away", .path.display())]
    NotRegular {
        /// The path that the file had.
        path: PathBuf,
        /// The kind of file that is there now.
        kind: &'static str,
    },
    /// A file of another user has the name.
    #[error(
        "{} belongs to user {found} now and belonged to user {owner} at the checkpoint, so it is not written to: give it back with \
         `chown {owner}`, or move it away",
        .path.display()
    )]
    Owner {
        /// The path of the file.
        path: PathBuf,
        /// The user that owns what is there now.
        found: u32,
        /// The user that owned the file at the checkpoint.
        owner: u32,
    },
    /// An operation of the file system failed.
    #[error("cannot {what} {}: {cause}{}", .path.display(), remedy(.cause))]
    Io {
        /// What was tried.
        what: &'static str,
        /// The path that it was tried with.
        path: PathBuf,
        /// The error that the system call returned.
        cause: io::Error,
    },
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => ": make room there",
        Some(libc::EROFS) => ": mount it writable, as it was when the checkpoint was taken",
        Some(libc::EACCES | libc::EPERM) => ": give phos-ft the right to write there",
        Some(libc::ETXTBSY) => ": a running program has this file as its executable; end it",
        _ => "",
    }
}

pub(super) fn io_error<'a>(
    what: &'static str,
    path: &'a Path,
) -> impl Fn(io::Error) -> FilesError + 'a {
    move |cause| FilesError::Io {
        what,
        path: path.to_owned(),
        cause,
    }
}
