//! The driver API as far as the trainer needs it, through cudarc's bindings, which load libcuda.so.1 at run time.

use std::ffi::{CString, c_void};
use std::fmt;

use anyhow::{Context, Result, bail};
use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdeviceptr, CUevent, CUfunction, CUgraphExec, CUmodule, CUstream,
};

/// There is no driver or no device to train on.
#[derive(Debug)]
pub(crate) struct CudaUnavailable(pub String);

impl fmt::Display for CudaUnavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CUDA is not available: {}", self.0)
    }
}

impl std::error::Error for CudaUnavailable {}

/// A failed driver call.
#[derive(Debug)]
pub(crate) struct CudaError {
    call: &'static str,
    code: sys::CUresult,
}

impl CudaError {
    /// What the driver answered.
    pub(crate) const fn code(&self) -> sys::CUresult {
        self.code
    }
}

impl fmt::Display for CudaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.call, self.code)
    }
}

impl std::error::Error for CudaError {}

pub(crate) fn check(call: &'static str, code: sys::CUresult) -> Result<(), CudaError> {
    if code == sys::CUresult::CUDA_SUCCESS {
        Ok(())
    } else {
        Err(CudaError { call, code })
    }
}

/// Calls a driver function by name: `cu!(cuMemFree_v2(ptr))`. The calls are unsafe for what they are handed; every use is
/// inside a function that owns the handles it passes.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: out-pointers point to live variables of the right type, handles come from the driver and are not yet
        // destroyed, and lengths are those of the memory they go with.
        let code = unsafe { ::cudarc::driver::sys::$name($($argument),*) };
        $crate::cuda::check(stringify!($name), code)
    }};
}
pub(crate) use cu;

/// Loads the driver and initialises it; the number of devices.
pub(crate) fn init() -> Result<u32> {
    // SAFETY: loads and unloads a shared library; libcuda's initialisers are made for that.
    if !unsafe { sys::is_culib_present() } {
        bail!(CudaUnavailable(
            "libcuda.so.1 could not be loaded (no NVIDIA driver here, or not on the library path)"
                .into()
        ));
    }
    if let Err(error) = cu!(cuInit(0)) {
        bail!(CudaUnavailable(error.to_string()));
    }
    let mut count = 0;
    cu!(cuDeviceGetCount(&mut count))?;
    if count < 1 {
        bail!(CudaUnavailable("the driver sees no device".into()));
    }
    Ok(count as u32)
}

const PTX: &str = include_str!("../kernels/trainer.ptx");

/// The entries of trainer.cu.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub init: CUfunction,
    pub fill: CUfunction,
    pub gemm: CUfunction,
    pub bias_gelu: CUfunction,
    pub bias_gelu_backward: CUfunction,
    pub dropout: CUfunction,
    pub softmax_xent: CUfunction,
    pub column_sum: CUfunction,
    pub mean: CUfunction,
    pub add_scaled: CUfunction,
    pub adam: CUfunction,
    pub pattern: CUfunction,
    pub stir: CUfunction,
    pub stir_hidden: CUfunction,
    pub checksum: CUfunction,
    pub smooth: CUfunction,
}

impl Kernels {
    fn load(module: CUmodule) -> Result<Self> {
        let get = |name: &str| -> Result<CUfunction> {
            let entry = CString::new(format!("trainer_{name}"))?;
            let mut function = std::ptr::null_mut();
            cu!(cuModuleGetFunction(&mut function, module, entry.as_ptr()))
                .with_context(|| format!("kernel trainer_{name}"))?;
            Ok(function)
        };
        Ok(Self {
            init: get("init")?,
            fill: get("fill")?,
            gemm: get("gemm")?,
            bias_gelu: get("bias_gelu")?,
            bias_gelu_backward: get("bias_gelu_backward")?,
            dropout: get("dropout")?,
            softmax_xent: get("softmax_xent")?,
            column_sum: get("column_sum")?,
            mean: get("mean")?,
            add_scaled: get("add_scaled")?,
            adam: get("adam")?,
            pattern: get("pattern")?,
            stir: get("stir")?,
            stir_hidden: get("stir_hidden")?,
            checksum: get("checksum")?,
            smooth: get("smooth")?,
        })
    }
}

/// A kernel argument.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Arg {
    Ptr(CUdeviceptr),
    U64(u64),
    U32(u32),
    F32(f32),
}

impl Arg {
    /// The argument in the low bytes of a word: the driver reads as many as the parameter has.
    fn bits(self) -> u64 {
        match self {
            Self::Ptr(x) | Self::U64(x) => x,
            Self::U32(x) => u64::from(x),
            Self::F32(x) => u64::from(x.to_bits()),
        }
    }
}

/// Device memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Buffer {
    pub ptr: CUdeviceptr,
    pub bytes: usize,
}

impl Buffer {
    /// The number of 32-bit values.
    pub(crate) fn words(self) -> u32 {
        (self.bytes / 4) as u32
    }
}

/// A device with its primary context, the kernels loaded. Not to be used after `close`.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub device: CUdevice,
    pub context: CUcontext,
    module: CUmodule,
    pub kernels: Kernels,
}

