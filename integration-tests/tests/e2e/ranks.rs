//! Ranks that wait for each other on their GPUs, through what looks like NCCL: held anywhere else than at a common point, some of them
//! never fall quiet.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, finished, kill_job_and_wait, last_step, never_stopped, wait_said,
    wait_step,
};
use phos_integration_tests::{JobSpec, PhosFt, World, bin_dir, kill_all, stop_process, wait_for};
use rustix::process::{Pid, Signal, kill_process};

/// Four ranks at full speed.
fn ranks() -> JobSpec {
    of(4)
}

/// So many ranks at full speed.
fn of(ranks: usize) -> JobSpec {
    let library = bin_dir().join("libphos_nccl_sim.so");
    JobSpec {
        interval: "never".into(),
        trainer: ["--rank-processes".into(), (ranks - 1).to_string()]
            .into_iter()
            .chain(["--nccl".into(), library.display().to_string()])
            .chain(["--layers", "16,16,4", "--batch", "16"].map(String::from))
            .collect(),
        ..JobSpec::default()
    }
}

/// The same with a pause in each step, where the job's speed is not what matters: processors are few.
fn paced(ranks: usize) -> JobSpec {
    of(ranks).with_trainer(&["--step-ms", "5"])
}

/// Checkpoints one after another, without a pause; none fails. The ranks are connected, too.
#[test]
fn twenty_checkpoints_of_ranks_that_never_pause() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = ranks().with_env("SIM_NCCL_TCP", "1");
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        for number in 0..20 {
            let taken = world
                .json(&["checkpoint"])
                .with_context(|| format!("checkpoint {number}:\n{}", phos.tail()))?;
            ensure!(taken["id"].is_u64(), "checkpoint {number}: {taken}");
        }
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos).map(drop)
    })
}

/// One rank of several dies: all of them come back from where they were together.
#[test]
fn a_rank_that_is_killed() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &ranks(), |world, phos| {
        checkpoint(world, phos)?;
        let job = world.tree().job;
        let last = job.last().context("no job")?;
        kill_all(&[*last]);
        wait_for("the ranks to come back", LIMIT, || {
            let now = world.tree().job;
            (!now.is_empty() && now.iter().all(|pid| !job.contains(pid))).then_some(())
        })
        .map_err(|e| e.context(phos.tail()))?;
        checkpoint(world, phos).map(drop)
    })
}

/// What `torchrun --max-restarts` does: when a rank fails, all are ended and started anew, and begin with their first step. It asks for
/// the code of each at once.
const LAUNCHER: &str = r#"
    ranks=$1
    shift
    while :; do
        round=$((round + 1)) pids=
        export PHOS_TRAINER_RANKS=launched-$$-$round
        for rank in $(seq 0 $((ranks - 1))); do
            "$@" --rank $rank --ranks $ranks &
            pids="$pids $!"
        done
        for pid in $pids; do
            wait -n || { kill -KILL $pids; wait; continue 2; }
        done
        exit 0
    done
"#;

/// Three ranks under a launcher, which is a script of bash's with their number and the trainer's command line as arguments.
fn launched(world: &World, launcher: &str, flags: &[&str]) -> Result<(JobSpec, PhosFt)> {
    let spec = paced(3).with_phos(flags);
    // Its ranks are told how many there are, where those of `spec` are started by the first.
    let mut alone = spec.clone();
    alone.trainer.drain(..2);
    let mut command = world.phos_ft(&spec);
    command
        .args(["--", "bash", "-c", launcher, "launcher", "3"])
        .arg(bin_dir().join("phos-trainer"))
        .args(world.job_args(&alone));
    let phos = world.spawn(command)?;
    checkpoint(world, &phos)?;
    Ok((spec, phos))
}

/// Sends a signal to the rank that was started last.
fn signal_last(world: &World, signal: Signal) -> Result<()> {
    let last = *world.tree().job.last().context("no rank")?;
    Ok(kill_process(
        Pid::from_raw(last).context("no process")?,
        signal,
    )?)
}

/// The launcher is resumed with its ranks, and does not get to start them anew.
#[test]
fn a_rank_that_fails_under_a_launcher_that_would_start_all_anew() -> Result<()> {
    const FAILED: &str = "a rank failed and the job goes on without it";
    let world = World::simulated(1, 256)?;
    let (spec, mut phos) = launched(&world, LAUNCHER, &[])?;
    for (failures, signal) in [(1, Signal::KILL), (2, Signal::ABORT)] {
        signal_last(&world, signal)?;
        wait_for("the rank to be missed", LIMIT, || {
            (phos.said().matches(FAILED).count() == failures).then_some(())
        })
        .and_then(|()| wait_resumes(&phos, failures))
        .map_err(|e| e.context(phos.tail()))?;
        checkpoint(&world, &phos)?;
    }
    finished(&world, &mut phos, &spec)
}

