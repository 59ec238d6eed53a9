//! The directories that hold what a job may have made for itself: temporary files and caches of compiled code.
//!
//! A job maps files that it, or a compiler it called, made there: Triton's launchers, TorchInductor's kernels, extensions built
//! at the start. They are not open for writing, so they look like the libraries of the image, which another machine has too; but
//! these files it does not have. [`files::needed`](crate::files::needed) puts such files into the checkpoint.
//!
//! The rule goes by place, not by age: a cache may be older than the job.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// Directories that everybody may write to.
const EVERYBODYS: [&str; 3] = ["/tmp", "/var/tmp", "/dev/shm"];
/// Below `$HOME`: the XDG base directory specification's, Triton's and the CUDA driver's defaults.
const BELOW_HOME: [&str; 3] = [".cache", ".triton", ".nv"];
/// How the names of variables end that name a cache (`TRITON_CACHE_DIR`, `CUDA_CACHE_PATH`, `XDG_CACHE_HOME`, …).
const CACHE_NAMES: [&[u8]; 3] = [b"CACHE_DIR", b"CACHE_PATH", b"CACHE_HOME"];
/// Names of other variables that name such a directory.
const NAMES: [&[u8]; 5] = [
    b"TMPDIR",
    b"TMP",
    b"TEMP",
    b"TORCH_EXTENSIONS_DIR",
    b"TRITON_HOME",
];
/// How Python's multiprocessing names the directory that each process makes once and remembers.
const REMEMBERED: &str = "pymp-";
/// The most of them that are remembered.
const MOST_REMEMBERED: usize = 256;

/// The directories, by the environment that the processes were started with. Some may lie in others.
pub fn directories(processes: &[u32]) -> BTreeSet<PathBuf> {
    let mut found: BTreeSet<PathBuf> = EVERYBODYS.map(PathBuf::from).into();
    for pid in processes {
        // A process that cannot be read adds nothing.
        if let Ok(environment) = std::fs::read(format!("/proc/{pid}/environ")) {
            named(&environment, &mut found);
        }
    }
    // What the kernel says of open and mapped files has no links in it.
    let resolved: Vec<PathBuf> = found.iter().filter_map(|p| p.canonicalize().ok()).collect();
    found.extend(resolved.into_iter().filter(|p| is_own(p)));
    found
}

/// Directories that nothing of the job has open and that it may come back to by name: `directories` themselves, and those that
/// Python's multiprocessing has made in them for users of the job.
pub fn remembered(processes: &[u32], directories: &BTreeSet<PathBuf>) -> Vec<PathBuf> {
    let owner = |path: &Path| std::fs::symlink_metadata(path).map(|m| (m.is_dir(), m.uid()));
    let users: BTreeSet<u32> = processes
        .iter()
        .filter_map(|pid| Some(owner(Path::new(&format!("/proc/{pid}"))).ok()?.1))
        .collect();
    let made = directories
        .iter()
        .filter_map(|directory| std::fs::read_dir(directory).ok())
        .flat_map(|entries| entries.flatten())
        .filter(|entry| {
            entry
                .file_name()
                .as_bytes()
                .starts_with(REMEMBERED.as_bytes())
        })
        .map(|entry| entry.path())
        .filter(|path| owner(path).is_ok_and(|(is_dir, user)| is_dir && users.contains(&user)))
        .take(MOST_REMEMBERED);
    directories.iter().cloned().chain(made).collect()
}

/// Adds the directories that an environment names, in the form of `/proc/PID/environ`.
fn named(environment: &[u8], found: &mut BTreeSet<PathBuf>) {
    for variable in environment.split(|&b| b == 0) {
        let Some(at) = variable.iter().position(|&b| b == b'=') else {
            continue;
        };
        let (name, value) = (
            &variable[..at],
            Path::new(OsStr::from_bytes(&variable[at + 1..])),
        );
        if name == b"HOME" {
            found.extend(
                BELOW_HOME
                    .map(|below| value.join(below))
                    .into_iter()
                    .filter(|p| is_own(p)),
            );
        } else if (NAMES.contains(&name) || CACHE_NAMES.iter().any(|end| name.ends_with(end)))
            && is_own(value)
        {
            found.insert(value.to_owned());
        }
    }
}

/// Absolute, and not the root directory.
fn is_own(path: &Path) -> bool {
    path.is_absolute()
        && path
            .components()
            .any(|part| matches!(part, Component::Normal(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_and_temporary_directories_are_found_by_the_names_of_their_variables() {
        let mut found = BTreeSet::new();
        named(
            b"HOME=/home/a\0PATH=/usr/bin\0TMPDIR=/scratch/7\0TRITON_CACHE_DIR=/scratch/triton\0CUDA_CACHE_PATH=/scratch/nv\0\
              XDG_CACHE_HOME=relative\0NUMBA_CACHE_DIR=/\0TORCH_EXTENSIONS_DIR=/ext\0EMPTY=\0odd\0DATA_DIR=/data\0",
            &mut found,
        );
        let found: Vec<&str> = found.iter().filter_map(|p| p.to_str()).collect();
        assert_eq!(
            found,
            [
                "/ext",
                "/home/a/.cache",
                "/home/a/.nv",
                "/home/a/.triton",
                "/scratch/7",
                "/scratch/nv",
                "/scratch/triton",
            ]
        );
    }

    #[test]
    fn those_of_a_process_are_found_with_what_links_lead_to_and_what_python_remembers() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let (link, real) = (base.join("link"), base.join("real"));
        for below in ["pymp-abc", "other"] {
            std::fs::create_dir_all(real.join(below)).unwrap();
        }
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("30")
            .env("TMPDIR", &link)
            .spawn()
            .unwrap();
        // The kernel tells us of an exec before it has put the environment in its place.
        let environment = format!("/proc/{}/environ", child.id());
        while std::fs::read(&environment).unwrap().is_empty() {
            std::thread::yield_now();
        }
        let found = directories(&[child.id()]);
        let all = remembered(&[child.id()], &found);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(found.contains(&link) && found.contains(&real), "{found:?}");
        assert!(all.contains(&real.join("pymp-abc")), "{all:?}");
        assert!(!all.contains(&real.join("other")), "{all:?}");
    }

    #[test]
    fn a_process_has_at_least_the_directories_of_everybody() {
        let found = directories(&[std::process::id(), u32::MAX]);
        assert!(found.contains(Path::new("/tmp")));
        assert!(!found.contains(Path::new("/")));
    }
}
