//! What a job that is not root can make of an agent that is: nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{checkpoint, disturbed, finish, wait_said};
use phos_integration_tests::{JobSpec, World};

/// The job's user, which no other process here has.
const USER: u32 = 12_345;

/// A world in which a job of that user can live.
fn world() -> Result<(World, JobSpec)> {
    let world = World::simulated(1, 256)?;
    fs::set_permissions(world.path(""), Permissions::from_mode(0o755))?;
    for own in ["work", "tmp"] {
        chown(world.path(own), Some(USER), Some(USER))?;
    }
    world.sim()?.for_everybody()?;
    let user = format!("{USER}:{USER}");
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_phos(&["--user", &user]);
    Ok((world, spec))
}

/// `mv directory directory.old; ln -s victim directory`, as its owner could where that is in a directory of the same user.
fn swap(directory: &Path, victim: &Path) -> Result<()> {
    fs::rename(directory, directory.with_extension("old"))?;
    symlink(victim, directory)?;
    Ok(lchown(directory, Some(USER), Some(USER))?)
}

fn swap_back(directory: &Path) -> Result<()> {
    fs::remove_file(directory)?;
    Ok(fs::rename(directory.with_extension("old"), directory)?)
}

#[test]
fn a_directory_that_was_swapped_leads_nowhere() -> Result<()> {
    let (world, spec) = world()?;
    let reference = world.reference(&spec)?;
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let (work, etc) = (world.path("work"), world.path("etc"));
    fs::create_dir(&etc)?;
    let secret = etc.join("loss.log");
    fs::write(&secret, "precious")?;
    fs::set_permissions(&secret, Permissions::from_mode(0o600))?;
    swap(&work, &etc)?;
    let mut command = world.trainer(&spec);
    command.current_dir(world.path("tmp"));
    let phos = world.spawn(command)?;
    let link = format!("is a symbolic link of user {USER}");
    wait_said(&phos, &[&link])?;
    let meta = fs::metadata(&secret)?;
    ensure!(
        (meta.uid(), meta.mode() & 0o7777) == (0, 0o600) && fs::read(&secret)? == b"precious",
        "{}",
        phos.tail()
    );
    let found = fs::read_dir(&etc)?.count();
    ensure!(found == 1, "{found} files: {}", phos.tail());
    // Nothing is lost by that.
    world.kill_everything()?;
    swap_back(&work)?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    let log = fs::metadata(world.log())?;
    ensure!(log.uid() == USER, "it is user {}'s now", log.uid());
    finish(&world, phos, &reference)
}

/// CRIU makes what an image says: who wrote it may have been root, or somebody who could write to the store.
#[test]
fn an_image_of_root_is_not_brought_back_for_a_user() -> Result<()> {
    let (world, spec) = world()?;
    let reference = world.reference(&spec)?;
    let as_root = JobSpec {
        phos: Vec::new(),
        ..spec.clone()
    };
    let phos = world.start(&as_root)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let before = fs::read(world.log())?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &["has a process of user 0", "--start-fresh"])?;
    ensure!(world.tree().job.is_empty(), "{}", phos.tail());
    ensure!(fs::read(world.log())? == before, "{}", phos.tail());
    world.kill_everything()?;
    let phos = world.start(&as_root)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finish(&world, phos, &reference)
}

/// The job sees neither how the store is reached nor where the key is, and so neither does who reads its image.
#[test]
fn the_job_does_not_have_the_secrets_of_the_sidecar() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec::default()
        .with_env("AWS_SECRET_ACCESS_KEY", "of-the-store")
        .with_env("AWS_PROFILE", "of-the-job")
        .with_env("AZURE_CLIENT_SECRET", "of-the-store")
        .with_env("PHOS_NODE_NAME", "of-the-sidecar")
        .with_env("OTHER", "of-the-job")
        .with_phos(&["--keep-env", "AWS_PROFILE"]);
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let main = *world.tree().job.first().context("no job")?;
        let environment = fs::read(format!("/proc/{main}/environ"))?;
        let environment = String::from_utf8_lossy(&environment);
        let names: Vec<&str> = environment
            .split('\0')
            .filter_map(|variable| Some(variable.split_once('=')?.0))
            .collect();
        ensure!(
            !environment.contains("of-the-store") && !environment.contains("of-the-sidecar"),
            "{names:?}"
        );
        for kept in ["AWS_PROFILE", "OTHER", "LD_PRELOAD"] {
            ensure!(names.contains(&kept), "{kept} is not in {names:?}");
        }
        wait_said(
            phos,
            &["aws_secret_access_key", "azure_client_secret", "--keep-env"],
        )
    })
}
