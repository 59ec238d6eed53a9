//! When processes are brought back whose device memory is still being filled.
//!
//! Both take seconds, and neither needs the other: CRIU and the driver put processes back, while chunks are fetched, decoded and written
//! to the GPU. But processes that are back wait for their memory awake, with their timers and watchdogs; behind a store that needs minutes
//! they would wait for minutes.
//!
//! # Rules
//!
//! * They are brought back when the rest of the memory is expected to take no longer than they do, and a moment that no watchdog minds.
//! * What is expected follows from the slower of two speeds: since the beginning, and of late.
//! * What comes from near, or is zeros, does not speak for what comes from far: the caller has the far come first.
//! * Nothing is expected of a transfer that has only just begun.

use std::time::Duration;

/// What processes take at least, of any size: CRIU's start, and the driver's control state. H200s' took 0.5 to 0.8 s of 1.3 to 1.9 s.
const LEAST: Duration = Duration::from_millis(500);
/// Bytes of a CPU image that come back in a second: the rest of that, of 2.2 GB.
const RATE: u64 = 3 << 30;
/// How long they may wait: time-outs of programs are seconds at least, those of NCCL and of PyTorch minutes.
const MOMENT: Duration = Duration::from_secs(2);
/// The part of the memory after which the rest is estimated: one in so many.
const BEGUN: u64 = 32;
/// How long the last part of the transfer is at least of which the speed is taken.
const OF_LATE: Duration = Duration::from_millis(500);

/// How long it takes to bring back processes whose CPU image has so many bytes.
#[must_use]
fn takes(cpu_image: u64) -> Duration {
    LEAST + Duration::from_secs_f64(cpu_image as f64 / RATE as f64)
}

/// Decides it for one restore.
#[derive(Debug, Clone)]
pub struct Revive {
    total: u64,
    cpu_image: u64,
    /// Bytes that were there at two moments, [`OF_LATE`] apart at least; both are the beginning at first.
    marks: [(Duration, u64); 2],
}

impl Revive {
    /// For a transfer of `total` bytes, and a CPU image of so many bytes.
    #[must_use]
    pub const fn new(total: u64, cpu_image: u64) -> Self {
        Self {
            total,
            cpu_image,
            marks: [(Duration::ZERO, 0); 2],
        }
    }

    /// Whether it is time to bring them back: `filled` bytes of their memory are there after `elapsed`, neither of which becomes less.
    pub fn is_time(&mut self, filled: u64, elapsed: Duration) -> bool {
        let rest = self.total.saturating_sub(filled);
        if rest == 0 {
            return true;
        }
        let [before, last] = self.marks;
        if elapsed.saturating_sub(last.0) >= OF_LATE {
            self.marks = [last, (elapsed, filled)];
        }
        if filled == 0 || filled < self.total / BEGUN {
            return false;
        }
        // The earlier mark is OF_LATE ago at least, once there was so much time.
        let of_late = (filled.saturating_sub(before.1)) as f64
            / elapsed.saturating_sub(before.0).as_secs_f64();
        let ever = filled as f64 / elapsed.as_secs_f64();
        let enough = (takes(self.cpu_image) + MOMENT).as_secs_f64();
        rest as f64 <= enough * of_late.min(ever)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GB: u64 = 1_000_000_000;

    /// When a transfer with these speeds, each for so many bytes, is told that it is time, and how long the rest takes then; in seconds.
    fn told(parts: &[(u64, u64)], cpu_image: u64) -> (f64, f64) {
        let total = parts.iter().map(|(bytes, _)| bytes).sum();
        let whole: f64 = parts
            .iter()
            .map(|(bytes, rate)| *bytes as f64 / *rate as f64)
            .sum();
        let mut revive = Revive::new(total, cpu_image);
        let (mut filled, mut at) = (0, 0.0);
        for &(bytes, rate) in parts {
            let end = filled + bytes;
            while filled < end {
                let step = (end - filled).min(8 << 20);
                filled += step;
                at += step as f64 / rate as f64;
                if revive.is_time(filled, Duration::from_secs_f64(at)) {
                    return (at, whole - at);
                }
            }
        }
        (at, whole - at)
    }

    #[test]
    fn processes_come_back_when_the_rest_takes_no_longer_than_they_do() {
        // From this machine's memory, in 1.2 s: as soon as that is known.
        let (at, _) = told(&[(39 * GB, 32 * GB)], 2 * GB);
        assert!(at < 0.1, "{at}");
        // Decoded by sixteen cores in 5.9 s: three seconds before the end.
        let (_, rest) = told(&[(39 * GB, 39 * GB / 6)], 2 * GB);
        assert!((2.9..3.2).contains(&rest), "{rest}");
        // From a store that needs six and a half minutes.
        let (at, rest) = told(&[(39 * GB, GB / 10)], 2 * GB);
        assert!(at > 380.0 && rest > 2.0, "{at} {rest}");
        // The same, with much of it zeros, or near.
        for near in [2 * GB, 20 * GB] {
            let (at, rest) = told(&[(20 * GB, GB / 10), (near, 25 * GB)], 2 * GB);
            assert!(at > 190.0 && rest < 4.0, "{near}: {at} {rest}");
        }
        assert!(Revive::new(0, 0).is_time(0, Duration::ZERO));
    }

    proptest! {
        /// At the speed that it had, the rest takes no longer than processes and a moment.
        #[test]
        fn nobody_waits_for_long(total in GB..1_000 * GB, rate in 10_000_000..50 * GB, cpu_image in 0..100 * GB) {
            let (_, rest) = told(&[(total, rate)], cpu_image);
            prop_assert!(rest <= (takes(cpu_image) + MOMENT).as_secs_f64() * 1.01 + 1e-3, "{rest}");
        }

        /// Once it has been slow for a while, a fast beginning does not mislead.
        #[test]
        fn what_was_of_late_counts(near in GB..100 * GB, far in GB..100 * GB, slow in 20_000_000..200_000_000_u64) {
            let (at, rest) = told(&[(near, 20 * GB), (far, slow)], GB);
            if at > near as f64 / 20e9 + 1.5 {
                prop_assert!(rest <= (takes(GB) + MOMENT).as_secs_f64() * 1.01 + 1e-3, "{at} {rest}");
            }
        }
    }
}
