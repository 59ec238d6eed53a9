//! `phos_blake3_chunks(const ChunkDesc* descs, uint8_t* digests, uint32_t count, Key key)`: the name of each chunk.
//!
//! `ChunkDesc` is `{ uint64_t address; uint64_t length; }`, in device memory like the digests (32 bytes each). Chunks
//! are 0 to 1 MiB long. Digests are those of the `blake3` crate. `Key` is `{ uint32_t words[8]; uint32_t flags; }`: a key
//! and the flag of BLAKE3's keyed mode, or its initialisation vector and 0.

use super::{Kernel, Launch};
use crate::error::{ERROR_INVALID_VALUE, ERROR_LAUNCH_FAILED, Res};

pub const TABLE: &[(&str, Kernel)] = &[("phos_blake3_chunks", chunks)];

const LONGEST: u64 = 1 << 20;
/// What `words` hold without a key.
const IV: [u32; 8] = [
    0x6A09_E667,
    0xBB67_AE85,
    0x3C6E_F372,
    0xA54F_F53A,
    0x510E_527F,
    0x9B05_688C,
    0x1F83_D9AB,
    0x5BE0_CD19,
];
/// The flag of the keyed mode.
const KEYED_HASH: u32 = 16;

/// Digests as the key says. Anything but the two modes is a mistake of the caller, which a GPU would not notice.
fn mode(key: &[u32; 9]) -> Res<Option<[u8; 32]>> {
    let (words, [flags]) = key.split_at(8) else {
        return Err(ERROR_INVALID_VALUE);
    };
    match *flags {
        0 if words == IV => Ok(None),
        KEYED_HASH => {
            let mut key = [0; 32];
            for (bytes, word) in key.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
            Ok(Some(key))
        }
        _ => Err(ERROR_INVALID_VALUE),
    }
}

fn chunks(launch: &Launch<'_>) -> Res {
    let (descs, digests): (u64, u64) = (launch.param(0)?, launch.param(1)?);
    let count = u64::from(launch.param::<u32>(2)?);
    let key = mode(&launch.param::<[u32; 9]>(3)?)?;
    let descs = launch.view::<u64>(descs, count * 2, false)?;
    let digests = launch.view::<u8>(digests, count * 32, true)?;
    for index in 0..count as usize {
        let (address, length) = (descs.get(index * 2), descs.get(index * 2 + 1));
        if length > LONGEST {
            return Err(ERROR_LAUNCH_FAILED);
        }
        let bytes = launch.view::<u8>(address, length, false)?.to_vec();
        let digest = match &key {
            None => ::blake3::hash(&bytes),
            Some(key) => ::blake3::keyed_hash(key, &bytes),
        };
        for (at, byte) in digest.as_bytes().iter().enumerate() {
            digests.set(index * 32 + at, *byte);
        }
    }
    Ok(())
}
