//! Jobs that stand in their checkpoint's way: they are not held back for it, told by name what it is, and protected again
//! once it has gone.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, failed_stops, kill_job_and_wait, last_step, never_stopped,
    number, stops, wait_said, wait_step,
};
use phos_integration_tests::{DeviceNode, JobSpec, PhosFt, World, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// A job of which every try is told.
fn told() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        env: vec![
            ("PHOS_LOG".into(), "info,phos=debug".into()),
            ("PHOS_SHIM_LOG".into(), "debug".into()),
        ],
        ..JobSpec::default()
    }
}

fn spec(world: &World, hold: &str) -> JobSpec {
    let file = hold_file(world).display().to_string();
    told().with_trainer(&["--hold", hold, "--hold-while", &file])
}

fn hold_file(world: &World) -> PathBuf {
    world.path("hold")
}

/// The job begins to stand in the way.
fn hold(world: &World, phos: &PhosFt) -> Result<()> {
    let step = last_step(world).unwrap_or(0).max(5);
    wait_step(world, phos, step)?;
    std::fs::write(hold_file(world), b"")?;
    // The step that is under way has looked already.
    wait_step(world, phos, step + 3)
}

fn let_go(world: &World, phos: &PhosFt) -> Result<()> {
    std::fs::remove_file(hold_file(world))?;
    wait_step(world, phos, last_step(world).unwrap_or(0) + 3)
}

fn median(mut all: Vec<u64>) -> u64 {
    all.sort_unstable();
    all.get(all.len() / 2).copied().unwrap_or(0)
}

/// Of each try that another one followed: whether it was made because the job had just waited for its work.
fn had_waited(phos: &PhosFt) -> Vec<bool> {
    let said = phos.said();
    let lines = said
        .lines()
        .filter(|line| line.contains("the job is asked again"));
    lines.map(|line| line.contains("waited=true")).collect()
}

/// Of each try, how long the shim closed its gate for it, in µs: what the agent measures has the way to the shim and back in it.
fn held_us(phos: &PhosFt) -> Result<Vec<u64>> {
    let said = phos.said();
    let lines = said.lines().filter(|line| line.contains(" held_us="));
    lines
        .map(|line| Ok(number(line, "held_us")? as u64))
        .collect()
}

fn unprotected(world: &World) -> Result<Option<String>> {
    let status = world.json(&["status"])?;
    Ok(status["unprotected"]["because"]
        .as_str()
        .map(str::to_lowercase))
}

#[test]
fn work_that_waits_for_the_host() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec(&world, "work");
    disturbed(&world, &spec, |world, phos| {
        hold(world, phos)?;
        let asked = world.run(&["checkpoint"])?;
        ensure!(!asked.status.success(), "{asked:?}");
        wait_said(phos, &["did not end in time", "unprotected_since"])?;
        let stops = failed_stops(phos)?;
        ensure!(
            stops.len() > 2,
            "{stops:?}: it is tried more than once\n{}",
            phos.tail()
        );
        // The shim says what it did by the job's own standard error, which comes later than what the agent says.
        wait_for("what the shim says of each try", LIMIT, || {
            (held_us(phos).ok()?.len() >= stops.len()).then_some(())
        })?;
        // What the first gave up waiting for is not done: the others know that without holding anything back, unless the job was just seen to wait for
        // its work.
        let (held, had_waited) = (held_us(phos)?, had_waited(phos));
        ensure!(
            (held.len(), had_waited.len() + 1) == (stops.len(), stops.len()),
            "{stops:?} {held:?} {had_waited:?}"
        );
        let others = held.iter().zip(&had_waited).skip(1);
        let in_vain = others.filter(|&(&held, &waited)| held > 0 && !waited);
        ensure!(in_vain.count() == 0, "{held:?} {had_waited:?}");
        let why = unprotected(world)?.context("status does not say so")?;
        ensure!(why.contains("did not end in time"), "{why}");
        let_go(world, phos)?;
        checkpoint(world, phos)?;
        ensure!(unprotected(world)?.is_none(), "it is protected again");
        wait_said(phos, &["the job is protected again"])
    })
}

/// A checkpoint that waits for the job to fall quiet does not keep the sidecar from making the last one. Both are told to end, as by
/// whoever stops a pod, the sidecar first.
#[test]
fn an_end_while_the_job_does_not_fall_quiet() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec(&world, "work").with_phos(&["--quiesce-timeout", "10m"]);
    let mut phos = world.start(&spec)?;
    hold(&world, &phos)?;
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| world.run(&["checkpoint"]));
        let said = wait_said(&phos, &["the job is asked again"]);
        let supervisor = Pid::from_child(&phos.child);
        for pid in world.tree().sidecar.into_iter().filter_map(Pid::from_raw) {
            if pid != supervisor {
                kill_process(pid, Signal::TERM)?;
            }
        }
        let said = said.and_then(|()| wait_said(&phos, &["asked to end"]));
        kill_process(supervisor, Signal::TERM)?;
        let ending = wait_said(&phos, &["the job is to end"]);
        std::fs::remove_file(hold_file(&world))?;
        let ended = phos.wait(LIMIT);
        asked.join().map_err(|_| anyhow::anyhow!("a panic"))??;
        ended?;
        said.and(ending)
    })?;
    ensure!(!world.checkpoints()?.is_empty(), "{}", phos.tail());
    Ok(())
}

