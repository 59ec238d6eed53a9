//! Retention, collection and verification by example; `simulation.rs` has them beside everything else at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{
    Error, Faulty, Image, NOW, Op, Verdict, below, change, keys, last, name, noise, open, options,
    stored, taken,
};
use futures::future::BoxFuture;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use phos_storage::{
    CheckpointNumber, CollectError, CollectOptions, Collected, CommitError, Epoch, GiveWay, Hold,
    Job, JobError, Store, UnixMillis, VerifyOptions,
};

/// An image of which only a little changes from version to version.
fn image(version: u64) -> Image {
    let mut device: Vec<_> = (0..8).map(|i| noise(i, 9000)).collect();
    device.push(noise(100 + version, 20_000));
    Image::of(device)
}

async fn prune(job: &Job, keep: usize) -> Collected {
    job.collect(&last(keep), CollectOptions::default(), NOW)
        .await
        .unwrap()
}

async fn numbers(job: &Job) -> Vec<u64> {
    let listed = job.list().await.unwrap();
    assert_eq!(listed.damaged, []);
    listed.checkpoints.iter().map(|c| c.number.0).collect()
}

async fn read(job: &Job, number: u64) -> Image {
    let manifest = job.manifest(CheckpointNumber(number)).await.unwrap();
    Image::read(job, &manifest).await.unwrap()
}

#[tokio::test]
async fn what_is_not_kept_goes_and_what_is_kept_stays() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..5 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let packs = below(&*store, "packs").await.len();
    let before = keys(&*store).await;
    let dry = CollectOptions {
        dry_run: true,
        ..CollectOptions::default()
    };
    let would = job.collect(&last(2), dry, NOW).await.unwrap();
    assert_eq!(keys(&*store).await, before, "a dry run changes nothing");
    let done = prune(&job, 2).await;
    assert_eq!(done.removed, [2, 3, 4].map(CheckpointNumber));
    assert_eq!((&would.removed, &would.kept), (&done.removed, &done.kept));
    assert!(
        done.packs >= 3 && below(&*store, "packs").await.len() < packs,
        "{done:?}"
    );
    assert_eq!(below(&*store, "manifests").await.len(), 2);

    // Seen by all the same, and written to.
    let (other, epoch) = taken(&store, 2).await;
    for job in [&job, &other] {
        assert_eq!(numbers(job).await, [6, 5]);
        assert_eq!(read(job, 5).await, image(3));
        assert_eq!(read(job, 6).await, image(4));
        let newest = job.newest_restorable().await.unwrap();
        assert_eq!(newest.skipped, []);
        assert_eq!(newest.manifest.unwrap().number, CheckpointNumber(6));
        let gone = job.manifest(CheckpointNumber(3)).await.unwrap_err();
        assert!(matches!(gone, JobError::Removed { .. }), "{gone}");
    }
    let commit = image(4).commit(&other, epoch).await.unwrap();
    assert_eq!(commit.stats.new_chunks, 0, "repacked or not, it is known");
    let before = job.records().await.unwrap().len();
    let again = prune(&other, 3).await;
    assert_eq!((again.removed, again.packs), (vec![], 0));
    assert_eq!(
        job.records().await.unwrap().len(),
        before,
        "nothing to do, nothing written"
    );
    assert_eq!(below(&*store, "writers").await, [""; 0]);
}

#[tokio::test]
async fn a_checkpoint_being_written_keeps_what_it_references() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    // What the writer will find again stands only in an old checkpoint by then.
    image(7).commit(&job, epoch).await.unwrap();
    image(1).commit(&job, epoch).await.unwrap();
    let writer = job.begin(epoch).await.unwrap();
    assert!(
        image(7)
            .chunks()
            .all(|chunk| writer.contains(&phos_storage::Digest::of(chunk)))
    );
    let own = Image::of(vec![noise(999, 70_000), noise(998, 30_000)]);
    own.put(&writer).await.unwrap();
    // Packs are written in the background; the collection is to meet one that only the writer's note protects.
    stored(&writer, 1).await;

    let collector = open(store.clone(), 5).await.job(name("job"));
    let done = prune(&collector, 1).await;
    assert_eq!(done.removed, [CheckpointNumber(2)]);
    assert!(done.protected_packs > 0, "{done:?}");
    let mut both = image(7);
    both.device.extend(own.device);
    let commit = writer.commit(both.body(), NOW).await.unwrap();
    prune(&collector, 1).await;
    assert_eq!(numbers(&job).await, [commit.number.0]);
    assert_eq!(read(&job, commit.number.0).await, both);
}

