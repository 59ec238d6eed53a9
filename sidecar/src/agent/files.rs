//! Files that the job has open for writing: what they were at the checkpoint, and putting them back.
//!
//! CRIU re-opens regular files by path and refuses when one has another length than at the dump. A job that
//! went on after the checkpoint has appended to its logs, so a restore without this step would fail, and if it
//! did not, the log would show steps twice.
//!
//! # Consistency
//!
//! [`capture`] runs while CRIU holds the tree frozen: lengths, contents and memory are of one instant.
//!
//! # Crash
//!
//! [`put_back`] first saves what it is about to cut off, then changes the file. Run again after a crash in
//! between, it does what is left to do (the saved copy may then exist twice).
//!
//! | at restore the file is | content in the image | done |
//! |---|---|---|
//! | as it was | either | nothing |
//! | longer, same beginning | either | tail saved to `<path>.phos-cut-<n>`, truncated |
//! | different in what the image knows | yes | saved to `<path>.phos-cut-<n>`, rewritten |
//! | shorter | yes | rewritten |
//! | missing | yes | written, parent directories made |
//! | shorter or missing | no | [`FilesError::NoContent`] |
//!
//! What the job has open or mapped without writing to it (data sets, libraries, its program) is the user's: the image has the
//! paths with length and mode, because CRIU takes nothing else back, and [`check`] says of all of them at once what this place
//! lacks, before anything is fetched or changed. But what lies in temporary and cache directories ([`temporary`](super::temporary))
//! no other machine has: of such files the image has the contents, the smallest first, up to [`MOST_OF_OTHERS`] in all, and [`bring`]
//! writes those that are missing. One that is there is the user's as well: another mode is refused, and that it is shorter.
//!
//! One that has become longer was appended to, and is opened as it is ([`of_any_length`]): nothing that the job has read of it changed.
//! Not so programs and libraries: longer ones are other builds.
//!
//! # Rules
//!
//! The agent may be root in directories that are the job's: files are got at by [`way`], what is there is changed only where it
//! belongs to whom it belonged at the checkpoint, and what is made is made by [`make`].

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use rustix::fs::FileType;
use serde::{Deserialize, Serialize};

use super::image::{FILES_DIR, ImageDirectory};
use super::make::{self, What};
use super::way::{self, Entry, Found};
use super::{paths, sparse, tree};
use crate::host_memory;

/// A file as it was at the checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Absolute path.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// Length in bytes.
    pub length: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Name in `files/` of its content; `None` when it was over the size limit.
    pub content: Option<String>,
}

/// A file or directory that the job uses without writing to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NeededPath {
    /// Absolute path.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
    /// Length in bytes; `None`: a directory.
    pub length: Option<u64>,
    /// Permission bits.
    pub mode: u32,
    /// Owner; `None` in images of before it was noted.
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
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
}

/// Of which files that are only read the image has the content.
#[derive(Debug)]
pub struct Carry<'a> {
    /// Those below these directories,
    pub below: &'a BTreeSet<PathBuf>,
    /// of at most this length in bytes, and not on a network file system, which the other machine has as well.
    pub most: u64,
    /// Where to.
    pub image: &'a ImageDirectory,
}

/// Most bytes of files that are only read, in one image: they are copied while the job stands still.
pub const MOST_OF_OTHERS: u64 = 64 << 20;

/// Their contents, one after another: in a directory of large pages a file of its own would take one for each.
const OTHERS: &str = "others";

