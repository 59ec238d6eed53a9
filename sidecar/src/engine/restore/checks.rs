//! What must hold before a restore changes anything. Pure: facts in, a verdict with the remedy out.

use std::collections::{BTreeMap, BTreeSet};

use phos_gpu::GpuInfo;
use phos_protocol::types::{GpuUuid, MemberId};
use phos_shared::mask;
use phos_storage::Manifest;

use crate::engine::image::{Image, driver_text};
use crate::size::human;

/// Why this machine cannot take the image. Another one can; nothing was changed here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CheckError {
    /// The machine has another CPU architecture than the one that the image was made on.
    #[error(
        "the image was made on {image}, this machine is {here}: restore it on a machine of that architecture"
    )]
    Architecture {
        /// The architecture that the image was made on.
        image: String,
        /// The architecture of this machine.
        here: String,
    },
    /// The CPU lacks what the job's processes found at their start.
    #[error(
        "the job's processes started on a CPU with {} and may use it; this machine's has not: restore the job on a machine with \
         that. One that was started with it hidden (GLIBC_TUNABLES=glibc.cpu.hwcaps=…, ATEN_CPU_CAPABILITY, ONEDNN_MAX_CPU_ISA, \
         OPENBLAS_CORETYPE, …) can be resumed here with --without-cpu-features {}", .missing.join(", "), .missing.join(",")
    )]
    CpuFeatures {
        /// The missing features, as /proc/cpuinfo calls them.
        missing: Vec<String>,
    },
    /// The driver here is older than the one that the image was made with.
    #[error(
        "the image was made with a {image} driver, this machine has {here}: update the NVIDIA driver \
         here, or restore where it is at least as new"
    )]
    Driver {
        /// The driver's version at the checkpoint.
        image: String,
        /// The driver's version on this machine.
        here: String,
    },
    /// The image uses a GPU, and no driver can be used here.
    #[error("the image uses a GPU: {0}")]
    NoDriver(String),
    /// Fewer GPUs are visible here than the image needs.
    #[error(
        "the image needs {needed} GPU(s) ({models}), {here} are visible here: give the sidecar and \
         the job more GPUs (--gpus, CUDA_VISIBLE_DEVICES) or restore elsewhere"
    )]
    TooFewGpus {
        /// The number of GPUs that the image needs.
        needed: usize,
        /// The models of those GPUs.
        models: String,
        /// The number of GPUs that are visible here.
        here: usize,
    },
    /// No GPU of a model that the image needs is free here.
    #[error(
        "the image needs a GPU of model {needed}, free here are: {here}; the driver restores only on \
         the same model: restore on such a machine"
    )]
    Model {
        /// The model that the image needs.
        needed: String,
        /// Unassigned ones here.
        here: String,
    },
    /// Somebody has to put something right before the job is brought back; in the agent's words.
    #[error("{0}")]
    Refused(String),
    /// The driver cannot take the job to the GPUs here; in the agent's words.
    #[error("{0}")]
    Move(String),
    /// Too little device memory.
    #[error(
        "GPU {gpu} has {} free, the restore needs {} ({} of allocations and {} for the driver): end \
         what else uses the GPU (nvidia-smi shows it) or restore elsewhere",
        human(*free), human(*allocations + *reserve), human(*allocations), human(*reserve)
    )]
    DeviceMemory {
        /// The GPU of this machine that has too little free.
        gpu: GpuUuid,
        /// Bytes that are free on that GPU.
        free: u64,
        /// Bytes of allocations that are still to be made on it.
        allocations: u64,
        /// Bytes that the driver needs beside the allocations.
        reserve: u64,
    },
    /// Too small a GPU, whatever else uses it.
    #[error(
        "GPU {gpu} has {} of memory, the restore needs {} ({} of allocations and {} for the driver): \
         restore on a larger GPU",
        human(*total), human(*allocations + *reserve), human(*allocations), human(*reserve)
    )]
    GpuSize {
        /// The GPU of this machine that is too small.
        gpu: GpuUuid,
        /// All bytes that the GPU has.
        total: u64,
        /// Bytes of allocations that are to be made on it.
        allocations: u64,
        /// Bytes that the driver needs beside the allocations.
        reserve: u64,
    },
    /// Too little room for the CPU image.
    #[error(
        "the CPU image needs {}, there is room for {}: give the machine (or the container) more \
         memory, or the agent a larger --image-limit",
        human(*needed), human(*room)
    )]
    HostMemory {
        /// The size of the image in bytes.
        needed: u64,
        /// Bytes that there is room for.
        room: u64,
    },
    /// Files that the job uses and its image does not carry are not here, or are not what they were.
    #[error("{0}")]
    Files(String),
    /// The image is one that only a newer phos-ft understands. An older one would do, at the price of what was
    /// trained since: that is for the user to say.
    #[error(
        "checkpoint {checkpoint} was made by a newer phos-ft (image version {version}): update phos-ft here, or \
         go back to an older checkpoint with `phos-ft restore ID`"
    )]
    Newer {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The version of its image.
        version: u32,
    },
    /// The image is of a job that runs on several machines.
    #[error(
        "checkpoint {checkpoint} has process {member}, which ran on another machine of the job, and this phos-ft resumes jobs on one \
         machine: update phos-ft here, or go back to an older checkpoint with `phos-ft restore ID`"
    )]
    OtherNode {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The process, with its machine's number in the job.
        member: MemberId,
    },
    /// The checkpoint was made of another command.
    #[error(
        "checkpoint {checkpoint} of job {job} was made by `{image}`, this job runs `{here}`: choose \
         another name for the new job with --job, or run the old command to resume it"
    )]
    Command {
        /// The number of the checkpoint.
        checkpoint: u64,
        /// The job that the checkpoint belongs to.
        job: String,
        /// The command that the image was made of.
        image: String,
        /// The command that this job runs.
        here: String,
    },
}

