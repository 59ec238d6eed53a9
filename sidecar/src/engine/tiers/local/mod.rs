//! The tier on this machine, with `--remote-interval`: a store of its own below the state directory, where checkpoints go first.
//! Which of them are copied to the store that survives the machine is decided in `replicate`.
//!
//! ```text
//! <state-dir>/local/<job>/<store>/lineage.json    which history of the store the checkpoints here belong to
//! <state-dir>/local/<job>/<store>/<id>/           a store like any other, with one job
//! <state-dir>/local/<job>/<store>/aside-<n>-<id>/ one that was set aside
//! ```
//!
//! `<store>` is a digest of the store's address: a job that is begun with another store leaves this tier alone.
//!
//! # Consistency
//!
//! The store's log alone says who has the job. Checkpoints here count only if nobody else had it since they were made: the
//! lineage names the newest epoch of the store of which that is known, and that epoch must be in force, or all take-overs since
//! must be ours. Where one of them is another's, the checkpoints belong to a history that was not continued: they are deleted,
//! and a new tier begins under another name.
//!
//! Nothing is deleted on the word of a lineage that cannot be understood, nor on that of a store that does not tell: its newest
//! record is damaged, or one that has to be read is, or its history is empty or shorter than what was seen. There the tier is set
//! aside: it is neither resumed nor deleted, a new one begins, and a person is told where the old one is. Its directory has
//! another name from then on. So the fact that it is set aside is not lost with a lineage, and can be recorded on a full disk.
//! The newest two are kept.
//!
//! # Crash consistency
//!
//! The lineage is replaced as a whole. Before a take-over it says that one is under way and which epoch it found in force, and
//! the record of the take-over in the store names this tier. So a death of this process between the two is understood, even many
//! times in a row: each start that finds such a record notes its epoch before it writes one of its own. The number of the record
//! is not needed for that. Others may write records between the look and the take-over (a collection does, without having the
//! job), and the take-over then has a greater number than was expected.
//!
//! Where the lineage cannot be kept up to date (a full disk), it is removed: this process still reads what counts, later ones
//! do not believe it.

mod lineage;

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use phos_storage::{
    CheckpointNumber, Epoch, Holder, Job, JobError, JobName, JobState, Store, StoreOptions,
    TakenOver, UnixMillis,
};

pub(in crate::engine) use self::lineage::LocalTierError;
use self::lineage::{FILE, Lineage, move_aside, remove_all_but};
use crate::engine::Tier;
use crate::engine::history::branch::{GoBack, take_over};
use crate::engine::history::holder::tier_of;
use crate::engine::unix_millis;

/// Checkpoints kept here: the newest, and one to fall back to.
pub(in crate::engine) const KEPT: u32 = 2;

/// Whose the job was since the checkpoints here were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::engine) enum Standing {
    /// Nobody else had it: the checkpoints here count.
    Ours,
    /// Somebody else's, or there are none: with the next take-over they are deleted.
    Others,
    /// Who had it is not known, for this reason: with the next take-over the checkpoints here are set aside.
    Unknown(String),
}

/// The tier on this machine: its store, its lineage, and whether it counts.
pub(in crate::engine) struct LocalTier {
    directory: PathBuf,
    lineage: Lineage,
    /// Those that this process found or began before: what stands in the file may be one of them, where a later one could
    /// not be written.
    before: Vec<String>,
    options: StoreOptions,
    /// Its checkpoints, once it is known that they count.
    job: Option<Job>,
    /// Our epoch there, if checkpoints can be written there.
    epoch: Option<Epoch>,
    /// Whether a tier is there that could not be set aside: this process deletes none.
    spares: bool,
    /// Nothing here is resumed after the next resume.
    until_resumed: bool,
    trouble: Trouble,
}

/// Checkpoints that could not be stored here, and how many go to the store for that before the next one is tried here:
/// each one that fails costs the job a stop.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Trouble {
    failures: u32,
    /// Nothing is stored here before so many were stored there.
    left: u32,
}

impl Trouble {
    const MOST: u32 = 64;

    fn failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
        self.left = 1_u32
            .checked_shl(self.failures - 1)
            .map_or(Self::MOST, |left| left.min(Self::MOST));
    }
}

/// How a store is called here, whether or not its address ends in a slash.
fn address_of(store: &str) -> &str {
    store.trim_end_matches('/')
}

