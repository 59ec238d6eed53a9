//! Settings of a bucket, against the S3 server of scripts/with-s3.sh; what it has is looked at by plain HTTP, not by the
//! code that is tested.
//!
//! Environment variables belong to a process: what depends on them runs in a child of its own (`child_…`).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

#[path = "../../tests/suite/common/s3_server.rs"]
mod s3_server;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use phos_s3_admin::{
    Administration, BucketError, BucketSetup, Look, Outcome, SetupLine, SetupMode, Versioning,
};
use phos_storage::RetryPolicy;
use phos_storage::s3::S3Options;
use s3_server::{Server, answering, in_child, s3_endpoint, unique, with_keys};

async fn administration(address: &str) -> Administration {
    Administration::connect(address, &RetryPolicy::immediate(1), &S3Options::default())
        .await
        .unwrap()
        .unwrap()
}

fn outcome<'a>(lines: &'a [SetupLine], setting: &str) -> &'a Outcome {
    &lines.iter().find(|l| l.setting == setting).unwrap().outcome
}

const OTHERS: &str = "<LifecycleConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
    <Rule><ID>logs of others</ID><Filter><And><Prefix>logs/</Prefix><Tag><Key>k</Key><Value>v</Value></Tag></And></Filter>\
    <Status>Enabled</Status><Expiration><Days>77</Days></Expiration></Rule>\
    <Rule><ID>moved</ID><Filter><Prefix>archive/</Prefix></Filter><Status>Disabled</Status>\
    <Transition><Days>30</Days><StorageClass>GLACIER</StorageClass></Transition></Rule>\
    </LifecycleConfiguration>";

#[test]
fn a_bucket_is_set_up_and_the_rules_of_others_stay() {
    with_keys("child_sets_a_bucket_up", &[]);
}

#[tokio::test]
#[ignore = "started by a_bucket_is_set_up_and_the_rules_of_others_stay"]
async fn child_sets_a_bucket_up() {
    let (server, bucket) = (Server::there(), unique("rules"));
    server.put(&bucket, "").await;
    server.put(&format!("{bucket}?lifecycle"), OTHERS).await;
    let lifecycle = || async { server.get(&format!("{bucket}?lifecycle")).await };
    let before = lifecycle().await;

    let there = administration(&format!("s3://{bucket}/runs/a")).await;
    let asked = BucketSetup {
        uploads_end: Some(3),
        ..BucketSetup::default()
    };
    let dry = there.set_up(&asked, SetupMode::DryRun).await.unwrap();
    assert_eq!(outcome(&dry, "incomplete uploads"), &Outcome::WouldChange);
    assert_eq!(lifecycle().await, before, "a dry run changed something");

    let done = there.set_up(&asked, SetupMode::Apply).await.unwrap();
    assert_eq!(outcome(&done, "incomplete uploads"), &Outcome::Changed);
    for left in ["versioning", "object lock", "default encryption"] {
        assert_eq!(outcome(&done, left), &Outcome::Left, "{left}");
    }
    let after = lifecycle().await;
    for part in [
        "logs of others",
        "<Prefix>logs/</Prefix>",
        "<Key>k</Key>",
        "<Days>77</Days>",
        "<Status>Disabled</Status>",
        "<StorageClass>GLACIER</StorageClass>",
        "phos-ft: incomplete uploads of /runs/a/",
        "<Prefix>runs/a/</Prefix>",
        "<DaysAfterInitiation>3</DaysAfterInitiation>",
    ] {
        assert!(after.contains(part), "no {part} in {after}");
    }
    assert_eq!(
        there.look().await.unwrap().uploads_end,
        Look::Known(Some(3))
    );

    // Again: nothing to do. Fewer days: our rule is replaced, not doubled. More: what is stricter stays.
    let again = there.set_up(&asked, SetupMode::Apply).await.unwrap();
    assert_eq!(outcome(&again, "incomplete uploads"), &Outcome::AsAsked);
    assert_eq!(lifecycle().await, after);
    for (days, becomes) in [(2, Outcome::Changed), (5, Outcome::AsAsked)] {
        let asked = BucketSetup {
            uploads_end: Some(days),
            ..BucketSetup::default()
        };
        let lines = there.set_up(&asked, SetupMode::Apply).await.unwrap();
        assert_eq!(outcome(&lines, "incomplete uploads"), &becomes);
        assert_eq!(lifecycle().await.matches("<Rule>").count(), 3);
        assert_eq!(
            there.look().await.unwrap().uploads_end,
            Look::Known(Some(2))
        );
    }
    // Another prefix has a rule of its own; and one for old versions.
    let other = administration(&format!("s3://{bucket}/runs/b")).await;
    assert_eq!(other.look().await.unwrap().uploads_end, Look::Known(None));
    let asked = BucketSetup {
        uploads_end: Some(1),
        old_versions_go: Some(9),
        ..BucketSetup::default()
    };
    other.set_up(&asked, SetupMode::Apply).await.unwrap();
    let state = other.look().await.unwrap();
    assert_eq!(
        (state.uploads_end, state.old_versions_go),
        (Look::Known(Some(1)), Look::Known(Some(9)))
    );
    assert_eq!(lifecycle().await.matches("<Rule>").count(), 5);
    // Below a prefix whose rule covers it, none is needed.
    let below = administration(&format!("s3://{bucket}/runs/a/below")).await;
    assert_eq!(
        below.look().await.unwrap().uploads_end,
        Look::Known(Some(2))
    );
}

