//! The packs of a job: which there are, what one says that it holds, and the index of chunks that need not be stored again.

use std::sync::{Arc, PoisonError};

use async_recursion::async_recursion as boxed;
use futures::{StreamExt, TryStreamExt, stream};

use super::history::Walk;
use super::log::Log;
use super::{Job, JobError};
use crate::backend::Listed;
use crate::cache::{PackCache, Since};
use crate::collection::ManifestRef;
use crate::fault::StoreFault;
use crate::head::{READS, RecordKind};
use crate::index::{Index, PackSet};
use crate::manifest::{ChunkEntry, Manifest, PackEntry};
use crate::medium::Medium;
use crate::names::PackId;
use crate::pack::{self, PackError, PackIndex};

impl Job {
    pub(crate) async fn packs(&self) -> Result<PackSet, StoreFault> {
        let (packs, quarantine) = (self.key("packs"), self.key("quarantine"));
        let (present, quarantined) = futures::try_join!(
            self.backend().list(&packs),
            self.backend().list(&quarantine)
        )?;
        let quarantined = self.believed(quarantined).await?;
        let id = |name: &str| PackId::parse(name);
        Ok(PackSet {
            present: present
                .iter()
                .filter_map(|object| Some((id(&object.name)?, object.size)))
                .collect(),
            manifests: quarantined
                .iter()
                .filter(|name| id(name).is_none())
                .cloned()
                .collect(),
            quarantined: quarantined.iter().filter_map(|name| id(name)).collect(),
        })
    }

