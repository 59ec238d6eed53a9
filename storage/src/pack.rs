//! Packs: tens of MiB of encoded chunks in the order in which they were put, with an index of their own at the end.
//! Drawn in `docs/format.md`.
//!
//! Manifests say where each chunk lies, so restoring needs no index of a pack; the index makes a pack describe itself, for
//! verification, for repair and for continuing the uploads of a writer that died.
//!
//! In an encrypted job each chunk is a box, and so is the index (see `crypt`): the pack's name and the trailer are the
//! index's associated data. The header says only whose pack it is, which the index vouches for.

use bytes::Bytes;

use crate::codec::Codec;
use crate::crypt::{Crypt, KeyId, OVERHEAD};
use crate::envelope::{EnvelopeError, FLAG_SEALED, SEALED_VERSION, array};
use crate::names::{Nonce, PackId};
use crate::{Digest, MAX_CHUNK_SIZE};

const MAGIC: [u8; 8] = *b"PHOSPACK";
const INDEX_MAGIC: [u8; 8] = *b"PHOSPIDX";
/// What is written. Version 1 knows no byte planes and is otherwise the same.
const VERSION: u16 = 2;
/// Length of the header in bytes.
pub(crate) const HEADER: u64 = 64;
/// Length of the trailer in bytes.
pub(crate) const TRAILER: u64 = 64;
/// Length of one index entry in bytes.
const ENTRY: u64 = 52;
/// The most chunks that a pack may hold.
pub(crate) const MAX_CHUNKS: u32 = 1 << 17;

/// Length in bytes of a pack of so many chunks that take so many bytes.
pub(crate) fn length_of(crypt: &Crypt, chunks: u64, stored: u64) -> u64 {
    HEADER + stored + chunks * ENTRY + u64::from(crypt.overhead()) + TRAILER
}

/// Where a chunk lies, whatever manifest or index says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Location {
    /// The pack; `None` if nothing is stored.
    pub pack: Option<PackId>,
    /// Where its stored bytes begin, from the beginning of the pack.
    pub offset: u64,
    /// The number of bytes that the chunk takes in the pack.
    pub stored: u32,
    /// The number of bytes that the chunk has once decoded.
    pub raw: u32,
    pub codec: Codec,
}

impl Location {
    /// The offset in the pack at which the chunk's stored bytes end.
    pub(crate) const fn end(&self) -> u64 {
        self.offset + self.stored as u64
    }
}

/// One chunk of a pack, as the pack's index lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackIndexEntry {
    /// The name of the chunk.
    pub digest: Digest,
    /// Where its stored bytes begin, from the beginning of the pack.
    pub offset: u64,
    /// The number of bytes that the chunk takes in the pack.
    pub stored: u32,
    /// The number of bytes that the chunk has once decoded.
    pub raw: u32,
    /// The form in which the chunk is stored.
    pub codec: Codec,
}

/// The chunks that a pack holds, by its own index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackIndex {
    /// The chunks, in the order in which they lie in the pack.
    pub chunks: Vec<PackIndexEntry>,
}

/// Why a pack was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// Too short, wrong magic, wrong checksum or entries that point outside.
    #[error("the pack is damaged: {detail}")]
    Damaged {
        /// What is wrong with the pack.
        detail: String,
    },
    /// It is encrypted with another key, or not, or cannot be decrypted.
    #[error(transparent)]
    Key(EnvelopeError),
    /// The pack was written by a newer phos-ft.
    #[error(
        "the pack has format {found}, this phos-ft reads up to {SEALED_VERSION}: use the newer phos-ft that wrote it"
    )]
    Newer {
        /// The version that the pack says.
        found: u16,
    },
}

fn damaged(detail: impl Into<String>) -> PackError {
    PackError::Damaged {
        detail: detail.into(),
    }
}

/// A pack being filled.
#[derive(Debug)]
pub(crate) struct PackBuilder {
    id: PackId,
    pieces: Vec<Bytes>,
    length: u64,
    index: Vec<u8>,
    count: u32,
    crypt: Crypt,
}

/// Version and flags of what is written.
fn version(crypt: &Crypt) -> [u8; 4] {
    let (version, flags) = match crypt.keys() {
        None => (VERSION, 0),
        Some(_) => (SEALED_VERSION, FLAG_SEALED),
    };
    let ([a, b], [c, d]) = (version.to_le_bytes(), flags.to_le_bytes());
    [a, b, c, d]
}

