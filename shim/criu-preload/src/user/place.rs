//! Paths that CRIU uses: which of them are the job's, and how they are accessed.
//!
//! ```text
//!  openat(root, "work/loss.log") ──▶ as the user ──▶ done
//!                                        │ refused
//!                                        ├─ walked by descriptors, without links, through directories that the user cannot change, or
//!                                        │  may pass, or owns: what is there the user could have had: opened as root
//!                                        ├─ a name that CRIU gives for a moment, where the user cannot change the way: made, linked and
//!                                        │  removed as root
//!                                        └─ else the refusal stays
//! ```

use core::ffi::{CStr, c_char, c_int, c_long};

use super::ids::{Ids, call, refusal};
use crate::number;

/// What may be done as root with what CRIU makes for a moment, where the user cannot change the way.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AsRoot {
    /// It gives nobody anything: it may be done as root.
    Harmless,
    /// It might give something to somebody: it is never done as root.
    Never,
}

/// What a directory on a way is to the name at its end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    /// It holds the name.
    Parent,
    /// It is above the directory that does.
    Ancestor,
}

/// The flags of `open` that make something.
pub(super) const MAKES: c_int = libc::O_CREAT | libc::O_EXCL;

/// The set-user-ID and set-group-ID bits: a process that runs such a file becomes another user, or gets another group.
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

    /// Whether the user could have had what it leads to as the job had it, whatever the user may have of it now.
    fn could_be_had(&self, user: &Ids, flags: c_int) -> bool {
        let Some(stat) = self.stat() else {
            return false;
        };
        let (access, owners) = match flags & libc::O_ACCMODE {
            libc::O_RDONLY => (libc::R_OK, libc::S_IRUSR),
            libc::O_WRONLY => (libc::W_OK, libc::S_IWUSR),
            _ => (libc::R_OK | libc::W_OK, libc::S_IRUSR | libc::S_IWUSR),
        };
        // Its owner could change the mode. Where that is not what forbids it, something else does.
        if stat.st_uid == user.uid && stat.st_mode & owners != owners {
            return true;
        }
        let is_path = flags & libc::O_PATH != 0;
        is_path && self.is_for(user, libc::F_OK)
            || self.is_for(user, access)
            || match stat.st_mode & libc::S_IFMT {
                // CRIU opens named pipes in both directions, whatever the job had.
                libc::S_IFIFO => self.is_for(user, libc::R_OK) || self.is_for(user, libc::W_OK),
                // A program that the user may run is mapped, and in such a directory it may be.
                libc::S_IFREG | libc::S_IFDIR => {
                    access == libc::R_OK && self.is_for(user, libc::X_OK)
                }
                _ => false,
            }
    }

    /// Whether nothing in a directory can be put in the place of something else by this user.
    fn is_kept_from(&self, user: &Ids, level: Level) -> bool {
        let Some(stat) = self.stat() else {
            return false;
        };
        // The next directory on the way exists, while the name at its end may yet be made.
        let only_own = stat.st_mode & libc::S_ISVTX != 0 && level == Level::Ancestor;
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

    /// Where CRIU keeps what it knows of the kernel, which it opens, renames and removes.
    pub(super) fn is_kept(&self) -> bool {
        matches!(
            self.path.to_bytes(),
            b"/run/criu.kdat" | b"/run/criu.kdat.tmp"
        )
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
        is_named || self.is_under_root()
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

    /// The way to the directory that it is in, and its name there: without links, through directories that this user cannot change, may
    /// pass, or owns and so could pass.
    fn walked(&self, user: &Ids) -> Option<Walked<'a>> {
        if !(self.is_absolute() || self.is_under_root()) {
            return None;
        }
        let (above, name) = self.split()?;
        let mut at = root()?;
        // None of those above can be changed by the user.
        let mut kept = true;
        let mut in_process = false;
        let parts = above.split(|&byte| byte == b'/');
        for part in parts.filter(|part| !matches!(*part, b"" | b".")) {
            if part == b".." {
                return None;
            }
            if !in_process && at.is_in_proc() {
                in_process = is_this_process(part);
                if !in_process {
                    return None;
                }
            }
            kept = kept && at.is_kept_from(user, Level::Ancestor);
            if !kept && at.stat()?.st_uid != user.uid && !at.is_for(user, libc::X_OK) {
                return None;
            }
            let mut room = [0_u8; 256];
            let part = ended(part, &mut room)?;
            // SAFETY: a path that ends with a zero.
            let next = unsafe { open_at(at.0, part.as_ptr(), WALK | libc::O_DIRECTORY, 0) };
            at = Descriptor::of(next)?;
        }
        let kept = kept && at.is_kept_from(user, Level::Parent);
        let own = at.stat()?.st_uid == user.uid;
        if !kept && !own && !at.is_for(user, libc::X_OK) {
            return None;
        }
        Some(Walked {
            above: at,
            name,
            kept,
            own,
            in_process,
        })
    }

    /// Whether it has a name that CRIU gives for a moment: to a file that has none (`X.cr.1.ghost`) and to another name of one
    /// (`X.cr_link`), or one by which the image has a file (`link_remap.1`).
    fn is_momentary(&self) -> bool {
        let bytes = self.path.to_bytes();
        let name = bytes.rsplit(|&byte| byte == b'/').next().unwrap_or(bytes);
        name.ends_with(b".ghost") || name.ends_with(b".cr_link") || name.starts_with(b"link_remap.")
    }

    /// Does something with the user's rights, or, if it may be, as root to what CRIU makes for a moment.
    pub(super) fn run(
        &self,
        user: &Ids,
        as_root: AsRoot,
        task: impl Fn(c_int, *const c_char) -> c_long,
    ) -> c_long {
        let result = user.run(|| task(self.directory, self.path.as_ptr()));
        if !is_refused(result) || as_root == AsRoot::Never || !self.is_momentary() {
            return result;
        }
        // Not in a directory of the user's own either: the name might be a link by now.
        match self.walked(user).filter(|way| way.kept) {
            Some(way) => task(way.above.0, way.name.as_ptr()),
            None => result,
        }
    }

    pub(super) fn open(&self, user: &Ids, flags: c_int, mode: c_long) -> c_long {
        let path = self.path.as_ptr();
        // SAFETY: the path ends with a zero.
        let result = user.run(|| unsafe { open_at(self.directory, path, flags, mode) });
        if !is_refused(result) {
            return result;
        }
        let Some(way) = self.walked(user) else {
            return result;
        };
        // O_TMPFILE has the bit of O_DIRECTORY in it.
        let changes = MAKES | libc::O_TRUNC | libc::O_TMPFILE & !libc::O_DIRECTORY;
        if flags & changes == 0 {
            // SAFETY: the name ends with a zero.
            let found = Descriptor::of(unsafe { open_at(way.above.0, way.name.as_ptr(), WALK, 0) });
            return match found.filter(|found| way.leads(found, user, flags)) {
                Some(found) => found.open(flags),
                None => result,
            };
        }
        let is_harmless = flags & changes == MAKES && mode & c_long::from(SET_IDS) == 0;
        if !(is_harmless && self.is_momentary() && way.kept) {
            return result;
        }
        // SAFETY: as above.
        unsafe {
            open_at(
                way.above.0,
                way.name.as_ptr(),
                flags | libc::O_NOFOLLOW,
                mode,
            )
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
        let (Some(here), Some(there)) = (self.walked(user), to.walked(user)) else {
            return result;
        };
        let (old, new) = (here.name.as_ptr(), there.name.as_ptr());
        if here.kept && there.kept {
            // CRIU takes a name of its own then, which means nothing to anybody.
            return match to.is_momentary() {
                true => task(here.above.0, old, there.above.0, new),
                false => refusal(libc::EEXIST),
            };
        }
        match here.could_rename(&there, user) {
            Some(true) => task(here.above.0, old, there.above.0, new),
            _ => result,
        }
    }
}

/// The directory to which a way has led, and the name that is left of it.
struct Walked<'a> {
    /// The directory that holds the name.
    above: Descriptor,
    /// The name in that directory.
    name: &'a CStr,
    /// Whether the user cannot change it, nor anything on the way.
    kept: bool,
    /// Whether it is the user's own directory.
    own: bool,
    /// Whether it is what the kernel says of this process.
    in_process: bool,
}

