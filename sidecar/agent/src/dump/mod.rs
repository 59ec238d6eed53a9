//! The middle of a checkpoint, when every shim is detached: control state, CRIU, files, control state back.
//!
//! Runs in a thread of its own, because all of it blocks, while the main loop continues to reap and to listen.
//!
//! # Rules
//!
//! * Whatever happens, the processes end as they began: running and unlocked, unless [`DumpFailure::lost`] says
//!   that one could not be brought back.
//! * A cancelled dump is undone at the next step; CRIU is not interrupted, unless it hangs.
//! * A dump fails, with the reason, if something belongs to the job and would not be in the image: strays (processes whose
//!   parents have ended), CUDA processes that are about to connect.

mod description;
mod pages;
mod plan;

use std::io::ErrorKind;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime};

use phos_gpu::control::ControlState;
use phos_protocol::agent::{AttemptError, DumpFacts, DumpTimes};
use phos_protocol::shim::Refusal;
use phos_protocol::types::{MemberId, ProcessId};
use phos_shared::failpoint::{self, Point};

use self::description::{ImageFacts, describe};
pub use self::plan::{DumpFailure, DumpPlan};
use crate::channels::shims;
use crate::config::Tcp;
use crate::control::{checkpoint_all, restore_all};
use crate::criu::{self, Content, DumpOptions, Users};
use crate::files::linked;
use crate::image::{CRIU_DIR, Connections};
use crate::job::signals;
use crate::network::netlock::Locks;
use crate::survey::devices;
use crate::survey::room::{self, Need};
use crate::survey::{self, Lasting, newcomer};
use crate::tree;

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
    let mut pids: Vec<ProcessId> = plan.processes.iter().map(|p| p.member.process).collect();
    pids.extend(&without_shim);
    check_room(plan, &tree, &pids)?;
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
    let outcome = save_and_dump(
        &facts,
        &tree.processes,
        driver.as_deref(),
        &pids,
        saved,
        &mut times,
    )?;
    failpoint::reach(Point::AgentAfterCriu);
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

/// Whether the image has room for the tree and for what the driver will save.
fn check_room(plan: &DumpPlan, tree: &tree::Tree, pids: &[ProcessId]) -> Result<(), DumpFailure> {
    // What the shims know of is part of it.
    let held = if pids.is_empty() {
        None
    } else {
        plan.control.held(pids)
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
    })
}

