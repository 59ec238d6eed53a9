//! Carries out what the machine of an attempt decides: the processes and the sidecar are told, the image's directory is made, the
//! dump is started.
//!
//! # Rules
//!
//! * Effects are carried out in their order and to the end before the next event is taken in. What comes of one (a connection
//!   that turns out to be broken, say) is an event that waits its turn: so no process is told to continue and asked to stop after
//!   that.
//! * Nothing is decided here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use phos_protocol::agent::{AttemptError, DumpFacts, JobState, QuiesceTime, ToSidecar};
use phos_protocol::shim::{Refusal, Sequence, ShimState, TableEntry, ToShim, Usage};
use phos_protocol::types::{AllocationKey, MemberId, ProcessId};
use phos_shared::failpoint::{self, Point};

use super::Init;
use super::credit;
use super::worker::Done;
use crate::attempt::{Attempts, Effect, Input, Tables, Undumped, counts};
use crate::channels::shims::{ConnectionId, list};
use crate::config::Timeouts;
use crate::criu;
use crate::dump::{DumpFailure, DumpPlan, dump};
use crate::image::{ImageDirectory, Pages, VaultImage};
use crate::survey;
use crate::tree;
use crate::vault::Table;

/// The attempt under way, and what belongs to it that is more than a decision.
#[derive(Debug)]
pub(super) struct Checkpoint {
    attempts: Attempts,
    /// Events that wait for the effects of the one before.
    waiting: VecDeque<Input>,
    /// Effects that are still to be carried out.
    effects: VecDeque<Effect>,
    /// Whether effects are being carried out.
    busy: bool,
    /// What the processes have sent of their tables.
    tables: BTreeMap<ProcessId, Table>,
    /// The image that nobody has been told of yet.
    image: Option<Arc<ImageDirectory>>,
    /// Set when the dump is to stop at its next step.
    cancelled: Arc<AtomicBool>,
    /// How far the job may go after it.
    pub(super) credit: Option<credit::Given>,
}

impl Checkpoint {
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self {
            attempts: Attempts::new(timeouts),
            waiting: VecDeque::new(),
            effects: VecDeque::new(),
            busy: false,
            tables: BTreeMap::new(),
            image: None,
            cancelled: Arc::default(),
            credit: None,
        }
    }

    /// Whether an attempt or a farewell is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.attempts.is_under_way()
    }

    /// Whether a process was asked to make that multicast object.
    pub(super) fn expects_object(
        &self,
        pid: ProcessId,
        seq: Sequence,
        key: &AllocationKey,
    ) -> bool {
        self.attempts.expects_object(pid, seq, key)
    }

    /// When [`Input::Tick`] is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.attempts.deadline()
    }
}

/// Turns are for a process alone that no other one waits for, and in which no rank waits for another: one that has fallen quiet would be held while another still takes them, and that may wait for
/// it. And an older shim, in a restored process, does not know turns. Then the job is held for the shorter of both times.
fn granted(time: QuiesceTime, mut take_turns: impl Iterator<Item = bool>) -> QuiesceTime {
    match (take_turns.next(), take_turns.next()) {
        (Some(true), None) => time,
        _ => QuiesceTime::at_once(time.timeout_ms.min(time.hold_ms)),
    }
}

impl Init {
    /// Takes in what happened, and carries out what is to be done about it.
    pub(super) fn attempt(&mut self, input: Input) {
        self.checkpoint.waiting.push_back(input);
        self.carry_on();
    }

    /// Carries out the effects there are, and those of the events that wait.
    fn carry_on(&mut self) {
        if self.checkpoint.busy {
            return;
        }
        self.checkpoint.busy = true;
        loop {
            if let Some(effect) = self.checkpoint.effects.pop_front() {
                self.carry_out(effect);
            } else if let Some(input) = self.checkpoint.waiting.pop_front() {
                let effects = self.checkpoint.attempts.step(Instant::now(), input);
                self.checkpoint.effects.extend(effects);
            } else {
                break;
            }
        }
        self.checkpoint.busy = false;
    }

