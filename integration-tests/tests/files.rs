//! Files that the job has open for writing go back to their checkpoint, whatever happened to them.

use std::fs;

use anyhow::{Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, kill_job_and_wait, last_step, wait_step,
};
use phos_integration_tests::{JobSpec, World, kill_all};

fn after_one_checkpoint(change: impl FnOnce(&World) -> Result<()>) -> Result<()> {
    let world = World::simulated(1, 256)?;
    // One checkpoint, and no other before the crash.
    let spec = JobSpec {
        steps: 300,
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
        steps: 300,
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
