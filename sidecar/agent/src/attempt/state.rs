//! The state of an attempt, and that of each of its processes.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use phos_policies::cut::Cut;
use phos_protocol::agent::{AttemptError, QuiesceTime};
use phos_protocol::shim::Sequence;
use phos_protocol::types::ProcessId;

use super::rejoin::Rejoin;

/// The stage that an attempt is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Shims close their gates and send their tables.
    Quiescing,
    /// The vault takes the tables of the processes.
    Collecting,
    /// The job is quiet; the sidecar digests its device memory.
    Held,
    /// The directory of the image is being made.
    Preparing,
    /// Shims release their memory.
    Detaching,
    /// A worker saves control state and runs CRIU.
    Dumping,
    /// The worker had its time, and everything was killed.
    Overdue,
    /// The image is complete; the sidecar drains.
    Detached,
    /// The socket of the shims is being made again.
    Reopening,
    /// Shims get their memory back.
    Attaching,
    /// Shims make multicast objects anew.
    Rejoining,
    /// The job cannot continue and is being ended.
    Lost,
    /// The attempt is over: nothing is left to do.
    Over,
}

/// How far one process is in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// `Quiesce` was sent.
    Asked,
    /// Its gate is closed and its contexts are idle.
    Quiet,
    /// It refused, and its gate is open again.
    Refused,
    /// `Detach` was sent, and not answered yet.
    Detaching,
    /// It has released its memory; its connection is about to close.
    Closing,
    /// It has released its memory and waits for the socket.
    Away,
    /// It could not release all of its memory; its connection is open.
    Stuck,
    /// Its memory was sent, with the request to attach it.
    Sent,
    /// It has its memory; its gate is closed.
    Back,
}

impl Phase {
    /// Whether it waits for nothing but its memory.
    pub fn is_detached(self) -> bool {
        matches!(self, Self::Away | Self::Stuck)
    }
}

#[derive(Debug)]
pub struct Member {
    pub phase: Phase,
    /// Device memory that the driver will save into the process's host memory, in bytes.
    pub native: u64,
}

impl Member {
    /// `Quiesce` is being sent to it.
    pub fn asked() -> Self {
        Self {
            phase: Phase::Asked,
            native: 0,
        }
    }
}

/// Which answer the sidecar is still to get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owed {
    Quiesced,
    Dumped,
    Resumed,
}

/// An attempt that is under way.
#[derive(Debug)]
pub struct Attempt {
    pub seq: Sequence,
    pub deadline: Option<Instant>,
    /// The one process that there was when it began makes calls from time to time until it is quiet.
    pub in_turns: bool,
    /// Where processes are held that wait for each other on their GPUs.
    pub cut: Cut<ProcessId>,
    pub stage: Stage,
    /// When the first gate was asked to close.
    pub began: Instant,
    pub stage_began: Instant,
    pub members: BTreeMap<ProcessId, Member>,
    /// The multicast objects of the processes that have attached.
    pub rejoin: Rejoin,
    pub failure: Option<AttemptError>,
    pub owed: Owed,
    /// The job's main process ended while the worker was at it.
    pub job_ended: bool,
}

impl Attempt {
    pub fn new(seq: Sequence, now: Instant, time: QuiesceTime, margin: Duration) -> Self {
        let bound = Duration::from_millis(time.timeout_ms.into()) + margin;
        Self {
            seq,
            deadline: Some(now + bound),
            in_turns: time.hold_ms < time.timeout_ms,
            cut: Cut::default(),
            stage: Stage::Quiescing,
            began: now,
            stage_began: now,
            members: BTreeMap::new(),
            rejoin: Rejoin::default(),
            failure: None,
            owed: Owed::Quiesced,
            job_ended: false,
        }
    }

    pub fn all(&self, good: impl Fn(Phase) -> bool) -> bool {
        self.members.values().all(|m| good(m.phase))
    }

    pub fn in_phase(&self, good: impl Fn(Phase) -> bool) -> Vec<ProcessId> {
        self.members
            .iter()
            .filter(|(_, m)| good(m.phase))
            .map(|(&pid, _)| pid)
            .collect()
    }

    pub fn native_bytes(&self) -> u64 {
        self.members.values().map(|m| m.native).sum()
    }

    /// Whether it is not known yet that the job falls quiet.
    pub fn only_began(&self) -> bool {
        matches!(self.stage, Stage::Quiescing | Stage::Collecting)
    }

    /// Whether the worker is at it.
    pub fn is_dumping(&self) -> bool {
        matches!(self.stage, Stage::Dumping | Stage::Overdue)
    }

    /// Whether the memory is on its way back.
    pub fn is_attaching(&self) -> bool {
        matches!(
            self.stage,
            Stage::Reopening | Stage::Attaching | Stage::Rejoining
        )
    }
}
