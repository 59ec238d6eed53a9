//! A lock beside what it guards, between sidecars of the same job: whoever holds it has the thing.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Takes the lock, unless somebody else holds it. It is held until the file is closed, however its holder ends.
///
/// # Errors
/// The file cannot be made or locked.
pub fn try_lock(path: &Path) -> io::Result<Option<File>> {
    let mut options = File::options();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(e)) => Err(e),
    }
}
