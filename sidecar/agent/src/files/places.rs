//! Directories and named pipes that must be there before the job can come back, and making them where they are missing.
//!
//! CRIU binds unix sockets and opens files and named pipes by path, and makes none of the directories above them. On the
//! machine where the job ran they are still there; on another one, `/tmp` is empty: a PyTorch job whose DataLoader has
//! workers listens in a directory of its own there, and could not be restored.
//!
//! # Consistency
//!
//! [`capture`] runs while CRIU holds the tree frozen.
//!
//! # Crash
//!
//! [`make`] leaves alone what is there, makes each whole or not at all, and may run again after any interruption.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use super::capture::is_pseudo;
use super::make::{self, What};
use crate::image::{Kind, Place};
use crate::tree;

/// Whether a restore needs a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// A restore fails without it.
    Always,
    /// A restore continues without it.
    Perhaps,
}

/// A place cannot be made.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot make {} {}, which the job had at the checkpoint: {cause}. Make it by hand, or mount a volume there",
    match .kind { Kind::Directory => "the directory", Kind::Pipe => "the named pipe" },
    .path.display()
)]
pub struct PlaceError {
    path: PathBuf,
    kind: Kind,
    cause: io::Error,
}

/// What is known of the surroundings of a job.
#[derive(Debug, Default)]
pub struct Around<'a> {
    /// Files that a restore writes.
    pub files: Vec<&'a Path>,
    /// Directories that it needs.
    pub directories: Vec<PathBuf>,
    /// Directories that the job may come back to by name: one that cannot be made is gone without.
    pub perhaps: Vec<PathBuf>,
}

/// What the processes of the tree have and another machine may not: their named pipes, and every directory above those, above
/// their unix sockets and above what `around` says. Those above others come first. The tree, of which `root` is the main process,
/// must be frozen.
pub fn capture(root: u32, processes: &[u32], around: &Around<'_>) -> Vec<Place> {
    let mut places = BTreeMap::new();
    for path in &around.files {
        above(path, Need::Always, &mut places);
    }
    for path in &around.directories {
        above(path, Need::Always, &mut places);
        note(path, Kind::Directory, Need::Always, &mut places);
    }
    for path in tree::unix_socket_paths(root, processes) {
        // CRIU leaves out the names of those that were removed.
        if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_socket()) {
            above(&path, Need::Always, &mut places);
        }
    }
    let open: BTreeSet<PathBuf> = processes
        .iter()
        .flat_map(|&pid| tree::open_files(pid))
        .map(|file| file.link)
        .filter(|link| link.is_absolute())
        .collect();
    for path in open {
        if std::fs::symlink_metadata(&path).is_ok_and(|m| m.file_type().is_fifo()) {
            above(&path, Need::Always, &mut places);
            note(&path, Kind::Pipe, Need::Always, &mut places);
        }
    }
    for path in &around.perhaps {
        above(path, Need::Perhaps, &mut places);
        note(path, Kind::Directory, Need::Perhaps, &mut places);
    }
    places.into_values().collect()
}

fn above(path: &Path, need: Need, places: &mut BTreeMap<PathBuf, Place>) {
    for directory in path.ancestors().skip(1) {
        if directory.parent().is_none() || places.contains_key(directory) {
            return;
        }
        note(directory, Kind::Directory, need, places);
    }
}

/// Notes a place if it is there: what the job sees elsewhere (a root of its own) does not matter here.
fn note(path: &Path, kind: Kind, need: Need, places: &mut BTreeMap<PathBuf, Place>) {
    if is_pseudo(path) || places.contains_key(path) {
        return;
    }
    let is = |meta: &Metadata| match kind {
        Kind::Directory => meta.is_dir(),
        Kind::Pipe => meta.file_type().is_fifo(),
    };
    // Of a link what it leads to: it is what the job has.
    if let Some(meta) = std::fs::metadata(path).ok().filter(is) {
        places.insert(
            path.to_owned(),
            Place {
                path: path.to_owned(),
                kind,
                mode: meta.mode() & 0o7777,
                uid: meta.uid(),
                gid: meta.gid(),
                perhaps: need == Need::Perhaps,
            },
        );
    }
}

/// Makes those that are missing, with their modes and owners, and returns how many that were.
///
/// # Errors
/// [`PlaceError`] for the first that cannot be made and must be there.
pub fn make(places: &[Place]) -> Result<usize, PlaceError> {
    let mut made = 0;
    for place in places {
        match make_one(place) {
            Ok(done) => made += usize::from(done),
            Err(cause) if place.perhaps => {
                tracing::warn!(path = %place.path.display(), %cause, "a temporary directory of the job cannot be made");
            }
            Err(cause) => {
                return Err(PlaceError {
                    path: place.path.clone(),
                    kind: place.kind,
                    cause,
                });
            }
        }
    }
    Ok(made)
}

fn make_one(place: &Place) -> io::Result<bool> {
    let path = place.path.as_path();
    if is_there(place)? {
        return Ok(false);
    }
    let what = match place.kind {
        Kind::Directory => What::Directory,
        Kind::Pipe => What::Pipe,
    };
    let made = make::make(path, what, (place.uid, place.gid), place.mode)?;
    if !made {
        // Another agent made it just now, in a directory of both; or it is something else.
        is_there(place)?;
    }
    Ok(made)
}

