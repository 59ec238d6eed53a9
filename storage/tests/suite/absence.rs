//! A store that is away, empty, another one or an older copy, at every request: what was expected is never taken for lost, and
//! nothing is committed anywhere else.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{
    Error, Faulty, Gate, Image, NOW, Op, Verdict, handle, keys, name, noise, open, taken,
};
use futures::TryStreamExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use phos_storage::{
    Candidate, CheckpointNumber, CollectOptions, Epoch, FaultKind, Job, JobError, Lease, ReadError,
    Rollback, UnixMillis,
};
use rstest::rstest;

/// What is behind a handle, to be exchanged while it is in use, as a mount is.
#[derive(Clone)]
struct Exchange(Arc<Mutex<Arc<dyn ObjectStore>>>);

impl Exchange {
    fn of(store: Arc<dyn ObjectStore>) -> Self {
        Self(Arc::new(Mutex::new(store)))
    }

    fn now(&self) -> Arc<dyn ObjectStore> {
        self.0.lock().unwrap().clone()
    }

    fn set(&self, store: Arc<dyn ObjectStore>) {
        *self.0.lock().unwrap() = store;
    }
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange")
    }
}

impl fmt::Display for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Exchange")
    }
}

#[async_trait::async_trait]
impl ObjectStore for Exchange {
    async fn put_opts(
        &self,
        at: &Path,
        payload: PutPayload,
        opts: PutOptions,
    ) -> Result<PutResult> {
        self.now().put_opts(at, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        at: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.now().put_multipart_opts(at, opts).await
    }

    async fn get_opts(&self, at: &Path, options: GetOptions) -> Result<GetResult> {
        self.now().get_opts(at, options).await
    }

    fn delete_stream(
        &self,
        locations: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.now().delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.now().list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.now().list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.now().copy_opts(from, to, options).await
    }
}

fn image(version: u64) -> Image {
    Image::of((0..4).map(|i| noise(10 * version + i, 3000)).collect())
}

async fn copy(from: &InMemory, to: &InMemory) {
    for meta in from.list(None).try_collect::<Vec<_>>().await.unwrap() {
        let bytes = from
            .get(&meta.location)
            .await
            .unwrap()
            .bytes()
            .await
            .unwrap();
        to.put(&meta.location, bytes.into()).await.unwrap();
    }
}

/// A history of so many checkpoints.
async fn history(seed: u64, store: &Arc<InMemory>, checkpoints: u64) -> (Job, Epoch) {
    let opened = open(store.clone(), seed).await;
    opened.initialise().await.unwrap();
    let job = opened.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    for version in 1..=checkpoints {
        image(version).commit(&job, epoch).await.unwrap();
    }
    (job, epoch)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Away {
    Empty,
    Other,
    Older,
    /// Every request fails.
    Failing(Error),
}

async fn behind(away: Away, older: Arc<InMemory>) -> Arc<dyn ObjectStore> {
    match away {
        Away::Empty => Arc::new(InMemory::new()),
        Away::Older => older,
        Away::Other => {
            // Longer, of the same job name, with an epoch of the same number.
            let other = Arc::new(InMemory::new());
            history(77, &other, 6).await;
            other
        }
        Away::Failing(error) => {
            Faulty::new(Arc::new(InMemory::new()), move |_, _| Verdict::Fail(error))
        }
    }
}

async fn heads(store: &dyn ObjectStore) -> Vec<String> {
    let all = keys(store).await.into_iter();
    all.filter(|key| key.contains("/head/")).collect()
}

struct World {
    real: Arc<InMemory>,
    exchange: Exchange,
    requests: Arc<AtomicUsize>,
    job: Job,
    epoch: Epoch,
    other: Arc<dyn ObjectStore>,
}

/// Two checkpoints, and a handle that knows of them. The store is exchanged at the request of this number from here on.
async fn world(away: Away, at: usize) -> World {
    world_for(away, at, usize::MAX).await
}

/// The same for so many requests.
async fn world_for(away: Away, at: usize, lasts: usize) -> World {
    let (real, older) = (Arc::new(InMemory::new()), Arc::new(InMemory::new()));
    let (before, epoch) = history(1, &real, 1).await;
    copy(&real, &older).await;
    image(2).commit(&before, epoch).await.unwrap();
    let other = behind(away, older).await;
    let exchange = Exchange::of(real.clone());
    let requests = Arc::new(AtomicUsize::new(usize::MAX / 2));
    let (switch, count, to) = (exchange.clone(), requests.clone(), other.clone());
    let (until, is) = (at.saturating_add(lasts), real.clone());
    let store = Faulty::new(Arc::new(exchange.clone()), move |_, _| {
        let request = count.fetch_add(1, Ordering::Relaxed);
        if request == at {
            switch.set(to.clone());
        } else if request == until {
            switch.set(is.clone());
        }
        Verdict::Pass
    });
    let job = open(store, 2).await.job(name("job"));
    // As a sidecar that takes its own job over again would; the epoch stays for what follows.
    let known = job.known().await.unwrap();
    job.expect(known);
    assert_eq!(known.unwrap().tail, 3);
    requests.store(0, Ordering::Relaxed);
    World {
        real,
        exchange,
        requests,
        job,
        epoch,
        other,
    }
}

impl World {
    fn was_exchanged(&self, at: usize) -> bool {
        self.requests.load(Ordering::Relaxed) > at
    }

    /// The store is back as it was: nothing is lost, and all goes on.
    async fn back(&self, at_least: u64) {
        self.requests.store(usize::MAX / 2, Ordering::Relaxed);
        self.exchange.set(self.real.clone());
        let newest = self.job.newest_restorable().await.unwrap();
        let manifest = newest.manifest.unwrap();
        assert!(newest.skipped.is_empty() && manifest.number.0 >= at_least);
        Image::read(&self.job, &manifest).await.unwrap();
        let commit = match image(9).commit(&self.job, self.epoch).await {
            Ok(commit) => commit,
            // What it read of the other store last is forgotten by that.
            Err(error) => {
                assert!(!error.is_permanent(), "{error}");
                image(9).commit(&self.job, self.epoch).await.unwrap()
            }
        };
        let looker = open(self.real.clone(), 3).await.job(name("job"));
        let newest = looker.newest_restorable().await.unwrap().manifest.unwrap();
        assert_eq!(newest.number, commit.number);
        assert_eq!(Image::read(&looker, &newest).await.unwrap(), image(9));
    }
}

fn is_transient(error: &JobError) -> bool {
    matches!(error, JobError::Store(fault) if !fault.is_permanent())
}

#[rstest]
#[tokio::test]
async fn a_checkpoint_is_committed_to_its_own_history_or_not_at_all(
    #[values(
        Away::Empty,
        Away::Other,
        Away::Older,
        Away::Failing(Error::Broken),
        Away::Failing(Error::Stale)
    )]
    away: Away,
) {
    for at in 0.. {
        let world = world(away, at).await;
        let heads_there = match away {
            Away::Failing(_) => Vec::new(),
            _ => heads(&*world.other).await,
        };
        let done = async {
            let writer = world.job.begin(world.epoch).await.map_err(|e| {
                assert!(is_transient(&e), "{away:?} at {at}: {e}");
            })?;
            // A failed upload shows in the commit as well.
            let _ = image(5).put(&writer).await;
            let commit = writer.commit(image(5).body(), NOW).await;
            commit.map_err(|e| {
                assert!(!e.is_permanent() && !e.is_fenced(), "{away:?} at {at}: {e}");
            })
        }
        .await;
        let exchanged = world.was_exchanged(at);
        if let Ok(commit) = &done {
            let looker = open(world.real.clone(), 4).await.job(name("job"));
            let listed = looker.list().await.unwrap().checkpoints;
            assert!(
                listed.iter().any(|c| c.number == commit.number),
                "{away:?} at {at}: it is not where it was said to be"
            );
        }
        if exchanged {
            // Also by the one who saw it while it was there.
            match world.job.newest_restorable().await {
                Err(error) => assert!(is_transient(&error), "{away:?} at {at}: {error}"),
                Ok(found) => panic!("{away:?} at {at}: {:?}", found.manifest.map(|m| m.number)),
            }
            if away == Away::Other {
                assert_eq!(heads(&*world.other).await, heads_there, "at {at}");
            }
        }
        world.back(3).await;
        if !exchanged {
            assert!(done.is_ok() && at > 5, "{at} requests");
            break;
        }
    }
}

