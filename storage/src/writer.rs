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
//! Chunks are checked against the name they were given when the job was quiet: what was copied while the job ran on and
//! changed meanwhile never becomes part of an image. Before the record is created, all packs of the manifest are
//! looked up once more, and what was collected since the writer began is compared with them (see `collect`).
//!
//! # Cancellation
//!
//! Dropping a future of put leaves its chunk out. Dropping the writer (the last clone) or [`CheckpointWriter::abort`]
//! stops its uploads. What was uploaded is invisible and is left to the next checkpoint, which goes on with it (see
//! `leftovers`), or to collection: a writer never deletes packs, as another one may lean on them by then.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::codec::{self, Codec, Pressure};
use crate::collect::{Candidate, CollectOptions};
use crate::collection::ManifestRef;
use crate::crypt::{Naming, Refused};
use crate::fault::{FaultKind, StoreFault};
use crate::head::{HeadRecord, RecordKind};
use crate::index::Index;
use crate::job::{Appended, Durability, Job, JobError, Log, Note};
use crate::leftovers::Leftovers;
use crate::manifest::{
    ChunkEntry, Identity, Location, Manifest, ManifestBody, ManifestError, PackEntry,
};
use crate::medium::Medium;
use crate::names::{CheckpointNumber, Epoch, JobName, Nonce, PackId, UnixMillis};
use crate::pack::{self, PackBuilder};
use crate::slabs::Slabs;
use crate::{Digest, MAX_CHUNK_SIZE};

/// Why a chunk was not taken.
#[derive(Debug, Clone, thiserror::Error)]
pub enum PutError {
    /// The bytes are not those that the name was made of.
    #[error(
        "the bytes put as chunk {expected} have digest {found}: they changed since they were named"
    )]
    DigestMismatch {
        /// The name given.
        expected: Digest,
        /// The digest of the bytes.
        found: Digest,
    },
    /// The chunk is empty or too large.
    #[error("chunk {digest} has {length} bytes: 1 to {MAX_CHUNK_SIZE} can be stored")]
    Size {
        /// Its name.
        digest: Digest,
        /// Its length in bytes.
        length: usize,
    },
    /// An upload of this writer failed before; the checkpoint cannot be completed.
    #[error("a pack of this checkpoint could not be stored: {0}")]
    Upload(StoreFault),
    /// The writer was committed or aborted.
    #[error("this checkpoint was committed or aborted already")]
    Closed,
    /// The chunk could not be encoded.
    #[error("chunk {digest} could not be encoded: {detail}")]
    Encode {
        /// Its name.
        digest: Digest,
        /// Why.
        detail: String,
    },
}

impl PutError {
    /// Whether trying again, with nothing changed, cannot help. Of a [`Self::DigestMismatch`] the chunk must be read
    /// again or the checkpoint dropped: the same bytes stay wrong.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Upload(fault) => fault.is_permanent(),
            _ => true,
        }
    }
}

/// Why a checkpoint did not become visible.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Someone else took the job over.
    #[error(
        "checkpoint not committed: job {job} was taken over{by}, epoch {epoch} is no longer the newest; this phos-ft \
         stops writing to its history"
    )]
    Fenced {
        /// The job.
        job: JobName,
        /// Our epoch.
        epoch: Epoch,
        /// Who took it over, if that is known: " by HOLDER".
        by: String,
    },
    /// A pack could not be stored.
    #[error("checkpoint not committed: a pack could not be stored: {0}")]
    Upload(StoreFault),
    /// The manifest could not be made of the body.
    #[error("checkpoint not committed: {0}")]
    Manifest(#[from] ManifestError),
    /// A pack that an earlier checkpoint stored is gone. The next checkpoint stores its chunks again.
    #[error(
        "checkpoint not committed: {reason}; the next checkpoint will store what it held again"
    )]
    PackLost {
        /// Which pack, and what is wrong with it.
        reason: String,
    },
    /// A request failed before the checkpoint could have become visible.
    #[error("checkpoint not committed: {0}")]
    Store(#[from] StoreFault),
    /// The creation of the record was not answered: the checkpoint may be visible or not. [`Job::state`] tells.
    #[error("it is not known whether the checkpoint was committed: {0}")]
    Unknown(StoreFault),
    /// The writer was committed or aborted.
    #[error("this checkpoint was committed or aborted already")]
    Closed,
}

