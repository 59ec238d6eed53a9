//! Brings chunks to where each belongs: files of the CPU image, and device memory through pinned slots.
//!
//! Each batch of chunks goes its whole way as a task of its own, beside the others: fetched, decoded, copied into pinned memory,
//! written to the GPU. Nothing is handed from one thread to another chunk by chunk, and no stage waits because the consumer of
//! another is busy. A queue between readers and writers did both, and kept an H200 with 16 cores at 5.4 GB/s.
//!
//! # Rules
//!
//! * No task waits for pinned memory while it holds some: another may wait for what it holds.
//! * After a failure, or when it is given up ([`Filling::give_up`]), nothing more is fetched, and it is told when what is already being
//!   put in place is there: the memory is then touched by nobody.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use phos_gpu::Range;
use phos_gpu::host::SLOT;
use phos_protocol::types::GpuUuid;
use phos_shared::mapped;
use phos_storage::{Batch, Reader};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::error::{RestoreError, failed_read};
use crate::engine::memory::gpus::Gpus;
use crate::engine::progress::Progress;

/// A place that a chunk's bytes go to.
pub(super) enum Place {
    /// A range of device memory.
    Device(Range),
    /// File number and offset.
    File(usize, u64),
}

impl Place {
    const fn device_bytes(&self) -> u64 {
        match self {
            Self::Device(range) => range.len,
            Self::File(..) => 0,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Device(range) => write!(
                f,
                "{} bytes at byte {} of an allocation of GPU {}",
                range.len,
                range.offset,
                range.memory.gpu()
            ),
            Self::File(number, offset) => write!(f, "file {number} of the image, byte {offset}"),
        }
    }
}

/// A chunk for one of its places: its number in the manifest's table, which of its places, its bytes.
type Piece = (u32, usize, Bytes);

/// So many places are served by one thread, one after another.
const TOGETHER: usize = 64;
/// So many threads serve one batch: more than one only for chunks with many places.
const AT_ONCE: usize = 4;

/// What batches are put in place with.
struct Target {
    /// By the chunk's number in the manifest's table.
    places: HashMap<u32, Vec<Place>>,
    files: Vec<File>,
    gpus: Gpus,
}

/// What was done with one batch, or with all.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    chunks: usize,
    /// Bytes that were fetched, each chunk counted once.
    fetched: u64,
    /// Bytes that were put in place.
    put: u64,
}

/// Memory that is being filled, for those who wait for it and may want it no longer.
pub(super) struct Filling {
    /// Bytes of device memory that are there.
    filled: watch::Sender<u64>,
    given_up: watch::Sender<bool>,
}

impl Filling {
    pub(super) fn new() -> Filling {
        Filling {
            filled: watch::Sender::new(0),
            given_up: watch::Sender::new(false),
        }
    }

    /// Waits until `enough` of how many bytes are there.
    pub(super) async fn until(&self, enough: impl FnMut(&u64) -> bool) {
        // The sender is ours.
        let _ = self.filled.subscribe().wait_for(enough).await;
    }

    /// Has the transfer end early, with an error.
    pub(super) fn give_up(&self) {
        self.given_up.send_replace(true);
    }
}

/// Fetches what has a place and puts it there. The bytes fetched.
pub(super) async fn transfer(
    reader: &Reader,
    places: HashMap<u32, Vec<Place>>,
    files: Vec<File>,
    gpus: &Gpus,
    progress: &Progress,
    filling: &Filling,
) -> Result<u64, RestoreError> {
    if let Ok(host) = gpus.host() {
        host.prepare(places.values().flatten().map(Place::device_bytes).sum());
    }
    let wanted: Vec<u32> = places.keys().copied().collect();
    let mut batches = reader.batches(wanted).map_err(failed_read)?;
    let target = Arc::new(Target {
        places,
        files,
        gpus: gpus.clone(),
    });
    let given_up = filling.given_up.subscribe();
    let mut tasks = JoinSet::new();
    let mut total = Done::default();
    let mut failed = None;
    loop {
        while failed.is_none() && !*given_up.borrow() && tasks.len() < reader.width() {
            let Some(batch) = batches.next() else { break };
            let (target, mut given_up) = (Arc::clone(&target), given_up.clone());
            tasks.spawn(async move {
                let batch = tokio::select! {
                    batch = batch => batch.map_err(failed_read)?,
                    _ = given_up.wait_for(|given_up| *given_up) => return Ok(Done::default()),
                };
                put_all(&target, batch).await
            });
        }
        let Some(ended) = tasks.join_next().await else {
            break;
        };
        match ended.unwrap_or_else(|e| Err(RestoreError::Image(format!("a task ended: {e}")))) {
            Ok(done) => {
                progress.add(done.put);
                filling.filled.send_modify(|filled| *filled += done.put);
                total.chunks += done.chunks;
                total.fetched += done.fetched;
                total.put += done.put;
            }
            Err(e) => {
                failed.get_or_insert(e);
                filling.give_up();
            }
        }
    }
    match failed {
        Some(e) => Err(e),
        None if total.chunks == target.places.len() => Ok(total.fetched),
        None => Err(RestoreError::Image(format!(
            "{} of {} chunks came",
            total.chunks,
            target.places.len()
        ))),
    }
}

/// Does blocking work on a thread for that.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RestoreError> + Send + 'static,
) -> Result<T, RestoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(RestoreError::Image(format!("a worker ended: {e}"))))
}

