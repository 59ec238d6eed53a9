//! The traits of a driver: which GPUs there are, contexts on them, device memory by file descriptor, digests where it lies.
//!
//! # Rules
//!
//! * An imported handle cannot be exported again, and memory we create is exported once: the fd is
//!   kept beside the mapping for as long as somebody may need it.
//! * A mapping is held by `Arc`; work in flight holds a clone, so nothing is unmapped under a copy.
//! * Everything may be used from any thread.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use phos_protocol::types::{Allocation, GpuUuid};

use super::error::GpuError;
use super::stream::Stream;

/// A BLAKE3 digest of 32 bytes.
pub type Digest = [u8; 32];

/// A GPU as the driver lists it, before a context exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuInfo {
    /// The ordinal by which the driver knows the GPU in this process.
    pub ordinal: i32,
    /// The UUID of the GPU.
    pub uuid: GpuUuid,
    /// The model name, as the driver gives it.
    pub name: String,
    /// Total memory in bytes.
    pub total_bytes: u64,
    /// Compute capability, major and minor.
    pub compute: (u32, u32),
}

/// Free and total memory of a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes that are free now.
    pub free: u64,
    /// All bytes that the GPU has.
    pub total: u64,
}

/// A driver that is loaded and initialised.
pub trait Platform: Send + Sync {
    /// Its version: 13000 for CUDA 13.0.
    ///
    /// # Errors
    /// The call failed.
    fn version(&self) -> Result<u32, GpuError>;

    /// Every GPU that this process sees.
    ///
    /// # Errors
    /// A call failed.
    fn gpus(&self) -> Result<Vec<GpuInfo>, GpuError>;

    /// Opens a context on a GPU. Takes 0.1 s to seconds.
    ///
    /// # Errors
    /// A call failed.
    fn open(&self, info: &GpuInfo) -> Result<Arc<dyn Gpu>, GpuError>;
}

/// A GPU with a context of this process on it.
pub trait Gpu: Send + Sync + fmt::Debug {
    /// What the driver says about the GPU.
    fn info(&self) -> &GpuInfo;

    /// Free and total memory now.
    ///
    /// # Errors
    /// The call failed.
    fn memory(&self) -> Result<MemoryInfo, GpuError>;

    /// Maps memory that another process exported.
    ///
    /// # Errors
    /// A call failed; nothing is left mapped and the fd is closed.
    fn import(self: Arc<Self>, fd: OwnedFd, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError>;

    /// Creates memory that can be exported, for a restore: of an allocation's size, and as memory that network cards reach if the
    /// allocation was that.
    ///
    /// # Errors
    /// A call failed, also for lack of memory.
    fn create(self: Arc<Self>, allocation: &Allocation) -> Result<Arc<dyn DeviceMemory>, GpuError>;

    /// Creates memory for this process alone; the size is rounded up.
    ///
    /// # Errors
    /// A call failed, also for lack of memory.
    fn scratch(self: Arc<Self>, bytes: u64) -> Result<Arc<dyn DeviceMemory>, GpuError>;

    /// A stream of copies.
    ///
    /// # Errors
    /// A call failed.
    fn stream(self: Arc<Self>) -> Result<Stream, GpuError>;

    /// What digests chunks. Compiling its kernel for the GPU takes up to a second the first time.
    ///
    /// # Errors
    /// A call failed.
    fn digester(self: Arc<Self>) -> Result<Box<dyn Digester>, GpuError>;

    /// Pins so many bytes of host memory, usable with all GPUs.
    ///
    /// # Errors
    /// A call failed, also for lack of memory.
    fn pin(self: Arc<Self>, bytes: usize) -> Result<Box<dyn PinnedMemory>, GpuError>;
}

impl dyn Gpu {
    /// The UUID of the GPU.
    pub fn uuid(&self) -> GpuUuid {
        self.info().uuid
    }
}

/// A physical allocation, mapped read-write in this process until it is dropped.
pub trait DeviceMemory: Send + Sync + fmt::Debug {
    /// The UUID of the GPU that the memory lies on.
    fn gpu(&self) -> GpuUuid;

    /// The size of the allocation, in bytes.
    fn bytes(&self) -> u64;

    /// The fd that stands for it, of imported and exportable memory.
    fn fd(&self) -> Option<BorrowedFd<'_>>;

    /// Where it is mapped, as the GPU addresses it.
    fn base(&self) -> u64;
}

/// A part of some device memory.
#[derive(Debug, Clone)]
pub struct Range {
    /// The memory that the range is a part of.
    pub memory: Arc<dyn DeviceMemory>,
    /// Where the range begins in the memory, in bytes.
    pub offset: u64,
    /// The length of the range, in bytes.
    pub len: u64,
}

impl Range {
    /// The device address, checked against the memory's size.
    pub(super) fn address(&self) -> Result<u64, GpuError> {
        let end = self.offset.checked_add(self.len);
        if end.is_none_or(|end| end > self.memory.bytes()) {
            return Err(GpuError::OutOfBounds(format!(
                "{}+{} is outside an allocation of {} bytes",
                self.offset,
                self.len,
                self.memory.bytes()
            )));
        }
        Ok(self.memory.base() + self.offset)
    }
}

/// Digests of device memory, computed where it lies.
pub trait Digester: Send {
    /// The digest of each range, in order: that of `blake3::hash`, or with a key of `blake3::keyed_hash`. Ranges are at most a
    /// chunk long and 16-byte aligned. The caller makes sure that nobody writes the memory: the job is quiet, or it is ours.
    ///
    /// # Errors
    /// A call failed, or a range is outside its memory.
    fn digest(
        &mut self,
        ranges: &[&Range],
        key: Option<&[u8; 32]>,
    ) -> Result<Vec<Digest>, GpuError>;
}

/// Host memory that a GPU copies from and to without help. It is given back when it is dropped.
///
/// # Safety
/// [`base`](Self::base) points to as many bytes as were asked for, which nobody else uses and which stay where they are until
/// the value is dropped.
pub unsafe trait PinnedMemory: Send {
    /// The address of the first byte.
    fn base(&self) -> *mut u8;
}
