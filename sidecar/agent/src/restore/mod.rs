//! The middle of a restore, when nothing of the old tree is left: files, CRIU, control state.
//!
//! Runs in a thread of its own. A failure leaves processes, which the caller has to kill, and files that were put back, which a
//! later try finds as they should be.

mod boundary;
pub mod gpus;

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use phos_gpu::control::ControlError;
use phos_protocol::agent::RestoreTimes;
use phos_protocol::types::{GpuUuid, ProcessId};
use phos_shared::failpoint::{self, Point};
use rustix::process::{Pid, Signal, kill_process};

use self::boundary::BoundaryError;
use crate::control::{Control, restore_all};
use crate::criu::{self, CriuError, Inherited, ghosts};
use crate::files::linked;
use crate::files::places::{self, PlaceError};
use crate::files::{self, Action, FilesError};
use crate::image::{AgentImage, CRIU_DIR, FILES_DIR, ImageDirectory};
use crate::job::namespace::{PidCounter, all_ids};
use crate::job::spawn;
use crate::job::stdio::JobEnds;
use crate::network::addresses;
use crate::network::lingering;
use crate::network::netlock::{self, Locks};
use crate::tree;
use crate::user::JobUser;

/// Everything that the middle of a restore needs to know.
#[derive(Debug)]
pub struct RevivePlan {
    /// The directory of the image.
    pub directory: Arc<ImageDirectory>,
    /// The description of the image.
    pub image: AgentImage,
    /// Old GPU → new GPU, of every GPU that the driver had, or empty.
    pub pairs: Vec<(GpuUuid, GpuUuid)>,
    /// The CRIU program of `--criu`; `None`: one is looked for.
    pub criu: Option<PathBuf>,
    /// How long CRIU may take.
    pub criu_patience: Duration,
    /// The driver's calls to bring control state back.
    pub control: Control,
    /// The job's ends of the new generation's streams.
    pub ends: JobEnds,
    /// The namespace's PID counter, which is lifted above the image's PIDs.
    pub pids: Arc<PidCounter>,
    /// The user that the job runs as, if it is another than the agent's.
    pub user: Option<JobUser>,
    /// Log of a failed restore goes here.
    pub job_dir: PathBuf,
    /// Set when nobody wants the processes any more.
    pub unwanted: Arc<AtomicBool>,
}

/// Why the middle of a restore failed.
#[derive(Debug, thiserror::Error)]
pub enum ReviveError {
    /// A PID of the image is in use in this namespace.
    #[error(
        "PID {0} of the image is in use in this namespace: run the job under `phos-ft run`, which gives it a namespace of its own"
    )]
    PidTaken(u32),
    /// `/proc` is unreadable.
    #[error("cannot read /proc: {0}")]
    Proc(std::io::Error),
    /// A file cannot be put back.
    #[error("files of the job: {0}")]
    Files(#[from] FilesError),
    /// A directory or named pipe cannot be made.
    #[error("files of the job: {0}")]
    Place(#[from] PlaceError),
    /// The library of the shim cannot be put back.
    #[error("cannot put the shim's library back at {}: {cause}", .path.display())]
    Shim {
        /// The path that the library had.
        path: PathBuf,
        /// The error of the file system.
        cause: std::io::Error,
    },
    /// The machine lacks an address that the job's sockets are bound to.
    #[error(
        "the job's TCP connections are on the address {address}, which this machine does not have, and which cannot be added to \
         its loopback interface ({cause}): give the agent the capability NET_ADMIN, or start the job with \
         NCCL_SOCKET_IFNAME=lo GLOO_SOCKET_IFNAME=lo"
    )]
    Address {
        /// The address, of the machine that the job was on.
        address: IpAddr,
        /// The error of the system call.
        cause: std::io::Error,
    },
    /// The image would give the job more than its user may have.
    #[error("{0}")]
    Boundary(#[from] BoundaryError),
    /// CRIU failed to restore the processes.
    #[error("CRIU: {0}")]
    Criu(#[from] CriuError),
    /// The driver failed to restore the control state.
    #[error("GPU control state: {0}")]
    Control(#[from] ControlError),
    /// A pipe cannot be made.
    #[error("cannot make a pipe: {0}")]
    Pipe(std::io::Error),
    /// See [`RevivePlan::unwanted`].
    #[error("nobody wants the processes any more")]
    Unwanted,
}

impl ReviveError {
    /// Whether somebody has to put something right first, which the message says.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Boundary(e) => e.is_refusal(),
            Self::Files(e) => matches!(e, FilesError::Owner { .. } | FilesError::NotRegular { .. }),
            _ => false,
        }
    }

    /// Whether it would be no different at another try: the driver refuses to restore a process that is there. Without
    /// memory for it, or without a GPU that is ready, it may.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Control(e) => e.lost_process().is_some_and(tree::is_alive),
            _ => false,
        }
    }
}

