//! How multicast objects are made anew when every process has its memory back: who is to do what, in which order. Pure.
//!
//! ```text
//! Remake   one process for each object      ─▶ its descriptor
//! Join     all that have the object          ─▶ all of its devices are added
//! Bind     the same                          ─▶ as it was
//! ```
//!
//! Each round is over for all before the next begins: the driver has whoever binds wait until every device was added, and a process that
//! waits there answers nothing.
//!
//! An object is made by the process that made it first, or by any that has it if that one has let go of it. An object of which not all devices
//! are there cannot be made anew, as whoever binds would wait for them: because it is only being made, because a process has let go of it before
//! the others, or has ended. That is found out before anything is taken apart ([`Rejoin::check`]); if a process ends after that, the job is
//! lost.

use std::collections::{BTreeMap, BTreeSet};

use phos_protocol::shim::HeldMulticast;
use phos_protocol::types::{AllocationKey, AllocationKind, ProcessId};

/// What a process is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// To make an object anew.
    Remake {
        /// The process.
        pid: ProcessId,
        /// The object.
        key: AllocationKey,
    },
    /// To import these objects, which others have made, and to add its devices to all that it has.
    Join {
        /// The process.
        pid: ProcessId,
        /// The objects.
        keys: Vec<AllocationKey>,
    },
    /// To bind and map.
    Bind {
        /// The process.
        pid: ProcessId,
    },
}

/// What a process has done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// It has made an object.
    Remade(AllocationKey),
    /// It has joined.
    Joined,
    /// It has bound and mapped.
    Bound,
}

/// What is waited for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Round {
    /// The processes still attach.
    #[default]
    Before,
    /// These objects, each of the process that makes it.
    Remaking(BTreeMap<AllocationKey, ProcessId>),
    /// These processes.
    Joining(BTreeSet<ProcessId>),
    /// These processes.
    Binding(BTreeSet<ProcessId>),
    /// Nothing.
    Over,
}

/// See the module's documentation.
#[derive(Debug, Clone, Default)]
pub struct Rejoin {
    /// What each process has.
    held: BTreeMap<ProcessId, BTreeMap<AllocationKey, HeldMulticast>>,
    round: Round,
    /// Who makes which object.
    makers: BTreeMap<AllocationKey, ProcessId>,
}

impl Rejoin {
    /// A process says what it has, maybe once more.
    pub fn report(&mut self, pid: ProcessId, held: &[HeldMulticast]) {
        let known = self.held.entry(pid).or_default();
        known.extend(held.iter().map(|one| (one.object.key, *one)));
    }

    /// A process has ended. The others cannot be brought back if it had something that they have.
    pub fn forget(&mut self, pid: ProcessId) {
        self.held.remove(&pid);
    }

    /// Whether a process has any.
    pub fn has(&self, pid: ProcessId) -> bool {
        self.held.contains_key(&pid)
    }

