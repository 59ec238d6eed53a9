//! Opens what the sidecar needs when it starts: the store, the tier and the caches on this machine, the GPUs, the control socket.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use phos_policies::restart::Restarts;
use phos_policies::schedule::{Schedule, ScheduleConfig};
use phos_policies::tries::Habit;
use phos_protocol::env::AGENT_SOCKET_FILE;
use phos_shared::host_memory;
use phos_storage::{Known, PackCache, StoreOptions, UnixMillis};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::checkpoint::InProgress;
use super::checkpoint::buffer::Buffer;
use super::checkpoint::interval::ChosenInterval;
use super::checkpoint::planning::Planning;
use super::config::{Config, Start, Tier};
use super::control::socket::{self, Control, Wanted};
use super::error::EngineError;
use super::memory::gpus::Gpus;
use super::ownership::Ownership;
use super::ownership::lease::Node;
use super::signals::{Signals, stop_wanted};
use super::stores::{make_run_dir, open_store_patiently, store_options};
use super::system::unix_millis;
use super::tiers::collect::Collector;
use super::tiers::encoding::{Adaptive, Limit};
use super::tiers::local::LocalTier;
use super::tiers::replicate::Replication;
use super::tiers::{Tiers, Unused};
use super::{Caches, Engine, JobRun, Preemption, Requests, ResumeOptions, no_local_tier};
use crate::heap;
use crate::known_history::{KnownHistory, Remembered};
use crate::observe::{self, Observers};
use crate::report::event::Event;
use crate::report::journal::Journal;
use crate::report::shared::Shared;
use crate::report::status::{Report, Unprotected};

/// File name of the events below the job's run directory.
const EVENTS_FILE: &str = "events.jsonl";
/// The cache in memory leaves one part in so many of it to others.
const HOST_SPARE: u64 = 20;

/// How others see the sidecar. It ends with this.
pub(super) struct Seen {
    _control: Control,
    observers: Observers,
}

impl Seen {
    /// The job is over: tells what is left to tell.
    pub(super) async fn settle(self) {
        self.observers.settle().await;
    }
}

/// Opens everything. The sockets are closed when the second is dropped. None: this process was asked to end.
///
/// # Errors
/// Why the sidecar cannot start.
pub(super) async fn engine(config: Config) -> Result<Option<(Engine, Seen)>, EngineError> {
    let directory = make_run_dir(&config.run_dir, &config.job)?;
    let mut signals = Signals::new().map_err(EngineError::System)?;
    let demand = signal(SignalKind::user_defined1()).map_err(EngineError::System)?;
    let interval = ChosenInterval::new(config.interval);
    let schedule = Schedule::new(ScheduleConfig {
        interval: interval.current(),
        ..ScheduleConfig::default()
    })?;
    let history = KnownHistory::new(&directory, &config.state_dir, &config.job, &config.store);
    let known = recall(&history, config.start);
    warn_of_plain_store(&config);
    let local_encoding = Arc::new(Adaptive::default());
    // Encodes for the store what comes from this machine's disk; without that tier it is the same.
    let remote_encoding = match &config.remote {
        Some(_) => Arc::new(Adaptive::default()),
        None => Arc::clone(&local_encoding),
    };
    let caches = Caches {
        disk: (config.cache.as_ref()).and_then(|place| open_cache(place, &config.store)),
        memory: config.host_cache.map(host_cache),
    };
    let local = open_local_tier(&config, &local_encoding, caches.memory.as_ref()).await;
    let mut options = remote_options(&config, &remote_encoding);
    // Checkpoints that go to the store by way of this machine's disk would be in memory twice.
    let in_memory = caches.memory.iter().filter(|_| local.is_none());
    options.caches = in_memory.chain(&caches.disk).cloned().collect();
    let store = tokio::select! {
        store = open_store_patiently(&config.store, &config.job, &options, known) => store?,
        () = stop_wanted(&mut signals, Duration::ZERO) => return Ok(None),
    };
    let gpus = discover(config.host_buffer.least).await?;
    let (status, requests, seen) = show(&config, &interval, &directory)?;
    let job = store.job(config.job.clone());
    job.expect(known);
    let replication = (config.remote.as_ref()).map(|(every, _)| Replication::new(*every));
    let engine = Engine {
        job,
        agent: directory.join(AGENT_SOCKET_FILE),
        ownership: Ownership {
            epoch: None,
            lease: config.lease,
            node: Node::new(config.node.as_deref()),
            keeper: None,
            history,
            fresh: config.start == Start::Fresh,
        },
        tiers: Tiers {
            replication: replication.filter(|_| local.is_some()),
            local,
            target: Tier::Remote,
            newest: UnixMillis(0),
            remote_interval: config.remote.as_ref().map(|(every, _)| *every),
            local_encoding,
            remote_encoding,
            local_collector: Collector::of_local_tier(config.background.clone()),
            remote_collector: Collector::new(config.retention, config.background.clone()),
            unused: Unused {
                state_dir: config.state_dir,
                address: config.store,
                key: config.key,
            },
        },
        caches,
        cpu_image: 0,
        gpus,
        planning: Planning::default(),
        buffer: Buffer::new(config.host_buffer),
        in_progress: InProgress::default(),
        background: config.background,
        requests,
        resume: ResumeOptions {
            from: config.from,
            start: config.start,
            unused_cpu_features: config.unused_cpu_features,
        },
        run: JobRun {
            running: false,
            since: UnixMillis(0),
        },
        status,
        schedule,
        restarts: Restarts::new(config.restarts),
        habit: Habit::default(),
        newest: None,
        quiesce_timeout: config.quiesce_timeout,
        hold_limit: config.hold_limit,
        copy_beside: config.copy_beside,
        interval,
        put_concurrency: options.encoders * 2,
        origin: Instant::now(),
        signals,
        demand,
        preemption: Preemption::new(&config.preemption),
    };
    Ok(Some((engine, seen)))
}

