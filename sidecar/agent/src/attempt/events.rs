//! The events that an attempt takes in, and the effects that it asks for.

use std::collections::BTreeSet;
use std::time::Duration;

use phos_policies::cut::{Position, Standing};
use phos_protocol::agent::{AttemptError, DumpFacts, QuiesceTime, ToSidecar};
use phos_protocol::shim::{HeldMulticast, Refusal, Sequence};
use phos_protocol::types::ProcessId;
use phos_shared::failpoint::Point;

use super::rejoin::{Asked, Done};

/// Something that happened.
#[derive(Debug, Clone)]
pub enum Input {
    /// The sidecar asks for a checkpoint, and nothing that can be known beforehand speaks against it.
    Begin {
        /// The number that the sidecar chose for the attempt.
        seq: Sequence,
        /// How long each process may take to fall quiet.
        time: QuiesceTime,
        /// The processes whose shims are connected.
        processes: Vec<ProcessId>,
        /// Those of them whose ranks wait for each other on their GPUs.
        communicating: BTreeSet<ProcessId>,
    },
    /// A process says what it has issued to its communicators.
    Position {
        /// The PID of the process that says so.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// Whether it is held.
        standing: Standing,
        /// What it has issued.
        position: Position,
    },
    /// The sidecar asks for the dump of the attempt.
    Dump {
        /// The number of the attempt that it means.
        seq: Sequence,
    },
    /// The sidecar has read what it needed: the job may have its memory back.
    Attach {
        /// The number of the attempt that it means.
        seq: Sequence,
    },
    /// The sidecar gives the attempt up or cannot be reached, or the job is about to be told to end.
    Abandon {
        /// The number of the attempt that is meant; `None`: whichever is under way.
        seq: Option<Sequence>,
    },
    /// A process sent a table of its memory that cannot be used.
    TableUnusable {
        /// The PID of the process that sent the table.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// What is wrong with the table, for the log.
        why: String,
    },
    /// A process says how much device memory the driver will save for it.
    Native {
        /// The PID of the process that says so.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// The bytes of device memory that the driver will save.
        bytes: u64,
    },
    /// The answer of a process to `Quiesce`.
    Quiesced {
        /// The PID of the process that answers.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// Whether its gate is closed.
        outcome: Result<(), Refusal>,
    },
    /// The answer of a process to `Detach`.
    Detached {
        /// The PID of the process that answers.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// Whether it has released all of its memory.
        outcome: Result<(), Refusal>,
    },
    /// The answer of a process to `Attach`.
    Attached {
        /// The PID of the process that answers.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// Whether all of its memory is back.
        outcome: Result<(), Refusal>,
    },
    /// A process says which multicast objects it has, before its answer to `Quiesce` or `Attach`.
    Multicasts {
        /// The PID of the process that says so.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// Before which of the two.
        attached: bool,
        /// What it has.
        held: Vec<HeldMulticast>,
    },
    /// What came of [`Effect::Rejoin`].
    Rejoined {
        /// The PID of the process that answers.
        pid: ProcessId,
        /// The number of the attempt that it answers.
        seq: Sequence,
        /// What it has done, or why it could not.
        outcome: Result<Done, Refusal>,
    },
    /// A process that is detached has connected again.
    Returned {
        /// The PID of the process that has connected.
        pid: ProcessId,
        /// The number of the attempt in which it detached.
        seq: Sequence,
    },
    /// A process began to use CUDA, or one that is not detached has connected again.
    Newcomer {
        /// The PID of the process that has connected.
        pid: ProcessId,
    },
    /// The connection of a process ended, for whatever reason.
    Disconnected {
        /// The PID of the process that was connected.
        pid: ProcessId,
        /// What was wrong with the connection, if it was not simply closed.
        why: Option<String>,
    },
    /// A process of the job ended.
    ProcessEnded {
        /// The PID of the process that ended.
        pid: ProcessId,
    },
    /// The job's main process ended: nothing is left to resume.
    JobEnded,
    /// What came of [`Effect::TakeTables`].
    Collected {
        /// The number of the attempt that the effect was issued in.
        seq: Sequence,
        /// Why the tables cannot be used, if they cannot.
        outcome: Result<(), AttemptError>,
    },
    /// What came of [`Effect::Prepare`].
    Prepared {
        /// The number of the attempt that the effect was issued in.
        seq: Sequence,
        /// Why there is no room for an image, if there is none.
        outcome: Result<(), AttemptError>,
        /// The processes whose shims are connected now.
        connected: Vec<ProcessId>,
    },
    /// What came of [`Effect::StartDump`]: the dump is under way.
    DumpBegan {
        /// The number of the attempt that is dumped.
        seq: Sequence,
        /// How long the dump may take before everything is killed.
        bound: Duration,
    },
    /// The dump has ended, or could not begin. The driver's part of it is undone.
    DumpEnded {
        /// The facts of a complete image, or why there is none.
        outcome: Result<Box<DumpFacts>, Undumped>,
    },
    /// What came of [`Effect::Listen`].
    Listening {
        /// The number of the attempt that the effect was issued in.
        seq: Sequence,
        /// The processes that are connected already, or why no process can connect.
        connected: Result<Vec<ProcessId>, String>,
    },
    /// Time has passed, and the deadline may have.
    Tick,
}

