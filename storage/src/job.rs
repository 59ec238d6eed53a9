//! A job's history: its log, its checkpoints, who may write.
//!
//! # Consistency
//!
//! Everything visible follows from the log (see `head`). What a handle remembers of the log is only a hint of where to
//! try next: a conditional write decides, and a lost one makes the handle read the log again.
//!
//! # Damage
//!
//! A record, manifest or pack that cannot be read *because of what it holds* makes its checkpoint skipped, with a
//! reason that the caller must say loudly. One that cannot be read *just now* (time-outs, refused credentials) is an
//! error: falling back to an older checkpoint over a broken network would lose work for nothing.

use std::sync::{Arc, RwLock};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::Digest;
use crate::backend::{Backend, Created, Medium};
use crate::envelope::{self, EnvelopeError, Kind};
use crate::fault::{FaultKind, StoreFault};
use crate::head::{self, HeadRecord, RecordKind};
use crate::index::{Index, PackSet};
use crate::manifest::{self, Manifest, ManifestError};
use crate::names::{CheckpointNumber, Epoch, JobName, Nonce, PackId, UnixMillis};
use crate::pack::{self, PackError, PackIndex};
use crate::reader::Reader;
use crate::store::{Store, StoreOptions};
use crate::writer::CheckpointWriter;

/// Records read at once when listing.
const READS: usize = 16;

const QUARANTINE_KIND: Kind = Kind {
    what: "quarantine note",
    magic: *b"PHOSQUAR",
    version: 1,
    max_stored: 64 << 10,
    max_plain: 64 << 10,
};

/// Why an operation on a job's history failed.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    /// A request failed.
    #[error(transparent)]
    Store(#[from] StoreFault),
    /// Someone else took the job over.
    #[error(
        "job {job} was taken over{by}: epoch {epoch} is no longer the newest, so this phos-ft stops writing to its \
         history"
    )]
    Fenced {
        /// The job.
        job: JobName,
        /// Our epoch.
        epoch: Epoch,
        /// Who took it over, if that is known: " by HOLDER".
        by: String,
    },
    /// There is no such checkpoint.
    #[error("job {job} has no checkpoint {number}: `phos-ft list` shows those there are")]
    NoCheckpoint {
        /// The job.
        job: JobName,
        /// The number asked for.
        number: CheckpointNumber,
    },
    /// A checkpoint's record or manifest is damaged or of a newer format.
    #[error("checkpoint {number} of job {job} cannot be used: {reason}")]
    Unusable {
        /// The job.
        job: JobName,
        /// The checkpoint.
        number: CheckpointNumber,
        /// Why.
        reason: String,
    },
    /// A pack is damaged.
    #[error("pack {pack}: {source}")]
    Pack {
        /// The pack.
        pack: PackId,
        /// What is wrong with it.
        source: PackError,
    },
    /// The store drops its packs.
    #[error(
        "{address} drops what is written to it, so nothing can be restored from it: use another store"
    )]
    Discarded {
        /// Address of the store.
        address: String,
    },
    /// A record could not be written down.
    #[error("cannot encode a record: {0}")]
    Encode(#[from] EnvelopeError),
}

impl JobError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Store(fault) => fault.is_permanent(),
            _ => true,
        }
    }
}

/// How far a checkpoint has got. There is one tier for now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// On this machine: survives processes, not the node.
    Local,
    /// In an object store: survives the node.
    Remote,
}

/// A checkpoint as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckpointSummary {
    /// Its number.
    pub number: CheckpointNumber,
    /// The epoch in which it was committed.
    pub epoch: Epoch,
    /// When it was committed.
    pub created: UnixMillis,
    /// Bytes of the whole image.
    pub image_bytes: u64,
    /// Bytes of chunks that it added, before encoding.
    pub new_bytes: u64,
    /// Bytes that it added to the store.
    pub stored_bytes: u64,
    /// How long the job was held back, in microseconds.
    pub stop_us: u64,
    /// Why it was taken.
    pub trigger: String,
    /// Where it is safe.
    pub durability: Durability,
    /// Whether the job ended by itself after it: it belongs to an earlier run.
    pub earlier_run: bool,
}

