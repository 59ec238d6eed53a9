//! Moves changed chunks off one GPU: snapshot first, then copies through pinned host memory.
//!
//! ```text
//!  job's memory ──D2D──▶ snapshot pieces ──D2H──▶ pinned slots ──▶ pipeline ──▶ store
//!       └────────── direct, while the job is held ──D2H──▶ ┘
//! ```
//!
//! # Consistency
//!
//! While the job runs, a snapshot leaves by one short copy at a time, and gives way to the job's own ([`transfer`]).
//!
//! Who has to wait for host memory while the job is held ends the rest of those that encode ([`Control::rest`]): they give it back. What is in
//! a snapshot waits until the rest is over, with the dump at the latest, and until no GPU's worker reads memory that the job waits for: it would
//! take the host memory that they count on, and have the cores busy that the job waits for.
//!
//! The job's memory is read only until `ready` is told, but for what is drained beside the job ([`Split::beside`]); after that only the snapshot is. The store
//! checks every chunk against the name it got while the job was quiet.
//!
//! # Memory
//!
//! A piece of the snapshot is given back as soon as it is drained, and all of them on cancellation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use phos_gpu::host::{MAX_RUN, SLOT};
use phos_gpu::{GpuError, HostPool, HostRun, Pending, Range};
use phos_policies::transfer::{self, Pause};
use phos_protocol::types::GpuUuid;
use phos_shared::failpoint::{self, Point};
use phos_storage::Digest;
use tokio::sync::oneshot;

use crate::engine::checkpoint::drain::plan::{Item, Split, all_over, bytes};
use crate::engine::checkpoint::pipeline::{Borrowed, Control, NAP, Sink};
use crate::engine::memory::gpus::OpenGpu;

/// How many copies are in flight at once, and of how many slots.
#[derive(Debug, Clone, Copy)]
struct Depth {
    copies: usize,
    slots: usize,
}

/// While the job is held: 256 MiB, 5 ms of a PCIe 5 link. Less, and the link idles whenever this thread has to wait
/// for a core of a busy machine.
const HELD: Depth = Depth {
    copies: 16,
    slots: MAX_RUN,
};

/// Where the time of a drain went: which of them is slow says why a link is not used.
#[derive(Debug, Default)]
struct Spent {
    /// Asking the driver for copies.
    issuing: Duration,
    /// Waiting for copies.
    copies: Duration,
    /// Waiting for host memory.
    memory: Duration,
    /// Handing chunks on.
    handing_on: Duration,
}

impl Spent {
    /// Runs something, and adds the time that it took.
    fn on<T>(time: &mut Duration, what: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = what();
        *time += began.elapsed();
        result
    }
}

/// While the job runs and there is no time to give way to its copies: 16 MiB, 0.3 ms.
const HURRY: Depth = Depth {
    copies: 4,
    slots: 4,
};

/// How a snapshot was drained beside the job.
#[derive(Debug, Default)]
struct Slices {
    copied: u64,
    /// Those that had to wait for a copy of somebody else's.
    late: u64,
}

/// Chunks in a slice that gives way to the job's copies.
const SLICE: usize = transfer::LARGEST / SLOT;

/// Size of a piece of the snapshot.
const PIECE: u64 = 256 << 20;

/// What the worker of one GPU is given: the chunks to move and where to.
pub(in crate::engine) struct Drain {
    pub(in crate::engine) open: Arc<OpenGpu>,
    pub(in crate::engine) host: Arc<HostPool>,
    pub(in crate::engine) split: Split,
    pub(in crate::engine) sink: Sink,
    pub(in crate::engine) control: Arc<Control>,
    /// The first look of [`Split::beside`] of which something is still to be copied.
    pub(in crate::engine) look: Arc<AtomicUsize>,
}

