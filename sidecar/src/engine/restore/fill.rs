//! One stream of chunks, packs in order, to where each belongs: files of the CPU image, and device memory through pinned slots;
//! then every chunk of device memory is digested and compared.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use phos_gpu::host::SLOT;
use phos_gpu::{DeviceMemory, HostPool, Pending, Range};
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_storage::{Manifest, Naming, Reader};
use rustix::fs::{Mode, OFlags};
use tokio::sync::mpsc;

use super::error::{RestoreError, failed_read};
use crate::engine::image::{Image, Wanted};
use crate::engine::memory::gpus::{Gpus, OpenGpu};
use crate::engine::memory::registry::Held;
use crate::engine::progress::Progress;

/// Chunks on their way to a GPU or a file.
const QUEUE: usize = 32;
/// Threads that write to one GPU, and to the files: a single one copies less than the link takes, or a file system in memory.
const WRITERS: usize = 4;
/// Copies in flight to one GPU, for each of its threads.
const IN_FLIGHT: usize = 16 / WRITERS;

/// A place that a chunk's bytes go to.
enum Place {
    /// A range of device memory.
    Device(Range),
    /// File number and offset.
    File(usize, u64),
}

/// A checkpoint whose bytes are all in place.
pub(super) struct Filled {
    /// The job's device memory, filled and mapped here.
    pub(super) held: Vec<Held>,
    /// The number of bytes that had to be fetched.
    pub(super) fetched: u64,
    pub(super) times: FillTimes,
}

/// How long each part of it took, one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct FillTimes {
    /// Making device memory, and finding out what of the old one is right.
    pub(super) memory: Duration,
    /// Fetching chunks and putting them in place.
    pub(super) transfer: Duration,
    /// Digesting everything on the GPUs.
    pub(super) verify: Duration,
}

/// The places that a checkpoint's bytes go to.
pub(super) struct Target<'a> {
    /// A GPU here for each of the image.
    pub(super) assigned: &'a BTreeMap<GpuUuid, GpuUuid>,
    pub(super) gpus: &'a Gpus,
    /// The fd of the agent's directory for the CPU image.
    pub(super) directory: OwnedFd,
    pub(super) progress: &'a Progress,
}

/// Makes the memory and the files, fills both, and checks the memory.
pub(super) async fn fill(
    reader: &Reader,
    manifest: &Manifest,
    image: &Image,
    reusable: HashMap<AllocationKey, Arc<dyn DeviceMemory>>,
    target: Target<'_>,
) -> Result<Filled, RestoreError> {
    let Target {
        assigned,
        gpus,
        directory,
        progress,
    } = target;
    let (wanted, assigned) = (image.memory.clone(), assigned.clone());
    let began = Instant::now();
    let made = {
        let (gpus, naming) = (gpus.clone(), reader.naming());
        blocking(move || make(&wanted, &assigned, &reusable, &gpus, &naming)).await?
    };
    let Made { held, present } = made;
    let memory = began.elapsed();

    // Where each chunk of the table goes.
    let mut places: HashMap<u32, Vec<Place>> = HashMap::new();
    let mut kept = 0;
    for ((wanted, held), present) in image.memory.iter().zip(&held).zip(&present) {
        for (chunk, present) in wanted.chunks.iter().zip(present) {
            if *present {
                kept += chunk.len;
                continue;
            }
            let range = Range {
                memory: Arc::clone(&held.memory),
                offset: chunk.offset,
                len: chunk.len,
            };
            places
                .entry(chunk.index)
                .or_default()
                .push(Place::Device(range));
        }
    }
    progress.add(kept);
    let files = make_files(manifest, &directory).map_err(RestoreError::File)?;
    for (number, file) in manifest.body.cpu_image.iter().enumerate() {
        for extent in manifest.extents(&file.chunks) {
            places
                .entry(extent.chunk)
                .or_default()
                .push(Place::File(number, extent.offset));
        }
    }
    let began = Instant::now();
    let fetched = transfer(reader, places, files, gpus, progress).await?;
    let transfer = began.elapsed();

    let began = Instant::now();
    let check = {
        let (gpus, wanted, held) = (gpus.clone(), image.memory.clone(), held.clone());
        let naming = reader.naming();
        move || verify(&wanted, &held, &gpus, &naming)
    };
    blocking(check).await?;
    Ok(Filled {
        held,
        fetched,
        times: FillTimes {
            memory,
            transfer,
            verify: began.elapsed(),
        },
    })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RestoreError> + Send + 'static,
) -> Result<T, RestoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(RestoreError::Image(format!("a worker ended: {e}"))))
}

struct Made {
    held: Vec<Held>,
    /// Per allocation, per chunk: its bytes are there already.
    present: Vec<Vec<bool>>,
}

fn ranges(wanted: &Wanted, memory: &Arc<dyn DeviceMemory>) -> impl Iterator<Item = Range> {
    wanted.chunks.iter().map(|c| Range {
        memory: Arc::clone(memory),
        offset: c.offset,
        len: c.len,
    })
}

