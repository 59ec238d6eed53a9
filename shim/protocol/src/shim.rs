//! The conversation between the shim of one CUDA process (client) and the agent (server).
//!
//! ```text
//! shim                                     agent
//!  │ Hello(Fresh | Running | Detached) ────▶│
//!  │◀──────────────────────────── Welcome   │
//!  │              … the job runs …          │
//!  │◀──────────────────── Quiesce(seq)      │  gate closed, contexts idle
//!  │ Table* (+ fds of new allocations) ────▶│
//!  │ Quiesced(seq, Ok) ────────────────────▶│
//!  │◀───────────────────── Detach(seq)      │  unmap and release everything
//!  │ Detached(seq, Ok) ────────────────────▶│  … then the shim closes the socket and polls for
//!  │                                        │  the socket's path to exist (the agent removed it)
//!  │ Hello(Detached{seq}) ─────────────────▶│  after the control restore, or after a kill
//!  │◀──── Memory* (+ fds)  Attach(seq)      │  import, map at the old addresses
//!  │ Attached(seq, Ok) ────────────────────▶│
//!  │◀──────────────────────────── Resume    │  gate open: the job runs
//! ```
//!
//! * Processes with NCCL communicators are asked to `QuiesceAtCut`: each says its `Position`, continues towards what `Continue` names,
//!   and does the rest of a `Quiesce` at `Settle`, when no rank is behind another (`phos_policies::cut`).
//! * Before a `Quiesce`, `Watch` may ask for the moment at which the job has itself waited for its work, which `Moment` tells.
//! * A program that uses hints (`shim/include/phos_ft.h`) has its process say `Hints`. `AwaitStep` then asks for the end of a step, which
//!   `Moment` tells, as it does for `Watch`; a `Quiesced` that is good has `Step` before it.
//! * `WatchFor` asks for one of several waits, told from others by how many calls of work the thread has made since its wait before; a
//!   `Quiesced` that is good has `Place` before it, if the process was held from the moment that it told.
//! * Multicast objects are made anew once every process has attached, in three rounds, each for all processes before the next: `Remake`
//!   by one process for each object, `Join` by all that have it, `Bind`. A process says `Multicasts` before a good `Attached` for that; and
//!   before a good `Quiesced`, as objects of which not all devices are there cannot be made anew.
//! * `Resume` without `Detach` abandons a checkpoint: the gate opens, nothing was unmapped.
//! * If the agent vanishes between `Quiesced` and `Detach`, the shim opens the gate by itself: a
//!   gate may only stay closed while somebody who can open it is connected, or while detached.
//! * `Memory` brings at most [`crate::channel::SHIM_FDS`] fds at a time, and the shim imports and closes them before it
//!   takes the next; so does a table. A process needs so many free descriptors, not one per allocation.
//! * A detach that fails half way is answered `Detached(Err)` with the connection kept; the agent
//!   answers with `Memory*`, `Attach`, `Resume` for what was unmapped.

use serde::{Deserialize, Serialize};

use crate::types::{Allocation, AllocationId, AllocationKey, Device, ProcessId};

/// Numbers in one [`ToShim::Welcome`], at most; as many mean that another follows. Each takes ten bytes at most.
///
/// An older shim, in a restored image, takes the first for the whole and ignores the others: it exports again what they name.
pub const HELD: usize = 6_000;

const _: () = assert!(HELD * 10 + 64 < crate::channel::MAX_PACKET);

/// Counts in one [`ToAgent::Position`] or [`ToShim::Continue`], at most: a process that has more says none. Each takes 31 bytes at
/// most.
pub const COUNTS: usize = 2_000;

const _: () = assert!(COUNTS * 31 + 64 < crate::channel::MAX_PACKET);

/// Number of a checkpoint attempt, chosen by the agent, growing.
pub type Sequence = u64;

