//! What the clouds' own clients make of failures, down to the HTTP request: what is transient is overcome, what is
//! permanent is said with its remedy, no wrong byte is ever read, and nothing that was committed is lost.
//!
//! The clients of S3, Google Cloud Storage and Azure are the real ones; their servers are in this process
//! (`common/cloud.rs`); at the end, that of S3 is a real one, behind a connection that fails.

use std::collections::{BTreeSet, HashSet};
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::common::cloud::{Cloud, Fault, Flavour, Op};
use crate::common::{Image, NOW, name, noise, options};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::HttpErrorKind;
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use phos_storage::s3::S3Options;
use phos_storage::{
    Candidate, CheckpointNumber, CollectOptions, CommitError, Epoch, FaultKind, Job, ProbeError,
    RetryPolicy, Store, StoreOptions, UnixMillis, VerifyOptions,
};
use rstest::rstest;

const ALL: [Flavour; 3] = [Flavour::S3, Flavour::Gcs, Flavour::Azure];

/// So many retries by the client itself, without waiting.
fn client(retries: usize) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(1),
            max_backoff: Duration::from_millis(2),
            base: 2.0,
        },
        max_retries: retries,
        retry_timeout: Duration::from_secs(60),
    }
}

/// Some packs go up at once, those of large images in parts.
fn store_options(seed: u64) -> StoreOptions {
    StoreOptions {
        // The beginning, a part and the end of an upload each fail once.
        retry: RetryPolicy::immediate(4),
        part_size: 128 << 10,
        pack_size: 512 << 10,
        ..options(seed)
    }
}

fn image(version: u64) -> Image {
    let small = (0..4).map(|i| noise(i, 20_000));
    let new = (0..10).map(|i| noise(1000 * version + i, 50_000));
    Image::of(small.chain(new).collect())
}

/// A store whose faults can be switched on.
struct Setting {
    cloud: Arc<Cloud>,
    store: Store,
    job: Job,
    epoch: Epoch,
    on: Arc<AtomicBool>,
}

impl Setting {
    async fn new(
        flavour: Flavour,
        retries: usize,
        mut hook: impl FnMut(Op, &str) -> Option<Fault> + Send + 'static,
    ) -> Self {
        let on = Arc::new(AtomicBool::new(false));
        let switch = on.clone();
        let cloud = Cloud::faulty(flavour, move |op, key| {
            switch
                .load(Ordering::SeqCst)
                .then(|| hook(op, key))
                .flatten()
        });
        let raw = cloud.store(client(retries));
        let store = Store::from_object_store(raw, "p", store_options(1))
            .await
            .unwrap();
        store.probe().await.unwrap();
        store.initialise().await.unwrap();
        let job = store.job(name("job"));
        let epoch = job.take_over("node", NOW).await.unwrap().epoch;
        Self {
            cloud,
            store,
            job,
            epoch,
            on,
        }
    }

    fn faults(&self, on: bool) {
        self.on.store(on, Ordering::SeqCst);
    }

    /// Another process, which knows nothing.
    async fn other(&self, seed: u64) -> Job {
        let raw = self.cloud.store(client(0));
        let store = Store::from_object_store(raw, "p", store_options(seed)).await;
        store.unwrap().job(name("job"))
    }

    /// The newest checkpoint is whole and is this one.
    async fn newest_is(&self, version: u64) {
        let job = self.other(99).await;
        let found = job.newest_restorable().await.unwrap();
        assert_eq!(found.skipped, []);
        let read = Image::read(&job, &found.manifest.unwrap()).await.unwrap();
        assert!(read == image(version), "{:?}", self.cloud);
        let deep = VerifyOptions {
            deep: true,
            quarantine: false,
        };
        let verified = job.verify(deep, NOW, &|_| {}).await.unwrap();
        assert!(verified.is_sound(), "{:?} {verified:?}", self.cloud);
    }
}

fn keep_newest(all: &[Candidate]) -> BTreeSet<CheckpointNumber> {
    all.iter().rev().take(1).map(|c| c.number).collect()
}

