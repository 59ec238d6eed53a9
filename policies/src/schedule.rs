//! When to take a checkpoint: at an interval, on demand, and a last one before the job is terminated.
//!
//! # Rules
//!
//! * Never two in flight.
//! * Ticks lie on a grid from the job's start, or from the last checkpoint's since the interval was changed. One that passes while a
//!   checkpoint is in flight is skipped, not made up.
//! * After a failure the next attempt comes sooner than the next tick, with growing waits up to a cap.
//! * The job is held back for at most a given share of its time: after a long stop the next tick may be skipped.
//!   Requests and the last checkpoint do not wait for that; what the program itself asks for does, or one that asks at each step would
//!   do nothing else.

use std::time::Duration;

/// How often to take a checkpoint, and how long to wait after one that failed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScheduleConfig {
    /// Time between ticks; `None` for checkpoints on demand only.
    pub interval: Option<Duration>,
    /// Wait after the first failure in a row; doubles with each.
    pub retry_base: Duration,
    /// Longest wait after a failure.
    pub retry_cap: Duration,
    /// Largest share of the job's time that stops may take, above 0 and at most 1.
    pub max_stop_share: f64,
}

impl Default for ScheduleConfig {
    /// Every minute, retries after 2 s to 30 s, at most a tenth of the time in stops.
    fn default() -> Self {
        Self {
            interval: Some(Duration::from_secs(60)),
            retry_base: Duration::from_secs(2),
            retry_cap: Duration::from_secs(30),
            max_stop_share: 0.1,
        }
    }
}

/// Why a [`ScheduleConfig`] was refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum ScheduleError {
    /// An interval of nothing.
    #[error(
        "--interval 0 would hold the job back without end: give at least 1s, or leave it out for checkpoints on demand"
    )]
    ZeroInterval,
    /// The share is not above 0 and at most 1.
    #[error(
        "a stop share of {share} is not above 0 and at most 1: give 0.1 for a tenth of the job's time"
    )]
    Share {
        /// The share that was given.
        share: f64,
    },
}

/// The reason for which a checkpoint is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Trigger {
    /// A tick of the interval, or its retry.
    Interval,
    /// Somebody asked for it.
    OnDemand,
    /// The machine will be taken away.
    Preemption,
    /// The job is about to be terminated, and this is its last checkpoint.
    Terminate,
}

impl Trigger {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Interval,
        Self::OnDemand,
        Self::Preemption,
        Self::Terminate,
    ];

    /// The word for it in manifests and listings.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Interval => "interval",
            Self::OnDemand => "on-demand",
            Self::Preemption => "preemption",
            Self::Terminate => "terminate",
        }
    }
}

/// The longest that a checkpoint waits for the end of a step.
const LONGEST_STEP: Duration = Duration::from_secs(15);

/// What a failure says about the next attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FailureKind {
    /// It may succeed soon: time-outs, a stream capture in the way.
    Transient,
    /// It will not succeed soon: a full disk, use that is not supported. Wait for the next tick.
    Permanent,
    /// It will never succeed: the job was taken over. No more checkpoints.
    Final,
}

/// An event that the schedule has to know of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The job runs, for the first time or again.
    JobStarted,
    /// The job does not run any more.
    JobExited,
    /// Someone asked for a checkpoint.
    Requested,
    /// The job's program asked for one.
    Hinted,
    /// A checkpoint is wanted because the machine will be taken away: one attempt, whose failure is for the caller to answer.
    Preempted,
    /// The job is about to be terminated: one last checkpoint, attempted until the given time.
    Terminate {
        /// The time at which to stop trying, measured from the caller's origin.
        until: Duration,
    },
    /// A checkpoint was started.
    Started,
    /// The checkpoint in flight was committed.
    Committed {
        /// How long the checkpoint held the job back.
        stop: Duration,
    },
    /// The checkpoint in flight failed.
    Failed {
        /// What the failure says about the next attempt.
        kind: FailureKind,
        /// How long the failed attempt held the job back.
        stop: Duration,
    },
}

/// What the caller is to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Start a checkpoint now, and say [`Event::Started`].
    Start(Trigger),
    /// Ask again at this time, or after the next event.
    WaitUntil(Duration),
    /// Ask again after the next event.
    Idle,
    /// The last checkpoint was taken or cannot be: let the job end.
    Finish,
}

