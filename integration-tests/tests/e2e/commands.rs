//! What a user types: `checkpoint`, `status`, `list`, `show`, `restore`; and SIGTERM.

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, finish, kill_job_and_wait, last_step, wait_said, wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World, kill_all, wait_for};
use phos_policies::interval::{AdaptiveInterval, IntervalConfig};
use rustix::process::{Pid, Signal, kill_process};

/// No checkpoint but those asked for.
fn on_demand() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
}

/// What a command prints when it succeeds.
fn said(world: &World, args: &[&str]) -> Result<String> {
    let output = world.run(args)?;
    ensure!(
        output.status.success(),
        "{args:?} ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// What a command prints when it ends with `code`.
fn fails(output: &Output, code: i32, words: &[&str]) -> Result<()> {
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.code() == Some(code),
        "it ended with {}, not {code}: {said}",
        output.status
    );
    for word in words {
        ensure!(said.contains(word), "{said:?} does not say {word:?}");
    }
    Ok(())
}

fn all(text: &str, words: &[&str]) -> Result<()> {
    for word in words {
        ensure!(text.contains(word), "no {word:?} in:\n{text}");
    }
    Ok(())
}

fn wait_running(world: &World, phos: &PhosFt) -> Result<()> {
    wait_for("the job to run", LIMIT, || {
        let status = world.json(&["status"]).ok()?;
        (status["state"] == "running" && last_step(world)? > 3).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

fn terminate(phos: &PhosFt) -> Result<()> {
    let pid = Pid::from_raw(phos.child.id() as i32).context("no PID")?;
    Ok(kill_process(pid, Signal::TERM)?)
}

#[test]
fn checkpoint_status_list_and_show() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = on_demand();
    // Nothing runs, nothing is stored.
    fails(
        &world.run(&["status"])?,
        69,
        &["no sidecar answers", "--run-dir"],
    )?;
    fails(&world.run(&["checkpoint"])?, 69, &["no sidecar answers"])?;
    all(
        &said(&world, &["list"])?,
        &[&world.job, "has no checkpoints"],
    )?;
    ensure!(world.checkpoints()?.is_empty());
    fails(
        &world.run(&["show", "7"])?,
        66,
        &["has no checkpoints", "no such directory"],
    )?;
    fails(&world.run(&["restore"])?, 66, &["has no checkpoints"])?;

    let phos = world.start(&spec)?;
    wait_running(&world, &phos)?;

    // It is there as soon as the command has ended: no more waiting.
    let human = said(&world, &["checkpoint"])?;
    let list = world.checkpoints()?;
    let [first] = &list[..] else {
        bail!("{} checkpoints after one: {list:?}", list.len());
    };
    all(
        &human,
        &[
            &format!("checkpoint {} (local): stop ", first.number),
            " ms, ",
            " stored, ",
        ],
    )?;
    ensure!(first.trigger == "on-demand", "{first:?}");
    let report = world.json(&["checkpoint"])?;
    let list = world.checkpoints()?;
    let second = list.last().context("no checkpoint")?;
    ensure!(list.len() == 2 && second.number > first.number, "{list:?}");
    ensure!(report["id"] == second.number, "{report}");
    ensure!(report["total_bytes"] == second.image_bytes, "{report}");
    ensure!(report["stored_bytes"] == second.stored_bytes, "{report}");
    ensure!(
        report["stop_ms"].as_f64().map(|ms| (ms * 1e3) as u64) == Some(second.stop_us),
        "{report} {second:?}"
    );

    let status = world.json(&["status"])?;
    ensure!(
        status["job"] == world.job.as_str()
            && status["checkpoints"] == 2
            && status["failures"] == 0
            && status["last"]["id"] == second.number
            && status["resumed_from"].is_null(),
        "{status}"
    );
    all(
        &said(&world, &["status"])?,
        &[
            &format!("job          {}: running", world.job),
            "phos-trainer",
            &world.store,
            "2 stored, 0 given up",
            &format!("checkpoint {} (local): stop", second.number),
        ],
    )?;
    let table = said(&world, &["list"])?;
    for c in &list {
        let row = table
            .lines()
            .find(|l| l.trim_start().starts_with(&format!("{} ", c.number)))
            .with_context(|| format!("{} is not in:\n{table}", c.number))?;
        all(row, &["on-demand", &format!("{} ms", c.stop_us / 1000)])?;
    }
    let id = second.number.to_string();
    let shown = world.json(&["show", &id])?;
    ensure!(
        shown["id"] == second.number
            && shown["trigger"] == "on-demand"
            && shown["image_bytes"] == second.image_bytes
            && shown["architecture"] == std::env::consts::ARCH
            && shown["driver"] == "CUDA 13.0"
            && shown["damage"].is_null(),
        "{shown}"
    );
    all(
        &said(&world, &["show", &id])?,
        &[
            &format!("checkpoint   {id} of job {}", world.job),
            "phos simulated GPU",
            "phos-trainer",
            "all there",
        ],
    )?;
    fails(&world.run(&["show", "999", "--json"])?, 66, &["999"])?;
    finish(&world, phos, &spec)
}

#[test]
fn restore_of_a_named_older_checkpoint() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = on_demand();
    let phos = world.start(&spec)?;
    wait_running(&world, &phos)?;
    let mut taken = Vec::new();
    for _ in 0..3 {
        let before = last_step(&world).unwrap_or(0);
        let report = world.json(&["checkpoint"])?;
        let id = report["id"].as_u64().context("no id")?;
        // It was taken between these two.
        taken.push((id, before, last_step(&world).unwrap_or(0)));
        wait_step(&world, &phos, last_step(&world).unwrap_or(0) + 20)?;
    }
    let end = last_step(&world).unwrap_or(0);
    world.kill_everything()?;

    let (id, earliest, latest) = taken[1];
    ensure!(latest < taken[2].1 && latest < end);
    // No command is given: it is in the image.
    let mut command = world.phos_ft(&spec);
    command = {
        let mut plain = std::process::Command::new(command.get_program());
        plain.current_dir(world.path("work"));
        for (name, value) in command.get_envs() {
            plain.env(name, value.context("no value")?);
        }
        plain
    };
    command
        .args(["restore", &id.to_string(), "--interval", "never"])
        .args(["--store", &world.store, "--job", &world.job])
        .arg("--run-dir")
        .arg(world.run_dir());
    let phos = world.spawn(command)?;
    wait_said(&phos, &[&format!("resumed checkpoint={id} ")])?;
    // What was logged after the checkpoint was cut off and is kept beside the log.
    let kept = kept_of_the_log(&world)?;
    let first_cut = kept.first().copied().context("nothing was cut off")?;
    ensure!(
        (earliest + 1..=latest + 1).contains(&first_cut),
        "the job went back to step {first_cut}, not to one of {earliest} to {latest}"
    );
    let status = world.json(&["status"])?;
    ensure!(status["resumed_from"] == id, "{status}");
    // The newer ones are still there.
    let numbers: Vec<u64> = world.checkpoints()?.iter().map(|c| c.number).collect();
    ensure!(
        taken.iter().all(|(id, _, _)| numbers.contains(id)),
        "{numbers:?}"
    );
    finish(&world, phos, &spec)
}

/// The steps in what was cut off the log.
fn kept_of_the_log(world: &World) -> Result<Vec<u64>> {
    let mut steps = Vec::new();
    for entry in std::fs::read_dir(world.path("work"))? {
        let path = entry?.path();
        if path.to_string_lossy().contains(".phos-cut-") {
            let text = std::fs::read_to_string(&path)?;
            steps.extend(
                text.lines()
                    .filter_map(|l| l.split_whitespace().next()?.parse::<u64>().ok()),
            );
        }
    }
    steps.sort_unstable();
    Ok(steps)
}

#[test]
fn sigterm_takes_a_last_checkpoint_that_the_next_start_resumes() -> Result<()> {
    // The job's own end: it has no handler.
    sigterm(&[], 143)
}

/// It is not done: the next start does not begin anew.
#[test]
fn sigterm_to_a_job_that_answers_with_success() -> Result<()> {
    sigterm(&["--handle-sigterm"], 0)
}

fn sigterm(trainer: &[&str], code: i32) -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = (on_demand().with_phos(&["--grace", "60s"])).with_trainer(trainer);
    let mut phos = world.start(&spec)?;
    wait_running(&world, &phos)?;
    ensure!(world.checkpoints()?.is_empty());
    terminate(&phos)?;
    let status = phos.wait(LIMIT)?;
    ensure!(status.code() == Some(code), "{status}:\n{}", phos.tail());
    wait_for("all of it to be gone", LIMIT, || {
        (world.tree() == Default::default()).then_some(())
    })?;
    let list = world.checkpoints()?;
    let [last] = &list[..] else {
        bail!("{} checkpoints:\n{}", list.len(), phos.tail());
    };
    ensure!(last.trigger == "terminate", "{last:?}");
    let phos = world.start(&spec)?;
    wait_said(&phos, &[&format!("resumed checkpoint={} ", last.number)])?;
    finish(&world, phos, &spec)
}

#[test]
fn sigterm_without_time_for_a_checkpoint_ends_the_job_in_time() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "500ms".into(),
        ..on_demand()
    }
    .with_phos(&["--grace", "1ms"]);
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 1, LIMIT)?;
    terminate(&phos)?;
    let status = phos.wait(LIMIT)?;
    ensure!(
        matches!(status.code(), Some(137 | 143)),
        "{status}:\n{}",
        phos.tail()
    );
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finish(&world, phos, &spec)
}