/// Most paths that a refusal names.
const NAMED: usize = 20;

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
        /// Its name.
        path: PathBuf,
        /// What it takes.
        bytes: u64,
        /// What there is.
        room: u64,
    },
    /// The content is needed and was not kept.
    #[error(
        "{} {found}, and its content is not in the checkpoint because it had {length} bytes and the limit was lower: put the \
         file back by hand (at least {length} bytes), or take checkpoints with a larger --max-file-size",
        .path.display()
    )]
    NoContent {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
        /// At the checkpoint.
        length: u64,
    },
    /// Something else has its name.
    #[error("{} is {kind} now and was a regular file at the checkpoint: move it away", .path.display())]
    NotRegular {
        /// The path.
        path: PathBuf,
        /// What is there.
        kind: &'static str,
    },
    /// Somebody else's file has its name.
    #[error(
        "{} belongs to user {found} now and belonged to user {owner} at the checkpoint, so it is not written to: give it back with \
         `chown {owner}`, or move it away",
        .path.display()
    )]
    Owner {
        /// The path.
        path: PathBuf,
        /// Whose it is.
        found: u32,
        /// Whose it was.
        owner: u32,
    },
    /// The file system said no.
    #[error("cannot {what} {}: {cause}{}", .path.display(), remedy(.cause))]
    Io {
        /// What was tried.
        what: &'static str,
        /// With which file.
        path: PathBuf,
        /// Why it failed.
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

/// Whether a path is on a pseudo file system whose files have no content to keep.
pub fn is_pseudo(path: &Path) -> bool {
    path.starts_with("/proc")
        || path.starts_with("/sys")
        || (path.starts_with("/dev") && !path.starts_with("/dev/shm"))
}

/// Records every regular file that a process of the tree can write, copying contents of at most
/// `max_content` bytes into the image, of shared memory all. The tree must be frozen.
///
/// # Errors
/// [`FilesError::Io`] when a content cannot be copied, [`FilesError::NoRoom`].
pub fn capture(
    processes: &[u32],
    max_content: u64,
    image: &ImageDirectory,
) -> Result<Vec<FileRecord>, FilesError> {
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    let mut records = Vec::new();
    for &pid in processes {
        let open = tree::open_files(pid)
            .into_iter()
            .filter(|f| f.link.is_absolute() && tree::is_writable(pid, f.fd))
            .map(|f| (PathBuf::from(format!("/proc/{pid}/fd/{}", f.fd)), f.link));
        for (through, path) in open.chain(tree::shared_writable_maps(pid)) {
            if is_pseudo(&path) || seen.contains(&path) {
                continue;
            }
            // Through the descriptor: the same file, whatever happened to its name.
            let Ok(meta) = std::fs::metadata(&through) else {
                continue;
            };
            // A deleted file is kept by CRIU itself; a name that leads elsewhere is none of this file's.
            if !meta.is_file() || meta.nlink() == 0 || !is_named(&path, &meta) {
                continue;
            }
            seen.insert(path.clone());
            let shared = path.starts_with(tree::SHARED_MEMORY);
            let bytes = if shared { content_bytes(&through) } else { 0 };
            let room = image.free_bytes();
            if bytes > room {
                return Err(FilesError::NoRoom { path, bytes, room });
            }
            let content = if shared || meta.len() <= max_content {
                let name = format!("{:03}", records.len());
                copy_into(&through, meta.len(), image, &name)
                    .map_err(io_error("copy into the image the file", &path))?;
                Some(name)
            } else {
                warn_of_size(&path, meta.len());
                None
            };
            records.push(FileRecord {
                path,
                length: meta.len(),
                mode: meta.mode() & 0o7777,
                uid: meta.uid(),
                gid: meta.gid(),
                content,
            });
        }
    }
    Ok(records)
}

fn content_bytes(path: &Path) -> u64 {
    File::open(path).map_or(0, |file| sparse::content_bytes(&file))
}

/// Lists what the processes have open or mapped, by names that lead there, and neither write to (`records`) nor get from the
/// image anyway (`made`), and copies what `carry` says into the image. Directories among those are to be made: the second. The
/// tree must be frozen.
pub fn needed(
    processes: &[u32],
    records: &[FileRecord],
    made: &[PathBuf],
    carry: &Carry<'_>,
) -> (Vec<NeededPath>, Vec<PathBuf>) {
    let mut seen: BTreeSet<PathBuf> = records.iter().map(|r| r.path.clone()).collect();
    seen.extend(made.iter().cloned());
    let mut found = Vec::new();
    for &pid in processes {
        let open = tree::open_files(pid)
            .into_iter()
            .filter(|f| f.link.is_absolute())
            .map(|f| (PathBuf::from(format!("/proc/{pid}/fd/{}", f.fd)), f.link));
        for (through, path) in open.chain(tree::mapped_files(pid)) {
            if is_pseudo(&path) || !seen.insert(path.clone()) {
                continue;
            }
            let Ok(meta) = std::fs::metadata(&through) else {
                continue;
            };
            // Deleted, or seen by the job under another name than by us: CRIU knows.
            if meta.nlink() == 0 || !is_named(&path, &meta) {
                continue;
            }
            let length = match meta.file_type() {
                kind if kind.is_file() => Some(meta.len()),
                kind if kind.is_dir() => None,
                _ => continue,
            };
            let needed = NeededPath {
                path,
                length,
                mode: meta.mode() & 0o7777,
                uid: Some(meta.uid()),
                copy: None,
            };
            found.push((needed, through, (meta.uid(), meta.gid())));
        }
    }
    copy_others(&mut found, carry);
    let mut found: Vec<NeededPath> = found.into_iter().map(|(needed, ..)| needed).collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    let (directories, needed) = (found.into_iter())
        .partition::<Vec<_>, _>(|n| n.length.is_none() && carry.is_below(&n.path));
    let directories = directories.into_iter().map(|n| n.path).collect();
    (needed, directories)
}

impl Carry<'_> {
    fn is_below(&self, path: &Path) -> bool {
        self.below.iter().any(|dir| path.starts_with(dir))
    }
}

