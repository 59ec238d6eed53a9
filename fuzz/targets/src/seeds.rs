//! Inputs to start from: objects as they are really written, and objects that claim sizes they do not have.

use std::path::{Path, PathBuf};

use phos_protocol::channel;
use phos_protocol::shim::{QuiesceFacts, Refusal, ShimState, TableEntry, ToShim};
use phos_protocol::types::{Allocation, AllocationKey, AllocationKind, Device, GpuUuid, MemberId};
use phos_protocol::{agent, shim};
use phos_storage::fuzzing;

use crate::forge_envelope;

type Seed = (&'static str, Vec<u8>);

fn with(mode: u8, bytes: &[u8]) -> Vec<u8> {
    let mut input = vec![mode];
    input.extend_from_slice(bytes);
    input
}

fn files(below: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(below)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    found.sort();
    found
}

/// What is inside an envelope.
fn payload(object: &[u8]) -> Vec<u8> {
    if object.get(10) == Some(&1) {
        zstd::decode_all(&object[64..]).unwrap()
    } else {
        object[64..].to_vec()
    }
}

/// Real objects. Those of storage are from the store of version 1 that its tests keep.
#[must_use]
pub fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let job =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../storage/tests/fixtures/v1/jobs/fixture");
    for (target, folder) in [("head", "head"), ("manifest", "manifests")] {
        for path in files(&job.join(folder)) {
            let object = std::fs::read(path).unwrap();
            seeds.push((target, with(0, &object)));
            seeds.push((target, with(1, &payload(&object))));
        }
    }
    seeds.push(("head", b"00000000000000000007".to_vec()));
    for path in files(&job.join("packs")) {
        let object = std::fs::read(path).unwrap();
        seeds.push(("pack", with(0, &object)));
        let index = object.len() - 64;
        let offset = u64::from_le_bytes(object[index + 16..index + 24].try_into().unwrap());
        let mut forged = ((offset - 64) as u16).to_le_bytes().to_vec();
        forged.extend_from_slice(&object[offset as usize..index]);
        seeds.push(("pack", with(1, &forged)));
    }
    let job_name = phos_storage::JobName::new("job").unwrap();
    for (kind, small) in crate::NOTES.into_iter().enumerate() {
        let object = small.example(&job_name).unwrap();
        let kind = 2 * kind as u8;
        seeds.push(("notes", with(kind, &object)));
        seeds.push(("notes", with(kind + 1, &payload(&object))));
    }
    let text = b"step 1 loss 0.25\n".repeat(100);
    for payload in [&b""[..], b"payload", &text] {
        let object = fuzzing::seal_envelope(payload).unwrap();
        seeds.push(("envelope", with(0, &object)));
        let mut inner = object[10..12].to_vec();
        inner.extend_from_slice(&object[24..32]);
        inner.extend_from_slice(&object[64..]);
        seeds.push(("envelope", with(1, &inner)));
    }
    for raw in [&[0; 300][..], b"noise that does not shrink", &text] {
        let (codec, stored) = fuzzing::encode_chunk(raw, 1).unwrap();
        let mut input = (raw.len() as u32).to_le_bytes().to_vec();
        input.extend_from_slice(&stored);
        seeds.push(("chunk", with(codec, &input)));
        seeds.push(("chunk", with(255, raw)));
    }
    seeds.extend(messages());
    seeds.push((
        "agent_image",
        AGENT_IMAGE
            .replace("ARCH", std::env::consts::ARCH)
            .into_bytes(),
    ));
    seeds.extend(sealed());
    seeds
}

