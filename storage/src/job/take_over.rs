//! Who has a job: taking it over, ending its run, and what the log says of its holders.
//!
//! # Consistency
//!
//! A take-over is a record like any other, and its number is the epoch from there on. A writer of an older epoch meets it,
//! however long it was paused, and is fenced.

use std::sync::atomic::Ordering;

use async_recursion::async_recursion as boxed;

use super::log::{Append, AppendError, Draft, Log, LogView};
use super::{Job, JobError};
use crate::head::{HeadRecord, READS, RecordKind};
use crate::names::{CheckpointNumber, Epoch, UnixMillis};

/// The result of a take-over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenOver {
    /// The epoch that begins with this take-over.
    pub epoch: Epoch,
    /// The epoch before this one; `None` if the job had none.
    pub previous: Option<Epoch>,
}

/// Who takes a job over, as the record of the take-over says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// For people: host and process. Of more than 200 characters the first ones are kept.
    pub name: String,
    /// The agent whose job it is: a number that no other agent has.
    pub agent: Option<u64>,
    /// The tier on the holder's machine, by its name.
    pub tier: Option<String>,
}

impl From<&str> for Holder {
    /// A holder that names neither agent nor tier.
    fn from(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            agent: None,
            tier: None,
        }
    }
}

impl From<&String> for Holder {
    fn from(name: &String) -> Self {
        name.as_str().into()
    }
}

impl Holder {
    /// The one that a record names, if it is that of a take-over.
    fn of(record: HeadRecord) -> Option<Self> {
        match record.kind {
            RecordKind::TakenOver {
                holder: name,
                agent,
                tier,
                ..
            } => Some(Self { name, agent, tier }),
            _ => None,
        }
    }
}

/// A take-over as it is appended to the log.
struct TakeOver<'a> {
    job: &'a Job,
    holder: &'a Holder,
    now: UnixMillis,
    after: Option<u64>,
    /// The epoch that the take-over ends; `None` if the job has none.
    previous: Option<Epoch>,
}

impl Append for TakeOver<'_> {
    type Error = JobError;

    async fn next(&mut self, seen: Log) -> Result<Draft, JobError> {
        self.previous = seen.epoch;
        Ok(Draft {
            epoch: Epoch(seen.tail + 1),
            created: self.now,
            nonce: self.job.nonce(),
            kind: RecordKind::TakenOver {
                holder: self.holder.name.chars().take(200).collect(),
                agent: self.holder.agent,
                tier: self.holder.tier.clone(),
                after: (self.after).filter(|&after| after < seen.tail || after == 0),
            },
        })
    }
}

/// The end of a job as it is appended to the log.
struct Completion<'a> {
    job: &'a Job,
    epoch: Epoch,
    exit_code: i32,
    now: UnixMillis,
}

impl Append for Completion<'_> {
    type Error = JobError;

    async fn next(&mut self, seen: Log) -> Result<Draft, JobError> {
        self.job.check_in_force(self.epoch, seen).await?;
        Ok(Draft {
            epoch: self.epoch,
            created: self.now,
            nonce: self.job.nonce(),
            kind: RecordKind::Completed {
                exit_code: self.exit_code,
            },
        })
    }
}

impl Job {
    /// Takes the job over: from here on all others are fenced.
    ///
    /// Safe whatever else is running. Every start of a sidecar takes its job over, also from its own dead self.
    pub async fn take_over(
        &self,
        holder: impl Into<Holder>,
        now: UnixMillis,
    ) -> Result<TakenOver, JobError> {
        self.take_over_after(&holder.into(), now, None).await
    }

    /// Takes the job over to continue from an older checkpoint than the newest: what was made after it is left behind, as a
    /// branch of its own. `None`: from the job's beginning.
    pub async fn take_over_from(
        &self,
        holder: impl Into<Holder>,
        now: UnixMillis,
        checkpoint: Option<CheckpointNumber>,
    ) -> Result<TakenOver, JobError> {
        let after = checkpoint.map_or(0, |number| number.0);
        self.take_over_after(&holder.into(), now, Some(after)).await
    }

