//! The configuration of `phos-ft run`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use phos_protocol::env;

use crate::user::{JobUser, Privileges, UserError};

/// Which shim library the job gets, if any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Shim {
    /// `$PHOS_SHIM`, else `libphos_shim.so` beside the program, in `../lib` or in `/opt/phos/lib`.
    #[default]
    Find,
    /// The library at this path.
    At(PathBuf),
    /// None: the job is checkpointed without taking over GPU memory (slower, still right).
    Without,
}

/// What happens to TCP connections of the job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tcp {
    /// [`Tcp::Keep`] when every established connection has both ends inside the job's tree, else [`Tcp::Close`].
    #[default]
    Auto,
    /// Connections are closed in the restored job.
    Close,
    /// Connections are restored: right only when both ends are in the job. Needs nftables.
    Keep,
}

/// What follows when a rank (a process with NCCL communicators) fails and the job's main process goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RankFailure {
    /// The job is ended and resumes from its newest checkpoint, if it has one.
    #[default]
    Resume,
    /// Nothing: it is left to the program that started the rank.
    Leave,
}

/// Bounds for everything the agent waits for. `PHOS_TIMEOUTS=<name>=<ms>,…` sets those of them that tests cannot wait for:
/// `driver`, `detached`, `lock`, `criu`, `freeze`, `reap`.
#[derive(Debug, Clone)]
pub struct Timeouts {
    /// A shim's answer to `Quiesce` beyond the timeout it was given itself.
    pub quiesce_margin: Duration,
    /// How long the job is held quiesced while the sidecar digests, before the agent resumes it by
    /// itself.
    pub hold: Duration,
    /// `Detach`, all shims.
    pub detach: Duration,
    /// `cuCheckpointProcessLock`.
    pub lock: Duration,
    /// `cuCheckpointProcessCheckpoint` and `…Restore` together. They cannot be interrupted: after that the job is ended.
    pub driver: Duration,
    /// CRIU, a dump or a restore; longer for larger images, see [`criu::patience`](crate::criu::patience).
    pub criu: Duration,
    /// CRIU's own bound for freezing the tree.
    pub freeze: Duration,
    /// How long the job stays detached while the sidecar drains, before the agent attaches it.
    pub detached: Duration,
    /// Attach, all shims; after that the job counts as lost and is ended.
    pub attach: Duration,
    /// After SIGKILL, until every process has gone.
    pub reap: Duration,
    /// Saving the CUDA state of a job that was once restored, before it is killed.
    pub save_before_kill: Duration,
    /// A message to a peer that does not read.
    pub send: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            quiesce_margin: Duration::from_secs(5),
            hold: Duration::from_secs(60),
            detach: Duration::from_secs(60),
            lock: Duration::from_secs(20),
            driver: Duration::from_secs(300),
            criu: Duration::from_secs(30),
            freeze: Duration::from_secs(30),
            detached: Duration::from_secs(120),
            attach: Duration::from_secs(120),
            reap: Duration::from_secs(60),
            save_before_kill: Duration::from_secs(20),
            send: Duration::from_secs(10),
        }
    }
}

impl Timeouts {
    /// The defaults, and what `PHOS_TIMEOUTS` says otherwise. What it says of anything else counts for nothing.
    fn from_environment() -> Self {
        let mut timeouts = Self::default();
        let settings = std::env::var("PHOS_TIMEOUTS").unwrap_or_default();
        for (name, ms) in settings.split(',').filter_map(|s| s.split_once('=')) {
            let bound = match name {
                "driver" => &mut timeouts.driver,
                "detached" => &mut timeouts.detached,
                "lock" => &mut timeouts.lock,
                "criu" => &mut timeouts.criu,
                "freeze" => &mut timeouts.freeze,
                "reap" => &mut timeouts.reap,
                _ => continue,
            };
            if let Ok(ms) = ms.parse() {
                *bound = Duration::from_millis(ms);
            }
        }
        timeouts
    }
}

