//! What changed between two checkpoints, by allocation and file. Of manifests alone: no chunk is read.
//!
//! * Device memory is compared place by place: a chunk counts as changed if other bytes stand there now.
//! * Files of the CPU image are cut by their content, so what was only moved by an insertion before it is not changed: a
//!   chunk counts if the same file did not have it anywhere.

use std::collections::{BTreeMap, HashMap, HashSet};

use serde::Serialize;

use crate::chunk_list::ChunkList;
use crate::manifest::{FileContent, Manifest};
use crate::names::CheckpointNumber;
use crate::{Digest, codec::Codec};

/// What became of an object from one checkpoint to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Change {
    /// It is in both.
    Kept,
    /// It is in the second only.
    Added,
    /// It is in the first only.
    Removed,
}

/// An allocation of device memory in two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AllocationDiff {
    /// PID of its owner.
    pub owner_pid: u32,
    /// Its number.
    pub id: u64,
    /// What kind of allocation it is.
    pub kind: String,
    /// Its size in bytes, in the second if it is there.
    pub bytes: u64,
    /// Bytes of chunks that changed. Of one that was added or removed, all.
    pub changed_bytes: u64,
    /// What became of it.
    pub change: Change,
}

/// A file in two checkpoints.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileDiff {
    /// Its path: in the CPU image, or of the job.
    pub path: String,
    /// Its length in bytes, in the second if it is there.
    pub bytes: u64,
    /// Bytes of chunks that it did not have. Of one that was removed, all.
    pub changed_bytes: u64,
    /// What became of it.
    pub change: Change,
}

/// What changed from one checkpoint to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diff {
    /// The first.
    pub from: CheckpointNumber,
    /// The second.
    pub to: CheckpointNumber,
    /// Device memory, by owner and number.
    pub allocations: Vec<AllocationDiff>,
    /// The CPU image, by path.
    pub cpu_image: Vec<FileDiff>,
    /// Files of the job, by path.
    pub job_files: Vec<FileDiff>,
    /// Bytes of distinct chunks of the second that the first does not have, before encoding.
    pub new_bytes: u64,
    /// What these take in packs.
    pub new_stored_bytes: u64,
}

impl Diff {
    /// Bytes of device memory that changed.
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

/// A file: its path, its length, its content if that is kept.
type File<'a> = (String, u64, Option<&'a ChunkList>);

fn files(
    from: &Manifest,
    before: Vec<File<'_>>,
    to: &Manifest,
    after: Vec<File<'_>>,
) -> Vec<FileDiff> {
    let mut before: BTreeMap<String, (u64, Option<&ChunkList>)> = (before.into_iter())
        .map(|(path, length, list)| (path, (length, list)))
        .collect();
    let mut found = Vec::new();
    for (path, bytes, list) in after {
        let (change, changed_bytes) = match before.remove(&path) {
            None => (Change::Added, bytes),
            Some((length, old)) => {
                let changed = match (old, list) {
                    (Some(old), Some(new)) => changed_content(from, old, to, new),
                    // Of what is not kept only the length is known.
                    (None, None) => length.abs_diff(bytes),
                    _ => bytes,
                };
                (Change::Kept, changed)
            }
        };
        found.push(FileDiff {
            path,
            bytes,
            changed_bytes,
            change,
        });
    }
    found.extend(before.into_iter().map(|(path, (bytes, _))| FileDiff {
        path,
        bytes,
        changed_bytes: bytes,
        change: Change::Removed,
    }));
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn cpu_files(manifest: &Manifest) -> Vec<File<'_>> {
    (manifest.body.cpu_image.iter())
        .map(|file| (text(&file.path), file.length, Some(&file.chunks)))
        .collect()
}

fn job_files(manifest: &Manifest) -> Vec<File<'_>> {
    (manifest.body.job_files.iter())
        .map(|file| {
            let content = match &file.content {
                FileContent::Stored(list) => Some(list),
                FileContent::LengthOnly => None,
            };
            (text(&file.path), file.length, content)
        })
        .collect()
}

fn text(path: &crate::manifest::FilePath) -> String {
    path.as_path().to_string_lossy().into_owned()
}

impl Manifest {
    /// What changed from this checkpoint to another one.
    #[must_use]
    pub fn diff(&self, to: &Self) -> Diff {
        let mut before: BTreeMap<(u32, u64), &crate::manifest::Allocation<ChunkList>> =
            (self.body.allocations.iter())
                .map(|a| ((a.owner_pid, a.id), a))
                .collect();
        let mut allocations = Vec::new();
        for new in &to.body.allocations {
            let (change, changed_bytes) = match before.remove(&(new.owner_pid, new.id)) {
                None => (Change::Added, new.size_bytes),
                Some(old) => {
                    let changed = changed_in_place(self, &old.chunks, to, &new.chunks);
                    (Change::Kept, changed)
                }
            };
            allocations.push(AllocationDiff {
                owner_pid: new.owner_pid,
                id: new.id,
                kind: new.kind.clone(),
                bytes: new.size_bytes,
                changed_bytes,
                change,
            });
        }
        allocations.extend(before.into_values().map(|old| AllocationDiff {
            owner_pid: old.owner_pid,
            id: old.id,
            kind: old.kind.clone(),
            bytes: old.size_bytes,
            changed_bytes: old.size_bytes,
            change: Change::Removed,
        }));
        allocations.sort_by_key(|a| (a.owner_pid, a.id));
        let known: HashSet<Digest> = self.chunks.iter().map(|chunk| chunk.digest).collect();
        let new = || to.chunks.iter().filter(|c| !known.contains(&c.digest));
        Diff {
            from: self.number,
            to: to.number,
            allocations,
            cpu_image: files(self, cpu_files(self), to, cpu_files(to)),
            job_files: files(self, job_files(self), to, job_files(to)),
            new_bytes: new().map(|chunk| u64::from(chunk.raw)).sum(),
            new_stored_bytes: new()
                .filter(|chunk| chunk.codec != Codec::Zero)
                .map(|chunk| u64::from(chunk.stored))
                .sum(),
        }
    }
}
