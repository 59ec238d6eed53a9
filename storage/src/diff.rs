//! What changed between two checkpoints, by allocation and file. It is computed from manifests alone: no chunk is read.
//!
//! * Device memory is compared place by place: a chunk counts as changed if other bytes stand there now.
//! * Files of the CPU image are cut by their content, so what was only moved by an insertion before it is not changed: a
//!   chunk counts if the same file did not have it anywhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::chunk_list::ChunkList;
use crate::manifest::{Allocation, ImageFile, Manifest, MemberId};
use crate::names::CheckpointNumber;
use crate::{Digest, codec::Codec};

/// What became of an object from one checkpoint to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// The object is in both checkpoints.
    Kept,
    /// The object is in the second checkpoint only.
    Added,
    /// The object is in the first checkpoint only.
    Removed,
}

/// An allocation of device memory in two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocationDiff {
    /// The number of the machine that the owner runs on.
    pub node: u32,
    /// The PID of the owner on that machine.
    pub pid: u32,
    /// The number that the owner gave the allocation.
    pub id: u64,
    /// What the allocation is to the application.
    pub kind: String,
    /// Its size in bytes, in the second if it is there.
    pub bytes: u64,
    /// Bytes of chunks that changed: all of them if it was added or removed.
    pub changed_bytes: u64,
    /// What became of the allocation.
    pub change: Change,
}

/// A file in two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// The file's path in the CPU image.
    pub path: String,
    /// Its length in bytes, in the second if it is there.
    pub bytes: u64,
    /// Bytes of chunks that it did not have: all of them if it was removed.
    pub changed_bytes: u64,
    /// What became of the file.
    pub change: Change,
}

/// What changed from one checkpoint to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The checkpoint that the comparison starts from.
    pub from: CheckpointNumber,
    /// The checkpoint that is compared with it.
    pub to: CheckpointNumber,
    /// Device memory, by owner and number.
    pub allocations: Vec<AllocationDiff>,
    /// The files of the CPU image, by path.
    pub cpu_image: Vec<FileDiff>,
    /// Bytes of distinct chunks of the second that the first does not have, before encoding.
    pub new_bytes: u64,
    /// The bytes that these chunks take in packs.
    pub new_stored_bytes: u64,
}

impl Diff {
    /// The number of bytes of device memory that changed.
    #[must_use]
    pub fn device_changed(&self) -> u64 {
        self.allocations.iter().map(|a| a.changed_bytes).sum()
    }
}

fn places(manifest: &Manifest, list: &ChunkList) -> HashMap<(u64, u32), Digest> {
    let place = |(extent, digest): (crate::manifest::Extent, Digest)| {
        ((extent.offset, extent.length), digest)
    };
    (manifest.extents(list).zip(manifest.digests(list)))
        .map(place)
        .collect()
}

fn changed_in_place(from: &Manifest, a: &ChunkList, to: &Manifest, b: &ChunkList) -> u64 {
    let before = places(from, a);
    (to.extents(b).zip(to.digests(b)))
        .filter(|(extent, digest)| before.get(&(extent.offset, extent.length)) != Some(digest))
        .map(|(extent, _)| u64::from(extent.length))
        .sum()
}

fn changed_content(from: &Manifest, a: &ChunkList, to: &Manifest, b: &ChunkList) -> u64 {
    let before: HashSet<Digest> = from.digests(a).collect();
    (to.extents(b).zip(to.digests(b)))
        .filter(|(_, digest)| !before.contains(digest))
        .map(|(extent, _)| u64::from(extent.length))
        .sum()
}

/// Compares the files of both CPU images, by path.
fn files(from: &Manifest, to: &Manifest) -> Vec<FileDiff> {
    let path = |file: &ImageFile<ChunkList>| file.path.as_path().to_string_lossy().into_owned();
    let mut before: BTreeMap<String, &ImageFile<ChunkList>> = (from.body.cpu_image.iter())
        .map(|file| (path(file), file))
        .collect();
    let mut found = Vec::new();
    for file in &to.body.cpu_image {
        let path = path(file);
        let (change, changed_bytes) = match before.remove(&path) {
            None => (Change::Added, file.length),
            Some(old) => {
                let changed = changed_content(from, &old.chunks, to, &file.chunks);
                (Change::Kept, changed)
            }
        };
        found.push(FileDiff {
            path,
            bytes: file.length,
            changed_bytes,
            change,
        });
    }
    found.extend(before.into_iter().map(|(path, file)| FileDiff {
        path,
        bytes: file.length,
        changed_bytes: file.length,
        change: Change::Removed,
    }));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

impl Manifest {
    /// What changed from this checkpoint to another one.
    #[must_use]
    pub fn diff(&self, to: &Self) -> Diff {
        let key = |a: &Allocation<ChunkList>| (a.owner, a.id);
        let mut before: BTreeMap<(MemberId, u64), &Allocation<ChunkList>> =
            (self.body.allocations.iter())
                .map(|a| (key(a), a))
                .collect();
        let of = |a: &Allocation<ChunkList>, changed_bytes, change| AllocationDiff {
            node: a.owner.node,
            pid: a.owner.process,
            id: a.id,
            kind: a.kind.clone(),
            bytes: a.size_bytes,
            changed_bytes,
            change,
        };
        let mut allocations = Vec::new();
        for new in &to.body.allocations {
            allocations.push(match before.remove(&key(new)) {
                None => of(new, new.size_bytes, Change::Added),
                Some(old) => {
                    let changed = changed_in_place(self, &old.chunks, to, &new.chunks);
                    of(new, changed, Change::Kept)
                }
            });
        }
        allocations
            .extend((before.into_values()).map(|old| of(old, old.size_bytes, Change::Removed)));
        allocations.sort_by_key(|a| (a.node, a.pid, a.id));
        let known: HashSet<Digest> = self.chunks.iter().map(|chunk| chunk.digest).collect();
        let new = || to.chunks.iter().filter(|c| !known.contains(&c.digest));
        Diff {
            from: self.number,
            to: to.number,
            allocations,
            cpu_image: files(self, to),
            new_bytes: new().map(|chunk| u64::from(chunk.raw)).sum(),
            new_stored_bytes: new()
                .filter(|chunk| chunk.codec != Codec::Zero)
                .map(|chunk| u64::from(chunk.stored))
                .sum(),
        }
    }
}
