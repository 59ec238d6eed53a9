//! The checked envelope around every small object: magic, version, flags, sizes and checksum, all looked at before a
//! byte of the payload is parsed or decompressed. Drawn in `docs/format.md`.
//!
//! In an encrypted job the payload is a box (see `crypt`): the header and the object's place below the job are its associated
//! data, so that nothing in an object and nothing of where it stands can be changed. Such an object has a version of its own,
//! which a reader that does not know of encryption refuses.
//!
//! Memory: a decoder never holds more than the caps of its [`Kind`], whatever the bytes say.

use crate::codec;
use crate::crypt::{Crypt, JobKeys, KeyId, NONCE, TAG};

/// Length of the header in bytes.
pub(crate) const HEADER: usize = 64;
/// The length of the part of a sealed object's header in front of the box: the box's nonce is the rest of the header.
const SEALED_HEADER: usize = HEADER - NONCE;

const FLAG_ZSTD: u16 = 1;
/// The flag that marks a payload as a box.
pub(crate) const FLAG_SEALED: u16 = 2;
const KNOWN_FLAGS: u16 = FLAG_ZSTD;

/// The first version of anything that is sealed.
pub(crate) const SEALED_VERSION: u16 = 4;

/// Payloads shorter than this are stored as they are.
const COMPRESS_FROM: usize = 512;

/// What kind of object an envelope holds, and how large it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// What people call this kind of object.
    pub what: &'static str,
    /// The first eight bytes of an object of this kind.
    pub magic: [u8; 8],
    /// Version written, and newest version read, of what is plain.
    pub version: u16,
    /// The same of what is sealed: [`SEALED_VERSION`] or later.
    pub sealed: u16,
    /// Largest stored payload in bytes.
    pub max_stored: u64,
    /// Largest payload in bytes once decompressed.
    pub max_plain: u64,
}

impl Kind {
    /// Whether an object with this version and these flags is sealed, in a way that is known here.
    const fn is_sealed(&self, version: u16, flags: u16) -> bool {
        SEALED_VERSION <= version && version <= self.sealed && flags & FLAG_SEALED != 0
    }

    /// Largest object of this kind in bytes, header included, sealed or not.
    pub(crate) const fn max_object(&self) -> u64 {
        self.max_stored + (HEADER + TAG) as u64
    }
}

/// Why an object's envelope was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It does not begin with the bytes that every object of its kind begins with.
    #[error(
        "this is no {what} of phos-ft (its first bytes are wrong): it was overwritten or does not belong here"
    )]
    Magic {
        /// The kind of the object.
        what: &'static str,
    },
    /// The object was written by a newer phos-ft.
    #[error(
        "the {what} has format {found}, this phos-ft reads up to {known}: use the newer phos-ft that wrote it"
    )]
    Newer {
        /// The kind of the object.
        what: &'static str,
        /// The version that the envelope says.
        found: u16,
        /// Newest version known here.
        known: u16,
    },
    /// The object is shorter or longer than its header says.
    #[error(
        "the {what} has {found} bytes where its header says {expected}: it was cut off or damaged"
    )]
    Length {
        /// The kind of the object.
        what: &'static str,
        /// The length that was found, in bytes.
        found: u64,
        /// The length that the header promises, in bytes.
        expected: u64,
    },
    /// It claims to be larger than anything phos-ft writes.
    #[error(
        "the {what} claims {claimed} bytes, more than the {cap} allowed: it is damaged or hostile and was not read"
    )]
    TooLarge {
        /// The kind of the object.
        what: &'static str,
        /// The length that the header claims, in bytes.
        claimed: u64,
        /// Largest size in bytes.
        cap: u64,
    },
    /// The bytes of the object are not those that were written.
    #[error("the checksum of the {what} is wrong: it was damaged after it was written")]
    Checksum {
        /// The kind of the object.
        what: &'static str,
    },
    /// The object is encrypted, and no key was given.
    #[error(
        "the {what} is encrypted with key {id} and no key was given: give the key file that the job was begun with \
         (--encryption-key-file FILE)"
    )]
    NoKey {
        /// The kind of the object.
        what: &'static str,
        /// The id of the key that the object was sealed with.
        id: KeyId,
    },
    /// The object is encrypted with another key than the one given.
    #[error(
        "the {what} is encrypted with key {found}, the file given is key {given}: give the file that the job was begun \
         with"
    )]
    OtherKey {
        /// The kind of the object.
        what: &'static str,
        /// The id of the key that the object was sealed with.
        found: KeyId,
        /// Id of the key given.
        given: KeyId,
    },
    /// The object is not encrypted, and its job is.
    #[error(
        "the {what} is not encrypted, and its job is: it is not the job's own and is not believed"
    )]
    Plain {
        /// The kind of the object.
        what: &'static str,
    },
    /// The object cannot be decrypted with the job's key.
    #[error(
        "the {what} cannot be decrypted: it was damaged, moved from elsewhere or replaced after it was written"
    )]
    Forged {
        /// The kind of the object.
        what: &'static str,
    },
    /// Its payload cannot be decoded although the checksum is right.
    #[error("the {what} cannot be decoded: {detail}")]
    Payload {
        /// The kind of the object.
        what: &'static str,
        /// What the decoder said.
        detail: String,
    },
}

