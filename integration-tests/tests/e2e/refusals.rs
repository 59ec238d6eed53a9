//! What cannot work is refused with the thing, the cause and the remedy; a job that can run
//! without checkpoints runs.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::{Result, ensure};
use rustix::process::{Signal, kill_process};

use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, kill_job_and_wait, last_step, never_stopped, sidecar, stops,
    wait_said, wait_step,
};
use phos_integration_tests::{JobSpec, LossTrace, PhosFt, World, scenario, stop_process, wait_for};

fn spec() -> JobSpec {
    JobSpec {
        // None but the one that is asked for.
        interval: "never".into(),
        env: vec![("PHOS_LOG".into(), "info,phos=debug".into())],
        ..JobSpec::default()
    }
}

/// On a GPU whose stacks take little, so that little is too much.
fn on_a_small_gpu(image_limit: &str) -> JobSpec {
    let mut small = spec();
    small.env.extend([
        ("PHOS_SIM_MULTIPROCESSORS".into(), "4".into()),
        ("PHOS_SIM_STACK_MIB".into(), "32".into()),
    ]);
    small.phos = vec!["--image-limit".into(), image_limit.into()];
    small
}

fn trains_without_checkpoints(world: &World, spec: &JobSpec, words: &[&str]) -> Result<()> {
    refuses(world, spec, words, |world, phos| {
        wait_step(world, phos, 5)?;
        ask_in_vain(world)
    })?;
    ensure!(world.checkpoints()?.is_empty());
    Ok(())
}

fn ask_in_vain(world: &World) -> Result<()> {
    let asked = world.run(&["checkpoint"])?;
    ensure!(!asked.status.success(), "{asked:?}");
    Ok(())
}

/// The job trains, `ask` has phos-ft want a checkpoint, and it says why there is none and stops nothing.
fn refuses(
    world: &World,
    spec: &JobSpec,
    words: &[&str],
    ask: impl FnOnce(&World, &PhosFt) -> Result<()>,
) -> Result<()> {
    disturbed(world, spec, |world, phos| {
        ask(world, phos)?;
        without_a_stop(phos, words)
    })
}

fn without_a_stop(phos: &PhosFt, words: &[&str]) -> Result<()> {
    wait_said(phos, words)?;
    wait_said(phos, &["checkpoint given up"])?;
    never_stopped(phos)
}

#[test]
fn a_driver_without_checkpoint_calls() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        env: vec![("PHOS_SIM_NO_CHECKPOINT".into(), "1".into())],
        ..spec()
    };
    trains_without_checkpoints(&world, &spec, &["driver", "570"])
}

#[test]
fn criu_missing() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        phos: vec!["--criu".into(), "/nowhere/criu".into()],
        ..spec()
    };
    trains_without_checkpoints(&world, &spec, &["/nowhere/criu", "make setup", "--criu"])
}

#[test]
fn a_criu_that_is_something_else() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        phos: vec!["--criu".into(), "/bin/true".into()],
        ..spec()
    };
    trains_without_checkpoints(&world, &spec, &["/bin/true", "without an answer", "--criu"])
}

/// As that of a bundle does on a machine without the libraries that the bundle has for it.
#[test]
fn a_criu_that_cannot_start() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let criu = world.path("criu-alone");
    std::fs::write(
        &criu,
        "#!/bin/sh\necho 'criu: error while loading shared libraries: libnl-3.so' >&2\nexit 127\n",
    )?;
    std::fs::set_permissions(&criu, std::fs::Permissions::from_mode(0o755))?;
    let spec = JobSpec {
        phos: vec!["--criu".into(), criu.display().to_string()],
        ..spec()
    };
    trains_without_checkpoints(
        &world,
        &spec,
        &["there will be no checkpoints", "criu-alone", "libnl-3.so"],
    )
}

