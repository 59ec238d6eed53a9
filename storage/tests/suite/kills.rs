//! Real processes, the real S3 server, real SIGKILLs: nothing committed is lost, nothing uncommitted is visible, no chunk of
//! a visible manifest is missing; and of two that believe to own a job one learns that it does not.
//!
//! The processes are this test's own program, told by its environment what to do. They say on standard output what they
//! were told of each commit; whoever is killed before it could say so is judged by what stands in the store.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use crate::common::{Image, NOW, name, noise};
use bytes::Bytes;
use object_store::aws::AmazonS3Builder;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};
use phos_storage::{
    Candidate, CheckpointNumber, CollectOptions, Commit, Job, JobError, Manifest, NonceSource,
    RetryPolicy, Store, StoreOptions, UnixMillis, VerifyOptions,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What a worker that lost its job ends with, as `phos-ft` does.
const FENCED: i32 = 76;
const LIMIT: Duration = Duration::from_secs(60);

fn address(what: &str) -> String {
    crate::common::s3_server::s3_endpoint();
    format!("s3://phos-test/kills-{}-{what}", std::process::id())
}

fn environment() -> [(&'static str, String); 5] {
    [
        ("AWS_ENDPOINT_URL", crate::common::s3_server::s3_endpoint()),
        ("AWS_ALLOW_HTTP", "true".into()),
        ("AWS_REGION", "us-east-1".into()),
        ("AWS_ACCESS_KEY_ID", "test".into()),
        ("AWS_SECRET_ACCESS_KEY", "test".into()),
    ]
}

/// Nonces of a process: never those of another one.
fn options(seed: u64) -> StoreOptions {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let state = std::sync::Mutex::new(move || {
        let mut nonce = [0; 16];
        rng.fill_bytes(&mut nonce);
        nonce
    });
    StoreOptions {
        retry: RetryPolicy::immediate(4),
        // Some packs go up at once, some in parts.
        pack_size: if seed.is_multiple_of(3) {
            6 << 20
        } else {
            64 << 10
        },
        part_size: 5 << 20,
        uploads: 2,
        ..StoreOptions::new(NonceSource::new(move || (state.lock().unwrap())()))
    }
}

/// What a checkpoint is of. Small ones fill a dozen packs, of which three are lost with whoever uploads them; big ones go
/// up in parts.
#[derive(Debug, Clone, Copy)]
struct Content {
    /// Equal numbers are equal images; from one to the next a few chunks change.
    number: u64,
    big: bool,
}

impl Content {
    fn image(self) -> Image {
        let number = self.number;
        let mut device: Vec<Bytes> = (0..12)
            .map(|i| noise(100 * (number / 10) + i, 20_000))
            .collect();
        device.extend((0..24).map(|i| noise(1_000_000_000 + 100 * number + i, 20_000)));
        if self.big {
            device.extend((0..7).map(|i| noise(2_000_000_000 + 100 * (number / 4) + i, 1 << 20)));
        }
        Image::of(device)
    }

    fn of(manifest: &Manifest) -> Self {
        Self {
            number: manifest.body.timings.figures["content"],
            big: manifest.body.timings.figures["big"] == 1,
        }
    }
}

fn tag_of(manifest: &Manifest) -> u64 {
    manifest.body.timings.figures["tag"]
}

async fn commit(
    job: &Job,
    epoch: phos_storage::Epoch,
    tag: u64,
    content: Content,
) -> Result<Commit, phos_storage::CommitError> {
    let image = content.image();
    let mut body = image.body();
    body.timings.figures.insert("tag".into(), tag);
    let (number, big) = (content.number, content.big);
    body.timings.figures.insert("content".into(), number);
    body.timings.figures.insert("big".into(), big.into());
    let writer = match job.begin(epoch).await {
        Ok(writer) => writer,
        Err(JobError::Fenced { job, epoch, by }) => {
            return Err(phos_storage::CommitError::Fenced { job, epoch, by });
        }
        Err(error) => panic!("{error}"),
    };
    println!("BEGUN {tag} {number}");
    if let Err(error) = image.put(&writer).await {
        panic!("{error}");
    }
    println!("PUT {tag}");
    writer.commit(body, UnixMillis(NOW.0 + tag)).await
}

fn keep_three(all: &[Candidate]) -> std::collections::BTreeSet<CheckpointNumber> {
    all.iter().rev().take(3).map(|c| c.number).collect()
}

/// A process of the tests below: takes the job over and takes checkpoints until it is killed or fenced.
#[test]
#[ignore = "a process of the other tests"]
fn worker() {
    let Ok(address) = std::env::var("PHOS_KILLS_STORE") else {
        return;
    };
    let number = |name: &str| -> u64 { std::env::var(name).unwrap().parse().unwrap() };
    let (seed, first) = (number("PHOS_KILLS_SEED"), number("PHOS_KILLS_TAG"));
    let first_content = number("PHOS_KILLS_CONTENT");
    let outcome = crate::common::runtime().block_on(async {
        let store = Store::open(&address, options(seed)).await.unwrap();
        store.initialise().await.unwrap();
        let job = store.job(name("job"));
        let epoch = job
            .take_over(&format!("worker {seed}"), NOW)
            .await
            .unwrap()
            .epoch;
        println!("OWNS {epoch}");
        for tag in first.. {
            let content = Content {
                number: first_content + tag - first,
                big: seed % 3 == 0,
            };
            match commit(&job, epoch, tag, content).await {
                Ok(done) => println!("TOLD {tag} {} {}", done.number, done.resumed.chunks),
                Err(error) if error.is_fenced() => {
                    println!("FENCED {error}");
                    return FENCED;
                }
                Err(error) => panic!("{error}"),
            }
            if tag % 2 == 0 {
                let options = CollectOptions {
                    epoch: Some(epoch),
                    ..CollectOptions::default()
                };
                match job.collect(&keep_three, options, NOW).await {
                    Ok(_) => println!("COLLECTED"),
                    Err(error) if error.is_fenced() => {
                        println!("FENCED {error}");
                        return FENCED;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
        0
    });
    std::process::exit(outcome);
}

struct Worker {
    child: Child,
    said: Receiver<String>,
}

impl Worker {
    /// Its checkpoints have the tags from `first` on, and are of the contents from `content` on.
    fn start(address: &str, seed: u64, first: u64, content: u64) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::worker", "--ignored", "--nocapture"])
            .envs(environment())
            .env("PHOS_KILLS_STORE", address)
            .env("PHOS_KILLS_SEED", seed.to_string())
            .env("PHOS_KILLS_TAG", first.to_string())
            .env("PHOS_KILLS_CONTENT", content.to_string())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in output.lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, said }
    }

    /// Waits for a line that begins so.
    fn wait_for(&self, word: &str) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let line = self.said.recv_timeout(left);
            let line = line.unwrap_or_else(|e| panic!("no {word:?} from a worker: {e}"));
            if let Some(at) = line.find(word) {
                return line[at..].to_owned();
            }
        }
    }

    fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
        assert!(sent.success());
    }

    /// Kills it; all that it had said.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        // The pipe ends with its process.
        self.said.iter().collect()
    }
}

