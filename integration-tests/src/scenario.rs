//! The shape of most end-to-end tests: a run is disturbed, and its loss trace equals that of an
//! undisturbed run.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::processes::kill_all;
use crate::trace::LossTrace;
use crate::world::{JobSpec, PhosFt, World, wait_for};

/// Long enough for anything that works, on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(90);

/// Runs `spec` undisturbed, then under phos-ft with `disturb` let loose on it, waits for its end
/// and compares the traces.
///
/// # Errors
/// When phos-ft fails, the traces differ, or `disturb` says so.
pub fn disturbed(
    world: &World,
    spec: &JobSpec,
    disturb: impl FnOnce(&World, &mut PhosFt) -> Result<()>,
) -> Result<()> {
    let reference = world.reference(spec)?;
    let mut phos = world.start(spec)?;
    disturb(world, &mut phos)?;
    finish(world, phos, &reference)
}

/// Waits for phos-ft to end with the job's success and compares the trace with `reference`.
///
/// # Errors
/// When either fails.
pub fn finish(world: &World, mut phos: PhosFt, reference: &LossTrace) -> Result<()> {
    let status = phos.wait(LIMIT)?;
    ensure!(
        status.success(),
        "phos-ft ended with {status}:\n{}",
        phos.tail()
    );
    let trace = LossTrace::read(&world.log())?;
    let difference = trace.first_difference(reference);
    ensure!(
        difference.is_none(),
        "the loss trace differs from the undisturbed run at step {difference:?}:\n{}",
        phos.tail()
    );
    Ok(())
}

/// SIGKILLs the job's processes and waits until others have taken their place.
///
/// # Errors
/// When nobody resumes the job.
pub fn kill_job_and_wait(world: &World, phos: &PhosFt) -> Result<()> {
    let old = world.tree().job;
    ensure!(!old.is_empty(), "no job to kill:\n{}", phos.tail());
    kill_all(&old);
    wait_for("the job to come back", LIMIT, || {
        let job = world.tree().job;
        (!job.is_empty() && job.iter().all(|pid| !old.contains(pid))).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

/// The last step in the job's log.
pub fn last_step(world: &World) -> Option<u64> {
    LossTrace::read(&world.log()).ok()?.last_step()
}

/// Waits until the job has logged `step`.
///
/// # Errors
/// When it does not.
pub fn wait_step(world: &World, phos: &PhosFt, step: u64) -> Result<()> {
    wait_for(&format!("step {step}"), LIMIT, || {
        (last_step(world)? >= step).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}
