//! The restore's part: puts each file back as it was at the checkpoint, without losing anybody's work.

use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::capture::OTHERS;
use super::errors::{FilesError, io_error};
use super::make::{self, What};
use crate::image::{FileRecord, NeededPath};
use crate::user::way::{self, Entry, Found};
use crate::{sparse, tree};

/// What [`put_back`] did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The file was as it should be.
    Nothing,
    /// Its tail, beyond the length at the checkpoint, was saved and cut off.
    Cut {
        /// The path that the tail was saved at, if it was.
        saved: Option<PathBuf>,
        /// The length of the tail in bytes.
        bytes: u64,
    },
    /// It was written from the image; what was there is saved.
    Rewritten {
        /// The path that the old file was saved at, if there was one.
        saved: Option<PathBuf>,
    },
}

/// Writes a file that the job only reads, if it is missing and the image has it; whether it did. Its directory must be there.
/// `contents` is the `files/` directory.
///
/// # Errors
/// [`FilesError::Io`]; [`FilesError::Differ`] for one that is longer than it was and begins differently.
pub fn bring(needed: &NeededPath, contents: &Path) -> Result<bool, FilesError> {
    let path = needed.path.as_path();
    let Some(copy) = &needed.copy else {
        return Ok(false);
    };
    let length = needed.length.unwrap_or(0);
    let found = match std::fs::metadata(path) {
        Ok(meta) if meta.len() <= length => return Ok(false),
        Ok(meta) => Some(meta.len()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => None,
        Err(e) => return Err(io_error("look at", path)(e)),
    };
    let others = contents.join(OTHERS);
    let mut source = File::open(&others)
        .and_then(|mut file| file.seek(SeekFrom::Start(copy.offset)).map(|_| file))
        .map_err(io_error("read from the image", &others))?;
    if let Some(found) = found {
        let same = File::open(path)
            .and_then(|file| is_same(&mut file.take(length), &mut source.take(length)))
            .map_err(io_error("compare with the image the file", path))?;
        if same {
            return Ok(false);
        }
        return Err(FilesError::Differ {
            what: format!(
                "{} has {found} bytes, {length} at the checkpoint, and begins differently",
                path.display()
            ),
            content: false,
        });
    }
    let content = What::File(&mut source, length);
    make::make(path, content, (copy.uid, copy.gid), needed.mode).map_err(io_error("write", path))
}

/// Puts one file back to its state at the checkpoint. `contents` is the `files/` directory.
///
/// # Errors
/// [`FilesError`].
pub fn put_back(record: &FileRecord, contents: &Path) -> Result<Action, FilesError> {
    let path = record.path.as_path();
    let content = record.content.as_ref().map(|name| contents.join(name));
    let content = content
        .map(|path| File::open(&path).map_err(io_error("read from the image", &path)))
        .transpose()?;
    let entry = match Entry::of(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound && content.is_some() => {
            create_parents(path)?;
            Entry::of(path)
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            return Err(no_content(record, "is missing".into()));
        }
        other => other,
    };
    let entry = entry.map_err(io_error("get to", path))?;
    let found = entry.find().map_err(io_error("look at", path))?;
    let Some(found) = found else {
        let Some(content) = content else {
            return Err(no_content(record, "is missing".into()));
        };
        let what = What::Copy(&content, record.length);
        let made = make::make(path, what, (record.uid, record.gid), record.mode);
        if !made.map_err(io_error("write", path))? {
            let taken = io::Error::from(io::ErrorKind::AlreadyExists);
            return Err(io_error("write", path)(taken));
        }
        return Ok(Action::Rewritten { saved: None });
    };
    if found.kind() != FileType::RegularFile {
        return Err(FilesError::NotRegular {
            path: path.to_owned(),
            kind: match found.kind() {
                FileType::Directory => "a directory",
                FileType::Symlink => "a symbolic link",
                _ => "a special file",
            },
        });
    }
    check_owner(path, &found, record.uid)?;
    let action = put_back_existing(record, &entry, &found, content.as_ref())?;
    give_back(&found, (record.uid, record.gid), record.mode)
        .map_err(io_error("set owner and mode of", path))?;
    Ok(action)
}

/// A file of another user is not the job's, whatever it is called: the user that could put it there may want it changed.
///
/// # Errors
/// [`FilesError::Owner`].
pub(super) fn check_owner(path: &Path, found: &Found, owner: u32) -> Result<(), FilesError> {
    let (user, _) = found.owner();
    // What was root's may be given back to root.
    if user == owner || owner == 0 {
        return Ok(());
    }
    Err(FilesError::Owner {
        path: path.to_owned(),
        found: user,
        owner,
    })
}

/// Owner (user, group) and mode of a file that is there.
fn give_back(found: &Found, owner: (u32, u32), mode: u32) -> io::Result<()> {
    let is_owned = found.owner() == owner;
    if is_owned && found.stat.st_mode & 0o7777 == mode {
        return Ok(());
    }
    let mode = make::mode_of_a_file(mode, owner);
    let file = found.open(OpenOptions::new().read(true))?;
    if !is_owned {
        // No bit of the old mode is the new owner's, not for a moment.
        file.set_permissions(Permissions::from_mode(0o600))?;
        std::os::unix::fs::fchown(&file, Some(owner.0), Some(owner.1))?;
    }
    file.set_permissions(Permissions::from_mode(mode))
}

fn no_content(record: &FileRecord, found: String) -> FilesError {
    FilesError::NoContent {
        path: record.path.clone(),
        found,
        length: record.length,
    }
}

fn put_back_existing(
    record: &FileRecord,
    entry: &Entry,
    found: &Found,
    content: Option<&File>,
) -> Result<Action, FilesError> {
    let path = record.path.as_path();
    let length = found.length();
    // In memory (shared memory by name) what the job left there is of no use to anybody.
    let save = !path.starts_with(tree::SHARED_MEMORY);
    if content.is_none() {
        tracing::warn!(
            path = %path.display(),
            bytes = record.length,
            "this file is larger than --max-file-size: its beginning is taken as it is found"
        );
    }
    let same_beginning = match content {
        None if length < record.length => {
            return Err(no_content(record, format!("has {length} bytes")));
        }
        None => true,
        Some(content) => {
            length >= record.length
                && begins_like(found, content, record.length)
                    .map_err(io_error("compare with the image the file", path))?
        }
    };
    let owner = (record.uid, record.gid);
    match (same_beginning, content) {
        (true, _) if length == record.length => Ok(Action::Nothing),
        (true, _) => {
            let saved = save
                .then(|| save_beside(entry, found, record.length, owner))
                .transpose()
                .map_err(io_error("save what is cut off of", path))?;
            found
                .open(OpenOptions::new().write(true))
                .and_then(|f| f.set_len(record.length))
                .map_err(io_error("cut back", path))?;
            Ok(Action::Cut {
                saved: saved.map(|name| path.with_file_name(name)),
                bytes: length - record.length,
            })
        }
        (false, Some(content)) => {
            let saved = (save && length > 0)
                .then(|| save_beside(entry, found, 0, owner))
                .transpose()
                .map_err(io_error("save what is cut off of", path))?;
            found
                .open(OpenOptions::new().write(true).truncate(true))
                .and_then(|target| sparse::copy(content, &target, record.length))
                .map_err(io_error("write", path))?;
            Ok(Action::Rewritten {
                saved: saved.map(|name| path.with_file_name(name)),
            })
        }
        // Without content the beginning counts as the same.
        (false, None) => Ok(Action::Nothing),
    }
}

/// Whether the first `length` bytes of both files are equal.
pub(super) fn begins_like(found: &Found, content: &File, length: u64) -> io::Result<bool> {
    let file = found.open(OpenOptions::new().read(true))?;
    let mut content = content;
    content.rewind()?;
    is_same(&mut file.take(length), &mut content.take(length))
}

fn is_same(a: &mut impl Read, b: &mut impl Read) -> io::Result<bool> {
    let mut left = vec![0_u8; 256 << 10];
    let mut right = vec![0_u8; 256 << 10];
    loop {
        let n = read_full(a, &mut left)?;
        let m = read_full(b, &mut right)?;
        if n != m || left[..n] != right[..m] {
            return Ok(false);
        }
        if n == 0 {
            return Ok(true);
        }
    }
}

fn read_full(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Copies a file from `from` on to a new one beside it, which belongs to `owner` (user, group), and makes the copy durable. Its
/// name.
///
/// # Errors
/// The error of the file system.
pub(super) fn save_beside(
    entry: &Entry,
    found: &Found,
    from: u64,
    (user, group): (u32, u32),
) -> io::Result<OsString> {
    let mut n = 1_u32;
    let (saved, mut target) = loop {
        let mut name = entry.name().to_owned();
        name.push(format!(".phos-cut-{n}"));
        let candidate = entry.beside(name)?;
        match candidate.create() {
            Ok(file) => break (candidate, file),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => n += 1,
            Err(e) => return Err(e),
        }
    };
    let mut copy = || -> io::Result<()> {
        let mut source = found.open(OpenOptions::new().read(true))?;
        source.seek(SeekFrom::Start(from))?;
        io::copy(&mut source, &mut target)?;
        target.flush()?;
        let meta = target.metadata()?;
        if (meta.uid(), meta.gid()) != (user, group)
            && let Err(cause) = std::os::unix::fs::fchown(&target, Some(user), Some(group))
        {
            // As on a file system where nobody may: then it is ours.
            tracing::warn!(%cause, "what was cut off a file does not belong to its owner");
        }
        target.sync_all()
    };
    if let Err(e) = copy() {
        // A half copy would look like a whole one.
        let _ = saved.remove();
        return Err(e);
    }
    Ok(saved.name().to_owned())
}

/// Makes the directories a file lies in.
///
/// # Errors
/// [`FilesError::Io`].
pub fn create_parents(path: &Path) -> Result<(), FilesError> {
    match path.parent() {
        Some(parent) => create_directory(parent),
        None => Ok(()),
    }
}

/// Makes a directory and those above it.
///
/// # Errors
/// [`FilesError::Io`].
pub fn create_directory(path: &Path) -> Result<(), FilesError> {
    way::create_directories(path, 0o755)
        .map(drop)
        .map_err(io_error("make the directory", path))
}
