//! What went wrong in a request to the store: sorted once, here, into what the caller must do about it.

mod classify;
mod credentials;

use std::fmt;
use std::sync::Arc;

use self::classify::{classify, credentials_of, is_time_out};
pub use self::credentials::CredentialsError;

/// The kind of a fault, by what the caller must do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FaultKind {
    /// The object, bucket or directory does not exist.
    NotFound,
    /// An object of that name exists already.
    AlreadyExists,
    /// The credentials do not allow the request.
    Denied,
    /// The credentials are missing, wrong or expired.
    Unauthenticated,
    /// The store refuses requests that are dated so: this machine's clock is wrong.
    Clock,
    /// The medium that the store is on is full.
    NoSpace,
    /// The medium that the store is on is mounted read-only.
    ReadOnly,
    /// The job is encrypted with another key than the one given, or with none.
    Key,
    /// The store lacks an operation that the request needs.
    Unsupported,
    /// The store refused the request as malformed, or the configuration is wrong.
    Invalid,
    /// What is there is nothing that phos-ft wrote: larger than all of that, or no regular file. As good as damaged.
    Foreign,
    /// The job had a history there, and the store shows none, another or a shorter one.
    Absent,
    /// Time-outs, resets, 5xx, throttling: another attempt may succeed.
    Transient,
}

impl FaultKind {
    /// What happened and what to do about it, as the middle of a sentence.
    const fn remedy(self) -> &'static str {
        match self {
            Self::NotFound => {
                "it does not exist (check the bucket, container or directory in --store)"
            }
            Self::AlreadyExists => "it exists already",
            Self::Denied => {
                "permission denied (allow reading, writing, listing and deleting there)"
            }
            Self::Unauthenticated => "the credentials are missing, wrong or expired (renew them)",
            Self::Clock => {
                "this machine's clock is wrong, and the store refuses what it signs (set the clock, by NTP)"
            }
            Self::NoSpace => {
                "no space left (free some, raise the quota, or point --store elsewhere)"
            }
            Self::ReadOnly => {
                "the file system is read-only (remount it writable or point --store elsewhere)"
            }
            Self::Key => "the encryption key does not fit",
            Self::Unsupported => "the store does not support this operation (use another one)",
            Self::Invalid => {
                "the store refused the request (check the address and options of --store)"
            }
            Self::Foreign => "it is nothing that phos-ft wrote there, and was not read",
            Self::Absent => {
                "the store does not have it now (mount its file system or correct --store; to do without it for good, give \
                 --start-fresh)"
            }
            Self::Transient => "the store did not answer as it should (will be tried again)",
        }
    }
}

/// A failed request to the store: what was done to which object, what kind of fault it met, and the cause.
#[derive(Clone)]
pub struct StoreFault {
    inner: Arc<Inner>,
}

struct Inner {
    action: &'static str,
    key: String,
    kind: FaultKind,
    detail: String,
    timed_out: bool,
}

/// The remedy for a write that took too long.
const TOO_SLOW: &str = "the store did not take it in time (will be tried again, one part after the \
    other; if the link is slow, give --upload-limit less than it carries)";

/// What is said of something strange on the way to where an object is to be written or deleted.
const IN_THE_WAY: &str = "what phos-ft did not put there is in the way";

impl StoreFault {
    /// Sorts an error of the object store. `action` is a verb: "read", "write".
    pub(crate) fn new(
        action: &'static str,
        key: impl Into<String>,
        error: &object_store::Error,
    ) -> Self {
        // Its message is ours, and its end is the remedy: it is not cut off.
        let detail = match credentials_of(error) {
            Some(credentials) => credentials.to_string(),
            None => one_line(&error.to_string()),
        };
        let kind = classify(error);
        Self {
            inner: Arc::new(Inner {
                action,
                key: key.into(),
                kind,
                detail,
                timed_out: kind == FaultKind::Transient && is_time_out(error),
            }),
        }
    }

    pub(crate) fn with_kind(
        action: &'static str,
        key: impl Into<String>,
        kind: FaultKind,
        detail: String,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                action,
                key: key.into(),
                kind,
                detail,
                timed_out: false,
            }),
        }
    }

    /// The kind of the fault.
    #[must_use]
    pub fn kind(&self) -> FaultKind {
        self.inner.kind
    }

    /// The key of the object that the request was about.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.inner.key
    }

    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(self.inner.kind, FaultKind::Transient | FaultKind::Absent)
    }

    /// Whether the request was given up because it took too long.
    pub(crate) fn timed_out(&self) -> bool {
        self.inner.timed_out
    }
}

impl fmt::Display for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner {
            action,
            key,
            kind,
            detail,
            timed_out,
        } = &*self.inner;
        let remedy = match (*kind, *action) {
            (_, "write") if *timed_out => TOO_SLOW,
            (FaultKind::Foreign, "write" | "create" | "delete") => IN_THE_WAY,
            _ => kind.remedy(),
        };
        write!(f, "cannot {action} {key}: {remedy}: {detail}")
    }
}

