//! Which history of the store the tier on this machine belongs to, as a file says it; and the directories of tiers beside it.
//!
//! # Crash consistency
//!
//! The file is replaced as a whole. A tier that is set aside has another name before the file says that there is another.

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use phos_storage::{JobError, OpenError};
use serde::{Deserialize, Serialize};

use crate::engine::random_u64;

pub(super) const FILE: &str = "lineage.json";

const VERSION: u32 = 1;

/// The most bytes that a lineage file may have.
const MAX: u64 = 64 << 10;

/// What the names of tiers that were set aside begin with.
pub(super) const ASIDE: &str = "aside-";

/// Tiers set aside that are kept.
const KEPT_ASIDE: usize = 2;

/// Why no checkpoint can be kept on this machine.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum LocalTierError {
    #[error("{}: {source}", path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{} is damaged or of another phos-ft; to begin anew here, delete the directory it is in", path.display())]
    Lineage { path: PathBuf },
    #[error("what was just written to {} is gone: see to it that nothing else deletes files there", path.display())]
    Gone { path: PathBuf },
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Job(#[from] JobError),
}

/// Which history of the store the checkpoints here belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Lineage {
    version: u32,
    /// Address of the store.
    pub(super) store: String,
    /// Name of the tier: of its directory, and in the store's records.
    pub(super) id: String,
    /// The newest epoch of the store of which it is known that nobody else had the job between the checkpoints here and it.
    pub(super) epoch: Option<u64>,
    /// Set while a take-over is under way: the epoch that it begins if nobody writes meanwhile.
    pub(super) taking: Option<u64>,
}

impl Lineage {
    pub(super) fn new(store: &str) -> Lineage {
        Lineage {
            version: VERSION,
            store: store.to_owned(),
            id: format!("{:016x}", random_u64()),
            epoch: None,
            taking: None,
        }
    }

    /// `None`: there is none.
    pub(super) fn read(directory: &Path, store: &str) -> Result<Option<Lineage>, LocalTierError> {
        let path = directory.join(FILE);
        let failed = |source| LocalTierError::File {
            path: path.clone(),
            source,
        };
        match std::fs::metadata(&path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(failed(e)),
            Ok(found) if found.len() > MAX => return Err(LocalTierError::Lineage { path }),
            Ok(_) => {}
        }
        let bytes = std::fs::read(&path).map_err(failed)?;
        let known = serde_json::from_slice::<Lineage>(&bytes).ok();
        // The name becomes a path.
        let known = known.filter(|l| l.version == VERSION && l.store == store && is_id(&l.id));
        known.map(Some).ok_or(LocalTierError::Lineage { path })
    }

    pub(super) fn write(&self, directory: &Path) -> Result<(), LocalTierError> {
        let path = directory.join(FILE);
        let replace = || -> io::Result<()> {
            let new = directory.join(format!("{FILE}.new"));
            let mut file = std::fs::File::create(&new)?;
            file.write_all(&serde_json::to_vec(self)?)?;
            file.sync_all()?;
            std::fs::rename(&new, &path)?;
            std::fs::File::open(directory)?.sync_all()
        };
        replace().map_err(|source| LocalTierError::File { path, source })
    }
}

/// Whether this can be the name of a tier.
fn is_id(name: &str) -> bool {
    name.len() == 16 && name.bytes().all(|b| b.is_ascii_hexdigit())
}

/// Which of the tiers set aside the one of this name is; `None`: it is none of them.
fn number_aside(name: &str) -> Option<u64> {
    let (number, id) = name.strip_prefix(ASIDE)?.split_once('-')?;
    number.parse().ok().filter(|_| is_id(id))
}

/// The tiers set aside with their numbers, oldest first.
pub(super) fn tiers_aside(directory: &Path) -> Vec<(u64, PathBuf)> {
    let mut found: Vec<(u64, PathBuf)> = std::fs::read_dir(directory)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((number_aside(entry.file_name().to_str()?)?, entry.path())))
        .collect();
    found.sort_unstable();
    found
}

/// Gives a tier a name under which no start takes it up or deletes it. Where it is now.
pub(super) fn move_aside(directory: &Path, id: &str) -> io::Result<PathBuf> {
    let newest = tiers_aside(directory).last().map_or(0, |(n, _)| *n);
    let path = directory.join(format!("{ASIDE}{}-{id}", newest.saturating_add(1)));
    std::fs::rename(directory.join(id), &path)?;
    // Before a lineage says that there is another tier.
    std::fs::File::open(directory)?.sync_all()?;
    Ok(path)
}

/// Deletes all tiers but this one and the newest of those set aside.
pub(super) fn remove_all_but(directory: &Path, id: &str) {
    let remove = |path: &Path| {
        if let Err(e) = std::fs::remove_dir_all(path) {
            tracing::warn!(path = %path.display(), error = %e, "not deleted");
        }
    };
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
        let is_aside = name.to_str().and_then(number_aside).is_some();
        if is_directory && !is_aside && name != id {
            let path = entry.path();
            tracing::info!(path = %path.display(), "checkpoints of a history that others went on with are deleted");
            remove(&path);
        }
    }
    let mut aside = tiers_aside(directory);
    aside.truncate(aside.len().saturating_sub(KEPT_ASIDE));
    for (_, path) in aside {
        tracing::warn!(path = %path.display(), "checkpoints that were set aside are deleted, as newer ones were");
        remove(&path);
    }
}
