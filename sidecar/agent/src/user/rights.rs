//! Which access to a file the job's user may have: asked before CRIU, which is root, opens files in that user's name, and
//! afterwards.
//!
//! # Rules
//!
//! * The user may have what belongs to it, whatever the mode says: it could change the mode.
//! * For other files their mode decides, and where that is not enough, the kernel's answer to this user (access-control lists,
//!   file systems of other machines); and the user must be able to get to their directory.
//! * The user may have a program mapped that it may run.
//! * A file that no longer has a name was not reached by one: its content comes from the image.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Stat};
use rustix::process::{Gid, Uid};

use crate::proc::{self, DELETED};
use crate::tree;
use crate::user::JobUser;
use crate::user::way::{self, Found};

/// A file that a process has and its user may not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beyond {
    /// The path of the file.
    pub path: PathBuf,
    /// The user that owns the file.
    pub owner: u32,
    /// What the user may not do with the file, in words.
    pub what: &'static str,
}

/// Bits of a mode: a process that runs such a file becomes another user, or gets another group.
pub const SET_IDS: u32 = 0o6000;

/// Access for what an open file's flags say (`O_ACCMODE`).
pub fn of_flags(flags: u32) -> Access {
    const WRITE_ONLY: u32 = libc::O_WRONLY.cast_unsigned();
    const BOTH: u32 = libc::O_RDWR.cast_unsigned();
    match flags & libc::O_ACCMODE.cast_unsigned() {
        WRITE_ONLY => Access::WRITE_OK,
        BOTH => Access::READ_OK | Access::WRITE_OK,
        _ => Access::READ_OK,
    }
}

/// The access in a word, for messages: to write, or else to read.
pub fn in_words(access: Access) -> &'static str {
    match access.contains(Access::WRITE_OK) {
        true => "write",
        false => "read",
    }
}

/// What one user may, and to which directories it may go, as far as that was asked.
#[derive(Debug)]
pub struct Rights<'a> {
    user: &'a JobUser,
    reached: RefCell<BTreeMap<PathBuf, bool>>,
}

impl<'a> Rights<'a> {
    /// The rights of this user.
    pub fn of(user: &'a JobUser) -> Self {
        Self {
            user,
            reached: RefCell::default(),
        }
    }

