//! What a checkpoint's manifest says, written from the job's tables and read back for a restore. Pure.
//!
//! The storage crate's manifest holds what listings and collection need. What only the sidecar's own restore needs (device
//! ordinals, RDMA flags, the command) is [`Extra`], JSON in the manifest's opaque part.
//!
//! # Rules
//!
//! * GPUs in a manifest are the ones the memory really lay on. A process that was once moved still
//!   calls its GPU by the UUID it saw first; [`Extra::aliases`] maps those.
//! * Nothing read back is believed: sizes, offsets and references are checked before anything is made.

use std::collections::{BTreeMap, HashMap};

use phos_gpu::GpuInfo;
use phos_gpu::host::SLOT;
use phos_protocol::agent::{DumpFacts, Process};
use phos_protocol::types::{
    Allocation, AllocationKey, AllocationKind, GpuUuid, MemberId, THIS_NODE,
};
use phos_storage::{Digest, ImageFile, Manifest, ManifestBody, Timings};
use serde::{Deserialize, Serialize};

/// Version of [`Extra`]. A reader refuses newer ones.
const EXTRA_VERSION: u32 = 2;

/// The figure of a manifest that is the last step before the checkpoint, where the program told its steps.
pub(super) const STEP: &str = "step";

/// The last step before a checkpoint, if the program told its steps.
pub(super) fn step(manifest: &Manifest) -> Option<u64> {
    manifest.body.timings.figures.get(STEP).copied()
}

/// What the manifest carries for restores and the storage crate does not interpret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Extra {
    version: u32,
    /// CMD and its arguments.
    pub(super) command: Vec<String>,
    /// `cuDriverGetVersion` of the driver that saved the control state.
    pub(super) driver_version: u32,
    /// The CUDA processes as they describe themselves.
    pub(super) processes: Vec<Process>,
    /// (owner, id, device ordinal, RDMA) of each allocation, in the manifest's order.
    pub(super) allocations: Vec<(MemberId, u64, i32, bool)>,
    /// GPU as the processes name it → GPU it was on.
    pub(super) aliases: Vec<(GpuUuid, GpuUuid)>,
    /// The CPU features of the machine that it was taken on: see [`cpu`](super::cpu). Empty in older images, which did not note
    /// them.
    #[serde(default)]
    pub(super) cpu_features: Vec<String>,
}

/// An allocation as the manifest has it. Holds no memory: the job may free it while the checkpoint is
/// stored.
pub(super) struct Described {
    pub(super) allocation: Allocation,
    pub(super) requested: u64,
    /// The GPU that the allocation lies on.
    pub(super) gpu: GpuUuid,
    pub(super) digests: Vec<Digest>,
}

/// Everything a manifest is written from.
pub(super) struct Parts<'a> {
    pub(super) trigger: &'a str,
    pub(super) command: &'a [String],
    pub(super) facts: &'a DumpFacts,
    /// Device memory that the driver gave up when it saved the control state, per GPU, in bytes.
    pub(super) reserve: &'a [(GpuUuid, u64)],
    pub(super) gpus: &'a [GpuInfo],
    pub(super) aliases: Vec<(GpuUuid, GpuUuid)>,
    pub(super) cpu_features: Vec<String>,
    pub(super) memory: &'a [Described],
    pub(super) cpu_image: Vec<ImageFile<Vec<Digest>>>,
    pub(super) timings: Timings,
}

/// A process, as the store names it.
fn stored(member: MemberId) -> phos_storage::MemberId {
    let MemberId { node, process } = member;
    phos_storage::MemberId { node, process }
}

fn kind_name(kind: AllocationKind) -> &'static str {
    match kind {
        AllocationKind::Plain => "plain",
        AllocationKind::Slab => "slab",
        AllocationKind::Vmm => "vmm",
        // Never in an image: it has no memory.
        AllocationKind::Multicast { .. } => "multicast",
    }
}

