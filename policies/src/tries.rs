//! How a job is asked to fall quiet: in short tries, with the gate open in between, at moments that are good for it.
//!
//! A job whose GPU work does not end (a persistent kernel, a kernel that waits for the host, ranks that wait for each other) must
//! not be held back for long by a checkpoint that comes to nothing. A job that has seconds of work queued is held for no longer
//! either: it is watched until it waits for that work itself; and if it always has the next step queued by then, it continues in
//! single calls while the GPU works through what there is.
//!
//! # Rules
//!
//! * No thread of the job's is held for longer than [`TriesConfig::bound`] at a time.
//! * After a try that failed the job runs for at least as long as it was held, and longer after each. Then it is watched until
//!   it has itself waited for its work, which is when the next try begins; or, since not every wait can be seen, for a while.
//! * A try in turns, which lasts longer and lets each thread make one call in between, is made only where work in flight was seen
//!   to end by itself and how long that took, and lasts four times that; not again for a while, which grows with each that fails,
//!   until one does not.
//! * A checkpoint gives up when its budget is spent, at the latest one pause, one watch and one try after that. A wait that costs
//!   nothing may last longer: the end of a stream capture, and the end of work that is known to end.
//! * The kind of try in which a job fell quiet is the first that is made the next time.

use std::time::Duration;

use crate::schedule::doubling;

/// How long the tries, the pauses and the watches between them are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TriesConfig {
    /// How long a try may hold a thread of the job's.
    pub bound: Duration,
    /// How long a checkpoint continues to try; no try in turns is longer.
    pub budget: Duration,
    /// The same while a stream capture is under way, or the work in flight is known to end.
    pub patience: Duration,
    /// The pause after the first try; it doubles with each.
    pub pause: Duration,
    /// The longest pause, unless a try was longer.
    pub longest_pause: Duration,
    /// How long the job is watched after the first pause; it doubles with each.
    pub watch: Duration,
    /// The longest such watch.
    pub longest_watch: Duration,
}

impl TriesConfig {
    /// Tries of `bound`, after pauses of a quarter to two seconds and watches of one to thirty, for as long as `timeout`; a minute
    /// where that costs nothing.
    #[must_use]
    pub fn within(timeout: Duration, bound: Duration) -> Self {
        Self {
            bound: bound.min(timeout),
            budget: timeout,
            patience: Duration::from_secs(60).max(timeout),
            pause: Duration::from_millis(250),
            longest_pause: Duration::from_secs(2),
            watch: Duration::from_secs(1),
            longest_watch: Duration::from_secs(30),
        }
    }
}

/// Why a try did not make the job fall quiet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Work in flight did not end.
    Busy,
    /// A stream capture is under way.
    Capturing,
    /// Nothing was held back, because work in flight takes longer than the try; it was seen to end after so long.
    Deep(Duration),
}

/// A try, and what comes before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Try {
    /// How long the job runs before the try begins.
    pub pause: Duration,
    /// After that, until it has waited for its work, but no longer than this.
    pub watch: Duration,
    /// How long the try lasts: it is made in turns where that is more than a thread may be held.
    pub length: Duration,
}

/// What to do after a try that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Make another try.
    Try(Try),
    /// Make no other try in this checkpoint.
    GiveUp,
}

/// Whether there is time to wait for a good moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Haste {
    /// There is none: the job is to end.
    Yes,
    /// There is time.
    No,
}

/// When a try begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// When the job has just waited for its work.
    HavingWaited,
    /// At any other time.
    Any,
}

/// What a job fell quiet in last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Quiet {
    /// A short try at any time.
    #[default]
    Shortly,
    /// One that began when it had waited for its work.
    HavingWaited,
    /// A try in turns, of this length.
    InTurns(Duration),
}

/// What is known of a job over its checkpoints.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Habit {
    quiet: Quiet,
    /// Tries in turns that failed since one did not.
    failures: u32,
    /// The time before which no try in turns is made.
    not_before: Duration,
}

impl Habit {
    fn turns_failed(&mut self, now: Duration) {
        let wait = doubling(TURNS_PAUSE, LONGEST_TURNS_PAUSE, self.failures);
        self.failures = self.failures.saturating_add(1);
        self.not_before = now.saturating_add(wait);
        self.quiet = Quiet::Shortly;
    }

    fn allows_turns(&self, now: Duration) -> bool {
        now >= self.not_before
    }
}

