//! The vault: one fd for every live allocation of the job.
//!
//! Device memory lives as long as anyone holds its fd, and between detach and attach nobody in the job does.
//!
//! # Rules
//!
//! * An entry is made by a complete table of its owner, by `Share`, or by a restore. It goes when its owner's
//!   newer complete table does not list it, or its owner ends, **and** no live process imports it.
//! * A part of a table changes nothing: [`Vault::apply`] takes it whole.
//! * Every entry has a serial number, so that a key used again (a PID used twice) is not taken for the entry
//!   that a sidecar was sent before.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use phos_protocol::shim::TableEntry;
use phos_protocol::types::{Allocation, AllocationId, AllocationKey, ProcessId};

/// An allocation and the fd that keeps it alive.
#[derive(Debug)]
pub struct Entry {
    /// The allocation.
    pub allocation: Allocation,
    /// Bytes of it the application asked for.
    pub requested: u64,
    /// Distinguishes entries that had the same key one after the other.
    pub serial: u64,
    fd: OwnedFd,
}

impl Entry {
    /// The fd.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A whole table of one process, as it came in batches.
#[derive(Debug, Default)]
pub struct Table {
    entries: Vec<(TableEntry, Option<OwnedFd>)>,
    imported: BTreeSet<AllocationKey>,
}

/// What is wrong with a table.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A packet with another number of fds than its entries announce.
    #[error("a table of the shim announces {announced} fds and brought {received}")]
    Fds {
        /// By the entries.
        announced: usize,
        /// Beside the packet.
        received: usize,
    },
    /// No fd, and none from before.
    #[error("process {} lists its allocation {} without an fd, and the agent has none", .0.owner, .0.id)]
    NoFd(AllocationKey),
    /// An allocation of somebody else.
    #[error("process {pid} lists an allocation of process {owner} as its own")]
    Owner {
        /// Whose table.
        pid: ProcessId,
        /// What it says.
        owner: ProcessId,
    },
}

impl Table {
    /// Adds a batch.
    ///
    /// # Errors
    /// [`TableError::Fds`]; the fds are closed.
    pub fn add(
        &mut self,
        entries: Vec<TableEntry>,
        imported: Vec<AllocationKey>,
        fds: Vec<OwnedFd>,
    ) -> Result<(), TableError> {
        let announced = entries.iter().filter(|e| e.with_fd).count();
        if announced != fds.len() {
            return Err(TableError::Fds {
                announced,
                received: fds.len(),
            });
        }
        let mut fds = fds.into_iter();
        for entry in entries {
            let fd = if entry.with_fd { fds.next() } else { None };
            self.entries.push((entry, fd));
        }
        self.imported.extend(imported);
        Ok(())
    }
}

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Vault {
    entries: BTreeMap<AllocationKey, Entry>,
    imports: BTreeMap<ProcessId, BTreeSet<AllocationKey>>,
    /// Owners that have ended while somebody imported memory of theirs.
    gone: BTreeSet<ProcessId>,
    next_serial: u64,
}

