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
//!   and no new one references it, so that the next checkpoint stores its chunks again.
//! * What is in quarantine counts as damaged. A deep look reads it again and, unless asked otherwise, takes the note back
//!   from what is sound: damage may be mended (an older version put back), or have been that of a machine.
//! * What is missing gets no note: any listing shows that, and it counts again if it comes back.
//! * Only what objects hold is damage. What cannot be read just now (time-outs, refused credentials) ends the
//!   verification with an error; what does not match, or is not there, is fetched once more first.
//! * A checkpoint that retention removes meanwhile is not damaged: one that seems damaged is looked for once more. A caller that
//!   holds all of them ([`Job::hold_all`]) sees none go.
//!
//! # Memory
//!
//! * One manifest at a time.
//! * Of all of them together: of each pack its checkpoints' numbers, and some 150 bytes for each chunk stored there, however
//!   many checkpoints share it.
//! * Deep: the index of one pack, and `fetches` ranges of `fetch_size` bytes, each with one decoded chunk.
//!   Shallow: the indices of `fetches` packs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use async_recursion::async_recursion as boxed;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::Digest;
use crate::codec::{self, Codec};
use crate::crypt::Crypt;
use crate::fault::{FaultKind, StoreFault};
use crate::index::{PackSet, QUARANTINED};
use crate::job::{FoundCheckpoint, Job, JobError, SkippedCheckpoint};
use crate::manifest::{Manifest, PackEntry};
use crate::names::{CheckpointNumber, PackId, UnixMillis};
use crate::pack::{Location, PackIndex, PackIndexEntry};

/// How thorough a verification is to be.
#[derive(Debug, Clone, Copy)]
pub struct VerifyOptions {
    /// Whether every chunk is read and checked against its name.
    pub deep: bool,
    /// Quarantine what is damaged; if deep, also lift the quarantine of what is sound.
    pub quarantine: bool,
}

/// How far a verification has come, for a progress bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VerifyProgress {
    /// Bytes of packs to verify: all of them if deep, else those of their indices as far as known.
    pub total_bytes: u64,
    /// The number of bytes done since the last call.
    pub bytes: u64,
}

/// A pack that cannot serve the checkpoints that need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DamagedPack {
    /// The id of the pack.
    #[serde(serialize_with = "as_text")]
    pub pack: PackId,
    /// What is wrong with the pack.
    pub reason: String,
    /// The visible checkpoints that need it, oldest first.
    pub checkpoints: Vec<CheckpointNumber>,
}

fn as_text<S: serde::Serializer>(pack: &PackId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(pack)
}

/// The result of a verification.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// Checkpoints that are whole, oldest first.
    pub whole: Vec<CheckpointNumber>,
    /// Checkpoints whose record or manifest is damaged, oldest first.
    pub damaged: Vec<SkippedCheckpoint>,
    /// The packs that were found to be damaged.
    pub damaged_packs: Vec<DamagedPack>,
    /// Packs and manifests that were in quarantine, are sound and count again, by their names.
    pub lifted: Vec<String>,
    /// The number of packs that were looked at.
    pub packs: u64,
    /// The bytes of the packs that were looked at.
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
    /// The chunks that manifests have in the pack, by offset.
    chunks: BTreeMap<u64, (Digest, Location)>,
    checkpoints: BTreeSet<CheckpointNumber>,
    /// Two manifests say different things.
    conflict: Option<String>,
}

/// What the manifests say, taken together. None of them is kept.
#[derive(Default)]
struct Said {
    checkpoints: BTreeMap<CheckpointNumber, Seen>,
    packs: BTreeMap<PackId, Expected>,
}

/// A visible checkpoint.
struct Seen {
    /// The name of its manifest, if that is known.
    name: Option<String>,
    /// What is wrong with its record or manifest.
    damage: Option<String>,
    /// Whether the checkpoint's manifest is in quarantine.
    noted: bool,
}

