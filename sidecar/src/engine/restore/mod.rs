//! Brings the job back: which checkpoint, the checks, the memory, the CPU image, the agent's part.
//!
//! ```text
//!  newest restorable ─▶ checks (nothing changed yet) ─▶ image directory, allocations
//!        ▲                                                │
//!        │ damaged: quarantine                            ▼
//!        └──── chunks: packs in order ─▶ files ─▶ pinned slots ─H2D─▶ GPU ─▶ digest of every chunk there
//!                                                     │ when the rest takes no longer      │
//!                                                     ▼ than the processes                 ▼
//!                                             RestoreMemory*, Revive ─────────────────▶ Filled
//! ```
//!
//! * [`select`]: which checkpoint; [`checks`] and [`admit`]: whether this machine can take it; [`fill`]: its memory and files;
//!   [`hand_over`]: the agent's part.
//!
//! # Rules
//!
//! * Memory of the job that the vault still holds is used again where it is the same allocation: its
//!   chunks are digested first, and what matches is not fetched.
//! * Each chunk comes from the nearest place that has it: a checkpoint of the store is read from those on this machine as far as
//!   they share chunks, and what a damaged one on this machine lacks is read from the store.
//! * Every chunk of device memory is checked by digest on the GPU before the agent lets a process have it. The processes themselves
//!   are brought back beside the last of the transfer ([`phos_policies::revive`]).
//! * Processes that do not come back (killed meanwhile, say) are tried once more from the same checkpoint.
//! * Processes that the driver cannot restore are tried twice as well, in case of doubt, but not over and over: the result would
//!   be the same.
//! * An obstacle that somebody has to remove first (a file that belongs to another user now, say) ends the attempt to resume: an
//!   older checkpoint would cost what was trained since.
//! * Any other failure falls back to the next older checkpoint, loudly. A failure that an older checkpoint would not cure (other
//!   machine, too little memory, another command) ends the attempt to resume.
//! * Files that the job uses and its image does not carry are looked at before anything is fetched, so that it costs little to
//!   find that no checkpoint fits a place where a volume is missing; the message then says what the newest one lacks.
//! * When no checkpoint came back, all of it is repeated within the budget of restarts; a store that cannot be
//!   read now is waited for.

mod admit;
pub mod checks;
mod error;
mod fill;
mod hand_over;
mod select;
mod transfer;

use std::collections::{BTreeMap, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_gpu::DeviceMemory;
use phos_policies::restart::Decision;
use phos_policies::revive::Revive;
use phos_protocol::agent::RestoreTimes;
use phos_protocol::shim::Newest;
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_storage::{JobError, Manifest, PackCache, Reader, UnixMillis};

use self::admit::{RECLAIM, host_room};
use self::checks::CheckError;
use self::error::{RestoreError, parse};
use self::fill::{FillTimes, Filled, Prepared, Target, prepare};
use self::hand_over::aliases;
use self::select::{Found, Order, has_moved, newest, note_damage};
use self::transfer::Filling;
use super::Tier;
use super::image::{self, Image};
use super::memory::registry::Held;
use super::progress::Progress;
use super::session::{Session, Stop};
use super::{CheckpointId, EngineError, STORE_WAITS, random_u64, unix_millis};
use crate::report::event::{After, Event, Place, Resumed};
use crate::report::work::Kind;

/// How often one checkpoint is tried whose processes did not come back: what killed them may be over.
const TRIES: u32 = 2;
/// How long a failed restore waits for the store to forget that it was read.
const LET_GO: Duration = Duration::from_secs(5);

/// What a pass over the checkpoints came to.
enum Pass {
    Resumed(CheckpointId),
    /// There is no checkpoint.
    Nothing,
    /// None could be restored; the reason for the last one.
    Failed(RestoreError),
}

/// The result of a restore that brought the job back.
struct Restored {
    /// How long each step of the agent's part took.
    times: RestoreTimes,
    /// How long processes that were back waited for their memory.
    waited: Duration,
    /// How long it took to bring the image here.
    filling: FillTimes,
    /// The job's device memory, as it was filled for the restore.
    held: Vec<Held>,
    /// Bytes of the image that were not on the GPU any more.
    fetched: u64,
    /// The part of those bytes that was read on this machine, as it was stored, and the part of that which was in its memory.
    local: Served,
    /// The size of the image in bytes.
    total: u64,
}

/// Bytes that were read on this machine, as they were stored.
#[derive(Debug, Clone, Copy, Default)]
struct Served {
    /// Bytes that were read from copies on this machine.
    here: u64,
    /// Bytes of those that were read from its memory, where they may be decoded.
    in_memory: u64,
}

/// The event that a restore follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The agent was just started, with a command that must be the image's.
    Start,
    /// The job crashed while it ran.
    Crash,
}

