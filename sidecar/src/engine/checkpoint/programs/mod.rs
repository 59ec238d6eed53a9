//! Checkpoints of programs that nobody wrote, each from a seed: what is stored is what the job's memory held while it was quiet, bit for bit, or
//! the checkpoint has failed.
//!
//! The engine is the one that users have, with its store in a directory, its conversation over a socket, and its threads. The [`agent`] and the [`job`]
//! behind it are a thread of the test's, which knows what the job held; GPUs are files ([`phos_gpu::in_memory`]). Here one checkpoint takes ten ms, and not a
//! second as with processes and CRIU (`integration-tests/tests/e2e/programs.rs`), so that there can be a hundred thousand of them.

mod agent;
mod job;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use phos_gpu::in_memory::InMemory;
use phos_gpu::{GpuInfo, Platform};
use phos_policies::host_buffer::Bounds;
use phos_policies::restart::RestartBudget;
use phos_policies::retention::Retention;
use phos_policies::schedule::Trigger;
use phos_protocol::types::{AllocationKey, Device, MemberId};
use phos_storage::{CheckpointNumber, JobName};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};

use self::agent::{Agent, Quiet};
use self::job::{Content, Habit, Job};
use crate::engine::memory::gpus::Gpus;
use crate::engine::session::link::Link;
use crate::engine::session::{Session, Stop};
use crate::engine::{Config, CopyBeside, Engine, Interval, Start, setup};
use crate::report::status::CheckpointReport;
use crate::{observe, preemption};

/// How much each GPU has, in bytes: what is kept free of snapshots is a part of it.
const TOTAL: u64 = 64 << 20;
/// Pinned host memory: the least that there is.
const HOST: u64 = 64 << 20;

/// What became of checkpoints.
#[derive(Debug, Default, PartialEq, Eq)]
struct Seen {
    stored: u64,
    /// Of these, how many had memory copied while the job ran.
    beside: u64,
    /// Of these, how many had it found out what the job leaves alone.
    searched: u64,
    /// Dropped as the job wrote what was still to be copied.
    overwritten: u64,
    /// Dropped as the job needed the memory of a snapshot.
    crowded: u64,
    /// Failed by the agent.
    failed: u64,
}

fn config(directory: &std::path::Path) -> Config {
    Config {
        job: JobName::new("program").unwrap(),
        run_dir: directory.join("run"),
        store: directory.join("store").display().to_string(),
        interval: Interval::Never,
        host_buffer: Bounds {
            least: HOST,
            most: HOST,
        },
        copy_beside: CopyBeside::Auto,
        quiesce_timeout: Duration::from_secs(10),
        hold_limit: Duration::from_secs(1),
        restarts: RestartBudget::default(),
        from: None,
        start: Start::Resume,
        unused_cpu_features: Vec::new(),
        lease: Duration::ZERO,
        node: None,
        remote: None,
        state_dir: directory.join("state"),
        retention: Retention {
            last: Some(2),
            hourly: None,
            daily: None,
            drop_branches: false,
        },
        upload_limit: None,
        s3: phos_storage::s3::S3Options::default(),
        host_cache: None,
        cache: None,
        preemption: preemption::Config {
            cloud: preemption::Cloud::None,
            file: None,
        },
        observe: observe::Config::default(),
        key: None,
    }
}

/// A job's device, as its process sees it.
fn device(info: &GpuInfo) -> Device {
    Device {
        ordinal: info.ordinal,
        uuid: info.uuid,
        total_bytes: info.total_bytes,
        name: info.name.clone(),
    }
}

fn over(stop: Stop) -> String {
    match stop {
        Stop::Link(e) => e.to_string(),
        Stop::Over => "it was told to end".into(),
        Stop::Engine(e) => e.to_string(),
    }
}

/// What the newest checkpoint has of the job's memory, in the order of names.
async fn stored(engine: &Engine, report: &CheckpointReport) -> Vec<Content> {
    let number = CheckpointNumber(report.id);
    let manifest = engine.job.manifest(number).await.unwrap();
    let reader = engine.job.reader(&manifest).unwrap();
    let mut chunks: HashMap<u32, Bytes> = HashMap::new();
    let all = manifest.body.allocations.iter();
    let wanted = all.flat_map(|a| manifest.extents(&a.chunks).map(|extent| extent.chunk));
    let mut fetched = reader.fetch(wanted);
    while let Some(chunk) = fetched.next().await {
        chunks.extend([chunk.unwrap()]);
    }
    let devices: BTreeMap<_, i32> = (manifest.body.gpus.iter())
        .map(|gpu| (gpu.uuid, i32::from(gpu.uuid.0[0])))
        .collect();
    let content = |allocation: &phos_storage::Allocation<_>| Content {
        key: AllocationKey {
            owner: MemberId {
                node: allocation.owner.node,
                process: allocation.owner.process,
            },
            id: allocation.id,
        },
        device: devices[&allocation.gpu],
        bytes: {
            let extents = manifest.extents(&allocation.chunks);
            let parts: Vec<&[u8]> = extents.map(|e| &chunks[&e.chunk][..]).collect();
            parts.concat()
        },
    };
    let mut all: Vec<Content> = manifest.body.allocations.iter().map(content).collect();
    all.sort_unstable_by_key(|content| content.key);
    all
}