/// Of a restore: the newest checkpoint is found and read, or it is waited for; never an older one, and never none.
#[rstest]
#[tokio::test]
async fn a_restore_reads_the_newest_or_waits(
    #[values(
        Away::Empty,
        Away::Other,
        Away::Older,
        Away::Failing(Error::Broken),
        Away::Failing(Error::Stale)
    )]
    away: Away,
) {
    for at in 0.. {
        let world = world(away, at).await;
        let held = world.job.hold_newest("restore", NOW).await;
        match held {
            Ok((found, hold)) => {
                let manifest = found
                    .manifest
                    .unwrap_or_else(|| panic!("{away:?} at {at}: none"));
                assert!(
                    found.skipped.is_empty(),
                    "{away:?} at {at}: {:?}",
                    found.skipped
                );
                assert_eq!(manifest.number.0, 3, "{away:?} at {at}");
                if let Ok(read) = Image::read(&world.job, &manifest).await {
                    assert_eq!(read, image(2), "{away:?} at {at}");
                } else {
                    assert!(world.was_exchanged(at));
                    // What a restore asks next: whether there is an older one.
                    let error = world.job.list().await.unwrap_err();
                    assert!(is_transient(&error), "{away:?} at {at}: {error}");
                }
                drop(hold);
            }
            Err(error) => assert!(is_transient(&error), "{away:?} at {at}: {error}"),
        }
        match world.job.manifest(CheckpointNumber(3)).await {
            Ok(manifest) => assert_eq!(manifest.number.0, 3),
            Err(error) => assert!(is_transient(&error), "{away:?} at {at}: {error}"),
        }
        let exchanged = world.was_exchanged(at);
        world.back(3).await;
        if !exchanged {
            assert!(at > 5, "{at} requests");
            break;
        }
    }
}

