//! Room inside slabs: best fit in units, neighbours joined on free. No look-up goes through a list: neither the places of a
//! slab nor the slabs of a context.

use std::collections::{BTreeMap, BTreeSet};

use phos_protocol::types::AllocationId;

/// Alignment and unit of small allocations, in bytes.
pub const UNIT: u64 = 512;

/// Largest request that a slab serves, in bytes.
pub const LARGEST: u64 = 1 << 20;

/// The free places of one slab.
#[derive(Debug)]
pub struct Room {
    bytes: u64,
    /// Offset → length, in bytes, disjoint and never adjacent.
    free: BTreeMap<u64, u64>,
    /// The same places as (length, offset), to find the best fit.
    lengths: BTreeSet<(u64, u64)>,
}

impl Room {
    /// The room of a slab of so many bytes, all of it free.
    pub fn new(bytes: u64) -> Self {
        Self {
            bytes,
            free: BTreeMap::from([(0, bytes)]),
            lengths: BTreeSet::from([(bytes, 0)]),
        }
    }

    /// The number of bytes that a request takes in a slab.
    pub fn rounded(bytes: u64) -> u64 {
        bytes.max(1).next_multiple_of(UNIT)
    }

    /// Offset of a place of that many bytes.
    pub fn take(&mut self, bytes: u64) -> Option<u64> {
        let bytes = Self::rounded(bytes);
        let &(length, offset) = self.lengths.range((bytes, 0)..).next()?;
        self.remove(offset);
        if length > bytes {
            self.insert(offset + bytes, length - bytes);
        }
        Some(offset)
    }

    fn insert(&mut self, offset: u64, length: u64) {
        self.free.insert(offset, length);
        self.lengths.insert((length, offset));
    }

    fn remove(&mut self, offset: u64) -> Option<u64> {
        let length = self.free.remove(&offset)?;
        self.lengths.remove(&(length, offset));
        Some(length)
    }

    /// Gives a place back.
    pub fn give(&mut self, offset: u64, bytes: u64) {
        let mut start = offset;
        let mut end = offset + Self::rounded(bytes);
        if let Some(length) = self.remove(end) {
            end += length;
        }
        if let Some((&before, &length)) = self.free.range(..start).next_back()
            && before + length == start
        {
            self.remove(before);
            start = before;
        }
        self.insert(start, end - start);
    }

    /// Length of the longest place that is free, in bytes.
    fn longest(&self) -> u64 {
        self.lengths.last().map_or(0, |&(length, _)| length)
    }

    /// Whether nothing is taken.
    pub fn is_empty(&self) -> bool {
        self.free.get(&0) == Some(&self.bytes)
    }
}

/// A slab, mapped at `base`.
#[derive(Debug)]
struct Slab {
    base: u64,
    room: Room,
}

/// The slabs of one context and device, and the free room in each.
#[derive(Debug, Default)]
pub struct Slabs {
    slabs: BTreeMap<AllocationId, Slab>,
    /// (Longest free place, slab) of each.
    rooms: BTreeSet<(u64, AllocationId)>,
    /// The number of slabs of which nothing is taken.
    empty: usize,
}

impl Slabs {
    /// Adds a slab, all of it free.
    pub fn add(&mut self, allocation: AllocationId, base: u64, bytes: u64) {
        let room = Room::new(bytes);
        self.rooms.insert((room.longest(), allocation));
        self.empty += 1;
        self.slabs.insert(allocation, Slab { base, room });
    }

    /// A place of that many bytes: the slab and the address.
    pub fn take(&mut self, bytes: u64) -> Option<(AllocationId, u64)> {
        let wanted = Room::rounded(bytes);
        let &(_, allocation) = self.rooms.range((wanted, 0)..).next()?;
        let offset = self.change(allocation, |room| room.take(bytes))??;
        let base = self.slabs.get(&allocation)?.base;
        Some((allocation, base + offset))
    }

    /// Gives the place at `address` back. The address of the slab, when it is empty and not the only one: it is not kept
    /// any more, while one empty slab stays for the next request.
    pub fn give(&mut self, allocation: AllocationId, address: u64, bytes: u64) -> Option<u64> {
        let base = self.slabs.get(&allocation)?.base;
        self.change(allocation, |room| room.give(address - base, bytes))?;
        let slab = self.slabs.get(&allocation)?;
        if !slab.room.is_empty() || self.empty < 2 {
            return None;
        }
        self.rooms.remove(&(slab.room.longest(), allocation));
        self.slabs.remove(&allocation);
        self.empty -= 1;
        Some(base)
    }

    /// All slabs, each with its address.
    pub fn all(&self) -> impl Iterator<Item = (AllocationId, u64)> {
        self.slabs.iter().map(|(&id, slab)| (id, slab.base))
    }

    /// Changes a slab's room, and what is known about it.
    fn change<T>(&mut self, id: AllocationId, change: impl FnOnce(&mut Room) -> T) -> Option<T> {
        let room = &mut self.slabs.get_mut(&id)?.room;
        self.rooms.remove(&(room.longest(), id));
        self.empty -= usize::from(room.is_empty());
        let result = change(room);
        self.rooms.insert((room.longest(), id));
        self.empty += usize::from(room.is_empty());
        Some(result)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// With a list of places this takes minutes: 100,000 slabs full of holes that are too small.
    #[test]
    fn a_place_is_found_among_many_slabs() {
        let mut slabs = Slabs::default();
        for id in 0..100_000 {
            slabs.add(id, id << 21, 2 << 20);
            let (of, first) = slabs.take(LARGEST).unwrap();
            assert_eq!((of, first), (id, id << 21));
            slabs.take(LARGEST - UNIT).unwrap();
        }
        // The last place of each slab, which is all that is left.
        let mut left = BTreeSet::new();
        for _ in 0..100_000 {
            let (of, at) = slabs.take(1).unwrap();
            assert_eq!(at, (of << 21) + (2 << 20) - UNIT);
            assert!(left.insert(of));
        }
        assert_eq!(slabs.take(1), None);
        for id in 0..100_000 {
            assert_eq!(slabs.give(id, (id << 21) + (2 << 20) - UNIT, 1), None);
            assert_eq!(slabs.give(id, id << 21, LARGEST), None);
            let gone = slabs.give(id, (id << 21) + LARGEST, LARGEST - UNIT);
            assert_eq!(gone, (id > 0).then_some(id << 21), "one empty slab stays");
        }
        assert_eq!(slabs.all().count(), 1);
    }

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
