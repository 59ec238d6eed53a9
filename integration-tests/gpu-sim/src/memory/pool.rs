//! Stream-ordered allocation: pools, `cuMemAllocAsync`, `cuMemFreeAsync`.
//!
//! Simpler than the real thing: memory is taken at the call and given back when the stream reaches the free. A pool
//! keeps nothing, so what it has reserved is what is in use. Allocation while a stream is captured is refused.

use crate::api::{In, Out, api};
use crate::context;
use crate::device;
use crate::driver::Driver;
use crate::error::{ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED, Res};
use crate::memory::native;
use crate::memory::vmm::{Access, Location, location};
use crate::stream::{self, Null, Work};
use crate::sync::lock;
use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

/// A memory pool.
pub struct Pool {
    pub handle: u64,
    pub ordinal: usize,
    attributes: Mutex<HashMap<i32, u64>>,
}

/// `CUmemPoolProps`, up to what is used here.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct PoolProperties {
    kind: i32,
    handle_types: u32,
    location: Location,
}

impl Pool {
    pub fn new(handle: u64, ordinal: usize) -> Self {
        Self {
            handle,
            ordinal,
            attributes: Mutex::new(HashMap::from([
                (1, 1),
                (2, 1),
                (3, 1),
                (4, 0),
                (6, 0),
                (8, 0),
            ])),
        }
    }

    fn used(&self, driver: &Driver) -> u64 {
        driver
            .space
            .read()
            .natives
            .values()
            .filter(|native| native.pool == self.handle)
            .map(|native| native.size)
            .sum()
    }
}

fn get(driver: &Driver, pool: u64) -> Res<Arc<Pool>> {
    driver.pools.get(pool).ok_or(ERROR_INVALID_VALUE)
}

fn allocate(
    driver: &'static Driver,
    out: Out<u64>,
    size: usize,
    pool: u64,
    on: u64,
    null: Null,
) -> Res {
    out.check()?;
    let stream = stream::get(driver, on, null)?;
    if stream.capturing() {
        stream.invalidate_capture();
        return Err(ERROR_NOT_SUPPORTED);
    }
    let context = Arc::clone(&stream.context);
    let ordinal = context.ordinal;
    let pool = if pool == 0 {
        driver
            .devices
            .get(ordinal)
            .ok_or(ERROR_INVALID_VALUE)?
            .current_pool
            .load(Ordering::Relaxed)
    } else {
        pool
    };
    if get(driver, pool)?.ordinal != ordinal {
        return Err(ERROR_INVALID_VALUE);
    }
    let address = native::allocate(driver, &context, size as u64, pool)?;
    if let Ok(pool) = get(driver, pool) {
        let used = pool.used(driver);
        let mut attributes = lock(&pool.attributes);
        for high in [6, 8] {
            let value = attributes.entry(high).or_default();
            *value = used.max(*value);
        }
    }
    out.set(address)
}

fn free(driver: &'static Driver, address: u64, on: u64, null: Null) -> Res {
    let stream = stream::get(driver, on, null)?;
    if address == 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    if stream.capturing() {
        stream.invalidate_capture();
        return Err(ERROR_NOT_SUPPORTED);
    }
    if driver
        .space
        .read()
        .natives
        .get(&address)
        .is_none_or(|native| native.ipc)
    {
        return Err(ERROR_INVALID_VALUE);
    }
    stream.submit(driver, Work::Free(address)).map(drop)
}

fn attribute(driver: &Driver, pool: u64, which: i32) -> Res<u64> {
    let pool = get(driver, pool)?;
    match which {
        5 | 7 => Ok(pool.used(driver)),
        _ => lock(&pool.attributes)
            .get(&which)
            .copied()
            .ok_or(ERROR_INVALID_VALUE),
    }
}

/// The first three attributes are `int`, the others 64-bit.
fn set_attribute(driver: &Driver, pool: u64, which: i32, value: In<u32>) -> Res {
    let pool = get(driver, pool)?;
    let value = match which {
        1..=3 => u64::from(value.get()?),
        4 => In::<u64>(value.0.cast()).get()?,
        // High-water marks can only be reset.
        6 | 8 if In::<u64>(value.0.cast()).get()? == 0 => 0,
        _ => return Err(ERROR_INVALID_VALUE),
    };
    lock(&pool.attributes).insert(which, value);
    Ok(())
}

fn create(driver: &Driver, out: Out<u64>, props: In<PoolProperties>) -> Res {
    out.check()?;
    let props = props.get()?;
    if props.kind != 1 {
        return Err(ERROR_INVALID_VALUE);
    }
    if props.handle_types != 0 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let ordinal = location(driver, props.location)?;
    out.set(driver.pools.insert(|handle| Pool::new(handle, ordinal)).0)
}

