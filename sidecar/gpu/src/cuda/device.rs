//! The driver and one GPU: discovery, the context, memory information.
//!
//! # Rules
//!
//! * The sidecar uses each GPU's primary context with lowered limits, so that it costs the job as
//!   little device memory as possible.
//! * Every method makes the context current itself: a [`CudaGpu`] may be used from any thread.
//! * Nothing here is called by the agent, which has no context.

use std::ffi::{c_char, c_int};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use cudarc::driver::sys;
use phos_protocol::types::{self, GpuUuid};

use super::api::{Api, Context, DevicePointer, Handle};
use super::digest::Kernel;
use super::memory::Allocation;
use super::pinned::Registered;
use super::stream::CudaStream;
use crate::error::GpuError;
use crate::platform::{DeviceMemory, Digester, Gpu, GpuInfo, MemoryInfo, PinnedMemory, Platform};
use crate::stream::Stream;

/// The driver, loaded and initialised in this process.
#[derive(Clone, Copy)]
pub struct Driver {
    api: &'static Api,
}

impl Driver {
    /// Loads and initialises the driver.
    ///
    /// # Errors
    /// No driver, a driver without an entry point that is needed, or `cuInit` failed.
    pub fn load() -> Result<Driver, GpuError> {
        let api = Api::get()?;
        // SAFETY: cuInit may be called any number of times.
        api.check("cuInit", unsafe { (api.init)(0) })?;
        Ok(Driver { api })
    }

    fn info(&self, ordinal: i32) -> Result<GpuInfo, GpuError> {
        let api = self.api;
        let device = self.device(ordinal)?;
        let mut uuid = sys::CUuuid { bytes: [0; 16] };
        // SAFETY: the pointer is valid for the call.
        api.check("cuDeviceGetUuid", unsafe {
            (api.device_get_uuid)(&raw mut uuid, device)
        })?;
        let mut name = [0 as c_char; 128];
        // SAFETY: the buffer has 128 bytes; the driver terminates the string.
        api.check("cuDeviceGetName", unsafe {
            (api.device_get_name)(name.as_mut_ptr(), 128, device)
        })?;
        let mut total = 0_usize;
        // SAFETY: the pointer is valid for the call.
        api.check("cuDeviceTotalMem", unsafe {
            (api.device_total_mem)(&raw mut total, device)
        })?;
        let name = name
            .iter()
            .take_while(|&&c| c != 0)
            .map(|&c| c.to_ne_bytes()[0])
            .collect::<Vec<u8>>();
        Ok(GpuInfo {
            ordinal,
            uuid: GpuUuid(uuid.bytes.map(|b| b.to_ne_bytes()[0])),
            name: String::from_utf8_lossy(&name).into_owned(),
            total_bytes: total as u64,
            // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR.
            compute: (
                self.attribute(device, 75).unwrap_or(0),
                self.attribute(device, 76).unwrap_or(0),
            ),
        })
    }

    fn attribute(&self, device: sys::CUdevice, attribute: u32) -> Result<u32, GpuError> {
        let mut value: c_int = 0;
        // SAFETY: the pointer is valid for the call.
        self.api.check("cuDeviceGetAttribute", unsafe {
            (self.api.device_get_attribute)(&raw mut value, attribute, device)
        })?;
        Ok(u32::try_from(value).unwrap_or(0))
    }

    fn device(&self, ordinal: i32) -> Result<sys::CUdevice, GpuError> {
        let mut device: sys::CUdevice = 0;
        // SAFETY: the pointer is valid for the call.
        self.api.check("cuDeviceGet", unsafe {
            (self.api.device_get)(&raw mut device, ordinal)
        })?;
        Ok(device)
    }
}

impl Platform for Driver {
    fn version(&self) -> Result<u32, GpuError> {
        let mut version: c_int = 0;
        // SAFETY: the pointer is valid for the call.
        self.api.check("cuDriverGetVersion", unsafe {
            (self.api.driver_get_version)(&raw mut version)
        })?;
        Ok(u32::try_from(version).unwrap_or(0))
    }

