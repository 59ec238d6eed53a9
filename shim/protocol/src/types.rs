//! What both conversations speak about: processes, devices, allocations.

use serde::{Deserialize, Serialize};

/// A process of the job, by its PID inside the job's PID namespace. A restore brings it back with
/// the same PID, so the name stays valid across generations.
pub type ProcessId = u32;

/// An allocation's number inside the process that created it. Never used twice by one process.
pub type AllocationId = u64;

/// One physical allocation of GPU memory, named across the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AllocationKey {
    /// The process that created the memory (not one that imported it).
    pub owner: ProcessId,
    /// Its number there.
    pub id: AllocationId,
}

/// A GPU as the driver names it (`cuDeviceGetUuid_v2`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GpuUuid(pub [u8; 16]);

impl std::fmt::Display for GpuUuid {
    /// As `nvidia-smi -L` prints it: `GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("GPU")?;
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 0 | 4 | 6 | 8 | 10) {
                f.write_str("-")?;
            }
            write!(f, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// A GPU that a process of the job uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// The ordinal inside that process (after `CUDA_VISIBLE_DEVICES`).
    pub ordinal: i32,
    /// The GPU behind it when the process initialised CUDA.
    pub uuid: GpuUuid,
    /// Total memory in bytes.
    pub total_bytes: u64,
    /// The model name.
    pub name: String,
}

/// What an allocation is to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AllocationKind {
    /// One `cuMemAlloc` request or relative.
    Plain,
    /// A slab that holds many small requests.
    Slab,
    /// Created by the application through `cuMemCreate`.
    Vmm,
}

/// A physical allocation as the shim's registry knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// Its name across the job.
    pub key: AllocationKey,
    /// Ordinal of the device it lies on, inside the owning process.
    pub device: i32,
    /// Physical size in bytes, a multiple of the device's granularity.
    pub bytes: u64,
    /// What it is.
    pub kind: AllocationKind,
    /// Whether `gpuDirectRDMACapable` was asked for when it was created. A restore asks again.
    pub rdma: bool,
}

#[cfg(test)]
mod tests {
    use super::GpuUuid;

    #[test]
    fn uuid_prints_like_nvidia_smi() {
        let uuid = GpuUuid(std::array::from_fn(|i| i as u8));
        assert_eq!(uuid.to_string(), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
