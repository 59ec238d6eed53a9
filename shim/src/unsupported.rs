//! The features that the process uses and that rule checkpoints out, for as long as it uses them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use crate::interpose::guard;
use crate::link;
use crate::sync::lock;

/// A use of the driver for which no checkpoint can be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// `cuMemAllocManaged`, `__managed__` variables.
    Managed,
    /// Events shared by `cuIpc*`, or memory of a process outside the job.
    Ipc,
    /// `cuImportExternalMemory` and semaphores.
    External,
    /// Multicast objects: `cuMulticast*`.
    Multicast,
    /// `cuLogicalEndpoint*`.
    Endpoint,
    /// Memory imported from a process that the agent does not know.
    ForeignImport,
    /// Exportable memory on the host made with `cuMemCreate`.
    HostMemory,
    /// Memory handed out as a fabric handle or DMA-BUF.
    Fabric,
    /// A memory pool shared between processes.
    SharedPool,
    /// A second copy of libcuda.
    SeveralDrivers,
    /// Memory whose fd was lost with an agent and cannot be exported again.
    LostMemory,
}

impl Reason {
    fn text(self) -> &'static str {
        match self {
            Reason::Managed => {
                "managed memory (cuMemAllocManaged or a __managed__ variable) is in use, which the driver cannot \
                 checkpoint: use device memory"
            }
            Reason::Ipc => {
                "memory or an event of a process that is not the job's was opened (cuIpcOpenMemHandle, \
                 cuIpcOpenEventHandle), or an event with times was shared, which the driver cannot checkpoint: run that \
                 process inside the job"
            }
            Reason::External => {
                "memory or semaphores of another API (cuImportExternalMemory, cuImportExternalSemaphore) are in use, \
                 which cannot be checkpointed: destroy them"
            }
            Reason::Multicast => {
                "multicast objects (NVLS) are alive, which hang the driver's checkpoint: set NCCL_NVLS_ENABLE=0"
            }
            Reason::Endpoint => {
                "logical endpoints (cuLogicalEndpointCreate, cuLogicalEndpointImport) are alive, through which other \
                 machines write to the memory of this one: destroy them"
            }
            Reason::ForeignImport => {
                "memory of a process outside this job was imported (cuMemImportFromShareableHandle): run that process \
                 inside the job"
            }
            Reason::HostMemory => {
                "exportable host memory made with cuMemCreate is alive: set NCCL_CUMEM_HOST_ENABLE=0"
            }
            Reason::Fabric => {
                "device memory was handed out as a fabric handle or DMA-BUF, which cannot be taken back for a \
                 checkpoint"
            }
            Reason::SharedPool => {
                "a memory pool is shared with another process (cuMemPoolExport*, cuMemPoolImport*), which the driver \
                 cannot checkpoint"
            }
            Reason::SeveralDrivers => {
                "more than one copy of libcuda is mapped (dlmopen or two files), so not every call can be held back"
            }
            Reason::LostMemory => {
                "memory that was attached after a checkpoint is unknown to the agent that is running now, and the \
                 driver cannot export it twice: restart the job"
            }
        }
    }
}

static REASONS: Mutex<BTreeMap<Reason, u64>> = Mutex::new(BTreeMap::new());

/// Libraries that call the driver past the wrappers.
static BYPASSED: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Says which libraries call the driver past the wrappers.
pub fn set_bypassed(libraries: Vec<String>) {
    let changed = {
        let mut known = lock(&BYPASSED);
        std::mem::replace(&mut *known, libraries.clone()) != libraries
    };
    if changed {
        announce();
    }
}

/// Counts one more use that rules checkpoints out.
pub fn add(reason: Reason) {
    let first = {
        let mut reasons = lock(&REASONS);
        let count = reasons.entry(reason).or_insert(0);
        *count += 1;
        *count == 1
    };
    if first {
        announce();
    }
}

/// Counts one use less.
pub fn remove(reason: Reason) {
    let last = {
        let mut reasons = lock(&REASONS);
        match reasons.get_mut(&reason) {
            Some(count) if *count > 1 => {
                *count -= 1;
                false
            }
            Some(_) => {
                reasons.remove(&reason);
                true
            }
            None => false,
        }
    };
    if last {
        announce();
    }
}

/// A reason holds from now on, for good.
pub fn set(reason: Reason) {
    let is_new = {
        let mut reasons = lock(&REASONS);
        let before = reasons.len();
        reasons.entry(reason).or_insert(1);
        reasons.len() > before
    };
    if is_new {
        announce();
    }
}

/// All reasons in words; none if checkpoints are possible.
pub fn text() -> Option<String> {
    let mut parts: Vec<String> = lock(&REASONS).keys().map(|r| r.text().to_owned()).collect();
    for library in lock(&BYPASSED).iter() {
        parts.push(format!(
            "{library} calls the driver past phos-ft (it was loaded with RTLD_DEEPBIND, or looks functions up by dlvsym), so \
             its calls cannot be held back: load it without that, or leave it out"
        ));
    }
    for call in guard::not_understood() {
        parts.push(format!(
            "{} calls {}, which this version of phos-ft does not know and which may enqueue, allocate or share: update \
             phos-ft",
            call.caller, call.name
        ));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Tells the agent, if one is connected.
pub fn announce() {
    link::announce(text());
}
