//! The conversation between the sidecar (client) and the agent (server).
//!
//! ```text
//! sidecar                                        agent
//!  │ Hello ───────────────────────────────────────▶│
//!  │◀──────────────────────────────── Welcome      │ state of the job
//!  │ Start │ Restore │ Revive, Filled ────────────▶│ only when the job is not running
//!  │◀──────────────────────── Started │ Restored   │
//!  │                                               │
//!  │ Quiesce(seq) ────────────────────────────────▶│ every shim quiesced
//!  │◀──── Table* (+ new fds), Quiesced(seq)        │
//!  │     … digests every chunk …                   │
//!  │ Dump(seq) ───────────────────────────────────▶│ detach, lock, control checkpoint, CRIU dump,
//!  │◀─ Dumped(seq) (+ directory fd of the image)   │ control restore, unlock
//!  │     … drains what must be drained …           │
//!  │ Attach(seq) ─────────────────────────────────▶│ attach, gate open
//!  │◀──────────────────────────── Resumed(seq)     │
//!  │     … drains the rest, stores, commits …      │
//!  │ Finish(seq) ─────────────────────────────────▶│ the image directory is removed
//! ```
//!
//! * At any point between `Quiesce` and `Resumed` the sidecar may send `Abandon(seq)`, or vanish:
//!   the agent attaches and resumes by itself, and answers `Resumed` if somebody is listening.
//! * The agent sends events (`JobExited`, `Freed`, `NeedMemory`, `Terminating`, `Unsupported`) whenever they
//!   happen; the sidecar must expect them between any two answers.
//! * One sidecar at a time; a second is refused with `Busy`. Control clients (`phos-ft checkpoint`,
//!   `status`) talk to the sidecar's own socket, not to the agent.

use serde::{Deserialize, Serialize};

use crate::shim::{Credit, Newest, Place, Refusal, Sequence, TableEntry, Waits, WatchTime};
use crate::types::{Allocation, AllocationKey, Device, GpuUuid, MemberId};

/// How the job's main process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// The process ended by itself with this exit code.
    Code(i32),
    /// The process was killed by this signal.
    Signal(i32),
}

impl Exit {
    /// Whether the job ended as it wanted to.
    pub fn is_success(self) -> bool {
        self == Exit::Code(0)
    }

    /// The exit code that a shell would report: 128 and the number for a signal.
    pub fn shell_code(self) -> i32 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128 + signal,
        }
    }
}

/// The state of the job, as the agent sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum JobState {
    /// Not started yet: the agent waits for `Start` or `Restore`.
    Waiting,
    /// Running (or held in a checkpoint).
    Running,
    /// Ended; the agent waits for `Restore`, `Start` or `GiveUp`.
    Ended(Exit),
}

/// How long a job may take to fall quiet, and for how long a thread is held meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuiesceTime {
    /// The time for the whole attempt to fall quiet, in ms.
    pub timeout_ms: u32,
    /// For how much of it a thread of the job's is held at a time, before it may make one call, in ms.
    pub hold_ms: u32,
}

impl QuiesceTime {
    /// A time of so many ms, during which the job is held without a pause.
    #[must_use]
    pub const fn at_once(timeout_ms: u32) -> Self {
        Self {
            timeout_ms,
            hold_ms: timeout_ms,
        }
    }
}