/// Opens what others see of the sidecar, and what they ask through.
fn show(
    config: &Config,
    interval: &ChosenInterval,
    directory: &Path,
) -> Result<(Shared, Requests, Seen), EngineError> {
    let (status, before) = first_report(config, interval, directory);
    let (sender, incoming) = mpsc::channel(16);
    let seen = Seen {
        _control: serve_control(directory, &status, sender)?,
        observers: observe::serve(directory, config.observe.clone(), &status, before, || {
            unix_millis().0
        }),
    };
    let requests = Requests {
        incoming,
        next: Vec::new(),
        current: Vec::new(),
    };
    Ok((status, requests, seen))
}

/// What this machine remembers of the job's history, which the store must show.
fn recall(history: &KnownHistory, start: Start) -> Option<Known> {
    let mut remembered = history.recall();
    match remembered {
        // Also where this sidecar replaces one that was started with it.
        Some(r) if start == Start::Fresh && r.fresh => tracing::info!(
            "--start-fresh counts once: what was begun with it is expected in the store. To begin anew once more, give another \
             --job name"
        ),
        Some(_) if start == Start::Fresh => {
            history.forget();
            remembered = None;
        }
        Some(r) if r.fresh => history.note(Remembered { fresh: false, ..r }, unix_millis()),
        _ => {}
    }
    remembered.map(|r| r.known)
}

fn warn_of_plain_store(config: &Config) {
    if config.key.is_none() && phos_storage::is_remote(&config.store) {
        tracing::warn!(
            "the store is not encrypted: who may write to it can run programs on the machine that resumes the job next, as root, \
             and who may read it has what the job has in memory. Give --encryption-key-file (`phos-ft keygen`), or \
             let nobody else there"
        );
    }
}

/// The options with which the store is opened.
fn remote_options(config: &Config, encoding: &Arc<Adaptive>) -> StoreOptions {
    let mut options = store_options(config.key.clone());
    options.encoding = encoding.clone();
    options.s3.clone_from(&config.s3);
    if let Some(limit) = config.upload_limit {
        options.pacer = Some(Limit::new(limit));
    }
    options
}

/// The GPUs here; one that is alone is opened, as it is clear that it will be needed.
async fn discover(host_buffer: u64) -> Result<Gpus, EngineError> {
    let gpus = tokio::task::spawn_blocking(move || {
        let mut gpus = Gpus::discover(host_buffer);
        if let [only] = gpus.infos() {
            let uuid = only.uuid;
            if let Err(e) = gpus.open(&[uuid]) {
                tracing::warn!(error = %e, "the GPU cannot be opened yet");
            }
        }
        gpus
    })
    .await
    .map_err(|e| EngineError::System(std::io::Error::other(e)))?;
    match gpus.driver() {
        Ok(_) => tracing::info!(gpus = gpus.infos().len(), "driver found"),
        Err(e) => tracing::warn!(error = %e, "no GPU can be used"),
    }
    Ok(gpus)
}

/// What is said at first, and the number of the last event before this sidecar.
fn first_report(config: &Config, interval: &ChosenInterval, directory: &Path) -> (Shared, u64) {
    let report = Report {
        job: config.job.to_string(),
        store: config.store.clone(),
        state: "waiting for the agent".into(),
        interval_seconds: interval.current().map_or(0.0, |i| i.as_secs_f64()),
        ..Report::default()
    };
    let status = Shared::new(report, Journal::open(&directory.join(EVENTS_FILE)));
    let before = status.journal().newest();
    status.lock().unprotected = still_unprotected(status.journal());
    let version = env!("CARGO_PKG_VERSION").into();
    status.happened(unix_millis(), Event::SidecarStarted { version });
    (status, before)
}