async fn own_handle(address: &str, seed: u64) -> Job {
    // Of this process alone, before any other thread of it reads the environment.
    Store::open(address, options(seed))
        .await
        .unwrap()
        .job(name("job"))
}

/// Sets what the S3 client reads; each test is a process of its own.
fn use_server() {
    for (name, value) in environment() {
        // SAFETY: nextest runs each test in its own process, and this is its first statement: no other thread reads or
        // writes the environment.
        unsafe { std::env::set_var(name, value) };
    }
}

/// What must hold at any time. The newest visible checkpoint.
async fn check(job: &Job, told: &BTreeMap<u64, u64>, deep: bool) -> Option<u64> {
    let listed = job.list().await.unwrap();
    assert_eq!(listed.damaged, []);
    let visible: Vec<u64> = listed.checkpoints.iter().map(|c| c.number.0).collect();
    let mut tags = BTreeMap::new();
    for (number, manifest) in job.checkpoints().await.unwrap() {
        let manifest = manifest.unwrap_or_else(|e| panic!("checkpoint {number}: {e}"));
        job.check_packs(&manifest).await.unwrap();
        tags.insert(number.0, tag_of(&manifest));
    }
    for (&tag, &number) in told {
        match tags.get(&number) {
            Some(found) => assert_eq!(*found, tag, "checkpoint {number} is another one"),
            // Only retention may take it away, and never the newest.
            None => {
                let gone = job.manifest(CheckpointNumber(number)).await.unwrap_err();
                assert!(
                    matches!(gone, JobError::Removed { .. }),
                    "{tag} {number}: {gone}"
                );
                assert!(
                    visible.iter().any(|n| *n > number),
                    "the newest one was lost"
                );
            }
        }
    }
    if let Some(&newest) = visible.first() {
        let manifest = job.manifest(CheckpointNumber(newest)).await.unwrap();
        let read = Image::read(job, &manifest).await.unwrap();
        assert!(
            read == Content::of(&manifest).image(),
            "{newest} is another image"
        );
    }
    if deep {
        let options = VerifyOptions {
            deep: true,
            quarantine: false,
        };
        let verified = job.verify(options, NOW, &|_| {}).await.unwrap();
        assert!(verified.is_sound(), "{verified:?}");
    }
    visible.first().copied()
}

