//! Paths of the job, got at as the job's user.
//!
//! CRIU is root, and brings files, sockets and directories of the job back by their paths. Whoever may change a directory on such a path
//! could have it lead to what is root's alone, in the moment after the agent looked. Where the agent says in [`USER`] whose the job is, the
//! calls that CRIU makes with the job's paths are made with that user's rights: what it gets in this way, the user could have got itself.
//!
//! ```text
//!  openat(root, "work/loss.log") ──▶ as the user ──▶ done
//!                                        │ refused
//!                                        ├─ the user's own file, made read-only, say: opened by a descriptor of it
//!                                        ├─ no directory on the way can be changed by the user: as root, by descriptors
//!                                        └─ else the refusal stays
//! ```
//!
//! # Rules
//!
//! * A path is the job's if it is relative to the root directory, which is how CRIU opens files, or if the call makes, binds, connects to,
//!   links, renames, removes, gives away or changes the mode of something by a name that is not relative to a directory of CRIU's.
//!   Everything else (`/proc`, the image) is CRIU's own.
//! * The effective user is changed, not that of the file system alone: who is connected to sees who connects.
//! * They are the ids of this thread: the C library's functions would change those of all threads, and they take locks.
//! * A value of [`USER`] that is not understood refuses all such calls. Ids that cannot be had back end the process.

use core::ffi::{CStr, c_char, c_int, c_long};

use super::{kernel, set_errno};

/// The variable with the job's user: `UID:GID` and its supplementary groups, all separated by colons.
const USER: &CStr = c"PHOS_JOB_USER";

/// The most supplementary groups of a user, or of CRIU.
const GROUPS: usize = 1024;

/// Whose rights calls are made with.
#[derive(Clone, Copy)]
struct Ids {
    uid: u32,
    gid: u32,
    groups: [u32; GROUPS],
    count: usize,
}

/// Reads what stands in [`USER`].
fn ids_in(text: &[u8]) -> Option<Ids> {
    let mut numbers = text
        .split(|&byte| byte == b':')
        .map(|word| u32::try_from(super::number(word).filter(|_| !word.is_empty())?).ok());
    let mut ids = Ids {
        uid: numbers.next()??,
        gid: numbers.next()??,
        groups: [0; GROUPS],
        count: 0,
    };
    for group in numbers {
        *ids.groups.get_mut(ids.count)? = group?;
        ids.count = ids.count.checked_add(1)?;
    }
    Some(ids)
}

/// The negative of an error, as the kernel gives it.
const fn refusal(errno: c_int) -> c_long {
    -(errno as c_long)
}

fn is_refused(result: c_long) -> bool {
    result == refusal(libc::EACCES) || result == refusal(libc::EPERM)
}

/// Whose the job is. `Ok(None)`: that does not matter here.
fn job() -> Result<Option<Ids>, c_long> {
    // SAFETY: a name that ends with a zero; what it gives does too, and nobody changes the environment of CRIU.
    let text = unsafe {
        let text = libc::getenv(USER.as_ptr());
        if text.is_null() {
            return Ok(None);
        }
        CStr::from_ptr(text).to_bytes()
    };
    match ids_in(text) {
        Some(ids) => Ok(Some(ids)),
        None => Err(refusal(libc::EINVAL)),
    }
}

/// A call with numbers and addresses.
///
/// # Safety
/// As of the system call.
unsafe fn call<const N: usize>(number: c_long, arguments: [c_long; N]) -> c_long {
    let mut all = [0; 6];
    for (place, argument) in all.iter_mut().zip(arguments) {
        *place = argument;
    }
    // SAFETY: what the caller gave.
    unsafe { kernel(number, all) }
}

impl Ids {
    /// Those that this thread works with.
    fn now() -> Result<Self, c_long> {
        let mut groups = [0; GROUPS];
        // SAFETY: calls without addresses, and one that writes no more groups than there is room for.
        let (uid, gid, count) = unsafe {
            (
                call(libc::SYS_geteuid, []),
                call(libc::SYS_getegid, []),
                call(
                    libc::SYS_getgroups,
                    [GROUPS as c_long, groups.as_mut_ptr() as c_long],
                ),
            )
        };
        let (Ok(uid), Ok(gid), Ok(count)) = (
            u32::try_from(uid),
            u32::try_from(gid),
            usize::try_from(count),
        ) else {
            return Err(refusal(libc::EINVAL));
        };
        Ok(Self {
            uid,
            gid,
            groups,
            count,
        })
    }

