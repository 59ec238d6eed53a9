//! Where a store is: on this machine, or beyond its loss.
//!
//! A directory on a network file system is as remote as a bucket: what is there survives the machine, and reading it crosses the
//! network. The kernel is asked which one a directory is on, so the user does not have to say.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use phos_file_systems::{existing, is_on_network};
use url::Url;

/// What a store is, for what depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Medium {
    /// A directory of this machine, or memory.
    Local,
    /// What is there survives the loss of this machine.
    Remote,
    /// Packs are dropped: nothing can be restored from it.
    Discard,
}

impl Medium {
    /// The medium that a directory is on.
    pub(crate) fn of(path: &Path) -> Medium {
        if is_on_network(path) {
            Medium::Remote
        } else {
            Medium::Local
        }
    }
}

/// Whether what an address means survives this machine: an object store, or a directory on a network file system. Nothing is
/// known of a file system in user space: it counts as local. Asks the file system.
#[must_use]
pub fn is_remote(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("s3" | "s3a" | "gs" | "az" | "azure"))
        || directory_of(address).is_some_and(|path| is_on_network(&path))
}

/// Whether an address means a directory on another file system than this one. Asks the file systems.
#[must_use]
pub fn is_on_another_disk(address: &str, than: &Path) -> bool {
    let device = |path: &Path| std::fs::metadata(existing(path)?).ok().map(|m| m.dev());
    directory_of(address).is_some_and(
        |path| matches!((device(&path), device(than)), (Some(there), Some(here)) if there != here),
    )
}

/// The directory that an address means; `None` if it means something else.
pub(crate) fn directory_of(address: &str) -> Option<PathBuf> {
    if address.contains("://") {
        let url = Url::parse(address).ok()?;
        (url.scheme() == "file").then(|| url.to_file_path().ok())?
    } else {
        Some(PathBuf::from(address)).filter(|path| !path.as_os_str().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_what_they_mean() {
        for address in ["s3://b/p", "s3a://b", "gs://b", "az://c", "azure://c"] {
            assert!(is_remote(address), "{address}");
            assert_eq!(directory_of(address), None);
        }
        for address in [
            "memory://",
            "discard://",
            "/tmp",
            "tmp/x/y",
            "file:///tmp/x",
            "",
        ] {
            assert!(!is_remote(address), "{address}");
        }
        assert_eq!(directory_of("file:///a%20b"), Some("/a b".into()));
        assert_eq!(directory_of("a/b"), Some("a/b".into()));
        assert_eq!(directory_of("memory:///a"), None);
    }

    #[test]
    fn another_disk_is_one_with_another_number() {
        let here = tempfile::tempdir().unwrap();
        let inside = here.path().join("not/there/yet");
        let inside = inside.to_str().unwrap();
        assert!(!is_on_another_disk(inside, here.path()));
        assert!(is_on_another_disk("/proc/self", here.path()));
        assert!(is_on_another_disk("file:///proc/self", here.path()));
        assert!(!is_on_another_disk("s3://bucket", here.path()));
    }
}
