//! The vault: one fd for every live allocation of the job.
//!
//! Device memory lives as long as anyone holds its fd, and between detach and attach no process of the job does.
//!
//! # Rules
//!
//! * An entry is made by a complete table of its owner, by `Share`, or by a restore. It goes when its owner has freed it (by
//!   `Freed`, or its newer complete table does not list it) or ended, **and** no live process imports it.
//! * A process imports what its last complete table says and what it was told or given since, less what it let go since. What it was
//!   told just before a table need not be in that: the thread that asked may have been held back meanwhile, so it counts until the next.
//! * A table names no memory of others except what its process was told or given at any time: otherwise a process would be given
//!   any memory that it asks for. Letting go does not end that, since another thread may have been told of the same memory
//!   before.
//! * A handle opens what its owner has shared.
//! * A part of a table changes nothing: [`Vault::apply`] takes it whole.
//! * Every entry has a serial number, so that a key used again (a PID used twice) is not taken for the entry
//!   that a sidecar was sent before.

mod descriptions;
pub mod multicast;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use phos_protocol::shim::TableEntry;
use phos_protocol::types::{Allocation, AllocationId, AllocationKey, MemberId, ProcessId};

use crate::vault::descriptions::Descriptions;

/// An allocation and the fd that keeps it alive.
#[derive(Debug)]
pub struct Entry {
    /// The allocation that the fd keeps alive.
    pub allocation: Allocation,
    /// The number of bytes that the application asked for.
    pub requested: u64,
    /// Distinguishes entries that had the same key one after the other.
    pub serial: u64,
    fd: Arc<OwnedFd>,
}

impl Entry {
    /// The fd that keeps the allocation alive.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The fd, for a message that may have to wait.
    pub fn shared(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }
}

/// A whole table of one process, as it came in batches.
#[derive(Debug, Default)]
pub struct Table {
    entries: Vec<(TableEntry, Option<OwnedFd>)>,
    imported: BTreeSet<AllocationKey>,
}

/// Why a process's table cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// A packet with another number of fds than its entries announce.
    #[error("a table of the shim announces {announced} fds and brought {received}")]
    Fds {
        /// The number of fds that the entries announce.
        announced: usize,
        /// The number of fds that were beside the packet.
        received: usize,
    },
    /// No fd, and none from before.
    #[error("process {} lists its allocation {} without an fd, and the agent has none", .0.owner, .0.id)]
    NoFd(AllocationKey),
    /// An allocation of somebody else.
    #[error("process {pid} lists an allocation of process {owner} as its own")]
    Owner {
        /// The process that sent the table.
        pid: ProcessId,
        /// The owner that the entry names.
        owner: ProcessId,
    },
    /// More than a job has.
    #[error("a table of the shim has more than {MOST} allocations")]
    Long,
    /// Memory of somebody else that it was not given.
    #[error(
        "process {pid} lists allocation {} of process {} as imported, and was never given it: it cannot be its memory",
        .key.id, .key.owner
    )]
    NotGiven {
        /// The process that sent the table.
        pid: ProcessId,
        /// The key of the allocation that the table names.
        key: AllocationKey,
    },
}

/// Allocations and imports in one table, at most: ten times what was ever seen.
const MOST: usize = 1 << 20;

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
        if self.entries.len() + entries.len() > MOST || self.imported.len() + imported.len() > MOST
        {
            return Err(TableError::Long);
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
    /// What each was told or given since its last table.
    news: BTreeMap<ProcessId, BTreeSet<AllocationKey>>,
    /// What each was ever told or given, of owners that live.
    given: BTreeMap<ProcessId, BTreeSet<AllocationKey>>,
    /// The allocations whose owners have given out handles of them.
    shared: BTreeSet<AllocationKey>,
    /// Owners that have ended while somebody imported memory of theirs.
    gone: BTreeSet<ProcessId>,
    /// Allocations that their owner has freed while somebody imported them.
    freed: BTreeSet<AllocationKey>,
    descriptions: Descriptions,
    next_serial: u64,
}

