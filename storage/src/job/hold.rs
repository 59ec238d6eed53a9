//! Holds: they name what a reader needs while it reads, so that a collection by any process leaves it alone.
//!
//! A restore, an export or a deep verification reads for minutes what retention may give up meanwhile. A reader
//! therefore notes in `readers/<nonce>` the manifests that it reads, *then* looks at the log once more, and begins only
//! if they still stand there under the same names; else it notes what stands there now.
//!
//! # Why that is enough
//!
//! A collection sweeps only what no checkpoint visible in its state A names (see `collect`), and lists notes after A.
//! So what a reader saw in the log after it wrote its note can be given up at the earliest by a collection whose A is
//! later, which therefore meets the note.
//!
//! # Liveness
//!
//! A reader has no epoch: it must not take a job over to look at it. Its note carries the time of its last renewal instead, and
//! counts for an hour by the collector's clock ([`STALE_MS`]); [`Hold::renew`] is called every few minutes ([`RENEW_EVERY`]).
//! Clocks of different machines are compared here and for leases of long ago (`policies/src/lease.rs`) alone, and nothing but a reader's comfort depends on it: each
//! chunk is checked by its name when it is read, so one whose clock is off by more than an hour, or that was paused for longer,
//! may be told that what it reads was removed. It never reads anything wrong, and does not touch the history.
//!
//! # What does not fit
//!
//! A note has at most 1 MiB: some 20,000 manifests. A reader that wants to hold more holds the newest, and is told how many are
//! left out ([`Hold::left_out`]).
//!
//! # Who may not write
//!
//! A store that can be read and not written is read without a hold, as far as collection lets it:
//! [`Hold::unprotected`] says so.
//!
//! # Crash consistency
//!
//! The note of a reader that died is removed by any collection an hour later. One that was dropped without [`Hold::release`] is
//! removed by the next collection of its process.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::collection::ManifestRef;
use crate::crypt::Crypt;
use crate::envelope::{self, EnvelopeError, Kind, SEALED_VERSION};
use crate::fault::{FaultKind, StoreFault};
use crate::head::READS;
use crate::index::QUARANTINED;
use crate::job::history::Walk;
use crate::job::{Job, JobError, LOOKS, Note, Restorable};
use crate::manifest::Manifest;
use crate::names::{CheckpointNumber, Nonce, UnixMillis};

use futures::{StreamExt, TryStreamExt, stream};

/// How often a reader has to renew its hold.
pub const RENEW_EVERY: Duration = Duration::from_secs(300);

/// A note no longer counts if its renewal is further away than this, in the past or in the future, in ms.
pub(crate) const STALE_MS: u64 = 3_600_000;

pub(crate) const KIND: Kind = Kind {
    what: "reader's note",
    magic: *b"PHOSREAD",
    version: 1,
    sealed: SEALED_VERSION,
    max_stored: 1 << 20,
    max_plain: 8 << 20,
};

/// Room that is left in a note, as the time of a later renewal may take more bytes.
const ROOM: u64 = 4096;

/// The note by which a reader says what it reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReaderNote {
    /// Who reads, in words for people.
    pub who: String,
    /// When it last said that it still does, by its own clock.
    pub renewed: UnixMillis,
    /// The manifests whose packs the reader needs.
    pub reads: Vec<ManifestRef>,
}

impl ReaderNote {
    pub(crate) fn encode(&self, crypt: &Crypt, reader: &Nonce) -> Result<Bytes, EnvelopeError> {
        let payload = envelope::to_cbor(KIND.what, self)?;
        Ok(envelope::seal_in(crypt, &place(reader), &KIND, &payload)?.into())
    }