/// Of an encrypted job.
fn sealed() -> Vec<Seed> {
    let job = fuzzing::SealedJob::new(&phos_storage::JobName::new("fuzz").unwrap());
    let id = phos_storage::PackId {
        writer: phos_storage::Nonce([3; 16]),
        sequence: 9,
    };
    let text = b"step 1 loss 0.25\n".repeat(100);
    let object = job.seal("place", &text).unwrap();
    let pack = job.encode_pack(id, &[bytes::Bytes::from(text.clone())]);
    let inputs = [(0, object), (1, text.clone()), (2, pack), (3, text)];
    let inputs = inputs.map(|(mode, input)| ("sealed", with(mode, &input)));
    inputs.into()
}

#[allow(clippy::too_many_lines, reason = "one of each message")]
fn messages() -> Vec<Seed> {
    let count = shim::Count {
        communicator: u64::MAX / 3,
        rank: 1,
        of: shim::Counted::Sent(2),
        times: 40_000,
    };
    let key = AllocationKey {
        owner: MemberId::here(10_000),
        id: 7,
    };
    let allocation = Allocation {
        key,
        device: 0,
        bytes: 2 << 20,
        kind: AllocationKind::Plain,
        rdma: false,
    };
    let object = Allocation {
        kind: AllocationKind::Multicast { devices: 8 },
        ..allocation
    };
    let entry = TableEntry {
        allocation,
        requested: 2_000_000,
        with_fd: true,
    };
    let gpu = GpuUuid([7; 16]);
    let devices = vec![Device {
        ordinal: 0,
        uuid: gpu,
        total_bytes: 80 << 30,
        name: "NVIDIA H200".into(),
    }];
    let to_agent = [
        shim::ToAgent::Hello {
            pid: 10_000,
            instance: 1,
            state: ShimState::Detached(3),
            devices: devices.clone(),
        },
        shim::ToAgent::Table {
            seq: 3,
            entries: vec![entry; 2],
            imported: vec![key],
        },
        shim::ToAgent::Quiesced {
            seq: 3,
            outcome: Ok(QuiesceFacts {
                gate_ns: 1,
                sync_ns: 2,
                export_ns: 3,
            }),
        },
        shim::ToAgent::Quiesced {
            seq: 3,
            outcome: Err(Refusal::Slow { needs_ms: 3000 }),
        },
        shim::ToAgent::Detached {
            seq: 3,
            outcome: Err(Refusal::Driver {
                call: "cuMemUnmap".into(),
                result: 1,
            }),
        },
        shim::ToAgent::Share {
            allocation,
            with_fd: true,
        },
        shim::ToAgent::Freed { ids: vec![1, 2] },
        shim::ToAgent::Watches,
        shim::ToAgent::Moment { seq: 3 },
        shim::ToAgent::Communicates,
        shim::ToAgent::TellsEnd,
        shim::ToAgent::Ends { code: 1 },
        shim::ToAgent::TakesCredit,
        shim::ToAgent::Spent { seq: 3 },
        shim::ToAgent::Place {
            seq: 3,
            place: shim::Place::Wait { calls: 800 },
        },
        shim::ToAgent::Multicasts {
            seq: 3,
            attached: true,
            held: vec![shim::HeldMulticast { object, added: 1 }],
        },
        shim::ToAgent::Remade {
            seq: 3,
            object,
            outcome: Ok(()),
        },
        shim::ToAgent::Position {
            seq: 3,
            held: true,
            counts: vec![count],
        },
    ];
    let time = shim::WatchTime {
        for_ms: 1000,
        glance_ms: 60,
        answer_ms: 100,
    };
    let credit = shim::Credit {
        calls: 64,
        for_ms: 5000,
    };
    let calls = |least, most| shim::Calls { least, most };
    let waits = shim::Waits {
        after: calls(32, u32::MAX),
        except: vec![calls(38, 42)],
    };
    let to_shim = [
        ToShim::Welcome { held: vec![1, 300] },
        ToShim::Quiesce {
            seq: 3,
            timeout_ms: 5000,
        },
        ToShim::Memory {
            seq: 3,
            keys: vec![key],
        },
        ToShim::Identified(Some(allocation)),
        ToShim::Watch { seq: 3, time },
        ToShim::QuiesceAtCut {
            seq: 3,
            timeout_ms: 250,
        },
        ToShim::Continue {
            seq: 3,
            goals: vec![count],
        },
        ToShim::Settle { seq: 3 },
        ToShim::Credit {
            seq: 3,
            credit: Some(credit),
        },
        ToShim::WatchFor {
            seq: 3,
            time,
            waits: waits.clone(),
        },
        ToShim::Remake { seq: 3, key },
        ToShim::Join {
            seq: 3,
            keys: vec![key],
            last: true,
        },
        ToShim::Bind { seq: 3 },
    ];
    let to_agent_of_sidecar = [
        agent::ToAgent::Hello {
            version: "0.1.0".into(),
        },
        agent::ToAgent::RestoreMemory {
            allocations: vec![allocation; 3],
        },
        agent::ToAgent::Credit {
            seq: 3,
            credit: Some(credit),
        },
        agent::ToAgent::WatchFor {
            seq: 3,
            time,
            waits,
        },
        agent::ToAgent::Restore {
            gpus: vec![(gpu, GpuUuid([8; 16]))],
        },
    ];
    let to_sidecar = [
        agent::ToSidecar::TakesCredit {
            seq: 3,
            place: Some(shim::Place::Step),
        },
        agent::ToSidecar::Spent { seq: 3 },
        agent::ToSidecar::Table {
            seq: 3,
            entries: vec![entry; 2],
        },
        agent::ToSidecar::Quiesced {
            seq: 3,
            outcome: Ok(vec![agent::Process {
                member: MemberId::here(10_000),
                devices,
            }]),
        },
        agent::ToSidecar::Quiesced {
            seq: 3,
            outcome: Err(agent::AttemptError::Criu("no criu".into())),
        },
        agent::ToSidecar::Quiesced {
            seq: 3,
            outcome: Err(agent::AttemptError::Soon("not yet".into())),
        },
        agent::ToSidecar::NotRestorable {
            reason: "304".into(),
        },
        agent::ToSidecar::JobExited {
            exit: agent::Exit::Signal(9),
            stopping: false,
        },
    ];
    let packets = |target, packets: Vec<Vec<u8>>| {
        packets
            .into_iter()
            .flat_map(move |packet| [(target, with(0, &packet)), (target, with(1, &packet[8..]))])
    };
    let encoded = |message: Result<Vec<u8>, channel::SendError>| message.unwrap();
    let shim = (to_agent.iter().map(|m| encoded(channel::encode(m, 0))))
        .chain(to_shim.iter().map(|m| encoded(channel::encode(m, 0))))
        .collect();
    let agent = (to_agent_of_sidecar
        .iter()
        .map(|m| encoded(channel::encode(m, 0))))
    .chain(to_sidecar.iter().map(|m| encoded(channel::encode(m, 0))))
    .collect();
    packets("shim_protocol", shim)
        .chain(packets("agent_protocol", agent))
        .collect()
}

