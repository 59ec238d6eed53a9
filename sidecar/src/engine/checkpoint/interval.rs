//! The time between checkpoints: as it was given, or as what checkpoints and failures cost this job makes best.

use std::time::Duration;

use phos_policies::interval::{AdaptiveInterval, IntervalConfig};

use crate::engine::Engine;
use crate::engine::config::Interval;

/// A change of less than this share of the interval is not made: the grid of ticks stays as it is.
const NOTABLE: f64 = 0.1;

/// The interval of a job, and with `--interval auto` what it is chosen by.
#[derive(Debug)]
pub(in crate::engine) struct ChosenInterval {
    current: Option<Duration>,
    adaptive: Option<AdaptiveInterval>,
}

impl ChosenInterval {
    pub(in crate::engine) fn new(interval: Interval) -> ChosenInterval {
        match interval {
            Interval::Never => ChosenInterval {
                current: None,
                adaptive: None,
            },
            Interval::Every(interval) => ChosenInterval {
                current: Some(interval),
                adaptive: None,
            },
            Interval::Auto => {
                let adaptive = AdaptiveInterval::new(IntervalConfig::default());
                ChosenInterval {
                    current: Some(adaptive.interval(Duration::ZERO)),
                    adaptive: Some(adaptive),
                }
            }
        }
    }

    /// The time between the beginnings of two checkpoints; `None`: on demand only.
    pub(in crate::engine) fn current(&self) -> Option<Duration> {
        self.current
    }

    /// The job runs, for the first time or again.
    pub(in crate::engine) fn job_started(&mut self, now: Duration) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.job_started(now);
        }
    }

    /// The job does not run any more.
    pub(in crate::engine) fn job_ended(&mut self, now: Duration) {
        if let Some(adaptive) = &mut self.adaptive {
            adaptive.job_ended(now);
        }
    }

    /// The job had to be resumed: it crashed, or whatever ran it before is gone. The new interval, if it is another one.
    fn resumed(&mut self, took: Duration, now: Duration) -> Option<Duration> {
        let adaptive = self.adaptive.as_mut()?;
        adaptive.failed();
        adaptive.restored(took);
        self.adapt(now)
    }

    /// Takes note of a checkpoint. The new interval, if it is another one.
    fn checkpoint(&mut self, stop: Duration, whole: Duration, now: Duration) -> Option<Duration> {
        self.adaptive.as_mut()?.checkpoint(stop, whole);
        self.adapt(now)
    }

    fn adapt(&mut self, now: Duration) -> Option<Duration> {
        let adaptive = self.adaptive.as_ref()?;
        let wanted = adaptive.interval(now);
        let before = self.current.unwrap_or_default().as_secs_f64();
        if (wanted.as_secs_f64() - before).abs() < NOTABLE * before {
            return None;
        }
        self.current = Some(wanted);
        if let Some(costs) = adaptive.costs(now) {
            tracing::info!(
                interval_s = wanted.as_secs(),
                checkpoint_costs_s = round(costs.checkpoint),
                stored_after_s = round(costs.latency),
                mtbf_s = costs.mtbf as u64,
                lost_percent = round(100.0 * costs.lost(wanted.as_secs_f64())),
                "the interval between checkpoints was adapted"
            );
        }
        Some(wanted)
    }
}

fn round(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

impl Engine {
    /// With `--interval auto`, chooses the interval anew after a checkpoint that held the job for `stop` and took `whole`.
    pub(super) fn adapt_interval(&mut self, stop: Duration, whole: Duration) {
        let now = self.now();
        let interval = self.interval.checkpoint(stop, whole, now);
        self.set_interval(interval, now);
    }

    /// With `--interval auto`, chooses the interval anew after a restore that took so long. Before the job runs: its first tick
    /// must come before it fails again.
    pub(in crate::engine) fn adapt_interval_to_failure(&mut self, took: Duration) {
        let now = self.now();
        let interval = self.interval.resumed(took, now);
        self.set_interval(interval, now);
    }

    fn set_interval(&mut self, interval: Option<Duration>, now: Duration) {
        if let Some(interval) = interval {
            self.schedule.set_interval(interval, now);
            self.status.lock().interval_seconds = interval.as_secs_f64();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn what_was_given_stays() {
        for (given, expected) in [(Interval::Never, None), (Interval::Every(s(7)), Some(s(7)))] {
            let mut interval = ChosenInterval::new(given);
            assert_eq!(interval.resumed(s(10), s(30)), None);
            assert_eq!(interval.checkpoint(s(5), s(50), s(60)), None);
            assert_eq!(interval.current(), expected);
        }
    }

    #[test]
    fn auto_follows_what_is_measured_but_not_every_breath_of_it() {
        let mut interval = ChosenInterval::new(Interval::Auto);
        assert_eq!(interval.current(), Some(s(60)));
        interval.job_started(s(0));
        let adapted = interval.checkpoint(s(1), s(21), s(60)).unwrap();
        assert!(adapted > s(400), "{adapted:?}");
        assert_eq!(interval.current(), Some(adapted));
        // A little more is no reason to move the ticks.
        assert_eq!(
            interval.checkpoint(Duration::from_millis(1050), s(21), s(500)),
            None
        );
        // Failures count when they happen.
        let mut often = adapted;
        for n in 0..9 {
            often = interval.resumed(s(10), s(600 + 10 * n)).unwrap_or(often);
        }
        assert!(often < adapted / 2, "{often:?}");
        assert_eq!(interval.current(), Some(often));
    }
}
