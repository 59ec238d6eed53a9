//! Native allocations: `cuMemAlloc`, pitch, managed, and what frees them.
//!
//! Rules. Requests below 1 MiB share 2 MiB blocks, 512-byte aligned; larger ones have blocks of their own. An
//! allocation belongs to its context and goes with it. Freeing waits for the work submitted to the context before.

use crate::api::{Out, api};
use crate::context::{self, Context};
use crate::driver::Driver;
use crate::error::{ERROR_INVALID_VALUE, ERROR_NOT_FOUND, Res};
use crate::memory::host;
use crate::memory::phys::{GRANULE, Phys, Use, mib};
use crate::memory::space::{HostKind, Mapping, Native, Reserved, Tables, holding};
use crate::stream;

const SMALL: u64 = 1 << 20;
const ALIGN: u64 = 512;

/// Allocates `size` bytes for a context, in a pool unless `pool` is 0.
pub fn allocate(driver: &'static Driver, owner: &Context, size: u64, pool: u64) -> Res<u64> {
    if size == 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let buffer_id = driver.space.next_id();
    let native = |block| Native {
        size,
        context: owner.handle,
        block,
        pool,
        buffer_id,
        ipc: false,
    };
    if size < SMALL {
        let mut tables = driver.space.write();
        if let Some((block, address)) = find_gap(&tables, owner.handle, pool, size) {
            tables.natives.insert(address, native(block));
            return Ok(address);
        }
    }
    let room = size
        .checked_next_multiple_of(GRANULE)
        .ok_or(crate::error::ERROR_OUT_OF_MEMORY)?;
    let phys = Phys::create(driver, owner.ordinal, room, Use::Native)?;
    let mut tables = driver.space.write();
    let block = tables.reserve(room, GRANULE, 0, Reserved::Native)?;
    if let Err(error) = tables.map(
        block,
        Mapping {
            size: room,
            offset: 0,
            phys,
            access: Vec::new(),
        },
    ) {
        tables.unreserve(block);
        return Err(error);
    }
    tables.natives.insert(block, native(block));
    Ok(block)
}

/// A free place in a shared block of the same owner.
fn find_gap(tables: &Tables, context: u64, pool: u64, size: u64) -> Option<(u64, u64)> {
    let mut block = None;
    let mut end = 0;
    for (address, native) in &tables.natives {
        if native.context != context || native.pool != pool || native.size >= SMALL || native.ipc {
            continue;
        }
        // The allocations of a block are neighbours in the table.
        if block == Some(native.block) {
            if end + size <= *address {
                return block.map(|block| (block, end));
            }
        } else {
            if let Some(last) = block.filter(|last| end + size <= last + GRANULE) {
                return Some((last, end));
            }
            block = Some(native.block);
            if native.block + size <= *address {
                return block.map(|block| (block, block));
            }
        }
        end = (address + native.size).next_multiple_of(ALIGN);
    }
    block
        .filter(|last| end + size <= last + GRANULE)
        .map(|last| (last, end))
}

/// Takes an allocation away, and its block with the last one in it.
pub fn release(tables: &mut Tables, address: u64) -> Option<Native> {
    let native = tables.natives.remove(&address)?;
    let room = tables
        .mappings
        .get(&native.block)
        .map_or(GRANULE, |mapping| mapping.size);
    if tables
        .natives
        .range(native.block..native.block + room)
        .next()
        .is_none()
    {
        tables.unmap(native.block);
        tables.unreserve(native.block);
    }
    Some(native)
}

/// Frees what a context owns, when it is destroyed.
pub fn free_context(driver: &Driver, context: u64) {
    let mut tables = driver.space.write();
    let owned: Vec<_> = tables
        .natives
        .iter()
        .filter(|(_, n)| n.context == context)
        .map(|(a, _)| *a)
        .collect();
    for address in owned {
        release(&mut tables, address);
    }
    drop(tables);
    host::free_context(driver, context);
}