#[rstest]
#[case::internal_error(Fault::Answer(500, "<Code>InternalError</Code>"))]
#[case::slow_down(Fault::Answer(503, "<Code>SlowDown</Code>"))]
#[case::too_many_requests(Fault::Answer(429, ""))]
#[case::request_timeout(Fault::Answer(408, ""))]
#[case::no_connection(Fault::Broken(HttpErrorKind::Connect))]
#[case::reset(Fault::Broken(HttpErrorKind::Interrupted))]
#[case::time_out(Fault::Broken(HttpErrorKind::Timeout))]
#[case::reset_after_it_was_done(Fault::Lost(HttpErrorKind::Interrupted))]
#[case::time_out_after_it_was_done(Fault::Lost(HttpErrorKind::Timeout))]
#[tokio::test]
async fn the_first_request_of_each_kind_on_each_key_fails(
    #[case] fault: Fault,
    #[values(0, 2)] retries: usize,
) {
    for flavour in ALL {
        let mut failed = HashSet::new();
        let met = Arc::new(Mutex::new(HashSet::new()));
        let kinds = met.clone();
        let here = Setting::new(flavour, retries, move |op, key| {
            let first = failed.insert(format!("{op:?} {key}"));
            if first {
                kinds.lock().unwrap().insert(format!("{op:?}"));
            }
            first.then_some(fault)
        })
        .await;
        here.faults(true);
        for version in 1..4 {
            let done = image(version).commit(&here.job, here.epoch).await;
            let done = done.unwrap_or_else(|error| panic!("{flavour:?}: {error}"));
            let read = Image::read(&here.job, &done.manifest).await.unwrap();
            assert!(read == image(version), "{flavour:?}");
        }
        let options = CollectOptions {
            epoch: Some(here.epoch),
            ..CollectOptions::default()
        };
        let swept = here.job.collect(&keep_newest, options, NOW).await.unwrap();
        assert!(swept.packs > 0, "{flavour:?}");
        let listed = here.job.list().await.unwrap();
        assert_eq!(listed.checkpoints.len(), 1, "{flavour:?}: each once");
        here.newest_is(3).await;
        // Azure has no beginning of an upload in parts.
        let all = if flavour == Flavour::Azure { 7 } else { 8 };
        let met = met.lock().unwrap();
        assert_eq!(met.len(), all, "{flavour:?}: {met:?}");
    }
}

#[rstest]
#[case::denied(
    403,
    "<Code>AccessDenied</Code>",
    FaultKind::Denied,
    "permission denied"
)]
#[case::no_credentials(401, "", FaultKind::Unauthenticated, "renew them")]
#[case::expired_on_s3(
    400,
    "<Code>ExpiredToken</Code>",
    FaultKind::Unauthenticated,
    "renew them"
)]
#[case::expired_on_azure(
    403,
    "<Code>AuthenticationFailed</Code>",
    FaultKind::Unauthenticated,
    "renew them"
)]
#[case::full(
    507,
    "<Code>XMinioStorageFull</Code>",
    FaultKind::NoSpace,
    "no space left"
)]
#[case::quota(403, "<Code>QuotaExceeded</Code>", FaultKind::NoSpace, "no space left")]
#[case::clock(
    403,
    "<Code>RequestTimeTooSkewed</Code>",
    FaultKind::Clock,
    "set the clock"
)]
#[tokio::test]
async fn what_is_permanent_is_said_at_once_and_costs_nothing_that_was_committed(
    #[case] status: u16,
    #[case] text: &'static str,
    #[case] kind: FaultKind,
    #[case] remedy: &str,
    #[values(Op::Put, Op::Part, Op::Create, Op::Get, Op::List)] op: Op,
) {
    for flavour in ALL {
        let asked = Arc::new(AtomicUsize::new(0));
        let counter = asked.clone();
        let here = Setting::new(flavour, 0, move |found, _| {
            (found == op).then(|| {
                counter.fetch_add(1, Ordering::SeqCst);
                Fault::Answer(status, text)
            })
        })
        .await;
        image(1).commit(&here.job, here.epoch).await.unwrap();
        here.faults(true);
        let said = if op == Op::Get {
            let error = here.job.newest_restorable().await.unwrap_err();
            assert!(error.is_permanent(), "{flavour:?}: {error}");
            error.to_string()
        } else {
            match here.job.begin(here.epoch).await {
                Err(error) => {
                    assert!(error.is_permanent(), "{flavour:?}: {error}");
                    error.to_string()
                }
                Ok(writer) => {
                    let _ = image(2).put(&writer).await;
                    let error = writer.commit(image(2).body(), NOW).await.unwrap_err();
                    assert!(error.is_permanent(), "{flavour:?}: {error}");
                    if let CommitError::Upload(fault) | CommitError::Store(fault) = &error {
                        assert_eq!(fault.kind(), kind, "{flavour:?}: {error}");
                    }
                    error.to_string()
                }
            }
        };
        assert!(said.contains(remedy), "{flavour:?} {op:?}: {said}");
        // Those that were under way at once, each asked once; and what is cleaned up.
        let asked = asked.load(Ordering::SeqCst);
        assert!(asked <= 12, "{flavour:?} {op:?}: {asked} requests");
        here.faults(false);
        here.newest_is(1).await;
        image(3).commit(&here.job, here.epoch).await.unwrap();
        here.newest_is(3).await;
    }
}

