//! Whether this machine can take a checkpoint, looked at before anything is fetched or changed: the machine, its GPUs, the files
//! that the image does not carry, room. A lack that an older checkpoint would not cure ends the attempt to resume.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_agent::image::AGENT_FILE;
use phos_gpu::DeviceMemory;
use phos_protocol::agent::{ToAgent, ToSidecar};
use phos_protocol::types::{AllocationKey, GpuUuid};
use phos_shared::host_memory;
use phos_storage::{Manifest, Reader};
use rustix::fs::{Mode, OFlags};

use super::Occasion;
use super::checks::{self, CheckError};
use super::error::{RestoreError, failed_read, parse};
use crate::engine::image::Image;
use crate::engine::session::{Session, Stop};
use crate::engine::tiers::Unused;
use crate::engine::tiers::local::{self, Standing};
use crate::engine::{CheckpointId, EngineError, Start, Tier, cpu, store_options};

/// How long memory of a job that was just killed may take to come back.
pub(super) const RECLAIM: Duration = Duration::from_secs(20);
/// How long looking at the files of an image may take, of a slow network file system.
const FILES: Duration = Duration::from_secs(120);
/// The most bytes that an image's description may have.
const DESCRIPTION: u64 = 256 << 20;
/// How often a restore that waits for room looks for it again.
const LOOK: Duration = Duration::from_millis(250);

impl Session<'_> {
    /// The checks of the restore that [`Session::restore_newest`] would begin with; changes nothing.
    pub(in crate::engine) async fn refuse_early(&mut self) -> Result<(), Stop> {
        if self.engine.job.store().is_discarding() || self.engine.resume.start == Start::Fresh {
            return Ok(());
        }
        let manifest = match self.engine.resume.from {
            // The tier on this machine is opened when the job is ours.
            Some(id) if id.tier == Tier::Local => return self.refuse_stale(id).await,
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
            Ok(image) => self.checks(&manifest, &image, Occasion::Start).map(drop),
            Err(RestoreError::Check(e)) => Err(e),
            // What is damaged is passed over later.
            Err(_) => Ok(()),
        };
        // One on this machine may do without the files that those in the store need.
        if verdict.is_ok() && self.engine.tiers.local.is_none() {
            verdict = self.files_of_any(&manifest).await?;
        }
        if let Err(e) = verdict {
            self.give_up(&e.to_string())?;
            return Err(EngineError::Check(e).into());
        }
        Ok(())
    }

    /// A start that would resume an older checkpoint than there is on this machine, because it does not look there: taking the
    /// job over would abandon the history that it is of.
    async fn refuse_to_leave_behind(&mut self, stored: Option<&Manifest>) -> Result<(), Stop> {
        if self.engine.tiers.local.is_some() {
            return Ok(());
        }
        let Unused {
            state_dir,
            address,
            key,
        } = &self.engine.tiers.unused;
        let options = store_options(key.clone());
        let job = &self.engine.job;
        let stored_at = stored.map(|manifest| manifest.created);
        let here = local::left_behind(state_dir, job, address, options, stored_at).await?;
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

    /// A checkpoint on this machine that others continued without, or may have, is not resumed, and neither deleted nor set
    /// aside: taking the job over would do that.
    async fn refuse_stale(&mut self, id: CheckpointId) -> Result<(), Stop> {
        let state = self.engine.job.state().await?;
        let why = match &self.engine.tiers.local {
            None => "give --remote-interval, as when it was taken".to_owned(),
            Some(local) => match local.standing(&self.engine.job, &state).await? {
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
    pub(super) fn checks(
        &self,
        manifest: &Manifest,
        image: &Image,
        occasion: Occasion,
    ) -> Result<BTreeMap<GpuUuid, GpuUuid>, CheckError> {
        if occasion == Occasion::Start {
            checks::command(manifest, image, &self.command)?;
        }
        let driver = self.engine.gpus.driver().and_then(|d| d.version());
        checks::machine(manifest, image, driver.map_err(|e| e.to_string()))?;
        let unused = &self.engine.resume.unused_cpu_features;
        checks::cpu(&image.extra.cpu_features, &cpu::features(), unused)?;
        let here = self.engine.gpus.infos();
        let assigned = checks::assign(&manifest.body.gpus, here)?;
        checks::fits(image, &assigned, here)?;
        Ok(assigned)
    }

    /// Lets the agent look whether the files are there that the image does not carry. Only its description is fetched for that,
    /// and removed again: what is restored is fetched as a whole.
    pub(super) async fn check_files(
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
    pub(super) async fn device_room(
        &self,
        image: &Image,
        assigned: &BTreeMap<GpuUuid, GpuUuid>,
        reusable: &HashMap<AllocationKey, Arc<dyn DeviceMemory>>,
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
                Err(_) => tokio::time::sleep(LOOK).await,
            }
        }
    }
}

/// Whether the CPU image fits; waits for so long, as the memory of a job that was just killed comes back late.
pub(super) async fn host_room(
    manifest: &Manifest,
    directory: &OwnedFd,
    patience: Duration,
) -> Result<(), RestoreError> {
    let deadline = Instant::now() + patience;
    while let Err(e) = has_host_room(manifest, directory) {
        if Instant::now() >= deadline {
            return Err(e);
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

fn has_host_room(manifest: &Manifest, directory: &OwnedFd) -> Result<(), RestoreError> {
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
