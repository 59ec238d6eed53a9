//! Opens stores with the options of this program, and only where they show the history that is known.

use std::path::{Path, PathBuf};
use std::time::Duration;

use phos_shared::run_dir;
use phos_storage::{
    FaultKind, JobError, JobName, Key, Known, NonceSource, RetryPolicy, Store, StoreOptions,
};

use super::error::EngineError;
use super::system::random_u64;
use crate::known_history::KnownHistory;

/// Waits for a store that cannot be read now: the first and the longest.
pub(super) const STORE_WAITS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(60));

/// Options of a store in a program, whose jobs are encrypted with a key or not.
pub fn store_options(key: Option<Key>) -> StoreOptions {
    let nonces = NonceSource::new(|| {
        let mut nonce = [0_u8; 16];
        nonce[..8].copy_from_slice(&random_u64().to_le_bytes());
        nonce[8..].copy_from_slice(&random_u64().to_le_bytes());
        nonce
    });
    let mut options = StoreOptions::new(nonces);
    options.retry = RetryPolicy {
        jitter_seed: random_u64(),
        ..RetryPolicy::default()
    };
    options.encryption = key;
    options.fetches = fetches();
    options
}

/// How many ranges a restore fetches and decodes at once: each keeps one core busy half of its time, and a bucket gives a
/// connection some 90 MB/s. They are held three times over for a moment, so they are bounded: 0.8 GiB on 16 cores.
fn fetches() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    (2 * cores).clamp(8, 48)
}

/// Makes the job's run directory, for this user to list and write.
///
/// # Errors
/// It cannot be made, or is another user's.
pub fn make_run_dir(run_dir: &Path, job: &JobName) -> Result<PathBuf, EngineError> {
    run_dir::make(run_dir, job.as_str()).map_err(|source| EngineError::RunDir {
        path: run_dir.join(job.as_str()),
        source,
    })
}

/// What this machine remembers of a job's history in a store. Blocks for a moment.
pub fn known_history(
    run_dir: &Path,
    state_dir: &Path,
    job: &JobName,
    store: &str,
) -> Option<Known> {
    let history = KnownHistory::new(&run_dir.join(job.as_str()), state_dir, job, store);
    history.recall().map(|remembered| remembered.known)
}

/// Opens a store to write a job's history: reachable, honest, of a format that is known, and with the job's key.
///
/// # Errors
/// Why it cannot be used.
pub async fn open_store_of(
    job: &JobName,
    address: &str,
    options: StoreOptions,
    known: Option<Known>,
) -> Result<Store, EngineError> {
    // Nothing is made in a directory on which its file system is not mounted.
    if known.is_some() && (Store::open_existing(address, options.clone()).await?).is_none() {
        return Err(EngineError::HistoryAway {
            store: address.to_owned(),
            job: job.clone(),
        });
    }
    let store = Store::open(address, options).await?;
    // Before anything is written there.
    let history = store.job(job.clone());
    history.expect(known);
    if let Err(e) = history.check_key().await {
        if !matches!(&e, JobError::Store(fault) if matches!(fault.kind(), FaultKind::Key | FaultKind::Absent))
        {
            // What is wrong with a store, the probe says better.
            store.probe().await?;
        }
        return Err(EngineError::Job(e));
    }
    make_ready(store).await
}

/// Opens a store to write, whatever the job: reachable, honest, of a format that is known.
///
/// # Errors
/// Why it cannot be used.
pub async fn open_store(address: &str, options: StoreOptions) -> Result<Store, EngineError> {
    make_ready(Store::open(address, options).await?).await
}

async fn make_ready(store: Store) -> Result<Store, EngineError> {
    store.probe().await?;
    store.initialise().await?;
    Ok(store)
}

/// Opens the store; waits for one that is merely not reachable now, since the job may be running.
pub(super) async fn open_store_patiently(
    address: &str,
    job: &JobName,
    options: &StoreOptions,
    known: Option<Known>,
) -> Result<Store, EngineError> {
    let mut wait = Duration::from_secs(1);
    loop {
        match open_store_of(job, address, options.clone(), known).await {
            Err(e) if e.is_away() => {
                tracing::error!(error = %e, "THE JOB WAITS FOR ITS HISTORY, and is not begun anew without it");
            }
            Err(EngineError::Open(e)) if !e.is_permanent() => {
                tracing::error!(error = %e, "the store cannot be opened yet");
            }
            Err(EngineError::Probe(e)) if !e.is_permanent() => {
                tracing::error!(error = %e, "the store cannot be used yet");
            }
            Err(EngineError::Job(e)) if !e.is_permanent() => {
                tracing::error!(error = %e, "the job's history cannot be read yet");
            }
            other => return other,
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(30));
    }
}
