//! Memory of the job's processes on the CPU, of every kind, comes back as it was, and all cores copy it.

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::scenario::{
    checkpoint, disturbed, kill_job_and_wait, number, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World};

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        env: vec![("PHOS_LOG".into(), "info,phos=debug".into())],
        ..JobSpec::default()
    }
    .with_trainer(&["--memories", "--workers", "2", "--fork-every", "3"])
}

/// Bytes that the agent copied, at each checkpoint.
fn copied(phos: &PhosFt) -> Result<Vec<f64>> {
    let said = phos.said();
    let lines = said.lines().filter(|line| line.contains("memory copied"));
    lines.map(|line| number(line, "bytes")).collect()
}

#[test]
fn memory_of_every_kind_comes_back() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &spec(), |world, phos| {
        wait_step(world, phos, 3)?;
        checkpoint(world, phos)?;
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)?;
        // What was brought back is as good as what was there.
        checkpoint(world, phos)?;
        let copied = copied(phos)?;
        let least = copied.iter().copied().reduce(f64::min);
        // The large part of what the trainer keeps.
        ensure!(
            copied.len() == 3 && least.is_some_and(|bytes| bytes > 10e6),
            "{copied:?}\n{}",
            phos.tail()
        );
        world.kill_everything()?;
        std::fs::remove_file(world.log()).context("the job's log")?;
        *phos = world.start(&spec())?;
        Ok(())
    })
}
