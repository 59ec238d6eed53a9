//! Two nodes and one job: who has it is left alone while it is well, who lost it hears of it, and what one of them began by itself
//! never takes the place of what was stored.

use std::fs;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::s3::with_s3;
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, finish, kill_job_and_wait, last_step, refused, wait_said, wait_step,
};
use phos_integration_tests::{
    COSTLY, Event, JobSpec, PhosFt, World, kill_all, processes_with, stop_process, wait_every,
    wait_for,
};
use phos_storage::{JobName, NonceSource, Store, StoreOptions, UnixMillis};

/// Checkpoints on demand, and a lease that runs out soon.
fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_phos(&["--lease", "3s"])
}

fn on(spec: &JobSpec, node: &str) -> JobSpec {
    spec.with_env("PHOS_NODE_NAME", node)
}

fn ends_with(phos: &mut PhosFt, code: i32) -> Result<()> {
    let status = phos.wait(LIMIT)?;
    ensure!(status.code() == Some(code), "{status}:\n{}", phos.tail());
    Ok(())
}

/// Somebody else takes the job over, and does nothing with it.
fn take_over(world: &World) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let options = StoreOptions::new(NonceSource::new(|| [7; 16]));
        let store = Store::open_existing(&world.store, options).await?;
        let store = store.context("there is no store")?;
        let job = store.job(JobName::new(&world.job)?);
        job.take_over("somebody else", UnixMillis(1)).await?;
        Ok(())
    })
}

#[test]
fn a_second_node_stands_by_and_goes_on_when_the_first_is_lost() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let first = world.start(&on(&spec, "first"))?;
    checkpoint(&world, &first)?;
    let second = world.start_elsewhere(&on(&spec, "second"))?;
    wait_said(
        &second,
        &["standing by", "holder=\"", "another node has the job"],
    )?;
    // For longer than the lease: it is renewed, and nobody is fenced.
    let step = last_step(&world).context("no step")?;
    wait_step(&world, &first, step + 60)?;
    checkpoint(&world, &first)?;
    ensure!(second.times(Event::TookOver) == 0, "{}", second.tail());
    world.kill_everything()?;
    wait_said(&second, &["took the job over", "resumed checkpoint="])?;
    finish(&world, second, &spec)
}

#[test]
fn the_same_machine_does_not_wait_for_itself_and_a_job_that_ended_leaves_nothing_to_wait_for()
-> Result<()> {
    let world = World::simulated(1, 256)?;
    // Nobody would wait so long.
    let spec = spec().with_phos(&[]);
    let spec = JobSpec {
        phos: vec!["--lease".into(), "1h".into()],
        ..spec
    };
    let phos = world.start(&on(&spec, "first"))?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let mut phos = world.start(&on(&spec, "first"))?;
    wait_said(&phos, &["resumed checkpoint="])?;
    // Ended on request: its last checkpoint is for whoever is next.
    let pid = rustix::process::Pid::from_raw(phos.child.id() as i32).context("no PID")?;
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    phos.wait(LIMIT)?;
    let phos = world.start_elsewhere(&on(&spec, "second"))?;
    wait_said(&phos, &["resumed checkpoint="])?;
    ensure!(phos.times(Event::StandsBy) == 0, "{}", phos.tail());
    finish(&world, phos, &spec)
}

/// Also where nothing is stored that would tell.
#[test]
fn who_lost_the_job_hears_of_it_without_a_checkpoint() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let mut phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    take_over(&world)?;
    ends_with(&mut phos, 76)?;
    wait_said(&phos, &["taken over by somebody else"])?;
    ensure!(
        world.tree().job.is_empty(),
        "the job of a node that lost it runs on"
    );
    // It would not begin again by itself: that it lost the job is noted in its run directory.
    world.lose_node()?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finish(&world, phos, &spec)
}

/// With a tier on the machine, whose checkpoints go on without the store.
#[test]
fn who_lost_the_job_hears_of_it_while_its_checkpoints_stay_on_its_machine() -> Result<()> {
    let (world, _) = with_s3()?;
    let spec = spec().with_phos(&["--remote-interval", "1h"]);
    let mut first = world.start(&on(&spec, "first"))?;
    let asked = checkpoint(&world, &first)?;
    wait_for("the checkpoint to be in the store", LIMIT, || {
        let status = world.json(&["status"]).ok()?;
        (status["remote"]["local"].as_u64()? >= asked).then_some(())
    })
    .map_err(|e| e.context(first.tail()))?;
    // Paused, as on a machine that is swapped out: it must not write what the other one writes now.
    let job = world.tree().job;
    for pid in &job {
        stop_process(*pid)?;
    }
    let at_once = JobSpec {
        phos: vec!["--lease".into(), "0s".into()],
        ..spec.clone()
    };
    let second = world.start_elsewhere(&on(&at_once, "second"))?;
    wait_said(&second, &["resumed checkpoint="])?;
    ends_with(&mut first, 76)?;
    ensure!(
        job.iter()
            .all(|pid| !processes_with(&["phos-trainer"]).contains(pid)),
        "the paused job is still there"
    );
    finish(&world, second, &spec)
}

