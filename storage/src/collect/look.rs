//! The look of a collector before it decides: at the log, at what is there, and at the log again (2 of the protocol).

use super::{CollectError, Collector, Seen};
use crate::collection::{self, ManifestRef, WriterNote};
use crate::fault::{FaultKind, StoreFault};
use crate::head::RecordKind;
use crate::index::PackSet;
use crate::job::{Entry, History, Log, ReaderNote, SkippedCheckpoint};
use crate::names::{CheckpointNumber, Epoch, Nonce, UnixMillis};

/// The objects that were listed, between the looks A and B at the log.
pub(super) struct Listed {
    pub packs: PackSet,
    pub manifests: Vec<String>,
    pub collections: Vec<String>,
    pub notes: Vec<(Nonce, Result<WriterNote, String>)>,
    pub readers: Vec<(Nonce, Option<ReaderNote>)>,
    /// Before the readers' notes were read.
    pub at: UnixMillis,
}

impl Listed {
    /// Whether a record that cannot be read is that of a collection, as far as what was written before it tells: a checkpoint's
    /// would have a manifest.
    pub(super) fn shows_a_collection(&self, entry: &Entry) -> bool {
        let of_it = |name: &String| collection::number_in(name) == Some(entry.number);
        entry.damage.is_some()
            && !self.manifests.iter().any(of_it)
            && self.collections.iter().any(of_it)
    }
}

impl Collector<'_> {
    /// Whether a collection that cannot be read is one to go past: it is there and damaged, or a later one replaced it, whose
    /// record, `lost`, is damaged.
    pub(super) async fn go_past(
        &mut self,
        number: u64,
        reason: &str,
        seen: &History,
    ) -> Result<(), CollectError> {
        let job = self.job;
        let damaged = |detail: String| CollectError::Damaged { reason: detail };
        let record = job.record(number).await?.map_err(damaged)?;
        let RecordKind::Collected {
            collection, digest, ..
        } = &record.kind
        else {
            return Err(damaged(reason.to_owned()));
        };
        let key = job.key(&format!("collections/{collection}"));
        match job
            .backend()
            .read(&key, collection::KIND.max_object())
            .await
        {
            Ok(bytes) => {
                if collection::is_newer(job.crypt(), number, *digest, &bytes) {
                    return Err(damaged(format!(
                        "{key} was written by a newer phos-ft: collect with that one"
                    )));
                }
            }
            Err(fault) if fault.kind() == FaultKind::NotFound => {
                let later = |name: &str| {
                    collection::number_in(name).is_some_and(|n| n > number && Some(n) == seen.lost)
                };
                let listed = job.backend().list(&job.key("collections")).await?;
                if listed.iter().any(|object| later(&object.name)) {
                    return Ok(());
                }
                // By a listing of a moment ago: a newer one has replaced it.
                if job.grew_beyond(seen.log.tail).await? {
                    return Err(CollectError::Busy);
                }
                return Err(damaged(format!(
                    "{key} is missing: if the store is a copy, copy it to the end, else bring it back from a copy"
                )));
            }
            Err(fault) if fault.kind() == FaultKind::Foreign => {}
            Err(fault) => return Err(fault.into()),
        }
        self.say_gone_past(number, reason);
        Ok(())
    }

    /// Whether what could not be read may have been collected meanwhile: by a collection that came after this look, or by one before it
    /// that was still sweeping, whose manifest a listing had shown. A writer that began in between notes what is swept, and notices.
    pub(super) async fn went_meanwhile(
        &self,
        seen: &Seen,
        blocked: &[SkippedCheckpoint],
    ) -> Result<bool, StoreFault> {
        if self.job.grew_beyond(seen.now.log.tail).await? {
            return Ok(true);
        }
        let listed = self.job.backend().list(&self.job.key("manifests")).await?;
        let is_blocked = |name: &String| {
            let number = collection::number_in(name);
            (blocked.iter()).any(|skipped| number == Some(skipped.number.0))
        };
        let went = |name: &String| !listed.iter().any(|object| object.name == *name);
        Ok((seen.listed.manifests.iter()).any(|name| is_blocked(name) && went(name)))
    }

    /// Names a collection that is decided once more, once.
    pub(super) fn say_gone_past(&mut self, number: u64, reason: &str) {
        let said = &mut self.done.gone_past;
        if !said.iter().any(|past| past.number.0 == number) {
            let job = self.job.name();
            tracing::warn!(%job, number, reason, "a collection is damaged, and is decided once more");
            said.push(SkippedCheckpoint {
                number: CheckpointNumber(number),
                reason: reason.to_owned(),
            });
        }
    }

    pub(super) async fn check_epoch(&mut self, log: Log) -> Result<Epoch, CollectError> {
        let Some(found) = log.epoch else {
            let reason = format!(
                "the newest record, {}, cannot be read, so it is not known who has the job: its next start or checkpoint goes past it",
                log.tail
            );
            return Err(CollectError::Damaged { reason });
        };
        match self.epoch {
            Some(epoch) if epoch != found => Err(self.job.fenced(epoch, log.tail).await.into()),
            _ => {
                self.epoch = Some(found);
                Ok(found)
            }
        }
    }

    /// Packs first, then notes: a pack that was listed had its writer's note before it, so a note that is not there any
    /// more was taken back, and what its writer committed is seen in what is read of the log afterwards.
    pub(super) async fn list(&self) -> Result<Listed, StoreFault> {
        let backend = self.job.backend();
        let (manifests, collections) = (self.job.key("manifests"), self.job.key("collections"));
        let (packs, manifests, collections) = futures::try_join!(
            self.job.packs(),
            backend.list(&manifests),
            backend.list(&collections)
        )?;
        let names = |objects: Vec<crate::backend::Listed>| {
            objects.into_iter().map(|object| object.name).collect()
        };
        let notes = self.job.notes().await?;
        // What is renewed from here on is no older than this, however long the attempt takes.
        let at = self.clock.now();
        Ok(Listed {
            packs,
            manifests: names(manifests),
            collections: names(collections),
            notes,
            readers: self.job.readers().await?,
            at,
        })
    }

    /// The history with what was written since; `None` if the protocol asks for a new beginning.
    pub(super) async fn later(&self, before: &History) -> Result<Option<History>, CollectError> {
        let mut now = before.clone();
        for (number, record) in self.job.records_after(before.log.tail).await? {
            let Ok(record) = record else {
                return Ok(None);
            };
            now.log = Log {
                tail: number,
                epoch: Some(record.epoch),
            };
            match record.kind {
                RecordKind::Checkpoint {
                    manifest,
                    digest,
                    length,
                    ..
                } => now.entries.push(Entry {
                    number,
                    created: record.created,
                    branch: None,
                    manifest: Some(ManifestRef {
                        name: manifest,
                        digest,
                        length,
                    }),
                    damage: None,
                }),
                RecordKind::Completed { .. } => now.completed = Some(number),
                RecordKind::TakenOver { .. } | RecordKind::Collected { .. } => return Ok(None),
            }
        }
        Ok(Some(now))
    }
}
