//! From chunks in host memory to the store: bounded, concurrent, stops at the first fault.
//!
//! # Cancellation
//!
//! [`Control`] is shared by everything that works on one checkpoint's bytes. A worker that fails sets it with its reason, and all
//! others end soon after. The first reason wins.
//!
//! # Rest
//!
//! While the job is held, what it waits for has all cores and the host's memory to itself: CRIU, the copy of its memory, the drain. So nothing is encoded
//! then, as long as host memory has room for what leaves the GPUs.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::stream::{self, FuturesUnordered};
use futures::{Stream, StreamExt};
use phos_protocol::types::GpuUuid;
use phos_storage::{CheckpointWriter, Digest, PutError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::background::Background;
use crate::report::work::Working;

/// How often it is looked whether a rest is over.
pub(super) const NAP: Duration = Duration::from_millis(5);

/// Chunks of the CPU image waiting for the store, beside those in flight.
const QUEUE: usize = 16;

/// The state that all workers of one checkpoint share: whether it was cancelled, and what it has moved.
#[derive(Default)]
pub(in crate::engine) struct Control {
    cancelled: AtomicBool,
    reason: Mutex<Option<String>>,
    /// It was not the store, the disk or a GPU that failed.
    for_others: AtomicBool,
    /// Whether the job could continue: what is left must then be moved out of the way.
    due: AtomicBool,
    /// Whether nothing is to be encoded now.
    rests: AtomicBool,
    /// Workers that still read memory which the job waits for.
    holding: AtomicUsize,
    /// Device memory held by snapshots, per GPU, in bytes.
    snapshot: Mutex<BTreeMap<GpuUuid, u64>>,
    /// Whether there is no time to give way to the job's copies.
    hurries: AtomicBool,
    /// Bytes of the job's own memory that are still read while it runs.
    borrowed: AtomicU64,
    /// Whether any of it was.
    is_beside: AtomicBool,
    /// The job has written what was still to be copied.
    overwritten: AtomicBool,
    /// The number of bytes that were copied off the GPUs.
    copied: AtomicU64,
    /// How long drains copied nothing to leave the links to the job, all GPUs together, in ns.
    yielded: AtomicU64,
    /// How far it is, for those who ask.
    works: OnceLock<Works>,
}

/// Nothing is encoded meanwhile.
#[must_use]
pub(super) struct Rest(Arc<Control>);

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.end_rest();
    }
}

/// Memory of the job's is being read while it runs.
#[must_use]
pub(in crate::engine) struct Borrowed(Arc<Control>, u64);

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.0.borrowed.fetch_sub(self.1, Ordering::AcqRel);
    }
}

/// How far a checkpoint is.
pub(super) struct Works {
    pub(super) drain: Arc<Working>,
    pub(super) store: Arc<Working>,
}

impl Control {
    /// Ends the work for this reason.
    pub(in crate::engine) fn cancel(&self, reason: impl Into<String>) {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(|| reason.into());
        self.cancelled.store(true, Ordering::Release);
    }

    /// Ends the work because the job or its end needs what it takes.
    pub(in crate::engine) fn cancel_for_others(&self, reason: impl Into<String>) {
        self.for_others.store(true, Ordering::Release);
        self.cancel(reason);
    }

    /// Whether it ended for that.
    pub(in crate::engine) fn was_for_others(&self) -> bool {
        self.for_others.load(Ordering::Acquire)
    }

    /// Notes that the job, the machine or this process is to end: what is left leaves the GPUs without regard for the job's copies.
    pub(in crate::engine) fn hurry(&self) {
        self.hurries.store(true, Ordering::Release);
    }

    /// Whether there is no time to give way to the job's copies.
    pub(in crate::engine) fn hurries(&self) -> bool {
        self.hurries.load(Ordering::Acquire)
    }