/// In pieces that run side by side, each with a history of its own: in the profile `slow`.
mod three_hundred {
    use super::*;

    const KILLS: u64 = 50;

    macro_rules! pieces {
        ($($name:ident $piece:literal)*) => {$(
            #[test]
            fn $name() {
                kills($piece);
            }
        )*};
    }
    pieces! { piece_0 0 piece_1 1 piece_2 2 piece_3 3 piece_4 4 piece_5 5 }

    fn kills(piece: u64) {
        let address = address(&format!("kills-{piece}"));
        use_server();
        let runtime = crate::common::runtime();
        let mut rng = ChaCha8Rng::seed_from_u64(piece);
        let job = runtime.block_on(own_handle(&address, u64::MAX - piece));
        let mut told: BTreeMap<u64, u64> = BTreeMap::new();
        let (mut resumed, mut resumptions, mut collected, mut cut_off) = (0, 0, 0, 0);
        // What the last worker was killed in the middle of.
        let mut interrupted = None;
        for kill in piece * KILLS..(piece + 1) * KILLS {
            // Tags grow, so that each commit of all processes has one of its own. A job that is restored takes much the
            // same image next: whoever follows one that was cut off begins with that.
            let first = 1000 * (kill + 1);
            let content = interrupted.take().unwrap_or(first);
            let worker = Worker::start(&address, kill, first, content);
            let mut said = vec![worker.wait_for("OWNS")];
            // Anywhere in the few checkpoints that follow, however fast the machine is.
            for _ in 0..rng.random_range(0..8) {
                said.push(worker.said.recv_timeout(LIMIT).expect("a worker's word"));
            }
            let at = Instant::now() + Duration::from_millis(rng.random_range(0..200));
            loop {
                match worker
                    .said
                    .recv_timeout(at.saturating_duration_since(Instant::now()))
                {
                    Ok(line) => said.push(line),
                    Err(RecvTimeoutError::Timeout) => break,
                    Err(RecvTimeoutError::Disconnected) => panic!("a worker ended: {said:?}"),
                }
            }
            said.extend(worker.kill());
            for line in &said {
                let words: Vec<&str> = line.split_whitespace().collect();
                match words[..] {
                    ["TOLD", tag, number, chunks] => {
                        told.insert(tag.parse().unwrap(), number.parse().unwrap());
                        let chunks: u64 = chunks.parse().unwrap();
                        resumed += chunks;
                        resumptions += u64::from(chunks > 0);
                        interrupted = None;
                    }
                    ["BEGUN", _, content] => interrupted = Some(content.parse().unwrap()),
                    ["COLLECTED"] => collected += 1,
                    _ => {}
                }
            }
            cut_off += u64::from(interrupted.is_some());
            runtime.block_on(check(&job, &told, kill % 25 == 24));
            // Of what is long gone the log need not be asked each time.
            while told.len() > 6 {
                told.pop_first();
            }
        }
        println!(
            "cut off in a checkpoint {cut_off}, gone on with {resumptions} of them ({resumed} chunks), collections \
             {collected}"
        );
        assert!(cut_off > 5 && collected > 5);
        assert!(
            resumptions > 2 && resumed > 5,
            "of {cut_off} checkpoints that were cut off, {resumptions} were gone on with, with {resumed} chunks"
        );

        // A new epoch, and what nobody needs goes.
        runtime.block_on(async {
            let epoch = job.take_over("the last", NOW).await.unwrap().epoch;
            let options = CollectOptions {
                epoch: Some(epoch),
                ..CollectOptions::default()
            };
            job.collect(&keep_three, options, NOW).await.unwrap();
            check(&job, &told, true).await.unwrap();
            let raw = raw();
            let mut needed = std::collections::BTreeSet::new();
            for (_, manifest) in job.checkpoints().await.unwrap() {
                needed.extend(manifest.unwrap().packs.iter().map(|p| p.id.to_string()));
            }
            let prefix = address.trim_start_matches("s3://phos-test/").to_owned();
            let keys = crate::common::keys(&raw).await;
            let packs = format!("{prefix}/jobs/job/packs/");
            let found: std::collections::BTreeSet<String> = (keys.iter())
                .filter_map(|key| key.strip_prefix(&packs).map(str::to_owned))
                .collect();
            assert_eq!(
                found, needed,
                "packs that nobody needs, or that are missing"
            );
            let again = job.collect(&keep_three, options, NOW).await.unwrap();
            assert_eq!((again.packs, again.unfinished_uploads), (0, 0));
        });
    }
}