/// Small inputs that claim much.
#[must_use]
pub fn bombs() -> Vec<Seed> {
    let zeros = zstd::bulk::compress(&vec![0; 16 << 20], 19).unwrap();
    let (_, plain) = fuzzing::MANIFEST_CAPS;
    let envelope = |flags: u16, length: u64, stored: &[u8]| {
        let mut inner = flags.to_le_bytes().to_vec();
        inner.extend_from_slice(&length.to_le_bytes());
        inner.extend_from_slice(stored);
        with(1, &inner)
    };
    // CBOR: an array, a byte string and a map of 2^60 entries, and arrays in arrays.
    let array = [0x9b, 0x10, 0, 0, 0, 0, 0, 0, 0];
    let string = [0x5b, 0x10, 0, 0, 0, 0, 0, 0, 0];
    let packs = [b"\xa1\x65packs".as_slice(), &array].concat();
    let digest = [b"\xa1\x66chunks\xa1\x66digest".as_slice(), &string].concat();
    let phases = [
        b"\xa1\x64body\xa1\x67timings\xa1\x69phases_us".as_slice(),
        &[0xbb, 0x10, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    // A process's name that is a list of sixteen million numbers.
    let mut member = b"\xa1\x64body\xa1\x69processes\x81\xa1\x66member\x9a".to_vec();
    member.extend_from_slice(&(16_u32 << 20).to_be_bytes());
    member.resize(member.len() + (16 << 20), 0);
    let members = zstd::bulk::compress(&member, 19).unwrap();
    let mut seeds = vec![
        (
            "manifest",
            with(
                0,
                &forge_envelope(b"PHOSMANI", 1, member.len() as u64, &members),
            ),
        ),
        ("envelope", envelope(1, 65536, &zeros)),
        ("envelope", envelope(1, u64::MAX, b"x")),
        ("envelope", envelope(0, u64::MAX, b"x")),
        (
            "manifest",
            with(0, &forge_envelope(b"PHOSMANI", 1, 16 << 20, &zeros)),
        ),
        (
            "manifest",
            with(0, &forge_envelope(b"PHOSMANI", 1, plain + 1, &zeros)),
        ),
        (
            "chunk",
            with(2, &[&(4_u32 << 20).to_le_bytes(), &zeros[..]].concat()),
        ),
        (
            "chunk",
            with(2, &[&u32::MAX.to_le_bytes(), &zeros[..]].concat()),
        ),
        ("chunk", with(0, &u32::MAX.to_le_bytes())),
        // postcard: a list of 2^63 devices, entries, allocations.
        ("shim_protocol", [&[1, 1][..], &[0xff; 9], &[1]].concat()),
        (
            "shim_protocol",
            [&[1, 0, 1, 1, 0][..], &[0xff; 9], &[1]].concat(),
        ),
        ("agent_protocol", [&[1, 2][..], &[0xff; 9], &[1]].concat()),
        ("agent_image", "[".repeat(100_000).into_bytes()),
        (
            "agent_image",
            format!(
                "{{\"format\":1,\"phos_version\":{}",
                "{\"a\":".repeat(50_000)
            )
            .into_bytes(),
        ),
    ];
    for target in ["head", "manifest"] {
        for payload in [
            &packs[..],
            &digest,
            &phases,
            &array,
            &string,
            &[0x81; 100_000],
        ] {
            seeds.push((target, with(1, payload)));
        }
    }
    seeds
}

/// Writes all of them below `directory`, a folder for each target.
pub fn write(directory: &Path) {
    for (i, (name, input)) in all().into_iter().chain(bombs()).enumerate() {
        let folder = directory.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(format!("seed-{i:03}")), input).unwrap();
    }
}

const AGENT_IMAGE: &str = r#"{"format":1,"phos_version":"0.1.0","criu_version":"4.2.1","arch":"ARCH","kernel":"6.18.0",
"driver_version":13000,"job":"llama","seq":3,"root_pid":10000,"ids":[10000,10001],
"processes":[{"pid":10000,"devices":[{"ordinal":0,"uuid":[7,7,7,7,7,7,7,7,7,7,7,7,7,7,7,7],"total_bytes":1,"name":"G"}]}],
"without_shim":[],"vault":[{"allocation":{"key":{"owner":10000,"id":1},"device":0,"bytes":2097152,"kind":"Plain","rdma":false},
"requested":5}],"imports":[[10001,[{"owner":10000,"id":1}]]],"stdio":[{"stream":1,"inode":7}],
"shim_socket":"/run/phos/llama/shim.sock","shim":{"path":"/opt/libphos_shim.so","blake3":"00","content":"000"},
"directories":["/"],"files":[{"path":"/train/log","length":3,"mode":420,"uid":0,"gid":0,"content":"001"}],
"listening":[29500],"tcp_kept":false}"#;
