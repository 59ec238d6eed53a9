//! A GPU without room for a snapshot: what the job leaves alone in its first calls after a checkpoint leaves while it runs. Whatever the job
//! does, what cannot be restored is no checkpoint, and the job is not held for longer than a few seconds.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, finished, kill_job_and_wait, last_step, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World, wait_for};
use serde_json::Value;

/// Most of a device is written anew at the end of each step, and leaves slowly.
fn full() -> Result<(World, JobSpec)> {
    let world = World::simulated(1, 192)?;
    let early = world.path("early").display().to_string();
    let spec = JobSpec {
        env: vec![("PHOS_SIM_LINK_MBPS".into(), "250".into())],
        ..plain()
    }
    .with_trainer(&["--state-mib", "150", "--state-early-at", &early]);
    Ok((world, spec))
}

/// The same without all this memory, which the job verifies itself.
fn plain() -> JobSpec {
    JobSpec {
        steps: 5000,
        interval: "never".into(),
        ..JobSpec::default()
    }
}

fn part(answer: &Value, name: &str) -> f64 {
    answer["parts_ms"][name].as_f64().unwrap_or(0.0)
}

/// Takes checkpoints until that is so. On a busy machine a stop may last so long by itself that nothing makes it longer.
fn checkpoints_until(
    world: &World,
    phos: &PhosFt,
    what: &str,
    mut is_so: impl FnMut(&Value) -> bool,
) -> Result<()> {
    wait_step(world, phos, 5)?;
    wait_for(what, LIMIT, || {
        let answer = world.run(&["checkpoint", "--json"]).ok()?;
        let answer = serde_json::from_slice(&answer.stdout).unwrap_or(Value::Null);
        is_so(&answer).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

/// Until it is known what the job leaves alone: the first checkpoint measures the link, after the second it is seen.
fn learned(world: &World, phos: &PhosFt) -> Result<()> {
    let before = searches(phos);
    checkpoints_until(world, phos, "what the job leaves alone", |_| {
        searches(phos) > before
    })
}

fn searches(phos: &PhosFt) -> usize {
    phos.said()
        .matches("looked for memory that the job")
        .count()
}

#[test]
fn what_a_job_leaves_alone_leaves_the_gpu_while_it_runs() -> Result<()> {
    let (world, spec) = full()?;
    let mut phos = world.start(&spec)?;
    learned(&world, &phos)?;
    let mut besides = 0;
    checkpoints_until(&world, &phos, "copies beside the job", |answer| {
        besides += usize::from(part(answer, "beside") > 0.0);
        besides == 3
    })?;
    kill_job_and_wait(&world, &phos)?;
    // Another process, whose memory has other names: it is looked at again.
    learned(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}

#[test]
fn memory_that_is_written_before_it_was_copied_costs_the_checkpoint_and_nothing_else() -> Result<()>
{
    let (world, spec) = full()?;
    let mut phos = world.start(&spec)?;
    learned(&world, &phos)?;
    std::fs::write(world.path("early"), "")?;
    let began = last_step(&world).context("no step")?;
    wait_step(&world, &phos, began + 3)?;
    let mut before = world.checkpoints()?.len();
    checkpoints_until(&world, &phos, "one that fails", |answer| {
        before += usize::from(answer["id"].is_u64());
        answer["id"].is_null()
    })?;
    ensure!(
        phos.said().contains("has written gpu memory"),
        "{}",
        phos.tail()
    );
    ensure!(world.checkpoints()?.len() == before, "{}", phos.tail());
    ensure!(world.json(&["status"])?["unprotected"]["reason"] == "overwritten");
    // Those that follow are taken as ever.
    let answer = world.json(&["checkpoint"])?;
    ensure!(part(&answer, "beside") == 0.0, "{answer}");
    kill_job_and_wait(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}

/// The job waits for a copy, and who copies is gone: it goes on at once, and the next sidecar's checkpoints are good.
#[test]
fn a_sidecar_that_dies_while_it_copies_beside_the_job() -> Result<()> {
    let (world, spec) = full()?;
    let fired = world.path("fired");
    let point = format!("sidecar:beside=once:{}", fired.display());
    let mut phos = world.start(&spec.with_env("PHOS_FAILPOINT", &point))?;
    learned(&world, &phos)?;
    checkpoints_until(&world, &phos, "the failpoint to fire", |_| fired.exists())?;
    let (at, began) = (last_step(&world).context("no step")?, Instant::now());
    wait_for("the job to go on", LIMIT, || {
        (last_step(&world)? > at + 2).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    // Its own patience is longer.
    ensure!(began.elapsed() < Duration::from_secs(4), "{}", phos.tail());
    checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}

/// The job waits for a copy, and who copies hangs: it goes on by itself.
#[test]
fn a_sidecar_that_hangs_while_it_copies_beside_the_job() -> Result<()> {
    let (world, spec) = full()?;
    let hangs = world.path("hangs");
    let point = format!("sidecar:beside=wait:{}", hangs.display());
    let mut phos = world.start(&spec.with_env("PHOS_FAILPOINT", &point))?;
    learned(&world, &phos)?;
    let seen = AtomicBool::new(false);
    std::thread::scope(|scope| -> Result<()> {
        let asked = scope.spawn(|| {
            while !seen.load(Ordering::Relaxed) {
                // Good or not: the next one is.
                world.run(&["checkpoint"])?;
            }
            anyhow::Ok(())
        });
        let hung = wait_for("the sidecar to hang", LIMIT, || {
            hangs.exists().then_some(())
        });
        seen.store(true, Ordering::Relaxed);
        hung.map_err(|e| e.context(phos.tail()))?;
        let at = last_step(&world).context("no step")?;
        wait_step(&world, &phos, at + 3)?;
        std::fs::remove_file(&hangs)?;
        asked.join().map_err(|_| anyhow::anyhow!("a panic"))?
    })?;
    checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}
