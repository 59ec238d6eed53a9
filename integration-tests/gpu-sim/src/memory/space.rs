//! The address space that device pointers live in.
//!
//! A device pointer is an address in the range from [`BASE`] upward. That range is reserved with no access, so a
//! program that follows a device pointer on the CPU faults, as it does with a real driver. The bytes are mapped at the
//! same distance in a second range, the alias, which only this crate uses: copies and kernels translate each pointer
//! through the table of mappings and its access rights, so a bad pointer is an error and not a fault.
//!
//! Both ranges are used from the bottom up, first fit: the same calls give the same addresses in every run.
//!
//! Rules. Reading the table (copies, kernels) is shared, changing it (map, unmap) exclusive and short: a copy holds
//! the table for one piece, a kernel for its run, so no byte vanishes under one. Nothing waits for the device while it
//! holds the table.

use crate::error::{ERROR_ILLEGAL_ADDRESS, ERROR_INVALID_VALUE, ERROR_OUT_OF_MEMORY, Res};
use crate::memory::phys::{GRANULE, Phys, Use};
use crate::sync::{lock, read, write};
use rustix::mm::{MapFlags, ProtFlags};
use std::collections::{BTreeMap, HashSet};
use std::ffi::c_void;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

/// The lowest device pointer.
pub const BASE: u64 = 0x0200_0000_0000;
/// Room for device pointers, and the distance to the alias.
const ROOM: u64 = 0x0200_0000_0000;

/// Whether an address lies where only device memory (or its alias) can be.
pub fn in_window(address: u64) -> bool {
    (BASE..BASE + 2 * ROOM).contains(&address)
}

/// Who reserved a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// `cuMemAddressReserve`.
    Vmm,
    /// This crate, for a native allocation.
    Native,
}

/// Reserved addresses.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    pub size: u64,
    pub reserved: Reserved,
}

/// Mapped physical memory.
pub struct Mapping {
    pub size: u64,
    pub offset: u64,
    pub phys: Arc<Phys>,
    /// Devices and their rights (1 read, 3 read and write), for VMM mappings.
    pub access: Vec<(usize, u32)>,
}

/// An allocation of `cuMemAlloc` and its like.
#[derive(Clone, Debug)]
pub struct Native {
    pub size: u64,
    pub context: u64,
    /// Address of the block it lies in.
    pub block: u64,
    /// The pool, for stream-ordered allocations.
    pub pool: u64,
    pub buffer_id: u64,
    /// Opened from another process by `cuIpcOpenMemHandle`.
    pub ipc: bool,
}

/// Kinds of host memory that the driver knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostKind {
    /// `cuMemHostAlloc`.
    Allocated,
    /// `cuMemHostRegister`.
    Registered,
    /// `cuMemAllocManaged`.
    Managed,
}

/// Host memory that the driver knows.
#[derive(Clone, Copy, Debug)]
pub struct Host {
    pub size: u64,
    pub kind: HostKind,
    pub flags: u32,
    pub context: u64,
    pub ordinal: usize,
    pub buffer_id: u64,
}

/// The tables.
#[derive(Default)]
pub struct Tables {
    pub ranges: BTreeMap<u64, Range>,
    pub mappings: BTreeMap<u64, Mapping>,
    pub natives: BTreeMap<u64, Native>,
    pub hosts: BTreeMap<u64, Host>,
    /// (device, peer) pairs: the device may reach the peer's native memory.
    peers: HashSet<(usize, usize)>,
}

/// Who asks for an address.
#[derive(Clone, Copy, Debug)]
pub enum Who {
    /// A kernel on a device.
    Kernel(usize),
    /// A copy engine: any device's right will do.
    Copy,
}

/// Address space and physical allocations of a process.
pub struct Space {
    tables: RwLock<Tables>,
    physical: Mutex<BTreeMap<u64, Weak<Phys>>>,
    ids: AtomicU64,
}

/// The entry of `map` that holds `address`, given the size of an entry.
pub fn holding<T>(
    map: &BTreeMap<u64, T>,
    address: u64,
    size: impl Fn(&T) -> u64,
) -> Option<(u64, &T)> {
    map.range(..=address)
        .next_back()
        .filter(|(start, entry)| address - **start < size(entry))
        .map(|(s, e)| (*s, e))
}