    fn gpus(&self) -> Result<Vec<GpuInfo>, GpuError> {
        let api = self.api;
        let mut count: c_int = 0;
        // SAFETY: the pointer is valid for the call.
        api.check("cuDeviceGetCount", unsafe {
            (api.device_get_count)(&raw mut count)
        })?;
        (0..count).map(|ordinal| self.info(ordinal)).collect()
    }

    fn open(&self, info: &GpuInfo) -> Result<Arc<dyn Gpu>, GpuError> {
        let api = self.api;
        let device = self.device(info.ordinal)?;
        let mut context: Context = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call; the context is released in `Drop`.
        api.check("cuDevicePrimaryCtxRetain", unsafe {
            (api.primary_retain)(&raw mut context, device)
        })?;
        let mut gpu = CudaGpu {
            api,
            device,
            context,
            info: info.clone(),
            granularity: 0,
            // CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED.
            rdma: self.attribute(device, 110).unwrap_or(0) != 0,
        };
        gpu.make_current()?;
        // Stack, printf buffer and malloc heap: 520 → 322 MiB on an H200. Only an economy, so a
        // refusal is ignored.
        for (limit, value) in [(0, 512), (1, 4096), (2, 4096)] {
            // SAFETY: the context is current; limits of our own context concern only our kernels.
            let _ = unsafe { (api.ctx_set_limit)(limit, value) };
        }
        let mut granularity = 0_usize;
        let prop = gpu.allocation_prop(Export::Fd { rdma: false });
        // SAFETY: pointers are valid for the call; 0 asks for the minimum granularity.
        api.check("cuMemGetAllocationGranularity", unsafe {
            (api.mem_get_granularity)(&raw mut granularity, &raw const prop, 0)
        })?;
        gpu.granularity = granularity.max(1) as u64;
        Ok(Arc::new(gpu))
    }
}

/// Whether memory that is created can be given to another process.
#[derive(Debug, Clone, Copy)]
pub(super) enum Export {
    /// It cannot be exported.
    None,
    /// By a file descriptor; and network cards reach it.
    Fd { rdma: bool },
}

/// A GPU with the sidecar's context on it.
pub(super) struct CudaGpu {
    pub(super) api: &'static Api,
    device: sys::CUdevice,
    context: Context,
    info: GpuInfo,
    /// The unit in which memory is created, in bytes.
    pub(super) granularity: u64,
    /// Whether network cards reach memory that is created for that.
    pub(super) rdma: bool,
}

// SAFETY: the driver's contexts and handles may be used from any thread; every method makes the
// context current on the calling thread first, and nothing else in here is mutable.
unsafe impl Send for CudaGpu {}
// SAFETY: as above; the driver serialises calls itself.
unsafe impl Sync for CudaGpu {}

impl std::fmt::Debug for CudaGpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gpu")
            .field("info", &self.info)
            .finish_non_exhaustive()
    }
}

impl CudaGpu {
    /// The GPU's UUID.
    pub(super) fn uuid(&self) -> GpuUuid {
        self.info.uuid
    }

    pub(super) fn make_current(&self) -> Result<(), GpuError> {
        // SAFETY: the context lives as long as `self`.
        self.api.check("cuCtxSetCurrent", unsafe {
            (self.api.ctx_set_current)(self.context)
        })
    }

