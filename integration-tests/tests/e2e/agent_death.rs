//! The agent dies at each step of a checkpoint and of a restore: everything of the job ends with it, and the next start
//! goes on from the checkpoint there is.

use std::fs;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{LIMIT, checkpoint, finish, wait_step};
use phos_integration_tests::{JobSpec, PhosFt, World, wait_for};

fn spec() -> JobSpec {
    JobSpec {
        interval: "500ms".into(),
        ..JobSpec::default()
    }
}

/// Starts with the failpoint and waits until all of it is gone.
fn dies(world: &World, spec: &JobSpec, step: &str) -> Result<()> {
    let phos = world.start(&spec.with_env("PHOS_FAILPOINT", step))?;
    is_gone(world, phos)
}

/// Waits until all of it is gone, by the failpoint.
fn is_gone(world: &World, mut phos: PhosFt) -> Result<()> {
    let status = phos.wait(LIMIT)?;
    ensure!(
        status.code() == Some(137) && phos.said().contains("failpoint: the process kills itself"),
        "phos-ft ended with {status}, not of its agent's death:\n{}",
        phos.tail()
    );
    wait_for("the job and all of phos-ft to be gone", LIMIT, || {
        (world.tree() == Default::default()).then_some(())
    })
    .with_context(|| format!("left over: {:?}", world.tree()))
}

/// Death at a step of the first checkpoint after a resume, or of that resume itself.
fn resumes_after(step: &str) -> Result<()> {
    let world = World::simulated(1, 256)?;
    // Two processes: between the first and the last of them lies a step.
    let spec = spec().with_trainer(&["--workers", "1"]);
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let committed = world.checkpoints()?;
    let newest = committed.last().context("no checkpoint")?.number;

    dies(&world, &spec, step)?;
    ensure!(
        world.checkpoints()?.len() == committed.len(),
        "half a checkpoint is visible, or one was lost"
    );

    let phos = world.start(&spec)?;
    wait_for("the job to be resumed", LIMIT, || {
        phos.said().contains("resumed checkpoint=").then_some(())
    })
    .with_context(|| phos.tail())?;
    ensure!(
        phos.said()
            .contains(&format!("resumed checkpoint={newest} ")),
        "{}",
        phos.tail()
    );
    finish(&world, phos, &spec)
}

/// Death while the job gets its memory back after its very first checkpoint: nothing is visible yet, so the next start
/// begins afresh.
#[test]
fn mid_attach_of_the_first_checkpoint() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    // Not before there is something to attach.
    let asked = JobSpec {
        interval: "never".into(),
        ..spec.with_env("PHOS_FAILPOINT", "agent:mid-attach")
    };
    let phos = world.start(&asked)?;
    wait_step(&world, &phos, 5)?;
    let answer = world.run(&["checkpoint"])?;
    ensure!(!answer.status.success(), "{answer:?}");
    is_gone(&world, phos)?;
    ensure!(world.checkpoints()?.is_empty());
    fs::remove_file(world.log())?;
    let phos = world.start(&spec)?;
    finish(&world, phos, &spec)
}

macro_rules! resumes_after {
    ($($name:ident: $step:literal;)*) => {
        $(#[test] fn $name() -> Result<()> { resumes_after($step) })*
    };
}

resumes_after! {
    checkpoint_after_quiesce: "agent:after-quiesce";
    checkpoint_after_detach: "agent:after-detach";
    checkpoint_before_criu: "agent:before-criu";
    checkpoint_frozen: "agent:frozen";
    checkpoint_after_criu: "agent:after-criu";
    checkpoint_before_attach: "agent:before-attach";
    restore_before_anything: "agent:before-restore";
    restore_after_files: "agent:mid-restore";
    restore_after_criu: "agent:after-restore";
    restore_mid_attach: "agent:mid-attach";
}
