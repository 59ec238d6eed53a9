//! Brings the job back, as a state machine.
//!
//! ```text
//! Clearing ──▶ Reviving (──▶ Waiting) ──▶ Attaching (──▶ Rejoining) ──▶ over: the job runs
//!     └────────────┴────────────┴────────────┴──────────────┴──▶ failed: what was restored is killed, the job is as ended as before
//! ```
//!
//! # Rules
//!
//! * The image is read and checked before anything of the old tree is touched.
//! * The old tree has gone entirely before the image is used: its PIDs, ports and files are needed.
//! * A failure leaves the agent waiting, so that the sidecar can try an older checkpoint.
//! * Every stage ends: one that hangs is killed, and a driver that hangs even then ends the agent, so that whoever
//!   started it starts another.
//! * The sidecar is not needed after `Restore`: if it vanishes, the restore continues. After `Revive` it is needed until it has said
//!   `Filled`: no process sees memory before that.
//! * A sidecar that connects meanwhile is answered when the restore is over: told that the job has ended, it would begin another.
//! * A worker that is reviving processes is always waited for: another restore would take its result for its own.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use phos_protocol::agent::{JobState, RestoreTimes, ToSidecar};
use phos_protocol::shim::{HeldMulticast, Refusal, Sequence, ToShim};
use phos_protocol::types::{Allocation, AllocationKey, GpuUuid, ProcessId};
use phos_shared::failpoint::{self, Point};

use super::Init;
use super::worker::Done;
use crate::AgentError;
use crate::attempt::rejoin::{self, Rejoin};
use crate::channels::shims::ConnectionId;
use crate::criu;
use crate::files;
use crate::image::{AgentImage, ImageDirectory};
use crate::job::spawn::InstalledShim;
use crate::restore::gpus::{MoveError, complete, moved};
use crate::restore::{ReviveError, RevivePlan, revive};
use crate::tree;

/// How long processes that are back may wait for the rest of their memory. The sidecar expects seconds (`phos_policies::revive`).
const FILL: Duration = Duration::from_secs(900);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The old tree is being ended.
    Clearing,
    /// A worker puts files back and runs CRIU.
    Reviving,
    /// Processes are back, and the contents of their memory are not.
    Waiting,
    /// Shims get their memory.
    Attaching,
    /// Shims make multicast objects anew.
    Rejoining,
}

/// What the memory has that the sidecar brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Contents {
    /// All that it is to have.
    Here,
    /// They are being put there.
    Awaited,
    /// They do not come, for this reason.
    Lost(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Away,
    Sent,
    Back,
}

/// What the sidecar has brought for a restore.
#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// The directory that the sidecar fills with the image.
    pub(super) directory: Option<Arc<ImageDirectory>>,
    /// The GPU memory of the image, with its contents.
    pub(super) memory: Vec<(Allocation, OwnedFd)>,
}

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Restore {
    pub(super) deadline: Option<Instant>,
    stage: Stage,
    stage_began: Instant,
    directory: Arc<ImageDirectory>,
    image: AgentImage,
    /// Old GPU → new GPU, for the GPUs that the job uses. Empty when the job stays where it was.
    gpus: Vec<(GpuUuid, GpuUuid)>,
    /// Old GPU → new GPU, as the driver is told.
    pairs: Vec<(GpuUuid, GpuUuid)>,
    contents: Contents,
    /// What is being brought back will be ended: there is no need to go on with it.
    unwanted: Arc<AtomicBool>,
    members: BTreeMap<ProcessId, Phase>,
    /// Their multicast objects.
    rejoin: Rejoin,
    times: RestoreTimes,
    /// What the job goes back to when this fails.
    before: JobState,
    /// CRIU or the driver had its time, and everything was killed.
    overdue: bool,
}

impl Restore {
    /// Whether a process was asked to make that multicast object.
    pub(super) fn expects_object(
        &self,
        pid: ProcessId,
        seq: Sequence,
        key: &AllocationKey,
    ) -> bool {
        self.stage == Stage::Rejoining && self.image.seq == seq && self.rejoin.is_maker(pid, key)
    }

    /// Whether the job's main process died under CRIU's hands: CRIU would wait for it for ever.
    pub(super) fn is_hopeless_without(&self, pid: ProcessId) -> bool {
        self.stage == Stage::Reviving && pid == self.image.root_pid
    }

    /// Whether a worker is bringing processes back, and its result will end the restore or go on with it.
    pub(super) fn is_reviving(&self) -> bool {
        self.stage == Stage::Reviving
    }