/// A mount that is away for a moment, while a pack is read, say: nothing of the newest is taken for damaged or lost.
#[rstest]
#[tokio::test]
async fn a_moments_absence_is_no_damage(
    #[values(Away::Empty, Away::Other, Away::Older)] away: Away,
    #[values(1, 2, 3)] lasts: usize,
) {
    for at in 0.. {
        let world = world_for(away, at, lasts).await;
        let job = &world.job;
        let read = async {
            let (found, _hold) = job.hold_newest("restore", NOW).await?;
            assert_eq!(found.skipped, [], "{away:?} at {at}");
            let manifest = found.manifest.expect("a checkpoint");
            assert_eq!(manifest.number.0, 3, "{away:?} at {at}");
            // As of one that was chosen.
            let (chosen, _hold) = job.hold(manifest.number, "restore", NOW).await?;
            job.check_packs(&chosen).await?;
            match Image::read(job, &chosen).await {
                Ok(read) => assert_eq!(read, image(2), "{away:?} at {at}"),
                Err(ReadError::Store { source, .. }) => return Err(JobError::Store(source)),
                Err(e) => panic!("{away:?} at {at}: {e}"),
            }
            Ok(())
        };
        if let Err(error) = read.await {
            assert!(is_transient(&error), "{away:?} at {at}: {error}");
        }
        if !world.was_exchanged(at) {
            assert!(at > 5, "{at} requests");
            break;
        }
    }
}

