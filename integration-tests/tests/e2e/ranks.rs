//! Ranks that wait for each other on their GPUs, through what looks like NCCL: held anywhere else than at a common point, some of them
//! never fall quiet.

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, kill_job_and_wait, last_step, wait_step,
};
use phos_integration_tests::{JobSpec, World, bin_dir, kill_all, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// Four ranks at full speed.
fn ranks() -> JobSpec {
    let library = bin_dir().join("libphos_nccl_sim.so");
    JobSpec {
        steps: 100_000,
        interval: "never".into(),
        trainer: ["--rank-processes", "3", "--nccl"]
            .map(String::from)
            .into_iter()
            .chain([library.display().to_string()])
            .chain(["--layers", "16,16,4", "--batch", "16"].map(String::from))
            .collect(),
        ..JobSpec::default()
    }
}

/// Checkpoints one after another, without a pause; none fails.
#[test]
fn twenty_checkpoints_of_ranks_that_never_pause() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &ranks(), |world, phos| {
        wait_step(world, phos, 5)?;
        for number in 0..20 {
            let taken = world
                .json(&["checkpoint"])
                .with_context(|| format!("checkpoint {number}:\n{}", phos.tail()))?;
            ensure!(taken["id"].is_u64(), "checkpoint {number}: {taken}");
        }
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// One rank of several dies: all of them come back from where they were together.
#[test]
fn a_rank_that_is_killed() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &ranks(), |world, phos| {
        checkpoint(world, phos)?;
        let job = world.tree().job;
        let last = job.last().context("no job")?;
        kill_all(&[*last]);
        wait_for("the ranks to come back", LIMIT, || {
            let now = world.tree().job;
            (!now.is_empty() && now.iter().all(|pid| !job.contains(pid))).then_some(())
        })
        .map_err(|e| e.context(phos.tail()))?;
        checkpoint(world, phos).map(drop)
    })
}

/// A rank that does not answer: the others are held for no longer than a try, whose failure costs nothing but the checkpoint.
#[test]
fn a_rank_that_stands_still_for_a_while() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = ranks().with_phos(&["--quiesce-timeout", "1s"]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        let last = *world.tree().job.last().context("no job")?;
        let rank = Pid::from_raw(last).context("no process")?;
        kill_process(rank, Signal::STOP)?;
        let refused = world.run(&["checkpoint"]);
        kill_process(rank, Signal::CONT)?;
        ensure!(!refused?.status.success(), "{}", phos.tail());
        // No gate stays closed: the next checkpoint would open it.
        let step = last_step(world).context("no step")?;
        wait_step(world, phos, step + 20)?;
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}
