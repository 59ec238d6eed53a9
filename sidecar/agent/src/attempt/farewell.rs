//! The last conversation with the shims before the job is killed, as a state machine of the kind of [`super::machine`].
//!
//! Processes that were restored release their memory and have their control state saved before they get SIGKILL: killing them
//! otherwise can hang the machine with some drivers.
//!
//! ```text
//! Quiescing ─▶ Collecting ─▶ Detaching ─▶ over: save and kill
//!     └─────────────┴─── any failure ───────▲
//! ```
//!
//! # Rules
//!
//! * Pure, as the machine of an attempt is.
//! * It ends with [`Effect::SaveAndKill`], issued once, or because the job has ended by itself. A failure only makes it shorter: no
//!   gate is opened again, nothing is attached and no sidecar is told.
//! * It has a time for each half, and nobody can abandon it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use phos_protocol::agent::QuiesceTime;
use phos_protocol::shim::{Refusal, Sequence};
use phos_protocol::types::ProcessId;

use super::events::{Effect, Input, Tables};

/// How far one process is in the farewell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// `Quiesce` was sent.
    Asked,
    /// Its gate is closed and its contexts are idle.
    Quiet,
    /// `Detach` was sent, and not answered yet.
    Detaching,
    /// It has released its memory; its connection is about to close.
    Closing,
    /// It has released its memory.
    Away,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Shims close their gates and send their tables.
    Quiescing,
    /// The vault takes the tables of the processes.
    Collecting,
    /// Shims release their memory.
    Detaching,
    /// The farewell is over: the job is killed, or has ended.
    Over,
}

/// How a step ends: the farewell continues, or the job is killed now, whatever the processes have done so far.
type Outcome = Result<(), CutShort>;

/// Says that nothing more can come of the conversation.
struct CutShort;

/// See the module's documentation.
#[derive(Debug)]
pub struct Farewell {
    seq: Sequence,
    stage: Stage,
    /// How long each half of the conversation may take.
    bound: Duration,
    deadline: Instant,
    members: BTreeMap<ProcessId, Phase>,
}

impl Farewell {
    /// Asks the processes to fall quiet. Each half of the conversation may take `bound`.
    pub fn begin(
        now: Instant,
        seq: Sequence,
        bound: Duration,
        processes: &[ProcessId],
    ) -> (Self, Vec<Effect>) {
        let mut farewell = Self {
            seq,
            stage: Stage::Quiescing,
            bound,
            deadline: now + bound,
            members: BTreeMap::new(),
        };
        let mut effects = Vec::new();
        for &pid in processes {
            farewell.ask(pid, bound, &mut effects);
        }
        farewell.advance(&mut effects);
        (farewell, effects)
    }

    /// Whether there is nothing left to do.
    pub fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// When to report [`Input::Tick`] at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        (!self.is_over()).then_some(self.deadline)
    }

    /// Whether a part of a table belongs to the farewell.
    pub fn expects_table(&self, pid: ProcessId, seq: Sequence) -> bool {
        seq == self.seq && self.stage == Stage::Quiescing && self.members.contains_key(&pid)
    }

    /// Takes in what happened; returns what is to be done, in this order.
    pub fn step(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.is_over() {
            match self.take(now, input, &mut effects) {
                Ok(()) => self.advance(&mut effects),
                Err(CutShort) => self.end(&mut effects),
            }
        }
        effects
    }

    fn ask(&mut self, pid: ProcessId, bound: Duration, effects: &mut Vec<Effect>) {
        self.members.insert(pid, Phase::Asked);
        let bound = u32::try_from(bound.as_millis()).unwrap_or(u32::MAX).max(1);
        effects.push(Effect::Quiesce {
            pid,
            seq: self.seq,
            time: QuiesceTime::at_once(bound),
        });
    }

    fn take(&mut self, now: Instant, input: Input, effects: &mut Vec<Effect>) -> Outcome {
        match input {
            Input::TableUnusable { seq, .. } if seq == self.seq => Err(CutShort),
            Input::Quiesced { pid, seq, outcome } if seq == self.seq => {
                self.answered(pid, outcome, Phase::Asked, Phase::Quiet)
            }
            Input::Detached { pid, seq, outcome } if seq == self.seq => {
                self.answered(pid, outcome, Phase::Detaching, Phase::Closing)
            }
            Input::Attached { pid, seq, outcome } if seq != self.seq => match outcome {
                // A straggler that came back alone.
                Ok(()) => {
                    effects.push(Effect::Resume { pid, seq });
                    Ok(())
                }
                Err(_) => Err(CutShort),
            },
            Input::Newcomer { pid } if self.stage == Stage::Quiescing => {
                // Within what is left of its time.
                let left = self.deadline.saturating_duration_since(now);
                self.ask(pid, left, effects);
                Ok(())
            }
            Input::Disconnected { pid, .. } => match self.members.get_mut(&pid) {
                None | Some(Phase::Away) => Ok(()),
                Some(phase @ Phase::Closing) => {
                    *phase = Phase::Away;
                    Ok(())
                }
                Some(Phase::Asked | Phase::Quiet | Phase::Detaching) => Err(CutShort),
            },
            Input::ProcessEnded { pid } => match (self.members.remove(&pid), self.stage) {
                (None, _) | (Some(_), Stage::Quiescing) => Ok(()),
                (Some(_), _) => Err(CutShort),
            },
            Input::JobEnded => {
                self.stage = Stage::Over;
                effects.push(Effect::CleanUp(Tables::Drop));
                Ok(())
            }
            Input::Collected { seq, outcome } if seq == self.seq => {
                outcome.map_err(|_| CutShort)?;
                self.collected(now, effects);
                Ok(())
            }
            Input::Tick if now >= self.deadline => Err(CutShort),
            Input::Dump { seq } => {
                effects.push(Effect::RefuseDump { seq });
                Ok(())
            }
            // Nobody can take it back, and who comes now is killed with the others.
            _ => Ok(()),
        }
    }

    /// A process that was asked has answered. An answer that nobody waits for changes nothing.
    fn answered(
        &mut self,
        pid: ProcessId,
        outcome: Result<(), Refusal>,
        asked: Phase,
        done: Phase,
    ) -> Outcome {
        match self.members.get_mut(&pid) {
            Some(phase) if *phase == asked => {
                *phase = done;
                outcome.map_err(|_| CutShort)
            }
            _ => Ok(()),
        }
    }

    fn collected(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        if self.stage != Stage::Collecting {
            return;
        }
        self.stage = Stage::Detaching;
        self.deadline = now + self.bound;
        // The path goes before any shim looks for it.
        effects.push(Effect::StopListening);
        for (&pid, phase) in &mut self.members {
            *phase = Phase::Detaching;
            effects.push(Effect::Detach { pid, seq: self.seq });
        }
    }

    fn advance(&mut self, effects: &mut Vec<Effect>) {
        let all = |good: Phase| self.members.values().all(|phase| *phase == good);
        match self.stage {
            Stage::Quiescing if all(Phase::Quiet) => {
                self.stage = Stage::Collecting;
                effects.push(Effect::TakeTables { seq: self.seq });
            }
            Stage::Detaching if all(Phase::Away) => self.end(effects),
            _ => {}
        }
    }

    fn end(&mut self, effects: &mut Vec<Effect>) {
        self.stage = Stage::Over;
        effects.push(Effect::CleanUp(Tables::Drop));
        effects.push(Effect::SaveAndKill);
    }
}