/// Messages from the sidecar to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToAgent {
    /// The first message of a connection.
    Hello {
        /// The sidecar's phos-ft version, for the log.
        version: String,
    },
    /// Start CMD from its beginning.
    Start,
    /// A part of the memory for the restore that follows: one fd per allocation, in order.
    RestoreMemory {
        /// The allocations whose fds are beside the message, in the same order.
        allocations: Vec<Allocation>,
    },
    /// Ask for an empty directory for an image; answered by `ImageDirectory`.
    NewImageDirectory,
    /// Bring the job back from the image in the directory asked for before.
    Restore {
        /// Old GPU → new GPU, complete for every GPU of the image; empty when nothing changes.
        gpus: Vec<(GpuUuid, GpuUuid)>,
    },
    /// Stop asking for a restore or start: exit with the job's own code.
    GiveUp,
    /// Begin a checkpoint attempt.
    Quiesce {
        /// Chosen by the sidecar, growing.
        seq: Sequence,
        /// Bounds for the shims.
        time: QuiesceTime,
        /// Somebody asked for this checkpoint, or it is the last: it is tried although the one before was refused for what is likely
        /// to be there still.
        insist: bool,
    },
    /// Go on with the attempt: detach and dump.
    Dump {
        /// The attempt's number, from its `Quiesce`.
        seq: Sequence,
    },
    /// Everything that had to leave the GPU first has left: let the job run.
    Attach {
        /// The attempt's number, from its `Quiesce`.
        seq: Sequence,
    },
    /// Stop the attempt and let the job run.
    Abandon {
        /// The number of the attempt to stop.
        seq: Sequence,
    },
    /// The image directory of the attempt is no longer needed.
    Finish {
        /// The number of the attempt whose image is no longer needed.
        seq: Sequence,
    },
    /// Answer to `NeedMemory`.
    MemoryReleased,
    /// Answer to `Terminating`: the last checkpoint is stored (or will not be): end the job.
    Terminate,
    /// The job was taken over in the store: its processes belong to this epoch from now on.
    TakenOver {
        /// The epoch of the take-over: the number of its record in the job's log.
        epoch: u64,
    },
    /// Another node has taken the job over: what runs here continues beside it for nothing. End it, and do not start it again in
    /// this container.
    Fenced {
        /// Who has the job now, in words for the log.
        reason: String,
    },
    /// Ask whether the files that the job needs and its image does not carry are here. `agent.json` of the image is in the
    /// directory asked for before; answered by `FilesChecked`.
    CheckFiles,
    /// Say when a process that did not fall quiet waits for its own GPU work: the moment for the next `Quiesce`.
    Watch {
        /// The number of the attempt that is to follow.
        seq: Sequence,
        /// How long to watch, and for how long the job may be held meanwhile.
        time: WatchTime,
    },
    /// Say when a process ends a step: the moment for the next `Quiesce`. Answered as `Watch` is. Only to who said
    /// [`ToSidecar::Hints`] with steps.
    AwaitStep {
        /// The number of the attempt that is to follow.
        seq: Sequence,
        /// How long to wait, and for how long the job may be held meanwhile.
        time: WatchTime,
    },
    /// The newest checkpoint of the job, if there is one, for its program. Only to who said [`ToSidecar::Hints`].
    Newest(Option<Newest>),
    /// How far the job may go before memory that it may overwrite is copied: from when it runs again, if this comes before `Attach`, else from
    /// now on. None: the copy is over, or given up. Only after [`ToSidecar::TakesCredit`] of the same attempt.
    Credit {
        /// The number of the attempt.
        seq: Sequence,
        /// How far, and for how long.
        credit: Option<Credit>,
    },
    /// As `Watch`, for some of the job's waits only. Only to who said [`ToSidecar::TakesCredit`] before.
    WatchFor {
        /// The number of the attempt that is to follow.
        seq: Sequence,
        /// How long to watch, and for how long the job may be held meanwhile.
        time: WatchTime,
        /// The waits that are meant.
        waits: Waits,
    },
    /// As `Restore`, while the memory that was sent is still being filled: the processes come back meanwhile, and get their memory
    /// after `Filled`. Only to an agent of the sidecar's own version.
    Revive {
        /// Old GPU → new GPU, complete for every GPU of the image; empty when nothing changes.
        gpus: Vec<(GpuUuid, GpuUuid)>,
    },
    /// The memory of a `Revive` has its contents, or will not have them: then what came back is ended. Answered as `Restore` is, in
    /// both cases.
    Filled(Result<(), String>),
}

/// A process of the job that uses CUDA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Identifies the process across the machines of the job.
    #[serde(alias = "pid")]
    pub member: MemberId,
    /// The GPUs that the process sees.
    pub devices: Vec<Device>,
}

/// How long each step of a dump took, in ns, as the agent measured it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpTimes {
    /// Unmap and release, all processes.
    pub detach_ns: u64,
    /// `cuCheckpointProcessLock` and `…Checkpoint`.
    pub control_checkpoint_ns: u64,
    /// CRIU, as the caller sees it.
    pub criu_ns: u64,
    /// `cuCheckpointProcessRestore` and `…Unlock`.
    pub control_restore_ns: u64,
}

