//! A driver whose GPUs are files in this machine's memory, for tests of what is above this layer: it needs no GPU and no process of a job's, and costs next
//! to nothing.
//!
//! # Rules
//!
//! * Device memory is a memfd. Who made it may write it at any time, as a job writes its own: with [`std::os::unix::fs::FileExt`].
//! * A stream does its copies one after the other in a thread of its own, each after [`InMemory::set_pace`]; an event is a mark between them. So
//!   who reads what was not waited for reads something else.
//! * Addresses mean nothing outside this module: each mapping has a range of its own, and what lies in none of them is an error.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::time::Duration;

use phos_protocol::types::{Allocation, GpuUuid};
use rustix::fs::MemfdFlags;

use crate::error::{CallKind, GpuError};
use crate::platform::{
    DeviceMemory, Digest, Digester, Gpu, GpuInfo, MemoryInfo, PinnedMemory, Platform, Range,
};
use crate::stream::{Event, Queue, Stream};

/// Between the ranges of two mappings.
const GAP: u64 = 1 << 20;

/// The driver: see the module's documentation.
#[derive(Debug)]
pub struct InMemory(Vec<Arc<Device>>);

#[derive(Debug)]
struct Device {
    info: GpuInfo,
    /// Bytes that the job uses.
    used: AtomicU64,
    /// Bytes that others use.
    others: AtomicU64,
    /// Bytes of memory that was made here.
    made: AtomicU64,
    /// How often memory was made for this process alone.
    scratched: AtomicU64,
    /// How long each copy takes beside copying, in µs.
    pace: AtomicU64,
    mapped: Mutex<Mapped>,
}

#[derive(Debug)]
struct Mapped {
    /// Where the next mapping begins.
    next: u64,
    /// Files and their lengths, by where they begin.
    files: BTreeMap<u64, (Arc<File>, u64)>,
}

fn failed(call: &'static str, kind: CallKind, cause: &dyn std::fmt::Display) -> GpuError {
    GpuError::Call {
        call,
        code: if kind == CallKind::OutOfMemory { 2 } else { 1 },
        text: cause.to_string(),
        kind,
    }
}

fn other(call: &'static str) -> impl Fn(io::Error) -> GpuError {
    move |e| failed(call, CallKind::Other, &e)
}

impl InMemory {
    /// A GPU for each of these sizes in bytes; its UUID is its ordinal's.
    #[must_use]
    pub fn new(totals: &[u64]) -> Arc<InMemory> {
        let device = |(ordinal, &total_bytes): (u8, &u64)| {
            Arc::new(Device {
                info: GpuInfo {
                    ordinal: ordinal.into(),
                    uuid: GpuUuid([ordinal; 16]),
                    name: "in memory".into(),
                    total_bytes,
                    compute: (9, 0),
                },
                used: AtomicU64::new(0),
                others: AtomicU64::new(0),
                made: AtomicU64::new(0),
                scratched: AtomicU64::new(0),
                pace: AtomicU64::new(0),
                mapped: Mutex::new(Mapped {
                    next: GAP,
                    files: BTreeMap::new(),
                }),
            })
        };
        Arc::new(InMemory((0..).zip(totals).map(device).collect()))
    }

    /// So many bytes of each GPU are used by others than the job.
    pub fn set_others(&self, bytes: u64) {
        let set = |device: &Arc<Device>| device.others.store(bytes, Ordering::Relaxed);
        self.0.iter().for_each(set);
    }

    /// So many bytes of each GPU are used by the job.
    pub fn set_used(&self, bytes: u64) {
        let set = |device: &Arc<Device>| device.used.store(bytes, Ordering::Relaxed);
        self.0.iter().for_each(set);
    }

    /// How often memory was made for this process alone, as a snapshot is.
    #[must_use]
    pub fn scratched(&self) -> u64 {
        let of = |device: &Arc<Device>| device.scratched.load(Ordering::Relaxed);
        self.0.iter().map(of).sum()
    }

    /// Each copy lasts so much longer than copying does.
    pub fn set_pace(&self, pace: Duration) {
        let pace = u64::try_from(pace.as_micros()).unwrap_or(u64::MAX);
        let set = |device: &Arc<Device>| device.pace.store(pace, Ordering::Relaxed);
        self.0.iter().for_each(set);
    }
}