/// Each step takes most of an hour, in which a reader says that it is still at it.
struct Slow {
    now: AtomicU64,
    hold: tokio::sync::Mutex<Hold>,
}

impl GiveWay for Slow {
    fn turn(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let mut hold = self.hold.lock().await;
            let later = self.now.fetch_add(50 * 60_000, Ordering::SeqCst) + 50 * 60_000;
            hold.renew(UnixMillis(later)).await.unwrap();
        })
    }
}

#[tokio::test]
async fn a_reader_that_renews_while_a_long_collection_goes_on_keeps_its_packs() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    let read = Image::of((0..6).map(|i| noise(700 + i, 20_000)).collect());
    read.commit(&job, epoch).await.unwrap();
    let reader = open(store.clone(), 5).await.job(name("job"));
    let (manifest, hold) = reader
        .hold(CheckpointNumber(2), "a restore", NOW)
        .await
        .unwrap();
    image(1).commit(&job, epoch).await.unwrap();

    let way = Slow {
        now: AtomicU64::new(NOW.0),
        hold: tokio::sync::Mutex::new(hold),
    };
    let clock = || UnixMillis(way.now.load(Ordering::SeqCst));
    let done = job
        .collect_giving_way(&last(1), CollectOptions::default(), clock, &way)
        .await
        .unwrap();
    assert_eq!(done.removed, [CheckpointNumber(2)]);
    assert!(clock().0 - NOW.0 > 3_600_000, "it did not take long enough");
    assert!(done.readers == 1 && done.protected_packs > 0, "{done:?}");
    assert_eq!(Image::read(&reader, &manifest).await.unwrap(), read);
    way.hold.into_inner().release().await;
    assert!(prune(&job, 1).await.packs > 0);
}

#[tokio::test]
async fn what_the_dead_left_goes_and_what_the_living_need_stays() {
    let store = Arc::new(InMemory::new());
    let (old, old_epoch) = taken(&store, 1).await;
    image(0).commit(&old, old_epoch).await.unwrap();
    let sound = below(&*store, "packs").await;
    let writer = old.begin(old_epoch).await.unwrap();
    let more = Image::of((0..9).map(|i| noise(500 + i, 20_000)).collect());
    more.put(&writer).await.unwrap();
    // They are written in the background.
    while below(&*store, "packs").await.len() <= sound.len() {
        tokio::task::yield_now().await;
    }
    let cli = open(store.clone(), 5).await.job(name("job"));
    prune(&cli, 9).await;
    assert!(
        below(&*store, "packs").await.len() > sound.len(),
        "its epoch is in force"
    );

    // Taken over: it can never commit, so it may go, although its process lives.
    let (new, epoch) = taken(&store, 2).await;
    prune(&new, 9).await;
    assert_eq!(below(&*store, "packs").await, sound);
    let error = writer.commit(more.body(), NOW).await.unwrap_err();
    assert!(error.is_fenced(), "{error}");
    let error = old
        .collect(
            &last(1),
            CollectOptions {
                epoch: Some(old_epoch),
                ..CollectOptions::default()
            },
            NOW,
        )
        .await
        .unwrap_err();
    assert!(error.is_fenced(), "{error}");

    // A writer that was dropped is known to have ended, by its own process.
    let writer = new.begin(epoch).await.unwrap();
    more.put(&writer).await.unwrap();
    drop(writer);
    prune(&new, 9).await;
    assert_eq!(below(&*store, "packs").await, sound);
    assert_eq!(below(&*store, "writers").await, [""; 0]);
    assert_eq!(read(&new, 2).await, image(0));
}

