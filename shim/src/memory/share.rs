//! Handles that cross processes: an export hands out the vault's fd, an import is recognised as the allocation it is.
//!
//! The agent is asked outside the gate, so that a checkpoint never waits for an answer that waits for the checkpoint.
#![allow(non_snake_case)]

use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};

use phos_protocol::types::{Allocation, AllocationKind};

use crate::abi;
use crate::link::{self, AskError};
use crate::registry::{self, Origin, Physical};
use crate::table::{Entry, real, tracked};
use crate::unsupported::{self, Reason};
use crate::{gate, instances, log, mode};

/// How often a question is repeated when checkpoints cut it off.
pub(super) const TRIES: u32 = 8;

/// Asks the agent; when the connection goes because of a checkpoint, waits until that is over and asks again.
pub(super) fn ask<T>(mut question: impl FnMut() -> Result<T, AskError>) -> Result<T, AskError> {
    let mut lost = false;
    for _ in 0..TRIES {
        match question() {
            // Also where a checkpoint came between the gate and the question: the connection ends with the detach.
            Err(why @ (AskError::Lost | AskError::NotConnected)) => {
                // Passes when the gate is open again.
                drop(gate::enter());
                lost |= matches!(why, AskError::Lost);
                // Where there was no agent, none may ever be.
                if !link::wait_connected() && !lost {
                    return Err(why);
                }
            }
            other => return other,
        }
    }
    Err(AskError::Lost)
}

struct Exported {
    real: u64,
    allocation: Allocation,
    held: bool,
    exportable: bool,
    foreign: bool,
    is_multicast: bool,
    fd: Option<OwnedFd>,
}

fn look(id: u64) -> Option<Exported> {
    let registry = registry::lock();
    let real = registry.real_handle(id)?;
    let physical = registry.physical(id)?;
    Some(Exported {
        real,
        allocation: registry::describe(mode::member(), id, physical),
        held: physical.held,
        exportable: physical.exportable,
        foreign: matches!(physical.origin, Origin::Foreign(_)),
        is_multicast: physical.is_multicast(),
        fd: physical.fd.as_ref().and_then(|fd| fd.try_clone().ok()),
    })
}

