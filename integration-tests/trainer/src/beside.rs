//! Threads beside the training that never pause: one that asks the driver, one that computes on host memory which the GPU can
//! reach. Frameworks have both: XLA and PyTorch's watchdogs poll streams and events, data loaders write into pinned buffers.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::{Result, anyhow, bail};
use cudarc::driver::sys::{CUcontext, CUresult, CUstream};

use crate::cuda::{CudaError, Gpu, alloc, cu, free, record, stream, synchronize};
use crate::extras::VerificationFailed;

/// A thread that works until it is stopped, or fails.
#[derive(Debug)]
pub(crate) struct Beside {
    name: &'static str,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64>>,
}

/// Carries the handle to the thread; contexts may be used from any.
struct SharedContext(CUcontext);
// SAFETY: the driver allows a context to be current on any thread.
unsafe impl Send for SharedContext {}

impl Beside {
    /// Starts `work` with the device's context current. It returns its number of rounds once it is told to stop.
    pub(crate) fn start(
        name: &'static str,
        gpu: &Gpu,
        work: fn(&AtomicBool) -> Result<u64>,
    ) -> Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let (context, stopped) = (SharedContext(gpu.context), Arc::clone(&stop));
        let thread = std::thread::Builder::new()
            .name(name.into())
            .spawn(move || {
                let context = context;
                cu!(cuCtxSetCurrent(context.0))?;
                work(&stopped)
            })?;
        Ok(Self { name, stop, thread })
    }

    /// Whether the thread has failed. It ends before it is told to only by failing; [`Self::stop`] says why.
    pub(crate) fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// Stops the thread; its name and the number of rounds it made.
    pub(crate) fn stop(self) -> Result<(&'static str, u64)> {
        self.stop.store(true, Ordering::Relaxed);
        let rounds = self
            .thread
            .join()
            .map_err(|_| anyhow!("the {} thread panicked", self.name))??;
        Ok((self.name, rounds))
    }
}

/// Asks the driver, again and again, what the GPU has finished, and nothing else: a caller that is held in another function
/// would not be seen in these.
pub(crate) fn poll(stop: &AtomicBool) -> Result<u64> {
    let stream = stream()?;
    let events = [timed_event()?, timed_event()?];
    record(events[0], stream)?;
    record(events[1], stream)?;
    let mut rounds = 0u64;
    while !stop.load(Ordering::Relaxed) {
        ready_or_not(cu!(cuStreamQuery(stream)))?;
        ready_or_not(cu!(cuEventQuery(events[1])))?;
        let mut milliseconds = 0.0;
        ready_or_not(cu!(cuEventElapsedTime_v2(
            &mut milliseconds,
            events[0],
            events[1]
        )))?;
        rounds += 1;
    }
    for event in events {
        cu!(cuEventDestroy_v2(event))?;
    }
    cu!(cuStreamDestroy_v2(stream))?;
    Ok(rounds)
}

/// Asks the driver about all else that the thread has, and waits for work of its own.
pub(crate) fn ask(stop: &AtomicBool) -> Result<u64> {
    let stream = stream()?;
    let memory = alloc(1 << 16)?;
    let mut context = std::ptr::null_mut();
    cu!(cuCtxGetCurrent(&mut context))?;
    let mut rounds = 0u64;
    while !stop.load(Ordering::Relaxed) {
        if rounds.is_multiple_of(64) {
            cu!(cuMemsetD32Async(memory.ptr, 1, 1 << 14, stream))?;
        }
        ask_the_rest(stream, context, memory.ptr)?;
        // Waiting polls inside the driver.
        synchronize(stream)?;
        rounds += 1;
    }
    free(memory)?;
    cu!(cuStreamDestroy_v2(stream))?;
    Ok(rounds)
}

fn timed_event() -> Result<cudarc::driver::sys::CUevent> {
    let mut event = std::ptr::null_mut();
    cu!(cuEventCreate(&mut event, 0))?;
    Ok(event)
}

fn ready_or_not(answer: Result<(), CudaError>) -> Result<()> {
    match answer {
        Err(e) if e.code() == CUresult::CUDA_ERROR_NOT_READY => Ok(()),
        other => Ok(other?),
    }
}

/// What is answered without a look at the GPU.
fn ask_the_rest(stream: CUstream, context: CUcontext, memory: u64) -> Result<()> {
    let (mut free, mut total) = (0, 0);
    cu!(cuMemGetInfo_v2(&mut free, &mut total))?;
    let mut current = std::ptr::null_mut();
    cu!(cuCtxGetCurrent(&mut current))?;
    if current != context {
        bail!("another context is current than was made so");
    }
    let (mut base, mut size) = (0, 0);
    cu!(cuMemGetAddressRange_v2(&mut base, &mut size, memory + 4096))?;
    if base != memory {
        bail!("memory at {memory:#x} is said to begin at {base:#x}");
    }
    let mut flags = 0;
    cu!(cuStreamGetFlags(stream, &mut flags))?;
    let mut device = 0;
    cu!(cuCtxGetDevice(&mut device))?;
    cu!(cuDeviceTotalMem_v2(&mut total, device))?;
    Ok(())
}

