//! Many allocations of the driver's own, as a framework makes them that has no pool: one is replaced in each step.

use anyhow::{Result, bail};
use cudarc::driver::sys::CUstream;

use crate::cuda::{Buffer, Gpu, alloc, checksum, free, pattern};
use crate::extras::VerificationFailed;
use crate::rng::mix;

/// Allocations with known content.
#[derive(Debug)]
pub(crate) struct Many {
    held: Vec<(Buffer, u64)>,
    result: Buffer,
}

impl Many {
    /// `count` of a few KiB each.
    pub(crate) fn new(gpu: &Gpu, count: usize, stream: CUstream) -> Result<Self> {
        gpu.select()?;
        let mut many = Self {
            held: Vec::new(),
            result: alloc(8)?,
        };
        for index in 0..count {
            let made = many.make(gpu, index as u64, stream)?;
            many.held.push(made);
        }
        Ok(many)
    }

    fn make(&self, gpu: &Gpu, seed: u64, stream: CUstream) -> Result<(Buffer, u64)> {
        let buffer = alloc(4096 + 4 * (mix(seed) % 2048) as usize)?;
        pattern(gpu, buffer, mix(seed), stream)?;
        Ok((buffer, checksum(gpu, buffer, self.result, stream)?))
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
        self.held[index] = self.make(gpu, step << 32, stream)?;
        Ok(())
    }

    fn verify(&self, gpu: &Gpu, index: usize, stream: CUstream) -> Result<()> {
        let (buffer, expected) = self.held[index];
        if checksum(gpu, buffer, self.result, stream)? != expected {
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
