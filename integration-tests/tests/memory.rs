//! Device memory is short: the job never meets an out-of-memory that is ours.

use anyhow::Result;
use phos_integration_tests::scenario::{LIMIT, disturbed, kill_job_and_wait};
use phos_integration_tests::{JobSpec, World};

/// The device is nearly full and the job allocates and frees in every step, also while a snapshot
/// of the last checkpoint is being drained (slowly: the link is throttled).
#[test]
fn a_snapshot_gives_way_to_the_jobs_allocation() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let mut spec = JobSpec {
        steps: 150,
        interval: "800ms".into(),
        env: vec![("PHOS_SIM_LINK_MBPS".into(), "60".into())],
        ..JobSpec::default()
    };
    spec.trainer
        .extend(["--ballast-mib", "64", "--churn-mib", "100"].map(str::to_owned));
    disturbed(&world, &spec, |world, phos| {
        world.wait_checkpoints(phos, 1, LIMIT)?;
        kill_job_and_wait(world, phos)
    })
}
