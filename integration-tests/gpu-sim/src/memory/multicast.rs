//! Multicast objects: what a copy writes to a mapping of one is written to the memory that is bound to it, of every process that has it.
//!
//! An object is a file in memory that its processes share by the descriptors they export:
//!
//! ```text
//! 0       magic, devices, size
//! 24      added            devices that take part so far
//! 4096    binding[64]      state (0 free, 1 being written, 2 bound), device, process, descriptor, offset, offset in the memory, length
//! 64 KiB  as many bytes as the object has, which nobody reads
//! ```
//!
//! Rules, as on the real driver. All devices are added before memory is bound: a bind waits for them. A mapping can be written by copies (of
//! the instructions that reach it nothing is simulated), and not read. What is bound stays alive without its handle. While a process
//! has an object it cannot be checkpointed; the real driver hangs.
//!
//! What is not as there: devices are counted, not told apart, so that ranks on one simulated GPU can have an object.

use crate::api::{In, Out, api};
use crate::device;
use crate::driver::Driver;
use crate::error::{
    ERROR_INVALID_VALUE, ERROR_NOT_READY, ERROR_OPERATING_SYSTEM, ERROR_OUT_OF_MEMORY, Res,
};
use crate::memory::phys::{GRANULE, Phys, Use, raise};
use crate::memory::space::holding;
use crate::memory::vmm;
use crate::sync::lock;
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{MemfdFlags, Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use std::ffi::c_void;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MAGIC: u64 = u64::from_le_bytes(*b"phosMC01");
/// Where the bytes of the object begin in its file.
pub const WINDOW: u64 = 64 << 10;
const BINDINGS: usize = 64;
const POSIX_FD: u64 = 1;
/// How long a bind waits for devices to be added, and how often it looks.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(1);

const FREE: u32 = 0;
const WRITING: u32 = 1;
const BOUND: u32 = 2;

/// `CUmulticastObjectProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    devices: u32,
    size: usize,
    handle_types: u64,
    flags: u64,
}

const _: () = assert!(size_of::<Properties>() == 32);

#[repr(C)]
struct Binding {
    state: AtomicU32,
    device: AtomicI32,
    process: AtomicU32,
    descriptor: AtomicI32,
    offset: AtomicU64,
    memory_offset: AtomicU64,
    bytes: AtomicU64,
}

#[repr(C)]
struct Head {
    magic: u64,
    devices: u64,
    size: u64,
    added: AtomicU64,
    rest: [u8; 4096 - 32],
    bindings: [Binding; BINDINGS],
}

const _: () = assert!(size_of::<Head>() as u64 <= WINDOW);

/// The beginning of an object's file.
struct Mapped(*mut c_void);

impl Mapped {
    fn of(file: BorrowedFd<'_>) -> Res<Self> {
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping wherever the kernel puts it.
        let at = unsafe {
            rustix::mm::mmap(
                std::ptr::null_mut(),
                WINDOW as usize,
                access,
                MapFlags::SHARED,
                file,
                0,
            )
        };
        at.map(Self).map_err(|_| ERROR_OUT_OF_MEMORY)
    }

    fn head(&self) -> &Head {
        // SAFETY: the mapping is that long and lives as long as this; what changes is atomic, and any bytes are a value.
        unsafe { &*self.0.cast::<Head>() }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own.
        let _ = unsafe { rustix::mm::munmap(self.0, WINDOW as usize) };
    }
}

/// What this process has bound: the object, the number of the binding, the memory.
static HELD: Mutex<Vec<(u64, usize, Arc<Phys>)>> = Mutex::new(Vec::new());

fn head(object: &Phys) -> Res<Mapped> {
    if object.used_for != Use::Multicast {
        return Err(ERROR_INVALID_VALUE);
    }
    object.with_file(Mapped::of)
}

/// An object's size in bytes, if that is what a descriptor is.
pub fn size(file: BorrowedFd<'_>) -> Option<u64> {
    let stat = rustix::fs::fstat(file).ok()?;
    if u64::try_from(stat.st_size).ok()? < WINDOW {
        return None;
    }
    let mapped = Mapped::of(file).ok()?;
    let head = mapped.head();
    (head.magic == MAGIC && head.size + WINDOW == stat.st_size as u64).then_some(head.size)
}

