//! The tier through take-overs, crashes in the middle of them, and stores that do not tell.

use std::collections::BTreeSet;

use phos_storage::{Candidate, CheckpointNumber, CollectOptions};

use super::lineage::{ASIDE, tiers_aside};
use super::*;
use crate::engine::history::holder::this_process;
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

    fn tier(&self) -> LocalTier {
        self.tier_of(STORE).unwrap()
    }

    fn tier_of(&self, store: &str) -> Result<LocalTier, LocalTierError> {
        LocalTier::prepare(self.state.path(), &name(), store, store_options(None))
    }

    /// A start of a sidecar: takes the job over. The tier, and how many checkpoints count there.
    async fn start(&self, store: &Job) -> (LocalTier, usize) {
        self.start_with(store, STORE).await
    }

    async fn start_with(&self, store: &Job, address: &str) -> (LocalTier, usize) {
        let mut tier = self.tier_of(address).unwrap();
        let (state, holder) = looked(&mut tier, store).await;
        let taken = store
            .take_over(holder.clone(), unix_millis())
            .await
            .unwrap();
        tier.taken(&name(), &state, taken, &holder, None)
            .await
            .unwrap();
        let here = tier.reading().unwrap().list().await.unwrap();
        (tier, here.checkpoints.len())
    }

    /// What a start would find.
    async fn standing(&self, store: &Job) -> Standing {
        let state = store.state().await.unwrap();
        self.tier().standing(store, &state).await.unwrap()
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
async fn looked(tier: &mut LocalTier, store: &Job) -> (JobState, Holder) {
    let state = store.state().await.unwrap();
    let standing = tier.standing(store, &state).await.unwrap();
    tier.before(&name(), standing, &state).await.unwrap();
    (state, this_process(7, Some(tier.id())))
}

async fn checkpoint(tier: &LocalTier) {
    let (job, epoch) = tier.writing().unwrap();
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
    let (tier, found) = here.start(&store).await;
    assert_eq!(found, 0);
    checkpoint(&tier).await;
    checkpoint(&tier).await;
    // The sidecar is started again.
    let (tier, found) = here.start(&store).await;
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
    drop(tier);
    // Another machine has the job; when it comes back, what was here is of another history.
    assert_eq!(there.start(&store).await.1, 0);
    assert_eq!(here.start(&store).await.1, 0);
}

#[tokio::test]
async fn a_crash_in_the_middle_of_a_take_over_is_understood() {
    let (store, here) = (store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    // And one went on to the store: its record has a number, too.
    let epoch = store.state().await.unwrap().epoch.unwrap();
    commit(&store, epoch).await;
    // Dies between the take-over and the note of it.
    let (_, holder) = looked(&mut here.tier(), &store).await;
    store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
    assert_eq!(here.start(&store).await.1, 1);
    // The same, but somebody else had the job between what it saw and what it took.
    let (_, holder) = looked(&mut here.tier(), &store).await;
    taken_by_another(&store).await;
    store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
    assert_eq!(here.start(&store).await.1, 0);
}

#[tokio::test]
async fn crashes_in_the_middle_of_take_overs_in_a_row_are_understood() {
    let (store, here) = (store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    for dies_before_its_record in [false, true, false, false, true, true] {
        let (_, holder) = looked(&mut here.tier(), &store).await;
        if !dies_before_its_record {
            store
                .take_over(holder.clone(), unix_millis())
                .await
                .unwrap();
        }
        assert_eq!(here.standing(&store).await, Standing::Ours);
    }
    // What a phos-ft left that did not note the first of two.
    let (state, holder) = looked(&mut here.tier(), &store).await;
    store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
    let mut lineage = here.tier().lineage;
    assert_eq!(lineage.epoch, state.epoch.map(|epoch| epoch.0));
    lineage.taking = Some(state.tail + 2);
    lineage.write(&tier.directory).unwrap();
    assert_eq!(here.start(&store).await.1, 1);
}

#[tokio::test]
async fn a_collection_before_our_record_is_nobody_else() {
    let (store, here) = (store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    let epoch = store.state().await.unwrap().epoch.unwrap();
    for _ in 0..3 {
        commit(&store, epoch).await;
    }
    let (state, holder) = looked(&mut here.tier(), &store).await;
    let none = |_: &[Candidate]| BTreeSet::<CheckpointNumber>::new();
    let options = CollectOptions::default();
    let collected = store.collect(&none, options, unix_millis()).await.unwrap();
    assert!(!collected.removed.is_empty());
    // Dies between the take-over and the note of it.
    let taken = store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
    assert!(taken.epoch.0 > state.tail + 1);
    assert_eq!(here.standing(&store).await, Standing::Ours);
    assert_eq!(here.start(&store).await.1, 1);
}

#[tokio::test]
async fn with_a_damaged_newest_record_the_tier_is_set_aside() {
    let (there, here) = (tempfile::tempdir().unwrap(), Machine::new());
    let store = store_at(there.path().to_str().unwrap()).await;
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    damage(there.path(), store.state().await.unwrap().tail);
    let standing = here.standing(&store).await;
    assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
    // Looking changes nothing.
    assert!(here.aside().await.is_empty());
    let (tier, found) = here.start(&store).await;
    assert_eq!(found, 0);
    assert_eq!(here.aside().await, [1]);
    // Damaged between the look and the take-over.
    checkpoint(&tier).await;
    checkpoint(&tier).await;
    let mut tier = here.tier();
    let (state, holder) = looked(&mut tier, &store).await;
    assert!(tier.reading().is_some());
    damage(there.path(), state.tail);
    let taken = store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
    tier.taken(&name(), &state, taken, &holder, None)
        .await
        .unwrap();
    let read = tier.reading().unwrap().list().await.unwrap();
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
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    let epoch = store.state().await.unwrap().epoch.unwrap();
    commit(&store, epoch).await;
    let (state, holder) = looked(&mut here.tier(), &store).await;
    let taken = store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
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
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    let standing = here.standing(&emptied).await;
    assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
    assert_eq!(here.start(&emptied).await.1, 0);
    for before in 0..2 {
        let (tier, found) = here.start(&emptied).await;
        assert_eq!(found, before);
        checkpoint(&tier).await;
        remove_all_but(&tier.directory, &tier.lineage.id);
        assert_eq!(here.aside().await, [1]);
    }
    // Also when the tier after it is given up.
    let (mut tier, _) = here.start(&emptied).await;
    tier.lost();
    let (tier, found) = here.start(&emptied).await;
    assert_eq!(found, 0);
    remove_all_but(&tier.directory, &tier.lineage.id);
    assert_eq!(here.aside().await, [1]);
}

#[tokio::test]
async fn a_history_that_is_shorter_than_what_was_seen_tells_nothing() {
    let (store, another, here) = (store().await, store().await, Machine::new());
    here.start(&store).await;
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    taken_by_another(&another).await;
    let standing = here.standing(&another).await;
    assert!(matches!(standing, Standing::Unknown(_)), "{standing:?}");
}

#[tokio::test]
async fn nothing_is_recorded_after_a_history_that_is_gone() {
    let (store, here) = (store().await, Machine::new());
    let (mut tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    std::fs::remove_dir_all(here.state.path().join("local")).unwrap();
    let (job, epoch) = tier.writing().unwrap();
    let appended = job.mark_completed(epoch, 0, unix_millis()).await;
    assert!(
        appended.as_ref().is_err_and(JobError::is_absent),
        "{appended:?}"
    );
    tier.mark_completed(0).await;
    assert!(tier.reading().is_none());
    // The next start does not look for what is gone, and begins another tier.
    let (tier, found) = here.start(&store).await;
    assert_eq!(found, 0);
    checkpoint(&tier).await;
}

#[tokio::test]
async fn a_damaged_first_record_is_no_loss() {
    let (store, here) = (store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    damage(Path::new(&tier.address()), 1);
    let (tier, found) = here.start(&store).await;
    assert_eq!(found, 1);
    checkpoint(&tier).await;
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
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    let mut tier = here.tier();
    let (state, holder) = looked(&mut tier, &store).await;
    taken_by_another(&store).await;
    let taken = store
        .take_over(holder.clone(), unix_millis())
        .await
        .unwrap();
    tier.taken(&name(), &state, taken, &holder, None)
        .await
        .unwrap();
    let here = tier.reading().unwrap().list().await.unwrap();
    assert!(here.checkpoints.is_empty());
}

#[tokio::test]
async fn what_cannot_be_kept_up_to_date_is_read_now_and_not_believed_later() {
    let (store, here) = (store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    // As on a full disk: the lineage cannot be written.
    let obstacle = tier.directory.join(format!("{FILE}.new"));
    std::fs::create_dir(&obstacle).unwrap();
    let mut tier = here.tier();
    let state = store.state().await.unwrap();
    let standing = tier.standing(&store, &state).await.unwrap();
    assert_eq!(standing, Standing::Ours);
    tier.before(&name(), standing, &state).await.unwrap_err();
    tier.forget();
    let taken = store.take_over("this host", unix_millis()).await.unwrap();
    let failed = tier
        .taken(&name(), &state, taken, &"this host".into(), None)
        .await;
    failed.unwrap_err();
    tier.forget();
    assert!(tier.writing().is_none());
    let read = tier.reading().unwrap().newest_restorable().await.unwrap();
    assert!(read.manifest.is_some());
    std::fs::remove_dir(&obstacle).unwrap();
    assert_eq!(here.start(&store).await.1, 0);
}

#[tokio::test]
async fn after_a_job_that_ended_nothing_counts() {
    let (store, here) = (store().await, Machine::new());
    let (mut tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    tier.mark_completed(0).await;
    let (mut tier, _) = here.start(&store).await;
    let read = tier.reading().unwrap().newest_restorable().await.unwrap();
    assert!(read.manifest.is_none());
    checkpoint(&tier).await;
    // The mark cannot be made: everything there is given up.
    let (other, _) = here.start(&store).await;
    tier.mark_completed(0).await;
    assert!(tier.reading().is_none());
    drop(other);
    assert_eq!(here.start(&store).await.1, 0);
}

#[tokio::test]
async fn another_store_leaves_alone_what_is_here() {
    let (store, other, here) = (store().await, store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    drop(tier);
    let (tier, found) = here.start_with(&other, "s3://bucket/another").await;
    assert_eq!(found, 0);
    checkpoint(&tier).await;
    drop(tier);
    // With or without a slash it is the same.
    let with_a_slash = format!("{STORE}/");
    assert_eq!(here.start_with(&store, &with_a_slash).await.1, 1);
}

#[tokio::test]
async fn nothing_is_deleted_on_the_word_of_a_lineage_that_is_damaged() {
    let (store, here) = (store().await, Machine::new());
    let (tier, _) = here.start(&store).await;
    checkpoint(&tier).await;
    let (lineage, tier) = (tier.directory.join(FILE), tier.address());
    std::fs::write(&lineage, "{").unwrap();
    let error = here.tier_of(STORE).map(|_| ()).unwrap_err();
    assert!(matches!(error, LocalTierError::Lineage { .. }), "{error}");
    assert!(Path::new(&tier).exists() && lineage.exists());
}

#[tokio::test]
async fn what_another_process_began_is_not_forgotten() {
    let machine = Machine::new();
    let store = store().await;
    let (mut tier, _) = machine.start(&store).await;
    let other = Lineage::new(&tier.lineage.store);
    other.write(&tier.directory).unwrap();
    tier.forget();
    assert_eq!(tier.epoch, None);
    let found = Lineage::read(&tier.directory, &tier.lineage.store).unwrap();
    assert_eq!(found, Some(other));
    // That of an abandoned history, where the new one could not be noted (a full disk).
    let (mut tier, _) = machine.start(&store).await;
    tier.begin_anew();
    tier.forget();
    assert!(!tier.directory.join(FILE).exists());
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
    let refused = |store| {
        matches!(
            Lineage::read(path, store),
            Err(LocalTierError::Lineage { .. })
        )
    };
    assert!(refused("s3://other"));
    lineage.id = "../../../../etc/x".into();
    lineage.write(path).unwrap();
    assert!(refused(STORE));
    std::fs::write(path.join(FILE), "{").unwrap();
    assert!(refused(STORE));
}
