//! The sidecar: checkpoints of the job while it runs, and its return after a crash.
//!
//! * [`session`]: the conversation with the agent; [`link`]: the connection under it;
//! * [`attempt`]: one checkpoint; [`registry`]: the job's memory; [`gpus`]; [`plan`]; [`drain`];
//!   [`pipeline`]; [`cpu_image`]; [`image`]: what the manifest says;
//! * [`restore`] and [`checks`]: the way back;
//! * [`control`] and [`status`]: the sidecar's own socket;
//! * [`near`]: the tier on this machine; [`copies`]: from there to the store;
//! * [`tidy`]: collection after checkpoints; [`hold`]: what a reader needs stays.
//!
//! # Consistency
//!
//! The engine decides nothing that the agent or the store does not confirm: the job's state is what the
//! agent says, what is visible is what the store's log says. So it may die at any instant and be started
//! again.
//!
//! # Crash consistency
//!
//! Every start takes the job over in the store: a sidecar that was thought dead is fenced.
//!
//! # Memory
//!
//! Pinned host memory is bounded by `--host-buffer`, the store's writer and reader by their options, all
//! queues by constants.

mod attempt;
mod branch;
pub mod checks;
pub mod control;
mod copies;
mod cpu;
mod cpu_image;
mod drain;
mod failpoint;
mod gpus;
mod hold;
mod image;
mod lease;
mod link;
mod near;
mod pipeline;
mod plan;
mod progress;
mod registry;
mod restore;
mod session;
pub mod status;
mod tidy;
mod uploads;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use phos_policies::restart::{RestartBudget, Restarts};
use phos_policies::retention::Retention;
use phos_policies::schedule::{Schedule, ScheduleConfig, ScheduleError};
use phos_policies::tries::LongTries;
use phos_protocol::env::AGENT_SOCKET_FILE;
use phos_protocol::types::GpuUuid;
use phos_storage::s3::S3Options;
use phos_storage::{
    CheckpointNumber, Epoch, FaultKind, Job, JobError, JobName, Key, Known, Manifest, NonceSource,
    OpenError, PackCache, ProbeError, RetryPolicy, Store, StoreOptions, UnixMillis,
};
use serde::Serialize;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use self::attempt::Flight;
use self::branch::GoBack;
use self::checks::CheckError;
use self::control::Wanted;
use self::copies::Copies;
use self::gpus::Gpus;
use self::lease::{Keeper, Node};
use self::link::Link;
use self::near::{Near, NearError};
use self::pipeline::Control;
use self::session::{Session, SessionEnd};
use self::status::{Report, Shared};
use self::tidy::Tidy;
use self::uploads::{Adaptive, Limit};
use crate::host_memory;
use crate::known_history::{KnownHistory, Remembered};
use crate::mask;
use crate::run_dir;

pub use self::hold::{Reading, reader};
pub use self::near::look as look_near;
pub use self::tidy::keep;

/// What the sidecar is told.
#[derive(Debug, Clone)]
pub struct Config {
    /// The job.
    pub job: JobName,
    /// Directory shared with the agent.
    pub run_dir: PathBuf,
    /// Address of the store.
    pub store: String,
    /// Time between checkpoints; none: on demand only.
    pub interval: Option<Duration>,
    /// Most pinned host memory, in bytes.
    pub host_buffer: u64,
    /// How long GPU work in flight may take to end when a checkpoint begins.
    pub quiesce_timeout: Duration,
    /// Restarts of a crashed job.
    pub restarts: RestartBudget,
    /// Resume from this checkpoint first.
    pub from: Option<CheckpointId>,
    /// Begin with the job's first step, whatever checkpoints there are or should be.
    pub start_fresh: bool,
    /// Of what the CPU can do: what the job does not use although it could be found.
    pub unused_cpu_features: Vec<String>,
    /// How long another node waits for this one, which did not renew its lease; zero: not at all.
    pub lease: Duration,
    /// What this machine is called in leases.
    pub node: Option<String>,
    /// Time between checkpoints in the store, where those between are kept on this machine alone, below this directory.
    pub remote: Option<(Duration, PathBuf)>,
    /// Below it checkpoints may be on this machine alone, whether or not this start keeps some there.
    pub state_dir: PathBuf,
    /// Which checkpoints to keep.
    pub retention: Retention,
    /// Most bytes a second that uploads may take of the link.
    pub upload_limit: Option<u64>,
    /// How objects are written to S3.
    pub s3: S3Options,
    /// Most bytes of packs that are kept in memory.
    pub host_cache: Option<u64>,
    /// Where packs of a remote store are kept on a disk, and most bytes of them.
    pub cache: Option<(PathBuf, u64)>,
    /// What the job's checkpoints are encrypted with.
    pub key: Option<Key>,
}

