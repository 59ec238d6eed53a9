//! Doors to the decoders that are private otherwise, for the fuzz targets in `fuzz/`. No part of the API: it may change
//! at any time.

use bytes::Bytes;

use crate::branch::Fork;
use crate::codec::{self, Codec, Encoding, EncodingPolicy, Sample};
use crate::collection::{self, Collection, Kept, ManifestRef, WriterNote};
use crate::crypt::{Crypt, Key};
use crate::envelope::{self, Kind, SEALED_VERSION};
use crate::job::{LEASE_KIND, Lease, READER_NOTE_KIND, ReaderNote};
use crate::manifest::{self, Manifest, ManifestError};
use crate::names::{Epoch, JobName, Nonce, NonceSource, UnixMillis};
use crate::pack::{self, PackError, PackIndex};
use crate::{EnvelopeError, HeadRecord, PackId, head};

/// Largest payload of a manifest in bytes, as stored and once decompressed.
pub const MANIFEST_CAPS: (u64, u64) = (manifest::KIND.max_stored, manifest::KIND.max_plain);

/// An envelope with small caps, so that a fuzzer meets them.
const ENVELOPE: Kind = Kind {
    what: "test",
    magic: *b"PHOSTEST",
    version: 1,
    sealed: SEALED_VERSION,
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
    HeadRecord::decode(&Crypt::PLAIN, number, bytes)
}

/// Writes a head record.
pub fn encode_head(record: &HeadRecord) -> Result<Bytes, EnvelopeError> {
    record.encode(&Crypt::PLAIN)
}

/// Encodes a manifest as it is stored.
pub fn encode_manifest(manifest: &Manifest) -> Result<Vec<u8>, ManifestError> {
    manifest.encode(&Crypt::PLAIN)
}

/// Whose a note is: only of interest where it is encrypted.
const WHO: Nonce = Nonce([1; 16]);

/// Small objects beside the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmallObject {
    /// The note of a writer: what it needs while it writes.
    WriterNote,
    /// The note of a reader: what it needs while it reads.
    ReaderNote,
    /// The decision of a collection.
    Collection,
    /// The lease of a job.
    Lease,
}

impl SmallObject {
    /// The first eight bytes of an envelope of this kind.
    #[must_use]
    pub const fn magic(self) -> [u8; 8] {
        match self {
            Self::WriterNote => collection::NOTE_KIND.magic,
            Self::ReaderNote => READER_NOTE_KIND.magic,
            Self::Collection => collection::KIND.magic,
            Self::Lease => LEASE_KIND.magic,
        }
    }

    /// Reads one; whether it is the same once written and read again.
    pub fn reread(self, object: &[u8]) -> Result<bool, EnvelopeError> {
        Ok(match self {
            Self::WriterNote => {
                let note = WriterNote::decode(&Crypt::PLAIN, &WHO, object)?;
                let again = note.encode(&Crypt::PLAIN, &WHO)?;
                WriterNote::decode(&Crypt::PLAIN, &WHO, &again)? == note
            }
            Self::ReaderNote => {
                let note = ReaderNote::decode(&Crypt::PLAIN, &WHO, object)?;
                let again = note.encode(&Crypt::PLAIN, &WHO)?;
                ReaderNote::decode(&Crypt::PLAIN, &WHO, &again)? == note
            }
            Self::Collection => {
                let (_version, payload) = envelope::open(&collection::KIND, object)?;
                let read: Collection = envelope::from_cbor(collection::KIND.what, &payload)?;
                let again = envelope::to_cbor(collection::KIND.what, &read)?;
                envelope::from_cbor::<Collection>(collection::KIND.what, &again)? == read
            }
            Self::Lease => {
                let lease = Lease::decode(&Crypt::PLAIN, object)?;
                let again = lease.encode(&Crypt::PLAIN)?;
                Lease::decode(&Crypt::PLAIN, &again)? == lease
            }
        })
    }

    /// An example of this kind of object as it is written for a job.
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
                references: vec![manifest],
                keeps_packs: true,
                adopts: vec![Nonce([7; 16])],
            }
            .encode(&Crypt::PLAIN, &WHO)?,
            Self::ReaderNote => ReaderNote {
                who: "restore on node-7".into(),
                renewed: UnixMillis(1_790_000_000_000),
                reads: vec![manifest],
            }
            .encode(&Crypt::PLAIN, &WHO)?,
            Self::Lease => Lease {
                epoch: Epoch(3),
                holder: "node-7 (pid 12)".into(),
                node: "node-7 0123".into(),
                beat: 5,
                renewed: UnixMillis(1_790_000_000_000),
                length_ms: 30_000,
                released: false,
            }
            .encode(&Crypt::PLAIN)?,
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
                forks: vec![Fork { at: 7, after: 3 }],
                lost: Some(6),
            }
            .encode(&Crypt::PLAIN)?,
        };
        Ok(object.to_vec())
    }
}

