//! Memory that can be neither taken over nor saved by the driver: it is refused where the application has another way, and
//! otherwise allowed, and checkpoints are ruled out while it lasts.
#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::abi::{self, Handle, IpcHandle};
use crate::sync::lock;
use crate::table::{Entry, tracked};
use crate::unsupported::{self, Reason};
use crate::{gate, mode};

use super::ipc;

static IPC_OPEN: Mutex<BTreeSet<u64>> = Mutex::new(BTreeSet::new());

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuIpcGetMemHandle(entry: Entry, handle: *mut IpcHandle, pointer: u64) -> u32 {
    if mode::active()
        && !handle.is_null()
        && let Some(made) = ipc::make(pointer)
    {
        return match made {
            Ok(made) => {
                // SAFETY: the caller's promise that it can be written; checked for null above.
                unsafe { *handle = made };
                abi::SUCCESS
            }
            Err(result) => result,
        };
    }
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    unsafe { tracked::cuIpcGetMemHandle(entry, handle, pointer) }
}

macro_rules! ipc_open {
    ($name:ident) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, pointer: *mut u64, handle: IpcHandle, flags: u32) -> u32 {
            if mode::active()
                && !pointer.is_null()
                && let Some(opened) = ipc::open(&handle, flags)
            {
                return match opened {
                    Ok(opened) => {
                        // SAFETY: the caller's promise that it can be written; checked for null above.
                        unsafe { *pointer = opened };
                        abi::SUCCESS
                    }
                    Err(result) => result,
                };
            }
            let _inside = gate::enter();
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, pointer, handle, flags) };
            if result == abi::SUCCESS && !pointer.is_null() && mode::active() {
                // SAFETY: the driver has just written it.
                if lock(&IPC_OPEN).insert(unsafe { *pointer }) {
                    unsupported::add(Reason::Ipc);
                }
            }
            result
        }
    };
}
ipc_open!(cuIpcOpenMemHandle);
ipc_open!(cuIpcOpenMemHandle_v2);

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuIpcCloseMemHandle(entry: Entry, pointer: u64) -> u32 {
    if mode::active()
        && let Some(result) = ipc::close(pointer)
    {
        return result;
    }
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuIpcCloseMemHandle(entry, pointer) };
    if result == abi::SUCCESS && lock(&IPC_OPEN).remove(&pointer) {
        unsupported::remove(Reason::Ipc);
    }
    result
}

/// Calls the driver; when it succeeds, `$reason` holds from then on, or is lifted.
macro_rules! noted {
    ($name:ident($($argument:ident: $kind:ty),*), $change:ident, $reason:expr) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, $($argument: $kind),*) -> u32 {
            let _inside = gate::enter();
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, $($argument),*) };
            if result == abi::SUCCESS && mode::active() {
                unsupported::$change($reason);
            }
            result
        }
    };
}

// Nothing tells when the other side lets go: these hold for good.
noted!(cuMemPoolExportToShareableHandle(out: *mut c_void, pool: Handle, kind: u32, flags: u64), add, Reason::SharedPool);
noted!(cuMemPoolImportFromShareableHandle(pool: *mut Handle, handle: *mut c_void, kind: u32, flags: u64), add, Reason::SharedPool);
noted!(cuMemPoolExportPointer(out: *mut c_void, pointer: u64), add, Reason::SharedPool);
noted!(cuMemPoolImportPointer(pointer: *mut u64, pool: Handle, data: *mut c_void), add, Reason::SharedPool);
noted!(cuMemGetHandleForAddressRange(out: *mut c_void, base: u64, size: usize, kind: u32, flags: u64), add, Reason::Fabric);
noted!(cuLibraryGetManaged(pointer: *mut u64, size: *mut usize, library: Handle, name: *const std::ffi::c_char), add, Reason::Managed);

noted!(cuImportExternalMemory(memory: *mut Handle, description: *const c_void), add, Reason::External);
noted!(cuDestroyExternalMemory(memory: Handle), remove, Reason::External);
noted!(cuImportExternalSemaphore(semaphore: *mut Handle, description: *const c_void), add, Reason::External);
noted!(cuDestroyExternalSemaphore(semaphore: Handle), remove, Reason::External);

// The driver's signatures are as long as they are.
macro_rules! with_handles {
    ($name:ident($($argument:ident: $kind:ty),*), $($handle:ident),*) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        #[allow(clippy::too_many_arguments)]
        pub unsafe fn $name(entry: Entry, $($argument: $kind),*) -> u32 {
            let _inside = gate::enter();
            $(let Some($handle) = super::real_handle($handle) else { return abi::INVALID_VALUE };)*
            // SAFETY: the caller's promise, with the driver's handles in the place of ours.
            unsafe { tracked::$name(entry, $($argument),*) }
        }
    };
}

// Endpoints of NVLink fabrics (CUDA 13.4 and newer): what is bound to them is written by other nodes.
noted!(cuLogicalEndpointCreate(endpoint: u32, properties: *const c_void), add, Reason::Endpoint);
noted!(cuLogicalEndpointImport(endpoint: u32, handle: *const c_void, kind: u32), add, Reason::Endpoint);
noted!(cuLogicalEndpointDestroy(endpoint: u32), remove, Reason::Endpoint);
with_handles!(cuLogicalEndpointBindMem(endpoint: u32, device: i32, offset: u64, memory: u64, memory_offset: u64, size: u64, flags: u64), memory);