    pub(super) fn allocation_prop(&self, export: Export) -> sys::CUmemAllocationProp {
        use sys::CUmemAllocationHandleType as Type;
        let (handle_type, rdma) = match export {
            Export::None => (Type::CU_MEM_HANDLE_TYPE_NONE, false),
            Export::Fd { rdma } => (Type::CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, rdma),
        };
        sys::CUmemAllocationProp {
            type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
            requestedHandleTypes: handle_type,
            location: self.location(),
            win32HandleMetaData: std::ptr::null_mut(),
            allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
                compressionType: 0,
                gpuDirectRDMACapable: u8::from(rdma),
                usage: 0,
                reserved: [0; 4],
            },
        }
    }

    pub(super) fn location(&self) -> sys::CUmemLocation {
        sys::CUmemLocation {
            type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
            id: self.device,
        }
    }

    /// Reserves an address range, maps the handle there and makes it readable and writable.
    pub(super) fn map(&self, handle: Handle, bytes: usize) -> Result<DevicePointer, GpuError> {
        let api = self.api;
        self.make_current()?;
        let mut address: DevicePointer = 0;
        // SAFETY: the pointer is valid for the call; address 0 lets the driver choose.
        api.check("cuMemAddressReserve", unsafe {
            (api.mem_reserve)(&raw mut address, bytes, 0, 0, 0)
        })?;
        // SAFETY: the range was just reserved with this size, the handle covers `bytes`.
        let mapped = api.check("cuMemMap", unsafe {
            (api.mem_map)(address, bytes, 0, handle, 0)
        });
        if let Err(e) = mapped {
            // SAFETY: nothing is mapped in the range.
            let _ = unsafe { (api.mem_address_free)(address, bytes) };
            return Err(e);
        }
        let access = sys::CUmemAccessDesc {
            location: self.location(),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        };
        // SAFETY: the whole range is mapped.
        let set = api.check("cuMemSetAccess", unsafe {
            (api.mem_set_access)(address, bytes, &raw const access, 1)
        });
        if let Err(e) = set {
            self.unmap(address, bytes);
            return Err(e);
        }
        Ok(address)
    }

    pub(super) fn unmap(&self, address: DevicePointer, bytes: usize) {
        if self.make_current().is_err() {
            return;
        }
        // SAFETY: the range was mapped by `map`; the caller made sure that no work uses it.
        unsafe {
            let _ = (self.api.mem_unmap)(address, bytes);
            let _ = (self.api.mem_address_free)(address, bytes);
        }
    }
}

impl Gpu for CudaGpu {
    fn info(&self) -> &GpuInfo {
        &self.info
    }

    fn memory(&self) -> Result<MemoryInfo, GpuError> {
        self.make_current()?;
        let (mut free, mut total) = (0_usize, 0_usize);
        // SAFETY: pointers are valid for the call.
        self.api.check("cuMemGetInfo", unsafe {
            (self.api.mem_get_info)(&raw mut free, &raw mut total)
        })?;
        Ok(MemoryInfo {
            free: free as u64,
            total: total as u64,
        })
    }

    fn import(self: Arc<Self>, fd: OwnedFd, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        Ok(Allocation::import(&self, fd, bytes)?)
    }

    fn create(
        self: Arc<Self>,
        allocation: &types::Allocation,
    ) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        Ok(Allocation::exportable(&self, allocation)?)
    }

    fn scratch(self: Arc<Self>, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError> {
        Ok(Allocation::scratch(&self, bytes)?)
    }

    fn stream(self: Arc<Self>) -> Result<Stream, GpuError> {
        Ok(Stream::new(Box::new(CudaStream::new(&self)?)))
    }

    fn digester(self: Arc<Self>) -> Result<Box<dyn Digester>, GpuError> {
        Ok(Box::new(Kernel::new(&self)?))
    }

    fn pin(self: Arc<Self>, bytes: usize) -> Result<Box<dyn PinnedMemory>, GpuError> {
        Ok(Box::new(Registered::new(&self, bytes)?))
    }
}

impl Drop for CudaGpu {
    fn drop(&mut self) {
        // SAFETY: retained in `open`; everything made in the context holds an `Arc` of this.
        let _ = unsafe { (self.api.primary_release)(self.device) };
    }
}
