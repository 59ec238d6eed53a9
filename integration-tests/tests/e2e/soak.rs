//! What `integration-tests/gpu/soak.py` does to real programs on a GPU, in small: jobs that never pause are checkpointed one time
//! after another, killed, and resumed where nothing but the store is left. No checkpoint fails, the job is never harmed,
//! and its losses are those of an undisturbed run.

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::scenario::{LIMIT, kill_job_and_wait, last_step, wait_said, wait_step};
use phos_integration_tests::{DeviceNode, Event, JobSpec, LossTrace, PhosFt, World};

/// Checkpoints of one life of the job: before it is killed, before its machine is lost, and after that.
const CHECKPOINTS: u64 = 4;

/// Asks for one checkpoint after another; each must be taken, and the job make a step before the next.
fn checkpoints(world: &World, phos: &PhosFt) -> Result<()> {
    for number in 0..CHECKPOINTS {
        let step = last_step(world).unwrap_or(0);
        wait_step(world, phos, step + 1)?;
        world
            .json(&["checkpoint"])
            .with_context(|| format!("checkpoint {number} of this life:\n{}", phos.tail()))?;
    }
    Ok(())
}

/// How many attempts of this sidecar failed, those of the interval too.
fn failures(world: &World) -> Result<u64> {
    let status = world.json(&["status"])?;
    status["failures"]
        .as_u64()
        .with_context(|| format!("no failures: {status}"))
}

fn crashes(phos: &PhosFt) -> usize {
    phos.times(Event::Crashed)
}

/// Waits until the job was resumed so often, and made a step since.
fn goes_on(world: &World, phos: &PhosFt) -> Result<()> {
    wait_said(phos, &["resumed checkpoint="])?;
    let step = last_step(world).unwrap_or(0);
    wait_step(world, phos, step + 1)
}

fn soak(trainer: &[&str]) -> Result<()> {
    soak_with(trainer, &[]).map(drop)
}

/// With more environment; what phos-ft and the job said in all lives.
fn soak_with(trainer: &[&str], env: &[(&str, &str)]) -> Result<String> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        trainer: trainer.iter().map(|a| (*a).to_owned()).collect(),
        // The shortest: beside those that are asked for.
        interval: "100ms".into(),
        env: env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect(),
        ..JobSpec::default()
    }
    .with_phos(&["--keep-last", "3"]);

    let phos = world.start(&spec)?;
    wait_step(&world, &phos, 5)?;
    checkpoints(&world, &phos)?;
    ensure!(failures(&world)? == 0, "{}", phos.tail());
    kill_job_and_wait(&world, &phos)?;
    goes_on(&world, &phos)?;
    // One that was under way when the job was killed.
    let before = failures(&world)?;
    ensure!(before <= 1, "{}", phos.tail());
    checkpoints(&world, &phos)?;
    ensure!(failures(&world)? == before, "{}", phos.tail());
    ensure!(crashes(&phos) == 1, "{}", phos.tail());
    let mut said = phos.said();

    world.lose_node()?;
    let mut phos = world.start(&spec)?;
    goes_on(&world, &phos)?;
    checkpoints(&world, &phos)?;
    ensure!(failures(&world)? == 0, "{}", phos.tail());
    ensure!(crashes(&phos) == 0, "{}", phos.tail());

    world.finish()?;
    let status = phos.wait(LIMIT)?;
    ensure!(status.success(), "it ended with {status}:\n{}", phos.tail());
    let trace = LossTrace::read(&world.log())?;
    let reference = world.reference(&spec, trace.len() as u64)?;
    let difference = trace.first_difference(&reference);
    ensure!(
        difference.is_none(),
        "the loss trace differs from the undisturbed run at step {difference:?}:\n{}",
        phos.tail()
    );
    said.push_str(&phos.said());
    Ok(said)
}

#[test]
fn a_loop_without_pauses() -> Result<()> {
    soak(&[])
}

/// As XLA and the watchdogs of PyTorch do.
#[test]
fn a_thread_that_polls_the_driver() -> Result<()> {
    soak(&["--polling-thread"])
}

#[test]
fn a_thread_that_computes_on_host_memory_of_the_gpu() -> Result<()> {
    soak(&["--counting-thread"])
}

#[test]
fn graphs() -> Result<()> {
    soak(&["--graph"])
}

#[test]
fn memory_that_comes_and_goes() -> Result<()> {
    soak(&["--churn-mib", "3", "--pool-mib", "2"])
}

/// Textures' memory: the driver's own, which it saves itself.
#[test]
fn arrays() -> Result<()> {
    soak(&["--arrays"])
}

#[test]
fn many_allocations_without_a_pool() -> Result<()> {
    soak(&["--allocations", "400"])
}

#[test]
fn memory_of_the_applications_own_vmm() -> Result<()> {
    soak(&["--expandable"])
}

/// Names are cut off after 15 bytes, in the middle of a character too; a child has its parent's.
#[test]
fn data_from_workers_and_short_lived_children_whose_names_are_no_text() -> Result<()> {
    soak(&["--workers", "4", "--fork-every", "7", "--strange-name"])
}

#[test]
fn several_processes_that_use_the_gpu() -> Result<()> {
    soak(&["--rank-processes", "1"])
}

/// As `torch.multiprocessing` and custom all-reduces: memory and an event by legacy IPC, which the driver does not checkpoint.
#[test]
fn memory_that_processes_share() -> Result<()> {
    let said = soak_with(&["--share"], &[])?;
    ensure!(
        said.contains("memory is shared, with an event"),
        "the event was not taken over"
    );
    Ok(())
}

/// A child that only asks NVML: it has the driver's device open as a process with CUDA has, and no shim speaks for it.
#[test]
fn a_gpu_monitor_beside_the_training() -> Result<()> {
    let node = DeviceNode::new()?;
    soak_with(&["--monitor"], &[("PHOS_SIM_NODE", &node.path())]).map(drop)
}

/// With the driver's device open, which CRIU cannot dump: nothing of it may be left when CRIU looks, in children of a fork
/// neither.
fn soak_with_an_open_device(trainer: &[&str]) -> Result<()> {
    let node = DeviceNode::new()?;
    soak_with(trainer, &[("PHOS_SIM_NODE", &node.path())]).map(drop)
}

#[test]
fn a_driver_with_an_open_device() -> Result<()> {
    soak_with_an_open_device(&["--fork-every", "3", "--rank-processes", "1"])
}

/// Apart from the above: all of these at once fill the processors of a small machine many times over, and its checkpoints only
/// wait for one.
#[test]
fn a_driver_with_an_open_device_that_a_thread_polls() -> Result<()> {
    soak_with_an_open_device(&["--fork-every", "3", "--polling-thread"])
}
