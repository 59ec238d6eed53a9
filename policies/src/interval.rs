//! How much time to leave between checkpoints: so much that stops and rework after failures together cost the job least.
//!
//! # Model
//!
//! Of a checkpoint every `T`, the job pays `C` each time: the stop, and what the job loses in speed while the image leaves beside
//! it. With a mean time between failures `M`, a failure costs `T / 2 + K`: on average half an interval of rework, and `K`, which is
//! the time from a checkpoint's quiet point until it can be resumed from (a failure before that goes back one more) and the restore.
//! The share of its time that a job loses is then
//!
//! ```text
//! w(T) = 1 − (1 − C / T) · (1 − (T / 2 + K) / M)        least at   T = √(2 · C · (M − K))
//! ```
//!
//! For `K = 0` that is the interval of J. W. Young, "A first order approximation to the optimum checkpoint interval", CACM 17(9),
//! 1974. J. T. Daly, "A higher order estimate of the optimum checkpoint interval for restart dumps", FGCS 22(3), 2006, has more terms,
//! which count where `C` is no longer small beside `M`. Here a checkpoint costs about a second and failures are minutes apart at least:
//! what the terms change is less than what is known of `M`. What is new beside both is that a checkpoint holds the job
//! for a fraction of the time that it takes: the time it takes beside the job counts as rework and not as cost.
//!
//! # Rules
//!
//! * The mean time between failures is that of the job itself as far as it was seen, and of an assumption before that: one failure in
//!   [`IntervalConfig::assumed_mtbf`], which counts like a failure that was seen.
//! * The interval lies between bounds, and is a quarter longer than a checkpoint takes at least, beyond the upper bound too: two are never in
//!   flight, so one that takes longer than the interval would have every second tick skipped.

use std::time::Duration;

/// What the choice of an interval goes by.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct IntervalConfig {
    /// The interval before a checkpoint was measured.
    pub first: Duration,
    /// The shortest interval.
    pub least: Duration,
    /// The longest interval.
    pub most: Duration,
    /// Time between failures, where none was seen yet.
    pub assumed_mtbf: Duration,
    /// Share of its speed that the job loses while an image leaves the machine beside it, from 0 to 1.
    pub slowdown: f64,
    /// How long a restore is assumed to take before the first.
    pub restore: Duration,
}

impl Default for IntervalConfig {
    /// A minute before anything was measured, then 5 s to an hour; a failure a day; 2 % of the speed while an image leaves (the
    /// bound that docs/performance.md holds measurements against); restores of 10 s.
    fn default() -> Self {
        Self {
            first: Duration::from_secs(60),
            least: Duration::from_secs(5),
            most: Duration::from_secs(3600),
            assumed_mtbf: Duration::from_secs(24 * 3600),
            slowdown: 0.02,
            restore: Duration::from_secs(10),
        }
    }
}

/// What checkpoints and failures cost a job, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Costs {
    /// What a checkpoint costs: stop and slowdown.
    pub checkpoint: f64,
    /// From a checkpoint's quiet point until it can be resumed from.
    pub latency: f64,
    /// From a failure until the job is where it was at its checkpoint.
    pub restore: f64,
    /// Mean time between failures.
    pub mtbf: f64,
}

impl Costs {
    /// The interval that costs least, in seconds; 0 where failures come faster than a restore takes, and nothing helps.
    #[must_use]
    pub fn optimum(&self) -> f64 {
        let left = self.mtbf - self.latency - self.restore;
        (2.0 * self.checkpoint * left.max(0.0)).sqrt()
    }

    /// The share of its time that a job loses with a checkpoint every `interval` seconds: from 0 to 1.
    #[must_use]
    pub fn lost(&self, interval: f64) -> f64 {
        let working = 1.0 - self.checkpoint / interval;
        let kept = 1.0 - (interval / 2.0 + self.latency + self.restore) / self.mtbf;
        (1.0 - working.max(0.0) * kept.max(0.0)).clamp(0.0, 1.0)
    }
}

/// The measurements of one job, and the interval that follows from them.
#[derive(Debug, Clone)]
pub struct AdaptiveInterval {
    config: IntervalConfig,
    /// Smoothed: seconds of a stop, and from there until the checkpoint could be resumed from.
    measured: Option<(f64, f64)>,
    restore: f64,
    failures: u32,
    /// For how long the job ran, up to `running_since`.
    ran: Duration,
    running_since: Option<Duration>,
}

