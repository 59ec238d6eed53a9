//! How to encode a chunk: as it is, compressed, or compressed by byte planes; and how hard to try.
//!
//! # What the bytes are like
//!
//! Most of a job's memory is numbers of 2 or 4 bytes. Their low bytes are noise and their high bytes (sign, exponent) are
//! much alike, which a compressor that looks at bytes in a row hardly sees. Put into planes, all first bytes, then all
//! second bytes, the high planes shrink to a third and the low ones are left alone at the cost of a copy.
//!
//! # Rules
//!
//! * [`choose`]: the smallest wins, by a sample. A sixteenth must be saved, or the chunk is stored as it is: what hardly
//!   shrinks is not worth the time of reading it back. Planes must beat plain compression by a thirty-second, as they
//!   cost one more pass.
//! * [`Levels`]: neither the encoder nor the link should idle. If packs wait for the link, there is time to press harder;
//!   if the encoders are busy while the link waits, there is not. Two packs in a row must say the same before the level
//!   moves by a step, so that it does not swing.
//! * A checkpoint must be stored before the next one is due. If more than three quarters of the interval are gone and the encoders are
//!   what takes the time, nothing is compressed any more. If it is the link, compressing is what helps.

/// How many bytes a sample of a chunk takes in each [`Shape`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// The number of bytes in the sample.
    pub bytes: usize,
    /// What they come to compressed as they are.
    pub plain: usize,
    /// The size of the sample when its planes of 2 bytes are compressed.
    pub planes2: usize,
    /// The size of the sample when its planes of 4 bytes are compressed.
    pub planes4: usize,
}

/// The form in which a chunk is written into a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shape {
    /// The bytes as they are.
    Raw,
    /// The bytes in their order, compressed.
    Plain,
    /// The bytes as two planes (of numbers of 2 bytes), compressed.
    Planes2,
    /// The bytes as four planes (of numbers of 4 bytes), compressed.
    Planes4,
}

/// Which is best for a chunk, by a sample of it.
#[must_use]
pub const fn choose(sample: Sample) -> Shape {
    let (planes, shape) = if sample.planes2 <= sample.planes4 {
        (sample.planes2, Shape::Planes2)
    } else {
        (sample.planes4, Shape::Planes4)
    };
    let worth = sample.bytes / 32;
    let (best, shape) = if planes + worth < sample.plain {
        (planes, shape)
    } else {
        (sample.plain, Shape::Plain)
    };
    if best + sample.bytes / 16 >= sample.bytes {
        Shape::Raw
    } else {
        shape
    }
}

/// What was waiting when a pack was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// The pack had to wait, as all upload slots were taken.
    pub link_is_full: bool,
    /// While it was filled, chunks had to wait for an encoder.
    pub encoders_are_full: bool,
    /// More than three quarters of the time until the next checkpoint are gone.
    pub late: bool,
}

/// zstd levels for what is compressed as it is, from the fastest. Below 1 numbers hardly shrink. See
/// `docs/encoding.md`.
pub const LEVELS: [i32; 4] = [1, 3, 6, 9];

/// The level for byte planes: higher ones take longer and save less there, as what looks like a repetition in a plane of
/// noise is none.
pub const PLANES: i32 = 1;

/// The compression levels in use, raised and lowered by what is waited for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Levels {
    at: usize,
    /// Packs in a row that asked for a step up (positive) or down.
    asked: i32,
    compress: bool,
}

impl Default for Levels {
    fn default() -> Self {
        Self {
            at: 0,
            asked: 0,
            compress: true,
        }
    }
}

impl Levels {
    /// The zstd level to use now for what has this shape; `None`: store as it is.
    #[must_use]
    pub fn level(&self, shape: Shape) -> Option<i32> {
        let level = match shape {
            Shape::Raw => None,
            Shape::Plain => LEVELS.get(self.at).copied(),
            Shape::Planes2 | Shape::Planes4 => Some(PLANES),
        };
        level.filter(|_| self.compress)
    }

    /// A checkpoint begins: what was given up for the last one's sake is tried again.
    pub const fn checkpoint_begins(&mut self) {
        self.compress = true;
        self.asked = 0;
    }

