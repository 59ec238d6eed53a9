//! The tier on this machine, with `--remote-interval`: a store of its own below the state directory, where checkpoints go
//! first. What goes on to the store that survives the machine is decided in `copies`.
//!
//! ```text
//! <state-dir>/local/<job>/<store>/lineage.json    which history of the store the checkpoints here belong to
//! <state-dir>/local/<job>/<store>/<id>/           a store like any other, with one job
//! ```
//!
//! `<store>` is a digest of the store's address: a job that is begun with another one leaves alone what is here.
//!
//! # Consistency
//!
//! The store's log alone says who has the job. Checkpoints here count only if nobody else had it since they were made:
//! the lineage names the epoch of the store in which they were, and that epoch must be the newest, or the one that a
//! take-over of ours begins. Otherwise they belong to a history that was not gone on with: they are deleted, and a new
//! tier begins under another name. Nothing is deleted on the word of a lineage that cannot be understood.
//!
//! # Crash consistency
//!
//! The lineage is replaced as a whole. Before a take-over it says which epoch is about to be taken, and the record of the
//! take-over in the store names this tier, so that a crash between the two is understood. Where the lineage cannot be kept up
//! to date (a full disk), it is removed: this process still reads what counts, later ones do not believe it.

use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use phos_storage::{
    Digest, Epoch, Job, JobError, JobName, JobState, OpenError, Store, StoreOptions, TakenOver,
};
use serde::{Deserialize, Serialize};

use super::{random_u64, unix_millis};

const FILE: &str = "lineage.json";
const VERSION: u32 = 1;
/// Most bytes of a lineage.
const MAX: u64 = 64 << 10;
/// Checkpoints kept here: the newest, and one to fall back to.
pub(super) const KEPT: u32 = 2;

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
    /// The store's epoch in which the newest checkpoints here were made.
    epoch: Option<u64>,
    /// The epoch that is being taken.
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
        let known = known.filter(|l| {
            l.version == VERSION
                && l.store == store
                && l.id.len() == 16
                && l.id.bytes().all(|b| b.is_ascii_hexdigit())
        });
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

/// Where the tier of a job is.
fn place(state_dir: &Path, job: &JobName, store: &str) -> PathBuf {
    let digest = Digest::of(store.as_bytes()).to_string();
    let short = digest.get(..16).unwrap_or(&digest);
    state_dir.join("local").join(job.as_str()).join(short)
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

    /// Before the job `name` is taken over in its store: from here on, either the checkpoints here [count](Self::continues)
    /// or a new tier begins. On an error those that count can still be read.
    pub(super) async fn before(
        &mut self,
        name: &JobName,
        counts: bool,
        state: &JobState,
    ) -> Result<(), NearError> {
        if counts {
            let found = Store::open_existing(&self.address(), self.options.clone()).await?;
            self.job = found.map(|store| store.job(name.clone()));
        } else {
            self.begin_anew();
        }
        // An epoch is the number of its record.
        self.lineage.taking = Some(state.tail + 1);
        self.write().await
    }

    /// Whether nobody else had the job since the checkpoints here were made.
    pub(super) async fn continues(&self, store: &Job, state: &JobState) -> Result<bool, JobError> {
        let Some(now) = state.epoch else {
            return Ok(false);
        };
        if self.lineage.epoch == Some(now.0) {
            return Ok(true);
        }
        // Taken over by us, who died before we could note it?
        let holder = if self.lineage.taking == Some(now.0) && self.lineage.epoch.is_some() {
            store.holder_of(now).await?
        } else {
            None
        };
        Ok(holder.is_some_and(|holder| holder.contains(&self.mark())))
    }

    /// The job is ours, in the store: takes it over here as well. On an error the checkpoints here can still be read.
    pub(super) async fn taken(
        &mut self,
        job: &JobName,
        before: &JobState,
        taken: TakenOver,
        holder: &str,
    ) -> Result<(), NearError> {
        if taken.previous != before.epoch {
            // Somebody was faster, and was fenced by us; the job may have run there.
            self.begin_anew();
        }
        self.lineage.epoch = Some(taken.epoch.0);
        self.lineage.taking = None;
        self.write().await?;
        self.remove_others();
        let store = Store::open(&self.address(), self.options.clone()).await?;
        store.initialise().await?;
        let job = store.job(job.clone());
        let ours = job.take_over(holder, unix_millis()).await?;
        self.job = Some(job);
        self.epoch = Some(ours.epoch);
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
        let (directory, id) = (self.directory.clone(), self.lineage.id.clone());
        tokio::task::spawn_blocking(move || {
            for entry in std::fs::read_dir(&directory)
                .into_iter()
                .flatten()
                .flatten()
            {
                let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
                if is_directory && entry.file_name() != id.as_str() {
                    let path = entry.path();
                    tracing::info!(path = %path.display(), "checkpoints of a history that others went on with are deleted");
                    if let Err(e) = std::fs::remove_dir_all(&path) {
                        tracing::warn!(path = %path.display(), error = %e, "not deleted");
                    }
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
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
            near.taken(&name(), &state, taken, &holder).await.unwrap();
            let here = near.reading().unwrap().list().await.unwrap();
            (near, here.checkpoints.len())
        }
    }

    /// All that is done before a take-over: what was seen of the store, and what the record is to say.
    async fn looked(near: &mut Near, store: &Job) -> (JobState, String) {
        let state = store.state().await.unwrap();
        let counts = near.continues(store, &state).await.unwrap();
        near.before(&name(), counts, &state).await.unwrap();
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
        let store = Store::open("memory://", store_options(None)).await.unwrap();
        store.initialise().await.unwrap();
        store.job(name())
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
        near.taken(&name(), &state, taken, &holder).await.unwrap();
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
        assert!(near.continues(&store, &state).await.unwrap());
        near.before(&name(), true, &state).await.unwrap_err();
        near.forget();
        let taken = store.take_over("this host", unix_millis()).await.unwrap();
        let failed = near.taken(&name(), &state, taken, "this host").await;
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
