//! Two stores with checkpoints of one job. Copying: the same bytes, only what is missing, visible or not at all. Reading:
//! each chunk from the nearest that has it, and from the other what is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::common::{Error, Faulty, Image, NOW, Op, Verdict, name, noise, open};
use object_store::ObjectStoreExt as _;
use object_store::memory::InMemory;
use phos_storage::{Always, CopyError, Epoch, Job, Manifest, ReadError, Store, UnixMillis};

const LATER: UnixMillis = UnixMillis(NOW.0 + 1000);

struct Pair {
    near: Job,
    near_epoch: Epoch,
    far: Job,
    epoch: Epoch,
}

async fn job(store: Arc<dyn object_store::ObjectStore>, seed: u64) -> (Job, Epoch) {
    let store = open(store, seed).await;
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let taken = job.take_over("host", NOW).await.unwrap();
    (job, taken.epoch)
}

impl Pair {
    async fn new(
        near: Arc<dyn object_store::ObjectStore>,
        far: Arc<dyn object_store::ObjectStore>,
    ) -> Pair {
        let ((near, near_epoch), (far, epoch)) = (job(near, 1).await, job(far, 2).await);
        Pair {
            near,
            near_epoch,
            far,
            epoch,
        }
    }

    async fn local(&self, image: &Image) -> Manifest {
        image
            .commit(&self.near, self.near_epoch)
            .await
            .unwrap()
            .manifest
    }

    async fn copy(&self, manifest: &Manifest) -> Result<phos_storage::Commit, CopyError> {
        self.far
            .copy_from(self.epoch, &self.near, manifest, &Always, LATER)
            .await
    }
}

fn image(seeds: impl Iterator<Item = u64>) -> Image {
    Image {
        log: vec![noise(999, 500)],
        ..Image::of(seeds.map(|seed| noise(seed, 16 << 10)).collect())
    }
}

#[tokio::test]
async fn a_copy_has_the_same_bytes_and_only_what_is_new_is_sent() {
    let pair = Pair::new(Arc::new(InMemory::new()), Arc::new(InMemory::new())).await;
    // Zeros, and the same chunk twice.
    let mut first = image((0..40).chain([3, 3]));
    first.device[0].push(bytes::Bytes::from(vec![0; 16 << 10]));
    let local = pair.local(&first).await;
    let commit = pair.copy(&local).await.unwrap();
    assert_eq!(
        Image::read(&pair.far, &commit.manifest).await.unwrap(),
        first
    );
    assert_eq!(commit.manifest.named(), local.named());
    // It is known as the same by its time, which is not that of the copy.
    assert_eq!(commit.manifest.created, local.created);
    let second = image((1..41).chain([3, 3]));
    let local = pair.local(&second).await;
    let commit = pair.copy(&local).await.unwrap();
    assert_eq!(
        Image::read(&pair.far, &commit.manifest).await.unwrap(),
        second
    );
    assert_eq!(commit.stats.new_chunks, 1, "{:?}", commit.stats);
    // What is there already is not read: the chunks of the first may be gone here.
    let again = pair.copy(&local).await.unwrap();
    assert_eq!(again.stats.new_chunks, 0);
}

#[tokio::test]
async fn what_was_sent_before_a_failure_is_not_sent_again() {
    let puts = Arc::new(AtomicU64::new(0));
    let broken = Arc::new(AtomicBool::new(true));
    let hook = {
        let (puts, broken) = (Arc::clone(&puts), Arc::clone(&broken));
        move |op: Op, path: &str| {
            if op == Op::Put && path.contains("/packs/") {
                let n = puts.fetch_add(1, Ordering::Relaxed);
                if n >= 3 && broken.load(Ordering::Relaxed) {
                    return Verdict::Fail(Error::Denied);
                }
            }
            Verdict::Pass
        }
    };
    let far = Faulty::new(Arc::new(InMemory::new()), hook);
    let pair = Pair::new(Arc::new(InMemory::new()), far).await;
    let image = image(0..40);
    let local = pair.local(&image).await;
    let error = pair.copy(&local).await.unwrap_err();
    assert!(error.is_permanent() && !error.is_fenced(), "{error}");
    assert!(
        pair.far.list().await.unwrap().checkpoints.is_empty(),
        "half a copy is visible"
    );
    broken.store(false, Ordering::Relaxed);
    let commit = pair.copy(&local).await.unwrap();
    assert!(commit.resumed.packs > 0, "{:?}", commit.resumed);
    assert_eq!(
        Image::read(&pair.far, &commit.manifest).await.unwrap(),
        image
    );
}