fn ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

/// Brings the tree back up to its control state; returns the PID of its main process.
///
/// # Errors
/// [`ReviveError`].
pub fn revive(plan: RevivePlan) -> Result<(ProcessId, RestoreTimes), ReviveError> {
    let mut times = RestoreTimes::default();
    let image = &plan.image;
    let criu = criu::locate(plan.criu.as_deref())?;
    let pids: Vec<ProcessId> = image
        .processes
        .iter()
        .map(|p| p.member.process)
        .chain(image.without_shim.iter().copied())
        .collect();
    // Before anything is changed: a machine without the driver cannot run this image.
    let driver = if pids.is_empty() {
        None
    } else {
        Some(plan.control.get()?)
    };
    let wanted = free_ids(image)?;
    failpoint::reach(Point::AgentBeforeRestore);
    let criu_images = plan.directory.path_of(CRIU_DIR);
    let user = plan.user.as_ref();
    let look = user
        .map(|user| boundary::check(&criu_images, image, user))
        .transpose()?;
    if let Some(user) = user {
        ghosts::give_to(&criu_images, user).map_err(BoundaryError::Image)?;
    }

    let began = Instant::now();
    let turn = linked::Turn::to_restore(&image.linked);
    put_back_files(image, &plan.directory)?;
    for &address in &image.addresses {
        addresses::provide(address).map_err(|cause| ReviveError::Address { address, cause })?;
    }
    lingering::destroy(&image.listening);
    if image.tcp_kept {
        // Of a dump that was killed, and its agent with it.
        match criu::preload_library() {
            Some(_) => Locks::of(&plan.job_dir).delete_stale(),
            None => netlock::delete_all(),
        }
    }
    times.files_ns = ns(began);
    failpoint::reach(Point::AgentMidRestore);
    if plan.unwanted.load(Ordering::Acquire) {
        return Err(ReviveError::Unwanted);
    }

    let began = Instant::now();
    let inherited = inherit(image, plan.ends)?;
    let mut confirmed = Ok(());
    let restored = criu.restore(
        &plan.directory,
        image.connections(),
        plan.criu_patience,
        inherited,
        user,
        || {
            if let (Some(look), Some(user)) = (&look, user) {
                confirmed = look.confirm(image.root_pid, user);
            }
            if confirmed.is_err() {
                end(image.root_pid);
            }
        },
    );
    drop(turn);
    confirmed?;
    let root = match restored {
        Ok(root) => root,
        Err(e) => {
            ghosts::sweep(&criu_images);
            // What the job's user may not have, CRIU did not get. Then there is something to put right, which this says.
            if let Some(user) = user
                && let Err(refusal) = boundary::check(&criu_images, image, user)
                && refusal.is_refusal()
            {
                return Err(refusal.into());
            }
            keep_log(&criu_images, &plan.job_dir);
            return Err(e.into());
        }
    };
    // From here on the job makes processes again: above those of the image.
    let above = wanted.last().copied().unwrap_or(root) + 1;
    if let Err(e) = plan.pids.set_next(above) {
        tracing::warn!(cause = %e, "new processes of the job get low PIDs");
    }
    times.criu_ns = ns(began);
    failpoint::reach(Point::AgentAfterRestore);
    if plan.unwanted.load(Ordering::Acquire) {
        return Err(ReviveError::Unwanted);
    }

    let began = Instant::now();
    if let Some(driver) = driver {
        restore_all(driver.as_ref(), &pids, &plan.pairs)?;
    }
    times.control_restore_ns = ns(began);
    Ok((root, times))
}

