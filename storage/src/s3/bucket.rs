//! What a bucket is set to, and setting it: for `phos-ft init` and `phos-ft doctor`. Nothing else in this crate depends
//! on it.
//!
//! * Only what is asked for is changed, and nothing is weakened: a rule that ends uploads sooner, or a retention that is
//!   longer, stays as it is.
//! * The lifecycle of a bucket is one document, replaced as a whole: it is read, our rules are put in by their names, all
//!   others go back as they came. Where it cannot be read it is not written.
//! * Servers that speak S3 lack some of this. What is missing is said and the rest is done.

use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Region, SharedCredentialsProvider};
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_s3::types::builders::LifecycleRuleBuilder;
use aws_sdk_s3::types::{
    AbortIncompleteMultipartUpload, BucketLifecycleConfiguration, BucketLocationConstraint,
    BucketVersioningStatus, CreateBucketConfiguration, DefaultRetention, ExpirationStatus,
    LifecycleExpiration, LifecycleRule, LifecycleRuleFilter, NoncurrentVersionExpiration,
    ObjectLockConfiguration, ObjectLockEnabled, ObjectLockRetentionMode, ObjectLockRule,
    ServerSideEncryption, ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration,
    ServerSideEncryptionRule, TransitionDefaultMinimumObjectSize, VersioningConfiguration,
};
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use url::Url;

use super::{Connection, CredentialsError, CredentialsInfo, S3Options};
use crate::fault::one_line;
use crate::retry::RetryPolicy;

/// Why a bucket cannot be looked at or set up at all.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The address or the configuration cannot be used.
    #[error("--store {address}: {detail}")]
    Address {
        /// The address.
        address: String,
        /// What is wrong with it.
        detail: String,
    },
    /// No credentials.
    #[error("--store {address}: {source}")]
    Credentials {
        /// The address.
        address: String,
        /// Why there are none.
        source: CredentialsError,
    },
    /// There is no such bucket.
    #[error(
        "there is no bucket {bucket}: correct --store, or let `phos-ft init … --create-bucket` make it"
    )]
    Missing {
        /// The bucket.
        bucket: String,
    },
    /// It is in another region.
    #[error(
        "the bucket {bucket} is in the region {region}, not in {used}: set AWS_REGION={region}"
    )]
    Elsewhere {
        /// The bucket.
        bucket: String,
        /// Its region.
        region: String,
        /// The region that was assumed.
        used: String,
    },
    /// A request failed.
    #[error("cannot {action} the bucket {bucket}: {detail}")]
    Request {
        /// What was asked.
        action: &'static str,
        /// The bucket.
        bucket: String,
        /// What the server said.
        detail: String,
        /// Whether the answer would be the same again.
        permanent: bool,
    },
}

impl BucketError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Credentials { source, .. } => source.is_permanent(),
            Self::Request { permanent, .. } => *permanent,
            _ => true,
        }
    }
}

/// What was learnt of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Look<T> {
    /// It is so.
    Known(T),
    /// The server does not have it.
    Unsupported,
    /// The credentials do not allow asking; the permission that is missing.
    Denied(&'static str),
    /// The request failed: what the server said.
    Failed(String),
}

/// Whether old versions of objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Versioning {
    /// Never was.
    Off,
    /// They are.
    On,
    /// They were, and what was kept then is there.
    Suspended,
}

/// What Object Lock does to new objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retention {
    /// GOVERNANCE or COMPLIANCE.
    pub mode: String,
    /// For how long.
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
    /// Versioning.
    pub versioning: Look<Versioning>,
    /// Object Lock: `None` is off; on without a default retention is `Some(None)`.
    pub object_lock: Look<Option<Option<Retention>>>,
    /// Default encryption.
    pub encryption: Look<Option<Encryption>>,
}

/// What is asked of a bucket.
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

