//! Which kind of fault an error of the object store is.

use std::io;

use object_store::client::{HttpError, HttpErrorKind};

use super::{CredentialsError, FaultKind, NotAFile};

pub(super) fn classify(error: &object_store::Error) -> FaultKind {
    use object_store::Error;
    match error {
        Error::NotFound { .. } => FaultKind::NotFound,
        Error::AlreadyExists { .. } | Error::Precondition { .. } => FaultKind::AlreadyExists,
        Error::PermissionDenied { source, .. } => denied(&source.to_string()),
        Error::Unauthenticated { .. } => FaultKind::Unauthenticated,
        Error::NotSupported { .. } | Error::NotImplemented { .. } => FaultKind::Unsupported,
        Error::InvalidPath { .. }
        | Error::UnknownConfigurationKey { .. }
        | Error::NotModified { .. } => FaultKind::Invalid,
        Error::JoinError { .. } => FaultKind::Transient,
        other => from_chain(other),
    }
}

/// The lack of credentials that a request met before it was sent.
pub(super) fn credentials_of<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a CredentialsError> {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(credentials) = current.downcast_ref() {
            return Some(credentials);
        }
        next = current.source();
    }
    None
}

fn from_chain(error: &(dyn std::error::Error + 'static)) -> FaultKind {
    if let Some(credentials) = credentials_of(error) {
        return match credentials.is_permanent() {
            true => FaultKind::Unauthenticated,
            false => FaultKind::Transient,
        };
    }
    // Without credentials in the environment the clouds' metadata service is asked; outside a cloud nobody answers.
    if error.to_string().contains("169.254.169.254") {
        return FaultKind::Unauthenticated;
    }
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(http) = current.downcast_ref::<HttpError>() {
            return match http.kind() {
                HttpErrorKind::Decode => FaultKind::Transient,
                HttpErrorKind::Unknown => from_text(&error.to_string()),
                _ => FaultKind::Transient,
            };
        }
        if current.is::<NotAFile>() {
            return FaultKind::Foreign;
        }
        // Of an error with another one in it, `source` is that one's own.
        if let Some(io) = current.downcast_ref::<io::Error>()
            && io.get_ref().is_some_and(|inner| inner.is::<NotAFile>())
        {
            return FaultKind::Foreign;
        }
        if let Some(io) = current.downcast_ref::<io::Error>()
            && let Some(kind) = from_io(io)
        {
            return kind;
        }
        next = current.source();
    }
    from_text(&error.to_string())
}

/// Whether a request was given up, here or by the server, because it took too long.
pub(super) fn is_time_out(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(current) = next {
        if let Some(http) = current.downcast_ref::<HttpError>() {
            return http.kind() == HttpErrorKind::Timeout;
        }
        if let Some(io) = current.downcast_ref::<io::Error>()
            && io.kind() == io::ErrorKind::TimedOut
        {
            return true;
        }
        next = current.source();
    }
    let text = error.to_string();
    // The second is what S3 says, with 400.
    text.contains("status code: 408") || text.contains("<Code>RequestTimeout</Code>")
}

fn from_io(error: &io::Error) -> Option<FaultKind> {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Some(FaultKind::NoSpace),
        io::ErrorKind::ReadOnlyFilesystem => Some(FaultKind::ReadOnly),
        io::ErrorKind::PermissionDenied => Some(FaultKind::Denied),
        io::ErrorKind::NotFound => Some(FaultKind::NotFound),
        io::ErrorKind::Unsupported => Some(FaultKind::Unsupported),
        io::ErrorKind::FileTooLarge
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory => Some(FaultKind::Invalid),
        _ => None,
    }
}

/// What the server says of the reason for a refusal. The codes are those of S3 (and what speaks like it), of Google Cloud
/// Storage's XML API and of Azure.
fn denied(text: &str) -> FaultKind {
    let says = |codes: &[&str]| codes.iter().any(|code| text.contains(code));
    if says(&["RequestTimeTooSkewed", "Request date header too old"]) {
        FaultKind::Clock
    } else if says(&["QuotaExceeded", "StorageFull"]) {
        FaultKind::NoSpace
    } else if says(&[
        "ExpiredToken",
        "InvalidToken",
        "TokenRefreshRequired",
        "InvalidAccessKeyId",
        "SignatureDoesNotMatch",
        "AuthenticationFailed",
    ]) {
        FaultKind::Unauthenticated
    } else {
        FaultKind::Denied
    }
}

/// Each of several deletions in one request is answered with a code of its own: S3's is a word, Azure's a status.
fn from_code(code: &str) -> FaultKind {
    match code {
        "AccessDenied" | "AccountProblem" | "AllAccessDisabled" | "403" => FaultKind::Denied,
        "401" => FaultKind::Unauthenticated,
        "NoSuchKey" | "NoSuchBucket" | "404" => FaultKind::NotFound,
        "MethodNotAllowed" | "NotImplemented" | "405" | "501" => FaultKind::Unsupported,
        // InternalError, SlowDown, 500, 503 and what nobody has met yet.
        _ => FaultKind::Transient,
    }
}

/// The library keeps the status of a refused request in a private type, so its text is what can be asked.
fn from_text(text: &str) -> FaultKind {
    const STATUS: &str = "status code: ";
    const CODE: &str = "(code: ";
    if let Some(at) = text.find(STATUS) {
        let code: String = text[at + STATUS.len()..]
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        return match code.parse::<u16>() {
            Ok(401) => FaultKind::Unauthenticated,
            Ok(403) => denied(text),
            Ok(404) => FaultKind::NotFound,
            // Time-out, conflict, too early, throttled.
            Ok(408 | 409 | 425 | 429) => FaultKind::Transient,
            // How S3 refuses what it does not have, such as a checksum.
            Ok(501) => FaultKind::Unsupported,
            Ok(507) => FaultKind::NoSpace,
            Ok(400) if text.contains("Expired") || text.contains("InvalidToken") => {
                FaultKind::Unauthenticated
            }
            // S3 says so when a body arrived too slowly or damaged.
            Ok(400) if text.contains("RequestTimeout") || text.contains("BadDigest") => {
                FaultKind::Transient
            }
            Ok(400..=499) => FaultKind::Invalid,
            _ => FaultKind::Transient,
        };
    }
    if let Some(at) = text.rfind(CODE) {
        let code = text[at + CODE.len()..].split(')').next();
        return from_code(code.unwrap_or_default());
    }
    if text.contains("redirect without LOCATION")
        || text.contains("Missing") && text.contains("redential")
    {
        return FaultKind::Invalid;
    }
    FaultKind::Transient
}