/// A checkpoint or record that was passed over, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SkippedCheckpoint {
    /// Its number.
    pub number: CheckpointNumber,
    /// What is wrong with it.
    pub reason: String,
}

/// The checkpoints of a job.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Listing {
    /// Newest first.
    pub checkpoints: Vec<CheckpointSummary>,
    /// Records that cannot be read, newest first.
    pub damaged: Vec<SkippedCheckpoint>,
}

/// What a restore should use.
#[derive(Debug, Clone)]
pub struct Restorable {
    /// The newest checkpoint of the current run that is whole; `None` if there is none.
    pub manifest: Option<Manifest>,
    /// Newer ones that are not, newest first. To be said loudly.
    pub skipped: Vec<SkippedCheckpoint>,
}

/// Where a job's history stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobState {
    /// Number of the newest record; 0 if the job has no history.
    pub tail: u64,
    /// The epoch in force; `None` if there is no history or its newest record is damaged.
    pub epoch: Option<Epoch>,
    /// Who took the job over last, if that record was met on the way to the newest checkpoint.
    pub holder: Option<String>,
    /// The newest checkpoint of the current run.
    pub newest: Option<CheckpointNumber>,
    /// The exit code of the job if it ended by itself and nothing was checkpointed since: a start begins afresh.
    pub completed: Option<i32>,
}

/// How a take-over ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenOver {
    /// Our epoch.
    pub epoch: Epoch,
    /// The epoch before, if there was one.
    pub previous: Option<Epoch>,
}

/// Handle of a job's history. Cheap to clone; clones share what they remember.
#[derive(Clone)]
pub struct Job {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) name: JobName,
    /// Held while a record is appended, so that clones do not race each other.
    pub(crate) log: tokio::sync::Mutex<Option<Log>>,
    index: RwLock<Option<Arc<Index>>>,
}

/// What a handle remembers of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Log {
    /// Number of the newest record; 0 if there is none.
    pub tail: u64,
    /// Its epoch; `None` if there is no record or it is damaged.
    pub epoch: Option<Epoch>,
}

/// How an attempt to append a record ended.
pub(crate) enum Appended {
    Done,
    /// Another record stands there.
    Lost,
}

/// A record, or why it cannot be read.
type ReadRecord = Result<HeadRecord, String>;

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Job({} in {})",
            self.inner.name,
            self.inner.store.address()
        )
    }
}

