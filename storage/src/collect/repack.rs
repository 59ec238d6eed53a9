//! Repacking: what is still needed of half-empty packs is written into new packs, and manifests that name the new places are
//! written.
//!
//! # Crash consistency
//!
//! New packs stand under the collector's own note, so nobody else sweeps them; new manifests are named by nothing until the
//! collection is part of the history.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::mark::Marked;
use super::{CollectError, Collector, Seen};
use crate::Digest;
use crate::codec;
use crate::collection::{self, ManifestRef};
use crate::crypt::Crypt;
use crate::fault::{FaultKind, StoreFault, sealing_failed};
use crate::index::PackSet;
use crate::job::{Entry, Note};
use crate::manifest::PackEntry;
use crate::names::{Nonce, PackId};
use crate::pack::{self, Location, PackBuilder};

/// Bytes of live chunks that are fetched at once when repacking.
const REPACK_FETCH: u64 = 16 << 20;

/// Chunks that were moved to new packs, and the note under which those lie.
#[derive(Default)]
pub(super) struct Moves {
    pub to: HashMap<(PackId, u64), Location>,
    pub lengths: HashMap<PackId, u64>,
    pub packs: u64,
    pub bytes: u64,
    pub note: Option<Note>,
    pub writer: Option<Nonce>,
    /// Collections up to this record did not sweep the new packs.
    pub checked: u64,
}

/// A chunk to be moved.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    digest: Digest,
    location: Location,
}

/// Half-empty packs: their lengths and the most that one checkpoint needs of each, in bytes.
type Sparse = BTreeMap<PackId, (u64, u64)>;

