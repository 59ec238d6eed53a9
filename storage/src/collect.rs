//! Collection: retention makes old checkpoints invisible, mark and sweep deletes what nothing visible needs, half-empty
//! packs are repacked, and what dead writers left behind goes.
//!
//! # The race
//!
//! A writer finds a chunk in a pack that is there and leaves it out. The checkpoint that named the pack is removed, the
//! pack is deleted, and the writer commits a manifest that names what is gone. Asking "is anybody writing?" before
//! deleting does not help: the answer is old when it arrives. Waiting "long enough" asks for clocks.
//!
//! # The protocol
//!
//! Everything is decided in the job's log, which is one line of history (see `head`).
//!
//! 1. A **writer** notes in `writers/<nonce>` its epoch and the manifests that it may lean on, *then* reads the log to its
//!    end; if a collection stands there that it did not know, it drops what that took away. Its first pack comes after
//!    that. It takes the note back when it has ended.
//! 2. A **collector** reads the log (state A), *then* lists packs, manifests and notes, *then* reads the log again (B).
//!    A collection between A and B makes it start over.
//! 3. It may give up for deletion (**sweep**) a pack that was listed, that no checkpoint visible in A or B names, that
//!    no living writer leans on and that no living writer made. A writer lives if its note stands and its epoch is the
//!    newest: one of an older epoch can never commit again, and every start of a sidecar begins a new epoch. The same
//!    for manifests.
//! 4. It writes down what it keeps and what it sweeps and appends a record *collected* as number B + 1: created
//!    conditionally, so it stands only if nothing was committed and nobody took over since B. Only then it deletes.
//! 5. A **commit** compares its packs with what was swept between the log that its writer read and the number that it
//!    tries, and fails rather than name a swept pack.
//!
//! # Why it is safe
//!
//! Of a commit and a collection one comes first in the log. If the commit does, the collector's append fails and it
//! looks again. If the collection does, the commit meets it (5). This needs no notes, no clocks and no luck: a swept pack
//! is never named again, as names are never used twice; so it does not matter who deletes it, when, or how often.
//!
//! Notes only decide that commits do not fail in vain. A writer whose note was not listed wrote it after A, so it leans
//! on what was visible in A or later; all of that is protected (3) until a collection that it saw. What it then lacks it
//! stores itself.
//!
//! # Readers, and what unfinished checkpoints left
//!
//! Notes of readers protect what they name (see `hold`); the note of a writer, dead or alive, protects its packs, so that
//! the next checkpoint can go on with them (see `leftovers`).
//!
//! # What retention removes goes one collection later
//!
//! A checkpoint that a collection stops keeping was still visible in its A, so its packs are swept by the next one:
//! [`CollectOptions::rounds`].
//!
//! # Fencing
//!
//! A record of a collection belongs to the epoch in force and counts as a write: whoever was taken over is told so and
//! stops. What such a one still deletes was swept while it held the job, so nobody names it.
//!
//! # Crash consistency
//!
//! Before its record a collector leaves an object that nothing names (and packs under its own note, if it repacked);
//! after it, swept objects that are still there. Both are garbage like any other to the next collection, which finds
//! them by looking at what is there: nothing has to be remembered.
//!
//! # Cancellation
//!
//! Its future may be dropped at any point; that is a crash.
//!
//! # Damage
//!
//! While a checkpoint that is to be kept cannot be read, nothing is swept, as what it names is not known; removing goes
//! on. Damaged checkpoints do not count as kept, so none that is whole is removed in their favour.
//!
//! A newest collection that is damaged is gone past: what it kept and removed is decided once more, from the log and from what
//! there is. What it gave up for deletion is not known, and whoever decided it may still be deleting: so the new one says that
//! nobody leans on the checkpoints before it (`lost`), until retention has let them go. A writer that began before it meets it in
//! its commit, and fails. The same where the record is damaged that names it. One that is missing altogether, or of a newer phos-ft, is not gone past: the store may be half a copy, or
//! ours may be the phos-ft that is too old.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt, stream};
use serde::Serialize;

use crate::Digest;
use crate::codec;
use crate::collection::{self, Collection, Kept, ManifestRef};
use crate::crypt::Crypt;
use crate::envelope::EnvelopeError;
use crate::fault::{FaultKind, StoreFault};
use crate::head::{HeadRecord, RecordKind};
use crate::history::{Entry, History};
use crate::hold::ReaderNote;
use crate::index::PackSet;
use crate::job::{Appended, Job, JobError, Log, Note, SkippedCheckpoint, Usage};
use crate::manifest::{Location, ManifestError, PackEntry};
use crate::medium::Medium;
use crate::names::{CheckpointNumber, Epoch, JobName, Nonce, PackId, UnixMillis};
use crate::pack::{self, PackBuilder};
use crate::writer::sealing_failed;

/// Objects deleted at once.
const DELETES: usize = 8;
/// How often a collector starts over because others wrote meanwhile, before it gives up.
const ATTEMPTS: usize = 32;
/// Bytes of live chunks that are fetched at once when repacking.
const REPACK_FETCH: u64 = 16 << 20;

/// How to collect.
#[derive(Debug, Clone, Copy)]
pub struct CollectOptions {
    /// The epoch of the caller, if it holds the job. Without one the collection belongs to the epoch that is in force
    /// when it begins; either way it fails if the job is taken over meanwhile.
    pub epoch: Option<Epoch>,
    /// Only say what would be done; nothing is written or deleted.
    pub dry_run: bool,
    /// Packs of which less than this share (in percent) is needed are repacked; 0: none.
    pub repack_below_percent: u8,
    /// Most bytes of live chunks to repack in one round.
    pub repack_bytes: u64,
    /// Rounds, at most: what one round removes, the next one sweeps. It ends earlier when nothing is left to do.
    pub rounds: u32,
}

impl Default for CollectOptions {
    /// To the end, repacking packs that are less than half needed.
    fn default() -> Self {
        Self {
            epoch: None,
            dry_run: false,
            repack_below_percent: 50,
            repack_bytes: 4 << 30,
            rounds: 4,
        }
    }
}

