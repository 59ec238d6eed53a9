//! Who gets the processors while a checkpoint is stored beside the job.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use anyhow::{Context as _, Result, ensure};

use phos_integration_tests::scenario::{LIMIT, disturbed, sidecar, wait_said};
use phos_integration_tests::{JobSpec, World, wait_for};

/// What of sched_setscheduler(2) is in the 41st field of /proc/PID/stat.
const OTHER: &str = "0";
const IDLE: &str = "5";

/// Name and scheduling policy of each thread of a process.
fn threads(pid: i32) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        // It may have ended.
        let Ok(stat) = fs::read_to_string(task?.path().join("stat")) else {
            continue;
        };
        let (name, rest) = stat.rsplit_once(')').context("no name")?;
        let (_, name) = name.split_once('(').context("no name")?;
        // The state is the third field.
        let policy = rest.split_ascii_whitespace().nth(41 - 3);
        found.push((name.to_owned(), policy.context("no policy")?.to_owned()));
    }
    Ok(found)
}

/// Whether all threads that store have this policy, and no other one is idle.
fn all_have(pid: i32, policy: &str) -> Result<bool> {
    let threads = threads(pid)?;
    let (storing, others): (Vec<_>, Vec<_>) =
        (threads.into_iter()).partition(|(name, _)| name.starts_with("phos-background"));
    ensure!(
        storing.len() > 1 && !others.is_empty(),
        "{storing:?}, {others:?}"
    );
    ensure!(others.iter().all(|(_, of)| of == OTHER), "{others:?}");
    Ok(storing.iter().all(|(_, of)| of == policy))
}

/// Whether a checkpoint is being stored beside the job.
fn is_storing(world: &World) -> Result<bool> {
    let status = world.json(&["status"])?;
    let state = status["state"].as_str().context("no state")?.to_owned();
    Ok(state.contains("storing"))
}

/// The threads that store a checkpoint take what the job leaves: for half of the interval if that is too little, and not where somebody waits for it.
#[test]
fn what_is_stored_beside_the_job_leaves_it_the_processors() -> Result<()> {
    let world = World::simulated(1, 256)?;
    // Threads in the class idle have what the rest of their session leaves, which is nothing while a program of the sidecar's is busy on all processors.
    let (busy, program) = (world.path("busy"), world.path("on-event"));
    fs::write(&busy, "")?;
    let loops = "while [ -e \"$busy\" ]; do :; done";
    let cores = std::thread::available_parallelism()?;
    fs::write(
        &program,
        format!(
            "#!/bin/sh\nbusy='{}'\nfor _ in $(seq {cores}); do ({loops}) & done\n{loops}\n",
            busy.display()
        ),
    )?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755))?;
    // What is new takes longer to be sent than half of the interval.
    let spec = JobSpec {
        interval: "6s".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--ballast-mib", "48"])
    .with_phos(&[
        "--upload-limit",
        "4MiB",
        "--on-event",
        &program.display().to_string(),
    ]);
    disturbed(&world, &spec, |world, phos| {
        wait_said(phos, &["the job runs again"])?;
        let sidecar = sidecar(world)?;
        wait_for("the threads that store to be idle", LIMIT, || {
            all_have(sidecar, IDLE).ok()?.then_some(())
        })?;
        ensure!(is_storing(world)?, "it was stored before anything was seen");
        wait_for("the threads that store to take their share", LIMIT, || {
            all_have(sidecar, OTHER).ok()?.then_some(())
        })?;
        ensure!(is_storing(world)?, "it took its share when it was stored");
        fs::remove_file(&busy)?;
        // What is asked for takes its share from the beginning.
        let asked = world.json(&["checkpoint"])?;
        ensure!(asked["parts_ms"]["left_to_job"].is_null(), "{asked}");
        wait_for("the threads that store to be idle again", LIMIT, || {
            all_have(sidecar, IDLE).ok()?.then_some(())
        })
    })
}
