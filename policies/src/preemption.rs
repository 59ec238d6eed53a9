//! When to take checkpoints on a machine that will be taken away: one at once, and one as late as it still fits.
//!
//! # Rules
//!
//! * The first comes as soon as the notice does: notices are short, and some deadlines are not kept.
//! * Where the deadline is known and there is time, a second one is begun so that it is stored before it, with a margin. Between
//!   the two the job trains on: only what it does after the second is lost.
//! * What counts is what was stored. One that fails is tried again, after waits that double; their longest is a tenth of the time that is left,
//!   and five minutes at most. One that was cut off by the end of the job is begun again when the job runs.
//! * A notice that is repeated changes nothing. One with a sooner deadline is a new one; a later one plans the second anew.
//! * A minute after the deadline nothing is tried any more: who is still there then was not taken away.

use std::time::Duration;

use crate::schedule::doubling;

/// How much longer than the last one a checkpoint may take, as a factor, and what is added to that: others leave the machine at the
/// same time.
const FACTOR: f64 = 1.5;
const MARGIN: Duration = Duration::from_secs(3);
/// Assumed where no checkpoint was measured yet.
const UNKNOWN: Duration = Duration::from_secs(20);
/// How long after its deadline a notice is heeded.
const LATE: Duration = Duration::from_secs(60);
/// The first wait after a checkpoint that failed, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(300));

/// What to do about the notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Begin a checkpoint now, and say [`PreemptionPlan::begun`].
    Now,
    /// Ask again at this time.
    At(Duration),
    /// There is nothing to do until something happens.
    Nothing,
}

/// A notice, and what was done about it so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Noticed {
    until: Option<Duration>,
    /// When the first checkpoint was stored.
    first: Option<Duration>,
    /// Whether the second one was stored.
    second: bool,
    /// A checkpoint was asked for and has not ended.
    under_way: bool,
    /// Failures since the last one that was stored.
    failures: u32,
    /// Nothing is begun before this time.
    rested: Duration,
}

/// What is known of the machine's end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PreemptionPlan {
    noticed: Option<Noticed>,
}

impl PreemptionPlan {
    /// The machine will be taken away, at `until` if that is known. Whether that is news.
    pub fn notice(&mut self, until: Option<Duration>) -> bool {
        let Some(known) = &mut self.noticed else {
            self.noticed = Some(Noticed {
                until,
                ..Noticed::default()
            });
            return true;
        };
        // Clocks are read anew each time: the same deadline comes out a little different.
        let (sooner, moved) = match (known.until, until) {
            (Some(a), Some(b)) => (b < a, a.abs_diff(b) > Duration::from_secs(1)),
            (None, Some(_)) => (true, true),
            (Some(_), None) => (false, true),
            (None, None) => (false, false),
        };
        if moved {
            *known = Noticed {
                until,
                first: known.first.filter(|_| !sooner),
                under_way: known.under_way,
                ..Noticed::default()
            };
        }
        moved
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
        let over = noticed
            .until
            .is_some_and(|until| now > until.saturating_add(LATE));
        if noticed.under_way || over {
            return Ask::Nothing;
        }
        let at = match (noticed.first, noticed.until) {
            (None, _) => noticed.rested,
            (Some(first), Some(until)) if !noticed.second => {
                let estimate = estimate.unwrap_or(UNKNOWN);
                let needed = estimate.mul_f64(FACTOR).saturating_add(MARGIN);
                let at = until.saturating_sub(needed);
                // The first is as late as the second could be, or it does not fit any more.
                if at <= first || now.saturating_add(estimate) > until {
                    return Ask::Nothing;
                }
                at.max(noticed.rested)
            }
            (Some(_), _) => return Ask::Nothing,
        };
        if now >= at { Ask::Now } else { Ask::At(at) }
    }

    /// A checkpoint was asked for because of the notice.
    pub const fn begun(&mut self) {
        if let Some(noticed) = &mut self.noticed {
            noticed.under_way = true;
        }
    }

    /// The checkpoint that was asked for is stored.
    pub fn stored(&mut self, now: Duration) {
        if let Some(noticed) = self.noticed.as_mut().filter(|n| n.under_way) {
            noticed.under_way = false;
            noticed.failures = 0;
            noticed.second = noticed.first.is_some();
            noticed.first.get_or_insert(now);
        }
    }

    /// The checkpoint that was asked for failed.
    pub fn failed(&mut self, now: Duration) {
        if let Some(noticed) = self.noticed.as_mut().filter(|n| n.under_way) {
            noticed.under_way = false;
            let left = noticed.until.map(|until| until.saturating_sub(now) / 10);
            let cap = left.map_or(WAITS.1, |left| left.clamp(WAITS.0, WAITS.1));
            noticed.rested = now.saturating_add(doubling(WAITS.0, cap, noticed.failures));
            noticed.failures = noticed.failures.saturating_add(1);
        }
    }

