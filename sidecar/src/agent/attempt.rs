//! One checkpoint attempt as a state machine.
//!
//! ```text
//! Quiescing ──▶ Held ──▶ Detaching ──▶ Dumping ──▶ Detached ──▶ Attaching ──▶ over
//!     │           │           │            │            │            │
//!     └ resume ◀──┘           └────────────┴────────────┴── attach ──┘
//! ```
//!
//! # Rules
//!
//! * Once begun, an attempt ends with the job running, whoever fails or vanishes: a failure is noted and the machine
//!   takes the shortest way to the end that gives every process its memory back.
//! * The gate opens everywhere at once, when every process has attached, or when one says that it cannot fall quiet.
//! * What can be known to fail is refused before anything is asked of the job (`survey`).
//! * A process that cannot attach loses the job: it is ended and resumed from a checkpoint.
//! * A farewell is an attempt whose end is SIGKILL: quiesce, detach, save the control state. A failure only makes it
//!   shorter.
//! * Every stage has a deadline. That of a dump is beyond what its parts are given: a driver that never answers has the
//!   job, which is ended and resumed. If not even that brings the driver's call to its end, the agent ends too: its own
//!   calls would hang in every checkpoint and restore to come.
//!
//! # Answers
//!
//! | the attempt fails | the sidecar hears |
//! |---|---|
//! | before `Quiesced` was sent | `Quiesced(Err)` |
//! | after `Dump` was asked for, before `Dumped` was sent | `Dumped(Err)`, when the job runs again |
//! | by `Abandon`, or in any other stage | `Resumed` |

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use phos_protocol::agent::{AttemptError, DumpFacts, JobState, ToSidecar};
use phos_protocol::shim::{Refusal, Sequence, ShimState, TableEntry, ToShim};
use phos_protocol::types::{AllocationKey, ProcessId};

use super::dump::{self, DumpFailure, DumpPlan, dump};
use super::image::{ImageDirectory, VaultImage};
use super::init::{Done, Init};
use super::shims::{ConnectionId, list};
use super::vault::Table;
use super::{criu, failpoint, survey, tree};

/// Where an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Shims close their gates and send their tables.
    Quiescing,
    /// The job is quiet; the sidecar digests.
    Held,
    /// Shims let go of their memory.
    Detaching,
    /// A worker saves control state and runs CRIU.
    Dumping,
    /// The image is complete; the sidecar drains.
    Detached,
    /// Shims get their memory back.
    Attaching,
}

/// Where one process is.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Phase {
    /// `Quiesce` was sent.
    Asked,
    /// Its gate is closed.
    Quiet,
    /// Its gate is open again.
    Refused,
    /// `Detach` was sent.
    Detaching,
    /// It has let go; its connection is about to close.
    Closing,
    /// It has let go and waits for the socket.
    Away,
    /// It could not let go entirely; its connection is open.
    Stuck,
    /// Its memory was sent.
    Sent,
    /// It has its memory; its gate is closed.
    Back,
}

#[derive(Debug)]
struct Member {
    phase: Phase,
    table: Table,
    /// Device memory that the driver will save into the process's host memory, in bytes.
    native: u64,
}

