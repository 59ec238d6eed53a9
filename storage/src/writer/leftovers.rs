//! Continues where a writer stopped: the packs that an unfinished checkpoint stored are used by the next one instead of being
//! uploaded again.
//!
//! A pack says of itself which chunks it holds. So of a writer that died, was aborted or failed, every pack that was
//! stored is as good as one of a finished checkpoint, as long as nobody gave it up. What was on its way when it stopped
//! is lost: at most `uploads + 1` packs.
//!
//! # Whose packs
//!
//! The packs of writers whose note still stands and that can no longer commit: of an older epoch, or of this process and ended. A
//! writer never deletes its own packs (its note says so: `keeps_packs`), not even one that was paused and learns hours later that
//! it lost the job: only a collection does, and says so in the log.
//!
//! # Consistency
//!
//! All packs of a writer came after its note, so whatever gave one up stands in the log after the record that the note
//! had seen. If every collection from there to the end of the log can be read and names none of the packs, none was given
//! up; if one cannot be read, nothing is taken. From there on the rule for all writers holds: the adopter's commit
//! compares everything that it names with what was swept since.
//!
//! Notes also keep this from happening. A collection leaves the packs of every writer alone whose note stands, and takes the
//! notes of the dead away; the one after that takes the packs. The adopter writes its own note, which names the writers that it
//! takes from and protects their packs too, and *then* looks whether their notes still stand: if so, a collection that did not
//! see its note saw theirs.
//!
//! # Crash consistency
//!
//! Nothing is moved or renamed. If the adopter dies too, both notes stand, and the next one takes the packs of both.

use std::collections::{HashMap, HashSet};

use futures::{StreamExt, stream};

use crate::Digest;
use crate::codec::Codec;
use crate::fault::StoreFault;
use crate::job::{Job, JobError};
use crate::manifest::PackEntry;
use crate::names::{Epoch, Nonce, PackId};
use crate::pack::Location;

/// Most writers that are taken from at once: each name stands in the adopter's note.
const MAX_WRITERS: usize = 256;
/// Most chunks that are taken, so that memory is bounded whatever lies there: one TiB of GPU memory.
const MAX_CHUNKS: usize = 1 << 20;

/// What unfinished checkpoints left: the packs that can be used again.
#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The writers that left it.
    pub writers: Vec<Nonce>,
    pub chunks: HashMap<Digest, Location>,
    /// The packs, each with its length in bytes.
    pub packs: HashMap<PackId, u64>,
}

impl Leftovers {
    pub(crate) fn entries(&self) -> Vec<PackEntry> {
        let entry = |(&id, &length): (&PackId, &u64)| PackEntry { id, length };
        self.packs.iter().map(entry).collect()
    }
}

impl Job {
    /// What unfinished checkpoints left that may be referenced, as of the record `horizon`. It only saves work: what
    /// cannot be read is left out.
    pub(crate) async fn leftovers(&self, epoch: Epoch, horizon: u64) -> Leftovers {
        match self.find_leftovers(epoch, horizon).await {
            Ok(found) => found,
            Err(fault) => {
                tracing::warn!(%fault, "what an unfinished checkpoint stored cannot be looked at: it is stored again");
                Leftovers::default()
            }
        }
    }

    async fn find_leftovers(&self, epoch: Epoch, horizon: u64) -> Result<Leftovers, StoreFault> {
        let ended: HashSet<Nonce> = self.ended_writers().into_iter().collect();
        let mut notes = self.notes().await?;
        notes.retain(|(nonce, note)| {
            (note.as_ref())
                .is_ok_and(|n| n.keeps_packs && (n.epoch < epoch || ended.contains(nonce)))
        });
        if notes.is_empty() {
            return Ok(Leftovers::default());
        }
        let packs = self.packs().await?;
        let mut found = Leftovers::default();
        let mut wanted = Vec::new();
        for (nonce, note) in notes.into_iter().take(MAX_WRITERS) {
            let Ok(note) = note else { continue };
            let mut made: Vec<PackEntry> = (packs.present.iter())
                .filter(|(id, _)| id.writer == nonce)
                .map(|(&id, &length)| PackEntry { id, length })
                .filter(|entry| packs.check(entry).is_ok())
                .collect();
            if let Some(reason) = self.swept_between(note.seen, horizon, &made).await? {
                tracing::debug!(writer = %nonce, reason, "what it stored is not used");
                continue;
            }
            // Also of one that stored nothing yet: its note is in nobody's way once this checkpoint is committed.
            found.writers.push(nonce);
            made.sort_unstable_by_key(|entry| entry.id);
            wanted.extend(made);
        }
        let reads = stream::iter(wanted).map(|entry| async move {
            (entry, self.read_pack_index(&entry.id, entry.length).await)
        });
        let mut reads = reads.buffered(self.options().fetches.max(1));
        while let Some((entry, index)) = reads.next().await {
            let index = match index {
                Ok(index) => index,
                Err(JobError::Store(fault)) => return Err(fault),
                Err(error) => {
                    tracing::warn!(pack = %entry.id, %error, "a pack of an unfinished checkpoint is not used");
                    continue;
                }
            };
            if found.chunks.len() + index.chunks.len() > MAX_CHUNKS {
                break;
            }
            found.packs.insert(entry.id, entry.length);
            for chunk in index.chunks {
                if chunk.codec == Codec::Zero {
                    continue;
                }
                found.chunks.entry(chunk.digest).or_insert(Location {
                    pack: Some(entry.id),
                    offset: chunk.offset,
                    stored: chunk.stored,
                    raw: chunk.raw,
                    codec: chunk.codec,
                });
            }
        }
        Ok(found)
    }

    /// After the commit of a checkpoint that took what these writers left: what of it was not needed is garbage.
    pub(crate) async fn forget_leftovers(&self, writers: &[Nonce]) {
        for nonce in writers {
            // What stays is found by the next collection.
            if self
                .backend()
                .delete_once(&self.note_key(nonce))
                .await
                .is_ok()
            {
                self.forget_ended(nonce);
            }
        }
    }
}
