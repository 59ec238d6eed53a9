//! Files and places of the job, as an image describes them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::paths;

/// A file as it was at the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The absolute path of the file.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// The length of the file in bytes.
    pub length: u64,
    /// The permission bits of the file.
    pub mode: u32,
    /// The user that owns the file.
    pub uid: u32,
    /// The group of the file.
    pub gid: u32,
    /// Name in `files/` of its content; `None` when it was over the size limit.
    pub content: Option<String>,
}

/// A file or directory that the job uses without writing to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededPath {
    /// The absolute path of the file or directory.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// Length in bytes; `None`: a directory.
    pub length: Option<u64>,
    /// The permission bits of the file or directory.
    pub mode: u32,
    /// The user that owns it; `None` in older images, which did not note it.
    #[serde(default)]
    pub uid: Option<u32>,
    /// What to make it from where it is missing; `None` of what any machine must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<NeededCopy>,
}

/// The content of a file that another machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededCopy {
    /// Where its content begins in `files/others`, in bytes.
    pub offset: u64,
    /// The user that owns the file.
    pub uid: u32,
    /// The group of the file.
    pub gid: u32,
}

/// A file with names of its own and those by which CRIU opens it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkedFile {
    /// The names that it has at the restore alone.
    #[serde(with = "paths::many")]
    pub remaps: Vec<PathBuf>,
    /// The file's own names, which it has beside those.
    #[serde(with = "paths::many")]
    pub names: Vec<PathBuf>,
    /// The length of the file in bytes.
    pub length: u64,
    /// The permission bits of the file.
    pub mode: u32,
    /// The user that owns the file.
    pub uid: u32,
    /// The group of the file.
    pub gid: u32,
    /// Name in `files/` of its content.
    pub content: String,
}

/// Whether a place is a directory or a named pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A directory.
    Directory,
    /// A named pipe.
    Pipe,
}

/// A directory or a named pipe as it was at the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The absolute path of the place.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// Whether it is a directory or a named pipe.
    pub kind: Kind,
    /// The permission bits of the place.
    pub mode: u32,
    /// The user that owns the place.
    pub uid: u32,
    /// The group of the place.
    pub gid: u32,
    /// Whether a restore continues without it.
    #[serde(default)]
    pub perhaps: bool,
}
