//! PID 1 of the job: the main loop.
//!
//! One thread polls everything and owns all state; what blocks (driver calls, CRIU, opening the driver) runs in
//! [`Worker`] threads that send one value back. So reaping, signals and the ends of connections are noticed at any
//! time, and no state is shared.
//!
//! # Crash
//!
//! This process is PID 1: when it ends, however, the kernel ends every process of the job. Nothing has to be cleaned
//! up then but the sockets' paths, which the next agent replaces.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::unistd::Pid;
use phos_protocol::agent::{Exit, JobState, ToAgent, ToSidecar};
use phos_protocol::shim::{HELD, Refusal, Sequence, ShimState, ToAgent as FromShim, ToShim};
use phos_protocol::types::{Allocation, AllocationKey, Device, GpuUuid, ProcessId};
use rustix::event::{PollFd, PollFlags, poll};

use super::attempt::Attempt;
use super::config::AgentConfig;
use super::control::{Control, save_before_kill};
use super::dump::DumpFailure;
use super::fence;
use super::image::ImageDirectory;
use super::link::{Listener, timespec};
use super::namespace::{PidCounter, all_ids, first_job_pid, free_range};
use super::restore::Restore;
use super::revive::ReviveError;
use super::shims::{ConnectionId, CudaProcess, ShimEvent, ShimServer, listen_paths, watch};
use super::sidecar_link::{SidecarEvent, SidecarServer};
use super::signals;
use super::spawn::{self, InstalledShim, NofileLimit};
use super::stdio::{Generation, Stdio};
use super::survey::Survey;
use super::user::JobUser;
use super::vault::{Entry, Vault};
use super::{AgentError, addresses, criu, lines, way};
use crate::{known_history, run_dir};

/// How long saving the CUDA state of a job that is to be killed may take once it is locked.
const SAVE: Duration = Duration::from_secs(30);

/// What a worker brings back.
#[derive(Debug)]
pub(super) enum Done {
    /// [`dump`](super::dump::dump) ended.
    Dumped(Result<Box<phos_protocol::agent::DumpFacts>, DumpFailure>),
    /// The dump of this attempt has saved the control state and goes on.
    ControlSaved(phos_protocol::shim::Sequence),
    /// [`revive`](super::revive::revive) ended.
    Revived(Result<(ProcessId, phos_protocol::agent::RestoreTimes), ReviveError>),
    /// The CUDA state of a job about to be killed was saved, as far as it went.
    Saved,
    /// Whether the files that an image needs are here.
    FilesChecked(Result<(), String>),
}

/// Threads for what blocks, and the way their results come back.
#[derive(Debug)]
pub(super) struct Worker {
    sender: Sender<Done>,
    results: Receiver<Done>,
    wake: Arc<OwnedFd>,
}

impl Worker {
    fn new() -> std::io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let (sender, results) = channel();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            sender,
            results,
            wake: Arc::new(wake),
        })
    }

    /// Runs `work` in a thread. What it gives to the function it gets arrives before its result.
    pub(super) fn run(
        &self,
        name: &str,
        work: impl FnOnce(&dyn Fn(Done)) -> Done + Send + 'static,
    ) -> std::io::Result<()> {
        let sender = self.sender.clone();
        let wake = Arc::clone(&self.wake);
        let tell = move |done| {
            // The receiver lives as long as the process.
            let _ = sender.send(done);
            let _ = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
        };
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || tell(work(&tell)))
            .map(drop)
    }

    fn take(&self) -> Option<Done> {
        let mut count = [0_u8; 8];
        let _ = rustix::io::read(&*self.wake, &mut count);
        self.results.try_recv().ok()
    }
}

/// The job as a whole.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) state: JobState,
    /// Its main process.
    pub(super) root: Option<ProcessId>,
    /// Whether its present processes were restored.
    pub(super) restored: bool,
    /// How often it was brought back.
    pub(super) restarts: u32,
    /// Its streams.
    pub(super) streams: Option<Generation>,
    /// The shim its processes have mapped.
    pub(super) shim: Option<InstalledShim>,
    /// The socket its shims look for, when it is another than the agent's.
    pub(super) other_socket: Option<PathBuf>,
    /// What its processes call their GPUs → where these are: see [`moved`](super::gpus::moved).
    pub(super) moved: Vec<(GpuUuid, GpuUuid)>,
}

