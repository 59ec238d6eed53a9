//! Coordinated transfer: how fast a drain may copy while the job runs, which uses the same link.
//!
//! A GPU's copy engines are shared in turns. On an H200 with driver 580.159.04 a process that always has a copy to make takes them for a turn of about
//! 1 ms, then another process that has one, and so on: a drain without pauses leaves a job 0.44 of its own rate from device to host, and 0.91 of the other
//! direction. What the job loses is what the drain takes. `shared/probes/link_contention.py` of the developers measures it.
//!
//! So a drain copies a slice at a time and looks at how long it took, from the call to the end of the copy as the host's clock sees it. A slice that is
//! as quick as the quickest had the engine to itself. One that came later waited for a turn of the job's, and what follows it is a long pause; each slice that
//! is on time after that halves the pause. Neither the job nor its process is asked, or slowed down by being asked: copies within graphs, by NCCL, by other
//! processes and by other machines on the same switch are seen alike.
//!
//! # Rules
//!
//! * A link that the job always uses is used for a fiftieth of the time or so, not for none: a checkpoint comes to its end whatever the job does.
//! * A link that is free is used for a quarter of the time. Both directions share the GPU's memory and the host's, which no wait shows; and the copy of
//!   a few bytes that the job waits for does not make a slice late, but waits behind it.
//! * Slices are compared with others of their size. What is the quickest is forgotten with the last drain but one, so that a link that has become
//!   slower for good is learned.
//! * A machine that is so busy that its threads are late makes slices late: the drain is slower then, and the job loses nothing.

use std::time::Duration;

/// The size of a slice, in bytes, at most.
pub const LARGEST: usize = 2 << 20;

/// Slices are compared with others whose size differs by less than this: 5 µs of a PCIe 5 link, 20 µs of one of the third generation.
const STEP: usize = 256 << 10;

/// So many sizes there are.
const SIZES: usize = LARGEST / STEP;

/// No pause is longer.
const AT_MOST: Duration = Duration::from_millis(50);

/// A slice that takes longer than the quickest by more than this, and by more than half, was late: a seventh of a turn, and more than a thread's wake-up varies by.
const LATE: Duration = Duration::from_micros(150);

/// The pause after a slice that was late, in halves of what the quickest takes.
const LONGEST: u32 = 24;

/// The pause after slices that were on time, in the same unit.
const SHORTEST: u32 = 1;

/// The quickest slice of each size.
type Quickest = [Option<Duration>; SIZES];

/// How a drain shares the link with the job. At first nothing is known of it.
#[derive(Debug, Clone, Default)]
pub struct SharedLink {
    /// Of this drain, and of the one before.
    quickest: [Quickest; 2],
    /// The pause after a slice, in halves of what the quickest takes.
    halves: u32,
}

/// What follows a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Whether the slice had to wait for somebody else's copy.
    pub late: bool,
    /// Whether it is longer than it is on a link that nobody else uses.
    pub yields: bool,
    /// How long to copy nothing.
    pub lasts: Duration,
}

impl SharedLink {
    /// Another drain begins.
    pub const fn begin(&mut self) {
        self.quickest = [[None; SIZES], self.quickest[0]];
    }