/// The weight of the newest measurement. A job changes what it does (evaluation, a larger batch), and single ones are outliers.
const WEIGHT: f64 = 0.5;

/// How much longer than a checkpoint takes the interval is at least, as a factor.
const ROOM: f64 = 1.25;

fn smooth(before: f64, now: f64) -> f64 {
    before + WEIGHT * (now - before)
}

impl AdaptiveInterval {
    /// Nothing was measured yet.
    #[must_use]
    pub fn new(config: IntervalConfig) -> Self {
        Self {
            config,
            measured: None,
            restore: config.restore.as_secs_f64(),
            failures: 0,
            ran: Duration::ZERO,
            running_since: None,
        }
    }

    /// The job runs, for the first time or again.
    pub fn job_started(&mut self, now: Duration) {
        self.job_ended(now);
        self.running_since = Some(now);
    }

    /// The job does not run any more, for whatever reason.
    pub fn job_ended(&mut self, now: Duration) {
        if let Some(since) = self.running_since.take() {
            self.ran = self.ran.saturating_add(now.saturating_sub(since));
        }
    }

    /// The job or its machine failed.
    pub const fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    /// The job was resumed from a checkpoint, which took that long.
    pub fn restored(&mut self, took: Duration) {
        self.restore = smooth(self.restore, took.as_secs_f64());
    }

    /// A checkpoint can be resumed from: it held the job for `stop`, and took `whole` from its beginning.
    pub fn checkpoint(&mut self, stop: Duration, whole: Duration) {
        let now = (stop.as_secs_f64(), whole.max(stop).as_secs_f64());
        self.measured = Some(match self.measured {
            None => now,
            Some(before) => (smooth(before.0, now.0), smooth(before.1, now.1)),
        });
    }

    /// Mean time between failures, as far as is known now.
    #[must_use]
    pub fn mtbf(&self, now: Duration) -> Duration {
        let current = self
            .running_since
            .map_or(Duration::ZERO, |since| now.saturating_sub(since));
        let seen = self.config.assumed_mtbf + self.ran.saturating_add(current);
        seen / self.failures.saturating_add(1)
    }

    /// What is known of the job's costs; `None` before the first checkpoint.
    #[must_use]
    pub fn costs(&self, now: Duration) -> Option<Costs> {
        let (stop, whole) = self.measured?;
        Some(Costs {
            checkpoint: stop + self.config.slowdown * (whole - stop),
            latency: whole,
            restore: self.restore,
            mtbf: self.mtbf(now).as_secs_f64(),
        })
    }

