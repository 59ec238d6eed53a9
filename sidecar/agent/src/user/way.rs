//! The way to a file, for an agent that is root in directories that may be the job's.
//!
//! # Rules
//!
//! * A path is walked part by part, from descriptor to descriptor: a process that renames a directory on the way meanwhile
//!   changes nothing about what was opened before.
//! * No symbolic link is followed but those of root and of the agent's own user, on the way as well as where such a link leads. The
//!   last part is never one.
//! * What is done with a file is done through a descriptor of it, or of its directory.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::user::JobUser;

/// The most links that are followed on one way, as many as the kernel follows.
const MOST_LINKS: u32 = 40;

const DIRECTORY: OFlags = OFlags::PATH
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
const ITSELF: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// A descriptor of the directory at an absolute path.
///
/// # Errors
/// The error of the file system; a link of another user.
pub fn directory(path: &Path) -> io::Result<OwnedFd> {
    walk(path, None, &root_or_own, &mut |_, _| Ok(()))
}

/// The same, and makes what is missing, with these permission bits.
///
/// # Errors
/// As for [`directory`].
pub fn create_directories(path: &Path, mode: u32) -> io::Result<OwnedFd> {
    let mode = Mode::from_raw_mode(mode);
    walk(path, Some(mode), &root_or_own, &mut |_, _| Ok(()))
}

fn parts(path: &Path) -> io::Result<VecDeque<OsString>> {
    path.components()
        .filter_map(|part| match part {
            Component::RootDir | Component::CurDir => None,
            Component::Normal(name) => Some(Ok(name.to_owned())),
            Component::ParentDir => Some(Ok(OsString::from(".."))),
            Component::Prefix(_) => Some(Err(io::ErrorKind::InvalidInput.into())),
        })
        .collect()
}

/// The users whose links are followed unless others are given: root, and the agent's own.
fn root_or_own(owner: u32) -> bool {
    owner == 0 || owner == rustix::process::geteuid().as_raw()
}

/// The directory at a path. `create`: makes what is missing. `trusts`: whose links are followed. `pass` sees every entry, links too, and
/// the directory that it is in, before it is gone to.
fn walk(
    path: &Path,
    create: Option<Mode>,
    trusts: &dyn Fn(u32) -> bool,
    pass: &mut dyn FnMut(&OwnedFd, &OsStr) -> io::Result<()>,
) -> io::Result<OwnedFd> {
    if !path.is_absolute() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut left = parts(path)?;
    let root = || rustix::fs::open("/", DIRECTORY, Mode::empty());
    // Where `..` of a link leads: the way that was come, whatever was renamed since.
    let mut way = vec![root()?];
    let mut links = 0;
    while let Some(name) = left.pop_front() {
        if name == ".." {
            if way.len() > 1 {
                way.pop();
            }
            continue;
        }
        let Some(at) = way.last() else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        pass(at, &name)?;
        let mut found = rustix::fs::openat(at, &name, DIRECTORY, Mode::empty());
        if let (Err(Errno::NOENT), Some(mode)) = (&found, create) {
            match rustix::fs::mkdirat(at, &name, mode) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
            found = rustix::fs::openat(at, &name, DIRECTORY, Mode::empty());
        }
        match found {
            Ok(next) => way.push(next),
            Err(Errno::NOTDIR | Errno::LOOP) => {
                links += 1;
                if links > MOST_LINKS {
                    return Err(Errno::LOOP.into());
                }
                let target = trusted_link(at, &name, trusts)?;
                if target.is_absolute() {
                    way.truncate(1);
                }
                for part in parts(&target)?.into_iter().rev() {
                    left.push_front(part);
                }
            }
            Err(e) => return Err(e.into()),
        }
    }
    way.pop().ok_or_else(|| io::ErrorKind::InvalidInput.into())
}

/// What an absolute path leads to, also by links of root's and our own.
///
/// # Errors
/// As for [`directory`]; something on the way is missing.
pub fn find(path: &Path) -> io::Result<Found> {
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if path.file_name().is_none() {
            return Found::of(directory(&path)?);
        }
        let entry = Entry::of(&path)?;
        let found = entry.find()?.ok_or(io::ErrorKind::NotFound)?;
        if found.kind() != FileType::Symlink {
            return Ok(found);
        }
        path.pop();
        path.push(trusted_link(&entry.above, &entry.name, &root_or_own)?);
    }
    Err(Errno::LOOP.into())
}

/// What the directory at an absolute path is, also by links of this user.
///
/// # Errors
/// As for [`directory`].
pub fn find_for(path: &Path, user: u32) -> io::Result<Found> {
    let trusts = |owner| owner == user || root_or_own(owner);
    Found::of(walk(path, None, &trusts, &mut |_, _| Ok(()))?)
}