impl Job {
    pub(crate) fn new(store: Store, name: JobName) -> Self {
        let inner = Inner {
            store,
            name,
            log: tokio::sync::Mutex::new(None),
            index: RwLock::new(None),
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &JobName {
        &self.inner.name
    }

    /// The store it is in.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    pub(crate) fn backend(&self) -> &Backend {
        &self.inner.store.inner.backend
    }

    pub(crate) fn options(&self) -> &StoreOptions {
        &self.inner.store.inner.options
    }

    pub(crate) fn nonce(&self) -> Nonce {
        self.options().nonces.next()
    }

    pub(crate) fn key(&self, rest: &str) -> String {
        format!("jobs/{}/{rest}", self.inner.name)
    }

    pub(crate) fn pack_key(&self, pack: &PackId) -> String {
        self.key(&format!("packs/{pack}"))
    }

    fn record_key(&self, number: u64) -> String {
        self.key(&format!("head/{}", head::record_name(number)))
    }

    // --- the log ---------------------------------------------------------------------------------------------------

    /// Numbers of all records, oldest first.
    async fn record_numbers(&self) -> Result<Vec<u64>, StoreFault> {
        let listed = self.backend().list(&self.key("head")).await?;
        let mut numbers: Vec<u64> = listed
            .iter()
            .filter_map(|object| head::parse_record_name(&object.name))
            .filter(|&n| n > 0)
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    async fn record(&self, number: u64) -> Result<ReadRecord, StoreFault> {
        match self
            .backend()
            .read(&self.record_key(number), head::KIND.max_object())
            .await
        {
            Ok(bytes) => Ok(HeadRecord::decode(number, &bytes).map_err(|error| error.to_string())),
            // Retention may remove a record between a listing and the reading.
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::TooLarge) => {
                Ok(Err(fault.to_string()))
            }
            Err(fault) => Err(fault),
        }
    }

    pub(crate) async fn read_log(&self) -> Result<Log, StoreFault> {
        let Some(tail) = self.record_numbers().await?.last().copied() else {
            return Ok(Log {
                tail: 0,
                epoch: None,
            });
        };
        let epoch = self.record(tail).await?.ok().map(|record| record.epoch);
        Ok(Log { tail, epoch })
    }

    /// Tries to append a record. Its number must be one more than that of the newest record seen.
    pub(crate) async fn append(&self, record: &HeadRecord) -> Result<Appended, JobError> {
        let bytes = record.encode()?;
        let key = self.record_key(record.number);
        match self
            .backend()
            .create(&key, bytes, head::KIND.max_object())
            .await?
        {
            Created::Done => Ok(Appended::Done),
            Created::Taken(_) => Ok(Appended::Lost),
        }
    }

    /// Who made the newest record, for a message; never fails.
    pub(crate) async fn usurper(&self, tail: u64) -> String {
        let mut number = tail;
        for _ in 0..READS {
            match self.record(number).await {
                Ok(Ok(HeadRecord {
                    kind: RecordKind::TakenOver { holder },
                    ..
                })) => return format!(" by {holder}"),
                Ok(_) if number > 1 => number -= 1,
                _ => break,
            }
        }
        String::new()
    }

    /// Takes the job over: from here on all others are fenced. `holder` says who we are, for people.
    ///
    /// Safe whatever else is running. Every start of a sidecar takes its job over, also from its own dead self.
    pub async fn take_over(&self, holder: &str, now: UnixMillis) -> Result<TakenOver, JobError> {
        let mut log = self.inner.log.lock().await;
        loop {
            let seen = self.read_log().await?;
            let number = seen.tail + 1;
            let record = HeadRecord {
                number,
                epoch: Epoch(number),
                created: now,
                nonce: self.nonce(),
                kind: RecordKind::TakenOver {
                    holder: holder.chars().take(200).collect(),
                },
            };
            if matches!(self.append(&record).await?, Appended::Done) {
                *log = Some(Log {
                    tail: number,
                    epoch: Some(record.epoch),
                });
                // Others may have written since the index was read.
                self.set_index(None);
                return Ok(TakenOver {
                    epoch: record.epoch,
                    previous: seen.epoch,
                });
            }
        }
    }

    /// Notes that the job ended by itself, so that a later start begins afresh.
    pub async fn mark_completed(
        &self,
        epoch: Epoch,
        exit_code: i32,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        let mut log = self.inner.log.lock().await;
        loop {
            let seen = match *log {
                Some(seen) => seen,
                None => self.read_log().await?,
            };
            if seen.epoch != Some(epoch) {
                let by = self.usurper(seen.tail).await;
                return Err(JobError::Fenced {
                    job: self.name().clone(),
                    epoch,
                    by,
                });
            }
            let number = seen.tail + 1;
            let kind = RecordKind::Completed { exit_code };
            let record = HeadRecord {
                number,
                epoch,
                created: now,
                nonce: self.nonce(),
                kind,
            };
            match self.append(&record).await? {
                Appended::Done => {
                    *log = Some(Log {
                        tail: number,
                        epoch: Some(epoch),
                    });
                    return Ok(());
                }
                Appended::Lost => *log = Some(self.read_log().await?),
            }
        }
    }

    /// Where the job's history stands now.
    pub async fn state(&self) -> Result<JobState, JobError> {
        let numbers = self.record_numbers().await?;
        let tail = numbers.last().copied().unwrap_or(0);
        let mut state = JobState {
            tail,
            epoch: None,
            holder: None,
            newest: None,
            completed: None,
        };
        for &number in numbers.iter().rev() {
            let record = self.record(number).await?;
            if number == tail {
                state.epoch = record.as_ref().ok().map(|record| record.epoch);
            }
            match record.map(|record| record.kind) {
                Ok(RecordKind::TakenOver { holder }) => {
                    state.holder.get_or_insert(holder);
                }
                Ok(RecordKind::Checkpoint { .. }) => {
                    state.newest = Some(CheckpointNumber(number));
                    break;
                }
                Ok(RecordKind::Completed { exit_code }) => {
                    state.completed = Some(exit_code);
                    break;
                }
                Err(_) => {}
            }
        }
        Ok(state)
    }

    /// All records of the log, oldest first, each as read or with the reason why it cannot be.
    pub async fn records(&self) -> Result<Vec<(u64, Result<HeadRecord, String>)>, JobError> {
        let numbers = self.record_numbers().await?;
        let reads = stream::iter(numbers)
            .map(|number| async move { Ok((number, self.record(number).await?)) });
        reads.buffered(READS).try_collect().await
    }

    // --- checkpoints -----------------------------------------------------------------------------------------------

    /// All checkpoints, newest first, also those of earlier runs.
    pub async fn list(&self) -> Result<Listing, JobError> {
        let numbers = self.record_numbers().await?;
        let durability = match self.backend().medium() {
            Medium::Remote => Durability::Remote,
            Medium::Local | Medium::Discard => Durability::Local,
        };
        let mut records = stream::iter(numbers.into_iter().rev())
            .map(|number| async move { Ok::<_, StoreFault>((number, self.record(number).await?)) })
            .buffered(READS);
        let mut listing = Listing::default();
        let mut earlier_run = false;
        while let Some((number, record)) = records.try_next().await? {
            let number = CheckpointNumber(number);
            match record {
                Ok(HeadRecord {
                    epoch,
                    created,
                    kind:
                        RecordKind::Checkpoint {
                            image_bytes,
                            new_bytes,
                            stored_bytes,
                            stop_us,
                            trigger,
                            ..
                        },
                    ..
                }) => listing.checkpoints.push(CheckpointSummary {
                    number,
                    epoch,
                    created,
                    image_bytes,
                    new_bytes,
                    stored_bytes,
                    stop_us,
                    trigger,
                    durability,
                    earlier_run,
                }),
                Ok(HeadRecord {
                    kind: RecordKind::Completed { .. },
                    ..
                }) => earlier_run = true,
                Ok(_) => {}
                Err(reason) => listing.damaged.push(SkippedCheckpoint { number, reason }),
            }
        }
        Ok(listing)
    }

    /// The manifest of a checkpoint. That its packs are whole is not checked.
    pub async fn manifest(&self, number: CheckpointNumber) -> Result<Manifest, JobError> {
        let job = || self.name().clone();
        let unusable = |reason| JobError::Unusable {
            job: job(),
            number,
            reason,
        };
        let record = match self
            .backend()
            .read(&self.record_key(number.0), head::KIND.max_object())
            .await
        {
            Ok(bytes) => {
                HeadRecord::decode(number.0, &bytes).map_err(|error| unusable(error.to_string()))?
            }
            Err(fault) if fault.kind() == FaultKind::NotFound => {
                return Err(JobError::NoCheckpoint { job: job(), number });
            }
            Err(fault) => return Err(fault.into()),
        };
        match self.manifest_of(&record).await? {
            Some(Ok(manifest)) => Ok(manifest),
            Some(Err(reason)) => Err(unusable(reason)),
            None => Err(JobError::NoCheckpoint { job: job(), number }),
        }
    }

    /// The manifest that a record names, or why it cannot be used; `None` if the record is of another kind.
    async fn manifest_of(
        &self,
        record: &HeadRecord,
    ) -> Result<Option<Result<Manifest, String>>, StoreFault> {
        let RecordKind::Checkpoint {
            manifest, digest, ..
        } = &record.kind
        else {
            return Ok(None);
        };
        if manifest.contains('/') {
            return Ok(Some(Err(format!(
                "its record names the manifest {manifest:?}, which is no name"
            ))));
        }
        let key = self.key(&format!("manifests/{manifest}"));
        let bytes = match self.backend().read(&key, manifest::KIND.max_object()).await {
            Ok(bytes) => bytes,
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::TooLarge) => {
                return Ok(Some(Err(fault.to_string())));
            }
            Err(fault) => return Err(fault),
        };
        Ok(Some(self.check_manifest(record, *digest, &bytes)))
    }

