//! S3 as phos-ft uses it: how a bucket is reached, with which credentials, and how objects are written there.
//!
//! Objects go through object_store, as those of every other store do. This module gives it what it lacks: credentials
//! from every source of the AWS tools (`credentials`), and region and endpoint from the AWS configuration files, both by
//! `aws-config`, which opening a bucket needs and which does not bring the SDK of S3. The settings of a bucket are read and
//! changed by the crate `phos-s3-admin`, through a [`Connection`] of this one.
//!
//! What the environment says (`AWS_*`) comes before what configuration files say; flags of phos-ft come before both.

mod credentials;
mod http;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use aws_config::provider_config::ProviderConfig;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::SharedCredentialsProvider;
use aws_smithy_async::rt::sleep::TokioSleep;
use aws_smithy_async::time::SharedTimeSource;
use aws_smithy_runtime_api::client::http::SharedHttpClient;
use aws_smithy_runtime_api::shared::IntoShared;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, Checksum};
use object_store::{Attribute, Attributes, ClientConfigKey};

use self::credentials::CredentialsChain;
pub use self::credentials::CredentialsInfo;
use self::http::Http;
pub use crate::fault::CredentialsError;
use crate::retry::RetryPolicy;

/// Objects smaller than this are billed as if they had this size in the classes for rare access.
const SMALLEST_BILLED: u64 = 128 << 10;
/// Where nothing says in which region a bucket is.
const DEFAULT_REGION: &str = "us-east-1";

/// How objects are written to S3. Ignored by other stores.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct S3Options {
    /// Storage class of packs of 128 KiB and more. All other objects have the bucket's default: they are small or
    /// short-lived.
    pub storage_class: Option<StorageClass>,
    /// Encrypt objects at the server with this key of its key management service: id, ARN or alias.
    pub sse_kms_key: Option<String>,
    /// Checksum that the server checks when it stores an object, and keeps with it.
    pub checksum: ChecksumChoice,
}

/// A storage class from which objects can be read at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StorageClass(String);

impl StorageClass {
    /// The name of the class, as S3 writes it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for StorageClass {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = text.to_ascii_uppercase();
        if matches!(name.as_str(), "GLACIER" | "DEEP_ARCHIVE") {
            return Err(format!(
                "objects of the class {name} cannot be read before they are restored, which takes hours: use STANDARD, \
                 INTELLIGENT_TIERING, STANDARD_IA, ONEZONE_IA or GLACIER_IR"
            ));
        }
        let known = name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_');
        if name.is_empty() || !known {
            return Err(format!(
                "{text:?} is not a storage class, such as STANDARD, INTELLIGENT_TIERING, STANDARD_IA, ONEZONE_IA or \
                 GLACIER_IR"
            ));
        }
        Ok(Self(name))
    }
}

/// The checksum that is sent with an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ChecksumChoice {
    /// SHA-256 on AWS, where it costs nothing, as the signature needs the same digest; none at another endpoint, where
    /// some servers refuse it. The signature covers the content either way.
    #[default]
    Auto,
    /// No checksum is sent with an object.
    None,
    /// An SHA-256 checksum is sent with every object.
    Sha256,
    /// CRC-64/NVME: for servers that know it, and where payloads are not signed.
    Crc64Nvme,
}

impl FromStr for ChecksumChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "sha256" => Ok(Self::Sha256),
            "crc64nvme" => Ok(Self::Crc64Nvme),
            _ => Err(format!(
                "{text:?} is not a checksum: use auto, none, sha256 or crc64nvme"
            )),
        }
    }
}

impl std::fmt::Display for ChecksumChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::None => "none",
            Self::Sha256 => "sha256",
            Self::Crc64Nvme => "crc64nvme",
        })
    }
}

