//! Host memory that the driver knows: pinned, registered, managed.
//!
//! All of it is ordinary anonymous memory, so CRIU dumps it like any other; the driver only remembers the ranges. With
//! unified addressing its device pointer is its address.

use crate::api::{Out, api};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::error::{
    ERROR_HOST_MEMORY_ALREADY_REGISTERED, ERROR_HOST_MEMORY_NOT_REGISTERED, ERROR_INVALID_VALUE,
    ERROR_NOT_SUPPORTED, ERROR_OUT_OF_MEMORY, Res,
};
use crate::memory::space::{Host, HostKind, in_window};
use crate::stream;
use rustix::mm::{MapFlags, ProtFlags};

const PAGE: u64 = 4096;

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
