//! Packs of a remote store on a disk of this machine: written as they are uploaded, read instead of the store.
//!
//! # Rules
//!
//! * Whatever is wrong with it (a full disk, no permission, damage) costs requests to the store, never a checkpoint. What
//!   is read from it is checked by digest like anything else; a pack that fails is removed and the store is asked.
//! * Bounded, in bytes: before a pack is written, those that were used longest ago go. A twentieth of the disk stays free
//!   for others in any case.
//! * It survives restarts: a pack is a file that is named by store and key; when it was last used stands in its
//!   modification time. Nothing is synced: a pack that a crash cut off has another length, or fails its digests.
//! * A directory is one process's at a time: the sidecar's of one job.
//!
//! Writing and reading block: call them where that is allowed.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use bytes::Bytes;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT};

/// Of the disk, one part in so many is left to others.
const SPARE: u64 = 20;
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
/// The name of a pack that is being written ends so.
const DRAFT: &str = ".part";

/// See the module's documentation.
#[derive(Debug)]
pub struct PackCache {
    directory: PathBuf,
    scope: String,
    limit: u64,
    /// Of the disk, one part in so many is left to others.
    spare: u64,
    packs: Mutex<Packs>,
    served: AtomicU64,
    failing: AtomicBool,
}

/// What is there, and in which order it was used.
#[derive(Debug, Default)]
struct Packs {
    by_name: HashMap<String, Entry>,
    by_use: BTreeMap<u64, String>,
    bytes: u64,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    bytes: u64,
    used: u64,
}

impl Packs {
    fn add(&mut self, name: &str, bytes: u64) {
        self.remove(name);
        self.uses += 1;
        let used = self.uses;
        self.by_name.insert(name.to_owned(), Entry { bytes, used });
        self.by_use.insert(used, name.to_owned());
        self.bytes += bytes;
    }

    fn remove(&mut self, name: &str) -> bool {
        let Some(entry) = self.by_name.remove(name) else {
            return false;
        };
        self.by_use.remove(&entry.used);
        self.bytes -= entry.bytes;
        true
    }

    fn touch(&mut self, name: &str) {
        if let Some(Entry { bytes, .. }) = self.by_name.get(name).copied() {
            self.add(name, bytes);
        }
    }

    fn oldest(&self) -> Option<String> {
        self.by_use.values().next().cloned()
    }
}