/// Every directory on the way to the one at an absolute path, and that one, no matter whose links lead there.
///
/// # Errors
/// The error of the file system, or the one that `each` returns.
pub fn directories(
    path: &Path,
    each: &mut dyn FnMut(&OwnedFd) -> io::Result<()>,
) -> io::Result<()> {
    let last = walk(path, None, &|_| true, &mut |at, _| each(at))?;
    each(&last)
}

/// The first directory on the way to an absolute path in which this user may put something else in place of what lies there: a
/// process that follows such a path goes where the user likes. Access-control lists count as far as the group's bits show them.
///
/// # Errors
/// The error of the file system; something on the way is missing.
pub fn changeable_by(path: &Path, user: &JobUser) -> io::Result<Option<PathBuf>> {
    let mut first = None;
    walk(path, None, &|_| true, &mut |at, name| {
        let entry = rustix::fs::statat(at, name, AtFlags::SYMLINK_NOFOLLOW)?;
        if first.is_none() && may_replace(user, &rustix::fs::fstat(at)?, &entry) {
            let itself = format!("/proc/self/fd/{}", at.as_raw_fd());
            first = Some(std::fs::read_link(itself)?);
        }
        Ok(())
    })?;
    Ok(first)
}

/// Whether this user can put nothing in place of a directory, nor of anything in it, and there are no links on the way. As
/// `shim/criu-preload` has it: what others may write to counts, also where a list of rights might keep this user out.
///
/// # Errors
/// The error of the file system; something on the way is missing.
pub fn is_kept_from(directory: &Path, user: &JobUser) -> io::Result<bool> {
    const BY_ALL: u32 = 0o002;
    const BY_GROUP: u32 = 0o020;
    const STICKY: u32 = 0o1000;
    let mut kept = true;
    let mut look = |at: &OwnedFd, is_last: bool| -> io::Result<()> {
        let stat = rustix::fs::fstat(at)?;
        let by_group =
            stat.st_mode & BY_GROUP != 0 && (user.is_in(stat.st_gid) || has_list_of_rights(at));
        let only_own = stat.st_mode & STICKY != 0 && !is_last;
        let by_others = stat.st_mode & BY_ALL != 0 || by_group;
        kept &= stat.st_uid != user.uid() && (only_own || !by_others);
        Ok(())
    };
    let last = walk(directory, None, &|_| false, &mut |at, _| look(at, false));
    match last {
        Ok(last) => look(&last, true)?,
        // A link.
        Err(e) if e.kind() == io::ErrorKind::Other => return Ok(false),
        Err(e) => return Err(e),
    }
    Ok(kept)
}

fn has_list_of_rights(at: &OwnedFd) -> bool {
    let itself = format!("/proc/self/fd/{}", at.as_raw_fd());
    let list = rustix::fs::getxattr(itself, "system.posix_acl_access", &mut [0_u8; 0][..]);
    !matches!(list, Err(Errno::NODATA | Errno::OPNOTSUPP))
}

/// Whether this user may rename or remove an entry of a directory.
fn may_replace(user: &JobUser, directory: &Stat, entry: &Stat) -> bool {
    const STICKY: u32 = 0o1000;
    // Who owns it may give himself the right.
    if directory.st_uid == user.uid() {
        return true;
    }
    let right = match user.is_in(directory.st_gid) {
        true => 0o020,
        false => 0o002,
    };
    let writes = directory.st_mode & right != 0;
    writes && (directory.st_mode & STICKY == 0 || entry.st_uid == user.uid())
}

/// Where a link leads whose owner is trusted.
fn trusted_link(at: &OwnedFd, name: &OsStr, trusts: &dyn Fn(u32) -> bool) -> io::Result<PathBuf> {
    let link = rustix::fs::openat(at, name, ITSELF, Mode::empty())?;
    let found = rustix::fs::fstat(&link)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::Symlink {
        return Err(Errno::NOTDIR.into());
    }
    if !trusts(found.st_uid) {
        return Err(io::Error::other(format!(
            "{} is a symbolic link of user {}, which is not followed: put there what was there, or have root make the link",
            Path::new(name).display(),
            found.st_uid
        )));
    }
    let target = rustix::fs::readlinkat(&link, "", Vec::new())?;
    Ok(PathBuf::from(OsString::from_vec(target.into_bytes())))
}

/// A name in a directory.
#[derive(Debug)]
pub struct Entry {
    above: OwnedFd,
    name: OsString,
}

/// An entry that was found, held open by a descriptor.
#[derive(Debug)]
pub struct Found {
    fd: OwnedFd,
    /// What the kernel says of the entry: its type, mode, owner and length.
    pub stat: Stat,
}