    fn carry_out(&mut self, effect: Effect) {
        match effect {
            Effect::Quiesce { pid, seq, time } => {
                self.checkpoint.tables.insert(pid, Table::default());
                let QuiesceTime {
                    timeout_ms,
                    hold_ms,
                } = time;
                let request = if hold_ms < timeout_ms {
                    ToShim::QuiesceInTurns {
                        seq,
                        timeout_ms,
                        hold_ms,
                    }
                } else {
                    ToShim::Quiesce { seq, timeout_ms }
                };
                self.tell_process(pid, &request);
            }
            Effect::QuiesceAtCut { pid, seq, time } => {
                self.checkpoint.tables.insert(pid, Table::default());
                let timeout_ms = time.timeout_ms;
                self.tell_process(pid, &ToShim::QuiesceAtCut { seq, timeout_ms });
            }
            Effect::Continue { pid, seq, goals } => {
                let goals = counts::counts(&goals);
                self.tell_process(pid, &ToShim::Continue { seq, goals });
            }
            Effect::Settle { pid, seq } => self.tell_process(pid, &ToShim::Settle { seq }),
            Effect::TakeTables { seq } => {
                let outcome = self.take_tables();
                self.attempt(Input::Collected { seq, outcome });
            }
            Effect::TellQuiesced { seq } => self.tell_quiesced(seq),
            Effect::Prepare { seq } => self.prepare(seq),
            Effect::RefuseDump { seq } => self.refuse_dump(seq),
            Effect::StopListening => {
                self.shims.stop_listening();
                // None may be alive while the job is dumped.
                self.multicasts.clear();
            }
            Effect::Detach { pid, seq } => {
                if self.connection_of(pid).is_some() {
                    self.tell_process(pid, &ToShim::Detach { seq });
                } else {
                    self.attempt(Input::Disconnected { pid, why: None });
                }
            }
            Effect::StartDump {
                seq,
                native_bytes,
                detach_ns,
            } => self.start_dump(seq, native_bytes, detach_ns),
            Effect::CancelDump => self.checkpoint.cancelled.store(true, Ordering::Release),
            Effect::TellDumped { seq, facts } => self.tell_dumped(seq, facts),
            Effect::Listen { seq } => {
                let connected = match self.listen() {
                    Ok(()) => Ok(self.connected()),
                    Err(e) => Err(e.to_string()),
                };
                self.attempt(Input::Listening { seq, connected });
            }
            Effect::SendMemory { pid, seq } => {
                // Who has lost its connection by now comes back once more.
                if let Some(id) = self.connection_of(pid)
                    && !self.send_memory(id, pid, seq)
                {
                    self.on_shim_closed(id, None);
                }
            }
            Effect::Rejoin { seq, asked } => self.ask_to_rejoin(seq, asked),
            Effect::Resume { pid, seq } => {
                self.give_credit(pid, seq);
                self.tell_process(pid, &ToShim::Resume { seq });
            }
            Effect::Answer(answer) => {
                self.sidecar.send(&answer, &[]);
            }
            Effect::CleanUp(tables) => self.clean_up(tables),
            Effect::LoseJob(why) => self.job_is_lost(&why),
            Effect::KillEverything => self.kill_everything(),
            Effect::SaveAndKill => self.save_and_kill(),
            Effect::GiveUpOnDriver => self.give_up_on_driver(),
            Effect::Failpoint(point) => failpoint::reach(point),
        }
    }

    /// Tells a process something, if it is connected.
    pub(super) fn tell_process(&mut self, pid: ProcessId, message: &ToShim) {
        if let Some(id) = self.connection_of(pid) {
            self.tell_shim(id, message);
        }
    }

    pub(super) fn connection_of(&self, pid: ProcessId) -> Option<ConnectionId> {
        self.processes.get(&pid)?.connection
    }

    /// Whether a process is asked to fall quiet in that attempt, and says what it has.
    pub(super) fn attempt_expects_table(&self, pid: ProcessId, seq: Sequence) -> bool {
        self.checkpoint.attempts.expects_table(pid, seq)
    }

