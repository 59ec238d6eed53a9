//! Reading a checkpoint's chunks: in the order of their packs, neighbours in one request, several requests at once, and
//! every chunk checked against its name before the caller sees it, unless the caller [does that itself](Reader::unchecked).
//!
//! # Memory
//!
//! At most `fetches` ranges of `fetch_size` bytes, each with its decoded chunks of at most twice that, are held at once,
//! however well they were compressed; a slow consumer stops the requests.
//!
//! # Damage
//!
//! A range whose chunks do not match is fetched once more, as the damage may have happened on the way. If it stays, the error
//! names the checkpoint, pack and place: [`Job::quarantine_pack`] and fall back to an older checkpoint. A pack that is not there
//! is asked for once more, too. It needs no note: any listing of the packs finds it missing, or back.
//!
//! # Other places
//!
//! A chunk that a [nearer](Reader::nearer) checkpoint has as well is read there, and from this one if that fails. What this one
//! lacks is read from [further](Reader::further) ones. Whose bytes they are makes no difference: all are checked.

mod places;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use async_recursion::async_recursion as boxed;
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{FutureExt, StreamExt, TryStreamExt};

use self::places::{Order, Places, Span};
use crate::Digest;
use crate::cache::PackCache;
use crate::chunk_list::ChunkList;
use crate::codec::{self, Codec};
use crate::crypt::{Crypt, Naming};
use crate::fault::{FaultKind, StoreFault};
use crate::job::{Job, JobError};
use crate::manifest::{ChunkEntry, Manifest};
use crate::names::{CheckpointNumber, PackId};

/// Why chunks of a checkpoint could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// A chunk is not what was stored.
    #[error(
        "checkpoint {checkpoint} is damaged: chunk {digest} at byte {offset} of pack {pack}: {reason}; restore an older \
         checkpoint"
    )]
    Damaged {
        /// The number of the checkpoint.
        checkpoint: CheckpointNumber,
        /// The pack that the chunk lies in.
        pack: PackId,
        /// Where the chunk's stored bytes begin in it.
        offset: u64,
        /// The name of the chunk.
        digest: Digest,
        /// What is wrong with the chunk or its pack.
        reason: String,
    },
    /// A chunk is said to be zeros and has another name than zeros have.
    #[error(
        "checkpoint {checkpoint} is damaged: chunk {digest}: {reason}; restore an older checkpoint"
    )]
    Mislabelled {
        /// The number of the checkpoint.
        checkpoint: CheckpointNumber,
        /// The name of the chunk.
        digest: Digest,
        /// What is wrong with the chunk.
        reason: String,
    },
    /// A pack is missing or shorter than it was.
    #[error("checkpoint {checkpoint} is damaged: {source}; restore an older checkpoint")]
    PackLost {
        /// The number of the checkpoint.
        checkpoint: CheckpointNumber,
        /// The id of the pack.
        pack: PackId,
        /// The request that failed.
        source: StoreFault,
    },
    /// A request to the store failed.
    #[error("checkpoint {checkpoint} cannot be read now: {source}")]
    Store {
        /// The number of the checkpoint.
        checkpoint: CheckpointNumber,
        /// The request that failed.
        source: StoreFault,
    },
    /// The caller asked for a chunk that the manifest does not have.
    #[error("checkpoint {checkpoint} has {chunks} chunks, number {index} was asked for")]
    NoChunk {
        /// The number of the checkpoint.
        checkpoint: CheckpointNumber,
        /// The chunk number that was asked for.
        index: u32,
        /// Chunks in the manifest.
        chunks: usize,
    },
    /// An object is larger than the caller allows.
    #[error(
        "an object of checkpoint {checkpoint} has {length} bytes, more than the {cap} that are read at once"
    )]
    TooLarge {
        /// The number of the checkpoint.
        checkpoint: CheckpointNumber,
        /// The length of the object in bytes.
        length: u64,
        /// The most bytes that may be read at once.
        cap: u64,
    },
}

