//! The store is full, unreachable, read-only or damaged: the job goes on, nothing committed is
//! lost, and what is damaged is refused and said.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail, ensure};
use phos_integration_tests::scenario::{LIMIT, disturbed, finish, kill_job_and_wait};
use phos_integration_tests::{JobSpec, PhosFt, World, wait_for};

fn spec() -> JobSpec {
    JobSpec {
        steps: 900,
        interval: "700ms".into(),
        ..JobSpec::default()
    }
}

fn wait_said(phos: &PhosFt, words: &str) -> Result<()> {
    wait_for(&format!("phos-ft to say {words:?}"), LIMIT, || {
        fs::read_to_string(&phos.output)
            .ok()?
            .to_lowercase()
            .contains(words)
            .then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

fn files_below(dir: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() {
            files_below(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}

fn store_files(world: &World, part: &str) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    files_below(&world.path("store"), &mut files)?;
    files.retain(|f| f.to_string_lossy().contains(part));
    files.sort_by_key(|f| fs::metadata(f).and_then(|m| m.modified()).ok());
    if files.is_empty() {
        bail!("nothing in the store has {part:?} in its path");
    }
    Ok(files)
}

fn flip_a_byte(file: &Path) -> Result<()> {
    let mut bytes = fs::read(file)?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    Ok(fs::write(file, bytes)?)
}

#[test]
fn a_full_store_costs_checkpoints_not_the_job() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let store = world.path("store");
    fs::create_dir_all(&store)?;
    rustix::mount::mount(
        "small",
        &store,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        Some(c"size=2m"),
    )?;
    let result = disturbed(&world, &spec(), |_, phos| wait_said(phos, "no space"));
    let none = world.checkpoints();
    rustix::mount::unmount(&store, rustix::mount::UnmountFlags::DETACH)?;
    result?;
    ensure!(
        none?.is_empty(),
        "a checkpoint was committed to a full store"
    );
    Ok(())
}

#[test]
fn a_store_that_becomes_read_only_costs_checkpoints_not_the_job() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let store = world.path("store");
    fs::create_dir_all(&store)?;
    rustix::mount::mount(
        "store",
        &store,
        "tmpfs",
        rustix::mount::MountFlags::empty(),
        None,
    )?;
    let result = disturbed(&world, &spec(), |world, phos| {
        world.wait_checkpoints(phos, 1, LIMIT)?;
        rustix::mount::mount_remount(world.path("store"), rustix::mount::MountFlags::RDONLY, "")?;
        wait_said(phos, "read-only")
    });
    rustix::mount::unmount(&store, rustix::mount::UnmountFlags::DETACH)?;
    result
}

#[test]
fn an_unreachable_store_is_named_before_anything_starts() -> Result<()> {
    let mut world = World::simulated(1, 256)?;
    world.store = "s3://nobody/there".to_owned();
    let spec = JobSpec {
        env: vec![
            ("AWS_ENDPOINT_URL".into(), "http://127.0.0.1:9".into()),
            ("AWS_ALLOW_HTTP".into(), "true".into()),
            ("AWS_ACCESS_KEY_ID".into(), "x".into()),
            ("AWS_SECRET_ACCESS_KEY".into(), "x".into()),
            ("AWS_REGION".into(), "us-east-1".into()),
        ],
        ..spec()
    };
    let mut phos = world.start(&spec)?;
    let status = phos.wait(LIMIT)?;
    ensure!(!status.success());
    ensure!(phos.tail().contains("s3://nobody/there"), "{}", phos.tail());
    ensure!(!world.log().exists(), "the job was started");
    Ok(())
}

fn falls_back(part: &str) -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        steps: 1500,
        ..spec()
    };
    let reference = world.reference(&spec)?;
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 3, LIMIT)?;
    world.lose_node()?;
    let newest = store_files(&world, part)?;
    let Some(newest) = newest.last() else {
        bail!("no {part}");
    };
    flip_a_byte(newest)?;
    let phos = world.start(&spec)?;
    wait_said(&phos, "damaged")?;
    finish(&world, phos, &reference)
}

#[test]
fn a_damaged_manifest_is_refused_and_the_one_before_used() -> Result<()> {
    falls_back("/manifests/")
}

#[test]
fn a_damaged_pack_is_refused_and_the_one_before_used() -> Result<()> {
    falls_back("/packs/")
}

#[test]
fn s3_over_http() -> Result<()> {
    let Ok(endpoint) = std::env::var("PHOS_TEST_S3_ENDPOINT") else {
        eprintln!("SKIPPED: PHOS_TEST_S3_ENDPOINT is not set; `make test` starts a server");
        return Ok(());
    };
    let mut world = World::simulated(1, 256)?;
    world.store = format!("s3://phos-test/{}", world.job);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "test"),
        ("AWS_SECRET_ACCESS_KEY", "test"),
        ("AWS_REGION", "us-east-1"),
    ] {
        world.env.push((name.to_owned(), value.to_owned()));
    }
    let spec = spec();
    let reference = world.reference(&spec)?;
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 2, LIMIT)?;
    kill_job_and_wait(&world, &phos)?;
    world.lose_node()?;
    let phos = world.start(&spec)?;
    finish(&world, phos, &reference)
}
