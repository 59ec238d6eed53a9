//! Finds the allocation that an open file description stands for: looked up in the kernel's order of descriptions, not compared
//! with each.
//!
//! Nothing is compared before somebody asks: a job that shares no memory pays nothing.

use std::cmp::Ordering;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Weak};

use phos_protocol::types::AllocationKey;

/// An allocation's descriptor, as long as the vault has it.
type Known = (Weak<OwnedFd>, AllocationKey);

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Descriptions {
    /// The known descriptions, in the kernel's order.
    sorted: Vec<Known>,
    /// Came since the last question.
    fresh: Vec<Known>,
}

impl Descriptions {
    /// One more. It does not keep the descriptor open.
    pub fn add(&mut self, key: AllocationKey, fd: &Arc<OwnedFd>) {
        // Without questions nothing else would forget those that are gone.
        if self.fresh.len() == self.fresh.capacity() {
            self.fresh.retain(|(fd, _)| fd.strong_count() > 0);
        }
        self.fresh.push((Arc::downgrade(fd), key));
    }

    /// The allocation whose description `fd` is.
    pub fn find(&mut self, fd: BorrowedFd<'_>) -> Option<AllocationKey> {
        let mut fresh = live(&self.fresh);
        self.fresh.clear();
        fresh.sort_by(|(a, _), (b, _)| order(a.as_fd(), b.as_fd()));
        // What is sorted stays so, less what has gone: only the new ones are compared, each with a few.
        let sorted = live(&self.sorted);
        let mut rest = &sorted[..];
        let mut all = Vec::with_capacity(sorted.len() + fresh.len());
        for new in fresh {
            let before = rest.partition_point(|(known, _)| {
                order(known.as_fd(), new.0.as_fd()) == Ordering::Less
            });
            let (first, others) = rest.split_at(before);
            all.extend_from_slice(first);
            all.push(new);
            rest = others;
        }
        all.extend_from_slice(rest);
        let at = all.binary_search_by(|(known, _)| order(known.as_fd(), fd));
        let found = at.ok().map(|at| all[at].1);
        self.sorted = all
            .iter()
            .map(|(fd, key)| (Arc::downgrade(fd), *key))
            .collect();
        found
    }
}

fn live(known: &[Known]) -> Vec<(Arc<OwnedFd>, AllocationKey)> {
    known
        .iter()
        .filter_map(|(fd, key)| Some((fd.upgrade()?, *key)))
        .collect()
}

/// The kernel's order of two fds of this process: equal where they are one open file description.
fn order(a: BorrowedFd<'_>, b: BorrowedFd<'_>) -> Ordering {
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
    match result {
        0 => Ordering::Equal,
        1 => Ordering::Less,
        2 => Ordering::Greater,
        // Where the kernel does not tell, each is its own.
        _ => a.as_raw_fd().cmp(&b.as_raw_fd()),
    }
}
