//! The lifecycle document of a bucket and our two rules in it.
//!
//! The document is replaced as a whole, so it is read first, our rules are put in by their names, and all others go back as
//! they came. Where it cannot be read it is not written.

use aws_sdk_s3::types::builders::LifecycleRuleBuilder;
use aws_sdk_s3::types::{
    AbortIncompleteMultipartUpload, BucketLifecycleConfiguration, ExpirationStatus,
    LifecycleExpiration, LifecycleRule, LifecycleRuleFilter, NoncurrentVersionExpiration,
    TransitionDefaultMinimumObjectSize,
};

use crate::administration::Administration;
use crate::refusal::Refused;
use crate::settings::{Look, Outcome};

/// The lifecycle document, as far as it must come back as it was.
pub(crate) struct Lifecycle {
    pub rules: Vec<LifecycleRule>,
    /// From which size on objects are moved between storage classes.
    smallest_moved: Option<TransitionDefaultMinimumObjectSize>,
}

impl Lifecycle {
    pub(crate) const fn none() -> Self {
        Self {
            rules: Vec::new(),
            smallest_moved: None,
        }
    }

    /// In the place of one of the same name, else at the end.
    pub(crate) fn put(&mut self, rule: LifecycleRule) {
        match self.rules.iter_mut().find(|old| old.id() == rule.id()) {
            Some(old) => *old = rule,
            None => self.rules.push(rule),
        }
    }
}

impl Administration {
    pub(crate) async fn lifecycle(&self) -> Look<Lifecycle> {
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
            Err(error) => {
                Refused::from(error).look(Lifecycle::none(), "s3:GetLifecycleConfiguration")
            }
        }
    }

    pub(crate) async fn write_lifecycle(&self, lifecycle: Lifecycle) -> Result<(), Outcome> {
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

    /// The beginning of one of this crate's rules, for what is below the prefix.
    fn rule(&self, what: &str) -> LifecycleRuleBuilder {
        LifecycleRule::builder()
            .id(self.rule_name(what))
            .status(ExpirationStatus::Enabled)
            .filter(LifecycleRuleFilter::builder().prefix(&self.prefix).build())
    }

    pub(crate) fn uploads_rule(&self, days: u32) -> Result<LifecycleRule, String> {
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

    pub(crate) fn old_versions_rule(&self, days: u32) -> Result<LifecycleRule, String> {
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
}

/// Whether a rule is for all objects below a prefix.
pub(crate) fn covers(rule: &LifecycleRule, prefix: &str) -> bool {
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

pub(crate) fn uploads_end(rule: &LifecycleRule) -> Option<i32> {
    rule.abort_incomplete_multipart_upload()?
        .days_after_initiation()
}

pub(crate) fn old_versions_go(rule: &LifecycleRule) -> Option<i32> {
    let rule = rule.noncurrent_version_expiration()?;
    // One that keeps some of them for ever does not count.
    rule.noncurrent_days()
        .filter(|_| rule.newer_noncurrent_versions().is_none())
}