/// The directory in which a job's tier for this store is kept.
fn place(state_dir: &Path, job: &JobName, store: &str) -> PathBuf {
    let store = crate::known_history::short_name(store);
    state_dir.join("local").join(job.as_str()).join(store)
}

/// The job's history on this machine, if there is one that belongs to that store: to look at it.
///
/// # Errors
/// It cannot be read.
pub async fn look(
    state_dir: &Path,
    job: &JobName,
    store: &str,
    options: StoreOptions,
) -> Result<Option<Job>, String> {
    let store = address_of(store);
    let directory = place(state_dir, job, store);
    let lineage = match Lineage::read(&directory, store) {
        Ok(Some(lineage)) => lineage,
        Ok(None) => return Ok(None),
        Err(e) => return Err(e.to_string()),
    };
    let address = directory.join(lineage.id).to_string_lossy().into_owned();
    let found = Store::open_existing(&address, options).await;
    Ok(found
        .map_err(|e| e.to_string())?
        .map(|store| store.job(job.clone())))
}

/// A checkpoint on this machine that a start without `--remote-interval` would leave behind: the newest here, if it counts and
/// is later than `stored`, the newest in the store. What cannot be read counts as nothing: the job must not wait for that.
pub(in crate::engine) async fn left_behind(
    state_dir: &Path,
    store: &Job,
    address: &str,
    options: StoreOptions,
    stored: Option<UnixMillis>,
) -> Result<Option<CheckpointNumber>, JobError> {
    let (state_dir, name, address) = (
        state_dir.to_owned(),
        store.name().clone(),
        address_of(address).to_owned(),
    );
    let prepared = tokio::task::spawn_blocking(move || {
        let there = place(&state_dir, &name, &address).join(FILE).exists();
        there.then(|| LocalTier::prepare(&state_dir, &name, &address, options).ok())?
    });
    let Ok(Some(tier)) = prepared.await else {
        return Ok(None);
    };
    let state = store.state().await?;
    if tier.standing(store, &state).await? != Standing::Ours {
        return Ok(None);
    }
    let found = Store::open_existing(&tier.address(), tier.options.clone()).await;
    let Ok(Some(found)) = found else {
        return Ok(None);
    };
    let newest = found.job(store.name().clone()).newest_restorable().await;
    Ok(newest
        .ok()
        .and_then(|newest| newest.manifest)
        .filter(|manifest| Some(manifest.created) > stored)
        .map(|manifest| manifest.number))
}