/// As agent and sidecar are in containers of their own: the agent is gone when the checkpoint is there. The job is done all the same.
#[test]
fn a_job_that_succeeds_while_its_checkpoint_is_stored_is_done() -> Result<()> {
    let world = World::simulated(1, 256)?;
    // What is new takes seconds to be sent.
    let spec = JobSpec { ..on_demand() }
        .with_trainer(&["--ballast-mib", "64"])
        .with_phos(&["--upload-limit", "8MiB"]);
    let mut sidecar = world.spawn(world.phos_ft(&spec))?;
    let mut agent = world.spawn(world.agent(&spec))?;
    wait_step(&world, &sidecar, 3)?;
    let taken = std::thread::scope(|scope| -> Result<_> {
        let asked = scope.spawn(|| world.json(&["checkpoint"]));
        wait_said(&agent, &["the job runs again"])?;
        world.finish()?;
        let status = agent.wait(LIMIT)?;
        ensure!(status.success(), "{status}:\n{}", agent.tail());
        ensure!(!asked.is_finished(), "it was stored before the job ended");
        Ok(asked.join())
    })?;
    let taken = taken.map_err(|_| anyhow::anyhow!("a thread panicked"))??;
    ensure!(taken["id"].is_u64(), "{taken}");
    let status = sidecar.wait(LIMIT)?;
    ensure!(status.success(), "{status}:\n{}", sidecar.tail());
    ensure!(
        sidecar.said().contains("the job ended successfully"),
        "{}",
        sidecar.tail()
    );
    Ok(())
}

