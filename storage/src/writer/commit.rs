//! Ending a checkpoint: a commit that makes it visible, or giving it up.
//!
//! # Consistency
//!
//! A commit compares its packs with what was swept between the log that its writer read and the number that it tries (5 of
//! the protocol in `collect`), and writes its manifest, which has that number, before the record.

use std::time::Instant;

use async_recursion::async_recursion as boxed;
use bytes::Bytes;

use super::{CheckpointWriter, CommitError, PutError, WriteStats, lock};
use crate::Digest;
use crate::codec::Codec;
use crate::collect::{Candidate, CollectOptions};
use crate::collection::{self, ManifestRef};
use crate::fault::{FaultKind, StoreFault};
use crate::head::RecordKind;
use crate::job::{Append, AppendError, Draft, JobError, Log, LogView};
use crate::manifest::{ChunkEntry, Identity, Manifest, ManifestBody, PackEntry};
use crate::medium::Medium;
use crate::names::{CheckpointNumber, PackId, UnixMillis};

/// A committed checkpoint.
#[derive(Debug, Clone)]
pub struct Commit {
    /// The number of the checkpoint in the job's log.
    pub number: CheckpointNumber,
    /// The manifest of the checkpoint.
    pub manifest: Manifest,
    /// Length of the manifest in bytes.
    pub manifest_bytes: u64,
    /// What was written for the checkpoint.
    pub stats: WriteStats,
    /// Distinct chunks that earlier checkpoints had stored.
    pub reused_chunks: u64,
    /// The bytes of these chunks before encoding.
    pub reused_bytes: u64,
    /// What an unfinished checkpoint had stored for it.
    pub resumed: Resumed,
}

/// What a checkpoint took of unfinished ones: it was not uploaded again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resumed {
    /// The number of chunks.
    pub chunks: u64,
    /// The bytes of these chunks before encoding.
    pub bytes: u64,
    /// The number of packs that the chunks lie in.
    pub packs: u64,
    /// Lengths of those packs.
    pub pack_bytes: u64,
}

/// The record of a checkpoint whose packs are stored.
struct Finished<'a> {
    writer: &'a CheckpointWriter,
    manifest: Manifest,
    stats: WriteStats,
    resumed: Resumed,
    now: UnixMillis,
    /// Up to this record nothing was swept of what the manifest names.
    checked: u64,
    /// The manifest that the last try wrote.
    written: Option<ManifestRef>,
}

impl Append for Finished<'_> {
    type Error = CommitError;

    async fn next(&mut self, seen: Log) -> Result<Draft, CommitError> {
        let Self {
            writer,
            manifest,
            stats,
            resumed,
            ..
        } = self;
        let inner = &writer.inner;
        let job = &inner.job;
        if let Some(lost) = self.written.take() {
            // Invisible, whoever won: no record names it.
            let _ = job.backend().delete_once(&writer.key_of(&lost)).await;
        }
        job.check_in_force(inner.epoch, seen).await?;
        let swept = job.swept_between(self.checked, seen.tail, &manifest.packs);
        if let Some(reason) = swept.await? {
            job.set_index(None);
            // Where somebody has taken the job over since the log was read, this writer's note counts no more, and that is what is to be said:
            // the packs are no one's loss.
            let now = job.read_log().await?;
            if now.epoch.is_some() {
                job.check_in_force(inner.epoch, now).await?;
            }
            return Err(CommitError::PackLost { reason });
        }
        self.checked = self.checked.max(seen.tail);
        manifest.number = CheckpointNumber(seen.tail + 1);
        let named = writer.write_manifest(manifest).await?;
        self.written = Some(named.clone());
        Ok(Draft {
            epoch: inner.epoch,
            created: self.now,
            nonce: inner.nonce,
            kind: RecordKind::Checkpoint {
                manifest: named.name,
                digest: named.digest,
                length: named.length,
                image_bytes: manifest.image_bytes(),
                new_bytes: stats.new_bytes + resumed.bytes,
                stored_bytes: stats.stored_bytes + resumed.pack_bytes,
                stop_us: manifest.body.timings.stop_us,
                trigger: manifest.body.trigger.chars().take(200).collect(),
            },
        })
    }
}

impl CheckpointWriter {
    /// Waits for all packs, writes the manifest, and makes the checkpoint visible. Every chunk that `body` names must be
    /// [known](Self::contains).
    ///
    /// On an error nothing is visible, except for [`CommitError::Unknown`]; what was uploaded is left to the next
    /// checkpoint, which uses it, or to collection.
    #[boxed]
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
        let manifest = self.build_manifest(body, now)?;
        if let Err(error) = self.check_packs(&manifest.packs).await {
            return Err(self.fenced_instead_of(error).await?);
        }
        let stats = self.stats();
        let resumed = self.resumed(&manifest);
        let mut record = Finished {
            writer: self,
            manifest,
            stats,
            resumed,
            now,
            checked: inner.known.horizon(),
            written: None,
        };
        let appended = job.append(LogView::Remembered, &mut record).await;
        let appended = appended.map_err(|error| match error {
            AppendError::NotTried(error) => error,
            AppendError::Unknown(JobError::Store(fault)) => CommitError::Unknown(fault),
            AppendError::Unknown(other) => other.into(),
        })?;
        let Finished {
            manifest, written, ..
        } = record;
        assert_eq!(
            appended.number, manifest.number.0,
            "the record of a checkpoint has the number of its manifest"
        );
        let manifest_bytes = written.as_ref().map_or(0, |named| named.length);
        if let Some(named) = written {
            job.index_committed(&manifest, named);
        }
        job.used_in_caches(&manifest.packs, &manifest.chunks);
        let (reused_chunks, reused_bytes) = self.reused(&manifest);
        Ok(Commit {
            number: manifest.number,
            manifest,
            manifest_bytes,
            stats,
            reused_chunks,
            reused_bytes,
            resumed,
        })
    }

    /// The manifest of the body; its number follows from the log.
    fn build_manifest(&self, body: ManifestBody, now: UnixMillis) -> Result<Manifest, CommitError> {
        let inner = &self.inner;
        let identity = Identity {
            job: inner.job.name().clone(),
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
        Ok(Manifest::build(
            identity,
            body,
            inner.job.crypt().overhead(),
            |digest| self.locate(digest),
            pack_length,
        )?)
    }

    /// Of one that was taken over, others may have swept what it made: then that is why a pack is lost.
    async fn fenced_instead_of(&self, error: CommitError) -> Result<CommitError, StoreFault> {
        let Self { inner } = self;
        if !matches!(error, CommitError::PackLost { .. }) {
            return Ok(error);
        }
        let seen = inner.job.read_log().await?;
        if seen.epoch == Some(inner.epoch) {
            return Ok(error);
        }
        inner.job.remember_log(seen).await;
        Ok(inner.job.fenced(inner.epoch, seen.tail).await.into())
    }

    /// Stores a manifest, which nothing names yet.
    async fn write_manifest(&self, manifest: &Manifest) -> Result<ManifestRef, CommitError> {
        let job = &self.inner.job;
        let bytes = Bytes::from(manifest.encode(job.crypt())?);
        let digest = Digest::of(&bytes);
        let named = ManifestRef {
            name: collection::name(manifest.number.0, &digest),
            digest,
            length: bytes.len() as u64,
        };
        job.backend().write(&self.key_of(&named), bytes).await?;
        Ok(named)
    }

    fn key_of(&self, manifest: &ManifestRef) -> String {
        self.inner.job.key(&format!("manifests/{}", manifest.name))
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
    #[boxed]
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
