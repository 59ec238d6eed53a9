//! The store beside the tools that people would use instead: `make bench-storage`.
//!
//! One run, one machine, alternating: bytes that look like training state go into a directory and onto an S3 server and
//! come back, by phos-ft, by `zstd -1 -T0` and a copy, by restic and by plain puts. Medians; the medium and all sizes are
//! printed, and the figures are in `target/bench/storage.json`.
//!
//! What is compared:
//!
//! * *Ingest*: from memory to a committed checkpoint, synced. Each chunk is digested by the writer, which checks the name
//!   that the GPU gave it. Beside it `zstd -1 -T0` of a file that lies in the page cache, synced.
//! * *Second image*, 1 % of the chunks changed: all names are computed here, on the CPU, as restic has to find out what
//!   changed too; in a job they come from the GPU.
//! * *Restore*: to memory, each chunk decoded and digested. Beside it `zstd -d` to nowhere. Both read what is in the page
//!   cache.
//! * *Peak memory*: what the process grows by beyond the image, against the bound that the options give.
//! * *Sparse images*: zeros but for one chunk in 256; the cost of a chunk must not depend on how many there are.
//!
//! `PHOS_BENCH_MIB` (4096), `PHOS_BENCH_S3_MIB` (512: the server keeps everything in memory, and is slow), `PHOS_BENCH_ROUNDS`
//! (5), `PHOS_BENCH_DIR` (below the target directory).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod data;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use bytes::Bytes;
use data::{body, changed, on_all_cores, restore, training_state};
use futures::{StreamExt, TryStreamExt, stream};
use object_store::aws::AmazonS3Builder;
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, WriteMultipart};
use phos_policies::encoding::{self, Levels, Shape};
use phos_storage::{
    CHUNK_SIZE, Digest, Encoding, EncodingPolicy, Epoch, Job, JobName, Manifest, NonceSource,
    Pressure, Sample, Store, StoreOptions, UnixMillis,
};
use serde_json::{Value, json};

const NOW: UnixMillis = UnixMillis(1_790_000_000_000);
const GIB: u64 = 1 << 30;

/// As `phos-ft` encodes: its policy, with no checkpoint due.
#[derive(Debug, Default)]
struct Adaptive(Mutex<Levels>);

impl EncodingPolicy for Adaptive {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        let shape = encoding::choose(encoding::Sample {
            bytes: sample.len(),
            plain: sample.plain(),
            planes2: sample.planes2(),
            planes4: sample.planes4(),
        });
        match (shape, self.0.lock().unwrap().level(shape)) {
            (Shape::Raw, _) | (_, None) => Encoding::Raw,
            (Shape::Plain, Some(level)) => Encoding::Zstd(level),
            (Shape::Planes2, Some(level)) => Encoding::Planes2(level),
            (Shape::Planes4, Some(level)) => Encoding::Planes4(level),
        }
    }

    fn pack_closed(&self, pressure: Pressure) {
        self.0.lock().unwrap().pack_closed(encoding::Pressure {
            link_is_full: pressure.link_is_full,
            encoders_are_full: pressure.encoders_are_full,
            late: false,
        });
    }
}

