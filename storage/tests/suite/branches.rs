//! Going on from an older checkpoint: what a crash resumes from then, what is left behind, and how long that stays.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::common::{Image, NOW, encrypted, name, noise, open, open_with};
use object_store::memory::InMemory;
use phos_storage::{Candidate, CheckpointNumber, CollectOptions, Epoch, Job, StoreOptions};

fn image(version: u64) -> Image {
    Image::of((0..4).map(|i| noise(10 * version + i, 3000)).collect())
}

async fn job(options: StoreOptions) -> (Job, Epoch) {
    let store = open_with(Arc::new(InMemory::new()), options).await;
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    (job, epoch)
}

async fn commit(job: &Job, epoch: Epoch, version: u64) -> u64 {
    image(version).commit(job, epoch).await.unwrap().number.0
}

async fn go_back(job: &Job, to: u64) -> Epoch {
    let to = (to > 0).then_some(CheckpointNumber(to));
    job.take_over_from("node", NOW, to).await.unwrap().epoch
}

/// The numbers on the current branch, and those of the others.
async fn branches(job: &Job) -> (Vec<u64>, BTreeMap<u64, Vec<u64>>) {
    let (mut current, mut left) = (Vec::new(), BTreeMap::<u64, Vec<u64>>::new());
    for checkpoint in job.list().await.unwrap().checkpoints {
        assert_eq!(checkpoint.is_current(), checkpoint.branch.is_none());
        match checkpoint.branch {
            None => current.push(checkpoint.number.0),
            Some(branch) => left.entry(branch).or_default().push(checkpoint.number.0),
        }
    }
    (current, left)
}

async fn newest(job: &Job) -> Option<u64> {
    let found = job.newest_restorable().await.unwrap();
    assert!(found.skipped.is_empty());
    let number = found.manifest.as_ref().map(|m| m.number.0);
    let state = job.state().await.unwrap().newest.map(|n| n.0);
    assert_eq!(number, state);
    let (_, hold) = job.hold_newest("test", NOW).await.unwrap();
    if let Some(hold) = hold {
        hold.release().await;
    }
    number
}

/// The newest of each branch.
fn one_each(all: &[Candidate]) -> BTreeSet<CheckpointNumber> {
    let newest: BTreeMap<_, _> = all.iter().map(|c| (c.branch, c.number)).collect();
    newest.into_values().collect()
}

async fn collect(job: &Job, epoch: Epoch) {
    let options = CollectOptions {
        epoch: Some(epoch),
        ..CollectOptions::default()
    };
    job.collect(&one_each, options, || NOW).await.unwrap();
}

#[tokio::test]
async fn a_crash_resumes_on_the_branch_that_was_begun() {
    for options in [crate::common::options(1), encrypted(1, 7)] {
        let (job, epoch) = job(options).await;
        let mut numbers = Vec::new();
        for version in 1..4 {
            numbers.push(commit(&job, epoch, version).await);
        }
        assert_eq!(numbers, [2, 3, 4]);
        let epoch = go_back(&job, 2).await;
        assert_eq!(newest(&job).await, Some(2));
        assert_eq!(branches(&job).await, (vec![2], [(5, vec![4, 3])].into()));
        // A take-over as any other changes nothing.
        job.take_over("node", NOW).await.unwrap();
        assert_eq!(newest(&job).await, Some(2));
        let again = job.take_over("node", NOW).await.unwrap().epoch;
        assert!(again > epoch);
        let seven = commit(&job, again, 8).await;
        assert_eq!(newest(&job).await, Some(seven));
        assert_eq!(
            branches(&job).await,
            (vec![seven, 2], [(5, vec![4, 3])].into())
        );
        // Back to what was left behind: it can be read, and goes on.
        let epoch = go_back(&job, 4).await;
        assert_eq!(newest(&job).await, Some(4));
        let (current, left) = branches(&job).await;
        assert_eq!(current, [4, 3, 2]);
        assert_eq!(left.into_values().collect::<Vec<_>>(), [vec![seven]]);
        let found = job.newest_restorable().await.unwrap().manifest.unwrap();
        assert_eq!(Image::read(&job, &found).await.unwrap(), image(3));
        let last = commit(&job, epoch, 9).await;
        assert_eq!(newest(&job).await, Some(last));
    }
}

