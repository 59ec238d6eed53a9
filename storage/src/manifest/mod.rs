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
    Allocation, Body, FilePath, Gpu, GpuUuid, ImageFile, ManifestBody, MemberId, Process,
    ProcessDevice, Timings,
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
    version: 3,
    sealed: 5,
    max_stored: 128 << 20,
    max_plain: 256 << 20,
};

/// The most bytes that the agent's own data may have.
const MAX_AGENT: usize = 16 << 20;

/// A pack that a manifest's chunks lie in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackEntry {
    /// The id of the pack.
    pub id: PackId,
    /// The length of the pack in bytes.
    pub length: u64,
}

/// Where a chunk lies. Of a [`Codec::Zero`] chunk nothing is stored, and `pack` means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkEntry {
    /// The name of the chunk.
    pub digest: Digest,
    /// Number of its pack in [`Manifest::packs`].
    pub pack: u32,
    /// Where its stored bytes begin, from the beginning of the pack.
    pub offset: u64,
    /// The number of bytes that the chunk takes in the pack.
    pub stored: u32,
    /// The number of bytes that the chunk has once decoded.
    pub raw: u32,
    /// The form in which the chunk is stored.
    pub codec: Codec,
}

/// A chunk's place in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of the chunk in [`Manifest::chunks`].
    pub chunk: u32,
    /// The offset in the object at which the chunk's bytes begin.
    pub offset: u64,
    /// The number of bytes that the chunk has once decoded.
    pub length: u32,
}

/// A decoded and validated manifest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The job that the checkpoint belongs to.
    pub job: JobName,
    /// The number of the checkpoint in the job's log.
    pub number: CheckpointNumber,
    /// The epoch in which the checkpoint was committed.
    pub epoch: Epoch,
    /// When it was committed, as told by the caller.
    pub created: UnixMillis,
    /// The packs that the checkpoint's chunks lie in.
    pub packs: Vec<PackEntry>,
    /// Its chunks, each once, in the order in which they are first used.
    pub chunks: Vec<ChunkEntry>,
    /// What the caller said of the checkpoint.
    pub body: Body<ChunkList>,
}

/// Why a manifest could not be made or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// The envelope or the encoding of the manifest is wrong.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// What the manifest says does not fit together.
    #[error("the manifest contradicts itself: {detail}")]
    Inconsistent {
        /// What does not fit, in words.
        detail: String,
    },
    /// A chunk was named that is neither stored nor was put.
    #[error("{object} names chunk {digest}, which was never put")]
    MissingChunk {
        /// The name of the chunk.
        digest: Digest,
        /// The object that names the chunk.
        object: String,
    },
    /// An object's chunks do not add up to its length.
    #[error("the chunks of {object} add up to {found} bytes, its length is {expected}")]
    Length {
        /// The object whose chunks do not fit.
        object: String,
        /// The sum of the lengths of its chunks, in bytes.
        found: u64,
        /// The length of the object in bytes.
        expected: u64,
    },
    /// The agent's data is too large for a manifest.
    #[error("the agent's data has {length} bytes, more than the {MAX_AGENT} allowed")]
    AgentTooLarge {
        /// The length of the agent's data in bytes.
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
    /// Bytes of the whole image: device memory and CPU image, each object counted in full.
    #[must_use]
    pub fn image_bytes(&self) -> u64 {
        self.body.contents().map(|(_, length)| length).sum()
    }

    /// The number of bytes that the checkpoint's chunks take in packs.
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

    /// The chunks that are stored and where each lies, for an index.
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