impl ReadError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Store { source, .. } => source.is_permanent(),
            _ => true,
        }
    }

    /// The damaged pack, if this is damage: quarantine it and fall back to an older checkpoint. One that is missing
    /// ([`Self::PackLost`]) needs no note.
    #[must_use]
    pub const fn damaged_pack(&self) -> Option<PackId> {
        match self {
            Self::Damaged { pack, .. } | Self::PackLost { pack, .. } => Some(*pack),
            _ => None,
        }
    }
}

/// Chunks that were fetched together, with their numbers in the manifest's table.
pub type Batch = Vec<(u32, Bytes)>;

/// Reads the chunks of one checkpoint. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    checkpoint: CheckpointNumber,
    places: Arc<Places>,
    elsewhere: Arc<Elsewhere>,
    names: Names,
}

/// Whether chunks are compared with their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Names {
    Checked,
    /// The caller does it.
    Unchecked,
}

/// Where chunks are, none of them twice.
struct Plan {
    /// Chunks of which nothing is stored.
    zeros: Vec<(u32, ChunkEntry)>,
    /// Chunks that caches keep decoded, in batches.
    kept: Vec<Vec<(u32, ChunkEntry)>>,
    /// Chunks in packs.
    spans: Vec<Span>,
}

/// What was not read from the checkpoint's own packs.
#[derive(Default)]
struct Elsewhere {
    /// Bytes, as they are stored, that were read from nearer places.
    nearer: AtomicU64,
    further: AtomicU64,
    /// It was said that something could not be read.
    said: AtomicBool,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Reader(checkpoint {} of {:?})",
            self.checkpoint,
            self.places.job()
        )
    }
}

impl Job {
    /// Reads the chunks of a checkpoint.
    pub fn reader(&self, manifest: &Manifest) -> Result<Reader, JobError> {
        self.refuse_discard()?;
        Ok(Reader::new(self.clone(), manifest))
    }
}

impl Reader {
    fn new(job: Job, manifest: &Manifest) -> Self {
        Self {
            checkpoint: manifest.number,
            places: Arc::new(Places::of(job, manifest)),
            elsewhere: Arc::default(),
            names: Names::Checked,
        }
    }

    /// What a checkpoint of another store has as well is read there first. One that names its chunks in another way is of
    /// no use and ignored.
    #[must_use]
    pub fn nearer(mut self, job: &Job, manifest: &Manifest) -> Self {
        Arc::make_mut(&mut self.places).add(job, manifest, Order::Nearer);
        self
    }

    /// What is damaged or missing is read from a checkpoint of another store, if that has it.
    #[must_use]
    pub fn further(mut self, job: &Job, manifest: &Manifest) -> Self {
        Arc::make_mut(&mut self.places).add(job, manifest, Order::Further);
        self
    }

    /// Chunks are not compared with their names: for a caller that does so where it puts them, and reads again, by a reader that compares,
    /// what is wrong there. For a chunk that is kept decoded that takes as long as to copy it.
    #[must_use]
    pub fn unchecked(mut self) -> Self {
        self.names = Names::Unchecked;
        self
    }

