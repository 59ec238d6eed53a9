//! Which chunks of device memory must be copied, and how: through a snapshot on the device, or
//! straight to the host while the job is held. Pure.

use std::collections::HashSet;
use std::time::Duration;

use phos_gpu::Range;
use phos_gpu::host::SLOT;
use phos_policies::drain;
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_storage::Digest;

// A chunk of device memory lies in one slot, and is one chunk of the store.
const _: () = assert!(SLOT <= phos_storage::MAX_CHUNK_SIZE);

/// A chunk with its name.
#[derive(Debug, Clone)]
pub(in crate::engine) struct Item {
    pub(in crate::engine) digest: Digest,
    /// The allocation that it is a part of.
    pub(in crate::engine) key: AllocationKey,
    /// The look at which it was last seen unchanged after an earlier checkpoint; none: it is written at once, or that is not known.
    pub(in crate::engine) look: Option<usize>,
    pub(in crate::engine) range: Range,
}

/// Offsets and lengths of the chunks of an allocation.
pub(in crate::engine) fn chunks(bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let slot = SLOT as u64;
    (0..bytes.div_ceil(slot)).map(move |i| (i * slot, slot.min(bytes - i * slot)))
}

/// The chunks whose content is stored nowhere, each content once, in order.
pub(in crate::engine) fn changed(named: Vec<Item>, stored: impl Fn(&Digest) -> bool) -> Vec<Item> {
    let mut seen = HashSet::new();
    named
        .into_iter()
        .filter(|item| !stored(&item.digest) && seen.insert(item.digest))
        .collect()
}

/// How the changed chunks of one GPU leave it.
#[derive(Debug, Clone, Default)]
pub(in crate::engine) struct Split {
    /// Copied on the device first; drained from there whenever.
    pub(in crate::engine) snapshot: Vec<Item>,
    /// Drained while the job is held anyway; what is left when the job could continue joins the snapshot.
    pub(in crate::engine) during_stop: Vec<Item>,
    /// Drained before the job may continue.
    pub(in crate::engine) before_attach: Vec<Item>,
    /// Drained while the job is held anyway, after `during_stop`; what is left then is drained while the job runs again, from its own memory. In the
    /// order of their looks, which all of them have.
    pub(in crate::engine) beside: Vec<Item>,
    /// Bytes that may be drained while the job runs again, at most: of more, what is written first is drained before.
    pub(in crate::engine) beside_at_most: u64,
    /// Device memory that snapshots may take in all.
    pub(in crate::engine) spare: u64,
}

impl Split {
    /// The most bytes that go to host memory while the job is held, or waits, if the snapshot can be made.
    pub(super) fn leaves(&self) -> u64 {
        bytes(&self.during_stop) + bytes(&self.before_attach) + bytes(&self.beside)
    }

    /// All of them, in the order in which they were divided.
    pub(super) fn into_items(self) -> impl Iterator<Item = Item> {
        let parts = [self.during_stop, self.snapshot, self.before_attach];
        parts.into_iter().chain([self.beside]).flatten()
    }

    /// Leaves to the time when the job runs again what would make the stop longer and is left alone then: so many bytes, at most.
    pub(super) fn put_off(&mut self, most: u64) {
        let all = std::mem::take(&mut self.before_attach);
        (self.beside, self.before_attach) = all.into_iter().partition(|item| item.look.is_some());
        self.beside_at_most = most;
    }

    /// Undoes [`Split::put_off`].
    pub(super) fn put_nothing_off(&mut self) {
        self.before_attach.append(&mut self.beside);
        self.during_stop
            .iter_mut()
            .for_each(|item| item.look = None);
    }
}

/// The bytes of these chunks.
pub(in crate::engine) fn bytes(items: &[Item]) -> u64 {
    items.iter().map(|item| item.range.len).sum()
}

/// Takes out the first of these chunks, until no more than so many bytes are left.
pub(super) fn all_over(items: &mut Vec<Item>, most: u64) -> Vec<Item> {
    let mut left = bytes(items);
    let over = items.iter().take_while(|item| {
        let is_over = left > most;
        left = left.saturating_sub(item.range.len);
        is_over
    });
    let over = over.count();
    items.drain(..over).collect()
}

/// What is known of a GPU when its changed chunks are divided.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Room {
    /// Device memory that a snapshot may take.
    pub(in crate::engine) spare: u64,
    /// What its link moves, in bytes per second.
    pub(in crate::engine) link: u64,
}