impl fmt::Debug for StoreFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreFault({:?}: {self})", self.inner.kind)
    }
}

impl std::error::Error for StoreFault {}

/// Messages of servers come as pages of XML: one line of at most 400 bytes is enough to know them again.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(400));
    for word in text.split_whitespace() {
        if line.len() + word.len() > 400 {
            line.push('…');
            break;
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// The index of a pack could not be encrypted, which only happens without memory.
pub(crate) fn sealing_failed(key: &str) -> StoreFault {
    let detail = "its index cannot be encrypted".to_owned();
    StoreFault::with_kind("write", key, FaultKind::Transient, detail)
}

/// What has the name of an object or of a directory on the way to one, and is none.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotAFile {
    #[error("{name} is {kind}, which is not read")]
    Object { name: String, kind: &'static str },
    #[error(
        "{name} is {kind}, which is not followed: put a directory in its place (a mount, if what is in it has to lie elsewhere)"
    )]
    Way { name: String, kind: &'static str },
}

#[cfg(test)]
mod tests {
    use std::io;

    use object_store::client::{HttpError, HttpErrorKind};

    use super::*;

    fn generic(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> object_store::Error {
        object_store::Error::Generic {
            store: "S3",
            source: source.into(),
        }
    }

    #[test]
    fn permanent_and_transient_are_told_apart() {
        let status = |code: u16| {
            generic(format!(
                "Server returned non-2xx status code: {code} Some Text: body"
            ))
        };
        for (error, kind) in [
            (status(500), FaultKind::Transient),
            (status(503), FaultKind::Transient),
            (status(429), FaultKind::Transient),
            (status(400), FaultKind::Invalid),
            (status(403), FaultKind::Denied),
            (status(501), FaultKind::Unsupported),
            (
                generic(io::Error::from(io::ErrorKind::StorageFull)),
                FaultKind::NoSpace,
            ),
            (
                generic(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)),
                FaultKind::ReadOnly,
            ),
            (
                generic(io::Error::from(io::ErrorKind::ConnectionReset)),
                FaultKind::Transient,
            ),
            (
                generic(io::Error::from(io::ErrorKind::TimedOut)),
                FaultKind::Transient,
            ),
            (
                generic("status code: 400 Bad Request: <Code>ExpiredToken</Code>"),
                FaultKind::Unauthenticated,
            ),
            (
                generic(
                    "DeleteObjects request failed for key k: Access Denied (code: AccessDenied)",
                ),
                FaultKind::Denied,
            ),
            (
                generic("Bulk delete request failed for key k: Server Busy (code: 503)"),
                FaultKind::Transient,
            ),
            (
                generic("status code: 403 Forbidden: <Code>RequestTimeTooSkewed</Code>"),
                FaultKind::Clock,
            ),
            (
                generic("status code: 403 Forbidden: <Code>SignatureDoesNotMatch</Code>"),
                FaultKind::Unauthenticated,
            ),
            (
                generic("status code: 403 Forbidden: <Code>QuotaExceeded</Code>"),
                FaultKind::NoSpace,
            ),
        ] {
            let fault = StoreFault::new("write", "k", &error);
            assert_eq!(fault.kind(), kind, "{fault}");
            assert_eq!(fault.is_permanent(), kind != FaultKind::Transient);
        }
    }

    #[test]
    fn a_write_that_took_too_long_names_the_limit() {
        let late = generic(io::Error::from(io::ErrorKind::TimedOut));
        for (action, names_it) in [("write", true), ("read", false)] {
            let fault = StoreFault::new(action, "k", &late);
            assert!(fault.timed_out() && !fault.is_permanent(), "{fault}");
            let said = fault.to_string();
            assert_eq!(said.contains("--upload-limit"), names_it, "{said}");
        }
        let http = HttpError::new(
            HttpErrorKind::Timeout,
            io::Error::from(io::ErrorKind::Other),
        );
        assert!(StoreFault::new("write", "k", &generic(http)).timed_out());
        let by_server = generic("status code: 400 Bad Request: <Code>RequestTimeout</Code>");
        assert!(StoreFault::new("write", "k", &by_server).timed_out());
        let reset = generic(io::Error::from(io::ErrorKind::ConnectionReset));
        assert!(!StoreFault::new("write", "k", &reset).timed_out());
    }

    #[test]
    fn messages_are_one_bounded_line() {
        let fault = StoreFault::new("read", "jobs/a/head/1", &generic("a\nb ".repeat(1000)));
        let text = fault.to_string();
        assert!(!text.contains('\n') && text.len() < 700, "{text}");
        assert!(text.starts_with("cannot read jobs/a/head/1: "), "{text}");
    }
}