/// Wraps `payload`, compressed where that makes it smaller, for a store's own objects.
pub(crate) fn seal(kind: &Kind, payload: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    seal_in(&Crypt::PLAIN, "", kind, payload)
}

/// Wraps `payload`, compressed where that makes it smaller, and encrypted if the job is, for its place below the job.
pub(crate) fn seal_in(
    crypt: &Crypt,
    place: &str,
    kind: &Kind,
    payload: &[u8],
) -> Result<Vec<u8>, EnvelopeError> {
    let what = kind.what;
    let plain_length = payload.len() as u64;
    if plain_length > kind.max_plain {
        return Err(EnvelopeError::TooLarge {
            what,
            claimed: plain_length,
            cap: kind.max_plain,
        });
    }
    let packed = if payload.len() >= COMPRESS_FROM {
        let packed = zstd::bulk::compress(payload, 3).map_err(|error| EnvelopeError::Payload {
            what,
            detail: error.to_string(),
        })?;
        (packed.len() < payload.len()).then_some(packed)
    } else {
        None
    };
    let (flags, stored) = match &packed {
        Some(packed) => (FLAG_ZSTD, packed.as_slice()),
        None => (0, payload),
    };
    if stored.len() as u64 > kind.max_stored {
        return Err(EnvelopeError::TooLarge {
            what,
            claimed: stored.len() as u64,
            cap: kind.max_stored,
        });
    }
    let (version, flags, stored_length) = match crypt.keys() {
        None => (kind.version, flags, stored.len()),
        Some(_) => (kind.sealed, flags | FLAG_SEALED, stored.len() + TAG),
    };
    let mut object = Vec::with_capacity(HEADER + stored_length);
    object.extend_from_slice(&kind.magic);
    object.extend_from_slice(&version.to_le_bytes());
    object.extend_from_slice(&flags.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&(stored_length as u64).to_le_bytes());
    object.extend_from_slice(&plain_length.to_le_bytes());
    if let Some(keys) = crypt.keys() {
        object.extend_from_slice(&keys.id().0);
        let sealed = keys.seal(&about(&object, place), stored, stored);
        let sealed = sealed.map_err(|_| EnvelopeError::Payload {
            what,
            detail: "it cannot be encrypted".into(),
        })?;
        object.extend_from_slice(&sealed);
        return Ok(object);
    }
    let checksum = checksum(&object, stored);
    object.extend_from_slice(&checksum);
    object.extend_from_slice(stored);
    Ok(object)
}

/// Associated data of an object: its header and its place.
fn about(header: &[u8], place: &str) -> Vec<u8> {
    [header, place.as_bytes()].concat()
}

fn checksum(head: &[u8], stored: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new()
        .update(head)
        .update(stored)
        .finalize()
        .as_bytes()
}

/// What an object's header says of its encryption; nothing is known of one that is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sealing {
    Plain,
    Sealed(KeyId),
    Unknown,
}

/// With which key an object claims to be sealed. Nothing of it is checked.
pub(crate) fn sealing(kind: &Kind, object: &[u8]) -> Sealing {
    if array::<8>(object, 0) != Some(kind.magic) {
        return Sealing::Unknown;
    }
    let number = |at| array(object, at).map(u16::from_le_bytes);
    match (number(8), number(10), array(object, 32)) {
        (Some(version), Some(flags), Some(id)) if kind.is_sealed(version, flags) => {
            Sealing::Sealed(KeyId(id))
        }
        _ if open(kind, object).is_ok() => Sealing::Plain,
        _ => Sealing::Unknown,
    }
}

/// Checks an envelope of a store's own object and gives its version and payload.
pub(crate) fn open(kind: &Kind, object: &[u8]) -> Result<(u16, Vec<u8>), EnvelopeError> {
    open_in(&Crypt::PLAIN, "", kind, object)
}