fn kind_of(name: &str) -> Option<AllocationKind> {
    match name {
        "plain" => Some(AllocationKind::Plain),
        "slab" => Some(AllocationKind::Slab),
        "vmm" => Some(AllocationKind::Vmm),
        _ => None,
    }
}

/// Writes the body of a manifest.
pub(super) fn body(parts: Parts<'_>) -> Result<ManifestBody, serde_json::Error> {
    let resolve = |uuid: GpuUuid| {
        parts
            .aliases
            .iter()
            .find(|(from, _)| *from == uuid)
            .map_or(uuid, |(_, to)| *to)
    };
    let mut used: Vec<GpuUuid> = parts.memory.iter().map(|m| m.gpu).collect();
    for process in &parts.facts.processes {
        used.extend(process.devices.iter().map(|d| resolve(d.uuid)));
    }
    used.sort_unstable();
    used.dedup();
    // In the driver's order here, which is the order in which a restore elsewhere assigns them.
    let gpus = parts
        .gpus
        .iter()
        .filter(|info| used.contains(&info.uuid))
        .zip(0..)
        .map(|(info, ordinal)| phos_storage::Gpu {
            uuid: phos_storage::GpuUuid(info.uuid.0),
            name: info.name.clone(),
            total_bytes: info.total_bytes,
            ordinal,
        })
        .collect();
    // The reserve is known per GPU; it stands with the first process that uses the GPU.
    let mut reserve: BTreeMap<GpuUuid, u64> = parts.reserve.iter().copied().collect();
    let processes = parts
        .facts
        .processes
        .iter()
        .map(|p| phos_storage::Process {
            member: stored(p.member),
            devices: p
                .devices
                .iter()
                .map(|d| {
                    let gpu = resolve(d.uuid);
                    phos_storage::ProcessDevice {
                        gpu: phos_storage::GpuUuid(gpu.0),
                        reserve_bytes: reserve.remove(&gpu).unwrap_or(0),
                    }
                })
                .collect(),
        })
        .collect();
    let extra = Extra {
        version: EXTRA_VERSION,
        command: parts.command.to_vec(),
        driver_version: parts.facts.driver_version,
        processes: parts.facts.processes.clone(),
        allocations: parts
            .memory
            .iter()
            .map(|m| {
                let a = m.allocation;
                (a.key.owner, a.key.id, a.device, a.rdma)
            })
            .collect(),
        aliases: parts.aliases,
        cpu_features: parts.cpu_features,
    };
    Ok(ManifestBody {
        phos_version: env!("CARGO_PKG_VERSION").into(),
        trigger: parts.trigger.into(),
        driver_version: driver_text(parts.facts.driver_version),
        gpus,
        processes,
        allocations: parts
            .memory
            .iter()
            .map(|m| phos_storage::Allocation {
                owner: stored(m.allocation.key.owner),
                id: m.allocation.key.id,
                gpu: phos_storage::GpuUuid(m.gpu.0),
                size_bytes: m.allocation.bytes,
                requested_bytes: m.requested,
                kind: kind_name(m.allocation.kind).into(),
                chunks: m.digests.clone(),
            })
            .collect(),
        cpu_image: parts.cpu_image,
        agent: serde_json::to_string(&extra)?,
        timings: parts.timings,
        ..ManifestBody::default()
    })
}

/// 13000 → "CUDA 13.0".
pub(super) fn driver_text(version: u32) -> String {
    format!("CUDA {}.{}", version / 1000, version % 1000 / 10)
}

/// Why a manifest cannot be understood as an image of the job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum ImageError {
    #[error("it was made by a newer phos-ft (image version {0}): update phos-ft")]
    Newer(u32),
    #[error("its process {0} ran on another machine of the job")]
    OtherNode(MemberId),
    #[error("its description of the job is damaged: {0}")]
    Damaged(String),
}

