//! The directory that agent and sidecar share, `<run_dir>/<job>/`: sockets, locks, the shim.
//!
//! # Rules
//!
//! * What lies in it is trusted by name: root connects to its sockets and maps its files. So it and the directory above
//!   belong to the user that phos-ft runs as, and nobody else may write in either. A volume that arrives open to all (an
//!   `emptyDir` of Kubernetes has mode 0777) is closed before anything is made in it.
//! * Others pass through it: the job of another user finds the shim and its socket by name, and lists nothing.

use std::fs::{DirBuilder, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// Passed through by all, listed and written by its owner.
const MODE: u32 = 0o711;
/// Others than the owner may write.
const OPEN_TO_OTHERS: u32 = 0o022;
/// Who may write may not rename what is another's.
const STICKY: u32 = 0o1000;

/// Makes the job's directory below `run_dir`, and sees to it that both are this user's alone to change.
///
/// # Errors
/// One of them cannot be made, or is another user's.
pub fn make(run_dir: &Path, job: &str) -> io::Result<PathBuf> {
    DirBuilder::new()
        .recursive(true)
        .mode(MODE)
        .create(run_dir)
        .map_err(|e| about(run_dir, &e))?;
    // The directory itself may be reached by a link; it is whoever gave its name that chose it.
    let above = close(run_dir, OFlags::empty(), None)?;
    let path = run_dir.join(job);
    match rustix::fs::mkdirat(&above, job, Mode::from_raw_mode(MODE)) {
        Ok(()) | Err(rustix::io::Errno::EXIST) => {}
        Err(e) => return Err(about(&path, &e.into())),
    }
    close(&path, OFlags::NOFOLLOW, Some(MODE))?;
    Ok(path)
}

/// Opens a directory, gives it `mode` or takes from others the right to write in it.
fn close(path: &Path, flags: OFlags, mode: Option<u32>) -> io::Result<File> {
    let flags = flags | OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = rustix::fs::open(path, flags, Mode::empty());
    let directory = File::from(opened.map_err(|e| about(path, &e.into()))?);
    let found = directory.metadata().map_err(|e| about(path, &e))?;
    let own = rustix::process::geteuid().as_raw();
    if found.uid() != own {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to user {}, not to {own}, who runs phos-ft: others could change what lies there. Remove it, \
                 or give it to that user",
                path.display(),
                found.uid()
            ),
        ));
    }
    if let Some(mode) = mode.or_else(|| narrower(&found)) {
        directory
            .set_permissions(Permissions::from_mode(mode))
            .map_err(|e| about(path, &e))?;
    }
    Ok(directory)
}

/// The mode that takes from others what lets them replace what is not theirs.
fn narrower(found: &Metadata) -> Option<u32> {
    let mode = found.mode() & 0o7777;
    (mode & OPEN_TO_OTHERS != 0 && mode & STICKY == 0).then_some(mode & !OPEN_TO_OTHERS)
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
    fn a_directory_open_to_all_is_closed_and_a_sticky_one_left() {
        let place = tempfile::tempdir().unwrap();
        let run = place.path().join("a/run");
        let job = make(&run, "train").unwrap();
        assert_eq!((mode(&run), mode(&job)), (MODE, MODE));
        for (before, after) in [(0o777, 0o755), (0o2770, 0o2750), (0o1777, 0o1777)] {
            chmod(&run, before);
            chmod(&job, 0o777);
            make(&run, "train").unwrap();
            assert_eq!((mode(&run), mode(&job)), (after, MODE));
        }
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
