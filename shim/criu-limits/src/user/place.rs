//! Paths that CRIU uses: which of them are the job's, and how they are got at.
//!
//! ```text
//!  openat(root, "work/loss.log") ──▶ as the user ──▶ done
//!                                        │ refused
//!                                        ├─ what the job could have had all the same (its own file, made read-only since): opened by
//!                                        │  a descriptor of it
//!                                        ├─ no directory on the way can be changed by the user: as root, by descriptors, if it is
//!                                        │  opened, or is what CRIU makes for a moment under a name of its own
//!                                        └─ else the refusal stays
//! ```

use core::ffi::{CStr, c_char, c_int, c_long};

use super::ids::{Ids, call, refusal};

/// Those that make something.
pub(super) const MAKES: c_int = libc::O_CREAT | libc::O_EXCL;

/// Whoever runs such a file is somebody else, or in another group.
pub(super) const SET_IDS: libc::mode_t = libc::S_ISUID | libc::S_ISGID;

/// What is there and not what it leads to, to look at.
const WALK: c_int = libc::O_PATH | libc::O_CLOEXEC | libc::O_NOFOLLOW;

fn is_refused(result: c_long) -> bool {
    result == refusal(libc::EACCES) || result == refusal(libc::EPERM)
}

/// # Safety
/// `path` is the address of a path that ends with a zero.
pub(super) unsafe fn open_at(
    directory: c_int,
    path: *const c_char,
    flags: c_int,
    mode: c_long,
) -> c_long {
    let arguments = [directory.into(), path as c_long, flags.into(), mode];
    // SAFETY: by the caller's word.
    unsafe { call(libc::SYS_openat, arguments) }
}

/// A descriptor that is closed in the end.
pub(super) struct Descriptor(c_int);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: it was opened here, and nobody else knows it.
        unsafe { call(libc::SYS_close, [self.0.into()]) };
    }
}

impl Descriptor {
    pub(super) fn of(result: c_long) -> Option<Self> {
        c_int::try_from(result).ok().filter(|&fd| fd >= 0).map(Self)
    }

    pub(super) fn stat(&self) -> Option<libc::stat> {
        stat(self.0)
    }

    /// The path by which the kernel has what it leads to.
    fn path(&self) -> [u8; 40] {
        let mut path = [0_u8; 40];
        let format = c"/proc/self/fd/%d".as_ptr();
        // SAFETY: `snprintf` writes no more than it is told, and ends it with a zero; one number for one place in the format.
        unsafe { libc::snprintf(path.as_mut_ptr().cast(), path.len(), format, self.0) };
        path
    }

    /// Opens what it leads to.
    fn open(&self, flags: c_int) -> c_long {
        let flags = flags & !libc::O_NOFOLLOW;
        // SAFETY: the path ends with a zero.
        unsafe { open_at(libc::AT_FDCWD, self.path().as_ptr().cast(), flags, 0) }
    }

    /// Whether there may be more rights than its mode says.
    fn has_list_of_rights(&self) -> bool {
        let name = c"system.posix_acl_access".as_ptr();
        let path = self.path();
        let arguments = [path.as_ptr() as c_long, name as c_long, 0, 0];
        // SAFETY: a path and a name that end with zeros; nothing is written.
        let length = unsafe { call(libc::SYS_getxattr, arguments) };
        length != refusal(libc::ENODATA) && length != refusal(libc::EOPNOTSUPP)
    }

    /// Whether this user may have what it leads to in this way (`R_OK` and so on).
    fn is_for(&self, user: &Ids, access: c_int) -> bool {
        let flags = libc::AT_EACCESS | libc::AT_EMPTY_PATH;
        let path = c"".as_ptr() as c_long;
        let arguments = [self.0.into(), path, access.into(), flags.into()];
        // SAFETY: a path that ends with a zero.
        user.run(|| unsafe { call(libc::SYS_faccessat2, arguments) }) == 0
    }