/// Everything [`run`](crate::run) needs to know. Built by the command line.
#[derive(Debug, Clone)]
pub struct AgentConfig {
    /// Name of the job: a directory name (letters, digits, `.`, `_`, `-`).
    pub job: String,
    /// Directory shared with the sidecar; the agent's sockets lie in `<run_dir>/<job>/`.
    pub run_dir: PathBuf,
    /// CMD and its arguments.
    pub command: Vec<OsString>,
    /// The shim library to preload into the job.
    pub shim: Shim,
    /// `--criu`; `None`: see [`criu::locate`](crate::criu::locate).
    pub criu: Option<PathBuf>,
    /// Files the job has open for writing are copied into the image up to this size, in bytes; of larger
    /// ones only the length is kept.
    pub max_file_size: u64,
    /// Size of the tmpfs of one image, in bytes; `None`: half of the machine's memory, as tmpfs does.
    pub image_limit: Option<u64>,
    /// How long to wait for a sidecar before CMD is started afresh without one. Zero: do not wait.
    /// `None`: for ever.
    pub sidecar_wait: Option<Duration>,
    /// After a crash, with no sidecar connected: how long to wait for one before exiting with the job's
    /// code.
    pub crash_wait: Duration,
    /// After a crash, with a sidecar connected: how long it may stay silent (a download sends nothing).
    pub decision_wait: Duration,
    /// From SIGTERM to SIGKILL of the job. The sidecar's last checkpoint gets at most four fifths of it.
    pub grace: Duration,
    /// Start CMD without any protection, instead of refusing, when privileges are missing.
    pub allow_unprotected: bool,
    /// TCP connections of the job.
    pub tcp: Tcp,
    /// What follows when a rank fails and the job's main process goes on.
    pub rank_failure: RankFailure,
    /// Whether the job may use multicast objects, which the shim then takes apart for checkpoints.
    pub nvls: bool,
    /// Whether the job's contexts are made smaller than CUDA makes them, so that the driver has less to save and to restore.
    pub lean_context: bool,
    /// The job's `CUDA_VISIBLE_DEVICES`, which the agent does not have itself. Set by the agent.
    pub visible_devices: Option<OsString>,
    /// Variables of the environment that CMD gets although they are phos-ft's.
    pub keep_env: Vec<String>,
    /// The user that CMD runs as: USER, USER:GROUP or USER:GROUP,GROUP,…; `None`: the agent's own.
    pub user: Option<String>,
    /// Whether set-user-ID programs and those with capabilities give the job of another user what they give elsewhere, and a job that
    /// is root has the capabilities that are there for the agent.
    pub allow_new_privileges: bool,
    /// The bounds of everything that the agent waits for.
    pub timeouts: Timeouts,
}

impl AgentConfig {
    /// A configuration for a job's command, with the defaults for everything else.
    pub fn new(job: impl Into<String>, command: Vec<OsString>) -> Self {
        Self {
            job: job.into(),
            run_dir: PathBuf::from("/run/phos"),
            command,
            shim: Shim::Find,
            criu: None,
            max_file_size: 64 << 20,
            image_limit: None,
            sidecar_wait: Some(Duration::from_secs(30)),
            crash_wait: Duration::from_secs(60),
            decision_wait: Duration::from_secs(6 * 3600),
            grace: Duration::from_secs(30),
            allow_unprotected: false,
            tcp: Tcp::Auto,
            rank_failure: RankFailure::Resume,
            nvls: false,
            lean_context: false,
            visible_devices: None,
            keep_env: Vec::new(),
            user: None,
            allow_new_privileges: false,
            timeouts: Timeouts::from_environment(),
        }
    }

    /// The directory of the job: `<run_dir>/<job>`.
    pub fn job_dir(&self) -> PathBuf {
        self.run_dir.join(&self.job)
    }

    /// The path of the socket at which the sidecar connects.
    pub fn agent_socket(&self) -> PathBuf {
        self.job_dir().join(env::AGENT_SOCKET_FILE)
    }

    /// The path of the socket at which the shims connect.
    pub fn shim_socket(&self) -> PathBuf {
        self.job_dir().join(env::SHIM_SOCKET_FILE)
    }

