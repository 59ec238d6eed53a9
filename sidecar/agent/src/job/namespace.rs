//! The job's PID namespace: making it, and choosing PIDs inside.
//!
//! The agent is PID 1 of the namespace in which the job lives. In a container it is PID 1 already. Elsewhere
//! the calling process stays outside as a thin parent and a child becomes PID 1:
//!
//! ```text
//! phos-ft run (outer: forwards signals, passes the exit code on)
//!  └─ phos-ft run (inner: PID 1, fresh /proc, masked; own session)
//!      └─ CMD (PID ≥ 10000)
//! ```
//!
//! # Crash
//!
//! * The outer process dies → the inner one gets SIGKILL (parent death signal), and with PID 1 the kernel ends
//!   everything in the namespace.
//! * The inner process dies → the kernel ends everything in the namespace as well, and the outer process exits with 128 + signal.
//!
//! # /proc
//!
//! A fresh `/proc` has none of what a container runtime mounts over parts of it, and in a container it would undo that: root
//! could write to `/proc/sys/kernel/core_pattern`, and the machine would run what stands there. So the same parts are
//! [masked](mask). CRIU and the job are in the agent's mount namespace, so that images contain no mounts. Neither the agent nor
//! CRIU needs what is masked: PIDs are chosen by `clone3`, and by [a proc that is mounted nowhere](PidCounter). A job that is
//! root could take the masks away if it had SYS_ADMIN: see [`forgo_ours`](crate::user::forgo_ours).
//!
//! # PIDs
//!
//! A restore needs the PIDs of the image free. So the job starts at [`first_job_pid`], while everything the
//! agent runs around a restore gets lower numbers ([`PidCounter`]).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{ForkResult, fork};
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process, set_parent_process_death_signal, setsid,
    waitpid,
};

use crate::job::signals::{self, Signals};
use crate::job::stdio;
use crate::proc;

/// The job starts at one of so many PIDs from here on.
const FIRST_JOB_PID: u32 = 10_000;
const FIRST_JOB_PIDS: u32 = 10_000;

/// A PID for the job to start at, chosen at random: the driver names an abstract socket of each process by its PID and the
/// number of its PID namespace. A restored process keeps the name, the kernel gives the namespace's number away again, and
/// the next job on this machine that began at the same PID in a namespace of that number could not initialise CUDA (304).
pub fn first_job_pid() -> u32 {
    let mut random = [0; 4];
    // Without random bytes they all start at the same.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    FIRST_JOB_PID + u32::from_ne_bytes(random) % FIRST_JOB_PIDS
}

/// Why no namespace could be set up.
#[derive(Debug, thiserror::Error)]
pub enum NamespaceError {
    /// Capabilities are missing.
    #[error(
        "missing {}: taking checkpoints of a process tree needs them. Run as root; in a container add `--cap-add SYS_ADMIN \
         --cap-add SYS_PTRACE --cap-add NET_ADMIN --cap-add SYS_TIME --security-opt seccomp=SECCOMP.JSON --security-opt \
         apparmor=unconfined` with the docker/seccomp.json of phos-ft; or pass --allow-unprotected to train without checkpoints",
        .0.join(", ")
    )]
    Capabilities(Vec<&'static str>),
    /// A system call failed.
    #[error(
        "cannot {what}: {cause}. In a container, seccomp or AppArmor may forbid it: add `--security-opt seccomp=SECCOMP.JSON \
         --security-opt apparmor=unconfined` with the docker/seccomp.json of phos-ft, or make phos-ft the entrypoint"
    )]
    System {
        /// What was tried.
        what: &'static str,
        /// The error that the system call returned.
        cause: io::Error,
    },
}

fn system<E: Into<io::Error>>(what: &'static str) -> impl Fn(E) -> NamespaceError {
    move |e| NamespaceError::System {
        what,
        cause: e.into(),
    }
}

/// Which process the caller is after [`enter`].
#[derive(Debug)]
pub enum Entered {
    /// PID 1 of the job's namespace.
    Init,
    /// The process outside, its work done: the exit code of the inner one.
    Outer(i32),
}

