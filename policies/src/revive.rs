//! When processes are brought back whose device memory is still being filled.
//!
//! Both take seconds, and neither needs the other: CRIU and the driver put processes back, while chunks are fetched, decoded and written
//! to the GPU. But processes that are back wait for their memory awake, with their timers and watchdogs; behind a store that needs minutes
//! they would wait for minutes.
//!
//! # Rules
//!
//! * They are brought back when the rest of the memory is expected to take no longer than they do.
//! * Nothing is expected of a transfer that has only just begun.

use std::time::Duration;

/// What processes take at least, of any size: CRIU's start, and the driver's control state. An H200's took 0.5 s of 1.3 s.
const LEAST: Duration = Duration::from_millis(500);
/// Bytes of a CPU image that come back in a second: the rest of that, of 2.2 GB.
const RATE: u64 = 3 << 30;
/// The part of the memory after which the rest is estimated: one in so many.
const BEGUN: u64 = 32;

/// How long it takes to bring back processes whose CPU image has so many bytes.
#[must_use]
pub fn takes(cpu_image: u64) -> Duration {
    LEAST + Duration::from_secs_f64(cpu_image as f64 / RATE as f64)
}

/// Whether it is time to bring them back: `filled` of `total` bytes of their memory are there after `elapsed`.
#[must_use]
pub fn is_time(filled: u64, total: u64, elapsed: Duration, cpu_image: u64) -> bool {
    let rest = total.saturating_sub(filled);
    if rest == 0 {
        return true;
    }
    if filled == 0 || filled < total / BEGUN {
        return false;
    }
    elapsed.as_secs_f64() * (rest as f64 / filled as f64) <= takes(cpu_image).as_secs_f64()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GB: u64 = 1_000_000_000;

    #[test]
    fn processes_come_back_when_the_rest_takes_no_longer_than_they_do() {
        let at =
            |filled, seconds| is_time(filled, 39 * GB, Duration::from_secs_f64(seconds), 2 * GB);
        // From this machine's memory, in 1.2 s: as soon as that is known.
        assert!(!at(0, 0.1) && !at(GB, 0.03));
        assert!(at(2 * GB, 0.06));
        // Decoded by sixteen cores in 5.9 s: a good second before the end.
        assert!(!at(30 * GB, 4.5) && at(33 * GB, 5.0));
        // From a store that needs six and a half minutes: in the last second of them.
        assert!(!at(38 * GB, 380.0) && at(39 * GB - GB / 10, 389.0));
        assert!(is_time(0, 0, Duration::ZERO, 0));
    }

    proptest! {
        /// At the speed that it had, the rest takes no longer than the processes do.
        #[test]
        fn nobody_waits_for_long(
            total in 1..1_000 * GB, part in 0.0..1.0_f64, ms in 1..1_000_000_u64, cpu_image in 0..100 * GB,
        ) {
            let filled = (total as f64 * part) as u64;
            let elapsed = Duration::from_millis(ms);
            if is_time(filled, total, elapsed, cpu_image) && filled < total {
                let rest = elapsed.as_secs_f64() * (total - filled) as f64 / filled as f64;
                prop_assert!(rest <= takes(cpu_image).as_secs_f64() * 1.000_001);
            }
        }

        /// Once it is time, it stays so while the transfer keeps its speed.
        #[test]
        fn it_does_not_become_too_early_again(total in 1_000..1_000 * GB, cpu_image in 0..100 * GB, rate in 1_000..100 * GB) {
            let mut was = false;
            for tenth in 1..=10 {
                let filled = total / 10 * tenth;
                let elapsed = Duration::from_secs_f64(filled as f64 / rate as f64);
                let is = is_time(filled, total, elapsed, cpu_image);
                prop_assert!(is || !was);
                was = is;
            }
        }
    }
}
