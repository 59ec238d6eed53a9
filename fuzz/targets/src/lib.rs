//! What is fuzzed: one function a decoder, which takes any bytes and panics when the decoder breaks a promise.
//!
//! The promises are those of the modules themselves: no panic whatever the bytes; what is accepted is written back as
//! something that reads the same; memory within a bound that follows from the input's length and the decoder's caps, not
//! from what the input claims.
//!
//! `fuzz/fuzz_targets` hands these functions to libFuzzer; `tests/replay.rs` hands them the kept corpus in `corpus/`, so
//! that every test run repeats what fuzzing has found. Where a checksum guards the bytes, the first byte of an input says
//! whether it is the object as it stands, or what is inside, which the target then wraps: a fuzzer finds no checksums.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

pub mod memory;
pub mod seeds;

use bytes::Bytes;
use phos_agent::image::AgentImage;
use phos_protocol::channel::{self, MAX_PACKET};
use phos_storage::fuzzing::SmallObject;
use phos_storage::{Digest, HeadRecord, JobName, Manifest, Nonce, PackId, fuzzing};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A target: takes any bytes.
pub type Target = fn(&[u8]);

/// Every target by its name, which is that of its corpus and of its fuzzer.
pub const TARGETS: &[(&str, Target)] = &[
    ("envelope", envelope),
    ("head", head),
    ("manifest", manifest),
    ("pack", pack),
    ("chunk", chunk),
    ("notes", notes),
    ("sealed", sealed_objects),
    ("shim_protocol", shim_protocol),
    ("agent_protocol", agent_protocol),
    ("agent_image", agent_image),
];

/// First byte: the rest is an object as it stands.
const AS_IT_IS: u8 = 0;

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

fn split(bytes: &[u8]) -> (u8, &[u8]) {
    bytes
        .split_first()
        .map_or((AS_IT_IS, bytes), |(&mode, rest)| (mode, rest))
}

/// An envelope whose checksum is right, whatever else it says (`docs/format.md`, Envelope).
#[must_use]
pub fn forge_envelope(magic: &[u8; 8], flags: u16, plain_length: u64, stored: &[u8]) -> Vec<u8> {
    let mut object = magic.to_vec();
    object.extend_from_slice(&1_u16.to_le_bytes());
    object.extend_from_slice(&flags.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&(stored.len() as u64).to_le_bytes());
    object.extend_from_slice(&plain_length.to_le_bytes());
    let checksum = blake3::Hasher::new()
        .update(&object)
        .update(stored)
        .finalize();
    object.extend_from_slice(checksum.as_bytes());
    object.extend_from_slice(stored);
    object
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut out = [0; N];
    let n = bytes.len().min(N);
    out[..n].copy_from_slice(&bytes[..n]);
    out
}

/// The envelope around every small object. Otherwise than as it is: 2 bytes of flags, 8 bytes of length, payload.
pub fn envelope(bytes: &[u8]) {
    let (mode, rest) = split(bytes);
    let object = if mode == AS_IT_IS {
        rest.to_vec()
    } else {
        let flags = u16::from_le_bytes(array(rest));
        let length = u64::from_le_bytes(array(rest.get(2..).unwrap_or_default()));
        forge_envelope(
            b"PHOSTEST",
            flags,
            length,
            rest.get(10..).unwrap_or_default(),
        )
    };
    let opened = memory::bounded(256 * KIB, || fuzzing::open_envelope(&object));
    if let Ok(payload) = opened {
        let again = fuzzing::seal_envelope(&payload);
        // What came in compressed better than ours may not fit again.
        if let Ok(again) = again {
            assert_eq!(fuzzing::open_envelope(&again).as_deref(), Ok(&payload[..]));
        }
    }
}

/// The object to read, and the bytes that decide how much memory reading it may take.
fn sealed(magic: &[u8; 8], bytes: &[u8]) -> Vec<u8> {
    let (mode, rest) = split(bytes);
    if mode == AS_IT_IS {
        rest.to_vec()
    } else {
        forge_envelope(magic, 0, rest.len() as u64, rest)
    }
}

/// Head records.
pub fn head(bytes: &[u8]) {
    let object = sealed(b"PHOSHEAD", bytes);
    let read = |number| fuzzing::decode_head(number, &object);
    // A record says its own number and is only believed where that stands: the error tells it.
    let mut record = memory::bounded(4 * MIB, || read(2));
    if let Err(error) = &record {
        let text = error.to_string();
        if let Some(number) = text
            .split_once("it says that it is number ")
            .and_then(|(_, rest)| rest.split_once(' ')?.0.parse().ok())
        {
            record = read(number);
            assert!(record.is_ok(), "{text}");
        }
    }
    if let Ok(record) = record {
        let again: Result<HeadRecord, _> = fuzzing::encode_head(&record)
            .and_then(|bytes| fuzzing::decode_head(record.number, &bytes));
        assert_eq!(again, Ok(record));
    }
    if let Ok(name) = std::str::from_utf8(bytes)
        && let Some(number) = fuzzing::parse_record_name(name)
    {
        assert_eq!(format!("{number:020}"), name);
    }
}

