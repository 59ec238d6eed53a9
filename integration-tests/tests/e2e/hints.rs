//! What a program may tell phos-ft of itself, and what it is told: by the Python module and the header that are installed with phos-ft.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use phos_integration_tests::scenario::{LIMIT, checkpoint, disturbed, kill_job_and_wait};
use phos_integration_tests::{JobSpec, PhosFt, World, bin_dir, kill_all, processes_with, wait_for};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// A Python program that gives hints, under phos-ft.
struct Hinting {
    world: World,
    phos: PhosFt,
}

impl Hinting {
    fn start(phos: &[&str]) -> Result<Hinting> {
        let world = World::simulated(1, 64)?;
        fs::create_dir(world.path("work/orders"))?;
        let module = root().join("sidecar/packaging");
        let spec = JobSpec {
            interval: "never".into(),
            ..JobSpec::default()
        }
        .with_env("PYTHONPATH", &module.display().to_string())
        .with_phos(phos);
        let mut command = world.phos_ft(&spec);
        command
            .args(["--", "python3"])
            .arg(root().join("integration-tests/programs/hinting.py"))
            .arg(world.path("work/hinting.log"))
            .arg(world.path("work/orders"));
        let phos = world.spawn(command)?;
        let hinting = Hinting { world, phos };
        hinting.says("step 20")?;
        Ok(hinting)
    }

