//! Making a collection part of the history, and deleting what it gave up.

use futures::{StreamExt, TryStreamExt, stream};

use super::mark::Marked;
use super::{CollectError, Collector, Seen};
use crate::Digest;
use crate::collection::{self, Collection};
use crate::fault::StoreFault;
use crate::head::RecordKind;
use crate::job::{Append, AppendError, Draft, Log, LogView};
use crate::names::{Epoch, PackId};

/// Objects deleted at once.
const DELETES: usize = 8;

/// The record of a collection. It was decided for one place in the log, and stands there or nowhere.
struct Decided {
    seen: Log,
    draft: Option<Draft>,
}

impl Append for Decided {
    type Error = CollectError;

    async fn next(&mut self, now: Log) -> Result<Draft, CollectError> {
        (self.draft.take())
            .filter(|_| now == self.seen)
            .ok_or(CollectError::Busy)
    }
}

impl Collector<'_> {
    /// Makes the collection part of the history. Whether it is.
    pub(super) async fn append(
        &self,
        collection: &Collection,
        epoch: Epoch,
        removed: u64,
    ) -> Result<bool, CollectError> {
        let job = self.job;
        let bytes = collection.encode(job.crypt())?;
        let digest = Digest::of(&bytes);
        let name = collection::name(collection.number, &digest);
        let length = bytes.len() as u64;
        job.backend()
            .write(&job.key(&format!("collections/{name}")), bytes)
            .await?;
        let seen = Log {
            tail: collection.number - 1,
            epoch: Some(epoch),
        };
        let mut record = Decided {
            seen,
            draft: Some(Draft {
                epoch,
                created: self.clock.now(),
                nonce: job.nonce(),
                kind: RecordKind::Collected {
                    collection: name,
                    digest,
                    length,
                    removed,
                    swept: (collection.packs.len() + collection.manifests.len()) as u64,
                },
            }),
        };
        match job.append(LogView::Seen(seen), &mut record).await {
            Ok(_) => Ok(true),
            Err(AppendError::NotTried(CollectError::Busy)) => Ok(false),
            Err(error) => Err(error.into_cause()),
        }
    }

    pub(super) async fn delete_swept(&self, collection: &Collection) -> Result<(), StoreFault> {
        let packs = (collection.packs.iter()).map(|pack| self.job.pack_key(pack));
        for (key, cache) in packs.clone().flat_map(|key| {
            let caches = self.job.options().caches.iter();
            caches.map(move |cache| (key.clone(), cache))
        }) {
            cache.remove(&key);
        }
        let manifests =
            (collection.manifests.iter()).map(|name| self.job.key(&format!("manifests/{name}")));
        self.delete_all(packs.chain(manifests).collect()).await
    }

    async fn delete_all(&self, keys: Vec<String>) -> Result<(), StoreFault> {
        let backend = self.job.backend();
        stream::iter(keys)
            .map(|key| async move {
                self.way.turn().await;
                backend.delete(&key).await
            })
            .buffer_unordered(DELETES)
            .try_collect()
            .await
    }

    /// What needs no decision: notes of the dead, collections that a newer one replaced, quarantine notes of packs that
    /// are gone, uploads that were never finished.
    pub(super) async fn clean(&mut self, seen: &Seen, marked: &Marked) -> Result<(), CollectError> {
        let Seen {
            listed, now, epoch, ..
        } = seen;
        let job = self.job;
        let mut keys: Vec<String> = marked.dead.clone();
        // A writer compares with all collections since its note; who began later reads the newest one. Those after the
        // newest were never decided, as their numbers went to other records.
        let newest = now.collection.as_ref();
        let seen = marked.oldest_seen.unwrap_or(now.log.tail);
        let old = listed.collections.iter().filter(|name| {
            let Some(number) = collection::number_in(name) else {
                return false;
            };
            let undecided = newest.is_none_or(|(newest, _)| number > *newest);
            // That of a record which cannot be read may have been decided.
            if now.lost.is_some_and(|lost| number <= lost) && undecided {
                return false;
            }
            newest.is_none_or(|(_, newest)| *name != newest)
                && number <= now.log.tail
                && (undecided || number <= seen)
        });
        keys.extend(old.map(|name| job.key(&format!("collections/{name}"))));
        let gone = listed.packs.quarantined.iter().filter(|pack| {
            !listed.packs.present.contains_key(pack)
                && !marked.packs.contains(pack)
                && !marked.protects(pack)
        });
        keys.extend(gone.map(|pack| job.key(&format!("quarantine/{pack}"))));
        let gone = (listed.packs.manifests.iter())
            .filter(|name| !listed.manifests.contains(name) && !marked.manifests.contains(*name));
        keys.extend(gone.map(|name| job.key(&format!("quarantine/{name}"))));
        self.done.other_objects += keys.len() as u64;
        self.delete_all(keys).await?;
        // Who began after the notes were listed writes under a later number, or under a note of its own.
        for below in ["manifests", "collections"] {
            if !marked.alive.is_empty() {
                break;
            }
            for upload in job.backend().unfinished(&job.key(below)).await? {
                let number = collection::number_in(&upload.name);
                let mut dead = number.is_some_and(|number| number <= now.log.tail);
                if dead && let Some(writer) = collection::writer_in(&upload.name) {
                    dead = !job.note_stands(&writer, *epoch).await?;
                }
                if dead {
                    job.backend().end_unfinished(&upload).await?;
                    self.done.unfinished_uploads += 1;
                }
            }
        }
        let unfinished = job.backend().unfinished(&job.key("packs")).await?;
        for upload in unfinished {
            let dead = PackId::parse(&upload.name)
                .is_some_and(|pack| !marked.alive.contains(&pack.writer));
            // One whose writer began after the notes were listed has no note in the list: it is looked at once more.
            if dead && let Some(pack) = PackId::parse(&upload.name) {
                let note = job.note_stands(&pack.writer, *epoch).await?;
                if !note {
                    job.backend().end_unfinished(&upload).await?;
                    self.done.unfinished_uploads += 1;
                }
            }
        }
        Ok(())
    }
}
