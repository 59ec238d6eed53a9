//! A rank that fails while its launcher goes on.
//!
//! How a process of the job ends is the affair of whoever started it, but for the main process, whose failure is a crash. With one exception: ranks
//! that talk through NCCL wait for ever for one that is gone, and a launcher that starts them anew (`torchrun --max-restarts`)
//! has them begin with their first step. So when one of them fails, the whole job is ended and resumes from its newest checkpoint.
//!
//! # Rules
//!
//! * A rank is a process that had NCCL communicators. It failed if it was killed or its code was not 0: its shim has said how it ends
//!   ([`End`]), else the kernel knows until whoever started it has asked. Where nobody knows, nothing follows; nor where it was sent SIGTERM, with which
//!   programs end their ranks on purpose.
//! * Whoever started it has [`GRACE`] to end the job itself, as most do. After that the job is ended if other ranks of its time still wait for it;
//!   if they are gone too, once there are new ones, for which [`ANEW`] is waited. A program that has done with its ranks starts none.
//! * No checkpoint is taken meanwhile: it would be one of the job without that rank, or of one that began anew.
//! * Nothing follows where the job has no checkpoint; a sidecar that is away is waited for. A job that loses a rank more often than [`ROUNDS`] within
//!   [`WINDOW`] is left to its launcher: it does so each time it gets there.

use std::time::{Duration, Instant};

use phos_protocol::agent::{AttemptError, Exit, JobState};
use phos_protocol::types::ProcessId;
use phos_shared::run_dir;

use super::Init;
use crate::channels::shims::End;
use crate::config::RankFailure;
use crate::proc;

/// From the failure of a rank until the job is ended.
const GRACE: Duration = Duration::from_secs(1);
/// How long new ranks are waited for.
const ANEW: Duration = Duration::from_secs(60);
/// How often a sidecar that is away is looked for.
const LOOK: Duration = Duration::from_secs(1);
/// So often, within that time, the job is ended for a rank.
const ROUNDS: usize = 3;
const WINDOW: Duration = Duration::from_secs(600);

const SIGTERM: i32 = rustix::process::Signal::TERM.as_raw();

/// How a rank failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum How {
    Ended(Exit),
    /// By a signal that nobody knows any more.
    Killed,
}

/// A rank has failed, and the job goes on without it.
#[derive(Debug)]
pub(super) struct Missing {
    rank: ProcessId,
    how: How,
    since: Instant,
    /// When it is looked at next.
    pub(super) at: Instant,
    /// The ranks that were there with it, by PID and instance.
    others: Vec<(ProcessId, u64)>,
}

/// Ranks that the job lost.
#[derive(Debug, Default)]
pub(super) struct Lost {
    /// The one that was not decided about yet.
    pub(super) missing: Option<Missing>,
    /// When the job was ended for one.
    rounds: Vec<Instant>,
}

impl Init {
    /// A process with CUDA has ended: if it was a rank and failed, what follows is decided at `Missing::at`.
    pub(super) fn rank_may_be_missing(&mut self, pid: ProcessId) {
        let Some(process) = self.processes.get(&pid) else {
            return;
        };
        // The first one counts: the others followed it.
        if !process.communicates || self.job.root == Some(pid) || self.lost.missing.is_some() {
            return;
        }
        let how = match (process.end, exit_of(pid)) {
            (End::Told(0), _) | (End::Untold, None) => return,
            (End::Told(code), _) => How::Ended(Exit::Code(code.into())),
            (_, Some(Exit::Code(0) | Exit::Signal(SIGTERM))) => return,
            (_, Some(exit)) => How::Ended(exit),
            (End::ToBeTold, None) => How::Killed,
        };
        if self.config.rank_failure == RankFailure::Leave {
            return leave(pid, how, "--rank-failure says so");
        }
        let ranks = (self.processes.iter()).filter(|(other, p)| **other != pid && p.communicates);
        let now = Instant::now();
        self.lost.missing = Some(Missing {
            rank: pid,
            how,
            since: now,
            at: now + GRACE,
            others: ranks.map(|(&pid, p)| (pid, p.instance)).collect(),
        });
    }

    /// Why no checkpoint can be taken now.
    pub(super) fn is_without_a_rank(&self) -> Option<AttemptError> {
        let missing = self.lost.missing.as_ref()?;
        Some(AttemptError::Soon(format!(
            "process {}, a rank, has failed, and it is not known yet what its launcher does",
            missing.rank
        )))
    }

    /// Decides about a rank that failed.
    pub(super) fn rank_is_missing(&mut self) {
        let Some(missing) = self.lost.missing.take() else {
            return;
        };
        let runs = self.job.state == JobState::Running && self.job.root.is_some();
        let is_killed = self.kill.until.is_some() || self.kill.saving.is_some();
        let is_interrupted =
            (self.ending.interrupted).is_some_and(|at| at.elapsed() <= self.config.grace);
        if !runs
            || is_killed
            || self.restore.is_some()
            || self.ending.stopping.is_some()
            || is_interrupted
        {
            return;
        }
        let (mut left, mut new) = (false, false);
        for (&pid, process) in self.processes.iter().filter(|(_, p)| p.communicates) {
            match missing.others.contains(&(pid, process.instance)) {
                true => left = true,
                false => new = true,
            }
        }
        if !left && !new {
            if missing.since.elapsed() < ANEW {
                self.look_again(missing);
            }
            return;
        }
        self.end_without_a_rank(missing);
    }

    fn look_again(&mut self, missing: Missing) {
        let at = Instant::now() + LOOK;
        self.lost.missing = Some(Missing { at, ..missing });
    }

    fn end_without_a_rank(&mut self, missing: Missing) {
        let Missing { rank, how, .. } = missing;
        if !run_dir::has_checkpoints(&self.config.job_dir()) {
            return leave(rank, how, "the job has no checkpoint");
        }
        self.lost.rounds.retain(|at| at.elapsed() < WINDOW);
        if self.lost.rounds.len() >= ROUNDS {
            return leave(rank, how, "the job has lost ranks too often");
        }
        if !self.sidecar.is_connected() {
            // Nobody could resume it now.
            return self.look_again(missing);
        }
        self.lost.rounds.push(Instant::now());
        tracing::error!(
            rank,
            ?how,
            "a rank failed and the job goes on without it: it is ended and resumes from its newest checkpoint"
        );
        // At once, as when the main process has ended: others wait for the rank on their GPUs, and cannot be saved.
        self.kill_everything();
    }
}

/// Says that nothing follows.
fn leave(rank: ProcessId, how: How, why: &str) {
    tracing::warn!(
        rank,
        ?how,
        why,
        "a rank failed: it is left to the program that started it"
    );
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
