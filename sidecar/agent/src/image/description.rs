//! `agent.json`: everything that a restore needs to know before it starts.
//!
//! # Compatibility
//!
//! What a reader of before does not know is left out where it can be (`skip_serializing_if`), and what an image of before does not
//! have has a default. A format that is newer than [`FORMAT`] is refused by its head alone.

use std::net::IpAddr;
use std::path::PathBuf;

use phos_protocol::agent::Process;
use phos_protocol::shim::Sequence;
use phos_protocol::types::{Allocation, AllocationKey, GpuUuid, ProcessId};
use serde::{Deserialize, Serialize};

use super::errors::ImageError;
use super::files::{FileRecord, LinkedFile, NeededPath, Place};
use super::paths;

/// Format of [`AgentImage`]. A reader refuses a newer one.
pub const FORMAT: u32 = 2;
/// That of images without [`LinkedFile`]s, so that older readers take them.
pub const WITHOUT_LINKED: u32 = 1;

/// A stdio stream of the job that is a pipe to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdioPipe {
    /// 0, 1 or 2.
    pub stream: u8,
    /// Inode of the pipe when the image was taken: CRIU knows it by this number.
    pub inode: u64,
}

/// The shim's library inside the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimImage {
    /// Where the processes have mapped it from.
    pub path: PathBuf,
    /// BLAKE3 of its bytes, in hex.
    pub blake3: String,
    /// Its bytes: a name in `files/`.
    pub content: String,
}

/// An allocation as the vault held it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultImage {
    /// The allocation.
    pub allocation: Allocation,
    /// Bytes asked for.
    pub requested: u64,
    /// Whether its owner has given out handles of it. Of images of before this was noted: it may have.
    #[serde(default = "yes")]
    pub shared: bool,
}

fn yes() -> bool {
    true
}

/// What becomes of TCP connections at a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// They come back as they were.
    Kept,
    /// They come back closed.
    Closed,
}

/// `agent.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentImage {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The writer's phos-ft version.
    pub phos_version: String,
    /// CRIU's version.
    pub criu_version: String,
    /// `uname -m`.
    pub arch: String,
    /// `uname -r`.
    pub kernel: String,
    /// `cuDriverGetVersion`, 0 when no process uses CUDA.
    pub driver_version: u32,
    /// The job's name.
    pub job: String,
    /// The attempt: shims of the image wait as `Detached(seq)`.
    pub seq: Sequence,
    /// The job's main process.
    pub root_pid: ProcessId,
    /// Every process and thread of the tree.
    pub ids: Vec<u32>,
    /// Processes with CUDA and a shim.
    pub processes: Vec<Process>,
    /// Processes with CUDA and no shim: the driver saved all of their memory.
    pub without_shim: Vec<ProcessId>,
    /// The allocations.
    pub vault: Vec<VaultImage>,
    /// Who imports what.
    pub imports: Vec<(ProcessId, Vec<AllocationKey>)>,
    /// The stdio pipes.
    pub stdio: Vec<StdioPipe>,
    /// The socket the shims look for.
    pub shim_socket: PathBuf,
    /// The shim.
    pub shim: Option<ShimImage>,
    /// Working directories of the processes.
    #[serde(with = "paths::many")]
    pub directories: Vec<PathBuf>,
    /// Files open for writing.
    pub files: Vec<FileRecord>,
    /// Files used by names that were removed. Empty in images of before they could be restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<LinkedFile>,
    /// What the processes use without writing to it. Empty in images of before it was noted.
    #[serde(default)]
    pub needed: Vec<NeededPath>,
    /// Directories and named pipes around all that, those above others first. Empty in images of before they were noted.
    #[serde(default)]
    pub places: Vec<Place>,
    /// TCP ports the tree listens on.
    pub listening: Vec<u16>,
    /// Addresses of the machine that its TCP sockets are to be bound to at a restore. Empty in images of before they were noted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Whether TCP connections are in the image (else they come back closed).
    pub tcp_kept: bool,
    /// GPU as the processes name it → the GPU it was, of a job that was moved: see [`moved`](crate::restore::gpus::moved).
    #[serde(default)]
    pub moved: Vec<(GpuUuid, GpuUuid)>,
    /// Every GPU that the driver had, used or not: see [`complete`](crate::restore::gpus::complete). Empty in images of before it was noted.
    #[serde(default)]
    pub machine_gpus: Vec<GpuUuid>,
}

