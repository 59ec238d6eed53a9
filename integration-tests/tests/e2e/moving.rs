//! The job moves to a node whose GPUs have other UUIDs, goes on being checkpointed there, crashes there, and moves back.
//! Its driver goes on knowing the devices by the numbers of the GPUs that they were first, as on real hardware.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, finish, kill_job_and_wait, refused, wait_said,
};
use phos_integration_tests::{JobSpec, PhosFt, SimGpu, World, kill_all, wait_for};

/// This machine cannot take the image (`phos-ft --help`).
const MACHINE: i32 = 78;

fn gpus(world: &World, checkpoint: u64) -> Result<BTreeSet<String>> {
    let shown = world.json(&["show", &checkpoint.to_string()])?;
    let gpus = shown["gpus"].as_array().context("no GPUs")?;
    Ok(gpus.iter().map(|g| g["uuid"].to_string()).collect())
}

/// Kills the sidecar's process and waits for the next one.
fn replace_sidecar(world: &World, phos: &PhosFt) -> Result<()> {
    let supervisor = phos.child.id() as i32;
    let sidecar = || -> Vec<i32> {
        let mut all = world.tree().sidecar;
        all.retain(|pid| *pid != supervisor);
        all
    };
    let old = sidecar();
    ensure!(!old.is_empty(), "no sidecar");
    kill_all(&old);
    wait_for("another sidecar", LIMIT, || {
        sidecar().iter().any(|pid| !old.contains(pid)).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

fn to_another_node_and_back(devices: u32) -> Result<()> {
    let world = World::simulated(devices, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--devices", &devices.to_string()]);
    let here = spec.with_env("PHOS_SIM_UUID_SALT", "here");
    let there = (spec.with_env("PHOS_SIM_UUID_SALT", "there")).with_env("PHOS_SIM_INSTANCE", "5");

    let phos = world.start(&here)?;
    let first = checkpoint(&world, &phos)?;
    ensure!(gpus(&world, first)?.len() == devices as usize);
    world.lose_node()?;

    let phos = world.start(&there)?;
    wait_said(&phos, &["resumed"])?;
    let moved = checkpoint(&world, &phos).context("a checkpoint after the move")?;
    ensure!(
        gpus(&world, moved)?.is_disjoint(&gpus(&world, first)?),
        "the checkpoint made there names the GPUs of here"
    );
    kill_job_and_wait(&world, &phos).context("a crash after the move")?;
    checkpoint(&world, &phos).context("a checkpoint after the crash")?;
    // One that was not there when the job moved.
    replace_sidecar(&world, &phos)?;
    let fresh = checkpoint(&world, &phos).context("a checkpoint by another sidecar")?;
    ensure!(gpus(&world, fresh)? == gpus(&world, moved)?);
    world.lose_node()?;

    let phos = world.start(&here)?;
    let back = checkpoint(&world, &phos).context("a checkpoint after the move back")?;
    ensure!(gpus(&world, back)? == gpus(&world, first)?);
    kill_job_and_wait(&world, &phos)?;
    finish(&world, phos, &here)
}

#[test]
fn one_gpu() -> Result<()> {
    to_another_node_and_back(1)
}

#[test]
fn two_gpus() -> Result<()> {
    to_another_node_and_back(2)
}

/// The driver has two GPUs and the job sees one of them: it goes on on the other, which it never saw, and comes back.
#[test]
fn to_a_gpu_that_was_hidden_from_it() -> Result<()> {
    let world = World::simulated(2, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--expandable"]);
    let here = spec.with_env("CUDA_VISIBLE_DEVICES", "0");
    let there = spec.with_env("CUDA_VISIBLE_DEVICES", "1");

    let phos = world.start(&here)?;
    let first = checkpoint(&world, &phos)?;
    ensure!(gpus(&world, first)?.len() == 1);
    world.lose_node()?;

    let phos = world.start(&there)?;
    wait_said(&phos, &["resumed"])?;
    let moved = checkpoint(&world, &phos)?;
    ensure!(gpus(&world, moved)?.is_disjoint(&gpus(&world, first)?));
    kill_job_and_wait(&world, &phos)?;
    world.lose_node()?;

    let phos = world.start(&here)?;
    wait_said(&phos, &["resumed"])?;
    checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    finish(&world, phos, &here)
}

/// The driver moves all of its GPUs or none: where it has fewer, the job is refused, though it uses one of them only.
#[test]
fn not_to_a_machine_with_fewer_gpus_than_the_driver_had() -> Result<()> {
    let world = World::simulated(2, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_env("CUDA_VISIBLE_DEVICES", "0");
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    world.lose_node()?;

    let small = SimGpu::new(&world.path("another-machine"), 1, 256)?;
    let dir = small.dir().display().to_string();
    refused(
        &world,
        &spec.with_env("PHOS_SIM_DIR", &dir),
        MACHINE,
        &["had 2 gpus", "has 1 here", "nvidia_visible_devices"],
    )?;
    let phos = world.start(&spec)?;
    finish(&world, phos, &spec)
}