/// Copies those that `carry` names, each with the way to it and its owner. One that cannot be copied must be found where the job
/// is restored.
fn copy_others(found: &mut [(NeededPath, PathBuf, (u32, u32))], carry: &Carry<'_>) {
    let mut others: Vec<(u64, _)> = found
        .iter_mut()
        .filter_map(|entry| Some((entry.0.length?, entry)))
        .filter(|(length, (needed, ..))| {
            *length <= carry.most
                && carry.is_below(&needed.path)
                && !phos_storage::is_on_network(&needed.path)
        })
        .collect();
    if others.is_empty() {
        return;
    }
    others.sort_by(|(a, (one, ..)), (b, (other, ..))| (a, &one.path).cmp(&(b, &other.path)));
    // What else is still to be written, and the job itself, must not want for room because of these.
    let free = carry.image.free_bytes() / 8;
    let memory = host_memory::available().map_or(u64::MAX, |bytes| bytes / 8);
    let room = MOST_OF_OTHERS.min(free).min(memory);
    let path = carry.image.path_of(FILES_DIR).join(OTHERS);
    let mut target = match File::create(&path) {
        Ok(file) => file,
        Err(e) => {
            tracing::debug!(cause = %e, "nothing of temporary directories is carried");
            return;
        }
    };
    let mut offset = 0;
    for (length, (needed, through, (uid, gid))) in others {
        if offset + length > room {
            break;
        }
        if let Err(e) = append(through, length, &mut target) {
            tracing::debug!(path = %needed.path.display(), cause = %e, "not carried");
            // What was written of it is overwritten, or read by nobody.
            if target.seek(SeekFrom::Start(offset)).is_err() {
                return;
            }
            continue;
        }
        needed.copy = Some(NeededCopy {
            offset,
            uid: *uid,
            gid: *gid,
        });
        offset += length;
    }
}

fn append(from: &Path, length: u64, target: &mut File) -> io::Result<()> {
    let copied = io::copy(&mut File::open(from)?.take(length), target)?;
    if copied != length {
        return Err(io::Error::other("it became shorter"));
    }
    Ok(())
}

