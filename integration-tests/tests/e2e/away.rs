//! A store that is away when it is needed: the job waits for its history and is not begun anew, whoever died meanwhile; and what a
//! person says about its history: to go back, or to begin anew.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, finish, in_memory, kill_job_and_wait, last_step, wait_said, wait_step,
};
use phos_integration_tests::{
    COSTLY, Event, JobSpec, PhosFt, World, kill_all, wait_every, wait_for,
};

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
}

const WAITS: &str = "the job waits for its history";

/// The store's directory, as the mount of a file system: away, it leaves what the machine has below the mount point.
struct Mount {
    at: PathBuf,
    kept: PathBuf,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Below {
    Nothing,
    /// An empty directory, as a mount point is.
    Empty,
    /// A copy of the store from earlier.
    Older,
}

impl Mount {
    fn of(world: &World) -> Mount {
        Mount {
            at: world.path("store"),
            kept: world.path("store.away"),
        }
    }

    fn goes(&self, below: Below, older: &std::path::Path) -> Result<()> {
        fs::rename(&self.at, &self.kept)?;
        match below {
            Below::Nothing => {}
            Below::Empty => fs::create_dir(&self.at)?,
            Below::Older => copy(older, &self.at)?,
        }
        Ok(())
    }

    fn comes_back(&self) -> Result<()> {
        if self.at.exists() {
            fs::remove_dir_all(&self.at)?;
        }
        Ok(fs::rename(&self.kept, &self.at)?)
    }

    /// Whether a history was begun in the place of the store.
    fn was_begun(&self, world: &World) -> bool {
        let heads = self.at.join("jobs").join(&world.job).join("head");
        heads.join(format!("{:020}", 1)).exists()
    }
}

fn copy(from: &std::path::Path, to: &std::path::Path) -> Result<()> {
    let done = std::process::Command::new("cp")
        .arg("-a")
        .args([from, to])
        .status()?;
    ensure!(done.success(), "cp: {done}");
    Ok(())
}

fn said_times(phos: &PhosFt, words: &str) -> usize {
    phos.said().matches(words).count()
}

fn wait_said_times(phos: &PhosFt, words: &str, times: usize) -> Result<()> {
    wait_for(&format!("{words:?} {times} times"), LIMIT, || {
        (said_times(phos, words) >= times).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

/// As issue 13 has it: the mount is away for a moment while the job crashes, and retention is at work.
#[test]
fn a_job_that_crashes_while_its_store_is_away_waits_for_it() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--keep-last", "2"]);
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    let older = world.path("older");
    copy(&world.path("store"), &older)?;
    let mut newest = checkpoint(&world, &phos)?;
    let mount = Mount::of(&world);
    for (n, below) in [Below::Empty, Below::Nothing, Below::Older]
        .into_iter()
        .enumerate()
    {
        mount.goes(below, &older)?;
        let step = last_step(&world).context("no step")?;
        kill_all(&world.tree().job);
        wait_said_times(&phos, WAITS, n + 1)?;
        let status = world.json(&["status"])?;
        let state = status["state"].as_str().unwrap_or_default();
        ensure!(
            state.contains("waiting for the store") && state.contains("--start-fresh"),
            "{below:?}: {status}"
        );
        ensure!(world.tree().job.is_empty(), "{below:?}: a job was started");
        ensure!(
            below == Below::Older || !mount.was_begun(&world),
            "{below:?}: a history was begun in the place of the store"
        );
        mount.comes_back()?;
        wait_said(&phos, &["the store shows the job's history again"])?;
        wait_said_times(&phos, &format!("resumed checkpoint={newest} "), 1)?;
        wait_step(&world, &phos, step)?;
        newest = checkpoint(&world, &phos)?;
    }
    let kept: Vec<u64> = world.checkpoints()?.iter().map(|c| c.number).collect();
    ensure!(kept.last() == Some(&newest), "{kept:?}");
    ensure!(phos.times(Event::StartedAfresh) == 0, "{}", phos.tail());
    finish(&world, phos, &spec)
}

/// A checkpoint that is taken meanwhile fails, is tried again, and nothing is made in the place of the store. A sidecar that
/// dies meanwhile knows by what is on the machine.
#[test]
fn a_job_runs_on_while_its_store_is_away() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let agent = world.spawn(world.agent(&spec))?;
    let mut phos = world.spawn(world.phos_ft(&spec))?;
    let first = checkpoint(&world, &phos)?;
    let job = world.tree().job;
    let mount = Mount::of(&world);
    for below in [Below::Empty, Below::Nothing] {
        mount.goes(below, &world.path("none"))?;
        let refused = world.run(&["checkpoint"])?;
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        ensure!(
            !refused.status.success() && said.contains("does not have it now"),
            "{below:?}: {said}"
        );
        let status = world.json(&["status"])?;
        ensure!(status["unprotected"].is_object(), "{below:?}: {status}");
        kill_all(&world.tree().sidecar);
        phos = world.spawn(world.phos_ft(&spec))?;
        wait_said(&phos, &[WAITS])?;
        ensure!(!mount.was_begun(&world), "{below:?}: a history was begun");
        let step = last_step(&world).unwrap_or(0);
        wait_step(&world, &phos, step + 3)?;
        mount.comes_back()?;
        let next = checkpoint(&world, &phos)?;
        ensure!(next > first);
    }
    ensure!(world.tree().job == job, "the job was restarted");
    kill_job_and_wait(&world, &phos)?;
    finish(&world, agent, &spec)
}

/// Who may delete took the log's end away: whatever looks at the store on this machine says so, with both numbers, and the sidecar
/// that has the job does without being asked.
#[test]
fn a_log_that_was_rolled_back_is_told_by_everything_that_looks() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--lease", "3s"]);
    let phos = world.start(&spec)?;
    let first = checkpoint(&world, &phos)?.to_string();
    checkpoint(&world, &phos)?;
    let newest = checkpoint(&world, &phos)?;
    let list = world.json(&["list"])?;
    ensure!(list["rollback"].is_null(), "{list}");
    ensure!(world.run(&["verify"])?.status.success());
    let log = world
        .path("store")
        .join("jobs")
        .join(&world.job)
        .join("head");
    let records = [newest - 1, newest].map(|number| format!("{number:020}"));
    for record in &records {
        fs::rename(log.join(record), world.path(record))?;
    }
    wait_said(&phos, &["the store shows less of the job's history"])?;
    let both = |said: &str| {
        let seen = format!("up to record {newest}, and");
        let found = format!("up to {}: its log was rolled back", newest - 2);
        said.contains(&seen) && said.contains(&found)
    };
    ensure!(both(&phos.said()), "{}", phos.tail());
    let status = world.json(&["status"])?;
    let away = status["history_away"].as_str().unwrap_or_default();
    ensure!(both(away), "{status}");
    let export = world.path("export");
    let export = export.to_str().context("no text")?;
    for (command, code) in [
        (&["list"][..], 0),
        (&["verify"], 65),
        (&["show", &first], 0),
        (&["export", &first, export], 0),
    ] {
        let output = world.run(command)?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(code) && both(&said),
            "{command:?} ended with {}: {said}",
            output.status
        );
    }
    let list = world.json(&["list"])?;
    ensure!(
        list["rollback"]["seen"] == newest && list["rollback"]["found"] == newest - 2,
        "{list}"
    );
    for record in &records {
        fs::rename(world.path(record), log.join(record))?;
    }
    wait_for("the history is back", LIMIT, || {
        let status = world.json(&["status"]).ok()?;
        status["history_away"].is_null().then_some(())
    })?;
    checkpoint(&world, &phos)?;
    ensure!(world.run(&["verify"])?.status.success());
    kill_job_and_wait(&world, &phos)?;
    finish(&world, phos, &spec)
}

