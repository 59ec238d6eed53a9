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

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use serde::{Deserialize, Serialize};

use crate::Digest;
use crate::backend::{Backend, Created, Listed};
use crate::cache::Since;
use crate::collection::{Collection, ManifestRef, NOTE_KIND, WriterNote};
use crate::crypt::{Crypt, Naming};
use crate::envelope::{self, EnvelopeError, Kind, Sealing};
use crate::fault::{FaultKind, StoreFault};
use crate::head::{self, HeadRecord, READS, RecordKind};
use crate::history::{Step, Walk};
use crate::index::{Index, PackSet, QUARANTINED};
use crate::known::Known;
use crate::leftovers::Leftovers;
use crate::manifest::{self, Manifest, ManifestError, PackEntry};
use crate::medium::Medium;
use crate::names::{CheckpointNumber, Epoch, JobName, Nonce, PackId, UnixMillis};
use crate::pack::{self, PackError, PackIndex};
use crate::reader::Reader;
use crate::store::{Store, StoreOptions};
use crate::writer::CheckpointWriter;

/// How often something that seems damaged is looked for once more while the log grows: collection may have moved it.
pub(crate) const LOOKS: u32 = 8;

const QUARANTINE_KIND: Kind = Kind {
    what: "quarantine note",
    magic: *b"PHOSQUAR",
    version: 1,
    max_stored: 64 << 10,
    max_plain: 64 << 10,
};

/// Where the quarantine note of a pack or manifest stands below its job.
fn quarantine_place(name: &str) -> String {
    format!("quarantine/{name}")
}

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
    /// Retention removed the checkpoint.
    #[error(
        "checkpoint {number} of job {job} was removed by retention: `phos-ft list` shows those there are"
    )]
    Removed {
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

/// How far a checkpoint has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// Set if the job went on from an older one since: the number of the take-over that left it behind.
    pub branch: Option<u64>,
}

impl CheckpointSummary {
    /// Whether a crash may resume from it: it is of the current run, on the current branch.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        !self.earlier_run && self.branch.is_none()
    }
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
    crypt: Crypt,
    /// The history that the store must show (see `known`).
    pub(crate) expected: Mutex<Option<Known>>,
    /// Whether the log was seen to be of our key.
    key_fits: AtomicBool,
    /// Held while a record is appended, so that clones do not race each other.
    pub(crate) log: tokio::sync::Mutex<Option<Log>>,
    index: RwLock<Option<Arc<Index>>>,
    /// Writers and readers of this process that ended and whose notes may still stand in the store.
    ended: Mutex<Vec<Ended>>,
    /// Whether an unfinished checkpoint may have left something (see `leftovers`).
    look_for_leftovers: AtomicBool,
    /// What manifests name, by their names, for collection.
    pub(crate) usages: Mutex<HashMap<String, Arc<Usage>>>,
}

/// A visible checkpoint with its manifest, or why that cannot be used.
pub(crate) struct FoundCheckpoint {
    pub number: CheckpointNumber,
    pub manifest_name: Option<String>,
    pub manifest: Result<Manifest, String>,
}

/// What a manifest names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub digest: Digest,
    /// The packs, and how many of their bytes its chunks take.
    pub packs: Vec<(PackEntry, u64)>,
}

/// A writer's or reader's note in the store. Whatever becomes of them, the note is taken back in the end: by
/// [`Self::remove`], else by the next collection of this process, else, when the process is gone, by a collection of a
/// later epoch (a writer's) or an hour later (a reader's).
pub(crate) struct Note {
    job: Job,
    key: String,
    /// Whose packs may be of use to the next one, if it is a writer's.
    writer: Option<Nonce>,
    stands: bool,
}

/// A note that nobody stands for any more.
struct Ended {
    key: String,
    writer: Option<Nonce>,
}

impl Note {
    /// A reader's.
    pub(crate) const fn new(job: Job, key: String) -> Self {
        Self {
            job,
            key,
            writer: None,
            stands: true,
        }
    }

    /// A writer's.
    pub(crate) fn of_writer(job: Job, writer: Nonce) -> Self {
        Self {
            key: job.note_key(&writer),
            writer: Some(writer),
            job,
            stands: true,
        }
    }

    /// Takes the note back; on a failure it is left to collection.
    pub(crate) async fn remove(mut self) {
        if self.job.backend().delete_once(&self.key).await.is_ok() {
            self.stands = false;
        }
    }

