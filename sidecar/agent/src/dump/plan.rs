//! The input of a dump, and the ways in which it fails.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use phos_protocol::agent::{AttemptError, Process};
use phos_protocol::shim::Sequence;
use phos_protocol::types::{AllocationKey, GpuUuid, ProcessId};

use crate::config::{Tcp, Timeouts};
use crate::control::Control;
use crate::criu::Criu;
use crate::image::{ImageDirectory, StdioPipe, VaultImage};
use crate::job::spawn::InstalledShim;
use crate::survey::Lasting;
use crate::survey::devices::InTheWay;

/// Everything that a dump needs to know.
#[derive(Debug)]
pub struct DumpPlan {
    /// The number of the attempt.
    pub seq: Sequence,
    /// The name of the job.
    pub job: String,
    /// The PID of the job's main process.
    pub root: ProcessId,
    /// Processes with CUDA and a shim.
    pub processes: Vec<Process>,
    /// Device memory that the driver will save into their host memory, in bytes.
    pub native_bytes: u64,
    /// The directory that the image is written to.
    pub image: Arc<ImageDirectory>,
    /// CRIU, already checked.
    pub criu: Criu,
    /// The driver's calls to save control state.
    pub control: Control,
    /// Files up to this size are copied.
    pub max_file_size: u64,
    /// What becomes of TCP connections of the job.
    pub tcp: Tcp,
    /// The bounds of the steps of the dump.
    pub timeouts: Timeouts,
    /// The allocations in the vault, for the image's description.
    pub vault: Vec<VaultImage>,
    /// The allocations that each process imports, for the image's description.
    pub imports: Vec<(ProcessId, Vec<AllocationKey>)>,
    /// The stdio pipes of the job, for the image's description.
    pub stdio: Vec<StdioPipe>,
    /// The shim's library, for the image's description; `None` for a job without one.
    pub shim: Option<InstalledShim>,
    /// The path of the socket that shims look for, for the image's description.
    pub shim_socket: PathBuf,
    /// The GPU that stands for each one that processes name, for the image's description.
    pub moved: Vec<(GpuUuid, GpuUuid)>,
    /// Log of a failed dump goes here.
    pub job_dir: PathBuf,
    /// How long detaching took, for the facts.
    pub detach_ns: u64,
    /// Set when the attempt is given up.
    pub cancelled: Arc<AtomicBool>,
}

/// Why a dump failed, and what is left of the job.
#[derive(Debug)]
pub struct DumpFailure {
    /// The error that the sidecar is told.
    pub error: AttemptError,
    /// Set when a process could not be brought back: the job has to be ended.
    pub lost: Option<String>,
    /// Set when a device was in the way that cannot be told from CUDA's own before a dump.
    pub device: Option<Box<InTheWay>>,
    /// Set when it failed for something that only a stop shows, and that is likely to be the same at the next try.
    pub lasting: Option<Lasting>,
}

impl From<AttemptError> for DumpFailure {
    fn from(error: AttemptError) -> Self {
        Self {
            error,
            lost: None,
            device: None,
            lasting: None,
        }
    }
}
