//! What the store costs beside what nobody can avoid: `make bench`.
//!
//! One run, one machine: bytes that look like training state go into a store and come back, and beside that the peers
//! that bound it: copying, digesting, compressing and writing the same bytes without anything of ours. Medians of five;
//! each figure is MB/s of uncompressed bytes. `PHOS_BENCH_MIB` sets the amount (256), `PHOS_BENCH_DIR` where directories
//! lie (the system's temporary directory).
#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod data;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use bytes::Bytes;
use data::{body, restore, training_state};
use futures::{StreamExt, stream};
use phos_storage::{
    CHUNK_SIZE, Digest, Job, JobName, Manifest, NonceSource, Store, StoreOptions, UnixMillis,
};

const ROUNDS: usize = 5;
const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

fn options() -> StoreOptions {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    StoreOptions::new(NonceSource::new(|| {
        let mut nonce = [0; 16];
        nonce[..8].copy_from_slice(&NEXT.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        nonce
    }))
}

/// The work on each chunk, on all cores; what it returns is added up.
fn on_all_cores(chunks: &[Bytes], work: impl Fn(&Bytes) -> usize + Sync) -> usize {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..cores)
            .map(|_| {
                scope.spawn(|| {
                    let mut sum = 0;
                    while let Some(chunk) = chunks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        sum += work(chunk);
                    }
                    sum
                })
            })
            .collect();
        workers.into_iter().map(|w| w.join().unwrap()).sum()
    })
}

async fn ingest(job: &Job, chunks: &[Bytes], digests: &[Digest]) -> Manifest {
    let epoch = job.take_over("bench", NOW).await.unwrap().epoch;
    let writer = job.begin(epoch).await.unwrap();
    let puts = chunks.iter().zip(digests).map(|(chunk, digest)| {
        let (writer, chunk, digest) = (writer.clone(), chunk.clone(), *digest);
        async move { writer.put(digest, chunk).await.unwrap() }
    });
    stream::iter(puts)
        .buffer_unordered(16)
        .for_each(|_| async {})
        .await;
    writer.commit(body(digests), NOW).await.unwrap().manifest
}

struct Bench {
    runtime: tokio::runtime::Runtime,
    bytes: usize,
}

impl Bench {
    /// Runs `round` and prints the median; the limit, if any, is what it is compared with.
    fn row(
        &self,
        what: &str,
        limit: Option<f64>,
        mut round: impl FnMut(&tokio::runtime::Runtime),
    ) -> f64 {
        let mut rates: Vec<f64> = (0..ROUNDS)
            .map(|_| {
                let start = Instant::now();
                round(&self.runtime);
                self.bytes as f64 / start.elapsed().as_secs_f64() / 1e6
            })
            .collect();
        rates.sort_by(f64::total_cmp);
        let rate = rates[ROUNDS / 2];
        let compared = limit.map_or(String::new(), |limit| {
            format!("{:>6.0} % of its limit", rate / limit * 100.0)
        });
        println!("{what:<58} {rate:>9.0} MB/s {compared}");
        rate
    }
}

fn write_out(dir: &Path, chunks: &[Bytes]) {
    let parts = std::sync::Mutex::new(Vec::new());
    on_all_cores(chunks, |chunk| {
        let packed = zstd::bulk::compress(chunk, 1).unwrap();
        let len = packed.len();
        parts.lock().unwrap().push(packed);
        len
    });
    let mut file = std::fs::File::create(dir.join("plain")).unwrap();
    for part in parts.into_inner().unwrap() {
        std::io::Write::write_all(&mut file, &part).unwrap();
    }
    file.sync_all().unwrap();
}

fn main() {
    // `cargo test --benches` and nextest ask; there is nothing to list.
    if std::env::args().any(|a| a == "--list" || a == "--test") {
        return;
    }
    let mib = std::env::var("PHOS_BENCH_MIB")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(256);
    let parent = std::env::var_os("PHOS_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let chunks = training_state(mib);
    let digests: Vec<Digest> = chunks.iter().map(|chunk| Digest::of(chunk)).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let bench = Bench {
        runtime,
        bytes: mib * CHUNK_SIZE,
    };
    println!(
        "{mib} MiB like training state, {} cores, directories below {}, medians of {ROUNDS}\n",
        std::thread::available_parallelism().map_or(1, usize::from),
        parent.display()
    );

    bench.row("memcpy, one thread", None, |_| {
        for chunk in &chunks {
            black_box(chunk.to_vec());
        }
    });
    bench.row("BLAKE3, all cores", None, |_| {
        black_box(on_all_cores(&chunks, |chunk| {
            usize::from(blake3::hash(chunk).as_bytes()[0])
        }));
    });
    let zstd = bench.row("zstd -1, all cores", None, |_| {
        black_box(on_all_cores(&chunks, |chunk| {
            zstd::bulk::compress(chunk, 1).unwrap().len()
        }));
    });
    bench.row("ingest, memory (limit: zstd -1)", Some(zstd), |runtime| {
        runtime.block_on(async {
            let store = Store::open("memory://", options()).await.unwrap();
            store.initialise().await.unwrap();
            ingest(
                &store.job(JobName::new("bench").unwrap()),
                &chunks,
                &digests,
            )
            .await;
        });
    });
    let written = bench.row("zstd -1 and one synced file", None, |_| {
        let dir = tempfile::tempdir_in(&parent).unwrap();
        write_out(dir.path(), &chunks);
    });
    bench.row(
        "ingest, directory (limit: zstd -1 and one synced file)",
        Some(written),
        |runtime| {
            let dir = tempfile::tempdir_in(&parent).unwrap();
            runtime.block_on(async {
                let store = Store::open(&format!("file://{}", dir.path().display()), options())
                    .await
                    .unwrap();
                store.initialise().await.unwrap();
                ingest(
                    &store.job(JobName::new("bench").unwrap()),
                    &chunks,
                    &digests,
                )
                .await;
            });
        },
    );

    let packed: Vec<Bytes> = chunks
        .iter()
        .map(|chunk| zstd::bulk::compress(chunk, 1).unwrap().into())
        .collect();
    let unpacked = bench.row("zstd decompression and BLAKE3, all cores", None, |_| {
        black_box(on_all_cores(&packed, |chunk| {
            let raw = zstd::bulk::decompress(chunk, CHUNK_SIZE).unwrap();
            usize::from(blake3::hash(&raw).as_bytes()[0])
        }));
    });
    let dir = tempfile::tempdir_in(&parent).unwrap();
    let (job, manifest) = bench.runtime.block_on(async {
        let store = Store::open(&format!("file://{}", dir.path().display()), options())
            .await
            .unwrap();
        store.initialise().await.unwrap();
        let job = store.job(JobName::new("bench").unwrap());
        let manifest = ingest(&job, &chunks, &digests).await;
        (job, manifest)
    });
    bench.row(
        "restore, directory (limit: decompression and BLAKE3)",
        Some(unpacked),
        |runtime| {
            black_box(runtime.block_on(restore(&job, &manifest)));
        },
    );
}
