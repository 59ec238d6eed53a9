//! Why an operation on a job's history fails.

use crate::envelope::EnvelopeError;
use crate::fault::{FaultKind, StoreFault};
use crate::names::{CheckpointNumber, Epoch, JobName, PackId};
use crate::pack::PackError;

/// Why an operation on a job's history failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A request to the store failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// Someone else took the job over.
    #[error(
        "job {job} was taken over{by}: epoch {epoch} is no longer the newest, so this phos-ft stops writing to its \
         history"
    )]
    Fenced {
        /// The job that was taken over.
        job: JobName,
        /// The epoch of this handle.
        epoch: Epoch,
        /// Who took it over, if that is known: " by HOLDER".
        by: String,
    },
    /// There is no such checkpoint.
    #[error("job {job} has no checkpoint {number}: `phos-ft list` shows those there are")]
    NoCheckpoint {
        /// The name of the job.
        job: JobName,
        /// The number that was asked for.
        number: CheckpointNumber,
    },
    /// Retention removed the checkpoint.
    #[error(
        "checkpoint {number} of job {job} was removed by retention: `phos-ft list` shows those there are"
    )]
    Removed {
        /// The name of the job.
        job: JobName,
        /// The number that was asked for.
        number: CheckpointNumber,
    },
    /// A checkpoint's record or manifest is damaged or of a newer format.
    #[error("checkpoint {number} of job {job} cannot be used: {reason}")]
    Unusable {
        /// The name of the job.
        job: JobName,
        /// The number of the checkpoint.
        number: CheckpointNumber,
        /// Why its record or manifest cannot be used.
        reason: String,
    },
    /// The index of a pack cannot be used.
    #[error("pack {pack}: {source}")]
    Pack {
        /// The id of the pack.
        pack: PackId,
        /// What is wrong with the pack.
        source: PackError,
    },
    /// The store drops packs: nothing can be restored from it.
    #[error(
        "{address} drops what is written to it, so nothing can be restored from it: use another store"
    )]
    Discarded {
        /// Address of the store.
        address: String,
    },
    /// A record could not be written down.
    #[error("cannot encode a record: {0}")]
    Encode(#[from] EnvelopeError),
}

impl JobError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Store(fault) => fault.is_permanent(),
            _ => true,
        }
    }

    /// Whether the store does not show the history that is [expected](crate::Job::expect).
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Store(fault) if fault.kind() == FaultKind::Absent)
    }
}