fn raw() -> impl ObjectStore {
    let builder = AmazonS3Builder::from_env().with_bucket_name("phos-test");
    builder.build().unwrap()
}

#[test]
fn split_brain_one_history_and_the_loser_says_so() {
    let address = address("brain");
    use_server();
    let runtime = crate::common::runtime();
    let job = runtime.block_on(own_handle(&address, u64::MAX - 100));
    // Paused at each of the places of a commit that it says, and resumed when another one has long taken over.
    for (round, word) in ["BEGUN", "PUT", "TOLD", "COLLECTED"]
        .into_iter()
        .enumerate()
    {
        let round = round as u64;
        let first = {
            let tag = 100_000 * (round + 1);
            Worker::start(&address, 3 * round + 1, tag, tag)
        };
        first.wait_for("TOLD");
        first.wait_for(word);
        first.signal("-STOP");
        let mut told: BTreeMap<u64, u64> = BTreeMap::new();
        let second = {
            let tag = 100_000 * (round + 1) + 50_000;
            Worker::start(&address, 3 * round + 2, tag, tag)
        };
        for _ in 0..5 {
            let line = second.wait_for("TOLD");
            let words: Vec<&str> = line.split_whitespace().collect();
            told.insert(words[1].parse().unwrap(), words[2].parse().unwrap());
        }
        first.signal("-CONT");
        let mut first = first;
        let said = first.wait_for("FENCED");
        assert!(said.contains("taken over by worker"), "{said}");
        assert_eq!(first.child.wait().unwrap().code(), Some(FENCED));
        // The winner goes on, undisturbed, and the history is its own.
        second.wait_for("TOLD");
        second.kill();
        runtime.block_on(check(&job, &told, true));
        let records = runtime.block_on(job.records()).unwrap();
        let epochs: Vec<u64> = records
            .iter()
            .map(|(_, r)| r.as_ref().unwrap().epoch.0)
            .collect();
        assert!(epochs.is_sorted(), "{epochs:?}");
    }
}

#[test]
fn an_upload_in_parts_that_was_cut_off_on_s3_is_found_and_ended() {
    let address = address("parts");
    use_server();
    crate::common::runtime().block_on(async {
        let job = own_handle(&address, 7).await;
        let epoch = job.take_over("a", NOW).await.unwrap().epoch;
        let content = Content {
            number: 1,
            big: false,
        };
        commit(&job, epoch, 1, content).await.unwrap();
        let raw = raw();
        let prefix = address.trim_start_matches("s3://phos-test/");
        let living = job.begin(epoch).await.unwrap();
        let note = (crate::common::keys(&raw).await.into_iter())
            .find(|key| key.starts_with(prefix) && key.contains("/writers/"))
            .unwrap();
        let alive = note.rsplit('/').next().unwrap();
        for writer in ["ab".repeat(16), "cd".repeat(16), alive.to_owned()] {
            let key = Path::from(format!("{prefix}/jobs/job/packs/{writer}-00000000"));
            let mut upload = raw.put_multipart(&key).await.unwrap();
            upload.put_part(vec![7; 5 << 20].into()).await.unwrap();
        }
        let options = CollectOptions::default();
        let done = job.collect(&keep_three, options, NOW).await.unwrap();
        assert_eq!(done.unfinished_uploads, 2, "and not that of the living one");
        let again = job.collect(&keep_three, options, NOW).await.unwrap();
        assert_eq!(again.unfinished_uploads, 0);
        drop(living);
        let last = job.collect(&keep_three, options, NOW).await.unwrap();
        assert_eq!(last.unfinished_uploads, 1);
        check(&job, &BTreeMap::new(), true).await.unwrap();
    });
}
