//! The shape of most end-to-end tests: a run is disturbed, and its loss trace equals that of an
//! undisturbed run.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};

use crate::processes::kill_all;
use crate::trace::LossTrace;
use crate::world::{COSTLY, JobSpec, PhosFt, World, wait_every, wait_for};

/// Long enough for anything that works, on a loaded machine.
pub const LIMIT: Duration = Duration::from_secs(180);

/// Steps that a job makes after everything that was done to it, in the life that it has then, before it is told to finish.
const SEEN_ENOUGH: u64 = 20;

/// Runs `spec` under phos-ft with `disturb` let loose on it, waits for its end and compares its trace with that of an undisturbed
/// run.
///
/// # Errors
/// When phos-ft fails, the traces differ, or `disturb` says so.
pub fn disturbed(
    world: &World,
    spec: &JobSpec,
    disturb: impl FnOnce(&World, &mut PhosFt) -> Result<()>,
) -> Result<()> {
    let mut phos = world.start(spec)?;
    disturb(world, &mut phos)?;
    finished(world, &mut phos, spec)
}

/// Waits for the end of a job that makes what `spec` says, however it was started, and compares its trace with that of an undisturbed
/// run.
///
/// # Errors
/// When phos-ft fails or the traces differ.
pub fn finished(world: &World, phos: &mut PhosFt, spec: &JobSpec) -> Result<()> {
    let trace = ended(world, phos)?;
    let reference = world.reference(spec, trace.len() as u64)?;
    same(&trace, &reference, phos)
}

/// The same for one that is not looked at any more.
///
/// # Errors
/// As [`finished`].
pub fn finish(world: &World, mut phos: PhosFt, spec: &JobSpec) -> Result<()> {
    finished(world, &mut phos, spec)
}

/// Lets a job make more steps than it ever made, then tells it to finish; what it logged.
fn ended(world: &World, phos: &mut PhosFt) -> Result<LossTrace> {
    world.hurry()?;
    // From the first step that is seen: where the log was lost it comes back with the job.
    let mut enough = None;
    let (mut seen, mut at) = (None, Instant::now());
    let ended = wait_every(COSTLY, "phos-ft to end", 5 * LIMIT, || {
        if let Ok(Some(status)) = phos.child.try_wait() {
            return Some(Ok(status));
        }
        let step = last_step(world);
        if step != seen {
            (seen, at) = (step, Instant::now());
        }
        if let Some(step) = step
            && step >= *enough.get_or_insert(step + SEEN_ENOUGH)
            && let Err(e) = world.finish()
        {
            return Some(Err(e));
        }
        (at.elapsed() > LIMIT).then(|| Err(anyhow::anyhow!("no step for {LIMIT:?}")))
    });
    let status = ended
        .and_then(|ended| ended)
        .map_err(|e| e.context(phos.tail()))?;
    ensure!(
        status.success(),
        "phos-ft ended with {status}:\n{}",
        phos.tail()
    );
    let trace = LossTrace::read(&world.log())?;
    let made = trace.len() as u64;
    ensure!(
        enough.is_some_and(|enough| made > enough),
        "it ended after {made} steps without being told to:\n{}",
        phos.tail()
    );
    Ok(trace)
}