    /// A slice of so many bytes, the only one on its way, took so long from the call to its end. How long to pause after it.
    pub fn copied(&mut self, bytes: usize, took: Duration) -> Pause {
        let size = bytes.div_ceil(STEP).clamp(1, SIZES) - 1;
        let [now, before] = &mut self.quickest;
        let known = now[size].map_or(took, |known| known.min(took));
        now[size] = Some(known);
        let quickest = before[size].map_or(known, |before| before.min(known));
        let late = took > quickest + LATE.max(quickest / 2);
        self.halves = if late {
            LONGEST
        } else {
            (self.halves / 2).max(SHORTEST)
        };
        Pause {
            late,
            yields: self.halves > SHORTEST,
            lasts: (quickest * self.halves / 2).min(AT_MOST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Times of the model, in µs: a turn of the copy engine, a change of turns, a slice of 2 MiB, and what it takes to issue one and to hear of its end.
    const TURN: u64 = 1050;
    const CHANGE: u64 = 3;
    const SLICE: u64 = 40;
    const LATENCY: u64 = 60;

    const fn us(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// A job that copies and computes, over and over, and a drain beside it that always has something to copy. The engine is theirs in turns: who comes while the
    /// other copies gets it at the end of the other's turn, and loses it with nothing to copy.
    struct Model {
        copies: u64,
        computes: u64,
        /// How much later than usual the drain's thread hears of each slice, over and over.
        noise: Vec<u64>,
    }

    #[derive(Debug, Default)]
    struct Outcome {
        /// What the job took for its rounds, and would have taken alone.
        job: u64,
        alone: u64,
        slices: u64,
    }

    impl Model {
        fn run(&self, rounds: u64) -> Outcome {
            let (mut link, mut outcome) = (SharedLink::default(), Outcome::default());
            // It was seen free before.
            link.copied(LARGEST, us(SLICE + LATENCY));
            link.begin();
            // A slice that was issued and got the engine at these times: when the next one is issued.
            let mut slice = |issued: u64, begin: u64, outcome: &mut Outcome| {
                let heard = begin
                    + SLICE
                    + LATENCY
                    + self.noise[outcome.slices as usize % self.noise.len()];
                outcome.slices += 1;
                heard + link.copied(LARGEST, us(heard - issued)).lasts.as_micros() as u64
            };
            let (mut now, mut issue) = (0, 0);
            for _ in 0..rounds {
                outcome.alone += self.copies + self.computes;
                let (mut left, mut turn) = (self.copies, now + TURN);
                while left > 0 {
                    let until = turn.min(now + left);
                    left -= until - now;
                    now = until;
                    if issue <= now {
                        now += CHANGE;
                        issue = slice(issue, now, &mut outcome);
                        // It computes meanwhile, if it has nothing to copy.
                        now += if left > 0 { SLICE + CHANGE } else { 0 };
                    }
                    turn = now + TURN;
                }
                let computed = now + self.computes;
                let mut engine = now;
                while issue < computed {
                    let begin = issue.max(engine);
                    engine = begin + SLICE;
                    issue = slice(issue, begin, &mut outcome);
                }
                // What it wants to copy next waits for the slice on its way.
                now = computed.max(engine);
            }
            outcome.job = now;
            outcome
        }
    }

    fn steady(copies: u64, computes: u64) -> Model {
        Model {
            copies,
            computes,
            noise: vec![0],
        }
    }

    #[test]
    fn a_free_link_is_used_for_a_quarter_of_the_time() {
        let mut link = SharedLink::default();
        let mut at = Duration::ZERO;
        for _ in 0..1000 {
            let took = us(SLICE + LATENCY);
            at += took + link.copied(LARGEST, took).lasts;
        }
        let used = 1000.0 * SLICE as f64 / at.as_micros() as f64;
        assert!((0.2..=0.3).contains(&used), "{used}");
    }

    #[test]
    fn a_link_that_the_job_always_uses_is_used_for_a_little() {
        let outcome = steady(1_000_000, 0).run(3);
        let share = outcome.slices as f64 * SLICE as f64 / outcome.job as f64;
        assert!((0.015..=0.025).contains(&share), "{share} {outcome:?}");
        assert!(
            (outcome.job as f64) < outcome.alone as f64 * 1.05,
            "{outcome:?}"
        );
    }

    #[test]
    fn slices_are_compared_with_their_like() {
        let mut link = SharedLink::default();
        assert!(!link.copied(1 << 20, us(80)).late);
        assert!(!link.copied(LARGEST, us(1000)).late);
        assert!(link.copied(1 << 20, us(1000)).late);
        assert!(!link.copied(LARGEST, us(1000)).late);
        // The ends of allocations are quick, and say nothing of others.
        assert!(!link.copied(0, us(20)).late);
        assert!(!link.copied(STEP, us(20)).late);
        assert!(link.copied(STEP + 1, us(70)).lasts < us(100));
        assert!(!link.copied(1 << 20, us(80)).late);
        // Nobody copies that much in a slice.
        assert!(!link.copied(100 << 20, us(900)).late);
        assert!(link.copied(2 << 20, us(2000)).late);
    }

    #[test]
    fn a_link_that_has_become_slower_is_learned() {
        let mut link = SharedLink::default();
        link.copied(LARGEST, us(100));
        link.begin();
        assert!(link.copied(LARGEST, us(2000)).late);
        link.begin();
        assert!(!link.copied(LARGEST, us(2000)).late);
    }

    #[test]
    fn a_pause_is_halved_by_each_slice_that_is_on_time() {
        let mut link = SharedLink::default();
        let first = link.copied(LARGEST, us(100));
        assert_eq!(
            (first.late, first.yields, first.lasts),
            (false, false, us(50))
        );
        let second = link.copied(LARGEST, us(1100));
        assert_eq!(
            (second.late, second.yields, second.lasts),
            (true, true, us(1200))
        );
        let mut lasts = second.lasts;
        while lasts > us(50) {
            let next = link.copied(LARGEST, us(100));
            assert!(!next.late && next.lasts <= lasts / 2 + us(50), "{next:?}");
            assert_eq!(next.yields, next.lasts > us(50));
            lasts = next.lasts;
        }
    }

    #[test]
    fn no_pause_is_longer_than_anybody_waits() {
        let mut link = SharedLink::default();
        link.copied(1 << 20, us(1_000_000));
        assert_eq!(link.copied(1 << 20, us(10_000_000)).lasts, AT_MOST);
    }

    proptest! {
        /// Bursts from a millisecond on, as offloading makes them: a layer's activations, a bucket of gradients.
        #[test]
        fn a_job_that_copies_in_bursts_loses_a_twentieth_at_most(
            copies in 500..20_000_u64, computes in 0..20_000_u64, noise in prop::collection::vec(0..90_u64, 1..50),
        ) {
            let model = Model { copies, computes, noise };
            let outcome = model.run(400);
            prop_assert!(outcome.job as f64 <= outcome.alone as f64 * 1.05, "{:?}", outcome);
            // And the checkpoint comes to its end.
            prop_assert!(outcome.slices * SLICE * 120 >= outcome.job, "{:?}", outcome);
        }

        /// Whatever a thread's wake-ups are like.
        #[test]
        fn the_link_is_never_left_to_the_job_for_good(times in prop::collection::vec((1..=SIZES, 1..100_000_u64), 1..200)) {
            let mut link = SharedLink::default();
            let mut quickest = [Duration::MAX; SIZES];
            for (i, (size, took)) in times.into_iter().enumerate() {
                if i % 70 == 0 {
                    link.begin();
                }
                quickest[size - 1] = quickest[size - 1].min(us(took));
                let pause = link.copied(size * STEP, us(took));
                prop_assert!(pause.lasts >= (quickest[size - 1] / 2).min(AT_MOST));
                prop_assert!(pause.lasts <= AT_MOST);
            }
        }
    }
}
