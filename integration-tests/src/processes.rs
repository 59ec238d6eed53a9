//! Finding and killing the processes of a world, from outside, as a failing node would.

use std::fs;

use rustix::process::{Pid, Signal, kill_process};

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