/// Why it cannot be said how a bucket is to be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// There is no HTTP client: the machine's certificates or proxy settings cannot be used.
    #[error("no HTTP client: {detail}")]
    Http {
        /// What is wrong with the certificates or the proxy settings.
        detail: String,
    },
    /// The address of the metadata service is not one.
    #[error("AWS_METADATA_ENDPOINT={endpoint}: {detail}")]
    MetadataEndpoint {
        /// The address as it was given.
        endpoint: String,
        /// What is wrong with the address.
        detail: String,
    },
}

impl ConnectionError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        match self {
            Self::Http { .. } | Self::MetadataEndpoint { .. } => true,
        }
    }
}

/// Where the name of a bucket stands in the address of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Addressing {
    /// The bucket is named in the path of the address.
    Path,
    /// The bucket is named in the host name.
    VirtualHosted,
}

/// How a bucket is reached: region, endpoint, credentials and HTTP client. Nothing is asked of the bucket.
pub struct Connection {
    /// The configuration that object_store is given.
    pub(crate) builder: AmazonS3Builder,
    /// Region that requests are signed for.
    region: String,
    /// The endpoint of the bucket; `None` if it is AWS.
    endpoint: Option<String>,
    /// `None`: requests are not signed.
    credentials: Option<CredentialsChain>,
    http: Http,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("region", &self.region)
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Reads environment and configuration files. The metadata service is asked for the region where nothing else says
    /// it, for a few seconds at most.
    #[boxed]
    pub async fn new(
        address: &str,
        retry: &RetryPolicy,
        options: &S3Options,
    ) -> Result<Self, ConnectionError> {
        let timeout = format!("{} seconds", retry.request_timeout.as_secs().max(1));
        let mut builder = AmazonS3Builder::from_env()
            .with_url(address)
            .with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), timeout)
            .with_retry(retry.client());
        let value = |builder: &AmazonS3Builder, key| builder.get_config_value(&key);
        let http = Http::new().map_err(|error| ConnectionError::Http {
            detail: error.to_string(),
        })?;

        let time = SharedTimeSource::default();
        let config = ProviderConfig::without_region()
            .with_http_client(http.clone())
            .with_sleep_impl(TokioSleep::new())
            .with_time_source(time.clone());
        let metadata = metadata_service(
            &config,
            value(&builder, AmazonS3ConfigKey::MetadataEndpoint),
        )?;

        let files = aws_config::defaults(BehaviorVersion::latest())
            .http_client(http.clone())
            .sleep_impl(TokioSleep::new())
            .no_credentials()
            // Else it would ask the metadata service in its own time.
            .region(
                aws_config::profile::ProfileFileRegionProvider::builder()
                    .configure(&config)
                    .build(),
            )
            .load()
            .await;
        let mut endpoint = value(&builder, AmazonS3ConfigKey::S3Endpoint)
            .or_else(|| value(&builder, AmazonS3ConfigKey::Endpoint));
        if endpoint.is_none()
            && let Some(configured) = files.endpoint_url()
        {
            builder = builder.with_endpoint(configured);
            endpoint = Some(configured.to_owned());
        }
        let mut region = value(&builder, AmazonS3ConfigKey::Region)
            .or_else(|| files.region().map(ToString::to_string));
        if region.is_none() && endpoint.is_none() {
            let there = aws_config::imds::region::ImdsRegionProvider::builder()
                .configure(&config)
                .imds_client(metadata.clone())
                .build();
            region = there.region().await.map(|region| region.to_string());
        }
        let region = region.unwrap_or_else(|| DEFAULT_REGION.to_owned());
        builder = builder.with_region(&region);

        let anonymous = value(&builder, AmazonS3ConfigKey::SkipSignature);
        let credentials = if anonymous.is_some_and(|skip| is_true(&skip)) {
            None
        } else {
            let config = config.with_region(Some(Region::new(region.clone())));
            Some(CredentialsChain::aws(&config, metadata, time))
        };
        if let Some(chain) = &credentials {
            builder = builder.with_credentials(Arc::new(chain.clone()));
        }
        builder = options.apply(builder, endpoint.as_deref());
        Ok(Self {
            builder,
            region,
            endpoint,
            credentials,
            http,
        })
    }

    /// Region that requests are signed for.
    #[must_use]
    pub fn region(&self) -> &str {
        &self.region
    }

    /// The configured endpoint; `None`: AWS.
    #[must_use]
    pub fn endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref()
    }

    /// Where the name of the bucket stands in addresses.
    #[must_use]
    pub fn addressing(&self) -> Addressing {
        let hosted = (self.builder)
            .get_config_value(&AmazonS3ConfigKey::VirtualHostedStyleRequest)
            .is_some_and(|hosted| is_true(&hosted));
        match hosted {
            true => Addressing::VirtualHosted,
            false => Addressing::Path,
        }
    }

    /// Which credentials are used; `None`: none, requests are not signed.
    #[boxed]
    pub async fn credentials(&self) -> Result<Option<CredentialsInfo>, CredentialsError> {
        match &self.credentials {
            Some(chain) => chain.info().await.map(Some),
            None => Ok(None),
        }
    }

    /// The same for another client of the AWS crates, renewed as those of the objects are.
    #[must_use]
    pub fn credentials_provider(&self) -> Option<SharedCredentialsProvider> {
        let chain = self.credentials.as_ref()?;
        Some(SharedCredentialsProvider::new(chain.clone()))
    }

    /// The HTTP client for another client of the AWS crates.
    #[must_use]
    pub fn http_client(&self) -> SharedHttpClient {
        self.http.clone().into_shared()
    }
}

