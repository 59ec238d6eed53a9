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
    /// `phos-ft checkpoint` and others that ask.
    pub commands: Vec<i32>,
}

impl Tree {
    /// Where a process of phos-ft's with this command line belongs. The agent's subcommand may come after flags, those that ask come first, and the
    /// sidecar has none.
    pub(crate) fn of_phos_ft(&mut self, line: &str) -> &mut Vec<i32> {
        let mut words = line.split_whitespace();
        let subcommand = words
            .find(|word| word.ends_with("phos-ft"))
            .and_then(|_| words.next())
            .filter(|word| !word.starts_with('-'));
        if line.contains(" run ") {
            &mut self.agent
        } else if subcommand.is_some() {
            &mut self.commands
        } else {
            &mut self.sidecar
        }
    }
}

/// All processes but this one and zombies: PID and command line, the oldest first, which is not the order of PIDs once those have begun
/// anew. What two looks see may be different processes: who asks for several kinds looks once.
pub(crate) fn processes() -> Vec<(i32, String)> {
    let me = std::process::id() as i32;
    let mut found: Vec<(u64, i32, String)> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|&pid| pid != me)
        .filter_map(|pid| {
            let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
            let line = String::from_utf8_lossy(&raw).replace('\0', " ");
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            (!line.is_empty()).then_some((started(&stat)?, pid, line))
        })
        .collect();
    found.sort_unstable();
    found
        .into_iter()
        .map(|(_, pid, line)| (pid, line))
        .collect()
}

/// When a process began, in clock ticks since the machine did: field 22 of `/proc/PID/stat` (proc_pid_stat(5)).
fn started(stat: &[u8]) -> Option<u64> {
    after_name(stat).split_whitespace().nth(19)?.parse().ok()
}

/// What `stat` says after the name, from field 3 on. The name may have blanks and parentheses in it, and be no text: it is cut off after 15
/// bytes, in the midst of a character too.
fn after_name(stat: &[u8]) -> String {
    let end = stat.iter().rposition(|b| *b == b')');
    let rest = end.map_or(&[][..], |end| &stat[end + 1..]);
    String::from_utf8_lossy(rest).into_owned()
}

/// PIDs of all processes whose command line contains every one of `words`, the oldest first.
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
            let stat = fs::read(thread.path().join("stat")).unwrap_or_default();
            after_name(&stat).starts_with(" T ")
        };
        threads.all(stands).then_some(())
    })?;
    Ok(process)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_not_taken_for_the_sidecar() {
        let mut tree = Tree::default();
        let lines = [
            "/x/phos-ft --interval 1s --run-dir /run/x -- train",
            "/x/phos-ft --job j --run-dir /run/x",
            "/x/phos-ft --job j --run-dir /run/x run --grace 10s -- train",
            "/x/phos-ft checkpoint --run-dir /run/x",
            "/x/phos-ft",
        ];
        for (pid, line) in lines.iter().enumerate() {
            tree.of_phos_ft(line).push(pid as i32);
        }
        assert_eq!(tree.sidecar, [0, 1, 4]);
        assert_eq!((tree.agent, tree.commands), (vec![2], vec![3]));
    }

    #[test]
    fn the_start_is_read_behind_any_name() {
        let after = b" S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        for name in [&b"(a) b (c)"[..], b"(cut off \xe2\x82)"] {
            let stat = [b"7 ", name, after].concat();
            assert_eq!(started(&stat), Some(4711));
        }
        assert_eq!(started(b"7 (a) S 1"), None);
        let own = fs::read("/proc/self/stat").ok();
        assert!(own.as_deref().and_then(started).is_some_and(|at| at > 0));
    }
}
