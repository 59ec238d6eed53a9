//! Files that the job uses by a name that was removed, and that still have another name.
//!
//! glibc's `sem_open` makes a named semaphore under a temporary name, maps it, links it to `/dev/shm/sem.NAME` and removes the
//! temporary name; Python's `multiprocessing` has one for each lock and queue unless its start method is `fork`. For the dump CRIU
//! gives such a file a name that it can open at the restore, `link_remap.N` beside the removed one, and takes that away again
//! because the job lives on. So the image carries the file, and a restore puts it under that name, and under those that it had.
//!
//! # Rules
//!
//! * [`capture`] runs while CRIU holds the tree frozen and its links are there.
//! * All names lead to one file again: processes that open it by its name later share it with those that have it mapped. A file
//!   that has one of the names now (from the processes that were killed) is replaced and not written to, since somebody else may
//!   use it; where it is another file, it is kept beside, as the job continued with it. A file that belongs to somebody else
//!   stays.
//! * The directories may be the job's own: files are got at by [`way`](crate::user::way).
//! * Run again after a failure, [`put_back`] does it all again. CRIU removes its own names when the restore is done.
//! * CRIU's names are counted from a small number in each dump, so two jobs on one machine have the same ones. While they are
//!   there, a job has the [`Turn`] of their directory.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;

use super::capture::copy_into;
use super::errors::{FilesError, io_error};
use super::make::{self, What};
use super::put_back::{begins_like, check_owner, save_beside};
use crate::image::{ImageDirectory, LinkedFile};
use crate::tree;
use crate::user::way::{self, Entry, Found};

/// The prefix of the names that CRIU gives.
const REMAP: &[u8] = b"link_remap.";

/// Most bytes of one: they are copied while the job stands still. A semaphore has 32.
const MOST: u64 = 64 << 20;

/// The names of a file in the directory of the one that was removed: those of CRIU, and others.
fn names_beside(through: &Path, removed: &Path) -> io::Result<(Vec<PathBuf>, Vec<PathBuf>)> {
    let file = std::fs::metadata(through)?;
    let parent = removed.parent().unwrap_or(Path::new("/"));
    let mut found = Vec::new();
    for entry in std::fs::read_dir(parent)? {
        let entry = entry?;
        // Not through a link; one that goes away meanwhile is none.
        if let Ok(meta) = entry.metadata()
            && (meta.dev(), meta.ino()) == (file.dev(), file.ino())
        {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found.into_iter().partition(|path| is_remap(path)))
}

/// Why a process's file by a removed name cannot be carried, if there is such a file: its path, and why.
pub fn in_the_way(pid: u32) -> Option<(PathBuf, String)> {
    tree::files_by_removed_names(pid)
        .into_iter()
        .find_map(|(through, removed)| {
            let why = match std::fs::metadata(&through) {
                // It was closed meanwhile.
                Err(_) => return None,
                Ok(meta) if meta.len() > MOST => {
                    format!("and it has more than {} MiB", MOST >> 20)
                }
                Ok(_) if removed.symlink_metadata().is_ok() => {
                    "and something else has that name now".to_owned()
                }
                Ok(meta) => {
                    let names = names_beside(&through, &removed)
                        .map_or(0, |(remaps, names)| remaps.len() + names.len());
                    if names as u64 >= meta.nlink() {
                        return None;
                    }
                    "and it has one that is not in the same directory".to_owned()
                }
            };
            Some((removed, why))
        })
}

/// How long another job's dump or restore is waited for: by a dump, which holds a job up, and by a restore.
const OTHERS: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(60));

/// While it is kept, CRIU's names in some directories are those of one job.
#[derive(Debug)]
pub struct Turn {
    // Held, not used.
    #[cfg_attr(not(test), expect(dead_code))]
    locks: Vec<OwnedFd>,
}

