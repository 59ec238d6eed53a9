//! One body of tests over every kind of store: memory, a directory, S3 over HTTP, Google Cloud Storage, Azure, and a directory
//! of which every operation fails at first.
//!
//! S3 is a server over HTTP: run it under `scripts/with-s3.sh`. Google Cloud Storage and Azure are in this process
//! (`common/cloud.rs`): their clients are the real ones down to the HTTP request.

use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::sync::Arc;
use std::time::Duration;

use crate::common::cloud::{Cloud, Flavour};
use crate::common::{Error, Faulty, Image, NOW, Op, Verdict, name, noise, options};
use bytes::Bytes;
use futures::TryStreamExt;
use futures::future::LocalBoxFuture;
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, RetryConfig};
use phos_storage::{
    Candidate, CheckpointNumber, CollectOptions, CommitError, Digest, Epoch, Job, JobError, PackId,
    PutError, PutOutcome, STORE_FORMAT, Store, StoreOptions, Verified, VerifyOptions,
};

/// A store of its own kind, empty, and what keeps it alive.
struct Fresh {
    /// As phos-ft has it.
    store: Arc<dyn ObjectStore>,
    /// The same without the failures: what the tests look at and change.
    raw: Arc<dyn ObjectStore>,
    prefix: String,
    seed: u64,
    /// Whether its jobs are encrypted.
    key: bool,
    _directory: Option<tempfile::TempDir>,
}

impl Fresh {
    fn new(raw: Arc<dyn ObjectStore>, prefix: &str, seed: u64) -> Self {
        Self {
            store: raw.clone(),
            raw,
            prefix: prefix.to_owned(),
            seed,
            key: false,
            _directory: None,
        }
    }

    async fn open(&self, handle: u64) -> Store {
        self.open_with(self.options(handle)).await
    }

    async fn open_with(&self, options: StoreOptions) -> Store {
        Store::from_object_store(self.store.clone(), &self.prefix, options)
            .await
            .unwrap()
    }

    fn options(&self, handle: u64) -> StoreOptions {
        let seed = self.seed + handle;
        if self.key {
            crate::common::encrypted(seed, 1)
        } else {
            options(seed)
        }
    }

    fn encrypted(self) -> Self {
        Self { key: true, ..self }
    }

    fn path(&self, rest: &str) -> Path {
        Path::from(format!("{}/{rest}", self.prefix))
    }

    async fn keys(&self, below: &str) -> Vec<String> {
        let found = self
            .raw
            .list(Some(&self.path(below)))
            .map_ok(|meta| meta.location.filename().unwrap().to_owned());
        let mut keys: Vec<String> = found.try_collect().await.unwrap();
        keys.sort();
        keys
    }

    async fn change(&self, key: &str, change: impl FnOnce(&mut Vec<u8>)) {
        crate::common::change(&*self.raw, &self.path(key), change).await;
    }
}

fn memory() -> Fresh {
    Fresh::new(Arc::new(InMemory::new()), "a/b", 1000)
}

fn directory() -> Fresh {
    let directory = tempfile::tempdir().unwrap();
    let raw = LocalFileSystem::new_with_prefix(directory.path())
        .unwrap()
        .with_fsync(true)
        .with_automatic_cleanup(true);
    Fresh {
        _directory: Some(directory),
        ..Fresh::new(Arc::new(raw), "a/b", 2000)
    }
}

/// A directory of which each operation on each key fails at first: what reads is refused; what writes is refused or done
/// without an answer, by turns.
fn failing() -> Fresh {
    let directory = directory();
    let (mut failed, mut lost) = (HashSet::new(), false);
    let hook = move |op: Op, key: &str| {
        if !failed.insert((op as u8, key.to_owned())) {
            return Verdict::Pass;
        }
        match op {
            // What a probe tries it tries once.
            _ if key.contains("/probe/") => Verdict::Pass,
            // A writer takes its note back once. If it stayed, the next process would count what was committed as left by an
            // unfinished checkpoint.
            Op::Delete => Verdict::Lose,
            Op::Put | Op::Create => {
                lost = !lost;
                if lost {
                    Verdict::Lose
                } else {
                    Verdict::Fail(Error::Server500)
                }
            }
            Op::Multipart | Op::Part | Op::Get | Op::List => Verdict::Fail(Error::Reset),
        }
    };
    Fresh {
        store: Faulty::new(directory.raw.clone(), hook),
        seed: 5000,
        ..directory
    }
}

