//! What readers hold while they read, and what the next checkpoint takes of an unfinished one; `simulation.rs` has both
//! beside everything else at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{
    Error, Faulty, Image, NOW, Op, Verdict, below, last, name, noise, open, taken,
};
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use phos_storage::{
    CheckpointNumber, CollectOptions, Collected, CommitError, Digest, Job, JobError, UnixMillis,
};

const MINUTE: u64 = 60_000;

fn image(version: u64) -> Image {
    let mut device: Vec<_> = (0..8).map(|i| noise(i, 9000)).collect();
    device.push(noise(100 + version, 20_000));
    Image::of(device)
}

/// Several packs that nothing else has.
fn large(seed: u64) -> Image {
    Image::of((0..12).map(|i| noise(1000 * seed + i, 20_000)).collect())
}

async fn prune(job: &Job, keep: usize, now: UnixMillis) -> Collected {
    job.collect(&last(keep), CollectOptions::default(), now)
        .await
        .unwrap()
}

fn later(minutes: u64) -> UnixMillis {
    UnixMillis(NOW.0 + minutes * MINUTE)
}

#[tokio::test]
async fn what_is_held_is_read_to_the_end_though_retention_removed_it() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    large(1).commit(&job, epoch).await.unwrap();
    let reader = open(store.clone(), 7).await.job(name("job"));
    let (manifest, mut hold) = reader
        .hold(CheckpointNumber(2), "export on node x", NOW)
        .await
        .unwrap();
    image(1).commit(&job, epoch).await.unwrap();
    let done = prune(&job, 1, later(30)).await;
    assert_eq!((done.removed.len(), done.readers), (1, 1));
    assert!(done.protected_packs > 0, "{done:?}");
    assert_eq!(Image::read(&reader, &manifest).await.unwrap(), large(1));

    // As long as it says that it is at it.
    hold.renew(later(60)).await.unwrap();
    assert_eq!(prune(&job, 1, later(119)).await.packs, 0);
    assert_eq!(Image::read(&reader, &manifest).await.unwrap(), large(1));
    hold.release().await;
    assert_eq!(below(&*store, "readers").await, [""; 0]);
    assert!(prune(&job, 1, later(119)).await.packs > 0);
    assert!(Image::read(&reader, &manifest).await.is_err());
}

#[tokio::test]
async fn a_reader_that_died_is_forgotten_after_an_hour_whatever_its_clock_said() {
    for (renewed, now) in [(NOW, later(61)), (later(61), NOW)] {
        let store = Arc::new(InMemory::new());
        let (job, epoch) = taken(&store, 1).await;
        large(1).commit(&job, epoch).await.unwrap();
        let reader = open(store.clone(), 7).await.job(name("job"));
        let held = reader.hold_newest("restore", renewed).await.unwrap();
        assert!(held.1.is_some());
        drop((reader, held));
        image(1).commit(&job, epoch).await.unwrap();
        assert_eq!(below(&*store, "readers").await.len(), 1);
        let done = prune(&job, 1, now).await;
        assert!(done.packs > 0 && done.readers == 0, "{done:?}");
        assert_eq!(below(&*store, "readers").await, [""; 0]);
    }
}

#[tokio::test]
async fn a_note_that_cannot_be_read_protects_nothing_and_goes() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let key = format!("prefix/jobs/job/readers/{}", "ab".repeat(16));
    store.put(&Path::from(key), "x".into()).await.unwrap();
    let done = prune(&job, 1, NOW).await;
    assert_eq!((done.readers, done.blocked.len()), (0, 0));
    assert_eq!(below(&*store, "readers").await, [""; 0]);
}

#[tokio::test]
async fn who_may_not_write_reads_all_the_same() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let read_only = Faulty::new(store.clone(), |op, _| match op {
        Op::Get | Op::List => Verdict::Pass,
        _ => Verdict::Fail(Error::Denied),
    });
    let reader = open(read_only, 7).await.job(name("job"));
    let (found, hold) = reader.hold_newest("restore", NOW).await.unwrap();
    let (manifest, mut hold) = (found.manifest.unwrap(), hold.unwrap());
    let fault = hold.unprotected().unwrap();
    assert!(fault.is_permanent(), "{fault}");
    assert_eq!(Image::read(&reader, &manifest).await.unwrap(), image(0));
    hold.renew(NOW).await.unwrap();
    hold.release().await;
}

#[tokio::test]
async fn all_that_is_visible_can_be_held_and_what_is_not_cannot() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..3 {
        large(version).commit(&job, epoch).await.unwrap();
    }
    prune(&job, 2, NOW).await;
    let hold = job.hold_all("verify", NOW).await.unwrap();
    let gone = job.hold(CheckpointNumber(2), "export", NOW).await;
    assert!(matches!(gone, Err(JobError::Removed { .. })), "{gone:?}");
    let packs = below(&*store, "packs").await;
    prune(&job, 1, NOW).await;
    assert_eq!(below(&*store, "packs").await, packs);
    // One that is dropped goes with the next collection of this process.
    drop(hold);
    prune(&job, 1, NOW).await;
    assert!(below(&*store, "packs").await.len() < packs.len());
    assert_eq!(below(&*store, "readers").await, [""; 0]);
    let empty = open(store.clone(), 9).await.job(name("nobody"));
    let (found, hold) = empty.hold_newest("restore", NOW).await.unwrap();
    assert!(found.manifest.is_none() && hold.is_none());
}