    fn is_in_proc(&self) -> bool {
        // SAFETY: a struct of numbers may be all zeros; the kernel fills it.
        let (found, done) = unsafe {
            let mut found: libc::statfs = core::mem::zeroed();
            let arguments = [self.0.into(), (&raw mut found) as c_long];
            let done = call(libc::SYS_fstatfs, arguments);
            (found, done)
        };
        done != 0 || found.f_type == libc::PROC_SUPER_MAGIC
    }

    /// Whether nothing in a directory can be put in the place of something else by this user.
    fn is_kept_from(&self, user: &Ids, is_last: bool) -> bool {
        let Some(stat) = self.stat() else {
            return false;
        };
        let only_own = stat.st_mode & libc::S_ISVTX != 0 && !is_last;
        let by_all = stat.st_mode & 0o002 != 0;
        // With a list of rights these bits are the most that it gives to anybody.
        let by_group =
            stat.st_mode & 0o020 != 0 && (user.is_in(stat.st_gid) || self.has_list_of_rights());
        stat.st_uid != user.uid && (only_own || !(by_all || by_group))
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

fn root() -> Option<Descriptor> {
    let flags = WALK | libc::O_DIRECTORY;
    // SAFETY: a path that ends with a zero.
    Descriptor::of(unsafe { open_at(libc::AT_FDCWD, c"/".as_ptr(), flags, 0) })
}

/// Whether it is the root directory. What cannot be looked at counts as that, and so as the job's.
fn is_root(directory: c_int) -> bool {
    // Without a descriptor, of which there may be none left.
    // SAFETY: a struct of numbers may be all zeros; the kernel fills it. A path that ends with a zero.
    let (root, done) = unsafe {
        let mut root: libc::stat = core::mem::zeroed();
        let path = c"/".as_ptr() as c_long;
        let arguments = [libc::AT_FDCWD.into(), path, (&raw mut root) as c_long, 0];
        let done = call(libc::SYS_newfstatat, arguments);
        (root, done)
    };
    match stat(directory) {
        Some(found) if done == 0 => (found.st_dev, found.st_ino) == (root.st_dev, root.st_ino),
        _ => true,
    }
}

/// A path and what it is relative to.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) directory: c_int,
    pub(super) path: &'a CStr,
}

impl<'a> Place<'a> {
    /// # Safety
    /// `path` is the address of a path that ends with a zero and stays, or zero.
    pub(super) unsafe fn new(directory: c_int, path: *const c_char) -> Option<Self> {
        if path.is_null() {
            return None;
        }
        // SAFETY: by the caller's word.
        let path = unsafe { CStr::from_ptr(path) };
        Some(Self { directory, path })
    }

    pub(super) fn is_absolute(&self) -> bool {
        self.path.to_bytes().first() == Some(&b'/')
    }

    /// Where CRIU keeps what it knows of the kernel.
    fn is_kept(&self) -> bool {
        let bytes = self.path.to_bytes();
        bytes.starts_with(b"/run/criu.kdat") && !self.is_momentary() && !self.is_below_two()
    }

    /// A directory that CRIU made to try mounts on.
    pub(super) fn is_tried(&self) -> bool {
        self.path.to_bytes().starts_with(b"/tmp/.criu.") && !self.is_below_two()
    }

    /// Whether there are three names in an absolute path, or more.
    fn is_below_two(&self) -> bool {
        let slashes = self.path.to_bytes().iter().filter(|&&byte| byte == b'/');
        slashes.count() > 2
    }

    /// Whether CRIU can mean something of the job's by it.
    pub(super) fn is_of_job(&self) -> bool {
        let is_named = self.is_absolute() || self.directory == libc::AT_FDCWD;
        (is_named || self.is_under_root()) && !self.is_kept()
    }

    pub(super) fn is_under_root(&self) -> bool {
        !self.is_absolute()
            && !self.path.is_empty()
            && self.directory != libc::AT_FDCWD
            && is_root(self.directory)
    }

