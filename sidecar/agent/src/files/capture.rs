//! The checkpoint's part: which files the image describes, and which it carries.
//!
//! The tree stands still: lengths, contents and memory are of one instant.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use phos_shared::host_memory;

use super::errors::{FilesError, io_error};
use crate::image::{FILES_DIR, FileRecord, ImageDirectory, NeededCopy, NeededPath};
use crate::{sparse, tree};

/// Decides of which files that are only read the image carries the content.
#[derive(Debug)]
pub struct Carry<'a> {
    /// Those below these directories,
    pub below: &'a BTreeSet<PathBuf>,
    /// of at most this length in bytes, and not on a network file system, which the other machine has as well.
    pub most: u64,
    /// The image that the content is copied into.
    pub image: &'a ImageDirectory,
}

/// Most bytes of files that are only read, in one image: they are copied while the job stands still.
pub const MOST_OF_OTHERS: u64 = 64 << 20;

/// Their contents, one after another: in a directory of large pages a file of its own would take one for each.
pub(super) const OTHERS: &str = "others";

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
                && !phos_file_systems::is_on_network(&needed.path)
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