/// SIGTERM was received.
#[derive(Debug)]
struct Stopping {
    /// The sidecar may work until then.
    sidecar_until: Option<Instant>,
    kill_at: Instant,
    signalled: bool,
    killed: bool,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Init {
    pub(super) config: AgentConfig,
    id: u64,
    pub(super) pids: Arc<PidCounter>,
    signals: SignalFd,
    limit: NofileLimit,
    installed_shim: Option<InstalledShim>,
    /// Whom the job runs as, if not as this process's user.
    pub(super) user: Option<JobUser>,
    pub(super) stdio: Stdio,
    pub(super) control: Control,
    pub(super) criu: Option<criu::Criu>,
    pub(super) shims: ShimServer,
    pub(super) sidecar: SidecarServer,
    pub(super) vault: Vault,
    pub(super) processes: BTreeMap<ProcessId, CudaProcess>,
    pub(super) job: Job,
    pub(super) attempt: Option<Attempt>,
    pub(super) restore: Option<Restore>,
    pub(super) worker: Worker,
    /// Directories of images that the sidecar still reads.
    pub(super) images: BTreeMap<Sequence, Arc<ImageDirectory>>,
    /// The directory that the sidecar fills for a restore.
    pub(super) incoming: Option<Arc<ImageDirectory>>,
    /// The memory for a restore.
    pub(super) incoming_memory: Vec<(Allocation, OwnedFd)>,
    /// Shims that wait for device memory.
    waiting_for_memory: Vec<ConnectionId>,
    /// When the sidecar was told last what rules checkpoints out, and when to tell it again.
    told_unsupported: Option<Instant>,
    tell_unsupported_at: Option<Instant>,
    pub(super) survey: Survey,
    pub(super) last_seq: Sequence,
    stopping: Option<Stopping>,
    /// When the job was last sent SIGINT or SIGQUIT by somebody.
    interrupted: Option<Instant>,
    /// Until when the agent waits for `Start`, `Restore` or `GiveUp`.
    decide_by: Option<Instant>,
    /// When to say again that a sidecar is waited for.
    remind_at: Option<Instant>,
    /// A start that waits for the old tree to go.
    start_wanted: bool,
    /// SIGKILL was sent to everything; until when it may take.
    pub(super) killing: Option<Instant>,
    /// The CUDA state of a job that is to be killed is being saved; it is killed then at the latest.
    saving: Option<Instant>,
    /// Ends of processes nobody knew (yet): a restored job may end before CRIU reports it.
    pub(super) early_exits: BTreeMap<ProcessId, Exit>,
    /// The epoch in the store that the job's processes belong to; 0: no sidecar said.
    epoch: u64,
    /// Another node has the job: who, as the sidecar said. The job is being ended.
    fenced: Option<String>,
    exit: Option<i32>,
    failed: Option<AgentError>,
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
        if let Some(error) = init.failed.take() {
            init.end();
            return Err(error);
        }
        if let Some(code) = init.exit {
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
        let signals = signals::open().map_err(|e| system("open a signal descriptor")(e.into()))?;
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
            pids,
            signals,
            limit,
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
            installed_shim: shim,
            user: config.job_user()?,
            stdio,
            control,
            criu,
            shims: ShimServer::default(),
            sidecar,
            vault: Vault::default(),
            processes: BTreeMap::new(),
            attempt: None,
            restore: None,
            worker: Worker::new().map_err(system("make an event descriptor"))?,
            images: BTreeMap::new(),
            incoming: None,
            incoming_memory: Vec::new(),
            waiting_for_memory: Vec::new(),
            told_unsupported: None,
            tell_unsupported_at: None,
            survey: Survey::default(),
            last_seq: 0,
            stopping: None,
            interrupted: None,
            decide_by: None,
            remind_at: None,
            start_wanted: false,
            saving: None,
            killing: None,
            early_exits: BTreeMap::new(),
            epoch: 0,
            fenced: None,
            exit: None,
            failed: None,
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
                self.decide_by = wait.map(|w| Instant::now() + w);
                self.remind_at = Some(Instant::now() + REMIND);
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

    // ---------------------------------------------------------------------------------------------------- the loop

    fn turn(&mut self) -> Result<(), AgentError> {
        self.wait()?;
        while let Ok(Some(info)) = self.signals.read_signal() {
            if let Ok(signal) = Signal::try_from(info.ssi_signo.cast_signed()) {
                self.on_signal(signal);
            }
        }
        self.reap();
        while let Some(done) = self.worker.take() {
            self.on_done(done);
        }
        self.sidecar.accept();
        while let Some(event) = self.sidecar.next_event() {
            match event {
                SidecarEvent::Message(message, fds) => self.on_sidecar(message, fds),
                SidecarEvent::Closed => self.on_sidecar_gone(),
            }
            // Between two messages, so that an answer never overtakes the end of the job.
            self.reap();
        }
        for id in self.shims.flush(self.config.timeouts.send) {
            self.on_shim_closed(id, None);
        }
        self.shims.accept(self.job.root);
        // The rest is heard next time round: processes of the job that flood this one keep it from nothing else.
        for _ in 0..SHIM_EVENTS {
            match self.shims.next_event() {
                Some(ShimEvent::Message(id, message, fds)) => self.on_shim(id, message, fds),
                Some(ShimEvent::Closed(id, why)) => self.on_shim_closed(id, why.as_deref()),
                None => break,
            }
        }
        self.watch_processes();
        // After what was said in time and had to wait here.
        self.on_time(Instant::now());
        Ok(())
    }

    fn wait(&self) -> Result<(), AgentError> {
        let deadline = [
            self.decide_by,
            self.remind_at,
            self.tell_unsupported_at,
            self.saving,
            self.killing,
            self.shims.deadline(self.config.timeouts.send),
            self.attempt.as_ref().and_then(|a| a.deadline),
            self.restore.as_ref().and_then(|r| r.deadline),
            self.stopping.as_ref().and_then(|s| {
                if s.signalled {
                    (!s.killed).then_some(s.kill_at)
                } else {
                    Some(s.sidecar_until.map_or(s.kill_at, |u| u.min(s.kill_at)))
                }
            }),
        ]
        .into_iter()
        .flatten()
        .min();
        let limit = deadline.map(|at| {
            // Rounded up, so that the deadline has passed when poll returns.
            timespec(at.saturating_duration_since(Instant::now()) + Duration::from_millis(1))
        });
        let mut fds: Vec<PollFd<'_>> = Vec::new();
        fds.push(PollFd::from_borrowed_fd(
            self.signals.as_fd(),
            PollFlags::IN,
        ));
        fds.push(PollFd::from_borrowed_fd(
            self.worker.wake.as_fd(),
            PollFlags::IN,
        ));
        for (fd, events) in self.shims.fds() {
            fds.push(PollFd::from_borrowed_fd(fd, events));
        }
        for fd in self.sidecar.fds() {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
        }
        for process in self.processes.values() {
            if let Some(alive) = &process.alive {
                fds.push(PollFd::from_borrowed_fd(alive.as_fd(), PollFlags::IN));
            }
        }
        match poll(&mut fds, limit.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(e) => Err(AgentError::System {
                what: "wait for events",
                cause: e.into(),
            }),
        }
    }

    fn on_time(&mut self, now: Instant) {
        if self.saving.is_some_and(|until| now >= until) {
            self.saving = None;
            tracing::error!(
                "the driver does not save the job's CUDA state in time: the job is killed without"
            );
            self.kill_everything();
        }
        if self.killing.is_some_and(|until| now >= until) {
            self.killing = None;
            tracing::error!("processes of the job do not end after SIGKILL (stuck in the kernel)");
            self.restore_failed("processes of the old tree do not end after SIGKILL: they are stuck in the kernel; restart the machine or container");
        }
        if self
            .attempt
            .as_ref()
            .and_then(|a| a.deadline)
            .is_some_and(|d| now >= d)
        {
            self.attempt_timed_out();
        }
        if self
            .restore
            .as_ref()
            .and_then(|r| r.deadline)
            .is_some_and(|d| now >= d)
        {
            self.restore_timed_out();
        }
        if self.decide_by.is_some_and(|d| now >= d) {
            self.decide_by = None;
            self.nobody_decided();
        }
        if self.remind_at.is_some_and(|r| now >= r) {
            self.remind_at = (self.job.state == JobState::Waiting).then(|| now + REMIND);
            if self.remind_at.is_some() && !self.sidecar.is_connected() {
                tracing::warn!(
                    "the command is not started yet: no sidecar has come. Its log says what it waits for or why it ended \
                     (in containers that of the service phos-ft)"
                );
            }
        }
        if self.tell_unsupported_at.is_some_and(|at| now >= at) {
            self.tell_unsupported_at = None;
            self.told_unsupported = Some(now);
            self.tell_unsupported(true);
        }
        self.stopping_on_time(now);
    }

    // ------------------------------------------------------------------------------------------- the job's life

    /// Nobody said `Start`, `Restore` or `GiveUp` in time.
    fn nobody_decided(&mut self) {
        match self.job.state {
            JobState::Waiting
                if !self.sidecar.is_connected()
                    && known_history::has_checkpoints(&self.config.job_dir()) =>
            {
                tracing::error!(
                    "no sidecar came, and the job has checkpoints: it is not begun anew without one. See what the sidecar waits \
                     for; to begin anew all the same, start it with --start-fresh"
                );
            }
            JobState::Waiting if !self.sidecar.is_connected() => {
                tracing::warn!(
                    "no sidecar came: the command is started afresh, without checkpoints until one comes"
                );
                self.start_job();
            }
            JobState::Ended(exit) if self.restore.is_none() => {
                tracing::warn!("nobody resumed the job: ending with its exit code");
                self.exit = Some(exit.shell_code());
            }
            _ => {}
        }
    }

    /// Starts CMD afresh, now or when the old tree has gone.
    fn start_job(&mut self) {
        if self.killing.is_some() {
            self.start_wanted = true;
            return;
        }
        self.start_wanted = false;
        self.decide_by = None;
        let again = matches!(self.job.state, JobState::Ended(_));
        self.forget_job();
        match self.try_start() {
            Ok(pid) => {
                tracing::info!(pid, "the job was started");
                self.job.root = Some(pid);
                self.job.state = JobState::Running;
                self.job.restored = false;
                if again {
                    self.job.restarts += 1;
                }
                self.sidecar.send(&ToSidecar::Started(Ok(())), &[]);
            }
            Err(e) => {
                self.sidecar
                    .send(&ToSidecar::Started(Err(e.to_string())), &[]);
                self.failed = Some(e);
            }
        }
    }

    fn try_start(&mut self) -> Result<ProcessId, AgentError> {
        self.job.shim = self.installed_shim.clone();
        self.job.other_socket = None;
        self.job.moved = Vec::new();
        self.listen()?;
        // Threads for the streams first: they live long and must not take PIDs of the job.
        let (ends, streams) = self.new_streams()?;
        self.pids.set_next(first_job_pid())?;
        let shim = self.installed_shim.as_ref();
        let user = self.user.clone();
        let pid = spawn::start(&self.config, shim, user, ends, self.limit)?;
        self.job.streams = Some(streams);
        Ok(pid)
    }

    /// Streams for a new generation, their threads below the PIDs of the job.
    pub(super) fn new_streams(
        &mut self,
    ) -> Result<(super::stdio::JobEnds, Generation), AgentError> {
        if let Some(old) = self.job.streams.take() {
            old.finish(Duration::from_millis(500));
        }
        self.low_pids(&[])?;
        let system = |what| move |cause| AgentError::System { what, cause };
        let (ends, generation) = self
            .stdio
            .generation()
            .map_err(system("make the job's streams"))?;
        if let Some(user) = &self.user {
            [&ends.stdin, &ends.stdout, &ends.stderr]
                .into_iter()
                .try_for_each(|stream| user.own(stream))
                .map_err(system("give the job's streams to its user"))?;
        }
        Ok((ends, generation))
    }

    /// The next processes and threads get low PIDs that are not in `reserved`.
    pub(super) fn low_pids(&self, reserved: &[u32]) -> Result<(), AgentError> {
        let mut taken = all_ids().unwrap_or_default();
        taken.extend(reserved);
        self.pids.set_next(free_range(&taken, 512))?;
        Ok(())
    }

    /// Listens for shims.
    pub(super) fn listen(&mut self) -> Result<(), AgentError> {
        let own = self.config.shim_socket();
        let paths = listen_paths(&own, self.job.other_socket.as_deref());
        self.shims
            .listen(&paths)
            .map_err(|(path, cause)| AgentError::Socket { path, cause })
    }

    /// Forgets everything about the processes there were.
    pub(super) fn forget_job(&mut self) {
        self.shims.close_all();
        self.processes.clear();
        self.waiting_for_memory.clear();
        self.vault.clear();
        self.survey.forget_processes();
    }

    /// SIGKILL to every process of the namespace but this one.
    pub(super) fn kill_everything(&mut self) {
        // No process to kill is no error here.
        let _ = kill(Pid::from_raw(-1), Signal::SIGKILL);
        self.killing = Some(Instant::now() + self.config.timeouts.reap);
    }

    /// Ends the job's processes. Those that were restored let go of their memory and have their CUDA state saved
    /// first, as far as that goes: killing them otherwise can hang the host on some drivers.
    pub(super) fn begin_kill(&mut self) {
        if !self.job.restored || self.processes.is_empty() || self.job.root.is_none() {
            self.kill_everything();
        } else if !self.begin_farewell() {
            self.save_and_kill();
        }
    }

    /// Saves the CUDA state of the job's processes, then ends them.
    pub(super) fn save_and_kill(&mut self) {
        let pids: Vec<ProcessId> = self.processes.keys().copied().collect();
        let control = self.control.clone();
        let bound = self.config.timeouts.save_before_kill;
        let started = self.worker.run("save", move |_| {
            if let Ok(driver) = control.get() {
                save_before_kill(driver.as_ref(), &pids, bound);
            }
            Done::Saved
        });
        match started {
            Ok(()) => self.saving = Some(Instant::now() + bound + SAVE),
            Err(_) => self.kill_everything(),
        }
    }

    /// Not even the end of the job brought a call of the driver to its end.
    pub(super) fn give_up_on_driver(&mut self) {
        self.failed = Some(AgentError::DriverHangs);
    }

    /// The job cannot go on: ends it, so that it is resumed from a checkpoint like after a crash.
    pub(super) fn job_is_lost(&mut self, why: &str) {
        tracing::error!(
            why,
            "the job cannot go on and is ended; it resumes from its newest checkpoint"
        );
        self.begin_kill();
    }

    fn reap(&mut self) {
        let reaped = signals::reap();
        for (pid, exit) in reaped.ended {
            if self.job.root == Some(pid) {
                self.on_job_exit(exit);
            } else if let Some(restore) = &self.restore {
                if restore.is_hopeless_without(pid) {
                    signals::kill_children();
                }
                self.early_exits.insert(pid, exit);
            }
        }
        if reaped.none_left && self.killing.is_some() {
            self.killing = None;
            self.on_tree_gone();
        }
    }

    /// The job's main process ended.
    pub(super) fn on_job_exit(&mut self, exit: Exit) {
        tracing::info!(code = exit.shell_code(), "the job's main process ended");
        self.job.root = None;
        self.kill_everything();
        if self.restore.as_ref().is_some_and(Restore::wants_old_gone) {
            // It was killed to make room.
            return;
        }
        let unread =
            (self.job.streams.as_ref()).is_some_and(|s| s.ended_for_want_of_a_reader(exit));
        if unread {
            tracing::warn!(
                code = exit.shell_code(),
                "the reader of the job's output has gone (as with `| head`), and the job ended of it: it is not brought back; \
                 the same command resumes it from its newest checkpoint"
            );
        }
        self.job.state = JobState::Ended(exit);
        if exit.is_success() || unread {
            // Restored so near its end that it was there before the restore was over.
            self.restore_is_over();
        } else if self.restore.is_some() {
            self.restore_failed(&format!(
                "the job ended right after it was restored (code {})",
                exit.shell_code()
            ));
            return;
        }
        self.attempt_job_ended();
        // Ended by who asked it to: as it would have ended alone.
        let interrupted = self
            .interrupted
            .is_some_and(|at| at.elapsed() <= self.config.grace);
        let stopping = self.stopping.is_some() || interrupted || unread;
        self.sidecar
            .send(&ToSidecar::JobExited { exit, stopping }, &[]);
        if self.fenced.is_some() {
            self.end_fenced();
            return;
        }
        if stopping || exit.is_success() {
            self.exit = Some(exit.shell_code());
            return;
        }
        self.wait_for_decision();
    }

    /// Starts or restarts the wait for `Start`, `Restore` or `GiveUp`.
    pub(super) fn wait_for_decision(&mut self) {
        let connected = self.sidecar.is_connected();
        self.decide_by = match self.job.state {
            JobState::Running => None,
            JobState::Waiting if connected => None,
            JobState::Waiting => self.config.sidecar_wait.map(|w| Instant::now() + w),
            JobState::Ended(_) if connected => Some(Instant::now() + self.config.decision_wait),
            JobState::Ended(_) => Some(Instant::now() + self.config.crash_wait),
        };
    }

    /// No process is left but this one.
    fn on_tree_gone(&mut self) {
        self.shims.close_all();
        self.processes.clear();
        self.restore_tree_gone();
        if self.start_wanted {
            self.start_job();
        }
    }

    // ------------------------------------------------------------------------------------------------- signals

    fn on_signal(&mut self, signal: Signal) {
        match signal {
            Signal::SIGCHLD => {}
            Signal::SIGTERM => self.on_terminate(),
            other => {
                if let Some(root) = self.job.root {
                    if matches!(other, Signal::SIGINT | Signal::SIGQUIT) {
                        self.interrupted = Some(Instant::now());
                    }
                    let _ = kill(Pid::from_raw(root.cast_signed()), other);
                } else if matches!(other, Signal::SIGINT | Signal::SIGQUIT | Signal::SIGHUP) {
                    // Nothing runs: the signal is for us.
                    self.exit = Some(self.code_without_job(other));
                }
            }
        }
    }

    fn code_without_job(&self, signal: Signal) -> i32 {
        match self.job.state {
            JobState::Ended(exit) => exit.shell_code(),
            _ => 128 + signal as i32,
        }
    }

    fn on_terminate(&mut self) {
        if let Some(stopping) = &self.stopping {
            if !stopping.signalled {
                self.signal_job();
            }
            return;
        }
        if self.job.root.is_none() && self.restore.is_none() {
            self.exit = Some(self.code_without_job(Signal::SIGTERM));
            return;
        }
        let now = Instant::now();
        let share = self.config.grace * 4 / 5;
        let ask = self.sidecar.is_connected() && self.job.root.is_some();
        self.stopping = Some(Stopping {
            sidecar_until: ask.then_some(now + share),
            kill_at: now + self.config.grace,
            signalled: false,
            killed: false,
        });
        let grace_ms = u64::try_from(share.as_millis()).unwrap_or(u64::MAX);
        if !(ask && self.sidecar.send(&ToSidecar::Terminating { grace_ms }, &[])) {
            self.signal_job();
        }
    }

    /// SIGTERM to the job's main process.
    pub(super) fn signal_job(&mut self) {
        self.abandon_attempt();
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if let Some(root) = self.job.root {
            stopping.signalled = true;
            let _ = kill(Pid::from_raw(root.cast_signed()), Signal::SIGTERM);
        }
    }

    fn stopping_on_time(&mut self, now: Instant) {
        let Some(stopping) = &mut self.stopping else {
            return;
        };
        if stopping.killed {
            return;
        }
        if now >= stopping.kill_at {
            stopping.killed = true;
            tracing::warn!("the job did not end within the grace time: SIGKILL");
            if self.job.root.is_some() {
                self.begin_kill();
            } else {
                self.exit = Some(self.code_without_job(Signal::SIGTERM));
            }
        } else if !stopping.signalled && stopping.sidecar_until.is_some_and(|u| now >= u) {
            stopping.sidecar_until = None;
            self.signal_job();
        }
    }

    /// Another node has taken the job over. What runs here could never be stored again, and two of it would work on the
    /// same files: it is ended as by SIGTERM, without a last checkpoint, and the next agent in this container is told.
    fn on_fenced(&mut self, reason: String) {
        tracing::error!(
            reason,
            "another node has this job: it is ended here, without a checkpoint"
        );
        fence::note(&self.config.job_dir(), &reason);
        self.fenced = Some(reason);
        if self.job.root.is_none() {
            self.end_fenced();
            return;
        }
        self.stopping = Some(Stopping {
            sidecar_until: None,
            kill_at: Instant::now() + self.config.grace,
            signalled: false,
            killed: false,
        });
        self.signal_job();
    }

    fn end_fenced(&mut self) {
        self.failed = self.fenced.take().map(|reason| AgentError::Fenced {
            job: self.config.job.clone(),
            reason,
            note: fence::path(&self.config.job_dir()),
        });
    }

    /// Something has been decided: nobody is waited for.
    pub(super) fn decide_by_nobody(&mut self) {
        self.decide_by = None;
    }

    /// Whether the job was told to end.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_some()
    }

    // ------------------------------------------------------------------------------------------------- workers

    fn on_done(&mut self, done: Done) {
        match done {
            Done::Dumped(outcome) => self.dump_ended(outcome),
            Done::ControlSaved(seq) => {
                self.sidecar.send(&ToSidecar::ControlSaved { seq }, &[]);
            }
            Done::Revived(outcome) => self.revive_ended(outcome),
            // Late: they were killed without it.
            Done::Saved if self.saving.take().is_none() => {}
            Done::Saved => self.kill_everything(),
            Done::FilesChecked(outcome) => {
                if let Err(reason) = &outcome {
                    tracing::error!(reason, "a checkpoint does not fit this place");
                }
                self.sidecar.send(&ToSidecar::FilesChecked(outcome), &[]);
            }
        }
    }

    // ------------------------------------------------------------------------------------------------- sidecar

    fn on_sidecar(&mut self, message: ToAgent, fds: Vec<OwnedFd>) {
        if matches!(self.job.state, JobState::Ended(_)) && self.restore.is_none() {
            self.wait_for_decision();
        }
        match message {
            ToAgent::Hello { version } => {
                tracing::info!(version, "sidecar connected");
                self.sidecar.greet();
                let welcome = ToSidecar::Welcome {
                    version: env!("CARGO_PKG_VERSION").into(),
                    agent: self.id,
                    job: self.job.state,
                    restarts: self.job.restarts,
                    command: told_command(&self.config.command),
                    seq: self.last_seq,
                    epoch: self.epoch,
                };
                if self.sidecar.send(&welcome, &[]) {
                    // Until then nobody decides but the agent.
                    self.decide_by = None;
                    self.wait_for_decision();
                }
                self.tell_unsupported(false);
            }
            ToAgent::Start => {
                if self.job.state == JobState::Running || self.restore.is_some() {
                    let text = "the job runs already".to_owned();
                    self.sidecar.send(&ToSidecar::Started(Err(text)), &[]);
                } else {
                    self.start_job();
                }
            }
            ToAgent::GiveUp => match self.job.state {
                JobState::Ended(exit) => self.exit = Some(exit.shell_code()),
                JobState::Waiting => self.exit = Some(1),
                JobState::Running => tracing::warn!("the sidecar gave up a job that runs: ignored"),
            },
            ToAgent::RestoreMemory { allocations } => {
                if allocations.len() == fds.len() {
                    self.incoming_memory
                        .extend(allocations.into_iter().zip(fds));
                } else {
                    // Found out at `Restore`: an allocation will be missing.
                    tracing::warn!("the sidecar sent another number of fds than allocations");
                }
            }
            ToAgent::NewImageDirectory => self.new_incoming(),
            ToAgent::CheckFiles => self.check_files(),
            ToAgent::Restore { gpus } => self.begin_restore(gpus),
            ToAgent::Quiesce {
                seq,
                timeout_ms,
                insist,
            } => self.begin_attempt(seq, timeout_ms, insist),
            ToAgent::Dump { seq } => self.begin_dump(seq),
            ToAgent::Attach { seq } => self.attach_wanted(seq),
            ToAgent::Abandon { seq } => {
                if self.attempt.as_ref().is_some_and(|a| a.seq == seq) {
                    self.abandon_attempt();
                }
            }
            ToAgent::Finish { seq } => {
                self.images.remove(&seq);
            }
            ToAgent::MemoryReleased => self.memory_released(),
            ToAgent::TakenOver { epoch } => self.epoch = epoch,
            ToAgent::Fenced { reason } => self.on_fenced(reason),
            ToAgent::Terminate => {
                if self.stopping.as_ref().is_some_and(|s| !s.signalled) {
                    self.signal_job();
                }
            }
        }
    }

    fn on_sidecar_gone(&mut self) {
        tracing::info!("sidecar disconnected");
        self.memory_released();
        self.images.clear();
        if self.restore.is_none() {
            self.incoming = None;
            self.incoming_memory.clear();
        }
        self.abandon_attempt();
        self.wait_for_decision();
        if let Some(stopping) = &self.stopping
            && !stopping.signalled
            && stopping.sidecar_until.is_some()
        {
            self.signal_job();
        }
    }

    fn new_incoming(&mut self) {
        self.incoming_memory.clear();
        let made = ImageDirectory::create(self.config.image_limit, false, &self.config.job_dir());
        match made {
            Ok(directory) => {
                let directory = self.incoming.insert(Arc::new(directory));
                let answer = ToSidecar::ImageDirectory(Ok(()));
                self.sidecar.send(&answer, &[directory.fd()]);
            }
            Err(e) => {
                let answer = ToSidecar::ImageDirectory(Err(e.to_string()));
                self.sidecar.send(&answer, &[]);
            }
        }
    }

    fn memory_released(&mut self) {
        for id in std::mem::take(&mut self.waiting_for_memory) {
            self.tell_shim(id, &ToShim::MemoryReleased);
        }
    }

    /// Tells the sidecar whether checkpoints are ruled out; that they are not only when asked to.
    fn tell_unsupported(&mut self, also_none: bool) {
        let reason = self
            .processes
            .iter()
            .find_map(|(pid, p)| Some(format!("process {pid}: {}", p.unsupported.as_ref()?)));
        if reason.is_some() || also_none {
            let reason = reason.unwrap_or_default();
            self.sidecar.send(&ToSidecar::Unsupported { reason }, &[]);
        }
    }

    /// A process rules checkpoints out, or does not any more: the sidecar hears it, now or when it has not heard so for a while.
    fn set_unsupported(&mut self, pid: ProcessId, reason: Option<String>) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if process.unsupported == reason {
            return;
        }
        let now = Instant::now();
        if let Some(reason) = &reason
            && self.shims.lines.may(now)
        {
            tracing::warn!(pid, reason, "checkpoints are ruled out");
        }
        process.unsupported = reason;
        let due = self
            .told_unsupported
            .map_or(now, |told| now.max(told + TELL));
        self.tell_unsupported_at.get_or_insert(due);
    }