    fn check_manifest(
        &self,
        record: &HeadRecord,
        digest: Digest,
        bytes: &Bytes,
    ) -> Result<Manifest, String> {
        // First what it says of itself: "of a newer format" tells more than "not the expected bytes".
        let manifest = Manifest::decode(bytes).map_err(|error: ManifestError| error.to_string())?;
        if Digest::of(bytes) != digest {
            return Err("its manifest is not the one that was committed".into());
        }
        if manifest.job != *self.name() || manifest.number.0 != record.number {
            return Err(format!(
                "its manifest is that of checkpoint {} of job {}",
                manifest.number, manifest.job
            ));
        }
        Ok(manifest)
    }

    /// The newest checkpoint of the current run that is whole: its record and manifest can be read and all of its packs
    /// are there, with the right length and not quarantined. Newer ones that are not are told with the reason.
    ///
    /// Chunks are not read here; a reader checks each one. If one turns out damaged, [`Self::quarantine_pack`] and ask
    /// again.
    pub async fn newest_restorable(&self) -> Result<Restorable, JobError> {
        self.refuse_discard()?;
        let packs = self.packs().await?;
        let mut skipped = Vec::new();
        for number in self.record_numbers().await?.into_iter().rev() {
            let mut skip = |reason| {
                skipped.push(SkippedCheckpoint {
                    number: CheckpointNumber(number),
                    reason,
                })
            };
            let record = match self.record(number).await? {
                Ok(record) => record,
                Err(reason) => {
                    skip(reason);
                    continue;
                }
            };
            if matches!(record.kind, RecordKind::Completed { .. }) {
                break;
            }
            let manifest = match self.manifest_of(&record).await? {
                None => continue,
                Some(Ok(manifest)) => manifest,
                Some(Err(reason)) => {
                    skip(reason);
                    continue;
                }
            };
            match manifest
                .packs
                .iter()
                .find_map(|pack| packs.check(pack).err())
            {
                None => {
                    return Ok(Restorable {
                        manifest: Some(manifest),
                        skipped,
                    });
                }
                Some(reason) => skip(reason),
            }
        }
        Ok(Restorable {
            manifest: None,
            skipped,
        })
    }

