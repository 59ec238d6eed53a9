//! Marks what must stay: what visible checkpoints name, and what living writers and readers reference.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, PoisonError};

use super::look::Listed;
use super::{CollectError, Collector, Seen};
use crate::collection::{self, ManifestRef, WriterNote};
use crate::fault::{FaultKind, StoreFault};
use crate::index::PackSet;
use crate::job::{Job, SkippedCheckpoint, Usage};
use crate::names::{CheckpointNumber, Epoch, Nonce, PackId};

/// What must stay: the packs and manifests that something visible or alive needs.
#[derive(Default)]
pub(super) struct Marked {
    /// What each visible checkpoint names, if it can be read.
    pub usages: HashMap<u64, Arc<Usage>>,
    /// All packs and manifests that visible checkpoints name.
    pub packs: HashSet<PackId>,
    pub manifests: HashSet<String>,
    /// Checkpoints of which it is not known what they name.
    pub damaged: HashMap<u64, String>,
    /// Checkpoints that name packs that are not whole.
    pub broken: HashMap<u64, String>,
    /// Writers whose notes stand, dead or alive.
    pub noted: HashSet<Nonce>,
    /// Living writers, and what they reference.
    pub alive: HashSet<Nonce>,
    pub referenced: HashSet<String>,
    pub referenced_packs: HashSet<PackId>,
    pub unknown_references: Vec<SkippedCheckpoint>,
    pub oldest_seen: Option<u64>,
    /// Writers whose packs a living one took over.
    pub adopted: HashSet<Nonce>,
    /// The number of readers that are at work.
    pub readers: u64,
    /// Keys of notes of writers that can never commit again, and of readers that did not say for long that they are
    /// still at it.
    pub dead: Vec<String>,
}

impl Marked {
    pub(super) fn is_bad(&self, number: u64) -> bool {
        self.damaged.contains_key(&number) || self.broken.contains_key(&number)
    }

    /// Whether a writer or reader may need a pack. Packs of a dead writer whose note still stands may be about to be
    /// gone on with (see `writer::leftovers`): the note goes first, with this collection, and the packs with the next one.
    pub(super) fn protects(&self, pack: &PackId) -> bool {
        self.noted.contains(&pack.writer)
            || self.adopted.contains(&pack.writer)
            || self.referenced_packs.contains(pack)
    }

    pub(super) fn protected(&self, packs: &PackSet) -> u64 {
        (packs.present.keys())
            .filter(|pack| !self.packs.contains(pack) && self.protects(pack))
            .count() as u64
    }
}

