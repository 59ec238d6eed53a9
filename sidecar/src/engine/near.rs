//! The tier on this machine, with `--remote-interval`: a store of its own below the state directory, where checkpoints go
//! first. What goes on to the store that survives the machine is decided in `copies`.
//!
//! ```text
//! <state-dir>/local/<job>/<store>/lineage.json    which history of the store the checkpoints here belong to
//! <state-dir>/local/<job>/<store>/<id>/           a store like any other, with one job
//! <state-dir>/local/<job>/<store>/aside-<n>-<id>/ one that was set aside
//! ```
//!
//! `<store>` is a digest of the store's address: a job that is begun with another one leaves alone what is here.
//!
//! # Consistency
//!
//! The store's log alone says who has the job. Checkpoints here count only if nobody else had it since they were made:
//! the lineage names the newest epoch of the store of which that is known, and that epoch must be in force, or all
//! take-overs since must be ours. Where one of them is another's, the checkpoints belong to a history that was not gone
//! on with: they are deleted, and a new tier begins under another name.
//!
//! Nothing is deleted on the word of a lineage that cannot be understood, nor on that of a store that does not tell: its
//! newest record is damaged, or one that has to be read is, or its history is empty or shorter than what was seen. There
//! the tier is set aside: it is neither resumed nor deleted, a new one begins, and a person is told where the old one is.
//! Its directory has another name from then on. So that it is set aside is not forgotten with a lineage, and can be noted
//! on a full disk. The newest two are kept.
//!
//! # Crash consistency
//!
//! The lineage is replaced as a whole. Before a take-over it says that one is under way and which epoch it found in force, and
//! the record of the take-over in the store names this tier. So it is understood when we die between the two, also many
//! times in a row: each start that finds such a record notes its epoch before it writes one of its own. The number of the
//! record is not needed for that. Others may write records between the look and the take-over (a collection does, without
//! having the job), and the take-over then has a greater number than was expected.
//!
//! Where the lineage cannot be kept up to date (a full disk), it is removed: this process still reads what counts, later ones
//! do not believe it.

use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use phos_storage::{
    CheckpointNumber, Epoch, Job, JobError, JobName, JobState, OpenError, Store, StoreOptions,
    TakenOver, UnixMillis,
};
use serde::{Deserialize, Serialize};

use super::branch::{GoBack, take_over};
use super::{random_u64, unix_millis};

const FILE: &str = "lineage.json";
const VERSION: u32 = 1;
/// Most bytes of a lineage.
const MAX: u64 = 64 << 10;
/// Checkpoints kept here: the newest, and one to fall back to.
pub(super) const KEPT: u32 = 2;
/// What the names of tiers that were set aside begin with.
const ASIDE: &str = "aside-";
/// Tiers set aside that are kept.
const KEPT_ASIDE: usize = 2;

/// Whose the job was since the checkpoints here were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Standing {
    /// Nobody else's: they count.
    Ours,
    /// Somebody else's, or there are none: with the next take-over they are deleted.
    Others,
    /// That cannot be told, for this reason: with the next take-over they are set aside.
    Unknown(String),
}

/// Why no checkpoint can be kept on this machine.
#[derive(Debug, thiserror::Error)]
pub(super) enum NearError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is damaged or of another phos-ft; to begin anew here, delete the directory it is in", path.display())]
    Lineage { path: PathBuf },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Job(#[from] JobError),
}

/// Which history of the store the checkpoints here belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Lineage {
    version: u32,
    /// Address of the store.
    store: String,
    /// Name of the tier: of its directory, and in the store's records.
    id: String,
    /// The newest epoch of the store of which it is known that nobody else had the job between the checkpoints here and it.
    epoch: Option<u64>,
    /// Set while a take-over is under way: the epoch that it begins if nobody writes meanwhile.
    taking: Option<u64>,
}

impl Lineage {
    fn new(store: &str) -> Lineage {
        Lineage {
            version: VERSION,
            store: store.to_owned(),
            id: format!("{:016x}", random_u64()),
            epoch: None,
            taking: None,
        }
    }

