//! A store that fails: what is transient is tried again, what is permanent is said at once, and neither ever makes
//! something visible that is not whole.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::common::{
    Error, Faulty, Image, NOW, Op, Verdict, keys, name, noise, open, options, runtime,
};
use futures::future::BoxFuture;
use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use phos_storage::{
    CommitError, Epoch, FaultKind, Job, JobError, Pacer, ProbeError, RecordKind, Store,
    VerifyOptions,
};
use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rstest::rstest;

fn image(seed: u64) -> Image {
    Image::of((0..10).map(|i| noise(seed * 100 + i, 20_000)).collect())
}

/// A job on a store whose verdicts can be switched on and off.
async fn switched(
    mut hook: impl FnMut(Op, &str) -> Verdict + Send + 'static,
) -> (Arc<InMemory>, Arc<AtomicBool>, Job, Epoch) {
    let inner = Arc::new(InMemory::new());
    let on = Arc::new(AtomicBool::new(false));
    let switch = on.clone();
    let faulty = Faulty::new(inner.clone(), move |op, key| {
        if switch.load(Ordering::SeqCst) {
            hook(op, key)
        } else {
            Verdict::Pass
        }
    });
    let job = open(faulty, 1).await.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    (inner, on, job, epoch)
}

#[rstest]
#[tokio::test]
async fn a_transient_fault_of_any_operation_is_overcome(
    #[values(Error::Server500, Error::Throttled, Error::Reset, Error::Timeout)] error: Error,
    #[values(Op::Put, Op::Create, Op::Get, Op::List)] op: Op,
) {
    // The first such operation on each key fails.
    let mut failed = HashSet::new();
    let (_, on, job, epoch) = switched(move |asked, key| {
        if asked == op && failed.insert(key.to_owned()) {
            Verdict::Fail(error)
        } else {
            Verdict::Pass
        }
    })
    .await;
    on.store(true, Ordering::SeqCst);
    image(1).commit(&job, epoch).await.unwrap();
    let found = job.newest_restorable().await.unwrap();
    assert_eq!(found.skipped, []);
    assert_eq!(
        Image::read(&job, &found.manifest.unwrap()).await.unwrap(),
        image(1)
    );
}

#[rstest]
#[tokio::test]
async fn a_permanent_fault_is_said_at_once_and_nothing_is_visible(
    #[values((Error::Denied, FaultKind::Denied), (Error::Expired, FaultKind::Unauthenticated), (Error::Full, FaultKind::NoSpace))]
    fault: (Error, FaultKind),
) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let (inner, on, job, epoch) = switched(move |op, key| {
        if op == Op::Put && key.contains("/packs/") {
            counter.fetch_add(1, Ordering::SeqCst);
            return Verdict::Fail(fault.0);
        }
        Verdict::Pass
    })
    .await;
    on.store(true, Ordering::SeqCst);
    let error = image(1).commit(&job, epoch).await.unwrap_err();
    assert!(
        matches!(&error, CommitError::Upload(found) if found.kind() == fault.1),
        "{error}"
    );
    assert!(error.is_permanent());
    // At most the two uploads that may be in flight, once each, and the last pack's.
    assert!(asked.load(Ordering::SeqCst) <= 3, "{asked:?}");
    on.store(false, Ordering::SeqCst);
    assert_eq!(job.newest_restorable().await.unwrap().manifest, None);
    assert!(
        (keys(&*inner).await.iter()).all(|key| key.contains("/head/") || key.contains("/writers/")),
        "nothing is left but the take-over and the writer's note"
    );
    image(1).commit(&job, epoch).await.unwrap();
}