#[rstest]
#[case::broken(Fault::BodyBroken)]
#[case::short(Fault::BodyShort)]
#[case::flipped(Fault::BodyFlipped)]
#[tokio::test]
async fn what_is_damaged_on_the_way_is_read_again(
    #[case] fault: Fault,
    #[values("/head/", "/manifests/", "/packs/")] below: &'static str,
    #[values(0, 2)] retries: usize,
) {
    for flavour in ALL {
        let mut damaged = HashSet::new();
        let here = Setting::new(flavour, retries, move |op, key| {
            let hit = op == Op::Get && key.contains(below) && damaged.insert(key.to_owned());
            hit.then_some(fault)
        })
        .await;
        image(1).commit(&here.job, here.epoch).await.unwrap();
        image(2).commit(&here.job, here.epoch).await.unwrap();
        here.faults(true);
        let found = here.job.newest_restorable().await.unwrap();
        assert_eq!(found.skipped, [], "{flavour:?}");
        let read = Image::read(&here.job, &found.manifest.unwrap()).await;
        assert!(read.unwrap() == image(2), "{flavour:?}");
    }
}

#[rstest]
#[case::short(Fault::BodyShort)]
#[case::flipped(Fault::BodyFlipped)]
#[tokio::test]
async fn damage_that_stays_is_named_and_the_checkpoint_before_is_used(#[case] fault: Fault) {
    for flavour in ALL {
        let bad: Arc<Mutex<String>> = Arc::default();
        let which = bad.clone();
        let here = Setting::new(flavour, 1, move |op, key| {
            let bad = which.lock().unwrap();
            (op == Op::Get && !bad.is_empty() && key.contains(bad.as_str())).then_some(fault)
        })
        .await;
        let first = image(1).commit(&here.job, here.epoch).await.unwrap();
        let second = image(2).commit(&here.job, here.epoch).await.unwrap();
        here.faults(true);

        let own = (second.manifest.packs.iter()).find(|pack| !first.manifest.packs.contains(pack));
        *bad.lock().unwrap() = own.unwrap().id.to_string();
        let error = Image::read(&here.job, &second.manifest).await.unwrap_err();
        let pack = error.damaged_pack().unwrap();
        let reason = error.to_string();
        here.job.quarantine_pack(&pack, &reason, NOW).await.unwrap();
        let found = here.job.newest_restorable().await.unwrap();
        assert_eq!(found.skipped.len(), 1, "{flavour:?}");
        let manifest = found.manifest.unwrap();
        let read = Image::read(&here.job, &manifest).await.unwrap();
        assert!(read == image(1), "{flavour:?}");

        let third = image(3).commit(&here.job, here.epoch).await.unwrap();
        *bad.lock().unwrap() = format!("/manifests/{:020}", third.number.0);
        let found = here.job.newest_restorable().await.unwrap();
        assert_eq!(found.skipped[0].number, third.number, "{flavour:?}");
        assert_eq!(found.manifest.unwrap().number, manifest.number);
    }
}