impl Gpu {
    pub(crate) fn open(ordinal: u32) -> Result<Self> {
        let mut device = 0;
        cu!(cuDeviceGet(&mut device, ordinal as i32))?;
        let mut context = std::ptr::null_mut();
        cu!(cuDevicePrimaryCtxRetain(&mut context, device))?;
        cu!(cuCtxSetCurrent(context))?;
        let image = CString::new(PTX)?;
        let mut module = std::ptr::null_mut();
        cu!(cuModuleLoadData(&mut module, image.as_ptr().cast())).context("loading trainer.ptx")?;
        Ok(Self {
            device,
            context,
            module,
            kernels: Kernels::load(module)?,
        })
    }

    /// Makes this device current on this thread.
    pub(crate) fn select(&self) -> Result<()> {
        Ok(cu!(cuCtxSetCurrent(self.context))?)
    }

    pub(crate) fn close(self) -> Result<()> {
        self.select()?;
        cu!(cuModuleUnload(self.module))?;
        Ok(cu!(cuDevicePrimaryCtxRelease_v2(self.device))?)
    }
}

/// What follows acts on the current device.
pub(crate) fn alloc(bytes: usize) -> Result<Buffer> {
    let mut ptr = 0;
    cu!(cuMemAlloc_v2(&mut ptr, bytes)).with_context(|| format!("allocating {bytes} bytes"))?;
    Ok(Buffer { ptr, bytes })
}

pub(crate) fn free(buffer: Buffer) -> Result<()> {
    Ok(cu!(cuMemFree_v2(buffer.ptr))?)
}

pub(crate) fn stream() -> Result<CUstream> {
    let mut stream = std::ptr::null_mut();
    cu!(cuStreamCreate(
        &mut stream,
        sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32
    ))?;
    Ok(stream)
}

pub(crate) fn event() -> Result<CUevent> {
    let mut event = std::ptr::null_mut();
    cu!(cuEventCreate(
        &mut event,
        sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32
    ))?;
    Ok(event)
}

pub(crate) fn record(event: CUevent, stream: CUstream) -> Result<()> {
    Ok(cu!(cuEventRecord(event, stream))?)
}

/// The stream waits for the event, the host does not.
pub(crate) fn wait(stream: CUstream, event: CUevent) -> Result<()> {
    Ok(cu!(cuStreamWaitEvent(stream, event, 0))?)
}

pub(crate) fn synchronize(stream: CUstream) -> Result<()> {
    Ok(cu!(cuStreamSynchronize(stream))?)
}

pub(crate) fn launch(
    function: CUfunction,
    grid: (u32, u32),
    block: (u32, u32),
    stream: CUstream,
    args: &[Arg],
) -> Result<()> {
    let mut values: Vec<u64> = args.iter().map(|arg| arg.bits()).collect();
    let mut pointers: Vec<*mut c_void> = values
        .iter_mut()
        .map(|value| std::ptr::from_mut(value).cast())
        .collect();
    let (extra, params) = (std::ptr::null_mut(), pointers.as_mut_ptr());
    Ok(cu!(cuLaunchKernel(
        function, grid.0, grid.1, 1, block.0, block.1, 1, 0, stream, params, extra
    ))?)
}

pub(crate) const THREADS: u32 = 256;

/// A launch of one thread for each of `n` elements.
pub(crate) fn launch_each(
    function: CUfunction,
    n: u32,
    stream: CUstream,
    args: &[Arg],
) -> Result<()> {
    launch(
        function,
        (n.div_ceil(THREADS).max(1), 1),
        (THREADS, 1),
        stream,
        args,
    )
}

/// Fills a buffer with words that follow from `seed`.
pub(crate) fn pattern(gpu: &Gpu, buffer: Buffer, seed: u64, stream: CUstream) -> Result<()> {
    let args = [
        Arg::Ptr(buffer.ptr),
        Arg::U64(buffer.bytes as u64 / 4),
        Arg::U64(seed),
    ];
    launch(gpu.kernels.pattern, (1024, 1), (THREADS, 1), stream, &args)
}

/// The checksum of a buffer, computed on the device; waits for the stream.
pub(crate) fn checksum(gpu: &Gpu, buffer: Buffer, result: Buffer, stream: CUstream) -> Result<u64> {
    let args = [
        Arg::Ptr(buffer.ptr),
        Arg::U64(buffer.bytes as u64 / 4),
        Arg::Ptr(result.ptr),
    ];
    launch(gpu.kernels.checksum, (1, 1), (THREADS, 1), stream, &args)?;
    synchronize(stream)?;
    let mut sum = 0u64;
    cu!(cuMemcpyDtoH_v2((&raw mut sum).cast(), result.ptr, 8))?;
    Ok(sum)
}

/// Page-locked host memory, as an array of 32-bit words.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub ptr: *mut u32,
    pub words: usize,
}

impl Pinned {
    pub(crate) fn new(words: usize) -> Result<Self> {
        let mut ptr = std::ptr::null_mut();
        cu!(cuMemHostAlloc(&mut ptr, words * 4, 0))?;
        Ok(Self {
            ptr: ptr.cast(),
            words,
        })
    }

