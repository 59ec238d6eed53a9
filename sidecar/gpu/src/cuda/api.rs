//! The driver's entry points, loaded once from `libcuda.so.1`.
//!
//! # Rules
//!
//! * Results are received as `u32`: a newer driver may return a code that cudarc's enum lacks.
//! * A missing library or symbol is an error with a remedy, never a panic: cudarc's own functions
//!   panic, so only its types and its library handle are used.
//! * Nothing outside `gpu/cuda/` sees this module.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};
use std::sync::OnceLock;

use cudarc::driver::sys;

use crate::error::{CallKind, GpuError};

pub(super) type Context = sys::CUcontext;
pub(super) type DevicePointer = sys::CUdeviceptr;
pub(super) type Handle = sys::CUmemGenericAllocationHandle;

macro_rules! entry_points {
    ($( $(#[$doc:meta])* $field:ident = $symbol:literal ( $($arg:ty),* $(,)? ); )*) => {
        /// Function pointers into the driver; they stay valid because the library is never unloaded.
        pub(super) struct Api {
            $( $(#[$doc])* pub(super) $field: unsafe extern "C" fn($($arg),*) -> u32, )*
        }

        impl Api {
            fn load() -> Result<Api, GpuError> {
                // SAFETY: loads `libcuda.so.1` and runs its constructors, as every CUDA program does.
                if !unsafe { sys::is_culib_present() } {
                    return Err(GpuError::NoDriver);
                }
                // SAFETY: the library is present, so this does not panic.
                let library = unsafe { sys::culib() };
                Ok(Api {
                    $( $field: {
                        // SAFETY: the type is that of the entry point in cuda.h with this name.
                        let found = unsafe {
                            library.get::<unsafe extern "C" fn($($arg),*) -> u32>($symbol.as_bytes())
                        };
                        *found.map_err(|_| GpuError::MissingSymbol($symbol))?
                    }, )*
                })
            }
        }
    };
}

entry_points! {
    init = "cuInit"(c_uint);
    driver_get_version = "cuDriverGetVersion"(*mut c_int);
    get_error_name = "cuGetErrorName"(u32, *mut *const c_char);
    device_get_count = "cuDeviceGetCount"(*mut c_int);
    device_get = "cuDeviceGet"(*mut sys::CUdevice, c_int);
    device_get_uuid = "cuDeviceGetUuid_v2"(*mut sys::CUuuid, sys::CUdevice);
    device_get_name = "cuDeviceGetName"(*mut c_char, c_int, sys::CUdevice);
    device_total_mem = "cuDeviceTotalMem_v2"(*mut usize, sys::CUdevice);
    device_get_attribute = "cuDeviceGetAttribute"(*mut c_int, c_uint, sys::CUdevice);
    primary_retain = "cuDevicePrimaryCtxRetain"(*mut Context, sys::CUdevice);
    primary_release = "cuDevicePrimaryCtxRelease_v2"(sys::CUdevice);
    ctx_set_current = "cuCtxSetCurrent"(Context);
    ctx_set_limit = "cuCtxSetLimit"(c_uint, usize);
    mem_get_info = "cuMemGetInfo_v2"(*mut usize, *mut usize);
    mem_get_granularity = "cuMemGetAllocationGranularity"(*mut usize, *const sys::CUmemAllocationProp, c_uint);
    mem_create = "cuMemCreate"(*mut Handle, usize, *const sys::CUmemAllocationProp, c_ulonglong);
    mem_release = "cuMemRelease"(Handle);
    mem_reserve = "cuMemAddressReserve"(*mut DevicePointer, usize, usize, DevicePointer, c_ulonglong);
    mem_address_free = "cuMemAddressFree"(DevicePointer, usize);
    mem_map = "cuMemMap"(DevicePointer, usize, usize, Handle, c_ulonglong);
    mem_unmap = "cuMemUnmap"(DevicePointer, usize);
    mem_set_access = "cuMemSetAccess"(DevicePointer, usize, *const sys::CUmemAccessDesc, usize);
    mem_export = "cuMemExportToShareableHandle"(*mut c_void, Handle, c_uint, c_ulonglong);
    mem_import = "cuMemImportFromShareableHandle"(*mut Handle, *mut c_void, c_uint);
    host_alloc = "cuMemHostAlloc"(*mut *mut c_void, usize, c_uint);
    host_free = "cuMemFreeHost"(*mut c_void);
    host_register = "cuMemHostRegister_v2"(*mut c_void, usize, c_uint);
    host_unregister = "cuMemHostUnregister"(*mut c_void);
    copy_to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, DevicePointer, usize, sys::CUstream);
    copy_to_device = "cuMemcpyHtoDAsync_v2"(DevicePointer, *const c_void, usize, sys::CUstream);
    copy_on_device = "cuMemcpyDtoDAsync_v2"(DevicePointer, DevicePointer, usize, sys::CUstream);
    stream_create = "cuStreamCreate"(*mut sys::CUstream, c_uint);
    stream_synchronize = "cuStreamSynchronize"(sys::CUstream);
    stream_destroy = "cuStreamDestroy_v2"(sys::CUstream);
    event_create = "cuEventCreate"(*mut sys::CUevent, c_uint);
    event_record = "cuEventRecord"(sys::CUevent, sys::CUstream);
    event_synchronize = "cuEventSynchronize"(sys::CUevent);
    event_destroy = "cuEventDestroy_v2"(sys::CUevent);
    module_load_data = "cuModuleLoadData"(*mut sys::CUmodule, *const c_void);
    module_unload = "cuModuleUnload"(sys::CUmodule);
    module_get_function = "cuModuleGetFunction"(*mut sys::CUfunction, sys::CUmodule, *const c_char);
    launch_kernel = "cuLaunchKernel"(
        sys::CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint,
        sys::CUstream, *mut *mut c_void, *mut *mut c_void,
    );
}

impl Api {
    /// The driver, loaded at the first call. A failure is remembered: the library does not appear
    /// while the process runs.
    pub(super) fn get() -> Result<&'static Api, GpuError> {
        static API: OnceLock<Result<Api, GpuError>> = OnceLock::new();
        API.get_or_init(Api::load).as_ref().map_err(Clone::clone)
    }

    /// Turns a result into an error that names the call.
    pub(super) fn check(&self, call: &'static str, code: u32) -> Result<(), GpuError> {
        if code == 0 {
            return Ok(());
        }
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: `name` is a valid place; the driver stores a static string or leaves it null.
        let text = unsafe {
            if (self.get_error_name)(code, &raw mut name) == 0 && !name.is_null() {
                std::ffi::CStr::from_ptr(name)
                    .to_string_lossy()
                    .into_owned()
            } else {
                String::from("unknown error")
            }
        };
        let kind = kind_of(code);
        Err(GpuError::Call {
            call,
            code,
            text,
            kind,
        })
    }
}

/// Sorts a `CUresult` by what it means for the caller.
fn kind_of(code: u32) -> CallKind {
    match code {
        2 => CallKind::OutOfMemory,
        // Deinitialised, device unavailable, invalid context, ECC and NVLink errors, and everything
        // from illegal address to launch failure; 999 is "unknown".
        4 | 46 | 201 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 999 => {
            CallKind::Sticky
        }
        _ => CallKind::Other,
    }
}
