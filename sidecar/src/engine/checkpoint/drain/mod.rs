//! Moves what changed off the GPUs: each has a [`worker`] of its own, and a [`plan`] says how much is moved during the stop.

pub(super) mod plan;
mod worker;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use phos_gpu::{GpuError, MemoryInfo};
use phos_policies::speculation::{Found, Way};
use phos_protocol::types::GpuUuid;
use tokio::sync::oneshot;

use self::plan::{Item, Room};
pub(super) use self::worker::Ready;
use self::worker::{Drain, Signals};
use super::outcome::Cause;
use super::pipeline::{Control, Sink};
use super::running::ToLearn;
use super::urgent::{Urgent, urgent};
use crate::engine::Engine;

/// After so many snapshots in a row that had to make way for the job, no more are made until a checkpoint is stored.
const CROWDED: u32 = 2;

/// The drains of one checkpoint, a worker for each GPU that has something to drain.
pub(super) struct Drains {
    workers: Vec<Urgent<Result<(), GpuError>>>,
    /// Whether host memory has room for all that leaves the GPUs while the job is held.
    pub(super) fits: bool,
    /// What is to be learned when the job runs again.
    pub(super) learn: Option<ToLearn>,
    ready: BoxFuture<'static, Result<Ready, GpuError>>,
    copied: BoxFuture<'static, ()>,
    /// To tell the workers that the job runs again.
    runs: Vec<oneshot::Sender<()>>,
    /// The first look of what each worker drains beside the job that is not over.
    looks: Vec<Arc<AtomicUsize>>,
}

/// The chunks of each GPU, divided.
type Splits = Vec<(GpuUuid, plan::Split)>;

/// What each GPU's worker is to do.
#[derive(Default)]
struct Division {
    splits: Splits,
    learn: Option<ToLearn>,
}

/// Whether memory may be copied while the job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beside {
    /// Its processes can be held again in time, and there is time for another checkpoint if it comes to nothing.
    Possible(Found),
    No,
}

fn items_of(splits: Splits) -> Vec<Item> {
    let splits = splits.into_iter();
    splits.flat_map(|(_, split)| split.into_items()).collect()
}

impl Drains {
    /// Waits until no GPU needs the job's memory any more, also where one of them failed. Cancel safe; not to be called again
    /// after it has answered.
    pub(super) async fn all_ready(&mut self) -> Result<Ready, GpuError> {
        (&mut self.ready).await
    }

    /// Waits until nothing of the job's own memory is read any more, or a worker has failed. Cancel safe; not to be called again after it has
    /// answered.
    pub(super) async fn all_copied(&mut self) {
        (&mut self.copied).await;
    }

    /// The job runs again.
    pub(super) fn job_runs(&mut self) {
        for worker in self.runs.drain(..) {
            // One that has failed does not listen.
            let _ = worker.send(());
        }
    }

    /// The first look at which something was unchanged that is still to be copied; none: nothing is.
    pub(super) fn look(&self) -> Option<usize> {
        let looks = self.looks.iter().map(|look| look.load(Ordering::Acquire));
        looks.min().filter(|look| *look != usize::MAX)
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
        total.beside += ready.beside;
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
        &mut self,
        changed: Vec<Item>,
        rooms: &BTreeMap<GpuUuid, u64>,
        sink: &Sink,
        control: &Arc<Control>,
        beside: Beside,
    ) -> Result<Drains, Cause> {
        let (mut workers, mut readies, mut copies) = (Vec::new(), Vec::new(), Vec::new());
        let (mut runs, mut looks) = (Vec::new(), Vec::new());
        let room = self.gpus.host().map_or(0, |host| host.room());
        let mut leaves = 0;
        let division = self.divide(changed, rooms, beside)?;
        for (uuid, split) in division.splits {
            leaves += split.leaves();
            let look = Arc::new(AtomicUsize::new(usize::MAX));
            looks.push(Arc::clone(&look));
            let drain = Drain {
                open: Arc::clone(self.gpus.get(uuid)?),
                host: Arc::clone(self.gpus.host()?),
                split,
                sink: sink.clone(),
                control: Arc::clone(control),
                look,
            };
            let (ready, is_ready) = oneshot::channel();
            let (tell, told) = oneshot::channel();
            let (copied, has_copied) = oneshot::channel();
            readies.push(is_ready);
            runs.push(tell);
            copies.push(has_copied);
            let signals = Signals {
                ready,
                runs: told,
                copied,
            };
            control.begin_holding();
            workers.push(urgent("phos-drain", move || drain.run(signals))?);
        }
        Ok(Drains {
            fits: leaves <= room,
            learn: division.learn,
            workers,
            ready: sum(readies).boxed(),
            copied: join_all(copies).map(drop).boxed(),
            runs,
            looks,
        })
    }