    // --------------------------------------------------------------------------------------------------- shims

    /// Sends to a shim; a failure ends the connection as if it had been closed.
    pub(super) fn tell_shim(&mut self, id: ConnectionId, message: &ToShim) -> bool {
        self.send_shim(id, message.clone(), Vec::new())
    }

    fn send_shim(&mut self, id: ConnectionId, message: ToShim, fds: Vec<Arc<OwnedFd>>) -> bool {
        let sent = self.shims.send(id, message, fds);
        if !sent {
            self.on_shim_closed(id, None);
        }
        sent
    }

    /// Sends a process all its memory and asks it to attach.
    pub(super) fn send_memory(&mut self, id: ConnectionId, pid: ProcessId, seq: Sequence) -> bool {
        let entries = self.vault.memory_of(pid);
        for batch in entries.chunks(phos_protocol::channel::SHIM_FDS) {
            let keys = batch.iter().map(|e| e.allocation.key).collect();
            let fds = batch.iter().map(|e| e.shared()).collect();
            if !self.shims.send(id, ToShim::Memory { seq, keys }, fds) {
                return false;
            }
        }
        self.shims.send(id, ToShim::Attach { seq }, Vec::new())
    }

    fn on_shim(&mut self, id: ConnectionId, message: FromShim, fds: Vec<OwnedFd>) {
        let Some(connection) = self.shims.get_mut(id) else {
            return;
        };
        let pid = connection.pid;
        if !connection.greeted && !matches!(message, FromShim::Hello { .. }) {
            self.disconnect(id, pid, "did not say hello first");
            return;
        }
        match message {
            FromShim::Hello {
                pid: said,
                instance,
                state,
                devices,
            } => {
                if said != pid || connection.greeted {
                    self.disconnect(id, pid, "said a hello that does not fit");
                    return;
                }
                connection.greeted = true;
                self.on_hello(id, pid, instance, state, devices);
            }
            FromShim::Table {
                seq,
                entries,
                imported,
            } => self.attempt_table(pid, seq, entries, imported, fds),
            FromShim::Quiesced { seq, outcome } => {
                self.attempt_quiesced(pid, seq, outcome.map(drop).map_err(in_plain_words))
            }
            FromShim::Native { seq, bytes } => self.attempt_native(pid, seq, bytes),
            FromShim::Detached { seq, outcome } => {
                self.attempt_detached(pid, seq, outcome.map_err(in_plain_words))
            }
            FromShim::Attached { seq, outcome } => {
                self.shim_attached(pid, seq, outcome.map_err(in_plain_words))
            }
            FromShim::OutOfMemory { device, bytes } => {
                self.on_out_of_memory(id, pid, device, bytes)
            }
            FromShim::Share {
                allocation,
                with_fd,
            } => self.on_share(id, pid, allocation, with_fd, fds),
            FromShim::Identify => {
                let found = fds.first().and_then(|fd| self.vault.identify(fd.as_fd()));
                if let Some(allocation) = found {
                    self.vault.note_import(pid, allocation.key);
                }
                self.tell_shim(id, &ToShim::Identified(found));
            }
            FromShim::Fetch { key, instance } => self.on_fetch(id, pid, key, instance),
            FromShim::LetGo { keys } => {
                let keys = self.vault.let_go(pid, &keys);
                if !keys.is_empty() {
                    self.sidecar.send(&ToSidecar::Freed { keys }, &[]);
                }
            }
            FromShim::Freed { ids } => {
                let keys = self.vault.free(pid, &ids);
                if !keys.is_empty() {
                    self.sidecar.send(&ToSidecar::Freed { keys }, &[]);
                }
            }
            FromShim::Unsupported { reason } => {
                self.set_unsupported(pid, Some(lines::plain(&reason)))
            }
            FromShim::Supported => self.set_unsupported(pid, None),
            FromShim::Instrumented => {
                if let Some(process) = self.processes.get_mut(&pid) {
                    process.instrumented = true;
                }
            }
        }
    }

