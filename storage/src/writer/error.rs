//! Why a chunk is not taken, and why a checkpoint does not become visible.

use crate::fault::{FaultKind, StoreFault};
use crate::job::JobError;
use crate::manifest::ManifestError;
use crate::names::{Epoch, JobName};
use crate::{Digest, MAX_CHUNK_SIZE};

/// Why a chunk was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PutError {
    /// The bytes are not those that the name was made of.
    #[error(
        "the bytes put as chunk {expected} have digest {found}: they changed since they were named"
    )]
    DigestMismatch {
        /// The name that the caller gave.
        expected: Digest,
        /// The digest of the bytes that the caller gave.
        found: Digest,
    },
    /// The chunk is empty or too large.
    #[error("chunk {digest} has {length} bytes: 1 to {MAX_CHUNK_SIZE} can be stored")]
    Size {
        /// The name of the chunk.
        digest: Digest,
        /// The length of the chunk in bytes.
        length: usize,
    },
    /// An upload of this writer failed before; the checkpoint cannot be completed.
    #[error("a pack of this checkpoint could not be stored: {0}")]
    Upload(StoreFault),
    /// The writer was committed or aborted before.
    #[error("this checkpoint was committed or aborted already")]
    Closed,
    /// The chunk could not be encoded.
    #[error("chunk {digest} could not be encoded: {detail}")]
    Encode {
        /// The name of the chunk.
        digest: Digest,
        /// Why encoding failed.
        detail: String,
    },
}

impl PutError {
    /// Whether trying again, with nothing changed, cannot help. After a [`Self::DigestMismatch`] the chunk must be read again or
    /// the checkpoint dropped: the same bytes stay wrong.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Upload(fault) => fault.is_permanent(),
            _ => true,
        }
    }
}

/// Why a checkpoint did not become visible.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Someone else took the job over.
    #[error(
        "checkpoint not committed: job {job} was taken over{by}, epoch {epoch} is no longer the newest; this phos-ft \
         stops writing to its history"
    )]
    Fenced {
        /// The job that was taken over.
        job: JobName,
        /// The epoch of the writer.
        epoch: Epoch,
        /// Who took it over, if that is known: " by HOLDER".
        by: String,
    },
    /// A pack could not be stored.
    #[error("checkpoint not committed: a pack could not be stored: {0}")]
    Upload(StoreFault),
    /// The manifest could not be made of the body.
    #[error("checkpoint not committed: {0}")]
    Manifest(#[from] ManifestError),
    /// A pack that an earlier checkpoint stored is gone. The next checkpoint stores its chunks again.
    #[error(
        "checkpoint not committed: {reason}; the next checkpoint will store what it held again"
    )]
    PackLost {
        /// Which pack is lost, and what is wrong with it.
        reason: String,
    },
    /// A request failed before the checkpoint could have become visible.
    #[error("checkpoint not committed: {0}")]
    Store(#[from] StoreFault),
    /// The creation of the record was not answered: the checkpoint may be visible or not. [`Job::state`] tells.
    #[error("it is not known whether the checkpoint was committed: {0}")]
    Unknown(StoreFault),
    /// The writer was committed or aborted before.
    #[error("this checkpoint was committed or aborted already")]
    Closed,
}

impl CommitError {
    /// Whether another checkpoint would fail in the same way, with nothing changed.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Upload(fault) | Self::Store(fault) | Self::Unknown(fault) => fault.is_permanent(),
            Self::PackLost { .. } => false,
            Self::Fenced { .. } | Self::Manifest(_) | Self::Closed => true,
        }
    }

    /// Whether the job was taken over, so that this process must stop writing.
    #[must_use]
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }

    /// Whether the store does not show the history that is [expected](crate::Job::expect): what was written belongs to no checkpoint that can be
    /// resumed.
    #[must_use]
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Store(fault) | Self::Unknown(fault) if fault.kind() == FaultKind::Absent)
    }
}

impl From<JobError> for CommitError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Store(fault) => Self::Store(fault),
            JobError::Fenced { job, epoch, by } => Self::Fenced { job, epoch, by },
            JobError::Encode(error) => Self::Manifest(error.into()),
            other => Self::Manifest(ManifestError::Inconsistent {
                detail: other.to_string(),
            }),
        }
    }
}