    fn set_groups(&self) -> c_long {
        // SAFETY: so many groups are there.
        unsafe {
            call(
                libc::SYS_setgroups,
                [self.count as c_long, self.groups.as_ptr() as c_long],
            )
        }
    }

    fn set_group(&self) -> c_long {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_setresgid, [-1, self.gid.into(), -1]) }
    }

    fn set_user(&self) -> c_long {
        // SAFETY: numbers only.
        unsafe { call(libc::SYS_setresuid, [-1, self.uid.into(), -1]) }
    }

    /// Works with these ids from now on. `Err`: with those of before, or with some of both.
    fn begin(&self) -> Result<(), c_long> {
        // Groups while this is root, who alone may.
        [Self::set_groups, Self::set_group, Self::set_user]
            .into_iter()
            .map(|set| set(self))
            .find(|&result| result < 0)
            .map_or(Ok(()), Err)
    }

    /// Works with them again, after others.
    fn resume(&self) {
        let all = [Self::set_user, Self::set_group, Self::set_groups];
        if all.into_iter().any(|set| set(self) < 0) {
            // Nothing that CRIU does as another is what it meant.
            // SAFETY: takes nothing, does not return.
            unsafe { libc::abort() }
        }
    }

    /// Does something with the rights of these, and gives its result.
    fn run(&self, task: impl FnOnce() -> c_long) -> c_long {
        let own = match Self::now() {
            Ok(own) => own,
            Err(refused) => return refused,
        };
        let result = match self.begin() {
            Ok(()) => task(),
            Err(refused) => refused,
        };
        own.resume();
        result
    }

    /// Whether nothing in a directory can be put in the place of something else by this user. Group bits are the most that lists of
    /// rights give to anybody.
    fn cannot_change(&self, directory: &libc::stat, is_last: bool) -> bool {
        let by_others = directory.st_mode & 0o022 != 0;
        let only_own = directory.st_mode & libc::S_ISVTX != 0 && !is_last;
        directory.st_uid != self.uid && (!by_others || only_own)
    }
}

/// A descriptor that is closed in the end.
struct Descriptor(c_int);

impl Descriptor {
    fn of(result: c_long) -> Option<Self> {
        c_int::try_from(result).ok().filter(|&fd| fd >= 0).map(Self)
    }

    fn stat(&self) -> Option<libc::stat> {
        stat(self.0)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it was opened here, and nobody else knows it.
        unsafe { call(libc::SYS_close, [self.0.into()]) };
    }
}

fn stat(file: c_int) -> Option<libc::stat> {
    // SAFETY: a struct of numbers may be all zeros; the kernel fills it.
    let (found, done) = unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        let done = libc::fstat(file, &raw mut found);
        (found, done)
    };
    (done == 0).then_some(found)
}

/// # Safety
/// `path` is the address of a path that ends with a zero.
unsafe fn open_at(directory: c_int, path: *const c_char, flags: c_int, mode: c_long) -> c_long {
    let arguments = [directory.into(), path as c_long, flags.into(), mode];
    // SAFETY: by the caller's word.
    unsafe { call(libc::SYS_openat, arguments) }
}

const WALK: c_int = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;

fn root() -> Option<Descriptor> {
    // SAFETY: a path that ends with a zero.
    Descriptor::of(unsafe { open_at(libc::AT_FDCWD, c"/".as_ptr(), WALK | libc::O_DIRECTORY, 0) })
}

fn is_root(directory: c_int) -> bool {
    let (Some(found), Some(root)) = (stat(directory), root().and_then(|root| root.stat())) else {
        return false;
    };
    (found.st_dev, found.st_ino) == (root.st_dev, root.st_ino)
}

/// A path and what it is relative to.
#[derive(Clone, Copy)]
struct Place<'a> {
    directory: c_int,
    path: &'a CStr,
}

impl<'a> Place<'a> {
    /// # Safety
    /// `path` is the address of a path that ends with a zero and stays.
    unsafe fn new(directory: c_int, path: *const c_char) -> Option<Self> {
        if path.is_null() {
            return None;
        }
        // SAFETY: by the caller's word.
        let path = unsafe { CStr::from_ptr(path) };
        Some(Self { directory, path })
    }

    fn is_absolute(&self) -> bool {
        self.path.to_bytes().first() == Some(&b'/')
    }

    /// Whether CRIU can mean a file of the job.
    fn is_of_job(&self) -> bool {
        self.is_absolute() || self.directory == libc::AT_FDCWD || self.is_under_root()
    }

    fn is_under_root(&self) -> bool {
        !self.is_absolute()
            && !self.path.is_empty()
            && self.directory != libc::AT_FDCWD
            && is_root(self.directory)
    }

