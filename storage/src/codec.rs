//! How a chunk's bytes are written into a pack, and back.
//!
//! What is best for a chunk is found by looking at a sample, as most of a job's memory either shrinks well in one way or not at
//! all, and finding out by compressing all of it would cost more than the link. The caller's [`EncodingPolicy`] decides; what is
//! stored says itself how it is to be read.
//!
//! # Byte planes
//!
//! Of numbers of 2 or 4 bytes, first all first bytes, then all second bytes, and so on; what is left over at the end of
//! the chunk follows as it is. Sign and exponent come to lie together, and shrink.

use std::cell::RefCell;
use std::fmt;
use std::sync::LazyLock;

use bytes::Bytes;
use zstd::bulk::{Compressor, Decompressor};

use crate::MAX_CHUNK_SIZE;

/// The form in which a chunk's bytes are stored in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Codec {
    /// All bytes are zero; nothing is stored.
    Zero = 0,
    /// The bytes as they are.
    Raw = 1,
    /// The bytes as one zstd frame.
    Zstd = 2,
    /// Byte planes of 2, in one zstd frame.
    Planes2 = 3,
    /// Byte planes of 4, in one zstd frame.
    Planes4 = 4,
}

impl Codec {
    /// The codec's name, for people and programs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Zero => "zero",
            Self::Raw => "raw",
            Self::Zstd => "zstd",
            Self::Planes2 => "planes2-zstd",
            Self::Planes4 => "planes4-zstd",
        }
    }

    /// The codec of a number in a pack or manifest.
    pub(crate) const fn from_u8(number: u8) -> Option<Self> {
        match number {
            0 => Some(Self::Zero),
            1 => Some(Self::Raw),
            2 => Some(Self::Zstd),
            3 => Some(Self::Planes2),
            4 => Some(Self::Planes4),
            _ => None,
        }
    }
}

/// How a chunk is to be encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The bytes as they are.
    Raw,
    /// Compressed at a zstd level.
    Zstd(i32),
    /// As byte planes of 2, compressed at a zstd level.
    Planes2(i32),
    /// As byte planes of 4, compressed at a zstd level.
    Planes4(i32),
}

/// What was waiting when a pack was closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pressure {
    /// The pack had to wait: as many as may be were on their way.
    pub link_is_full: bool,
    /// While it was filled, chunks had to wait for an encoder.
    pub encoders_are_full: bool,
}

/// Decides how chunks are written. Called from many threads.
pub trait EncodingPolicy: Send + Sync + fmt::Debug {
    /// How to write a chunk that is like this sample.
    fn choose(&self, sample: &Sample<'_>) -> Encoding;

    /// A pack was closed, under this pressure: the policy may encode differently from now on.
    fn pack_closed(&self, _pressure: Pressure) {}
}

/// Compresses what shrinks by a sixteenth, always at one level, and knows no planes.
#[derive(Debug, Clone, Copy)]
pub struct PlainZstd {
    /// The zstd level of every chunk that is compressed.
    pub level: i32,
}

impl EncodingPolicy for PlainZstd {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        if sample.plain() + sample.len() / 16 >= sample.len() {
            Encoding::Raw
        } else {
            Encoding::Zstd(self.level)
        }
    }
}

/// Pieces of a chunk that are compressed to guess how the whole would do.
const SAMPLES: usize = 4;
/// The length of one piece of a sample, in bytes.
const SAMPLE: usize = 4096;
/// Level at which samples are compressed.
const SAMPLE_LEVEL: i32 = 1;

/// Zeros for chunks of which nothing is stored.
static ZEROS: LazyLock<Bytes> = LazyLock::new(|| vec![0; MAX_CHUNK_SIZE].into());

/// What a thread uses again and again: a compressor's tables are larger than a chunk.
struct Scratch {
    compressor: Compressor<'static>,
    decompressor: Decompressor<'static>,
    /// Planes of a chunk on their way in or out.
    planes: Vec<u8>,
    /// A chunk on its way out, in a buffer for the longest: what is kept of it is as long as it is.
    packed: Vec<u8>,
}

thread_local! {
    static SCRATCH: RefCell<Option<Scratch>> = const { RefCell::new(None) };
}

