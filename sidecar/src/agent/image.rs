//! The image directory: where it lies and what the agent writes into it.
//!
//! ```text
//! criu/        CRIU's images and logs
//! files/NNN    contents of files the job has open for writing, and the shim's library
//! agent.json   everything a restore needs to know before it starts: AgentImage
//! ```
//!
//! The directory is the root of a tmpfs of its own that is mounted nowhere: only its fd exists. So no path is
//! shared with the sidecar, the job does not see it, and its memory is given back when the last fd is closed,
//! whoever dies in whatever order.

use std::fs::File;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use phos_protocol::agent::Process;
use phos_protocol::shim::Sequence;
use phos_protocol::types::{Allocation, AllocationKey, GpuUuid, ProcessId};
use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};
use serde::{Deserialize, Serialize};

use super::files::{FileRecord, NeededPath};
use super::linked::LinkedFile;
use super::paths;
use super::places::Place;

/// Format of [`AgentImage`]. A reader refuses a newer one.
pub const FORMAT: u32 = 2;
/// That of images without [`LinkedFile`]s, so that older readers take them.
pub const WITHOUT_LINKED: u32 = 1;

/// Name of [`AgentImage`] in the directory.
pub const AGENT_FILE: &str = "agent.json";
/// CRIU's images.
pub const CRIU_DIR: &str = "criu";
/// File contents.
pub const FILES_DIR: &str = "files";

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
    /// GPU as the processes name it → the GPU it was, of a job that was moved: see [`moved`](super::gpus::moved).
    #[serde(default)]
    pub moved: Vec<(GpuUuid, GpuUuid)>,
    /// Every GPU that the driver had, used or not: see [`complete`](super::gpus::complete). Empty in images of before it was noted.
    #[serde(default)]
    pub machine_gpus: Vec<GpuUuid>,
}

/// Why an image cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The file system said no.
    #[error("cannot {what}: {cause}{remedy}")]
    Io {
        /// What was tried.
        what: String,
        /// Why it failed.
        cause: io::Error,
        /// What to do.
        remedy: &'static str,
    },
    /// Not JSON, or not this JSON.
    #[error(
        "agent.json of the image does not parse ({0}): the image is damaged; use the checkpoint before"
    )]
    Damaged(String),
    /// Written by a newer phos-ft.
    #[error(
        "the image has agent format {found}, this phos-ft ({}) reads up to {FORMAT}: upgrade phos-ft to at least {by}",
        env!("CARGO_PKG_VERSION")
    )]
    Newer {
        /// In the image.
        found: u32,
        /// The writer's version.
        by: String,
    },
    /// Another machine type.
    #[error("the image was taken on {image} and this machine is {here}: restore it on {image}")]
    Arch {
        /// Of the image.
        image: String,
        /// Of this machine.
        here: String,
    },
}

impl ImageError {
    fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |cause| Self::Io {
            what,
            remedy: match cause.raw_os_error() {
                Some(libc::ENOSPC | libc::ENOMEM) => {
                    ": free host memory or raise --image-limit (the image lies in memory until it is stored)"
                }
                Some(libc::EPERM | libc::EACCES) => ": run as root with CAP_SYS_ADMIN",
                _ => "",
            },
            cause,
        }
    }
}

impl AgentImage {
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

/// A directory for one image.
#[derive(Debug)]
pub struct ImageDirectory {
    fd: OwnedFd,
    /// Set when no tmpfs could be made and the directory lies on a shared file system.
    path: Option<PathBuf>,
}

impl ImageDirectory {
    /// Makes an empty directory: the root of a new tmpfs of at most `limit` bytes, else one below `fallback`.
    /// Huge pages make a dump a third faster and round every file up to 2 MiB.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn create(limit: Option<u64>, huge: bool, fallback: &Path) -> Result<Self, ImageError> {
        let made = match tmpfs(limit, huge) {
            Err(_) if huge => tmpfs(limit, false),
            made => made,
        };
        let first = match made {
            Ok(fd) => return Ok(Self { fd, path: None }),
            Err(e) => e,
        };
        let path = unique_directory(fallback).map_err(ImageError::io(format!(
            "make a tmpfs for the image ({first}) or a directory below {}",
            fallback.display()
        )))?;
        let fd = open_directory(&path).map_err(ImageError::io(format!(
            "open the image directory {}",
            path.display()
        )))?;
        tracing::warn!(path = %path.display(), cause = %first, "no tmpfs can be made: the image goes through a directory");
        Ok(Self {
            fd,
            path: Some(path),
        })
    }

