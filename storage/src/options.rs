//! How a store is used: what its caller decides once, and what a caller may hook in.

use std::sync::Arc;

use futures::future::BoxFuture;

use crate::cache::PackCache;
use crate::codec::{EncodingPolicy, PlainZstd};
use crate::crypt::Key;
use crate::names::NonceSource;
use crate::retry::RetryPolicy;
use crate::s3::S3Options;

/// How a store is used. The defaults suit one node with a fast link.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// How often, and after which waits, failed requests are sent again.
    pub retry: RetryPolicy,
    /// Bytes at which a pack is closed and uploaded. Between 1 and 4096 chunks of GPU memory make sense.
    pub pack_size: u64,
    /// Objects of more than these bytes go up in parts of this size, or of 5 MiB with a pacer if that is less. S3 asks for
    /// at least 5 MiB.
    pub part_size: usize,
    /// Packs being uploaded at once. With the one being filled they bound a writer's memory:
    /// `(uploads + 1) * pack_size + encoders * 2 * 4 MiB`, and at most two slabs of 4 MiB more for each pack.
    pub uploads: usize,
    /// Chunks being checked and encoded at once.
    pub encoders: usize,
    /// Decides how chunks are encoded.
    pub encoding: Arc<dyn EncodingPolicy>,
    /// What holds packs, and all else of more than 64 KiB, back so that others have their share of the link; `None`:
    /// nothing does.
    pub pacer: Option<Arc<dyn Pacer>>,
    /// What jobs are encrypted with; `None`: they are not. A job keeps what it was begun with.
    pub encryption: Option<Key>,
    /// How objects are written to S3: storage class, encryption, checksums.
    pub s3: S3Options,
    /// Copies of packs on this machine, nearest first, where a reader looks before it asks the store.
    pub caches: Vec<Arc<PackCache>>,
    /// Ranges being fetched at once by a reader. With `fetch_size` they bound a reader's memory:
    /// `(3 * fetches + 2) * fetch_size`: what was read, what it was decoded to, and what is being handed out.
    pub fetches: usize,
    /// The most bytes that one range request asks for.
    pub fetch_size: u64,
    /// Newest checkpoints whose chunks are known and not stored again.
    pub indexed_checkpoints: usize,
    /// Where the nonces of writers and readers come from.
    pub nonces: NonceSource,
    /// Where digests are computed and chunks encoded and decoded.
    pub compute: Compute,
}

/// Asked before each part of a pack or of another large object is sent.
pub trait Pacer: Send + Sync + std::fmt::Debug {
    /// Returns when so many bytes may be sent.
    fn take(&self, bytes: u64) -> BoxFuture<'_, ()>;
}

/// Where work that needs a processor is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compute {
    /// On the runtime's threads that may block.
    #[default]
    Threads,
    /// Where it is asked for, so that a simulation of one thread is the same in each run.
    Inline,
}

impl Compute {
    /// Does some work; an error says why its thread ended.
    pub(crate) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        match self {
            Self::Inline => Ok(work()),
            Self::Threads => tokio::task::spawn_blocking(work)
                .await
                .map_err(|error| error.to_string()),
        }
    }
}

impl StoreOptions {
    /// The defaults, with this source of nonces.
    #[must_use]
    pub fn new(nonces: NonceSource) -> Self {
        Self {
            retry: RetryPolicy::default(),
            // So that full ones have 64 MiB: they are closed before a chunk (4 MiB at most) that would be too much.
            pack_size: 68 << 20,
            part_size: 8 << 20,
            uploads: 4,
            encoders: std::thread::available_parallelism()
                .map_or(4, std::num::NonZero::get)
                .min(16),
            encoding: Arc::new(PlainZstd { level: 1 }),
            pacer: None,
            encryption: None,
            s3: S3Options::default(),
            caches: Vec::new(),
            fetches: 8,
            fetch_size: 8 << 20,
            indexed_checkpoints: 3,
            nonces,
            compute: Compute::Threads,
        }
    }
}
