//! What the agent asks for, and the answers.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use phos_protocol::shim::{Refusal, Sequence, ToAgent, ToShim};
use phos_protocol::types::{Allocation, AllocationKey, AllocationKind};

use super::attach::Attaching;
use super::quiesce::Manner;
use super::watch::Awaited;
use super::{Control, End, Phase, detach, millis, rejoin, say};
use crate::{hints, link, log, registry, saved};

impl Control {
    /// Does what a message asks for. `Err`: the connection has ended.
    pub(super) fn handle(
        &mut self,
        socket: &Arc<OwnedFd>,
        message: ToShim,
        fds: Vec<OwnedFd>,
    ) -> Result<(), End> {
        match message {
            // What comes after the first one that is not full is not waited for.
            ToShim::Welcome { .. } => {}
            ToShim::MemoryReleased => link::memory_released(),
            ToShim::Shared(result) => {
                let fd = fds.into_iter().next();
                let missing = || "no fd came with the answer".to_owned();
                link::shared(result.and_then(|()| fd.ok_or_else(missing)));
            }
            ToShim::Identified(allocation) => {
                link::identified(allocation, fds.into_iter().next());
            }
            ToShim::Newest(newest) => hints::newest(newest),
            ToShim::Quiesce { seq, timeout_ms } => {
                return self.quiesce(socket, seq, millis(timeout_ms), Manner::AtOnce);
            }
            ToShim::QuiesceAtCut { seq, timeout_ms } => {
                return self.quiesce(socket, seq, millis(timeout_ms), Manner::AtCut);
            }
            ToShim::QuiesceInTurns {
                seq,
                timeout_ms,
                hold_ms,
            } => {
                let (timeout, hold) = (millis(timeout_ms), millis(hold_ms));
                let manner = if hold < timeout {
                    Manner::InTurns(hold)
                } else {
                    Manner::AtOnce
                };
                return self.quiesce(socket, seq, timeout, manner);
            }
            // Of an attempt that is over.
            ToShim::Continue { .. } | ToShim::Settle { .. } => {}
            ToShim::Watch { seq, time } => self.begin_watch(seq, time, Awaited::Wait),
            ToShim::WatchFor { seq, time, waits } => self.begin_watch_for(seq, time, &waits),
            ToShim::AwaitStep { seq, time } => self.begin_watch(seq, time, Awaited::Step),
            ToShim::Credit { seq, credit } => self.credit(seq, credit),
            ToShim::Resume { seq } => self.resume(seq),
            ToShim::Detach { seq } => return self.detach(socket, seq),
            ToShim::Memory { keys, .. } => self
                .attaching
                .get_or_insert_with(Attaching::new)
                .import(keys, fds),
            ToShim::Attach { seq } => return self.attach(socket, seq),
            ToShim::Remake { seq, key } => return self.remake(socket, seq, key),
            ToShim::Join { seq, keys, last } => {
                let joined = self.if_attached(seq, || {
                    rejoin::import(&keys, fds)?;
                    if last { rejoin::add_devices() } else { Ok(()) }
                });
                // Of several messages, the last is answered, or the first that fails.
                if last || joined.is_err() {
                    let outcome = joined;
                    return say(socket, &ToAgent::Joined { seq, outcome });
                }
            }
            ToShim::Bind { seq } => {
                let outcome = self.if_attached(seq, rejoin::bind);
                return say(socket, &ToAgent::Bound { seq, outcome });
            }
        }
        Ok(())
    }

    /// The process may go on, unless something of its memory is missing.
    fn resume(&mut self, seq: Sequence) {
        self.end_watch();
        match self.phase {
            Phase::Detached(_) => {
                log::error!("Resume({seq}) while memory is detached: the gate stays closed");
            }
            Phase::Running => {}
            Phase::Attached(_) if !registry::lock().are_objects_whole() => {
                log::error!(
                    "Resume({seq}) while multicast objects are missing: the gate stays closed"
                );
            }
            Phase::Quiesced(_) | Phase::Attached(_) => {
                self.phase = Phase::Running;
                self.open_gate(seq);
            }
        }
        self.attaching = None;
    }

