//! Setting a bucket up: each setting for itself, and only what is asked for.

use async_recursion::async_recursion as boxed;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::types::{
    BucketLocationConstraint, BucketVersioningStatus, CreateBucketConfiguration, DefaultRetention,
    ObjectLockConfiguration, ObjectLockEnabled, ObjectLockRetentionMode, ObjectLockRule,
    ServerSideEncryption, ServerSideEncryptionByDefault, ServerSideEncryptionConfiguration,
    ServerSideEncryptionRule, VersioningConfiguration,
};

use crate::administration::{Administration, BucketError};
use crate::lifecycle::Lifecycle;
use crate::refusal::Refused;
use crate::settings::{
    BucketSetup, BucketState, Encryption, Look, Outcome, Retention, SetupLine, SetupMode,
    Versioning, after, judge, lock_shown, shown,
};

/// The region whose name a request that makes a bucket must not have.
const DEFAULT_REGION: &str = "us-east-1";

impl Administration {
    /// Sets the bucket as asked, or says what would be done. Settings are independent: one that is refused does not keep
    /// the others from being set.
    #[boxed]
    pub async fn set_up(
        &self,
        setup: &BucketSetup,
        mode: SetupMode,
    ) -> Result<Vec<SetupLine>, BucketError> {
        self.check_credentials().await?;
        let mut lines = Vec::new();
        let there = self.is_there().await?;
        if !there && !setup.create {
            return Err(BucketError::Missing {
                bucket: self.bucket.clone(),
            });
        }
        if !there && mode == SetupMode::Apply {
            self.create(setup).await?;
        }
        lines.push(SetupLine {
            setting: "bucket",
            whole_bucket: true,
            was: if there { "there" } else { "not there" }.into(),
            asked: setup.create.then(|| "there".into()),
            outcome: match mode {
                _ if there && setup.create => Outcome::AsAsked,
                _ if there => Outcome::Left,
                SetupMode::DryRun => Outcome::WouldChange,
                SetupMode::Apply => Outcome::Changed,
            },
        });
        let (lifecycle, state) = if !there && mode == SetupMode::DryRun {
            (Look::Known(Lifecycle::none()), BucketState::of_a_new_one())
        } else {
            let lifecycle = self.lifecycle().await;
            let state = self.state(&lifecycle).await;
            (lifecycle, state)
        };
        lines.extend(self.set_lifecycle(setup, lifecycle, &state, mode).await);
        // Object Lock needs versions.
        lines.push(self.set_versioning(setup, &state, mode).await);
        lines.push(self.set_object_lock(setup, &state, mode).await);
        lines.push(self.set_encryption(setup, &state, mode).await);
        Ok(lines)
    }

    async fn create(&self, setup: &BucketSetup) -> Result<(), BucketError> {
        let mut request = self.client.create_bucket().bucket(&self.bucket);
        let region = self.connection.region();
        if region != DEFAULT_REGION {
            request = request.create_bucket_configuration(
                CreateBucketConfiguration::builder()
                    .location_constraint(BucketLocationConstraint::from(region))
                    .build(),
            );
        }
        if setup.object_lock.is_some() {
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
        mode: SetupMode,
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
                    mode,
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
                    mode,
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

    async fn set_versioning(
        &self,
        setup: &BucketSetup,
        state: &BucketState,
        mode: SetupMode,
    ) -> SetupLine {
        let asked = (setup.versioning || setup.object_lock.is_some()).then_some(());
        let mut outcome = judge(asked.as_ref(), &state.versioning, mode, |(), is| {
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
        mode: SetupMode,
    ) -> SetupLine {
        // A stricter mode than ours stays.
        let retention_mode = match &state.object_lock {
            Look::Known(Some(Some(retention))) => {
                ObjectLockRetentionMode::from(retention.mode.as_str())
            }
            _ => ObjectLockRetentionMode::Governance,
        };
        let mut outcome = judge(
            setup.object_lock.as_ref(),
            &state.object_lock,
            mode,
            |asked, is| matches!(is, Some(Some(retention)) if retention.days >= *asked),
        );
        if let (Outcome::Changed, Some(days)) = (&outcome, setup.object_lock) {
            let retention = DefaultRetention::builder()
                .mode(retention_mode.clone())
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
                    mode: retention_mode.as_str().to_owned(),
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
        mode: SetupMode,
    ) -> SetupLine {
        let asked = setup.sse_kms_key.as_ref();
        let mut outcome = judge(asked, &state.encryption, mode, |asked, is| {
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