/// What a worker tells and is told.
pub(in crate::engine) struct Signals {
    /// The job's memory is no longer needed, but for what is drained beside it.
    pub(in crate::engine) ready: oneshot::Sender<Result<Ready, GpuError>>,
    /// The job runs again: what is drained beside it begins then, as it would slow down attaching.
    pub(in crate::engine) runs: oneshot::Receiver<()>,
    /// Nothing of the job's own memory is read any more.
    pub(in crate::engine) copied: oneshot::Sender<()>,
}

/// How the changed chunks were divided in the end.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::engine) struct Ready {
    /// The number of bytes in snapshots.
    pub(in crate::engine) snapshot: u64,
    /// The number of bytes that are drained while the job runs again.
    pub(in crate::engine) beside: u64,
    /// The number of bytes that were drained while the job was held.
    pub(in crate::engine) direct: u64,
    /// How long the copies during the stop took.
    pub(in crate::engine) direct_took: Duration,
}

impl Drain {
    /// Does the work. Blocks.
    pub(in crate::engine) fn run(mut self, signals: Signals) -> Result<(), GpuError> {
        let outcome = self.work(signals);
        if let Err(e) = &outcome {
            self.control.cancel(e.to_string());
        }
        outcome
    }

    fn work(&mut self, signals: Signals) -> Result<(), GpuError> {
        let Signals {
            ready,
            runs,
            copied,
        } = signals;
        let (mut pieces, mut beside) = (Vec::new(), Vec::new());
        // Taken out: what refers to the job's memory is gone when `hold` returns, but for what is drained beside it.
        let split = std::mem::take(&mut self.split);
        let held = self.hold(split, &mut pieces, &mut beside);
        let lends = self.control.borrow(bytes(&beside));
        self.control.end_holding();
        let mut borrowed = Borrowing {
            items: beside,
            lends,
        };
        self.tell_look(&borrowed.items);
        let failed = held.as_ref().err().cloned();
        // The receiver is gone if the attempt was given up; then `control` says so too.
        let _ = ready.send(held);
        if let Some(e) = failed {
            return Err(e);
        }
        if !borrowed.items.is_empty() && runs.blocking_recv().is_err() {
            return Err(GpuError::Cancelled);
        }
        while let Some(look) = borrowed.items.first().map(|item| item.look) {
            self.tell_look(&borrowed.items);
            let later = borrowed.items.partition_point(|item| item.look == look);
            let rest = borrowed.items.split_off(later);
            let now = std::mem::replace(&mut borrowed.items, rest);
            // As fast as while it is held: it may soon be again, until this is done.
            self.drain(now, HELD, &|| false, &mut Spent::default())?;
        }
        self.tell_look(&borrowed.items);
        drop(borrowed);
        // Nobody waits for it if there was nothing.
        let _ = copied.send(());
        if pieces.is_empty() {
            return Ok(());
        }
        self.wait_for_others();
        let mut slices = Slices::default();
        self.open.link().begin();
        for piece in pieces {
            let Piece { items, guard } = piece;
            self.give_way(items, &mut slices)?;
            drop(guard);
        }
        tracing::debug!(gpu = %self.open.gpu().uuid(), ?slices, "drained while the job runs");
        Ok(())
    }

    /// Copies items to the host, as the job's own copies leave room for, and hands them to the pipeline.
    fn give_way(&self, items: Vec<Item>, slices: &mut Slices) -> Result<(), GpuError> {
        let mut items: VecDeque<Item> = items.into();
        while !items.is_empty() {
            if self.control.hurries() {
                let left = items.into();
                return (self.drain(left, HURRY, &|| false, &mut Spent::default())).map(drop);
            }
            let slots = items.len().min(SLICE);
            let run = self.host.acquire(slots, &|| self.control.is_cancelled())?;
            let group: Vec<Item> = items.drain(..run.slots().min(slots)).collect();
            let names: Vec<_> = group
                .iter()
                .map(|i| (i.digest, i.range.len as usize))
                .collect();
            let bytes = names.iter().map(|(_, len)| len).sum();
            let ranges = group.into_iter().map(|i| i.range).collect();
            let issued = Instant::now();
            let copied = self.open.stream.read(ranges, run)?.wait()?;
            let ended = Instant::now();
            let pause = self.open.link().copied(bytes, ended - issued);
            slices.copied += 1;
            slices.late += u64::from(pause.late);
            if let Some(run) = copied {
                self.hand_on(&names, run)?;
            }
            self.pause(ended, pause)?;
        }
        Ok(())
    }