/// How long it may take from a shim's word that the job has waited until the try: a few ms on a machine that is not overloaded.
const ANSWER: Duration = Duration::from_millis(100);
/// How many times longer a try in turns lasts than the work was seen to take: it may have been queued twice, and turns bring
/// more.
const TURNS: u32 = 4;
/// The pause after the first try in turns that failed.
const TURNS_PAUSE: Duration = Duration::from_secs(600);
/// The longest pause before a try in turns.
const LONGEST_TURNS_PAUSE: Duration = Duration::from_secs(24 * 3600);
/// Between looks whether a capture has ended: the first and the longest.
const CAPTURE_LOOKS: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(250));

/// The tries of one checkpoint: which one is next, and when to stop trying.
#[derive(Debug, Clone)]
pub struct Tries {
    config: TriesConfig,
    begun: Duration,
    /// The try that is being made.
    current: Try,
    failed: u32,
    waits: u32,
    looks: u32,
    /// Work in flight was seen to end by itself.
    ends: bool,
}

impl Tries {
    /// The tries of a checkpoint that begins at `now`.
    #[must_use]
    pub fn new(config: TriesConfig, habit: Habit, haste: Haste, now: Duration) -> Self {
        let mut current = Try {
            pause: Duration::ZERO,
            watch: Duration::ZERO,
            length: config.bound,
        };
        match habit.quiet {
            Quiet::HavingWaited if haste == Haste::No => {
                current.watch = config.longest_watch.min(config.budget)
            }
            Quiet::InTurns(length) => current.length = length.min(config.budget).max(config.bound),
            Quiet::Shortly | Quiet::HavingWaited => {}
        }
        Self {
            config,
            begun: now,
            current,
            failed: 0,
            waits: 0,
            looks: 0,
            ends: false,
        }
    }

    /// The try that is to be made now.
    #[must_use]
    pub const fn current(&self) -> Try {
        self.current
    }

    /// How long a try may hold a thread of the job's. One that begins when the job has waited for its work is shorter by what it
    /// took to see and to say so, since the job is held from then on.
    #[must_use]
    pub fn bound(&self, moment: Moment) -> Duration {
        let before = match moment {
            Moment::HavingWaited => self.glance() + self.answer(),
            Moment::Any => Duration::ZERO,
        };
        self.config.bound.saturating_sub(before)
    }

    /// How long a job that has waited may be held to see whether anything is left.
    #[must_use]
    pub fn glance(&self) -> Duration {
        self.config.bound / 4
    }

    /// For how long it is held after that until the try begins.
    #[must_use]
    pub fn answer(&self) -> Duration {
        ANSWER.min(self.config.bound / 5 * 2)
    }

    /// Tries that held the job and came to nothing.
    #[must_use]
    pub const fn failed(&self) -> u32 {
        self.failed
    }

    /// The job fell quiet in a try that began at that moment.
    pub fn succeeded(&self, moment: Moment, habit: &mut Habit) {
        let quiet = match self.current.length {
            _ if moment == Moment::HavingWaited => Quiet::HavingWaited,
            length if length > self.config.bound => Quiet::InTurns(length),
            _ => Quiet::Shortly,
        };
        habit.quiet = quiet;
        if let Quiet::InTurns(_) = quiet {
            (habit.failures, habit.not_before) = (0, Duration::ZERO);
        }
    }

    /// The try failed at `now`, after it had held the job for `held`.
    pub fn after(
        &mut self,
        answer: Answer,
        held: Duration,
        habit: &mut Habit,
        now: Duration,
    ) -> Next {
        let TriesConfig {
            bound,
            budget,
            patience,
            ..
        } = self.config;
        // Not all that is asked for is granted.
        let turned = self.current.length > bound && held > bound.saturating_mul(2);
        if answer == Answer::Busy && turned {
            habit.turns_failed(now);
        }
        let (budget, mut next) = match answer {
            Answer::Capturing => {
                self.looks = self.looks.saturating_add(1);
                let next = Try {
                    pause: doubling(CAPTURE_LOOKS.0, CAPTURE_LOOKS.1, self.looks - 1),
                    watch: Duration::ZERO,
                    length: bound,
                };
                (patience, next)
            }
            Answer::Deep(lasts) => {
                self.ends = true;
                let mut next = self.next_try();
                let length = lasts.saturating_mul(TURNS);
                // What takes longer than that may have been something else than what is in flight now: a short try tells.
                if length <= budget && habit.allows_turns(now) {
                    next.length = length.max(bound);
                }
                (patience, next)
            }
            Answer::Busy => {
                self.failed = self.failed.saturating_add(1);
                let budget = if self.ends { patience } else { budget };
                (budget, self.next_try())
            }
        };
        if now.saturating_sub(self.begun) >= budget {
            return Next::GiveUp;
        }
        next.pause = next.pause.max(held);
        self.current = next;
        Next::Try(next)
    }