/// Where the user says so, the launcher starts its ranks anew.
#[test]
fn a_rank_that_is_left_to_its_launcher() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let (_, mut phos) = launched(&world, LAUNCHER, &["--rank-failure", "leave"])?;
    let before = world.tree().job;
    signal_last(&world, Signal::KILL)?;
    wait_said(&phos, &["it is left to the program that started it"])?;
    wait_for("other ranks", LIMIT, || {
        let now = world.tree().job;
        // The launcher is the first.
        let is_new = |pid: &&i32| !before.contains(pid);
        (now.first() == before.first() && now.iter().filter(is_new).count() == 3).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    checkpoint(&world, &phos)?;
    world.finish()?;
    ensure!(phos.wait(LIMIT)?.success(), "{}", phos.tail());
    ensure!(
        !phos.said().contains("resumed checkpoint="),
        "{}",
        phos.tail()
    );
    Ok(())
}

/// A program that has done with its ranks ends them, and goes on: nobody misses them, and it is checkpointed.
#[test]
fn ranks_that_are_ended_on_purpose() -> Result<()> {
    const PROGRAM: &str = r#"
        ranks=$1
        shift
        export PHOS_TRAINER_RANKS=ended-$$
        mkfifo enough over
        pids=
        for rank in $(seq 0 $((ranks - 1))); do
            "$@" --rank $rank --ranks $ranks &
            pids="$pids $!"
        done
        read -r _ <enough
        kill -TERM $pids
        wait
        echo "they have ended"
        read -r _ <over
    "#;
    let world = World::simulated(1, 256)?;
    let (_, mut phos) = launched(&world, PROGRAM, &[])?;
    std::fs::write(world.path("work/enough"), b"\n")?;
    wait_said(&phos, &["they have ended"])?;
    // Refused while it is not known whether anybody waits for a rank, which is for a moment on a busy machine.
    wait_for("a checkpoint of what is left", LIMIT, || {
        world.json(&["checkpoint"]).ok()?["id"].as_u64()
    })
    .map_err(|e| e.context(phos.tail()))?;
    std::fs::write(world.path("work/over"), b"\n")?;
    ensure!(phos.wait(LIMIT)?.success(), "{}", phos.tail());
    let said = phos.said();
    ensure!(
        !said.contains("a rank failed") && !said.contains("resumed checkpoint="),
        "{said}"
    );
    Ok(())
}

fn wait_resumes(phos: &PhosFt, count: usize) -> Result<()> {
    wait_for("the job to be resumed", LIMIT, || {
        (phos.said().matches("resumed checkpoint=").count() == count).then_some(())
    })
}

/// A rank that does not answer: the others are held for no longer than a try, whose failure costs nothing but the checkpoint.
#[test]
fn a_rank_that_stands_still_for_a_while() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = ranks().with_phos(&["--quiesce-timeout", "1s"]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        let last = *world.tree().job.last().context("no job")?;
        let rank = stop_process(last)?;
        let refused = world.run(&["checkpoint"]);
        kill_process(rank, Signal::CONT)?;
        ensure!(!refused?.status.success(), "{}", phos.tail());
        // No gate stays closed: the next checkpoint would open it.
        let step = last_step(world).context("no step")?;
        wait_step(world, phos, step + 20)?;
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// Ranks wait for the last one in each of their steps: a checkpoint has to wait for it too, and is not refused for that.
#[test]
fn a_rank_that_is_a_hundred_times_slower() -> Result<()> {
    let world = World::simulated(1, 256)?;
    // Others queue eight of its steps before they wait: so much a checkpoint has to wait for, too.
    let spec = ranks()
        .with_trainer(&["--late-ms", "200"])
        .with_phos(&["--hold-limit", "4s"]);
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        for number in 0..3 {
            let taken = world
                .json(&["checkpoint"])
                .with_context(|| format!("checkpoint {number}:\n{}", phos.tail()))?;
            ensure!(taken["id"].is_u64(), "checkpoint {number}: {taken}");
        }
        kill_job_and_wait(world, phos)
    })
}

/// A rank that never answers again costs checkpoints, and says so; once somebody ends it, the job resumes from the last there is.
#[test]
fn a_rank_that_hangs_for_ever() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = paced(4).with_phos(&["--quiesce-timeout", "500ms"]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let job = world.tree().job;
        let last = *job.last().context("no job")?;
        stop_process(last)?;
        for _ in 0..3 {
            ensure!(!world.run(&["checkpoint"])?.status.success());
        }
        let status = world.json(&["status"])?;
        ensure!(status["unprotected"]["because"].is_string(), "{status}");
        ensure!(world.tree().job == job, "somebody ended a rank");
        kill_all(&[last]);
        all_new(world, phos, &job)?;
        checkpoint(world, phos).map(drop)
    })
}

