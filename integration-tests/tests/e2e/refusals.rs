//! What cannot work is refused with the thing, the cause and the remedy; a job that can run
//! without checkpoints runs.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::{Result, ensure};

use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, kill_job_and_wait, last_step, never_stopped, wait_said, wait_step,
};
use phos_integration_tests::{JobSpec, LossTrace, PhosFt, World, scenario, wait_for};

fn spec() -> JobSpec {
    JobSpec {
        // None but the one that is asked for.
        interval: "never".into(),
        env: vec![("PHOS_LOG".into(), "info,phos_ft=debug".into())],
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
    once_known(world, spec, &[], words)
}

/// The same, asked for once phos-ft has heard what the job has.
fn once_known(world: &World, spec: &JobSpec, known: &[&str], words: &[&str]) -> Result<()> {
    disturbed(world, spec, |world, phos| {
        wait_step(world, phos, 5)?;
        wait_said(phos, known)?;
        let asked = world.run(&["checkpoint"])?;
        ensure!(!asked.status.success(), "{asked:?}");
        wait_said(phos, words)?;
        never_stopped(phos)
    })?;
    ensure!(world.checkpoints()?.is_empty());
    Ok(())
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
/// it there are checkpoints.
struct Own {
    image_limit: &'static str,
    arguments: &'static [&'static str],
    /// In MiB: too much, and little enough.
    sizes: [&'static str; 2],
    /// What the agent has to hear of it before.
    known: &'static [&'static str],
    words: &'static [&'static str],
}

fn without_room(own: &Own) -> Result<()> {
    let spec = |size| {
        let mut arguments = own.arguments.to_vec();
        arguments.push(size);
        on_a_small_gpu(own.image_limit).with_trainer(&arguments)
    };
    let world = World::simulated(1, 768)?;
    once_known(&world, &spec(own.sizes[0]), own.known, own.words)?;
    let world = World::simulated(1, 768)?;
    disturbed(&world, &spec(own.sizes[1]), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// What only the driver knows of.
#[test]
fn gpu_memory_in_pools_of_the_driver_without_room_for_it() -> Result<()> {
    without_room(&Own {
        image_limit: "160MiB",
        arguments: &["--pool-mib"],
        sizes: ["320", "8"],
        known: &[],
        words: &["driver's own pools", "cudamallocasync", "--image-limit"],
    })
}

/// What the shim knows of, and tells once a second.
#[test]
fn arrays_without_room_for_them() -> Result<()> {
    without_room(&Own {
        image_limit: "160MiB",
        arguments: &["--arrays", "--array-mib"],
        sizes: ["200", "8"],
        // 200 MiB and a little more.
        known: &["native=2"],
        words: &["arrays", "--image-limit"],
    })
}

/// What only the driver knows of.
#[test]
fn variables_of_modules_without_room_for_them() -> Result<()> {
    without_room(&Own {
        image_limit: "200MiB",
        arguments: &["--variable-mib"],
        sizes: ["360", "8"],
        known: &[],
        words: &["variables of modules", "--image-limit"],
    })
}

/// The stacks of GPU threads are given back before the driver saves anything: they need no room.
#[test]
fn stacks_of_gpu_threads_need_no_room() -> Result<()> {
    let world = World::simulated(1, 768)?;
    let mut spec = on_a_small_gpu("200MiB");
    spec.env.retain(|(name, _)| !name.starts_with("PHOS_SIM_"));
    spec.env.push(("PHOS_SIM_STACK_MIB".into(), "264".into()));
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos).map(drop)
    })
}

#[test]
fn a_gate_that_cannot_close_in_time() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        // A kernel that outlasts the timeout: nothing in flight ever ends in time.
        env: vec![("PHOS_SIM_KERNEL_US".into(), "3000".into())],
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
        trainer: vec!["--quiet".into()],
        ..JobSpec::default()
    };
    let reference = world.reference(&spec)?;
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
    let status = phos.wait(LIMIT)?;
    ensure!(status.success(), "it ended with {status}");
    let trace = LossTrace::read(&world.log())?;
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
