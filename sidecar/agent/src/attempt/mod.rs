//! A checkpoint attempt: the decisions, without anything being carried out.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`events`] | what an attempt hears of, and what it wants done |
//! | [`state`] | where an attempt and its processes can be |
//! | [`machine`] | the steps of a checkpoint, and what becomes of one that fails |
//! | [`counts`] | what the shims say of their ranks |
//! | [`rejoin`] | the order in which multicast objects are made anew |
//! | [`farewell`] | what the shims are asked before the job is killed |
//!
//! The main loop ([`crate::init`]) reports what happens and carries out what is decided. At most one of the two is under way.

pub mod counts;
mod events;
mod farewell;
mod machine;
#[cfg(test)]
mod properties;
pub mod rejoin;
mod state;

use std::time::{Duration, Instant};

use phos_protocol::shim::Sequence;
use phos_protocol::types::{AllocationKey, ProcessId};

pub use events::{Effect, Input, Tables, Undumped};
use farewell::Farewell;
use machine::Machine;

use crate::config::Timeouts;

/// The attempt or the farewell that is under way, if one is.
#[derive(Debug)]
pub struct Attempts {
    machine: Machine,
    farewell: Option<Farewell>,
}

impl Attempts {
    /// A set of attempts of which none is under way.
    pub fn new(timeouts: Timeouts) -> Self {
        Self {
            machine: Machine::new(timeouts),
            farewell: None,
        }
    }

    /// Whether an attempt or a farewell is under way: nothing else can begin then.
    pub fn is_under_way(&self) -> bool {
        self.machine.is_under_way() || self.farewell.is_some()
    }

    /// When to report [`Input::Tick`] at the latest.
    pub fn deadline(&self) -> Option<Instant> {
        match &self.farewell {
            Some(farewell) => farewell.deadline(),
            None => self.machine.deadline(),
        }
    }

    /// Whether a part of a table belongs to what is under way. One that does not is of an attempt that is over.
    pub fn expects_table(&self, pid: ProcessId, seq: Sequence) -> bool {
        match &self.farewell {
            Some(farewell) => farewell.expects_table(pid, seq),
            None => self.machine.expects_table(pid, seq),
        }
    }

    /// Whether a process was asked to make that multicast object.
    pub fn expects_object(&self, pid: ProcessId, seq: Sequence, key: &AllocationKey) -> bool {
        self.machine.expects_object(pid, seq, key)
    }

    /// Begins the conversation that ends with the job being killed, unless something is under way: nothing comes of it then.
    pub fn begin_farewell(
        &mut self,
        now: Instant,
        seq: Sequence,
        bound: Duration,
        processes: &[ProcessId],
    ) -> Vec<Effect> {
        if self.is_under_way() {
            return Vec::new();
        }
        let (farewell, effects) = Farewell::begin(now, seq, bound, processes);
        self.farewell = Some(farewell);
        effects
    }

    /// Takes in what happened; returns what is to be done, in this order.
    pub fn step(&mut self, now: Instant, input: Input) -> Vec<Effect> {
        let Some(farewell) = &mut self.farewell else {
            return self.machine.step(now, input);
        };
        let effects = farewell.step(now, input);
        if farewell.is_over() {
            self.farewell = None;
        }
        effects
    }
}
