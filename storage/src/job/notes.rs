//! Notes of writers: what a writer says of itself in the store while it writes (see the protocol in `collect`).
//!
//! # Crash consistency
//!
//! A note of a process that died stands until a collection of a later epoch takes it back.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use futures::{StreamExt, TryStreamExt, stream};

use super::{Job, JobError};
use crate::collection::{self, NOTE_KIND, WriterNote};
use crate::fault::{FaultKind, StoreFault};
use crate::head::READS;
use crate::index::Index;
use crate::names::{Epoch, Nonce};

/// A writer's or reader's note in the store. Whatever becomes of them, the note is taken back in the end: by
/// [`Self::remove`], else by the next collection of this process, else, when the process is gone, by a collection of a
/// later epoch (a writer's) or an hour later (a reader's).
pub(crate) struct Note {
    job: Job,
    key: String,
    /// Whose packs may be of use to the next one, if it is a writer's.
    writer: Option<Nonce>,
    stands: bool,
}

/// A note that nobody stands for any more.
pub(super) struct Ended {
    key: String,
    writer: Option<Nonce>,
}

impl Note {
    /// The note of a reader, at `key`.
    pub(crate) const fn new(job: Job, key: String) -> Self {
        Self {
            job,
            key,
            writer: None,
            stands: true,
        }
    }

    /// The note of a writer.
    pub(crate) fn of_writer(job: Job, writer: Nonce) -> Self {
        Self {
            key: job.note_key(&writer),
            writer: Some(writer),
            job,
            stands: true,
        }
    }

    /// Takes the note back; on a failure it is left to collection.
    pub(crate) async fn remove(mut self) {
        if self.job.backend().delete_once(&self.key).await.is_ok() {
            self.stands = false;
        }
    }

    /// Gives the note up without deleting it: it is not there.
    pub(crate) fn forget(mut self) {
        self.stands = false;
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.stands {
            if self.writer.is_some() {
                (self.job.inner.look_for_leftovers).store(true, Ordering::Relaxed);
            }
            self.job.lock_ended().push(Ended {
                key: std::mem::take(&mut self.key),
                writer: self.writer,
            });
        }
    }
}

impl Job {
    pub(crate) fn note_key(&self, writer: &Nonce) -> String {
        self.key(&format!("writers/{writer}"))
    }

    fn lock_ended(&self) -> std::sync::MutexGuard<'_, Vec<Ended>> {
        self.inner
            .ended
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) async fn write_note(
        &self,
        nonce: Nonce,
        epoch: Epoch,
        index: &Index,
        adopts: &[Nonce],
    ) -> Result<(), JobError> {
        let note = WriterNote {
            epoch,
            seen: index.horizon(),
            references: index.references(),
            keeps_packs: true,
            adopts: adopts.to_vec(),
        };
        let bytes = note.encode(self.crypt(), &nonce)?;
        Ok(self.backend().write(&self.note_key(&nonce), bytes).await?)
    }

    /// Writers of this process that ended without a commit.
    pub(crate) fn ended_writers(&self) -> Vec<Nonce> {
        (self.lock_ended().iter())
            .filter_map(|ended| ended.writer)
            .collect()
    }

    /// A writer's note was taken back.
    pub(crate) fn forget_ended(&self, writer: &Nonce) {
        self.lock_ended()
            .retain(|ended| ended.writer != Some(*writer));
    }

    /// What unfinished checkpoints left is part of a visible one now.
    pub(crate) fn leftovers_are_used(&self) {
        (self.inner.look_for_leftovers).store(false, Ordering::Relaxed);
    }

    /// Says, with a note, that a collector writes packs of its own.
    pub(crate) async fn note_collector(
        &self,
        nonce: Nonce,
        epoch: Epoch,
        seen: u64,
    ) -> Result<Note, JobError> {
        let note = Note::of_writer(self.clone(), nonce);
        self.write_note(nonce, epoch, &Index::at(seen), &[]).await?;
        Ok(note)
    }

    /// Whether the notes of all these writers stand.
    pub(crate) async fn notes_stand(&self, writers: &[Nonce]) -> Result<bool, StoreFault> {
        let listed = self.backend().list(&self.key("writers")).await?;
        let standing: HashSet<Nonce> = (listed.iter())
            .filter_map(|object| collection::parse_note_name(&object.name))
            .collect();
        Ok(writers.iter().all(|writer| standing.contains(writer)))
    }

    /// The notes of all writers, by their names. Those that end meanwhile are left out; `Err` for one that cannot be
    /// read.
    pub(crate) async fn notes(
        &self,
    ) -> Result<Vec<(Nonce, Result<WriterNote, String>)>, StoreFault> {
        let listed = self.backend().list(&self.key("writers")).await?;
        let nonces: Vec<Nonce> = listed
            .iter()
            .filter_map(|object| collection::parse_note_name(&object.name))
            .collect();
        let reads = stream::iter(nonces).map(|nonce| async move {
            let key = self.note_key(&nonce);
            match self.backend().read(&key, NOTE_KIND.max_object()).await {
                Ok(bytes) => {
                    let note = WriterNote::decode(self.crypt(), &nonce, &bytes);
                    Ok(Some((nonce, note.map_err(|error| error.to_string()))))
                }
                Err(fault) if fault.kind() == FaultKind::NotFound => Ok(None),
                Err(fault) if fault.kind() == FaultKind::Foreign => {
                    Ok(Some((nonce, Err(fault.to_string()))))
                }
                Err(fault) => Err(fault),
            }
        });
        let found: Vec<Option<_>> = reads.buffered(READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Takes back the notes of writers and readers of this process that ended without doing so.
    pub(crate) async fn remove_notes_of_ended(&self) -> Result<(), StoreFault> {
        let mut ended = std::mem::take(&mut *self.lock_ended());
        while let Some(last) = ended.last() {
            if let Err(fault) = self.backend().delete(&last.key).await {
                self.lock_ended().append(&mut ended);
                return Err(fault);
            }
            ended.pop();
        }
        Ok(())
    }

    /// Whether an unfinished checkpoint may have left something.
    pub(crate) fn may_have_leftovers(&self) -> bool {
        (self.inner.look_for_leftovers).load(Ordering::Relaxed)
    }
}