    /// Ends a connection on which somebody says what no shim says.
    fn disconnect(&mut self, id: ConnectionId, pid: ProcessId, what: &str) {
        if self.shims.lines.may(Instant::now()) {
            tracing::warn!(pid, "a shim {what}: disconnected");
        }
        self.on_shim_closed(id, None);
    }

    fn on_hello(
        &mut self,
        id: ConnectionId,
        pid: ProcessId,
        instance: u64,
        state: ShimState,
        mut devices: Vec<Device>,
    ) {
        // The sidecar hears where they are: one that was started after a move cannot know it. A process that began after
        // the move names its GPUs rightly.
        let moved = state != ShimState::Fresh;
        for device in devices.iter_mut().filter(|_| moved) {
            if let Some((_, at)) = self.job.moved.iter().find(|(n, _)| *n == device.uuid) {
                device.uuid = *at;
            }
        }
        tracing::debug!(pid, ?state, devices = devices.len(), "shim connected");
        let known = self
            .processes
            .get(&pid)
            .is_some_and(|p| p.instance == instance);
        if state == ShimState::Fresh || (!known && state == ShimState::Running) {
            // Another program under this PID, or nothing of it is known: whatever was held is not its.
            self.vault.forget(pid);
        }
        let old = self.processes.insert(
            pid,
            CudaProcess {
                instance,
                devices,
                connection: Some(id),
                alive: watch(pid),
                unsupported: None,
                instrumented: false,
            },
        );
        if let Some(old) = old.and_then(|p| p.connection) {
            self.shims.close(old);
        }
        let held = if state == ShimState::Fresh {
            Vec::new()
        } else {
            self.vault.held(pid)
        };
        if !self.welcome(id, held) {
            return;
        }
        match state {
            ShimState::Fresh | ShimState::Running => self.attempt_newcomer(id, pid, state),
            ShimState::Detached(seq) => self.shim_returned(id, pid, seq),
        }
    }