    /// It is not there.
    pub(crate) fn forget(mut self) {
        self.stands = false;
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if self.stands {
            if self.writer.is_some() {
                (self.job.inner.look_for_leftovers).store(true, Ordering::Relaxed);
            }
            self.job.lock_ended().push(Ended {
                key: std::mem::take(&mut self.key),
                writer: self.writer,
            });
        }
    }
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
pub(crate) type ReadRecord = Result<HeadRecord, String>;

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
        let options = &store.inner.options;
        let crypt = Crypt::of_job(options.encryption.as_ref(), &name, &options.nonces);
        let inner = Inner {
            store,
            name,
            crypt,
            expected: Mutex::default(),
            key_fits: AtomicBool::new(false),
            log: tokio::sync::Mutex::new(None),
            index: RwLock::new(None),
            ended: Mutex::default(),
            look_for_leftovers: AtomicBool::new(false),
            usages: Mutex::default(),
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

    pub(crate) fn crypt(&self) -> &Crypt {
        &self.inner.crypt
    }

    /// How its chunks are named.
    #[must_use]
    pub fn naming(&self) -> Naming {
        self.inner.crypt.naming()
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

    /// In each cache, these packs are of a checkpoint that is read or written now.
    pub(crate) fn used_in_caches(&self, packs: &[PackEntry]) -> Vec<Since> {
        let caches = self.options().caches.iter();
        let keys = || packs.iter().map(|pack| self.pack_key(&pack.id));
        caches.map(|cache| cache.used(keys())).collect()
    }

    pub(crate) fn note_key(&self, writer: &Nonce) -> String {
        self.key(&format!("writers/{writer}"))
    }

    fn lock_ended(&self) -> std::sync::MutexGuard<'_, Vec<Ended>> {
        self.inner
            .ended
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn record_key(&self, number: u64) -> String {
        self.key(&head::place(number))
    }

    // --- the log ---------------------------------------------------------------------------------------------------

    /// Numbers of all records, oldest first.
    pub(crate) async fn record_numbers(&self) -> Result<Vec<u64>, StoreFault> {
        let numbers = self.listed_numbers().await?;
        self.check_key_of(&numbers).await?;
        self.check_expected_among(&numbers).await?;
        Ok(numbers)
    }

    /// The same, of whatever history is there.
    pub(crate) async fn listed_numbers(&self) -> Result<Vec<u64>, StoreFault> {
        let listed = self.backend().list(&self.key("head")).await;
        let listed = listed.map_err(|fault| self.absent_if_known(fault))?;
        let mut numbers: Vec<u64> = listed
            .iter()
            .filter_map(|object| head::parse_record_name(&object.name))
            .filter(|&n| n > 0)
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    /// Whether the job can be read and written with the key that the store was opened with, or without one. Nothing is
    /// written. A job without a history takes any.
    ///
    /// # Errors
    /// A fault of the kind [`FaultKind::Key`], which says what to do; or a request failed.
    pub async fn check_key(&self) -> Result<(), JobError> {
        self.record_numbers().await?;
        Ok(())
    }

    /// A job keeps its key from the first record to the last, so its beginning tells: whoever has another is refused before
    /// anything is written. One record that opens with our key proves that the job is ours; then those that do not are
    /// damage.
    async fn check_key_of(&self, numbers: &[u64]) -> Result<(), StoreFault> {
        if self.inner.key_fits.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut refused: Option<StoreFault> = None;
        for &number in numbers.iter().take(READS) {
            let key = self.record_key(number);
            let read = self.backend().read(&key, head::KIND.max_object()).await;
            let bytes = match read {
                Ok(bytes) => bytes,
                Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let sealing = envelope::sealing(&head::KIND, &bytes);
            let fits = match (sealing, self.crypt().keys()) {
                (Sealing::Unknown, _) => continue,
                (Sealing::Plain, keys) => keys.is_none(),
                (Sealing::Sealed(id), Some(keys)) if id == keys.id() => {
                    if HeadRecord::decode(self.crypt(), number, &bytes).is_err() {
                        continue;
                    }
                    true
                }
                (Sealing::Sealed(_), _) => false,
            };
            if fits {
                self.inner.key_fits.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let fault = self.wrong_key(&key, sealing);
            if self.crypt().keys().is_none() {
                return Err(fault);
            }
            refused.get_or_insert(fault);
        }
        refused.map_or(Ok(()), Err)
    }

    /// The key does not fit a job that begins with a record like this.
    fn wrong_key(&self, key: &str, sealing: Sealing) -> StoreFault {
        let job = self.name();
        let given = self.crypt().keys().map(crate::crypt::JobKeys::id);
        let detail = match (sealing, given) {
            (Sealing::Sealed(id), None) => format!(
                "job {job} is encrypted with key {id}: give the key file that it was begun with, with \
                 --encryption-key-file FILE"
            ),
            (Sealing::Sealed(id), Some(given)) => format!(
                "job {job} is encrypted with key {id} and the file given is key {given}: give the key file that it was \
                 begun with, with --encryption-key-file FILE"
            ),
            (Sealing::Plain | Sealing::Unknown, _) => format!(
                "job {job} was begun without encryption and a key is given: to begin to encrypt, take another --job; if \
                 this job was encrypted until now, its store was tampered with"
            ),
        };
        StoreFault::with_kind("read", key, FaultKind::Key, detail)
    }

    pub(crate) async fn record(&self, number: u64) -> Result<ReadRecord, StoreFault> {
        let found = self.find_record(number).await?;
        Ok(found.unwrap_or_else(|| Err(format!("record {number} is missing"))))
    }

    /// The record of a number, if there is one.
    pub(crate) async fn find_record(&self, number: u64) -> Result<Option<ReadRecord>, StoreFault> {
        let key = self.record_key(number);
        let read = (self.backend()).read_checked(&key, head::KIND.max_object(), |bytes| {
            HeadRecord::decode(self.crypt(), number, bytes).map_err(|error| error.to_string())
        });
        match read.await {
            Ok(record) => Ok(Some(record)),
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(None),
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(Some(Err(fault.to_string()))),
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
        if epoch.is_none() {
            // Damaged, or the store was exchanged after the listing.
            self.check_expected_with(tail).await?;
        }
        Ok(Log { tail, epoch })
    }

    /// Tries to append a record. Its number must be one more than that of the newest record seen.
    pub(crate) async fn append(&self, record: &HeadRecord) -> Result<Appended, JobError> {
        let key = self.record_key(record.number);
        if record.number > head::MOST_RECORDS {
            let detail = format!(
                "a record stands before it that phos-ft did not write: delete {}",
                self.record_key(record.number - 1)
            );
            return Err(StoreFault::with_kind("create", key, FaultKind::Invalid, detail).into());
        }
        let bytes = record.encode(self.crypt())?;
        match self
            .backend()
            .create(&key, bytes, head::KIND.max_object())
            .await?
        {
            Created::Done => {
                // Where the store was exchanged meanwhile, it stands in another one, or in an older copy.
                self.check_expected_with(record.number - 1).await?;
                self.grew(record.number);
                Ok(Appended::Done)
            }
            Created::Taken(_) => Ok(Appended::Lost),
        }
    }

    /// Who made the newest record, for a message; never fails.
    pub(crate) async fn usurper(&self, tail: u64) -> String {
        let mut number = tail;
        for _ in 0..READS {
            match self.record(number).await {
                Ok(Ok(HeadRecord {
                    kind: RecordKind::TakenOver { holder, .. },
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
        self.take_over_after(holder, now, None).await
    }

    /// Takes the job over to go on from an older checkpoint than the newest: what was made after it is left behind, as a branch
    /// of its own. `None`: from the job's beginning.
    pub async fn take_over_from(
        &self,
        holder: &str,
        now: UnixMillis,
        checkpoint: Option<CheckpointNumber>,
    ) -> Result<TakenOver, JobError> {
        let after = checkpoint.map_or(0, |number| number.0);
        self.take_over_after(holder, now, Some(after)).await
    }

    async fn take_over_after(
        &self,
        holder: &str,
        now: UnixMillis,
        after: Option<u64>,
    ) -> Result<TakenOver, JobError> {
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
                    after: after.filter(|&after| after < seen.tail || after == 0),
                },
            };
            if matches!(self.append(&record).await?, Appended::Done) {
                *log = Some(Log {
                    tail: number,
                    epoch: Some(record.epoch),
                });
                // Others may have written since the index was read, or died over it.
                self.set_index(None);
                (self.inner.look_for_leftovers).store(true, Ordering::Relaxed);
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
            if let Err(fault) = self.check_expected_with(seen.tail).await {
                *log = None;
                return Err(fault.into());
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

    /// Who began an epoch, as it said itself; `None` if there is no such record.
    pub async fn holder_of(&self, epoch: Epoch) -> Result<Option<String>, JobError> {
        // An epoch has the number of the record that began it.
        Ok(match self.find_record(epoch.0).await? {
            Some(Ok(HeadRecord {
                kind: RecordKind::TakenOver { holder, .. },
                ..
            })) => Some(holder),
            _ => None,
        })
    }

    /// Who took the job over after the epoch `after`, up to the epoch `upto`, newest first; and why older ones of them
    /// are not known, if so: a record cannot be read, there are too many, or `after` is no epoch of this history.
    ///
    /// Two records are read for each one: every record says which epoch is in force, so that before a take-over says
    /// which one it ended.
    pub async fn take_overs_between(
        &self,
        after: Epoch,
        upto: Epoch,
    ) -> Result<(Vec<String>, Option<String>), JobError> {
        let mut holders = Vec::new();
        let mut epoch = upto;
        while epoch > after {
            if holders.len() == READS {
                let reason = format!("the job was taken over {READS} times since");
                return Ok((holders, Some(reason)));
            }
            match self.record(epoch.0).await? {
                Ok(HeadRecord {
                    kind: RecordKind::TakenOver { holder, .. },
                    ..
                }) => holders.push(holder),
                Ok(_) => {
                    let reason = format!("record {epoch} of the store is no take-over");
                    return Ok((holders, Some(reason)));
                }
                Err(reason) => {
                    let reason = format!("record {epoch} of the store cannot be read: {reason}");
                    return Ok((holders, Some(reason)));
                }
            }
            let before = epoch.0 - 1;
            epoch = match self.record(before).await? {
                Ok(record) => record.epoch,
                Err(reason) => {
                    let reason = format!("record {before} of the store cannot be read: {reason}");
                    return Ok((holders, Some(reason)));
                }
            };
        }
        let reason = (epoch != after).then(|| format!("epoch {after} is not in the store"));
        Ok((holders, reason))
    }

    /// Where the job's history stands now.
    pub async fn state(&self) -> Result<JobState, JobError> {
        let mut walk = Walk::new(self, 1).await?;
        let tail = walk.tail();
        let mut state = JobState {
            tail,
            epoch: None,
            holder: None,
            newest: None,
            completed: None,
        };
        if tail > 0 {
            let newest = self.record(tail).await?;
            state.epoch = newest.ok().map(|record| record.epoch);
        }
        while let Some(step) = walk.next().await? {
            if step.branch.is_some() {
                continue;
            }
            match step.record.map(|record| record.kind) {
                Ok(RecordKind::TakenOver { holder, .. }) => {
                    state.holder.get_or_insert(holder);
                }
                Ok(RecordKind::Checkpoint { .. }) => {
                    state.newest = Some(CheckpointNumber(step.number));
                    break;
                }
                Ok(RecordKind::Completed { exit_code }) => {
                    state.completed = Some(exit_code);
                    break;
                }
                Ok(RecordKind::Collected { .. }) | Err(_) => {}
            }
        }
        Ok(state)
    }

    /// Whether the job's current branch began with its beginning while there were checkpoints
    /// ([`take_over_from`](Self::take_over_from) none).
    pub async fn began_afresh(&self) -> Result<bool, JobError> {
        let mut walk = Walk::new(self, READS).await?;
        while walk.next().await?.is_some() {}
        Ok(walk.forks().began_afresh())
    }

    /// All records of the log, oldest first, each as read or with the reason why it cannot be.
    pub async fn records(&self) -> Result<Vec<(u64, Result<HeadRecord, String>)>, JobError> {
        let numbers = self.record_numbers().await?;
        let reads = stream::iter(numbers)
            .map(|number| async move { Ok((number, self.record(number).await?)) });
        reads.buffered(READS).try_collect().await
    }

    // --- checkpoints -----------------------------------------------------------------------------------------------

    /// How safe what is stored here is.
    #[must_use]
    pub fn durability(&self) -> Durability {
        match self.backend().medium() {
            Medium::Remote => Durability::Remote,
            Medium::Local | Medium::Discard => Durability::Local,
        }
    }

    /// All checkpoints, newest first, also those of earlier runs.
    pub async fn list(&self) -> Result<Listing, JobError> {
        let durability = self.durability();
        let mut walk = Walk::new(self, READS).await?;
        let mut listing = Listing::default();
        let mut earlier_run = false;
        while let Some(step) = walk.next().await? {
            let Step {
                number,
                record,
                branch,
                ..
            } = step;
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
                    earlier_run: earlier_run && branch.is_none(),
                    branch,
                }),
                Ok(HeadRecord {
                    kind: RecordKind::Completed { .. },
                    ..
                }) => earlier_run |= branch.is_none(),
                Ok(_) => {}
                Err(reason) => listing.damaged.push(SkippedCheckpoint { number, reason }),
            }
        }
        Ok(listing)
    }

    /// The manifest of a checkpoint. That its packs are whole is not checked.
    pub async fn manifest(&self, number: CheckpointNumber) -> Result<Manifest, JobError> {
        Ok(self.manifest_and_name(number).await?.0)
    }

    pub(crate) async fn manifest_and_name(
        &self,
        number: CheckpointNumber,
    ) -> Result<(Manifest, ManifestRef), JobError> {
        let mut said_before = None;
        for _ in 0..LOOKS {
            let tail = self.tail_hint().await?;
            match self.manifest_once(number).await {
                Err(JobError::Unusable { .. }) if self.grew_beyond(tail).await? => {}
                Err(
                    error @ (JobError::Unusable { .. }
                    | JobError::Removed { .. }
                    | JobError::NoCheckpoint { .. }),
                ) => {
                    // A store that went away meanwhile, or was away for a moment, is neither damaged nor another one.
                    self.check_expected_with(tail).await?;
                    let said = error.to_string();
                    if self.expected().is_none() || said_before.as_ref() == Some(&said) {
                        return Err(error);
                    }
                    said_before = Some(said);
                }
                other => return other,
            }
        }
        self.manifest_once(number).await
    }

    /// Number of the newest record.
    async fn tail_hint(&self) -> Result<u64, StoreFault> {
        Ok(self.record_numbers().await?.last().copied().unwrap_or(0))
    }

    async fn manifest_once(
        &self,
        number: CheckpointNumber,
    ) -> Result<(Manifest, ManifestRef), JobError> {
        let job = || self.name().clone();
        let unusable = |reason| JobError::Unusable {
            job: job(),
            number,
            reason,
        };
        let mut walk = Walk::new(self, READS).await?;
        while let Some(step) = walk.next().await? {
            if step.number > number.0 {
                continue;
            }
            if step.number < number.0 {
                break;
            }
            if let Err(reason) = step.record {
                return Err(unusable(reason));
            }
            let Some(named) = step.manifest else {
                break;
            };
            let read = self.read_manifest(number.0, &named).await?;
            return Ok((read.map_err(unusable)?, named));
        }
        match self.find_record(number.0).await? {
            Some(Ok(HeadRecord {
                kind: RecordKind::Checkpoint { .. },
                ..
            })) => Err(JobError::Removed { job: job(), number }),
            _ => Err(JobError::NoCheckpoint { job: job(), number }),
        }
    }

    /// The manifest of a checkpoint, or why it cannot be used.
    pub(crate) async fn read_manifest(
        &self,
        number: u64,
        named: &ManifestRef,
    ) -> Result<Result<Manifest, String>, StoreFault> {
        let name = &named.name;
        if name.contains('/') {
            return Ok(Err(format!(
                "its record names the manifest {name:?}, which is no name"
            )));
        }
        let key = self.key(&format!("manifests/{name}"));
        let read = (self.backend()).read_checked(&key, manifest::KIND.max_object(), |bytes| {
            self.check_manifest(number, named.digest, bytes)
        });
        match read.await {
            Ok(manifest) => Ok(manifest),
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                Ok(Err(fault.to_string()))
            }
            Err(fault) => Err(fault),
        }
    }

    /// A manifest that no record names, by its name, if it is whole and that of this checkpoint.
    pub(crate) async fn manifest_by_name(
        &self,
        number: u64,
        name: &str,
    ) -> Result<Option<(ManifestRef, Manifest)>, StoreFault> {
        let key = self.key(&format!("manifests/{name}"));
        let read = self.backend().read(&key, manifest::KIND.max_object()).await;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let digest = Digest::of(&bytes);
        if !name.starts_with(&crate::collection::name(number, &digest)) {
            return Ok(None);
        }
        let named = ManifestRef {
            name: name.to_owned(),
            digest,
            length: bytes.len() as u64,
        };
        let manifest = self.check_manifest(number, digest, &bytes);
        Ok(manifest.ok().map(|manifest| (named, manifest)))
    }

    fn check_manifest(
        &self,
        number: u64,
        digest: Digest,
        bytes: &Bytes,
    ) -> Result<Manifest, String> {
        // First what it says of itself: "of a newer format" tells more than "not the expected bytes".
        let manifest = Manifest::decode_in(self.crypt(), number, bytes)
            .map_err(|error: ManifestError| error.to_string())?;
        if Digest::of(bytes) != digest {
            return Err("its manifest is not the one that was committed".into());
        }
        if manifest.job != *self.name() || manifest.number.0 != number {
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
    ///
    /// Collection may take away what it needs while it is read: [`Self::hold_newest`].
    pub async fn newest_restorable(&self) -> Result<Restorable, JobError> {
        Ok(self.newest_restorable_and_name().await?.0)
    }

    pub(crate) async fn newest_restorable_and_name(
        &self,
    ) -> Result<(Restorable, Option<ManifestRef>), JobError> {
        self.refuse_discard()?;
        let mut looks = 0;
        let mut skipped_before = None;
        loop {
            looks += 1;
            let (found, named, tail) = self.newest_restorable_once().await?;
            if found.skipped.is_empty() {
                return Ok((found, named));
            }
            // A store that went away meanwhile is not damaged, nor is one that was away for a moment.
            self.check_expected_with(tail).await?;
            let is_settled = (self.expected().is_none()
                || skipped_before.as_ref() == Some(&found.skipped))
                && !self.grew_beyond(tail).await?;
            if is_settled || looks > LOOKS {
                return Ok((found, named));
            }
            skipped_before = Some(found.skipped);
        }
    }

    async fn newest_restorable_once(
        &self,
    ) -> Result<(Restorable, Option<ManifestRef>, u64), JobError> {
        let mut skipped = Vec::new();
        let mut walk = Walk::new(self, 1).await?;
        // After the log: what is committed meanwhile would seem to lack its packs.
        let packs = self.packs().await?;
        while let Some(step) = walk.next().await? {
            if step.branch.is_some() {
                continue;
            }
            let number = step.number;
            let mut skip = |reason| {
                skipped.push(SkippedCheckpoint {
                    number: CheckpointNumber(number),
                    reason,
                })
            };
            let record = match step.record {
                Ok(record) => record,
                Err(reason) => {
                    skip(reason);
                    continue;
                }
            };
            if matches!(record.kind, RecordKind::Completed { .. }) {
                break;
            }
            let Some(named) = step.manifest else {
                continue;
            };
            if packs.manifests.contains(&named.name) {
                skip(format!("manifest {} is {QUARANTINED}", named.name));
                continue;
            }
            let manifest = match self.read_manifest(number, &named).await? {
                Ok(manifest) => manifest,
                Err(reason) => {
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
                    let found = Restorable {
                        manifest: Some(manifest),
                        skipped,
                    };
                    return Ok((found, Some(named), walk.tail()));
                }
                Some(reason) => skip(reason),
            }
        }
        let found = Restorable {
            manifest: None,
            skipped,
        };
        // Packs were listed then: what the walk met beyond it may name newer ones.
        Ok((found, None, walk.tail()))
    }

    /// All visible checkpoints with their manifests, newest first, or with the reason why one cannot be used. That their
    /// packs are whole is not checked.
    pub async fn checkpoints(
        &self,
    ) -> Result<Vec<(CheckpointNumber, Result<Manifest, String>)>, JobError> {
        self.fold_checkpoints(|all: &mut Vec<_>, found| all.push((found.number, found.manifest)))
            .await
    }

    /// Shows all visible checkpoints to `take`, newest first, one manifest at a time: all of them together may be more than
    /// there is memory. If it has to look again, it begins with another `T`.
    pub(crate) async fn fold_checkpoints<T: Default>(
        &self,
        mut take: impl FnMut(&mut T, FoundCheckpoint),
    ) -> Result<T, JobError> {
        let mut looks = 0;
        loop {
            looks += 1;
            let (folded, damaged, tail) = self.fold_checkpoints_once(&mut take).await?;
            if damaged {
                self.check_expected_with(tail).await?;
            }
            if !damaged || looks > LOOKS || !self.grew_beyond(tail).await? {
                return Ok(folded);
            }
        }
    }

    /// What `take` made of the checkpoints, whether one cannot be used, and the newest record seen.
    async fn fold_checkpoints_once<T: Default>(
        &self,
        take: &mut impl FnMut(&mut T, FoundCheckpoint),
    ) -> Result<(T, bool, u64), JobError> {
        let mut walk = Walk::new(self, READS).await?;
        let (mut folded, mut damaged) = (T::default(), false);
        while let Some(step) = walk.next().await? {
            let number = CheckpointNumber(step.number);
            let found = match (step.record, step.manifest) {
                (Err(reason), _) => FoundCheckpoint {
                    number,
                    manifest_name: None,
                    manifest: Err(reason),
                },
                (Ok(_), Some(named)) => FoundCheckpoint {
                    number,
                    manifest: self.read_manifest(step.number, &named).await?,
                    manifest_name: Some(named.name),
                },
                (Ok(_), None) => continue,
            };
            damaged |= found.manifest.is_err();
            take(&mut folded, found);
        }
        Ok((folded, damaged, walk.newest()))
    }

    /// Checks that all packs of a checkpoint are there with the right length; the reason if not.
    pub async fn check_packs(&self, manifest: &Manifest) -> Result<(), JobError> {
        self.refuse_discard()?;
        if self.unusable(manifest).await?.is_none() {
            return Ok(());
        }
        // A store that is away, or was for a moment, is not damaged.
        self.known().await?;
        match self.unusable(manifest).await? {
            None => Ok(()),
            Some(reason) => Err(JobError::Unusable {
                job: self.name().clone(),
                number: manifest.number,
                reason,
            }),
        }
    }

    /// What is wrong with the packs of a checkpoint, by a listing.
    async fn unusable(&self, manifest: &Manifest) -> Result<Option<String>, StoreFault> {
        let packs = self.packs().await?;
        let reason = |pack| packs.check(pack).err();
        Ok(manifest.packs.iter().find_map(reason))
    }

    pub(crate) fn refuse_discard(&self) -> Result<(), JobError> {
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
        let missing = || JobError::Pack {
            pack: *id,
            source: PackError::Damaged {
                detail: "it is missing".to_owned(),
            },
        };
        let length = self.packs().await?.present.get(id).copied();
        self.read_pack_index(id, length.ok_or_else(missing)?).await
    }

    /// The index of a pack of that length.
    pub(crate) async fn read_pack_index(
        &self,
        id: &PackId,
        length: u64,
    ) -> Result<PackIndex, JobError> {
        let failed = |source| JobError::Pack { pack: *id, source };
        let damaged = |detail: &str| {
            failed(PackError::Damaged {
                detail: detail.to_owned(),
            })
        };
        let key = self.pack_key(id);
        if length < pack::HEADER + pack::TRAILER {
            return Err(damaged("it is shorter than its header and trailer"));
        }
        let header = self.backend().read_range(&key, 0..pack::HEADER).await?;
        if pack::read_header(self.crypt(), &header).map_err(failed)? != *id {
            return Err(damaged("it is another pack under this name"));
        }
        let trailer = self
            .backend()
            .read_range(&key, length - pack::TRAILER..length)
            .await?;
        let offset = pack::index_offset(self.crypt(), &trailer, length).map_err(failed)?;
        let index = self.backend().read_range(&key, offset..length).await?;
        pack::read_index(self.crypt(), id, &index, offset).map_err(failed)
    }

    // --- packs and the index ---------------------------------------------------------------------------------------

    pub(crate) async fn packs(&self) -> Result<PackSet, StoreFault> {
        let (packs, quarantine) = (self.key("packs"), self.key("quarantine"));
        let (present, quarantined) = futures::try_join!(
            self.backend().list(&packs),
            self.backend().list(&quarantine)
        )?;
        let quarantined = self.believed(quarantined).await?;
        let id = |name: &str| PackId::parse(name);
        Ok(PackSet {
            present: present
                .iter()
                .filter_map(|object| Some((id(&object.name)?, object.size)))
                .collect(),
            manifests: quarantined
                .iter()
                .filter(|name| id(name).is_none())
                .cloned()
                .collect(),
            quarantined: quarantined.iter().filter_map(|name| id(name)).collect(),
        })
    }

    /// The names of the quarantine notes that count. Without a key, that they stand there is what counts. With one, a note must be
    /// the job's: who may write to the store and has no key makes no restore go past a checkpoint that is there and whole.
    async fn believed(&self, notes: Vec<Listed>) -> Result<Vec<String>, StoreFault> {
        let names = notes.into_iter().map(|object| object.name);
        if self.crypt().keys().is_none() {
            return Ok(names.collect());
        }
        let looks = stream::iter(names).map(|name| async move {
            let counts = self.is_quarantined(&name).await?;
            Ok::<_, StoreFault>(counts.then_some(name))
        });
        let found: Vec<Option<String>> = looks.buffered(READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Notes, for all who come after, that a pack is damaged: no checkpoint that needs it is restored, and no new one
    /// leans on it, until a deep verification has read it and found it sound.
    ///
    /// One that is missing gets no note: listings show that, and should it come back, it counts again.
    pub async fn quarantine_pack(
        &self,
        pack: &PackId,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        // If this cannot be found out now, it is noted rather than not.
        let missing = (self.packs().await).is_ok_and(|packs| !packs.present.contains_key(pack));
        if missing {
            self.forget_pack(pack);
            return Ok(());
        }
        self.note_damaged_pack(pack, reason, now).await
    }

    /// [`Self::quarantine_pack`] for one who knows that it is there.
    pub(crate) async fn note_damaged_pack(
        &self,
        pack: &PackId,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        self.quarantine(&pack.to_string(), reason, now).await?;
        self.forget_pack(pack);
        Ok(())
    }

    /// The next checkpoints of this handle do not lean on a pack unless it is found again. Nothing is noted.
    pub fn forget_pack(&self, pack: &PackId) {
        if let Some(index) = self.index() {
            self.set_index(Some(Arc::new(index.without(pack))));
        }
    }

    /// Whether a note that counts says that a manifest or pack is damaged.
    pub(crate) async fn is_quarantined(&self, name: &str) -> Result<bool, StoreFault> {
        if name.contains('/') {
            return Ok(false);
        }
        let place = quarantine_place(name);
        let key = self.key(&place);
        let sealed = self.crypt().keys().is_some();
        let read = (self.backend()).read_checked(&key, QUARANTINE_KIND.max_object(), |bytes| {
            match sealed {
                true => envelope::open_in(self.crypt(), &place, &QUARANTINE_KIND, bytes).map(drop),
                // That it stands there is what counts.
                false => Ok(()),
            }
        });
        match read.await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => {
                tracing::warn!(
                    note = key, %error,
                    "a quarantine note is not the job's: what it is about is used all the same, and checked like everything. Delete the note"
                );
                Ok(false)
            }
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(!sealed),
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Takes a quarantine note back: what it is about was read and is sound.
    pub(crate) async fn lift_quarantine(&self, name: &str) -> Result<(), StoreFault> {
        self.backend()
            .delete(&self.key(&quarantine_place(name)))
            .await
    }

    /// Notes that a manifest is damaged: its checkpoint is not restored and not leaned on, also should its bytes read
    /// right by chance, until a deep verification has read it. The caller knows that it is there.
    pub(crate) async fn quarantine_manifest(
        &self,
        name: &str,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        if name.contains('/') {
            return Ok(());
        }
        self.quarantine(name, reason, now).await
    }

    async fn quarantine(&self, name: &str, reason: &str, now: UnixMillis) -> Result<(), JobError> {
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
        let place = quarantine_place(name);
        let bytes = envelope::seal_in(self.crypt(), &place, &QUARANTINE_KIND, &payload)?;
        let key = self.key(&place);
        Ok(self.backend().write(&key, bytes.into()).await?)
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
    pub(crate) fn index_committed(&self, manifest: &Manifest, named: ManifestRef) {
        // Without an index the next checkpoint reads it from the store, this manifest included.
        if let Some(index) = self.index() {
            let number = manifest.number.0;
            let mut newer = index.with_newest(manifest, named, self.options().indexed_checkpoints);
            if index.horizon() + 1 == number {
                newer = newer.advanced(number);
            }
            self.set_index(Some(Arc::new(newer)));
        }
    }

    /// The index, read from the newest checkpoints if it is not known.
    async fn load_index(&self) -> Result<Arc<Index>, JobError> {
        if let Some(index) = self.index() {
            return Ok(index);
        }
        let mut walk = Walk::new(self, 1).await?;
        let mut index = Index::at(walk.tail());
        let packs = match self.backend().medium() {
            Medium::Discard => None,
            Medium::Local | Medium::Remote => Some(self.packs().await?),
        };
        let mut taken = 0;
        while taken < self.options().indexed_checkpoints
            && let Some(step) = walk.next().await?
        {
            // What cannot be read may be a collection, so what is older may be about to go.
            if step.record.is_err() || !step.trusted {
                break;
            }
            let Some(named) = step.manifest else {
                continue;
            };
            if (packs.as_ref()).is_some_and(|packs| packs.manifests.contains(&named.name)) {
                continue;
            }
            if let Ok(manifest) = self.read_manifest(step.number, &named).await? {
                index.push_older(&manifest, named, packs.as_ref());
                taken += 1;
            }
        }
        let index = Arc::new(index);
        self.set_index(Some(index.clone()));
        Ok(index)
    }

    /// The index as of the newest record there is; `None` if it must be read again.
    async fn catch_up(&self, index: &Arc<Index>) -> Result<Option<Arc<Index>>, JobError> {
        let records = self.records_after(index.horizon()).await?;
        let Some((tail, newest)) = records.last() else {
            return Ok(Some(index.clone()));
        };
        let now = Log {
            tail: *tail,
            epoch: newest.as_ref().ok().map(|record| record.epoch),
        };
        let mut current = index.as_ref().clone();
        for (_, record) in &records {
            let Ok(record) = record else {
                return Ok(None);
            };
            if matches!(record.kind, RecordKind::Collected { .. }) {
                let Ok(collection) = self.collection_of(record).await? else {
                    return Ok(None);
                };
                let Some(after) = current.collected(&collection) else {
                    return Ok(None);
                };
                current = after;
            }
        }
        let current = Arc::new(current.advanced(now.tail));
        self.set_index(Some(current.clone()));
        let mut log = self.inner.log.lock().await;
        if log.is_none_or(|log| log.tail < now.tail) {
            *log = Some(now);
        }
        Ok(Some(current))
    }

    /// Begins a checkpoint. Nothing of it is visible before [`CheckpointWriter::commit`].
    ///
    /// What it may lean on is noted in the store first, so that no collection takes it away meanwhile; see the protocol
    /// in `collect`.
    pub async fn begin(&self, epoch: Epoch) -> Result<CheckpointWriter, JobError> {
        // Nothing is written into a directory on which its file system is not mounted.
        self.check_expected_with(0).await?;
        let nonce = self.nonce();
        let mut note: Option<Note> = None;
        loop {
            let index = self.load_index().await?;
            let mut left = Leftovers::default();
            if self.inner.look_for_leftovers.load(Ordering::Relaxed)
                && self.backend().medium() != Medium::Discard
            {
                left = self.leftovers(epoch, index.horizon()).await;
            }
            // From the first attempt on: one that fails may have been done.
            note.get_or_insert_with(|| Note::of_writer(self.clone(), nonce));
            self.write_note(nonce, epoch, &index, &left).await?;
            let Some(current) = self.catch_up(&index).await? else {
                self.set_index(None);
                continue;
            };
            // Told now, not after the job was held and all of its packs went up.
            let log = *self.inner.log.lock().await;
            if let Some(Log {
                tail,
                epoch: Some(other),
            }) = log
                && other != epoch
            {
                if let Some(note) = note.take() {
                    note.remove().await;
                }
                return Err(JobError::Fenced {
                    job: self.name().clone(),
                    epoch,
                    by: self.usurper(tail).await,
                });
            }
            let packs = left.entries();
            let swept = self.swept_between(index.horizon(), current.horizon(), &packs);
            if let Some(reason) = swept.await? {
                tracing::debug!(reason, "what an unfinished checkpoint left was collected");
                left = Leftovers::default();
            }
            // A collection that did not see our note saw theirs.
            if !left.writers.is_empty() && !self.notes_stand(&left.writers).await? {
                left = Leftovers::default();
            }
            // All of it was of one store.
            self.check_expected_with(current.horizon()).await?;
            if let Some(note) = note {
                return Ok(CheckpointWriter::new(
                    self.clone(),
                    epoch,
                    note,
                    nonce,
                    current,
                    left,
                ));
            }
        }
    }

    async fn write_note(
        &self,
        nonce: Nonce,
        epoch: Epoch,
        index: &Index,
        left: &Leftovers,
    ) -> Result<(), JobError> {
        let note = WriterNote {
            epoch,
            seen: index.horizon(),
            leans_on: index.leans_on(),
            keeps_packs: true,
            adopts: left.writers.clone(),
        };
        let bytes = note.encode(self.crypt(), &nonce)?;
        Ok(self.backend().write(&self.note_key(&nonce), bytes).await?)
    }

    /// Writers of this process that ended without a commit.
    pub(crate) fn ended_writers(&self) -> Vec<Nonce> {
        (self.lock_ended().iter())
            .filter_map(|ended| ended.writer)
            .collect()
    }

    /// A writer's note was taken back.
    pub(crate) fn forget_ended(&self, writer: &Nonce) {
        self.lock_ended()
            .retain(|ended| ended.writer != Some(*writer));
    }

    /// What unfinished checkpoints left is part of a visible one now.
    pub(crate) fn leftovers_are_used(&self) {
        (self.inner.look_for_leftovers).store(false, Ordering::Relaxed);
    }

    /// Says, with a note, that a collector writes packs of its own.
    pub(crate) async fn note_collector(
        &self,
        nonce: Nonce,
        epoch: Epoch,
        seen: u64,
    ) -> Result<Note, JobError> {
        let note = Note::of_writer(self.clone(), nonce);
        self.write_note(nonce, epoch, &Index::at(seen), &Leftovers::default())
            .await?;
        Ok(note)
    }

    /// Whether the notes of all these writers stand.
    async fn notes_stand(&self, writers: &[Nonce]) -> Result<bool, StoreFault> {
        let listed = self.backend().list(&self.key("writers")).await?;
        let standing: HashSet<Nonce> = (listed.iter())
            .filter_map(|object| crate::collection::parse_note_name(&object.name))
            .collect();
        Ok(writers.iter().all(|writer| standing.contains(writer)))
    }

    /// The notes of all writers, by their names. Those that end meanwhile are left out; `Err` for one that cannot be
    /// read.
    pub(crate) async fn notes(
        &self,
    ) -> Result<Vec<(Nonce, Result<WriterNote, String>)>, StoreFault> {
        let listed = self.backend().list(&self.key("writers")).await?;
        let nonces: Vec<Nonce> = listed
            .iter()
            .filter_map(|object| crate::collection::parse_note_name(&object.name))
            .collect();
        let reads = stream::iter(nonces).map(|nonce| async move {
            let key = self.note_key(&nonce);
            match self.backend().read(&key, NOTE_KIND.max_object()).await {
                Ok(bytes) => {
                    let note = WriterNote::decode(self.crypt(), &nonce, &bytes);
                    Ok(Some((nonce, note.map_err(|error| error.to_string()))))
                }
                Err(fault) if fault.kind() == FaultKind::NotFound => Ok(None),
                Err(fault) if fault.kind() == FaultKind::Foreign => {
                    Ok(Some((nonce, Err(fault.to_string()))))
                }
                Err(fault) => Err(fault),
            }
        });
        let found: Vec<Option<_>> = reads.buffered(READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Takes back the notes of writers and readers of this process that ended without doing so.
    pub(crate) async fn remove_notes_of_ended(&self) -> Result<(), StoreFault> {
        let mut ended = std::mem::take(&mut *self.lock_ended());
        while let Some(last) = ended.last() {
            if let Err(fault) = self.backend().delete(&last.key).await {
                self.lock_ended().append(&mut ended);
                return Err(fault);
            }
            ended.pop();
        }
        Ok(())
    }

    /// What was collected in the records `after + 1` to `tail` of packs that a manifest names; why it cannot be known, if
    /// it cannot.
    pub(crate) async fn swept_between(
        &self,
        after: u64,
        tail: u64,
        packs: &[PackEntry],
    ) -> Result<Option<String>, StoreFault> {
        for number in after + 1..=tail {
            let record = match self.record(number).await? {
                Ok(record) => record,
                Err(reason) => return Ok(Some(reason)),
            };
            if !matches!(record.kind, RecordKind::Collected { .. }) {
                continue;
            }
            let collection: Collection = match self.collection_of(&record).await? {
                Ok(collection) => collection,
                Err(reason) => return Ok(Some(reason)),
            };
            if let Some(pack) = collection.sweeps(packs.iter().map(|pack| &pack.id)) {
                return Ok(Some(format!(
                    "pack {pack} was collected by record {number}"
                )));
            }
        }
        Ok(None)
    }
}
