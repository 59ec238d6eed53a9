//! S3 beyond single objects: credentials from the sources of the AWS tools, how objects are written. Against the S3 server of scripts/with-s3.sh; what it has is looked at by plain HTTP, not by the code that is
//! tested.
//!
//! Environment variables belong to a process: what depends on them runs in a child of its own (`child_…`).

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use crate::common::s3_server::{self, Server, answering, s3_endpoint, unique};
use crate::common::{Image, NOW, name, noise, options};
use futures::future::BoxFuture;
use phos_storage::s3::{ChecksumChoice, Connection, CredentialsError, S3Options};
use phos_storage::{FaultKind, JobError, OpenError, Pacer, RetryPolicy, Store, StoreOptions};

/// Runs `child` of this file in a process of its own.
fn in_child(child: &str, env: &[(&str, &str)]) -> String {
    s3_server::in_child(&format!("s3::{child}"), env)
}

/// The same, with credentials in the environment and the server as the endpoint.
fn with_keys(child: &str, env: &[(&str, &str)]) -> String {
    s3_server::with_keys(&format!("s3::{child}"), env)
}

async fn connection(address: &str) -> Connection {
    Connection::new(address, &RetryPolicy::immediate(1), &S3Options::default())
        .await
        .unwrap()
}

/// What was written by somebody is not shown to anybody: any signature will do.
const SIGNATURE: &str = "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/s3/aws4_request, \
                         SignedHeaders=host, Signature=none";

impl Server {
    async fn delete(&self, path: &str) {
        let answer = reqwest::Client::new()
            .delete(format!("{}/{path}", self.0))
            .header("Authorization", SIGNATURE)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {answer:?}");
    }

    /// What an object holds.
    async fn content(&self, path: &str) -> Vec<u8> {
        let answer = reqwest::Client::new()
            .get(format!("{}/{path}", self.0))
            .header("Authorization", SIGNATURE)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {answer:?}");
        answer.bytes().await.unwrap().to_vec()
    }

    /// What is said of an object, its checksum included.
    async fn header(&self, path: &str, header: &str) -> Option<String> {
        let answer = reqwest::Client::new()
            .head(format!("{}/{path}", self.0))
            .header("x-amz-checksum-mode", "ENABLED")
            .header("Authorization", SIGNATURE)
            .send()
            .await
            .unwrap();
        assert!(answer.status().is_success(), "{path}: {answer:?}");
        let value = answer.headers().get(header)?;
        Some(value.to_str().unwrap().to_owned())
    }

    /// Keys below a prefix.
    async fn keys(&self, bucket: &str, prefix: &str) -> Vec<String> {
        let listing = self
            .get(&format!("{bucket}?list-type=2&prefix={prefix}"))
            .await;
        listing
            .split("<Key>")
            .skip(1)
            .map(|rest| rest.split("</Key>").next().unwrap().to_owned())
            .collect()
    }
}

/// What is larger goes up in parts of this size.
const PART: usize = 5 << 20;

/// An image of one large and one small pack.
async fn written(address: &str, s3: S3Options) {
    let mut options: StoreOptions = options(3);
    options.pack_size = 8 << 20;
    options.part_size = PART;
    options.s3 = s3;
    let store = Store::open(address, options).await.unwrap();
    store.probe().await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    // More than a part, less than a part, and next to nothing.
    let image = Image::of((0..11).map(|i| noise(i, 1 << 20)).collect());
    let commit = image.commit(&job, epoch).await.unwrap();
    assert_eq!(commit.manifest.packs.len(), 2, "one goes up in parts");
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
    let small = Image::of(vec![noise(50, 1000)]);
    small.commit(&job, epoch).await.unwrap();
}

/// Headers of checksums: requests send them, and who asks for an object's is answered with them.
const CHECKSUMS: [&str; 2] = ["x-amz-checksum-sha256", "x-amz-checksum-crc64nvme"];

fn checksum_header(checksum: ChecksumChoice) -> Option<&'static str> {
    match checksum {
        ChecksumChoice::Auto | ChecksumChoice::None => None,
        ChecksumChoice::Sha256 => Some(CHECKSUMS[0]),
        ChecksumChoice::Crc64Nvme => Some(CHECKSUMS[1]),
    }
}