    /// Checks that all packs of a checkpoint are there with the right length; the reason if not.
    pub async fn check_packs(&self, manifest: &Manifest) -> Result<(), JobError> {
        self.refuse_discard()?;
        let packs = self.packs().await?;
        match manifest
            .packs
            .iter()
            .find_map(|pack| packs.check(pack).err())
        {
            None => Ok(()),
            Some(reason) => Err(JobError::Unusable {
                job: self.name().clone(),
                number: manifest.number,
                reason,
            }),
        }
    }

    fn refuse_discard(&self) -> Result<(), JobError> {
        if self.inner.store.is_discarding() {
            return Err(JobError::Discarded {
                address: self.inner.store.address().to_owned(),
            });
        }
        Ok(())
    }

    /// Reads the chunks of a checkpoint.
    pub fn reader(&self, manifest: &Manifest) -> Result<Reader, JobError> {
        self.refuse_discard()?;
        Ok(Reader::new(self.clone(), manifest))
    }

    /// What a pack says that it holds.
    pub async fn pack_index(&self, id: &PackId) -> Result<PackIndex, JobError> {
        let failed = |source| JobError::Pack { pack: *id, source };
        let damaged = |detail: &str| {
            failed(PackError::Damaged {
                detail: detail.to_owned(),
            })
        };
        let key = self.pack_key(id);
        let length = self
            .packs()
            .await?
            .present
            .get(id)
            .copied()
            .ok_or_else(|| damaged("it is missing"))?;
        if length < pack::HEADER + pack::TRAILER {
            return Err(damaged("it is shorter than its header and trailer"));
        }
        let header = self.backend().read_range(&key, 0..pack::HEADER).await?;
        if pack::read_header(&header).map_err(failed)? != *id {
            return Err(damaged("it is another pack under this name"));
        }
        let trailer = self
            .backend()
            .read_range(&key, length - pack::TRAILER..length)
            .await?;
        let offset = pack::index_offset(&trailer, length).map_err(failed)?;
        let index = self.backend().read_range(&key, offset..length).await?;
        pack::read_index(&index, offset).map_err(failed)
    }