const BUCKET: &str = "phos-test";

/// The S3 server, with the bucket made.
fn s3_endpoint() -> String {
    let endpoint = crate::common::s3_server::s3_endpoint();
    let host = endpoint
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .to_owned();
    let mut stream = std::net::TcpStream::connect(&host)
        .expect("the S3 server of PHOS_TEST_S3_ENDPOINT does not answer");
    write!(
        stream,
        "PUT /{BUCKET} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(
        answer.contains(" 200 ") || answer.contains(" 409 "),
        "{answer}"
    );
    endpoint
}

/// Each test gets a prefix of its own, as the server keeps what earlier runs wrote.
fn s3(test: &str) -> Fresh {
    let endpoint = s3_endpoint();
    let raw = AmazonS3Builder::new()
        .with_endpoint(endpoint)
        .with_allow_http(true)
        .with_bucket_name(BUCKET)
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .build()
        .unwrap();
    let run = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    Fresh::new(Arc::new(raw), &format!("{run}/{test}"), 3000)
}

fn cloud(flavour: Flavour) -> Fresh {
    let raw = Cloud::new(flavour).store(RetryConfig::default());
    Fresh::new(raw, "a/b", 4000)
}

/// Of one type, so that what runs the tests is compiled once and not for each body.
fn run(body: LocalBoxFuture<'static, ()>) {
    crate::common::runtime().block_on(body);
}

/// Makes a test for each kind of store out of one body.
macro_rules! everywhere {
    ($($test:ident)*) => {$(
        mod $test {
            fn body(fresh: super::Fresh) {
                super::run(Box::pin(super::bodies::$test(fresh)));
            }

            #[test]
            fn memory() {
                body(super::memory());
            }

            #[test]
            fn directory() {
                body(super::directory());
            }

            #[test]
            fn s3() {
                body(super::s3(stringify!($test)));
            }

            #[test]
            fn encrypted() {
                body(super::directory().encrypted());
            }

            #[test]
            fn encrypted_s3() {
                body(super::s3(concat!("encrypted-", stringify!($test))).encrypted());
            }

            #[test]
            fn gcs() {
                body(super::cloud(super::Flavour::Gcs));
            }

            #[test]
            fn azure() {
                body(super::cloud(super::Flavour::Azure));
            }

            #[test]
            fn failing() {
                body(super::failing());
            }
        }
    )*};
}

everywhere! {
    what_is_committed_is_read_back
    only_new_chunks_are_stored
    nothing_uncommitted_is_visible
    a_damaged_pack_is_refused_and_the_one_before_is_used
    a_damaged_manifest_is_refused_and_the_one_before_is_used
    a_damaged_record_is_refused_and_the_one_before_is_used
    the_one_taken_over_is_fenced
    a_completed_job_begins_afresh
    a_pack_describes_itself
    the_probe_passes_and_leaves_nothing
    a_large_pack_goes_up_in_parts
    verify_finds_and_names_damage
    a_collection_keeps_what_is_visible
    what_an_unfinished_checkpoint_left_is_used
}

mod bodies {
    use super::*;

    async fn job(fresh: &Fresh, handle: u64) -> Job {
        let store = fresh.open(handle).await;
        store.initialise().await.unwrap();
        store.job(name("job"))
    }

    async fn taken(fresh: &Fresh, handle: u64) -> (Job, Epoch) {
        let job = job(fresh, handle).await;
        let epoch = job
            .take_over(&format!("node-{handle}"), NOW)
            .await
            .unwrap()
            .epoch;
        (job, epoch)
    }

    fn image(version: u64) -> Image {
        let device = vec![
            (0..12).map(|i| noise(i, 20_000)).collect(),
            vec![
                Bytes::from(vec![0; 1 << 20]),
                Bytes::from(vec![0; 1 << 20]),
                noise(100 + version, 5000),
            ],
        ];
        let text: Bytes = format!("step {version} loss 0.5\n").repeat(500).into();
        Image {
            device,
            cpu: vec![text.clone(), noise(200 + version, 3000)],
            log: vec![text],
        }
    }

