//! One checkpoint attempt, as a state machine that does nothing itself: [`Machine::step`] takes an event and returns what is to be
//! done about it.
//!
//! ```text
//! Quiescing ─▶ Collecting ─▶ Held ─▶ Preparing ─▶ Detaching ─▶ Dumping ─▶ Detached ─▶ Reopening ─▶ Attaching (─▶ Rejoining) ─▶ over
//!     │            │          │          │            │           │           │           ▲
//!     └── resume ◀─┴──────────┴──────────┘            └───────────┴── attach ─┴───────────┘
//! ```
//!
//! # Rules
//!
//! * Pure: it reads no clock, touches no process and sends nothing. The time comes with each event, and whatever carries out the
//!   effects reports how that went as further events. It only logs.
//! * Once begun, an attempt ends with the job running, whoever fails or disappears: a failure is noted, and the machine takes the
//!   shortest way to the end that gives every process its memory back.
//! * The gates open everywhere at once: when every process has attached, or when one says that it cannot fall quiet.
//! * No process gets memory back while the job is being dumped.
//! * Multicast objects are made anew ([`super::rejoin`]) when every process has attached, and the gates open after that.
//! * A process that cannot attach loses the job: it is ended and resumed from a checkpoint. From then on ([`Stage::Lost`]) only the
//!   end of the job is waited for.
//! * Every stage has a deadline. The deadline of a dump is later than those of its parts: by then a driver that never answers has
//!   cost the job, which is ended and resumed. If not even that brings the driver's call to its end, the agent ends too: its own
//!   calls would hang in every checkpoint and restore to come.
//! * What a process says out of turn changes nothing.
//!
//! # Answers
//!
//! | the attempt fails | the sidecar hears |
//! |---|---|
//! | before `Quiesced` was sent | `Quiesced(Err)` |
//! | after `Dump` was asked for, before `Dumped` was sent | `Dumped(Err)`, when the job runs again |
//! | by `Abandon`, or in any other stage | `Resumed` |

use std::time::{Duration, Instant};

use phos_policies::cut::{Cut, Next};
use phos_protocol::agent::{AttemptError, DumpFacts, QuiesceTime, ToSidecar};
use phos_protocol::shim::{COUNTS, Refusal, Sequence};
use phos_protocol::types::{AllocationKey, MemberId, ProcessId};
use phos_shared::failpoint::Point;

use super::events::{Effect, Input, Tables, Undumped};
use super::rejoin::{Asked, Done, Rejoin};
use super::state::{Attempt, Member, Owed, Phase, Stage};
use crate::config::Timeouts;
use crate::survey::newcomer;

/// The attempt that is under way, if one is. See the module's documentation.
#[derive(Debug)]
pub struct Machine {
    timeouts: Timeouts,
    attempt: Option<Attempt>,
}