/// The state machine. Tell it what happens with [`Self::on`], ask it what to do with [`Self::next`].
#[derive(Debug, Clone)]
pub struct Schedule {
    config: ScheduleConfig,
    /// Origin of the grid, if the job runs.
    grid: Option<Duration>,
    /// When the last checkpoint of this run was started.
    started: Option<Duration>,
    in_flight: Option<InFlight>,
    /// When the next one of the interval is due.
    due: Option<Duration>,
    /// Before this no checkpoint of the interval starts, because of the stop share.
    rested: Duration,
    requested: bool,
    /// The program asked for one: begun when it may be held again.
    hinted: bool,
    /// After a failure none that the program asks for begins before this.
    retry: Duration,
    /// A checkpoint is to be begun because the machine will be taken away.
    preempted: bool,
    failures: u32,
    over: bool,
    last: Last,
}

#[derive(Debug, Clone, Copy)]
struct InFlight {
    trigger: Trigger,
    since: Duration,
}

/// How far the last checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    NotWanted,
    Wanted { from: Duration, until: Duration },
    Done,
}

impl Schedule {
    /// A schedule for a job that does not run yet.
    pub fn new(config: ScheduleConfig) -> Result<Self, ScheduleError> {
        if config.interval == Some(Duration::ZERO) {
            return Err(ScheduleError::ZeroInterval);
        }
        let share = config.max_stop_share;
        if !(share > 0.0 && share <= 1.0) {
            return Err(ScheduleError::Share { share });
        }
        Ok(Self {
            config,
            grid: None,
            started: None,
            in_flight: None,
            due: None,
            rested: Duration::ZERO,
            requested: false,
            hinted: false,
            retry: Duration::ZERO,
            preempted: false,
            failures: 0,
            over: false,
            last: Last::NotWanted,
        })
    }

    /// Whether a checkpoint is in flight.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Why the checkpoint in flight is taken, if there is one.
    #[must_use]
    pub fn in_flight(&self) -> Option<Trigger> {
        self.in_flight.map(|flight| flight.trigger)
    }

    /// Takes note of an event.
    pub fn on(&mut self, event: Event, now: Duration) {
        match event {
            Event::JobStarted => {
                self.grid = Some(now);
                self.started = None;
                self.in_flight = None;
                self.failures = 0;
                self.due = self.tick_after(now);
            }
            Event::JobExited => {
                self.grid = None;
                self.in_flight = None;
                self.due = None;
                self.requested = false;
                self.hinted = false;
                self.preempted = false;
                if self.last != Last::NotWanted {
                    self.last = Last::Done;
                }
            }
            Event::Requested => self.requested = true,
            Event::Hinted => self.hinted = true,
            Event::Preempted => self.preempted = true,
            Event::Terminate { until } => {
                if self.last == Last::NotWanted {
                    self.last = Last::Wanted { from: now, until };
                }
            }
            Event::Started => {
                // What `next` says is what was started: it depends on nothing but this state.
                let trigger = match self.next(now) {
                    Action::Start(trigger) => trigger,
                    _ => Trigger::OnDemand,
                };
                match trigger {
                    // Whoever asked: this one is it.
                    Trigger::OnDemand => (self.requested, self.hinted) = (false, false),
                    Trigger::Preemption => self.preempted = false,
                    Trigger::Interval | Trigger::Terminate => {}
                }
                self.started = Some(now);
                self.in_flight.get_or_insert(InFlight {
                    trigger,
                    since: now,
                });
            }
            Event::Committed { stop } => {
                if let Some(ended) = self.end(stop) {
                    self.failures = 0;
                    self.due = self.tick_after(now);
                    if ended.trigger == Trigger::Terminate {
                        self.last = Last::Done;
                    }
                }
            }
            Event::Failed { kind, stop } => {
                if let Some(ended) = self.end(stop) {
                    self.failed(ended.trigger, kind, now);
                }
            }
        }
    }

    /// From now on the ticks are this far apart, counted from the last checkpoint. The retry of one that failed stays where it is.
    pub fn set_interval(&mut self, interval: Duration, now: Duration) {
        if self.config.interval == Some(interval) || interval.is_zero() {
            return;
        }
        self.config.interval = Some(interval);
        if self.grid.is_some() {
            self.grid = self.started.or(self.grid);
            if self.failures == 0 && !self.over {
                self.due = self.tick_after(now);
            }
        }
    }