impl Vault {
    /// Drops everything. Serial numbers continue: an entry made later is never taken for an earlier one.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.imports.clear();
        self.news.clear();
        self.given.clear();
        self.shared.clear();
        self.gone.clear();
        self.freed.clear();
        self.descriptions = Descriptions::default();
    }

    /// Takes an allocation in, in place of an older one of the same key.
    pub fn insert(&mut self, allocation: Allocation, requested: u64, fd: OwnedFd) {
        self.next_serial += 1;
        let fd = Arc::new(fd);
        self.freed.remove(&allocation.key);
        self.descriptions.add(allocation.key, &fd);
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
            if key.owner != MemberId::here(pid) {
                return Err(TableError::Owner {
                    pid,
                    owner: key.owner.process,
                });
            }
            if fd.is_none() && !self.entries.contains_key(&key) {
                return Err(TableError::NoFd(key));
            }
        }
        let none = BTreeSet::new();
        let given = self.given.get(&pid).unwrap_or(&none);
        if let Some(&key) = table.imported.difference(given).next() {
            return Err(TableError::NotGiven { pid, key });
        }
        let listed: BTreeSet<AllocationKey> = table
            .entries
            .iter()
            .map(|(e, _)| e.allocation.key)
            .collect();
        let mut imported = table.imported;
        imported.extend(self.news.remove(&pid).unwrap_or_default());
        self.imports.insert(pid, imported);
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
        let unlisted: Vec<AllocationKey> = self
            .owned(pid)
            .filter(|key| !listed.contains(key))
            .collect();
        for key in unlisted {
            if imported.contains(&key) {
                self.freed.insert(key);
            } else {
                self.entries.remove(&key);
            }
        }
        self.drop_orphans();
        Ok(())
    }

    /// Takes in what came of a table that was not completed, or whose attempt is over: its process counts on it that what
    /// it sent is held, and does not send it again.
    pub fn keep(&mut self, pid: ProcessId, table: Table) {
        for (entry, fd) in table.entries {
            if let Some(fd) = fd
                && entry.allocation.key.owner == MemberId::here(pid)
            {
                self.insert(entry.allocation, entry.requested, fd);
            }
        }
    }

    /// Keys of the entries that `pid` owns or owned.
    fn owned(&self, pid: ProcessId) -> impl Iterator<Item = AllocationKey> {
        let key = |id| AllocationKey {
            owner: MemberId::here(pid),
            id,
        };
        self.entries
            .range(key(0)..=key(AllocationId::MAX))
            .map(|(&key, _)| key)
    }

    /// `pid` was given that allocation, or told that a descriptor of its is it: it counts as imported, and so outlives a free by its
    /// owner, until its next table but one.
    pub fn note_import(&mut self, pid: ProcessId, key: AllocationKey) {
        if key.owner != MemberId::here(pid) && self.entries.contains_key(&key) {
            for noted in [&mut self.imports, &mut self.news, &mut self.given] {
                noted.entry(pid).or_default().insert(key);
            }
        }
    }

    /// The owner of an allocation gives handles of it to others.
    pub fn note_shared(&mut self, key: AllocationKey) {
        if self.entries.contains_key(&key) {
            self.shared.insert(key);
        }
    }

    /// Whether handles of it were given out.
    pub fn is_shared(&self, key: &AllocationKey) -> bool {
        self.shared.contains(key)
    }

    /// `pid` has let go of memory of others; returns what nobody has any more and was dropped.
    pub fn let_go(&mut self, pid: ProcessId, keys: &[AllocationKey]) -> Vec<AllocationKey> {
        if let Some(news) = self.news.get_mut(&pid) {
            news.retain(|key| !keys.contains(key));
        }
        let Some(imports) = self.imports.get_mut(&pid) else {
            return Vec::new();
        };
        let gone: Vec<AllocationKey> = keys.iter().copied().filter(|k| imports.remove(k)).collect();
        gone.into_iter()
            .filter(|key| {
                let unowned = self.freed.contains(key) || self.gone.contains(&key.owner.process);
                let dropped = unowned && !self.is_imported(key);
                if dropped {
                    self.freed.remove(key);
                    self.shared.remove(key);
                }
                dropped && self.entries.remove(key).is_some()
            })
            .collect()
    }

    /// A process and memory of another that it imports and nobody could give back to it.
    pub fn missing_import(&self) -> Option<(ProcessId, AllocationKey)> {
        self.imports.iter().find_map(|(&pid, keys)| {
            let missing = keys.iter().find(|key| !self.entries.contains_key(key))?;
            Some((pid, *missing))
        })
    }

    /// Forgets a process: what it owned goes unless somebody imports it, what only it imported goes too.
    pub fn forget(&mut self, pid: ProcessId) {
        for noted in [&mut self.imports, &mut self.news, &mut self.given] {
            noted.remove(&pid);
        }
        self.gone.insert(pid);
        self.drop_orphans();
        // The number of a process is used again, and those of its allocations are.
        for keys in self.given.values_mut() {
            keys.retain(|key| key.owner != MemberId::here(pid) || self.entries.contains_key(key));
        }
    }

    /// Drops allocations that their owner freed, unless somebody imports them; returns those dropped.
    pub fn free(&mut self, pid: ProcessId, ids: &[AllocationId]) -> Vec<AllocationKey> {
        let mut dropped = Vec::new();
        for &id in ids {
            let key = AllocationKey {
                owner: MemberId::here(pid),
                id,
            };
            if self.is_imported(&key) {
                self.freed.insert(key);
            } else if self.entries.remove(&key).is_some() {
                self.shared.remove(&key);
                dropped.push(key);
            }
        }
        dropped
    }

    fn is_imported(&self, key: &AllocationKey) -> bool {
        self.imports.values().any(|keys| keys.contains(key))
    }

    fn all_imports(&self) -> BTreeSet<AllocationKey> {
        self.imports.values().flatten().copied().collect()
    }

    /// Drops entries of ended owners that nobody imports any more.
    fn drop_orphans(&mut self) {
        let imported = self.all_imports();
        self.entries.retain(|key, _| {
            let unowned = self.gone.contains(&key.owner.process) || self.freed.contains(key);
            !unowned || imported.contains(key)
        });
        self.freed.retain(|key| self.entries.contains_key(key));
        self.shared.retain(|key| self.entries.contains_key(key));
        let owners: BTreeSet<ProcessId> = self.entries.keys().map(|k| k.owner.process).collect();
        self.gone.retain(|pid| owners.contains(pid));
    }

    /// Numbers of the allocations held for `pid`.
    pub fn held(&self, pid: ProcessId) -> Vec<AllocationId> {
        self.owned(pid).map(|key| key.id).collect()
    }

    /// What `pid` needs to attach: its own allocations and those it imports.
    pub fn memory_of(&self, pid: ProcessId) -> Vec<&Entry> {
        let none = BTreeSet::new();
        let imported = self.imports.get(&pid).unwrap_or(&none);
        self.entries
            .iter()
            .filter(|(key, _)| key.owner == MemberId::here(pid) || imported.contains(key))
            .map(|(_, entry)| entry)
            .collect()
    }

    /// Imports of each process, for the image.
    pub fn imports(&self) -> &BTreeMap<ProcessId, BTreeSet<AllocationKey>> {
        &self.imports
    }

    /// Sets what `pid` imports (from an image).
    pub fn set_imports(&mut self, pid: ProcessId, keys: impl IntoIterator<Item = AllocationKey>) {
        let keys: BTreeSet<AllocationKey> = keys.into_iter().collect();
        self.given.insert(pid, keys.clone());
        self.imports.insert(pid, keys);
    }

    /// The entry of an allocation, if the vault has it.
    pub fn get(&self, key: &AllocationKey) -> Option<&Entry> {
        self.entries.get(key)
    }

    /// All entries of the vault, in the order of their keys.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// Whether the vault holds no allocation.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The allocation whose open file description `fd` is, if any.
    pub fn identify(&mut self, fd: BorrowedFd<'_>) -> Option<Allocation> {
        let key = self.descriptions.find(fd)?;
        self.entries.get(&key).map(|entry| entry.allocation)
    }
}

