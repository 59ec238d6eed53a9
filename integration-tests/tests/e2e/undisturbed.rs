//! What runs without phos-ft, which all others are compared with.

use anyhow::{Context as _, Result, ensure};
use phos_integration_tests::{APART, JobSpec, World, bin_dir};

/// Values that each of them takes here. Who needs somebody outside, or a checkpoint to stand in the way of, is left to the tests that have that.
const VALUES: [(&str, &str); 19] = [
    ("--allocations", "30"),
    ("--array-mib", "1"),
    ("--ballast-mib", "2"),
    ("--churn-mib", "2"),
    ("--communicator", "thread"),
    ("--fork-every", "3"),
    ("--large-every", "4"),
    ("--late-ms", "1"),
    ("--pool-mib", "2"),
    ("--profile-at", "/nonexistent"),
    ("--state-calls", "20"),
    ("--state-early-at", "/nonexistent"),
    ("--state-mib", "4"),
    ("--state-waits", "8"),
    ("--step-ms", "1"),
    ("--surge-at", "/nonexistent"),
    ("--surge-mib", "1"),
    ("--tcp-address", "127.0.0.1"),
    ("--verify-every", "5"),
];

/// Of these no run here has any.
const ELSEWHERE: [&str; 6] = [
    "--connect",
    "--follow",
    "--hold",
    "--hold-while",
    "--large",
    "--semaphores",
];

#[test]
fn what_has_no_part_in_the_losses_changes_none() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let plain = JobSpec {
        trainer: Vec::new(),
        ..JobSpec::default()
    };
    // The field of `--arrays` has a part, and what is only in that has none.
    let plain = plain.with_trainer(&["--arrays"]);
    let mut all = plain.clone();
    for (name, has_value) in APART {
        if ELSEWHERE.contains(&name) {
            continue;
        }
        all = all.with_trainer(&[name]);
        if has_value {
            let value = VALUES.iter().find(|(of, _)| *of == name);
            all = all.with_trainer(&[value.with_context(|| format!("no value of {name}"))?.1]);
        }
    }
    let steps = 25;
    let with_all = world.alone(&all, steps)?;
    ensure!(with_all.len() as u64 == steps, "{with_all:?}");
    let difference = with_all.first_difference(&world.reference(&all, steps)?);
    ensure!(difference.is_none(), "they differ at step {difference:?}");
    // What has a part is not left out.
    let other = world.reference(&all.with_trainer(&["--seed", "2"]), steps)?;
    ensure!(with_all.first_difference(&other) == Some(0));
    Ok(())
}

/// The others are only computed there: that is what comes of them.
#[test]
fn a_rank_that_computes_what_the_others_would_reduce() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let nccl = bin_dir().join("libphos_nccl_sim.so").display().to_string();
    for (others, steps) in [("1", 30), ("4", 60)] {
        let ranks = JobSpec::default()
            .with_trainer(&["--rank-processes", others, "--nccl", &nccl])
            .with_trainer(&["--layers", "16,16,4"]);
        let together = world.alone(&ranks, steps)?;
        ensure!(together.len() as u64 == steps, "{together:?}");
        let difference = together.first_difference(&world.reference(&ranks, steps)?);
        ensure!(difference.is_none(), "{others}: step {difference:?}");
        std::fs::remove_file(world.path("work/alone.log"))?;
    }
    Ok(())
}
