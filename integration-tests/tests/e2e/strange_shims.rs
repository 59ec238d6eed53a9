//! Processes of the job that speak to the agent as no shim does: they reach nothing that is not theirs, and keep the agent from
//! nothing.

use std::process::Command;

use anyhow::{Result, ensure};
use phos_integration_tests::scenario::{LIMIT, checkpoint, last_step, wait_said, wait_step};
use phos_integration_tests::{JobSpec, PhosFt, World, bin_dir, wait_for};

/// A job whose trainer is started by a shell that starts `script` before: `$S` is the program that is no shim, `$F` the file it
/// writes.
fn beside(world: &World, spec: &JobSpec, script: &str) -> Command {
    let trainer = world.trainer(spec);
    let mut command = world.phos_ft(spec);
    let job = trainer.get_args().skip_while(|a| *a != "--").skip(1);
    command
        .args(["--", "sh", "-c", &format!("{script}\nexec \"$@\""), "sh"])
        .args(job)
        .env("S", bin_dir().join("phos-hostile-shim"))
        .env("F", world.path("said"));
    command
}

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
}

fn wait_file(world: &World, name: &str) -> Result<String> {
    wait_for(
        "the process that is no shim to write its file",
        LIMIT,
        || std::fs::read_to_string(world.path(name)).ok(),
    )
}

fn goes_on(world: &World, phos: &PhosFt) -> Result<()> {
    wait_step(world, phos, last_step(world).unwrap_or(0) + 2)
}

/// Signals, requests of the sidecar and deadlines have their turn whatever the job's processes say, and what they say does not fill
/// the log.
#[test]
fn a_flood_keeps_the_agent_from_nothing() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--quiesce-timeout", "500ms"]);
    let mut phos = world.spawn(beside(
        &world,
        &spec,
        "for i in $(seq 16); do $S flood $F & done",
    ))?;
    wait_file(&world, "said")?;
    wait_step(&world, &phos, 2)?;
    // They do not fall quiet, which is said in time; the training goes on.
    let asked = world.run(&["checkpoint"])?;
    ensure!(!asked.status.success(), "{asked:?}");
    goes_on(&world, &phos)?;
    let lines = phos.said().matches("checkpoints are ruled out").count();
    ensure!((1..200).contains(&lines), "{lines} lines");
    ensure!(
        !phos.said().contains("\nwith a line of its own"),
        "{}",
        phos.tail()
    );
    let pid = rustix::process::Pid::from_child(&phos.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    phos.wait(LIMIT)?;
    Ok(())
}

#[test]
fn memory_of_others_is_not_given_for_the_asking() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.spawn(beside(&world, &spec, "$S claim $F &"))?;
    wait_step(&world, &phos, 2)?;
    wait_file(&world, "said.welcome")?;
    let asked = world.run(&["checkpoint"])?;
    let why = String::from_utf8_lossy(&asked.stderr);
    let given = std::fs::read_to_string(world.path("said")).unwrap_or_default();
    ensure!(
        why.contains("was never given it") && given.is_empty(),
        "{asked:?} {given}"
    );
    goes_on(&world, &phos)
}

#[test]
fn a_process_that_left_the_tree_is_no_shim_of_it() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.spawn(beside(&world, &spec, "(setsid $S leave $F &)"))?;
    let said = wait_file(&world, "said")?;
    ensure!(said == "refused", "it was {said}");
    wait_said(
        &phos,
        &["a process that is not of the job tried to connect as a shim"],
    )?;
    // It has ended, and is in nobody's way.
    wait_step(&world, &phos, 2)?;
    checkpoint(&world, &phos)?;
    Ok(())
}
