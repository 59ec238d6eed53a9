//! `phos-ft export ID DIR`: a checkpoint as plain files, for other tools and for people.
//!
//! ```text
//! DIR/manifest.json          what `phos-ft show --json` says
//! DIR/gpu/<pid>-<number>     device memory, an allocation each
//! DIR/cpu/<path>             the CPU image
//! DIR/files/<path>           files of the job of which the content is kept
//! ```
//!
//! # Consistency
//!
//! Every chunk is checked by its name before it is written. `manifest.json` is written last: a directory without it is
//! not whole.
//!
//! # Memory
//!
//! Only what the reader holds: a few ranges. Zeros are left out of the files, which are sparse.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

use futures::StreamExt;
use phos_storage::{ChunkList, Codec, Manifest};

use super::args::{Common, Output};
use super::look::{job_failed, open_for, print_json};
use super::{exit, fail, history, runtime};
use crate::engine::{self, CheckpointId, Reading};
use crate::size::human;

/// A file that the export writes.
struct Target<'a> {
    path: PathBuf,
    length: u64,
    chunks: &'a ChunkList,
}

pub(super) fn run(common: &Common, id: CheckpointId, directory: &Path, output: Output) -> u8 {
    match runtime() {
        Ok(runtime) => runtime.block_on(async {
            match export(common, id, directory, output).await {
                Ok(()) => exit::OK,
                Err(code) => code,
            }
        }),
        Err(code) => code,
    }
}

fn io_failed(path: &Path, error: &io::Error) -> u8 {
    fail(
        format_args!(
            "cannot write {}: {error}; choose a directory with room that this user may write",
            path.display()
        ),
        exit::CANNOT_CREATE,
    )
}

/// Makes the directory; one that has something in it is refused.
fn make(directory: &Path) -> Result<(), u8> {
    fs::create_dir_all(directory).map_err(|e| io_failed(directory, &e))?;
    let mut entries = fs::read_dir(directory).map_err(|e| io_failed(directory, &e))?;
    if entries.next().is_some() {
        return Err(fail(
            format_args!(
                "{} is not empty: give a directory of its own, so that nothing is overwritten",
                directory.display()
            ),
            exit::CANNOT_CREATE,
        ));
    }
    Ok(())
}

/// A path of an image below a directory; a store must not be able to name anything else.
fn below(directory: &Path, path: &Path) -> Result<PathBuf, u8> {
    let mut found = directory.to_owned();
    let mut parts = 0;
    for part in path.components() {
        match part {
            Component::Normal(name) => {
                found.push(name);
                parts += 1;
            }
            Component::RootDir | Component::CurDir => {}
            Component::ParentDir | Component::Prefix(_) => parts = usize::MAX,
        }
        if parts == usize::MAX {
            break;
        }
    }
    if parts == 0 || parts == usize::MAX {
        return Err(fail(
            format_args!(
                "the checkpoint names a file {}, which is no path that can be exported: it is damaged, `phos-ft verify` \
                 says more",
                path.display()
            ),
            exit::DATA,
        ));
    }
    Ok(found)
}

fn targets<'a>(directory: &Path, manifest: &'a Manifest) -> Result<Vec<Target<'a>>, u8> {
    let mut found = Vec::new();
    let gpu = directory.join("gpu");
    for a in &manifest.body.allocations {
        found.push(Target {
            path: gpu.join(format!("{}-{}", a.owner, a.id)),
            length: a.size_bytes,
            chunks: &a.chunks,
        });
    }
    let cpu = directory.join("cpu");
    for file in &manifest.body.cpu_image {
        found.push(Target {
            path: below(&cpu, file.path.as_path())?,
            length: file.length,
            chunks: &file.chunks,
        });
    }
    Ok(found)
}

async fn export(
    common: &Common,
    id: CheckpointId,
    directory: &Path,
    output: Output,
) -> Result<(), u8> {
    let job = open_for(common, id).await?;
    let (manifest, hold) = job
        .hold(id.number, &engine::reader("export"), engine::unix_millis())
        .await
        .map_err(|e| job_failed(&e))?;
    let held = Reading::keep(hold);
    job.check_packs(&manifest)
        .await
        .map_err(|e| job_failed(&e))?;
    make(directory)?;
    let targets = targets(directory, &manifest)?;
    let mut places: HashMap<u32, Vec<(usize, u64)>> = HashMap::new();
    for (at, target) in targets.iter().enumerate() {
        let failed = |e: io::Error| io_failed(&target.path, &e);
        if let Some(parent) = target.path.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&target.path)
            .map_err(failed)?;
        file.set_len(target.length).map_err(failed)?;
        for extent in manifest.extents(target.chunks) {
            let zeros = (manifest.chunks.get(extent.chunk as usize))
                .is_some_and(|chunk| chunk.codec == Codec::Zero);
            if !zeros {
                let known = places.entry(extent.chunk).or_default();
                known.push((at, extent.offset));
            }
        }
    }
    let reader = job.reader(&manifest).map_err(|e| job_failed(&e))?;
    let mut chunks = reader.fetch(places.keys().copied());
    while let Some(fetched) = chunks.next().await {
        let (index, bytes) = fetched.map_err(|e| {
            let code = if e.is_permanent() {
                exit::DATA
            } else {
                exit::UNAVAILABLE
            };
            fail(&e, code)
        })?;
        for &(at, offset) in places.get(&index).into_iter().flatten() {
            let Some(target) = targets.get(at) else {
                continue;
            };
            // Opened each time: an image may have more files than a process may hold open.
            let write = || {
                let file = OpenOptions::new().write(true).open(&target.path)?;
                file.write_all_at(&bytes, offset)
            };
            tokio::task::block_in_place(write).map_err(|e| io_failed(&target.path, &e))?;
        }
    }
    for target in &targets {
        let synced = fs::File::open(&target.path).and_then(|file| file.sync_all());
        synced.map_err(|e| io_failed(&target.path, &e))?;
    }
    held.release().await;
    let described = history::describe(&job, &manifest, None);
    let path = directory.join("manifest.json");
    let text = serde_json::to_vec_pretty(&described).map_err(|e| io_failed(&path, &e.into()))?;
    fs::write(&path, text).map_err(|e| io_failed(&path, &e))?;
    match output {
        Output::Json => print_json(&serde_json::json!({
            "id": id, "directory": directory, "files": targets.len(), "bytes": manifest.image_bytes()
        })),
        Output::Text => println!(
            "checkpoint {id}: {} in {} files below {}",
            human(manifest.image_bytes()),
            targets.len(),
            directory.display()
        ),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_directory() {
        let directory = Path::new("/export/files");
        assert_eq!(
            below(directory, Path::new("/train/log.txt")).unwrap(),
            Path::new("/export/files/train/log.txt")
        );
        for path in ["../x", "/a/../../x", "", "/", "."] {
            assert_eq!(
                below(directory, Path::new(path)),
                Err(exit::DATA),
                "{path:?}"
            );
        }
    }
}