#[rstest]
#[tokio::test]
async fn nothing_else_takes_another_store_for_this_one(
    #[values(Away::Empty, Away::Other, Away::Older)] away: Away,
) {
    let World {
        job,
        epoch,
        other,
        exchange,
        real,
        ..
    } = world(away, usize::MAX).await;
    job.still_has(epoch).await.unwrap();
    exchange.set(other.clone());
    let before = keys(&*other).await;
    let lease = Lease {
        epoch,
        holder: "node".into(),
        node: "node".into(),
        beat: 1,
        renewed: NOW,
        length_ms: 1000,
        released: false,
    };
    let keep = |_: &[phos_storage::Candidate]| std::collections::BTreeSet::new();
    let options = CollectOptions {
        epoch: Some(epoch),
        ..CollectOptions::default()
    };
    let absent = |outcome: std::result::Result<(), JobError>, what: &str| match outcome {
        Err(JobError::Store(fault)) => {
            assert_eq!(fault.kind(), FaultKind::Absent, "{away:?}, {what}: {fault}");
            assert!(!fault.is_permanent());
            let said = fault.to_string();
            assert!(
                said.contains("--start-fresh") && said.contains("job job"),
                "{said}"
            );
        }
        other => panic!("{away:?}, {what}: {other:?}"),
    };
    absent(job.still_has(epoch).await, "still_has");
    absent(job.renew_lease(&lease).await, "renew_lease");
    absent(job.mark_completed(epoch, 0, NOW).await, "mark_completed");
    absent(job.take_over("again", NOW).await.map(drop), "take_over");
    absent(job.state().await.map(drop), "state");
    absent(job.list().await.map(drop), "list");
    absent(job.known().await.map(drop), "known");
    absent(
        job.manifest(CheckpointNumber(3)).await.map(drop),
        "manifest",
    );
    absent(job.begin(epoch).await.map(drop), "begin");
    let collected = job.collect(&keep, options, || UnixMillis(NOW.0)).await;
    assert!(
        matches!(collected, Err(phos_storage::CollectError::Store(ref f)) if f.kind() == FaultKind::Absent),
        "{collected:?}"
    );
    assert_eq!(
        keys(&*other).await,
        before,
        "{away:?}: something was written there"
    );
    exchange.set(real);
    job.renew_lease(&lease).await.unwrap();
    job.mark_completed(epoch, 0, NOW).await.unwrap();
}

/// Who looks at what is there is told what was seen and what is, and sees it all the same.
#[tokio::test]
async fn a_log_that_is_shorter_than_it_was_is_told_with_both_numbers() {
    let real = Arc::new(InMemory::new());
    let (job, epoch) = history(1, &real, 2).await;
    let known = job.known().await.unwrap().unwrap();
    assert_eq!(known.tail, 3);
    let look = async |store: &Arc<InMemory>| {
        let job = open(store.clone(), 9).await.job(name("job"));
        let found = job.rollback(known).await.unwrap();
        assert!(job.list().await.is_ok(), "nothing is kept from who looks");
        found.map(|found| (found, found.to_string()))
    };
    assert_eq!(look(&real).await, None);
    image(3).commit(&job, epoch).await.unwrap();
    assert_eq!(look(&real).await, None, "longer");
    // The end of the log was taken away.
    let cut = Arc::new(InMemory::new());
    copy(&real, &cut).await;
    for number in [4, 3] {
        let key = format!("prefix/jobs/job/head/{number:020}");
        cut.delete(&Path::from(key)).await.unwrap();
    }
    let (found, said) = look(&cut).await.unwrap();
    assert_eq!((found.seen, found.found, found.other), (3, 2, None));
    assert!(
        said.contains("up to record 3") && said.contains("up to 2: its log was rolled back"),
        "{said}"
    );
    // And a job went on there: the record that was seen is another one by now, or none.
    let holed = Arc::new(InMemory::new());
    copy(&real, &holed).await;
    let key = format!("prefix/jobs/job/head/{:020}", 3);
    holed.delete(&Path::from(key)).await.unwrap();
    let (found, said) = look(&holed).await.unwrap();
    assert_eq!((found.missing, found.found), (Some(3), 4));
    assert!(said.contains("record 3 is missing"), "{said}");
    // Nothing, and another.
    let (found, said) = look(&Arc::new(InMemory::new())).await.unwrap();
    assert_eq!(found, Rollback::of_nothing(known));
    assert!(said.contains("there is nothing"), "{said}");
    let other = Arc::new(InMemory::new());
    let (other_job, _) = history(2, &other, 3).await;
    let id = other_job.known().await.unwrap().unwrap().id;
    let (found, said) = look(&other).await.unwrap();
    assert_eq!((found.other, found.found), (Some(id), 4));
    assert!(said.contains("in its place"), "{said}");
}

/// A handle that goes on without a listing says both numbers as well.
#[tokio::test]
async fn who_renews_is_told_how_far_the_log_went_back() {
    let real = Arc::new(InMemory::new());
    let (job, epoch) = history(1, &real, 4).await;
    job.expect(job.known().await.unwrap());
    job.still_has(epoch).await.unwrap();
    for number in [5, 4] {
        let key = format!("prefix/jobs/job/head/{number:020}");
        real.delete(&Path::from(key)).await.unwrap();
    }
    let said = job.still_has(epoch).await.unwrap_err().to_string();
    assert!(
        said.contains("up to record 5") && said.contains("up to 3: its log was rolled back"),
        "{said}"
    );
}

