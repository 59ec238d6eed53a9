//! The manifest of a checkpoint: everything a restore needs except the chunks' bytes. All of its types are here.
//!
//! # Form
//!
//! A checked envelope around CBOR. Unknown fields are ignored, so that fields may be added within a version; what an
//! older reader must not overlook raises the version. Lists of chunks are runs, and the chunk table is stored in
//! columns, so that a manifest stays far below a thousandth of its image.
//!
//! # Trust
//!
//! Nothing in a manifest is believed before it was checked: indices, lengths and sums are validated once, when it is
//! decoded, and the rest of the crate relies on that.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bytes::Bytes;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::chunk_list::ChunkList;
use crate::codec::Codec;
use crate::crypt::Crypt;
use crate::digest::{deserialize_array, serialize_array};
use crate::envelope::{self, EnvelopeError, Kind};
use crate::names::{CheckpointNumber, Epoch, JobName, PackId, UnixMillis};
use crate::{Digest, MAX_CHUNK_SIZE, pack};

pub(crate) const KIND: Kind = Kind {
    what: "manifest",
    magic: *b"PHOSMANI",
    version: 2,
    max_stored: 128 << 20,
    max_plain: 256 << 20,
};

/// Most bytes of the agent's own data.
const MAX_AGENT: usize = 16 << 20;

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
    fn try_map<D, E>(
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
    fn contents(&self) -> impl Iterator<Item = (&C, u64)> {
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

impl Location {
    /// Where its stored bytes end.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.stored as u64
    }
}

/// A pack that a manifest's chunks lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackEntry {
    /// Its name.
    pub id: PackId,
    /// Its length in bytes.
    pub length: u64,
}

/// Where a chunk lies. Of a [`Codec::Zero`] chunk nothing is stored, and `pack` means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkEntry {
    /// The chunk's name.
    pub digest: Digest,
    /// Number of its pack in [`Manifest::packs`].
    pub pack: u32,
    /// Where its stored bytes begin, from the beginning of the pack.
    pub offset: u64,
    /// Stored bytes.
    pub stored: u32,
    /// Bytes once decoded.
    pub raw: u32,
    /// How it is stored.
    pub codec: Codec,
}

/// Where a chunk lies, whatever the manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// The pack; `None` if nothing is stored.
    pub pack: Option<PackId>,
    pub offset: u64,
    pub stored: u32,
    pub raw: u32,
    pub codec: Codec,
}

/// A chunk's place in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of the chunk in [`Manifest::chunks`].
    pub chunk: u32,
    /// Where its bytes begin in the object.
    pub offset: u64,
    /// How many bytes they are.
    pub length: u32,
}

/// A decoded and validated manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The job.
    pub job: JobName,
    /// The checkpoint's number.
    pub number: CheckpointNumber,
    /// The epoch in which it was committed.
    pub epoch: Epoch,
    /// When it was committed, as told by the caller.
    pub created: UnixMillis,
    /// The packs its chunks lie in.
    pub packs: Vec<PackEntry>,
    /// Its chunks, each once, in the order in which they are first used.
    pub chunks: Vec<ChunkEntry>,
    /// What the caller said of the checkpoint.
    pub body: Body<ChunkList>,
}

/// Why a manifest could not be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Its envelope or encoding is wrong.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// What it says does not fit together.
    #[error("the manifest contradicts itself: {detail}")]
    Inconsistent {
        /// What does not fit.
        detail: String,
    },
    /// A chunk was named that is neither stored nor was put.
    #[error("{object} names chunk {digest}, which was never put")]
    MissingChunk {
        /// The chunk.
        digest: Digest,
        /// What names it.
        object: String,
    },
    /// An object's chunks do not add up to its length.
    #[error("the chunks of {object} add up to {found} bytes, its length is {expected}")]
    Length {
        /// The object.
        object: String,
        /// Bytes of its chunks.
        found: u64,
        /// Its length in bytes.
        expected: u64,
    },
    /// The agent's data is too large.
    #[error("the agent's data has {length} bytes, more than the {MAX_AGENT} allowed")]
    AgentTooLarge {
        /// Its length in bytes.
        length: usize,
    },
}

