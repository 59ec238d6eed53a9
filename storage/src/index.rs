//! Which chunks are stored already, and where.
//!
//! Filled from the newest visible manifests. A chunk counts only if its pack is there with the length that the manifest
//! says and is not quarantined: a checkpoint must never reference what another one has lost.
//!
//! An index is true as of a place in the log, its horizon: nothing that it names was given up for deletion up to there. A writer
//! that references what it names looks at what was collected since (see `collect`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::Digest;
use crate::collection::{Collection, ManifestRef};
use crate::manifest::{Manifest, PackEntry};
use crate::names::PackId;
use crate::pack::Location;

/// What is said of a pack or manifest that a note keeps from being used, and what to do about it.
pub(crate) const QUARANTINED: &str =
    "quarantined as damaged: `phos-ft verify --deep` reads it again";

/// Stored chunks by name: one generation for each of the newest checkpoints, newest first, so that memory is bounded
/// by a few images' chunk tables however long a job runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    generations: VecDeque<Arc<Generation>>,
    horizon: u64,
}

#[derive(Debug)]
struct Generation {
    /// The number of the checkpoint whose chunks these are.
    number: u64,
    manifest: ManifestRef,
    chunks: HashMap<Digest, Location>,
    packs: HashMap<PackId, u64>,
}

impl Generation {
    /// The chunks of a manifest. With a set of packs, only those whose packs can be relied on.
    fn new(manifest: &Manifest, named: ManifestRef, packs: Option<&PackSet>) -> Self {
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
            number: manifest.number.0,
            manifest: named,
            chunks,
            packs: sound,
        }
    }
}

/// Packs that are there, with their lengths in bytes, and what is in quarantine.
#[derive(Debug, Default)]
pub(crate) struct PackSet {
    pub present: HashMap<PackId, u64>,
    pub quarantined: HashSet<PackId>,
    /// Names of manifests in quarantine.
    pub manifests: HashSet<String>,
}

impl PackSet {
    /// Whether a pack can be relied on; why not, if not.
    pub(crate) fn check(&self, pack: &PackEntry) -> Result<(), String> {
        if self.quarantined.contains(&pack.id) {
            return Err(format!("pack {} is {QUARANTINED}", pack.id));
        }
        self.check_there(pack)
            .map_err(|what| format!("pack {} {what}", pack.id))
    }

    /// Whether a pack is there with its length, in quarantine or not; what is to be said of it, if not.
    pub(crate) fn check_there(&self, pack: &PackEntry) -> Result<(), String> {
        match self.present.get(&pack.id) {
            None => Err("is missing".into()),
            Some(&length) if length != pack.length => {
                Err(format!("has {length} bytes instead of {}", pack.length))
            }
            Some(_) => Ok(()),
        }
    }
}

impl Index {
    /// An index without chunks, true as of the record `horizon`.
    pub(crate) fn at(horizon: u64) -> Self {
        Self {
            generations: VecDeque::new(),
            horizon,
        }
    }

    /// The newest record that was taken into account.
    pub(crate) const fn horizon(&self) -> u64 {
        self.horizon
    }

    /// The manifests of the checkpoints whose chunks the index knows.
    pub(crate) fn references(&self) -> Vec<ManifestRef> {
        self.generations
            .iter()
            .map(|generation| generation.manifest.clone())
            .collect()
    }

    /// Takes in a checkpoint older than those in it.
    pub(crate) fn push_older(
        &mut self,
        manifest: &Manifest,
        named: ManifestRef,
        packs: Option<&PackSet>,
    ) {
        self.generations
            .push_back(Arc::new(Generation::new(manifest, named, packs)));
    }

    /// The index after one more checkpoint, keeping the newest `keep`.
    pub(crate) fn with_newest(&self, manifest: &Manifest, named: ManifestRef, keep: usize) -> Self {
        let mut generations = self.generations.clone();
        generations.push_front(Arc::new(Generation::new(manifest, named, None)));
        generations.truncate(keep.max(1));
        Self {
            generations,
            horizon: self.horizon,
        }
    }

    /// The index as of a later record, with no collection in between.
    pub(crate) fn advanced(&self, horizon: u64) -> Self {
        Self {
            generations: self.generations.clone(),
            horizon,
        }
    }

    /// The index after a collection; `None` if what it knows was repacked and must be read again.
    pub(crate) fn collected(&self, collection: &Collection) -> Option<Self> {
        let mut generations = VecDeque::new();
        for generation in &self.generations {
            match collection.kept(generation.number) {
                // Committed since.
                None if generation.number > collection.number => {}
                None => continue,
                Some(kept) if kept.manifest.as_ref() == Some(&generation.manifest) => {}
                Some(_) => return None,
            }
            generations.push_back(generation.clone());
        }
        Some(Self {
            generations,
            horizon: collection.number,
        })
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
                number: generation.number,
                manifest: generation.manifest.clone(),
                chunks: chunks
                    .map(|(&digest, &location)| (digest, location))
                    .collect(),
                packs: packs.map(|(&id, &length)| (id, length)).collect(),
            })
        };
        Self {
            generations: self.generations.iter().map(strip).collect(),
            horizon: self.horizon,
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