fn check(props: In<Properties>) -> Res<Properties> {
    let props = props.get()?;
    let fits = props.size != 0 && (props.size as u64).is_multiple_of(GRANULE);
    if props.devices == 0 || !fits || props.flags != 0 || props.handle_types & !POSIX_FD != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(props)
}

fn create(driver: &'static Driver, out: Out<u64>, props: In<Properties>) -> Res {
    out.check()?;
    let props = check(props)?;
    let size = props.size as u64;
    let file = rustix::fs::memfd_create("phos-multicast", MemfdFlags::CLOEXEC)
        .map_err(|_| ERROR_OUT_OF_MEMORY)?;
    rustix::fs::ftruncate(&file, WINDOW + size).map_err(|_| ERROR_OPERATING_SYSTEM)?;
    let start = [MAGIC, props.devices.into(), size];
    let bytes: Vec<u8> = start.iter().flat_map(|word| word.to_le_bytes()).collect();
    let file = File::from(file);
    file.write_all_at(&bytes, 0)
        .map_err(|_| ERROR_OPERATING_SYSTEM)?;
    let object = Phys::adopt(driver, 0, size, Use::Multicast, raise(OwnedFd::from(file)));
    out.set(vmm::new_handle(driver, object))
}

fn object(driver: &Driver, handle: u64) -> Res<Arc<Phys>> {
    Ok(Arc::clone(&vmm::handle(driver, handle)?.phys))
}