impl ManifestError {
    /// Whether trying again cannot help: the same bytes give the same error.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        true
    }
}

fn inconsistent(detail: impl Into<String>) -> ManifestError {
    ManifestError::Inconsistent {
        detail: detail.into(),
    }
}

/// The stored form of a manifest: the chunk table in columns of little-endian numbers.
#[derive(Serialize, Deserialize)]
struct Wire {
    job: JobName,
    number: CheckpointNumber,
    epoch: Epoch,
    created: UnixMillis,
    packs: Vec<PackEntry>,
    chunks: Columns,
    body: Body<ChunkList>,
}

#[derive(Serialize, Deserialize)]
struct Columns {
    /// 32 bytes each.
    digest: Bytes,
    /// 4 bytes each.
    pack: Bytes,
    /// 8 bytes each: offset less the end of the chunk before, modulo 2^64. Mostly zeros.
    gap: Bytes,
    /// 4 bytes each.
    stored: Bytes,
    /// 4 bytes each.
    raw: Bytes,
    /// 1 byte each.
    codec: Bytes,
}

impl Columns {
    fn from_entries(entries: &[ChunkEntry]) -> Self {
        let n = entries.len();
        let mut digest = Vec::with_capacity(32 * n);
        let mut pack = Vec::with_capacity(4 * n);
        let mut gap = Vec::with_capacity(8 * n);
        let mut stored = Vec::with_capacity(4 * n);
        let mut raw = Vec::with_capacity(4 * n);
        let mut codec = Vec::with_capacity(n);
        let mut end = 0_u64;
        for entry in entries {
            digest.extend_from_slice(&entry.digest.0);
            pack.extend_from_slice(&entry.pack.to_le_bytes());
            gap.extend_from_slice(&entry.offset.wrapping_sub(end).to_le_bytes());
            stored.extend_from_slice(&entry.stored.to_le_bytes());
            raw.extend_from_slice(&entry.raw.to_le_bytes());
            codec.push(entry.codec as u8);
            end = entry.offset.wrapping_add(u64::from(entry.stored));
        }
        Self {
            digest: digest.into(),
            pack: pack.into(),
            gap: gap.into(),
            stored: stored.into(),
            raw: raw.into(),
            codec: codec.into(),
        }
    }

    fn into_entries(self) -> Result<Vec<ChunkEntry>, ManifestError> {
        let n = self.codec.len();
        for (column, width) in [
            (&self.digest, 32),
            (&self.pack, 4),
            (&self.gap, 8),
            (&self.stored, 4),
            (&self.raw, 4),
        ] {
            if column.len() != n * width {
                return Err(inconsistent(
                    "the columns of its chunk table differ in length",
                ));
            }
        }
        let (digests, _) = self.digest.as_chunks::<32>();
        let (packs, _) = self.pack.as_chunks::<4>();
        let (gaps, _) = self.gap.as_chunks::<8>();
        let (stored, _) = self.stored.as_chunks::<4>();
        let (raw, _) = self.raw.as_chunks::<4>();
        let mut entries = Vec::with_capacity(n);
        let mut end = 0_u64;
        for i in 0..n {
            let number = self.codec[i];
            let codec = Codec::from_u8(number).ok_or_else(|| {
                inconsistent(format!(
                    "codec {number} is not known here: use a newer phos-ft"
                ))
            })?;
            let entry = ChunkEntry {
                digest: Digest(digests[i]),
                pack: u32::from_le_bytes(packs[i]),
                offset: end.wrapping_add(u64::from_le_bytes(gaps[i])),
                stored: u32::from_le_bytes(stored[i]),
                raw: u32::from_le_bytes(raw[i]),
                codec,
            };
            end = entry.offset.wrapping_add(u64::from(entry.stored));
            entries.push(entry);
        }
        Ok(entries)
    }
}

