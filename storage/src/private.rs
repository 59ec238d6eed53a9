//! Directories that hold content of a job's memory: nobody but their owner may look into them.

use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Makes a directory that only its owner can look into: images hold what the job has in memory. One that is there stays
/// as it is, and those above it are made as any other.
pub(crate) fn make_private(path: &Path) -> std::io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent() {
        std::fs::create_dir_all(above)?;
    }
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        // Another process made it meanwhile.
        Err(_) if path.is_dir() => Ok(()),
        made => made,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_that_is_made_is_its_owners_alone_and_another_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        let path = root.path().join("a/b");
        make_private(&path).unwrap();
        assert_eq!(mode(&path) & 0o777, 0o700);
        assert_ne!(mode(path.parent().unwrap()) & 0o700, 0);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        make_private(&path).unwrap();
        assert_eq!(mode(&path) & 0o777, 0o755);
    }
}