    // --- packs and the index ---------------------------------------------------------------------------------------

    pub(crate) async fn packs(&self) -> Result<PackSet, StoreFault> {
        let (packs, quarantine) = (self.key("packs"), self.key("quarantine"));
        let (present, quarantined) = futures::try_join!(
            self.backend().list(&packs),
            self.backend().list(&quarantine)
        )?;
        let id = |name: &str| PackId::parse(name);
        Ok(PackSet {
            present: present
                .iter()
                .filter_map(|object| Some((id(&object.name)?, object.size)))
                .collect(),
            quarantined: quarantined
                .iter()
                .filter_map(|object| id(&object.name))
                .collect(),
        })
    }

    /// Notes, for all who come after, that a pack is damaged: no checkpoint that needs it is restored, and no new one
    /// leans on it.
    pub async fn quarantine_pack(
        &self,
        pack: &PackId,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        #[derive(Serialize)]
        struct Note {
            reason: String,
            created: UnixMillis,
        }
        let note = Note {
            reason: reason.chars().take(1000).collect(),
            created: now,
        };
        let payload = envelope::to_cbor(QUARANTINE_KIND.what, &note)?;
        let bytes = envelope::seal(&QUARANTINE_KIND, &payload)?;
        self.backend()
            .write(&self.key(&format!("quarantine/{pack}")), bytes.into())
            .await?;
        if let Some(index) = self.index() {
            self.set_index(Some(Arc::new(index.without(pack))));
        }
        Ok(())
    }

    fn index(&self) -> Option<Arc<Index>> {
        self.inner
            .index
            .read()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn set_index(&self, index: Option<Arc<Index>>) {
        *self
            .inner
            .index
            .write()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = index;
    }

    /// Takes a committed manifest into the index.
    pub(crate) fn index_committed(&self, manifest: &Manifest) {
        // Without an index the next checkpoint reads it from the store, this manifest included.
        if let Some(index) = self.index() {
            self.set_index(Some(Arc::new(
                index.with_newest(manifest, self.options().indexed_checkpoints),
            )));
        }
    }

    /// The index, read from the newest checkpoints if it is not known.
    async fn load_index(&self) -> Result<Arc<Index>, JobError> {
        if let Some(index) = self.index() {
            return Ok(index);
        }
        let packs = match self.backend().medium() {
            Medium::Discard => None,
            Medium::Local | Medium::Remote => Some(self.packs().await?),
        };
        let mut index = Index::default();
        let mut taken = 0;
        for number in self.record_numbers().await?.into_iter().rev() {
            if taken == self.options().indexed_checkpoints {
                break;
            }
            let Ok(record) = self.record(number).await? else {
                continue;
            };
            if let Some(Ok(manifest)) = self.manifest_of(&record).await? {
                index.push_older(&manifest, packs.as_ref());
                taken += 1;
            }
        }
        let index = Arc::new(index);
        self.set_index(Some(index.clone()));
        Ok(index)
    }

    /// Begins a checkpoint. Nothing of it is visible before [`CheckpointWriter::commit`].
    pub async fn begin(&self, epoch: Epoch) -> Result<CheckpointWriter, JobError> {
        let index = self.load_index().await?;
        Ok(CheckpointWriter::new(self.clone(), epoch, index))
    }
}