// --- what unfinished checkpoints left --------------------------------------------------------------------------------

/// A writer that stored most of an image and then died: its process, at least.
async fn died(store: &Arc<InMemory>, seed: u64, image: &Image) {
    let (job, epoch) = taken(store, seed).await;
    let writer = job.begin(epoch).await.unwrap();
    image.put(&writer).await.unwrap();
    while writer.stats().stored_packs < 3 {
        tokio::task::yield_now().await;
    }
    drop(writer);
}

#[tokio::test]
async fn the_next_process_goes_on_where_the_last_one_died() {
    let store = Arc::new(InMemory::new());
    died(&store, 1, &large(1)).await;
    let stored = below(&*store, "packs").await;
    let (job, epoch) = taken(&store, 2).await;
    let commit = large(1).commit(&job, epoch).await.unwrap();
    assert_eq!(commit.resumed.packs as usize, stored.len());
    assert!(commit.resumed.bytes >= 9 * 20_000, "{:?}", commit.resumed);
    assert!(commit.stats.new_bytes <= 3 * 20_000 + 4);
    assert_eq!(commit.reused_chunks, 0);
    let listed = job.list().await.unwrap().checkpoints.remove(0);
    assert_eq!(
        listed.new_bytes,
        large(1).chunks().map(|c| c.len() as u64).sum::<u64>()
    );
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), large(1));
    assert_eq!(below(&*store, "writers").await, [""; 0]);
    // They are part of the history like any other.
    let again = large(1).commit(&job, epoch).await.unwrap();
    assert_eq!((again.stats.new_chunks, again.resumed.packs), (0, 0));
    let fresh = taken(&store, 3).await.0;
    prune(&fresh, 1, NOW).await;
    let manifest = fresh.manifest(again.number).await.unwrap();
    assert_eq!(Image::read(&fresh, &manifest).await.unwrap(), large(1));
}

#[tokio::test]
async fn a_checkpoint_that_failed_is_gone_on_with_by_the_same_process() {
    let store = Arc::new(InMemory::new());
    let down = Arc::new(AtomicBool::new(false));
    let refuse = down.clone();
    let count = AtomicU64::new(0);
    let faulty = Faulty::new(store.clone(), move |op, key| {
        let pack = op == Op::Put && key.contains("/packs/");
        if pack && refuse.load(Ordering::SeqCst) && count.fetch_add(1, Ordering::SeqCst) >= 2 {
            Verdict::Fail(Error::Expired)
        } else {
            Verdict::Pass
        }
    });
    let opened = open(faulty, 1).await;
    let job = opened.job(name("job"));
    let epoch = job.take_over("a", NOW).await.unwrap().epoch;
    down.store(true, Ordering::SeqCst);
    let error = large(1).commit(&job, epoch).await.unwrap_err();
    assert!(matches!(error, CommitError::Upload(_)), "{error}");
    let stored = below(&*store, "packs").await.len();
    assert_eq!(stored, 2);
    down.store(false, Ordering::SeqCst);
    let commit = large(1).commit(&job, epoch).await.unwrap();
    assert_eq!(commit.resumed.packs, 2);
    assert_eq!(below(&*store, "writers").await, [""; 0]);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), large(1));
}

#[tokio::test]
async fn what_was_collected_damaged_or_may_be_deleted_by_its_writer_is_not_gone_on_with() {
    // Collected, the deletion being late: the packs stand there.
    let store = Arc::new(InMemory::new());
    died(&store, 1, &large(1)).await;
    let (job, epoch) = taken(&store, 2).await;
    image(0).commit(&job, epoch).await.unwrap();
    died(&store, 3, &large(2)).await;
    let note = below(&*store, "writers").await.remove(0);
    let (path, bytes) = read(&store, &note).await;
    let mut kept = Vec::new();
    for key in below(&*store, "packs").await {
        kept.push(read(&store, &key).await);
    }
    prune(&taken(&store, 4).await.0, 1, NOW).await;
    store.put(&path, bytes.into()).await.unwrap();
    for (path, bytes) in kept {
        store.put(&path, bytes.into()).await.unwrap();
    }
    let (job, epoch) = taken(&store, 5).await;
    let commit = large(2).commit(&job, epoch).await.unwrap();
    assert_eq!(commit.resumed.packs, 0);

    // One of its packs is cut off: the others are used.
    let store = Arc::new(InMemory::new());
    died(&store, 1, &large(1)).await;
    let packs = below(&*store, "packs").await;
    let (path, mut bytes) = read(&store, &packs[0]).await;
    bytes.truncate(5000);
    store.put(&path, bytes.into()).await.unwrap();
    let (job, epoch) = taken(&store, 2).await;
    let commit = large(1).commit(&job, epoch).await.unwrap();
    assert_eq!(commit.resumed.packs as usize, packs.len() - 1);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), large(1));
}