#[tokio::test]
async fn half_empty_packs_are_repacked_and_every_checkpoint_stays_what_it_was() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    // One chunk of each pack of the first lives on.
    let first = Image::of((0..12).map(|i| noise(i, 15_000)).collect());
    first.commit(&job, epoch).await.unwrap();
    let kept: Vec<_> = (0..12).step_by(4).map(|i| noise(i, 15_000)).collect();
    for version in 0..2 {
        let mut device = kept.clone();
        device.push(noise(300 + version, 15_000));
        Image::of(device).commit(&job, epoch).await.unwrap();
    }
    let images = [read(&job, 3).await, read(&job, 4).await];
    let stored = |keys: Vec<String>| async {
        let mut sum = 0;
        for key in keys {
            sum += store.head(&Path::from(key)).await.unwrap().size;
        }
        sum
    };
    let before = stored(below(&*store, "packs").await).await;
    let done = prune(&job, 2).await;
    assert!(done.repacked_packs >= 2, "{done:?}");
    let after = stored(below(&*store, "packs").await).await;
    assert!(after < before / 2, "{before} → {after}");
    for job in [job.clone(), taken(&store, 3).await.0] {
        assert_eq!([read(&job, 3).await, read(&job, 4).await], images);
        let sound = job
            .verify(
                VerifyOptions {
                    deep: true,
                    quarantine: true,
                },
                NOW,
                &|_| {},
            )
            .await
            .unwrap();
        assert!(sound.is_sound() && sound.whole.len() == 2, "{sound:?}");
    }
    assert_eq!(prune(&job, 2).await.repacked_packs, 0, "once");
}

#[tokio::test]
async fn a_collection_killed_anywhere_is_gone_on_with() {
    // The n-th request fails, and all after it; then another collector comes.
    for stop in 0..60 {
        let store = Arc::new(InMemory::new());
        let (job, epoch) = taken(&store, 1).await;
        for version in 0..4 {
            image(version).commit(&job, epoch).await.unwrap();
        }
        let asked = Arc::new(AtomicU64::new(0));
        let counter = asked.clone();
        let faulty = Faulty::new(store.clone(), move |_, _| {
            if counter.fetch_add(1, Ordering::SeqCst) >= stop {
                Verdict::Fail(Error::Denied)
            } else {
                Verdict::Pass
            }
        });
        let opened = Store::from_object_store(faulty, "prefix", options(70)).await;
        if let Ok(opened) = opened {
            let _ = opened
                .job(name("job"))
                .collect(&last(1), CollectOptions::default(), NOW)
                .await;
        }
        assert_eq!(read(&job, 5).await, image(3), "after {stop} requests");
        let (next, _) = taken(&store, 2).await;
        prune(&next, 1).await;
        assert_eq!(numbers(&next).await, [5]);
        assert_eq!(read(&next, 5).await, image(3));
        let needed = next
            .manifest(CheckpointNumber(5))
            .await
            .unwrap()
            .packs
            .len();
        assert_eq!(
            below(&*store, "packs").await.len(),
            needed,
            "after {stop} requests"
        );
        assert_eq!(below(&*store, "manifests").await.len(), 1);
    }
}

#[tokio::test]
async fn a_damaged_checkpoint_does_not_count_and_blocks_the_sweep() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..4 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let newest = below(&*store, "manifests").await.pop().unwrap();
    change(&*store, &Path::from(newest.as_str()), |bytes| {
        bytes[100] ^= 1
    })
    .await;
    let packs = below(&*store, "packs").await;
    let (fresh, epoch) = taken(&store, 2).await;
    let done = prune(&fresh, 1).await;
    assert_eq!(
        done.kept,
        [4, 5].map(CheckpointNumber),
        "the newest whole one is kept as well"
    );
    assert_eq!(done.blocked.len(), 1);
    assert_eq!(
        below(&*store, "packs").await,
        packs,
        "nobody knows what the damaged one names"
    );
    assert_eq!(read(&fresh, 4).await, image(2));
    // Once retention lets it go, things go on.
    image(9).commit(&fresh, epoch).await.unwrap();
    let done = prune(&fresh, 1).await;
    assert_eq!((done.removed.len(), done.blocked.len()), (2, 0));
    assert!(done.packs > 0);
}

/// A job with checkpoints of which the newest two are kept, and the older of them was repacked, by a collection that another had
/// swept before.
async fn collected() -> (Arc<InMemory>, Job, Epoch) {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..5 {
        image(version).commit(&job, epoch).await.unwrap();
        prune(&job, 2).await;
    }
    assert_eq!(numbers(&job).await.len(), 2);
    (store, job, epoch)
}

async fn newest_collection(store: &Arc<InMemory>) -> String {
    below(&**store, "collections").await.pop().unwrap()
}

