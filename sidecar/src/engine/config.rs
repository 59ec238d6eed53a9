//! The sidecar's configuration, and how people name a checkpoint.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use phos_policies::host_buffer::Bounds;
use phos_policies::restart::RestartBudget;
use phos_policies::retention::Retention;
use phos_storage::s3::S3Options;
use phos_storage::{CheckpointNumber, JobName, Key};
use serde::Serialize;

use crate::background::Background;

/// The time between checkpoints, as it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interval {
    /// Checkpoints are taken on demand only.
    Never,
    /// A checkpoint is due each time that this has passed.
    Every(Duration),
    /// It follows from what checkpoints and failures cost the job.
    Auto,
}

/// How the job starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// It resumes from a checkpoint, or begins with its first step where it has none.
    Resume,
    /// It begins with its first step, whatever checkpoints there are or should be.
    Fresh,
}

/// Whether GPU memory that the job was seen to leave alone after a checkpoint is copied while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyBeside {
    /// Where that makes the stop shorter.
    Auto,
    /// Never.
    Never,
}

/// The configuration of a sidecar, from its command line.
#[derive(Debug, Clone)]
pub struct Config {
    /// The name of the job whose checkpoints the sidecar takes.
    pub job: JobName,
    /// Where checkpoints are stored beside the job.
    pub background: Background,
    /// Directory shared with the agent.
    pub run_dir: PathBuf,
    /// Address of the store.
    pub store: String,
    /// Time between checkpoints.
    pub interval: Interval,
    /// Pinned host memory.
    pub host_buffer: Bounds,
    /// Whether memory is copied while the job runs.
    pub copy_beside: CopyBeside,
    /// How long a checkpoint continues to try to have the job fall quiet.
    pub quiesce_timeout: Duration,
    /// The longest that one try may hold the job.
    pub hold_limit: Duration,
    /// Restarts of a crashed job.
    pub restarts: RestartBudget,
    /// Resume from this checkpoint first.
    pub from: Option<CheckpointId>,
    /// How the job starts.
    pub start: Start,
    /// CPU features that the job does not use although it could find them, as `/proc/cpuinfo` names them.
    pub unused_cpu_features: Vec<String>,
    /// How long another node waits for this one, which did not renew its lease; zero: not at all.
    pub lease: Duration,
    /// The name of this machine in leases; `None`: its host name.
    pub node: Option<String>,
    /// Time between checkpoints in the store, where those between are kept on this machine alone, below this directory.
    pub remote: Option<(Duration, PathBuf)>,
    /// Below it checkpoints may be on this machine alone, whether or not this start keeps some there.
    pub state_dir: PathBuf,
    /// Which checkpoints retention keeps.
    pub retention: Retention,
    /// Most bytes a second that uploads may take of the link.
    pub upload_limit: Option<u64>,
    /// How objects are written to S3: storage class, encryption, checksums.
    pub s3: S3Options,
    /// The most bytes of packs that are kept in memory; `None`: none are.
    pub host_cache: Option<u64>,
    /// Where packs of a remote store are kept on a disk, and most bytes of them.
    pub cache: Option<(PathBuf, u64)>,
    /// Who says that this machine will be taken away.
    pub preemption: crate::preemption::Config,
    /// Who is told of the job beside those who ask.
    pub observe: crate::observe::Config,
    /// What the job's checkpoints are encrypted with.
    pub key: Option<Key>,
}

/// A place of checkpoints with a log of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// The store that was named with `--store`. It survives the loss of the machine.
    Remote,
    /// The one on this machine, with `--remote-interval`.
    Local,
}

/// A checkpoint as people name it: `12` in the store, `L12` on this machine alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct CheckpointId {
    /// The tier that the checkpoint is in.
    pub tier: Tier,
    /// The number of the checkpoint in that tier's log.
    pub number: CheckpointNumber,
}

impl fmt::Display for CheckpointId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match self.tier {
            Tier::Local => "L",
            Tier::Remote => "",
        };
        f.pad(&format!("{mark}{}", self.number))
    }
}

impl From<CheckpointId> for String {
    fn from(id: CheckpointId) -> String {
        id.to_string()
    }
}

impl FromStr for CheckpointId {
    type Err = String;

    fn from_str(text: &str) -> Result<CheckpointId, String> {
        let (tier, number) = match text.strip_prefix('L') {
            Some(rest) => (Tier::Local, rest),
            None => (Tier::Remote, text),
        };
        let number = number.parse();
        number
            .map(|number| CheckpointId { tier, number })
            .map_err(|_| {
                format!("{text:?} is not a checkpoint's number: `phos-ft list` shows them")
            })
    }
}