/// A person begins another history; until then the job runs on and says that it is not protected.
#[test]
fn a_store_that_is_emptied_under_a_running_job_costs_no_more_than_its_checkpoints() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let agent = world.spawn(world.agent(&spec))?;
    let sidecar = world.spawn(world.phos_ft(&spec))?;
    checkpoint(&world, &sidecar)?;
    let job = world.tree().job;
    fs::remove_dir_all(world.path("store"))?;
    ensure!(!world.run(&["checkpoint"])?.status.success());
    wait_said(&sidecar, &["checkpoint given up", "--start-fresh"])?;
    ensure!(world.checkpoints()?.is_empty(), "another history was begun");
    kill_all(&world.tree().sidecar);
    let sidecar = world.spawn(world.phos_ft(&spec.with_phos(&["--start-fresh"])))?;
    wait_every(COSTLY, "a checkpoint in a new history", LIMIT, || {
        world.run(&["checkpoint"]).ok()?;
        world.checkpoints().ok().filter(|all| !all.is_empty())
    })
    .map_err(|e| e.context(sidecar.tail()))?;
    ensure!(sidecar.times(Event::StandsBy) == 0, "{}", sidecar.tail());
    ensure!(world.tree().job == job, "the job was begun anew");
    kill_job_and_wait(&world, &sidecar)?;
    finish(&world, agent, &spec)
}

/// A node that came up without its sidecar began with the first step. What it does must not stand after what was stored.
#[test]
fn a_job_that_was_begun_without_a_sidecar_is_not_taken_for_the_newest() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.start(&spec)?;
    wait_step(&world, &phos, 50)?;
    let stored = checkpoint(&world, &phos)?;
    world.kill_everything()?;
    // This machine knows nothing of it; one that does would wait.
    fs::remove_dir_all(world.run_dir())?;
    fs::remove_dir_all(world.path("state"))?;
    let mine = fs::read(world.log())?;
    let agent = world.spawn(world.agent_with(&spec, &["--sidecar-wait", "1s"]))?;
    wait_for("the job to begin by itself", LIMIT, || {
        (fs::read(world.log()).ok()? != mine).then_some(())
    })
    .map_err(|e| e.context(agent.tail()))?;
    let sidecar = world.spawn(world.phos_ft(&spec))?;
    wait_for("the sidecar to be there", LIMIT, || {
        world.json(&["status"]).ok()
    })
    .map_err(|e| e.context(sidecar.tail()))?;
    let asked = world.run(&["checkpoint"])?;
    ensure!(!asked.status.success(), "{asked:?}");
    wait_said(
        &sidecar,
        &[
            "was started from its beginning",
            &format!("checkpoint {stored}"),
        ],
    )?;
    let numbers: Vec<u64> = world.checkpoints()?.iter().map(|c| c.number).collect();
    ensure!(numbers == [stored], "{numbers:?}");
    // It goes on from there as soon as it may.
    kill_job_and_wait(&world, &sidecar)?;
    wait_said(&sidecar, &[&format!("resumed checkpoint={stored} ")])?;
    checkpoint(&world, &sidecar)?;
    finish(&world, agent, &spec)
}

#[test]
fn a_history_of_which_nothing_can_be_used_is_not_begun_anew() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    checkpoint(&world, &phos)?;
    world.lose_node()?;
    let manifests = world.path("store/jobs").join(&world.job).join("manifests");
    let mut damaged = 0;
    for entry in fs::read_dir(manifests)? {
        let path = entry?.path();
        let mut bytes = fs::read(&path)?;
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x40;
        fs::write(&path, bytes)?;
        damaged += 1;
    }
    ensure!(damaged == 2, "{damaged} manifests");
    refused(
        &world,
        &spec,
        65,
        &["is damaged", "not begun anew over them", "verify --deep"],
    )?;
    // Nor the next time.
    refused(&world, &spec, 65, &["not begun anew over them"])
}

/// `--from` is for the start of the job. A sidecar that is started again with it finds the job running.
#[test]
fn an_older_checkpoint_that_was_asked_for_is_resumed_once() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.start(&spec)?;
    let first = checkpoint(&world, &phos)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let from = spec.with_phos(&["--from", &first.to_string()]);
    let agent = world.spawn(world.agent(&spec))?;
    let sidecar = world.spawn(world.phos_ft(&from))?;
    wait_said(&sidecar, &[&format!("resumed checkpoint={first} ")])?;
    kill_all(&world.tree().sidecar);
    let sidecar = world.spawn(world.phos_ft(&from))?;
    let newest = checkpoint(&world, &sidecar)?;
    kill_job_and_wait(&world, &sidecar)?;
    wait_said(&sidecar, &[&format!("resumed checkpoint={newest} ")])?;
    finish(&world, agent, &spec)
}
