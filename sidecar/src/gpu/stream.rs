//! Copies between device and pinned host memory, and on the device, on a non-blocking stream.
//!
//! # Rules
//!
//! * A copy in flight is a [`Pending`] that owns the host slots and holds the device memory: both
//!   outlive the copy whatever the caller does. Dropping it waits.
//! * Two or more copies are kept in flight by the callers; here is no policy.

use std::sync::Arc;

use cudarc::driver::sys;

use super::device::Gpu;
use super::error::GpuError;
use super::host::{HostRun, SLOT};
use super::memory::Range;

/// CU_STREAM_NON_BLOCKING.
const NON_BLOCKING: u32 = 1;
/// CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING.
const EVENT_FLAGS: u32 = 3;

/// A stream of copies on one GPU.
pub struct Stream {
    gpu: Arc<Gpu>,
    pub(super) raw: sys::CUstream,
}

// SAFETY: streams may be used from any thread; the driver serialises.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

/// Work in flight.
#[must_use]
pub struct Pending {
    gpu: Arc<Gpu>,
    event: sys::CUevent,
    run: Option<HostRun>,
    _memory: Vec<Range>,
    waited: bool,
}

// SAFETY: events may be used from any thread.
unsafe impl Send for Pending {}

impl Stream {
    /// A new stream.
    ///
    /// # Errors
    /// The driver call failed.
    pub fn new(gpu: &Arc<Gpu>) -> Result<Stream, GpuError> {
        gpu.make_current()?;
        let mut raw: sys::CUstream = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        gpu.api.check("cuStreamCreate", unsafe {
            (gpu.api.stream_create)(&raw mut raw, NON_BLOCKING)
        })?;
        Ok(Stream {
            gpu: Arc::clone(gpu),
            raw,
        })
    }

    /// The GPU.
    pub fn gpu(&self) -> &Arc<Gpu> {
        &self.gpu
    }

    /// Device → host: range `i` into slot `i` of the run. Neighbouring full ranges become one copy.
    ///
    /// # Errors
    /// A range does not fit, or the driver refused; then the run is given back when the copies
    /// issued before have ended.
    pub fn read(&self, ranges: Vec<Range>, run: HostRun) -> Result<Pending, GpuError> {
        self.transfer(ranges, run, |api, device, host, bytes, stream| {
            // SAFETY: `transfer` checked both sides' bounds and keeps both alive until the event.
            unsafe { (api.copy_to_host)(host.cast(), device, bytes, stream) }
        })
    }

    /// Host → device: slot `i` of the run into range `i`.
    ///
    /// # Errors
    /// As for [`Stream::read`].
    pub fn write(&self, ranges: Vec<Range>, run: HostRun) -> Result<Pending, GpuError> {
        self.transfer(ranges, run, |api, device, host, bytes, stream| {
            // SAFETY: as in `read`.
            unsafe { (api.copy_to_device)(device, host.cast_const().cast(), bytes, stream) }
        })
    }

    fn transfer(
        &self,
        ranges: Vec<Range>,
        run: HostRun,
        copy: impl Fn(&super::api::Api, u64, *mut u8, usize, sys::CUstream) -> u32,
    ) -> Result<Pending, GpuError> {
        let fits = ranges.len() <= run.slots() && ranges.iter().all(|r| r.len <= SLOT as u64);
        if !fits {
            return Err(GpuError::Call {
                call: "slot check",
                code: 1,
                text: format!("{} ranges for {} slots", ranges.len(), run.slots()),
            });
        }
        let mut copies: Vec<(u64, usize, usize)> = Vec::new();
        for (slot, range) in ranges.iter().enumerate() {
            let address = range.address()?;
            match copies.last_mut() {
                Some((start, first, bytes))
                    if *start + *bytes as u64 == address && (slot - *first) * SLOT == *bytes =>
                {
                    *bytes += range.len as usize;
                }
                _ => copies.push((address, slot, range.len as usize)),
            }
        }
        let base = run.pointer();
        // The event is made first: whatever is issued below is waited for by `Pending`.
        let mut pending = self.pending(Some(run), ranges)?;
        let issued = copies.iter().try_for_each(|&(address, slot, bytes)| {
            // SAFETY: slot < run.slots(), so the pointer stays inside the run.
            let host = unsafe { base.add(slot * SLOT) };
            self.gpu.api.check(
                "cuMemcpyAsync",
                copy(self.gpu.api, address, host, bytes, self.raw),
            )
        });
        let recorded = self.record(&mut pending);
        issued.and(recorded).map(|()| pending)
    }

