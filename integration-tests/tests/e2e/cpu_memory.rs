//! Memory of the job's processes on the CPU, of every kind, comes back as it was, and all cores copy it.

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::scenario::{
    checkpoint, disturbed, kill_job_and_wait, number, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World};

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        env: vec![
            ("PHOS_LOG".into(), "info,phos=debug".into()),
            ("PHOS_SHIM_LOG".into(), "debug".into()),
            // Memory of the context's own, which the driver saves in the process.
            ("PHOS_SIM_CTX_MIB".into(), "40".into()),
        ],
        ..JobSpec::default()
    }
    .with_trainer(&["--memories", "--workers", "2", "--fork-every", "3"])
}

/// Bytes that the agent copied, at each checkpoint, by this name.
fn copied(phos: &PhosFt, name: &str) -> Result<Vec<f64>> {
    let said = phos.said();
    let lines = said.lines().filter(|line| line.contains("memory copied"));
    lines.map(|line| number(line, name)).collect()
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
        // The large part of what the trainer keeps; and of it what is each process's own, as soon as CRIU has left that process.
        for (name, at_least) in [("bytes", 10e6), ("as_left", 5e6)] {
            let copied = copied(phos, name)?;
            let least = copied.iter().copied().reduce(f64::min);
            ensure!(
                copied.len() == 3 && least.is_some_and(|bytes| bytes > at_least),
                "{name}: {copied:?}\n{}",
                phos.tail()
            );
        }
        // What the driver saved it in was the shim's to give, also in the process that was brought back.
        let given = phos
            .said()
            .matches("in huge pages for control state")
            .count();
        ensure!(given == 3, "{given}\n{}", phos.tail());
        world.kill_everything()?;
        std::fs::remove_file(world.log()).context("the job's log")?;
        *phos = world.start(&spec())?;
        Ok(())
    })
}
