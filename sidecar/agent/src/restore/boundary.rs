//! What an image may make where the job is not root: CRIU is root, and does what the image says.
//!
//! # Rules
//!
//! * The processes of an image are the job's user's, in no group that this user is not in, and have no capability. Anyone who
//!   took the checkpoint, or can write to the store, may have put something else into it.
//! * Its paths lead where they led, so that a restore does not give the job what it may not open itself: there is no link on the
//!   way but root's, and at its end is what the user may open in the way that the job had it open
//!   ([`rights`](crate::user::rights)).
//! * Sockets have the names that the program gave, in which there may be links of its user's as well; they are bound where this
//!   user could bind them.
//! * What the agent makes of an image (files, directories, named pipes) is the user's, where this user could make it. A directory of
//!   root's that others may not write to gives nobody anything, and may be anywhere.
//! * Another process of the user's can change a directory between this look and CRIU's way through it. So CRIU goes that way with the
//!   user's rights (`shim/criu-preload`). When the job is whole again and stands still, what it really has is looked at as well ([`Look::confirm`]); where that is more than its user may have, it does not run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType};

use crate::criu::ghosts::{self, Ghost};
use crate::criu::images;
use crate::files::linked;
use crate::image::AgentImage;
use crate::image::{Kind, Place};
use crate::tree;
use crate::user::JobUser;
use crate::user::rights::{self, Beyond, Rights};
use crate::user::way::{self, Found};

/// An image that is not brought back for this user.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryError {
    /// The image has processes of other users.
    #[error(
        "the checkpoint has a process of user {found}, and --user is {user}: start the job with the user that it had when the \
         checkpoint was taken, or begin it anew with --start-fresh"
    )]
    User {
        /// The user that the process has in the image.
        found: u32,
        /// The user of the job.
        user: u32,
    },
    /// It has processes in groups that are not the user's.
    #[error(
        "the checkpoint has a process in group {0}, which the user of --user is not in: start the job with the groups that it had \
         when the checkpoint was taken, or begin it anew with --start-fresh"
    )]
    Group(u32),
    /// A process of the image has capabilities.
    #[error(
        "the checkpoint has a process with capabilities, and --user has none: start the job as it was when the checkpoint was \
         taken, or begin it anew with --start-fresh"
    )]
    Capabilities,
    /// A path cannot be followed.
    #[error("{} does not lead where it led at the checkpoint: {cause}", .path.display())]
    Path {
        /// The path that cannot be followed.
        path: PathBuf,
        /// The error of following it.
        cause: io::Error,
    },
    /// What is there now is not the user's, or not for this use.
    #[error(
        "{} belongs to user {owner}, and the job's user may not {what} it, as it could at the checkpoint: put the file back that was \
         there, or give the user that right again",
        .path.display()
    )]
    Access {
        /// The path of what is there.
        path: PathBuf,
        /// The user that owns it.
        owner: u32,
        /// What the user may not do with it, in words.
        what: &'static str,
    },
    /// What the agent would make is not for this user to make.
    #[error(
        "the checkpoint would have {} made as user {owner}'s, where the job's user may not make it: make it, or mount the volume \
         that was there",
        .path.display()
    )]
    Made {
        /// The path that would be made.
        path: PathBuf,
        /// The user that it would belong to.
        owner: u32,
    },
    /// A socket would be bound where the user may not.
    #[error(
        "the socket {} would be bound in a directory of user {found}, where the job's user may not write: make the directory that \
         was there again",
        .path.display()
    )]
    Bound {
        /// The path of the socket.
        path: PathBuf,
        /// The user that owns the directory.
        found: u32,
    },
    /// Somebody changed a directory while the job was brought back.
    #[error(
        "{} was changed while the job was brought back, which was ended before it ran: let no other process of the job's user \
         change its directories",
        .path.display()
    )]
    Changed {
        /// What the job got, or the name that led elsewhere.
        path: PathBuf,
    },
    /// CRIU's images cannot be read.
    #[error(transparent)]
    Image(#[from] io::Error),
}

impl BoundaryError {
    /// Whether somebody has to put something right. Else the image is damaged.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Image(_))
    }
}