/// Facts about the job at a checkpoint that a restore needs to know before it starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DumpFacts {
    /// How long each step of the dump took.
    pub times: DumpTimes,
    /// The processes of the job that use CUDA.
    pub processes: Vec<Process>,
    /// The number of bytes in the image directory.
    pub image_bytes: u64,
    /// `cuDriverGetVersion`, e.g. 13000.
    pub driver_version: u32,
}

/// Messages from the agent to the sidecar.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ToSidecar {
    /// The answer to `Hello`.
    Welcome {
        /// The phos-ft version of the agent.
        version: String,
        /// Chosen at random when the agent started.
        agent: u64,
        /// The state of the job at the moment of the connection.
        job: JobState,
        /// How often the job was brought back by this agent.
        restarts: u32,
        /// The command, for `status`.
        command: Vec<String>,
        /// The last checkpoint attempt the agent knows of.
        seq: Sequence,
        /// The epoch that the job's processes belong to, as a sidecar said; 0 when none has. A sidecar that finds another
        /// one in force in the store must not take the job over again.
        epoch: u64,
    },
    /// The answer to a sidecar while another one is connected.
    Busy,
    /// The answer to `Start`: CMD was started, or why it was not.
    Started(Result<(), String>),
    /// The directory fd is beside the message.
    ImageDirectory(Result<(), String>),
    /// Outcome of `Restore`: the job runs.
    Restored(Result<RestoreTimes, String>),
    /// Part of the table of all live allocations of the job.
    Table {
        /// The number of the attempt that the table belongs to.
        seq: Sequence,
        /// `with_fd` tells whether the fd travels with this packet: only those this sidecar was
        /// not sent yet.
        entries: Vec<TableEntry>,
    },
    /// Outcome of `Quiesce`. The table is complete.
    Quiesced {
        /// The number of the attempt.
        seq: Sequence,
        /// The CUDA processes, or why the attempt ended (the job runs on).
        outcome: Result<Vec<Process>, AttemptError>,
    },
    /// The driver has saved the control state and holds no device memory for the job now: the moment to
    /// measure what its restore will need.
    ControlSaved {
        /// The number of the attempt.
        seq: Sequence,
    },
    /// Outcome of `Dump`; with `Ok`, the image's directory fd is beside the message. The job is
    /// still detached; on `Err` it was attached and runs.
    Dumped {
        /// The number of the attempt.
        seq: Sequence,
        /// Facts, or why the attempt ended.
        outcome: Result<Box<DumpFacts>, AttemptError>,
    },
    /// The job runs again: the attempt's stop is over.
    Resumed {
        /// The number of the attempt.
        seq: Sequence,
        /// The whole stop, from closing the first gate to opening the last, in ns.
        stop_ns: u64,
        /// How long attaching the memory took, in ns.
        attach_ns: u64,
        /// Whether this was asked for by `Attach`. Else the attempt was undone, and what was not copied by then is not what it was.
        whole: bool,
    },
    /// The job's main process ended.
    JobExited {
        /// How the process ended: its exit code, or the signal that killed it.
        exit: Exit,
        /// Whether it ended because the agent was told to stop: then no restore is wanted.
        stopping: bool,
    },
    /// The job freed these allocations: close what is held of them (unless a checkpoint in flight
    /// still reads it), else their memory stays taken. At most [`crate::channel::BATCH`]; no answer.
    Freed {
        /// The names of the freed allocations.
        keys: Vec<AllocationKey>,
    },
    /// An allocation of the job failed; release what can be released and answer.
    NeedMemory {
        /// The GPU on which the job's allocation failed.
        gpu: GpuUuid,
        /// How many bytes the job asked for.
        bytes: u64,
    },
    /// The agent was asked to end (SIGTERM). It waits for `Terminate` at most this long.
    Terminating {
        /// How long the agent waits, in ms.
        grace_ms: u64,
    },
    /// Checkpoints are ruled out for now; the text names why and the remedy.
    Unsupported {
        /// For the log and for `status`; empty when the reason has gone.
        reason: String,
    },
    /// Answer to `Restore` in place of `Restored`: the driver of this machine cannot take the job to these GPUs, nor any
    /// older checkpoint of it. Nothing was changed.
    CannotMove {
        /// Why the driver cannot, and the remedy.
        reason: String,
    },
    /// Outcome of `CheckFiles`: what is missing or differs, and the remedy.
    FilesChecked(Result<(), String>),
    /// Answer to `Restore` in place of `Restored`: every process came back, and the driver cannot bring back what it saved
    /// of one. That will not change: trying it over and over costs the job only time.
    NotRestorable {
        /// Why the driver cannot bring the process back.
        reason: String,
    },
    /// Answer to `Restore` in place of `Restored`: somebody has to put something right first. Older checkpoints are not tried
    /// in its place: what was trained since would be lost for that.
    Refused {
        /// What has to be put right, and how.
        reason: String,
    },
    /// Answer to `Watch`, if there is one.
    Moment {
        /// The number given in `Watch`.
        seq: Sequence,
        /// A process has waited for its work, now. Else no process can say when it does.
        waited: bool,
    },
    /// The job's program uses hints. Sent when that is known, and when `steps` has become true.
    Hints {
        /// Whether it tells its steps.
        steps: bool,
    },
    /// The job's program asks for a checkpoint.
    Request,
    /// The step that a process told last. Sent before a good `Quiesced`, by each that tells steps.
    Step {
        /// The number of the attempt.
        seq: Sequence,
        /// The number of the step, as the program counts.
        step: u64,
    },
    /// All processes that use CUDA count their calls: a `Credit` may be given. Sent before a good `Quiesced`.
    TakesCredit {
        /// The number of the attempt.
        seq: Sequence,
        /// Where in its steps the job is held, if it is one process that was held from the moment on that it told.
        place: Option<Place>,
    },
    /// A process has made the calls of its `Credit`, waits with the next one, and its GPU work is done.
    Spent {
        /// The number of the attempt.
        seq: Sequence,
    },
}

