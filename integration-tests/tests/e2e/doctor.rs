//! `phos-ft doctor`: a line for each check, a remedy for what is not fit, and an exit code that a script can use.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Output;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{disturbed, wait_said};
use phos_integration_tests::{JobSpec, World};

/// A criu that answers the question for its version with 3.17, and nothing else.
fn old_criu(world: &World) -> Result<PathBuf> {
    let (path, answer) = (world.path("old-criu"), world.path("old-criu.answer"));
    // type = VERSION, success = true, version = { 3, 17 }; one packet.
    fs::write(&answer, [0x08, 10, 0x10, 1, 0x52, 4, 0x08, 3, 0x10, 17_u8])?;
    fs::write(
        &path,
        format!(
            "#!/bin/bash\n\
             dd bs=4096 count=1 status=none <&\"$2\" >/dev/null\n\
             dd bs=4096 count=1 status=none if='{}' >&\"$2\"\n",
            answer.display()
        ),
    )?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
    Ok(path)
}

/// Runs `doctor`.
fn run(world: &World, args: &[&str], env: &[(&str, &str)]) -> Result<Output> {
    let job = world.phos_ft(&JobSpec::default());
    // The flags of a job are none of doctor's.
    let mut command = std::process::Command::new(job.get_program());
    for (name, value) in job.get_envs() {
        command.env(name, value.context("no value")?);
    }
    command
        .args(["doctor", "--store", &world.store, "--job", &world.job])
        .arg("--run-dir")
        .arg(world.run_dir())
        .arg("--state-dir")
        .arg(world.path("state"))
        .args(args)
        .envs(env.iter().copied());
    Ok(command.output()?)
}

/// Runs `doctor` and checks that both of its forms say the same.
fn doctor(world: &World, args: &[&str], env: &[(&str, &str)]) -> Result<(i32, Vec<Line>)> {
    let run = |more: &[&str]| run(world, &[args, more].concat(), env);
    let output = run(&["--json"])?;
    let lines: Vec<Line> = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{}", String::from_utf8_lossy(&output.stderr)))?;
    let human = run(&[])?;
    let text = String::from_utf8_lossy(&human.stdout).into_owned();
    ensure!(
        human.status.code() == output.status.code(),
        "the two forms end differently"
    );
    for line in &lines {
        let shown = text
            .lines()
            .any(|l| l.starts_with(&line.verdict) && l.contains(&format!("  {} ", line.check)));
        // What is free may have changed in between.
        ensure!(shown, "{line:?} is missing in:\n{text}");
        ensure!(
            line.verdict == "ok" || !line.remedy.is_empty(),
            "{line:?} has no remedy"
        );
        ensure!(
            text.contains(&line.remedy),
            "{line:?}: no remedy in:\n{text}"
        );
    }
    Ok((output.status.code().context("killed")?, lines))
}

#[derive(Debug, serde::Deserialize)]
struct Line {
    verdict: String,
    check: String,
    found: String,
    #[serde(default)]
    remedy: String,
}

/// The one line that fails is that of `check`, and it says all of `words`.
fn fails(outcome: (i32, Vec<Line>), check: &str, words: &[&str]) -> Result<()> {
    let (code, lines) = outcome;
    ensure!(code == 1, "it ended with {code}");
    let failed: Vec<&Line> = lines.iter().filter(|l| l.verdict == "fail").collect();
    ensure!(
        failed.iter().all(|l| l.check == check) && !failed.is_empty(),
        "{failed:?}, not {check}"
    );
    let said = failed
        .iter()
        .map(|l| format!("{} {}", l.found, l.remedy))
        .collect::<String>();
    for word in words {
        ensure!(said.contains(word), "{said:?} does not say {word:?}");
    }
    Ok(())
}

#[test]
fn a_fit_machine() -> Result<()> {
    let world = World::simulated(2, 64)?;
    let (code, lines) = doctor(&world, &[], &[])?;
    ensure!(
        code == 0 && lines.iter().all(|l| l.verdict != "fail"),
        "{lines:?}"
    );
    let gpus = lines.iter().filter(|l| l.check == "gpu").count();
    ensure!(gpus == 2, "{lines:?}");
    for check in ["user", "criu", "driver", "checkpoint calls", "store"] {
        let line = lines.iter().find(|l| l.check == check);
        ensure!(line.is_some_and(|l| l.verdict == "ok"), "{line:?}");
    }
    Ok(())
}