impl Member {
    /// `Quiesce` is being sent to it.
    fn asked() -> Self {
        Self {
            phase: Phase::Asked,
            table: Table::default(),
            native: 0,
        }
    }
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) seq: Sequence,
    pub(super) deadline: Option<Instant>,
    stage: Stage,
    /// When the first gate was asked to close.
    began: Instant,
    stage_began: Instant,
    members: BTreeMap<ProcessId, Member>,
    failure: Option<AttemptError>,
    /// `Quiesced` was sent.
    told_quiesced: bool,
    /// `Dump` was asked for and not answered.
    owes_dumped: bool,
    image: Option<Arc<ImageDirectory>>,
    detach_ns: u64,
    cancelled: Arc<AtomicBool>,
    /// The job is to be killed at the end of it.
    farewell: bool,
    /// The driver or CRIU had its time, and everything was killed.
    overdue: bool,
    /// The worker is done, and the job could not be left as it was: its end is awaited.
    dump_over: bool,
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Attempt {
    fn new(seq: Sequence, deadline: Instant, farewell: bool) -> Self {
        let now = Instant::now();
        Self {
            seq,
            deadline: Some(deadline),
            stage: Stage::Quiescing,
            began: now,
            stage_began: now,
            members: BTreeMap::new(),
            failure: None,
            told_quiesced: false,
            owes_dumped: false,
            image: None,
            detach_ns: 0,
            cancelled: Arc::new(AtomicBool::new(false)),
            farewell,
            overdue: false,
            dump_over: false,
        }
    }

    fn enter(&mut self, stage: Stage, bound: Option<Duration>) {
        tracing::debug!(seq = self.seq, from = ?self.stage, to = ?stage, "attempt");
        self.stage = stage;
        self.stage_began = Instant::now();
        self.deadline = bound.map(|b| self.stage_began + b);
    }

    fn fail(&mut self, error: AttemptError) {
        if self.failure.is_none() {
            // The sidecar says what becomes of a try that only began.
            if self.stage == Stage::Quiescing && error.is_transient() {
                tracing::debug!(seq = self.seq, cause = %error, "the job does not fall quiet");
            } else {
                tracing::warn!(seq = self.seq, stage = ?self.stage, cause = %error, "the checkpoint attempt is undone");
            }
            self.failure = Some(error);
            self.cancelled.store(true, Ordering::Release);
        }
    }

    fn all(&self, good: impl Fn(&Phase) -> bool) -> bool {
        self.members.values().all(|m| good(&m.phase))
    }

    fn in_phase(&self, good: impl Fn(&Phase) -> bool) -> Vec<ProcessId> {
        self.members
            .iter()
            .filter(|(_, m)| good(&m.phase))
            .map(|(&pid, _)| pid)
            .collect()
    }
}

impl Init {
    // --------------------------------------------------------------------------------------- asked by the sidecar

    /// `Quiesce`.
    pub(super) fn begin_attempt(&mut self, seq: Sequence, timeout_ms: u32, insist: bool) {
        if let Err(error) = self.attempt_possible(insist) {
            let outcome = Err(error);
            self.sidecar
                .send(&ToSidecar::Quiesced { seq, outcome }, &[]);
            return;
        }
        self.last_seq = seq;
        let began = Instant::now();
        let bound = Duration::from_millis(timeout_ms.into()) + self.config.timeouts.quiesce_margin;
        self.attempt = Some(Attempt::new(seq, began + bound, false));
        self.ask_all(timeout_ms);
        self.advance();
    }

    /// Makes the shims let go before the job is killed. `false`: no attempt can be made.
    pub(super) fn begin_farewell(&mut self) -> bool {
        if self.attempt.is_some() {
            return false;
        }
        let bound = self.config.timeouts.save_before_kill / 2;
        self.last_seq += 1;
        let mut attempt = Attempt::new(self.last_seq, Instant::now() + bound, true);
        // Nothing is said about it.
        attempt.told_quiesced = true;
        self.attempt = Some(attempt);
        self.ask_all(u32::try_from(bound.as_millis()).unwrap_or(u32::MAX));
        self.advance();
        true
    }

    /// Sends `Quiesce` to every shim.
    fn ask_all(&mut self, timeout_ms: u32) {
        let connected: Vec<(ProcessId, ConnectionId)> = self
            .processes
            .iter()
            .filter_map(|(&pid, p)| Some((pid, p.connection?)))
            .collect();
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let seq = attempt.seq;
        for &(pid, _) in &connected {
            attempt.members.insert(pid, Member::asked());
        }
        for (_, id) in connected {
            self.tell_shim(id, &ToShim::Quiesce { seq, timeout_ms });
        }
    }