/// Manifests, with the chunk table and the lists of chunks in them.
pub fn manifest(bytes: &[u8]) {
    let object = sealed(b"PHOSMANI", bytes);
    // An object that is compressed may grow to the cap; ours are small.
    let inner = object.get(10) == Some(&0);
    let limit = if inner {
        2 * MIB + 64 * object.len()
    } else {
        64 * MIB
    };
    let Ok(manifest) = memory::bounded(limit, || Manifest::decode(&object)) else {
        return;
    };
    let lists = (manifest.body.allocations.iter())
        .map(|a| (&a.chunks, a.size_bytes))
        .chain(
            manifest
                .body
                .cpu_image
                .iter()
                .map(|f| (&f.chunks, f.length)),
        );
    let mut total = 0;
    for (list, length) in lists {
        // What validation promises to everyone behind it.
        let mut end = 0;
        for extent in manifest.extents(list).take(1 << 16) {
            assert_eq!(extent.offset, end);
            end += u64::from(extent.length);
        }
        assert!(list.len() > 1 << 16 || end == length);
        assert!(list.len() > 1 << 16 || manifest.digests(list).count() as u64 == list.len());
        total += length;
    }
    assert_eq!(manifest.image_bytes(), total);
    let _ = manifest.stored_bytes();
    if let Ok(again) = fuzzing::encode_manifest(&manifest) {
        assert_eq!(Manifest::decode(&again), Ok(manifest));
    }
}

/// Which small object an input of `notes` is: by its first byte, halved.
pub const NOTES: [SmallObject; 4] = [
    SmallObject::WriterNote,
    SmallObject::ReaderNote,
    SmallObject::Collection,
    SmallObject::Lease,
];

/// Writers' and readers' notes, what collections decided, and leases: by the first byte. If that is odd, the rest is what is inside.
pub fn notes(bytes: &[u8]) {
    let (mode, rest) = split(bytes);
    let kind = NOTES[usize::from(mode / 2) % NOTES.len()];
    let inside = mode % 2 == 1;
    let object = if inside {
        forge_envelope(&kind.magic(), 0, rest.len() as u64, rest)
    } else {
        rest.to_vec()
    };
    // An object that is compressed may grow to its cap; ours are small.
    let limit = if object.get(10) == Some(&0) {
        2 * MIB + 64 * object.len()
    } else {
        512 * MIB
    };
    if let Ok(same) = memory::bounded(limit, || kind.reread(&object)) {
        assert!(same, "{kind:?}");
    }
}

/// Packs. Otherwise than as they are: a length of chunks (2 bytes), then index entries.
pub fn pack(bytes: &[u8]) {
    let (mode, rest) = split(bytes);
    let object = if mode == AS_IT_IS {
        rest.to_vec()
    } else {
        let chunks = usize::from(u16::from_le_bytes(array(rest)));
        forge_pack(chunks, rest.get(2..).unwrap_or_default())
    };
    let limit = 64 * KIB + 4 * object.len();
    let Ok((id, index)) = memory::bounded(limit, || fuzzing::decode_pack(&object)) else {
        return;
    };
    let mut chunks = Vec::new();
    for entry in &index.chunks {
        let start = usize::try_from(entry.offset).unwrap();
        chunks.push(Bytes::copy_from_slice(
            &object[start..start + entry.stored as usize],
        ));
    }
    let again = fuzzing::encode_pack(id, &chunks);
    let (same, lengths) = fuzzing::decode_pack(&again).unwrap();
    assert_eq!(same, id);
    for (entry, chunk) in lengths.chunks.iter().zip(&chunks) {
        assert_eq!(entry.digest, Digest::of(chunk));
    }
    assert_eq!(PackId::parse(&id.to_string()), Some(id));
}

/// A pack whose checksums are right: `chunks` bytes of zeros, then `index`.
fn forge_pack(chunks: usize, index: &[u8]) -> Vec<u8> {
    let id = PackId {
        writer: Nonce([3; 16]),
        sequence: 9,
    };
    let empty = fuzzing::encode_pack(id, &[]);
    let mut object = empty[..64].to_vec();
    object.resize(64 + chunks, 0);
    let mut trailer = b"PHOSPIDX".to_vec();
    trailer.extend_from_slice(&1_u16.to_le_bytes());
    trailer.extend_from_slice(&[0; 2]);
    trailer.extend_from_slice(&((index.len() / 52) as u32).to_le_bytes());
    trailer.extend_from_slice(&(object.len() as u64).to_le_bytes());
    trailer.extend_from_slice(&[0; 8]);
    let checksum = blake3::Hasher::new()
        .update(index)
        .update(&trailer)
        .finalize();
    trailer.extend_from_slice(checksum.as_bytes());
    object.extend_from_slice(index);
    object.extend_from_slice(&trailer);
    object
}