/// What state the shim is in when it connects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ShimState {
    /// CUDA was just initialised; the agent has seen nothing of this process yet.
    Fresh,
    /// The job runs with its memory mapped; the connection was lost and is back. The agent holds
    /// what was exported before, or (a new agent) nothing: every allocation counts as new again.
    Running,
    /// Everything is unmapped since the checkpoint attempt named; the shim waits for its memory.
    Detached(Sequence),
}

/// Why a shim could not do what it was asked. The job is unharmed in each case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Refusal {
    /// Work in flight did not end within the timeout. Worth trying again.
    Timeout,
    /// A stream capture is under way. Worth trying again.
    Capturing,
    /// The process uses something that can be neither taken over nor saved by the driver; the text
    /// names it and the remedy. Trying again will not help.
    Unsupported(String),
    /// A driver call failed: its name and result.
    Driver {
        /// The name of the driver's entry point.
        call: String,
        /// The `CUresult` that the call returned.
        result: u32,
    },
    /// Anything else, in words.
    Other(String),
    /// Nothing was held back: work in flight takes longer than the time given to end, as was seen after an earlier
    /// request, whose gate was open again. Worth trying again when the job waits for it, or with more time.
    Slow {
        /// How long the work took to end when it was last seen to, in ms.
        needs_ms: u32,
    },
    /// The program is in a section that it asked not to be checkpointed in. Nothing was held back. Worth trying again.
    Section,
}

impl Refusal {
    /// Whether the same request may succeed later.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Refusal::Timeout | Refusal::Capturing | Refusal::Slow { .. } | Refusal::Section
        )
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Refusal::Timeout => f.write_str("GPU work in flight did not end in time"),
            Refusal::Capturing => f.write_str("a stream capture is under way"),
            Refusal::Section => f.write_str(
                "the program asked not to be checkpointed for now (phos_ft.no_checkpoint), and has not ended that section",
            ),
            Refusal::Unsupported(what) => f.write_str(what),
            Refusal::Driver { call, result } => write!(f, "{call} failed with CUresult {result}"),
            Refusal::Other(what) => f.write_str(what),
            Refusal::Slow { needs_ms } => write!(
                f,
                "GPU work in flight did not end in time: the job has work queued for about {needs_ms} ms and was not seen \
                 to wait for all of it; --hold-limit may allow for that"
            ),
        }
    }
}