async fn images(job: &Job) -> Vec<Image> {
    let mut all = Vec::new();
    for number in numbers(job).await {
        all.push(read(job, number).await);
    }
    all
}

#[tokio::test]
async fn a_damaged_collection_hides_nothing_and_is_gone_past() {
    // What it says, and which version of phos-ft wrote it.
    for at in [70, 8] {
        is_gone_past(at).await;
    }
}

async fn is_gone_past(at: usize) {
    let (store, _, _) = collected().await;
    let damaged = newest_collection(&store).await;
    change(&*store, &Path::from(damaged.as_str()), |bytes| {
        bytes[at] ^= 4
    })
    .await;
    let (fresh, epoch) = taken(&store, 2).await;
    let found = fresh.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(Image::read(&fresh, &found).await.unwrap(), image(4));
    let done = prune(&fresh, 2).await;
    assert_eq!(
        (done.gone_past.len(), done.blocked.len()),
        (1, 0),
        "{done:?}"
    );
    assert_eq!(images(&fresh).await, [image(4), image(3)]);
    // A new checkpoint references nothing that may be on its way out.
    let commit = image(4).commit(&fresh, epoch).await.unwrap();
    assert_eq!(commit.reused_chunks, 0);
    let commit = image(4).commit(&fresh, epoch).await.unwrap();
    assert_eq!(commit.stats.new_chunks, 0, "and then on that one");
    let done = prune(&fresh, 2).await;
    assert_eq!(
        (done.gone_past.len(), done.removed.len()),
        (0, 2),
        "{done:?}"
    );
    assert!(done.packs > 0);
    assert_eq!(images(&fresh).await, [image(4), image(4)]);
    // And everybody else sees it so: from now on as if nothing had been.
    let (other, epoch) = taken(&store, 3).await;
    let commit = image(4).commit(&other, epoch).await.unwrap();
    assert_eq!(commit.stats.new_chunks, 0);
    assert!(!below(&*store, "collections").await.contains(&damaged));
}

/// Where only the collection says where manifests are since packs were repacked, they are found without it.
#[tokio::test]
async fn what_a_damaged_collection_repacked_is_found() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    // What the first has in common with the last lies in a pack of which little is needed.
    let large = Image::of(
        (0..8)
            .map(|i| noise(i, 9000))
            .chain((50..70).map(|i| noise(i, 9000)))
            .collect(),
    );
    let small = Image::of((0..8).map(|i| noise(i, 9000)).collect());
    large.commit(&job, epoch).await.unwrap();
    let number = small.commit(&job, epoch).await.unwrap().number.0;
    let own = below(&*store, "manifests").await.pop().unwrap();
    let done = prune(&job, 1).await;
    assert!(done.repacked_packs > 0, "{done:?}");
    assert!(!below(&*store, "manifests").await.contains(&own));
    change(
        &*store,
        &Path::from(newest_collection(&store).await),
        |bytes| bytes[70] ^= 1,
    )
    .await;
    let (fresh, _) = taken(&store, 2).await;
    for _ in 0..2 {
        assert_eq!(read(&fresh, number).await, small);
        let found = fresh.newest_restorable().await.unwrap();
        assert_eq!(found.manifest.unwrap().number.0, number);
        prune(&fresh, 1).await;
    }
}

/// That of the log, which says that there was a collection.
#[tokio::test]
async fn a_damaged_record_of_a_collection_is_gone_past_when_somebody_has_the_job_again() {
    // Also where the collection before it has been deleted since.
    for cleaned in [false, true] {
        let (store, job, _) = collected().await;
        if cleaned {
            prune(&job, 2).await;
            assert_eq!(below(&*store, "collections").await.len(), 1);
        }
        let newest = below(&*store, "head").await.pop().unwrap();
        change(&*store, &Path::from(newest.as_str()), |bytes| {
            bytes[40] ^= 1
        })
        .await;
        let fresh = open(store.clone(), 2).await.job(name("job"));
        let keep = last(2);
        let error = (fresh.collect(&keep, CollectOptions::default(), NOW).await).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("cannot be read") && said.contains("next start"),
            "{said}"
        );
        drop(job);
        let (fresh, epoch) = taken(&store, 3).await;
        let done = prune(&fresh, 2).await;
        assert_eq!(done.blocked, [], "what is no checkpoint blocks nothing");
        assert!(!done.gone_past.is_empty(), "{done:?}");
        assert_eq!(images(&fresh).await, [image(4), image(3)]);
        let commit = image(4).commit(&fresh, epoch).await.unwrap();
        assert_eq!(commit.reused_chunks, 0);
    }
}

