//! Device memory: mapped imports of the job's memory, memory made for a restore, snapshots.
//!
//! # Rules
//!
//! * An imported handle cannot be exported again, and memory we create is exported once: the fd is
//!   kept beside the mapping for as long as somebody may need it.
//! * A mapping is held by `Arc`; work in flight holds a clone, so nothing is unmapped under a copy.

use std::ffi::c_void;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::api::{DevicePointer, Handle};
use super::device::Gpu;
use super::error::GpuError;

/// CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR.
const POSIX_FD: u32 = 1;

/// A physical allocation, mapped read-write in this process.
pub struct DeviceMemory {
    gpu: Arc<Gpu>,
    handle: Handle,
    address: DevicePointer,
    bytes: usize,
    fd: Option<OwnedFd>,
}

impl std::fmt::Debug for DeviceMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DeviceMemory")
            .field("gpu", &self.gpu.uuid())
            .field("address", &self.address)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl DeviceMemory {
    pub(super) fn import(gpu: &Arc<Gpu>, fd: OwnedFd, bytes: u64) -> Result<Arc<Self>, GpuError> {
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

    pub(super) fn create(
        gpu: &Arc<Gpu>,
        bytes: u64,
        exportable: bool,
        rdma: bool,
    ) -> Result<Arc<Self>, GpuError> {
        let api = gpu.api;
        gpu.make_current()?;
        let prop = gpu.allocation_prop(exportable, rdma);
        let mut handle: Handle = 0;
        // SAFETY: pointers are valid for the call.
        api.check("cuMemCreate", unsafe {
            (api.mem_create)(&raw mut handle, bytes as usize, &raw const prop, 0)
        })?;
        let mut fd = None;
        if exportable {
            let mut raw: RawFd = -1;
            // SAFETY: the driver stores an int; `handle` was created exportable just now.
            let code = unsafe { (api.mem_export)((&raw mut raw).cast(), handle, POSIX_FD, 0) };
            if let Err(e) = api.check("cuMemExportToShareableHandle", code) {
                // SAFETY: created above and used nowhere.
                let _ = unsafe { (api.mem_release)(handle) };
                return Err(e);
            }
            // SAFETY: the driver made a new fd and gave it to us.
            let owned = unsafe { OwnedFd::from_raw_fd(raw) };
            // The driver does not promise close-on-exec.
            let _ = rustix::io::fcntl_setfd(&owned, rustix::io::FdFlags::CLOEXEC);
            fd = Some(owned);
        }
        Self::mapped(gpu, handle, bytes, fd)
    }

    fn mapped(
        gpu: &Arc<Gpu>,
        handle: Handle,
        bytes: u64,
        fd: Option<OwnedFd>,
    ) -> Result<Arc<Self>, GpuError> {
        let bytes = bytes as usize;
        match gpu.map(handle, bytes) {
            Ok(address) => Ok(Arc::new(DeviceMemory {
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

    /// The GPU it lies on.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Its size.
    pub fn bytes(&self) -> u64 {
        self.bytes as u64
    }

    /// The fd that stands for it, of imported and exportable memory.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.fd.as_ref().map(AsFd::as_fd)
    }

    /// The device address of `offset`, or none if `offset + len` is outside.
    pub(super) fn address(&self, offset: u64, len: u64) -> Option<DevicePointer> {
        let end = offset.checked_add(len)?;
        (end <= self.bytes as u64).then(|| self.address + offset)
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        self.gpu.unmap(self.address, self.bytes);
        // SAFETY: the handle is ours; after the unmap above nothing uses it.
        let _ = unsafe { (self.gpu.api.mem_release)(self.handle) };
    }
}

/// A part of some device memory.
#[derive(Debug, Clone)]
pub struct Range {
    /// The memory.
    pub memory: Arc<DeviceMemory>,
    /// Where it begins.
    pub offset: u64,
    /// How long it is.
    pub len: u64,
}

impl Range {
    /// The device address, checked against the memory's size.
    pub(super) fn address(&self) -> Result<DevicePointer, GpuError> {
        self.memory
            .address(self.offset, self.len)
            .ok_or(GpuError::Call {
                call: "range check",
                code: 1,
                text: format!(
                    "{}+{} is outside an allocation of {} bytes",
                    self.offset,
                    self.len,
                    self.memory.bytes()
                ),
            })
    }
}