    /// Stored bytes that were read from nearer and from further checkpoints so far.
    #[must_use]
    pub fn read_elsewhere(&self) -> (u64, u64) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (load(&self.elsewhere.nearer), load(&self.elsewhere.further))
    }

    /// The way in which the checkpoint's chunks are named.
    #[must_use]
    pub fn naming(&self) -> Naming {
        self.places.job().naming()
    }

    /// Fetches chunks by their numbers in the manifest's table. Each comes once, however often it is asked for, in the
    /// order in which they arrive. The stream ends at its first error.
    pub fn fetch(
        &self,
        indices: impl IntoIterator<Item = u32>,
    ) -> BoxStream<'static, Result<(u32, Bytes), ReadError>> {
        let batches = match self.batches(indices) {
            Ok(batches) => batches,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let fetched = stream::iter(batches)
            .buffer_unordered(self.width())
            .map_ok(|chunks| stream::iter(chunks.into_iter().map(Ok)))
            .try_flatten();
        let mut failed = false;
        fetched
            .take_while(move |item| {
                let go_on = !failed;
                failed = item.is_err();
                std::future::ready(go_on)
            })
            .boxed()
    }

    /// The same chunks, what comes from far before what comes from near, and zeros last: how fast they come does not become less by that. A
    /// future for each range, for a caller that puts each batch where it belongs beside the others: a stream
    /// whose consumer is busy asks for nothing. It drives [`width`](Self::width) of them at once; see the module's documentation
    /// on memory.
    ///
    /// # Errors
    /// A number that is not in the table.
    pub fn batches(
        &self,
        indices: impl IntoIterator<Item = u32>,
    ) -> Result<
        impl Iterator<Item = BoxFuture<'static, Result<Batch, ReadError>>> + Send + 'static,
        ReadError,
    > {
        let Plan { zeros, kept, spans } = self.plan(indices)?;
        let (checkpoint, crypt) = (self.checkpoint, self.places.job().crypt().clone());
        let zeros = zeros.into_iter().map(move |(index, chunk)| {
            let zeros = zeros_of(&crypt, checkpoint, &chunk);
            std::future::ready(zeros.map(|bytes| vec![(index, bytes)])).boxed()
        });
        let reader = self.clone();
        let kept = kept.into_iter().map(move |chunks| {
            let reader = reader.clone();
            async move { reader.fetch_kept(chunks).await }.boxed()
        });
        let reader = self.clone();
        let fetched = spans.into_iter().map(move |span| {
            let reader = reader.clone();
            async move { reader.fetch_anywhere(span).await }.boxed()
        });
        Ok(fetched.chain(kept).chain(zeros))
    }

    /// How many ranges are fetched at once.
    #[must_use]
    pub fn width(&self) -> usize {
        self.places.job().options().fetches.max(1)
    }

    /// Reads a whole object of at most `cap` bytes: for small ones.
    #[boxed]
    pub async fn read(&self, list: &ChunkList, cap: u64) -> Result<Bytes, ReadError> {
        let checkpoint = self.checkpoint;
        let mut extents = Vec::new();
        let mut length = 0_u64;
        for index in list.iter() {
            extents.push((index, length));
            length += u64::from(self.chunk(index)?.raw);
            if length > cap {
                return Err(ReadError::TooLarge {
                    checkpoint,
                    length,
                    cap,
                });
            }
        }
        extents.sort_unstable();
        let mut object = BytesMut::zeroed(usize::try_from(length).unwrap_or(usize::MAX));
        let mut fetched = self.fetch(list.iter());
        while let Some((index, bytes)) = fetched.try_next().await? {
            let first = extents.partition_point(|&(other, _)| other < index);
            for &(_, offset) in extents
                .iter()
                .skip(first)
                .take_while(|&&(other, _)| other == index)
            {
                let at = offset as usize;
                if let Some(place) = object.get_mut(at..at + bytes.len()) {
                    place.copy_from_slice(&bytes);
                }
            }
        }
        Ok(object.freeze())
    }

    fn chunk(&self, index: u32) -> Result<ChunkEntry, ReadError> {
        self.places.chunk(index).ok_or(ReadError::NoChunk {
            checkpoint: self.checkpoint,
            index,
            chunks: self.places.len(),
        })
    }

    fn plan(&self, indices: impl IntoIterator<Item = u32>) -> Result<Plan, ReadError> {
        let wanted: BTreeSet<u32> = indices.into_iter().collect();
        let (mut zeros, mut here) = (Vec::new(), Vec::new());
        let mut stored = Vec::with_capacity(wanted.len());
        let caches = self.places.caches();
        for index in wanted {
            let chunk = self.chunk(index)?;
            if chunk.codec == Codec::Zero {
                zeros.push((index, chunk));
            } else if (caches.iter()).any(|cache| cache.has_chunk(&chunk.digest, chunk.raw)) {
                here.push((index, chunk));
            } else {
                stored.push(index);
            }
        }
        let together = self.places.job().options().fetch_size;
        let mut kept: Vec<Vec<(u32, ChunkEntry)>> = Vec::new();
        let mut room = 0;
        for (index, chunk) in here {
            match kept.last_mut() {
                Some(open) if u64::from(chunk.raw) <= room => open.push((index, chunk)),
                _ => {
                    kept.push(vec![(index, chunk)]);
                    room = together;
                }
            }
            room = room.saturating_sub(u64::from(chunk.raw));
        }
        let mut spans = self.spans(&stored)?;
        spans.sort_by_cached_key(|span| self.is_near(span));
        Ok(Plan { zeros, kept, spans })
    }

    /// Whether a span comes from this machine, as far as that is known before it is read.
    fn is_near(&self, span: &Span) -> bool {
        if self.places.is_nearer(span.place) {
            return true;
        }
        let job = self.job_of(span);
        let key = job.pack_key(&span.pack);
        let mut caches = job.options().caches.iter();
        caches.any(|cache| cache.has(&key, span.start..span.end))
    }

    /// Each of these chunks, none of them zeros, is at least at its own place: manifests are checked when they are read.
    fn spans(&self, stored: &[u32]) -> Result<Vec<Span>, ReadError> {
        self.places.plan(stored, 0).ok_or(ReadError::NoChunk {
            checkpoint: self.checkpoint,
            index: stored.first().copied().unwrap_or_default(),
            chunks: self.places.len(),
        })
    }

    /// Chunks that caches keep decoded; from elsewhere what they do not have any more, or not as it was.
    async fn fetch_kept(&self, wanted: Vec<(u32, ChunkEntry)>) -> Result<Batch, ReadError> {
        let (caches, crypt) = (self.places.caches(), self.places.job().crypt().clone());
        let names = self.names;
        let options = self.places.job().options();
        let indices: Vec<u32> = wanted.iter().map(|(index, _)| *index).collect();
        let looked = options.compute.run(move || {
            let found = |(index, chunk): &(u32, ChunkEntry)| {
                let bytes = kept_chunk(&caches, &crypt, chunk, names);
                bytes.map(|bytes| (*index, bytes)).ok_or(*index)
            };
            wanted.iter().map(found).collect::<Vec<Result<_, u32>>>()
        });
        // A task that ended has looked for nothing.
        let looked = (looked.await).unwrap_or_else(|_| indices.into_iter().map(Err).collect());
        let mut chunks = Vec::with_capacity(looked.len());
        let mut missing = Vec::new();
        for chunk in looked {
            match chunk {
                Ok(chunk) => chunks.push(chunk),
                Err(index) => missing.push(index),
            }
        }
        if !missing.is_empty() {
            for span in self.spans(&missing)? {
                chunks.extend(self.fetch_anywhere(span).await?);
            }
        }
        Ok(chunks)
    }

    /// The chunks of a span from its place, or from others that have them.
    async fn fetch_anywhere(&self, span: Span) -> Result<Batch, ReadError> {
        let mut left = vec![Arc::new(span)];
        let mut chunks = Vec::new();
        let mut own_error = None;
        while let Some(span) = left.pop() {
            let error = match self.fetch_span(&span).await {
                Ok(fetched) => {
                    self.count(&span);
                    chunks.extend(fetched);
                    continue;
                }
                Err(error) => error,
            };
            let wanted: Vec<u32> = span.chunks.iter().map(|(index, _)| *index).collect();
            let Some(others) = self.places.plan(&wanted, span.place + 1) else {
                // What the checkpoint itself lacks matters, not who else lacks it.
                return Err(own_error.unwrap_or(error));
            };
            if self.elsewhere.said.swap(true, Ordering::Relaxed) {
                tracing::debug!(%error, chunks = wanted.len(), "another place that has them is asked");
            } else {
                tracing::warn!(%error, "another place that has what cannot be read there is asked");
            }
            if self.places.is_own(span.place) {
                own_error.get_or_insert(error);
            }
            left.extend(others.into_iter().map(Arc::new));
        }
        Ok(chunks)
    }

    fn count(&self, span: &Span) {
        let counter = if self.places.is_own(span.place) {
            return;
        } else if self.places.is_nearer(span.place) {
            &self.elsewhere.nearer
        } else {
            &self.elsewhere.further
        };
        let stored: u64 = span.chunks.iter().map(|(_, c)| u64::from(c.stored)).sum();
        counter.fetch_add(stored, Ordering::Relaxed);
    }

    /// The job whose packs a span is part of.
    fn job_of(&self, span: &Span) -> &Job {
        (self.places.get(span.place)).map_or_else(|| self.places.job(), |place| &place.job)
    }

    async fn fetch_span(&self, span: &Arc<Span>) -> Result<Batch, ReadError> {
        if let Some(near) = self.cached_span(span).await {
            return Ok(near);
        }
        match self.fetch_span_once(span).await {
            // Neither is final when it is met for the first time: a whole checkpoint would be given up for it.
            Err(ReadError::Damaged { .. }) => self.fetch_span_once(span).await,
            Err(ReadError::PackLost { .. }) => {
                // A store that is away, or was for a moment, has lost nothing.
                self.check_shown(span).await?;
                match self.fetch_span_once(span).await {
                    Err(lost @ ReadError::PackLost { .. }) => {
                        self.check_shown(span).await?;
                        Err(lost)
                    }
                    other => other,
                }
            }
            other => other,
        }
    }

    /// Fails unless the store shows the history that a span is of.
    async fn check_shown(&self, span: &Span) -> Result<(), ReadError> {
        match self.job_of(span).known().await {
            Err(JobError::Store(source)) if !source.is_permanent() => Err(ReadError::Store {
                checkpoint: self.checkpoint,
                source,
            }),
            // Of the history, that is for others to say.
            _ => Ok(()),
        }
    }

    /// From the nearest cache that has all of it, and has it right.
    async fn cached_span(&self, span: &Arc<Span>) -> Option<Batch> {
        let job = self.job_of(span);
        let options = job.options();
        if options.caches.is_empty() {
            return None;
        }
        let (caches, span) = (options.caches.clone(), span.clone());
        let (checkpoint, key) = (self.checkpoint, job.pack_key(&span.pack));
        let (crypt, names) = (job.crypt().clone(), self.names);
        let looked = options.compute.run(move || {
            caches.iter().find_map(|cache| {
                let bytes = cache.read(&key, span.start..span.end)?;
                match decode_span(&crypt, checkpoint, &span, &bytes, names) {
                    Ok(chunks) => Some(chunks),
                    Err(error) => {
                        tracing::warn!(%error, ?cache, "only its copy on this machine: it is read elsewhere");
                        cache.remove(&key);
                        None
                    }
                }
            })
        });
        looked.await.ok().flatten()
    }

    async fn fetch_span_once(&self, span: &Arc<Span>) -> Result<Batch, ReadError> {
        let checkpoint = self.checkpoint;
        let pack = span.pack;
        let job = self.job_of(span);
        let key = job.pack_key(&pack);
        let bytes = job
            .backend()
            .read_range(&key, span.start..span.end)
            .await
            .map_err(|source| match source.kind() {
                FaultKind::NotFound | FaultKind::Foreign => ReadError::PackLost {
                    checkpoint,
                    pack,
                    source,
                },
                _ => ReadError::Store { checkpoint, source },
            })?;
        let (task_span, crypt, names) = (span.clone(), job.crypt().clone(), self.names);
        let (task_key, caches) = (key.clone(), job.options().caches.clone());
        let since = (self.places.get(span.place)).map(|place| Arc::clone(&place.since));
        let decoding = job.options().compute.run(move || {
            let decoded = decode_span(&crypt, checkpoint, &task_span, &bytes, names)?;
            // The next restore finds it nearer.
            for (cache, since) in caches.iter().zip(since.iter().flat_map(|all| all.iter())) {
                cache.keep_read(&task_key, task_span.start, &bytes, *since);
            }
            Ok(decoded)
        });
        decoding.await.unwrap_or_else(|error| {
            let detail = format!("the task that decodes it ended: {error}");
            let source = StoreFault::with_kind("read", key, FaultKind::Transient, detail);
            Err(ReadError::Store { checkpoint, source })
        })
    }
}