#[test]
fn class_key_and_checksum_arrive_with_the_objects() {
    for checksum in ["auto", "none", "sha256", "crc64nvme"] {
        let recorder = Recorder::to(&s3_endpoint());
        let endpoint = format!("http://{}", recorder.address);
        // What is stored is looked at there.
        with_keys(
            "child_writes_objects",
            &[
                ("AWS_ENDPOINT_URL", &endpoint),
                ("PHOS_TEST_CHECKSUM", checksum),
            ],
        );
        // Parts are not objects, so only here it is seen that each came with one.
        let sent = checksum_header(checksum.parse().unwrap());
        let puts = recorder.puts();
        for put in &puts {
            let found: Vec<&str> = (CHECKSUMS.into_iter())
                .filter(|name| put.headers.contains(*name))
                .collect();
            assert_eq!(found, sent.as_slice(), "{checksum}: {}", put.target);
        }
        let packs = puts.iter().filter(|put| put.target.contains("/packs/"));
        let (parts, whole): (Vec<_>, Vec<_>) = packs.partition(|put| put.is_part());
        assert!(
            parts.len() >= 2 && whole.len() >= 2,
            "{checksum}: {parts:?} and {whole:?}"
        );
    }
}

#[tokio::test]
#[ignore = "started by class_key_and_checksum_arrive_with_the_objects"]
async fn child_writes_objects() {
    let checksum: ChecksumChoice = std::env::var("PHOS_TEST_CHECKSUM")
        .unwrap()
        .parse()
        .unwrap();
    let (server, prefix) = (Server::there(), unique("objects"));
    let s3 = S3Options {
        storage_class: Some("standard_ia".parse().unwrap()),
        sse_kms_key: Some("alias/training".into()),
        checksum,
    };
    written(&format!("s3://phos-test/{prefix}"), s3).await;
    let keys = server.keys("phos-test", &prefix).await;
    let kept = checksum_header(checksum);
    let (mut rare, mut others, mut in_one_piece) = (0, 0, 0);
    for key in &keys {
        let path = format!("phos-test/{key}");
        let class = server.header(&path, "x-amz-storage-class").await;
        let length = server.header(&path, "content-length").await.unwrap();
        let length: u64 = length.parse().unwrap();
        if key.contains("/packs/") && length >= 128 << 10 {
            rare += 1;
            assert_eq!(class.as_deref(), Some("STANDARD_IA"), "{key}");
        } else {
            others += 1;
            assert!(class.is_none_or(|c| c == "STANDARD"), "{key}");
        }
        let encryption = server.header(&path, "x-amz-server-side-encryption").await;
        assert_eq!(encryption.as_deref(), Some("aws:kms"), "{key}");
        for name in CHECKSUMS {
            let found = server.header(&path, name).await;
            assert_eq!(
                found.is_some(),
                kept == Some(name),
                "{key}: {name} {found:?}"
            );
            // Of what came in parts the server made one of theirs.
            if let Some(found) = found
                && checksum == ChecksumChoice::Sha256
                && length <= PART as u64
            {
                let content = server.content(&path).await;
                let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, &content);
                assert_eq!(found, aws_smithy_types::base64::encode(digest), "{key}");
            }
        }
        in_one_piece += u64::from(key.contains("/packs/") && length <= PART as u64);
    }
    assert!(rare == 2 && others >= 5, "{rare} and {others} of {keys:?}");
    assert_eq!(in_one_piece, 2, "and one in parts: {keys:?}");
}

/// A way to the server on which it is seen with which access keys requests are signed, and what comes with objects.
///
/// moto keeps the checksum of an object only if a header of the AWS tools names its algorithm, which S3 does not ask for and
/// object_store does not send. It is added here where there is a checksum, and nowhere else.
#[derive(Clone)]
struct Recorder {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
    requests: Arc<AtomicUsize>,
    puts: Arc<Mutex<Vec<Put>>>,
}

/// A request that sent an object or a part of one.
#[derive(Debug, Clone)]
struct Put {
    /// Path and query.
    target: String,
    /// Names of its headers.
    headers: BTreeSet<String>,
}