impl Vault {
    /// Drops everything. Serial numbers go on: an entry made later is never taken for one of before.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.imports.clear();
        self.gone.clear();
    }

    /// Takes an allocation in, in place of an older one of the same key.
    pub fn insert(&mut self, allocation: Allocation, requested: u64, fd: OwnedFd) {
        self.next_serial += 1;
        self.entries.insert(
            allocation.key,
            Entry {
                allocation,
                requested,
                serial: self.next_serial,
                fd,
            },
        );
    }

    /// Takes in the complete table of `pid`: what it does not list is dropped unless somebody imports it.
    ///
    /// # Errors
    /// [`TableError`]; the vault is unchanged then.
    pub fn apply(&mut self, pid: ProcessId, table: Table) -> Result<(), TableError> {
        for (entry, fd) in &table.entries {
            let key = entry.allocation.key;
            if key.owner != pid {
                return Err(TableError::Owner {
                    pid,
                    owner: key.owner,
                });
            }
            if fd.is_none() && !self.entries.contains_key(&key) {
                return Err(TableError::NoFd(key));
            }
        }
        let listed: BTreeSet<AllocationKey> = table
            .entries
            .iter()
            .map(|(e, _)| e.allocation.key)
            .collect();
        self.imports.insert(pid, table.imported);
        self.gone.remove(&pid);
        for (entry, fd) in table.entries {
            match fd {
                Some(fd) => self.insert(entry.allocation, entry.requested, fd),
                None => {
                    if let Some(held) = self.entries.get_mut(&entry.allocation.key) {
                        held.requested = entry.requested;
                    }
                }
            }
        }
        let imported = self.all_imports();
        self.entries
            .retain(|key, _| key.owner != pid || listed.contains(key) || imported.contains(key));
        self.drop_orphans();
        Ok(())
    }

    /// Forgets a process: what it owned goes unless somebody imports it, what only it imported goes too.
    pub fn forget(&mut self, pid: ProcessId) {
        self.imports.remove(&pid);
        self.gone.insert(pid);
        self.drop_orphans();
    }

    /// Drops allocations that their owner freed, unless somebody imports them; returns those dropped.
    pub fn free(&mut self, pid: ProcessId, ids: &[AllocationId]) -> Vec<AllocationKey> {
        let imported = self.all_imports();
        ids.iter()
            .map(|&id| AllocationKey { owner: pid, id })
            .filter(|key| !imported.contains(key) && self.entries.remove(key).is_some())
            .collect()
    }

    fn all_imports(&self) -> BTreeSet<AllocationKey> {
        self.imports.values().flatten().copied().collect()
    }

    /// Drops entries of ended owners that nobody imports any more.
    fn drop_orphans(&mut self) {
        let imported = self.all_imports();
        self.entries
            .retain(|key, _| !self.gone.contains(&key.owner) || imported.contains(key));
        let owners: BTreeSet<ProcessId> = self.entries.keys().map(|k| k.owner).collect();
        self.gone.retain(|pid| owners.contains(pid));
    }

    /// Numbers of the allocations held for `pid`.
    pub fn held(&self, pid: ProcessId) -> Vec<AllocationId> {
        self.entries
            .keys()
            .filter(|k| k.owner == pid)
            .map(|k| k.id)
            .collect()
    }

    /// What `pid` needs to attach: its own allocations and those it imports.
    pub fn memory_of(&self, pid: ProcessId) -> Vec<&Entry> {
        let none = BTreeSet::new();
        let imported = self.imports.get(&pid).unwrap_or(&none);
        self.entries
            .iter()
            .filter(|(key, _)| key.owner == pid || imported.contains(key))
            .map(|(_, entry)| entry)
            .collect()
    }

    /// Imports of each process, for the image.
    pub fn imports(&self) -> &BTreeMap<ProcessId, BTreeSet<AllocationKey>> {
        &self.imports
    }

    /// Sets what `pid` imports (from an image).
    pub fn set_imports(&mut self, pid: ProcessId, keys: impl IntoIterator<Item = AllocationKey>) {
        self.imports.insert(pid, keys.into_iter().collect());
    }

    /// One entry.
    pub fn get(&self, key: &AllocationKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All entries in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The allocation whose open file description `fd` is, if any.
    pub fn identify(&self, fd: BorrowedFd<'_>) -> Option<Allocation> {
        self.entries
            .values()
            .find(|entry| same_description(entry.fd(), fd))
            .map(|entry| entry.allocation)
    }
}

