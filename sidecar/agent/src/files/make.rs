//! Makes what is missing at a restore: whole or not at all, and where it belongs.
//!
//! # Rules
//!
//! * A file gets its name only when it is whole, with owner and mode; an interruption leaves at most a `.phos-new-…`, and what
//!   somebody else made in the meantime stays.
//! * The agent may be root and the job somebody else, who could have put symbolic links in the way: none is followed that
//!   [`way`](crate::user::way) does not follow.
//! * A new file is accessible to its maker alone until it has its owner, and gets its mode last. No file of root's gets a bit
//!   that lets others run it as root.

use std::ffi::OsStr;
use std::fs::{File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, RenameFlags, Uid};
use rustix::io::Errno;

use crate::sparse;
use crate::user::way;

/// The kind of thing that is to be made.
pub enum What<'a> {
    /// An empty directory.
    Directory,
    /// A named pipe.
    Pipe,
    /// A file of so many bytes that are read.
    File(&'a mut dyn Read, u64),
    /// A file with the first so many bytes of another, and its holes.
    Copy(&'a File, u64),
}

/// The permission bits that a file of this owner (user, group) is given: those that would let others run it as root go.
pub fn mode_of_a_file(mode: u32, (user, group): (u32, u32)) -> u32 {
    let of_root = |id: u32, bit: u32| if id == 0 { bit } else { 0 };
    mode & !of_root(user, 0o4000) & !of_root(group, 0o2000)
}

/// Makes it at an absolute path, whose directory is there, with its owner (user, group) and permission bits; false: something of
/// that name is there by now.
///
/// # Errors
/// The error of the file system; a link of another user on the way; content that ends early.
pub fn make(path: &Path, what: What<'_>, owner: (u32, u32), mode: u32) -> io::Result<bool> {
    let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let above = way::directory(above)?;
    let is_directory = matches!(what, What::Directory);
    let mode = match is_directory {
        true => mode,
        false => mode_of_a_file(mode, owner),
    };
    let (new, fd, made) = create(&above, what)?;
    let done = finish(&above, &new, (&fd, made), name, owner, mode);
    if !matches!(done, Ok(true)) {
        let flags = match is_directory {
            true => AtFlags::REMOVEDIR,
            false => AtFlags::empty(),
        };
        let _ = rustix::fs::unlinkat(&above, &new, flags);
    }
    done
}

/// Device and number of a file.
type Inode = (u64, u64);

/// Makes it under a name of its own, for nobody else to open.
fn create(above: &OwnedFd, mut what: What<'_>) -> io::Result<(PathBuf, OwnedFd, Option<Inode>)> {
    let path = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut inode = None;
    for number in 0..1000 {
        let new = PathBuf::from(format!(".phos-new-{}-{number}", std::process::id()));
        let made = match &mut what {
            What::Directory => rustix::fs::mkdirat(above, &new, Mode::RWXU),
            What::Pipe => rustix::fs::mknodat(above, &new, FileType::Fifo, Mode::RUSR, 0),
            What::File(..) | What::Copy(..) => {
                let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
                rustix::fs::openat(above, &new, flags, Mode::RUSR | Mode::WUSR).and_then(|fd| {
                    let found = rustix::fs::fstat(&fd)?;
                    inode = Some((found.st_dev, found.st_ino));
                    fill(&File::from(fd), &mut what).map_err(|e| {
                        let _ = rustix::fs::unlinkat(above, &new, AtFlags::empty());
                        Errno::from_io_error(&e).unwrap_or(Errno::IO)
                    })
                })
            }
        };
        match made {
            Err(Errno::EXIST) => {}
            made => {
                made?;
                let fd = rustix::fs::openat(above, &new, path, Mode::empty())?;
                return Ok((new, fd, inode));
            }
        }
    }
    Err(Errno::EXIST.into())
}

fn fill(mut file: &File, what: &mut What<'_>) -> io::Result<()> {
    match what {
        What::File(from, length) => {
            let copied = io::copy(&mut from.take(*length), &mut file)?;
            if copied != *length {
                return Err(Errno::IO.into());
            }
        }
        What::Copy(from, length) => sparse::copy(from, file, *length)?,
        What::Directory | What::Pipe => {}
    }
    file.flush()?;
    // A name that survives a power cut must not be one of an empty file.
    file.sync_all()
}

fn finish(
    above: &OwnedFd,
    new: &Path,
    (fd, made): (&OwnedFd, Option<Inode>),
    name: &OsStr,
    (user, group): (u32, u32),
    mode: u32,
) -> io::Result<bool> {
    let found = rustix::fs::fstat(fd)?;
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    // Some network file systems give what root makes to somebody else.
    let is_ours = match made {
        Some(made) => made == (found.st_dev, found.st_ino),
        None => found.st_uid == rustix::process::geteuid().as_raw(),
    };
    if !is_ours || (!is_directory && found.st_nlink != 1) {
        return Err(io::Error::other("somebody put something else in its place"));
    }
    if (found.st_uid, found.st_gid) != (user, group) {
        let (user, group) = (Uid::from_raw(user), Gid::from_raw(group));
        rustix::fs::chownat(fd, "", Some(user), Some(group), AtFlags::EMPTY_PATH)?;
    }
    // After the owner, whose change clears some bits. A descriptor that only names it has no other way.
    let through = format!("/proc/self/fd/{}", fd.as_raw_fd());
    std::fs::set_permissions(through, Permissions::from_mode(mode))?;
    let above = above.as_fd();
    match rustix::fs::renameat_with(above, new, above, name, RenameFlags::NOREPLACE) {
        Err(Errno::EXIST) => Ok(false),
        // Some network file systems know no such rename.
        Err(Errno::INVAL | Errno::NOSYS)
            if rustix::fs::statat(above, name, AtFlags::SYMLINK_NOFOLLOW).is_err() =>
        {
            rustix::fs::renameat(above, new, above, name)?;
            Ok(true)
        }
        renamed => Ok(renamed.map(|()| true)?),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};

    use super::*;

    fn own() -> (u32, u32) {
        (
            rustix::process::geteuid().as_raw(),
            rustix::process::getegid().as_raw(),
        )
    }

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn each_kind_is_made_whole_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let [sub, pipe, file] = ["sub", "pipe", "file"].map(|n| dir.path().join(n));
        assert!(make(&sub, What::Directory, own(), 0o1777).unwrap());
        assert!(make(&pipe, What::Pipe, own(), 0o620).unwrap());
        assert!(make(&file, What::File(&mut &b"abcdef"[..], 3), own(), 0o751).unwrap());
        let mode = |path: &Path| std::fs::metadata(path).unwrap().mode() & 0o7777;
        assert_eq!(
            [mode(&sub), mode(&pipe), mode(&file)],
            [0o1777, 0o620, 0o751]
        );
        assert!(std::fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(std::fs::read(&file).unwrap(), b"abc");
        for path in [&sub, &pipe, &file] {
            let again = make(path, What::File(&mut &b"x"[..], 1), own(), 0o600).unwrap();
            assert!(!again && mode(path) != 0o600, "{}", path.display());
        }
        assert_eq!(names(dir.path()), ["file", "pipe", "sub"]);
        let source = File::open(&file).unwrap();
        let copy = dir.path().join("copy");
        assert!(make(&copy, What::Copy(&source, 2), own(), 0o600).unwrap());
        assert_eq!(std::fs::read(&copy).unwrap(), b"ab");
        make(
            &dir.path().join("more"),
            What::Copy(&source, 4),
            own(),
            0o600,
        )
        .unwrap_err();
        assert_eq!(names(dir.path()), ["copy", "file", "pipe", "sub"]);
    }

    #[test]
    fn nobody_runs_a_file_as_root_by_what_an_image_says() {
        for (owner, mode) in [
            ((0, 0), 0o755),
            ((0, 7), 0o2755),
            ((7, 0), 0o4755),
            ((7, 7), 0o6755),
        ] {
            assert_eq!(mode_of_a_file(0o6755, owner), mode, "{owner:?}");
        }
        if rustix::process::geteuid().is_root() {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("file");
            make(&file, What::File(&mut &b"x"[..], 1), (0, 0), 0o6711).unwrap();
            assert_eq!(std::fs::metadata(&file).unwrap().mode() & 0o7777, 0o711);
        }
    }

    #[test]
    fn content_that_ends_early_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        make(&file, What::File(&mut &b"ab"[..], 3), own(), 0o600).unwrap_err();
        assert!(names(dir.path()).is_empty());
    }

    #[test]
    fn what_a_dead_one_left_is_no_obstacle_and_is_not_written_to() {
        let dir = tempfile::tempdir().unwrap();
        let victim = dir.path().join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let left = format!(".phos-new-{}-0", std::process::id());
        symlink(&victim, dir.path().join(&left)).unwrap();
        let file = dir.path().join("file");
        assert!(make(&file, What::File(&mut &b"abc"[..], 3), own(), 0o600).unwrap());
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious");
        assert_eq!(names(dir.path()), [left.as_str(), "file", "victim"]);
    }

    #[test]
    fn links_of_others_are_not_followed_and_those_of_root_are() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("real")).unwrap();
        let link = dir.path().join("link");
        symlink(dir.path().join("real"), &link).unwrap();
        let file = |name: &str| {
            let content = &mut &b"abc"[..];
            make(
                &link.join(name),
                What::File(content, 3),
                (1234, 4321),
                0o4711,
            )
        };
        assert!(file("by-root").unwrap());
        let meta = std::fs::metadata(dir.path().join("real/by-root")).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o7777),
            (1234, 4321, 0o4711)
        );
        std::os::unix::fs::lchown(&link, Some(1234), Some(1234)).unwrap();
        let text = file("by-another").unwrap_err().to_string();
        assert!(text.contains("link of user 1234"), "{text}");
        assert_eq!(names(&dir.path().join("real")), ["by-root"]);
    }
}
