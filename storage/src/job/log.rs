//! A job's log: reading its records, and the one place where records are appended.
//!
//! # Consistency
//!
//! What a handle remembers of the log is only a hint of where to try next: a conditional write decides, and a writer that loses
//! reads the log again. Numbers ascend by one, and a record belongs to the epoch in force, or begins one.
//!
//! # Cancellation
//!
//! A dropped future of [`Job::append`] leaves it open whether the record stands. What is remembered of the log is
//! forgotten before the record is created, so the next look reads it from the store.

use async_recursion::async_recursion as boxed;
use futures::{StreamExt, TryStreamExt, stream};

use super::{Job, JobError};
use crate::backend::Created;
use crate::fault::{FaultKind, StoreFault};
use crate::head::{self, HeadRecord, READS, RecordKind};
use crate::names::{Epoch, Nonce, UnixMillis};

/// The hint that a handle keeps of where the log ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Log {
    /// Number of the newest record; 0 if there is none.
    pub tail: u64,
    /// Its epoch; `None` if there is no record or it is damaged.
    pub epoch: Option<Epoch>,
}

/// What an append goes by until another record is met.
#[derive(Debug, Clone, Copy)]
pub(crate) enum LogView {
    /// What the handle remembers, if it remembers anything. That the store still shows that history is checked.
    Remembered,
    /// The log was listed just now.
    Listed,
    /// What the caller has read just now. That the store still shows that history is checked.
    Seen(Log),
}

/// A record to be appended. Its number follows from the log.
#[derive(Debug)]
pub(crate) struct Draft {
    /// The epoch in force or, of a take-over, the one that it begins.
    pub epoch: Epoch,
    pub created: UnixMillis,
    pub nonce: Nonce,
    pub kind: RecordKind,
}

/// Something that is to be appended to the log as a record.
pub(crate) trait Append: Send {
    /// Why nothing is appended.
    type Error: From<StoreFault> + Send;

    /// The record that follows a log, or why none does. Asked again, with the newer log, whenever another record was
    /// appended first.
    fn next(&mut self, seen: Log) -> impl Future<Output = Result<Draft, Self::Error>> + Send;
}

/// Why a record was not appended to the log.
#[derive(Debug)]
pub(crate) enum AppendError<E> {
    /// Nothing was tried: the log could not be read, or the caller does not want to append to this one.
    NotTried(E),
    /// The creation of the record failed: it may stand there or not.
    Unknown(JobError),
}

impl<E: From<JobError>> AppendError<E> {
    /// The cause, for a caller that makes no difference between the two.
    pub(crate) fn into_cause(self) -> E {
        match self {
            Self::NotTried(error) => error,
            Self::Unknown(error) => error.into(),
        }
    }
}

/// How an attempt to create a record ended.
enum Appended {
    Done,
    /// Another record stands at that number.
    Lost,
}

/// A record, or why it cannot be read.
pub(crate) type ReadRecord = Result<HeadRecord, String>;

impl Job {
    pub(super) fn record_key(&self, number: u64) -> String {
        self.key(&head::place(number))
    }

    /// Numbers of all records, oldest first.
    pub(crate) async fn record_numbers(&self) -> Result<Vec<u64>, StoreFault> {
        let expected = self.expected();
        let numbers = self.listed_numbers().await?;
        self.check_key_of(&numbers).await?;
        self.check_expected_among(expected, &numbers).await?;
        Ok(numbers)
    }

    /// The numbers of the log's records, whatever history is there.
    pub(crate) async fn listed_numbers(&self) -> Result<Vec<u64>, StoreFault> {
        let listed = self.backend().list(&self.key("head")).await;
        let listed = listed.map_err(|fault| self.absent_if_known(fault))?;
        let mut numbers: Vec<u64> = listed
            .iter()
            .filter_map(|object| head::parse_record_name(&object.name))
            .filter(|&n| n > 0)
            .collect();
        numbers.sort_unstable();
        Ok(numbers)
    }

    pub(crate) async fn record(&self, number: u64) -> Result<ReadRecord, StoreFault> {
        let found = self.find_record(number).await?;
        Ok(found.unwrap_or_else(|| Err(format!("record {number} is missing"))))
    }

    /// The record of a number, if there is one.
    pub(crate) async fn find_record(&self, number: u64) -> Result<Option<ReadRecord>, StoreFault> {
        let key = self.record_key(number);
        let read = (self.backend()).read_checked(&key, head::KIND.max_object(), |bytes| {
            HeadRecord::decode(self.crypt(), number, bytes).map_err(|error| error.to_string())
        });
        match read.await {
            Ok(record) => Ok(Some(record)),
            Err(fault) if fault.kind() == FaultKind::NotFound => Ok(None),
            Err(fault) if fault.kind() == FaultKind::Foreign => Ok(Some(Err(fault.to_string()))),
            Err(fault) => Err(fault),
        }
    }