/// What became of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was asked.
    Left,
    /// It was as asked, or stricter.
    AsAsked,
    /// It was changed.
    Changed,
    /// It would be changed, had this not been a dry run.
    WouldChange,
    /// The server does not have it.
    Unsupported,
    /// The credentials do not allow it; the permission that is missing.
    Denied(&'static str),
    /// It was refused: what the server said.
    Failed(String),
}

/// One setting of a bucket and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetupLine {
    /// Its name.
    pub setting: &'static str,
    /// Whether it is for the whole bucket, and not for the prefix alone.
    pub whole_bucket: bool,
    /// How it was.
    pub was: String,
    /// How it was asked to be; `None`: nothing was.
    pub asked: Option<String>,
    /// What became of it.
    pub outcome: Outcome,
}

/// The settings of a bucket.
pub struct Administration {
    client: Client,
    address: String,
    bucket: String,
    /// Ends with "/" unless it is empty.
    prefix: String,
    connection: Connection,
}

impl std::fmt::Debug for Administration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Administration({})", self.address)
    }
}

/// A refused request, sorted.
struct Refused {
    kind: RefusedKind,
    detail: String,
    /// Where the server says that the bucket is.
    region: Option<String>,
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
enum RefusedKind {
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
    fn look<T>(self, absent: T, permission: &'static str) -> Look<T> {
        match self.kind {
            RefusedKind::NotFound => Look::Known(absent),
            RefusedKind::Unsupported => Look::Unsupported,
            RefusedKind::Denied => Look::Denied(permission),
            _ => Look::Failed(self.detail),
        }
    }

    fn outcome(self, permission: &'static str) -> Outcome {
        match self.kind {
            RefusedKind::Unsupported => Outcome::Unsupported,
            RefusedKind::Denied => Outcome::Denied(permission),
            _ => Outcome::Failed(self.detail),
        }
    }
}

/// The lifecycle document, as far as it must come back as it was.
struct Lifecycle {
    rules: Vec<LifecycleRule>,
    smallest_moved: Option<TransitionDefaultMinimumObjectSize>,
}

impl Administration {
    /// `None` where the address is not of S3. Nothing is asked of the bucket yet.
    pub async fn connect(
        address: &str,
        retry: &RetryPolicy,
        options: &S3Options,
    ) -> Result<Option<Self>, BucketError> {
        if !(address.starts_with("s3://") || address.starts_with("s3a://")) {
            return Ok(None);
        }
        let invalid = |detail: String| BucketError::Address {
            address: address.to_owned(),
            detail,
        };
        let url = Url::parse(address).map_err(|error| invalid(error.to_string()))?;
        let bucket = url.host_str().filter(|host| !host.is_empty());
        let bucket = bucket
            .ok_or_else(|| invalid("it names no bucket, as in s3://bucket/prefix".into()))?
            .to_owned();
        let path = object_store::path::Path::from_url_path(url.path())
            .map_err(|error| invalid(error.to_string()))?;
        let mut prefix = path.to_string();
        if !prefix.is_empty() {
            prefix.push('/');
        }
        let connection = Connection::new(address, retry, options)
            .await
            .map_err(invalid)?;
        let client = connection.client(&bucket, retry);
        Ok(Some(Self {
            client,
            address: address.to_owned(),
            bucket,
            prefix,
            connection,
        }))
    }

    /// Region that requests are signed for.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.connection.region
    }

