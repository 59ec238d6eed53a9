//! A bucket as an administrator sees it: how it is reached, and how it is set now.

use async_recursion::async_recursion as boxed;
use aws_sdk_s3::Client;
use aws_sdk_s3::config::retry::RetryConfig;
use aws_sdk_s3::config::timeout::TimeoutConfig;
use aws_sdk_s3::config::{BehaviorVersion, Region};
use aws_sdk_s3::types::{
    BucketVersioningStatus, ExpirationStatus, LifecycleRule, ObjectLockEnabled,
};
use aws_smithy_async::rt::sleep::TokioSleep;
use phos_storage::RetryPolicy;
use phos_storage::s3::{Addressing, Connection, CredentialsError, CredentialsInfo, S3Options};
use url::Url;

use crate::lifecycle::{Lifecycle, covers, old_versions_go, uploads_end};
use crate::refusal::{Refused, RefusedKind, unread};
use crate::settings::{BucketState, Encryption, Look, Retention, Versioning};

/// Why a bucket cannot be looked at or set up at all.
#[derive(Debug, thiserror::Error)]
pub enum BucketError {
    /// The address or the configuration cannot be used.
    #[error("--store {address}: {detail}")]
    Address {
        /// The address that was given for the store.
        address: String,
        /// What is wrong with the address or the configuration.
        detail: String,
    },
    /// There are no credentials for the bucket.
    #[error("--store {address}: {source}")]
    Credentials {
        /// The address that was given for the store.
        address: String,
        /// Why no source has credentials.
        source: CredentialsError,
    },
    /// There is no such bucket.
    #[error(
        "there is no bucket {bucket}: correct --store, or let `phos-ft init … --create-bucket` make it"
    )]
    Missing {
        /// The name of the bucket.
        bucket: String,
    },
    /// The bucket is in another region.
    #[error(
        "the bucket {bucket} is in the region {region}, not in {used}: set AWS_REGION={region}"
    )]
    Elsewhere {
        /// The name of the bucket.
        bucket: String,
        /// The region that the bucket is in.
        region: String,
        /// The region that was assumed for it.
        used: String,
    },
    /// A request to the bucket failed.
    #[error("cannot {action} the bucket {bucket}: {detail}")]
    Request {
        /// What the request was to do.
        action: &'static str,
        /// The name of the bucket.
        bucket: String,
        /// The server's answer, in words.
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

/// Looks at the settings of one bucket, and changes them.
pub struct Administration {
    pub(crate) client: Client,
    address: String,
    pub(crate) bucket: String,
    /// Ends with "/" unless it is empty.
    pub(crate) prefix: String,
    pub(crate) connection: Connection,
}

impl std::fmt::Debug for Administration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Administration({})", self.address)
    }
}

impl Administration {
    /// `None` where the address is not of S3. Nothing is asked of the bucket yet.
    #[boxed]
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
            .map_err(|error| invalid(error.to_string()))?;
        let client = client(&connection, &bucket, retry);
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
        self.connection.region()
    }

    /// The configured endpoint; `None`: AWS.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.connection.endpoint()
    }

    /// Which credentials are used; `None`: none, requests are not signed.
    #[boxed]
    pub async fn credentials(&self) -> Result<Option<CredentialsInfo>, CredentialsError> {
        self.connection.credentials().await
    }

    pub(crate) fn failed(&self, action: &'static str, refused: Refused) -> BucketError {
        BucketError::Request {
            action,
            bucket: self.bucket.clone(),
            permanent: refused.kind != RefusedKind::Transient,
            detail: refused.detail,
        }
    }

    /// Whether the bucket is there.
    pub(crate) async fn is_there(&self) -> Result<bool, BucketError> {
        let answer = self.client.head_bucket().bucket(&self.bucket).send().await;
        let refused = match answer {
            Ok(_) => return Ok(true),
            Err(error) => Refused::from(error),
        };
        match refused.region {
            Some(region)
                if region != self.connection.region() && self.connection.endpoint().is_none() =>
            {
                return Err(BucketError::Elsewhere {
                    bucket: self.bucket.clone(),
                    region,
                    used: self.connection.region().to_owned(),
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
    #[boxed]
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
    pub(crate) async fn check_credentials(&self) -> Result<(), BucketError> {
        self.credentials()
            .await
            .map(drop)
            .map_err(|source| BucketError::Credentials {
                address: self.address.clone(),
                source,
            })
    }

    pub(crate) async fn state(&self, lifecycle: &Look<Lifecycle>) -> BucketState {
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
}

/// The client of a bucket that is reached by this connection.
fn client(connection: &Connection, bucket: &str, retry: &RetryPolicy) -> Client {
    let mut config = aws_sdk_s3::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new(connection.region().to_owned()))
        .http_client(connection.http_client())
        .sleep_impl(TokioSleep::new())
        .retry_config(RetryConfig::standard().with_max_attempts(3))
        .timeout_config(
            TimeoutConfig::builder()
                .operation_timeout(retry.request_timeout)
                .build(),
        );
    config = match connection.credentials_provider() {
        Some(provider) => config.credentials_provider(provider),
        None => config.allow_no_auth(),
    };
    if let Some(endpoint) = connection.endpoint() {
        // With this style, object_store's endpoint has the bucket in it, and the SDK's has not.
        let style = connection.addressing();
        let endpoint = match style {
            Addressing::VirtualHosted => endpoint.replacen(&format!("://{bucket}."), "://", 1),
            Addressing::Path => endpoint.to_owned(),
        };
        config = config
            .endpoint_url(endpoint)
            .force_path_style(style == Addressing::Path);
    }
    Client::from_conf(config.build())
}
