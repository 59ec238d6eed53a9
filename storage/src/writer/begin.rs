//! Beginning a checkpoint (1 of the protocol in `collect`): the note first, then the end of the log, then the first pack.

use async_recursion::async_recursion as boxed;

use super::CheckpointWriter;
use super::leftovers::Leftovers;
use crate::job::{Job, JobError, Log, Note};
use crate::medium::Medium;
use crate::names::Epoch;

impl Job {
    /// Begins a checkpoint. Nothing of it is visible before [`CheckpointWriter::commit`].
    ///
    /// What it may reference is noted in the store first, so that no collection takes it away meanwhile; see the protocol
    /// in `collect`.
    #[boxed]
    pub async fn begin(&self, epoch: Epoch) -> Result<CheckpointWriter, JobError> {
        // Nothing is written into a directory on which its file system is not mounted.
        self.check_expected_with(0).await?;
        let nonce = self.nonce();
        let mut note: Option<Note> = None;
        loop {
            let index = self.load_index().await?;
            let mut left = Leftovers::default();
            if self.may_have_leftovers() && self.backend().medium() != Medium::Discard {
                left = self.leftovers(epoch, index.horizon()).await;
            }
            // From the first attempt on: one that fails may have been done.
            note.get_or_insert_with(|| Note::of_writer(self.clone(), nonce));
            self.write_note(nonce, epoch, &index, &left.writers).await?;
            let Some(current) = self.catch_up(&index).await? else {
                self.set_index(None);
                continue;
            };
            // Told now, not after the job was held and all of its packs went up.
            let log = self.remembered_log().await;
            if let Some(Log {
                tail,
                epoch: Some(other),
            }) = log
                && other != epoch
            {
                if let Some(note) = note.take() {
                    note.remove().await;
                }
                return Err(self.fenced(epoch, tail).await);
            }
            let packs = left.entries();
            let swept = self.swept_between(index.horizon(), current.horizon(), &packs);
            if let Some(reason) = swept.await? {
                tracing::debug!(reason, "what an unfinished checkpoint left was collected");
                left = Leftovers::default();
            }
            // A collection that did not see our note saw theirs.
            if !left.writers.is_empty() && !self.notes_stand(&left.writers).await? {
                left = Leftovers::default();
            }
            // All of it was of one store.
            self.check_expected_with(current.horizon()).await?;
            if let Some(note) = note {
                return Ok(CheckpointWriter::new(
                    self.clone(),
                    epoch,
                    note,
                    nonce,
                    current,
                    left,
                ));
            }
        }
    }
}
