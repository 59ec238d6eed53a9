//! The store beside the tools that people would use instead: `make bench-storage`.
//!
//! One run, one machine, alternating: bytes that look like training state go into a directory and onto an S3 server and
//! come back, by phos-ft, by `zstd -1 -T0` and a copy, by restic and by plain puts. Medians; all sizes are printed, and of
//! each medium what it is and how fast it writes and reads a plain file. The figures are in `target/bench/storage.json`.
//!
//! What is compared:
//!
//! * *Ingest*: from memory to a committed checkpoint, synced. Each chunk is digested by the writer, which checks the name
//!   that the GPU gave it. Beside it `zstd -1 -T0` of a file that lies in the page cache, synced.
//! * *Second image*, 1 % of the chunks changed: all names are computed here, on the CPU, as restic has to find out what
//!   changed too; in a job they come from the GPU.
//! * *Restore*: to memory, each chunk decoded and digested. Beside it `zstd -d` to nowhere. Both read what is in the page
//!   cache.
//! * *First image* by restic: into a new repository each time.
//! * On S3 what zstd made goes up in objects of 64 MiB, four at a time: the server would need four times the size of one
//!   object that came in parts.
//! * *Peak memory*: what the process grows by beyond the image, against the bound that the options give; the worst of all
//!   rounds, in the directory and on S3.
//! * *Sparse images*: zeros but for one chunk in 256; the cost of a chunk must not depend on how many there are.
//!
//! `PHOS_BENCH_MIB` (4096), `PHOS_BENCH_S3_MIB` (as many), `PHOS_BENCH_ROUNDS` (5), `PHOS_BENCH_S3_ROUNDS` (as many: each
//! takes three minutes, as the server is one Python process), `PHOS_BENCH_DIR` (below the target directory).
//!
//! The S3 server (moto) keeps each object of more than 5 MiB in a file of the system's temporary directory, and what came in
//! parts twice. Everything is deleted after each step, so it never has more than a few images.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod data;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::FileExt as _;
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
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt};
use phos_policies::encoding::{self, Levels, Shape};
use phos_storage::{
    CHUNK_SIZE, Digest, Encoding, EncodingPolicy, Epoch, Job, JobName, Manifest, NonceSource,
    Pressure, Sample, Store, StoreOptions, UnixMillis,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::fs::{Advice, fadvise};
use serde_json::{Value, json};

const NOW: UnixMillis = UnixMillis(1_790_000_000_000);
const GIB: u64 = 1 << 30;
/// Objects of plain puts, and of what zstd made.
const PIECE: u64 = 64 << 20;

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

unsafe extern "C" {
    // SAFETY: glibc's, with this signature; it may be called by any thread at any time, with any argument.
    safe fn malloc_trim(pad: usize) -> std::ffi::c_int;
}

/// What a piece of work grows this process by.
fn growth<T>(work: impl FnOnce() -> T) -> (T, u64) {
    // What was freed before and is still this process's would be used again, and not be seen.
    malloc_trim(0);
    let (_, before) = memory();
    let done = work();
    let (most, _) = memory();
    (done, most.saturating_sub(before))
}

/// The most that writing and reading grew this process by, in bytes.
#[derive(Default)]
struct Grown {
    writing: u64,
    reading: u64,
}

impl Grown {
    /// Against what the options allow: the worse of both.
    fn over_bound(&self) -> f64 {
        let (writer, reader) = bounds();
        f64::max(
            self.writing as f64 / writer as f64,
            self.reading as f64 / reader as f64,
        )
    }

    fn print(&self) {
        let (writer, reader) = bounds();
        println!(
            "  memory beyond the image: {} MiB while writing (bound {}), {} MiB while reading (bound {})",
            self.writing >> 20,
            writer >> 20,
            self.reading >> 20,
            reader >> 20
        );
    }

    fn json(&self) -> Value {
        let (writer, reader) = bounds();
        json!({
            "writer_grew_mib": self.writing >> 20, "writer_bound_mib": writer >> 20,
            "reader_grew_mib": self.reading >> 20, "reader_bound_mib": reader >> 20,
            "peak_over_bound": self.over_bound(),
        })
    }
}

/// A mounted file system.
#[derive(Clone, PartialEq, Eq)]
struct Mount {
    kind: String,
    source: String,
    point: String,
}

impl Mount {
    /// The one that a path is on: of all whose mount point is above it, the one with the longest, and of several there the
    /// last, which hides the others.
    fn of(path: &Path) -> Self {
        let path = path.canonicalize().unwrap();
        let table = std::fs::read("/proc/self/mountinfo").unwrap();
        String::from_utf8_lossy(&table)
            .lines()
            .filter_map(Self::parse)
            .filter(|mount| path.starts_with(&mount.point))
            .max_by_key(|mount| mount.point.len())
            .expect("every path is on a mounted file system")
    }

    /// A line of mountinfo: a few fields, as many more as the kernel likes, a dash, and three fields.
    fn parse(line: &str) -> Option<Self> {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        Some(Self {
            kind: unescaped(after.next()?),
            source: unescaped(after.next()?),
            point: unescaped(before.split(' ').nth(4)?),
        })
    }

    fn is_memory(&self) -> bool {
        matches!(&*self.kind, "tmpfs" | "ramfs")
    }
}

/// The kernel writes blanks, tabs, line ends and backslashes in octal.
fn unescaped(field: &str) -> String {
    // The backslash last, so that it makes no code of what follows it.
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(field.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    })
}

