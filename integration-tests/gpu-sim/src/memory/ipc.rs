//! Legacy IPC: handles of native memory that another process opens.
//!
//! A handle names the process and the descriptor that hold the block; opening it goes through `/proc`, so both must be
//! in one PID namespace. Memory by VMM and from pools has no such handle. An open mapping keeps a checkpoint from being
//! taken. IPC events are not supported.

use crate::api::{Out, api};
use crate::context;
use crate::device;
use crate::driver::Driver;
use crate::error::{ERROR_INVALID_VALUE, ERROR_MAP_FAILED, ERROR_NOT_SUPPORTED, Res};
use crate::memory::native;
use crate::memory::phys::{GRANULE, Phys, Use, raise};
use crate::memory::space::{Mapping, Native, Reserved, holding};
use rustix::fs::{Mode, OFlags};
use std::os::fd::AsRawFd;

/// `CUipcMemHandle`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle {
    magic: u64,
    pid: u32,
    fd: i32,
    inode: u64,
    offset: u64,
    size: u64,
    rest: [u8; 24],
}

const _: () = assert!(size_of::<Handle>() == 64);
const MAGIC: u64 = u64::from_le_bytes(*b"phos-ipc");

fn export(driver: &Driver, out: Out<Handle>, address: u64) -> Res {
    out.check()?;
    context::current(driver)?;
    let tables = driver.space.read();
    let (base, native) = holding(&tables.natives, address, |native| native.size)
        .filter(|(_, native)| native.pool == 0 && !native.ipc)
        .ok_or(ERROR_INVALID_VALUE)?;
    let mapping = tables
        .mappings
        .get(&native.block)
        .ok_or(ERROR_INVALID_VALUE)?;
    let (fd, inode) = mapping.phys.with_file(|file| {
        let stat = rustix::fs::fstat(file).map_err(|_| ERROR_INVALID_VALUE)?;
        Ok((file.as_raw_fd(), stat.st_ino))
    })?;
    let offset = base - native.block;
    let pid = std::process::id();
    out.set(Handle {
        magic: MAGIC,
        pid,
        fd,
        inode,
        offset,
        size: native.size,
        rest: [0; 24],
    })
}

fn open(driver: &'static Driver, out: Out<u64>, handle: Handle) -> Res {
    out.check()?;
    let context = context::current(driver)?;
    if handle.magic != MAGIC || handle.pid == std::process::id() {
        return Err(ERROR_INVALID_VALUE);
    }
    let path = format!("/proc/{}/fd/{}", handle.pid, handle.fd);
    let file = rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(|_| ERROR_MAP_FAILED)?;
    let stat = rustix::fs::fstat(&file).map_err(|_| ERROR_MAP_FAILED)?;
    let room = stat.st_size as u64;
    if stat.st_ino != handle.inode
        || !room.is_multiple_of(GRANULE)
        || handle.offset + handle.size > room
    {
        return Err(ERROR_MAP_FAILED);
    }
    let device = driver.devices.iter().find(|device| {
        device
            .backing()
            .ok()
            .and_then(|backing| device::file_system(&backing.dir))
            == Some(stat.st_dev)
    });
    let ordinal = device.ok_or(ERROR_INVALID_VALUE)?.ordinal;
    let phys = Phys::adopt(driver, ordinal, room, Use::Ipc, raise(file));
    let buffer_id = phys.id;
    let mut tables = driver.space.write();
    let block = tables.reserve(room, GRANULE, 0, Reserved::Native)?;
    tables.map(
        block,
        Mapping {
            size: room,
            offset: 0,
            phys,
            access: Vec::new(),
        },
    )?;
    let address = block + handle.offset;
    let native = Native {
        size: handle.size,
        context: context.handle,
        block,
        pool: 0,
        buffer_id,
        ipc: true,
    };
    tables.natives.insert(address, native);
    out.set(address)
}

fn close(driver: &'static Driver, address: u64) -> Res {
    context::current(driver)?.synchronize()?;
    let mut tables = driver.space.write();
    if tables
        .natives
        .get(&address)
        .is_none_or(|native| !native.ipc)
    {
        return Err(ERROR_INVALID_VALUE);
    }
    native::release(&mut tables, address);
    Ok(())
}

api! { TABLE;
    4010 fn cuIpcGetMemHandle(handle: Out<Handle>, address: u64) |d| { export(d, handle, address) }
    4010 fn cuIpcOpenMemHandle(address: Out<u64>, handle: Handle, _flags: u32) |d| { open(d, address, handle) }
    11000 fn cuIpcOpenMemHandle_v2(address: Out<u64>, handle: Handle, _flags: u32) |d| { open(d, address, handle) }
    4010 fn cuIpcCloseMemHandle(address: u64) |d| { close(d, address) }
    4010 fn cuIpcGetEventHandle(_handle: Out<Handle>, _event: u64) |_d| { Err(ERROR_NOT_SUPPORTED) }
    4010 fn cuIpcOpenEventHandle(_event: Out<u64>, _handle: Handle) |_d| { Err(ERROR_NOT_SUPPORTED) }
}
