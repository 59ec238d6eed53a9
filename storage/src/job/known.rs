//! What a program remembers of a job's history, so that a store that is away is told from one that is empty.
//!
//! A directory whose file system is not mounted, a bucket behind another endpoint or a copy from last week look like a store that
//! never had the job, or had less of it. A program that has seen a history asks for it by its identity and its length; as long as
//! the store does not show both, every look at the log fails with [`FaultKind::Absent`], which is transient: to be waited for.
//!
//! # Consistency
//!
//! The identity is the nonce of the first record, which is never deleted and never changed. It is read with every listing of the
//! log, not once: what is mounted may change while the process lives. Before a record is appended without a listing, the identity
//! and the record before it are looked at, and after it the identity again; so a record that went into another store than the
//! one before it is never taken for a commit.
//!
//! Clones of a handle append while others look, and what is expected grows with each record. So a look is compared with what was expected when it
//! began.

use std::fmt;
use std::str::FromStr;
use std::sync::PoisonError;

use async_recursion::async_recursion as boxed;
use serde::{Serialize, Serializer};

use crate::fault::{FaultKind, StoreFault};
use crate::job::{Job, JobError};
use crate::names::Nonce;

/// Identity of a history: another one for each that was ever begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct HistoryId(Nonce);

impl Serialize for HistoryId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

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
    /// The identity of the history.
    pub id: HistoryId,
    /// Number of its newest record, at least.
    pub tail: u64,
}

/// A store shows less of a history than was seen of it, or another one: its log was taken back, or it is another store, an older
/// copy, or away.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Rollback {
    /// The history that was seen before.
    pub history: HistoryId,
    /// Number of its newest record that was seen.
    pub seen: u64,
    /// Number of the newest record that is there; 0: there is none.
    pub found: u64,
    /// The history that stands in its place, if it is another one.
    pub other: Option<HistoryId>,
    /// A record that was seen and is missing although a later one is there.
    pub missing: Option<u64>,
}

impl Rollback {
    /// Of a store that is not there at all.
    #[must_use]
    pub const fn of_nothing(known: Known) -> Self {
        Self {
            history: known.id,
            seen: known.tail,
            found: 0,
            other: None,
            missing: None,
        }
    }
}

impl fmt::Display for Rollback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            history,
            seen,
            found,
            ..
        } = self;
        write!(
            f,
            "history {history} was seen there up to record {seen}, and "
        )?;
        match (self.other, self.missing) {
            (Some(other), _) => write!(
                f,
                "history {other} up to record {found} is in its place: it is another store, or the job was begun anew there"
            ),
            (None, Some(missing)) => write!(
                f,
                "record {missing} is missing, though there are records up to {found}: its log was rolled back, or it is an older \
                 copy that was written to"
            ),
            (None, None) if *found == 0 => write!(f, "there is nothing"),
            (None, None) => write!(
                f,
                "there are records up to {found}: its log was rolled back, or it is an older copy"
            ),
        }
    }
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
    #[boxed]
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

    /// Whether the store shows less of a history than was seen of it, or another one; `None`: it shows all of it. For a caller
    /// that looks at what there is all the same, and says so; nothing is expected of the handle's store from here on that was not
    /// before.
    ///
    /// # Errors
    /// A request failed, or the key does not fit.
    #[boxed]
    pub async fn rollback(&self, known: Known) -> Result<Option<Rollback>, JobError> {
        let numbers = self.record_numbers().await?;
        Ok(self.compare_listed(known, &numbers).await?)
    }

    /// Fails unless these are the records of the history that was expected before they were listed: a record that a clone of the handle has appended since
    /// is expected by now, and not among them.
    pub(crate) async fn check_expected_among(
        &self,
        expected: Option<Known>,
        numbers: &[u64],
    ) -> Result<(), StoreFault> {
        let Some(expected) = expected else {
            return Ok(());
        };
        let rollback = self.compare_listed(expected, numbers).await?;
        self.expect_no(rollback, numbers.last().copied().unwrap_or(0))
    }

    /// The same without a listing: `tail` is the newest record as far as is remembered, and must be there.
    pub(crate) async fn check_expected_with(&self, tail: u64) -> Result<(), StoreFault> {
        let Some(expected) = self.expected() else {
            return Ok(());
        };
        let seen = Known {
            tail: expected.tail.max(tail),
            ..expected
        };
        // A clone may have appended beyond what the caller has seen: that must be there as well.
        if tail > 1 && self.find_record(seen.tail).await?.is_none() {
            let found = self.listed_numbers().await?.last().copied().unwrap_or(0);
            let missing = (found >= seen.tail).then_some(seen.tail);
            if let Some(rollback) = self.compare(seen, found, missing).await? {
                return Err(self.absent(rollback.to_string()));
            }
        }
        // Not with what is expected by now, of which this may be the beginning.
        let rollback = self.compare(seen, seen.tail, None).await?;
        self.expect_no(rollback, seen.tail)
    }

    /// What came of comparing a log whose newest record is `tail`.
    fn expect_no(&self, rollback: Option<Rollback>, tail: u64) -> Result<(), StoreFault> {
        match rollback {
            Some(rollback) => Err(self.absent(rollback.to_string())),
            None => {
                self.grew(tail);
                Ok(())
            }
        }
    }

    /// The newest record that was seen must be among them: a greater number alone may be a record that went astray into an older
    /// copy.
    async fn compare_listed(
        &self,
        known: Known,
        numbers: &[u64],
    ) -> Result<Option<Rollback>, StoreFault> {
        let tail = numbers.last().copied().unwrap_or(0);
        let strays = tail > known.tail && numbers.binary_search(&known.tail).is_err();
        self.compare(known, tail, strays.then_some(known.tail))
            .await
    }

    /// Compares with a history that was seen one whose newest record is `found`, and that lacks the record `missing`.
    async fn compare(
        &self,
        known: Known,
        found: u64,
        missing: Option<u64>,
    ) -> Result<Option<Rollback>, StoreFault> {
        let mut rollback = Rollback {
            missing,
            ..Rollback::of_nothing(known)
        };
        if found == 0 {
            return Ok(Some(rollback));
        }
        rollback.found = found;
        match self.first().await? {
            Some(Ok(id)) => rollback.other = (id != known.id).then_some(id),
            None => rollback.missing = Some(1),
            // Damage is no sign of another store.
            Some(Err(_)) => {}
        }
        let less = found < known.tail || rollback.missing.is_some() || rollback.other.is_some();
        Ok(less.then_some(rollback))
    }

    /// The identity by the first record, or why that cannot be understood; `None`: there is none.
    async fn first(&self) -> Result<Option<Result<HistoryId, String>>, StoreFault> {
        let first = self.find_record(1).await?;
        Ok(first.map(|record| record.map(|record| HistoryId(record.nonce))))
    }

    /// A record was created where one had been seen, by what was expected before.
    pub(crate) fn refuse_regrown(
        &self,
        expected: Option<Known>,
        number: u64,
    ) -> Result<(), StoreFault> {
        match expected {
            Some(known) if number <= known.tail => {
                let rollback = Rollback {
                    found: number - 1,
                    ..Rollback::of_nothing(known)
                };
                Err(self.absent(rollback.to_string()))
            }
            _ => Ok(()),
        }
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