    /// What it has written so far.
    fn lines(&self) -> Vec<String> {
        let text = fs::read_to_string(self.world.path("work/hinting.log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Waits for a line that begins so; the newest such.
    fn says(&self, beginning: &str) -> Result<String> {
        wait_for(&format!("a line {beginning}…"), LIMIT, || {
            let lines = self.lines();
            lines.into_iter().rfind(|line| line.starts_with(beginning))
        })
        .map_err(|e| e.context(self.phos.tail()))
    }

    /// Has it do something, and waits until it is done; the last line before that.
    fn order(&self, what: &str) -> Result<String> {
        let done = format!("done {what}");
        let before = self.lines().iter().filter(|line| **line == done).count();
        self.begin(what)?;
        wait_for(&format!("{what} to be done"), LIMIT, || {
            let lines = self.lines();
            let at = lines.iter().enumerate().filter(|(_, line)| **line == done);
            let at = at.map(|(at, _)| at).nth(before)?;
            lines.get(at.checked_sub(1)?).cloned()
        })
        .map_err(|e| e.context(self.phos.tail()))
    }

    /// Has it do something.
    fn begin(&self, what: &str) -> Result<()> {
        Ok(fs::write(self.world.path("work/orders").join(what), b"")?)
    }

    /// The number of the step that it ended last.
    fn step(&self) -> u64 {
        let steps = self.lines().into_iter();
        let steps = steps.filter_map(|line| line.strip_prefix("step ")?.parse().ok());
        steps.max().unwrap_or(0)
    }

    fn wait_step(&self, step: u64) -> Result<()> {
        wait_for(&format!("step {step}"), LIMIT, || {
            (self.step() >= step).then_some(())
        })
        .map_err(|e| e.context(self.phos.tail()))
    }

    /// Waits until the program knows this checkpoint, of which its answer says that.
    fn is_told(&self, id: u64, of: &str) -> Result<()> {
        let number = format!("last Checkpoint(number={id}, ");
        wait_for("the program to be told", LIMIT, || {
            let last = self.order("last").ok()?;
            (last.starts_with(&number) && last.contains(of)).then_some(())
        })
        .map_err(|e| e.context(format!("{of}: {:?}", self.lines().last())))
    }

    fn finish(mut self) -> Result<()> {
        self.begin("finish")?;
        let status = self.phos.wait(LIMIT)?;
        ensure!(status.success(), "{status}: {}", self.phos.tail());
        Ok(())
    }
}

/// Takes a checkpoint and has the job resumed from it: whether the program finds itself at the end of the step that the checkpoint says.
fn taken_at_a_step(job: &Hinting) -> Result<bool> {
    let taken = job.world.json(&["checkpoint"])?;
    let step = taken["step"].as_u64().context("no step")?;
    ensure!(step >= 20, "{taken}");
    let id = taken["id"].as_u64().context("no id")?;
    let shown = job.world.run(&["show", &id.to_string(), "--json"])?;
    let shown: serde_json::Value = serde_json::from_slice(&shown.stdout)?;
    ensure!(shown["step"].as_u64() == Some(step), "{shown}");
    job.is_told(id, &format!("step={step}, in_store=True"))?;
    // Long enough to be seen as a gap by the program: 10 ms a step.
    job.wait_step(step + 200)?;
    // phos-ft has the command among its arguments.
    let log = job.world.path("work/hinting.log").display().to_string();
    let mut running = processes_with(&["hinting.py", &log]);
    running.retain(|pid| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "python3")
    });
    ensure!(running.len() == 1, "{running:?}");
    let noticed = || job.lines().into_iter().filter(|l| l.starts_with("away "));
    let before = noticed().count();
    kill_all(&running);
    let away = wait_for("the program to notice", LIMIT, || noticed().nth(before))
        .map_err(|e| e.context(job.phos.tail()))?;
    // It is told the checkpoint that it came from.
    job.is_told(id, &format!("step={step}, "))?;
    let inside = format!("away inside {step}");
    ensure!(
        away == inside || away.starts_with("away outside "),
        "{away}, not {step}"
    );
    Ok(away == inside)
}

/// A program that tells its steps is checkpointed at the end of one, and finds itself there when it is resumed.
#[test]
fn a_checkpoint_is_taken_where_a_step_ends() -> Result<()> {
    let job = Hinting::start(&[])?;
    ensure!(job.order("last")? == "last None", "{:?}", job.lines());
    // Where the machine is too busy to answer in time, the step after that has begun: five times in a row it never was.
    for _ in 0..5 {
        if taken_at_a_step(&job)? {
            return job.finish();
        }
    }
    bail!("{:?}", job.lines())
}

/// A program asks for checkpoints; one that waits for it goes on where that is resumed.
#[test]
fn a_program_asks_for_a_checkpoint() -> Result<()> {
    let job = Hinting::start(&[])?;
    ensure!(job.order("ask")? == "ask True", "{:?}", job.lines());
    wait_for("a checkpoint", LIMIT, || {
        job.world.checkpoints().ok().filter(|c| c.len() == 1)
    })
    .map_err(|e| e.context(job.phos.tail()))?;
    ensure!(job.order("wait")? == "wait True", "{:?}", job.lines());
    ensure!(job.world.checkpoints()?.len() == 2, "{}", job.phos.tail());
    job.finish()
}

/// No checkpoint is taken in a section that the program does not want one in; the one that was asked for is taken after it.
#[test]
fn no_checkpoint_where_the_program_wants_none() -> Result<()> {
    let job = Hinting::start(&[])?;
    job.order("begin")?;
    job.order("ask")?;
    wait_for("a try", LIMIT, || {
        let out = job.world.run(&["events", "--json"]).ok()?;
        let events = String::from_utf8(out.stdout).ok()?;
        let tried = events.lines().any(|line| {
            line.contains(r#""quiesce-retried""#) && line.contains(r#""reason":"section""#)
        });
        tried.then_some(())
    })
    .map_err(|e| e.context(job.phos.tail()))?;
    let step = job.step();
    job.wait_step(step + 20)?;
    ensure!(job.world.checkpoints()?.is_empty(), "{}", job.phos.tail());
    job.order("end")?;
    wait_for("the checkpoint", LIMIT, || {
        job.world.checkpoints().ok().filter(|c| c.len() == 1)
    })
    .map_err(|e| e.context(job.phos.tail()))?;
    job.finish()
}

/// A program that has stopped telling its steps is checkpointed all the same.
#[test]
fn steps_that_are_no_longer_told_are_not_waited_for() -> Result<()> {
    let job = Hinting::start(&[])?;
    job.order("quiet")?;
    let step = job.step();
    job.wait_step(step + 5)?;
    let taken = job.world.json(&["checkpoint"])?;
    ensure!(taken["id"].is_u64(), "{taken}");
    job.finish()
}

/// Ranks that tell their steps are held at a common point, as they are without; steps of theirs are known.
#[test]
fn ranks_that_tell_their_steps() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let library = bin_dir().join("libphos_nccl_sim.so");
    let spec = JobSpec {
        interval: "never".into(),
        trainer: Vec::new(),
        ..JobSpec::default()
    }
    .with_trainer(&["--hints", "--rank-processes", "2", "--layers", "16,16,4"])
    .with_trainer(&["--batch", "16", "--nccl", &library.display().to_string()])
    .with_trainer(&["--step-ms", "5"]);
    disturbed(&world, &spec, |world, phos| {
        for _ in 0..5 {
            checkpoint(world, phos)?;
        }
        let taken = world.json(&["checkpoint"])?;
        ensure!(taken["step"].as_u64().is_some(), "{taken}");
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// The header compiles as C and C++, needs no library, and does nothing in a program that phos-ft does not look after.
#[test]
fn the_header_without_phos_ft() -> Result<()> {
    const PROGRAM: &str = r#"
        #include "phos_ft.h"
        int main(void) {
            struct phos_ft_checkpoint last = { sizeof last, 0, 0, 0, 0 };
            return !(phos_ft_step_ended(3) == PHOS_FT_ABSENT && phos_ft_begin_no_checkpoint() == PHOS_FT_ABSENT
                && phos_ft_end_no_checkpoint() == PHOS_FT_ABSENT && phos_ft_request_checkpoint() == PHOS_FT_ABSENT
                && phos_ft_last_checkpoint(&last) == PHOS_FT_ABSENT);
        }
    "#;
    let dir = tempfile::tempdir()?;
    for (name, language) in [("c", "-std=c99"), ("cpp", "-std=c++11")] {
        let source = dir.path().join(format!("hints.{name}"));
        fs::write(&source, PROGRAM)?;
        let program = dir.path().join(name);
        let compiled = Command::new(if name == "c" { "cc" } else { "c++" })
            .args([language, "-Wall", "-Wextra", "-Wpedantic", "-Werror"])
            .arg(format!("-I{}", root().join("shim/include").display()))
            .arg(&source)
            .arg("-ldl")
            .arg("-o")
            .arg(&program)
            .output()?;
        ensure!(
            compiled.status.success(),
            "{}",
            String::from_utf8_lossy(&compiled.stderr)
        );
        for shim in ["", "libphos_shim.so"] {
            let mut run = Command::new(&program);
            run.stdin(Stdio::null());
            if !shim.is_empty() {
                run.env("LD_PRELOAD", bin_dir().join(shim));
            }
            ensure!(run.status()?.success(), "{name} with {shim:?}");
        }
    }
    Ok(())
}
