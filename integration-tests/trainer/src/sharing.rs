//! Device memory and an event shared with another process by legacy IPC (`cuIpc*`), as `torch.multiprocessing` and custom
//! all-reduces do it. Both processes write, and what each sees of the other's writes is part of the losses.

use anyhow::{Result, bail};
use cudarc::driver::sys::{
    self, CUevent, CUipcEventHandle, CUipcMem_flags, CUipcMemHandle, CUresult, CUstream,
};

use crate::companion::{Companion, Request};
use crate::cuda::{
    self, Buffer, Gpu, alloc, checksum, cu, free, pattern, stream, synchronize, wait,
};
use crate::rng::mix;

/// Operations of a peer: it opens memory, or the event; closes all memory and opens the same again; closes all; takes its part
/// in a step.
const OPEN: u64 = 1;
const EVENT: u64 = 2;
const AGAIN: u64 = 3;
const CLOSE: u64 = 4;
const STEP: u64 = 5;

/// A small one, which lies in memory with others, and one of its own.
const SIZES: [usize; 2] = [20 * 1024, (3 << 20) + 12 * 1024];

fn is_unsupported(error: &cuda::CudaError) -> bool {
    error.code() == CUresult::CUDA_ERROR_NOT_SUPPORTED
}

/// The trainer's side.
#[derive(Debug)]
pub(crate) struct Shared {
    peer: Companion,
    buffers: Vec<Buffer>,
    /// Memory whose handles nobody has yet: checkpoints come between.
    next: Vec<Buffer>,
    result: Buffer,
    /// Where there are such events: attribute IPC_EVENT_SUPPORTED.
    event: Option<CUevent>,
}

fn words(handle: [std::ffi::c_char; 64]) -> [u8; 64] {
    handle.map(|c| c as u8)
}

fn chars(handle: [u8; 64]) -> [std::ffi::c_char; 64] {
    handle.map(|b| b as std::ffi::c_char)
}

impl Shared {
    /// With a peer that was started before this process had CUDA.
    pub(crate) fn new(gpu: &Gpu, peer: Companion, stream: CUstream) -> Result<Self> {
        gpu.select()?;
        let mut shared = Self {
            peer,
            buffers: Vec::new(),
            next: Vec::new(),
            result: alloc(8)?,
            event: None,
        };
        shared.allocate(gpu, 0, stream)?;
        shared.hand_out()?;
        shared.event = shared.share_event()?;
        let how = if shared.event.is_some() { "an" } else { "no" };
        eprintln!("phos-trainer: memory is shared, with {how} event");
        Ok(shared)
    }

    fn allocate(&mut self, gpu: &Gpu, seed: u64, stream: CUstream) -> Result<()> {
        for size in SIZES {
            let buffer = alloc(size)?;
            pattern(gpu, buffer, mix(seed), stream)?;
            self.next.push(buffer);
        }
        Ok(())
    }

    /// Shares what was allocated.
    fn hand_out(&mut self) -> Result<()> {
        for buffer in std::mem::take(&mut self.next) {
            let mut handle = CUipcMemHandle { reserved: [0; 64] };
            cu!(cuIpcGetMemHandle(&mut handle, buffer.ptr))?;
            self.peer.ask(Request {
                what: OPEN,
                number: buffer.bytes as u64,
                handle: words(handle.reserved),
            })?;
            self.buffers.push(buffer);
        }
        Ok(())
    }

    fn share_event(&mut self) -> Result<Option<CUevent>> {
        let flags = sys::CUevent_flags::CU_EVENT_INTERPROCESS as u32
            | sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        let mut event = std::ptr::null_mut();
        match cu!(cuEventCreate(&mut event, flags)) {
            Err(error) if is_unsupported(&error) => return Ok(None),
            made => made?,
        }
        let mut handle = CUipcEventHandle { reserved: [0; 64] };
        cu!(cuIpcGetEventHandle(&mut handle, event))?;
        self.peer.ask(Request {
            what: EVENT,
            number: 0,
            handle: words(handle.reserved),
        })?;
        Ok(Some(event))
    }