#[test]
fn a_capture_is_waited_for() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec(&world, "capture");
    disturbed(&world, &spec, |world, phos| {
        hold(world, phos)?;
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| world.json(&["checkpoint"]));
            // One may last for long where the machine is busy.
            let waits = wait_said(phos, &["a stream capture is under way"]).and_then(|()| {
                wait_for("several tries", LIMIT, || {
                    (failed_stops(phos).ok()?.len() >= 5).then_some(())
                })
            });
            let_go(world, phos)?;
            let taken = asked.join().map_err(|_| anyhow::anyhow!("a panic"))??;
            ensure!(taken["id"].as_u64().is_some(), "{taken}");
            waits
        })?;
        let stops = failed_stops(phos)?;
        ensure!(
            median(stops.clone()) < 250,
            "waiting held the job back: {stops:?}"
        );
        Ok(())
    })
}

/// A job that has more work queued than ends in a short try, at any time: the next step is, when it waits for this one. What its
/// first checkpoint learns, the next may use.
#[test]
fn a_deep_queue() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        trainer: Vec::new(),
        env: vec![
            ("PHOS_LOG".into(), "info,phos=debug".into()),
            ("PHOS_SIM_KERNEL_US".into(), "25000".into()),
        ],
        ..told()
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let tries = failed_stops(phos)?;
        // One may last for long where the machine is busy.
        ensure!(median(tries.clone()) < 1000, "{tries:?}");
        world
            .json(&["checkpoint"])
            .map_err(|e| e.context(phos.tail()))?;
        let again = failed_stops(phos)?;
        ensure!(tries == again, "{again:?}, and {tries:?} before");
        Ok(())
    })
}

/// Work that ends only because the job goes on, and late: that it ends does not mean that it would in a stop.
#[test]
fn work_that_ends_when_the_host_is_late() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec(&world, "late");
    disturbed(&world, &spec, |world, phos| {
        hold(world, phos)?;
        // It has moments at which nothing is in flight.
        for _ in 0..2 {
            checkpoint(world, phos)?;
        }
        let stops = failed_stops(phos)?;
        ensure!(
            !stops.is_empty() && median(stops.clone()) < 1000,
            "{stops:?}"
        );
        let_go(world, phos)
    })
}

/// Asks until it is refused with all of `words`.
fn refused_with(world: &World, words: &[&str]) -> Result<()> {
    let asked = world.run(&["checkpoint"])?;
    let said = String::from_utf8_lossy(&asked.stderr).to_lowercase();
    ensure!(!asked.status.success(), "{said}");
    for word in words {
        ensure!(said.contains(word), "nothing of {word:?}: {said}");
    }
    Ok(())
}

