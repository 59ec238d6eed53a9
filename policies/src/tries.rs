//! How a job is asked to fall quiet: in short tries, with the gate open in between.
//!
//! A job whose GPU work does not end (a persistent kernel, a kernel that waits for the host, ranks that wait for each
//! other) must not be held back for long by a checkpoint that comes to nothing.
//!
//! # Rules
//!
//! * A try holds the job for at most [`TriesConfig::bound`]. A longer one is made only when a process said how long the
//!   work in flight takes to end by itself with the gate open, is at most twice that and a bound, and at most
//!   [`TriesConfig::most`]; at most one such try in a checkpoint fails, and after it failed none is made for a while
//!   that grows with each.
//! * After a try that failed the job runs for at least as long as it was held, and longer after each.
//! * A checkpoint gives up when its budget is spent, at the latest one pause and one try after that. The end of a stream
//!   capture, which costs nothing to wait for, is waited for longer.

use std::time::Duration;

use crate::schedule::doubling;

/// How long tries and pauses are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriesConfig {
    /// How long a try may hold the job.
    pub bound: Duration,
    /// The same where the job's queued work is known to take longer and to end.
    pub most: Duration,
    /// How long a checkpoint goes on trying.
    pub budget: Duration,
    /// The same while a stream capture is under way.
    pub capture_budget: Duration,
    /// The pause after the first try; it doubles with each.
    pub pause: Duration,
    /// The longest pause, unless a try was longer.
    pub longest_pause: Duration,
}

impl TriesConfig {
    /// Tries of a quarter second, after pauses of a quarter to two seconds, for as long as `timeout`; a minute where a
    /// capture is in the way.
    #[must_use]
    pub fn within(timeout: Duration) -> Self {
        Self {
            bound: Duration::from_millis(250).min(timeout),
            most: timeout,
            budget: timeout,
            capture_budget: Duration::from_secs(60).max(timeout),
            pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(2),
        }
    }
}

/// Why a try failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Work in flight did not end.
    Busy,
    /// A stream capture is under way.
    Capturing,
    /// Nothing was held back, because work in flight takes longer than the bound, as was seen; with this one it would end.
    Needs(Duration),
}

/// What to do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Try again.
    Try {
        /// After that.
        after: Duration,
        /// For so long.
        bound: Duration,
    },
    /// Not in this checkpoint.
    GiveUp,
}

/// Whether long tries are made, over the life of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LongTries {
    failures: u32,
    not_before: Duration,
}

/// The pause after the first long try that failed.
const LONG_PAUSE: Duration = Duration::from_secs(600);
/// The longest.
const LONGEST_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// Between looks whether a capture has ended: the first and the longest.
const CAPTURE_LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

impl LongTries {
    fn failed(&mut self, now: Duration) {
        let wait = doubling(LONG_PAUSE, LONGEST_PAUSE, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(wait);
    }

    /// The job fell quiet.
    pub fn succeeded(&mut self) {
        *self = Self::default();
    }

    fn allowed(&self, now: Duration) -> bool {
        now >= self.not_before
    }
}

/// The tries of one checkpoint.
#[derive(Debug, Clone)]
pub struct Tries {
    config: TriesConfig,
    begun: Duration,
    bound: Duration,
    failed: u32,
    looks: u32,
}

impl Tries {
    /// The first try begins at `now`, with [`Self::bound`].
    #[must_use]
    pub const fn new(config: TriesConfig, now: Duration) -> Self {
        Self {
            config,
            begun: now,
            bound: config.bound,
            failed: 0,
            looks: 0,
        }
    }

    /// How long the try that is being made may hold the job.
    #[must_use]
    pub const fn bound(&self) -> Duration {
        self.bound
    }

    /// Tries that held the job and came to nothing.
    #[must_use]
    pub const fn failed(&self) -> u32 {
        self.failed
    }