/// The machine was started again, and its network file system is not mounted yet.
#[test]
fn a_machine_that_had_the_job_waits_for_the_store_at_its_start() -> Result<()> {
    let world = World::simulated(1, 256)?;
    waits_at_its_start(&world, &[], |world, phos| {
        Ok(checkpoint(world, phos)?.to_string())
    })
}

/// The same with checkpoints that are on this machine alone: the store had none of them yet.
#[test]
fn a_machine_with_checkpoints_of_its_own_waits_for_the_store_at_its_start() -> Result<()> {
    // The first goes on to the store at once, and does not get there. Not on the disk of the store, which needs no tier.
    let local = ["--remote-interval", "1h", "--upload-limit", "64KiB"];
    let world = World::simulated(1, 256)?;
    let state = world.path("state");
    in_memory(&state, None, || {
        waits_at_its_start(&world, &local, |world, phos| {
            let number = checkpoint(world, phos)?;
            let listed = world.json(&["list"])?;
            let rows = listed["checkpoints"].as_array().context("no list")?;
            ensure!(
                rows.iter().all(|row| row["durability"] == "local"),
                "{listed}"
            );
            Ok(format!("l{number}"))
        })
    })
}

/// `take` has checkpoints taken, and tells how the name of the one that is to be resumed begins.
fn waits_at_its_start(
    world: &World,
    flags: &[&str],
    take: impl FnOnce(&World, &PhosFt) -> Result<String>,
) -> Result<()> {
    let spec = spec().with_phos(&["--sidecar-wait", "1s"]).with_phos(flags);
    let phos = world.start(&spec)?;
    let number = take(world, &phos)?;
    for (below, restarted) in [(Below::Empty, true), (Below::Nothing, false)] {
        world.kill_everything()?;
        if restarted {
            fs::remove_dir_all(world.run_dir())?;
        }
        let mount = Mount::of(world);
        mount.goes(below, &world.path("none"))?;
        let log = fs::read(world.log())?;
        let phos = world.start(&spec)?;
        // The sidecar, and the agent for whom no sidecar came.
        wait_said(&phos, &[WAITS, "it is not begun anew without one"])?;
        ensure!(world.tree().job.is_empty() && fs::read(world.log())? == log);
        ensure!(!mount.was_begun(world), "{below:?}: a history was begun");
        mount.comes_back()?;
        wait_said(&phos, &[&format!("resumed checkpoint={number}")])?;
        if !restarted {
            return finish(world, phos, &spec);
        }
    }
    Ok(())
}

