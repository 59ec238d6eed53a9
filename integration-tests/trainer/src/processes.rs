//! Processes around the trainer: workers, helpers, short-lived children, ranks.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A forked child; waited for when dropped.
#[derive(Debug)]
pub(crate) struct Child {
    pid: libc::pid_t,
}

impl Drop for Child {
    fn drop(&mut self) {
        // SAFETY: plain system calls on a child that nothing else waits for.
        unsafe {
            libc::kill(self.pid, libc::SIGKILL);
            libc::waitpid(self.pid, std::ptr::null_mut(), 0);
        }
    }
}

/// Has the kernel kill this process when its parent dies, so that no test leaves processes behind.
pub(crate) fn die_with_parent(parent: libc::pid_t) -> io::Result<()> {
    // SAFETY: prctl and getppid have no memory to get wrong here.
    unsafe {
        if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
            return Err(io::Error::last_os_error());
        }
        if libc::getppid() != parent {
            libc::_exit(0);
        }
    }
    Ok(())
}

/// Runs `body` in a forked child, which ends with it. Only while this process has one thread.
pub(crate) fn fork_child(body: impl FnOnce()) -> Result<Child> {
    let parent = std::process::id() as libc::pid_t;
    // SAFETY: the process has one thread, so the child may do whatever the parent may.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()).context("fork"),
        0 => {
            if die_with_parent(parent).is_ok() {
                body();
            }
            // SAFETY: ends the child without running the parent's destructors.
            unsafe { libc::_exit(0) }
        }
        pid => Ok(Child { pid }),
    }
}

/// A pipe, close-on-exec: (read end, write end).
pub(crate) fn pipe() -> Result<(File, File)> {
    let mut fds = [0; 2];
    // SAFETY: fds has room for the two descriptors.
    if unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) } != 0 {
        return Err(io::Error::last_os_error()).context("pipe");
    }
    // SAFETY: both descriptors are fresh and owned by nobody else.
    Ok(unsafe { (File::from_raw_fd(fds[0]), File::from_raw_fd(fds[1])) })
}

/// Forks children that touch no CUDA and live for a moment, as subprocess-happy libraries do.
#[derive(Debug, Default)]
pub(crate) struct ShortLived {
    running: Vec<libc::pid_t>,
}

impl ShortLived {
    pub(crate) fn fork(&mut self) -> Result<()> {
        // SAFETY: the process has many threads: the child calls async-signal-safe functions only.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()).context("fork"),
            0 => {
                let pause = libc::timespec {
                    tv_sec: 0,
                    tv_nsec: 20_000_000,
                };
                // SAFETY: as above.
                unsafe {
                    libc::nanosleep(&pause, std::ptr::null_mut());
                    libc::_exit(0)
                }
            }
            pid => self.running.push(pid),
        }
        Ok(())
    }

    /// Reaps those that have ended, or waits for all.
    pub(crate) fn reap(&mut self, wait: bool) {
        let flags = if wait { 0 } else { libc::WNOHANG };
        // SAFETY: a plain system call on children of ours.
        self.running
            .retain(|&pid| unsafe { libc::waitpid(pid, std::ptr::null_mut(), flags) } == 0);
    }
}

/// The variable that tells the ranks of a job from those of another.
pub(crate) const NAME: &str = "PHOS_TRAINER_RANKS";

/// What the ranks that this process starts call their job.
pub(crate) fn name_of_job() -> String {
    // A restored process has its number again while another has it on another machine: the time tells them apart.
    static OF_JOB: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let new = || {
        let now = std::time::UNIX_EPOCH
            .elapsed()
            .map_or(0, |since| since.as_nanos());
        format!("{}-{now:x}", std::process::id())
    };
    OF_JOB.get_or_init(new).clone()
}

/// Further trainers, each a process with CUDA of its own, and children of this one.
#[derive(Debug)]
pub(crate) struct Ranks(Vec<std::process::Child>);

impl Ranks {
    /// Starts this program again as ranks 1 to `count`, with its own arguments otherwise.
    pub(crate) fn start(count: u32) -> Result<Self> {
        let parent = std::process::id() as libc::pid_t;
        let program = std::env::current_exe().context("finding this program")?;
        let name = name_of_job();
        let mut started = Self(Vec::new());
        for rank in 1..=count {
            let mut command = Command::new(&program);
            command.args(std::env::args_os().skip(1));
            // Later options win over earlier ones.
            command.args(["--rank-processes", "0", "--rank", &rank.to_string()]);
            command.args(["--ranks", &(count + 1).to_string()]);
            command.env(NAME, &name);
            // SAFETY: prctl and getppid are async-signal-safe.
            unsafe { command.pre_exec(move || die_with_parent(parent)) };
            let child = command
                .spawn()
                .with_context(|| format!("starting rank {rank}"))?;
            started.0.push(child);
        }
        Ok(started)
    }

    /// As a launcher does, ends this process when one of them fails: the others would wait for it.
    pub(crate) fn watch(&self) -> Result<()> {
        use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
        let pids: Vec<Pid> = (self.0.iter())
            .filter_map(|child| Pid::from_raw(child.id().cast_signed()))
            .collect();
        let failed = move |pid: &Pid| {
            // It stays to be waited for.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            let ended = waitid(WaitId::Pid(*pid), options).ok().flatten();
            ended.is_some_and(|status| status.exit_status() != Some(0))
        };
        let watch = move || {
            while !pids.iter().any(&failed) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            eprintln!("phos-trainer: a rank failed");
            std::process::exit(1);
        };
        std::thread::Builder::new()
            .name("ranks".into())
            .spawn(watch)
            .context("starting a thread")?;
        Ok(())
    }

    /// Waits for all of them.
    pub(crate) fn finish(mut self) -> Result<()> {
        let mut failed = Vec::new();
        for (index, child) in self.0.iter_mut().enumerate() {
            let status = child.wait()?;
            if !status.success() {
                failed.push(format!("rank {}: {status}", index + 1));
            }
        }
        ensure!(failed.is_empty(), "{}", failed.join(", "));
        Ok(())
    }
}

/// From here on SIGTERM ends this process with success, wherever it is.
pub(crate) fn end_on_sigterm() {
    extern "C" fn end(_: libc::c_int) {
        // SAFETY: async-signal-safe.
        unsafe { libc::_exit(0) }
    }
    let handler = end as extern "C" fn(libc::c_int);
    // SAFETY: a handler that does nothing but end the process.
    unsafe { libc::signal(libc::SIGTERM, handler as libc::sighandler_t) };
}