#[test]
fn versions_retention_and_keys_are_set_if_asked() {
    with_keys("child_sets_all_of_it", &[]);
}

#[tokio::test]
#[ignore = "started by versions_retention_and_keys_are_set_if_asked"]
async fn child_sets_all_of_it() {
    let (server, bucket) = (Server::there(), unique("all"));
    let there = administration(&format!("s3://{bucket}/p")).await;
    let mut asked = BucketSetup {
        uploads_end: Some(1),
        versioning: true,
        old_versions_go: Some(30),
        object_lock: Some(7),
        sse_kms_key: Some("alias/training".into()),
        create: false,
    };
    let error = there.set_up(&asked, SetupMode::Apply).await.unwrap_err();
    assert!(
        matches!(error, BucketError::Missing { .. })
            && error.is_permanent()
            && error.to_string().contains("--create-bucket"),
        "{error}"
    );
    asked.create = true;
    let dry = there.set_up(&asked, SetupMode::DryRun).await.unwrap();
    assert!(
        dry.iter().all(|line| line.outcome == Outcome::WouldChange),
        "{dry:?}"
    );
    assert!(
        matches!(there.look().await, Err(BucketError::Missing { .. })),
        "the dry run made the bucket"
    );

    let done = there.set_up(&asked, SetupMode::Apply).await.unwrap();
    for line in &done {
        // With Object Lock a new bucket has versions at once.
        let expected = match line.setting {
            "versioning" => [Outcome::Changed, Outcome::AsAsked],
            _ => [Outcome::Changed, Outcome::Changed],
        };
        assert!(expected.contains(&line.outcome), "{line:?}");
    }
    let versioning = server.get(&format!("{bucket}?versioning")).await;
    assert!(versioning.contains("<Status>Enabled"), "{versioning}");
    let lock = server.get(&format!("{bucket}?object-lock")).await;
    assert!(
        lock.contains("GOVERNANCE") && lock.contains("<Days>7</Days>"),
        "{lock}"
    );
    let key = server.get(&format!("{bucket}?encryption")).await;
    assert!(
        key.contains("aws:kms") && key.contains("alias/training") && key.contains("true"),
        "{key}"
    );
    let state = there.look().await.unwrap();
    assert_eq!(state.versioning, Look::Known(Versioning::On));

    let again = there.set_up(&asked, SetupMode::Apply).await.unwrap();
    assert!(
        again.iter().all(|line| line.outcome == Outcome::AsAsked),
        "{again:?}"
    );
    // A shorter retention does not replace a longer one.
    asked.object_lock = Some(2);
    let shorter = there.set_up(&asked, SetupMode::Apply).await.unwrap();
    assert_eq!(outcome(&shorter, "object lock"), &Outcome::AsAsked);
    assert!(
        server
            .get(&format!("{bucket}?object-lock"))
            .await
            .contains("<Days>7</Days>")
    );
}

