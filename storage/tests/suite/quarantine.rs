//! Quarantine: what it is put on, what it keeps from being used, and what lifts it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::common::{Faulty, Image, NOW, Op, Verdict, below, name, noise, open};
use bytes::Bytes;
use futures::FutureExt;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use phos_storage::{
    CheckpointNumber, Epoch, Job, JobError, PackId, ReadError, Verified, VerifyOptions,
};

/// What a user is told to do.
const REMEDY: &str = "`phos-ft verify --deep`";

fn image(version: u64) -> Image {
    let mut device: Vec<_> = (0..8).map(|i| noise(i, 9000)).collect();
    device.push(noise(100 + version, 20_000));
    Image::of(device)
}

/// Checkpoints 2 and 3, and a pack that only the second needs.
async fn two(store: &Arc<InMemory>) -> (Job, Epoch, PackId) {
    let opened = open(store.clone(), 1).await;
    opened.initialise().await.unwrap();
    let job = opened.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let first = image(1).commit(&job, epoch).await.unwrap().manifest;
    let second = image(2).commit(&job, epoch).await.unwrap().manifest;
    let own = (second.packs.iter()).find(|pack| !first.packs.contains(pack));
    (job, epoch, own.unwrap().id)
}

fn key_of(pack: &PackId) -> String {
    format!("prefix/jobs/job/packs/{pack}")
}

async fn get(store: &Arc<InMemory>, key: &str) -> Bytes {
    let found = store.get(&Path::from(key)).await.unwrap();
    found.bytes().await.unwrap()
}

async fn put(store: &Arc<InMemory>, key: &str, bytes: Bytes) {
    store.put(&Path::from(key), bytes.into()).await.unwrap();
}

async fn delete(store: &Arc<InMemory>, key: &str) {
    store.delete(&Path::from(key)).await.unwrap();
}

/// Damages an object; done again, it is as it was.
async fn flip(store: &Arc<InMemory>, key: &str, at: usize) {
    let mut bytes = get(store, key).await.to_vec();
    bytes[at] ^= 1;
    put(store, key, bytes.into()).await;
}

async fn verify(job: &Job, deep: bool, quarantine: bool) -> Verified {
    let options = VerifyOptions { deep, quarantine };
    job.verify(options, NOW, &|_| {}).await.unwrap()
}

/// The checkpoint that a restore takes is this one, and comes back.
async fn newest_is(job: &Job, number: u64) {
    let found = job.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(found.number, CheckpointNumber(number));
    let read = Image::read(job, &found).await.unwrap();
    assert_eq!(read, image(number - 1));
}

#[tokio::test]
async fn a_pack_that_is_sound_again_is_lifted_by_a_deep_look() {
    let store = Arc::new(InMemory::new());
    let (job, _, pack) = two(&store).await;
    flip(&store, &key_of(&pack), 70).await;
    for _ in 0..2 {
        let found = verify(&job, true, true).await;
        assert_eq!(found.damaged_packs.len(), 1, "{found:?}");
        assert_eq!(found.damaged_packs[0].pack, pack);
        assert!(
            found.damaged_packs[0].reason.contains("chunk"),
            "what is wrong with it, also once it is in quarantine: {found:?}"
        );
        assert_eq!(found.lifted, [""; 0]);
        assert_eq!(below(&*store, "quarantine").await.len(), 1);
        newest_is(&job, 2).await;
    }

    // It is mended. Only one who reads all of it and may write says so.
    flip(&store, &key_of(&pack), 70).await;
    for (deep, quarantine) in [(false, true), (false, false), (true, false)] {
        let found = verify(&job, deep, quarantine).await;
        assert!(!found.is_sound());
        assert_eq!(found.whole, [CheckpointNumber(2)]);
        assert_eq!(found.damaged_packs.len(), 1, "{found:?}");
        let damaged = &found.damaged_packs[0];
        assert_eq!(
            (damaged.pack, &damaged.checkpoints[..]),
            (pack, &[CheckpointNumber(3)][..])
        );
        assert!(
            damaged.reason.starts_with("quarantined as damaged") && damaged.reason.contains(REMEDY),
            "{damaged:?}"
        );
        assert_eq!(found.lifted, [""; 0]);
        assert_eq!(below(&*store, "quarantine").await.len(), 1);
        newest_is(&job, 2).await;
    }
    let manifest = job.manifest(CheckpointNumber(3)).await.unwrap();
    let error = job.check_packs(&manifest).await.unwrap_err().to_string();
    assert!(error.contains(REMEDY), "{error}");

    let found = verify(&job, true, true).await;
    assert!(found.is_sound(), "{found:?}");
    assert_eq!(found.lifted, [pack.to_string()]);
    assert_eq!(found.whole, [2, 3].map(CheckpointNumber));
    assert_eq!(below(&*store, "quarantine").await, [""; 0]);
    newest_is(&job, 3).await;
    assert_eq!(verify(&job, true, true).await.lifted, [""; 0]);
}

