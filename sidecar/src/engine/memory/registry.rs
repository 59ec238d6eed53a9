//! The job's device memory as the sidecar holds it: every allocation of the last table, mapped here.
//!
//! # Rules
//!
//! * After [`Registry::apply`] the registry equals the table: what the job freed is unmapped, what is new is imported. An
//!   allocation that came without its fd and is not held is an error: the link is then set up again, and the agent sends every fd
//!   once more.
//! * A key that comes with an fd replaces what was held under it: after a restore the numbers continue from the checkpoint's, so
//!   a key may name other memory than before.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use phos_gpu::{DeviceMemory, GpuError};
use phos_protocol::agent::Process;
use phos_protocol::shim::TableEntry;
use phos_protocol::types::{Allocation, AllocationKey, GpuUuid};

use crate::engine::memory::gpus::Gpus;

/// One allocation of the job, mapped in this process.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Held {
    pub(in crate::engine) allocation: Allocation,
    pub(in crate::engine) requested: u64,
    pub(in crate::engine) memory: Arc<dyn DeviceMemory>,
}

/// Why a table could not be taken over.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum TableError {
    #[error("allocation {0:?} came without its file descriptor and is not held here")]
    Missing(AllocationKey),
    #[error("a packet of the table has {fds} file descriptors for {entries} entries that need one")]
    Fds { fds: usize, entries: usize },
    #[error("allocation {key:?} lies on device {device} of process {}, which the process did not list", key.owner)]
    Device { key: AllocationKey, device: i32 },
    #[error("allocation {key:?} cannot be mapped: {source}")]
    Import {
        key: AllocationKey,
        source: GpuError,
    },
    #[error(transparent)]
    Gpu(#[from] GpuError),
}

/// A table while it arrives.
#[derive(Default)]
pub(in crate::engine) struct Table {
    entries: Vec<(TableEntry, Option<OwnedFd>)>,
}

impl Table {
    /// Takes in the entries of one packet and the fds beside it.
    pub(in crate::engine) fn add(
        &mut self,
        entries: Vec<TableEntry>,
        fds: Vec<OwnedFd>,
    ) -> Result<(), TableError> {
        let needed = entries.iter().filter(|e| e.with_fd).count();
        if needed != fds.len() {
            return Err(TableError::Fds {
                fds: fds.len(),
                entries: needed,
            });
        }
        let mut fds = fds.into_iter();
        self.entries.extend(entries.into_iter().map(|entry| {
            let fd = if entry.with_fd { fds.next() } else { None };
            (entry, fd)
        }));
        Ok(())
    }

    /// The bytes of all allocations in the table.
    pub(in crate::engine) fn bytes(&self) -> u64 {
        self.entries
            .iter()
            .map(|(entry, _)| entry.allocation.bytes)
            .sum()
    }
}

/// The GPU behind a device ordinal of a process.
pub(in crate::engine) fn gpu_of(processes: &[Process], allocation: &Allocation) -> Option<GpuUuid> {
    processes
        .iter()
        .find(|p| p.member == allocation.key.owner)?
        .devices
        .iter()
        .find(|d| d.ordinal == allocation.device)
        .map(|d| d.uuid)
}

/// The job's device memory, by allocation: see the module's documentation.
#[derive(Default)]
pub(in crate::engine) struct Registry {
    held: BTreeMap<AllocationKey, Held>,
    /// Fds of a table that was not taken over: the agent sends each only once.
    unclaimed: HashMap<AllocationKey, OwnedFd>,
}

impl Registry {
    /// Makes the registry equal to the table. Blocks: about 0.1 ms per new allocation.
    pub(in crate::engine) fn apply(
        &mut self,
        table: Table,
        processes: &[Process],
        gpus: &Gpus,
    ) -> Result<(), TableError> {
        let mut old = std::mem::take(&mut self.held);
        let mut unclaimed = std::mem::take(&mut self.unclaimed);
        let mut result = Ok(());
        for (entry, fd) in table.entries {
            let allocation = entry.allocation;
            let key = allocation.key;
            let kept = old.remove(&key);
            let memory = match (fd.or_else(|| unclaimed.remove(&key)), kept) {
                (Some(fd), _) => self::import(gpus, processes, &allocation, fd),
                (None, Some(held)) if held.memory.bytes() == allocation.bytes => Ok(held.memory),
                (None, _) => Err(TableError::Missing(key)),
            };
            match memory {
                Ok(memory) => {
                    self.held.insert(
                        key,
                        Held {
                            allocation,
                            requested: entry.requested,
                            memory,
                        },
                    );
                }
                Err(e) => result = result.and(Err(e)),
            }
        }
        result
    }

    /// Keeps the fds of a table that cannot be taken over now, for the next one.
    pub(in crate::engine) fn keep(&mut self, table: Table) {
        let fds = table.entries.into_iter();
        self.unclaimed
            .extend(fds.filter_map(|(entry, fd)| Some((entry.allocation.key, fd?))));
    }

    /// Every allocation of the job, in the order of their keys.
    pub(in crate::engine) fn iter(&self) -> impl Iterator<Item = &Held> {
        self.held.values()
    }

    /// The allocation of this key, if the job has it.
    pub(in crate::engine) fn get(&self, key: &AllocationKey) -> Option<&Held> {
        self.held.get(key)
    }

    /// Replaces everything, after a restore.
    pub(in crate::engine) fn replace(&mut self, held: impl IntoIterator<Item = Held>) {
        self.clear();
        self.held = held.into_iter().map(|h| (h.allocation.key, h)).collect();
    }

    /// Releases allocations that the job freed: they must not stay allocated because of the sidecar.
    pub(in crate::engine) fn remove(&mut self, keys: &[AllocationKey]) {
        for key in keys {
            self.held.remove(key);
            self.unclaimed.remove(key);
        }
    }

    /// Lets go of everything: another agent or another job.
    pub(in crate::engine) fn clear(&mut self) {
        self.held.clear();
        self.unclaimed.clear();
    }

    /// Keeps only what is named.
    pub(in crate::engine) fn retain(&mut self, keys: &HashMap<AllocationKey, u64>) {
        self.held.retain(|key, _| keys.contains_key(key));
    }
}

fn import(
    gpus: &Gpus,
    processes: &[Process],
    allocation: &Allocation,
    fd: OwnedFd,
) -> Result<Arc<dyn DeviceMemory>, TableError> {
    let key = allocation.key;
    let uuid = gpu_of(processes, allocation).ok_or(TableError::Device {
        key,
        device: allocation.device,
    })?;
    let open = gpus.get(gpus.resolve(uuid))?;
    Arc::clone(open.gpu())
        .import(fd, allocation.bytes)
        .map_err(|source| TableError::Import { key, source })
}