/// The interval that costs least follows from what a checkpoint took, and is what the schedule goes by from then on.
#[test]
fn an_interval_that_adapts() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "auto".into(),
        ..on_demand()
    };
    disturbed(&world, &spec, |world, phos| {
        wait_running(world, phos)?;
        let interval = || -> Result<f64> {
            let status = world.json(&["status"])?;
            status["interval_seconds"].as_f64().context("no interval")
        };
        ensure!(interval()? == 60.0);
        let taken = world.json(&["checkpoint"]).with_context(|| phos.tail())?;
        let (stop, whole) = (taken["stop_ms"].as_f64(), taken["seconds"].as_f64());
        let (stop, whole) = stop.zip(whole).context("no times")?;
        let mut known = AdaptiveInterval::new(IntervalConfig::default());
        known.checkpoint(
            Duration::from_secs_f64(stop / 1e3),
            Duration::from_secs_f64(whole),
        );
        let expected = known.interval(Duration::ZERO).as_secs_f64();
        let found = interval()?;
        // A change of less than a tenth is not made.
        let follows = |found: f64, before: f64, expected: f64| {
            if (expected - before).abs() < 0.1 * before {
                found == before
            } else {
                (found - expected).abs() <= 0.11 * expected + 2.0
            }
        };
        ensure!(
            follows(found, 60.0, expected),
            "{found} s instead of {expected}: {taken}"
        );
        // A failure is a reason for more checkpoints, from the resume on: what the next one takes has no part in it yet.
        for _ in 0..3 {
            kill_job_and_wait(world, phos)?;
            wait_running(world, phos)?;
            known.failed();
        }
        let expected = known.interval(Duration::ZERO).as_secs_f64();
        let after = interval()?;
        ensure!(
            after < found && follows(after, found, expected),
            "{after} s after three crashes instead of {expected}, {found} s before"
        );
        Ok(())
    })
}