/// What storage itself says of a checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub job: JobName,
    pub number: CheckpointNumber,
    pub epoch: Epoch,
    pub created: UnixMillis,
}

impl Manifest {
    /// Makes a manifest from a body that names content by digest. `locate` says where a chunk lies, `pack_length` how
    /// long a pack is; a chunk that is stored as it is takes `overhead` bytes more than it has.
    pub(crate) fn build(
        identity: Identity,
        body: ManifestBody,
        overhead: u32,
        locate: impl Fn(&Digest) -> Option<Location>,
        pack_length: impl Fn(&PackId) -> Option<u64>,
    ) -> Result<Self, ManifestError> {
        if body.agent.len() > MAX_AGENT {
            return Err(ManifestError::AgentTooLarge {
                length: body.agent.len(),
            });
        }
        let mut packs: Vec<PackEntry> = Vec::new();
        let mut pack_numbers: HashMap<PackId, u32> = HashMap::new();
        let mut chunks: Vec<ChunkEntry> = Vec::new();
        let mut numbers: HashMap<Digest, u32> = HashMap::new();
        let body = body.try_map(|digests, length, object| {
            let mut total = 0_u64;
            let mut list = Vec::with_capacity(digests.len());
            for digest in digests {
                let number = match numbers.get(&digest) {
                    Some(&number) => number,
                    None => {
                        let missing = || ManifestError::MissingChunk {
                            digest,
                            object: object.to_string(),
                        };
                        let at = locate(&digest).ok_or_else(missing)?;
                        let pack = match at.pack {
                            None => 0,
                            Some(id) => match pack_numbers.get(&id) {
                                Some(&number) => number,
                                None => {
                                    let length = pack_length(&id).ok_or_else(missing)?;
                                    let number = u32::try_from(packs.len()).map_err(|_| {
                                        inconsistent("it needs more than 2^32 packs")
                                    })?;
                                    packs.push(PackEntry { id, length });
                                    pack_numbers.insert(id, number);
                                    number
                                }
                            },
                        };
                        let Location {
                            offset,
                            stored,
                            raw,
                            codec,
                            ..
                        } = at;
                        let number = u32::try_from(chunks.len())
                            .map_err(|_| inconsistent("it needs more than 2^32 chunks"))?;
                        chunks.push(ChunkEntry {
                            digest,
                            pack,
                            offset,
                            stored,
                            raw,
                            codec,
                        });
                        numbers.insert(digest, number);
                        number
                    }
                };
                total += chunks
                    .get(number as usize)
                    .map_or(0, |chunk| u64::from(chunk.raw));
                list.push(number);
            }
            if total != length {
                return Err(ManifestError::Length {
                    object: object.to_string(),
                    found: total,
                    expected: length,
                });
            }
            Ok(list.into_iter().collect::<ChunkList>())
        })?;
        let Identity {
            job,
            number,
            epoch,
            created,
        } = identity;
        let manifest = Self {
            job,
            number,
            epoch,
            created,
            packs,
            chunks,
            body,
        };
        manifest.validate(overhead)?;
        Ok(manifest)
    }

    /// The bytes to store.
    pub(crate) fn encode(&self, crypt: &Crypt) -> Result<Vec<u8>, ManifestError> {
        let wire = Wire {
            job: self.job.clone(),
            number: self.number,
            epoch: self.epoch,
            created: self.created,
            packs: self.packs.clone(),
            chunks: Columns::from_entries(&self.chunks),
            body: self.body.clone(),
        };
        let payload = envelope::to_cbor(KIND.what, &wire)?;
        let place = place(self.number.0);
        Ok(envelope::seal_in(crypt, &place, &KIND, &payload)?)
    }

