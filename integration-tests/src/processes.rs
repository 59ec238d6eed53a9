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

/// PIDs of all processes whose command line contains every one of `words`, in ascending order.
/// Zombies are left out.
pub fn processes_with(words: &[&str]) -> Vec<i32> {
    processes_with_but(words, None)
}

/// The same, without those whose command line contains `not`. By one look: what two looks see may be different processes.
pub(crate) fn processes_with_but(words: &[&str], not: Option<&str>) -> Vec<i32> {
    let me = std::process::id() as i32;
    let mut found: Vec<i32> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&pid| pid != me)
        .filter(|pid| {
            let Ok(raw) = fs::read(format!("/proc/{pid}/cmdline")) else {
                return false;
            };
            let line = String::from_utf8_lossy(&raw).replace('\0', " ");
            !line.is_empty()
                && words.iter().all(|word| line.contains(word))
                && not.is_none_or(|not| !line.contains(not))
        })
        .collect();
    found.sort_unstable();
    found
}

/// SIGKILLs them all. Those that are gone already do not matter.
pub fn kill_all(pids: &[i32]) {
    for &pid in pids {
        if let Some(pid) = Pid::from_raw(pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}