/// A chunk of an allocation: number in the manifest's table, place in the allocation, name.
#[derive(Debug, Clone, Copy)]
pub(super) struct ChunkAt {
    pub(super) index: u32,
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) digest: Digest,
}

/// An allocation to be made.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) allocation: Allocation,
    pub(super) requested: u64,
    /// The GPU that the allocation was on at the checkpoint.
    pub(super) gpu: GpuUuid,
    pub(super) chunks: Vec<ChunkAt>,
}

/// A manifest as a restore uses it.
#[derive(Debug, Clone)]
pub(super) struct Image {
    pub(super) extra: Extra,
    pub(super) memory: Vec<Wanted>,
    /// Needed beside the allocations, per GPU.
    pub(super) reserve: BTreeMap<GpuUuid, u64>,
}

impl Extra {
    pub(super) fn parse(manifest: &Manifest) -> Result<Extra, ImageError> {
        #[derive(Deserialize)]
        struct Version {
            version: u32,
        }
        let text = &manifest.body.agent;
        let damaged = |e: serde_json::Error| ImageError::Damaged(e.to_string());
        let Version { version } = serde_json::from_str(text).map_err(damaged)?;
        if version > EXTRA_VERSION {
            return Err(ImageError::Newer(version));
        }
        serde_json::from_str(text).map_err(damaged)
    }
}

impl Image {
    pub(super) fn parse(manifest: &Manifest) -> Result<Image, ImageError> {
        let extra = Extra::parse(manifest)?;
        let bad = |what: String| ImageError::Damaged(what);
        let processes = extra.processes.iter().map(|p| p.member);
        let owners = extra.allocations.iter().map(|(owner, ..)| *owner);
        if let Some(member) = (processes.chain(owners)).find(|m| m.node != THIS_NODE) {
            return Err(ImageError::OtherNode(member));
        }
        if extra.allocations.len() != manifest.body.allocations.len() {
            return Err(bad("two lists of allocations differ in length".into()));
        }
        let mut seen: HashMap<AllocationKey, ()> = HashMap::new();
        let mut memory = Vec::with_capacity(extra.allocations.len());
        for (of_store, &(owner, id, device, rdma)) in
            manifest.body.allocations.iter().zip(&extra.allocations)
        {
            let key = AllocationKey { owner, id };
            if (of_store.owner, of_store.id) != (stored(owner), id)
                || seen.insert(key, ()).is_some()
            {
                return Err(bad(format!(
                    "allocation {id} of process {owner} does not match"
                )));
            }
            let kind = kind_of(&of_store.kind)
                .ok_or_else(|| bad(format!("allocation kind {:?} is not known", of_store.kind)))?;
            let mut chunks = Vec::new();
            for extent in manifest.extents(&of_store.chunks) {
                let digest = manifest
                    .chunks
                    .get(extent.chunk as usize)
                    .map(|c| c.digest)
                    .ok_or_else(|| bad(format!("there is no chunk {}", extent.chunk)))?;
                if extent.length as usize > SLOT || extent.offset % 16 != 0 {
                    return Err(bad(format!(
                        "allocation {id} has a chunk of {} bytes",
                        extent.length
                    )));
                }
                chunks.push(ChunkAt {
                    index: extent.chunk,
                    offset: extent.offset,
                    len: u64::from(extent.length),
                    digest,
                });
            }
            memory.push(Wanted {
                allocation: Allocation {
                    key,
                    device,
                    bytes: of_store.size_bytes,
                    kind,
                    rdma,
                },
                requested: of_store.requested_bytes,
                gpu: GpuUuid(of_store.gpu.0),
                chunks,
            });
        }
        let mut reserve: BTreeMap<GpuUuid, u64> = BTreeMap::new();
        for device in manifest.body.processes.iter().flat_map(|p| &p.devices) {
            *reserve.entry(GpuUuid(device.gpu.0)).or_default() += device.reserve_bytes;
        }
        Ok(Image {
            extra,
            memory,
            reserve,
        })
    }
}