/// What the CPU here can do against what the job found when it started, but for what it is said not to use.
pub(in crate::engine) fn cpu(
    image: &[String],
    here: &BTreeSet<String>,
    unused: &[String],
) -> Result<(), CheckError> {
    // What the kernel does not say cannot be compared.
    if here.is_empty() {
        return Ok(());
    }
    let missing: Vec<String> = (image.iter())
        .filter(|name| !here.contains(*name) && !unused.contains(name))
        .cloned()
        .collect();
    if missing.is_empty() {
        Ok(())
    } else {
        Err(CheckError::CpuFeatures { missing })
    }
}

/// The machine's architecture and driver against the image's.
pub(in crate::engine) fn machine(
    manifest: &Manifest,
    image: &Image,
    driver: Result<u32, String>,
) -> Result<(), CheckError> {
    if manifest.body.architecture != std::env::consts::ARCH {
        return Err(CheckError::Architecture {
            image: manifest.body.architecture.clone(),
            here: std::env::consts::ARCH.into(),
        });
    }
    if manifest.body.gpus.is_empty() {
        return Ok(());
    }
    let driver = driver.map_err(CheckError::NoDriver)?;
    if driver < image.extra.driver_version {
        return Err(CheckError::Driver {
            image: driver_text(image.extra.driver_version),
            here: driver_text(driver),
        });
    }
    Ok(())
}

/// A GPU for each GPU of the image: the same one if it is here, else the next free one of the same
/// model, in order.
pub(in crate::engine) fn assign(
    image: &[phos_storage::Gpu],
    here: &[GpuInfo],
) -> Result<BTreeMap<GpuUuid, GpuUuid>, CheckError> {
    if image.len() > here.len() {
        let models: Vec<_> = image.iter().map(|g| g.name.as_str()).collect();
        return Err(CheckError::TooFewGpus {
            needed: image.len(),
            models: models.join(", "),
            here: here.len(),
        });
    }
    let mut assigned = BTreeMap::new();
    let mut free: Vec<&GpuInfo> = here.iter().collect();
    for gpu in image {
        let uuid = GpuUuid(gpu.uuid.0);
        if let Some(at) = free.iter().position(|info| info.uuid == uuid) {
            free.remove(at);
            assigned.insert(uuid, uuid);
        }
    }
    for gpu in image {
        let uuid = GpuUuid(gpu.uuid.0);
        if assigned.contains_key(&uuid) {
            continue;
        }
        let Some(at) = free.iter().position(|info| info.name == gpu.name) else {
            let here: Vec<_> = free.iter().map(|info| info.name.as_str()).collect();
            return Err(CheckError::Model {
                needed: gpu.name.clone(),
                here: if here.is_empty() {
                    "none".into()
                } else {
                    here.join(", ")
                },
            });
        };
        assigned.insert(uuid, free.remove(at).uuid);
    }
    Ok(assigned)
}