    /// The configured endpoint; `None`: AWS.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.connection.endpoint.as_deref()
    }

    /// Which credentials are used; `None`: none, requests are not signed.
    pub async fn credentials(&self) -> Result<Option<CredentialsInfo>, CredentialsError> {
        match &self.connection.credentials {
            Some(chain) => chain.info().await.map(Some),
            None => Ok(None),
        }
    }

    fn failed(&self, action: &'static str, refused: Refused) -> BucketError {
        BucketError::Request {
            action,
            bucket: self.bucket.clone(),
            permanent: refused.kind != RefusedKind::Transient,
            detail: refused.detail,
        }
    }

    /// Whether the bucket is there.
    async fn is_there(&self) -> Result<bool, BucketError> {
        let answer = self.client.head_bucket().bucket(&self.bucket).send().await;
        let refused = match answer {
            Ok(_) => return Ok(true),
            Err(error) => Refused::from(error),
        };
        match refused.region {
            Some(region)
                if region != self.connection.region && self.connection.endpoint.is_none() =>
            {
                return Err(BucketError::Elsewhere {
                    bucket: self.bucket.clone(),
                    region,
                    used: self.connection.region.clone(),
                });
            }
            _ => {}
        }
        match refused.kind {
            RefusedKind::NotFound => Ok(false),
            // Asking for it takes s3:ListBucket, without a condition on the prefix; the rest may be allowed.
            RefusedKind::Denied | RefusedKind::Unsupported => Ok(true),
            _ => Err(self.failed("reach", refused)),
        }
    }

    /// Looks at all settings; nothing is changed.
    pub async fn look(&self) -> Result<BucketState, BucketError> {
        self.check_credentials().await?;
        if !self.is_there().await? {
            return Err(BucketError::Missing {
                bucket: self.bucket.clone(),
            });
        }
        Ok(self.state(&self.lifecycle().await).await)
    }

    /// Before requests meet the lack of them one by one.
    async fn check_credentials(&self) -> Result<(), BucketError> {
        self.credentials()
            .await
            .map(drop)
            .map_err(|source| BucketError::Credentials {
                address: self.address.clone(),
                source,
            })
    }

    async fn state(&self, lifecycle: &Look<Lifecycle>) -> BucketState {
        let days = |of: fn(&LifecycleRule) -> Option<i32>| match lifecycle {
            Look::Known(lifecycle) => Look::Known(self.soonest(&lifecycle.rules, of)),
            Look::Unsupported => Look::Unsupported,
            Look::Denied(permission) => Look::Denied(permission),
            Look::Failed(detail) => Look::Failed(detail.clone()),
        };
        BucketState {
            uploads_end: days(uploads_end),
            old_versions_go: days(old_versions_go),
            versioning: self.versioning().await,
            object_lock: self.object_lock().await,
            encryption: self.encryption().await,
        }
    }

    /// The soonest that an enabled rule for all objects below the prefix does something.
    fn soonest(
        &self,
        rules: &[LifecycleRule],
        of: fn(&LifecycleRule) -> Option<i32>,
    ) -> Option<u32> {
        rules
            .iter()
            .filter(|rule| *rule.status() == ExpirationStatus::Enabled)
            .filter(|rule| covers(rule, &self.prefix))
            .filter_map(|rule| u32::try_from(of(rule)?).ok())
            .min()
    }

    async fn lifecycle(&self) -> Look<Lifecycle> {
        let answer = self
            .client
            .get_bucket_lifecycle_configuration()
            .bucket(&self.bucket)
            .send()
            .await;
        match answer {
            Ok(found) => Look::Known(Lifecycle {
                smallest_moved: found.transition_default_minimum_object_size().cloned(),
                rules: found.rules.unwrap_or_default(),
            }),
            Err(error) => Refused::from(error).look(
                Lifecycle {
                    rules: Vec::new(),
                    smallest_moved: None,
                },
                "s3:GetLifecycleConfiguration",
            ),
        }
    }

    async fn versioning(&self) -> Look<Versioning> {
        let answer = self
            .client
            .get_bucket_versioning()
            .bucket(&self.bucket)
            .send()
            .await;
        match answer {
            Ok(found) => Look::Known(match found.status() {
                Some(BucketVersioningStatus::Enabled) => Versioning::On,
                Some(_) => Versioning::Suspended,
                None => Versioning::Off,
            }),
            Err(error) => match unread(&error) {
                // Some servers call the document's root by another name.
                Some(answer) if answer.contains("<Status>Enabled<") => Look::Known(Versioning::On),
                Some(answer) if answer.contains("<Status>") => Look::Known(Versioning::Suspended),
                Some(_) => Look::Known(Versioning::Off),
                None => Refused::from(error).look(Versioning::Off, "s3:GetBucketVersioning"),
            },
        }
    }

    async fn object_lock(&self) -> Look<Option<Option<Retention>>> {
        let answer = self
            .client
            .get_object_lock_configuration()
            .bucket(&self.bucket)
            .send()
            .await;
        match answer {
            Ok(found) => {
                let found = found.object_lock_configuration();
                let on = found.and_then(|c| c.object_lock_enabled())
                    == Some(&ObjectLockEnabled::Enabled);
                let default = found.and_then(|c| c.rule()?.default_retention());
                let retention = default.and_then(|default| {
                    let days = default.days().filter(|days| *days > 0);
                    let days = days.or_else(|| default.years()?.checked_mul(365))?;
                    Some(Retention {
                        mode: default.mode()?.as_str().to_owned(),
                        days: u32::try_from(days).ok()?,
                    })
                });
                Look::Known(on.then_some(retention))
            }
            Err(error) => Refused::from(error).look(None, "s3:GetBucketObjectLockConfiguration"),
        }
    }

    async fn encryption(&self) -> Look<Option<Encryption>> {
        let answer = self
            .client
            .get_bucket_encryption()
            .bucket(&self.bucket)
            .send()
            .await;
        match answer {
            Ok(found) => {
                let rules = found
                    .server_side_encryption_configuration()
                    .map(|c| c.rules());
                let default = rules.and_then(|rules| {
                    rules
                        .iter()
                        .find_map(|rule| rule.apply_server_side_encryption_by_default())
                });
                Look::Known(default.map(|default| Encryption {
                    algorithm: default.sse_algorithm().as_str().to_owned(),
                    key: default.kms_master_key_id().map(str::to_owned),
                }))
            }
            Err(error) => Refused::from(error).look(None, "s3:GetEncryptionConfiguration"),
        }
    }

    /// Sets the bucket as asked, or says what would be done. Settings are independent: one that is refused does not keep
    /// the others from being set.
    pub async fn set_up(
        &self,
        setup: &BucketSetup,
        dry_run: bool,
    ) -> Result<Vec<SetupLine>, BucketError> {
        self.check_credentials().await?;
        let mut lines = Vec::new();
        let there = self.is_there().await?;
        if !there && !setup.create {
            return Err(BucketError::Missing {
                bucket: self.bucket.clone(),
            });
        }
        if !there && !dry_run {
            self.create(setup.object_lock.is_some()).await?;
        }
        lines.push(SetupLine {
            setting: "bucket",
            whole_bucket: true,
            was: if there { "there" } else { "not there" }.into(),
            asked: setup.create.then(|| "there".into()),
            outcome: match (there, dry_run) {
                (true, _) if setup.create => Outcome::AsAsked,
                (true, _) => Outcome::Left,
                (false, true) => Outcome::WouldChange,
                (false, false) => Outcome::Changed,
            },
        });
        let (lifecycle, state) = if !there && dry_run {
            (Look::Known(Lifecycle::none()), BucketState::of_a_new_one())
        } else {
            let lifecycle = self.lifecycle().await;
            let state = self.state(&lifecycle).await;
            (lifecycle, state)
        };
        lines.extend(self.set_lifecycle(setup, lifecycle, &state, dry_run).await);
        // Object Lock needs versions.
        lines.push(self.set_versioning(setup, &state, dry_run).await);
        lines.push(self.set_object_lock(setup, &state, dry_run).await);
        lines.push(self.set_encryption(setup, &state, dry_run).await);
        Ok(lines)
    }

    async fn create(&self, object_lock: bool) -> Result<(), BucketError> {
        let mut request = self.client.create_bucket().bucket(&self.bucket);
        let region = &self.connection.region;
        if region != super::DEFAULT_REGION {
            request = request.create_bucket_configuration(
                CreateBucketConfiguration::builder()
                    .location_constraint(BucketLocationConstraint::from(region.as_str()))
                    .build(),
            );
        }
        if object_lock {
            request = request.object_lock_enabled_for_bucket(true);
        }
        match request.send().await {
            Ok(_) => Ok(()),
            // Another did the same just now.
            Err(error) if error.code() == Some("BucketAlreadyOwnedByYou") => Ok(()),
            Err(error) => Err(self.failed("create", error.into())),
        }
    }

    /// Both of our rules in one write.
    async fn set_lifecycle(
        &self,
        setup: &BucketSetup,
        lifecycle: Look<Lifecycle>,
        state: &BucketState,
        dry_run: bool,
    ) -> Vec<SetupLine> {
        let mut lines = [
            SetupLine {
                setting: "incomplete uploads",
                whole_bucket: false,
                was: shown(&state.uploads_end, |days| {
                    after(*days, "stay for ever", "end")
                }),
                asked: setup.uploads_end.map(|days| after(Some(days), "", "end")),
                outcome: judge(
                    setup.uploads_end.as_ref(),
                    &state.uploads_end,
                    dry_run,
                    |asked, is| is.is_some_and(|is| is <= *asked),
                ),
            },
            SetupLine {
                setting: "old versions",
                whole_bucket: false,
                was: shown(&state.old_versions_go, |days| {
                    after(*days, "stay for ever", "go")
                }),
                asked: setup
                    .old_versions_go
                    .map(|days| after(Some(days), "", "go")),
                outcome: judge(
                    setup.old_versions_go.as_ref(),
                    &state.old_versions_go,
                    dry_run,
                    |asked, is| is.is_some_and(|is| is <= *asked),
                ),
            },
        ];
        let Look::Known(mut lifecycle) = lifecycle else {
            return lines.into();
        };
        let mut refused = None;
        for (line, rule) in lines.iter().zip([
            setup.uploads_end.map(|days| self.uploads_rule(days)),
            setup
                .old_versions_go
                .map(|days| self.old_versions_rule(days)),
        ]) {
            match rule {
                Some(Ok(rule)) if line.outcome == Outcome::Changed => lifecycle.put(rule),
                Some(Err(detail)) => refused = Some(Outcome::Failed(detail)),
                _ => {}
            }
        }
        if lines.iter().all(|line| line.outcome != Outcome::Changed) {
            return lines.into();
        }
        if refused.is_none() {
            refused = self.write_lifecycle(lifecycle).await.err();
        }
        if let Some(refused) = refused {
            for line in &mut lines {
                if line.outcome == Outcome::Changed {
                    line.outcome = refused.clone();
                }
            }
        }
        lines.into()
    }

    async fn write_lifecycle(&self, lifecycle: Lifecycle) -> Result<(), Outcome> {
        let document = BucketLifecycleConfiguration::builder()
            .set_rules(Some(lifecycle.rules))
            .build()
            .map_err(|error| Outcome::Failed(error.to_string()))?;
        self.client
            .put_bucket_lifecycle_configuration()
            .bucket(&self.bucket)
            .set_transition_default_minimum_object_size(lifecycle.smallest_moved)
            .lifecycle_configuration(document)
            .send()
            .await
            .map(drop)
            .map_err(|error| Refused::from(error).outcome("s3:PutLifecycleConfiguration"))
    }

    /// Names of rules are unique in a bucket, and have at most 255 bytes.
    fn rule_name(&self, what: &str) -> String {
        let mut name = format!("phos-ft: {what} of /{}", self.prefix);
        if name.len() > 255 {
            let digest = blake3::hash(self.prefix.as_bytes()).to_hex();
            name = format!("phos-ft: {what} of {digest}");
        }
        name
    }

    /// The beginning of a rule of ours: for what is below the prefix.
    fn rule(&self, what: &str) -> LifecycleRuleBuilder {
        LifecycleRule::builder()
            .id(self.rule_name(what))
            .status(ExpirationStatus::Enabled)
            .filter(LifecycleRuleFilter::builder().prefix(&self.prefix).build())
    }

    fn uploads_rule(&self, days: u32) -> Result<LifecycleRule, String> {
        let days = i32::try_from(days).map_err(|error| error.to_string())?;
        self.rule("incomplete uploads")
            .abort_incomplete_multipart_upload(
                AbortIncompleteMultipartUpload::builder()
                    .days_after_initiation(days)
                    .build(),
            )
            .build()
            .map_err(|error| error.to_string())
    }

    fn old_versions_rule(&self, days: u32) -> Result<LifecycleRule, String> {
        let days = i32::try_from(days).map_err(|error| error.to_string())?;
        self.rule("old versions")
            .noncurrent_version_expiration(
                NoncurrentVersionExpiration::builder()
                    .noncurrent_days(days)
                    .build(),
            )
            // Of a deleted object nothing is left then but the mark of its deletion.
            .expiration(
                LifecycleExpiration::builder()
                    .expired_object_delete_marker(true)
                    .build(),
            )
            .build()
            .map_err(|error| error.to_string())
    }

    async fn set_versioning(
        &self,
        setup: &BucketSetup,
        state: &BucketState,
        dry_run: bool,
    ) -> SetupLine {
        let asked = (setup.versioning || setup.object_lock.is_some()).then_some(());
        let mut outcome = judge(asked.as_ref(), &state.versioning, dry_run, |(), is| {
            *is == Versioning::On
        });
        if outcome == Outcome::Changed {
            let sent = self
                .client
                .put_bucket_versioning()
                .bucket(&self.bucket)
                .versioning_configuration(
                    VersioningConfiguration::builder()
                        .status(BucketVersioningStatus::Enabled)
                        .build(),
                )
                .send()
                .await;
            if let Err(error) = sent {
                outcome = Refused::from(error).outcome("s3:PutBucketVersioning");
            }
        }
        SetupLine {
            setting: "versioning",
            whole_bucket: true,
            was: shown(&state.versioning, Versioning::to_string),
            asked: asked.map(|()| Versioning::On.to_string()),
            outcome,
        }
    }

    async fn set_object_lock(
        &self,
        setup: &BucketSetup,
        state: &BucketState,
        dry_run: bool,
    ) -> SetupLine {
        // A stricter mode than ours stays.
        let mode = match &state.object_lock {
            Look::Known(Some(Some(retention))) => {
                ObjectLockRetentionMode::from(retention.mode.as_str())
            }
            _ => ObjectLockRetentionMode::Governance,
        };
        let mut outcome = judge(
            setup.object_lock.as_ref(),
            &state.object_lock,
            dry_run,
            |asked, is| matches!(is, Some(Some(retention)) if retention.days >= *asked),
        );
        if let (Outcome::Changed, Some(days)) = (&outcome, setup.object_lock) {
            let retention = DefaultRetention::builder()
                .mode(mode.clone())
                .set_days(i32::try_from(days).ok())
                .build();
            let configuration = ObjectLockConfiguration::builder()
                .object_lock_enabled(ObjectLockEnabled::Enabled)
                .rule(
                    ObjectLockRule::builder()
                        .default_retention(retention)
                        .build(),
                )
                .build();
            let sent = self
                .client
                .put_object_lock_configuration()
                .bucket(&self.bucket)
                .object_lock_configuration(configuration)
                .send()
                .await;
            if let Err(error) = sent {
                outcome = Refused::from(error).outcome("s3:PutBucketObjectLockConfiguration");
            }
        }
        SetupLine {
            setting: "object lock",
            whole_bucket: true,
            was: shown(&state.object_lock, |lock| lock_shown(lock.as_ref())),
            asked: setup.object_lock.map(|days| {
                lock_shown(Some(&Some(Retention {
                    mode: mode.as_str().to_owned(),
                    days,
                })))
            }),
            outcome,
        }
    }

    async fn set_encryption(
        &self,
        setup: &BucketSetup,
        state: &BucketState,
        dry_run: bool,
    ) -> SetupLine {
        let asked = setup.sse_kms_key.as_ref();
        let mut outcome = judge(asked, &state.encryption, dry_run, |asked, is| {
            let is = is.as_ref();
            is.is_some_and(|is| {
                is.algorithm.starts_with("aws:kms") && is.key.as_ref() == Some(asked)
            })
        });
        if let (Outcome::Changed, Some(key)) = (&outcome, asked) {
            // Doubly encrypted stays so.
            let algorithm = match &state.encryption {
                Look::Known(Some(is))
                    if is.algorithm == ServerSideEncryption::AwsKmsDsse.as_str() =>
                {
                    ServerSideEncryption::AwsKmsDsse
                }
                _ => ServerSideEncryption::AwsKms,
            };
            outcome = match encryption_document(key, algorithm) {
                Err(detail) => Outcome::Failed(detail),
                Ok(document) => {
                    let sent = self
                        .client
                        .put_bucket_encryption()
                        .bucket(&self.bucket)
                        .server_side_encryption_configuration(document)
                        .send()
                        .await;
                    match sent {
                        Ok(_) => Outcome::Changed,
                        Err(error) => Refused::from(error).outcome("s3:PutEncryptionConfiguration"),
                    }
                }
            };
        }
        SetupLine {
            setting: "default encryption",
            whole_bucket: true,
            was: shown(&state.encryption, |is| match is {
                None => "none".into(),
                Some(is) => is.to_string(),
            }),
            asked: asked.map(|key| {
                Encryption {
                    algorithm: "aws:kms".into(),
                    key: Some(key.clone()),
                }
                .to_string()
            }),
            outcome,
        }
    }
}

