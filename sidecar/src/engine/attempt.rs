//! One checkpoint: from `Quiesce` until it is visible or dropped.
//!
//! ```text
//!  Quiesce ─ Table ─ Quiesced ─┬─ Dump ──────────── Dumped ─┐
//!                              └─ import, name, snapshot, ──┴─ Attach ─ Resumed ─┬─ (the job runs)
//!                                 drain what must be                             └─ flight: drain,
//!                                                                  CPU image, manifest, commit, Finish
//! ```
//!
//! `Dump` is asked for as soon as the job is quiet: nothing the agent does then changes the memory that
//! was handed out, so naming and draining run beside it.
//!
//! # Consistency
//!
//! Names are taken while the job is quiet. The job's memory is read until `Attach` is asked for and not
//! after that. The store checks what arrives against its name.
//!
//! # Crash consistency
//!
//! Whatever dies, the agent brings the job back by itself; nothing is visible before the commit.
//!
//! # Cancellation
//!
//! A failure after `Quiesce` ends in `Abandon` (the job runs on), one after `Resumed` in a dropped
//! checkpoint. [`Control`] ends the workers; every wait is bounded.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_policies::schedule::{FailureKind, Trigger};
use phos_policies::tries::{Answer, Next, Tries, TriesConfig};
use phos_protocol::agent::{AttemptError, DumpFacts, Process, ToAgent, ToSidecar};
use phos_protocol::shim::Refusal;
use phos_protocol::types::GpuUuid;
use phos_storage::{
    CheckpointWriter, Digest, Durability, ImageFile, JobError, Naming, Timings, UnixMillis,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::drain::{Drain, Ready};
use super::failpoint::{self, Step};
use super::gpus::Gpus;
use super::image::{self, Described, Parts};
use super::pipeline::{self, Control, Sink};
use super::plan::{self, Item, Room};
use super::registry::{Registry, Table, TableError};
use super::session::{Session, WaitError};
use super::status::CheckpointReport;
use super::{EngineError, cpu, cpu_image, unix_millis};
use crate::gpu::{GpuError, MemoryInfo, Range};

/// So many snapshots in a row that had to make way for the job, and no more are made until a checkpoint is stored.
const CROWDED: u32 = 2;
/// How often a checkpoint is begun again at once that came at a bad moment.
const AT_ONCE: u32 = 3;
/// Beyond the time for the shims, for the agent's own work.
const QUIESCE_MARGIN: Duration = Duration::from_secs(10);
/// Control state and CRIU.
const DUMP: Duration = Duration::from_secs(600);
/// Attach, all processes.
const ATTACH: Duration = Duration::from_secs(150);
/// What must leave the GPU before the job may go on. Below the agent's own patience.
const HOLD: Duration = Duration::from_secs(100);

/// Why an attempt ended before the job was attached, or could not begin.
pub(super) struct Failure {
    pub(super) message: String,
    pub(super) kind: FailureKind,
    pub(super) stop: Duration,
    /// The process must end.
    pub(super) fatal: Option<EngineError>,
    /// The connection must be made anew.
    pub(super) relink: Option<WaitError>,
}

impl Failure {
    fn new(message: impl Into<String>, kind: FailureKind) -> Failure {
        Failure {
            message: message.into(),
            kind,
            stop: Duration::ZERO,
            fatal: None,
            relink: None,
        }
    }
}

/// What the next checkpoint is planned with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Measured {
    /// From the beginning of the drain until the dump was there: how long the job was held back anyway. Not the whole
    /// stop: that may have been longer because of the drain, and would make the next one as long.
    pub(super) dump: Duration,
    /// Bytes per second over the link of one GPU, if enough was copied to tell.
    pub(super) link: Option<u64>,
}

/// A checkpoint that is visible.
pub(super) struct Stored {
    pub(super) report: CheckpointReport,
    pub(super) created: UnixMillis,
    pub(super) stop: Duration,
    pub(super) measured: Measured,
}

/// A checkpoint that was dropped after the job went on.
pub(super) struct Dropped {
    pub(super) message: String,
    pub(super) kind: FailureKind,
    pub(super) stop: Duration,
    pub(super) fatal: Option<EngineError>,
    /// It could not be stored where it was to go.
    pub(super) place_failed: bool,
    /// It was to go to this machine, and the log here says no more that the job is ours.
    pub(super) tier_lost: bool,
}

/// A checkpoint whose job runs again.
pub(super) struct Flight {
    pub(super) control: Arc<Control>,
    task: JoinHandle<Result<Stored, Dropped>>,
}

/// Waits for the flight's end; for ever without one. Cancel safe.
pub(super) async fn landed(flight: &mut Option<Flight>) -> Result<Stored, Dropped> {
    match flight {
        None => std::future::pending().await,
        Some(flight) => match (&mut flight.task).await {
            Ok(outcome) => outcome,
            Err(e) => Err(Dropped {
                message: format!("the task that stores it ended: {e}"),
                kind: FailureKind::Transient,
                stop: Duration::ZERO,
                fatal: None,
                place_failed: false,
                tier_lost: false,
            }),
        },
    }
}