fn options() -> StoreOptions {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    let nonces = NonceSource::new(|| {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        nonce
    });
    StoreOptions {
        encoding: Arc::new(Adaptive::default()),
        ..StoreOptions::new(nonces)
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|value| value.parse().ok())
        .unwrap_or(default)
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// Seconds of each thing that was measured, in each round.
#[derive(Default)]
struct Times(BTreeMap<&'static str, Vec<f64>>);

impl Times {
    fn time<T>(&mut self, what: &'static str, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let done = work();
        let seconds = start.elapsed().as_secs_f64();
        eprintln!("    {what}: {seconds:.2} s");
        self.0.entry(what).or_default().push(seconds);
        done
    }

    fn seconds(&self, what: &str) -> f64 {
        median(&self.0[what])
    }

    /// MB/s of so many bytes of the image.
    fn rate(&self, what: &str, bytes: u64) -> f64 {
        bytes as f64 / self.seconds(what) / 1e6
    }

    fn table(&self, bytes: u64) {
        for (what, all) in &self.0 {
            let (least, most) = all
                .iter()
                .fold((f64::MAX, 0.0_f64), |(l, m), &s| (l.min(s), m.max(s)));
            println!(
                "  {what:<44} {:>8.2} s {:>8.0} MB/s   ({least:.2} to {most:.2} s, {} times)",
                self.seconds(what),
                self.rate(what, bytes),
                all.len()
            );
        }
    }

    fn json(&self, bytes: u64) -> Value {
        let one = |(what, all): (&&'static str, &Vec<f64>)| {
            let value = json!({"seconds": all, "median_seconds": median(all), "mb_per_s": self.rate(what, bytes)});
            ((*what).to_owned(), value)
        };
        Value::Object(self.0.iter().map(one).collect())
    }
}

/// Runs a program to its end; what it said if it failed.
fn run(command: &mut Command) -> Result<(), String> {
    let out = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("{command:?}: {error}: run scripts/setup.sh --bench"))?;
    if out.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&out.stderr).into_owned();
    Err(format!("{command:?}: {}: {said}", out.status))
}

/// The most memory that this process had since the last time, and what it has now, in bytes.
fn memory() -> (u64, u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    };
    let read = (field("VmHWM:"), field("VmRSS:"));
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    read
}

/// What a piece of work grows this process by.
fn growth<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let (_, before) = memory();
    let done = work();
    let (most, _) = memory();
    (done, most.saturating_sub(before))
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    rounds: u64,
    work: PathBuf,
}

/// An image and its names.
struct Image {
    chunks: Vec<Bytes>,
    digests: Vec<Digest>,
}

impl Image {
    fn new(chunks: Vec<Bytes>) -> Self {
        let digests = digests(&chunks);
        Self { chunks, digests }
    }

    fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    fn write_to(&self, path: &Path) {
        let mut file = File::create(path).unwrap();
        for chunk in &self.chunks {
            std::io::Write::write_all(&mut file, chunk).unwrap();
        }
        file.sync_all().unwrap();
    }
}

fn digests(chunks: &[Bytes]) -> Vec<Digest> {
    let found: Vec<Mutex<Option<Digest>>> = chunks.iter().map(|_| Mutex::default()).collect();
    on_all_cores(chunks.len(), |i| {
        *found[i].lock().unwrap() = Some(Digest::of(&chunks[i]));
    });
    found
        .into_iter()
        .map(|digest| digest.into_inner().unwrap().unwrap())
        .collect()
}

async fn ingest(job: &Job, epoch: Epoch, chunks: &[Bytes], digests: &[Digest]) -> (Manifest, u64) {
    let writer = job.begin(epoch).await.unwrap();
    let new = (chunks.iter().zip(digests)).filter(|(_, digest)| !writer.contains(digest));
    // As many as the sidecar has on their way; each on its own task, as there.
    let puts = new.map(|(chunk, digest)| {
        let (writer, chunk, digest) = (writer.clone(), chunk.clone(), *digest);
        tokio::spawn(async move { writer.put(digest, chunk).await.unwrap() })
    });
    stream::iter(puts)
        .buffer_unordered(16)
        .for_each(|put| async move { assert!(put.is_ok(), "a put ended: {put:?}") })
        .await;
    let done = writer.commit(body(digests), NOW).await.unwrap();
    (done.manifest, done.stats.stored_bytes)
}

async fn open(store: Arc<dyn ObjectStore>, prefix: &str) -> (Job, Epoch) {
    let store = Store::from_object_store(store, prefix, options())
        .await
        .unwrap();
    store.initialise().await.unwrap();
    let job = store.job(JobName::new("bench").unwrap());
    let epoch = job.take_over("bench", NOW).await.unwrap().epoch;
    (job, epoch)
}

fn directory(path: &Path) -> Arc<dyn ObjectStore> {
    std::fs::create_dir_all(path).unwrap();
    let store = LocalFileSystem::new_with_prefix(path).unwrap();
    Arc::new(store.with_fsync(true).with_automatic_cleanup(true))
}