/// Ranks that also share a multicast object, as NCCL's do where NVLink SHARP is not turned off.
fn with_multicast(ranks: usize) -> JobSpec {
    of(ranks)
        .with_phos(&["--nvls"])
        .with_env("NCCL_NVLS_ENABLE", "1")
}

/// Whether all of the job's processes have one mapped.
fn all_have_multicast(world: &World) -> Result<bool> {
    let job = world.tree().job;
    ensure!(!job.is_empty(), "no job");
    let mut all = true;
    for pid in job {
        all &= std::fs::read_to_string(format!("/proc/{pid}/maps"))?.contains("phos-multicast");
    }
    Ok(all)
}

/// Checkpoints of a job with a multicast object, a crash and another machine: it has the object after each, and what is written there comes to all
/// memory that is bound to it, which the job verifies in each step.
fn keeps_its_multicast_object(world: &World, spec: &JobSpec) -> Result<()> {
    disturbed(world, spec, |world, phos| {
        wait_step(world, phos, 5)?;
        for number in 0..5 {
            checkpoint(world, phos).with_context(|| format!("checkpoint {number}"))?;
            let step = last_step(world).context("no step")?;
            wait_step(world, phos, step + 2)?;
            ensure!(all_have_multicast(world)?, "checkpoint {number}");
        }
        kill_job_and_wait(world, phos)?;
        checkpoint(world, phos)?;
        ensure!(all_have_multicast(world)?);
        world.lose_node()?;
        *phos = world.start(spec)?;
        wait_said(phos, &["resumed checkpoint="])?;
        checkpoint(world, phos)?;
        ensure!(all_have_multicast(world)?);
        Ok(())
    })
}

/// Each rank binds its memory by another one of the driver's calls.
#[test]
fn ranks_with_a_multicast_object() -> Result<()> {
    let world = World::simulated(1, 256)?;
    keeps_its_multicast_object(&world, &with_multicast(4))
}

/// The process binds memory anew at times.
#[test]
fn one_process_with_a_multicast_object_of_its_gpus() -> Result<()> {
    let world = World::simulated(3, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--devices", "3", "--multicast"])
    .with_phos(&["--nvls"]);
    keeps_its_multicast_object(&world, &spec)
}

/// One of the ranks ends before all have made it anew: the driver would have the others wait for ever.
#[test]
fn a_rank_dies_while_its_multicast_object_is_made_anew() -> Result<()> {
    let deaths = [
        ("agent:mid-rejoin", 0),
        ("agent:mid-rejoin", 2),
        ("agent:mid-attach", 1),
    ];
    Held::with(with_multicast(3))?.ranks_die(deaths.into_iter())
}

/// Without the flag they rule checkpoints out, by name, and the job goes on.
#[test]
fn a_multicast_object_that_nobody_allowed() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = of(2).with_env("NCCL_NVLS_ENABLE", "1");
    disturbed(&world, &spec, |world, phos| {
        wait_step(world, phos, 5)?;
        ensure!(all_have_multicast(world)?);
        let answer = world.run(&["checkpoint"])?;
        let said = String::from_utf8_lossy(&answer.stderr);
        ensure!(
            !answer.status.success() && said.contains("NCCL_NVLS_ENABLE=0"),
            "{said}"
        );
        never_stopped(phos)
    })
}

/// The steps of a checkpoint at which the job is held, or its image under way.
const STEPS: [&str; 8] = [
    "agent:after-quiesce",
    "agent:after-detach",
    "agent:before-criu",
    "agent:frozen",
    "agent:after-criu",
    "agent:before-attach",
    "agent:mid-attach",
    "sidecar:mid-drain",
];

/// Those that matter to the sidecar.
const STEPS_OF_THE_SIDECAR: [&str; 8] = [
    "sidecar:after-quiesce",
    "sidecar:after-dump-request",
    "sidecar:after-name",
    "sidecar:after-dumped",
    "sidecar:mid-drain",
    "sidecar:before-attach",
    "sidecar:after-attach",
    "sidecar:before-head",
];

/// Eight ranks, checkpoints of which can be held at any step.
struct Held {
    world: World,
    spec: JobSpec,
    file: PathBuf,
}

impl Held {
    fn new() -> Result<Self> {
        Self::with(of(8))
    }