fn add(driver: &Driver, handle: u64, device: i32) -> Res {
    device::get(driver, device)?;
    let mapped = head(&*object(driver, handle)?)?;
    let head = mapped.head();
    let added = head.added.fetch_add(1, Ordering::SeqCst);
    if added >= head.devices {
        head.added.fetch_sub(1, Ordering::SeqCst);
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(())
}

/// A part of an object, and what is bound to it.
struct Part {
    /// The device that was named; `None`: the memory's own.
    device: Option<i32>,
    offset: u64,
    memory: Arc<Phys>,
    memory_offset: u64,
    bytes: u64,
}

fn bind(driver: &Driver, handle: u64, part: Part) -> Res {
    let object = object(driver, handle)?;
    let mapped = head(&object)?;
    let head = mapped.head();
    let aligned = [part.offset, part.memory_offset, part.bytes];
    if aligned.iter().any(|number| !number.is_multiple_of(GRANULE))
        || part.bytes == 0
        || part.offset + part.bytes > head.size
        || part.memory_offset + part.bytes > part.memory.size
        || part.memory.used_for == Use::Multicast
    {
        return Err(ERROR_INVALID_VALUE);
    }
    let begun = Instant::now();
    while head.added.load(Ordering::SeqCst) < head.devices {
        if begun.elapsed() > PATIENCE {
            return Err(ERROR_NOT_READY);
        }
        std::thread::sleep(LOOK);
    }
    let device = match part.device {
        Some(named) => device::get(driver, named)?.ordinal as i32,
        None => part.memory.ordinal as i32,
    };
    let descriptor = part.memory.with_file(|file| Ok(file.as_raw_fd()))?;
    let take = |binding: &Binding| {
        let taken =
            (binding.state).compare_exchange(FREE, WRITING, Ordering::SeqCst, Ordering::SeqCst);
        taken.is_ok()
    };
    let number = head.bindings.iter().position(take);
    let number = number.ok_or(ERROR_OUT_OF_MEMORY)?;
    let binding = &head.bindings[number];
    let order = Ordering::SeqCst;
    binding.device.store(device, order);
    binding.process.store(std::process::id(), order);
    binding.descriptor.store(descriptor, order);
    binding.offset.store(part.offset, order);
    binding.memory_offset.store(part.memory_offset, order);
    binding.bytes.store(part.bytes, order);
    binding.state.store(BOUND, order);
    lock(&HELD).push((object.id, number, part.memory));
    Ok(())
}

fn bind_memory(
    driver: &Driver,
    handle: u64,
    device: Option<i32>,
    offset: usize,
    (memory, memory_offset): (u64, usize),
    bytes: usize,
    flags: u64,
) -> Res {
    if flags != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let part = Part {
        device,
        offset: offset as u64,
        memory: Arc::clone(&vmm::handle(driver, memory)?.phys),
        memory_offset: memory_offset as u64,
        bytes: bytes as u64,
    };
    bind(driver, handle, part)
}

fn bind_address(
    driver: &Driver,
    handle: u64,
    device: Option<i32>,
    offset: usize,
    address: u64,
    bytes: usize,
    flags: u64,
) -> Res {
    if flags != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let (memory, memory_offset) = {
        let tables = driver.space.read();
        let (start, mapping) = holding(&tables.mappings, address, |mapping| mapping.size)
            .ok_or(ERROR_INVALID_VALUE)?;
        (
            Arc::clone(&mapping.phys),
            mapping.offset + (address - start),
        )
    };
    let part = Part {
        device,
        offset: offset as u64,
        memory,
        memory_offset,
        bytes: bytes as u64,
    };
    bind(driver, handle, part)
}

fn unbind(driver: &Driver, handle: u64, device: i32, offset: u64, bytes: u64) -> Res {
    let ordinal = device::get(driver, device)?.ordinal as i32;
    let object = object(driver, handle)?;
    let mapped = head(&object)?;
    let head = mapped.head();
    let order = Ordering::SeqCst;
    let mut found = false;
    lock(&HELD).retain(|(id, number, _)| {
        let binding = &head.bindings[*number];
        let meant = *id == object.id
            && binding.device.load(order) == ordinal
            && binding.offset.load(order) == offset
            && binding.bytes.load(order) == bytes;
        if meant {
            binding.state.store(FREE, order);
            found = true;
        }
        !meant
    });
    if found {
        Ok(())
    } else {
        Err(ERROR_INVALID_VALUE)
    }
}

/// Writes bytes to a place of an object: to all memory that is bound there.
pub fn write(object: &Phys, offset: u64, bytes: &[u8]) -> Res {
    let mapped = head(object)?;
    let order = Ordering::SeqCst;
    for binding in &mapped.head().bindings {
        if binding.state.load(order) != BOUND {
            continue;
        }
        let (start, length) = (binding.offset.load(order), binding.bytes.load(order));
        let from = offset.max(start);
        let to = (offset + bytes.len() as u64).min(start + length);
        if from >= to {
            continue;
        }
        let part = &bytes[(from - offset) as usize..(to - offset) as usize];
        let (process, descriptor) = (binding.process.load(order), binding.descriptor.load(order));
        let path = format!("/proc/{process}/fd/{descriptor}");
        let memory = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
            .map_err(|_| ERROR_OPERATING_SYSTEM)?;
        File::from(memory)
            .write_all_at(part, binding.memory_offset.load(order) + (from - start))
            .map_err(|_| ERROR_OPERATING_SYSTEM)?;
    }
    Ok(())
}

api! { TABLE;
    12010 fn cuMulticastCreate(handle: Out<u64>, props: In<Properties>) |d| { create(d, handle, props) }
    12010 fn cuMulticastAddDevice(handle: u64, device: i32) |d| { add(d, handle, device) }
    12010 fn cuMulticastBindMem(
        handle: u64,
        offset: usize,
        memory: u64,
        memory_offset: usize,
        bytes: usize,
        flags: u64,
    ) |d| { bind_memory(d, handle, None, offset, (memory, memory_offset), bytes, flags) }
    13010 fn cuMulticastBindMem_v2(
        handle: u64,
        device: i32,
        offset: usize,
        memory: u64,
        memory_offset: usize,
        bytes: usize,
        flags: u64,
    ) |d| { bind_memory(d, handle, Some(device), offset, (memory, memory_offset), bytes, flags) }
    12010 fn cuMulticastBindAddr(handle: u64, offset: usize, address: u64, bytes: usize, flags: u64) |d| {
        bind_address(d, handle, None, offset, address, bytes, flags)
    }
    13010 fn cuMulticastBindAddr_v2(
        handle: u64,
        device: i32,
        offset: usize,
        address: u64,
        bytes: usize,
        flags: u64,
    ) |d| { bind_address(d, handle, Some(device), offset, address, bytes, flags) }
    12010 fn cuMulticastUnbind(handle: u64, device: i32, offset: usize, bytes: usize) |d| {
        unbind(d, handle, device, offset as u64, bytes as u64)
    }
    12010 fn cuMulticastGetGranularity(granularity: Out<usize>, props: In<Properties>, option: i32) |_d| {
        granularity.check()?;
        check(props)?;
        if !matches!(option, 0 | 1) { return Err(ERROR_INVALID_VALUE); }
        granularity.set(GRANULE as usize)
    }
}