/// What CRIU and the agent need. Numbers: `capability.h`.
const NEEDED: [(u32, &str); 9] = [
    (0, "CAP_CHOWN"),
    (1, "CAP_DAC_OVERRIDE"),
    (5, "CAP_KILL"),
    (6, "CAP_SETGID"),
    (7, "CAP_SETUID"),
    (12, "CAP_NET_ADMIN"),
    (19, "CAP_SYS_PTRACE"),
    (21, "CAP_SYS_ADMIN"),
    // Of a restore alone (time namespace): found out now, not when it is needed.
    (25, "CAP_SYS_TIME"),
];

/// Without it the kernel tells nobody the limits of another user's process. Not needed: see `shim/criu-preload`.
const SYS_RESOURCE: u32 = 24;

/// This process's effective capabilities, a bit each.
fn effective_capabilities() -> u64 {
    own_status("CapEff")
        .and_then(|v| u64::from_str_radix(&v, 16).ok())
        .unwrap_or(0)
}

/// A field of this process's `/proc/self/status`.
pub fn own_status(name: &str) -> Option<String> {
    let status = proc::own_text("status").ok()?;
    proc::field(&status, name).map(str::to_owned)
}

/// Whether this process has a seccomp filter: a container's profile.
pub fn is_filtered() -> bool {
    own_status("Seccomp").is_some_and(|mode| mode == "2")
}

/// Whether this process may ask for the limits of every process.
pub fn may_ask_for_limits() -> bool {
    effective_capabilities() & (1 << SYS_RESOURCE) != 0
}

/// Names of the capabilities that are needed and not effective.
pub fn missing_capabilities() -> Vec<&'static str> {
    let effective = effective_capabilities();
    NEEDED
        .iter()
        .filter(|(bit, _)| effective & (1 << bit) == 0)
        .map(|(_, name)| *name)
        .collect()
}

/// Becomes PID 1 of a namespace, making one if need be. The caller must be single-threaded (it forks and continues in the child).
///
/// # Errors
/// [`NamespaceError`]; nothing was started.
pub fn enter() -> Result<Entered, NamespaceError> {
    let missing = missing_capabilities();
    if !missing.is_empty() {
        return Err(NamespaceError::Capabilities(missing));
    }
    if getpid().is_init() {
        return Ok(Entered::Init);
    }
    stdio::leave_to_the_shell().map_err(system("leave the terminal's input to the shell"))?;
    unshare(CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS)
        .map_err(system("make a PID and a mount namespace"))?;
    // Blocked before the fork, so that no signal is lost in either process.
    let handled = Signals::block().map_err(system("block signals"))?;
    let (watch, held) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(system("make a pipe"))?;
    // SAFETY: the caller is single-threaded, so the child may go on as a normal program.
    match unsafe { fork() }.map_err(system("fork"))? {
        ForkResult::Parent { child } => {
            drop(watch);
            let code = outer(child.as_raw(), &handled);
            drop(held);
            Ok(Entered::Outer(code))
        }
        ForkResult::Child => {
            drop(held);
            inner(watch)?;
            Ok(Entered::Init)
        }
    }
}

/// The child's set-up: dies with its parent, has its own session and `/proc`.
fn inner(watch: OwnedFd) -> Result<(), NamespaceError> {
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(system("tie the agent to its parent"))?;
    // The parent may have died before: then its end of the pipe is closed.
    let mut fds = [rustix::event::PollFd::new(
        &watch,
        rustix::event::PollFlags::IN,
    )];
    let zero = rustix::event::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    if matches!(rustix::event::poll(&mut fds, Some(&zero)), Ok(n) if n > 0) {
        std::process::exit(137);
    }
    setsid().map_err(system("make a session"))?;
    let below = MountPropagationFlags::DOWNSTREAM | MountPropagationFlags::REC;
    mount_change("/", below).map_err(system("make mounts private"))?;
    mount("proc", "/proc", "proc", NOTHING, None).map_err(system("mount a fresh /proc"))?;
    mask()
}

/// No devices, no programs, no set-user-ID.
const NOTHING: MountFlags = MountFlags::NOSUID
    .union(MountFlags::NODEV)
    .union(MountFlags::NOEXEC);

/// What container runtimes let be read only (`runc`, `containerd`), and `/proc/scsi` hidden with the rest.
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];
const HIDDEN: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/sys/firmware",
];

