//! A manifest as it is stored: CBOR in a checked envelope, the chunk table in columns.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::body::Body;
use super::{ChunkEntry, KIND, Manifest, ManifestError, PackEntry, inconsistent};
use crate::Digest;
use crate::chunk_list::ChunkList;
use crate::codec::Codec;
use crate::crypt::Crypt;
use crate::envelope;
use crate::names::{CheckpointNumber, Epoch, JobName, UnixMillis};

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
    /// The digests, of 32 bytes each.
    digest: Bytes,
    /// The numbers of the packs, of 4 bytes each.
    pack: Bytes,
    /// 8 bytes each: offset less the end of the chunk before, modulo 2^64. Mostly zeros.
    gap: Bytes,
    /// The stored lengths, of 4 bytes each.
    stored: Bytes,
    /// The decoded lengths, of 4 bytes each.
    raw: Bytes,
    /// The codecs, of 1 byte each.
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

/// Where a manifest stands below its job, as far as that can be known before it is sealed: its name has the digest of
/// its bytes in it, and its record says which it is.
fn place(number: u64) -> String {
    format!("manifests/{number:020}")
}

impl Manifest {
    /// The manifest's bytes as they are stored.
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

    /// The same as [`Self::decode`], for a job's checkpoint.
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
}