/// What was seen of paths before CRIU was let in, to be compared afterwards.
#[derive(Debug, Default)]
pub struct Look {
    /// Directories in which there will be sockets, with their names and, for people, their paths.
    sockets: Vec<(Found, OsString, PathBuf)>,
}

/// Looks at an image before anything of it is used. `images` is CRIU's directory.
///
/// # Errors
/// [`BoundaryError`].
pub fn check(images: &Path, image: &AgentImage, user: &JobUser) -> Result<Look, BoundaryError> {
    for thread in images::credentials(images)? {
        if let Some(&found) = thread.users().iter().find(|&&found| found != user.uid()) {
            let user = user.uid();
            return Err(BoundaryError::User { found, user });
        }
        if let Some(group) = thread.groups().find(|&group| !user.is_in(group)) {
            return Err(BoundaryError::Group(group));
        }
        if thread.has_capabilities() {
            return Err(BoundaryError::Capabilities);
        }
    }
    let rights = Rights::of(user);
    let making = Making::of(image, &rights);
    making.check(image)?;
    for ghost in ghosts::all(images)? {
        making.ghost(&ghost)?;
    }
    let paths = images::paths(images)?;
    let mut look = Look::default();
    for images::Bound { path, stays } in paths.bound {
        let above = path.parent().unwrap_or(Path::new("/"));
        let found = match way::find_for(above, user.uid()) {
            Ok(found) => found,
            // Among what is made.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(BoundaryError::Path { path, cause }),
        };
        let may_write = may(&found, &rights, Access::WRITE_OK | Access::EXEC_OK);
        if !may_write || !rights.reaches(above) {
            let found = found.owner().0;
            return Err(BoundaryError::Bound { path, found });
        }
        if let Some(name) = path.file_name().filter(|_| stays) {
            look.sockets.push((found, name.to_owned(), path));
        }
    }
    for images::Opened { path, flags } in paths.opened {
        let found = match way::find(&path) {
            Ok(found) => found,
            // CRIU makes it, or says what is missing.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(BoundaryError::Path { path, cause }),
        };
        let access = match found.kind() {
            // The working directory, say.
            FileType::Directory => Access::EXEC_OK,
            _ => rights::of_flags(flags),
        };
        let is_reached = || (path.parent()).is_none_or(|above| rights.reaches(above));
        let is_own = found.owner().0 == user.uid();
        if !(is_own || may(&found, &rights, access) && is_reached()) {
            return Err(BoundaryError::Access {
                path,
                owner: found.owner().0,
                what: rights::in_words(access),
            });
        }
    }
    Ok(look)
}

/// Whether the user may have what was found in this way.
fn may(found: &Found, rights: &Rights<'_>, access: Access) -> bool {
    rights.may_have(&found.stat, &found.way_to_it(), access)
}

impl Look {
    /// Looks at the processes that CRIU has brought back, of which `root` is the main one. They stand still.
    ///
    /// # Errors
    /// [`BoundaryError::Changed`]: they must not run.
    pub fn confirm(&self, root: u32, user: &JobUser) -> Result<(), BoundaryError> {
        for (directory, name, path) in &self.sockets {
            let there = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            let is_socket =
                there.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Socket);
            if !is_socket {
                return Err(BoundaryError::Changed { path: path.clone() });
            }
        }
        let rights = Rights::of(user);
        for pid in tree::collect(root)?.processes {
            if let Some(Beyond { path, .. }) = rights.beyond(pid) {
                return Err(BoundaryError::Changed { path });
            }
        }
        Ok(())
    }
}

/// Checks what the agent itself would make for an image.
struct Making<'a> {
    rights: &'a Rights<'a>,
    places: BTreeMap<&'a Path, &'a Place>,
}

impl<'a> Making<'a> {
    fn of(image: &'a AgentImage, rights: &'a Rights<'a>) -> Self {
        let places = (image.places.iter()).map(|place| (place.path.as_path(), place));
        Self {
            rights,
            places: places.collect(),
        }
    }

    fn user(&self) -> &JobUser {
        self.rights.user()
    }

