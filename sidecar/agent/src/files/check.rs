//! The check before a restore: whether this machine has the files that the image describes and does not carry. Nothing is
//! changed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::errors::FilesError;
use crate::image::{FileRecord, NeededPath};

/// The most paths that a refusal names.
const NAMED: usize = 20;

/// Whether everything that an image needs and does not carry is here. Changes nothing.
///
/// # Errors
/// [`FilesError::Differ`] with all that is not.
pub fn check(needed: &[NeededPath], records: &[FileRecord]) -> Result<(), FilesError> {
    let mut wrong: Vec<String> = Vec::new();
    let mut content = false;
    for record in records.iter().filter(|r| r.content.is_none()) {
        let found = match std::fs::metadata(&record.path) {
            Err(_) => "is missing".to_owned(),
            Ok(meta) if meta.len() < record.length => format!("has {} bytes", meta.len()),
            Ok(_) => continue,
        };
        content = true;
        wrong.push(format!(
            "{} {found}, {} at the checkpoint or more are needed",
            record.path.display(),
            record.length
        ));
    }
    wrong.extend(needed.iter().filter_map(|needed| {
        let path = needed.path.display();
        let Ok(meta) = std::fs::metadata(&needed.path) else {
            return needed.copy.is_none().then(|| format!("{path} is missing"));
        };
        match needed.length {
            None if !meta.is_dir() => Some(format!("{path} is not a directory")),
            Some(_) if !meta.is_file() => Some(format!("{path} is not a file")),
            Some(length)
                if meta.len() < length || (meta.len() > length && is_code(&needed.path)) =>
            {
                Some(format!(
                    "{path} has {} bytes, {length} at the checkpoint",
                    meta.len()
                ))
            }
            _ if meta.mode() & 0o7777 != needed.mode => Some(format!(
                "{path} has mode {:04o}, {:04o} at the checkpoint",
                meta.mode() & 0o7777,
                needed.mode
            )),
            _ => None,
        }
    }));
    if wrong.is_empty() {
        return Ok(());
    }
    let more = wrong.len().saturating_sub(NAMED);
    wrong.truncate(NAMED);
    let mut what = wrong.join("; ");
    if more > 0 {
        what.push_str(&format!("; and {more} more"));
    }
    Err(FilesError::Differ { what, content })
}

/// Whether a file is a program or a library, as far as that can be seen.
fn is_code(path: &Path) -> bool {
    let mut magic = [0; 4];
    File::open(path)
        .and_then(|mut file| file.read_exact(&mut magic))
        .is_ok_and(|()| magic == *b"\x7fELF")
}

/// Those of the files that the job only reads that may be longer now than they were, or become so at any moment.
pub fn of_any_length(needed: &[NeededPath]) -> BTreeSet<PathBuf> {
    let at_least = |needed: &&NeededPath| {
        let length = needed.length?;
        let found = std::fs::metadata(&needed.path).ok()?.len();
        if found > length {
            tracing::info!(
                path = %needed.path.display(),
                was = length,
                bytes = found,
                "longer than at the checkpoint: the job has it open again as it is"
            );
        }
        (found >= length && !is_code(&needed.path)).then_some(())
    };
    (needed.iter())
        .filter(|needed| at_least(needed).is_some())
        .map(|needed| needed.path.clone())
        .collect()
}
