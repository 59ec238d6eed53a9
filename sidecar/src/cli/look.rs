//! Opening a store to look at it, and what the commands that do so have in common.
//!
//! Looking changes nothing: a directory that is not there is not made.

use std::time::{Duration, UNIX_EPOCH};

use phos_storage::{Job, Store};

use super::args::Common;
use super::{exit, fail};
use crate::engine;

/// The job's history; `None` if the store is a directory that is not there.
pub(super) async fn open_if_there(common: &Common) -> Result<Option<Job>, u8> {
    let store = Store::open_existing(&common.store(), engine::store_options()).await;
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
