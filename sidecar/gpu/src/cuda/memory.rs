//! Device memory: mapped imports of the job's memory, memory made for a restore, snapshots.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use cudarc::driver::sys;
use phos_protocol::types::{self, GpuUuid};

use super::api::{DevicePointer, Handle};
use super::device::{CudaGpu, Export};
use crate::error::GpuError;
use crate::platform::DeviceMemory;

/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
const POSIX_FD: u32 = 1;

/// A physical allocation, mapped read-write in this process.
pub(super) struct Allocation {
    gpu: Arc<CudaGpu>,
    handle: Handle,
    address: DevicePointer,
    bytes: usize,
    fd: Option<OwnedFd>,
}

impl std::fmt::Debug for Allocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Allocation")
            .field("gpu", &self.gpu.uuid())
            .field("address", &self.address)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl Allocation {
    pub(super) fn import(
        gpu: &Arc<CudaGpu>,
        fd: OwnedFd,
        bytes: u64,
    ) -> Result<Arc<Self>, GpuError> {
        let api = gpu.api;
        gpu.make_current()?;
        let mut handle: Handle = 0;
        // SAFETY: the driver takes the fd's value in the pointer argument and does not keep the fd.
        api.check("cuMemImportFromShareableHandle", unsafe {
            (api.mem_import)(
                &raw mut handle,
                fd.as_raw_fd() as usize as *mut c_void,
                POSIX_FD,
            )
        })?;
        Self::mapped(gpu, handle, bytes, Some(fd))
    }

    /// Memory that is exported, like an allocation of the job's.
    pub(super) fn exportable(
        gpu: &Arc<CudaGpu>,
        allocation: &types::Allocation,
    ) -> Result<Arc<Self>, GpuError> {
        let (api, bytes) = (gpu.api, allocation.bytes);
        let rdma = allocation.rdma && gpu.rdma;
        let handle = Self::create(gpu, bytes, &gpu.allocation_prop(Export::Fd { rdma }))?;
        let mut raw: RawFd = -1;
        // SAFETY: the driver stores an int; `handle` was created exportable just now.
        let code = unsafe { (api.mem_export)((&raw mut raw).cast(), handle, POSIX_FD, 0) };
        if let Err(e) = api.check("cuMemExportToShareableHandle", code) {
            // SAFETY: created above and used nowhere.
            let _ = unsafe { (api.mem_release)(handle) };
            return Err(e);
        }
        // SAFETY: the driver made a new fd and gave it to us.
        let fd = unsafe { OwnedFd::from_raw_fd(raw) };
        // The driver does not promise close-on-exec.
        let _ = rustix::io::fcntl_setfd(&fd, rustix::io::FdFlags::CLOEXEC);
        Self::mapped(gpu, handle, bytes, Some(fd))
    }

    /// Memory of this process alone.
    pub(super) fn scratch(gpu: &Arc<CudaGpu>, bytes: u64) -> Result<Arc<Self>, GpuError> {
        let bytes = bytes.max(1).div_ceil(gpu.granularity) * gpu.granularity;
        let handle = Self::create(gpu, bytes, &gpu.allocation_prop(Export::None))?;
        Self::mapped(gpu, handle, bytes, None)
    }

    fn create(
        gpu: &CudaGpu,
        bytes: u64,
        prop: &sys::CUmemAllocationProp,
    ) -> Result<Handle, GpuError> {
        gpu.make_current()?;
        let mut handle: Handle = 0;
        // SAFETY: pointers are valid for the call.
        gpu.api.check("cuMemCreate", unsafe {
            (gpu.api.mem_create)(&raw mut handle, bytes as usize, &raw const *prop, 0)
        })?;
        Ok(handle)
    }

    fn mapped(
        gpu: &Arc<CudaGpu>,
        handle: Handle,
        bytes: u64,
        fd: Option<OwnedFd>,
    ) -> Result<Arc<Self>, GpuError> {
        let bytes = bytes as usize;
        match gpu.map(handle, bytes) {
            Ok(address) => Ok(Arc::new(Allocation {
                gpu: Arc::clone(gpu),
                handle,
                address,
                bytes,
                fd,
            })),
            Err(e) => {
                // SAFETY: the handle is ours and not mapped.
                let _ = unsafe { (gpu.api.mem_release)(handle) };
                Err(e)
            }
        }
    }

    /// The device address of `offset`, or none if `offset + len` is outside.
    pub(super) fn address(&self, offset: u64, len: u64) -> Option<DevicePointer> {
        let end = offset.checked_add(len)?;
        (end <= self.bytes as u64).then(|| self.address + offset)
    }
}

impl DeviceMemory for Allocation {
    fn gpu(&self) -> GpuUuid {
        self.gpu.uuid()
    }

    fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    fn base(&self) -> u64 {
        self.address
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.gpu.unmap(self.address, self.bytes);
        // SAFETY: the handle is ours; after the unmap above nothing uses it.
        let _ = unsafe { (self.gpu.api.mem_release)(self.handle) };
    }
}