    #[boxed]
    async fn take_over_after(
        &self,
        holder: &Holder,
        now: UnixMillis,
        after: Option<u64>,
    ) -> Result<TakenOver, JobError> {
        let mut record = TakeOver {
            job: self,
            holder,
            now,
            after,
            previous: None,
        };
        let appended = self.append(LogView::Listed, &mut record).await;
        let epoch = appended.map_err(AppendError::into_cause)?.epoch;
        // Others may have written since the index was read, or died over it.
        self.set_index(None);
        (self.inner.look_for_leftovers).store(true, Ordering::Relaxed);
        Ok(TakenOver {
            epoch,
            previous: record.previous,
        })
    }

    /// Notes that the job ended by itself, so that a later start begins afresh.
    #[boxed]
    pub async fn mark_completed(
        &self,
        epoch: Epoch,
        exit_code: i32,
        now: UnixMillis,
    ) -> Result<(), JobError> {
        let mut record = Completion {
            job: self,
            epoch,
            exit_code,
            now,
        };
        let appended = self.append(LogView::Remembered, &mut record).await;
        appended.map_err(AppendError::into_cause)?;
        Ok(())
    }

    /// Fails if the log, as it was seen, is not of this epoch.
    pub(crate) async fn check_in_force(&self, epoch: Epoch, seen: Log) -> Result<(), JobError> {
        match seen.epoch == Some(epoch) {
            true => Ok(()),
            false => Err(self.fenced(epoch, seen.tail).await),
        }
    }

    /// The error that an epoch is over, by a log whose newest record is `tail`.
    pub(crate) async fn fenced(&self, epoch: Epoch, tail: u64) -> JobError {
        JobError::Fenced {
            job: self.name().clone(),
            epoch,
            by: self.current_holder(tail).await,
        }
    }

    /// Who holds the job by a log whose newest record is `tail`, for a message (" by HOLDER"); never fails.
    async fn current_holder(&self, tail: u64) -> String {
        let mut number = tail;
        for _ in 0..READS {
            match self.record(number).await {
                Ok(Ok(HeadRecord {
                    kind: RecordKind::TakenOver { holder, .. },
                    ..
                })) => return format!(" by {holder}"),
                Ok(_) if number > 1 => number -= 1,
                _ => break,
            }
        }
        String::new()
    }

    /// Who began an epoch, as it said itself; `None` if there is no such record.
    #[boxed]
    pub async fn began_by(&self, epoch: Epoch) -> Result<Option<Holder>, JobError> {
        // An epoch has the number of the record that began it.
        let record = self.find_record(epoch.0).await?;
        Ok(record.and_then(Result::ok).and_then(Holder::of))
    }

    /// Who took the job over after the epoch `after`, up to the epoch `upto`, newest first; and why older ones of them
    /// are not known, if so: a record cannot be read, there are too many, or `after` is no epoch of this history.
    ///
    /// Two records are read for each one: every record says which epoch is in force, so that before a take-over says
    /// which one it ended.
    #[boxed]
    pub async fn holders_between(
        &self,
        after: Epoch,
        upto: Epoch,
    ) -> Result<(Vec<Holder>, Option<String>), JobError> {
        let mut holders = Vec::new();
        let mut epoch = upto;
        while epoch > after {
            if holders.len() == READS {
                let reason = format!("the job was taken over {READS} times since");
                return Ok((holders, Some(reason)));
            }
            match self.record(epoch.0).await?.map(Holder::of) {
                Ok(Some(holder)) => holders.push(holder),
                Ok(None) => {
                    let reason = format!("record {epoch} of the store is no take-over");
                    return Ok((holders, Some(reason)));
                }
                Err(reason) => {
                    let reason = format!("record {epoch} of the store cannot be read: {reason}");
                    return Ok((holders, Some(reason)));
                }
            }
            let before = epoch.0 - 1;
            epoch = match self.record(before).await? {
                Ok(record) => record.epoch,
                Err(reason) => {
                    let reason = format!("record {before} of the store cannot be read: {reason}");
                    return Ok((holders, Some(reason)));
                }
            };
        }
        let reason = (epoch != after).then(|| format!("epoch {after} is not in the store"));
        Ok((holders, reason))
    }
}