impl PackCache {
    /// Opens the cache in a directory, which is made if need be, for packs of the store at `address`; of all stores
    /// together it holds `limit` bytes at most.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn open(directory: &Path, address: &str, limit: u64) -> io::Result<Self> {
        Self::open_leaving(directory, address, limit, SPARE)
    }

    fn open_leaving(directory: &Path, address: &str, limit: u64, spare: u64) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let mut found: Vec<(SystemTime, String, u64)> = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(meta) = entry.metadata() else { continue };
            if name.ends_with(DRAFT) {
                // Of a writer that died.
                let _ = fs::remove_file(entry.path());
            } else if meta.is_file() {
                found.push((
                    meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    name,
                    meta.len(),
                ));
            }
        }
        found.sort();
        let mut packs = Packs::default();
        for (_, name, bytes) in &found {
            packs.add(name, *bytes);
        }
        let cache = Self {
            directory: directory.to_owned(),
            scope: address.trim_end_matches('/').to_owned(),
            limit,
            spare,
            packs: Mutex::new(packs),
            served: AtomicU64::new(0),
            failing: AtomicBool::new(false),
        };
        cache.make_room(0);
        Ok(cache)
    }

    /// Bytes that were read from it.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    fn packs(&self) -> MutexGuard<'_, Packs> {
        self.packs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same key of another store is another pack.
    fn name(&self, key: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.scope.as_bytes());
        hasher.update(&[0]);
        hasher.update(key.as_bytes());
        hex::encode(&hasher.finalize().as_bytes()[..16])
    }

    /// Keeps a pack that was stored under `key`. What fails is said once in a row.
    pub fn keep(&self, key: &str, pieces: &[Bytes]) {
        let bytes: u64 = pieces.iter().map(|piece| piece.len() as u64).sum();
        self.remove(key);
        if bytes > self.limit || !self.make_room(bytes) {
            return;
        }
        let name = self.name(key);
        match self.write(&name, pieces) {
            Ok(()) => {
                self.packs().add(&name, bytes);
                self.failing.store(false, Ordering::Relaxed);
            }
            Err(cause) => {
                let directory = self.directory.display();
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        %cause, %directory,
                        "packs cannot be kept on this disk; a resume reads them from the store"
                    );
                }
            }
        }
    }

    fn write(&self, name: &str, pieces: &[Bytes]) -> io::Result<()> {
        let draft = self.directory.join(format!("{name}{DRAFT}"));
        let written = File::create(&draft).and_then(|mut file| {
            pieces
                .iter()
                .try_for_each(|piece| io::Write::write_all(&mut file, piece))?;
            fs::rename(&draft, self.directory.join(name))
        });
        if written.is_err() {
            let _ = fs::remove_file(&draft);
        }
        written
    }

    /// Lets the oldest packs go until `bytes` more fit; whether they do.
    fn make_room(&self, bytes: u64) -> bool {
        let mut packs = self.packs();
        loop {
            let full = packs.bytes + bytes > self.limit;
            if !full && self.disk_has_room(bytes) {
                return true;
            }
            let Some(oldest) = packs.oldest() else {
                return false;
            };
            packs.remove(&oldest);
            let _ = fs::remove_file(self.directory.join(oldest));
        }
    }

    fn disk_has_room(&self, bytes: u64) -> bool {
        rustix::fs::statvfs(&self.directory).is_ok_and(|disk| {
            let free = disk.f_bavail.saturating_mul(disk.f_frsize);
            let all = disk.f_blocks.saturating_mul(disk.f_frsize);
            free >= bytes.saturating_add(all / self.spare)
        })
    }

    /// Part of a pack, if it is here.
    pub fn read(&self, key: &str, range: Range<u64>) -> Option<Bytes> {
        let name = self.name(key);
        let file = File::open(self.directory.join(&name)).ok()?;
        let mut bytes = vec![0; usize::try_from(range.end.checked_sub(range.start)?).ok()?];
        if file.read_exact_at(&mut bytes, range.start).is_err() {
            self.remove(key);
            return None;
        }
        // The kernel's clock: only orders what goes first after a restart.
        let _ = rustix::fs::futimens(&file, &NOW);
        self.packs().touch(&name);
        self.served.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Some(bytes.into())
    }

    /// Forgets a pack: it is damaged.
    pub fn remove(&self, key: &str) {
        let name = self.name(key);
        self.packs().remove(&name);
        let _ = fs::remove_file(self.directory.join(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache(directory: &Path, limit: u64) -> PackCache {
        // However full the disk is that this runs on.
        PackCache::open_leaving(directory, "s3://bucket/runs", limit, u64::MAX).unwrap()
    }

    fn pack(byte: u8, bytes: usize) -> Vec<Bytes> {
        vec![
            Bytes::from(vec![byte; bytes / 2]),
            Bytes::from(vec![byte; bytes - bytes / 2]),
        ]
    }

    fn on_disk(directory: &Path) -> u64 {
        let files = fs::read_dir(directory).unwrap().flatten();
        files.map(|f| f.metadata().unwrap().len()).sum()
    }

    #[test]
    fn what_was_used_longest_ago_goes_first_and_the_bound_holds() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path(), 1000);
        for (key, byte) in [("a", 1), ("b", 2), ("c", 3)] {
            cache.keep(key, &pack(byte, 300));
        }
        assert_eq!(cache.read("a", 10..20).unwrap(), [1; 10][..]);
        cache.keep("d", &pack(4, 301));
        assert!(cache.read("b", 0..1).is_none());
        for key in ["a", "c", "d"] {
            assert!(cache.read(key, 0..300).is_some(), "{key}");
        }
        assert_eq!(cache.served(), 10 + 900);
        // Larger than all of it: nothing has to go for that.
        cache.keep("e", &pack(5, 1001));
        assert!(cache.read("e", 0..1).is_none() && cache.read("d", 0..1).is_some());
        assert_eq!(on_disk(dir.path()), 901);
        // The same again counts once.
        cache.keep("d", &pack(6, 301));
        assert_eq!(cache.read("d", 300..301).unwrap(), [6][..]);
        assert_eq!(on_disk(dir.path()), 901);
    }

    #[test]
    fn it_survives_a_restart_and_a_smaller_bound() {
        let dir = tempfile::tempdir().unwrap();
        let first = cache(dir.path(), 1000);
        for key in ["a", "b", "c"] {
            first.keep(key, &pack(1, 300));
        }
        // Times of files are coarse: what matters is set here.
        for (key, age) in [("a", 1), ("b", 3), ("c", 2)] {
            let file = File::options()
                .write(true)
                .open(dir.path().join(first.name(key)))
                .unwrap();
            let then = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(100 - age);
            file.set_modified(then).unwrap();
        }
        fs::write(dir.path().join("0123.part"), "cut off").unwrap();
        let again = cache(dir.path(), 650);
        assert!(again.read("b", 0..1).is_none(), "the oldest");
        assert!(again.read("a", 0..1).is_some() && again.read("c", 0..1).is_some());
        assert_eq!(on_disk(dir.path()), 600);
        // Another store's pack of the same name is another.
        let other =
            PackCache::open_leaving(dir.path(), "s3://bucket/other", 650, u64::MAX).unwrap();
        assert!(other.read("a", 0..1).is_none());
        // A disk with too little left for others is not filled, and what is there goes.
        let crowded = PackCache::open_leaving(dir.path(), "s3://bucket/runs", 650, 1).unwrap();
        crowded.keep("d", &pack(1, 10));
        assert_eq!(on_disk(dir.path()), 0);
    }

    #[test]
    fn what_is_cut_off_is_removed_and_a_directory_that_fails_costs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = cache(dir.path(), 1000);
        cache.keep("a", &pack(1, 300));
        let path = dir.path().join(cache.name("a"));
        File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_len(10)
            .unwrap();
        assert!(cache.read("a", 0..300).is_none() && !path.exists());
        #[expect(
            clippy::reversed_empty_ranges,
            reason = "what a damaged manifest may ask for"
        )]
        let backwards = 5..3;
        cache.keep("a", &pack(1, 300));
        assert!(cache.read("a", backwards).is_none());
        fs::remove_dir_all(dir.path()).unwrap();
        cache.keep("b", &pack(1, 300));
        assert!(cache.read("a", 0..1).is_none() && cache.read("b", 0..1).is_none());
    }
}