#[tokio::test]
async fn a_quarantined_manifest_is_damage_to_all_until_a_deep_look_lifts_it() {
    let store = Arc::new(InMemory::new());
    let (job, ..) = two(&store).await;
    let key = below(&*store, "manifests").await.pop().unwrap();
    flip(&store, &key, 100).await;
    let found = verify(&job, false, true).await;
    assert_eq!(found.damaged.len(), 1, "{found:?}");
    assert_eq!(below(&*store, "quarantine").await.len(), 1);

    flip(&store, &key, 100).await;
    for (deep, quarantine) in [(false, true), (false, false), (true, false)] {
        let found = verify(&job, deep, quarantine).await;
        assert_eq!(found.whole, [CheckpointNumber(2)]);
        assert_eq!((found.damaged.len(), found.damaged_packs.len()), (1, 0));
        let damaged = &found.damaged[0];
        assert_eq!(damaged.number, CheckpointNumber(3));
        assert!(
            damaged.reason.starts_with("quarantined as damaged") && damaged.reason.contains(REMEDY),
            "{damaged:?}"
        );
        newest_is(&job, 2).await;
    }
    let skipped = job.newest_restorable().await.unwrap().skipped;
    assert!(skipped[0].reason.contains(REMEDY), "{skipped:?}");
    let error = (job.hold(CheckpointNumber(3), "export", NOW).await).unwrap_err();
    assert!(matches!(error, JobError::Unusable { .. }), "{error}");
    assert!(error.to_string().contains(REMEDY), "{error}");
    assert_eq!(below(&*store, "readers").await, [""; 0]);

    let found = verify(&job, true, true).await;
    assert!(found.is_sound(), "{found:?}");
    assert_eq!(found.lifted.len(), 1);
    assert!(key.ends_with(&found.lifted[0]), "{found:?}");
    assert_eq!(below(&*store, "quarantine").await, [""; 0]);
    newest_is(&job, 3).await;
    let (manifest, hold) = job.hold(CheckpointNumber(3), "export", NOW).await.unwrap();
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(2));
    hold.release().await;
}

