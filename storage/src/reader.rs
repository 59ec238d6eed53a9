//! Reading a checkpoint's chunks: in the order of their packs, neighbours in one request, several requests at once, and
//! every chunk checked against its name before the caller sees it.
//!
//! # Memory
//!
//! At most `fetches` ranges of `fetch_size` bytes, each with its decoded chunks of at most twice that, are held at once,
//! however well they were compressed; a slow consumer stops the requests.
//!
//! # Damage
//!
//! A range whose chunks do not match is fetched once more, as the damage may have happened on the way. If it stays, the
//! error names the checkpoint, pack and place: [`Job::quarantine_pack`] and fall back to an older checkpoint.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};

use crate::Digest;
use crate::chunk_list::ChunkList;
use crate::codec::{self, Codec};
use crate::fault::{FaultKind, StoreFault};
use crate::job::Job;
use crate::manifest::{ChunkEntry, Manifest, PackEntry};
use crate::names::{CheckpointNumber, PackId};

/// Bytes between two wanted chunks that are fetched with them rather than asking twice.
const GAP: u64 = 256 << 10;

/// Why chunks could not be read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ReadError {
    /// A chunk is not what was stored.
    #[error(
        "checkpoint {checkpoint} is damaged: chunk {digest} at byte {offset} of pack {pack}: {reason}; restore an older \
         checkpoint"
    )]
    Damaged {
        /// The checkpoint.
        checkpoint: CheckpointNumber,
        /// The pack.
        pack: PackId,
        /// Where the chunk's stored bytes begin in it.
        offset: u64,
        /// The chunk.
        digest: Digest,
        /// What is wrong.
        reason: String,
    },
    /// A chunk is said to be zeros and has another name than zeros have.
    #[error(
        "checkpoint {checkpoint} is damaged: chunk {digest}: {reason}; restore an older checkpoint"
    )]
    Mislabelled {
        /// The checkpoint.
        checkpoint: CheckpointNumber,
        /// The chunk.
        digest: Digest,
        /// What is wrong.
        reason: String,
    },
    /// A pack is missing or shorter than it was.
    #[error("checkpoint {checkpoint} is damaged: {source}; restore an older checkpoint")]
    PackLost {
        /// The checkpoint.
        checkpoint: CheckpointNumber,
        /// The pack.
        pack: PackId,
        /// The failed request.
        source: StoreFault,
    },
    /// A request failed.
    #[error("checkpoint {checkpoint} cannot be read now: {source}")]
    Store {
        /// The checkpoint.
        checkpoint: CheckpointNumber,
        /// The failed request.
        source: StoreFault,
    },
    /// The caller asked for a chunk that the manifest does not have.
    #[error("checkpoint {checkpoint} has {chunks} chunks, number {index} was asked for")]
    NoChunk {
        /// The checkpoint.
        checkpoint: CheckpointNumber,
        /// The number asked for.
        index: u32,
        /// Chunks in the manifest.
        chunks: usize,
    },
    /// An object is larger than the caller allows.
    #[error(
        "an object of checkpoint {checkpoint} has {length} bytes, more than the {cap} that are read at once"
    )]
    TooLarge {
        /// The checkpoint.
        checkpoint: CheckpointNumber,
        /// Its length in bytes.
        length: u64,
        /// Most bytes allowed.
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

    /// The damaged pack, if this is damage: quarantine it and fall back to an older checkpoint.
    #[must_use]
    pub const fn damaged_pack(&self) -> Option<PackId> {
        match self {
            Self::Damaged { pack, .. } | Self::PackLost { pack, .. } => Some(*pack),
            _ => None,
        }
    }
}

/// Reads the chunks of one checkpoint. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    job: Job,
    checkpoint: CheckpointNumber,
    packs: Arc<[PackEntry]>,
    chunks: Arc<[ChunkEntry]>,
}

impl std::fmt::Debug for Reader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Reader(checkpoint {} of {:?})",
            self.checkpoint, self.job
        )
    }
}

/// Chunks of one pack that are fetched together.
struct Span {
    pack: PackId,
    start: u64,
    end: u64,
    /// Their bytes once decoded.
    raw: u64,
    chunks: Vec<(u32, ChunkEntry)>,
}

impl Reader {
    pub(crate) fn new(job: Job, manifest: &Manifest) -> Self {
        Self {
            job,
            checkpoint: manifest.number,
            packs: manifest.packs.clone().into(),
            chunks: manifest.chunks.clone().into(),
        }
    }

    /// Fetches chunks by their numbers in the manifest's table. Each comes once, however often it is asked for, in the
    /// order in which they arrive. The stream ends at its first error.
    pub fn fetch(
        &self,
        indices: impl IntoIterator<Item = u32>,
    ) -> BoxStream<'static, Result<(u32, Bytes), ReadError>> {
        let (zeros, spans) = match self.plan(indices) {
            Ok(plan) => plan,
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        let reader = self.clone();
        let fetches = self.job.options().fetches.max(1);
        let checkpoint = self.checkpoint;
        let zeros = stream::iter(zeros)
            .map(move |(index, chunk)| Ok((index, zeros_of(checkpoint, &chunk)?)));
        let fetched = stream::iter(spans)
            .map(move |span| {
                let reader = reader.clone();
                async move { reader.fetch_span(Arc::new(span)).await }
            })
            .buffer_unordered(fetches)
            .map_ok(|chunks| stream::iter(chunks.into_iter().map(Ok)))
            .try_flatten();
        let mut failed = false;
        zeros
            .chain(fetched)
            .take_while(move |item| {
                let go_on = !failed;
                failed = item.is_err();
                std::future::ready(go_on)
            })
            .boxed()
    }

