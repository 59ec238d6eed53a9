//! Virtual memory management: reserve, create, map, set access, export, import.
//!
//! Rules, as on the real driver. Physical memory lives while a handle, a mapping or a descriptor in any process does.
//! A mapping can be used only after `cuMemSetAccess`, and per device. Unmap does not wait for the device. Ranges of
//! unmap and of the address calls are whole mappings and whole reservations. Only memory created with the POSIX
//! handle type can be exported; what was imported cannot be exported again: keep the descriptor of the first export.

use crate::api::{In, Out, api};
use crate::device;
use crate::driver::Driver;
use crate::error::{
    ERROR_INVALID_DEVICE, ERROR_INVALID_HANDLE, ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED,
    ERROR_UNKNOWN, Res,
};
use crate::memory::multicast;
use crate::memory::phys::{GRANULE, Phys, Use, raise};
use crate::memory::space::{Mapping, Reserved, Tables, holding};
use crate::sync::read;
use rustix::fd::{BorrowedFd, IntoRawFd};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A `CUmemGenericAllocationHandle`: counted, as `cuMemRetainAllocationHandle` gives the same one again.
pub struct Handle {
    pub phys: Arc<Phys>,
    count: AtomicU64,
}

/// `CUmemLocation`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Location {
    pub kind: i32,
    pub id: i32,
}

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    kind: i32,
    handle_types: u32,
    location: Location,
    windows: u64,
    compression: u8,
    rdma: u8,
    usage: u16,
    reserved: [u8; 4],
}

/// `CUmemAccessDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Access {
    pub location: Location,
    pub flags: u32,
}

const _: () = assert!(size_of::<Properties>() == 32 && size_of::<Access>() == 12);

const POSIX_FD: u32 = 1;

/// The device of a location.
pub fn location(driver: &Driver, location: Location) -> Res<usize> {
    match location.kind {
        1 => Ok(device::get(driver, location.id)?.ordinal),
        // Host memory by VMM: the device attributes say that there is none.
        2..=4 => Err(ERROR_NOT_SUPPORTED),
        _ => Err(ERROR_INVALID_VALUE),
    }
}

fn properties(driver: &Driver, props: In<Properties>) -> Res<(usize, Use)> {
    let props = props.get()?;
    if props.kind != 1 || props.handle_types & !POSIX_FD != 0 {
        return Err(if props.handle_types & 8 != 0 {
            ERROR_NOT_SUPPORTED
        } else {
            ERROR_INVALID_VALUE
        });
    }
    let ordinal = location(driver, props.location)?;
    Ok((
        ordinal,
        Use::Vmm {
            handle_types: props.handle_types,
            rdma: props.rdma != 0,
        },
    ))
}

fn create(
    driver: &'static Driver,
    out: Out<u64>,
    size: usize,
    props: In<Properties>,
    flags: u64,
) -> Res {
    out.check()?;
    let size = size as u64;
    let (ordinal, used_for) = properties(driver, props)?;
    if size == 0 || !size.is_multiple_of(GRANULE) || flags != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let phys = Phys::create(driver, ordinal, size, used_for)?;
    out.set(new_handle(driver, phys))
}

pub fn new_handle(driver: &Driver, phys: Arc<Phys>) -> u64 {
    driver
        .handles
        .insert(|_| Handle {
            phys,
            count: AtomicU64::new(1),
        })
        .0
}

pub fn handle(driver: &Driver, handle: u64) -> Res<Arc<Handle>> {
    driver.handles.get(handle).ok_or(ERROR_INVALID_VALUE)
}

fn release(driver: &Driver, number: u64) -> Res {
    let found = handle(driver, number)?;
    if found.count.fetch_sub(1, Ordering::AcqRel) == 1 {
        driver.handles.remove(number);
    }
    Ok(())
}