fn is_there(place: &Place) -> io::Result<bool> {
    match (std::fs::metadata(&place.path), place.kind) {
        (Ok(meta), Kind::Directory) if meta.is_dir() => Ok(true),
        (Ok(meta), Kind::Pipe) if meta.file_type().is_fifo() => Ok(true),
        (Ok(_), _) => Err(io::Error::other("something else has its name")),
        (Err(e), _) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        (Err(e), _) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{OpenOptions, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    /// What this process has in `dir`.
    fn captured(dir: &Path, files: &[PathBuf], directories: &[PathBuf]) -> Vec<Place> {
        let own = std::process::id();
        let around = Around {
            files: files.iter().map(PathBuf::as_path).collect(),
            directories: directories.to_vec(),
            perhaps: Vec::new(),
        };
        let mut places = capture(own, &[own], &around);
        // Other tests of this process have sockets and files of their own.
        places.retain(|p| p.path.starts_with(dir));
        places
    }

    fn directory(path: &Path, mode: u32) {
        std::fs::create_dir_all(path).unwrap();
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_stands_around_the_job_is_made_again_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().join("base");
        let [sockets, pipes, logs, work] = ["s/deep", "p", "l", "w"].map(|n| base.join(n));
        directory(&base, 0o750);
        directory(&sockets, 0o700);
        directory(&pipes, 0o1777);
        directory(&logs, 0o755);
        directory(&work, 0o711);
        let _listener = UnixListener::bind(sockets.join("name with space.sock")).unwrap();
        let fifo = pipes.join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o620),
            0,
        )
        .unwrap();
        let _both = OpenOptions::new()
            .read(true)
            .write(true)
            .open(&fifo)
            .unwrap();
        let places = captured(
            dir.path(),
            &[logs.join("loss.log")],
            std::slice::from_ref(&work),
        );
        let found: Vec<(&Path, Kind)> = places.iter().map(|p| (p.path.as_path(), p.kind)).collect();
        assert_eq!(
            found,
            [
                (dir.path(), Kind::Directory),
                (&base, Kind::Directory),
                (&logs, Kind::Directory),
                (&pipes, Kind::Directory),
                (&fifo, Kind::Pipe),
                (&base.join("s"), Kind::Directory),
                (&sockets, Kind::Directory),
                (&work, Kind::Directory),
            ]
        );

        std::fs::remove_dir_all(&base).unwrap();
        assert_eq!(make(&places).unwrap(), 7);
        for (path, mode) in [
            (&base, 0o750),
            (&sockets, 0o700),
            (&pipes, 0o1777),
            (&work, 0o711),
        ] {
            let meta = std::fs::metadata(path).unwrap();
            assert!(meta.is_dir(), "{}", path.display());
            assert_eq!(meta.mode() & 0o7777, mode, "{}", path.display());
        }
        assert!(std::fs::metadata(&fifo).unwrap().file_type().is_fifo());
        // What is there stays as it is.
        std::fs::set_permissions(&work, Permissions::from_mode(0o700)).unwrap();
        assert_eq!(make(&places).unwrap(), 0);
        assert_eq!(std::fs::metadata(&work).unwrap().mode() & 0o7777, 0o700);
    }

    #[test]
    fn an_owner_comes_back() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        directory(&own, 0o2770);
        std::os::unix::fs::chown(&own, Some(1234), Some(4321)).unwrap();
        std::fs::set_permissions(&own, Permissions::from_mode(0o2770)).unwrap();
        let places = captured(dir.path(), &[], std::slice::from_ref(&own));
        std::fs::remove_dir(&own).unwrap();
        assert_eq!(make(&places).unwrap(), 1);
        let meta = std::fs::metadata(&own).unwrap();
        assert_eq!(
            (meta.uid(), meta.gid(), meta.mode() & 0o7777),
            (1234, 4321, 0o2770)
        );
    }

    #[test]
    fn one_that_is_only_perhaps_needed_stops_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let [needed, perhaps] = ["needed/a", "perhaps/a"].map(|n| dir.path().join(n));
        directory(&needed, 0o755);
        directory(&perhaps, 0o755);
        let around = Around {
            directories: vec![needed.clone()],
            perhaps: vec![needed.clone(), perhaps.clone()],
            ..Around::default()
        };
        let mut places = capture(std::process::id(), &[], &around);
        places.retain(|p| p.path.starts_with(dir.path()) && p.path != dir.path());
        let kinds: Vec<bool> = places.iter().map(|p| p.perhaps).collect();
        assert_eq!(kinds, [false, false, true, true]);
        for lost in ["needed", "perhaps"] {
            std::fs::remove_dir_all(dir.path().join(lost)).unwrap();
            std::fs::write(dir.path().join(lost), "precious").unwrap();
        }
        make(&places).unwrap_err();
        std::fs::remove_file(dir.path().join("needed")).unwrap();
        assert_eq!(make(&places).unwrap(), 2);
        assert!(needed.is_dir() && !perhaps.exists());
    }

    #[test]
    fn something_else_of_that_name_is_left_alone_and_named() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        directory(&work, 0o755);
        let places = captured(dir.path(), &[], std::slice::from_ref(&work));
        std::fs::remove_dir(&work).unwrap();
        std::fs::write(&work, "precious").unwrap();
        let text = make(&places).unwrap_err().to_string();
        assert!(
            text.contains(&work.display().to_string()) && text.contains("something else"),
            "{text}"
        );
        assert_eq!(std::fs::read(&work).unwrap(), b"precious");
    }
}