#[cfg(test)]
mod tests {
    use phos_protocol::types::AllocationKind;
    use proptest::prelude::*;

    use super::*;

    fn memory() -> OwnedFd {
        rustix::fs::memfd_create("vault", rustix::fs::MemfdFlags::CLOEXEC).unwrap()
    }

    /// Memory that comes with its descriptor.
    fn brought(owner: ProcessId, id: AllocationId) -> TableEntry {
        TableEntry {
            with_fd: true,
            ..known(owner, id)
        }
    }

    /// Memory that the vault has already.
    fn known(owner: ProcessId, id: AllocationId) -> TableEntry {
        TableEntry {
            allocation: Allocation {
                key: AllocationKey {
                    owner: MemberId::here(owner),
                    id,
                },
                device: 0,
                bytes: 2 << 20,
                kind: AllocationKind::Plain,
                rdma: false,
            },
            requested: 100,
            with_fd: false,
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
            .apply(1, table(vec![brought(1, 1), brought(1, 2)], vec![]))
            .unwrap();
        vault
            .apply(1, table(vec![known(1, 2), brought(1, 3)], vec![]))
            .unwrap();
        assert_eq!(vault.held(1), [2, 3]);
    }

    #[test]
    fn a_table_names_no_memory_that_its_process_was_not_given() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        let claimed = vault.apply(2, table(vec![], vec![key]));
        assert_eq!(claimed, Err(TableError::NotGiven { pid: 2, key }));
        assert!(vault.memory_of(2).is_empty());
        vault.note_import(2, key);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        assert_eq!(vault.memory_of(2).len(), 1);
        let other = vault.apply(3, table(vec![], vec![key]));
        assert_eq!(other, Err(TableError::NotGiven { pid: 3, key }));
        // What a process of that number was given is not its successor's.
        vault.forget(2);
        let claimed = vault.apply(2, table(vec![], vec![key]));
        assert_eq!(claimed, Err(TableError::NotGiven { pid: 2, key }));
    }