/// What the driver saves of its own needs room twice, in the process and in the image: known before anything stops. With less of
/// it there are checkpoints. Sizes in MiB.
fn without_room(
    image_limit: &str,
    arguments: &[&str],
    (too_much, little): (&str, &str),
    who: Who,
    words: &[&str],
) -> Result<()> {
    let spec = |size| {
        let mut all = arguments.to_vec();
        all.push(size);
        on_a_small_gpu(image_limit).with_trainer(&all)
    };
    let world = World::simulated(1, 768)?;
    let mut large = spec(too_much);
    match who {
        // The job has everything before the schedule looks at it: on a busy machine that takes longer than any interval.
        Who::Schedule => {
            large.interval = "5s".into();
            disturbed(&world, &large, |world, phos| {
                wait_said(phos, &["the job was started"])?;
                let sidecar = stop_process(sidecar(world)?)?;
                wait_step(world, phos, 5)?;
                kill_process(sidecar, Signal::CONT)?;
                without_a_stop(phos, words)?;
                // Who asks has a stop tell, which finds no room before the driver saves anything.
                ask_in_vain(world)?;
                ensure!(stops(phos) == 1, "{}", phos.tail());
                ensure!(world.checkpoints()?.is_empty());
                Ok(())
            })?;
        }
        Who::Somebody => refuses(&world, &large, words, |world, phos| {
            // 200 MiB and a little more.
            wait_said(phos, &["memory on gpus", "native=2"])?;
            ask_in_vain(world)
        })?,
    }
    let world = World::simulated(1, 768)?;
    disturbed(&world, &spec(little), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// Who wants the checkpoint.
enum Who {
    /// What only the driver knows of is in its way.
    Schedule,
    /// What the shim knows of, and tells once a second, is in everybody's.
    Somebody,
}

#[test]
fn gpu_memory_in_pools_of_the_driver_without_room_for_it() -> Result<()> {
    without_room(
        "160MiB",
        &["--pool-mib"],
        ("320", "8"),
        Who::Schedule,
        &["driver's own pools", "cudamallocasync", "--image-limit"],
    )
}

#[test]
fn arrays_without_room_for_them() -> Result<()> {
    without_room(
        "160MiB",
        &["--arrays", "--array-mib"],
        ("200", "8"),
        Who::Somebody,
        &["arrays", "--image-limit"],
    )
}

#[test]
fn variables_of_modules_without_room_for_them() -> Result<()> {
    without_room(
        "200MiB",
        &["--variable-mib"],
        ("360", "8"),
        Who::Schedule,
        &["variables of modules", "--image-limit"],
    )
}

/// The stacks of GPU threads are given back before the driver saves anything: they need no room.
#[test]
fn stacks_of_gpu_threads_need_no_room() -> Result<()> {
    let world = World::simulated(1, 768)?;
    let mut spec = on_a_small_gpu("200MiB");
    spec.env.retain(|(name, _)| !name.starts_with("PHOS_SIM_"));
    spec.env.push(("PHOS_SIM_STACK_MIB".into(), "264".into()));
    spec.interval = "1s".into();
    disturbed(&world, &spec, |world, phos| {
        wait_said(phos, &["checkpoint id="])?;
        let status = world.json(&["status"])?;
        ensure!(
            status["failures"] == 0 && status["unprotected"].is_null(),
            "{status}"
        );
        Ok(())
    })
}

/// A kernel made them so large that they look like what the driver saves. Who asks for a checkpoint has one at once, and from then on
/// the schedule has its own.
#[test]
fn stacks_that_look_like_something_else_are_in_nobodys_way_for_long() -> Result<()> {
    let world = World::simulated(1, 768)?;
    let mut spec = on_a_small_gpu("200MiB");
    spec.env.push(("PHOS_SIM_STACK_MIB".into(), "400".into()));
    spec.interval = "1s".into();
    disturbed(&world, &spec, |world, phos| {
        wait_said(phos, &["the image needs about", "--image-limit"])?;
        never_stopped(phos)?;
        checkpoint(world, phos)?;
        // By itself.
        let had = world.checkpoints()?.len();
        wait_for("a checkpoint by the schedule", LIMIT, || {
            let all = world.checkpoints().ok()?;
            (all.len() > had + 1).then_some(())
        })
        .map_err(|e| e.context(phos.tail()))
    })
}

#[test]
fn a_gate_that_cannot_close_in_time() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        // Kernels that outlast the timeout, and the moments between steps in which nothing is in flight: those of a busy machine are milliseconds.
        env: vec![("PHOS_SIM_KERNEL_US".into(), "20000".into())],
        phos: vec!["--quiesce-timeout".into(), "1ms".into()],
        ..spec()
    };
    trains_without_checkpoints(&world, &spec, &["did not end in time"])
}

#[test]
fn not_root() -> Result<()> {
    let world = World::simulated(1, 256)?;
    // What it may not do is the point, not where it may write.
    for dir in ["", "work"] {
        std::fs::set_permissions(
            world.path(dir),
            std::os::unix::fs::PermissionsExt::from_mode(0o777),
        )?;
    }
    let mut command = world.phos_ft(&spec());
    command.args(["--", "true"]).uid(65534).gid(65534);
    let output = command.output()?;
    let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
    ensure!(
        output.status.code() == Some(77),
        "{}: {said}",
        output.status
    );
    ensure!(said.contains("root") || said.contains("cap_"), "{said}");
    ensure!(!world.path("store/jobs").exists(), "a history was begun");
    Ok(())
}

