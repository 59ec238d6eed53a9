//! What a checkpoint was made of: the GPUs, the processes, and the objects with their content, however that is named.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use serde::de::{self, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Digest;
use crate::digest::{deserialize_array, serialize_array};

/// The UUID of a GPU, as 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GpuUuid(pub [u8; 16]);

impl fmt::Display for GpuUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = hex::encode(self.0);
        write!(
            f,
            "GPU-{}-{}-{}-{}-{}",
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..]
        )
    }
}

impl fmt::Debug for GpuUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for GpuUuid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_array(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for GpuUuid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserialize_array(deserializer).map(Self)
    }
}

/// A path as the operating system has it: bytes, not necessarily UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FilePath(Bytes);

impl FilePath {
    /// The file's path as the operating system takes it.
    #[must_use]
    pub fn as_path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }
}

impl<P: AsRef<Path>> From<P> for FilePath {
    fn from(path: P) -> Self {
        Self(Bytes::copy_from_slice(path.as_ref().as_os_str().as_bytes()))
    }
}

impl fmt::Debug for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_path(), f)
    }
}

/// A process of the job, named across the machines that the job runs on: another machine has a process with the same
/// PID.
///
/// The protocol has its own type of this meaning, as it has of a GPU's UUID: the store is to be built without the shim's crates, and
/// a change of the wire must not change what is stored.
///
/// Stored as `[node, process]`. Manifests before version 3 hold the PID alone, of a job that ran on one machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId {
    /// The machine's number in the job, from 0. A job on one machine has only 0.
    pub node: u32,
    /// The PID inside the job's namespace on that machine.
    pub process: u32,
}

impl fmt::Display for MemberId {
    /// The PID; on any machine but the first, with the machine's number in front of it: `1.10042`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        (self.node, self.process).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for MemberId {
    /// Decides by what comes, one value at a time: an untagged enum would first hold all of it, 32 bytes for each byte that a
    /// hostile manifest has.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Stored;

        impl<'de> Visitor<'de> for Stored {
            type Value = MemberId;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a machine's number and a PID, or a PID")
            }

            fn visit_u64<E: de::Error>(self, pid: u64) -> Result<MemberId, E> {
                let process = u32::try_from(pid)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(pid), &self))?;
                Ok(MemberId { node: 0, process })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<MemberId, A::Error> {
                let mut next = |at| {
                    let number = numbers.next_element()?;
                    number.ok_or_else(|| de::Error::invalid_length(at, &self))
                };
                let (node, process) = (next(0)?, next(1)?);
                match numbers.next_element::<IgnoredAny>()? {
                    None => Ok(MemberId { node, process }),
                    Some(_) => Err(de::Error::invalid_length(3, &self)),
                }
            }
        }

        deserializer.deserialize_any(Stored)
    }
}

/// A GPU that the job used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// The UUID of the GPU.
    pub uuid: GpuUuid,
    /// The model of the GPU, as the driver calls it.
    pub name: String,
    /// All memory of the GPU, in bytes.
    pub total_bytes: u64,
    /// The number of the GPU in the job, from 0.
    pub ordinal: u32,
}

/// A process of the job that used a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Identifies the process across the machines of the job.
    #[serde(alias = "pid")]
    pub member: MemberId,
    /// The GPUs on which the process had a context.
    pub devices: Vec<ProcessDevice>,
}

/// A process's context on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDevice {
    /// The UUID of the GPU.
    pub gpu: GpuUuid,
    /// Device memory in bytes that must be free for the driver to restore the control state.
    pub reserve_bytes: u64,
}

/// An allocation of device memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation<C> {
    /// The process that made the allocation.
    #[serde(alias = "owner_pid")]
    pub owner: MemberId,
    /// The number that the owner's shim gave the allocation.
    pub id: u64,
    /// The GPU that the allocation lies on.
    pub gpu: GpuUuid,
    /// Its size in bytes as allocated: what the chunks add up to.
    pub size_bytes: u64,
    /// The size in bytes that the program asked for.
    pub requested_bytes: u64,
    /// What kind of allocation it is, in the words of the shim's protocol.
    pub kind: String,
    /// The content of the allocation, as chunks.
    pub chunks: C,
}

