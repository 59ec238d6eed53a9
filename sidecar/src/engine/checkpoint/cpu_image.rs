//! The CPU image that CRIU left in a directory: cut into chunks by content, named, handed on.
//!
//! # Rules
//!
//! * Files are read through the directory's fd (`openat`), so it does not matter under which path or in
//!   which mount namespace the agent keeps it.
//! * Chunks are cut where the content says (FastCDC), because page images shift as processes grow;
//!   fixed cuts would find nothing again.
//! * Memory: one window of [`WINDOW`] and the chunks in the queue.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use fastcdc::v2020::FastCDC;
use phos_storage::{Digest, FilePath, ImageFile, Naming};
use rustix::fs::{FileType, Mode, OFlags};

const MIN_CHUNK: usize = 64 << 10;
const AVERAGE_CHUNK: usize = 256 << 10;
const MAX_CHUNK: usize = 1 << 20;
const WINDOW: usize = 8 << 20;

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

/// Cuts a file into chunks, names each and hands it to `take`, which says whether to continue.
pub(in crate::engine) fn chunk_file(
    directory: BorrowedFd<'_>,
    entry: &Entry,
    naming: &Naming,
    mut take: impl FnMut(Digest, &[u8]) -> bool,
) -> Result<ImageFile<Vec<Digest>>, ImageError> {
    let fd = open_at(directory, &entry.path, OFlags::empty()).map_err(read_error(&entry.path))?;
    let mut length = 0_u64;
    let mut digests = Vec::new();
    cut(std::fs::File::from(fd), |chunk| {
        let digest = naming.of(chunk);
        length += chunk.len() as u64;
        digests.push(digest);
        take(digest, chunk)
    })
    .map_err(|source| ImageError::Read {
        path: entry.path.clone(),
        source,
    })?
    .then_some(())
    .ok_or(ImageError::Stopped)?;
    Ok(ImageFile {
        path: FilePath::from(&entry.path),
        length,
        mode: entry.mode,
        chunks: digests,
    })
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
        let mut bytes = Vec::new();
        let file = chunk_file(fd.as_fd(), &entries[1], &Naming::PLAIN, |d, c| {
            assert_eq!(d, Digest::of(c));
            bytes.extend_from_slice(c);
            true
        })
        .unwrap();
        assert_eq!((file.length, bytes), (3_000_000, random(3_000_000, 3)));
        assert!(matches!(
            chunk_file(fd.as_fd(), &entries[1], &Naming::PLAIN, |_, _| false),
            Err(ImageError::Stopped)
        ));
    }
}
