//! Whether what a manifest says fits together. Everything else in the crate relies on that.

use super::{MAX_AGENT, Manifest, ManifestError, inconsistent};
use crate::codec::Codec;
use crate::{MAX_CHUNK_SIZE, pack};

/// Most chunks that one manifest may refer to: 64 TiB of full chunks.
const MAX_REFERENCES: u64 = 1 << 26;

impl Manifest {
    pub(super) fn validate(&self, overhead: u32) -> Result<(), ManifestError> {
        if self.body.agent.len() > MAX_AGENT {
            return Err(ManifestError::AgentTooLarge {
                length: self.body.agent.len(),
            });
        }
        for (number, chunk) in self.chunks.iter().enumerate() {
            let bad = |detail: String| inconsistent(format!("chunk {number}: {detail}"));
            if chunk.raw == 0
                || chunk.raw as usize > MAX_CHUNK_SIZE
                || chunk.stored > chunk.raw.saturating_add(overhead)
            {
                return Err(bad(format!(
                    "{} bytes stored for {}",
                    chunk.stored, chunk.raw
                )));
            }
            if chunk.codec == Codec::Zero {
                if chunk.stored != 0 {
                    return Err(bad("zeros are stored".into()));
                }
                continue;
            }
            let Some(pack) = self.packs.get(chunk.pack as usize) else {
                return Err(bad(format!("there is no pack {}", chunk.pack)));
            };
            let end = chunk.offset.checked_add(u64::from(chunk.stored));
            let body = pack.length.saturating_sub(pack::TRAILER);
            if chunk.stored == 0 || chunk.offset < pack::HEADER || end.is_none_or(|end| end > body)
            {
                return Err(bad(format!("its bytes lie outside pack {}", pack.id)));
            }
        }
        // Content lists are runs, so a few bytes may claim billions of chunks: they are never expanded unchecked.
        for (list, length) in self.body.contents() {
            list.check(self.chunks.len()).map_err(inconsistent)?;
            if list.len() > length {
                return Err(inconsistent(format!(
                    "{} chunks for {length} bytes",
                    list.len()
                )));
            }
        }
        let chunks: u64 = self.body.contents().map(|(list, _)| list.len()).sum();
        if chunks > MAX_REFERENCES {
            return Err(inconsistent(format!(
                "it refers to {chunks} chunks, more than {MAX_REFERENCES}"
            )));
        }
        for (list, length) in self.body.contents() {
            let total: u64 = list.iter().map(|number| self.raw_length(number)).sum();
            if total != length {
                return Err(inconsistent(format!(
                    "the chunks of an object add up to {total} bytes, not {length}"
                )));
            }
        }
        Ok(())
    }

    fn raw_length(&self, number: u32) -> u64 {
        self.chunks
            .get(number as usize)
            .map_or(0, |chunk| u64::from(chunk.raw))
    }
}