    /// Unmaps the memory that the agent has; says so and ends the connection, or says why not.
    fn detach(&mut self, socket: &OwnedFd, seq: Sequence) -> Result<(), End> {
        let outcome = match self.phase {
            Phase::Quiesced(quiesced) if quiesced == seq => {
                self.phase = Phase::Detached(seq);
                detach::detach().inspect(|()| saved::begin())
            }
            _ => Err(Refusal::Other(format!(
                "Detach({seq}) without Quiesce({seq})"
            ))),
        };
        let is_detached = outcome.is_ok();
        say(socket, &ToAgent::Detached { seq, outcome })?;
        if is_detached {
            Err(End::Detached)
        } else {
            Ok(())
        }
    }

    /// Maps the memory that has come.
    fn attach(&mut self, socket: &OwnedFd, seq: Sequence) -> Result<(), End> {
        if let Some((bytes, taken_in)) = saved::end() {
            log::debug!(
                "the driver had {bytes} bytes for control state, taken in {} us",
                taken_in.as_micros()
            );
        }
        let attaching = self.attaching.take();
        let runs = !matches!(self.phase, Phase::Detached(_) | Phase::Attached(_));
        // One whose request to detach was lost. What others have taken apart it cannot join again while it runs.
        let outcome = if runs && rejoin::has_objects() {
            Err(Refusal::Other(
                "it was not detached, and has multicast objects that others make anew".to_owned(),
            ))
        } else {
            attaching.unwrap_or_else(Attaching::new).finish()
        };
        if outcome.is_ok() {
            if let Phase::Detached(_) = self.phase {
                self.phase = Phase::Attached(seq);
            }
            self.tell_multicasts(socket, seq)?;
        }
        say(socket, &ToAgent::Attached { seq, outcome })
    }

    /// Says which multicast objects the process has: before it is quiet, or when it has attached.
    pub(super) fn tell_multicasts(&self, socket: &OwnedFd, seq: Sequence) -> Result<(), End> {
        let attached = matches!(self.phase, Phase::Attached(_));
        rejoin::held().into_iter().try_for_each(|held| {
            let said = ToAgent::Multicasts {
                seq,
                attached,
                held,
            };
            say(socket, &said)
        })
    }

    /// Makes a multicast object anew, and sends it.
    fn remake(&self, socket: &OwnedFd, seq: Sequence, key: AllocationKey) -> Result<(), End> {
        let made = self.if_attached(seq, || rejoin::remake(key));
        let (object, made) = match made {
            Ok((object, fd)) => (object, Ok(fd)),
            Err(refusal) => (unmade(key), Err(refusal)),
        };
        let fd = made.as_ref().ok().map(AsFd::as_fd);
        let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
        let outcome = made.as_ref().map(|_| ()).map_err(Refusal::clone);
        let answer = ToAgent::Remade {
            seq,
            object,
            outcome,
        };
        link::send_on(socket, &answer, &fds).map_err(|error| End::Lost(error.to_string()))
    }

    /// Does something to multicast objects, which is done between an attach and the opening of the gate.
    fn if_attached<T>(
        &self,
        seq: Sequence,
        what: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self.phase {
            Phase::Attached(attached) if attached == seq => what(),
            _ => Err(Refusal::Other(format!(
                "multicast objects are made anew after Attach({seq}) alone"
            ))),
        }
    }
}

/// An object that could not be made, for an answer that says so.
fn unmade(key: AllocationKey) -> Allocation {
    Allocation {
        key,
        device: 0,
        bytes: 0,
        kind: AllocationKind::Multicast { devices: 0 },
        rdma: false,
    }
}
