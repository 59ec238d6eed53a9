//! What the application can ask about an address: taken-over memory answers as the driver's own would.
#![allow(non_snake_case)]

use std::ffi::c_void;

use crate::abi;
use crate::registry::{self, Plain};
use crate::table::{Entry, tracked};
use crate::{gate, mode};

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMemGetAddressRange_v2(
    entry: Entry,
    base: *mut u64,
    size: *mut usize,
    pointer: u64,
) -> u32 {
    let _inside = gate::enter();
    let found = if mode::active() {
        registry::lock().plain_at(pointer)
    } else {
        None
    };
    match found {
        None => match super::ipc::range_at(pointer) {
            Some(range) => {
                // SAFETY: the caller's promise; null means that it is not wanted.
                unsafe {
                    if !base.is_null() {
                        *base = range.start;
                    }
                    if !size.is_null() {
                        *size = (range.end - range.start) as usize;
                    }
                }
                abi::SUCCESS
            }
            // SAFETY: the caller's promise.
            None => unsafe { tracked::cuMemGetAddressRange_v2(entry, base, size, pointer) },
        },
        Some(Err(())) => abi::NOT_FOUND,
        Some(Ok((start, plain))) => {
            // SAFETY: the caller's promise; null means that it is not wanted.
            unsafe {
                if !base.is_null() {
                    *base = start;
                }
                if !size.is_null() {
                    *size = plain.requested as usize;
                }
            }
            abi::SUCCESS
        }
    }
}

/// Writes what taken-over memory answers, if it answers other than the driver would for memory of that kind.
///
/// # Safety
/// `data` can hold the attribute.
unsafe fn answer(attribute: u32, data: *mut c_void, base: u64, plain: &Plain) -> bool {
    if data.is_null() {
        return false;
    }
    // SAFETY: the caller's promise; the types are those of the documentation.
    unsafe {
        match attribute {
            abi::POINTER_CONTEXT => data.cast::<usize>().write(plain.context),
            // As the driver's own is: `ipc` hands it out.
            abi::POINTER_LEGACY_IPC_CAPABLE => data.cast::<u32>().write(1),
            abi::POINTER_RANGE_START => data.cast::<u64>().write(base),
            abi::POINTER_RANGE_SIZE => data.cast::<usize>().write(plain.requested as usize),
            // Exporting what came from cuMemAlloc is not offered, as it is not for the driver's own.
            abi::POINTER_ALLOWED_HANDLE_TYPES => data.cast::<u64>().write(0),
            _ => return false,
        }
    }
    true
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuPointerGetAttribute(
    entry: Entry,
    data: *mut c_void,
    attribute: u32,
    pointer: u64,
) -> u32 {
    let _inside = gate::enter();
    if mode::active() {
        let found = registry::lock().plain_at(pointer);
        if let Some(Ok((base, plain))) = found
            // SAFETY: the caller's promise.
            && unsafe { answer(attribute, data, base, &plain) }
        {
            return abi::SUCCESS;
        }
    }
    // SAFETY: the caller's promise.
    unsafe { tracked::cuPointerGetAttribute(entry, data, attribute, pointer) }
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuPointerGetAttributes(
    entry: Entry,
    count: u32,
    attributes: *mut u32,
    data: *mut *mut c_void,
    pointer: u64,
) -> u32 {
    let _inside = gate::enter();
    // SAFETY: the caller's promise.
    let result =
        unsafe { tracked::cuPointerGetAttributes(entry, count, attributes, data, pointer) };
    if result != abi::SUCCESS || !mode::active() {
        return result;
    }
    let found = registry::lock().plain_at(pointer);
    if let Some(Ok((base, plain))) = found {
        for i in 0..count as usize {
            // SAFETY: both arrays have `count` elements, which the driver has just read.
            unsafe { answer(*attributes.add(i), *data.add(i), base, &plain) };
        }
    }
    result
}