impl Walked<'_> {
    /// Whether the user could have had what was found here.
    fn leads(&self, found: &Descriptor, user: &Ids, flags: c_int) -> bool {
        if !found.is_in_proc() {
            return found.could_be_had(user, flags);
        }
        // Other rights than a mode decide there: a process may read of itself all but where its memory is in the machine.
        let reads = flags & libc::O_ACCMODE == libc::O_RDONLY;
        self.in_process && reads && self.name.to_bytes() != b"pagemap"
    }

    /// Whether this user could rename a plain file from here to there, and `there` is here.
    fn could_rename(&self, there: &Walked<'_>, user: &Ids) -> Option<bool> {
        let (above, other) = (self.above.stat()?, there.above.stat()?);
        let is_one = (above.st_dev, above.st_ino) == (other.st_dev, other.st_ino);
        // SAFETY: the name ends with a zero.
        let file = unsafe { open_at(self.above.0, self.name.as_ptr(), WALK, 0) };
        let mode = Descriptor::of(file)?.stat()?.st_mode;
        let is_plain = mode & libc::S_IFMT == libc::S_IFREG && mode & SET_IDS == 0;
        let may_write = || {
            above.st_mode & libc::S_ISVTX == 0 && self.above.is_for(user, libc::W_OK | libc::X_OK)
        };
        Some(is_one && is_plain && (self.own || may_write()))
    }
}

/// Whether a name in `/proc` is this process, as the job knows it: what CRIU brings back in a process is what that had of itself.
fn is_this_process(name: &[u8]) -> bool {
    // SAFETY: takes nothing.
    let own = unsafe { call(libc::SYS_getpid, []) };
    number(name).is_some_and(|number| i64::try_from(number) == Ok(own))
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