impl Turn {
    /// Waits for it, together no longer than `patience`: another agent may hang, and without it a dump or a restore fails at worst.
    fn wait(directories: &BTreeSet<PathBuf>, patience: Duration) -> Self {
        let end = Instant::now() + patience;
        let mut locks = Vec::new();
        // In one order everywhere.
        for directory in directories {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let opened = way::directory(directory).and_then(|directory| {
                Ok(rustix::fs::openat(&directory, ".", flags, Mode::empty())?)
            });
            let Ok(lock) = opened else {
                continue;
            };
            loop {
                match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                    Ok(()) => break locks.push(lock),
                    Err(Errno::WOULDBLOCK | Errno::INTR) if Instant::now() < end => {
                        std::thread::sleep(Duration::from_millis(2));
                    }
                    Err(e) => {
                        tracing::warn!(
                            directory = %directory.display(), cause = %e,
                            "another job on this machine has not done with its files there"
                        );
                        break;
                    }
                }
            }
        }
        Self { locks }
    }

    /// The turn for a dump of these processes.
    pub fn to_dump(processes: &[u32]) -> Self {
        let removed = processes
            .iter()
            .flat_map(|&pid| tree::files_by_removed_names(pid));
        let directories = removed.filter_map(|(_, removed)| Some(removed.parent()?.to_owned()));
        Self::wait(&directories.collect(), OTHERS.0)
    }

    /// The turn for putting these files back, until CRIU is done.
    pub fn to_restore(files: &[LinkedFile]) -> Self {
        let remaps = files.iter().flat_map(|file| &file.remaps);
        let directories = remaps.filter_map(|remap| Some(remap.parent()?.to_owned()));
        Self::wait(&directories.collect(), OTHERS.1)
    }
}

/// CRIU's names are there while it dumps or restores: one that is this old was left by one that was killed, of a job that is
/// no more.
const STALE: Duration = Duration::from_secs(3600);

/// Removes what a CRIU that was killed has left: it would not make a name that is there. What belongs to other jobs goes when
/// it is [`STALE`], since they may be dumped at this moment.
pub fn clean(processes: &[u32], now: SystemTime) {
    let files = processes
        .iter()
        .flat_map(|&pid| tree::files_by_removed_names(pid));
    let mut left = BTreeSet::new();
    let mut directories = BTreeSet::new();
    for (through, removed) in files {
        let (remaps, _) = names_beside(&through, &removed).unwrap_or_default();
        left.extend(remaps);
        directories.extend(removed.parent().map(Path::to_owned));
    }
    for entry in directories
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flatten()
        .flatten()
    {
        if entry.file_name().as_bytes().starts_with(REMAP)
            && let Ok(meta) = entry.metadata()
            && let Ok(named) = u64::try_from(meta.ctime())
            && SystemTime::UNIX_EPOCH + Duration::from_secs(named) + STALE < now
        {
            left.insert(entry.path());
        }
    }
    for remap in left {
        if let Err(e) = Entry::of(&remap).and_then(|entry| entry.remove()) {
            tracing::warn!(path = %remap.display(), cause = %e, "cannot remove what a CRIU that died has left");
        }
    }
}

/// Copies all of them into the image. The tree must be frozen, and CRIU's dump complete.
///
/// # Errors
/// [`FilesError::Io`], also when CRIU has given one no name beside the removed one.
pub fn capture(processes: &[u32], image: &ImageDirectory) -> Result<Vec<LinkedFile>, FilesError> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let files = processes
        .iter()
        .flat_map(|&pid| tree::files_by_removed_names(pid));
    for (through, removed) in files {
        let failed = io_error("copy into the image the file", &removed);
        let meta = std::fs::metadata(&through).map_err(&failed)?;
        if !seen.insert((meta.dev(), meta.ino())) {
            continue;
        }
        let (remaps, names) = names_beside(&through, &removed).map_err(&failed)?;
        if remaps.is_empty() || meta.len() > MOST {
            let why = "it came into use by a name that was removed while the checkpoint began";
            return Err(failed(io::Error::other(why)));
        }
        let content = format!("link-{:03}", found.len());
        copy_into(&through, meta.len(), image, &content).map_err(&failed)?;
        found.push(LinkedFile {
            remaps,
            names,
            length: meta.len(),
            mode: meta.mode() & 0o7777,
            uid: meta.uid(),
            gid: meta.gid(),
            content,
        });
    }
    Ok(found)
}