    pub(crate) async fn what_is_committed_is_read_back(fresh: Fresh) {
        let (writer, epoch) = taken(&fresh, 0).await;
        for version in 0..3 {
            let commit = image(version).commit(&writer, epoch).await.unwrap();
            assert_eq!(commit.number, CheckpointNumber(version + 2));
            // Another process sees it at once.
            let reader = job(&fresh, 10 + version).await;
            let found = reader.newest_restorable().await.unwrap();
            assert_eq!(found.skipped, []);
            let manifest = found.manifest.unwrap();
            assert_eq!(manifest, commit.manifest);
            assert_eq!(
                Image::read(&reader, &manifest).await.unwrap(),
                image(version)
            );
            let list = &manifest.body.cpu_image[0].chunks;
            let whole = reader
                .reader(&manifest)
                .unwrap()
                .read(list, 1 << 20)
                .await
                .unwrap();
            assert_eq!(whole, image(version).cpu.concat());
            assert!(
                reader
                    .reader(&manifest)
                    .unwrap()
                    .read(list, 10)
                    .await
                    .is_err()
            );
        }
        // Older ones as well.
        let reader = job(&fresh, 20).await;
        let listing = reader.list().await.unwrap();
        assert_eq!(
            listing
                .checkpoints
                .iter()
                .map(|c| c.number.0)
                .collect::<Vec<_>>(),
            [4, 3, 2]
        );
        assert!(listing.damaged.is_empty());
        let oldest = reader.manifest(CheckpointNumber(2)).await.unwrap();
        assert_eq!(Image::read(&reader, &oldest).await.unwrap(), image(0));
        assert!(matches!(
            reader.manifest(CheckpointNumber(99)).await,
            Err(JobError::NoCheckpoint { .. })
        ));
        assert!(matches!(
            reader.manifest(CheckpointNumber(1)).await,
            Err(JobError::NoCheckpoint { .. })
        ));
        assert_eq!(fresh.open(30).await.jobs().await.unwrap(), [name("job")]);
    }

    pub(crate) async fn only_new_chunks_are_stored(fresh: Fresh) {
        let (first, epoch) = taken(&fresh, 0).await;
        let commit = image(0).commit(&first, epoch).await.unwrap();
        // 12 + zeros + 1 of the device, 2 of the CPU image; the log's chunk is one of those.
        assert_eq!((commit.stats.new_chunks, commit.reused_chunks), (16, 0));
        let again = image(0).commit(&first, epoch).await.unwrap();
        assert_eq!((again.stats.new_chunks, again.reused_chunks), (0, 16));
        assert_eq!(again.stats.stored_bytes, 0);
        // A process that knows nothing yet reads what is there.
        let (second, epoch) = taken(&fresh, 1).await;
        let changed = image(1).commit(&second, epoch).await.unwrap();
        assert_eq!((changed.stats.new_chunks, changed.reused_chunks), (3, 13));
        let writer = second.begin(epoch).await.unwrap();
        assert_eq!(
            writer
                .put(writer.naming().of(b"x"), Bytes::from_static(b"x"))
                .await
                .unwrap(),
            PutOutcome::Stored
        );
        assert_eq!(
            writer
                .put(writer.naming().of(b"x"), Bytes::from_static(b"x"))
                .await
                .unwrap(),
            PutOutcome::Known
        );
    }

    pub(crate) async fn nothing_uncommitted_is_visible(fresh: Fresh) {
        let (job, epoch) = taken(&fresh, 0).await;
        let writer = job.begin(epoch).await.unwrap();
        image(0).put(&writer).await.unwrap();
        drop(writer);
        let writer = job.begin(epoch).await.unwrap();
        let mismatch = writer
            .put(Digest::of(b"a"), Bytes::from_static(b"b"))
            .await
            .unwrap_err();
        assert!(
            matches!(mismatch, PutError::DigestMismatch { .. }),
            "{mismatch}"
        );
        assert!(matches!(
            writer.put(Digest::of(b""), Bytes::new()).await,
            Err(PutError::Size { .. })
        ));
        let missing = writer
            .clone()
            .commit(image(0).body_in(&job.naming()), NOW)
            .await
            .unwrap_err();
        assert!(matches!(missing, CommitError::Manifest(_)), "{missing}");
        assert!(matches!(
            writer
                .put(job.naming().of(b"a"), Bytes::from_static(b"a"))
                .await,
            Err(PutError::Closed)
        ));
        assert!(matches!(
            writer.commit(image(0).body_in(&job.naming()), NOW).await,
            Err(CommitError::Closed)
        ));
        assert_eq!(job.newest_restorable().await.unwrap().manifest, None);
        assert_eq!(job.list().await.unwrap().checkpoints, []);

        let writer = job.begin(epoch).await.unwrap();
        image(5).put(&writer).await.unwrap();
        writer.abort(NOW).await;
        assert_eq!(fresh.keys("jobs/job/manifests").await, [""; 0]);
        // Nobody deletes packs but a collection.
        let left = fresh.keys("jobs/job/packs").await;
        assert!(!left.is_empty());
        let keep = |_: &[Candidate]| BTreeSet::new();
        let done = job.collect(&keep, CollectOptions::default(), NOW).await;
        assert_eq!(done.unwrap().packs, left.len() as u64);
        assert_eq!(fresh.keys("jobs/job/packs").await, [""; 0]);
        assert_eq!(fresh.keys("jobs/job/writers").await, [""; 0]);
    }