/// Makes parts of `/proc` read-only and hides others, as container runtimes do. What this kernel does not have needs nothing.
fn mask() -> Result<(), NamespaceError> {
    for path in READ_ONLY {
        if !std::path::Path::new(path).exists() {
            continue;
        }
        mount_bind_recursive(path, path)
            .and_then(|()| {
                let again = MountFlags::BIND | MountFlags::RDONLY;
                mount_remount(path, again | NOTHING, c"")
            })
            .map_err(system("make parts of /proc read-only"))?;
    }
    for path in HIDDEN {
        let Ok(found) = std::fs::metadata(path) else {
            continue;
        };
        if found.is_dir() {
            let flags = MountFlags::RDONLY | NOTHING;
            mount("tmpfs", path, "tmpfs", flags, Some(c"size=0k"))
        } else {
            mount_bind("/dev/null", path)
        }
        .map_err(system("hide parts of /proc"))?;
    }
    Ok(())
}

/// The process outside: forwards signals, waits, returns the exit code.
fn outer(child: i32, handled: &Signals) -> i32 {
    let child = Pid::from_raw(child);
    loop {
        let Ok(signal) = handled.wait() else {
            continue;
        };
        if signal != Signal::CHILD {
            // An error means that the child is gone; the wait below will say so.
            let _ = child.map(|child| kill_process(child, signal));
            continue;
        }
        match waitpid(child, WaitOptions::NOHANG) {
            Ok(Some((_, status))) => {
                if let Some(exit) = signals::exit_of(status) {
                    return exit.shell_code();
                }
            }
            Ok(None) => {}
            Err(_) => return 1,
        }
    }
}

/// Sets the PID that the next process or thread of the namespace gets.
#[derive(Debug)]
pub struct PidCounter {
    file: File,
}

impl PidCounter {
    /// Opens the kernel's counter. Where `/proc/sys` is read-only (containers), through a private instance of
    /// proc that is mounted nowhere.
    ///
    /// # Errors
    /// [`NamespaceError::System`].
    pub fn open() -> Result<Self, NamespaceError> {
        let direct = File::options()
            .write(true)
            .open("/proc/sys/kernel/ns_last_pid");
        let file = match direct {
            Ok(file) => file,
            Err(first) => private_counter().map_err(|_| NamespaceError::System {
                what: "open /proc/sys/kernel/ns_last_pid for writing",
                cause: first,
            })?,
        };
        Ok(Self { file })
    }

    /// Makes `next` the next PID (or the first free one above).
    ///
    /// # Errors
    /// [`NamespaceError::System`].
    pub fn set_next(&self, next: u32) -> Result<(), NamespaceError> {
        let text = next.saturating_sub(1).to_string();
        self.file
            .write_all_at(text.as_bytes(), 0)
            .map_err(|cause| NamespaceError::System {
                what: "choose the next PID through ns_last_pid",
                cause,
            })
    }
}

fn private_counter() -> io::Result<File> {
    use rustix::mount::{
        FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen,
    };
    let context = fsopen("proc", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let proc = fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    // SAFETY: a valid directory fd and a NUL-terminated path; the result is checked before it is owned.
    let fd = unsafe {
        libc::openat(
            proc.as_raw_fd(),
            c"sys/kernel/ns_last_pid".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// The first of `count` consecutive PIDs from 300 on of which none is in `taken`.
pub fn free_range(taken: &std::collections::BTreeSet<u32>, count: u32) -> u32 {
    let mut first = 300;
    for &pid in taken.range(300..) {
        if pid >= first + count {
            break;
        }
        first = pid + 1;
    }
    first
}

/// Every process and thread id of the namespace.
///
/// # Errors
/// `/proc` is not readable.
pub fn all_ids() -> io::Result<std::collections::BTreeSet<u32>> {
    let mut ids = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|s| s.parse::<u32>().ok()) else {
            continue;
        };
        ids.insert(pid);
        // A process that ended meanwhile has no threads.
        ids.extend(proc::threads(pid));
    }
    Ok(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_range_is_free(taken in proptest::collection::btree_set(250_u32..2000, 0..40)) {
            let first = free_range(&taken, 100);
            prop_assert!(first >= 300);
            prop_assert!(taken.range(first..first + 100).next().is_none());
        }
    }
}
