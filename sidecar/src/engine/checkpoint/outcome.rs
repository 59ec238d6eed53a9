//! How a checkpoint ends: stored, or failed for a [`Cause`], which may have consequences.
//!
//! A checkpoint may fail at any of its steps, held or not. What matters afterwards is the same for all of them: what people
//! are told, when the schedule tries again, how long the job stood still for nothing, and whether something else has to
//! change first ([`Consequence`]).

use std::collections::BTreeMap;
use std::time::Duration;

use phos_gpu::GpuError;
use phos_policies::schedule::{Event, FailureKind, Trigger};
use phos_protocol::agent::AttemptError;
use phos_protocol::shim::{Newest, Refusal};
use phos_protocol::types::GpuUuid;
use phos_storage::{CheckpointNumber, CommitError, JobError, UnixMillis};

use super::pipeline::Control;
use crate::engine::Tier;
use crate::engine::memory::registry::TableError;
use crate::engine::session::link::LinkError;
use crate::engine::session::{Session, Stop, WaitError};
use crate::engine::{CheckpointId, Engine, EngineError, utc};
use crate::report::event::Event as Happened;
use crate::report::reason::FailureReason;
use crate::report::status::{CheckpointReport, Unprotected};

/// The time for what must leave the GPU before the job may continue. Below the agent's own patience.
pub(super) const HOLD: Duration = Duration::from_secs(100);

/// A checkpoint that is visible.
pub(in crate::engine) struct Stored {
    pub(in crate::engine) report: CheckpointReport,
    /// The tier in which the checkpoint is visible.
    pub(in crate::engine) tier: Tier,
    pub(in crate::engine) trigger: Trigger,
    pub(in crate::engine) created: UnixMillis,
    /// How long the job was held by the stop.
    pub(in crate::engine) stop: Duration,
    pub(in crate::engine) measured: Measured,
}

/// What the next checkpoint is planned with.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Measured {
    /// From the beginning of the drain until the dump was there: how long the job was held back anyway. Not the whole
    /// stop: that may have been longer because of the drain, and would make the next one as long.
    pub(in crate::engine) dump: Duration,
    /// Bytes per second over the link of one GPU, if enough was copied to tell.
    pub(in crate::engine) link: Option<u64>,
    /// Bytes of device memory that were stored nowhere.
    pub(in crate::engine) changed: u64,
    /// The size of the image of the job's processes, in bytes.
    pub(in crate::engine) cpu_image: u64,
    /// Bytes that were copied while the job ran, from its own memory.
    pub(in crate::engine) beside: u64,
}

/// A checkpoint that was not made.
pub(in crate::engine) struct Failed {
    /// Why the checkpoint failed, in words for people.
    pub(in crate::engine) message: String,
    /// The same, for programs.
    pub(in crate::engine) reason: FailureReason,
    /// What the schedule is told: when another try may succeed.
    pub(in crate::engine) kind: FailureKind,
    /// How long the job was held for it, all tries together.
    pub(in crate::engine) stop: Duration,
    /// What follows from the failure beside another try.
    pub(in crate::engine) then: Consequence,
}

/// What follows from a checkpoint that failed, beside another one at its time.
pub(in crate::engine) enum Consequence {
    /// Nothing but another checkpoint at its time.
    Nothing,
    /// The next one goes to the other tier: this one could not be stored where it was to go.
    OtherTier,
    /// The tier on this machine is given up: its log does not say any more that the job is ours.
    LocalTierLost,
    /// The connection to the agent is set up again.
    Reconnect(WaitError),
    /// The sidecar ends with this error.
    End(EngineError),
}

/// Who ended a checkpoint that was cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Canceller {
    /// Something that failed: the store, a disk, a GPU.
    Fault,
    /// The job, or what ends it: they needed what the checkpoint took.
    Job,
}