impl Put {
    fn is_part(&self) -> bool {
        self.target.contains("uploadId=")
    }
}

impl Recorder {
    fn to(endpoint: &str) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let recorder = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            requests: Arc::default(),
            puts: Arc::default(),
        };
        let server = endpoint.trim_start_matches("http://").to_owned();
        let there = recorder.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let upstream = TcpStream::connect(&server).unwrap();
                let (mut from, mut to) =
                    (upstream.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || std::io::copy(&mut from, &mut to));
                let there = there.clone();
                std::thread::spawn(move || there.record(client, upstream));
            }
        });
        recorder
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }

    fn puts(&self) -> Vec<Put> {
        self.puts.lock().unwrap().clone()
    }

    /// Passes on one request after the other.
    fn record(&self, client: TcpStream, mut server: TcpStream) {
        let mut client = BufReader::new(client);
        while let Some((head, length)) = self.head(&mut client) {
            let mut body = client.by_ref().take(length);
            if server.write_all(head.as_bytes()).is_err()
                || std::io::copy(&mut body, &mut server).is_err()
            {
                return;
            }
        }
        let _ = server.shutdown(std::net::Shutdown::Write);
    }

    /// The head of the next request as it is passed on, and the length of its body; `None` if there is none.
    fn head(&self, client: &mut impl BufRead) -> Option<(String, u64)> {
        let mut next = || {
            let mut line = String::new();
            let read = client.read_line(&mut line).ok()?;
            (read > 0).then_some(line)
        };
        let request = next()?;
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut put = Put {
            target: request.split(' ').nth(1)?.to_owned(),
            headers: BTreeSet::new(),
        };
        let is_put = request.starts_with("PUT ");
        let (mut head, mut length) = (request, 0);
        loop {
            let line = next()?;
            if let Some((name, value)) = line.trim_end().split_once(": ") {
                if let Some((_, key)) = value.split_once("Credential=") {
                    let key = key.split('/').next().unwrap().to_owned();
                    self.seen.lock().unwrap().push(key);
                }
                let name = name.to_ascii_lowercase();
                if name == "content-length" {
                    length = value.parse().ok()?;
                }
                if let Some(algorithm) = name.strip_prefix("x-amz-checksum-")
                    && is_put
                    && !put.is_part()
                {
                    head += "x-amz-sdk-checksum-algorithm: ";
                    head += &algorithm.to_ascii_uppercase();
                    head += "\r\n";
                }
                put.headers.insert(name);
            }
            head += &line;
            if line.trim_end().is_empty() {
                break;
            }
        }
        if is_put {
            self.puts.lock().unwrap().push(put);
        }
        Some((head, length))
    }
}

/// What a child does with whatever credentials it finds: all of a checkpoint.
#[tokio::test]
#[ignore = "started by tests of credentials"]
async fn child_writes_a_checkpoint() {
    let address = std::env::var("PHOS_TEST_S3_ADDRESS").unwrap();
    let store = Store::open(&address, options(5)).await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let image = Image::of(vec![noise(1, 100_000)]);
    let commit = image.commit(&job, epoch).await.unwrap();
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
    let there = connection(&address).await;
    let found = there.credentials().await.unwrap();
    println!("FOUND {found:?} IN {}", there.region());
}

fn signed_by(env: &[(&str, &str)]) -> (BTreeSet<String>, String) {
    let recorder = Recorder::to(&s3_endpoint());
    let endpoint = format!("http://{}", recorder.address);
    let address = format!("s3://phos-test/{}", unique("credentials"));
    let mut all = vec![
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("PHOS_TEST_S3_ADDRESS", &address),
        ("AWS_EC2_METADATA_DISABLED", "true"),
    ];
    all.extend(env);
    let said = in_child("child_writes_a_checkpoint", &all);
    let seen = recorder.seen();
    (seen.into_iter().collect(), said)
}

fn only(key: &str) -> BTreeSet<String> {
    BTreeSet::from([key.to_owned()])
}

