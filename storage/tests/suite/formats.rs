//! Every format ever written is read for ever: a store of each version is kept in `fixtures` and read here.
//!
//! `PHOS_WRITE_FIXTURE=1 cargo test -p phos-storage --test formats -- --ignored` writes the one of the current version.
//! Never overwrite that of a version that was released.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::{Image, NOW, name, noise, options};
use bytes::Bytes;
use phos_storage::{
    Candidate, CheckpointNumber, Codec, CollectOptions, Encoding, EncodingPolicy, Epoch, JobError,
    Key, MemberId, PlainZstd, STORE_FORMAT, Sample, Store, StoreOptions,
};

/// A store as a version of phos-ft wrote it.
#[derive(Debug, Clone, Copy)]
struct Fixture {
    version: u16,
    encrypted: bool,
}

/// Versions before 4 know no encryption, in 4 nothing else was new.
fn fixtures() -> impl Iterator<Item = Fixture> {
    let plain = (1..=STORE_FORMAT).filter(|&version| version != 4);
    let encrypted = 4..=STORE_FORMAT;
    (plain.map(|version| (version, false)))
        .chain(encrypted.map(|version| (version, true)))
        .map(|(version, encrypted)| Fixture { version, encrypted })
}

impl Fixture {
    fn path(self) -> PathBuf {
        let kind = if self.version > 4 && self.encrypted {
            "-encrypted"
        } else {
            ""
        };
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/fixtures/v{}{kind}", self.version))
    }

    fn key(self) -> Option<Key> {
        self.encrypted
            .then(|| Key::new(&std::array::from_fn(|i| i as u8)))
    }
}

/// Writes numbers as byte planes.
#[derive(Debug)]
struct Planes;

impl EncodingPolicy for Planes {
    fn choose(&self, sample: &Sample<'_>) -> Encoding {
        let (plain, two, four) = (sample.plain(), sample.planes2(), sample.planes4());
        if plain <= two.min(four) {
            PlainZstd { level: 1 }.choose(sample)
        } else if two <= four {
            Encoding::Planes2(1)
        } else {
            Encoding::Planes4(1)
        }
    }
}

/// The image of a fixture; from version 3 on there are numbers of 4 and of 2 bytes in it.
fn image_of(format: u16, version: u64) -> Image {
    let mut image = image(version);
    if format >= 3 {
        let wide = (0..5000_u32).flat_map(|i| (1.0 + i as f32 * 1.1e-5).to_le_bytes());
        let narrow = (0..9001_u32).flat_map(|i| {
            let noisy = i.wrapping_mul(2_654_435_761) >> 25;
            ((0x3f00 | noisy) as u16).to_le_bytes()
        });
        image.device.push(vec![wide.collect(), narrow.collect()]);
    }
    image
}

/// Holds a chunk of each codec that the first version had.
fn image(version: u64) -> Image {
    let text: Bytes = b"step 1 loss 0.25\n".repeat(300).into();
    Image {
        device: vec![
            vec![
                noise(1, 900),
                Bytes::from(vec![0; 70_000]),
                noise(2 + version, 300),
            ],
            vec![],
        ],
        cpu: vec![text.clone(), Bytes::from_static(b"tail")],
        log: vec![text],
    }
}

#[tokio::test]
async fn every_version_is_read() {
    for fixture in fixtures() {
        let version = fixture.version;
        // A copy: opening must not change what is kept.
        let copy = tempfile::tempdir().unwrap();
        copy_all(&fixture.path(), copy.path());
        let options = StoreOptions {
            encryption: fixture.key(),
            ..options(77)
        };
        let store = Store::open(copy.path().to_str().unwrap(), options)
            .await
            .unwrap();
        let job = store.job(name("fixture"));
        // From version 2 on there was one more, which retention removed.
        let first = if version == 1 { 2 } else { 3 };
        let gone = job.manifest(CheckpointNumber(2)).await.err();
        assert_eq!(
            matches!(gone, Some(JobError::Removed { .. })),
            version > 1,
            "version {version}: {gone:?}"
        );
        for (number, mut image) in [
            (first, image_of(version, 0)),
            (first + 1, image_of(version, 1)),
        ] {
            let manifest = job.manifest(CheckpointNumber(number)).await.unwrap();
            if version < 5 {
                // It was in a list that phos-ft never wrote, which is not read any more.
                image.log.clear();
            }
            let owner = MemberId {
                node: 0,
                process: 1000,
            };
            assert!((manifest.body.allocations.iter()).all(|a| a.owner == owner));
            assert_eq!(
                Image::read(&job, &manifest).await.unwrap(),
                image,
                "version {version}"
            );
            assert_eq!(manifest.created, NOW);
            assert_eq!(manifest.body.driver_version, "580.159.04");
            let planes = [Codec::Planes2, Codec::Planes4];
            let planes = planes.into_iter().filter(|_| version >= 3);
            for codec in [Codec::Zero, Codec::Raw, Codec::Zstd]
                .into_iter()
                .chain(planes)
            {
                assert!(
                    manifest.chunks.iter().any(|chunk| chunk.codec == codec),
                    "{codec:?}"
                );
            }
            for pack in &manifest.packs {
                job.pack_index(&pack.id).await.unwrap();
            }
        }
        let state = job.state().await.unwrap();
        assert_eq!((state.epoch, state.completed), (Some(Epoch(1)), Some(0)));
        // And written to, which raises it.
        store.initialise().await.unwrap();
        let marker = std::fs::read(copy.path().join("phos-format")).unwrap();
        assert_eq!(marker[8..10], STORE_FORMAT.to_le_bytes());
        let epoch = job.take_over("newer", NOW).await.unwrap().epoch;
        let newest = image_of(version, 1);
        let commit = newest.commit(&job, epoch).await.unwrap();
        assert_eq!(commit.stats.new_chunks, 0);
        let keep = |all: &[Candidate]| all.iter().rev().take(1).map(|c| c.number).collect();
        job.collect(&keep, CollectOptions::default(), NOW)
            .await
            .unwrap();
        let left = job.manifest(commit.number).await.unwrap();
        assert_eq!(Image::read(&job, &left).await.unwrap(), newest);
        assert_eq!(job.list().await.unwrap().checkpoints.len(), 1);
    }
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_all(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

#[tokio::test]
#[ignore = "writes the fixture of the current version"]
async fn write_fixture() {
    if std::env::var_os("PHOS_WRITE_FIXTURE").is_none() {
        return;
    }
    for encrypted in [false, true] {
        let fixture = Fixture {
            version: STORE_FORMAT,
            encrypted,
        };
        write(fixture).await;
    }
}

async fn write(fixture: Fixture) {
    let path = fixture.path();
    assert!(
        !path.exists(),
        "{} is there: a fixture is never overwritten",
        path.display()
    );
    let options = StoreOptions {
        encoding: Arc::new(Planes),
        encryption: fixture.key(),
        ..options(42)
    };
    let store = Store::open(path.to_str().unwrap(), options).await.unwrap();
    store.initialise().await.unwrap();
    let job = store.job(name("fixture"));
    let epoch = job.take_over("fixture", NOW).await.unwrap().epoch;
    for version in [9, 0, 1] {
        let image = image_of(STORE_FORMAT, version);
        image.commit(&job, epoch).await.unwrap();
    }
    let keep = |all: &[Candidate]| all.iter().rev().take(2).map(|c| c.number).collect();
    job.collect(&keep, CollectOptions::default(), NOW)
        .await
        .unwrap();
    job.mark_completed(epoch, 0, NOW).await.unwrap();
}
