//! The lease of a job: a sign of life of the node that has it.
//!
//! ```text
//! jobs/<job>/lease    one small object, replaced by the holder several times in each length of the lease
//! ```
//!
//! # What it is for
//!
//! A node that starts takes its job over, and thereby fences the node that had it. If that node is well, the job loses what it
//! did since its last checkpoint, and two nodes that are both started again whenever they end take it from each other for ever.
//! So a node that starts looks at the lease first, and waits while it is renewed.
//!
//! # What it is not
//!
//! It says nothing about who may write or what is visible: the log alone does (`head`), whatever clocks and pauses do. A lease
//! that cannot be written or read, that is damaged or was written by a node that lost the job, costs time or comfort, never a
//! checkpoint. A node that waits measures by its own clock how long the lease did not change; the time in it is for people, and
//! for recognising old leases that were put back. In an encrypted job it is sealed like everything else, and what cannot be
//! opened is not a lease.

use std::time::Duration;

use async_recursion::async_recursion as boxed;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::crypt::Crypt;
use crate::envelope::{self, EnvelopeError, Kind, SEALED_VERSION};
use crate::fault::FaultKind;
use crate::job::{Job, JobError};
use crate::medium::Medium;
use crate::names::{Epoch, UnixMillis};

pub(crate) const KIND: Kind = Kind {
    what: "lease",
    magic: *b"PHOSLEAS",
    version: 1,
    sealed: SEALED_VERSION,
    max_stored: 4 << 10,
    max_plain: 4 << 10,
};
const PLACE: &str = "lease";

/// See the module's documentation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The epoch in which the holder has the job.
    pub epoch: Epoch,
    /// Who holds the lease, in words for people.
    pub holder: String,
    /// The machine that the holder runs on, as it calls itself: what starts there again does not wait for itself.
    pub node: String,
    /// A number that changes each time the lease is renewed.
    pub beat: u64,
    /// When it was renewed, by the holder's clock; for people.
    pub renewed: UnixMillis,
    /// How long it holds without being renewed, in milliseconds.
    pub length_ms: u64,
    /// The holder gave it up: nobody needs to wait.
    pub released: bool,
}

impl Lease {
    /// How long it holds without being renewed.
    #[must_use]
    pub const fn length(&self) -> Duration {
        Duration::from_millis(self.length_ms)
    }

    pub(crate) fn encode(&self, crypt: &Crypt) -> Result<Bytes, EnvelopeError> {
        let payload = envelope::to_cbor(KIND.what, self)?;
        Ok(envelope::seal_in(crypt, PLACE, &KIND, &payload)?.into())
    }

    pub(crate) fn decode(crypt: &Crypt, object: &[u8]) -> Result<Self, EnvelopeError> {
        let (_version, payload) = envelope::open_in(crypt, PLACE, &KIND, object)?;
        envelope::from_cbor(KIND.what, &payload)
    }
}

impl Job {
    /// The lease as it stands; `None` if there is none, or it cannot be understood.
    ///
    /// # Errors
    /// A request failed.
    #[boxed]
    pub async fn lease(&self) -> Result<Option<Lease>, JobError> {
        let key = self.key(PLACE);
        let read = self
            .backend()
            .read_checked(&key, KIND.max_object(), |bytes| {
                Lease::decode(self.crypt(), bytes)
            });
        match read.await {
            Ok(Ok(lease)) => Ok(Some(lease)),
            Ok(Err(error)) => {
                tracing::warn!(%error, "who has the job cannot be read from its lease");
                Ok(None)
            }
            Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                Ok(None)
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// Renews the lease, unless another node took the job over.
    ///
    /// # Errors
    /// [`JobError::Fenced`], and nothing was written; or a request failed.
    #[boxed]
    pub async fn renew_lease(&self, lease: &Lease) -> Result<(), JobError> {
        self.still_has(lease.epoch).await?;
        if self.backend().medium() == Medium::Discard {
            return Ok(());
        }
        let bytes = lease.encode(self.crypt())?;
        Ok(self.backend().write(&self.key(PLACE), bytes).await?)
    }

    /// Whether an epoch is still in force, with as few requests as that takes: one, while nothing happens.
    ///
    /// # Errors
    /// [`JobError::Fenced`]; or a request failed.
    #[boxed]
    pub async fn still_has(&self, epoch: Epoch) -> Result<(), JobError> {
        // Whoever holds the log appends a record, and finds out by that.
        let Ok(seen) = self.inner.log.try_lock().map(|log| *log) else {
            return Ok(());
        };
        let mut now = match seen {
            Some(seen) => seen,
            None => self.read_log().await?,
        };
        self.check_expected_with(now.tail).await?;
        for (number, record) in self.records_after(now.tail).await? {
            now.tail = number;
            now.epoch = record.ok().map(|record| record.epoch);
        }
        if let Ok(mut log) = self.inner.log.try_lock()
            && log.is_none_or(|log| log.tail < now.tail)
        {
            *log = Some(now);
        }
        // What stands behind a record that cannot be read is for the next commit to find out.
        if now.epoch.is_some_and(|other| other != epoch) {
            return Err(self.fenced(epoch, now.tail).await);
        }
        Ok(())
    }
}