    /// The processes whose shims are connected.
    fn connected(&self) -> Vec<ProcessId> {
        self.processes
            .iter()
            .filter(|(_, process)| process.connection.is_some())
            .map(|(&pid, _)| pid)
            .collect()
    }

    // --------------------------------------------------------------------------------------- asked by the sidecar

    /// Begins an attempt at the sidecar's `Quiesce`, or answers why not.
    pub(super) fn begin_attempt(
        &mut self,
        seq: Sequence,
        time: QuiesceTime,
        urgency: survey::Urgency,
    ) {
        let watched = self.watching.take();
        let connected = self.processes.values().filter(|p| p.connection.is_some());
        let time = granted(time, connected.map(|p| p.watches && !p.communicates));
        if let Err(error) = self.attempt_possible(urgency) {
            let outcome = Err(error);
            self.sidecar
                .send(&ToSidecar::Quiesced { seq, outcome }, &[]);
            self.watching = watched;
            self.end_watch();
            return;
        }
        self.last_seq = seq;
        self.end_credit();
        let processes = self.connected();
        let communicating = (self.processes.iter())
            .filter(|(_, process)| process.communicates)
            .map(|(&pid, _)| pid)
            .collect();
        self.attempt(Input::Begin {
            seq,
            time,
            processes,
            communicating,
        });
    }

    /// Has the shims release their memory before the job is killed; returns whether that is under way now. It is not
    /// if an attempt is.
    pub(super) fn begin_farewell(&mut self) -> bool {
        if self.checkpoint.is_under_way() {
            return false;
        }
        let bound = self.config.timeouts.save_before_kill / 2;
        self.last_seq += 1;
        let processes = self.connected();
        let effects = self.checkpoint.attempts.begin_farewell(
            Instant::now(),
            self.last_seq,
            bound,
            &processes,
        );
        self.checkpoint.effects.extend(effects);
        self.carry_on();
        true
    }