    /// `Welcome`, in as many packets as the list takes: one that is not full is the last.
    fn welcome(&mut self, id: ConnectionId, held: Vec<u64>) -> bool {
        let mut rest = &held[..];
        loop {
            let (part, more) = rest.split_at(rest.len().min(HELD));
            let message = ToShim::Welcome {
                held: part.to_vec(),
            };
            if !self.tell_shim(id, &message) {
                return false;
            }
            if part.len() < HELD {
                return true;
            }
            rest = more;
        }
    }

    /// A process opens memory that another one has given it a handle of.
    fn on_fetch(&mut self, id: ConnectionId, pid: ProcessId, key: AllocationKey, instance: u64) {
        // A PID may have been used again, and the number of an allocation with it.
        let same = self
            .processes
            .get(&key.owner)
            .is_some_and(|p| p.instance == instance);
        let found = self.vault.get(&key);
        let found = found.filter(|_| same && self.vault.is_shared(&key));
        let found = found.map(|entry| (entry.allocation, entry.shared()));
        let (allocation, fds) = match found {
            Some((allocation, fd)) => {
                self.vault.note_import(pid, key);
                (Some(allocation), vec![fd])
            }
            None => (None, Vec::new()),
        };
        self.send_shim(id, ToShim::Identified(allocation), fds);
    }