#[test]
fn what_a_server_lacks_or_refuses_is_said_and_nothing_is_written() {
    for (answer, expected) in [
        (
            "HTTP/1.1 501 Not Implemented\r\nContent-Length: 60\r\nConnection: close\r\n\r\n\
             <Error><Code>NotImplemented</Code><Message>n</Message></Error>",
            "unsupported",
        ),
        (
            "HTTP/1.1 403 Forbidden\r\nContent-Length: 58\r\nConnection: close\r\n\r\n\
             <Error><Code>AccessDenied</Code><Message>no</Message></Error>",
            "denied",
        ),
    ] {
        // The length of what is said is that of the body.
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let head: Vec<String> = head
            .lines()
            .map(|line| match line.starts_with("Content-Length") {
                true => format!("Content-Length: {}", body.len()),
                false => line.to_owned(),
            })
            .collect();
        let answer: &'static str = format!("{}\r\n\r\n{body}", head.join("\r\n")).leak();
        let endpoint = format!("http://{}", answering(answer));
        with_keys(
            "child_is_refused",
            &[
                ("AWS_ENDPOINT_URL", &endpoint),
                ("PHOS_TEST_EXPECTED", expected),
            ],
        );
    }
}

#[tokio::test]
#[ignore = "started by what_a_server_lacks_or_refuses_is_said_and_nothing_is_written"]
async fn child_is_refused() {
    let expected = std::env::var("PHOS_TEST_EXPECTED").unwrap();
    let there = administration("s3://bucket/p").await;
    let asked = BucketSetup {
        uploads_end: Some(1),
        versioning: true,
        sse_kms_key: Some("key".into()),
        ..BucketSetup::default()
    };
    let lines = there.set_up(&asked, SetupMode::Apply).await.unwrap();
    for setting in ["incomplete uploads", "versioning", "default encryption"] {
        let outcome = outcome(&lines, setting);
        match &*expected {
            "unsupported" => assert_eq!(outcome, &Outcome::Unsupported, "{setting}"),
            _ => assert!(
                matches!(outcome, Outcome::Denied(permission) if permission.starts_with("s3:Get")),
                "{setting}: {outcome:?}"
            ),
        }
    }
}

/// A server that has nothing set, and keeps what each request was signed with: the id of the key, or nothing.
struct Asked {
    address: SocketAddr,
    keys: Arc<Mutex<Vec<String>>>,
}

impl Asked {
    fn listen() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let keys = Arc::new(Mutex::new(Vec::new()));
        let seen = keys.clone();
        // Ends with the test's process.
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut head = [0; 4096];
                let length = client.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..length]).into_owned();
                let key = head
                    .split_once("Credential=")
                    .and_then(|(_, rest)| rest.split_once('/'))
                    .map_or("", |(key, _)| key);
                seen.lock().unwrap().push(key.to_owned());
                let _ = client.write_all(
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
            }
        });
        Self { address, keys }
    }

    /// The keys of the requests that a look at the bucket made.
    fn of_a_look(env: &[(&str, &str)]) -> BTreeSet<String> {
        let server = Self::listen();
        let endpoint = format!("http://{}", server.address);
        let mut all = vec![
            ("AWS_ENDPOINT_URL", endpoint.as_str()),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ];
        all.extend(env);
        in_child("child_looks_for_a_bucket", &all);
        let keys = server.keys.lock().unwrap();
        keys.iter().cloned().collect()
    }
}

#[test]
fn a_look_is_signed_with_the_credentials_of_the_objects() {
    let files = tempfile::tempdir().unwrap();
    let credentials = files.path().join("credentials");
    std::fs::write(
        &credentials,
        "[default]\naws_access_key_id = OFFILE\naws_secret_access_key = s\n",
    )
    .unwrap();
    let credentials = credentials.display().to_string();
    let of_file = Asked::of_a_look(&[("AWS_SHARED_CREDENTIALS_FILE", &credentials)]);
    assert_eq!(of_file, BTreeSet::from(["OFFILE".to_owned()]));
    let unsigned = Asked::of_a_look(&[("AWS_SKIP_SIGNATURE", "true")]);
    assert_eq!(unsigned, BTreeSet::from([String::new()]));
}

#[tokio::test]
#[ignore = "started by a_look_is_signed_with_the_credentials_of_the_objects"]
async fn child_looks_for_a_bucket() {
    let there = administration("s3://bucket/p").await;
    let error = there.look().await.unwrap_err();
    assert!(matches!(error, BucketError::Missing { .. }), "{error}");
}

#[test]
fn without_credentials_no_bucket_is_looked_at() {
    in_child(
        "child_has_no_credentials",
        &[
            ("AWS_ENDPOINT_URL", &s3_endpoint()),
            ("AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:9"),
        ],
    );
}

#[tokio::test]
#[ignore = "started by without_credentials_no_bucket_is_looked_at"]
async fn child_has_no_credentials() {
    let there = administration("s3://phos-test/none").await;
    assert!(matches!(
        there.look().await,
        Err(BucketError::Credentials { .. })
    ));
}