/// Takes old memory over where it is the same allocation and finds out what of it is right; makes the
/// rest.
fn make(
    image: &[Wanted],
    assigned: &BTreeMap<GpuUuid, GpuUuid>,
    reusable: &HashMap<AllocationKey, Arc<dyn DeviceMemory>>,
    gpus: &Gpus,
    naming: &Naming,
) -> Result<Made, RestoreError> {
    let mut held = Vec::with_capacity(image.len());
    let mut old = Vec::new();
    for wanted in image {
        let memory = match reusable.get(&wanted.allocation.key) {
            Some(memory) => {
                old.extend(ranges(wanted, memory));
                Arc::clone(memory)
            }
            None => {
                let uuid = assigned.get(&wanted.gpu).copied().unwrap_or(wanted.gpu);
                Arc::clone(gpus.get(uuid)?.gpu()).create(&wanted.allocation)?
            }
        };
        held.push(Held {
            allocation: wanted.allocation,
            requested: wanted.requested,
            memory,
        });
    }
    let mut digests = gpus.digest(&old, naming)?.into_iter();
    let present = image
        .iter()
        .map(|wanted| {
            let reused = reusable.contains_key(&wanted.allocation.key);
            wanted
                .chunks
                .iter()
                .map(|c| reused && digests.next().is_some_and(|d| d == c.digest.0))
                .collect()
        })
        .collect();
    Ok(Made { held, present })
}

/// Digests everything on the GPUs and compares.
fn verify(
    image: &[Wanted],
    held: &[Held],
    gpus: &Gpus,
    naming: &Naming,
) -> Result<(), RestoreError> {
    let all: Vec<Range> = image
        .iter()
        .zip(held)
        .flat_map(|(w, h)| ranges(w, &h.memory))
        .collect();
    let digests = gpus.digest(&all, naming)?;
    let named = image
        .iter()
        .flat_map(|w| w.chunks.iter().map(move |c| (w, c)));
    for ((wanted, chunk), digest) in named.zip(digests) {
        if digest != chunk.digest.0 {
            return Err(RestoreError::Image(format!(
                "device memory is not what was stored: allocation {:?} at byte {}; the GPU or its link \
                 is faulty (see nvidia-smi -q -d ECC)",
                wanted.allocation.key, chunk.offset
            )));
        }
    }
    Ok(())
}