/// Whether two fds of this process are one open file description.
fn same_description(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> bool {
    const KCMP_FILE: libc::c_int = 0;
    let pid = std::process::id();
    // SAFETY: kcmp takes five integers and touches no memory of ours.
    let result = unsafe {
        libc::syscall(
            libc::SYS_kcmp,
            pid,
            pid,
            KCMP_FILE,
            a.as_raw_fd() as libc::c_ulong,
            b.as_raw_fd() as libc::c_ulong,
        )
    };
    result == 0
}

#[cfg(test)]
mod tests {
    use phos_protocol::types::AllocationKind;
    use proptest::prelude::*;

    use super::*;

    fn memory() -> OwnedFd {
        rustix::fs::memfd_create("vault", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    fn entry(owner: ProcessId, id: AllocationId, with_fd: bool) -> TableEntry {
        TableEntry {
            allocation: Allocation {
                key: AllocationKey { owner, id },
                device: 0,
                bytes: 2 << 20,
                kind: AllocationKind::Plain,
                rdma: false,
            },
            requested: 100,
            with_fd,
        }
    }

    fn table(entries: Vec<TableEntry>, imported: Vec<AllocationKey>) -> Table {
        let fds = entries
            .iter()
            .filter(|e| e.with_fd)
            .map(|_| memory())
            .collect();
        let mut table = Table::default();
        table.add(entries, imported, fds).unwrap();
        table
    }

    #[test]
    fn what_a_newer_table_does_not_list_is_dropped() {
        let mut vault = Vault::default();
        vault
            .apply(1, table(vec![entry(1, 1, true), entry(1, 2, true)], vec![]))
            .unwrap();
        vault
            .apply(
                1,
                table(vec![entry(1, 2, false), entry(1, 3, true)], vec![]),
            )
            .unwrap();
        assert_eq!(vault.held(1), [2, 3]);
    }

    #[test]
    fn imported_memory_outlives_its_owner_and_not_its_importer() {
        let mut vault = Vault::default();
        let key = AllocationKey { owner: 1, id: 1 };
        vault
            .apply(1, table(vec![entry(1, 1, true), entry(1, 2, true)], vec![]))
            .unwrap();
        vault.apply(2, table(vec![], vec![key])).unwrap();
        vault.forget(1);
        assert_eq!(vault.held(1), [1]);
        assert_eq!(vault.memory_of(2).len(), 1);
        vault.apply(2, table(vec![], vec![])).unwrap();
        assert!(vault.is_empty());
        // The same, with the importer ending.
        vault
            .apply(1, table(vec![entry(1, 1, true)], vec![]))
            .unwrap();
        vault.apply(2, table(vec![], vec![key])).unwrap();
        vault.forget(1);
        vault.forget(2);
        assert!(vault.is_empty());
    }

    #[test]
    fn what_is_freed_goes_unless_somebody_imports_it() {
        let mut vault = Vault::default();
        let key = AllocationKey { owner: 1, id: 1 };
        vault
            .apply(1, table(vec![entry(1, 1, true), entry(1, 2, true)], vec![]))
            .unwrap();
        vault.apply(2, table(vec![], vec![key])).unwrap();
        assert_eq!(
            vault.free(1, &[1, 2, 3]),
            [AllocationKey { owner: 1, id: 2 }]
        );
        assert_eq!(vault.held(1), [1]);
    }

    #[test]
    fn a_bad_table_changes_nothing() {
        let mut vault = Vault::default();
        vault
            .apply(1, table(vec![entry(1, 1, true)], vec![]))
            .unwrap();
        let missing = vault.apply(1, table(vec![entry(1, 9, false)], vec![]));
        assert_eq!(
            missing,
            Err(TableError::NoFd(AllocationKey { owner: 1, id: 9 }))
        );
        assert!(matches!(
            vault.apply(1, table(vec![entry(2, 1, true)], vec![])),
            Err(TableError::Owner { pid: 1, owner: 2 })
        ));
        assert_eq!(vault.held(1), [1]);
        let mut short = Table::default();
        assert!(matches!(
            short.add(vec![entry(1, 1, true)], vec![], vec![]),
            Err(TableError::Fds {
                announced: 1,
                received: 0
            })
        ));
    }

    #[test]
    fn a_replaced_entry_has_another_serial() {
        let mut vault = Vault::default();
        let key = AllocationKey { owner: 1, id: 1 };
        vault
            .apply(1, table(vec![entry(1, 1, true)], vec![]))
            .unwrap();
        let first = vault.get(&key).unwrap().serial;
        vault
            .apply(1, table(vec![entry(1, 1, false)], vec![]))
            .unwrap();
        assert_eq!(vault.get(&key).unwrap().serial, first);
        vault
            .apply(1, table(vec![entry(1, 1, true)], vec![]))
            .unwrap();
        assert_ne!(vault.get(&key).unwrap().serial, first);
        vault.clear();
        vault
            .apply(1, table(vec![entry(1, 1, true)], vec![]))
            .unwrap();
        assert!(vault.get(&key).unwrap().serial > first + 1);
    }

    #[test]
    fn a_duplicate_is_recognised_and_a_stranger_is_not() {
        let mut vault = Vault::default();
        let fd = memory();
        let twin = fd.try_clone().unwrap();
        let allocation = entry(5, 7, false).allocation;
        vault.insert(allocation, 0, fd);
        assert_eq!(vault.identify(twin.as_fd()), Some(allocation));
        assert_eq!(vault.identify(memory().as_fd()), None);
    }

    proptest! {
        #[test]
        fn after_a_table_exactly_its_entries_are_held(
            first in proptest::collection::btree_set(0_u64..30, 0..20),
            second in proptest::collection::btree_set(0_u64..30, 0..20),
        ) {
            let mut vault = Vault::default();
            vault.apply(1, table(first.iter().map(|&id| entry(1, id, true)).collect(), vec![])).unwrap();
            let next = second.iter().map(|&id| entry(1, id, !first.contains(&id))).collect();
            vault.apply(1, table(next, vec![])).unwrap();
            prop_assert_eq!(vault.held(1), second.into_iter().collect::<Vec<_>>());
        }
    }
}