impl Collector<'_> {
    /// Copies the live chunks of half-empty packs into new ones.
    pub(super) async fn repack(
        &mut self,
        kept: &[&Entry],
        marked: &Marked,
        seen: &Seen,
    ) -> Result<(), CollectError> {
        let sparse = self.sparse_packs(kept, marked, &seen.listed.packs);
        if sparse.is_empty() {
            return Ok(());
        }
        let live = self
            .live_chunks(kept, marked, &sparse, seen.now.log.tail)
            .await?;
        let mut budget = self.options.repack_bytes;
        let mut chosen = Vec::new();
        for (pack, wanted) in live {
            let bytes: u64 = wanted.values().map(|w| u64::from(w.location.stored)).sum();
            let length = sparse.get(&pack).map_or(0, |(length, _)| *length);
            // What would be written instead: a pack without dead chunks is never worth it, however small it is.
            let again = pack::length_of(self.job.crypt(), wanted.len() as u64, bytes);
            if self.is_sparse(length, again) && bytes <= budget {
                budget -= bytes;
                chosen.push((pack, wanted));
            }
        }
        if chosen.is_empty() || self.options.dry_run {
            self.done.repacked_packs = chosen.len() as u64;
            self.done.repacked_bytes = self.options.repack_bytes - budget;
            return Ok(());
        }
        let (epoch, tail) = (seen.epoch, seen.now.log.tail);
        let writer = self.job.nonce();
        self.moves.note = Some(self.job.note_collector(writer, epoch, tail).await?);
        self.moves.writer = Some(writer);
        self.moves.checked = tail;
        self.move_chunks(chosen, writer).await
    }

    /// Whether so little of a pack is needed that it is repacked. Both in bytes.
    fn is_sparse(&self, length: u64, live: u64) -> bool {
        let share = u64::from(self.options.repack_below_percent.min(100));
        live * 100 < length * share
    }

    /// Sound packs of which no single checkpoint needs much.
    fn sparse_packs(&self, kept: &[&Entry], marked: &Marked, packs: &PackSet) -> Sparse {
        let mut most = Sparse::new();
        for entry in kept {
            let Some(usage) = marked.usages.get(&entry.number) else {
                continue;
            };
            for (pack, live) in &usage.packs {
                let known = most.entry(pack.id).or_insert((pack.length, 0));
                known.1 = known.1.max(*live);
            }
        }
        most.retain(|id, (length, live)| {
            let sound = packs.check(&PackEntry {
                id: *id,
                length: *length,
            });
            sound.is_ok() && self.is_sparse(*length, *live)
        });
        most
    }

    /// What all checkpoints together need of these packs, by the offset: that is in the manifests.
    async fn live_chunks(
        &self,
        kept: &[&Entry],
        marked: &Marked,
        sparse: &Sparse,
        tail: u64,
    ) -> Result<BTreeMap<PackId, BTreeMap<u64, Wanted>>, CollectError> {
        let mut live: BTreeMap<PackId, BTreeMap<u64, Wanted>> = BTreeMap::new();
        for entry in kept {
            let (Some(usage), Some(named)) = (marked.usages.get(&entry.number), &entry.manifest)
            else {
                continue;
            };
            if !usage
                .packs
                .iter()
                .any(|(pack, _)| sparse.contains_key(&pack.id))
            {
                continue;
            }
            let manifest = match self.job.read_manifest(entry.number, named).await? {
                Ok(manifest) => manifest,
                Err(reason) => return Err(self.unreadable(tail, reason).await?),
            };
            for (digest, location) in manifest.locations() {
                if let Some(pack) = location.pack
                    && sparse.contains_key(&pack)
                {
                    live.entry(pack)
                        .or_default()
                        .insert(location.offset, Wanted { digest, location });
                }
            }
        }
        Ok(live)
    }

    /// Writes chunks into packs of the collector's own.
    async fn move_chunks(
        &mut self,
        chosen: Vec<(PackId, BTreeMap<u64, Wanted>)>,
        writer: Nonce,
    ) -> Result<(), CollectError> {
        let mut open: Option<PackBuilder> = None;
        let mut sequence = 0;
        for (pack, wanted) in chosen {
            self.way.turn().await;
            let Some(chunks) = self.fetch(&pack, wanted).await? else {
                continue;
            };
            self.moves.packs += 1;
            for (wanted, stored) in chunks {
                let Wanted { digest, location } = wanted;
                let full = open.as_ref().is_some_and(|open| {
                    open.is_full()
                        || open.length() + stored.len() as u64 > self.job.options().pack_size
                });
                if full && let Some(pack) = open.take() {
                    self.upload(pack).await?;
                }
                let builder = open.get_or_insert_with(|| {
                    let id = PackId { writer, sequence };
                    sequence += 1;
                    PackBuilder::new(self.job.crypt(), id)
                });
                self.moves.bytes += stored.len() as u64;
                let to = builder.push(digest, location.codec, [stored], location.raw);
                self.moves.to.insert((pack, location.offset), to);
            }
        }
        if let Some(pack) = open {
            self.upload(pack).await?;
        }
        Ok(())
    }

    /// Whether what an earlier attempt moved is still there for this one: the same comparison that a commit makes.
    pub(super) async fn moves_stand(&mut self, tail: u64) -> Result<bool, StoreFault> {
        if self.moves.lengths.is_empty() {
            return Ok(true);
        }
        let packs: Vec<PackEntry> = (self.moves.lengths.iter())
            .map(|(&id, &length)| PackEntry { id, length })
            .collect();
        let swept = (self.job)
            .swept_between(self.moves.checked, tail, &packs)
            .await?;
        self.moves.checked = tail;
        Ok(swept.is_none())
    }

    /// Writes new manifests for checkpoints whose chunks moved. Returns the new ones, by checkpoint.
    pub(super) async fn rewrite(
        &self,
        kept: &[&Entry],
        marked: &Marked,
        tail: u64,
    ) -> Result<BTreeMap<u64, ManifestRef>, CollectError> {
        let Some(writer) = self.moves.writer else {
            return Ok(BTreeMap::new());
        };
        let from: HashSet<PackId> = self.moves.to.keys().map(|(pack, _)| *pack).collect();
        let mut moved = BTreeMap::new();
        for entry in kept {
            let (Some(usage), Some(named)) = (marked.usages.get(&entry.number), &entry.manifest)
            else {
                continue;
            };
            if !usage.packs.iter().any(|(pack, _)| from.contains(&pack.id)) {
                continue;
            }
            let manifest = match self.job.read_manifest(entry.number, named).await? {
                Ok(manifest) => manifest,
                Err(reason) => return Err(self.unreadable(tail, reason).await?),
            };
            let manifest = manifest.relocated(
                &self.moves.to,
                &self.moves.lengths,
                self.job.crypt().overhead(),
            )?;
            let bytes = bytes::Bytes::from(manifest.encode(self.job.crypt())?);
            let digest = Digest::of(&bytes);
            let name = format!("{}-{writer}", collection::name(entry.number, &digest));
            let length = bytes.len() as u64;
            let key = self.job.key(&format!("manifests/{name}"));
            self.job.backend().write(&key, bytes).await?;
            moved.insert(
                entry.number,
                ManifestRef {
                    name,
                    digest,
                    length,
                },
            );
        }
        Ok(moved)
    }

    /// What it means that a manifest cannot be read: damage, or that another collector repacked it meanwhile.
    async fn unreadable(&self, tail: u64, reason: String) -> Result<CollectError, StoreFault> {
        if self.job.grew_beyond(tail).await? {
            Ok(CollectError::Busy)
        } else {
            Ok(CollectError::Damaged { reason })
        }
    }

    async fn upload(&mut self, pack: PackBuilder) -> Result<(), StoreFault> {
        let id = pack.id();
        let key = self.job.pack_key(&id);
        let (pieces, length) = pack.finish().ok_or_else(|| sealing_failed(&key))?;
        self.job
            .backend()
            .write_pack(&key, pieces, self.job.options())
            .await?;
        self.moves.lengths.insert(id, length);
        Ok(())
    }

    /// The stored bytes of some chunks of a pack, each checked; `None` if the pack is damaged, which is then left as it
    /// is, for verification to find.
    async fn fetch(
        &self,
        pack: &PackId,
        wanted: BTreeMap<u64, Wanted>,
    ) -> Result<Option<Vec<(Wanted, bytes::Bytes)>>, CollectError> {
        let key = self.job.pack_key(pack);
        let wanted: Vec<Wanted> = wanted.into_values().collect();
        let mut chunks = Vec::with_capacity(wanted.len());
        let mut rest = wanted.as_slice();
        while let Some(first) = rest.first() {
            let start = first.location.offset;
            let near = rest
                .partition_point(|w| w.location.end() <= start + REPACK_FETCH)
                .max(1);
            let (span, after) = rest.split_at(near);
            rest = after;
            let end = span.iter().map(|w| w.location.end()).max().unwrap_or(start);
            let bytes = match self.job.backend().read_range(&key, start..end).await {
                Ok(bytes) => bytes,
                Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                    return Ok(None);
                }
                Err(fault) => return Err(fault.into()),
            };
            let span = span.to_vec();
            let crypt = self.job.crypt().clone();
            let compute = self.job.options().compute;
            let checked = compute.run(move || check(&crypt, &span, &bytes));
            let found = checked.await.map_err(|detail| {
                StoreFault::with_kind("read", key.clone(), FaultKind::Transient, detail)
            })?;
            match found {
                Ok(found) => chunks.extend(found),
                Err(reason) => {
                    tracing::warn!(%pack, reason, "a pack that was to be repacked is damaged");
                    return Ok(None);
                }
            }
        }
        Ok(Some(chunks))
    }
}

fn check(
    crypt: &Crypt,
    span: &[Wanted],
    bytes: &bytes::Bytes,
) -> Result<Vec<(Wanted, bytes::Bytes)>, String> {
    let start = span.first().map_or(0, |w| w.location.offset);
    let mut found = Vec::with_capacity(span.len());
    for wanted in span {
        let from = (wanted.location.offset - start) as usize;
        let to = from + wanted.location.stored as usize;
        if to > bytes.len() {
            return Err("it ends before a chunk that it holds".into());
        }
        let stored = bytes.slice(from..to);
        let Location { codec, raw, .. } = wanted.location;
        let encoded = crypt.open_chunk(&wanted.digest, codec, raw, stored.clone())?;
        let raw = codec::decode(codec, encoded, raw)?;
        if crypt.name(&raw) != wanted.digest {
            return Err(format!("chunk {} has other bytes", wanted.digest));
        }
        found.push((*wanted, stored));
    }
    Ok(found)
}
