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
mod quiesce;
mod rejoin;
mod synchronizer;
mod usage;
mod watch;

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::Arc;

use std::time::{Duration, Instant};

use phos_protocol::channel::{self, RecvError};
use phos_protocol::shim::{HELD, Refusal, Sequence, ShimState, ToAgent, ToShim};
use phos_protocol::types::{
    Allocation, AllocationId, AllocationKey, AllocationKind, Device, GpuUuid,
};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use attach::Attaching;
use quiesce::Manner;
use usage::Told;
use watch::{Awaited, Watch};

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
        if let Err(end) = say(socket, &hello) {
            return end;
        }
        let start = Instant::now();
        let mut known = BTreeSet::<AllocationId>::new();
        loop {
            match receive(socket, TICK) {
                Ok(Some((ToShim::Welcome { held }, _))) => {
                    let last = held.len() < HELD;
                    known.extend(held);
                    if last {
                        break;
                    }
                }
                Ok(Some(_)) => return End::Lost("it did not answer Hello with Welcome".to_owned()),
                Ok(None) if start.elapsed() < WELCOME => {}
                Ok(None) => return End::Lost("it did not answer Hello".to_owned()),
                Err(end) => return end,
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
        if unsupported::text().is_some() {
            unsupported::announce();
        }
        if export_table::is_instrumented() {
            link::tell_instrumented();
        }
        self.told.forget();
        if let Err(end) = self.tell_usage(socket) {
            return end;
        }
        for said in [ToAgent::Watches, ToAgent::TakesCredit] {
            if let Err(end) = say(socket, &said) {
                return end;
            }
        }
        if let Some(greeting) = exit::greeting()
            && let Err(end) = say(socket, &greeting)
        {
            return end;
        }
        if ranks::there_are()
            && let Err(end) = say(socket, &ToAgent::Communicates)
        {
            return end;
        }
        for said in hints::greeting() {
            if let Err(end) = say(socket, &said) {
                return end;
            }
        }
        let mut ticked = Instant::now();
        loop {
            // Also where somebody has something to say all the time.
            let left = TICK.saturating_sub(ticked.elapsed());
            let left = match self.watch {
                Some(_) => left.min(watch::LOOK),
                None => left,
            };
            let left = match self.credit {
                Some(_) => left.min(credit::LOOK),
                None => left,
            };
            match receive(socket, left) {
                Ok(Some((message, fds))) => {
                    if let Some(end) = self.handle(socket, message, fds) {
                        return end;
                    }
                }
                Ok(None) => {}
                Err(end) => return end,
            }
            if let Err(end) = self.look_for_moment(socket) {
                return end;
            }
            if let Err(end) = self.look_at_credit(socket) {
                return end;
            }
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
                if let Err(end) = self.tell_usage(socket) {
                    return end;
                }
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

    fn handle(&mut self, socket: &Arc<OwnedFd>, message: ToShim, fds: Vec<OwnedFd>) -> Option<End> {
        let answer = match message {
            ToShim::Welcome { .. } => return None,
            ToShim::MemoryReleased => {
                link::memory_released();
                return None;
            }
            ToShim::Shared(result) => {
                let fd = fds.into_iter().next();
                link::shared(
                    result.and_then(|()| fd.ok_or_else(|| "no fd came with the answer".to_owned())),
                );
                return None;
            }
            ToShim::Identified(allocation) => {
                link::identified(allocation, fds.into_iter().next());
                return None;
            }
            ToShim::Quiesce { seq, timeout_ms } => {
                let timeout = millis(timeout_ms);
                return self.quiesce(socket, seq, timeout, Manner::AtOnce).err();
            }
            ToShim::QuiesceAtCut { seq, timeout_ms } => {
                let timeout = millis(timeout_ms);
                return self.quiesce(socket, seq, timeout, Manner::AtCut).err();
            }
            // Of an attempt that is over.
            ToShim::Continue { .. } | ToShim::Settle { .. } => return None,
            ToShim::QuiesceInTurns {
                seq,
                timeout_ms,
                hold_ms,
            } => {
                let (timeout, hold) = (millis(timeout_ms), millis(hold_ms));
                let manner = if hold < timeout {
                    Manner::InTurns(hold)
                } else {
                    Manner::AtOnce
                };
                return self.quiesce(socket, seq, timeout, manner).err();
            }
            ToShim::Watch { seq, time } => {
                self.begin_watch(seq, time, Awaited::Wait);
                return None;
            }
            ToShim::WatchFor { seq, time, waits } => {
                self.begin_watch_for(seq, time, &waits);
                return None;
            }
            ToShim::AwaitStep { seq, time } => {
                self.begin_watch(seq, time, Awaited::Step);
                return None;
            }
            ToShim::Newest(newest) => {
                hints::newest(newest);
                return None;
            }
            ToShim::Credit { seq, credit } => {
                self.credit(seq, credit);
                return None;
            }
            ToShim::Resume { seq } => {
                self.end_watch();
                match self.phase {
                    Phase::Detached(_) => {
                        log::error!("Resume({seq}) while memory is detached: the gate stays closed")
                    }
                    Phase::Running => {}
                    Phase::Attached(_) if !registry::lock().are_objects_whole() => {
                        log::error!(
                            "Resume({seq}) while multicast objects are missing: the gate stays closed"
                        );
                    }
                    Phase::Quiesced(_) | Phase::Attached(_) => {
                        self.phase = Phase::Running;
                        self.open_gate(seq);
                    }
                }
                self.attaching = None;
                return None;
            }
            ToShim::Detach { seq } => {
                let outcome = match self.phase {
                    Phase::Quiesced(quiesced) if quiesced == seq => {
                        self.phase = Phase::Detached(seq);
                        detach::detach()
                    }
                    _ => Err(Refusal::Other(format!(
                        "Detach({seq}) without Quiesce({seq})"
                    ))),
                };
                let detached = outcome.is_ok();
                if let Err(end) = say(socket, &ToAgent::Detached { seq, outcome }) {
                    return Some(end);
                }
                return detached.then_some(End::Detached);
            }
            ToShim::Memory { keys, .. } => {
                self.attaching
                    .get_or_insert_with(Attaching::new)
                    .import(keys, fds);
                return None;
            }
            ToShim::Attach { seq } => {
                let attaching = self.attaching.take();
                let runs = !matches!(self.phase, Phase::Detached(_) | Phase::Attached(_));
                // One whose request to detach was lost. What others have taken apart it cannot join again while it runs.
                let outcome = if runs && rejoin::has_objects() {
                    Err(Refusal::Other(
                        "it was not detached, and has multicast objects that others make anew"
                            .to_owned(),
                    ))
                } else {
                    attaching.unwrap_or_else(Attaching::new).finish()
                };
                if outcome.is_ok()
                    && let Phase::Detached(_) = self.phase
                {
                    self.phase = Phase::Attached(seq);
                }
                if outcome.is_ok() {
                    for said in rejoin::held(seq, true) {
                        if let Err(end) = say(socket, &said) {
                            return Some(end);
                        }
                    }
                }
                ToAgent::Attached { seq, outcome }
            }
            ToShim::Remake { seq, key } => {
                let made = self.if_attached(seq, || rejoin::remake(key));
                let (object, made) = match made {
                    Ok((object, fd)) => (object, Ok(fd)),
                    Err(refusal) => (unmade(key), Err(refusal)),
                };
                let fd = made.as_ref().ok().map(AsFd::as_fd);
                let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
                let outcome = made.as_ref().map(|_| ()).map_err(Refusal::clone);
                let answer = ToAgent::Remade {
                    seq,
                    object,
                    outcome,
                };
                let sent = link::send_on(socket, &answer, &fds);
                return sent.err().map(|error| End::Lost(error.to_string()));
            }
            ToShim::Join { seq, keys, last } => {
                let joined = self.if_attached(seq, || {
                    rejoin::import(&keys, fds)?;
                    if last { rejoin::add_devices() } else { Ok(()) }
                });
                // Of several messages, the last is answered, or the first that fails.
                if joined.is_ok() && !last {
                    return None;
                }
                ToAgent::Joined {
                    seq,
                    outcome: joined,
                }
            }
            ToShim::Bind { seq } => ToAgent::Bound {
                seq,
                outcome: self.if_attached(seq, rejoin::bind),
            },
        };
        say(socket, &answer).err()
    }
}

impl Control {
    /// Does something to multicast objects, which is done between an attach and the opening of the gate.
    fn if_attached<T>(
        &self,
        seq: Sequence,
        what: impl FnOnce() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match self.phase {
            Phase::Attached(attached) if attached == seq => what(),
            _ => Err(Refusal::Other(format!(
                "multicast objects are made anew after Attach({seq}) alone"
            ))),
        }
    }
}

/// An object that could not be made, for an answer that says so.
fn unmade(key: AllocationKey) -> Allocation {
    Allocation {
        key,
        device: 0,
        bytes: 0,
        kind: AllocationKind::Multicast { devices: 0 },
        rdma: false,
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
