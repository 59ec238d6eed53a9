//! Files that the job has open for writing go back to their checkpoint, whatever happened to them.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, finish, kill_job_and_wait, last_step, refused, wait_step,
};
use phos_integration_tests::{JobSpec, World, kill_all, wait_for};

fn after_one_checkpoint(change: impl FnOnce(&World) -> Result<()>) -> Result<()> {
    let world = World::simulated(1, 256)?;
    // One checkpoint, and no other before the crash.
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let step = last_step(world).unwrap_or(0);
        wait_step(world, phos, step + 10)?;
        kill_all(&world.tree().agent);
        let _ = phos.wait(LIMIT)?;
        world.kill_everything()?;
        change(world)?;
        *phos = world.start(&spec)?;
        Ok(())
    })
}

#[test]
fn a_log_that_grew_is_cut_and_what_was_cut_is_kept() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let step = last_step(world).unwrap_or(0);
        wait_step(world, phos, step + 5)?;
        kill_job_and_wait(world, phos)?;
        let kept = fs::read_dir(world.path("work"))?
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().contains(".phos-cut-"))
            .count();
        ensure!(kept > 0, "no cut-off part was kept beside the log");
        Ok(())
    })
}

#[test]
fn a_log_that_was_truncated_is_written_again() -> Result<()> {
    after_one_checkpoint(|world| {
        fs::OpenOptions::new()
            .write(true)
            .open(world.log())?
            .set_len(7)?;
        Ok(())
    })
}

#[test]
fn a_log_that_was_deleted_is_written_again() -> Result<()> {
    after_one_checkpoint(|world| Ok(fs::remove_file(world.log())?))
}

/// As PyTorch's DataLoader and compilers leave them: a listening socket, a named pipe and mapped code below the temporary
/// directory, of which another machine has nothing.
#[test]
fn what_the_job_has_in_its_temporary_directory_is_made_on_another_machine() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--scratch"]);
    let scratch = |world: &World| -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(world.path("tmp"))?;
        Ok(entries.flatten().map(|e| e.path()).collect())
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        for another in ["first", "second"] {
            let before = scratch(world)?;
            ensure!(before.len() == 1, "{before:?}");
            world.lose_node()?;
            *phos = world.start(&spec)?;
            let there = wait_for("the job on another machine", LIMIT, || last_step(world))?;
            wait_step(world, phos, there + 5)?;
            ensure!(scratch(world)? == before, "another directory");
            let meta = fs::metadata(&before[0])?;
            ensure!(
                meta.permissions().mode() & 0o7777 == 0o700,
                "its owner's alone: {meta:?}"
            );
            // The next is one of a machine that did not make these itself.
            checkpoint(world, phos).context(another)?;
        }
        Ok(())
    })?;
    ensure!(scratch(&world)?.is_empty(), "the job removes it at its end");
    Ok(())
}

/// Appends the numbers of the range to what the trainer follows.
fn append(data: &std::path::Path, numbers: std::ops::Range<u64>) -> Result<()> {
    let bytes: Vec<u8> = numbers.flat_map(u64::to_le_bytes).collect();
    let mut file = fs::OpenOptions::new()
        .append(true)
        .create(true)
        .open(data)?;
    Ok(file.write_all(&bytes)?)
}

/// Shared by several jobs, say, of which one goes on writing to it.
#[test]
fn a_data_set_that_grew_is_read_on_and_one_that_shrank_is_refused_by_name() -> Result<()> {
    const FIRST: u64 = 10_000;
    let world = World::simulated(1, 256)?;
    // Not where the job's temporary files are, of which the checkpoint has the content.
    let home = tempfile::Builder::new()
        .prefix("phos-data-")
        .tempdir_in("/var/lib")?;
    let data = home.path().join("set.bin");
    append(&data, 0..FIRST)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--follow", &data.display().to_string()]);
    let mut phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    append(&data, FIRST..FIRST + 7)?;
    kill_job_and_wait(&world, &phos)?;
    let there = wait_for("the job's step", LIMIT, || last_step(&world))?;
    wait_step(&world, &phos, there + 5)?;
    // The next checkpoint knows the new length, and another machine finds it longer again.
    checkpoint(&world, &phos)?;
    world.lose_node()?;
    fs::OpenOptions::new()
        .write(true)
        .open(&data)?
        .set_len(FIRST * 8 - 1)?;
    refused(
        &world,
        &spec,
        78,
        &["set.bin has 79999 bytes, 80056 at the checkpoint", "mount"],
    )?;
    fs::remove_file(&data)?;
    refused(&world, &spec, 78, &["set.bin is missing"])?;
    append(&data, 0..FIRST + 1000)?;
    phos = world.start(&spec)?;
    finish(&world, phos, &spec)
}

/// What is named so in `/dev/shm`, removed with the test.
struct InMemory(String);

impl InMemory {
    fn new(world: &World) -> Self {
        Self(format!("phos-test-{}", world.job))
    }

    fn paths(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.display().to_string().contains(&self.0))
            .collect()
    }

    fn lose(&self) {
        for path in self.paths() {
            let _ = fs::remove_file(path);
        }
    }
}

impl Drop for InMemory {
    fn drop(&mut self) {
        self.lose();
    }
}

/// Killed and resumed, then resumed on another machine, twice.
fn comes_back(world: &World, memory: &InMemory, spec: &JobSpec) -> Result<()> {
    disturbed(world, spec, |world, phos| {
        checkpoint(world, phos)?;
        let step = last_step(world).unwrap_or(0);
        wait_step(world, phos, step + 5)?;
        kill_job_and_wait(world, phos)?;
        for another in ["first", "second"] {
            wait_step(world, phos, step + 5)?;
            checkpoint(world, phos).context(another)?;
            world.lose_node()?;
            memory.lose();
            *phos = world.start(spec)?;
            wait_for("the job on another machine", LIMIT, || last_step(world))?;
        }
        Ok(())
    })?;
    ensure!(memory.paths().is_empty(), "the job removes it at its end");
    Ok(())
}

#[test]
fn large_shared_memory_and_a_deleted_file_of_more_than_4_gib_come_back() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let memory = InMemory::new(&world);
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    };
    comes_back(&world, &memory, &spec.with_trainer(&["--large", &memory.0]))
}

/// As Python's multiprocessing makes them under spawn: mapped by names that are gone, and opened by others.
#[test]
fn named_semaphores_come_back_with_their_values_and_shared() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let memory = InMemory::new(&world);
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    };
    let before = link_remaps();
    comes_back(
        &world,
        &memory,
        &spec.with_trainer(&["--semaphores", &memory.0]),
    )?;
    ensure!(
        link_remaps() == before,
        "what CRIU makes is not left behind"
    );
    Ok(())
}

fn link_remaps() -> usize {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .starts_with("link_remap.")
        })
        .count()
}
