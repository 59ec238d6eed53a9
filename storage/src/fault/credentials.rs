//! Why there are no credentials for S3: a fault that requests meet before they are sent.

/// Why no credentials for S3 can be had.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CredentialsError {
    /// No source is configured.
    #[error(
        "no credentials for S3: none of these has any: {tried}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, choose a \
         profile with AWS_PROFILE (`aws configure`, `aws sso login`), or give this machine or container a role; \
         AWS_SKIP_SIGNATURE=true for a store that asks for none"
    )]
    None {
        /// The sources that were asked, in words.
        tried: String,
    },
    /// A source is configured wrongly.
    #[error(
        "the credentials for S3 from {from} cannot be used: {detail}: correct that configuration"
    )]
    Invalid {
        /// The source of the credentials, in words.
        from: String,
        /// What is wrong with the credentials.
        detail: String,
    },
    /// A source failed, and may not the next time.
    #[error(
        "{from} gave no credentials for S3: {detail} (will be tried again; if it stays so: `aws sso login`, or see to that \
         source)"
    )]
    Failed {
        /// The source of the credentials, in words.
        from: String,
        /// What the source answered.
        detail: String,
    },
}

impl CredentialsError {
    /// Whether trying again, with nothing changed, cannot help.
    #[must_use]
    pub fn is_permanent(&self) -> bool {
        !matches!(self, Self::Failed { .. })
    }
}