/// Words of each kind of memory that [`count`] counts in.
const WORDS: usize = 1 << 16;
/// `CU_MEMHOSTALLOC_WRITECOMBINED`.
const WRITE_COMBINED: u32 = 4;
const NAMES: [&str; 3] = ["pinned", "write-combined", "registered"];

/// Counts in pinned, write-combined and registered memory, and in ordinary memory beside it: a write that is lost shows. What
/// the GPU sees of it is compared as well.
pub(crate) fn count(stop: &AtomicBool) -> Result<u64> {
    let bytes = WORDS * size_of::<u64>();
    let layout = Layout::from_size_align(bytes, 4096)?;
    // SAFETY: the layout is not empty.
    let ordinary = unsafe { alloc_zeroed(layout) };
    if ordinary.is_null() {
        handle_alloc_error(layout);
    }
    let mut pointers = [std::ptr::null_mut(); 3];
    cu!(cuMemHostAlloc(&mut pointers[0], bytes, 0))?;
    cu!(cuMemHostAlloc(&mut pointers[1], bytes, WRITE_COMBINED))?;
    pointers[2] = ordinary.cast();
    cu!(cuMemHostRegister_v2(pointers[2], bytes, 0))?;
    // SAFETY: each is memory of this size and alignment that lives until the end of this function, all of it zeroed (the
    // driver's is anonymous memory) and used by nobody else but the GPU, which copies while this thread waits.
    let kinds =
        pointers.map(|at| unsafe { std::slice::from_raw_parts(at.cast::<AtomicU64>(), WORDS) });
    let mut twin = vec![0u64; WORDS];
    for kind in kinds {
        for word in kind {
            word.store(0, Ordering::Relaxed);
        }
    }
    let device = alloc(bytes)?;
    let mut back = vec![0u64; WORDS];
    let mut rounds = 0u64;
    while !stop.load(Ordering::Relaxed) {
        count_once(&kinds, &mut twin, rounds)?;
        rounds += 1;
        if rounds.is_multiple_of(100) {
            for (kind, name) in pointers.iter().zip(NAMES) {
                cu!(cuMemcpyHtoD_v2(device.ptr, *kind, bytes))?;
                cu!(cuMemcpyDtoH_v2(back.as_mut_ptr().cast(), device.ptr, bytes))?;
                if back != twin {
                    bail!(VerificationFailed(format!(
                        "{name} memory as the device sees it, round {rounds}"
                    )));
                }
            }
        }
    }
    free(device)?;
    cu!(cuMemHostUnregister(pointers[2]))?;
    cu!(cuMemFreeHost(pointers[0]))?;
    cu!(cuMemFreeHost(pointers[1]))?;
    // SAFETY: allocated above with this layout; nothing refers to it from here on.
    unsafe { dealloc(ordinary, layout) };
    Ok(rounds)
}

fn count_once(kinds: &[&[AtomicU64]; 3], twin: &mut [u64], round: u64) -> Result<()> {
    for (index, twin) in twin.iter_mut().enumerate() {
        let change = (round ^ index as u64) | 1;
        *twin = twin.wrapping_add(change);
        for (kind, name) in kinds.iter().zip(NAMES) {
            let now = kind[index].load(Ordering::Relaxed).wrapping_add(change);
            kind[index].store(now, Ordering::Relaxed);
            if now != *twin {
                bail!(VerificationFailed(format!(
                    "a write to word {index} of {name} memory is lost, round {round}"
                )));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_write_is_found_in_the_round_after_it() -> Result<()> {
        let memory: [Vec<AtomicU64>; 3] =
            [(); 3].map(|()| (0..WORDS).map(|_| AtomicU64::new(0)).collect());
        let kinds = [&memory[0][..], &memory[1][..], &memory[2][..]];
        let mut twin = vec![0; WORDS];
        count_once(&kinds, &mut twin, 0)?;
        let before = memory[1][77].load(Ordering::Relaxed);
        count_once(&kinds, &mut twin, 1)?;
        memory[1][77].store(before, Ordering::Relaxed);
        let Err(lost) = count_once(&kinds, &mut twin, 2) else {
            bail!("it was not found");
        };
        assert!(lost.is::<VerificationFailed>());
        assert!(
            lost.to_string().contains("word 77 of write-combined"),
            "{lost}"
        );
        Ok(())
    }
}
