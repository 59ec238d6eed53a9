//! The agent: `phos-ft run -- CMD`. PID 1 of the job's PID namespace.
//!
//! It starts the job, keeps the only lasting hold on its GPU memory, takes its images and brings it back. It is
//! small and synchronous, and has no CUDA context and no network, because everything else may die and it may not.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`config`] | what can be set |
//! | [`init`] | the main loop: what happens, and what is done about it |
//! | [`attempt`] | the steps of a checkpoint, decided without doing anything |
//! | [`job`] | how a job is started and looked after |
//! | [`user`] | what a job that is not root may do, and how root works in its directories |
//! | [`channels`] | who may connect |
//! | [`vault`] | which GPU memory is kept alive |
//! | [`survey`] | what is refused before anything stops |
//! | [`dump`] | what is done while the job stands still |
//! | [`restore`] | what is done when nothing of the old tree is left |
//! | [`image`] | what is in an image besides CRIU's part |
//! | [`files`] | which files travel with the job, and how they are put back |
//! | [`network`] | what TCP connections need of the machine and leave on it |
//! | [`tree`], [`sparse`] | what `/proc` says of the job; files with holes |
//! | [`criu`], [`control`] | the tools that a checkpoint and a restore use |
//! | [`failpoint`] | where tests make it die |
//!
//! Dependencies point one way: `init` uses all the others; `dump` and `restore` use `files`, `network`, `criu`, `job` and `user`;
//! `attempt` uses no module that has an effect.
//!
//! # Invariants it answers for
//!
//! Rules 3 and 4 of the design hold here: the sidecar's death costs at most the checkpoint in flight, and the agent alone can
//! always return a live job to running.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod attempt;
mod channels;
pub mod config;
mod control;
pub mod criu;
mod dump;
mod files;
pub mod image;
mod init;
mod job;
mod network;
mod proc;
mod restore;
mod sparse;
mod survey;
mod tree;
mod user;
mod vault;

use std::io;
use std::path::PathBuf;

pub use config::{AgentConfig, ConfigError, RankFailure, Shim, Tcp, Timeouts};
pub use job::namespace::NamespaceError;
pub use job::spawn::{SpawnError, check_program};
pub use job::{namespace, spawn};
pub use user::UserError;

/// Why the agent could not do its work. Unless it is about CMD itself, nothing was started.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The PID namespace cannot be set up.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// CMD does not start.
    #[error(transparent)]
    Spawn(#[from] SpawnError),
    /// CRIU lacks something that this job needs.
    #[error(transparent)]
    Criu(#[from] criu::CriuError),
    /// The run directory cannot be used.
    #[error("cannot use the run directory {}: {cause}. Make it writable, or choose another with --run-dir", .path.display())]
    RunDir {
        /// The path of the job's directory.
        path: PathBuf,
        /// The error of the file system.
        cause: io::Error,
    },
    /// The job's user could put something else in the place of what root trusts there.
    #[error(
        "the run directory {} is reached through {}, where user {user}, whom --user names, may put something else in its place: choose \
         one with --run-dir that only root may change, or take that from the user (chown root, chmod go-w)",
        .path.display(), .changeable.display()
    )]
    OpenRunDir {
        /// The path of the job's directory.
        path: PathBuf,
        /// The path on the way to it that the job's user may change.
        changeable: PathBuf,
        /// The uid of the job's user.
        user: u32,
    },
    /// Another agent on this machine runs the job.
    #[error(
        "an agent for job {job} is running already ({} is locked): choose another --job, or end that one",
        .path.display()
    )]
    AlreadyRunning {
        /// The name of the job.
        job: String,
        /// The path of the job's directory, which is locked.
        path: PathBuf,
    },
    /// Another node has taken the job over.
    #[error(
        "another node has job {job}: {reason}. To bring it back here, end it there, then remove {} (or the container with its \
         volumes) and start it here",
        .note.display()
    )]
    Fenced {
        /// The name of the job.
        job: String,
        /// Who has the job, in the sidecar's words.
        reason: String,
        /// The note that keeps it from starting here.
        note: PathBuf,
    },
    /// A socket cannot be made.
    #[error("cannot listen at {}: {cause}. Make the directory writable, or choose another with --run-dir", .path.display())]
    Socket {
        /// The path of the socket.
        path: PathBuf,
        /// The error of making it.
        cause: io::Error,
    },
    /// A call of the driver hangs.
    #[error(
        "the GPU driver does not come back from a call (see the kernel's log: dmesg | grep -i nvrm): end this container or \
         reset the GPU, then start the job again; it resumes from its newest checkpoint"
    )]
    DriverHangs,
    /// A system call failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What was tried.
        what: &'static str,
        /// The error that the system call returned.
        cause: io::Error,
    },
}

impl AgentError {
    /// The exit code of `phos-ft run`: 127 and 126 as a shell's for a command that is missing or cannot be run,
    /// 2 for bad input, else 1.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Spawn(e) => e.exit_code(),
            Self::Config(_) => 2,
            Self::Fenced { .. } => 76,
            _ => 1,
        }
    }
}

/// Runs CMD under an agent until it ends; returns the exit code to pass on.
///
/// Call it early and from a single-threaded process: outside a container it forks, continues in the child and returns in both
/// processes, in each with the code that process has to exit with. An error in the child is returned in the child; the parent
/// gets the child's exit code.
///
/// # Errors
/// [`AgentError`].
pub fn run(config: AgentConfig) -> Result<i32, AgentError> {
    config.validate()?;
    let missing = namespace::missing_capabilities();
    if !missing.is_empty() && config.allow_unprotected {
        tracing::warn!(
            missing = missing.join(", "),
            "capabilities are missing: the command runs without checkpoints"
        );
        return Err(spawn::exec_unprotected(&config).into());
    }
    // Before anything is made.
    spawn::check_program(&config.command)?;
    config.locate_shim()?;
    if config.job_user()?.is_some_and(|user| user.is_another()) && criu::preload_library().is_none()
    {
        return Err(criu::CriuError::Library.into());
    }
    match namespace::enter()? {
        namespace::Entered::Outer(code) => Ok(code),
        namespace::Entered::Init => init::run(config),
    }
}
