//! How long what is stored beside a job leaves it the processors.
//!
//! A program of two threads that wait for each other every millisecond, on two cores without anything else, took so many times as long for a round beside two
//! threads that encode (Linux 6.18; `integration-tests/spare_time.c`): 1.6 with nice 5, 1.02 in the class idle. The threads in the class idle were left
//! 3 to 4 % of the processors by that program, which never stops, and nearly all that is free by others. So they are slow only where there is nothing to spare;
//! but there a checkpoint would take for ever.
//!
//! # Rules
//!
//! * A checkpoint that is not stored after three times what it would have taken takes its share of the processors, if it has much less without
//!   ([`Processors::lack_a_share`]).
//! * So it does after half of the interval, or sooner if it would not be stored before the next one is due, and after five minutes at the latest.
//! * One that has about as much gains little by a share, and would slow the job down for it: where a training left 5 of 16 cores, what was stored had 5 to 6
//!   with its share, and each step took 2.7 times as long. It is looked at again from time to time. It may take a little longer than the interval, and then
//!   the next one is skipped.
//! * What nobody waits for does once it has had to wait for longer than it ran ([`Starving`]): it must end some day, too.
//! * What a checkpoint would have taken does not count the time that it left to the job. Else one that waited would have the next one wait
//!   for longer.

use std::time::Duration;

/// So many times as long as it would take is a checkpoint given the time that the job leaves.
const PATIENCE: u32 = 3;
/// The part of the processors that threads have for sure which take their share.
const SURE: f64 = 4.0;
/// What is stored leaves the job all processors for so long at most, if it lacks a share.
const MOST: Duration = Duration::from_secs(300);
/// The part of what it would take for which it is seen at least whether it lacks a share, if that is no longer than [`LOOK`].
const LOOKED_AT: u32 = 16;
/// How often it is looked again.
pub const LOOK: Duration = Duration::from_secs(5);

/// How long a checkpoint takes only what the job leaves, whether or not it lacks a share: by the time between checkpoints, if there is one, and by how long the last one
/// would have taken with its share of the processors, if there was one.
#[must_use]
pub fn at_most(interval: Option<Duration>, in_full: Option<Duration>) -> Duration {
    let enough = in_full.map_or(MOST, |took| took.saturating_mul(PATIENCE).min(MOST));
    let Some(interval) = interval else {
        return enough;
    };
    let in_full = in_full.unwrap_or_default();
    let until_next = interval.saturating_sub(in_full.saturating_add(in_full / 4));
    let in_time = enough.min(interval / 2).min(until_next);
    in_time.max((in_full / LOOKED_AT).min(LOOK))
}

/// What the scheduler gave threads, all of them together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Processors {
    /// How long they ran.
    pub ran: Duration,
    /// How long they could have run, and had no processor.
    pub waited: Duration,
}

impl Processors {
    /// What they were given since then.
    #[must_use]
    pub const fn since(self, then: Processors) -> Processors {
        Processors {
            ran: self.ran.saturating_sub(then.ran),
            waited: self.waited.saturating_sub(then.waited),
        }
    }

    /// Both together.
    #[must_use]
    pub const fn and(self, more: Processors) -> Processors {
        Processors {
            ran: self.ran.saturating_add(more.ran),
            waited: self.waited.saturating_add(more.waited),
        }
    }

    /// Whether they had to wait for longer than they ran.
    #[must_use]
    pub fn starve(self) -> bool {
        self.waited > self.ran
    }

    /// Whether what was given this in that time would be done much sooner with a share of the processors: it has run for less than three quarters of what is
    /// sure then, a quarter of the processors, and a thread or more waited for a quarter of the time. Of what nothing is counted it is not known, and it does.
    #[must_use]
    pub fn lack_a_share(self, time: Duration, cores: usize) -> bool {
        if self == Processors::default() {
            return true;
        }
        let sure = time.mul_f64(cores as f64 / SURE);
        self.ran < sure.mul_f64(0.75) && self.waited > time / 4
    }

    /// How much of the time, in which so many threads were given this, they would have saved at least with a share of so many processors: a quarter of those, if
    /// they wanted that much. What they waited for each other, or for something else than a processor, is no time that they would have saved.
    #[must_use]
    pub fn left_to_job(self, time: Duration, cores: usize, threads: usize) -> Duration {
        let time_s = time.as_secs_f64();
        let wanted = (self.ran + self.waited).as_secs_f64();
        let share = (cores as f64 / SURE * time_s).min(wanted);
        if share <= 0.0 {
            return Duration::ZERO;
        }
        let had = (self.ran.as_secs_f64() / share).min(1.0);
        // All of them may have waited at the same time.
        let threads = u32::try_from(threads.max(1)).unwrap_or(u32::MAX);
        time.mul_f64(1.0 - had).min(self.waited / threads)
    }
}

/// When what nobody waits for takes its share of the processors: once it has had to wait for longer than it ran, for so long.
#[derive(Debug, Clone)]
pub struct Starving {
    spare: Duration,
    left: Duration,
    given: Processors,
    takes_share: bool,
}

impl Starving {
    /// With so much time until it takes its share.
    #[must_use]
    pub const fn new(spare: Duration) -> Starving {
        let nothing = Processors {
            ran: Duration::ZERO,
            waited: Duration::ZERO,
        };
        Starving {
            spare,
            left: spare,
            given: nothing,
            takes_share: false,
        }
    }

