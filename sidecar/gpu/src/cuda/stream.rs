//! A non-blocking stream and its events.

use std::sync::Arc;

use cudarc::driver::sys;

use super::device::CudaGpu;
use crate::error::GpuError;
use crate::stream::{Event, Queue};

/// CU_STREAM_NON_BLOCKING.
const NON_BLOCKING: u32 = 1;
/// CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING.
const EVENT_FLAGS: u32 = 3;

/// The driver's stream. Lives as long as anything that may issue to it, and its events.
struct Handle {
    gpu: Arc<CudaGpu>,
    raw: sys::CUstream,
}

// SAFETY: streams may be used from any thread; the driver serialises.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

impl Handle {
    fn synchronize(&self) -> Result<(), GpuError> {
        self.gpu.make_current()?;
        // SAFETY: the stream is ours.
        self.gpu.api.check("cuStreamSynchronize", unsafe {
            (self.gpu.api.stream_synchronize)(self.raw)
        })
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.synchronize();
        // SAFETY: ours, and idle.
        let _ = unsafe { (self.gpu.api.stream_destroy)(self.raw) };
    }
}

/// A stream of copies on one GPU.
pub(super) struct CudaStream(Arc<Handle>);

impl CudaStream {
    /// A new stream.
    ///
    /// # Errors
    /// The driver call failed.
    pub(super) fn new(gpu: &Arc<CudaGpu>) -> Result<CudaStream, GpuError> {
        gpu.make_current()?;
        let mut raw: sys::CUstream = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        gpu.api.check("cuStreamCreate", unsafe {
            (gpu.api.stream_create)(&raw mut raw, NON_BLOCKING)
        })?;
        Ok(CudaStream(Arc::new(Handle {
            gpu: Arc::clone(gpu),
            raw,
        })))
    }

    /// The GPU on which the stream issues its copies.
    pub(super) fn gpu(&self) -> &Arc<CudaGpu> {
        &self.0.gpu
    }

    /// The stream as the driver knows it.
    pub(super) fn raw(&self) -> sys::CUstream {
        self.0.raw
    }
}

impl Queue for CudaStream {
    unsafe fn to_host(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), GpuError> {
        let Handle { gpu, raw } = &*self.0;
        // SAFETY: the caller vouches for both sides.
        gpu.api.check("cuMemcpyDtoHAsync", unsafe {
            (gpu.api.copy_to_host)(to.cast(), from, bytes, *raw)
        })
    }

    unsafe fn to_device(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), GpuError> {
        let Handle { gpu, raw } = &*self.0;
        // SAFETY: the caller vouches for both sides.
        gpu.api.check("cuMemcpyHtoDAsync", unsafe {
            (gpu.api.copy_to_device)(to, from.cast(), bytes, *raw)
        })
    }

    unsafe fn on_device(&self, from: u64, to: u64, bytes: usize) -> Result<(), GpuError> {
        let Handle { gpu, raw } = &*self.0;
        // SAFETY: the caller vouches for both sides.
        gpu.api.check("cuMemcpyDtoDAsync", unsafe {
            (gpu.api.copy_on_device)(to, from, bytes, *raw)
        })
    }

    /// Makes the context current as well: what is issued next needs that.
    fn event(&self) -> Result<Box<dyn Event>, GpuError> {
        let gpu = &self.0.gpu;
        gpu.make_current()?;
        let mut raw: sys::CUevent = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        gpu.api.check("cuEventCreate", unsafe {
            (gpu.api.event_create)(&raw mut raw, EVENT_FLAGS)
        })?;
        Ok(Box::new(CudaEvent {
            stream: Arc::clone(&self.0),
            raw,
        }))
    }

    fn synchronize(&self) -> Result<(), GpuError> {
        self.0.synchronize()
    }
}

/// An event of a stream.
struct CudaEvent {
    stream: Arc<Handle>,
    raw: sys::CUevent,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for CudaEvent {}

impl Event for CudaEvent {
    fn record(&mut self) -> Result<(), GpuError> {
        let Handle { gpu, raw } = &*self.stream;
        // SAFETY: both are alive: this value holds the stream.
        gpu.api.check("cuEventRecord", unsafe {
            (gpu.api.event_record)(self.raw, *raw)
        })
    }

    fn wait(&self) -> Result<(), GpuError> {
        let gpu = &self.stream.gpu;
        gpu.make_current()?;
        // SAFETY: the event is ours; one that was never recorded has nothing to wait for.
        gpu.api.check("cuEventSynchronize", unsafe {
            (gpu.api.event_synchronize)(self.raw)
        })
    }
}

impl Drop for CudaEvent {
    fn drop(&mut self) {
        // SAFETY: ours, and no longer waited for.
        let _ = unsafe { (self.stream.gpu.api.event_destroy)(self.raw) };
    }
}
