//! The CPU image that CRIU left in a directory: cut into chunks by content, named, handed on.
//!
//! # Rules
//!
//! * Files are read through the directory's fd (`openat`), so it does not matter under which path or in
//!   which mount namespace the agent keeps it.
//! * Chunks are cut where the content says (FastCDC), because page images shift as processes grow;
//!   fixed cuts would find nothing again.
//! * Files are cut in sections of [`SECTION`], each by a thread of its own, so that a large image does not wait for one core. A section
//!   ends with a cut whatever the content is: of some 256 chunks, one or two are not found again when an image shifts.
//! * Memory: one window of [`WINDOW`] for each thread and the chunks in the queue.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use fastcdc::v2020::FastCDC;
use phos_storage::{Digest, FilePath, ImageFile, Naming};
use rustix::fs::{FileType, Mode, OFlags};

use crate::background::Background;

const MIN_CHUNK: usize = 64 << 10;
const AVERAGE_CHUNK: usize = 256 << 10;
const MAX_CHUNK: usize = 1 << 20;
const WINDOW: usize = 8 << 20;
/// What one thread cuts in one go, in bytes. Two images are cut at the same places only if this stays what it is.
const SECTION: u64 = 64 << 20;
/// Threads that cut one image at most: a core names about 1 GB/s, and the job trains meanwhile.
const THREADS: usize = 4;

/// Why the CPU image could not be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum ImageError {
    #[error("cannot read {path} of the CPU image: {source}")]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("the CPU image holds {path}, which is neither a file nor a directory")]
    Odd { path: PathBuf },
    #[error("{path} of the CPU image has {found} bytes where there were {expected}")]
    Length {
        path: PathBuf,
        expected: u64,
        found: u64,
    },
    #[error("stopped")]
    Stopped,
}

fn read_error(path: &Path) -> impl Fn(rustix::io::Errno) -> ImageError + '_ {
    move |e| ImageError::Read {
        path: path.to_owned(),
        source: e.into(),
    }
}

/// A file of the directory: path below it, length, permission bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) struct Entry {
    pub(in crate::engine) path: PathBuf,
    pub(in crate::engine) length: u64,
    pub(in crate::engine) mode: u32,
}

/// Every file below the directory, in the order of their paths.
pub(in crate::engine) fn list(directory: BorrowedFd<'_>) -> Result<Vec<Entry>, ImageError> {
    let mut found = Vec::new();
    walk(directory, Path::new(""), &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

fn walk(directory: BorrowedFd<'_>, below: &Path, found: &mut Vec<Entry>) -> Result<(), ImageError> {
    let entries = rustix::fs::Dir::read_from(directory).map_err(read_error(below))?;
    for entry in entries {
        let entry = entry.map_err(read_error(below))?;
        let name = entry.file_name();
        if name == c"." || name == c".." {
            continue;
        }
        let name_os = std::ffi::OsStr::from_bytes(name.to_bytes());
        let path = below.join(name_os);
        let stat = rustix::fs::statat(directory, name, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)
            .map_err(read_error(&path))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => {
                let inner = open_at(directory, Path::new(name_os), OFlags::DIRECTORY)
                    .map_err(read_error(&path))?;
                walk(inner.as_fd(), &path, found)?;
            }
            FileType::RegularFile => found.push(Entry {
                path,
                length: u64::try_from(stat.st_size).unwrap_or(0),
                mode: stat.st_mode & 0o7777,
            }),
            _ => return Err(ImageError::Odd { path }),
        }
    }
    Ok(())
}

fn open_at(directory: BorrowedFd<'_>, path: &Path, extra: OFlags) -> rustix::io::Result<OwnedFd> {
    rustix::fs::openat(
        directory,
        path,
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | extra,
        Mode::empty(),
    )
}

/// A part of a file: one thread cuts it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Section {
    /// Index of the file in the list.
    file: usize,
    offset: u64,
    length: u64,
}

/// All files in sections, in the order of files and offsets. An empty file has none.
fn sections(files: &[Entry]) -> Vec<Section> {
    let of_file = |(file, entry): (usize, &Entry)| {
        let length = entry.length;
        let section = move |offset| Section {
            file,
            offset,
            length: SECTION.min(length - offset),
        };
        (0..length).step_by(SECTION as usize).map(section)
    };
    files.iter().enumerate().flat_map(of_file).collect()
}

/// How many threads cut an image on this machine, of which half is the job's.
fn threads() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    (cores / 2).clamp(1, THREADS)
}

/// Cuts the files of an image into chunks, names each and hands it to `take`, which says whether to continue. Sections are cut
/// beside each other, so `take` is called by several threads and in no order.
pub(in crate::engine) fn chunk_files(
    background: &Background,
    directory: BorrowedFd<'_>,
    files: &[Entry],
    naming: &Naming,
    take: impl Fn(Digest, &[u8]) -> bool + Sync,
) -> Result<Vec<ImageFile<Vec<Digest>>>, ImageError> {
    let joins = || background.join();
    chunk_with((threads(), &joins), directory, files, naming, take)
}

