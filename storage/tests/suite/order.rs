//! Where chunks lie in packs: in the order in which they were put, whatever took how long to encode.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use crate::common::{Image, NOW, name, noise, options};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use phos_storage::{Digest, Encoding, EncodingPolicy, Sample, Store, StoreOptions};

/// Of the image, in chunks.
const CHUNKS: usize = 24;
/// Of each, in bytes.
const LENGTH: usize = 100_000;

/// For how long the slow one waits at most.
const LIMIT: Duration = Duration::from_secs(60);

/// Encodes the chunk that shrinks only when all others were encoded, or are being.
#[derive(Debug, Default)]
struct FirstIsSlow {
    others: Mutex<usize>,
    another: Condvar,
}

impl EncodingPolicy for FirstIsSlow {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        let mut others = self.others.lock().unwrap();
        if sample.plain() < sample.len() / 2 {
            let all = |others: &mut usize| *others < CHUNKS - 1;
            // Not for ever: if another one fails, this thread is waited for.
            let found = self.another.wait_timeout_while(others, LIMIT, all);
            drop(found.unwrap());
            Encoding::Zstd(1)
        } else {
            *others += 1;
            self.another.notify_all();
            Encoding::Raw
        }
    }
}

#[tokio::test]
async fn chunks_lie_in_the_order_in_which_they_were_put() {
    let options = StoreOptions {
        encoders: 4,
        // Several packs.
        pack_size: 10 * LENGTH as u64,
        encoding: Arc::new(FirstIsSlow::default()),
        ..options(1)
    };
    let store = Store::open("memory://", options).await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("job"));
    let epoch = job.take_over("node", NOW).await.unwrap().epoch;
    let writer = job.begin(epoch).await.unwrap();

    let text = b"text that shrinks well".repeat(LENGTH / 22).into();
    let chunks = (1..CHUNKS).map(|i| noise(i as u64, LENGTH));
    let chunks: Vec<_> = std::iter::once(text).chain(chunks).collect();
    let mut puts: FuturesUnordered<_> = (chunks.iter())
        .map(|chunk| writer.put(Digest::of(chunk), chunk.clone()))
        .collect();
    while let Some(put) = puts.next().await {
        put.unwrap();
    }
    drop(puts);
    let image = Image::of(chunks);
    image.put(&writer).await.unwrap();
    let manifest = writer.commit(image.body(), NOW).await.unwrap().manifest;

    let place = |digest: &Digest| {
        let entry = manifest.chunks.iter().find(|e| e.digest == *digest);
        let entry = entry.unwrap();
        (
            manifest.packs[entry.pack as usize].id.sequence,
            entry.offset,
        )
    };
    let places: Vec<_> = image.chunks().map(|c| place(&Digest::of(c))).collect();
    let last = places.iter().map(|(pack, _)| *pack).max().unwrap();
    assert!(last > 1, "{places:?}");
    for pack in 0..=last {
        let of_pack = places.iter().filter(|(found, _)| *found == pack);
        assert!(of_pack.is_sorted(), "{pack}: {places:?}");
    }
    // The slow one comes into the pack that is open when it is encoded, before those that were put later.
    let beside = places.iter().filter(|(pack, _)| *pack == places[0].0);
    assert!(places[0].0 > 0 && beside.count() > 2, "{places:?}");
    assert_eq!(Image::read(&job, &manifest).await.unwrap(), image);
}
