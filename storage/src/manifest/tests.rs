use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::*;
use crate::crypt::Crypt;
use crate::crypt::tests::crypt;
use crate::envelope;
use crate::names::Nonce;
use proptest::prelude::*;

fn text() -> impl Strategy<Value = String> {
    "[ -~]{0,20}"
}

fn uuid() -> impl Strategy<Value = GpuUuid> {
    any::<[u8; 16]>().prop_map(GpuUuid)
}

fn path() -> impl Strategy<Value = FilePath> {
    prop::collection::vec(1..=255u8, 1..20)
        .prop_map(|bytes| FilePath::from(OsStr::from_bytes(&bytes)))
}

/// A table of chunks by what they are numbered, some of them zeros.
fn location(number: usize) -> (Digest, Location) {
    let digest = Digest([number as u8; 32]);
    let raw = 1000 + number as u32;
    let at = if number % 5 == 4 {
        Location {
            pack: None,
            offset: 0,
            stored: 0,
            raw,
            codec: Codec::Zero,
        }
    } else {
        let id = PackId {
            writer: Nonce([1; 16]),
            sequence: number as u32 / 3,
        };
        let codec = if number.is_multiple_of(2) {
            Codec::Raw
        } else {
            Codec::Zstd
        };
        let stored = if number.is_multiple_of(2) {
            raw
        } else {
            raw / 2
        };
        Location {
            pack: Some(id),
            offset: 64 + 2000 * number as u64,
            stored,
            raw,
            codec,
        }
    };
    (digest, at)
}

fn content() -> impl Strategy<Value = (Vec<Digest>, u64)> {
    prop::collection::vec(0..40usize, 0..12).prop_map(|numbers| {
        let chunks = numbers.iter().map(|&n| location(n));
        (
            chunks.clone().map(|c| c.0).collect(),
            chunks.map(|c| u64::from(c.1.raw)).sum(),
        )
    })
}

prop_compose! {
    fn member()(node in any::<u32>(), process in any::<u32>()) -> MemberId {
        MemberId { node, process }
    }
}

prop_compose! {
    fn allocation()(
        owner in member(), id in any::<u64>(), gpu in uuid(), requested_bytes in any::<u64>(), kind in text(),
        (chunks, size_bytes) in content(),
    ) -> Allocation<Vec<Digest>> {
        Allocation { owner, id, gpu, size_bytes, requested_bytes, kind, chunks }
    }
}

prop_compose! {
    fn image_file()(path in path(), mode in any::<u32>(), (chunks, length) in content()) -> ImageFile<Vec<Digest>> {
        ImageFile { path, length, mode, chunks }
    }
}

prop_compose! {
    fn facts()(
        trigger in text(), driver_version in text(), agent in text(),
        gpus in prop::collection::vec((uuid(), text(), any::<u64>(), any::<u32>()), 0..3),
        processes in prop::collection::vec((member(), prop::collection::vec((uuid(), any::<u64>()), 0..3)), 0..3),
        stop_us in any::<u64>(), phases_us in prop::collection::btree_map(text(), any::<u64>(), 0..4),
    ) -> ManifestBody {
        ManifestBody {
            trigger, driver_version, agent,
            gpus: gpus.into_iter().map(|(uuid, name, total_bytes, ordinal)| Gpu { uuid, name, total_bytes, ordinal }).collect(),
            processes: processes.into_iter().map(|(member, devices)| Process {
                member,
                devices: devices.into_iter().map(|(gpu, reserve_bytes)| ProcessDevice { gpu, reserve_bytes }).collect(),
            }).collect(),
            timings: Timings { stop_us, phases_us, figures: BTreeMap::new() },
            ..Body::default()
        }
    }
}

prop_compose! {
    fn body()(
        facts in facts(), allocations in prop::collection::vec(allocation(), 0..6),
        cpu_image in prop::collection::vec(image_file(), 0..4),
    ) -> ManifestBody {
        ManifestBody { allocations, cpu_image, ..facts }
    }
}

fn build(body: ManifestBody) -> Manifest {
    let table: HashMap<_, _> = (0..40).map(location).collect();
    let identity = Identity {
        job: JobName::new("job").unwrap(),
        number: CheckpointNumber(3),
        epoch: Epoch(1),
        created: UnixMillis(1_700_000_000_000),
    };
    Manifest::build(
        identity,
        body,
        0,
        |digest| table.get(digest).copied(),
        |_| Some(1 << 20),
    )
    .unwrap()
}

/// A manifest in which one field was changed after it was valid, sealed with a right checksum.
fn reseal(change: impl FnOnce(&mut Manifest)) -> Vec<u8> {
    let mut manifest = build(sample());
    change(&mut manifest);
    manifest.encode(&Crypt::PLAIN).unwrap()
}

fn sample() -> ManifestBody {
    let chunks: Vec<Digest> = (0..10).map(|n| location(n).0).collect();
    let size_bytes = (0..10).map(|n| u64::from(location(n).1.raw)).sum();
    ManifestBody {
        allocations: vec![Allocation {
            owner: MemberId {
                node: 0,
                process: 7,
            },
            id: 1,
            gpu: GpuUuid([9; 16]),
            size_bytes,
            requested_bytes: size_bytes,
            kind: "plain".into(),
            chunks,
        }],
        ..Body::default()
    }
}

