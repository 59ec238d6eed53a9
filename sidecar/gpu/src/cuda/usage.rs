//! How much device memory processes hold, as NVML says: the library of `nvidia-smi`, which comes with the driver.
//!
//! For a process whose memory is detached, that is what the driver will save: its contexts, the variables and code of its
//! modules, arrays, pools, and everything of a process without the shim. NVML answers in 0.15 ms (H200, 580.159.04), and names
//! processes as the caller's PID namespace does.

use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::error::NvmlError;
use phos_protocol::types::ProcessId;

use crate::control::DeviceUsage;

/// The name that containers have as well: without a version, it is there for development only.
const LIBRARY: &str = "libnvidia-ml.so.1";

/// NVML, if it is there.
pub(crate) struct Usage(Option<Nvml>);

impl Usage {
    /// Opens it, which takes some milliseconds.
    pub(crate) fn open() -> Self {
        match Nvml::builder().lib_path(OsStr::new(LIBRARY)).init() {
            Ok(nvml) => Self(Some(nvml)),
            Err(e) => {
                tracing::debug!(cause = %e, "without NVML: what the driver saves by itself is known in part");
                Self(None)
            }
        }
    }
}

impl DeviceUsage for Usage {
    fn of(&self, processes: &[ProcessId]) -> Option<Vec<(ProcessId, u64)>> {
        let nvml = self.0.as_ref()?;
        let list = || -> Result<Option<Vec<(ProcessId, u64)>>, NvmlError> {
            let mut all = Vec::new();
            for index in 0..nvml.device_count()? {
                for found in nvml.device_by_index(index)?.running_compute_processes()? {
                    if !processes.contains(&found.pid) {
                        continue;
                    }
                    match found.used_gpu_memory {
                        UsedGpuMemory::Used(bytes) => all.push((found.pid, bytes)),
                        UsedGpuMemory::Unavailable => return Ok(None),
                    }
                }
            }
            Ok(Some(all))
        };
        list().unwrap_or_else(|e| {
            tracing::debug!(cause = %e, "NVML does not say what processes hold");
            None
        })
    }
}