/// Whether everything that an image needs and does not carry is here. Changes nothing.
///
/// # Errors
/// [`FilesError::Differ`] with all that is not.
pub fn check(needed: &[NeededPath], records: &[FileRecord]) -> Result<(), FilesError> {
    let mut wrong: Vec<String> = Vec::new();
    let mut content = false;
    for record in records.iter().filter(|r| r.content.is_none()) {
        let found = match std::fs::metadata(&record.path) {
            Err(_) => "is missing".to_owned(),
            Ok(meta) if meta.len() < record.length => format!("has {} bytes", meta.len()),
            Ok(_) => continue,
        };
        content = true;
        wrong.push(format!(
            "{} {found}, {} at the checkpoint or more are needed",
            record.path.display(),
            record.length
        ));
    }
    wrong.extend(needed.iter().filter_map(|needed| {
        let path = needed.path.display();
        let Ok(meta) = std::fs::metadata(&needed.path) else {
            return needed.copy.is_none().then(|| format!("{path} is missing"));
        };
        match needed.length {
            None if !meta.is_dir() => Some(format!("{path} is not a directory")),
            Some(_) if !meta.is_file() => Some(format!("{path} is not a file")),
            Some(length)
                if meta.len() < length || (meta.len() > length && is_code(&needed.path)) =>
            {
                Some(format!(
                    "{path} has {} bytes, {length} at the checkpoint",
                    meta.len()
                ))
            }
            _ if meta.mode() & 0o7777 != needed.mode => Some(format!(
                "{path} has mode {:04o}, {:04o} at the checkpoint",
                meta.mode() & 0o7777,
                needed.mode
            )),
            _ => None,
        }
    }));
    if wrong.is_empty() {
        return Ok(());
    }
    let more = wrong.len().saturating_sub(NAMED);
    wrong.truncate(NAMED);
    let mut what = wrong.join("; ");
    if more > 0 {
        what.push_str(&format!("; and {more} more"));
    }
    Err(FilesError::Differ { what, content })
}

/// Whether a file is a program or a library, as far as that can be seen.
fn is_code(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .is_ok_and(|()| magic == *b"\x7fELF")
}

/// Those of the files that the job only reads that may be longer now than they were, or become so at any moment.
pub fn of_any_length(needed: &[NeededPath]) -> BTreeSet<PathBuf> {
    let at_least = |needed: &&NeededPath| {
        let length = needed.length?;
        let found = std::fs::metadata(&needed.path).ok()?.len();
        if found > length {
            tracing::info!(
                path = %needed.path.display(),
                was = length,
                bytes = found,
                "longer than at the checkpoint: the job has it open again as it is"
            );
        }
        (found >= length && !is_code(&needed.path)).then_some(())
    };
    (needed.iter())
        .filter(|needed| at_least(needed).is_some())
        .map(|needed| needed.path.clone())
        .collect()
}

/// Says once for each file that its content is in no image.
fn warn_of_size(path: &Path, length: u64) {
    static SAID: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if said.insert(path.to_owned()) {
        tracing::warn!(
            path = %path.display(),
            bytes = length,
            "this file is larger than --max-file-size: checkpoints keep its length and not its content, so what the job \
             changes in place after one cannot be undone by a resume; raise --max-file-size if it does that"
        );
    }
}

fn is_named(path: &Path, meta: &std::fs::Metadata) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.dev() == meta.dev() && m.ino() == meta.ino())
}

/// Copies a file of known length into `files/<name>`.
///
/// # Errors
/// Reading or writing failed, or the file is shorter.
pub fn copy_into(from: &Path, length: u64, image: &ImageDirectory, name: &str) -> io::Result<()> {
    let source = File::open(from)?;
    let target = File::create(image.path_of(FILES_DIR).join(name))?;
    sparse::copy(&source, &target, length)
}