    /// Reads and validates the bytes of a manifest that is not encrypted. Never panics, and never allocates more than a
    /// small multiple of the caps of its envelope.
    pub fn decode(bytes: &[u8]) -> Result<Self, ManifestError> {
        Self::decode_in(&Crypt::PLAIN, 0, bytes)
    }

    /// As [`Self::decode`], of a job's checkpoint.
    pub(crate) fn decode_in(
        crypt: &Crypt,
        number: u64,
        bytes: &[u8],
    ) -> Result<Self, ManifestError> {
        let (_version, payload) = envelope::open_in(crypt, &place(number), &KIND, bytes)?;
        let Wire {
            job,
            number,
            epoch,
            created,
            packs,
            chunks,
            body,
        } = envelope::from_cbor(KIND.what, &payload)?;
        let manifest = Self {
            job,
            number,
            epoch,
            created,
            packs,
            chunks: chunks.into_entries()?,
            body,
        };
        manifest.validate(crypt.overhead())?;
        Ok(manifest)
    }

    fn validate(&self, overhead: u32) -> Result<(), ManifestError> {
        if self.body.agent.len() > MAX_AGENT {
            return Err(ManifestError::AgentTooLarge {
                length: self.body.agent.len(),
            });
        }
        for (number, chunk) in self.chunks.iter().enumerate() {
            let bad = |detail: String| inconsistent(format!("chunk {number}: {detail}"));
            if chunk.raw == 0
                || chunk.raw as usize > MAX_CHUNK_SIZE
                || chunk.stored > chunk.raw.saturating_add(overhead)
            {
                return Err(bad(format!(
                    "{} bytes stored for {}",
                    chunk.stored, chunk.raw
                )));
            }
            if chunk.codec == Codec::Zero {
                if chunk.stored != 0 {
                    return Err(bad("zeros are stored".into()));
                }
                continue;
            }
            let Some(pack) = self.packs.get(chunk.pack as usize) else {
                return Err(bad(format!("there is no pack {}", chunk.pack)));
            };
            let end = chunk.offset.checked_add(u64::from(chunk.stored));
            let body = pack.length.saturating_sub(pack::TRAILER);
            if chunk.stored == 0 || chunk.offset < pack::HEADER || end.is_none_or(|end| end > body)
            {
                return Err(bad(format!("its bytes lie outside pack {}", pack.id)));
            }
        }
        // Content lists are runs, so a few bytes may claim billions of chunks: they are never expanded unchecked.
        for (list, length) in self.body.contents() {
            list.check(self.chunks.len()).map_err(inconsistent)?;
            if list.len() > length {
                return Err(inconsistent(format!(
                    "{} chunks for {length} bytes",
                    list.len()
                )));
            }
        }
        let chunks: u64 = self.body.contents().map(|(list, _)| list.len()).sum();
        if chunks > MAX_REFERENCES {
            return Err(inconsistent(format!(
                "it refers to {chunks} chunks, more than {MAX_REFERENCES}"
            )));
        }
        for (list, length) in self.body.contents() {
            let total: u64 = list.iter().map(|number| self.raw_length(number)).sum();
            if total != length {
                return Err(inconsistent(format!(
                    "the chunks of an object add up to {total} bytes, not {length}"
                )));
            }
        }
        Ok(())
    }

    fn raw_length(&self, number: u32) -> u64 {
        self.chunks
            .get(number as usize)
            .map_or(0, |chunk| u64::from(chunk.raw))
    }

    /// Bytes of the whole image: device memory, CPU image and stored files, each object counted in full.
    #[must_use]
    pub fn image_bytes(&self) -> u64 {
        self.body.contents().map(|(_, length)| length).sum()
    }