impl Found {
    fn of(fd: OwnedFd) -> io::Result<Self> {
        let stat = rustix::fs::fstat(&fd)?;
        Ok(Self { fd, stat })
    }

    /// The type of the file.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// The user and group that own the entry.
    pub fn owner(&self) -> (u32, u32) {
        (self.stat.st_uid, self.stat.st_gid)
    }

    /// The length of the file in bytes.
    pub fn length(&self) -> u64 {
        u64::try_from(self.stat.st_size).unwrap_or(0)
    }

    /// A path by which the kernel leads this process to this very file.
    pub fn way_to_it(&self) -> PathBuf {
        // A descriptor that only names a file leads to it by no other way.
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }

    /// Opens this very file, which must be a regular one.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn open(&self, options: &OpenOptions) -> io::Result<File> {
        if self.kind() != FileType::RegularFile {
            return Err(Errno::INVAL.into());
        }
        options.open(self.way_to_it())
    }
}

impl AsFd for Found {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Entry {
    /// That of an absolute path.
    ///
    /// # Errors
    /// As for [`directory`], also when that is missing.
    pub fn of(path: &Path) -> io::Result<Self> {
        let (Some(above), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let above = directory(above)?;
        Ok(Self {
            above,
            name: name.to_owned(),
        })
    }

    /// Another name in the same directory.
    ///
    /// # Errors
    /// The system is out of descriptors.
    pub fn beside(&self, name: OsString) -> io::Result<Self> {
        let above = self.above.try_clone()?;
        Ok(Self { above, name })
    }

    /// The last part of the entry's path.
    pub fn name(&self) -> &OsStr {
        &self.name
    }

    /// What has the name, if anything. A link is found itself.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn find(&self) -> io::Result<Option<Found>> {
        match rustix::fs::openat(&self.above, &self.name, ITSELF, Mode::empty()) {
            Ok(fd) => Found::of(fd).map(Some),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// A new file, for its owner alone.
    ///
    /// # Errors
    /// The error of the file system; something has the name.
    pub fn create(&self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(&self.above, &self.name, flags, mode)?.into())
    }

    /// Takes the name away, if something has it, which must not be a directory.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn remove(&self) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.above, &self.name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Gives this name to a file, also.
    ///
    /// # Errors
    /// The error of the file system; something has the name.
    pub fn link_to(&self, file: &Found) -> io::Result<()> {
        let through = format!("/proc/self/fd/{}", file.fd.as_raw_fd());
        let here = rustix::fs::CWD;
        let linked = rustix::fs::linkat(
            here,
            through.as_str(),
            &self.above,
            &self.name,
            AtFlags::SYMLINK_FOLLOW,
        );
        Ok(linked?)
    }

    /// Gives what has this name that of `to`, in the same directory, whatever had it before.
    ///
    /// # Errors
    /// The error of the file system.
    pub fn rename_over(&self, to: &Self) -> io::Result<()> {
        let (from, above) = (self.above.as_fd(), to.above.as_fd());
        Ok(rustix::fs::renameat(from, &self.name, above, &to.name)?)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, lchown, symlink};

    use super::*;

    fn same(fd: &OwnedFd, path: &Path) -> bool {
        let meta = std::fs::metadata(path).unwrap();
        rustix::fs::fstat(fd).unwrap().st_ino == meta.ino()
    }

    #[test]
    fn links_of_root_and_our_own_are_followed_wherever_they_lead() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir_all(at("real/deep")).unwrap();
        symlink("real/deep", at("relative")).unwrap();
        symlink(at("real"), at("absolute")).unwrap();
        symlink("../absolute/./deep/..", at("real/up")).unwrap();
        symlink("loop", at("loop")).unwrap();
        for (path, to) in [
            ("relative", "real/deep"),
            ("absolute/deep", "real/deep"),
            ("real/up", "real"),
            ("real/up/up/deep", "real/deep"),
        ] {
            assert!(same(&directory(&at(path)).unwrap(), &at(to)), "{path}");
        }
        symlink("file", at("to-file")).unwrap();
        std::fs::write(at("file"), "abc").unwrap();
        for path in ["file", "to-file", "absolute/../to-file"] {
            assert_eq!(find(&at(path)).unwrap().length(), 3, "{path}");
        }
        assert!(same(&find(Path::new("/")).unwrap().fd, Path::new("/")));
        assert!(same(&find(&at("real/up/..")).unwrap().fd, dir.path()));
        find(&at("loop")).unwrap_err();
        let code = |path: &str| directory(&at(path)).unwrap_err().raw_os_error();
        assert_eq!(code("loop"), Some(libc::ELOOP));
        assert_eq!(code("missing"), Some(libc::ENOENT));
        assert_eq!(code("file"), Some(libc::ENOTDIR));
        directory(Path::new("relative")).unwrap_err();
    }