/// Makes the file under all its names. Their directories must be there. What is there by one of its own names, and is not what it
/// was, is kept beside. `contents` is the `files/` directory.
///
/// # Errors
/// [`FilesError`].
pub fn put_back(file: &LinkedFile, contents: &Path) -> Result<(), FilesError> {
    let Some((first, others)) = file.remaps.split_first() else {
        return Ok(());
    };
    let entry = |path: &Path| Entry::of(path).map_err(io_error("get to", path));
    for remap in &file.remaps {
        if !is_remap(remap) {
            let why = "CRIU gives no such names; use the checkpoint before";
            return Err(io_error("make", remap)(io::Error::other(why)));
        }
        // Of a restore that failed.
        entry(remap)?.remove().map_err(io_error("remove", remap))?;
    }
    let content = contents.join(&file.content);
    let source = File::open(&content).map_err(io_error("read from the image", &content))?;
    let what = What::Copy(&source, file.length);
    let owner = (file.uid, file.gid);
    let made = make::make(first, what, owner, file.mode).map_err(io_error("write", first))?;
    let found = entry(first)?.find().map_err(io_error("look at", first))?;
    let found = found.filter(|found| {
        made && found.kind() == FileType::RegularFile
            && found.owner() == owner
            && found.stat.st_nlink == 1
    });
    let Some(found) = found else {
        let taken = io::Error::from(io::ErrorKind::AlreadyExists);
        return Err(io_error("write", first)(taken));
    };
    for remap in others {
        let linked = entry(remap)?.link_to(&found);
        linked.map_err(io_error("make", remap))?;
    }
    for name in &file.names {
        replace(&found, name, &source, file)?;
    }
    Ok(())
}

/// Whether this is a name that CRIU gives.
fn is_remap(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_bytes().starts_with(REMAP))
}

/// Gives a file one more name, and keeps beside what had that before and has another content.
fn replace(
    found: &Found,
    name: &Path,
    content: &File,
    file: &LinkedFile,
) -> Result<(), FilesError> {
    let failed = io_error("make", name);
    let entry = Entry::of(name).map_err(io_error("get to", name))?;
    let before = entry.find().map_err(io_error("look at", name))?;
    if let Some(before) = before.filter(|before| before.kind() == FileType::RegularFile) {
        check_owner(name, &before, file.uid)?;
        let is_same = before.length() == file.length
            && begins_like(&before, content, file.length)
                .map_err(io_error("compare with the image the file", name))?;
        // In memory what the job left there is of no use to anybody.
        if !is_same && before.length() > 0 && !name.starts_with(tree::SHARED_MEMORY) {
            let saved = save_beside(&entry, &before, 0, (file.uid, file.gid));
            let saved = saved.map_err(io_error("save what was there of", name))?;
            tracing::info!(path = %name.display(), ?saved, "replaced by what it was at the checkpoint");
        }
    }
    let mut new = OsStr::new(".phos-new-").to_owned();
    new.push(entry.name());
    let new = entry.beside(new).map_err(&failed)?;
    new.remove().map_err(&failed)?;
    new.link_to(found).map_err(&failed)?;
    new.rename_over(&entry).map_err(&failed)
}

