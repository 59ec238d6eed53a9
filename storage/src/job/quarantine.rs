//! Quarantine: notes of packs and manifests that are damaged, so that nobody uses them until a deep verification found them
//! sound.
//!
//! # Rules
//!
//! * A note is about what is there. What is missing gets no note: listings show that, and it counts again if it comes back.
//! * In an encrypted job a note counts only if it is sealed for the job: a user that may write to the store but has no key cannot
//!   hide a checkpoint.

use async_recursion::async_recursion as boxed;
use serde::Serialize;

use super::{Job, JobError};
use crate::envelope::{self, Kind, SEALED_VERSION};
use crate::fault::{FaultKind, StoreFault};
use crate::names::{PackId, UnixMillis};

const QUARANTINE_KIND: Kind = Kind {
    what: "quarantine note",
    magic: *b"PHOSQUAR",
    version: 1,
    sealed: SEALED_VERSION,
    max_stored: 64 << 10,
    max_plain: 64 << 10,
};

/// Where the quarantine note of a pack or manifest stands below its job.
fn quarantine_place(name: &str) -> String {
    format!("quarantine/{name}")
}

impl Job {
    /// Notes, for all who come after, that a pack is damaged: no checkpoint that needs it is restored, and no new one
    /// references it, until a deep verification has read it and found it sound.
    ///
    /// A missing pack gets no note: listings show that, and it counts again if it comes back.
    #[boxed]
    pub async fn quarantine_pack(
        &self,
        pack: &PackId,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        // If this cannot be found out now, it is noted rather than not.
        let missing = (self.packs().await).is_ok_and(|packs| !packs.present.contains_key(pack));
        if missing {
            self.forget_pack(pack);
            return Ok(());
        }
        self.note_damaged_pack(pack, reason, now).await
    }

    /// [`Self::quarantine_pack`] for a caller that knows that the pack is there.
    pub(crate) async fn note_damaged_pack(
        &self,
        pack: &PackId,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        self.quarantine(&pack.to_string(), reason, now).await?;
        self.forget_pack(pack);
        Ok(())
    }

    /// Whether a note that counts says that a manifest or pack is damaged.
    pub(crate) async fn is_quarantined(&self, name: &str) -> Result<bool, StoreFault> {
        if name.contains('/') {
            return Ok(false);
        }
        let place = quarantine_place(name);
        let key = self.key(&place);
        let sealed = self.crypt().keys().is_some();
        let read = (self.backend()).read_checked(&key, QUARANTINE_KIND.max_object(), |bytes| {
            match sealed {
                true => envelope::open_in(self.crypt(), &place, &QUARANTINE_KIND, bytes).map(drop),
                // That it stands there is what counts.
                false => Ok(()),
            }
        });
        match read.await {
            Ok(Ok(())) => Ok(true),
            Ok(Err(error)) => {
                tracing::warn!(
                    note = key, %error,
                    "a quarantine note is not the job's: what it is about is used all the same, and checked like everything. Delete the note"
                );
                Ok(false)
            }
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(!sealed),
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(false),
            Err(fault) => Err(fault),
        }
    }

    /// Takes a quarantine note back: what it is about was read and is sound.
    pub(crate) async fn lift_quarantine(&self, name: &str) -> Result<(), StoreFault> {
        self.backend()
            .delete(&self.key(&quarantine_place(name)))
            .await
    }

    /// Notes that a manifest is damaged: its checkpoint is not restored and not referenced until a deep verification has read it,
    /// even if its bytes happen to read right. The caller knows that it is there.
    pub(crate) async fn quarantine_manifest(
        &self,
        name: &str,
        reason: &str,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        if name.contains('/') {
            return Ok(());
        }
        self.quarantine(name, reason, now).await
    }

    async fn quarantine(&self, name: &str, reason: &str, now: UnixMillis) -> Result<(), JobError> {
        #[derive(Serialize)]
        struct Note {
            reason: String,
            created: UnixMillis,
        }
        let note = Note {
            reason: reason.chars().take(1000).collect(),
            created: now,
        };
        let payload = envelope::to_cbor(QUARANTINE_KIND.what, &note)?;
        let place = quarantine_place(name);
        let bytes = envelope::seal_in(self.crypt(), &place, &QUARANTINE_KIND, &payload)?;
        let key = self.key(&place);
        Ok(self.backend().write(&key, bytes.into()).await?)
    }
}