fn destroy(driver: &Driver, handle: u64) -> Res {
    let pool = get(driver, handle)?;
    let device = driver
        .devices
        .get(pool.ordinal)
        .ok_or(ERROR_INVALID_VALUE)?;
    if device.default_pool.load(Ordering::Relaxed) == handle {
        return Err(ERROR_INVALID_VALUE);
    }
    let default = device.default_pool.load(Ordering::Relaxed);
    let _ =
        device
            .current_pool
            .compare_exchange(handle, default, Ordering::Relaxed, Ordering::Relaxed);
    driver.pools.remove(handle);
    Ok(())
}

fn of_device(driver: &Driver, place: In<Location>, kind: i32) -> Res<&device::Device> {
    if kind != 1 {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let ordinal = location(driver, place.get()?)?;
    driver.devices.get(ordinal).ok_or(ERROR_INVALID_VALUE)
}

api! { TABLE;
    11020 fn cuDeviceGetDefaultMemPool(pool: Out<u64>, device: i32) |d| {
        pool.set(device::get(d, device)?.default_pool.load(Ordering::Relaxed))
    }
    11020 fn cuDeviceGetMemPool(pool: Out<u64>, device: i32) |d| {
        pool.set(device::get(d, device)?.current_pool.load(Ordering::Relaxed))
    }
    11020 fn cuDeviceSetMemPool(device: i32, pool: u64) |d| {
        let device = device::get(d, device)?;
        if get(d, pool)?.ordinal != device.ordinal { return Err(ERROR_INVALID_VALUE); }
        device.current_pool.store(pool, Ordering::Relaxed);
        Ok(())
    }
    13000 fn cuMemGetDefaultMemPool(pool: Out<u64>, location: In<Location>, kind: i32) |d| {
        pool.set(of_device(d, location, kind)?.default_pool.load(Ordering::Relaxed))
    }
    13000 fn cuMemGetMemPool(pool: Out<u64>, location: In<Location>, kind: i32) |d| {
        pool.set(of_device(d, location, kind)?.current_pool.load(Ordering::Relaxed))
    }
    11020 fn cuMemAllocAsync(address: Out<u64>, size: usize, stream: u64) |d| {
        context::current(d)?;
        allocate(d, address, size, 0, stream, Null::Legacy)
    }
    11020 fn cuMemAllocAsync_ptsz(address: Out<u64>, size: usize, stream: u64) |d| {
        context::current(d)?;
        allocate(d, address, size, 0, stream, Null::PerThread)
    }
    11020 fn cuMemAllocFromPoolAsync(address: Out<u64>, size: usize, pool: u64, stream: u64) |d| {
        allocate(d, address, size, get(d, pool)?.handle, stream, Null::Legacy)
    }
    11020 fn cuMemAllocFromPoolAsync_ptsz(address: Out<u64>, size: usize, pool: u64, stream: u64) |d| {
        allocate(d, address, size, get(d, pool)?.handle, stream, Null::PerThread)
    }
    11020 fn cuMemFreeAsync(address: u64, stream: u64) |d| { free(d, address, stream, Null::Legacy) }
    11020 fn cuMemFreeAsync_ptsz(address: u64, stream: u64) |d| { free(d, address, stream, Null::PerThread) }
    11020 fn cuMemPoolCreate(pool: Out<u64>, props: In<PoolProperties>) |d| { create(d, pool, props) }
    11020 fn cuMemPoolDestroy(pool: u64) |d| { destroy(d, pool) }
    11020 fn cuMemPoolTrimTo(pool: u64, _keep: usize) |d| { get(d, pool).map(drop) }
    11020 fn cuMemPoolGetAttribute(pool: u64, which: i32, value: Out<u32>) |d| {
        let found = attribute(d, pool, which)?;
        if which <= 3 { value.set(found as u32) } else { value.set_all(&[found as u32, (found >> 32) as u32]) }
    }
    11020 fn cuMemPoolSetAttribute(pool: u64, which: i32, value: In<u32>) |d| { set_attribute(d, pool, which, value) }
    11020 fn cuMemPoolSetAccess(pool: u64, access: In<Access>, count: usize) |d| {
        get(d, pool)?;
        for access in access.all(count)? { location(d, access.location)?; }
        Ok(())
    }
    11020 fn cuMemPoolGetAccess(flags: Out<u32>, pool: u64, place: In<Location>) |d| {
        let own = get(d, pool)?.ordinal == location(d, place.get()?)?;
        flags.set(if own { 3 } else { 0 })
    }
}
