//! A GPU without room for a snapshot: what the job leaves alone in its first calls after a checkpoint leaves while it runs. Whatever the job
//! does, what cannot be restored is no checkpoint, and the job is not held for longer than a few seconds.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, finished, kill_job_and_wait, last_step, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World, wait_for};
use serde_json::Value;

/// MiB of a device, and of what is written anew in each step: more than a transfer must have to tell how fast the link is.
const DEVICE: u64 = 112;
const STATE_MIB: u64 = 72;
/// The same in MB.
const STATE: f64 = 75.5;
/// MB/s over the link of its device, at first.
const RATE: f64 = 50.0;

/// Most of a device is written anew at the end of each step, and leaves slowly: in a second and a half, or more (see [`slower_than_dumps`]). A step has
/// waits at which most of that is left alone for long, and others.
fn full() -> Result<(World, JobSpec)> {
    let world = World::simulated(1, DEVICE)?;
    let early = world.path("early").display().to_string();
    let spec = JobSpec {
        env: vec![("PHOS_SIM_LINK_MBPS".into(), RATE.to_string())],
        ..plain()
    }
    .with_trainer(&[
        "--state-mib",
        &STATE_MIB.to_string(),
        "--state-early-at",
        &early,
    ]);
    Ok((world, spec))
}

/// The same without all this memory, which the job verifies itself.
fn plain() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
}

fn part(answer: &Value, name: &str) -> f64 {
    answer["parts_ms"][name].as_f64().unwrap_or(0.0)
}

/// Has all memory leave in three times what a dump takes on this machine, as busy as it is: beside a stop that lasts for long by itself there is nothing
/// to gain. It does not take so long that not all of it may leave while the job runs.
fn slower_than_dumps(world: &World, answer: &Value) -> Result<()> {
    let dump = part(answer, "dump") / 1e3;
    if dump == 0.0 {
        // It failed, and says nothing of that.
        return Ok(());
    }
    let seconds = (3.0 * dump).clamp(STATE / RATE, 2.8);
    world.sim()?.set_link_mbps(0, STATE / seconds)
}

/// Takes checkpoints until that is so.
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
        if is_so(&answer) {
            return Some(Ok(()));
        }
        slower_than_dumps(world, &answer).err().map(Err)
    })
    .and_then(|so| so)
    .map_err(|e| e.context(phos.tail()))
}

/// Until it is known what the job leaves alone: the first checkpoint measures the link, after the second it is seen, and at another wait after another
/// one if that was too little.
fn learned(world: &World, phos: &PhosFt) -> Result<()> {
    let before = found(phos);
    checkpoints_until(world, phos, "what the job leaves alone", |_| {
        found(phos) > before
    })
}

fn searches(phos: &PhosFt) -> Vec<String> {
    let said = phos.said();
    let lines = said
        .lines()
        .filter(|line| line.contains("looked for memory that the job"));
    lines.map(str::to_owned).collect()
}

/// Searches that found enough.
fn found(phos: &PhosFt) -> usize {
    let all = searches(phos);
    all.iter()
        .filter(|line| line.contains("enough=true"))
        .count()
}

#[test]
fn what_a_job_leaves_alone_leaves_the_gpu_while_it_runs() -> Result<()> {
    leaves_beside(&[], false)
}

/// Its place is the end of a step, as it says itself.
#[test]
fn what_a_job_leaves_alone_that_tells_its_steps() -> Result<()> {
    leaves_beside(&["--hints"], true)
}

fn leaves_beside(trainer: &[&str], tells_steps: bool) -> Result<()> {
    let (world, spec) = full()?;
    let mut phos = world.start(&spec.with_trainer(trainer))?;
    learned(&world, &phos)?;
    let mut besides = 0;
    checkpoints_until(&world, &phos, "copies beside the job", |answer| {
        let as_told = answer["step"].is_u64() == tells_steps;
        besides += usize::from(part(answer, "beside") > 0.0 && as_told);
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
    // One wait that is a place, in whichever order it writes.
    let spec = spec.with_trainer(&["--state-waits", "16"]);
    let mut phos = world.start(&spec)?;
    learned(&world, &phos)?;
    std::fs::write(world.path("early"), "")?;
    let began = last_step(&world).context("no step")?;
    wait_step(&world, &phos, began + 3)?;
    let mut stored = world.checkpoints()?.len();
    checkpoints_until(&world, &phos, "one that fails", |answer| {
        stored += usize::from(answer["id"].is_u64());
        phos.said().contains("has written gpu memory")
    })?;
    ensure!(world.checkpoints()?.len() == stored, "{}", phos.tail());
    ensure!(world.json(&["status"])?["unprotected"]["reason"] == "overwritten");
    // Those that follow are taken as ever.
    let answer = world.json(&["checkpoint"])?;
    ensure!(part(&answer, "beside") == 0.0, "{answer}");
    kill_job_and_wait(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}

/// Who does not want it has everything leave while the job is held, and no look at what the job leaves alone.
#[test]
fn with_copy_beside_never_nothing_leaves_while_the_job_runs() -> Result<()> {
    let (world, spec) = full()?;
    let mut phos = world.start(&spec.with_phos(&["--copy-beside", "never"]))?;
    for _ in 0..5 {
        checkpoint(&world, &phos)?;
    }
    ensure!(searches(&phos).is_empty(), "{}", phos.tail());
    kill_job_and_wait(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}

/// The job may be held for five seconds while it runs: what a link does not move in that time leaves before.
#[test]
fn no_more_is_left_to_leave_beside_the_job_than_its_link_moves_in_time() -> Result<()> {
    let (world, spec) = full()?;
    // Seven seconds.
    world.sim()?.set_link_mbps(0, STATE / 7.0)?;
    let mut phos = world.start(&spec)?;
    wait_step(&world, &phos, 5)?;
    let first = world.json(&["checkpoint"])?;
    ensure!(
        part(&first, "hold_drain") > 6000.0,
        "its link is faster: {first}"
    );
    // Were it too much, the first one would fail.
    wait_for("a copy beside the job", LIMIT, || {
        let answer = world.json(&["checkpoint"]).ok()?;
        (part(&answer, "beside") > 0.0).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    let said = phos.said();
    ensure!(!said.contains("has written gpu memory"), "{said}");
    kill_job_and_wait(&world, &phos)?;
    finished(&world, &mut phos, &plain())
}

/// No guess about this job is good for long. Each checkpoint is good or said to have failed, and few are lost.
#[test]
fn a_job_that_writes_anywhere_is_restored_as_it_was_or_is_told() -> Result<()> {
    let (world, spec) = full()?;
    let spec = spec.with_trainer(&["--state-anywhere"]);
    let mut phos = world.start(&spec)?;
    wait_step(&world, &phos, 5)?;
    let (mut good, mut lost) = (0, 0);
    while good < 12 {
        let answer = world.run(&["checkpoint", "--json"])?;
        if answer.status.success() {
            good += 1;
            if good % 4 == 0 {
                kill_job_and_wait(&world, &phos)?;
            }
            continue;
        }
        let said = String::from_utf8_lossy(&answer.stderr).into_owned();
        ensure!(
            said.contains("has written GPU memory"),
            "{said}\n{}",
            phos.tail()
        );
        lost += 1;
        ensure!(lost <= 4, "{good} good\n{}", phos.tail());
    }
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
    let at = last_step(&world).context("no step")?;
    wait_for("the job to go on", LIMIT, || {
        (last_step(&world)? > at + 2).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
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