/// What [`put_back`] did to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It was as it should be.
    Nothing,
    /// Its tail was saved and cut off.
    Cut {
        /// Where the tail is.
        saved: Option<PathBuf>,
        /// Its length.
        bytes: u64,
    },
    /// It was written from the image; what was there is saved.
    Rewritten {
        /// Where the old file is, if there was one.
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

/// A file of somebody else is not the job's, whatever it is called: who could put it there may want it changed.
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
/// The file system's.
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            std::fs::create_dir(dir.path().join("files")).unwrap();
            Self { dir }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("sub/log.txt")
        }

        fn contents(&self) -> PathBuf {
            self.dir.path().join("files")
        }

        fn record(&self, bytes: &[u8], keep: bool) -> FileRecord {
            std::fs::write(self.contents().join("000"), bytes).unwrap();
            FileRecord {
                path: self.path(),
                length: bytes.len() as u64,
                mode: 0o640,
                uid: rustix::process::getuid().as_raw(),
                gid: rustix::process::getgid().as_raw(),
                content: keep.then(|| "000".into()),
            }
        }

        fn write(&self, bytes: &[u8]) {
            std::fs::create_dir_all(self.dir.path().join("sub")).unwrap();
            std::fs::write(self.path(), bytes).unwrap();
        }

        fn saved(&self) -> Vec<Vec<u8>> {
            let mut found: Vec<_> = std::fs::read_dir(self.dir.path().join("sub"))
                .unwrap()
                .flatten()
                .filter(|e| e.file_name().to_string_lossy().contains("phos-cut"))
                .map(|e| e.path())
                .collect();
            found.sort();
            found.iter().map(|p| std::fs::read(p).unwrap()).collect()
        }
    }

    fn an_image() -> (tempfile::TempDir, ImageDirectory) {
        let parent = tempfile::tempdir().unwrap();
        let image = ImageDirectory::create(None, false, parent.path()).unwrap();
        image.subdirectory(FILES_DIR).unwrap();
        (parent, image)
    }

    #[rstest]
    #[case::same(b"abc", b"abc", None)]
    #[case::longer(b"abc", b"abcdef", Some(b"def".as_slice()))]
    #[case::differs(b"abc", b"xyz", Some(b"xyz".as_slice()))]
    #[case::differs_and_longer(b"abc", b"xyzzy", Some(b"xyzzy".as_slice()))]
    #[case::shorter(b"abc", b"a", Some(b"a".as_slice()))]
    #[case::emptied(b"abc", b"", None)]
    fn with_content(#[case] then: &[u8], #[case] now: &[u8], #[case] saved: Option<&[u8]>) {
        let place = Place::new();
        place.write(now);
        put_back(&place.record(then, true), &place.contents()).unwrap();
        assert_eq!(std::fs::read(place.path()).unwrap(), then);
        assert_eq!(
            place.saved(),
            saved.map(<[u8]>::to_vec).into_iter().collect::<Vec<_>>()
        );
        assert_eq!(
            std::fs::metadata(place.path()).unwrap().mode() & 0o7777,
            0o640
        );
    }

    #[test]
    fn a_missing_file_is_recreated_with_its_directory() {
        let place = Place::new();
        let action = put_back(&place.record(b"abc", true), &place.contents()).unwrap();
        assert_eq!(action, Action::Rewritten { saved: None });
        assert_eq!(std::fs::read(place.path()).unwrap(), b"abc");
    }

    #[test]
    fn without_content_a_missing_or_short_file_is_an_error_that_names_it() {
        let place = Place::new();
        let record = place.record(b"abc", false);
        let error = put_back(&record, &place.contents())
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("log.txt") && error.contains("--max-file-size"),
            "{error}"
        );
        place.write(b"ab");
        assert!(matches!(
            put_back(&record, &place.contents()),
            Err(FilesError::NoContent { .. })
        ));
        assert_eq!(std::fs::read(place.path()).unwrap(), b"ab");
    }

    #[test]
    fn a_second_cut_gets_another_name() {
        let place = Place::new();
        let record = place.record(b"abc", true);
        for tail in ["1", "2"] {
            place.write(format!("abc{tail}").as_bytes());
            put_back(&record, &place.contents()).unwrap();
        }
        assert_eq!(place.saved(), [b"1", b"2"]);
    }

    #[test]
    fn a_directory_in_its_place_is_refused() {
        let place = Place::new();
        std::fs::create_dir_all(place.path()).unwrap();
        assert!(matches!(
            put_back(&place.record(b"abc", true), &place.contents()),
            Err(FilesError::NotRegular { .. })
        ));
    }

    /// What a job's user can do in directories of its own between a checkpoint and a restore, for an agent that is root.
    #[rstest]
    #[case::missing_there("new", true)]
    #[case::there("log.txt", true)]
    #[case::a_longer_one("long", true)]
    #[case::without_content("long", false)]
    fn what_is_not_the_jobs_is_not_touched(#[case] name: &str, #[case] content: bool) {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let place = Place::new();
        let at = |name: &str| place.dir.path().join(name);
        std::fs::create_dir(at("etc")).unwrap();
        for (file, bytes) in [("log.txt", &b"xyz"[..]), ("long", b"abc and more")] {
            std::fs::write(at("etc").join(file), bytes).unwrap();
        }
        let state = || -> BTreeSet<_> {
            let files = std::fs::read_dir(at("etc")).unwrap().flatten();
            files
                .map(|file| {
                    let meta = file.metadata().unwrap();
                    let bytes = std::fs::read(file.path()).unwrap();
                    (file.path(), meta.uid(), meta.mode(), bytes)
                })
                .collect()
        };
        let before = state();
        let record = FileRecord {
            path: at("sub").join(name),
            uid: 1234,
            gid: 1234,
            mode: 0o6777,
            ..place.record(b"abc", content)
        };
        // `mv sub sub.old; ln -s etc sub`
        std::os::unix::fs::symlink("etc", at("sub")).unwrap();
        std::os::unix::fs::lchown(at("sub"), Some(1234), Some(1234)).unwrap();
        put_back(&record, &place.contents()).unwrap_err();
        assert_eq!(state(), before);
        // The same by another name of the file, where the kernel lets everybody make one.
        std::fs::remove_file(at("sub")).unwrap();
        std::fs::create_dir(at("sub")).unwrap();
        if at("etc").join(name).exists() {
            std::fs::hard_link(at("etc").join(name), at("sub").join(name)).unwrap();
            let refused = put_back(&record, &place.contents()).unwrap_err();
            assert!(
                matches!(
                    refused,
                    FilesError::Owner {
                        found: 0,
                        owner: 1234,
                        ..
                    }
                ),
                "{refused}"
            );
            assert_eq!(state(), before);
        }
    }

    #[test]
    fn what_is_cut_off_is_its_owners() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let place = Place::new();
        place.write(b"abc and more");
        std::os::unix::fs::chown(place.path(), Some(1234), Some(4321)).unwrap();
        let record = FileRecord {
            uid: 1234,
            gid: 4321,
            mode: 0o4750,
            ..place.record(b"abc", true)
        };
        let action = put_back(&record, &place.contents()).unwrap();
        let Action::Cut {
            saved: Some(saved), ..
        } = action
        else {
            panic!("{action:?}");
        };
        let facts = |path: &Path| {
            let meta = std::fs::metadata(path).unwrap();
            (meta.uid(), meta.gid(), meta.mode() & 0o7777)
        };
        assert_eq!(facts(&saved), (1234, 4321, 0o600));
        assert_eq!(facts(&place.path()), (1234, 4321, 0o4750));
        // Back to root: no bit lets others run it as root.
        let record = FileRecord { uid: 0, ..record };
        put_back(&record, &place.contents()).unwrap();
        assert_eq!(facts(&place.path()), (0, 4321, 0o750));
    }

    #[test]
    fn files_open_for_writing_are_captured_and_others_not() {
        let place = Place::new();
        place.write(b"hello");
        let other = place.dir.path().join("read-only.txt");
        std::fs::write(&other, b"x").unwrap();
        let gone = place.dir.path().join("gone.txt");
        let _writer = OpenOptions::new().append(true).open(place.path()).unwrap();
        let _reader = File::open(&other).unwrap();
        let _deleted = File::create(&gone).unwrap();
        std::fs::remove_file(&gone).unwrap();
        let (_parent, image) = an_image();
        let records = capture(&[std::process::id()], 1 << 20, &image).unwrap();
        let found = records.iter().find(|r| r.path == place.path()).unwrap();
        assert_eq!(found.length, 5);
        let name = found.content.clone().unwrap();
        assert_eq!(
            std::fs::read(image.path_of(FILES_DIR).join(name)).unwrap(),
            b"hello"
        );
        assert!(records.iter().all(|r| r.path != other && r.path != gone));
        let small = capture(&[std::process::id()], 4, &image).unwrap();
        let found = small.iter().find(|r| r.path == place.path()).unwrap();
        assert_eq!((found.length, found.content.clone()), (5, None));
    }

    #[test]
    fn what_is_needed_and_not_carried_is_found_and_missed_by_name() {
        let place = Place::new();
        let data = place.dir.path().join("data.bin");
        let dir = place.dir.path().join("shards");
        std::fs::write(&data, b"12345").unwrap();
        std::fs::set_permissions(&data, Permissions::from_mode(0o644)).unwrap();
        std::fs::create_dir(&dir).unwrap();
        place.write(b"log");
        let _reader = File::open(&data).unwrap();
        let _dir = File::open(&dir).unwrap();
        let _writer = OpenOptions::new().append(true).open(place.path()).unwrap();
        let record = place.record(b"log", false);
        let (_parent, image) = an_image();
        let (all, _) = needed(
            &[std::process::id()],
            std::slice::from_ref(&record),
            &[PathBuf::from("/made")],
            &Carry {
                below: &BTreeSet::new(),
                most: 1 << 20,
                image: &image,
            },
        );
        for (path, length) in [(&data, Some(5)), (&dir, None)] {
            let found = all.iter().find(|n| n.path == *path).unwrap();
            assert_eq!(found.length, length);
        }
        // What is mapped is shown to root alone.
        if rustix::process::geteuid().is_root() {
            let program = std::env::current_exe().unwrap();
            assert!(all.iter().any(|n| n.path == program));
        }
        assert!(all.iter().all(|n| n.path != place.path()));
        // Other tests of this process open and remove files.
        let ours: Vec<NeededPath> = all
            .into_iter()
            .filter(|n| n.path.starts_with(place.dir.path()))
            .collect();
        let records = [record];
        check(&ours, &records).unwrap();
        std::fs::write(&data, b"12345678").unwrap();
        check(&ours, &records).unwrap();
        assert_eq!(of_any_length(&ours), BTreeSet::from([data.clone()]));
        // A library that is longer is another one.
        std::fs::write(&data, b"\x7fELF5678").unwrap();
        let text = check(&ours, &records).unwrap_err().to_string();
        assert!(text.contains("data.bin has 8 bytes, 5 at"), "{text}");
        assert_eq!(of_any_length(&ours), BTreeSet::new());

        std::fs::write(&data, b"123").unwrap();
        assert_eq!(of_any_length(&ours), BTreeSet::new());
        std::fs::remove_dir(&dir).unwrap();
        place.write(b"l");
        let text = check(&ours, &records).unwrap_err().to_string();
        for words in [
            "data.bin has 3 bytes, 5 at the checkpoint",
            "shards is missing",
            "log.txt has 1 bytes, 3 at the checkpoint",
            "--max-file-size",
            "Mount the volumes",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        std::fs::write(&data, b"12345").unwrap();
        std::fs::set_permissions(&data, Permissions::from_mode(0o600)).unwrap();
        let text = check(&ours[..1], &[]).unwrap_err().to_string();
        assert!(
            text.contains("has mode 0600, 0644") && !text.contains("--max"),
            "{text}"
        );
    }

    #[test]
    fn what_is_only_read_travels_if_it_is_temporary_and_not_large() {
        let place = Place::new();
        let [cache, data] = ["cache", "data"].map(|n| place.dir.path().join(n));
        let mut open = Vec::new();
        for (dir, name, bytes) in [
            (&cache, "kernel.so", &b"compiled"[..]),
            (&cache, "large.bin", &[7; 100]),
            (&data, "shard.bin", b"samples"),
        ] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(dir.join(name), bytes).unwrap();
            std::fs::set_permissions(dir.join(name), Permissions::from_mode(0o750)).unwrap();
            open.push(File::open(dir.join(name)).unwrap());
        }
        let (_parent, image) = an_image();
        let below = BTreeSet::from([cache.clone()]);
        let carry = Carry {
            below: &below,
            most: 99,
            image: &image,
        };
        open.push(File::open(&cache).unwrap());
        let (mut all, directories) = needed(&[std::process::id()], &[], &[], &carry);
        assert_eq!(directories, std::slice::from_ref(&cache));
        // Other tests of this process open and remove files.
        all.retain(|n| n.path.starts_with(place.dir.path()));
        let carried: Vec<&Path> = all
            .iter()
            .filter(|n| n.copy.is_some())
            .map(|n| n.path.as_path())
            .collect();
        assert_eq!(carried, [cache.join("kernel.so")]);

        let contents = image.path_of(FILES_DIR);
        let brought = || -> Vec<bool> {
            let each = all.iter().map(|n| bring(n, &contents).unwrap());
            each.collect()
        };
        check(&all, &[]).unwrap();
        assert_eq!(brought(), [false, false, false]);
        std::fs::remove_dir_all(&cache).unwrap();
        std::fs::create_dir(&cache).unwrap();
        let text = check(&all, &[]).unwrap_err().to_string();
        assert!(
            text.contains("large.bin is missing") && !text.contains("kernel.so"),
            "{text}"
        );
        assert_eq!(brought(), [true, false, false]);
        let kernel = cache.join("kernel.so");
        assert_eq!(std::fs::read(&kernel).unwrap(), b"compiled");
        assert_eq!(std::fs::metadata(&kernel).unwrap().mode() & 0o7777, 0o750);
        assert_eq!(std::fs::read_dir(&cache).unwrap().count(), 1);
        // One that is there is not ours to change.
        std::fs::write(&kernel, "compiled and more").unwrap();
        assert_eq!(brought(), [false, false, false]);
        std::fs::write(&kernel, "something else").unwrap();
        let found = (all.iter()).find_map(|n| bring(n, &contents).err());
        let text = found.unwrap().to_string();
        assert!(
            text.contains("kernel.so has 14 bytes, 8 at") && text.contains("begins differently"),
            "{text}"
        );
        std::fs::write(&kernel, "short").unwrap();
        let text = check(&all, &[]).unwrap_err().to_string();
        assert!(text.contains("kernel.so has 5 bytes, 8 at"), "{text}");
    }

    #[test]
    fn a_refusal_names_so_many_and_counts_the_rest() {
        let missing: Vec<NeededPath> = (0..25)
            .map(|n| NeededPath {
                path: format!("/nowhere/{n}").into(),
                length: Some(1),
                mode: 0o644,
                uid: None,
                copy: None,
            })
            .collect();
        let text = check(&missing, &[]).unwrap_err().to_string();
        assert!(
            text.contains("/nowhere/19 is missing; and 5 more"),
            "{text}"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Whatever happened to the file, it comes back, and nothing that was in it is lost.
        #[test]
        fn any_change_is_undone_and_nothing_is_lost(
            then in proptest::collection::vec(0_u8..4, 0..64),
            now in proptest::option::of(proptest::collection::vec(0_u8..4, 0..64)),
            grown in any::<bool>(),
        ) {
            let place = Place::new();
            let record = place.record(&then, true);
            let now = now.map(|tail| if grown { [then.clone(), tail].concat() } else { tail });
            if let Some(now) = &now {
                place.write(now);
            }
            put_back(&record, &place.contents()).unwrap();
            prop_assert_eq!(std::fs::read(place.path()).unwrap(), then.clone());
            let saved = place.saved().concat();
            match now {
                Some(now) if now.starts_with(&then) => prop_assert_eq!(saved, now[then.len()..].to_vec()),
                Some(now) => prop_assert_eq!(saved, now),
                None => prop_assert!(saved.is_empty()),
            }
            prop_assert_eq!(put_back(&record, &place.contents()).unwrap(), Action::Nothing);
        }
    }
}