/// A checkpoint as people name it: `12` in the store, `L12` on this machine alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct CheckpointId {
    /// Whether it is one of the tier on this machine.
    pub local: bool,
    /// Its number there.
    pub number: CheckpointNumber,
}

impl std::fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = format!("{}{}", if self.local { "L" } else { "" }, self.number);
        f.pad(&text)
    }
}

impl From<CheckpointId> for String {
    fn from(id: CheckpointId) -> String {
        id.to_string()
    }
}

impl std::str::FromStr for CheckpointId {
    type Err = String;

    fn from_str(text: &str) -> Result<CheckpointId, String> {
        let (local, number) = match text.strip_prefix('L') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let number = number.parse();
        number
            .map(|number| CheckpointId { local, number })
            .map_err(|_| {
                format!("{text:?} is not a checkpoint's number: `phos-ft list` shows them")
            })
    }
}

/// Why the sidecar ended without its job being over.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The run directory or the socket in it.
    #[error(
        "cannot use {path}: {source}; choose a directory that this user may write with --run-dir"
    )]
    RunDir {
        /// What could not be made.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The store could not be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store is not fit.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The interval.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The connection to the agent cannot be made, ever.
    #[error("{0}")]
    Connect(String),
    /// The job's history.
    #[error(transparent)]
    Job(JobError),
    /// Another node took the job over.
    #[error("{0}")]
    Fenced(String),
    /// Our record of having the job is gone, and nobody else has it: the store was emptied or replaced below us.
    #[error(
        "{0}. But no other node has the job: its history in the store was removed or replaced meanwhile. The next sidecar \
         begins a new one, and the job runs on"
    )]
    HistoryLost(String),
    /// The store does not show the history that this machine knows of.
    #[error(
        "{store} does not show the history of job {job}, which had checkpoints there: mount its file system or correct --store; \
         to begin the job anew without them, give --start-fresh"
    )]
    HistoryAway {
        /// The store.
        store: String,
        /// The job.
        job: JobName,
    },
    /// This machine cannot take the image.
    #[error(transparent)]
    Check(#[from] CheckError),
    /// The job could not be resumed.
    #[error("{0}")]
    Restore(String),
    /// The GPU context is broken: a new process is needed.
    #[error("{0}; this process must be replaced, the job is not affected")]
    Sticky(String),
    /// Signals, threads.
    #[error("{0}")]
    System(std::io::Error),
}

impl EngineError {
    /// Whether the store does not show a history that was seen there.
    pub fn is_away(&self) -> bool {
        match self {
            EngineError::HistoryAway { .. } => true,
            EngineError::Job(JobError::Store(fault)) => fault.kind() == FaultKind::Absent,
            _ => false,
        }
    }

    /// Whether another node has the job.
    pub fn is_fenced(&self) -> bool {
        matches!(
            self,
            EngineError::Fenced(_) | EngineError::Job(JobError::Fenced { .. })
        )
    }
}