#[tokio::test]
async fn a_store_that_ignores_conditions_or_denies_deletions_is_refused_by_the_probe() {
    for flavour in ALL {
        let here = Setting::new(flavour, 0, |op, _| {
            (op == Op::Create).then_some(Fault::ConditionIgnored)
        })
        .await;
        here.faults(true);
        let error = here.store.probe().await.unwrap_err();
        assert!(
            matches!(error, ProbeError::ConditionIgnored { .. }) && error.is_permanent(),
            "{flavour:?}: {error}"
        );

        let mut races = 0;
        let here = Setting::new(flavour, 0, move |op, key| {
            let raced = op == Op::Create && key.ends_with("/raced");
            races += u32::from(raced);
            (raced && races <= 3).then_some(Fault::ConditionIgnored)
        })
        .await;
        here.faults(true);
        let error = here.store.probe().await.unwrap_err();
        assert!(
            matches!(error, ProbeError::Race { .. }),
            "{flavour:?}: {error}"
        );

        let here = Setting::new(flavour, 0, |op, _| {
            (op == Op::Delete).then_some(Fault::DeletionDenied)
        })
        .await;
        here.faults(true);
        let error = here.store.probe().await.unwrap_err();
        let said = error.to_string();
        assert!(
            error.is_permanent() && said.contains("permission denied"),
            "{flavour:?}: {said}"
        );
    }
}

/// A store where objects are written with a storage class and a key.
async fn written_with(cloud: &Arc<Cloud>, class: Option<&str>, key: Option<&str>) -> Store {
    let options = StoreOptions {
        s3: S3Options {
            storage_class: class.map(|class| class.parse().unwrap()),
            sse_kms_key: key.map(str::to_owned),
            ..S3Options::default()
        },
        ..store_options(1)
    };
    let raw = cloud.store(client(0));
    Store::from_object_store(raw, "p", options).await.unwrap()
}

#[tokio::test]
async fn the_probe_says_which_option_the_store_does_not_take() {
    for (op, text, class, key, said) in [
        (
            Op::Begin,
            "<Code>InvalidStorageClass</Code>",
            Some("standard_ia"),
            None,
            "--s3-storage-class STANDARD_IA:",
        ),
        (
            Op::Put,
            "<Code>KMS.NotFoundException</Code>",
            Some("standard_ia"),
            Some("alias/k"),
            "--s3-sse-kms-key alias/k:",
        ),
    ] {
        let cloud = Cloud::faulty(Flavour::S3, move |asked, key| {
            let hit = asked == op && key.contains("/probe/");
            hit.then_some(Fault::Answer(400, text))
        });
        let store = written_with(&cloud, class, key).await;
        let error = store.probe().await.unwrap_err();
        assert!(
            matches!(error, ProbeError::Refused { .. }) && error.is_permanent(),
            "{error}"
        );
        let found = error.to_string();
        assert!(found.contains(&format!("with {said}")), "{found}");
        assert_eq!(cloud.keys(), [""; 0]);
    }
    // An object that looks like a pack is written where packs are said anything of.
    for (class, begun) in [(Some("standard_ia"), 1), (None, 0)] {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = count.clone();
        let cloud = Cloud::faulty(Flavour::S3, move |op, _| {
            counter.fetch_add(usize::from(op == Op::Begin), Ordering::SeqCst);
            None
        });
        let store = written_with(&cloud, class, None).await;
        store.probe().await.unwrap();
        assert_eq!(count.load(Ordering::SeqCst), begun);
        assert_eq!(cloud.keys(), [""; 0]);
    }
}

#[tokio::test]
async fn whose_credentials_expire_in_the_middle_of_an_upload_goes_on_with_it_later() {
    for flavour in ALL {
        let parts = Arc::new(AtomicUsize::new(0));
        let count = parts.clone();
        let here = Setting::new(flavour, 0, move |op, _| {
            let after = op == Op::Part && count.fetch_add(1, Ordering::SeqCst) >= 14;
            after.then_some(Fault::Answer(401, "expired"))
        })
        .await;
        here.faults(true);
        let large = Image::of((0..60).map(|i| noise(i, 50_000)).collect());
        let error = large.commit(&here.job, here.epoch).await.unwrap_err();
        assert!(error.to_string().contains("renew them"), "{error}");
        here.faults(false);
        let done = large.commit(&here.job, here.epoch).await.unwrap();
        assert!(done.resumed.chunks > 0, "{flavour:?}: {:?}", done.resumed);
        let read = Image::read(&here.job, &done.manifest).await.unwrap();
        assert!(read == large, "{flavour:?}");
    }
}

