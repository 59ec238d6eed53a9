//! PID 1 of the job: the main loop.
//!
//! One thread polls everything and owns all state; what blocks (driver calls, CRIU, opening the driver) runs in
//! [`Worker`] threads that send one value back. So reaping, signals and the ends of connections are noticed at any
//! time, and no state is shared.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`turn`] | what is listened to, in which order |
//! | [`life`] | how the job starts and ends, and who decides what comes then |
//! | [`stopping`] | signals, and how the agent comes to its end |
//! | [`requests`] | what the sidecar asks for |
//! | [`shim_events`] | what the shims say |
//! | [`attempt`] | how the decisions of [`crate::attempt`] are carried out |
//! | [`restore`] | the steps of a restore |
//! | [`worker`] | what runs beside the loop |
//! | [`run_directory`], [`fence`] | that one agent has the job, here and anywhere |
//!
//! # Crash
//!
//! This process is PID 1: when it ends, in whatever way, the kernel ends every process of the job. Nothing has to be cleaned up
//! then but the sockets' paths, which the next agent replaces.

mod attempt;
mod credit;
mod fence;
mod hints;
mod life;
mod ranks;
mod rejoin;
mod requests;
mod restore;
mod run_directory;
mod shim_events;
mod stopping;
mod turn;
mod worker;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_protocol::agent::{Exit, JobState};
use phos_protocol::shim::Sequence;
use phos_protocol::types::{GpuUuid, ProcessId};

use self::attempt::Checkpoint;
use self::hints::Hints;
use self::life::{Decision, Kill};
use self::ranks::Lost;
use self::requests::{Notice, Watching};
use self::restore::{Incoming, Restore};
use self::run_directory::open_job_dir;
use self::stopping::Ending;
use self::turn::REMIND;
use self::worker::Worker;
use crate::AgentError;
use crate::channels::link::Listener;
use crate::channels::shims::{ConnectionId, CudaProcess, ShimServer};
use crate::channels::sidecar_link::SidecarServer;
use crate::config::AgentConfig;
use crate::control::Control;
use crate::criu;
use crate::image::ImageDirectory;
use crate::job::namespace::PidCounter;
use crate::job::signals::{SignalDescriptor, Signals};
use crate::job::spawn::{self, InstalledShim, NofileLimit};
use crate::job::stdio::{Generation, Stdio};
use crate::network::addresses;
use crate::survey::Survey;
use crate::user::JobUser;
use crate::vault::Vault;
use crate::vault::multicast::Multicasts;

/// What the agent knows of the job as a whole.
#[derive(Debug)]
struct Job {
    state: JobState,
    /// The PID of the job's main process; `None` while none runs.
    root: Option<ProcessId>,
    /// Whether its present processes were restored.
    restored: bool,
    /// How often the job was brought back by this agent.
    restarts: u32,
    /// The streams of the current generation, if there is one.
    streams: Option<Generation>,
    /// The library of the shim that the job's processes have mapped.
    shim: Option<InstalledShim>,
    /// The socket its shims look for, when it is another than the agent's.
    other_socket: Option<PathBuf>,
    /// What its processes call their GPUs → where these are: see [`moved`](crate::restore::gpus::moved).
    moved: Vec<(GpuUuid, GpuUuid)>,
}

