//! Copies of packs on this machine: what is written and what is read is there the next time, and nothing else is needed.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::common::{Error, Faulty, Image, NOW, Op, Verdict, name, noise, open_with, options};
use object_store::memory::InMemory;
use phos_storage::{Candidate, CollectOptions, Job, PackCache, StoreOptions};

fn image(version: u64) -> Image {
    let mut device: Vec<_> = (0..8).map(|i| noise(i, 9000)).collect();
    device.push(noise(100 + version, 20_000));
    Image::of(device)
}

/// As the job has it.
fn bytes(image: &Image) -> u64 {
    image.chunks().map(|chunk| chunk.len() as u64).sum()
}

fn in_memory(limit: u64) -> Arc<PackCache> {
    Arc::new(PackCache::in_memory(limit, Box::new(|_| true)))
}

fn on_disk(directory: &std::path::Path) -> Arc<PackCache> {
    // However full the disk is that this runs on.
    Arc::new(PackCache::on_disk_leaving(directory, "s3://bucket/runs", 1 << 20, u64::MAX).unwrap())
}

/// A machine with these caches, nearest first.
async fn machine(store: &Arc<InMemory>, seed: u64, caches: &[&Arc<PackCache>]) -> Job {
    let options = StoreOptions {
        caches: caches.iter().map(|cache| Arc::clone(cache)).collect(),
        ..options(seed)
    };
    let store = open_with(store.clone(), options).await;
    store.initialise().await.unwrap();
    store.job(name("job"))
}

/// The same, and the packs cannot be read any more.
async fn cut_off(store: &Arc<InMemory>, seed: u64, caches: &[&Arc<PackCache>]) -> Job {
    let options = StoreOptions {
        caches: caches.iter().map(|cache| Arc::clone(cache)).collect(),
        ..options(seed)
    };
    let store = Faulty::new(store.clone(), |op, path| match op {
        Op::Get if path.contains("/packs/") => Verdict::Fail(Error::Denied),
        _ => Verdict::Pass,
    });
    let store = open_with(store, options).await;
    store.job(name("job"))
}

#[tokio::test]
async fn what_was_written_is_read_here_from_the_nearest() {
    let (store, dir) = (Arc::new(InMemory::new()), tempfile::tempdir().unwrap());
    let (memory, disk) = (in_memory(1 << 20), on_disk(dir.path()));
    let job = machine(&store, 1, &[&memory, &disk]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    image(1).commit(&job, epoch).await.unwrap();
    let manifest = image(2).commit(&job, epoch).await.unwrap().manifest;

    let job = cut_off(&store, 2, &[&memory, &disk]).await;
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(2));
    assert!(memory.served() > 0 && disk.served() == 0);
    // Another sidecar: its memory is empty.
    let job = cut_off(&store, 3, &[&in_memory(1 << 20), &on_disk(dir.path())]).await;
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(2));
    let job = cut_off(&store, 4, &[]).await;
    assert!(Image::read(&job, &manifest).await.is_err());
}

