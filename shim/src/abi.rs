//! Types and constants of the driver's C interface: integers and pointers, no Rust enums.

use std::ffi::c_void;

/// Any opaque driver object: context, stream, event, graph.
pub type Handle = *mut c_void;

pub const SUCCESS: u32 = 0;
pub const INVALID_VALUE: u32 = 1;
pub const OUT_OF_MEMORY: u32 = 2;
pub const NOT_INITIALIZED: u32 = 3;
pub const INVALID_DEVICE: u32 = 101;
pub const INVALID_CONTEXT: u32 = 201;
pub const MAP_FAILED: u32 = 205;
pub const INVALID_HANDLE: u32 = 400;
pub const NOT_FOUND: u32 = 500;
pub const CONTEXT_IS_DESTROYED: u32 = 709;
pub const NOT_SUPPORTED: u32 = 801;
pub const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
pub const STREAM_CAPTURE_WRONG_THREAD: u32 = 908;

pub const LOCATION_DEVICE: u32 = 1;
pub const ALLOCATION_PINNED: u32 = 1;
pub const HANDLE_POSIX_FD: u32 = 1;
pub const HANDLE_FABRIC: u32 = 8;
pub const ACCESS_NONE: u32 = 0;
pub const ACCESS_READ_WRITE: u32 = 3;
pub const CAPTURE_RELAXED: u32 = 2;

pub const DEVICE_VMM_SUPPORTED: u32 = 102;
pub const DEVICE_POSIX_FD_SUPPORTED: u32 = 103;
pub const DEVICE_RDMA_WITH_VMM_SUPPORTED: u32 = 110;

pub const POINTER_CONTEXT: u32 = 1;
pub const POINTER_LEGACY_IPC_CAPABLE: u32 = 10;
pub const POINTER_RANGE_START: u32 = 11;
pub const POINTER_RANGE_SIZE: u32 = 12;
pub const POINTER_ALLOWED_HANDLE_TYPES: u32 = 14;

/// The driver's `CUmemLocation`: a place that memory can lie in.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemLocation {
    pub kind: u32,
    pub id: i32,
}

/// `CUipcMemHandle` and `CUipcEventHandle`: 64 opaque bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct IpcHandle(pub [u8; 64]);

/// `CUmemAllocationProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct AllocationProp {
    pub kind: u32,
    pub requested_handle_types: u32,
    pub location: MemLocation,
    pub win32_meta_data: *mut c_void,
    pub compression: u8,
    pub rdma: u8,
    pub usage: u16,
    pub reserved: [u8; 4],
}

impl AllocationProp {
    /// Pinned memory of `device` that can be exported as a file descriptor, and that network cards do not reach.
    pub fn exportable(device: i32) -> Self {
        Self {
            kind: ALLOCATION_PINNED,
            requested_handle_types: HANDLE_POSIX_FD,
            location: MemLocation {
                kind: LOCATION_DEVICE,
                id: device,
            },
            win32_meta_data: std::ptr::null_mut(),
            compression: 0,
            rdma: 0,
            usage: 0,
            reserved: [0; 4],
        }
    }
}

/// The driver's `CUmemAccessDesc`: the rights that one location has to memory.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccessDesc {
    pub location: MemLocation,
    pub flags: u32,
}

impl AccessDesc {
    /// Access of one device.
    pub fn device(device: i32, flags: u32) -> Self {
        Self {
            location: MemLocation {
                kind: LOCATION_DEVICE,
                id: device,
            },
            flags,
        }
    }
}

/// `CUmulticastObjectProp`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct MulticastProp {
    /// How many devices take part.
    pub devices: u32,
    /// The size of the object in bytes.
    pub size: usize,
    pub handle_types: u64,
    pub flags: u64,
}

const _: () = assert!(size_of::<MulticastProp>() == 32);
const _: () = assert!(size_of::<AllocationProp>() == 32);
const _: () = assert!(size_of::<AccessDesc>() == 12);