/// Checks version, flags and key of a header or trailer that has the id of its key at `id`. Whether it is sealed.
fn check_version(crypt: &Crypt, bytes: &[u8], id: usize) -> Result<bool, PackError> {
    let what = "pack";
    let short = || damaged("it is cut off");
    let version = u16::from_le_bytes(array(bytes, 8).ok_or_else(short)?);
    let flags = u16::from_le_bytes(array(bytes, 10).ok_or_else(short)?);
    let sealed = version == SEALED_VERSION && flags & FLAG_SEALED != 0;
    if !(1..=VERSION).contains(&version) && !sealed {
        return Err(PackError::Newer { found: version });
    }
    let found = KeyId(array(bytes, id).ok_or_else(short)?);
    let error = match (crypt.keys(), sealed) {
        (None, false) => return Ok(false),
        (None, true) => EnvelopeError::NoKey { what, id: found },
        (Some(_), false) => EnvelopeError::Plain { what },
        (Some(keys), true) if keys.id() == found => return Ok(true),
        (Some(keys), true) => EnvelopeError::OtherKey {
            what,
            found,
            given: keys.id(),
        },
    };
    Err(PackError::Key(error))
}

/// What the box of an index is for: the trailer and the pack.
fn about_index(trailer: &[u8], id: &PackId) -> Vec<u8> {
    [trailer, &id.writer.0, &id.sequence.to_le_bytes()].concat()
}

impl PackBuilder {
    pub(crate) fn new(crypt: &Crypt, id: PackId) -> Self {
        let mut header = Vec::with_capacity(HEADER as usize);
        header.extend_from_slice(&MAGIC);
        header.extend_from_slice(&version(crypt));
        header.extend_from_slice(&id.sequence.to_le_bytes());
        header.extend_from_slice(&id.writer.0);
        if let Some(keys) = crypt.keys() {
            header.extend_from_slice(&keys.id().0);
        }
        let checksum = *blake3::hash(&header).as_bytes();
        // With the id of a key there is room for 24 bytes of it.
        let room = HEADER as usize - header.len();
        header.extend_from_slice(&checksum[..room]);
        Self {
            crypt: crypt.clone(),
            id,
            pieces: vec![header.into()],
            length: HEADER,
            index: Vec::new(),
            count: 0,
        }
    }

    pub(crate) const fn id(&self) -> PackId {
        self.id
    }

    /// The length of the pack so far in bytes, header included, index not.
    pub(crate) const fn length(&self) -> u64 {
        self.length
    }

    pub(crate) const fn is_full(&self) -> bool {
        self.count >= MAX_CHUNKS
    }

    /// Adds a chunk, whose stored bytes may come in pieces.
    pub(crate) fn push(
        &mut self,
        digest: Digest,
        codec: Codec,
        stored: impl IntoIterator<Item = Bytes>,
        raw: u32,
    ) -> Location {
        let before = self.pieces.len();
        self.pieces.extend(stored);
        let stored: usize = self.pieces.iter().skip(before).map(Bytes::len).sum();
        // Readers allocate by what the index and manifests say.
        assert!(
            raw as usize <= MAX_CHUNK_SIZE && stored <= raw as usize + OVERHEAD,
            "a chunk of {raw} bytes takes {stored} in a pack"
        );
        assert!(self.count < MAX_CHUNKS, "pack {} is full", self.id);
        let location = Location {
            pack: Some(self.id),
            offset: self.length,
            stored: stored as u32,
            raw,
            codec,
        };
        self.index.extend_from_slice(&digest.0);
        self.index.extend_from_slice(&location.offset.to_le_bytes());
        self.index.extend_from_slice(&location.stored.to_le_bytes());
        self.index.extend_from_slice(&raw.to_le_bytes());
        self.index.extend_from_slice(&[codec as u8, 0, 0, 0]);
        self.length += stored as u64;
        self.count += 1;
        location
    }

    /// Closes the pack: its pieces in order, and its whole length; `None` if its index cannot be encrypted.
    pub(crate) fn finish(mut self) -> Option<(Vec<Bytes>, u64)> {
        let mut trailer = Vec::with_capacity(TRAILER as usize);
        trailer.extend_from_slice(&INDEX_MAGIC);
        trailer.extend_from_slice(&version(&self.crypt));
        trailer.extend_from_slice(&self.count.to_le_bytes());
        trailer.extend_from_slice(&self.length.to_le_bytes());
        match self.crypt.keys() {
            None => trailer.extend_from_slice(&[0; 8]),
            Some(keys) => {
                trailer.extend_from_slice(&keys.id().0);
                let about = about_index(&trailer, &self.id);
                self.index = keys.seal(&about, &self.index, &self.index).ok()?;
            }
        }
        let checksum = *blake3::Hasher::new()
            .update(&self.index)
            .update(&trailer)
            .finalize()
            .as_bytes();
        trailer.extend_from_slice(&checksum);
        let total = self.length + self.index.len() as u64 + TRAILER;
        self.pieces.push(self.index.into());
        self.pieces.push(trailer.into());
        Some((self.pieces, total))
    }
}