    /// A pack was closed: `pressure` may move the level up or down.
    pub fn pack_closed(&mut self, pressure: Pressure) {
        let asks = match (pressure.link_is_full, pressure.encoders_are_full) {
            // Packs wait for the link: there is time to make them smaller.
            (true, false) => 1,
            // The link waits for packs.
            (false, true) => -1,
            // Both are busy, or neither: that is what is wanted.
            (true, true) | (false, false) => 0,
        };
        if pressure.link_is_full {
            self.compress = true;
        } else if pressure.late && pressure.encoders_are_full {
            self.compress = false;
        }
        if asks == 0 || asks * self.asked < 0 {
            self.asked = asks;
            return;
        }
        self.asked += asks;
        if self.asked.abs() >= 2 {
            self.asked = 0;
            let at = if asks > 0 {
                self.at + 1
            } else {
                self.at.saturating_sub(1)
            };
            self.at = at.min(LEVELS.len() - 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn sample(plain: usize, planes2: usize, planes4: usize) -> Sample {
        Sample {
            bytes: 16384,
            plain,
            planes2,
            planes4,
        }
    }

    #[test]
    fn the_rules_by_example() {
        for (found, shape) in [
            // Noise.
            (sample(16400, 16400, 16400), Shape::Raw),
            // Hardly anything to save.
            (sample(15500, 15600, 15400), Shape::Raw),
            // Text, pointers: planes do not help.
            (sample(5000, 6000, 7000), Shape::Plain),
            // They help too little to be worth a pass.
            (sample(8000, 7600, 9000), Shape::Plain),
            // bf16 and fp32.
            (sample(14500, 11000, 12000), Shape::Planes2),
            (sample(15200, 14800, 13600), Shape::Planes4),
        ] {
            assert_eq!(choose(found), shape, "{found:?}");
        }
    }

    const LINK: Pressure = Pressure {
        link_is_full: true,
        encoders_are_full: false,
        late: false,
    };
    const ENCODERS: Pressure = Pressure {
        link_is_full: false,
        encoders_are_full: true,
        late: false,
    };
    const BOTH: Pressure = Pressure {
        link_is_full: true,
        encoders_are_full: true,
        late: false,
    };

    #[test]
    fn a_slow_link_presses_harder_and_a_slow_encoder_gives_way() {
        let mut levels = Levels::default();
        let plain = |levels: &Levels| levels.level(Shape::Plain);
        assert_eq!(plain(&levels), Some(1));
        levels.pack_closed(LINK);
        assert_eq!(plain(&levels), Some(1), "once is nothing");
        for _ in 0..20 {
            levels.pack_closed(LINK);
        }
        assert_eq!(plain(&levels), Some(9));
        assert_eq!(
            levels.level(Shape::Planes4),
            Some(PLANES),
            "whatever the link"
        );
        assert_eq!(levels.level(Shape::Raw), None);
        // Both busy: that is right as it is.
        for _ in 0..20 {
            levels.pack_closed(BOTH);
        }
        assert_eq!(plain(&levels), Some(9));
        for _ in 0..20 {
            levels.pack_closed(ENCODERS);
        }
        assert_eq!(plain(&levels), Some(1));
    }

    #[test]
    fn one_that_swings_stays_where_it_is() {
        let mut levels = Levels::default();
        for _ in 0..20 {
            levels.pack_closed(LINK);
            levels.pack_closed(ENCODERS);
        }
        assert_eq!(levels.level(Shape::Plain), Some(1));
    }

    #[test]
    fn a_checkpoint_that_gets_late_over_its_encoders_is_stored_as_it_is() {
        let mut levels = Levels::default();
        let late = |pressure| Pressure {
            late: true,
            ..pressure
        };
        levels.pack_closed(late(BOTH));
        let level = |levels: &Levels| levels.level(Shape::Planes2);
        assert!(level(&levels).is_some(), "it is the link that is late");
        levels.pack_closed(late(ENCODERS));
        assert_eq!(level(&levels), None);
        levels.checkpoint_begins();
        assert!(level(&levels).is_some());
        levels.pack_closed(late(ENCODERS));
        levels.pack_closed(late(BOTH));
        assert!(
            level(&levels).is_some(),
            "now the link is full: smaller is faster"
        );
    }

    proptest! {
        #[test]
        fn it_never_leaves_its_levels(steps in prop::collection::vec(any::<(bool, bool, bool)>(), 0..200)) {
            let mut levels = Levels::default();
            for (link_is_full, encoders_are_full, late) in steps {
                let before = levels.at;
                levels.pack_closed(Pressure { link_is_full, encoders_are_full, late });
                prop_assert!(levels.at.abs_diff(before) <= 1);
                prop_assert!(levels.level(Shape::Plain).is_none_or(|level| LEVELS.contains(&level)));
            }
        }

        #[test]
        fn what_is_chosen_is_smaller_than_the_chunk(plain in 0..20_000usize, planes2 in 0..20_000usize, planes4 in 0..20_000usize) {
            let found = sample(plain, planes2, planes4);
            let size = match choose(found) {
                Shape::Raw => return Ok(()),
                Shape::Plain => plain,
                Shape::Planes2 => planes2,
                Shape::Planes4 => planes4,
            };
            prop_assert!(size + 16384 / 16 < 16384);
            prop_assert!(size <= plain);
        }
    }
}
