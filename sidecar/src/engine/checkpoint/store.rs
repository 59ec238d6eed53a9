//! The rest of a checkpoint, while the job runs: what is still on its way from the GPUs, the CPU image, the manifest, the
//! commit that makes it visible.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_policies::schedule::Trigger;
use phos_protocol::agent::DumpFacts;
use phos_protocol::types::GpuUuid;
use phos_shared::failpoint::{self, Point};
use phos_storage::{CheckpointWriter, Commit, Digest, Durability, ImageFile, Timings, UnixMillis};
use tokio::task::JoinHandle;

use super::cpu_image;
use super::drain::Drains;
use super::outcome::{Cause, Consequence, Failed, Measured, PartsMs, Stored, cancelled, ms};
use super::pipeline::{Control, Sink};
use crate::background::Background;
use crate::engine::Tier;
use crate::engine::image::{self, Described, Parts};
use crate::engine::memory::gpus::Gpus;
use crate::engine::{cpu, unix_millis};
use crate::report::status::CheckpointReport;

/// Everything that the stop hands on to be stored while the job runs.
pub(super) struct Work {
    pub(super) trigger: Trigger,
    /// When the checkpoint began.
    pub(super) began: Instant,
    /// When the stop began.
    pub(super) held_at: UnixMillis,
    pub(super) writer: CheckpointWriter,
    pub(super) control: Arc<Control>,
    pub(super) sink: Sink,
    /// Ends when all that was put into the sink is stored.
    pub(super) puts: JoinHandle<Result<(), String>>,
    pub(super) drains: Drains,
    /// The job's device memory as the manifest will describe it.
    pub(super) memory: Vec<Described>,
    /// The fd of the directory in which the CPU image lies.
    pub(super) directory: OwnedFd,
    pub(super) facts: Box<DumpFacts>,
    /// Device memory that the driver needs at a restore, per GPU, in bytes.
    pub(super) reserve: Vec<(GpuUuid, u64)>,
    pub(super) command: Vec<String>,
    pub(super) gpus: Gpus,
    /// Whose threads do it.
    pub(super) background: Background,
    /// How long it takes nothing but what the job leaves of the processors, however little.
    pub(super) patience: Duration,
    pub(super) parts: PartsMs,
    /// GB/s (10^9 bytes) of the digests and of the drain.
    pub(super) rates: BTreeMap<String, f64>,
    /// Bytes of device memory that were stored nowhere.
    pub(super) changed: u64,
    /// How long the stop held the job.
    pub(super) stop: Duration,
    /// How long tries that failed held it before.
    pub(super) tried: Duration,
    pub(super) measured: Measured,
    pub(super) seq: u64,
    /// The last step before it, if the program tells steps.
    pub(super) step: Option<u64>,
    pub(super) tier: Tier,
    pub(super) durability: Durability,
    /// It becomes visible after that.
    pub(super) newest: UnixMillis,
}

impl Work {
    /// Stores it and makes it visible, with what the job leaves of the processors while nobody waits for it.
    pub(super) async fn store(self) -> Result<Stored, Failed> {
        let (background, patience) = (self.background.clone(), self.patience);
        let (outcome, left_to_job) = background.patiently(patience, self.run_or_abort()).await;
        let mut stored = outcome?;
        stored.report.left_to_job(left_to_job);
        Ok(stored)
    }

    async fn run_or_abort(self) -> Result<Stored, Failed> {
        let stop = self.stop + self.tried;
        let writer = self.writer.clone();
        let control = Arc::clone(&self.control);
        match self.run().await {
            Ok(stored) => Ok(stored),
            Err(cause) => {
                let mut failed = cause.into_failed(stop);
                let by_job = control.was_for_others() || control.was_overwritten();
                if matches!(failed.then, Consequence::Nothing) && !by_job {
                    failed.then = Consequence::OtherTier;
                }
                control.cancel(failed.message.clone());
                writer.abort(unix_millis()).await;
                Err(failed)
            }
        }
    }