fn refused(world: &World, args: &[&str], words: &[&str]) -> Result<()> {
    let mut command = std::process::Command::new(phos_integration_tests::bin_dir().join("phos-ft"));
    let output = command
        .args(args)
        .current_dir(world.path("work"))
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(!output.status.success(), "{args:?} was accepted");
    for word in words {
        ensure!(said.contains(word), "{args:?} said {said:?}, not {word:?}");
    }
    Ok(())
}

#[test]
fn bad_input() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let store = world.store.clone();
    refused(
        &world,
        &["--interval", "often", "--store", &store, "--", "true"],
        &["often"],
    )?;
    refused(
        &world,
        &["--interval", "0s", "--store", &store, "--", "true"],
        &["0s"],
    )?;
    refused(
        &world,
        &["--interval", "60s", "--store", "ftp://x/y", "--", "true"],
        &["ftp", "s3://", "file://"],
    )?;
    refused(
        &world,
        &[
            "--interval",
            "60s",
            "--store",
            &store,
            "--job",
            "../x",
            "--",
            "true",
        ],
        &["../x"],
    )?;
    refused(&world, &["run"], &["CMD"])?;
    // As of an empty variable. Without -- it would be the sidecar of another command's job.
    refused(
        &world,
        &["--interval", "60s", "--store", &store, "--"],
        &["no command after --", "phos-ft -- python train.py"],
    )?;
    refused(
        &world,
        &[
            "--interval",
            "60s",
            "--job",
            "x",
            "--state-dir",
            "/proc/nowhere",
            "--run-dir",
            "/proc/nowhere",
            "--",
            "true",
        ],
        &["/proc/nowhere"],
    )
}

/// What phos-ft cannot say ends neither it nor the job.
#[test]
fn a_log_that_nobody_can_write() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "200ms".into(),
        trainer: vec!["--quiet".into(), "--step-ms".into(), "20".into()],
        ..JobSpec::default()
    };
    let mut command = world.trainer(&spec);
    let full = std::fs::File::create("/dev/full")?;
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(full);
    let mut phos = PhosFt {
        child: command.process_group(0).spawn()?,
        output: world.path("no-output"),
    };
    wait_step(&world, &phos, 2)?;
    wait_for("a checkpoint", LIMIT, || {
        world
            .checkpoints()
            .is_ok_and(|all| !all.is_empty())
            .then_some(())
    })?;
    world.hurry()?;
    world.finish()?;
    let status = phos.wait(LIMIT)?;
    ensure!(status.success(), "it ended with {status}");
    let trace = LossTrace::read(&world.log())?;
    let made = trace.len() as u64;
    let reference = world.reference(&spec, made)?;
    ensure!(trace.first_difference(&reference).is_none());
    Ok(())
}

/// On a machine that never saw the job as well.
#[test]
fn a_checkpoint_to_go_back_to_that_is_not_there() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let phos = world.start(&spec())?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    for memory in ["run", "state"] {
        std::fs::remove_dir_all(world.path(memory))?;
    }
    scenario::refused(
        &world,
        &spec().with_phos(&["--from", "99"]),
        66,
        &["no checkpoint 99"],
    )
}

/// An agent that waits no longer for its sidecar lets the job go on; what that copies from then on is of another moment.
#[test]
fn an_attempt_that_the_agent_has_undone() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_env("PHOS_TIMEOUTS", "detached=0");
    disturbed(&world, &spec, |world, phos| {
        let mut undone = 0;
        // A sidecar that is fast enough may have asked for its end in the moment in which the agent looks.
        while undone < 3 {
            wait_step(world, phos, last_step(world).unwrap_or(0) + 1)?;
            let asked = world.run(&["checkpoint"])?;
            let why = String::from_utf8_lossy(&asked.stderr);
            ensure!(
                asked.status.success() || why.contains("was abandoned"),
                "{asked:?}"
            );
            undone += u32::from(!asked.status.success());
        }
        let whole = world.checkpoints()?.len();
        let verified = world.run(&["verify", "--deep"])?;
        ensure!(
            verified.status.success() || whole == 0,
            "{verified:?}\n{}",
            phos.tail()
        );
        if whole > 0 {
            kill_job_and_wait(world, phos)?;
        }
        Ok(())
    })
}