/// Checks a pack's header and tells whose it is.
pub(crate) fn read_header(crypt: &Crypt, bytes: &[u8]) -> Result<PackId, PackError> {
    let short = || damaged("its header is cut off");
    if array::<8>(bytes, 0).ok_or_else(short)? != MAGIC {
        return Err(damaged("its first bytes are not those of a pack"));
    }
    let split = if check_version(crypt, bytes, 32)? {
        40
    } else {
        32
    };
    let header = bytes.get(..HEADER as usize).ok_or_else(short)?;
    let (said, checksum) = header.split_at(split);
    if blake3::hash(said).as_bytes()[..checksum.len()] != *checksum {
        return Err(damaged("the checksum of its header is wrong"));
    }
    Ok(PackId {
        sequence: u32::from_le_bytes(array(bytes, 12).ok_or_else(short)?),
        writer: Nonce(array(bytes, 16).ok_or_else(short)?),
    })
}

/// Where the index of a pack of `length` bytes begins, by its trailer.
pub(crate) fn index_offset(crypt: &Crypt, trailer: &[u8], length: u64) -> Result<u64, PackError> {
    let short = || damaged("its trailer is cut off");
    if array::<8>(trailer, 0).ok_or_else(short)? != INDEX_MAGIC {
        return Err(damaged("it does not end with an index: it was cut off"));
    }
    let sealed = check_version(crypt, trailer, 24)?;
    let count = u32::from_le_bytes(array(trailer, 12).ok_or_else(short)?);
    let offset = u64::from_le_bytes(array(trailer, 16).ok_or_else(short)?);
    let index = u64::from(count) * ENTRY + if sealed { OVERHEAD as u64 } else { 0 };
    let end = index
        .checked_add(offset)
        .and_then(|end| end.checked_add(TRAILER));
    if count > MAX_CHUNKS || offset < HEADER || end != Some(length) {
        return Err(damaged(format!(
            "its index of {count} chunks at {offset} does not fit its {length} bytes"
        )));
    }
    Ok(offset)
}