/// Every step of `trace`, from the first on, is as in `reference`.
fn same(trace: &LossTrace, reference: &LossTrace, phos: &PhosFt) -> Result<()> {
    let difference = trace.first_difference(&reference.first(trace.len() as u64));
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
    // Between two tries of a restore there is none.
    let old = wait_for("a job to kill", LIMIT, || {
        Some(world.tree().job).filter(|job| !job.is_empty())
    })
    .map_err(|e| e.context(phos.tail()))?;
    kill_all(&old);
    wait_for("the job to come back", LIMIT, || {
        let job = world.tree().job;
        (!job.is_empty() && job.iter().all(|pid| !old.contains(pid))).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

/// Takes a checkpoint of a job that has come at least to its fifth step, as soon as one can be had; its number.
///
/// # Errors
/// When none can.
pub fn checkpoint(world: &World, phos: &PhosFt) -> Result<u64> {
    wait_step(world, phos, 5)?;
    wait_for("a checkpoint", LIMIT, || {
        world.json(&["checkpoint"]).ok()?["id"].as_u64()
    })
    .map_err(|e| e.context(phos.tail()))
}

/// The last step in the job's log.
pub fn last_step(world: &World) -> Option<u64> {
    LossTrace::last_step_of(&world.log()).ok()?
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

/// Waits until phos-ft has said all of `words` (in lower case).
///
/// # Errors
/// When it does not.
pub fn wait_said(phos: &PhosFt, words: &[&str]) -> Result<()> {
    wait_for(&format!("phos-ft to say {words:?}"), LIMIT, || {
        let said = phos.said();
        words.iter().all(|word| said.contains(word)).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

/// How often the job was stopped and went on.
pub fn stops(phos: &PhosFt) -> usize {
    phos.said().matches("the job runs again").count()
}

/// The sidecar, which its supervisor started.
///
/// # Errors
/// There is none.
pub fn sidecar(world: &World) -> Result<i32> {
    world.tree().sidecar.last().copied().context("no sidecar")
}

/// How long the job was held back by tries that failed, in ms, each.
///
/// # Errors
/// The agent does not say so: it runs without `PHOS_LOG=…phos=debug`.
pub fn failed_stops(phos: &PhosFt) -> Result<Vec<u64>> {
    let said = phos.said();
    ensure!(said.contains("debug"), "tries are told at the level debug");
    let lines = said.lines().filter(|line| line.contains("the job runs on"));
    lines
        .map(|line| Ok(number(line, "stop_ms")? as u64))
        .collect()
}

/// Nothing was ever stopped.
///
/// # Errors
/// It was; or see [`failed_stops`].
pub fn never_stopped(phos: &PhosFt) -> Result<()> {
    ensure!(
        stops(phos) == 0 && failed_stops(phos)?.is_empty(),
        "the job was stopped for it: {}",
        phos.tail()
    );
    Ok(())
}

/// Starts what must be refused: it ends with `code`, says all of `words` (in lower case), starts no job and leaves the
/// job's files as they are.
///
/// # Errors
/// When it does anything else.
pub fn refused(world: &World, spec: &JobSpec, code: i32, words: &[&str]) -> Result<()> {
    let before = files_below(&world.path("work"))?;
    let mut phos = world.start(spec)?;
    let status = phos.wait(LIMIT)?;
    let said = phos.said();
    ensure!(
        status.code() == Some(code),
        "it ended with {status}, not {code}:\n{}",
        phos.tail()
    );
    for word in words {
        ensure!(said.contains(word), "nothing said of {word:?}:\n{said}");
    }
    ensure!(world.tree().job.is_empty(), "a job runs");
    ensure!(
        files_below(&world.path("work"))? == before,
        "the job's files were changed:\n{said}"
    );
    Ok(())
}

/// Does something while a file system in memory is mounted at `at`, which is made if it is missing. `options` are its own, such as
/// its size.
///
/// # Errors
/// Those of `work`; mounting needs root.
pub fn in_memory<T>(
    at: &Path,
    options: Option<&std::ffi::CStr>,
    work: impl FnOnce() -> Result<T>,
) -> Result<T> {
    std::fs::create_dir_all(at)?;
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("in-memory", at, "tmpfs", flags, options)?;
    let done = work();
    rustix::mount::unmount(at, rustix::mount::UnmountFlags::DETACH)?;
    done
}

/// Every file below a directory, with its content.
///
/// # Errors
/// When one cannot be read.
pub fn files_below(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![dir.to_owned()];
    while let Some(dir) = left.pop() {
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.is_dir() {
                left.push(path);
            } else {
                found.insert(path.clone(), std::fs::read(path)?);
            }
        }
    }
    Ok(found)
}

/// A figure of the last line that says that the job was resumed.
///
/// # Errors
/// When there is none.
pub fn figure(phos: &PhosFt, name: &str) -> Result<u64> {
    let said = phos.said();
    let line = said
        .rsplit("resumed checkpoint=")
        .next()
        .unwrap_or_default();
    Ok(number(line, name)? as u64)
}

/// A figure of a line of the log.
///
/// # Errors
/// When there is none of that name.
pub fn number(line: &str, name: &str) -> Result<f64> {
    line.split(&format!(" {name}="))
        .nth(1)
        .and_then(|rest| rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok())
        .with_context(|| format!("no {name}: {line}"))
}
