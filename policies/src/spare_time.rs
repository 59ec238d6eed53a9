//! How long what is stored beside a job leaves it the processors.
//!
//! A program of two threads that wait for each other every millisecond, on two cores without anything else, took so many times as long for a round beside two
//! threads that encode (Linux 6.18; `integration-tests/spare_time.c`):
//!
//! | the threads that encode | of its own session | of another, which counts as much | of another, nice 19 as a whole |
//! |---|---|---|---|
//! | nice 5 | 1.6 | 2.5 | 1.03 |
//! | idle | 1.02 | 2.2 | 1.04 |
//!
//! Idle threads were left 3 to 4 % of the processors by that program, which never stops, and nearly all that is free by others. So they are slow only
//! where there is nothing to spare; but there a checkpoint would take for ever.
//!
//! # Rules
//!
//! * A checkpoint that is not stored after half of the interval takes its share of the processors, so that the next one does not have to wait for it.
//! * It does so after five minutes at the latest, and not before five seconds.

use std::time::Duration;

/// Where checkpoints are taken when somebody asks for one.
const ON_DEMAND: Duration = Duration::from_secs(30);
const LEAST: Duration = Duration::from_secs(5);
const MOST: Duration = Duration::from_secs(300);

/// How long a checkpoint may take what nobody else wants; the time between checkpoints, if there is one.
#[must_use]
pub fn at_most(interval: Option<Duration>) -> Duration {
    let half = interval.map_or(ON_DEMAND, |interval| interval / 2);
    half.clamp(LEAST, MOST)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn half_of_the_interval_within_bounds() {
        let of = |seconds| at_most(Some(Duration::from_secs(seconds))).as_secs();
        assert_eq!((of(60), of(1), of(86_400)), (30, 5, 300));
        assert_eq!(at_most(None), ON_DEMAND);
    }

    proptest! {
        /// A checkpoint that takes its share from then on has the other half of the interval.
        #[test]
        fn the_next_one_need_not_wait(seconds in 10_u64..100_000) {
            let interval = Duration::from_secs(seconds);
            prop_assert!(at_most(Some(interval)) <= interval / 2);
        }
    }
}