impl Space {
    pub fn new(_devices: usize) -> Self {
        Self {
            tables: RwLock::default(),
            physical: Mutex::default(),
            ids: AtomicU64::new(1),
        }
    }

    pub fn read(&self) -> RwLockReadGuard<'_, Tables> {
        read(&self.tables)
    }

    pub fn write(&self) -> RwLockWriteGuard<'_, Tables> {
        write(&self.tables)
    }

    pub fn next_id(&self) -> u64 {
        self.ids.fetch_add(1, Ordering::Relaxed)
    }

    pub fn remember(&self, phys: &Arc<Phys>) {
        lock(&self.physical).insert(phys.id, Arc::downgrade(phys));
    }

    pub fn forget(&self, id: u64) {
        lock(&self.physical).remove(&id);
    }

    /// All live physical allocations, oldest first.
    pub fn physical(&self) -> Vec<Arc<Phys>> {
        lock(&self.physical)
            .values()
            .filter_map(Weak::upgrade)
            .collect()
    }

    pub fn enable_peer(&self, device: usize, peer: usize) -> bool {
        self.write().peers.insert((device, peer))
    }

    pub fn disable_peer(&self, device: usize, peer: usize) -> bool {
        self.write().peers.remove(&(device, peer))
    }
}

fn reserve_pages(address: u64, size: u64) -> bool {
    // SAFETY: without replacement: fails where something is already mapped.
    let got = unsafe {
        rustix::mm::mmap_anonymous(
            address as *mut c_void,
            size as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED_NOREPLACE,
        )
    };
    got.is_ok_and(|at| at as u64 == address)
}

fn release_pages(address: u64, size: u64) {
    // SAFETY: the pages were reserved by `reserve_pages` and nothing in the tables names them any more.
    let _ = unsafe { rustix::mm::munmap(address as *mut c_void, size as usize) };
}

/// Puts an inaccessible reservation back over an alias.
fn blank(address: u64, size: u64) {
    // SAFETY: the alias range belongs to this crate; who reads it holds the table, which the caller holds exclusively.
    let _ = unsafe {
        rustix::mm::mmap_anonymous(
            alias(address) as *mut c_void,
            size as usize,
            ProtFlags::empty(),
            MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED,
        )
    };
}

fn alias(address: u64) -> u64 {
    address + ROOM
}

impl Tables {
    /// Reserves addresses: at `hint` if that is free, else the lowest that fit.
    pub fn reserve(&mut self, size: u64, align: u64, hint: u64, reserved: Reserved) -> Res<u64> {
        let align = align.max(GRANULE);
        if hint != 0
            && hint.is_multiple_of(align)
            && hint >= BASE
            && hint.saturating_add(size) <= BASE + ROOM
        {
            let before = self.ranges.range(..hint + size).next_back();
            if before.is_none_or(|(start, range)| start + range.size <= hint)
                && self.take(hint, size, reserved)
            {
                return Ok(hint);
            }
        }
        let mut at = BASE;
        loop {
            let gaps: Vec<_> = self
                .ranges
                .range(at..)
                .map(|(start, range)| (*start, range.size))
                .collect();
            for (start, taken) in gaps {
                if at + size <= start {
                    break;
                }
                at = (start + taken).next_multiple_of(align);
            }
            if at.saturating_add(size) > BASE + ROOM {
                return Err(ERROR_OUT_OF_MEMORY);
            }
            if self.take(at, size, reserved) {
                return Ok(at);
            }
            // Something foreign lies there: step over it.
            at += align;
        }
    }

    fn take(&mut self, address: u64, size: u64, reserved: Reserved) -> bool {
        if !reserve_pages(address, size) {
            return false;
        }
        if !reserve_pages(alias(address), size) {
            release_pages(address, size);
            return false;
        }
        self.ranges.insert(address, Range { size, reserved });
        true
    }

    /// Gives a whole reservation back.
    pub fn unreserve(&mut self, address: u64) {
        if let Some(range) = self.ranges.remove(&address) {
            release_pages(address, range.size);
            release_pages(alias(address), range.size);
        }
    }

