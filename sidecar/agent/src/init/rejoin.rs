//! Carries out what is decided about multicast objects, of a checkpoint and of a restore: the processes are asked, and what they answer is
//! handed on. Nothing is decided here.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use phos_protocol::channel::SHIM_FDS;
use phos_protocol::shim::{Refusal, Sequence, ToShim};
use phos_protocol::types::{Allocation, AllocationKey, ProcessId};

use super::Init;
use super::shim_events::in_plain_words;
use crate::attempt::Input;
use crate::attempt::rejoin::{Asked, Done};

impl Init {
    /// Asks a process for its part.
    pub(super) fn ask_to_rejoin(&mut self, seq: Sequence, asked: Asked) {
        match asked {
            Asked::Remake { pid, key } => self.tell_process(pid, &ToShim::Remake { seq, key }),
            Asked::Join { pid, keys } => self.tell_to_join(seq, pid, &keys),
            Asked::Bind { pid } => self.tell_process(pid, &ToShim::Bind { seq }),
        }
    }

    fn tell_to_join(&mut self, seq: Sequence, pid: ProcessId, keys: &[AllocationKey]) {
        let Some(id) = self.connection_of(pid) else {
            return;
        };
        let mut rest = keys;
        loop {
            let (part, more) = rest.split_at(rest.len().min(SHIM_FDS));
            rest = more;
            let fds: Vec<Arc<OwnedFd>> = (part.iter())
                .filter_map(|key| self.multicasts.fd(key))
                .collect();
            let message = ToShim::Join {
                seq,
                keys: part.to_vec(),
                last: rest.is_empty(),
            };
            // A descriptor that is missing is noticed there.
            if !self.send_shim(id, message, fds) || rest.is_empty() {
                return;
            }
        }
    }

    /// A process says which objects it has.
    pub(super) fn on_multicasts(&mut self, said: Input) {
        match said {
            Input::Multicasts { pid, seq, held, .. } if self.restore.is_some() => {
                self.restore_multicasts(pid, seq, &held);
            }
            said => self.attempt(said),
        }
    }

    /// A process has made an object.
    pub(super) fn on_remade(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        object: Allocation,
        outcome: Result<(), Refusal>,
        fd: Option<OwnedFd>,
    ) {
        let is_asked = match &self.restore {
            Some(restore) => restore.expects_object(pid, seq, &object.key),
            None => self.checkpoint.expects_object(pid, seq, &object.key),
        };
        if !is_asked {
            return;
        }
        let outcome = outcome.and_then(|()| match fd {
            Some(fd) => {
                self.multicasts.keep(object, fd);
                Ok(Done::Remade(object.key))
            }
            None => Err(Refusal::Other("no descriptor came with it".to_owned())),
        });
        self.on_rejoined(pid, seq, outcome);
    }

    /// A process has done its part, or could not.
    pub(super) fn on_rejoined(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<Done, Refusal>,
    ) {
        let outcome = outcome.map_err(in_plain_words);
        if self.restore.is_some() {
            self.restore_rejoined(pid, seq, outcome);
        } else {
            self.attempt(Input::Rejoined { pid, seq, outcome });
        }
    }
}
