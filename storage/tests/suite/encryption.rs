//! What an encrypted job refuses, and what its objects tell: by the public interface and the bytes in the store.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{Image, NOW, encrypted, keys, name, noise, options};
use bytes::Bytes;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use phos_storage::{
    Candidate, CheckpointNumber, CollectOptions, Digest, Epoch, FaultKind, Job, JobError, Lease,
    Naming, Restorable, Store, StoreOptions, VerifyOptions,
};

type Raw = Arc<InMemory>;

const KEY: u8 = 1;

async fn job(raw: &Raw, options: StoreOptions) -> Job {
    let store = Store::from_object_store(raw.clone(), "prefix", options).await;
    store.unwrap().job(name("job"))
}

fn image(version: u64) -> Image {
    let text: Bytes = b"step 1 loss 0.25\n".repeat(300).into();
    Image {
        device: vec![vec![
            noise(1, 9000),
            noise(10 + version, 9000),
            vec![0; 5000].into(),
        ]],
        cpu: vec![text.clone()],
        log: vec![text],
    }
}

/// Two checkpoints, 2 and 3.
async fn two(raw: &Raw, options: StoreOptions) -> (Job, Epoch) {
    let job = job(raw, options).await;
    job.store().initialise().await.unwrap();
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    for version in [0, 1] {
        image(version).commit(&job, epoch).await.unwrap();
    }
    (job, epoch)
}

async fn get(raw: &Raw, key: &str) -> Bytes {
    raw.get(&Path::from(key))
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap()
}

async fn put(raw: &Raw, key: &str, bytes: impl Into<Bytes>) {
    raw.put(&Path::from(key), bytes.into().into())
        .await
        .unwrap();
}

async fn all(raw: &Raw) -> BTreeMap<String, Bytes> {
    let mut found = BTreeMap::new();
    for key in keys(&**raw).await {
        found.insert(key.clone(), get(raw, &key).await);
    }
    found
}

async fn below(raw: &Raw, part: &str) -> Vec<String> {
    let mut found = keys(&**raw).await;
    found.retain(|key| key.contains(part));
    found
}

/// What can be restored, by a process that knows nothing yet.
async fn restorable(raw: &Raw, seed: u64) -> Restorable {
    let job = job(raw, encrypted(seed, KEY)).await;
    job.newest_restorable().await.unwrap()
}

#[tokio::test]
async fn a_key_that_is_not_the_jobs_is_refused_and_nothing_is_written() {
    for (begun, with, words) in [
        (Some(KEY), None, "--encryption-key-file"),
        (Some(KEY), Some(2), "the file given is key"),
        (None, Some(KEY), "take another --job"),
    ] {
        let open = |key: Option<u8>, seed| match key {
            Some(key) => encrypted(seed, key),
            None => options(seed),
        };
        let raw = Raw::default();
        two(&raw, open(begun, 1)).await;
        let before = all(&raw).await;
        let job = job(&raw, open(with, 2)).await;
        let refused = |error: JobError| {
            let JobError::Store(fault) = &error else {
                panic!("{error}")
            };
            assert_eq!(fault.kind(), FaultKind::Key, "{error}");
            assert!(error.is_permanent());
            assert!(error.to_string().contains(words), "{error}");
        };
        refused(job.check_key().await.unwrap_err());
        refused(job.take_over("other", NOW).await.unwrap_err());
        refused(job.list().await.unwrap_err());
        refused(job.state().await.unwrap_err());
        refused(job.manifest(CheckpointNumber(3)).await.unwrap_err());
        refused(job.newest_restorable().await.unwrap_err());
        refused(job.begin(Epoch(1)).await.unwrap_err());
        refused(job.hold_newest("reader", NOW).await.unwrap_err());
        refused(job.mark_completed(Epoch(1), 0, NOW).await.unwrap_err());
        let verify = VerifyOptions {
            deep: true,
            quarantine: true,
        };
        refused(job.verify(verify, NOW, &|_| {}).await.unwrap_err());
        let keep = |_: &[Candidate]| std::collections::BTreeSet::new();
        let error = job.collect(&keep, CollectOptions::default(), NOW).await;
        assert!(error.unwrap_err().to_string().contains(words));
        assert_eq!(all(&raw).await, before);
    }
}