/// The IDs of the image's processes and threads, all of which are free.
fn free_ids(image: &AgentImage) -> Result<BTreeSet<u32>, ReviveError> {
    let wanted: BTreeSet<u32> = image.ids.iter().copied().collect();
    let live = all_ids().map_err(ReviveError::Proc)?;
    match wanted.intersection(&live).next() {
        Some(taken) => Err(ReviveError::PidTaken(*taken)),
        None => Ok(wanted),
    }
}

/// Keeps what CRIU said of a restore that failed.
fn keep_log(criu_images: &Path, job_dir: &Path) {
    let log = criu_images.join(criu::RESTORE_LOG);
    let kept = job_dir.join("criu-restore-failed.log");
    if let Err(e) = std::fs::copy(&log, &kept) {
        tracing::debug!(cause = %e, "no log of the failed restore");
    }
}

/// Ends a tree that stands still and must not run.
fn end(root: ProcessId) {
    let processes = tree::collect(root).map_or_else(|_| vec![root], |tree| tree.processes);
    for pid in processes {
        let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        if let Some(Err(cause)) = pid.map(|pid| kill_process(pid, Signal::KILL)) {
            tracing::error!(?pid, %cause, "a process that must not run cannot be ended");
        }
    }
}

fn put_back_files(image: &AgentImage, directory: &ImageDirectory) -> Result<(), ReviveError> {
    let made = places::make(&image.places)?;
    if made > 0 {
        tracing::info!(
            places = made,
            "made directories and named pipes that the job had and this machine had not"
        );
    }
    // Of images of before these were among the places.
    for path in &image.directories {
        if !path.is_dir() {
            files::create_directory(path)?;
        }
    }
    let contents = directory.path_of(FILES_DIR);
    if let Some(shim) = &image.shim {
        let failed = |cause| ReviveError::Shim {
            path: shim.path.clone(),
            cause,
        };
        let bytes = std::fs::read(contents.join(&shim.content)).map_err(failed)?;
        if blake3::hash(&bytes).to_hex().as_str() != shim.blake3 {
            return Err(failed(std::io::Error::other(
                "its bytes in the image are damaged; use the checkpoint before",
            )));
        }
        files::create_parents(&shim.path)?;
        spawn::put_back_shim(&shim.path, &bytes).map_err(failed)?;
    }
    for needed in &image.needed {
        if files::bring(needed, &contents)? {
            tracing::info!(path = %needed.path.display(), "missing here, written from the checkpoint");
        }
    }
    for record in &image.files {
        match files::put_back(record, &contents)? {
            Action::Nothing => {}
            Action::Cut { saved, bytes } => {
                tracing::info!(path = %record.path.display(), bytes, ?saved, "cut back to its length at the checkpoint");
            }
            Action::Rewritten { saved } => {
                tracing::info!(path = %record.path.display(), ?saved, "written as it was at the checkpoint");
            }
        }
    }
    for file in &image.linked {
        linked::put_back(file, &contents)?;
    }
    let longer = files::of_any_length(&image.needed);
    if let Err(cause) = criu::sizes::forget(&directory.path_of(CRIU_DIR), &longer) {
        // CRIU says which of them, if any, is not as it was.
        tracing::warn!(%cause, "files that somebody made longer cannot be opened again");
    }
    Ok(())
}

/// The fresh pipes under the names of the old ones.
fn inherit(image: &AgentImage, ends: JobEnds) -> Result<Vec<Inherited>, ReviveError> {
    let JobEnds {
        stdin,
        stdout,
        stderr,
    } = ends;
    let mut slots: [Option<OwnedFd>; 3] = [Some(stdin), Some(stdout), Some(stderr)];
    let mut inherited = Vec::new();
    for pipe in &image.stdio {
        let Some(fd) = slots
            .get_mut(usize::from(pipe.stream))
            .and_then(Option::take)
        else {
            continue;
        };
        let is_pipe = rustix::fs::fstat(&fd)
            .is_ok_and(|s| rustix::fs::FileType::from_raw_mode(s.st_mode).is_fifo());
        let fd = if is_pipe {
            fd
        } else {
            // The job had a pipe as its input and this agent has none to give: an empty one.
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
                .map_err(|e| ReviveError::Pipe(e.into()))?
                .0
        };
        inherited.push(Inherited {
            key: format!("pipe:[{}]", pipe.inode),
            fd,
        });
    }
    Ok(inherited)
}