    /// Whether processes are there, and their memory is not.
    pub(super) fn waits_for_memory(&self) -> bool {
        self.stage == Stage::Waiting
    }

    /// Whether the old tree is being ended for it.
    pub(super) fn wants_old_gone(&self) -> bool {
        self.stage == Stage::Clearing
    }
}

/// Why a restore does not begin.
#[derive(Debug, thiserror::Error)]
enum Refused {
    /// The image cannot be restored, or not now.
    #[error("{0}")]
    Image(String),
    /// The job cannot be restored on this machine.
    #[error("{0}")]
    Move(#[from] MoveError),
}

/// An image that can be used, and the pairs of GPUs for the driver.
type Checked = (Arc<ImageDirectory>, AgentImage, Vec<(GpuUuid, GpuUuid)>);

impl Init {
    /// Begins a restore at the sidecar's `Restore` or `Revive`, or answers why not.
    pub(super) fn begin_restore(&mut self, gpus: Vec<(GpuUuid, GpuUuid)>, contents: Contents) {
        match self.check_restore(&gpus) {
            Ok((directory, image, pairs)) => {
                self.decide_by_nobody();
                let before = self.job.state;
                self.restore = Some(Restore {
                    deadline: None,
                    stage: Stage::Clearing,
                    stage_began: Instant::now(),
                    contents,
                    unwanted: Arc::default(),
                    members: image
                        .processes
                        .iter()
                        .map(|p| (p.member.process, Phase::Away))
                        .collect(),
                    rejoin: Rejoin::default(),
                    directory,
                    image,
                    gpus,
                    pairs,
                    times: RestoreTimes::default(),
                    before,
                    overdue: false,
                });
                self.early_exits.clear();
                // Also when nothing runs: what is left of an old tree is waited for, and nothing left is noticed
                // at once.
                self.begin_kill();
            }
            Err(refused) => {
                let reason = refused.to_string();
                tracing::error!(reason, "the job cannot be restored");
                let answer = match refused {
                    Refused::Image(_) => ToSidecar::Restored(Err(reason)),
                    Refused::Move(_) => ToSidecar::CannotMove { reason },
                };
                self.sidecar.send(&answer, &[]);
            }
        }
    }

    /// `CheckFiles`: in a thread, because a file system may take its time. An image that cannot be read is no finding: the
    /// restore says so.
    pub(super) fn check_files(&mut self) {
        let image = self
            .incoming
            .directory
            .as_ref()
            .map(|d| d.read_agent_image());
        let Some(Ok(image)) = image else {
            self.sidecar.send(&ToSidecar::FilesChecked(Ok(())), &[]);
            return;
        };
        // Its thread must not take a PID of the image.
        let started = self.low_pids(&image.ids).and_then(|()| {
            self.worker
                .run("files", move |_| {
                    let outcome = files::check(&image.needed, &image.files);
                    Done::FilesChecked(outcome.map_err(|e| e.to_string()))
                })
                .map_err(|cause| AgentError::System {
                    what: "start a thread",
                    cause,
                })
        });
        if let Err(e) = started {
            // No fault of the files.
            tracing::warn!(cause = %e, "the job's files are looked at by CRIU alone");
            self.sidecar.send(&ToSidecar::FilesChecked(Ok(())), &[]);
        }
    }

    fn check_restore(&mut self, gpus: &[(GpuUuid, GpuUuid)]) -> Result<Checked, Refused> {
        if self.restore.is_some() || self.checkpoint.is_under_way() {
            let reason = "a checkpoint or another restore is under way: try again";
            return Err(Refused::Image(reason.into()));
        }
        let Some(directory) = self.incoming.directory.clone() else {
            let reason = "no image was brought: ask for a directory first";
            return Err(Refused::Image(reason.into()));
        };
        let image = directory
            .read_agent_image()
            .map_err(|e| Refused::Image(e.to_string()))?;
        let brought: BTreeSet<_> = self.incoming.memory.iter().map(|(a, _)| a.key).collect();
        for wanted in &image.vault {
            let key = wanted.allocation.key;
            if !brought.contains(&key) {
                return Err(Refused::Image(format!(
                    "the memory of allocation {} of process {} was not brought",
                    key.id, key.owner
                )));
            }
        }
        // Without CUDA in the image no driver is needed, and without a driver the worker says so.
        let here = self
            .tools
            .control
            .get()
            .map_or_else(|_| Vec::new(), |d| d.gpus());
        let pairs = if image.processes.is_empty() || here.is_empty() {
            gpus.to_vec()
        } else {
            complete(gpus, &image.machine_gpus, &here)?
        };
        Ok((directory, image, pairs))
    }