impl Collector<'_> {
    pub(super) async fn mark(&self, seen: &Seen) -> Result<Marked, CollectError> {
        let mut marked = Marked::default();
        self.mark_checkpoints(seen, &mut marked).await?;
        self.mark_writers(seen, &mut marked).await?;
        self.mark_readers(&seen.listed, &mut marked).await?;
        self.job.trim_usages(&marked);
        Ok(marked)
    }

    /// Marks what the manifests of visible checkpoints name.
    async fn mark_checkpoints(&self, seen: &Seen, marked: &mut Marked) -> Result<(), CollectError> {
        for entry in &seen.now.entries {
            let usage = match (&entry.manifest, &entry.damage) {
                (Some(named), None) => self.job.usage(entry.number, named).await?,
                (_, Some(reason)) => Err(reason.clone()),
                (None, None) => Err("its manifest is not known".into()),
            };
            if let Some(named) = &entry.manifest {
                marked.manifests.insert(named.name.clone());
            }
            match usage {
                Ok(usage) => {
                    marked
                        .packs
                        .extend(usage.packs.iter().map(|(pack, _)| pack.id));
                    // What was committed after the listing is not in it.
                    let lost = (usage.packs.iter())
                        .find_map(|(pack, _)| seen.listed.packs.check(pack).err())
                        .filter(|_| entry.number <= seen.before.log.tail);
                    if let Some(reason) = lost {
                        marked.broken.insert(entry.number, reason);
                    }
                    marked.usages.insert(entry.number, usage);
                }
                Err(reason) => {
                    marked.damaged.insert(entry.number, reason);
                }
            }
        }
        Ok(())
    }

    /// What living writers reference, and whose notes are those of the dead.
    async fn mark_writers(&self, seen: &Seen, marked: &mut Marked) -> Result<(), CollectError> {
        let Seen { listed, epoch, .. } = seen;
        for (nonce, note) in &listed.notes {
            marked.noted.insert(*nonce);
            let note = match note {
                Ok(note) if note.epoch < *epoch => {
                    marked.dead.push(self.job.note_key(nonce));
                    continue;
                }
                Ok(note) => note,
                Err(reason) => {
                    // What it references is not known; should that be swept, its commit fails.
                    tracing::warn!(writer = %nonce, reason, "a writer's note cannot be read");
                    marked.alive.insert(*nonce);
                    continue;
                }
            };
            marked.alive.insert(*nonce);
            marked.adopted.extend(&note.adopts);
            marked.oldest_seen = Some(marked.oldest_seen.map_or(note.seen, |s| s.min(note.seen)));
            for named in &note.references {
                if !marked.referenced.insert(named.name.clone())
                    || marked.manifests.contains(&named.name)
                {
                    continue;
                }
                let Some(number) = collection::number_in(&named.name) else {
                    continue;
                };
                match self.job.usage(number, named).await? {
                    Ok(usage) => {
                        let packs = usage.packs.iter().map(|(pack, _)| pack.id);
                        marked.referenced_packs.extend(packs);
                    }
                    Err(reason) => {
                        // One that is gone was swept before the writer noted it; it will notice.
                        if listed.manifests.contains(&named.name) {
                            let number = CheckpointNumber(number);
                            marked
                                .unknown_references
                                .push(SkippedCheckpoint { number, reason });
                        }
                    }
                }
            }
        }
        // Of a writer whose packs a living one took, the note stays: it says what is known of them.
        let adopted: Vec<String> = (marked.adopted.iter())
            .map(|nonce| self.job.note_key(nonce))
            .collect();
        marked.dead.retain(|key| !adopted.contains(key));
        Ok(())
    }

    /// What readers read who said lately that they are at it.
    async fn mark_readers(&self, listed: &Listed, marked: &mut Marked) -> Result<(), CollectError> {
        for (nonce, note) in &listed.readers {
            match note {
                Some(note) if note.counts(listed.at) => {
                    marked.readers += 1;
                    for named in &note.reads {
                        self.protect_read(marked, named).await?;
                    }
                }
                _ => marked.dead.push(self.job.reader_key(nonce)),
            }
        }
        Ok(())
    }

    /// Leaves alone what a reader reads.
    async fn protect_read(
        &self,
        marked: &mut Marked,
        named: &ManifestRef,
    ) -> Result<(), CollectError> {
        if !marked.referenced.insert(named.name.clone()) {
            return Ok(());
        }
        let Some(number) = collection::number_in(&named.name) else {
            return Ok(());
        };
        // One that cannot be read any more protects nothing: its reader has it in memory at best, and would be told.
        if let Ok(usage) = self.job.usage(number, named).await? {
            let packs = usage.packs.iter().map(|(pack, _)| pack.id);
            marked.referenced_packs.extend(packs);
        }
        Ok(())
    }
}

impl Job {
    /// What a manifest names; remembered, as it never changes.
    async fn usage(
        &self,
        number: u64,
        named: &ManifestRef,
    ) -> Result<Result<Arc<Usage>, String>, StoreFault> {
        let known = self.lock_usages().get(&named.name).cloned();
        if let Some(usage) = known
            && usage.digest == named.digest
        {
            return Ok(Ok(usage));
        }
        let manifest = match self.read_manifest(number, named).await? {
            Ok(manifest) => manifest,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut live: HashMap<PackId, u64> = HashMap::new();
        for (_, location) in manifest.locations() {
            if let Some(pack) = location.pack {
                *live.entry(pack).or_default() += u64::from(location.stored);
            }
        }
        let packs = manifest.packs.iter();
        let usage = Arc::new(Usage {
            digest: named.digest,
            packs: packs
                .map(|pack| (*pack, live.get(&pack.id).copied().unwrap_or(0)))
                .collect(),
        });
        self.lock_usages().insert(named.name.clone(), usage.clone());
        Ok(Ok(usage))
    }

    fn lock_usages(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Usage>>> {
        self.inner
            .usages
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn trim_usages(&self, marked: &Marked) {
        self.lock_usages()
            .retain(|name, _| marked.manifests.contains(name) || marked.referenced.contains(name));
    }

    /// Whether a writer's note stands, of an epoch that is not over.
    pub(super) async fn note_stands(
        &self,
        writer: &Nonce,
        epoch: Epoch,
    ) -> Result<bool, StoreFault> {
        let key = self.note_key(writer);
        match self
            .backend()
            .read(&key, collection::NOTE_KIND.max_object())
            .await
        {
            Ok(bytes) => {
                let note = WriterNote::decode(self.crypt(), writer, &bytes);
                Ok(note.map_or(true, |note| note.epoch >= epoch))
            }
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(false),
            // As of one that cannot be understood.
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(true),
            Err(fault) => Err(fault),
        }
    }
}