    fn end(&mut self, stop: Duration) -> Option<InFlight> {
        let ended = self.in_flight.take()?;
        let rest = stop.as_secs_f64() / self.config.max_stop_share;
        let rest = Duration::try_from_secs_f64(rest).unwrap_or(Duration::MAX);
        self.rested = self.rested.max(ended.since.saturating_add(rest));
        Some(ended)
    }

    fn failed(&mut self, trigger: Trigger, kind: FailureKind, now: Duration) {
        self.failures = self.failures.saturating_add(1);
        let wait = doubling(
            self.config.retry_base,
            self.config.retry_cap,
            self.failures - 1,
        );
        self.retry = now.saturating_add(wait);
        let tick = self.tick_after(now);
        self.due = match kind {
            FailureKind::Transient => tick.map(|tick| tick.min(now.saturating_add(wait))),
            FailureKind::Permanent => tick,
            FailureKind::Final => None,
        };
        self.over |= kind == FailureKind::Final;
        if trigger == Trigger::Terminate
            && let Last::Wanted { until, .. } = self.last
        {
            let from = now.saturating_add(wait.min(Duration::from_secs(1)));
            let again = kind == FailureKind::Transient && from < until;
            self.last = if again {
                Last::Wanted { from, until }
            } else {
                Last::Done
            };
        }
    }

    /// The first tick after `now`.
    fn tick_after(&self, now: Duration) -> Option<Duration> {
        let (origin, interval) = (self.grid?, self.config.interval?);
        let passed = now.saturating_sub(origin).as_nanos() / interval.as_nanos();
        let next = interval.as_nanos().saturating_mul(passed.saturating_add(1));
        let seconds = u64::try_from(next / 1_000_000_000).unwrap_or(u64::MAX);
        let since = Duration::new(seconds, (next % 1_000_000_000) as u32);
        Some(origin.saturating_add(since))
    }

    /// What to do next. Depends on nothing but what was told and `now`, and changes nothing.
    #[must_use]
    pub fn next(&self, now: Duration) -> Action {
        if self.last == Last::Done {
            return Action::Finish;
        }
        if self.in_flight.is_some() {
            return Action::Idle;
        }
        if let Last::Wanted { from, until } = self.last {
            return if self.grid.is_none() || self.over || now >= until {
                Action::Finish
            } else if now >= from {
                Action::Start(Trigger::Terminate)
            } else {
                Action::WaitUntil(from)
            };
        }
        if self.grid.is_none() || self.over {
            return Action::Idle;
        }
        if self.preempted {
            return Action::Start(Trigger::Preemption);
        }
        if self.requested {
            return Action::Start(Trigger::OnDemand);
        }
        let retry = if self.failures > 0 { self.retry } else { now };
        let hinted = self.hinted.then(|| retry.max(self.rested));
        if hinted.is_some_and(|at| now >= at) {
            return Action::Start(Trigger::OnDemand);
        }
        let due = self.due.map(|due| due.max(self.rested));
        match due.into_iter().chain(hinted).min() {
            Some(due) if now >= due => Action::Start(Trigger::Interval),
            Some(due) => Action::WaitUntil(due),
            None => Action::Idle,
        }
    }
}

/// How long a checkpoint of a program that tells its steps may wait for the end of one: a quarter of the interval, between
/// one second and a quarter minute; five seconds where there is no interval, and somebody asked. A program that has stopped telling them is checkpointed all the same.
#[must_use]
pub fn wait_for_step(interval: Option<Duration>) -> Duration {
    let quarter = interval.map_or(Duration::from_secs(5), |interval| interval / 4);
    quarter.clamp(Duration::from_secs(1), LONGEST_STEP)
}