/// What the sidecar before this one left unsaid: that the job is protected again.
fn still_unprotected(journal: &Journal) -> Option<Unprotected> {
    let last = journal.newest_of(|event| {
        matches!(
            event,
            Event::Unprotected { .. } | Event::Protected | Event::CheckpointStored(_)
        )
    });
    match last?.event {
        Event::Unprotected {
            reason,
            message,
            since_ms,
        } => Some(Unprotected {
            since_ms,
            because: message,
            reason: Some(reason),
        }),
        _ => None,
    }
}

fn serve_control(
    directory: &Path,
    status: &Shared,
    wanted: mpsc::Sender<Wanted>,
) -> Result<Control, EngineError> {
    let path = directory.join(socket::SOCKET_FILE);
    socket::serve(&path, status.clone(), wanted)
        .map_err(|source| EngineError::RunDir { path, source })
}

/// The heap is given back once in that time at most.
const GIVE_BACK: Duration = Duration::from_secs(1);

/// The cache in memory. It leaves a twentieth of what there is to others, and gives way when they take more.
fn host_cache(limit: u64) -> Arc<PackCache> {
    if let Some(memory) = host_memory::now()
        && limit > memory.available
    {
        let mib = |bytes| bytes >> 20;
        tracing::warn!(
            "--host-cache may be {} MiB and {} MiB of memory are available: it will hold less than that",
            mib(limit),
            mib(memory.available)
        );
    }
    let look = |bytes: u64| {
        host_memory::now().is_none_or(|memory| {
            memory.available >= bytes.saturating_add(memory.total / HOST_SPARE)
        })
    };
    let given_back = Mutex::new(None::<Instant>);
    let has_room = move |bytes: u64| {
        if look(bytes) {
            return true;
        }
        // What went from the cache is free in the heap, and the machine does not know. That takes a while: not each time.
        let mut given_back = given_back.lock().unwrap_or_else(PoisonError::into_inner);
        if given_back.is_some_and(|at| at.elapsed() < GIVE_BACK) {
            return false;
        }
        *given_back = Some(Instant::now());
        heap::give_back();
        look(bytes)
    };
    Arc::new(PackCache::in_memory(limit, Box::new(has_room)))
}

/// Opens the cache on a disk; a sidecar without one only reads more from the store.
fn open_cache((directory, limit): &(PathBuf, u64), store: &str) -> Option<Arc<PackCache>> {
    if !phos_storage::is_remote(store) {
        tracing::warn!(
            store,
            "--cache-size is for remote stores: this one is read as fast without"
        );
        return None;
    }
    PackCache::on_disk(directory, store, *limit)
        .inspect_err(|cause| {
            tracing::warn!(
                %cause, directory = %directory.display(),
                "no packs are kept on this machine: make the directory writable, or choose another with --state-dir"
            );
        })
        .ok()
        .map(Arc::new)
}

/// Prepares the tier on this machine. Without it every checkpoint goes to the store.
async fn open_local_tier(
    config: &Config,
    encoding: &Arc<Adaptive>,
    cache: Option<&Arc<PackCache>>,
) -> Option<LocalTier> {
    let (_, state_dir) = config.remote.clone()?;
    let (address, state) = (config.store.clone(), state_dir.clone());
    let apart = tokio::task::spawn_blocking(move || {
        phos_storage::is_remote(&address) || phos_storage::is_on_another_disk(&address, &state)
    });
    if !apart.await.unwrap_or(false) {
        tracing::warn!(
            store = config.store, state_dir = %state_dir.display(),
            "--remote-interval is for stores elsewhere: this one is on the disk of --state-dir, and every checkpoint goes to it"
        );
        return None;
    }
    let mut options = store_options(config.key.clone());
    options.encoding = encoding.clone();
    // Next to a network a disk needs few. What is read is decoded as quickly as elsewhere.
    options.uploads = 2;
    options.caches.extend(cache.cloned());
    let (job, store) = (config.job.clone(), config.store.clone());
    let prepared =
        tokio::task::spawn_blocking(move || LocalTier::prepare(&state_dir, &job, &store, options))
            .await;
    match prepared {
        Ok(Ok(tier)) => Some(tier),
        Ok(Err(e)) => {
            no_local_tier(&e);
            None
        }
        Err(_) => None,
    }
}