    /// As [`Self::encode`], with as many of the manifests as a note can hold, the first ones first. How many those are not.
    fn encode_what_fits(
        &mut self,
        crypt: &Crypt,
        reader: &Nonce,
    ) -> Result<(Bytes, usize), EnvelopeError> {
        let all = self.reads.len();
        loop {
            let fewer = self.reads.len() - self.reads.len().div_ceil(8);
            match self.encode(crypt, reader) {
                Ok(bytes) if fewer == 0 || bytes.len() as u64 + ROOM <= KIND.max_object() => {
                    return Ok((bytes, all - self.reads.len()));
                }
                Err(error) if fewer == 0 || !matches!(error, EnvelopeError::TooLarge { .. }) => {
                    return Err(error);
                }
                _ => self.reads.truncate(fewer),
            }
        }
    }

    pub(crate) fn decode(
        crypt: &Crypt,
        reader: &Nonce,
        bytes: &[u8],
    ) -> Result<Self, EnvelopeError> {
        let (_version, payload) = envelope::open_in(crypt, &place(reader), &KIND, bytes)?;
        envelope::from_cbor(KIND.what, &payload)
    }

    /// Whether its reader may still be at it, by the clock of a collector.
    pub(crate) const fn counts(&self, now: UnixMillis) -> bool {
        self.renewed.0.abs_diff(now.0) <= STALE_MS
    }
}

/// Where a reader's note stands below its job.
fn place(reader: &Nonce) -> String {
    format!("readers/{reader}")
}

/// What a reader has asked to be kept while it reads: see the module's documentation.
pub struct Hold {
    job: Job,
    note: Option<Note>,
    said: ReaderNote,
    nonce: Nonce,
    unprotected: Option<StoreFault>,
    left_out: usize,
}

impl std::fmt::Debug for Hold {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Hold({:?}, {})", self.job, self.said.who)
    }
}

impl Hold {
    fn new(job: &Job, who: &str, now: UnixMillis) -> Self {
        Self {
            job: job.clone(),
            note: None,
            nonce: job.nonce(),
            said: ReaderNote {
                who: who.chars().take(200).collect(),
                renewed: now,
                reads: Vec::new(),
            },
            unprotected: None,
            left_out: 0,
        }
    }

    /// Notes other manifests, as many of them as fit, the first ones first. A failure is remembered, not told: reading goes
    /// on without protection.
    async fn say(&mut self, reads: Vec<ManifestRef>) -> Result<(), JobError> {
        self.said.reads = reads;
        let (bytes, left_out) = (self.said).encode_what_fits(self.job.crypt(), &self.nonce)?;
        self.left_out = left_out;
        let key = self.job.reader_key(&self.nonce);
        // From the first attempt on: one that fails may have been done.
        self.note
            .get_or_insert_with(|| Note::new(self.job.clone(), key.clone()));
        match self.job.backend().write(&key, bytes).await {
            Ok(()) => self.unprotected = None,
            Err(fault) => {
                tracing::warn!(%fault, "a reader's note cannot be written: reading on without it");
                if matches!(
                    fault.kind(),
                    FaultKind::Denied | FaultKind::Unauthenticated | FaultKind::ReadOnly
                ) && let Some(note) = self.note.take()
                {
                    // It was never written.
                    note.forget();
                }
                self.unprotected = Some(fault);
            }
        }
        Ok(())
    }

    /// Says that the reader is still at it; every [`RENEW_EVERY`] or so.
    #[boxed]
    pub async fn renew(&mut self, now: UnixMillis) -> Result<(), StoreFault> {
        self.said.renewed = now;
        if self.note.is_none() {
            return Ok(());
        }
        let key = self.job.reader_key(&self.nonce);
        match self.said.encode(self.job.crypt(), &self.nonce) {
            Ok(bytes) => self.job.backend().write(&key, bytes).await,
            Err(error) => Err(StoreFault::with_kind(
                "write",
                key,
                FaultKind::Invalid,
                error.to_string(),
            )),
        }
    }

    /// Why what is read is not protected from collection, if so.
    #[must_use]
    pub const fn unprotected(&self) -> Option<&StoreFault> {
        self.unprotected.as_ref()
    }

    /// How many checkpoints, the oldest ones, did not fit into the note: collection may take them away meanwhile.
    #[must_use]
    pub const fn left_out(&self) -> usize {
        self.left_out
    }