/// Whether what the image needs is more than a GPU has at all.
pub(in crate::engine) fn fits(
    image: &Image,
    assigned: &BTreeMap<GpuUuid, GpuUuid>,
    here: &[GpuInfo],
) -> Result<(), CheckError> {
    for (old, new) in assigned {
        let Some(info) = here.iter().find(|info| info.uuid == *new) else {
            continue;
        };
        let allocations = (image.memory.iter())
            .filter(|w| w.gpu == *old)
            .map(|w| w.allocation.bytes)
            .sum();
        let reserve = image.reserve.get(old).copied().unwrap_or(0);
        if info.total_bytes < allocations + reserve {
            return Err(CheckError::GpuSize {
                gpu: *new,
                total: info.total_bytes,
                allocations,
                reserve,
            });
        }
    }
    Ok(())
}

/// The command of the image against that of the job.
pub(in crate::engine) fn command(
    manifest: &Manifest,
    image: &Image,
    here: &[String],
) -> Result<(), CheckError> {
    // Images of before have what is masked now.
    let was = mask::command(&image.extra.command);
    if here.is_empty() || was.is_empty() || was == here {
        return Ok(());
    }
    Err(CheckError::Command {
        checkpoint: manifest.number.0,
        job: manifest.job.to_string(),
        image: was.join(" "),
        here: here.join(" "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(id: u8, name: &str) -> phos_storage::Gpu {
        phos_storage::Gpu {
            uuid: phos_storage::GpuUuid([id; 16]),
            name: name.into(),
            total_bytes: 1,
            ordinal: 0,
        }
    }

    fn info(id: u8, name: &str) -> GpuInfo {
        GpuInfo {
            ordinal: 0,
            uuid: GpuUuid([id; 16]),
            name: name.into(),
            total_bytes: 1,
            compute: (9, 0),
        }
    }

    fn ids(map: &BTreeMap<GpuUuid, GpuUuid>) -> Vec<(u8, u8)> {
        map.iter().map(|(a, b)| (a.0[0], b.0[0])).collect()
    }

    #[test]
    fn the_same_gpu_is_kept_and_others_follow_in_order() {
        let image = [gpu(1, "A"), gpu(2, "A"), gpu(3, "A")];
        let here = [info(9, "A"), info(2, "A"), info(8, "A"), info(7, "B")];
        assert_eq!(
            ids(&assign(&image, &here).unwrap()),
            [(1, 9), (2, 2), (3, 8)]
        );
    }

    #[test]
    fn a_cpu_that_can_do_less_is_refused_with_what_it_lacks() {
        let names = |names: &[&str]| -> Vec<String> { names.iter().map(|n| (*n).into()).collect() };
        let here: BTreeSet<String> = names(&["avx2", "fma", "sse4_2"]).into_iter().collect();
        cpu(&names(&["avx2"]), &here, &[]).unwrap();
        // An image of before it was noted; a kernel that does not say.
        cpu(&[], &here, &[]).unwrap();
        cpu(&names(&["avx2"]), &BTreeSet::new(), &[]).unwrap();
        let image = names(&["amx_tile", "avx2", "avx512f"]);
        let text = cpu(&image, &here, &[]).unwrap_err().to_string();
        assert!(
            text.contains("a CPU with amx_tile, avx512f and")
                && text.contains("--without-cpu-features amx_tile,avx512f"),
            "{text}"
        );
        cpu(&image, &here, &names(&["avx512f", "amx_tile"])).unwrap();
        let error = cpu(&image, &here, &names(&["avx512f"])).unwrap_err();
        let missing = names(&["amx_tile"]);
        assert_eq!(error, CheckError::CpuFeatures { missing });
    }

    #[test]
    fn too_few_and_other_models_are_named() {
        assert_eq!(
            assign(&[gpu(1, "A"), gpu(2, "A")], &[info(1, "A")])
                .unwrap_err()
                .to_string(),
            "the image needs 2 GPU(s) (A, A), 1 are visible here: give the sidecar and the job more \
             GPUs (--gpus, CUDA_VISIBLE_DEVICES) or restore elsewhere"
        );
        assert_eq!(
            assign(&[gpu(1, "NVIDIA H200")], &[info(2, "NVIDIA L4")])
                .unwrap_err()
                .to_string(),
            "the image needs a GPU of model NVIDIA H200, free here are: NVIDIA L4; the driver restores \
             only on the same model: restore on such a machine"
        );
    }
}
