//! What a checkpoint was made of: the GPUs, the processes, and the objects with their content, however that is named.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::Digest;
use crate::digest::{deserialize_array, serialize_array};

/// The UUID of a GPU.
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
    /// The path.
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

/// A GPU that the job used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gpu {
    /// Its UUID.
    pub uuid: GpuUuid,
    /// Its model, as the driver calls it.
    pub name: String,
    /// Its memory in bytes.
    pub total_bytes: u64,
    /// Its number in the job, from 0.
    pub ordinal: u32,
}

/// A process of the job that used a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Process {
    /// Its PID inside the job's namespace.
    pub pid: u32,
    /// The GPUs on which it had a context.
    pub devices: Vec<ProcessDevice>,
}

/// A process's context on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessDevice {
    /// The GPU.
    pub gpu: GpuUuid,
    /// Device memory in bytes that must be free for the driver to restore the control state.
    pub reserve_bytes: u64,
}

/// An allocation of device memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation<C> {
    /// PID, inside the job's namespace, of the process that made it.
    pub owner_pid: u32,
    /// Its number, given by the owner's shim.
    pub id: u64,
    /// The GPU on which it lies.
    pub gpu: GpuUuid,
    /// Its size in bytes as allocated: what the chunks add up to.
    pub size_bytes: u64,
    /// The size in bytes that the program asked for.
    pub requested_bytes: u64,
    /// What kind of allocation it is, in the words of the shim's protocol.
    pub kind: String,
    /// Its content.
    pub chunks: C,
}

/// A file of the CPU image that CRIU made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageFile<C> {
    /// Its path relative to the image directory.
    pub path: FilePath,
    /// Its length in bytes: what the chunks add up to.
    pub length: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Its content.
    pub chunks: C,
}

/// Why a file of the job belongs to the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobFileKind {
    /// The job had it open for writing.
    OpenForWrite,
    /// It is phos-ft's own (the shim, a pipe's other end).
    OwnedByPhos,
    /// The job had it mapped.
    Mapped,
}

/// What is kept of a file of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FileContent<C> {
    /// All of its bytes: what the chunks add up to.
    Stored(C),
    /// Its length only; the bytes are expected to be there.
    LengthOnly,
}

/// A file of the job that must be there, with this length, when the job is restored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobFile<C> {
    /// Its absolute path.
    pub path: FilePath,
    /// Its length in bytes at the checkpoint.
    pub length: u64,
    /// Its permission bits.
    pub mode: u32,
    /// Its owner.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Why it belongs to the checkpoint.
    pub kind: JobFileKind,
    /// What is kept of it.
    pub content: FileContent<C>,
    /// Why no more is kept, or anything else a person should know; may be empty.
    pub reason: String,
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
    /// Facts about the training (step, epoch), if known, by name.
    pub training: BTreeMap<String, String>,
    /// Architecture of the machine: [`std::env::consts::ARCH`].
    pub architecture: String,
    /// Version of the GPU driver.
    pub driver_version: String,
    /// The GPUs of the job.
    pub gpus: Vec<Gpu>,
    /// The processes of the job that used a GPU.
    pub processes: Vec<Process>,
    /// The device memory of the job.
    pub allocations: Vec<Allocation<C>>,
    /// The CPU image.
    pub cpu_image: Vec<ImageFile<C>>,
    /// The job's files.
    pub job_files: Vec<JobFile<C>>,
    /// The agent's own data: opaque here, JSON by convention, at most 16 MiB.
    pub agent: String,
    /// How long it took.
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
            training: BTreeMap::new(),
            architecture: std::env::consts::ARCH.to_owned(),
            driver_version: String::new(),
            gpus: Vec::new(),
            processes: Vec::new(),
            allocations: Vec::new(),
            cpu_image: Vec::new(),
            job_files: Vec::new(),
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
                owner_pid,
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
                &format_args!("allocation {id} of process {owner_pid}"),
            )?;
            allocations.push(Allocation {
                owner_pid,
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
        let mut job_files = Vec::with_capacity(self.job_files.len());
        for f in self.job_files {
            let JobFile {
                path,
                length,
                mode,
                uid,
                gid,
                kind,
                content,
                reason,
            } = f;
            let content = match content {
                FileContent::Stored(chunks) => FileContent::Stored(map(
                    chunks,
                    length,
                    &format_args!("job file {}", path.as_path().display()),
                )?),
                FileContent::LengthOnly => FileContent::LengthOnly,
            };
            job_files.push(JobFile {
                path,
                length,
                mode,
                uid,
                gid,
                kind,
                content,
                reason,
            });
        }
        Ok(Body {
            phos_version: self.phos_version,
            trigger: self.trigger,
            training: self.training,
            architecture: self.architecture,
            driver_version: self.driver_version,
            gpus: self.gpus,
            processes: self.processes,
            allocations,
            cpu_image,
            job_files,
            agent: self.agent,
            timings: self.timings,
        })
    }

    /// Every content list, with the length in bytes that it must add up to.
    pub(super) fn contents(&self) -> impl Iterator<Item = (&C, u64)> {
        let files = self
            .job_files
            .iter()
            .filter_map(|file| match &file.content {
                FileContent::Stored(chunks) => Some((chunks, file.length)),
                FileContent::LengthOnly => None,
            });
        (self.allocations.iter().map(|a| (&a.chunks, a.size_bytes)))
            .chain(self.cpu_image.iter().map(|f| (&f.chunks, f.length)))
            .chain(files)
    }
}
