//! A rank that fails while its launcher goes on.
//!
//! How a process of the job ends is the affair of whoever started it, but for the main process, whose failure is a crash. With one exception: ranks
//! that talk through NCCL wait for ever for one that is gone, and a launcher that starts them anew (`torchrun --max-restarts`)
//! has them begin with their first step. So when one of them fails, the whole job is ended and resumes from its newest checkpoint.
//!
//! # Rules
//!
//! * A rank is a process that had NCCL communicators when it ended. Nothing follows where there is no checkpoint, or no sidecar to resume
//!   it: the launcher does what it does.
//! * It failed if a signal killed it or its code was not 0. Whoever started it has [`GRACE`] to end the job itself, as most do.
//! * How it ended its shim has said (`End`), else the kernel knows until whoever started it has asked. Where nobody does, it failed if others of
//!   its time are still there after [`TOGETHER`]: ranks that are done are done together.

use std::time::{Duration, Instant};

use phos_protocol::agent::{Exit, JobState};
use phos_protocol::types::ProcessId;
use phos_shared::run_dir;

use super::Init;
use crate::channels::shims::End;
use crate::config::RankFailure;
use crate::proc;

/// From the failure of a rank until the job is ended.
const GRACE: Duration = Duration::from_secs(1);
/// From the end of a rank of which nothing is known until those that are left count as left behind.
const TOGETHER: Duration = Duration::from_secs(5);

/// How a rank ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Ended(Exit),
    /// By a signal.
    Killed,
    Unknown,
}

/// A rank has ended, and the job goes on without it.
#[derive(Debug)]
pub(super) struct Missing {
    rank: ProcessId,
    how: How,
    /// When the job is ended, if it still runs then.
    pub(super) at: Instant,
    /// The ranks that were there with it, by PID and instance.
    others: Vec<(ProcessId, u64)>,
}

impl Init {
    /// A process with CUDA has ended: if it was a rank, what that means is decided at `Missing::at`.
    pub(super) fn rank_may_be_missing(&mut self, pid: ProcessId) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        if !process.communicates || self.job.root == Some(pid) {
            return;
        }
        let how = match (process.end, exit_of(pid)) {
            (End::Told(code), _) => How::Ended(Exit::Code(code.into())),
            (_, Some(exit)) => How::Ended(exit),
            (End::ToBeTold, None) => How::Killed,
            (End::Untold, None) => How::Unknown,
        };
        let wait = match how {
            How::Ended(exit) if exit.is_success() => return,
            How::Ended(_) | How::Killed => GRACE,
            How::Unknown => TOGETHER,
        };
        // The first one that is known to have failed counts: the others followed it.
        let replaces = |before: &Missing| before.how == How::Unknown && how != How::Unknown;
        if !self.missing.as_ref().is_none_or(replaces) {
            return;
        }
        let ranks = (self.processes.iter()).filter(|(other, p)| **other != pid && p.communicates);
        self.missing = Some(Missing {
            rank: pid,
            how,
            at: Instant::now() + wait,
            others: ranks.map(|(&pid, p)| (pid, p.instance)).collect(),
        });
    }

    /// Ends a job that still runs without one of its ranks.
    pub(super) fn rank_is_missing(&mut self) {
        let Some(missing) = self.missing.take() else {
            return;
        };
        let Missing { rank, how, .. } = missing;
        let is_left = |(pid, instance): &(ProcessId, u64)| {
            (self.processes.get(pid)).is_some_and(|p| p.instance == *instance)
        };
        let failed = how != How::Unknown || missing.others.iter().any(is_left);
        let is_ending = self.kill.until.is_some()
            || self.kill.saving.is_some()
            || self.ending.stopping.is_some()
            || self.ending.interrupted.is_some();
        let runs = self.job.state == JobState::Running && self.job.root.is_some();
        if !failed || !runs || is_ending || self.restore.is_some() {
            return;
        }
        let can_resume =
            self.sidecar.is_connected() && run_dir::has_checkpoints(&self.config.job_dir());
        match self.config.rank_failure {
            RankFailure::Resume if can_resume => {
                tracing::error!(
                    rank,
                    ?how,
                    "a rank failed and the job goes on without it: it is ended and resumes from its newest checkpoint"
                );
                self.kill_everything();
            }
            RankFailure::Resume => tracing::warn!(
                rank,
                ?how,
                "a rank failed, and there is no checkpoint or no sidecar to resume the job: it is left to the program that started it"
            ),
            RankFailure::Leave => tracing::warn!(
                rank,
                ?how,
                "a rank failed: it is left to the program that started it"
            ),
        }
    }
}

/// How a process has ended that nobody has asked about yet.
fn exit_of(pid: ProcessId) -> Option<Exit> {
    exit_in(&proc::text(pid, "stat").ok()?)
}

/// The same from `/proc/PID/stat` (proc_pid_stat(5)): the state is the first field behind the name, the status the last, the
/// fifty-second of all.
fn exit_in(stat: &str) -> Option<Exit> {
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    let (&"Z", status) = (fields.first()?, fields.get(49)?) else {
        return None;
    };
    let status: i32 = status.parse().ok()?;
    match status & 0x7f {
        0 => Some(Exit::Code(status >> 8 & 0xff)),
        signal => Some(Exit::Signal(signal)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_a_child_ended_is_known_until_somebody_asks() {
        for (command, exit) in [
            ("exit 0", Exit::Code(0)),
            ("exit 3", Exit::Code(3)),
            ("kill -KILL $$", Exit::Signal(9)),
        ] {
            let mut child = std::process::Command::new("sh")
                .args(["-c", command])
                .spawn()
                .unwrap();
            let pid = rustix::process::Pid::from_child(&child);
            rustix::process::waitid(
                rustix::process::WaitId::Pid(pid),
                rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT,
            )
            .unwrap();
            assert_eq!(exit_of(child.id()), Some(exit), "{command}");
            child.wait().unwrap();
            assert_eq!(exit_of(child.id()), None, "{command}");
        }
    }

    #[test]
    fn a_process_that_runs_has_not_ended_whatever_it_calls_itself() {
        assert_eq!(exit_of(std::process::id()), None);
        assert_eq!(exit_in("7 (x) Z 1) R 1 7 7"), None);
        assert_eq!(exit_in(""), None);
    }
}