    fn on_out_of_memory(&mut self, id: ConnectionId, pid: ProcessId, device: i32, bytes: u64) {
        if self.waiting_for_memory.contains(&id) {
            // One answer is for all its threads.
            return;
        }
        let gpu: Option<GpuUuid> = self.processes.get(&pid).and_then(|p| {
            p.devices
                .iter()
                .find(|d| d.ordinal == device)
                .map(|d| d.uuid)
        });
        if let Some(gpu) = gpu
            && self.sidecar.is_connected()
            && self
                .sidecar
                .send(&ToSidecar::NeedMemory { gpu, bytes }, &[])
        {
            self.waiting_for_memory.push(id);
        } else {
            self.tell_shim(id, &ToShim::MemoryReleased);
        }
    }

    fn on_share(
        &mut self,
        id: ConnectionId,
        pid: ProcessId,
        allocation: Allocation,
        with_fd: bool,
        fds: Vec<OwnedFd>,
    ) {
        let answer = if allocation.key.owner != pid {
            Err(format!(
                "process {pid} exports an allocation of process {}",
                allocation.key.owner
            ))
        } else {
            match (with_fd, fds.into_iter().next()) {
                (true, Some(fd)) => {
                    self.vault.insert(allocation, allocation.bytes, fd);
                    Ok(())
                }
                (true, None) => Err("the fd is missing".into()),
                (false, _) => Ok(()),
            }
        };
        let answer = answer.and_then(|()| {
            self.vault
                .get(&allocation.key)
                .map(Entry::shared)
                .ok_or_else(|| "the agent does not hold this allocation".to_owned())
        });
        if answer.is_ok() {
            self.vault.note_shared(allocation.key);
        }
        let (answer, fds) = match answer {
            Ok(fd) => (Ok(()), vec![fd]),
            Err(e) => (Err(e), Vec::new()),
        };
        self.send_shim(id, ToShim::Shared(answer), fds);
    }

