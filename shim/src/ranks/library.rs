//! NCCL's own functions, as the caller would have got them without the shim.
//!
//! NCCL may be a library of its own or part of another one (linked statically, its functions are exported all the same), and a process may
//! have several of them. So the place that a call comes from decides, as it does for the loader: first what is in the global scope
//! behind the shim (another preloaded library, what the program is linked with), then the caller's own library and what that is linked
//! with. `dlsym` hands ours out in place of the first `libnccl.so.2`'s alone, and those call that: who asks is often a stub of its own
//! library's that is called as NCCL's function is, and would be what is found there.

use std::collections::BTreeMap;
use std::ffi::{CStr, c_void};
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::calls::{EXPORTED, HANDED_OUT, NAMES};
use crate::driver;
use crate::sync::lock;

const SONAME: &CStr = c"libnccl.so.2";

/// A place that a function of ours was called from; 0: nowhere in particular, it was handed out by `dlsym`.
pub type Caller = usize;

/// What a caller gets, by the function's number and where it was called from. Libraries that are called stay loaded.
static KNOWN: Mutex<BTreeMap<(usize, Caller), usize>> = Mutex::new(BTreeMap::new());

/// Functions of the first `libnccl.so.2`, in the order of [`NAMES`]; null until found.
static FIRST: [AtomicPtr<c_void>; NAMES.len()] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; NAMES.len()];

/// NCCL's own function of this number, for who calls from there.
pub fn real(number: usize, caller: Caller) -> Option<*mut c_void> {
    if let Some(known) = lock(&KNOWN).get(&(number, caller)) {
        return Some(*known as *mut c_void);
    }
    let found = match caller {
        0 => first(number).or_else(|| behind_us(number)),
        _ => behind_us(number)
            .or_else(|| of_caller(number, caller))
            .or_else(|| first(number)),
    }?;
    lock(&KNOWN).insert((number, caller), found as usize);
    Some(found)
}

fn find(handle: *mut c_void, number: usize) -> Option<*mut c_void> {
    let ours = EXPORTED.get(number)?.0.cast_mut();
    // SAFETY: a handle of dlopen, or `RTLD_NEXT`, which means behind this library, since the C library is called from here; a
    // terminated name.
    let found = unsafe { driver::dlsym(handle, NAMES.get(number)?.as_ptr()) };
    (!found.is_null() && found != ours).then_some(found)
}

/// What is in the global scope behind the shim.
fn behind_us(number: usize) -> Option<*mut c_void> {
    find(libc::RTLD_NEXT, number)
}

/// What the library of the caller has itself, or is linked with.
fn of_caller(number: usize, caller: Caller) -> Option<*mut c_void> {
    let file = driver::object_of(caller)?.file;
    if file.is_null() {
        return None;
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: the loader's own name of a library from which we were called. The reference taken is never given back.
    let library = unsafe { libc::dlopen(file, flags) };
    (!library.is_null()).then(|| find(library, number))?
}

/// What the first `libnccl.so.2` has. May run inside `dlsym`: no allocation, no lock of ours.
fn first(number: usize) -> Option<*mut c_void> {
    let cell = FIRST.get(number)?;
    let known = cell.load(Ordering::Acquire);
    if !known.is_null() {
        return Some(known);
    }
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
    // SAFETY: a terminated name. The reference taken is never given back: the table points into the library.
    let library = unsafe { libc::dlopen(SONAME.as_ptr(), flags) };
    if library.is_null() {
        return None;
    }
    let found = find(library, number)?;
    cell.store(found, Ordering::Release);
    Some(found)
}

/// What the application gets instead of `found`, which it asked for as `name`.
pub fn substitute(found: *mut c_void, name: &CStr) -> *mut c_void {
    let Ok(number) = NAMES.binary_search(&name) else {
        return found;
    };
    let exported = EXPORTED[number].0.cast_mut();
    if found == exported {
        // Ours is in the global scope whether or not there is one of NCCL's. Where there is one in another scope alone, who asks may see
        // that.
        let any = behind_us(number).or_else(|| first(number));
        return any.map_or(std::ptr::null_mut(), |_| exported);
    }
    match first(number) {
        Some(first) if first == found => HANDED_OUT[number].0.cast_mut(),
        _ => found,
    }
}