/// A file of the CPU image that CRIU made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFile<C> {
    /// The path of the file, relative to the image directory.
    pub path: FilePath,
    /// Its length in bytes: what the chunks add up to.
    pub length: u64,
    /// The permission bits of the file.
    pub mode: u32,
    /// The content of the file, as chunks.
    pub chunks: C,
}

/// How long the checkpoint held the job back, and other figures for people.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// The whole stop in microseconds: from the gate's closing to its opening.
    pub stop_us: u64,
    /// The stop's parts in microseconds, by name.
    pub phases_us: BTreeMap<String, u64>,
    /// Other figures, by name with its unit.
    pub figures: BTreeMap<String, u64>,
}

/// What the caller says of a checkpoint. `C` is how content is named: by digests in what a caller hands in, by numbers
/// of the manifest's chunk table in what it gets back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Body<C> {
    /// Version of phos-ft that made the checkpoint.
    pub phos_version: String,
    /// Why it was taken: interval, on-demand, terminate.
    pub trigger: String,
    /// Architecture of the machine: [`std::env::consts::ARCH`].
    pub architecture: String,
    /// Version of the GPU driver.
    pub driver_version: String,
    /// The GPUs that the job used.
    pub gpus: Vec<Gpu>,
    /// The processes of the job that used a GPU.
    pub processes: Vec<Process>,
    /// The device memory of the job, by allocation.
    pub allocations: Vec<Allocation<C>>,
    /// The files of the CPU image.
    pub cpu_image: Vec<ImageFile<C>>,
    /// The agent's own data: opaque here, JSON by convention, at most 16 MiB.
    pub agent: String,
    /// How long the steps of the checkpoint took.
    pub timings: Timings,
}

/// What a caller hands in with a commit: content by digests.
pub type ManifestBody = Body<Vec<Digest>>;

impl<C> Default for Body<C> {
    /// An empty body of this machine's architecture.
    fn default() -> Self {
        Self {
            phos_version: String::new(),
            trigger: String::new(),
            architecture: std::env::consts::ARCH.to_owned(),
            driver_version: String::new(),
            gpus: Vec::new(),
            processes: Vec::new(),
            allocations: Vec::new(),
            cpu_image: Vec::new(),
            agent: String::new(),
            timings: Timings::default(),
        }
    }
}

impl<C> Body<C> {
    /// Rewrites every content list, telling `map` the length in bytes that it must add up to and what it belongs to.
    pub(super) fn try_map<D, E>(
        self,
        mut map: impl FnMut(C, u64, &dyn fmt::Display) -> Result<D, E>,
    ) -> Result<Body<D>, E> {
        let mut allocations = Vec::with_capacity(self.allocations.len());
        for a in self.allocations {
            let Allocation {
                owner,
                id,
                gpu,
                size_bytes,
                requested_bytes,
                kind,
                chunks,
            } = a;
            let chunks = map(
                chunks,
                size_bytes,
                &format_args!("allocation {id} of process {owner}"),
            )?;
            allocations.push(Allocation {
                owner,
                id,
                gpu,
                size_bytes,
                requested_bytes,
                kind,
                chunks,
            });
        }
        let mut cpu_image = Vec::with_capacity(self.cpu_image.len());
        for f in self.cpu_image {
            let ImageFile {
                path,
                length,
                mode,
                chunks,
            } = f;
            let chunks = map(
                chunks,
                length,
                &format_args!("image file {}", path.as_path().display()),
            )?;
            cpu_image.push(ImageFile {
                path,
                length,
                mode,
                chunks,
            });
        }
        Ok(Body {
            phos_version: self.phos_version,
            trigger: self.trigger,
            architecture: self.architecture,
            driver_version: self.driver_version,
            gpus: self.gpus,
            processes: self.processes,
            allocations,
            cpu_image,
            agent: self.agent,
            timings: self.timings,
        })
    }

    /// Every content list, with the length in bytes that it must add up to.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&C, u64)> {
        (self.allocations.iter().map(|a| (&a.chunks, a.size_bytes)))
            .chain(self.cpu_image.iter().map(|f| (&f.chunks, f.length)))
    }
}
