//! Paths of the job, accessed with the rights of the job's user.
//!
//! CRIU is root, and brings files, sockets and directories of the job back by their paths. A user that may change a directory on
//! such a path could have it lead to what is root's alone, in the moment after the agent looked. Where the agent says in
//! `PHOS_JOB_USER` whose the job is, the calls that CRIU makes for the job are made with that user's rights: what it gets in this
//! way, the user could have got itself. How, and what is done where the user is refused, is in [`place`].
//!
//! # Rules
//!
//! * A path is the job's if it is relative to the root directory, which is how CRIU opens files, or if the call makes, binds, connects to,
//!   links, renames, removes, gives away or changes the mode of something by a name that is not relative to a directory of CRIU's.
//!   Everything else (`/proc`, the image) is CRIU's own.
//! * What an image says may come from anybody. So nothing is opened as root that the user could not have, nothing is made under a
//!   name that the image gives, nothing that is a device, has a set-user-ID bit or is cut, and nothing is given to anybody but
//!   the user. The agent has already made the user the owner of files without a name (`sidecar/agent/src/criu/ghosts.rs`).
//! * The effective user is changed, not only that of the file system: the peer of a connection sees who connects, and who
//!   listens.
//! * A user that is not understood refuses all such calls.

mod ids;
mod place;

use core::ffi::{c_char, c_int, c_long, c_uint};

use self::ids::{call, job, refusal};
use self::place::{AsRoot, Descriptor, MAKES, Place, SET_IDS, open_at};
use super::{mappings, set_errno};

/// Turns the result of a system call into the C library's form: -1 and `errno` where it failed.
fn answer(result: c_long) -> c_int {
    if (-4095..0).contains(&result) {
        set_errno(result.wrapping_neg() as c_int);
        return -1;
    }
    result as c_int
}

/// Does something by a path: as it is where the path is CRIU's own.
///
/// # Safety
/// `path` is the address of a path that ends with a zero, or zero.
unsafe fn by_path(
    directory: c_int,
    path: *const c_char,
    as_root: AsRoot,
    task: impl Fn(c_int, *const c_char) -> c_long,
) -> c_int {
    // SAFETY: by the caller's word.
    let place = unsafe { Place::new(directory, path) }.filter(Place::is_of_job);
    answer(match (job(), place) {
        (Err(refused), Some(_)) => refused,
        (Ok(Some(user)), Some(place)) => place.run(&user, as_root, task),
        _ => task(directory, path),
    })
}

/// # Safety
/// As [`by_path`].
unsafe fn open(directory: c_int, path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: by the caller's word.
    if let Some(file) = unsafe { mappings::open(directory, path) } {
        return file;
    }
    // SAFETY: by the caller's word.
    let place = unsafe { Place::new(directory, path) }.filter(|place| {
        // By other paths CRIU opens what is its own.
        let is_meant = flags & MAKES == MAKES || flags & libc::O_PATH != 0;
        place.is_under_root() || is_meant && place.is_of_job() && !place.is_kept()
    });
    answer(match (job(), place) {
        (Err(refused), Some(_)) => refused,
        (Ok(Some(user)), Some(place)) => place.open(&user, flags, mode),
        // SAFETY: as above.
        _ => unsafe { open_at(directory, path, flags, mode) },
    })
}

