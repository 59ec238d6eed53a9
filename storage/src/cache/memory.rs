//! Pieces of packs in memory of this process.

use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::Shelf;
use super::pieces::PieceId;

/// Whether this machine can spare so many bytes more.
pub type RoomCheck = Box<dyn Fn(u64) -> bool + Send + Sync>;

pub(super) struct Memory {
    pieces: Mutex<HashMap<PieceId, Bytes>>,
    has_room: RoomCheck,
}

impl Memory {
    pub(super) fn new(has_room: RoomCheck) -> Self {
        Self {
            pieces: Mutex::default(),
            has_room,
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
        (self.has_room)(bytes)
    }

    fn name(&self) -> String {
        "host memory".into()
    }
}
