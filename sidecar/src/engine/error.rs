//! Why the sidecar ends although its job is not over.

use std::path::PathBuf;

use phos_policies::schedule::ScheduleError;
use phos_storage::{FaultKind, JobError, JobName, OpenError, ProbeError};

use super::restore::checks::CheckError;

/// Why the sidecar ended without its job being over.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The run directory or the socket in it.
    #[error(
        "cannot use {path}: {source}; choose a directory that this user may write with --run-dir"
    )]
    RunDir {
        /// What could not be made.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store is not fit.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The interval.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The connection to the agent cannot be made, ever.
    #[error("{0}")]
    Connect(String),
    /// The job's history.
    #[error(transparent)]
    Job(JobError),
    /// Another node took the job over.
    #[error("{0}")]
    Fenced(String),
    /// Our record of having the job is gone, and nobody else has it: the store was emptied or replaced below us.
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
        /// The store.
        store: String,
        /// The job.
        job: JobName,
    },
    /// This machine cannot take the image.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The job could not be resumed.
    #[error("{0}")]
    Restore(String),
    /// The GPU context is broken: a new process is needed.
    #[error("{0}; this process must be replaced, the job is not affected")]
    Sticky(String),
    /// Signals, threads.
    #[error("{0}")]
    System(std::io::Error),
}

impl EngineError {
    /// Whether the store does not show a history that was seen there.
    pub fn is_away(&self) -> bool {
        match self {
            EngineError::HistoryAway { .. } => true,
            EngineError::Job(JobError::Store(fault)) => fault.kind() == FaultKind::Absent,
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