/// Checks the envelope of an object that stands at its place below a job, and gives its version and payload.
pub(crate) fn open_in(
    crypt: &Crypt,
    place: &str,
    kind: &Kind,
    object: &[u8],
) -> Result<(u16, Vec<u8>), EnvelopeError> {
    let what = kind.what;
    let truncated = || EnvelopeError::Length {
        what,
        found: object.len() as u64,
        expected: HEADER as u64,
    };
    if object.get(..8).ok_or_else(truncated)? != kind.magic {
        return Err(EnvelopeError::Magic { what });
    }
    let version = u16::from_le_bytes(array(object, 8).ok_or_else(truncated)?);
    let flags = u16::from_le_bytes(array(object, 10).ok_or_else(truncated)?);
    let sealed = kind.is_sealed(version, flags);
    if (version > kind.version && !sealed) || version == 0 {
        return Err(EnvelopeError::Newer {
            what,
            found: version,
            known: if flags & FLAG_SEALED == 0 {
                kind.version
            } else {
                kind.sealed
            },
        });
    }
    let keys = match (crypt.keys(), sealed) {
        (None, false) => None,
        (None, true) => {
            let id = KeyId(array(object, 32).ok_or_else(truncated)?);
            return Err(EnvelopeError::NoKey { what, id });
        }
        (Some(_), false) => return Err(EnvelopeError::Plain { what }),
        (Some(keys), true) => Some(keys),
    };
    let stored_length = u64::from_le_bytes(array(object, 16).ok_or_else(truncated)?);
    let plain_length = u64::from_le_bytes(array(object, 24).ok_or_else(truncated)?);
    let expected: [u8; 32] = array(object, 32).ok_or_else(truncated)?;
    let tag = if sealed { TAG as u64 } else { 0 };
    for (claimed, cap) in [
        (stored_length, kind.max_stored + tag),
        (plain_length, kind.max_plain),
    ] {
        if claimed > cap {
            return Err(EnvelopeError::TooLarge { what, claimed, cap });
        }
    }
    let stored = &object[HEADER..];
    if stored.len() as u64 != stored_length {
        return Err(EnvelopeError::Length {
            what,
            found: object.len() as u64,
            expected: stored_length + HEADER as u64,
        });
    }
    if let Some(keys) = keys {
        let stored = unseal(keys, place, what, object)?;
        let plain = unpack(what, flags & !FLAG_SEALED, &stored, plain_length)?;
        return Ok((version, plain));
    }
    if checksum(&object[..32], stored) != expected {
        return Err(EnvelopeError::Checksum { what });
    }
    Ok((version, unpack(what, flags, stored, plain_length)?))
}

/// Opens the box that the payload of an object is.
fn unseal(
    keys: &JobKeys,
    place: &str,
    what: &'static str,
    object: &[u8],
) -> Result<Vec<u8>, EnvelopeError> {
    let (header, sealed) = object
        .split_at_checked(SEALED_HEADER)
        .ok_or(EnvelopeError::Forged { what })?;
    let found = array(header, 32).map(KeyId);
    if let Some(found) = found.filter(|found| *found != keys.id()) {
        let given = keys.id();
        return Err(EnvelopeError::OtherKey { what, found, given });
    }
    keys.open(&about(header, place), sealed)
        .map_err(|_| EnvelopeError::Forged { what })
}

/// The payload of what was stored, whose integrity was checked.
fn unpack(
    what: &'static str,
    flags: u16,
    stored: &[u8],
    plain_length: u64,
) -> Result<Vec<u8>, EnvelopeError> {
    let payload = |detail: String| EnvelopeError::Payload { what, detail };
    if flags & !KNOWN_FLAGS != 0 {
        return Err(payload(format!(
            "it has flags {flags:#06x} that this phos-ft does not know: use a newer one"
        )));
    }
    let plain = if flags & FLAG_ZSTD == 0 {
        stored.to_vec()
    } else {
        let capacity = usize::try_from(plain_length).map_err(|error| payload(error.to_string()))?;
        codec::decompress(stored, capacity).map_err(|error| payload(error.to_string()))?
    };
    if plain.len() as u64 != plain_length {
        return Err(payload(format!(
            "it holds {} bytes where its header says {plain_length}",
            plain.len()
        )));
    }
    Ok(plain)
}

/// `N` bytes of `bytes` from `at`, if there are as many.
pub(crate) fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

/// Serialises a value as CBOR.
pub(crate) fn to_cbor<T: serde::Serialize>(
    what: &'static str,
    value: &T,
) -> Result<Vec<u8>, EnvelopeError> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(|error| EnvelopeError::Payload {
        what,
        detail: error.to_string(),
    })?;
    Ok(bytes)
}