    /// `None`: there is none.
    fn read(directory: &Path, store: &str) -> Result<Option<Lineage>, NearError> {
        let path = directory.join(FILE);
        let failed = |source| NearError::File {
            path: path.clone(),
            source,
        };
        match std::fs::metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
            Ok(found) if found.len() > MAX => return Err(NearError::Lineage { path }),
            Ok(_) => {}
        }
        let bytes = std::fs::read(&path).map_err(failed)?;
        let known = serde_json::from_slice::<Lineage>(&bytes).ok();
        // The name becomes a path.
        let known = known.filter(|l| l.version == VERSION && l.store == store && is_id(&l.id));
        known.map(Some).ok_or(NearError::Lineage { path })
    }

    fn write(&self, directory: &Path) -> Result<(), NearError> {
        let path = directory.join(FILE);
        let replace = || -> io::Result<()> {
            let new = directory.join(format!("{FILE}.new"));
            let mut file = std::fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            std::fs::File::open(directory)?.sync_all()
        };
        replace().map_err(|source| NearError::File { path, source })
    }

    /// How the records of our take-overs name this tier.
    fn mark(&self) -> String {
        format!("tier {}", self.id)
    }
}

/// The tier on this machine.
pub(super) struct Near {
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

/// Whether this can be the name of a tier.
fn is_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Which of the tiers set aside the one of this name is; `None`: it is none of them.
fn number_aside(name: &str) -> Option<u64> {
    let (number, id) = name.strip_prefix(ASIDE)?.split_once('-')?;
    number.parse().ok().filter(|_| is_id(id))
}

/// The tiers set aside with their numbers, oldest first.
fn tiers_aside(directory: &Path) -> Vec<(u64, PathBuf)> {
    let mut found: Vec<(u64, PathBuf)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((number_aside(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    found.sort_unstable();
    found
}

/// Gives a tier a name under which no start takes it up or deletes it. Where it is now.
fn move_aside(directory: &Path, id: &str) -> io::Result<PathBuf> {
    let newest = tiers_aside(directory).last().map_or(0, |(n, _)| *n);
    let path = directory.join(format!("{ASIDE}{}-{id}", newest.saturating_add(1)));
    std::fs::rename(directory.join(id), &path)?;
    // Before a lineage says that there is another tier.
    std::fs::File::open(directory)?.sync_all()?;
    Ok(path)
}

/// Deletes all tiers but this one and the newest of those set aside.
fn remove_all_but(directory: &Path, id: &str) {
    let remove = |path: &Path| {
        if let Err(e) = std::fs::remove_dir_all(path) {
            tracing::warn!(path = %path.display(), error = %e, "not deleted");
        }
    };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_aside = name.to_str().and_then(number_aside).is_some();
        if is_directory && !is_aside && name != id {
            let path = entry.path();
            tracing::info!(path = %path.display(), "checkpoints of a history that others went on with are deleted");
            remove(&path);
        }
    }
    let mut aside = tiers_aside(directory);
    aside.truncate(aside.len().saturating_sub(KEPT_ASIDE));
    for (_, path) in aside {
        tracing::warn!(path = %path.display(), "checkpoints that were set aside are deleted, as newer ones were");
        remove(&path);
    }
}

/// Where the tier of a job is.
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
pub(super) async fn left_behind(
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
        there.then(|| Near::prepare(&state_dir, &name, &address, options).ok())?
    });
    let Ok(Some(near)) = prepared.await else {
        return Ok(None);
    };
    let state = store.state().await?;
    if near.standing(store, &state).await? != Standing::Ours {
        return Ok(None);
    }
    let found = Store::open_existing(&near.address(), near.options.clone()).await;
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

impl Near {
    /// Reads what there is; the directory is made. Blocks.
    pub(super) fn prepare(
        state_dir: &Path,
        job: &JobName,
        store: &str,
        options: StoreOptions,
    ) -> Result<Near, NearError> {
        let store = address_of(store);
        let directory = place(state_dir, job, store);
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder
            .create(&directory)
            .map_err(|source| NearError::File {
                path: directory.clone(),
                source,
            })?;
        let lineage = Lineage::read(&directory, store)?.unwrap_or_else(|| Lineage::new(store));
        Ok(Near {
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

    /// What the record of the next take-over says.
    pub(super) fn mark(&self) -> String {
        self.lineage.mark()
    }

    /// The checkpoints here, if they count.
    pub(super) fn reading(&self) -> Option<&Job> {
        self.job.as_ref()
    }

    /// Where checkpoints can be written here.
    pub(super) fn writing(&self) -> Option<(&Job, Epoch)> {
        Some((self.job.as_ref()?, self.epoch?))
    }

    /// Where the next checkpoint can be written here.
    pub(super) fn target(&self) -> Option<(&Job, Epoch)> {
        self.writing().filter(|_| self.trouble.left == 0)
    }

    /// A checkpoint could not be stored here: the next one goes to the store, and the more the longer this lasts.
    pub(super) fn not_stored(&mut self) {
        self.trouble.failed();
    }

    /// A checkpoint was stored here.
    pub(super) fn stored(&mut self) {
        self.trouble = Trouble::default();
    }

    /// A checkpoint went to the store.
    pub(super) fn stored_there(&mut self) {
        self.trouble.left = self.trouble.left.saturating_sub(1);
    }

    /// One could not go there: the next one is tried here, whatever was before.
    pub(super) fn try_next(&mut self) {
        self.trouble.left = 0;
    }

    /// Before the job `name` is taken over in its store: from here on, either the checkpoints here [count](Self::standing)
    /// or a new tier begins. On an error those that count can still be read.
    pub(super) async fn before(
        &mut self,
        name: &JobName,
        standing: Standing,
        state: &JobState,
    ) -> Result<(), NearError> {
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

    /// Whose the job was since the checkpoints here were made, by what the store tells.
    pub(super) async fn standing(
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
        let (holders, unread) = store.take_overs_between(last, now).await?;
        let mark = self.mark();
        if holders.iter().any(|holder| !holder.contains(&mark)) {
            return Ok(Standing::Others);
        }
        Ok(unread.map_or(Standing::Ours, Standing::Unknown))
    }

    /// The job is ours, in the store: takes it over here as well. On an error the checkpoints here can still be read.
    pub(super) async fn taken(
        &mut self,
        job: &JobName,
        before: &JobState,
        taken: TakenOver,
        holder: &str,
        back: Option<GoBack>,
    ) -> Result<(), NearError> {
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
        let ours = take_over(&job, true, back, holder).await?;
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
    pub(super) async fn mark_completed(&mut self, code: i32) {
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
    pub(super) fn forget(&mut self) {
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
    pub(super) fn could_not_go_back(&mut self, back: GoBack) {
        match back {
            GoBack::To { id, .. } if id.local => self.until_resumed = true,
            _ => self.lost(),
        }
    }

    /// The job was resumed.
    pub(super) fn resumed(&mut self) {
        if std::mem::take(&mut self.until_resumed) {
            self.lost();
        }
    }

    /// What was here is gone.
    pub(super) fn lost(&mut self) {
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

    async fn write(&self) -> Result<(), NearError> {
        let (lineage, directory) = (self.lineage.clone(), self.directory.clone());
        let path = directory.clone();
        tokio::task::spawn_blocking(move || lineage.write(&directory))
            .await
            .map_err(|e| NearError::File {
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
mod tests {
    use std::collections::BTreeSet;

    use phos_storage::{Candidate, CheckpointNumber, CollectOptions};

    use super::*;
    use crate::engine::store_options;

    const STORE: &str = "s3://bucket/prefix";

    fn name() -> JobName {
        JobName::new("job").unwrap()
    }

    struct Machine {
        state: tempfile::TempDir,
    }

    impl Machine {
        fn new() -> Machine {
            Machine {
                state: tempfile::tempdir().unwrap(),
            }
        }

        fn near(&self) -> Near {
            self.near_of(STORE).unwrap()
        }

        fn near_of(&self, store: &str) -> Result<Near, NearError> {
            Near::prepare(self.state.path(), &name(), store, store_options(None))
        }

        /// A start of a sidecar: takes the job over. The tier, and how many checkpoints count there.
        async fn start(&self, store: &Job) -> (Near, usize) {
            self.start_with(store, STORE).await
        }

        async fn start_with(&self, store: &Job, address: &str) -> (Near, usize) {
            let mut near = self.near_of(address).unwrap();
            let (state, holder) = looked(&mut near, store).await;
            let taken = store.take_over(&holder, unix_millis()).await.unwrap();
            near.taken(&name(), &state, taken, &holder, None)
                .await
                .unwrap();
            let here = near.reading().unwrap().list().await.unwrap();
            (near, here.checkpoints.len())
        }

        /// What a start would find.
        async fn standing(&self, store: &Job) -> Standing {
            let state = store.state().await.unwrap();
            self.near().standing(store, &state).await.unwrap()
        }

        /// How many checkpoints there are in each of the tiers set aside.
        async fn aside(&self) -> Vec<usize> {
            let mut found = Vec::new();
            for (_, path) in tiers_aside(&place(self.state.path(), &name(), STORE)) {
                let store = store_at(path.to_str().unwrap()).await;
                found.push(store.list().await.unwrap().checkpoints.len());
            }
            found
        }
    }

    /// All that is done before a take-over: what was seen of the store, and what the record is to say.
    async fn looked(near: &mut Near, store: &Job) -> (JobState, String) {
        let state = store.state().await.unwrap();
        let standing = near.standing(store, &state).await.unwrap();
        near.before(&name(), standing, &state).await.unwrap();
        (state, format!("host ({})", near.mark()))
    }

    async fn checkpoint(near: &Near) {
        let (job, epoch) = near.writing().unwrap();
        commit(job, epoch).await;
    }

    async fn commit(job: &Job, epoch: Epoch) {
        let writer = job.begin(epoch).await.unwrap();
        let body = phos_storage::ManifestBody::default();
        writer.commit(body, unix_millis()).await.unwrap();
    }

    async fn store() -> Job {
        store_at("memory://").await
    }

    async fn store_at(address: &str) -> Job {
        let store = Store::open(address, store_options(None)).await.unwrap();
        store.initialise().await.unwrap();
        store.job(name())
    }

    /// Damages a record of the store in a directory.
    fn damage(store: &Path, record: u64) {
        let path = store.join(format!("jobs/job/head/{record:020}"));
        assert!(path.exists(), "{}", path.display());
        std::fs::write(path, "damaged").unwrap();
    }

    #[tokio::test]
    async fn checkpoints_count_while_nobody_else_has_the_job() {
        let (store, here, there) = (store().await, Machine::new(), Machine::new());
        let (near, found) = here.start(&store).await;
        assert_eq!(found, 0);
        checkpoint(&near).await;
        checkpoint(&near).await;
        // The sidecar is started again.
        let (near, found) = here.start(&store).await;
        assert_eq!(found, 2);
        let seen = look(here.state.path(), &name(), STORE, store_options(None))
            .await
            .unwrap();
        assert_eq!(seen.unwrap().list().await.unwrap().checkpoints.len(), 2);
        assert!(
            look(
                here.state.path(),
                &name(),
                "s3://other",
                store_options(None)
            )
            .await
            .unwrap()
            .is_none()
        );
        drop(near);
        // Another machine has the job; when it comes back, what was here is of another history.
        assert_eq!(there.start(&store).await.1, 0);
        assert_eq!(here.start(&store).await.1, 0);
    }

    #[tokio::test]
    async fn a_crash_in_the_middle_of_a_take_over_is_understood() {
        let (store, here) = (store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        // And one went on to the store: its record has a number, too.
        let epoch = store.state().await.unwrap().epoch.unwrap();
        commit(&store, epoch).await;
        // Dies between the take-over and the note of it.
        let (_, holder) = looked(&mut here.near(), &store).await;
        store.take_over(&holder, unix_millis()).await.unwrap();
        assert_eq!(here.start(&store).await.1, 1);
        // The same, but somebody else had the job between what it saw and what it took.
        let (_, holder) = looked(&mut here.near(), &store).await;
        taken_by_another(&store).await;
        store.take_over(&holder, unix_millis()).await.unwrap();
        assert_eq!(here.start(&store).await.1, 0);
    }

    #[tokio::test]
    async fn crashes_in_the_middle_of_take_overs_in_a_row_are_understood() {
        let (store, here) = (store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        for dies_before_its_record in [false, true, false, false, true, true] {
            let (_, holder) = looked(&mut here.near(), &store).await;
            if !dies_before_its_record {
                store.take_over(&holder, unix_millis()).await.unwrap();
            }
            assert_eq!(here.standing(&store).await, Standing::Ours);
        }
        // What a phos-ft left that did not note the first of two.
        let (state, holder) = looked(&mut here.near(), &store).await;
        store.take_over(&holder, unix_millis()).await.unwrap();
        let mut lineage = here.near().lineage;
        assert_eq!(lineage.epoch, state.epoch.map(|epoch| epoch.0));
        lineage.taking = Some(state.tail + 2);
        lineage.write(&near.directory).unwrap();
        assert_eq!(here.start(&store).await.1, 1);
    }

    #[tokio::test]
    async fn a_collection_before_our_record_is_nobody_else() {
        let (store, here) = (store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        let epoch = store.state().await.unwrap().epoch.unwrap();
        for _ in 0..3 {
            commit(&store, epoch).await;
        }
        let (state, holder) = looked(&mut here.near(), &store).await;
        let none = |_: &[Candidate]| BTreeSet::<CheckpointNumber>::new();
        let options = CollectOptions::default();
        let collected = store.collect(&none, options, unix_millis()).await.unwrap();
        assert!(!collected.removed.is_empty());
        // Dies between the take-over and the note of it.
        let taken = store.take_over(&holder, unix_millis()).await.unwrap();
        assert!(taken.epoch.0 > state.tail + 1);
        assert_eq!(here.standing(&store).await, Standing::Ours);
        assert_eq!(here.start(&store).await.1, 1);
    }

    #[tokio::test]
    async fn with_a_damaged_newest_record_the_tier_is_set_aside() {
        let (there, here) = (tempfile::tempdir().unwrap(), Machine::new());
        let store = store_at(there.path().to_str().unwrap()).await;
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        damage(there.path(), store.state().await.unwrap().tail);
        let standing = here.standing(&store).await;
        assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
        // Looking changes nothing.
        assert!(here.aside().await.is_empty());
        let (near, found) = here.start(&store).await;
        assert_eq!(found, 0);
        assert_eq!(here.aside().await, [1]);
        // Damaged between the look and the take-over.
        checkpoint(&near).await;
        checkpoint(&near).await;
        let mut near = here.near();
        let (state, holder) = looked(&mut near, &store).await;
        assert!(near.reading().is_some());
        damage(there.path(), state.tail);
        let taken = store.take_over(&holder, unix_millis()).await.unwrap();
        near.taken(&name(), &state, taken, &holder, None)
            .await
            .unwrap();
        let read = near.reading().unwrap().list().await.unwrap();
        assert!(read.checkpoints.is_empty());
        assert_eq!(here.aside().await, [1, 2]);
        // A tier without a checkpoint is not worth it.
        damage(there.path(), taken.epoch.0);
        assert_eq!(here.start(&store).await.1, 0);
        assert_eq!(here.aside().await, [1, 2]);
    }

    #[tokio::test]
    async fn with_a_damaged_record_before_our_take_over_nothing_is_told() {
        let (there, here) = (tempfile::tempdir().unwrap(), Machine::new());
        let store = store_at(there.path().to_str().unwrap()).await;
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        let epoch = store.state().await.unwrap().epoch.unwrap();
        commit(&store, epoch).await;
        let (state, holder) = looked(&mut here.near(), &store).await;
        let taken = store.take_over(&holder, unix_millis()).await.unwrap();
        assert_eq!(here.standing(&store).await, Standing::Ours);
        damage(there.path(), state.tail);
        let standing = here.standing(&store).await;
        assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
        commit(&store, taken.epoch).await;
        damage(there.path(), taken.epoch.0);
        let standing = here.standing(&store).await;
        assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
        // Whoever came later is known.
        taken_by_another(&store).await;
        assert_eq!(here.standing(&store).await, Standing::Others);
    }

    #[tokio::test]
    async fn with_an_emptied_store_the_tier_is_set_aside_and_stays_so() {
        let (store, emptied, here) = (store().await, store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        let standing = here.standing(&emptied).await;
        assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
        assert_eq!(here.start(&emptied).await.1, 0);
        for before in 0..2 {
            let (near, found) = here.start(&emptied).await;
            assert_eq!(found, before);
            checkpoint(&near).await;
            remove_all_but(&near.directory, &near.lineage.id);
            assert_eq!(here.aside().await, [1]);
        }
        // Also when the tier after it is given up.
        let (mut near, _) = here.start(&emptied).await;
        near.lost();
        let (near, found) = here.start(&emptied).await;
        assert_eq!(found, 0);
        remove_all_but(&near.directory, &near.lineage.id);
        assert_eq!(here.aside().await, [1]);
    }

    #[tokio::test]
    async fn a_history_that_is_shorter_than_what_was_seen_tells_nothing() {
        let (store, another, here) = (store().await, store().await, Machine::new());
        here.start(&store).await;
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        taken_by_another(&another).await;
        let standing = here.standing(&another).await;
        assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
    }

    #[test]
    fn of_the_tiers_set_aside_the_newest_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let id = |n: u64| format!("{n:016x}");
        let names = [
            id(1),
            id(2),
            format!("{ASIDE}9-{}", id(3)),
            format!("{ASIDE}10-{}", id(4)),
            format!("{ASIDE}11-{}", id(5)),
            format!("{ASIDE}12-x"),
        ];
        for name in &names {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        remove_all_but(directory.path(), &names[1]);
        let left = names.map(|name| directory.path().join(name).exists());
        assert_eq!(left, [false, true, false, true, true, false]);
        let moved = move_aside(directory.path(), &id(2)).unwrap();
        assert!(moved.ends_with(format!("{ASIDE}12-{}", id(2))) && moved.exists());
    }

    async fn taken_by_another(store: &Job) {
        let taken = store.take_over("another host", unix_millis()).await;
        taken.unwrap();
    }

    #[tokio::test]
    async fn somebody_who_was_faster_is_noticed() {
        let (store, here) = (store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        let mut near = here.near();
        let (state, holder) = looked(&mut near, &store).await;
        taken_by_another(&store).await;
        let taken = store.take_over(&holder, unix_millis()).await.unwrap();
        near.taken(&name(), &state, taken, &holder, None)
            .await
            .unwrap();
        let here = near.reading().unwrap().list().await.unwrap();
        assert!(here.checkpoints.is_empty());
    }

    #[tokio::test]
    async fn what_cannot_be_kept_up_to_date_is_read_now_and_not_believed_later() {
        let (store, here) = (store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        // As on a full disk: the lineage cannot be written.
        let obstacle = near.directory.join(format!("{FILE}.new"));
        std::fs::create_dir(&obstacle).unwrap();
        let mut near = here.near();
        let state = store.state().await.unwrap();
        let standing = near.standing(&store, &state).await.unwrap();
        assert_eq!(standing, Standing::Ours);
        near.before(&name(), standing, &state).await.unwrap_err();
        near.forget();
        let taken = store.take_over("this host", unix_millis()).await.unwrap();
        let failed = near.taken(&name(), &state, taken, "this host", None).await;
        failed.unwrap_err();
        near.forget();
        assert!(near.writing().is_none());
        let read = near.reading().unwrap().newest_restorable().await.unwrap();
        assert!(read.manifest.is_some());
        std::fs::remove_dir(&obstacle).unwrap();
        assert_eq!(here.start(&store).await.1, 0);
    }

    #[tokio::test]
    async fn after_a_job_that_ended_nothing_counts() {
        let (store, here) = (store().await, Machine::new());
        let (mut near, _) = here.start(&store).await;
        checkpoint(&near).await;
        near.mark_completed(0).await;
        let (mut near, _) = here.start(&store).await;
        let read = near.reading().unwrap().newest_restorable().await.unwrap();
        assert!(read.manifest.is_none());
        checkpoint(&near).await;
        // The mark cannot be made: everything there is given up.
        let (other, _) = here.start(&store).await;
        near.mark_completed(0).await;
        assert!(near.reading().is_none());
        drop(other);
        assert_eq!(here.start(&store).await.1, 0);
    }

    #[tokio::test]
    async fn another_store_leaves_alone_what_is_here() {
        let (store, other, here) = (store().await, store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        drop(near);
        let (near, found) = here.start_with(&other, "s3://bucket/another").await;
        assert_eq!(found, 0);
        checkpoint(&near).await;
        drop(near);
        // With or without a slash it is the same.
        let with_a_slash = format!("{STORE}/");
        assert_eq!(here.start_with(&store, &with_a_slash).await.1, 1);
    }

    #[tokio::test]
    async fn nothing_is_deleted_on_the_word_of_a_lineage_that_is_damaged() {
        let (store, here) = (store().await, Machine::new());
        let (near, _) = here.start(&store).await;
        checkpoint(&near).await;
        let (lineage, tier) = (near.directory.join(FILE), near.address());
        std::fs::write(&lineage, "{").unwrap();
        let error = here.near_of(STORE).map(|_| ()).unwrap_err();
        assert!(matches!(error, NearError::Lineage { .. }), "{error}");
        assert!(Path::new(&tier).exists() && lineage.exists());
    }

    #[tokio::test]
    async fn what_another_process_began_is_not_forgotten() {
        let machine = Machine::new();
        let store = store().await;
        let (mut near, _) = machine.start(&store).await;
        let other = Lineage::new(&near.lineage.store);
        other.write(&near.directory).unwrap();
        near.forget();
        assert_eq!(near.epoch, None);
        let found = Lineage::read(&near.directory, &near.lineage.store).unwrap();
        assert_eq!(found, Some(other));
        // That of an abandoned history, where the new one could not be noted (a full disk).
        let (mut near, _) = machine.start(&store).await;
        near.begin_anew();
        near.forget();
        assert!(!near.directory.join(FILE).exists());
    }

    #[test]
    fn a_place_that_fails_is_tried_less_and_less_often() {
        let mut trouble = Trouble::default();
        let lefts: Vec<u32> = (0..40)
            .map(|_| {
                trouble.failed();
                trouble.left
            })
            .collect();
        assert_eq!(lefts[..8], [1, 2, 4, 8, 16, 32, 64, 64]);
        assert_eq!(lefts[39], Trouble::MOST);
    }

    #[test]
    fn a_lineage_that_means_nothing_is_not_believed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        assert_eq!(Lineage::read(path, STORE).unwrap(), None);
        let mut lineage = Lineage::new(STORE);
        lineage.write(path).unwrap();
        assert_eq!(Lineage::read(path, STORE).unwrap().unwrap(), lineage);
        let refused = |store| matches!(Lineage::read(path, store), Err(NearError::Lineage { .. }));
        assert!(refused("s3://other"));
        lineage.id = "../../../../etc/x".into();
        lineage.write(path).unwrap();
        assert!(refused(STORE));
        std::fs::write(path.join(FILE), "{").unwrap();
        assert!(refused(STORE));
    }
}
