//! `make demo`: the main job, shown. A training run under phos-ft, checkpoints, kill -9, node loss,
//! resume, and the proof that its loss trace is that of an undisturbed run, bit for bit.
//!
//! `make demo-ranks`: the same with four ranks that meet on the simulated GPU in each step, through what looks like NCCL; one of
//! them is killed.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use phos_integration_tests::{
    Checkpoint, Gpu, JobSpec, LossTrace, World, bin_dir, kill_all, wait_for,
};

/// Long enough for anything that works, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(180);

/// How many ranks `--ranks` asks for; one without it.
fn ranks() -> Result<usize> {
    let mut args = std::env::args().skip(1);
    let ranks = match (args.next().as_deref(), args.next()) {
        (None, _) => 1,
        (Some("--ranks"), Some(ranks)) => ranks.parse().context("--ranks takes a number")?,
        _ => bail!("usage: phos-demo [--ranks N]"),
    };
    ensure!((1..=16).contains(&ranks), "--ranks is from 1 to 16");
    Ok(ranks)
}

/// What makes ranks of the trainer that meet in each step.
fn as_ranks(spec: &JobSpec, ranks: usize) -> JobSpec {
    let others = (ranks - 1).to_string();
    let nccl = bin_dir().join("libphos_nccl_sim.so");
    let nccl = nccl.display().to_string();
    spec.with_trainer(&["--rank-processes", &others, "--nccl", &nccl])
        .with_env("SIM_NCCL_TCP", "1")
}

/// The training run.
fn spec(ranks: usize) -> JobSpec {
    let spec = JobSpec {
        trainer: [
            "--step-ms",
            "15",
            "--ballast-mib",
            "64",
            "--workers",
            // Beside ranks there would be too many of them to tell which process is a rank.
            if ranks == 1 { "2" } else { "0" },
            "--scratch",
        ]
        .map(str::to_owned)
        .to_vec(),
        interval: "2s".to_owned(),
        ..JobSpec::default()
    };
    match ranks {
        1 => spec,
        _ => as_ranks(&spec, ranks),
    }
}

fn main() -> Result<()> {
    let start = Instant::now();
    let ranks = ranks()?;
    let mut world = match ranks {
        1 => World::new(|dir| Gpu::detect(dir, 1, 512))?,
        // NCCL wants a GPU for each rank, and this is to be seen everywhere.
        _ => World::simulated(1, 1024)?,
    };
    if let Ok(store) = std::env::var("PHOS_DEMO_STORE") {
        world.store = store;
    }
    let spec = spec(ranks);
    say(start, &format!("phos-ft demo on {}", world.gpu.name()));
    say(
        start,
        "1. a training run under phos-ft, a checkpoint every 2 s",
    );
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 3, LIMIT)?;

    let trainer = world.tree().job;
    let at = last_step(&world.log());
    if ranks == 1 {
        say(start, &format!("2. kill -9 of the trainer at step {at}"));
        kill_all(&trainer);
    } else {
        say(
            start,
            &format!("2. kill -9 of one of {ranks} ranks at step {at}"),
        );
        kill_all(&trainer[trainer.len() - 1..]);
    }
    let resumed_crash = wait_resumed(&world, &trainer, at)?;
    say(
        start,
        &format!("   resumed by itself from step {resumed_crash}"),
    );
    let before = world.checkpoints()?.len();
    world.wait_checkpoints(&mut phos, before + 1, LIMIT)?;

    let trainer = world.tree().job;
    let at = last_step(&world.log());
    say(
        start,
        &format!("3. node loss at step {at}: everything killed, all but the store deleted"),
    );
    world.lose_node()?;
    let mut phos = world.start(&spec)?;
    let resumed_node = wait_resumed(&world, &trainer, 0).with_context(|| phos.tail())?;
    say(
        start,
        &format!("   resumed by itself from the store, from step {resumed_node}"),
    );

    let before = world.checkpoints()?.len();
    world.wait_checkpoints(&mut phos, before + 1, LIMIT)?;
    world.finish()?;
    let status = phos.wait(LIMIT)?;
    ensure!(
        status.success(),
        "phos-ft ended with {status}:\n{}",
        phos.tail()
    );
    let trace = LossTrace::read(&world.log())?;
    say(
        start,
        "4. an undisturbed run of as many steps, for comparison",
    );
    let reference = world.alone(&spec, trace.len() as u64)?;
    let checkpoints = world.checkpoints()?;

    print_checkpoints(&world, &checkpoints)?;
    println!();
    println!("after kill -9     resumed from step {resumed_crash}");
    println!("after node loss   resumed from step {resumed_node}");
    if let Some(step) = trace.first_difference(&reference) {
        bail!("the loss trace differs from the undisturbed run at step {step}");
    }
    println!(
        "loss trace        {} steps, bit-identical to the undisturbed run",
        trace.len()
    );
    say(start, "done");
    Ok(())
}

fn print_checkpoints(world: &World, checkpoints: &[Checkpoint]) -> Result<()> {
    println!();
    println!("checkpoint    stop ms     image     changed      copied      stored  trigger");
    for c in checkpoints {
        println!(
            "{:>10} {:>10.1} {:>9} {:>11} {:>11} {:>11}  {}",
            c.number,
            c.stop_us as f64 / 1e3,
            mib(c.image_bytes),
            mib(c.new_bytes),
            mib(world.figure(c.number, "copied_bytes")?),
            mib(c.stored_bytes),
            c.trigger
        );
    }
    Ok(())
}

fn say(start: Instant, what: &str) {
    println!("[{:6.1} s] {what}", start.elapsed().as_secs_f64());
}

fn mib(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

fn last_step(log: &Path) -> u64 {
    LossTrace::last_step_of(log).ok().flatten().unwrap_or(0)
}

/// Waits for processes of the job other than `old`, and for the log to go on; returns the first
/// step that was computed again (the one after the checkpoint's last).
fn wait_resumed(world: &World, old: &[i32], at: u64) -> Result<u64> {
    let resumed = wait_for("the job to come back", LIMIT, || {
        let job = world.tree().job;
        (!job.is_empty() && job.iter().all(|pid| !old.contains(pid)))
            .then(|| LossTrace::last_step_of(&world.log()).ok()?)
            .flatten()
    })?;
    wait_for("the resumed job to go on", LIMIT, || {
        (last_step(&world.log()) > resumed.max(at.min(resumed))).then_some(())
    })?;
    Ok(resumed + 1)
}
