//! The sidecar: checkpoints of the job while it runs, and its return after a crash.
//!
//! * [`lifecycle`]: the job from its start to its end, over a [`session`] with the agent;
//! * [`checkpoint`]: one checkpoint, from its trigger until it is visible; [`restore`]: the way back;
//! * [`ownership`]: who has the job; [`history`]: what the logs say of that;
//! * [`tiers`]: the store, the tier on this machine, and what is exchanged between them;
//! * [`memory`]: the job's device memory as the sidecar holds it; [`image`]: what a manifest says of all this;
//! * [`control`]: the sidecar's own socket, which tells what `report` has;
//! * [`setup`], [`stores`], [`config`]: the start.
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

mod checkpoint;
mod config;
pub mod control;
mod cpu;
mod error;
mod history;
mod image;
mod lifecycle;
mod memory;
mod ownership;
mod progress;
mod reading;
mod restore;
mod session;
mod setup;
mod signals;
mod stores;
mod system;
mod tiers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_policies::preemption::PreemptionPlan;
use phos_policies::restart::Restarts;
use phos_policies::schedule::{Schedule, Trigger};
use phos_policies::spare_time;
use phos_policies::tries::Habit;
use phos_protocol::shim::Newest;
use phos_shared::mask;
use phos_storage::{Job, Manifest, PackCache, UnixMillis};
use tokio::signal::unix::Signal;
use tokio::sync::mpsc;

use self::checkpoint::InProgress;
use self::checkpoint::buffer::Buffer;
use self::checkpoint::interval::ChosenInterval;
use self::checkpoint::planning::Planning;
use self::control::socket::Wanted;
use self::lifecycle::SessionEnd;
use self::memory::gpus::Gpus;
use self::ownership::Ownership;
use self::session::link::Link;
use self::session::{Session, Stop};
use self::signals::{LAST_STORE, LINGER, Signals, asked_to_end, stop_wanted};
use self::stores::STORE_WAITS;
use self::system::{hostname, utc};
use self::tiers::Tiers;

use crate::background::Background;
use crate::preemption;
use crate::report::event::Event;
use crate::report::shared::Shared;

pub use self::config::{CheckpointId, Config, CopyBeside, Interval, Start, Tier};
pub use self::error::EngineError;
pub use self::reading::{Reading, reader};
pub use self::restore::checks;
pub use self::stores::{known_history, make_run_dir, open_store, open_store_of, store_options};
pub(crate) use self::system::random_u64;
pub use self::system::unix_millis;
pub use self::tiers::collect::keep;
pub use self::tiers::local::look as look_at_local_tier;

/// What outlives a connection to the agent.
struct Engine {
    /// The job's history in the store, whose log says who has the job.
    job: Job,
    /// The path of the agent's socket.
    agent: PathBuf,
    ownership: Ownership,
    tiers: Tiers,
    caches: Caches,
    /// The size of the last CPU image in bytes.
    cpu_image: u64,
    gpus: Gpus,
    planning: Planning,
    buffer: Buffer,
    in_progress: InProgress,
    /// Where checkpoints are stored beside the job.
    background: Background,
    requests: Requests,
    resume: ResumeOptions,
    run: JobRun,
    status: Shared,
    schedule: Schedule,
    restarts: Restarts,
    /// At what moments the job falls quiet.
    habit: Habit,
    /// The newest checkpoint of the job's life, as its program is told.
    newest: Option<Newest>,
    /// How long a checkpoint continues to try to have the job fall quiet.
    quiesce_timeout: Duration,
    /// The longest that one try may hold the job.
    hold_limit: Duration,
    /// Whether memory is copied while the job runs.
    copy_beside: CopyBeside,
    /// The time between checkpoints.
    interval: ChosenInterval,
    /// How many chunks are encoded and sent at a time.
    put_concurrency: usize,
    /// The instant from which the policies count their time.
    origin: Instant,
    signals: Signals,
    /// SIGUSR1: a checkpoint now.
    demand: Signal,
    preemption: Preemption,
}