/// A job with two checkpoints, its store, and a gate before it.
struct Beside {
    store: Arc<InMemory>,
    job: Job,
    epoch: Epoch,
    gate: Arc<Gate>,
}

impl Beside {
    async fn of(at: Op, part: &'static str) -> Self {
        let store = Arc::new(InMemory::new());
        let (first, epoch) = taken(&store, 1).await;
        for version in 0..2 {
            image(version).commit(&first, epoch).await.unwrap();
        }
        let (gated, gate) = Gate::before(&store, at, part);
        let job = handle(gated, 2).await;
        job.expect(first.known().await.unwrap());
        Self {
            store,
            job,
            epoch,
            gate,
        }
    }

    /// Another checkpoint, by a clone of the handle.
    async fn commit(&self) {
        image(2).commit(&self.job, self.epoch).await.unwrap();
        assert_eq!(self.job.expected().unwrap().tail, 4);
    }
}

/// A collection beside a checkpoint, say, with clones of one handle: the log has been listed when its first record is read.
#[tokio::test]
async fn a_record_that_is_appended_beside_a_look_is_no_rollback() {
    let beside = Beside::of(Op::Get, "/head/").await;
    let job = beside.job.clone();
    let look = tokio::spawn(async move { job.list().await });
    beside.gate.reached().await;
    beside.commit().await;
    beside.gate.open();
    assert_eq!(look.await.unwrap().unwrap().checkpoints.len(), 2);
    assert_eq!(beside.job.list().await.unwrap().checkpoints.len(), 3);
}

/// The same without a listing: by what the handle remembers of the log.
#[tokio::test]
async fn a_record_that_is_appended_beside_a_check_is_no_rollback() {
    let beside = Beside::of(Op::Get, "/head/").await;
    let (job, epoch) = (beside.job.clone(), beside.epoch);
    job.still_has(epoch).await.unwrap();
    let check = tokio::spawn(async move { job.still_has(epoch).await });
    beside.gate.reached().await;
    beside.commit().await;
    beside.gate.open();
    check.await.unwrap().unwrap();
}

/// What it appends would stand where the one was that is lost.
#[tokio::test]
async fn a_record_that_is_lost_beside_a_collection_is_missed() {
    let beside = Beside::of(Op::List, "/packs").await;
    let job = beside.job.clone();
    let collection = tokio::spawn(async move {
        let keep = |all: &[Candidate]| all.iter().rev().take(1).map(|c| c.number).collect();
        job.collect(&keep, CollectOptions::default(), NOW).await
    });
    beside.gate.reached().await;
    beside.commit().await;
    let newest = format!("prefix/jobs/job/head/{:020}", 4);
    (beside.store).delete(&Path::from(newest)).await.unwrap();
    beside.gate.open();
    let error = collection.await.unwrap().unwrap_err().to_string();
    assert!(
        error.contains("up to record 4") && error.contains("up to 3: its log was rolled back"),
        "{error}"
    );
}

/// Until a person says that it shall be so.
#[tokio::test]
async fn what_is_not_expected_any_more_is_not_asked_for() {
    let World {
        job,
        exchange,
        other,
        ..
    } = world(Away::Empty, usize::MAX).await;
    exchange.set(other);
    assert!(job.state().await.is_err());
    job.expect(None);
    assert_eq!(job.state().await.unwrap().tail, 0);
    let epoch = job.take_over_from("anew", NOW, None).await.unwrap().epoch;
    assert!(job.began_afresh().await.unwrap());
    let known = job.known().await.unwrap();
    job.expect(known);
    image(1).commit(&job, epoch).await.unwrap();
    assert_eq!(job.expected().unwrap().tail, 2);
}

/// A first record that is damaged is no sign of another store.
#[tokio::test]
async fn damage_of_the_first_record_is_not_absence() {
    let World {
        job, real, epoch, ..
    } = world(Away::Empty, usize::MAX).await;
    let first = heads(&*real).await.remove(0);
    real.put(&Path::from(first), vec![1, 2, 3].into())
        .await
        .unwrap();
    image(3).commit(&job, epoch).await.unwrap();
    assert_eq!(
        job.newest_restorable()
            .await
            .unwrap()
            .manifest
            .unwrap()
            .number
            .0,
        4
    );
}