/// One step of an attempt: the event's time, and what is to be done.
struct Step<'a> {
    timeouts: &'a Timeouts,
    now: Instant,
    attempt: &'a mut Attempt,
    effects: &'a mut Vec<Effect>,
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Machine {
    /// A machine without an attempt.
    pub fn new(timeouts: Timeouts) -> Self {
        Self {
            timeouts,
            attempt: None,
        }
    }

    /// Whether an attempt is under way.
    pub fn is_under_way(&self) -> bool {
        self.attempt.is_some()
    }

    /// When to report [`Input::Tick`] at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        self.attempt.as_ref()?.deadline
    }

    /// Whether a part of a table belongs to the attempt. One that does not is of an attempt that is over.
    pub fn expects_table(&self, pid: ProcessId, seq: Sequence) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| {
            attempt.seq == seq
                && attempt.stage == Stage::Quiescing
                && attempt.members.contains_key(&pid)
        })
    }

    /// Whether a process was asked to make that multicast object.
    pub fn expects_object(&self, pid: ProcessId, seq: Sequence, key: &AllocationKey) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| {
            attempt.seq == seq
                && attempt.stage == Stage::Rejoining
                && attempt.rejoin.is_maker(pid, key)
        })
    }

    /// Takes in what happened; returns what is to be done, in this order.
    pub fn step(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        if let Input::Attached { pid, seq, outcome } = input {
            self.attached(now, pid, seq, outcome, &mut effects);
        } else if let Input::Multicasts {
            pid,
            seq,
            attached: true,
            ..
        } = input
            && self.attempt.as_ref().is_none_or(|a| a.seq != seq)
        {
            // A straggler that came back alone: the others that had them have gone on, or are being ended.
            effects.push(Effect::LoseJob(format!(
                "process {pid} comes back with multicast objects, alone"
            )));
        } else if self.attempt.is_some() {
            self.within(now, &mut effects, |step| step.take(input));
        } else {
            self.idle(now, input, &mut effects);
        }
        effects
    }

    /// Goes on with the attempt that is under way.
    fn within(
        &mut self,
        now: Instant,
        effects: &mut Vec<Effect>,
        take: impl FnOnce(&mut Step<'_>),
    ) {
        let Some(attempt) = &mut self.attempt else {
            return;
        };
        let mut step = Step {
            timeouts: &self.timeouts,
            now,
            attempt,
            effects,
        };
        take(&mut step);
        step.advance();
        if step.attempt.stage == Stage::Over {
            self.attempt = None;
        }
    }

    /// No attempt is under way.
    fn idle(&mut self, now: Instant, input: Input, effects: &mut Vec<Effect>) {
        match input {
            Input::Begin {
                seq,
                time,
                processes,
                communicating,
            } => {
                let margin = self.timeouts.quiesce_margin;
                self.attempt = Some(Attempt::new(seq, now, time, margin));
                self.within(now, effects, |step| {
                    for pid in processes {
                        if communicating.contains(&pid) {
                            step.ask_at_cut(pid, time);
                        } else {
                            step.ask(pid, time);
                        }
                    }
                });
            }
            Input::Dump { seq } => effects.push(Effect::RefuseDump { seq }),
            Input::Attach { seq } => ignored_attach(seq),
            // One that was left over from another attempt is served.
            Input::Returned { pid, seq } => effects.push(Effect::SendMemory { pid, seq }),
            _ => {}
        }
    }

    /// The answer to `Attach`.
    fn attached(
        &mut self,
        now: Instant,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<(), Refusal>,
        effects: &mut Vec<Effect>,
    ) {
        if self.attempt.as_ref().is_some_and(|a| a.seq == seq) {
            self.within(now, effects, |step| step.attached(pid, outcome));
            return;
        }
        // A straggler that came back alone.
        effects.push(match outcome {
            Ok(()) => Effect::Resume { pid, seq },
            Err(refusal) => Effect::LoseJob(cannot_attach(pid, &refusal)),
        });
    }
}

/// Why the job is lost if a process could not attach.
fn cannot_attach(pid: ProcessId, refusal: &Refusal) -> String {
    format!("process {pid} could not attach: {refusal}")
}

fn ignored_attach(seq: Sequence) {
    tracing::warn!(seq, "the sidecar asks to attach out of order: ignored");
}

