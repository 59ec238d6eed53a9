//! What the benchmarks measure with: bytes that look like training state, all cores, and a restore.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures::StreamExt;
use phos_storage::{
    Allocation, Body, CHUNK_SIZE, Digest, GpuUuid, Job, Manifest, ManifestBody, MemberId,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Does something for each of `0..count`, on all cores.
pub fn on_all_cores(count: usize, work: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    work(i);
                }
            });
        }
    });
}

/// By turns, in the shares of mixed-precision training with Adam: bf16 weights, fp32 weights, first moments, second
/// moments, noise, zeros.
pub fn training_state(mib: usize) -> Vec<Bytes> {
    let made: Vec<Mutex<Bytes>> = (0..mib).map(|_| Mutex::default()).collect();
    on_all_cores(mib, |i| {
        *made[i].lock().unwrap() = chunk(i, 7);
    });
    made.into_iter()
        .map(|chunk| chunk.into_inner().unwrap())
        .collect()
}

fn chunk(i: usize, seed: u64) -> Bytes {
    let mut rng = ChaCha8Rng::seed_from_u64(seed << 32 | i as u64);
    let near_normal = |rng: &mut ChaCha8Rng| {
        (0..4)
            .map(|_| rng.random_range(-0.02_f32..0.02))
            .sum::<f32>()
    };
    let chunk: Vec<u8> = match i % 16 {
        0 | 1 => (0..CHUNK_SIZE / 2)
            .flat_map(|_| ((near_normal(&mut rng).to_bits() >> 16) as u16).to_le_bytes())
            .collect(),
        2..=5 => (0..CHUNK_SIZE / 4)
            .flat_map(|_| near_normal(&mut rng).to_le_bytes())
            .collect(),
        6..=9 => (0..CHUNK_SIZE / 4)
            .flat_map(|_| (near_normal(&mut rng) * 1e-3).to_le_bytes())
            .collect(),
        10..=13 => (0..CHUNK_SIZE / 4)
            .flat_map(|_| (near_normal(&mut rng).powi(2) * 1e-6).to_le_bytes())
            .collect(),
        14 => {
            let mut chunk = vec![0; CHUNK_SIZE];
            rng.fill_bytes(&mut chunk);
            chunk
        }
        _ => vec![0; CHUNK_SIZE],
    };
    chunk.into()
}

/// The image with a hundredth of its chunks changed, spread over all of it: others in each round.
pub fn changed(chunks: &[Bytes], round: u64) -> Vec<Bytes> {
    let mut changed = chunks.to_vec();
    let count = (chunks.len() / 100).max(1);
    for i in 0..count {
        let at = i * (chunks.len() / count);
        // Weights, not zeros.
        let at = (at - at % 16 + 2 + (round % 12) as usize).min(chunks.len() - 1);
        changed[at] = chunk(at, 1000 + round);
    }
    changed
}

pub fn body(digests: &[Digest]) -> ManifestBody {
    let bytes = (digests.len() * CHUNK_SIZE) as u64;
    Body {
        phos_version: env!("CARGO_PKG_VERSION").into(),
        trigger: "bench".into(),
        allocations: vec![Allocation {
            owner: MemberId {
                node: 0,
                process: 1,
            },
            id: 1,
            gpu: GpuUuid([7; 16]),
            size_bytes: bytes,
            requested_bytes: bytes,
            kind: "plain".into(),
            chunks: digests.to_vec(),
        }],
        ..Body::default()
    }
}

/// Reads each chunk of a checkpoint once; how many bytes that is.
pub async fn restore(job: &Job, manifest: &Manifest) -> u64 {
    let reader = job.reader(manifest).unwrap();
    let all: Vec<u32> = (0..manifest.chunks.len() as u32).collect();
    reader
        .fetch(all)
        .map(|chunk| chunk.unwrap().1.len() as u64)
        .fold(0, |sum, length| async move { sum + length })
        .await
}