#[test]
fn keys_of_the_environment_come_first() {
    let files = tempfile::tempdir().unwrap();
    let credentials = files.path().join("credentials");
    std::fs::write(
        &credentials,
        "[default]\naws_access_key_id = OFFILE\naws_secret_access_key = s\n",
    )
    .unwrap();
    let credentials = credentials.display().to_string();
    let (seen, _) = signed_by(&[
        ("AWS_SHARED_CREDENTIALS_FILE", &credentials),
        ("AWS_ACCESS_KEY_ID", "OFENVIRONMENT"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ]);
    assert_eq!(seen, only("OFENVIRONMENT"));
}

#[test]
fn a_profile_of_the_files_of_the_aws_tools() {
    let files = tempfile::tempdir().unwrap();
    let (config, credentials) = (
        files.path().join("config"),
        files.path().join("credentials"),
    );
    std::fs::write(
        &credentials,
        "[default]\naws_access_key_id = OTHER\naws_secret_access_key = s\n\
         [training]\naws_access_key_id = OFPROFILE\naws_secret_access_key = s\n",
    )
    .unwrap();
    std::fs::write(&config, "[profile training]\nregion = eu-central-1\n").unwrap();
    let (seen, said) = signed_by(&[
        ("AWS_CONFIG_FILE", &config.display().to_string()),
        (
            "AWS_SHARED_CREDENTIALS_FILE",
            &credentials.display().to_string(),
        ),
        ("AWS_PROFILE", "training"),
    ]);
    assert_eq!(seen, only("OFPROFILE"));
    assert!(
        said.contains("the profile") && said.contains("IN eu-central-1"),
        "{said}"
    );
}

#[test]
fn a_process_that_hands_out_credentials() {
    let files = tempfile::tempdir().unwrap();
    let (config, answer) = (files.path().join("config"), files.path().join("answer"));
    std::fs::write(
        &answer,
        r#"{"Version": 1, "AccessKeyId": "OFPROCESS", "SecretAccessKey": "s", "SessionToken": "t",
            "Expiration": "2999-01-01T00:00:00Z"}"#,
    )
    .unwrap();
    std::fs::write(
        &config,
        format!("[default]\ncredential_process = cat {}\n", answer.display()),
    )
    .unwrap();
    let (seen, said) = signed_by(&[("AWS_CONFIG_FILE", &config.display().to_string())]);
    assert_eq!(seen, only("OFPROCESS"));
    assert!(
        said.contains("expires: Some") && !said.contains("SecretAccessKey"),
        "{said}"
    );
}

#[test]
fn a_store_that_asks_for_no_signature() {
    let recorder = Recorder::to(&s3_endpoint());
    let endpoint = format!("http://{}", recorder.address);
    in_child(
        "child_signs_nothing",
        &[
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_SKIP_SIGNATURE", "true"),
        ],
    );
    assert_eq!(recorder.seen(), [""; 0]);
    // The marker is read and created, and the jobs are listed.
    assert!(recorder.requests.load(Ordering::SeqCst) >= 3);
}

#[tokio::test]
#[ignore = "started by a_store_that_asks_for_no_signature"]
async fn child_signs_nothing() {
    let address = format!("s3://phos-test/{}", unique("unsigned"));
    let store = Store::open(&address, options(5)).await.unwrap();
    // The server lets nobody read what anybody wrote; what is public it lists.
    store.initialise().await.unwrap();
    assert_eq!(store.jobs().await.unwrap(), []);
    let there = connection(&address).await;
    assert_eq!(there.credentials().await.unwrap(), None);
}

/// A container's credential service: each set of keys lives for a second.
#[derive(Clone, Default)]
struct ShortLived {
    /// When which ends.
    handed_out: Arc<Mutex<Vec<SystemTime>>>,
}

impl ShortLived {
    const LIFE: Duration = Duration::from_secs(2);

    fn serve(&self) -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let this = self.clone();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut head = [0; 4096];
                let _ = client.read(&mut head);
                let end = SystemTime::now() + Self::LIFE;
                let mut handed_out = this.handed_out.lock().unwrap();
                let n = handed_out.len();
                handed_out.push(end);
                drop(handed_out);
                let body = format!(
                    r#"{{"AccessKeyId": "SET{n:04}", "SecretAccessKey": "s", "Token": "t", "Expiration": "{}"}}"#,
                    rfc3339(end)
                );
                let _ = write!(
                    client,
                    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
                     Connection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        });
        address
    }
}

