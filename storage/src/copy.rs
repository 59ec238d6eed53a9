//! Copying a checkpoint from one store to another: from the tier on this machine to the one that survives it.
//!
//! # Consistency
//!
//! The copy is a checkpoint like any other: written by a [`CheckpointWriter`] of the epoch that holds the job there, so
//! fenced, deduplicated and visible only when all of it is stored. Each chunk is checked by its name when it is read and
//! when it is put. It keeps the time at which the original became visible; that is how the two are known to be one.
//!
//! # Crash consistency and cancellation
//!
//! As for a writer: nothing is visible before the commit, and the packs of a copy that was cut off are of use to the
//! next one.
//!
//! # Memory
//!
//! The memory of one reader and one writer, and `2 * encoders` chunks between them.

use async_recursion::async_recursion as boxed;
use futures::TryStreamExt;

use crate::collect::GiveWay;
use crate::job::{Job, JobError};
use crate::manifest::Manifest;
use crate::names::{Epoch, UnixMillis};
use crate::reader::ReadError;
use crate::writer::{Commit, CommitError, PutError};

/// Why a checkpoint was not copied to another store.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// An operation on the job's history failed, at the source or at the target.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A chunk of the checkpoint cannot be read at the source.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A chunk cannot be written to the target.
    #[error(transparent)]
    Put(#[from] PutError),
    /// The copy did not become visible.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl CopyError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Job(error) => error.is_permanent(),
            Self::Read(error) => error.is_permanent(),
            Self::Put(error) => error.is_permanent(),
            Self::Commit(error) => error.is_permanent(),
        }
    }

    /// Whether someone else has the job there.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        match self {
            Self::Job(error) => matches!(error, JobError::Fenced { .. }),
            Self::Commit(error) => error.is_fenced(),
            Self::Read(_) | Self::Put(_) => false,
        }
    }
}

impl Job {
    /// Makes a checkpoint of `source` visible here, in our epoch. Chunks that are here already are neither read nor sent.
    /// `way` is asked before each chunk. The caller [holds](Job::hold) the checkpoint meanwhile.
    #[boxed]
    pub async fn copy_from(
        &self,
        epoch: Epoch,
        source: &Job,
        manifest: &Manifest,
        way: &dyn GiveWay,
        now: UnixMillis,
    ) -> Result<Commit, CopyError> {
        let reader = source.reader(manifest)?;
        let writer = self.begin(epoch).await?;
        let missing: Vec<u32> = (0_u32..)
            .zip(&manifest.chunks)
            .filter(|(_, chunk)| !writer.contains(&chunk.digest))
            .map(|(number, _)| number)
            .collect();
        let puts = self.options().encoders.max(1) * 2;
        let copied = reader
            .fetch(missing)
            .map_err(CopyError::from)
            .try_for_each_concurrent(puts, |(number, bytes)| {
                let (writer, chunk) = (&writer, manifest.chunks.get(number as usize));
                async move {
                    way.turn().await;
                    if let Some(chunk) = chunk {
                        writer.put(chunk.digest, bytes).await?;
                    }
                    Ok(())
                }
            })
            .await;
        if let Err(error) = copied {
            writer.abort(now).await;
            return Err(error);
        }
        Ok(writer.commit(manifest.named(), manifest.created).await?)
    }
}