fn is_true(text: &str) -> bool {
    matches!(
        text.to_ascii_lowercase().as_str(),
        "1" | "true" | "on" | "yes" | "y"
    )
}

/// Most machines have none: then nobody answers, and that must be known soon.
fn metadata_service(
    config: &ProviderConfig,
    endpoint: Option<String>,
) -> Result<aws_config::imds::Client, ConnectionError> {
    let mut builder = aws_config::imds::Client::builder()
        .configure(config)
        .max_attempts(2)
        .connect_timeout(Duration::from_secs(1))
        .read_timeout(Duration::from_secs(1));
    if let Some(endpoint) = endpoint {
        builder =
            builder
                .endpoint(&endpoint)
                .map_err(|error| ConnectionError::MetadataEndpoint {
                    endpoint,
                    detail: error.to_string(),
                })?;
    }
    Ok(builder.build())
}

impl S3Options {
    fn apply(&self, mut builder: AmazonS3Builder, endpoint: Option<&str>) -> AmazonS3Builder {
        if let Some(key) = &self.sse_kms_key {
            // With a key for the bucket, the key service is not asked (and paid) for each object.
            builder = builder.with_sse_kms_encryption(key).with_bucket_key(true);
        }
        match self.checksum {
            // Whoever set AWS_CHECKSUM_ALGORITHM has chosen.
            ChecksumChoice::Auto
                if endpoint.is_none()
                    && builder
                        .get_config_value(&AmazonS3ConfigKey::Checksum)
                        .is_none() =>
            {
                builder.with_checksum_algorithm(Checksum::SHA256)
            }
            ChecksumChoice::Auto | ChecksumChoice::None => builder,
            ChecksumChoice::Sha256 => builder.with_checksum_algorithm(Checksum::SHA256),
            ChecksumChoice::Crc64Nvme => builder.with_checksum_algorithm(Checksum::CRC64NVME),
        }
    }

    /// What is said of a pack of so many bytes when it is written.
    pub(crate) fn pack_attributes(&self, length: u64) -> Attributes {
        let class = self.storage_class.as_ref();
        class
            .filter(|_| length >= SMALLEST_BILLED)
            .map(|class| (Attribute::StorageClass, class.0.clone()))
            .into_iter()
            .collect()
    }
}
