//! The directory that agent and sidecar share, `<run_dir>/<job>/`: sockets, locks, the shim.
//!
//! # Rules
//!
//! * What lies in it is trusted by name: root connects to its sockets and maps its files. So the job's directory belongs to the
//!   user that phos-ft runs as, and nobody else writes in it; one that is somebody else's, or a link, is refused.
//! * A user that may write in the directory above could put another directory in its place. A volume that arrives open to all (an
//!   `emptyDir` of Kubernetes has mode 0777) is closed, if it is this user's and holds nothing but job directories. Any other
//!   stays as it is (others may use it, too), and a warning says what that means.
//! * Other users may pass through both directories but not list them: the job of another user finds the shim and its socket by
//!   name. That holds whatever the umask is.

use std::fs::{DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Passed through by all, listed and written by its owner.
const MODE: u32 = 0o711;
/// Others than the owner may write.
const OPEN_TO_OTHERS: u32 = 0o022;
/// The sticky bit: users that may write may not rename what is another's.
const STICKY: u32 = 0o1000;

/// What the sidecar remembers of the job's history, in the job's directory.
pub const HISTORY: &str = "history.json";

/// Whether the sidecar remembers checkpoints of the job: if so, the agent does not start it from the beginning without a sidecar.
pub fn has_checkpoints(job_dir: &Path) -> bool {
    // One that cannot be understood was still written after a checkpoint.
    job_dir.join(HISTORY).exists()
}

/// Makes the job's directory below `run_dir`, and sees to it that it is this user's alone to change.
///
/// # Errors
/// One of them cannot be made, or the job's is another user's.
pub fn make(run_dir: &Path, job: &str) -> io::Result<PathBuf> {
    let path = run_dir.join(job);
    let above = open_above(run_dir).map_err(|e| about(run_dir, &e))?;
    let made = match rustix::fs::mkdirat(&above, job, Mode::from_raw_mode(MODE)) {
        Ok(()) => true,
        Err(rustix::io::Errno::EXIST) => false,
        Err(e) => return Err(about(&path, &e.into())),
    };
    let flags = OFlags::NOFOLLOW | OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(&above, job, flags, Mode::empty());
    let directory = File::from(opened.map_err(|e| about(&path, &e.into()))?);
    let found = directory.metadata().map_err(|e| about(&path, &e))?;
    // A file server may give what root makes to somebody else.
    if !made && found.uid() != own() {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to user {}, not to {}, who runs phos-ft: others could change what lies there. Choose another \
                 with --run-dir, or remove it",
                path.display(),
                found.uid(),
                own()
            ),
        ));
    }
    if found.mode() & 0o7777 != MODE {
        let mode = Permissions::from_mode(MODE);
        directory
            .set_permissions(mode)
            .map_err(|e| about(&path, &e))?;
    }
    Ok(path)
}

/// Opens the directory above, made if it is not there. It may be reached by a link: the user who gave its name chose it.
fn open_above(run_dir: &Path) -> io::Result<File> {
    let missing: Vec<&Path> = (run_dir.ancestors())
        .take_while(|d| !d.as_os_str().is_empty() && !d.exists())
        .collect();
    DirBuilder::new()
        .recursive(true)
        .mode(MODE)
        .create(run_dir)?;
    for made in missing {
        std::fs::set_permissions(made, Permissions::from_mode(MODE))?;
    }
    let above = File::open(run_dir)?;
    let found = above.metadata()?;
    let mode = found.mode() & 0o7777;
    let replaceable = mode & OPEN_TO_OTHERS != 0 && mode & STICKY == 0;
    if replaceable && found.uid() == own() && holds_job_directories_only(run_dir)? {
        above.set_permissions(Permissions::from_mode(mode & !OPEN_TO_OTHERS))?;
        tracing::info!(directory = %run_dir.display(), "others could write in the run directory: no more");
    } else if replaceable || ![0, own()].contains(&found.uid()) {
        tracing::warn!(
            directory = %run_dir.display(),
            "others may write in this directory, and so put another in place of the job's run directory: choose one with \
             --run-dir that is root's alone where that matters"
        );
    }
    Ok(above)
}

fn holds_job_directories_only(run_dir: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(run_dir)? {
        let found = entry?.metadata()?;
        if !found.is_dir() || found.uid() != own() {
            return Ok(false);
        }
    }
    Ok(true)
}

fn own() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn about(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    fn chmod(path: &Path, mode: u32) {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_of_ours_that_is_open_to_all_is_closed_and_a_sticky_one_left() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("a/run");
        let job = make(&run, "train").unwrap();
        assert_eq!((mode(&run), mode(&job)), (MODE, MODE));
        assert_eq!(mode(&place.path().join("a")), MODE);
        for (before, after) in [(0o777, 0o755), (0o2770, 0o2750), (0o1777, 0o1777)] {
            chmod(&run, before);
            chmod(&job, 0o777);
            make(&run, "train").unwrap();
            assert_eq!((mode(&run), mode(&job)), (after, MODE));
        }
    }

    #[test]
    fn a_directory_that_others_use_stays_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let shared = place.path().join("scratch");
        std::fs::create_dir(&shared).unwrap();
        std::fs::write(shared.join("data"), b"").unwrap();
        chmod(&shared, 0o777);
        let job = make(&shared, "train").unwrap();
        assert_eq!((mode(&shared), mode(&job)), (0o777, MODE));
    }

    #[test]
    fn neither_a_link_nor_a_file_is_taken_for_the_jobs_directory() {
        let place = tempfile::tempdir().unwrap();
        let elsewhere = place.path().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        chmod(&elsewhere, 0o750);
        symlink(&elsewhere, place.path().join("link")).unwrap();
        std::fs::write(place.path().join("file"), b"").unwrap();
        for job in ["link", "file"] {
            let refused = make(place.path(), job).unwrap_err().to_string();
            assert!(refused.contains(job), "{refused}");
        }
        assert_eq!(mode(&elsewhere), 0o750);
        // The name that the user gave may be a link.
        symlink(&elsewhere, place.path().join("run")).unwrap();
        make(&place.path().join("run"), "train").unwrap();
        assert!(elsewhere.join("train").is_dir());
    }

    #[test]
    fn what_is_another_users_is_refused() {
        let place = tempfile::tempdir().unwrap();
        let job = make(place.path(), "train").unwrap();
        if std::os::unix::fs::chown(&job, Some(1000), None).is_err() {
            // Only root can give a directory away.
            assert!(!rustix::process::geteuid().is_root());
            return;
        }
        let refused = make(place.path(), "train").unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        assert!(
            refused.to_string().contains("belongs to user 1000"),
            "{refused}"
        );
    }
}
