//! Verification: whether every visible checkpoint could be restored, found out before it has to be.
//!
//! * **Shallow**: every record, manifest and collection is sound; every pack that a manifest names is there with its
//!   length; its header and index are sound and say of each chunk what the manifests say. Costs a few small requests for
//!   each pack.
//! * **Deep**: as well, every chunk of those packs is fetched, decoded and compared with its name. Costs reading the
//!   store once, however many checkpoints share a pack.
//!
//! # Rules
//!
//! * What is damaged is named and, unless asked otherwise, quarantined: no checkpoint that needs it is restored any more
//!   and no new one leans on it, so that the next checkpoint stores its chunks again.
//! * Only what objects hold is damage. What cannot be read just now (time-outs, refused credentials) ends the
//!   verification with an error; a range that does not match is fetched once more first.
//! * A checkpoint that retention removes meanwhile is not damaged: who is found so is looked for once more. A caller that
//!   holds all of them ([`Job::hold_all`]) sees none go.
//!
//! # Memory
//!
//! The manifests' chunk tables and, at a time, `fetches` ranges of `fetch_size` bytes.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::Digest;
use crate::codec::{self, Codec};
use crate::crypt::Crypt;
use crate::fault::{FaultKind, StoreFault};
use crate::index::PackSet;
use crate::job::{Job, JobError, SkippedCheckpoint};
use crate::manifest::{Location, Manifest};
use crate::names::{CheckpointNumber, PackId, UnixMillis};
use crate::pack::PackIndexEntry;

/// How to verify.
#[derive(Debug, Clone, Copy)]
pub struct VerifyOptions {
    /// Read every chunk.
    pub deep: bool,
    /// Quarantine what is damaged.
    pub quarantine: bool,
}

/// How far a verification has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Bytes of packs to verify: all of them if deep, else those of their indices as far as known.
    pub total_bytes: u64,
    /// Bytes done since the last time.
    pub bytes: u64,
}

/// A damaged pack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedPack {
    /// Its name.
    #[serde(serialize_with = "as_text")]
    pub pack: PackId,
    /// What is wrong with it.
    pub reason: String,
    /// The visible checkpoints that need it, oldest first.
    pub checkpoints: Vec<CheckpointNumber>,
}

fn as_text<S: serde::Serializer>(pack: &PackId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pack)
}

/// What a verification found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Checkpoints that are whole, oldest first.
    pub whole: Vec<CheckpointNumber>,
    /// Checkpoints whose record or manifest is damaged, oldest first.
    pub damaged: Vec<SkippedCheckpoint>,
    /// Damaged packs.
    pub damaged_packs: Vec<DamagedPack>,
    /// Packs looked at.
    pub packs: u64,
    /// Their bytes.
    pub pack_bytes: u64,
    /// Chunks decoded and compared with their names.
    pub chunks: u64,
}

impl Verified {
    /// Whether everything is whole.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.damaged.is_empty() && self.damaged_packs.is_empty()
    }
}

/// A pack as the manifests have it.
#[derive(Default)]
struct Expected {
    length: u64,
    /// By offset.
    chunks: BTreeMap<u64, (Digest, Location)>,
    checkpoints: BTreeSet<CheckpointNumber>,
    /// Two manifests say different things.
    conflict: Option<String>,
}