    #[test]
    fn what_a_thread_was_told_counts_whatever_others_do_meanwhile() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        // It was told, and was held back until the table had gone: its memory is there when it goes on, and in the next table.
        vault.note_import(2, key);
        vault.apply(2, table(vec![], vec![])).unwrap();
        assert_eq!(vault.free(1, &[1]), []);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        assert_eq!(vault.memory_of(2).len(), 1);
        // Another thread lets go of the same memory before the one that was told has it.
        vault.note_import(2, key);
        vault.note_import(3, key);
        vault.let_go(2, &[key]);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        assert_eq!(vault.memory_of(2).len(), 1);
        // It never came to it: then not for ever.
        vault.note_import(4, key);
        for _ in 0..2 {
            assert!(vault.imports().contains_key(&4));
            vault.apply(4, table(vec![], vec![])).unwrap();
        }
        assert!(vault.memory_of(4).is_empty());
    }

    #[test]
    fn what_was_shared_is_known_as_long_as_it_is_there() {
        let mut vault = Vault::default();
        let [key, other] = [1, 2].map(|id| AllocationKey {
            owner: MemberId::here(1),
            id,
        });
        vault.note_shared(key);
        assert!(!vault.is_shared(&key), "nobody has it");
        vault
            .apply(1, table(vec![brought(1, 1), brought(1, 2)], vec![]))
            .unwrap();
        vault.note_shared(key);
        assert!(vault.is_shared(&key) && !vault.is_shared(&other));
        vault.apply(1, table(vec![], vec![])).unwrap();
        assert!(!vault.is_shared(&key));
    }

    #[test]
    fn imported_memory_outlives_its_owner_and_not_its_importer() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        vault
            .apply(1, table(vec![brought(1, 1), brought(1, 2)], vec![]))
            .unwrap();
        vault.note_import(2, key);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        vault.forget(1);
        assert_eq!(vault.held(1), [1]);
        assert_eq!(vault.memory_of(2).len(), 1);
        vault.apply(2, table(vec![], vec![])).unwrap();
        assert!(vault.is_empty());
        // The same, with the importer ending.
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        vault.note_import(2, key);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        vault.forget(1);
        vault.forget(2);
        assert!(vault.is_empty());
    }

    #[test]
    fn what_is_freed_goes_unless_somebody_imports_it() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        vault
            .apply(1, table(vec![brought(1, 1), brought(1, 2)], vec![]))
            .unwrap();
        vault.note_import(2, key);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        assert_eq!(
            vault.free(1, &[1, 2, 3]),
            [AllocationKey {
                owner: MemberId::here(1),
                id: 2
            }]
        );
        assert_eq!(vault.held(1), [1]);
    }

    #[test]
    fn what_came_of_an_attempt_that_failed_is_held() {
        let mut vault = Vault::default();
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        // Not complete: what it does not list stays, what is somebody else's is not taken.
        vault.keep(1, table(vec![brought(1, 2), brought(2, 1)], vec![]));
        assert_eq!(vault.held(1), [1, 2]);
        assert!(vault.held(2).is_empty());
        // The process counts on it.
        vault.apply(1, table(vec![known(1, 2)], vec![])).unwrap();
        assert_eq!(vault.held(1), [2]);
    }

    #[test]
    fn what_was_given_to_another_process_lives_until_that_lets_go() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        let kept = AllocationKey {
            owner: MemberId::here(1),
            id: 2,
        };
        vault
            .apply(1, table(vec![brought(1, 1), brought(1, 2)], vec![]))
            .unwrap();
        vault.note_import(2, key);
        vault.note_import(2, kept);
        // Before any table of the importer.
        assert_eq!(vault.free(1, &[1]), []);
        assert_eq!(vault.let_go(2, &[key, kept]), [key], "2 is its owner's");
        assert_eq!(vault.let_go(2, &[key]), []);
        assert_eq!(vault.held(1), [2]);
        // The same, with the free said by the owner's table.
        vault.note_import(2, kept);
        vault.apply(1, table(vec![], vec![])).unwrap();
        assert_eq!(vault.held(1), [2]);
        assert_eq!(vault.let_go(2, &[kept]), [kept]);
        assert!(vault.is_empty() && vault.missing_import().is_none());
    }

    #[test]
    fn an_import_that_nobody_could_give_back_is_found() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        // As an image says it.
        vault.set_imports(2, [key]);
        vault.apply(2, table(vec![], vec![key])).unwrap();
        assert_eq!(vault.missing_import(), Some((2, key)));
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        assert_eq!(vault.missing_import(), None);
    }

    #[test]
    fn a_bad_table_changes_nothing() {
        let mut vault = Vault::default();
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        let missing = vault.apply(1, table(vec![known(1, 9)], vec![]));
        assert_eq!(
            missing,
            Err(TableError::NoFd(AllocationKey {
                owner: MemberId::here(1),
                id: 9
            }))
        );
        assert!(matches!(
            vault.apply(1, table(vec![brought(2, 1)], vec![])),
            Err(TableError::Owner { pid: 1, owner: 2 })
        ));
        assert_eq!(vault.held(1), [1]);
        let mut short = Table::default();
        assert!(matches!(
            short.add(vec![brought(1, 1)], vec![], vec![]),
            Err(TableError::Fds {
                announced: 1,
                received: 0
            })
        ));
    }

    #[test]
    fn a_replaced_entry_has_another_serial() {
        let mut vault = Vault::default();
        let key = AllocationKey {
            owner: MemberId::here(1),
            id: 1,
        };
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        let first = vault.get(&key).unwrap().serial;
        vault.apply(1, table(vec![known(1, 1)], vec![])).unwrap();
        assert_eq!(vault.get(&key).unwrap().serial, first);
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        assert_ne!(vault.get(&key).unwrap().serial, first);
        vault.clear();
        vault.apply(1, table(vec![brought(1, 1)], vec![])).unwrap();
        assert!(vault.get(&key).unwrap().serial > first + 1);
    }

    #[test]
    fn a_duplicate_is_recognised_and_a_stranger_is_not() {
        let mut vault = Vault::default();
        let fd = memory();
        let twin = fd.try_clone().unwrap();
        let allocation = known(5, 7).allocation;
        vault.insert(allocation, 0, fd);
        assert_eq!(vault.identify(twin.as_fd()), Some(allocation));
        assert_eq!(vault.identify(memory().as_fd()), None);
        // Among many, in whatever order they come and go.
        for id in 100..400 {
            vault.insert(known(5, id).allocation, 0, memory());
            if id % 3 == 0 {
                assert_eq!(vault.identify(twin.as_fd()), Some(allocation));
                vault.free(5, &[id - 1]);
            }
        }
        assert_eq!(vault.identify(twin.as_fd()), Some(allocation));
        assert_eq!(vault.identify(memory().as_fd()), None);
        // What is no longer held is nobody's, though its descriptor is still open.
        vault.free(5, &[7]);
        assert_eq!(vault.identify(twin.as_fd()), None);
    }

    proptest! {
        #[test]
        fn after_a_table_exactly_its_entries_are_held(
            first in proptest::collection::btree_set(0_u64..30, 0..20),
            second in proptest::collection::btree_set(0_u64..30, 0..20),
        ) {
            let mut vault = Vault::default();
            vault.apply(1, table(first.iter().map(|&id| brought(1, id)).collect(), vec![])).unwrap();
            let next = second.iter().map(|&id| if first.contains(&id) { known(1, id) } else { brought(1, id) }).collect();
            vault.apply(1, table(next, vec![])).unwrap();
            prop_assert_eq!(vault.held(1), second.into_iter().collect::<Vec<_>>());
        }
    }
}