impl CommitError {
    /// Whether another checkpoint would fail in the same way, with nothing changed.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Upload(fault) | Self::Store(fault) | Self::Unknown(fault) => fault.is_permanent(),
            Self::PackLost { .. } => false,
            Self::Fenced { .. } | Self::Manifest(_) | Self::Closed => true,
        }
    }

    /// Whether the job was taken over, so that this process must stop writing.
    #[must_use]
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }
}

/// What became of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// It was stored by this writer.
    Stored,
    /// It was stored already.
    Known,
}

/// What a writer has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WriteStats {
    /// Chunks that this writer took in.
    pub new_chunks: u64,
    /// Their bytes before encoding.
    pub new_bytes: u64,
    /// Their bytes after encoding.
    pub encoded_bytes: u64,
    /// Bytes of packs stored so far, indices included.
    pub stored_bytes: u64,
    /// Packs stored so far.
    pub stored_packs: u64,
}

/// A committed checkpoint.
#[derive(Debug, Clone)]
pub struct Commit {
    /// Its number.
    pub number: CheckpointNumber,
    /// Its manifest.
    pub manifest: Manifest,
    /// Length of the manifest in bytes.
    pub manifest_bytes: u64,
    /// What was written for it.
    pub stats: WriteStats,
    /// Distinct chunks that earlier checkpoints had stored.
    pub reused_chunks: u64,
    /// Their bytes before encoding.
    pub reused_bytes: u64,
    /// What an unfinished checkpoint had stored for it.
    pub resumed: Resumed,
}

/// What a checkpoint took of unfinished ones: it was not uploaded again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resumed {
    /// Chunks.
    pub chunks: u64,
    /// Their bytes before encoding.
    pub bytes: u64,
    /// The packs they are in.
    pub packs: u64,
    /// Lengths of those packs.
    pub pack_bytes: u64,
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
    /// What unfinished checkpoints stored.
    left: Leftovers,
    /// What was put, and where it lies; `None` while its pack is open.
    new: Mutex<HashMap<Digest, Option<Location>>>,
    /// Puts that began.
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
    /// Which put it was.
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