/// Reads a value from CBOR. Recursion is bounded by the decoder, memory by the input's length.
pub(crate) fn from_cbor<T: serde::de::DeserializeOwned>(
    what: &'static str,
    bytes: &[u8],
) -> Result<T, EnvelopeError> {
    let mut rest = bytes;
    let value = ciborium::from_reader(&mut rest).map_err(|error| EnvelopeError::Payload {
        what,
        detail: error.to_string(),
    })?;
    if !rest.is_empty() {
        return Err(EnvelopeError::Payload {
            what,
            detail: format!("{} bytes too many", rest.len()),
        });
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypt::tests::crypt;
    use proptest::prelude::*;

    const KIND: Kind = Kind {
        what: "test",
        magic: *b"PHOSTEST",
        version: 2,
        sealed: SEALED_VERSION,
        max_stored: 4096,
        max_plain: 65536,
    };

    /// A header that says what it is told, with a right checksum.
    fn forge(
        version: u16,
        flags: u16,
        stored_length: u64,
        plain_length: u64,
        stored: &[u8],
    ) -> Vec<u8> {
        let mut object = KIND.magic.to_vec();
        object.extend_from_slice(&version.to_le_bytes());
        object.extend_from_slice(&flags.to_le_bytes());
        object.extend_from_slice(&[0; 4]);
        object.extend_from_slice(&stored_length.to_le_bytes());
        object.extend_from_slice(&plain_length.to_le_bytes());
        let sum = checksum(&object, stored);
        object.extend_from_slice(&sum);
        object.extend_from_slice(stored);
        object
    }

    #[test]
    fn a_newer_version_is_refused_by_name() {
        let error = open(&KIND, &forge(3, 0, 1, 1, b"x")).unwrap_err();
        assert_eq!(
            error,
            EnvelopeError::Newer {
                what: "test",
                found: 3,
                known: 2
            }
        );
        assert!(error.to_string().contains("format 3"), "{error}");
        assert!(
            open(&KIND, &forge(1, 0, 1, 1, b"x")).is_ok(),
            "an older version is read"
        );
    }

    /// Seals with the key of a byte, for a place.
    fn sealed(key: u8, place: &str, payload: &[u8]) -> Vec<u8> {
        seal_in(&crypt(key, "a"), place, &KIND, payload).unwrap()
    }

    fn opened(place: &str, object: &[u8]) -> Result<(u16, Vec<u8>), EnvelopeError> {
        open_in(&crypt(1, "a"), place, &KIND, object)
    }

    #[test]
    fn a_key_that_does_not_fit_is_named() {
        let what = "test";
        let object = sealed(1, "head/1", b"payload");
        let id = crypt(1, "a").keys().unwrap().id();
        assert_eq!(open(&KIND, &object), Err(EnvelopeError::NoKey { what, id }));
        let other = sealed(2, "head/1", b"payload");
        assert!(matches!(
            opened("head/1", &other),
            Err(EnvelopeError::OtherKey { given, .. }) if given == id
        ));
        let plain = seal(&KIND, b"payload").unwrap();
        assert_eq!(opened("head/1", &plain), Err(EnvelopeError::Plain { what }));
        assert_eq!(sealing(&KIND, &object), Sealing::Sealed(id));
        assert_eq!(sealing(&KIND, &plain), Sealing::Plain);
        assert_eq!(sealing(&KIND, &plain[..60]), Sealing::Unknown);
    }

    #[test]
    fn a_kind_whose_sealed_version_rose_is_read_in_both() {
        const LATER: Kind = Kind {
            version: 3,
            sealed: SEALED_VERSION + 1,
            ..KIND
        };
        let keys = crypt(1, "a");
        for (written, read, version) in [
            (&KIND, &LATER, SEALED_VERSION),
            (&LATER, &LATER, SEALED_VERSION + 1),
        ] {
            let object = seal_in(&keys, "head/1", written, b"payload").unwrap();
            let opened = open_in(&keys, "head/1", read, &object);
            assert_eq!(opened, Ok((version, b"payload".to_vec())));
            assert!(matches!(sealing(read, &object), Sealing::Sealed(_)));
        }
        let object = seal_in(&keys, "head/1", &LATER, b"payload").unwrap();
        assert!(matches!(
            open_in(&keys, "head/1", &KIND, &object),
            Err(EnvelopeError::Newer { known, .. }) if known == SEALED_VERSION
        ));
        // A version of what is sealed in what is not.
        assert!(matches!(
            open(&LATER, &forge(SEALED_VERSION, 0, 1, 1, b"x")),
            Err(EnvelopeError::Newer { known: 3, .. })
        ));
    }

    #[test]
    fn an_older_reader_sees_a_newer_version() {
        // What a phos-ft that does not know of encryption looks at: magic, then the version.
        let object = sealed(1, "head/1", b"payload");
        assert_eq!(object[8..10], SEALED_VERSION.to_le_bytes());
        const { assert!(KIND.version < SEALED_VERSION) };
        assert!(matches!(
            open(&KIND, &forge(SEALED_VERSION, 0, 1, 1, b"x")),
            Err(EnvelopeError::Newer {
                found: 4,
                known: 2,
                ..
            })
        ));
        assert!(matches!(
            opened("head/1", &forge(5, FLAG_SEALED, 1, 1, b"x")),
            Err(EnvelopeError::Newer {
                found: 5,
                known: 4,
                ..
            })
        ));
    }

    #[test]
    fn a_sealed_object_says_nothing_of_its_payload() {
        let payload = b"step 1 loss 0.25".repeat(3);
        let object = sealed(1, "head/1", &payload);
        assert!(
            object
                .windows(4)
                .all(|four| !payload.windows(4).any(|p| p == four))
        );
    }

    #[test]
    fn size_bombs_are_refused_before_anything_is_allocated() {
        assert!(matches!(
            open(&KIND, &forge(1, 0, u64::MAX, 1, b"x")),
            Err(EnvelopeError::TooLarge { .. })
        ));
        assert!(matches!(
            open(&KIND, &forge(1, 1, 1, u64::MAX, b"x")),
            Err(EnvelopeError::TooLarge { .. })
        ));
        // A payload that inflates beyond what its header says is cut short by the decompressor's capacity.
        let bomb = zstd::bulk::compress(&vec![0; 10 << 20], 19).unwrap();
        assert!(matches!(
            open(&KIND, &forge(1, 1, bomb.len() as u64, 65536, &bomb)),
            Err(EnvelopeError::Payload { .. })
        ));
    }

    #[test]
    fn unknown_flags_are_refused() {
        assert!(matches!(
            open(&KIND, &forge(1, 0x8000, 1, 1, b"x")),
            Err(EnvelopeError::Payload { .. })
        ));
    }

    proptest! {
        #[test]
        fn round_trip(payload in prop::collection::vec(any::<u8>(), 0..3000)) {
            let object = seal(&KIND, &payload).unwrap();
            prop_assert_eq!(open(&KIND, &object).unwrap(), (2, payload));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), magic in any::<bool>()) {
            let mut bytes = bytes;
            if magic && bytes.len() >= 8 {
                bytes[..8].copy_from_slice(&KIND.magic);
            }
            prop_assert!(open(&KIND, &bytes).is_err());
        }

        #[test]
        fn any_changed_byte_is_noticed(
            payload in prop::collection::vec(any::<u8>(), 1..1500), at in any::<prop::sample::Index>(), bit in 0..8u8,
        ) {
            let mut object = seal(&KIND, &payload).unwrap();
            let at = at.index(object.len());
            object[at] ^= 1 << bit;
            prop_assert!(open(&KIND, &object).is_err());
        }

        #[test]
        fn a_sealed_object_is_refused_after_any_change(
            payload in prop::collection::vec(any::<u8>(), 0..1500), at in any::<prop::sample::Index>(), bit in 0..8u8,
        ) {
            let object = sealed(1, "head/1", &payload);
            prop_assert_eq!(opened("head/1", &object).unwrap(), (SEALED_VERSION, payload.clone()));
            prop_assert_eq!(opened("head/2", &object), Err(EnvelopeError::Forged { what: "test" }));
            prop_assert_eq!(
                open_in(&crypt(1, "b"), "head/1", &KIND, &object), Err(EnvelopeError::Forged { what: "test" })
            );
            prop_assert!(opened("head/1", &object[..at.index(object.len())]).is_err());
            let mut changed = object.clone();
            changed[at.index(object.len())] ^= 1 << bit;
            prop_assert!(opened("head/1", &changed).is_err());
        }

        #[test]
        fn arbitrary_bytes_are_refused_with_a_key(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut object = sealed(1, "head/1", b"")[..SEALED_HEADER].to_vec();
            object[16..24].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            object.extend_from_slice(&[0; NONCE]);
            object.extend_from_slice(&bytes);
            prop_assert!(opened("head/1", &object).is_err());
        }

        #[test]
        fn any_cut_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..1500), at in any::<prop::sample::Index>()) {
            let object = seal(&KIND, &payload).unwrap();
            prop_assert!(open(&KIND, &object[..at.index(object.len())]).is_err());
        }
    }
}