#[tokio::test]
async fn one_who_lost_the_job_copies_nothing() {
    let pair = Pair::new(Arc::new(InMemory::new()), Arc::new(InMemory::new())).await;
    let local = pair.local(&image(0..10)).await;
    pair.far.take_over("another", LATER).await.unwrap();
    let error = pair.copy(&local).await.unwrap_err();
    assert!(error.is_fenced() && error.is_permanent(), "{error}");
    assert!(pair.far.list().await.unwrap().checkpoints.is_empty());
}

#[tokio::test]
async fn a_damaged_original_is_not_copied() {
    let flip = |op: Op, path: &str| {
        if op == Op::Get && path.contains("/packs/") {
            Verdict::Flip
        } else {
            Verdict::Pass
        }
    };
    let near = Faulty::new(Arc::new(InMemory::new()), flip);
    let pair = Pair::new(near, Arc::new(InMemory::new())).await;
    let local = pair.local(&image(0..10)).await;
    let error = pair.copy(&local).await.unwrap_err();
    assert!(
        matches!(error, CopyError::Read(ReadError::Damaged { .. })),
        "{error}"
    );
    assert!(pair.far.list().await.unwrap().checkpoints.is_empty());
}

/// A store whose packs answer as `verdict` says; how many of their ranges were asked for.
fn packs_that(verdict: impl Fn() -> Verdict + Send + 'static) -> (Arc<Faulty>, Arc<AtomicU64>) {
    let gets = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&gets);
    let store = Faulty::new(Arc::new(InMemory::new()), move |op, path| {
        if op != Op::Get || !path.contains("/packs/") {
            return Verdict::Pass;
        }
        counter.fetch_add(1, Ordering::Relaxed);
        verdict()
    });
    (store, gets)
}

#[tokio::test]
async fn what_a_nearer_one_has_is_not_asked_for_farther_off() {
    let ((near, _), (far, asked)) = (packs_that(|| Verdict::Pass), packs_that(|| Verdict::Pass));
    let pair = Pair::new(near, far).await;
    let (old, new) = (image(0..40), image(1..41));
    let stored = old.commit(&pair.far, pair.epoch).await.unwrap().manifest;
    let local = pair.local(&new).await;
    let reader = pair.far.reader(&stored).unwrap();
    let reader = reader.nearer(&pair.near, &local);
    asked.store(0, Ordering::Relaxed);
    assert_eq!(Image::read_by(&reader, &stored).await.unwrap(), old);
    // One chunk of the forty is in the store alone, and one chunk is one request.
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    let (nearer, further) = reader.read_elsewhere();
    assert!(
        nearer >= 39 * (16 << 10) && further == 0,
        "{nearer} {further}"
    );
    // As far off, all of it.
    let plain = pair.far.reader(&stored).unwrap();
    assert_eq!(Image::read_by(&plain, &stored).await.unwrap(), old);
    assert!(asked.load(Ordering::Relaxed) > 1);
    assert_eq!(plain.read_elsewhere(), (0, 0));
}