/// What a medium gives to one who writes and reads a plain file of 1 GiB in sequence, in MB/s.
#[derive(Clone)]
struct Rates {
    /// Synced at the end.
    write: f64,
    read: f64,
    /// Why what was read came from memory, if it did.
    cached: Option<String>,
}

impl Rates {
    fn measure(path: &Path, mount: &Mount) -> Self {
        let directory = tempfile::tempdir_in(path).unwrap();
        let name = directory.path().join("raw");
        // Noise, and no block like another one: nothing that a file system could compress or store once.
        let mut piece = vec![0; 16 << 20];
        ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut piece);
        let rate = |start: Instant| GIB as f64 / start.elapsed().as_secs_f64() / 1e6;

        let mut file = File::create(&name).unwrap();
        let start = Instant::now();
        for number in 0..GIB / piece.len() as u64 {
            for block in piece.chunks_mut(4096) {
                block[..8].copy_from_slice(&number.to_le_bytes());
            }
            file.write_all(&piece).unwrap();
        }
        file.sync_all().unwrap();
        let write = rate(start);

        let cached = match fadvise(&file, 0, None, Advice::DontNeed) {
            Ok(()) if mount.is_memory() => Some("it is memory".to_owned()),
            Ok(()) => None,
            Err(error) => Some(format!("posix_fadvise: {error}")),
        };
        let mut file = File::open(&name).unwrap();
        let start = Instant::now();
        let mut found = 0;
        loop {
            match file.read(&mut piece).unwrap() {
                0 => break,
                length => found += length as u64,
            }
        }
        let read = rate(start);
        assert_eq!(found, GIB);
        Self {
            write,
            read,
            cached,
        }
    }
}

/// Where something lies that is measured.
struct Medium {
    place: &'static str,
    path: PathBuf,
    mount: Mount,
    rates: Rates,
}

impl Medium {
    fn print(&self) {
        let Mount {
            kind,
            source,
            point,
        } = &self.mount;
        let rates = &self.rates;
        let from = match &rates.cached {
            Some(why) => format!("from the page cache: {why}"),
            None => "the page cache dropped".to_owned(),
        };
        println!(
            "{}, {}: {kind} of {source}, mounted on {point}; a plain file of 1 GiB is written and synced at {:.0} MB/s and \
             read at {:.0} MB/s ({from})",
            self.place,
            self.path.display(),
            rates.write,
            rates.read
        );
    }

