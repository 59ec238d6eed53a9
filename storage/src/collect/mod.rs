//! Collection: retention makes old checkpoints invisible, mark and sweep deletes what nothing visible needs, half-empty packs are
//! repacked, and what dead writers left behind is removed.
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
//! 1. A **writer** notes in `writers/<nonce>` its epoch and the manifests that it may reference, *then* reads the log to its
//!    end; if a collection stands there that it did not know, it drops what that took away. Its first pack comes after
//!    that. It takes the note back when it has ended.
//! 2. A **collector** reads the log (state A), *then* lists packs, manifests and notes, *then* reads the log again (B).
//!    A collection between A and B makes it start over.
//! 3. It may give up for deletion (**sweep**) a pack that was listed, that no checkpoint visible in A or B names, that no living
//!    writer references and that no living writer made. A writer lives if its note stands and its epoch is the newest: one of an
//!    older epoch can never commit again, and every start of a sidecar begins a new epoch. The same holds for manifests.
//! 4. It writes down what it keeps and what it sweeps and appends a record *collected* as number B + 1: created conditionally, so
//!    it stands only if nothing was committed and nobody took over since B. Only then does it delete. If a checkpoint came first, it
//!    reads the log once more, as its new B, and decides again by the listing that it has: so it also comes to an end beside a writer
//!    that commits more often than a store can be listed.
//! 5. A **commit** compares its packs with what was swept between the log that its writer read and the number that it
//!    tries, and fails rather than name a swept pack.
//!
//! # Why it is safe
//!
//! Of a commit and a collection one comes first in the log. If the commit does, the collector's append fails and it
//! looks again. If the collection does, the commit meets it (5). This needs no notes, no clocks and no luck: a swept pack
//! is never named again, as names are never used twice; so it does not matter who deletes it, when, or how often.
//!
//! Notes only decide that commits do not fail in vain. A writer whose note was not listed wrote it after A, so it references what
//! was visible in A or later; all of that is protected (3) until a collection that it saw. It stores what it then lacks itself.
//!
//! # Readers, and what unfinished checkpoints left
//!
//! Notes of readers protect what they name (see `job::hold`); the note of a writer, dead or alive, protects its packs, so that
//! the next checkpoint can continue with them (see `writer::leftovers`).
//!
//! # What retention removes goes one collection later
//!
//! A checkpoint that a collection stops keeping was still visible in its A, so its packs are swept by the next one:
//! [`CollectOptions::rounds`].
//!
//! # Fencing
//!
//! A record of a collection belongs to the epoch in force and counts as a write: a collector whose job was taken over is told so
//! and stops. What it still deletes was swept while it held the job, so nobody names it.
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
//! A newest collection that is damaged is passed over: what it kept and removed is decided once more, from the log and from what
//! there is. What it gave up for deletion is not known, and whoever decided it may still be deleting: so the new one says that
//! nobody references the checkpoints before it (`lost`), until retention has let them go. A writer that began before it meets it
//! in its commit, and fails. The same holds where the record that names it is damaged. A collection that is missing altogether,
//! or of a newer phos-ft, is not passed over: the store may be half a copy, or this phos-ft may be too old.

mod decide;
mod look;
mod mark;
mod repack;
mod sweep;

use std::collections::{BTreeMap, BTreeSet, HashSet};

use async_recursion::async_recursion as boxed;
use futures::future::BoxFuture;
use serde::Serialize;

use self::look::Listed;
use self::mark::Marked;
use self::repack::Moves;
use crate::collection::{Collection, Kept, ManifestRef};
use crate::envelope::EnvelopeError;
use crate::fault::StoreFault;
use crate::job::{Entry, History, Job, JobError, SkippedCheckpoint};
use crate::manifest::ManifestError;
use crate::medium::Medium;
use crate::names::{CheckpointNumber, Epoch, JobName, PackId, UnixMillis};

/// How often a collector starts over because others wrote meanwhile, before it gives up.
const ATTEMPTS: usize = 32;
/// How often it decides by one listing, when checkpoints are committed meanwhile.
const DECISIONS: usize = 8;

/// The rules of a collection: what to keep, and for how long to spare what is unfinished.
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

