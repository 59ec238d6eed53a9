//! The one place where it is decided how often and how soon a failed request is tried again.
//!
//! The object store's client retries single HTTP requests itself (5xx, connection errors) within the bounds set here; around it,
//! whole operations are retried: a body that broke off, a multipart upload of which one part failed, a directory on a network
//! file system. A permanent fault ([`StoreFault::is_permanent`]) is never tried again.

use std::future::Future;
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder, Retryable};
use object_store::{BackoffConfig, RetryConfig};

use crate::fault::StoreFault;

/// How often and how soon a failed request is tried again.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// Attempts after the first.
    pub retries: usize,
    /// Wait before the second attempt; it doubles from there.
    pub base: Duration,
    /// Longest wait between two attempts.
    pub cap: Duration,
    /// Time after which the client gives up a single HTTP request, with all that it sent, and its retries: long enough for
    /// a part over a slow link. A connection that is not made is given up after seconds.
    pub request_timeout: Duration,
    /// Seed of the jitter that keeps many nodes from retrying in step.
    pub jitter_seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            retries: 4,
            base: Duration::from_millis(250),
            cap: Duration::from_secs(8),
            request_timeout: Duration::from_secs(180),
            jitter_seed: 0,
        }
    }
}

impl RetryPolicy {
    /// No waiting and no client-side retries: for tests.
    #[must_use]
    pub fn immediate(retries: usize) -> Self {
        Self {
            retries,
            base: Duration::ZERO,
            cap: Duration::ZERO,
            request_timeout: Duration::from_secs(5),
            jitter_seed: 0,
        }
    }

    fn backoff(&self) -> impl BackoffBuilder {
        ExponentialBuilder::default()
            .with_min_delay(self.base)
            .with_max_delay(self.cap)
            .with_max_times(self.retries)
            .with_jitter_seed(self.jitter_seed)
            .with_jitter()
    }

    /// The bounds of the client's own retries.
    pub(crate) fn client(&self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig {
                init_backoff: self.base.max(Duration::from_millis(1)),
                max_backoff: self.cap.max(Duration::from_millis(2)),
                base: 2.0,
            },
            max_retries: self.retries,
            retry_timeout: self.request_timeout,
        }
    }

    /// Runs `attempt` until it succeeds, fails for good, or has been tried often enough.
    pub(crate) async fn run<T, F, Fut>(&self, attempt: F) -> Result<T, StoreFault>
    where
        F: FnMut() -> Fut,
        Fut: Future<Output = Result<T, StoreFault>>,
    {
        attempt
            .retry(self.backoff())
            .when(|fault| !fault.is_permanent())
            .notify(|fault, wait| tracing::debug!(%fault, ?wait, "trying again"))
            .await
    }
}