/// Runs one program with some checkpoints.
async fn program(seed: u64, seen: &mut Seen) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let directory = tempfile::tempdir().unwrap();
    let devices = if rng.random_range(0..4) == 0 { 2 } else { 1 };
    let gpus = InMemory::new(&vec![TOTAL; devices]);
    let infos = gpus.gpus().unwrap();
    let job = Job::new(seed, devices);
    let is_calm = job.habit == Habit::Steady && !job.is_haunted;
    let has_churn = job.churns;

    let (mut engine, _seen) = setup::engine(config(directory.path()))
        .await
        .unwrap()
        .unwrap();
    let address = SocketAddrUnix::new(&engine.agent).unwrap();
    let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&listener, &address).unwrap();
    listen(&listener, 1).unwrap();
    engine.gpus = Gpus::of(Ok(Arc::clone(&gpus) as Arc<dyn Platform>), HOST);
    let uuids: Vec<_> = infos.iter().map(|info| info.uuid).collect();
    engine.gpus.open(&uuids).unwrap();
    // From none at all to plenty for a snapshot; then what leaves in the stop is slow, as far as the engine knows.
    let spare = match rng.random_range(0..9) {
        0 => 0,
        1 => TOTAL,
        2 => rng.random_range(0..job.used()),
        // All that a steady job writes in most of its step, and something more.
        _ => job.used_by_others_than_weights() + rng.random_range(0..job.used() / 4),
    };
    gpus.set_used(job.used());
    gpus.set_others((TOTAL - TOTAL / 32).saturating_sub(job.used() + spare));
    if rng.random_range(0..6) > 0 {
        engine.planning.link_rate = 1_000_000;
    }
    if rng.random_range(0..2) == 0 {
        gpus.set_pace(Duration::from_micros(rng.random_range(1..1000)));
    }

    let link = Link::connect(&engine.agent).unwrap();
    let (quiet, was_quiet) = mpsc::channel::<Quiet>();
    let agent = Agent::new(
        accept(&listener).unwrap(),
        job,
        &gpus,
        infos.iter().map(device).collect(),
        quiet,
        directory.path().to_owned(),
    );
    let agent = std::thread::spawn(move || agent.serve());
    let opened = Session::open(&mut engine, link).await.unwrap();
    let (mut session, _) = opened.unwrap();
    for _ in 0..rng.random_range(4..12) {
        let trigger = match rng.random_range(0..24) {
            0 => Trigger::Preemption,
            1..8 => Trigger::OnDemand,
            _ => Trigger::Interval,
        };
        checkpoint(
            &mut session,
            trigger,
            &was_quiet,
            seen,
            is_calm && !has_churn,
        )
        .await;
    }
    drop(session);
    agent.join().unwrap();
}

/// Takes one, and looks at what came of it.
async fn checkpoint(
    session: &mut Session<'_>,
    trigger: Trigger,
    was_quiet: &mpsc::Receiver<Quiet>,
    seen: &mut Seen,
    is_calm: bool,
) {
    let counts = |session: &Session<'_>| {
        let status = session.engine.status.lock();
        (status.checkpoints, status.failures)
    };
    let (stored_before, failed_before) = counts(session);
    let rests = session.engine.planning.speculation;
    session.checkpoint(trigger).await.map_err(over).unwrap();
    let seq = session.attempt.storing;
    session.settle_checkpoint().await.map_err(over).unwrap();
    let held = was_quiet.try_iter().last().expect("it was never quiet");
    let (stored_now, failed_now) = counts(session);
    let made = (stored_now - stored_before, failed_now - failed_before);
    if made == (0, 1) {
        let failure = session.engine.status.lock().last_failure.clone();
        let failure = failure.unwrap_or_default();
        assert!(!is_calm || is_the_agents(&failure), "{failure}");
        match failure {
            _ if is_the_agents(&failure) => seen.failed += 1,
            _ if failure.contains("needed the device memory") => seen.crowded += 1,
            _ if failure.contains("has written") => seen.overwritten += 1,
            _ => panic!("{failure}"),
        }
        return;
    }
    assert_eq!(made, (1, 0));
    assert_eq!(seq, Some(held.seq));
    let report = session.engine.status.lock().last.clone().unwrap();
    let image = stored(session.engine, &report).await;
    for (was, is) in held.content.iter().zip(&image) {
        let same = was == is;
        assert!(same, "{:?} is not what it was", was.key);
    }
    assert_eq!(image.len(), held.content.len());
    seen.stored += 1;
    seen.beside += u64::from(report.parts_ms.contains_key("beside"));
    seen.searched += u64::from(session.engine.planning.speculation != rests);
}

/// Whether that is what the agent says of an attempt that it fails.
fn is_the_agents(failure: &str) -> bool {
    failure.contains("there is none") || failure.contains("abandoned")
}

/// Runs these programs.
fn programs(seeds: Range<u64>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    let mut seen = Seen::default();
    for seed in seeds {
        let ran = std::panic::AssertUnwindSafe(|| runtime.block_on(program(seed, &mut seen)));
        if let Err(panic) = std::panic::catch_unwind(ran) {
            eprintln!("seed {seed}, after {seen:?}");
            std::panic::resume_unwind(panic);
        }
    }
    println!("{seen:?}");
    // Else nothing was tried of what is hard.
    assert!(seen.beside > 0 && seen.searched > 0, "{seen:?}");
    assert!(seen.stored > 10 * seen.overwritten, "{seen:?}");
}

#[test]
fn what_is_stored_is_what_the_job_held() {
    programs(0..100);
}

/// A hundred thousand, of which those are the first: in the profile `long`.
mod hundred_thousand {
    macro_rules! pieces {
        ($($name:ident $from:literal)*) => {$(
            #[test]
            fn $name() {
                super::programs(6250 * $from..6250 * ($from + 1));
            }
        )*};
    }
    pieces! {
        piece_0 0 piece_1 1 piece_2 2 piece_3 3 piece_4 4 piece_5 5 piece_6 6 piece_7 7
        piece_8 8 piece_9 9 piece_10 10 piece_11 11 piece_12 12 piece_13 13 piece_14 14 piece_15 15
    }
}
