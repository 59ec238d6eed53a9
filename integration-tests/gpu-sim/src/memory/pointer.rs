//! What the driver says about a pointer.

use crate::api::{In, Out, api};
use crate::context;
use crate::driver::Driver;
use crate::error::{ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED, Res};
use crate::memory::phys::Use;
use crate::memory::space::{HostKind, Tables, holding};

/// What is known about the memory behind a pointer.
struct Facts {
    context: u64,
    host: bool,
    managed: bool,
    ordinal: i32,
    base: u64,
    size: u64,
    mapping_base: u64,
    mapping_size: u64,
    buffer_id: u64,
    handle_types: u32,
    rdma: bool,
    ipc: bool,
    pool: u64,
    access: u32,
}

fn facts(tables: &Tables, address: u64) -> Option<Facts> {
    if let Some((base, host)) = tables.host(address, 1) {
        return Some(Facts {
            context: host.context,
            host: host.kind != HostKind::Managed,
            managed: host.kind == HostKind::Managed,
            ordinal: host.ordinal as i32,
            base,
            size: host.size,
            mapping_base: base,
            mapping_size: host.size,
            buffer_id: host.buffer_id,
            handle_types: 0,
            rdma: false,
            ipc: false,
            pool: 0,
            access: 3,
        });
    }
    let (start, mapping) = holding(&tables.mappings, address, |mapping| mapping.size)?;
    let ordinal = mapping.phys.ordinal as i32;
    if let Some((base, native)) = holding(&tables.natives, address, |native| native.size) {
        return Some(Facts {
            context: if native.pool == 0 { native.context } else { 0 },
            host: false,
            managed: false,
            ordinal,
            base,
            size: native.size,
            mapping_base: start,
            mapping_size: mapping.size,
            buffer_id: native.buffer_id,
            handle_types: 0,
            rdma: native.pool == 0,
            ipc: native.pool == 0,
            pool: native.pool,
            access: 3,
        });
    }
    if matches!(mapping.phys.used_for, Use::Native | Use::Ipc) {
        return None; // a block's unused rest
    }
    let (handle_types, rdma) = match mapping.phys.used_for {
        Use::Vmm { handle_types, rdma } => (handle_types, rdma),
        _ => (0, false),
    };
    // The range of VMM memory is the whole reservation; the mapping has attributes of its own.
    let (base, range) = holding(&tables.ranges, address, |range| range.size)?;
    Some(Facts {
        context: 0,
        host: false,
        managed: false,
        ordinal,
        base,
        size: range.size,
        mapping_base: start,
        mapping_size: mapping.size,
        buffer_id: mapping.phys.id,
        handle_types,
        rdma,
        ipc: false,
        pool: 0,
        access: mapping
            .access
            .iter()
            .find(|(device, _)| *device == mapping.phys.ordinal)
            .map_or(0, |(_, f)| *f),
    })
}

/// Writes one attribute; `data` is as wide as the attribute.
fn put(facts: Option<&Facts>, which: i32, data: u64, address: u64) -> Res {
    let wide = Out::<u64>::at(data);
    let word = Out::<u32>::at(data);
    let facts = facts.ok_or(ERROR_INVALID_VALUE)?;
    match which {
        1 => wide.set(facts.context),
        2 => word.set(if facts.host { 1 } else { 2 }),
        3 if facts.access != 0 => wide.set(address),
        4 if facts.host || facts.managed => wide.set(address),
        3 | 4 => wide.set(0).and(Err(ERROR_INVALID_VALUE)),
        6 => word.set(0),
        7 => wide.set(facts.buffer_id),
        8 => word.set(u32::from(facts.managed)),
        9 => word.set(facts.ordinal as u32),
        10 => word.set(u32::from(facts.ipc)),
        11 => wide.set(facts.base),
        12 => wide.set(facts.size),
        13 => word.set(1),
        14 => wide.set(u64::from(facts.handle_types)),
        15 => word.set(u32::from(facts.rdma)),
        16 => word.set(facts.access),
        17 => wide.set(facts.pool),
        18 => wide.set(facts.mapping_size),
        19 => wide.set(facts.mapping_base),
        20 => wide.set(facts.buffer_id),
        21 => word.set(0),
        _ => Err(ERROR_INVALID_VALUE),
    }
}

/// Clears an attribute of a pointer that the driver does not know, as `cuPointerGetAttributes` does.
fn clear(which: i32, data: u64) -> Res {
    match which {
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => Out::<u64>::at(data).set(0),
        9 => Out::<u32>::at(data).set(u32::MAX - 1), // CU_DEVICE_INVALID
        2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => Out::<u32>::at(data).set(0),
        _ => Err(ERROR_INVALID_VALUE),
    }
}

fn get_many(driver: &Driver, count: u32, which: In<i32>, data: In<u64>, address: u64) -> Res {
    let tables = driver.space.read();
    let facts = facts(&tables, address);
    for index in 0..count as usize {
        let (which, data) = (which.at(index)?, data.at(index)?);
        if put(facts.as_ref(), which, data, address).is_err() {
            clear(which, data)?;
        }
    }
    Ok(())
}

api! { TABLE;
    4000 fn cuPointerGetAttribute(data: u64, which: i32, address: u64) |d| {
        let tables = d.space.read();
        put(facts(&tables, address).as_ref(), which, data, address)
    }
    7000 fn cuPointerGetAttributes(count: u32, which: In<i32>, data: In<u64>, address: u64) |d| {
        context::current_any(d)?;
        get_many(d, count, which, data, address)
    }
    6000 fn cuPointerSetAttribute(value: In<u32>, which: i32, address: u64) |d| {
        let tables = d.space.read();
        let facts = facts(&tables, address).ok_or(ERROR_INVALID_VALUE)?;
        if which != 6 { return Err(ERROR_INVALID_VALUE); }
        value.get()?;
        // SYNC_MEMOPS on memory that is no native allocation: refused.
        if facts.context == 0 { Err(ERROR_NOT_SUPPORTED) } else { Ok(()) }
    }
}
