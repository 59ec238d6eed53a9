//! How fast to send: so many bytes a second, and not much faster for a moment.
//!
//! # Rules
//!
//! * Over any stretch of time no more is allowed than the rate times its length, and a quarter second's worth, or what is asked
//!   for first in it where that is more: a caller that asks for much at once sends it at once, as fast as the link is. So ask for
//!   parts.
//! * A caller is told how long to wait, and waits before it sends. Several callers may ask: each is told a time after the
//!   others'.
//! * Idle time is not saved up beyond the quarter second.

use std::time::Duration;

/// The share of a link that one sender may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pace {
    /// The rate in bytes per second, at least 1.
    rate: u64,
    /// When what was allowed so far is sent, at the rate.
    free_at: Duration,
}

/// The longest idle time that may be made up for: a sender that was idle for longer may send no more at once than this is worth.
const BURST: Duration = Duration::from_millis(250);

impl Pace {
    /// A pace of so many bytes per second, at least one.
    #[must_use]
    pub const fn new(rate: u64) -> Self {
        Self {
            rate: if rate == 0 { 1 } else { rate },
            free_at: Duration::ZERO,
        }
    }

    /// How long to wait before sending so many bytes.
    pub fn take(&mut self, bytes: u64, now: Duration) -> Duration {
        let begin = self.free_at.max(now.saturating_sub(BURST));
        let nanos = u128::from(bytes) * 1_000_000_000 / u128::from(self.rate);
        let lasts = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.free_at = begin.saturating_add(lasts);
        self.free_at.saturating_sub(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_megabyte_a_second() {
        let mut pace = Pace::new(MIB);
        let start = Duration::from_secs(100);
        // After a rest the first quarter is free.
        assert_eq!(pace.take(MIB / 4, start), Duration::ZERO);
        assert_eq!(pace.take(MIB, start), Duration::from_secs(1));
        assert_eq!(pace.take(MIB, start), Duration::from_secs(2));
        assert_eq!(
            pace.take(MIB, start + Duration::from_secs(3)),
            Duration::ZERO + Duration::from_millis(750)
        );
    }

    proptest! {
        #[test]
        fn over_any_stretch_no_more_than_the_rate_and_a_burst_or_the_first_ask(
            rate in 1000..10_000_000u64, asks in prop::collection::vec((1..5_000_000u64, 0..2000u64), 1..60),
        ) {
            let mut pace = Pace::new(rate);
            let mut now = Duration::from_secs(10);
            let mut allowed_at = Vec::new();
            for (bytes, pause_ms) in asks {
                now += pace.take(bytes, now);
                allowed_at.push((now, bytes));
                now += Duration::from_millis(pause_ms);
            }
            let worth = |time: Duration| u128::from(rate) * time.as_nanos() / 1_000_000_000;
            for (from, (start, first)) in allowed_at.iter().enumerate() {
                let mut sent: u128 = 0;
                for (end, bytes) in &allowed_at[from..] {
                    sent += u128::from(*bytes);
                    let most = worth(*end - *start) + worth(BURST).max(u128::from(*first)) + 61;
                    prop_assert!(sent <= most, "{sent} bytes in {:?} at {rate}", *end - *start);
                }
            }
        }

        #[test]
        fn no_more_than_the_rate_and_one_burst(rate in 1000..10_000_000u64, asks in prop::collection::vec((1..5_000_000u64, 0..2000u64), 1..60)) {
            let mut pace = Pace::new(rate);
            let mut now = Duration::from_secs(10);
            let start = now;
            let mut sent: u128 = 0;
            for (bytes, pause_ms) in asks {
                let wait = pace.take(bytes, now);
                now += wait;
                sent += u128::from(bytes);
                // A byte's time may be lost to rounding with each ask.
                let allowed = u128::from(rate) * (now - start + BURST).as_nanos() / 1_000_000_000 + 61;
                prop_assert!(sent <= allowed, "{sent} bytes in {:?} at {rate}", now - start);
                now += Duration::from_millis(pause_ms);
            }
        }
    }
}