/// What outlives a connection.
struct Engine {
    /// In the store, whose log says who has the job; and our epoch there.
    job: Job,
    epoch: Option<Epoch>,
    /// The agent's socket.
    agent: PathBuf,
    /// The newest time at which a checkpoint became visible, here or in the store. Later ones are later, whatever the
    /// clocks say: with two places there is no other order.
    newest: UnixMillis,
    /// The tier on this machine, and what copies from there to the store.
    near: Option<Near>,
    /// Whether the checkpoint that is being stored goes there.
    writes_near: bool,
    copies: Option<Copies>,
    near_tidy: Tidy,
    remote_interval: Option<Duration>,
    remote_encoding: Arc<Adaptive>,
    gpus: Gpus,
    status: Shared,
    schedule: Schedule,
    restarts: Restarts,
    origin: Instant,
    from: Option<CheckpointId>,
    /// Whether the job is to begin with its first step; and whether it did in this process's time.
    start_fresh: bool,
    fresh: bool,
    /// What this machine remembers of the job's history.
    history: KnownHistory,
    unused_cpu_features: Vec<String>,
    /// Where checkpoints may be on this machine alone, and the address of the store that they belong to.
    state_dir: PathBuf,
    address: String,
    key: Option<Key>,
    /// How long the lease is, what this machine is called in it, and who renews it once the job is ours.
    lease: Duration,
    node: Node,
    keeper: Option<Keeper>,
    /// Whether the job runs here, as far as the agent said; and since when.
    job_runs: bool,
    running_since: UnixMillis,
    put_concurrency: usize,
    /// A checkpoint whose job runs again.
    flight: Option<Flight>,
    /// The attempt whose job is held.
    held: Option<Arc<Control>>,
    /// Clients that wait for the next checkpoint on demand, and for the one being made.
    wanted_now: Vec<Wanted>,
    serving: Vec<Wanted>,
    wanted: mpsc::Receiver<Wanted>,
    shutdown: Signals,
    demand: Signal,
    /// Device memory that the driver needs to bring the control state back, per GPU, in bytes: the most that
    /// was measured.
    reserve: BTreeMap<GpuUuid, u64>,
    /// What the last checkpoint measured.
    expected_dump: Duration,
    link_rate: u64,
    /// Snapshots in a row that had to make way for the job.
    crowded: u32,
    host_cache: Option<Arc<PackCache>>,
    disk_cache: Option<Arc<PackCache>>,
    /// See [`Config`].
    quiesce_timeout: Duration,
    /// Whether the job is held back for longer than a moment to fall quiet.
    long_tries: LongTries,
    /// What removes old checkpoints.
    tidy: Tidy,
    /// How chunks are written.
    encoding: Arc<Adaptive>,
    interval: Option<Duration>,
}

/// SIGTERM and SIGINT.
struct Signals {
    term: Signal,
    int: Signal,
    asked: Option<Instant>,
}

/// How long this process goes on after it was asked to end: so that a last checkpoint that the agent asks for at the same time is
/// not lost.
const LINGER: Duration = Duration::from_secs(2);
/// The cache in memory leaves one part in so many of it to others.
const HOST_SPARE: u64 = 20;
/// The same while a checkpoint is being stored, which a store that does not answer may never end. Below the time that whoever
/// asked waits before it kills (compose.yaml: 90 s).
const LAST_STORE: Duration = Duration::from_secs(60);

/// Waits for a request to end, and then until so much time has passed since. Once it came, it stays.
async fn stop_wanted(signals: &mut Signals, linger: Duration) {
    let asked = match signals.asked {
        Some(asked) => asked,
        None => {
            tokio::select! {
                _ = signals.term.recv() => {}
                _ = signals.int.recv() => {}
            }
            tracing::info!("asked to end");
            *signals.asked.insert(Instant::now())
        }
    };
    tokio::time::sleep_until((asked + linger).into()).await;
}

/// Options of a store in a program, whose jobs are encrypted with a key or not.
pub fn store_options(key: Option<Key>) -> StoreOptions {
    let nonces = NonceSource::new(|| {
        let mut nonce = [0_u8; 16];
        nonce[..8].copy_from_slice(&random_u64().to_le_bytes());
        nonce[8..].copy_from_slice(&random_u64().to_le_bytes());
        nonce
    });
    let mut options = StoreOptions::new(nonces);
    options.retry = RetryPolicy {
        jitter_seed: random_u64(),
        ..RetryPolicy::default()
    };
    options.encryption = key;
    options
}