    /// The directory that it is in and its name there, if nothing on the way can be changed by this user or is a link.
    fn firm(&self, user: &Ids) -> Option<(Descriptor, &'a CStr)> {
        if !(self.is_absolute() || self.is_under_root()) {
            return None;
        }
        let bytes = self.path.to_bytes_with_nul();
        let before = bytes.iter().rposition(|&byte| byte == b'/');
        let (above, name) = match before {
            Some(slash) => (bytes.get(..slash)?, bytes.get(slash.checked_add(1)?..)?),
            None => (&[][..], bytes),
        };
        let name = CStr::from_bytes_with_nul(name).ok()?;
        if matches!(name.to_bytes(), b"" | b"." | b"..") {
            return None;
        }
        let mut at = root()?;
        let parts = above.split(|&byte| byte == b'/');
        for part in parts.filter(|part| !matches!(*part, b"" | b".")) {
            if part == b".." || !user.cannot_change(&at.stat()?, false) {
                return None;
            }
            let mut room = [0_u8; 256];
            // The last byte stays a zero.
            room.get_mut(..part.len()).filter(|_| part.len() < 256)?;
            for (place, &byte) in room.iter_mut().zip(part) {
                *place = byte;
            }
            // SAFETY: a path that ends with a zero.
            let next = unsafe { open_at(at.0, room.as_ptr().cast(), WALK | libc::O_DIRECTORY, 0) };
            at = Descriptor::of(next)?;
        }
        user.cannot_change(&at.stat()?, true).then_some((at, name))
    }

    /// Does something with the user's rights, or as root where that makes no difference.
    fn run(&self, user: &Ids, task: impl Fn(c_int, *const c_char) -> c_long) -> c_long {
        let result = user.run(|| task(self.directory, self.path.as_ptr()));
        if !is_refused(result) {
            return result;
        }
        match self.firm(user) {
            Some((above, name)) => task(above.0, name.as_ptr()),
            None => result,
        }
    }

    /// What is there, if it is the user's own and can be reached by the user.
    fn own(&self, user: &Ids) -> Option<Descriptor> {
        // SAFETY: the path ends with a zero.
        let found = user.run(|| unsafe { open_at(self.directory, self.path.as_ptr(), WALK, 0) });
        let found = Descriptor::of(found)?;
        let stat = found.stat()?;
        let is_link = stat.st_mode & libc::S_IFMT == libc::S_IFLNK;
        (stat.st_uid == user.uid && !is_link).then_some(found)
    }

    fn open(&self, user: &Ids, flags: c_int, mode: c_long) -> c_long {
        // SAFETY: the path ends with a zero.
        let result =
            user.run(|| unsafe { open_at(self.directory, self.path.as_ptr(), flags, mode) });
        if !is_refused(result) {
            return result;
        }
        if let Some(own) = self.own(user) {
            return own.open(flags);
        }
        match self.firm(user) {
            // SAFETY: as above.
            Some((above, name)) => unsafe {
                open_at(above.0, name.as_ptr(), flags | libc::O_NOFOLLOW, mode)
            },
            None => result,
        }
    }
}

impl Descriptor {
    /// Opens what it leads to.
    fn open(&self, flags: c_int) -> c_long {
        let mut path = [0_u8; 40];
        // SAFETY: `snprintf` writes no more than it is told, and ends it with a zero; one number for one place in the format.
        unsafe {
            libc::snprintf(
                path.as_mut_ptr().cast(),
                path.len(),
                c"/proc/self/fd/%d".as_ptr(),
                self.0,
            );
            let flags = flags & !(libc::O_NOFOLLOW | libc::O_CREAT | libc::O_EXCL);
            open_at(libc::AT_FDCWD, path.as_ptr().cast(), flags, 0)
        }
    }
}

/// The C library's form of a result.
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
    task: impl Fn(c_int, *const c_char) -> c_long,
) -> c_int {
    // SAFETY: by the caller's word.
    let place = unsafe { Place::new(directory, path) }.filter(Place::is_of_job);
    answer(match (job(), place) {
        (Err(refused), Some(_)) => refused,
        (Ok(Some(user)), Some(place)) => place.run(&user, task),
        _ => task(directory, path),
    })
}

/// Those that make something, and those that keep something by its path alone.
const MAKES: c_int = libc::O_CREAT | libc::O_EXCL;