/// What made a checkpoint fail.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum Cause {
    /// GPUs that were not open. Once they are, it is worth beginning again at once.
    #[error("GPUs had to be opened first")]
    Closed(Vec<GpuUuid>),
    /// GPUs cannot be opened.
    #[error("{0}")]
    Opening(GpuError),
    /// The agent ended the attempt itself; the job runs.
    #[error("{0}")]
    Agent(AttemptError),
    /// The agent did not answer, or the job ended.
    #[error("{0}")]
    Wait(#[from] WaitError),
    /// What the job has on the GPU could not be imported.
    #[error("{0}")]
    Table(TableError),
    #[error("{0}")]
    Gpu(#[from] GpuError),
    /// The checkpoint was cancelled: by whom, and why.
    #[error("{reason}")]
    Cancelled { reason: String, by: Canceller },
    /// What must leave the GPU before the job may continue did not leave in time.
    #[error(
        "changed memory could not be drained within {HOLD:?}: the store is too slow; give more --host-buffer"
    )]
    Late,
    /// Another node has taken the job over.
    #[error("{0}")]
    Fenced(EngineError),
    /// It will not succeed while the job is as it is.
    #[error("{0}")]
    Refused(String),
    /// The job did not fall quiet, for this reason, and runs on.
    #[error("{0}")]
    Unquiet(String, FailureReason),
    /// The store does not take a new checkpoint.
    #[error("{error}")]
    Begin { error: JobError, tier: Tier },
    /// What was read could not be stored; or a GPU broke meanwhile.
    #[error("{reason}")]
    Store {
        reason: String,
        broken: Option<GpuError>,
    },
    /// The job has written memory that had not left the GPU yet.
    #[error(
        "the job has written GPU memory that it was seen to leave alone, before that was copied; the next checkpoints copy it while the job is held"
    )]
    Overwritten,
    /// A missing local tier needs other advice than a missing store.
    #[error(
        "the checkpoints that were kept on this machine are gone: somebody deleted them in --state-dir, or its file system is not \
         mounted any more. The next one goes to the store"
    )]
    LocalTierGone,
    /// The checkpoint could not be described in a manifest.
    #[error("{0}")]
    Manifest(serde_json::Error),
    /// The checkpoint could not be made visible.
    #[error("{error}")]
    Commit { error: CommitError, tier: Tier },
    /// A part of the work ended without a result; it may succeed another time.
    #[error("{0}")]
    Task(String),
}

impl From<LinkError> for Cause {
    fn from(e: LinkError) -> Cause {
        Cause::Wait(e.into())
    }
}

impl Cause {
    /// A tier does not take a new checkpoint.
    pub(super) fn begin(error: JobError, tier: Tier) -> Cause {
        match tier {
            Tier::Local if error.is_absent() => Cause::LocalTierGone,
            _ => Cause::Begin { error, tier },
        }
    }

    /// The checkpoint did not become visible in a tier.
    pub(super) fn commit(error: CommitError, tier: Tier) -> Cause {
        match tier {
            Tier::Local if error.is_absent() => Cause::LocalTierGone,
            _ => Cause::Commit { error, tier },
        }
    }

    /// Whether the agent still holds the job for this attempt.
    pub(super) fn leaves_job_held(&self) -> bool {
        !matches!(
            self,
            Cause::Agent(_)
                | Cause::Unquiet(..)
                | Cause::Wait(WaitError::Link(_) | WaitError::JobExited)
        )
    }

    fn kind(&self) -> FailureKind {
        match self {
            Cause::Agent(e) if !e.is_transient() => FailureKind::Permanent,
            Cause::Opening(_) | Cause::Late | Cause::Refused(_) | Cause::Manifest(_) => {
                FailureKind::Permanent
            }
            // What a store refuses now it will refuse in two seconds as well.
            Cause::Store { broken: None, .. } => FailureKind::Permanent,
            Cause::Fenced(_) => FailureKind::Final,
            Cause::Commit {
                error,
                tier: Tier::Remote,
            } => match (error.is_fenced(), error.is_permanent()) {
                (true, _) => FailureKind::Final,
                (_, true) => FailureKind::Permanent,
                _ => FailureKind::Transient,
            },
            Cause::Begin {
                error: JobError::Fenced { .. },
                tier: Tier::Remote,
            } => FailureKind::Final,
            _ => FailureKind::Transient,
        }
    }