    /// Other ranks.
    fn with(ranks: JobSpec) -> Result<Self> {
        let world = World::simulated(1, 256)?;
        let file = world.path("step");
        let spec = ranks
            // Deaths are what matters here, and processors are few.
            .with_trainer(&["--step-ms", "50"])
            // Crash after crash, and no longer pause before each.
            .with_phos(&["--max-restarts", "1000", "--restart-window", "1s"])
            .with_env("PHOS_FAILPOINT", &format!("any=hold:{}", file.display()));
        Ok(Self { world, spec, file })
    }

    /// Does something while a checkpoint is held at this step.
    fn during(&self, phos: &PhosFt, step: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
        let reached = self.file.with_extension("reached");
        std::fs::write(&self.file, step)?;
        std::thread::scope(|scope| {
            // Whether there is a checkpoint in the end depends on the step.
            let asked = scope.spawn(|| self.world.run(&["checkpoint"]));
            let acted = wait_for(step, LIMIT, || reached.exists().then_some(()))
                .map_err(|e| e.context(phos.tail()))
                .and_then(|()| act());
            std::fs::remove_file(&self.file)?;
            let asked = asked.join();
            // Nobody makes it again: the step is over.
            let _ = std::fs::remove_file(&reached);
            acted?;
            ensure!(asked.is_ok_and(|answer| answer.is_ok()), "{}", phos.tail());
            Ok(())
        })
    }

    /// One of the ranks dies at each of these steps, and each time all come back.
    fn ranks_die(&self, deaths: impl Iterator<Item = (&'static str, usize)>) -> Result<()> {
        disturbed(&self.world, &self.spec, |world, phos| {
            for (step, rank) in deaths {
                checkpoint(world, phos).with_context(|| format!("before {step}"))?;
                let job = world.tree().job;
                ensure!(job.len() > rank, "{job:?}");
                self.during(phos, step, || {
                    kill_all(&[job[rank]]);
                    Ok(())
                })?;
                all_new(world, phos, &job)
                    .with_context(|| format!("rank {rank} died at {step}"))?;
            }
            checkpoint(world, phos).map(drop)
        })
    }
}

/// Waits until the job is back, in other processes.
fn all_new(world: &World, phos: &PhosFt, old: &[i32]) -> Result<()> {
    wait_for("the ranks to come back", LIMIT, || {
        let now = world.tree().job;
        (!now.is_empty() && now.iter().all(|pid| !old.contains(pid))).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

/// Each step sees one death, and each rank dies once. All pairs: `at_length::each_of_eight_ranks_dies_at_each_step`.
#[test]
fn one_of_eight_ranks_dies_at_each_step() -> Result<()> {
    Held::new()?.ranks_die(STEPS.into_iter().zip((0..8).rev()))
}

/// In the profile `slow`.
mod in_full {
    use super::*;

    #[test]
    fn the_sidecar_of_eight_ranks_dies_at_each_step() -> Result<()> {
        let held = Held::new()?;
        disturbed(&held.world, &held.spec, |world, phos| {
            for step in STEPS_OF_THE_SIDECAR {
                checkpoint(world, phos).with_context(|| format!("before {step}"))?;
                let job = world.tree().job;
                held.during(phos, step, || {
                    // The other one is its supervisor.
                    let sidecar = *world.tree().sidecar.last().context("no sidecar")?;
                    kill_all(&[sidecar]);
                    Ok(())
                })
                .with_context(|| step)?;
                ensure!(world.tree().job == job, "the job died too, at {step}");
            }
            checkpoint(world, phos)?;
            kill_job_and_wait(world, phos)
        })
    }

    #[test]
    fn the_agent_of_eight_ranks_dies_at_each_step() -> Result<()> {
        let held = Held::new()?;
        disturbed(&held.world, &held.spec, |world, phos| {
            for step in STEPS {
                let before = checkpoint(world, phos).with_context(|| format!("before {step}"))?;
                held.during(phos, step, || {
                    kill_all(&world.tree().agent);
                    Ok(())
                })
                .with_context(|| step)?;
                phos.wait(LIMIT)?;
                wait_for("everything to be gone", LIMIT, || {
                    (world.tree() == Default::default()).then_some(())
                })?;
                *phos = world.start(&held.spec)?;
                wait_said(phos, &["resumed checkpoint="]).with_context(|| step)?;
                let newest = world.checkpoints()?.last().map(|c| c.number);
                ensure!(newest >= Some(before), "{newest:?} after {before}, {step}");
            }
            checkpoint(world, phos).map(drop)
        })
    }
}

mod at_length {
    use super::{Held, Result, STEPS};

    #[test]
    fn each_of_eight_ranks_dies_at_each_step() -> Result<()> {
        let pairs = (STEPS.into_iter()).flat_map(|step| (0..8).map(move |rank| (step, rank)));
        Held::new()?.ranks_die(pairs)
    }
}