    /// The names of the quarantine notes that count. Without a key, every note that stands there counts. With a key, a note must
    /// be the job's: a user that may write to the store but has no key cannot make a restore pass over a checkpoint that is there
    /// and whole.
    async fn believed(&self, notes: Vec<Listed>) -> Result<Vec<String>, StoreFault> {
        let names = notes.into_iter().map(|object| object.name);
        if self.crypt().keys().is_none() {
            return Ok(names.collect());
        }
        let looks = stream::iter(names).map(|name| async move {
            let counts = self.is_quarantined(&name).await?;
            Ok::<_, StoreFault>(counts.then_some(name))
        });
        let found: Vec<Option<String>> = looks.buffered(READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    pub(crate) fn pack_key(&self, pack: &PackId) -> String {
        self.key(&format!("packs/{pack}"))
    }

    /// In each cache, these packs and chunks are of a checkpoint that is read or written now. Takes a microsecond for each.
    pub(crate) fn used_in_caches(&self, packs: &[PackEntry], chunks: &[ChunkEntry]) -> Vec<Since> {
        let caches = self.options().caches.iter();
        let keys = || packs.iter().map(|pack| self.pack_key(&pack.id));
        let used = |cache: &Arc<PackCache>| {
            let since = cache.used(keys());
            cache.chunks_used(chunks.iter().map(|chunk| chunk.digest));
            since
        };
        caches.map(used).collect()
    }

    /// Reads the index of a pack: the chunks that it says it holds.
    #[boxed]
    pub async fn pack_index(&self, id: &PackId) -> Result<PackIndex, JobError> {
        let missing = || JobError::Pack {
            pack: *id,
            source: PackError::Damaged {
                detail: "it is missing".to_owned(),
            },
        };
        let length = self.packs().await?.present.get(id).copied();
        self.read_pack_index(id, length.ok_or_else(missing)?).await
    }

    /// Reads the index of a pack whose length is known.
    pub(crate) async fn read_pack_index(
        &self,
        id: &PackId,
        length: u64,
    ) -> Result<PackIndex, JobError> {
        let failed = |source| JobError::Pack { pack: *id, source };
        let damaged = |detail: &str| {
            failed(PackError::Damaged {
                detail: detail.to_owned(),
            })
        };
        let key = self.pack_key(id);
        if length < pack::HEADER + pack::TRAILER {
            return Err(damaged("it is shorter than its header and trailer"));
        }
        let header = self.backend().read_range(&key, 0..pack::HEADER).await?;
        if pack::read_header(self.crypt(), &header).map_err(failed)? != *id {
            return Err(damaged("it is another pack under this name"));
        }
        let trailer = self
            .backend()
            .read_range(&key, length - pack::TRAILER..length)
            .await?;
        let offset = pack::index_offset(self.crypt(), &trailer, length).map_err(failed)?;
        let index = self.backend().read_range(&key, offset..length).await?;
        pack::read_index(self.crypt(), id, &index, offset).map_err(failed)
    }

    fn index(&self) -> Option<Arc<Index>> {
        self.inner
            .index
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_index(&self, index: Option<Arc<Index>>) {
        *self
            .inner
            .index
            .write()
            .unwrap_or_else(PoisonError::into_inner) = index;
    }

    /// The next checkpoints of this handle do not reference a pack unless it is found again. Nothing is noted.
    pub fn forget_pack(&self, pack: &PackId) {
        if let Some(index) = self.index() {
            self.set_index(Some(Arc::new(index.without(pack))));
        }
    }

    /// Takes a committed manifest into the index.
    pub(crate) fn index_committed(&self, manifest: &Manifest, named: ManifestRef) {
        // Without an index the next checkpoint reads it from the store, this manifest included.
        if let Some(index) = self.index() {
            let number = manifest.number.0;
            let mut newer = index.with_newest(manifest, named, self.options().indexed_checkpoints);
            if index.horizon() + 1 == number {
                newer = newer.advanced(number);
            }
            self.set_index(Some(Arc::new(newer)));
        }
    }

    /// The index, read from the newest checkpoints if it is not known.
    pub(crate) async fn load_index(&self) -> Result<Arc<Index>, JobError> {
        if let Some(index) = self.index() {
            return Ok(index);
        }
        let mut walk = Walk::new(self, 1).await?;
        let mut index = Index::at(walk.tail());
        let packs = match self.backend().medium() {
            Medium::Discard => None,
            Medium::Local | Medium::Remote => Some(self.packs().await?),
        };
        let mut taken = 0;
        while taken < self.options().indexed_checkpoints
            && let Some(step) = walk.next().await?
        {
            // What cannot be read may be a collection, so what is older may be about to go.
            if step.record.is_err() || !step.trusted {
                break;
            }
            let Some(named) = step.manifest else {
                continue;
            };
            if (packs.as_ref()).is_some_and(|packs| packs.manifests.contains(&named.name)) {
                continue;
            }
            if let Ok(manifest) = self.read_manifest(step.number, &named).await? {
                index.push_older(&manifest, named, packs.as_ref());
                taken += 1;
            }
        }
        let index = Arc::new(index);
        self.set_index(Some(index.clone()));
        Ok(index)
    }

    /// The index as of the newest record there is; `None` if it must be read again.
    pub(crate) async fn catch_up(
        &self,
        index: &Arc<Index>,
    ) -> Result<Option<Arc<Index>>, JobError> {
        let records = self.records_after(index.horizon()).await?;
        let Some((tail, newest)) = records.last() else {
            return Ok(Some(index.clone()));
        };
        let now = Log {
            tail: *tail,
            epoch: newest.as_ref().ok().map(|record| record.epoch),
        };
        let mut current = index.as_ref().clone();
        for (_, record) in &records {
            let Ok(record) = record else {
                return Ok(None);
            };
            if matches!(record.kind, RecordKind::Collected { .. }) {
                let Ok(collection) = self.collection_of(record).await? else {
                    return Ok(None);
                };
                let Some(after) = current.collected(&collection) else {
                    return Ok(None);
                };
                current = after;
            }
        }
        let current = Arc::new(current.advanced(now.tail));
        self.set_index(Some(current.clone()));
        let mut log = self.inner.log.lock().await;
        if log.is_none_or(|log| log.tail < now.tail) {
            *log = Some(now);
        }
        Ok(Some(current))
    }
}
