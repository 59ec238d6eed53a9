//! Where the chunks of one checkpoint lie: in its own packs, and in those of checkpoints elsewhere that share chunks with
//! it (another tier has its own packs of the same chunks).
//!
//! # Rules
//!
//! * A place is only of use if it names chunks as the checkpoint does; another is left out.
//! * Each chunk is asked for at the first place that has it: the nearer ones, its own, then the further ones.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crate::Digest;
use crate::cache::{PackCache, Since};
use crate::codec::Codec;
use crate::job::Job;
use crate::manifest::{ChunkEntry, Manifest, PackEntry};
use crate::names::PackId;

/// Bytes between two wanted chunks that are fetched with them rather than asking twice.
const GAP: u64 = 256 << 10;

/// A place to read chunks from: the packs of one checkpoint.
#[derive(Clone)]
pub(super) struct Place {
    pub job: Job,
    packs: Arc<[PackEntry]>,
    /// For each cache of packs of the job.
    pub since: Arc<[Since]>,
    /// By name, of a checkpoint elsewhere; the own one is asked by number.
    chunks: Arc<HashMap<Digest, ChunkEntry>>,
}

impl Place {
    fn new(job: Job, manifest: &Manifest, chunks: HashMap<Digest, ChunkEntry>) -> Place {
        Place {
            since: job.used_in_caches(&manifest.packs, &manifest.chunks).into(),
            job,
            packs: manifest.packs.as_slice().into(),
            chunks: Arc::new(chunks),
        }
    }
}

/// Chunks of one pack that are fetched together.
pub(super) struct Span {
    /// Number of the place.
    pub place: usize,
    pub pack: PackId,
    pub start: u64,
    pub end: u64,
    /// The bytes of the chunks once they are decoded.
    raw: u64,
    /// With their numbers in the manifest's table; the entry is of the place.
    pub chunks: Vec<(u32, ChunkEntry)>,
}

/// Whether a place is asked before the checkpoint's own or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// Before the checkpoint's own packs.
    Nearer,
    /// For what the checkpoint's own packs have lost.
    Further,
}

/// All places of one checkpoint, in the order in which they are asked.
#[derive(Clone)]
pub(super) struct Places {
    all: Vec<Place>,
    /// The index of the checkpoint's own place.
    own: usize,
    chunks: Arc<[ChunkEntry]>,
}

impl Places {
    pub(super) fn of(job: Job, manifest: &Manifest) -> Places {
        Places {
            all: vec![Place::new(job, manifest, HashMap::new())],
            own: 0,
            chunks: manifest.chunks.as_slice().into(),
        }
    }

    /// Adds a place to be asked in this order.
    pub(super) fn add(&mut self, job: &Job, manifest: &Manifest, order: Order) {
        let (there, here) = (job.naming(), self.job().naming());
        if there.of(b"") != here.of(b"") {
            return;
        }
        let wanted: HashSet<&Digest> = self.chunks.iter().map(|c| &c.digest).collect();
        let stored = manifest.chunks.iter();
        let shared = stored
            .filter(|c| c.codec != Codec::Zero && wanted.contains(&c.digest))
            .map(|c| (c.digest, *c))
            .collect();
        let place = Place::new(job.clone(), manifest, shared);
        match order {
            Order::Nearer => {
                self.all.insert(self.own, place);
                self.own += 1;
            }
            Order::Further => self.all.push(place),
        }
    }

    /// The job that the checkpoint belongs to.
    pub(super) fn job(&self) -> &Job {
        // There is always the own one.
        #[expect(clippy::indexing_slicing, reason = "`own` is one of them")]
        &self.all[self.own].job
    }

    /// The caches of all places, each once.
    pub(super) fn caches(&self) -> Vec<Arc<PackCache>> {
        let all = self
            .all
            .iter()
            .flat_map(|place| &place.job.options().caches);
        let mut caches: Vec<Arc<PackCache>> = Vec::new();
        for cache in all {
            if !caches.iter().any(|other| Arc::ptr_eq(other, cache)) {
                caches.push(Arc::clone(cache));
            }
        }
        caches
    }

    pub(super) fn get(&self, number: usize) -> Option<&Place> {
        self.all.get(number)
    }

    pub(super) const fn is_own(&self, number: usize) -> bool {
        number == self.own
    }

    pub(super) const fn is_nearer(&self, number: usize) -> bool {
        number < self.own
    }

    /// The chunk's entry in the checkpoint's own table.
    pub(super) fn chunk(&self, index: u32) -> Option<ChunkEntry> {
        self.chunks.get(index as usize).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// What to fetch for these chunks, none of them zeros, asking no place before number `from`. `None`: one of them is at
    /// no such place.
    pub(super) fn plan(&self, wanted: &[u32], from: usize) -> Option<Vec<Span>> {
        let mut found = Vec::with_capacity(wanted.len());
        for &index in wanted {
            let own = self.chunk(index)?;
            let at = (from..self.all.len()).find_map(|number| {
                let entry = match number == self.own {
                    true => Some(own),
                    false => self.all.get(number)?.chunks.get(&own.digest).copied(),
                };
                entry.map(|entry| (number, entry))
            });
            let (number, entry) = at?;
            found.push((number, index, entry));
        }
        found.sort_unstable_by_key(|(number, _, chunk)| (*number, chunk.pack, chunk.offset));
        let mut spans: Vec<Span> = Vec::new();
        let mut open: Option<(usize, u32)> = None;
        for (number, index, chunk) in found {
            let place = self.all.get(number)?;
            let limit = place.job.options().fetch_size;
            let end = chunk.offset + u64::from(chunk.stored);
            let raw = u64::from(chunk.raw);
            if open == Some((number, chunk.pack))
                && let Some(span) = spans.last_mut()
                && chunk.offset <= span.end + GAP
                && end.max(span.end) - span.start <= limit
                && span.raw + raw <= 2 * limit
            {
                span.end = span.end.max(end);
                span.raw += raw;
                span.chunks.push((index, chunk));
                continue;
            }
            open = Some((number, chunk.pack));
            spans.push(Span {
                place: number,
                pack: place.packs.get(chunk.pack as usize)?.id,
                start: chunk.offset,
                end,
                raw,
                chunks: vec![(index, chunk)],
            });
        }
        Some(spans)
    }
}
