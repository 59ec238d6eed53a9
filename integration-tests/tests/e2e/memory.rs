//! Device memory is short: the job never meets an out-of-memory that is ours.

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{LIMIT, checkpoint, disturbed, kill_job_and_wait};
use phos_integration_tests::{JobSpec, PhosFt, World, scenario, wait_for};

/// The device is nearly full and the job allocates and frees in every step, also while a snapshot
/// of the last checkpoint is being drained (slowly: the link is throttled).
#[test]
fn a_job_whose_memory_comes_and_goes() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let mut spec = JobSpec {
        interval: "800ms".into(),
        env: vec![("PHOS_SIM_LINK_MBPS".into(), "120".into())],
        ..JobSpec::default()
    };
    spec.trainer
        .extend(["--ballast-mib", "64", "--churn-mib", "100"].map(str::to_owned));
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// A job with so much memory that no step writes, whose checkpoints can be held while CRIU has it frozen.
fn held_while_frozen(world: &World, ballast_mib: u32) -> JobSpec {
    let hold = world.path("step");
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_env("PHOS_FAILPOINT", &format!("any=hold:{}", hold.display()))
    .with_trainer(&["--ballast-mib", &ballast_mib.to_string()])
}

/// Takes a checkpoint that stays where the job is frozen until something is so; what that was.
fn while_frozen<T>(
    world: &World,
    phos: &PhosFt,
    what: &str,
    so: impl Fn() -> Option<T>,
) -> Result<T> {
    let hold = world.path("step");
    let reached = hold.with_extension("reached");
    scenario::wait_step(world, phos, 3)?;
    std::fs::write(&hold, "agent:frozen")?;
    std::thread::scope(|scope| {
        let asked = scope.spawn(|| world.json(&["checkpoint"]));
        let seen = wait_for(what, LIMIT, || reached.exists().then(&so).flatten());
        // The checkpoint goes on in any case.
        std::fs::remove_file(&hold)?;
        let taken = asked.join().map_err(|_| anyhow::anyhow!("a panic"))?;
        let seen = seen.map_err(|e| e.context(phos.tail()))?;
        taken.map(|_| seen)
    })
}

/// What leaves the GPU while the job is held waits in host memory; the cores are for what the job waits for.
#[test]
fn nothing_is_encoded_while_the_job_is_held() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = held_while_frozen(&world, 96);
    disturbed(&world, &spec, |world, phos| {
        let has_left = || {
            let status = world.json(&["status"]).ok()?;
            let of = |kind: &str| {
                let all = status["work"].as_array()?;
                all.iter().find(|work| work["kind"] == kind).cloned()
            };
            let (drain, store) = (of("drain")?, of("store")?);
            let drained = drain["done_bytes"].as_u64()?;
            (drained >= 96 << 20).then_some(store["done_bytes"] == 0)
        };
        let rested = while_frozen(
            world,
            phos,
            "all that changed to have left the GPU",
            has_left,
        )?;
        ensure!(rested, "something was stored\n{}", phos.tail());
        kill_job_and_wait(world, phos)
    })
}

/// A snapshot that is larger than the host buffer waits until the dump is done: it does not have what waits there encoded while the job is held.
#[test]
fn a_snapshot_leaves_the_cores_to_the_job_that_is_held() -> Result<()> {
    const DRAINED: &str = "drained while the job is held";
    let world = World::simulated(1, 512)?;
    let spec = held_while_frozen(&world, 160)
        .with_phos(&["--host-buffer", "64MiB"])
        .with_env("PHOS_LOG", "phos=debug");
    disturbed(&world, &spec, |world, phos| {
        let has_drained = || phos.said().contains(DRAINED).then_some(());
        while_frozen(
            world,
            phos,
            "what leaves while the job is held",
            has_drained,
        )?;
        let said = phos.said();
        let line = said.lines().find(|line| line.contains(DRAINED));
        ensure!(
            line.is_some_and(|line| !line.contains("pieces=0 ")),
            "there was no snapshot: {line:?}"
        );
        ensure!(!said.contains("host memory is used up"), "{}", phos.tail());
        kill_job_and_wait(world, phos)
    })
}

/// While a snapshot of most of 100 MiB waits to be copied, the job asks for what would have been there without it: the
/// sidecar lets go and the allocation succeeds. The checkpoint is given up, a later one is good.
#[test]
fn a_snapshot_gives_way_to_the_jobs_allocation() -> Result<()> {
    let world = World::simulated(1, 512)?;
    let file = world.path("work/surge");
    let mut spec = JobSpec {
        interval: "never".into(),
        // Draining takes seven seconds.
        env: vec![("PHOS_SIM_LINK_MBPS".into(), "15".into())],
        ..JobSpec::default()
    };
    spec.trainer
        .extend(["--churn-mib", "100", "--surge-mib", "330"].map(str::to_owned));
    spec.trainer
        .extend(["--surge-at".to_owned(), file.display().to_string()]);
    disturbed(&world, &spec, |world, phos| {
        // The first finds out how fast the link is: all is copied during the stop.
        checkpoint(world, phos)?;
        let stops = || scenario::stops(phos);
        let surge = || {
            let asked = std::thread::scope(|scope| -> Result<_> {
                let before = stops();
                let asked = scope.spawn(|| world.run(&["checkpoint"]));
                wait_for("the end of the stop", LIMIT, || {
                    (stops() > before).then_some(())
                })
                .with_context(|| phos.tail())?;
                std::fs::write(&file, "")?;
                wait_for("the allocation", LIMIT, || (!file.exists()).then_some(()))
                    .with_context(|| phos.tail())?;
                Ok(asked.join())
            })?;
            asked.map_err(|_| anyhow::anyhow!("a thread panicked"))?
        };
        let freed = || {
            let said = phos.said();
            said.split("the job needs device memory")
                .skip(1)
                .filter_map(|rest| rest.split("freed=").nth(1))
                .filter_map(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
                .filter_map(|digits| digits.parse::<u64>().ok())
                .max()
                .unwrap_or_default()
        };
        // One that was taken just when the job had freed what it churns has next to nothing to copy, and is done before.
        wait_for("a snapshot that has to give way", LIMIT, || {
            let answer = match surge() {
                Ok(answer) => answer,
                Err(e) => return Some(Err(e)),
            };
            let refused = String::from_utf8_lossy(&answer.stderr).contains("device memory");
            if answer.status.success() || !refused {
                return (!answer.status.success())
                    .then(|| Err(anyhow::anyhow!("{answer:?}\n{}", phos.tail())));
            }
            (freed() > 50 << 20).then_some(Ok(()))
        })
        .map_err(|e| e.context(phos.tail()))??;
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}
