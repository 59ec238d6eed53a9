//! Who gets the processors while a checkpoint is stored beside the job.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use phos_integration_tests::scenario::{LIMIT, disturbed, sidecar, wait_said, wait_step};
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

/// The nice value of a process's session as a whole; none: this kernel does not group by session.
fn session_nice(pid: i32) -> Result<Option<String>> {
    match fs::read_to_string(format!("/proc/{pid}/autogroup")) {
        Ok(text) => {
            let nice = text.trim().rsplit_once(' ').context("no nice value")?.1;
            Ok(Some(nice.to_owned()))
        }
        Err(_) => Ok(None),
    }
}

/// The threads that store a checkpoint, and the session that they are in, take what the job leaves; not before it runs again, and not longer than
/// the checkpoint is being stored.
#[test]
fn what_is_stored_beside_the_job_leaves_it_the_processors() -> Result<()> {
    let world = World::simulated(1, 256)?;
    // What is new takes seconds to be sent.
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--ballast-mib", "64"])
    .with_phos(&["--upload-limit", "16MiB"]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 3)?;
        let sidecar = sidecar(world)?;
        let before = session_nice(sidecar)?;
        ensure!(
            before.as_deref().is_none_or(|nice| nice == "0"),
            "{before:?}"
        );
        ensure!(all_have(sidecar, OTHER)?);
        std::thread::scope(|scope| -> Result<()> {
            let asked = scope.spawn(|| world.json(&["checkpoint"]));
            wait_said(phos, &["the job runs again"])?;
            wait_for("the threads that store to be idle", LIMIT, || {
                all_have(sidecar, IDLE).ok()?.then_some(())
            })?;
            let nice = session_nice(sidecar)?;
            let is_stored = asked.is_finished();
            ensure!(nice.as_deref().is_none_or(|nice| nice == "19"), "{nice:?}");
            ensure!(!is_stored, "it was stored before anything was seen");
            asked.join().map_err(|_| anyhow::anyhow!("a panic"))??;
            wait_for("the threads that store to be as before", LIMIT, || {
                let are = all_have(sidecar, OTHER).ok()?;
                (are && session_nice(sidecar).ok()? == before).then_some(())
            })
        })
    })
}