/// In place of the C library's, as are all that follow.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn openat64(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_long,
) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { open(directory, path, flags, mode) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn openat(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_long,
) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { open(directory, path, flags, mode) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { open(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(export_name = "open"))]
pub unsafe extern "C" fn open32(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { open(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mknod(
    path: *const c_char,
    mode: libc::mode_t,
    device: libc::dev_t,
) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let device = device.cast_signed();
        let arguments = [directory.into(), path as c_long, mode.into(), device];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_mknodat, arguments) }
    };
    let as_root = match (mode & libc::S_IFMT, mode & SET_IDS) {
        (libc::S_IFIFO, 0) => AsRoot::Harmless,
        _ => AsRoot::Never,
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(libc::AT_FDCWD, path, as_root, task) }
}

/// Directories have no name of CRIU's.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mkdirat(
    directory: c_int,
    path: *const c_char,
    mode: libc::mode_t,
) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [directory.into(), path as c_long, mode.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_mkdirat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, AsRoot::Never, task) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn symlink(target: *const c_char, path: *const c_char) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [target as c_long, directory.into(), path as c_long];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_symlinkat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(libc::AT_FDCWD, path, AsRoot::Never, task) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [directory.into(), path as c_long, flags.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_unlinkat, arguments) }
    };
    // SAFETY: what the caller gave.
    let place = unsafe { Place::new(directory, path) };
    let is_criu_s = match flags {
        libc::AT_REMOVEDIR => place.is_some_and(|place| place.is_tried()),
        _ => place.is_some_and(|place| place.is_kept()),
    };
    if is_criu_s {
        return answer(task(directory, path));
    }
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, AsRoot::Harmless, task) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { unlinkat(libc::AT_FDCWD, path, 0) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { unlinkat(libc::AT_FDCWD, path, libc::AT_REMOVEDIR) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn linkat(
    old: c_int,
    old_path: *const c_char,
    new: c_int,
    new_path: *const c_char,
    flags: c_int,
) -> c_int {
    let task = |old: c_int, old_path: *const c_char, new: c_int, new_path: *const c_char| {
        let (from, to) = (old_path as c_long, new_path as c_long);
        let arguments = [old.into(), from, new.into(), to, flags.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_linkat, arguments) }
    };
    // SAFETY: what the caller gave.
    let places = unsafe { (Place::new(old, old_path), Place::new(new, new_path)) };
    answer(match (job(), places) {
        (Err(refused), _) => refused,
        (Ok(Some(user)), (Some(from), Some(to))) if from.is_of_job() || to.is_of_job() => {
            from.link(&to, &user, task)
        }
        _ => task(old, old_path, new, new_path),
    })
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn rename(old: *const c_char, new: *const c_char) -> c_int {
    let here = libc::AT_FDCWD;
    // SAFETY: what the caller gave.
    let task = || unsafe {
        let (old, new) = (old as c_long, new as c_long);
        call(libc::SYS_renameat2, [here.into(), old, here.into(), new, 0])
    };
    // SAFETY: what the caller gave.
    let places = unsafe { [Place::new(here, old), Place::new(here, new)] };
    if places.iter().flatten().all(Place::is_kept) {
        return answer(task());
    }
    as_user(task)
}

/// Does something of the job's, as its user.
fn as_user(task: impl Fn() -> c_long) -> c_int {
    answer(match job() {
        Err(refused) => refused,
        Ok(Some(user)) => user.run(task),
        Ok(None) => task(),
    })
}

/// The system call has no flags before Linux 6.6, and CRIU gives none.
///
/// # Safety
/// The same as for the C library's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fchmodat(
    directory: c_int,
    path: *const c_char,
    mode: libc::mode_t,
    flags: c_int,
) -> c_int {
    if flags != 0 {
        return answer(refusal(libc::EOPNOTSUPP));
    }
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [directory.into(), path as c_long, mode.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_fchmodat, arguments) }
    };
    let as_root = match mode & SET_IDS {
        0 => AsRoot::Harmless,
        _ => AsRoot::Never,
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, as_root, task) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn chmod(path: *const c_char, mode: libc::mode_t) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { fchmodat(libc::AT_FDCWD, path, mode, 0) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fchownat(
    directory: c_int,
    path: *const c_char,
    owner: libc::uid_t,
    group: libc::gid_t,
    flags: c_int,
) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let (owner, group) = (owner.into(), group.into());
        let arguments = [directory.into(), path as c_long, owner, group, flags.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_fchownat, arguments) }
    };
    let as_root = match job() {
        Ok(Some(user)) if owner == user.uid && user.is_in(group) => AsRoot::Harmless,
        _ => AsRoot::Never,
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, as_root, task) }
}

/// # Safety
/// The same as for the C library's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn lutimes(path: *const c_char, times: *const [libc::timeval; 2]) -> c_int {
    // SAFETY: two times by the caller's word.
    let times = (!times.is_null()).then(|| unsafe { times.read_unaligned() });
    let times = times.map(|times| {
        times.map(|time| libc::timespec {
            tv_sec: time.tv_sec,
            tv_nsec: time.tv_usec.saturating_mul(1000),
        })
    });
    let at = times.as_ref().map_or(core::ptr::null(), |t| t.as_ptr());
    let task = |directory: c_int, path: *const c_char| {
        let flags = libc::AT_SYMLINK_NOFOLLOW.into();
        let arguments = [directory.into(), path as c_long, at as c_long, flags];
        // SAFETY: the path is what the caller gave, the times are above.
        unsafe { call(libc::SYS_utimensat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(libc::AT_FDCWD, path, AsRoot::Harmless, task) }
}

/// Sockets have names relative to a directory that CRIU goes to. It goes to the directory of the image by a descriptor of the
/// process that asked.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn chdir(path: *const c_char) -> c_int {
    // SAFETY: what the caller gave.
    let place = unsafe { Place::new(libc::AT_FDCWD, path) };
    let is_of_job =
        |place: Place<'_>| place.is_absolute() && !place.path.to_bytes().starts_with(b"/proc/");
    let task = || {
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_chdir, [path as c_long]) }
    };
    if !place.is_some_and(is_of_job) {
        return answer(task());
    }
    as_user(task)
}

