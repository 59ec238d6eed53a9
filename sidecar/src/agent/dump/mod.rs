//! The middle of a checkpoint, when every shim is detached: control state, CRIU, files, control state back.
//!
//! Runs in a thread of its own, because all of it blocks, while the main loop goes on reaping and listening.
//!
//! # Rules
//!
//! * Whatever happens, the processes end as they began: running and unlocked, unless [`DumpFailure::lost`] says
//!   that one could not be brought back.
//! * A cancelled dump is undone at the next step; CRIU is not interrupted, unless it hangs.
//! * What belongs to the job and would not be in the image makes the dump fail, with the reason: strays (processes
//!   whose parents have ended), CUDA processes that are about to connect.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use phos_protocol::agent::{AttemptError, DumpFacts, DumpTimes, Process};
use phos_protocol::shim::{Refusal, Sequence};
use phos_protocol::types::{AllocationKey, GpuUuid, ProcessId};

use crate::agent::channels::shims;
use crate::agent::config::{Tcp, Timeouts};
use crate::agent::control::{Control, checkpoint_all, restore_all};
use crate::agent::criu::{self, Criu, DumpOptions};
use crate::agent::failpoint;
use crate::agent::files::linked;
use crate::agent::files::places::{self, Around};
use crate::agent::files::temporary;
use crate::agent::files::{self, Carry};
use crate::agent::image::{
    AgentImage, CRIU_DIR, FILES_DIR, FORMAT, ImageDirectory, ShimImage, StdioPipe, VaultImage,
    WITHOUT_LINKED,
};
use crate::agent::job::environment;
use crate::agent::job::signals;
use crate::agent::job::spawn::InstalledShim;
use crate::agent::network::netlock;
use crate::agent::survey::devices::{self, InTheWay};
use crate::agent::survey::room::{self, Need};
use crate::agent::survey::{self, Lasting, newcomer};
use crate::agent::tree::{self, TcpUse};

/// What a dump needs to know.
#[derive(Debug)]
pub struct DumpPlan {
    /// The attempt.
    pub seq: Sequence,
    /// The job's name.
    pub job: String,
    /// The job's main process.
    pub root: ProcessId,
    /// Processes with CUDA and a shim.
    pub processes: Vec<Process>,
    /// Device memory that the driver will save into their host memory, in bytes.
    pub native_bytes: u64,
    /// Where everything goes.
    pub image: Arc<ImageDirectory>,
    /// CRIU, already checked.
    pub criu: Criu,
    /// The driver.
    pub control: Control,
    /// Files up to this size are copied.
    pub max_file_size: u64,
    /// TCP connections.
    pub tcp: Tcp,
    /// Bounds.
    pub timeouts: Timeouts,
    /// For the image.
    pub vault: Vec<VaultImage>,
    /// For the image.
    pub imports: Vec<(ProcessId, Vec<AllocationKey>)>,
    /// For the image.
    pub stdio: Vec<StdioPipe>,
    /// For the image.
    pub shim: Option<InstalledShim>,
    /// For the image.
    pub shim_socket: PathBuf,
    /// For the image.
    pub moved: Vec<(GpuUuid, GpuUuid)>,
    /// Log of a failed dump goes here.
    pub job_dir: PathBuf,
    /// How long detaching took, for the facts.
    pub detach_ns: u64,
    /// Set when the attempt is given up.
    pub cancelled: Arc<AtomicBool>,
}

/// Why a dump failed.
#[derive(Debug)]
pub struct DumpFailure {
    /// For the sidecar.
    pub error: AttemptError,
    /// Set when a process could not be brought back: the job has to be ended.
    pub lost: Option<String>,
    /// Set when a device was in the way that cannot be told from CUDA's own before a dump.
    pub device: Option<Box<InTheWay>>,
    /// Set when it failed for something that only a stop shows, and that is likely to be the same at the next try.
    pub lasting: Option<Lasting>,
}

impl From<AttemptError> for DumpFailure {
    fn from(error: AttemptError) -> Self {
        Self {
            error,
            lost: None,
            device: None,
            lasting: None,
        }
    }
}

