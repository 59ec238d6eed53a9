//! Which figures there are: their names, units, labels and bounds, and what each of them says.
//!
//! `docs/metrics.md` lists them, and a test compares the two.

use std::sync::atomic::AtomicU64;

use phos_policies::schedule::Trigger;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry, Unit};

use crate::report::reason::FailureReason;

/// Bounds of the histograms of stops, in seconds.
const STOPS: [f64; 15] = [
    0.01, 0.025, 0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1.0, 1.5, 2.5, 5.0, 10.0, 20.0, 60.0,
];
/// Bounds of the histograms of whole checkpoints and restores, in seconds.
const WHOLES: [f64; 13] = [
    0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0, 1200.0,
];
/// What a resume followed: the start of phos-ft.
pub(super) const AFTER_START: &str = "start";
/// A crash of the job.
pub(super) const AFTER_CRASH: &str = "crash";

/// A part of a stop.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Phase {
    pub(super) phase: String,
}

/// How a checkpoint ended, and what triggered it or why it failed.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Outcome {
    pub(super) result: &'static str,
    pub(super) reason: String,
}

/// What the bytes of a checkpoint were.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Kind {
    pub(super) kind: &'static str,
}

/// Where a checkpoint is.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Where {
    pub(super) place: &'static str,
}

/// Where a resume came from, and a part of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Source {
    pub(super) source: &'static str,
    pub(super) phase: String,
}

/// Why something happened.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reason {
    pub(super) reason: &'static str,
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

/// Where figures are registered.
struct Under<'r>(&'r mut Registry);

impl Under<'_> {
    fn plain<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    fn of<M: Metric + Clone>(&mut self, unit: Unit, name: &str, help: &str, metric: M) -> M {
        self.0.register_with_unit(name, help, unit, metric.clone());
        metric
    }
}

/// Of checkpoints.
#[derive(Debug)]
pub(super) struct Checkpoints {
    pub(super) stop: Histograms<Phase>,
    pub(super) duration: Histogram,
    pub(super) ended: Family<Outcome, Counter>,
    pub(super) bytes: Family<Kind, Counter>,
    pub(super) retries: Family<Reason, Counter>,
    pub(super) store_errors: Counter,
}

impl Checkpoints {
    fn new(r: &mut Under<'_>) -> Self {
        Self {
            stop: r.of(
                Unit::Seconds,
                "checkpoint_stop",
                "How long checkpoints held the job, by part of the stop; `total` is the whole",
                Family::new_with_constructor(stops),
            ),
            duration: r.of(
                Unit::Seconds,
                "checkpoint_duration",
                "From the beginning of a checkpoint until it could be restored",
                wholes(),
            ),
            ended: r.plain(
                "checkpoints",
                "Checkpoints that were begun: `stored` by what triggered them, `failed` by why",
                Family::default(),
            ),
            bytes: r.of(
                Unit::Bytes,
                "checkpoint",
                "Bytes of checkpoints: device memory whose content was not stored yet, bytes copied off the GPUs, and what the store grew by",
                Family::default(),
            ),
            retries: r.plain(
                "quiesce_retries",
                "Times that a checkpoint held the job and let it run on, as its GPU work did not end in time",
                Family::default(),
            ),
            store_errors: r.plain(
                "store_errors",
                "Times that the store, or the disk of this machine, did not take or give what it should",
                Counter::default(),
            ),
        }
    }
}

/// Of the job's resumes, and what they cost.
#[derive(Debug)]
pub(super) struct Resumes {
    pub(super) duration: Histograms<Source>,
    pub(super) count: Family<Reason, Counter>,
    pub(super) lost: Seconds,
}

impl Resumes {
    fn new(r: &mut Under<'_>) -> Self {
        Self {
            duration: r.of(
                Unit::Seconds,
                "restore_duration",
                "How long resumes took, by where the checkpoint was and by part; `total` is the whole",
                Family::new_with_constructor(wholes),
            ),
            count: r.plain(
                "restarts",
                "Times that the job was resumed: after a crash, or at a start of phos-ft",
                Family::default(),
            ),
            lost: r.of(
                Unit::Seconds,
                "lost",
                "Training that was done and lost, as it was newer than the checkpoint that was resumed",
                Seconds::default(),
            ),
        }
    }
}

/// Of what is the case.
#[derive(Debug)]
pub(super) struct Present {
    pub(super) newest: Family<Where, Level>,
    pub(super) unprotected: Family<Reason, Gauge>,
    pub(super) backlog: Gauge,
    pub(super) goodput: Level,
    pub(super) running: Gauge,
    pub(super) started: Level,
    pub(super) interval: Level,
}

impl Present {
    fn new(r: &mut Under<'_>) -> Self {
        Self {
            newest: r.of(
                Unit::Seconds,
                "last_checkpoint_timestamp",
                "When the newest checkpoint was taken that is on this machine, and that is in the store, since 1970",
                Family::default(),
            ),
            unprotected: r.plain(
                "unprotected",
                "Whether what the job does now would be lost: 1 for the reason that it would, `none` with 0 if it would not",
                Family::default(),
            ),
            backlog: r.of(
                Unit::Bytes,
                "upload_backlog",
                "Bytes of checkpoints that are on this machine only",
                Gauge::default(),
            ),
            goodput: r.plain(
                "goodput_ratio",
                "Which part of the time the job trained and kept the result, since this sidecar started",
                Level::default(),
            ),
            running: r.plain(
                "job_running",
                "Whether the job's processes run",
                Gauge::default(),
            ),
            started: r.of(
                Unit::Seconds,
                "job_started_timestamp",
                "When the job was last started or resumed, as far as is known on this machine, since 1970",
                Level::default(),
            ),
            interval: r.of(
                Unit::Seconds,
                "checkpoint_interval",
                "The time between checkpoints at present; 0 if there are none by themselves",
                Level::default(),
            ),
        }
    }
}

/// All of them.
#[derive(Debug)]
pub(super) struct Figures {
    pub(super) checkpoints: Checkpoints,
    pub(super) resumes: Resumes,
    pub(super) present: Present,
}

impl Figures {
    /// Registers them. What can be counted is there with 0 from the beginning: of a series that begins with 1, nobody could tell that
    /// anything was counted.
    pub(super) fn new(registry: &mut Registry) -> Self {
        let mut under = Under(registry);
        let build = under.plain(
            "build_info",
            "The version of phos-ft",
            Family::<Version, Gauge>::default(),
        );
        let version = env!("CARGO_PKG_VERSION");
        build.get_or_create(&Version { version }).set(1);
        let figures = Self {
            checkpoints: Checkpoints::new(&mut under),
            resumes: Resumes::new(&mut under),
            present: Present::new(&mut under),
        };
        figures.begin_with_zero();
        figures
    }

    fn begin_with_zero(&self) {
        let outcome = |result, reason: &str| {
            let reason = reason.to_owned();
            drop(
                self.checkpoints
                    .ended
                    .get_or_create(&Outcome { result, reason }),
            );
        };
        for trigger in Trigger::ALL {
            outcome("stored", trigger.as_str());
        }
        for reason in FailureReason::ALL {
            outcome("failed", reason.name());
        }
        for reason in [FailureReason::NotQuiet, FailureReason::Capturing] {
            let reason = reason.name();
            drop(self.checkpoints.retries.get_or_create(&Reason { reason }));
        }
        for reason in [AFTER_START, AFTER_CRASH] {
            drop(self.resumes.count.get_or_create(&Reason { reason }));
        }
        for kind in ["changed", "copied", "stored"] {
            drop(self.checkpoints.bytes.get_or_create(&Kind { kind }));
        }
    }
}
