//! A process of the job that begins to use the GPU when it is too late for it to be in a checkpoint, as a compile worker does
//! that begins to measure: it costs the checkpoint a second try at once, and nothing else.

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{LIMIT, disturbed, kill_job_and_wait, stops, wait_step};
use phos_integration_tests::{DeviceNode, JobSpec, World, wait_for};

/// The agent waits at `point` until the worker has memory on the GPU.
fn begins_at(point: &str) -> Result<()> {
    let world = World::simulated(1, 256)?;
    let node = DeviceNode::new()?;
    let file = world.path("begin").display().to_string();
    let spec = JobSpec {
        interval: "never".into(),
        env: vec![
            ("PHOS_SIM_NODE".into(), node.path()),
            ("PHOS_FAILPOINT".into(), format!("{point}=wait:{file}")),
        ],
        ..JobSpec::default()
    }
    .with_trainer(&["--work-when", &file]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        let taken = world.json(&["checkpoint"]).with_context(|| phos.tail())?;
        let id = taken["id"].as_u64().context("no number")?;
        let said = phos.said();
        ensure!(
            said.contains("failpoint: the process waits")
                && said.contains("began to use cuda during the attempt")
                && said.contains("the checkpoint is begun again at once"),
            "{}",
            phos.tail()
        );
        let status = world.json(&["status"])?;
        ensure!(status["failures"] == 0, "{status}");
        ensure!(stops(phos) == 2, "{}", phos.tail());
        // With the worker, which verifies its memory at each step.
        kill_job_and_wait(world, phos)?;
        wait_for("the job to be resumed", LIMIT, || {
            phos.said()
                .contains(&format!("resumed checkpoint={id}"))
                .then_some(())
        })
        .with_context(|| phos.tail())
    })
}

/// Before the driver is asked which processes use it.
#[test]
fn a_process_that_begins_when_the_others_have_let_go() -> Result<()> {
    begins_at("agent:after-detach")
}

/// After that: CRIU meets its devices.
#[test]
fn a_process_that_begins_when_the_others_are_checkpointed() -> Result<()> {
    begins_at("agent:before-criu")
}
