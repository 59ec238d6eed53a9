//! Checkpoints and resumes as traces, sent to a collector by OTLP: `--otlp-endpoint URL`.
//!
//! ```text
//!  checkpoint ────────────────────────────────────────────────▶ visible
//!     ├ stop ───────────────────────────────────────▶
//!     │    ├ quiesce ─▶├ import ─▶├ name ─▶├ hold_drain ─▶      sidecar
//!     │    │           ├ detach ─▶├ control_checkpoint ─▶├ criu ─▶├ control_restore ─▶   agent
//!     │    │                                                        └ attach ─▶├ held_again ─▶
//!     ├──────────────────────────────────────────────── drain ─▶├ commit ─▶   store
//!     └──────────────────────────────────────────────── cpu_image ─▶
//! ```
//!
//! # Rules
//!
//! * Spans are made of events, when the work that they tell of is over. Nothing waits for the collector: spans that it does not take in time are
//!   dropped, by the exporter, which says so in the log.
//! * What is reported of a phase is how long it took: [`timeline`] says when it began. Phases of a resume overlap in part: those that do are attributes of
//!   its span.
//! * Names and attributes stay as they are; new ones may come.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Span as _, SpanKind, Status, TraceContextExt as _, Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::report::event::{Event, Record};
use crate::report::shared::Shared;
use crate::report::status::{CheckpointReport, LEFT_TO_JOB, RemoteReport};
use crate::report::timeline;

/// How long the collector may take for what it is sent.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long the sidecar waits at its end for spans that are left.
pub(super) const LAST_SPANS: Duration = Duration::from_secs(2);

/// The path at which collectors take traces, where an address has none.
const PATH: &str = "v1/traces";

/// Work that is over. Times in ms since 1970.
#[derive(Debug, Clone, PartialEq)]
struct Span {
    name: &'static str,
    begins: f64,
    ends: f64,
    attributes: Vec<KeyValue>,
    /// Why it failed.
    failure: Option<String>,
    parts: Vec<Span>,
}

impl Span {
    fn new(name: &'static str, begins: f64, ends: f64) -> Span {
        Span {
            name,
            begins,
            ends: ends.max(begins),
            attributes: Vec::new(),
            failure: None,
            parts: Vec::new(),
        }
    }

    fn with(mut self, name: &'static str, value: impl Into<opentelemetry::Value>) -> Span {
        self.attributes.push(KeyValue::new(name, value));
        self
    }

