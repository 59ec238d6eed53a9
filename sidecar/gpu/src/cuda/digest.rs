//! Digests of device memory, computed where it lies (`kernels/blake3.cu`).
//!
//! # Rules
//!
//! * The caller makes sure that nobody writes the memory: the job is quiet, or it is ours.
//! * The digest equals `blake3::hash` of the same bytes, or with a key `blake3::keyed_hash`, for every length up to a
//!   chunk.
//! * A key is in this process's memory and in the launch's parameters, and nowhere else.

use std::ffi::{c_uint, c_void};
use std::sync::Arc;

use cudarc::driver::sys;

use super::device::CudaGpu;
use super::memory::Allocation;
use super::pinned::Pinned;
use super::stream::CudaStream;
use crate::error::GpuError;
use crate::platform::{Digest, Digester, PinnedMemory as _, Range};
use crate::stream::Queue as _;

const PTX: &str = concat!(include_str!("../../kernels/blake3.ptx"), "\0");
const ENTRY: &std::ffi::CStr = c"phos_blake3_chunks";
/// Threads of a block, one block a chunk.
const THREADS: u32 = 256;
/// Chunks of one launch, 128 GiB: whole waves of blocks, and one wait.
const BATCH: usize = 128 * 1024;

/// The kernel's `ChunkDesc`.
#[repr(C)]
#[derive(Clone, Copy)]
struct ChunkDesc {
    addr: u64,
    len: u64,
}

/// The kernel's `Key`.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelKey {
    words: [u32; 8],
    flags: u32,
}

/// The flag that BLAKE3's compression function is given in keyed mode.
const KEYED_HASH: u32 = 16;
/// BLAKE3's initialisation vector, which stands for a key where none is used.
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

impl KernelKey {
    fn of(key: Option<&[u8; 32]>) -> KernelKey {
        let Some(key) = key else {
            return KernelKey {
                words: IV,
                flags: 0,
            };
        };
        let mut words = [0; 8];
        for (word, bytes) in words.iter_mut().zip(key.as_chunks::<4>().0) {
            *word = u32::from_le_bytes(*bytes);
        }
        KernelKey {
            words,
            flags: KEYED_HASH,
        }
    }
}

/// Digests chunks on one GPU.
pub(super) struct Kernel {
    stream: CudaStream,
    module: sys::CUmodule,
    function: sys::CUfunction,
    device: Arc<Allocation>,
    /// Descriptors, and the digests behind them.
    host: Pinned,
}

// SAFETY: module and function may be used from any thread; the host buffer is used under `&mut self`.
unsafe impl Send for Kernel {}

const DESC_BYTES: usize = BATCH * size_of::<ChunkDesc>();
const DIGEST_BYTES: usize = BATCH * 32;

impl Kernel {
    /// Loads the kernel. Compiling it for the GPU takes up to a second the first time.
    ///
    /// # Errors
    /// A driver call failed.
    pub(super) fn new(gpu: &Arc<CudaGpu>) -> Result<Kernel, GpuError> {
        let stream = CudaStream::new(gpu)?;
        let device = Allocation::scratch(gpu, (DESC_BYTES + DIGEST_BYTES) as u64)?;
        let host = Pinned::new(gpu, DESC_BYTES + DIGEST_BYTES)?;
        let api = gpu.api;
        let mut digester = Kernel {
            stream,
            module: std::ptr::null_mut(),
            function: std::ptr::null_mut(),
            device,
            host,
        };
        // SAFETY: PTX is a NUL-terminated text.
        api.check("cuModuleLoadData", unsafe {
            (api.module_load_data)(&raw mut digester.module, PTX.as_ptr().cast())
        })?;
        // SAFETY: the module was just loaded, the name is NUL-terminated.
        api.check("cuModuleGetFunction", unsafe {
            (api.module_get_function)(&raw mut digester.function, digester.module, ENTRY.as_ptr())
        })?;
        Ok(digester)
    }

    fn batch(
        &mut self,
        ranges: &[&Range],
        mut key: KernelKey,
        digests: &mut Vec<Digest>,
    ) -> Result<(), GpuError> {
        let gpu = Arc::clone(self.stream.gpu());
        let api = gpu.api;
        gpu.make_current()?;
        let host = self.host.base();
        let descs: *mut ChunkDesc = host.cast();
        for (i, range) in ranges.iter().enumerate() {
            let desc = ChunkDesc {
                addr: range.address()?,
                len: range.len,
            };
            // SAFETY: i < BATCH, and the buffer (page aligned) holds BATCH descriptors.
            unsafe { descs.add(i).write(desc) };
        }
        let desc_bytes = (BATCH * size_of::<ChunkDesc>()) as u64;
        let device_descs = self.device.address(0, desc_bytes).unwrap_or(0);
        let device_digests = self
            .device
            .address(desc_bytes, DIGEST_BYTES as u64)
            .unwrap_or(0);
        // SAFETY: both buffers hold BATCH entries and live until the synchronisation below.
        api.check("cuMemcpyHtoDAsync", unsafe {
            (api.copy_to_device)(
                device_descs,
                host.cast_const().cast(),
                ranges.len() * size_of::<ChunkDesc>(),
                self.stream.raw(),
            )
        })?;
        let mut count = ranges.len() as u32;
        let (mut arg0, mut arg1) = (device_descs, device_digests);
        let mut arguments: [*mut c_void; 4] = [
            (&raw mut arg0).cast(),
            (&raw mut arg1).cast(),
            (&raw mut count).cast(),
            (&raw mut key).cast(),
        ];
        // SAFETY: the kernel takes (u64, u64, u32, Key) and reads its arguments during the call; the
        // ranges were checked and are mapped while the caller holds them.
        let launched = api.check("cuLaunchKernel", unsafe {
            (api.launch_kernel)(
                self.function,
                ranges.len() as c_uint,
                1,
                1,
                THREADS,
                1,
                1,
                0,
                self.stream.raw(),
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        });
        let copied = launched.and_then(|()| {
            // SAFETY: the host buffer has DIGEST_BYTES behind the descriptors.
            api.check("cuMemcpyDtoHAsync", unsafe {
                (api.copy_to_host)(
                    host.add(DESC_BYTES).cast(),
                    device_digests,
                    ranges.len() * 32,
                    self.stream.raw(),
                )
            })
        });
        // In any case: nothing may be in flight when the buffers are used again.
        let finished = self.stream.synchronize();
        copied.and(finished)?;
        // SAFETY: the copy above filled that many bytes and has ended.
        let bytes = unsafe { std::slice::from_raw_parts(host.add(DESC_BYTES), ranges.len() * 32) };
        digests.extend(bytes.as_chunks::<32>().0);
        Ok(())
    }
}

impl Digester for Kernel {
    fn digest(
        &mut self,
        ranges: &[&Range],
        key: Option<&[u8; 32]>,
    ) -> Result<Vec<Digest>, GpuError> {
        let mut digests = Vec::with_capacity(ranges.len());
        for batch in ranges.chunks(BATCH) {
            self.batch(batch, KernelKey::of(key), &mut digests)?;
        }
        Ok(digests)
    }
}

impl Drop for Kernel {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
        let gpu = self.stream.gpu();
        // SAFETY: made in `new`, and idle.
        unsafe {
            if !self.module.is_null() {
                let _ = (gpu.api.module_unload)(self.module);
            }
        }
    }
}
