//! Host memory that the driver knows: pinned, registered, managed.
//!
//! All of it is ordinary anonymous memory, so CRIU dumps it like any other; the driver only remembers the ranges. With
//! unified addressing its device pointer is its address. Write-combined memory is the exception, as on the real
//! driver: while the process is checkpointed it is not there, and what is written to it after the driver has looked is lost.

use crate::api::{Out, api};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::error::{
    ERROR_HOST_MEMORY_ALREADY_REGISTERED, ERROR_HOST_MEMORY_NOT_REGISTERED, ERROR_INVALID_VALUE,
    ERROR_NOT_SUPPORTED, ERROR_OUT_OF_MEMORY, Res,
};
use crate::memory::space::{Host, HostKind, in_window};
use crate::stream;
use crate::sync::lock;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::collections::BTreeMap;
use std::sync::Mutex;

const PAGE: u64 = 4096;
/// `CU_MEMHOSTALLOC_WRITECOMBINED`.
const WRITE_COMBINED: u32 = 4;

/// Contents of write-combined memory while the process is checkpointed, by address.
static TAKEN: Mutex<BTreeMap<u64, Vec<u8>>> = Mutex::new(BTreeMap::new());

fn write_combined(driver: &Driver) -> Vec<(u64, usize)> {
    let tables = driver.space.read();
    let found = tables
        .hosts
        .iter()
        .filter(|(_, host)| host.kind == HostKind::Allocated && host.flags & WRITE_COMBINED != 0);
    found
        .map(|(at, host)| (*at, host.size.next_multiple_of(PAGE) as usize))
        .collect()
}

/// Copies write-combined memory; what is written to it from here on is lost.
pub fn copy_write_combined(driver: &Driver) {
    let mut taken = lock(&TAKEN);
    for (at, room) in write_combined(driver) {
        let mut contents = vec![0; room];
        // SAFETY: a mapping of `allocate`, of this size; threads of the program may write to it meanwhile, through
        // pointers of their own, and either value is right.
        unsafe { std::ptr::copy_nonoverlapping(at as *const u8, contents.as_mut_ptr(), room) };
        taken.insert(at, contents);
    }
}

/// Takes write-combined memory away.
pub fn take_write_combined() {
    for (at, contents) in lock(&TAKEN).iter() {
        // SAFETY: a mapping of `allocate`, of this size. Whoever touches it dies, as on the real driver.
        let _ =
            unsafe { rustix::mm::mprotect(*at as *mut _, contents.len(), MprotectFlags::empty()) };
    }
}

/// Brings it back as it was when it was copied.
pub fn give_write_combined_back() {
    for (at, contents) in std::mem::take(&mut *lock(&TAKEN)) {
        let flags = MprotectFlags::READ | MprotectFlags::WRITE;
        // SAFETY: a mapping of `allocate`, of this size, written while nobody can rely on its content.
        unsafe {
            let _ = rustix::mm::mprotect(at as *mut _, contents.len(), flags);
            std::ptr::copy_nonoverlapping(contents.as_ptr(), at as *mut u8, contents.len());
        }
    }
}

/// Allocates host memory of a kind.
pub fn allocate(
    driver: &Driver,
    owner: &Context,
    size: u64,
    kind: HostKind,
    flags: u32,
) -> Res<u64> {
    if size == 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let room = size
        .checked_next_multiple_of(PAGE)
        .ok_or(ERROR_INVALID_VALUE)?;
    // SAFETY: a new mapping wherever the kernel puts it.
    let at = unsafe {
        rustix::mm::mmap_anonymous(
            std::ptr::null_mut(),
            room as usize,
            ProtFlags::READ | ProtFlags::WRITE,
            MapFlags::PRIVATE,
        )
    }
    .map_err(|_| ERROR_OUT_OF_MEMORY)? as u64;
    remember(driver, owner, at, size, kind, flags);
    Ok(at)
}

fn remember(driver: &Driver, owner: &Context, at: u64, size: u64, kind: HostKind, flags: u32) {
    let buffer_id = driver.space.next_id();
    let host = Host {
        size,
        kind,
        flags,
        context: owner.handle,
        ordinal: owner.ordinal,
        buffer_id,
    };
    driver.space.write().hosts.insert(at, host);
}

