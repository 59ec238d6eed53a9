//! Copies between device and pinned host memory, and on the device, in the order in which they are issued.
//!
//! # Rules
//!
//! * A copy in flight is a [`Pending`] that owns the host slots and holds the device memory: both
//!   outlive the copy whatever the caller does. Dropping it waits.
//! * The callers keep two or more copies in flight; there is no policy here.

use super::error::GpuError;
use super::host::{HostRun, SLOT};
use super::platform::Range;

/// What issues copies on one GPU. Every call only issues; an [`Event`] tells the end.
pub trait Queue: Send + Sync {
    /// Device → host.
    ///
    /// # Safety
    /// Both sides are valid for so many bytes until the copy has ended, and nobody else uses the host's meanwhile.
    ///
    /// # Errors
    /// The call failed.
    unsafe fn to_host(&self, from: u64, to: *mut u8, bytes: usize) -> Result<(), GpuError>;

    /// Host → device.
    ///
    /// # Safety
    /// As for [`Queue::to_host`].
    ///
    /// # Errors
    /// The call failed.
    unsafe fn to_device(&self, from: *const u8, to: u64, bytes: usize) -> Result<(), GpuError>;

    /// Device → device.
    ///
    /// # Safety
    /// As for [`Queue::to_host`].
    ///
    /// # Errors
    /// The call failed.
    unsafe fn on_device(&self, from: u64, to: u64, bytes: usize) -> Result<(), GpuError>;

    /// A mark for what will be issued, not set yet.
    ///
    /// # Errors
    /// The call failed.
    fn event(&self) -> Result<Box<dyn Event>, GpuError>;

    /// Waits for everything issued so far.
    ///
    /// # Errors
    /// Work failed.
    fn synchronize(&self) -> Result<(), GpuError>;
}

/// A mark between what is issued to a queue.
pub trait Event: Send {
    /// Sets it behind what was issued so far.
    ///
    /// # Errors
    /// The call failed.
    fn record(&mut self) -> Result<(), GpuError>;

    /// Waits until everything before it has ended.
    ///
    /// # Errors
    /// Work failed.
    fn wait(&self) -> Result<(), GpuError>;
}

/// A stream of copies on one GPU. Dropping it waits for all of them.
pub struct Stream(Box<dyn Queue>);

/// Copies that were issued and may not have ended: owns what they read and write.
#[must_use]
pub struct Pending {
    event: Box<dyn Event>,
    run: Option<HostRun>,
    _memory: Vec<Range>,
    waited: bool,
}

/// A copy between a range of device memory and slots of a run: address, first slot, bytes.
type Transfer = (u64, usize, usize);

impl Stream {
    pub(super) fn new(queue: Box<dyn Queue>) -> Stream {
        Stream(queue)
    }

    /// Device → host: range `i` into slot `i` of the run. Neighbouring full ranges become one copy.
    ///
    /// # Errors
    /// A range does not fit, or the driver refused; then the run is given back when the copies
    /// issued before have ended.
    pub fn read(&self, ranges: Vec<Range>, run: HostRun) -> Result<Pending, GpuError> {
        self.transfer(ranges, run, |queue, device, host, bytes| {
            // SAFETY: `transfer` checked both sides' bounds and keeps both alive until the event.
            unsafe { queue.to_host(device, host, bytes) }
        })
    }

    /// Host → device: slot `i` of the run into range `i`.
    ///
    /// # Errors
    /// As for [`Stream::read`].
    pub fn write(&self, ranges: Vec<Range>, run: HostRun) -> Result<Pending, GpuError> {
        self.transfer(ranges, run, |queue, device, host, bytes| {
            // SAFETY: as in `read`.
            unsafe { queue.to_device(host, device, bytes) }
        })
    }

    fn transfer(
        &self,
        ranges: Vec<Range>,
        run: HostRun,
        copy: impl Fn(&dyn Queue, u64, *mut u8, usize) -> Result<(), GpuError>,
    ) -> Result<Pending, GpuError> {
        let fits = ranges.len() <= run.slots() && ranges.iter().all(|r| r.len <= SLOT as u64);
        if !fits {
            return Err(GpuError::OutOfBounds(format!(
                "{} ranges for {} slots",
                ranges.len(),
                run.slots()
            )));
        }
        let mut copies: Vec<Transfer> = Vec::new();
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
            copy(&*self.0, address, host, bytes)
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
            unsafe { self.0.on_device(source, target, bytes) }
        });
        let recorded = self.record(&mut pending);
        issued.and(recorded).map(|()| pending)
    }

    fn pending(&self, run: Option<HostRun>, memory: Vec<Range>) -> Result<Pending, GpuError> {
        Ok(Pending {
            event: self.0.event()?,
            run,
            _memory: memory,
            waited: false,
        })
    }

    /// Records the event behind what was issued; if that fails, waits for the stream instead.
    fn record(&self, pending: &mut Pending) -> Result<(), GpuError> {
        let recorded = pending.event.record();
        if recorded.is_err() {
            let _ = self.0.synchronize();
            pending.waited = true;
        }
        recorded
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _ = self.0.synchronize();
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
        self.event.wait()
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let _ = self.settle();
    }
}