fn free(driver: &'static Driver, address: u64) -> Res {
    stream::refuse_in_capture(driver)?;
    let current = context::current(driver)?;
    if address == 0 {
        return Ok(());
    }
    let owner = {
        let tables = driver.space.read();
        let native = tables
            .natives
            .get(&address)
            .filter(|native| !native.ipc)
            .map(|native| native.context);
        native.or_else(|| {
            tables
                .hosts
                .get(&address)
                .filter(|h| h.kind == HostKind::Managed)
                .map(|h| h.context)
        })
    }
    .ok_or(ERROR_INVALID_VALUE)?;
    match driver.contexts.get(owner) {
        Some(owner) if owner.handle != current.handle => owner.synchronize()?,
        _ => current.synchronize()?,
    }
    let freed = release(&mut driver.space.write(), address);
    if freed.is_some() {
        Ok(())
    } else {
        host::free(driver, address, HostKind::Managed)
    }
}

fn address_range(driver: &Driver, address: u64) -> Res<(u64, u64)> {
    context::current(driver)?;
    let tables = driver.space.read();
    if let Some((base, native)) = holding(&tables.natives, address, |native| native.size) {
        return Ok((base, native.size));
    }
    if let Some((base, mapping)) = holding(&tables.mappings, address, |mapping| mapping.size)
        && !matches!(mapping.phys.used_for, Use::Native | Use::Ipc | Use::Driver)
        && !mapping.access.is_empty()
    {
        return Ok((base, mapping.size));
    }
    tables
        .host(address, 1)
        .map(|(base, host)| (base, host.size))
        .ok_or(ERROR_NOT_FOUND)
}

fn allocate_checked(driver: &'static Driver, out: Out<u64>, size: usize) -> Res {
    out.check()?;
    stream::refuse_in_capture(driver)?;
    let context = context::current(driver)?;
    out.set(allocate(driver, &context, size as u64, 0)?)
}

fn allocate_pitch(
    driver: &'static Driver,
    out: Out<u64>,
    pitch: Out<usize>,
    width: usize,
    height: usize,
    element: u32,
) -> Res {
    if width == 0 || height == 0 || !matches!(element, 4 | 8 | 16) {
        return Err(ERROR_INVALID_VALUE);
    }
    let row = width
        .checked_next_multiple_of(512)
        .ok_or(ERROR_INVALID_VALUE)?;
    allocate_checked(
        driver,
        out,
        row.checked_mul(height).ok_or(ERROR_INVALID_VALUE)?,
    )?;
    pitch.set(row)
}

api! { TABLE;
    3020 fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) @query |d| {
        let context = context::current(d)?;
        // As measured on an H200.
        if d.checkpoint.is_checkpointed() { return Err(ERROR_INVALID_VALUE); }
        let (left, all) = d.devices.get(context.ordinal).ok_or(ERROR_INVALID_VALUE)?.memory()?;
        free.set(left as usize)?;
        total.set(all as usize)
    }
    3020 fn cuMemAlloc_v2(address: Out<u64>, size: usize) |d| { allocate_checked(d, address, size) }
    3020 fn cuMemAllocPitch_v2(address: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) |d| {
        allocate_pitch(d, address, pitch, width, height, element)
    }
    3020 fn cuMemFree_v2(address: u64) |d| { free(d, address) }
    6000 fn cuMemAllocManaged(address: Out<u64>, size: usize, flags: u32) |d| {
        address.check()?;
        stream::refuse_in_capture(d)?;
        let context = context::current(d)?;
        if size == 0 || !matches!(flags, 1 | 2) || size as u64 > mib(1 << 20) { return Err(ERROR_INVALID_VALUE); }
        address.set(host::allocate(d, &context, size as u64, HostKind::Managed, flags)?)
    }
    3020 fn cuMemGetAddressRange_v2(base: Out<u64>, size: Out<usize>, address: u64) |d| {
        let (start, len) = address_range(d, address)?;
        base.set_optional(start);
        size.set_optional(len as usize);
        Ok(())
    }
}