#[tokio::test]
async fn what_is_missing_gets_no_note_and_counts_again_when_it_is_back() {
    let store = Arc::new(InMemory::new());
    let (job, epoch, pack) = two(&store).await;
    let manifest = below(&*store, "manifests").await.pop().unwrap();
    for key in [key_of(&pack), manifest] {
        let bytes = get(&store, &key).await;
        delete(&store, &key).await;
        for deep in [false, true] {
            let found = verify(&job, deep, true).await;
            assert_eq!(found.whole, [CheckpointNumber(2)]);
            assert_eq!(found.damaged.len() + found.damaged_packs.len(), 1);
            assert!(
                (found.damaged_packs.iter()).all(|pack| pack.reason == "it is missing"),
                "{found:?}"
            );
        }
        newest_is(&job, 2).await;
        assert_eq!(below(&*store, "quarantine").await, [""; 0]);
        put(&store, &key, bytes).await;
        newest_is(&job, 3).await;
        let found = verify(&job, true, true).await;
        assert!(found.is_sound() && found.lifted.is_empty(), "{found:?}");
    }

    // One whose restore found it missing notes nothing either, and references it no more.
    delete(&store, &key_of(&pack)).await;
    let lost = job.manifest(CheckpointNumber(3)).await.unwrap();
    let error = Image::read(&job, &lost).await.unwrap_err();
    assert!(matches!(error, ReadError::PackLost { .. }), "{error}");
    let found = error.damaged_pack().unwrap();
    let reason = error.to_string();
    job.quarantine_pack(&found, &reason, NOW).await.unwrap();
    assert_eq!(below(&*store, "quarantine").await, [""; 0]);
    let commit = image(2).commit(&job, epoch).await.unwrap();
    assert!(commit.stats.new_chunks > 0);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(2));
}

/// What a store in memory does is done at once.
fn at_once<T>(done: impl Future<Output = object_store::Result<T>>) -> T {
    done.now_or_never().unwrap().unwrap()
}

/// A store whose packs are not there when they are asked for first, and there from then on.
fn forgetful(store: &Arc<InMemory>) -> Arc<Faulty> {
    let (inner, mut away) = (store.clone(), HashMap::<String, Option<Bytes>>::new());
    Faulty::new(store.clone(), move |op, key| {
        if op == Op::Get && key.contains("/packs/") {
            let path = Path::from(key);
            match away.get_mut(key) {
                Some(kept) => {
                    if let Some(bytes) = kept.take() {
                        at_once(inner.put(&path, bytes.into()));
                    }
                }
                None => {
                    let bytes = at_once(async { inner.get(&path).await?.bytes().await });
                    at_once(inner.delete(&path));
                    away.insert(key.to_owned(), Some(bytes));
                }
            }
        }
        Verdict::Pass
    })
}

#[tokio::test]
async fn a_pack_that_is_not_found_once_is_asked_for_again() {
    let store = Arc::new(InMemory::new());
    let (_, _, pack) = two(&store).await;
    let job = open(forgetful(&store), 7).await.job(name("job"));
    let manifest = job.manifest(CheckpointNumber(3)).await.unwrap();
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(2));
    let job = open(forgetful(&store), 8).await.job(name("job"));
    let found = verify(&job, true, true).await;
    assert!(found.is_sound(), "{found:?}");

    // Twice is enough.
    delete(&store, &key_of(&pack)).await;
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let counting = Faulty::new(store.clone(), move |op, key| {
        if op == Op::Get && key.contains(&pack.to_string()) {
            counter.fetch_add(1, Ordering::SeqCst);
        }
        Verdict::Pass
    });
    let job = open(counting, 9).await.job(name("job"));
    let error = Image::read(&job, &manifest).await.unwrap_err();
    assert!(
        matches!(&error, ReadError::PackLost { pack: lost, .. } if *lost == pack),
        "{error}"
    );
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn what_is_changed_on_the_way_once_is_no_damage() {
    let store = Arc::new(InMemory::new());
    two(&store).await;
    // Of each pack the header, the trailer, the index, the chunks.
    for nth in 1..=4 {
        let mut asked = HashMap::<String, usize>::new();
        let faulty = Faulty::new(store.clone(), move |op, key| {
            if op != Op::Get || !key.contains("/packs/") {
                return Verdict::Pass;
            }
            let count = asked.entry(key.to_owned()).or_default();
            *count += 1;
            if *count == nth {
                Verdict::Flip
            } else {
                Verdict::Pass
            }
        });
        let job = open(faulty, 7).await.job(name("job"));
        let found = verify(&job, true, true).await;
        assert!(found.is_sound(), "request {nth}: {found:?}");
    }
    assert_eq!(below(&*store, "quarantine").await, [""; 0]);
}