#[test]
fn a_device_that_no_checkpoint_can_take() -> Result<()> {
    ensure!(Path::new("/dev/fuse").exists(), "this test needs /dev/fuse");
    let world = World::simulated(1, 256)?;
    let spec = spec(&world, "/dev/fuse");
    disturbed(&world, &spec, |world, phos| {
        hold(world, phos)?;
        refused_with(world, &["/dev/fuse", "phos-trainer"])?;
        never_stopped(phos)?;
        let_go(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// As OpenCL's in a process with CUDA: before the dump it looks like CUDA's own.
#[test]
fn a_device_of_the_driver_that_cuda_did_not_open() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let node = DeviceNode::new()?;
    let device = node.path();
    // CUDA has the same one open.
    let spec = spec(&world, &device).with_env("PHOS_SIM_NODE", &device);
    disturbed(&world, &spec, |world, phos| {
        hold(world, phos)?;
        refused_with(world, &[&device, "phos-trainer"])?;
        ensure!(stops(phos) == 1, "{}", phos.tail());
        // It is remembered.
        for _ in 0..3 {
            refused_with(world, &[&device])?;
        }
        ensure!(
            stops(phos) == 1,
            "the job was stopped again: {}",
            phos.tail()
        );
        let_go(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// As a process is that a profiler records: the driver says so when it is asked to lock it, and not before.
#[test]
fn a_process_that_the_driver_does_not_lock() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let profiled = world.path("profiled");
    let spec = JobSpec {
        interval: "100ms".into(),
        ..JobSpec::default()
    }
    .with_env("PHOS_SIM_FAIL", &format!("lock={}", profiled.display()));
    let failures = |world: &World| -> Result<u64> {
        let status = world.json(&["status"])?;
        status["failures"].as_u64().context("no failures")
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        std::fs::write(&profiled, b"")?;
        wait_said(phos, &["801", "torch.profiler", "unprotected_since"])?;
        // By itself it is not stopped for that again.
        let (stopped, failed) = (stops(phos), failures(world)?);
        wait_for("two more refusals", LIMIT, || {
            failures(world)
                .is_ok_and(|now| now >= failed + 2)
                .then_some(())
        })?;
        ensure!(
            stops(phos) == stopped,
            "the job was stopped again: {}",
            phos.tail()
        );
        // Who asks for a checkpoint gets a try, and gets one as soon as nothing is in the way.
        refused_with(world, &["cucheckpointprocesslock", "801"])?;
        ensure!(stops(phos) > stopped, "{}", phos.tail());
        std::fs::remove_file(&profiled)?;
        checkpoint(world, phos)?;
        // Whoever comes back is another process.
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// As torch.profiler does: from its first use on the driver refuses, and the job is not stopped for that.
#[test]
fn a_profiler_is_refused_before_anything_stops() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let profiled = world.path("profiled");
    let spec = told().with_trainer(&["--profile-at", &profiled.display().to_string()]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let stopped = stops(phos);
        std::fs::write(&profiled, b"")?;
        let step = last_step(world).unwrap_or(0);
        wait_step(world, phos, step + 2)?;
        for _ in 0..3 {
            refused_with(world, &["process", "801", "torch.profiler"])?;
        }
        ensure!(
            stops(phos) == stopped && failed_stops(phos)?.is_empty(),
            "the job was stopped for it: {}",
            phos.tail()
        );
        // What comes back is as it was before the profiler.
        std::fs::remove_file(&profiled)?;
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// Two ranks that look as if they had communicators of NCCL's, where the user set what this driver cannot restore: refused
/// without a stop, by name.
fn communicators(kind: &str) -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        env: vec![("NCCL_NVLS_ENABLE".into(), "1".into())],
        ..JobSpec::default()
    }
    .with_trainer(&["--rank-processes", "1", "--communicator", kind]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        refused_with(world, &["process", "nccl", "nccl_nvls_enable=0"])?;
        never_stopped(phos)?;
        let why = unprotected(world)?.context("status does not say so")?;
        ensure!(why.contains("nccl_nvls_enable=0"), "{why}");
        let shown = world.run(&["status"])?;
        let shown = String::from_utf8_lossy(&shown.stdout);
        ensure!(
            shown.contains("UNPROTECTED") && shown.contains("NCCL_NVLS_ENABLE=0"),
            "{shown}"
        );
        Ok(())
    })?;
    ensure!(world.checkpoints()?.is_empty());
    Ok(())
}

#[test]
fn a_watched_communicator_that_cannot_be_restored() -> Result<()> {
    communicators("thread")
}

#[test]
fn a_communicator_with_memory_that_cannot_be_restored() -> Result<()> {
    communicators("segment")
}

#[test]
fn a_communicator_with_sockets_that_cannot_be_restored() -> Result<()> {
    communicators("socket")
}

/// The same ranks with what phos-ft sets where the user sets nothing.
#[test]
fn communicators_that_come_back() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--rank-processes", "1", "--communicator", "thread"]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// The same ranks with a connection to the outside: since it would come back closed, so would all others, and theirs with them.
#[test]
fn communicators_beside_a_connection_to_the_outside() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let outside = std::net::TcpListener::bind(("127.0.0.1", 0))?;
    let there = outside.local_addr()?.to_string();
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&[
        "--rank-processes",
        "1",
        "--communicator",
        "thread",
        "--connect",
        &there,
    ]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        refused_with(world, &["nccl communicators", &there, "--tcp keep"])?;
        never_stopped(phos)?;
        let why = unprotected(world)?.context("status does not say so")?;
        ensure!(why.contains(&there), "{why}");
        Ok(())
    })?;
    ensure!(world.checkpoints()?.is_empty());
    Ok(())
}

/// What the driver cannot restore is not tried five times, and the older checkpoint is.
#[test]
fn a_restore_that_fails_for_good() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let broken = world.path("broken");
    let spec = JobSpec {
        interval: "never".into(),
        env: vec![(
            "PHOS_SIM_FAIL".into(),
            format!("restore={}", broken.display()),
        )],
        ..JobSpec::default()
    };
    let mut phos = world.start(&spec)?;
    let id = checkpoint(&world, &phos)?;
    std::fs::write(&broken, b"")?;
    phos_integration_tests::kill_all(&world.tree().job);
    let status = phos.wait(LIMIT)?;
    ensure!(!status.success());
    let said = phos.said();
    let tries = said.matches("the job was not restored").count();
    ensure!(tries == 2, "{tries} tries:\n{}", phos.tail());
    for word in ["cucheckpointprocessrestore", "304", "could be restored"] {
        ensure!(said.contains(word), "nothing of {word:?}:\n{}", phos.tail());
    }
    // Nothing of it is gone: with a driver that can, it is resumed.
    std::fs::remove_file(&broken)?;
    let phos = world.start(&spec)?;
    wait_for("the job to be resumed", LIMIT, || {
        phos.said()
            .contains(&format!("resumed checkpoint={id}"))
            .then_some(())
    })?;
    kill_job_and_wait(&world, &phos)
}