#[rstest::rstest]
#[case::damaged(Verdict::Flip)]
#[case::failing(Verdict::Fail(Error::Denied))]
#[case::cut_off(Verdict::Truncate)]
#[tokio::test]
async fn a_nearer_one_that_fails_costs_nothing_but_time(#[case] verdict: Verdict) {
    let pair = Pair::new(packs_that(move || verdict).0, Arc::new(InMemory::new())).await;
    let image = image(0..40);
    let stored = image.commit(&pair.far, pair.epoch).await.unwrap().manifest;
    let local = pair.local(&image).await;
    let reader = pair.far.reader(&stored).unwrap().nearer(&pair.near, &local);
    assert_eq!(Image::read_by(&reader, &stored).await.unwrap(), image);
    assert_eq!(reader.read_elsewhere(), (0, 0));
}

#[rstest::rstest]
#[case::damaged(Verdict::Flip, true)]
#[case::failing(Verdict::Fail(Error::Denied), false)]
#[tokio::test]
async fn what_cannot_be_read_here_is_read_from_a_further_one_that_has_it(
    #[case] verdict: Verdict,
    #[case] damage: bool,
) {
    let (near, _) = packs_that(move || verdict);
    let pair = Pair::new(near, Arc::new(InMemory::new())).await;
    let local = pair.local(&image(0..40)).await;
    let all = image(0..50);
    let stored = all.commit(&pair.far, pair.epoch).await.unwrap().manifest;
    let damaged = pair.near.reader(&local).unwrap();
    let error = Image::read_by(&damaged, &local).await.unwrap_err();
    assert_eq!(
        matches!(error, ReadError::Damaged { .. }),
        damage,
        "{error}"
    );
    let reader = damaged.clone().further(&pair.far, &stored);
    assert_eq!(Image::read_by(&reader, &local).await.unwrap(), image(0..40));
    assert!(reader.read_elsewhere().1 >= 40 * (16 << 10));
    // One that lacks a chunk does not help, and it is the fault here that is named.
    let less = image(1..40)
        .commit(&pair.far, pair.epoch)
        .await
        .unwrap()
        .manifest;
    let reader = damaged.further(&pair.far, &less);
    let error = Image::read_by(&reader, &local).await.unwrap_err();
    let packs: Vec<_> = local.packs.iter().map(|pack| pack.id).collect();
    let named = (error.damaged_pack()).is_some_and(|pack| packs.contains(&pack));
    assert_eq!(named, damage, "{error}");
}

#[tokio::test]
async fn packs_that_are_gone_here_are_read_from_a_further_one() {
    let here = Arc::new(InMemory::new());
    let pair = Pair::new(Arc::<InMemory>::clone(&here), Arc::new(InMemory::new())).await;
    let image = image(0..40);
    let local = pair.local(&image).await;
    let stored = pair.copy(&local).await.unwrap().manifest;
    for key in crate::common::keys(&*here).await {
        if key.contains("/packs/") {
            here.delete(&key.into()).await.unwrap();
        }
    }
    let lost = pair.near.reader(&local).unwrap();
    let error = Image::read_by(&lost, &local).await.unwrap_err();
    assert!(matches!(error, ReadError::PackLost { .. }), "{error}");
    let reader = lost.further(&pair.far, &stored);
    assert_eq!(Image::read_by(&reader, &local).await.unwrap(), image);
}

#[tokio::test]
async fn a_place_that_names_chunks_in_another_way_is_not_asked() {
    let (near, asked) = packs_that(|| Verdict::Pass);
    let near = Store::from_object_store(near, "prefix", crate::common::encrypted(1, 7));
    let near = near.await.unwrap();
    near.initialise().await.unwrap();
    let near = near.job(name("job"));
    let epoch = near.take_over("host", NOW).await.unwrap().epoch;
    let (far, far_epoch) = job(Arc::new(InMemory::new()), 2).await;
    let image = image(0..10);
    let local = image.commit(&near, epoch).await.unwrap().manifest;
    let stored = image.commit(&far, far_epoch).await.unwrap().manifest;
    asked.store(0, Ordering::Relaxed);
    let reader = far.reader(&stored).unwrap().nearer(&near, &local);
    assert_eq!(Image::read_by(&reader, &stored).await.unwrap(), image);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}