    /// What it is counted as.
    fn reason(&self) -> FailureReason {
        match self {
            Cause::Closed(_)
            | Cause::Opening(_)
            | Cause::Gpu(_)
            | Cause::Table(_)
            | Cause::Store {
                broken: Some(_), ..
            } => FailureReason::Gpu,
            Cause::Agent(error) => reason_of(error),
            Cause::Wait(WaitError::JobExited)
            | Cause::Cancelled {
                by: Canceller::Job, ..
            } => FailureReason::Job,
            Cause::Wait(_) => FailureReason::Agent,
            Cause::Late => FailureReason::TooSlow,
            Cause::Fenced(_)
            | Cause::Begin {
                error: JobError::Fenced { .. },
                ..
            } => FailureReason::Fenced,
            Cause::Commit { error, .. } if error.is_fenced() => FailureReason::Fenced,
            Cause::Refused(_) => FailureReason::Unsupported,
            Cause::Overwritten => FailureReason::Overwritten,
            Cause::Unquiet(_, reason) => *reason,
            Cause::Cancelled {
                by: Canceller::Fault,
                ..
            }
            | Cause::LocalTierGone
            | Cause::Begin { .. }
            | Cause::Store { broken: None, .. }
            | Cause::Commit { .. } => FailureReason::Store,
            Cause::Manifest(_) | Cause::Task(_) => FailureReason::Internal,
        }
    }

    fn consequence(self, message: &str) -> Consequence {
        let broken = || Consequence::End(EngineError::Sticky(message.to_owned()));
        match self {
            // An agent that does not answer is asked on a new connection; the old one's end makes it resume the job.
            Cause::Wait(WaitError::JobExited) => Consequence::Nothing,
            Cause::Wait(e) => Consequence::Reconnect(e),
            Cause::Table(TableError::Gpu(e) | TableError::Import { source: e, .. })
            | Cause::Gpu(e)
            | Cause::Opening(e)
                if e.is_sticky() =>
            {
                broken()
            }
            // The agent sends every file descriptor again.
            Cause::Table(_) => Consequence::Reconnect(WaitError::Link(LinkError::Closed)),
            Cause::Cancelled {
                by: Canceller::Fault,
                ..
            } => Consequence::OtherTier,
            Cause::Fenced(e) => Consequence::End(e),
            // Only the store's log says who has the job.
            Cause::Begin { error, tier } => match (error, tier) {
                (error @ JobError::Fenced { .. }, Tier::Remote) => {
                    Consequence::End(EngineError::Job(error))
                }
                (JobError::Fenced { .. }, Tier::Local) => Consequence::LocalTierLost,
                _ => Consequence::OtherTier,
            },
            Cause::Commit { error, tier } if error.is_fenced() => match tier {
                Tier::Remote => Consequence::End(EngineError::Fenced(error.to_string())),
                Tier::Local => Consequence::LocalTierLost,
            },
            // A store that is gone is waited for; what is gone here does not come back.
            Cause::LocalTierGone => Consequence::LocalTierLost,
            Cause::Store {
                broken: Some(e), ..
            } => Consequence::End(EngineError::Sticky(e.to_string())),
            _ => Consequence::Nothing,
        }
    }

    /// The end of a checkpoint for which the job was held so long.
    pub(super) fn into_failed(self, stop: Duration) -> Failed {
        let (message, reason, kind) = (self.to_string(), self.reason(), self.kind());
        let then = self.consequence(&message);
        Failed {
            message,
            reason,
            kind,
            stop,
            then,
        }
    }
}

impl Session<'_> {
    /// Takes note of a checkpoint that failed; the job runs on.
    pub(super) fn failed(&mut self, failed: Failed) -> Result<(), Stop> {
        self.engine.failed(&failed);
        match &failed.then {
            Consequence::OtherTier => self.engine.not_stored(),
            Consequence::LocalTierLost => self.engine.tier_is_lost(&failed.message),
            _ => {}
        }
        match failed.then {
            Consequence::End(e) => Err(Stop::Engine(e)),
            Consequence::Reconnect(reason) => Err(Stop::Link(reason)),
            _ => Ok(()),
        }
    }
}

