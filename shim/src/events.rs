//! Events that processes share (`cuIpcGetEventHandle`, `cuIpcOpenEventHandle`; `torch.multiprocessing` makes one for each tensor
//! that it sends). The driver's own are pages shared between processes, which it does not checkpoint. Here each process has
//! an ordinary event of its own, and what crosses over is the host's word that work is done:
//!
//! * A record of an event that another process may know returns when the work before it is done, and so does making the handle. A
//!   thread that waits in another process learned of the record from this thread, afterwards: nothing is left to wait for.
//! * The other process's event was never recorded, or only by that process itself, so its wait and its query say that all is
//!   done, as they should.
//!
//! A program in which the thread that records must continue before that work can end (a kernel that spins until the same thread
//! does something later) would wait for ever. Records during a stream capture stay as they are.
#![allow(non_snake_case)]

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::abi::{self, Handle, IpcHandle};
use crate::relaxed::Relaxed;
use crate::sync::lock;
use crate::table::{Entry, real, tracked};
use crate::unsupported::{self, Reason};
use crate::{gate, mode};

/// The first bytes of the shim's own handles, with the version of what follows: the process and its instance.
const MAGIC: [u8; 8] = *b"phosIPE1";
/// `CU_EVENT_INTERPROCESS`.
const INTERPROCESS: u32 = 4;
/// `CU_EVENT_DISABLE_TIMING`: what an event must be that is shared.
const DISABLE_TIMING: u32 = 2;
/// `CU_STREAM_CAPTURE_STATUS_NONE`.
const NOT_CAPTURING: u32 = 0;

/// Events made to be shared, and opened ones.
static SHARED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());
/// How many: most programs have none, and record often.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn is_shared(event: Handle) -> bool {
    COUNT.load(Ordering::Acquire) > 0 && lock(&SHARED).contains(&event.addr())
}

fn note(event: Handle) {
    let mut shared = lock(&SHARED);
    shared.insert(event.expose_provenance());
    COUNT.store(shared.len(), Ordering::Release);
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuEventCreate(entry: Entry, event: *mut Handle, flags: u32) -> u32 {
    let _inside = gate::enter_query();
    // The driver refuses what is to be shared and has times; that is left to it.
    let ours = flags & INTERPROCESS != 0 && flags & DISABLE_TIMING != 0 && mode::active();
    let given = if ours { flags & !INTERPROCESS } else { flags };
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuEventCreate(entry, event, given) };
    if result == abi::SUCCESS && ours && !event.is_null() {
        // SAFETY: the driver has just written it.
        note(unsafe { *event });
    }
    result
}

macro_rules! destroy {
    ($name:ident) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, event: Handle) -> u32 {
            let _inside = gate::enter_query();
            // Before the driver may give the handle to another event.
            let shared = is_shared(event);
            if shared {
                let mut shared = lock(&SHARED);
                shared.remove(&event.addr());
                COUNT.store(shared.len(), Ordering::Release);
            }
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, event) };
            if result != abi::SUCCESS && shared {
                note(event);
            }
            result
        }
    };
}
destroy!(cuEventDestroy);
destroy!(cuEventDestroy_v2);

/// Waits for what was recorded, outside the gate for work: it may last.
fn wait_for(event: Handle) {
    let _inside = gate::enter_query();
    let _relaxed = Relaxed::new();
    // SAFETY: an event of the application's, which it has just used. An error is that of the work, and comes back with
    // the application's own next call.
    unsafe { real::cuEventSynchronize(event) };
}

fn is_capturing(stream: Handle) -> bool {
    let mut status = NOT_CAPTURING;
    // SAFETY: writes one integer.
    let result = unsafe { real::cuStreamIsCapturing(stream, &raw mut status) };
    result != abi::SUCCESS || status != NOT_CAPTURING
}

macro_rules! record {
    ($name:ident($($argument:ident: $kind:ty),*)) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, event: Handle, stream: Handle, $($argument: $kind),*) -> u32 {
            let (result, wait) = {
                let _inside = gate::enter();
                let wait = is_shared(event) && !is_capturing(stream);
                // SAFETY: the caller's promise.
                (unsafe { tracked::$name(entry, event, stream, $($argument),*) }, wait)
            };
            if wait && result == abi::SUCCESS {
                wait_for(event);
            }
            result
        }
    };
}
record!(cuEventRecord());
record!(cuEventRecordWithFlags(flags: u32));

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuIpcGetEventHandle(entry: Entry, handle: *mut IpcHandle, event: Handle) -> u32 {
    if mode::active() && !handle.is_null() && is_shared(event) {
        wait_for(event);
        let mut bytes = [0; 64];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&u64::from(mode::process()).to_le_bytes());
        bytes[16..24].copy_from_slice(&mode::instance().to_le_bytes());
        // SAFETY: the caller's promise that a handle can be written there.
        unsafe { handle.write_unaligned(IpcHandle(bytes)) };
        return abi::SUCCESS;
    }
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuIpcGetEventHandle(entry, handle, event) };
    if result == abi::SUCCESS && mode::active() {
        // Nothing tells when the other side lets go.
        unsupported::add(Reason::Ipc);
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuIpcOpenEventHandle(entry: Entry, event: *mut Handle, handle: IpcHandle) -> u32 {
    if mode::active() && handle.0[..8] == MAGIC {
        let own = handle.0[8..16] == u64::from(mode::process()).to_le_bytes()
            && handle.0[16..24] == mode::instance().to_le_bytes();
        if own {
            return abi::INVALID_CONTEXT;
        }
        if event.is_null() {
            return abi::INVALID_VALUE;
        }
        let _inside = gate::enter_query();
        // SAFETY: the caller's promise that it can be written.
        let result = unsafe { real::cuEventCreate(event, DISABLE_TIMING) };
        if result == abi::SUCCESS {
            // SAFETY: the driver has just written it.
            note(unsafe { *event });
        }
        return result;
    }
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuIpcOpenEventHandle(entry, event, handle) };
    if result == abi::SUCCESS && mode::active() {
        unsupported::add(Reason::Ipc);
    }
    result
}
