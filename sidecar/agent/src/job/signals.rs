//! Signals as file descriptors, and reaping.
//!
//! Every signal the agent handles is blocked in all its threads from the start and read from a signalfd by the main loop: nothing
//! runs in a handler. PID 1 must reap everything that is reparented to it; exit statuses of processes that nobody asked about are
//! dropped.
//!
//! `std::process::Command::spawn` waits for its child by itself when `exec` fails. [`children`] keeps the reaper
//! out meanwhile.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{SigSet, SigmaskHow, Signal as Mask, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use phos_protocol::agent::Exit;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, wait};

/// All signals the agent handles. Those but SIGTERM and SIGCHLD are passed on to the job's main process as they come.
const HANDLED: [Mask; 9] = [
    Mask::SIGHUP,
    Mask::SIGINT,
    Mask::SIGQUIT,
    Mask::SIGUSR1,
    Mask::SIGUSR2,
    Mask::SIGWINCH,
    Mask::SIGCONT,
    Mask::SIGTERM,
    Mask::SIGCHLD,
];

/// The handled signals, blocked and waited for.
#[derive(Debug)]
pub struct Signals {
    set: SigSet,
}

impl Signals {
    /// Blocks them: from now on none is lost.
    ///
    /// # Errors
    /// The error that the system call returns.
    pub fn block() -> io::Result<Self> {
        let set = HANDLED.into_iter().collect();
        pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
        Ok(Self { set })
    }

    /// Waits for the next.
    ///
    /// # Errors
    /// The error that the system call returns.
    pub fn wait(&self) -> io::Result<Signal> {
        named(self.set.wait()? as i32)
    }

    /// A descriptor from which they are read.
    ///
    /// # Errors
    /// The error that the system call returns.
    pub fn descriptor(&self) -> io::Result<SignalDescriptor> {
        let flags = SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK;
        Ok(SignalDescriptor(SignalFd::with_flags(&self.set, flags)?))
    }
}

fn named(number: i32) -> io::Result<Signal> {
    Signal::from_named_raw(number).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The descriptor from which the handled signals are read.
#[derive(Debug)]
pub struct SignalDescriptor(SignalFd);

impl SignalDescriptor {
    /// The next signal that has arrived, without waiting.
    pub fn next(&self) -> Option<Signal> {
        let info = self.0.read_signal().ok()??;
        named(info.ssi_signo.cast_signed()).ok()
    }
}

impl AsFd for SignalDescriptor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sends a signal. It is no error if the process has gone: the reaper will say so.
pub fn send(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// The agent's own helpers that have not been reaped.
static HELPERS: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Held while a child is spawned and while children are reaped. A helper of the agent (criu) is entered here, so
/// that it is not taken for a process of the job.
pub fn children() -> MutexGuard<'static, BTreeSet<u32>> {
    HELPERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends the helpers of this process (CRIU): what they were doing cannot succeed any more.
pub fn kill_children() {
    for &pid in children().iter() {
        send(pid, Signal::KILL);
    }
}

/// What the reaper found in one pass.
#[derive(Debug, Default)]
pub struct Reaped {
    /// The PIDs that ended, and how each did.
    pub ended: Vec<(u32, Exit)>,
    /// No child is left at all.
    pub none_left: bool,
}

/// How a process ended, if that is what `waitpid` says of it.
pub fn exit_of(status: WaitStatus) -> Option<Exit> {
    let exited = status.exit_status().map(Exit::Code);
    exited.or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// `__WALL`: children that `clone` made without SIGCHLD as well.
const WALL: WaitOptions = WaitOptions::from_bits_retain(libc::__WALL.cast_unsigned());

/// Reaps all children that have ended.
pub fn reap() -> Reaped {
    let mut helpers = children();
    let mut reaped = Reaped::default();
    loop {
        let (pid, status) = match wait(WaitOptions::NOHANG | WALL) {
            Ok(Some(ended)) => ended,
            Ok(None) => return reaped,
            Err(rustix::io::Errno::INTR) => continue,
            Err(_) => {
                reaped.none_left = true;
                return reaped;
            }
        };
        let Some(exit) = exit_of(status) else {
            continue;
        };
        let pid = pid.as_raw_nonzero().get().unsigned_abs();
        if !helpers.remove(&pid) {
            reaped.ended.push((pid, exit));
        }
    }
}

/// For a child between `fork` and `exec`: no signal blocked.
///
/// # Errors
/// The error that the system call returns.
pub fn unblock_all() -> std::io::Result<()> {
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(Into::into)
}