    /// How far the log goes, by a listing of now.
    pub(crate) async fn read_log(&self) -> Result<Log, StoreFault> {
        let Some(tail) = self.record_numbers().await?.last().copied() else {
            return Ok(Log {
                tail: 0,
                epoch: None,
            });
        };
        let epoch = self.record(tail).await?.ok().map(|record| record.epoch);
        if epoch.is_none() {
            // Damaged, or the store was exchanged after the listing.
            self.check_expected_with(tail).await?;
        }
        Ok(Log { tail, epoch })
    }

    /// Appends a record to the log, as the newest, whatever others append meanwhile. Clones of the handle wait for each
    /// other.
    pub(crate) async fn append<A: Append>(
        &self,
        view: LogView,
        what: &mut A,
    ) -> Result<HeadRecord, AppendError<A::Error>> {
        let not_tried = |fault: StoreFault| AppendError::NotTried(fault.into());
        let mut log = self.inner.log.lock().await;
        match view {
            LogView::Remembered => {}
            LogView::Listed => *log = None,
            LogView::Seen(seen) => *log = Some(seen),
        }
        loop {
            let seen = match *log {
                Some(seen) => seen,
                None => self.read_log().await.map_err(not_tried)?,
            };
            *log = None;
            // A listing has checked that.
            if !matches!(view, LogView::Listed) {
                let checked = self.check_expected_with(seen.tail).await;
                checked.map_err(not_tried)?;
            }
            *log = Some(seen);
            let draft = what.next(seen).await.map_err(AppendError::NotTried)?;
            let record = draft.after(seen);
            // From here until the answer is known, nothing remembered of the log can be relied on.
            *log = None;
            match (self.create_record(&record).await).map_err(AppendError::Unknown)? {
                Appended::Done => {
                    *log = Some(Log {
                        tail: record.number,
                        epoch: Some(record.epoch),
                    });
                    return Ok(record);
                }
                Appended::Lost => {}
            }
        }
    }

    /// Tries to create a record. Its number must be one more than that of the newest record seen.
    async fn create_record(&self, record: &HeadRecord) -> Result<Appended, JobError> {
        let key = self.record_key(record.number);
        if record.number > head::MOST_RECORDS {
            let detail = format!(
                "a record stands before it that phos-ft did not write: delete {}",
                self.record_key(record.number - 1)
            );
            return Err(StoreFault::with_kind("create", key, FaultKind::Invalid, detail).into());
        }
        let bytes = record.encode(self.crypt())?;
        let expected = self.expected();
        match self
            .backend()
            .create(&key, bytes, head::KIND.max_object())
            .await?
        {
            Created::Done => {
                // Where the store was exchanged meanwhile, it stands in another one, or in an older copy.
                self.refuse_regrown(expected, record.number)?;
                self.check_expected_with(record.number - 1).await?;
                self.grew(record.number);
                Ok(Appended::Done)
            }
            Created::Taken(_) => Ok(Appended::Lost),
        }
    }

    /// Whether there are records after `tail`. What was named there and is gone may have been collected or repacked since:
    /// who finds something missing asks this before calling it damage, and looks again.
    pub(crate) async fn grew_beyond(&self, tail: u64) -> Result<bool, StoreFault> {
        Ok(self.find_record(tail + 1).await?.is_some())
    }

    /// The records after `tail`, oldest first. As no record is ever deleted, the first number without one is the end.
    pub(crate) async fn records_after(
        &self,
        tail: u64,
    ) -> Result<Vec<(u64, ReadRecord)>, StoreFault> {
        let mut records = Vec::new();
        let mut number = tail + 1;
        while let Some(record) = self.find_record(number).await? {
            records.push((number, record));
            number += 1;
        }
        Ok(records)
    }

    /// All records of the log, oldest first, each as read or with the reason why it cannot be.
    #[boxed]
    pub async fn records(&self) -> Result<Vec<(u64, Result<HeadRecord, String>)>, JobError> {
        let numbers = self.record_numbers().await?;
        let reads = stream::iter(numbers)
            .map(|number| async move { Ok((number, self.record(number).await?)) });
        reads.buffered(READS).try_collect().await
    }
}

impl Draft {
    /// The record that follows a log as it was seen.
    fn after(self, seen: Log) -> HeadRecord {
        let Self {
            epoch,
            created,
            nonce,
            kind,
        } = self;
        let number = seen.tail + 1;
        match kind {
            RecordKind::TakenOver { .. } => {
                assert_eq!(
                    epoch.0, number,
                    "a take-over begins the epoch of its number"
                );
            }
            _ => assert_eq!(
                Some(epoch),
                seen.epoch,
                "record {number} is to be of an epoch that is not in force"
            ),
        }
        HeadRecord {
            number,
            epoch,
            created,
            nonce,
            kind,
        }
    }
}