/// By a path in `/proc`, to what CRIU has opened without looking whether it can be read.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn inotify_add_watch(file: c_int, path: *const c_char, mask: u32) -> c_int {
    let task = || {
        let arguments = [file.into(), path as c_long, mask.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_inotify_add_watch, arguments) }
    };
    let is_users_own = || {
        let user = job().ok().flatten()?;
        let flags = libc::O_PATH | libc::O_CLOEXEC;
        // SAFETY: what the caller gave.
        let found = Descriptor::of(unsafe { open_at(libc::AT_FDCWD, path, flags, 0) })?;
        Some(found.stat()?.st_uid == user.uid)
    };
    if is_users_own() == Some(true) {
        return answer(task());
    }
    as_user(task)
}

/// A process that watches everything that is opened is root's, and does not belong to a user's job.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fanotify_mark(
    file: c_int,
    flags: c_uint,
    mask: u64,
    directory: c_int,
    path: *const c_char,
) -> c_int {
    as_user(|| {
        let mask = mask.cast_signed();
        let arguments = [
            file.into(),
            flags.into(),
            mask,
            directory.into(),
            path as c_long,
        ];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_fanotify_mark, arguments) }
    })
}

/// Whether an address is one of this machine, where the peer sees who owns the socket.
///
/// # Safety
/// `address` is an address of so many bytes, or zero.
unsafe fn is_local(address: *const libc::sockaddr, length: libc::socklen_t) -> bool {
    let least = size_of::<libc::sa_family_t>();
    if address.is_null() || usize::try_from(length).is_ok_and(|length| length < least) {
        return false;
    }
    // SAFETY: two bytes by the caller's word.
    let family = unsafe { address.cast::<libc::sa_family_t>().read_unaligned() };
    c_int::from(family) == libc::AF_UNIX
}