/// Messages from a shim to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// First message of every connection.
    Hello {
        /// The process, inside the job's PID namespace.
        pid: ProcessId,
        /// Chosen at random when the shim initialised: tells a process from another that got the
        /// same PID, or from the one before `exec`.
        instance: u64,
        /// Where the process is in a checkpoint: see [`ShimState`].
        state: ShimState,
        /// The devices that the process sees.
        devices: Vec<Device>,
    },
    /// A part of the list of all live allocations owned by this process. Sent before
    /// [`ToAgent::Quiesced`]; an allocation missing from the whole list was freed.
    Table {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// Each entry says whether its fd is in this packet (in order): only those the agent does
        /// not have yet.
        entries: Vec<TableEntry>,
        /// Allocations of other processes that this one has imported and holds.
        imported: Vec<AllocationKey>,
    },
    /// Outcome of [`ToShim::Quiesce`].
    Quiesced {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// `Ok`: the gate is closed, every context idle, the table complete. `Err`: the gate is
        /// open again.
        outcome: Result<QuiesceFacts, Refusal>,
    },
    /// Outcome of [`ToShim::Detach`]. After `Ok` the shim closes the connection.
    Detached {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// `Err`: part of the memory may be unmapped; see the module's rules.
        outcome: Result<(), Refusal>,
    },
    /// Outcome of [`ToShim::Attach`]. The gate is still closed.
    Attached {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// `Err`: the job cannot continue in this process; the agent kills it and resumes it from a checkpoint.
        outcome: Result<(), Refusal>,
    },
    /// An allocation of the job failed for lack of device memory. The shim waits (bounded) for
    /// [`ToShim::MemoryReleased`] and then tries once more.
    OutOfMemory {
        /// Device ordinal inside the process.
        device: i32,
        /// How many bytes the application asked for.
        bytes: u64,
    },
    /// The application exports memory: the agent takes the fd (beside the message) into the vault
    /// and answers with [`ToShim::Shared`], whose fd the application gets.
    Share {
        /// The allocation whose fd is beside the message.
        allocation: Allocation,
        /// Whether its fd is in this packet (false: the agent has it).
        with_fd: bool,
    },
    /// The application imports the fd beside the message: whose memory is it? The agent compares
    /// open file descriptions and answers with [`ToShim::Identified`].
    Identify,
    /// The process uses something that rules checkpoints out (the text names it and the remedy).
    /// Sent at the first use and after every `Hello` while it lasts.
    Unsupported {
        /// Why, and the remedy, for the log and for `phos-ft status`.
        reason: String,
    },
    /// The reason that was given before no longer holds: checkpoints are possible again.
    Supported,
    /// The application freed these allocations of its own, whose fds the agent holds. The agent
    /// closes them (and has the sidecar do so), else the memory stays taken until the next table.
    /// At most [`crate::channel::BATCH`] per message; no answer.
    Freed {
        /// Numbers of the allocations.
        ids: Vec<AllocationId>,
    },
    /// Device memory that stays the driver's (pools, captured graphs' own): the driver saves it into the
    /// process's host memory when its control state is checkpointed. Sent before a good
    /// [`ToAgent::Quiesced`] when it is not 0.
    Native {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// The bytes that the driver saves, over all devices.
        bytes: u64,
    },
    /// The application opens memory of another process by a handle that this one got from it. The agent answers with
    /// [`ToShim::Identified`], the fd beside it, and counts the process as one that imports the allocation.
    Fetch {
        /// The name of the allocation to open.
        key: AllocationKey,
        /// `instance` of the owner's `Hello`: a handle of a process that has ended is none of another with its PID.
        instance: u64,
    },
    /// The process does not import these allocations of others any more. At most [`crate::channel::BATCH`] per message;
    /// no answer.
    LetGo {
        /// The names of the allocations that the process let go.
        keys: Vec<AllocationKey>,
    },
    /// A tool has taken the driver's private tables (a profiler, a debugger), so that the driver may refuse to checkpoint the process:
    /// it is asked before anything stops. Sent when it happens and after every `Hello` from then on; no answer.
    Instrumented,
    /// What the process has on its GPUs while the job runs: after every `Hello`, and when it has changed, up to a second later. No
    /// answer.
    Usage(Usage),
    /// The process understands [`ToShim::Watch`] and [`ToShim::QuiesceInTurns`]. Sent after every `Hello`; no answer. Older shims
    /// do not say it.
    Watches,
    /// Answer to [`ToShim::Watch`]: the job has just waited for its GPU work, and has none in flight. It is held for the
    /// [`ToShim::Quiesce`] that is to come, for as long as was said.
    Moment {
        /// The number given in [`ToShim::Watch`].
        seq: Sequence,
    },
    /// The process has NCCL communicators whose calls are counted, and understands [`ToShim::QuiesceAtCut`]. Sent when it makes the
    /// first one and after every `Hello` from then on; no answer.
    Communicates,
    /// What the process has issued to its communicators. Sent after [`ToShim::QuiesceAtCut`], whenever it has changed and when
    /// `held` has, until [`ToShim::Settle`].
    Position {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// Whether the process is held, its goals reached; otherwise it continues towards them.
        held: bool,
        /// One for each rank of each communicator that the process is, and those of messages that there were; at most [`COUNTS`].
        counts: Vec<Count>,
    },
    /// The process will say [`ToAgent::Ends`]. Sent after every `Hello`; no answer. Older shims do not say it.
    TellsEnd,
    /// The process ends by itself, whatever happens to it from here on. One that is killed says nothing. No answer.
    Ends {
        /// The code that it ends with, as the kernel keeps it.
        code: u8,
    },
    /// The program uses hints, and the process understands [`ToShim::AwaitStep`] and [`ToShim::Newest`]. Sent at the first hint, when
    /// `steps` has become true, and after every `Hello` from then on; no answer but [`ToShim::Newest`]. Older shims do not say it.
    Hints {
        /// Whether it tells its steps.
        steps: bool,
    },
    /// The program asks for a checkpoint. No answer.
    Request,
    /// The step that the program told last. Sent before a good [`ToAgent::Quiesced`] by who tells steps.
    Step {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// The number of the step, as the program counts.
        step: u64,
    },
    /// The process understands [`ToShim::Credit`]. Sent after every `Hello`; no answer. Older shims do not say it.
    TakesCredit,
    /// The calls of a [`ToShim::Credit`] have been made, the next one waits, and the GPU has done what it was given.
    Spent {
        /// The number of the checkpoint attempt, from the credit.
        seq: Sequence,
    },
    /// Where in its steps the process is held. Sent before a good [`ToAgent::Quiesced`] by one that was held from the [`ToAgent::Moment`]
    /// on that it told after [`ToShim::WatchFor`] or [`ToShim::AwaitStep`].
    Place {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// The place.
        place: Place,
    },
    /// The multicast objects that the process has, made here or imported. Sent before a good [`ToAgent::Quiesced`], and before a good
    /// [`ToAgent::Attached`], by one that has some.
    Multicasts {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// Before which of the two.
        attached: bool,
        /// At most [`crate::channel::BATCH`] in one message.
        held: Vec<HeldMulticast>,
    },
    /// Outcome of [`ToShim::Remake`]; after `Ok` the fd of the new object is beside the message.
    Remade {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// The object.
        object: Allocation,
        /// `Err`: as for [`ToAgent::Attached`].
        outcome: Result<(), Refusal>,
    },
    /// Outcome of [`ToShim::Join`].
    Joined {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// `Err`: as for [`ToAgent::Attached`].
        outcome: Result<(), Refusal>,
    },
    /// Outcome of [`ToShim::Bind`].
    Bound {
        /// The number of the checkpoint attempt, from its request.
        seq: Sequence,
        /// `Err`: as for [`ToAgent::Attached`].
        outcome: Result<(), Refusal>,
    },
}

