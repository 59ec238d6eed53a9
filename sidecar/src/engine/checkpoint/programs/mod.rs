//! Checkpoints of programs that nobody wrote, each from a seed: what is stored is what the job's memory held while it was quiet, bit for bit, or
//! the checkpoint has failed.
//!
//! The engine is the one that users have, with its store in a directory, its conversation over a socket, and its threads. The [`agent`] and the [`job`]
//! behind it are a thread of the test's, which knows what the job held; GPUs are files ([`phos_gpu::in_memory`]). Here one checkpoint takes 20 ms, and not a
//! second as with processes and CRIU (`integration-tests/tests/e2e/programs.rs`), so that there can be a hundred thousand of them.

mod agent;
mod job;

pub(in crate::engine) use self::agent::Faults;
pub(in crate::engine) use self::job::Job;

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use phos_gpu::in_memory::InMemory;
use phos_gpu::{GpuInfo, Platform};
use phos_policies::host_buffer::Bounds;
use phos_policies::restart::RestartBudget;
use phos_policies::retention::Retention;
use phos_policies::schedule::{Event, Trigger};
use phos_protocol::types::{AllocationKey, Device, MemberId};
use phos_storage::{CheckpointNumber, ChunkList, JobName};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, accept, bind, listen, socket};

use tempfile::TempDir;

use self::agent::{Agent, Told};
use self::job::{Content, Order};
use crate::background::Background;
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
#[derive(Debug, Default)]
struct Seen {
    stored: u64,
    /// Of these, how many had memory copied while the job ran.
    beside: u64,
    /// How often the job had made all calls that it might, and waited.
    spent: u64,
    /// Pieces of snapshots.
    pieces: u64,
    /// Dropped as the job wrote what was still to be copied.
    overwritten: u64,
    /// Dropped as the job needed the memory of a snapshot.
    crowded: u64,
    /// Failed by the agent.
    failed: u64,
    /// Dropped as five seconds were not enough.
    late: u64,
}