/// Whether this machine will be taken away, and what is done about it.
struct Preemption {
    notices: preemption::Watching,
    plan: PreemptionPlan,
}

impl Preemption {
    fn new(config: &preemption::Config) -> Preemption {
        Preemption {
            notices: preemption::watch(config),
            plan: PreemptionPlan::default(),
        }
    }
}

/// Packs that are kept on this machine.
struct Caches {
    memory: Option<Arc<PackCache>>,
    disk: Option<Arc<PackCache>>,
}

/// Clients that want a checkpoint now.
struct Requests {
    /// Requests that were not taken in yet.
    incoming: mpsc::Receiver<Wanted>,
    /// Requests that wait for the next checkpoint.
    next: Vec<Wanted>,
    /// Requests that the checkpoint being made is for.
    current: Vec<Wanted>,
}

impl Requests {
    /// A checkpoint is begun: whom it is for.
    fn serve(&mut self, trigger: Trigger) {
        self.current = match trigger {
            Trigger::OnDemand => std::mem::take(&mut self.next),
            Trigger::Interval | Trigger::Preemption | Trigger::Terminate => Vec::new(),
        };
    }
}

/// What the start of the job was asked to do. It counts for that start alone.
struct ResumeOptions {
    /// Resume from this checkpoint first.
    from: Option<CheckpointId>,
    /// How the job starts.
    start: Start,
    /// CPU features that the job does not use although it could find them, as `/proc/cpuinfo` names them.
    unused_cpu_features: Vec<String>,
}

impl ResumeOptions {
    /// The job was started: what comes after a crash now is its newest checkpoint.
    fn had_its_turn(&mut self) {
        self.from = None;
        self.start = Start::Resume;
    }
}

/// Whether the job runs, as the agent said last.
struct JobRun {
    running: bool,
    /// The time from which that is so.
    since: UnixMillis,
}

/// The command that a checkpoint was made of, without secrets.
pub fn command_of(manifest: &Manifest) -> Option<Vec<String>> {
    image::Extra::parse(manifest)
        .ok()
        .map(|extra| mask::command(&extra.command))
}

/// The last step before a checkpoint, if the program told its steps.
pub fn step_of(manifest: &Manifest) -> Option<u64> {
    image::step(manifest)
}

/// Runs the sidecar until its job is over or it is told to end.
///
/// # Errors
/// Why the sidecar cannot continue.
pub async fn run(config: Config) -> Result<(), EngineError> {
    let Some((mut engine, seen)) = setup::engine(config).await? else {
        return Ok(());
    };
    let outcome = engine.serve().await;
    engine.settle().await;
    if let Some(keeper) = engine.ownership.keeper.take()
        && !engine.run.running
    {
        keeper.release().await;
    }
    tokio::join!(engine.status.journal().end(), seen.settle());
    outcome
}

/// Says why checkpoints are not kept on this machine.
fn no_local_tier(error: &dyn std::fmt::Display) {
    tracing::error!(
        %error,
        "no checkpoints are kept on this machine, each goes to the store at once: make the directory writable, or \
         choose another with --state-dir"
    );
}

impl Engine {
    /// Something happened just now.
    fn happened(&self, event: Event) {
        self.status.happened(unix_millis(), event);
    }

    /// How long a checkpoint that began so long ago, and that nobody waits for, still takes nothing but what the job leaves of the processors, however little.
    fn patience(&self, ago: Duration) -> Duration {
        if self.signals.asked.is_some() {
            // This process does.
            return Duration::ZERO;
        }
        let interval = self.interval.current();
        let left = interval.map(|interval| interval.saturating_sub(ago));
        spare_time::at_most(left, self.last_took())
    }

    /// The time that policies are given: since the sidecar's origin.
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
            tokio::select! {
                () = stop_wanted(&mut self.signals, LINGER) => return Ok(()),
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
            Err(Stop::Link(e)) => Ok(SessionEnd::Lost(e.to_string())),
            Err(Stop::Over) => Ok(SessionEnd::Over),
            Err(Stop::Engine(e)) => Err(e),
        }
    }
}