    async fn run(self) -> Result<Stored, Cause> {
        let Work {
            trigger,
            began,
            writer,
            control,
            sink,
            puts,
            drains,
            memory,
            directory,
            facts,
            reserve,
            command,
            gpus,
            background,
            patience: _,
            held_at,
            mut parts,
            rates,
            changed,
            stop,
            tried: _,
            measured,
            seq,
            step,
            tier,
            durability,
            newest,
        } = self;
        control.add_to_store(facts.image_bytes);
        let cpu = chunk_beside(
            background,
            directory,
            writer.clone(),
            sink,
            Arc::clone(&control),
        );
        let cpu_image = gather(&control, puts, drains, cpu, &mut parts).await?;
        failpoint::reach(Point::SidecarBeforeManifest);
        let body = image::body(Parts {
            trigger: trigger.as_str(),
            command: &command,
            facts: &facts,
            reserve: &reserve,
            gpus: gpus.infos(),
            aliases: gpus.aliases(),
            cpu_features: cpu::features().into_iter().collect(),
            memory: &memory,
            cpu_image,
            timings: timings(stop, &parts, changed, step, &control),
        })
        .map_err(Cause::Manifest)?;
        drop(memory);
        failpoint::reach(Point::SidecarBeforeHead);
        let commit_began = Instant::now();
        let now = unix_millis().max(UnixMillis(newest.0 + 1));
        let committed = writer.commit(body, now).await;
        let commit = committed.map_err(|error| Cause::commit(error, tier))?;
        say_resumed(&commit);
        failpoint::reach(Point::SidecarAfterHead);
        parts.insert("commit".into(), ms(commit_began.elapsed()));
        tracing::debug!(
            seq,
            number = commit.number.0,
            packs = commit.stats.stored_packs,
            "committed"
        );
        Ok(Stored {
            report: CheckpointReport {
                id: commit.number.0,
                local: tier == Tier::Local,
                durability: Some(durability),
                trigger: trigger.as_str().into(),
                taken_ms: commit.manifest.created.0,
                held_at_ms: held_at.0,
                step,
                stop_ms: ms(stop),
                parts_ms: parts,
                rates,
                total_bytes: commit.manifest.image_bytes(),
                changed_bytes: changed,
                copied_bytes: control.copied(),
                stored_bytes: commit.stats.stored_bytes,
                seconds: began.elapsed().as_secs_f64(),
            },
            tier,
            trigger,
            created: commit.manifest.created,
            stop,
            measured,
        })
    }
}

/// The files of a CPU image with the names of their chunks.
type CpuImage = Vec<ImageFile<Vec<Digest>>>;

/// Cuts the CPU image beside what else is stored, and hands on what is not stored yet.
fn chunk_beside(
    background: Background,
    directory: OwnedFd,
    known: CheckpointWriter,
    sink: Sink,
    control: Arc<Control>,
) -> JoinHandle<Result<CpuImage, cpu_image::ImageError>> {
    tokio::task::spawn_blocking(move || {
        let naming = known.naming();
        let files = cpu_image::list(directory.as_fd())?;
        let take = |digest, bytes: &[u8]| {
            if known.contains(&digest) {
                // What it has in common with those before stays in the caches.
                known.will_have(&[digest]);
                control.add_stored(bytes.len() as u64);
                return true;
            }
            sink.host(digest, cpu_image::owned(bytes))
        };
        cpu_image::chunk_files(&background, directory.as_fd(), &files, &naming, take)
    })
}

/// Waits until all that the checkpoint consists of is in the store.
async fn gather(
    control: &Control,
    puts: JoinHandle<Result<(), String>>,
    drains: Drains,
    cpu: JoinHandle<Result<CpuImage, cpu_image::ImageError>>,
    parts: &mut PartsMs,
) -> Result<CpuImage, Cause> {
    let began = Instant::now();
    let broken = drains.finish(control).await;
    parts.insert("drain".into(), ms(began.elapsed()));
    let yielded = control.yielded();
    if !yielded.is_zero() {
        parts.insert("yielded".into(), ms(yielded));
    }
    let cpu_image = cpu.await;
    parts.insert("cpu_image".into(), ms(began.elapsed()));
    let put = puts.await.unwrap_or_else(|e| Err(e.to_string()));
    if control.was_overwritten() {
        return Err(Cause::Overwritten);
    }
    if let Err(reason) = put {
        let reason = control.reason().unwrap_or(reason);
        return Err(Cause::Store { reason, broken });
    }
    if control.is_cancelled() {
        return Err(match broken {
            Some(e) => Cause::Store {
                reason: control.reason().unwrap_or_default(),
                broken: Some(e),
            },
            None => cancelled(control),
        });
    }
    match cpu_image {
        Ok(image) => image.map_err(|e| Cause::Task(e.to_string())),
        Err(e) => Err(Cause::Task(e.to_string())),
    }
}

fn timings(
    stop: Duration,
    parts: &PartsMs,
    changed: u64,
    step: Option<u64>,
    control: &Control,
) -> Timings {
    let step = step.map(|step| (image::STEP.to_owned(), step));
    Timings {
        stop_us: stop.as_micros() as u64,
        phases_us: parts
            .iter()
            .map(|(name, ms)| (name.clone(), (ms * 1e3) as u64))
            .collect(),
        figures: BTreeMap::from_iter(
            [
                ("changed_bytes".into(), changed),
                ("copied_bytes".into(), control.copied()),
            ]
            .into_iter()
            .chain(step),
        ),
    }
}

fn say_resumed(commit: &Commit) {
    if commit.resumed.chunks > 0 {
        tracing::info!(
            bytes = commit.resumed.bytes,
            packs = commit.resumed.packs,
            "an unfinished checkpoint was completed: that much was not uploaded again"
        );
    }
}