fn config(directory: &std::path::Path) -> Config {
    Config {
        background: Background::here(),
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

/// What a checkpoint has of the job's memory, in the order of names, and the image of its processes.
async fn stored(engine: &Engine, report: &CheckpointReport) -> (Vec<Content>, Vec<u8>) {
    let number = CheckpointNumber(report.id);
    let manifest = engine.job.manifest(number).await.unwrap();
    let reader = engine.job.reader(&manifest).unwrap();
    let mut chunks: HashMap<u32, Bytes> = HashMap::new();
    let lists = manifest.body.allocations.iter().map(|a| &a.chunks);
    let lists = lists.chain(manifest.body.cpu_image.iter().map(|file| &file.chunks));
    let wanted = lists.flat_map(|list| manifest.extents(list).map(|extent| extent.chunk));
    let mut fetched = reader.fetch(wanted);
    while let Some(chunk) = fetched.next().await {
        chunks.extend([chunk.unwrap()]);
    }
    let devices: BTreeMap<_, i32> = (manifest.body.gpus.iter())
        .map(|gpu| (gpu.uuid, i32::from(gpu.uuid.0[0])))
        .collect();
    let bytes = |list: &ChunkList| {
        let parts = manifest.extents(list).map(|e| &chunks[&e.chunk][..]);
        parts.collect::<Vec<&[u8]>>().concat()
    };
    let content = |allocation: &phos_storage::Allocation<_>| Content {
        key: AllocationKey {
            owner: MemberId {
                node: allocation.owner.node,
                process: allocation.owner.process,
            },
            id: allocation.id,
        },
        device: devices[&allocation.gpu],
        bytes: bytes(&allocation.chunks),
    };
    let mut all: Vec<Content> = manifest.body.allocations.iter().map(content).collect();
    all.sort_unstable_by_key(|content| content.key);
    let [pages] = &manifest.body.cpu_image[..] else {
        panic!("there was one file");
    };
    let pages = bytes(&pages.chunks);
    (all, pages)
}

/// An engine, and an agent with a job that it is connected to.
pub(in crate::engine) struct World {
    pub(in crate::engine) engine: Engine,
    pub(in crate::engine) gpus: Arc<InMemory>,
    link: Option<Link>,
    agent: JoinHandle<()>,
    _seen: setup::Seen,
    _directory: TempDir,
}

impl World {
    /// With so many GPUs, of which this job uses what it uses, and nobody the rest. What it holds whenever it is quiet is sent as well.
    pub(in crate::engine) async fn new(
        job: Job,
        devices: usize,
        faults: Faults,
    ) -> (World, mpsc::Receiver<Told>) {
        let directory = tempfile::tempdir().unwrap();
        let gpus = InMemory::new(&vec![TOTAL; devices]);
        gpus.set_used(job.used());
        let infos = gpus.gpus().unwrap();
        let started = setup::engine(config(directory.path())).await.unwrap();
        let (mut engine, seen) = started.unwrap();
        let address = SocketAddrUnix::new(&engine.agent).unwrap();
        let listener = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&listener, &address).unwrap();
        listen(&listener, 1).unwrap();
        engine.gpus = Gpus::of(Ok(Arc::clone(&gpus) as Arc<dyn Platform>), HOST);
        let uuids: Vec<_> = infos.iter().map(|info| info.uuid).collect();
        engine.gpus.open(&uuids).unwrap();
        let link = Link::connect(&engine.agent).unwrap();
        let (told, heard) = mpsc::channel();
        let agent = Agent::new(
            accept(&listener).unwrap(),
            job,
            &gpus,
            infos.iter().map(device).collect(),
            told,
            directory.path().to_owned(),
            faults,
        );
        let world = World {
            engine,
            gpus,
            link: Some(link),
            agent: std::thread::spawn(move || agent.serve()),
            _seen: seen,
            _directory: directory,
        };
        (world, heard)
    }

    /// The one session that there is.
    pub(in crate::engine) async fn session(&mut self) -> Session<'_> {
        let link = self.link.take().unwrap();
        let Ok(Some((session, _))) = Session::open(&mut self.engine, link).await else {
            panic!("the agent said that it serves nobody else");
        };
        session
    }

    /// That session, in which a checkpoint of the schedule's is being stored, which takes a while.
    pub(in crate::engine) async fn storing(&mut self) -> Session<'_> {
        let gpus = Arc::clone(&self.gpus);
        let mut session = self.session().await;
        let now = session.engine.now();
        session.engine.schedule.on(Event::JobStarted, now);
        gpus.set_pace(Duration::from_millis(20));
        assert!(session.checkpoint(Trigger::Interval).await.is_ok());
        session
    }

    /// Waits for the agent, whose sidecar has gone.
    pub(in crate::engine) fn end(self) {
        self.agent.join().unwrap();
    }
}

/// Runs one program with some checkpoints.
async fn program(seed: u64, seen: &mut Seen) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed ^ 0x5eed);
    let devices = if rng.random_range(0..4) == 0 { 2 } else { 1 };
    let job = Job::new(seed, devices);
    let temper = match job.order == Order::Steady && !job.is_haunted && !job.churns {
        true => Temper::Calm,
        false => Temper::Wild,
    };
    // From none at all to plenty for a snapshot; then what leaves in the stop is slow, as far as the engine knows.
    let used = job.used();
    let more = rng.random_range(0..used / 4);
    let spare = match rng.random_range(0..9) {
        0 => 0,
        1 => TOTAL,
        2 => rng.random_range(0..used),
        // All that a steady job writes in most of its step, and something more.
        _ if job.is_large => job.room_for_others_than_weights() + more,
        _ => job.used_by_others_than_weights() + more,
    };
    let (mut world, heard) = World::new(job, devices, Faults::Some).await;
    (world.gpus).set_others((TOTAL - TOTAL / 32).saturating_sub(used + spare));
    if rng.random_range(0..6) > 0 {
        world.engine.planning.link_rate = 1_000_000;
    }
    if rng.random_range(0..2) == 0 {
        let pace = Duration::from_micros(rng.random_range(1..1000));
        world.gpus.set_pace(pace);
    }
    let gpus = Arc::clone(&world.gpus);
    let mut session = world.session().await;
    for _ in 0..rng.random_range(4..12) {
        let trigger = match rng.random_range(0..24) {
            0 => Trigger::Preemption,
            1..8 => Trigger::OnDemand,
            _ => Trigger::Interval,
        };
        checkpoint(&mut session, trigger, &heard, seen, temper).await;
    }
    seen.pieces += gpus.scratched();
    drop(session);
    world.end();
}

