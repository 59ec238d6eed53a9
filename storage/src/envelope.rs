//! The checked envelope around every small object: magic, version, flags, sizes and checksum, all looked at before a
//! byte of the payload is parsed or decompressed. Drawn in `docs/format.md`.
//!
//! Memory: a decoder never holds more than the caps of its [`Kind`], whatever the bytes say.

/// Length of the header in bytes.
pub(crate) const HEADER: usize = 64;

const FLAG_ZSTD: u16 = 1;
const KNOWN_FLAGS: u16 = FLAG_ZSTD;

/// Payloads shorter than this are stored as they are.
const COMPRESS_FROM: usize = 512;

/// What kind of object an envelope holds, and how large it may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kind {
    /// What a person calls it.
    pub what: &'static str,
    /// First eight bytes.
    pub magic: [u8; 8],
    /// Version written, and newest version read.
    pub version: u16,
    /// Largest stored payload in bytes.
    pub max_stored: u64,
    /// Largest payload in bytes once decompressed.
    pub max_plain: u64,
}

impl Kind {
    /// Largest object of this kind in bytes, header included.
    pub(crate) const fn max_object(&self) -> u64 {
        self.max_stored + HEADER as u64
    }
}

/// Why an envelope was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// It does not begin with the bytes that every object of its kind begins with.
    #[error(
        "this is no {what} of phos-ft (its first bytes are wrong): it was overwritten or does not belong here"
    )]
    Magic {
        /// Kind of object.
        what: &'static str,
    },
    /// It was written by a newer phos-ft.
    #[error(
        "the {what} has format {found}, this phos-ft reads up to {known}: use the newer phos-ft that wrote it"
    )]
    Newer {
        /// Kind of object.
        what: &'static str,
        /// Version found.
        found: u16,
        /// Newest version known here.
        known: u16,
    },
    /// It is shorter or longer than it says.
    #[error(
        "the {what} has {found} bytes where its header says {expected}: it was cut off or damaged"
    )]
    Length {
        /// Kind of object.
        what: &'static str,
        /// Bytes found.
        found: u64,
        /// Bytes expected.
        expected: u64,
    },
    /// It claims to be larger than anything phos-ft writes.
    #[error(
        "the {what} claims {claimed} bytes, more than the {cap} allowed: it is damaged or hostile and was not read"
    )]
    TooLarge {
        /// Kind of object.
        what: &'static str,
        /// Bytes claimed.
        claimed: u64,
        /// Largest size in bytes.
        cap: u64,
    },
    /// Its bytes are not those that were written.
    #[error("the checksum of the {what} is wrong: it was damaged after it was written")]
    Checksum {
        /// Kind of object.
        what: &'static str,
    },
    /// Its payload cannot be decoded although the checksum is right.
    #[error("the {what} cannot be decoded: {detail}")]
    Payload {
        /// Kind of object.
        what: &'static str,
        /// What the decoder said.
        detail: String,
    },
}

/// Wraps `payload`, compressed where that makes it smaller.
pub(crate) fn seal(kind: &Kind, payload: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
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
    let stored_length = stored.len() as u64;
    if stored_length > kind.max_stored {
        return Err(EnvelopeError::TooLarge {
            what,
            claimed: stored_length,
            cap: kind.max_stored,
        });
    }
    let mut object = Vec::with_capacity(HEADER + stored.len());
    object.extend_from_slice(&kind.magic);
    object.extend_from_slice(&kind.version.to_le_bytes());
    object.extend_from_slice(&flags.to_le_bytes());
    object.extend_from_slice(&[0; 4]);
    object.extend_from_slice(&stored_length.to_le_bytes());
    object.extend_from_slice(&plain_length.to_le_bytes());
    let checksum = checksum(&object, stored);
    object.extend_from_slice(&checksum);
    object.extend_from_slice(stored);
    Ok(object)
}

fn checksum(head: &[u8], stored: &[u8]) -> [u8; 32] {
    *blake3::Hasher::new()
        .update(head)
        .update(stored)
        .finalize()
        .as_bytes()
}

/// Checks an envelope and gives its version and payload.
pub(crate) fn open(kind: &Kind, object: &[u8]) -> Result<(u16, Vec<u8>), EnvelopeError> {
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
    if version > kind.version || version == 0 {
        return Err(EnvelopeError::Newer {
            what,
            found: version,
            known: kind.version,
        });
    }
    let flags = u16::from_le_bytes(array(object, 10).ok_or_else(truncated)?);
    let stored_length = u64::from_le_bytes(array(object, 16).ok_or_else(truncated)?);
    let plain_length = u64::from_le_bytes(array(object, 24).ok_or_else(truncated)?);
    let expected: [u8; 32] = array(object, 32).ok_or_else(truncated)?;
    for (claimed, cap) in [
        (stored_length, kind.max_stored),
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
    if checksum(&object[..32], stored) != expected {
        return Err(EnvelopeError::Checksum { what });
    }
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
        zstd::bulk::decompress(stored, capacity).map_err(|error| payload(error.to_string()))?
    };
    if plain.len() as u64 != plain_length {
        return Err(payload(format!(
            "it holds {} bytes where its header says {plain_length}",
            plain.len()
        )));
    }
    Ok((version, plain))
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
    use proptest::prelude::*;

    const KIND: Kind = Kind {
        what: "test",
        magic: *b"PHOSTEST",
        version: 2,
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
        fn any_cut_is_noticed(payload in prop::collection::vec(any::<u8>(), 1..1500), at in any::<prop::sample::Index>()) {
            let object = seal(&KIND, &payload).unwrap();
            prop_assert!(open(&KIND, &object[..at.index(object.len())]).is_err());
        }
    }
}