/// Divides the changed chunks of each GPU as the policy says.
pub(in crate::engine) fn divide(
    groups: Vec<(Vec<Item>, Room)>,
    host_free: u64,
    expected_stop: Duration,
) -> Vec<Split> {
    let inputs = drain::DrainInputs {
        devices: groups
            .iter()
            .map(|(items, room)| drain::Device {
                changed: items.iter().map(|i| i.range.len as u32).collect(),
                spare_bytes: room.spare,
                link_bytes_per_second: room.link,
            })
            .collect(),
        host_free_bytes: host_free,
        expected_stop,
    };
    let plan = drain::plan(&inputs);
    groups
        .into_iter()
        .zip(plan.devices)
        .map(|((mut items, room), part)| {
            let before_attach = items.split_off(part.snapshot.end.min(items.len()));
            let snapshot = items.split_off(part.snapshot.start.min(items.len()));
            Split {
                snapshot,
                during_stop: items,
                before_attach,
                beside: Vec::new(),
                beside_at_most: u64::MAX,
                spare: room.spare,
            }
        })
        .collect()
}

/// Groups chunks by the GPU they lie on.
pub(in crate::engine) fn by_gpu(items: Vec<Item>) -> Vec<(GpuUuid, Vec<Item>)> {
    let mut groups: Vec<(GpuUuid, Vec<Item>)> = Vec::new();
    for item in items {
        let uuid = item.range.memory.gpu();
        match groups.iter_mut().find(|(u, _)| *u == uuid) {
            Some((_, group)) => group.push(item),
            None => groups.push((uuid, vec![item])),
        }
    }
    groups
}

/// Device memory that a snapshot may take: what is free, less what the driver and the job may need
/// while it exists.
pub(in crate::engine) fn snapshot_room(free: u64, total: u64, reserve: u64) -> u64 {
    // The driver gives its own memory back to itself at the control restore; what is kept free
    // beside that is for what grows meanwhile.
    let margin = (total / 32).min(512 << 20);
    free.saturating_sub(margin.max(reserve / 4))
}

#[cfg(test)]
mod tests {
    use phos_protocol::types::MemberId;

    use super::*;

    #[test]
    fn the_last_chunk_may_be_short() {
        let all: Vec<_> = chunks((2 << 20) + 5).collect();
        assert_eq!(all, [(0, 1 << 20), (1 << 20, 1 << 20), (2 << 20, 5)]);
        assert_eq!(chunks(0).count(), 0);
    }

    #[derive(Debug)]
    struct Memory;

    impl phos_gpu::DeviceMemory for Memory {
        fn gpu(&self) -> GpuUuid {
            GpuUuid([7; 16])
        }

        fn bytes(&self) -> u64 {
            1 << 30
        }

        fn fd(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
            None
        }

        fn base(&self) -> u64 {
            0
        }
    }

    fn items(lengths: &[u64]) -> Vec<Item> {
        let item = |&len: &u64| Item {
            digest: Digest([0; 32]),
            key: AllocationKey {
                owner: MemberId::here(1),
                id: 1,
            },
            look: Some(0),
            range: Range {
                memory: std::sync::Arc::new(Memory),
                offset: 0,
                len,
            },
        };
        lengths.iter().map(item).collect()
    }

    #[test]
    fn what_is_over_is_taken_from_the_front_and_no_more_of_it() {
        let over = |lengths: &[u64], most| {
            let mut left = items(lengths);
            let over = all_over(&mut left, most);
            let lengths = |items: &[Item]| items.iter().map(|i| i.range.len).collect::<Vec<_>>();
            (lengths(&over), lengths(&left))
        };
        assert_eq!(over(&[3, 2, 5, 4], 14), (vec![], vec![3, 2, 5, 4]));
        assert_eq!(over(&[3, 2, 5, 4], 13), (vec![3], vec![2, 5, 4]));
        assert_eq!(over(&[3, 2, 5, 4], 9), (vec![3, 2], vec![5, 4]));
        assert_eq!(over(&[3, 2, 5, 4], 0), (vec![3, 2, 5, 4], vec![]));
        assert_eq!(over(&[], 0), (vec![], vec![]));
    }

    #[test]
    fn a_full_device_has_no_room_for_a_snapshot() {
        assert_eq!(snapshot_room(100 << 20, 80 << 30, 0), 0);
        assert_eq!(
            snapshot_room(10 << 30, 80 << 30, 400 << 20),
            (10 << 30) - (512 << 20)
        );
    }
}
