//! Whether a job belongs to the key that its store was opened with.
//!
//! A job keeps its key from the first record to the last, so its beginning tells. Nothing is written before that is known.

use std::sync::atomic::Ordering;

use async_recursion::async_recursion as boxed;

use super::{Job, JobError};
use crate::crypt::JobKeys;
use crate::envelope::{self, Sealing};
use crate::fault::{FaultKind, StoreFault};
use crate::head::{self, HeadRecord, READS};

impl Job {
    /// Whether the job can be read and written with the key that the store was opened with, or without one. Nothing is
    /// written. A job without a history takes any.
    ///
    /// # Errors
    /// A fault of the kind [`FaultKind::Key`], which says what to do; or a request failed.
    #[boxed]
    pub async fn check_key(&self) -> Result<(), JobError> {
        self.record_numbers().await?;
        Ok(())
    }

    /// A job keeps its key from the first record to the last, so its beginning tells: a caller with another key is refused before
    /// anything is written. One record that opens with the caller's key proves that the job belongs to it; then those that do not
    /// open are damage.
    pub(super) async fn check_key_of(&self, numbers: &[u64]) -> Result<(), StoreFault> {
        if self.inner.key_fits.load(Ordering::Relaxed) {
            return Ok(());
        }
        let mut refused: Option<StoreFault> = None;
        for &number in numbers.iter().take(READS) {
            let key = self.record_key(number);
            let read = self.backend().read(&key, head::KIND.max_object()).await;
            let bytes = match read {
                Ok(bytes) => bytes,
                Err(fault) if matches!(fault.kind(), FaultKind::NotFound | FaultKind::Foreign) => {
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let sealing = envelope::sealing(&head::KIND, &bytes);
            let fits = match (sealing, self.crypt().keys()) {
                (Sealing::Unknown, _) => continue,
                (Sealing::Plain, keys) => keys.is_none(),
                (Sealing::Sealed(id), Some(keys)) if id == keys.id() => {
                    if HeadRecord::decode(self.crypt(), number, &bytes).is_err() {
                        continue;
                    }
                    true
                }
                (Sealing::Sealed(_), _) => false,
            };
            if fits {
                self.inner.key_fits.store(true, Ordering::Relaxed);
                return Ok(());
            }
            let fault = self.wrong_key(&key, sealing);
            if self.crypt().keys().is_none() {
                return Err(fault);
            }
            refused.get_or_insert(fault);
        }
        refused.map_or(Ok(()), Err)
    }

    /// The key does not fit a job that begins with a record like this.
    fn wrong_key(&self, key: &str, sealing: Sealing) -> StoreFault {
        let job = self.name();
        let given = self.crypt().keys().map(JobKeys::id);
        let detail = match (sealing, given) {
            (Sealing::Sealed(id), None) => format!(
                "job {job} is encrypted with key {id}: give the key file that it was begun with, with \
                 --encryption-key-file FILE"
            ),
            (Sealing::Sealed(id), Some(given)) => format!(
                "job {job} is encrypted with key {id} and the file given is key {given}: give the key file that it was \
                 begun with, with --encryption-key-file FILE"
            ),
            (Sealing::Plain | Sealing::Unknown, _) => format!(
                "job {job} was begun without encryption and a key is given: to begin to encrypt, take another --job; if \
                 this job was encrypted until now, its store was tampered with"
            ),
        };
        StoreFault::with_kind("read", key, FaultKind::Key, detail)
    }
}