    /// No process of the old tree is left.
    pub(super) fn restore_tree_gone(&mut self) {
        if !self.restore.as_ref().is_some_and(Restore::wants_old_gone) {
            return;
        }
        if let Err(e) = self.start_revive() {
            self.restore_failed(&e.to_string());
        }
    }

    fn start_revive(&mut self) -> Result<(), AgentError> {
        let Some(restore) = &mut self.restore else {
            return Ok(());
        };
        restore.stage = Stage::Reviving;
        restore.stage_began = Instant::now();
        // Those of the old tree, which may have had the numbers that are given again now.
        self.early_exits.clear();
        // Files and processes are each as much as the image at most.
        let work = criu::patience(self.config.timeouts.criu, restore.directory.used_bytes());
        restore.deadline = Some(restore.stage_began + 2 * work + self.config.timeouts.driver);
        let image = restore.image.clone();
        let directory = Arc::clone(&restore.directory);
        let gpus = restore.gpus.clone();
        let pairs = restore.pairs.clone();
        let unwanted = Arc::clone(&restore.unwanted);
        self.shims.stop_listening();
        self.forget_job();
        let requested: BTreeMap<_, _> = image
            .vault
            .iter()
            .map(|v| (v.allocation.key, v.requested))
            .collect();
        for (allocation, fd) in std::mem::take(&mut self.incoming.memory) {
            let asked = requested.get(&allocation.key).copied();
            self.vault
                .insert(allocation, asked.unwrap_or(allocation.bytes), fd);
        }
        for held in image.vault.iter().filter(|held| held.shared) {
            self.vault.note_shared(held.allocation.key);
        }
        for (pid, keys) in &image.imports {
            self.vault.set_imports(*pid, keys.iter().copied());
        }
        let (ends, streams) = self.new_streams()?;
        self.job.streams = Some(streams);
        self.job.shim = image.shim.as_ref().map(|s| InstalledShim {
            path: s.path.clone(),
            blake3: s.blake3.clone(),
        });
        self.job.other_socket =
            (image.shim_socket != self.config.shim_socket()).then(|| image.shim_socket.clone());
        self.job.moved = moved(&image.moved, &gpus);
        self.last_seq = self.last_seq.max(image.seq);
        // The worker and everything CRIU starts.
        self.low_pids(&image.ids)?;
        let plan = RevivePlan {
            directory,
            image,
            pairs,
            criu: self.config.criu.clone(),
            criu_patience: work,
            control: self.tools.control.clone(),
            ends,
            pids: Arc::clone(&self.tools.pids),
            user: self.tools.user.clone().filter(|user| user.is_another()),
            unwanted,
            job_dir: self.config.job_dir(),
        };
        self.worker
            .run("restore", move |_| Done::Revived(revive(plan)))
            .map_err(|cause| AgentError::System {
                what: "start a thread",
                cause,
            })
    }

    /// Takes in the result of the worker that put files back and ran CRIU.
    pub(super) fn revive_ended(&mut self, outcome: Result<(ProcessId, RestoreTimes), ReviveError>) {
        if let Some(Contents::Lost(reason)) = self.restore.as_ref().map(|r| r.contents.clone()) {
            // Whatever came of it.
            self.restore_failed(&reason);
            return;
        }
        let (root, times) = match outcome {
            Ok(done) => done,
            Err(e) if e.is_refusal() => {
                let reason = e.to_string();
                self.restore_ends(
                    &reason,
                    ToSidecar::Refused {
                        reason: reason.clone(),
                    },
                );
                return;
            }
            Err(e) if e.is_final() => {
                let reason = e.to_string();
                self.restore_ends(
                    &reason,
                    ToSidecar::NotRestorable {
                        reason: reason.clone(),
                    },
                );
                return;
            }
            Err(e) => {
                self.restore_failed(&e.to_string());
                return;
            }
        };
        let Some(restore) = &mut self.restore else {
            return;
        };
        restore.times = times;
        restore.stage = Stage::Waiting;
        restore.stage_began = Instant::now();
        restore.deadline = Some(restore.stage_began + FILL);
        let contents = restore.contents.clone();
        self.job.root = Some(root);
        self.job.state = JobState::Running;
        self.job.restored = true;
        if let Some(exit) = self.early_exits.remove(&root) {
            self.on_job_exit(exit);
            return;
        }
        if contents == Contents::Here {
            self.attach_restored();
        } else if self.is_stopping() {
            self.end_without_memory();
        }
    }