impl Connection {
    fn client(&self, bucket: &str, retry: &RetryPolicy) -> Client {
        use object_store::aws::AmazonS3ConfigKey::VirtualHostedStyleRequest;
        let mut config = aws_sdk_s3::Config::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::new(self.region.clone()))
            .http_client(self.http.clone())
            .sleep_impl(TokioSleep::new())
            .retry_config(RetryConfig::standard().with_max_attempts(3))
            .timeout_config(
                TimeoutConfig::builder()
                    .operation_timeout(retry.request_timeout)
                    .build(),
            );
        config = match &self.credentials {
            Some(chain) => {
                config.credentials_provider(SharedCredentialsProvider::new(chain.clone()))
            }
            None => config.allow_no_auth(),
        };
        if let Some(endpoint) = &self.endpoint {
            // With this style, object_store's endpoint has the bucket in it, and the SDK's has not.
            let hosted = self.builder.get_config_value(&VirtualHostedStyleRequest);
            let hosted = hosted.is_some_and(|hosted| super::is_true(&hosted));
            let endpoint = if hosted {
                endpoint.replacen(&format!("://{bucket}."), "://", 1)
            } else {
                endpoint.clone()
            };
            config = config.endpoint_url(endpoint).force_path_style(!hosted);
        }
        Client::from_conf(config.build())
    }
}