    /// Leaves the link alone after a copy that ended then: to the job, if it copies.
    fn pause(&self, ended: Instant, pause: Pause) -> Result<(), GpuError> {
        let (began, until) = (Instant::now(), ended + pause.lasts);
        loop {
            if self.control.is_cancelled() {
                return Err(GpuError::Cancelled);
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() || self.control.hurries() {
                break;
            }
            std::thread::sleep(left.min(NAP));
        }
        if pause.yields {
            self.control.add_yielded(began.elapsed());
        }
        Ok(())
    }

    /// Waits until neither the job nor the worker of another GPU needs first what a snapshot takes on its way.
    fn wait_for_others(&self) {
        while !self.control.may_drain_snapshots() && !self.control.is_cancelled() {
            std::thread::sleep(NAP);
        }
    }

    /// Says of which look something is still to be copied beside the job.
    fn tell_look(&self, beside: &[Item]) {
        let look = beside.first().and_then(|item| item.look);
        self.look
            .store(look.unwrap_or(usize::MAX), Ordering::Release);
    }

    /// Everything that needs the job's memory, but for what can be drained beside the job, of which the rest is given back.
    fn hold(
        &self,
        split: Split,
        pieces: &mut Vec<Piece>,
        rest: &mut Vec<Item>,
    ) -> Result<Ready, GpuError> {
        let Split {
            snapshot,
            during_stop,
            before_attach,
            beside,
            beside_at_most,
            spare,
        } = split;
        // First what decides how long the job waits.
        let snapshot_began = Instant::now();
        let mut overflow = self.snapshot(&snapshot, spare, pieces)?;
        let began = Instant::now();
        let snapshot_took = began.duration_since(snapshot_began);
        overflow.extend(before_attach);
        let mut direct = bytes(&overflow);
        let mut spent = Spent::default();
        self.drain(overflow, HELD, &|| false, &mut spent)?;
        // Then what fits into the time that the job is held anyway.
        let in_stop = bytes(&during_stop) + bytes(&beside);
        let due = || self.control.is_due();
        let left = self.drain(during_stop, HELD, &due, &mut spent)?;
        let (later, left): (Vec<Item>, _) = left.into_iter().partition(|i| i.look.is_some());
        rest.extend(later);
        rest.extend(self.drain(beside, HELD, &due, &mut spent)?);
        let over = all_over(rest, beside_at_most);
        self.drain(over, HELD, &|| false, &mut spent)?;
        direct += in_stop - bytes(&left) - bytes(rest);
        let mut direct_took = began.elapsed();
        tracing::debug!(
            gpu = %self.open.gpu().uuid(),
            pieces = pieces.len(),
            snapshot_ms = snapshot_took.as_millis() as u64,
            direct,
            direct_ms = direct_took.as_millis() as u64,
            left = left.len(),
            beside = bytes(rest),
            rests = self.control.rests(),
            ?spent,
            "drained while the job is held"
        );
        let overflow = self.snapshot(&left, spare, pieces)?;
        let again = Instant::now();
        direct += bytes(&overflow);
        self.drain(overflow, HELD, &|| false, &mut spent)?;
        direct_took += again.elapsed();
        let snapshot = pieces.iter().map(|p| bytes(&p.items)).sum();
        Ok(Ready {
            snapshot,
            beside: bytes(rest),
            direct,
            direct_took,
        })
    }

    /// Copies `items` into new pieces; gives back what does not fit.
    fn snapshot(
        &self,
        items: &[Item],
        spare: u64,
        pieces: &mut Vec<Piece>,
    ) -> Result<Vec<Item>, GpuError> {
        let mut overflow: Vec<Item> = Vec::new();
        let mut copies: Vec<Pending> = Vec::new();
        let mut spare = spare.saturating_sub(pieces.iter().map(|p| p.guard.bytes).sum());
        for group in items.chunks((PIECE / SLOT as u64) as usize) {
            if self.control.is_cancelled() {
                return Err(GpuError::Cancelled);
            }
            let needed = (group.len() * SLOT) as u64;
            if needed > spare {
                overflow.extend_from_slice(group);
                continue;
            }
            let memory = match Arc::clone(self.open.gpu()).scratch(needed) {
                Ok(memory) => memory,
                Err(e) if e.is_out_of_memory() => {
                    tracing::debug!(bytes = needed, "no room for a snapshot piece");
                    overflow.extend_from_slice(group);
                    continue;
                }
                Err(e) => return Err(e),
            };
            let guard = Guard {
                gpu: self.open.gpu().uuid(),
                bytes: memory.bytes(),
                control: Arc::clone(&self.control),
            };
            self.control.snapshot_taken(guard.gpu, guard.bytes);
            spare = spare.saturating_sub(guard.bytes);
            let snapshot: Vec<Item> = group
                .iter()
                .enumerate()
                .map(|(i, item)| Item {
                    digest: item.digest,
                    key: item.key,
                    look: item.look,
                    range: Range {
                        memory: Arc::clone(&memory),
                        offset: (i * SLOT) as u64,
                        len: item.range.len,
                    },
                })
                .collect();
            drop(memory);
            let pairs = group
                .iter()
                .zip(&snapshot)
                .map(|(from, to)| (from.range.clone(), to.range.clone()))
                .collect();
            let copy = self.open.stream.copy(pairs);
            pieces.push(Piece {
                items: snapshot,
                guard,
            });
            copies.push(copy?);
        }
        for copy in copies {
            copy.wait()?;
        }
        Ok(overflow)
    }

    /// Copies items to the host and hands them to the pipeline, until `due` says that it is time to do
    /// something else; gives back what was not begun. What took how long is added to `spent`.
    fn drain(
        &self,
        items: Vec<Item>,
        depth: Depth,
        due: &dyn Fn() -> bool,
        spent: &mut Spent,
    ) -> Result<Vec<Item>, GpuError> {
        let mut items: VecDeque<Item> = items.into();
        let mut in_flight: VecDeque<(Vec<(Digest, usize)>, Pending)> = VecDeque::new();
        let mut left = Vec::new();
        while !items.is_empty() || !in_flight.is_empty() {
            if self.control.is_cancelled() {
                return Err(GpuError::Cancelled);
            }
            if due() {
                left.extend(items.drain(..));
            }
            let run = if items.is_empty() || in_flight.len() >= depth.copies {
                None
            } else if in_flight.is_empty() {
                let slots = items.len().min(depth.slots);
                match self.host.try_acquire(slots)? {
                    Some(run) => Some(run),
                    None => {
                        if self.control.rests() {
                            tracing::debug!(
                                "host memory is used up: what waits there is encoded, while the job is held"
                            );
                        }
                        // Nothing gives a slot back while nothing is encoded.
                        self.control.end_rest();
                        let stop = || self.control.is_cancelled() || due();
                        let acquire = || self.host.acquire(slots, &stop);
                        match Spent::on(&mut spent.memory, acquire) {
                            Err(GpuError::Cancelled) => continue,
                            run => Some(run?),
                        }
                    }
                }
            } else {
                // Never wait for a slot while holding some: they may be the last.
                self.host.try_acquire(items.len().min(depth.slots))?
            };
            if let Some(run) = run {
                let group: Vec<Item> = items.drain(..run.slots().min(items.len())).collect();
                let names = group
                    .iter()
                    .map(|i| (i.digest, i.range.len as usize))
                    .collect();
                let ranges = group.into_iter().map(|i| i.range).collect();
                let read = || self.open.stream.read(ranges, run);
                in_flight.push_back((names, Spent::on(&mut spent.issuing, read)?));
            } else if let Some((names, pending)) = in_flight.pop_front() {
                self.deliver(&names, pending, spent)?;
            }
        }
        Ok(left)
    }

    fn deliver(
        &self,
        names: &[(Digest, usize)],
        pending: Pending,
        spent: &mut Spent,
    ) -> Result<(), GpuError> {
        let Some(run) = Spent::on(&mut spent.copies, || pending.wait())? else {
            return Ok(());
        };
        Spent::on(&mut spent.handing_on, || self.hand_on(names, run))
    }

    /// Hands chunks that were copied to the pipeline.
    fn hand_on(&self, names: &[(Digest, usize)], run: HostRun) -> Result<(), GpuError> {
        let lens: Vec<usize> = names.iter().map(|(_, len)| *len).collect();
        self.control.add_copied(lens.iter().sum::<usize>() as u64);
        for ((digest, _), bytes) in names.iter().zip(run.into_chunks(&lens)) {
            if !self.sink.device(*digest, bytes) {
                return Err(GpuError::Cancelled);
            }
        }
        failpoint::reach(Point::SidecarMidDrain);
        Ok(())
    }
}

/// What is drained from the job's own memory while it runs. Field order matters, as in [`Piece`].
struct Borrowing {
    items: Vec<Item>,
    #[expect(dead_code, reason = "it says when it is dropped that the memory is")]
    lends: Borrowed,
}

/// A part of the snapshot. Field order matters: the memory (inside the items) goes first, then the
/// guard says so.
struct Piece {
    items: Vec<Item>,
    guard: Guard,
}

/// Tells when a piece's memory was given back.
struct Guard {
    gpu: GpuUuid,
    bytes: u64,
    control: Arc<Control>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.control.snapshot_released(self.gpu, self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use phos_policies::schedule::Trigger;

    use super::*;
    use crate::engine::checkpoint::programs::{Faults, Job, World};

    /// How long the drain of this job's last checkpoint of three gave way, in ms, when each copy takes much longer than before.
    async fn yielded(seed: u64, last: Trigger) -> f64 {
        let (mut world, _quiet) = World::new(Job::new(seed, 1), 1, Faults::None).await;
        // Nothing leaves in the stop, as far as the engine knows.
        world.engine.planning.link_rate = 1;
        let gpus = Arc::clone(&world.gpus);
        let mut session = world.session().await;
        for (trigger, pace) in [(Trigger::OnDemand, 0), (Trigger::OnDemand, 0), (last, 20)] {
            gpus.set_pace(Duration::from_millis(pace));
            assert!(session.checkpoint(trigger).await.is_ok());
            assert!(session.settle_checkpoint().await.is_ok());
        }
        let report = session.engine.status.lock().last.clone().unwrap();
        drop(session);
        world.end();
        report.parts_ms.get("yielded").copied().unwrap_or_default()
    }

    /// Not every job writes slices of a size that was seen in the checkpoint before, so there are several.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_snapshot_gives_way_to_who_else_copies_unless_it_hurries() {
        let mut gave_way = 0;
        for seed in 1..=20 {
            // The pause after a slice that is late is twelve times what the quickest took.
            if yielded(seed, Trigger::OnDemand).await < 0.2 {
                continue;
            }
            assert!(
                yielded(seed, Trigger::Preemption).await <= 0.0,
                "seed {seed}"
            );
            gave_way += 1;
            if gave_way == 3 {
                return;
            }
        }
        panic!("{gave_way} drains gave way");
    }
}