    /// Whether somebody ended it.
    pub(in crate::engine) fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Acquire)
    }

    /// Notes that the job could continue: the workers get what is left out of its way.
    pub(in crate::engine) fn set_due(&self) {
        self.due.store(true, Ordering::Release);
    }

    /// Whether the job could continue but for the work that is left.
    pub(in crate::engine) fn is_due(&self) -> bool {
        self.due.load(Ordering::Acquire)
    }

    /// Nothing is encoded until this is dropped, or somebody calls [`Control::end_rest`].
    pub(super) fn rest(self: &Arc<Self>) -> Rest {
        self.rests.store(true, Ordering::Release);
        Rest(Arc::clone(self))
    }

    /// What waits is encoded from now on.
    pub(in crate::engine) fn end_rest(&self) {
        self.rests.store(false, Ordering::Release);
    }

    /// A worker begins to read memory that the job waits for.
    pub(in crate::engine) fn begin_holding(&self) {
        self.holding.fetch_add(1, Ordering::AcqRel);
    }

    /// It has read that.
    pub(in crate::engine) fn end_holding(&self) {
        self.holding.fetch_sub(1, Ordering::AcqRel);
    }

    /// Whether what is in a snapshot can leave the GPUs: no other GPU's worker needs host memory first, and no cores are needed for the job.
    pub(in crate::engine) fn may_drain_snapshots(&self) -> bool {
        self.holding.load(Ordering::Acquire) == 0 && !self.rests()
    }

    /// Whether nothing is encoded now.
    pub(in crate::engine) fn rests(&self) -> bool {
        // Once the dump is there, the job waits for nothing that needs cores, if nothing is copied beside it.
        self.rests.load(Ordering::Acquire) && (!self.is_due() || self.borrowed() > 0)
    }

    /// So many bytes of the job's own memory are read while it runs, until this is dropped.
    pub(in crate::engine) fn borrow(self: &Arc<Self>, bytes: u64) -> Borrowed {
        self.borrowed.fetch_add(bytes, Ordering::AcqRel);
        self.is_beside.fetch_or(bytes > 0, Ordering::AcqRel);
        Borrowed(Arc::clone(self), bytes)
    }

    /// The bytes of the job's own memory that are still to be read while it runs.
    pub(in crate::engine) fn borrowed(&self) -> u64 {
        self.borrowed.load(Ordering::Acquire)
    }

    /// Whether the job has written what was still to be copied.
    pub(super) fn was_overwritten(&self) -> bool {
        self.overwritten.load(Ordering::Acquire)
    }

    /// Why the work was cancelled; `None` if it was not.
    pub(in crate::engine) fn reason(&self) -> Option<String> {
        self.reason
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn snapshots(&self) -> MutexGuard<'_, BTreeMap<GpuUuid, u64>> {
        self.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A snapshot took device memory.
    pub(in crate::engine) fn snapshot_taken(&self, gpu: GpuUuid, bytes: u64) {
        *self.snapshots().entry(gpu).or_default() += bytes;
    }

    /// A snapshot gave device memory back.
    pub(in crate::engine) fn snapshot_released(&self, gpu: GpuUuid, bytes: u64) {
        if let Some(held) = self.snapshots().get_mut(&gpu) {
            *held = held.saturating_sub(bytes);
        }
    }

    /// Device memory of all GPUs held by snapshots now, in bytes.
    pub(in crate::engine) fn snapshot_bytes(&self) -> u64 {
        self.snapshots().values().sum()
    }

    /// Device memory of one GPU held by snapshots now, in bytes.
    pub(in crate::engine) fn snapshot_on(&self, gpu: GpuUuid) -> u64 {
        self.snapshots().get(&gpu).copied().unwrap_or(0)
    }

    /// Counts time in which a drain copied nothing to leave the link to the job.
    pub(in crate::engine) fn add_yielded(&self, time: Duration) {
        self.yielded
            .fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// How long drains copied nothing to leave the links to the job, all GPUs together.
    pub(super) fn yielded(&self) -> Duration {
        Duration::from_nanos(self.yielded.load(Ordering::Relaxed))
    }

    /// Counts bytes copied off the GPUs.
    pub(in crate::engine) fn add_copied(&self, bytes: u64) {
        self.copied.fetch_add(bytes, Ordering::Relaxed);
        if let Some(works) = self.works.get() {
            works.drain.add(bytes);
        }
    }

    /// Shows from now on how far it is.
    pub(super) fn show(&self, works: Works) {
        // It is begun once.
        let _ = self.works.set(works);
    }

    /// Counts bytes that are where they are to be.
    pub(super) fn add_stored(&self, bytes: u64) {
        if let Some(works) = self.works.get() {
            works.store.add(bytes);
        }
    }

    /// There is so much more to store.
    pub(super) fn add_to_store(&self, bytes: u64) {
        if let Some(works) = self.works.get() {
            works.store.add_total(bytes);
        }
    }

    /// The number of bytes that were copied off the GPUs so far.
    pub(in crate::engine) fn copied(&self) -> u64 {
        self.copied.load(Ordering::Relaxed)
    }
}

/// Where chunks go in.
///
/// Device memory is not held up here: its bound is the pool that the chunks lie in, and the pool is
/// there to take at link speed what the store takes more slowly. Chunks of the CPU image have no pool
/// and wait for room in a short queue.
#[derive(Clone)]
pub(in crate::engine) struct Sink {
    device: mpsc::UnboundedSender<(Digest, Bytes)>,
    host: mpsc::Sender<(Digest, Bytes)>,
}

impl Sink {
    /// A chunk in pinned memory. False: nobody takes it any more.
    pub(in crate::engine) fn device(&self, digest: Digest, bytes: Bytes) -> bool {
        self.device.send((digest, bytes)).is_ok()
    }

    /// A chunk of the CPU image. Blocks. False: nobody takes it any more.
    pub(in crate::engine) fn host(&self, digest: Digest, bytes: Bytes) -> bool {
        self.host.blocking_send((digest, bytes)).is_ok()
    }
}

/// Starts the pipeline. It ends when the last sink is dropped, or at the first fault.
pub(in crate::engine) fn start(
    background: &Background,
    writer: CheckpointWriter,
    control: Arc<Control>,
    concurrency: usize,
) -> (Sink, JoinHandle<Result<(), String>>) {
    let (device, device_chunks) = mpsc::unbounded_channel();
    let (host, host_chunks) = mpsc::channel(QUEUE);
    let chunks = stream::select(received(device_chunks), bounded(host_chunks));
    let run = run(writer, control, concurrency.max(1), Box::pin(chunks));
    let task = background.spawn(run);
    (Sink { device, host }, task)
}

fn received(
    mut chunks: mpsc::UnboundedReceiver<(Digest, Bytes)>,
) -> impl Stream<Item = (Digest, Bytes)> + Send {
    stream::poll_fn(move |context| chunks.poll_recv(context))
}

fn bounded(
    mut chunks: mpsc::Receiver<(Digest, Bytes)>,
) -> impl Stream<Item = (Digest, Bytes)> + Send {
    stream::poll_fn(move |context| chunks.poll_recv(context))
}

async fn run(
    writer: CheckpointWriter,
    control: Arc<Control>,
    concurrency: usize,
    mut chunks: Pin<Box<dyn Stream<Item = (Digest, Bytes)> + Send>>,
) -> Result<(), String> {
    let mut puts = FuturesUnordered::new();
    let mut open = true;
    while open || !puts.is_empty() {
        let rests = control.rests();
        tokio::select! {
            () = tokio::time::sleep(NAP), if rests => {}
            chunk = chunks.next(), if open && !rests && puts.len() < concurrency => match chunk {
                Some((digest, bytes)) => {
                    let writer = writer.clone();
                    let len = bytes.len() as u64;
                    puts.push(async move { writer.put(digest, bytes).await.map(|_| len) });
                }
                None => open = false,
            },
            Some(outcome) = puts.next(), if !puts.is_empty() => {
                match outcome {
                    Ok(bytes) => control.add_stored(bytes),
                    Err(e) => {
                        if matches!(e, PutError::DigestMismatch { .. }) {
                            let by_job = control.is_beside.load(Ordering::Acquire);
                            control.overwritten.store(by_job, Ordering::Release);
                        }
                        control.cancel(e.to_string());
                        return Err(e.to_string());
                    }
                }
            }
        }
        if control.is_cancelled() {
            return Err(control.reason().unwrap_or_default());
        }
    }
    Ok(())
}
