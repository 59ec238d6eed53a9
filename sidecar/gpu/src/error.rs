//! What can go wrong with a GPU, and what the caller must do about it.

use phos_protocol::types::GpuUuid;

/// What a failed call of the driver means for the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallKind {
    /// Device memory ran out; less may work.
    OutOfMemory,
    /// The context is unusable from now on: the process must be replaced.
    Sticky,
    /// Any other failure of a call.
    Other,
}

/// Why a GPU operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GpuError {
    /// There is no CUDA driver.
    #[error(
        "no CUDA driver: libcuda.so.1 cannot be loaded; install the NVIDIA driver, or start the \
         container with --gpus all (NVIDIA container toolkit)"
    )]
    NoDriver,
    /// The driver is too old: it lacks this entry point.
    #[error("the CUDA driver lacks {0}: install driver 570 or newer")]
    MissingSymbol(&'static str),
    /// A driver call failed.
    #[error("{call} failed: {text} ({code})")]
    Call {
        /// The name of the driver's entry point.
        call: &'static str,
        /// The `CUresult` that the call returned.
        code: u32,
        /// The result's name, as the driver gives it.
        text: String,
        /// What the failure means for the caller.
        kind: CallKind,
    },
    /// The system has no memory for a buffer.
    #[error("no {bytes} bytes of host memory: {errno} (a smaller --host-buffer needs less)")]
    HostMemory {
        /// The number of bytes that were asked for.
        bytes: u64,
        /// The error that the kernel returned.
        errno: rustix::io::Errno,
    },
    /// What was asked for does not fit the memory that it was asked of.
    #[error("{0}")]
    OutOfBounds(String),
    /// No GPU with this UUID.
    #[error(
        "GPU {0} is not visible to this process: give the sidecar the same GPUs as the job \
         (CUDA_VISIBLE_DEVICES, --gpus)"
    )]
    NoSuchGpu(GpuUuid),
    /// The driver lists no GPU at all.
    #[error("the driver lists no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoGpu,
    /// Somebody wanted the operation to end.
    #[error("cancelled")]
    Cancelled,
}

impl GpuError {
    /// Device memory ran out; less may work.
    pub fn is_out_of_memory(&self) -> bool {
        self.has(CallKind::OutOfMemory)
    }

    /// The context is unusable from now on: the process must be replaced. The job has a context of
    /// its own and is not harmed.
    pub fn is_sticky(&self) -> bool {
        self.has(CallKind::Sticky)
    }

    fn has(&self, wanted: CallKind) -> bool {
        matches!(self, GpuError::Call { kind, .. } if *kind == wanted)
    }
}