    /// The sidecar's `Filled`, or its end.
    pub(super) fn contents_are(&mut self, outcome: Result<(), String>) {
        let Some(restore) = &mut self.restore else {
            return;
        };
        if restore.contents != Contents::Awaited {
            return;
        }
        match outcome {
            Ok(()) => {
                restore.contents = Contents::Here;
                if restore.stage == Stage::Waiting {
                    self.attach_restored();
                }
            }
            Err(reason) if restore.stage == Stage::Reviving => {
                // The worker's result ends the restore. What it is at may be before CRIU: then there is nothing to kill yet.
                restore.contents = Contents::Lost(reason);
                restore.unwanted.store(true, Ordering::Release);
                self.kill_everything();
            }
            Err(reason) => self.restore_failed(&reason),
        }
    }

    /// Processes are back, and what they had in memory as well.
    fn attach_restored(&mut self) {
        let bound = self.config.timeouts.attach;
        let Some(restore) = &mut self.restore else {
            return;
        };
        // None of them had a connection that could have ended.
        let gone = restore.members.keys().find(|pid| !tree::is_alive(**pid));
        if let Some(pid) = gone.copied() {
            self.restore_failed(&format!("process {pid} ended before it had its memory"));
            return;
        }
        restore.stage = Stage::Attaching;
        restore.stage_began = Instant::now();
        restore.deadline = Some(restore.stage_began + bound);
        if let Err(e) = self.listen() {
            self.restore_failed(&e.to_string());
            return;
        }
        self.advance_restore();
    }

    /// A shim of the image is here.
    pub(super) fn restore_returned(&mut self, id: ConnectionId, pid: ProcessId, seq: Sequence) {
        let Some(restore) = &mut self.restore else {
            return;
        };
        let Some(phase) = restore.members.get_mut(&pid) else {
            tracing::warn!(
                pid,
                "a shim that is not in the image connects during a restore"
            );
            return;
        };
        *phase = Phase::Sent;
        if !self.send_memory(id, pid, seq) {
            self.on_shim_closed(id, None);
        }
    }

    /// The answer to `Attach`.
    pub(super) fn restore_attached(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<(), Refusal>,
    ) {
        let Some(restore) = &mut self.restore else {
            return;
        };
        match outcome {
            Ok(()) if restore.image.seq == seq => {
                restore.members.insert(pid, Phase::Back);
                failpoint::reach(Point::AgentMidAttach);
                self.advance_restore();
            }
            Ok(()) => {}
            Err(refusal) => {
                self.restore_failed(&format!("process {pid} could not attach: {refusal}"));
            }
        }
    }

    /// A process says which multicast objects it has.
    pub(super) fn restore_multicasts(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        held: &[HeldMulticast],
    ) {
        if let Some(restore) = &mut self.restore
            && restore.stage == Stage::Attaching
            && restore.image.seq == seq
            && restore.members.contains_key(&pid)
        {
            restore.rejoin.report(pid, held);
        }
    }

    /// A process has done its part in making them anew, or could not.
    pub(super) fn restore_rejoined(
        &mut self,
        pid: ProcessId,
        seq: Sequence,
        outcome: Result<rejoin::Done, Refusal>,
    ) {
        let Some(restore) = &mut self.restore else {
            return;
        };
        if restore.stage != Stage::Rejoining || restore.image.seq != seq {
            return;
        }
        match outcome {
            Ok(done) => {
                let asked = restore.rejoin.done(pid, done);
                let is_over = restore.rejoin.is_over();
                for asked in asked {
                    self.ask_to_rejoin(seq, asked);
                }
                failpoint::reach(Point::AgentMidRejoin);
                if is_over {
                    self.resume_restored();
                }
            }
            Err(refusal) => {
                self.restore_failed(&format!(
                    "process {pid} could not make its multicast objects anew: {refusal}"
                ));
            }
        }
    }

    /// A connection ended: the shim comes back by itself.
    pub(super) fn restore_connection_lost(&mut self, pid: ProcessId) {
        if self.is_rejoining(pid) {
            self.restore_failed(&format!(
                "process {pid} lost its connection while multicast objects were made anew"
            ));
            return;
        }
        if let Some(phase) = self
            .restore
            .as_mut()
            .filter(|r| r.stage == Stage::Attaching)
            .and_then(|r| r.members.get_mut(&pid))
        {
            *phase = Phase::Away;
        }
    }