fn ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Dumps the job. `saved` is called when the control state is saved and the driver's memory free.
///
/// # Errors
/// [`DumpFailure`].
pub fn dump(plan: &DumpPlan, saved: &dyn Fn()) -> Result<Box<DumpFacts>, DumpFailure> {
    let mut times = DumpTimes {
        detach_ns: plan.detach_ns,
        ..Default::default()
    };
    let tree = collect(plan.root)?;
    let without_shim = cuda_without_shim(&tree, plan)?;
    let mut pids: Vec<ProcessId> = plan.processes.iter().map(|p| p.pid).collect();
    pids.extend(&without_shim);
    // What the shims know of is part of it.
    let held = if pids.is_empty() {
        None
    } else {
        plan.control.held(&pids)
    };
    tracing::debug!(
        ?held,
        known = plan.native_bytes,
        "device memory that the driver saves"
    );
    room::check(&Need {
        resident: tree.resident_bytes(),
        native: held.unwrap_or_default().max(plan.native_bytes),
        image_room: Some(plan.image.free_bytes()),
    })
    .map_err(|error| DumpFailure {
        lasting: Some(Lasting::NoRoom),
        ..error.into()
    })?;
    let driver = if pids.is_empty() {
        None
    } else {
        Some(
            plan.control
                .get()
                .map_err(|e| AttemptError::Control(e.to_string()))?,
        )
    };
    cancelled(plan)?;

    let facts = ImageFacts {
        plan,
        without_shim: &without_shim,
        criu_version: &plan.criu.version,
        driver_version: driver.as_ref().map_or(0, |d| d.driver_version()),
        machine_gpus: driver.as_ref().map_or_else(Vec::new, |d| d.gpus()),
    };
    // CRIU starts while the driver saves the control state, and waits for it before it looks at the job.
    let outcome = std::thread::scope(|scope| -> Result<_, DumpFailure> {
        let (go, wait) = channel();
        let criu = std::thread::Builder::new()
            .name("criu".into())
            .spawn_scoped(scope, || {
                // The other end is gone when the control state could not be saved.
                run_criu(&facts, &tree.processes, move || wait.recv().is_ok())
            })
            .map_err(|e| AttemptError::Criu(format!("cannot start a thread: {e}")))?;

        let began = Instant::now();
        if let Some(driver) = &driver {
            checkpoint_all(driver.as_ref(), &pids, plan.timeouts.lock).map_err(|undone| {
                DumpFailure {
                    lost: undone.lost.map(|l| l.to_string()),
                    lasting: undone.cause.refused_process().map(Lasting::Process),
                    ..AttemptError::Control(undone.cause.to_string()).into()
                }
            })?;
        }
        times.control_checkpoint_ns = ns(began);
        saved();
        failpoint::hit("agent:before-criu");

        let began = Instant::now();
        let outcome = match cancelled(plan) {
            Ok(()) => {
                // It has ended already if it failed.
                let _ = go.send(());
                criu.join()
                    .unwrap_or_else(|_| Err(AttemptError::Criu("its thread ended".into()).into()))
            }
            Err(e) => Err(e.into()),
        };
        times.criu_ns = ns(began);
        Ok(outcome)
    })?;
    failpoint::hit("agent:after-criu");
    let outcome = match outcome {
        // Nothing to bring back.
        Err(failure) if failure.lost.is_some() => return Err(failure),
        // What the driver has taken away is not back yet: what is there now was in the way.
        Err(failure) => Err(match in_the_way(plan.root, &pids, &failure.error) {
            Some(found) => found,
            None => failure,
        }),
        Ok(()) => Ok(()),
    };

    let began = Instant::now();
    if let Some(driver) = &driver
        && let Err(e) = restore_all(driver.as_ref(), &pids, &[])
    {
        let error = match outcome {
            Ok(()) => AttemptError::Control(e.to_string()),
            Err(failure) => failure.error,
        };
        return Err(DumpFailure {
            lost: Some(e.to_string()),
            ..error.into()
        });
    }
    times.control_restore_ns = ns(began);
    outcome?;
    Ok(Box::new(DumpFacts {
        times,
        processes: plan.processes.clone(),
        image_bytes: plan.image.used_bytes(),
        driver_version: driver.map_or(0, |d| d.driver_version()),
    }))
}

/// Why CRIU failed, where that is a device of the NVIDIA driver: one that a process has besides those that CUDA opened, or
/// one of a process that began to use CUDA after the tree was looked at.
fn in_the_way(
    root: ProcessId,
    checkpointed: &[ProcessId],
    error: &AttemptError,
) -> Option<DumpFailure> {
    if !matches!(error, AttemptError::Criu(_)) {
        return None;
    }
    let tree = tree::collect(root).ok()?;
    let (with, without): (Vec<ProcessId>, Vec<ProcessId>) = tree
        .processes
        .iter()
        .partition(|pid| checkpointed.contains(pid));
    if let Some(found) = with.into_iter().find_map(devices::left_behind) {
        let error = AttemptError::Shim {
            pid: found.pid,
            refusal: Refusal::Unsupported(found.to_string()),
        };
        return Some(DumpFailure {
            device: Some(Box::new(found)),
            ..error.into()
        });
    }
    let pid = without
        .into_iter()
        .find(|&pid| devices::nvidia(pid).is_some())?;
    Some(newcomer(pid).into())
}

