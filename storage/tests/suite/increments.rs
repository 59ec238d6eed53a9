//! What a second checkpoint costs when little changed, against what `docs/decisions/14-whole-manifests.md` promises.

use crate::common::{Image, NOW, name, noise, options};
use phos_storage::{CHUNK_SIZE, Store, StoreOptions};

/// Of the image, in chunks: 300 MiB.
const CHUNKS: u64 = 300;

#[tokio::test]
async fn with_one_percent_changed_two_percent_are_written_and_the_manifest_is_small() {
    let options = StoreOptions {
        pack_size: 64 << 20,
        ..options(1)
    };
    let store = Store::open("memory://", options).await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    // As weights are: they shrink hardly.
    let image = |changed: u64| {
        let seed = |i| if i % 100 < changed { i + 1000 } else { i };
        Image::of((0..CHUNKS).map(|i| noise(seed(i), CHUNK_SIZE)).collect())
    };
    let full = image(0).commit(&job, epoch).await.unwrap();
    let little = image(1).commit(&job, epoch).await.unwrap();

    let image_bytes = full.manifest.image_bytes();
    assert!(image_bytes > CHUNKS * CHUNK_SIZE as u64);
    assert!(
        full.stats.stored_bytes > image_bytes * 99 / 100,
        "noise shrank"
    );
    // With what the manifest takes.
    let written = little.stats.stored_bytes + little.manifest_bytes;
    let share = written as f64 / (full.stats.stored_bytes + full.manifest_bytes) as f64;
    assert!(
        (0.009..=0.02).contains(&share),
        "{share} of a full one was written"
    );
    for commit in [&full, &little] {
        let share = commit.manifest_bytes as f64 / image_bytes as f64;
        assert!(share < 0.001, "the manifest takes {share} of the image");
    }
    assert_eq!(little.reused_chunks, CHUNKS - CHUNKS / 100 + 1);
    assert_eq!(Image::read(&job, &little.manifest).await.unwrap(), image(1));
}