/// # Safety
/// The same as for the system call.
unsafe fn by_address(
    number: c_long,
    socket: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    let task = || {
        let arguments = [socket.into(), address as c_long, length.into()];
        // SAFETY: what the caller gave.
        unsafe { call(number, arguments) }
    };
    // SAFETY: what the caller gave.
    if unsafe { !is_local(address, length) } {
        return answer(task());
    }
    as_user(task)
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn bind(
    socket: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { by_address(libc::SYS_bind, socket, address, length) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn connect(
    socket: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { by_address(libc::SYS_connect, socket, address, length) }
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn listen(socket: c_int, backlog: c_int) -> c_int {
    let mut domain: c_int = 0;
    let mut size = size_of::<c_int>() as libc::socklen_t;
    let (level, name) = (libc::SOL_SOCKET, libc::SO_DOMAIN);
    // SAFETY: the addresses of a number and its size.
    let asked = unsafe {
        let (domain, size) = ((&raw mut domain) as c_long, (&raw mut size) as c_long);
        let arguments = [socket.into(), level.into(), name.into(), domain, size];
        call(libc::SYS_getsockopt, arguments)
    };
    let task = || {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_listen, [socket.into(), backlog.into()]) }
    };
    if asked != 0 || domain != libc::AF_UNIX {
        return answer(task());
    }
    as_user(task)
}

/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut [c_int; 2],
) -> c_int {
    let task = || {
        let arguments = [domain.into(), kind.into(), protocol.into(), pair as c_long];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_socketpair, arguments) }
    };
    if domain != libc::AF_UNIX {
        return answer(task());
    }
    as_user(task)
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs::{self, Permissions};
    use std::io::Error;
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink as link};
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    use super::ids::{GROUPS, Ids, ids_in};
    use super::*;

    const OWNER: u32 = 12_345;

    /// `user` is the job's user's directory, `root` is root's. Works as CRIU does for that user from now on: each test is a process.
    struct World {
        dir: PathBuf,
        root: OwnedFd,
    }

    fn world(name: &str) -> World {
        let dir = std::env::temp_dir().join(format!("criu-user-{name}-{}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
        for (name, owner, mode) in [
            ("user", OWNER, 0o755),
            ("root", 0, 0o755),
            ("secret", 0, 0o700),
        ] {
            let path = dir.join(name);
            fs::create_dir(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            chown(&path, Some(owner), Some(owner)).unwrap();
        }
        // SAFETY: a test is a process of its own, and this its only thread.
        unsafe { std::env::set_var("PHOS_JOB_USER", format!("{OWNER}:{OWNER}:{OWNER}:7")) };
        let root = fs::File::open("/").unwrap().into();
        World { dir, root }
    }

    impl Drop for World {
        fn drop(&mut self) {
            // SAFETY: as above.
            unsafe { std::env::remove_var("PHOS_JOB_USER") };
            let _ = fs::remove_dir_all(&self.dir);
        }
    }

    fn c(path: &Path) -> CString {
        CString::new(path.as_os_str().as_bytes()).unwrap()
    }

    fn done(result: c_int) -> Result<c_int, i32> {
        match result {
            -1 => Err(Error::last_os_error().raw_os_error().unwrap()),
            result => Ok(result),
        }
    }

    impl World {
        fn file(&self, name: &str, owner: u32, mode: u32) -> PathBuf {
            let path = self.dir.join(name);
            fs::write(&path, name).unwrap();
            chown(&path, Some(owner), Some(owner)).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            path
        }

        /// As CRIU opens files of the job.
        fn open(&self, name: &str, flags: c_int) -> Result<OwnedFd, i32> {
            let path = self.dir.join(name);
            let path = c(path.strip_prefix("/").unwrap());
            // SAFETY: a path that ends with a zero; nobody else knows the descriptor.
            unsafe {
                done(openat64(self.root.as_raw_fd(), path.as_ptr(), flags, 0))
                    .map(|fd| OwnedFd::from_raw_fd(fd))
            }
        }

        fn make(&self, name: &str) -> Result<OwnedFd, i32> {
            let path = c(&self.dir.join(name));
            // SAFETY: as above.
            unsafe {
                done(open64(path.as_ptr(), libc::O_WRONLY | MAKES, 0o644))
                    .map(|fd| OwnedFd::from_raw_fd(fd))
            }
        }

        fn is_root_still(&self) -> bool {
            let own = Ids::now().unwrap_or_else(|e| panic!("{e}"));
            own.uid == 0 && fs::read(self.file("secret/of-root", 0, 0o000)).is_ok()
        }
    }

    #[test]
    fn files_are_opened_as_the_user_opens_them() {
        let world = world("open");
        world.file("secret/key", 0, 0o644);
        world.file("user/log", OWNER, 0o644);
        world.file("root/shared", 0, 0o644);
        link(world.dir.join("secret"), world.dir.join("user/swapped")).unwrap();
        for (name, flags) in [("user/log", libc::O_RDWR), ("root/shared", libc::O_RDONLY)] {
            assert!(world.open(name, flags).is_ok(), "{name}");
        }
        assert_eq!(
            world.open("user/swapped/key", libc::O_RDONLY).err(),
            Some(libc::EACCES)
        );
        assert_eq!(
            world.open("user/swapped/key", libc::O_PATH).err(),
            Some(libc::EACCES)
        );
        assert!(world.is_root_still());
        // CRIU's own is as ever.
        let own = c(&world.dir.join("secret/key"));
        // SAFETY: a path that ends with a zero.
        unsafe {
            let flags = libc::O_RDONLY;
            assert!(done(open64(own.as_ptr(), flags, 0)).is_ok());
            assert!(done(open32(own.as_ptr(), flags, 0)).is_ok());
            assert!(done(openat(libc::AT_FDCWD, own.as_ptr(), flags, 0)).is_ok());
        }
    }

    #[test]
    fn what_the_job_had_and_its_mode_forbids_now_is_opened() {
        let world = world("modes");
        world.file("user/made-read-only", OWNER, 0o400);
        assert!(world.open("user/made-read-only", libc::O_RDWR).is_ok());
        // In directories that nobody but root changes: a program, say, that may be executed and not be read.
        world.file("root/program", 0, 0o711);
        assert!(world.open("root/program", libc::O_RDONLY).is_ok());
        world.file("secret/own", OWNER, 0o600);
        assert!(world.open("secret/own", libc::O_RDWR).is_ok());
        link(world.dir.join("root/program"), world.dir.join("root/link")).unwrap();
        world.file("root/other", 0, 0o600);
        link(
            world.dir.join("root/other"),
            world.dir.join("root/to-other"),
        )
        .unwrap();
        assert!(world.open("root/to-other", libc::O_RDONLY).is_err());
        // In those that the user changes, somebody else's stays that.
        world.file("user/of-root", 0, 0o600);
        assert_eq!(
            world.open("user/of-root", libc::O_RDONLY).err(),
            Some(libc::EACCES)
        );
        let open = world.dir.join("open-to-all");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, Permissions::from_mode(0o1777)).unwrap();
        world.file("open-to-all/of-root", 0, 0o600);
        assert_eq!(
            world.open("open-to-all/of-root", libc::O_RDONLY).err(),
            Some(libc::EACCES)
        );
        assert!(world.is_root_still());
    }

    #[test]
    fn nothing_is_made_where_the_user_could_not() {
        let world = world("make");
        link(world.dir.join("secret"), world.dir.join("user/swapped")).unwrap();
        assert_eq!(
            world.make("user/swapped/log.cr.1.ghost").err(),
            Some(libc::EACCES)
        );
        let made = world.make("user/log.cr.1.ghost");
        assert!(made.is_ok());
        let ghost = world.dir.join("user/log.cr.1.ghost");
        assert_eq!(fs::metadata(&ghost).unwrap().uid(), OWNER);
        // A library of root's that was removed while the job had it mapped: the user cannot change the way to it.
        assert!(world.make("root/library.so.cr.2.ghost").is_ok());
        // SAFETY: paths that end with zeros.
        unsafe {
            let swapped = |name: &str| c(&world.dir.join("user/swapped").join(name));
            let refused = Err(libc::EACCES);
            assert_eq!(
                done(mkdirat(libc::AT_FDCWD, swapped("d").as_ptr(), 0o777)),
                refused
            );
            assert_eq!(
                done(mknod(swapped("p").as_ptr(), libc::S_IFIFO | 0o600, 0)),
                refused
            );
            assert_eq!(done(symlink(c"x".as_ptr(), swapped("l").as_ptr())), refused);
            world.file("secret/key", 0, 0o600);
            assert_eq!(done(unlink(swapped("key").as_ptr())), refused);
            assert_eq!(done(rmdir(swapped("key").as_ptr())), refused);
            assert_eq!(
                done(rename(swapped("key").as_ptr(), swapped("k").as_ptr())),
                refused
            );
            assert_eq!(done(chmod(swapped("key").as_ptr(), 0o666)), refused);
            let given = fchownat(libc::AT_FDCWD, swapped("key").as_ptr(), OWNER, OWNER, 0);
            assert_eq!(done(given), refused);
            let (root, from) = (world.root.as_raw_fd(), c(ghost.strip_prefix("/").unwrap()));
            let to = c(world.dir.strip_prefix("/").unwrap());
            let to = CString::new([to.to_bytes(), b"/user/swapped/k"].concat()).unwrap();
            assert_eq!(
                done(linkat(root, from.as_ptr(), root, to.as_ptr(), 0)),
                refused
            );
            let within =
                CString::new([to.to_bytes().strip_suffix(b"swapped/k").unwrap(), b"log"].concat())
                    .unwrap();
            assert!(done(linkat(root, from.as_ptr(), root, within.as_ptr(), 0)).is_ok());
            assert!(done(unlinkat(root, from.as_ptr(), 0)).is_ok());
            assert!(done(chmod(c(&world.dir.join("user/log")).as_ptr(), 0o600)).is_ok());
        }
        let names: Vec<_> = fs::read_dir(world.dir.join("secret")).unwrap().collect();
        assert_eq!(names.len(), 1);
        assert!(world.is_root_still());
    }

    #[test]
    fn as_root_nothing_is_made_that_an_image_could_misuse() {
        let world = world("misuse");
        let kept = world.file("root/kept", 0, 0o644);
        let at = |name: &str| c(&world.dir.join("root").join(name));
        let ghost = at("x.cr.1.ghost");
        let refused = Err(libc::EACCES);
        // SAFETY: paths that end with zeros.
        unsafe {
            let flags = libc::O_WRONLY | MAKES;
            assert_eq!(done(open64(ghost.as_ptr(), flags, 0o4755)), refused);
            assert_eq!(done(open64(at("x").as_ptr(), flags, 0o644)), refused);
            for kind in [libc::S_IFCHR, libc::S_IFBLK] {
                assert_eq!(done(mknod(ghost.as_ptr(), kind | 0o666, 0x103)), refused);
            }
            assert!(done(open64(ghost.as_ptr(), flags, 0o755)).is_ok());
            assert_eq!(done(chmod(ghost.as_ptr(), 0o4755)), Err(libc::EPERM));
            let given = |owner| fchownat(libc::AT_FDCWD, ghost.as_ptr(), owner, OWNER, 0);
            assert_eq!(done(given(7)), Err(libc::EPERM));
            assert_eq!(done(given(OWNER)), Ok(0));
            let root = world.root.as_raw_fd();
            let below = |path: &CString| CString::new(&path.as_bytes()[1..]).unwrap();
            let link = |name: &str| {
                let (old, new) = (below(&ghost), below(&at(name)));
                done(linkat(root, old.as_ptr(), root, new.as_ptr(), 0))
            };
            assert_eq!(
                link("preload"),
                Err(libc::EEXIST),
                "CRIU takes its own name then"
            );
            assert_eq!(link("preload.cr_link"), Ok(0));
            assert_eq!(done(unlink(at("preload.cr_link").as_ptr())), Ok(0));
            assert_eq!(done(unlink(ghost.as_ptr())), Ok(0));
            assert_eq!(done(unlink(at("kept").as_ptr())), refused);
            assert_eq!(
                done(mkdirat(libc::AT_FDCWD, at("d").as_ptr(), 0o777)),
                refused
            );
        }
        let cut = world.open("root/kept", libc::O_RDONLY | libc::O_TRUNC);
        assert_eq!(cut.err(), Some(libc::EACCES));
        assert_eq!(fs::read(kept).unwrap(), b"root/kept");
        // SAFETY: paths that end with zeros.
        let of_proc = |path: CString| unsafe {
            done(openat64(
                world.root.as_raw_fd(),
                path.as_ptr(),
                libc::O_RDONLY,
                0,
            ))
        };
        let of_process =
            |pid: u32, file: &str| of_proc(CString::new(format!("proc/{pid}/{file}")).unwrap());
        assert!(of_process(std::process::id(), "environ").is_ok());
        assert!(of_process(std::process::id(), "pagemap").is_err());
        assert!(of_process(1, "environ").is_err());
        assert!(of_proc(c"proc/kcore".into()).is_err());
        // Nor is anything opened that the user could not have, wherever it lies.
        world.file("root/private", 0, 0o600);
        assert!(world.open("root/private", libc::O_RDONLY).is_err());
        assert!(world.open("root/kept", libc::O_RDWR).is_err());
        fs::remove_file(world.dir.join("root/private")).unwrap();
        let left: Vec<_> = fs::read_dir(world.dir.join("root")).unwrap().collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    /// A name of CRIU's in the user's own directory may have become a link since CRIU made the file.
    #[test]
    fn what_a_momentary_name_leads_to_is_not_changed() {
        let world = world("momentary");
        world.file("secret/key", 0, 0o600);
        world.file("user/of-root.cr.2.ghost", 0, 0o600);
        link(
            world.dir.join("secret/key"),
            world.dir.join("user/x.cr.1.ghost"),
        )
        .unwrap();
        for mode in [0o755, 0o555] {
            fs::set_permissions(world.dir.join("user"), Permissions::from_mode(mode)).unwrap();
            for name in ["user/x.cr.1.ghost", "user/of-root.cr.2.ghost"] {
                let path = c(&world.dir.join(name));
                // SAFETY: a path that ends with a zero.
                unsafe {
                    assert!(done(chmod(path.as_ptr(), 0o666)).is_err(), "{name}");
                    let given = fchownat(libc::AT_FDCWD, path.as_ptr(), OWNER, OWNER, 0);
                    assert!(done(given).is_err(), "{name}");
                }
            }
        }
        for name in ["secret/key", "user/of-root.cr.2.ghost"] {
            let meta = fs::metadata(world.dir.join(name)).unwrap();
            assert_eq!((meta.uid(), meta.mode() & 0o7777), (0, 0o600), "{name}");
        }
    }

    #[test]
    fn what_criu_keeps_for_itself_it_neither_gives_away_nor_has_the_job_name() {
        let place = |path| Place {
            directory: libc::AT_FDCWD,
            path,
        };
        for own in [c"/run/criu.kdat", c"/run/criu.kdat.tmp"] {
            // Kept for three calls; by all others it is the job's.
            assert!(place(own).is_kept() && place(own).is_of_job());
        }
        for other in [
            c"/run/criu.kdat.cr.1.ghost",
            c"/run/criu.kdat/x",
            c"run/criu.kdat",
        ] {
            assert!(!place(other).is_kept(), "{other:?}");
        }
        assert!(place(c"/tmp/.criu.move_mount_set_group.xvZ3Lp").is_tried());
        for other in [c"/tmp/.criu.x/y", c"/tmp/criu.x", c"tmp/.criu.x"] {
            assert!(!place(other).is_tried(), "{other:?}");
        }
    }

    /// `protected_hardlinks` keeps the user from that.
    #[test]
    fn files_of_others_get_a_name_beside_the_one_that_they_have() {
        let world = world("beside");
        world.file("user/link_remap.3", 0, 0o644);
        world.file("user/program.cr.1.ghost", 0, 0o4755);
        let root = world.root.as_raw_fd();
        let below = |name: &str| c(world.dir.join(name).strip_prefix("/").unwrap());
        let link = |from: &str, to: &str| {
            let (from, to) = (below(from), below(to));
            // SAFETY: paths that end with zeros.
            done(unsafe { linkat(root, from.as_ptr(), root, to.as_ptr(), 0) })
        };
        assert_eq!(link("user/link_remap.3", "user/log"), Ok(0));
        assert!(link("user/link_remap.3", "root/log").is_err());
        if fs::read("/proc/sys/fs/protected_hardlinks").unwrap() != b"0\n" {
            assert_eq!(
                link("user/program.cr.1.ghost", "user/program"),
                Err(libc::EPERM)
            );
        }
    }

    #[test]
    fn without_a_descriptor_left_nothing_is_taken_for_criu_s_own() {
        let world = world("descriptors");
        link(world.dir.join("secret"), world.dir.join("user/swapped")).unwrap();
        let path = c(world.dir.join("user/swapped/d").strip_prefix("/").unwrap());
        let last = (fs::File::open("/").unwrap().as_raw_fd() + 1) as u64;
        let none = libc::rlimit64 {
            rlim_cur: 0,
            rlim_max: 4096.max(last),
        };
        let mut before = none;
        // SAFETY: addresses of limits, and a path that ends with a zero.
        let made = unsafe {
            libc::getrlimit64(libc::RLIMIT_NOFILE, &raw mut before);
            libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const none);
            let made = done(mkdirat(world.root.as_raw_fd(), path.as_ptr(), 0o777));
            libc::setrlimit64(libc::RLIMIT_NOFILE, &raw const before);
            made
        };
        assert_eq!(made, Err(libc::EACCES));
    }

    #[test]
    fn pipes_and_programs_of_others_are_opened_as_criu_opens_them() {
        let world = world("kinds");
        let pipe = c(&world.dir.join("user/pipe"));
        // SAFETY: a path that ends with a zero.
        unsafe { assert_eq!(libc::mkfifo(pipe.as_ptr(), 0o644), 0) };
        assert!(world.open("user/pipe", libc::O_RDWR).is_ok());
        fs::set_permissions(world.dir.join("user/pipe"), Permissions::from_mode(0o600)).unwrap();
        assert!(world.open("user/pipe", libc::O_RDWR).is_err());
        world.file("user/program", 0, 0o711);
        assert!(world.open("user/program", libc::O_RDONLY).is_ok());
        // Its owner could open those as well.
        world.file("user/own", OWNER, 0o644);
        for mode in [0o000, 0o555] {
            fs::set_permissions(world.dir.join("user"), Permissions::from_mode(mode)).unwrap();
            assert!(world.open("user/own", libc::O_RDWR).is_ok(), "{mode:o}");
            // What is made by a name is not: the name might be a link when its mode is changed.
            assert!(world.make("user/own.cr.7.ghost").is_err(), "{mode:o}");
        }
        fs::set_permissions(world.dir.join("user"), Permissions::from_mode(0o755)).unwrap();
        assert!(world.open("user/program", libc::O_RDWR).is_err());
        // The user's own as the mode of its own says, and what else forbids it stays forbidden.
        link("/proc/self", world.dir.join("user/process")).unwrap();
        assert!(world.open("user/process/mem", libc::O_RDWR).is_err());
    }

    #[test]
    fn what_is_watched_and_where_sockets_are_made_the_user_may_read() {
        let world = world("watch");
        link(world.dir.join("secret"), world.dir.join("user/swapped")).unwrap();
        let at = |name: &str| c(&world.dir.join(name));
        let before = std::env::current_dir().unwrap();
        // SAFETY: paths that end with zeros; the times are none, which is now.
        unsafe {
            assert_eq!(done(chdir(at("user/swapped").as_ptr())), Err(libc::EACCES));
            assert_eq!(done(chdir(at("user").as_ptr())), Ok(0));
            std::env::set_current_dir(before).unwrap();
            let watch = libc::inotify_init1(libc::IN_CLOEXEC);
            let add =
                |name: &str| done(inotify_add_watch(watch, at(name).as_ptr(), libc::IN_CREATE));
            assert_eq!(add("secret"), Err(libc::EACCES));
            assert!(add("user").is_ok() && add("root").is_ok());
            fs::set_permissions(world.dir.join("user"), Permissions::from_mode(0o300)).unwrap();
            assert!(add("user").is_ok(), "its owner could change that");
            libc::close(watch);
            fs::set_permissions(world.dir.join("user"), Permissions::from_mode(0o755)).unwrap();
            world.file("secret/key", 0, 0o600);
            world.file("user/ghost", OWNER, 0o600);
            let touch = |name: &str| done(lutimes(at(name).as_ptr(), core::ptr::null()));
            assert_eq!(touch("user/swapped/key"), Err(libc::EACCES));
            assert_eq!(touch("user/ghost"), Ok(0));
            let times = [libc::timeval {
                tv_sec: 7,
                tv_usec: 5,
            }; 2];
            assert_eq!(
                done(lutimes(at("user/ghost").as_ptr(), &raw const times)),
                Ok(0)
            );
            let meta = fs::metadata(world.dir.join("user/ghost")).unwrap();
            assert_eq!((meta.mtime(), meta.mtime_nsec()), (7, 5000));
            // Only root watches a whole mount.
            let all = libc::fanotify_init(libc::FAN_CLASS_NOTIF, libc::O_RDONLY as u32);
            assert!(all >= 0);
            let (flags, mask) = (libc::FAN_MARK_ADD | libc::FAN_MARK_MOUNT, libc::FAN_OPEN);
            let (here, path) = (libc::AT_FDCWD, at("user"));
            assert_eq!(
                libc::fanotify_mark(all, flags, mask, here, path.as_ptr()),
                0
            );
            let mark = fanotify_mark(all, flags, mask, here, path.as_ptr());
            assert_eq!(done(mark), Err(libc::EPERM));
            libc::close(all);
        }
    }

    #[test]
    fn who_connects_to_a_socket_of_the_job_sees_its_user() {
        let world = world("peers");
        // SAFETY: a struct of numbers may be all zeros; addresses and their sizes.
        unsafe {
            let mut pair = [-1; 2];
            assert_eq!(
                socketpair(libc::AF_UNIX, libc::SOCK_STREAM, 0, &raw mut pair),
                0
            );
            assert_eq!(user_of(pair[0]), OWNER);
            let path = world.dir.join("user/socket");
            let listener = UnixListener::bind(&path).unwrap();
            fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
            assert_eq!(listen(listener.as_raw_fd(), 5), 0);
            let client = std::os::unix::net::UnixStream::connect(&path).unwrap();
            assert_eq!(user_of(client.as_raw_fd()), OWNER);
            let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            assert_eq!(listen(tcp.as_raw_fd(), 5), 0);
            libc::close(pair[0]);
            libc::close(pair[1]);
        }
        assert!(world.is_root_still());
    }

    /// Who is at the other end of a socket.
    fn user_of(socket: c_int) -> u32 {
        // SAFETY: a struct of numbers may be all zeros, and the kernel fills it.
        unsafe {
            let mut who: libc::ucred = core::mem::zeroed();
            let mut size = size_of::<libc::ucred>() as u32;
            let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
            let got = libc::getsockopt(socket, level, name, (&raw mut who).cast(), &raw mut size);
            assert_eq!(got, 0);
            who.uid
        }
    }

    /// A process may have chosen to keep its capabilities when its user changes.
    #[test]
    fn capabilities_go_with_the_user_whatever_the_process_has_chosen() {
        let world = world("bits");
        world.file("secret/key", 0, 0o600);
        link(world.dir.join("secret"), world.dir.join("user/swapped")).unwrap();
        const NO_SETUID_FIXUP: libc::c_ulong = 1 << 2;
        // SAFETY: numbers only.
        let set = unsafe { libc::prctl(libc::PR_SET_SECUREBITS, NO_SETUID_FIXUP, 0, 0, 0) };
        assert_eq!(set, 0);
        assert_eq!(
            world.open("user/swapped/key", libc::O_RDONLY).err(),
            Some(libc::EACCES)
        );
        assert!(world.is_root_still());
    }

    #[test]
    fn sockets_are_bound_and_connected_to_as_the_user() {
        let world = world("sockets");
        link(world.dir.join("secret"), world.dir.join("user/swapped")).unwrap();
        let open = UnixListener::bind(world.dir.join("secret/daemon")).unwrap();
        fs::set_permissions(
            world.dir.join("secret/daemon"),
            Permissions::from_mode(0o666),
        )
        .unwrap();
        let shared = UnixListener::bind(world.dir.join("root/daemon")).unwrap();
        fs::set_permissions(world.dir.join("root/daemon"), Permissions::from_mode(0o666)).unwrap();
        let with =
            |name: &str, call: unsafe extern "C" fn(c_int, *const libc::sockaddr, u32) -> c_int| {
                // SAFETY: a struct of numbers may be all zeros; its address and size are what the call takes.
                unsafe {
                    let socket =
                        OwnedFd::from_raw_fd(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0));
                    let mut address: libc::sockaddr_un = core::mem::zeroed();
                    address.sun_family = libc::AF_UNIX as u16;
                    let path = c(&world.dir.join(name));
                    for (place, &byte) in address.sun_path.iter_mut().zip(path.as_bytes()) {
                        *place = byte as c_char;
                    }
                    let length = size_of::<libc::sockaddr_un>() as u32;
                    let result = call(socket.as_raw_fd(), (&raw const address).cast(), length);
                    done(result).map(|_| socket)
                }
            };
        assert_eq!(with("user/swapped/socket", bind).err(), Some(libc::EACCES));
        assert_eq!(with("root/socket", bind).err(), Some(libc::EACCES));
        assert!(with("user/socket", bind).is_ok());
        assert_eq!(
            fs::metadata(world.dir.join("user/socket")).unwrap().uid(),
            OWNER
        );
        assert_eq!(
            with("user/swapped/daemon", connect).err(),
            Some(libc::EACCES)
        );
        // A daemon sees the user and not root.
        let connected = with("root/daemon", connect).unwrap();
        let (accepted, _) = shared.accept().unwrap();
        assert_eq!(user_of(accepted.as_raw_fd()), OWNER);
        drop((connected, open));
        assert!(world.is_root_still());
    }

    #[test]
    fn a_user_is_read_whole_or_not_at_all() {
        let ids =
            ids_in(b"1000:1001:44:1001").map(|ids| (ids.uid, ids.gid, ids.count, ids.groups[0]));
        assert_eq!(ids, Some((1000, 1001, 2, 44)));
        for wrong in [
            "",
            "1000",
            "1000:",
            "a:1",
            "1:2:",
            "1:2:x",
            "unlimited:1",
            "4294967296:1",
        ] {
            assert!(ids_in(wrong.as_bytes()).is_none(), "{wrong}");
        }
        let most = ["1"; GROUPS + 2].join(":");
        assert!(ids_in(most.as_bytes()).is_some());
        assert!(ids_in(format!("{most}:1").as_bytes()).is_none());
    }

    #[test]
    fn a_user_that_is_not_understood_has_nothing_opened() {
        let world = world("garbled");
        world.file("user/log", OWNER, 0o644);
        // SAFETY: a test is a process of its own, and this its only thread.
        unsafe { std::env::set_var("PHOS_JOB_USER", "nobody") };
        assert_eq!(
            world.open("user/log", libc::O_RDONLY).err(),
            Some(libc::EINVAL)
        );
    }
}
