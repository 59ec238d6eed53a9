//! Makes a manifest from a body that names content by digest, or from another manifest whose chunks were moved.

use std::collections::HashMap;

use super::body::ManifestBody;
use super::{ChunkEntry, MAX_AGENT, Manifest, ManifestError, PackEntry, inconsistent};
use crate::Digest;
use crate::chunk_list::ChunkList;
use crate::codec::Codec;
use crate::names::{CheckpointNumber, Epoch, JobName, PackId, UnixMillis};
use crate::pack::Location;

/// What storage itself says of a checkpoint.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub job: JobName,
    pub number: CheckpointNumber,
    pub epoch: Epoch,
    pub created: UnixMillis,
}

/// The tables of packs and chunks, being filled. Each pack and each chunk stands there once.
#[derive(Default)]
struct Tables {
    packs: Vec<PackEntry>,
    pack_numbers: HashMap<PackId, u32>,
    chunks: Vec<ChunkEntry>,
    numbers: HashMap<Digest, u32>,
}

impl Tables {
    /// The number of a pack, of which `length` is asked if it is a new one.
    fn pack(
        &mut self,
        id: PackId,
        length: impl FnOnce() -> Result<u64, ManifestError>,
    ) -> Result<u32, ManifestError> {
        if let Some(&number) = self.pack_numbers.get(&id) {
            return Ok(number);
        }
        let length = length()?;
        let number = u32::try_from(self.packs.len())
            .map_err(|_| inconsistent("it needs more than 2^32 packs"))?;
        self.packs.push(PackEntry { id, length });
        self.pack_numbers.insert(id, number);
        Ok(number)
    }

    /// The number of a chunk that lies in the pack of that number, if it lies in one.
    fn chunk(&mut self, digest: Digest, pack: u32, at: Location) -> Result<u32, ManifestError> {
        let Location {
            offset,
            stored,
            raw,
            codec,
            ..
        } = at;
        let number = u32::try_from(self.chunks.len())
            .map_err(|_| inconsistent("it needs more than 2^32 chunks"))?;
        self.chunks.push(ChunkEntry {
            digest,
            pack,
            offset,
            stored,
            raw,
            codec,
        });
        self.numbers.insert(digest, number);
        Ok(number)
    }

    /// The number of bytes that a chunk has once decoded.
    fn raw_length(&self, number: u32) -> u64 {
        (self.chunks.get(number as usize)).map_or(0, |chunk| u64::from(chunk.raw))
    }
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
        let mut tables = Tables::default();
        let body = body.try_map(|digests, length, object| {
            let mut total = 0_u64;
            let mut list = Vec::with_capacity(digests.len());
            for digest in digests {
                let missing = || ManifestError::MissingChunk {
                    digest,
                    object: object.to_string(),
                };
                let number = match tables.numbers.get(&digest) {
                    Some(&number) => number,
                    None => {
                        let at = locate(&digest).ok_or_else(missing)?;
                        let pack = match at.pack {
                            None => 0,
                            Some(id) => tables.pack(id, || pack_length(&id).ok_or_else(missing))?,
                        };
                        tables.chunk(digest, pack, at)?
                    }
                };
                total += tables.raw_length(number);
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
            packs: tables.packs,
            chunks: tables.chunks,
            body,
        };
        manifest.validate(overhead)?;
        Ok(manifest)
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
}