/// Reads the index and trailer of the pack of that name. `bytes` are those from [`index_offset`] to the end.
pub(crate) fn read_index(
    crypt: &Crypt,
    id: &PackId,
    bytes: &[u8],
    offset: u64,
) -> Result<PackIndex, PackError> {
    let split = bytes
        .len()
        .checked_sub(TRAILER as usize)
        .ok_or_else(|| damaged("its index is cut off"))?;
    let (index, trailer) = bytes.split_at(split);
    index_offset(crypt, trailer, offset.saturating_add(bytes.len() as u64))?;
    let checksum: [u8; 32] = array(trailer, 32).ok_or_else(|| damaged("its trailer is cut off"))?;
    if *blake3::Hasher::new()
        .update(index)
        .update(&trailer[..32])
        .finalize()
        .as_bytes()
        != checksum
    {
        return Err(damaged("the checksum of its index is wrong"));
    }
    let opened;
    let index = match crypt.keys() {
        None => index,
        Some(keys) => {
            let about = about_index(&trailer[..32], id);
            opened = keys
                .open(&about, index)
                .map_err(|_| PackError::Key(EnvelopeError::Forged { what: "pack" }))?;
            opened.as_slice()
        }
    };
    let mut chunks = Vec::with_capacity(index.len() / ENTRY as usize);
    let mut at = HEADER;
    for entry in index.chunks_exact(ENTRY as usize) {
        let bad = || damaged("an entry of its index is wrong");
        let read = PackIndexEntry {
            digest: Digest(array(entry, 0).ok_or_else(bad)?),
            offset: u64::from_le_bytes(array(entry, 32).ok_or_else(bad)?),
            stored: u32::from_le_bytes(array(entry, 40).ok_or_else(bad)?),
            raw: u32::from_le_bytes(array(entry, 44).ok_or_else(bad)?),
            codec: entry
                .get(48)
                .and_then(|&codec| Codec::from_u8(codec))
                .ok_or_else(bad)?,
        };
        if read.offset != at || read.raw as usize > MAX_CHUNK_SIZE {
            return Err(bad());
        }
        at += u64::from(read.stored);
        chunks.push(read);
    }
    if at != offset {
        return Err(damaged("its index does not cover its chunks"));
    }
    Ok(PackIndex { chunks })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::tests::crypt;
    use proptest::prelude::*;

    const ID: PackId = PackId {
        writer: Nonce([3; 16]),
        sequence: 9,
    };

    fn build(crypt: &Crypt, chunks: &[Vec<u8>]) -> (Vec<u8>, Vec<PackIndexEntry>) {
        let mut pack = PackBuilder::new(crypt, ID);
        let mut entries = Vec::new();
        for chunk in chunks {
            let digest = Digest::of(chunk);
            let at = pack.push(
                digest,
                Codec::Raw,
                [chunk.clone().into()],
                chunk.len() as u32,
            );
            entries.push(PackIndexEntry {
                digest,
                offset: at.offset,
                stored: at.stored,
                raw: at.raw,
                codec: at.codec,
            });
        }
        let (pieces, length) = pack.finish().unwrap();
        let bytes = pieces.concat();
        assert_eq!(bytes.len() as u64, length);
        let stored = entries.iter().map(|entry| u64::from(entry.stored)).sum();
        assert_eq!(length_of(crypt, entries.len() as u64, stored), length);
        (bytes, entries)
    }

    fn parse(crypt: &Crypt, bytes: &[u8]) -> Result<(PackId, PackIndex), PackError> {
        let id = read_header(crypt, bytes)?;
        let trailer = bytes
            .len()
            .checked_sub(TRAILER as usize)
            .ok_or_else(|| damaged("short"))?;
        let offset = index_offset(crypt, &bytes[trailer..], bytes.len() as u64)?;
        let index = read_index(crypt, &id, &bytes[offset as usize..], offset)?;
        Ok((id, index))
    }

    /// Not encrypted, and encrypted.
    fn both() -> [Crypt; 2] {
        [Crypt::PLAIN, crypt(1, "a")]
    }

    #[test]
    fn a_pack_of_another_key_or_name_is_refused() {
        let (keyed, other) = (crypt(1, "a"), crypt(2, "a"));
        let chunks = [vec![1; 100]];
        let (bytes, _) = build(&keyed, &chunks);
        assert!(parse(&keyed, &bytes).is_ok());
        assert!(matches!(
            parse(&Crypt::PLAIN, &bytes),
            Err(PackError::Key(EnvelopeError::NoKey { .. }))
        ));
        assert!(matches!(
            parse(&other, &bytes),
            Err(PackError::Key(EnvelopeError::OtherKey { .. }))
        ));
        assert!(matches!(
            parse(&crypt(1, "b"), &bytes),
            Err(PackError::Key(EnvelopeError::Forged { .. }))
        ));
        let (plain, _) = build(&Crypt::PLAIN, &chunks);
        assert!(matches!(
            parse(&keyed, &plain),
            Err(PackError::Key(EnvelopeError::Plain { .. }))
        ));
        // Under another name, with a header that fits.
        let moved = PackId { sequence: 10, ..ID };
        let header = PackBuilder::new(&keyed, moved).pieces.concat();
        let moved = [&header, &bytes[HEADER as usize..]].concat();
        assert!(matches!(
            parse(&keyed, &moved),
            Err(PackError::Key(EnvelopeError::Forged { .. }))
        ));
        // Names of chunks are not to be seen.
        let name = Digest::of(&chunks[0]);
        assert!(bytes.windows(8).all(|eight| eight != &name.0[..8]));
        assert!(plain.windows(8).any(|eight| eight == &name.0[..8]));
    }

    proptest! {
        #[test]
        fn a_pack_describes_itself(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..20)) {
            for crypt in both() {
                let (bytes, entries) = build(&crypt, &chunks);
                let (id, index) = parse(&crypt, &bytes).unwrap();
                prop_assert_eq!(id, ID);
                prop_assert_eq!(&index.chunks, &entries);
                for (entry, chunk) in entries.iter().zip(&chunks) {
                    prop_assert_eq!(&bytes[entry.offset as usize..][..entry.stored as usize], &chunk[..]);
                }
            }
        }

        #[test]
        fn damage_outside_the_chunks_is_noticed(at in any::<prop::sample::Index>(), bit in 0..8u8) {
            for crypt in both() {
                let (mut bytes, entries) = build(&crypt, &[vec![1; 100], vec![2; 50]]);
                let body = entries[0].offset as usize..(entries[1].offset + 50) as usize;
                let at = at.index(bytes.len() - body.len());
                let at = if at >= body.start { at + body.len() } else { at };
                bytes[at] ^= 1 << bit;
                prop_assert!(parse(&crypt, &bytes).is_err());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400), offset in any::<u64>()) {
            for crypt in both() {
                let _ = parse(&crypt, &bytes);
                let _ = read_index(&crypt, &ID, &bytes, offset);
                let mut framed = MAGIC.to_vec();
                framed.extend_from_slice(&bytes);
                let _ = read_header(&crypt, &framed);
            }
        }
    }
}