    /// The path of the directory that it is in, without the slash at its end, and its name there.
    fn split(&self) -> Option<(&'a [u8], &'a CStr)> {
        let bytes = self.path.to_bytes_with_nul();
        let (above, name) = match bytes.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (bytes.get(..slash)?, bytes.get(slash.checked_add(1)?..)?),
            None => (&[][..], bytes),
        };
        let name = CStr::from_bytes_with_nul(name).ok()?;
        let is_name = !matches!(name.to_bytes(), b"" | b"." | b"..");
        is_name.then_some((above, name))
    }

    /// The directory that it is in and its name there, if nothing on the way can be changed by this user or is a link.
    fn firm(&self, user: &Ids) -> Option<(Descriptor, &'a CStr)> {
        if !(self.is_absolute() || self.is_under_root()) {
            return None;
        }
        let (above, name) = self.split()?;
        let mut at = root()?;
        let parts = above.split(|&byte| byte == b'/');
        for part in parts.filter(|part| !matches!(*part, b"" | b".")) {
            if part == b".." || !at.is_kept_from(user, false) {
                return None;
            }
            let mut room = [0_u8; 256];
            let part = ended(part, &mut room)?;
            // SAFETY: a path that ends with a zero.
            let next = unsafe { open_at(at.0, part.as_ptr(), WALK | libc::O_DIRECTORY, 0) };
            at = Descriptor::of(next)?;
        }
        at.is_kept_from(user, true).then_some((at, name))
    }

    /// The directory that it is in, got at by the user, and its name there.
    fn reached_above(&self, user: &Ids) -> Option<(Descriptor, &'a CStr)> {
        let (above, name) = self.split()?;
        let mut room = [0_u8; libc::PATH_MAX as usize];
        let above = match above {
            b"" if self.is_absolute() => c"/",
            b"" => c".",
            above => ended(above, &mut room)?,
        };
        let flags = libc::O_PATH | libc::O_CLOEXEC | libc::O_DIRECTORY;
        // SAFETY: a path that ends with a zero.
        let found = user.run(|| unsafe { open_at(self.directory, above.as_ptr(), flags, 0) });
        Some((Descriptor::of(found)?, name))
    }

    /// Whether it has a name that CRIU gives for a moment: to a file that has none (`X.cr.1.ghost`) and to another name of one
    /// (`X.cr_link`), or one by which the image has a file (`link_remap.1`).
    fn is_momentary(&self) -> bool {
        let bytes = self.path.to_bytes();
        let name = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or(bytes);
        name.ends_with(b".ghost") || name.ends_with(b".cr_link") || name.starts_with(b"link_remap.")
    }

    /// Does something with the user's rights, or, if it may be, as root where the user cannot change the way.
    pub(super) fn run(
        &self,
        user: &Ids,
        as_root: bool,
        task: impl Fn(c_int, *const c_char) -> c_long,
    ) -> c_long {
        let result = user.run(|| task(self.directory, self.path.as_ptr()));
        if !is_refused(result) || !as_root || !self.is_momentary() {
            return result;
        }
        match self.firm(user) {
            Some((above, name)) => task(above.0, name.as_ptr()),
            None => result,
        }
    }

