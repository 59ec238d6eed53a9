//! The store is full, unreachable, read-only or damaged: the job goes on, nothing committed is
//! lost, and what is damaged is refused and said.

use std::fs;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, finish, kill_job_and_wait, last_step,
};
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

/// A world whose store is the S3 server that the tests run with, and the server's address.
fn with_s3() -> Result<(World, String)> {
    let endpoint = std::env::var("PHOS_TEST_S3_ENDPOINT").context(
        "this test needs an S3 server, and PHOS_TEST_S3_ENDPOINT names none: run it under scripts/with-s3.sh, as \
         `make test` does",
    )?;
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
    Ok((world, endpoint))
}

#[test]
fn s3_over_http() -> Result<()> {
    let (world, _) = with_s3()?;
    let spec = spec();
    let reference = world.reference(&spec)?;
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 2, LIMIT)?;
    kill_job_and_wait(&world, &phos)?;
    world.lose_node()?;
    let phos = world.start(&spec)?;
    finish(&world, phos, &reference)
}

/// A way to a TCP server that can be cut: what is under way is broken off and what is new is refused.
struct Cable {
    address: SocketAddr,
    state: Arc<Mutex<Lines>>,
}

#[derive(Default)]
struct Lines {
    cut: bool,
    open: Vec<TcpStream>,
}

impl Cable {
    fn to(server: &str) -> Result<Cable> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let cable = Cable {
            address: listener.local_addr()?,
            state: Arc::default(),
        };
        let (server, state) = (server.to_owned(), Arc::clone(&cable.state));
        // Ends with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // One that cannot be served is closed by being dropped.
                let _ = serve(client, &server, &state);
            }
        });
        Ok(cable)
    }

    fn cut(&self, cut: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.cut = cut;
        for line in state.open.drain(..) {
            let _ = line.shutdown(Shutdown::Both);
        }
    }
}

fn serve(client: TcpStream, server: &str, state: &Mutex<Lines>) -> io::Result<()> {
    let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
    if state.cut {
        return Ok(());
    }
    let upstream = TcpStream::connect(server)?;
    state
        .open
        .extend([client.try_clone()?, upstream.try_clone()?]);
    let pairs = [
        (client.try_clone()?, upstream.try_clone()?),
        (upstream, client),
    ];
    for (mut from, mut to) in pairs {
        std::thread::spawn(move || {
            let _ = io::copy(&mut from, &mut to);
            let _ = to.shutdown(Shutdown::Write);
        });
    }
    Ok(())
}

#[test]
fn a_store_that_is_away_for_a_while_costs_checkpoints_not_the_job() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    // phos-ft goes through the cable; the test's own look at the store does not.
    let through = format!("http://{}", cable.address);
    let spec = JobSpec {
        steps: 1000,
        trainer: vec!["--step-ms".into(), "50".into()],
        ..spec()
    }
    .with_trainer(&["--layers", "16,32,4", "--batch", "8"])
    .with_env("AWS_ENDPOINT_URL", &through);
    disturbed(&world, &spec, |world, phos| {
        world.wait_checkpoints(phos, 1, LIMIT)?;
        let job = world.tree().job;
        cable.cut(true);
        let committed = world.checkpoints()?;
        let step = last_step(world);
        wait_said(phos, "checkpoint given up")?;
        // Of the kind that is loud, and about the store.
        let said = phos.said();
        let line = said
            .lines()
            .find(|l| l.contains("checkpoint given up"))
            .unwrap_or_default();
        ensure!(
            line.contains("s3") || line.contains("store") || line.contains("pack"),
            "{line}"
        );
        ensure!(
            last_step(world) > step && world.tree().job == job,
            "the job did not run on:\n{}",
            phos.tail()
        );
        let during = world.checkpoints()?;
        ensure!(
            during.len() == committed.len(),
            "a checkpoint was committed to a store that was away"
        );
        let status = world.json(&["status"])?;
        ensure!(
            status["failures"].as_u64() > Some(0) && status["last_failure"].is_string(),
            "{status}"
        );
        cable.cut(false);
        world.wait_checkpoints(phos, during.len() + 1, LIMIT)?;
        ensure!(world.tree().job == job, "the job was restarted");
        kill_job_and_wait(world, phos)
    })
}

/// After the loss of all processes, but not of the disk: what was uploaded is read here. Damaged copies are noticed and
/// the store is asked.
#[test]
fn a_resume_reads_the_cache_and_not_what_is_damaged_there() -> Result<()> {
    let (world, _) = with_s3()?;
    let spec = JobSpec {
        steps: 400,
        interval: "never".into(),
        ..spec()
    }
    .with_phos(&["--cache-size", "256MiB"]);
    let reference = world.reference(&spec)?;
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    std::fs::remove_file(world.log())?;

    let phos = world.start(&spec)?;
    wait_said(&phos, "resumed checkpoint=")?;
    let (fetched, cached) = (figure(&phos, "fetched")?, figure(&phos, "cached")?);
    ensure!(
        fetched > 1 << 20 && cached > fetched / 20,
        "{fetched} bytes of the image were read, {cached} stored bytes of them here"
    );
    world.kill_everything()?;
    std::fs::remove_file(world.log())?;
    let mut damaged = 0;
    for file in std::fs::read_dir(world.path("state/cache").join(&world.job))? {
        let path = file?.path();
        let mut bytes = std::fs::read(&path)?;
        bytes.iter_mut().step_by(1000).for_each(|byte| *byte ^= 1);
        std::fs::write(&path, bytes)?;
        damaged += 1;
    }
    ensure!(damaged > 0, "nothing was kept");
    let phos = world.start(&spec)?;
    wait_said(&phos, "the store is asked")?;
    wait_said(&phos, "resumed checkpoint=")?;
    finish(&world, phos, &reference)
}

/// A figure of the last line that says that the job was resumed.
fn figure(phos: &PhosFt, name: &str) -> Result<u64> {
    let said = phos.said();
    said.rsplit("resumed checkpoint=")
        .next()
        .and_then(|line| line.split(&format!(" {name}=")).nth(1))
        .and_then(|rest| rest.split(|c: char| !c.is_ascii_digit()).next())
        .and_then(|digits| digits.parse().ok())
        .with_context(|| format!("no {name}:\n{}", phos.tail()))
}