    /// A process of the image ended.
    pub(super) fn restore_process_gone(&mut self, pid: ProcessId) {
        let attaching = self
            .restore
            .as_ref()
            .is_some_and(|r| r.stage == Stage::Attaching && r.members.contains_key(&pid));
        if attaching || self.is_rejoining(pid) {
            self.restore_failed(&format!("process {pid} ended before it had its memory"));
        }
    }

    /// Whether multicast objects are being made anew, and the process is one of the image.
    fn is_rejoining(&self, pid: ProcessId) -> bool {
        self.restore
            .as_ref()
            .is_some_and(|r| r.stage == Stage::Rejoining && r.rejoin.has(pid))
    }

    /// A stage took too long.
    pub(super) fn restore_timed_out(&mut self) {
        let reap = self.config.timeouts.reap;
        match &mut self.restore {
            Some(restore) if restore.stage == Stage::Reviving && !restore.overdue => {
                // The worker's result ends the restore.
                restore.overdue = true;
                restore.deadline = Some(Instant::now() + reap);
                tracing::error!(
                    "CRIU or the driver does not come to an end: what was restored is killed"
                );
                self.kill_everything();
            }
            Some(restore) if restore.stage == Stage::Reviving => self.give_up_on_driver(),
            Some(restore) if restore.stage == Stage::Waiting => {
                self.restore_failed("the memory of its processes did not come in time");
            }
            _ => self.restore_failed("processes of the image did not attach in time"),
        }
    }

    fn advance_restore(&mut self) {
        let done = self.restore.as_ref().is_some_and(|r| {
            r.stage == Stage::Attaching && r.members.values().all(|p| *p == Phase::Back)
        });
        if !done {
            return;
        }
        if let Some(restore) = &mut self.restore
            && restore.rejoin.is_needed()
        {
            let seq = restore.image.seq;
            restore.stage = Stage::Rejoining;
            match restore.rejoin.start() {
                Ok(asked) => {
                    for asked in asked {
                        self.ask_to_rejoin(seq, asked);
                    }
                }
                Err(why) => {
                    self.restore_failed(&format!("multicast objects cannot be made anew: {why}"));
                }
            }
            return;
        }
        self.resume_restored();
    }

    /// All is as it was: the gates open.
    fn resume_restored(&mut self) {
        if let Some(restore) = &self.restore {
            let seq = restore.image.seq;
            let pids: Vec<ProcessId> = restore.members.keys().copied().collect();
            for pid in pids {
                if let Some(id) = self.processes.get(&pid).and_then(|p| p.connection) {
                    self.tell_shim(id, &ToShim::Resume { seq });
                }
            }
        }
        self.restore_is_over();
        if self.is_stopping() {
            self.signal_job();
        }
    }

    /// Ends a restore whose job runs again, or has run and ended.
    pub(super) fn restore_is_over(&mut self) {
        let Some(restore) = self.restore.take() else {
            return;
        };
        let seq = restore.image.seq;
        let mut times = restore.times;
        times.attach_ns =
            u64::try_from(restore.stage_began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.job.restarts += 1;
        self.incoming.directory = None;
        tracing::info!(
            pid = self.job.root,
            seq,
            files_ms = times.files_ns / 1_000_000,
            criu_ms = times.criu_ns / 1_000_000,
            control_ms = times.control_restore_ns / 1_000_000,
            attach_ms = times.attach_ns / 1_000_000,
            "the job was restored"
        );
        self.tell_restored(&ToSidecar::Restored(Ok(times)));
    }

    /// Gives up a restore that is under way, if one is.
    pub(super) fn restore_failed(&mut self, reason: &str) {
        self.restore_ends(reason, ToSidecar::Restored(Err(reason.to_owned())));
    }

    fn restore_ends(&mut self, reason: &str, answer: ToSidecar) {
        let Some(restore) = self.restore.take() else {
            return;
        };
        tracing::error!(reason, "the job was not restored");
        self.incoming.directory = None;
        self.incoming.memory.clear();
        if restore.stage != Stage::Clearing {
            self.job.root = None;
            self.kill_everything();
            // Nobody has it mapped, and the next try needs the room.
            self.vault.clear();
            self.multicasts.clear();
        }
        if self.job.root.is_none() {
            self.job.state = match (restore.before, self.job.state) {
                // It was ended for this restore.
                (JobState::Running, JobState::Ended(exit)) => JobState::Ended(exit),
                (JobState::Running, _) => {
                    JobState::Ended(phos_protocol::agent::Exit::Signal(libc::SIGKILL))
                }
                (before, _) => before,
            };
        }
        self.job.restored = false;
        self.tell_restored(&answer);
        self.wait_for_decision();
    }
}