/// Why the held part of an attempt ended.
enum HeldError {
    /// GPUs that were not open; after opening them it is worth beginning again at once.
    Closed(Vec<GpuUuid>),
    /// The agent ended the attempt itself; the job runs.
    Ended(AttemptError),
    Wait(WaitError),
    Table(TableError),
    Gpu(GpuError),
    Cancelled(String),
    Late,
    /// Another node has the job.
    Fenced(EngineError),
    /// Not while the job is as it is.
    Refused(String),
    /// It did not fall quiet; the job runs.
    Unquiet(String),
    Task(String),
}

impl From<WaitError> for HeldError {
    fn from(e: WaitError) -> HeldError {
        HeldError::Wait(e)
    }
}

impl From<super::link::LinkError> for HeldError {
    fn from(e: super::link::LinkError) -> HeldError {
        HeldError::Wait(e.into())
    }
}

impl From<GpuError> for HeldError {
    fn from(e: GpuError) -> HeldError {
        HeldError::Gpu(e)
    }
}

impl HeldError {
    /// Whether the agent still holds the job for this attempt.
    fn needs_abandon(&self) -> bool {
        !matches!(
            self,
            HeldError::Ended(_)
                | HeldError::Unquiet(_)
                | HeldError::Wait(WaitError::Link(_) | WaitError::JobExited)
        )
    }

    fn into_failure(self) -> Failure {
        match self {
            HeldError::Closed(_) => {
                Failure::new("GPUs had to be opened first", FailureKind::Transient)
            }
            HeldError::Ended(e) => {
                let kind = if e.is_transient() {
                    FailureKind::Transient
                } else {
                    FailureKind::Permanent
                };
                Failure::new(e.to_string(), kind)
            }
            HeldError::Wait(e) => {
                let mut failure = Failure::new(e.to_string(), FailureKind::Transient);
                // An agent that does not answer is asked on a new connection; the old one's end
                // makes it resume the job.
                if !matches!(e, WaitError::JobExited) {
                    failure.relink = Some(e);
                }
                failure
            }
            HeldError::Table(e) => {
                let sticky = matches!(&e, TableError::Gpu(g) | TableError::Import { source: g, .. } if g.is_sticky());
                let mut failure = Failure::new(e.to_string(), FailureKind::Transient);
                if sticky {
                    failure.fatal = Some(EngineError::Sticky(failure.message.clone()));
                } else {
                    failure.relink = Some(WaitError::Link(super::link::LinkError::Closed));
                }
                failure
            }
            HeldError::Gpu(e) => {
                let mut failure = Failure::new(e.to_string(), FailureKind::Transient);
                if e.is_sticky() {
                    failure.fatal = Some(EngineError::Sticky(e.to_string()));
                }
                failure
            }
            HeldError::Cancelled(reason) => Failure::new(reason, FailureKind::Transient),
            HeldError::Late => Failure::new(
                format!(
                    "changed memory could not be drained within {HOLD:?}: the store is too slow; give more --host-buffer"
                ),
                FailureKind::Permanent,
            ),
            HeldError::Fenced(e) => {
                let mut failure = Failure::new(e.to_string(), FailureKind::Final);
                failure.fatal = Some(e);
                failure
            }
            HeldError::Refused(e) => Failure::new(e, FailureKind::Permanent),
            HeldError::Task(e) | HeldError::Unquiet(e) => Failure::new(e, FailureKind::Transient),
        }
    }
}

/// What the held part hands to the flight.
struct Work {
    trigger: Trigger,
    began: Instant,
    writer: CheckpointWriter,
    control: Arc<Control>,
    sink: Sink,
    puts: JoinHandle<Result<(), String>>,
    drains: Vec<Urgent<Result<(), GpuError>>>,
    memory: Vec<Described>,
    directory: OwnedFd,
    facts: Box<DumpFacts>,
    reserve: Vec<(GpuUuid, u64)>,
    command: Vec<String>,
    gpus: Gpus,
    parts: BTreeMap<String, f64>,
    rates: BTreeMap<String, f64>,
    changed: u64,
    stop: Duration,
    measured: Measured,
    seq: u64,
    /// Whether it goes to the tier on this machine.
    local: bool,
    durability: Durability,
    /// It becomes visible after that.
    newest: UnixMillis,
}

fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn ns(value: u64) -> f64 {
    value as f64 / 1e6
}

/// What a failed try says about the next one in the same checkpoint, if there is to be one.
fn answer_of(error: &AttemptError) -> Option<Answer> {
    match error {
        AttemptError::Shim { refusal, .. } => match refusal {
            Refusal::Timeout => Some(Answer::Busy),
            Refusal::Capturing => Some(Answer::Capturing),
            Refusal::Slow { needs_ms } => {
                Some(Answer::Needs(Duration::from_millis((*needs_ms).into())))
            }
            _ => None,
        },
        // Nothing was asked of the job: waited for as a capture's end is.
        AttemptError::Soon(_) => Some(Answer::Capturing),
        _ => None,
    }
}