/// Forgets a range of a kind, and unmaps what this crate mapped.
pub fn free(driver: &Driver, address: u64, kind: HostKind) -> Res {
    let mut tables = driver.space.write();
    if tables
        .hosts
        .get(&address)
        .is_none_or(|host| host.kind != kind)
    {
        return Err(ERROR_INVALID_VALUE);
    }
    if let Some(host) = tables.hosts.remove(&address)
        && kind != HostKind::Registered
    {
        unmap(address, host.size);
    }
    Ok(())
}

fn unmap(address: u64, size: u64) {
    // SAFETY: mapped by `allocate`, with the same rounding; the table names it no more and the device is drained.
    let _ = unsafe { rustix::mm::munmap(address as *mut _, size.next_multiple_of(PAGE) as usize) };
}

/// Frees what a context owns.
pub fn free_context(driver: &Driver, context: u64) {
    let mut tables = driver.space.write();
    let owned: Vec<_> = tables
        .hosts
        .iter()
        .filter(|(_, host)| host.context == context)
        .map(|(a, h)| (*a, *h))
        .collect();
    for (address, host) in owned {
        tables.hosts.remove(&address);
        if host.kind != HostKind::Registered {
            unmap(address, host.size);
        }
    }
}

fn pinned(driver: &'static Driver, out: Out<u64>, size: usize, flags: u32) -> Res {
    out.check()?;
    stream::refuse_in_capture(driver)?;
    let context = context::current(driver)?;
    if flags & !7 != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    out.set(allocate(
        driver,
        &context,
        size as u64,
        HostKind::Allocated,
        flags,
    )?)
}

fn free_pinned(driver: &'static Driver, address: u64) -> Res {
    if address == 0 {
        return Ok(());
    }
    stream::refuse_in_capture(driver)?;
    let context = context::current(driver)?;
    context.synchronize()?;
    free(driver, address, HostKind::Allocated)
}

fn register(driver: &'static Driver, address: u64, size: usize, flags: u32) -> Res {
    let context = context::current(driver)?;
    let size = size as u64;
    if address == 0
        || size == 0
        || flags & !15 != 0
        || in_window(address)
        || address.checked_add(size).is_none()
    {
        return Err(ERROR_INVALID_VALUE);
    }
    if flags & 4 != 0 {
        return Err(ERROR_NOT_SUPPORTED); // I/O memory
    }
    let tables = driver.space.read();
    if tables
        .hosts
        .range(..address + size)
        .next_back()
        .is_some_and(|(start, host)| start + host.size > address)
    {
        return Err(ERROR_HOST_MEMORY_ALREADY_REGISTERED);
    }
    drop(tables);
    remember(driver, &context, address, size, HostKind::Registered, flags);
    Ok(())
}

fn unregister(driver: &'static Driver, address: u64) -> Res {
    let context = context::current(driver)?;
    context.synchronize()?;
    free(driver, address, HostKind::Registered).map_err(|_| ERROR_HOST_MEMORY_NOT_REGISTERED)
}

api! { TABLE;
    3020 fn cuMemAllocHost_v2(address: Out<u64>, size: usize) |d| { pinned(d, address, size, 3) }
    2020 fn cuMemHostAlloc(address: Out<u64>, size: usize, flags: u32) |d| { pinned(d, address, size, flags) }
    2000 fn cuMemFreeHost(address: u64) |d| { free_pinned(d, address) }
    6050 fn cuMemHostRegister_v2(address: u64, size: usize, flags: u32) |d| { register(d, address, size, flags) }
    4000 fn cuMemHostUnregister(address: u64) |d| { unregister(d, address) }
    3020 fn cuMemHostGetDevicePointer_v2(device: Out<u64>, address: u64, flags: u32) |d| {
        context::current(d)?;
        if flags != 0 { return Err(ERROR_INVALID_VALUE); }
        d.space.read().host(address, 1).ok_or(ERROR_INVALID_VALUE)?;
        device.set(address)
    }
    2030 fn cuMemHostGetFlags(flags: Out<u32>, address: u64) |d| {
        context::current(d)?;
        let tables = d.space.read();
        let (_, host) = tables.host(address, 1).filter(|(_, h)| h.kind != HostKind::Managed).ok_or(ERROR_INVALID_VALUE)?;
        flags.set(host.flags)
    }
}