    #[test]
    fn what_a_user_may_change_on_the_way_is_found() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let user = JobUser::find("4321:8765").unwrap();
        std::fs::create_dir_all(at("a/b/run")).unwrap();
        let set = |name: &str, owner: (u32, u32), mode: u32| {
            std::os::unix::fs::chown(at(name), Some(owner.0), Some(owner.1)).unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(at(name), mode).unwrap();
        };
        let changeable = |path: &str| changeable_by(&at(path), &user).unwrap();
        // Among what is above are sticky directories that everybody may write.
        assert_eq!(changeable("a/b/run"), None);
        for (owner, mode, is) in [
            ((4321, 0), 0o555, true),
            ((4321, 0), 0o1755, true),
            ((0, 8765), 0o775, true),
            ((0, 8765), 0o757, false),
            ((0, 8765), 0o1775, false),
            ((0, 1), 0o775, false),
            ((0, 1), 0o757, true),
            ((0, 1), 0o1777, false),
            ((0, 0), 0o755, false),
        ] {
            set("a", owner, mode);
            let found = changeable("a/b/run");
            assert_eq!(found, is.then(|| at("a")), "{owner:?} {mode:o}");
        }
        // In a sticky one only what is the user's own.
        set("a", (0, 0), 0o1777);
        set("a/b", (4321, 0), 0o755);
        assert_eq!(changeable("a/b/run"), Some(at("a")));
        set("a", (0, 0), 0o755);
        set("a/b", (0, 0), 0o755);
        // Where a link stands counts as well as where it leads.
        std::fs::create_dir(at("theirs")).unwrap();
        symlink("../a/b", at("theirs/link")).unwrap();
        symlink(at("theirs/link"), at("ours")).unwrap();
        assert_eq!(changeable("ours/run"), None);
        set("theirs", (4321, 0), 0o755);
        assert_eq!(changeable("ours/run"), Some(at("theirs")));
        changeable_by(&at("a/missing"), &user).unwrap_err();
    }

    #[test]
    fn a_link_of_another_user_is_followed_nowhere() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("victim")).unwrap();
        std::fs::write(at("victim/file"), "precious").unwrap();
        symlink("victim", at("theirs")).unwrap();
        lchown(at("theirs"), Some(1234), None).unwrap();
        // The kernel would follow what root's own leads to.
        symlink("theirs", at("ours")).unwrap();
        for way in ["theirs", "ours"] {
            for path in [at(way), at(way).join("new/deeper")] {
                let text = create_directories(&path, 0o755).unwrap_err().to_string();
                assert!(text.contains("link of user 1234"), "{text}");
            }
            Entry::of(&at(way).join("file")).unwrap_err();
        }
        assert_eq!(std::fs::read_dir(at("victim")).unwrap().count(), 1);
    }

    #[test]
    fn what_was_opened_stays_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (directory, content) in [("here", "ours"), ("other", "victim")] {
            std::fs::create_dir(at(directory)).unwrap();
            std::fs::write(at(directory).join("file"), content).unwrap();
        }
        let entry = Entry::of(&at("here/file")).unwrap();
        let found = entry.find().unwrap().unwrap();
        std::fs::rename(at("here"), at("away")).unwrap();
        symlink("other", at("here")).unwrap();
        let file = found.open(OpenOptions::new().write(true)).unwrap();
        file.set_len(0).unwrap();
        let beside = entry.beside("saved".into()).unwrap();
        beside.create().unwrap();
        beside.create().unwrap_err();
        entry
            .beside("third".into())
            .unwrap()
            .link_to(&found)
            .unwrap();
        entry.remove().unwrap();
        entry.remove().unwrap();
        assert!(entry.find().unwrap().is_none());
        let third = entry.beside("third".into()).unwrap();
        third.rename_over(&entry).unwrap();
        assert_eq!(std::fs::read(at("away/file")).unwrap(), b"");
        assert!(at("away/saved").exists() && !at("away/third").exists());
        assert_eq!(std::fs::read(at("other/file")).unwrap(), b"victim");
        assert_eq!(std::fs::read_dir(at("other")).unwrap().count(), 1);
    }

    #[test]
    fn directories_are_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        for _ in 0..2 {
            assert!(same(&create_directories(&deep, 0o750).unwrap(), &deep));
        }
        let mode = std::fs::metadata(dir.path().join("a")).unwrap().mode();
        assert_eq!(mode & 0o027, 0, "{mode:o}");
    }
}