    /// A connection ended.
    pub(super) fn on_shim_closed(&mut self, id: ConnectionId, why: Option<&str>) {
        self.shims.close(id);
        self.waiting_for_memory.retain(|w| *w != id);
        let Some((&pid, process)) = self
            .processes
            .iter_mut()
            .find(|(_, p)| p.connection == Some(id))
        else {
            return;
        };
        process.connection = None;
        if let Some(why) = why
            && self.shims.lines.may(Instant::now())
        {
            tracing::warn!(pid, why, "a shim's connection is unusable");
        }
        self.attempt_connection_lost(pid, why);
        self.restore_connection_lost(pid);
    }

    /// Looks for processes with CUDA that have ended.
    fn watch_processes(&mut self) {
        let ended: Vec<ProcessId> = self
            .processes
            .iter()
            .filter(|(_, p)| p.alive.as_ref().is_some_and(has_ended))
            .map(|(&pid, _)| pid)
            .collect();
        for pid in ended {
            self.forget_process(pid);
        }
    }

    /// A process with CUDA ended (or became a program without).
    pub(super) fn forget_process(&mut self, pid: ProcessId) {
        let Some(process) = self.processes.remove(&pid) else {
            return;
        };
        tracing::debug!(pid, "a process with CUDA ended");
        if let Some(id) = process.connection {
            self.shims.close(id);
        }
        // The main process's memory may be of use to the restore that follows.
        if self.job.root != Some(pid) && matches!(self.job.state, JobState::Running) {
            self.vault.forget(pid);
        }
        if process.unsupported.is_some() {
            self.tell_unsupported(true);
        }
        self.attempt_process_gone(pid);
        self.restore_process_gone(pid);
    }