    /// The user whose rights they are.
    pub fn user(&self) -> &'a JobUser {
        self.user
    }

    /// Whether the user may have a file in this way, once it is there. `through` leads to it, in case the kernel has to be asked.
    pub fn may_have(&self, stat: &Stat, through: &Path, access: Access) -> bool {
        let owner = (stat.st_uid, stat.st_gid);
        if stat.st_uid == self.user.uid() || may_by_mode(self.user, owner, stat.st_mode, access) {
            return true;
        }
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let runs = is_file && access == Access::READ_OK;
        as_user(self.user, || {
            let may = |access| {
                rustix::fs::accessat(rustix::fs::CWD, through, access, AtFlags::EACCESS).is_ok()
            };
            may(access) || runs && may(Access::EXEC_OK)
        })
        // Without a thread nobody says that it may.
        .unwrap_or(false)
    }

    /// Whether the user may go to a directory. One that is not there keeps nobody from anything.
    pub fn reaches(&self, directory: &Path) -> bool {
        if let Some(&known) = self.reached.borrow().get(directory) {
            return known;
        }
        let walked = way::directories(directory, &mut |at| {
            let stat = rustix::fs::fstat(at)?;
            let through = PathBuf::from(format!("/proc/self/fd/{}", at.as_raw_fd()));
            match self.may_have(&stat, &through, Access::EXEC_OK) {
                true => Ok(()),
                false => Err(io::ErrorKind::PermissionDenied.into()),
            }
        });
        let reached = walked.map_or_else(|e| e.kind() == io::ErrorKind::NotFound, |()| true);
        let mut all = self.reached.borrow_mut();
        all.insert(directory.to_owned(), reached);
        reached
    }

    /// The first file that a process has open or mapped, or is in, and that the user may not have, or that would not come back.
    pub fn beyond(&self, pid: u32) -> Option<Beyond> {
        self.beyond_by_name(pid).or_else(|| self.without_way(pid))
    }

    /// The first file that has no name any more and could not be made again where it was.
    fn without_way(&self, pid: u32) -> Option<Beyond> {
        let named = |link: &Path| {
            let had = link
                .as_os_str()
                .as_bytes()
                .strip_suffix(DELETED.as_bytes())?;
            let path = PathBuf::from(OsStr::from_bytes(had));
            (path.is_absolute() && !is_memory(&path)).then_some(path)
        };
        let open = tree::open_files(pid).into_iter().filter_map(|file| {
            let through = PathBuf::from(format!("/proc/{pid}/fd/{}", file.fd));
            Some((through, named(&file.link)?))
        });
        let within = PathBuf::from(format!("/proc/{pid}/cwd"));
        let within = std::fs::read_link(&within)
            .ok()
            .and_then(|link| Some((within, named(&link)?)));
        let mapped = tree::removed_maps(pid).into_iter();
        let mapped = mapped.filter(|(_, path)| !is_memory(path));
        let mut had = open.chain(within).chain(mapped);
        had.find_map(|(through, path)| {
            let stat = rustix::fs::stat(&through).ok()?;
            let is_own = stat.st_uid == self.user.uid();
            let comes_back = match FileType::from_raw_mode(stat.st_mode) {
                // CRIU gives it the name again that it lost.
                _ if stat.st_nlink > 0 => is_own || !self.is_sticky_above(&path),
                FileType::RegularFile => {
                    (is_own || stat.st_mode & SET_IDS == 0) && self.may_make_for_a_moment(&path)
                }
                FileType::Directory => self.may_make(&path),
                // CRIU says of the others what it cannot do.
                _ => true,
            };
            (!comes_back).then_some(Beyond {
                path,
                owner: stat.st_uid,
                what: "make",
            })
        })
    }

    /// Whether CRIU can make a file under a name of its own beside this path, for a moment: with the user's rights, or where the user
    /// cannot interfere and no program looks for something to run.
    pub fn may_make_for_a_moment(&self, path: &Path) -> bool {
        let above = path.parent().unwrap_or(Path::new("/"));
        match way::find(above) {
            Ok(found) => {
                self.may_write(&found) && self.reaches(above)
                    || !is_run_by_others(above)
                        && way::is_kept_from(above, self.user).unwrap_or(false)
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => self.may_make(above),
            Err(_) => false,
        }
    }

    /// Whether a file of somebody else's in the directory of this path can be renamed by its owner alone.
    fn is_sticky_above(&self, path: &Path) -> bool {
        const STICKY: u32 = 0o1000;
        let found = path.parent().and_then(|above| way::find(above).ok());
        found.is_some_and(|found| {
            found.stat.st_mode & STICKY != 0 && found.owner().0 != self.user.uid()
        })
    }

    /// Whether the user could make something of this name, with the directories above it that are missing.
    pub fn may_make(&self, path: &Path) -> bool {
        for above in path.ancestors().skip(1) {
            match way::find(above) {
                Ok(found) => return self.may_write(&found) && self.reaches(above),
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(_) => return false,
            }
        }
        false
    }

    fn may_write(&self, directory: &Found) -> bool {
        let needed = Access::WRITE_OK | Access::EXEC_OK;
        self.may_have_by_mode(&directory.stat, &directory.way_to_it(), needed)
    }

    /// What its mode, or the kernel, says: of the user's own files as well.
    fn may_have_by_mode(&self, stat: &Stat, through: &Path, access: Access) -> bool {
        let owner = (stat.st_uid, stat.st_gid);
        may_by_mode(self.user, owner, stat.st_mode, access)
            || stat.st_uid != self.user.uid() && self.may_have(stat, through, access)
    }

    fn beyond_by_name(&self, pid: u32) -> Option<Beyond> {
        let open = tree::open_files(pid)
            .into_iter()
            .filter(|file| file.link.is_absolute())
            .map(|file| {
                let through = PathBuf::from(format!("/proc/{pid}/fd/{}", file.fd));
                (through, file.link, Some(file.fd))
            });
        let within = ["cwd", "root"].into_iter().filter_map(|name| {
            let through = PathBuf::from(format!("/proc/{pid}/{name}"));
            let link = std::fs::read_link(&through).ok()?;
            Some((through, link, None))
        });
        let mapped = tree::mapped_files(pid).into_iter();
        let mapped = mapped.map(|(through, link)| (through, link, None));
        let had = open
            .chain(within)
            .chain(mapped)
            .filter_map(|(through, link, fd)| {
                let stat = named(&through)?;
                let access = match fd {
                    Some(fd) => of_flags(tree::open_flags(pid, fd)?),
                    // A directory that one is in need not be readable.
                    None if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                        Access::EXEC_OK
                    }
                    None => Access::READ_OK,
                };
                Some((stat, through, link, access))
            });
        let shared = tree::shared_writable_maps(pid).into_iter();
        let shared = shared.filter_map(|(through, link)| {
            Some((named(&through)?, through, link, Access::WRITE_OK))
        });
        let mut had = had.chain(shared);
        had.find_map(|(stat, through, path, access)| {
            let is_own = stat.st_uid == self.user.uid();
            let may = is_own
                || self.may_have(&stat, &through, access)
                    && (path.parent()).is_none_or(|above| self.reaches(above));
            (!may).then(|| Beyond {
                path,
                owner: stat.st_uid,
                what: in_words(access),
            })
        })
    }
}