#[tokio::test]
async fn one_key_serves_jobs_that_have_nothing_in_common() {
    let raw = Raw::default();
    let store = Store::from_object_store(raw.clone(), "prefix", encrypted(1, KEY)).await;
    let store = store.unwrap();
    let mut names = Vec::new();
    for job in ["a", "b"] {
        let job = store.job(name(job));
        let epoch = job.take_over("node", NOW).await.unwrap().epoch;
        let commit = image(0).commit(&job, epoch).await.unwrap();
        assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(0));
        names.push(commit.manifest.chunks[0].digest);
    }
    assert!(names[0] != names[1] && !names.contains(&Digest::of(&noise(1, 9000))));
    // The record of one is not one of the other.
    let moved = get(&raw, &format!("prefix/jobs/a/head/{:020}", 2)).await;
    put(&raw, &format!("prefix/jobs/b/head/{:020}", 2), moved).await;
    let job = store.job(name("b"));
    assert!(job.newest_restorable().await.unwrap().manifest.is_none());
}

#[tokio::test]
async fn no_object_tells_what_is_in_it_or_what_its_chunks_are() {
    // With the same test on a job that is not encrypted, as a search that finds nothing proves nothing.
    for key in [None, Some(KEY)] {
        let raw = Raw::default();
        let options = key.map_or_else(|| options(1), |key| encrypted(1, key));
        let (job, epoch) = two(&raw, options).await;
        let writer = job.begin(epoch).await.unwrap();
        let (_manifest, hold) = job.hold(CheckpointNumber(3), "who", NOW).await.unwrap();
        let pack = job.manifest(CheckpointNumber(2)).await.unwrap().packs[0].id;
        job.quarantine_pack(&pack, "the reason is told", NOW)
            .await
            .unwrap();
        let keep = |all: &[Candidate]| all.iter().rev().take(1).map(|c| c.number).collect();
        let done = job.collect(&keep, CollectOptions::default(), NOW).await;
        assert_eq!(done.unwrap().removed, [CheckpointNumber(2)]);
        let objects = all(&raw).await;
        for part in [
            "head",
            "manifests",
            "packs",
            "collections",
            "writers",
            "readers",
            "quarantine",
        ] {
            let part = format!("/{part}/");
            assert!(objects.keys().any(|key| key.contains(&part)), "{part}");
        }
        let chunk = noise(1, 9000);
        let name = Digest::of(&chunk);
        for (what, needle) in [
            ("content", &chunk[100..116]),
            ("its name", &name.as_bytes()[..16]),
            ("a record", b"taken-over"),
            ("a note of a reader", b"renewed"),
            ("a note of a writer", b"leans_on"),
            ("a reason", b"the reason is told"),
        ] {
            let found = objects
                .values()
                .any(|bytes| bytes.windows(needle.len()).any(|w| w == needle));
            assert_eq!(found, key.is_none(), "{what}");
        }
        drop((writer, hold));
    }
}

#[tokio::test]
async fn any_changed_byte_of_any_object_is_noticed() {
    let raw = Raw::default();
    let (_, _) = two(&raw, encrypted(1, KEY)).await;
    let objects = all(&raw).await;
    let newest = restorable(&raw, 2).await.manifest.unwrap();
    for (key, bytes) in &objects {
        if key.ends_with("phos-format") {
            // Not the job's: it says of which version the store is.
            continue;
        }
        let stride = (bytes.len() / 60).max(1);
        for at in (0..bytes.len()).step_by(stride) {
            let mut changed = bytes.to_vec();
            changed[at] ^= 0x20;
            put(&raw, key, changed).await;
            let job = job(&raw, encrypted(3, KEY)).await;
            let verify = VerifyOptions {
                deep: true,
                quarantine: false,
            };
            // If it is the first record's, and its key's id, the second one says whose the job is.
            let verified = job.verify(verify, NOW, &|_| {}).await.unwrap();
            assert!(!verified.is_sound(), "byte {at} of {key}");
            let records = job.records().await.unwrap();
            let damaged = records.iter().filter(|(_, record)| record.is_err()).count();
            assert_eq!(
                damaged,
                usize::from(key.contains("/head/")),
                "byte {at} of {key}"
            );
        }
        put(&raw, key, bytes.clone()).await;
    }
    let after = restorable(&raw, 4).await;
    assert_eq!((after.manifest, after.skipped), (Some(newest), vec![]));
}