impl Engine {
    /// Takes note of a checkpoint that is visible.
    pub(super) fn committed(&mut self, stored: Stored) {
        let Stored {
            report,
            tier,
            trigger,
            created,
            stop,
            measured,
        } = stored;
        self.tiers.newest = created;
        self.newest = Some(Newest {
            number: report.id,
            unix_ms: report.held_at_ms,
            step: report.step,
            in_store: tier == Tier::Remote,
        });
        tracing::info!(
            id = %CheckpointId { tier, number: CheckpointNumber(report.id) },
            trigger = report.trigger,
            stop_ms = round(report.stop_ms),
            parts_ms = %parts(&report),
            total = report.total_bytes,
            changed = report.changed_bytes,
            copied = report.copied_bytes,
            stored = report.stored_bytes,
            seconds = round(report.seconds),
            "checkpoint"
        );
        let preempted = self.schedule.in_flight() == Some(Trigger::Preemption);
        let whole = Duration::try_from_secs_f64(report.seconds).unwrap_or(stop);
        self.planning.committed(measured);
        self.buffer.made();
        // Before anybody hears of it: from then on it must not be taken for lost.
        self.remember();
        for client in self.requests.current.drain(..) {
            let _ = client.send(Ok(report.clone()));
        }
        let now = self.now();
        self.happened(Happened::CheckpointStored(Box::new(report.clone())));
        self.schedule.on(Event::Committed { stop }, now);
        self.adapt_interval(stop, whole);
        if preempted {
            self.preemption.plan.stored(now);
        }
        {
            let mut status = self.status.lock();
            status.checkpoints += 1;
            status.last = Some(report);
        }
        self.protected();
        self.stored(tier, trigger);
    }

    /// Nothing of what the job did would be lost for want of a checkpoint.
    pub(in crate::engine) fn protected(&self) {
        if self.status.lock().unprotected.take().is_some() {
            tracing::info!("the job is protected again");
            self.happened(Happened::Protected);
        }
    }

    /// What the job does since then is not protected, for this reason. Since when that was said first, whoever said it, and whether it was said just like this.
    pub(in crate::engine) fn unprotected(
        &self,
        since_ms: u64,
        because: &str,
        reason: FailureReason,
    ) -> (u64, bool) {
        let before = self.status.lock().unprotected.clone();
        let since_ms = (before.as_ref()).map_or(since_ms, |before| before.since_ms.min(since_ms));
        let now = Unprotected {
            since_ms,
            because: because.to_owned(),
            reason: Some(reason),
        };
        let known = before.as_ref() == Some(&now);
        self.status.lock().unprotected = Some(now);
        // Messages differ from one attempt to the next in what they count.
        if before.is_none_or(|before| before.reason != Some(reason)) {
            self.happened(Happened::Unprotected {
                reason,
                message: because.to_owned(),
                since_ms,
            });
        }
        (since_ms, known)
    }

    /// Says that an attempt failed.
    pub(super) fn tell_failed(&self, failed: &Failed) {
        let in_flight = self.schedule.in_flight();
        self.happened(Happened::CheckpointFailed {
            trigger: in_flight.map_or("", Trigger::as_str).to_owned(),
            reason: failed.reason,
            message: failed.message.clone(),
            stop_ms: ms(failed.stop),
        });
    }

    /// Takes note of an attempt that failed.
    pub(super) fn failed(&mut self, failed: &Failed) {
        let Failed {
            message,
            reason,
            kind,
            stop,
            ..
        } = failed;
        let (reason, kind, stop) = (*reason, *kind, *stop);
        let in_flight = self.schedule.in_flight();
        self.tell_failed(failed);
        let since_ms = self.tiers.newest.max(self.run.since).0;
        let (since_ms, known) = self.unprotected(since_ms, message, reason);
        let since = utc(since_ms);
        // One line for each reason, however often it is met.
        match kind {
            _ if known => tracing::debug!(reason = message, "checkpoint given up again"),
            FailureKind::Transient => tracing::warn!(
                reason = message,
                unprotected_since = since,
                "checkpoint given up; it will be tried again"
            ),
            _ => tracing::error!(
                reason = message,
                unprotected_since = since,
                "checkpoint given up"
            ),
        }
        for client in self.requests.current.drain(..) {
            let _ = client.send(Err(message.clone()));
        }
        let now = self.now();
        if in_flight == Some(Trigger::Preemption) {
            self.preemption.plan.failed(now);
        }
        if reason == FailureReason::Overwritten {
            self.planning.speculation.was_wrong();
        }
        self.schedule.on(Event::Failed { kind, stop }, now);
        let mut status = self.status.lock();
        status.failures += 1;
        status.last_failure = Some(message.clone());
    }
}

