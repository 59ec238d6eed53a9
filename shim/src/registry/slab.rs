//! Room inside one slab: first fit in units, neighbours joined on free.

use std::collections::BTreeMap;

/// Alignment and unit of small allocations, in bytes.
pub const UNIT: u64 = 512;

/// Largest request that a slab serves, in bytes.
pub const LARGEST: u64 = 1 << 20;

/// The free room of one slab.
#[derive(Debug)]
pub struct Room {
    bytes: u64,
    /// Offset → length, in bytes, disjoint and never adjacent.
    free: BTreeMap<u64, u64>,
}

impl Room {
    /// All of it is free.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            free: BTreeMap::from([(0, bytes)]),
        }
    }

    /// Bytes that a request takes.
    pub fn rounded(bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(UNIT)
    }

    /// Offset of a place of that many bytes.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = Self::rounded(bytes);
        let (&offset, &length) = self.free.iter().find(|(_, length)| **length >= bytes)?;
        self.free.remove(&offset);
        if length > bytes {
            self.free.insert(offset + bytes, length - bytes);
        }
        Some(offset)
    }

    /// Gives a place back.
    pub fn give(&mut self, offset: u64, bytes: u64) {
        let mut start = offset;
        let mut end = offset + Self::rounded(bytes);
        if let Some(length) = self.free.remove(&end) {
            end += length;
        }
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.free.remove(&before);
            start = before;
        }
        self.free.insert(start, end - start);
    }

    /// Whether nothing is taken.
    pub fn is_empty(&self) -> bool {
        self.free.get(&0) == Some(&self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn places_never_overlap_and_all_room_comes_back(
            steps in proptest::collection::vec((any::<bool>(), 1..LARGEST, any::<prop::sample::Index>()), 1..200)
        ) {
            let mut room = Room::new(2 << 20);
            let mut taken: Vec<(u64, u64)> = Vec::new();
            for (take, bytes, which) in steps {
                if take {
                    if let Some(offset) = room.take(bytes) {
                        prop_assert_eq!(offset % UNIT, 0);
                        let end = offset + Room::rounded(bytes);
                        prop_assert!(end <= 2 << 20);
                        for &(o, b) in &taken {
                            prop_assert!(end <= o || o + Room::rounded(b) <= offset);
                        }
                        taken.push((offset, bytes));
                    }
                } else if !taken.is_empty() {
                    let (offset, bytes) = taken.swap_remove(which.index(taken.len()));
                    room.give(offset, bytes);
                }
                prop_assert_eq!(room.is_empty(), taken.is_empty());
            }
            for (offset, bytes) in taken.drain(..) {
                room.give(offset, bytes);
            }
            prop_assert!(room.is_empty());
            prop_assert_eq!(room.take(2 << 20), Some(0));
        }
    }
}