/// Objects of an encrypted job, whose key no input knows. First byte: 0 an envelope as it stands, 1 what is in one, 2 any
/// object as it stands, 3 what is in a pack. What is made here and then changed is refused.
pub fn sealed_objects(bytes: &[u8]) {
    let (mode, rest) = split(bytes);
    let job = fuzzing::SealedJob::new(&JobName::new("fuzz").unwrap());
    let changed = |mut object: Vec<u8>| {
        let at = usize::from(u16::from_le_bytes(array(rest))) % object.len();
        object[at] ^= 1 << (rest.len() % 8);
        object
    };
    match mode % 4 {
        0 => {
            let opened = memory::bounded(256 * KIB, || job.open("place", rest));
            if let Ok(payload) = opened
                && let Ok(again) = job.seal("place", &payload)
            {
                assert_eq!(job.open("place", &again), Ok(payload));
            }
        }
        1 => {
            let Ok(object) = job.seal("place", rest) else {
                return;
            };
            assert_eq!(job.open("place", &object).as_deref(), Ok(rest));
            assert!(job.open("other", &object).is_err());
            assert!(fuzzing::open_envelope(&object).is_err());
            assert!(job.open("place", &changed(object)).is_err());
        }
        2 => memory::bounded(2 * MIB + 4 * rest.len(), || {
            assert!(job.decode_head(1, rest).is_err());
            assert!(job.decode_manifest(1, rest).is_err());
            let _ = job.decode_pack(rest);
            let stored = Bytes::copy_from_slice(rest);
            assert!(job.open_chunk(&Digest::of(rest), stored).is_err());
        }),
        _ => {
            let id = PackId {
                writer: Nonce([3; 16]),
                sequence: 9,
            };
            let empty = job.encode_pack(id, &[]);
            assert_eq!(job.decode_pack(&empty).unwrap().0, id);
            assert!(job.decode_pack(&changed(empty)).is_err());
            let chunks: Vec<Bytes> = rest.chunks(100).map(Bytes::copy_from_slice).collect();
            let pack = job.encode_pack(id, &chunks);
            let (same, index) = job.decode_pack(&pack).unwrap();
            assert_eq!((same, index.chunks.len()), (id, chunks.len()));
            assert!(fuzzing::decode_pack(&pack).is_err());
        }
    }
}

/// Chunks: the number of a codec, 4 bytes of length, stored bytes. Codec 255: the rest is encoded and decoded.
pub fn chunk(bytes: &[u8]) {
    let (codec, rest) = split(bytes);
    if codec == u8::MAX {
        let (codec, stored) = fuzzing::encode_chunk(rest, 1).unwrap();
        assert!(stored.len() <= rest.len());
        let back = fuzzing::decode_chunk(codec, stored, rest.len() as u32).unwrap();
        assert_eq!(&back[..], rest);
        return;
    }
    let length = u32::from_le_bytes(array(rest));
    let stored = Bytes::copy_from_slice(rest.get(4..).unwrap_or_default());
    // The zeros of codec 0 are made once, 4 MiB.
    let raw = memory::bounded(10 * MIB, || fuzzing::decode_chunk(codec, stored, length));
    if let Ok(raw) = raw {
        assert_eq!(raw.len(), length as usize);
    }
}

fn packet<M: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    // A vector of empty strings is 24 bytes for one of the packet's.
    let decoded = memory::bounded(96 * MAX_PACKET, || channel::decode::<M>(bytes));
    if let Ok(message) = decoded {
        let again = channel::encode(&message, 0).unwrap();
        assert_eq!(channel::decode::<M>(&again).unwrap(), message);
    }
}

/// A packet; otherwise than as it is, only its payload.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let (mode, rest) = split(bytes);
    if mode == AS_IT_IS {
        return rest.to_vec();
    }
    let mut packet = b"PHOS".to_vec();
    packet.extend_from_slice(&channel::VERSION.to_le_bytes());
    packet.extend_from_slice(&[0, 0]);
    packet.extend_from_slice(rest);
    packet
}

/// Messages between shim and agent, in both directions.
pub fn shim_protocol(bytes: &[u8]) {
    let bytes = framed(bytes);
    packet::<phos_protocol::shim::ToAgent>(&bytes);
    packet::<phos_protocol::shim::ToShim>(&bytes);
}

/// Messages between agent and sidecar, in both directions.
pub fn agent_protocol(bytes: &[u8]) {
    let bytes = framed(bytes);
    packet::<phos_protocol::agent::ToAgent>(&bytes);
    packet::<phos_protocol::agent::ToSidecar>(&bytes);
}

/// `agent.json` of an image.
pub fn agent_image(bytes: &[u8]) {
    let limit = 64 * KIB + 96 * bytes.len();
    let Ok(image) = memory::bounded(limit, || AgentImage::parse(bytes)) else {
        return;
    };
    let again = serde_json::to_vec(&image).unwrap();
    assert_eq!(AgentImage::parse(&again).unwrap(), image);
}
