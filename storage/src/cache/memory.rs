//! Pieces of packs in memory of this process.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::Shelf;
use super::pieces::PieceId;

/// Whether this machine can spare so many bytes more.
pub type RoomCheck = Box<dyn Fn(u64) -> bool + Send + Sync>;

pub(super) struct Memory {
    pieces: Mutex<HashMap<PieceId, Bytes>>,
    has_room: RoomCheck,
    /// So many bytes more are looked for than were asked for, as a look takes tens of microseconds.
    ahead: u64,
    /// Bytes that the machine could spare at the last look, and that were not asked for since.
    spare: AtomicU64,
}

impl Memory {
    pub(super) fn new(ahead: u64, has_room: RoomCheck) -> Self {
        Self {
            pieces: Mutex::default(),
            has_room,
            ahead,
            spare: AtomicU64::new(0),
        }
    }

    fn pieces(&self) -> MutexGuard<'_, HashMap<PieceId, Bytes>> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelf for Memory {
    fn write(&self, pack: &str, start: u64, parts: &[Bytes]) -> io::Result<()> {
        // A copy of its own: parts are often slices of larger buffers, which would be held as long.
        let length = parts.iter().map(Bytes::len).sum();
        let mut copy = Vec::new();
        copy.try_reserve_exact(length)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        for part in parts {
            copy.extend_from_slice(part);
        }
        self.pieces().insert((pack.to_owned(), start), copy.into());
        Ok(())
    }

    fn read(&self, pack: &str, start: u64, range: Range<usize>) -> io::Result<Bytes> {
        let pieces = self.pieces();
        let piece = pieces.get(&(pack.to_owned(), start));
        piece
            .filter(|piece| range.start <= range.end && range.end <= piece.len())
            .map(|piece| piece.slice(range))
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn remove(&self, pack: &str, start: u64) {
        self.pieces().remove(&(pack.to_owned(), start));
    }

    fn has_room(&self, bytes: u64) -> bool {
        let take = |spare: u64| spare.checked_sub(bytes);
        let relaxed = Ordering::Relaxed;
        if self.spare.fetch_update(relaxed, relaxed, take).is_ok() {
            return true;
        }
        if (self.has_room)(bytes.saturating_add(self.ahead)) {
            self.spare.store(self.ahead, Ordering::Relaxed);
            return true;
        }
        self.spare.store(0, Ordering::Relaxed);
        (self.has_room)(bytes)
    }

    fn name(&self) -> String {
        "host memory".into()
    }
}
