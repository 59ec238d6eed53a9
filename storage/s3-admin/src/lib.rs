//! Administration of S3 buckets: how a bucket is set, and setting it, for `phos-ft init` and `phos-ft doctor`.
//!
//! # Responsibility
//!
//! This crate handles what concerns a bucket as a whole: its lifecycle rules, versioning, Object Lock and default encryption. It
//! does not handle objects; they go through [`phos_storage`], which does not depend on it. [`phos_storage::s3::Connection`] says
//! how the bucket is reached, and with which credentials: both crates sign with the same ones.
//!
//! # Rules
//!
//! * Only what is asked for is changed, and nothing is weakened: a rule that ends uploads sooner, or a retention that is
//!   longer, stays as it is.
//! * The lifecycle of a bucket is one document, replaced as a whole: it is read, our rules are put in by their names, all
//!   others go back as they came. Where it cannot be read it is not written.
//! * Some servers that speak S3 lack some of this. The result names what is missing, and the rest is done.
//!
//! # Crash consistency and cancellation
//!
//! Each setting is one request. Whatever was set before a crash, or before a future was dropped, stays; setting the bucket
//! up again finds it as asked and does the rest.

mod administration;
mod lifecycle;
mod refusal;
mod set_up;
mod settings;

pub use administration::{Administration, BucketError};
pub use settings::{
    BucketSetup, BucketState, Encryption, Look, Outcome, Retention, SetupLine, SetupMode,
    Versioning,
};