    /// Both write and see what the other has written; the sum of what both saw.
    pub(crate) fn step(&mut self, gpu: &Gpu, step: u64, stream: CUstream) -> Result<u64> {
        gpu.select()?;
        if step % 13 == 12 {
            self.peer.ask(Request::plain(CLOSE, 0))?;
            for buffer in std::mem::take(&mut self.buffers) {
                free(buffer)?;
            }
            self.hand_out()?;
        } else if step % 13 == 5 {
            self.allocate(gpu, step, stream)?;
        } else if step % 5 == 4 {
            // By the handles of before, also when a checkpoint lies in between.
            self.peer.ask(Request::plain(AGAIN, 0))?;
        }
        for &buffer in &self.buffers {
            pattern(gpu, half(buffer, 0), mix(step), stream)?;
        }
        match self.event {
            Some(event) => cuda::record(event, stream)?,
            None => synchronize(stream)?,
        }
        let seen = self.peer.ask(Request::plain(STEP, step))?;
        let mut sum = seen;
        for &buffer in &self.buffers {
            sum = mix(sum ^ checksum(gpu, buffer, self.result, stream)?);
        }
        Ok(sum)
    }

    /// Ends the sharing.
    pub(crate) fn finish(mut self, gpu: &Gpu) -> Result<()> {
        gpu.select()?;
        self.peer.ask(Request::plain(CLOSE, 0))?;
        for buffer in self.buffers.into_iter().chain(self.next) {
            free(buffer)?;
        }
        free(self.result)?;
        if let Some(event) = self.event {
            cu!(cuEventDestroy_v2(event))?;
        }
        self.peer.finish()
    }
}

/// The first or the second half of a buffer.
fn half(buffer: Buffer, which: u64) -> Buffer {
    let bytes = buffer.bytes / 2;
    Buffer {
        ptr: buffer.ptr + which * bytes as u64,
        bytes,
    }
}

/// The other side.
pub(crate) struct Peer {
    gpu: Gpu,
    stream: CUstream,
    result: Buffer,
    handles: Vec<(usize, [u8; 64])>,
    open: Vec<Buffer>,
    event: Option<CUevent>,
}

impl Peer {
    pub(crate) fn new() -> Result<Self> {
        cuda::init()?;
        let gpu = Gpu::open(0)?;
        Ok(Self {
            stream: stream()?,
            result: alloc(8)?,
            gpu,
            handles: Vec::new(),
            open: Vec::new(),
            event: None,
        })
    }

    pub(crate) fn answer(&mut self, request: Request) -> Result<u64> {
        match request.what {
            OPEN => {
                let size = request.number as usize;
                self.handles.push((size, request.handle));
                self.open(size, request.handle)?;
            }
            EVENT => {
                let handle = CUipcEventHandle {
                    reserved: chars(request.handle),
                };
                let mut event = std::ptr::null_mut();
                cu!(cuIpcOpenEventHandle(&mut event, handle))?;
                self.event = Some(event);
            }
            AGAIN => {
                self.close()?;
                for (size, handle) in self.handles.clone() {
                    self.open(size, handle)?;
                }
            }
            CLOSE => {
                self.close()?;
                self.handles.clear();
            }
            STEP => return self.step(request.number),
            other => bail!("no operation {other}"),
        }
        Ok(0)
    }

    fn open(&mut self, bytes: usize, handle: [u8; 64]) -> Result<()> {
        let handle = CUipcMemHandle {
            reserved: chars(handle),
        };
        let lazily = CUipcMem_flags::CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS as u32;
        let mut ptr = 0;
        cu!(cuIpcOpenMemHandle_v2(&mut ptr, handle, lazily))?;
        self.open.push(Buffer { ptr, bytes });
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        for buffer in self.open.drain(..) {
            cu!(cuIpcCloseMemHandle(buffer.ptr))?;
        }
        Ok(())
    }

    /// The sum of what it sees; then it writes to its half.
    fn step(&mut self, step: u64) -> Result<u64> {
        if let Some(event) = self.event {
            wait(self.stream, event)?;
        }
        let mut seen = 0;
        for &buffer in &self.open {
            seen = mix(seen ^ checksum(&self.gpu, buffer, self.result, self.stream)?);
            pattern(&self.gpu, half(buffer, 1), mix(seen ^ step), self.stream)?;
        }
        synchronize(self.stream)?;
        Ok(seen)
    }
}
