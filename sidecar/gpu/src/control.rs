//! What the agent, which has no context, asks of a driver: to bring the GPU state of the job's processes into their memory and
//! back, and to tell how much device memory they hold.
//!
//! [`ControlState`] is the seam for another way to detach (CUDA 13.4 adds custom storage to these calls) and for other vendors'.

use std::time::Duration;

use phos_protocol::types::{GpuUuid, ProcessId};

/// State of a process with CUDA, as the driver reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessState {
    /// 0: the process runs.
    Running,
    /// 1: its CUDA calls block.
    Locked,
    /// 2: its GPU state is in host memory.
    Checkpointed,
    /// 3: the driver could not checkpoint or restore it.
    Failed,
    /// A number that this version does not know.
    Unknown(u32),
}

impl From<u32> for ProcessState {
    fn from(value: u32) -> Self {
        match value {
            0 => Self::Running,
            1 => Self::Locked,
            2 => Self::Checkpointed,
            3 => Self::Failed,
            other => Self::Unknown(other),
        }
    }
}

/// What a failed control call means for the job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlMeaning {
    /// The driver does not checkpoint the process for what it uses.
    Unsupported,
    /// The driver cannot bring the process back, and could not at another try either.
    Lost,
    /// Anything else: another try may succeed.
    Other,
}

/// Why a control call could not be made or failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ControlError {
    /// The CUDA driver library cannot be opened.
    #[error(
        "the CUDA driver library libcuda.so.1 cannot be opened ({0}): install the NVIDIA driver, or start the container with \
         the NVIDIA runtime (`--gpus all`)"
    )]
    NoLibrary(String),
    /// A driver without the calls.
    #[error(
        "the CUDA driver has no {symbol}: checkpoints need driver 570 or newer (this one reports CUDA {version})"
    )]
    NoSymbol {
        /// The name of the missing entry point.
        symbol: &'static str,
        /// `cuDriverGetVersion`, or 0.
        version: u32,
    },
    /// A control call failed.
    #[error("{call} on process {pid} failed with CUresult {result} ({name}){hint}")]
    Call {
        /// The name of the driver's entry point.
        call: &'static str,
        /// The process that the call was about; 0 for a call that is about none.
        pid: ProcessId,
        /// The `CUresult` that the call returned.
        result: u32,
        /// The result's name, from `cuGetErrorName`.
        name: String,
        /// What the user can do about it, to be appended to the message; empty where nothing is known to help.
        hint: &'static str,
        /// What the failure means for the job.
        meaning: ControlMeaning,
    },
}

impl ControlError {
    /// The process that the driver cannot bring back, also at another try, as long as the process is there.
    pub fn lost_process(&self) -> Option<ProcessId> {
        match self {
            Self::Call {
                pid,
                meaning: ControlMeaning::Lost,
                ..
            } => Some(*pid),
            _ => None,
        }
    }

    /// The process that the driver does not checkpoint for what it uses, which only a try shows and which is likely to last.
    pub fn refused_process(&self) -> Option<ProcessId> {
        match self {
            Self::Call {
                pid,
                meaning: ControlMeaning::Unsupported,
                ..
            } => Some(*pid),
            _ => None,
        }
    }
}

/// The calls that the agent makes to the driver to checkpoint the job's processes.
pub trait ControlState: Send + Sync {
    /// `cuDriverGetVersion`, e.g. 13000.
    fn driver_version(&self) -> u32;
    /// State of a process.
    ///
    /// # Errors
    /// [`ControlError::Call`], also when the process does not use CUDA.
    fn state(&self, pid: ProcessId) -> Result<ProcessState, ControlError>;
    /// Blocks further CUDA calls of the process and waits for those under way.
    ///
    /// # Errors
    /// [`ControlError::Call`]; the process runs on.
    fn lock(&self, pid: ProcessId, timeout: Duration) -> Result<(), ControlError>;
    /// Moves the GPU state of a locked process into its host memory.
    ///
    /// # Errors
    /// [`ControlError::Call`]; the process is still locked.
    fn checkpoint(&self, pid: ProcessId) -> Result<(), ControlError>;
    /// Brings the GPU state back; `gpus` maps old GPUs to new ones and is complete or empty.
    ///
    /// # Errors
    /// [`ControlError::Call`]; the process may be stuck for good.
    fn restore(&self, pid: ProcessId, gpus: &[(GpuUuid, GpuUuid)]) -> Result<(), ControlError>;
    /// Lets the process make CUDA calls again.
    ///
    /// # Errors
    /// [`ControlError::Call`].
    fn unlock(&self, pid: ProcessId) -> Result<(), ControlError>;
    /// Every GPU that the driver shows this process, in its order. Empty: it does not say.
    fn gpus(&self) -> Vec<GpuUuid>;
}

/// How much device memory processes hold, as the machine says.
pub trait DeviceUsage: Send + Sync {
    /// Bytes that each of the processes holds, on each device on which it holds something; none: that cannot be told.
    fn of(&self, processes: &[ProcessId]) -> Option<Vec<(ProcessId, u64)>>;
}
