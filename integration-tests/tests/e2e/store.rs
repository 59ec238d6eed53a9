//! The store is full, unreachable, read-only or damaged: the job goes on, nothing committed is
//! lost, and what is damaged is refused and said.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use phos_integration_tests::s3::{Cable, packs_on, with_s3, with_s3_and};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, figure, finish, finished, in_memory, kill_job_and_wait,
    last_step, number, sidecar, stops, wait_step,
};
use phos_integration_tests::{
    COSTLY, Event, JobSpec, PhosFt, World, kill_all, processes_with, stop_process, wait_every,
    wait_for,
};
use rustix::process::{Signal, kill_process};

fn spec() -> JobSpec {
    JobSpec {
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
    // Not what is being written.
    files.retain(|f| f.to_string_lossy().contains(part) && !f.to_string_lossy().contains('#'));
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
    // Not before the job has more than fits.
    let spec = JobSpec {
        interval: "never".into(),
        ..spec()
    };
    in_memory(&store, Some(c"size=1m"), || {
        disturbed(&world, &spec, |world, phos| {
            wait_step(world, phos, 20)?;
            let asked = world.run(&["checkpoint"])?;
            ensure!(!asked.status.success(), "{asked:?}");
            wait_said(phos, "no space")
        })?;
        ensure!(
            world.checkpoints()?.is_empty(),
            "a checkpoint was committed to a full store"
        );
        Ok(())
    })
}

#[test]
fn a_store_that_becomes_read_only_costs_checkpoints_not_the_job() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let store = world.path("store");
    in_memory(&store, None, || {
        disturbed(&world, &spec(), |world, phos| {
            world.wait_checkpoints(phos, 1, LIMIT)?;
            // Busy while a file is being written.
            let flags = rustix::mount::MountFlags::RDONLY;
            wait_for("the store to become read-only", LIMIT, || {
                rustix::mount::mount_remount(world.path("store"), flags, "").ok()
            })?;
            wait_said(phos, "read-only")
        })
    })
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

/// A job that lost its machine, with three checkpoints in the store.
fn lost_after_three_checkpoints() -> Result<(World, JobSpec)> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.start(&spec)?;
    for _ in 0..3 {
        checkpoint(&world, &phos)?;
    }
    world.lose_node()?;
    Ok((world, spec))
}

fn falls_back(part: &str) -> Result<()> {
    let (world, spec) = lost_after_three_checkpoints()?;
    let newest = store_files(&world, part)?;
    let Some(newest) = newest.last() else {
        bail!("no {part}");
    };
    flip_a_byte(newest)?;
    let phos = world.start(&spec)?;
    wait_said(&phos, "damaged")?;
    finish(&world, phos, &spec)
}

#[test]
fn a_damaged_manifest_is_refused_and_the_one_before_used() -> Result<()> {
    falls_back("/manifests/")
}

#[test]
fn a_damaged_pack_is_refused_and_the_one_before_used() -> Result<()> {
    falls_back("/packs/")
}

/// On its way to the GPU: what is there is digested, and what is wrong is read again.
#[test]
fn memory_that_arrives_on_the_gpu_as_something_else_is_read_again() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let flip = world.path("flip");
    let spec = spec().with_env("PHOS_SIM_FLIP", &flip.display().to_string());
    let mut phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    for life in 0..2 {
        if life == 0 {
            world.lose_node()?;
            fs::write(&flip, "")?;
            phos = world.start(&spec)?;
        } else {
            checkpoint(&world, &phos)?;
            // Neither the job nor a restore that has begun gets it.
            let sidecar = stop_process(sidecar(&world)?)?;
            kill_all(&world.tree().job);
            fs::write(&flip, "")?;
            kill_process(sidecar, Signal::CONT)?;
        }
        wait_for("the job to be resumed again", LIMIT, || {
            (phos.times(Event::Resumed) == life + 1).then_some(())
        })
        .map_err(|e| e.context(phos.tail()))?;
        let said = phos.said();
        let seen = said.matches("device memory is not what was read").count();
        ensure!(
            seen == life + 1 && !flip.exists() && !said.contains("could not be restored"),
            "{}",
            phos.tail()
        );
    }
    finish(&world, phos, &spec)
}

/// The image is in host memory as a resume needs it: all of it is read there, none of it encoded.
#[test]
fn a_resume_with_room_in_host_memory_decodes_nothing() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--host-cache", "1GiB"]);
    let mut phos = world.start(&spec)?;
    // The first knows how large processes are when it has dumped them.
    for _ in 0..2 {
        checkpoint(&world, &phos)?;
    }
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, "resumed checkpoint=")?;
    let (fetched, in_memory) = (figure(&phos, "fetched")?, figure(&phos, "in_memory")?);
    // Of zeros nothing is kept, and each length of them counts once.
    ensure!(
        in_memory <= fetched && fetched - in_memory <= 4 << 20,
        "{in_memory} of {fetched}: {}",
        phos.tail()
    );
    finished(&world, &mut phos, &spec)
}