/// The tree, complete: without anything of the job outside it.
fn collect(root: ProcessId) -> Result<tree::Tree, AttemptError> {
    let mut tries = 0;
    loop {
        // Before the tree: a helper that is reaped in between is then still known as one.
        let helpers = signals::children().clone();
        let mut tree = tree::collect(root)
            .map_err(|e| AttemptError::Criu(format!("cannot read /proc: {e}")))?;
        tree.strays.retain(|(pid, _)| !helpers.contains(pid));
        if tree.processes.is_empty() {
            return Err(AttemptError::JobEnded);
        }
        if tree.strays.is_empty() {
            return Ok(tree);
        }
        tries += 1;
        if tries < 5 {
            // It may be about to end.
            std::thread::sleep(Duration::from_millis(20));
            continue;
        }
        let (pid, name) = &tree.strays[0];
        return Err(AttemptError::Criu(survey::stray(*pid, name)));
    }
}

fn cancelled(plan: &DumpPlan) -> Result<(), AttemptError> {
    if plan.cancelled.load(Ordering::Acquire) {
        Err(AttemptError::Abandoned)
    } else {
        Ok(())
    }
}

/// Processes with CUDA that no shim speaks for. Their memory is saved by the driver: slower, still right. One with
/// a shim is about to connect: not now.
fn cuda_without_shim(tree: &tree::Tree, plan: &DumpPlan) -> Result<Vec<ProcessId>, AttemptError> {
    let mut found = Vec::new();
    for &pid in &tree.processes {
        if plan.processes.iter().any(|p| p.pid == pid) {
            continue;
        }
        // NVML opens the devices without it: a GPU monitor.
        if !tree::maps_library(pid, "libcuda.so") && devices::nvidia(pid).is_none() {
            continue;
        }
        let Ok(driver) = plan.control.get() else {
            continue;
        };
        // An error: the library is loaded and nothing of the driver in use.
        if driver.state(pid).is_err() {
            continue;
        }
        if plan.shim.is_some() && shims::is_about_to_connect(pid) {
            return Err(newcomer(pid));
        }
        // NVML alone has nothing there.
        if tree::maps_library(pid, "libcuda.so") {
            tracing::warn!(
                pid,
                "a process uses the driver without the shim: what it has on the GPU is saved by the driver, which is slow if it is much"
            );
        }
        found.push(pid);
    }
    Ok(found)
}

struct ImageFacts<'a> {
    plan: &'a DumpPlan,
    without_shim: &'a [ProcessId],
    criu_version: &'a str,
    driver_version: u32,
    machine_gpus: Vec<GpuUuid>,
}

/// `ready` waits until the job may be looked at; false: the attempt is over.
fn run_criu(
    facts: &ImageFacts<'_>,
    processes: &[u32],
    ready: impl FnMut() -> bool,
) -> Result<(), DumpFailure> {
    let plan = facts.plan;
    let tcp = tree::tcp_use(plan.root, processes);
    let keep_tcp = match plan.tcp {
        Tcp::Auto => tcp.internal_only,
        Tcp::Close => false,
        Tcp::Keep => true,
    };
    let options = DumpOptions {
        root: plan.root,
        keep_tcp,
        freeze_seconds: u32::try_from(plan.timeouts.freeze.as_secs()).unwrap_or(u32::MAX),
        work: criu::patience(
            plan.timeouts.criu,
            plan.native_bytes + tree::image_bytes(plan.root),
        ),
        other_users: processes.iter().any(|&pid| tree::is_of_another_user(pid)),
    };
    let locks = if keep_tcp {
        netlock::tables()
    } else {
        BTreeSet::new()
    };
    let turn = linked::Turn::to_dump(processes);
    linked::clean(processes, SystemTime::now());
    let mut written: Result<(), AttemptError> = Ok(());
    let dumped = plan.criu.dump(&plan.image, options, ready, || {
        failpoint::hit("agent:frozen");
        written = describe(facts, keep_tcp, &tcp);
        written.is_ok()
    });
    drop(turn);
    let mut lost = None;
    if keep_tcp && dumped.is_err() {
        netlock::delete_stale(&locks);
        if tree::tcp_in_repair(processes) {
            lost = Some("CRIU was killed while it held the job's TCP connections".into());
        }
    }
    written?;
    if let Err(e) = dumped {
        keep_log(plan, "criu-dump-failed.log");
        return Err(DumpFailure {
            lost,
            ..AttemptError::Criu(e.to_string()).into()
        });
    }
    if tracing::enabled!(tracing::Level::DEBUG) {
        keep_log(plan, "criu-dump.log");
    }
    Ok(())
}