/// Every directory entry that [`put_back`] makes, for their directories.
pub fn paths_of(files: &[LinkedFile]) -> impl Iterator<Item = &Path> {
    files
        .iter()
        .flat_map(|file| file.remaps.iter().chain(&file.names))
        .map(PathBuf::as_path)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::image::FILES_DIR;
    use crate::image::Pages;

    #[test]
    fn all_its_names_lead_to_one_file_again() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("temporary"), b"semaphore").unwrap();
        std::fs::set_permissions(at("temporary"), std::fs::Permissions::from_mode(0o600)).unwrap();
        let _open = File::open(at("temporary")).unwrap();
        std::fs::hard_link(at("temporary"), at("sem.name")).unwrap();
        std::fs::remove_file(at("temporary")).unwrap();
        let me = std::process::id();
        let ours = |found: &Option<(PathBuf, String)>| {
            (found.as_ref()).is_some_and(|(path, _)| path.starts_with(dir.path()))
        };
        assert!(!ours(&in_the_way(me)), "{:?}", in_the_way(me));

        let parent = tempfile::tempdir().unwrap();
        let image = ImageDirectory::create(None, Pages::Small, parent.path()).unwrap();
        image.subdirectory(FILES_DIR).unwrap();
        // As CRIU does it, once for each process that has it.
        for remap in ["link_remap.3", "link_remap.5"] {
            std::fs::hard_link(at("sem.name"), at(remap)).unwrap();
        }
        let mut found = capture(&[me], &image).unwrap();
        found.retain(|file| file.remaps.contains(&at("link_remap.3")));
        let [file] = found.as_slice() else {
            panic!("{found:?}");
        };
        assert_eq!(file.remaps, [at("link_remap.3"), at("link_remap.5")]);
        assert_eq!(file.names, [at("sem.name")]);

        // The job went on and was killed; somebody else has the old file open.
        std::fs::remove_file(at("link_remap.3")).unwrap();
        std::fs::write(at("sem.name"), b"SEMAPHORE").unwrap();
        let old = File::open(at("sem.name")).unwrap();
        for _ in 0..2 {
            put_back(file, &image.path_of(FILES_DIR)).unwrap();
            let inodes: BTreeMap<u64, Vec<u8>> = ["sem.name", "link_remap.3", "link_remap.5"]
                .map(|name| {
                    let inode = std::fs::metadata(at(name)).unwrap().ino();
                    (inode, std::fs::read(at(name)).unwrap())
                })
                .into();
            let contents: Vec<Vec<u8>> = inodes.into_values().collect();
            assert_eq!(contents, [b"semaphore"]);
        }
        assert_eq!(io::read_to_string(old).unwrap(), "SEMAPHORE");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 4);
        assert_eq!(
            std::fs::read(at("sem.name.phos-cut-1")).unwrap(),
            b"SEMAPHORE"
        );
        std::fs::remove_file(at("sem.name.phos-cut-1")).unwrap();
        let mode = std::fs::metadata(at("sem.name")).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o600);
        // Left by a CRIU that died, and by one that dumps another job or did.
        std::fs::write(at("link_remap.7"), b"of another").unwrap();
        let again = File::open(at("sem.name")).unwrap();
        std::fs::hard_link(at("sem.name"), at("gone")).unwrap();
        let other = File::open(at("gone")).unwrap();
        std::fs::remove_file(at("gone")).unwrap();
        let now = SystemTime::now();
        clean(&[me], now);
        assert!(at("link_remap.7").exists());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        clean(&[me], now + 2 * STALE);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
        drop((again, other));
        // On another machine nothing of it is there.
        std::fs::remove_file(at("sem.name")).unwrap();
        put_back(file, &image.path_of(FILES_DIR)).unwrap();
        assert_eq!(std::fs::read(at("sem.name")).unwrap(), b"semaphore");
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_replaced() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("content"), b"theirs").unwrap();
        for place in ["job", "victim"] {
            std::fs::create_dir(at(place)).unwrap();
        }
        std::fs::write(at("victim/name"), b"precious").unwrap();
        let file = |remap: PathBuf, name: PathBuf| LinkedFile {
            remaps: vec![remap],
            names: vec![name],
            length: 6,
            mode: 0o666,
            uid: 1234,
            gid: 1234,
            content: "content".into(),
        };
        let link = at("link");
        std::os::unix::fs::symlink("victim", &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(1234), None).unwrap();
        for strange in [
            file(link.join("link_remap.1"), at("job/name")),
            file(at("job/link_remap.1"), link.join("name")),
            file(at("job/link_remap.1"), at("victim/name")),
            file(at("victim/name"), at("job/name")),
        ] {
            put_back(&strange, dir.path()).unwrap_err();
            assert_eq!(std::fs::read_dir(at("victim")).unwrap().count(), 1);
            let meta = std::fs::metadata(at("victim/name")).unwrap();
            assert_eq!((meta.uid(), meta.nlink()), (0, 1));
            assert_eq!(std::fs::read(at("victim/name")).unwrap(), b"precious");
        }
        put_back(&file(at("job/link_remap.1"), at("job/name")), dir.path()).unwrap();
        assert_eq!(std::fs::metadata(at("job/name")).unwrap().uid(), 1234);
    }

    #[test]
    fn two_jobs_take_turns_in_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let directories = BTreeSet::from([dir.path().to_owned()]);
        let wait = |patience| Turn::wait(&directories, patience);
        let first = wait(Duration::ZERO);
        assert_eq!(first.locks.len(), 1);
        assert!(wait(Duration::ZERO).locks.is_empty());
        std::thread::scope(|scope| {
            let second = scope.spawn(|| wait(OTHERS.1));
            drop(first);
            assert_eq!(second.join().unwrap().locks.len(), 1);
        });
    }

    #[test]
    fn one_whose_other_name_is_elsewhere_is_in_the_way() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::create_dir(at("elsewhere")).unwrap();
        std::fs::write(at("first"), b"content").unwrap();
        let _open = File::open(at("first")).unwrap();
        std::fs::hard_link(at("first"), at("elsewhere/second")).unwrap();
        std::fs::remove_file(at("first")).unwrap();
        // Other tests of this process have such files, too.
        let all = tree::files_by_removed_names(std::process::id());
        assert!(all.iter().any(|(_, removed)| *removed == at("first")));
        let (_, why) = in_the_way(std::process::id()).unwrap();
        assert!(why.contains("same directory"), "{why}");
    }
}