/// Files of the CPU image are read first, while the memory of the job that has ended is there; there is no room for it twice.
#[test]
fn damage_of_the_cpu_image_leads_to_the_checkpoint_before() -> Result<()> {
    let world = World::simulated(1, 192)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..spec()
    }
    .with_trainer(&["--state-mib", "120"]);
    let mut phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    let before = store_files(&world, "/packs/")?;
    checkpoint(&world, &phos)?;
    for pack in store_files(&world, "/packs/")? {
        if !before.contains(&pack) {
            let mut bytes = fs::read(&pack)?;
            bytes
                .iter_mut()
                .step_by(1024)
                .for_each(|byte| *byte ^= 0x40);
            fs::write(&pack, bytes)?;
        }
    }
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, "could not be restored; trying the one before")?;
    wait_said(&phos, "resumed checkpoint=")?;
    finished(&world, &mut phos, &spec)
}

/// What is damaged comes last, when processes are back and wait for it; there is no room for the memory of both checkpoints.
#[test]
fn damage_that_shows_when_processes_are_back_leads_to_the_checkpoint_before() -> Result<()> {
    let world = World::simulated(1, 192)?;
    // None of before the first step: the job's log would be no file of it, and stay as a newer one had it.
    let spec = JobSpec {
        interval: "never".into(),
        ..spec()
    }
    .with_trainer(&["--state-mib", "120"]);
    let phos = world.start(&spec)?;
    for _ in 0..2 {
        checkpoint(&world, &phos)?;
    }
    world.lose_node()?;
    // The newest: what comes first is as it was.
    let packs = store_files(&world, "/packs/")?;
    for pack in packs.iter().skip(packs.len() * 3 / 4) {
        flip_a_byte(pack)?;
    }
    let phos = world.start(&spec)?;
    wait_said(&phos, "the job was not restored")?;
    wait_said(&phos, "resumed checkpoint=")?;
    finish(&world, phos, &spec)
}

#[test]
fn one_that_was_chosen_and_is_damaged_gives_way_to_an_older_one_and_not_to_a_newer() -> Result<()> {
    let (world, spec) = lost_after_three_checkpoints()?;
    let numbers: Vec<u64> = world.checkpoints()?.iter().map(|c| c.number).collect();
    // Each has a pack of its own, of what changed.
    let packs = store_files(&world, "/packs/")?;
    flip_a_byte(packs.get(1).context("one pack")?)?;
    let phos = world.start(&spec.with_phos(&["--from", &numbers[1].to_string()]))?;
    wait_said(&phos, &format!("resumed checkpoint={} ", numbers[0]))?;
    let said = phos.said();
    ensure!(said.contains(&format!("resuming checkpoint={} ", numbers[1])));
    ensure!(!said.contains(&format!("resuming checkpoint={} ", numbers[2])));
    finish(&world, phos, &spec)
}

#[test]
fn s3_over_http() -> Result<()> {
    let (world, _) = with_s3()?;
    let spec = spec();
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 2, LIMIT)?;
    kill_job_and_wait(&world, &phos)?;
    world.lose_node()?;
    let phos = world.start(&spec)?;
    wait_said(&phos, "resumed checkpoint=")?;
    finish(&world, phos, &spec)
}

/// The state directory in memory: a cache holds nothing on a disk that is nearly full, as one under test may be.
fn state_in_memory(world: &World) -> Result<tempfile::TempDir> {
    let there = tempfile::tempdir_in("/dev/shm")?;
    std::os::unix::fs::symlink(there.path(), world.path("state"))?;
    Ok(there)
}

/// As above, encrypted: what is kept in memory and on the disk is what is stored, and a resume opens it there.
#[test]
fn s3_over_http_encrypted_and_with_caches() -> Result<()> {
    let (mut world, _) = with_s3()?;
    let key = world.path("key").display().to_string();
    ensure!(world.run(&["keygen", &key])?.status.success());
    world.env.push(("PHOS_ENCRYPTION_KEY_FILE".into(), key));
    let _state = state_in_memory(&world)?;
    let spec = spec().with_phos(&["--cache-size", "256MiB", "--host-cache", "256MiB"]);
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 2, LIMIT)?;
    kill_job_and_wait(&world, &phos)?;
    // The sidecar lived on: nothing was read from the disk or the store.
    wait_said(&phos, "resumed checkpoint=")?;
    ensure!(figure(&phos, "in_memory")? > 0, "{}", phos.tail());
    world.kill_everything()?;
    fs::remove_file(world.log())?;
    let phos = world.start(&spec)?;
    wait_said(&phos, "resumed checkpoint=")?;
    ensure!(figure(&phos, "cached")? > 0, "{}", phos.tail());
    ensure!(figure(&phos, "in_memory")? == 0, "{}", phos.tail());
    world.lose_node()?;
    let phos = world.start(&spec)?;
    wait_said(&phos, "resumed checkpoint=")?;
    finish(&world, phos, &spec)
}