#[test]
fn what_does_not_fit_together_is_refused() {
    assert!(Manifest::decode(&reseal(|_| {})).is_ok());
    for (name, bytes) in [
        ("offset outside", reseal(|m| m.chunks[0].offset = 1 << 20)),
        ("offset overflow", reseal(|m| m.chunks[0].offset = u64::MAX)),
        ("offset in header", reseal(|m| m.chunks[0].offset = 0)),
        ("no such pack", reseal(|m| m.chunks[0].pack = 99)),
        (
            "stored more than raw",
            reseal(|m| m.chunks[0].stored = m.chunks[0].raw + 1),
        ),
        ("huge chunk", reseal(|m| m.chunks[4].raw = u32::MAX)),
        (
            "size differs",
            reseal(|m| m.body.allocations[0].size_bytes += 1),
        ),
        ("chunk beyond table", reseal(|m| m.chunks.truncate(3))),
    ] {
        let error = Manifest::decode(&bytes).expect_err(name);
        assert!(
            matches!(error, ManifestError::Inconsistent { .. }),
            "{name}: {error}"
        );
    }
}

#[test]
fn a_list_that_claims_billions_of_chunks_is_refused_at_once() {
    let bytes = reseal(|m| {
        m.body.allocations[0].size_bytes = u64::MAX;
        m.body.allocations[0].chunks =
            ciborium::from_reader(&b"\x81\x83\x00\x1a\xff\xff\xff\xff\x00"[..]).unwrap();
    });
    assert!(matches!(
        Manifest::decode(&bytes),
        Err(ManifestError::Inconsistent { .. })
    ));
}

#[test]
fn an_unknown_chunk_and_a_wrong_length_are_named() {
    let mut body = sample();
    body.allocations[0].chunks.push(Digest([0xee; 32]));
    let table: HashMap<_, _> = (0..40).map(location).collect();
    let identity = Identity {
        job: JobName::new("j").unwrap(),
        number: CheckpointNumber(1),
        epoch: Epoch(1),
        created: UnixMillis(0),
    };
    let locate = |digest: &Digest| table.get(digest).copied();
    let error = Manifest::build(identity.clone(), body, 0, locate, |_| Some(1 << 20)).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("allocation 1 of process 7 names chunk eeee"),
        "{error}"
    );
    let mut body = sample();
    body.allocations[0].size_bytes += 5;
    assert!(matches!(
        Manifest::build(identity, body, 0, locate, |_| Some(1 << 20)),
        Err(ManifestError::Length { .. })
    ));
}

#[test]
fn a_manifest_is_far_below_a_thousandth_of_its_image() {
    // 38 GiB of 1 MiB chunks in packs of 64.
    let n = 38 * 1024_u32;
    let chunk = |i: u32| Digest::of(&i.to_le_bytes());
    let table: HashMap<Digest, Location> = (0..n)
        .map(|i| {
            let id = PackId {
                writer: Nonce([1; 16]),
                sequence: i / 64,
            };
            let stored = (1 << 20) - (i % 64) * 1000;
            let offset = 64 + u64::from(i % 64) * (1 << 20);
            (
                chunk(i),
                Location {
                    pack: Some(id),
                    offset,
                    stored,
                    raw: 1 << 20,
                    codec: Codec::Zstd,
                },
            )
        })
        .collect();
    let mut body = sample();
    body.allocations[0].chunks = (0..n).map(chunk).collect();
    body.allocations[0].size_bytes = u64::from(n) << 20;
    let identity = Identity {
        job: JobName::new("j").unwrap(),
        number: CheckpointNumber(1),
        epoch: Epoch(1),
        created: UnixMillis(0),
    };
    let manifest = Manifest::build(
        identity,
        body,
        0,
        |d| table.get(d).copied(),
        |_| Some(128 << 20),
    )
    .unwrap();
    let bytes = manifest.encode(&Crypt::PLAIN).unwrap().len() as u64;
    assert!(bytes < manifest.image_bytes() / 10_000, "{bytes}");
}

proptest! {
    #[test]
    fn round_trip(body in body()) {
        let manifest = build(body.clone());
        let bytes = manifest.encode(&Crypt::PLAIN).unwrap();
        let read = Manifest::decode(&bytes).unwrap();
        prop_assert_eq!(&read, &manifest);
        // Encrypted it is the same, where it stands and nowhere else.
        let crypt = crypt(1, "job");
        let sealed = manifest.encode(&crypt).unwrap();
        let number = manifest.number.0;
        prop_assert_eq!(&Manifest::decode_in(&crypt, number, &sealed).unwrap(), &manifest);
        prop_assert!(Manifest::decode_in(&crypt, number + 1, &sealed).is_err());
        prop_assert!(Manifest::decode(&sealed).is_err());
        prop_assert_eq!(read.body.allocations.len(), body.allocations.len());
        for (stored, given) in read.body.allocations.iter().zip(&body.allocations) {
            prop_assert_eq!(read.digests(&stored.chunks).collect::<Vec<_>>(), given.chunks.clone());
            let end = read.extents(&stored.chunks).last().map_or(0, |e| e.offset + u64::from(e.length));
            prop_assert_eq!(end, given.size_bytes);
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        prop_assert!(Manifest::decode(&bytes).is_err());
        // The same behind a right envelope: what the CBOR decoder and the validation make of it.
        let sealed = envelope::seal(&KIND, &bytes).unwrap();
        prop_assert!(Manifest::decode(&sealed).is_err());
    }

    #[test]
    fn a_changed_payload_behind_a_right_checksum_never_panics(
        body in body(), changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let (_, mut payload) = envelope::open(&KIND, &build(body).encode(&Crypt::PLAIN).unwrap()).unwrap();
        for (at, byte) in changes {
            let at = at.index(payload.len());
            payload[at] = byte;
        }
        // It may be valid (a text changed), but then it is wholly so.
        if let Ok(manifest) = Manifest::decode(&envelope::seal(&KIND, &payload).unwrap()) {
            for (list, length) in manifest.body.contents() {
                prop_assert_eq!(manifest.extents(list).map(|e| u64::from(e.length)).sum::<u64>(), length);
            }
        }
    }
}
