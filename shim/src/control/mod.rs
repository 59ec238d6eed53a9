//! The conversation with the agent, on a thread of its own.
//!
//! ```text
//!            ┌──────────────── connection lost ─────────────────┐
//!            ▼                                                   │
//!   waiting for the path ── connect, Hello ──▶ serving ─────────┤
//!            ▲                                  │ Detach         │
//!            └────────── socket closed ─────────┘
//! ```
//!
//! The thread never enters the gate. It blocks every signal, so that the application's handlers run on the
//! application's threads.

mod attach;
mod credit;
mod detach;
mod handle;
mod quiesce;
mod rejoin;
mod synchronizer;
mod usage;
mod watch;

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use std::time::{Duration, Instant};

use phos_protocol::channel::{self, RecvError};
use phos_protocol::shim::{HELD, Sequence, ShimState, ToAgent, ToShim};
use phos_protocol::types::{AllocationId, Device, GpuUuid};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use attach::Attaching;
use usage::Told;
use watch::Watch;

use crate::interpose::{bypass, export_table, guard};
use crate::relaxed::Relaxed;
use crate::table::real;
use crate::{abi, exit, gate, hints, link, log, mode, ranks, registry, unsupported};

/// How often the path is looked at while the job runs without an agent.
const LOOK_RUNNING: Duration = Duration::from_secs(1);
/// The same in the beginning, for so long: a process that begins to use CUDA while the job is detached finds no path, and the
/// next attempt waits for it.
const LOOK_FRESH: Duration = Duration::from_millis(20);
const FRESH: Duration = Duration::from_secs(5);
/// The same while the job is detached and stands still.
const LOOK_DETACHED: Duration = Duration::from_millis(1);
/// How often what cannot announce itself is looked at.
const TICK: Duration = Duration::from_secs(1);
/// How long the agent may take to answer `Hello`.
const WELCOME: Duration = Duration::from_secs(10);

/// Starts a thread of the shim: no signals, a name, the smallest stack that serves.
pub fn spawn(name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let mut all = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = std::mem::MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: the first is filled before it is read; the second is written by the call. The new thread inherits the
    // mask.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = std::thread::Builder::new()
        .name(name.to_owned())
        .stack_size(512 << 10)
        .spawn(move || {
            gate::exempt();
            body();
        });
    // SAFETY: puts back the mask that was there.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result.map(drop)
}

/// Starts the control thread.
pub fn start(path: PathBuf) -> std::io::Result<()> {
    // As in a release, which does not unwind: a thread of the shim that is gone would leave the job's behind a closed gate.
    #[cfg(all(panic = "unwind", not(test)))]
    {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::abort();
        }));
    }
    spawn("phos-control", move || {
        // For every driver call of this thread: it is no part of any capture.
        let relaxed = Relaxed::new();
        Control::new(path).run();
        drop(relaxed);
    })
}

/// How far the process is in a checkpoint: what the gate is closed for, if it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The gate is open and the job runs.
    Running,
    /// Gate closed and contexts idle; nothing unmapped.
    Quiesced(Sequence),
    /// Some or all memory is unmapped.
    Detached(Sequence),
    /// Everything is back; the gate is still closed.
    Attached(Sequence),
}

/// Why the service of a connection ended.
enum End {
    /// The peer is gone, or cannot be understood.
    Lost(String),
    /// Everything is detached and said so: close and wait.
    Detached,
}

struct Control {
    path: PathBuf,
    instance: u64,
    devices: Vec<Device>,
    phase: Phase,
    fresh: bool,
    /// Memory has begun to come.
    attaching: Option<Attaching>,
    /// What the agent was last told of the process's memory.
    told: Told,
    /// The agent wants to know when the job waits for its work.
    watch: Option<Watch>,
    /// So many calls may be made while memory is being copied.
    credit: Option<credit::Given>,
}