/// No order of the history, and nothing that is kept or given up, comes from a clock.
#[tokio::test]
async fn a_clock_that_jumps_changes_no_history() {
    const YEARS: u64 = 10 * 365 * 24 * 3_600_000;
    for flavour in ALL {
        let here = Setting::new(flavour, 0, |_, _| None).await;
        let mut numbers = Vec::new();
        for (version, now) in [(1, NOW.0), (2, NOW.0 + YEARS), (3, 0), (4, NOW.0)] {
            let writer = here.job.begin(here.epoch).await.unwrap();
            image(version).put(&writer).await.unwrap();
            let done = writer.commit(image(version).body(), UnixMillis(now)).await;
            numbers.push(done.unwrap().number);
            here.newest_is(version).await;
        }
        let listed = here.job.list().await.unwrap();
        let found: Vec<_> = listed.checkpoints.iter().rev().map(|c| c.number).collect();
        assert_eq!(found, numbers, "{flavour:?}");
        // By a node whose clock is years behind.
        let other = here.other(7).await;
        let epoch = other.take_over("other", UnixMillis(5)).await.unwrap().epoch;
        let fenced = image(5).commit(&here.job, here.epoch).await.unwrap_err();
        assert!(fenced.is_fenced(), "{fenced}");
        let options = CollectOptions {
            epoch: Some(epoch),
            ..CollectOptions::default()
        };
        let done = other.collect(&keep_newest, options, UnixMillis(1)).await;
        assert_eq!(done.unwrap().removed.len(), 3, "{flavour:?}");
        here.newest_is(4).await;
    }
}

/// How a connection fails once it carried so much of an answer.
#[derive(Debug, Clone, Copy)]
enum Failing {
    /// Nothing more comes, and it stays open.
    Stalls,
    /// It is closed.
    Closes,
}

/// A way to a server on which answers fail, as often as is said.
struct Line {
    address: SocketAddr,
    /// How often yet.
    times: Arc<AtomicUsize>,
}

/// Bytes after which an answer fails: more than small requests have.
const CARRIED: usize = 60_000;

impl Line {
    fn to(server: &str, failing: Failing) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let line = Self {
            address: listener.local_addr().unwrap(),
            times: Arc::default(),
        };
        let (server, times) = (server.to_owned(), line.times.clone());
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let upstream = TcpStream::connect(&server).unwrap();
                let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                let carried = Arc::new(AtomicUsize::new(0));
                let (reset, times) = (carried.clone(), times.clone());
                std::thread::spawn(move || {
                    carry(from, to, |_| {
                        // A new request, or more of one.
                        reset.store(0, Ordering::SeqCst);
                        None
                    });
                });
                std::thread::spawn(move || {
                    carry(upstream, client, |length| {
                        let before = carried.fetch_add(length, Ordering::SeqCst);
                        let fails = before + length > CARRIED
                            && times
                                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| {
                                    n.checked_sub(1)
                                })
                                .is_ok();
                        fails.then_some(failing)
                    });
                });
            }
        });
        line
    }
}

/// The S3 server of the tests by way of a line; each request has so long.
fn through(line: SocketAddr, patience: Duration) -> AmazonS3 {
    AmazonS3Builder::new()
        .with_endpoint(format!("http://{line}"))
        .with_bucket_name("phos-test")
        .with_region("us-east-1")
        .with_access_key_id("test")
        .with_secret_access_key("test")
        .with_client_options(
            ClientOptions::new()
                .with_allow_http(true)
                .with_timeout(patience),
        )
        .with_retry(client(0))
        .build()
        .unwrap()
}

/// Carries bytes until either side closes, or it is said to fail.
fn carry(mut from: TcpStream, mut to: TcpStream, mut fails: impl FnMut(usize) -> Option<Failing>) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        match fails(length) {
            None if to.write_all(&buffer[..length]).is_ok() => continue,
            // Until the client gives up.
            Some(Failing::Stalls) => while matches!(to.read(&mut buffer), Ok(1..)) {},
            _ => {}
        }
        break;
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