    /// Two checkpoints of which the second has packs of its own; its newest pack.
    async fn two(fresh: &Fresh) -> (Job, Epoch, PackId) {
        let (job, epoch) = taken(fresh, 0).await;
        image(0).commit(&job, epoch).await.unwrap();
        let second = image(1).commit(&job, epoch).await.unwrap();
        (job, epoch, second.manifest.packs.last().unwrap().id)
    }

    pub(crate) async fn a_damaged_pack_is_refused_and_the_one_before_is_used(fresh: Fresh) {
        let (job, epoch, pack) = two(&fresh).await;
        let key = format!("jobs/job/packs/{pack}");
        let original = fresh
            .raw
            .get(&fresh.path(&key))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();

        // Flipped bytes are found when they are read.
        fresh.change(&key, |bytes| bytes[70] ^= 1).await;
        let manifest = job.newest_restorable().await.unwrap().manifest.unwrap();
        let error = Image::read(&job, &manifest).await.unwrap_err();
        assert_eq!(error.damaged_pack(), Some(pack), "{error}");
        assert!(
            error.to_string().contains("checkpoint 3 is damaged"),
            "{error}"
        );
        job.quarantine_pack(&pack, &error.to_string(), NOW)
            .await
            .unwrap();
        let found = job.newest_restorable().await.unwrap();
        assert_eq!(found.manifest.unwrap().number, CheckpointNumber(2));
        assert!(
            found.skipped[0].reason.contains("quarantined"),
            "{:?}",
            found.skipped
        );
        // Later checkpoints do not reference it, neither here nor in a new process.
        let third = image(1).commit(&job, epoch).await.unwrap();
        assert!(third.stats.new_chunks > 0);
        let (other, epoch) = taken(&fresh, 1).await;
        let fourth = image(1).commit(&other, epoch).await.unwrap();
        assert_eq!(fourth.stats.new_chunks, 0);
        for commit in [third, fourth] {
            assert!(commit.manifest.packs.iter().all(|used| used.id != pack));
            assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
        }

        // A pack that was cut off or is gone is found without reading it.
        let newest = other.newest_restorable().await.unwrap().manifest.unwrap();
        let pack = newest.packs.last().unwrap().id;
        let key = format!("jobs/job/packs/{pack}");
        for what in ["has 100 bytes instead of", "is missing"] {
            if what == "is missing" {
                fresh.raw.delete(&fresh.path(&key)).await.unwrap();
            } else {
                fresh
                    .raw
                    .put(&fresh.path(&key), original.slice(..100).into())
                    .await
                    .unwrap();
            }
            let found = other.newest_restorable().await.unwrap();
            assert!(
                found.skipped[0].reason.contains(what),
                "{:?}",
                found.skipped
            );
            assert_eq!(found.manifest.unwrap().number, CheckpointNumber(2));
            assert!(other.check_packs(&newest).await.is_err());
        }
        // The writer relied on it: this checkpoint is refused, the next stores everything again.
        assert!(matches!(
            image(1).commit(&other, epoch).await,
            Err(CommitError::PackLost { .. })
        ));
        let healed = image(1).commit(&other, epoch).await.unwrap();
        assert_eq!(
            Image::read(&other, &healed.manifest).await.unwrap(),
            image(1)
        );
    }