    /// Why a process rules checkpoints out, if one does.
    pub(super) fn unsupported(&self) -> Option<(ProcessId, Refusal)> {
        self.processes
            .iter()
            .find_map(|(&pid, p)| Some((pid, Refusal::Unsupported(p.unsupported.clone()?))))
    }
}

/// A refusal with texts as they go into logs and answers.
fn in_plain_words(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Unsupported(what) => Refusal::Unsupported(lines::plain(&what)),
        Refusal::Other(what) => Refusal::Other(lines::plain(&what)),
        Refusal::Driver { call, result } => Refusal::Driver {
            call: lines::plain(&call),
            result,
        },
        Refusal::Timeout | Refusal::Capturing | Refusal::Slow { .. } => refusal,
    }
}

fn has_ended(alive: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(alive, PollFlags::IN)];
    matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(n) if n > 0)
}

/// Makes the job's run directory and makes sure that no other agent uses it.
fn open_job_dir(config: &AgentConfig) -> Result<(PathBuf, File), AgentError> {
    let dir = config.job_dir();
    let failed = |cause| AgentError::RunDir {
        path: dir.clone(),
        cause,
    };
    run_dir::make(&config.run_dir, &config.job).map_err(failed)?;
    if let Some(user) = config.job_user()?.filter(JobUser::is_another)
        && let Some(changeable) = way::changeable_by(&dir, &user).map_err(failed)?
    {
        return Err(AgentError::OpenRunDir {
            path: dir,
            changeable,
            user: user.uid(),
        });
    }
    let lock = File::create(dir.join("agent.lock")).map_err(failed)?;
    // One that was killed takes a moment to go.
    let until = Instant::now() + Duration::from_secs(3);
    loop {
        // SAFETY: a valid fd; flock touches no memory.
        let locked = unsafe { libc::flock(lock.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) };
        if locked == 0 {
            return Ok((dir, lock));
        }
        if Instant::now() >= until {
            return Err(AgentError::AlreadyRunning {
                job: config.job.clone(),
                path: dir,
            });
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Between two reminders that the command is not started yet.
const REMIND: Duration = Duration::from_secs(120);

/// Messages of shims that are heard before the sidecar, signals and deadlines have their turn again.
const SHIM_EVENTS: usize = 256;

/// Between two things that the sidecar hears of what rules checkpoints out: processes may say it as often as they like.
const TELL: Duration = Duration::from_secs(1);

/// Most bytes of a command that are told: a message has to hold it, and a manifest.
const TOLD: usize = 16 << 10;

/// The command as the sidecar and the store hear of it, without [secrets](crate::mask). Of a longer one the beginning, and a digest of all of it, so that
/// another command is still known as another.
fn told_command(command: &[std::ffi::OsString]) -> Vec<String> {
    let all: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let all = crate::mask::command(&all);
    if all.iter().map(|word| word.len() + 1).sum::<usize>() <= TOLD {
        return all;
    }
    let mut hasher = blake3::Hasher::new();
    let mut told = Vec::new();
    let mut room = TOLD / 2;
    for word in &all {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
        if word.len() < room {
            room -= word.len() + 1;
            told.push(word.clone());
        } else {
            // Only what comes first.
            room = 0;
        }
    }
    told.push(format!(
        "… (in all {} words, BLAKE3 {})",
        all.len(),
        hasher.finalize().to_hex()
    ));
    told
}
