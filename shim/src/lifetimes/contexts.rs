//! The calls that make contexts and end them. What the shim knows of a context ends with it.
#![allow(non_snake_case)]

use std::ffi::c_void;

use crate::abi::{self, Handle};
use crate::table::{Entry, real, tracked};
use crate::{capture, context, gate, memory, mode, peers, stack};

fn gone(context: usize) {
    context::forget(context);
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
        context::note(unsafe { *pctx } as usize, device, 0);
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
        && let Some((context, _)) = context::current()
    {
        context::attached(context);
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
    if result == abi::SUCCESS && mode::active() && context::detached(context as usize) {
        gone(context as usize);
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
                    context::note(context as usize, device, green as usize);
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
        context::forget_views(green as usize);
    }
    result
}
