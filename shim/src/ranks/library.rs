//! NCCL's own functions. libtorch and most others are linked with `libnccl.so.2` and reach our exports because those are preloaded;
//! JAX and others ask `dlsym`, with a handle.
//!
//! The library is the first of its name in the process, as it is for everybody who is linked with it. A second copy of it is used
//! by handle alone, and is left alone: its communicators are not known, and what is done with them is not counted.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::calls::{NAMES, OURS};
use crate::driver;

const SONAME: &CStr = c"libnccl.so.2";

/// NCCL's own functions, in the order of [`NAMES`]; null until found.
static REAL: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// NCCL's own function of this number, if it can be found. May run inside `dlsym`: no allocation, no locks.
pub fn real(number: usize) -> Option<*mut c_void> {
    let cell = REAL.get(number)?;
    let known = cell.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let name = NAMES[number].as_ptr();
    // SAFETY: a terminated name. The reference taken is never given back: the table points into the library.
    let library = unsafe { libc::dlopen(SONAME.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    let handle = if library.is_null() {
        libc::RTLD_NEXT
    } else {
        library
    };
    // SAFETY: a handle of dlopen, or what comes after this library, from whose code the C library is called.
    let found = unsafe { driver::dlsym(handle, name) };
    if found.is_null() || found == OURS[number].0.cast_mut() {
        return None;
    }
    cell.store(found, Ordering::Release);
    Some(found)
}

/// What the application gets instead of `found`, which it asked for as `name`.
pub fn substitute(found: *mut c_void, name: &CStr) -> *mut c_void {
    let Ok(number) = NAMES.binary_search(&name) else {
        return found;
    };
    match real(number) {
        Some(real) if real == found => OURS[number].0.cast_mut(),
        _ => found,
    }
}
