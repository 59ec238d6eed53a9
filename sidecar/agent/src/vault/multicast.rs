//! The multicast objects that processes of the job share: whose a descriptor is that somebody imports.
//!
//! They are no part of an image, and none may be alive while the job is dumped: the descriptors go with the request to detach, and new ones
//! come when the objects are made anew (`attempt::rejoin`).

use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use phos_protocol::types::{Allocation, AllocationId, AllocationKey, MemberId, ProcessId};

use super::descriptions::Descriptions;

/// Objects that are known at most. NCCL has one or two for each communicator.
const MOST: usize = 4096;

/// See the module's documentation.
#[derive(Debug, Default)]
pub struct Multicasts {
    known: BTreeMap<AllocationKey, (Allocation, Arc<OwnedFd>)>,
    descriptions: Descriptions,
}

impl Multicasts {
    /// Keeps the descriptor of an object, in place of an older one; not if there are more than a job has.
    pub fn keep(&mut self, object: Allocation, fd: OwnedFd) {
        if self.known.len() >= MOST && !self.known.contains_key(&object.key) {
            return;
        }
        let fd = Arc::new(fd);
        self.descriptions.add(object.key, &fd);
        self.known.insert(object.key, (object, fd));
    }

    /// The descriptor of an object.
    pub fn fd(&self, key: &AllocationKey) -> Option<Arc<OwnedFd>> {
        self.known.get(key).map(|(_, fd)| Arc::clone(fd))
    }

    /// The object whose descriptor this is.
    pub fn identify(&mut self, fd: BorrowedFd<'_>) -> Option<Allocation> {
        if self.known.is_empty() {
            return None;
        }
        let key = self.descriptions.find(fd)?;
        self.known.get(&key).map(|(object, _)| *object)
    }

    /// Its owner has let go of these: nobody gets a descriptor of them any more.
    pub fn free(&mut self, pid: ProcessId, ids: &[AllocationId]) {
        let owner = MemberId::here(pid);
        for &id in ids {
            self.known.remove(&AllocationKey { owner, id });
        }
    }

    /// A process has ended.
    pub fn forget(&mut self, pid: ProcessId) {
        self.known.retain(|key, _| key.owner != MemberId::here(pid));
    }

    /// Closes all of them.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use phos_protocol::types::AllocationKind;

    use super::*;

    fn object(process: ProcessId, id: AllocationId) -> Allocation {
        Allocation {
            key: AllocationKey {
                owner: MemberId::here(process),
                id,
            },
            device: 0,
            bytes: 2 << 20,
            kind: AllocationKind::Multicast { devices: 2 },
            rdma: false,
        }
    }

    fn file() -> OwnedFd {
        tempfile::tempfile().unwrap().into()
    }

    #[test]
    fn a_descriptor_tells_its_object_until_that_is_let_go() {
        let mut known = Multicasts::default();
        let (one, other, mine) = (file(), file(), file());
        known.keep(object(7, 1), one.try_clone().unwrap());
        known.keep(object(7, 2), other.try_clone().unwrap());
        known.keep(object(8, 1), mine.try_clone().unwrap());
        assert_eq!(known.identify(one.as_fd()), Some(object(7, 1)));
        assert_eq!(known.identify(other.as_fd()), Some(object(7, 2)));
        assert_eq!(known.identify(file().as_fd()), None);
        known.free(8, &[2]);
        known.free(7, &[2]);
        assert_eq!(known.identify(other.as_fd()), None);
        known.forget(7);
        assert_eq!(known.identify(one.as_fd()), None);
        assert!(known.fd(&object(8, 1).key).is_some());
        known.clear();
        assert_eq!(known.identify(mine.as_fd()), None);
    }
}
