//! Opens a store to look at it: what the commands that only look have in common.
//!
//! Looking changes nothing: a directory that is not there is not made.

use std::time::{Duration, UNIX_EPOCH};

use phos_storage::{Job, Key, Manifest, Rollback, Store};

use super::args::Common;
use super::{exit, fail};
use crate::engine::{self, CheckpointId, Tier};
use crate::known_history::KnownHistory;

/// Reads the key file that was named, if one was.
pub(super) fn key(common: &Common) -> Result<Option<Key>, u8> {
    let file = common.encryption_key_file.as_deref();
    if file.is_none() && common.require_encryption {
        let refused = "--require-encryption: give the job's key with --encryption-key-file FILE (`phos-ft keygen FILE` makes one)";
        return Err(fail(refused, exit::KEY));
    }
    if file.is_some() {
        keep_to_itself();
    }
    file.map(Key::read).transpose().map_err(|e| {
        let code = if e.is_permanent() {
            exit::KEY
        } else {
            exit::UNAVAILABLE
        };
        fail(format_args!("--encryption-key-file: {e}"), code)
    })
}

/// Before a key is read: no core dump has it, and no process of the same user may look into this one, unless it is root with
/// `SYS_PTRACE`. What is started from here is as any process, as `execve` takes it back.
pub(super) fn keep_to_itself() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    if let Err(error) = set_dumpable_behavior(DumpableBehavior::NotDumpable) {
        tracing::warn!(%error, "the encryption key is not kept from core dumps and from other processes of this user");
    }
}

/// A job's history, and what of it this machine saw and the store does not show, which has been said.
pub(super) struct Found<T> {
    pub(super) job: T,
    pub(super) rollback: Option<Rollback>,
}

/// The job's history; `None` if the store is a directory that is not there.
pub(super) async fn open_if_there(common: &Common) -> Result<Found<Option<Job>>, u8> {
    let options = common.store_options(key(common)?);
    let store = Store::open_existing(&common.store(), options).await;
    let store = store.map_err(|e| {
        let e = engine::EngineError::Open(e);
        fail(&e, exit::engine(&e))
    })?;
    let job = store.map(|store| store.job(common.job.clone()));
    let rollback = rollback(common, job.as_ref()).await?;
    Ok(Found { job, rollback })
}

/// Says so if the store shows less of the job's history than this machine saw of it. What is there is looked at all the same.
async fn rollback(common: &Common, job: Option<&Job>) -> Result<Option<Rollback>, u8> {
    let run_dir = common.run_dir.join(common.job.as_str());
    let memory = KnownHistory::new(&run_dir, &common.state_dir, &common.job, &common.store());
    let Some(known) = memory.look() else {
        return Ok(None);
    };
    let found = match job {
        Some(job) => job.rollback(known).await.map_err(|e| job_failed(&e))?,
        None => Some(Rollback::of_nothing(known)),
    };
    if let Some(found) = &found {
        eprintln!(
            "phos-ft: THE STORE SHOWS LESS OF JOB {} THAN THIS MACHINE SAW: {found}. What follows is of what is there now. Mount \
             its file system, correct --store or bring back what was deleted there (a bucket's versions have it); a sidecar on \
             this machine waits for it, unless --start-fresh is given",
            common.job
        );
    }
    Ok(found)
}

/// The job's history, which must be there.
pub(super) async fn open(common: &Common) -> Result<Job, u8> {
    Ok(open_and_compare(common).await?.job)
}

/// The same, with what the store does not show of it.
pub(super) async fn open_and_compare(common: &Common) -> Result<Found<Job>, u8> {
    let Found { job, rollback } = open_if_there(common).await?;
    let job = job.ok_or_else(|| {
        fail(
            format_args!(
                "job {} has no checkpoints in {}: there is no such directory; give the --store that the job was \
                 started with",
                common.job,
                common.store()
            ),
            exit::NOT_FOUND,
        )
    })?;
    Ok(Found { job, rollback })
}

/// The tier on this machine, if the job has one that belongs to that store.
pub(super) async fn local_tier(common: &Common) -> Result<Option<Job>, u8> {
    // What the store has is said all the same.
    Ok(local_tier_or_why(common).await?.unwrap_or_else(|e| {
        eprintln!("phos-ft: {NOT_LOOKED_AT}: {e}");
        None
    }))
}

/// What is said where [`local_tier_or_why`] has a reason.
pub(super) const NOT_LOOKED_AT: &str = "the checkpoints on this machine alone cannot be looked at";

/// The same, or why it cannot be looked at.
pub(super) async fn local_tier_or_why(common: &Common) -> Result<Result<Option<Job>, String>, u8> {
    let (state_dir, store) = (&common.state_dir, common.store());
    let options = common.store_options(key(common)?);
    Ok(engine::look_at_local_tier(state_dir, &common.job, &store, options).await)
}

/// The history that a checkpoint is in, which must be there.
pub(super) async fn open_for(common: &Common, id: CheckpointId) -> Result<Job, u8> {
    if id.tier == Tier::Remote {
        return open(common).await;
    }
    local_tier(common).await?.ok_or_else(|| {
        fail(
            format_args!(
                "there is no checkpoint {id} below {}: give the --state-dir and the --store that the job was started \
                 with, on the same machine",
                common.state_dir.display()
            ),
            exit::NOT_FOUND,
        )
    })
}

/// Opens the store and reads one checkpoint's manifest; says why if that fails.
pub(super) async fn open_checkpoint(
    common: &Common,
    id: CheckpointId,
) -> Result<(Job, Manifest), u8> {
    let job = open_for(common, id).await?;
    let manifest = job.manifest(id.number).await.map_err(|e| job_failed(&e))?;
    Ok((job, manifest))
}

pub(super) fn time(millis: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
}

pub(super) fn print_json(value: &impl serde::Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => println!("{text}"),
        Err(e) => eprintln!("phos-ft: {e}"),
    }
}

/// Says an error of the job's history, and returns the exit code for it.
pub(super) fn job_failed(error: &phos_storage::JobError) -> u8 {
    fail(error, exit::job(error))
}