/// A chunk from the first cache that keeps it decoded, and has it right if that is to be checked.
fn kept_chunk(
    caches: &[Arc<PackCache>],
    crypt: &Crypt,
    chunk: &ChunkEntry,
    names: Names,
) -> Option<Bytes> {
    caches.iter().find_map(|cache| {
        let bytes = cache.read_chunk(&chunk.digest, chunk.raw)?;
        if names == Names::Unchecked {
            return Some(bytes);
        }
        let found = crypt.name(&bytes);
        if found == chunk.digest {
            return Some(bytes);
        }
        let digest = chunk.digest;
        tracing::warn!(%digest, %found, ?cache, "the copy of a chunk is damaged: it is read elsewhere");
        cache.remove_chunk(&digest);
        None
    })
}

fn decode_span(
    crypt: &Crypt,
    checkpoint: CheckpointNumber,
    span: &Span,
    bytes: &Bytes,
    names: Names,
) -> Result<Batch, ReadError> {
    let mut decoded = Vec::with_capacity(span.chunks.len());
    for &(index, chunk) in &span.chunks {
        let damaged = |reason: String| ReadError::Damaged {
            checkpoint,
            pack: span.pack,
            offset: chunk.offset,
            digest: chunk.digest,
            reason,
        };
        let from = (chunk.offset - span.start) as usize;
        let to = from + chunk.stored as usize;
        if to > bytes.len() {
            return Err(damaged("the pack ends before it".into()));
        }
        let raw = crypt
            .open_chunk(&chunk.digest, chunk.codec, chunk.raw, bytes.slice(from..to))
            .and_then(|encoded| codec::decode(chunk.codec, encoded, chunk.raw))
            .map_err(damaged)?;
        if names == Names::Checked {
            let found = crypt.name(&raw);
            if found != chunk.digest {
                return Err(damaged(format!("its bytes have digest {found}")));
            }
        }
        decoded.push((index, raw));
    }
    Ok(decoded)
}