#[tokio::test]
async fn a_broken_network_is_an_error_and_no_reason_to_restore_an_older_checkpoint() {
    let (_, on, job, epoch) = switched(|op, key| {
        if op == Op::Get && key.contains("/manifests/") {
            Verdict::Fail(Error::Timeout)
        } else {
            Verdict::Pass
        }
    })
    .await;
    image(1).commit(&job, epoch).await.unwrap();
    image(2).commit(&job, epoch).await.unwrap();
    on.store(true, Ordering::SeqCst);
    let error = job.newest_restorable().await.unwrap_err();
    assert!(
        matches!(error, JobError::Store(_)) && !error.is_permanent(),
        "{error}"
    );
}

#[tokio::test]
async fn a_lost_answer_to_a_creation_is_recognised_as_won() {
    let mut lose = true;
    let (_, on, job, epoch) = switched(move |op, _| {
        if op == Op::Create && std::mem::take(&mut lose) {
            Verdict::Lose
        } else {
            Verdict::Pass
        }
    })
    .await;
    on.store(true, Ordering::SeqCst);
    let commit = image(1).commit(&job, epoch).await.unwrap();
    let listed = job.list().await.unwrap().checkpoints;
    assert_eq!(
        listed.iter().map(|c| c.number).collect::<Vec<_>>(),
        [commit.number],
        "once"
    );
    assert_eq!(
        image(2).commit(&job, epoch).await.unwrap().number.0,
        commit.number.0 + 1
    );
}

#[tokio::test]
async fn when_the_answer_stays_lost_the_outcome_is_said_to_be_unknown_and_is_whole() {
    let (_, on, job, epoch) = switched(|op, key| match op {
        Op::Create => Verdict::Lose,
        Op::Get if key.contains("/head/") => Verdict::Fail(Error::Reset),
        _ => Verdict::Pass,
    })
    .await;
    let writer = job.begin(epoch).await.unwrap();
    image(1).put(&writer).await.unwrap();
    on.store(true, Ordering::SeqCst);
    let error = writer.commit(image(1).body(), NOW).await.unwrap_err();
    assert!(
        matches!(error, CommitError::Unknown(_)) && !error.is_permanent(),
        "{error}"
    );
    on.store(false, Ordering::SeqCst);
    let found = job.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(
        Image::read(&job, &found).await.unwrap(),
        image(1),
        "it was committed after all, and nothing deleted"
    );
    image(2).commit(&job, epoch).await.unwrap();
}

#[rstest]
#[tokio::test]
async fn damage_on_the_way_is_healed_by_asking_again_and_damage_that_stays_is_named(
    #[values(Verdict::Flip, Verdict::Truncate)] verdict: Verdict,
) {
    let once = Arc::new(AtomicU32::new(1));
    let left = once.clone();
    let (_, on, job, epoch) = switched(move |op, key| {
        let hit = op == Op::Get && key.contains("/packs/");
        let damage = hit
            && left
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1))
                .is_ok();
        if damage { verdict } else { Verdict::Pass }
    })
    .await;
    let manifest = image(1).commit(&job, epoch).await.unwrap().manifest;
    on.store(true, Ordering::SeqCst);
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image(1));
    once.store(u32::MAX, Ordering::SeqCst);
    let error = Image::read(&job, &manifest).await.unwrap_err();
    assert!(
        error.damaged_pack().is_some() && error.is_permanent(),
        "{error}"
    );
}

#[tokio::test]
async fn what_shrinks_to_nothing_is_still_read_in_bounded_pieces() {
    let gets = Arc::new(AtomicUsize::new(0));
    let count = gets.clone();
    let faulty = Faulty::new(Arc::new(InMemory::new()), move |op, key| {
        count.fetch_add(
            usize::from(op == Op::Get && key.contains("/packs/")),
            Ordering::SeqCst,
        );
        Verdict::Pass
    });
    let mut small = options(1);
    small.fetch_size = 1 << 20;
    let job = Store::from_object_store(faulty, "p", small)
        .await
        .unwrap()
        .job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    // All of it is in one pack of a few KiB.
    let image = Image::of((1..33).map(|i| vec![i; 1 << 20].into()).collect());
    let commit = image.commit(&job, epoch).await.unwrap();
    assert_eq!(commit.manifest.packs.len(), 1);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
    let gets = gets.load(Ordering::SeqCst);
    assert!(gets >= 16, "32 MiB were decoded from {gets} ranges");
}

