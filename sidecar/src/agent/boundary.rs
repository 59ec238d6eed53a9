//! What an image may make, where the job is not root: CRIU is, and does what the image says.
//!
//! # Rules
//!
//! * The processes of an image are the job's user's, in no group that this user is not in, and have no capability. Whoever took it,
//!   or can write to the store, may have meant something else.
//! * Its paths lead where they led, so that the job does not get by a restore what it may not open itself: no link on the way but
//!   root's, and in the place of a file nobody else's that its user may not read.
//! * Sockets have the names that the program gave, in which there may be links of its user's as well; they are bound where this
//!   user could bind them.
//!
//! What somebody changes between this look and CRIU's is not seen.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use super::criu::images;
use super::files::{self, FileRecord, NeededPath};
use super::user::JobUser;
use super::way::{self, Found};

/// An image that is not brought back for this user.
#[derive(Debug, thiserror::Error)]
pub enum BoundaryError {
    /// It has other users' processes.
    #[error(
        "the checkpoint has a process of user {found}, and --user is {user}: start the job with the user that it had when the \
         checkpoint was taken, or begin it anew with --start-fresh"
    )]
    User {
        /// In the image.
        found: u32,
        /// The job's.
        user: u32,
    },
    /// It has processes in groups that are not the user's.
    #[error(
        "the checkpoint has a process in group {0}, which the user of --user is not in: start the job with the groups that it had \
         when the checkpoint was taken, or begin it anew with --start-fresh"
    )]
    Group(u32),
    /// It has privileges.
    #[error(
        "the checkpoint has a process with capabilities, and --user has none: start the job as it was when the checkpoint was \
         taken, or begin it anew with --start-fresh"
    )]
    Capabilities,
    /// A path cannot be followed.
    #[error("{} does not lead where it led at the checkpoint: {cause}", .path.display())]
    Path {
        /// Which one.
        path: PathBuf,
        /// Why.
        cause: io::Error,
    },
    /// What is there now is not for this user.
    #[error(
        "{} belongs to user {found} now and belonged to user {owner} at the checkpoint, and the job's user may not read it: put \
         the file back that was there",
        .path.display()
    )]
    Access {
        /// The path.
        path: PathBuf,
        /// Whose it is.
        found: u32,
        /// Whose it was.
        owner: u32,
    },
    /// A socket would be bound where the user may not.
    #[error(
        "the socket {} would be bound in a directory of user {found}, where the job's user may not write: make the directory that \
         was there again",
        .path.display()
    )]
    Bound {
        /// Its name.
        path: PathBuf,
        /// Whose the directory is.
        found: u32,
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

/// Looks at an image before CRIU does. `images` is CRIU's directory; `written` and `needed` are the files of the job.
///
/// # Errors
/// [`BoundaryError`].
pub fn check(
    images: &Path,
    written: &[FileRecord],
    needed: &[NeededPath],
    user: &JobUser,
) -> Result<(), BoundaryError> {
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
    let written = written.iter().map(|f| (f.path.as_path(), f.uid));
    let needed = (needed.iter()).filter_map(|n| Some((n.path.as_path(), n.uid?)));
    let owners: BTreeMap<&Path, u32> = written.chain(needed).collect();
    let paths = images::paths(images)?;
    for path in paths.bound {
        let above = path.parent().unwrap_or(Path::new("/"));
        let found = match way::find_for(above, user.uid()) {
            Ok(found) => found,
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(BoundaryError::Path { path, cause }),
        };
        if !may(&found, user, 0o3) {
            let found = found.owner().0;
            return Err(BoundaryError::Bound { path, found });
        }
    }
    for path in paths.opened {
        if files::is_pseudo(&path) {
            continue;
        }
        let found = match way::find(&path) {
            Ok(found) => found,
            // CRIU makes it, or says what is missing.
            Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
            Err(cause) => return Err(BoundaryError::Path { path, cause }),
        };
        if let Some(&owner) = owners.get(path.as_path())
            && owner != found.owner().0
            && !may(&found, user, to_read(&found))
        {
            return Err(BoundaryError::Access {
                found: found.owner().0,
                path,
                owner,
            });
        }
    }
    Ok(())
}

/// The bits that reading it needs.
fn to_read(found: &Found) -> u32 {
    match found.kind() {
        FileType::Directory => 0o5,
        _ => 0o4,
    }
}

/// By its mode, whether a user has all of these bits.
fn may(found: &Found, user: &JobUser, bits: u32) -> bool {
    let (owner, group) = found.owner();
    let shift = match () {
        () if owner == user.uid() => 6,
        () if user.is_in(group) => 3,
        () => 0,
    };
    (found.stat.st_mode >> shift) & bits == bits
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};

    use super::*;
    use crate::agent::criu::images::tests::{of_user, strangers, write};

    const USER: u32 = 12_345;

    fn user() -> JobUser {
        JobUser::find(&format!("{USER}:{USER}")).unwrap()
    }

    #[test]
    fn only_processes_of_the_user_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let check = |threads: &[_]| {
            write(dir.path(), threads, &[Path::new("/dev/null")], &[]);
            check(dir.path(), &[], &[], &user())
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
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for directory in ["images", "job", "root"] {
            std::fs::create_dir(at(directory)).unwrap();
        }
        for file in ["job/data", "root/data"] {
            std::fs::write(at(file), "x").unwrap();
        }
        chown(at("job"), Some(USER), Some(USER)).unwrap();
        chown(at("job/data"), Some(USER), Some(USER)).unwrap();
        let mode = |name: &str, mode| {
            std::fs::set_permissions(at(name), std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let needed = NeededPath {
            path: at("job/data"),
            length: Some(1),
            mode: 0o600,
            uid: Some(USER),
            copy: None,
        };
        let look = |name: &str| {
            let path = at(name);
            write(
                &at("images"),
                &[of_user(USER)],
                &[&path, Path::new("/dev/null")],
                &[],
            );
            check(&at("images"), &[], std::slice::from_ref(&needed), &user())
        };
        look("job/data").unwrap();
        look("missing/data").unwrap();
        // Another file of root's that the job may read, and one that it may not.
        std::fs::remove_file(at("job/data")).unwrap();
        std::fs::hard_link(at("root/data"), at("job/data")).unwrap();
        mode("root/data", 0o644);
        look("job/data").unwrap();
        mode("root/data", 0o600);
        let refused = look("job/data").unwrap_err();
        assert!(
            matches!(
                refused,
                BoundaryError::Access {
                    found: 0,
                    owner: USER,
                    ..
                }
            ),
            "{refused}"
        );
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
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for directory in ["images", "scratch", "root"] {
            std::fs::create_dir(at(directory)).unwrap();
        }
        chown(at("scratch"), Some(USER), Some(USER)).unwrap();
        // As users have it: a link of their own to where there is room.
        for (link, to) in [("tmp", "scratch"), ("bad", "root")] {
            symlink(to, at(link)).unwrap();
            lchown(at(link), Some(USER), Some(USER)).unwrap();
        }
        let look = |name: &str| {
            write(&at("images"), &[of_user(USER)], &[], &[&at(name)]);
            check(&at("images"), &[], &[], &user())
        };
        look("scratch/a.sock").unwrap();
        look("tmp/a.sock").unwrap();
        look("missing/a.sock").unwrap();
        for path in ["bad/a.sock", "root/a.sock"] {
            let refused = look(path).unwrap_err();
            assert!(
                matches!(refused, BoundaryError::Bound { found: 0, .. }),
                "{refused}"
            );
        }
    }
}
