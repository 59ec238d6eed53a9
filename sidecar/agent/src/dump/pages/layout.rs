//! Where each page goes in the file of pages, and in which pieces it is copied. Pure.

use std::ops::Range;

use crate::criu::memory::Run;

/// Pages that lie somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Content {
    /// The addresses that the pages have in the image.
    pub(super) run: Run,
    /// The index of the source that they are read from.
    pub(super) source: usize,
    /// The address or offset in the source at which they begin, in bytes.
    pub(super) from: u64,
}

/// Bytes of the largest piece: what a core's cache holds.
pub(super) const PIECE: u64 = 1 << 20;

/// A piece of content: at most [`PIECE`] bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    /// The index of the source that it is read from.
    pub(super) source: usize,
    /// The address or offset in the source, in bytes.
    pub(super) from: u64,
    /// The index of the file of pages that it is written to.
    pub(super) target: usize,
    /// The offset in that file, in bytes.
    pub(super) at: u64,
    /// The length of the piece, in bytes.
    pub(super) length: u64,
}

/// The layout of a file of pages.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Placed {
    /// The pages in the file, as its map lists them.
    pub(super) runs: Vec<Run>,
    /// The pieces in which the file is filled.
    pub(super) pieces: Vec<Piece>,
    /// The length of the file in bytes.
    pub(super) length: u64,
}

/// Puts content, which is in the order of its addresses, one after another. No piece lies across a multiple of [`PIECE`] of the file, so
/// that threads do not want the same huge page more often than they must.
pub(super) fn lay_out(content: &[Content], target: usize) -> Placed {
    let mut placed = Placed {
        runs: Vec::new(),
        pieces: Vec::new(),
        length: 0,
    };
    for content in content {
        match placed.runs.last_mut() {
            Some(last) if last.end() == content.run.address => last.pages += content.run.pages,
            _ => placed.runs.push(content.run),
        }
        let (mut from, mut left) = (content.from, content.run.bytes());
        while left > 0 {
            let length = left.min(PIECE - placed.length % PIECE);
            placed.pieces.push(Piece {
                source: content.source,
                from,
                target,
                at: placed.length,
                length,
            });
            placed.length += length;
            from += length;
            left -= length;
        }
    }
    placed
}

/// The parts of a range that lie in none of the holes.
pub(super) fn without(range: &Range<u64>, holes: &[Range<u64>]) -> Vec<Range<u64>> {
    let mut holes: Vec<&Range<u64>> = (holes.iter())
        .filter(|hole| hole.start < range.end && hole.end > range.start)
        .collect();
    holes.sort_unstable_by_key(|hole| hole.start);
    let mut parts = Vec::new();
    let mut at = range.start;
    for hole in holes {
        if hole.start > at {
            parts.push(at..hole.start);
        }
        at = at.max(hole.end);
    }
    if at < range.end {
        parts.push(at..range.end);
    }
    parts
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::criu::memory::PAGE;

    #[test]
    fn holes_are_left_out() {
        let parts = |holes: &[(u64, u64)]| -> Vec<(u64, u64)> {
            let holes: Vec<Range<u64>> = holes.iter().map(|&(from, to)| from..to).collect();
            let parts = without(&(10..20), &holes).into_iter();
            parts.map(|part| (part.start, part.end)).collect()
        };
        assert_eq!(parts(&[]), [(10, 20)]);
        assert_eq!(parts(&[(0, 12), (15, 16), (19, 30)]), [(12, 15), (16, 19)]);
        assert_eq!(parts(&[(15, 16), (12, 15)]), [(10, 12), (16, 20)]);
        assert_eq!(parts(&[(0, 30)]), []);
        assert_eq!(parts(&[(0, 10), (20, 30)]), [(10, 20)]);
    }

    proptest! {
        #[test]
        fn every_page_has_its_place(runs in proptest::collection::vec((0_u64..3, 1_u64..700), 0..40)) {
            let mut address = 0;
            let content: Vec<Content> = runs
                .iter()
                .enumerate()
                .map(|(source, &(gap, pages))| {
                    address += gap * PAGE;
                    let run = Run { address, pages };
                    address = run.end();
                    Content { run, source, from: 7 * address }
                })
                .collect();
            let placed = lay_out(&content, 5);
            let total: u64 = content.iter().map(|c| c.run.bytes()).sum();
            prop_assert_eq!(placed.length, total);
            // The map says the same pages in the same order.
            let pages = |runs: &[Run]| -> Vec<u64> {
                runs.iter().flat_map(|run| (0..run.pages).map(|n| run.address + n * PAGE)).collect()
            };
            let given: Vec<Run> = content.iter().map(|c| c.run).collect();
            prop_assert_eq!(pages(&placed.runs), pages(&given));
            for pair in placed.runs.windows(2) {
                prop_assert!(pair[0].end() < pair[1].address);
            }
            // The pieces follow each other in the file, and each page comes from where it lies.
            let (mut at, mut copied) = (0, Vec::new());
            for piece in &placed.pieces {
                prop_assert_eq!((piece.at, piece.target), (at, 5));
                prop_assert!(piece.length > 0 && piece.at / PIECE == (piece.at + piece.length - 1) / PIECE);
                at += piece.length;
                copied.extend((0..piece.length / PAGE).map(|n| (piece.source, piece.from + n * PAGE)));
            }
            let lies: Vec<(usize, u64)> = content
                .iter()
                .flat_map(|c| (0..c.run.pages).map(move |n| (c.source, c.from + n * PAGE)))
                .collect();
            prop_assert_eq!(copied, lies);
        }
    }
}