impl Lifecycle {
    const fn none() -> Self {
        Self {
            rules: Vec::new(),
            smallest_moved: None,
        }
    }

    /// In the place of one of the same name, else at the end.
    fn put(&mut self, rule: LifecycleRule) {
        match self.rules.iter_mut().find(|old| old.id() == rule.id()) {
            Some(old) => *old = rule,
            None => self.rules.push(rule),
        }
    }
}

impl BucketState {
    fn of_a_new_one() -> Self {
        Self {
            uploads_end: Look::Known(None),
            old_versions_go: Look::Known(None),
            versioning: Look::Known(Versioning::Off),
            object_lock: Look::Known(None),
            encryption: Look::Known(None),
        }
    }
}

/// Whether a rule is for all objects below a prefix.
fn covers(rule: &LifecycleRule, prefix: &str) -> bool {
    #[allow(deprecated, reason = "older rules have it instead of a filter")]
    let old = rule.prefix();
    let Some(filter) = rule.filter() else {
        return prefix.starts_with(old.unwrap_or_default());
    };
    // What is for some tags or sizes is not for all.
    filter.tag().is_none()
        && filter.and().is_none()
        && filter.object_size_greater_than().is_none()
        && filter.object_size_less_than().is_none()
        && prefix.starts_with(filter.prefix().unwrap_or_default())
}

