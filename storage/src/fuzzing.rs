//! Doors to the decoders that are private otherwise, for the fuzz targets in `fuzz/`. No part of the API: it may change
//! at any time.

use bytes::Bytes;

use crate::codec::{self, Codec, Encoding, EncodingPolicy, Sample};
use crate::collection::{self, Collection, Kept, ManifestRef, WriterNote};
use crate::envelope::{self, Kind};
use crate::hold::{self, ReaderNote};
use crate::manifest::{self, Manifest, ManifestError};
use crate::names::{Epoch, JobName, Nonce, UnixMillis};
use crate::pack::{self, PackError, PackIndex};
use crate::{EnvelopeError, HeadRecord, PackId, head};

/// Largest payload of a manifest in bytes, as stored and once decompressed.
pub const MANIFEST_CAPS: (u64, u64) = (manifest::KIND.max_stored, manifest::KIND.max_plain);

/// An envelope with small caps, so that a fuzzer meets them.
const ENVELOPE: Kind = Kind {
    what: "test",
    magic: *b"PHOSTEST",
    version: 1,
    max_stored: 4096,
    max_plain: 65536,
};

/// Wraps a payload in an envelope of magic `PHOSTEST` with caps of 4 KiB stored and 64 KiB plain.
pub fn seal_envelope(payload: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    envelope::seal(&ENVELOPE, payload)
}

/// Opens what [`seal_envelope`] made.
pub fn open_envelope(object: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    envelope::open(&ENVELOPE, object).map(|(_version, payload)| payload)
}

/// Reads the head record that stands at `number`.
pub fn decode_head(number: u64, bytes: &[u8]) -> Result<HeadRecord, EnvelopeError> {
    HeadRecord::decode(number, bytes)
}

/// Writes a head record.
pub fn encode_head(record: &HeadRecord) -> Result<Bytes, EnvelopeError> {
    record.encode()
}

/// Writes a manifest.
pub fn encode_manifest(manifest: &Manifest) -> Result<Vec<u8>, ManifestError> {
    manifest.encode()
}

/// Small objects beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmallObject {
    /// What a writer says of itself.
    WriterNote,
    /// What a reader says of itself.
    ReaderNote,
    /// What a collection decided.
    Collection,
}

impl SmallObject {
    /// The first bytes of its envelope.
    #[must_use]
    pub const fn magic(self) -> [u8; 8] {
        match self {
            Self::WriterNote => collection::NOTE_KIND.magic,
            Self::ReaderNote => hold::KIND.magic,
            Self::Collection => collection::KIND.magic,
        }
    }

    /// Reads one; whether it is the same once written and read again.
    pub fn reread(self, object: &[u8]) -> Result<bool, EnvelopeError> {
        Ok(match self {
            Self::WriterNote => {
                let note = WriterNote::decode(object)?;
                WriterNote::decode(&note.encode()?)? == note
            }
            Self::ReaderNote => {
                let note = ReaderNote::decode(object)?;
                ReaderNote::decode(&note.encode()?)? == note
            }
            Self::Collection => {
                let (_version, payload) = envelope::open(&collection::KIND, object)?;
                let read: Collection = envelope::from_cbor(collection::KIND.what, &payload)?;
                let again = envelope::to_cbor(collection::KIND.what, &read)?;
                envelope::from_cbor::<Collection>(collection::KIND.what, &again)? == read
            }
        })
    }

    /// One as it is written, of a job.
    pub fn example(self, job: &JobName) -> Result<Vec<u8>, EnvelopeError> {
        let manifest = ManifestRef {
            name: "00000000000000000003-0123456789abcdef".into(),
            digest: crate::Digest::of(b"manifest"),
            length: 1000,
        };
        let object = match self {
            Self::WriterNote => WriterNote {
                epoch: Epoch(3),
                seen: 7,
                leans_on: vec![manifest],
                keeps_packs: true,
                adopts: vec![Nonce([7; 16])],
            }
            .encode()?,
            Self::ReaderNote => ReaderNote {
                who: "restore on node-7".into(),
                renewed: UnixMillis(1_790_000_000_000),
                reads: vec![manifest],
            }
            .encode()?,
            Self::Collection => Collection {
                job: job.clone(),
                number: 9,
                kept: vec![Kept {
                    number: 3,
                    manifest: Some(manifest),
                }],
                completed: None,
                packs: vec![PackId {
                    writer: Nonce([7; 16]),
                    sequence: 1,
                }],
                manifests: vec!["00000000000000000002-0123456789abcdef".into()],
            }
            .encode()?,
        };
        Ok(object.to_vec())
    }
}

/// Reads a whole pack's header, trailer and index, in the order in which a reader does.
pub fn decode_pack(bytes: &[u8]) -> Result<(PackId, PackIndex), PackError> {
    let id = pack::read_header(bytes)?;
    let trailer = bytes.len().saturating_sub(pack::TRAILER as usize);
    let offset = pack::index_offset(&bytes[trailer..], bytes.len() as u64)?;
    let index = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
    Ok((id, pack::read_index(&bytes[index..], offset)?))
}

/// Makes a pack of chunks that are stored as they are.
#[must_use]
pub fn encode_pack(id: PackId, chunks: &[Bytes]) -> Vec<u8> {
    let mut builder = pack::PackBuilder::new(id);
    for chunk in chunks {
        let digest = crate::Digest::of(chunk);
        builder.push(digest, Codec::Raw, chunk.clone(), chunk.len() as u32);
    }
    builder.finish().0.concat()
}

/// Encodes a chunk: the number of its codec and its stored bytes.
pub fn encode_chunk(raw: &[u8], level: i32) -> std::io::Result<(u8, Bytes)> {
    codec::encode(raw, &Any(level)).map(|(codec, stored)| (codec as u8, stored))
}

/// Encodes a chunk in a given way (zeros and what does not shrink apart).
pub fn encode_chunk_as(raw: &[u8], encoding: Encoding) -> std::io::Result<(u8, Bytes)> {
    codec::encode(raw, &Given(encoding)).map(|(codec, stored)| (codec as u8, stored))
}

/// Always the same.
#[derive(Debug)]
struct Given(Encoding);

impl EncodingPolicy for Given {
    fn choose(&self, _: &Sample<'_>) -> Encoding {
        self.0
    }
}

/// Takes each way by turns, as the chunk says.
#[derive(Debug)]
struct Any(i32);

impl EncodingPolicy for Any {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        match sample.plain() % 4 {
            0 => Encoding::Planes2(self.0),
            1 => Encoding::Planes4(self.0),
            _ => Encoding::Zstd(self.0),
        }
    }
}

/// Decodes a chunk of `raw_length` bytes; the error is what a person would read.
pub fn decode_chunk(codec: u8, stored: Bytes, raw_length: u32) -> Result<Bytes, String> {
    let codec = Codec::from_u8(codec).ok_or_else(|| format!("codec {codec} is not known"))?;
    codec::decode(codec, stored, raw_length)
}

/// The number of a record by its name.
#[must_use]
pub fn parse_record_name(name: &str) -> Option<u64> {
    head::parse_record_name(name)
}
