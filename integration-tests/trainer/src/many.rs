//! Many allocations of the driver's own, as a framework makes them that has no pool: one is replaced in each step.

use anyhow::{Result, bail};
use cudarc::driver::sys::CUstream;

use crate::cuda::{Buffer, Gpu, alloc, checksum, free, pattern};
use crate::extras::VerificationFailed;
use crate::rng::mix;

/// How many there are, and of what size.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub count: usize,
    /// Every so many is large; 0: none.
    pub large_every: usize,
}

/// Allocations with known content.
#[derive(Debug)]
pub(crate) struct Many {
    sizes: Sizes,
    held: Vec<(Buffer, u64)>,
    result: Buffer,
}

impl Many {
    /// A few KiB each, or a little more than a MiB.
    pub(crate) fn new(gpu: &Gpu, sizes: Sizes, stream: CUstream) -> Result<Self> {
        gpu.select()?;
        let mut many = Self {
            sizes,
            held: Vec::new(),
            result: alloc(8)?,
        };
        for index in 0..sizes.count {
            let made = many.make(gpu, index, index as u64, stream)?;
            many.held.push(made);
        }
        Ok(many)
    }

    fn make(&self, gpu: &Gpu, index: usize, seed: u64, stream: CUstream) -> Result<(Buffer, u64)> {
        let large = self.sizes.large_every > 0 && index.is_multiple_of(self.sizes.large_every);
        // Very many are very small: the machine has to have room for them.
        let most = if self.sizes.count > 10_000 { 128 } else { 2048 };
        let least = if large {
            (1 << 20) + 4
        } else {
            2 * most as usize
        };
        let bytes = least + 4 * (mix(seed) % most) as usize;
        let buffer = alloc(bytes)?;
        // Of a large one the beginning has content: it is about their number.
        let used = Self::used(buffer);
        pattern(gpu, used, mix(seed), stream)?;
        Ok((buffer, checksum(gpu, used, self.result, stream)?))
    }

    /// What of it has known content.
    fn used(buffer: Buffer) -> Buffer {
        Buffer {
            bytes: buffer.bytes.min(16 << 10),
            ..buffer
        }
    }

    /// Verifies one, frees it and takes another in its place.
    pub(crate) fn step(&mut self, gpu: &Gpu, step: u64, stream: CUstream) -> Result<()> {
        if self.held.is_empty() {
            return Ok(());
        }
        gpu.select()?;
        let index = (mix(step) % self.held.len() as u64) as usize;
        self.verify(gpu, index, stream)?;
        free(self.held[index].0)?;
        self.held[index] = self.make(gpu, index, step << 32, stream)?;
        Ok(())
    }

    fn verify(&self, gpu: &Gpu, index: usize, stream: CUstream) -> Result<()> {
        let (buffer, expected) = self.held[index];
        if checksum(gpu, Self::used(buffer), self.result, stream)? != expected {
            bail!(VerificationFailed(format!(
                "allocation {index} of {} bytes at {:#x}",
                buffer.bytes, buffer.ptr
            )));
        }
        Ok(())
    }

    /// Verifies and frees them all.
    pub(crate) fn finish(self, gpu: &Gpu, stream: CUstream) -> Result<()> {
        gpu.select()?;
        for index in 0..self.held.len() {
            self.verify(gpu, index, stream)?;
        }
        for (buffer, _) in self.held {
            free(buffer)?;
        }
        free(self.result)
    }
}
