//! Whether, and how soon, a crashed job is restored: a budget of restarts in a sliding window, with growing waits.
//!
//! # Rules
//!
//! * In no window of the given length are there more restarts than the budget allows.
//! * The first restart in the window does not wait: what ends a job once in a long time is over by then, and each second before
//!   the restore is lost to training.
//! * From the second on, the wait doubles with each restart in the window, up to a cap; jitter, given by the caller, takes up to
//!   half of it away, so that many nodes do not come back in step.
//! * Memory: one time for each allowed restart.

use std::collections::VecDeque;
use std::time::Duration;

use crate::schedule::doubling;

/// How often a job may be restarted within a window, and how long each restart waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RestartBudget {
    /// Restarts allowed within the window.
    pub max_restarts: u32,
    /// Length of the window.
    pub window: Duration,
    /// Wait before the second restart in the window. The first does not wait.
    pub backoff_base: Duration,
    /// The longest wait before a restart.
    pub backoff_cap: Duration,
}

impl Default for RestartBudget {
    /// Five restarts an hour, the first at once, the others after 1 s to 60 s.
    fn default() -> Self {
        Self {
            max_restarts: 5,
            window: Duration::from_secs(3600),
            backoff_base: Duration::from_secs(1),
            backoff_cap: Duration::from_secs(60),
        }
    }
}

/// What to do about a crash of the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Restore the job after this wait.
    Restart {
        /// How long to wait before the job is restored.
        after: Duration,
        /// Which restart within the window it is, from 1.
        attempt: u32,
    },
    /// The budget is spent: end with the job's own exit code.
    GiveUp {
        /// Restarts within the window.
        restarts: u32,
    },
}

/// The restarts of one job so far, and the budget that limits them.
#[derive(Debug, Clone)]
pub struct Restarts {
    budget: RestartBudget,
    /// When each restart within the window was to happen, oldest first.
    recent: VecDeque<Duration>,
}

impl Restarts {
    /// A record without restarts, limited by `budget`.
    #[must_use]
    pub fn new(budget: RestartBudget) -> Self {
        Self {
            budget,
            recent: VecDeque::new(),
        }
    }

    /// How long a restart waits at most that has so many before it in the window.
    fn wait(&self, before: u32) -> Duration {
        let RestartBudget {
            backoff_base,
            backoff_cap,
            ..
        } = self.budget;
        before.checked_sub(1).map_or(Duration::ZERO, |times| {
            doubling(backoff_base, backoff_cap, times)
        })
    }

    /// Decides about a crash at `now`. `jitter` is any number, evenly distributed.
    pub fn on_crash(&mut self, now: Duration, jitter: u64) -> Decision {
        self.decide(now, jitter, 0)
    }

    /// Decides about a restore that failed at `now`: it would fail again at once, so that the first one waits as well.
    pub fn on_failed_restore(&mut self, now: Duration, jitter: u64) -> Decision {
        self.decide(now, jitter, 1)
    }

    /// Waits as if there had been so many restarts in the window at least.
    fn decide(&mut self, now: Duration, jitter: u64, at_least: u32) -> Decision {
        let window = self.budget.window;
        while self
            .recent
            .front()
            .is_some_and(|&at| at.saturating_add(window) <= now)
        {
            self.recent.pop_front();
        }
        let restarts = u32::try_from(self.recent.len()).unwrap_or(u32::MAX);
        if restarts >= self.budget.max_restarts {
            return Decision::GiveUp { restarts };
        }
        let wait = self.wait(restarts.max(at_least));
        let part = (jitter >> 32) as u32;
        let off = Duration::from_nanos((wait.as_nanos().min(u128::from(u64::MAX)) as u64) / 2)
            .mul_f64(f64::from(part) / f64::from(u32::MAX));
        let after = wait.saturating_sub(off);
        self.recent.push_back(now.saturating_add(after));
        Decision::Restart {
            after,
            attempt: restarts + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_crash_loop_ends_and_a_quiet_window_forgives() {
        let budget = RestartBudget {
            max_restarts: 3,
            ..RestartBudget::default()
        };
        let mut it = Restarts::new(budget);
        let mut now = Duration::ZERO;
        for (attempt, wait) in [(1, 0), (2, 1), (3, 2)] {
            let after = Duration::from_secs(wait);
            assert_eq!(it.on_crash(now, 0), Decision::Restart { after, attempt });
            now += after;
        }
        assert_eq!(it.on_crash(now, 0), Decision::GiveUp { restarts: 3 });
        assert!(matches!(
            it.on_crash(now + budget.window, 0),
            Decision::Restart { attempt: 1, .. }
        ));
        let second = Duration::from_secs(1);
        assert_eq!(
            Restarts::new(budget).on_failed_restore(now, 0),
            Decision::Restart {
                after: second,
                attempt: 1
            }
        );
        let mut none = Restarts::new(RestartBudget {
            max_restarts: 0,
            ..budget
        });
        assert_eq!(none.on_crash(now, 0), Decision::GiveUp { restarts: 0 });
    }

    proptest! {
        #[test]
        fn never_more_than_the_budget_in_any_window(
            gaps in prop::collection::vec((0..20_000u64, any::<u64>()), 1..80),
            max_restarts in 0..8u32, window_ms in 1..60_000u64, base_ms in 0..3000u64, cap_ms in 0..10_000u64,
        ) {
            let budget = RestartBudget {
                max_restarts,
                window: Duration::from_millis(window_ms),
                backoff_base: Duration::from_millis(base_ms),
                backoff_cap: Duration::from_millis(cap_ms),
            };
            let mut it = Restarts::new(budget);
            let mut now = Duration::ZERO;
            let mut restarts: Vec<Duration> = Vec::new();
            for (gap, jitter) in gaps {
                now += Duration::from_millis(gap);
                if let Decision::Restart { after, attempt } = it.on_crash(now, jitter) {
                    prop_assert!(after <= budget.backoff_cap);
                    let most = it.wait(attempt - 1);
                    prop_assert!(after <= most && after * 2 + Duration::from_nanos(2) >= most);
                    prop_assert!(attempt > 1 || after.is_zero());
                    now += after;
                    restarts.push(now);
                }
                let within = restarts.iter().filter(|&&at| at + budget.window > now).count();
                prop_assert!(within <= max_restarts as usize, "{within}");
            }
        }

        #[test]
        fn extremes_do_not_overflow(now in any::<u64>(), jitter in any::<u64>(), restarts in any::<u32>()) {
            let budget = RestartBudget { max_restarts: restarts, window: Duration::MAX, backoff_base: Duration::MAX, backoff_cap: Duration::MAX };
            let mut it = Restarts::new(budget);
            for _ in 0..40 {
                it.on_crash(Duration::from_secs(now), jitter);
            }
        }
    }
}