    /// Whether there is anything to do.
    pub fn is_needed(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether that is done.
    pub fn is_over(&self) -> bool {
        self.round == Round::Over
    }

    fn holders(&self, key: &AllocationKey) -> Vec<(ProcessId, HeldMulticast)> {
        self.held
            .iter()
            .filter_map(|(&pid, held)| Some((pid, *held.get(key)?)))
            .collect()
    }

    fn keys(&self) -> BTreeSet<AllocationKey> {
        let held = self.held.values();
        held.flat_map(|held| held.keys().copied()).collect()
    }

    /// Whether all objects could be made anew.
    ///
    /// # Errors
    /// Why not, in words.
    pub fn check(&self) -> Result<(), String> {
        for key in self.keys() {
            let holders = self.holders(&key);
            let kind = holders.first().map(|(_, one)| one.object.kind);
            let Some(AllocationKind::Multicast { devices }) = kind else {
                return Err("a process says that it has one that is none".to_owned());
            };
            if holders.iter().any(|(_, one)| Some(one.object.kind) != kind) {
                return Err("processes do not agree on how many GPUs it has".to_owned());
            }
            let added: u64 = holders.iter().map(|(_, one)| u64::from(one.added)).sum();
            if added != u64::from(devices) {
                return Err(format!(
                    "of the {devices} GPUs of a multicast object, {added} take part: it is being made, or a process has let go of it \
                     before the others, or has ended"
                ));
            }
        }
        Ok(())
    }

    /// Whether this process is to make that object.
    pub fn is_maker(&self, pid: ProcessId, key: &AllocationKey) -> bool {
        matches!(&self.round, Round::Remaking(left) if left.get(key) == Some(&pid))
    }

    /// Every process has attached: what is to be done first.
    ///
    /// # Errors
    /// As [`Rejoin::check`].
    pub fn start(&mut self) -> Result<Vec<Asked>, String> {
        self.check()?;
        for key in self.keys() {
            let holders = self.holders(&key);
            let owner = holders.iter().find(|(pid, _)| *pid == key.owner.process);
            if let Some((maker, _)) = owner.or(holders.first()) {
                self.makers.insert(key, *maker);
            }
        }
        self.round = Round::Remaking(self.makers.clone());
        let asked = self.makers.iter();
        Ok(asked
            .map(|(&key, &pid)| Asked::Remake { pid, key })
            .collect())
    }

    /// A process has done what it was asked; what is to be done next. What nobody was asked changes nothing.
    pub fn done(&mut self, pid: ProcessId, done: Done) -> Vec<Asked> {
        let all: BTreeSet<ProcessId> = self.held.keys().copied().collect();
        match (&mut self.round, done) {
            (Round::Remaking(left), Done::Remade(key)) => {
                if left.get(&key) == Some(&pid) {
                    left.remove(&key);
                }
                if !left.is_empty() {
                    return Vec::new();
                }
                let asked = self.held.iter().map(|(&pid, held)| Asked::Join {
                    pid,
                    keys: (held.keys().copied())
                        .filter(|key| self.makers.get(key) != Some(&pid))
                        .collect(),
                });
                let asked = asked.collect();
                self.round = Round::Joining(all);
                asked
            }
            (Round::Joining(left), Done::Joined) => {
                left.remove(&pid);
                if !left.is_empty() {
                    return Vec::new();
                }
                let asked = all.iter().map(|&pid| Asked::Bind { pid }).collect();
                self.round = Round::Binding(all);
                asked
            }
            (Round::Binding(left), Done::Bound) => {
                left.remove(&pid);
                if left.is_empty() {
                    self.round = Round::Over;
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use phos_protocol::types::{Allocation, MemberId};
    use proptest::prelude::*;

    use super::*;

    fn held(owner: ProcessId, id: u64, devices: u32, added: u32) -> HeldMulticast {
        HeldMulticast {
            object: Allocation {
                key: AllocationKey {
                    owner: MemberId::here(owner),
                    id,
                },
                device: 0,
                bytes: 2 << 20,
                kind: AllocationKind::Multicast { devices },
                rdma: false,
            },
            added,
        }
    }

    /// What the processes have done, as the driver sees it.
    #[derive(Default)]
    struct Driver {
        made: BTreeSet<AllocationKey>,
        joined: BTreeSet<ProcessId>,
        bound: BTreeSet<ProcessId>,
    }

    proptest! {
        /// Objects of one or several processes, in any order of answers: each is made once, by one that has it, and has all of its
        /// devices before anybody binds.
        #[test]
        fn every_round_is_over_before_the_next(
            groups in prop::collection::vec(prop::collection::btree_set(1..9_u32, 1..6), 1..6),
            owner_is_there in any::<bool>(),
            order in prop::collection::vec(any::<prop::sample::Index>(), 200),
        ) {
            let mut rejoin = Rejoin::default();
            prop_assert!(!rejoin.is_needed());
            let mut holders: BTreeMap<AllocationKey, BTreeSet<ProcessId>> = BTreeMap::new();
            for (id, group) in (0_u64..).zip(&groups) {
                let first = *group.first().unwrap();
                let owner = if owner_is_there { first } else { 99 };
                for &pid in group {
                    let one = held(owner, id, group.len() as u32, 1);
                    // Twice, as by one that has lost its connection.
                    rejoin.report(pid, &[one]);
                    rejoin.report(pid, &[one]);
                    holders.entry(one.object.key).or_default().insert(pid);
                }
            }
            let all: BTreeSet<ProcessId> = groups.iter().flatten().copied().collect();
            let mut driver = Driver::default();
            let mut waiting = rejoin.start().unwrap();
            let mut order = order.into_iter();
            while !waiting.is_empty() {
                let asked = waiting.swap_remove(order.next().unwrap().index(waiting.len()));
                // What nobody was asked.
                for done in [Done::Joined, Done::Bound] {
                    prop_assert!(rejoin.done(77, done).is_empty());
                }
                let more = match asked {
                    Asked::Remake { pid, key } => {
                        prop_assert!(holders[&key].contains(&pid));
                        prop_assert!(!owner_is_there || pid == key.owner.process);
                        prop_assert!(rejoin.is_maker(pid, &key) && !rejoin.is_maker(77, &key));
                        prop_assert!(driver.made.insert(key));
                        rejoin.done(pid, Done::Remade(key))
                    }
                    Asked::Join { pid, keys } => {
                        prop_assert_eq!(driver.made.len(), groups.len());
                        for (key, holders) in &holders {
                            let made_here = rejoin.makers[key] == pid;
                            prop_assert_eq!(keys.contains(key), holders.contains(&pid) && !made_here);
                        }
                        prop_assert!(driver.joined.insert(pid));
                        rejoin.done(pid, Done::Joined)
                    }
                    Asked::Bind { pid } => {
                        prop_assert_eq!(&driver.joined, &all);
                        prop_assert!(driver.bound.insert(pid));
                        rejoin.done(pid, Done::Bound)
                    }
                };
                prop_assert!(!rejoin.is_over() || more.is_empty());
                waiting.extend(more);
            }
            prop_assert!(rejoin.is_over());
            prop_assert_eq!(driver.bound, all);
        }
    }

    #[test]
    fn an_object_whose_devices_are_not_all_there_cannot_be_made_anew() {
        let mut rejoin = Rejoin::default();
        for pid in [1, 2, 3] {
            assert!(rejoin.check().is_ok() == (pid == 1), "{pid}");
            rejoin.report(pid, &[held(1, 5, 3, 1)]);
        }
        assert_eq!(rejoin.check(), Ok(()));
        rejoin.forget(2);
        let why = rejoin.start().unwrap_err();
        assert!(
            why.contains("3 GPUs") && why.contains("2 take part"),
            "{why}"
        );
        // What no shim says.
        for nonsense in [held(1, 5, 3, u32::MAX), held(1, 5, 4, 1)] {
            let mut rejoin = rejoin.clone();
            rejoin.report(2, &[nonsense]);
            assert!(rejoin.check().is_err(), "{nonsense:?}");
        }
    }
}