/// A chunk of which nothing is stored. Of each length there is only one, so checking its name costs nothing.
fn zeros_of(
    crypt: &Crypt,
    checkpoint: CheckpointNumber,
    chunk: &ChunkEntry,
) -> Result<Bytes, ReadError> {
    codec::decode(Codec::Zero, Bytes::new(), chunk.raw)
        .and_then(|zeros| {
            if crypt.name(&zeros) == chunk.digest {
                Ok(zeros)
            } else {
                Err("it is not zeros".into())
            }
        })
        .map_err(|reason| ReadError::Mislabelled {
            checkpoint,
            digest: chunk.digest,
            reason,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_chunk_that_is_damaged_is_forgotten_by_who_checks_it() {
        let (right, wrong) = (Bytes::from(vec![1; 100]), Bytes::from(vec![2; 100]));
        let chunk = ChunkEntry {
            digest: Digest::of(&right),
            pack: 0,
            offset: 8,
            stored: 20,
            raw: 100,
            codec: Codec::Zstd,
        };
        let cache = Arc::new(PackCache::in_memory(1000, Box::new(|_| true)));
        cache.plan_for(100);
        let caches = [Arc::clone(&cache)];
        cache.keep_chunk(&chunk.digest, &wrong);
        let kept = |names| kept_chunk(&caches, &Crypt::PLAIN, &chunk, names);
        assert_eq!(kept(Names::Unchecked), Some(wrong));
        assert_eq!(kept(Names::Checked), None);
        assert!(!cache.has_chunk(&chunk.digest, 100));
        cache.keep_chunk(&chunk.digest, &right);
        assert_eq!(kept(Names::Checked), Some(right));
    }
}
