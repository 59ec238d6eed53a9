//! Memory for what was encoded and waits to be stored: slabs of one size that are filled one after the other and used again.
//!
//! Encoded chunks have all lengths, and live until their pack is stored, many packs at a time. As blocks of the heap among
//! others they left holes that nothing fitted into, and a writer took a fifth more memory than it may (`make bench-storage`,
//! S3). Here they lie side by side, cut where a slab ends, and a slab is used again when the last of its bytes is not needed
//! any more.
//!
//! # Memory
//!
//! As many slabs as were ever in use at once, until they are [released](Slabs::release) or dropped; the bytes that were handed
//! out keep theirs. Beside the slabs that its packs fill, a writer has one that is open and, for each pack on its way, at most
//! two that the pack shares with others. What was kept and is dropped again (a chunk that another put stored meanwhile) holds
//! its part of a slab as long as its neighbours do.

use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::{Bytes, BytesMut};

/// Bytes of a slab. A pack has several, so that a slab that two of them share is a small part of either.
const SLAB: usize = 4 << 20;

/// The slabs that one writer fills and uses again.
#[derive(Debug)]
pub(crate) struct Slabs {
    pool: Mutex<Pool>,
}

#[derive(Debug)]
struct Pool {
    /// The size of a slab in bytes.
    size: usize,
    /// What is left of the slab that is being filled.
    open: Option<BytesMut>,
    /// The unused ends of slabs that are full.
    full: Vec<BytesMut>,
}

impl Default for Slabs {
    fn default() -> Self {
        Self::of(SLAB)
    }
}

impl Slabs {
    /// Slabs of so many bytes.
    fn of(size: usize) -> Self {
        let pool = Pool {
            size,
            open: None,
            full: Vec::new(),
        };
        Self { pool: pool.into() }
    }

    /// Keeps a copy of some bytes, in as many pieces as it takes. Several can copy at once: only where to is decided by one
    /// at a time.
    pub(crate) fn keep(&self, mut bytes: &[u8]) -> Vec<Bytes> {
        let places = self.pool().cut(bytes.len());
        let fill = |mut place: BytesMut| {
            let (now, rest) = bytes.split_at(place.capacity().min(bytes.len()));
            place.extend_from_slice(now);
            bytes = rest;
            place.freeze()
        };
        places.into_iter().map(fill).collect()
    }

    /// Lets go all slabs: nothing more is to be kept for now.
    pub(crate) fn release(&self) {
        let mut pool = self.pool();
        pool.open = None;
        pool.full.clear();
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    /// Empty places that together have room for so many bytes, and not for one more.
    fn cut(&mut self, mut length: usize) -> Vec<BytesMut> {
        let mut places = Vec::with_capacity(1);
        while length > 0 {
            let mut place = self.open.take().unwrap_or_else(|| self.begin());
            let rest = place.split_off(place.capacity().min(length));
            length -= place.capacity();
            places.push(place);
            match rest.capacity() {
                0 => self.full.push(rest),
                _ => self.open = Some(rest),
            }
        }
        places
    }

    /// An empty slab: one of which nobody has a byte any more, or else a new one.
    fn begin(&mut self) -> BytesMut {
        let free = self
            .full
            .iter_mut()
            .position(|slab| slab.try_reclaim(self.size));
        free.map_or_else(
            || BytesMut::with_capacity(self.size),
            |free| self.full.swap_remove(free),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};

    impl Slabs {
        fn count(&self) -> usize {
            let pool = self.pool();
            pool.full.len() + usize::from(pool.open.is_some())
        }
    }

    #[test]
    fn slabs_are_used_again_when_nobody_has_a_byte_of_them() {
        let slabs = Slabs::default();
        let mut kept: Vec<Vec<Bytes>> = (0..8).map(|i| slabs.keep(&vec![i; SLAB / 2])).collect();
        assert_eq!(slabs.count(), 4);
        // Half of the second one is not enough.
        kept.drain(..3);
        kept.push(slabs.keep(&vec![8; SLAB]));
        assert_eq!(slabs.count(), 4);
        kept.push(slabs.keep(&[9]));
        assert_eq!(slabs.count(), 5);
        for (pieces, byte) in kept.iter().zip(3..) {
            assert!(pieces.concat().iter().all(|&found| found == byte));
        }
    }

    #[test]
    fn what_was_kept_outlives_the_slabs() {
        let slabs = Slabs::default();
        let pieces = slabs.keep(b"chunk");
        slabs.release();
        assert_eq!(slabs.count(), 0);
        assert_eq!(slabs.keep(b"another").concat(), b"another");
        drop(slabs);
        assert_eq!(pieces.concat(), b"chunk");
    }

    /// Bytes of a slab here.
    const SMALL: usize = 64;

    /// No two pieces of it are alike.
    fn noise(seed: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        rand_chacha::ChaCha8Rng::seed_from_u64(seed).fill_bytes(&mut bytes);
        bytes
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_was_given(
            steps in prop::collection::vec((0..3 * SMALL, any::<Option<prop::sample::Index>>()), 1..200)
        ) {
            let slabs = Slabs::of(SMALL);
            let mut kept: Vec<(Vec<u8>, Vec<Bytes>)> = Vec::new();
            for (seed, (length, gone)) in steps.into_iter().enumerate() {
                let bytes = noise(seed as u64, length);
                let pieces = slabs.keep(&bytes);
                kept.push((bytes, pieces));
                if let Some(gone) = gone {
                    // What overwrote it is seen when it goes.
                    let (bytes, pieces) = kept.swap_remove(gone.index(kept.len()));
                    prop_assert_eq!(pieces.concat(), bytes);
                }
            }
            for (bytes, pieces) in kept {
                prop_assert_eq!(pieces.concat(), bytes);
            }
        }

        /// Lying side by side, what is kept takes no more slabs than its bytes fill.
        #[test]
        fn nothing_is_left_out_between(lengths in prop::collection::vec(1..SMALL, 1..200)) {
            let slabs = Slabs::of(SMALL);
            let kept: Vec<_> = lengths.iter().map(|&length| slabs.keep(&noise(1, length))).collect();
            prop_assert_eq!(slabs.count(), lengths.iter().sum::<usize>().div_ceil(SMALL));
            prop_assert!(kept.iter().all(|pieces| pieces.len() <= 2));
        }
    }
}
