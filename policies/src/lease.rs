//! When another node's lease of a job has run out.
//!
//! # Rules
//!
//! * Clocks of different machines are not compared, with one exception: a lease that is many times its length old by the
//!   clock here is not waited for. Clocks that far apart are refused by object stores themselves.
//! * A lease is alive while it changes. From when it was first seen as it is now, it holds for its length by the clock here.
//! * An old lease is not waited for, however it changes: anyone who may write to a store can put leases back that the holder
//!   wrote once, one after the other for ever. For a job with a key that is all that can be done with a lease, so nobody waits
//!   for longer than ten times its length after the holder's last renewal.
//! * Time in which it could not be read does not count: its holder could not renew it then, either.
//! * It never decides who may write (the store's log does): an error here costs a restart of the job, no checkpoint.

use std::time::Duration;

/// Older than so many times its length, it is not waited for.
const OLD: u32 = 10;
/// No lease holds for longer.
const LONGEST: Duration = Duration::from_secs(3600);

/// A lease as it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sign {
    /// A number that changes each time the lease is renewed.
    pub beat: u64,
    /// How long it holds without being renewed.
    pub length: Duration,
    /// How old it is by the clock here; `None`: it is from the future.
    pub age: Option<Duration>,
}

/// Whether a node that wants the job has to wait for the holder of its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Nobody needs to be waited for.
    Free,
    /// The holder may be well: the lease runs out after this time, if it is not renewed.
    Held(Duration),
}

/// Watches another node's lease by this machine's own clock, to see whether it is still renewed.
#[derive(Debug, Clone, Copy, Default)]
pub struct LeaseWatch {
    /// The beat that was read last, and since when it is.
    seen: Option<(u64, Duration)>,
}

impl LeaseWatch {
    /// Notes that the lease could not be read at `now`.
    pub const fn missed(&mut self, now: Duration) {
        if let Some((_, since)) = &mut self.seen {
            *since = now;
        }
    }

    /// Judges what was read, `None` where nobody has a lease. `now` is a time that never goes back.
    pub fn look(&mut self, sign: Option<Sign>, now: Duration) -> Verdict {
        let Some(sign) = sign else {
            return Verdict::Free;
        };
        let length = sign.length.min(LONGEST);
        let since = match self.seen {
            Some((beat, since)) if beat == sign.beat => since,
            // Neither the first look nor a change tells that its holder is alive now.
            _ if sign.age.is_some_and(|age| age > length.saturating_mul(OLD)) => {
                return Verdict::Free;
            }
            _ => now,
        };
        self.seen = Some((sign.beat, since));
        match (since + length).checked_sub(now) {
            Some(left) if !left.is_zero() => Verdict::Held(left),
            _ => Verdict::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LENGTH: Duration = Duration::from_secs(30);

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn sign(beat: u64) -> Option<Sign> {
        Some(Sign {
            beat,
            length: LENGTH,
            age: Some(seconds(5)),
        })
    }

    #[test]
    fn one_that_is_not_renewed_runs_out() {
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.look(sign(7), seconds(100)), Verdict::Held(LENGTH));
        assert_eq!(
            watch.look(sign(7), seconds(110)),
            Verdict::Held(seconds(20))
        );
        assert_eq!(watch.look(sign(7), seconds(130)), Verdict::Free);
    }

    #[test]
    fn a_store_that_is_out_for_both_is_nobodys_fault() {
        let mut watch = LeaseWatch::default();
        watch.missed(seconds(0));
        assert_eq!(watch.look(sign(7), seconds(1)), Verdict::Held(LENGTH));
        for second in (2..900).step_by(2) {
            watch.missed(seconds(second));
        }
        let old = sign(7).map(|sign| Sign {
            age: Some(seconds(900)),
            ..sign
        });
        assert_eq!(watch.look(old, seconds(900)), Verdict::Held(seconds(28)));
        assert_eq!(watch.look(old, seconds(928)), Verdict::Free);
    }

    #[test]
    fn none_and_an_old_one_are_not_waited_for() {
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.look(None, seconds(0)), Verdict::Free);
        let aged = |age| sign(1).map(|sign| Sign { age, ..sign });
        assert_eq!(
            watch.look(aged(Some(seconds(301))), seconds(0)),
            Verdict::Free
        );
        assert_eq!(
            watch.look(aged(Some(seconds(300))), seconds(0)),
            Verdict::Held(LENGTH)
        );
        // From the future: nobody knows.
        let mut watch = LeaseWatch::default();
        assert_eq!(watch.look(aged(None), seconds(0)), Verdict::Held(LENGTH));
        // Another one that is old, too: somebody may have put it back.
        let old = |beat, age| {
            sign(beat).map(|sign| Sign {
                age: Some(seconds(age)),
                ..sign
            })
        };
        assert_eq!(watch.look(old(2, 301), seconds(1)), Verdict::Free);
        assert_eq!(watch.look(old(2, 300), seconds(1)), Verdict::Held(LENGTH));
    }

    #[test]
    fn a_length_that_is_absurd_is_bounded() {
        let mut watch = LeaseWatch::default();
        let sign = Sign {
            beat: 1,
            length: Duration::MAX,
            age: None,
        };
        assert_eq!(watch.look(Some(sign), seconds(0)), Verdict::Held(LONGEST));
        assert_eq!(watch.look(Some(sign), LONGEST), Verdict::Free);
    }

    proptest! {
        /// Who may write puts leases of a holder that is gone back, in any order, for ever: nobody waits for ever.
        #[test]
        fn what_is_put_back_is_not_waited_for_for_long(
            looks in proptest::collection::vec((1_u64..30, 0_u64..100), 100..200),
        ) {
            let mut watch = LeaseWatch::default();
            // The holder renewed each 10 s from 0 to 990, and was gone.
            let mut now = 1000_u64;
            for (gap, beat) in looks {
                let age = Some(seconds(now - beat * 10));
                let sign = Sign { beat, length: LENGTH, age };
                if watch.look(Some(sign), seconds(now)) == Verdict::Free {
                    break;
                }
                now += gap;
            }
            prop_assert!(now <= 990 + 10 * LENGTH.as_secs() + 30, "{now}");
        }

        /// While the holder renews in time, nobody who looks in any rhythm finds it free, whatever its clock says; once it
        /// stops, everybody who goes on looking does, after the lease's length and one look more.
        #[test]
        fn held_while_renewed_and_free_after(
            looks in proptest::collection::vec(1_u64..10, 20..60),
            dies_at in 0_u64..200,
            skew in -250_i64..250,
        ) {
            let mut watch = LeaseWatch::default();
            let mut now = 1000_u64;
            let died = now + dies_at;
            let mut free_at = None;
            for gap in looks {
                let beat = now.min(died) / 10;
                let age = u64::try_from((now - beat * 10) as i64 + skew).ok();
                let sign = Sign { beat, length: LENGTH, age: age.map(seconds) };
                if watch.look(Some(sign), seconds(now)) == Verdict::Free {
                    free_at = Some(now);
                    break;
                }
                now += gap;
            }
            if let Some(free_at) = free_at {
                prop_assert!(free_at >= died / 10 * 10 + LENGTH.as_secs());
            } else {
                prop_assert!(now <= died + LENGTH.as_secs() + 20);
            }
        }
    }
}