#[tokio::test]
async fn objects_in_each_others_places_are_refused() {
    let raw = Raw::default();
    two(&raw, encrypted(1, KEY)).await;
    for part in ["/manifests/", "/packs/", "/head/"] {
        let places = below(&raw, part).await;
        let (older, newer) = (&places[places.len() - 2], &places[places.len() - 1]);
        let (old, new) = (get(&raw, older).await, get(&raw, newer).await);
        put(&raw, newer, old.clone()).await;
        let job = job(&raw, encrypted(2, KEY)).await;
        let verify = VerifyOptions {
            deep: false,
            quarantine: false,
        };
        let verified = job.verify(verify, NOW, &|_| {}).await.unwrap();
        assert!(!verified.is_sound(), "{part}");
        assert!(!verified.whole.contains(&CheckpointNumber(3)), "{part}");
        put(&raw, newer, new).await;
    }
    assert!(restorable(&raw, 3).await.skipped.is_empty());
}

/// One who may write and has no key makes the job run nothing that it did not write.
#[tokio::test]
async fn a_plain_history_in_place_of_the_jobs_is_not_believed() {
    let raw = Raw::default();
    two(&raw, encrypted(1, KEY)).await;
    let forged = Raw::default();
    let other = job(&forged, options(9)).await;
    let epoch = other.take_over("mallory", NOW).await.unwrap().epoch;
    for version in [5, 6, 7] {
        image(version).commit(&other, epoch).await.unwrap();
    }
    // Everything that is new there, beside what the job wrote: packs, manifests, and a record 4.
    for (key, bytes) in all(&forged).await {
        if !all(&raw).await.contains_key(&key) {
            put(&raw, &key, bytes).await;
        }
    }
    let found = restorable(&raw, 2).await;
    assert_eq!(found.manifest.unwrap().number, CheckpointNumber(3));
    assert_eq!(found.skipped.len(), 1);
    assert!(
        found.skipped[0].reason.contains("not encrypted"),
        "{:?}",
        found.skipped
    );
    // Also in place of the first record.
    let first = format!("prefix/jobs/job/head/{:020}", 1);
    let own = get(&raw, &first).await;
    put(&raw, &first, get(&forged, &first).await).await;
    let found = restorable(&raw, 2).await;
    assert_eq!(found.manifest.unwrap().number, CheckpointNumber(3));
    put(&raw, &first, own).await;
    // All of it replaced: then nothing is restored at all.
    for (key, bytes) in all(&forged).await {
        put(&raw, &key, bytes).await;
    }
    let job = job(&raw, encrypted(3, KEY)).await;
    let error = job.newest_restorable().await.unwrap_err().to_string();
    assert!(error.contains("tampered with"), "{error}");
}

/// A chunk's box may stand anywhere: collection repacks without encrypting anew, and what it makes is read.
#[tokio::test]
async fn repacking_moves_boxes_as_they_are() {
    let raw = Raw::default();
    let options = StoreOptions {
        pack_size: 1 << 20,
        ..encrypted(1, KEY)
    };
    let job = job(&raw, options).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let wide = Image::of((0..20).map(|i| noise(i, 9000)).collect());
    wide.commit(&job, epoch).await.unwrap();
    let narrow = Image::of((0..3).map(|i| noise(i, 9000)).collect());
    let commit = narrow.commit(&job, epoch).await.unwrap();
    assert_eq!(commit.stats.new_chunks, 0);
    let before: Vec<Bytes> = all(&raw).await.into_values().collect();
    let keep = |all: &[Candidate]| all.iter().rev().take(1).map(|c| c.number).collect();
    let done = job.collect(&keep, CollectOptions::default(), NOW).await;
    assert!(done.unwrap().repacked_packs > 0);
    let manifest = restorable(&raw, 2).await.manifest.unwrap();
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), narrow);
    let pack = get(&raw, &below(&raw, "/packs/").await[0]).await;
    let chunk = manifest
        .chunks
        .iter()
        .find(|chunk| chunk.stored > 0)
        .unwrap();
    let stored =
        pack.slice(chunk.offset as usize..(chunk.offset + u64::from(chunk.stored)) as usize);
    assert!(
        before
            .iter()
            .any(|bytes| bytes.windows(stored.len()).any(|w| w == stored))
    );
}

#[tokio::test]
async fn a_store_that_a_key_was_used_in_takes_jobs_without_one() {
    let raw = Raw::default();
    let keyed = job(&raw, encrypted(2, KEY)).await;
    keyed.store().initialise().await.unwrap();
    let plain = job(&raw, options(1)).await;
    plain.store().initialise().await.unwrap();
    two(&raw, options(3)).await;
    assert!(job(&raw, options(4)).await.naming().of(b"x") == Naming::PLAIN.of(b"x"));
}

fn lease(epoch: Epoch, beat: u64) -> Lease {
    Lease {
        epoch,
        holder: "node".into(),
        node: "node".into(),
        beat,
        renewed: NOW,
        length_ms: 30_000,
        released: false,
    }
}

