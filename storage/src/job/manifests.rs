//! The manifests of a job's checkpoints, one at a time: which one is a checkpoint's, and whether it can be used.
//!
//! # Damage
//!
//! What seems damaged while the log grows is looked for once more: collection may have moved it.

use async_recursion::async_recursion as boxed;
use bytes::Bytes;

use super::history::Walk;
use super::{Job, JobError, LOOKS};
use crate::Digest;
use crate::collection::{self, ManifestRef};
use crate::fault::{FaultKind, StoreFault};
use crate::head::{HeadRecord, READS, RecordKind};
use crate::manifest::{self, Manifest, ManifestError};
use crate::names::CheckpointNumber;

/// A visible checkpoint with its manifest, or why that cannot be used.
pub(crate) struct FoundCheckpoint {
    pub number: CheckpointNumber,
    pub manifest_name: Option<String>,
    pub manifest: Result<Manifest, String>,
}

impl Job {
    /// The manifest of a checkpoint. That its packs are whole is not checked.
    #[boxed]
    pub async fn manifest(&self, number: CheckpointNumber) -> Result<Manifest, JobError> {
        Ok(self.manifest_and_name(number).await?.0)
    }

    pub(crate) async fn manifest_and_name(
        &self,
        number: CheckpointNumber,
    ) -> Result<(Manifest, ManifestRef), JobError> {
        let mut said_before = None;
        for _ in 0..LOOKS {
            let tail = self.tail_hint().await?;
            match self.manifest_once(number).await {
                Err(JobError::Unusable { .. }) if self.grew_beyond(tail).await? => {}
                Err(
                    error @ (JobError::Unusable { .. }
                    | JobError::Removed { .. }
                    | JobError::NoCheckpoint { .. }),
                ) => {
                    // A store that went away meanwhile, or was away for a moment, is neither damaged nor another one.
                    self.check_expected_with(tail).await?;
                    let said = error.to_string();
                    if self.expected().is_none() || said_before.as_ref() == Some(&said) {
                        return Err(error);
                    }
                    said_before = Some(said);
                }
                other => return other,
            }
        }
        self.manifest_once(number).await
    }

    /// Number of the newest record.
    async fn tail_hint(&self) -> Result<u64, StoreFault> {
        Ok(self.record_numbers().await?.last().copied().unwrap_or(0))
    }

    async fn manifest_once(
        &self,
        number: CheckpointNumber,
    ) -> Result<(Manifest, ManifestRef), JobError> {
        let job = || self.name().clone();
        let unusable = |reason| JobError::Unusable {
            job: job(),
            number,
            reason,
        };
        let mut walk = Walk::new(self, READS).await?;
        while let Some(step) = walk.next().await? {
            if step.number > number.0 {
                continue;
            }
            if step.number < number.0 {
                break;
            }
            if let Err(reason) = step.record {
                return Err(unusable(reason));
            }
            let Some(named) = step.manifest else {
                break;
            };
            let read = self.read_manifest(number.0, &named).await?;
            return Ok((read.map_err(unusable)?, named));
        }
        match self.find_record(number.0).await? {
            Some(Ok(HeadRecord {
                kind: RecordKind::Checkpoint { .. },
                ..
            })) => Err(JobError::Removed { job: job(), number }),
            _ => Err(JobError::NoCheckpoint { job: job(), number }),
        }
    }

