//! Copies of packs on this machine, in memory or on a disk: kept as packs are written and read, read instead of the store.
//!
//! A cache in memory that has room for a whole image keeps its chunks decoded instead ([`PackCache::plan_for`]): to decode them is
//! most of what a restore from this machine's memory would otherwise take.
//!
//! # Rules
//!
//! * What is written is kept in one of the two forms, never in both; what is in either is read.
//! * Whatever is wrong with it (no room, no permission, damage) costs requests to the store, never a checkpoint. What
//!   is read from it is checked by digest like anything else; a pack that fails is removed and the store is asked.
//! * Bounded, in bytes: before something is kept, what was used longest ago goes. Packs that a new checkpoint names count as
//!   used. What is kept because it was read takes no place from anything else of the same checkpoint: else reading an image
//!   larger than the cache would always throw out what comes next.
//! * Packs that a collection deleted from the store are removed from here as well. Decoded chunks are not: they go as what was used
//!   longest ago does, and a later checkpoint may have them again.
//! * A cache belongs to one process at a time: the sidecar of one job.
//!
//! Keeping and reading block: call them where that is allowed.

mod disk;
mod memory;
mod pieces;

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

use self::disk::Disk;
use self::memory::Memory;
pub use self::memory::RoomCheck;
use self::pieces::Pieces;
use crate::Digest;

/// The machine's memory is looked at once for so many parts of a cache, not for each piece.
const AHEAD: u64 = 1024;

/// What pieces of packs are kept in. A piece is named by its pack's name in the cache and by where in the pack it begins.
trait Shelf: Send + Sync {
    fn write(&self, pack: &str, start: u64, parts: &[Bytes]) -> io::Result<()>;
    /// A range of the piece.
    fn read(&self, pack: &str, start: u64, range: Range<usize>) -> io::Result<Bytes>;
    fn remove(&self, pack: &str, start: u64);
    /// Whether so many bytes more would leave enough to others.
    fn has_room(&self, bytes: u64) -> bool;
    /// The name of the shelf, for people.
    fn name(&self) -> String;
}

/// The name of a decoded chunk. Packs have no such names.
fn name_of(digest: &Digest) -> String {
    format!("chunk-{digest}")
}

/// What a reader leaves alone: what was used since it began, or will be by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Since(u64);

/// See the module's documentation.
pub struct PackCache {
    shelf: Box<dyn Shelf>,
    scope: String,
    limit: u64,
    pieces: Mutex<Pieces>,
    served: AtomicU64,
    failing: AtomicBool,
    /// It can keep chunks decoded.
    may_decode: bool,
    /// What is written is kept decoded.
    decoded: AtomicBool,
}

impl fmt::Debug for PackCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PackCache({}, {} bytes)", self.shelf.name(), self.limit)
    }
}

