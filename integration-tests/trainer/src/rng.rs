//! Small generators with plain state: what they draw depends on memory alone.

/// splitmix64's step; `trainer.cu` has the same function.
pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// PCG32 (M. O'Neill, "PCG: a family of simple fast space-efficient statistically good algorithms", 2014).
#[derive(Debug, Clone)]
pub(crate) struct Pcg {
    state: u64,
    increment: u64,
}

impl Pcg {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut rng = Self {
            state: 0,
            increment: (stream << 1) | 1,
        };
        rng.next_u32();
        rng.state = rng.state.wrapping_add(mix(seed));
        rng.next_u32();
        rng
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        let old = self.state;
        self.state = old
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(self.increment);
        let shifted = (((old >> 18) ^ old) >> 27) as u32;
        shifted.rotate_right((old >> 59) as u32)
    }

    pub(crate) fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }

    /// A number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next_u64() % end as u64) as usize
    }

    /// One of `all`; none if there is none.
    pub(crate) fn choose<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        (!all.is_empty()).then(|| all[self.below(all.len())])
    }

    /// Uniform in [-1, 1).
    pub(crate) fn symmetric(&mut self) -> f32 {
        (self.next_u32() >> 8) as f32 * (2.0 / 16_777_216.0) - 1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcg_is_reproducible_and_streams_differ() {
        let draw = |seed, stream| {
            let mut rng = Pcg::new(seed, stream);
            [rng.next_u32(), rng.next_u32(), rng.next_u32()]
        };
        assert_eq!(draw(1, 2), draw(1, 2));
        assert_ne!(draw(1, 2), draw(1, 3));
        assert_ne!(draw(1, 2), draw(2, 2));
    }

    #[test]
    fn symmetric_stays_in_its_interval() {
        let mut rng = Pcg::new(3, 0);
        for _ in 0..10_000 {
            let x = rng.symmetric();
            assert!((-1.0..1.0).contains(&x));
        }
    }

    #[test]
    fn mix_is_splitmix64() {
        // The first output of splitmix64 with seed 0.
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
    }
}