    fn next_try(&mut self) -> Try {
        let nth = self.waits;
        self.waits = nth.saturating_add(1);
        let config = &self.config;
        Try {
            pause: doubling(config.pause, config.longest_pause, nth),
            watch: doubling(config.watch, config.longest_watch, nth),
            length: config.bound,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BOUND: Duration = ms(250);

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn config(timeout_ms: u64) -> TriesConfig {
        TriesConfig::within(ms(timeout_ms), BOUND)
    }

    fn tries(habit: Habit, now: Duration) -> Tries {
        Tries::new(config(10_000), habit, Haste::No, now)
    }

    fn next(next: Next) -> Try {
        match next {
            Next::Try(next) => next,
            Next::GiveUp => panic!("given up"),
        }
    }

    #[test]
    fn a_kernel_that_never_ends_costs_a_few_short_tries() {
        let mut habit = Habit::default();
        let mut tries = tries(habit, ms(0));
        let (mut now, mut held) = (ms(0), ms(0));
        loop {
            assert_eq!(tries.current().length, BOUND);
            now += BOUND;
            held += BOUND;
            match tries.after(Answer::Busy, BOUND, &mut habit, now) {
                Next::Try(next) => {
                    assert!(next.pause >= BOUND && next.watch >= ms(1000), "{next:?}");
                    // Something that the job waits for ends at once, each time, and it is not the kernel.
                    now += next.pause;
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
    fn who_fell_quiet_having_waited_is_watched_first_the_next_time() {
        let mut habit = Habit::default();
        let mut first = tries(habit, ms(0));
        assert_eq!(first.current().watch, ms(0));
        assert!(next(first.after(Answer::Busy, BOUND, &mut habit, BOUND)).watch > ms(0));
        first.succeeded(Moment::HavingWaited, &mut habit);
        let second = tries(habit, ms(60_000));
        assert_eq!(second.current().watch, ms(10_000));
        let last = Tries::new(config(10_000), habit, Haste::Yes, ms(60_000));
        assert_eq!(last.current().watch, ms(0));
        second.succeeded(Moment::Any, &mut habit);
        assert_eq!(habit, Habit::default());
    }

    #[test]
    fn a_deep_queue_gets_turns_and_one_that_lied_does_not_get_them_again() {
        let mut habit = Habit::default();
        let mut first = tries(habit, ms(0));
        first.after(Answer::Busy, BOUND, &mut habit, BOUND);
        let deep = Answer::Deep(ms(750));
        let long = next(first.after(deep, ms(0), &mut habit, ms(1000)));
        assert_eq!(long.length, ms(3000));
        // In the next checkpoint at once.
        first.succeeded(Moment::Any, &mut habit);
        let mut second = tries(habit, ms(60_000));
        assert_eq!(
            (second.current().length, second.current().watch),
            (ms(3000), ms(0))
        );
        let failed = next(second.after(Answer::Busy, ms(3000), &mut habit, ms(63_000)));
        assert!(
            failed.length == BOUND && failed.pause >= ms(3000),
            "{failed:?}"
        );
        let again = next(second.after(deep, ms(0), &mut habit, ms(67_000)));
        assert_eq!(again.length, BOUND);
        // Nor in the next checkpoint, but in one of a later hour.
        for (now, length) in [(ms(120_000), BOUND), (ms(3_600_000), ms(3000))] {
            let mut later = tries(habit, now);
            assert_eq!(later.current().length, BOUND);
            assert_eq!(
                next(later.after(deep, ms(0), &mut habit, now)).length,
                length
            );
        }
    }

    #[test]
    fn what_took_longer_than_is_allowed_gets_a_short_try_all_the_same_and_is_watched() {
        let mut habit = Habit::default();
        let mut tries = tries(habit, ms(0));
        let (mut now, mut watched) = (ms(1500), ms(0));
        while let Next::Try(next) = tries.after(Answer::Deep(ms(6000)), ms(0), &mut habit, now) {
            assert_eq!(next.length, BOUND);
            assert!(next.watch >= watched && next.watch <= ms(30_000));
            watched = next.watch;
            now += next.pause + next.watch;
        }
        assert!(now >= ms(60_000), "{now:?}");
        assert_eq!(tries.failed(), 0);
    }

    #[test]
    fn a_capture_is_waited_for() {
        let mut habit = Habit::default();
        let mut tries = Tries::new(config(1000), habit, Haste::No, ms(0));
        let mut now = ms(0);
        while let Next::Try(next) = tries.after(Answer::Capturing, ms(0), &mut habit, now) {
            assert!(next.pause <= ms(250) && next.watch == ms(0) && next.length == BOUND);
            now += next.pause;
        }
        assert!(now >= ms(60_000) && now < ms(61_000), "{now:?}");
    }

    proptest! {
        #[test]
        fn threads_are_held_for_the_bound_and_turns_are_rare(
            timeout_ms in 1..60_000u64,
            bound_ms in 1..5000u64,
            answers in prop::collection::vec((0..4u8, 0..20_000u64, 0..=100u32), 1..200),
            gaps in prop::collection::vec(0..5000u64, 1..200),
        ) {
            let config = TriesConfig::within(ms(timeout_ms), ms(bound_ms));
            let mut habit = Habit::default();
            let mut now = ms(0);
            let mut turns_failed = Vec::new();
            let mut answers = answers.into_iter();
            'checkpoints: for gap in gaps {
                now += ms(gap);
                let mut tries = Tries::new(config, habit, Haste::No, now);
                let begun = now;
                let mut deep = tries.current().length > config.bound;
                prop_assert!(tries.bound(Moment::Any) == config.bound);
                prop_assert!(tries.glance() + tries.answer() + tries.bound(Moment::HavingWaited) <= config.bound);
                prop_assert!(tries.bound(Moment::HavingWaited) * 4 >= config.bound);
                loop {
                    let Some((kind, lasts, watched)) = answers.next() else { break 'checkpoints };
                    let Try { pause, watch, length } = tries.current();
                    prop_assert!(watch <= config.longest_watch);
                    prop_assert!(length <= config.budget.max(config.bound));
                    prop_assert!(length <= config.bound || deep, "only with a reason");
                    now += pause + watch * watched / 100;
                    let (answer, held) = match kind {
                        0 => (Answer::Busy, length),
                        1 => (Answer::Capturing, ms(0)),
                        2 => (Answer::Deep(ms(lasts)), ms(0)),
                        _ => {
                            let moment = if watched > 50 { Moment::HavingWaited } else { Moment::Any };
                            tries.succeeded(moment, &mut habit);
                            if length > config.bound && moment == Moment::Any {
                                turns_failed.clear();
                            }
                            break;
                        }
                    };
                    now += held;
                    if held > config.bound * 2 {
                        turns_failed.push(now);
                    }
                    deep = kind == 2;
                    match tries.after(answer, held, &mut habit, now) {
                        Next::GiveUp => {
                            prop_assert!(now - begun >= config.budget);
                            break;
                        }
                        Next::Try(next) => {
                            prop_assert!(now - begun < config.patience);
                            prop_assert!(next.pause >= held, "held {:?}, open {:?}", held, next.pause);
                        }
                    }
                }
            }
            for pair in turns_failed.windows(2) {
                prop_assert!(pair[1] - pair[0] >= TURNS_PAUSE, "{pair:?}");
            }
        }

        #[test]
        fn extremes_do_not_overflow(timeout in any::<u64>(), held in any::<u64>(), now in any::<u64>(), lasts in any::<u64>()) {
            let (timeout, held, now, lasts) = (
                Duration::from_secs(timeout), Duration::from_secs(held), Duration::from_secs(now), Duration::from_secs(lasts),
            );
            let mut habit = Habit::default();
            let mut tries = Tries::new(TriesConfig::within(timeout, held), habit, Haste::No, now);
            let _ = (tries.glance(), tries.answer(), tries.bound(Moment::HavingWaited));
            for answer in [Answer::Deep(lasts), Answer::Busy, Answer::Capturing] {
                tries.after(answer, held, &mut habit, Duration::MAX);
            }
        }
    }
}