    /// Gives the hold back: what it protected may be deleted from now on.
    #[boxed]
    pub async fn release(mut self) {
        if let Some(note) = self.note.take() {
            note.remove().await;
        }
    }
}

impl Job {
    pub(crate) fn reader_key(&self, reader: &Nonce) -> String {
        self.key(&place(reader))
    }

    /// A manifest that can be relied on: quarantine counts for a caller that asks by number as it does for one that asks for the
    /// newest.
    async fn unquarantined(
        &self,
        number: CheckpointNumber,
    ) -> Result<(Manifest, ManifestRef), JobError> {
        let (manifest, named) = self.manifest_and_name(number).await?;
        if self.is_quarantined(&named.name).await? {
            return Err(JobError::Unusable {
                job: self.name().clone(),
                number,
                reason: format!("manifest {} is {QUARANTINED}", named.name),
            });
        }
        Ok((manifest, named))
    }

    /// A checkpoint's manifest, held: its packs stay until [`Hold::release`]. `who` says for what, for people.
    ///
    /// # Errors
    /// Also [`JobError::Unusable`] if the manifest is in quarantine.
    #[boxed]
    pub async fn hold(
        &self,
        number: CheckpointNumber,
        who: &str,
        now: UnixMillis,
    ) -> Result<(Manifest, Hold), JobError> {
        let mut hold = Hold::new(self, who, now);
        for _ in 0..LOOKS {
            let (manifest, named) = self.unquarantined(number).await?;
            hold.say(vec![named.clone()]).await?;
            if hold.unprotected.is_some() || self.named(number).await?.as_ref() == Some(&named) {
                return Ok((manifest, hold));
            }
        }
        let (manifest, named) = self.unquarantined(number).await?;
        hold.say(vec![named]).await?;
        Ok((manifest, hold))
    }

    /// [`Job::newest_restorable`], held.
    #[boxed]
    pub async fn hold_newest(
        &self,
        who: &str,
        now: UnixMillis,
    ) -> Result<(Restorable, Option<Hold>), JobError> {
        let mut hold = Hold::new(self, who, now);
        let mut looks = 0;
        loop {
            looks += 1;
            let (found, named) = self.newest_restorable_and_name().await?;
            let (Some(manifest), Some(named)) = (&found.manifest, named) else {
                return Ok((found, None));
            };
            hold.say(vec![named.clone()]).await?;
            if looks > LOOKS
                || hold.unprotected.is_some()
                || self.named(manifest.number).await?.as_ref() == Some(&named)
            {
                return Ok((found, Some(hold)));
            }
        }
    }

    /// Holds all visible checkpoints; if they are more than a note can hold, the newest of them ([`Hold::left_out`]).
    #[boxed]
    pub async fn hold_all(&self, who: &str, now: UnixMillis) -> Result<Hold, JobError> {
        let mut hold = Hold::new(self, who, now);
        let mut said: Option<Vec<ManifestRef>> = None;
        for _ in 0..LOOKS {
            let mut walk = Walk::new(self, READS).await?;
            // Newest first.
            let mut named = Vec::new();
            while let Some(step) = walk.next().await? {
                named.extend(step.manifest);
            }
            if named.is_empty() || said.as_ref() == Some(&named) {
                break;
            }
            hold.say(named.clone()).await?;
            said = Some(named);
            if hold.unprotected.is_some() {
                break;
            }
        }
        Ok(hold)
    }

    /// The manifest that is a checkpoint's now; `None` if it is not visible.
    async fn named(&self, number: CheckpointNumber) -> Result<Option<ManifestRef>, JobError> {
        let mut walk = Walk::new(self, READS).await?;
        while let Some(step) = walk.next().await? {
            if step.number <= number.0 {
                let same = step.number == number.0;
                return Ok(step.manifest.filter(|_| same));
            }
        }
        Ok(None)
    }