/// What jobs are started, looked at and brought back with.
#[derive(Debug)]
struct Tools {
    /// The PID counter of the namespace.
    pids: Arc<PidCounter>,
    /// The limit of open files that the job gets.
    limit: NofileLimit,
    /// The shim that is preloaded into a job that is started afresh.
    installed_shim: Option<InstalledShim>,
    /// Whom the job runs as, if not as this process's user.
    user: Option<JobUser>,
    /// The ends of the standard streams that are the agent's.
    stdio: Stdio,
    /// The driver's checkpoint calls.
    control: Control,
    /// CRIU, once it was found and checked.
    criu: Option<criu::Criu>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Init {
    config: AgentConfig,
    /// A random number by which a sidecar that connects again knows whether this is still the same agent.
    id: u64,
    signals: SignalDescriptor,
    tools: Tools,
    worker: Worker,
    shims: ShimServer,
    sidecar: SidecarServer,
    vault: Vault,
    /// The multicast objects of its processes.
    multicasts: Multicasts,
    /// The processes of the job that use CUDA.
    processes: BTreeMap<ProcessId, CudaProcess>,
    job: Job,
    survey: Survey,
    checkpoint: Checkpoint,
    restore: Option<Restore>,
    /// A sidecar has said hello during a restore that another one began.
    welcome_is_due: bool,
    /// What the sidecar has brought for a restore.
    incoming: Incoming,
    /// Directories of images that the sidecar still reads.
    images: BTreeMap<Sequence, Arc<ImageDirectory>>,
    /// Shims that wait for device memory.
    waiting_for_memory: Vec<ConnectionId>,
    /// What the sidecar was told of processes that rule checkpoints out.
    notice: Notice,
    /// The number of the newest attempt, whichever sidecar made it.
    last_seq: Sequence,
    /// Ranks that have failed while the job goes on.
    lost: Lost,
    /// Until the attempt begins that is to begin when a process waits for its work.
    watching: Option<Watching>,
    /// What the job's program says of itself.
    hints: Hints,
    /// The epoch in the store that the job's processes belong to; 0: no sidecar said.
    epoch: u64,
    decision: Decision,
    kill: Kill,
    /// Ends of processes nobody knew (yet): a restored job may end before CRIU reports it.
    early_exits: BTreeMap<ProcessId, Exit>,
    ending: Ending,
    /// Held for the agent's life: one agent per job.
    _lock: File,
}

/// Runs the agent as PID 1; returns the exit code.
///
/// # Errors
/// [`AgentError`].
pub(super) fn run(mut config: AgentConfig) -> Result<i32, AgentError> {
    config.visible_devices = hide_visible_devices();
    let mut init = Init::new(config)?;
    init.begin();
    loop {
        init.turn()?;
        if let Some(error) = init.ending.failed.take() {
            init.end();
            return Err(error);
        }
        if let Some(code) = init.ending.exit {
            init.end();
            return Ok(code);
        }
    }
}

/// Takes `CUDA_VISIBLE_DEVICES` out of the agent's own environment: it is for the job, and the agent has to tell the driver
/// of every GPU there is when it moves a process.
fn hide_visible_devices() -> Option<OsString> {
    const NAME: &str = "CUDA_VISIBLE_DEVICES";
    let value = std::env::var_os(NAME);
    // SAFETY: PID 1 of a new namespace, before it starts its first thread.
    unsafe { std::env::remove_var(NAME) };
    value
}

impl Init {
    fn new(config: AgentConfig) -> Result<Self, AgentError> {
        let system =
            |what: &'static str| move |cause: std::io::Error| AgentError::System { what, cause };
        let signals = Signals::block()
            .and_then(|signals| signals.descriptor())
            .map_err(system("open a signal descriptor"))?;
        let limit = NofileLimit::raise();
        let pids = Arc::new(PidCounter::open()?);
        let (dir, lock) = open_job_dir(&config)?;
        fence::check(&config.job, &dir)?;
        let shim = config
            .locate_shim()?
            .map(|from| spawn::install_shim(&from, &dir))
            .transpose()?;
        // Said before anything is trained, and again with each checkpoint that is refused for it.
        let criu = criu::for_config(&config)
            .map_err(|e| tracing::warn!(cause = %e, "there will be no checkpoints"))
            .ok();
        let stdio = Stdio::new().map_err(system("set up the standard streams"))?;
        let control = Control::default();
        control.warm();
        let socket = config.agent_socket();
        let listener = Listener::bind(&socket, 0o600).map_err(|cause| AgentError::Socket {
            path: socket,
            cause,
        })?;
        let sidecar = SidecarServer::new(listener, config.timeouts.send);
        let mut id = [0_u8; 8];
        let _ = rustix::rand::getrandom(&mut id, rustix::rand::GetRandomFlags::empty());
        Ok(Self {
            id: u64::from_ne_bytes(id),
            signals,
            job: Job {
                state: JobState::Waiting,
                root: None,
                restored: false,
                restarts: 0,
                streams: None,
                shim: shim.clone(),
                other_socket: None,
                moved: Vec::new(),
            },
            tools: Tools {
                pids,
                limit,
                installed_shim: shim,
                user: config.job_user()?,
                stdio,
                control,
                criu,
            },
            shims: ShimServer::default(),
            sidecar,
            vault: Vault::default(),
            multicasts: Multicasts::default(),
            processes: BTreeMap::new(),
            checkpoint: Checkpoint::new(config.timeouts.clone()),
            restore: None,
            welcome_is_due: false,
            worker: Worker::new().map_err(system("make an event descriptor"))?,
            images: BTreeMap::new(),
            incoming: Incoming::default(),
            waiting_for_memory: Vec::new(),
            notice: Notice::default(),
            survey: Survey::default(),
            last_seq: 0,
            watching: None,
            hints: Hints::default(),
            lost: Lost::default(),
            decision: Decision::default(),
            kill: Kill::default(),
            early_exits: BTreeMap::new(),
            epoch: 0,
            ending: Ending::default(),
            _lock: lock,
            config,
        })
    }

    fn begin(&mut self) {
        match self.config.sidecar_wait {
            Some(Duration::ZERO) => self.start_job(),
            wait => {
                // Nobody shall wonder why nothing happens.
                let at_most = wait.map_or("forever".into(), |w| format!("{w:?}"));
                tracing::info!(
                    at_most,
                    "waiting for the sidecar, which looks for a checkpoint to resume; the command starts then"
                );
                self.decision.by = wait.map(|w| Instant::now() + w);
                self.decision.remind_at = Some(Instant::now() + REMIND);
            }
        }
    }

    /// Output to the end, then everything goes with this process.
    fn end(&mut self) {
        self.kill_everything();
        if let Some(streams) = &self.job.streams {
            streams.finish(Duration::from_secs(2));
        }
        self.shims.stop_listening();
        addresses::withdraw();
    }
}
