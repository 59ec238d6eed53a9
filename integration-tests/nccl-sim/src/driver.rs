//! The driver's functions, by `dlopen` and `dlsym`.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// A function that a stream calls on the host.
pub type HostFunction = unsafe extern "C" fn(*mut c_void);

type AllocHost = unsafe extern "C" fn(*mut *mut c_void, usize, u32) -> u32;
type ToHost = unsafe extern "C" fn(*mut c_void, u64, usize, *mut c_void) -> u32;
type ToDevice = unsafe extern "C" fn(u64, *const c_void, usize, *mut c_void) -> u32;
type CallHost = unsafe extern "C" fn(*mut c_void, HostFunction, *mut c_void) -> u32;
type IsCapturing = unsafe extern "C" fn(*mut c_void, *mut i32) -> u32;

/// What is used of the driver.
pub struct Driver {
    alloc_host: AllocHost,
    to_host: ToHost,
    to_device: ToDevice,
    host_function: CallHost,
    is_capturing: IsCapturing,
}

/// The driver, if the process has one.
pub fn get() -> Option<&'static Driver> {
    static DRIVER: OnceLock<Option<Driver>> = OnceLock::new();
    DRIVER.get_or_init(load).as_ref()
}

fn load() -> Option<Driver> {
    // SAFETY: a terminated name; the library is in the process already, and its initialisers have run.
    let library = unsafe { libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_LAZY) };
    if library.is_null() {
        return None;
    }
    let find = |name: &CStr| {
        // SAFETY: a handle of dlopen and a terminated name.
        let found = unsafe { libc::dlsym(library, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    };
    // SAFETY: the addresses are those of the driver's functions of these names, whose C signatures stand above.
    unsafe {
        Some(Driver {
            alloc_host: std::mem::transmute::<*mut c_void, AllocHost>(find(c"cuMemHostAlloc")?),
            to_host: std::mem::transmute::<*mut c_void, ToHost>(find(c"cuMemcpyDtoHAsync_v2")?),
            to_device: std::mem::transmute::<*mut c_void, ToDevice>(find(c"cuMemcpyHtoDAsync_v2")?),
            host_function: std::mem::transmute::<*mut c_void, CallHost>(find(c"cuLaunchHostFunc")?),
            is_capturing: std::mem::transmute::<*mut c_void, IsCapturing>(find(
                c"cuStreamIsCapturing",
            )?),
        })
    }
}

impl Driver {
    /// Page-locked memory, which is never given back.
    pub fn alloc_host(&self, bytes: usize) -> Option<*mut c_void> {
        let mut at = std::ptr::null_mut();
        // SAFETY: writes one pointer.
        let result = unsafe { (self.alloc_host)(&raw mut at, bytes, 0) };
        (result == 0).then_some(at)
    }

    /// Copies to page-locked memory, in the stream.
    pub fn to_host(&self, to: *mut c_void, from: u64, bytes: usize, stream: *mut c_void) -> bool {
        // SAFETY: page-locked memory that is nobody else's until the stream has come that far.
        unsafe { (self.to_host)(to, from, bytes, stream) == 0 }
    }

    /// Copies from page-locked memory, in the stream.
    pub fn to_device(
        &self,
        to: u64,
        from: *const c_void,
        bytes: usize,
        stream: *mut c_void,
    ) -> bool {
        // SAFETY: as above.
        unsafe { (self.to_device)(to, from, bytes, stream) == 0 }
    }

    /// Has the stream call a function.
    pub fn call(&self, stream: *mut c_void, function: HostFunction, with: *mut c_void) -> bool {
        // SAFETY: what the function is called with is there when it is.
        unsafe { (self.host_function)(stream, function, with) == 0 }
    }

    /// Whether what is enqueued is captured.
    pub fn is_capturing(&self, stream: *mut c_void) -> bool {
        let mut status = 0;
        // SAFETY: writes one integer.
        unsafe { (self.is_capturing)(stream, &raw mut status) == 0 && status != 0 }
    }
}
