//! How far the job may go while memory that it may overwrite is still being copied: said by the sidecar, passed on to the shims.
//!
//! A credit that comes while the job is held is given to each process right before its gate opens. With the sidecar, whose copy it is for, it
//! ends.

use phos_protocol::agent::ToSidecar;
use phos_protocol::shim::{Credit, Sequence, ToShim};
use phos_protocol::types::ProcessId;

use super::Init;
use crate::channels::shims::ConnectionId;

/// What processes may do when their gates open.
#[derive(Debug, Clone, Copy)]
pub(super) struct Given {
    seq: Sequence,
    credit: Credit,
}

impl Init {
    /// The sidecar says how far the job may go.
    pub(super) fn credit(&mut self, seq: Sequence, credit: Option<Credit>) {
        if self.checkpoint.is_under_way() {
            self.checkpoint.credit = credit.map(|credit| Given { seq, credit });
            return;
        }
        let able = self.processes.values().filter(|p| p.takes_credit);
        let told: Vec<ConnectionId> = able.filter_map(|p| p.connection).collect();
        for id in told {
            self.tell_shim(id, &ToShim::Credit { seq, credit });
        }
    }

    /// Tells a process that is about to continue after this attempt how far it may go, if there is a bound.
    pub(super) fn give_credit(&mut self, pid: ProcessId, seq: Sequence) {
        if let Some(given) = self.checkpoint.credit
            && given.seq == seq
        {
            let credit = Some(given.credit);
            self.tell_process(pid, &ToShim::Credit { seq, credit });
        }
    }

    /// Nobody copies any more.
    pub(super) fn end_credit(&mut self) {
        if let Some(given) = self.checkpoint.credit.take()
            && !self.checkpoint.is_under_way()
        {
            self.credit(given.seq, None);
        }
    }

    /// Says, where there are processes that use CUDA, that all of them can be let go on for so many calls, and where one is held that is alone.
    pub(super) fn tell_that_they_take_credit(&mut self, seq: Sequence) {
        if self.processes.is_empty() || !self.processes.values().all(|p| p.takes_credit) {
            return;
        }
        let mut processes = self.processes.values();
        let place = match (processes.next(), processes.next()) {
            (Some(alone), None) => alone.place.filter(|(of, _)| *of == seq),
            _ => None,
        };
        let place = place.map(|(_, place)| place);
        self.sidecar
            .send(&ToSidecar::TakesCredit { seq, place }, &[]);
    }
}
