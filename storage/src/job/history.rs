//! Which checkpoints are visible: the log, read from its newest record backwards.
//!
//! The newest record of a collection says which of the older checkpoints still count, and where their manifests are
//! since they were repacked. So what is read grows with what is kept, not with the age of the job.
//!
//! # Damage
//!
//! Numbers are given one after the other and no record is deleted, so one that is missing is damaged, as a checkpoint may have
//! been in it. Nobody misses those before the newest collection that it does not keep.
//!
//! If the newest collection itself cannot be read, nobody knows any more what it gave up for deletion: older checkpoints are
//! still shown and restored as far as they are whole (every chunk is checked), but no writer references them. Only that
//! collection says where the manifests of those that it repacked are: they are found among the manifests that there are. The next
//! collection passes over it, and says from where on checkpoints may be referenced again.

use std::collections::VecDeque;

use futures::{StreamExt, TryStreamExt, stream};

use super::Job;
use super::log::{Log, ReadRecord};
use crate::branch::{Fork, Forks};
use crate::collection::{self, Collection, ManifestRef};
use crate::fault::StoreFault;
use crate::head::{self, HeadRecord, RecordKind};
use crate::index::PackSet;
use crate::names::{Epoch, UnixMillis};

/// Goes through the records that count, newest first.
pub(crate) struct Walk<'a> {
    job: &'a Job,
    /// Numbers still to be read, oldest first.
    rest: Vec<u64>,
    /// Read ahead, newest first.
    ahead: VecDeque<(u64, ReadRecord)>,
    width: usize,
    tail: u64,
    /// Number of the newest record seen.
    newest: u64,
    /// The number of the last record that was shown.
    below: Option<u64>,
    collection: Option<Collection>,
    /// The forks after the last record that was shown.
    forks: Forks,
    /// The newest record of which it is not known what it gave up for deletion.
    lost: Option<u64>,
    /// What there is, since a collection was met that cannot be read.
    there: Option<There>,
}

/// Manifests and packs that there are.
struct There {
    manifests: Vec<String>,
    packs: PackSet,
}

/// A record that counts.
pub(crate) struct Step {
    pub number: u64,
    pub record: ReadRecord,
    /// The manifest, if it is a checkpoint and that is known.
    pub manifest: Option<ManifestRef>,
    /// The branch that it is on; `None`: the current one.
    pub branch: Option<u64>,
    /// Whether all records and collections after it could be read: else it may be on the way to being deleted.
    pub trusted: bool,
    /// Whether this is a collection, which cannot be read.
    pub is_collection: bool,
}

impl<'a> Walk<'a> {
    /// A walk that reads up to `width` records at once.
    pub(crate) async fn new(job: &'a Job, width: usize) -> Result<Self, StoreFault> {
        let rest = head::with_missing(&job.record_numbers().await?);
        Ok(Self {
            job,
            tail: rest.last().copied().unwrap_or(0),
            newest: rest.last().copied().unwrap_or(0),
            below: None,
            rest,
            ahead: VecDeque::new(),
            width: width.max(1),
            collection: None,
            forks: Forks::default(),
            lost: None,
            there: None,
        })
    }

    /// Number of the newest record that there was at the beginning.
    pub(crate) const fn tail(&self) -> u64 {
        self.tail
    }

    /// Number of the newest record seen.
    pub(crate) const fn newest(&self) -> u64 {
        self.newest
    }

    /// The newest collection that the walk has met so far.
    pub(crate) fn collection(&self) -> Option<&Collection> {
        self.collection.as_ref()
    }

    /// The forks that the walk has met so far.
    pub(crate) fn forks(&self) -> &Forks {
        &self.forks
    }

    /// The newest record met so far of which it is not known what it gave up for deletion.
    pub(crate) const fn lost(&self) -> Option<u64> {
        self.lost
    }

    pub(crate) async fn next(&mut self) -> Result<Option<Step>, StoreFault> {
        loop {
            if self.ahead.is_empty() {
                let from = self.rest.len().saturating_sub(self.width);
                let job = self.job;
                let reads = stream::iter(self.rest.split_off(from).into_iter().rev())
                    .map(|number| async move { Ok((number, job.record(number).await?)) });
                self.ahead = reads.buffered(self.width).try_collect().await?;
            }
            let Some((number, mut record)) = self.ahead.pop_front() else {
                return Ok(None);
            };
            let mut is_collection = false;
            if let Ok(found) = &record
                && matches!(found.kind, RecordKind::Collected { .. })
            {
                match self.job.collection_of(found).await? {
                    Ok(collection) => {
                        let counts = |number: u64| {
                            collection
                                .kept
                                .binary_search_by_key(&number, |k| k.number)
                                .is_ok()
                                || collection.completed == Some(number)
                        };
                        self.rest.retain(|&number| counts(number));
                        self.ahead.retain(|&(number, _)| counts(number));
                        self.forks.add(collection.forks.iter().copied());
                        self.lost = self.lost.or(collection.lost);
                        self.collection.get_or_insert(collection);
                        continue;
                    }
                    Err(reason) => {
                        // A newer collection may have replaced it meanwhile; then that one counts.
                        let numbers = self.job.record_numbers().await?;
                        let tail = numbers.last().copied().unwrap_or(0);
                        if tail > self.newest {
                            self.newest = tail;
                            self.rest = head::with_missing(&numbers);
                            self.ahead.clear();
                            continue;
                        }
                        if self.there.is_none() {
                            self.there = Some(There::list(self.job).await?);
                        }
                        is_collection = true;
                        record = Err(reason);
                    }
                }
            }
            let own = match &record {
                Ok(HeadRecord {
                    kind:
                        RecordKind::Checkpoint {
                            manifest,
                            digest,
                            length,
                            ..
                        },
                    ..
                }) => Some(ManifestRef {
                    name: manifest.clone(),
                    digest: *digest,
                    length: *length,
                }),
                _ => None,
            };
            let kept = self.collection.as_ref().and_then(|c| c.kept(number));
            let mut kept = kept.and_then(|kept| kept.manifest.clone());
            if let (Some(own), None, Some(there)) = (&own, &kept, &self.there) {
                kept = there.in_place_of(self.job, number, own).await?;
            }
            let trusted = self.lost.is_none_or(|lost| number > lost);
            if record.is_err() {
                self.lost.get_or_insert(number);
            }
            if self.below.is_some_and(|below| number >= below) {
                continue;
            }
            self.below = Some(number);
            if let Ok(HeadRecord {
                kind: RecordKind::TakenOver { after, .. },
                ..
            }) = &record
            {
                let at = number;
                self.forks.add(after.map(|after| Fork { at, after }));
            }
            return Ok(Some(Step {
                number,
                manifest: kept.or(own),
                branch: self.forks.branch_of(number),
                record,
                trusted,
                is_collection,
            }));
        }
    }
}