/// Why a collection ended early. Whatever was decided before stands and is gone on with by the next one.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Someone else took the job over.
    #[error("not collected: job {job} was taken over{by}: epoch {epoch} is no longer the newest")]
    Fenced {
        /// The job.
        job: JobName,
        /// The epoch of the collection.
        epoch: Epoch,
        /// Who took it over, if that is known: " by HOLDER".
        by: String,
    },
    /// The log or the newest collection cannot be read.
    #[error(
        "not collected: {reason}; nothing was deleted, checkpoints can still be taken and restored"
    )]
    Damaged {
        /// What cannot be read.
        reason: String,
    },
    /// Others kept writing.
    #[error("not collected: the history changed {ATTEMPTS} times meanwhile; try again later")]
    Busy,
    /// A request failed.
    #[error("not collected to the end: {0}; what is left is done by the next collection")]
    Store(#[from] StoreFault),
    /// A record or manifest could not be written down.
    #[error("not collected: {0}")]
    Encode(#[from] EnvelopeError),
    /// A manifest could not be made anew.
    #[error("not collected: {0}")]
    Manifest(#[from] ManifestError),
    /// The history could not be read.
    #[error("not collected: {0}")]
    Job(JobError),
}

impl CollectError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Store(fault) => fault.is_permanent(),
            Self::Job(error) => error.is_permanent(),
            Self::Busy => false,
            Self::Fenced { .. } | Self::Damaged { .. } | Self::Encode(_) | Self::Manifest(_) => {
                true
            }
        }
    }

    /// Whether the job was taken over.
    #[must_use]
    pub const fn is_fenced(&self) -> bool {
        matches!(self, Self::Fenced { .. })
    }
}

impl From<JobError> for CollectError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Store(fault) => Self::Store(fault),
            JobError::Encode(error) => Self::Encode(error),
            JobError::Fenced { job, epoch, by } => Self::Fenced { job, epoch, by },
            other => Self::Job(other),
        }
    }
}

/// What a collection did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// Checkpoints that are no longer visible, oldest first.
    pub removed: Vec<CheckpointNumber>,
    /// Checkpoints that are kept, oldest first.
    pub kept: Vec<CheckpointNumber>,
    /// Packs deleted.
    pub packs: u64,
    /// Their bytes.
    pub pack_bytes: u64,
    /// Packs that were repacked: they are deleted by a later round.
    pub repacked_packs: u64,
    /// Bytes of live chunks in them, which were written again.
    pub repacked_bytes: u64,
    /// Manifests, collections and notes deleted.
    pub other_objects: u64,
    /// Uploads that the dead left unfinished, ended.
    pub unfinished_uploads: u64,
    /// Packs that nothing visible names, left because a writer or reader may need them.
    pub protected_packs: u64,
    /// Readers (restores, exports, verifications) that said within the last hour that they are at it.
    pub readers: u64,
    /// Why nothing was swept, if so: checkpoints to be kept that cannot be read.
    pub blocked: Vec<SkippedCheckpoint>,
    /// Earlier collections, by the numbers of their records, that are damaged and were decided once more.
    pub gone_past: Vec<SkippedCheckpoint>,
}

/// A checkpoint for a retention policy to decide on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its number: a greater one is newer.
    pub number: CheckpointNumber,
    /// When it was committed, as told then.
    pub created: UnixMillis,
    /// The branch that it is on; `None`: the current one. Each is to be thinned out for itself. Runs that ended before the
    /// current one, which has checkpoints, count as a branch, too, named by the record of the last end.
    pub branch: Option<u64>,
}

/// The numbers to keep, of those given (oldest first). The newest is kept whatever it says.
pub type Keep<'a> = dyn Fn(&[Candidate]) -> BTreeSet<CheckpointNumber> + Send + Sync + 'a;

/// Asked before each step of a collection, so that it is not in the way of something more important.
pub trait GiveWay: Send + Sync {
    /// Returns when the collection may go on.
    fn turn(&self) -> BoxFuture<'_, ()>;
}

/// What time it is. A collection may take hours, and asks whenever it compares.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> UnixMillis;
}

impl<F: Fn() -> UnixMillis + Send + Sync> Clock for F {
    fn now(&self) -> UnixMillis {
        self()
    }
}

/// A clock that stands: for tests.
impl Clock for UnixMillis {
    fn now(&self) -> UnixMillis {
        *self
    }
}

/// Nothing is more important.
#[derive(Debug, Clone, Copy)]
pub struct Always;

impl GiveWay for Always {
    fn turn(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// What was listed: between A and B.
struct Listed {
    packs: PackSet,
    manifests: Vec<String>,
    collections: Vec<String>,
    notes: Vec<(Nonce, Result<collection::WriterNote, String>)>,
    readers: Vec<(Nonce, Option<ReaderNote>)>,
    /// Before the readers' notes were read.
    at: UnixMillis,
}

impl Listed {
    /// Whether a record that cannot be read is that of a collection, as far as what was written before it tells: a checkpoint's
    /// would have a manifest.
    fn shows_a_collection(&self, entry: &Entry) -> bool {
        let of_it = |name: &String| collection::number_in(name) == Some(entry.number);
        entry.damage.is_some()
            && !self.manifests.iter().any(of_it)
            && self.collections.iter().any(of_it)
    }
}

/// What one round came to.
struct Round {
    /// Whether another one could sweep more.
    more: bool,
}

/// Chunks that were moved to new packs, and the note under which those lie.
#[derive(Default)]
struct Moves {
    to: HashMap<(PackId, u64), Location>,
    lengths: HashMap<PackId, u64>,
    packs: u64,
    bytes: u64,
    note: Option<Note>,
    writer: Option<Nonce>,
    /// Collections up to this record did not sweep the new packs.
    checked: u64,
}

struct Collector<'a> {
    job: &'a Job,
    keep: &'a Keep<'a>,
    way: &'a dyn GiveWay,
    options: CollectOptions,
    clock: &'a dyn Clock,
    epoch: Option<Epoch>,
    moves: Moves,
    done: Collected,
}

impl Job {
    /// Removes the checkpoints that `keep` does not want and deletes what nothing visible needs. Safe beside anything
    /// else that runs, and to be interrupted at any point. See the protocol at the head of this module.
    pub async fn collect(
        &self,
        keep: &Keep<'_>,
        options: CollectOptions,
        clock: impl Clock,
    ) -> Result<Collected, CollectError> {
        self.collect_giving_way(keep, options, clock, &Always).await
    }