impl AgentImage {
    /// What becomes of the TCP connections of the tree.
    pub fn connections(&self) -> Connections {
        if self.tcp_kept {
            Connections::Kept
        } else {
            Connections::Closed
        }
    }

    /// Parses the bytes of `agent.json`, refusing what this program does not understand.
    ///
    /// # Errors
    /// [`ImageError::Damaged`], [`ImageError::Newer`], [`ImageError::Arch`].
    pub fn parse(bytes: &[u8]) -> Result<Self, ImageError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
            phos_version: String,
        }
        let damaged = |e: serde_json::Error| ImageError::Damaged(e.to_string());
        // The head first: a newer format need not have the fields of this one.
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        if head.format > FORMAT {
            return Err(ImageError::Newer {
                found: head.format,
                by: head.phos_version,
                reads: FORMAT,
            });
        }
        let image: Self = serde_json::from_slice(bytes).map_err(damaged)?;
        let here = arch();
        if image.arch != here {
            return Err(ImageError::Arch {
                image: image.arch,
                here,
            });
        }
        Ok(image)
    }
}

/// `uname -m`.
pub fn arch() -> String {
    rustix::system::uname()
        .machine()
        .to_string_lossy()
        .into_owned()
}

/// `uname -r`.
pub fn kernel() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample() -> AgentImage {
        AgentImage {
            format: FORMAT,
            phos_version: "0.1.0".into(),
            criu_version: "4.2".into(),
            arch: arch(),
            kernel: kernel(),
            driver_version: 13000,
            job: "j".into(),
            seq: 3,
            root_pid: 10_000,
            ids: vec![10_000, 10_001],
            processes: vec![],
            without_shim: vec![],
            vault: vec![],
            imports: vec![],
            stdio: vec![StdioPipe {
                stream: 1,
                inode: 7,
            }],
            shim_socket: "/run/phos/j/shim.sock".into(),
            shim: None,
            directories: vec!["/".into()],
            files: vec![],
            linked: vec![],
            listening: vec![],
            addresses: vec![],
            tcp_kept: false,
            moved: vec![],
            machine_gpus: vec![],
            needed: vec![],
            places: vec![],
        }
    }

    #[test]
    fn an_image_from_before_it_said_what_was_moved_and_what_stood_around_is_read() {
        let mut json = serde_json::to_value(sample()).unwrap();
        for later in ["moved", "places"] {
            json.as_object_mut().unwrap().remove(later).unwrap();
        }
        let bytes = serde_json::to_vec(&json).unwrap();
        assert_eq!(AgentImage::parse(&bytes).unwrap(), sample());
    }

    #[test]
    fn an_image_is_read_as_written() {
        let bytes = serde_json::to_vec(&sample()).unwrap();
        assert_eq!(AgentImage::parse(&bytes).unwrap(), sample());
    }

    #[test]
    fn a_newer_format_is_refused_by_its_head_alone() {
        let error = AgentImage::parse(br#"{"format":99,"phos_version":"9.1.0","new":1}"#)
            .unwrap_err()
            .to_string();
        assert!(error.contains("99") && error.contains("9.1.0"), "{error}");
    }

    #[test]
    fn another_architecture_is_refused() {
        let mut image = sample();
        image.arch = "vax".into();
        let bytes = serde_json::to_vec(&image).unwrap();
        assert!(matches!(
            AgentImage::parse(&bytes),
            Err(ImageError::Arch { .. })
        ));
    }

    #[test]
    fn damage_is_named() {
        assert!(matches!(
            AgentImage::parse(b"{"),
            Err(ImageError::Damaged(_))
        ));
    }
}