/// What is generated is of the command line as it is, and a shell takes it.
#[test]
fn completions_and_manual_pages() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let script = world.run(&["completions", "bash"])?;
    ensure!(script.status.success(), "{script:?}");
    let file = world.path("completions");
    std::fs::write(&file, &script.stdout)?;
    // What it offers after `phos-ft e`.
    let ask = format!(
        "source {}; COMP_WORDS=(phos-ft e); COMP_CWORD=1; _phos__ft phos-ft e phos-ft; echo \"${{COMPREPLY[@]}}\"",
        file.display()
    );
    let offered = std::process::Command::new("bash")
        .args(["-c", &ask])
        .output()?;
    let offered = String::from_utf8(offered.stdout)?;
    ensure!(
        offered.contains("events") && offered.contains("export"),
        "{offered}"
    );

    let pages = world.path("pages");
    let missing = world.run(&["man", &pages.display().to_string()])?;
    ensure!(missing.status.code() == Some(73), "{missing:?}");
    std::fs::create_dir(&pages)?;
    let written = world.run(&["man", &pages.display().to_string()])?;
    ensure!(written.status.success(), "{written:?}");
    for page in ["phos-ft.1", "phos-ft-checkpoint.1", "phos-ft-events.1"] {
        let text = std::fs::read_to_string(pages.join(page))?;
        ensure!(
            text.contains(".TH phos") && text.contains("OPTIONS"),
            "{page}: {text}"
        );
    }
    Ok(())
}

/// What stands in the file holds until the next start: a mistake that somebody makes in it meanwhile is named to whoever reads it next, and keeps no sidecar
/// from its job.
#[test]
fn a_configuration_file_with_a_mistake_reaches_no_running_job() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let path = world.path("phos-ft.toml");
    let file = path.display().to_string();
    std::fs::write(&path, "# of this machine\nlease = \"20s\"\n")?;
    let spec = on_demand().with_env("PHOS_CONFIG", &file);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let shown = world.json(&["config", "--config", &file])?;
        let mut options = shown.as_array().context("no list")?.iter();
        let lease = options.find(|shown| shown["option"] == "lease");
        let lease = lease.context("no lease")?;
        ensure!(lease["value"] == "20s" && lease["line"] == 2, "{lease}");
        std::fs::write(&path, "lease = 20\n")?;
        let refused = world.run(&["status", "--config", &file])?;
        fails(&refused, 64, &["line 1: lease = \"20\" is refused"])?;
        kill_all(&[*world.tree().sidecar.last().context("no sidecar")?]);
        checkpoint(world, phos).map(drop)
    })
}

/// Started with `&` from an interactive shell, a job takes nothing of what is typed next, which is for the shell.
#[test]
fn what_is_typed_is_the_shells_while_the_job_is_in_the_background() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let job = world.trainer(&on_demand());
    let quoted = |word: &std::ffi::OsStr| format!("'{}'", word.to_string_lossy());
    let words = std::iter::once(job.get_program()).chain(job.get_args());
    let words: Vec<String> = words.map(quoted).collect();
    let mut shell = Command::new("script");
    shell
        .args(["-qfec", "bash --norc --noprofile -i", "/dev/null"])
        .current_dir(world.path("work"))
        .envs(
            job.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut shell = shell.spawn()?;
    let mut typed = shell.stdin.take().context("no input")?;
    let mut shown = shell.stdout.take().context("no output")?;
    let screen = Arc::new(Mutex::new(String::new()));
    let seen = Arc::clone(&screen);
    // It ends with the shell.
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = shown.read(&mut part) {
            if let Ok(mut seen) = seen.lock() {
                seen.push_str(&String::from_utf8_lossy(&part[..count]));
            }
        }
    });
    let shows = |what: &str| screen.lock().is_ok_and(|screen| screen.contains(what));
    let log = world.path("phos-ft.log").display().to_string();
    writeln!(typed, "{} >'{log}' 2>&1 &", words.join(" "))?;
    wait_for("a step", LIMIT, || (last_step(&world)? >= 5).then_some(()))?;
    for number in 41..44 {
        // What is shown is the result, and not the line.
        writeln!(typed, "echo typed-$(({number} + 1))")?;
        wait_for("what was typed to be run", LIMIT, || {
            shows(&format!("typed-{}", number + 1)).then_some(())
        })
        .map_err(|e| e.context(screen.lock().map(|s| s.clone()).unwrap_or_default()))?;
    }
    world.hurry()?;
    world.finish()?;
    // As the last line that is shown: the shell has waited for the job.
    writeln!(typed, "wait $!; echo ended-$?; exit")?;
    wait_for("the job's end", LIMIT, || shows("ended-0").then_some(()))?;
    shell.wait()?;
    Ok(())
}