    /// [`Self::collect`] in the background: `way` is asked before each step.
    pub async fn collect_giving_way(
        &self,
        keep: &Keep<'_>,
        options: CollectOptions,
        clock: impl Clock,
        way: &dyn GiveWay,
    ) -> Result<Collected, CollectError> {
        if self.backend().medium() == Medium::Discard {
            return Ok(Collected::default());
        }
        let mut collector = Collector {
            job: self,
            keep,
            way,
            options,
            clock: &clock,
            epoch: options.epoch,
            moves: Moves::default(),
            done: Collected::default(),
        };
        let mut outcome = Ok(());
        for round in 0..options.rounds.max(1) {
            match collector.round(round == 0).await {
                Ok(Round { more: true }) if !options.dry_run => {}
                Ok(_) => break,
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        if let Some(note) = collector.moves.note.take() {
            note.remove().await;
        }
        outcome.map(|()| collector.done)
    }
}

impl Collector<'_> {
    async fn round(&mut self, first: bool) -> Result<Round, CollectError> {
        for _ in 0..ATTEMPTS {
            match self.attempt(first).await {
                Ok(Some(round)) => return Ok(round),
                Ok(None) | Err(CollectError::Busy) => {}
                Err(error) => return Err(error),
            }
        }
        Err(CollectError::Busy)
    }

    /// One attempt; `None`: the history changed, look again.
    async fn attempt(&mut self, first: bool) -> Result<Option<Round>, CollectError> {
        let job = self.job;
        self.way.turn().await;
        let before = job.history().await?;
        if let Some((number, reason)) = &before.damage {
            self.go_past(*number, reason, &before).await?;
        }
        if before.log.tail == 0 {
            // Nothing was ever written.
            return Ok(Some(Round { more: false }));
        }
        let epoch = self.check_epoch(before.log).await?;
        if !self.options.dry_run {
            job.remove_notes_of_ended().await?;
        }
        let listed = self.list().await?;
        let Some(mut now) = self.later(&before).await? else {
            return Ok(None);
        };
        let (collections, entries): (Vec<Entry>, Vec<Entry>) =
            (now.entries.into_iter()).partition(|entry| listed.shows_a_collection(entry));
        now.entries = entries;
        let goes_past = before.damage.is_some() || !collections.is_empty();
        for entry in collections {
            self.say_gone_past(entry.number, &entry.damage.unwrap_or_default());
        }
        if !self.moves_stand(now.log.tail).await? {
            self.moves = Moves::default();
            return Ok(None);
        }

        // Mark.
        let mut marked = self.mark(&before, &now, &listed, epoch).await?;
        let kept = self.choose(&now, &marked);
        let removed: Vec<CheckpointNumber> = now
            .entries
            .iter()
            .map(|entry| CheckpointNumber(entry.number))
            .filter(|number| !kept.contains(number))
            .collect();
        let unknown = now.entries.iter().filter_map(|entry| {
            let number = CheckpointNumber(entry.number);
            let reason = marked.damaged.get(&entry.number)?.clone();
            kept.contains(&number)
                .then_some(SkippedCheckpoint { number, reason })
        });
        let mut blocked: Vec<SkippedCheckpoint> = unknown.collect();
        blocked.append(&mut marked.unknown_leans);
        if !blocked.is_empty() && !job.records_after(now.log.tail).await?.is_empty() {
            // What could not be read may have been collected meanwhile.
            return Ok(None);
        }
        let kept_entries: Vec<&Entry> = (now.entries.iter())
            .filter(|entry| kept.contains(&CheckpointNumber(entry.number)))
            .collect();

        // Repack, under a note, so that nobody else sweeps what it makes.
        let repack = blocked.is_empty() && self.options.repack_below_percent > 0;
        if repack && self.moves.to.is_empty() {
            self.repack(&kept_entries, &marked, &listed.packs, epoch, now.log.tail)
                .await?;
        }
        let mut moved = BTreeMap::new();
        if !self.moves.to.is_empty() {
            moved = self.rewrite(&kept_entries, &marked, now.log.tail).await?;
        }

        // Sweep.
        let (packs, manifests) = if blocked.is_empty() {
            self.sweepable(&listed, &marked, &now, &removed)
        } else {
            (Vec::new(), Vec::new())
        };
        self.done.kept = kept.iter().copied().collect();
        self.done.blocked = blocked;
        self.done.protected_packs = marked.protected(&listed.packs);
        self.done.readers = marked.readers;
        let sizes: u64 = packs
            .iter()
            .filter_map(|id| listed.packs.present.get(id))
            .sum();
        if self.options.dry_run {
            self.done.removed = removed;
            self.done.packs = packs.len() as u64;
            self.done.pack_bytes = sizes;
            self.done.other_objects = manifests.len() as u64;
            return Ok(Some(Round { more: false }));
        }
        let decided =
            !removed.is_empty() || !packs.is_empty() || !manifests.is_empty() || goes_past;
        if decided || !moved.is_empty() {
            let known: Vec<u64> = (kept_entries.iter().map(|entry| entry.number))
                .chain(now.completed)
                .collect();
            let collection = Collection {
                job: job.name().clone(),
                number: now.log.tail + 1,
                kept: kept_entries
                    .iter()
                    .map(|entry| {
                        let manifest = moved.get(&entry.number).or(entry.manifest.as_ref());
                        Kept {
                            number: entry.number,
                            manifest: manifest.cloned(),
                        }
                    })
                    .collect(),
                completed: now.completed,
                packs,
                manifests,
                forks: now.forks.needed_by(&known),
                lost: (now.lost)
                    .filter(|lost| kept_entries.iter().any(|entry| entry.number < *lost)),
            };
            if !self
                .append(&collection, epoch, removed.len() as u64)
                .await?
            {
                return Ok(None);
            }
            // From here on it is decided; what follows may be done by anybody, at any time.
            self.done.removed.extend(&removed);
            self.done.repacked_packs += self.moves.packs;
            self.done.repacked_bytes += self.moves.bytes;
            if let Some(note) = std::mem::take(&mut self.moves).note {
                note.remove().await;
            }
            self.delete_swept(&collection).await?;
            self.done.packs += collection.packs.len() as u64;
            self.done.pack_bytes += sizes;
            self.done.other_objects += collection.manifests.len() as u64;
        }
        if first {
            self.clean(&listed, &marked, &now, epoch).await?;
        }
        Ok(Some(Round {
            more: !removed.is_empty() || !moved.is_empty() || !marked.dead.is_empty(),
        }))
    }

    /// Whether a collection that cannot be read is one to go past: it is there and damaged, or a later one replaced it, whose
    /// record, `lost`, is damaged.
    async fn go_past(
        &mut self,
        number: u64,
        reason: &str,
        seen: &History,
    ) -> Result<(), CollectError> {
        let job = self.job;
        let damaged = |detail: String| CollectError::Damaged { reason: detail };
        let record = job.record(number).await?.map_err(damaged)?;
        let RecordKind::Collected {
            collection, digest, ..
        } = &record.kind
        else {
            return Err(damaged(reason.to_owned()));
        };
        let key = job.key(&format!("collections/{collection}"));
        match job
            .backend()
            .read(&key, collection::KIND.max_object())
            .await
        {
            Ok(bytes) => {
                if collection::is_newer(job.crypt(), number, *digest, &bytes) {
                    return Err(damaged(format!(
                        "{key} was written by a newer phos-ft: collect with that one"
                    )));
                }
            }
            Err(fault) if fault.kind() == FaultKind::NotFound => {
                let later = |name: &str| {
                    collection::number_in(name).is_some_and(|n| n > number && Some(n) == seen.lost)
                };
                let listed = job.backend().list(&job.key("collections")).await?;
                if listed.iter().any(|object| later(&object.name)) {
                    return Ok(());
                }
                // By a listing of a moment ago: a newer one has replaced it.
                if job.grew_beyond(seen.log.tail).await? {
                    return Err(CollectError::Busy);
                }
                return Err(damaged(format!(
                    "{key} is missing: if the store is a copy, copy it to the end, else bring it back from a copy"
                )));
            }
            Err(fault) if fault.kind() == FaultKind::Foreign => {}
            Err(fault) => return Err(fault.into()),
        }
        self.say_gone_past(number, reason);
        Ok(())
    }

    /// Names a collection that is decided once more, once.
    fn say_gone_past(&mut self, number: u64, reason: &str) {
        let said = &mut self.done.gone_past;
        if !said.iter().any(|past| past.number.0 == number) {
            let job = self.job.name();
            tracing::warn!(%job, number, reason, "a collection is damaged, and is decided once more");
            said.push(SkippedCheckpoint {
                number: CheckpointNumber(number),
                reason: reason.to_owned(),
            });
        }
    }

    async fn check_epoch(&mut self, log: Log) -> Result<Epoch, CollectError> {
        let Some(found) = log.epoch else {
            let reason = format!(
                "the newest record, {}, cannot be read, so it is not known who has the job: its next start or checkpoint goes past it",
                log.tail
            );
            return Err(CollectError::Damaged { reason });
        };
        match self.epoch {
            Some(epoch) if epoch != found => Err(CollectError::Fenced {
                job: self.job.name().clone(),
                epoch,
                by: self.job.usurper(log.tail).await,
            }),
            _ => {
                self.epoch = Some(found);
                Ok(found)
            }
        }
    }

    /// Packs first, then notes: a pack that was listed had its writer's note before it, so a note that is not there any
    /// more was taken back, and what its writer committed is seen in what is read of the log afterwards.
    async fn list(&self) -> Result<Listed, StoreFault> {
        let backend = self.job.backend();
        let (manifests, collections) = (self.job.key("manifests"), self.job.key("collections"));
        let (packs, manifests, collections) = futures::try_join!(
            self.job.packs(),
            backend.list(&manifests),
            backend.list(&collections)
        )?;
        let names = |objects: Vec<crate::backend::Listed>| {
            objects.into_iter().map(|object| object.name).collect()
        };
        let notes = self.job.notes().await?;
        // What is renewed from here on is no older than this, however long the attempt takes.
        let at = self.clock.now();
        Ok(Listed {
            packs,
            manifests: names(manifests),
            collections: names(collections),
            notes,
            readers: self.job.readers().await?,
            at,
        })
    }

    /// The history with what was written since; `None` if the protocol asks for a new beginning.
    async fn later(&self, before: &History) -> Result<Option<History>, CollectError> {
        let mut now = before.clone();
        for (number, record) in self.job.records_after(before.log.tail).await? {
            let Ok(record) = record else {
                return Ok(None);
            };
            now.log = Log {
                tail: number,
                epoch: Some(record.epoch),
            };
            match record.kind {
                RecordKind::Checkpoint {
                    manifest,
                    digest,
                    length,
                    ..
                } => now.entries.push(Entry {
                    number,
                    created: record.created,
                    branch: None,
                    manifest: Some(ManifestRef {
                        name: manifest,
                        digest,
                        length,
                    }),
                    damage: None,
                }),
                RecordKind::Completed { .. } => now.completed = Some(number),
                RecordKind::TakenOver { .. } | RecordKind::Collected { .. } => return Ok(None),
            }
        }
        Ok(Some(now))
    }

    async fn mark(
        &self,
        before: &History,
        now: &History,
        listed: &Listed,
        epoch: Epoch,
    ) -> Result<Marked, CollectError> {
        let mut marked = Marked::default();
        for entry in &now.entries {
            let usage = match (&entry.manifest, &entry.damage) {
                (Some(named), None) => self.job.usage(entry.number, named).await?,
                (_, Some(reason)) => Err(reason.clone()),
                (None, None) => Err("its manifest is not known".into()),
            };
            if let Some(named) = &entry.manifest {
                marked.manifests.insert(named.name.clone());
            }
            match usage {
                Ok(usage) => {
                    marked
                        .packs
                        .extend(usage.packs.iter().map(|(pack, _)| pack.id));
                    // What was committed after the listing is not in it.
                    let lost = (usage.packs.iter())
                        .find_map(|(pack, _)| listed.packs.check(pack).err())
                        .filter(|_| entry.number <= before.log.tail);
                    if let Some(reason) = lost {
                        marked.broken.insert(entry.number, reason);
                    }
                    marked.usages.insert(entry.number, usage);
                }
                Err(reason) => {
                    marked.damaged.insert(entry.number, reason);
                }
            }
        }
        for (nonce, note) in &listed.notes {
            marked.noted.insert(*nonce);
            let note = match note {
                Ok(note) if note.epoch < epoch => {
                    marked.dead.push(self.job.note_key(nonce));
                    continue;
                }
                Ok(note) => note,
                Err(reason) => {
                    // What it leans on is not known; should that be swept, its commit fails.
                    tracing::warn!(writer = %nonce, reason, "a writer's note cannot be read");
                    marked.alive.insert(*nonce);
                    continue;
                }
            };
            marked.alive.insert(*nonce);
            marked.adopted.extend(&note.adopts);
            marked.oldest_seen = Some(marked.oldest_seen.map_or(note.seen, |s| s.min(note.seen)));
            for named in &note.leans_on {
                if !marked.leaned.insert(named.name.clone())
                    || marked.manifests.contains(&named.name)
                {
                    continue;
                }
                let Some(number) = collection::number_in(&named.name) else {
                    continue;
                };
                match self.job.usage(number, named).await? {
                    Ok(usage) => {
                        let packs = usage.packs.iter().map(|(pack, _)| pack.id);
                        marked.leaned_packs.extend(packs);
                    }
                    Err(reason) => {
                        // One that is gone was swept before the writer noted it; it will notice.
                        if listed.manifests.contains(&named.name) {
                            let number = CheckpointNumber(number);
                            marked
                                .unknown_leans
                                .push(SkippedCheckpoint { number, reason });
                        }
                    }
                }
            }
        }
        // Of a writer whose packs a living one took, the note stays: it says what is known of them.
        let adopted: Vec<String> = (marked.adopted.iter())
            .map(|nonce| self.job.note_key(nonce))
            .collect();
        marked.dead.retain(|key| !adopted.contains(key));
        for (nonce, note) in &listed.readers {
            match note {
                Some(note) if note.counts(listed.at) => {
                    marked.readers += 1;
                    for named in &note.reads {
                        self.protect_read(&mut marked, named).await?;
                    }
                }
                _ => marked.dead.push(self.job.reader_key(nonce)),
            }
        }
        self.job.trim_usages(&marked);
        Ok(marked)
    }

    /// Leaves alone what a reader reads.
    async fn protect_read(
        &self,
        marked: &mut Marked,
        named: &ManifestRef,
    ) -> Result<(), CollectError> {
        if !marked.leaned.insert(named.name.clone()) {
            return Ok(());
        }
        let Some(number) = collection::number_in(&named.name) else {
            return Ok(());
        };
        // One that cannot be read any more protects nothing: its reader has it in memory at best, and would be told.
        if let Ok(usage) = self.job.usage(number, named).await? {
            let packs = usage.packs.iter().map(|(pack, _)| pack.id);
            marked.leaned_packs.extend(packs);
        }
        Ok(())
    }

    /// Which checkpoints stay visible.
    fn choose(&self, now: &History, marked: &Marked) -> BTreeSet<CheckpointNumber> {
        // A run that has nothing yet leaves nothing behind.
        let newest = now.entries.last().map_or(0, |entry| entry.number);
        let end = now.completed.filter(|&end| end < newest);
        let candidate = |entry: &Entry| Candidate {
            number: CheckpointNumber(entry.number),
            created: entry.created,
            branch: entry
                .branch
                .or_else(|| end.filter(|&end| entry.number < end)),
        };
        let all: Vec<Candidate> = now.entries.iter().map(candidate).collect();
        let whole: Vec<Candidate> = (now.entries.iter())
            .filter(|entry| !marked.is_bad(entry.number))
            .map(candidate)
            .collect();
        let mut kept = (self.keep)(&whole);
        kept.retain(|number| whole.iter().any(|c| c.number == *number));
        kept.extend(whole.last().map(|newest| newest.number));
        // A damaged one stays while it would stay if it were whole: it may become readable again.
        let bad = (self.keep)(&all);
        kept.extend(bad.into_iter().filter(|number| marked.is_bad(number.0)));
        kept.extend(all.last().map(|newest| newest.number));
        kept
    }

    fn sweepable(
        &self,
        listed: &Listed,
        marked: &Marked,
        now: &History,
        removed: &[CheckpointNumber],
    ) -> (Vec<PackId>, Vec<String>) {
        // A dry run says what the rounds after would sweep as well.
        let (mut named_packs, mut named_manifests) =
            (marked.packs.clone(), marked.manifests.clone());
        if self.options.dry_run {
            let kept = |number: &u64| !removed.contains(&CheckpointNumber(*number));
            named_packs = (marked.usages.iter())
                .filter(|(number, _)| kept(number))
                .flat_map(|(_, usage)| usage.packs.iter().map(|(pack, _)| pack.id))
                .collect();
            named_manifests = (now.entries.iter())
                .filter(|entry| kept(&entry.number))
                .filter_map(|entry| Some(entry.manifest.as_ref()?.name.clone()))
                .collect();
        }
        // What an earlier try of this collection wrote is not named yet, and a listing need not show the note that it stands under.
        let own = self.moves.writer;
        let mut packs: Vec<PackId> = (listed.packs.present.keys())
            .filter(|pack| !named_packs.contains(pack) && !marked.protects(pack))
            .filter(|pack| Some(pack.writer) != own)
            .copied()
            .collect();
        packs.sort_unstable();
        let in_the_past =
            |name: &str| collection::number_in(name).is_some_and(|number| number <= now.log.tail);
        let written_by_dead = |name: &str| {
            collection::writer_in(name).is_none_or(|writer| !marked.alive.contains(&writer))
        };
        let mut manifests: Vec<String> = (listed.manifests.iter())
            .filter(|name| in_the_past(name) && written_by_dead(name))
            .filter(|name| own.is_none() || collection::writer_in(name) != own)
            .filter(|name| !named_manifests.contains(*name) && !marked.leaned.contains(*name))
            .cloned()
            .collect();
        manifests.sort_unstable();
        (packs, manifests)
    }

    /// Makes the collection part of the history. Whether it is.
    async fn append(
        &mut self,
        collection: &Collection,
        epoch: Epoch,
        removed: u64,
    ) -> Result<bool, CollectError> {
        let job = self.job;
        let bytes = collection.encode(job.crypt())?;
        let digest = Digest::of(&bytes);
        let name = collection::name(collection.number, &digest);
        let length = bytes.len() as u64;
        job.backend()
            .write(&job.key(&format!("collections/{name}")), bytes)
            .await?;
        let record = HeadRecord {
            number: collection.number,
            epoch,
            created: self.clock.now(),
            nonce: job.nonce(),
            kind: RecordKind::Collected {
                collection: name,
                digest,
                length,
                removed,
                swept: (collection.packs.len() + collection.manifests.len()) as u64,
            },
        };
        job.check_expected_with(collection.number - 1).await?;
        let mut log = job.inner.log.lock().await;
        match job.append(&record).await {
            Ok(Appended::Done) => {
                if log.is_none_or(|log| log.tail < record.number) {
                    *log = Some(Log {
                        tail: record.number,
                        epoch: Some(epoch),
                    });
                }
                Ok(true)
            }
            Ok(Appended::Lost) => Ok(false),
            Err(error) => {
                // It may stand there or not.
                *log = None;
                Err(error.into())
            }
        }
    }

    async fn delete_swept(&self, collection: &Collection) -> Result<(), StoreFault> {
        let packs = (collection.packs.iter()).map(|pack| self.job.pack_key(pack));
        for (key, cache) in packs.clone().flat_map(|key| {
            let caches = self.job.options().caches.iter();
            caches.map(move |cache| (key.clone(), cache))
        }) {
            cache.remove(&key);
        }
        let manifests =
            (collection.manifests.iter()).map(|name| self.job.key(&format!("manifests/{name}")));
        self.delete_all(packs.chain(manifests).collect()).await
    }

    async fn delete_all(&self, keys: Vec<String>) -> Result<(), StoreFault> {
        let backend = self.job.backend();
        stream::iter(keys)
            .map(|key| async move {
                self.way.turn().await;
                backend.delete(&key).await
            })
            .buffer_unordered(DELETES)
            .try_collect()
            .await
    }

    /// What needs no decision: notes of the dead, collections that a newer one replaced, quarantine notes of packs that
    /// are gone, uploads that were never finished.
    async fn clean(
        &mut self,
        listed: &Listed,
        marked: &Marked,
        now: &History,
        epoch: Epoch,
    ) -> Result<(), CollectError> {
        let job = self.job;
        let mut keys: Vec<String> = marked.dead.clone();
        // A writer compares with all collections since its note; who began later reads the newest one. Those after the
        // newest were never decided, as their numbers went to other records.
        let newest = now.collection.as_ref();
        let seen = marked.oldest_seen.unwrap_or(now.log.tail);
        let old = listed.collections.iter().filter(|name| {
            let Some(number) = collection::number_in(name) else {
                return false;
            };
            let undecided = newest.is_none_or(|(newest, _)| number > *newest);
            // That of a record which cannot be read may have been decided.
            if now.lost.is_some_and(|lost| number <= lost) && undecided {
                return false;
            }
            newest.is_none_or(|(_, newest)| *name != newest)
                && number <= now.log.tail
                && (undecided || number <= seen)
        });
        keys.extend(old.map(|name| job.key(&format!("collections/{name}"))));
        let gone = listed.packs.quarantined.iter().filter(|pack| {
            !listed.packs.present.contains_key(pack)
                && !marked.packs.contains(pack)
                && !marked.protects(pack)
        });
        keys.extend(gone.map(|pack| job.key(&format!("quarantine/{pack}"))));
        let gone = (listed.packs.manifests.iter())
            .filter(|name| !listed.manifests.contains(name) && !marked.manifests.contains(*name));
        keys.extend(gone.map(|name| job.key(&format!("quarantine/{name}"))));
        self.done.other_objects += keys.len() as u64;
        self.delete_all(keys).await?;
        // Who began after the notes were listed writes under a later number, or under a note of its own.
        for below in ["manifests", "collections"] {
            if !marked.alive.is_empty() {
                break;
            }
            for upload in job.backend().unfinished(&job.key(below)).await? {
                let number = collection::number_in(&upload.name);
                let mut dead = number.is_some_and(|number| number <= now.log.tail);
                if dead && let Some(writer) = collection::writer_in(&upload.name) {
                    dead = !job.note_stands(&writer, epoch).await?;
                }
                if dead {
                    job.backend().end_unfinished(&upload).await?;
                    self.done.unfinished_uploads += 1;
                }
            }
        }
        let unfinished = job.backend().unfinished(&job.key("packs")).await?;
        for upload in unfinished {
            let dead = PackId::parse(&upload.name)
                .is_some_and(|pack| !marked.alive.contains(&pack.writer));
            // One whose writer began after the notes were listed has no note in the list: it is looked at once more.
            if dead && let Some(pack) = PackId::parse(&upload.name) {
                let note = job.note_stands(&pack.writer, epoch).await?;
                if !note {
                    job.backend().end_unfinished(&upload).await?;
                    self.done.unfinished_uploads += 1;
                }
            }
        }
        Ok(())
    }

    /// Copies the live chunks of half-empty packs into new ones.
    async fn repack(
        &mut self,
        kept: &[&Entry],
        marked: &Marked,
        packs: &PackSet,
        epoch: Epoch,
        seen: u64,
    ) -> Result<(), CollectError> {
        let share = u64::from(self.options.repack_below_percent.min(100));
        let sparse = |length: u64, live: u64| live * 100 < length * share;
        let mut most: BTreeMap<PackId, (u64, u64)> = BTreeMap::new();
        for entry in kept {
            let Some(usage) = marked.usages.get(&entry.number) else {
                continue;
            };
            for (pack, live) in &usage.packs {
                let known = most.entry(pack.id).or_insert((pack.length, 0));
                known.1 = known.1.max(*live);
            }
        }
        most.retain(|id, (length, live)| {
            let sound = packs.check(&PackEntry {
                id: *id,
                length: *length,
            });
            sound.is_ok() && sparse(*length, *live)
        });
        if most.is_empty() {
            return Ok(());
        }
        // No single manifest needs half of these; what all of them together need is in the manifests.
        let mut live: BTreeMap<PackId, BTreeMap<u64, Wanted>> = BTreeMap::new();
        for entry in kept {
            let (Some(usage), Some(named)) = (marked.usages.get(&entry.number), &entry.manifest)
            else {
                continue;
            };
            if !usage
                .packs
                .iter()
                .any(|(pack, _)| most.contains_key(&pack.id))
            {
                continue;
            }
            let manifest = match self.job.read_manifest(entry.number, named).await? {
                Ok(manifest) => manifest,
                Err(reason) => return Err(self.unreadable(seen, reason).await?),
            };
            for (digest, location) in manifest.locations() {
                if let Some(pack) = location.pack
                    && most.contains_key(&pack)
                {
                    live.entry(pack)
                        .or_default()
                        .insert(location.offset, Wanted { digest, location });
                }
            }
        }
        let mut budget = self.options.repack_bytes;
        let mut chosen = Vec::new();
        for (pack, wanted) in live {
            let bytes: u64 = wanted.values().map(|w| u64::from(w.location.stored)).sum();
            let length = most.get(&pack).map_or(0, |(length, _)| *length);
            // What would be written instead: a pack without dead chunks is never worth it, however small it is.
            let again = pack::length_of(self.job.crypt(), wanted.len() as u64, bytes);
            if sparse(length, again) && bytes <= budget {
                budget -= bytes;
                chosen.push((pack, wanted));
            }
        }
        if chosen.is_empty() || self.options.dry_run {
            self.done.repacked_packs = chosen.len() as u64;
            self.done.repacked_bytes = self.options.repack_bytes - budget;
            return Ok(());
        }
        let writer = self.job.nonce();
        self.moves.note = Some(self.job.note_collector(writer, epoch, seen).await?);
        self.moves.writer = Some(writer);
        self.moves.checked = seen;
        let mut open: Option<PackBuilder> = None;
        let mut sequence = 0;
        for (pack, wanted) in chosen {
            self.way.turn().await;
            let Some(chunks) = self.fetch(&pack, wanted).await? else {
                continue;
            };
            self.moves.packs += 1;
            for (wanted, stored) in chunks {
                let Wanted { digest, location } = wanted;
                let full = open.as_ref().is_some_and(|open| {
                    open.is_full()
                        || open.length() + stored.len() as u64 > self.job.options().pack_size
                });
                if full && let Some(pack) = open.take() {
                    self.upload(pack).await?;
                }
                let builder = open.get_or_insert_with(|| {
                    let id = PackId { writer, sequence };
                    sequence += 1;
                    PackBuilder::new(self.job.crypt(), id)
                });
                self.moves.bytes += stored.len() as u64;
                let to = builder.push(digest, location.codec, [stored], location.raw);
                self.moves.to.insert((pack, location.offset), to);
            }
        }
        if let Some(pack) = open {
            self.upload(pack).await?;
        }
        Ok(())
    }

    /// What it means that a manifest cannot be read: damage, or that another collector repacked it meanwhile.
    async fn unreadable(&self, tail: u64, reason: String) -> Result<CollectError, StoreFault> {
        if self.job.grew_beyond(tail).await? {
            Ok(CollectError::Busy)
        } else {
            Ok(CollectError::Damaged { reason })
        }
    }

    /// Whether what an earlier attempt moved is still there for this one: the same comparison that a commit makes.
    async fn moves_stand(&mut self, tail: u64) -> Result<bool, StoreFault> {
        if self.moves.lengths.is_empty() {
            return Ok(true);
        }
        let packs: Vec<PackEntry> = (self.moves.lengths.iter())
            .map(|(&id, &length)| PackEntry { id, length })
            .collect();
        let swept = (self.job)
            .swept_between(self.moves.checked, tail, &packs)
            .await?;
        self.moves.checked = tail;
        Ok(swept.is_none())
    }

    async fn upload(&mut self, pack: PackBuilder) -> Result<(), StoreFault> {
        let id = pack.id();
        let key = self.job.pack_key(&id);
        let (pieces, length) = pack.finish().ok_or_else(|| sealing_failed(&key))?;
        self.job
            .backend()
            .write_pack(&key, pieces, self.job.options())
            .await?;
        self.moves.lengths.insert(id, length);
        Ok(())
    }

    /// The stored bytes of some chunks of a pack, each checked; `None` if the pack is damaged, which is then left as it
    /// is, for verification to find.
    async fn fetch(
        &self,
        pack: &PackId,
        wanted: BTreeMap<u64, Wanted>,
    ) -> Result<Option<Vec<(Wanted, bytes::Bytes)>>, CollectError> {
        let key = self.job.pack_key(pack);
        let wanted: Vec<Wanted> = wanted.into_values().collect();
        let mut chunks = Vec::with_capacity(wanted.len());
        let mut rest = wanted.as_slice();
        while let Some(first) = rest.first() {
            let start = first.location.offset;
            let near = rest
                .partition_point(|w| w.location.end() <= start + REPACK_FETCH)
                .max(1);
            let (span, after) = rest.split_at(near);
            rest = after;
            let end = span.iter().map(|w| w.location.end()).max().unwrap_or(start);
            let bytes = match self.job.backend().read_range(&key, start..end).await {
                Ok(bytes) => bytes,
                Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                    return Ok(None);
                }
                Err(fault) => return Err(fault.into()),
            };
            let span = span.to_vec();
            let crypt = self.job.crypt().clone();
            let compute = self.job.options().compute;
            let checked = compute.run(move || check(&crypt, &span, &bytes));
            let found = checked.await.map_err(|detail| {
                StoreFault::with_kind("read", key.clone(), FaultKind::Transient, detail)
            })?;
            match found {
                Ok(found) => chunks.extend(found),
                Err(reason) => {
                    tracing::warn!(%pack, reason, "a pack that was to be repacked is damaged");
                    return Ok(None);
                }
            }
        }
        Ok(Some(chunks))
    }

