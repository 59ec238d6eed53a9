//! Every chunk on the GPUs gets its name, the digest of its content, while the job is quiet.

use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_gpu::Range;
use phos_protocol::agent::Process;
use phos_storage::{Digest, Naming};

use super::drain::plan::{self, Item};
use super::outcome::Cause;
use super::urgent::urgent;
use crate::engine::image::Described;
use crate::engine::memory::gpus::Gpus;
use crate::engine::memory::registry::{Registry, Table};
use crate::engine::session::Session;

/// The job's device memory with the name of every chunk.
pub(super) struct Named {
    /// The allocations as the manifest has them.
    pub(super) memory: Vec<Described>,
    /// Every chunk of the job's device memory.
    pub(super) items: Vec<Item>,
    /// How long it took to import what is new.
    pub(super) import: Duration,
    /// How long computing the digests alone took.
    pub(super) digest: Duration,
    /// How long the digests, and what is made of them, took.
    pub(super) name: Duration,
}

impl Session<'_> {
    /// Takes the table of this stop over and names every chunk.
    pub(super) async fn name(
        &mut self,
        table: Table,
        processes: Vec<Process>,
    ) -> Result<Named, Cause> {
        let mut registry = std::mem::take(&mut self.registry);
        let gpus = self.engine.gpus.clone();
        let naming = self.engine.job.naming();
        let (registry, named) = urgent("phos-name", move || {
            let named = name(&mut registry, table, &processes, &gpus, &naming);
            (registry, named)
        })?
        .await
        .map_err(|_| Cause::Task("the thread that names chunks ended".into()))?;
        // What failed leaves nothing behind that the next attempt could take for complete.
        let named = named?;
        self.registry = registry;
        Ok(named)
    }
}

/// Names every chunk of the job's device memory. Blocks.
fn name(
    registry: &mut Registry,
    table: Table,
    processes: &[Process],
    gpus: &Gpus,
    naming: &Naming,
) -> Result<Named, Cause> {
    let began = Instant::now();
    (registry.apply(table, processes, gpus)).map_err(Cause::Table)?;
    let import = began.elapsed();
    let began = Instant::now();
    let ranges: Vec<Range> = registry
        .iter()
        .flat_map(|held| {
            plan::chunks(held.allocation.bytes).map(|(offset, len)| Range {
                memory: Arc::clone(&held.memory),
                offset,
                len,
            })
        })
        .collect();
    let keys = registry.iter().flat_map(|held| {
        let chunks = plan::chunks(held.allocation.bytes);
        chunks.map(|_| held.allocation.key)
    });
    let digest_began = Instant::now();
    let digests = gpus.digest(&ranges, naming)?;
    let digest = digest_began.elapsed();
    let items: Vec<Item> = ranges
        .into_iter()
        .zip(digests)
        .zip(keys)
        .map(|((range, digest), key)| Item {
            digest: Digest(digest),
            key,
            look: None,
            range,
        })
        .collect();
    let mut rest = items.iter().map(|i| i.digest);
    let memory = registry
        .iter()
        .map(|held| {
            let count = plan::chunks(held.allocation.bytes).count();
            Described {
                allocation: held.allocation,
                requested: held.requested,
                gpu: held.memory.gpu(),
                digests: rest.by_ref().take(count).collect(),
            }
        })
        .collect();
    Ok(Named {
        memory,
        items,
        import,
        digest,
        name: began.elapsed(),
    })
}
