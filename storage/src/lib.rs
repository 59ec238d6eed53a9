//! What is left of a job when everything else is gone: chunks, packs, manifests and the log that makes them visible.
//!
//! # Responsibility
//!
//! This crate writes checkpoints into an object store (a directory, S3, Google Cloud Storage, Azure) and reads them
//! back. It knows nothing of GPUs, processes or CRIU: the caller hands it chunks of memory by digest and a
//! [`ManifestBody`] that says what they were, and gets both back later, whole, or an error that says what is damaged.
//!
//! # Layers
//!
//! Each depends on those after it alone:
//!
//! * What is done with a history: `copy`, `writer`, `reader`, `collect`, `verify`.
//! * A job's history: `job`.
//! * A store: `store`, `probe`.
//! * Requests to it, and how they are made: `backend`, `options`, `s3`, `retry`, `fault`.
//!
//! What is stored (`manifest`, `pack`, `head`, `collection`, `envelope`, …) depends on none of them, and is used by all.
//!
//! # Consistency
//!
//! * A checkpoint is visible if and only if its record stands in the job's log (`head/<number>`). The record is
//!   created by a conditional write after all packs and the manifest are stored.
//! * The log is linear: number `n + 1` is only tried by a writer that saw that `n` is the newest, and conditional creation has
//!   one winner. Taking a job over writes a record into the same log, so a writer of an older epoch always meets it and is
//!   [fenced](CommitError::Fenced), however long it was paused.
//! * Every chunk is named by its BLAKE3 digest (keyed, if the job is encrypted) and checked when it is put and when it is fetched.
//!
//! # Crash consistency
//!
//! A process may die between any two requests. What it leaves is packs or a manifest that no record names: invisible,
//! and never in the way. Pack names are unique to a writer, so nothing is ever overwritten. What an unfinished checkpoint
//! stored is used by the next one (`leftovers`); only collections delete packs.
//!
//! # Cancellation
//!
//! Every future may be dropped. Dropping a [`CheckpointWriter`] stops its uploads and leaves nothing visible.
//! Dropping a future of [`CheckpointWriter::commit`] leaves the outcome open, as a crash would: look at
//! [`Job::state`].
//!
//! # Futures
//!
//! What callers await is boxed (`#[boxed]`). A plain `async fn` is compiled by each crate that polls it, in each of its codegen units,
//! with all that it awaits: the tests of this crate took ten minutes to build.
//!
//! # Retries
//!
//! Retries live in one module (`retry`) and are decided by [`StoreFault::is_permanent`] alone.
//!
//! # Time and randomness
//!
//! Times and nonces are passed in ([`UnixMillis`], [`NonceSource`]); nothing here reads a clock.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod backend;
mod branch;
mod cache;
mod chunk_list;
mod codec;
mod collect;
mod collection;
mod copy;
mod crypt;
mod diff;
mod digest;
mod envelope;
mod fault;
#[doc(hidden)]
pub mod fuzzing;
mod head;
mod index;
mod job;
mod manifest;
mod medium;
mod names;
mod options;
mod pack;
mod private;
mod probe;
mod reader;
mod retry;
pub mod s3;
mod secret;
mod store;
mod verify;
mod writer;

pub use cache::{PackCache, RoomCheck};
pub use chunk_list::ChunkList;
pub use codec::{Codec, Encoding, EncodingPolicy, PlainZstd, Pressure, Sample};
pub use collect::{
    Always, Candidate, Clock, CollectError, CollectOptions, Collected, GiveWay, Keep,
};
pub use copy::CopyError;
pub use crypt::{Key, KeyError, KeyId, Naming};
pub use diff::{AllocationDiff, Change, Diff, FileDiff};
pub use digest::Digest;
pub use envelope::EnvelopeError;
pub use fault::{FaultKind, StoreFault, one_line};
pub use head::{HeadRecord, RecordKind};
pub use job::{
    CheckpointSummary, Durability, HistoryId, Hold, Holder, Job, JobError, JobState, Known, Lease,
    Listing, RENEW_EVERY, Restorable, Rollback, SkippedCheckpoint, TakenOver,
};
pub use manifest::{
    Allocation, Body, ChunkEntry, Extent, FilePath, Gpu, GpuUuid, ImageFile, Manifest,
    ManifestBody, ManifestError, MemberId, PackEntry, Process, ProcessDevice, Timings,
};
pub use medium::{is_on_another_disk, is_remote};
pub use names::{
    CheckpointNumber, Epoch, JobName, JobNameError, Nonce, NonceSource, PackId, UnixMillis,
};
pub use options::{Compute, Pacer, StoreOptions};
pub use pack::{PackError, PackIndex, PackIndexEntry};
pub use probe::ProbeError;
pub use reader::{Batch, ReadError, Reader};
pub use retry::RetryPolicy;
pub use store::{OpenError, Store};
pub use verify::{DamagedPack, Verified, VerifyOptions, VerifyProgress};
pub use writer::{
    CheckpointWriter, Commit, CommitError, PutError, PutOutcome, Resumed, WriteStats,
};

/// Size in bytes of a chunk of GPU memory. The last chunk of an allocation may be shorter.
pub const CHUNK_SIZE: usize = 1 << 20;

/// Largest chunk in bytes that a store takes.
pub const MAX_CHUNK_SIZE: usize = 4 << 20;

/// Version of the layout of a store as a whole, as written in its `phos-format` object.
pub const STORE_FORMAT: u16 = 5;