    /// Adds parts that follow each other from a time on, as far as they were measured.
    fn follow(
        &mut self,
        mut at: f64,
        names: &[&'static str],
        took: &BTreeMap<String, f64>,
    ) -> &mut Span {
        for &name in names {
            if let Some(ms) = took.get(name) {
                self.parts.push(Span::new(name, at, at + ms));
                at += ms;
            }
        }
        self
    }
}

/// Numbers in traces have signs.
fn number(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn stored(report: &CheckpointReport) -> Span {
    let took = &report.parts_ms;
    let visible = report.taken_ms as f64;
    let mut checkpoint = Span::new("checkpoint", visible - report.seconds * 1e3, visible)
        .with("phos.checkpoint", number(report.id))
        .with("phos.trigger", report.trigger.clone())
        .with("phos.place", if report.local { "local" } else { "store" })
        .with("phos.bytes.total", number(report.total_bytes))
        .with("phos.bytes.changed", number(report.changed_bytes))
        .with("phos.bytes.copied", number(report.copied_bytes))
        .with("phos.bytes.stored", number(report.stored_bytes));
    if let Some(step) = report.step {
        checkpoint = checkpoint.with("phos.step", number(step));
    }
    if let Some(left) = took.get(LEFT_TO_JOB) {
        checkpoint = checkpoint.with("phos.left_to_job_ms", *left);
    }
    let held = report.held_at_ms as f64;
    let runs = held + report.stop_ms;
    let mut stop = Span::new("stop", held, runs);
    let phases = timeline::of_stop(took, report.stop_ms).into_iter();
    let phases = phases.map(|phase| Span::new(phase.name, held + phase.begins, held + phase.ends));
    stop.parts.extend(phases);
    checkpoint.parts.push(stop);
    checkpoint.follow(runs, &["drain"], took);
    let drain = checkpoint.parts.last_mut().filter(|p| p.name == "drain");
    if let (Some(drain), Some(yielded)) = (drain, took.get("yielded")) {
        let yielded = KeyValue::new("phos.yielded_ms", *yielded);
        drain.attributes.push(yielded);
    }
    checkpoint.follow(runs, &["cpu_image"], took);
    if let Some(commit) = took.get("commit") {
        checkpoint
            .parts
            .push(Span::new("commit", visible - commit, visible));
    }
    checkpoint
}

fn copied(at: f64, report: &RemoteReport) -> Span {
    Span::new("copy", at - report.seconds * 1e3, at)
        .with("phos.checkpoint", number(report.id))
        .with("phos.checkpoint.local", number(report.local))
        .with("phos.bytes.sent", number(report.sent_bytes))
}

/// What is known from one event to the next.
#[derive(Debug, Default)]
struct Told {
    /// When the checkpoint was begun that has not ended yet.
    begun: Option<f64>,
}

impl Told {
    /// The work that is over by what happened, if it is any that is traced.
    fn span(&mut self, record: &Record) -> Option<Span> {
        let at = record.at_ms as f64;
        match &record.event {
            Event::CheckpointStarted { .. } => {
                self.begun = Some(at);
                None
            }
            Event::CheckpointStored(report) => {
                self.begun = None;
                Some(stored(report))
            }
            Event::CheckpointFailed {
                trigger,
                reason,
                message,
                stop_ms,
            } => {
                let begun = self.begun.take().unwrap_or(at - stop_ms);
                let mut span = Span::new("checkpoint", begun, at)
                    .with("phos.trigger", trigger.clone())
                    .with("phos.reason", reason.name())
                    .with("phos.stop_ms", *stop_ms);
                span.failure = Some(message.clone());
                Some(span)
            }
            Event::CheckpointCopied(report) => Some(copied(at, report)),
            Event::CopyFailed { message } => {
                let mut span = Span::new("copy", at, at);
                span.failure = Some(message.clone());
                Some(span)
            }
            Event::JobResumed(resumed) => {
                let mut span = Span::new("resume", at - resumed.seconds * 1e3, at)
                    .with("phos.checkpoint", resumed.checkpoint.clone())
                    .with("phos.bytes.total", number(resumed.total_bytes))
                    .with("phos.bytes.fetched", number(resumed.fetched_bytes));
                let took = &resumed.phases_ms;
                for (phase, name) in [
                    ("memory", "phos.memory_ms"),
                    ("transfer", "phos.transfer_ms"),
                    ("verify", "phos.verify_ms"),
                    ("files", "phos.files_ms"),
                ] {
                    if let Some(ms) = took.get(phase) {
                        span = span.with(name, *ms);
                    }
                }
                let last = ["criu", "control_restore", "wait", "attach"];
                let whole: f64 = last.iter().filter_map(|name| took.get(*name)).sum();
                span.follow(at - whole, &last, took);
                Some(span)
            }
            Event::RestoreFailed {
                checkpoint,
                message,
            } => {
                let mut span =
                    Span::new("resume", at, at).with("phos.checkpoint", checkpoint.clone());
                span.failure = Some(message.clone());
                Some(span)
            }
            _ => None,
        }
    }
}

fn time(ms: f64) -> SystemTime {
    UNIX_EPOCH + Duration::try_from_secs_f64(ms / 1e3).unwrap_or_default()
}

/// Hands a span and its parts to the exporter.
fn tell(tracer: &SdkTracer, span: Span, parent: &Context) {
    let mut told = tracer
        .span_builder(span.name)
        .with_kind(SpanKind::Internal)
        .with_start_time(time(span.begins))
        .with_attributes(span.attributes)
        .start_with_context(tracer, parent);
    if let Some(failure) = span.failure {
        told.set_status(Status::error(failure));
    }
    let within = parent.with_remote_span_context(told.span_context().clone());
    for part in span.parts {
        tell(tracer, part, &within);
    }
    told.end_with_timestamp(time(span.ends));
}

/// The collector's address for traces.
///
/// # Errors
/// Why it is none, and what is.
pub fn endpoint(text: &str) -> Result<String, String> {
    let mut url = reqwest::Url::parse(text)
        .map_err(|e| format!("{e}: give an address such as http://127.0.0.1:4318"))?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err("give an http or https address such as http://127.0.0.1:4318".into());
    }
    if url.path() == "/" {
        url.set_path(PATH);
    }
    Ok(url.into())
}

fn provider(endpoint: &str, job: &str) -> Result<SdkTracerProvider, ExporterBuildError> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_endpoint(endpoint)
        .with_timeout(PATIENCE)
        .build()?;
    // The environment adds to it, as everywhere (OTEL_RESOURCE_ATTRIBUTES, OTEL_SERVICE_NAME).
    let resource = Resource::builder()
        .with_attribute(KeyValue::new("phos.job", job.to_owned()))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let resource = match std::env::var_os("OTEL_SERVICE_NAME") {
        Some(_) => resource,
        None => resource.with_service_name("phos-ft"),
    };
    Ok(SdkTracerProvider::builder()
        .with_resource(resource.build())
        .with_batch_exporter(exporter)
        .build())
}

