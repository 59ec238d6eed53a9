//! The manifest of a checkpoint: everything a restore needs except the chunks' bytes.
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

mod body;
mod build;
mod check;
#[cfg(test)]
pub(crate) mod tests;
mod wire;

use serde::{Deserialize, Serialize};

pub use self::body::{
    Allocation, Body, FileContent, FilePath, Gpu, GpuUuid, ImageFile, JobFile, JobFileKind,
    ManifestBody, Process, ProcessDevice, Timings,
};
pub(crate) use self::build::Identity;
use crate::Digest;
use crate::chunk_list::ChunkList;
use crate::codec::Codec;
use crate::envelope::{EnvelopeError, Kind};
use crate::names::{CheckpointNumber, Epoch, JobName, PackId, UnixMillis};
use crate::pack::Location;

pub(crate) const KIND: Kind = Kind {
    what: "manifest",
    magic: *b"PHOSMANI",
    version: 2,
    max_stored: 128 << 20,
    max_plain: 256 << 20,
};

/// Most bytes of the agent's own data.
const MAX_AGENT: usize = 16 << 20;

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

impl Manifest {
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
