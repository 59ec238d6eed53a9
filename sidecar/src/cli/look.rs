//! Opening a store to look at it, and what the commands that do so have in common.
//!
//! Looking changes nothing: a directory that is not there is not made.

use std::time::{Duration, UNIX_EPOCH};

use phos_storage::{Job, Key, Manifest, Store};

use super::args::Common;
use super::{exit, fail};
use crate::engine::{self, CheckpointId};

/// The key that was given, if one was.
pub(super) fn key(common: &Common) -> Result<Option<Key>, u8> {
    let file = common.encryption_key_file.as_deref();
    if file.is_none() && common.require_encryption {
        let refused = "--require-encryption: give the job's key with --encryption-key-file FILE (`phos-ft keygen FILE` makes one)";
        return Err(fail(refused, exit::KEY));
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

/// The job's history; `None` if the store is a directory that is not there.
pub(super) async fn open_if_there(common: &Common) -> Result<Option<Job>, u8> {
    let options = common.store_options(key(common)?);
    let store = Store::open_existing(&common.store(), options).await;
    let store = store.map_err(|e| {
        let e = engine::EngineError::Open(e);
        fail(&e, exit::engine(&e))
    })?;
    Ok(store.map(|store| store.job(common.job.clone())))
}

/// The job's history, which must be there.
pub(super) async fn open(common: &Common) -> Result<Job, u8> {
    open_if_there(common).await?.ok_or_else(|| {
        fail(
            format_args!(
                "job {} has no checkpoints in {}: there is no such directory; give the --store that the job was \
                 started with",
                common.job,
                common.store()
            ),
            exit::NOT_FOUND,
        )
    })
}

/// The tier on this machine, if the job has one that belongs to that store.
pub(super) async fn near(common: &Common) -> Result<Option<Job>, u8> {
    // What the store has is said all the same.
    Ok(near_or_why(common).await?.unwrap_or_else(|e| {
        eprintln!("phos-ft: {NOT_LOOKED_AT}: {e}");
        None
    }))
}

/// What is said where [`near_or_why`] has a reason.
pub(super) const NOT_LOOKED_AT: &str = "the checkpoints on this machine alone cannot be looked at";

/// The same, or why it cannot be looked at.
pub(super) async fn near_or_why(common: &Common) -> Result<Result<Option<Job>, String>, u8> {
    let (state_dir, store) = (&common.state_dir, common.store());
    let options = common.store_options(key(common)?);
    Ok(engine::look_near(state_dir, &common.job, &store, options).await)
}

/// The history that a checkpoint is in, which must be there.
pub(super) async fn open_for(common: &Common, id: CheckpointId) -> Result<Job, u8> {
    if !id.local {
        return open(common).await;
    }
    near(common).await?.ok_or_else(|| {
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

/// A checkpoint.
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

/// What the code says of an error is said.
pub(super) fn job_failed(error: &phos_storage::JobError) -> u8 {
    fail(error, exit::job(error))
}
