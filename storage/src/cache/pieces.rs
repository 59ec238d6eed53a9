//! Which parts of which packs a cache holds, and in which order they were used.
//!
//! # Rules
//!
//! * Of the pieces of one pack none lies within another, so the last that begins at or before a byte reaches furthest.
//! * What is about to be written counts from when room was made for it: many that write at once stay within the bound.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

/// A part of a pack: the pack's name in the cache, and where in the pack it begins.
pub(super) type PieceId = (String, u64);

/// See the module's documentation.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    by_pack: HashMap<String, BTreeMap<u64, Piece>>,
    by_use: BTreeMap<u64, PieceId>,
    bytes: u64,
    /// The bytes that are being written.
    promised: u64,
    uses: u64,
}

#[derive(Debug, Clone, Copy)]
struct Piece {
    bytes: u64,
    used: u64,
}

impl Pieces {
    /// The number of bytes that are held or about to be.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes + self.promised
    }

    /// Counts uses: what was used before a number that this gave has a smaller one.
    pub(super) const fn now(&self) -> u64 {
        self.uses + 1
    }

    /// Notes that so many bytes are about to be written.
    pub(super) const fn promise(&mut self, bytes: u64) {
        self.promised += bytes;
    }

    /// Notes that promised bytes were written, or will not be.
    pub(super) const fn settle(&mut self, bytes: u64) {
        self.promised = self.promised.saturating_sub(bytes);
    }

    /// Adds a piece, in place of one that begins where it does.
    pub(super) fn add(&mut self, pack: &str, start: u64, bytes: u64) {
        self.remove(pack, start);
        self.uses += 1;
        let used = self.uses;
        let pieces = self.by_pack.entry(pack.to_owned()).or_default();
        pieces.insert(start, Piece { bytes, used });
        self.by_use.insert(used, (pack.to_owned(), start));
        self.bytes += bytes;
    }

    pub(super) fn remove(&mut self, pack: &str, start: u64) {
        let Some(pieces) = self.by_pack.get_mut(pack) else {
            return;
        };
        if let Some(piece) = pieces.remove(&start) {
            self.by_use.remove(&piece.used);
            self.bytes -= piece.bytes;
        }
        if pieces.is_empty() {
            self.by_pack.remove(pack);
        }
    }

    /// The offsets at which the pieces of a pack begin, in bytes.
    pub(super) fn of(&self, pack: &str) -> Vec<u64> {
        let pieces = self.by_pack.get(pack).into_iter();
        pieces.flat_map(|pieces| pieces.keys().copied()).collect()
    }

    /// Notes that a piece was used now.
    pub(super) fn touch(&mut self, pack: &str, start: u64) {
        let piece = self.by_pack.get_mut(pack).and_then(|p| p.get_mut(&start));
        if let Some(piece) = piece
            && let Some(id) = self.by_use.remove(&piece.used)
        {
            self.uses += 1;
            piece.used = self.uses;
            self.by_use.insert(self.uses, id);
        }
    }

    /// The piece that was used longest ago, if that was before `limit` (see [`Self::now`]).
    pub(super) fn oldest(&self, limit: u64) -> Option<PieceId> {
        let (used, id) = self.by_use.first_key_value()?;
        (*used < limit).then(|| id.clone())
    }

    /// The pieces that together hold a range of a pack: where each begins, and which part of it is wanted, in order.
    /// `None`: not all of it is there.
    pub(super) fn covering(
        &self,
        pack: &str,
        range: &Range<u64>,
    ) -> Option<Vec<(u64, Range<u64>)>> {
        let pieces = self.by_pack.get(pack)?;
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let (start, piece) = pieces.range(..=at).next_back()?;
            let end = (start + piece.bytes).min(range.end);
            if end <= at {
                return None;
            }
            found.push((*start, at - start..end - start));
            at = end;
        }
        Some(found)
    }

    /// Where the pieces begin that lie within this part of a pack.
    pub(super) fn within(&self, pack: &str, range: &Range<u64>) -> Vec<u64> {
        let Some(pieces) = self.by_pack.get(pack) else {
            return Vec::new();
        };
        pieces
            .range(range.clone())
            .filter(|(start, piece)| *start + piece.bytes <= range.end)
            .map(|(start, _)| *start)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PACK: &str = "pack";

    fn add(pieces: &mut Pieces, range: Range<u64>) {
        if pieces.covering(PACK, &range).is_some() {
            return;
        }
        for start in pieces.within(PACK, &range) {
            pieces.remove(PACK, start);
        }
        pieces.add(PACK, range.start, range.end - range.start);
    }

    #[test]
    fn a_range_is_put_together_from_pieces() {
        let mut pieces = Pieces::default();
        add(&mut pieces, 0..100);
        add(&mut pieces, 100..150);
        add(&mut pieces, 140..300);
        let covering = |range: Range<u64>| pieces.covering(PACK, &range);
        assert_eq!(covering(0..100), Some(vec![(0, 0..100)]));
        assert_eq!(
            covering(90..200),
            Some(vec![(0, 90..100), (100, 0..50), (140, 10..60)])
        );
        assert_eq!(covering(0..301), None);
        assert_eq!(covering(300..301), None);
        assert_eq!(pieces.covering("other", &(0..1)), None);
        assert_eq!(pieces.bytes(), 100 + 50 + 160);
    }

    #[test]
    fn what_is_promised_counts() {
        let mut pieces = Pieces::default();
        pieces.promise(10);
        assert_eq!(pieces.bytes(), 10);
        pieces.add(PACK, 0, 10);
        pieces.settle(10);
        assert_eq!(pieces.bytes(), 10);
    }

    #[test]
    fn only_what_was_used_before_goes() {
        let mut pieces = Pieces::default();
        pieces.add(PACK, 0, 10);
        pieces.add(PACK, 10, 10);
        let since = pieces.now();
        pieces.touch(PACK, 0);
        assert_eq!(pieces.oldest(since), Some((PACK.into(), 10)));
        pieces.remove(PACK, 10);
        assert_eq!(pieces.oldest(since), None);
        assert_eq!(pieces.oldest(u64::MAX), Some((PACK.into(), 0)));
    }

    proptest! {
        /// Against a map of bytes: a range is found if and only if every byte of it was added and not removed.
        #[test]
        fn ranges_are_found_as_in_a_map_of_bytes(
            steps in proptest::collection::vec((0_u64..60, 1_u64..20, 0_u8..5), 1..40),
        ) {
            let mut pieces = Pieces::default();
            for (start, length, step) in steps {
                if step == 0 {
                    if let Some((pack, start)) = pieces.oldest(u64::MAX) {
                        pieces.remove(&pack, start);
                    }
                } else {
                    add(&mut pieces, start..start + length);
                }
                let held: Vec<(u64, u64)> = (pieces.by_pack.get(PACK).into_iter())
                    .flat_map(|p| p.iter().map(|(start, piece)| (*start, start + piece.bytes)))
                    .collect();
                prop_assert_eq!(pieces.bytes(), held.iter().map(|(s, e)| e - s).sum::<u64>());
                prop_assert_eq!(pieces.by_use.len(), held.len());
                // None within another: ends rise as starts do.
                prop_assert!(held.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1));
                let has = |byte: u64| held.iter().any(|(s, e)| (*s..*e).contains(&byte));
                for from in 0..80 {
                    for to in from + 1..=from + 3 {
                        let found = pieces.covering(PACK, &(from..to));
                        prop_assert_eq!(found.is_some(), (from..to).all(has), "{}..{}", from, to);
                        let bytes: u64 = (found.iter().flatten()).map(|(_, r)| r.end - r.start).sum();
                        prop_assert!(found.is_none() || bytes == to - from);
                    }
                }
            }
        }
    }
}
