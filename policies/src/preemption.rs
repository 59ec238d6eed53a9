//! When to take checkpoints on a machine that will be taken away: one at once, and one as late as it still fits.
//!
//! # Rules
//!
//! * The first comes as soon as the notice does: notices are short, and some deadlines are not kept.
//! * Where the deadline is known and there is time, a second one is begun so that it is stored before it, with a margin. Between
//!   the two the job trains on: only what it does after the second is lost.
//! * The second never comes before the first can have ended.
//! * A notice that is repeated changes nothing; one with another deadline plans the second anew.

use std::time::Duration;

/// How much longer than the last one a checkpoint may take, as a factor, and what is added to that: others leave the machine at the
/// same time.
const FACTOR: f64 = 1.5;
const MARGIN: Duration = Duration::from_secs(3);
/// Assumed where no checkpoint was measured yet.
const UNKNOWN: Duration = Duration::from_secs(20);

/// What to do about the notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Begin a checkpoint now, and say [`Preemption::begun`].
    Now,
    /// Ask again at this time.
    At(Duration),
    /// There is nothing more to do.
    Nothing,
}

/// A notice, and what was done about it so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Noticed {
    until: Option<Duration>,
    first: Option<Duration>,
    last: bool,
}

/// What is known of the machine's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Preemption {
    noticed: Option<Noticed>,
}

impl Preemption {
    /// The machine will be taken away, at `until` if that is known. Whether that is news.
    pub fn notice(&mut self, until: Option<Duration>) -> bool {
        match &mut self.noticed {
            Some(known) => {
                // Clocks are read anew each time: the same deadline comes out a little different.
                let moved = match (known.until, until) {
                    (Some(a), Some(b)) => a.abs_diff(b) > Duration::from_secs(1),
                    (a, b) => a != b,
                };
                if moved {
                    known.until = until;
                    known.last = false;
                }
                moved
            }
            None => {
                self.noticed = Some(Noticed {
                    until,
                    first: None,
                    last: false,
                });
                true
            }
        }
    }

    /// The machine stays after all.
    pub const fn withdrawn(&mut self) {
        self.noticed = None;
    }

    /// What to do now, if a checkpoint takes about `estimate`.
    #[must_use]
    pub fn next(&self, now: Duration, estimate: Option<Duration>) -> Ask {
        let Some(noticed) = self.noticed else {
            return Ask::Nothing;
        };
        let Some(first) = noticed.first else {
            return Ask::Now;
        };
        let (Some(until), false) = (noticed.until, noticed.last) else {
            return Ask::Nothing;
        };
        let estimate = estimate.unwrap_or(UNKNOWN);
        let needed = estimate.mul_f64(FACTOR).saturating_add(MARGIN);
        let at = until.saturating_sub(needed);
        if at < first.saturating_add(estimate) || now > until {
            Ask::Nothing
        } else if now >= at {
            Ask::Now
        } else {
            Ask::At(at)
        }
    }

    /// A checkpoint was asked for because of the notice.
    pub const fn begun(&mut self, now: Duration) {
        if let Some(noticed) = &mut self.noticed {
            if noticed.first.is_some() {
                noticed.last = true;
            } else {
                noticed.first = Some(now);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn one_at_once_and_one_before_the_end() {
        let mut it = Preemption::default();
        assert_eq!(it.next(s(10), Some(s(10))), Ask::Nothing);
        assert!(it.notice(Some(s(130))));
        assert_eq!(it.next(s(10), Some(s(10))), Ask::Now);
        it.begun(s(10));
        assert!(!it.notice(Some(s(130))), "it is polled");
        // 15 s and 3 before the end.
        assert_eq!(it.next(s(12), Some(s(10))), Ask::At(s(112)));
        // It is planned by what the first one took.
        assert_eq!(it.next(s(60), Some(s(20))), Ask::At(s(97)));
        assert_eq!(it.next(s(97), Some(s(20))), Ask::Now);
        it.begun(s(97));
        assert_eq!(it.next(s(98), Some(s(20))), Ask::Nothing);
        // The end is put off.
        assert!(it.notice(Some(s(400))));
        assert_eq!(it.next(s(98), Some(s(20))), Ask::At(s(367)));
        it.withdrawn();
        assert_eq!(it.next(s(98), Some(s(20))), Ask::Nothing);
        assert!(it.notice(None));
        assert_eq!(it.next(s(500), None), Ask::Now);
        it.begun(s(500));
        assert_eq!(it.next(s(501), None), Ask::Nothing);
    }

    #[test]
    fn thirty_seconds_are_enough_for_one() {
        let mut it = Preemption::default();
        it.notice(Some(s(40)));
        it.begun(s(10));
        assert_eq!(it.next(s(11), Some(s(15))), Ask::Nothing);
        // And for two short ones.
        assert_eq!(it.next(s(11), Some(s(2))), Ask::At(s(34)));
    }

    proptest! {
        #[test]
        fn at_most_two_for_one_notice_and_the_second_fits(
            start in 0..1000u64, grace in 0..300u64, estimate in 1..200u64, steps in prop::collection::vec(1..50u64, 1..40),
        ) {
            let (mut it, until) = (Preemption::default(), s(start + grace));
            let mut now = s(start);
            let mut begun = Vec::new();
            for step in steps {
                it.notice(Some(until));
                match it.next(now, Some(s(estimate))) {
                    Ask::Now => {
                        it.begun(now);
                        begun.push(now);
                    }
                    Ask::At(at) => prop_assert!(at > now && at + s(estimate) < until),
                    Ask::Nothing => {}
                }
                now += s(step);
            }
            prop_assert!(!begun.is_empty() && begun.len() <= 2);
            prop_assert_eq!(begun[0], s(start));
            if let Some(second) = begun.get(1) {
                prop_assert!(*second >= s(start + estimate) && *second <= until);
            }
        }
    }
}