/// A visible checkpoint, looked at once more.
struct Again {
    name: Option<String>,
    damaged: bool,
    /// The packs of the checkpoint that matter.
    packs: BTreeSet<PackId>,
}

/// What is wrong with a pack.
struct Damage {
    reason: String,
    /// Whether the pack is not there, which needs no note.
    missing: bool,
}

impl Damage {
    fn missing() -> Self {
        Self {
            reason: "it is missing".into(),
            missing: true,
        }
    }
}

impl From<String> for Damage {
    fn from(reason: String) -> Self {
        Self {
            reason,
            missing: false,
        }
    }
}

impl Said {
    fn take(&mut self, crypt: &Crypt, found: FoundCheckpoint) {
        let damage = match usable(crypt, found.manifest) {
            Ok(manifest) => {
                expect(&mut self.packs, &manifest);
                None
            }
            Err(reason) => Some(reason),
        };
        let seen = Seen {
            name: found.manifest_name,
            damage,
            noted: false,
        };
        self.checkpoints.insert(found.number, seen);
    }
}

impl VerifyOptions {
    /// Whether the quarantine of what is sound is lifted.
    const fn lifts(self) -> bool {
        self.deep && self.quarantine
    }
}

/// Why something in quarantine stays there.
fn still_quarantined(options: VerifyOptions) -> String {
    if options.deep {
        "quarantined as damaged and sound now: `phos-ft verify --deep` lifts that, without --no-quarantine".into()
    } else {
        QUARANTINED.into()
    }
}

impl Job {
    /// Verifies all visible checkpoints. `progress` is called often, from any thread.
    #[boxed]
    pub async fn verify(
        &self,
        options: VerifyOptions,
        now: UnixMillis,
        progress: &(dyn Fn(VerifyProgress) + Send + Sync),
    ) -> Result<Verified, JobError> {
        self.refuse_discard()?;
        let mut verified = Verified::default();
        let crypt = self.crypt();
        let mut said: Said = self
            .fold_checkpoints(|said: &mut Said, found| said.take(crypt, found))
            .await?;
        let packs = self.packs().await?;
        self.verify_manifests(&mut said, &packs, options, &mut verified)
            .await?;
        let mut damaged = self
            .verify_packs(&said.packs, &packs, options, progress, &mut verified)
            .await?;
        let mut seen = said.checkpoints;
        if !damaged.is_empty() || seen.values().any(|seen| seen.damage.is_some()) {
            self.leave_out_removed(&mut damaged, &mut seen).await?;
        }
        if options.quarantine {
            for (pack, missing) in &damaged {
                if !missing && !packs.quarantined.contains(&pack.pack) {
                    self.note_damaged_pack(&pack.pack, &pack.reason, now)
                        .await?;
                }
            }
            self.quarantine_manifests(&seen, now).await?;
        }
        for (number, seen) in seen {
            let needs = |(pack, _): &(DamagedPack, bool)| pack.checkpoints.contains(&number);
            match seen.damage {
                Some(reason) => verified.damaged.push(SkippedCheckpoint { number, reason }),
                None if damaged.iter().any(needs) => {}
                None => verified.whole.push(number),
            }
        }
        verified.damaged_packs = damaged.into_iter().map(|(pack, _)| pack).collect();
        Ok(verified)
    }

    /// Finds which manifests are in quarantine, and lifts that of those that are sound if the options say so.
    async fn verify_manifests(
        &self,
        said: &mut Said,
        packs: &PackSet,
        options: VerifyOptions,
        verified: &mut Verified,
    ) -> Result<(), JobError> {
        for seen in said.checkpoints.values_mut() {
            let noted = (seen.name.as_ref()).filter(|name| packs.manifests.contains(*name));
            let Some(name) = noted else {
                continue;
            };
            if seen.damage.is_none() && options.lifts() {
                self.lift_quarantine(name).await?;
                verified.lifted.push(name.clone());
                continue;
            }
            seen.noted = true;
            seen.damage
                .get_or_insert_with(|| still_quarantined(options));
        }
        Ok(())
    }