    pub(crate) async fn a_damaged_manifest_is_refused_and_the_one_before_is_used(fresh: Fresh) {
        let (job, ..) = two(&fresh).await;
        let newest = fresh.keys("jobs/job/manifests").await.pop().unwrap();
        let key = format!("jobs/job/manifests/{newest}");
        let changes: [fn(&mut Vec<u8>); 4] = [
            |b| b[80] ^= 1,
            |b| b.truncate(100),
            |b| b.clear(),
            |b| b[8] = 9,
        ];
        let original = fresh
            .raw
            .get(&fresh.path(&key))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        for (change, reason) in changes.into_iter().zip([
            if fresh.key { "decrypted" } else { "checksum" },
            "cut off",
            "header",
            "format 9",
        ]) {
            fresh
                .raw
                .put(&fresh.path(&key), original.clone().into())
                .await
                .unwrap();
            fresh.change(&key, change).await;
            let found = job.newest_restorable().await.unwrap();
            assert_eq!(found.manifest.unwrap().number, CheckpointNumber(2));
            assert_eq!(found.skipped[0].number, CheckpointNumber(3));
            assert!(
                found.skipped[0].reason.contains(reason),
                "{:?}",
                found.skipped
            );
            assert!(matches!(
                job.manifest(CheckpointNumber(3)).await,
                Err(JobError::Unusable { .. })
            ));
        }
        // Another manifest, whole in itself, in its place.
        let other = fresh.keys("jobs/job/manifests").await.swap_remove(0);
        let bytes = fresh
            .raw
            .get(&fresh.path(&format!("jobs/job/manifests/{other}")))
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        fresh
            .raw
            .put(&fresh.path(&key), bytes.into())
            .await
            .unwrap();
        let found = job.newest_restorable().await.unwrap();
        assert!(
            found.skipped[0].reason.contains(if fresh.key {
                // It is sealed for its own number.
                "cannot be decrypted"
            } else {
                "not the one that was committed"
            }),
            "{:?}",
            found.skipped
        );
        fresh.raw.delete(&fresh.path(&key)).await.unwrap();
        let found = job.newest_restorable().await.unwrap();
        assert_eq!(found.manifest.unwrap().number, CheckpointNumber(2));
    }

    pub(crate) async fn a_damaged_record_is_refused_and_the_one_before_is_used(fresh: Fresh) {
        let (job, epoch, _) = two(&fresh).await;
        fresh
            .change(&format!("jobs/job/head/{:020}", 3), |bytes| bytes[70] ^= 1)
            .await;
        let found = job.newest_restorable().await.unwrap();
        assert_eq!(found.manifest.unwrap().number, CheckpointNumber(2));
        assert_eq!(found.skipped.len(), 1);
        let listing = job.list().await.unwrap();
        assert_eq!((listing.checkpoints.len(), listing.damaged.len()), (1, 1));
        assert_eq!(job.state().await.unwrap().newest, Some(CheckpointNumber(2)));
        // Whoever cannot read the newest record does not know whether it was fenced: it must take the job over again.
        let (other, newer) = taken(&fresh, 1).await;
        assert_eq!(newer, Epoch(4));
        assert!(matches!(
            image(2).commit(&job, epoch).await,
            Err(CommitError::Fenced { .. })
        ));
        assert_eq!(
            image(2).commit(&other, newer).await.unwrap().number,
            CheckpointNumber(5)
        );
    }

    pub(crate) async fn the_one_taken_over_is_fenced(fresh: Fresh) {
        let (old, first) = taken(&fresh, 0).await;
        image(0).commit(&old, first).await.unwrap();
        // Begun before, committed after: the pause that a lease cannot catch.
        let paused = old.begin(first).await.unwrap();
        image(1).put(&paused).await.unwrap();
        let (new, second) = taken(&fresh, 1).await;
        assert!(second > first);
        let commit = image(2).commit(&new, second).await.unwrap();
        let error = paused
            .commit(image(1).body_in(&new.naming()), NOW)
            .await
            .unwrap_err();
        assert!(error.is_fenced() && error.is_permanent());
        assert!(
            error.to_string().contains("taken over by node-1"),
            "{error}"
        );
        assert!(image(3).commit(&old, first).await.unwrap_err().is_fenced());
        assert!(matches!(
            old.mark_completed(first, 0, NOW).await,
            Err(JobError::Fenced { .. })
        ));
        let found = new.newest_restorable().await.unwrap().manifest.unwrap();
        assert_eq!(found, commit.manifest);
        // A fenced writer cleans up, and only what is its own.
        assert_eq!(Image::read(&new, &found).await.unwrap(), image(2));
        let state = new.state().await.unwrap();
        assert_eq!(
            (state.epoch, state.newest),
            (Some(second), Some(commit.number))
        );
    }