    /// Bytes that its chunks take in packs.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.chunks
            .iter()
            .map(|chunk| u64::from(chunk.stored))
            .sum()
    }

    /// The chunks of an object and where each lies in it, in order.
    pub fn extents<'a>(&'a self, list: &'a ChunkList) -> impl Iterator<Item = Extent> + 'a {
        list.iter().scan(0_u64, |at, chunk| {
            let length = self.chunks.get(chunk as usize)?.raw;
            let extent = Extent {
                chunk,
                offset: *at,
                length,
            };
            *at += u64::from(length);
            Some(extent)
        })
    }

    /// The digests of an object's chunks, in order.
    pub fn digests<'a>(&'a self, list: &'a ChunkList) -> impl Iterator<Item = Digest> + 'a {
        list.iter()
            .filter_map(|chunk| Some(self.chunks.get(chunk as usize)?.digest))
    }

    /// What the caller of the commit handed in: content by digests again.
    #[must_use]
    pub fn named(&self) -> ManifestBody {
        let named = self.body.clone().try_map(|list: ChunkList, _, _| {
            Ok::<_, std::convert::Infallible>(self.digests(&list).collect())
        });
        match named {
            Ok(body) => body,
        }
    }

    /// The manifest after some of its chunks were moved to other packs, whose lengths are given.
    pub(crate) fn relocated(
        mut self,
        moves: &HashMap<(PackId, u64), Location>,
        lengths: &HashMap<PackId, u64>,
        overhead: u32,
    ) -> Result<Self, ManifestError> {
        let old = std::mem::take(&mut self.packs);
        let mut numbers: HashMap<PackId, u32> = HashMap::new();
        for chunk in &mut self.chunks {
            if chunk.codec == Codec::Zero {
                chunk.pack = 0;
                continue;
            }
            let Some(mut pack) = old.get(chunk.pack as usize).copied() else {
                return Err(inconsistent(format!("there is no pack {}", chunk.pack)));
            };
            if let Some(to) = moves.get(&(pack.id, chunk.offset))
                && let Some(id) = to.pack
            {
                let length = lengths.get(&id).copied();
                let length =
                    length.ok_or_else(|| inconsistent(format!("pack {id} is not known")))?;
                pack = PackEntry { id, length };
                chunk.offset = to.offset;
            }
            chunk.pack = match numbers.get(&pack.id) {
                Some(&number) => number,
                None => {
                    let number = self.packs.len() as u32;
                    self.packs.push(pack);
                    numbers.insert(pack.id, number);
                    number
                }
            };
        }
        self.validate(overhead)?;
        Ok(self)
    }

    /// Where its chunks lie, for an index.
    pub(crate) fn locations(&self) -> impl Iterator<Item = (Digest, Location)> + '_ {
        self.chunks.iter().map(|chunk| {
            let ChunkEntry {
                digest,
                pack,
                offset,
                stored,
                raw,
                codec,
            } = *chunk;
            let pack = if codec == Codec::Zero {
                None
            } else {
                self.packs.get(pack as usize).map(|pack| pack.id)
            };
            (
                digest,
                Location {
                    pack,
                    offset,
                    stored,
                    raw,
                    codec,
                },
            )
        })
    }
}

/// Where a manifest stands below its job, as far as that can be known before it is sealed: its name has the digest of
/// its bytes in it, and its record says which it is.
fn place(number: u64) -> String {
    format!("manifests/{number:020}")
}