/// Whether a mode alone says so, of a file of this user and group.
pub fn may_by_mode(user: &JobUser, (owner, group): (u32, u32), mode: u32, access: Access) -> bool {
    let shift = match () {
        () if owner == user.uid() => 6,
        () if user.is_in(group) => 3,
        () => 0,
    };
    // `R_OK`, `W_OK` and `X_OK` are the bits of a mode.
    (mode >> shift) & access.bits() == access.bits()
}

/// Does something as this user, in a thread: the calls are those of the kernel, which knows users of threads. Afterwards no debugger
/// of a user's may attach to this process (it is not dumpable), and it was not anybody's before.
fn as_user<T: Send>(user: &JobUser, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new()
            .name("as-user".into())
            .spawn_scoped(scope, || -> io::Result<T> {
                let groups: Vec<Gid> = user.groups().map(Gid::from_raw).collect();
                let (uid, gid) = (Uid::from_raw(user.uid()), Gid::from_raw(user.gid()));
                rustix::thread::set_thread_groups(&groups)?;
                rustix::thread::set_thread_res_gid(gid, gid, gid)?;
                // With it go the capabilities.
                rustix::thread::set_thread_res_uid(uid, uid, uid)?;
                Ok(work())
            })?;
        thread
            .join()
            .unwrap_or_else(|_| Err(io::Error::other("the thread ended")))
    })
}

/// Whether programs of the machine run, or read as their settings, what they find in a directory.
fn is_run_by_others(directory: &Path) -> bool {
    const TREES: [&str; 9] = [
        "/etc",
        "/run",
        "/var",
        "/boot",
        "/root",
        "/proc",
        "/sys",
        "/dev",
        "/lib/systemd",
    ];
    let named = |part: &std::ffi::OsStr| {
        let part = part.to_string_lossy();
        part.contains("cron") || part.contains("systemd") || part.ends_with(".d")
    };
    TREES.iter().any(|tree| directory.starts_with(tree)) || directory.iter().any(named)
}

/// Whether it is memory that the kernel shows as a file without a name.
fn is_memory(path: &Path) -> bool {
    let begins = ["/memfd:", "/SYSV", "/dev/", "/anon_hugepage"];
    let path = path.to_string_lossy();
    begins.iter().any(|begin| path.starts_with(begin))
}

/// What is at the end of a way, if it has a name.
fn named(through: &Path) -> Option<Stat> {
    rustix::fs::stat(through)
        .ok()
        .filter(|stat| stat.st_nlink > 0)
}