/// With so many threads at most, of which each but the caller's has this while it works.
fn chunk_with<J>(
    (threads, joins): (usize, &(dyn Fn() -> J + Sync)),
    directory: BorrowedFd<'_>,
    files: &[Entry],
    naming: &Naming,
    take: impl Fn(Digest, &[u8]) -> bool + Sync,
) -> Result<Vec<ImageFile<Vec<Digest>>>, ImageError> {
    let sections = sections(files);
    let next = AtomicUsize::new(0);
    // What one finds wrong ends the others.
    let failed = AtomicBool::new(false);
    let work = || {
        let mut done = Vec::new();
        while !failed.load(Ordering::Relaxed)
            && let at = next.fetch_add(1, Ordering::Relaxed)
            && let Some(section) = sections.get(at)
        {
            let entry = &files[section.file];
            match chunk_section(directory, entry, *section, naming, &take) {
                Ok(digests) => done.push((at, digests)),
                Err(e) => {
                    failed.store(true, Ordering::Relaxed);
                    return Err(e);
                }
            }
        }
        Ok(done)
    };
    let found: Vec<_> = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.min(sections.len()))
            // Where no thread can be made, those that there are do all of it.
            .filter_map(|_| {
                let joined = || {
                    let _joined = joins();
                    work()
                };
                std::thread::Builder::new().spawn_scoped(scope, joined).ok()
            })
            .collect();
        let own = work();
        let joined = others.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        std::iter::once(own).chain(joined).collect()
    });
    let mut digests = BTreeMap::new();
    for done in found {
        digests.extend(done?);
    }
    let mut images: Vec<_> = files
        .iter()
        .map(|entry| ImageFile {
            path: FilePath::from(&entry.path),
            length: entry.length,
            mode: entry.mode,
            chunks: Vec::new(),
        })
        .collect();
    for (at, of_section) in digests {
        images[sections[at].file].chunks.extend(of_section);
    }
    Ok(images)
}

fn chunk_section(
    directory: BorrowedFd<'_>,
    entry: &Entry,
    section: Section,
    naming: &Naming,
    take: impl Fn(Digest, &[u8]) -> bool,
) -> Result<Vec<Digest>, ImageError> {
    let failed = |source| ImageError::Read {
        path: entry.path.clone(),
        source,
    };
    let fd = open_at(directory, &entry.path, OFlags::empty()).map_err(read_error(&entry.path))?;
    let mut file = std::fs::File::from(fd);
    file.seek(SeekFrom::Start(section.offset)).map_err(failed)?;
    let mut length = 0_u64;
    let mut digests = Vec::new();
    cut(file.take(section.length), |chunk| {
        let digest = naming.of(chunk);
        length += chunk.len() as u64;
        digests.push(digest);
        take(digest, chunk)
    })
    .map_err(failed)?
    .then_some(())
    .ok_or(ImageError::Stopped)?;
    // What the manifest says of the file's length must be what is in its chunks.
    if length != section.length {
        return Err(ImageError::Length {
            path: entry.path.clone(),
            expected: entry.length,
            found: section.offset + length,
        });
    }
    Ok(digests)
}

/// Cuts a stream by content. False: `take` stopped it.
fn cut(mut source: impl Read, mut take: impl FnMut(&[u8]) -> bool) -> std::io::Result<bool> {
    let mut window = vec![0_u8; WINDOW];
    let (mut start, mut end, mut eof) = (0, 0, false);
    loop {
        // A cut is final only when a whole chunk's worth was looked at.
        if end - start < MAX_CHUNK && !eof {
            window.copy_within(start..end, 0);
            end -= start;
            start = 0;
            while end < WINDOW {
                let n = source.read(&mut window[end..])?;
                if n == 0 {
                    eof = true;
                    break;
                }
                end += n;
            }
        }
        if start == end {
            return Ok(true);
        }
        let rest = &window[start..end];
        let cdc = FastCDC::new(rest, MIN_CHUNK, AVERAGE_CHUNK, MAX_CHUNK);
        let (_, at) = cdc.cut(0, rest.len());
        let len = if at == 0 {
            rest.len().min(MAX_CHUNK)
        } else {
            at
        };
        if !take(&rest[..len]) {
            return Ok(false);
        }
        start += len;
    }
}