#[test]
fn a_store_that_is_away_for_a_while_costs_checkpoints_not_the_job() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    // phos-ft goes through the cable; the test's own look at the store does not.
    let through = cable.url();
    let spec = JobSpec {
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

#[test]
fn an_upload_keeps_its_limit_and_is_gone_on_with_after_the_sidecars_death() -> Result<()> {
    const RATE: u64 = 48 << 20;
    let (world, endpoint) = with_s3_and(1024)?;
    // Some packs of memory that stays as it is.
    let spec = JobSpec {
        trainer: vec!["--step-ms".into(), "50".into()],
        interval: "never".into(),
        ..spec()
    }
    .with_trainer(&["--ballast-mib", "512"])
    .with_phos(&["--upload-limit", "48MiB"]);
    disturbed(&world, &spec, |world, phos| {
        // The ballast is there.
        wait_step(world, phos, 3)?;
        let job = std::thread::scope(|scope| -> Result<_> {
            let asked = scope.spawn(|| world.run(&["checkpoint"]));
            wait_every(COSTLY, "a pack on the server", LIMIT, || {
                (packs_on(&endpoint, world).ok()? > 0).then_some(())
            })
            .map_err(|e| e.context(phos.tail()))?;
            let job = world.tree().job;
            // Not its supervisor, which starts another one.
            let sidecar = processes_with(&[
                "phos-ft",
                "--host-buffer",
                &world.run_dir().display().to_string(),
            ]);
            kill_all(&sidecar);
            let answer = asked.join().map_err(|_| anyhow::anyhow!("a panic"))??;
            ensure!(!answer.status.success(), "{answer:?}");
            Ok(job)
        })?;
        ensure!(
            world.checkpoints()?.is_empty(),
            "the checkpoint was committed before it could be cut off"
        );
        let sent = packs_on(&endpoint, world)?;
        let answer = wait_for("a checkpoint", LIMIT, || world.json(&["checkpoint"]).ok())
            .map_err(|e| e.context(phos.tail()))?;
        wait_said(phos, "an unfinished checkpoint was completed")?;
        ensure!(world.tree().job == job, "the job was restarted");
        let all = packs_on(&endpoint, world)?;
        ensure!(
            sent > 0 && all < 2 * sent + 8,
            "{all} packs, {sent} of them before"
        );
        ensure!(answer["id"].is_u64(), "{answer}");
        // The second sidecar's part of it. What may go at once is a quarter of a second's.
        let said = phos.said();
        let line =
            (said.lines().find(|line| line.contains(" checkpoint id="))).context("no line")?;
        let (stored, seconds) = (number(line, "stored")?, number(line, "seconds")?);
        let rate = RATE as f64;
        ensure!(stored > rate && seconds > stored / rate - 0.5, "{line}");
        kill_job_and_wait(world, phos)
    })
}

/// No snapshot fits beside what the job has on its device, and the store takes its time: all that changed waits in host memory,
/// and the job runs. Afterwards the buffer is as small as it was.
#[test]
fn a_full_device_does_not_wait_for_the_store() -> Result<()> {
    let (world, endpoint) = with_s3_and(800)?;
    let spec = JobSpec {
        trainer: vec!["--step-ms".into(), "50".into()],
        interval: "never".into(),
        ..spec()
    }
    .with_trainer(&["--ballast-mib", "720"])
    .with_phos(&["--upload-limit", "48MiB", "--host-buffer", "64MiB..2GiB"]);
    disturbed(&world, &spec, |world, phos| {
        // The ballast is there.
        wait_step(world, phos, 3)?;
        let sent = std::thread::scope(|scope| -> Result<_> {
            let asked = scope.spawn(|| world.run(&["checkpoint"]));
            wait_every(COSTLY, "the end of the stop", LIMIT, || {
                (stops(phos) > 0).then_some(())
            })
            .map_err(|e| e.context(phos.tail()))?;
            let sent = packs_on(&endpoint, world)?;
            let answer = asked.join().map_err(|_| anyhow::anyhow!("a panic"))??;
            ensure!(answer.status.success(), "{answer:?}\n{}", phos.tail());
            Ok(sent)
        })?;
        let all = packs_on(&endpoint, world)?;
        ensure!(
            all > 4 && sent * 4 <= all,
            "{sent} of {all} packs were stored when the job ran again"
        );
        wait_said(phos, "the host buffer has")?;
        // The first of them shows how little changes, and the second goes by it.
        checkpoint(world, phos)?;
        checkpoint(world, phos)?;
        wait_said(phos, "the host buffer has 64.0 mib now")?;
        kill_job_and_wait(world, phos)
    })
}

/// After the loss of all processes, but not of the disk: what was uploaded is read here. Damaged copies are noticed and
/// the store is asked.
#[test]
fn a_resume_reads_the_cache_and_not_what_is_damaged_there() -> Result<()> {
    let (world, _) = with_s3()?;
    let _state = state_in_memory(&world)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..spec()
    }
    .with_phos(&["--cache-size", "256MiB"]);
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
    wait_said(&phos, "only its copy on this machine")?;
    wait_said(&phos, "resumed checkpoint=")?;
    finish(&world, phos, &spec)
}
