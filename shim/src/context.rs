//! The contexts of the process: which exist, on which device, and how to wait for their work.
//!
//! Contexts are seen when they are made and, for those made by ways that are not wrapped (`cuGetExportTable`), when an
//! allocation is made in them.
#![allow(non_snake_case)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::abi::{self, Handle};
use crate::sync::lock;
use crate::table::{Entry, real, tracked};
use crate::{capture, gate, memory, mode, peers, stack};

#[derive(Debug, Clone, Copy)]
struct Context {
    device: i32,
    /// References by `cuCtxAttach` and creation; primary contexts are counted by the driver.
    usage: u32,
    /// The green context that it is a view of, or 0.
    green: usize,
}

static CONTEXTS: Mutex<BTreeMap<usize, Context>> = Mutex::new(BTreeMap::new());

/// The context current to this thread and its device. For the application's threads: waits while the gate is closed.
pub fn current() -> Option<(usize, i32)> {
    let _inside = gate::enter_query();
    let mut context: Handle = std::ptr::null_mut();
    // SAFETY: writes one handle.
    let result = unsafe { real::cuCtxGetCurrent(&mut context) };
    if result != abi::SUCCESS || context.is_null() {
        return None;
    }
    if let Some(known) = lock(&CONTEXTS).get(&(context as usize)) {
        return Some((context as usize, known.device));
    }
    let mut device = 0;
    // SAFETY: writes one integer.
    if unsafe { real::cuCtxGetDevice(&mut device) } != abi::SUCCESS {
        return None;
    }
    note(context as usize, device, 0);
    Some((context as usize, device))
}

/// All contexts that are known to live.
pub fn live() -> Vec<usize> {
    lock(&CONTEXTS).keys().copied().collect()
}

/// How many contexts the device has that has most of them.
pub fn most_on_a_device() -> usize {
    let contexts = lock(&CONTEXTS);
    let on = |device| contexts.values().filter(|c| c.device == device).count();
    contexts.values().map(|c| on(c.device)).max().unwrap_or(0)
}

fn note(context: usize, device: i32, green: usize) {
    lock(&CONTEXTS).entry(context).or_insert(Context {
        device,
        usage: 1,
        green,
    });
}

/// Makes sure that active primary contexts are known, however they were made.
pub fn find_primary_contexts(devices: i32) {
    for device in 0..devices {
        let (mut flags, mut active) = (0, 0);
        // SAFETY: writes two integers.
        let result = unsafe { real::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
        if result != abi::SUCCESS || active == 0 {
            continue;
        }
        let mut context: Handle = std::ptr::null_mut();
        // SAFETY: writes a handle; the reference taken is given back below, and the context was active before.
        if unsafe { real::cuDevicePrimaryCtxRetain(&mut context, device) } == abi::SUCCESS {
            note(context as usize, device, 0);
            // SAFETY: gives back the reference just taken.
            unsafe { real::cuDevicePrimaryCtxRelease_v2(device) };
        }
    }
}

/// Does something with a context current. The driver's answer if the context is gone.
fn within<T>(context: usize, work: impl FnOnce() -> T) -> Result<T, u32> {
    let handle = context as *mut c_void;
    let mut now: Handle = std::ptr::null_mut();
    // SAFETY: writes one handle.
    let known = unsafe { real::cuCtxGetCurrent(&mut now) } == abi::SUCCESS;
    if known && now == handle {
        return Ok(work());
    }
    // SAFETY: the handle was that of a live context when it was noted; the driver refuses one that is gone.
    let pushed = unsafe { real::cuCtxPushCurrent_v2(handle) };
    if pushed != abi::SUCCESS {
        return Err(pushed);
    }
    let result = work();
    let mut popped: Handle = std::ptr::null_mut();
    // SAFETY: takes away what was pushed above.
    unsafe { real::cuCtxPopCurrent_v2(&mut popped) };
    Ok(result)
}

/// Does something with a context current; none if the context is gone.
pub fn with<T>(context: usize, work: impl FnOnce() -> T) -> Option<T> {
    within(context, work).ok()
}

/// Waits until all work of a context is done. Blocks; to be called outside every lock.
pub fn synchronize(context: usize) -> u32 {
    // SAFETY: no arguments.
    within(context, || unsafe { real::cuCtxSynchronize() }).unwrap_or_else(|gone| gone)
}

/// Waits for the work of a context before memory of it is freed, as the driver's own free does. A context that is gone
/// has no work.
pub fn synchronize_for_free(context: usize) -> u32 {
    let _inside = gate::enter_query();
    match synchronize(context) {
        abi::INVALID_CONTEXT | abi::CONTEXT_IS_DESTROYED | abi::INVALID_HANDLE => {
            lock(&CONTEXTS).remove(&context);
            // Memory outlives a green context's view; whatever is current stands in for it.
            // SAFETY: no arguments.
            match unsafe { real::cuCtxSynchronize() } {
                abi::INVALID_CONTEXT | abi::CONTEXT_IS_DESTROYED => abi::SUCCESS,
                other => other,
            }
        }
        other => other,
    }
}

fn gone(context: usize) {
    lock(&CONTEXTS).remove(&context);
    capture::context_gone(context);
    peers::context_gone(context);
    memory::arrays::context_gone(context);
    memory::native::context_gone(context);
    memory::ipc::context_gone(context);
    memory::plain::context_gone(context);
    stack::forget(context);
}

/// # Safety
/// `pctx` is what the driver was given.
unsafe fn created(result: u32, pctx: *mut Handle, device: i32) -> u32 {
    if result == abi::SUCCESS && !pctx.is_null() && mode::active() {
        // SAFETY: the driver has just written it.
        note(unsafe { *pctx } as usize, device, 0);
    }
    result
}

macro_rules! create {
    ($name:ident($($argument:ident: $kind:ty),*)) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, pctx: *mut Handle, $($argument: $kind,)* flags: u32, device: i32) -> u32 {
            let _inside = gate::enter();
            // SAFETY: the caller's promise.
            unsafe { created(tracked::$name(entry, pctx, $($argument,)* flags, device), pctx, device) }
        }
    };
}
create!(cuCtxCreate());
create!(cuCtxCreate_v2());
create!(cuCtxCreate_v3(parameters: *mut c_void, count: i32));
create!(cuCtxCreate_v4(parameters: *mut c_void));