    fn json(&self) -> Value {
        json!({
            "place": self.place, "path": self.path.display().to_string(),
            "type": self.mount.kind, "source": self.mount.source, "mount_point": self.mount.point,
            "raw_write_mb_per_s": self.rates.write, "raw_read_mb_per_s": self.rates.read,
            "raw_read_from_page_cache": self.rates.cached,
        })
    }
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    rounds: u64,
    s3_rounds: u64,
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
            file.write_all(chunk).unwrap();
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

fn piece(prefix: &str, number: u64) -> Key {
    Key::from(format!("{prefix}/{number:06}"))
}

/// Puts pieces of 64 MiB, four at a time, and nothing else.
async fn plain_puts(store: &Arc<dyn ObjectStore>, prefix: &str, chunks: &[Bytes]) {
    let pieces = chunks.chunks(PIECE as usize / CHUNK_SIZE);
    let puts = pieces.zip(0..).map(|(piece, number)| {
        let (store, key) = (store.clone(), self::piece(prefix, number));
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

    /// A new, empty repository, and nothing known of another one.
    fn restic_init(&self, repository: &str) {
        self.fresh("restic-cache");
        run(self.restic(repository).arg("init")).unwrap();
    }

    fn restic_backup(&self, repository: &str, state: &Path) {
        run(self.restic(repository).arg("backup").arg(state)).unwrap();
    }

    /// What is measured lies on these.
    fn media(&self) -> Vec<Medium> {
        let mut media: Vec<Medium> = Vec::new();
        for (place, path) in [
            ("the directory", self.work.clone()),
            ("objects of the S3 server", std::env::temp_dir()),
        ] {
            let mount = Mount::of(&path);
            let same = media.iter().find(|medium| medium.mount == mount);
            let rates = match same {
                Some(medium) => medium.rates.clone(),
                None => Rates::measure(&path, &mount),
            };
            media.push(Medium {
                place,
                path,
                mount,
                rates,
            });
        }
        media
    }

    /// The figures for a directory; their times; peak memory against its bound.
    fn directory(&self, image: &Image) -> (Value, Times, f64) {
        let bytes = image.bytes();
        let state = self.work.join("state");
        image.write_to(&state);
        let mut times = Times::default();
        let mut grown = Grown::default();
        let mut stored = 0;
        let mut zstd_stored = 0;
        let mut codecs: BTreeMap<&str, u64> = BTreeMap::new();
        for round in 0..self.rounds {
            eprintln!("  directory, round {}", round + 1);
            let out = self.fresh("zstd").join("state.zst");
            times.time("ingest: zstd -1 -T0 and a synced file", || {
                compress(&state, &out);
                File::open(&out).unwrap().sync_all().unwrap();
            });
            zstd_stored = std::fs::metadata(&out).unwrap().len();
            times.time("restore: zstd -d, to nowhere", || decompress(&out));
            std::fs::remove_file(&out).unwrap();

            let path = self.fresh("phos");
            let (job, epoch) = self.runtime.block_on(open(directory(&path), "p"));
            let ((manifest, length), grew) = growth(|| {
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
            grown.writing = grown.writing.max(grew);
            let (read, grew) = growth(|| {
                times.time("restore: phos-ft", || {
                    self.runtime.block_on(restore(&job, &manifest))
                })
            });
            assert_eq!(read, bytes - zeros(image), "all but repeated zeros");
            grown.reading = grown.reading.max(grew);

            let repository = self.fresh("restic");
            let repository = repository.to_str().unwrap();
            self.restic_init(repository);
            times.time("first image: restic", || {
                self.restic_backup(repository, &state);
            });

            // Another hundredth of the chunks each round.
            let second = changed(&image.chunks, round);
            let name = "second image: phos-ft, names on the CPU";
            times.time(name, || {
                let names = digests(&second);
                self.runtime.block_on(ingest(&job, epoch, &second, &names))
            });
            drop(job);
            std::fs::remove_dir_all(&path).unwrap();
            Image {
                chunks: second,
                digests: Vec::new(),
            }
            .write_to(&state);
            times.time("second image: restic", || {
                self.restic_backup(repository, &state);
            });
            std::fs::remove_dir_all(repository).unwrap();
            image.write_to(&state);

            let path = self.fresh("plain");
            let store = directory(&path);
            times.time("ingest: plain puts of 64 MiB", || {
                self.runtime
                    .block_on(plain_puts(&store, "p", &image.chunks));
            });
            std::fs::remove_dir_all(&path).unwrap();
        }
        std::fs::remove_file(&state).unwrap();
        println!(
            "directory {}, {} MiB, {} times (phos-ft stores {} MiB, zstd {} MiB):",
            self.work.display(),
            bytes >> 20,
            self.rounds,
            stored >> 20,
            zstd_stored >> 20
        );
        println!("  chunks by codec: {codecs:?}");
        times.table(bytes);
        grown.print();
        let value = json!({
            "mib": bytes >> 20, "rounds": self.rounds, "stored_bytes": stored, "zstd_stored_bytes": zstd_stored, "codecs": codecs,
            "times": times.json(bytes), "memory": grown.json(),
        });
        (value, times, grown.over_bound())
    }

    /// The same for the S3 server. What one step stored is deleted before the next, so that the server's memory and its
    /// temporary files stay bounded.
    fn s3(&self, image: &Image, endpoint: &str) -> (Value, Times, f64) {
        let bytes = image.bytes();
        let state = self.work.join("state");
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
        let mut grown = Grown::default();
        for round in 0..self.s3_rounds {
            eprintln!("  S3, round {}", round + 1);
            let out = self.fresh("zstd").join("state.zst");
            times.time("ingest: zstd -1 -T0 and an upload", || {
                compress(&state, &out);
                self.runtime.block_on(upload(&store, "bench", &out));
            });
            let pieces = std::fs::metadata(&out).unwrap().len().div_ceil(PIECE);
            times.time("restore: download and zstd -d", || {
                self.runtime
                    .block_on(download(&store, "bench", pieces, &out));
                decompress(&out);
            });
            std::fs::remove_file(&out).unwrap();
            self.runtime.block_on(delete_all(&store, "bench"));

            let (job, epoch) = self.runtime.block_on(open(store.clone(), "bench"));
            let ((manifest, _), grew) = growth(|| {
                times.time("ingest: phos-ft", || {
                    self.runtime
                        .block_on(ingest(&job, epoch, &image.chunks, &image.digests))
                })
            });
            grown.writing = grown.writing.max(grew);
            let (read, grew) = growth(|| {
                times.time("restore: phos-ft", || {
                    self.runtime.block_on(restore(&job, &manifest))
                })
            });
            assert_eq!(read, bytes - zeros(image), "all but repeated zeros");
            grown.reading = grown.reading.max(grew);
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
            self.restic_init(&repository);
            times.time("first image: restic", || {
                self.restic_backup(&repository, &state);
            });
            Image {
                chunks: second,
                digests: Vec::new(),
            }
            .write_to(&state);
            times.time("second image: restic", || {
                self.restic_backup(&repository, &state);
            });
            self.runtime.block_on(delete_all(&store, "bench"));
            image.write_to(&state);
        }
        std::fs::remove_file(&state).unwrap();
        println!(
            "S3 over HTTP on this machine (moto), {} MiB, {} times:",
            bytes >> 20,
            self.s3_rounds
        );
        times.table(bytes);
        grown.print();
        let value = json!({
            "mib": bytes >> 20, "rounds": self.s3_rounds, "server": "moto", "times": times.json(bytes), "memory": grown.json(),
        });
        (value, times, grown.over_bound())
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

/// `zstd -1 -T0` of a file into another one, which is not synced.
fn compress(from: &Path, to: &Path) {
    run(Command::new("zstd")
        .args(["-1", "-T0", "-q", "-f"])
        .arg(from)
        .arg("-o")
        .arg(to))
    .unwrap();
}

/// `zstd -d` of a file, to nowhere.
fn decompress(from: &Path) {
    run(Command::new("zstd")
        .args(["-d", "-q", "-f"])
        .arg(from)
        .args(["-o", "/dev/null"]))
    .unwrap();
}

/// Puts a file in pieces of 64 MiB, four at a time, each on a task of its own.
async fn upload(store: &Arc<dyn ObjectStore>, prefix: &str, from: &Path) {
    let file = Arc::new(File::open(from).unwrap());
    let length = file.metadata().unwrap().len();
    let puts = (0..length.div_ceil(PIECE)).map(|number| {
        let (store, file, key) = (store.clone(), file.clone(), piece(prefix, number));
        tokio::spawn(async move {
            let read = tokio::task::spawn_blocking(move || {
                let start = number * PIECE;
                let mut bytes = vec![0; PIECE.min(length - start) as usize];
                file.read_exact_at(&mut bytes, start).unwrap();
                bytes
            });
            let bytes = read.await.unwrap();
            store.put(&key, bytes.into()).await.unwrap();
        })
    });
    stream::iter(puts)
        .buffer_unordered(4)
        .for_each(|put| async move { put.unwrap() })
        .await;
}

/// Gets so many pieces, four at a time, and writes them into a file, which is not synced.
async fn download(store: &Arc<dyn ObjectStore>, prefix: &str, pieces: u64, to: &Path) {
    let mut file = File::create(to).unwrap();
    let gets = (0..pieces).map(|number| {
        let (store, key) = (store.clone(), piece(prefix, number));
        tokio::spawn(async move { store.get(&key).await.unwrap().bytes().await.unwrap() })
    });
    let mut gets = stream::iter(gets).buffered(4);
    while let Some(got) = gets.next().await {
        file.write_all(&got.unwrap()).unwrap();
    }
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

#[allow(clippy::too_many_lines, reason = "one measurement after another")]
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
    let rounds = setting("PHOS_BENCH_ROUNDS", 5).max(1);
    let bench = Bench {
        runtime: tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build()
            .unwrap(),
        rounds,
        s3_rounds: setting("PHOS_BENCH_S3_ROUNDS", rounds).max(1),
        work,
    };
    let begun = Instant::now();
    let machine = machine();
    println!(
        "{machine}; medians of {} in the directory and of {} on S3",
        bench.rounds, bench.s3_rounds
    );
    let media = bench.media();
    for medium in &media {
        medium.print();
    }

    let mib = setting("PHOS_BENCH_MIB", 4096);
    let image = Image::new(training_state(mib as usize));
    let (in_directory, times, directory_over_bound) = bench.directory(&image);
    let bytes = image.bytes();
    let ratio = |a: &str, b: &str| times.seconds(b) / times.seconds(a);
    let ingest_vs_zstd_copy = ratio("ingest: phos-ft", "ingest: zstd -1 -T0 and a synced file");
    let second_vs_restic = ratio(
        "second image: phos-ft, names on the CPU",
        "second image: restic",
    );
    let restore_vs_limit = ratio("restore: phos-ft", "restore: zstd -d, to nowhere");

    let s3_mib = setting("PHOS_BENCH_S3_MIB", mib);
    let image = if s3_mib == mib {
        image
    } else {
        drop(image);
        Image::new(training_state(s3_mib as usize))
    };
    let (on_s3, s3_times, s3_over_bound) = bench.s3(&image, &endpoint);
    drop(image);
    let peak_over_bound = f64::max(directory_over_bound, s3_over_bound);
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
        (
            "peak memory against its bound, the worst of all",
            peak_over_bound,
            "<= 1.1",
        ),
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
        "machine": machine, "media": media.iter().map(Medium::json).collect::<Vec<_>>(),
        "rounds": bench.rounds, "s3_rounds": bench.s3_rounds, "bytes": bytes, "s3_mib": s3_mib,
        "ingest_vs_zstd_copy": ingest_vs_zstd_copy, "second_vs_restic": second_vs_restic,
        "restore_vs_limit": restore_vs_limit, "peak_over_bound": peak_over_bound,
        "sparse_ns_per_chunk": sparse.iter().map(|(gib, cost)| (gib.to_string(), *cost)).collect::<BTreeMap<_, _>>(),
        "sparse_64_over_1": flat,
        "directory": in_directory, "s3": on_s3, "s3_ratios": s3_ratios,
    });
    let path = results.join("storage.json");
    std::fs::write(&path, serde_json::to_vec_pretty(&figures).unwrap()).unwrap();
    println!(
        "{} after {:.0} minutes",
        path.display(),
        begun.elapsed().as_secs_f64() / 60.0
    );
}
