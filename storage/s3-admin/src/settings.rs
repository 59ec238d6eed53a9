//! The settings of a bucket: how they are, how they are asked to be, and what became of each.

/// What was learnt of one setting: its value, or why it is not known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look<T> {
    /// The setting has this value.
    Known(T),
    /// The server does not have this setting.
    Unsupported,
    /// The credentials do not allow asking; the permission that is missing.
    Denied(&'static str),
    /// The request failed: what the server said.
    Failed(String),
}

/// Whether old versions of objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioning {
    /// No versions are kept, and never were.
    Off,
    /// Versions are kept.
    On,
    /// Versions were kept, and those of that time still exist.
    Suspended,
}

/// The retention that Object Lock gives to new objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// GOVERNANCE or COMPLIANCE.
    pub mode: String,
    /// How long new objects are retained, in days.
    pub days: u32,
}

/// How new objects are encrypted at the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encryption {
    /// AES256, aws:kms or aws:kms:dsse.
    pub algorithm: String,
    /// The key's id, ARN or alias; `None`: the service's own.
    pub key: Option<String>,
}

/// How a bucket is set, as far as a store below a prefix is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketState {
    /// Days after which incomplete uploads end.
    pub uploads_end: Look<Option<u32>>,
    /// Days after which versions that were replaced or deleted go.
    pub old_versions_go: Look<Option<u32>>,
    /// Whether old versions of objects are kept.
    pub versioning: Look<Versioning>,
    /// Object Lock: `None` is off; on without a default retention is `Some(None)`.
    pub object_lock: Look<Option<Option<Retention>>>,
    /// Default encryption.
    pub encryption: Look<Option<Encryption>>,
}

/// The settings that are asked of a bucket; what is not asked is left as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketSetup {
    /// Make the bucket if it is not there.
    pub create: bool,
    /// End incomplete uploads below the prefix after so many days.
    pub uploads_end: Option<u32>,
    /// Keep versions of objects.
    pub versioning: bool,
    /// Delete versions below the prefix that were replaced or deleted so many days ago.
    pub old_versions_go: Option<u32>,
    /// Object Lock with a default retention of so many days (GOVERNANCE).
    pub object_lock: Option<u32>,
    /// Default encryption with this key of the key management service.
    pub sse_kms_key: Option<String>,
}

/// Whether a bucket is set, or only what would be done is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupMode {
    /// Settings are changed.
    Apply,
    /// Nothing is changed: it is only said what would be done.
    DryRun,
}

/// The result for one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was asked of the setting: it is as it was.
    Left,
    /// The setting was as asked, or stricter.
    AsAsked,
    /// The setting was changed to what was asked.
    Changed,
    /// It would be changed, had this not been a dry run.
    WouldChange,
    /// The server does not have this setting.
    Unsupported,
    /// The credentials do not allow it; the permission that is missing.
    Denied(&'static str),
    /// The change was refused: what the server said.
    Failed(String),
}

/// One setting of a bucket and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupLine {
    /// The name of the setting, for people.
    pub setting: &'static str,
    /// Whether it is for the whole bucket, and not for the prefix alone.
    pub whole_bucket: bool,
    /// The value that was found, in words.
    pub was: String,
    /// How it was asked to be; `None`: nothing was.
    pub asked: Option<String>,
    /// What became of the setting.
    pub outcome: Outcome,
}

impl BucketState {
    pub(crate) fn of_a_new_one() -> Self {
        Self {
            uploads_end: Look::Known(None),
            old_versions_go: Look::Known(None),
            versioning: Look::Known(Versioning::Off),
            object_lock: Look::Known(None),
            encryption: Look::Known(None),
        }
    }
}

/// Decides what is to be done about one setting, by what it is and what is asked of it.
pub(crate) fn judge<A, T>(
    asked: Option<&A>,
    is: &Look<T>,
    mode: SetupMode,
    fulfilled: impl Fn(&A, &T) -> bool,
) -> Outcome {
    let Some(asked) = asked else {
        return Outcome::Left;
    };
    match is {
        Look::Known(is) if fulfilled(asked, is) => Outcome::AsAsked,
        Look::Known(_) => match mode {
            SetupMode::DryRun => Outcome::WouldChange,
            SetupMode::Apply => Outcome::Changed,
        },
        Look::Unsupported => Outcome::Unsupported,
        Look::Denied(permission) => Outcome::Denied(permission),
        Look::Failed(detail) => Outcome::Failed(detail.clone()),
    }
}

pub(crate) fn shown<T>(look: &Look<T>, show: impl Fn(&T) -> String) -> String {
    match look {
        Look::Known(is) => show(is),
        Look::Unsupported => "not known to this server".into(),
        Look::Denied(permission) => format!("may not be asked: needs {permission}"),
        Look::Failed(detail) => format!("cannot be asked: {detail}"),
    }
}

pub(crate) fn after(days: Option<u32>, never: &str, verb: &str) -> String {
    match days {
        None => never.into(),
        Some(1) => format!("{verb} after 1 day"),
        Some(days) => format!("{verb} after {days} days"),
    }
}

pub(crate) fn lock_shown(lock: Option<&Option<Retention>>) -> String {
    match lock {
        None => "off".into(),
        Some(None) => "on, no default retention".into(),
        Some(Some(Retention { mode, days })) => format!("{mode}, {days} days"),
    }
}

impl std::fmt::Display for Versioning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Suspended => "suspended",
        })
    }
}

impl std::fmt::Display for Encryption {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.algorithm)?;
        self.key
            .as_ref()
            .map_or(Ok(()), |key| write!(f, " with {key}"))
    }
}