/// Reads a whole pack's header, trailer and index, in the order in which a reader does.
pub fn decode_pack(bytes: &[u8]) -> Result<(PackId, PackIndex), PackError> {
    decode_pack_in(&Crypt::PLAIN, bytes)
}

fn decode_pack_in(crypt: &Crypt, bytes: &[u8]) -> Result<(PackId, PackIndex), PackError> {
    let id = pack::read_header(crypt, bytes)?;
    let trailer = bytes.len().saturating_sub(pack::TRAILER as usize);
    let offset = pack::index_offset(crypt, &bytes[trailer..], bytes.len() as u64)?;
    let index = usize::try_from(offset).map_or(bytes.len(), |at| at.min(bytes.len()));
    let index = pack::read_index(crypt, &id, &bytes[index..], offset)?;
    Ok((id, index))
}

/// Makes a pack of chunks that are stored as they are.
#[must_use]
pub fn encode_pack(id: PackId, chunks: &[Bytes]) -> Vec<u8> {
    encode_pack_in(&Crypt::PLAIN, id, chunks)
}

fn encode_pack_in(crypt: &Crypt, id: PackId, chunks: &[Bytes]) -> Vec<u8> {
    let mut builder = pack::PackBuilder::new(crypt, id);
    for chunk in chunks {
        let digest = crypt.name(chunk);
        builder.push(digest, Codec::Raw, [chunk.clone()], chunk.len() as u32);
    }
    let finished = builder.finish();
    finished.map_or_else(Vec::new, |(pieces, _)| pieces.concat())
}

/// A job with a key that the fuzzer does not know how to use.
#[derive(Debug)]
pub struct SealedJob(Crypt);

impl SealedJob {
    /// Of a job. The random numbers that it draws are always the same.
    #[must_use]
    pub fn new(job: &JobName) -> Self {
        let random = NonceSource::new(|| [7; 16]);
        Self(Crypt::of_job(Some(&Key::new(&[1; 32])), job, &random))
    }

    /// Wraps a payload as [`seal_envelope`] does, encrypted for a place.
    pub fn seal(&self, place: &str, payload: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        envelope::seal_in(&self.0, place, &ENVELOPE, payload)
    }

    /// Opens what [`Self::seal`] made.
    pub fn open(&self, place: &str, object: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
        envelope::open_in(&self.0, place, &ENVELOPE, object).map(|(_version, payload)| payload)
    }

    /// Reads the head record that stands at `number`.
    pub fn decode_head(&self, number: u64, bytes: &[u8]) -> Result<HeadRecord, EnvelopeError> {
        HeadRecord::decode(&self.0, number, bytes)
    }

    /// Reads the manifest of a checkpoint.
    pub fn decode_manifest(&self, number: u64, bytes: &[u8]) -> Result<Manifest, ManifestError> {
        Manifest::decode_in(&self.0, number, bytes)
    }

    /// The same as the function [`encode_pack`], for a sealed job.
    #[must_use]
    pub fn encode_pack(&self, id: PackId, chunks: &[Bytes]) -> Vec<u8> {
        encode_pack_in(&self.0, id, chunks)
    }

    /// The same as the function [`decode_pack`], for a sealed job.
    pub fn decode_pack(&self, bytes: &[u8]) -> Result<(PackId, PackIndex), PackError> {
        decode_pack_in(&self.0, bytes)
    }

    /// Opens the box of a chunk that is stored as it is; the error is what a person would read.
    pub fn open_chunk(&self, name: &crate::Digest, stored: Bytes) -> Result<Bytes, String> {
        let raw = stored.len() as u32;
        self.0.open_chunk(name, Codec::Raw, raw, stored)
    }
}

/// Encodes a chunk: the number of its codec and its stored bytes.
pub fn encode_chunk(raw: &[u8], level: i32) -> std::io::Result<(u8, Bytes)> {
    encode_chunk_by(raw, &Any(level))
}

/// Encodes a chunk as a policy says.
pub fn encode_chunk_by(raw: &[u8], policy: &dyn EncodingPolicy) -> std::io::Result<(u8, Bytes)> {
    let keep = |_, stored: &[u8]| Bytes::copy_from_slice(stored);
    codec::encode(raw, policy, keep).map(|(codec, stored)| (codec as u8, stored))
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

/// The number of the record that has this name; `None` if it is no record's.
#[must_use]
pub fn parse_record_name(name: &str) -> Option<u64> {
    head::parse_record_name(name)
}