/// A multicast object as a process has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldMulticast {
    /// The object: its size in bytes, and how many devices take part.
    pub object: Allocation,
    /// How many of them the process has added.
    pub added: u32,
}

/// Where in its steps a process is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Place {
    /// At the end of one, as the program says.
    Step,
    /// Where it has waited for its GPU work.
    Wait {
        /// The calls of work that the thread has made since its wait before.
        calls: u32,
    },
}

/// Numbers of calls from one to another, both among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Calls {
    /// The fewest.
    pub least: u32,
    /// The most.
    pub most: u32,
}

/// Numbers of calls in [`Waits::except`], at most; a shim ignores others.
pub const EXCEPT: usize = 4;

/// Some of the job's waits for its GPU work, by how many calls of work the thread has made since its wait before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waits {
    /// After so many.
    pub after: Calls,
    /// But not after so many.
    pub except: Vec<Calls>,
}

/// How often a rank has taken part in what the ranks of a communicator do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    /// The number of the communicator: the same on all of its ranks.
    pub communicator: u64,
    /// The rank in the communicator.
    pub rank: u32,
    /// What is counted.
    pub of: Counted,
    /// How often.
    pub times: u64,
}

/// What is counted of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Counted {
    /// Collectives.
    Collectives,
    /// Messages sent to this rank.
    Sent(u32),
    /// Messages received from this rank.
    Received(u32),
}