macro_rules! destroy {
    ($name:ident) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, context: Handle) -> u32 {
            let _inside = gate::enter();
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, context) };
            if result == abi::SUCCESS && mode::active() {
                gone(context as usize);
            }
            result
        }
    };
}
destroy!(cuCtxDestroy);
destroy!(cuCtxDestroy_v2);

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuCtxAttach(entry: Entry, pctx: *mut Handle, flags: u32) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuCtxAttach(entry, pctx, flags) };
    if result == abi::SUCCESS
        && let Some((context, _)) = current()
        && let Some(known) = lock(&CONTEXTS).get_mut(&context)
    {
        known.usage += 1;
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuCtxDetach(entry: Entry, context: Handle) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuCtxDetach(entry, context) };
    if result == abi::SUCCESS && mode::active() {
        let last = match lock(&CONTEXTS).get_mut(&(context as usize)) {
            Some(known) => {
                known.usage = known.usage.saturating_sub(1);
                known.usage == 0
            }
            None => false,
        };
        if last {
            gone(context as usize);
        }
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuDevicePrimaryCtxRetain(entry: Entry, pctx: *mut Handle, device: i32) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    unsafe {
        created(
            tracked::cuDevicePrimaryCtxRetain(entry, pctx, device),
            pctx,
            device,
        )
    }
}

/// The primary context of a device that is known and active, before a call that may end it.
fn primary_of(device: i32) -> Option<usize> {
    if !mode::active() {
        return None;
    }
    let (mut flags, mut active) = (0, 0);
    // SAFETY: writes two integers.
    let result = unsafe { real::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
    if result != abi::SUCCESS || active == 0 {
        return None;
    }
    let mut context: Handle = std::ptr::null_mut();
    // SAFETY: writes a handle; the reference taken is given back below.
    if unsafe { real::cuDevicePrimaryCtxRetain(&mut context, device) } != abi::SUCCESS {
        return None;
    }
    // SAFETY: gives back the reference just taken; the context was active before it was.
    unsafe { real::cuDevicePrimaryCtxRelease_v2(device) };
    Some(context as usize)
}

fn is_active(device: i32) -> bool {
    let (mut flags, mut active) = (0, 0);
    // SAFETY: writes two integers.
    let result = unsafe { real::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active) };
    result != abi::SUCCESS || active != 0
}

macro_rules! end_primary {
    ($name:ident, $always:expr) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, device: i32) -> u32 {
            let _inside = gate::enter();
            let context = primary_of(device);
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, device) };
            if result == abi::SUCCESS
                && let Some(context) = context
                && ($always || !is_active(device))
            {
                gone(context);
            }
            result
        }
    };
}
end_primary!(cuDevicePrimaryCtxRelease, false);
end_primary!(cuDevicePrimaryCtxRelease_v2, false);
end_primary!(cuDevicePrimaryCtxReset, true);
end_primary!(cuDevicePrimaryCtxReset_v2, true);

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuCtxFromGreenCtx(entry: Entry, pctx: *mut Handle, green: Handle) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuCtxFromGreenCtx(entry, pctx, green) };
    if result == abi::SUCCESS && !pctx.is_null() && mode::active() {
        // SAFETY: the driver has just written it.
        let context = unsafe { *pctx };
        let mut popped: Handle = std::ptr::null_mut();
        let mut device = 0;
        // SAFETY: pushes the context just returned, asks for its device and takes it away again.
        unsafe {
            if real::cuCtxPushCurrent_v2(context) == abi::SUCCESS {
                let known = real::cuCtxGetDevice(&mut device) == abi::SUCCESS;
                real::cuCtxPopCurrent_v2(&mut popped);
                if known {
                    note(context as usize, device, green as usize);
                }
            }
        }
    }
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGreenCtxDestroy(entry: Entry, green: Handle) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuGreenCtxDestroy(entry, green) };
    if result == abi::SUCCESS {
        // Its memory belongs to the device's primary context and stays.
        lock(&CONTEXTS).retain(|_, c| c.green != green as usize);
    }
    result
}
