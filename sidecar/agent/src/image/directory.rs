//! The directory of an image: a tmpfs of its own, or a directory where none can be made.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_string, fsmount,
    fsopen,
};

use super::description::AgentImage;
use super::errors::ImageError;

/// Name of [`AgentImage`] in the directory.
pub const AGENT_FILE: &str = "agent.json";
/// The directory of CRIU's images, in that of the image.
pub const CRIU_DIR: &str = "criu";
/// The directory of the contents of files, in that of the image.
pub const FILES_DIR: &str = "files";

/// The size of the pages that an image in memory has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// The machine's own page size: for many small files.
    Small,
    /// Huge pages of 2 MiB, where the kernel has them: a dump is a third faster, and every file takes a multiple of that.
    Huge,
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
    ///
    /// # Errors
    /// [`ImageError::Io`].
    pub fn create(limit: Option<u64>, pages: Pages, fallback: &Path) -> Result<Self, ImageError> {
        let made = match tmpfs(limit, pages) {
            Err(_) if pages == Pages::Huge => tmpfs(limit, Pages::Small),
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

    /// The descriptor of the directory, by which everything in it is reached.
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

    /// The number of bytes that can still be written to the directory.
    pub fn free_bytes(&self) -> u64 {
        rustix::fs::fstatvfs(&self.fd).map_or(u64::MAX, |s| s.f_bavail.saturating_mul(s.f_frsize))
    }

    /// The number of bytes that all files in the directory have.
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
fn tmpfs(limit: Option<u64>, pages: Pages) -> io::Result<OwnedFd> {
    let context = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(context.as_fd(), "mode", "0700")?;
    if let Some(limit) = limit {
        fsconfig_set_string(context.as_fd(), "size", limit.to_string())?;
    }
    if pages == Pages::Huge {
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
mod tests {
    use super::*;

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