/// What options allow a writer, and a reader.
fn bounds() -> (u64, u64) {
    let o = options();
    let writer = (o.uploads as u64 + 1) * o.pack_size + o.encoders as u64 * 2 * (4 << 20);
    let reader = (3 * o.fetches as u64 + 2) * o.fetch_size;
    (writer, reader)
}

/// Puts pieces of 64 MiB, four at a time, and nothing else.
async fn plain_puts(store: &Arc<dyn ObjectStore>, prefix: &str, chunks: &[Bytes]) {
    let puts = chunks.chunks(64).enumerate().map(|(i, piece)| {
        let (store, key) = (store.clone(), Key::from(format!("{prefix}/{i:06}")));
        let payload = piece.iter().cloned().collect();
        async move { store.put(&key, payload).await.unwrap() }
    });
    stream::iter(puts)
        .buffer_unordered(4)
        .for_each(|_| async {})
        .await;
}

async fn delete_all(store: &Arc<dyn ObjectStore>, prefix: &str) {
    let keys = store.list(Some(&Key::from(prefix)));
    let keys = keys.map_ok(|found| found.location).boxed();
    let deleted: Vec<Key> = store.delete_stream(keys).try_collect().await.unwrap();
    drop(deleted);
}

impl Bench {
    fn fresh(&self, name: &str) -> PathBuf {
        let path = self.work.join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    fn restic(&self, repository: &str) -> Command {
        let mut command = Command::new("restic");
        command
            .args(["--quiet", "--repo", repository, "--cache-dir"])
            .arg(self.work.join("restic-cache"))
            .env("RESTIC_PASSWORD", "bench")
            .env("AWS_ACCESS_KEY_ID", "test")
            .env("AWS_SECRET_ACCESS_KEY", "test");
        command
    }

    fn zstd(&self, from: &Path, to: &Path) {
        run(Command::new("zstd")
            .args(["-1", "-T0", "-q", "-f"])
            .arg(from)
            .arg("-o")
            .arg(to))
        .unwrap();
        File::open(to).unwrap().sync_all().unwrap();
    }

    /// The figures for a directory; their times.
    fn directory(&self, image: &Image) -> (Value, Times, f64) {
        let bytes = image.bytes();
        let state = self.work.join("state");
        image.write_to(&state);
        let (writer_bound, reader_bound) = bounds();
        let mut times = Times::default();
        let mut over: Vec<f64> = Vec::new();
        let (mut grown_writing, mut grown_reading) = (0, 0);
        let mut stored = 0;
        let mut zstd_stored = 0;
        let mut codecs: BTreeMap<&str, u64> = BTreeMap::new();

        let repository = self.fresh("restic");
        let repository = repository.to_str().unwrap();
        run(self.restic(repository).arg("init")).unwrap();
        let backup =
            |bench: &Self| run(bench.restic(repository).arg("backup").arg(&state)).unwrap();
        times.time("first image: restic", || backup(self));
        for round in 0..self.rounds {
            eprintln!("  directory, round {}", round + 1);
            let out = self.fresh("zstd").join("state.zst");
            times.time("ingest: zstd -1 -T0 and a synced file", || {
                self.zstd(&state, &out)
            });
            zstd_stored = std::fs::metadata(&out).unwrap().len();
            times.time("restore: zstd -d, to nowhere", || {
                run(Command::new("zstd")
                    .args(["-d", "-q", "-f"])
                    .arg(&out)
                    .args(["-o", "/dev/null"]))
                .unwrap();
            });
            std::fs::remove_file(&out).unwrap();

            let path = self.fresh("phos");
            let (job, epoch) = self.runtime.block_on(open(directory(&path), "p"));
            let ((manifest, length), grown) = growth(|| {
                times.time("ingest: phos-ft", || {
                    self.runtime
                        .block_on(ingest(&job, epoch, &image.chunks, &image.digests))
                })
            });
            stored = length;
            codecs.clear();
            for chunk in &manifest.chunks {
                *codecs.entry(chunk.codec.name()).or_default() += 1;
            }
            grown_writing = grown_writing.max(grown);
            over.push(grown as f64 / writer_bound as f64);
            let (read, grown) = growth(|| {
                times.time("restore: phos-ft", || {
                    self.runtime.block_on(restore(&job, &manifest))
                })
            });
            assert_eq!(read, bytes - zeros(image), "all but repeated zeros");
            grown_reading = grown_reading.max(grown);
            over.push(grown as f64 / reader_bound as f64);

            // Another hundredth of the chunks each round.
            let second = changed(&image.chunks, round);
            let name = "second image: phos-ft, names on the CPU";
            times.time(name, || {
                let names = digests(&second);
                self.runtime.block_on(ingest(&job, epoch, &second, &names))
            });
            Image {
                chunks: second,
                digests: Vec::new(),
            }
            .write_to(&state);
            times.time("second image: restic", || backup(self));
            image.write_to(&state);
            drop(job);
            std::fs::remove_dir_all(&path).unwrap();

            let path = self.fresh("plain");
            let store = directory(&path);
            times.time("ingest: plain puts of 64 MiB", || {
                self.runtime
                    .block_on(plain_puts(&store, "p", &image.chunks));
            });
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::remove_dir_all(repository).unwrap();
        std::fs::remove_file(&state).unwrap();
        println!(
            "directory {}, {} MiB (phos-ft stores {} MiB, zstd {} MiB):",
            self.work.display(),
            bytes >> 20,
            stored >> 20,
            zstd_stored >> 20
        );
        println!("  chunks by codec: {codecs:?}");
        times.table(bytes);
        let peak = over.iter().copied().fold(0.0, f64::max);
        println!(
            "  memory beyond the image: {} MiB while writing (bound {}), {} MiB while reading (bound {})",
            grown_writing >> 20,
            writer_bound >> 20,
            grown_reading >> 20,
            reader_bound >> 20
        );
        let value = json!({
            "mib": bytes >> 20, "stored_bytes": stored, "zstd_stored_bytes": zstd_stored, "codecs": codecs, "times": times.json(bytes),
            "writer_grew_mib": grown_writing >> 20, "writer_bound_mib": writer_bound >> 20,
            "reader_grew_mib": grown_reading >> 20, "reader_bound_mib": reader_bound >> 20,
        });
        (value, times, peak)
    }

    fn s3(&self, image: &Image, endpoint: &str) -> (Value, Times) {
        let bytes = image.bytes();
        let state = self.work.join("state");
        let other = self.work.join("second");
        image.write_to(&state);
        let store: Arc<dyn ObjectStore> = Arc::new(
            AmazonS3Builder::new()
                .with_endpoint(endpoint)
                .with_bucket_name("phos-test")
                .with_region("us-east-1")
                .with_access_key_id("test")
                .with_secret_access_key("test")
                .with_client_options(ClientOptions::new().with_allow_http(true))
                .build()
                .unwrap(),
        );
        let mut times = Times::default();
        for round in 0..self.rounds {
            eprintln!("  S3, round {}", round + 1);
            let out = self.fresh("zstd").join("state.zst");
            times.time("ingest: zstd -1 -T0 and an upload", || {
                self.zstd(&state, &out);
                let packed = Bytes::from(std::fs::read(&out).unwrap());
                self.runtime.block_on(upload(&store, "bench/zstd", packed));
            });
            times.time("restore: download and zstd -d", || {
                let got = self.runtime.block_on(async {
                    let got = store.get(&Key::from("bench/zstd")).await.unwrap();
                    got.bytes().await.unwrap()
                });
                std::fs::write(&out, got).unwrap();
                run(Command::new("zstd")
                    .args(["-d", "-q", "-f"])
                    .arg(&out)
                    .args(["-o", "/dev/null"]))
                .unwrap();
            });
            self.runtime.block_on(delete_all(&store, "bench"));

            let (job, epoch) = self.runtime.block_on(open(store.clone(), "bench"));
            let (manifest, _) = times.time("ingest: phos-ft", || {
                self.runtime
                    .block_on(ingest(&job, epoch, &image.chunks, &image.digests))
            });
            let read = times.time("restore: phos-ft", || {
                self.runtime.block_on(restore(&job, &manifest))
            });
            assert_eq!(read, bytes - zeros(image));
            let second = changed(&image.chunks, round);
            times.time("second image: phos-ft, names on the CPU", || {
                let names = digests(&second);
                self.runtime.block_on(ingest(&job, epoch, &second, &names))
            });
            self.runtime.block_on(delete_all(&store, "bench"));

            times.time("ingest: plain puts of 64 MiB", || {
                self.runtime
                    .block_on(plain_puts(&store, "bench", &image.chunks));
            });
            self.runtime.block_on(delete_all(&store, "bench"));

            let repository = format!("s3:{endpoint}/phos-test/bench");
            let backup =
                |bench: &Self| run(bench.restic(&repository).arg("backup").arg(&state)).unwrap();
            run(self.restic(&repository).arg("init")).unwrap();
            times.time("first image: restic", || backup(self));
            Image {
                chunks: second,
                digests: Vec::new(),
            }
            .write_to(&other);
            std::fs::rename(&other, &state).unwrap();
            times.time("second image: restic", || backup(self));
            self.runtime.block_on(delete_all(&store, "bench"));
            image.write_to(&state);
        }
        std::fs::remove_file(&state).unwrap();
        println!("S3 over HTTP on this machine (moto), {} MiB:", bytes >> 20);
        times.table(bytes);
        let value = json!({"mib": bytes >> 20, "server": "moto", "times": times.json(bytes)});
        (value, times)
    }

    /// What a chunk of a sparse image costs, in nanoseconds, by the image's GiB.
    fn sparse(&self) -> BTreeMap<u64, f64> {
        const ONE_IN: usize = 256;
        let zeros = Bytes::from(vec![0; CHUNK_SIZE]);
        let zeros_name = Digest::of(&zeros);
        let mut found = BTreeMap::new();
        for gib in [1, 4, 16, 64] {
            let count = (gib * GIB) as usize / CHUNK_SIZE;
            let full = Image::new(training_state(count / ONE_IN));
            let mut chunks = vec![zeros.clone(); count];
            let mut names = vec![zeros_name; count];
            for (i, (chunk, name)) in full.chunks.iter().zip(&full.digests).enumerate() {
                chunks[i * ONE_IN] = chunk.clone();
                names[i * ONE_IN] = *name;
            }
            // A small one takes too short a time to be measured alone.
            let repeats = (64 / gib).min(16);
            let mut costs = Vec::new();
            for _ in 0..self.rounds {
                let mut spent = 0.0;
                for _ in 0..repeats {
                    let path = self.fresh("sparse");
                    let (job, epoch) = self.runtime.block_on(open(directory(&path), "p"));
                    let start = Instant::now();
                    let manifest = self.runtime.block_on(async {
                        let (manifest, _) = ingest(&job, epoch, &chunks, &names).await;
                        job.manifest(manifest.number).await.unwrap()
                    });
                    self.runtime.block_on(restore(&job, &manifest));
                    spent += start.elapsed().as_secs_f64();
                }
                costs.push(spent / repeats as f64 / count as f64 * 1e9);
            }
            found.insert(gib, median(&costs));
        }
        println!("sparse images, zeros but for one chunk in {ONE_IN}, written, listed and read:");
        for (gib, cost) in &found {
            println!("  {gib:>3} GiB: {cost:>8.0} ns a chunk of 1 MiB");
        }
        found
    }
}

async fn upload(store: &Arc<dyn ObjectStore>, key: &str, bytes: Bytes) {
    let parts = store.put_multipart(&Key::from(key)).await.unwrap();
    let mut writer = WriteMultipart::new_with_chunk_size(parts, 16 << 20);
    let mut rest = bytes;
    while !rest.is_empty() {
        writer.wait_for_capacity(4).await.unwrap();
        let piece = rest.split_to(rest.len().min(16 << 20));
        writer.put(piece);
    }
    writer.finish().await.unwrap();
}

/// Bytes of chunks that repeat another one, which a restore reads once.
fn zeros(image: &Image) -> u64 {
    let mut seen = std::collections::HashSet::new();
    (image.chunks.iter().zip(&image.digests))
        .filter(|(_, digest)| !seen.insert(**digest))
        .map(|(chunk, _)| chunk.len() as u64)
        .sum()
}

fn machine() -> String {
    let cpus = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().unwrap_or("?").to_owned();
    format!("{cores} cores of {model}, load {load} at the beginning")
}

fn main() {
    // `cargo test --benches` and nextest ask; there is nothing to list.
    if std::env::args().any(|a| a == "--list" || a == "--test") {
        return;
    }
    let endpoint = std::env::var("PHOS_TEST_S3_ENDPOINT")
        .expect("PHOS_TEST_S3_ENDPOINT names no S3 server: run `make bench-storage`");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target"),
        PathBuf::from,
    );
    let results = target.join("bench");
    let work = std::env::var_os("PHOS_BENCH_DIR")
        .map_or_else(|| results.clone(), PathBuf::from)
        .join(format!("storage-{}", std::process::id()));
    std::fs::create_dir_all(&results).unwrap();
    std::fs::create_dir_all(&work).unwrap();
    let bench = Bench {
        runtime: tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap(),
        rounds: setting("PHOS_BENCH_ROUNDS", 5).max(1),
        work,
    };
    let machine = machine();
    println!("{machine}; medians of {}", bench.rounds);

    let mib = setting("PHOS_BENCH_MIB", 4096) as usize;
    let image = Image::new(training_state(mib));
    let (in_directory, times, peak_over_bound) = bench.directory(&image);
    let bytes = image.bytes();
    drop(image);
    let ratio = |a: &str, b: &str| times.seconds(b) / times.seconds(a);
    let ingest_vs_zstd_copy = ratio("ingest: phos-ft", "ingest: zstd -1 -T0 and a synced file");
    let second_vs_restic = ratio(
        "second image: phos-ft, names on the CPU",
        "second image: restic",
    );
    let restore_vs_limit = ratio("restore: phos-ft", "restore: zstd -d, to nowhere");

    let image = Image::new(training_state(setting("PHOS_BENCH_S3_MIB", 512) as usize));
    let (on_s3, s3_times) = bench.s3(&image, &endpoint);
    drop(image);
    let s3_ratio = |a: &str, b: &str| s3_times.seconds(b) / s3_times.seconds(a);
    let s3_ratios = json!({
        "ingest_vs_zstd_copy": s3_ratio("ingest: phos-ft", "ingest: zstd -1 -T0 and an upload"),
        "second_vs_restic": s3_ratio("second image: phos-ft, names on the CPU", "second image: restic"),
        "restore_vs_limit": s3_ratio("restore: phos-ft", "restore: download and zstd -d"),
    });

    let sparse = bench.sparse();
    let flat = sparse[&64] / sparse[&1];
    let _ = std::fs::remove_dir_all(&bench.work);

    println!("\n{:<58} {:>8} target", "directory", "figure");
    for (what, figure, target) in [
        (
            "ingest against zstd -1 -T0 and a copy",
            ingest_vs_zstd_copy,
            ">= 0.85",
        ),
        (
            "second image, 1 % changed, against restic",
            second_vs_restic,
            ">= 5",
        ),
        ("restore against zstd -d", restore_vs_limit, ">= 0.85"),
        ("peak memory against its bound", peak_over_bound, "<= 1.1"),
        (
            "cost of a chunk at 64 GiB against 1 GiB, sparse",
            flat,
            "<= 1.1",
        ),
    ] {
        println!("{what:<58} {figure:>8.2} {target}");
    }
    println!("S3: {s3_ratios}");
    let figures = json!({
        "machine": machine, "rounds": bench.rounds, "bytes": bytes,
        "ingest_vs_zstd_copy": ingest_vs_zstd_copy, "second_vs_restic": second_vs_restic,
        "restore_vs_limit": restore_vs_limit, "peak_over_bound": peak_over_bound,
        "sparse_ns_per_chunk": sparse.iter().map(|(gib, cost)| (gib.to_string(), *cost)).collect::<BTreeMap<_, _>>(),
        "sparse_64_over_1": flat,
        "directory": in_directory, "s3": on_s3, "s3_ratios": s3_ratios,
    });
    let path = results.join("storage.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&figures).unwrap()).unwrap();
    println!("{}", path.display());
}