/// New device memory, filled with zeros.
///
/// # Errors
/// The system has no memory or no file descriptor for it.
pub fn memory(bytes: u64) -> io::Result<File> {
    let file = File::from(rustix::fs::memfd_create(
        "device-memory",
        MemfdFlags::CLOEXEC,
    )?);
    file.set_len(bytes)?;
    Ok(file)
}

impl Platform for InMemory {
    fn version(&self) -> Result<u32, GpuError> {
        Ok(13_000)
    }

    fn gpus(&self) -> Result<Vec<GpuInfo>, GpuError> {
        Ok(self.0.iter().map(|device| device.info.clone()).collect())
    }

    fn open(&self, info: &GpuInfo) -> Result<Arc<dyn Gpu>, GpuError> {
        let device = self.0.iter().find(|device| device.info.uuid == info.uuid);
        let device = device.ok_or(GpuError::NoSuchGpu(info.uuid))?;
        Ok(Arc::new(InMemoryGpu(Arc::clone(device))))
    }
}

#[derive(Debug)]
struct InMemoryGpu(Arc<Device>);

impl Device {
    fn mapped(&self) -> MutexGuard<'_, Mapped> {
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn free(&self) -> u64 {
        let taken = [&self.used, &self.others, &self.made];
        let taken = taken.map(|bytes| bytes.load(Ordering::Relaxed));
        self.info.total_bytes.saturating_sub(taken.iter().sum())
    }

    fn map(self: &Arc<Self>, file: File, bytes: u64, own: u64) -> Arc<dyn DeviceMemory> {
        let file = Arc::new(file);
        let mut mapped = self.mapped();
        let base = mapped.next;
        mapped.next = (base + bytes).next_multiple_of(GAP) + GAP;
        mapped.files.insert(base, (Arc::clone(&file), bytes));
        Arc::new(Mapping {
            device: Arc::clone(self),
            file,
            base,
            bytes,
            own,
        })
    }

    fn make(self: &Arc<Self>, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        if bytes > self.free() {
            return Err(failed("make", CallKind::OutOfMemory, &"no memory"));
        }
        let file = memory(bytes).map_err(other("make"))?;
        self.made.fetch_add(bytes, Ordering::Relaxed);
        Ok(self.map(file, bytes, bytes))
    }

    /// The file in which so many bytes lie, and where.
    fn find(&self, address: u64, bytes: u64) -> Result<(Arc<File>, u64), GpuError> {
        let mapped = self.mapped();
        let before = mapped.files.range(..=address).next_back();
        match before {
            Some((base, (file, length))) if address - base + bytes <= *length => {
                Ok((Arc::clone(file), address - base))
            }
            _ => Err(failed("copy", CallKind::Other, &"nothing is mapped there")),
        }
    }
}

impl Gpu for InMemoryGpu {
    fn info(&self) -> &GpuInfo {
        &self.0.info
    }

    fn memory(&self) -> Result<MemoryInfo, GpuError> {
        Ok(MemoryInfo {
            free: self.0.free(),
            total: self.0.info.total_bytes,
        })
    }

    fn import(self: Arc<Self>, fd: OwnedFd, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        let file = File::from(fd);
        let length = file.metadata().map_err(other("import"))?.len();
        if length < bytes {
            return Err(failed("import", CallKind::Other, &"it is shorter"));
        }
        Ok(self.0.map(file, bytes, 0))
    }

    fn create(self: Arc<Self>, allocation: &Allocation) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        self.0.make(allocation.bytes)
    }

    fn scratch(self: Arc<Self>, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        let made = self.0.make(bytes)?;
        self.0.scratched.fetch_add(1, Ordering::Relaxed);
        Ok(made)
    }

    fn stream(self: Arc<Self>) -> Result<Stream, GpuError> {
        Ok(Stream::new(Box::new(Copies::new(&self.0)?)))
    }

    fn digester(self: Arc<Self>) -> Result<Box<dyn Digester>, GpuError> {
        Ok(Box::new(Hasher(Arc::clone(&self.0))))
    }

    fn pin(self: Arc<Self>, bytes: usize) -> Result<Box<dyn PinnedMemory>, GpuError> {
        Ok(Box::new(Plain(Box::into_raw(
            vec![0; bytes].into_boxed_slice(),
        ))))
    }
}

#[derive(Debug)]
struct Mapping {
    device: Arc<Device>,
    file: Arc<File>,
    base: u64,
    bytes: u64,
    /// Bytes that were made for it.
    own: u64,
}

impl DeviceMemory for Mapping {
    fn gpu(&self) -> GpuUuid {
        self.device.info.uuid
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }

    fn base(&self) -> u64 {
        self.base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.device.made.fetch_sub(self.own, Ordering::Relaxed);
        self.device.mapped().files.remove(&self.base);
    }
}

struct Hasher(Arc<Device>);

impl Digester for Hasher {
    fn digest(
        &mut self,
        ranges: &[&Range],
        key: Option<&[u8; 32]>,
    ) -> Result<Vec<Digest>, GpuError> {
        let mut bytes = Vec::new();
        let mut digest = |range: &&Range| {
            let (file, at) = self.0.find(range.address()?, range.len)?;
            bytes.resize(range.len as usize, 0);
            file.read_exact_at(&mut bytes, at)
                .map_err(other("digest"))?;
            let digest = match key {
                Some(key) => blake3::keyed_hash(key, &bytes),
                None => blake3::hash(&bytes),
            };
            Ok(digest.into())
        };
        ranges.iter().map(&mut digest).collect()
    }
}

/// Plain memory, which this owns.
struct Plain(*mut [u8]);

// SAFETY: the pointer is to memory that this value owns.
unsafe impl Send for Plain {}

// SAFETY: the bytes are as many as were asked for, stay where they are until this is dropped, and nobody else is told of them.
unsafe impl PinnedMemory for Plain {
    fn base(&self) -> *mut u8 {
        self.0.cast()
    }
}