#[test]
fn what_is_missing_is_named_with_its_remedy() -> Result<()> {
    let mut world = World::simulated(1, 64)?;
    fails(
        doctor(&world, &["--criu", "/nowhere/criu"], &[])?,
        "criu",
        &["/nowhere/criu", "make setup", "--criu"],
    )?;
    let old = old_criu(&world)?;
    fails(
        doctor(&world, &["--criu", &old.display().to_string()], &[])?,
        "criu",
        &["old-criu", "3.17", "4.1", "make setup"],
    )?;
    fails(
        doctor(&world, &[], &[("PHOS_SIM_NO_CHECKPOINT", "1")])?,
        "checkpoint calls",
        &["12040", "570"],
    )?;
    let empty = world.path("no-gpu").display().to_string();
    let (code, lines) = doctor(&world, &[], &[("PHOS_SIM_DIR", &empty)])?;
    ensure!(code == 1, "no GPU: {code}, {lines:?}");
    // A file where a directory should be.
    // What was made to try it is gone.
    ensure!(!world.path("run").exists(), "doctor left a run directory");
    fs::write(world.path("run"), b"")?;
    fails(doctor(&world, &[], &[])?, "run directory", &["--run-dir"])?;
    fs::remove_file(world.path("run"))?;
    world.store = "s3://nobody/there".into();
    let s3 = [
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:9"),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "x"),
        ("AWS_SECRET_ACCESS_KEY", "x"),
        ("AWS_REGION", "us-east-1"),
    ];
    fails(doctor(&world, &[], &s3)?, "store", &["nobody", "--store"])
}

#[test]
fn directories_that_others_can_change_are_closed_where_that_is_asked_for() -> Result<()> {
    let world = World::simulated(1, 64)?;
    let (state, store) = (world.path("state"), world.path("store"));
    for directory in [&state, &store] {
        fs::create_dir(directory)?;
        fs::set_permissions(directory, fs::Permissions::from_mode(0o777))?;
    }
    let modes = || -> Result<Vec<u32>> {
        let mode = |path| Ok(fs::metadata(path)?.permissions().mode() & 0o777);
        [&state, &store].into_iter().map(mode).collect()
    };
    let warned = |lines: &[Line]| -> Vec<String> {
        let lines = lines.iter().filter(|line| line.verdict == "warn");
        lines.map(|line| line.check.clone()).collect()
    };
    let open = doctor(&world, &[], &[])?.1;
    ensure!(
        warned(&open) == ["state directory", "store directory"] && modes()? == [0o777, 0o777],
        "{open:?}"
    );
    let mended = run(&world, &["--fix", "--json"], &[])?;
    let lines: Vec<Line> = serde_json::from_slice(&mended.stdout)?;
    let fixed = lines.iter().filter(|line| line.check == "fixed").count();
    ensure!(fixed == 2 && warned(&lines).is_empty(), "{lines:?}");
    ensure!(modes()? == [0o755, 0o700], "{:?}", modes()?);
    // What has anything else in it may be used by others.
    fs::set_permissions(&store, fs::Permissions::from_mode(0o777))?;
    fs::write(store.join("data.bin"), b"x")?;
    let left = run(&world, &["--fix", "--json"], &[])?;
    let lines: Vec<Line> = serde_json::from_slice(&left.stdout)?;
    ensure!(
        warned(&lines) == ["store directory"] && modes()? == [0o755, 0o777],
        "{lines:?}"
    );
    Ok(())
}

#[test]
fn not_root() -> Result<()> {
    let world = World::simulated(1, 64)?;
    for dir in ["", "work"] {
        fs::set_permissions(world.path(dir), fs::Permissions::from_mode(0o777))?;
    }
    let mut command = world.phos_ft(&JobSpec::default());
    let mut plain = std::process::Command::new(command.get_program());
    for (name, value) in command.get_envs() {
        plain.env(name, value.context("no value")?);
    }
    command = plain;
    let output = command
        .args(["doctor", "--json", "--store", &world.store])
        .arg("--run-dir")
        .arg(world.run_dir())
        .uid(65534)
        .gid(65534)
        .output()?;
    let lines: Vec<Line> = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("{}", String::from_utf8_lossy(&output.stderr)))?;
    ensure!(output.status.code() == Some(1), "{}", output.status);
    let line = |check: &str| lines.iter().find(|l| l.check == check);
    let user = line("user").context("no line for the user")?;
    ensure!(
        user.verdict == "fail" && user.found == "uid 65534" && user.remedy.contains("root"),
        "{user:?}"
    );
    let capabilities = line("capabilities").context("no line for the capabilities")?;
    ensure!(
        capabilities.verdict == "fail" && capabilities.remedy.contains("--cap-add"),
        "{capabilities:?}"
    );
    Ok(())
}

/// The job trains; its checkpoints are refused with the reason.
#[test]
fn a_criu_that_is_too_old() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let old = old_criu(&world)?.display().to_string();
    let spec = JobSpec {
        interval: "500ms".into(),
        ..JobSpec::default()
    }
    .with_phos(&["--criu", &old]);
    disturbed(&world, &spec, |_, phos| {
        wait_said(phos, &["old-criu", "3.17", "4.1 or newer", "make setup"])
    })?;
    ensure!(world.checkpoints()?.is_empty());
    Ok(())
}