/// Puts the chunks of a batch in all their places: a few at a time, as the one chunk of zeros may have thousands. Returns when none
/// is being put any more, whatever happened to the others.
async fn put_all(target: &Arc<Target>, batch: Batch) -> Result<Done, RestoreError> {
    let mut done = Done::default();
    let mut pieces = Vec::new();
    for (index, bytes) in batch {
        let Some(places) = target.places.get(&index) else {
            continue;
        };
        done.chunks += 1;
        done.fetched += bytes.len() as u64;
        done.put += bytes.len() as u64 * places.len() as u64;
        pieces.extend((0..places.len()).map(|nth| (index, nth, bytes.clone())));
    }
    let parts: Vec<Vec<Piece>> = pieces.chunks(TOGETHER).map(<[Piece]>::to_vec).collect();
    let puts = stream::iter(parts).map(|part| {
        let target = Arc::clone(target);
        blocking(move || target.put(part))
    });
    let put: Vec<Result<(), RestoreError>> = puts.buffer_unordered(AT_ONCE).collect().await;
    put.into_iter().collect::<Result<(), _>>().map(|()| done)
}

impl Target {
    /// Puts chunks in these of their places. Blocks.
    fn put(&self, pieces: Vec<Piece>) -> Result<(), RestoreError> {
        let mut on_devices: BTreeMap<GpuUuid, Vec<(Range, Bytes)>> = BTreeMap::new();
        for (index, nth, bytes) in pieces {
            match self.places.get(&index).and_then(|places| places.get(nth)) {
                Some(Place::File(number, offset)) => self.write_file(*number, *offset, &bytes)?,
                Some(Place::Device(range)) => on_devices
                    .entry(range.memory.gpu())
                    .or_default()
                    .push((range.clone(), bytes)),
                None => {}
            }
        }
        for (gpu, chunks) in on_devices {
            self.write_device(gpu, &chunks)?;
        }
        Ok(())
    }

    fn write_file(&self, number: usize, offset: u64, bytes: &[u8]) -> Result<(), RestoreError> {
        match self.files.get(number) {
            Some(file) => mapped::write(file, bytes, offset).map_err(RestoreError::File),
            None => Err(RestoreError::Image(format!(
                "the image has no file number {number}"
            ))),
        }
    }

    fn write_device(&self, gpu: GpuUuid, chunks: &[(Range, Bytes)]) -> Result<(), RestoreError> {
        for (range, bytes) in chunks {
            if bytes.len() > SLOT || bytes.len() as u64 != range.len {
                return Err(RestoreError::Image(format!(
                    "a chunk has {} bytes, not {}",
                    bytes.len(),
                    range.len
                )));
            }
        }
        let (open, host) = (self.gpus.get(gpu)?, self.gpus.host()?);
        let mut rest = chunks;
        while !rest.is_empty() {
            let mut run = host.acquire(rest.len(), &|| false)?;
            let (group, others) = rest.split_at(run.slots().min(rest.len()));
            for (slot, (_, bytes)) in run.bytes_mut().chunks_exact_mut(SLOT).zip(group) {
                if let Some(slot) = slot.get_mut(..bytes.len()) {
                    slot.copy_from_slice(bytes);
                }
            }
            let ranges = group.iter().map(|(range, _)| range.clone()).collect();
            open.stream.write(ranges, run)?.wait()?;
            rest = others;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    const LENGTH: usize = 1000;
    const PLACES: usize = 3 * TOGETHER + 5;

    /// A file with room for each place, and a batch of one chunk that goes to all of them.
    fn target(file: File, places: impl Iterator<Item = usize>) -> (Arc<Target>, Batch) {
        file.set_len((PLACES * LENGTH) as u64).unwrap();
        let places = places.map(|nth| Place::File(nth / PLACES, (nth % PLACES * LENGTH) as u64));
        let target = Target {
            places: HashMap::from([(3, places.collect())]),
            files: vec![file],
            gpus: Gpus::discover(0),
        };
        (Arc::new(target), vec![(3, vec![7; LENGTH].into())])
    }

    #[tokio::test]
    async fn a_chunk_with_many_places_is_put_in_all_of_them() {
        let file = tempfile::tempfile().unwrap();
        let (target, batch) = target(file.try_clone().unwrap(), 0..PLACES);
        let done = put_all(&target, batch).await.unwrap();
        assert_eq!((done.chunks, done.fetched), (1, LENGTH as u64));
        assert_eq!(done.put, (PLACES * LENGTH) as u64);
        let mut found = vec![0; PLACES * LENGTH];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found.iter().all(|byte| *byte == 7));
    }

    #[tokio::test]
    async fn a_failure_is_told_when_nobody_writes_any_more() {
        let file = tempfile::tempfile().unwrap();
        // The first of them is in a file that the image does not have.
        let (target, batch) = target(
            file.try_clone().unwrap(),
            std::iter::once(PLACES).chain(0..PLACES),
        );
        let error = put_all(&target, batch).await.err().unwrap();
        assert!(error.to_string().contains("no file number 1"), "{error}");
        assert_eq!(Arc::strong_count(&target), 1);
        let mut last = [0; LENGTH];
        file.read_exact_at(&mut last, ((PLACES - 1) * LENGTH) as u64)
            .unwrap();
        assert_eq!(last, [7; LENGTH]);
    }
}