#[tokio::test]
async fn a_failed_part_is_uploaded_again() {
    let inner = Arc::new(InMemory::new());
    let mut count = 0;
    let faulty = Faulty::new(inner, move |op, _| {
        count += u32::from(op == Op::Part);
        if op == Op::Part && count == 2 {
            Verdict::Fail(Error::Server500)
        } else {
            Verdict::Pass
        }
    });
    let mut large = options(1);
    (large.pack_size, large.part_size) = (1 << 20, 100_000);
    let job = Store::from_object_store(faulty, "p", large)
        .await
        .unwrap()
        .job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let commit = image(1).commit(&job, epoch).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image(1));
}

/// Lets everything go, and remembers what it was asked for.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<u64>>);

impl Pacer for Asked {
    fn take(&self, bytes: u64) -> BoxFuture<'_, ()> {
        self.0.lock().unwrap().push(bytes);
        Box::pin(std::future::ready(()))
    }
}

#[tokio::test]
async fn packs_and_manifests_are_let_go_part_by_part() {
    let pacer = Arc::new(Asked::default());
    let mut paced = options(1);
    (paced.pack_size, paced.part_size) = (1 << 20, 100_000);
    paced.pacer = Some(pacer.clone());
    let store = Store::from_object_store(Arc::new(InMemory::new()), "p", paced);
    let job = store.await.unwrap().job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    // The names of so many chunks are more than a part.
    let image = Image::of((0..4000).map(|i| noise(i, 500)).collect());
    let commit = image.commit(&job, epoch).await.unwrap();
    assert!(commit.manifest_bytes > 100_000 && commit.manifest.packs.len() > 1);
    let asked = pacer.0.lock().unwrap().clone();
    assert!(asked.iter().all(|bytes| *bytes <= 100_000), "{asked:?}");
    let sent: u64 = asked.iter().sum();
    assert_eq!(sent, commit.stats.stored_bytes + commit.manifest_bytes);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
}

#[tokio::test]
async fn a_store_that_hangs_holds_puts_back_and_memory_stays_bounded() {
    let (_, hang, job, epoch) = switched(|op, key| {
        if op == Op::Put && key.contains("/packs/") {
            Verdict::Wait
        } else {
            Verdict::Pass
        }
    })
    .await;
    hang.store(true, Ordering::SeqCst);
    let writer = job.begin(epoch).await.unwrap();
    let big = Image::of((0..60).map(|i| noise(i, 20_000)).collect());
    let putting = tokio::spawn({
        let (writer, big) = (writer.clone(), big.clone());
        async move { big.put(&writer).await }
    });
    // Three chunks fill a pack; one pack is open and two are on their way.
    let most = 3 * 3;
    while writer.stats().new_chunks < most {
        tokio::task::yield_now().await;
    }
    for _ in 0..200 {
        // Time for one more chunk to be encoded, if there were room.
        tokio::task::spawn_blocking(|| ()).await.unwrap();
    }
    assert_eq!(writer.stats().new_chunks, most);
    assert_eq!(writer.stats().stored_packs, 0);
    hang.store(false, Ordering::SeqCst);
    putting.await.unwrap().unwrap();
    let commit = writer.commit(big.body(), NOW).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), big);
}