async fn read(store: &Arc<InMemory>, key: &str) -> (Path, Vec<u8>) {
    let path = Path::from(key);
    let bytes = store.get(&path).await.unwrap().bytes().await.unwrap();
    (path, bytes.to_vec())
}

#[tokio::test]
async fn a_paused_writer_that_comes_back_takes_nothing_away() {
    let store = Arc::new(InMemory::new());
    let (old, old_epoch) = taken(&store, 1).await;
    let paused = old.begin(old_epoch).await.unwrap();
    let aborted = old.begin(old_epoch).await.unwrap();
    for writer in [&paused, &aborted] {
        large(1).put(writer).await.unwrap();
        while writer.stats().stored_packs < 3 {
            tokio::task::yield_now().await;
        }
    }
    let (job, epoch) = taken(&store, 2).await;
    let commit = large(1).commit(&job, epoch).await.unwrap();
    assert!(commit.resumed.packs >= 3);
    // Both come back after what they stored became part of another one's checkpoint.
    let error = paused.commit(large(1).body(), NOW).await.unwrap_err();
    assert!(error.is_fenced(), "{error}");
    aborted.abort(NOW).await;
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), large(1));
    prune(&job, 1, NOW).await;
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), large(1));
}

#[tokio::test]
async fn a_collection_beside_it_leaves_what_is_gone_on_with() {
    let store = Arc::new(InMemory::new());
    died(&store, 1, &large(1)).await;
    let (job, epoch) = taken(&store, 2).await;
    let writer = job.begin(epoch).await.unwrap();
    assert!(writer.contains(&Digest::of(&large(1).device[0][0])));
    let prunes = open(store.clone(), 9).await.job(name("job"));
    let done = prune(&prunes, 1, NOW).await;
    assert!(done.packs == 0 && done.protected_packs > 0, "{done:?}");
    // It dies as well, and the third goes on with what both stored.
    large(3).put(&writer).await.unwrap();
    while writer.stats().stored_packs < 3 {
        tokio::task::yield_now().await;
    }
    drop((writer, job));
    let (job, epoch) = taken(&store, 3).await;
    let mut both = large(1);
    both.device.extend(large(3).device);
    let commit = both.commit(&job, epoch).await.unwrap();
    assert!(commit.resumed.packs >= 6, "{:?}", commit.resumed);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), both);
    prune(&job, 1, NOW).await;
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), both);
    assert_eq!(below(&*store, "writers").await, [""; 0]);
}

// --- what changed ----------------------------------------------------------------------------------------------------

#[tokio::test]
async fn a_diff_counts_places_of_memory_and_content_of_files() {
    use phos_storage::Change;

    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    let zeros = bytes::Bytes::from(vec![0; 9000]);
    let mut first = Image::of(vec![noise(1, 9000), noise(2, 9000), zeros.clone()]);
    first.device.push(vec![noise(3, 5000)]);
    first.cpu = vec![noise(4, 700), noise(5, 700)];
    first.log = vec![noise(6, 100)];
    // Two chunks of the first allocation change places, one becomes zeros; the second allocation goes, and another
    // comes under its own number; the file gets something in front.
    let mut second = Image::of(vec![noise(2, 9000), noise(1, 9000), zeros.clone()]);
    second.device.push(vec![]);
    second.device.push(vec![zeros]);
    second.cpu = vec![noise(7, 300), noise(4, 700), noise(5, 700)];
    second.log = vec![noise(6, 100), noise(8, 50)];
    let a = first.commit(&job, epoch).await.unwrap().manifest;
    let b = second.commit(&job, epoch).await.unwrap().manifest;
    let diff = a.diff(&b);
    let found: Vec<_> = (diff.allocations.iter())
        .map(|a| (a.id, a.bytes, a.changed_bytes, a.change))
        .collect();
    let expected = [
        (0, 27_000, 18_000, Change::Kept),
        (1, 0, 0, Change::Kept),
        (2, 9000, 9000, Change::Added),
    ];
    assert_eq!(found, expected);
    assert_eq!(diff.device_changed(), 27_000);
    assert_eq!(
        (diff.cpu_image[1].bytes, diff.cpu_image[1].changed_bytes),
        (1700, 300)
    );
    assert_eq!(
        (diff.cpu_image[0].bytes, diff.cpu_image[0].changed_bytes),
        (150, 50)
    );
    assert_eq!(diff.new_bytes, 350, "what moved is not new");
    let back = b.diff(&a);
    assert_eq!(back.allocations[2].change, Change::Removed);
    assert_eq!(back.new_bytes, 5000);
    let same = a.diff(&a);
    assert_eq!((same.device_changed(), same.new_bytes), (0, 0));
}