    /// A try failed at `now`, after it had held the job for `held`.
    pub fn after(
        &mut self,
        answer: Answer,
        held: Duration,
        long: &mut LongTries,
        now: Duration,
    ) -> Next {
        if answer == Answer::Busy && self.bound > self.config.bound {
            long.failed(now);
        }
        self.bound = self.config.bound;
        let spent = now.saturating_sub(self.begun);
        let (budget, pause) = match answer {
            Answer::Capturing => {
                self.looks = self.looks.saturating_add(1);
                let pause = doubling(CAPTURE_LOOKS.0, CAPTURE_LOOKS.1, self.looks - 1);
                (self.config.capture_budget, pause)
            }
            // Nothing was held back for it.
            Answer::Needs(_) => (self.config.budget, self.config.pause),
            Answer::Busy => {
                self.failed = self.failed.saturating_add(1);
                let pause = doubling(
                    self.config.pause,
                    self.config.longest_pause,
                    self.failed - 1,
                );
                (self.config.budget, pause)
            }
        };
        if spent >= budget {
            return Next::GiveUp;
        }
        // What takes longer than is allowed may have been something else than what is in flight now: a short try tells.
        if let Answer::Needs(needs) = answer
            && needs <= self.config.most
            && long.allowed(now)
        {
            self.bound = needs.max(self.config.bound);
        }
        Next::Try {
            after: pause.max(held),
            bound: self.bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_kernel_that_never_ends_costs_a_few_short_tries() {
        let mut long = LongTries::default();
        let mut tries = Tries::new(TriesConfig::within(ms(10_000)), ms(0));
        let (mut now, mut held) = (ms(0), ms(0));
        loop {
            now += tries.bound();
            held += tries.bound();
            match tries.after(Answer::Busy, tries.bound(), &mut long, now) {
                Next::Try { after, bound } => {
                    assert!(after >= ms(250) && bound == ms(250));
                    now += after;
                }
                Next::GiveUp => break,
            }
        }
        assert!(
            now >= ms(10_000) && now < ms(12_500),
            "it goes on for its budget: {now:?}"
        );
        assert!(
            held * 5 <= now,
            "held for {held:?} of {now:?}: at most a fifth"
        );
    }

    #[test]
    fn a_deep_queue_gets_the_time_it_needs_and_one_that_lied_does_not_get_it_again() {
        let mut long = LongTries::default();
        let config = TriesConfig::within(ms(10_000));
        let mut tries = Tries::new(config, ms(0));
        tries.after(Answer::Busy, ms(250), &mut long, ms(250));
        let next = tries.after(Answer::Needs(ms(3000)), ms(0), &mut long, ms(1000));
        assert!(
            matches!(next, Next::Try { bound, .. } if bound == ms(3000)),
            "{next:?}"
        );
        let next = tries.after(Answer::Busy, ms(3000), &mut long, ms(4500));
        assert!(
            matches!(next, Next::Try { after, bound } if bound == ms(250) && after >= ms(3000)),
            "{next:?}"
        );
        let next = tries.after(Answer::Needs(ms(3000)), ms(0), &mut long, ms(8000));
        assert!(
            matches!(next, Next::Try { bound, .. } if bound == ms(250)),
            "{next:?}"
        );
        // Nor in the next checkpoint, but in one of a later hour.
        let mut tries = Tries::new(config, ms(60_000));
        let next = tries.after(Answer::Needs(ms(3000)), ms(0), &mut long, ms(60_000));
        assert!(
            matches!(next, Next::Try { bound, .. } if bound == ms(250)),
            "{next:?}"
        );
        let mut tries = Tries::new(config, ms(3_600_000));
        let next = tries.after(Answer::Needs(ms(3000)), ms(0), &mut long, ms(3_600_000));
        assert!(
            matches!(next, Next::Try { bound, .. } if bound == ms(3000)),
            "{next:?}"
        );
        long.succeeded();
        assert!(long.allowed(ms(0)));
    }

    #[test]
    fn what_took_longer_than_is_allowed_gets_a_short_try_all_the_same() {
        let mut tries = Tries::new(TriesConfig::within(ms(1000)), ms(0));
        let mut long = LongTries::default();
        let next = tries.after(Answer::Needs(ms(1500)), ms(0), &mut long, ms(1));
        assert!(
            matches!(next, Next::Try { bound, .. } if bound == ms(250)),
            "{next:?}"
        );
    }

    #[test]
    fn a_capture_is_waited_for() {
        let mut tries = Tries::new(TriesConfig::within(ms(1000)), ms(0));
        let mut long = LongTries::default();
        let mut now = ms(0);
        while let Next::Try { after, bound } = tries.after(Answer::Capturing, ms(0), &mut long, now)
        {
            assert!(after <= ms(250) && bound == ms(250));
            now += after;
        }
        assert!(now >= ms(60_000) && now < ms(61_000), "{now:?}");
    }

    proptest! {
        #[test]
        fn short_tries_and_at_least_as_much_time_between_them(
            timeout_ms in 1..60_000u64,
            answers in prop::collection::vec((0..3u8, 0..20_000u64), 1..200),
            gaps in prop::collection::vec(0..5000u64, 1..200),
        ) {
            let config = TriesConfig::within(ms(timeout_ms));
            let mut long = LongTries::default();
            let mut now = ms(0);
            let mut long_failures = Vec::new();
            let mut answers = answers.into_iter();
            'checkpoints: for gap in gaps {
                now += ms(gap);
                let mut tries = Tries::new(config, now);
                let (begun, mut pauses) = (now, ms(0));
                let mut bound = tries.bound();
                let mut long_here = 0;
                prop_assert!(bound <= ms(250), "a first try is short");
                loop {
                    let Some((kind, needs)) = answers.next() else { break 'checkpoints };
                    let (answer, held) = match kind {
                        0 => (Answer::Busy, bound),
                        1 => (Answer::Capturing, ms(0)),
                        _ => (Answer::Needs(ms(needs)), ms(0)),
                    };
                    now += held;
                    if held > config.bound {
                        long_here += 1;
                        long_failures.push(now);
                    }
                    match tries.after(answer, held, &mut long, now) {
                        Next::GiveUp => break,
                        Next::Try { after, bound: next } => {
                            prop_assert!(after >= held, "held {held:?}, open {after:?}");
                            prop_assert!(next <= config.most);
                            if next > config.bound {
                                prop_assert_eq!(answer, Answer::Needs(next), "only with a reason");
                            }
                            prop_assert!(now - begun < config.capture_budget);
                            now += after;
                            pauses += after;
                            bound = next;
                        }
                    }
                }
                prop_assert!(long_here <= 1, "{long_here} long tries that failed in one checkpoint");
            }
            for pair in long_failures.windows(2) {
                prop_assert!(pair[1] - pair[0] >= LONG_PAUSE, "{pair:?}");
            }
        }

        #[test]
        fn extremes_do_not_overflow(timeout in any::<u64>(), held in any::<u64>(), now in any::<u64>(), needs in any::<u64>()) {
            let (timeout, held, now, needs) = (
                Duration::from_secs(timeout), Duration::from_secs(held), Duration::from_secs(now), Duration::from_secs(needs),
            );
            let mut long = LongTries::default();
            let mut tries = Tries::new(TriesConfig::within(timeout), now);
            for answer in [Answer::Needs(needs), Answer::Busy, Answer::Capturing] {
                tries.after(answer, held, &mut long, Duration::MAX);
            }
        }
    }
}