    /// Reads a whole object of at most `cap` bytes: for small ones.
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
        self.chunks
            .get(index as usize)
            .copied()
            .ok_or(ReadError::NoChunk {
                checkpoint: self.checkpoint,
                index,
                chunks: self.chunks.len(),
            })
    }

    #[expect(clippy::type_complexity, reason = "used once, right above")]
    fn plan(
        &self,
        indices: impl IntoIterator<Item = u32>,
    ) -> Result<(Vec<(u32, ChunkEntry)>, Vec<Span>), ReadError> {
        let wanted: BTreeSet<u32> = indices.into_iter().collect();
        let mut zeros = Vec::new();
        let mut stored = Vec::with_capacity(wanted.len());
        for index in wanted {
            let chunk = self.chunk(index)?;
            let list = if chunk.codec == Codec::Zero {
                &mut zeros
            } else {
                &mut stored
            };
            list.push((index, chunk));
        }
        stored.sort_unstable_by_key(|(_, chunk)| (chunk.pack, chunk.offset));
        let limit = self.job.options().fetch_size;
        let mut spans: Vec<Span> = Vec::new();
        let mut open: Option<u32> = None;
        for (index, chunk) in stored {
            let end = chunk.offset + u64::from(chunk.stored);
            let raw = u64::from(chunk.raw);
            if open == Some(chunk.pack)
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
            let Some(pack) = self.packs.get(chunk.pack as usize) else {
                continue;
            };
            open = Some(chunk.pack);
            spans.push(Span {
                pack: pack.id,
                start: chunk.offset,
                end,
                raw,
                chunks: vec![(index, chunk)],
            });
        }
        Ok((zeros, spans))
    }

    async fn fetch_span(&self, span: Arc<Span>) -> Result<Vec<(u32, Bytes)>, ReadError> {
        if let Some(near) = self.cached_span(&span).await {
            return Ok(near);
        }
        match self.fetch_span_once(&span).await {
            Err(ReadError::Damaged { .. }) => self.fetch_span_once(&span).await,
            other => other,
        }
    }

    /// From the cache, if all of it is there and right.
    async fn cached_span(&self, span: &Arc<Span>) -> Option<Vec<(u32, Bytes)>> {
        let options = self.job.options();
        let (cache, span) = (options.cache.clone()?, span.clone());
        let (checkpoint, key) = (self.checkpoint, self.job.pack_key(&span.pack));
        let looked = options.compute.run(move || {
            let bytes = cache.read(&key, span.start..span.end)?;
            match decode_span(checkpoint, &span, &bytes) {
                Ok(chunks) => Some(chunks),
                Err(error) => {
                    tracing::warn!(%error, "only its copy on this disk: the store is asked");
                    cache.remove(&key);
                    None
                }
            }
        });
        looked.await.ok().flatten()
    }

    async fn fetch_span_once(&self, span: &Arc<Span>) -> Result<Vec<(u32, Bytes)>, ReadError> {
        let checkpoint = self.checkpoint;
        let pack = span.pack;
        let key = self.job.pack_key(&pack);
        let bytes = self
            .job
            .backend()
            .read_range(&key, span.start..span.end)
            .await
            .map_err(|source| match source.kind() {
                FaultKind::NotFound => ReadError::PackLost {
                    checkpoint,
                    pack,
                    source,
                },
                _ => ReadError::Store { checkpoint, source },
            })?;
        let task_span = span.clone();
        let decoding = self
            .job
            .options()
            .compute
            .run(move || decode_span(checkpoint, &task_span, &bytes));
        decoding.await.unwrap_or_else(|error| {
            let detail = format!("the task that decodes it ended: {error}");
            let source = StoreFault::with_kind("read", key, FaultKind::Transient, detail);
            Err(ReadError::Store { checkpoint, source })
        })
    }
}

fn decode_span(
    checkpoint: CheckpointNumber,
    span: &Span,
    bytes: &Bytes,
) -> Result<Vec<(u32, Bytes)>, ReadError> {
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
        let raw = codec::decode(chunk.codec, bytes.slice(from..to), chunk.raw).map_err(damaged)?;
        let found = Digest::of(&raw);
        if found != chunk.digest {
            return Err(damaged(format!("its bytes have digest {found}")));
        }
        decoded.push((index, raw));
    }
    Ok(decoded)
}

/// A chunk of which nothing is stored. Of each length there is only one, so checking its name costs nothing.
fn zeros_of(checkpoint: CheckpointNumber, chunk: &ChunkEntry) -> Result<Bytes, ReadError> {
    codec::decode(Codec::Zero, Bytes::new(), chunk.raw)
        .and_then(|zeros| {
            if Digest::of(&zeros) == chunk.digest {
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