    pub(crate) async fn a_completed_job_begins_afresh(fresh: Fresh) {
        let (job, epoch) = taken(&fresh, 0).await;
        image(0).commit(&job, epoch).await.unwrap();
        assert_eq!(job.state().await.unwrap().completed, None);
        job.mark_completed(epoch, 0, NOW).await.unwrap();
        assert_eq!(job.state().await.unwrap().completed, Some(0));
        let (again, epoch) = taken(&fresh, 1).await;
        let state = again.state().await.unwrap();
        assert_eq!((state.completed, state.newest), (Some(0), None));
        assert_eq!(state.holder.as_deref(), Some("node-1"));
        assert_eq!(
            again.newest_restorable().await.unwrap().manifest,
            None,
            "that was another run"
        );
        let commit = image(1).commit(&again, epoch).await.unwrap();
        assert!(commit.reused_chunks > 0, "its chunks still count");
        let listing = again.list().await.unwrap();
        assert_eq!(
            listing
                .checkpoints
                .iter()
                .map(|c| c.earlier_run)
                .collect::<Vec<_>>(),
            [false, true]
        );
        assert_eq!(again.state().await.unwrap().newest, Some(commit.number));
        assert!(
            again.manifest(CheckpointNumber(2)).await.is_ok(),
            "asked for by number, it is there"
        );
    }

    pub(crate) async fn a_pack_describes_itself(fresh: Fresh) {
        let (job, epoch) = taken(&fresh, 0).await;
        let commit = image(0).commit(&job, epoch).await.unwrap();
        let mut found = 0;
        for (number, pack) in commit.manifest.packs.iter().enumerate() {
            let index = job.pack_index(&pack.id).await.unwrap();
            for entry in &index.chunks {
                let chunk = commit
                    .manifest
                    .chunks
                    .iter()
                    .find(|chunk| chunk.digest == entry.digest)
                    .unwrap();
                assert_eq!(
                    (chunk.pack as usize, chunk.offset, chunk.stored),
                    (number, entry.offset, entry.stored)
                );
                found += 1;
            }
        }
        assert_eq!(
            found,
            commit
                .manifest
                .chunks
                .iter()
                .filter(|chunk| chunk.stored > 0)
                .count()
        );
        assert!(
            commit.manifest.packs.len() > 2,
            "small packs, several of them"
        );
        let nothing = PackId {
            sequence: 99,
            ..commit.manifest.packs[0].id
        };
        assert!(matches!(
            job.pack_index(&nothing).await,
            Err(JobError::Pack { .. })
        ));
    }

    pub(crate) async fn the_probe_passes_and_leaves_nothing(fresh: Fresh) {
        let store = fresh.open(0).await;
        store.probe().await.unwrap();
        assert_eq!(fresh.keys("").await, [""; 0]);
        store.initialise().await.unwrap();
        store.initialise().await.unwrap();
        fresh.open(1).await.initialise().await.unwrap();
        fresh.change("phos-format", |bytes| bytes[8] = 7).await;
        let error = Store::from_object_store(fresh.store.clone(), &fresh.prefix, fresh.options(9))
            .await
            .unwrap_err();
        assert!(
            error.to_string().contains("format 7")
                && error.to_string().contains(&format!("up to {STORE_FORMAT}")),
            "{error}"
        );
        assert!(store.initialise().await.is_err());
    }

    pub(crate) async fn a_large_pack_goes_up_in_parts(fresh: Fresh) {
        let mut large = fresh.options(0);
        large.pack_size = 20 << 20;
        let job = fresh.open_with(large).await.job(name("job"));
        let epoch = job.take_over("node", NOW).await.unwrap().epoch;
        let image = Image::of((0..18).map(|i| noise(i, 1 << 20)).collect());
        let commit = image.commit(&job, epoch).await.unwrap();
        assert_eq!(commit.manifest.packs.len(), 1);
        assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
    }

    async fn verified(job: &Job, deep: bool) -> Verified {
        let options = VerifyOptions {
            deep,
            quarantine: deep,
        };
        job.verify(options, NOW, &|_| {}).await.unwrap()
    }