fn with_scratch<T>(work: impl FnOnce(&mut Scratch) -> std::io::Result<T>) -> std::io::Result<T> {
    SCRATCH.with_borrow_mut(|scratch| match scratch {
        Some(scratch) => work(scratch),
        None => work(scratch.insert(Scratch {
            compressor: Compressor::new(SAMPLE_LEVEL)?,
            decompressor: Decompressor::new()?,
            planes: Vec::new(),
            packed: Vec::new(),
        })),
    })
}

/// Decompresses at most `capacity` bytes, in the context of this thread: to make one for each record takes longer than to read it.
pub(crate) fn decompress(stored: &[u8], capacity: usize) -> std::io::Result<Vec<u8>> {
    with_scratch(|scratch| scratch.decompressor.decompress(stored, capacity))
}

/// A few pieces of a chunk.
#[derive(Debug)]
pub struct Sample<'a> {
    pieces: Vec<&'a [u8]>,
}

impl<'a> Sample<'a> {
    /// Pieces that begin at multiples of 4, so that numbers are not cut.
    pub(crate) fn of(raw: &'a [u8]) -> Self {
        if raw.len() <= SAMPLES * SAMPLE {
            return Self { pieces: vec![raw] };
        }
        let stride = ((raw.len() - SAMPLE) / (SAMPLES - 1)) & !3;
        Self {
            pieces: (0..SAMPLES)
                .map(|i| &raw[i * stride..i * stride + SAMPLE])
                .collect(),
        }
    }

    /// The number of bytes in the sample.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The size in bytes of the sample when it is compressed as it is.
    #[must_use]
    pub fn plain(&self) -> usize {
        self.compressed(1)
    }

    /// What it comes to compressed as byte planes of 2.
    #[must_use]
    pub fn planes2(&self) -> usize {
        self.compressed(2)
    }

    /// What it comes to compressed as byte planes of 4.
    #[must_use]
    pub fn planes4(&self) -> usize {
        self.compressed(4)
    }

    /// Planes are compressed one by one: in a chunk each is longer than a block of zstd's, which has a table of its own, and
    /// in so short a sample they would share one, which hides that one of them shrinks.
    fn compressed(&self, width: usize) -> usize {
        let compressed = with_scratch(|scratch| {
            let whole = self.pieces.concat();
            let bytes = if width == 1 {
                &whole
            } else {
                split_planes(&whole, width, &mut scratch.planes);
                &scratch.planes
            };
            scratch.compressor.set_compression_level(SAMPLE_LEVEL)?;
            let mut sum = 0;
            for plane in bytes.chunks((bytes.len() / width).max(1)) {
                sum += scratch.compressor.compress(plane)?.len().min(plane.len());
            }
            Ok(sum)
        });
        // Without memory for a compressor nothing is compressed.
        compressed.unwrap_or(usize::MAX / 2)
    }
}

/// Encodes a chunk: which codec, and what `keep` makes of that and the bytes to store, which are only lent: they may be the
/// chunk's own, in pinned memory that the next copy from the device waits for.
pub(crate) fn encode<T>(
    raw: &[u8],
    policy: &dyn EncodingPolicy,
    keep: impl FnOnce(Codec, &[u8]) -> T,
) -> std::io::Result<(Codec, T)> {
    if is_zero(raw) {
        return Ok((Codec::Zero, keep(Codec::Zero, &[])));
    }
    let (codec, width, level) = match policy.choose(&Sample::of(raw)) {
        Encoding::Raw => return Ok((Codec::Raw, keep(Codec::Raw, raw))),
        Encoding::Zstd(level) => (Codec::Zstd, 1, level),
        Encoding::Planes2(level) => (Codec::Planes2, 2, level),
        Encoding::Planes4(level) => (Codec::Planes4, 4, level),
    };
    with_scratch(|scratch| {
        scratch.compressor.set_compression_level(level)?;
        let source = if width == 1 {
            raw
        } else {
            split_planes(raw, width, &mut scratch.planes);
            scratch.planes.as_slice()
        };
        scratch.packed.clear();
        scratch
            .packed
            .reserve(zstd::zstd_safe::compress_bound(source.len()));
        scratch
            .compressor
            .compress_to_buffer(source, &mut scratch.packed)?;
        // Less than 1/32 saved is not worth decompressing.
        let (codec, stored) = if scratch.packed.len() + raw.len() / 32 < raw.len() {
            (codec, scratch.packed.as_slice())
        } else {
            (Codec::Raw, raw)
        };
        Ok((codec, keep(codec, stored)))
    })
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
        Codec::Zstd => unpack(&stored, length, 1)?,
        Codec::Planes2 => unpack(&stored, length, 2)?,
        Codec::Planes4 => unpack(&stored, length, 4)?,
    };
    if raw.len() == length {
        Ok(raw)
    } else {
        Err(format!("it decodes to {} bytes, not {length}", raw.len()))
    }
}