    /// Verifies the packs that manifests name: those that are damaged, and whether each is missing.
    async fn verify_packs(
        &self,
        expected: &BTreeMap<PackId, Expected>,
        packs: &PackSet,
        options: VerifyOptions,
        progress: &(dyn Fn(VerifyProgress) + Send + Sync),
        verified: &mut Verified,
    ) -> Result<Vec<(DamagedPack, bool)>, JobError> {
        verified.packs = expected.len() as u64;
        verified.pack_bytes = expected.values().map(|pack| pack.length).sum();
        let total_bytes = verified.pack_bytes;
        let done = |bytes| progress(VerifyProgress { total_bytes, bytes });
        let fetches = self.options().fetches.max(1);
        let checks = stream::iter(expected).map(|(id, pack)| {
            let done = &done;
            async move {
                let outcome = self.verify_pack(id, pack, packs, options, done).await?;
                Ok::<_, JobError>((id, pack, outcome))
            }
        });
        // A deep check reads one pack with several requests itself.
        let width = if options.deep { 1 } else { fetches };
        let mut checks = checks.buffered(width).boxed();
        let mut damaged = Vec::new();
        while let Some((id, pack, outcome)) = checks.try_next().await? {
            let damage: Damage = match outcome {
                Ok(chunks) => {
                    verified.chunks += chunks;
                    if !packs.quarantined.contains(id) {
                        continue;
                    }
                    if options.lifts() {
                        // Now, and not when all is read: what is noted from here on is news.
                        let name = id.to_string();
                        self.lift_quarantine(&name).await?;
                        verified.lifted.push(name);
                        continue;
                    }
                    still_quarantined(options).into()
                }
                Err(damage) => damage,
            };
            let found = DamagedPack {
                pack: *id,
                reason: damage.reason,
                checkpoints: pack.checkpoints.iter().copied().collect(),
            };
            damaged.push((found, damage.missing));
        }
        Ok(damaged)
    }

    /// Leaves out what is not named now as it was then: it was removed or repacked meanwhile.
    async fn leave_out_removed(
        &self,
        damaged: &mut Vec<(DamagedPack, bool)>,
        seen: &mut BTreeMap<CheckpointNumber, Seen>,
    ) -> Result<(), JobError> {
        let matters: BTreeSet<PackId> = damaged.iter().map(|(pack, _)| pack.pack).collect();
        let again = self.look_again(&matters).await?;
        for (pack, _) in damaged.iter_mut() {
            let id = pack.pack;
            pack.checkpoints.retain(|number| {
                (again.get(number)).is_some_and(|again| again.packs.contains(&id))
            });
        }
        damaged.retain(|(pack, _)| !pack.checkpoints.is_empty());
        seen.retain(|number, seen| {
            (again.get(number)).is_some_and(|again| {
                seen.damage.is_none() || again.name == seen.name && (again.damaged || seen.noted)
            })
        });
        Ok(())
    }

    /// The visible checkpoints as they are now, and who needs one of these packs.
    async fn look_again(
        &self,
        matters: &BTreeSet<PackId>,
    ) -> Result<BTreeMap<CheckpointNumber, Again>, JobError> {
        let crypt = self.crypt();
        let take = |all: &mut BTreeMap<CheckpointNumber, Again>, found: FoundCheckpoint| {
            let manifest = usable(crypt, found.manifest);
            let packs = manifest.iter().flat_map(|manifest| &manifest.packs);
            let again = Again {
                name: found.manifest_name,
                damaged: manifest.is_err(),
                packs: (packs.map(|pack| pack.id))
                    .filter(|id| matters.contains(id))
                    .collect(),
            };
            all.insert(found.number, again);
        };
        self.fold_checkpoints(take).await
    }

