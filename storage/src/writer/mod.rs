//! Writing a checkpoint: chunks go in, packs go up behind, a commit makes it visible.
//!
//! # Memory
//!
//! A writer holds one pack being filled and `uploads` packs on their way, in slabs (see `slabs`); [`CheckpointWriter::put`]
//! waits while that much is held. Checking and encoding run on a bounded number of blocking tasks. No buffer of the caller is
//! kept after a put returns.
//!
//! # Order
//!
//! The chunks of a pack lie in the order in which their puts began, which should be the one in which they are wanted back,
//! however long each took to encode: they are put in order when the pack is closed. A put that waited for earlier ones
//! instead would let encoders idle for the slowest of them.
//!
//! # Consistency
//!
//! Chunks are checked against the name they were given when the job was quiet: memory that was copied while the job ran, and
//! changed meanwhile, never becomes part of an image. Before the record is created, all packs of the manifest are looked up once
//! more, and what was collected since the writer began is compared with them (see `collect`).
//!
//! # Cancellation
//!
//! Dropping a future of put leaves its chunk out. Dropping the writer (the last clone) or [`CheckpointWriter::abort`] stops its
//! uploads. What was uploaded is invisible and is left to the next checkpoint, which continues with it (see `leftovers`), or to
//! collection: a writer never deletes packs, as another one may reference them by then.

mod begin;
mod commit;
mod error;
mod leftovers;
mod slabs;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_recursion::async_recursion as boxed;
use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::commit::{Commit, Resumed};
pub use self::error::{CommitError, PutError};
use self::leftovers::Leftovers;
use self::slabs::Slabs;
use crate::codec::{self, Codec, Pressure};
use crate::crypt::{Naming, Refused};
use crate::fault::{StoreFault, sealing_failed};
use crate::index::Index;
use crate::job::{Durability, Job, Note};
use crate::names::{Epoch, Nonce, PackId};
use crate::pack::{self, Location, PackBuilder};
use crate::{Digest, MAX_CHUNK_SIZE};

/// What became of a chunk that was put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The chunk is stored by this writer.
    Stored,
    /// The chunk was stored already.
    Known,
}

/// The counts of what a writer has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// Chunks that this writer took in.
    pub new_chunks: u64,
    /// The bytes of these chunks before encoding.
    pub new_bytes: u64,
    /// The bytes of these chunks after encoding.
    pub encoded_bytes: u64,
    /// Bytes of packs stored so far, indices included.
    pub stored_bytes: u64,
    /// Packs stored so far.
    pub stored_packs: u64,
}

/// A checkpoint being written. Cheap to clone; clones write the same checkpoint, so that puts can run concurrently.
#[derive(Clone)]
pub struct CheckpointWriter {
    inner: Arc<Inner>,
}

struct Inner {
    job: Job,
    epoch: Epoch,
    nonce: Nonce,
    /// Until the writer has ended; then it is taken back.
    note: Mutex<Option<Note>>,
    known: Arc<Index>,
    /// What unfinished checkpoints stored and this one may use.
    left: Leftovers,
    /// What was put, and where it lies; `None` while its pack is open.
    new: Mutex<HashMap<Digest, Option<Location>>>,
    /// The number of puts that began.
    puts: AtomicU64,
    slabs: Arc<Slabs>,
    packer: tokio::sync::Mutex<Packer>,
    upload_slots: Arc<Semaphore>,
    encoders: Arc<Semaphore>,
    /// Whether a chunk had to wait for an encoder since the last pack was closed.
    encoders_are_full: AtomicBool,
    shared: Arc<Shared>,
    new_bytes: AtomicU64,
    encoded_bytes: AtomicU64,
}

/// What upload tasks share with their writer.
#[derive(Default)]
struct Shared {
    done: Mutex<HashMap<PackId, u64>>,
    failed: Mutex<Option<StoreFault>>,
}

/// A chunk that waits for its pack to be closed.
struct Waiting {
    /// The number of the put that brought the chunk.
    put: u64,
    digest: Digest,
    codec: Codec,
    stored: Vec<Bytes>,
    raw: u32,
}

#[derive(Default)]
struct Packer {
    /// What is in the open pack, in the order in which it was encoded.
    open: Vec<Waiting>,
    /// Stored bytes of them.
    stored: u64,
    sequence: u32,
    uploads: JoinSet<()>,
    closed: bool,
}

/// A lock whose holder panicked guards plain data that is whole at every instant.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for CheckpointWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "CheckpointWriter({:?}, epoch {})",
            self.inner.job, self.inner.epoch
        )
    }
}