/// A copy of a chunk that the pipeline may keep.
pub(in crate::engine) fn owned(chunk: &[u8]) -> Bytes {
    Bytes::copy_from_slice(chunk)
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use rand::{Rng, SeedableRng};

    use super::*;

    const ALONE: (usize, &(dyn Fn() + Sync)) = (1, &|| ());

    fn random(len: usize, seed: u64) -> Vec<u8> {
        let mut bytes = vec![0; len];
        rand_chacha::ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
        bytes
    }

    fn lens(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut chunks = Vec::new();
        assert!(
            cut(bytes, |c| {
                chunks.push(c.to_vec());
                true
            })
            .unwrap()
        );
        chunks
    }

    #[test]
    fn chunks_add_up_and_are_bounded() {
        for len in [
            0,
            1,
            MIN_CHUNK,
            MAX_CHUNK,
            WINDOW - 1,
            WINDOW,
            WINDOW + 1,
            20_000_000,
        ] {
            let bytes = random(len, len as u64);
            let chunks = lens(&bytes);
            assert!(chunks.iter().all(|c| !c.is_empty() && c.len() <= MAX_CHUNK));
            assert_eq!(chunks.concat(), bytes, "{len}");
        }
        assert_eq!(lens(&vec![0; 5 << 20]).concat().len(), 5 << 20);
    }

    #[test]
    fn an_insertion_changes_few_chunks() {
        let bytes = random(20 << 20, 1);
        let mut shifted = bytes.clone();
        shifted.splice(100..100, random(777, 2));
        let before: std::collections::HashSet<_> = lens(&bytes).into_iter().collect();
        let after = lens(&shifted);
        let new = after.iter().filter(|c| !before.contains(*c)).count();
        assert!(new <= 3, "{new} of {}", after.len());
    }

    #[test]
    fn a_directory_is_listed_and_read_back() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("files")).unwrap();
        std::fs::write(dir.path().join("pages-1.img"), random(3_000_000, 3)).unwrap();
        std::fs::write(dir.path().join("files/0"), b"").unwrap();
        let fd = std::fs::File::open(dir.path()).unwrap();
        let entries = list(fd.as_fd()).unwrap();
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].path, Path::new("files/0"));
        let content = random(3_000_000, 3);
        let found = std::sync::Mutex::new(BTreeMap::new());
        let files = chunk_with(ALONE, fd.as_fd(), &entries, &Naming::PLAIN, |d, c| {
            assert_eq!(d, Digest::of(c));
            found.lock().unwrap().insert(d, c.to_vec());
            true
        })
        .unwrap();
        let found = found.into_inner().unwrap();
        assert_eq!((files[0].length, files[0].chunks.len()), (0, 0));
        let bytes: Vec<u8> = files[1]
            .chunks
            .iter()
            .flat_map(|d| found[d].clone())
            .collect();
        assert_eq!((files[1].length, bytes), (3_000_000, content));
        assert!(matches!(
            chunk_with(ALONE, fd.as_fd(), &entries, &Naming::PLAIN, |_, _| false),
            Err(ImageError::Stopped)
        ));
        // Shorter than it was when it was listed.
        std::fs::write(dir.path().join("pages-1.img"), random(2_000_000, 3)).unwrap();
        assert!(matches!(
            chunk_with(ALONE, fd.as_fd(), &entries, &Naming::PLAIN, |_, _| true),
            Err(ImageError::Length {
                expected: 3_000_000,
                found: 2_000_000,
                ..
            })
        ));
    }

    /// However many threads there are, the chunks are the same, and in the order of the file.
    #[test]
    fn sections_are_put_together_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let long = 2 * SECTION as usize + 12_345;
        for (name, length) in [("a", 5), ("b", long), ("c", 0), ("d", SECTION as usize)] {
            std::fs::write(dir.path().join(name), random(length, length as u64)).unwrap();
        }
        let fd = std::fs::File::open(dir.path()).unwrap();
        let entries = list(fd.as_fd()).unwrap();
        let of = |threads| {
            let lengths = std::sync::Mutex::new(BTreeMap::new());
            let files = chunk_with(
                (threads, &|| ()),
                fd.as_fd(),
                &entries,
                &Naming::PLAIN,
                |d, c| {
                    lengths.lock().unwrap().insert(d, c.len() as u64);
                    true
                },
            );
            (files.unwrap(), lengths.into_inner().unwrap())
        };
        let (one, lengths) = of(1);
        assert_eq!(of(3), (one.clone(), lengths.clone()));
        let sum =
            |file: &ImageFile<Vec<Digest>>| file.chunks.iter().map(|d| lengths[d]).sum::<u64>();
        for (file, entry) in one.iter().zip(&entries) {
            assert_eq!(sum(file), entry.length);
        }
        // The first section is cut as it would be alone.
        let alone: Vec<Digest> = lens(&random(long, long as u64)[..SECTION as usize])
            .iter()
            .map(|c| Digest::of(c))
            .collect();
        assert_eq!(one[1].chunks[..alone.len()], alone);
    }
}
