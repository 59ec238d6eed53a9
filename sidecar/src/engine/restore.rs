//! Bringing the job back: which checkpoint, the checks, the memory, the CPU image, the agent's part.
//!
//! ```text
//!  newest restorable ─▶ checks (nothing changed yet) ─▶ image directory, allocations
//!        ▲                                                │
//!        │ damaged: quarantine                            ▼
//!        └──────────── one stream of chunks: packs in order ─▶ files │ pinned slots ─H2D─▶ GPU
//!                                                          │
//!                                   digest of every chunk, on the GPU ─▶ RestoreMemory* ─▶ Restore
//! ```
//!
//! # Rules
//!
//! * Memory of the job that the vault still holds is used again where it is the same allocation: its
//!   chunks are digested first, and what matches is not fetched.
//! * Each chunk comes from the nearest place that has it: a checkpoint of the store is read from those on this machine as
//!   far as they share chunks, and what a damaged one on this machine has lost is read from the store.
//! * Every chunk of device memory is checked by digest on the GPU before the agent is told.
//! * Processes that do not come back (killed meanwhile, say) are tried once more from the same checkpoint.
//! * What the driver cannot restore is tried twice as well, in case of doubt, and not over and over: it would be no different.
//! * What somebody has to put right first (a file that belongs to another user now, say) ends the attempt to resume: an older
//!   checkpoint would cost what was trained since.
//! * Any other failure falls back to the next older checkpoint, loudly. What cannot get better by that (other
//!   machine, too little memory, another command) ends the attempt to resume.
//! * Files that the job uses and its image does not carry are looked at before anything is fetched, so that it costs little to
//!   find that no checkpoint fits a place where a volume is missing; what the newest one lacks is what is said then.
//! * When no checkpoint came back, all of it is repeated within the budget of restarts; a store that cannot be
//!   read now is waited for.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::StreamExt;
use phos_policies::restart::Decision;
use phos_protocol::agent::{RestoreTimes, ToAgent, ToSidecar};
use phos_protocol::channel::BATCH;
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_storage::{
    CheckpointNumber, CheckpointSummary, Job, JobError, Manifest, Naming, PackId, ReadError,
    Reader, UnixMillis,
};
use rustix::fs::{Mode, OFlags};
use tokio::sync::mpsc;

use super::checks::{self, CheckError};
use super::cpu;
use super::gpus::{Gpus, OpenGpu};
use super::hold::{Reading, reader};
use super::image::{Extra, Image, ImageError, Wanted};
use super::near::{KEPT, Near, Standing};
use super::progress::Progress;
use super::registry::Held;
use super::session::{Session, Stop, WaitError};
use super::{CheckpointId, Engine, EngineError, unix_millis};
use crate::agent::image::AGENT_FILE;
use crate::gpu::host::SLOT;
use crate::gpu::{DeviceMemory, GpuError, HostPool, Pending, Range};
use crate::host_memory;

/// The agent's part: CRIU, control state, attach.
const RESTORE: Duration = Duration::from_secs(900);
/// How long memory of a job that was just killed may take to come back.
const RECLAIM: Duration = Duration::from_secs(20);
/// How long looking at the files of an image may take, of a slow network file system.
const FILES: Duration = Duration::from_secs(120);
/// Most bytes of an image's description.
const DESCRIPTION: u64 = 256 << 20;
/// Chunks on their way to a GPU or a file.
const QUEUE: usize = 32;
/// Copies in flight to one GPU.
const IN_FLIGHT: usize = 16;
/// How often one checkpoint is tried whose processes did not come back: what killed them may be over.
const TRIES: u32 = 2;
/// How long a failed restore waits for the store to forget that it was read.
const LET_GO: Duration = Duration::from_secs(5);
/// How long another store is looked at that may have chunks as well.
const ELSEWHERE: Duration = Duration::from_secs(60);
/// Waits for a store that cannot be read now: the first and the longest.
pub(super) const STORE_WAITS: (Duration, Duration) =
    (Duration::from_secs(1), Duration::from_secs(60));