    /// What can be known before the job is disturbed.
    fn attempt_possible(&mut self, insist: bool) -> Result<(), AttemptError> {
        if self.job.state != JobState::Running || self.job.root.is_none() {
            return Err(AttemptError::JobEnded);
        }
        if self.attempt.is_some() || self.restore.is_some() {
            return Err(AttemptError::OutOfOrder(
                "another attempt or a restore is under way".into(),
            ));
        }
        if let Some((pid, refusal)) = self.unsupported() {
            return Err(AttemptError::Shim { pid, refusal });
        }
        let unconnected: Vec<ProcessId> = self
            .processes
            .iter()
            .filter(|(_, p)| p.connection.is_none())
            .map(|(&pid, _)| pid)
            .collect();
        for pid in unconnected {
            if tree::maps_library(pid, "libcuda.so") {
                return Err(AttemptError::Soon(format!(
                    "the shim of process {pid} has lost its connection and is not back yet"
                )));
            }
            // It became another program.
            self.forget_process(pid);
        }
        if self.criu.is_none() {
            let found =
                criu::for_config(&self.config).map_err(|e| AttemptError::Criu(e.to_string()))?;
            self.criu = Some(found);
        }
        if !self.processes.is_empty() {
            self.control
                .get()
                .map_err(|e| AttemptError::Control(e.to_string()))?;
        }
        let Some(root) = self.job.root else {
            return Err(AttemptError::JobEnded);
        };
        let with_shim: BTreeSet<ProcessId> = self.processes.keys().copied().collect();
        let instrumented: Vec<ProcessId> = (self.processes.iter())
            .filter(|(_, process)| process.instrumented)
            .map(|(&pid, _)| pid)
            .collect();
        let job = survey::Job {
            root,
            with_shim: &with_shim,
            instrumented: &instrumented,
            control: &self.control,
            image_limit: self.config.image_limit,
            tcp: self.config.tcp,
            user: self.user.as_ref().filter(|user| user.is_another()),
            insist,
        };
        let seen = self.survey.look(&job, Instant::now());
        if let Some(why) = self.survey.take_lost() {
            self.job_is_lost(&why);
        }
        seen
    }

    /// `Dump`.
    pub(super) fn begin_dump(&mut self, seq: Sequence) {
        let refusal = match &self.attempt {
            Some(a) if a.seq == seq && a.stage == Stage::Held => None,
            _ if self.job.state != JobState::Running => Some(AttemptError::JobEnded),
            _ => Some(AttemptError::OutOfOrder(format!(
                "the job is not held for attempt {seq} (any more)"
            ))),
        };
        if let Some(error) = refusal {
            let outcome = Err(error);
            self.sidecar.send(&ToSidecar::Dumped { seq, outcome }, &[]);
            return;
        }
        // A process has about ten files in an image.
        let few = self
            .job
            .root
            .and_then(|root| tree::collect(root).ok())
            .is_some_and(|t| t.processes.len() <= 32);
        let made = ImageDirectory::create(self.config.image_limit, few, &self.config.job_dir());
        let bound = self.config.timeouts.detach;
        let newcomer = self.processes.iter().find_map(|(&pid, p)| {
            let member = self.attempt.as_ref()?.members.contains_key(&pid);
            (p.connection.is_some() && !member).then_some(pid)
        });
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.owes_dumped = true;
        match made {
            Ok(directory) => attempt.image = Some(Arc::new(directory)),
            Err(e) => attempt.fail(AttemptError::Files(e.to_string())),
        }
        if let Some(pid) = newcomer {
            attempt.fail(dump::newcomer(pid));
        }
        if attempt.failure.is_some() {
            self.advance();
            return;
        }
        self.detach_all(bound);
        self.advance();
    }