    /// Maps physical memory at reserved, unmapped addresses.
    pub fn map(&mut self, address: u64, mapping: Mapping) -> Res {
        mapping
            .phys
            .map_at(alias(address), mapping.size, mapping.offset)?;
        self.mappings.insert(address, mapping);
        Ok(())
    }

    /// Whether any mapping touches the range.
    pub fn mapped(&self, address: u64, size: u64) -> bool {
        self.mappings
            .range(..address + size)
            .next_back()
            .is_some_and(|(start, m)| start + m.size > address)
    }

    /// Takes one mapping away; the addresses stay reserved.
    pub fn unmap(&mut self, address: u64) -> Option<Mapping> {
        let mapping = self.mappings.remove(&address)?;
        blank(address, mapping.size);
        Some(mapping)
    }

    /// Blanks every alias, keeping the tables: nothing of the device is mapped after it.
    pub fn blank_all(&self) {
        for (address, mapping) in &self.mappings {
            blank(*address, mapping.size);
        }
    }

    /// Maps everything in the tables again.
    pub fn map_all(&self) -> Res {
        for (address, mapping) in &self.mappings {
            mapping
                .phys
                .map_at(alias(*address), mapping.size, mapping.offset)?;
        }
        Ok(())
    }

    fn allowed(&self, mapping: &Mapping, who: Who, write: bool) -> bool {
        let need = if write { 3 } else { 1 };
        match (mapping.phys.used_for, who) {
            (Use::Native | Use::Ipc | Use::Driver, Who::Copy) => true,
            (Use::Native | Use::Ipc | Use::Driver, Who::Kernel(device)) => {
                device == mapping.phys.ordinal
                    || self.peers.contains(&(device, mapping.phys.ordinal))
            }
            // Nothing of the instructions that reach it is simulated, and copies cannot read it.
            (Use::Multicast, Who::Kernel(_)) => false,
            (Use::Multicast, Who::Copy) if !write => false,
            (_, Who::Copy) => mapping.access.iter().any(|(_, flags)| flags & need == need),
            (_, Who::Kernel(device)) => mapping
                .access
                .iter()
                .any(|(d, flags)| *d == device && flags & need == need),
        }
    }

    /// Host memory that the driver knows, holding the whole range.
    pub fn host(&self, address: u64, len: u64) -> Option<(u64, &Host)> {
        holding(&self.hosts, address, |host| host.size)
            .filter(|(start, host)| address - start + len <= host.size)
    }

    /// Where the bytes of a device pointer are, if `who` may use all of them.
    pub fn resolve(&self, address: u64, len: u64, write: bool, who: Who) -> Res<*mut u8> {
        if !in_window(address) {
            // Unified addressing: memory of the host that the driver knows.
            return self
                .host(address, len.max(1))
                .map(|_| address as *mut u8)
                .ok_or(ERROR_ILLEGAL_ADDRESS);
        }
        let end = address.checked_add(len).ok_or(ERROR_ILLEGAL_ADDRESS)?;
        let mut at = address;
        while at < end.max(address + 1) {
            let (start, mapping) =
                holding(&self.mappings, at, |mapping| mapping.size).ok_or(ERROR_ILLEGAL_ADDRESS)?;
            if !self.allowed(mapping, who, write) {
                return Err(ERROR_ILLEGAL_ADDRESS);
            }
            at = start + mapping.size;
        }
        Ok(alias(address) as *mut u8)
    }

    /// The multicast object that is mapped at an address, and the place in it.
    pub fn multicast(&self, address: u64) -> Option<(Arc<Phys>, u64)> {
        let (start, mapping) = holding(&self.mappings, address, |mapping| mapping.size)?;
        (mapping.phys.used_for == Use::Multicast).then(|| {
            (
                Arc::clone(&mapping.phys),
                mapping.offset + (address - start),
            )
        })
    }

    /// An argument must be device memory that some device has the right to.
    pub fn require(&self, address: u64, write: bool) -> Res {
        self.resolve(address, 1, write, Who::Copy)
            .map(drop)
            .map_err(|_| ERROR_INVALID_VALUE)
    }
}