    /// Checks what can be checked before anything starts.
    ///
    /// # Errors
    /// [`ConfigError`].
    pub fn validate(&self) -> Result<(), ConfigError> {
        let good = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if self.job.is_empty()
            || self.job.len() > 64
            || self.job.starts_with('.')
            || !self.job.chars().all(good)
        {
            return Err(ConfigError::Job(self.job.clone()));
        }
        if self.command.is_empty() {
            return Err(ConfigError::NoCommand);
        }
        if !self.run_dir.is_absolute() {
            return Err(ConfigError::RunDir(self.run_dir.clone()));
        }
        // sun_path holds 107 characters and the terminating zero.
        let socket = self.shim_socket();
        if socket.as_os_str().len() > 107 {
            return Err(ConfigError::LongPath(socket));
        }
        self.job_user()?;
        Ok(())
    }

    /// The user that CMD runs as, if it is not the agent's.
    ///
    /// # Errors
    /// [`ConfigError::User`].
    pub fn job_user(&self) -> Result<Option<JobUser>, ConfigError> {
        self.user
            .as_deref()
            .map(JobUser::find)
            .transpose()
            .map_err(ConfigError::User)
    }

    /// Whether CMD can get privileges that it does not start with.
    pub fn privileges(&self) -> Privileges {
        if self.allow_new_privileges {
            Privileges::Allowed
        } else {
            Privileges::Forgone
        }
    }

    /// The shim to preload, if any.
    ///
    /// # Errors
    /// [`ConfigError::NoShim`].
    pub fn locate_shim(&self) -> Result<Option<PathBuf>, ConfigError> {
        match &self.shim {
            Shim::Without => Ok(None),
            Shim::At(path) if path.is_file() => Ok(Some(path.clone())),
            Shim::At(path) => Err(ConfigError::NoShim(path.display().to_string())),
            Shim::Find => {
                let mut places: Vec<PathBuf> = Vec::new();
                if let Some(path) = std::env::var_os("PHOS_SHIM") {
                    places.push(path.into());
                }
                if let Some(dir) = std::env::current_exe()
                    .ok()
                    .as_deref()
                    .and_then(Path::parent)
                {
                    places.push(dir.join(SHIM_FILE));
                    places.push(dir.join("../lib").join(SHIM_FILE));
                }
                places.push(Path::new("/opt/phos/lib").join(SHIM_FILE));
                match places.iter().find(|p| p.is_file()) {
                    Some(path) => Ok(Some(path.clone())),
                    None => Err(ConfigError::NoShim(
                        places
                            .iter()
                            .map(|p| p.display().to_string())
                            .collect::<Vec<_>>()
                            .join(", "),
                    )),
                }
            }
        }
    }
}

/// File name of the shim as built.
pub const SHIM_FILE: &str = "libphos_shim.so";

/// What is wrong with an [`AgentConfig`].
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The name of the job cannot be used as a directory name.
    #[error(
        "job name {0:?} is not usable: take 1 to 64 letters, digits, '.', '_' or '-', not starting with '.'"
    )]
    Job(String),
    /// No command was given.
    #[error("no command was given: put it after `--`, as in `phos-ft run -- python train.py`")]
    NoCommand,
    /// The run directory was given as a relative path.
    #[error("run directory {0} is not an absolute path: give the full path to --run-dir")]
    RunDir(PathBuf),
    /// A unix socket path has at most 107 characters.
    #[error("the socket path {0} is longer than 107 characters: use a shorter --run-dir or --job")]
    LongPath(PathBuf),
    /// The user of `--user` does not exist, or cannot be looked up.
    #[error(transparent)]
    User(UserError),
    /// The library of the shim was not found at any of these paths.
    #[error(
        "libphos_shim.so was not found (looked at: {0}): build it with `make setup`, or name it with --shim or $PHOS_SHIM"
    )]
    NoShim(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_are_refused() {
        for bad in ["", ".x", "a/b", "a b", "ä", &"x".repeat(65)] {
            assert!(
                AgentConfig::new(bad, vec!["x".into()]).validate().is_err(),
                "{bad:?}"
            );
        }
        AgentConfig::new("train-1.b_c", vec!["x".into()])
            .validate()
            .unwrap();
        assert!(matches!(
            AgentConfig::new("a", vec![]).validate(),
            Err(ConfigError::NoCommand)
        ));
        let mut long = AgentConfig::new("a", vec!["x".into()]);
        long.run_dir = PathBuf::from("/").join("y".repeat(120));
        assert!(matches!(long.validate(), Err(ConfigError::LongPath(_))));
    }
}