/// Sends what happens after this number to a collector, until nothing happens any more.
pub(super) async fn follow(endpoint: String, status: Shared, after: u64) {
    let job = status.lock().job.clone();
    // Its HTTP client has a runtime of its own, which must not be made within another.
    let made = tokio::task::spawn_blocking(move || provider(&endpoint, &job)).await;
    let provider = match made {
        Ok(Ok(provider)) => provider,
        Ok(Err(e)) => {
            tracing::error!(error = %e, "there are no traces: check --otlp-endpoint");
            return;
        }
        Err(_) => return,
    };
    let tracer = provider.tracer("phos-ft");
    let mut told = Told::default();
    let mut follower = status.follow(after);
    while let Some(records) = follower.next(1).await {
        for record in records {
            if let Some(span) = told.span(&record) {
                tell(&tracer, span, &Context::new());
            }
        }
    }
    let ended = tokio::task::spawn_blocking(move || provider.shutdown_with_timeout(LAST_SPANS));
    if let Ok(Err(e)) = ended.await {
        tracing::warn!(error = %e, "the collector of --otlp-endpoint has not taken the last spans");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::reason::FailureReason;

    fn report() -> CheckpointReport {
        let parts = [
            ("quiesce", 20.0),
            ("import", 1.0),
            ("name", 9.0),
            ("hold_drain", 70.0),
            ("detach", 10.0),
            ("control_checkpoint", 100.0),
            ("criu", 200.0),
            ("control_restore", 50.0),
            ("attach", 15.0),
            ("drain", 500.0),
            ("yielded", 120.0),
            ("cpu_image", 900.0),
            ("commit", 30.0),
            (LEFT_TO_JOB, 800.0),
        ];
        CheckpointReport {
            id: 7,
            local: false,
            durability: None,
            trigger: "interval".into(),
            taken_ms: 10_000,
            held_at_ms: 8_000,
            step: Some(41),
            stop_ms: 400.0,
            parts_ms: parts.map(|(name, ms)| (name.to_owned(), ms)).into(),
            rates: BTreeMap::new(),
            total_bytes: 4,
            changed_bytes: 3,
            copied_bytes: 2,
            stored_bytes: 1,
            seconds: 2.5,
        }
    }

    fn flat(span: &Span, found: &mut Vec<(&'static str, f64, f64)>) {
        found.push((span.name, span.begins, span.ends));
        for part in &span.parts {
            flat(part, found);
        }
    }

    #[test]
    fn phases_of_a_checkpoint_follow_each_other() {
        let mut found = Vec::new();
        flat(&stored(&report()), &mut found);
        assert_eq!(
            found,
            [
                ("checkpoint", 7500.0, 10_000.0),
                ("stop", 8000.0, 8400.0),
                ("quiesce", 8000.0, 8020.0),
                ("import", 8020.0, 8021.0),
                ("name", 8021.0, 8030.0),
                ("hold_drain", 8030.0, 8100.0),
                ("detach", 8020.0, 8030.0),
                ("control_checkpoint", 8030.0, 8130.0),
                ("criu", 8130.0, 8330.0),
                ("control_restore", 8330.0, 8380.0),
                ("attach", 8385.0, 8400.0),
                ("drain", 8400.0, 8900.0),
                ("cpu_image", 8400.0, 9300.0),
                ("commit", 9970.0, 10_000.0),
            ]
        );
    }

    #[test]
    fn a_drain_says_how_long_it_gave_way() {
        let checkpoint = stored(&report());
        let drain = checkpoint.parts.iter().find(|part| part.name == "drain");
        let yielded = KeyValue::new("phos.yielded_ms", 120.0);
        assert_eq!(drain.unwrap().attributes, [yielded]);
    }

    #[test]
    fn a_checkpoint_says_how_much_longer_it_took_beside_a_busy_job() {
        let left = KeyValue::new("phos.left_to_job_ms", 800.0);
        assert!(stored(&report()).attributes.contains(&left));
        assert_eq!(report().took_in_full(), Duration::from_millis(1700));
    }

    #[test]
    fn a_checkpoint_that_failed_lasts_from_its_begin() {
        let mut told = Told::default();
        let mut span = |seq, at_ms, event| told.span(&Record { seq, at_ms, event });
        let trigger = || "interval".to_owned();
        let begun = span(1, 1000, Event::CheckpointStarted { trigger: trigger() });
        assert_eq!(begun, None);
        let failed = Event::CheckpointFailed {
            trigger: trigger(),
            reason: FailureReason::NotQuiet,
            message: "busy".into(),
            stop_ms: 250.0,
        };
        let first = span(2, 3000, failed.clone()).unwrap();
        assert_eq!((first.begins, first.ends), (1000.0, 3000.0));
        assert_eq!(first.failure.as_deref(), Some("busy"));
        // Of one whose begin was not heard of, the stop is known.
        let second = span(3, 4000, failed).unwrap();
        assert_eq!((second.begins, second.ends), (3750.0, 4000.0));
    }

    #[test]
    fn addresses_of_collectors() {
        let good = |text| endpoint(text).unwrap();
        assert_eq!(
            good("http://127.0.0.1:4318"),
            "http://127.0.0.1:4318/v1/traces"
        );
        assert_eq!(good("https://c.example/x"), "https://c.example/x");
        for bad in ["127.0.0.1:4318", "collector", "ftp://c.example", ""] {
            assert!(endpoint(bad).unwrap_err().contains("4318"), "{bad}");
        }
    }
}