fn unpack(stored: &[u8], length: usize, width: usize) -> Result<Bytes, String> {
    let unpacked = with_scratch(|scratch| {
        if width == 1 {
            return scratch.decompressor.decompress(stored, length);
        }
        scratch.planes.clear();
        scratch.planes.reserve(length);
        // Never more than there is room for, which may be more than is wanted.
        let found = (scratch.decompressor).decompress_to_buffer(stored, &mut scratch.planes)?;
        if found != length {
            let detail = format!("it decodes to {found} bytes, not {length}");
            return Err(std::io::Error::other(detail));
        }
        Ok(join_planes(&scratch.planes, width))
    });
    unpacked.map(Bytes::from).map_err(|error| error.to_string())
}

/// Puts the bytes of numbers of `width` bytes into planes.
fn split_planes(raw: &[u8], width: usize, planes: &mut Vec<u8>) {
    planes.clear();
    planes.reserve(raw.len());
    let (numbers, rest) = raw.split_at(raw.len() - raw.len() % width);
    for plane in 0..width {
        planes.extend(numbers.iter().skip(plane).step_by(width));
    }
    planes.extend_from_slice(rest);
}

/// The reverse of [`split_planes`].
fn join_planes(planes: &[u8], width: usize) -> Vec<u8> {
    let count = planes.len() / width;
    let mut raw = vec![0; planes.len()];
    let (numbers, rest) = raw.split_at_mut(count * width);
    match width {
        2 => {
            let (low, high) = planes[..2 * count].split_at(count);
            for ((number, low), high) in numbers.chunks_exact_mut(2).zip(low).zip(high) {
                number.copy_from_slice(&[*low, *high]);
            }
        }
        _ => {
            let (first, second) = planes[..4 * count].split_at(2 * count);
            let ((a, b), (c, d)) = (first.split_at(count), second.split_at(count));
            let bytes = a.iter().zip(b).zip(c.iter().zip(d));
            for (number, ((a, b), (c, d))) in numbers.chunks_exact_mut(4).zip(bytes) {
                number.copy_from_slice(&[*a, *b, *c, *d]);
            }
        }
    }
    rest.copy_from_slice(&planes[count * width..]);
    raw
}

