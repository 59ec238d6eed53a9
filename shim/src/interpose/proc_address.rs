//! `cuGetProcAddress`, both signatures.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_char, c_void};

use crate::driver::{self, Load};
use crate::table::{Entry, tracked};
use crate::{abi, gate};

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGetProcAddress(
    entry: Entry,
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: i32,
    flags: u64,
) -> u32 {
    let _inside = gate::enter_query();
    // SAFETY: the caller's promise.
    let result = unsafe { tracked::cuGetProcAddress(entry, symbol, function, version, flags) };
    // SAFETY: the caller's promise.
    unsafe { replace(result, symbol, function) };
    result
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGetProcAddress_v2(
    entry: Entry,
    symbol: *const c_char,
    function: *mut *mut c_void,
    version: i32,
    flags: u64,
    status: *mut u32,
) -> u32 {
    let _inside = gate::enter_query();
    // SAFETY: the caller's promise.
    let result =
        unsafe { tracked::cuGetProcAddress_v2(entry, symbol, function, version, flags, status) };
    // SAFETY: the caller's promise.
    unsafe { replace(result, symbol, function) };
    result
}

/// # Safety
/// `symbol` and `function` are what the driver accepted, if `result` is success.
unsafe fn replace(result: u32, symbol: *const c_char, function: *mut *mut c_void) {
    if result != abi::SUCCESS
        || symbol.is_null()
        || function.is_null()
        || !driver::resolve(Load::Never)
    {
        return;
    }
    // SAFETY: the driver has just written it.
    let found = unsafe { *function };
    if found.is_null() {
        return;
    }
    // SAFETY: the driver has just read it as a terminated string.
    let symbol = unsafe { CStr::from_ptr(symbol) };
    // SAFETY: as above.
    unsafe { *function = super::substitute(found, symbol) };
}
