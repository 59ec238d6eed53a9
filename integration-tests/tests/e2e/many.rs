//! Many allocations: no process of the job holds a descriptor for each, agent and sidecar take as many as they need whatever
//! the limit that they were started with, and where there is really no room for them the job runs on.

use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, kill_job_and_wait, last_step, number, wait_said, wait_step,
};
use phos_integration_tests::{Event, JobSpec, LossTrace, PhosFt, World, kill_all, wait_for};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, prlimit, setrlimit};

/// What everything that this test starts may have open, unless it raises that itself.
fn limit_open_files(soft: u64) -> Result<()> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    Ok(setrlimit(
        Resource::Nofile,
        Rlimit {
            current: Some(soft),
            maximum,
        },
    )?)
}

fn spec(allocations: usize, large_every: usize) -> JobSpec {
    JobSpec {
        interval: "never".into(),
        // What is never touched takes no memory of this machine.
        env: vec![("PHOS_SIM_SPARSE".into(), "1".into())],
        ..JobSpec::default()
    }
    .with_trainer(&["--allocations", &allocations.to_string()])
    .with_trainer(&["--large-every", &large_every.to_string()])
}

/// Lets the job finish, which verifies every allocation, and compares its losses: those of a run without the allocations, which
/// have no part in them.
fn finish(world: &World, mut phos: PhosFt, spec: &JobSpec) -> Result<()> {
    world.finish()?;
    let status = phos.wait(LIMIT)?;
    ensure!(status.success(), "it ended with {status}:\n{}", phos.tail());
    let trace = LossTrace::read(&world.log())?;
    let reference = world.reference(spec, trace.len() as u64)?;
    let difference = trace.first_difference(&reference);
    ensure!(difference.is_none(), "it differs at step {difference:?}");
    Ok(())
}

fn steps_on(world: &World, phos: &PhosFt) -> Result<()> {
    wait_step(world, phos, last_step(world).unwrap_or(0) + 2)
}

/// The sidecar without its supervisor.
fn sidecar(world: &World, phos: &PhosFt) -> Vec<i32> {
    let supervisor = phos.child.id() as i32;
    let mut found = world.tree().sidecar;
    found.retain(|&pid| pid != supervisor);
    found
}

fn descriptors(pid: i32) -> Result<u64> {
    Ok(std::fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64)
}

/// Figures of the last stop.
fn last_stop(phos: &PhosFt, name: &str) -> Result<f64> {
    let said = phos.said();
    let line = said
        .lines()
        .rfind(|line| line.contains("the job runs again"));
    number(line.context("no stop")?, name)
}

mod hundred_thousand {
    use super::*;

    /// 100,000 allocations, 1,563 of them large, with 1,024 descriptors for whoever does not raise that: checkpoint, sidecar
    /// killed, checkpoint, job killed, checkpoint.
    #[test]
    fn allocations() -> Result<()> {
        limit_open_files(1024)?;
        let world = World::simulated(1, 6 << 10)?;
        let spec = spec(100_000, 64);
        let begun = Instant::now();
        let phos = world.start(&spec)?;
        wait_step(&world, &phos, 5)?;
        eprintln!("allocated after {:?}", begun.elapsed());
        for pid in world.tree().job {
            let limits = std::fs::read_to_string(format!("/proc/{pid}/limits"))?;
            let soft = limits
                .lines()
                .find(|line| line.starts_with("Max open files"))
                .and_then(|line| line.split_ascii_whitespace().nth(3));
            ensure!(soft == Some("1024"), "the job's limit is {soft:?}");
        }
        let taken = |what: &str| -> Result<()> {
            let begun = Instant::now();
            checkpoint(&world, &phos)?;
            eprintln!(
                "{what}: {:?}, stop {} ms, attach {} ms",
                begun.elapsed(),
                last_stop(&phos, "stop_ms")?,
                last_stop(&phos, "attach_ms")?
            );
            steps_on(&world, &phos)
        };
        taken("the first checkpoint")?;
        taken("the second")?;
        let killed = sidecar(&world, &phos);
        ensure!(killed.len() == 1, "{killed:?}");
        kill_all(&killed);
        taken("with a new sidecar")?;
        kill_job_and_wait(&world, &phos)?;
        wait_said(&phos, &["resumed checkpoint="])?;
        steps_on(&world, &phos)?;
        taken("after the restore")?;
        finish(&world, phos, &spec)
    }
}

/// A process that holds a descriptor for each allocation has no room for them: every checkpoint is refused with the remedy, the
/// job runs on, and with room it is protected.
fn without_room(who: fn(&World, &PhosFt) -> Vec<i32>) -> Result<()> {
    let world = World::simulated(1, 2 << 10)?;
    let spec = spec(300, 1);
    let phos = world.start(&spec)?;
    wait_step(&world, &phos, 5)?;
    let found = who(&world, &phos);
    let [pid] = found[..] else {
        anyhow::bail!("not one process: {found:?}");
    };
    let raw = Pid::from_raw(pid).context("no process")?;
    // Enough for all else that it does.
    let few = 270;
    ensure!(descriptors(pid)? < 100, "it holds many already");
    // What it hands on to others stays as it was.
    let with = |current, maximum| prlimit(Some(raw), Resource::Nofile, Rlimit { current, maximum });
    let before = with(Some(few), getrlimit(Resource::Nofile).maximum)?;
    with(Some(few), before.maximum)?;
    let asked = world.run(&["checkpoint"])?;
    let said = String::from_utf8_lossy(&asked.stderr).to_lowercase();
    ensure!(!asked.status.success(), "{said}");
    ensure!(said.contains("ulimit -n"), "{said}\n{}", phos.tail());
    ensure!(phos.times(Event::Crashed) == 0, "{}", phos.tail());
    steps_on(&world, &phos)?;
    prlimit(Some(raw), Resource::Nofile, before)?;
    wait_for("a checkpoint", LIMIT, || {
        world.json(&["checkpoint"]).ok()?["id"].as_u64()
    })
    .with_context(|| phos.tail())?;
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finish(&world, phos, &spec)
}

#[test]
fn an_agent_without_room_for_descriptors() -> Result<()> {
    // The one that is PID 1 of the job; the other one waits for it.
    without_room(|world, _| {
        let agents = world.tree().agent;
        let most = agents.into_iter().max_by_key(|&pid| descriptors(pid).ok());
        most.into_iter().collect()
    })
}

#[test]
fn a_sidecar_without_room_for_descriptors() -> Result<()> {
    without_room(sidecar)
}