/// What an attempt that the agent ended is counted as.
pub(super) fn reason_of(error: &AttemptError) -> FailureReason {
    match error {
        AttemptError::Shim { refusal, .. } => match refusal {
            Refusal::Timeout | Refusal::Slow { .. } => FailureReason::NotQuiet,
            Refusal::Capturing => FailureReason::Capturing,
            Refusal::Section => FailureReason::Section,
            Refusal::Unsupported(_) | Refusal::Other(_) => FailureReason::Unsupported,
            Refusal::Driver { .. } => FailureReason::Gpu,
        },
        AttemptError::Soon(_) => FailureReason::NotQuiet,
        AttemptError::JobEnded => FailureReason::Job,
        AttemptError::Control(_) => FailureReason::Gpu,
        AttemptError::Criu(_) | AttemptError::Files(_) => FailureReason::Dump,
        AttemptError::Abandoned | AttemptError::OutOfOrder(_) => FailureReason::Agent,
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn parts(report: &CheckpointReport) -> String {
    let parts: Vec<String> = report
        .parts_ms
        .iter()
        .map(|(name, ms)| format!("{name}={ms:.1}"))
        .collect();
    parts.join(" ")
}

/// Milliseconds of each part of a stop, and of the steps after it.
pub(super) type PartsMs = BTreeMap<String, f64>;

pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

/// The cause of a failure whose work was cancelled: who ended it, and why.
pub(super) fn cancelled(control: &Control) -> Cause {
    Cause::Cancelled {
        reason: control.reason().unwrap_or_default(),
        by: if control.was_for_others() {
            Canceller::Job
        } else {
            Canceller::Fault
        },
    }
}

#[cfg(test)]
mod tests {
    use phos_storage::{Epoch, JobName, Known, Store};

    use super::*;
    use crate::engine::store_options;

    /// Begins and commits fail like this where the history is gone that was there.
    async fn absent() -> JobError {
        let store = Store::open("memory://", store_options(None)).await.unwrap();
        store.initialise().await.unwrap();
        let job = store.job(JobName::new("job").unwrap());
        let id = "00112233445566778899aabbccddeeff".parse().unwrap();
        job.expect(Some(Known { id, tail: 7 }));
        job.begin(Epoch(7)).await.map(drop).unwrap_err()
    }

    /// A commit that was not answered fails like this.
    async fn unknown() -> CommitError {
        match CommitError::from(absent().await) {
            CommitError::Store(fault) => CommitError::Unknown(fault),
            other => panic!("{other}"),
        }
    }

    #[tokio::test]
    async fn a_tier_whose_history_is_gone_is_given_up_and_a_store_is_waited_for() {
        let (begin, commit) = (Cause::begin, Cause::commit);
        for cause in [
            begin(absent().await, Tier::Local),
            commit(absent().await.into(), Tier::Local),
            commit(unknown().await, Tier::Local),
        ] {
            let message = cause.to_string();
            assert!(!message.contains("--start-fresh"), "{message}");
            let then = cause.consequence(&message);
            assert!(matches!(then, Consequence::LocalTierLost));
        }
        let then = begin(absent().await, Tier::Remote).consequence("");
        assert!(matches!(then, Consequence::OtherTier));
        for error in [absent().await.into(), unknown().await] {
            let cause = commit(error, Tier::Remote);
            let message = cause.to_string();
            assert!(message.contains("--start-fresh"), "{message}");
            assert!(matches!(cause.consequence(&message), Consequence::Nothing));
        }
    }
}
