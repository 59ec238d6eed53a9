//! Why a checkpoint was not restored, and whether another try may help.

use phos_gpu::GpuError;
use phos_storage::{Manifest, PackId, ReadError};

use super::checks::CheckError;
use crate::engine::EngineError;
use crate::engine::image::{Image, ImageError};
use crate::engine::session::link::LinkError;
use crate::engine::session::{Stop, WaitError};

/// Why a checkpoint was not restored, and so whether another try may help.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum RestoreError {
    /// It cannot be restored here, and neither can an older one.
    #[error("{0}")]
    Check(#[from] CheckError),
    /// Part of it is damaged.
    #[error("{source}")]
    Damaged { pack: PackId, source: ReadError },
    /// Files that the job uses are not here as they were; an older checkpoint may do without.
    #[error("{0}")]
    Files(String),
    /// The image cannot be understood.
    #[error("{0}")]
    Image(String),
    /// There are checkpoints, and what was found before any was read rules all of them out.
    #[error("the newest of them: {0}")]
    Unusable(String),
    /// The agent could not bring its processes back, or they were killed meanwhile.
    #[error("{0}")]
    Agent(String),
    /// The driver cannot bring back what it saved of a process that is there.
    #[error("{0}")]
    Driver(String),
    #[error("{0}")]
    Gpu(#[from] GpuError),
    #[error("{message}")]
    Store { message: String, permanent: bool },
    /// The disk of this machine does not give it.
    #[error("{0}")]
    Here(String),
    #[error("cannot write the CPU image: {0}")]
    File(std::io::Error),
    #[error("{0}")]
    Wait(#[from] WaitError),
}

impl From<LinkError> for RestoreError {
    fn from(e: LinkError) -> RestoreError {
        RestoreError::Wait(e.into())
    }
}

impl RestoreError {
    /// Whether the same checkpoint may come back at the next try.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            RestoreError::Agent(_)
            | RestoreError::Gpu(_)
            | RestoreError::Here(_)
            | RestoreError::File(_) => true,
            RestoreError::Store { permanent, .. } => !permanent,
            RestoreError::Check(_)
            | RestoreError::Damaged { .. }
            | RestoreError::Files(_)
            | RestoreError::Image(_)
            | RestoreError::Unusable(_)
            | RestoreError::Driver(_)
            | RestoreError::Wait(_) => false,
        }
    }
}

/// A read of the store that failed.
pub(super) fn failed_read(e: ReadError) -> RestoreError {
    match e.damaged_pack() {
        Some(pack) => RestoreError::Damaged { pack, source: e },
        None => RestoreError::Store {
            message: e.to_string(),
            permanent: e.is_permanent(),
        },
    }
}

impl From<RestoreError> for Stop {
    fn from(e: RestoreError) -> Stop {
        match e {
            RestoreError::Wait(e) => Stop::Link(e),
            other => Stop::Engine(EngineError::Restore(other.to_string())),
        }
    }
}

/// What a manifest says, as a restore uses it.
pub(super) fn parse(manifest: &Manifest) -> Result<Image, RestoreError> {
    Image::parse(manifest).map_err(|e| match e {
        ImageError::Newer(version) => RestoreError::Check(CheckError::Newer {
            checkpoint: manifest.number.0,
            version,
        }),
        ImageError::OtherNode(member) => RestoreError::Check(CheckError::OtherNode {
            checkpoint: manifest.number.0,
            member,
        }),
        e @ ImageError::Damaged(_) => RestoreError::Image(e.to_string()),
    })
}