#[tokio::test]
async fn a_writer_that_hangs_can_be_aborted_and_dropped() {
    for abort in [true, false] {
        let (inner, hang, job, epoch) = switched(|op, key| {
            if op == Op::Put && key.contains("/packs/") {
                Verdict::Wait
            } else {
                Verdict::Pass
            }
        })
        .await;
        hang.store(true, Ordering::SeqCst);
        let writer = job.begin(epoch).await.unwrap();
        let putting = tokio::spawn({
            let writer = writer.clone();
            async move { image(1).put(&writer).await.and(image(2).put(&writer).await) }
        });
        while writer.stats().new_chunks < 9 {
            tokio::task::yield_now().await;
        }
        if abort {
            writer.abort(NOW).await;
            assert!(putting.await.unwrap().is_err());
        } else {
            putting.abort();
            drop(writer);
            let _ = putting.await;
        }
        hang.store(false, Ordering::SeqCst);
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
        assert!(
            keys(&*inner)
                .await
                .iter()
                // The note stays for the next checkpoint or collection.
                .all(|key| key.contains("/head/") || key.contains("/writers/")),
            "nothing was stored"
        );
    }
}

#[tokio::test]
async fn the_probe_refuses_what_cannot_be_trusted() {
    let inner = Arc::new(InMemory::new());
    let store = open(
        Faulty::new(inner, |op, _| {
            if op == Op::Create {
                Verdict::IgnoreCondition
            } else {
                Verdict::Pass
            }
        }),
        1,
    )
    .await;
    let error = store.probe().await.unwrap_err();
    assert!(
        matches!(error, ProbeError::ConditionIgnored { .. }) && error.is_permanent(),
        "{error}"
    );

    // Three of the racers win, as some servers have it; a lone create is honest.
    let mut races = 0;
    let faulty = Faulty::new(Arc::new(InMemory::new()), move |op, key| {
        races += u32::from(op == Op::Create && key.ends_with("raced"));
        if op == Op::Create && key.ends_with("raced") && races <= 3 {
            Verdict::IgnoreCondition
        } else {
            Verdict::Pass
        }
    });
    let error = open(faulty, 1).await.probe().await.unwrap_err();
    assert!(
        matches!(error, ProbeError::Race { winners: 3, .. }),
        "{error}"
    );

    for (op, verdict) in [
        (Op::Get, Verdict::Flip),
        (Op::Put, Verdict::Fail(Error::Denied)),
        (Op::Delete, Verdict::Fail(Error::Denied)),
        (Op::List, Verdict::Fail(Error::Denied)),
    ] {
        let inner = Arc::new(InMemory::new());
        let faulty = Faulty::new(inner, move |asked, key| {
            if asked == op && key.contains("probe") {
                verdict
            } else {
                Verdict::Pass
            }
        });
        let error = open(faulty, 1).await.probe().await.unwrap_err();
        assert!(
            error.is_permanent() && error.to_string().starts_with("the store failed its probe"),
            "{error}"
        );
    }
    let faulty = Faulty::new(Arc::new(InMemory::new()), |_, key| {
        if key.contains("probe") {
            Verdict::Fail(Error::Throttled)
        } else {
            Verdict::Pass
        }
    });
    assert!(
        !open(faulty, 1)
            .await
            .probe()
            .await
            .unwrap_err()
            .is_permanent()
    );
}

/// What one node was told of a commit.
#[derive(Debug)]
enum Told {
    Committed(u64),
    Fenced,
    Unknown,
    Failed,
}

/// A node that takes the job over now and then, commits, and is told what became of it.
async fn node(job: Job, seed: u64, marker: u64, steps: u32) -> Vec<(u64, Told)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut epoch = None;
    let mut told = Vec::new();
    for step in 0..steps {
        let Some(current) = epoch else {
            epoch = job
                .take_over(&format!("node {marker}"), NOW)
                .await
                .ok()
                .map(|taken| taken.epoch);
            continue;
        };
        let tag = marker * 1000 + u64::from(step);
        let mut body = Image::default().body();
        body.timings.figures.insert("tag".into(), tag);
        let Ok(writer) = job.begin(current).await else {
            continue;
        };
        let outcome = match writer.commit(body, NOW).await {
            Ok(commit) => Told::Committed(commit.number.0),
            Err(CommitError::Fenced { .. }) => {
                // Most nodes go away then; this one comes back.
                if rng.random_bool(0.3) {
                    epoch = None;
                }
                Told::Fenced
            }
            Err(CommitError::Unknown(_)) => Told::Unknown,
            Err(_) => Told::Failed,
        };
        told.push((tag, outcome));
    }
    told
}