/// How long each step of a restore took, in ns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoreTimes {
    /// Putting the files of the job back, in ns.
    pub files_ns: u64,
    /// CRIU's restore of the processes, in ns.
    pub criu_ns: u64,
    /// The driver's restore of the control state, in ns.
    pub control_restore_ns: u64,
    /// Attaching the memory in all processes, in ns.
    pub attach_ns: u64,
}

/// Why a checkpoint attempt ended. The job runs on in each case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AttemptError {
    /// The shim of a process refused.
    Shim {
        /// The process whose shim refused.
        member: MemberId,
        /// The reason that the shim gave.
        refusal: Refusal,
    },
    /// The job ended while the attempt was under way.
    JobEnded,
    /// The driver has no checkpoint calls, or they failed: what, and the remedy.
    Control(String),
    /// CRIU is missing, too old, or failed: what, and the remedy.
    Criu(String),
    /// Files of the job could not be copied (room in the image directory, size limit).
    Files(String),
    /// The attempt was abandoned by the sidecar or superseded.
    Abandoned,
    /// The request does not fit the state the agent is in.
    OutOfOrder(String),
    /// Not at this moment: a process is just beginning to use the GPU, say. Worth trying again at once.
    Soon(String),
}

impl AttemptError {
    /// Whether a later attempt may succeed without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        match self {
            AttemptError::Shim { refusal, .. } => refusal.is_transient(),
            AttemptError::Abandoned
            | AttemptError::OutOfOrder(_)
            | AttemptError::JobEnded
            | AttemptError::Soon(_) => true,
            AttemptError::Control(_) | AttemptError::Criu(_) | AttemptError::Files(_) => false,
        }
    }
}

impl std::fmt::Display for AttemptError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AttemptError::Shim { member, refusal } => write!(f, "process {member}: {refusal}"),
            AttemptError::JobEnded => f.write_str("the job ended during the checkpoint"),
            AttemptError::Control(what) => write!(f, "GPU control state: {what}"),
            AttemptError::Criu(what) => write!(f, "CRIU: {what}"),
            AttemptError::Files(what) => write!(f, "files of the job: {what}"),
            AttemptError::Abandoned => {
                f.write_str("the attempt was abandoned, and the job goes on")
            }
            AttemptError::OutOfOrder(what) | AttemptError::Soon(what) => f.write_str(what),
        }
    }
}

/// Names of fds sent by [`ToAgent::RestoreMemory`], for symmetry with the shim's side.
pub fn keys(allocations: &[Allocation]) -> Vec<AllocationKey> {
    allocations.iter().map(|a| a.key).collect()
}