    /// The directory.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// A second fd of it.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn try_clone(&self) -> Result<OwnedFd, ImageError> {
        self.fd
            .try_clone()
            .map_err(ImageError::io("duplicate the image directory's fd"))
    }

    /// A path to something inside, valid in this process.
    pub fn path_of(&self, name: impl AsRef<Path>) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd())).join(name)
    }

    /// Makes a sub-directory if it is not there, and opens it.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn subdirectory(&self, name: &str) -> Result<OwnedFd, ImageError> {
        match rustix::fs::mkdirat(&self.fd, name, Mode::from_raw_mode(0o700)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(e) => {
                return Err(ImageError::io(format!("make {name}/ in the image"))(
                    e.into(),
                ));
            }
        }
        rustix::fs::openat(
            &self.fd,
            name,
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )
        .map_err(|e| ImageError::io(format!("open {name}/ of the image"))(e.into()))
    }

    /// Bytes that can still be written.
    pub fn free_bytes(&self) -> u64 {
        rustix::fs::fstatvfs(&self.fd).map_or(u64::MAX, |s| s.f_bavail.saturating_mul(s.f_frsize))
    }

    /// Bytes of all files.
    pub fn used_bytes(&self) -> u64 {
        tree_bytes(&self.path_of(""))
    }

    /// Writes `agent.json`.
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn write_agent_image(&self, image: &AgentImage) -> Result<(), ImageError> {
        let write = || -> io::Result<()> {
            let bytes = serde_json::to_vec(image).map_err(io::Error::other)?;
            File::create(self.path_of(AGENT_FILE))?.write_all(&bytes)
        };
        write().map_err(ImageError::io("write agent.json into the image"))
    }

    /// Reads `agent.json`.
    ///
    /// # Errors
    /// [`ImageError`].
    pub fn read_agent_image(&self) -> Result<AgentImage, ImageError> {
        let bytes = std::fs::read(self.path_of(AGENT_FILE))
            .map_err(ImageError::io("read agent.json of the image"))?;
        AgentImage::parse(&bytes)
    }
}

impl Drop for ImageDirectory {
    fn drop(&mut self) {
        if let Some(path) = &self.path
            && let Err(e) = std::fs::remove_dir_all(path)
        {
            tracing::warn!(path = %path.display(), cause = %e, "cannot remove the image directory");
        }
    }
}

fn tree_bytes(path: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(path) else {
        return 0;
    };
    entries
        .flatten()
        .map(|e| match e.metadata() {
            Ok(m) if m.is_dir() => tree_bytes(&e.path()),
            Ok(m) => m.len(),
            Err(_) => 0,
        })
        .sum()
}

/// A tmpfs that is mounted nowhere.
fn tmpfs(limit: Option<u64>, huge: bool) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", "0700")?;
    if let Some(limit) = limit {
        fsconfig_set_string(context.as_fd(), "size", limit.to_string())?;
    }
    if huge {
        fsconfig_set_string(context.as_fd(), "huge", "always")?;
    }
    fsconfig_create(context.as_fd())?;
    let mount = fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV,
    )?;
    // The mount's own fd is O_PATH: open its root, so that it can be listed by whoever receives it.
    Ok(rustix::fs::openat(
        &mount,
        ".",
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

fn unique_directory(parent: &Path) -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    for n in 0..10_000 {
        let path = parent.join(format!("image-{n}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => return Ok(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    Err(io::Error::other("10000 image directories exist already"))
}

fn open_directory(path: &Path) -> io::Result<OwnedFd> {
    Ok(rustix::fs::open(
        path,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?)
}

#[cfg(test)]
pub(in crate::agent) mod tests {
    use super::*;

    pub(in crate::agent) fn sample() -> AgentImage {
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

    #[test]
    fn a_directory_without_tmpfs_is_removed_when_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let path = unique_directory(parent.path()).unwrap();
        let directory = ImageDirectory {
            fd: open_directory(&path).unwrap(),
            path: Some(path.clone()),
        };
        std::fs::write(directory.path_of("x"), [0; 10]).unwrap();
        assert_eq!(directory.used_bytes(), 10);
        drop(directory);
        assert!(!path.exists());
    }
}