    /// The words. The caller has waited for the copies that write or read them.
    pub(crate) fn as_mut(&mut self) -> &mut [u32] {
        // SAFETY: the allocation has this length and alignment, and &mut self makes this the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.ptr, self.words) }
    }

    pub(crate) fn free(self) -> Result<()> {
        Ok(cu!(cuMemFreeHost(self.ptr.cast()))?)
    }
}

/// Records what `enqueue` puts on the stream into a graph, and instantiates it.
pub(crate) fn capture(
    stream: CUstream,
    enqueue: impl FnOnce() -> Result<()>,
) -> Result<CUgraphExec> {
    cu!(cuStreamBeginCapture_v2(
        stream,
        sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
    ))?;
    let enqueued = enqueue();
    let mut graph = std::ptr::null_mut();
    let ended = cu!(cuStreamEndCapture(stream, &mut graph));
    enqueued?;
    ended?;
    let mut executable = std::ptr::null_mut();
    cu!(cuGraphInstantiateWithFlags(&mut executable, graph, 0))?;
    cu!(cuGraphDestroy(graph))?;
    Ok(executable)
}

/// Maps memory somewhere, for all devices.
pub(crate) fn map(gpus: &[&Gpu], handle: u64, reserved: usize) -> Result<u64> {
    let mut ptr = 0;
    cu!(cuMemAddressReserve(&mut ptr, reserved, 0, 0, 0))?;
    cu!(cuMemMap(ptr, reserved, 0, handle, 0))?;
    let access: Vec<sys::CUmemAccessDesc> = (gpus.iter())
        .map(|gpu| sys::CUmemAccessDesc {
            location: location(gpu),
            flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
        })
        .collect();
    cu!(cuMemSetAccess(ptr, reserved, access.as_ptr(), access.len()))?;
    Ok(ptr)
}

/// Where a device's memory is.
pub(crate) fn location(gpu: &Gpu) -> sys::CUmemLocation {
    sys::CUmemLocation {
        type_: sys::CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
        id: gpu.device,
    }
}

/// What physical memory there is to be like: no shareable handle is asked for.
pub(crate) fn on_device(location: sys::CUmemLocation) -> sys::CUmemAllocationProp {
    sys::CUmemAllocationProp {
        type_: sys::CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED,
        requestedHandleTypes: sys::CUmemAllocationHandleType::CU_MEM_HANDLE_TYPE_NONE,
        location,
        win32HandleMetaData: std::ptr::null_mut(),
        allocFlags: sys::CUmemAllocationProp_st__bindgen_ty_1 {
            compressionType: 0,
            gpuDirectRDMACapable: 0,
            usage: 0,
            reserved: [0; 4],
        },
    }
}

/// An expandable segment as PyTorch has them: a large reservation of addresses, backed piece by piece as it fills.
#[derive(Debug)]
pub(crate) struct Segment {
    base: CUdeviceptr,
    reserved: usize,
    granularity: usize,
    used: usize,
    pieces: Vec<sys::CUmemGenericAllocationHandle>,
    location: sys::CUmemLocation,
}

impl Segment {
    pub(crate) fn reserve(gpu: &Gpu, bytes: usize) -> Result<Self> {
        let mut segment = Self {
            base: 0,
            reserved: 0,
            granularity: 0,
            used: 0,
            pieces: Vec::new(),
            location: location(gpu),
        };
        let recommended =
            sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
        cu!(cuMemGetAllocationGranularity(
            &mut segment.granularity,
            &on_device(segment.location),
            recommended
        ))?;
        segment.reserved = bytes.next_multiple_of(segment.granularity);
        cu!(cuMemAddressReserve(
            &mut segment.base,
            segment.reserved,
            0,
            0,
            0
        ))?;
        Ok(segment)
    }

    pub(crate) fn alloc(&mut self, bytes: usize) -> Result<Buffer> {
        let ptr = self.base + self.used as u64;
        let used = self.used + bytes.next_multiple_of(512);
        if used > self.reserved {
            bail!("the expandable segment of {} bytes is full", self.reserved);
        }
        while self.pieces.len() * self.granularity < used {
            let address = self.base + (self.pieces.len() * self.granularity) as u64;
            let mut handle = 0;
            cu!(cuMemCreate(
                &mut handle,
                self.granularity,
                &on_device(self.location),
                0
            ))?;
            cu!(cuMemMap(address, self.granularity, 0, handle, 0))?;
            let access = sys::CUmemAccessDesc {
                location: self.location,
                flags: sys::CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            cu!(cuMemSetAccess(address, self.granularity, &access, 1))?;
            self.pieces.push(handle);
        }
        self.used = used;
        Ok(Buffer { ptr, bytes })
    }

    pub(crate) fn close(self) -> Result<()> {
        for (index, handle) in self.pieces.iter().enumerate() {
            cu!(cuMemUnmap(
                self.base + (index * self.granularity) as u64,
                self.granularity
            ))?;
            cu!(cuMemRelease(*handle))?;
        }
        Ok(cu!(cuMemAddressFree(self.base, self.reserved))?)
    }
}