    /// The job does not run any more: what was asked for will not come.
    pub const fn job_ended(&mut self) {
        if let Some(noticed) = &mut self.noticed {
            noticed.under_way = false;
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
        let mut it = PreemptionPlan::default();
        assert_eq!(it.next(s(10), Some(s(10))), Ask::Nothing);
        assert!(it.notice(Some(s(130))));
        assert_eq!(it.next(s(10), Some(s(10))), Ask::Now);
        it.begun();
        assert!(!it.notice(Some(s(130))), "it is polled");
        assert_eq!(it.next(s(12), Some(s(10))), Ask::Nothing, "it is under way");
        it.stored(s(20));
        // 15 s and 3 before the end.
        assert_eq!(it.next(s(20), Some(s(10))), Ask::At(s(112)));
        // It is planned by what the first one took.
        assert_eq!(it.next(s(60), Some(s(20))), Ask::At(s(97)));
        assert_eq!(it.next(s(97), Some(s(20))), Ask::Now);
        it.begun();
        it.stored(s(117));
        assert_eq!(it.next(s(118), Some(s(20))), Ask::Nothing);
        // The end is put off.
        assert!(it.notice(Some(s(400))));
        assert_eq!(it.next(s(118), Some(s(20))), Ask::At(s(367)));
        it.withdrawn();
        assert_eq!(it.next(s(118), Some(s(20))), Ask::Nothing);
        assert!(it.notice(None));
        assert_eq!(it.next(s(500), None), Ask::Now);
        it.begun();
        it.stored(s(510));
        assert_eq!(it.next(s(511), None), Ask::Nothing);
        // Who said that it would happen some time says now when, and soon.
        assert!(it.notice(Some(s(540))));
        assert_eq!(it.next(s(511), Some(s(5))), Ask::Now);
        it.begun();
        it.stored(s(516));
        assert!(it.notice(Some(s(530))), "sooner");
        assert_eq!(it.next(s(516), Some(s(5))), Ask::Now);
    }

    #[test]
    fn thirty_seconds_are_enough_for_one() {
        let mut it = PreemptionPlan::default();
        it.notice(Some(s(40)));
        it.begun();
        it.stored(s(25));
        assert_eq!(it.next(s(25), Some(s(15))), Ask::Nothing);
        // And for two short ones.
        let mut it = PreemptionPlan::default();
        it.notice(Some(s(40)));
        it.begun();
        it.stored(s(12));
        assert_eq!(it.next(s(12), Some(s(2))), Ask::At(s(34)));
        assert_eq!(it.next(s(39), Some(s(2))), Ask::Nothing, "it is too late");
    }

    #[test]
    fn what_fails_is_tried_again_and_less_and_less_often() {
        let mut it = PreemptionPlan::default();
        it.notice(None);
        let mut now = s(0);
        for wait in [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300] {
            assert_eq!(it.next(now, None), Ask::Now);
            it.begun();
            it.failed(now);
            assert_eq!(it.next(now, None), Ask::At(now + s(wait)));
            now += s(wait);
        }
        // Cut off by a crash: as soon as the job runs again.
        it.begun();
        it.job_ended();
        assert_eq!(it.next(now, None), Ask::Now);
        // Shortly before the end a second is long.
        it.notice(Some(now + s(30)));
        it.begun();
        it.failed(now);
        it.begun();
        it.failed(now + s(1));
        assert_eq!(it.next(now + s(1), None), Ask::At(now + s(3)));
        assert_eq!(
            it.next(now + s(91), None),
            Ask::Nothing,
            "it was not taken away"
        );
    }

    proptest! {
        #[test]
        fn two_are_stored_for_one_notice_and_the_second_fits(
            start in 0..1000u64, grace in 0..300u64, estimate in 1..200u64, steps in prop::collection::vec((1..50u64, 0..4u8), 1..60),
        ) {
            let (mut it, until) = (PreemptionPlan::default(), s(start + grace));
            let (mut now, mut ends) = (s(start), None);
            let mut begun = Vec::new();
            let mut stored = 0;
            for (step, luck) in steps {
                it.notice(Some(until));
                if let Some((at, works)) = ends && now >= at {
                    ends = None;
                    if works { it.stored(now); stored += 1 } else { it.failed(now) }
                }
                match it.next(now, Some(s(estimate))) {
                    Ask::Now => {
                        prop_assert!(ends.is_none(), "one at a time");
                        it.begun();
                        begun.push((now, stored));
                        ends = Some((now + s(estimate), luck > 0));
                    }
                    Ask::At(at) => prop_assert!(at > now && ends.is_none()),
                    Ask::Nothing => {}
                }
                now += s(step);
            }
            prop_assert_eq!(begun[0].0, s(start));
            prop_assert!(stored <= 2);
            for (at, before) in begun {
                let fits = if before == 0 { at <= until + LATE } else { at + s(estimate) <= until };
                prop_assert!(fits);
            }
        }
    }
}