    /// Sends `Detach` to every shim.
    fn detach_all(&mut self, bound: Duration) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.enter(Stage::Detaching, Some(bound));
        let seq = attempt.seq;
        for member in attempt.members.values_mut() {
            member.phase = Phase::Detaching;
        }
        let pids: Vec<ProcessId> = attempt.members.keys().copied().collect();
        // The path goes before any shim looks for it.
        self.shims.stop_listening();
        for pid in pids {
            match self.connection_of(pid) {
                Some(id) => {
                    self.tell_shim(id, &ToShim::Detach { seq });
                }
                None => self.attempt_connection_lost(pid, None),
            }
        }
    }

    /// `Attach`.
    pub(super) fn attach_wanted(&mut self, seq: Sequence) {
        match &self.attempt {
            Some(a) if a.seq == seq && a.stage == Stage::Detached => {
                failpoint::hit("agent:before-attach");
                self.begin_attach();
                self.advance();
            }
            _ => tracing::warn!(seq, "the sidecar asks to attach out of order: ignored"),
        }
    }

    /// `Abandon`, the end of the sidecar, or the end of the job in sight.
    pub(super) fn abandon_attempt(&mut self) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.stage == Stage::Attaching || attempt.farewell {
            // It is on its way already.
            return;
        }
        attempt.fail(AttemptError::Abandoned);
        self.advance();
    }

    // ------------------------------------------------------------------------------------------ said by the shims

    /// A part of a table.
    pub(super) fn attempt_table(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        entries: Vec<TableEntry>,
        imported: Vec<AllocationKey>,
        fds: Vec<OwnedFd>,
    ) {
        let member = self
            .attempt
            .as_mut()
            .filter(|a| a.seq == seq && a.stage == Stage::Quiescing)
            .and_then(|a| a.members.get_mut(&pid));
        let Some(member) = member else {
            // Of an attempt that is over: the process has sent it, and will not do so again.
            let mut table = Table::default();
            if let Err(e) = table.add(entries, imported, fds) {
                tracing::warn!(pid, cause = %e, "a table of a process is unusable");
            }
            self.vault.keep(pid, table);
            return;
        };
        let added = member.table.add(entries, imported, fds);
        if let (Err(e), Some(attempt)) = (added, &mut self.attempt) {
            attempt.fail(AttemptError::Shim {
                pid,
                refusal: Refusal::Other(e.to_string()),
            });
        }
    }

    /// How much the driver will save of a process.
    pub(super) fn attempt_native(&mut self, pid: ProcessId, seq: Sequence, bytes: u64) {
        if let Some(attempt) = self.attempt.as_mut().filter(|a| a.seq == seq)
            && let Some(member) = attempt.members.get_mut(&pid)
        {
            member.native = bytes;
        }
    }

    /// The answer to `Quiesce`.
    pub(super) fn attempt_quiesced(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<(), Refusal>,
    ) {
        self.attempt_answered(
            pid,
            seq,
            outcome,
            [Phase::Asked, Phase::Quiet, Phase::Refused],
        );
    }

    /// The answer to `Detach`.
    pub(super) fn attempt_detached(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<(), Refusal>,
    ) {
        self.attempt_answered(
            pid,
            seq,
            outcome,
            [Phase::Detaching, Phase::Closing, Phase::Stuck],
        );
    }

    /// A member that is in phase `asked` answered: it goes to `done`, or to `failed`, which ends the
    /// attempt. An answer nobody waits for any more changes nothing.
    fn attempt_answered(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<(), Refusal>,
        [asked, done, failed]: [Phase; 3],
    ) {
        let Some(attempt) = self.attempt.as_mut().filter(|a| a.seq == seq) else {
            return;
        };
        let Some(member) = attempt.members.get_mut(&pid) else {
            return;
        };
        if member.phase != asked {
            return;
        }
        match outcome {
            Ok(()) => member.phase = done,
            Err(refusal) => {
                member.phase = failed;
                attempt.fail(AttemptError::Shim { pid, refusal });
            }
        }
        self.advance();
    }

    /// The answer to `Attach`, in an attempt or a restore.
    pub(super) fn shim_attached(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<(), Refusal>,
    ) {
        if self.restore.is_some() {
            self.restore_attached(pid, seq, outcome);
            return;
        }
        let Some(attempt) = self.attempt.as_mut().filter(|a| a.seq == seq) else {
            // A straggler that came back alone.
            match (outcome, self.connection_of(pid)) {
                (Ok(()), Some(id)) => {
                    self.tell_shim(id, &ToShim::Resume { seq });
                }
                (Err(refusal), _) => {
                    self.job_is_lost(&format!("process {pid} could not attach: {refusal}"));
                }
                _ => {}
            }
            return;
        };
        match outcome {
            Ok(()) => {
                if let Some(member) = attempt.members.get_mut(&pid) {
                    member.phase = Phase::Back;
                }
                failpoint::hit("agent:mid-attach");
                self.advance();
            }
            Err(refusal) => {
                attempt.fail(AttemptError::Shim {
                    pid,
                    refusal: refusal.clone(),
                });
                attempt.deadline = None;
                self.job_is_lost(&format!("process {pid} could not attach: {refusal}"));
            }
        }
    }

    /// A shim is back and detached.
    pub(super) fn shim_returned(&mut self, id: ConnectionId, pid: ProcessId, seq: Sequence) {
        if self.restore.is_some() {
            self.restore_returned(id, pid, seq);
            return;
        }
        if let Some(attempt) = &mut self.attempt {
            let attaching = attempt.stage == Stage::Attaching;
            match attempt.members.get_mut(&pid) {
                Some(member) if attaching && member.phase == Phase::Away => {
                    member.phase = Phase::Sent;
                }
                // Not expected; it gets its memory with the others, or below.
                _ if !attaching => return,
                _ => {}
            }
        }
        // With the number it waits for: one that was left over from another attempt is served as well.
        if !self.send_memory(id, pid, seq) {
            self.on_shim_closed(id, None);
        }
    }

    /// A process began to use CUDA, or its connection is back.
    pub(super) fn attempt_newcomer(&mut self, id: ConnectionId, pid: ProcessId, state: ShimState) {
        let timeout = self.config.timeouts.quiesce_margin;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        match attempt.stage {
            Stage::Quiescing => {
                // In the same attempt, within what is left of its time.
                let left = attempt.deadline.map_or(timeout, |d| {
                    d.saturating_duration_since(Instant::now())
                        .saturating_sub(timeout)
                });
                let timeout_ms = u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
                let seq = attempt.seq;
                attempt.members.insert(pid, Member::asked());
                self.tell_shim(id, &ToShim::Quiesce { seq, timeout_ms });
            }
            // Found out at `Dump`.
            Stage::Held => {}
            _ => tracing::debug!(pid, ?state, "a shim connects during an attempt"),
        }
    }

    /// A connection ended.
    pub(super) fn attempt_connection_lost(&mut self, pid: ProcessId, why: Option<&str>) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let stage = attempt.stage;
        let Some(member) = attempt.members.get_mut(&pid) else {
            return;
        };
        match member.phase {
            Phase::Closing => member.phase = Phase::Away,
            Phase::Away | Phase::Refused => return,
            Phase::Asked | Phase::Quiet => {
                // Without the agent a quiesced shim opens its gate by itself.
                member.phase = Phase::Refused;
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                attempt.fail(AttemptError::OutOfOrder(format!(
                    "process {pid} lost its connection during the attempt{why}"
                )));
            }
            Phase::Detaching | Phase::Stuck | Phase::Sent | Phase::Back => {
                // Detached or half so: it comes back for its memory.
                member.phase = Phase::Away;
                if stage != Stage::Attaching {
                    attempt.fail(AttemptError::OutOfOrder(format!(
                        "process {pid} lost its connection while detaching"
                    )));
                }
            }
        }
        self.advance();
    }

    /// A process ended.
    pub(super) fn attempt_process_gone(&mut self, pid: ProcessId) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.members.remove(&pid).is_none() {
            return;
        }
        if matches!(attempt.stage, Stage::Held | Stage::Detaching) {
            attempt.fail(AttemptError::OutOfOrder(format!(
                "process {pid} ended during the attempt"
            )));
        }
        self.advance();
    }

    /// The job's main process ended: nothing is left to resume.
    pub(super) fn attempt_job_ended(&mut self) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if attempt.farewell {
            self.attempt = None;
            return;
        }
        attempt.members.clear();
        attempt.failure = Some(AttemptError::JobEnded);
        attempt.cancelled.store(true, Ordering::Release);
        if attempt.stage == Stage::Dumping && !attempt.dump_over {
            // CRIU notices by itself.
            return;
        }
        self.finish_attempt();
    }

    /// A stage took too long.
    pub(super) fn attempt_timed_out(&mut self) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.deadline = None;
        match attempt.stage {
            Stage::Quiescing => {
                for pid in attempt.in_phase(|p| *p == Phase::Asked) {
                    // It has had its own timeout and a margin: its gate opens by itself.
                    if let Some(member) = attempt.members.get_mut(&pid) {
                        member.phase = Phase::Quiet;
                    }
                    attempt.fail(AttemptError::Shim {
                        pid,
                        refusal: Refusal::Timeout,
                    });
                }
            }
            Stage::Held | Stage::Detached => {
                tracing::warn!(
                    seq = attempt.seq,
                    "the sidecar took too long: the job goes on without it"
                );
                attempt.fail(AttemptError::Abandoned);
            }
            Stage::Detaching => {
                for pid in attempt.in_phase(|p| matches!(p, Phase::Detaching | Phase::Closing)) {
                    if let Some(member) = attempt.members.get_mut(&pid) {
                        member.phase = Phase::Stuck;
                    }
                    attempt.fail(AttemptError::Shim {
                        pid,
                        refusal: Refusal::Timeout,
                    });
                }
            }
            Stage::Attaching => {
                let missing = attempt.in_phase(|p| *p != Phase::Back);
                attempt.fail(AttemptError::OutOfOrder(
                    "a process did not attach in time".into(),
                ));
                self.job_is_lost(&format!("processes {missing:?} did not attach in time"));
                return;
            }
            Stage::Dumping if !attempt.overdue => {
                attempt.overdue = true;
                attempt.deadline = Some(Instant::now() + self.config.timeouts.reap);
                attempt.fail(AttemptError::Control(
                    "the driver or CRIU did not come to an end".into(),
                ));
                tracing::error!(
                    "the driver or CRIU does not come to an end: the job is ended and resumes from its newest checkpoint"
                );
                self.kill_everything();
            }
            Stage::Dumping => self.give_up_on_driver(),
        }
        self.advance();
    }

    // ------------------------------------------------------------------------------------------------ the machine

    fn connection_of(&self, pid: ProcessId) -> Option<ConnectionId> {
        self.processes.get(&pid)?.connection
    }

    /// Goes as far as it goes.
    fn advance(&mut self) {
        loop {
            let Some(attempt) = &mut self.attempt else {
                return;
            };
            let over = attempt.stage == Stage::Detaching
                && attempt.all(|p| matches!(p, Phase::Away | Phase::Stuck));
            if attempt.farewell && (over || attempt.failure.is_some()) {
                self.attempt = None;
                self.save_and_kill();
                return;
            }
            match attempt.stage {
                Stage::Quiescing => {
                    // One that cannot ends it for all: nobody is held back for the others' answers.
                    if attempt.failure.is_none() {
                        if !attempt.all(|p| *p != Phase::Asked) {
                            return;
                        }
                        self.take_tables();
                    }
                    if self.attempt.as_ref().is_some_and(|a| a.failure.is_some()) {
                        self.finish_attempt();
                        return;
                    }
                    self.hold();
                }
                Stage::Held => {
                    if attempt.failure.is_some() {
                        self.finish_attempt();
                    }
                    return;
                }
                Stage::Detaching => {
                    if !attempt.all(|p| matches!(p, Phase::Away | Phase::Stuck)) {
                        return;
                    }
                    if attempt.failure.is_some() {
                        self.begin_attach();
                    } else {
                        attempt.detach_ns = ns(attempt.stage_began.elapsed());
                        failpoint::hit("agent:after-detach");
                        self.start_dump();
                        return;
                    }
                }
                Stage::Dumping => return,
                Stage::Detached => {
                    if attempt.failure.is_none() {
                        return;
                    }
                    self.begin_attach();
                }
                Stage::Attaching => {
                    if attempt.all(|p| *p == Phase::Back) {
                        self.finish_attempt();
                    }
                    return;
                }
            }
        }
    }

    /// Every gate is closed: the tables become the vault.
    fn take_tables(&mut self) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        for (&pid, member) in &mut attempt.members {
            if let Err(e) = self.vault.apply(pid, std::mem::take(&mut member.table)) {
                let refusal = Refusal::Other(e.to_string());
                attempt.fail(AttemptError::Shim { pid, refusal });
                return;
            }
        }
        // A process whose memory nobody could give back to it must not let go of it.
        if let Some((pid, key)) = self.vault.missing_import() {
            let refusal = Refusal::Other(format!(
                "it uses allocation {} of process {}, which the agent does not hold",
                key.id, key.owner
            ));
            attempt.fail(AttemptError::Shim { pid, refusal });
            return;
        }
        self.survey
            .native_bytes(attempt.members.values().map(|m| m.native).sum());
        failpoint::hit("agent:after-quiesce");
    }

    fn hold(&mut self) {
        let bound = self.config.timeouts.hold;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.enter(Stage::Held, Some(bound));
        if attempt.farewell {
            self.detach_all(self.config.timeouts.save_before_kill / 2);
            return;
        }
        attempt.told_quiesced = true;
        let seq = attempt.seq;
        let outcome = Ok(list(&self.processes));
        let told = self.sidecar.send_table(seq, &self.vault)
            && self
                .sidecar
                .send(&ToSidecar::Quiesced { seq, outcome }, &[]);
        if !told && let Some(attempt) = &mut self.attempt {
            attempt.fail(AttemptError::Abandoned);
        }
    }

    fn start_dump(&mut self) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let (Some(image), Some(root), Some(criu)) =
            (attempt.image.clone(), self.job.root, self.criu.clone())
        else {
            attempt.fail(AttemptError::JobEnded);
            self.begin_attach();
            return;
        };
        let plan = DumpPlan {
            seq: attempt.seq,
            job: self.config.job.clone(),
            root,
            processes: list(&self.processes),
            native_bytes: attempt.members.values().map(|m| m.native).sum(),
            image,
            criu,
            control: self.control.clone(),
            max_file_size: self.config.max_file_size,
            tcp: self.config.tcp,
            timeouts: self.config.timeouts.clone(),
            vault: self
                .vault
                .entries()
                .map(|e| VaultImage {
                    allocation: e.allocation,
                    requested: e.requested,
                    shared: self.vault.is_shared(&e.allocation.key),
                })
                .collect(),
            imports: self
                .vault
                .imports()
                .iter()
                .map(|(&pid, keys)| (pid, keys.iter().copied().collect()))
                .collect(),
            stdio: self
                .job
                .streams
                .as_ref()
                .map_or_else(Vec::new, |s| s.pipes.clone()),
            shim: self.job.shim.clone(),
            shim_socket: self
                .job
                .other_socket
                .clone()
                .unwrap_or_else(|| self.config.shim_socket()),
            moved: self.job.moved.clone(),
            job_dir: self.config.job_dir(),
            detach_ns: attempt.detach_ns,
            cancelled: Arc::clone(&attempt.cancelled),
        };
        let bytes = plan.native_bytes + tree::image_bytes(root);
        let timeouts = &self.config.timeouts;
        let work = criu::patience(timeouts.criu, bytes);
        let bound = timeouts.lock + timeouts.freeze + timeouts.driver + work;
        attempt.enter(Stage::Dumping, Some(bound));
        let started = self.worker.run("dump", move |tell| {
            Done::Dumped(dump(&plan, &|| tell(Done::ControlSaved(plan.seq))))
        });
        if let Err(e) = started {
            self.dump_ended(Err(DumpFailure::from(AttemptError::Criu(format!(
                "cannot start a thread: {e}"
            )))));
        }
    }

    /// The worker is done: the control state is back, the job detached.
    pub(super) fn dump_ended(&mut self, outcome: Result<Box<DumpFacts>, DumpFailure>) {
        let bound = self.config.timeouts.detached;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        if self.job.root.is_none() {
            // The image, if there is one, is of a job that has ended since: nothing to attach.
            attempt.failure = Some(AttemptError::JobEnded);
            self.finish_attempt();
            return;
        }
        match outcome {
            Ok(facts) if attempt.failure.is_none() => {
                let seq = attempt.seq;
                attempt.owes_dumped = false;
                attempt.enter(Stage::Detached, Some(bound));
                self.survey.dumped();
                let Some(image) = attempt.image.take() else {
                    return;
                };
                let told = self.sidecar.send(
                    &ToSidecar::Dumped {
                        seq,
                        outcome: Ok(facts),
                    },
                    &[image.fd()],
                );
                if told {
                    self.images.insert(seq, image);
                } else if let Some(attempt) = &mut self.attempt {
                    attempt.fail(AttemptError::Abandoned);
                }
                self.advance();
            }
            Ok(_) => {
                self.begin_attach();
                self.advance();
            }
            Err(DumpFailure {
                error,
                lost,
                device,
                lasting,
            }) => {
                if let Some(what) = lasting {
                    self.survey.shown(what, error.clone(), Instant::now());
                }
                attempt.fail(error);
                if let Some(device) = device {
                    self.survey.blocked_by(*device, Instant::now());
                }
                match lost {
                    Some(why) => {
                        attempt.dump_over = true;
                        attempt.deadline = None;
                        self.job_is_lost(&why);
                    }
                    None => {
                        self.begin_attach();
                        self.advance();
                    }
                }
            }
        }
    }

    /// Gives every process its memory back.
    fn begin_attach(&mut self) {
        let bound = self.config.timeouts.attach;
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        attempt.enter(Stage::Attaching, Some(bound));
        let seq = attempt.seq;
        let stuck = attempt.in_phase(|p| *p == Phase::Stuck);
        if let Err(e) = self.listen() {
            self.job_is_lost(&e.to_string());
            return;
        }
        for pid in stuck {
            let Some(id) = self.connection_of(pid) else {
                self.attempt_connection_lost(pid, None);
                continue;
            };
            if let Some(member) = self.attempt.as_mut().and_then(|a| a.members.get_mut(&pid)) {
                member.phase = Phase::Sent;
            }
            if !self.send_memory(id, pid, seq) {
                self.on_shim_closed(id, None);
            }
        }
        // Some may be connected already: those that came back before they were expected.
        let early: Vec<(ProcessId, ConnectionId)> = self
            .attempt
            .iter()
            .flat_map(|a| a.in_phase(|p| *p == Phase::Away))
            .filter_map(|pid| Some((pid, self.connection_of(pid)?)))
            .collect();
        for (pid, id) in early {
            self.shim_returned(id, pid, seq);
        }
    }

    /// Opens every gate and answers.
    fn finish_attempt(&mut self) {
        let Some(attempt) = self.attempt.take() else {
            return;
        };
        let seq = attempt.seq;
        for (pid, member) in attempt.members {
            // One that has not answered yet takes its request back.
            let closed = matches!(member.phase, Phase::Asked | Phase::Quiet | Phase::Back);
            if closed && let Some(id) = self.connection_of(pid) {
                self.tell_shim(id, &ToShim::Resume { seq });
            }
            // Empty, unless the attempt ended before the tables were taken.
            self.vault.keep(pid, member.table);
        }
        let stop_ns = ns(attempt.began.elapsed());
        let attach_ns = if attempt.stage == Stage::Attaching {
            ns(attempt.stage_began.elapsed())
        } else {
            0
        };
        let abandoned = attempt.failure == Some(AttemptError::Abandoned);
        let whole = attempt.failure.is_none();
        let answer = match attempt.failure {
            Some(error) if !attempt.told_quiesced && !abandoned => ToSidecar::Quiesced {
                seq,
                outcome: Err(error),
            },
            Some(error) if attempt.owes_dumped && !abandoned => ToSidecar::Dumped {
                seq,
                outcome: Err(error),
            },
            // `JobExited` says it.
            Some(AttemptError::JobEnded) => return,
            _ => ToSidecar::Resumed {
                seq,
                stop_ns,
                attach_ns,
                whole,
            },
        };
        if attempt.stage == Stage::Quiescing {
            tracing::debug!(seq, stop_ms = stop_ns / 1_000_000, "the job runs on");
        } else {
            tracing::info!(
                seq,
                stop_ms = stop_ns / 1_000_000,
                attach_ms = attach_ns / 1_000_000,
                "the job runs again"
            );
        }
        self.sidecar.send(&answer, &[]);
    }
}