impl Control {
    fn new(path: PathBuf) -> Self {
        let mut random = [0; 8];
        // Without random bytes the time has to do.
        if rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty()) != Ok(8) {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            random = now.map_or(0, |d| d.as_nanos() as u64).to_ne_bytes();
        }
        let instance = u64::from_ne_bytes(random);
        mode::set_instance(instance);
        let devices = devices();
        Self {
            path,
            instance,
            told: Told::new(&devices),
            devices,
            phase: Phase::Running,
            fresh: true,
            attaching: None,
            watch: None,
            credit: None,
        }
    }

    fn run(&mut self) {
        let mut said = false;
        let begun = Instant::now();
        loop {
            let look = match self.phase {
                Phase::Detached(_) => LOOK_DETACHED,
                _ if self.fresh && begun.elapsed() < FRESH => LOOK_FRESH,
                _ => LOOK_RUNNING,
            };
            // stat first: nothing is opened, so a process that waits here can be dumped at any moment.
            let there = rustix::fs::stat(self.path.as_os_str().as_bytes()).is_ok();
            let socket = if there { self.connect() } else { None };
            let Some(socket) = socket else {
                if !said && !matches!(self.phase, Phase::Detached(_)) {
                    log::info!(
                        "no agent at {}: running without checkpoints until there is",
                        self.path.display()
                    );
                    said = true;
                }
                std::thread::sleep(look);
                continue;
            };
            said = false;
            let end = self.serve(&socket);
            link::disconnected();
            self.attaching = None;
            self.end_watch();
            self.end_credit();
            close(socket);
            match end {
                End::Detached => log::debug!("detached: waiting for {}", self.path.display()),
                End::Lost(why) => {
                    log::info!("connection to the agent lost: {why}");
                    if let Phase::Attached(seq) = self.phase
                        && !registry::lock().are_objects_whole()
                    {
                        self.phase = Phase::Detached(seq);
                    }
                    // The gate may stay closed only while somebody can open it, or while memory is missing.
                    if !matches!(self.phase, Phase::Detached(_)) {
                        self.phase = Phase::Running;
                        gate::open();
                    }
                    std::thread::sleep(LOOK_DETACHED);
                }
            }
        }
    }

    fn connect(&self) -> Option<Arc<OwnedFd>> {
        let address = SocketAddrUnix::new(self.path.as_os_str().as_bytes()).ok()?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
                .ok()?;
        link::opened(&socket);
        if rustix::net::connect(&socket, &address).is_err() {
            link::disconnected();
            return None;
        }
        Some(Arc::new(socket))
    }

    /// Speaks with the agent until the connection ends.
    fn serve(&mut self, socket: &Arc<OwnedFd>) -> End {
        let served = self
            .greet(socket)
            .and_then(|()| self.introduce(socket))
            .and_then(|()| self.listen(socket));
        match served {
            Ok(never) => match never {},
            Err(end) => end,
        }
    }

    /// `Hello`, and what the agent holds of the process's memory in return.
    fn greet(&mut self, socket: &Arc<OwnedFd>) -> Result<(), End> {
        let state = match self.phase {
            Phase::Detached(seq) => ShimState::Detached(seq),
            _ if self.fresh => ShimState::Fresh,
            _ => ShimState::Running,
        };
        let hello = ToAgent::Hello {
            pid: mode::process(),
            instance: self.instance,
            state,
            devices: self.devices.clone(),
        };
        say(socket, &hello)?;
        let start = Instant::now();
        let mut known = BTreeSet::<AllocationId>::new();
        loop {
            match receive(socket, TICK)? {
                Some((ToShim::Welcome { held }, _)) => {
                    let last = held.len() < HELD;
                    known.extend(held);
                    if last {
                        break;
                    }
                }
                Some(_) => {
                    return Err(End::Lost("it did not answer Hello with Welcome".to_owned()));
                }
                None if start.elapsed() < WELCOME => {}
                None => return Err(End::Lost("it did not answer Hello".to_owned())),
            }
        }
        for (id, physical) in registry::lock().all_mut() {
            if physical.origin == registry::Origin::Own {
                physical.held = known.contains(&id);
            }
        }
        self.fresh = false;
        link::connected(Arc::clone(socket));
        log::debug!("connected as {state:?}");
        Ok(())
    }

    /// Says what the agent has to know of the process, and cannot know from another connection.
    fn introduce(&mut self, socket: &OwnedFd) -> Result<(), End> {
        if unsupported::text().is_some() {
            unsupported::announce();
        }
        if export_table::is_instrumented() {
            link::tell_instrumented();
        }
        self.told.forget();
        self.tell_usage(socket)?;
        say(socket, &ToAgent::Watches)?;
        say(socket, &ToAgent::TakesCredit)?;
        if let Some(greeting) = exit::greeting() {
            say(socket, &greeting)?;
        }
        if ranks::there_are() {
            say(socket, &ToAgent::Communicates)?;
        }
        hints::greeting().try_for_each(|said| say(socket, &said))
    }

    /// Does what the agent asks for, and looks at what nobody asks for, until the connection ends.
    fn listen(&mut self, socket: &Arc<OwnedFd>) -> Result<Infallible, End> {
        let mut ticked = Instant::now();
        loop {
            // Also where somebody has something to say all the time.
            let mut left = TICK.saturating_sub(ticked.elapsed());
            if self.watch.is_some() {
                left = left.min(watch::LOOK);
            }
            if self.credit.is_some() {
                left = left.min(credit::LOOK);
            }
            if let Some((message, fds)) = receive(socket, left)? {
                self.handle(socket, message, fds)?;
            }
            self.look_for_moment(socket)?;
            self.look_at_credit(socket)?;
            // Nothing that takes time while the gate is closed.
            if ticked.elapsed() >= TICK && !self.has_waited() && self.credit.is_none() {
                if guard::changed() {
                    unsupported::announce();
                }
                link::flush_freed();
                // It takes the loader's lock, which a thread that waits at the gate may have.
                if self.phase == Phase::Running {
                    bypass::look_again();
                }
                self.tell_usage(socket)?;
                ticked = Instant::now();
            }
        }
    }

    /// What the process has on its GPUs, where that has changed.
    fn tell_usage(&mut self, socket: &OwnedFd) -> Result<(), End> {
        let Some(usage) = self.told.news() else {
            return Ok(());
        };
        say(socket, &ToAgent::Usage(usage))
    }
}

fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms.into())
}

fn say(socket: &OwnedFd, message: &ToAgent) -> Result<(), End> {
    link::send_on(socket, message, &[]).map_err(|error| End::Lost(error.to_string()))
}

/// Closes the socket for good: nobody else may still hold it when the process is dumped.
fn close(socket: Arc<OwnedFd>) {
    let mut socket = socket;
    for round in 0_u32.. {
        match Arc::try_unwrap(socket) {
            // The agent sees the end of the connection when the descriptor is gone, not before.
            Ok(last) => return drop(last),
            Err(shared) => socket = shared,
        }
        if round == 200 {
            // A thread hangs in a send on a full socket: it fails now.
            let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both);
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// The next message, or nothing within `limit`.
fn receive(socket: &OwnedFd, limit: Duration) -> Result<Option<(ToShim, Vec<OwnedFd>)>, End> {
    let mut poll = [PollFd::new(socket, PollFlags::IN)];
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    match rustix::event::poll(&mut poll, Some(&limit)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => return Ok(None),
        Ok(_) => {}
        Err(error) => return Err(End::Lost(error.to_string())),
    }
    match channel::recv::<ToShim>(socket.as_fd()) {
        Ok(received) => Ok(Some(received)),
        Err(error) if error.is_would_block() => Ok(None),
        Err(RecvError::Closed) => Err(End::Lost("closed by the agent".to_owned())),
        Err(error) => {
            if matches!(error, RecvError::Version(_)) {
                log::error!("{error}");
            }
            Err(End::Lost(error.to_string()))
        }
    }
}

/// The devices that the process sees, as the agent is told them.
fn devices() -> Vec<Device> {
    let mut count = 0;
    // SAFETY: writes one integer.
    if unsafe { real::cuDeviceGetCount(&mut count) } != abi::SUCCESS {
        return Vec::new();
    }
    let mut devices = Vec::new();
    for ordinal in 0..count {
        let mut device = 0;
        let mut uuid = [0_u8; 16];
        let mut total = 0_usize;
        let mut name = [0_u8; 256];
        // SAFETY: each call writes what it is given room for: an integer, 16 bytes, a size, at most 255 bytes.
        unsafe {
            if real::cuDeviceGet(&mut device, ordinal) != abi::SUCCESS {
                continue;
            }
            if real::cuDeviceGetUuid_v2(uuid.as_mut_ptr().cast(), device) != abi::SUCCESS {
                real::cuDeviceGetUuid(uuid.as_mut_ptr().cast(), device);
            }
            real::cuDeviceTotalMem_v2(&mut total, device);
            real::cuDeviceGetName(name.as_mut_ptr().cast(), 255, device);
        }
        let name: Vec<u8> = name.into_iter().take_while(|&b| b != 0).collect();
        devices.push(Device {
            ordinal,
            uuid: GpuUuid(uuid),
            total_bytes: total as u64,
            name: String::from_utf8_lossy(&name).into_owned(),
        });
    }
    devices
}