fn branches(world: &World) -> Result<Vec<(u64, Option<u64>)>> {
    let listed = world.json(&["list"])?;
    let rows = listed["checkpoints"].as_array().context("no list")?;
    let row = |row: &serde_json::Value| Some((row["number"].as_u64()?, row["branch"].as_u64()));
    rows.iter()
        .rev()
        .map(|r| row(r).context("no number"))
        .collect()
}

#[test]
fn a_crash_resumes_on_the_branch_that_was_gone_back_to() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--lease", "3s"]);
    let phos = world.start(&spec)?;
    let mut numbers = Vec::new();
    for _ in 0..3 {
        numbers.push(checkpoint(&world, &phos)?);
        wait_step(&world, &phos, last_step(&world).unwrap_or(0) + 2)?;
    }
    let [first, second, third] = numbers[..] else {
        anyhow::bail!("{numbers:?}")
    };
    world.kill_everything()?;
    let phos = world.start(&spec.with_phos(&["--from", &first.to_string()]))?;
    let resumed = format!("resumed checkpoint={first} ");
    wait_said(&phos, &[&resumed])?;
    // Before it has one of its own.
    kill_job_and_wait(&world, &phos)?;
    wait_said_times(&phos, &resumed, 2)?;
    // And on a machine that knows nothing of that.
    world.lose_node()?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &[&resumed])?;
    let own = checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, &[&format!("resumed checkpoint={own} ")])?;
    let all = branches(&world)?;
    let left = all[1].1;
    ensure!(
        left.is_some() && all == [(first, None), (second, left), (third, left), (own, None)],
        "{all:?}"
    );
    let table = world.run(&["list"])?;
    let table = String::from_utf8_lossy(&table.stdout).into_owned();
    ensure!(
        table.contains(&format!("(branch {})", left.unwrap_or(0))),
        "{table}"
    );
    // What was left behind keeps its newest until a person says otherwise.
    world.json(&["prune", "--keep-last", "1"])?;
    ensure!(
        branches(&world)? == [(third, left), (own, None)],
        "{:?}",
        branches(&world)?
    );
    world.json(&["prune", "--keep-last", "1", "--drop-branches"])?;
    ensure!(
        branches(&world)? == [(own, None)],
        "{:?}",
        branches(&world)?
    );
    kill_job_and_wait(&world, &phos)?;
    finish(&world, phos, &spec)
}

#[test]
fn a_job_begins_anew_when_it_is_told_to_and_once() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--keep-last", "1"]);
    let phos = world.start(&spec)?;
    let trained = checkpoint(&world, &phos)?;
    wait_step(&world, &phos, 30)?;
    world.kill_everything()?;
    fs::remove_file(world.log())?;
    let anew = spec.with_phos(&["--start-fresh"]);
    let phos = world.start(&anew)?;
    wait_said(&phos, &["the job was started"])?;
    ensure!(phos.times(Event::Resumed) == 0, "{}", phos.tail());
    let own = checkpoint(&world, &phos)?;
    checkpoint(&world, &phos)?;
    let newest = wait_every(COSTLY, "retention", LIMIT, || {
        let all = branches(&world).ok()?;
        let current: Vec<u64> = all.iter().filter(|b| b.1.is_none()).map(|b| b.0).collect();
        (current.len() == 1 && all.len() == 2 && all[0].0 == trained && current[0] > own)
            .then(|| current[0])
    })
    .map_err(|e| e.context(format!("{:?}", branches(&world))))?;
    // Left in a script, the flag costs nothing.
    world.kill_everything()?;
    let phos = world.start(&anew)?;
    wait_said(
        &phos,
        &[
            "already began anew",
            &format!("resumed checkpoint={newest} "),
        ],
    )?;
    // The store is gone for good, and a person says so.
    world.kill_everything()?;
    fs::remove_dir_all(world.path("store"))?;
    fs::remove_file(world.log())?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &[WAITS])?;
    world.kill_everything()?;
    let phos = world.start(&anew)?;
    wait_said(&phos, &["the job was started"])?;
    let first = checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, &[&format!("resumed checkpoint={first} ")])?;
    finish(&world, phos, &spec)
}