/// # Safety
/// As [`by_path`].
unsafe fn open(directory: c_int, path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: by the caller's word.
    let place = unsafe { Place::new(directory, path) }.filter(|place| {
        // By other paths CRIU opens what is its own.
        let meant = flags & MAKES == MAKES || flags & libc::O_PATH != 0;
        place.is_under_root() || place.is_of_job() && meant
    });
    answer(match (job(), place) {
        (Err(refused), Some(_)) => refused,
        (Ok(Some(user)), Some(place)) => place.open(&user, flags, mode),
        // SAFETY: as above.
        _ => unsafe { open_at(directory, path, flags, mode) },
    })
}

/// In place of the C library's, as are all that follow: with the rights of [`USER`] where a path is the job's.
///
/// # Safety
/// As of the system call.
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
/// As of the system call.
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
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn open64(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { open(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(export_name = "open"))]
pub unsafe extern "C" fn open32(path: *const c_char, flags: c_int, mode: c_long) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { open(libc::AT_FDCWD, path, flags, mode) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mknod(
    path: *const c_char,
    mode: libc::mode_t,
    device: libc::dev_t,
) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [
            directory.into(),
            path as c_long,
            mode.into(),
            device.cast_signed(),
        ];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_mknodat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(libc::AT_FDCWD, path, task) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mkdirat(
    directory: c_int,
    path: *const c_char,
    mode: libc::mode_t,
) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        // SAFETY: what the caller gave.
        unsafe {
            call(
                libc::SYS_mkdirat,
                [directory.into(), path as c_long, mode.into()],
            )
        }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, task) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn symlink(target: *const c_char, path: *const c_char) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [target as c_long, directory.into(), path as c_long];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_symlinkat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(libc::AT_FDCWD, path, task) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unlinkat(directory: c_int, path: *const c_char, flags: c_int) -> c_int {
    let task = |directory: c_int, path: *const c_char| {
        let arguments = [directory.into(), path as c_long, flags.into()];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_unlinkat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, task) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn unlink(path: *const c_char) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { unlinkat(libc::AT_FDCWD, path, 0) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn rmdir(path: *const c_char) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { unlinkat(libc::AT_FDCWD, path, libc::AT_REMOVEDIR) }
}

/// Does something by two paths.
///
/// # Safety
/// As [`by_path`].
unsafe fn by_paths(
    from: (c_int, *const c_char),
    to: (c_int, *const c_char),
    task: impl Fn((c_int, *const c_char), (c_int, *const c_char)) -> c_long,
) -> c_int {
    // SAFETY: by the caller's word.
    let places = unsafe { (Place::new(from.0, from.1), Place::new(to.0, to.1)) };
    let (Some(old), Some(new)) = places else {
        return answer(task(from, to));
    };
    if !(old.is_of_job() || new.is_of_job()) {
        return answer(task(from, to));
    }
    let user = match job() {
        Ok(Some(user)) => user,
        Ok(None) => return answer(task(from, to)),
        Err(refused) => return answer(refused),
    };
    let result = user.run(|| task(from, to));
    if is_refused(result)
        && let Some((old, old_name)) = old.firm(&user)
        && let Some((new, new_name)) = new.firm(&user)
    {
        return answer(task((old.0, old_name.as_ptr()), (new.0, new_name.as_ptr())));
    }
    answer(result)
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn linkat(
    old: c_int,
    old_path: *const c_char,
    new: c_int,
    new_path: *const c_char,
    flags: c_int,
) -> c_int {
    let task = |from: (c_int, *const c_char), to: (c_int, *const c_char)| {
        let arguments = [
            from.0.into(),
            from.1 as c_long,
            to.0.into(),
            to.1 as c_long,
            flags.into(),
        ];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_linkat, arguments) }
    };
    // SAFETY: what the caller gave.
    unsafe { by_paths((old, old_path), (new, new_path), task) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn rename(old: *const c_char, new: *const c_char) -> c_int {
    let task = |from: (c_int, *const c_char), to: (c_int, *const c_char)| {
        let arguments = [
            from.0.into(),
            from.1 as c_long,
            to.0.into(),
            to.1 as c_long,
            0,
        ];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_renameat2, arguments) }
    };
    let here = libc::AT_FDCWD;
    // SAFETY: what the caller gave.
    unsafe { by_paths((here, old), (here, new), task) }
}

/// The system call has no flags before Linux 6.6, and CRIU gives none.
///
/// # Safety
/// As of the system call.
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
        // SAFETY: what the caller gave.
        unsafe {
            call(
                libc::SYS_fchmodat,
                [directory.into(), path as c_long, mode.into()],
            )
        }
    };
    // SAFETY: what the caller gave.
    unsafe { by_path(directory, path, task) }
}

/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn chmod(path: *const c_char, mode: libc::mode_t) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { fchmodat(libc::AT_FDCWD, path, mode, 0) }
}

