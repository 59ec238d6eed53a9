//! Signals as file descriptors, and reaping.
//!
//! Every signal the agent handles is blocked in all its threads from the start and read from a signalfd by the
//! main loop: nothing runs in a handler. PID 1 must reap everything that is reparented to it; exit statuses of
//! processes nobody asked about are dropped.
//!
//! `std::process::Command::spawn` waits for its child by itself when `exec` fails. [`children`] keeps the reaper
//! out meanwhile.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use phos_protocol::agent::Exit;

/// Signals that are passed on to the job's main process as they come.
pub const FORWARDED: [Signal; 7] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGCONT,
];

/// All signals the agent handles.
pub fn handled() -> SigSet {
    let mut set = SigSet::empty();
    for signal in FORWARDED {
        set.add(signal);
    }
    set.add(Signal::SIGTERM);
    set.add(Signal::SIGCHLD);
    set
}

/// Blocks the handled signals and opens their descriptor.
///
/// # Errors
/// The system calls'.
pub fn open() -> nix::Result<SignalFd> {
    let set = handled();
    pthread_sigmask(SigmaskHow::SIG_BLOCK, Some(&set), None)?;
    SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)
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
        let pid = i32::try_from(pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}

/// What the reaper found.
#[derive(Debug, Default)]
pub struct Reaped {
    /// Who ended, and how.
    pub ended: Vec<(u32, Exit)>,
    /// No child is left at all.
    pub none_left: bool,
}

/// Reaps all children that have ended.
pub fn reap() -> Reaped {
    let mut helpers = children();
    let mut reaped = Reaped::default();
    loop {
        let (pid, exit) = match waitpid(
            Pid::from_raw(-1),
            Some(WaitPidFlag::WNOHANG | WaitPidFlag::__WALL),
        ) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal as i32)),
            Ok(WaitStatus::StillAlive) => return reaped,
            Ok(_) => continue,
            Err(nix::Error::EINTR) => continue,
            Err(_) => {
                reaped.none_left = true;
                return reaped;
            }
        };
        let pid = pid.as_raw().unsigned_abs();
        if !helpers.remove(&pid) {
            reaped.ended.push((pid, exit));
        }
    }
}

/// For a child between `fork` and `exec`: no signal blocked.
///
/// # Errors
/// The system call's.
pub fn unblock_all() -> std::io::Result<()> {
    pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None).map_err(Into::into)
}