/// A number from the operating system.
pub(crate) fn random_u64() -> u64 {
    let mut bytes = [0_u8; 8];
    let mut filled = 0;
    while filled < bytes.len() {
        match rustix::rand::getrandom(&mut bytes[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            // Linux has had getrandom since 3.17, and flags 0 cannot fail.
            Err(_) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    u64::from_le_bytes(bytes)
}

/// The time, for people.
pub fn unix_millis() -> UnixMillis {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    UnixMillis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// A time for people, of ms since 1970.
fn utc(millis: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
}

/// Makes the job's run directory, for this user to list and write.
///
/// # Errors
/// It cannot be made, or is another user's.
pub fn make_run_dir(run_dir: &Path, job: &JobName) -> Result<PathBuf, EngineError> {
    run_dir::make(run_dir, job.as_str()).map_err(|source| EngineError::RunDir {
        path: run_dir.join(job.as_str()),
        source,
    })
}

/// What this machine remembers of a job's history in a store. Blocks for a moment.
pub fn known_history(
    run_dir: &Path,
    state_dir: &Path,
    job: &JobName,
    store: &str,
) -> Option<Known> {
    let history = KnownHistory::new(&run_dir.join(job.as_str()), state_dir, job, store);
    history.recall().map(|remembered| remembered.known)
}

/// Opens a store to write a job's history: reachable, honest, of a format that is known, and with the job's key.
///
/// # Errors
/// Why it cannot be used.
pub async fn open_store_of(
    job: &JobName,
    address: &str,
    options: StoreOptions,
    known: Option<Known>,
) -> Result<Store, EngineError> {
    // Nothing is made in a directory on which its file system is not mounted.
    if known.is_some() && (Store::open_existing(address, options.clone()).await?).is_none() {
        return Err(EngineError::HistoryAway {
            store: address.to_owned(),
            job: job.clone(),
        });
    }
    let store = Store::open(address, options).await?;
    // Before anything is written there.
    let history = store.job(job.clone());
    history.expect(known);
    if let Err(e) = history.check_key().await {
        if !matches!(&e, JobError::Store(fault) if matches!(fault.kind(), FaultKind::Key | FaultKind::Absent))
        {
            // What is wrong with a store, the probe says better.
            store.probe().await?;
        }
        return Err(EngineError::Job(e));
    }
    make_ready(store).await
}

/// Opens a store to write, whatever the job: reachable, honest, of a format that is known.
///
/// # Errors
/// Why it cannot be used.
pub async fn open_store(address: &str, options: StoreOptions) -> Result<Store, EngineError> {
    make_ready(Store::open(address, options).await?).await
}

async fn make_ready(store: Store) -> Result<Store, EngineError> {
    store.probe().await?;
    store.initialise().await?;
    Ok(store)
}

/// The command that a checkpoint was made of, without secrets.
pub fn command_of(manifest: &Manifest) -> Option<Vec<String>> {
    image::Extra::parse(manifest)
        .ok()
        .map(|extra| mask::command(&extra.command))
}

/// Runs the sidecar until its job is over or it is told to end.
///
/// # Errors
/// Why it cannot go on.
pub async fn run(config: Config) -> Result<(), EngineError> {
    let directory = make_run_dir(&config.run_dir, &config.job)?;
    let term = signal(SignalKind::terminate()).map_err(EngineError::System)?;
    let int = signal(SignalKind::interrupt()).map_err(EngineError::System)?;
    let demand = signal(SignalKind::user_defined1()).map_err(EngineError::System)?;
    let schedule = Schedule::new(ScheduleConfig {
        interval: config.interval,
        ..ScheduleConfig::default()
    })?;
    let encoding = Arc::new(Adaptive::default());
    // Encodes for the store what comes from this machine's disk; without that tier it is the same.
    let remote_encoding = match &config.remote {
        Some(_) => Arc::new(Adaptive::default()),
        None => Arc::clone(&encoding),
    };
    let mut options = store_options(config.key.clone());
    options.encoding = remote_encoding.clone();
    options.s3.clone_from(&config.s3);
    if let Some(limit) = config.upload_limit {
        options.pacer = Some(Limit::new(limit));
    }
    let address = config.store.clone();
    let history = KnownHistory::new(&directory, &config.state_dir, &config.job, &address);
    let mut remembered = history.recall();
    match remembered {
        // Also where this sidecar replaces one that was started with it.
        Some(r) if config.start_fresh && r.fresh => tracing::info!(
            "--start-fresh counts once: what was begun with it is expected in the store. To begin anew once more, give another \
             --job name"
        ),
        Some(_) if config.start_fresh => {
            history.forget();
            remembered = None;
        }
        Some(r) if r.fresh => history.note(Remembered { fresh: false, ..r }, unix_millis()),
        _ => {}
    }
    let known = remembered.map(|r| r.known);
    if config.key.is_none() && phos_storage::is_remote(&config.store) {
        tracing::warn!(
            "the store is not encrypted: who may write to it can run programs on the machine that resumes the job next, as root, \
             and who may read it has what the job has in memory. Give --encryption-key-file (`phos-ft keygen`), or \
             let nobody else there"
        );
    }
    let disk_cache = (config.cache.as_ref()).and_then(|place| open_cache(place, &config.store));
    let mut shutdown = Signals {
        term,
        int,
        asked: None,
    };
    let host_cache = config.host_cache.map(host_cache);
    let near = open_near(&config, &encoding, host_cache.as_ref()).await;
    // Checkpoints that go to the store by way of this machine's disk would be in memory twice.
    let in_memory = host_cache.iter().filter(|_| near.is_none());
    options.caches = in_memory.chain(&disk_cache).cloned().collect();
    let store = tokio::select! {
        store = open_store_patiently(&config.store, &config.job, &options, known) => store?,
        () = stop_wanted(&mut shutdown, Duration::ZERO) => return Ok(()),
    };
    let copies = (config.remote.as_ref()).map(|(every, _)| Copies::new(*every));
    let host_buffer = config.host_buffer;
    let gpus = tokio::task::spawn_blocking(move || {
        let mut gpus = Gpus::discover(host_buffer);
        // With one GPU it is clear which will be needed.
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
    let status = Shared::new(Report {
        job: config.job.to_string(),
        store: config.store.clone(),
        state: "waiting for the agent".into(),
        interval_seconds: config.interval.map_or(0.0, |i| i.as_secs_f64()),
        ..Report::default()
    });
    let (sender, wanted) = mpsc::channel(16);
    let socket = directory.join(control::SOCKET_FILE);
    let _control =
        control::serve(&socket, status.clone(), sender).map_err(|source| EngineError::RunDir {
            path: socket.clone(),
            source,
        })?;
    let job = store.job(config.job.clone());
    job.expect(known);
    let mut engine = Engine {
        job,
        epoch: None,
        agent: directory.join(AGENT_SOCKET_FILE),
        newest: UnixMillis(0),
        copies: copies.filter(|_| near.is_some()),
        near,
        writes_near: false,
        near_tidy: copies::near_tidy(),
        remote_interval: config.remote.as_ref().map(|(every, _)| *every),
        remote_encoding,
        gpus,
        status,
        schedule,
        restarts: Restarts::new(config.restarts),
        origin: Instant::now(),
        quiesce_timeout: config.quiesce_timeout,
        long_tries: LongTries::default(),
        from: config.from,
        start_fresh: config.start_fresh,
        fresh: config.start_fresh,
        history,
        unused_cpu_features: config.unused_cpu_features,
        state_dir: config.state_dir.clone(),
        address: config.store.clone(),
        key: config.key.clone(),
        lease: config.lease,
        node: Node::new(config.node.as_deref()),
        keeper: None,
        job_runs: false,
        running_since: UnixMillis(0),
        put_concurrency: options.encoders * 2,
        flight: None,
        held: None,
        wanted_now: Vec::new(),
        serving: Vec::new(),
        wanted,
        shutdown,
        demand,
        reserve: BTreeMap::new(),
        expected_dump: Duration::from_secs(1),
        link_rate: 10_000_000_000,
        crowded: 0,
        tidy: Tidy::new(config.retention),
        encoding,
        host_cache,
        disk_cache,
        interval: config.interval,
    };
    let outcome = engine.serve().await;
    engine.settle().await;
    if let Some(keeper) = engine.keeper.take()
        && !engine.job_runs
    {
        keeper.release().await;
    }
    outcome
}

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
    let has_room = |bytes: u64| {
        host_memory::now().is_none_or(|memory| {
            memory.available >= bytes.saturating_add(memory.total / HOST_SPARE)
        })
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
async fn open_near(
    config: &Config,
    encoding: &Arc<Adaptive>,
    cache: Option<&Arc<PackCache>>,
) -> Option<Near> {
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
    // Next to a network a disk needs few.
    options.uploads = 2;
    options.fetches = 2;
    options.caches.extend(cache.cloned());
    let (job, store) = (config.job.clone(), config.store.clone());
    let prepared =
        tokio::task::spawn_blocking(move || Near::prepare(&state_dir, &job, &store, options)).await;
    match prepared {
        Ok(Ok(near)) => Some(near),
        Ok(Err(e)) => {
            no_near(&e);
            None
        }
        Err(_) => None,
    }
}

/// Nothing is stored on this machine by this process, which takes a job over.
fn without_near(near: &mut Near, error: &NearError, back: Option<GoBack>) {
    no_near(error);
    near.forget();
    if let Some(back) = back {
        near.could_not_go_back(back);
    }
}

fn no_near(error: &dyn std::fmt::Display) {
    tracing::error!(
        %error,
        "no checkpoints are kept on this machine, each goes to the store at once: make the directory writable, or \
         choose another with --state-dir"
    );
}

/// Opens the store; waits for one that is merely not reachable now, since the job may be running.
async fn open_store_patiently(
    address: &str,
    job: &JobName,
    options: &StoreOptions,
    known: Option<Known>,
) -> Result<Store, EngineError> {
    let mut wait = Duration::from_secs(1);
    loop {
        match open_store_of(job, address, options.clone(), known).await {
            Err(e) if e.is_away() => {
                tracing::error!(error = %e, "THE JOB WAITS FOR ITS HISTORY, and is not begun anew without it");
            }
            Err(EngineError::Open(e)) if !e.is_permanent() => {
                tracing::error!(error = %e, "the store cannot be opened yet");
            }
            Err(EngineError::Probe(e)) if !e.is_permanent() => {
                tracing::error!(error = %e, "the store cannot be used yet");
            }
            Err(EngineError::Job(e)) if !e.is_permanent() => {
                tracing::error!(error = %e, "the job's history cannot be read yet");
            }
            other => return other,
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(Duration::from_secs(30));
    }
}

impl Engine {
    fn now(&self) -> Duration {
        self.origin.elapsed()
    }

    async fn serve(&mut self) -> Result<(), EngineError> {
        let mut said = false;
        loop {
            match Link::connect(&self.agent) {
                Ok(link) => match self.session(link).await? {
                    SessionEnd::Over => return Ok(()),
                    SessionEnd::Lost(reason) => {
                        tracing::warn!(reason, "the connection to the agent is lost");
                        self.status.state("waiting for the agent");
                        said = false;
                    }
                },
                Err(e) if e.is_transient() => {
                    if !said {
                        tracing::info!("waiting: {e}");
                        said = true;
                    }
                }
                Err(e) => return Err(EngineError::Connect(e.to_string())),
            }
            let Engine { shutdown, .. } = &mut *self;
            tokio::select! {
                () = stop_wanted(shutdown, LINGER) => return Ok(()),
                () = tokio::time::sleep(Duration::from_millis(200)) => {}
            }
        }
    }

    async fn session(&mut self, link: Link) -> Result<SessionEnd, EngineError> {
        match Session::open(self, link).await {
            Ok(Some((session, job))) => session.run(job).await,
            Ok(None) => Ok(SessionEnd::Lost(
                "another sidecar serves this job; waiting for it to end".into(),
            )),
            Err(e) => Ok(SessionEnd::Lost(e.to_string())),
        }
    }

    /// Takes the job over, once; `mark` names the agent whose job it is.
    async fn take_over(&mut self, mark: &str) -> Result<(), EngineError> {
        if self.epoch.is_some() {
            return Ok(());
        }
        let mut seen = None;
        // One on this machine is known once the tier is open.
        let mut back = match self.from {
            _ if self.start_fresh => Some(GoBack::Beginning),
            Some(id) if !id.local => {
                Some(GoBack::to(&self.job, id).await.map_err(EngineError::Job)?)
            }
            _ => None,
        };
        if let Some(near) = &mut self.near {
            let state = self.job.state().await.map_err(EngineError::Job)?;
            let standing = near.standing(&self.job, &state).await;
            let standing = standing.map_err(EngineError::Job)?;
            let noted = near.before(self.job.name(), standing, &state).await;
            seen = Some(state);
            if let (Some(id), Some(here)) = (self.from.filter(|id| id.local), near.reading()) {
                back = Some(GoBack::to(here, id).await.map_err(EngineError::Job)?);
            }
            if let Err(e) = noted {
                without_near(near, &e, back);
            }
        }
        let tier =
            (self.near.as_ref()).map_or_else(String::new, |near| format!(", {}", near.mark()));
        let holder = format!("{} (pid {}, {mark}{tier})", hostname(), std::process::id());
        let taken = branch::take_over(&self.job, false, back, &holder)
            .await
            .map_err(EngineError::Job)?;
        if let (Some(near), Some(state)) = (&mut self.near, &seen)
            && let Err(e) = near
                .taken(self.job.name(), state, taken, &holder, back)
                .await
        {
            without_near(near, &e, back);
        }
        if !self.job.store().is_discarding() {
            // What was found is what is there from now on, for the life of this process.
            let known = self.job.known().await.map_err(EngineError::Job)?;
            self.job.expect(known);
            self.look_at_both().await?;
        }
        tracing::info!(
            epoch = taken.epoch.0,
            previous = taken.previous.map(|e| e.0),
            "took the job over"
        );
        self.epoch = Some(taken.epoch);
        if !self.job.store().is_discarding() {
            let said = self.status.clone();
            let keeper = Keeper::start(
                &self.job,
                taken.epoch,
                &holder,
                &self.node,
                self.lease,
                said,
            );
            self.keeper = Some(keeper);
        }
        Ok(())
    }

    /// What a sidecar before us left on this machine goes on to the store, and what comes later is later.
    async fn look_at_both(&mut self) -> Result<(), EngineError> {
        let listed = self.job.list().await.map_err(EngineError::Job)?;
        let newest = listed.checkpoints.iter().map(|c| c.created).max();
        self.newest = newest.unwrap_or(UnixMillis(0));
        if newest.is_some() {
            self.remember();
        }
        let Some(near) = self.near.as_ref().and_then(Near::reading) else {
            return Ok(());
        };
        match near.list().await {
            Ok(listed) => {
                let here = listed.checkpoints.iter().map(|c| c.created).max();
                if here.is_some() {
                    self.remember();
                }
                if let Some(copies) = self.copies.as_mut().filter(|_| here > newest) {
                    copies.stored_here(true);
                }
                self.newest = self.newest.max(here.unwrap_or(UnixMillis(0)));
            }
            // A restore says so as well, and goes on with the store's.
            Err(e) => tracing::error!(error = %e, "the checkpoints on this machine cannot be read"),
        }
        Ok(())
    }

    fn is_in_flight(&self) -> bool {
        self.flight.is_some()
    }

    fn cancel_flight(&self, reason: &str) {
        for control in self.flight.iter().map(|f| &f.control).chain(&self.held) {
            control.cancel_for_others(reason);
        }
    }

    /// Gives device memory back to the job, if a snapshot holds any. How much it was.
    async fn release_memory(&mut self) -> u64 {
        let mut freed = 0;
        for control in self.flight.iter().map(|f| &f.control).chain(&self.held) {
            let held = control.snapshot_bytes();
            if held == 0 {
                continue;
            }
            freed += held;
            control.cancel_for_others("the job needed the device memory that the snapshot held");
            let deadline = Instant::now() + Duration::from_secs(5);
            while control.snapshot_bytes() > 0 && Instant::now() < deadline {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
        self.crowded += u32::from(freed > 0);
        freed
    }

    /// Before the process ends: lets a checkpoint that is under way become visible.
    async fn settle(&mut self) {
        if self.flight.is_none() {
            return;
        }
        tracing::info!("storing the last checkpoint");
        let until = self.shutdown.asked.unwrap_or_else(Instant::now) + LAST_STORE;
        let landed = attempt::landed(&mut self.flight);
        match tokio::time::timeout_at(until.into(), landed).await {
            Ok(Ok(stored)) => tracing::info!(id = stored.report.id, "checkpoint"),
            Ok(Err(dropped)) => tracing::error!(reason = dropped.message, "checkpoint given up"),
            Err(_) => tracing::error!("the last checkpoint could not be stored in time"),
        }
        self.flight = None;
    }
}

fn hostname() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}