/// Keeps the log of a dump for whoever looks into it.
fn keep_log(plan: &DumpPlan, name: &str) {
    let from = plan.image.path_of(CRIU_DIR).join(criu::DUMP_LOG);
    let to = plan.job_dir.join(name);
    if let Err(e) = std::fs::copy(&from, &to) {
        tracing::debug!(cause = %e, "no log of the dump");
    }
}

/// Copies files and writes `agent.json`. The tree is frozen.
fn describe(facts: &ImageFacts<'_>, tcp_kept: bool, tcp: &TcpUse) -> Result<(), AttemptError> {
    let plan = facts.plan;
    let failed = |e: &dyn std::fmt::Display| AttemptError::Files(e.to_string());
    let tree = tree::collect(plan.root).map_err(|e| failed(&e))?;
    // CRIU was told before the tree stood still, and the ranks were looked at before that.
    let pids: Vec<ProcessId> = plan.processes.iter().map(|p| p.pid).collect();
    let need_connections = !tcp_kept && !environment::ranks(&pids).is_empty();
    let has_changed = (need_connections || plan.tcp == Tcp::Auto && tcp_kept) && {
        let now = tree::tcp_use(plan.root, &tree.processes);
        if tcp_kept {
            !now.internal_only
        } else {
            environment::closed_connections(&now, plan.tcp).is_some()
        }
    };
    if has_changed {
        return Err(AttemptError::OutOfOrder(
            "a TCP connection was opened or closed while the checkpoint began".into(),
        ));
    }
    plan.image.subdirectory(FILES_DIR).map_err(|e| failed(&e))?;
    let records =
        files::capture(&tree.processes, plan.max_file_size, &plan.image).map_err(|e| failed(&e))?;
    let linked = linked::capture(&tree.processes, &plan.image).map_err(|e| failed(&e))?;
    let shim = match &plan.shim {
        None => None,
        Some(shim) => {
            let length = std::fs::metadata(&shim.path)
                .map_err(|e| failed(&format!("cannot look at {}: {e}", shim.path.display())))?
                .len();
            files::copy_into(&shim.path, length, &plan.image, "shim")
                .map_err(|e| failed(&format!("cannot copy {}: {e}", shim.path.display())))?;
            Some(ShimImage {
                path: shim.path.clone(),
                blake3: shim.blake3.clone(),
                content: "shim".into(),
            })
        }
    };
    let mut directories: Vec<PathBuf> = tree
        .processes
        .iter()
        .filter_map(|&pid| tree::working_directory(pid))
        .collect();
    directories.sort();
    directories.dedup();
    // The shim's library and the working directories are made again where they are missing.
    let mut made = directories.clone();
    made.extend(plan.shim.as_ref().map(|shim| shim.path.clone()));
    let temporary = temporary::directories(&tree.processes);
    let carry = Carry {
        below: &temporary,
        most: plan.max_file_size,
        image: &plan.image,
    };
    let (needed, open) = files::needed(&tree.processes, &records, &made, &carry);
    let copied = needed.iter().filter(|n| n.copy.is_some());
    let places = places::capture(
        plan.root,
        &tree.processes,
        &Around {
            files: (records.iter().map(|r| &r.path))
                .chain(copied.map(|n| &n.path))
                .map(PathBuf::as_path)
                .chain(linked::paths_of(&linked))
                .collect(),
            directories: directories.iter().cloned().chain(open).collect(),
            perhaps: temporary::remembered(&tree.processes, &temporary),
        },
    );
    let image = AgentImage {
        format: if linked.is_empty() {
            WITHOUT_LINKED
        } else {
            FORMAT
        },
        phos_version: env!("CARGO_PKG_VERSION").into(),
        criu_version: facts.criu_version.to_owned(),
        arch: crate::agent::image::arch(),
        kernel: crate::agent::image::kernel(),
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
        shim,
        directories,
        files: records,
        linked,
        needed,
        places,
        listening: tcp.listening.clone(),
        addresses: tcp.needed(tcp_kept),
        tcp_kept,
        moved: plan.moved.clone(),
        machine_gpus: facts.machine_gpus.clone(),
    };
    plan.image.write_agent_image(&image).map_err(|e| failed(&e))
}