/// The image decoded, its packs in no cache: what is read is what was written, and counts as such.
#[tokio::test]
async fn an_image_that_has_room_is_kept_decoded() {
    let (store, memory) = (Arc::new(InMemory::new()), in_memory(1 << 20));
    let job = machine(&store, 1, &[&memory]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    memory.plan_for(bytes(&image(1)));
    let first = image(1).commit(&job, epoch).await.unwrap().manifest;
    let manifest = image(2).commit(&job, epoch).await.unwrap().manifest;
    for pack in first.packs.iter().chain(&manifest.packs) {
        let key = format!("jobs/job/packs/{}", pack.id);
        assert!(memory.read(&key, 0..8).is_none());
    }

    let job = cut_off(&store, 2, &[&memory]).await;
    for (version, manifest) in [(1, &first), (2, &manifest)] {
        let before = memory.served();
        assert_eq!(Image::read(&job, manifest).await.unwrap(), image(version));
        assert_eq!(memory.served() - before, bytes(&image(version)));
    }
    // One that has no room from then on is kept as it is stored, and what is there decoded is read.
    memory.plan_for(2 << 20);
    let job = machine(&store, 3, &[&memory]).await;
    let third = image(3).commit(&job, epoch).await.unwrap().manifest;
    let job = cut_off(&store, 4, &[&memory]).await;
    assert_eq!(Image::read(&job, &third).await.unwrap(), image(3));
    assert!(third.packs.iter().any(|pack| {
        let key = format!("jobs/job/packs/{}", pack.id);
        memory.read(&key, 0..8).is_some()
    }));
}

/// Room for one image, and for less than what changes: the newest is whole.
#[tokio::test]
async fn of_images_that_change_the_newest_is_kept_decoded() {
    let store = Arc::new(InMemory::new());
    let memory = in_memory(bytes(&image(1)) + 1000);
    let job = machine(&store, 1, &[&memory]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    for version in 1..5 {
        let image = image(version);
        let writer = job.begin(epoch).await.unwrap();
        writer.plan_for(bytes(&image));
        let names: Vec<_> = (image.chunks().map(|chunk| job.naming().of(chunk))).collect();
        writer.will_have(&names);
        image.put(&writer).await.unwrap();
        let body = image.body_in(&job.naming());
        let manifest = writer.commit(body, NOW).await.unwrap().manifest;
        let job = cut_off(&store, version, &[&memory]).await;
        assert_eq!(Image::read(&job, &manifest).await.unwrap(), image);
    }
}

#[tokio::test]
async fn what_was_read_once_on_another_machine_is_there_the_next_time() {
    let store = Arc::new(InMemory::new());
    let job = machine(&store, 1, &[]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    image(1).commit(&job, epoch).await.unwrap();
    let manifest = image(2).commit(&job, epoch).await.unwrap().manifest;

    let dir = tempfile::tempdir().unwrap();
    let disk = on_disk(dir.path());
    let there = machine(&store, 2, &[&disk]).await;
    assert_eq!(Image::read(&there, &manifest).await.unwrap(), image(2));
    assert_eq!(disk.served(), 0);
    let there = cut_off(&store, 3, &[&on_disk(dir.path())]).await;
    assert_eq!(Image::read(&there, &manifest).await.unwrap(), image(2));
}

#[tokio::test]
async fn what_retention_removed_goes_and_what_is_referenced_stays() {
    let store = Arc::new(InMemory::new());
    // For about three checkpoints' own packs beside what they share.
    let memory = in_memory(160_000);
    let job = machine(&store, 1, &[&memory]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let mut newest = None;
    for version in 1..20 {
        let commit = image(version).commit(&job, epoch).await.unwrap();
        newest = Some((version, commit.manifest));
        let keep = |all: &[Candidate]| -> BTreeSet<_> {
            all.iter().rev().take(1).map(|c| c.number).collect()
        };
        let collected = job.collect(&keep, CollectOptions::default(), NOW).await;
        collected.unwrap();
    }
    let (version, manifest) = newest.unwrap();
    let job = cut_off(&store, 2, &[&memory]).await;
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(version));
}

#[tokio::test]
async fn what_is_swept_goes_from_the_caches() {
    let (store, memory) = (Arc::new(InMemory::new()), in_memory(1 << 20));
    let job = machine(&store, 1, &[&memory]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let removed = image(1).commit(&job, epoch).await.unwrap().manifest;
    let kept = image(2).commit(&job, epoch).await.unwrap().manifest;
    let in_cache = |manifest: &phos_storage::Manifest| -> Vec<bool> {
        let keys = manifest.packs.iter();
        keys.map(|pack| format!("jobs/job/packs/{}", pack.id))
            .map(|key| memory.read(&key, 0..8).is_some())
            .collect()
    };
    assert!(in_cache(&removed).iter().all(|&there| there));
    let keep = |all: &[Candidate]| all.last().map(|c| c.number).into_iter().collect();
    let collected = job.collect(&keep, CollectOptions::default(), NOW).await;
    assert!(collected.unwrap().packs > 0);
    assert!(in_cache(&removed).contains(&false));
    assert!(in_cache(&kept).contains(&true));
}

#[tokio::test]
async fn a_copy_that_is_damaged_is_forgotten_and_the_store_is_read() {
    let (store, dir) = (Arc::new(InMemory::new()), tempfile::tempdir().unwrap());
    let disk = on_disk(dir.path());
    let job = machine(&store, 1, &[&disk]).await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let manifest = image(1).commit(&job, epoch).await.unwrap().manifest;
    let mut damaged = 0;
    for file in std::fs::read_dir(dir.path()).unwrap() {
        let path = file.unwrap().path();
        let mut bytes = std::fs::read(&path).unwrap();
        bytes.iter_mut().step_by(100).for_each(|byte| *byte ^= 1);
        std::fs::write(&path, bytes).unwrap();
        damaged += 1;
    }
    assert!(damaged > 0);
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(1));
    // It is right again: what was read took its place.
    let job = cut_off(&store, 2, &[&disk]).await;
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(1));
}