    /// Device → device, both on this GPU.
    ///
    /// # Errors
    /// A range does not fit its counterpart, or the driver refused.
    pub fn copy(&self, pairs: Vec<(Range, Range)>) -> Result<Pending, GpuError> {
        let mut copies: Vec<(u64, u64, usize)> = Vec::new();
        let mut held = Vec::with_capacity(pairs.len() * 2);
        for (from, to) in pairs {
            let (source, target) = (from.address()?, to.address()?);
            let len = from.len.min(to.len) as usize;
            match copies.last_mut() {
                Some((s, t, bytes))
                    if *s + *bytes as u64 == source && *t + *bytes as u64 == target =>
                {
                    *bytes += len;
                }
                _ => copies.push((source, target, len)),
            }
            held.push(from);
            held.push(to);
        }
        let mut pending = self.pending(None, held)?;
        let issued = copies.iter().try_for_each(|&(source, target, bytes)| {
            // SAFETY: bounds were checked by `Range::address`, `pending` keeps both sides mapped.
            self.gpu.api.check("cuMemcpyDtoDAsync", unsafe {
                (self.gpu.api.copy_on_device)(target, source, bytes, self.raw)
            })
        });
        let recorded = self.record(&mut pending);
        issued.and(recorded).map(|()| pending)
    }

    fn pending(&self, run: Option<HostRun>, memory: Vec<Range>) -> Result<Pending, GpuError> {
        self.gpu.make_current()?;
        let mut event: sys::CUevent = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the call.
        self.gpu.api.check("cuEventCreate", unsafe {
            (self.gpu.api.event_create)(&raw mut event, EVENT_FLAGS)
        })?;
        Ok(Pending {
            gpu: Arc::clone(&self.gpu),
            event,
            run,
            _memory: memory,
            waited: false,
        })
    }

    /// Records the event behind what was issued; if that fails, waits for the stream instead.
    fn record(&self, pending: &mut Pending) -> Result<(), GpuError> {
        // SAFETY: both live as long as their owners.
        let recorded = self.gpu.api.check("cuEventRecord", unsafe {
            (self.gpu.api.event_record)(pending.event, self.raw)
        });
        if recorded.is_err() {
            // SAFETY: the stream is ours.
            let _ = unsafe { (self.gpu.api.stream_synchronize)(self.raw) };
            pending.waited = true;
        }
        recorded
    }

    /// Waits for everything issued so far.
    ///
    /// # Errors
    /// Work failed.
    pub fn synchronize(&self) -> Result<(), GpuError> {
        self.gpu.make_current()?;
        // SAFETY: the stream is ours.
        self.gpu.api.check("cuStreamSynchronize", unsafe {
            (self.gpu.api.stream_synchronize)(self.raw)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.synchronize();
        // SAFETY: ours, and idle.
        let _ = unsafe { (self.gpu.api.stream_destroy)(self.raw) };
    }
}

impl Pending {
    /// Waits for the end and gives the host slots back to the caller (none for device copies).
    ///
    /// # Errors
    /// The copy failed.
    pub fn wait(mut self) -> Result<Option<HostRun>, GpuError> {
        self.settle()?;
        Ok(self.run.take())
    }

    fn settle(&mut self) -> Result<(), GpuError> {
        if self.waited {
            return Ok(());
        }
        self.waited = true;
        self.gpu.make_current()?;
        // SAFETY: the event was recorded.
        self.gpu.api.check("cuEventSynchronize", unsafe {
            (self.gpu.api.event_synchronize)(self.event)
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let _ = self.settle();
        // SAFETY: ours, and no longer waited for.
        let _ = unsafe { (self.gpu.api.event_destroy)(self.event) };
    }
}