/// Why a dump made no image, and whether the job can continue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undumped {
    /// The error that the sidecar is told.
    pub error: AttemptError,
    /// Why the job cannot continue; `None` unless a process could not be brought back.
    pub lost: Option<String>,
}

/// Something that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Ask a process to close its gate.
    Quiesce {
        /// The PID of the process to ask.
        pid: ProcessId,
        /// The number of the attempt.
        seq: Sequence,
        /// How long the process may take to fall quiet.
        time: QuiesceTime,
    },
    /// Ask a process to close its gate, say what it has issued, and wait for more.
    QuiesceAtCut {
        /// The PID of the process to ask.
        pid: ProcessId,
        /// The number of the attempt.
        seq: Sequence,
        /// How long the process may take to fall quiet.
        time: QuiesceTime,
    },
    /// Have a process continue until it has issued what others wait for.
    Continue {
        /// The PID of the process.
        pid: ProcessId,
        /// The number of the attempt.
        seq: Sequence,
        /// What it is to have issued.
        goals: Position,
    },
    /// Have a process fall quiet: no rank waits for another one.
    Settle {
        /// The PID of the process.
        pid: ProcessId,
        /// The number of the attempt.
        seq: Sequence,
    },
    /// Bring the vault up to date with the tables that the processes sent, then report [`Input::Collected`].
    TakeTables {
        /// The number of the attempt whose tables these are.
        seq: Sequence,
    },
    /// Tell the sidecar that the job is quiet; if it cannot be told, report [`Input::Abandon`].
    TellQuiesced {
        /// The number of the attempt in which the job is quiet.
        seq: Sequence,
    },
    /// Make the directory of the image, then report [`Input::Prepared`].
    Prepare {
        /// The number of the attempt that the image is for.
        seq: Sequence,
    },
    /// Tell the sidecar that this attempt is not one that can be dumped.
    RefuseDump {
        /// The number of the attempt that it asked about.
        seq: Sequence,
    },
    /// Take away the socket of the shims, so that those which detach wait for it.
    StopListening,
    /// Ask a process to release its memory; if it has no connection, report [`Input::Disconnected`].
    Detach {
        /// The PID of the process to ask.
        pid: ProcessId,
        /// The number of the attempt.
        seq: Sequence,
    },
    /// Start the dump, then report [`Input::DumpBegan`], or [`Input::DumpEnded`] if it could not be started.
    StartDump {
        /// The number of the attempt that is to be dumped.
        seq: Sequence,
        /// Bytes of device memory that the driver will save.
        native_bytes: u64,
        /// How long it took until every process was detached, in nanoseconds.
        detach_ns: u64,
    },
    /// Have the dump stop at its next step.
    CancelDump,
    /// Tell the sidecar that the image is complete; if it cannot be told, report [`Input::Abandon`].
    TellDumped {
        /// The number of the attempt that was dumped.
        seq: Sequence,
        /// What the sidecar has to know of the image.
        facts: Box<DumpFacts>,
    },
    /// Listen for shims again, then report [`Input::Listening`].
    Listen {
        /// The number of the attempt to report with.
        seq: Sequence,
    },
    /// Give a process all of its memory and ask it to attach.
    SendMemory {
        /// The PID of the process to attach.
        pid: ProcessId,
        /// The number that the process waits for: that of the attempt in which it detached.
        seq: Sequence,
    },
    /// Ask a process for its part in making multicast objects anew.
    Rejoin {
        /// The number of the attempt.
        seq: Sequence,
        /// Whom, and for what.
        asked: Asked,
    },
    /// Have a process open its gate, if it is connected.
    Resume {
        /// The PID of the process to resume.
        pid: ProcessId,
        /// The number of the attempt that is over for the process.
        seq: Sequence,
    },
    /// Send an answer to the sidecar.
    Answer(ToSidecar),
    /// Put away what the attempt leaves: an image that nobody was told of, and the tables that were not taken.
    CleanUp(Tables),
    /// End the job, which cannot continue, for the reason given.
    LoseJob(String),
    /// Send SIGKILL to every process of the job.
    KillEverything,
    /// Save the control state of the job's processes, then kill them.
    SaveAndKill,
    /// End the agent: a call of the driver does not come back.
    GiveUpOnDriver,
    /// Pass this failpoint.
    Failpoint(Point),
}

/// What becomes of tables that the vault has not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tables {
    /// Their memory is held: the processes live, and will not send again what they have sent.
    Keep,
    /// The tables are dropped with their processes.
    Drop,
}
