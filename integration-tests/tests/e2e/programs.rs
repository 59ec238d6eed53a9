//! Programs that nobody wrote, each from a seed, under checkpoints that come at any moment: killed again and again, and with the loss of
//! their machine, they go on as if nothing had happened.

use anyhow::{Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, finish, kill_job_and_wait, last_step, wait_step,
};
use phos_integration_tests::{Event, JobSpec, PhosFt, World, wait_for};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// What else the program does, one in so many of them.
const EXTRAS: [(u32, &[&str]); 8] = [
    (3, &["--memories"]),
    (3, &["--workers", "1"]),
    (4, &["--fork-every", "5"]),
    (3, &["--graph"]),
    (4, &["--noise-thread"]),
    (4, &["--scratch"]),
    (4, &["--allocations", "30"]),
    // With this, its device is so full that no snapshot fits beside it.
    (3, &["--state-mib", "150"]),
];

/// How often each is killed.
const LIVES: u32 = 5;

fn one_in(rng: &mut impl Rng, of: u32) -> bool {
    rng.random_range(0..of) == 0
}

fn program(seed: u64) -> Result<()> {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let devices = if one_in(rng, 3) { 2 } else { 1 };
    let world = World::simulated(devices, 256)?;
    let mut spec = JobSpec {
        trainer: vec!["--step-ms".into(), rng.random_range(0..15).to_string()],
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_trainer(&["--layers", "16,32,4", "--program", &seed.to_string()])
    .with_trainer(&["--devices", &devices.to_string()]);
    for (of, arguments) in EXTRAS {
        if one_in(rng, of) {
            spec = spec.with_trainer(arguments);
        }
    }
    if one_in(rng, 3) {
        let rate = rng.random_range(20..200).to_string();
        spec = spec.with_env("PHOS_SIM_LINK_MBPS", &rate);
    }
    let mut phos = world.start(&spec)?;
    // Lives that began with a checkpoint, of the one that phos-ft has now.
    let mut resumed = 0;
    for n in 0..LIVES {
        for _ in 0..rng.random_range(1..4) {
            checkpoint(&world, &phos)?;
            steps(&world, &phos, rng.random_range(0..10))?;
        }
        if n == LIVES / 2 {
            world.lose_node()?;
            phos = world.start(&spec)?;
            resumed = 0;
        } else if one_in(rng, 2) {
            // At any moment of one.
            std::thread::scope(|scope| -> Result<()> {
                let asked = scope.spawn(|| world.run(&["checkpoint"]));
                steps(&world, &phos, rng.random_range(0..5))?;
                kill_job_and_wait(&world, &phos)?;
                asked.join().map_err(|_| anyhow::anyhow!("a panic"))??;
                Ok(())
            })?;
        } else {
            kill_job_and_wait(&world, &phos)?;
        }
        resumed += 1;
        wait_for("the job to be resumed", LIMIT, || {
            (Event::Resumed.times_in(&phos.said()) == resumed).then_some(())
        })
        .map_err(|e| e.context(phos.tail()))?;
        let said = phos.said();
        ensure!(
            !said.contains("damaged") && Event::StartedAfresh.times_in(&said) == 0,
            "{said}"
        );
    }
    finish(&world, phos, &spec)
}

/// Waits until the job has made so many more.
fn steps(world: &World, phos: &PhosFt, more: u64) -> Result<()> {
    wait_step(world, phos, last_step(world).unwrap_or(0) + more)
}

fn programs(seeds: std::ops::Range<u64>) -> Result<()> {
    for seed in seeds {
        program(seed).map_err(|e| e.context(format!("seed {seed}")))?;
    }
    Ok(())
}

#[test]
fn seed_0() -> Result<()> {
    programs(0..1)
}

#[test]
fn seed_1() -> Result<()> {
    programs(1..2)
}

#[test]
fn seed_2() -> Result<()> {
    programs(2..3)
}

#[test]
fn seed_3() -> Result<()> {
    programs(3..4)
}

mod at_length {
    use super::*;

    /// From the one that `PHOS_FIRST_SEED` names, for as long as `PHOS_SEEDS` says: a quarter of a minute each.
    #[test]
    fn as_many_as_are_asked_for() -> Result<()> {
        let number =
            |name: &str, or: u64| std::env::var(name).map_or(Ok(or), |text| text.parse::<u64>());
        let (first, count) = (number("PHOS_FIRST_SEED", 0)?, number("PHOS_SEEDS", 200)?);
        ensure!(count > 0, "PHOS_SEEDS is 0");
        programs(first..first + count)
    }
}
