//! Exit codes, as documented in `--help` and `docs/`.
//!
//! The job's own code passes through `phos-ft run` and `phos-ft … -- CMD`; the codes here are used when
//! phos-ft itself cannot do what it was asked. They are those of `sysexits.h` where one fits.

use phos_storage::{CollectError, FaultKind, JobError, OpenError, ProbeError};

use crate::engine::EngineError;

/// The command did what it was asked.
pub const OK: u8 = 0;
/// The request was understood and did not work (a checkpoint that failed, a check that failed).
pub const FAILED: u8 = 1;
/// The command line is wrong (`EX_USAGE`).
pub const USAGE: u8 = 64;
/// A store, checkpoint or image cannot be used: damaged, or of a newer format.
pub const DATA: u8 = 65;
/// There is no such job or checkpoint.
pub const NOT_FOUND: u8 = 66;
/// The encryption key is missing, cannot be used or is not the job's.
pub const KEY: u8 = 67;
/// The store, the agent or the sidecar does not answer.
pub const UNAVAILABLE: u8 = 69;
/// Something of the operating system failed that should not.
pub const SYSTEM: u8 = 71;
/// A directory or file cannot be made.
pub const CANNOT_CREATE: u8 = 73;
/// The sidecar's GPU context broke, or its store was replaced below it: its supervisor starts another one.
pub const REPLACE: u8 = 75;
/// Another node took the job over.
pub const FENCED: u8 = 76;
/// Privileges are missing.
pub const PERMISSION: u8 = 77;
/// This machine cannot take the image: architecture, driver, GPUs, memory, or another command.
pub const MACHINE: u8 = 78;

/// The table of exit codes that `--help` shows.
pub const HELP: &str = "\
Exit codes:
  The exit code of the job is passed through. The codes of phos-ft itself are:
    0  success
    1  the requested operation failed
   64  invalid command line
   65  the store, checkpoint or image is damaged or of a newer format
   66  no such job or checkpoint
   67  the encryption key is missing, unusable or not the one of this job
   69  the store, the agent or the sidecar does not answer
   71  a call to the operating system or the driver failed
   73  a directory or file cannot be created
   75  the GPU context or the store was lost: restart the sidecar
   76  another node took the job over
   77  insufficient privileges
   78  this machine cannot restore the image
  126  CMD cannot be executed
  127  CMD was not found";

fn open(error: &OpenError) -> u8 {
    match error {
        OpenError::Scheme { .. } | OpenError::Address { .. } => USAGE,
        OpenError::Directory { .. } => CANNOT_CREATE,
        OpenError::Newer { .. } | OpenError::Marker { .. } => DATA,
        OpenError::Store { source, .. } => fault(source.kind()),
    }
}

fn fault(kind: FaultKind) -> u8 {
    match kind {
        FaultKind::Denied | FaultKind::Unauthenticated => PERMISSION,
        FaultKind::NoSpace | FaultKind::ReadOnly => CANNOT_CREATE,
        FaultKind::Invalid => USAGE,
        FaultKind::Key => KEY,
        _ => UNAVAILABLE,
    }
}

/// The code for an error of a job's history.
pub fn job(error: &JobError) -> u8 {
    match error {
        JobError::Store(f) => fault(f.kind()),
        JobError::Fenced { .. } => FENCED,
        JobError::NoCheckpoint { .. } | JobError::Removed { .. } => NOT_FOUND,
        JobError::Unusable { .. } | JobError::Pack { .. } | JobError::Encode(_) => DATA,
        JobError::Discarded { .. } => USAGE,
    }
}

/// The exit code for a collection that failed with this error.
pub fn collect(error: &CollectError) -> u8 {
    match error {
        CollectError::Store(f) => fault(f.kind()),
        CollectError::Fenced { .. } => FENCED,
        CollectError::Busy => UNAVAILABLE,
        CollectError::Job(e) => job(e),
        CollectError::Damaged { .. } | CollectError::Encode(_) | CollectError::Manifest(_) => DATA,
    }
}

/// The exit code for a sidecar that ended with this error.
pub fn engine(error: &EngineError) -> u8 {
    match error {
        EngineError::RunDir { .. } => CANNOT_CREATE,
        EngineError::Open(e) => open(e),
        EngineError::Probe(ProbeError::Store(f) | ProbeError::Refused { source: f, .. }) => {
            fault(f.kind())
        }
        EngineError::Probe(_) => UNAVAILABLE,
        EngineError::Schedule(_) => USAGE,
        EngineError::Connect(_) => PERMISSION,
        EngineError::Job(e) => job(e),
        EngineError::Fenced(_) => FENCED,
        EngineError::HistoryAway { .. } => UNAVAILABLE,
        EngineError::Check(_) => MACHINE,
        EngineError::Restore(_) => DATA,
        EngineError::Sticky(_) | EngineError::HistoryLost(_) => REPLACE,
        EngineError::System(_) => SYSTEM,
    }
}

/// Whether a sidecar that ended with this code would end so again.
pub fn is_final(code: u8) -> bool {
    matches!(
        code,
        OK | USAGE | DATA | NOT_FOUND | KEY | FENCED | PERMISSION | MACHINE
    )
}
