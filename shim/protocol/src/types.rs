//! The types that both conversations use: processes, devices, allocations.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A process of the job on one machine, by its PID inside the job's PID namespace. A restore brings it back with
/// the same PID, so the name stays valid across generations.
pub type ProcessId = u32;

/// The number in the job of the machine that this runs on. A job on one machine has no other.
pub const THIS_NODE: u32 = 0;

/// A process of the job, named across the machines that the job runs on: another machine has a process with the same PID.
///
/// In JSON `[node, process]`. A bare number, as it was written when a process was named by its PID alone, is read as one of
/// node 0.
///
/// On the wire one number, `node << 32 | process`: for node 0 these are the bytes of the bare PID. A restored job has the
/// shim that it had when the image was taken, which may know PIDs only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberId {
    /// The machine's number in the job, from 0.
    pub node: u32,
    /// The process's PID on that machine.
    pub process: ProcessId,
}

impl MemberId {
    /// A process on this machine.
    pub const fn here(process: ProcessId) -> Self {
        Self {
            node: THIS_NODE,
            process,
        }
    }

    /// The process as one number: `node << 32 | process`.
    pub const fn to_u64(self) -> u64 {
        (self.node as u64) << 32 | self.process as u64
    }

    /// The opposite of [`Self::to_u64`].
    pub const fn from_u64(number: u64) -> Self {
        Self {
            node: (number >> 32) as u32,
            process: number as u32,
        }
    }
}

impl std::fmt::Display for MemberId {
    /// The PID; on any machine but the first, with the machine's number in front of it: `1.10042`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { node, process } = self;
        if *node == 0 {
            write!(f, "{process}")
        } else {
            write!(f, "{node}.{process}")
        }
    }
}

impl Serialize for MemberId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            (self.node, self.process).serialize(serializer)
        } else {
            self.to_u64().serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for MemberId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Member(u32, ProcessId),
            Pid(ProcessId),
        }
        if !deserializer.is_human_readable() {
            return u64::deserialize(deserializer).map(Self::from_u64);
        }
        Ok(match Written::deserialize(deserializer)? {
            Written::Member(node, process) => Self { node, process },
            Written::Pid(process) => Self { node: 0, process },
        })
    }
}

/// An allocation's number inside the process that created it. Never used twice by one process.
pub type AllocationId = u64;

/// One physical allocation of GPU memory, named across the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct AllocationKey {
    /// The process that created the memory (not one that imported it).
    pub owner: MemberId,
    /// The number that the owner gave it.
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
    /// The model name of the GPU, as the driver calls it.
    pub name: String,
}

/// What an allocation is to the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum AllocationKind {
    /// One request of `cuMemAlloc` or a relative.
    Plain,
    /// A slab that holds many small requests.
    Slab,
    /// Created by the application through `cuMemCreate`.
    Vmm,
    /// A multicast object (`cuMulticastCreate`): no memory of its own. What is written to it goes to the memory that is bound to it on
    /// each of its devices. The agent keeps these apart from memory.
    Multicast {
        /// How many devices take part, over all processes.
        devices: u32,
    },
}

/// A physical allocation as the shim's registry knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// The allocation's name across the job.
    pub key: AllocationKey,
    /// Ordinal of the device it lies on, inside the owning process.
    pub device: i32,
    /// Physical size in bytes, a multiple of the device's granularity.
    pub bytes: u64,
    /// What the allocation is to the application.
    pub kind: AllocationKind,
    /// Whether `gpuDirectRDMACapable` was asked for when it was created. A restore asks again.
    pub rdma: bool,
}

#[cfg(test)]
mod tests {
    use super::{AllocationKey, GpuUuid, MemberId};

    #[test]
    fn a_member_is_read_as_it_is_and_was_written() {
        let member = MemberId {
            node: 3,
            process: 10_042,
        };
        let key = AllocationKey {
            owner: member,
            id: 7,
        };
        let json = serde_json::to_string(&key).unwrap();
        assert_eq!(json, r#"{"owner":[3,10042],"id":7}"#);
        assert_eq!(serde_json::from_str::<AllocationKey>(&json).unwrap(), key);
        let before = serde_json::from_str::<AllocationKey>(r#"{"owner":10042,"id":7}"#).unwrap();
        assert_eq!(before.owner, MemberId::here(10_042));
        let wire = postcard::to_allocvec(&key).unwrap();
        assert_eq!(postcard::from_bytes::<AllocationKey>(&wire).unwrap(), key);
        // As a shim of before says it.
        let wire = postcard::to_allocvec(&(10_042_u32, 7_u64)).unwrap();
        assert_eq!(
            postcard::from_bytes::<AllocationKey>(&wire).unwrap(),
            before
        );
        assert_eq!(postcard::to_allocvec(&before).unwrap(), wire);
        assert_eq!(
            [member.to_string(), before.owner.to_string()],
            ["3.10042", "10042"]
        );
    }

    #[test]
    fn uuid_prints_like_nvidia_smi() {
        let uuid = GpuUuid(std::array::from_fn(|i| i as u8));
        assert_eq!(uuid.to_string(), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
