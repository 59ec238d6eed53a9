//! What a program remembers of a job's history, so that a store that is away is told from one that is empty.
//!
//! A directory whose file system is not mounted, a bucket behind another endpoint or a copy from last week look like a store
//! that never had the job, or had less of it. Who has seen a history asks for it by its identity and its length; as long as
//! the store does not show both, every look at the log fails with [`FaultKind::Absent`], which is transient: to be waited for.
//!
//! # Consistency
//!
//! The identity is the nonce of the first record, which is never deleted and never changed. It is read with every listing of the
//! log, not once: what is mounted may change while the process lives. Before a record is appended without a listing, the identity
//! and the record before it are looked at, and after it the identity again; so a record that went into another store than the
//! one before it is never taken for a commit.

use std::fmt;
use std::str::FromStr;
use std::sync::PoisonError;

use crate::fault::{FaultKind, StoreFault};
use crate::job::{Job, JobError};
use crate::names::Nonce;

/// Identity of a history: another one for each that was ever begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryId(Nonce);

impl fmt::Display for HistoryId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for HistoryId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut bytes = [0; 16];
        hex::decode_to_slice(text, &mut bytes)
            .map_err(|_| format!("{text:?} is not the identity of a history"))?;
        Ok(Self(Nonce(bytes)))
    }
}

/// A history as it was seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Which one.
    pub id: HistoryId,
    /// Number of its newest record, at least.
    pub tail: u64,
}

impl Job {
    /// From here on, only a store that shows this history counts; `None`: any. Clones of the handle share it.
    pub fn expect(&self, known: Option<Known>) {
        *self
            .inner
            .expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = known;
    }

    /// What is expected, as far as it was seen to grow since.
    #[must_use]
    pub fn expected(&self) -> Option<Known> {
        *self
            .inner
            .expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The history as it is in the store now; `None` if there is none, or its first record cannot be understood.
    ///
    /// # Errors
    /// A request failed, or it is not the one that is expected.
    pub async fn known(&self) -> Result<Option<Known>, JobError> {
        let numbers = self.record_numbers().await?;
        let Some(&tail) = numbers.last() else {
            return Ok(None);
        };
        let first = self.first().await?;
        Ok(first.and_then(Result::ok).map(|id| Known { id, tail }))
    }

    /// Records of the expected history were seen up to this one.
    pub(crate) fn grew(&self, tail: u64) {
        let mut expected = self
            .inner
            .expected
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = &mut *expected {
            known.tail = known.tail.max(tail);
        }
    }

    /// Fails unless a log whose newest record is `tail` is that of the expected history.
    pub(crate) async fn check_expected(&self, tail: u64) -> Result<(), StoreFault> {
        let Some(expected) = self.expected() else {
            return Ok(());
        };
        if tail < expected.tail {
            return Err(self.absent(match tail {
                0 => format!(
                    "history {} with {} records was seen there, and there is nothing",
                    expected.id, expected.tail
                ),
                tail => format!(
                    "{} records of history {} were seen there, and there are {tail}: it is another store, or an older copy",
                    expected.tail, expected.id
                ),
            }));
        }
        match self.first().await? {
            Some(Ok(id)) if id != expected.id => Err(self.absent(format!(
                "history {} was seen there, and there is history {id}",
                expected.id
            ))),
            None => Err(self.absent(format!(
                "history {} was seen there, and its first record is missing",
                expected.id
            ))),
            // Damage is no sign of another store.
            Some(_) => {
                self.grew(tail);
                Ok(())
            }
        }
    }

    /// Fails unless these are the records of the expected history. The newest that was seen must be among them: a greater number
    /// alone may be a record that went astray into an older copy.
    pub(crate) async fn check_expected_among(&self, numbers: &[u64]) -> Result<(), StoreFault> {
        let tail = numbers.last().copied().unwrap_or(0);
        if let Some(expected) = self.expected()
            && tail > expected.tail
            && numbers.binary_search(&expected.tail).is_err()
        {
            return Err(self.absent(format!(
                "record {} of history {} was seen there, and is missing: it is an older copy",
                expected.tail, expected.id
            )));
        }
        self.check_expected(tail).await
    }

    /// The same without a listing: `tail` is the newest record as far as is remembered, and must be there.
    pub(crate) async fn check_expected_with(&self, tail: u64) -> Result<(), StoreFault> {
        let Some(expected) = self.expected() else {
            return Ok(());
        };
        if tail > 1 && self.find_record(tail).await?.is_none() {
            return Err(self.absent(format!(
                "record {tail} of history {} was seen there, and is missing",
                expected.id
            )));
        }
        self.check_expected(expected.tail.max(tail)).await
    }

    /// The identity by the first record, or why that cannot be understood; `None`: there is none.
    async fn first(&self) -> Result<Option<Result<HistoryId, String>>, StoreFault> {
        let first = self.find_record(1).await?;
        Ok(first.map(|record| record.map(|record| HistoryId(record.nonce))))
    }

    /// A bucket or directory that is gone, with a history that was there.
    pub(crate) fn absent_if_known(&self, fault: StoreFault) -> StoreFault {
        match (fault.kind(), self.expected()) {
            (FaultKind::NotFound, Some(expected)) => self.absent(format!(
                "history {} was seen there, and: {fault}",
                expected.id
            )),
            _ => fault,
        }
    }

    fn absent(&self, detail: String) -> StoreFault {
        // What was read last may be of the other one.
        self.set_index(None);
        if let Ok(mut log) = self.inner.log.try_lock() {
            *log = None;
        }
        let key = format!("the history of job {}", self.name());
        StoreFault::with_kind("find", key, FaultKind::Absent, detail)
    }
}