/// The index of a pack could not be encrypted, which only happens without memory.
pub(crate) fn sealing_failed(key: &str) -> StoreFault {
    let detail = "its index cannot be encrypted".to_owned();
    StoreFault::with_kind("write", key, FaultKind::Transient, detail)
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
    pub(crate) fn new(
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

    /// How its chunks are named.
    #[must_use]
    pub fn naming(&self) -> Naming {
        self.inner.job.naming()
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

    /// What was done so far.
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

    /// How safe it will be.
    #[must_use]
    pub fn durability(&self) -> Durability {
        self.inner.job.durability()
    }

    /// Waits for all packs, writes the manifest, and makes the checkpoint visible. Every chunk that `body` names must be
    /// [known](Self::contains).
    ///
    /// On an error nothing is visible, except for [`CommitError::Unknown`]; what was uploaded is left to the next
    /// checkpoint, which uses it, or to collection.
    pub async fn commit(self, body: ManifestBody, now: UnixMillis) -> Result<Commit, CommitError> {
        let told = Instant::now();
        let result = self.try_commit(body, now).await;
        if result.is_ok() {
            let note = lock(&self.inner.note).take();
            if let Some(note) = note {
                note.remove().await;
            }
            self.inner.job.leftovers_are_used();
            let writers = &self.inner.left.writers;
            self.inner.job.forget_leftovers(writers).await;
        } else {
            self.make_room(now, told).await;
        }
        result
    }

    /// If the store is full, what this writer stored is given up, so that there is room for a smaller checkpoint. Only a
    /// collection may do that. The time was told a while ago, before the last packs went up.
    async fn make_room(&self, now: UnixMillis, told: Instant) {
        let full = (lock(&self.inner.shared.failed).as_ref())
            .is_some_and(|fault| fault.kind() == FaultKind::NoSpace);
        if !full {
            return;
        }
        let note = lock(&self.inner.note).take();
        if let Some(note) = note {
            note.remove().await;
        }
        let keep = |all: &[Candidate]| all.iter().map(|c| c.number).collect();
        let options = CollectOptions {
            epoch: Some(self.inner.epoch),
            repack_below_percent: 0,
            rounds: 1,
            ..CollectOptions::default()
        };
        let clock = move || {
            let since = u64::try_from(told.elapsed().as_millis()).unwrap_or(u64::MAX);
            UnixMillis(now.0.saturating_add(since))
        };
        if let Err(error) = self.inner.job.collect(&keep, options, clock).await {
            tracing::warn!(%error, "the store is full, and what was stored in vain is still there");
        }
    }

    async fn try_commit(&self, body: ManifestBody, now: UnixMillis) -> Result<Commit, CommitError> {
        let inner = &self.inner;
        let job = &inner.job;
        self.finish_uploads().await?;
        // A store that is away is not one that lost its packs.
        job.check_expected_with(0).await?;
        let mut identity = Identity {
            job: job.name().clone(),
            number: CheckpointNumber(0),
            epoch: inner.epoch,
            created: now,
        };
        let lengths = lock(&inner.shared.done).clone();
        let pack_length = |id: &PackId| {
            lengths
                .get(id)
                .copied()
                .or_else(|| inner.known.pack_length(id))
                .or_else(|| inner.left.packs.get(id).copied())
        };
        let mut manifest = Manifest::build(
            identity.clone(),
            body,
            job.crypt().overhead(),
            |digest| self.locate(digest),
            pack_length,
        )?;
        if let Err(error) = self.check_packs(&manifest.packs).await {
            // Of one that was taken over, others may have swept what it made.
            if matches!(error, CommitError::PackLost { .. }) {
                let seen = job.read_log().await?;
                if seen.epoch != Some(inner.epoch) {
                    *job.inner.log.lock().await = Some(seen);
                    let by = job.usurper(seen.tail).await;
                    return Err(CommitError::Fenced {
                        job: job.name().clone(),
                        epoch: inner.epoch,
                        by,
                    });
                }
            }
            return Err(error);
        }

        let mut log = job.inner.log.lock().await;
        let mut seen = match *log {
            Some(seen) => seen,
            None => job.read_log().await?,
        };
        let stats = self.stats();
        let resumed = self.resumed(&manifest);
        let mut checked = inner.known.horizon();
        loop {
            if let Err(fault) = job.check_expected_with(seen.tail).await {
                *log = None;
                return Err(fault.into());
            }
            if seen.epoch != Some(inner.epoch) {
                *log = Some(seen);
                let by = job.usurper(seen.tail).await;
                return Err(CommitError::Fenced {
                    job: job.name().clone(),
                    epoch: inner.epoch,
                    by,
                });
            }
            let swept = job.swept_between(checked, seen.tail, &manifest.packs);
            if let Some(reason) = swept.await? {
                *log = Some(seen);
                job.set_index(None);
                return Err(CommitError::PackLost { reason });
            }
            checked = checked.max(seen.tail);
            let number = seen.tail + 1;
            identity.number = CheckpointNumber(number);
            manifest.number = identity.number;
            let bytes = Bytes::from(manifest.encode(job.crypt())?);
            let digest = Digest::of(&bytes);
            let name = format!("{number:020}-{}", &digest.to_string()[..16]);
            let key = job.key(&format!("manifests/{name}"));
            let manifest_bytes = bytes.len() as u64;
            job.backend().write(&key, bytes).await?;
            let named = ManifestRef {
                name: name.clone(),
                digest,
                length: manifest_bytes,
            };
            let record = HeadRecord {
                number,
                epoch: inner.epoch,
                created: now,
                nonce: inner.nonce,
                kind: RecordKind::Checkpoint {
                    manifest: name,
                    digest,
                    length: manifest_bytes,
                    image_bytes: manifest.image_bytes(),
                    new_bytes: stats.new_bytes + resumed.bytes,
                    stored_bytes: stats.stored_bytes + resumed.pack_bytes,
                    stop_us: manifest.body.timings.stop_us,
                    trigger: manifest.body.trigger.chars().take(200).collect(),
                },
            };
            // From here until the answer is known, nothing remembered of the log can be relied on.
            *log = None;
            match job.append(&record).await {
                Ok(Appended::Done) => {
                    *log = Some(Log {
                        tail: number,
                        epoch: Some(inner.epoch),
                    });
                    drop(log);
                    job.index_committed(&manifest, named);
                    job.used_in_caches(&manifest.packs);
                    let (reused_chunks, reused_bytes) = self.reused(&manifest);
                    return Ok(Commit {
                        number: manifest.number,
                        manifest,
                        manifest_bytes,
                        stats,
                        reused_chunks,
                        reused_bytes,
                        resumed,
                    });
                }
                Ok(Appended::Lost) => {
                    // Invisible, whoever won: no record names it.
                    let _ = job.backend().delete_once(&key).await;
                    seen = job.read_log().await?;
                }
                Err(JobError::Store(fault)) => return Err(CommitError::Unknown(fault)),
                Err(JobError::Encode(error)) => return Err(ManifestError::from(error).into()),
                Err(other) => {
                    let detail = ManifestError::Inconsistent {
                        detail: other.to_string(),
                    };
                    return Err(CommitError::Manifest(detail));
                }
            }
        }
    }

    async fn finish_uploads(&self) -> Result<(), CommitError> {
        let mut packer = self.inner.packer.lock().await;
        if packer.closed {
            return Err(CommitError::Closed);
        }
        packer.closed = true;
        let flushed = self.upload(&mut packer).await;
        // Nothing more is encoded; what is on its way keeps its own.
        self.inner.slabs.release();
        while let Some(ended) = packer.uploads.join_next().await {
            if let Err(error) = ended {
                let detail = format!("its task ended: {error}");
                let fault = StoreFault::with_kind("write", "a pack", FaultKind::Transient, detail);
                return Err(CommitError::Upload(fault));
            }
        }
        match flushed.and_then(|()| self.check_uploads()) {
            Ok(()) => Ok(()),
            Err(PutError::Upload(fault)) => Err(CommitError::Upload(fault)),
            Err(_) => Err(CommitError::Closed),
        }
    }

    async fn check_packs(&self, packs: &[PackEntry]) -> Result<(), CommitError> {
        let job = &self.inner.job;
        if job.backend().medium() == Medium::Discard {
            return Ok(());
        }
        let present = job.packs().await?;
        if let Some(reason) = packs.iter().find_map(|pack| present.check(pack).err()) {
            // What is known of the store is not so: read it again before the next checkpoint.
            job.set_index(None);
            return Err(CommitError::PackLost { reason });
        }
        Ok(())
    }

    fn reused(&self, manifest: &Manifest) -> (u64, u64) {
        let new = lock(&self.inner.new);
        let left = &self.inner.left.packs;
        let pack = |chunk: &ChunkEntry| manifest.packs.get(chunk.pack as usize).map(|pack| pack.id);
        let reused = manifest.chunks.iter().filter(|chunk| {
            !new.contains_key(&chunk.digest)
                && (chunk.codec == Codec::Zero
                    || pack(chunk).is_none_or(|id| !left.contains_key(&id)))
        });
        reused.fold((0, 0), |(chunks, bytes), chunk| {
            (chunks + 1, bytes + u64::from(chunk.raw))
        })
    }

    fn resumed(&self, manifest: &Manifest) -> Resumed {
        let mut resumed = Resumed::default();
        let left = &self.inner.left.packs;
        if left.is_empty() {
            return resumed;
        }
        for pack in manifest.packs.iter().filter(|p| left.contains_key(&p.id)) {
            resumed.packs += 1;
            resumed.pack_bytes += pack.length;
        }
        for (_, location) in manifest.locations() {
            if location.pack.is_some_and(|pack| left.contains_key(&pack)) {
                resumed.chunks += 1;
                resumed.bytes += u64::from(location.raw);
            }
        }
        resumed
    }

    /// Gives the checkpoint up: stops its uploads. What was stored for it is left to the next checkpoint, or to
    /// collection.
    pub async fn abort(self, now: UnixMillis) {
        let told = Instant::now();
        // Puts that wait for room give up, so that the lock is free.
        self.inner.upload_slots.close();
        self.inner.encoders.close();
        let mut packer = self.inner.packer.lock().await;
        if packer.closed {
            return;
        }
        packer.closed = true;
        packer.open.clear();
        packer.uploads.shutdown().await;
        self.inner.slabs.release();
        drop(packer);
        self.make_room(now, told).await;
        // Not when the last clone goes, but now: nothing comes after it.
        drop(lock(&self.inner.note).take());
    }
}