/// Why a collection ended early. Whatever was decided before stands, and is continued by the next one.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// Someone else took the job over.
    #[error("not collected: job {job} was taken over{by}: epoch {epoch} is no longer the newest")]
    Fenced {
        /// The job that was taken over.
        job: JobName,
        /// The epoch in which the collection began.
        epoch: Epoch,
        /// Who took it over, if that is known: " by HOLDER".
        by: String,
    },
    /// The log or the newest collection cannot be read.
    #[error(
        "not collected: {reason}; nothing was deleted, checkpoints can still be taken and restored"
    )]
    Damaged {
        /// What cannot be read, and why.
        reason: String,
    },
    /// Others kept writing.
    #[error("not collected: the history changed again and again meanwhile; try again later")]
    Busy,
    /// A request to the store failed.
    #[error("not collected to the end: {0}; what is left is done by the next collection")]
    Store(#[from] StoreFault),
    /// A record or manifest could not be written down.
    #[error("not collected: {0}")]
    Encode(#[from] EnvelopeError),
    /// A new version of a manifest could not be made.
    #[error("not collected: {0}")]
    Manifest(#[from] ManifestError),
    /// The job's history could not be read.
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

/// What a collection did, or in a dry run would do.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Collected {
    /// Checkpoints that are no longer visible, oldest first.
    pub removed: Vec<CheckpointNumber>,
    /// Checkpoints that are kept, oldest first.
    pub kept: Vec<CheckpointNumber>,
    /// The number of packs that were deleted.
    pub packs: u64,
    /// The length of the deleted packs, in bytes.
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
    /// The checkpoint's number: a greater one is newer.
    pub number: CheckpointNumber,
    /// When the checkpoint was committed, by the clock of its writer.
    pub created: UnixMillis,
    /// The branch that it is on; `None`: the current one. Each is to be thinned out for itself. Runs that ended before the
    /// current one, which has checkpoints, count as a branch, too, named by the record of the last end.
    pub branch: Option<u64>,
}

/// The numbers to keep, of those given (oldest first). The newest is kept whatever it says.
pub type Keep<'a> = dyn Fn(&[Candidate]) -> BTreeSet<CheckpointNumber> + Send + Sync + 'a;

/// Asked before each step of a collection, so that it is not in the way of something more important.
pub trait GiveWay: Send + Sync {
    /// Returns when the collection may continue.
    fn turn(&self) -> BoxFuture<'_, ()>;
}

/// What time it is. A collection may take hours, and asks whenever it compares.
pub trait Clock: Send + Sync {
    /// The time now, in ms since 1970 UTC.
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

/// A gate that lets every step of a collection begin at once: nothing is more important.
#[derive(Debug, Clone, Copy)]
pub struct Always;

impl GiveWay for Always {
    fn turn(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// The outcome of one round of a collection.
struct Round {
    /// Whether another one could sweep more.
    more: bool,
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
        self.collect_by(keep, options, &clock, way).await
    }

    #[boxed]
    async fn collect_by(
        &self,
        keep: &Keep<'_>,
        options: CollectOptions,
        clock: &dyn Clock,
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
            clock,
            epoch: options.epoch,
            moves: Moves::default(),
            done: Collected::default(),
        };
        let mut outcome = Ok(());
        for round in 0..options.rounds.max(1) {
            let turn = match round {
                0 => Turn::First,
                _ => Turn::Later,
            };
            match collector.round(turn).await {
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

/// Whether a round is the first of its collection, which also cleans up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    First,
    Later,
}

/// The outcome of one decision.
enum Outcome {
    /// It is part of the history, or there was nothing to decide.
    Done(Round),
    /// Something was committed first.
    TooLate,
    /// What was listed no longer fits the history.
    ListAgain,
}

/// The state of the job that an attempt decides on.
struct Seen {
    /// The log before anything was listed: A of the protocol.
    before: History,
    listed: Listed,
    /// The log after the listing: B of the protocol.
    now: History,
    epoch: Epoch,
    /// Whether an earlier collection is damaged and is decided once more.
    goes_past: bool,
}

impl Seen {
    /// The entries of these checkpoints, oldest first.
    fn entries_of(&self, kept: &BTreeSet<CheckpointNumber>) -> Vec<&Entry> {
        let is_kept = |entry: &&Entry| kept.contains(&CheckpointNumber(entry.number));
        self.now.entries.iter().filter(is_kept).collect()
    }
}

/// The decision of an attempt, to be recorded in the log.
struct Decision<'a> {
    kept: Vec<&'a Entry>,
    removed: Vec<CheckpointNumber>,
    /// The new manifests that were written, by checkpoint.
    moved: BTreeMap<u64, ManifestRef>,
    packs: Vec<PackId>,
    /// The number of bytes in these packs.
    pack_bytes: u64,
    manifests: Vec<String>,
}

impl Decision<'_> {
    /// Whether anything goes.
    const fn is_anything(&self) -> bool {
        !self.removed.is_empty() || !self.packs.is_empty() || !self.manifests.is_empty()
    }

    /// The decision as it is written down.
    fn collection(&self, job: &Job, now: &History) -> Collection {
        let known: Vec<u64> = (self.kept.iter().map(|entry| entry.number))
            .chain(now.completed)
            .collect();
        Collection {
            job: job.name().clone(),
            number: now.log.tail + 1,
            kept: (self.kept.iter())
                .map(|entry| {
                    let manifest = self.moved.get(&entry.number).or(entry.manifest.as_ref());
                    Kept {
                        number: entry.number,
                        manifest: manifest.cloned(),
                    }
                })
                .collect(),
            completed: now.completed,
            packs: self.packs.clone(),
            manifests: self.manifests.clone(),
            forks: now.forks.needed_by(&known),
            lost: (now.lost).filter(|lost| self.kept.iter().any(|entry| entry.number < *lost)),
        }
    }
}

impl Collector<'_> {
    async fn round(&mut self, turn: Turn) -> Result<Round, CollectError> {
        for _ in 0..ATTEMPTS {
            match self.attempt(turn).await {
                Ok(Some(round)) => return Ok(round),
                Ok(None) | Err(CollectError::Busy) => {}
                Err(error) => return Err(error),
            }
        }
        Err(CollectError::Busy)
    }

    /// One attempt; `None`: the history changed, look again.
    async fn attempt(&mut self, turn: Turn) -> Result<Option<Round>, CollectError> {
        self.way.turn().await;
        let before = self.job.history().await?;
        if let Some((number, reason)) = &before.damage {
            self.go_past(*number, reason, &before).await?;
        }
        if before.log.tail == 0 {
            // Nothing was ever written.
            return Ok(Some(Round { more: false }));
        }
        let mut look = self.look(before).await?;
        let mut decisions = 0;
        while let Some(seen) = look {
            match self.decide(turn, &seen).await? {
                Outcome::Done(round) => return Ok(Some(round)),
                Outcome::ListAgain => break,
                Outcome::TooLate => decisions += 1,
            }
            if decisions == DECISIONS {
                break;
            }
            self.way.turn().await;
            look = self.look_on(seen).await?;
        }
        Ok(None)
    }

    /// Decides on what was seen, and carries it out if nothing was committed meanwhile.
    async fn decide(&mut self, turn: Turn, seen: &Seen) -> Result<Outcome, CollectError> {
        let mut marked = self.mark(seen).await?;
        let kept = self.choose(&seen.now, &marked);
        let blocked = Self::blocked_by(seen, &kept, &mut marked);
        if !blocked.is_empty() && self.went_meanwhile(seen, &blocked).await? {
            return Ok(Outcome::ListAgain);
        }
        let decision = self.decision(seen, &marked, &kept, &blocked).await?;
        self.done.kept = kept.iter().copied().collect();
        self.done.blocked = blocked;
        self.done.protected_packs = marked.protected(&seen.listed.packs);
        self.done.readers = marked.readers;
        if self.options.dry_run {
            self.done.packs = decision.packs.len() as u64;
            self.done.pack_bytes = decision.pack_bytes;
            self.done.other_objects = decision.manifests.len() as u64;
            self.done.removed = decision.removed;
            return Ok(Outcome::Done(Round { more: false }));
        }
        let changes = decision.is_anything() || seen.goes_past || !decision.moved.is_empty();
        if changes && !self.carry_out(seen, &decision).await? {
            return Ok(Outcome::TooLate);
        }
        if turn == Turn::First {
            self.clean(seen, &marked).await?;
        }
        Ok(Outcome::Done(Round {
            more: !decision.removed.is_empty()
                || !decision.moved.is_empty()
                || !marked.dead.is_empty(),
        }))
    }

    /// What is to be decided on; `None`: the history changed.
    async fn look(&mut self, before: History) -> Result<Option<Seen>, CollectError> {
        let job = self.job;
        let epoch = self.check_epoch(before.log).await?;
        if !self.options.dry_run {
            job.remove_notes_of_ended().await?;
        }
        let listed = self.list().await?;
        self.seen(before, listed, epoch).await
    }

    /// The same by what was listed before, when there are new checkpoints.
    async fn look_on(&mut self, seen: Seen) -> Result<Option<Seen>, CollectError> {
        self.seen(seen.before, seen.listed, seen.epoch).await
    }

    /// Reads what was written since the history that is given.
    async fn seen(
        &mut self,
        before: History,
        listed: Listed,
        epoch: Epoch,
    ) -> Result<Option<Seen>, CollectError> {
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
        Ok(Some(Seen {
            before,
            listed,
            now,
            epoch,
            goes_past,
        }))
    }

    /// Repacks, and finds what can be given up.
    async fn decision<'a>(
        &mut self,
        seen: &'a Seen,
        marked: &Marked,
        kept: &BTreeSet<CheckpointNumber>,
        blocked: &[SkippedCheckpoint],
    ) -> Result<Decision<'a>, CollectError> {
        let kept = seen.entries_of(kept);
        let is_kept = |number: u64| kept.iter().any(|entry| entry.number == number);
        let removed: Vec<CheckpointNumber> = (seen.now.entries.iter())
            .filter(|entry| !is_kept(entry.number))
            .map(|entry| CheckpointNumber(entry.number))
            .collect();
        // Repack, under a note, so that nobody else sweeps what it makes.
        let repack = blocked.is_empty() && self.options.repack_below_percent > 0;
        if repack && self.moves.to.is_empty() {
            self.repack(&kept, marked, seen).await?;
        }
        let mut moved = BTreeMap::new();
        if !self.moves.to.is_empty() {
            moved = self.rewrite(&kept, marked, seen.now.log.tail).await?;
        }
        let (packs, manifests) = if blocked.is_empty() {
            self.sweepable(&seen.listed, marked, &seen.now, &removed)
        } else {
            (Vec::new(), Vec::new())
        };
        // The last look before it is written down: better no sidecar than a checkpoint without its packs.
        let needed: HashSet<PackId> = (kept.iter())
            .filter_map(|entry| marked.usages.get(&entry.number))
            .flat_map(|usage| usage.packs.iter().map(|(pack, _)| pack.id))
            .collect();
        assert!(
            packs.iter().all(|pack| !needed.contains(pack)),
            "a pack that a kept checkpoint names is to be swept"
        );
        let sizes = packs
            .iter()
            .filter_map(|id| seen.listed.packs.present.get(id));
        Ok(Decision {
            pack_bytes: sizes.sum(),
            kept,
            removed,
            moved,
            packs,
            manifests,
        })
    }

    /// Writes the decision into the log and deletes what it gave up. Whether it is part of the history.
    async fn carry_out(
        &mut self,
        seen: &Seen,
        decision: &Decision<'_>,
    ) -> Result<bool, CollectError> {
        let collection = decision.collection(self.job, &seen.now);
        let removed = decision.removed.len() as u64;
        if !self.append(&collection, seen.epoch, removed).await? {
            return Ok(false);
        }
        // From here on it is decided; what follows may be done by anybody, at any time.
        self.done.removed.extend(&decision.removed);
        self.done.repacked_packs += self.moves.packs;
        self.done.repacked_bytes += self.moves.bytes;
        if let Some(note) = std::mem::take(&mut self.moves).note {
            note.remove().await;
        }
        self.delete_swept(&collection).await?;
        self.done.packs += collection.packs.len() as u64;
        self.done.pack_bytes += decision.pack_bytes;
        self.done.other_objects += collection.manifests.len() as u64;
        Ok(true)
    }
}