fn uploads_end(rule: &LifecycleRule) -> Option<i32> {
    rule.abort_incomplete_multipart_upload()?
        .days_after_initiation()
}

fn old_versions_go(rule: &LifecycleRule) -> Option<i32> {
    let rule = rule.noncurrent_version_expiration()?;
    // One that keeps some of them for ever does not count.
    rule.noncurrent_days()
        .filter(|_| rule.newer_noncurrent_versions().is_none())
}

fn encryption_document(
    key: &str,
    algorithm: ServerSideEncryption,
) -> Result<ServerSideEncryptionConfiguration, String> {
    // Doubly encrypted objects have no bucket key.
    let bucket_key = algorithm == ServerSideEncryption::AwsKms;
    let default = ServerSideEncryptionByDefault::builder()
        .sse_algorithm(algorithm)
        .kms_master_key_id(key)
        .build()
        .map_err(|error| error.to_string())?;
    ServerSideEncryptionConfiguration::builder()
        .rules(
            ServerSideEncryptionRule::builder()
                .apply_server_side_encryption_by_default(default)
                .bucket_key_enabled(bucket_key)
                .build(),
        )
        .build()
        .map_err(|error| error.to_string())
}

/// The body of an answer that was a success and could not be understood.
fn unread<E>(error: &SdkError<E, HttpResponse>) -> Option<String> {
    let answer = error
        .raw_response()
        .filter(|answer| answer.status().is_success())?;
    Some(String::from_utf8_lossy(answer.body().bytes()?).into_owned())
}