    /// What each GPU's worker is to do with what changed there.
    fn divide(
        &mut self,
        changed: Vec<Item>,
        rooms: &BTreeMap<GpuUuid, u64>,
        beside: Beside,
    ) -> Result<Division, GpuError> {
        if changed.is_empty() {
            return Ok(Division::default());
        }
        let host = self.gpus.host()?.room();
        let splits = self.split(changed, rooms, host);
        let (bytes, longer) = self.overflow(&splits);
        let speculation = &mut self.planning.speculation;
        let way = match beside {
            Beside::Possible(found) => speculation.way(longer, found),
            Beside::No => Way::Held,
        };
        // The next one then waits for a moment at which the job is where it was.
        self.planning.longer = (beside != Beside::No).then_some(longer);
        tracing::debug!(bytes, ?longer, ?way, "what no snapshot has room for");
        Ok(match way {
            Way::Held => Division {
                splits,
                ..Division::default()
            },
            Way::Search => {
                let items = items_of(splits.clone());
                Division {
                    splits,
                    learn: Some(ToLearn { items }),
                }
            }
            Way::Running => {
                let left_alone = &self.planning.left_alone;
                // What is written first leaves first.
                let mut order = items_of(splits);
                for item in &mut order {
                    item.look = left_alone.look(item);
                }
                order.sort_by_key(|item| item.look);
                let mut splits = self.split(order, rooms, host);
                let most = self.planning.beside_at_most();
                (splits.iter_mut()).for_each(|(_, split)| split.put_off(most));
                if splits.iter().map(|(_, split)| split.leaves()).sum::<u64>() > host {
                    // It would wait for the store, and the job for it.
                    splits
                        .iter_mut()
                        .for_each(|(_, split)| split.put_nothing_off());
                }
                let beside = splits.iter().map(|(_, split)| plan::bytes(&split.beside));
                // Else the job has other memory by now, or memory for its copy is short.
                match beside.sum::<u64>() {
                    0 => self.planning.speculation.was_of_no_use(),
                    _ => self.planning.speculation.was_of_use(),
                }
                Division {
                    splits,
                    learn: None,
                }
            }
        })
    }

    /// The bytes that would make the stop longer, over all GPUs, and by how much: the links work side by side.
    fn overflow(&self, splits: &Splits) -> (u64, Duration) {
        let held = |(_, split): &(GpuUuid, plan::Split)| plan::bytes(&split.before_attach);
        let most = splits.iter().map(held).max().unwrap_or(0);
        let longer = most as f64 / self.planning.link_rate.max(1) as f64;
        (
            splits.iter().map(held).sum(),
            Duration::from_secs_f64(longer),
        )
    }

    /// What would have made the stop longer that has just been, with what it has shown of the link; the chunks are given back.
    pub(super) fn overflowed(
        &self,
        changed: Vec<Item>,
        rooms: &BTreeMap<GpuUuid, u64>,
    ) -> (u64, Duration, Vec<Item>) {
        let splits = self.split(changed, rooms, u64::MAX);
        let (needed, longer) = self.overflow(&splits);
        (needed, longer, items_of(splits))
    }

    /// Divides what changed, in this order, as the plan says.
    fn split(&self, changed: Vec<Item>, rooms: &BTreeMap<GpuUuid, u64>, host: u64) -> Splits {
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
        let splits = plan::divide(groups, host, self.planning.expected_dump);
        uuids.into_iter().zip(splits).collect()
    }
}