impl Job {
    /// Verifies all visible checkpoints. `progress` is called often, from any thread.
    pub async fn verify(
        &self,
        options: VerifyOptions,
        now: UnixMillis,
        progress: &(dyn Fn(VerifyProgress) + Send + Sync),
    ) -> Result<Verified, JobError> {
        self.refuse_discard()?;
        let mut verified = Verified::default();
        let mut expected: BTreeMap<PackId, Expected> = BTreeMap::new();
        let mut manifests: BTreeMap<CheckpointNumber, Option<String>> = BTreeMap::new();
        for found in self.checkpoints_with_names().await? {
            manifests.insert(found.number, found.manifest_name);
            let checked = found.manifest.and_then(|manifest| {
                check_zeros(self.crypt(), &manifest)?;
                Ok(manifest)
            });
            match checked {
                Ok(manifest) => {
                    verified.whole.push(found.number);
                    expect(&mut expected, &manifest);
                }
                Err(reason) => verified.damaged.push(SkippedCheckpoint {
                    number: found.number,
                    reason,
                }),
            }
        }
        let packs = self.packs().await?;
        verified.packs = expected.len() as u64;
        verified.pack_bytes = expected.values().map(|pack| pack.length).sum();
        let total_bytes = verified.pack_bytes;
        let done = |bytes| progress(VerifyProgress { total_bytes, bytes });
        let fetches = self.options().fetches.max(1);
        let checks = stream::iter(&expected).map(|(id, pack)| {
            let (packs, done) = (&packs, &done);
            async move {
                let outcome = self
                    .verify_pack(id, pack, packs, options.deep, done)
                    .await?;
                Ok::<_, JobError>((id, pack, outcome))
            }
        });
        // A deep check reads one pack with several requests itself.
        let width = if options.deep { 1 } else { fetches };
        let mut checks = checks.buffered(width);
        let mut damaged = Vec::new();
        while let Some((id, pack, outcome)) = checks.try_next().await? {
            match outcome {
                Ok(chunks) => verified.chunks += chunks,
                Err(reason) => damaged.push(DamagedPack {
                    pack: *id,
                    reason,
                    checkpoints: pack.checkpoints.iter().copied().collect(),
                }),
            }
        }
        drop(checks);

        if !damaged.is_empty() || !verified.damaged.is_empty() {
            // Only what is named now as it was then: the rest was removed or repacked meanwhile.
            let now = self.checkpoints_with_names().await?;
            for pack in &mut damaged {
                pack.checkpoints.retain(|number| {
                    now.iter().any(|found| {
                        found.number == *number
                            && found.manifest.as_ref().is_ok_and(|manifest| {
                                manifest.packs.iter().any(|named| named.id == pack.pack)
                            })
                    })
                });
            }
            damaged.retain(|pack| !pack.checkpoints.is_empty());
            verified
                .whole
                .retain(|number| now.iter().any(|found| found.number == *number));
            verified.damaged.retain(|damaged| {
                now.iter().any(|found| {
                    found.number == damaged.number
                        && found.manifest.is_err()
                        && manifests.get(&found.number) == Some(&found.manifest_name)
                })
            });
        }
        for pack in &damaged {
            verified
                .whole
                .retain(|number| !pack.checkpoints.contains(number));
            if options.quarantine && !packs.quarantined.contains(&pack.pack) {
                self.quarantine_pack(&pack.pack, &pack.reason, now).await?;
            }
        }
        for checkpoint in &verified.damaged {
            if options.quarantine
                && let Some(Some(name)) = manifests.get(&checkpoint.number)
            {
                self.quarantine_manifest(name, &checkpoint.reason, now)
                    .await?;
            }
        }
        verified.damaged_packs = damaged;
        verified.whole.sort_unstable();
        verified.damaged.sort_by_key(|d| d.number);
        Ok(verified)
    }