/// Why a checkpoint was not restored.
#[derive(Debug, thiserror::Error)]
pub(super) enum RestoreError {
    /// Not here, and an older one would not either.
    #[error("{0}")]
    Check(#[from] CheckError),
    /// Part of it is damaged.
    #[error("{source}")]
    Damaged { pack: PackId, source: ReadError },
    /// Files that the job uses are not here as they were; an older checkpoint may do without.
    #[error("{0}")]
    Files(String),
    /// It cannot be understood.
    #[error("{0}")]
    Image(String),
    /// There are checkpoints, and what was found before any was read rules all of them out.
    #[error("the newest of them: {0}")]
    Unusable(String),
    /// The agent could not bring its processes back, or they were killed meanwhile.
    #[error("{0}")]
    Agent(String),
    /// The driver cannot bring back what it saved of a process that is there.
    #[error("{0}")]
    Driver(String),
    #[error("{0}")]
    Gpu(#[from] GpuError),
    #[error("{message}")]
    Store { message: String, permanent: bool },
    /// The disk of this machine does not give it.
    #[error("{0}")]
    Here(String),
    #[error("cannot write the CPU image: {0}")]
    File(std::io::Error),
    #[error("{0}")]
    Wait(#[from] WaitError),
}

impl From<super::link::LinkError> for RestoreError {
    fn from(e: super::link::LinkError) -> RestoreError {
        RestoreError::Wait(e.into())
    }
}

impl RestoreError {
    /// Whether the same checkpoint may come back at the next try.
    fn may_pass(&self) -> bool {
        match self {
            RestoreError::Agent(_)
            | RestoreError::Gpu(_)
            | RestoreError::Here(_)
            | RestoreError::File(_) => true,
            RestoreError::Store { permanent, .. } => !permanent,
            RestoreError::Check(_)
            | RestoreError::Damaged { .. }
            | RestoreError::Files(_)
            | RestoreError::Image(_)
            | RestoreError::Unusable(_)
            | RestoreError::Driver(_)
            | RestoreError::Wait(_) => false,
        }
    }
}

/// A checkpoint to resume from, held so that no collection takes it away meanwhile.
struct Found {
    id: CheckpointId,
    /// Where it is: on this machine or in the store.
    job: Job,
    manifest: Manifest,
    held: Option<Reading>,
}

/// The later the greater: when it became visible, whether on this machine, its number there.
type Order = (UnixMillis, bool, CheckpointNumber);

/// What a pass over the checkpoints came to.
enum Pass {
    Resumed(CheckpointId),
    /// There is no checkpoint.
    Nothing,
    /// None could be restored; the last reason.
    Failed(RestoreError),
}

/// What became of a restore.
pub(super) struct Restored {
    times: RestoreTimes,
    held: Vec<Held>,
    /// Of the image, what was not on the GPU any more; of that, what was read on this machine (as it was stored), and in
    /// its memory.
    fetched: u64,
    cached: u64,
    in_memory: u64,
    total: u64,
}

/// Whether a checkpoint is still visible and does not need this pack any more.
async fn has_moved(job: &Job, number: CheckpointNumber, pack: &PackId) -> bool {
    let now = job.manifest(number).await;
    now.is_ok_and(|manifest| manifest.packs.iter().all(|p| p.id != *pack))
}

/// Keeps later checkpoints from leaning on a damaged pack. One that is missing is found missing by whoever looks, and counts
/// again should it come back: that is not noted in the store.
async fn note_damage(job: &Job, pack: &PackId, source: &ReadError) {
    if matches!(source, ReadError::PackLost { .. }) {
        job.forget_pack(pack);
        return;
    }
    let reason = source.to_string();
    let noted = job.quarantine_pack(pack, &reason, unix_millis()).await;
    if let Err(e) = noted {
        tracing::warn!(error = %e, "the damage could not be noted in the store");
    }
}

/// The newest checkpoints of this run, as far as they can be read now: what may have chunks that others have, too.
async fn newest(job: &Job) -> Vec<Manifest> {
    let look = async {
        let mut numbers: Vec<_> = (job.list().await?.checkpoints.iter())
            .filter(|c| c.is_current())
            .map(|c| c.number)
            .collect();
        numbers.sort_unstable_by_key(|number| std::cmp::Reverse(*number));
        let mut found = Vec::new();
        for number in numbers.into_iter().take(KEPT as usize) {
            found.extend(job.manifest(number).await.ok());
        }
        Ok::<_, JobError>(found)
    };
    match tokio::time::timeout(ELSEWHERE, look).await {
        Ok(Ok(found)) => found,
        Ok(Err(e)) => {
            tracing::warn!(error = %e, "nothing is read from there");
            Vec::new()
        }
        Err(_) => {
            tracing::warn!("nothing is read from a store that does not answer");
            Vec::new()
        }
    }
}

impl Session<'_> {
    /// Resumes from the newest checkpoint that can be. None: there is none. `fresh`: the agent was just
    /// started, with a command that must be the image's.
    ///
    /// A pass in which no checkpoint came back is a crash like any other and is repeated within the budget
    /// of restarts. A store that cannot be read now is waited for: without it there is no job.
    pub(super) async fn restore_newest(
        &mut self,
        fresh: bool,
    ) -> Result<Option<CheckpointId>, Stop> {
        if self.engine.job.store().is_discarding() {
            tracing::warn!("the store drops what it is given: there is nothing to resume from");
            return Ok(None);
        }
        // The job waits: nothing else is to be read or written.
        self.engine.stop_background();
        let mut store_wait = STORE_WAITS.0;
        loop {
            let e = match self.restore_pass(fresh).await? {
                Pass::Resumed(number) => return Ok(Some(number)),
                Pass::Nothing => return Ok(None),
                Pass::Failed(e) => e,
            };
            if let RestoreError::Store {
                message,
                permanent: false,
            } = &e
            {
                tracing::error!(
                    error = message,
                    again_ms = store_wait.as_millis() as u64,
                    "the store cannot be read now: the job is resumed when it can"
                );
                self.engine.status.state("waiting for the store");
                self.pause(store_wait).await?;
                store_wait = (store_wait * 2).min(STORE_WAITS.1);
                continue;
            }
            if e.may_pass() {
                let (now, jitter) = (self.engine.now(), super::random_u64());
                if let Decision::Restart { after, attempt } =
                    self.engine.restarts.on_crash(now, jitter)
                {
                    tracing::error!(
                        error = %e,
                        attempt,
                        after_ms = after.as_millis() as u64,
                        "no checkpoint could be restored; all of it is tried again"
                    );
                    self.pause(after).await?;
                    continue;
                }
            }
            if let RestoreError::Files(reason) = e {
                self.give_up(&reason)?;
                return Err(EngineError::Check(CheckError::Files(reason)).into());
            }
            let reason = format!(
                "no checkpoint of job {} could be restored, and it is not begun anew over them: {e}. `phos-ft verify --deep` \
                 says what is wrong with each; to begin anew, give it another --job name or another --store",
                self.engine.job.name()
            );
            self.give_up(&reason)?;
            return Err(EngineError::Restore(reason).into());
        }
    }

    /// Tries every checkpoint, newest first.
    async fn restore_pass(&mut self, fresh: bool) -> Result<Pass, Stop> {
        let mut only = self.engine.from;
        let mut below: Option<Order> = None;
        let mut last: Option<RestoreError> = None;
        let mut moved = 0;
        loop {
            let mut passed_over = None;
            let found = match only.take() {
                Some(id) => self.chosen(id).await.map(Some),
                None => self.candidate(below, &mut passed_over).await,
            };
            // Damage is not the same as nothing: a job that began anew would in time replace what might still be mended.
            if let (None, Some(reason)) = (&last, passed_over) {
                last = Some(RestoreError::Unusable(reason));
            }
            let found = match found {
                Ok(Some(found)) => found,
                Ok(None) => break,
                Err(e @ JobError::Store(_)) if !e.is_permanent() => {
                    return Ok(Pass::Failed(RestoreError::Store {
                        message: e.to_string(),
                        permanent: false,
                    }));
                }
                Err(e) => return Err(e.into()),
            };
            let id = found.id;
            let order = self.order(id, found.manifest.created);
            let outcome = self.restore_checkpoint(&found, fresh).await;
            let job = found.job;
            if let Some(held) = found.held {
                if matches!(outcome, Ok(Ok(()))) {
                    // The job runs: not in its way.
                    tokio::spawn(held.release());
                } else {
                    // This process may be about to end. What is not let go counts for an hour and does no harm.
                    let _ = tokio::time::timeout(LET_GO, held.release()).await;
                }
            }
            match outcome? {
                Ok(()) => return Ok(Pass::Resumed(id)),
                // A disk that fails here is no reason to wait: the store has another one.
                Err(e @ RestoreError::Store { .. }) if !id.local => return Ok(Pass::Failed(e)),
                Err(RestoreError::Damaged { pack, .. })
                    if moved < TRIES && has_moved(&job, id.number, &pack).await =>
                {
                    // Only where it could not be held, or was paused for an hour: no damage.
                    tracing::warn!(
                        checkpoint = %id,
                        "its packs were rewritten while it was read; trying it again"
                    );
                    moved += 1;
                    only = Some(id);
                }
                Err(e) => {
                    tracing::error!(
                        checkpoint = %id, error = %e,
                        "CHECKPOINT {id} COULD NOT BE RESTORED; trying the one before"
                    );
                    if let RestoreError::Damaged { pack, source } = &e {
                        note_damage(&job, pack, source).await;
                    }
                    below = Some(order);
                    // A disk here that fails is not waited for as a store is.
                    let e = match e {
                        RestoreError::Store { message, .. } => RestoreError::Here(message),
                        e => e,
                    };
                    // What a place lacks is said of the newest.
                    if !matches!(last, Some(RestoreError::Files(_))) {
                        last = Some(e);
                    }
                }
            }
        }
        Ok(last.map_or(Pass::Nothing, Pass::Failed))
    }

    /// Restores one checkpoint, more than once if its processes do not come back. The inner error: not this
    /// checkpoint, or not now.
    async fn restore_checkpoint(
        &mut self,
        found: &Found,
        fresh: bool,
    ) -> Result<Result<(), RestoreError>, Stop> {
        let id = found.id;
        let mut tries = 0;
        let mut reader = match self.nearest(found).await {
            Ok(reader) => reader,
            Err(e) => return Ok(Err(e)),
        };
        let mut mended = false;
        loop {
            tracing::info!(
                checkpoint = %id,
                bytes = found.manifest.image_bytes(),
                "resuming"
            );
            self.engine
                .status
                .state(format!("resuming from checkpoint {id}"));
            let began = Instant::now();
            tries += 1;
            match self.restore(&found.manifest, reader.clone(), fresh).await {
                Ok(restored) => {
                    self.resumed(id, restored, began.elapsed(), fresh);
                    return Ok(Ok(()));
                }
                Err(RestoreError::Wait(e)) => return Err(e.into()),
                Err(RestoreError::Gpu(e)) if e.is_sticky() => {
                    return Err(EngineError::Sticky(e.to_string()).into());
                }
                Err(RestoreError::Check(e)) => {
                    self.give_up(&e.to_string())?;
                    return Err(EngineError::Check(e).into());
                }
                Err(RestoreError::Agent(reason) | RestoreError::Driver(reason))
                    if tries < TRIES =>
                {
                    tracing::error!(
                        checkpoint = %id,
                        reason,
                        "the job's processes did not come back; trying the same checkpoint again"
                    );
                }
                Err(e @ (RestoreError::Damaged { .. } | RestoreError::Store { .. }))
                    if id.local && !mended =>
                {
                    if let RestoreError::Damaged { pack, source } = &e {
                        if has_moved(&found.job, id.number, pack).await {
                            return Ok(Err(e));
                        }
                        note_damage(&found.job, pack, source).await;
                    }
                    tracing::error!(
                        checkpoint = %id, error = %e,
                        "CHECKPOINT {id} IS DAMAGED; what it lacks is looked for in the store"
                    );
                    for manifest in newest(&self.engine.job).await {
                        reader = reader.further(&self.engine.job, &manifest);
                    }
                    mended = true;
                }
                Err(e) => return Ok(Err(e)),
            }
        }
    }

    /// Notes that the job runs again.
    fn resumed(&mut self, id: CheckpointId, restored: Restored, took: Duration, fresh: bool) {
        let Restored {
            times,
            held,
            fetched,
            cached,
            in_memory,
            total,
        } = restored;
        tracing::info!(
            checkpoint = %id,
            seconds = (took.as_secs_f64() * 10.0).round() / 10.0,
            total,
            fetched,
            cached,
            in_memory,
            files_ms = times.files_ns / 1_000_000,
            criu_ms = times.criu_ns / 1_000_000,
            control_ms = times.control_restore_ns / 1_000_000,
            attach_ms = times.attach_ns / 1_000_000,
            "resumed"
        );
        self.registry.replace(held);
        // A crash after that goes back to the newest one.
        self.engine.from = None;
        if let Some(near) = &mut self.engine.near {
            near.resumed();
        }
        let mut status = self.engine.status.lock();
        status.resumed_from = Some(id.number.0);
        status.resumed_locally = id.local;
        status.restarts += u32::from(!fresh);
    }

    /// The checks of the restore that [`Session::restore_newest`] would begin with; changes nothing.
    pub(super) async fn refuse_early(&mut self) -> Result<(), Stop> {
        if self.engine.job.store().is_discarding() || self.engine.start_fresh {
            return Ok(());
        }
        let manifest = match self.engine.from {
            // The tier on this machine is opened when the job is ours.
            Some(id) if id.local => return self.refuse_stale(id).await,
            Some(id) => Some(self.chosen(id).await?.manifest),
            None => {
                let newest = self.engine.job.newest_restorable().await?.manifest;
                self.refuse_to_leave_behind(newest.as_ref()).await?;
                newest
            }
        };
        let Some(manifest) = manifest else {
            return Ok(());
        };
        let mut verdict = match parse(&manifest) {
            Ok(image) => self.checks(&manifest, &image, true).map(drop),
            Err(RestoreError::Check(e)) => Err(e),
            // What is damaged is passed over later.
            Err(_) => Ok(()),
        };
        // One on this machine may do without the files that those in the store need.
        if verdict.is_ok() && self.engine.near.is_none() {
            verdict = self.files_of_any(&manifest).await?;
        }
        if let Err(e) = verdict {
            self.give_up(&e.to_string())?;
            return Err(EngineError::Check(e).into());
        }
        Ok(())
    }

    /// A start that would resume an older checkpoint than there is on this machine, because it does not look there: taking the
    /// job over would make that one a history that was not gone on with.
    async fn refuse_to_leave_behind(&mut self, stored: Option<&Manifest>) -> Result<(), Stop> {
        if self.engine.near.is_some() {
            return Ok(());
        }
        let options = super::store_options(self.engine.key.clone());
        let Engine {
            state_dir,
            job,
            address,
            ..
        } = &*self.engine;
        let stored_at = stored.map(|manifest| manifest.created);
        let here = super::near::left_behind(state_dir, job, address, options, stored_at).await?;
        let Some(here) = here else {
            return Ok(());
        };
        let other = stored.map_or_else(
            || "the store has none".into(),
            |stored| {
                format!(
                    "the newest in the store is {0}, which `--from {0}` resumes",
                    stored.number
                )
            },
        );
        let reason = format!(
            "checkpoint L{here} is on this machine alone, and this start would leave it behind: give --remote-interval, as when \
             it was taken ({other})"
        );
        self.give_up(&reason)?;
        Err(EngineError::Restore(reason).into())
    }

    /// A checkpoint on this machine that others went on without, or may have, is not resumed, and neither deleted nor set
    /// aside: taking the job over would do that.
    async fn refuse_stale(&mut self, id: CheckpointId) -> Result<(), Stop> {
        let state = self.engine.job.state().await?;
        let why = match &self.engine.near {
            None => "give --remote-interval, as when it was taken".to_owned(),
            Some(near) => match near.standing(&self.engine.job, &state).await? {
                Standing::Ours => return Ok(()),
                Standing::Others => "another machine had the job since".to_owned(),
                Standing::Unknown(reason) => {
                    format!("whether another machine had the job since cannot be told: {reason}")
                }
            },
        };
        let reason = format!(
            "checkpoint {id} is on this machine alone and cannot be resumed: {why}; `phos-ft export {id} DIR` writes it out"
        );
        self.give_up(&reason)?;
        Err(EngineError::Restore(reason).into())
    }

    /// Whether a checkpoint that would be tried, this one or an older one, finds its files here.
    async fn files_of_any(&mut self, newest: &Manifest) -> Result<Result<(), CheckError>, Stop> {
        let Some(reason) = self.lacks_files(newest).await? else {
            return Ok(Ok(()));
        };
        for summary in self.engine.job.list().await?.checkpoints {
            if summary.number >= newest.number || !summary.is_current() {
                continue;
            }
            // One that cannot be read is passed over later, too.
            let Ok(older) = self.engine.job.manifest(summary.number).await else {
                continue;
            };
            if self.lacks_files(&older).await?.is_none() {
                return Ok(Ok(()));
            }
        }
        Ok(Err(CheckError::Files(reason)))
    }

    /// Which files of a checkpoint are not here. What else is wrong with it is found when it is restored.
    async fn lacks_files(&mut self, manifest: &Manifest) -> Result<Option<String>, Stop> {
        let look = async {
            let directory = self.image_directory().await?;
            let reader = self.engine.job.reader(manifest);
            let reader = reader.map_err(|e| RestoreError::Image(e.to_string()))?;
            self.check_files(manifest, &reader, &directory).await
        };
        match look.await {
            Err(RestoreError::Files(reason)) => Ok(Some(reason)),
            Err(RestoreError::Wait(e)) => Err(e.into()),
            _ => Ok(None),
        }
    }

    /// What can be checked without opening anything. The GPUs to use.
    fn checks(
        &self,
        manifest: &Manifest,
        image: &Image,
        fresh: bool,
    ) -> Result<BTreeMap<GpuUuid, GpuUuid>, CheckError> {
        if fresh {
            checks::command(manifest, image, &self.command)?;
        }
        let driver = self.engine.gpus.driver().and_then(|d| d.version());
        checks::machine(manifest, image, driver.map_err(|e| e.to_string()))?;
        let unused = &self.engine.unused_cpu_features;
        checks::cpu(&image.extra.cpu_features, &cpu::features(), unused)?;
        let here = self.engine.gpus.infos();
        let assigned = checks::assign(&manifest.body.gpus, here)?;
        checks::fits(image, &assigned, here)?;
        Ok(assigned)
    }

    /// A checkpoint by its number, held so that no collection takes it away meanwhile.
    async fn chosen(&self, id: CheckpointId) -> Result<Found, JobError> {
        let number = id.number;
        let job = if id.local {
            let near = self.engine.near.as_ref().and_then(Near::reading);
            near.ok_or_else(|| JobError::NoCheckpoint {
                job: self.engine.job.name().clone(),
                number,
            })?
        } else {
            &self.engine.job
        };
        let (manifest, hold) = job.hold(number, &reader("restore"), unix_millis()).await?;
        let held = Reading::keep(hold);
        // What one on this machine lacks may be in the store; that is found when it is read.
        if !id.local {
            job.check_packs(&manifest).await?;
        }
        Ok(Found {
            id,
            job: job.clone(),
            manifest,
            held: Some(held),
        })
    }

    /// The checkpoints of this run, on this machine and in the store, newest first; of two that are one, that on this
    /// machine comes first.
    ///
    /// While the store cannot be read, only those on this machine count, if the newest of all is among them and was not `tried`.
    async fn listed(&self, tried: bool) -> Result<Vec<(Order, CheckpointId)>, JobError> {
        let mut all = Vec::new();
        if let Some(near) = self.engine.near.as_ref().and_then(Near::reading) {
            match near.list().await {
                Ok(listing) => all.extend(listing.checkpoints.into_iter().map(|c| (true, c))),
                Err(e) => {
                    tracing::error!(error = %e, "the checkpoints on this machine cannot be read")
                }
            }
        }
        all.retain(|(_, summary): &(bool, CheckpointSummary)| summary.is_current());
        match self.engine.job.list().await {
            Ok(listing) => {
                let current = listing
                    .checkpoints
                    .into_iter()
                    .filter(CheckpointSummary::is_current);
                all.extend(current.map(|c| (false, c)));
            }
            Err(e @ JobError::Store(_))
                if !e.is_permanent()
                    && !tried
                    && all.iter().any(|(_, c)| c.created >= self.engine.newest) =>
            {
                tracing::warn!(error = %e, "the store cannot be read now; the newest checkpoint is on this machine");
            }
            Err(e) => return Err(e),
        }
        let ordered = |(local, c): (bool, CheckpointSummary)| {
            let number = c.number;
            let id = CheckpointId { local, number };
            (self.order(id, c.created), id)
        };
        let mut all: Vec<(Order, CheckpointId)> = all.into_iter().map(ordered).collect();
        all.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
        Ok(all)
    }

    /// Where a checkpoint stands in the order of all. With one log, that is its order, whatever the clocks say.
    fn order(&self, id: CheckpointId, created: UnixMillis) -> Order {
        let created = match self.engine.near {
            Some(_) => created,
            None => UnixMillis(0),
        };
        (created, id.local, id.number)
    }

    /// The newest checkpoint of this run that is whole, below another in the order. Why the first of those that are not
    /// was passed over is put into `passed_over`.
    async fn candidate(
        &self,
        below: Option<Order>,
        passed_over: &mut Option<String>,
    ) -> Result<Option<Found>, JobError> {
        if below.is_none() && self.engine.near.is_none() {
            let job = &self.engine.job;
            let (found, hold) = job.hold_newest(&reader("restore"), unix_millis()).await?;
            for skipped in &found.skipped {
                tracing::error!(
                    checkpoint = skipped.number.0,
                    reason = skipped.reason,
                    "CHECKPOINT {} IS DAMAGED and is passed over",
                    skipped.number
                );
                passed_over
                    .get_or_insert_with(|| format!("{}: {}", skipped.number, skipped.reason));
            }
            let held = hold.map(Reading::keep);
            return Ok(found.manifest.map(|manifest| Found {
                id: CheckpointId {
                    local: false,
                    number: manifest.number,
                },
                job: job.clone(),
                manifest,
                held,
            }));
        }
        for (order, id) in self.listed(below.is_some()).await? {
            if below.is_some_and(|below| order >= below) {
                continue;
            }
            match self.chosen(id).await {
                Ok(found) => return Ok(Some(found)),
                Err(JobError::Removed { .. }) => {}
                Err(e @ JobError::Store(_)) if !e.is_permanent() && !id.local => return Err(e),
                Err(e) => {
                    tracing::error!(
                        checkpoint = %id, reason = %e,
                        "CHECKPOINT {id} IS DAMAGED and is passed over"
                    );
                    passed_over.get_or_insert_with(|| e.to_string());
                }
            }
        }
        Ok(None)
    }

    /// Reads a checkpoint, as far as can be from those on this machine.
    async fn nearest(&self, found: &Found) -> Result<Reader, RestoreError> {
        let reader = found.job.reader(&found.manifest);
        let mut reader = reader.map_err(|e| RestoreError::Image(e.to_string()))?;
        if let Some(near) = self.engine.near.as_ref().and_then(Near::reading)
            && !found.id.local
        {
            for manifest in newest(near).await {
                reader = reader.nearer(near, &manifest);
            }
        }
        Ok(reader)
    }

    async fn restore(
        &mut self,
        manifest: &Manifest,
        reader: Reader,
        fresh: bool,
    ) -> Result<Restored, RestoreError> {
        let image = parse(manifest)?;
        // All checks first: they change nothing.
        let assigned = self.checks(manifest, &image, fresh)?;
        let needed: Vec<GpuUuid> = assigned.values().copied().collect();
        let closed = self.engine.gpus.missing(needed);
        if !closed.is_empty() {
            self.open_gpus(closed)
                .await
                .map_err(|f| RestoreError::Image(f.message))?;
        }
        let directory = self.image_directory().await?;
        self.check_files(manifest, &reader, &directory).await?;
        // Of the old job only what is in the image is of use.
        let keys: HashMap<AllocationKey, u64> = image
            .memory
            .iter()
            .map(|w| (w.allocation.key, w.allocation.bytes))
            .collect();
        self.registry.retain(&keys);
        let reusable: HashMap<AllocationKey, Arc<DeviceMemory>> = image
            .memory
            .iter()
            .filter_map(|w| {
                let held = self.registry.get(&w.allocation.key)?;
                let same = held.allocation.bytes == w.allocation.bytes
                    && held.allocation.rdma == w.allocation.rdma
                    && Some(&held.memory.gpu().uuid()) == assigned.get(&w.gpu)
                    && held.memory.fd().is_some();
                same.then(|| (w.allocation.key, Arc::clone(&held.memory)))
            })
            .collect();
        self.registry.clear();
        self.device_room(&image, &assigned, &reusable).await?;

        let deadline = Instant::now() + if fresh { Duration::ZERO } else { RECLAIM };
        // As with device memory: that of a job that was just killed comes back late.
        while let Err(e) = host_room(manifest, &directory) {
            if Instant::now() >= deadline {
                return Err(e);
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }

        let served = || {
            let engine = &self.engine;
            let of = |cache: &Option<Arc<phos_storage::PackCache>>| {
                cache.as_ref().map_or(0, |c| c.served())
            };
            let (in_memory, on_disk) = (of(&engine.host_cache), of(&engine.disk_cache));
            // Of the tier on this machine, some was in memory as well.
            let nearer = reader.read_elsewhere().0;
            let here = match engine.near {
                Some(_) => (nearer + on_disk).max(in_memory),
                None => nearer + on_disk + in_memory,
            };
            (here, in_memory)
        };
        let before = served();
        let gpus = self.engine.gpus.clone();
        let progress = Progress::new("resuming", manifest.image_bytes());
        let filled = fill(
            reader.clone(),
            manifest,
            &image,
            &assigned,
            reusable,
            &gpus,
            directory,
            &progress,
        )
        .await?;
        progress.finish();
        let after = served();
        let (cached, in_memory) = (after.0 - before.0, after.1 - before.1);
        let (_, mended) = reader.read_elsewhere();
        if mended > 0 {
            tracing::warn!(
                bytes = mended,
                "what the damaged checkpoint lacked came from the store"
            );
        }
        let times = self.hand_over(&filled.held, &assigned).await?;
        self.engine
            .gpus
            .set_aliases(aliases(&image.extra, &assigned));
        Ok(Restored {
            times,
            held: filled.held,
            fetched: filled.fetched,
            cached,
            in_memory,
            total: manifest.image_bytes(),
        })
    }

    /// An empty directory of the agent's for the CPU image.
    async fn image_directory(&mut self) -> Result<OwnedFd, RestoreError> {
        self.link.send(&ToAgent::NewImageDirectory)?;
        let directory = self
            .answer(Duration::from_secs(60), |message, fds| match message {
                ToSidecar::ImageDirectory(outcome) => Ok(outcome.map(|()| fds.pop())),
                other => Err(other),
            })
            .await?;
        match directory {
            Ok(Some(directory)) => Ok(directory),
            Ok(None) => Err(RestoreError::Image("the agent sent no directory".into())),
            Err(reason) => Err(RestoreError::Image(reason)),
        }
    }

    /// Lets the agent look whether the files are there that the image does not carry. Only its description is fetched for that,
    /// and removed again: what is restored is fetched as a whole.
    async fn check_files(
        &mut self,
        manifest: &Manifest,
        reader: &Reader,
        directory: &OwnedFd,
    ) -> Result<(), RestoreError> {
        let description = manifest
            .body
            .cpu_image
            .iter()
            .find(|file| file.path.as_path() == Path::new(AGENT_FILE));
        let Some(description) = description else {
            return Ok(());
        };
        let bytes = reader
            .read(&description.chunks, DESCRIPTION)
            .await
            .map_err(failed_read)?;
        let write = || -> std::io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(0o600);
            let file = rustix::fs::openat(directory, AGENT_FILE, flags, mode)?;
            std::io::Write::write_all(&mut std::fs::File::from(file), &bytes)
        };
        write().map_err(RestoreError::File)?;
        self.link.send(&ToAgent::CheckFiles)?;
        let outcome = self
            .answer(FILES, |message, _| match message {
                ToSidecar::FilesChecked(outcome) => Ok(outcome),
                other => Err(other),
            })
            .await?;
        rustix::fs::unlinkat(directory, AGENT_FILE, rustix::fs::AtFlags::empty())
            .map_err(|e| RestoreError::File(e.into()))?;
        outcome.map_err(|reason| {
            RestoreError::Files(format!(
                "checkpoint {} cannot be restored here: {reason}",
                manifest.number
            ))
        })
    }

    /// Whether the allocations and the driver's own memory fit. Waits a little: the memory of a job that
    /// was just killed comes back late.
    async fn device_room(
        &self,
        image: &Image,
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
        reusable: &HashMap<AllocationKey, Arc<DeviceMemory>>,
    ) -> Result<(), RestoreError> {
        let deadline = Instant::now() + RECLAIM;
        loop {
            let mut verdict = Ok(());
            for (old, new) in assigned {
                let allocations: u64 = image
                    .memory
                    .iter()
                    .filter(|w| w.gpu == *old && !reusable.contains_key(&w.allocation.key))
                    .map(|w| w.allocation.bytes)
                    .sum();
                let reserve = image.reserve.get(old).copied().unwrap_or(0);
                let free = self.engine.gpus.get(*new)?.gpu().memory()?.free;
                if free < allocations + reserve {
                    verdict = Err(CheckError::DeviceMemory {
                        gpu: *new,
                        free,
                        allocations,
                        reserve,
                    });
                }
            }
            match verdict {
                Ok(()) => return Ok(()),
                Err(e) if Instant::now() >= deadline => return Err(e.into()),
                Err(_) => tokio::time::sleep(Duration::from_millis(250)).await,
            }
        }
    }

    /// Gives the memory to the agent and lets it bring the job back.
    async fn hand_over(
        &mut self,
        held: &[Held],
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
    ) -> Result<RestoreTimes, RestoreError> {
        for batch in held.chunks(BATCH) {
            let fds: Option<Vec<_>> = batch.iter().map(|h| h.memory.fd()).collect();
            let fds =
                fds.ok_or_else(|| RestoreError::Image("memory without a file descriptor".into()))?;
            let allocations = batch.iter().map(|h| h.allocation).collect();
            self.link
                .send_with(&ToAgent::RestoreMemory { allocations }, &fds)?;
        }
        let moved = assigned.iter().any(|(old, new)| old != new);
        let gpus = if moved {
            assigned.iter().map(|(a, b)| (*a, *b)).collect()
        } else {
            Vec::new()
        };
        self.link.send(&ToAgent::Restore { gpus })?;
        self.answer(RESTORE, |message, _| match message {
            ToSidecar::Restored(outcome) => Ok(outcome.map_err(RestoreError::Agent)),
            ToSidecar::NotRestorable { reason } => Ok(Err(RestoreError::Driver(reason))),
            ToSidecar::Refused { reason } => Ok(Err(CheckError::Refused(reason).into())),
            ToSidecar::CannotMove { reason } => Ok(Err(CheckError::Move(reason).into())),
            other => Err(other),
        })
        .await?
    }
}

/// What the processes call their GPUs → where these are now.
fn aliases(extra: &Extra, assigned: &BTreeMap<GpuUuid, GpuUuid>) -> Vec<(GpuUuid, GpuUuid)> {
    let mut names: Vec<GpuUuid> = extra
        .processes
        .iter()
        .flat_map(|p| &p.devices)
        .map(|d| d.uuid)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .filter_map(|name| {
            let was = extra
                .aliases
                .iter()
                .find(|(n, _)| *n == name)
                .map_or(name, |(_, to)| *to);
            let now = *assigned.get(&was)?;
            (now != name).then_some((name, now))
        })
        .collect()
}

fn parse(manifest: &Manifest) -> Result<Image, RestoreError> {
    Image::parse(manifest).map_err(|e| match e {
        ImageError::Newer(version) => RestoreError::Check(CheckError::Newer {
            checkpoint: manifest.number.0,
            version,
        }),
        e @ ImageError::Damaged(_) => RestoreError::Image(e.to_string()),
    })
}

fn failed_read(e: ReadError) -> RestoreError {
    match e.damaged_pack() {
        Some(pack) => RestoreError::Damaged { pack, source: e },
        None => RestoreError::Store {
            message: e.to_string(),
            permanent: e.is_permanent(),
        },
    }
}

fn host_room(manifest: &Manifest, directory: &OwnedFd) -> Result<(), RestoreError> {
    let needed: u64 = manifest.body.cpu_image.iter().map(|f| f.length).sum();
    let stat = rustix::fs::fstatvfs(directory).map_err(|e| RestoreError::File(e.into()))?;
    // A tmpfs without a limit says 0 blocks.
    let mut room = stat.f_bavail.saturating_mul(stat.f_frsize);
    if stat.f_blocks == 0 {
        room = u64::MAX;
    }
    if let Some(available) = host_memory::available() {
        room = room.min(available);
    }
    if needed > room {
        return Err(CheckError::HostMemory { needed, room }.into());
    }
    Ok(())
}

/// A place that a chunk's bytes go to.
enum Place {
    /// A range of device memory.
    Device(Range),
    /// File number and offset.
    File(usize, u64),
}

struct Filled {
    held: Vec<Held>,
    fetched: u64,
}

/// Makes the memory and the files, fills both, and checks the memory.
#[expect(clippy::too_many_arguments, reason = "all of it is needed once")]
async fn fill(
    reader: Reader,
    manifest: &Manifest,
    image: &Image,
    assigned: &BTreeMap<GpuUuid, GpuUuid>,
    reusable: HashMap<AllocationKey, Arc<DeviceMemory>>,
    gpus: &Gpus,
    directory: OwnedFd,
    progress: &Progress,
) -> Result<Filled, RestoreError> {
    let wanted = image.memory.clone();
    let assigned = assigned.clone();
    let made = {
        let (gpus, naming) = (gpus.clone(), reader.naming());
        blocking(move || make(&wanted, &assigned, &reusable, &gpus, &naming)).await?
    };
    let Made { held, present } = made;

    // Where each chunk of the table goes.
    let mut places: HashMap<u32, Vec<Place>> = HashMap::new();
    let mut kept = 0;
    for ((wanted, held), present) in image.memory.iter().zip(&held).zip(&present) {
        for (chunk, present) in wanted.chunks.iter().zip(present) {
            if *present {
                kept += chunk.len;
                continue;
            }
            let range = Range {
                memory: Arc::clone(&held.memory),
                offset: chunk.offset,
                len: chunk.len,
            };
            places
                .entry(chunk.index)
                .or_default()
                .push(Place::Device(range));
        }
    }
    progress.add(kept);
    let files = make_files(manifest, &directory).map_err(RestoreError::File)?;
    for (number, file) in manifest.body.cpu_image.iter().enumerate() {
        for extent in manifest.extents(&file.chunks) {
            places
                .entry(extent.chunk)
                .or_default()
                .push(Place::File(number, extent.offset));
        }
    }
    let fetched = transfer(&reader, places, files, gpus, progress).await?;

    let check = {
        let (gpus, memory, held) = (gpus.clone(), image.memory.clone(), held.clone());
        let naming = reader.naming();
        move || verify(&memory, &held, &gpus, &naming)
    };
    blocking(check).await?;
    Ok(Filled { held, fetched })
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RestoreError> + Send + 'static,
) -> Result<T, RestoreError> {
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or_else(|e| Err(RestoreError::Image(format!("a worker ended: {e}"))))
}

struct Made {
    held: Vec<Held>,
    /// Per allocation, per chunk: its bytes are there already.
    present: Vec<Vec<bool>>,
}

fn ranges(wanted: &Wanted, memory: &Arc<DeviceMemory>) -> impl Iterator<Item = Range> {
    wanted.chunks.iter().map(|c| Range {
        memory: Arc::clone(memory),
        offset: c.offset,
        len: c.len,
    })
}

/// Takes old memory over where it is the same allocation and finds out what of it is right; makes the
/// rest.
fn make(
    image: &[Wanted],
    assigned: &BTreeMap<GpuUuid, GpuUuid>,
    reusable: &HashMap<AllocationKey, Arc<DeviceMemory>>,
    gpus: &Gpus,
    naming: &Naming,
) -> Result<Made, RestoreError> {
    let mut held = Vec::with_capacity(image.len());
    let mut old = Vec::new();
    for wanted in image {
        let memory = match reusable.get(&wanted.allocation.key) {
            Some(memory) => {
                old.extend(ranges(wanted, memory));
                Arc::clone(memory)
            }
            None => {
                let uuid = assigned.get(&wanted.gpu).copied().unwrap_or(wanted.gpu);
                gpus.get(uuid)?
                    .gpu()
                    .create(wanted.allocation.bytes, wanted.allocation.rdma)?
            }
        };
        held.push(Held {
            allocation: wanted.allocation,
            requested: wanted.requested,
            memory,
        });
    }
    let mut digests = gpus.digest(&old, naming)?.into_iter();
    let present = image
        .iter()
        .map(|wanted| {
            let reused = reusable.contains_key(&wanted.allocation.key);
            wanted
                .chunks
                .iter()
                .map(|c| reused && digests.next().is_some_and(|d| d == c.digest.0))
                .collect()
        })
        .collect();
    Ok(Made { held, present })
}

/// Digests everything on the GPUs and compares.
fn verify(
    image: &[Wanted],
    held: &[Held],
    gpus: &Gpus,
    naming: &Naming,
) -> Result<(), RestoreError> {
    let all: Vec<Range> = image
        .iter()
        .zip(held)
        .flat_map(|(w, h)| ranges(w, &h.memory))
        .collect();
    let digests = gpus.digest(&all, naming)?;
    let named = image
        .iter()
        .flat_map(|w| w.chunks.iter().map(move |c| (w, c)));
    for ((wanted, chunk), digest) in named.zip(digests) {
        if digest != chunk.digest.0 {
            return Err(RestoreError::Image(format!(
                "device memory is not what was stored: allocation {:?} at byte {}; the GPU or its link \
                 is faulty (see nvidia-smi -q -d ECC)",
                wanted.allocation.key, chunk.offset
            )));
        }
    }
    Ok(())
}

/// Makes the image's files, empty and of their length.
fn make_files(manifest: &Manifest, directory: &OwnedFd) -> std::io::Result<Vec<OwnedFd>> {
    manifest
        .body
        .cpu_image
        .iter()
        .map(|file| {
            let path = file.path.as_path();
            let sound = path
                .components()
                .all(|c| matches!(c, std::path::Component::Normal(_)));
            if !sound {
                return Err(std::io::Error::other(format!(
                    "{path:?} is no path below the image"
                )));
            }
            let mut above = std::path::PathBuf::new();
            for part in path
                .parent()
                .into_iter()
                .flat_map(std::path::Path::components)
            {
                above.push(part);
                match rustix::fs::mkdirat(directory.as_fd(), &above, Mode::from_raw_mode(0o700)) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(e) => return Err(e.into()),
                }
            }
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let mode = Mode::from_raw_mode(file.mode & 0o7777);
            let fd = rustix::fs::openat(directory.as_fd(), path, flags, mode)?;
            rustix::fs::ftruncate(&fd, file.length)?;
            Ok(fd)
        })
        .collect()
}

/// Fetches what has a place and puts it there; overlapped. The bytes fetched.
async fn transfer(
    reader: &Reader,
    mut places: HashMap<u32, Vec<Place>>,
    files: Vec<OwnedFd>,
    gpus: &Gpus,
    progress: &Progress,
) -> Result<u64, RestoreError> {
    let (to_files, file_chunks) = mpsc::channel(QUEUE);
    let mut workers = vec![tokio::task::spawn_blocking(move || {
        write_files(&files, file_chunks)
    })];
    let mut to_gpus = BTreeMap::new();
    for (&uuid, open) in gpus.all() {
        let (sender, chunks) = mpsc::channel(QUEUE);
        let (open, host) = (Arc::clone(open), Arc::clone(gpus.host()?));
        workers.push(tokio::task::spawn_blocking(move || {
            write_device(&open, &host, chunks)
        }));
        to_gpus.insert(uuid, sender);
    }
    let mut stream = reader.fetch(places.keys().copied().collect::<Vec<_>>());
    let mut fetched = 0;
    let mut failed = None;
    'fetching: while let Some(chunk) = stream.next().await {
        let (index, bytes) = match chunk {
            Ok(chunk) => chunk,
            Err(e) => {
                failed = Some(failed_read(e));
                break;
            }
        };
        fetched += bytes.len() as u64;
        for place in places.remove(&index).unwrap_or_default() {
            progress.add(bytes.len() as u64);
            let sent = match place {
                Place::File(number, offset) => {
                    to_files.send((number, offset, bytes.clone())).await.is_ok()
                }
                Place::Device(range) => match to_gpus.get(&range.memory.gpu().uuid()) {
                    Some(sender) => sender.send((range, bytes.clone())).await.is_ok(),
                    None => false,
                },
            };
            if !sent {
                break 'fetching;
            }
        }
    }
    drop((to_files, to_gpus));
    for worker in workers {
        let outcome = worker
            .await
            .unwrap_or_else(|e| Err(RestoreError::Image(e.to_string())));
        if let Err(e) = outcome {
            failed.get_or_insert(e);
        }
    }
    match failed {
        Some(e) => Err(e),
        None if places.is_empty() => Ok(fetched),
        None => Err(RestoreError::Image(format!(
            "{} chunks did not come",
            places.len()
        ))),
    }
}

