//! Invariant 3: the sidecar's death at any instant costs at most the checkpoint in flight.
//!
//! Each test kills the sidecar (a failpoint, SIGKILL by itself) at one step of its first
//! checkpoint. The job goes on, the supervisor starts a new sidecar, and the next checkpoint is
//! good: proved by killing the job afterwards and resuming from it.

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{LIMIT, disturbed, kill_job_and_wait};
use phos_integration_tests::{JobSpec, World, wait_for};

fn dies_at(step: &str) -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "700ms".into(),
        // Once: the file is created when the failpoint fires, and a fired failpoint is inert.
        env: vec![(
            "PHOS_FAILPOINT".into(),
            format!("sidecar:{step}=once:{}", world.path("fired").display()),
        )],
        ..JobSpec::default()
    };
    disturbed(&world, &spec, |world, phos| {
        wait_for("the failpoint to fire", LIMIT, || {
            world.path("fired").exists().then_some(())
        })
        .with_context(|| phos.tail())?;
        ensure!(
            !world.tree().job.is_empty(),
            "the job died with the sidecar:\n{}",
            phos.tail()
        );
        let committed = world.checkpoints()?.len();
        world.wait_checkpoints(phos, committed + 1, LIMIT)?;
        kill_job_and_wait(world, phos)
    })
}

macro_rules! dies_at {
    ($($name:ident: $step:literal;)*) => {
        $(#[test] fn $name() -> Result<()> { dies_at($step) })*
    };
}

dies_at! {
    after_quiesce: "after-quiesce";
    after_name: "after-name";
    after_dump_request: "after-dump-request";
    after_dumped: "after-dumped";
    before_attach: "before-attach";
    after_attach: "after-attach";
    mid_drain: "mid-drain";
    before_manifest: "before-manifest";
    before_head: "before-head";
    after_head: "after-head";
}
