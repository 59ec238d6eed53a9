//! The part of an image that is not CRIU's: files are copied and `agent.json` is written while the tree is frozen.

use std::path::PathBuf;

use phos_protocol::agent::AttemptError;
use phos_protocol::types::{GpuUuid, ProcessId};

use super::plan::DumpPlan;
use crate::config::Tcp;
use crate::files::places::{self, Around};
use crate::files::{self, Carry, linked, temporary};
use crate::image::{
    self, AgentImage, Connections, FILES_DIR, FORMAT, FileRecord, LinkedFile, NeededPath, Place,
    ShimImage,
};
use crate::job::environment;
use crate::tree::{self, TcpUse};

/// What an image says that is known before the tree stands still.
pub(super) struct ImageFacts<'a> {
    pub(super) plan: &'a DumpPlan,
    pub(super) without_shim: &'a [ProcessId],
    pub(super) criu_version: &'a str,
    pub(super) driver_version: u32,
    pub(super) machine_gpus: Vec<GpuUuid>,
}

/// Copies files and writes `agent.json`. The tree is frozen. `tcp` is what the tree did with TCP before that, and `connections`
/// what CRIU was told of it.
pub(super) fn describe(
    facts: &ImageFacts<'_>,
    connections: Connections,
    tcp: &TcpUse,
) -> Result<(), AttemptError> {
    let plan = facts.plan;
    let tree = tree::collect(plan.root).map_err(failed)?;
    if have_connections_changed(plan, connections, &tree.processes) {
        return Err(AttemptError::OutOfOrder(
            "a TCP connection was opened or closed while the checkpoint began".into(),
        ));
    }
    plan.image.subdirectory(FILES_DIR).map_err(failed)?;
    let carried = carry_files(plan, &tree.processes)?;
    let image = AgentImage {
        format: FORMAT,
        phos_version: env!("CARGO_PKG_VERSION").into(),
        criu_version: facts.criu_version.to_owned(),
        arch: image::arch(),
        kernel: image::kernel(),
        driver_version: facts.driver_version,
        job: plan.job.clone(),
        seq: plan.seq,
        root_pid: plan.root,
        ids: tree.ids.into_iter().collect(),
        processes: plan.processes.clone(),
        without_shim: facts.without_shim.to_vec(),
        vault: plan.vault.clone(),
        imports: plan.imports.clone(),
        stdio: plan.stdio.clone(),
        shim_socket: plan.shim_socket.clone(),
        shim: carried.shim,
        directories: carried.directories,
        files: carried.records,
        linked: carried.linked,
        needed: carried.needed,
        places: carried.places,
        listening: tcp.listening.clone(),
        addresses: tcp.needed(connections),
        tcp_kept: connections == Connections::Kept,
        moved: plan.moved.clone(),
        machine_gpus: facts.machine_gpus.clone(),
    };
    plan.image.write_agent_image(&image).map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> AttemptError {
    AttemptError::Files(error.to_string())
}

/// Whether what CRIU was told of the job's TCP connections is not so any more: it was told before the tree stood still, and the
/// ranks were looked at before that.
fn have_connections_changed(
    plan: &DumpPlan,
    connections: Connections,
    processes: &[ProcessId],
) -> bool {
    let now = || tree::tcp_use(plan.root, processes);
    match connections {
        Connections::Kept => plan.tcp == Tcp::Auto && !now().internal_only,
        Connections::Closed => {
            let pids: Vec<ProcessId> = plan.processes.iter().map(|p| p.member.process).collect();
            !environment::ranks(&pids).is_empty()
                && environment::closed_connections(&now(), plan.tcp).is_some()
        }
    }
}

/// What an image says of the job's files, and has of them in `files/`.
struct Carried {
    records: Vec<FileRecord>,
    linked: Vec<LinkedFile>,
    shim: Option<ShimImage>,
    /// Working directories of the processes.
    directories: Vec<PathBuf>,
    needed: Vec<NeededPath>,
    places: Vec<Place>,
}

fn carry_files(plan: &DumpPlan, processes: &[ProcessId]) -> Result<Carried, AttemptError> {
    let records = files::capture(processes, plan.max_file_size, &plan.image).map_err(failed)?;
    let linked = linked::capture(processes, &plan.image).map_err(failed)?;
    let shim = carry_shim(plan)?;
    let mut directories: Vec<PathBuf> = processes
        .iter()
        .filter_map(|&pid| tree::working_directory(pid))
        .collect();
    directories.sort();
    directories.dedup();
    // The shim's library and the working directories are made again where they are missing.
    let mut made = directories.clone();
    made.extend(plan.shim.as_ref().map(|shim| shim.path.clone()));
    let temporary = temporary::directories(processes);
    let carry = Carry {
        below: &temporary,
        most: plan.max_file_size,
        image: &plan.image,
    };
    let (needed, open) = files::needed(processes, &records, &made, &carry);
    let copied = needed.iter().filter(|n| n.copy.is_some());
    let places = places::capture(
        plan.root,
        processes,
        &Around {
            files: (records.iter().map(|r| &r.path))
                .chain(copied.map(|n| &n.path))
                .map(PathBuf::as_path)
                .chain(linked::paths_of(&linked))
                .collect(),
            directories: directories.iter().cloned().chain(open).collect(),
            perhaps: temporary::remembered(processes, &temporary),
        },
    );
    Ok(Carried {
        records,
        linked,
        shim,
        directories,
        needed,
        places,
    })
}

/// Copies the shim's library, if the job has one.
fn carry_shim(plan: &DumpPlan) -> Result<Option<ShimImage>, AttemptError> {
    let Some(shim) = &plan.shim else {
        return Ok(None);
    };
    let length = std::fs::metadata(&shim.path)
        .map_err(|e| failed(format!("cannot look at {}: {e}", shim.path.display())))?
        .len();
    files::copy_into(&shim.path, length, &plan.image, "shim")
        .map_err(|e| failed(format!("cannot copy {}: {e}", shim.path.display())))?;
    Ok(Some(ShimImage {
        path: shim.path.clone(),
        blake3: shim.blake3.clone(),
        content: "shim".into(),
    }))
}