    /// Notes which manifests are damaged. One that is missing needs no note.
    async fn quarantine_manifests(
        &self,
        seen: &BTreeMap<CheckpointNumber, Seen>,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        let news: Vec<(&String, &String)> = (seen.values())
            .filter(|seen| !seen.noted)
            .filter_map(|seen| Some((seen.name.as_ref()?, seen.damage.as_ref()?)))
            .collect();
        if news.is_empty() {
            return Ok(());
        }
        let listed = self.backend().list(&self.key("manifests")).await?;
        let there: HashSet<String> = listed.into_iter().map(|object| object.name).collect();
        for (name, reason) in news {
            if there.contains(name) {
                self.quarantine_manifest(name, reason, now).await?;
            }
        }
        Ok(())
    }

    /// The index of a pack; what does not match, or is not there, is read once more.
    async fn verify_index(
        &self,
        id: &PackId,
        length: u64,
    ) -> Result<Result<PackIndex, Damage>, JobError> {
        let mut again = true;
        loop {
            let damage: Damage = match self.read_pack_index(id, length).await {
                Ok(index) => return Ok(Ok(index)),
                Err(JobError::Pack { source, .. }) => source.to_string().into(),
                Err(JobError::Store(fault)) if fault.kind() == FaultKind::NotFound => {
                    Damage::missing()
                }
                Err(JobError::Store(fault)) if fault.kind() == FaultKind::Foreign => {
                    fault.to_string().into()
                }
                Err(other) => return Err(other),
            };
            if !std::mem::take(&mut again) {
                return Ok(Err(damage));
            }
        }
    }

    /// Chunks checked, or what is wrong with the pack. Whether it is in quarantine makes no difference.
    async fn verify_pack(
        &self,
        id: &PackId,
        expected: &Expected,
        packs: &PackSet,
        options: VerifyOptions,
        done: &(dyn Fn(u64) + Send + Sync),
    ) -> Result<Result<u64, Damage>, JobError> {
        let entry = PackEntry {
            id: *id,
            length: expected.length,
        };
        if let Err(what) = packs.check_there(&entry) {
            done(expected.length);
            return Ok(Err(Damage {
                reason: format!("it {what}"),
                missing: !packs.present.contains_key(id),
            }));
        }
        if let Some(reason) = &expected.conflict {
            done(expected.length);
            return Ok(Err(reason.clone().into()));
        }
        let index = match self.verify_index(id, expected.length).await? {
            Ok(index) => index,
            Err(damage) => {
                done(expected.length);
                return Ok(Err(damage));
            }
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
                let reason = format!(
                    "its index does not have chunk {digest} at byte {offset}, as a manifest says"
                );
                return Ok(Err(reason.into()));
            }
        }
        if !options.deep {
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
    ) -> Result<Result<u64, Damage>, JobError> {
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
                    // It may have happened on the way.
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
            if let Err(damage) = checked {
                outcome = Err(damage);
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
    ) -> Result<Result<(), Damage>, StoreFault> {
        let start = span.first().map_or(0, |chunk| chunk.offset);
        let stop = span.last().map_or(start, end);
        if stop == start {
            return Ok(Ok(()));
        }
        let bytes = match self.backend().read_range(key, start..stop).await {
            Ok(bytes) => bytes,
            Err(fault) if fault.kind() == FaultKind::NotFound => {
                return Ok(Err(Damage::missing()));
            }
            Err(fault) if fault.kind() == FaultKind::Foreign => {
                return Ok(Err(fault.to_string().into()));
            }
            Err(fault) => return Err(fault),
        };
        let (span, crypt) = (span.to_vec(), self.crypt().clone());
        let checked = self
            .options()
            .compute
            .run(move || check_span(&crypt, start, &span, &bytes));
        match checked.await {
            Ok(checked) => Ok(checked.map_err(Damage::from)),
            Err(detail) => Err(StoreFault::with_kind(
                "read",
                key,
                FaultKind::Transient,
                detail,
            )),
        }
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

/// A manifest that was read, if what it says of zeros is true as well.
fn usable(crypt: &Crypt, manifest: Result<Manifest, String>) -> Result<Manifest, String> {
    manifest.and_then(|manifest| {
        check_zeros(crypt, &manifest)?;
        Ok(manifest)
    })
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