/// Most chunks that one manifest may refer to: 64 TiB of full chunks.
const MAX_REFERENCES: u64 = 1 << 26;

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::crypt::tests::crypt;
    use crate::names::Nonce;
    use proptest::prelude::*;

    fn text() -> impl Strategy<Value = String> {
        "[ -~]{0,20}"
    }

    fn uuid() -> impl Strategy<Value = GpuUuid> {
        any::<[u8; 16]>().prop_map(GpuUuid)
    }

    fn path() -> impl Strategy<Value = FilePath> {
        prop::collection::vec(1..=255u8, 1..20).prop_map(|bytes| FilePath(bytes.into()))
    }

    /// A table of chunks by what they are numbered, some of them zeros.
    fn location(number: usize) -> (Digest, Location) {
        let digest = Digest([number as u8; 32]);
        let raw = 1000 + number as u32;
        let at = if number % 5 == 4 {
            Location {
                pack: None,
                offset: 0,
                stored: 0,
                raw,
                codec: Codec::Zero,
            }
        } else {
            let id = PackId {
                writer: Nonce([1; 16]),
                sequence: number as u32 / 3,
            };
            let codec = if number.is_multiple_of(2) {
                Codec::Raw
            } else {
                Codec::Zstd
            };
            let stored = if number.is_multiple_of(2) {
                raw
            } else {
                raw / 2
            };
            Location {
                pack: Some(id),
                offset: 64 + 2000 * number as u64,
                stored,
                raw,
                codec,
            }
        };
        (digest, at)
    }

    fn content() -> impl Strategy<Value = (Vec<Digest>, u64)> {
        prop::collection::vec(0..40usize, 0..12).prop_map(|numbers| {
            let chunks = numbers.iter().map(|&n| location(n));
            (
                chunks.clone().map(|c| c.0).collect(),
                chunks.map(|c| u64::from(c.1.raw)).sum(),
            )
        })
    }

    prop_compose! {
        fn allocation()(
            owner_pid in any::<u32>(), id in any::<u64>(), gpu in uuid(), requested_bytes in any::<u64>(), kind in text(),
            (chunks, size_bytes) in content(),
        ) -> Allocation<Vec<Digest>> {
            Allocation { owner_pid, id, gpu, size_bytes, requested_bytes, kind, chunks }
        }
    }

    prop_compose! {
        fn image_file()(path in path(), mode in any::<u32>(), (chunks, length) in content()) -> ImageFile<Vec<Digest>> {
            ImageFile { path, length, mode, chunks }
        }
    }

    prop_compose! {
        fn job_file()(
            path in path(), mode in any::<u32>(), uid in any::<u32>(), gid in any::<u32>(), reason in text(),
            (chunks, length) in content(), stored in any::<bool>(),
            kind in prop::sample::select(vec![JobFileKind::OpenForWrite, JobFileKind::OwnedByPhos, JobFileKind::Mapped]),
        ) -> JobFile<Vec<Digest>> {
            let content = if stored { FileContent::Stored(chunks) } else { FileContent::LengthOnly };
            JobFile { path, length, mode, uid, gid, kind, content, reason }
        }
    }

    prop_compose! {
        fn facts()(
            trigger in text(), driver_version in text(), agent in text(), training in prop::collection::btree_map(text(), text(), 0..3),
            gpus in prop::collection::vec((uuid(), text(), any::<u64>(), any::<u32>()), 0..3),
            processes in prop::collection::vec((any::<u32>(), prop::collection::vec((uuid(), any::<u64>()), 0..3)), 0..3),
            stop_us in any::<u64>(), phases_us in prop::collection::btree_map(text(), any::<u64>(), 0..4),
        ) -> ManifestBody {
            ManifestBody {
                trigger, driver_version, agent, training,
                gpus: gpus.into_iter().map(|(uuid, name, total_bytes, ordinal)| Gpu { uuid, name, total_bytes, ordinal }).collect(),
                processes: processes.into_iter().map(|(pid, devices)| Process {
                    pid,
                    devices: devices.into_iter().map(|(gpu, reserve_bytes)| ProcessDevice { gpu, reserve_bytes }).collect(),
                }).collect(),
                timings: Timings { stop_us, phases_us, figures: BTreeMap::new() },
                ..Body::default()
            }
        }
    }

    prop_compose! {
        fn body()(
            facts in facts(), allocations in prop::collection::vec(allocation(), 0..6),
            cpu_image in prop::collection::vec(image_file(), 0..4), job_files in prop::collection::vec(job_file(), 0..4),
        ) -> ManifestBody {
            ManifestBody { allocations, cpu_image, job_files, ..facts }
        }
    }

    fn build(body: ManifestBody) -> Manifest {
        let table: HashMap<_, _> = (0..40).map(location).collect();
        let identity = Identity {
            job: JobName::new("job").unwrap(),
            number: CheckpointNumber(3),
            epoch: Epoch(1),
            created: UnixMillis(1_700_000_000_000),
        };
        Manifest::build(
            identity,
            body,
            0,
            |digest| table.get(digest).copied(),
            |_| Some(1 << 20),
        )
        .unwrap()
    }

    /// A manifest in which one field was changed after it was valid, sealed with a right checksum.
    fn reseal(change: impl FnOnce(&mut Manifest)) -> Vec<u8> {
        let mut manifest = build(sample());
        change(&mut manifest);
        manifest.encode(&Crypt::PLAIN).unwrap()
    }

    fn sample() -> ManifestBody {
        let chunks: Vec<Digest> = (0..10).map(|n| location(n).0).collect();
        let size_bytes = (0..10).map(|n| u64::from(location(n).1.raw)).sum();
        ManifestBody {
            allocations: vec![Allocation {
                owner_pid: 7,
                id: 1,
                gpu: GpuUuid([9; 16]),
                size_bytes,
                requested_bytes: size_bytes,
                kind: "plain".into(),
                chunks,
            }],
            ..Body::default()
        }
    }

    #[test]
    fn what_does_not_fit_together_is_refused() {
        assert!(Manifest::decode(&reseal(|_| {})).is_ok());
        for (name, bytes) in [
            ("offset outside", reseal(|m| m.chunks[0].offset = 1 << 20)),
            ("offset overflow", reseal(|m| m.chunks[0].offset = u64::MAX)),
            ("offset in header", reseal(|m| m.chunks[0].offset = 0)),
            ("no such pack", reseal(|m| m.chunks[0].pack = 99)),
            (
                "stored more than raw",
                reseal(|m| m.chunks[0].stored = m.chunks[0].raw + 1),
            ),
            ("huge chunk", reseal(|m| m.chunks[4].raw = u32::MAX)),
            (
                "size differs",
                reseal(|m| m.body.allocations[0].size_bytes += 1),
            ),
            ("chunk beyond table", reseal(|m| m.chunks.truncate(3))),
        ] {
            let error = Manifest::decode(&bytes).expect_err(name);
            assert!(
                matches!(error, ManifestError::Inconsistent { .. }),
                "{name}: {error}"
            );
        }
    }

    #[test]
    fn a_list_that_claims_billions_of_chunks_is_refused_at_once() {
        let bytes = reseal(|m| {
            m.body.allocations[0].size_bytes = u64::MAX;
            m.body.allocations[0].chunks =
                ciborium::from_reader(&b"\x81\x83\x00\x1a\xff\xff\xff\xff\x00"[..]).unwrap();
        });
        assert!(matches!(
            Manifest::decode(&bytes),
            Err(ManifestError::Inconsistent { .. })
        ));
    }

    #[test]
    fn an_unknown_chunk_and_a_wrong_length_are_named() {
        let mut body = sample();
        body.allocations[0].chunks.push(Digest([0xee; 32]));
        let table: HashMap<_, _> = (0..40).map(location).collect();
        let identity = Identity {
            job: JobName::new("j").unwrap(),
            number: CheckpointNumber(1),
            epoch: Epoch(1),
            created: UnixMillis(0),
        };
        let locate = |digest: &Digest| table.get(digest).copied();
        let error =
            Manifest::build(identity.clone(), body, 0, locate, |_| Some(1 << 20)).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("allocation 1 of process 7 names chunk eeee"),
            "{error}"
        );
        let mut body = sample();
        body.allocations[0].size_bytes += 5;
        assert!(matches!(
            Manifest::build(identity, body, 0, locate, |_| Some(1 << 20)),
            Err(ManifestError::Length { .. })
        ));
    }

    #[test]
    fn a_manifest_is_far_below_a_thousandth_of_its_image() {
        // 38 GiB of 1 MiB chunks in packs of 64.
        let n = 38 * 1024_u32;
        let chunk = |i: u32| Digest::of(&i.to_le_bytes());
        let table: HashMap<Digest, Location> = (0..n)
            .map(|i| {
                let id = PackId {
                    writer: Nonce([1; 16]),
                    sequence: i / 64,
                };
                let stored = (1 << 20) - (i % 64) * 1000;
                let offset = 64 + u64::from(i % 64) * (1 << 20);
                (
                    chunk(i),
                    Location {
                        pack: Some(id),
                        offset,
                        stored,
                        raw: 1 << 20,
                        codec: Codec::Zstd,
                    },
                )
            })
            .collect();
        let mut body = sample();
        body.allocations[0].chunks = (0..n).map(chunk).collect();
        body.allocations[0].size_bytes = u64::from(n) << 20;
        let identity = Identity {
            job: JobName::new("j").unwrap(),
            number: CheckpointNumber(1),
            epoch: Epoch(1),
            created: UnixMillis(0),
        };
        let manifest = Manifest::build(
            identity,
            body,
            0,
            |d| table.get(d).copied(),
            |_| Some(128 << 20),
        )
        .unwrap();
        let bytes = manifest.encode(&Crypt::PLAIN).unwrap().len() as u64;
        assert!(bytes < manifest.image_bytes() / 10_000, "{bytes}");
    }

    proptest! {
        #[test]
        fn round_trip(body in body()) {
            let manifest = build(body.clone());
            let bytes = manifest.encode(&Crypt::PLAIN).unwrap();
            let read = Manifest::decode(&bytes).unwrap();
            prop_assert_eq!(&read, &manifest);
            // Encrypted it is the same, where it stands and nowhere else.
            let crypt = crypt(1, "job");
            let sealed = manifest.encode(&crypt).unwrap();
            let number = manifest.number.0;
            prop_assert_eq!(&Manifest::decode_in(&crypt, number, &sealed).unwrap(), &manifest);
            prop_assert!(Manifest::decode_in(&crypt, number + 1, &sealed).is_err());
            prop_assert!(Manifest::decode(&sealed).is_err());
            prop_assert_eq!(read.body.allocations.len(), body.allocations.len());
            for (stored, given) in read.body.allocations.iter().zip(&body.allocations) {
                prop_assert_eq!(read.digests(&stored.chunks).collect::<Vec<_>>(), given.chunks.clone());
                let end = read.extents(&stored.chunks).last().map_or(0, |e| e.offset + u64::from(e.length));
                prop_assert_eq!(end, given.size_bytes);
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            prop_assert!(Manifest::decode(&bytes).is_err());
            // The same behind a right envelope: what the CBOR decoder and the validation make of it.
            let sealed = envelope::seal(&KIND, &bytes).unwrap();
            prop_assert!(Manifest::decode(&sealed).is_err());
        }

        #[test]
        fn a_changed_payload_behind_a_right_checksum_never_panics(
            body in body(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        ) {
            let (_, mut payload) = envelope::open(&KIND, &build(body).encode(&Crypt::PLAIN).unwrap()).unwrap();
            for (at, byte) in changes {
                let at = at.index(payload.len());
                payload[at] = byte;
            }
            // It may be valid (a text changed), but then it is wholly so.
            if let Ok(manifest) = Manifest::decode(&envelope::seal(&KIND, &payload).unwrap()) {
                for (list, length) in manifest.body.contents() {
                    prop_assert_eq!(manifest.extents(list).map(|e| u64::from(e.length)).sum::<u64>(), length);
                }
            }
        }
    }
}