    /// The manifest of a checkpoint, or why it cannot be used.
    pub(crate) async fn read_manifest(
        &self,
        number: u64,
        named: &ManifestRef,
    ) -> Result<Result<Manifest, String>, StoreFault> {
        let name = &named.name;
        if name.contains('/') {
            return Ok(Err(format!(
                "its record names the manifest {name:?}, which is no name"
            )));
        }
        let key = self.key(&format!("manifests/{name}"));
        let read = (self.backend()).read_checked(&key, manifest::KIND.max_object(), |bytes| {
            self.check_manifest(number, named.digest, bytes)
        });
        match read.await {
            Ok(manifest) => Ok(manifest),
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                Ok(Err(fault.to_string()))
            }
            Err(fault) => Err(fault),
        }
    }

    /// A manifest that no record names, by its name, if it is whole and that of this checkpoint.
    pub(crate) async fn manifest_by_name(
        &self,
        number: u64,
        name: &str,
    ) -> Result<Option<(ManifestRef, Manifest)>, StoreFault> {
        let key = self.key(&format!("manifests/{name}"));
        let read = self.backend().read(&key, manifest::KIND.max_object()).await;
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let digest = Digest::of(&bytes);
        if !name.starts_with(&collection::name(number, &digest)) {
            return Ok(None);
        }
        let named = ManifestRef {
            name: name.to_owned(),
            digest,
            length: bytes.len() as u64,
        };
        let manifest = self.check_manifest(number, digest, &bytes);
        Ok(manifest.ok().map(|manifest| (named, manifest)))
    }

    fn check_manifest(
        &self,
        number: u64,
        digest: Digest,
        bytes: &Bytes,
    ) -> Result<Manifest, String> {
        // First what it says of itself: "of a newer format" tells more than "not the expected bytes".
        let manifest = Manifest::decode_in(self.crypt(), number, bytes)
            .map_err(|error: ManifestError| error.to_string())?;
        if Digest::of(bytes) != digest {
            return Err("its manifest is not the one that was committed".into());
        }
        if manifest.job != *self.name() || manifest.number.0 != number {
            return Err(format!(
                "its manifest is that of checkpoint {} of job {}",
                manifest.number, manifest.job
            ));
        }
        Ok(manifest)
    }

    /// All visible checkpoints with their manifests, newest first, or with the reason why one cannot be used. That their
    /// packs are whole is not checked.
    #[boxed]
    pub async fn checkpoints(
        &self,
    ) -> Result<Vec<(CheckpointNumber, Result<Manifest, String>)>, JobError> {
        self.fold_checkpoints(|all: &mut Vec<_>, found| all.push((found.number, found.manifest)))
            .await
    }

    /// Shows all visible checkpoints to `take`, newest first, one manifest at a time: all of them together may be more than
    /// there is memory. If it has to look again, it begins with another `T`.
    pub(crate) async fn fold_checkpoints<T: Default>(
        &self,
        mut take: impl FnMut(&mut T, FoundCheckpoint),
    ) -> Result<T, JobError> {
        let mut looks = 0;
        loop {
            looks += 1;
            let (folded, damaged, tail) = self.fold_checkpoints_once(&mut take).await?;
            if damaged {
                self.check_expected_with(tail).await?;
            }
            if !damaged || looks > LOOKS || !self.grew_beyond(tail).await? {
                return Ok(folded);
            }
        }
    }

    /// What `take` made of the checkpoints, whether one cannot be used, and the newest record seen.
    async fn fold_checkpoints_once<T: Default>(
        &self,
        take: &mut impl FnMut(&mut T, FoundCheckpoint),
    ) -> Result<(T, bool, u64), JobError> {
        let mut walk = Walk::new(self, READS).await?;
        let (mut folded, mut damaged) = (T::default(), false);
        while let Some(step) = walk.next().await? {
            let number = CheckpointNumber(step.number);
            let found = match (step.record, step.manifest) {
                (Err(reason), _) => FoundCheckpoint {
                    number,
                    manifest_name: None,
                    manifest: Err(reason),
                },
                (Ok(_), Some(named)) => FoundCheckpoint {
                    number,
                    manifest: self.read_manifest(step.number, &named).await?,
                    manifest_name: Some(named.name),
                },
                (Ok(_), None) => continue,
            };
            damaged |= found.manifest.is_err();
            take(&mut folded, found);
        }
        Ok((folded, damaged, walk.newest()))
    }
}