    /// What can be known before the job is disturbed.
    fn attempt_possible(&mut self, urgency: survey::Urgency) -> Result<(), AttemptError> {
        if self.job.state != JobState::Running || self.job.root.is_none() {
            return Err(AttemptError::JobEnded);
        }
        // A job that is in its handler for SIGTERM would be resumed there, and end at once.
        if self.ending.stopping.as_ref().is_some_and(|s| s.signalled) {
            return Err(AttemptError::JobEnded);
        }
        if self.checkpoint.is_under_way() || self.restore.is_some() {
            return Err(AttemptError::OutOfOrder(
                "another attempt or a restore is under way".into(),
            ));
        }
        if let Some((pid, refusal)) = self.unsupported() {
            return Err(AttemptError::Shim {
                member: MemberId::here(pid),
                refusal,
            });
        }
        if let Some(error) = self.is_without_a_rank() {
            return Err(error);
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
        if self.tools.criu.is_none() {
            let found =
                criu::for_config(&self.config).map_err(|e| AttemptError::Criu(e.to_string()))?;
            self.tools.criu = Some(found);
        }
        if !self.processes.is_empty() {
            self.tools
                .control
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
        let usage: BTreeMap<ProcessId, Usage> = (self.processes.iter())
            .filter_map(|(&pid, process)| Some((pid, process.usage?)))
            .collect();
        let job = survey::Job {
            root,
            with_shim: &with_shim,
            instrumented: &instrumented,
            usage: &usage,
            control: &self.tools.control,
            image_limit: self.config.image_limit,
            tcp: self.config.tcp,
            user: self.tools.user.as_ref().filter(|user| user.is_another()),
            urgency,
        };
        let seen = self.survey.look(&job, Instant::now());
        if let Some(why) = self.survey.take_lost() {
            self.job_is_lost(&why);
        }
        seen
    }

    fn refuse_dump(&mut self, seq: Sequence) {
        let outcome = Err(if self.job.state == JobState::Running {
            AttemptError::OutOfOrder(format!("the job is not held for attempt {seq} (any more)"))
        } else {
            AttemptError::JobEnded
        });
        self.sidecar.send(&ToSidecar::Dumped { seq, outcome }, &[]);
    }

    // ------------------------------------------------------------------------------------------ said by the shims

    /// Takes in a part of a process's table, for the attempt or farewell that it belongs to.
    pub(super) fn attempt_table(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        entries: Vec<TableEntry>,
        imported: Vec<AllocationKey>,
        fds: Vec<OwnedFd>,
    ) {
        if !self.attempt_expects_table(pid, seq) {
            // Of an attempt that is over: the process has sent it, and will not do so again.
            let mut table = Table::default();
            if let Err(e) = table.add(entries, imported, fds) {
                tracing::warn!(pid, cause = %e, "a table of a process is unusable");
            }
            self.vault.keep(pid, table);
            return;
        }
        let table = self.checkpoint.tables.entry(pid).or_default();
        if let Err(e) = table.add(entries, imported, fds) {
            let why = e.to_string();
            self.attempt(Input::TableUnusable { pid, seq, why });
        }
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
        } else {
            self.attempt(Input::Attached { pid, seq, outcome });
        }
    }

    /// A shim has connected and said hello.
    pub(super) fn shim_connected(&mut self, id: ConnectionId, pid: ProcessId, state: ShimState) {
        match state {
            ShimState::Fresh | ShimState::Running => self.attempt(Input::Newcomer { pid }),
            ShimState::Detached(seq) if self.restore.is_some() => {
                self.restore_returned(id, pid, seq);
            }
            ShimState::Detached(seq) => self.attempt(Input::Returned { pid, seq }),
        }
    }

    /// Tells the attempt that a process ended.
    pub(super) fn attempt_process_gone(&mut self, pid: ProcessId) {
        self.checkpoint.tables.remove(&pid);
        self.attempt(Input::ProcessEnded { pid });
    }

    // ------------------------------------------------------------------------------------------------ the effects

    /// Every gate is closed: the tables become the vault.
    fn take_tables(&mut self) -> Result<(), AttemptError> {
        while let Some((pid, table)) = self.checkpoint.tables.pop_first() {
            self.vault
                .apply(pid, table)
                .map_err(|e| AttemptError::Shim {
                    member: MemberId::here(pid),
                    refusal: Refusal::Other(e.to_string()),
                })?;
        }
        // A process whose memory nobody could give back to it must not let go of it.
        if let Some((pid, key)) = self.vault.missing_import() {
            let refusal = Refusal::Other(format!(
                "it uses allocation {} of process {}, which the agent does not hold",
                key.id, key.owner
            ));
            return Err(AttemptError::Shim {
                member: MemberId::here(pid),
                refusal,
            });
        }
        failpoint::reach(Point::AgentAfterQuiesce);
        Ok(())
    }

    fn tell_quiesced(&mut self, seq: Sequence) {
        self.tell_that_they_take_credit(seq);
        let outcome = Ok(list(&self.processes));
        let told = self.sidecar.send_table(seq, &self.vault)
            && self
                .sidecar
                .send(&ToSidecar::Quiesced { seq, outcome }, &[]);
        if !told {
            self.attempt(Input::Abandon { seq: Some(seq) });
        }
    }

    fn prepare(&mut self, seq: Sequence) {
        // A process has about ten files in an image.
        let few = self
            .job
            .root
            .and_then(|root| tree::collect(root).ok())
            .is_some_and(|t| t.processes.len() <= 32);
        let pages = if few { Pages::Huge } else { Pages::Small };
        let made = ImageDirectory::create(self.config.image_limit, pages, &self.config.job_dir());
        let outcome = match made {
            Ok(directory) => {
                self.checkpoint.image = Some(Arc::new(directory));
                Ok(())
            }
            Err(e) => Err(AttemptError::Files(e.to_string())),
        };
        let connected = self.connected();
        self.attempt(Input::Prepared {
            seq,
            outcome,
            connected,
        });
    }

    fn start_dump(&mut self, seq: Sequence, native_bytes: u64, detach_ns: u64) {
        let Some(plan) = self.dump_plan(seq, native_bytes, detach_ns) else {
            self.dump_failed_to_start(AttemptError::JobEnded);
            return;
        };
        let bytes = native_bytes + tree::image_bytes(plan.root);
        let timeouts = &self.config.timeouts;
        let work = criu::patience(timeouts.criu, bytes);
        let bound = timeouts.lock + timeouts.freeze + timeouts.driver + work;
        let started = self.worker.run("dump", move |tell| {
            Done::Dumped(dump(&plan, &|| tell(Done::ControlSaved(plan.seq))))
        });
        match started {
            Ok(()) => self.attempt(Input::DumpBegan { seq, bound }),
            Err(e) => {
                self.dump_failed_to_start(AttemptError::Criu(format!(
                    "cannot start a thread: {e}"
                )));
            }
        }
    }

    fn dump_failed_to_start(&mut self, error: AttemptError) {
        let outcome = Err(Undumped { error, lost: None });
        self.attempt(Input::DumpEnded { outcome });
    }

    /// What the dump has to know; `None` if there is nothing to dump, or nothing to dump it with.
    fn dump_plan(&mut self, seq: Sequence, native_bytes: u64, detach_ns: u64) -> Option<DumpPlan> {
        self.checkpoint.cancelled = Arc::new(AtomicBool::new(false));
        let vault = self.vault.entries().map(|e| VaultImage {
            allocation: e.allocation,
            requested: e.requested,
            shared: self.vault.is_shared(&e.allocation.key),
        });
        let imports = self.vault.imports().iter();
        let shim_socket = self.job.other_socket.clone();
        Some(DumpPlan {
            seq,
            job: self.config.job.clone(),
            root: self.job.root?,
            processes: list(&self.processes),
            native_bytes,
            image: self.checkpoint.image.clone()?,
            criu: self.tools.criu.clone()?,
            control: self.tools.control.clone(),
            max_file_size: self.config.max_file_size,
            tcp: self.config.tcp,
            timeouts: self.config.timeouts.clone(),
            vault: vault.collect(),
            imports: imports
                .map(|(&pid, keys)| (pid, keys.iter().copied().collect()))
                .collect(),
            stdio: self
                .job
                .streams
                .as_ref()
                .map_or_else(Vec::new, |s| s.pipes.clone()),
            shim: self.job.shim.clone(),
            shim_socket: shim_socket.unwrap_or_else(|| self.config.shim_socket()),
            moved: self.job.moved.clone(),
            job_dir: self.config.job_dir(),
            detach_ns,
            cancelled: Arc::clone(&self.checkpoint.cancelled),
        })
    }

    /// The worker is done: the control state is back, the job detached.
    pub(super) fn dump_ended(&mut self, outcome: Result<Box<DumpFacts>, DumpFailure>) {
        let outcome = outcome.map_err(|failure| {
            let DumpFailure {
                error,
                lost,
                device,
                lasting,
            } = failure;
            // Of a job that has ended nothing is remembered.
            if self.job.root.is_some() && self.checkpoint.is_under_way() {
                if let Some(what) = lasting {
                    self.survey.shown(what, error.clone(), Instant::now());
                }
                if let Some(device) = device {
                    self.survey.blocked_by(*device, Instant::now());
                }
            }
            Undumped { error, lost }
        });
        self.attempt(Input::DumpEnded { outcome });
    }

    fn tell_dumped(&mut self, seq: Sequence, facts: Box<DumpFacts>) {
        self.survey.dumped();
        let Some(image) = self.checkpoint.image.take() else {
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
        } else {
            self.attempt(Input::Abandon { seq: Some(seq) });
        }
    }

    fn clean_up(&mut self, tables: Tables) {
        self.checkpoint.image = None;
        for (pid, table) in std::mem::take(&mut self.checkpoint.tables) {
            match tables {
                Tables::Keep => self.vault.keep(pid, table),
                Tables::Drop => drop(table),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_are_for_a_process_alone_that_knows_them() {
        let time = QuiesceTime {
            timeout_ms: 5000,
            hold_ms: 250,
        };
        assert_eq!(granted(time, [true].into_iter()), time);
        for processes in [&[][..], &[false], &[true, true], &[true, false]] {
            let granted = granted(time, processes.iter().copied());
            assert_eq!(granted, QuiesceTime::at_once(250), "{processes:?}");
        }
    }
}
