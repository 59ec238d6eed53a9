//! Why the sidecar ends although its job is not over.

use std::path::PathBuf;

use phos_policies::schedule::ScheduleError;
use phos_storage::{JobError, JobName, OpenError, ProbeError};

use super::restore::checks::CheckError;

/// Why the sidecar ended without its job being over.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The run directory, or the socket in it, cannot be used.
    #[error(
        "cannot use {path}: {source}; choose a directory that this user may write with --run-dir"
    )]
    RunDir {
        /// The path that cannot be used.
        path: PathBuf,
        /// The error that the operating system returned.
        source: std::io::Error,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store failed its probe: it cannot be trusted with checkpoints.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The interval cannot be used.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The connection to the agent cannot be made, ever.
    #[error("{0}")]
    Connect(String),
    /// An operation on the job's history failed.
    #[error(transparent)]
    Job(JobError),
    /// Another node took the job over.
    #[error("{0}")]
    Fenced(String),
    /// The record of this sidecar's take-over is gone, and nobody else has the job: the store was emptied or replaced meanwhile.
    #[error(
        "{0}. But no other node has the job: its history in the store was removed or replaced meanwhile. The next sidecar \
         begins a new one, and the job runs on"
    )]
    HistoryLost(String),
    /// The store does not show the history that this machine knows of.
    #[error(
        "{store} does not show the history of job {job}, which had checkpoints there: mount its file system or correct --store; \
         to begin the job anew without them, give --start-fresh"
    )]
    HistoryAway {
        /// The address of the store.
        store: String,
        /// The job whose history is missing.
        job: JobName,
    },
    /// This machine cannot take the image.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The job could not be resumed, for this reason.
    #[error("{0}")]
    Restore(String),
    /// The GPU context is broken: a new process is needed.
    #[error("{0}; this process must be replaced, the job is not affected")]
    Sticky(String),
    /// Signals or threads could not be set up.
    #[error("{0}")]
    System(std::io::Error),
}

impl EngineError {
    /// Whether the store does not show a history that was seen there.
    pub fn is_away(&self) -> bool {
        match self {
            EngineError::HistoryAway { .. } => true,
            EngineError::Job(error) => error.is_absent(),
            _ => false,
        }
    }

    /// Whether another node has the job.
    pub fn is_fenced(&self) -> bool {
        matches!(
            self,
            EngineError::Fenced(_) | EngineError::Job(JobError::Fenced { .. })
        )
    }
}