/// Saves the control state of `pids` and has CRIU dump the tree: what came of the dump. CRIU starts while the driver saves, and
/// waits for it before it looks at the job.
///
/// # Errors
/// The control state could not be saved, and that is undone.
fn save_and_dump(
    facts: &ImageFacts<'_>,
    processes: &[ProcessId],
    driver: Option<&dyn ControlState>,
    pids: &[ProcessId],
    saved: &dyn Fn(),
    times: &mut DumpTimes,
) -> Result<Result<(), DumpFailure>, DumpFailure> {
    let plan = facts.plan;
    std::thread::scope(|scope| {
        let (go, wait) = channel();
        let criu = std::thread::Builder::new()
            .name("criu".into())
            .spawn_scoped(scope, || {
                // The other end is gone when the control state could not be saved.
                run_criu(facts, processes, move || wait.recv().is_ok())
            })
            .map_err(|e| AttemptError::Criu(format!("cannot start a thread: {e}")))?;

        let began = Instant::now();
        if let Some(driver) = driver {
            checkpoint_all(driver, pids, plan.timeouts.lock).map_err(|undone| DumpFailure {
                lost: undone.lost.map(|l| l.to_string()),
                lasting: undone.cause.refused_process().map(Lasting::Process),
                ..AttemptError::Control(undone.cause.to_string()).into()
            })?;
        }
        times.control_checkpoint_ns = ns(began);
        saved();
        failpoint::reach(Point::AgentBeforeCriu);

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
    })
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
            member: MemberId::here(found.pid),
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
        if plan.processes.iter().any(|p| p.member.process == pid) {
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

/// `ready` waits until the job may be looked at; false: the attempt is over.
fn run_criu(
    facts: &ImageFacts<'_>,
    processes: &[u32],
    mut ready: impl FnMut() -> bool,
) -> Result<(), DumpFailure> {
    let plan = facts.plan;
    let tcp = tree::tcp_use(plan.root, processes);
    let connections = match plan.tcp {
        Tcp::Auto if tcp.internal_only => Connections::Kept,
        Tcp::Auto | Tcp::Close => Connections::Closed,
        Tcp::Keep => Connections::Kept,
    };
    let is_kept = connections == Connections::Kept;
    let has_others = processes.iter().any(|&pid| tree::is_of_another_user(pid));
    let options = DumpOptions {
        root: plan.root,
        connections,
        freeze_seconds: u32::try_from(plan.timeouts.freeze.as_secs()).unwrap_or(u32::MAX),
        work: criu::patience(
            plan.timeouts.criu,
            plan.native_bytes + tree::image_bytes(plan.root),
        ),
        users: if has_others {
            Users::Others
        } else {
            Users::Own
        },
        content: if pages::begin() {
            Content::Left
        } else {
            Content::Copied
        },
        locks: Locks::of(&plan.job_dir),
    };
    let turn = linked::Turn::to_dump(processes);
    linked::clean(processes, SystemTime::now());
    let mut written: Result<(), AttemptError> = Ok(());
    let mut dump = |copy: Option<&pages::Copying<'_, '_>>| {
        let ready = || {
            // CRIU is set up, and writes nothing of the job before this returns.
            if let Some(copy) = copy {
                copy.follow();
            }
            ready()
        };
        plan.criu.dump(&plan.image, options, ready, || {
            failpoint::reach(Point::AgentFrozen);
            let copied = copy.map_or(Ok(()), |copy| copy.finish().map(drop));
            written = copied
                .map_err(|e| not_copied(plan, &e))
                .and_then(|()| describe(facts, connections, &tcp));
            written.is_ok()
        })
    };
    let dumped = match options.content {
        Content::Copied => dump(None),
        Content::Left => {
            let images = plan.image.path_of(CRIU_DIR);
            // Where it cannot be made, CRIU cannot begin either, and says why.
            let _ = plan.image.subdirectory(CRIU_DIR);
            let order = pages::Order {
                images: &images,
                processes,
                // As long as CRIU would have had for it.
                patience: options.work,
                cancelled: &plan.cancelled,
            };
            let (dumped, copied) = pages::copying(&order, |copy| dump(Some(copy)));
            // It fills the image that CRIU could then not write to.
            if let Err(e) = copied
                && dumped.is_err()
                && written.is_ok()
            {
                written = Err(not_copied(plan, &e));
            }
            dumped
        }
    };
    drop(turn);
    let mut lost = None;
    if is_kept && dumped.is_err() {
        options.locks.delete_stale();
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

/// What a failed copy of the job's memory means for the attempt.
fn not_copied(plan: &DumpPlan, error: &std::io::Error) -> AttemptError {
    if let Err(abandoned) = cancelled(plan) {
        return abandoned;
    }
    let remedy = match error.kind() {
        _ if pages::is_full(error) => ": raise --image-limit or free host memory",
        ErrorKind::TimedOut => ": the machine is short of memory, or very busy",
        _ => "",
    };
    AttemptError::Criu(format!(
        "the job's memory cannot be copied: {error}{remedy}"
    ))
}

/// Keeps the log of a dump for a person to look into.
fn keep_log(plan: &DumpPlan, name: &str) {
    let from = plan.image.path_of(CRIU_DIR).join(criu::DUMP_LOG);
    let to = plan.job_dir.join(name);
    if let Err(e) = std::fs::copy(&from, &to) {
        tracing::debug!(cause = %e, "no log of the dump");
    }
}
