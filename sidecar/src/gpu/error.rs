//! What can go wrong with a GPU, and what the caller must do about it.

use phos_protocol::types::GpuUuid;

/// Why a GPU operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum GpuError {
    /// There is no CUDA driver.
    #[error(
        "no CUDA driver: libcuda.so.1 cannot be loaded; install the NVIDIA driver, or start the \
         container with --gpus all (NVIDIA container toolkit)"
    )]
    NoDriver,
    /// The driver is too old.
    #[error("the CUDA driver lacks {0}: install driver 570 or newer")]
    MissingSymbol(&'static str),
    /// A driver call failed.
    #[error("{call} failed: {text} ({code})")]
    Call {
        /// The entry point.
        call: &'static str,
        /// Its `CUresult`.
        code: u32,
        /// Its name.
        text: String,
    },
    /// No GPU with this UUID.
    #[error(
        "GPU {0} is not visible to this process: give the sidecar the same GPUs as the job \
         (CUDA_VISIBLE_DEVICES, --gpus)"
    )]
    NoSuchGpu(GpuUuid),
    /// The driver lists no GPU at all.
    #[error("the driver lists no GPU: check nvidia-smi and CUDA_VISIBLE_DEVICES")]
    NoGpu,
    /// Somebody wants the operation to end.
    #[error("cancelled")]
    Cancelled,
}

impl GpuError {
    /// The `CUresult`, if a call failed.
    pub fn code(&self) -> Option<u32> {
        match self {
            GpuError::Call { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Device memory ran out; less may work.
    pub fn is_out_of_memory(&self) -> bool {
        self.code() == Some(2)
    }

    /// The context is unusable from now on: the process must be replaced. The job has a context of
    /// its own and is not harmed.
    pub fn is_sticky(&self) -> bool {
        // Deinitialised, device unavailable, invalid context, ECC and NVLink errors, and everything
        // from illegal address to launch failure; 999 is "unknown".
        matches!(
            self.code(),
            Some(4 | 46 | 201 | 214 | 220 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721 | 999)
        )
    }
}