impl Drop for Plain {
    fn drop(&mut self) {
        // SAFETY: it came from a box, and whoever uses it holds this value.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// What a stream's thread does, one after the other; it is given the first failure before it.
type Work = Box<dyn FnOnce(&mut Option<GpuError>) + Send>;

/// A stream: its thread ends with the last who may give it work.
struct Copies {
    device: Arc<Device>,
    work: mpsc::Sender<Work>,
}

/// An address of the host's, for the thread that copies.
struct Host(*mut u8);

// SAFETY: it is used once, under the contract of `Queue`, whose caller vouches for it until the copy has ended.
unsafe impl Send for Host {}

impl Host {
    /// The bytes there, to be written.
    ///
    /// # Safety
    /// As for [`Queue::to_host`].
    const unsafe fn bytes_mut<'a>(self, bytes: usize) -> &'a mut [u8] {
        // SAFETY: the caller vouches for it.
        unsafe { std::slice::from_raw_parts_mut(self.0, bytes) }
    }

    /// The bytes there, to be read.
    ///
    /// # Safety
    /// As for [`Queue::to_device`].
    const unsafe fn bytes<'a>(self, bytes: usize) -> &'a [u8] {
        // SAFETY: the caller vouches for it.
        unsafe { std::slice::from_raw_parts(self.0, bytes) }
    }
}

impl Copies {
    fn new(device: &Arc<Device>) -> Result<Copies, GpuError> {
        let (work, works) = mpsc::channel::<Work>();
        let run = move || {
            let mut failed = None;
            for work in works {
                work(&mut failed);
            }
        };
        (std::thread::Builder::new().name("in-memory-gpu".into()))
            .spawn(run)
            .map_err(other("stream"))?;
        Ok(Copies {
            device: Arc::clone(device),
            work,
        })
    }

    fn issue(
        &self,
        copy: impl FnOnce(&Device) -> Result<(), GpuError> + Send + 'static,
    ) -> Result<(), GpuError> {
        let device = Arc::clone(&self.device);
        let work = Box::new(move |failed: &mut Option<GpuError>| {
            match device.pace.load(Ordering::Relaxed) {
                0 => {}
                pace => std::thread::sleep(Duration::from_micros(pace)),
            }
            if let Err(e) = copy(&device) {
                failed.get_or_insert(e);
            }
        });
        self.work.send(work).map_err(|_| GpuError::Cancelled)
    }
}

impl Queue for Copies {
    unsafe fn to_host(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), GpuError> {
        let to = Host(to);
        self.issue(move |device| {
            let (file, at) = device.find(from, bytes as u64)?;
            // SAFETY: the caller vouches for it.
            let to = unsafe { to.bytes_mut(bytes) };
            file.read_exact_at(to, at).map_err(other("to host"))
        })
    }

    unsafe fn to_device(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), GpuError> {
        let from = Host(from.cast_mut());
        self.issue(move |device| {
            let (file, at) = device.find(to, bytes as u64)?;
            // SAFETY: the caller vouches for it.
            let from = unsafe { from.bytes(bytes) };
            file.write_all_at(from, at).map_err(other("to device"))
        })
    }

    unsafe fn on_device(&self, from: u64, to: u64, bytes: usize) -> Result<(), GpuError> {
        self.issue(move |device| {
            let (source, at) = device.find(from, bytes as u64)?;
            let (target, there) = device.find(to, bytes as u64)?;
            let mut all = vec![0; bytes];
            source.read_exact_at(&mut all, at).map_err(other("copy"))?;
            target.write_all_at(&all, there).map_err(other("copy"))
        })
    }

    fn event(&self) -> Result<Box<dyn Event>, GpuError> {
        Ok(Box::new(Mark {
            work: self.work.clone(),
            reached: None,
        }))
    }

    fn synchronize(&self) -> Result<(), GpuError> {
        let mut mark = self.event()?;
        mark.record()?;
        mark.wait()
    }
}

/// A mark between what a stream's thread does.
struct Mark {
    work: mpsc::Sender<Work>,
    reached: Option<mpsc::Receiver<Option<GpuError>>>,
}

impl Event for Mark {
    fn record(&mut self) -> Result<(), GpuError> {
        let (reach, reached) = mpsc::channel();
        self.reached = Some(reached);
        let mark = Box::new(move |failed: &mut Option<GpuError>| {
            // Nobody waits for it any more.
            let _ = reach.send(failed.clone());
        });
        self.work.send(mark).map_err(|_| GpuError::Cancelled)
    }

    fn wait(&self) -> Result<(), GpuError> {
        match &self.reached {
            Some(reached) => match reached.recv() {
                Ok(failed) => failed.map_or(Ok(()), Err),
                Err(_) => Err(GpuError::Cancelled),
            },
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::{HostPool, SEGMENT};

    fn open() -> (Arc<InMemory>, Arc<dyn Gpu>) {
        let driver = InMemory::new(&[8 << 20]);
        let info = driver.gpus().unwrap().remove(0);
        let gpu = driver.open(&info).unwrap();
        (driver, gpu)
    }

    fn whole(memory: &Arc<dyn DeviceMemory>) -> Range {
        Range {
            memory: Arc::clone(memory),
            offset: 0,
            len: memory.bytes(),
        }
    }

    #[test]
    fn what_is_copied_is_what_was_there_when_it_was_copied() {
        let (driver, gpu) = open();
        let file = memory(5000).unwrap();
        file.write_all_at(&[7; 5000], 0).unwrap();
        let fd = file.try_clone().unwrap().into();
        let imported = Arc::clone(&gpu).import(fd, 5000).unwrap();
        let copy = Arc::clone(&gpu).scratch(5000).unwrap();
        let stream = Arc::clone(&gpu).stream().unwrap();
        let pair = (whole(&imported), whole(&copy));
        stream.copy(vec![pair]).unwrap().wait().unwrap();
        file.write_all_at(&[8; 5000], 0).unwrap();

        let pool = HostPool::new(&gpu, SEGMENT);
        let read = |range| {
            let run = pool.acquire(1, &|| false).unwrap();
            let run = stream.read(vec![range], run).unwrap().wait().unwrap();
            run.unwrap().into_chunks(&[5000]).remove(0)
        };
        assert!(read(whole(&copy)).iter().all(|&byte| byte == 7));
        assert!(read(whole(&imported)).iter().all(|&byte| byte == 8));
        let mut digester = Arc::clone(&gpu).digester().unwrap();
        let digests = digester.digest(&[&whole(&copy)], None).unwrap();
        assert_eq!(digests, [*blake3::hash(&[7; 5000]).as_bytes()]);

        // What is issued is not done yet.
        driver.set_pace(Duration::from_millis(200));
        let begun = std::time::Instant::now();
        let pending = stream.copy(vec![(whole(&imported), whole(&copy))]).unwrap();
        pending.wait().unwrap();
        assert!(begun.elapsed() >= Duration::from_millis(200));
    }

    #[test]
    fn memory_runs_out_and_is_given_back() {
        let (driver, gpu) = open();
        driver.set_used(2 << 20);
        driver.set_others(1 << 20);
        let taken = Arc::clone(&gpu).scratch(4 << 20).unwrap();
        assert_eq!(gpu.memory().unwrap().free, 1 << 20);
        let refused = Arc::clone(&gpu).scratch(2 << 20).unwrap_err();
        assert!(refused.is_out_of_memory());
        drop(taken);
        assert_eq!(gpu.memory().unwrap().free, 5 << 20);
    }
}
