//! Pinned host memory.

use std::ffi::c_void;
use std::sync::Arc;

use super::device::CudaGpu;
use crate::gpu::error::GpuError;
use crate::gpu::platform::PinnedMemory;

/// Host memory that the driver pinned.
pub(super) struct Pinned {
    gpu: Arc<CudaGpu>,
    base: *mut c_void,
}

// SAFETY: the pointer is to memory that this value owns.
unsafe impl Send for Pinned {}

impl Pinned {
    /// CU_MEMHOSTALLOC_PORTABLE: usable with all GPUs.
    pub(super) const PORTABLE: u32 = 1;

    /// Pins so many bytes.
    pub(super) fn new(gpu: &Arc<CudaGpu>, bytes: usize, flags: u32) -> Result<Pinned, GpuError> {
        let api = gpu.api;
        gpu.make_current()?;
        let mut base: *mut c_void = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        api.check("cuMemHostAlloc", unsafe {
            (api.host_alloc)(&raw mut base, bytes, flags)
        })?;
        Ok(Pinned {
            gpu: Arc::clone(gpu),
            base,
        })
    }
}

// SAFETY: the driver gave it for as many bytes as were asked for, and it is freed when this is dropped.
unsafe impl PinnedMemory for Pinned {
    fn base(&self) -> *mut u8 {
        self.base.cast()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // SAFETY: allocated by `new`; whoever uses it holds this value.
        let _ = unsafe { (self.gpu.api.host_free)(self.base) };
    }
}