fn split_brain(seed: u64) {
    let runtime = runtime();
    runtime.block_on(async {
        let inner = Arc::new(InMemory::new());
        let mut tasks = Vec::new();
        for marker in 0..3 {
            let mut rng = ChaCha8Rng::seed_from_u64(seed ^ (marker << 32));
            let faulty = Faulty::yielding(inner.clone(), move |_, _| {
                let verdict = match rng.random_range(0..40) {
                    0 => Verdict::Fail(Error::Timeout),
                    1 | 2 => Verdict::Lose,
                    _ => Verdict::Pass,
                };
                (verdict, rng.random_range(0..8))
            });
            let mut few = options(seed * 10 + marker);
            few.retry.retries = 1;
            let store = loop {
                if let Ok(store) = Store::from_object_store(faulty.clone(), "p", few.clone()).await
                {
                    break store;
                }
            };
            tasks.push(tokio::spawn(node(
                store.job(name("job")),
                seed + marker,
                marker,
                8,
            )));
        }
        let mut told = Vec::new();
        for task in tasks {
            told.extend(task.await.unwrap());
        }

        // What is there, seen by one who was not part of it.
        let job = Store::from_object_store(inner.clone(), "p", options(seed * 10 + 9))
            .await
            .unwrap()
            .job(name("job"));
        let records = job.records().await.unwrap();
        let mut epoch = Epoch(0);
        let mut visible: HashMap<u64, u64> = HashMap::new();
        for (at, (number, record)) in records.into_iter().enumerate() {
            assert_eq!(number, at as u64 + 1, "the log has no gaps");
            let record = record.unwrap();
            match record.kind {
                RecordKind::TakenOver { .. } => {
                    assert_eq!(record.epoch, Epoch(number));
                    epoch = record.epoch;
                }
                RecordKind::Checkpoint { .. } => {
                    assert_eq!(record.epoch, epoch, "only the holder writes");
                    let manifest = job
                        .manifest(phos_storage::CheckpointNumber(number))
                        .await
                        .unwrap();
                    let tag = manifest.body.timings.figures["tag"];
                    assert_eq!(
                        visible.insert(tag, number),
                        None,
                        "each commit at most once"
                    );
                }
                RecordKind::Completed { .. } | RecordKind::Collected { .. } => {
                    panic!("nobody said so")
                }
            }
        }
        for (tag, outcome) in told {
            match outcome {
                Told::Committed(number) => assert_eq!(
                    visible.get(&tag),
                    Some(&number),
                    "what was committed is there"
                ),
                Told::Fenced | Told::Failed => assert_eq!(
                    visible.get(&tag),
                    None,
                    "what was refused is not: {outcome:?}"
                ),
                Told::Unknown => {}
            }
        }
    });
}