impl Session<'_> {
    /// Resumes from the newest checkpoint that can be restored. `None`: there is no checkpoint.
    ///
    /// A pass in which no checkpoint came back is a crash like any other and is repeated within the budget
    /// of restarts. A store that cannot be read now is waited for: without it there is no job.
    pub(in crate::engine) async fn restore_newest(
        &mut self,
        occasion: Occasion,
    ) -> Result<Option<CheckpointId>, Stop> {
        if self.engine.job.store().is_discarding() {
            tracing::warn!("the store drops what it is given: there is nothing to resume from");
            return Ok(None);
        }
        // The job waits: nothing else is to be read or written.
        self.engine.stop_background();
        let mut store_wait = STORE_WAITS.0;
        loop {
            let e = match self.restore_pass(occasion).await? {
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
                if store_wait == STORE_WAITS.0 {
                    let message = message.clone();
                    self.engine.happened(Event::StoreUnreachable { message });
                }
                self.pause(store_wait).await?;
                store_wait = (store_wait * 2).min(STORE_WAITS.1);
                continue;
            }
            if e.may_pass() {
                let (now, jitter) = (self.engine.now(), random_u64());
                if let Decision::Restart { after, attempt } =
                    self.engine.restarts.on_failed_restore(now, jitter)
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
    async fn restore_pass(&mut self, occasion: Occasion) -> Result<Pass, Stop> {
        let mut only = self.engine.resume.from;
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
            let outcome = self.restore_checkpoint(&found, occasion).await;
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
                Err(e @ RestoreError::Store { .. }) if id.tier == Tier::Remote => {
                    return Ok(Pass::Failed(e));
                }
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
                    self.engine.happened(Event::RestoreFailed {
                        checkpoint: id.to_string(),
                        message: e.to_string(),
                    });
                    if let RestoreError::Damaged { pack, source } = &e {
                        self.damaged(id, &e);
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
        occasion: Occasion,
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
            match self
                .restore(&found.manifest, reader.clone(), occasion, tries)
                .await
            {
                Ok(restored) => {
                    let taken = found.manifest.created;
                    self.engine.newest = Some(Newest {
                        number: id.number.0,
                        unix_ms: taken.0,
                        step: image::step(&found.manifest),
                        in_store: id.tier == Tier::Remote,
                    });
                    self.tell_newest()?;
                    self.resumed((id, taken), restored, began.elapsed(), occasion);
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
                    if id.tier == Tier::Local && !mended =>
                {
                    if let RestoreError::Damaged { pack, source } = &e {
                        if has_moved(&found.job, id.number, pack).await {
                            return Ok(Err(e));
                        }
                        self.damaged(id, &e);
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

    fn damaged(&self, id: CheckpointId, error: &RestoreError) {
        self.engine.happened(Event::Damaged {
            checkpoint: id.to_string(),
            message: error.to_string(),
        });
    }

    /// Notes that the job runs again.
    fn resumed(
        &mut self,
        (id, taken): (CheckpointId, UnixMillis),
        restored: Restored,
        took: Duration,
        occasion: Occasion,
    ) {
        let Restored {
            times,
            waited,
            filling,
            held,
            fetched,
            local: Served { here, in_memory },
            total,
        } = restored;
        tracing::info!(
            checkpoint = %id,
            seconds = (took.as_secs_f64() * 10.0).round() / 10.0,
            total,
            fetched,
            cached = here,
            in_memory,
            memory_ms = filling.memory.as_millis(),
            transfer_ms = filling.transfer.as_millis(),
            verify_ms = filling.verify.as_millis(),
            files_ms = times.files_ns / 1_000_000,
            criu_ms = times.criu_ns / 1_000_000,
            control_ms = times.control_restore_ns / 1_000_000,
            wait_ms = waited.as_millis(),
            attach_ms = times.attach_ns / 1_000_000,
            "resumed"
        );
        let phases = [
            ("memory", filling.memory.as_secs_f64() * 1e3),
            ("transfer", filling.transfer.as_secs_f64() * 1e3),
            ("verify", filling.verify.as_secs_f64() * 1e3),
            ("files", times.files_ns as f64 / 1e6),
            ("criu", times.criu_ns as f64 / 1e6),
            ("control_restore", times.control_restore_ns as f64 / 1e6),
            ("wait", waited.as_secs_f64() * 1e3),
            ("attach", times.attach_ns as f64 / 1e6),
        ];
        self.engine.happened(Event::JobResumed(Resumed {
            checkpoint: id.to_string(),
            place: match id.tier {
                Tier::Local => Place::Local,
                Tier::Remote => Place::Store,
            },
            taken_ms: taken.0,
            after: match occasion {
                Occasion::Start => After::Start,
                Occasion::Crash => After::Crash,
            },
            seconds: took.as_secs_f64(),
            phases_ms: phases.map(|(name, ms)| (name.to_owned(), ms)).into(),
            total_bytes: total,
            fetched_bytes: fetched,
        }));
        // What was not protected is lost; the job is where its checkpoint is.
        self.engine.protected();
        self.registry.replace(held);
        self.engine.planning.resumed();
        self.engine.adapt_interval_to_failure(took);
        // A crash after that goes back to the newest one.
        self.engine.resume.from = None;
        if let Some(local) = &mut self.engine.tiers.local {
            local.resumed();
        }
        let mut status = self.engine.status.lock();
        status.resumed_from = Some(id.number.0);
        status.resumed_locally = id.tier == Tier::Local;
        status.restarts += u32::from(occasion == Occasion::Crash);
    }

    async fn restore(
        &mut self,
        manifest: &Manifest,
        reader: Reader,
        occasion: Occasion,
        nth: u32,
    ) -> Result<Restored, RestoreError> {
        let image = parse(manifest)?;
        // All checks first: they change nothing.
        let assigned = self.checks(manifest, &image, occasion)?;
        let closed = self.engine.gpus.missing(assigned.values().copied());
        if !closed.is_empty() {
            self.open_gpus(closed)
                .await
                .map_err(|cause| RestoreError::Image(cause.to_string()))?;
        }
        let directory = self.image_directory().await?;
        self.check_files(manifest, &reader, &directory).await?;
        let reusable = self.take_reusable(&image, &assigned);
        self.device_room(&image, &assigned, &reusable).await?;
        let patience = match occasion {
            Occasion::Start => Duration::ZERO,
            Occasion::Crash => RECLAIM,
        };
        host_room(manifest, &directory, patience).await?;

        let before = self.served(&reader);
        let total = manifest.image_bytes();
        let work = self.engine.status.begin(Kind::Resume, total, unix_millis());
        let progress = Progress::new("resuming", total, work);
        let gpus = self.engine.gpus.clone();
        let target = Target {
            assigned: &assigned,
            gpus: &gpus,
            directory,
            files: manifest.body.cpu_image.iter().map(|file| file.length).sum(),
            progress: &progress,
        };
        let prepared = prepare(&reader, manifest, &image, reusable, &target).await?;
        let held = prepared.held.clone();
        let revived = self.fill_and_revive(prepared, &reader, &image, &target, nth);
        let (filled, times, waited) = match revived.await {
            Ok(revived) => revived,
            Err(e) => {
                // For the next try: there may be no room for it twice, and what is right of it need not be fetched again.
                self.registry.replace(held);
                return Err(e);
            }
        };
        progress.finish();
        self.engine.cpu_image = target.files;
        let after = self.served(&reader);
        let (_, mended) = reader.read_elsewhere();
        if mended > 0 {
            tracing::warn!(
                bytes = mended,
                "what the damaged checkpoint lacked came from the store"
            );
        }
        self.engine
            .gpus
            .set_aliases(aliases(&image.extra, &assigned));
        Ok(Restored {
            times,
            waited,
            filling: filled.times,
            held: filled.held,
            fetched: filled.fetched,
            local: Served {
                here: after.here - before.here,
                in_memory: after.in_memory - before.in_memory,
            },
            total: manifest.image_bytes(),
        })
    }

    /// Fills the job's memory, and has its processes brought back beside the last of it, if this is the first try; also returns how long
    /// these waited for it.
    async fn fill_and_revive(
        &mut self,
        prepared: Prepared,
        reader: &Reader,
        image: &Image,
        target: &Target<'_>,
        nth: u32,
    ) -> Result<(Filled, RestoreTimes, Duration), RestoreError> {
        let (held, total) = (prepared.held.clone(), prepared.missing);
        let files = target.files;
        let began = Instant::now();
        let filling = Filling::new();
        let mut filled = pin!(prepared.fill(reader, image, target, &filling));
        let mut revive = Revive::new(total, files);
        // Once that came to nothing, for whatever reason, they do not wait again.
        let may_wait = self.same_release && !held.is_empty() && nth == 1;
        let is_time = move |filled: &u64| revive.is_time(*filled, began.elapsed());
        let ended = tokio::select! {
            biased;
            ended = &mut filled => Some(ended),
            () = filling.until(is_time), if may_wait => None,
        };
        match ended {
            None => self.revive(&held, target.assigned, &filling, filled).await,
            Some(ended) => {
                let ended = ended?;
                let times = self.hand_over(&held, target.assigned).await?;
                Ok((ended, times, Duration::ZERO))
            }
        }
    }

    /// Keeps the old job's memory that is the same allocation in the image; the rest is let go.
    fn take_reusable(
        &mut self,
        image: &Image,
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
    ) -> HashMap<AllocationKey, Arc<dyn DeviceMemory>> {
        let keys: HashMap<AllocationKey, u64> = image
            .memory
            .iter()
            .map(|w| (w.allocation.key, w.allocation.bytes))
            .collect();
        self.registry.retain(&keys);
        let reusable: HashMap<AllocationKey, Arc<dyn DeviceMemory>> = image
            .memory
            .iter()
            .filter_map(|w| {
                let held = self.registry.get(&w.allocation.key)?;
                let same = held.allocation.bytes == w.allocation.bytes
                    && held.allocation.rdma == w.allocation.rdma
                    && Some(&held.memory.gpu()) == assigned.get(&w.gpu)
                    && held.memory.fd().is_some();
                same.then(|| (w.allocation.key, Arc::clone(&held.memory)))
            })
            .collect();
        // It stays there until other memory takes its place: a try that fails leaves it to the next.
        let keys = reusable.keys().map(|key| (*key, 0)).collect();
        self.registry.retain(&keys);
        reusable
    }

    /// Bytes that were read on this machine until now.
    fn served(&self, reader: &Reader) -> Served {
        let caches = &self.engine.caches;
        let of = |cache: &Option<Arc<PackCache>>| cache.as_ref().map_or(0, |c| c.served());
        let (in_memory, on_disk) = (of(&caches.memory), of(&caches.disk));
        // Of the tier on this machine, some was in memory as well.
        let nearer = reader.read_elsewhere().0;
        let here = match self.engine.tiers.local {
            Some(_) => (nearer + on_disk).max(in_memory),
            None => nearer + on_disk + in_memory,
        };
        Served { here, in_memory }
    }
}