/// What a process is that one of this user without privileges is not, for a message; `None`: nothing.
pub fn more_than(pid: u32, user: &JobUser) -> Option<String> {
    let status = proc::text(pid, "status").ok()?;
    status.lines().find_map(|line| {
        let (field, value) = line.split_once(':')?;
        match field {
            "Uid" => value
                .split_ascii_whitespace()
                .find(|found| found.parse() != Ok(user.uid()))
                .map(|found| format!("is user {found}")),
            "Gid" | "Groups" => value
                .split_ascii_whitespace()
                .find(|found| !found.parse().is_ok_and(|group| user.is_in(group)))
                .map(|found| format!("is in group {found}")),
            // What is inheritable alone is nothing; older Docker leaves it to everybody.
            "CapPrm" | "CapEff" | "CapAmb" => {
                let has_some = u64::from_str_radix(value.trim(), 16) != Ok(0);
                has_some.then(|| "has capabilities".to_owned())
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{PermissionsExt, chown};

    use super::*;

    #[test]
    fn the_kernel_says_what_a_mode_does_not() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let path = dir.path().join("file");
        let file = File::create(&path).unwrap();
        let user = JobUser::find("12345:12346").unwrap();
        let may = |mode, access| {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let stat = rustix::fs::fstat(&file).unwrap();
            Rights::of(&user).may_have(&stat, &path, access)
        };
        let both = Access::READ_OK | Access::WRITE_OK;
        assert!(may(0o644, Access::READ_OK) && !may(0o644, both));
        assert!(may(0o606, both) && !may(0o640, Access::READ_OK));
        assert!(
            may(0o711, Access::READ_OK),
            "a program that it may run is mapped"
        );
        chown(&path, None, Some(12_346)).unwrap();
        assert!(may(0o640, Access::READ_OK) && !may(0o640, both));
        chown(&path, Some(12_345), None).unwrap();
        assert!(may(0o000, both), "its owner could change that");
        chown(&path, Some(0), Some(0)).unwrap();
        // `u:12345:rw`, which the bits of the group show as the mask: user::rw-, user:12345:rw-, group::---, mask::rw-, other::---.
        let entry = |tag: u16, bits: u16, id: u32| {
            let mut bytes = [tag.to_le_bytes(), bits.to_le_bytes()].concat();
            bytes.extend(id.to_le_bytes());
            bytes
        };
        let list = [
            2_u32.to_le_bytes().to_vec(),
            entry(0x01, 6, u32::MAX),
            entry(0x02, 6, 12_345),
            entry(0x04, 0, u32::MAX),
            entry(0x10, 6, u32::MAX),
            entry(0x20, 0, u32::MAX),
        ]
        .concat();
        let set = rustix::fs::fsetxattr(
            &file,
            "system.posix_acl_access",
            &list,
            rustix::fs::XattrFlags::empty(),
        );
        if set == Err(rustix::io::Errno::OPNOTSUPP) {
            eprintln!("this file system has no access-control lists");
            return;
        }
        set.unwrap();
        let stat = rustix::fs::fstat(&file).unwrap();
        assert!(Rights::of(&user).may_have(&stat, &path, both));
        let other = JobUser::find("12347:12347").unwrap();
        assert!(!Rights::of(&other).may_have(&stat, &path, Access::READ_OK));
        assert!(
            rustix::process::geteuid().is_root(),
            "this thread is who it was"
        );
    }

    #[test]
    fn a_process_whose_name_is_no_text_is_looked_at_as_any_other() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = proc::tests::strangely_named(dir.path());
        let user = JobUser::find("12345:12345").unwrap();
        let more = more_than(child.id(), &user).unwrap();
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(more, format!("is user {uid}"));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    #[allow(clippy::too_many_lines, reason = "one list of cases")]
    fn what_a_process_has_and_its_user_may_not_have_is_named() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let user = JobUser::find("12345:12345").unwrap();
        let dir = tempfile::tempdir().unwrap();
        fs::set_permissions(dir.path(), Permissions::from_mode(0o755)).unwrap();
        let secret = dir.path().join("secret");
        fs::write(&secret, "x").unwrap();
        fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        let with = |redirect: &str| {
            let script = format!("exec 9{redirect}; echo ready; exec sleep 60");
            let mut child = std::process::Command::new("sh")
                .args(["-c", &script])
                .current_dir("/")
                .stdin(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            let mut word = [0; 5];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut word).unwrap();
            let found = Rights::of(&user).beyond(child.id());
            child.kill().unwrap();
            child.wait().unwrap();
            found
        };
        assert_eq!(with("</dev/null"), None);
        // Without a name: made again by the user, or where the user keeps out; but not what makes its user somebody else.
        let removed = dir.path().join("removed");
        let of_root = |mode| {
            fs::write(&removed, "x").unwrap();
            fs::set_permissions(&removed, Permissions::from_mode(mode)).unwrap();
            with(&format!("<{0}; rm {0}", removed.display()))
        };
        let made = |path: &Path| {
            Some(Beyond {
                path: path.to_owned(),
                owner: 0,
                what: "make",
            })
        };
        assert_eq!(of_root(0o644), None);
        assert_eq!(of_root(0o4755), made(&removed));
        // One that has another name is renamed there, which in such a directory its owner may alone.
        let shared = dir.path().join("shared");
        fs::create_dir(&shared).unwrap();
        for (mode, comes_back) in [(0o777, true), (0o1777, false)] {
            fs::set_permissions(&shared, Permissions::from_mode(mode)).unwrap();
            let (one, two) = (shared.join("one"), shared.join(format!("{mode:o}")));
            fs::write(&one, "x").unwrap();
            fs::hard_link(&one, &two).unwrap();
            let found = with(&format!("<{0}; rm {0}", one.display()));
            assert_eq!(
                found,
                (!comes_back).then(|| made(&one)).flatten(),
                "{mode:o}"
            );
        }
        let between = dir.path().join("between");
        fs::create_dir(&between).unwrap();
        chown(&between, Some(12_345), None).unwrap();
        assert_eq!(of_root(0o644), None);
        let inner = between.join("of-root");
        fs::create_dir(&inner).unwrap();
        let lost = inner.join("file");
        fs::write(&lost, "x").unwrap();
        assert_eq!(
            with(&format!("<{0}; rm {0}", lost.display())),
            made(&lost),
            "the user could swap the directory"
        );
        // A package that was replaced with its directories; what others run is not for such files.
        let package = dir.path().join("package");
        fs::create_dir(&package).unwrap();
        let library = package.join("library.so");
        fs::write(&library, "x").unwrap();
        let gone = with(&format!(
            "<{}; rm -r {}",
            library.display(),
            package.display()
        ));
        assert_eq!(gone, made(&library));
        let settings = dir.path().join("settings.d");
        fs::create_dir(&settings).unwrap();
        fs::set_permissions(&settings, Permissions::from_mode(0o755)).unwrap();
        let hook = settings.join("hook");
        fs::write(&hook, "x").unwrap();
        assert_eq!(with(&format!("<{0}; rm {0}", hook.display())), made(&hook));
        fs::create_dir(between.join("within")).unwrap();
        let within = between.join("within/file");
        fs::write(&within, "x").unwrap();
        let gone = with(&format!(
            "<{}; rm -r {}/within",
            within.display(),
            between.display()
        ));
        assert_eq!(gone, None, "the user makes the directory again");
        // The user's own directory, which it closed.
        let closed = dir.path().join("closed");
        fs::create_dir(&closed).unwrap();
        chown(&closed, Some(12_345), None).unwrap();
        fs::set_permissions(&closed, Permissions::from_mode(0o555)).unwrap();
        let file = closed.join("file");
        fs::write(&file, "x").unwrap();
        assert_eq!(with(&format!("<{0}; rm {0}", file.display())), made(&file));
        // A directory that one is in is made by its own name.
        let place = dir.path().join("place");
        fs::create_dir(&place).unwrap();
        let left = with(&format!("</dev/null; cd {0}; rmdir {0}", place.display()));
        assert_eq!(left, made(&place));
        let named = |what| {
            Some(Beyond {
                path: secret.clone(),
                owner: 0,
                what,
            })
        };
        let path = secret.display();
        assert_eq!(with(&format!("<{path}")), named("read"));
        fs::set_permissions(&secret, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(with(&format!("<{path}")), None);
        assert_eq!(with(&format!(">>{path}")), named("write"));
        // One that anybody might read, where not anybody may go.
        fs::set_permissions(dir.path(), Permissions::from_mode(0o700)).unwrap();
        assert_eq!(with(&format!("<{path}")), named("read"));
        chown(&secret, Some(12_345), None).unwrap();
        assert_eq!(with(&format!(">>{path}")), None, "its own it may have");
    }
}
