//! A multicast object of all devices of this process, as a program has it that drives the GPUs of a machine from one process: what is written to it comes to
//! the memory of each device. What each has there is verified, and part of the losses.

use anyhow::{Result, bail};
use cudarc::driver::sys;

use crate::cuda::{Buffer, Gpu, cu, location, map, on_device};
use crate::extras::VerificationFailed;
use crate::rng::mix;

/// Bytes of the object, a granule of the driver's.
const BYTES: usize = 2 << 20;
const PAGE: usize = 4096;
/// `CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR`.
const POSIX_FD: u64 = 1;

/// See the module.
#[derive(Debug)]
pub(crate) struct Object {
    handle: u64,
    /// Where it is mapped.
    at: u64,
    /// The memory of each device that is bound to it.
    parts: Vec<Buffer>,
}

/// What is written in a step.
fn page(step: u64) -> [u64; PAGE / 8] {
    std::array::from_fn(|word| mix(step ^ (word as u64) << 32))
}

fn place(step: u64) -> u64 {
    (step as usize * PAGE % BYTES) as u64
}

impl Object {
    pub(crate) fn new(gpus: &[&Gpu]) -> Result<Self> {
        let properties = sys::CUmulticastObjectProp {
            numDevices: gpus.len() as u32,
            size: BYTES,
            handleTypes: POSIX_FD,
            flags: 0,
        };
        let mut object = Self {
            handle: 0,
            at: 0,
            parts: Vec::new(),
        };
        cu!(cuMulticastCreate(&mut object.handle, &properties))?;
        for gpu in gpus {
            cu!(cuMulticastAddDevice(object.handle, gpu.device))?;
        }
        for (number, gpu) in gpus.iter().enumerate() {
            gpu.select()?;
            let mut memory = 0;
            cu!(cuMemCreate(
                &mut memory,
                BYTES,
                &on_device(location(gpu)),
                0
            ))?;
            let ptr = map(gpus, memory, BYTES)?;
            cu!(cuMemsetD8_v2(ptr, 0, BYTES))?;
            // The host does not wait for it, and what is written through the object is of another device's stream.
            cu!(cuCtxSynchronize())?;
            object.parts.push(Buffer { ptr, bytes: BYTES });
            match number % 2 {
                0 => cu!(cuMulticastBindMem(object.handle, 0, memory, 0, BYTES, 0))?,
                _ => object.bind(number)?,
            }
            // It is bound and mapped.
            cu!(cuMemRelease(memory))?;
        }
        object.at = map(gpus, object.handle, BYTES)?;
        Ok(object)
    }

    fn bind(&self, number: usize) -> Result<()> {
        let part = self.parts[number];
        Ok(cu!(cuMulticastBindAddr(
            self.handle,
            0,
            part.ptr,
            BYTES,
            0
        ))?)
    }

    /// Writes a page of it, and reads that, and the one before, from each device.
    pub(crate) fn step(&self, gpus: &[&Gpu], step: u64) -> Result<u64> {
        if step % 7 == 6 {
            // As memory is exchanged that is bound.
            let number = (step / 7) as usize % gpus.len();
            cu!(cuMulticastUnbind(
                self.handle,
                gpus[number].device,
                0,
                BYTES
            ))?;
            self.bind(number)?;
        }
        gpus[0].select()?;
        let written = page(step);
        cu!(cuMemcpyHtoD_v2(
            self.at + place(step),
            written.as_ptr().cast(),
            PAGE
        ))?;
        let mut sum = 0;
        for (gpu, part) in gpus.iter().zip(&self.parts) {
            gpu.select()?;
            // The one before has been through a checkpoint, if one came in between.
            for step in [step.saturating_sub(1), step] {
                let mut found = [0_u64; PAGE / 8];
                cu!(cuMemcpyDtoH_v2(
                    found.as_mut_ptr().cast(),
                    part.ptr + place(step),
                    PAGE
                ))?;
                if found != page(step) {
                    let device = gpu.device;
                    let text = format!("step {step} of the multicast object, on device {device}");
                    bail!(VerificationFailed(text));
                }
                sum = found.iter().fold(sum, |sum, word| mix(sum ^ word));
            }
        }
        Ok(sum)
    }

    /// Takes it apart.
    pub(crate) fn finish(self, gpus: &[&Gpu]) -> Result<()> {
        cu!(cuMemUnmap(self.at, BYTES))?;
        for (gpu, part) in gpus.iter().zip(self.parts) {
            cu!(cuMulticastUnbind(self.handle, gpu.device, 0, BYTES))?;
            cu!(cuMemUnmap(part.ptr, BYTES))?;
        }
        Ok(cu!(cuMemRelease(self.handle))?)
    }
}