/// A descriptor of what a handle of the driver's stands for, which is ours.
///
/// # Errors
/// The driver's result.
pub fn export(handle: u64) -> Result<OwnedFd, u32> {
    let mut fd = -1_i32;
    // SAFETY: writes one integer; the driver refuses a handle that is none.
    let result = unsafe {
        real::cuMemExportToShareableHandle((&raw mut fd).cast(), handle, abi::HANDLE_POSIX_FD, 0)
    };
    if result != abi::SUCCESS || fd < 0 {
        return Err(result.max(abi::INVALID_VALUE));
    }
    // SAFETY: the driver has just made it for us.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // It travels and is closed at once; if the process executes another program meanwhile, that must not keep it.
    let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC);
    Ok(fd)
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemExportToShareableHandle(
    entry: Entry,
    out: *mut c_void,
    handle: u64,
    kind: u32,
    flags: u64,
) -> u32 {
    let real_export = |real: u64| {
        // SAFETY: the caller's promise, with the driver's handle in the place of ours.
        unsafe { tracked::cuMemExportToShareableHandle(entry, out, real, kind, flags) }
    };
    let Some(id) = registry::handle_id(handle).filter(|_| mode::active()) else {
        let _inside = gate::enter();
        return real_export(handle);
    };
    let mut waited = false;
    for _ in 0..TRIES {
        let inside = gate::enter();
        let line = link::hold();
        let Some(found) = look(id) else {
            return abi::INVALID_VALUE;
        };
        if found.foreign {
            return real_export(found.real);
        }
        if kind != abi::HANDLE_POSIX_FD || out.is_null() {
            let result = real_export(found.real);
            if result == abi::SUCCESS && kind == abi::HANDLE_FABRIC {
                unsupported::set(Reason::Fabric);
            }
            return result;
        }
        let give = |fd: OwnedFd| {
            // SAFETY: the caller's promise that an int can be written there.
            unsafe { out.cast::<i32>().write(fd.into_raw_fd()) };
            abi::SUCCESS
        };
        let fd = if found.held {
            None
        } else if let Some(fd) = found.fd {
            Some(fd)
        } else if found.exportable {
            let result = real_export(found.real);
            if result != abi::SUCCESS {
                return result;
            }
            // SAFETY: the driver has just written a new descriptor there, which is ours now.
            let fd = unsafe { OwnedFd::from_raw_fd(out.cast::<i32>().read()) };
            if !found.is_multicast {
                instances::learn(found.allocation.device, fd.as_fd());
            }
            Some(fd)
        } else {
            unsupported::set(Reason::LostMemory);
            return abi::NOT_SUPPORTED;
        };
        drop(inside);
        let shared = link::share(found.allocation, fd.as_ref().map(AsFd::as_fd));
        // Kept only for an application that no agent is there for.
        let fd = fd.filter(|_| matches!(shared, Err(AskError::NotConnected)));
        drop(line);
        match shared {
            Ok(shared) => {
                if let Some(physical) = registry::lock().physical_mut(id) {
                    physical.held = true;
                    physical.fd = None;
                }
                return give(shared);
            }
            Err(AskError::Lost) => {
                drop(gate::enter());
                link::wait_connected();
            }
            // On a busy machine others may have it before this process has reached the agent, which could not tell them whose it is.
            Err(AskError::NotConnected) if !waited => {
                drop(fd);
                waited = true;
                link::wait_connected();
            }
            // No agent: the fd given out now is the one that the agent must get when it comes.
            Err(AskError::NotConnected) => {
                let Some(fd) = fd else { continue };
                if let Some(physical) = registry::lock().physical_mut(id) {
                    physical.fd = fd.try_clone().ok();
                }
                return give(fd);
            }
            Err(AskError::Refused(why)) => {
                log::error!("the agent could not share memory: {why}");
                return abi::NOT_SUPPORTED;
            }
        }
    }
    abi::NOT_SUPPORTED
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemImportFromShareableHandle(
    entry: Entry,
    handle: *mut u64,
    os_handle: *mut c_void,
    kind: u32,
) -> u32 {
    let real_import = || {
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMemImportFromShareableHandle(entry, handle, os_handle, kind) }
    };
    if handle.is_null() || !mode::active() {
        let _inside = gate::enter();
        return instances::importing(real_import).0;
    }
    let known = if kind == abi::HANDLE_POSIX_FD {
        // SAFETY: the caller's promise that it is an open descriptor, which it does not close meanwhile.
        let fd = unsafe { BorrowedFd::borrow_raw(os_handle as usize as i32) };
        ask(|| link::identify(fd)).unwrap_or(None)
    } else {
        None
    };
    let _inside = gate::enter();
    if let Some(allocation) = known {
        let mut registry = registry::lock();
        if let Some(id) = registry.by_key(allocation.key, mode::member())
            && registry.retain(id)
        {
            // SAFETY: checked for null above; the caller's promise that it can be written.
            unsafe { *handle = registry::virtual_handle(id) };
            return abi::SUCCESS;
        }
    }
    let (result, instance) = instances::importing(real_import);
    if result != abi::SUCCESS {
        return result;
    }
    // SAFETY: the driver has just written it.
    let real = unsafe { *handle };
    let id = match known {
        Some(allocation) if allocation.key.owner != mode::member() => {
            adopt(allocation, real, instance, kind)
        }
        _ => {
            unsupported::add(Reason::ForeignImport);
            registry::lock().add(Physical {
                origin: Origin::Foreign(Reason::ForeignImport),
                held: known.is_some(),
                ..imported(known, real, instance, kind)
            })
        }
    };
    // SAFETY: the caller's promise that it can be written.
    unsafe { *handle = registry::virtual_handle(id) };
    abi::SUCCESS
}

/// Notes an import of memory of another process of the job, with one reference: its number here. Inside the gate.
///
/// An allocation has one note, however often and by whichever thread it is imported: where another thread was first meanwhile,
/// its note gets the reference and this import goes back to the driver.
pub fn adopt(allocation: Allocation, real: u64, instance: Option<u32>, kind: u32) -> u64 {
    {
        let mut registry = registry::lock();
        let known = registry.by_key(allocation.key, mode::member());
        match known.filter(|&id| registry.retain(id)) {
            Some(id) => {
                drop(registry);
                // SAFETY: a handle that the driver made for this import and nobody else knows.
                unsafe { real::cuMemRelease(real) };
                id
            }
            None => registry.add(imported(Some(allocation), real, instance, kind)),
        }
    }
}

fn imported(
    allocation: Option<Allocation>,
    real: u64,
    instance: Option<u32>,
    kind: u32,
) -> Physical {
    Physical {
        origin: allocation.map_or(Origin::Foreign(Reason::ForeignImport), |a| {
            Origin::Imported(a.key)
        }),
        instance,
        device: allocation.map_or(0, |a| a.device),
        bytes: allocation.map_or(0, |a| a.bytes),
        requested: allocation.map_or(0, |a| a.bytes),
        kind: match allocation.map(|a| a.kind) {
            Some(kind @ AllocationKind::Multicast { .. }) => kind,
            _ => AllocationKind::Vmm,
        },
        rdma: allocation.is_some_and(|a| a.rdma),
        handle_types: kind,
        real: Some(real),
        exportable: false,
        held: allocation.is_some(),
        fd: None,
        references: 1,
        mappings: 0,
    }
}
