//! `agent.json`: everything that a restore needs to know before it starts.
//!
//! # Compatibility
//!
//! A field that older readers do not know is left out where it can be (`skip_serializing_if`), and one that older images do not
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

/// Format of [`AgentImage`]. A reader refuses a newer one. Before 3 a process was named by its PID alone, before 2 there were
/// no [`LinkedFile`]s.
pub const FORMAT: u32 = 3;

/// A stdio stream of the job that is a pipe to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct StdioPipe {
    /// The number of the stream: 0, 1 or 2.
    pub stream: u8,
    /// Inode of the pipe when the image was taken: CRIU knows it by this number.
    pub inode: u64,
}

/// The shim's library, as the job had it mapped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShimImage {
    /// The path from which the processes have mapped it.
    pub path: PathBuf,
    /// BLAKE3 of its bytes, in hex.
    pub blake3: String,
    /// The name in `files/` of the library's bytes.
    pub content: String,
}

/// An allocation as the vault held it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VaultImage {
    /// The allocation, by its key and size.
    pub allocation: Allocation,
    /// The number of bytes that the application asked for.
    pub requested: u64,
    /// Whether its owner has given out handles of it; `true` for older images, which did not note it, as it may have.
    #[serde(default = "yes")]
    pub shared: bool,
}

fn yes() -> bool {
    true
}

/// What becomes of TCP connections at a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Connections {
    /// The connections come back as they were.
    Kept,
    /// The connections come back closed.
    Closed,
}

/// The content of `agent.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentImage {
    /// [`FORMAT`] of the writer.
    pub format: u32,
    /// The phos-ft version that wrote the image.
    pub phos_version: String,
    /// The version of the CRIU that made the image.
    pub criu_version: String,
    /// The machine's architecture at the checkpoint, as `uname -m` says it.
    pub arch: String,
    /// The kernel's release at the checkpoint, as `uname -r` says it.
    pub kernel: String,
    /// `cuDriverGetVersion`, 0 when no process uses CUDA.
    pub driver_version: u32,
    /// The name of the job.
    pub job: String,
    /// The attempt: shims of the image wait as `Detached(seq)`.
    pub seq: Sequence,
    /// The PID of the job's main process.
    pub root_pid: ProcessId,
    /// The ids of every process and thread of the tree.
    pub ids: Vec<u32>,
    /// Processes with CUDA and a shim.
    pub processes: Vec<Process>,
    /// Processes with CUDA and no shim: the driver saved all of their memory.
    pub without_shim: Vec<ProcessId>,
    /// The allocations that were in the vault.
    pub vault: Vec<VaultImage>,
    /// The allocations of others that each process imports.
    pub imports: Vec<(ProcessId, Vec<AllocationKey>)>,
    /// The stdio streams that are pipes to the agent.
    pub stdio: Vec<StdioPipe>,
    /// The path of the socket that the shims look for.
    pub shim_socket: PathBuf,
    /// The library of the shim; `None` for a job without one.
    pub shim: Option<ShimImage>,
    /// Working directories of the processes.
    #[serde(with = "paths::many")]
    pub directories: Vec<PathBuf>,
    /// Files open for writing.
    pub files: Vec<FileRecord>,
    /// Files used by names that were removed. Empty in images from before they could be restored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub linked: Vec<LinkedFile>,
    /// What the processes use without writing to it. Empty in older images, which did not note it.
    #[serde(default)]
    pub needed: Vec<NeededPath>,
    /// Directories and named pipes around all that, those above others first. Empty in older images, which did not note them.
    #[serde(default)]
    pub places: Vec<Place>,
    /// TCP ports the tree listens on.
    pub listening: Vec<u16>,
    /// Addresses of the machine that its TCP sockets are to be bound to at a restore. Empty in older images, which did not note
    /// them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub addresses: Vec<IpAddr>,
    /// Whether TCP connections are in the image (else they come back closed).
    pub tcp_kept: bool,
    /// GPU as the processes name it → the GPU it was, of a job that was moved: see [`moved`](crate::restore::gpus::moved).
    #[serde(default)]
    pub moved: Vec<(GpuUuid, GpuUuid)>,
    /// Every GPU that the driver had, used or not: see [`complete`](crate::restore::gpus::complete). Empty in older images, which
    /// did not note it.
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

/// This machine's architecture, as `uname -m` says it.
pub fn arch() -> String {
    rustix::system::uname()
        .machine()
        .to_string_lossy()
        .into_owned()
}

/// This machine's kernel release, as `uname -r` says it.
pub fn kernel() -> String {
    rustix::system::uname()
        .release()
        .to_string_lossy()
        .into_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use phos_protocol::types::MemberId;

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
    fn an_image_that_names_processes_by_their_pid_alone_is_read() {
        let owner = MemberId::here(10_000);
        let key = AllocationKey { owner, id: 4 };
        let mut image = sample();
        image.processes = vec![Process {
            member: owner,
            devices: vec![],
        }];
        image.vault = vec![VaultImage {
            allocation: Allocation {
                key,
                device: 0,
                bytes: 1 << 21,
                kind: phos_protocol::types::AllocationKind::Plain,
                rdma: false,
            },
            requested: 5,
            shared: false,
        }];
        image.imports = vec![(10_001, vec![key])];
        let now = serde_json::to_string(&image).unwrap();
        let before = now
            .replace(r#""member":[0,10000]"#, r#""pid":10000"#)
            .replace(r#""owner":[0,10000]"#, r#""owner":10000"#);
        let counts =
            [r#""pid":10000"#, r#""owner":10000"#].map(|found| before.matches(found).count());
        assert_eq!(counts, [1, 2], "{before}");
        for json in [now, before] {
            assert_eq!(AgentImage::parse(json.as_bytes()).unwrap(), image);
        }
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