impl Step<'_> {
    fn take(&mut self, input: Input) {
        let seq = self.attempt.seq;
        match input {
            Input::Begin { seq, .. } => self.refuse_another(seq),
            Input::Dump { seq: asked } => self.dump_wanted(asked),
            Input::Attach { seq: asked } => self.attach_wanted(asked),
            Input::Abandon { seq: meant } => {
                if meant.is_none_or(|meant| meant == seq) {
                    self.abandon();
                }
            }
            Input::Position {
                pid,
                seq: of,
                standing,
                position,
            } if of == seq => {
                self.attempt.cut.report(pid, standing, position);
                self.look_for_cut();
            }
            Input::TableUnusable { pid, seq: of, why } if of == seq => {
                self.fail(shim_failed(pid, why))
            }
            Input::Native {
                pid,
                seq: of,
                bytes,
            } if of == seq => self.note_native(pid, bytes),
            Input::Quiesced {
                pid,
                seq: of,
                outcome,
            } if of == seq => {
                self.answered(pid, outcome, [Phase::Asked, Phase::Quiet, Phase::Refused]);
            }
            Input::Detached {
                pid,
                seq: of,
                outcome,
            } if of == seq => {
                self.answered(
                    pid,
                    outcome,
                    [Phase::Detaching, Phase::Closing, Phase::Stuck],
                );
            }
            Input::Multicasts {
                pid,
                seq: of,
                attached,
                held,
            } if of == seq => {
                let due = match attached {
                    true => Stage::Attaching,
                    false => Stage::Quiescing,
                };
                if self.attempt.stage == due && self.attempt.members.contains_key(&pid) {
                    self.attempt.rejoin.report(pid, &held);
                }
            }
            Input::Rejoined {
                pid,
                seq: of,
                outcome,
            } if of == seq => self.rejoined(pid, outcome),
            Input::Returned { pid, seq } => self.returned(pid, seq),
            Input::Newcomer { pid } => self.newcomer(pid),
            Input::Disconnected { pid, why } => self.disconnected(pid, why.as_deref()),
            Input::ProcessEnded { pid } => self.process_ended(pid),
            Input::JobEnded => self.job_ended(),
            Input::Collected { seq: of, outcome } if of == seq => self.collected(outcome),
            Input::Prepared {
                seq: of,
                outcome,
                connected,
            } if of == seq => self.prepared(outcome, &connected),
            Input::DumpBegan { seq: of, bound } if of == seq => self.dump_began(bound),
            Input::DumpEnded { outcome } => self.dump_ended(outcome),
            Input::Listening { seq: of, connected } if of == seq => self.listening(connected),
            Input::Tick if self.attempt.deadline.is_some_and(|d| self.now >= d) => {
                self.timed_out();
            }
            // Of an attempt that is over; the answer to `Attach` is not taken here.
            Input::Position { .. }
            | Input::TableUnusable { .. }
            | Input::Native { .. }
            | Input::Quiesced { .. }
            | Input::Detached { .. }
            | Input::Attached { .. }
            | Input::Multicasts { .. }
            | Input::Rejoined { .. }
            | Input::Collected { .. }
            | Input::Prepared { .. }
            | Input::DumpBegan { .. }
            | Input::Listening { .. }
            | Input::Tick => {}
        }
    }

    /// The sidecar asks for an attempt while there is one.
    fn refuse_another(&mut self, seq: Sequence) {
        let outcome = Err(AttemptError::OutOfOrder(
            "another attempt or a restore is under way".into(),
        ));
        self.effects
            .push(Effect::Answer(ToSidecar::Quiesced { seq, outcome }));
    }

    /// A process says how much the driver has of its memory.
    fn note_native(&mut self, pid: ProcessId, bytes: u64) {
        if let Some(member) = self.attempt.members.get_mut(&pid) {
            member.native = bytes;
        }
    }

    /// The dump has begun, and may take so long.
    fn dump_began(&mut self, bound: Duration) {
        if self.attempt.stage == Stage::Dumping {
            self.attempt.deadline = Some(self.attempt.stage_began + bound);
        }
    }

    fn enter(&mut self, stage: Stage, bound: Duration) {
        self.go_to(stage);
        self.attempt.stage_began = self.now;
        self.attempt.deadline = Some(self.now + bound);
    }

    /// Goes to a stage within the time of the one before.
    fn go_to(&mut self, stage: Stage) {
        tracing::debug!(seq = self.attempt.seq, from = ?self.attempt.stage, to = ?stage, "attempt");
        self.attempt.stage = stage;
    }

    fn fail(&mut self, error: AttemptError) {
        let attempt = &mut *self.attempt;
        if attempt.failure.is_some() {
            return;
        }
        // The sidecar says what becomes of a try that only began.
        if attempt.only_began() && error.is_transient() {
            tracing::debug!(seq = attempt.seq, cause = %error, "the job does not fall quiet");
        } else {
            tracing::warn!(seq = attempt.seq, stage = ?attempt.stage, cause = %error, "the checkpoint attempt is undone");
        }
        attempt.failure = Some(error);
        if attempt.is_dumping() {
            self.effects.push(Effect::CancelDump);
        }
    }

    /// The job is ended, once: nothing is done for it any more.
    fn lose(&mut self, why: String) {
        if self.attempt.stage != Stage::Lost {
            self.go_to(Stage::Lost);
            self.attempt.deadline = None;
            self.effects.push(Effect::LoseJob(why));
        }
    }

    // --------------------------------------------------------------------------------------- asked by the sidecar

    fn dump_wanted(&mut self, seq: Sequence) {
        if self.attempt.seq != seq || self.attempt.stage != Stage::Held {
            self.effects.push(Effect::RefuseDump { seq });
            return;
        }
        self.attempt.owed = Owed::Dumped;
        self.go_to(Stage::Preparing);
        self.effects.push(Effect::Prepare { seq });
    }

    fn attach_wanted(&mut self, seq: Sequence) {
        if self.attempt.seq != seq || self.attempt.stage != Stage::Detached {
            ignored_attach(seq);
            return;
        }
        self.effects
            .push(Effect::Failpoint(Point::AgentBeforeAttach));
        self.reopen();
    }

    fn abandon(&mut self) {
        // It is on its way already.
        if !self.attempt.is_attaching() && self.attempt.stage != Stage::Lost {
            self.fail(AttemptError::Abandoned);
        }
    }

    // ------------------------------------------------------------------------------------------ said by the shims

    /// Asks a process to fall quiet.
    fn ask(&mut self, pid: ProcessId, time: QuiesceTime) {
        self.attempt.members.insert(pid, Member::asked());
        self.effects.push(Effect::Quiesce {
            pid,
            seq: self.attempt.seq,
            time,
        });
    }

    /// The same for one whose ranks others wait for.
    fn ask_at_cut(&mut self, pid: ProcessId, time: QuiesceTime) {
        self.attempt.members.insert(pid, Member::asked());
        self.attempt.cut.expect(pid);
        self.effects.push(Effect::QuiesceAtCut {
            pid,
            seq: self.attempt.seq,
            time,
        });
    }

    /// Tells ranks that are behind to continue, or all to fall quiet when none is.
    fn look_for_cut(&mut self) {
        let attempt = &mut *self.attempt;
        if attempt.stage != Stage::Quiescing || attempt.failure.is_some() {
            return;
        }
        let seq = attempt.seq;
        match attempt.cut.decide() {
            Next::Continue(some) => {
                for (pid, goals) in some {
                    if goals.len() > COUNTS {
                        let why = "others say that it has more to do for them than can be said";
                        self.fail(shim_failed(pid, why.to_owned()));
                        return;
                    }
                    tracing::debug!(seq, pid, ?goals, "others wait for this process");
                    self.effects.push(Effect::Continue { pid, seq, goals });
                }
            }
            Next::Wait => {}
            Next::Complete => {
                for pid in attempt.cut.processes() {
                    self.effects.push(Effect::Settle { pid, seq });
                }
                attempt.cut = Cut::default();
            }
        }
    }

    /// A member that is in phase `asked` answered: it goes to `done`, or to `failed`, which ends the
    /// attempt. An answer nobody waits for any more changes nothing.
    fn answered(
        &mut self,
        pid: ProcessId,
        outcome: Result<(), Refusal>,
        [asked, done, failed]: [Phase; 3],
    ) {
        let Some(member) = self.attempt.members.get_mut(&pid) else {
            return;
        };
        if member.phase != asked {
            return;
        }
        match outcome {
            Ok(()) => member.phase = done,
            Err(refusal) => {
                member.phase = failed;
                self.fail(AttemptError::Shim {
                    member: MemberId::here(pid),
                    refusal,
                });
            }
        }
    }

    fn attached(&mut self, pid: ProcessId, outcome: Result<(), Refusal>) {
        if self.attempt.stage != Stage::Attaching {
            return;
        }
        match outcome {
            Ok(()) => {
                if let Some(member) = self.attempt.members.get_mut(&pid)
                    && member.phase == Phase::Sent
                {
                    member.phase = Phase::Back;
                    self.effects.push(Effect::Failpoint(Point::AgentMidAttach));
                }
            }
            Err(refusal) => {
                self.fail(AttemptError::Shim {
                    member: MemberId::here(pid),
                    refusal: refusal.clone(),
                });
                self.lose(cannot_attach(pid, &refusal));
            }
        }
    }

    /// Every process has its memory back.
    fn start_rejoin(&mut self) {
        match self.attempt.rejoin.start() {
            Ok(asked) => {
                self.go_to(Stage::Rejoining);
                self.ask_to_rejoin(asked);
            }
            Err(why) => self.cannot_rejoin(why),
        }
    }

    fn ask_to_rejoin(&mut self, all: Vec<Asked>) {
        let seq = self.attempt.seq;
        let asked = all.into_iter();
        self.effects
            .extend(asked.map(|asked| Effect::Rejoin { seq, asked }));
    }

    fn rejoined(&mut self, pid: ProcessId, outcome: Result<Done, Refusal>) {
        if self.attempt.stage != Stage::Rejoining {
            return;
        }
        match outcome {
            Ok(done) => {
                let asked = self.attempt.rejoin.done(pid, done);
                self.ask_to_rejoin(asked);
                self.effects.push(Effect::Failpoint(Point::AgentMidRejoin));
            }
            Err(refusal) => {
                self.cannot_rejoin(format!("process {pid} could not: {refusal}"));
            }
        }
    }

    /// Without its multicast objects the job cannot continue.
    fn cannot_rejoin(&mut self, why: String) {
        let why = format!("multicast objects cannot be made anew: {why}");
        self.fail(AttemptError::OutOfOrder(why.clone()));
        self.lose(why);
    }

    fn returned(&mut self, pid: ProcessId, seq: Sequence) {
        if self.attempt.stage != Stage::Attaching {
            // Not expected; it gets its memory with the others.
            return;
        }
        if let Some(member) = self.attempt.members.get_mut(&pid)
            && member.phase == Phase::Away
        {
            member.phase = Phase::Sent;
        }
        // With the number it waits for: one that was left over from another attempt is served as well.
        self.effects.push(Effect::SendMemory { pid, seq });
    }

    fn newcomer(&mut self, pid: ProcessId) {
        match self.attempt.stage {
            // It would be quiet at once, and held for as long as the other one takes turns.
            Stage::Quiescing if self.attempt.in_turns => self.fail(newcomer(pid)),
            Stage::Quiescing => {
                // In the same attempt, within what is left of its time.
                let margin = self.timeouts.quiesce_margin;
                let left = self.attempt.deadline.map_or(margin, |deadline| {
                    deadline
                        .saturating_duration_since(self.now)
                        .saturating_sub(margin)
                });
                let left = u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1);
                self.ask(pid, QuiesceTime::at_once(left));
            }
            // Found out at `Dump`.
            Stage::Held => {}
            _ => tracing::debug!(pid, "a shim connects during an attempt"),
        }
    }

    fn disconnected(&mut self, pid: ProcessId, why: Option<&str>) {
        if self.attempt.stage == Stage::Rejoining && self.attempt.rejoin.has(pid) {
            // How far it is, nobody knows.
            self.cannot_rejoin(format!("process {pid} lost its connection meanwhile"));
            return;
        }
        let is_attaching = self.attempt.is_attaching();
        let Some(member) = self.attempt.members.get_mut(&pid) else {
            return;
        };
        match member.phase {
            Phase::Closing => member.phase = Phase::Away,
            Phase::Away | Phase::Refused => {}
            Phase::Asked | Phase::Quiet => {
                // Without the agent a quiesced shim opens its gate by itself.
                member.phase = Phase::Refused;
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                self.fail(AttemptError::OutOfOrder(format!(
                    "process {pid} lost its connection during the attempt{why}"
                )));
            }
            Phase::Detaching | Phase::Stuck | Phase::Sent | Phase::Back => {
                // Detached or half so: it comes back for its memory.
                member.phase = Phase::Away;
                if !is_attaching {
                    self.fail(AttemptError::OutOfOrder(format!(
                        "process {pid} lost its connection while detaching"
                    )));
                }
            }
        }
    }

    fn process_ended(&mut self, pid: ProcessId) {
        if self.attempt.members.remove(&pid).is_none() {
            return;
        }
        let had_multicasts = self.attempt.rejoin.has(pid);
        self.attempt.rejoin.forget(pid);
        if self.attempt.stage == Stage::Rejoining && had_multicasts {
            self.cannot_rejoin(format!("process {pid} ended meanwhile"));
            return;
        }
        self.attempt.cut.forget(pid);
        self.look_for_cut();
        if matches!(
            self.attempt.stage,
            Stage::Collecting | Stage::Held | Stage::Preparing | Stage::Detaching
        ) {
            self.fail(AttemptError::OutOfOrder(format!(
                "process {pid} ended during the attempt"
            )));
        }
    }

    fn job_ended(&mut self) {
        let attempt = &mut *self.attempt;
        attempt.members.clear();
        let failed_before = attempt.failure.replace(AttemptError::JobEnded).is_some();
        attempt.job_ended = true;
        if !attempt.is_dumping() {
            self.finish();
        } else if !failed_before {
            // CRIU notices by itself; the worker's result ends the attempt.
            self.effects.push(Effect::CancelDump);
        }
    }

    // ------------------------------------------------------------------------------------- results of the effects

    fn collected(&mut self, outcome: Result<(), AttemptError>) {
        if self.attempt.stage != Stage::Collecting {
            return;
        }
        match outcome {
            Ok(()) => {
                if let Err(why) = self.attempt.rejoin.check() {
                    self.fail(AttemptError::Soon(why));
                    return;
                }
                self.enter(Stage::Held, self.timeouts.hold);
                self.attempt.owed = Owed::Resumed;
                let seq = self.attempt.seq;
                self.effects.push(Effect::TellQuiesced { seq });
            }
            Err(error) => self.fail(error),
        }
    }

    fn prepared(&mut self, outcome: Result<(), AttemptError>, connected: &[ProcessId]) {
        if self.attempt.stage != Stage::Preparing {
            return;
        }
        if let Err(error) = outcome {
            self.fail(error);
            return;
        }
        let late = connected
            .iter()
            .find(|pid| !self.attempt.members.contains_key(pid));
        if let Some(&pid) = late {
            self.fail(newcomer(pid));
            return;
        }
        self.enter(Stage::Detaching, self.timeouts.detach);
        // They say again what they have when they have attached.
        self.attempt.rejoin = Rejoin::default();
        // The path goes before any shim looks for it.
        self.effects.push(Effect::StopListening);
        let seq = self.attempt.seq;
        for (&pid, member) in &mut self.attempt.members {
            member.phase = Phase::Detaching;
            self.effects.push(Effect::Detach { pid, seq });
        }
    }

    fn start_dump(&mut self) {
        let detach_ns = ns(self.now.saturating_duration_since(self.attempt.stage_began));
        self.effects
            .push(Effect::Failpoint(Point::AgentAfterDetach));
        self.effects.push(Effect::StartDump {
            seq: self.attempt.seq,
            native_bytes: self.attempt.native_bytes(),
            detach_ns,
        });
        // Until the bound is known, which grows with the job.
        let timeouts = self.timeouts;
        let bound = timeouts.lock + timeouts.freeze + timeouts.driver + timeouts.criu;
        self.enter(Stage::Dumping, bound);
    }

    fn dump_ended(&mut self, outcome: Result<Box<DumpFacts>, Undumped>) {
        if !self.attempt.is_dumping() {
            return;
        }
        if self.attempt.job_ended {
            // The image, if there is one, is of a job that has ended since: nothing to attach.
            self.finish();
            return;
        }
        match outcome {
            Ok(facts) if self.attempt.failure.is_none() => {
                self.attempt.owed = Owed::Resumed;
                self.enter(Stage::Detached, self.timeouts.detached);
                let seq = self.attempt.seq;
                self.effects.push(Effect::TellDumped { seq, facts });
            }
            Ok(_) => self.reopen(),
            Err(Undumped { error, lost }) => {
                // It is not cancelled any more: it has ended.
                self.go_to(Stage::Detached);
                self.fail(error);
                match lost {
                    Some(why) => self.lose(why),
                    None => self.reopen(),
                }
            }
        }
    }

    fn listening(&mut self, connected: Result<Vec<ProcessId>, String>) {
        if self.attempt.stage != Stage::Reopening {
            return;
        }
        let connected = match connected {
            Ok(connected) => connected,
            Err(why) => {
                self.lose(why);
                return;
            }
        };
        self.go_to(Stage::Attaching);
        let seq = self.attempt.seq;
        // Those that are connected still or again; the others come back for their memory.
        for (&pid, member) in &mut self.attempt.members {
            if connected.contains(&pid) {
                member.phase = Phase::Sent;
                self.effects.push(Effect::SendMemory { pid, seq });
            } else {
                member.phase = Phase::Away;
            }
        }
    }

    /// Ends the stage that took too long, by what is still possible from it.
    fn timed_out(&mut self) {
        self.attempt.deadline = None;
        match self.attempt.stage {
            Stage::Quiescing => {
                for pid in self.attempt.in_phase(|p| p == Phase::Asked) {
                    // It has had its own timeout and a margin: its gate opens by itself.
                    self.time_out(pid, Phase::Quiet);
                }
            }
            Stage::Collecting | Stage::Held | Stage::Preparing | Stage::Detached => {
                tracing::warn!(
                    seq = self.attempt.seq,
                    "the sidecar took too long: the job goes on without it"
                );
                self.fail(AttemptError::Abandoned);
            }
            Stage::Detaching => {
                for pid in self.attempt.in_phase(|p| !p.is_detached()) {
                    self.time_out(pid, Phase::Stuck);
                }
            }
            Stage::Dumping => {
                self.go_to(Stage::Overdue);
                self.attempt.deadline = Some(self.now + self.timeouts.reap);
                self.fail(AttemptError::Control(
                    "the driver or CRIU did not come to an end".into(),
                ));
                tracing::error!(
                    "the driver or CRIU does not come to an end: the job is ended and resumes from its newest checkpoint"
                );
                self.effects.push(Effect::KillEverything);
            }
            Stage::Overdue => self.effects.push(Effect::GiveUpOnDriver),
            Stage::Rejoining => self.cannot_rejoin("it took too long".to_owned()),
            Stage::Reopening | Stage::Attaching => {
                let missing = self.attempt.in_phase(|p| p != Phase::Back);
                self.fail(AttemptError::OutOfOrder(
                    "a process did not attach in time".into(),
                ));
                self.lose(format!("processes {missing:?} did not attach in time"));
            }
            Stage::Lost | Stage::Over => {}
        }
    }

    /// A process did not answer in time, and counts as being in this phase.
    fn time_out(&mut self, pid: ProcessId, phase: Phase) {
        if let Some(member) = self.attempt.members.get_mut(&pid) {
            member.phase = phase;
        }
        self.fail(AttemptError::Shim {
            member: MemberId::here(pid),
            refusal: Refusal::Timeout,
        });
    }

    // ------------------------------------------------------------------------------------------------- the way on

    /// Goes on as far as what is known allows.
    fn advance(&mut self) {
        let failed = self.attempt.failure.is_some();
        match self.attempt.stage {
            // One that cannot ends it for all: nobody is held back for the others' answers.
            Stage::Quiescing if failed => self.finish(),
            Stage::Quiescing if self.attempt.all(|p| p != Phase::Asked) => {
                self.go_to(Stage::Collecting);
                self.effects.push(Effect::TakeTables {
                    seq: self.attempt.seq,
                });
            }
            Stage::Collecting | Stage::Held | Stage::Preparing if failed => self.finish(),
            Stage::Detaching if self.attempt.all(Phase::is_detached) => {
                if failed {
                    self.reopen();
                } else {
                    self.start_dump();
                }
            }
            Stage::Detached if failed => self.reopen(),
            Stage::Attaching if self.attempt.all(|p| p == Phase::Back) => {
                if self.attempt.rejoin.is_needed() {
                    self.start_rejoin();
                } else {
                    self.finish();
                }
            }
            Stage::Rejoining if self.attempt.rejoin.is_over() => self.finish(),
            _ => {}
        }
    }

    /// Lets the processes come back for their memory.
    fn reopen(&mut self) {
        self.enter(Stage::Reopening, self.timeouts.attach);
        let seq = self.attempt.seq;
        self.effects.push(Effect::Listen { seq });
    }

    /// Opens every gate and answers.
    fn finish(&mut self) {
        let attempt = &mut *self.attempt;
        let seq = attempt.seq;
        for (&pid, member) in &attempt.members {
            // One that has not answered yet takes its request back.
            if matches!(member.phase, Phase::Asked | Phase::Quiet | Phase::Back) {
                self.effects.push(Effect::Resume { pid, seq });
            }
        }
        let stop_ns = ns(self.now.saturating_duration_since(attempt.began));
        let attach_ns = match attempt.stage {
            Stage::Attaching | Stage::Rejoining => {
                ns(self.now.saturating_duration_since(attempt.stage_began))
            }
            _ => 0,
        };
        let only_began = attempt.only_began();
        attempt.stage = Stage::Over;
        attempt.deadline = None;
        let abandoned = attempt.failure == Some(AttemptError::Abandoned);
        let whole = attempt.failure.is_none();
        let answer = match (attempt.failure.take(), attempt.owed) {
            (Some(error), Owed::Quiesced) if !abandoned => Some(ToSidecar::Quiesced {
                seq,
                outcome: Err(error),
            }),
            (Some(error), Owed::Dumped) if !abandoned => Some(ToSidecar::Dumped {
                seq,
                outcome: Err(error),
            }),
            // `JobExited` says it.
            (Some(AttemptError::JobEnded), _) => None,
            _ => Some(ToSidecar::Resumed {
                seq,
                stop_ns,
                attach_ns,
                whole,
            }),
        };
        if let Some(answer) = answer {
            let stop_ms = stop_ns / 1_000_000;
            if only_began {
                tracing::debug!(seq, stop_ms, "the job runs on");
            } else {
                tracing::info!(
                    seq,
                    stop_ms,
                    attach_ms = attach_ns / 1_000_000,
                    "the job runs again"
                );
            }
            self.effects.push(Effect::Answer(answer));
        }
        let tables = match attempt.job_ended {
            true => Tables::Drop,
            false => Tables::Keep,
        };
        self.effects.push(Effect::CleanUp(tables));
    }
}

/// A process did what no shim of this version does.
fn shim_failed(pid: ProcessId, why: String) -> AttemptError {
    AttemptError::Shim {
        member: MemberId::here(pid),
        refusal: Refusal::Other(why),
    }
}
