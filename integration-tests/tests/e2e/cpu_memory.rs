//! Memory of the job's processes on the CPU, of every kind, comes back as it was, and all cores copy it.

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, kill_job_and_wait, number, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World, wait_for};

/// Memory that the simulated driver saves of the trainer's context, in bytes; see `spec`.
const CONTEXT: f64 = 40.0 * 1024.0 * 1024.0;

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
        // What CRIU asks of their mappings was read for it, of the trainer and of its workers.
        for (name, at_least) in [
            ("bytes", CONTEXT + 10e6),
            ("as_left", CONTEXT + 5e6),
            ("mappings", 2.5),
        ] {
            let copied = copied(phos, name)?;
            let least = copied.iter().copied().reduce(f64::min);
            ensure!(
                copied.len() == 3 && least.is_some_and(|least| least > at_least),
                "{name}: {copied:?}\n{}",
                phos.tail()
            );
        }
        // What the driver saved its own in was the shim's to give, three times; the process that was brought back says once more what its image was saved in.
        wait_for("what the shim says of it", LIMIT, || {
            let said = phos.said();
            (said.matches("bytes for control state, taken in").count() >= 4).then_some(())
        })?;
        world.kill_everything()?;
        std::fs::remove_file(world.log()).context("the job's log")?;
        *phos = world.start(&spec())?;
        Ok(())
    })
}