/// What a running process has on its GPUs, in bytes over all devices.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Memory that is given back before the driver saves anything: taken over, or imported.
    pub taken_over: u64,
    /// Memory that the shim knows to be the driver's to save: arrays, and what could not be taken over. Pools of the driver and
    /// variables of modules are not among it.
    pub native: u64,
    /// Memory that the stacks of GPU threads may take on each device, which is given back as well: at most, unless kernels need far
    /// more stack than most.
    pub stacks: u64,
}

/// An allocation in [`ToAgent::Table`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableEntry {
    /// The allocation as the owner's registry knows it.
    pub allocation: Allocation,
    /// Bytes of it that the application asked for (the rest is rounding).
    pub requested: u64,
    /// Whether its fd travels with this packet.
    pub with_fd: bool,
}

/// Facts measured while quiescing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuiesceFacts {
    /// From closing the gate until no call was in flight, in ns.
    pub gate_ns: u64,
    /// Synchronising the contexts, in ns.
    pub sync_ns: u64,
    /// Exporting new allocations, in ns.
    pub export_ns: u64,
}

/// How long a job is watched, and held meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchTime {
    /// How long the watch lasts in all, in ms; 0 ends one.
    pub for_ms: u32,
    /// How long the job may be held at a time to see whether anything is left in flight, in ms.
    pub glance_ms: u32,
    /// How long it may be held after that for the `Quiesce` that is to come, in ms.
    pub answer_ms: u32,
}

impl WatchTime {
    /// The time that ends a watch.
    pub const OVER: Self = Self {
        for_ms: 0,
        glance_ms: 0,
        answer_ms: 0,
    };
}

/// How far a job may go while memory that it may overwrite is still being copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// The number of calls of work that each process may make, from when its gate opened after the attempt, before its next one waits.
    pub calls: u64,
    /// How long it may wait at most, from when this was said, in ms: then it goes on, whatever becomes of the copy.
    pub for_ms: u32,
}

/// The newest checkpoint of the job, as its program is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Newest {
    /// Its number in the log of its tier.
    pub number: u64,
    /// When the job was held for it, in ms since 1970; of one that the job was resumed from, when it was stored.
    pub unix_ms: u64,
    /// The last step before it, if the program told its steps.
    pub step: Option<u64>,
    /// Whether it is in the store, and not on this machine alone.
    pub in_store: bool,
}

