//! Which chunks are stored already, and where.
//!
//! Filled from the newest visible manifests. A chunk counts only if its pack is there with the length that the manifest
//! says and is not quarantined: a checkpoint must never lean on what another one has lost.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::Digest;
use crate::manifest::{Location, Manifest, PackEntry};
use crate::names::PackId;

/// Stored chunks by name: one generation for each of the newest checkpoints, newest first, so that memory is bounded
/// by a few images' chunk tables however long a job runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    generations: VecDeque<Arc<Generation>>,
}

#[derive(Debug, Default)]
struct Generation {
    chunks: HashMap<Digest, Location>,
    packs: HashMap<PackId, u64>,
}

impl Generation {
    /// The chunks of a manifest. With a set of packs, only those whose packs can be relied on.
    fn new(manifest: &Manifest, packs: Option<&PackSet>) -> Self {
        let sound: HashMap<PackId, u64> = manifest
            .packs
            .iter()
            .filter(|pack| packs.is_none_or(|packs| packs.check(pack).is_ok()))
            .map(|pack| (pack.id, pack.length))
            .collect();
        let chunks = manifest
            .locations()
            .filter(|(_, location)| location.pack.is_none_or(|pack| sound.contains_key(&pack)))
            .collect();
        Self {
            chunks,
            packs: sound,
        }
    }
}

/// Packs that are there, with their lengths in bytes, less those in quarantine.
#[derive(Debug, Default)]
pub(crate) struct PackSet {
    pub present: HashMap<PackId, u64>,
    pub quarantined: HashSet<PackId>,
}

impl PackSet {
    /// Whether a pack can be relied on; why not, if not.
    pub(crate) fn check(&self, pack: &PackEntry) -> Result<(), String> {
        if self.quarantined.contains(&pack.id) {
            return Err(format!("pack {} is quarantined as damaged", pack.id));
        }
        match self.present.get(&pack.id) {
            None => Err(format!("pack {} is missing", pack.id)),
            Some(&length) if length != pack.length => Err(format!(
                "pack {} has {length} bytes instead of {}",
                pack.id, pack.length
            )),
            Some(_) => Ok(()),
        }
    }
}

impl Index {
    /// Takes in a checkpoint older than those in it.
    pub(crate) fn push_older(&mut self, manifest: &Manifest, packs: Option<&PackSet>) {
        self.generations
            .push_back(Arc::new(Generation::new(manifest, packs)));
    }

    /// The index after one more checkpoint, keeping the newest `keep`.
    pub(crate) fn with_newest(&self, manifest: &Manifest, keep: usize) -> Self {
        let mut generations = self.generations.clone();
        generations.push_front(Arc::new(Generation::new(manifest, None)));
        generations.truncate(keep.max(1));
        Self { generations }
    }

    /// The index without the chunks of a pack.
    pub(crate) fn without(&self, pack: &PackId) -> Self {
        let strip = |generation: &Arc<Generation>| {
            if !generation.packs.contains_key(pack) {
                return generation.clone();
            }
            let keep = |location: &Location| location.pack != Some(*pack);
            let chunks = generation
                .chunks
                .iter()
                .filter(|(_, location)| keep(location));
            let packs = generation.packs.iter().filter(|(id, _)| *id != pack);
            Arc::new(Generation {
                chunks: chunks
                    .map(|(&digest, &location)| (digest, location))
                    .collect(),
                packs: packs.map(|(&id, &length)| (id, length)).collect(),
            })
        };
        Self {
            generations: self.generations.iter().map(strip).collect(),
        }
    }

    pub(crate) fn get(&self, digest: &Digest) -> Option<Location> {
        self.generations
            .iter()
            .find_map(|generation| generation.chunks.get(digest).copied())
    }

    pub(crate) fn pack_length(&self, pack: &PackId) -> Option<u64> {
        self.generations
            .iter()
            .find_map(|generation| generation.packs.get(pack).copied())
    }
}
