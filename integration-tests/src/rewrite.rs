//! Changing what a stored image says of itself, through the storage crate: an image that another machine could have
//! made.

use anyhow::{Context, Result};
use phos_storage::{
    Allocation, Body, CheckpointNumber, ImageFile, JobName, Manifest, ManifestBody, NonceSource,
    Store, StoreOptions, UnixMillis,
};

use crate::world::World;

/// Commits a copy of the newest checkpoint whose description `change` has changed. No process may be writing the job's
/// history.
///
/// # Errors
/// When the store refuses.
pub fn rewrite_newest(
    world: &World,
    change: impl FnOnce(&mut ManifestBody),
) -> Result<CheckpointNumber> {
    let newest = world.checkpoints()?.last().context("no checkpoint")?.number;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let nonces = NonceSource::new(rand::random);
        let store = Store::open(&world.store, StoreOptions::new(nonces)).await?;
        let job = store.job(JobName::new(&world.job)?);
        let now = UnixMillis(1);
        let epoch = job.take_over("a test", now).await?.epoch;
        let manifest = job.manifest(CheckpointNumber(newest)).await?;
        let mut body = names_for_numbers(&manifest);
        change(&mut body);
        Ok(job.begin(epoch).await?.commit(body, now).await?.number)
    })
}

/// The body as a writer takes it.
fn names_for_numbers(manifest: &Manifest) -> ManifestBody {
    let names = |list| manifest.digests(list).collect::<Vec<_>>();
    let body = manifest.body.clone();
    Body {
        allocations: (body.allocations.iter())
            .map(|a| Allocation {
                owner: a.owner,
                id: a.id,
                gpu: a.gpu,
                size_bytes: a.size_bytes,
                requested_bytes: a.requested_bytes,
                kind: a.kind.clone(),
                chunks: names(&a.chunks),
            })
            .collect(),
        cpu_image: (body.cpu_image.iter())
            .map(|f| ImageFile {
                path: f.path.clone(),
                length: f.length,
                mode: f.mode,
                chunks: names(&f.chunks),
            })
            .collect(),
        phos_version: body.phos_version,
        trigger: body.trigger,
        architecture: body.architecture,
        driver_version: body.driver_version,
        gpus: body.gpus,
        processes: body.processes,
        agent: body.agent,
        timings: body.timings,
    }
}