/// Messages from the agent to a shim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToShim {
    /// Answer to `Hello`. Several, when the list is longer than [`HELD`]: one with fewer numbers is the last.
    Welcome {
        /// Allocations of this process whose fds the agent holds.
        held: Vec<AllocationId>,
    },
    /// Close the gate, idle the contexts, send the table.
    Quiesce {
        /// The number of the checkpoint attempt.
        seq: Sequence,
        /// Give up and open the gate after this many ms.
        timeout_ms: u32,
    },
    /// Open the gate. The answer to an abandoned checkpoint, or the end of a good one.
    Resume {
        /// The number of the checkpoint attempt.
        seq: Sequence,
    },
    /// Unmap and release everything, then close the connection and wait for the socket's path.
    Detach {
        /// The number of the checkpoint attempt.
        seq: Sequence,
    },
    /// Part of the memory to attach: one fd beside the message per key, in order. Own allocations
    /// and imported ones alike.
    Memory {
        /// The number that the process waits for: that of the attempt, or of the restore.
        seq: Sequence,
        /// The names of the allocations whose fds are beside the message, in the same order.
        keys: Vec<AllocationKey>,
    },
    /// All fds were sent: import and map them, answer `Attached`, keep the gate closed.
    Attach {
        /// The number that the process waits for: that of the attempt, or of the restore.
        seq: Sequence,
    },
    /// Whatever device memory phos-ft could give back was given back (also when that was none).
    MemoryReleased,
    /// Answer to `Share`; the fd is beside the message, unless the agent could not take it.
    Shared(Result<(), String>),
    /// Answer to `Identify`: the allocation, or none if the agent does not know the fd. And to `Fetch`, with the fd beside
    /// it, or none if the allocation is not there.
    Identified(Option<Allocation>),
    /// Say when the job waits for its own GPU work. Only to who said [`ToAgent::Watches`]. Ends with the answer, the time, a
    /// `Quiesce` or a `Resume`.
    Watch {
        /// A number that the sender chooses, to match the answer.
        seq: Sequence,
        /// How long to watch, and for how long an answer may hold the job.
        time: WatchTime,
    },
    /// As `Quiesce`, for a job with more work queued than ends while it may be held: no thread is held for more than `hold_ms` at a
    /// time; each then makes one call, and is held again. Only to who said [`ToAgent::Watches`].
    QuiesceInTurns {
        /// The number of the checkpoint attempt.
        seq: Sequence,
        /// Give up and open the gate after this many ms.
        timeout_ms: u32,
        /// How long a thread may be held at a time.
        hold_ms: u32,
    },
    /// As `Quiesce`, for processes whose ranks wait for each other on their GPUs: close the gate, say the `Position`, and wait for
    /// `Settle`. Only to who said [`ToAgent::Communicates`].
    QuiesceAtCut {
        /// The number of the checkpoint attempt.
        seq: Sequence,
        /// Give up and open the gate after this many ms.
        timeout_ms: u32,
    },
    /// Other ranks wait for what this process has not issued yet: open the gate until it has issued that, and close it again.
    Continue {
        /// The number of the checkpoint attempt.
        seq: Sequence,
        /// What the process is to have issued, in place of what was said before; at most [`COUNTS`].
        goals: Vec<Count>,
    },
    /// Nobody is behind: idle the contexts, send the table, and answer `Quiesced`.
    Settle {
        /// The number of the checkpoint attempt.
        seq: Sequence,
    },
    /// Say when the program ends a step and its GPU work is done. Only to who said [`ToAgent::Hints`] with steps. Ends as `Watch` does,
    /// and takes its place.
    AwaitStep {
        /// A number that the sender chooses, to match the answer.
        seq: Sequence,
        /// How long to wait, and for how long an answer may hold the job.
        time: WatchTime,
    },
    /// The newest checkpoint of the job, if there is one. Only to who said [`ToAgent::Hints`], after it and whenever there is another.
    Newest(Option<Newest>),
    /// So many calls may be made from the next [`ToShim::Resume`] on; once it counts, so many in all. None: as many as the process likes. Only to who said [`ToAgent::TakesCredit`].
    Credit {
        /// The number of the checkpoint attempt.
        seq: Sequence,
        /// How many, and for how long.
        credit: Option<Credit>,
    },
    /// As `Watch`, and takes its place, for some waits only. Only to who said [`ToAgent::TakesCredit`].
    WatchFor {
        /// A number that the sender chooses, to match the answer.
        seq: Sequence,
        /// How long to watch, and for how long an answer may hold the job.
        time: WatchTime,
        /// The waits that are meant.
        waits: Waits,
    },
    /// Make this multicast object anew: answer `Remade`. Every process has attached.
    Remake {
        /// The number that the process waits for: that of the attempt, or of the restore.
        seq: Sequence,
        /// The object.
        key: AllocationKey,
    },
    /// All multicast objects have been made anew. Import those whose fds are beside the message, in order, and with the last message add
    /// the devices that were added to each object: answer `Joined`.
    Join {
        /// The number that the process waits for.
        seq: Sequence,
        /// The objects whose fds are beside the message: those that the process has and others have made.
        keys: Vec<AllocationKey>,
        /// Whether no further message follows.
        last: bool,
    },
    /// Every process has joined: bind to the objects what was bound, map them where they were, and answer `Bound`.
    Bind {
        /// The number that the process waits for.
        seq: Sequence,
    },
}