    pub(crate) async fn verify_finds_and_names_damage(fresh: Fresh) {
        let (writer, _, pack) = two(&fresh).await;
        let checker = job(&fresh, 10).await;
        let sound = verified(&checker, true).await;
        assert!(sound.is_sound() && sound.chunks > 0, "{sound:?}");
        assert_eq!(sound.whole, [2, 3].map(CheckpointNumber));

        // A byte of a chunk, which is not seen without reading all of them.
        let key = format!("jobs/job/packs/{pack}");
        fresh.change(&key, |bytes| bytes[70] ^= 1).await;
        let shallow = verified(&checker, false).await;
        assert!(shallow.is_sound(), "{shallow:?}");
        let newest = checker.newest_restorable().await.unwrap();
        assert_eq!(newest.manifest.unwrap().number, CheckpointNumber(3));
        let found = verified(&checker, true).await;
        assert_eq!(found.whole, [CheckpointNumber(2)]);
        assert_eq!(found.damaged, []);
        let damaged = &found.damaged_packs;
        assert_eq!(damaged.len(), 1, "{found:?}");
        assert_eq!(damaged[0].pack, pack);
        assert_eq!(damaged[0].checkpoints, [CheckpointNumber(3)]);
        assert!(damaged[0].reason.contains("chunk "), "{found:?}");

        // Who restores takes the one before, and is told why.
        for reader in [&checker, &writer, &job(&fresh, 11).await] {
            let newest = reader.newest_restorable().await.unwrap();
            assert_eq!(newest.skipped.len(), 1, "{:?}", newest.skipped);
            assert_eq!(newest.skipped[0].number, CheckpointNumber(3));
            let reason = &newest.skipped[0].reason;
            assert!(
                reason.contains(&pack.to_string()) && reason.contains("quarantined"),
                "{reason}"
            );
            let manifest = newest.manifest.unwrap();
            assert_eq!(manifest.number, CheckpointNumber(2));
            assert_eq!(Image::read(reader, &manifest).await.unwrap(), image(0));
        }

        // What it held is stored again; what is damaged is named as long as a checkpoint needs it.
        let (next, epoch) = taken(&fresh, 12).await;
        let healed = image(1).commit(&next, epoch).await.unwrap();
        assert!(healed.stats.new_chunks > 0);
        let found = verified(&checker, true).await;
        assert_eq!(found.whole, [CheckpointNumber(2), healed.number]);
        assert_eq!(found.damaged_packs.len(), 1, "{found:?}");
        let newest = checker.newest_restorable().await.unwrap();
        assert_eq!(newest.skipped, []);
        let manifest = newest.manifest.unwrap();
        assert_eq!(manifest, healed.manifest);
        assert_eq!(Image::read(&checker, &manifest).await.unwrap(), image(1));
    }

    pub(crate) async fn a_collection_keeps_what_is_visible(fresh: Fresh) {
        let (writer, epoch) = taken(&fresh, 0).await;
        for version in 0..3 {
            image(version).commit(&writer, epoch).await.unwrap();
        }
        let collector = job(&fresh, 10).await;
        let keep = |all: &[Candidate]| -> BTreeSet<_> {
            all.last().map(|newest| newest.number).into_iter().collect()
        };
        let done = collector.collect(&keep, CollectOptions::default(), NOW);
        let done = done.await.unwrap();
        assert_eq!(done.removed, [2, 3].map(CheckpointNumber));
        assert_eq!(done.kept, [CheckpointNumber(4)]);
        assert_eq!(done.blocked, []);
        assert!(done.packs > 0, "{done:?}");

        // What is left is what the newest one needs, and all of that.
        let manifest = collector.manifest(CheckpointNumber(4)).await.unwrap();
        let mut named: Vec<String> = (manifest.packs.iter())
            .map(|pack| pack.id.to_string())
            .collect();
        named.sort();
        assert_eq!(fresh.keys("jobs/job/packs").await, named);
        assert_eq!(fresh.keys("jobs/job/manifests").await.len(), 1);
        for reader in [&collector, &writer, &job(&fresh, 11).await] {
            let listing = reader.list().await.unwrap();
            let numbers: Vec<u64> = listing.checkpoints.iter().map(|c| c.number.0).collect();
            assert_eq!(numbers, [4]);
            let found = reader.newest_restorable().await.unwrap();
            assert_eq!(found.skipped, []);
            let newest = found.manifest.unwrap();
            assert_eq!(newest, manifest);
            assert_eq!(Image::read(reader, &newest).await.unwrap(), image(2));
            let removed = reader.manifest(CheckpointNumber(2)).await;
            assert!(
                matches!(removed, Err(JobError::Removed { .. })),
                "{removed:?}"
            );
        }
        let sound = verified(&collector, true).await;
        assert!(sound.is_sound(), "{sound:?}");
        assert_eq!(sound.whole, [CheckpointNumber(4)]);
        // Whoever wrote before goes on, and references what was kept.
        let next = image(2).commit(&writer, epoch).await.unwrap();
        assert_eq!(next.stats.new_chunks, 0);
        assert_eq!(
            Image::read(&collector, &next.manifest).await.unwrap(),
            image(2)
        );
    }

