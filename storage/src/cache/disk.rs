//! Pieces of packs as files of a directory.
//!
//! ```text
//! <pack>            a piece that begins where the pack does
//! <pack>.<start>    another; 16 hexadecimal digits
//! <file>.part       one that is being written
//! ```
//!
//! `<pack>` is a digest of the store's address and the pack's key, in hexadecimal.
//!
//! # Rules
//!
//! * A file's modification time says when it was last used, so that this is known after a restart.
//! * Nothing is synced: what a crash cut off has another length, or fails the digests of its chunks.

use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

use super::Shelf;
use super::pieces::Pieces;

/// One part of the disk in so many is left to others.
pub(super) const SPARE: u64 = 20;
/// To be modified now, and read when it was.
const NOW: Timestamps = Timestamps {
    last_access: Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_OMIT,
    },
    last_modification: Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    },
};
/// The name of a file that is being written ends so.
const DRAFT: &str = ".part";
/// Hexadecimal digits of a pack's name.
pub(super) const NAME: usize = 32;

pub(super) struct Disk {
    directory: PathBuf,
    spare: u64,
}

impl Disk {
    /// Opens a cache with the pieces that the directory holds already.
    pub(super) fn open(directory: &Path, spare: u64) -> io::Result<(Self, Pieces)> {
        crate::private::make_private(directory)?;
        let mut found: Vec<(SystemTime, (String, u64), u64)> = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(meta) = entry.metadata() else { continue };
            if name.ends_with(DRAFT) {
                // Of a writer that died.
                let _ = fs::remove_file(entry.path());
            } else if meta.is_file()
                && let Some(piece) = parse(&name)
            {
                let used = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                found.push((used, piece, meta.len()));
            }
        }
        found.sort();
        let mut pieces = Pieces::default();
        for (_, (pack, start), bytes) in &found {
            pieces.add(pack, *start, *bytes);
        }
        let directory = directory.to_owned();
        Ok((Self { directory, spare }, pieces))
    }

    fn path(&self, pack: &str, start: u64) -> PathBuf {
        self.directory.join(match start {
            0 => pack.to_owned(),
            start => format!("{pack}.{start:016x}"),
        })
    }
}

/// Pack and start of a file's name.
fn parse(name: &str) -> Option<(String, u64)> {
    let (pack, start) = match name.split_once('.') {
        None => (name, 0),
        Some((pack, start)) if start.len() == 16 => (
            pack,
            u64::from_str_radix(start, 16).ok().filter(|s| *s > 0)?,
        ),
        Some(_) => return None,
    };
    let is_name = pack.len() == NAME && pack.bytes().all(|b| b.is_ascii_hexdigit());
    is_name.then(|| (pack.to_owned(), start))
}

impl Shelf for Disk {
    fn write(&self, pack: &str, start: u64, parts: &[Bytes]) -> io::Result<()> {
        let path = self.path(pack, start);
        let mut draft = path.clone().into_os_string();
        draft.push(DRAFT);
        let written = File::create(&draft).and_then(|mut file| {
            parts
                .iter()
                .try_for_each(|part| io::Write::write_all(&mut file, part))?;
            fs::rename(&draft, path)
        });
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }

    fn read(&self, pack: &str, start: u64, range: Range<usize>) -> io::Result<Bytes> {
        let file = File::open(self.path(pack, start))?;
        let mut bytes = vec![0; range.len()];
        file.read_exact_at(&mut bytes, range.start as u64)?;
        // The kernel's clock: only orders what goes first after a restart.
        let _ = rustix::fs::futimens(&file, &NOW);
        Ok(bytes.into())
    }

    fn remove(&self, pack: &str, start: u64) {
        let _ = fs::remove_file(self.path(pack, start));
    }

    fn has_room(&self, bytes: u64) -> bool {
        rustix::fs::statvfs(&self.directory).is_ok_and(|disk| {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let all = disk.f_blocks.saturating_mul(disk.f_frsize);
            free >= bytes.saturating_add(all / self.spare)
        })
    }

    fn name(&self) -> String {
        self.directory.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_named_by_its_pack_and_where_it_begins() {
        let directory = tempfile::tempdir().unwrap();
        let (disk, _) = Disk::open(directory.path(), SPARE).unwrap();
        let pack = "0123456789abcdef".repeat(2);
        for start in [0, 1, u64::MAX] {
            let path = disk.path(&pack, start);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(parse(name), Some((pack.clone(), start)), "{name}");
        }
        for other in [
            "",
            "notes.txt",
            &pack[1..],
            &format!("{pack}.1"),
            &format!("{pack}.0000000000000000"),
            &format!("{pack}.00000000000000zz"),
        ] {
            assert_eq!(parse(other), None, "{other}");
        }
    }
}