/// In seconds, rounded down.
fn rfc3339(time: SystemTime) -> String {
    let seconds = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let (days, rest) = (seconds / 86400, seconds % 86400);
    // Days since 1970 as a date: the calendar repeats each 400 years, which begin with March.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (
        day - (153 * month + 2) / 5 + 1,
        if month < 10 { month + 3 } else { month - 9 },
    );
    let year = era * 400 + year + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{date:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}

#[test]
fn dates() {
    let at = |seconds| rfc3339(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
    assert_eq!(at(0), "1970-01-01T00:00:00Z");
    assert_eq!(at(951_827_696), "2000-02-29T12:34:56Z");
    assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
}

/// Lets a pack go when all credentials that were handed out before have ended.
#[derive(Debug)]
struct AfterTheirEnd {
    clock: String,
}

impl Pacer for AfterTheirEnd {
    fn take(&self, _bytes: u64) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let life = ShortLived::LIFE;
            let begun = Instant::now();
            // The wait is for the clock that the credentials end by.
            while begun.elapsed() < life {
                tokio::time::sleep(life.saturating_sub(begun.elapsed())).await;
            }
            assert!(!self.clock.is_empty());
        })
    }
}

#[test]
fn credentials_are_renewed_while_a_checkpoint_goes_up() {
    let recorder = Recorder::to(&s3_endpoint());
    let service = ShortLived::default();
    let uri = format!("http://{}/role", service.serve());
    let endpoint = format!("http://{}", recorder.address);
    let address = format!("s3://phos-test/{}", unique("renewed"));
    let said = in_child(
        "child_outlives_its_credentials",
        &[
            ("AWS_ENDPOINT_URL", &endpoint),
            ("AWS_CONTAINER_CREDENTIALS_FULL_URI", &uri),
            ("AWS_EC2_METADATA_DISABLED", "true"),
            ("PHOS_TEST_S3_ADDRESS", &address),
        ],
    );
    let seen = recorder.seen();
    let sets: BTreeSet<&String> = seen.iter().collect();
    assert!(
        sets.len() >= 4,
        "with {} sets of keys only: {sets:?}\n{said}",
        sets.len()
    );
    // Renewed in order: none is used after a newer one by more than what was under way.
    let handed_out = service.handed_out.lock().unwrap().len();
    assert!(handed_out >= sets.len(), "{handed_out} handed out");
    assert!(
        handed_out < 3 * sets.len() + 4,
        "the service was asked {handed_out} times for {} sets",
        sets.len()
    );
}

#[tokio::test]
#[ignore = "started by credentials_are_renewed_while_a_checkpoint_goes_up"]
async fn child_outlives_its_credentials() {
    let address = std::env::var("PHOS_TEST_S3_ADDRESS").unwrap();
    let mut options = options(5);
    options.uploads = 1;
    options.pacer = Some(Arc::new(AfterTheirEnd {
        clock: "the system's".into(),
    }));
    let store = Store::open(&address, options).await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    // Packs of 64 KiB: one for each chunk.
    let image = Image::of((0..4).map(|i| noise(i, 90_000)).collect());
    let commit = image.commit(&job, epoch).await.unwrap();
    assert!(commit.manifest.packs.len() >= 4);
    assert_eq!(Image::read(&job, &commit.manifest).await.unwrap(), image);
}