/// Waits for the end of the one that is being stored, and listens to the agent meanwhile.
async fn landed(session: &mut Session<'_>) {
    while session.engine.in_progress.is_storing() {
        tokio::select! {
            outcome = session.engine.in_progress.landed() => {
                session.checkpoint_ended(outcome).map_err(over).unwrap();
            }
            packet = session.link.recv() => session.event(packet.unwrap()).await.unwrap(),
        }
    }
}

/// What the agent did with the last attempt.
#[derive(Default)]
struct Attempt {
    seq: u64,
    content: Vec<Content>,
    pages: Vec<u8>,
    has_failed: bool,
    is_late: bool,
}

fn last_attempt(heard: &mpsc::Receiver<Told>, seen: &mut Seen) -> Attempt {
    let mut last = Attempt::default();
    for told in heard.try_iter() {
        match told {
            Told::Quiet { seq, content } => {
                last = Attempt {
                    seq,
                    content,
                    ..Attempt::default()
                };
            }
            Told::Dumped(pages) => last.pages = pages,
            Told::Failed(seq) => last.has_failed = seq == last.seq,
            Told::Late(seq) => last.is_late = seq == last.seq,
            Told::Spent => seen.spent += 1,
        }
    }
    last
}

/// What a job may do beside a checkpoint.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Temper {
    /// Each step as the one before.
    Calm,
    /// Anything.
    Wild,
}

/// Takes one, and looks at what came of it.
async fn checkpoint(
    session: &mut Session<'_>,
    trigger: Trigger,
    heard: &mpsc::Receiver<Told>,
    seen: &mut Seen,
    temper: Temper,
) {
    let counts = |session: &Session<'_>| {
        let status = session.engine.status.lock();
        (status.checkpoints, status.failures)
    };
    let (stored_before, failed_before) = counts(session);
    session.checkpoint(trigger).await.map_err(over).unwrap();
    let seq = session.attempt.storing;
    landed(session).await;
    let last = last_attempt(heard, seen);
    let (stored_now, failed_now) = counts(session);
    let made = (stored_now - stored_before, failed_now - failed_before);
    if made == (0, 1) {
        let failure = session.engine.status.lock().last_failure.clone();
        let failure = failure.unwrap_or_default();
        let is_overwritten = failure.contains("has written");
        let count = if last.has_failed {
            &mut seen.failed
        } else if is_overwritten && last.is_late {
            &mut seen.late
        } else if is_overwritten && temper == Temper::Wild {
            &mut seen.overwritten
        } else if failure.contains("needed the device memory") && temper == Temper::Wild {
            &mut seen.crowded
        } else {
            // A calm job's calls write the same memory in each step, and it wants no more.
            panic!("{failure}")
        };
        *count += 1;
        return;
    }
    assert_eq!((made, last.has_failed), ((1, 0), false));
    assert_eq!(seq, Some(last.seq));
    let report = session.engine.status.lock().last.clone().unwrap();
    let (image, pages) = stored(session.engine, &report).await;
    for (was, is) in last.content.iter().zip(&image) {
        let same = was == is;
        assert!(same, "{:?} is not what it was", was.key);
    }
    assert_eq!(image.len(), last.content.len());
    assert!(pages == last.pages, "the processes are not what they were");
    seen.stored += 1;
    seen.beside += u64::from(report.parts_ms.contains_key("beside"));
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
    assert!(seen.spent > 0 && seen.pieces > 0, "{seen:?}");
    assert!(seen.stored < 200 * seen.beside, "{seen:?}");
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