    /// After which time it may have starved for long enough; `None`: it has, and takes its share.
    #[must_use]
    pub fn left(&self) -> Option<Duration> {
        (!self.takes_share).then_some(self.left)
    }

    /// So much time has passed, in which its threads were given this.
    pub fn passed(&mut self, time: Duration, given: Processors) {
        self.given = self.given.and(given);
        self.left = self.left.saturating_sub(time);
        if self.left.is_zero() {
            *self = Starving {
                takes_share: self.takes_share || self.given.starve(),
                ..Starving::new(self.spare)
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn by_the_interval_and_by_what_it_would_take() {
        assert_eq!(at_most(Some(s(60)), Some(s(2))), s(6));
        assert_eq!(at_most(Some(s(60)), Some(s(20))), s(30));
        // It would not be stored before the next one.
        assert_eq!(at_most(Some(s(60)), Some(s(40))), s(10));
        assert_eq!(at_most(Some(s(60)), Some(s(48))), s(3));
        assert_eq!(at_most(Some(s(60)), Some(s(3600))), LOOK);
        assert_eq!(at_most(Some(s(60)), None), s(30));
        assert_eq!(at_most(Some(s(86_400)), Some(s(3600))), MOST);
        assert_eq!(at_most(None, Some(s(4))), s(12));
        assert_eq!(at_most(None, None), MOST);
    }

    #[test]
    fn what_was_left_to_the_job_by_example() {
        let of = |ran, waited| {
            let all = Processors {
                ran: s(ran),
                waited: s(waited),
            };
            all.left_to_job(s(10), 16, 40)
        };
        // Whoever never waits loses nothing, nor does who had four of sixteen, however many more were wanted.
        assert_eq!((of(5, 0), of(40, 500), of(0, 0)), (s(0), s(0), s(0)));
        // One of four that would have been sure.
        assert_eq!(of(10, 500), Duration::from_millis(7500));
        // It wanted no more than half of one, and was there for something else: its threads may all have waited at the same time.
        assert_eq!(of(1, 4), Duration::from_millis(100));
        assert_eq!(of(0, 1600), s(10));
    }

    #[test]
    fn who_has_nearly_what_is_sure_lacks_no_share() {
        let of = |ran, waited, cores| {
            let all = Processors {
                ran: s(ran),
                waited: s(waited),
            };
            all.lack_a_share(s(10), cores)
        };
        // As measured: 5.4 of 16 cores, beside a job that has 9.8.
        assert!(!of(54, 169, 16));
        // Of the four that are sure.
        assert!(!of(31, 120, 16));
        assert!(of(29, 130, 16));
        // Whatever else a large machine has threads for.
        assert!(of(1, 160, 128));
        // The end of an upload: one thread, which waits nearly all the time.
        assert!(of(1, 9, 16));
        // It waits for its link.
        assert!(!of(2, 2, 16));
        // Nothing is counted.
        assert!(of(0, 0, 16));
    }

    #[test]
    fn what_starves_takes_its_share() {
        let given = |ran, waited| Processors {
            ran: s(ran),
            waited: s(waited),
        };
        let mut one = Starving::new(s(60));
        assert_eq!(one.left(), Some(s(60)));
        // Whoever gets processors needs no share, however long it takes; nor does who wants none.
        one.passed(s(60), given(5, 4));
        assert_eq!(one.left(), Some(s(60)));
        one.passed(s(70), given(0, 0));
        assert_eq!(one.left(), Some(s(60)));
        // All of the time counts, whatever came between.
        one.passed(s(40), given(1, 9));
        assert_eq!(one.left(), Some(s(20)));
        one.passed(s(20), given(3, 0));
        assert_eq!(one.left(), None);
        one.passed(s(100), given(9, 0));
        assert_eq!(one.left(), None, "it had nothing before");
    }

    proptest! {
        /// A checkpoint that had nothing until then, and takes its share from then on, is stored before the next one is due, with a quarter more than it takes;
        /// where there is no time for that, it does so after a sixteenth of what it takes.
        #[test]
        fn the_next_one_need_not_wait(seconds in 1_u64..100_000, took in 0_u64..100_000) {
            let waits = at_most(Some(s(seconds)), Some(s(took)));
            prop_assert!(waits <= s(took) * PATIENCE);
            prop_assert!(waits <= MOST);
            prop_assert!(waits <= (s(took) / LOOKED_AT).min(LOOK) || waits <= s(seconds) / 2 && waits + s(took) + s(took) / 4 <= s(seconds));
        }

        #[test]
        fn never_more_is_left_than_there_was(ran in 0_u64..1000, waited in 0_u64..1000, time in 0_u64..1000, cores in 1_usize..300, threads in 0_usize..900) {
            let given = Processors { ran: s(ran), waited: s(waited) };
            let left = given.left_to_job(s(time), cores, threads);
            prop_assert!(left <= s(time));
            // Who ran for longer, and had to wait for less, was left less.
            let more = Processors { ran: s(ran + waited.min(1)), waited: s(waited - waited.min(1)) };
            prop_assert!(more.left_to_job(s(time), cores, threads) <= left);
        }
    }
}