    /// What is there, if the user could have had it as the job had it, whatever the user may have of it now.
    fn had(&self, user: &Ids, flags: c_int) -> Option<Descriptor> {
        // SAFETY: the path ends with a zero.
        let found = user.run(|| unsafe { open_at(self.directory, self.path.as_ptr(), WALK, 0) });
        let found = Descriptor::of(found)?;
        let stat = found.stat()?;
        let (read, write) = match flags & libc::O_ACCMODE {
            libc::O_RDONLY => (libc::S_IRUSR, 0),
            libc::O_WRONLY => (0, libc::S_IWUSR),
            _ => (libc::S_IRUSR, libc::S_IWUSR),
        };
        let may = match stat.st_mode & libc::S_IFMT {
            libc::S_IFLNK => false,
            // Other rights than its mode decide there.
            _ if found.is_in_proc() => false,
            // Its owner could change the mode. Where that is not what forbids it, something else does.
            _ if stat.st_uid == user.uid => !stat.st_mode & (read | write) != 0,
            // CRIU opens named pipes in both directions, whatever the job had.
            libc::S_IFIFO => found.is_for(user, libc::R_OK) || found.is_for(user, libc::W_OK),
            // A program that the user may run is mapped.
            libc::S_IFREG => write == 0 && found.is_for(user, libc::X_OK),
            _ => false,
        };
        may.then_some(found)
    }

    pub(super) fn open(&self, user: &Ids, flags: c_int, mode: c_long) -> c_long {
        let path = self.path.as_ptr();
        // SAFETY: the path ends with a zero.
        let result = user.run(|| unsafe { open_at(self.directory, path, flags, mode) });
        if !is_refused(result) {
            return result;
        }
        // O_TMPFILE has the bit of O_DIRECTORY in it.
        let changes = MAKES | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY;
        let is_plain = flags & changes == 0;
        let is_momentary =
            flags & changes == MAKES && mode & c_long::from(SET_IDS) == 0 && self.is_momentary();
        if is_plain && let Some(found) = self.had(user, flags) {
            return found.open(flags);
        }
        match self.firm(user) {
            // SAFETY: as above.
            Some((above, name)) if is_plain || is_momentary => unsafe {
                open_at(above.0, name.as_ptr(), flags | libc::O_NOFOLLOW, mode)
            },
            _ => result,
        }
    }

    /// Gives what is here another name. Where the user may not (of files of others it may not by `protected_hardlinks`), as root: where
    /// the user cannot change the way, or within a directory where the user could rename it.
    pub(super) fn link(
        &self,
        to: &Place<'_>,
        user: &Ids,
        task: impl Fn(c_int, *const c_char, c_int, *const c_char) -> c_long,
    ) -> c_long {
        let result = user.run(|| {
            let (from, to_path) = (self.path.as_ptr(), to.path.as_ptr());
            task(self.directory, from, to.directory, to_path)
        });
        if !is_refused(result) || !self.is_momentary() {
            return result;
        }
        if let (Some((here, old)), Some((there, new))) = (self.firm(user), to.firm(user)) {
            // CRIU takes a name of its own then, which means nothing to anybody.
            return match to.is_momentary() {
                true => task(here.0, old.as_ptr(), there.0, new.as_ptr()),
                false => refusal(libc::EEXIST),
            };
        }
        let within = || {
            let ((here, old), (there, new)) = (self.reached_above(user)?, to.reached_above(user)?);
            let (above, other) = (here.stat()?, there.stat()?);
            // SAFETY: the name ends with a zero.
            let file = Descriptor::of(unsafe { open_at(here.0, old.as_ptr(), WALK, 0) })?.stat()?;
            let may = (above.st_dev, above.st_ino) == (other.st_dev, other.st_ino)
                && above.st_mode & libc::S_ISVTX == 0
                && file.st_mode & libc::S_IFMT == libc::S_IFREG
                && file.st_mode & SET_IDS == 0
                && here.is_for(user, libc::W_OK | libc::X_OK);
            may.then(|| task(here.0, old.as_ptr(), here.0, new.as_ptr()))
        };
        within().unwrap_or(result)
    }
}

/// A piece of a path with a zero at its end, if there is room.
fn ended<'r>(piece: &[u8], room: &'r mut [u8]) -> Option<&'r CStr> {
    let length = piece.len().checked_add(1)?;
    let room = room.get_mut(..length)?;
    for (place, &byte) in room.iter_mut().zip(piece.iter().chain(&[0])) {
        *place = byte;
    }
    CStr::from_bytes_with_nul(room).ok()
}