    /// The time to leave between the beginnings of two checkpoints.
    #[must_use]
    pub fn interval(&self, now: Duration) -> Duration {
        let IntervalConfig {
            first, least, most, ..
        } = self.config;
        let Some(costs) = self.costs(now) else {
            return first.clamp(least, most);
        };
        let wanted = costs
            .optimum()
            .clamp(least.as_secs_f64(), most.as_secs_f64());
        // In whole seconds, which is what a person reads in a log.
        let wanted = wanted.max(ROOM * costs.latency).ceil();
        Duration::try_from_secs_f64(wanted).unwrap_or(Duration::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{RngExt, SeedableRng};

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_minute_before_anything_is_known_then_by_what_was_measured() {
        let mut it = AdaptiveInterval::new(IntervalConfig::default());
        it.job_started(s(0));
        assert_eq!(it.interval(s(30)), s(60));
        // 1 s of stop and 20 s beside the job, a failure a day: √(2 · 1.4 · 86,300).
        it.checkpoint(s(1), s(21));
        assert_eq!(it.interval(s(60)), s(492));
        // A tenth of the stop.
        let mut quick = AdaptiveInterval::new(IntervalConfig::default());
        quick.checkpoint(Duration::from_millis(100), Duration::from_millis(2100));
        assert_eq!(quick.interval(s(60)), s(156));
    }

    #[test]
    fn a_job_that_fails_often_is_checkpointed_often_and_one_that_runs_on_less_often() {
        let mut it = AdaptiveInterval::new(IntervalConfig::default());
        it.checkpoint(s(1), s(21));
        let day = s(24 * 3600);
        it.job_started(s(0));
        let before = it.interval(s(0));
        for n in 1..=100 {
            it.failed();
            let now = s(450 * n);
            it.job_ended(now);
            it.job_started(now);
        }
        let now = s(45_000);
        assert_eq!(it.mtbf(now), (day + now) / 101);
        let often = it.interval(now);
        assert!(often < before / 6, "{often:?} after {before:?}");
        assert!(it.interval(now + 100 * day) > often);
    }

    #[test]
    fn not_shorter_than_a_checkpoint_takes_nor_than_the_bounds() {
        let mut it = AdaptiveInterval::new(IntervalConfig::default());
        it.checkpoint(Duration::from_millis(1), s(900));
        for _ in 0..20 {
            it.failed();
        }
        assert_eq!(it.interval(s(0)), s(1125));
        let mut it = AdaptiveInterval::new(IntervalConfig::default());
        it.checkpoint(Duration::ZERO, Duration::ZERO);
        assert_eq!(it.interval(s(0)), s(5));
        let mut it = AdaptiveInterval::new(IntervalConfig::default());
        it.checkpoint(s(600), s(600));
        assert_eq!(it.interval(s(0)), s(3600));
    }

    /// Trains with checkpoints every `interval` and failures at random (exponential), step by step; the share of the time that did
    /// not go into training, and the model's word on it.
    fn simulated(costs: Costs, interval: f64, failures: u32, seed: u64) -> f64 {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let (mut time, mut kept) = (0.0, 0.0);
        for _ in 0..failures {
            let life = -costs.mtbf * (1.0 - rng.random::<f64>()).ln();
            // The restore, then training in intervals until it fails; what was visible by then is kept.
            let trained = (life - costs.restore).max(0.0);
            let visible = ((trained - costs.latency) / interval).floor().max(0.0);
            kept += visible * (interval - costs.checkpoint);
            time += life;
        }
        1.0 - kept / time
    }

    #[test]
    fn simulated_failures_agree_with_the_model() {
        for (checkpoint, latency, mtbf) in [
            (1.4, 21.0, 86_400.0),
            (0.5, 10.0, 3_600.0),
            (2.0, 30.0, 450.0 * 8.0),
        ] {
            let costs = Costs {
                checkpoint,
                latency,
                restore: 10.0,
                mtbf,
            };
            let best = costs.optimum();
            let at = |interval| simulated(costs, interval, 200_000, 7);
            let (lost, said) = (at(best), costs.lost(best));
            assert!(
                (lost - said).abs() < 0.1 * said,
                "{lost} lost, {said} by the model: {costs:?}"
            );
            assert!(lost < at(best * 2.0) && lost < at(best / 2.0), "{costs:?}");
        }
    }

    proptest! {
        #[test]
        fn no_other_interval_costs_less(
            checkpoint in 0.01..60.0f64, latency in 0.0..600.0f64, restore in 0.0..60.0f64, mtbf in 1_000.0..1e7f64, other in 0.01..100.0f64,
        ) {
            let costs = Costs { checkpoint, latency, restore, mtbf };
            let best = costs.optimum();
            // Where checkpoints cost more than they can save, every interval loses everything.
            prop_assume!(best > checkpoint);
            prop_assert!(costs.lost(best) <= costs.lost(best * other) + 1e-12);
        }

        #[test]
        fn always_within_its_bounds(
            events in prop::collection::vec((0..5u8, 0..1_000_000u64, 0..1_000_000u64), 0..50),
        ) {
            let config = IntervalConfig::default();
            let mut it = AdaptiveInterval::new(config);
            let mut now = Duration::ZERO;
            for (event, a, b) in events {
                now += Duration::from_millis(a);
                match event {
                    0 => it.job_started(now),
                    1 => it.job_ended(now),
                    2 => it.failed(),
                    3 => it.restored(Duration::from_millis(b)),
                    _ => it.checkpoint(Duration::from_millis(a), Duration::from_millis(b)),
                }
                let interval = it.interval(now);
                let latency = it.costs(now).map_or(0.0, |c| c.latency);
                let most = config.most.as_secs_f64().max(ROOM * latency).ceil();
                prop_assert!(interval >= config.least && interval.as_secs_f64() <= most);
            }
        }
    }
}