    /// Writes the manifests of checkpoints whose chunks moved anew. Which they are now, by checkpoint.
    async fn rewrite(
        &self,
        kept: &[&Entry],
        marked: &Marked,
        tail: u64,
    ) -> Result<BTreeMap<u64, ManifestRef>, CollectError> {
        let Some(writer) = self.moves.writer else {
            return Ok(BTreeMap::new());
        };
        let from: HashSet<PackId> = self.moves.to.keys().map(|(pack, _)| *pack).collect();
        let mut moved = BTreeMap::new();
        for entry in kept {
            let (Some(usage), Some(named)) = (marked.usages.get(&entry.number), &entry.manifest)
            else {
                continue;
            };
            if !usage.packs.iter().any(|(pack, _)| from.contains(&pack.id)) {
                continue;
            }
            let manifest = match self.job.read_manifest(entry.number, named).await? {
                Ok(manifest) => manifest,
                Err(reason) => return Err(self.unreadable(tail, reason).await?),
            };
            let manifest = manifest.relocated(
                &self.moves.to,
                &self.moves.lengths,
                self.job.crypt().overhead(),
            )?;
            let bytes = bytes::Bytes::from(manifest.encode(self.job.crypt())?);
            let digest = Digest::of(&bytes);
            let name = format!("{}-{writer}", collection::name(entry.number, &digest));
            let length = bytes.len() as u64;
            let key = self.job.key(&format!("manifests/{name}"));
            self.job.backend().write(&key, bytes).await?;
            moved.insert(
                entry.number,
                ManifestRef {
                    name,
                    digest,
                    length,
                },
            );
        }
        Ok(moved)
    }
}

/// A chunk to be moved.
#[derive(Debug, Clone, Copy)]
struct Wanted {
    digest: Digest,
    location: Location,
}

fn check(
    crypt: &Crypt,
    span: &[Wanted],
    bytes: &bytes::Bytes,
) -> Result<Vec<(Wanted, bytes::Bytes)>, String> {
    let start = span.first().map_or(0, |w| w.location.offset);
    let mut found = Vec::with_capacity(span.len());
    for wanted in span {
        let from = (wanted.location.offset - start) as usize;
        let to = from + wanted.location.stored as usize;
        if to > bytes.len() {
            return Err("it ends before a chunk that it holds".into());
        }
        let stored = bytes.slice(from..to);
        let Location { codec, raw, .. } = wanted.location;
        let encoded = crypt.open_chunk(&wanted.digest, codec, raw, stored.clone())?;
        let raw = codec::decode(codec, encoded, raw)?;
        if crypt.name(&raw) != wanted.digest {
            return Err(format!("chunk {} has other bytes", wanted.digest));
        }
        found.push((*wanted, stored));
    }
    Ok(found)
}

/// What must stay.
#[derive(Default)]
pub(crate) struct Marked {
    /// What each visible checkpoint names, if it can be read.
    usages: HashMap<u64, Arc<Usage>>,
    /// All packs and manifests that visible checkpoints name.
    packs: HashSet<PackId>,
    manifests: HashSet<String>,
    /// Checkpoints of which it is not known what they name.
    damaged: HashMap<u64, String>,
    /// Checkpoints that name packs that are not whole.
    broken: HashMap<u64, String>,
    /// Writers whose notes stand, dead or alive.
    noted: HashSet<Nonce>,
    /// Living writers, and what they lean on.
    alive: HashSet<Nonce>,
    leaned: HashSet<String>,
    leaned_packs: HashSet<PackId>,
    unknown_leans: Vec<SkippedCheckpoint>,
    oldest_seen: Option<u64>,
    /// Writers whose packs a living one took over.
    adopted: HashSet<Nonce>,
    /// How many readers are at it.
    readers: u64,
    /// Keys of notes of writers that can never commit again, and of readers that did not say for long that they are
    /// still at it.
    dead: Vec<String>,
}

impl Marked {
    fn is_bad(&self, number: u64) -> bool {
        self.damaged.contains_key(&number) || self.broken.contains_key(&number)
    }