#[rstest]
#[tokio::test(flavor = "multi_thread")]
async fn a_read_that_stalls_or_breaks_off_is_asked_for_again(
    #[values(Failing::Stalls, Failing::Closes)] failing: Failing,
) {
    let endpoint = crate::common::s3_server::s3_endpoint();
    let line = Line::to(endpoint.trim_start_matches("http://"), failing);
    let raw = through(line.address, Duration::from_millis(1500));
    let prefix = format!("line-{}-{failing:?}", std::process::id());
    let whole = StoreOptions {
        // A real server takes no parts below 5 MiB.
        part_size: 5 << 20,
        ..store_options(1)
    };
    let store = Store::from_object_store(Arc::new(raw), &prefix, whole);
    let job = store.await.unwrap().job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let done = image(1).commit(&job, epoch).await.unwrap();

    line.times.store(1, Ordering::SeqCst);
    let read = Image::read(&job, &done.manifest).await.unwrap();
    assert!(read == image(1));
    assert_eq!(line.times.load(Ordering::SeqCst), 0, "it did not fail");

    line.times.store(usize::MAX, Ordering::SeqCst);
    let error = Image::read(&job, &done.manifest).await.unwrap_err();
    assert!(
        !error.is_permanent() && error.damaged_pack().is_none(),
        "no damage, and no reason for an older checkpoint: {error}"
    );
    line.times.store(0, Ordering::SeqCst);
    let read = Image::read(&job, &done.manifest).await.unwrap();
    assert!(read == image(1));
}

/// A way to a server that carries so many bytes of requests a second, of all connections together.
struct SlowLine {
    address: SocketAddr,
    /// Bytes of requests so far.
    carried: Arc<AtomicUsize>,
}

impl SlowLine {
    fn to(server: &str, bytes_per_second: u32) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let line = Self {
            address: listener.local_addr().unwrap(),
            carried: Arc::default(),
        };
        let (server, carried) = (server.to_owned(), line.carried.clone());
        let free_at = Arc::new(Mutex::new(Instant::now()));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let upstream = TcpStream::connect(&server).unwrap();
                let (from, to) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
                let (free_at, carried) = (free_at.clone(), carried.clone());
                std::thread::spawn(move || {
                    carry(from, to, |length| {
                        let lasts = Duration::from_secs(length as u64) / bytes_per_second;
                        let turn = {
                            let mut free_at = free_at.lock().unwrap();
                            *free_at = (*free_at).max(Instant::now()) + lasts;
                            *free_at
                        };
                        std::thread::sleep(turn.saturating_duration_since(Instant::now()));
                        carried.fetch_add(length, Ordering::SeqCst);
                        None
                    });
                });
                std::thread::spawn(move || carry(upstream, client, |_| None));
            }
        });
        line
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn over_a_slow_link_a_pack_goes_up_in_one_part_after_the_other() {
    const PART: usize = 5 << 20;
    // One part takes less than a third of the time that a request has; four at once take more.
    let (bytes_per_second, patience) = (8 << 20, Duration::from_secs(2));
    let endpoint = crate::common::s3_server::s3_endpoint();
    let line = SlowLine::to(endpoint.trim_start_matches("http://"), bytes_per_second);
    let raw = through(line.address, patience);
    let slow = StoreOptions {
        retry: RetryPolicy {
            request_timeout: patience,
            ..RetryPolicy::immediate(4)
        },
        part_size: PART,
        pack_size: 64 << 20,
        ..options(1)
    };
    let prefix = format!("slow-{}", std::process::id());
    let store = Store::from_object_store(Arc::new(raw), &prefix, slow);
    let job = store.await.unwrap().job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let image = Image::of((0..20).map(|i| noise(i, 1 << 20)).collect());
    let done = image.commit(&job, epoch).await.unwrap();
    assert_eq!(done.manifest.packs.len(), 1);
    assert!(
        line.carried.load(Ordering::SeqCst) > 6 * PART,
        "it went up at the first attempt"
    );
    let read = Image::read(&job, &done.manifest).await.unwrap();
    assert!(read == image);
}
