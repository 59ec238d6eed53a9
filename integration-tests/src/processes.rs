//! Finding and killing the processes of a world, from outside, as a failing node would.

use std::fs;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::scenario::LIMIT;
use crate::wait_for;

/// Processes of one world, by role, with their PIDs outside the job's namespace.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Processes of the job.
    pub job: Vec<i32>,
    /// `phos-ft run`.
    pub agent: Vec<i32>,
    /// The sidecar and its supervisor.
    pub sidecar: Vec<i32>,
}

/// All processes but this one and zombies: PID and command line, by ascending PID. What two looks see may be different processes:
/// who asks for several kinds looks once.
pub(crate) fn processes() -> Vec<(i32, String)> {
    let me = std::process::id() as i32;
    let mut found: Vec<(i32, String)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&pid| pid != me)
        .filter_map(|pid| {
            let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&raw).replace('\0', " ");
            (!line.is_empty()).then_some((pid, line))
        })
        .collect();
    found.sort_unstable();
    found
}

/// PIDs of all processes whose command line contains every one of `words`, in ascending order.
/// Zombies are left out.
pub fn processes_with(words: &[&str]) -> Vec<i32> {
    let all = processes().into_iter();
    all.filter(|(_, line)| words.iter().all(|word| line.contains(word)))
        .map(|(pid, _)| pid)
        .collect()
}

/// SIGKILLs them all. Those that are gone already do not matter.
pub fn kill_all(pids: &[i32]) {
    for &pid in pids {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// Stops a process with SIGSTOP, and waits until none of its threads runs any more: on a busy machine they do for a while.
///
/// # Errors
/// When it is gone.
pub fn stop_process(pid: i32) -> Result<Pid> {
    let process = Pid::from_raw(pid).context("no process")?;
    kill_process(process, Signal::STOP)?;
    wait_for("the process to stand still", LIMIT, || {
        let mut threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
        let stands = |thread: fs::DirEntry| {
            let stat = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            // After the name, which may have anything in it.
            stat.rsplit(") ")
                .next()
                .is_some_and(|rest| rest.starts_with('T'))
        };
        threads.all(stands).then_some(())
    })?;
    Ok(process)
}