/// What is to become of a setting.
fn judge<A, T>(
    asked: Option<&A>,
    is: &Look<T>,
    dry_run: bool,
    fulfilled: impl Fn(&A, &T) -> bool,
) -> Outcome {
    let Some(asked) = asked else {
        return Outcome::Left;
    };
    match is {
        Look::Known(is) if fulfilled(asked, is) => Outcome::AsAsked,
        Look::Known(_) if dry_run => Outcome::WouldChange,
        Look::Known(_) => Outcome::Changed,
        Look::Unsupported => Outcome::Unsupported,
        Look::Denied(permission) => Outcome::Denied(permission),
        Look::Failed(detail) => Outcome::Failed(detail.clone()),
    }
}

fn shown<T>(look: &Look<T>, show: impl Fn(&T) -> String) -> String {
    match look {
        Look::Known(is) => show(is),
        Look::Unsupported => "not known to this server".into(),
        Look::Denied(permission) => format!("may not be asked: needs {permission}"),
        Look::Failed(detail) => format!("cannot be asked: {detail}"),
    }
}

fn after(days: Option<u32>, never: &str, verb: &str) -> String {
    match days {
        None => never.into(),
        Some(1) => format!("{verb} after 1 day"),
        Some(days) => format!("{verb} after {days} days"),
    }
}

fn lock_shown(lock: Option<&Option<Retention>>) -> String {
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
