//! The communicators of this process. Each has a number that is the same on all of its ranks: made of the unique identifier that they
//! were given, or of the parent's number and how many were made of that before.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use phos_protocol::shim::Counted;

use crate::sync::lock;

/// A communicator's handle.
pub type Handle = usize;

/// What one rank of a communicator, in this process, has done.
#[derive(Debug, Clone)]
pub struct Communicator {
    /// The same on all ranks.
    pub number: u64,
    /// Not known before the first call, where the communicator was made in the background.
    pub rank: Option<u32>,
    pub collectives: u64,
    /// By peer.
    pub sent: BTreeMap<u32, u64>,
    pub received: BTreeMap<u32, u64>,
    /// How many communicators were made of this one.
    children: u64,
}

/// The communicators, by handle.
#[derive(Debug, Default)]
pub struct Communicators(BTreeMap<Handle, Communicator>);

static ALL: Mutex<Communicators> = Mutex::new(Communicators(BTreeMap::new()));

/// Works with the communicators that there are.
pub fn with<R>(work: impl FnOnce(&mut Communicators) -> R) -> R {
    work(&mut lock(&ALL))
}

fn number(of: impl Hash) -> u64 {
    // Its keys are constants: the same everywhere, and all ranks have the same library.
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The number of a communicator that is made with a unique identifier.
pub fn by_identifier(identifier: &[u8]) -> u64 {
    number(("identifier", identifier))
}

/// The number of a communicator of all devices of this process, which no other process takes part in.
pub fn of_this_process(instance: u64) -> u64 {
    static MADE: AtomicU64 = AtomicU64::new(0);
    number(("process", instance, MADE.fetch_add(1, Ordering::Relaxed)))
}

impl Communicators {
    /// A new one, which nothing was done with yet.
    pub fn add(&mut self, handle: Handle, number: u64, rank: Option<u32>) {
        let new = Communicator {
            number,
            rank,
            collectives: 0,
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            children: 0,
        };
        self.0.insert(handle, new);
    }

    pub fn remove(&mut self, handle: Handle) {
        self.0.remove(&handle);
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Communicator> {
        self.0.values()
    }

    /// The number of one that all ranks of a parent make of it, those with the same `which` together.
    pub fn child(&mut self, parent: Handle, which: i32) -> Option<u64> {
        let parent = self.0.get_mut(&parent)?;
        parent.children += 1;
        Some(number(("child", parent.number, parent.children, which)))
    }

    /// Whether the rank of a communicator is to be found out.
    pub fn has_no_rank(&self, handle: Handle) -> bool {
        self.0.get(&handle).is_some_and(|of| of.rank.is_none())
    }

    pub fn set_rank(&mut self, handle: Handle, rank: Option<u32>) {
        if let Some(of) = self.0.get_mut(&handle) {
            of.rank = rank;
        }
    }

    fn counter(&mut self, handle: Handle, what: Counted) -> Option<&mut u64> {
        let communicator = self.0.get_mut(&handle)?;
        Some(match what {
            Counted::Collectives => &mut communicator.collectives,
            Counted::Sent(to) => communicator.sent.entry(to).or_insert(0),
            Counted::Received(from) => communicator.received.entry(from).or_insert(0),
        })
    }

    /// Counts what is issued. One that is not known is not counted.
    pub fn count(&mut self, handle: Handle, what: Counted, times: u64) {
        if let Some(count) = self.counter(handle, what) {
            *count += times;
        }
    }

    /// So many of what was counted were not issued.
    pub fn take_back(&mut self, handle: Handle, what: Counted, times: u64) {
        if let Some(count) = self.counter(handle, what) {
            *count = count.saturating_sub(times);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_on_numbers_without_asking_each_other() {
        let mut ranks = [0, 1].map(|rank| {
            let mut all = Communicators::default();
            all.add(7 + rank, by_identifier(&[3; 128]), u32::try_from(rank).ok());
            all
        });
        let children =
            |all: &mut Communicators, parent| [0, 0, 1].map(|color| all.child(parent, color));
        let of = [children(&mut ranks[0], 7), children(&mut ranks[1], 8)];
        assert_eq!(of[0], of[1]);
        let distinct: std::collections::BTreeSet<_> = of[0].iter().collect();
        assert_eq!(distinct.len(), 3);
        assert_ne!(by_identifier(&[3; 128]), by_identifier(&[4; 128]));
        assert_eq!(ranks[0].child(99, 0), None);
        assert_ne!(of_this_process(5), of_this_process(5));
    }
}
