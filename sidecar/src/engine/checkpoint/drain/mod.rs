//! Moves what changed off the GPUs: each has a [`worker`] of its own, and a [`plan`] says how much is moved during the stop.

pub(super) mod plan;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use phos_gpu::{GpuError, MemoryInfo};
use phos_protocol::types::GpuUuid;
use tokio::sync::oneshot;

use self::plan::{Item, Room};
use self::worker::Drain;
pub(super) use self::worker::Ready;
use super::outcome::Cause;
use super::pipeline::{Control, Sink};
use super::urgent::{Urgent, urgent};
use crate::engine::Engine;

/// After so many snapshots in a row that had to make way for the job, no more are made until a checkpoint is stored.
const CROWDED: u32 = 2;

/// The drains of one checkpoint, a worker for each GPU that has something to drain.
pub(super) struct Drains {
    workers: Vec<Urgent<Result<(), GpuError>>>,
    /// Whether host memory has room for all that leaves the GPUs while the job is held.
    pub(super) fits: bool,
    ready: BoxFuture<'static, Result<Ready, GpuError>>,
}

impl Drains {
    /// Waits until no GPU needs the job's memory any more, also where one of them failed. Cancel safe; not to be called again
    /// after it has answered.
    pub(super) async fn all_ready(&mut self) -> Result<Ready, GpuError> {
        (&mut self.ready).await
    }

    /// Waits until all is drained. The error that a GPU does not recover from, if there was one; a failure has also
    /// cancelled the checkpoint.
    pub(super) async fn finish(self, control: &Control) -> Option<GpuError> {
        let mut broken = None;
        for worker in self.workers {
            match worker.await {
                Ok(Ok(())) => {}
                Ok(Err(e)) => {
                    control.cancel(e.to_string());
                    if e.is_sticky() {
                        broken = Some(e);
                    }
                }
                Err(_) => control.cancel("the thread that drains a GPU ended"),
            }
        }
        broken
    }
}

/// Sums up what the workers say of the stop.
async fn sum(readies: Vec<oneshot::Receiver<Result<Ready, GpuError>>>) -> Result<Ready, GpuError> {
    let mut total = Ready::default();
    for ready in join_all(readies).await {
        let ready = ready.map_err(|_| GpuError::Cancelled)??;
        total.snapshot += ready.snapshot;
        total.direct = total.direct.max(ready.direct);
        total.direct_took = total.direct_took.max(ready.direct_took);
    }
    Ok(total)
}

impl Engine {
    /// Free and total device memory now, per GPU, in bytes.
    pub(super) fn free_memory(&self) -> Result<BTreeMap<GpuUuid, MemoryInfo>, GpuError> {
        let gpus = self.gpus.all();
        gpus.map(|(&uuid, open)| Ok((uuid, open.gpu().memory()?)))
            .collect()
    }

    /// Device memory that snapshots may take, per GPU, in bytes.
    pub(super) fn snapshot_rooms(
        &self,
        free: &BTreeMap<GpuUuid, MemoryInfo>,
    ) -> BTreeMap<GpuUuid, u64> {
        let room = |(&uuid, memory): (&GpuUuid, &MemoryInfo)| {
            let reserve = self.planning.reserve.get(&uuid).copied().unwrap_or(0);
            let room = match self.planning.crowded {
                0..CROWDED => plan::snapshot_room(memory.free, memory.total, reserve),
                // The job wants that memory back each time: without a snapshot the checkpoint stops it for longer, and
                // is made.
                CROWDED.. => 0,
            };
            (uuid, room)
        };
        free.iter().map(room).collect()
    }

    /// Begins to drain what changed.
    pub(super) fn start_drains(
        &self,
        changed: Vec<Item>,
        rooms: &BTreeMap<GpuUuid, u64>,
        sink: &Sink,
        control: &Arc<Control>,
    ) -> Result<Drains, Cause> {
        let (mut workers, mut readies) = (Vec::new(), Vec::new());
        let room = self.gpus.host().map_or(0, |host| host.room());
        let mut leaves = 0;
        for (uuid, split) in self.divide(changed, rooms)? {
            leaves += split.leaves();
            let drain = Drain {
                open: Arc::clone(self.gpus.get(uuid)?),
                host: Arc::clone(self.gpus.host()?),
                split,
                sink: sink.clone(),
                control: Arc::clone(control),
            };
            let (sender, receiver) = oneshot::channel();
            readies.push(receiver);
            workers.push(urgent("phos-drain", move || drain.run(sender))?);
        }
        Ok(Drains {
            fits: leaves <= room,
            workers,
            ready: sum(readies).boxed(),
        })
    }

    /// What each GPU's worker is to do with what changed there.
    fn divide(
        &self,
        changed: Vec<Item>,
        rooms: &BTreeMap<GpuUuid, u64>,
    ) -> Result<Vec<(GpuUuid, plan::Split)>, GpuError> {
        if changed.is_empty() {
            return Ok(Vec::new());
        }
        let host = self.gpus.host()?;
        let (uuids, groups): (Vec<GpuUuid>, Vec<_>) = plan::by_gpu(changed)
            .into_iter()
            .map(|(uuid, items)| {
                let room = Room {
                    spare: rooms.get(&uuid).copied().unwrap_or(0),
                    link: self.planning.link_rate,
                };
                (uuid, (items, room))
            })
            .unzip();
        let free = host.room();
        let splits = plan::divide(groups, free, self.planning.expected_dump);
        Ok(uuids.into_iter().zip(splits).collect())
    }
}
