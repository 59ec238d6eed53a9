//! How a job's figures follow from what happened, and their text in the OpenMetrics format: counters and histograms of events, and gauges of what is
//! the case when they are asked for.
//!
//! Counts begin with the sidecar, as Prometheus expects of a process: what happened before is only in the gauges that say what is the case.
//!
//! Units are seconds and bytes. Labels have few values each, which are known in advance: none is a rank, a path or a pod.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use phos_policies::goodput::Goodput;
use prometheus_client::encoding::text;
use prometheus_client::registry::Registry;

use super::figures::{
    AFTER_CRASH, AFTER_START, Figures, Kind, Outcome, Phase, Reason, Source, Where,
};
use crate::report::event::{After, Event, Place, Record, Resumed};
use crate::report::reason::FailureReason;
use crate::report::shared::Shared;
use crate::report::status::{CheckpointReport, LEFT_TO_JOB, Report};

/// Parts of a checkpoint that are not parts of its stop.
const AFTER_THE_STOP: [&str; 6] = [
    "beside",
    "drain",
    "yielded",
    "cpu_image",
    "commit",
    LEFT_TO_JOB,
];
/// The label of the whole, beside its parts.
const WHOLE: &str = "total";
/// Checkpoints that are kept on this machine: older ones are gone, copied or not.
const KEPT_HERE: usize = 2;
/// Events that are taken in at a time.
const AT_A_TIME: usize = 256;

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
    /// Of a sidecar before which there was this event.
    pub(crate) fn new(before: u64) -> Self {
        let mut registry = Registry::with_prefix("phos");
        let figures = Figures::new(&mut registry);
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
    let mut follower = status.follow(0);
    while let Some(records) = follower.next(AT_A_TIME).await {
        let mut state = metrics.lock();
        records.iter().for_each(|record| state.take(record));
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
                self.figures.present.started.set(at.as_secs_f64());
            }
            // It may have run for long.
            Event::JobFound if self.figures.present.started.get() == 0.0 => {
                self.figures.present.started.set(at.as_secs_f64());
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
        let last = self.figures.present.newest.get_or_create(&Where { place });
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
                self.figures
                    .checkpoints
                    .retries
                    .get_or_create(&Reason { reason })
                    .inc();
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
                self.figures.checkpoints.ended.get_or_create(&outcome).inc();
                if *reason == FailureReason::Store {
                    self.figures.checkpoints.store_errors.inc();
                }
                self.account.held(millis(stop_ms - self.retried_ms));
            }
            Event::CopyFailed { .. } | Event::StoreUnreachable { .. } | Event::Damaged { .. } => {
                self.figures.checkpoints.store_errors.inc();
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
        let figures = &self.figures.checkpoints;
        let outcome = Outcome {
            result: "stored",
            reason: report.trigger.clone(),
        };
        figures.ended.get_or_create(&outcome).inc();
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
                .resumes
                .duration
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
            .resumes
            .count
            .get_or_create(&Reason { reason })
            .inc();
        let lost = self.account.resumed(resumed.taken_ms, now);
        self.figures.resumes.lost.inc_by(lost.as_secs_f64());
    }

    fn set_gauges(&self, report: &Report, now: Duration) {
        let figures = &self.figures.present;
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

    /// In the local tier.
    fn checkpoint(id: u64, at: u64) -> Event {
        Event::CheckpointStored(Box::new(CheckpointReport {
            id,
            local: true,
            durability: None,
            trigger: "interval".into(),
            taken_ms: at,
            held_at_ms: at - 2_000,
            step: None,
            stop_ms: 500.0,
            parts_ms: BTreeMap::from([
                ("criu".into(), 300.0),
                ("commit".into(), 9.0),
                (LEFT_TO_JOB.into(), 9.5),
            ]),
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
        happened(1062, checkpoint(1, 1_062_000));
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
        happened(1122, checkpoint(2, 1_122_000));
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
        for after in ["commit", LEFT_TO_JOB] {
            assert!(!text.contains(after), "no part of the stop: {text}");
        }
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
        let before = status.journal().newest();
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
            status.happened(UnixMillis(id * 10_000), checkpoint(id, id * 10_000));
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
        status.happened(UnixMillis(1_195_000), checkpoint(3, 1_195_000));
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