impl PackCache {
    /// In a directory, which is made if need be, with what is there; for packs of the store at `address`. It holds `limit` bytes
    /// at most, of all stores together, and leaves a twentieth of the disk to others in any case.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn on_disk(directory: &Path, address: &str, limit: u64) -> io::Result<Self> {
        Self::on_disk_leaving(directory, address, limit, disk::SPARE)
    }

    /// As [`on_disk`](Self::on_disk), leaving one part in `spare` of the disk to others: 1 holds nothing, [`u64::MAX`] fills it.
    ///
    /// # Errors
    /// When the directory cannot be made or read.
    pub fn on_disk_leaving(
        directory: &Path,
        address: &str,
        limit: u64,
        spare: u64,
    ) -> io::Result<Self> {
        let (disk, pieces) = Disk::open(directory, spare)?;
        let cache = Self::new(Box::new(disk), address, limit, pieces);
        cache.make_room(0, u64::MAX);
        Ok(cache)
    }

    /// In memory of this process: `limit` bytes at most, and less where `has_room` says that the machine has none to spare.
    #[must_use]
    pub fn in_memory(limit: u64, has_room: RoomCheck) -> Self {
        let memory = Box::new(Memory::new(limit / AHEAD, has_room));
        Self {
            may_decode: true,
            ..Self::new(memory, "", limit, Pieces::default())
        }
    }

    fn new(shelf: Box<dyn Shelf>, address: &str, limit: u64, pieces: Pieces) -> Self {
        Self {
            shelf,
            scope: address.trim_end_matches('/').to_owned(),
            limit,
            pieces: Mutex::new(pieces),
            served: AtomicU64::new(0),
            failing: AtomicBool::new(false),
            may_decode: false,
            decoded: AtomicBool::new(false),
        }
    }

    /// Chooses the form in which what is written from now on is kept: decoded, if an image of so many bytes has room.
    pub fn plan_for(&self, image_bytes: u64) {
        if !self.may_decode {
            return;
        }
        let more = image_bytes.saturating_sub(self.pieces().bytes());
        // Nothing has always room, and that says nothing.
        let fits = image_bytes <= self.limit && self.shelf.has_room(more.max(1));
        if self.decoded.swap(fits, Ordering::Relaxed) != fits {
            tracing::debug!(cache = ?self, image_bytes, decoded = fits, "the form of what is kept");
        }
    }

    /// Whether what is written is kept decoded.
    pub(crate) fn keeps_decoded(&self) -> bool {
        self.decoded.load(Ordering::Relaxed)
    }

    /// Keeps a chunk that is about to be stored, if that is the form.
    pub(crate) fn keep_chunk(&self, digest: &Digest, bytes: &Bytes) {
        if self.keeps_decoded() {
            self.keep_piece(&name_of(digest), 0, std::slice::from_ref(bytes), u64::MAX);
        }
    }

    /// Whether it has a chunk decoded.
    pub(crate) fn has_chunk(&self, digest: &Digest, length: u32) -> bool {
        let whole = 0..u64::from(length);
        self.may_decode && self.pieces().covering(&name_of(digest), &whole).is_some()
    }

    /// A chunk that is kept decoded. Its digest has to be checked.
    pub(crate) fn read_chunk(&self, digest: &Digest, length: u32) -> Option<Bytes> {
        self.read_piece(&name_of(digest), 0..u64::from(length))
    }

    /// Forgets a chunk, which is damaged.
    pub(crate) fn remove_chunk(&self, digest: &Digest) {
        self.remove_piece(&name_of(digest));
    }

    /// Counts these chunks as used now, as far as they are kept decoded.
    pub(crate) fn chunks_used(&self, digests: impl Iterator<Item = Digest>) {
        if !self.may_decode {
            return;
        }
        for digest in digests {
            // For each on its own: writers and readers have their turn in between.
            self.pieces().touch(&name_of(&digest), 0);
        }
    }

    /// The number of bytes that were read from this cache.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }

    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same key of another store is another pack.
    fn name(&self, key: &str) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.scope.as_bytes());
        hasher.update(&[0]);
        hasher.update(key.as_bytes());
        hex::encode(&hasher.finalize().as_bytes()[..disk::NAME / 2])
    }

    /// Keeps a pack that was stored under `key`, unless its chunks are kept. What fails is said once in a row.
    pub fn keep(&self, key: &str, parts: &[Bytes]) {
        if !self.keeps_decoded() {
            self.keep_piece(&self.name(key), 0, parts, u64::MAX);
        }
    }

    /// Keeps a part of a pack that was read from the store.
    pub(crate) fn keep_read(&self, key: &str, start: u64, part: &Bytes, since: Since) {
        self.keep_piece(&self.name(key), start, std::slice::from_ref(part), since.0);
    }

    /// For this, only what was used before `limit` may go.
    fn keep_piece(&self, name: &str, start: u64, parts: &[Bytes], limit: u64) {
        let bytes: u64 = parts.iter().map(|part| part.len() as u64).sum();
        let range = start..start.saturating_add(bytes);
        if bytes == 0 || bytes > self.limit || self.pieces().covering(name, &range).is_some() {
            return;
        }
        if !self.make_room(bytes, limit) {
            return;
        }
        let written = self.shelf.write(name, start, parts);
        let mut pieces = self.pieces();
        pieces.settle(bytes);
        match written {
            Ok(()) => {
                for within in pieces.within(name, &range) {
                    pieces.remove(name, within);
                    // What begins where it does was replaced.
                    if within != start {
                        self.shelf.remove(name, within);
                    }
                }
                pieces.add(name, start, bytes);
                self.failing.store(false, Ordering::Relaxed);
            }
            Err(cause) => {
                if !self.failing.swap(true, Ordering::Relaxed) {
                    tracing::warn!(
                        %cause, place = self.shelf.name(),
                        "packs cannot be kept on this machine; a resume reads them from the store"
                    );
                }
            }
        }
    }

    /// Lets what was used longest ago go, if that was before `limit`, until `bytes` more fit; whether they do, and then they
    /// count as promised.
    fn make_room(&self, bytes: u64, limit: u64) -> bool {
        let mut pieces = self.pieces();
        loop {
            let full = pieces.bytes() + bytes > self.limit;
            if !full && self.shelf.has_room(bytes) {
                pieces.promise(bytes);
                return true;
            }
            // Where the shelf has no room, as much as one look at it is good for.
            let some = if full { 1 } else { self.limit / AHEAD };
            let enough = pieces.bytes().saturating_sub(some);
            loop {
                let Some((pack, start)) = pieces.oldest(limit) else {
                    return false;
                };
                pieces.remove(&pack, start);
                self.shelf.remove(&pack, start);
                if pieces.bytes() <= enough {
                    break;
                }
            }
        }
    }

    /// These packs are used by a checkpoint that is read or written now.
    pub(crate) fn used(&self, keys: impl Iterator<Item = String>) -> Since {
        let mut pieces = self.pieces();
        let since = pieces.now();
        for key in keys {
            let name = self.name(&key);
            for start in pieces.of(&name) {
                pieces.touch(&name, start);
            }
        }
        Since(since)
    }

    /// Whether part of a pack is here. It does not count as used.
    pub(crate) fn has(&self, key: &str, range: Range<u64>) -> bool {
        self.pieces().covering(&self.name(key), &range).is_some()
    }

    /// Part of a pack, if all of it is here.
    pub fn read(&self, key: &str, range: Range<u64>) -> Option<Bytes> {
        self.read_piece(&self.name(key), range)
    }

    fn read_piece(&self, name: &str, range: Range<u64>) -> Option<Bytes> {
        let covering = {
            let mut pieces = self.pieces();
            let covering = pieces.covering(name, &range)?;
            for (start, _) in &covering {
                pieces.touch(name, *start);
            }
            covering
        };
        let mut found = Vec::with_capacity(covering.len());
        for (start, part) in covering {
            let part = usize::try_from(part.start).ok()?..usize::try_from(part.end).ok()?;
            let Ok(bytes) = self.shelf.read(name, start, part) else {
                // Cut off, or gone; it may also have had to go just now.
                let mut pieces = self.pieces();
                pieces.remove(name, start);
                self.shelf.remove(name, start);
                return None;
            };
            found.push(bytes);
        }
        let bytes = match found.len() {
            1 => found.pop()?,
            _ => {
                let mut all = BytesMut::new();
                found.iter().for_each(|part| all.extend_from_slice(part));
                all.freeze()
            }
        };
        self.served.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Some(bytes)
    }

    /// Forgets a pack: it is damaged, or not in the store any more.
    pub fn remove(&self, key: &str) {
        self.remove_piece(&self.name(key));
    }

    fn remove_piece(&self, name: &str) {
        let mut pieces = self.pieces();
        for start in pieces.of(name) {
            pieces.remove(name, start);
            self.shelf.remove(name, start);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::sync::Arc;
    use std::time::SystemTime;

    use rstest::rstest;

    use super::*;

    fn on_disk(directory: &Path, limit: u64) -> PackCache {
        // However full the disk is that this runs on.
        PackCache::on_disk_leaving(directory, "s3://bucket/runs", limit, u64::MAX).unwrap()
    }

    fn in_memory(limit: u64) -> PackCache {
        PackCache::in_memory(limit, Box::new(|_| true))
    }

    fn pack(byte: u8, bytes: usize) -> Vec<Bytes> {
        vec![
            Bytes::from(vec![byte; bytes / 2]),
            Bytes::from(vec![byte; bytes - bytes / 2]),
        ]
    }

    fn part(byte: u8, bytes: usize) -> Bytes {
        Bytes::from(vec![byte; bytes])
    }

    fn bytes_in(directory: &Path) -> u64 {
        let files = fs::read_dir(directory).unwrap().flatten();
        files.map(|f| f.metadata().unwrap().len()).sum()
    }

    #[rstest]
    #[case(None)]
    #[case(Some(tempfile::tempdir().unwrap()))]
    fn what_was_used_longest_ago_goes_first_and_the_bound_holds(
        #[case] dir: Option<tempfile::TempDir>,
    ) {
        let cache = match &dir {
            None => in_memory(1000),
            Some(dir) => on_disk(dir.path(), 1000),
        };
        let held = || {
            let counted = cache.pieces().bytes();
            assert!((dir.iter()).all(|dir| bytes_in(dir.path()) == counted));
            counted
        };
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
        assert_eq!(held(), 901);
        // The same again counts once.
        cache.keep("d", &pack(4, 301));
        assert_eq!(cache.read("d", 300..301).unwrap(), [4][..]);
        assert_eq!(held(), 901);
        // What is removed is gone, and its room is free.
        cache.remove("a");
        assert!(cache.read("a", 0..1).is_none());
        assert_eq!(held(), 601);
        // Asked for, and named by a new checkpoint: then others go first.
        cache.used(["c".to_owned()].into_iter());
        cache.keep("f", &pack(6, 500));
        assert!(cache.read("c", 0..300).is_some() && cache.read("d", 0..1).is_none());
        assert_eq!(held(), 800);
    }

    #[rstest]
    #[case(false)]
    #[case(true)]
    fn what_is_read_is_kept_in_parts_and_throws_out_nothing_of_the_same_image(
        #[case] memory: bool,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let cache = match memory {
            true => in_memory(1000),
            false => on_disk(dir.path(), 1000),
        };
        for (key, byte) in [("stale", 1), ("wanted", 2)] {
            cache.keep(key, &pack(byte, 400));
        }
        let since = cache.used(["wanted".to_owned(), "far".to_owned()].into_iter());
        cache.keep_read("far", 100, &part(3, 100), since);
        cache.keep_read("far", 200, &part(4, 50), since);
        assert_eq!(cache.pieces().bytes(), 950, "there was room");
        let both = cache.read("far", 150..220).unwrap();
        assert_eq!(both[..50], [3; 50]);
        assert_eq!(both[50..], [4; 20]);
        assert!(cache.read("far", 99..101).is_none());
        assert!(cache.read("far", 249..251).is_none());
        // A part of what is there is there; what contains others replaces them.
        cache.keep_read("far", 110, &part(9, 20), since);
        cache.keep_read("far", 50, &part(3, 300), since);
        assert!(
            cache.read("stale", 0..1).is_none(),
            "it was not of the image"
        );
        assert_eq!(cache.pieces().bytes(), 700);
        assert_eq!(cache.read("far", 50..350).unwrap(), part(3, 300));
        // Nothing is left that may go for that.
        cache.keep_read("far", 350, &part(5, 301), since);
        assert!(cache.read("far", 350..351).is_none());
        assert!(cache.read("wanted", 0..400).is_some());
        if !memory {
            assert_eq!(bytes_in(dir.path()), 700);
            let again = on_disk(dir.path(), 1000);
            assert_eq!(again.read("far", 50..350).unwrap(), part(3, 300));
            assert_eq!(again.pieces().bytes(), 700);
        }
    }

    #[test]
    fn memory_gives_way_to_what_needs_it_more() {
        let spare = Arc::new(AtomicU64::new(u64::MAX));
        let cache = {
            let spare = Arc::clone(&spare);
            // As in earnest: what goes from the cache can be spared again.
            PackCache::in_memory(
                1000,
                Box::new(move |bytes| bytes <= spare.load(Ordering::Relaxed)),
            )
        };
        cache.keep("a", &pack(1, 300));
        cache.keep("b", &pack(2, 300));
        spare.store(100, Ordering::Relaxed);
        cache.keep("c", &pack(3, 200));
        assert_eq!(cache.pieces().bytes(), 0);
        cache.keep("d", &pack(4, 100));
        assert!(cache.read("d", 0..100).is_some());
    }

    /// Whoever asks for how much: what is kept fits, or is not kept decoded.
    #[test]
    fn chunks_are_kept_decoded_where_the_image_has_room() {
        let digest = |n: u8| Digest([n; 32]);
        let dir = tempfile::tempdir().unwrap();
        let disk = on_disk(dir.path(), 1000);
        disk.plan_for(10);
        disk.keep_chunk(&digest(1), &part(1, 10));
        assert!(!disk.has_chunk(&digest(1), 10), "a disk keeps packs alone");
        let memory = in_memory(1000);
        memory.keep_chunk(&digest(1), &part(1, 10));
        assert!(!memory.has_chunk(&digest(1), 10), "nothing is known yet");
        memory.plan_for(1001);
        memory.keep("a", &pack(2, 300));
        assert!(memory.read("a", 0..300).is_some());
        memory.plan_for(1000);
        memory.keep("b", &pack(3, 300));
        assert!(memory.read("b", 0..1).is_none());
        for n in 1..=3 {
            memory.keep_chunk(&digest(n), &part(n, 300));
        }
        assert!(memory.read("a", 0..1).is_none(), "it went for chunks");
        memory.chunks_used(std::iter::once(digest(1)));
        memory.keep_chunk(&digest(4), &part(4, 300));
        let has = |n| memory.has_chunk(&digest(n), 300);
        assert_eq!([1, 2, 3, 4].map(has), [true, false, true, true]);
        assert!(!memory.has_chunk(&digest(1), 301));
        assert_eq!(memory.read_chunk(&digest(1), 300), Some(part(1, 300)));
        memory.remove_chunk(&digest(1));
        assert_eq!(memory.read_chunk(&digest(1), 300), None);
    }

    #[test]
    fn many_that_keep_at_once_stay_within_the_bound() {
        let (cache, most) = (in_memory(1000), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (cache, most) = (&cache, &most);
                scope.spawn(move || {
                    for n in 0..200 {
                        cache.keep(&format!("{thread}-{n}"), &pack(thread, 300));
                        most.fetch_max(cache.pieces().bytes(), Ordering::Relaxed);
                    }
                });
            }
        });
        assert!((1..=1000).contains(&most.into_inner()));
        assert_eq!(cache.pieces().bytes(), 900, "nothing is promised any more");
    }

    #[test]
    fn it_survives_a_restart_and_a_smaller_bound() {
        let dir = tempfile::tempdir().unwrap();
        let first = on_disk(dir.path(), 1000);
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
        let again = on_disk(dir.path(), 650);
        assert!(again.read("b", 0..1).is_none(), "the oldest");
        assert!(again.read("a", 0..1).is_some() && again.read("c", 0..1).is_some());
        assert_eq!(bytes_in(dir.path()), 600);
        // Another store's pack of the same name is another.
        let other =
            PackCache::on_disk_leaving(dir.path(), "s3://bucket/other", 650, u64::MAX).unwrap();
        assert!(other.read("a", 0..1).is_none());
        // A disk with too little left for others is not filled, and what is there goes.
        let crowded = PackCache::on_disk_leaving(dir.path(), "s3://bucket/runs", 650, 1).unwrap();
        crowded.keep("d", &pack(1, 10));
        assert_eq!(bytes_in(dir.path()), 0);
    }

    #[test]
    fn what_is_cut_off_is_removed_and_a_directory_that_fails_costs_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let cache = on_disk(dir.path(), 1000);
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
        assert!(
            cache
                .read("a", backwards)
                .is_none_or(|found| found.is_empty())
        );
        fs::remove_dir_all(dir.path()).unwrap();
        cache.keep("b", &pack(1, 300));
        assert!(cache.read("a", 0..1).is_none() && cache.read("b", 0..1).is_none());
        assert_eq!(cache.pieces().bytes(), 0, "nothing is promised any more");
    }
}