fn aligned(address: u64, size: u64) -> Res {
    if size == 0
        || !address.is_multiple_of(GRANULE)
        || !size.is_multiple_of(GRANULE)
        || address.checked_add(size).is_none()
    {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(())
}

fn reserve(
    driver: &Driver,
    out: Out<u64>,
    size: usize,
    align: usize,
    hint: u64,
    flags: u64,
) -> Res {
    out.check()?;
    let align = align as u64;
    if size == 0
        || !(size as u64).is_multiple_of(GRANULE)
        || flags != 0
        || (align != 0 && !align.is_power_of_two())
    {
        return Err(ERROR_INVALID_VALUE);
    }
    let address = driver
        .space
        .write()
        .reserve(size as u64, align, hint, Reserved::Vmm)?;
    out.set(address)
}

fn free_addresses(driver: &Driver, address: u64, size: usize) -> Res {
    let mut tables = driver.space.write();
    let range = tables
        .ranges
        .get(&address)
        .filter(|range| range.reserved == Reserved::Vmm);
    if range.is_none_or(|range| range.size != size as u64) || tables.mapped(address, size as u64) {
        return Err(ERROR_INVALID_VALUE);
    }
    tables.unreserve(address);
    Ok(())
}

fn map(driver: &Driver, address: u64, size: usize, offset: usize, number: u64, flags: u64) -> Res {
    let (size, offset) = (size as u64, offset as u64);
    aligned(address, size)?;
    let phys = Arc::clone(&handle(driver, number)?.phys);
    if flags != 0 || !offset.is_multiple_of(GRANULE) {
        return Err(ERROR_INVALID_VALUE);
    }
    // Measured: the driver maps allocations as a whole only.
    if offset != 0 || size != phys.size {
        return Err(ERROR_NOT_SUPPORTED);
    }
    let mut tables = driver.space.write();
    reserved(&tables, address, size)?;
    if tables.mapped(address, size) {
        return Err(ERROR_INVALID_VALUE);
    }
    tables.map(
        address,
        Mapping {
            size,
            offset,
            phys,
            access: Vec::new(),
        },
    )
}

/// The range must lie in one reservation of the application's.
fn reserved(tables: &Tables, address: u64, size: u64) -> Res {
    holding(&tables.ranges, address, |range| range.size)
        .filter(|(start, range)| {
            range.reserved == Reserved::Vmm && address + size <= start + range.size
        })
        .map(drop)
        .ok_or(ERROR_INVALID_VALUE)
}

/// The mappings that make up a range exactly, without gaps and without cutting one.
fn whole_mappings(tables: &Tables, address: u64, size: u64) -> Res<Vec<u64>> {
    let mut found = Vec::new();
    let mut at = address;
    while at < address + size {
        let mapping = tables
            .mappings
            .get(&at)
            .filter(|m| !matches!(m.phys.used_for, Use::Native | Use::Ipc));
        found.push(at);
        at += mapping.ok_or(ERROR_INVALID_VALUE)?.size;
    }
    if at == address + size {
        Ok(found)
    } else {
        Err(ERROR_INVALID_VALUE)
    }
}

/// The mappings in a range, which may have gaps but must cut none.
fn mappings_within(tables: &Tables, address: u64, size: u64) -> Res<Vec<u64>> {
    reserved(tables, address, size)?;
    let cut = |at| {
        holding(&tables.mappings, at, |mapping| mapping.size).is_some_and(|(start, _)| start < at)
    };
    if cut(address) || cut(address + size) {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(tables
        .mappings
        .range(address..address + size)
        .map(|(start, _)| *start)
        .collect())
}

fn unmap(driver: &Driver, address: u64, size: usize) -> Res {
    aligned(address, size as u64)?;
    let mut tables = driver.space.write();
    let gone: Vec<_> = mappings_within(&tables, address, size as u64)?
        .into_iter()
        .filter_map(|address| tables.unmap(address))
        .collect();
    drop(tables);
    drop(gone);
    Ok(())
}

fn set_access(driver: &Driver, address: u64, size: usize, access: In<Access>, count: usize) -> Res {
    aligned(address, size as u64)?;
    let wanted = access.all(count)?;
    if wanted.is_empty() {
        return Err(ERROR_INVALID_VALUE);
    }
    let mut rights = Vec::new();
    for access in wanted {
        if !matches!(access.flags, 0 | 1 | 3) {
            return Err(ERROR_INVALID_VALUE);
        }
        rights.push((location(driver, access.location)?, access.flags));
    }
    let mut tables = driver.space.write();
    for start in whole_mappings(&tables, address, size as u64)? {
        if let Some(mapping) = tables.mappings.get_mut(&start) {
            for (device, flags) in &rights {
                mapping.access.retain(|(known, _)| known != device);
                if *flags != 0 {
                    mapping.access.push((*device, *flags));
                }
            }
        }
    }
    Ok(())
}

fn get_access(driver: &Driver, flags: Out<u64>, place: In<Location>, address: u64) -> Res {
    flags.check()?;
    let device = location(driver, place.get()?)?;
    let tables = driver.space.read();
    let (_, mapping) =
        holding(&tables.mappings, address, |mapping| mapping.size).ok_or(ERROR_INVALID_VALUE)?;
    if matches!(mapping.phys.used_for, Use::Native | Use::Ipc) {
        return Err(ERROR_INVALID_VALUE);
    }
    let right = mapping
        .access
        .iter()
        .find(|(known, _)| *known == device)
        .map_or(0, |(_, flags)| u64::from(*flags));
    flags.set(right)
}

fn export(driver: &Driver, out: Out<RawFd>, number: u64, kind: u32, flags: u64) -> Res {
    out.check()?;
    let found = handle(driver, number)?;
    match found.phys.used_for {
        Use::Vmm { handle_types, .. }
            if handle_types & POSIX_FD != 0 && kind == POSIX_FD && flags == 0 =>
        {
            out.set(found.phys.reopen()?.into_raw_fd())
        }
        Use::Multicast if kind == POSIX_FD && flags == 0 => {
            out.set(found.phys.reopen()?.into_raw_fd())
        }
        _ => Err(ERROR_INVALID_VALUE),
    }
}

/// Asks the kernel on which GPU exported memory lies, as libcuda does, by the C library's `ioctl`. No kernel knows of our
/// GPUs and the request fails; who stands before `ioctl` sees it with its answer all the same. The structures are those of
/// `nvos.h` and `ctrl0000unix.h` of NVIDIA's kernel modules.
fn ask_instance(fd: RawFd, instance: u32) -> u32 {
    #[repr(C)]
    struct Info {
        fd: i32,
        instance: u32,
        partition: u32,
        objects: u16,
        metadata: [u8; 64],
    }
    #[repr(C)]
    struct Control {
        client: u32,
        object: u32,
        command: u32,
        flags: u32,
        parameters: *mut Info,
        size: u32,
        status: u32,
    }
    const CONTROL: libc::c_ulong = 0xC020_462A;
    const _: () = assert!(size_of::<Control>() == 32 && size_of::<Info>() == 80);
    let mut info = Info {
        fd,
        instance,
        partition: u32::MAX,
        objects: 1,
        metadata: [0; 64],
    };
    let mut control = Control {
        client: 0xC1D0_0001,
        object: 0xC1D0_0001,
        command: 0x3D08,
        flags: 0,
        parameters: &mut info,
        size: size_of::<Info>() as u32,
        status: 0,
    };
    // SAFETY: the argument is the structure of this request and lives until the call returns.
    unsafe { libc::ioctl(fd, CONTROL, &raw mut control) };
    info.instance
}

fn import(driver: &'static Driver, out: Out<u64>, os_handle: u64, kind: u32) -> Res {
    out.check()?;
    let fd = RawFd::try_from(os_handle).map_err(|_| ERROR_INVALID_VALUE)?;
    if kind != POSIX_FD || fd < 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    // SAFETY: borrowed for this call only; a number that is no descriptor makes the calls on it fail.
    let file = unsafe { BorrowedFd::borrow_raw(fd) };
    if let Some(size) = multicast::size(file) {
        let own = rustix::io::fcntl_dupfd_cloexec(file, 0).map_err(|_| ERROR_INVALID_VALUE)?;
        let object = Phys::adopt(driver, 0, size, Use::Multicast, raise(own));
        return out.set(new_handle(driver, object));
    }
    let stat = rustix::fs::fstat(file).map_err(|_| ERROR_UNKNOWN)?;
    let device = driver
        .devices
        .iter()
        .find(|device| {
            let backing = read(&device.backing);
            backing
                .as_ref()
                .and_then(|backing| device::file_system(&backing.dir))
                == Some(stat.st_dev)
        })
        .ok_or(ERROR_UNKNOWN)?;
    let instance = ask_instance(fd, device.backing()?.instance);
    let ordinal = device::by_instance(driver, instance)?.ordinal;
    let size = u64::try_from(stat.st_size).map_err(|_| ERROR_UNKNOWN)?;
    if size == 0 || !size.is_multiple_of(GRANULE) {
        return Err(ERROR_UNKNOWN);
    }
    let own = raise(rustix::io::fcntl_dupfd_cloexec(file, 0).map_err(|_| ERROR_INVALID_VALUE)?);
    std::thread::sleep(std::time::Duration::from_micros(driver.config.import_us));
    let phys = Phys::adopt(driver, ordinal, size, Use::Import, own);
    out.set(new_handle(driver, phys))
}

fn properties_of(phys: &Phys) -> Properties {
    let (handle_types, rdma) = match phys.used_for {
        Use::Vmm { handle_types, rdma } => (handle_types, rdma),
        // Measured: an import does not say how it could be exported, and cannot be.
        _ => (0, false),
    };
    Properties {
        kind: 1,
        handle_types,
        location: Location {
            kind: 1,
            id: phys.ordinal as i32,
        },
        windows: 0,
        compression: 0,
        rdma: u8::from(rdma),
        usage: 0,
        reserved: [0; 4],
    }
}

fn retain(driver: &Driver, out: Out<u64>, address: u64) -> Res {
    out.check()?;
    let phys = {
        let tables = driver.space.read();
        let (_, mapping) = holding(&tables.mappings, address, |mapping| mapping.size)
            .ok_or(ERROR_INVALID_VALUE)?;
        if matches!(mapping.phys.used_for, Use::Native | Use::Ipc) {
            return Err(ERROR_INVALID_VALUE);
        }
        Arc::clone(&mapping.phys)
    };
    for handle in driver.handles.all() {
        if Arc::ptr_eq(&handle.phys, &phys) {
            handle.count.fetch_add(1, Ordering::AcqRel);
            return out.set(driver.handles.find(&handle).ok_or(ERROR_INVALID_HANDLE)?);
        }
    }
    out.set(new_handle(driver, phys))
}

api! { TABLE;
    10020 fn cuMemCreate(handle: Out<u64>, size: usize, props: In<Properties>, flags: u64) |d| {
        create(d, handle, size, props, flags)
    }
    10020 fn cuMemRelease(handle: u64) |d| { release(d, handle) }
    10020 fn cuMemAddressReserve(address: Out<u64>, size: usize, align: usize, hint: u64, flags: u64) |d| {
        reserve(d, address, size, align, hint, flags)
    }
    10020 fn cuMemAddressFree(address: u64, size: usize) |d| { free_addresses(d, address, size) }
    10020 fn cuMemMap(address: u64, size: usize, offset: usize, handle: u64, flags: u64) |d| {
        map(d, address, size, offset, handle, flags)
    }
    10020 fn cuMemUnmap(address: u64, size: usize) |d| { unmap(d, address, size) }
    10020 fn cuMemSetAccess(address: u64, size: usize, access: In<Access>, count: usize) |d| {
        set_access(d, address, size, access, count)
    }
    10020 fn cuMemGetAccess(flags: Out<u64>, location: In<Location>, address: u64) |d| {
        get_access(d, flags, location, address)
    }
    10020 fn cuMemExportToShareableHandle(out: Out<RawFd>, handle: u64, kind: u32, flags: u64) |d| {
        export(d, out, handle, kind, flags)
    }
    10020 fn cuMemImportFromShareableHandle(handle: Out<u64>, os_handle: u64, kind: u32) |d| {
        import(d, handle, os_handle, kind)
    }
    10020 fn cuMemGetAllocationGranularity(granularity: Out<usize>, props: In<Properties>, option: i32) |d| {
        granularity.check()?;
        match properties(d, props) {
            Err(error) if error == ERROR_INVALID_DEVICE => return Err(error),
            Err(_) => return Err(ERROR_INVALID_VALUE),
            Ok(_) => {}
        }
        if !matches!(option, 0 | 1) { return Err(ERROR_INVALID_VALUE); }
        granularity.set(GRANULE as usize)
    }
    10020 fn cuMemGetAllocationPropertiesFromHandle(props: Out<Properties>, number: u64) |d| {
        props.set(properties_of(&handle(d, number)?.phys))
    }
    11000 fn cuMemRetainAllocationHandle(handle: Out<u64>, address: u64) |d| { retain(d, handle, address) }
    11070 fn cuMemGetHandleForAddressRange(_handle: Out<u64>, _address: u64, _size: usize, _kind: i32, _flags: u64) |_d| {
        Err(ERROR_NOT_SUPPORTED)
    }
}