#[test]
fn of_nodes_that_all_believe_to_own_the_job_one_history_comes_out() {
    for seed in 0..400 {
        split_brain(seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Images of random chunks, one after the other, over a store that loses answers and damages reads now and then.
    #[test]
    fn images_survive_a_store_that_fails_now_and_then(
        seed in any::<u64>(), versions in prop::collection::vec(prop::collection::vec((0..12u64, 1..30_000usize), 0..12), 1..5),
    ) {
        runtime().block_on(async {
            let inner = Arc::new(InMemory::new());
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let faulty = Faulty::new(inner, move |op, _| match (op, rng.random_range(0..30)) {
                (Op::Get, 0) => Verdict::Fail(Error::Reset),
                (_, 1) => Verdict::Fail(Error::Server500),
                (Op::Put | Op::Create | Op::Delete, 2) => Verdict::Lose,
                _ => Verdict::Pass,
            });
            let mut many = options(1);
            many.retry.retries = 8;
            let job = Store::from_object_store(faulty, "p", many).await.unwrap().job(name("job"));
            let epoch = job.take_over("node", NOW).await.unwrap().epoch;
            let mut images = Vec::new();
            for chunks in versions {
                // Equal numbers make equal beginnings, zero makes zeros.
                let chunk = |(n, length)| if n == 0 { vec![0; length].into() } else { noise(n, length) };
                let image = Image::of(chunks.into_iter().map(chunk).collect());
                let commit = image.commit(&job, epoch).await.unwrap();
                images.push((commit.number, image));
            }
            for (number, image) in images {
                let manifest = job.manifest(number).await.unwrap();
                assert_eq!(Image::read(&job, &manifest).await.unwrap(), image);
            }
        });
    }
}

/// No record is ever deleted by phos-ft: one that is gone may have been a checkpoint's.
#[tokio::test]
async fn a_record_that_is_missing_in_the_middle_is_damage_and_one_at_the_end_is_not() {
    let inner = Arc::new(InMemory::new());
    let job = open(inner.clone(), 1).await.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    for seed in 1..=3 {
        image(seed).commit(&job, epoch).await.unwrap();
    }
    for (gone, checkpoints, damaged) in [(3_u64, vec![4, 2], vec![3]), (4, vec![2], vec![])] {
        let record = format!("/head/{gone:020}");
        let mut all = keys(&*inner).await.into_iter();
        let key = all.find(|key| key.ends_with(&record)).unwrap();
        inner.delete(&Path::from(key)).await.unwrap();
        let job = open(inner.clone(), 2).await.job(name("job"));
        let listed = job.list().await.unwrap();
        let numbers = |all: &[phos_storage::SkippedCheckpoint]| -> Vec<u64> {
            all.iter().map(|one| one.number.0).collect()
        };
        let found: Vec<u64> = listed.checkpoints.iter().map(|c| c.number.0).collect();
        assert_eq!(
            (found, numbers(&listed.damaged)),
            (checkpoints.clone(), damaged.clone())
        );
        assert!(
            listed
                .damaged
                .iter()
                .all(|one| one.reason.contains("missing"))
        );
        let options = VerifyOptions {
            deep: false,
            quarantine: false,
        };
        let verified = job.verify(options, NOW, &|_| {}).await.unwrap();
        assert_eq!(numbers(&verified.damaged), damaged);
        // What survives is restored.
        let newest = job.newest_restorable().await.unwrap();
        assert_eq!(newest.manifest.unwrap().number.0, checkpoints[0]);
        assert_eq!(newest.skipped, []);
    }
}

/// Who may write to the store may put anything there. Nothing of it makes anybody wait, reckon wrongly or read elsewhere.
#[tokio::test]
async fn what_is_no_file_of_ours_in_a_directory_is_damage() {
    let dir = tempfile::tempdir().unwrap();
    let address = dir.path().to_str().unwrap();
    let open = || async {
        let store = Store::open(address, options(1)).await.unwrap();
        store.initialise().await.unwrap();
        store.job(name("job"))
    };
    let job = open().await;
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    for seed in 1..=2 {
        image(seed).commit(&job, epoch).await.unwrap();
    }
    let newest = job.newest_restorable().await.unwrap().manifest.unwrap();
    let at = |key: &str| dir.path().join("jobs/job").join(key);
    let pipe = |key: &str| {
        let mode = rustix::fs::Mode::RWXU;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, at(key), kind, mode, 0).unwrap();
    };
    std::fs::write(at(&format!("head/{}", u64::MAX)), "x").unwrap();
    std::os::unix::fs::symlink("/dev/zero", at("head/00000000000000000009")).unwrap();
    pipe("head/00000000000000000008");
    let job = open().await;
    let listed = job.list().await.unwrap();
    assert_eq!((listed.checkpoints.len(), listed.damaged.len()), (2, 0));
    // The greatest number that a record can have: none comes after it, and who takes the job over hears what to do.
    let last = at(&format!("head/{:020}", 1_000_000_000_000_000_u64));
    std::fs::write(&last, "x").unwrap();
    let error = open().await.take_over("other", NOW).await.unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("delete jobs/job/head/"),
        "{error}"
    );
    std::fs::remove_file(&last).unwrap();
    open().await.take_over("other", NOW).await.unwrap();

    // A pack of the newest becomes a pipe, and then a link to where its bytes are.
    let pack = newest.packs[0].id.to_string();
    let found = |below: &str| {
        let mut left = vec![at(below)];
        while let Some(directory) = left.pop() {
            for entry in std::fs::read_dir(directory).unwrap().flatten() {
                match entry.path() {
                    path if path.is_dir() => left.push(path),
                    path if path.ends_with(&pack) => return path,
                    _ => {}
                }
            }
        }
        panic!("no pack {pack}")
    };
    let path = found("packs");
    let kept = dir.path().join("kept");
    std::fs::rename(&path, &kept).unwrap();
    let key = path
        .strip_prefix(at(""))
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    for linked in [false, true] {
        match linked {
            false => pipe(&key),
            true => std::os::unix::fs::symlink(&kept, &path).unwrap(),
        }
        let job = open().await;
        let error = Image::read(&job, &newest).await.unwrap_err();
        assert!(error.damaged_pack().is_some(), "{error}");
        let options = VerifyOptions {
            deep: true,
            quarantine: false,
        };
        let verified = job.verify(options, NOW, &|_| {}).await.unwrap();
        assert_eq!(verified.damaged_packs.len(), 1, "{:?}", verified.damaged);
        let restorable = job.newest_restorable().await.unwrap();
        assert_eq!(restorable.manifest.unwrap().number.0, 2);
        std::fs::remove_file(&path).unwrap();
    }
}