    fn check(&self, image: &AgentImage) -> Result<(), BoundaryError> {
        for place in &image.places {
            self.place(place)?;
        }
        for file in &image.files {
            self.file(&file.path, (file.uid, file.gid), file.mode)?;
        }
        for needed in &image.needed {
            if let Some(copy) = &needed.copy {
                self.only_if_missing(&needed.path, (copy.uid, copy.gid), needed.mode)?;
            }
        }
        for file in &image.linked {
            for path in linked::paths_of(std::slice::from_ref(file)) {
                self.made(path, (file.uid, file.gid), file.mode)?;
            }
        }
        Ok(())
    }

    fn place(&self, place: &Place) -> Result<(), BoundaryError> {
        const BY_OTHERS: u32 = 0o022;
        let gives_nothing =
            place.kind == Kind::Directory && place.uid == 0 && place.mode & BY_OTHERS == 0;
        if gives_nothing || is_there(&place.path)? {
            return Ok(());
        }
        // A directory's set-group-ID bit makes nobody anything.
        self.made(&place.path, (place.uid, place.gid), place.mode & 0o777)
    }

    /// One that is written, and changed where it is there.
    fn file(&self, path: &Path, owner: (u32, u32), mode: u32) -> Result<(), BoundaryError> {
        let found = match way::find(path) {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return self.made(path, owner, mode),
            Err(cause) => {
                let path = path.to_owned();
                return Err(BoundaryError::Path { path, cause });
            }
        };
        let is_own = found.owner().0 == self.user().uid();
        let is_whose_it_was = is_own || found.owner().0 == owner.0;
        let above = path.parent().unwrap_or(Path::new("/"));
        let may_write = may(&found, self.rights, Access::WRITE_OK);
        if is_whose_it_was && may_write && (is_own || self.rights.reaches(above)) {
            return self.groups(path, owner, mode);
        }
        Err(BoundaryError::Access {
            path: path.to_owned(),
            owner: found.owner().0,
            what: rights::in_words(Access::WRITE_OK),
        })
    }

    fn only_if_missing(
        &self,
        path: &Path,
        owner: (u32, u32),
        mode: u32,
    ) -> Result<(), BoundaryError> {
        match is_there(path)? {
            true => Ok(()),
            false => self.made(path, owner, mode),
        }
    }

    /// One without a name, which is made for a moment and is the user's then.
    fn ghost(&self, ghost: &Ghost) -> Result<(), BoundaryError> {
        let kind = FileType::from_raw_mode(ghost.mode);
        let is_own = ghost.owner.0 == self.user().uid();
        let makes_others = ghost.mode & rights::SET_IDS != 0 && !is_own;
        let comes_back = match kind {
            FileType::RegularFile | FileType::Fifo => {
                !makes_others && self.rights.may_make_for_a_moment(&ghost.path)
            }
            // They are made by the name that they had.
            FileType::Directory | FileType::Symlink => {
                !is_there(&ghost.path)? && self.rights.may_make(&ghost.path)
            }
            _ => false,
        };
        if comes_back {
            return Ok(());
        }
        Err(BoundaryError::Made {
            path: ghost.path.clone(),
            owner: ghost.owner.0,
        })
    }

    /// One that is made: for this user or for root, where this user could make one.
    fn made(&self, path: &Path, owner: (u32, u32), mode: u32) -> Result<(), BoundaryError> {
        let above = path.parent().unwrap_or(Path::new("/"));
        if [0, self.user().uid()].contains(&owner.0) && self.may_make_in(above)? {
            return self.groups(path, owner, mode);
        }
        Err(BoundaryError::Made {
            path: path.to_owned(),
            owner: owner.0,
        })
    }

    /// Checks that no program gives the job a group that its user is not in.
    fn groups(
        &self,
        path: &Path,
        (owner, group): (u32, u32),
        mode: u32,
    ) -> Result<(), BoundaryError> {
        const SET_GROUP_ID: u32 = 0o2000;
        // The agent makes none of root's.
        if mode & SET_GROUP_ID == 0 || group == 0 || self.user().is_in(group) {
            return Ok(());
        }
        Err(BoundaryError::Made {
            path: path.to_owned(),
            owner,
        })
    }

