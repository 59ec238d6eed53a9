//! What a dump is told, and how it fails.

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

/// What a dump needs to know.
#[derive(Debug)]
pub struct DumpPlan {
    /// The attempt.
    pub seq: Sequence,
    /// The job's name.
    pub job: String,
    /// The job's main process.
    pub root: ProcessId,
    /// Processes with CUDA and a shim.
    pub processes: Vec<Process>,
    /// Device memory that the driver will save into their host memory, in bytes.
    pub native_bytes: u64,
    /// Where everything goes.
    pub image: Arc<ImageDirectory>,
    /// CRIU, already checked.
    pub criu: Criu,
    /// The driver.
    pub control: Control,
    /// Files up to this size are copied.
    pub max_file_size: u64,
    /// TCP connections.
    pub tcp: Tcp,
    /// Bounds.
    pub timeouts: Timeouts,
    /// For the image.
    pub vault: Vec<VaultImage>,
    /// For the image.
    pub imports: Vec<(ProcessId, Vec<AllocationKey>)>,
    /// For the image.
    pub stdio: Vec<StdioPipe>,
    /// For the image.
    pub shim: Option<InstalledShim>,
    /// For the image.
    pub shim_socket: PathBuf,
    /// For the image.
    pub moved: Vec<(GpuUuid, GpuUuid)>,
    /// Log of a failed dump goes here.
    pub job_dir: PathBuf,
    /// How long detaching took, for the facts.
    pub detach_ns: u64,
    /// Set when the attempt is given up.
    pub cancelled: Arc<AtomicBool>,
}

/// Why a dump failed.
#[derive(Debug)]
pub struct DumpFailure {
    /// For the sidecar.
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