fn write_files(
    files: &[OwnedFd],
    mut chunks: mpsc::Receiver<(usize, u64, Bytes)>,
) -> Result<(), RestoreError> {
    while let Some((number, mut offset, bytes)) = chunks.blocking_recv() {
        let Some(fd) = files.get(number) else {
            continue;
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let n =
                rustix::io::pwrite(fd, rest, offset).map_err(|e| RestoreError::File(e.into()))?;
            rest = rest.get(n..).unwrap_or_default();
            offset += n as u64;
        }
    }
    Ok(())
}

fn write_device(
    open: &OpenGpu,
    host: &Arc<HostPool>,
    mut chunks: mpsc::Receiver<(Range, Bytes)>,
) -> Result<(), RestoreError> {
    let mut in_flight: std::collections::VecDeque<Pending> = std::collections::VecDeque::new();
    while let Some((range, bytes)) = chunks.blocking_recv() {
        if bytes.len() > SLOT || bytes.len() as u64 != range.len {
            return Err(RestoreError::Image(format!(
                "a chunk has {} bytes, not {}",
                bytes.len(),
                range.len
            )));
        }
        // Never wait for a slot while holding some.
        let mut run = loop {
            if in_flight.len() < IN_FLIGHT
                && let Some(run) = host.try_acquire(1)?
            {
                break run;
            }
            match in_flight.pop_front() {
                Some(pending) => drop(pending.wait()?),
                None => break host.acquire(1, &|| false)?,
            }
        };
        if let Some(slot) = run.bytes_mut().get_mut(..bytes.len()) {
            slot.copy_from_slice(&bytes);
        }
        in_flight.push_back(open.stream.write(vec![range], run)?);
    }
    for pending in in_flight {
        pending.wait()?;
    }
    Ok(())
}
