//! The figures of a job, in the OpenMetrics text format: counters and histograms that follow from what happened, and gauges of what is
//! the case when they are asked for.
//!
//! Counts begin with the sidecar, as Prometheus expects of a process: what happened before is only in the gauges that say what is the case.
//!
//! Units are seconds and bytes. Labels have few values each, which are known in advance: none is a rank, a path or a pod.
//! `docs/metrics.md` lists them all, and a test compares the two.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use phos_policies::goodput::Goodput;
use phos_policies::schedule::Trigger;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

use crate::report::event::{After, Event, FailureReason, Place, Record, Resumed};
use crate::report::status::{CheckpointReport, Report, Shared};

/// Bounds of the histograms of stops, in seconds.
const STOPS: [f64; 15] = [
    0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 60.0,
];
/// Bounds of the histograms of whole checkpoints and restores, in seconds.
const WHOLES: [f64; 13] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 1200.0,
];
/// Parts of a checkpoint that are not parts of its stop.
const AFTER_THE_STOP: [&str; 3] = ["drain", "cpu_image", "commit"];
/// The label of the whole, beside its parts.
const WHOLE: &str = "total";
/// Checkpoints that are kept on this machine: older ones are gone, copied or not.
const KEPT_HERE: usize = 2;
/// What a resume followed.
const AFTER_START: &str = "start";
const AFTER_CRASH: &str = "crash";
/// Events that are taken in at a time.
const AT_A_TIME: usize = 256;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Phase {
    phase: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Outcome {
    result: &'static str,
    reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Kind {
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Where {
    place: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Source {
    source: &'static str,
    phase: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reason {
    reason: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Version {
    version: &'static str,
}

type Seconds = Counter<f64, AtomicU64>;
type Level = Gauge<f64, AtomicU64>;
type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

fn stops() -> Histogram {
    Histogram::new(STOPS)
}

fn wholes() -> Histogram {
    Histogram::new(WHOLES)
}

/// The figures.
#[derive(Debug)]
struct Figures {
    stop: Histograms<Phase>,
    duration: Histogram,
    checkpoints: Family<Outcome, Counter>,
    bytes: Family<Kind, Counter>,
    last: Family<Where, Level>,
    restore: Histograms<Source>,
    restarts: Family<Reason, Counter>,
    lost: Seconds,
    retries: Family<Reason, Counter>,
    unprotected: Family<Reason, Gauge>,
    backlog: Gauge,
    store_errors: Counter,
    goodput: Level,
    running: Gauge,
    started: Level,
    interval: Level,
}

impl Figures {
    fn new(registry: &mut Registry) -> Self {
        let figures = Self {
            stop: Family::new_with_constructor(stops),
            duration: wholes(),
            checkpoints: Family::default(),
            bytes: Family::default(),
            last: Family::default(),
            restore: Family::new_with_constructor(wholes),
            restarts: Family::default(),
            lost: Seconds::default(),
            retries: Family::default(),
            unprotected: Family::default(),
            backlog: Gauge::default(),
            store_errors: Counter::default(),
            goodput: Level::default(),
            running: Gauge::default(),
            started: Level::default(),
            interval: Level::default(),
        };
        let r = registry;
        r.register_with_unit(
            "checkpoint_stop",
            "How long checkpoints held the job, by part of the stop; `total` is the whole",
            Unit::Seconds,
            figures.stop.clone(),
        );
        r.register_with_unit(
            "checkpoint_duration",
            "From the beginning of a checkpoint until it could be restored",
            Unit::Seconds,
            figures.duration.clone(),
        );
        r.register(
            "checkpoints",
            "Checkpoints that were begun: `stored` by what triggered them, `failed` by why",
            figures.checkpoints.clone(),
        );
        r.register_with_unit(
            "checkpoint",
            "Bytes of checkpoints: device memory whose content was not stored yet, bytes copied off the GPUs, and what the store grew by",
            Unit::Bytes,
            figures.bytes.clone(),
        );
        r.register_with_unit(
            "last_checkpoint_timestamp",
            "When the newest checkpoint was taken that is on this machine, and that is in the store, since 1970",
            Unit::Seconds,
            figures.last.clone(),
        );
        r.register_with_unit(
            "restore_duration",
            "How long resumes took, by where the checkpoint was and by part; `total` is the whole",
            Unit::Seconds,
            figures.restore.clone(),
        );
        r.register(
            "restarts",
            "Times that the job was resumed: after a crash, or at a start of phos-ft",
            figures.restarts.clone(),
        );
        r.register_with_unit(
            "lost",
            "Training that was done and lost, as it was newer than the checkpoint that was resumed",
            Unit::Seconds,
            figures.lost.clone(),
        );
        r.register(
            "quiesce_retries",
            "Times that a checkpoint held the job and let it run on, as its GPU work did not end in time",
            figures.retries.clone(),
        );
        r.register(
            "unprotected",
            "Whether what the job does now would be lost: 1 for the reason that it would, `none` with 0 if it would not",
            figures.unprotected.clone(),
        );
        r.register_with_unit(
            "upload_backlog",
            "Bytes of checkpoints that are on this machine only",
            Unit::Bytes,
            figures.backlog.clone(),
        );
        r.register(
            "store_errors",
            "Times that the store, or the disk of this machine, did not take or give what it should",
            figures.store_errors.clone(),
        );
        r.register(
            "goodput_ratio",
            "Which part of the time the job trained and kept the result, since this sidecar started",
            figures.goodput.clone(),
        );
        r.register(
            "job_running",
            "Whether the job's processes run",
            figures.running.clone(),
        );
        r.register_with_unit(
            "job_started_timestamp",
            "When the job was last started or resumed, as far as is known on this machine, since 1970",
            Unit::Seconds,
            figures.started.clone(),
        );
        r.register_with_unit(
            "checkpoint_interval",
            "The time between checkpoints at present; 0 if there are none by themselves",
            Unit::Seconds,
            figures.interval.clone(),
        );
        let build = Family::<Version, Gauge>::default();
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&Version { version }).set(1);
        r.register("build_info", "The version of phos-ft", build);
        figures
    }
}

impl Figures {
    fn begin_with_zero(&self) {
        let outcome = |result, reason: &str| {
            let reason = reason.to_owned();
            drop(self.checkpoints.get_or_create(&Outcome { result, reason }));
        };
        for trigger in Trigger::ALL {
            outcome("stored", trigger.as_str());
        }
        for reason in FailureReason::ALL {
            outcome("failed", reason.name());
        }
        for reason in [FailureReason::NotQuiet, FailureReason::Capturing] {
            let reason = reason.name();
            drop(self.retries.get_or_create(&Reason { reason }));
        }
        for reason in [AFTER_START, AFTER_CRASH] {
            drop(self.restarts.get_or_create(&Reason { reason }));
        }
        for kind in ["changed", "copied", "stored"] {
            drop(self.bytes.get_or_create(&Kind { kind }));
        }
    }
}

/// What is known between two events.
#[derive(Debug)]
struct State {
    registry: Registry,
    figures: Figures,
    account: Goodput,
    /// The last event before this sidecar.
    before: u64,
    /// The last event that was taken in.
    seq: u64,
    /// Why what the job does would be lost.
    unprotected: Option<FailureReason>,
    /// How long the checkpoint that is being made has held the job in vain, in ms.
    retried_ms: f64,
    /// Bytes of the checkpoints on this machine that are newer than what was copied, by their numbers there.
    backlog: Vec<(u64, u64)>,
}

/// The figures of a job, and what they are made from.
#[derive(Debug)]
pub struct Metrics(Mutex<State>);

impl Metrics {
    /// Of a sidecar before which there was this event. What can be counted is there with 0 from the beginning: of a series that begins with 1,
    /// nobody could tell that anything was counted.
    pub(crate) fn new(before: u64) -> Self {
        let mut registry = Registry::with_prefix("phos");
        let figures = Figures::new(&mut registry);
        figures.begin_with_zero();
        Self(Mutex::new(State {
            registry,
            figures,
            account: Goodput::default(),
            before,
            seq: 0,
            unprotected: None,
            retried_ms: 0.0,
            backlog: Vec::new(),
        }))
    }
}

/// Takes in what happens, for as long as anything does.
pub(super) async fn follow(metrics: Arc<Metrics>, status: Shared) {
    let mut newest = status.journal().newest();
    loop {
        metrics.catch_up(&status);
        if newest.changed().await.is_err() {
            return;
        }
    }
}

impl Metrics {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn catch_up(&self, status: &Shared) {
        let mut state = self.lock();
        loop {
            let records = status.journal().after(state.seq, AT_A_TIME);
            if records.is_empty() {
                return;
            }
            for record in &records {
                state.take(record);
            }
        }
    }

    /// The figures as they are at a time in ms since 1970, as text.
    ///
    /// # Errors
    /// Those of the formatter.
    pub(crate) fn encode(&self, status: &Shared, now_ms: u64) -> Result<String, fmt::Error> {
        self.catch_up(status);
        let report = status.report();
        let state = self.lock();
        state.set_gauges(&report, Duration::from_millis(now_ms));
        let mut text = String::new();
        text::encode(&mut text, &state.registry)?;
        Ok(text)
    }
}

impl State {
    /// Takes in an event; those that are known already change nothing.
    fn take(&mut self, record: &Record) {
        if record.seq <= self.seq {
            return;
        }
        self.seq = record.seq;
        self.note(&record.event, Duration::from_millis(record.at_ms));
        if record.seq > self.before {
            self.count(record);
        }
    }

    /// What is the case since an event, whoever saw it.
    fn note(&mut self, event: &Event, at: Duration) {
        match event {
            Event::JobStarted { .. } | Event::JobResumed(_) => {
                self.unprotected = None;
                self.figures.started.set(at.as_secs_f64());
            }
            // It may have run for long.
            Event::JobFound if self.figures.started.get() == 0.0 => {
                self.figures.started.set(at.as_secs_f64());
            }
            Event::CheckpointStored(report) => {
                let place = match report.local {
                    true => Place::Local,
                    false => Place::Store,
                };
                self.newest(place, report.taken_ms);
                if report.local {
                    self.backlog.push((report.id, report.stored_bytes));
                    let gone = self.backlog.len().saturating_sub(KEPT_HERE);
                    self.backlog.drain(..gone);
                } else {
                    self.backlog.clear();
                }
                self.unprotected = None;
            }
            Event::CheckpointCopied(copy) => {
                self.backlog.retain(|(local, _)| *local > copy.local);
                self.newest(Place::Store, copy.taken_ms);
            }
            Event::Unprotected { reason, .. } => self.unprotected = Some(*reason),
            Event::Protected => self.unprotected = None,
            _ => {}
        }
    }

    fn newest(&self, place: Place, taken_ms: u64) {
        let place = place.name();
        let last = self.figures.last.get_or_create(&Where { place });
        last.set(taken_ms as f64 / 1e3);
    }

    fn count(&mut self, record: &Record) {
        let now = Duration::from_millis(record.at_ms);
        self.account.watched(now);
        match &record.event {
            Event::JobStarted { .. } | Event::JobFound => self.account.runs(now),
            Event::JobResumed(resumed) => self.resumed(resumed, now),
            Event::JobEnded { .. } | Event::AgentLost { .. } | Event::Fenced { .. } => {
                self.account.ends(now);
            }
            Event::CheckpointStarted { .. } => self.retried_ms = 0.0,
            Event::QuiesceRetried { reason, held_ms } => {
                let reason = reason.name();
                self.figures.retries.get_or_create(&Reason { reason }).inc();
                self.account.held(millis(*held_ms));
                self.retried_ms += held_ms;
            }
            Event::CheckpointStored(report) => self.stored(report, now),
            Event::CheckpointFailed {
                reason, stop_ms, ..
            } => {
                let outcome = Outcome {
                    result: "failed",
                    reason: reason.name().into(),
                };
                self.figures.checkpoints.get_or_create(&outcome).inc();
                if *reason == FailureReason::Store {
                    self.figures.store_errors.inc();
                }
                self.account.held(millis(stop_ms - self.retried_ms));
            }
            Event::CopyFailed { .. } | Event::StoreUnreachable { .. } | Event::Damaged { .. } => {
                self.figures.store_errors.inc();
            }
            Event::SidecarStarted { .. }
            | Event::CheckpointCopied(_)
            | Event::Unprotected { .. }
            | Event::Protected
            | Event::GivenUp { .. }
            | Event::RuledOut { .. }
            | Event::Possible
            | Event::RestoreFailed { .. }
            | Event::PreemptionNoticed { .. }
            | Event::PreemptionWithdrawn => {}
        }
    }

    fn stored(&mut self, report: &CheckpointReport, now: Duration) {
        let figures = &self.figures;
        let outcome = Outcome {
            result: "stored",
            reason: report.trigger.clone(),
        };
        figures.checkpoints.get_or_create(&outcome).inc();
        let observe = |phase: &str, ms: f64| {
            let phase = phase.to_owned();
            figures
                .stop
                .get_or_create(&Phase { phase })
                .observe(ms / 1e3);
        };
        observe(WHOLE, report.stop_ms);
        for (part, ms) in &report.parts_ms {
            if !AFTER_THE_STOP.contains(&part.as_str()) {
                observe(part, *ms);
            }
        }
        figures.duration.observe(report.seconds);
        for (kind, bytes) in [
            ("changed", report.changed_bytes),
            ("copied", report.copied_bytes),
            ("stored", report.stored_bytes),
        ] {
            figures.bytes.get_or_create(&Kind { kind }).inc_by(bytes);
        }
        let held_at = Duration::from_millis(report.held_at_ms);
        self.account.stored(report.taken_ms, held_at, now);
        self.account.held(millis(report.stop_ms));
    }

    fn resumed(&mut self, resumed: &Resumed, now: Duration) {
        let source = resumed.place.name();
        let observe = |phase: &str, seconds: f64| {
            let phase = phase.to_owned();
            self.figures
                .restore
                .get_or_create(&Source { source, phase })
                .observe(seconds);
        };
        observe(WHOLE, resumed.seconds);
        for (phase, ms) in &resumed.phases_ms {
            observe(phase, ms / 1e3);
        }
        let reason = match resumed.after {
            After::Start => AFTER_START,
            After::Crash => AFTER_CRASH,
        };
        self.figures
            .restarts
            .get_or_create(&Reason { reason })
            .inc();
        let lost = self.account.resumed(resumed.taken_ms, now);
        self.figures.lost.inc_by(lost.as_secs_f64());
    }

    fn set_gauges(&self, report: &Report, now: Duration) {
        let figures = &self.figures;
        let reason = match (&report.unsupported, &report.history_away, self.unprotected) {
            (Some(_), _, _) => Some(FailureReason::Unsupported.name()),
            (_, Some(_), _) => Some("history-away"),
            (_, _, reason) => reason.map(FailureReason::name),
        };
        figures.unprotected.clear();
        let (label, value) = reason.map_or(("none", 0), |reason| (reason, 1));
        let current = Reason { reason: label };
        figures.unprotected.get_or_create(&current).set(value);
        let backlog = self.backlog.iter().map(|(_, bytes)| *bytes).sum::<u64>();
        figures
            .backlog
            .set(i64::try_from(backlog).unwrap_or(i64::MAX));
        figures.goodput.set(self.account.ratio(now).unwrap_or(0.0));
        figures.running.set(i64::from(self.account.is_running()));
        figures.interval.set(report.interval_seconds);
    }
}

fn millis(ms: f64) -> Duration {
    Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use phos_storage::UnixMillis;

    use super::*;
    use crate::report::event::Ending;
    use crate::report::status::RemoteReport;

    const DOCUMENTED: &str = include_str!("../../../docs/metrics.md");

    fn checkpoint(id: u64, local: bool, at: u64) -> Event {
        Event::CheckpointStored(Box::new(CheckpointReport {
            id,
            local,
            durability: None,
            trigger: "interval".into(),
            taken_ms: at,
            held_at_ms: at - 2_000,
            stop_ms: 500.0,
            parts_ms: BTreeMap::from([("criu".into(), 300.0), ("commit".into(), 9.0)]),
            rates: BTreeMap::new(),
            total_bytes: 400,
            changed_bytes: 30,
            copied_bytes: 20,
            stored_bytes: 10,
            seconds: 2.0,
        }))
    }

    fn resumed(taken_ms: u64) -> Event {
        Event::JobResumed(Resumed {
            checkpoint: "2".into(),
            place: Place::Local,
            taken_ms,
            after: After::Crash,
            seconds: 3.0,
            phases_ms: BTreeMap::from([("criu".into(), 1000.0)]),
            total_bytes: 1,
            fetched_bytes: 1,
        })
    }

    fn lines(status: &Shared, now: u64) -> String {
        let text = Metrics::new(0).encode(status, now).unwrap();
        assert!(text.ends_with("# EOF\n"), "{text}");
        text
    }

    #[track_caller]
    fn has(text: &str, line: &str) {
        assert!(text.lines().any(|l| l == line), "no {line} in\n{text}");
    }

    /// A life: two checkpoints on this machine, of which the first is copied, a crash half a minute later, a resume.
    fn a_life() -> Shared {
        let status = Shared::default();
        let happened = |s: u64, event| status.happened(UnixMillis(s * 1000), event);
        happened(
            1000,
            Event::SidecarStarted {
                version: "1".into(),
            },
        );
        happened(1000, Event::JobStarted { command: vec![] });
        happened(1062, checkpoint(1, true, 1_062_000));
        let copy = RemoteReport {
            id: 1,
            local: 1,
            taken_ms: 1_062_000,
            sent_bytes: 1,
            seconds: 1.0,
        };
        happened(1070, Event::CheckpointCopied(copy));
        let retried = Event::QuiesceRetried {
            reason: FailureReason::NotQuiet,
            held_ms: 500.0,
        };
        happened(1120, retried);
        happened(1122, checkpoint(2, true, 1_122_000));
        let (how, exit) = (Ending::Crashed, "signal 9".into());
        happened(1150, Event::JobEnded { how, exit });
        happened(1160, resumed(1_122_000));
        status
    }

    #[test]
    fn figures_follow_from_what_happened() {
        let status = a_life();
        status.lock().interval_seconds = 60.0;
        let text = lines(&status, 1_200_000);
        for line in [
            r#"phos_checkpoints_total{result="stored",reason="interval"} 2"#,
            r#"phos_checkpoint_stop_seconds_sum{phase="total"} 1.0"#,
            r#"phos_checkpoint_stop_seconds_count{phase="criu"} 2"#,
            r#"phos_checkpoint_bytes_total{kind="copied"} 40"#,
            r#"phos_last_checkpoint_timestamp_seconds{place="local"} 1122.0"#,
            r#"phos_last_checkpoint_timestamp_seconds{place="store"} 1062.0"#,
            r#"phos_restore_duration_seconds_sum{source="local",phase="total"} 3.0"#,
            r#"phos_restarts_total{reason="crash"} 1"#,
            r#"phos_quiesce_retries_total{reason="not-quiet"} 1"#,
            r#"phos_unprotected{reason="none"} 0"#,
            "phos_upload_backlog_bytes 10",
            // From 1120 on, less the stop.
            "phos_lost_seconds_total 29.5",
            "phos_job_running 1",
            "phos_job_started_timestamp_seconds 1160.0",
            "phos_checkpoint_interval_seconds 60.0",
            // 150 s and 40 s of which 1.5 s were stops, less what was lost, of 200 s.
            "phos_goodput_ratio 0.795",
        ] {
            has(&text, line);
        }
        assert!(!text.contains("commit"), "no part of the stop: {text}");
    }

    #[test]
    fn who_is_not_protected_is_so_for_one_reason() {
        let status = a_life();
        let reason = FailureReason::Store;
        let (trigger, message) = ("interval".to_owned(), "no route".to_owned());
        let failed = Event::CheckpointFailed {
            trigger,
            reason,
            message: message.clone(),
            stop_ms: 10.0,
        };
        status.happened(UnixMillis(1_180_000), failed);
        let since_ms = 1_122_000;
        let unprotected = Event::Unprotected {
            reason,
            message,
            since_ms,
        };
        status.happened(UnixMillis(1_180_000), unprotected);
        let text = lines(&status, 1_200_000);
        has(&text, r#"phos_unprotected{reason="store"} 1"#);
        has(
            &text,
            r#"phos_checkpoints_total{result="failed",reason="store"} 1"#,
        );
        has(&text, "phos_store_errors_total 1");
        assert!(!text.contains(r#"reason="none""#), "{text}");
        status.lock().unsupported = Some("a plug-in".into());
        let text = lines(&status, 1_200_000);
        has(&text, r#"phos_unprotected{reason="unsupported"} 1"#);
    }

    #[test]
    fn what_a_sidecar_before_saw_is_in_the_gauges_alone() {
        let status = a_life();
        let before = *status.journal().newest().borrow();
        let at = UnixMillis(2_000_000);
        status.happened(
            at,
            Event::SidecarStarted {
                version: "2".into(),
            },
        );
        status.happened(at, Event::JobFound);
        let text = Metrics::new(before).encode(&status, 2_100_000).unwrap();
        for line in [
            r#"phos_last_checkpoint_timestamp_seconds{place="local"} 1122.0"#,
            "phos_upload_backlog_bytes 10",
            "phos_lost_seconds_total 0.0",
            "phos_goodput_ratio 1.0",
            "phos_job_running 1",
        ] {
            has(&text, line);
        }
        let stored = r#"phos_checkpoints_total{result="stored",reason="interval"} 0"#;
        has(&text, stored);
        // All that this sidecar saw done is newer than that checkpoint.
        let (how, exit) = (Ending::Crashed, "code 1".into());
        status.happened(UnixMillis(2_050_000), Event::JobEnded { how, exit });
        status.happened(UnixMillis(2_060_000), resumed(1_122_000));
        let text = Metrics::new(before).encode(&status, 2_100_000).unwrap();
        has(&text, "phos_lost_seconds_total 50.0");
        has(&text, "phos_goodput_ratio 0.4");
    }

    #[test]
    fn only_what_is_kept_on_this_machine_waits_for_the_store() {
        let status = Shared::default();
        for id in 1..9 {
            status.happened(UnixMillis(id * 10_000), checkpoint(id, true, id * 10_000));
        }
        has(&lines(&status, 100_000), "phos_upload_backlog_bytes 20");
    }

    #[test]
    fn who_was_unprotected_is_not_once_there_is_a_checkpoint() {
        let status = a_life();
        let unprotected = Event::Unprotected {
            reason: FailureReason::Store,
            message: String::new(),
            since_ms: 1,
        };
        status.happened(UnixMillis(1_190_000), unprotected);
        status.happened(UnixMillis(1_195_000), checkpoint(3, true, 1_195_000));
        has(
            &lines(&status, 1_200_000),
            r#"phos_unprotected{reason="none"} 0"#,
        );
    }

    #[test]
    fn each_figure_is_documented_with_its_type_and_labels() {
        let text = lines(&a_life(), 1_200_000);
        let mut found = BTreeMap::new();
        for line in text.lines() {
            let words: Vec<_> = line.split(' ').collect();
            if let ["#", "TYPE", name, kind] = words[..] {
                let total = if kind == "counter" { "_total" } else { "" };
                found.insert(format!("{name}{total}"), kind);
            }
        }
        let row = |line: &'static str| {
            let cells: Vec<_> = line.split('|').map(str::trim).collect();
            let [_, name, kind, labels, ..] = cells[..] else {
                return None;
            };
            let name = name.strip_prefix("`phos_")?.strip_suffix('`')?;
            Some((format!("phos_{name}"), (kind, labels)))
        };
        let documented: BTreeMap<_, _> = DOCUMENTED.lines().filter_map(row).collect();
        let kinds: BTreeMap<_, _> = documented
            .iter()
            .map(|(n, (k, _))| (n.clone(), *k))
            .collect();
        assert_eq!(found, kinds);
        for (name, (_, labels)) in documented {
            let documented: BTreeSet<_> = labels.split('`').skip(1).step_by(2).collect();
            let of_this = |line: &&str| line.starts_with(&format!("{name}{{"));
            let Some(sample) = text.lines().find(of_this) else {
                continue;
            };
            let inside = sample.split(['{', '}']).nth(1).unwrap();
            let labels: BTreeSet<_> = inside
                .split(',')
                .map(|l| l.split('=').next().unwrap())
                .collect();
            assert_eq!(labels, documented, "{name}");
        }
    }
}
