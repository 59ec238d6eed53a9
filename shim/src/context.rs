//! The contexts of the process: which exist, on which device, and how to wait for their work.
//!
//! Contexts are seen when they are made and, for those made by ways that are not wrapped (`cuGetExportTable`), when an
//! allocation is made in them.
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use crate::abi::{self, Handle};
use crate::gate;
use crate::sync::lock;
use crate::table::real;

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

/// A context exists, on this device; `green`: the green context that it is a view of, or 0.
pub fn note(context: usize, device: i32, green: usize) {
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

/// A context ended.
pub fn forget(context: usize) {
    lock(&CONTEXTS).remove(&context);
}

/// The contexts that are views of a green context ended with it.
pub fn forget_views(green: usize) {
    lock(&CONTEXTS).retain(|_, c| c.green != green);
}

/// The application has one more reference to a context.
pub fn attached(context: usize) {
    if let Some(known) = lock(&CONTEXTS).get_mut(&context) {
        known.usage += 1;
    }
}

/// It has one less. True: that was the last.
pub fn detached(context: usize) -> bool {
    lock(&CONTEXTS).get_mut(&context).is_some_and(|known| {
        known.usage = known.usage.saturating_sub(1);
        known.usage == 0
    })
}
