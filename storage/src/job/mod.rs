//! A job's history: its log (`log`), its checkpoints (`history`, `list`, `manifests`, `restorable`), its packs (`packs`,
//! `quarantine`), and who may write (`take_over`, `lease`, `notes`) or has to be heard before anything is deleted (`hold`).
//!
//! What is done with a history stands elsewhere: `reader`, `writer`, `collect`, `verify` depend on this folder, and it depends
//! on none of them.
//!
//! # Consistency
//!
//! Everything visible follows from the log (see `head`), and is appended in one place ([`Job::append`]).
//!
//! # Damage
//!
//! A record, manifest or pack that cannot be read *because of what it holds* makes its checkpoint skipped, with a
//! reason that the caller must say loudly. One that cannot be read *just now* (time-outs, refused credentials) is an
//! error: falling back to an older checkpoint over a broken network would lose work for nothing.

mod collections;
mod error;
mod history;
mod hold;
mod key;
mod known;
mod lease;
mod list;
mod log;
mod manifests;
mod notes;
mod packs;
mod quarantine;
mod restorable;
mod take_over;

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, RwLock};

use async_recursion::async_recursion as boxed;

pub use self::error::JobError;
pub(crate) use self::history::{Entry, History};
pub use self::hold::{Hold, RENEW_EVERY};
pub(crate) use self::hold::{KIND as READER_NOTE_KIND, ReaderNote};
pub use self::known::{HistoryId, Known, Rollback};
pub(crate) use self::lease::KIND as LEASE_KIND;
pub use self::lease::Lease;
pub use self::list::{CheckpointSummary, Durability, JobState, Listing, SkippedCheckpoint};
pub(crate) use self::log::{Append, AppendError, Draft, Log, LogView};
pub(crate) use self::manifests::FoundCheckpoint;
use self::notes::Ended;
pub(crate) use self::notes::Note;
pub use self::restorable::Restorable;
pub use self::take_over::{Holder, TakenOver};
use crate::Digest;
use crate::backend::Backend;
use crate::crypt::{Crypt, Naming};
use crate::index::Index;
use crate::manifest::PackEntry;
use crate::names::{JobName, Nonce};
use crate::options::StoreOptions;
use crate::store::Store;

/// How often something that seems damaged is looked for once more while the log grows: collection may have moved it.
pub(crate) const LOOKS: u32 = 8;

/// Handle of a job's history. Cheap to clone; clones share what they remember.
#[derive(Clone)]
pub struct Job {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) store: Store,
    pub(crate) name: JobName,
    crypt: Crypt,
    /// The history that the store must show (see `job::known`).
    pub(crate) expected: Mutex<Option<Known>>,
    /// Whether the log was seen to be of our key.
    key_fits: AtomicBool,
    /// Held while a record is appended, so that clones do not race each other.
    pub(crate) log: tokio::sync::Mutex<Option<Log>>,
    index: RwLock<Option<Arc<Index>>>,
    /// Writers and readers of this process that ended and whose notes may still stand in the store.
    ended: Mutex<Vec<Ended>>,
    /// Whether an unfinished checkpoint may have left something (see `writer::leftovers`).
    look_for_leftovers: AtomicBool,
    /// What manifests name, by their names, for collection.
    pub(crate) usages: Mutex<HashMap<String, Arc<Usage>>>,
}

/// The manifests and packs that a checkpoint needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Usage {
    pub digest: Digest,
    /// The packs, and how many of their bytes its chunks take.
    pub packs: Vec<(PackEntry, u64)>,
}

impl Store {
    /// A job's history in this store. Nothing is read or written yet.
    #[must_use]
    pub fn job(&self, name: JobName) -> Job {
        Job::new(self.clone(), name)
    }

    /// The jobs that have a history here, by name.
    #[boxed]
    pub async fn jobs(&self) -> Result<Vec<JobName>, JobError> {
        let mut jobs: Vec<JobName> = self
            .inner
            .backend
            .list_directories("jobs")
            .await?
            .into_iter()
            .filter_map(|name| JobName::new(name).ok())
            .collect();
        jobs.sort();
        Ok(jobs)
    }
}

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

    /// The name of the job.
    #[must_use]
    pub fn name(&self) -> &JobName {
        &self.inner.name
    }

    /// The store that the history is kept in.
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

    /// The way in which the job's chunks are named.
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

    /// Remembers what was read of the log, as a hint for later reads.
    pub(crate) async fn remember_log(&self, seen: Log) {
        *self.inner.log.lock().await = Some(seen);
    }

    /// The hint of the log that was remembered last.
    pub(crate) async fn remembered_log(&self) -> Option<Log> {
        *self.inner.log.lock().await
    }
}
