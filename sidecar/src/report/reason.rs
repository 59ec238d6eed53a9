//! Why checkpoints fail, as programs know it: in events, in metrics, and in what is said of a job that is not protected.

use serde::{Deserialize, Serialize};

/// Why a checkpoint failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FailureReason {
    /// GPU work was in flight for longer than the checkpoint may wait.
    NotQuiet,
    /// A stream capture was under way.
    Capturing,
    /// The program had asked not to be checkpointed, by a hint.
    Section,
    /// The job uses something that cannot be saved.
    Unsupported,
    /// Processes or files could not be saved.
    Dump,
    /// A GPU, or its driver, refused something.
    Gpu,
    /// The job needed the memory that the checkpoint held, or ended.
    Job,
    /// The job wrote memory that was being copied beside it.
    Overwritten,
    /// The store, or the disk of this machine, did not take it.
    Store,
    /// What had to leave the GPU did not leave in time.
    TooSlow,
    /// Another machine has the job.
    Fenced,
    /// The agent did not answer.
    Agent,
    /// phos-ft itself failed.
    Internal,
}

impl FailureReason {
    /// All of them.
    pub const ALL: [Self; 13] = [
        Self::NotQuiet,
        Self::Capturing,
        Self::Section,
        Self::Unsupported,
        Self::Dump,
        Self::Gpu,
        Self::Job,
        Self::Overwritten,
        Self::Store,
        Self::TooSlow,
        Self::Fenced,
        Self::Agent,
        Self::Internal,
    ];

    /// The name under which programs know it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotQuiet => "not-quiet",
            Self::Capturing => "capturing",
            Self::Section => "section",
            Self::Unsupported => "unsupported",
            Self::Dump => "dump",
            Self::Gpu => "gpu",
            Self::Job => "job",
            Self::Overwritten => "overwritten",
            Self::Store => "store",
            Self::TooSlow => "too-slow",
            Self::Fenced => "fenced",
            Self::Agent => "agent",
            Self::Internal => "internal",
        }
    }
}