    /// Four packs of three chunks each.
    fn twelve(seed: u64) -> Image {
        Image::of((seed..seed + 12).map(|i| noise(i, 20_000)).collect())
    }

    /// A checkpoint that is given up when all of its packs are stored but the last, which is never closed; their names.
    async fn unfinished(fresh: &Fresh, job: &Job, epoch: Epoch, image: &Image) -> Vec<String> {
        let before = fresh.keys("jobs/job/packs").await;
        let writer = job.begin(epoch).await.unwrap();
        image.put(&writer).await.unwrap();
        let stored = async {
            while writer.stats().stored_packs < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), stored)
            .await
            .expect("three of its packs are stored");
        drop(writer);
        let mut packs = fresh.keys("jobs/job/packs").await;
        packs.retain(|pack| !before.contains(pack));
        assert_eq!(packs.len(), 3);
        packs
    }

    pub(crate) async fn what_an_unfinished_checkpoint_left_is_used(fresh: Fresh) {
        let (dead, epoch) = taken(&fresh, 0).await;
        let first = unfinished(&fresh, &dead, epoch, &twelve(0)).await;
        drop(dead);
        // By another process first, then by the one whose checkpoint came to nothing.
        let (alive, epoch) = taken(&fresh, 1).await;
        assert_eq!(alive.newest_restorable().await.unwrap().manifest, None);
        for (seed, left) in [(0, Some(first)), (100, None)] {
            let image = twelve(seed);
            let left = match left {
                Some(left) => left,
                None => unfinished(&fresh, &alive, epoch, &image).await,
            };
            let commit = image.commit(&alive, epoch).await.unwrap();
            let resumed = commit.resumed;
            assert_eq!(
                (resumed.packs, resumed.chunks, resumed.bytes),
                (3, 9, 180_000)
            );
            assert!(
                (3..=4).contains(&commit.stats.new_chunks),
                "the other three, and once what the CPU image holds: {:?}",
                commit.stats
            );
            let named: Vec<String> = (commit.manifest.packs.iter())
                .map(|pack| pack.id.to_string())
                .collect();
            assert!(
                left.iter().all(|pack| named.contains(pack)),
                "{left:?} in {named:?}"
            );
            let reader = job(&fresh, 10 + seed).await;
            let newest = reader.newest_restorable().await.unwrap();
            assert_eq!(newest.skipped, []);
            let manifest = newest.manifest.unwrap();
            assert_eq!(manifest, commit.manifest);
            assert_eq!(Image::read(&reader, &manifest).await.unwrap(), image);
            // Nothing is left of who ended, and there is nothing to go on with twice.
            assert_eq!(fresh.keys("jobs/job/writers").await, [""; 0]);
            let again = image.commit(&alive, epoch).await.unwrap();
            assert_eq!((again.stats.new_chunks, again.resumed.packs), (0, 0));
        }
        assert!(verified(&alive, true).await.is_sound());
    }
}

/// Run by the next test in a process of its own, as the environment belongs to a process.
#[tokio::test]
#[ignore = "started by s3_is_opened_by_its_environment"]
async fn child_opens_s3() {
    let address = std::env::var("PHOS_TEST_S3_ADDRESS").unwrap();
    let store = Store::open(&address, options(5)).await.unwrap();
    store.probe().await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("env"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let image = Image::of(vec![noise(1, 100_000)]);
    let commit = image.commit(&job, epoch).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
    assert_eq!(
        job.list().await.unwrap().checkpoints[0].durability,
        phos_storage::Durability::Remote
    );

    let missing = Store::open("s3://no-such-bucket-of-phos/x", options(6)).await;
    let error = match missing {
        Ok(store) => store.probe().await.unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(error.contains("does not exist"), "{error}");
}

#[test]
fn s3_is_opened_by_its_environment() {
    let endpoint = s3_endpoint();
    let run = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_nanos();
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "conformance::child_opens_s3", "--ignored"])
        .env("PHOS_TEST_S3_ADDRESS", format!("s3://{BUCKET}/{run}/env"))
        .env("AWS_ENDPOINT_URL", endpoint)
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "test")
        .env("AWS_SECRET_ACCESS_KEY", "test")
        .env("AWS_REGION", "us-east-1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{said}"
    );
}