/// What nobody with the job's key wrote is no lease: nobody waits for it, and nobody takes it for its own.
#[tokio::test]
async fn a_lease_that_no_holder_wrote_is_none() {
    const PLACE: &str = "prefix/jobs/job/lease";
    let raw = Raw::default();
    let (own, epoch) = two(&raw, encrypted(1, KEY)).await;
    own.renew_lease(&lease(epoch, 7)).await.unwrap();
    let written = get(&raw, PLACE).await;
    let now = async || job(&raw, encrypted(2, KEY)).await.lease().await.unwrap();
    assert_eq!(now().await, Some(lease(epoch, 7)));
    for at in 0..written.len() {
        let mut changed = written.to_vec();
        changed[at] ^= 0x20;
        put(&raw, PLACE, changed).await;
        assert_eq!(now().await, None, "byte {at}");
    }
    // Of one without a key, with another, of another job with the same, and of another place.
    let other = |options: StoreOptions, name: &'static str| async move {
        let raw = Raw::default();
        let store = Store::from_object_store(raw.clone(), "prefix", options).await;
        let job = store.unwrap().job(crate::common::name(name));
        let epoch = job.take_over("mallory", NOW).await.unwrap().epoch;
        job.renew_lease(&lease(epoch, 8)).await.unwrap();
        get(&raw, &format!("prefix/jobs/{name}/lease")).await
    };
    let record = get(&raw, &format!("prefix/jobs/job/head/{:020}", 1)).await;
    for (what, forged) in [
        ("plain", other(options(3), "job").await),
        ("of another key", other(encrypted(3, KEY + 1), "job").await),
        ("of another job", other(encrypted(3, KEY), "other").await),
        ("a record", record),
        ("rubbish", vec![b'x'; 5000].into()),
        ("nothing", Bytes::new()),
    ] {
        put(&raw, PLACE, forged).await;
        assert_eq!(now().await, None, "{what}");
        // And none keeps the holder from its own.
        own.renew_lease(&lease(epoch, 9)).await.unwrap();
        assert_eq!(now().await, Some(lease(epoch, 9)), "after {what}");
    }
}

/// Who may write and has no key does not bring the job to an older checkpoint by calling a newer one damaged.
#[tokio::test]
async fn a_quarantine_that_nobody_with_the_key_decided_does_not_count() {
    for key in [None, Some(KEY)] {
        let raw = Raw::default();
        let opened = |seed| key.map_or_else(|| options(seed), |key| encrypted(seed, key));
        let (own, epoch) = two(&raw, opened(1)).await;
        let newest = own.manifest(CheckpointNumber(3)).await.unwrap();
        let manifests = below(&raw, "/manifests/").await;
        let manifest = manifests.last().unwrap().rsplit('/').next().unwrap();
        let pack = newest.packs.last().unwrap().id.to_string();
        for name in [manifest, pack.as_str()] {
            let place = format!("prefix/jobs/job/quarantine/{name}");
            for forged in [
                Bytes::new(),
                vec![b'x'; 1 << 20].into(),
                get(&raw, &manifests[0]).await,
            ] {
                put(&raw, &place, forged).await;
                let job = job(&raw, opened(2)).await;
                let found = job.newest_restorable().await.unwrap();
                let number = found.manifest.unwrap().number;
                let counts = key.is_none();
                assert_eq!(number == CheckpointNumber(2), counts, "{name}: {number}");
                let held = job.hold(CheckpointNumber(3), "reader", NOW).await;
                assert_eq!(held.is_err(), counts && name == manifest, "{name}");
            }
            raw.delete(&Path::from(place)).await.unwrap();
        }
        // What was decided with the key counts, at its place alone.
        let mut packs = newest.packs.iter().map(|pack| pack.id);
        own.quarantine_pack(&packs.next_back().unwrap(), "it is damaged", NOW)
            .await
            .unwrap();
        let found = job(&raw, opened(3))
            .await
            .newest_restorable()
            .await
            .unwrap();
        assert_eq!(found.manifest.unwrap().number, CheckpointNumber(2));
        let note = format!("prefix/jobs/job/quarantine/{pack}");
        let moved = format!("prefix/jobs/job/quarantine/{manifest}");
        put(&raw, &moved, get(&raw, &note).await).await;
        raw.delete(&Path::from(note)).await.unwrap();
        let found = job(&raw, opened(4))
            .await
            .newest_restorable()
            .await
            .unwrap();
        let counts = found.manifest.unwrap().number == CheckpointNumber(2);
        assert_eq!(counts, key.is_none());
        drop((own, epoch));
    }
}