#[tokio::test]
async fn the_last_of_what_was_left_stays_through_collections() {
    let (job, epoch) = job(crate::common::options(1)).await;
    for version in 1..5 {
        commit(&job, epoch, version).await;
    }
    let epoch = go_back(&job, 3).await;
    for version in 10..20 {
        commit(&job, epoch, version).await;
        collect(&job, epoch).await;
        let (current, left) = branches(&job).await;
        assert_eq!(current.len(), 1, "{current:?}");
        assert_eq!(left, [(6, vec![5])].into());
        assert_eq!(newest(&job).await, Some(current[0]));
    }
    // From its beginning: with the next collection the fork is known by that alone.
    assert!(!job.began_afresh().await.unwrap());
    let last = newest(&job).await.unwrap();
    let epoch = go_back(&job, 0).await;
    assert_eq!(newest(&job).await, None);
    assert!(job.began_afresh().await.unwrap());
    for version in 30..33 {
        commit(&job, epoch, version).await;
        collect(&job, epoch).await;
        let (current, left) = branches(&job).await;
        assert_eq!(current.len(), 1);
        assert_eq!(
            left.into_values().collect::<Vec<_>>(),
            [vec![5], vec![last]]
        );
        assert!(job.began_afresh().await.unwrap());
    }
    // All are whole.
    for (number, manifest) in job.checkpoints().await.unwrap() {
        let manifest = manifest.unwrap();
        Image::read(&job, &manifest)
            .await
            .unwrap_or_else(|e| panic!("{number}: {e}"));
    }
    // Back to the oldest of them, with what its run had.
    let epoch = go_back(&job, 5).await;
    assert_eq!(newest(&job).await, Some(5));
    assert!(!job.began_afresh().await.unwrap());
    collect(&job, epoch).await;
    assert_eq!(newest(&job).await, Some(5));
}

#[tokio::test]
async fn the_end_of_a_run_that_was_gone_back_from_is_none() {
    let (job, epoch) = job(crate::common::options(1)).await;
    commit(&job, epoch, 1).await;
    commit(&job, epoch, 2).await;
    job.mark_completed(epoch, 0, NOW).await.unwrap();
    job.take_over("node", NOW).await.unwrap();
    assert_eq!(newest(&job).await, None);
    assert_eq!(job.state().await.unwrap().completed, Some(0));
    let epoch = go_back(&job, 2).await;
    assert_eq!(newest(&job).await, Some(2));
    assert_eq!(job.state().await.unwrap().completed, None);
    commit(&job, epoch, 3).await;
    collect(&job, epoch).await;
    assert!(newest(&job).await > Some(4));
    let listed = job.list().await.unwrap().checkpoints;
    assert!(listed.iter().all(|c| !c.earlier_run), "{listed:?}");
}

#[tokio::test]
async fn a_run_that_ended_is_thinned_out_for_itself() {
    let (job, epoch) = job(crate::common::options(1)).await;
    let first = commit(&job, epoch, 1).await;
    let last = commit(&job, epoch, 2).await;
    job.mark_completed(epoch, 0, NOW).await.unwrap();
    // As long as nothing came after it, it is the current one.
    let only = |all: &[Candidate]| {
        assert!(all.iter().all(|c| c.branch.is_none()), "{all:?}");
        all.iter().map(|c| c.number).collect()
    };
    let options = CollectOptions {
        epoch: Some(epoch),
        ..CollectOptions::default()
    };
    job.collect(&only, options, || NOW).await.unwrap();
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let mut again = 0;
    for version in 3..6 {
        again = commit(&job, epoch, version).await;
        // Also when the log before the collection is not read any more.
        collect(&job, epoch).await;
    }
    let listed = job.list().await.unwrap().checkpoints;
    let numbers: Vec<u64> = listed.iter().map(|c| c.number.0).collect();
    assert_eq!(numbers, [again, last], "{first} is gone");
    assert!(!listed[0].earlier_run && listed[1].earlier_run);
    assert_eq!(newest(&job).await, Some(again));
}

/// A log that knows no branches is written so that older builds read it.
#[tokio::test]
async fn another_handle_sees_the_same() {
    let store = Arc::new(InMemory::new());
    let first = open(store.clone(), 1).await;
    first.initialise().await.unwrap();
    let first = first.job(name("job"));
    let epoch = first.take_over("node", NOW).await.unwrap().epoch;
    for version in 1..4 {
        commit(&first, epoch, version).await;
    }
    let other = open(store, 2).await.job(name("job"));
    let epoch = go_back(&other, 3).await;
    // Who did not see it is fenced, whatever it remembers.
    assert!(
        image(7)
            .commit(&first, Epoch(1))
            .await
            .unwrap_err()
            .is_fenced()
    );
    commit(&other, epoch, 8).await;
    assert_eq!(branches(&first).await, branches(&other).await);
    assert_eq!(branches(&first).await.0, [6, 3, 2]);
}
