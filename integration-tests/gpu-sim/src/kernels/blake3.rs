//! `phos_blake3_chunks(const ChunkDesc* descs, uint8_t* digests, uint32_t count)`: the name of each chunk.
//!
//! `ChunkDesc` is `{ uint64_t address; uint64_t length; }`, in device memory like the digests (32 bytes each). Chunks
//! are 0 to 1 MiB long. Digests are those of the `blake3` crate.

use super::{Kernel, Launch};
use crate::error::{ERROR_LAUNCH_FAILED, Res};

pub const TABLE: &[(&str, Kernel)] = &[("phos_blake3_chunks", chunks)];

const LONGEST: u64 = 1 << 20;

fn chunks(launch: &Launch<'_>) -> Res {
    let (descs, digests): (u64, u64) = (launch.param(0)?, launch.param(1)?);
    let count = u64::from(launch.param::<u32>(2)?);
    let descs = launch.view::<u64>(descs, count * 2, false)?;
    let digests = launch.view::<u8>(digests, count * 32, true)?;
    for index in 0..count as usize {
        let (address, length) = (descs.get(index * 2), descs.get(index * 2 + 1));
        if length > LONGEST {
            return Err(ERROR_LAUNCH_FAILED);
        }
        let digest = ::blake3::hash(&launch.view::<u8>(address, length, false)?.to_vec());
        for (at, byte) in digest.as_bytes().iter().enumerate() {
            digests.set(index * 32 + at, *byte);
        }
    }
    Ok(())
}