impl LocalTier {
    /// Reads what there is; the directory is made. Blocks.
    pub(in crate::engine) fn prepare(
        state_dir: &Path,
        job: &JobName,
        store: &str,
        options: StoreOptions,
    ) -> Result<LocalTier, LocalTierError> {
        let store = address_of(store);
        let directory = place(state_dir, job, store);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&directory)
            .map_err(|source| LocalTierError::File {
                path: directory.clone(),
                source,
            })?;
        let lineage = Lineage::read(&directory, store)?.unwrap_or_else(|| Lineage::new(store));
        Ok(LocalTier {
            directory,
            lineage,
            before: Vec::new(),
            options,
            job: None,
            epoch: None,
            spares: false,
            until_resumed: false,
            trouble: Trouble::default(),
        })
    }

    /// The name of this tier, which the record of the next take-over has.
    pub(in crate::engine) fn id(&self) -> &str {
        &self.lineage.id
    }

    /// The history in the tier, if its checkpoints count for this job; `None`: they do not.
    pub(in crate::engine) fn reading(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// The history in the tier and the epoch to write in; `None` if checkpoints cannot be written here.
    pub(in crate::engine) fn writing(&self) -> Option<(&Job, Epoch)> {
        Some((self.job.as_ref()?, self.epoch?))
    }

    /// Where the next checkpoint can be written here.
    pub(in crate::engine) fn target(&self) -> Option<(&Job, Epoch)> {
        self.writing().filter(|_| self.trouble.left == 0)
    }

    /// A checkpoint could not be stored here: the next one goes to the store, and the more the longer this lasts.
    pub(in crate::engine) fn not_stored(&mut self) {
        self.trouble.failed();
    }

    /// A checkpoint was stored here.
    pub(in crate::engine) fn stored(&mut self) {
        self.trouble = Trouble::default();
    }

    /// A checkpoint went to the store.
    pub(in crate::engine) fn stored_there(&mut self) {
        self.trouble.left = self.trouble.left.saturating_sub(1);
    }

    /// One could not go there: the next one is tried here, whatever was before.
    pub(in crate::engine) fn try_next(&mut self) {
        self.trouble.left = 0;
    }

    /// Before the job `name` is taken over in its store: from here on, either the checkpoints here [count](Self::standing)
    /// or a new tier begins. On an error those that count can still be read.
    pub(in crate::engine) async fn before(
        &mut self,
        name: &JobName,
        standing: Standing,
        state: &JobState,
    ) -> Result<(), LocalTierError> {
        match standing {
            Standing::Ours => {
                let found = Store::open_existing(&self.address(), self.options.clone()).await?;
                self.job = found.map(|store| store.job(name.clone()));
                // It may be that of a take-over which we died in: the next such one must not hide it.
                self.lineage.epoch = state.epoch.map(|epoch| epoch.0);
            }
            Standing::Others => self.begin_anew(),
            Standing::Unknown(reason) => self.set_aside(name, &reason).await,
        }
        // An epoch is the number of its record.
        self.lineage.taking = Some(state.tail + 1);
        self.write().await
    }

    /// Who had the job since the checkpoints here were made, by what the store tells.
    pub(in crate::engine) async fn standing(
        &self,
        store: &Job,
        state: &JobState,
    ) -> Result<Standing, JobError> {
        let Some(last) = self.lineage.epoch.map(Epoch) else {
            // No checkpoint was ever made here.
            return Ok(Standing::Others);
        };
        let Some(now) = state.epoch else {
            return Ok(Standing::Unknown(match state.tail {
                0 => "the store has no history of the job any more".to_owned(),
                tail => format!("the newest record of the store, {tail}, is damaged"),
            }));
        };
        if now == last {
            return Ok(Standing::Ours);
        }
        if now < last {
            // Epochs only grow.
            return Ok(Standing::Unknown(format!(
                "the store is in epoch {now} and was in epoch {last}: it was emptied or put back, or is another one"
            )));
        }
        // Where no take-over of ours was cut off, the lineage knows of all of them.
        if self.lineage.taking.is_none() {
            return Ok(Standing::Others);
        }
        // Taken over by us, who died before we could note it?
        let (holders, unread) = store.holders_between(last, now).await?;
        let ours = |holder: &Holder| tier_of(holder) == Some(self.id());
        if !holders.iter().all(ours) {
            return Ok(Standing::Others);
        }
        Ok(unread.map_or(Standing::Ours, Standing::Unknown))
    }

    /// Takes the job over in the tier, after the store. On an error the checkpoints here can still be read.
    pub(in crate::engine) async fn taken(
        &mut self,
        job: &JobName,
        before: &JobState,
        taken: TakenOver,
        holder: &Holder,
        back: Option<GoBack>,
    ) -> Result<(), LocalTierError> {
        if taken.previous != before.epoch {
            match taken.previous {
                // Somebody was faster, and was fenced by us; the job may have run there.
                Some(_) => self.begin_anew(),
                None => {
                    let reason =
                        "the newest record of the store is damaged or gone since it was looked at";
                    self.set_aside(job, reason).await;
                }
            }
        }
        self.lineage.epoch = Some(taken.epoch.0);
        self.lineage.taking = None;
        self.write().await?;
        self.remove_others();
        let store = Store::open(&self.address(), self.options.clone()).await?;
        store.initialise().await?;
        let job = store.job(job.clone());
        let ours = take_over(&job, Tier::Local, back, holder).await?;
        // If all of it is deleted, the next record must not begin another history, which no start would find.
        let known = job.known().await?;
        if known.is_none() && job.state().await?.tail == 0 {
            return Err(LocalTierError::Gone {
                path: self.directory.join(&self.lineage.id),
            });
        }
        // Without a first record that can be read, nothing can be expected: the checkpoints after it are whole all the same.
        job.expect(known);
        self.job = Some(job);
        self.epoch = Some(ours.epoch);
        self.until_resumed = false;
        Ok(())
    }

    /// Address of the tier's store.
    fn address(&self) -> String {
        let directory = self.directory.join(&self.lineage.id);
        directory.to_string_lossy().into_owned()
    }

    /// The job ended by itself: what is here is of an earlier run from now on, also if that cannot be noted.
    pub(in crate::engine) async fn mark_completed(&mut self, code: i32) {
        let noted = match self.writing() {
            Some((job, epoch)) => job.mark_completed(epoch, code, unix_millis()).await.is_ok(),
            None => false,
        };
        if !noted {
            self.lost();
        }
    }

    /// Nothing is written here any more, and later starts do not know the checkpoints here: what this process cannot keep
    /// up to date must not be believed by the next. Works on a full disk.
    pub(in crate::engine) fn forget(&mut self) {
        // Another process may have begun a tier of its own there since.
        let now = Lineage::read(&self.directory, &self.lineage.store);
        let ours = |id: &String| *id == self.lineage.id || self.before.contains(id);
        let another = matches!(now, Ok(Some(now)) if !ours(&now.id));
        if !another {
            let _ = std::fs::remove_file(self.directory.join(FILE));
        }
        self.epoch = None;
    }

    /// The job goes back, and here that could not be noted: of the checkpoints here only the one that it goes back to may be
    /// resumed, and what is older.
    pub(in crate::engine) fn could_not_go_back(&mut self, back: GoBack) {
        match back {
            GoBack::To { id, .. } if id.tier == Tier::Local => self.until_resumed = true,
            _ => self.lost(),
        }
    }

    /// Notes that the job was resumed.
    pub(in crate::engine) fn resumed(&mut self) {
        if std::mem::take(&mut self.until_resumed) {
            self.lost();
        }
    }

    /// Notes that the tier's content is gone.
    pub(in crate::engine) fn lost(&mut self) {
        self.forget();
        self.job = None;
    }

    fn begin_anew(&mut self) {
        let new = Lineage::new(&self.lineage.store);
        self.before
            .push(std::mem::replace(&mut self.lineage, new).id);
        self.job = None;
        self.epoch = None;
    }

    /// It cannot be told whether the checkpoints here are the newest: they are neither resumed nor deleted, and a new tier
    /// begins.
    async fn set_aside(&mut self, name: &JobName, reason: &str) {
        let holds_some = self.holds_some(name).await;
        let (directory, id) = (self.directory.clone(), self.lineage.id.clone());
        self.begin_anew();
        if !holds_some {
            return;
        }
        let was = directory.join(&id);
        let moved = tokio::task::spawn_blocking(move || move_aside(&directory, &id)).await;
        match moved.unwrap_or_else(|e| Err(io::Error::other(e))) {
            Ok(path) => {
                let path = path.display();
                tracing::error!(
                    %path, reason,
                    "THE CHECKPOINTS ON THIS MACHINE ARE SET ASIDE, neither resumed nor deleted: whether another machine \
                     had the job since cannot be told. Look at them with `phos-ft list --job {name} --store {path}`; to \
                     resume from them, start phos-ft with `--store {path}`; else delete that directory"
                );
            }
            Err(error) => {
                self.spares = true;
                tracing::error!(
                    path = %was.display(), reason, %error,
                    "THE CHECKPOINTS ON THIS MACHINE ARE NOT RESUMED, and could not be set aside: whether another machine \
                     had the job since cannot be told. The next start of phos-ft deletes them: copy that directory first"
                );
            }
        }
    }

    /// Whether there may be checkpoints here.
    async fn holds_some(&self, name: &JobName) -> bool {
        let listed = match Store::open_existing(&self.address(), self.options.clone()).await {
            Ok(Some(store)) => store.job(name.clone()).list().await,
            Ok(None) => return false,
            Err(_) => return true,
        };
        match listed {
            Ok(found) => !found.checkpoints.is_empty() || !found.damaged.is_empty(),
            Err(_) => true,
        }
    }

    async fn write(&self) -> Result<(), LocalTierError> {
        let (lineage, directory) = (self.lineage.clone(), self.directory.clone());
        let path = directory.clone();
        tokio::task::spawn_blocking(move || lineage.write(&directory))
            .await
            .map_err(|e| LocalTierError::File {
                path,
                source: io::Error::other(e),
            })?
    }

    /// Deletes tiers that do not count any more, in the background.
    fn remove_others(&self) {
        if self.spares {
            return;
        }
        let (directory, id) = (self.directory.clone(), self.lineage.id.clone());
        tokio::task::spawn_blocking(move || remove_all_but(&directory, &id));
    }
}

#[cfg(test)]
mod tests;