fn is_zero(bytes: &[u8]) -> bool {
    // Comparing with known zeros runs at memory speed.
    bytes
        .chunks(ZEROS.len())
        .all(|piece| *piece == ZEROS[..piece.len()])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::{Rng, SeedableRng};

    const PLAIN: PlainZstd = PlainZstd { level: 1 };

    fn random(length: usize) -> Bytes {
        let mut bytes = vec![0; length];
        rand_chacha::ChaCha8Rng::seed_from_u64(7).fill_bytes(&mut bytes);
        bytes.into()
    }

    /// Always the same.
    #[derive(Debug)]
    struct Fixed(Encoding);

    impl EncodingPolicy for Fixed {
        fn choose(&self, _: &Sample<'_>) -> Encoding {
            self.0
        }
    }

    fn encode(raw: &[u8], policy: &dyn EncodingPolicy) -> std::io::Result<(Codec, Bytes)> {
        super::encode(raw, policy, |_, stored| Bytes::copy_from_slice(stored))
    }

    /// A chunk of numbers around zero, as weights are: sums of bytes for want of a bell curve.
    fn bell() -> Vec<f32> {
        let noise = random(4 << 20);
        let number = |bytes: &[u8]| {
            let sum: f32 = bytes.iter().map(|byte| f32::from(*byte) - 127.5).sum();
            sum * 1e-5
        };
        noise.chunks_exact(16).map(number).collect()
    }

    #[test]
    fn a_sample_says_what_planes_would_save() {
        let single: Vec<u8> = bell().iter().flat_map(|x| x.to_le_bytes()).collect();
        let half: Vec<u8> = bell()
            .iter()
            .flat_map(|x| x.to_bits().to_le_bytes()[2..].to_vec())
            .collect();
        for (raw, width) in [(single, 4), (half, 2)] {
            let sample = Sample::of(&raw);
            let guess = sample.compressed(width) as f64 / sample.len() as f64;
            let encoding = if width == 4 {
                Encoding::Planes4(1)
            } else {
                Encoding::Planes2(1)
            };
            let (_, stored) = encode(&raw, &Fixed(encoding)).unwrap();
            let whole = stored.len() as f64 / raw.len() as f64;
            assert!((guess - whole).abs() < 0.04, "{width}: {guess} of {whole}");
            // So that the policy, which asks for a thirty-second, takes them.
            let worth = sample.len() / 32;
            assert!(
                sample.compressed(width) + worth < sample.plain(),
                "{width}: {} {}",
                sample.compressed(width),
                sample.plain()
            );
        }
    }

    #[test]
    fn the_codec_follows_the_bytes() {
        let text: Bytes = b"step 1 loss 0.25\n".repeat(60_000).into();
        for (raw, codec) in [
            (Bytes::from(vec![0; 1 << 20]), Codec::Zero),
            (random(1 << 20), Codec::Raw),
            (text, Codec::Zstd),
        ] {
            let (chosen, stored) = encode(&raw, &PLAIN).unwrap();
            assert_eq!(chosen, codec);
            assert_eq!(decode(chosen, stored, raw.len() as u32).unwrap(), raw);
        }
    }

    /// Numbers that are small and noisy, as weights are.
    fn weights(count: usize) -> Vec<f32> {
        let noise = random(4 * count);
        (noise.chunks_exact(4))
            .map(|n| {
                let n = u32::from_le_bytes([n[0], n[1], n[2], n[3]]);
                (f64::from(n) / f64::from(u32::MAX) - 0.5) as f32 * 0.05
            })
            .collect()
    }

    #[test]
    fn planes_shrink_numbers() {
        let raw: Vec<u8> = weights(1 << 18)
            .iter()
            .flat_map(|w| w.to_le_bytes())
            .collect();
        let sample = Sample::of(&raw);
        assert_eq!(sample.len(), SAMPLES * SAMPLE);
        assert!(sample.planes4() < sample.plain(), "{sample:?}");
        let plain = encode(&raw, &Fixed(Encoding::Zstd(1))).unwrap().1.len();
        let (codec, stored) = encode(&raw, &Fixed(Encoding::Planes4(1))).unwrap();
        assert_eq!(codec, Codec::Planes4);
        assert!(stored.len() * 100 < plain * 95, "{} {plain}", stored.len());
        let halves: Vec<u8> = (weights(1 << 19).iter())
            .flat_map(|w| ((w.to_bits() >> 16) as u16).to_le_bytes())
            .collect();
        let sample = Sample::of(&halves);
        assert!(sample.planes2() < sample.plain(), "{sample:?}");
    }

    #[test]
    fn a_frame_that_inflates_beyond_its_length_is_refused() {
        let bomb: Bytes = zstd::bulk::compress(&vec![0; 64 << 20], 19).unwrap().into();
        for codec in [Codec::Zstd, Codec::Planes2, Codec::Planes4] {
            assert!(decode(codec, bomb.clone(), 1 << 20).is_err());
            assert!(decode(codec, bomb.clone(), u32::MAX).is_err());
        }
    }

    proptest! {
        #[test]
        fn round_trip(seed in prop::collection::vec(any::<u8>(), 1..64), repeats in 1..5000usize, level in -5..4i32) {
            let raw: Bytes = seed.repeat(repeats).into();
            for encoding in [Encoding::Raw, Encoding::Zstd(level), Encoding::Planes2(level), Encoding::Planes4(level)] {
                let (codec, stored) = encode(&raw, &Fixed(encoding)).unwrap();
                prop_assert!(stored.len() <= raw.len());
                prop_assert_eq!(decode(codec, stored, raw.len() as u32).unwrap(), raw.clone());
            }
        }

        #[test]
        fn planes_of_any_length_come_back(raw in prop::collection::vec(any::<u8>(), 0..100), wide in any::<bool>()) {
            let width = if wide { 4 } else { 2 };
            let mut planes = Vec::new();
            split_planes(&raw, width, &mut planes);
            prop_assert_eq!(join_planes(&planes, width), raw);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..2000), codec in 0..5u8, length in any::<u32>()) {
            let _ = decode(Codec::from_u8(codec).unwrap(), bytes.into(), length);
        }
    }
}