    /// The notes of all readers, by their names. What cannot be read counts: `None`.
    pub(crate) async fn readers(&self) -> Result<Vec<(Nonce, Option<ReaderNote>)>, StoreFault> {
        let listed = self.backend().list(&self.key("readers")).await?;
        let nonces: Vec<Nonce> = listed
            .iter()
            .filter_map(|object| crate::collection::parse_note_name(&object.name))
            .collect();
        let reads = stream::iter(nonces).map(|nonce| async move {
            let key = self.reader_key(&nonce);
            match self.backend().read(&key, KIND.max_object()).await {
                Ok(bytes) => {
                    let note = ReaderNote::decode(self.crypt(), &nonce, &bytes);
                    Ok(Some((nonce, note.ok())))
                }
                Err(fault) if fault.kind() == FaultKind::NotFound => Ok(None),
                Err(fault) if fault.kind() == FaultKind::Foreign => Ok(Some((nonce, None))),
                Err(fault) => Err(fault),
            }
        });
        let found: Vec<Option<_>> = reads.buffered(READS).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Digest;
    use crate::crypt::tests::crypt;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_note_comes_back(who in ".{0,40}", renewed in any::<u64>(), names in prop::collection::vec("[0-9a-f-]{1,60}", 0..5)) {
            let reads = names.into_iter().map(|name| ManifestRef { name, digest: Digest([7; 32]), length: 9 }).collect();
            let note = ReaderNote { who, renewed: UnixMillis(renewed), reads };
            let (reader, other) = (Nonce([1; 16]), Nonce([2; 16]));
            for crypt in [Crypt::PLAIN, crypt(1, "job")] {
                let bytes = note.encode(&crypt, &reader).unwrap();
                prop_assert_eq!(&ReaderNote::decode(&crypt, &reader, &bytes).unwrap(), &note);
                prop_assert_eq!(ReaderNote::decode(&crypt, &other, &bytes).is_ok(), crypt.keys().is_none());
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let reader = Nonce([1; 16]);
            let _ = ReaderNote::decode(&Crypt::PLAIN, &reader, &bytes);
            let _ = ReaderNote::decode(&Crypt::PLAIN, &reader, &envelope::seal(&KIND, &bytes).unwrap());
        }
    }

    #[test]
    fn of_too_many_manifests_the_first_ones_are_noted() {
        let named = |number: u64| {
            let digest = Digest::of(&number.to_le_bytes());
            ManifestRef {
                name: format!("{number:020}-{}", hex::encode(&digest.as_bytes()[..8])),
                digest,
                length: number,
            }
        };
        for (count, all) in [(0, true), (1, true), (1000, true), (60_000, false)] {
            let reads: Vec<ManifestRef> = (0..count).map(named).collect();
            let mut note = ReaderNote {
                who: "verify".into(),
                renewed: UnixMillis(1),
                reads: reads.clone(),
            };
            let (reader, crypt) = (Nonce([1; 16]), crypt(1, "job"));
            let (bytes, left_out) = note.encode_what_fits(&crypt, &reader).unwrap();
            assert!(bytes.len() as u64 <= KIND.max_object());
            assert_eq!(left_out == 0, all, "{count}: {left_out}");
            let found = ReaderNote::decode(&crypt, &reader, &bytes).unwrap().reads;
            assert_eq!(found, reads[..reads.len() - left_out]);
            assert!(all || found.len() > 10_000, "{}", found.len());
            // Renewed at any time, it fits as well.
            note.renewed = UnixMillis(u64::MAX);
            note.encode(&crypt, &reader).unwrap();
        }
    }

    #[test]
    fn an_hour_off_either_way_is_too_much() {
        let note = ReaderNote {
            who: String::new(),
            renewed: UnixMillis(10 * STALE_MS),
            reads: Vec::new(),
        };
        for (now, counts) in [(10, true), (11, true), (9, true), (12, false), (8, false)] {
            assert_eq!(note.counts(UnixMillis(now * STALE_MS)), counts, "at {now}");
        }
    }
}