impl Session<'_> {
    /// Takes a checkpoint up to the moment the job runs again; the rest goes on as the engine's flight.
    pub(super) async fn attempt(&mut self, trigger: Trigger) -> Result<(), Failure> {
        self.held_for = Duration::ZERO;
        let (mut opened, mut again) = (false, 0);
        loop {
            self.held_since = None;
            let outcome = self.attempt_once(trigger).await;
            if outcome.is_err() {
                self.held_for += self.held_since.map_or(Duration::ZERO, |at| at.elapsed());
            }
            match outcome {
                Err(HeldError::Closed(gpus)) if !opened => {
                    opened = true;
                    self.open_gpus(gpus).await?;
                }
                Err(HeldError::Ended(AttemptError::Soon(reason))) if again < AT_ONCE => {
                    again += 1;
                    tracing::info!(reason, "the checkpoint is begun again at once");
                }
                Err(e) => {
                    let mut failure = e.into_failure();
                    // It counts like any other stop, or failures would take the job's time.
                    failure.stop = self.held_for;
                    return Err(failure);
                }
                Ok(()) => return Ok(()),
            }
        }
    }

    /// Asks the job to fall quiet, more than once if need be, and no longer at a time than the policy allows.
    async fn fall_quiet(&mut self, insist: bool) -> Result<(Table, Vec<Process>), HeldError> {
        let now = self.engine.now();
        let mut tries = Tries::new(TriesConfig::within(self.engine.quiesce_timeout), now);
        loop {
            let began = Instant::now();
            self.held_since = Some(began);
            let outcome = self.quiesce(self.seq, tries.bound(), insist).await;
            let (error, answer) = match outcome {
                Err(HeldError::Ended(e)) => match answer_of(&e) {
                    Some(answer) => (e, answer),
                    None => return Err(HeldError::Ended(e)),
                },
                outcome => {
                    if outcome.is_ok() {
                        self.engine.long_tries.succeeded();
                    }
                    return outcome;
                }
            };
            let held = began.elapsed();
            self.held_since = None;
            self.held_for += held;
            let now = self.engine.now();
            match tries.after(answer, held, &mut self.engine.long_tries, now) {
                Next::Try { after, bound } => {
                    tracing::debug!(cause = %error, after_ms = after.as_millis() as u64, bound_ms = bound.as_millis() as u64, "the job is asked again");
                    self.run_on(after).await?;
                    self.seq += 1;
                }
                Next::GiveUp if tries.failed() > 1 => {
                    return Err(HeldError::Unquiet(format!(
                        "{error} ({} short tries within {:?}, with the job running in between)",
                        tries.failed(),
                        self.engine.quiesce_timeout
                    )));
                }
                // It was waited for already.
                Next::GiveUp => return Err(HeldError::Unquiet(error.to_string())),
            }
        }
    }

    /// Lets the job run between two tries; ends early when somebody wants an end.
    async fn run_on(&mut self, time: Duration) -> Result<(), HeldError> {
        let until = Instant::now() + time;
        loop {
            let time_is_up = self.exit_at();
            let super::Engine { shutdown, .. } = &mut *self.engine;
            tokio::select! {
                packet = self.link.recv() => self.event_while_waiting(packet?).await?,
                () = super::stop_wanted(shutdown, Duration::ZERO) => {
                    return Err(HeldError::Task("the sidecar is to end, and the job has not fallen quiet".into()));
                }
                () = at(time_is_up) => {
                    return Err(HeldError::Task("the job is to end, and has not fallen quiet".into()));
                }
                () = tokio::time::sleep_until(until.into()) => return Ok(()),
            }
        }
    }

    /// Opens GPUs, outside a stop.
    pub(super) async fn open_gpus(&mut self, wanted: Vec<GpuUuid>) -> Result<(), Failure> {
        let mut gpus = self.engine.gpus.clone();
        let opened = tokio::task::spawn_blocking(move || gpus.open(&wanted).map(|()| gpus)).await;
        match opened {
            Ok(Ok(gpus)) => {
                self.engine.gpus = gpus;
                Ok(())
            }
            Ok(Err(e)) => {
                let mut failure = Failure::new(e.to_string(), FailureKind::Permanent);
                if e.is_sticky() {
                    failure.fatal = Some(EngineError::Sticky(e.to_string()));
                }
                Err(failure)
            }
            Err(e) => Err(Failure::new(e.to_string(), FailureKind::Transient)),
        }
    }

    async fn attempt_once(&mut self, trigger: Trigger) -> Result<(), HeldError> {
        let began = Instant::now();
        match self.may_adopt().await {
            Ok(Ok(())) => {}
            Ok(Err(reason)) => return Err(HeldError::Refused(reason)),
            Err(e) => return Err(HeldError::Task(e.to_string())),
        }
        if let Err(e) = self.take_over().await {
            return Err(if e.is_fenced() {
                HeldError::Fenced(e)
            } else {
                HeldError::Task(e.to_string())
            });
        }
        let Some((job, epoch, local)) = self.engine.target() else {
            return Err(HeldError::Task("the job is not ours".into()));
        };
        self.engine.writes_near = local;
        if !local {
            self.engine.writes_directly();
        }
        let encoding = if local {
            &self.engine.encoding
        } else {
            &self.engine.remote_encoding
        };
        encoding.checkpoint_begins(self.engine.interval);
        // Reads what is stored, the first time; before the stop.
        let mut begin = Box::pin(async move { job.begin(epoch).await });
        // The store may take its time; the job's requests do not wait for it.
        let begun = loop {
            let time_is_up = self.exit_at();
            tokio::select! {
                begun = &mut begin => break begun,
                packet = self.link.recv() => self.event_while_waiting(packet?).await?,
                () = at(time_is_up) => {
                    return Err(HeldError::Task("the job is to end, and the store does not answer".into()));
                }
            }
        };
        let writer = match begun {
            Ok(writer) => writer,
            Err(e @ JobError::Fenced { .. }) if !local => {
                return Err(HeldError::Fenced(EngineError::Job(e)));
            }
            Err(e) => {
                if matches!(e, JobError::Fenced { .. }) {
                    self.engine.tier_is_lost();
                } else {
                    self.engine.not_stored();
                }
                return Err(HeldError::Task(e.to_string()));
            }
        };
        self.seq += 1;
        let _quiet = self.engine.gpus.pause_pinning();
        let control = Arc::new(Control::default());
        // So that a request for memory finds it.
        self.engine.held = Some(Arc::clone(&control));
        let outcome = self.hold(trigger, began, writer.clone(), &control).await;
        self.engine.held = None;
        // Each try has its own.
        let seq = self.seq;
        match outcome {
            Ok(work) => {
                let control = Arc::clone(&work.control);
                let task = tokio::spawn(fly(work));
                self.engine.flight = Some(Flight { control, task });
                self.own_flight = Some(seq);
                Ok(())
            }
            Err(e) => {
                if matches!(e, HeldError::Cancelled(_)) && !control.was_for_others() {
                    self.engine.not_stored();
                }
                control.cancel("the attempt was given up");
                let abandoned = if e.needs_abandon() {
                    self.abandon(seq).await
                } else {
                    Ok(())
                };
                tokio::spawn(writer.abort(unix_millis()));
                abandoned.map_err(HeldError::Wait)?;
                Err(e)
            }
        }
    }

    /// Lets the job run on, and waits until it does.
    async fn abandon(&mut self, seq: u64) -> Result<(), WaitError> {
        self.link.send(&ToAgent::Abandon { seq })?;
        let resumed = self
            .answer(DUMP, |message, _| match message {
                ToSidecar::Resumed { seq: s, .. } if s == seq => Ok(()),
                // The agent ended it by itself before it saw ours; no `Resumed` follows.
                ToSidecar::Quiesced {
                    seq: s,
                    outcome: Err(_),
                } if s == seq => Ok(()),
                ToSidecar::Dumped {
                    seq: s,
                    outcome: Err(_),
                } if s == seq => Ok(()),
                other => Err(other),
            })
            .await;
        match resumed {
            Err(WaitError::JobExited) => Ok(()),
            other => other,
        }
    }

    async fn quiesce(
        &mut self,
        seq: u64,
        timeout: Duration,
        insist: bool,
    ) -> Result<(Table, Vec<Process>), HeldError> {
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        self.link.send(&ToAgent::Quiesce {
            seq,
            timeout_ms,
            insist,
        })?;
        let mut table = Table::default();
        let mut bad = None;
        let outcome = self
            .answer(timeout + QUIESCE_MARGIN, |message, fds| match message {
                ToSidecar::Quiesced { seq: s, outcome } if s == seq => Ok(Some(outcome)),
                ToSidecar::Table { seq: s, entries } if s == seq => {
                    if let Err(e) = table.add(entries, std::mem::take(fds)) {
                        bad.get_or_insert(e);
                    }
                    Err(ToSidecar::Table {
                        seq: s,
                        entries: Vec::new(),
                    })
                }
                other => Err(other),
            })
            .await?;
        match (outcome, bad) {
            (Some(Err(e)), _) => Err(HeldError::Ended(e)),
            (_, Some(e)) => Err(HeldError::Table(e)),
            (Some(Ok(processes)), None) => Ok((table, processes)),
            (None, None) => Err(HeldError::Task("no outcome".into())),
        }
    }

    /// Everything while the job is held.
    async fn hold(
        &mut self,
        trigger: Trigger,
        began: Instant,
        writer: CheckpointWriter,
        control: &Arc<Control>,
    ) -> Result<Work, HeldError> {
        let mut parts = BTreeMap::new();
        let (table, processes) = self.fall_quiet(trigger != Trigger::Interval).await?;
        let seq = self.seq;
        // Of the try that the job fell quiet in.
        parts.insert(
            "quiesce".into(),
            ms(self.held_since.map_or(Duration::ZERO, |at| at.elapsed())),
        );
        failpoint::reach(Step::AfterQuiesce);
        let quiet = Instant::now();
        let device_bytes = table.bytes();

        let used = processes.iter().flat_map(|p| &p.devices).map(|d| d.uuid);
        let used: Vec<GpuUuid> = used.map(|uuid| self.engine.gpus.resolve(uuid)).collect();
        let closed = self.engine.gpus.missing(used.iter().copied());
        if !closed.is_empty() && device_bytes > 0 {
            self.registry.keep(table);
            return Err(HeldError::Closed(closed));
        }
        // Measured before the driver gives its own memory up for the dump: it wants that back.
        let free = self.free()?;
        let mut rooms = self.rooms(&free);
        if self.engine.crowded >= CROWDED {
            // The job wants that memory back each time: without a snapshot the checkpoint stops it for longer, and
            // is made.
            rooms.values_mut().for_each(|room| *room = 0);
        }
        self.link.send(&ToAgent::Dump { seq })?;
        failpoint::reach(Step::AfterDumpRequest);

        let registry = std::mem::take(&mut self.registry);
        let gpus = self.engine.gpus.clone();
        let naming = self.engine.job.naming();
        let named = urgent("phos-name", move || {
            name(registry, table, &processes, &gpus, &naming)
        })?
        .await
        .map_err(|_| HeldError::Task("the thread that names chunks ended".into()))?;
        let named = match named {
            (registry, Ok(named)) => {
                self.registry = registry;
                named
            }
            (_, Err(e)) => return Err(e),
        };
        parts.insert("import".into(), ms(named.import));
        parts.insert("name".into(), ms(named.name));
        failpoint::reach(Step::AfterName);

        let changed = plan::changed(named.items, |digest| writer.contains(digest));
        let changed_bytes: u64 = changed.iter().map(|i| i.range.len).sum();
        tracing::debug!(seq, device_bytes, changed_bytes, "named");
        let (sink, puts) = pipeline::start(
            writer.clone(),
            Arc::clone(control),
            self.engine.put_concurrency,
        );
        let (drains, mut ready) = self.start_drains(changed, &rooms, &sink, control)?;

        // The dump and what must leave the GPU, whichever takes longer.
        let mut dumped: Option<(OwnedFd, Box<DumpFacts>)> = None;
        let mut drained: Option<Ready> = None;
        let drain_began = Instant::now();
        let mut dump_took = Duration::ZERO;
        let dump_limit = Instant::now() + DUMP;
        let mut hold_limit = None;
        while dumped.is_none() || drained.is_none() {
            let deadline = hold_limit.unwrap_or(dump_limit).min(dump_limit);
            tokio::select! {
                outcome = all_ready(&mut ready), if drained.is_none() => {
                    match outcome {
                        Ok(total) => drained = Some(total),
                        Err(GpuError::Cancelled) => {
                            return Err(HeldError::Cancelled(control.reason().unwrap_or_default()));
                        }
                        Err(e) => return Err(e.into()),
                    }
                    parts.insert("hold_drain".into(), ms(drain_began.elapsed()));
                }
                packet = self.link.recv() => match packet? {
                    (ToSidecar::Dumped { seq: s, outcome }, mut fds) if s == seq => {
                        let facts = outcome.map_err(HeldError::Ended)?;
                        let Some(directory) = fds.pop() else {
                            return Err(HeldError::Task("the CPU image came without its directory".into()));
                        };
                        parts.insert("dump".into(), ms(quiet.elapsed()));
                        dump_took = drain_began.elapsed();
                        control.set_due();
                        failpoint::reach(Step::AfterDumped);
                        dumped = Some((directory, facts));
                        hold_limit = Some(Instant::now() + HOLD);
                    }
                    (ToSidecar::ControlSaved { seq: s }, _) if s == seq => {
                        self.measure_reserve(&free, control);
                    }
                    // It would not wait for us any longer: the memory that is still being copied is no longer what it was.
                    (ToSidecar::Resumed { seq: s, .. }, _) if s == seq => {
                        return Err(HeldError::Ended(AttemptError::Abandoned));
                    }
                    packet => self.event_while_waiting(packet).await?,
                },
                () = tokio::time::sleep_until(deadline.into()) => {
                    return Err(if dumped.is_some() { HeldError::Late } else { WaitError::Timeout(DUMP).into() });
                }
            }
        }
        let (Some((directory, facts)), Some(drained)) = (dumped, drained) else {
            return Err(HeldError::Task("no outcome".into()));
        };
        failpoint::reach(Step::BeforeAttach);
        self.link.send(&ToAgent::Attach { seq })?;
        let (stop_ns, attach_ns) = self
            .answer(ATTACH, |message, _| match message {
                ToSidecar::Resumed {
                    seq: s,
                    stop_ns,
                    attach_ns,
                    whole,
                } if s == seq => Ok(whole.then_some((stop_ns, attach_ns))),
                other => Err(other),
            })
            .await?
            .ok_or(HeldError::Ended(AttemptError::Abandoned))?;
        failpoint::reach(Step::AfterAttach);
        for (name, value) in [
            ("detach", facts.times.detach_ns),
            ("control_checkpoint", facts.times.control_checkpoint_ns),
            ("criu", facts.times.criu_ns),
            ("control_restore", facts.times.control_restore_ns),
            ("attach", attach_ns),
        ] {
            parts.insert(name.into(), ns(value));
        }
        let gb_s = |bytes: u64, took: Duration| bytes as f64 / took.as_secs_f64().max(1e-9) / 1e9;
        let mut rates =
            BTreeMap::from([("digest_gb_s".to_owned(), gb_s(device_bytes, named.digest))]);
        if drained.direct > 0 {
            rates.insert("d2h_gb_s".into(), gb_s(drained.direct, drained.direct_took));
        }
        self.engine.status.lock().device_bytes = device_bytes;
        // Of one GPU; less a margin, so that the policy rather takes too little into the stop.
        let seconds = drained.direct_took.as_secs_f64();
        let link = (drained.direct > (64 << 20) && seconds > 0.0)
            .then(|| (drained.direct as f64 / seconds * 0.8) as u64);
        tracing::debug!(
            seq,
            snapshot = drained.snapshot,
            direct = drained.direct,
            "attached"
        );
        let durability = writer.durability();
        Ok(Work {
            trigger,
            began,
            writer,
            control: Arc::clone(control),
            sink,
            puts,
            drains,
            memory: named.memory,
            directory,
            facts,
            reserve: self.engine.reserve.iter().map(|(u, b)| (*u, *b)).collect(),
            command: self.command.clone(),
            gpus: self.engine.gpus.clone(),
            parts,
            rates,
            changed: changed_bytes,
            stop: Duration::from_nanos(stop_ns),
            measured: Measured {
                dump: dump_took,
                link,
            },
            seq,
            local: self.engine.writes_near,
            durability,
            newest: self.engine.newest,
        })
    }

    /// Free and total device memory now, per GPU, in bytes.
    fn free(&self) -> Result<BTreeMap<GpuUuid, MemoryInfo>, GpuError> {
        let gpus = self.engine.gpus.all();
        gpus.map(|(&uuid, open)| Ok((uuid, open.gpu().memory()?)))
            .collect()
    }

    /// Device memory that snapshots may take, per GPU.
    fn rooms(&self, free: &BTreeMap<GpuUuid, MemoryInfo>) -> BTreeMap<GpuUuid, u64> {
        let room = |(&uuid, memory): (&GpuUuid, &MemoryInfo)| {
            let reserve = self.engine.reserve.get(&uuid).copied().unwrap_or(0);
            let room = plan::snapshot_room(memory.free, memory.total, reserve);
            (uuid, room)
        };
        free.iter().map(room).collect()
    }

    /// What the driver gave up when it saved the control state: `before` was measured before that. The
    /// largest of the job's checkpoints counts.
    fn measure_reserve(&mut self, before: &BTreeMap<GpuUuid, MemoryInfo>, control: &Control) {
        for (&uuid, memory) in before {
            let Ok(open) = self.engine.gpus.get(uuid) else {
                continue;
            };
            let Ok(now) = open.gpu().memory() else {
                continue;
            };
            // What the snapshot took meanwhile hides as much of what was freed.
            let freed = (now.free + control.snapshot_on(uuid)).saturating_sub(memory.free);
            let reserve = self.engine.reserve.entry(uuid).or_default();
            *reserve = freed.max(*reserve);
        }
    }

    #[expect(clippy::type_complexity, reason = "used once, right above")]
    fn start_drains(
        &self,
        changed: Vec<Item>,
        rooms: &BTreeMap<GpuUuid, u64>,
        sink: &Sink,
        control: &Arc<Control>,
    ) -> Result<
        (
            Vec<Urgent<Result<(), GpuError>>>,
            Vec<oneshot::Receiver<Result<Ready, GpuError>>>,
        ),
        HeldError,
    > {
        if changed.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let host = self.engine.gpus.host()?;
        let groups = plan::by_gpu(changed);
        let uuids: Vec<GpuUuid> = groups.iter().map(|(uuid, _)| *uuid).collect();
        let groups = groups
            .into_iter()
            .map(|(uuid, items)| {
                let spare = rooms.get(&uuid).copied().unwrap_or(0);
                (
                    items,
                    Room {
                        spare,
                        link: self.engine.link_rate,
                    },
                )
            })
            .collect();
        let free = host.limit().saturating_sub(host.in_use());
        let splits = plan::divide(groups, free, self.engine.expected_dump);
        let (mut tasks, mut readies) = (Vec::new(), Vec::new());
        for (uuid, split) in uuids.into_iter().zip(splits) {
            let drain = Drain {
                open: Arc::clone(self.engine.gpus.get(uuid)?),
                host: Arc::clone(host),
                split,
                sink: sink.clone(),
                control: Arc::clone(control),
            };
            let (sender, receiver) = oneshot::channel();
            readies.push(receiver);
            tasks.push(urgent("phos-drain", move || drain.run(sender))?);
        }
        Ok((tasks, readies))
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

/// The result of a thread that [`urgent`] started.
type Urgent<T> = oneshot::Receiver<T>;

/// Runs what a stop waits for in a thread of its own. To be called from the main thread: unlike those of the
/// runtime it has the priority that the user gave the process, and a new thread has its maker's.
fn urgent<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Urgent<T>, HeldError> {
    let (sender, receiver) = oneshot::channel();
    std::thread::Builder::new()
        .name(name.into())
        .spawn(move || {
            // Nobody may be waiting any more.
            let _ = sender.send(work());
        })
        .map_err(|e| HeldError::Task(format!("cannot start a thread: {e}")))?;
    Ok(receiver)
}

/// Waits until no GPU needs the job's memory any more. Cancel safe: what has come is taken out.
async fn all_ready(
    readies: &mut Vec<oneshot::Receiver<Result<Ready, GpuError>>>,
) -> Result<Ready, GpuError> {
    // Nothing is lost when this is dropped while waiting: sums are kept by the senders' order only
    // when all have come, so take them in one go.
    let mut total = Ready::default();
    for receiver in readies.iter_mut() {
        while receiver.is_empty() && !receiver.is_terminated() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    for receiver in readies.drain(..) {
        let ready = receiver.await.map_err(|_| GpuError::Cancelled)??;
        total.snapshot += ready.snapshot;
        total.direct = total.direct.max(ready.direct);
        total.direct_took = total.direct_took.max(ready.direct_took);
    }
    Ok(total)
}

struct Named {
    memory: Vec<Described>,
    items: Vec<Item>,
    import: Duration,
    /// The digests alone.
    digest: Duration,
    name: Duration,
}

/// Takes the table over and names every chunk. Blocks.
fn name(
    mut registry: Registry,
    table: Table,
    processes: &[Process],
    gpus: &Gpus,
    naming: &Naming,
) -> (Registry, Result<Named, HeldError>) {
    let began = Instant::now();
    if let Err(e) = registry.apply(table, processes, gpus) {
        return (registry, Err(HeldError::Table(e)));
    }
    let import = began.elapsed();
    let began = Instant::now();
    let ranges: Vec<Range> = registry
        .iter()
        .flat_map(|held| {
            plan::chunks(held.allocation.bytes).map(|(offset, len)| Range {
                memory: Arc::clone(&held.memory),
                offset,
                len,
            })
        })
        .collect();
    let digest_began = Instant::now();
    let digests = match gpus.digest(&ranges, naming) {
        Ok(digests) => digests,
        Err(e) => return (registry, Err(e.into())),
    };
    let digest = digest_began.elapsed();
    let items: Vec<Item> = ranges
        .into_iter()
        .zip(digests)
        .map(|(range, digest)| Item {
            digest: Digest(digest),
            range,
        })
        .collect();
    let mut rest = items.iter().map(|i| i.digest);
    let memory = registry
        .iter()
        .map(|held| {
            let count = plan::chunks(held.allocation.bytes).count();
            Described {
                allocation: held.allocation,
                requested: held.requested,
                gpu: held.memory.gpu().uuid(),
                digests: rest.by_ref().take(count).collect(),
            }
        })
        .collect();
    let name = began.elapsed();
    (
        registry,
        Ok(Named {
            memory,
            items,
            import,
            digest,
            name,
        }),
    )
}

/// The rest of a checkpoint, while the job runs.
async fn fly(work: Work) -> Result<Stored, Dropped> {
    let stop = work.stop;
    let writer = work.writer.clone();
    let control = Arc::clone(&work.control);
    let outcome = store(work).await;
    match outcome {
        Ok(stored) => Ok(stored),
        Err(mut dropped) => {
            dropped.place_failed = !control.was_for_others() && dropped.fatal.is_none();
            control.cancel(dropped.message.clone());
            writer.abort(unix_millis()).await;
            dropped.stop = stop;
            Err(dropped)
        }
    }
}

fn dropped(message: impl Into<String>, kind: FailureKind) -> Dropped {
    Dropped {
        message: message.into(),
        kind,
        stop: Duration::ZERO,
        fatal: None,
        place_failed: false,
        tier_lost: false,
    }
}

async fn store(work: Work) -> Result<Stored, Dropped> {
    let Work {
        trigger,
        began,
        writer,
        control,
        sink,
        puts,
        drains,
        memory,
        directory,
        facts,
        reserve,
        command,
        gpus,
        mut parts,
        rates,
        changed,
        stop,
        measured,
        seq,
        local,
        durability,
        newest,
    } = work;
    let cpu_began = Instant::now();
    let known = writer.clone();
    let cpu = tokio::task::spawn_blocking(move || chunk_cpu_image(&directory, &known, &sink));
    let mut sticky = None;
    for drain in drains {
        match drain.await {
            Ok(Ok(())) => {}
            Ok(Err(e)) => {
                control.cancel(e.to_string());
                if e.is_sticky() {
                    sticky = Some(EngineError::Sticky(e.to_string()));
                }
            }
            Err(_) => control.cancel("the thread that drains a GPU ended"),
        }
    }
    parts.insert("drain".into(), ms(cpu_began.elapsed()));
    let cpu_image = cpu.await;
    parts.insert("cpu_image".into(), ms(cpu_began.elapsed()));
    let put = puts.await.unwrap_or_else(|e| Err(e.to_string()));
    if let Err(reason) = put {
        let reason = control.reason().unwrap_or(reason);
        // What a store refuses now it will refuse in two seconds as well.
        let kind = if sticky.is_some() {
            FailureKind::Transient
        } else {
            FailureKind::Permanent
        };
        return Err(Dropped {
            fatal: sticky,
            ..dropped(reason, kind)
        });
    }
    if control.is_cancelled() {
        let reason = control.reason().unwrap_or_default();
        return Err(Dropped {
            fatal: sticky,
            ..dropped(reason, FailureKind::Transient)
        });
    }
    let cpu_image = match cpu_image {
        Ok(Ok(image)) => image,
        Ok(Err(e)) => return Err(dropped(e.to_string(), FailureKind::Transient)),
        Err(e) => return Err(dropped(e.to_string(), FailureKind::Transient)),
    };
    failpoint::reach(Step::BeforeManifest);
    let timings = Timings {
        stop_us: stop.as_micros() as u64,
        phases_us: parts
            .iter()
            .map(|(name, ms)| (name.clone(), (ms * 1e3) as u64))
            .collect(),
        figures: BTreeMap::from([
            ("changed_bytes".into(), changed),
            ("copied_bytes".into(), control.copied()),
        ]),
    };
    let body = image::body(Parts {
        trigger: trigger.as_str(),
        command: &command,
        facts: &facts,
        reserve: &reserve,
        gpus: gpus.infos(),
        aliases: gpus.aliases(),
        cpu_features: cpu::features().into_iter().collect(),
        memory: &memory,
        cpu_image,
        timings,
    })
    .map_err(|e| dropped(e.to_string(), FailureKind::Permanent))?;
    drop(memory);
    failpoint::reach(Step::BeforeHead);
    let commit_began = Instant::now();
    let now = unix_millis().max(UnixMillis(newest.0 + 1));
    let commit = writer.commit(body, now).await.map_err(|e| {
        // Only the store's log says who has the job.
        let fenced = e.is_fenced() && !local;
        let kind = match (fenced, e.is_permanent() && !local) {
            (true, _) => FailureKind::Final,
            (_, true) => FailureKind::Permanent,
            _ => FailureKind::Transient,
        };
        Dropped {
            fatal: fenced.then(|| EngineError::Fenced(e.to_string())),
            tier_lost: e.is_fenced() && local,
            ..dropped(e.to_string(), kind)
        }
    })?;
    if commit.resumed.chunks > 0 {
        tracing::info!(
            bytes = commit.resumed.bytes,
            packs = commit.resumed.packs,
            "an unfinished checkpoint was gone on with: that much was not uploaded again"
        );
    }
    failpoint::reach(Step::AfterHead);
    parts.insert("commit".into(), ms(commit_began.elapsed()));
    tracing::debug!(
        seq,
        number = commit.number.0,
        packs = commit.stats.stored_packs,
        "committed"
    );
    let report = CheckpointReport {
        id: commit.number.0,
        local,
        durability: Some(durability),
        trigger: trigger.as_str().into(),
        stop_ms: ms(stop),
        parts_ms: parts,
        rates,
        total_bytes: commit.manifest.image_bytes(),
        changed_bytes: changed,
        copied_bytes: control.copied(),
        stored_bytes: commit.stats.stored_bytes,
        seconds: began.elapsed().as_secs_f64(),
    };
    Ok(Stored {
        report,
        created: commit.manifest.created,
        stop,
        measured,
    })
}

/// Cuts the CPU image and hands on what is not stored. Blocks.
fn chunk_cpu_image(
    directory: &OwnedFd,
    known: &CheckpointWriter,
    sink: &Sink,
) -> Result<Vec<ImageFile<Vec<Digest>>>, cpu_image::ImageError> {
    let naming = known.naming();
    cpu_image::list(directory.as_fd())?
        .iter()
        .map(|entry| {
            cpu_image::chunk_file(directory.as_fd(), entry, &naming, |digest, bytes| {
                known.contains(&digest) || sink.host(digest, cpu_image::owned(bytes))
            })
        })
        .collect()
}