impl CheckpointWriter {
    fn new(
        job: Job,
        epoch: Epoch,
        note: Note,
        nonce: Nonce,
        known: Arc<Index>,
        left: Leftovers,
    ) -> Self {
        let options = job.options();
        let inner = Inner {
            nonce,
            note: Mutex::new(Some(note)),
            known,
            left,
            new: Mutex::default(),
            puts: AtomicU64::new(0),
            slabs: Arc::default(),
            packer: tokio::sync::Mutex::default(),
            upload_slots: Arc::new(Semaphore::new(options.uploads.max(1))),
            encoders: Arc::new(Semaphore::new(options.encoders.max(1))),
            encoders_are_full: AtomicBool::new(false),
            shared: Arc::default(),
            new_bytes: AtomicU64::new(0),
            encoded_bytes: AtomicU64::new(0),
            job,
            epoch,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Whether a chunk is stored already, by an earlier checkpoint or by this writer: then its bytes need not be copied.
    #[must_use]
    pub fn contains(&self, digest: &Digest) -> bool {
        lock(&self.inner.new).contains_key(digest) || self.stored_before(digest).is_some()
    }

    /// The way in which the checkpoint's chunks are named.
    #[must_use]
    pub fn naming(&self) -> Naming {
        self.inner.job.naming()
    }

    /// Says how many bytes the image will have once they are decoded: caches that have room for them keep them so. Before the first
    /// put.
    pub fn plan_for(&self, image_bytes: u64) {
        let caches = self.inner.job.options().caches.iter();
        caches.for_each(|cache| cache.plan_for(image_bytes));
    }

    /// Says which chunks the image will have, so that caches let others go first. Takes a microsecond for each: where that may block.
    pub fn will_have(&self, digests: &[Digest]) {
        let caches = self.inner.job.options().caches.iter();
        caches.for_each(|cache| cache.chunks_used(digests.iter().copied()));
    }

    fn locate(&self, digest: &Digest) -> Option<Location> {
        let new = lock(&self.inner.new).get(digest).copied();
        new.unwrap_or_else(|| self.stored_before(digest))
    }

    fn stored_before(&self, digest: &Digest) -> Option<Location> {
        let inner = &self.inner;
        let known = inner.known.get(digest);
        known.or_else(|| inner.left.chunks.get(digest).copied())
    }

    /// Stores a chunk under the name it was given. Puts may run concurrently, and should: each waits for the checking
    /// and encoding of its chunk, and for room.
    #[boxed]
    pub async fn put(&self, digest: Digest, bytes: Bytes) -> Result<PutOutcome, PutError> {
        let inner = &self.inner;
        self.check_uploads()?;
        if bytes.is_empty() || bytes.len() > MAX_CHUNK_SIZE {
            return Err(PutError::Size {
                digest,
                length: bytes.len(),
            });
        }
        if self.contains(&digest) {
            return Ok(PutOutcome::Known);
        }
        let length = bytes.len() as u32;
        let put = inner.puts.fetch_add(1, Ordering::Relaxed);
        let (codec, stored) = self.encode(digest, bytes).await?;

        let mut packer = inner.packer.lock().await;
        if packer.closed {
            return Err(PutError::Closed);
        }
        // Another put of the same chunk may have been faster.
        if self.contains(&digest) {
            return Ok(PutOutcome::Known);
        }
        let stored_length: u64 = stored.iter().map(|piece| piece.len() as u64).sum();
        let location = if codec == Codec::Zero {
            Some(Location {
                pack: None,
                offset: 0,
                stored: 0,
                raw: length,
                codec,
            })
        } else {
            self.make_place(&mut packer, stored_length).await?;
            packer.stored += stored_length;
            packer.open.push(Waiting {
                put,
                digest,
                codec,
                stored,
                raw: length,
            });
            None
        };
        lock(&inner.new).insert(digest, location);
        inner
            .new_bytes
            .fetch_add(u64::from(length), Ordering::Relaxed);
        inner
            .encoded_bytes
            .fetch_add(stored_length, Ordering::Relaxed);
        Ok(PutOutcome::Stored)
    }

    async fn encode(&self, digest: Digest, bytes: Bytes) -> Result<(Codec, Vec<Bytes>), PutError> {
        let failed = |detail: String| PutError::Encode { digest, detail };
        if self.inner.encoders.available_permits() == 0 {
            self.inner.encoders_are_full.store(true, Ordering::Relaxed);
        }
        let permit = self
            .inner
            .encoders
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| PutError::Closed)?;
        let policy = self.inner.job.options().encoding.clone();
        let crypt = self.inner.job.crypt().clone();
        let slabs = self.inner.slabs.clone();
        let caches = self.inner.job.options().caches.clone();
        // The permit moves into the task: a dropped put does not make room before its task has ended.
        let task = self.inner.job.options().compute.run(move || {
            let _permit = permit;
            let found = crypt.name(&bytes);
            if found != digest {
                return Err(PutError::DigestMismatch {
                    expected: digest,
                    found,
                });
            }
            let failed = |detail| PutError::Encode { digest, detail };
            let keep = |codec, encoded: &[u8]| {
                let stored = crypt.seal_chunk(&digest, codec, bytes.len() as u32, encoded)?;
                Ok(slabs.keep(&stored))
            };
            let (codec, stored) = codec::encode(&bytes, policy.as_ref(), keep)
                .map_err(|error| failed(error.to_string()))?;
            let stored = stored.map_err(|_: Refused| failed("it cannot be encrypted".into()))?;
            if codec != Codec::Zero {
                caches
                    .iter()
                    .for_each(|cache| cache.keep_chunk(&digest, &bytes));
            }
            Ok((codec, stored))
        });
        task.await.map_err(failed)?
    }

    /// Closes the open pack if so many stored bytes more would be too much for it.
    async fn make_place(&self, packer: &mut Packer, length: u64) -> Result<(), PutError> {
        let job = &self.inner.job;
        // Without its index, as a limit is not that exact.
        let begun = pack::HEADER + packer.stored;
        let full = packer.open.len() >= pack::MAX_CHUNKS as usize
            || begun + length > job.options().pack_size;
        if full {
            self.upload(packer).await?;
        }
        Ok(())
    }

    /// Closes the open pack, if there is one, and starts its upload as soon as there is room.
    async fn upload(&self, packer: &mut Packer) -> Result<(), PutError> {
        if packer.open.is_empty() {
            return Ok(());
        }
        self.inner.job.options().encoding.pack_closed(Pressure {
            link_is_full: self.inner.upload_slots.available_permits() == 0,
            encoders_are_full: self.inner.encoders_are_full.swap(false, Ordering::Relaxed),
        });
        let permit = self
            .inner
            .upload_slots
            .clone()
            .acquire_owned()
            .await
            .map_err(|_| PutError::Closed)?;
        self.check_uploads()?;
        let job = self.inner.job.clone();
        let id = PackId {
            writer: self.inner.nonce,
            sequence: packer.sequence,
        };
        packer.sequence += 1;
        packer.stored = 0;
        let mut chunks = std::mem::take(&mut packer.open);
        chunks.sort_unstable_by_key(|chunk| chunk.put);
        let mut pack = PackBuilder::new(job.crypt(), id);
        for chunk in chunks {
            let place = pack.push(chunk.digest, chunk.codec, chunk.stored, chunk.raw);
            lock(&self.inner.new).insert(chunk.digest, Some(place));
        }
        let (pieces, length) = pack
            .finish()
            .ok_or_else(|| PutError::Upload(sealing_failed(&job.pack_key(&id))))?;
        let shared = self.inner.shared.clone();
        while packer.uploads.try_join_next().is_some() {}
        packer.uploads.spawn(async move {
            let _permit = permit;
            match job
                .backend()
                .write_pack(&job.pack_key(&id), pieces, job.options())
                .await
            {
                Ok(()) => {
                    lock(&shared.done).insert(id, length);
                }
                Err(fault) => {
                    tracing::warn!(pack = %id, %fault, "a pack could not be stored");
                    lock(&shared.failed).get_or_insert(fault);
                }
            }
        });
        Ok(())
    }

    fn check_uploads(&self) -> Result<(), PutError> {
        match &*lock(&self.inner.shared.failed) {
            Some(fault) => Err(PutError::Upload(fault.clone())),
            None => Ok(()),
        }
    }

    /// What the writer has done so far.
    #[must_use]
    pub fn stats(&self) -> WriteStats {
        let done = lock(&self.inner.shared.done);
        WriteStats {
            new_chunks: lock(&self.inner.new).len() as u64,
            new_bytes: self.inner.new_bytes.load(Ordering::Relaxed),
            encoded_bytes: self.inner.encoded_bytes.load(Ordering::Relaxed),
            stored_bytes: done.values().sum(),
            stored_packs: done.len() as u64,
        }
    }

    /// What the checkpoint will survive once it is committed.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.inner.job.durability()
    }
}
