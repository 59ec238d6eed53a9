//! Lets the job make so many calls after a checkpoint, while memory is still being copied that its next ones may overwrite.
//!
//! ```text
//!  Credit ── Resume ──▶ Counting ── a call has to wait ──▶ Draining ── the GPU is idle, Spent ──▶ Waiting
//!                          ▲                                                                         │ Credit
//!                          └─────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! It ends when the agent says so, when the time is over, when the connection is lost, and when the gate is needed for something else: the
//! job goes on then, and who copies finds out from the content whether it came too late.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use phos_protocol::shim::{Credit, Sequence, ToAgent};

use super::{Control, End, Phase, millis, say, synchronizer};
use crate::{abi, capture, context, gate};

/// How often it is looked whether the calls have been made.
pub const LOOK: Duration = Duration::from_millis(1);

/// A credit that was given.
#[derive(Debug, Clone, Copy)]
pub struct Given {
    seq: Sequence,
    credit: Credit,
    /// When the gate opens in any case.
    until: Instant,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The gate is closed for the checkpoint.
    Before,
    Counting,
    /// A call waits, and the GPU still works.
    Draining,
    /// The agent knows.
    Waiting,
}

impl Control {
    /// Serves `Credit`.
    pub(super) fn credit(&mut self, seq: Sequence, credit: Option<Credit>) {
        let Some(credit) = credit else {
            if self.credit.is_some_and(|given| given.seq == seq) {
                self.end_credit();
            }
            return;
        };
        let mut given = Given {
            seq,
            credit,
            until: Instant::now() + millis(credit.for_ms),
            state: State::Before,
        };
        match self.phase {
            Phase::Running if self.credit.is_some_and(|before| before.seq == seq) => {
                self.stop_draining();
                let before = self.credit.map_or(0, |before| before.credit.calls);
                given.state = State::Counting;
                // The time is that for all of it.
                given.until = self.credit.map_or(given.until, |before| before.until);
                gate::add_credit(credit.calls.saturating_sub(before));
                self.credit = Some(given);
            }
            // The time was over before.
            Phase::Running => {}
            Phase::Quiesced(_) | Phase::Detached(_) | Phase::Attached(_) => {
                self.credit = Some(given);
            }
        }
    }

    /// Opens the gate after a checkpoint, for as many calls as were granted.
    pub(super) fn open_gate(&mut self, seq: Sequence) {
        match &mut self.credit {
            Some(given) if given.seq == seq => {
                given.until = Instant::now() + millis(given.credit.for_ms);
                given.state = State::Counting;
                gate::open_for(given.credit.calls);
            }
            _ => {
                self.credit = None;
                gate::open();
            }
        }
    }

    /// Tells the agent when all calls have been made and done, and ends a credit whose time is over.
    pub(super) fn look_at_credit(&mut self, socket: &OwnedFd) -> Result<(), End> {
        let Some(given) = &mut self.credit else {
            return Ok(());
        };
        match given.state {
            State::Before => return Ok(()),
            State::Counting => {
                gate::remind();
                if gate::is_spent() && begin_draining() {
                    given.state = State::Draining;
                }
            }
            State::Draining => match synchronizer::outcome(Duration::ZERO) {
                Some(abi::SUCCESS) => {
                    given.state = State::Waiting;
                    return say(socket, &ToAgent::Spent { seq: given.seq });
                }
                // Of a context that is gone.
                Some(_) => given.state = State::Counting,
                None => {}
            },
            State::Waiting => {}
        }
        if Instant::now() >= given.until {
            self.end_credit();
        }
        Ok(())
    }

    /// Nobody wants to know any more when the GPU is idle.
    fn stop_draining(&self) {
        let draining = self
            .credit
            .is_some_and(|given| given.state == State::Draining);
        if draining && synchronizer::is_busy() {
            synchronizer::cancel();
        }
    }

    /// The job is held no more; the gate is as the phase wants it.
    pub(super) fn end_credit(&mut self) {
        self.stop_draining();
        if self.credit.take().is_none() {
            return;
        }
        if self.phase == Phase::Running {
            gate::open();
        }
    }
}

/// Begins to wait for the GPU. No thread is in a call that enqueues, and none can begin a capture, which the driver's wait would spoil.
fn begin_draining() -> bool {
    !synchronizer::is_busy() && !capture::any() && synchronizer::begin(context::live()).is_ok()
}
