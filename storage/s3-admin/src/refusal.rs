//! Refused requests, sorted by what they mean for a setting.

use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use phos_storage::one_line;

use crate::settings::{Look, Outcome};

/// A refused request, sorted.
pub(crate) struct Refused {
    pub kind: RefusedKind,
    /// The server's answer, in one line.
    pub detail: String,
    /// The region in which the server says that the bucket is.
    pub region: Option<String>,
}

/// Codes of status 404 that say that there is no such setting, or no such bucket. An answer without a body is "NotFound".
const NOTHING_SET: [&str; 6] = [
    "NotFound",
    "NoSuchBucket",
    "NoSuchLifecycleConfiguration",
    "ObjectLockConfigurationNotFoundError",
    "ObjectLockConfigurationNotFound",
    "ServerSideEncryptionConfigurationNotFoundError",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusedKind {
    /// What was asked for is not set, or the bucket is not there.
    NotFound,
    Unsupported,
    Denied,
    Permanent,
    Transient,
}

impl<E: ProvideErrorMetadata + std::error::Error + 'static> From<SdkError<E, HttpResponse>>
    for Refused
{
    fn from(error: SdkError<E, HttpResponse>) -> Self {
        let status = error.raw_response().map(|r| r.status().as_u16());
        let header = |name| {
            let response = error.raw_response()?;
            response.headers().get(name).map(str::to_owned)
        };
        let region = header("x-amz-bucket-region");
        let code = error.code().unwrap_or_default().to_owned();
        let kind = match (&*code, status) {
            ("NotImplemented" | "XNotImplemented" | "MethodNotAllowed", _)
            | (_, Some(405 | 501)) => RefusedKind::Unsupported,
            (_, Some(401 | 403)) => RefusedKind::Denied,
            (code, Some(404)) if NOTHING_SET.contains(&code) => RefusedKind::NotFound,
            // Not what such a server says where nothing is set: nothing is to be overwritten on the strength of it.
            (_, Some(404)) => RefusedKind::Permanent,
            (_, Some(400..=499)) => RefusedKind::Permanent,
            (_, Some(300..=399)) => RefusedKind::Permanent,
            _ => RefusedKind::Transient,
        };
        let mut detail = match (error.code(), error.message(), status) {
            (Some(code), Some(message), _) => format!("{code}: {message}"),
            (Some(code), None, _) => code.to_owned(),
            (None, _, Some(status)) if !(200..300).contains(&status) => format!("status {status}"),
            (None, _, _) => {
                let mut text = error.to_string();
                let mut next = std::error::Error::source(&error);
                while let Some(cause) = next {
                    text = format!("{text}: {cause}");
                    next = cause.source();
                }
                text
            }
        };
        detail = one_line(&detail);
        Self {
            kind,
            detail,
            region,
        }
    }
}

impl Refused {
    /// As the look at a setting which is `absent` where the server knows of none.
    pub(crate) fn look<T>(self, absent: T, permission: &'static str) -> Look<T> {
        match self.kind {
            RefusedKind::NotFound => Look::Known(absent),
            RefusedKind::Unsupported => Look::Unsupported,
            RefusedKind::Denied => Look::Denied(permission),
            _ => Look::Failed(self.detail),
        }
    }

    pub(crate) fn outcome(self, permission: &'static str) -> Outcome {
        match self.kind {
            RefusedKind::Unsupported => Outcome::Unsupported,
            RefusedKind::Denied => Outcome::Denied(permission),
            _ => Outcome::Failed(self.detail),
        }
    }
}

/// The body of an answer that was a success and could not be understood.
pub(crate) fn unread<E>(error: &SdkError<E, HttpResponse>) -> Option<String> {
    let answer = error
        .raw_response()
        .filter(|answer| answer.status().is_success())?;
    Some(String::from_utf8_lossy(answer.body().bytes()?).into_owned())
}