/// `base` doubled `times` times, at most `cap`.
pub(crate) fn doubling(base: Duration, cap: Duration, times: u32) -> Duration {
    base.saturating_mul(1_u32.checked_shl(times).unwrap_or(u32::MAX))
        .min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn schedule(interval: u64) -> Schedule {
        let config = ScheduleConfig {
            interval: Some(s(interval)),
            ..ScheduleConfig::default()
        };
        let mut schedule = Schedule::new(config).unwrap();
        schedule.on(Event::JobStarted, s(100));
        schedule
    }

    #[test]
    fn a_program_that_asks_all_the_time_still_trains() {
        let mut it = schedule(60);
        it.on(Event::Hinted, s(101));
        assert_eq!(it.next(s(101)), Action::Start(Trigger::OnDemand));
        it.on(Event::Started, s(101));
        it.on(Event::Hinted, s(102));
        it.on(Event::Committed { stop: s(1) }, s(103));
        // A tenth of its time at most.
        assert_eq!(it.next(s(103)), Action::WaitUntil(s(111)));
        // Somebody else does not wait for that, and one serves both.
        it.on(Event::Requested, s(104));
        assert_eq!(it.next(s(104)), Action::Start(Trigger::OnDemand));
        it.on(Event::Started, s(104));
        it.on(Event::Committed { stop: s(1) }, s(105));
        assert_eq!(it.next(s(111)), Action::WaitUntil(s(160)));
    }

    #[test]
    fn a_program_that_asks_in_vain_is_not_heard_all_the_time() {
        let mut it = schedule(600);
        let mut begun = 0;
        // Ten times a second for a minute.
        for tenth in 1000..1600 {
            let now = Duration::from_millis(100 * tenth);
            it.on(Event::Hinted, now);
            if it.next(now) == Action::Start(Trigger::OnDemand) {
                begun += 1;
                it.on(Event::Started, now);
                let (kind, stop) = (FailureKind::Permanent, Duration::ZERO);
                it.on(Event::Failed { kind, stop }, now);
            }
        }
        // After 2, 4, 8, 16 and 30 seconds.
        assert_eq!(begun, 5);
    }

    #[test]
    fn the_end_of_a_step_is_waited_for_but_not_for_long() {
        for (interval, wait) in [
            (None, 5),
            (Some(s(2)), 1),
            (Some(s(60)), 15),
            (Some(s(3600)), 15),
        ] {
            assert_eq!(wait_for_step(interval), s(wait), "{interval:?}");
        }
    }

    #[test]
    fn ticks_and_skipped_ticks() {
        let mut it = schedule(60);
        assert_eq!(it.next(s(100)), Action::WaitUntil(s(160)));
        assert_eq!(it.next(s(160)), Action::Start(Trigger::Interval));
        it.on(Event::Started, s(160));
        assert_eq!(it.next(s(230)), Action::Idle, "never two in flight");
        it.on(Event::Committed { stop: s(1) }, s(300));
        assert_eq!(
            it.next(s(300)),
            Action::WaitUntil(s(340)),
            "the ticks at 220 and 280 are skipped"
        );
    }

    #[test]
    fn another_interval_counts_from_the_last_checkpoint() {
        let mut it = schedule(60);
        // Before the first: from the start of the job.
        it.set_interval(s(30), s(110));
        assert_eq!(it.next(s(110)), Action::WaitUntil(s(130)));
        it.on(Event::Started, s(130));
        it.on(Event::Committed { stop: s(1) }, s(150));
        it.set_interval(s(400), s(150));
        assert_eq!(it.next(s(150)), Action::WaitUntil(s(530)));
        it.on(Event::Started, s(530));
        it.set_interval(s(20), s(535));
        assert_eq!(it.next(s(535)), Action::Idle);
        it.on(Event::Committed { stop: s(1) }, s(560));
        assert_eq!(it.next(s(560)), Action::WaitUntil(s(570)));
        // A retry is not put off.
        it.on(Event::Started, s(570));
        let kind = FailureKind::Transient;
        it.on(
            Event::Failed {
                kind,
                stop: Duration::ZERO,
            },
            s(571),
        );
        it.set_interval(s(3000), s(571));
        assert_eq!(it.next(s(571)), Action::WaitUntil(s(573)));
        // Nor does it begin anything for a job that does not run.
        it.on(Event::JobExited, s(572));
        it.set_interval(s(1), s(572));
        assert_eq!(it.next(s(900)), Action::Idle);
    }

    #[test]
    fn a_machine_that_is_taken_away_is_not_waited_for() {
        let mut it = schedule(60);
        it.on(Event::Preempted, s(110));
        assert_eq!(it.next(s(110)), Action::Start(Trigger::Preemption));
        it.on(Event::Started, s(110));
        assert_eq!(it.in_flight(), Some(Trigger::Preemption));
        it.on(Event::Preempted, s(114));
        assert_eq!(it.next(s(114)), Action::Idle, "never two in flight");
        it.on(Event::Committed { stop: s(1) }, s(120));
        assert_eq!(it.next(s(120)), Action::Start(Trigger::Preemption));
        it.on(Event::Started, s(120));
        it.on(Event::Committed { stop: s(1) }, s(121));
        assert_eq!(it.next(s(121)), Action::WaitUntil(s(160)));
        it.on(Event::Preempted, s(122));
        it.on(Event::JobExited, s(123));
        it.on(Event::JobStarted, s(124));
        assert_eq!(it.next(s(124)), Action::WaitUntil(s(184)));
        // One on demand only as well.
        let config = ScheduleConfig {
            interval: None,
            ..ScheduleConfig::default()
        };
        let mut never = Schedule::new(config).unwrap();
        never.on(Event::JobStarted, s(0));
        never.on(Event::Preempted, s(5));
        assert_eq!(never.next(s(5)), Action::Start(Trigger::Preemption));
    }

    #[test]
    fn failures_retry_sooner_with_growing_waits() {
        let mut it = schedule(60);
        let mut now = s(160);
        for wait in [2, 4, 8, 16, 30, 30] {
            assert_eq!(it.next(now), Action::Start(Trigger::Interval));
            it.on(Event::Started, now);
            it.on(
                Event::Failed {
                    kind: FailureKind::Transient,
                    stop: Duration::ZERO,
                },
                now,
            );
            let Action::WaitUntil(next) = it.next(now) else {
                panic!()
            };
            assert!(next <= now + s(wait), "{next:?}");
            now = next;
        }
        it.on(Event::Started, now);
        it.on(
            Event::Failed {
                kind: FailureKind::Permanent,
                stop: Duration::ZERO,
            },
            now,
        );
        let Action::WaitUntil(next) = it.next(now) else {
            panic!()
        };
        assert_eq!(
            (next - s(100)).as_secs() % 60,
            0,
            "a permanent failure waits for the next tick"
        );
        it.on(Event::Started, next);
        it.on(
            Event::Failed {
                kind: FailureKind::Final,
                stop: Duration::ZERO,
            },
            next,
        );
        assert_eq!(it.next(s(100_000)), Action::Idle);
    }

    #[test]
    fn a_long_stop_is_followed_by_a_long_pause_but_requests_are_not() {
        let mut it = schedule(10);
        it.on(Event::Started, s(110));
        it.on(Event::Committed { stop: s(5) }, s(116));
        assert_eq!(it.next(s(120)), Action::WaitUntil(s(160)));
        it.on(Event::Requested, s(121));
        assert_eq!(it.next(s(121)), Action::Start(Trigger::OnDemand));
        it.on(Event::Started, s(121));
        it.on(Event::Committed { stop: s(0) }, s(122));
        assert_eq!(
            it.next(s(130)),
            Action::WaitUntil(s(160)),
            "one request, one checkpoint"
        );
    }

    #[test]
    fn the_last_checkpoint() {
        let mut it = schedule(60);
        it.on(Event::Started, s(160));
        it.on(Event::Terminate { until: s(180) }, s(161));
        assert_eq!(
            it.next(s(161)),
            Action::Idle,
            "the one in flight ends first"
        );
        it.on(Event::Committed { stop: s(1) }, s(165));
        assert_eq!(it.next(s(165)), Action::Start(Trigger::Terminate));
        it.on(Event::Started, s(165));
        it.on(
            Event::Failed {
                kind: FailureKind::Transient,
                stop: s(0),
            },
            s(166),
        );
        assert_eq!(it.next(s(166)), Action::WaitUntil(s(167)));
        it.on(Event::Started, s(167));
        it.on(Event::Committed { stop: s(1) }, s(170));
        assert_eq!(it.next(s(170)), Action::Finish);
        let mut late = schedule(60);
        late.on(Event::Terminate { until: s(120) }, s(110));
        assert_eq!(late.next(s(120)), Action::Finish, "out of time");
    }

    #[test]
    fn bad_configurations_are_refused() {
        let config = ScheduleConfig {
            interval: Some(Duration::ZERO),
            ..ScheduleConfig::default()
        };
        assert_eq!(
            Schedule::new(config).unwrap_err(),
            ScheduleError::ZeroInterval
        );
        for share in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(
                Schedule::new(ScheduleConfig {
                    max_stop_share: share,
                    ..ScheduleConfig::default()
                })
                .is_err()
            );
        }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Pass(u64),
        Tell(u8, u64),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (1..40_000u64).prop_map(Step::Pass),
            (0..8u8, 0..9000u64).prop_map(|(e, ms)| Step::Tell(e, ms))
        ];
        prop::collection::vec(step, 1..120)
    }

    proptest! {
        #[test]
        fn rules_hold_whatever_happens(steps in steps(), interval_ms in 500..90_000u64, share in 0.01..1.0f64) {
            let interval = Duration::from_millis(interval_ms);
            let config = ScheduleConfig { interval: Some(interval), max_stop_share: share, ..ScheduleConfig::default() };
            let mut it = Schedule::new(config).unwrap();
            let mut now = Duration::ZERO;
            let mut flying: Option<Duration> = None;
            // Of the last checkpoint: when it started and how long its stop was.
            let mut before: Option<(Duration, Duration)> = None;
            let mut requested = false;
            for step in steps {
                match step {
                    Step::Pass(ms) => now += Duration::from_millis(ms),
                    Step::Tell(event, ms) => {
                        let stop = Duration::from_millis(ms);
                        match event {
                            0 => { it.on(Event::JobStarted, now); flying = None; before = None; }
                            1 => { it.on(Event::JobExited, now); flying = None; requested = false; }
                            2 => { it.on(Event::Requested, now); requested = true; }
                            7 => it.on(Event::Hinted, now),
                            3 => it.on(Event::Terminate { until: now + stop }, now),
                            4 => {
                                if let Some(since) = flying.take() { before = Some((since, stop)); }
                                it.on(Event::Committed { stop }, now);
                            }
                            n => {
                                let kind = if n == 5 { FailureKind::Transient } else { FailureKind::Permanent };
                                if let Some(since) = flying.take() { before = Some((since, stop)); }
                                it.on(Event::Failed { kind, stop }, now);
                            }
                        }
                    }
                }
                prop_assert_eq!(it.is_in_flight(), flying.is_some());
                let action = it.next(now);
                prop_assert_eq!(it.next(now), action, "asking changes nothing");
                match action {
                    Action::WaitUntil(at) => prop_assert!(at > now),
                    Action::Start(trigger) => {
                        prop_assert!(flying.is_none(), "two in flight");
                        // Of the program's own accord.
                        let by_itself = trigger == Trigger::Interval || (trigger == Trigger::OnDemand && !requested);
                        if let (true, Some((since, stop))) = (by_itself, before) {
                            let share_used = stop.as_secs_f64() / (now - since).as_secs_f64();
                            prop_assert!(share_used <= share + 1e-6, "{share_used} of {share}");
                        }
                        it.on(Event::Started, now);
                        flying = Some(now);
                        requested &= trigger != Trigger::OnDemand;
                    }
                    Action::Idle | Action::Finish => {}
                }
            }
        }

        #[test]
        fn an_undisturbed_job_gets_every_tick(interval_ms in 1000..100_000u64, count in 1..50u64) {
            let interval = Duration::from_millis(interval_ms);
            let config = ScheduleConfig { interval: Some(interval), ..ScheduleConfig::default() };
            let mut it = Schedule::new(config).unwrap();
            it.on(Event::JobStarted, Duration::ZERO);
            let mut now = Duration::ZERO;
            for tick in 1..=count {
                let Action::WaitUntil(at) = it.next(now) else { return Err(TestCaseError::fail("no tick")) };
                prop_assert_eq!(at, interval * tick as u32);
                prop_assert_eq!(it.next(at), Action::Start(Trigger::Interval));
                it.on(Event::Started, at);
                now = at + Duration::from_millis(10);
                it.on(Event::Committed { stop: Duration::from_millis(10) }, now);
            }
        }

        #[test]
        fn times_at_the_end_of_the_world_do_not_overflow(a in any::<u64>(), b in any::<u64>(), nanos in 1..u64::MAX) {
            let config = ScheduleConfig { interval: Some(Duration::from_nanos(nanos)), max_stop_share: 1e-9, ..ScheduleConfig::default() };
            let mut it = Schedule::new(config).unwrap();
            it.on(Event::JobStarted, Duration::from_secs(a));
            it.on(Event::Requested, Duration::MAX);
            it.on(Event::Started, Duration::MAX);
            it.on(Event::Failed { kind: FailureKind::Transient, stop: Duration::from_secs(b) }, Duration::MAX);
            let _ = it.next(Duration::MAX);
        }
    }
}