#[test]
fn without_credentials_it_is_said_at_once_what_was_tried() {
    // Nobody there; somebody who never answers.
    let silent = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    for metadata in ["http://127.0.0.1:9", &silent] {
        in_child(
            "child_has_no_credentials",
            &[
                ("AWS_ENDPOINT_URL", &s3_endpoint()),
                ("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata),
            ],
        );
    }
}

/// One that answers 403 to everybody: as good as none.
#[test]
fn a_metadata_service_that_refuses_is_none() {
    let refusing =
        answering("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    in_child(
        "child_has_no_credentials",
        &[
            ("AWS_ENDPOINT_URL", &s3_endpoint()),
            (
                "AWS_EC2_METADATA_SERVICE_ENDPOINT",
                &format!("http://{refusing}"),
            ),
        ],
    );
}

#[test]
fn a_profile_that_is_not_there_is_named() {
    let files = tempfile::tempdir().unwrap();
    let config = files.path().join("config");
    std::fs::write(&config, "[profile other]\nregion = eu-central-1\n").unwrap();
    in_child(
        "child_names_the_profile",
        &[
            ("AWS_ENDPOINT_URL", &s3_endpoint()),
            ("AWS_CONFIG_FILE", &config.display().to_string()),
            ("AWS_PROFILE", "training"),
            ("AWS_EC2_METADATA_DISABLED", "true"),
        ],
    );
}

#[tokio::test]
#[ignore = "started by a_profile_that_is_not_there_is_named"]
async fn child_names_the_profile() {
    let error = Store::open("s3://phos-test/none", options(1))
        .await
        .unwrap_err();
    assert!(
        error.is_permanent() && error.to_string().contains("`training` was not defined"),
        "{error}"
    );
}

#[tokio::test]
#[ignore = "started by without_credentials_it_is_said_at_once_what_was_tried"]
async fn child_has_no_credentials() {
    let begun = Instant::now();
    let error = Store::open("s3://phos-test/none", options(1))
        .await
        .unwrap_err();
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(15), "after {took:?}");
    assert!(error.is_permanent(), "{error}");
    assert!(
        matches!(&error, OpenError::Store { source, .. } if source.kind() == FaultKind::Unauthenticated),
        "{error:?}"
    );
    let said = error.to_string();
    for part in [
        "no credentials for S3",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "the container's role",
        "metadata service",
    ] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    let there = connection("s3://phos-test/none").await;
    assert!(matches!(
        there.credentials().await,
        Err(CredentialsError::None { .. })
    ));
}

#[test]
fn classes_that_cannot_be_read_at_once_are_refused() {
    let error = "deep_archive".parse::<phos_storage::s3::StorageClass>();
    assert!(error.unwrap_err().contains("cannot be read before"));
    assert!("a b".parse::<phos_storage::s3::StorageClass>().is_err());
    let class: phos_storage::s3::StorageClass = "Glacier_IR".parse().unwrap();
    assert_eq!(class.as_str(), "GLACIER_IR");
}

#[test]
fn a_history_is_absent_where_its_bucket_is_gone_or_another_one() {
    with_keys("child_loses_a_bucket", &[]);
}

#[tokio::test]
#[ignore = "started by a_history_is_absent_where_its_bucket_is_gone_or_another_one"]
async fn child_loses_a_bucket() {
    let server = Server::there();
    for another in [false, true] {
        let bucket = unique("absent");
        server.put(&bucket, "").await;
        let address = &format!("s3://{bucket}/runs");
        let begun = |seed, checkpoints| async move {
            let store = Store::open(address, options(seed)).await.unwrap();
            store.initialise().await.unwrap();
            let job = store.job(name("job"));
            let epoch = job.take_over("node", NOW).await.unwrap().epoch;
            for version in 0..checkpoints {
                let image = Image::of(vec![noise(version, 3000)]);
                image.commit(&job, epoch).await.unwrap();
            }
            (job, epoch)
        };
        let (job, epoch) = begun(1, 1).await;
        job.expect(job.known().await.unwrap());
        for key in server.keys(&bucket, "").await {
            server.delete(&format!("{bucket}/{key}")).await;
        }
        if another {
            // Of another run of the same name, and longer.
            begun(2, 3).await;
        } else {
            server.delete(&bucket).await;
        }
        for outcome in [
            job.state().await.map(drop),
            job.newest_restorable().await.map(drop),
            job.begin(epoch).await.map(drop),
            job.take_over("again", NOW).await.map(drop),
        ] {
            match outcome {
                Err(JobError::Store(fault)) => {
                    assert_eq!(fault.kind(), FaultKind::Absent, "{another}: {fault}");
                }
                other => panic!("{another}: {other:?}"),
            }
        }
    }
}