/// Who may write to a store could lead what is written and deleted there to any place that phos-ft may write to.
#[tokio::test]
async fn a_link_in_a_directory_leads_no_checkpoint_and_no_collection_elsewhere() {
    let dir = tempfile::tempdir().unwrap();
    let (root, outside) = (dir.path().join("store"), dir.path().join("outside"));
    let job = async |seed| {
        let store = Store::open(root.to_str().unwrap(), options(seed)).await;
        store.unwrap().job(name("job"))
    };
    let first = job(1).await;
    let epoch = first.take_over("node", NOW).await.unwrap().epoch;
    image(1).commit(&first, epoch).await.unwrap();
    let packs = root.join("jobs/job/packs");
    std::fs::rename(&packs, &outside).unwrap();
    std::os::unix::fs::symlink(&outside, &packs).unwrap();
    let names = || {
        let entries = std::fs::read_dir(&outside).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    let before = names();
    let refused = |said: String| {
        let named = "jobs/job/packs is a symbolic link, which is not followed: put a directory in its place";
        assert!(said.contains(named), "{said}");
    };
    refused(
        image(2)
            .commit(&first, epoch)
            .await
            .unwrap_err()
            .to_string(),
    );
    let keep = |_: &[phos_storage::Candidate]| std::collections::BTreeSet::new();
    let options = phos_storage::CollectOptions::default();
    let other = job(2).await;
    refused(
        other
            .collect(&keep, options, NOW)
            .await
            .unwrap_err()
            .to_string(),
    );
    assert_eq!(names(), before);
    // The remedy, and all goes on.
    std::fs::remove_file(&packs).unwrap();
    std::fs::rename(&outside, &packs).unwrap();
    image(2).commit(&first, epoch).await.unwrap();
    other.collect(&keep, options, NOW).await.unwrap();
    let newest = other.newest_restorable().await.unwrap().manifest.unwrap();
    assert_eq!(Image::read(&other, &newest).await.unwrap(), image(2));
}