    /// Whether a writer or reader may need a pack. Packs of a dead writer whose note still stands may be about to be
    /// gone on with (see `leftovers`): the note goes first, with this collection, and the packs with the next one.
    fn protects(&self, pack: &PackId) -> bool {
        self.noted.contains(&pack.writer)
            || self.adopted.contains(&pack.writer)
            || self.leaned_packs.contains(pack)
    }

    fn protected(&self, packs: &PackSet) -> u64 {
        (packs.present.keys())
            .filter(|pack| !self.packs.contains(pack) && self.protects(pack))
            .count() as u64
    }
}

impl Job {
    /// What a manifest names; remembered, as it never changes.
    async fn usage(
        &self,
        number: u64,
        named: &ManifestRef,
    ) -> Result<Result<Arc<Usage>, String>, StoreFault> {
        let known = self.lock_usages().get(&named.name).cloned();
        if let Some(usage) = known
            && usage.digest == named.digest
        {
            return Ok(Ok(usage));
        }
        let manifest = match self.read_manifest(number, named).await? {
            Ok(manifest) => manifest,
            Err(reason) => return Ok(Err(reason)),
        };
        let mut live: HashMap<PackId, u64> = HashMap::new();
        for (_, location) in manifest.locations() {
            if let Some(pack) = location.pack {
                *live.entry(pack).or_default() += u64::from(location.stored);
            }
        }
        let packs = manifest.packs.iter();
        let usage = Arc::new(Usage {
            digest: named.digest,
            packs: packs
                .map(|pack| (*pack, live.get(&pack.id).copied().unwrap_or(0)))
                .collect(),
        });
        self.lock_usages().insert(named.name.clone(), usage.clone());
        Ok(Ok(usage))
    }

    fn lock_usages(&self) -> std::sync::MutexGuard<'_, HashMap<String, Arc<Usage>>> {
        self.inner
            .usages
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn trim_usages(&self, marked: &Marked) {
        self.lock_usages()
            .retain(|name, _| marked.manifests.contains(name) || marked.leaned.contains(name));
    }

    /// Whether a writer's note stands, of an epoch that is not over.
    async fn note_stands(&self, writer: &Nonce, epoch: Epoch) -> Result<bool, StoreFault> {
        let key = self.note_key(writer);
        match self
            .backend()
            .read(&key, collection::NOTE_KIND.max_object())
            .await
        {
            Ok(bytes) => {
                let note = collection::WriterNote::decode(self.crypt(), writer, &bytes);
                Ok(note.map_or(true, |note| note.epoch >= epoch))
            }
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(false),
            // As of one that cannot be understood.
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(true),
            Err(fault) => Err(fault),
        }
    }
}