/// Makes the image's files, empty and of their length.
fn make_files(manifest: &Manifest, directory: &OwnedFd) -> std::io::Result<Vec<OwnedFd>> {
    manifest
        .body
        .cpu_image
        .iter()
        .map(|file| {
            let path = file.path.as_path();
            let sound = path
                .components()
                .all(|c| matches!(c, std::path::Component::Normal(_)));
            if !sound {
                return Err(std::io::Error::other(format!(
                    "{path:?} is no path below the image"
                )));
            }
            let mut above = std::path::PathBuf::new();
            for part in path
                .parent()
                .into_iter()
                .flat_map(std::path::Path::components)
            {
                above.push(part);
                match rustix::fs::mkdirat(directory.as_fd(), &above, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(file.mode & 0o7777);
            let fd = rustix::fs::openat(directory.as_fd(), path, flags, mode)?;
            rustix::fs::ftruncate(&fd, file.length)?;
            Ok(fd)
        })
        .collect()
}

/// Fetches what has a place and puts it there; overlapped. The bytes fetched.
async fn transfer(
    reader: &Reader,
    mut places: HashMap<u32, Vec<Place>>,
    files: Vec<OwnedFd>,
    gpus: &Gpus,
    progress: &Progress,
) -> Result<u64, RestoreError> {
    let (to_files, file_chunks) = mpsc::channel(QUEUE);
    let (files, file_chunks) = (Arc::new(files), Arc::new(Mutex::new(file_chunks)));
    let mut workers = Vec::new();
    for _ in 0..WRITERS {
        let (files, chunks) = (Arc::clone(&files), Arc::clone(&file_chunks));
        workers.push(tokio::task::spawn_blocking(move || {
            or_close(&chunks, || write_files(&files, &chunks))
        }));
    }
    // Else nobody would notice that all of them have ended.
    drop(file_chunks);
    let mut to_gpus = BTreeMap::new();
    let on_devices = |place: &Place| match place {
        Place::Device(range) => range.len,
        Place::File(..) => 0,
    };
    if let Ok(host) = gpus.host() {
        host.prepare(places.values().flatten().map(on_devices).sum());
    }
    for (&uuid, open) in gpus.all() {
        let (sender, chunks) = mpsc::channel(QUEUE);
        let chunks = Arc::new(Mutex::new(chunks));
        for _ in 0..WRITERS {
            let (open, host, chunks) = (
                Arc::clone(open),
                Arc::clone(gpus.host()?),
                Arc::clone(&chunks),
            );
            workers.push(tokio::task::spawn_blocking(move || {
                or_close(&chunks, || write_device(&open, &host, &chunks))
            }));
        }
        to_gpus.insert(uuid, sender);
    }
    let mut stream = reader.fetch(places.keys().copied().collect::<Vec<_>>());
    let mut fetched = 0;
    let mut failed = None;
    // Which of the two sides the other one waits for.
    let (mut reading, mut writing) = (Duration::ZERO, Duration::ZERO);
    'fetching: loop {
        let asked = Instant::now();
        let next = stream.next().await;
        let got = Instant::now();
        reading += got - asked;
        let Some(chunk) = next else { break };
        let (index, bytes) = match chunk {
            Ok(chunk) => chunk,
            Err(e) => {
                failed = Some(failed_read(e));
                break;
            }
        };
        fetched += bytes.len() as u64;
        for place in places.remove(&index).unwrap_or_default() {
            progress.add(bytes.len() as u64);
            let sent = match place {
                Place::File(number, offset) => {
                    to_files.send((number, offset, bytes.clone())).await.is_ok()
                }
                Place::Device(range) => match to_gpus.get(&range.memory.gpu()) {
                    Some(sender) => sender.send((range, bytes.clone())).await.is_ok(),
                    None => false,
                },
            };
            if !sent {
                break 'fetching;
            }
        }
        writing += got.elapsed();
    }
    tracing::debug!(?reading, ?writing, "all chunks were fetched");
    drop((to_files, to_gpus));
    for worker in workers {
        let outcome = worker
            .await
            .unwrap_or_else(|e| Err(RestoreError::Image(e.to_string())));
        if let Err(e) = outcome {
            failed.get_or_insert(e);
        }
    }
    match failed {
        Some(e) => Err(e),
        None if places.is_empty() => Ok(fetched),
        None => Err(RestoreError::Image(format!(
            "{} chunks did not come",
            places.len()
        ))),
    }
}

/// What several threads take from, each the next one.
type Shared<T> = Mutex<mpsc::Receiver<T>>;

/// Waits for the next chunk. Whoever waits keeps the others waiting, for the same chunk.
fn next<T>(chunks: &Shared<T>) -> Option<T> {
    let mut chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
    chunks.blocking_recv()
}

/// The next chunk, if there is one and nobody waits for it.
fn try_next<T>(chunks: &Shared<T>) -> Option<T> {
    chunks.try_lock().ok()?.try_recv().ok()
}

/// Does some work on chunks; if it fails, nobody gets any more of them, so that what brings them ends.
fn or_close<T>(
    chunks: &Shared<T>,
    work: impl FnOnce() -> Result<(), RestoreError>,
) -> Result<(), RestoreError> {
    work().inspect_err(|_| {
        let mut chunks = chunks.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.close();
        while chunks.try_recv().is_ok() {}
    })
}

fn write_files(
    files: &[OwnedFd],
    chunks: &Shared<(usize, u64, Bytes)>,
) -> Result<(), RestoreError> {
    while let Some((number, mut offset, bytes)) = next(chunks) {
        let Some(fd) = files.get(number) else {
            continue;
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let n =
                rustix::io::pwrite(fd, rest, offset).map_err(|e| RestoreError::File(e.into()))?;
            rest = rest.get(n..).unwrap_or_default();
            offset += n as u64;
        }
    }
    Ok(())
}

fn write_device(
    open: &OpenGpu,
    host: &Arc<HostPool>,
    chunks: &Shared<(Range, Bytes)>,
) -> Result<(), RestoreError> {
    let mut in_flight: std::collections::VecDeque<Pending> = std::collections::VecDeque::new();
    loop {
        let chunk = match try_next(chunks) {
            Some(chunk) => Some(chunk),
            None => {
                // Slots are not kept while there is nothing to do: another GPU may have none.
                for pending in in_flight.drain(..) {
                    pending.wait()?;
                }
                next(chunks)
            }
        };
        let Some((range, bytes)) = chunk else {
            return Ok(());
        };
        if bytes.len() > SLOT || bytes.len() as u64 != range.len {
            return Err(RestoreError::Image(format!(
                "a chunk has {} bytes, not {}",
                bytes.len(),
                range.len
            )));
        }
        // Never wait for a slot while holding some: others may wait for these.
        let mut run = loop {
            if in_flight.len() < IN_FLIGHT
                && let Some(run) = host.try_acquire(1)?
            {
                break run;
            }
            match in_flight.pop_front() {
                Some(pending) => drop(pending.wait()?),
                None => break host.acquire(1, &|| false)?,
            }
        };
        if let Some(slot) = run.bytes_mut().get_mut(..bytes.len()) {
            slot.copy_from_slice(&bytes);
        }
        in_flight.push_back(open.stream.write(vec![range], run)?);
    }
}
