//! Makes the job's memory and the files of its CPU image, has both filled ([`transfer`](super::transfer)), the files first, and digests
//! every chunk of device memory.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_gpu::{DeviceMemory, Range};
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_storage::{Manifest, Naming, Reader};
use rustix::fs::{Mode, OFlags};

use super::error::RestoreError;
use super::transfer::{Filling, Place, blocking, transfer};
use crate::engine::image::{Image, Wanted};
use crate::engine::memory::gpus::Gpus;
use crate::engine::memory::registry::Held;
use crate::engine::progress::Progress;

/// A checkpoint whose bytes are all in place.
pub(super) struct Filled {
    /// The job's device memory, filled and mapped here.
    pub(super) held: Vec<Held>,
    /// The number of bytes that had to be fetched.
    pub(super) fetched: u64,
    pub(super) times: FillTimes,
}

impl Filled {
    /// Memory that nobody wants any more.
    pub(super) fn unread(held: &[Held]) -> Filled {
        Filled {
            held: held.to_vec(),
            fetched: 0,
            times: FillTimes::default(),
        }
    }
}

/// How long each part of it took, one after the other.
#[derive(Debug, Clone, Copy, Default)]
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
    /// The size of the CPU image in bytes.
    pub(super) files: u64,
    pub(super) progress: &'a Progress,
}

/// A checkpoint whose files are in place, and whose memory is there without its contents.
pub(super) struct Prepared {
    /// The job's device memory, mapped here.
    pub(super) held: Vec<Held>,
    /// Bytes of it that are missing.
    pub(super) missing: u64,
    /// Where each chunk of the table goes that is missing.
    places: HashMap<u32, Vec<Place>>,
    fetched: u64,
    times: FillTimes,
}

/// Makes the memory and the files, and fills the files.
pub(super) async fn prepare(
    reader: &Reader,
    manifest: &Manifest,
    image: &Image,
    reusable: HashMap<AllocationKey, Arc<dyn DeviceMemory>>,
    target: &Target<'_>,
) -> Result<Prepared, RestoreError> {
    let Target {
        assigned,
        gpus,
        directory,
        progress,
        ..
    } = target;
    let (wanted, assigned) = (image.memory.clone(), (*assigned).clone());
    let began = Instant::now();
    let made = {
        let (gpus, naming) = ((*gpus).clone(), reader.naming());
        blocking(move || make(&wanted, &assigned, &reusable, &gpus, &naming)).await?
    };
    let Made { held, present } = made;
    let memory = began.elapsed();

    // Where each chunk of the table goes: those of files first.
    let mut places: HashMap<u32, Vec<Place>> = HashMap::new();
    let files = make_files(manifest, directory).map_err(RestoreError::File)?;
    for (number, file) in manifest.body.cpu_image.iter().enumerate() {
        for extent in manifest.extents(&file.chunks) {
            places
                .entry(extent.chunk)
                .or_default()
                .push(Place::File(number, extent.offset));
        }
    }
    let mut later: HashMap<u32, Vec<Place>> = HashMap::new();
    let (mut kept, mut missing) = (0, 0);
    for ((wanted, held), present) in image.memory.iter().zip(&held).zip(&present) {
        for (chunk, present) in wanted.chunks.iter().zip(present) {
            if *present {
                kept += chunk.len;
                continue;
            }
            let place = Place::Device(Range {
                memory: Arc::clone(&held.memory),
                offset: chunk.offset,
                len: chunk.len,
            });
            // It comes once, for whatever it is.
            if let Some(places) = places.get_mut(&chunk.index) {
                places.push(place);
                continue;
            }
            missing += chunk.len;
            later.entry(chunk.index).or_default().push(place);
        }
    }
    progress.add(kept);
    let began = Instant::now();
    let fetched = transfer(reader, places, files, gpus, progress, &Filling::new()).await?;
    Ok(Prepared {
        held,
        missing,
        places: later,
        fetched,
        times: FillTimes {
            memory,
            transfer: began.elapsed(),
            verify: Duration::ZERO,
        },
    })
}

impl Prepared {
    /// Fills the memory, and checks all of it.
    pub(super) async fn fill(
        self,
        reader: &Reader,
        image: &Image,
        target: &Target<'_>,
        filling: &Filling,
    ) -> Result<Filled, RestoreError> {
        let Prepared {
            held,
            places,
            fetched,
            mut times,
            ..
        } = self;
        let (gpus, progress) = (target.gpus, target.progress);
        let began = Instant::now();
        // All of it is checked where it is put.
        let unchecked = reader.clone().unchecked();
        let mut more = transfer(&unchecked, places, Vec::new(), gpus, progress, filling).await?;
        times.transfer += began.elapsed();

        let began = Instant::now();
        let check = || {
            let (gpus, wanted, held) = (gpus.clone(), image.memory.clone(), held.clone());
            let naming = reader.naming();
            blocking(move || wrong(&wanted, &held, &gpus, &naming))
        };
        let again = check().await?;
        if !again.is_empty() {
            // The store, memory of this machine, the way to the GPU, or the GPU itself: checked by the way, that shows.
            tracing::warn!(
                chunks = again.len(),
                "device memory is not what was read, and is read again"
            );
            more += transfer(reader, again, Vec::new(), gpus, progress, filling).await?;
            if let Some(range) = check().await?.into_values().flatten().next() {
                return Err(RestoreError::Image(format!(
                    "device memory is not what was stored, twice: {range}; the GPU or its link is faulty (see nvidia-smi -q -d ECC)"
                )));
            }
        }
        times.verify = began.elapsed();
        Ok(Filled {
            held,
            fetched: fetched + more,
            times,
        })
    }
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

/// Digests everything on the GPUs: what is not as it should be, by the number of its chunk in the manifest's table.
fn wrong(
    image: &[Wanted],
    held: &[Held],
    gpus: &Gpus,
    naming: &Naming,
) -> Result<HashMap<u32, Vec<Place>>, RestoreError> {
    let all: Vec<Range> = image
        .iter()
        .zip(held)
        .flat_map(|(w, h)| ranges(w, &h.memory))
        .collect();
    let digests = gpus.digest(&all, naming)?;
    let mut wrong: HashMap<u32, Vec<Place>> = HashMap::new();
    let chunks = image.iter().flat_map(|w| &w.chunks);
    for ((chunk, range), digest) in chunks.zip(all).zip(digests) {
        if digest != chunk.digest.0 {
            let places = wrong.entry(chunk.index).or_default();
            places.push(Place::Device(range));
        }
    }
    Ok(wrong)
}

/// Makes the image's files, empty and of their length.
fn make_files(manifest: &Manifest, directory: &OwnedFd) -> std::io::Result<Vec<File>> {
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
            // Mappings are read as well.
            let flags =
                OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(file.mode & 0o7777);
            let fd = rustix::fs::openat(directory.as_fd(), path, flags, mode)?;
            rustix::fs::ftruncate(&fd, file.length)?;
            Ok(File::from(fd))
        })
        .collect()
}