/// Of a store that is half a copy nothing is deleted.
#[tokio::test]
async fn a_missing_collection_is_not_gone_past() {
    let (store, _, _) = collected().await;
    let key = newest_collection(&store).await;
    store.delete(&Path::from(key.as_str())).await.unwrap();
    let (fresh, _) = taken(&store, 2).await;
    let before = keys(&*store).await;
    let keep = last(1);
    let error = fresh
        .collect(&keep, CollectOptions::default(), NOW)
        .await
        .unwrap_err();
    assert!(
        matches!(error, CollectError::Damaged { .. }) && error.is_permanent(),
        "{error}"
    );
    assert!(error.to_string().contains("is missing"), "{error}");
    assert_eq!(keys(&*store).await, before);
    let newest = fresh.newest_restorable().await.unwrap().manifest;
    assert_eq!(newest.map(|m| m.number.0 > 0), Some(true));
}

#[tokio::test]
async fn a_sweep_between_begin_and_commit_is_met_even_without_the_note() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let writer = job.begin(epoch).await.unwrap();
    Image::of((0..9).map(|i| noise(500 + i, 20_000)).collect())
        .put(&writer)
        .await
        .unwrap();
    // Of three packs the last is not closed.
    stored(&writer, 2).await;
    // Somebody deletes the note, which is against the protocol.
    for key in below(&*store, "writers").await {
        store.delete(&Path::from(key)).await.unwrap();
    }
    let cli = open(store.clone(), 5).await.job(name("job"));
    prune(&cli, 9).await;
    let body = Image::of((0..9).map(|i| noise(500 + i, 20_000)).collect());
    body.put(&writer).await.unwrap();
    let error = writer.commit(body.body(), NOW).await.unwrap_err();
    assert!(
        matches!(error, CommitError::PackLost { .. }) && !error.is_permanent(),
        "{error}"
    );
    assert_eq!(numbers(&job).await, [2]);
    body.commit(&job, epoch).await.unwrap();
}

#[tokio::test]
async fn verification_names_and_quarantines_what_is_damaged() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    for version in 0..3 {
        image(version).commit(&job, epoch).await.unwrap();
    }
    let check = |deep| VerifyOptions {
        deep,
        quarantine: true,
    };
    let seen = AtomicU64::new(0);
    let sound = job
        .verify(check(true), NOW, &|p| {
            seen.fetch_add(p.bytes, Ordering::SeqCst);
        })
        .await
        .unwrap();
    assert!(sound.is_sound() && sound.chunks > 0, "{sound:?}");
    assert_eq!(
        seen.load(Ordering::SeqCst),
        sound.pack_bytes,
        "progress ends at the total"
    );

    // A flipped bit in a chunk of the newest one's own pack: only a deep look finds it.
    let pack = job
        .manifest(CheckpointNumber(4))
        .await
        .unwrap()
        .packs
        .last()
        .unwrap()
        .id;
    change(
        &*store,
        &Path::from(format!("prefix/jobs/job/packs/{pack}")),
        |bytes| bytes[70] ^= 1,
    )
    .await;
    assert!(
        job.verify(check(false), NOW, &|_| {})
            .await
            .unwrap()
            .is_sound()
    );
    let found = job.verify(check(true), NOW, &|_| {}).await.unwrap();
    assert_eq!(found.damaged_packs.len(), 1);
    assert_eq!(found.damaged_packs[0].pack, pack);
    assert_eq!(found.damaged_packs[0].checkpoints, [CheckpointNumber(4)]);
    assert_eq!(found.whole, [2, 3].map(CheckpointNumber));
    let restorable = job.newest_restorable().await.unwrap();
    assert_eq!(restorable.manifest.unwrap().number, CheckpointNumber(3));

    // A cut pack, a pack with another's index, and a manifest.
    let pack = job
        .manifest(CheckpointNumber(3))
        .await
        .unwrap()
        .packs
        .last()
        .unwrap()
        .id;
    let at = format!("prefix/jobs/job/packs/{pack}");
    change(&*store, &Path::from(at.as_str()), |bytes| {
        let at = bytes.len() - 70;
        bytes[at] ^= 1;
    })
    .await;
    let manifest = below(&*store, "manifests").await.remove(0);
    change(&*store, &Path::from(manifest.as_str()), |bytes| {
        bytes[80] ^= 1
    })
    .await;
    let found = job.verify(check(false), NOW, &|_| {}).await.unwrap();
    assert!(
        found.damaged_packs.iter().any(|d| d.pack == pack),
        "{found:?}"
    );
    assert_eq!(found.damaged[0].number, CheckpointNumber(2));
    assert_eq!(found.whole, []);
    assert_eq!(below(&*store, "quarantine").await.len(), 3);
    assert_eq!(job.newest_restorable().await.unwrap().manifest, None);
    // The next one leans on nothing of it, and retention cleans up.
    image(3).commit(&job, epoch).await.unwrap();
    assert_eq!(
        job.newest_restorable()
            .await
            .unwrap()
            .manifest
            .unwrap()
            .number,
        CheckpointNumber(5)
    );
    prune(&job, 1).await;
    prune(&job, 1).await;
    assert_eq!(below(&*store, "quarantine").await, [""; 0]);
    assert_eq!(read(&job, 5).await, image(3));
}