    /// Chunks checked, or what is wrong with the pack.
    async fn verify_pack(
        &self,
        id: &PackId,
        expected: &Expected,
        packs: &PackSet,
        deep: bool,
        done: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Result<u64, String>, JobError> {
        let entry = crate::manifest::PackEntry {
            id: *id,
            length: expected.length,
        };
        if let Err(reason) = packs.check(&entry) {
            done(expected.length);
            return Ok(Err(reason));
        }
        if let Some(reason) = &expected.conflict {
            done(expected.length);
            return Ok(Err(reason.clone()));
        }
        let index = match self.read_pack_index(id, expected.length).await {
            Ok(index) => index,
            Err(JobError::Pack { source, .. }) => {
                done(expected.length);
                return Ok(Err(source.to_string()));
            }
            Err(JobError::Store(fault)) if fault.kind() == FaultKind::NotFound => {
                done(expected.length);
                return Ok(Err("it is missing".into()));
            }
            Err(other) => return Err(other),
        };
        let found: BTreeMap<u64, &PackIndexEntry> = index
            .chunks
            .iter()
            .map(|chunk| (chunk.offset, chunk))
            .collect();
        for (offset, (digest, location)) in &expected.chunks {
            let same = found.get(offset).is_some_and(|chunk| {
                chunk.digest == *digest
                    && chunk.stored == location.stored
                    && chunk.raw == location.raw
                    && chunk.codec == location.codec
            });
            if !same {
                done(expected.length);
                return Ok(Err(format!(
                    "its index does not have chunk {digest} at byte {offset}, as a manifest says"
                )));
            }
        }
        if !deep {
            done(expected.length);
            return Ok(Ok(0));
        }
        self.verify_chunks(id, expected.length, index.chunks, done)
            .await
    }

    async fn verify_chunks(
        &self,
        id: &PackId,
        length: u64,
        chunks: Vec<PackIndexEntry>,
        done: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Result<u64, String>, JobError> {
        let key = self.pack_key(id);
        let count = chunks.len() as u64;
        let limit = self.options().fetch_size.max(1);
        let mut spans: Vec<Vec<PackIndexEntry>> = Vec::new();
        let mut start = 0;
        for chunk in chunks {
            match spans.last_mut() {
                Some(span) if end(&chunk) - start <= limit => span.push(chunk),
                _ => {
                    start = chunk.offset;
                    spans.push(vec![chunk]);
                }
            }
        }
        let checks = stream::iter(spans).map(|span| {
            let key = &key;
            async move {
                let bytes: u64 = span.iter().map(|chunk| u64::from(chunk.stored)).sum();
                let mut outcome = self.verify_span(key, &span).await?;
                if outcome.is_err() {
                    // The damage may have happened on the way.
                    outcome = self.verify_span(key, &span).await?;
                }
                Ok::<_, StoreFault>((bytes, outcome))
            }
        });
        let mut checks = checks.buffer_unordered(self.options().fetches.max(1));
        let mut rest = length;
        let mut outcome = Ok(count);
        while let Some((bytes, checked)) = checks.try_next().await? {
            rest = rest.saturating_sub(bytes);
            done(bytes);
            if let Err(reason) = checked {
                outcome = Err(reason);
                break;
            }
        }
        done(rest);
        Ok(outcome)
    }

    async fn verify_span(
        &self,
        key: &str,
        span: &[PackIndexEntry],
    ) -> Result<Result<(), String>, StoreFault> {
        let start = span.first().map_or(0, |chunk| chunk.offset);
        let stop = span.last().map_or(start, end);
        if stop == start {
            return Ok(Ok(()));
        }
        let bytes = match self.backend().read_range(key, start..stop).await {
            Ok(bytes) => bytes,
            Err(fault) if fault.kind() == FaultKind::NotFound => {
                return Ok(Err("it is missing".into()));
            }
            Err(fault) => return Err(fault),
        };
        let (span, crypt) = (span.to_vec(), self.crypt().clone());
        let checked = self
            .options()
            .compute
            .run(move || check_span(&crypt, start, &span, &bytes));
        checked
            .await
            .map_err(|detail| StoreFault::with_kind("read", key, FaultKind::Transient, detail))
    }
}

const fn end(chunk: &PackIndexEntry) -> u64 {
    chunk.offset + chunk.stored as u64
}

fn check_span(
    crypt: &Crypt,
    start: u64,
    span: &[PackIndexEntry],
    bytes: &Bytes,
) -> Result<(), String> {
    for chunk in span {
        let at =
            |reason: String| format!("chunk {} at byte {}: {reason}", chunk.digest, chunk.offset);
        let (from, to) = (
            (chunk.offset - start) as usize,
            (end(chunk) - start) as usize,
        );
        if to > bytes.len() {
            return Err(at("the pack ends before it".into()));
        }
        let raw = crypt
            .open_chunk(&chunk.digest, chunk.codec, chunk.raw, bytes.slice(from..to))
            .and_then(|encoded| codec::decode(chunk.codec, encoded, chunk.raw))
            .map_err(at)?;
        let found = crypt.name(&raw);
        if found != chunk.digest {
            return Err(at(format!("its bytes have digest {found}")));
        }
    }
    Ok(())
}

fn expect(expected: &mut BTreeMap<PackId, Expected>, manifest: &Manifest) {
    for pack in &manifest.packs {
        let known = expected.entry(pack.id).or_default();
        if known.length != 0 && known.length != pack.length {
            known.conflict = Some(format!(
                "one manifest says that it has {} bytes, another {}",
                known.length, pack.length
            ));
        }
        known.length = pack.length;
        known.checkpoints.insert(manifest.number);
    }
    for (digest, location) in manifest.locations() {
        let Some(known) = location.pack.and_then(|pack| expected.get_mut(&pack)) else {
            continue;
        };
        let before = known.chunks.insert(location.offset, (digest, location));
        if before.is_some_and(|(other, _)| other != digest) {
            known.conflict = Some(format!(
                "two manifests say different things of byte {}",
                location.offset
            ));
        }
    }
}

/// Chunks of which nothing is stored must have the name that zeros have.
fn check_zeros(crypt: &Crypt, manifest: &Manifest) -> Result<(), String> {
    let mut names: BTreeMap<u32, Digest> = BTreeMap::new();
    for chunk in manifest.chunks.iter().filter(|c| c.codec == Codec::Zero) {
        let name = match names.get(&chunk.raw) {
            Some(name) => *name,
            None => {
                let name = crypt.name(&codec::decode(Codec::Zero, Bytes::new(), chunk.raw)?);
                names.insert(chunk.raw, name);
                name
            }
        };
        if name != chunk.digest {
            return Err(format!(
                "chunk {} is said to be zeros and is not",
                chunk.digest
            ));
        }
    }
    Ok(())
}
