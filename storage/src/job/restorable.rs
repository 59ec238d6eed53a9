//! Which checkpoint a restore uses: the newest of the current run that is whole.

use async_recursion::async_recursion as boxed;

use super::history::Walk;
use super::list::SkippedCheckpoint;
use super::{Job, JobError, LOOKS};
use crate::collection::ManifestRef;
use crate::fault::StoreFault;
use crate::head::RecordKind;
use crate::index::QUARANTINED;
use crate::manifest::Manifest;
use crate::names::CheckpointNumber;

/// The checkpoint that a restore should use, and what was passed over for it.
#[derive(Debug, Clone)]
pub struct Restorable {
    /// The newest checkpoint of the current run that is whole; `None` if there is none.
    pub manifest: Option<Manifest>,
    /// Newer ones that are not, newest first. To be said loudly.
    pub skipped: Vec<SkippedCheckpoint>,
}

impl Job {
    /// The newest checkpoint of the current run that is whole: its record and manifest can be read and all of its packs
    /// are there, with the right length and not quarantined. Newer ones that are not are told with the reason.
    ///
    /// Chunks are not read here; a reader checks each one. If one turns out damaged, [`Self::quarantine_pack`] and ask
    /// again.
    ///
    /// Collection may take away what it needs while it is read: [`Self::hold_newest`].
    #[boxed]
    pub async fn newest_restorable(&self) -> Result<Restorable, JobError> {
        Ok(self.newest_restorable_and_name().await?.0)
    }

    pub(crate) async fn newest_restorable_and_name(
        &self,
    ) -> Result<(Restorable, Option<ManifestRef>), JobError> {
        self.refuse_discard()?;
        let mut looks = 0;
        let mut skipped_before = None;
        loop {
            looks += 1;
            let (found, named, tail) = self.newest_restorable_once().await?;
            if found.skipped.is_empty() {
                return Ok((found, named));
            }
            // A store that went away meanwhile is not damaged, nor is one that was away for a moment.
            self.check_expected_with(tail).await?;
            let is_settled = (self.expected().is_none()
                || skipped_before.as_ref() == Some(&found.skipped))
                && !self.grew_beyond(tail).await?;
            if is_settled || looks > LOOKS {
                return Ok((found, named));
            }
            skipped_before = Some(found.skipped);
        }
    }

    async fn newest_restorable_once(
        &self,
    ) -> Result<(Restorable, Option<ManifestRef>, u64), JobError> {
        let mut skipped = Vec::new();
        let mut walk = Walk::new(self, 1).await?;
        // After the log: what is committed meanwhile would seem to lack its packs.
        let packs = self.packs().await?;
        while let Some(step) = walk.next().await? {
            if step.branch.is_some() {
                continue;
            }
            let number = step.number;
            let mut skip = |reason| {
                skipped.push(SkippedCheckpoint {
                    number: CheckpointNumber(number),
                    reason,
                })
            };
            let record = match step.record {
                Ok(record) => record,
                Err(reason) => {
                    skip(reason);
                    continue;
                }
            };
            if matches!(record.kind, RecordKind::Completed { .. }) {
                break;
            }
            let Some(named) = step.manifest else {
                continue;
            };
            if packs.manifests.contains(&named.name) {
                skip(format!("manifest {} is {QUARANTINED}", named.name));
                continue;
            }
            let manifest = match self.read_manifest(number, &named).await? {
                Ok(manifest) => manifest,
                Err(reason) => {
                    skip(reason);
                    continue;
                }
            };
            match manifest
                .packs
                .iter()
                .find_map(|pack| packs.check(pack).err())
            {
                None => {
                    let found = Restorable {
                        manifest: Some(manifest),
                        skipped,
                    };
                    return Ok((found, Some(named), walk.tail()));
                }
                Some(reason) => skip(reason),
            }
        }
        let found = Restorable {
            manifest: None,
            skipped,
        };
        // Packs were listed then: what the walk met beyond it may name newer ones.
        Ok((found, None, walk.tail()))
    }

    /// Checks that all packs of a checkpoint are there with the right length; the reason if not.
    #[boxed]
    pub async fn check_packs(&self, manifest: &Manifest) -> Result<(), JobError> {
        self.refuse_discard()?;
        if self.unusable(manifest).await?.is_none() {
            return Ok(());
        }
        // A store that is away, or was for a moment, is not damaged.
        self.known().await?;
        match self.unusable(manifest).await? {
            None => Ok(()),
            Some(reason) => Err(JobError::Unusable {
                job: self.name().clone(),
                number: manifest.number,
                reason,
            }),
        }
    }

    /// What is wrong with the packs of a checkpoint, by a listing.
    async fn unusable(&self, manifest: &Manifest) -> Result<Option<String>, StoreFault> {
        let packs = self.packs().await?;
        let reason = |pack| packs.check(pack).err();
        Ok(manifest.packs.iter().find_map(reason))
    }

    pub(crate) fn refuse_discard(&self) -> Result<(), JobError> {
        if self.inner.store.is_discarding() {
            return Err(JobError::Discarded {
                address: self.inner.store.address().to_owned(),
            });
        }
        Ok(())
    }
}