#[tokio::test]
async fn a_network_that_is_down_is_no_damage() {
    let store = Arc::new(InMemory::new());
    let (job, epoch) = taken(&store, 1).await;
    image(0).commit(&job, epoch).await.unwrap();
    let faulty = Faulty::new(store.clone(), |op, key| {
        if op == Op::Get && key.contains("/packs/") {
            Verdict::Fail(Error::Timeout)
        } else {
            Verdict::Pass
        }
    });
    let job = open(faulty, 2).await.job(name("job"));
    let check = VerifyOptions {
        deep: true,
        quarantine: true,
    };
    let error = job.verify(check, NOW, &|_| {}).await.unwrap_err();
    assert!(
        matches!(error, JobError::Store(_)) && !error.is_permanent(),
        "{error}"
    );
    assert_eq!(below(&*store, "quarantine").await, [""; 0]);
}

/// A job with a checkpoint in a directory.
async fn in_a_directory() -> (tempfile::TempDir, Job, Epoch) {
    let directory = tempfile::tempdir().unwrap();
    let address = directory.path().to_str().unwrap();
    let store = Store::open(address, options(1)).await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("a", NOW).await.unwrap().epoch;
    image(0).commit(&job, epoch).await.unwrap();
    (directory, job, epoch)
}

#[tokio::test]
async fn a_manifest_that_a_dead_process_was_writing_goes() {
    let (directory, job, epoch) = in_a_directory().await;
    let manifests = directory.path().join("jobs/job/manifests");
    let [old, next] = [2, 3].map(|n| manifests.join(format!("{n:020}-abababababababab#1")));
    for file in [&old, &next] {
        std::fs::write(file, b"half a manifest").unwrap();
    }
    let living = job.begin(epoch).await.unwrap();
    assert_eq!(prune(&job, 9).await.unfinished_uploads, 0, "it may be its");
    drop(living);
    assert_eq!(prune(&job, 9).await.unfinished_uploads, 1);
    assert!(!old.exists() && next.exists(), "the next one may be begun");
}

#[tokio::test]
async fn files_that_a_dead_process_was_writing_go() {
    let (directory, job, epoch) = in_a_directory().await;
    let packs = directory.path().join("jobs/job/packs");
    let dead = packs.join(format!("{}-00000000#1", "ab".repeat(16)));
    std::fs::write(&dead, b"half a pack").unwrap();
    let living = job.begin(epoch).await.unwrap();
    let note = std::fs::read_dir(directory.path().join("jobs/job/writers"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap();
    let alive = packs.join(format!("{}-00000000#1", note.file_name().to_str().unwrap()));
    std::fs::write(&alive, b"half a pack").unwrap();
    let done = prune(&job, 9).await;
    assert_eq!(done.unfinished_uploads, 1);
    assert!(!dead.exists() && alive.exists());
    drop(living);
    prune(&job, 9).await;
    assert!(!alive.exists());
}