/// What was just made as the user's and was another's is given away through a descriptor.
///
/// # Safety
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn fchownat(
    directory: c_int,
    path: *const c_char,
    owner: libc::uid_t,
    group: libc::gid_t,
    flags: c_int,
) -> c_int {
    let change = |directory: c_int, path: *const c_char, flags: c_int| {
        let arguments = [
            directory.into(),
            path as c_long,
            owner.into(),
            group.into(),
            flags.into(),
        ];
        // SAFETY: what the caller gave.
        unsafe { call(libc::SYS_fchownat, arguments) }
    };
    // SAFETY: what the caller gave.
    let place = unsafe { Place::new(directory, path) }.filter(Place::is_of_job);
    answer(match (job(), place) {
        (Err(refused), Some(_)) => refused,
        (Ok(Some(user)), Some(place)) => {
            let result = place.run(&user, |directory, path| change(directory, path, flags));
            match is_refused(result).then(|| place.own(&user)).flatten() {
                Some(own) => own.give_away(&change).unwrap_or(result),
                None => result,
            }
        }
        _ => change(directory, path, flags),
    })
}

impl Descriptor {
    /// Gives a file to somebody else, if it is nothing that makes anybody more than they are.
    fn give_away(&self, change: &impl Fn(c_int, *const c_char, c_int) -> c_long) -> Option<c_long> {
        const SET_IDS: libc::mode_t = libc::S_ISUID | libc::S_ISGID;
        let stat = self.stat()?;
        // By its other names it may be something else.
        let is_fresh = stat.st_nlink == 1 && stat.st_mode & SET_IDS == 0;
        is_fresh.then(|| change(self.0, c"".as_ptr(), libc::AT_EMPTY_PATH))
    }
}

/// Whether an address is the path of a socket.
///
/// # Safety
/// `address` is an address of so many bytes.
unsafe fn is_path(address: *const libc::sockaddr, length: libc::socklen_t) -> bool {
    let family = size_of::<libc::sa_family_t>();
    let has_name = usize::try_from(length).is_ok_and(|length| length > family);
    // SAFETY: two bytes and one more by the caller's word.
    has_name
        && unsafe {
            let kind = address.cast::<libc::sa_family_t>().read_unaligned();
            c_int::from(kind) == libc::AF_UNIX && address.cast::<u8>().add(family).read() != 0
        }
}

/// # Safety
/// As of the system call.
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
    let is_path = !address.is_null() && unsafe { is_path(address, length) };
    answer(match job() {
        Err(refused) if is_path => refused,
        Ok(Some(user)) if is_path => user.run(task),
        _ => task(),
    })
}

/// # Safety
/// As of the system call.
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
/// As of the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn connect(
    socket: c_int,
    address: *const libc::sockaddr,
    length: libc::socklen_t,
) -> c_int {
    // SAFETY: what the caller gave.
    unsafe { by_address(libc::SYS_connect, socket, address, length) }
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
    fn what_was_made_is_given_to_whom_it_was() {
        let world = world("give");
        let give = |name: &str| {
            let path = c(&world.dir.join(name));
            // SAFETY: a path that ends with a zero.
            done(unsafe {
                fchownat(
                    libc::AT_FDCWD,
                    path.as_ptr(),
                    0,
                    0,
                    libc::AT_SYMLINK_NOFOLLOW,
                )
            })
        };
        world.file("user/ghost", OWNER, 0o644);
        assert_eq!(give("user/ghost"), Ok(0));
        assert_eq!(fs::metadata(world.dir.join("user/ghost")).unwrap().uid(), 0);
        world.file("user/program", OWNER, 0o4755);
        assert_eq!(give("user/program"), Err(libc::EPERM));
        fs::hard_link(
            world.file("user/one", OWNER, 0o644),
            world.dir.join("user/two"),
        )
        .unwrap();
        assert_eq!(give("user/one"), Err(libc::EPERM));
        world.file("user/another's", 7, 0o644);
        assert_eq!(give("user/another's"), Err(libc::EPERM));
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
        // SAFETY: a struct of numbers may be all zeros, and the kernel fills it.
        let who = unsafe {
            let mut who: libc::ucred = core::mem::zeroed();
            let mut size = size_of::<libc::ucred>() as u32;
            let (level, name) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
            let got = libc::getsockopt(
                accepted.as_raw_fd(),
                level,
                name,
                (&raw mut who).cast(),
                &raw mut size,
            );
            assert_eq!(got, 0);
            who
        };
        assert_eq!((who.uid, who.gid), (OWNER, OWNER));
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