    /// Whether the user may make something in a directory that is there, or is made.
    fn may_make_in(&self, directory: &Path) -> Result<bool, BoundaryError> {
        let needed = Access::WRITE_OK | Access::EXEC_OK;
        match way::find(directory) {
            Ok(found) => Ok(may(&found, self.rights, needed) && self.rights.reaches(directory)),
            // Whether it may be made itself is asked of it alone. What is not in the image is made as root's.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                Ok(self.places.get(directory).is_some_and(|place| {
                    rights::may_by_mode(self.user(), (place.uid, place.gid), place.mode, needed)
                }))
            }
            Err(cause) => Err(BoundaryError::Path {
                path: directory.to_owned(),
                cause,
            }),
        }
    }
}

/// Whether anything has this name, also by links of root's.
fn is_there(path: &Path) -> Result<bool, BoundaryError> {
    match way::find(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(cause) => Err(BoundaryError::Path {
            path: path.to_owned(),
            cause,
        }),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;
    use crate::criu::images::tests::{of_user, strangers, write};
    use crate::image::tests::sample;
    use crate::image::{FileRecord, NeededCopy, NeededPath};

    const USER: u32 = 12_345;

    fn user() -> JobUser {
        JobUser::find(&format!("{USER}:{USER}")).unwrap()
    }

    /// A directory to which everybody may go.
    fn directory() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        set_mode(dir.path(), 0o755);
        dir
    }

    fn set_mode(path: &Path, bits: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(bits)).unwrap();
    }

    #[test]
    fn only_processes_of_the_user_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let check = |threads: &[_]| {
            let null = (Path::new("/dev/null"), libc::O_RDWR);
            write(dir.path(), threads, &[null], &[]);
            check(dir.path(), &sample(), &user())
        };
        check(&[of_user(USER), of_user(USER)]).unwrap();
        let root = check(&[of_user(USER), of_user(0)]).unwrap_err();
        assert!(
            matches!(root, BoundaryError::User { found: 0, .. }),
            "{root}"
        );
        for stranger in strangers(USER) {
            check(&[of_user(USER), stranger]).unwrap_err();
        }
    }

    #[test]
    fn paths_lead_where_they_led() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = directory();
        let at = |name: &str| dir.path().join(name);
        for directory in ["images", "job", "root"] {
            std::fs::create_dir(at(directory)).unwrap();
        }
        for file in ["job/data", "root/data"] {
            std::fs::write(at(file), "x").unwrap();
        }
        chown(at("job"), Some(USER), Some(USER)).unwrap();
        chown(at("job/data"), Some(USER), Some(USER)).unwrap();
        let mode = |name: &str, bits| set_mode(&at(name), bits);
        mode("root", 0o755);
        let opened = |name: &str, flags| {
            let path = at(name);
            let null = (Path::new("/dev/null"), libc::O_RDWR);
            let files = [(path.as_path(), flags), null];
            write(&at("images"), &[of_user(USER)], &files, &[]);
            check(&at("images"), &sample(), &user())
        };
        let look = |name: &str| opened(name, libc::O_RDONLY);
        let is_refused = |outcome: Result<Look, BoundaryError>, verb: &str| {
            let refused = outcome.unwrap_err();
            assert!(
                matches!(&refused, BoundaryError::Access { owner: 0, what, .. } if *what == verb),
                "{refused}"
            );
        };
        look("job/data").unwrap();
        look("missing/data").unwrap();
        // Another file of root's that the job may read, one that it may not write, and one that it may not read.
        std::fs::remove_file(at("job/data")).unwrap();
        std::fs::hard_link(at("root/data"), at("job/data")).unwrap();
        mode("root/data", 0o644);
        look("job/data").unwrap();
        is_refused(opened("job/data", libc::O_WRONLY | libc::O_APPEND), "write");
        is_refused(opened("job/data", libc::O_RDWR), "write");
        mode("root/data", 0o600);
        is_refused(look("job/data"), "read");
        // Nor what anybody might read where only root may go, whoever the image says it belonged to.
        mode("root/data", 0o644);
        mode("root", 0o700);
        is_refused(look("root/data"), "read");
        mode("root", 0o755);
        // By links, of the directory and of the file.
        symlink(at("root"), at("link")).unwrap();
        symlink("data", at("root/name")).unwrap();
        look("link/data").unwrap();
        look("root/name").unwrap();
        for link in ["link", "root/name"] {
            lchown(at(link), Some(USER), Some(USER)).unwrap();
        }
        for path in ["link/data", "root/name", "link/missing"] {
            let refused = look(path).unwrap_err().to_string();
            assert!(
                refused.contains(&format!("link of user {USER}")),
                "{refused}"
            );
        }
    }

    #[test]
    fn sockets_are_bound_where_the_user_could() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = directory();
        let at = |name: &str| dir.path().join(name);
        for directory in ["images", "scratch", "root", "root/open"] {
            std::fs::create_dir(at(directory)).unwrap();
        }
        let mode = |name: &str, bits| set_mode(&at(name), bits);
        mode("root/open", 0o777);
        mode("root", 0o700);
        chown(at("scratch"), Some(USER), Some(USER)).unwrap();
        // As users have it: a link of their own to where there is room.
        for (link, to) in [("tmp", "scratch"), ("bad", "root")] {
            symlink(to, at(link)).unwrap();
            lchown(at(link), Some(USER), Some(USER)).unwrap();
        }
        let look = |name: &str| {
            write(&at("images"), &[of_user(USER)], &[], &[&at(name)]);
            check(&at("images"), &sample(), &user())
        };
        look("scratch/a.sock").unwrap();
        look("tmp/a.sock").unwrap();
        look("missing/a.sock").unwrap();
        for path in ["bad/a.sock", "root/a.sock", "root/open/a.sock"] {
            let refused = look(path).unwrap_err();
            assert!(matches!(refused, BoundaryError::Bound { .. }), "{refused}");
        }
        // When the job is back it is there, and not elsewhere.
        let own = std::process::id();
        let root = JobUser::find("0:0").unwrap();
        let seen = look("scratch/a.sock").unwrap();
        let missing = seen.confirm(own, &root).unwrap_err();
        assert!(
            matches!(&missing, BoundaryError::Changed { path } if *path == at("scratch/a.sock")),
            "{missing}"
        );
        let _bound = std::os::unix::net::UnixListener::bind(at("scratch/a.sock")).unwrap();
        seen.confirm(own, &root).unwrap();
    }

    /// CRIU makes them anew, by what the image says of them.
    #[test]
    fn files_without_a_name_are_nobody_elses_and_no_devices() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = directory();
        let at = |name: &str| dir.path().join(name);
        for directory in ["images", "job", "root", "job/of-root", "root/hooks.d"] {
            std::fs::create_dir(at(directory)).unwrap();
            set_mode(&at(directory), 0o755);
        }
        chown(at("job"), Some(USER), Some(USER)).unwrap();
        let (file, directory, link) = (libc::S_IFREG, libc::S_IFDIR, libc::S_IFLNK);
        for (name, owner, mode, comes_back) in [
            ("job/x", USER, file | 0o600, true),
            ("job/x", 0, file | 0o644, true),
            ("job/x", USER, file | 0o4755, true),
            ("job/x", 0, file | 0o4755, false),
            ("job/x", USER, libc::S_IFCHR | 0o666, false),
            ("job/x", USER, libc::S_IFBLK | 0o600, false),
            // A library that was replaced, and what the machine would run.
            ("root/x.so", 0, file | 0o755, true),
            ("root/hooks.d/x", 0, file | 0o755, false),
            // The user could swap the directory.
            ("job/of-root/x", 0, file | 0o644, false),
            // With the directories that are missing.
            ("job/gone/x", USER, file | 0o600, true),
            ("root/gone/x", 0, file | 0o644, false),
            // By the names that they had.
            ("job/d", USER, directory | 0o2755, true),
            ("job/d", USER, link | 0o777, true),
            ("root/d", USER, directory | 0o755, false),
            ("root/hooks.d", 0, directory | 0o755, false),
            ("job/of-root", USER, directory | 0o755, false),
        ] {
            images::tests::write_remaps(&at("images"), &[(1, 1, at(name).to_str().unwrap())]);
            ghosts::tests::write(&at("images"), 1, (owner, owner), mode, b"");
            let core = of_user(USER);
            let had = std::fs::read(at("images").join("files.img")).unwrap();
            let null = (Path::new("/dev/null"), libc::O_RDWR);
            write(&at("images"), &[core], &[null], &[]);
            std::fs::write(at("images").join("files.img"), had).unwrap();
            let outcome = check(&at("images"), &sample(), &user());
            assert_eq!(
                outcome.is_ok(),
                comes_back,
                "{name} {owner} {mode:o} {outcome:?}"
            );
        }
    }

    /// Whoever wrote the image may have meant something else than a job of this user.
    #[test]
    #[allow(clippy::too_many_lines, reason = "one list of cases")]
    fn what_the_user_could_not_make_is_not_made() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = directory();
        let at = |name: &str| dir.path().join(name);
        for directory in ["images", "job", "root"] {
            std::fs::create_dir(at(directory)).unwrap();
            set_mode(&at(directory), 0o755);
        }
        chown(at("job"), Some(USER), Some(USER)).unwrap();
        for (file, owner) in [("job/own", USER), ("job/of-root", 0), ("root/own", USER)] {
            std::fs::write(at(file), "x").unwrap();
            chown(at(file), Some(owner), Some(owner)).unwrap();
        }
        let null = (Path::new("/dev/null"), libc::O_RDWR);
        write(&at("images"), &[of_user(USER)], &[null], &[]);
        let look = |image: &AgentImage| check(&at("images"), image, &user());
        let file = |name: &str, (uid, gid), mode| FileRecord {
            path: at(name),
            length: 1,
            mode,
            uid,
            gid,
            content: Some("0".into()),
        };
        let own = (USER, USER);
        for (name, owner, mode, is_made) in [
            ("job/own", own, 0o600, true),
            ("job/new", own, 0o4755, true),
            ("job/new", (0, 0), 0o644, true),
            ("root/own", own, 0o600, true),
            // Changed or made where only root could.
            ("job/of-root", own, 0o600, false),
            ("job/of-root", (0, 0), 0o600, false),
            ("root/new", own, 0o600, false),
            ("missing/new", own, 0o600, false),
            // For somebody else, or for a group that the user is not in.
            ("job/new", (USER + 1, USER), 0o600, false),
            ("job/new", (USER, 7), 0o2755, false),
            ("job/own", (USER, 7), 0o2755, false),
        ] {
            let written = AgentImage {
                files: vec![file(name, owner, mode)],
                ..sample()
            };
            assert_eq!(look(&written).is_ok(), is_made, "{name} {owner:?} {mode:o}");
            if name == "job/own" || name == "root/own" || name == "job/of-root" {
                continue;
            }
            let read = AgentImage {
                needed: vec![NeededPath {
                    path: at(name),
                    length: Some(1),
                    mode,
                    uid: Some(owner.0),
                    copy: Some(NeededCopy {
                        offset: 0,
                        uid: owner.0,
                        gid: owner.1,
                    }),
                }],
                ..sample()
            };
            assert_eq!(look(&read).is_ok(), is_made, "{name} {owner:?} {mode:o}");
        }
        let place = |name: &str, kind, uid, mode| Place {
            path: at(name),
            kind,
            mode,
            uid,
            gid: uid,
            perhaps: false,
        };
        let directory = Kind::Directory;
        for (places, is_made) in [
            (vec![place("job/new", directory, USER, 0o755)], true),
            (vec![place("job/pipe", Kind::Pipe, USER, 0o600)], true),
            // A directory of root's in which nobody else may do anything.
            (vec![place("root/new", directory, 0, 0o755)], true),
            (vec![place("root", directory, USER, 0o755)], true),
            (vec![place("root/new", directory, 0, 0o1777)], false),
            (vec![place("root/new", directory, USER, 0o755)], false),
            (vec![place("root/pipe", Kind::Pipe, USER, 0o600)], false),
            (
                vec![
                    place("job/a", directory, USER, 0o700),
                    place("job/a/b", directory, USER, 0o700),
                ],
                true,
            ),
            (
                vec![
                    place("root/a", directory, 0, 0o755),
                    place("root/a/b", directory, USER, 0o700),
                ],
                false,
            ),
        ] {
            let image = AgentImage {
                places: places.clone(),
                ..sample()
            };
            assert_eq!(look(&image).is_ok(), is_made, "{places:?}");
        }
    }
}
