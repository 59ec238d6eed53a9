//! How a chunk's bytes are written into a pack, and back.
//!
//! The codec is chosen by looking at a sample, as most of a job's memory either shrinks well or not at all, and finding
//! out by compressing all of it would cost more than the link. Byte-plane shuffles have their numbers reserved.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::MAX_CHUNK_SIZE;

/// How a chunk's bytes stand in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Codec {
    /// All bytes are zero; nothing is stored.
    Zero = 0,
    /// As they are.
    Raw = 1,
    /// One zstd frame.
    Zstd = 2,
}

impl Codec {
    /// Its name, for people and programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Raw => "raw",
            Self::Zstd => "zstd",
        }
    }

    /// The codec of a number in a pack or manifest.
    pub(crate) const fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Zero),
            1 => Some(Self::Raw),
            2 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// Pieces of a chunk that are compressed to guess how the whole would do.
const SAMPLES: usize = 4;
/// Bytes of one such piece.
const SAMPLE: usize = 4096;

/// Zeros for chunks of which nothing is stored.
static ZEROS: LazyLock<Bytes> = LazyLock::new(|| vec![0; MAX_CHUNK_SIZE].into());

/// Encodes a chunk: which codec, and the bytes to store. They never share memory with `raw`, so that a caller's buffer
/// is free again when this returns: it may be pinned memory that the next copy from the device waits for.
pub(crate) fn encode(raw: &[u8], level: i32) -> std::io::Result<(Codec, Bytes)> {
    if is_zero(raw) {
        return Ok((Codec::Zero, Bytes::new()));
    }
    if !sample_shrinks(raw)? {
        return Ok((Codec::Raw, Bytes::copy_from_slice(raw)));
    }
    let packed = zstd::bulk::compress(raw, level)?;
    // Less than 1/32 saved is not worth decompressing.
    if packed.len() + raw.len() / 32 >= raw.len() {
        return Ok((Codec::Raw, Bytes::copy_from_slice(raw)));
    }
    Ok((Codec::Zstd, packed.into()))
}

/// Decodes a chunk of `raw_length` bytes, at most [`MAX_CHUNK_SIZE`].
pub(crate) fn decode(codec: Codec, stored: Bytes, raw_length: u32) -> Result<Bytes, String> {
    let length = raw_length as usize;
    if length > MAX_CHUNK_SIZE {
        return Err(format!("a chunk of {length} bytes is larger than any"));
    }
    let raw = match codec {
        Codec::Zero => ZEROS.slice(..length),
        Codec::Raw => stored,
        Codec::Zstd => zstd::bulk::decompress(&stored, length)
            .map_err(|error| error.to_string())?
            .into(),
    };
    if raw.len() == length {
        Ok(raw)
    } else {
        Err(format!("it decodes to {} bytes, not {length}", raw.len()))
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    // Comparing with known zeros runs at memory speed.
    bytes
        .chunks(ZEROS.len())
        .all(|piece| *piece == ZEROS[..piece.len()])
}

fn sample_shrinks(raw: &[u8]) -> std::io::Result<bool> {
    let sample = if raw.len() <= SAMPLES * SAMPLE {
        raw.to_vec()
    } else {
        let stride = (raw.len() - SAMPLE) / (SAMPLES - 1);
        (0..SAMPLES)
            .flat_map(|i| &raw[i * stride..i * stride + SAMPLE])
            .copied()
            .collect()
    };
    let packed = zstd::bulk::compress(&sample, 1)?;
    Ok(packed.len() < sample.len() - sample.len() / 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};

    fn random(length: usize) -> Bytes {
        let mut bytes = vec![0; length];
        rand_chacha::ChaCha8Rng::seed_from_u64(7).fill_bytes(&mut bytes);
        bytes.into()
    }

    #[test]
    fn the_codec_follows_the_bytes() {
        let text: Bytes = b"step 1 loss 0.25\n".repeat(60_000).into();
        for (raw, codec) in [
            (Bytes::from(vec![0; 1 << 20]), Codec::Zero),
            (random(1 << 20), Codec::Raw),
            (text, Codec::Zstd),
        ] {
            let (chosen, stored) = encode(&raw, 1).unwrap();
            assert_eq!(chosen, codec);
            assert_eq!(decode(chosen, stored, raw.len() as u32).unwrap(), raw);
        }
    }

    #[test]
    fn a_frame_that_inflates_beyond_its_length_is_refused() {
        let bomb: Bytes = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap().into();
        assert!(decode(Codec::Zstd, bomb.clone(), 1 << 20).is_err());
        assert!(decode(Codec::Zstd, bomb, u32::MAX).is_err());
    }

    proptest! {
        #[test]
        fn round_trip(seed in prop::collection::vec(any::<u8>(), 1..64), repeats in 1..5000usize) {
            let raw: Bytes = seed.repeat(repeats).into();
            let (codec, stored) = encode(&raw, 1).unwrap();
            prop_assert!(stored.len() <= raw.len());
            prop_assert_eq!(decode(codec, stored, raw.len() as u32).unwrap(), raw);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), codec in 0..3u8, length in any::<u32>()) {
            let _ = decode(Codec::from_u8(codec).unwrap(), bytes.into(), length);
        }
    }
}