impl There {
    async fn list(job: &Job) -> Result<Self, StoreFault> {
        let manifests = job.backend().list(&job.key("manifests")).await?;
        Ok(Self {
            manifests: manifests.into_iter().map(|object| object.name).collect(),
            packs: job.packs().await?,
        })
    }

    /// The manifest of a checkpoint whose own is gone: the one that was made when its packs were repacked, if it and all that it
    /// names are there. The name has the beginning of its digest in it.
    async fn in_place_of(
        &self,
        job: &Job,
        number: u64,
        own: &ManifestRef,
    ) -> Result<Option<ManifestRef>, StoreFault> {
        if self.manifests.contains(&own.name) {
            return Ok(None);
        }
        let of_it = |name: &&String| collection::number_in(name) == Some(number);
        for name in self.manifests.iter().filter(of_it) {
            let Some((named, manifest)) = job.manifest_by_name(number, name).await? else {
                continue;
            };
            let whole = manifest
                .packs
                .iter()
                .all(|pack| self.packs.check(pack).is_ok());
            if whole && !self.packs.manifests.contains(name) {
                return Ok(Some(named));
            }
        }
        Ok(None)
    }
}

/// A checkpoint, or a record that may have been one, as collection sees it.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub number: u64,
    /// When it was committed; of one that cannot be read, when the next one was.
    pub created: UnixMillis,
    /// The branch that it is on; `None`: the current one.
    pub branch: Option<u64>,
    /// `None` if that is not known, as its record cannot be read.
    pub manifest: Option<ManifestRef>,
    /// Why the checkpoint's record cannot be read; `None` if it can.
    pub damage: Option<String>,
}

/// Everything that counts in a log.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub log: Log,
    /// The entries, oldest first.
    pub entries: Vec<Entry>,
    /// The newest record of the current branch that says that the job ended by itself.
    pub completed: Option<u64>,
    pub forks: Forks,
    /// Number and name of the newest collection that can be read.
    pub collection: Option<(u64, String)>,
    /// Number of a newer one that cannot be read, and why.
    pub damage: Option<(u64, String)>,
    /// The newest record of which it is not known what it gave up for deletion.
    pub lost: Option<u64>,
}

impl Job {
    /// Reads all that counts.
    pub(crate) async fn history(&self) -> Result<History, StoreFault> {
        let mut walk = Walk::new(self, head::READS).await?;
        let mut history = History {
            log: Log {
                tail: walk.tail(),
                epoch: None,
            },
            entries: Vec::new(),
            completed: None,
            forks: Forks::default(),
            collection: None,
            damage: None,
            lost: None,
        };
        // The newest record may be that of a collection, which the walk does not show.
        history.log.epoch = self.epoch_at(history.log.tail).await?;
        let mut newer = UnixMillis(0);
        while let Some(step) = walk.next().await? {
            match step.record {
                Ok(record) => match record.kind {
                    RecordKind::Checkpoint { .. } => {
                        newer = record.created;
                        history.entries.push(Entry {
                            number: step.number,
                            created: record.created,
                            branch: step.branch,
                            manifest: step.manifest,
                            damage: None,
                        });
                    }
                    RecordKind::Completed { .. } if step.branch.is_some() => {}
                    RecordKind::Completed { .. } => {
                        history.completed.get_or_insert(step.number);
                    }
                    RecordKind::TakenOver { .. } | RecordKind::Collected { .. } => {}
                },
                Err(reason) if step.is_collection => {
                    history.damage.get_or_insert((step.number, reason));
                }
                Err(reason) => history.entries.push(Entry {
                    number: step.number,
                    created: newer,
                    branch: step.branch,
                    manifest: step.manifest,
                    damage: Some(reason),
                }),
            }
        }
        history.entries.reverse();
        history.forks = walk.forks().clone();
        history.lost = walk.lost();
        history.collection = match walk.collection() {
            None => None,
            Some(collection) => match self.record(collection.number).await? {
                Ok(HeadRecord {
                    kind:
                        RecordKind::Collected {
                            collection: name, ..
                        },
                    ..
                }) => Some((collection.number, name)),
                _ => None,
            },
        };
        Ok(history)
    }

    /// The epoch of a record; `None` if there is no such record or it is damaged.
    async fn epoch_at(&self, number: u64) -> Result<Option<Epoch>, StoreFault> {
        if number == 0 {
            return Ok(None);
        }
        Ok(self.record(number).await?.ok().map(|record| record.epoch))
    }
}
