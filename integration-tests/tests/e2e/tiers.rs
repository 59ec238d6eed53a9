//! `--remote-interval`: most checkpoints stay on the machine. A crash costs an interval, the loss of the machine a remote
//! one, and what others went on with is never mixed up with what is here.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::s3::{Cable, with_s3};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, figure, files_below, finish, in_memory, kill_job_and_wait,
    wait_said,
};
use phos_integration_tests::{
    COSTLY, Event, JobSpec, PhosFt, World, kill_all, wait_every, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};

/// Checkpoints are frequent, and only the first goes on to the store by itself.
fn spec() -> JobSpec {
    JobSpec {
        interval: "500ms".into(),
        ..JobSpec::default()
    }
    .with_phos(&["--remote-interval", "1h"])
}

/// The same with short steps.
fn fast() -> JobSpec {
    spec().with_trainer(&["--step-ms", "30", "--layers", "16,32,4", "--batch", "8"])
}

/// Ids and places of the checkpoints, newest first, as `phos-ft list` has them.
fn listed(world: &World) -> Result<Vec<(String, String)>> {
    let rows = world.json(&["list"])?;
    let rows = rows["checkpoints"].as_array().context("no list")?.clone();
    let text = |row: &serde_json::Value, name: &str| {
        row[name]
            .as_str()
            .map(str::to_owned)
            .with_context(|| format!("no {name}: {row}"))
    };
    rows.iter()
        .map(|row| Ok((text(row, "id")?, text(row, "durability")?)))
        .collect()
}

/// Waits until the newest checkpoint is one that is on this machine alone, beside one in the store.
fn wait_for_both(world: &World, phos: &PhosFt) -> Result<()> {
    wait_every(
        COSTLY,
        "a checkpoint in the store and a newer one here",
        LIMIT,
        || {
            let rows = listed(world).ok()?;
            let newest = rows.first()?;
            let stored = rows
                .iter()
                .any(|(id, place)| !id.starts_with('L') && place == "remote");
            (newest.0.starts_with('L') && newest.1 == "local" && stored).then_some(())
        },
    )
    .map_err(|e| e.context(phos.tail()))
}

/// A job with a checkpoint in the store and a newer one on this machine.
fn under_way() -> Result<(World, JobSpec, PhosFt)> {
    under_way_as(spec())
}

fn under_way_as(spec: JobSpec) -> Result<(World, JobSpec, PhosFt)> {
    let (world, _) = with_s3()?;
    let phos = world.start(&spec)?;
    // With all that the job has, and not only what was there when the first interval was over.
    let asked = checkpoint(&world, &phos)?;
    wait_stored(&world, &phos, asked)?;
    wait_for_both(&world, &phos)?;
    Ok((world, spec, phos))
}

/// What was resumed is not from this machine.
fn resumed_elsewhere(phos: &PhosFt) -> Result<()> {
    let here = phos.said().contains("resumed checkpoint=l");
    ensure!(!here, "{}", phos.tail());
    Ok(())
}

/// Waits until the newest checkpoint is in the store.
fn wait_stored(world: &World, phos: &PhosFt, local: u64) -> Result<()> {
    wait_for("the checkpoint to be in the store", LIMIT, || {
        let status = world.json(&["status"]).ok()?;
        (status["remote"]["local"].as_u64()? >= local).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))
}

#[test]
fn a_crash_resumes_from_this_machine_and_its_loss_from_the_store() -> Result<()> {
    let (world, spec, phos) = under_way()?;
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, &["resumed checkpoint=l"])?;
    // One that somebody asks for is sent at once.
    let asked = checkpoint(&world, &phos)?;
    wait_stored(&world, &phos, asked)?;
    // The newest two are kept: one that was listed may be gone.
    let shown = wait_every(COSTLY, "one that is here alone", LIMIT, || {
        let mut rows = listed(&world).ok()?.into_iter();
        let (id, _) = rows.find(|(id, _)| id.starts_with('L'))?;
        world.json(&["show", &id]).ok()
    })?;
    ensure!(shown["durability"] == "local", "{shown}");
    world.lose_node()?;
    ensure!(
        listed(&world)?
            .iter()
            .all(|(id, place)| !id.starts_with('L') && place == "remote")
    );
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    resumed_elsewhere(&phos)?;
    finish(&world, phos, &spec)
}

#[test]
fn when_all_processes_die_the_disk_of_this_machine_is_enough() -> Result<()> {
    let (world, spec, _) = under_way()?;
    world.kill_everything()?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint=l"])?;
    finish(&world, phos, &spec)
}

/// Most of its image never changes, so that all its checkpoints share that.
fn mostly_still() -> JobSpec {
    spec().with_trainer(&["--ballast-mib", "24"])
}

#[test]
fn a_checkpoint_of_the_store_is_read_here_as_far_as_it_is_here() -> Result<()> {
    let (world, spec, phos) = under_way_as(mostly_still())?;
    // The one that was sent is no longer here: what is here is later, and whoever goes back to that one leaves it behind.
    let status = world.json(&["status"])?;
    let sent = (status["remote"]["local"].as_u64()).context("none was sent")?;
    wait_every(COSTLY, "later ones alone", LIMIT, || {
        let files = files_below(&world.path("state/local")).ok()?.into_keys();
        let manifests = files.filter(|path| path.to_string_lossy().contains("/manifests/"));
        let number = |path: PathBuf| {
            let name = path.file_name()?.to_str()?;
            name.get(..20)?.parse::<u64>().ok()
        };
        (manifests.filter_map(number).min()? > sent).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    world.kill_everything()?;
    let stored = (listed(&world)?.into_iter())
        .map(|(id, _)| id)
        .find(|id| !id.starts_with('L'));
    let stored = stored.context("none in the store")?;
    let phos = world.start(&spec.with_phos(&["--from", &stored]))?;
    wait_said(&phos, &[&format!("resumed checkpoint={stored} ")])?;
    let (total, here) = (figure(&phos, "total")?, figure(&phos, "cached")?);
    ensure!(
        here > 16 << 20 && here < total,
        "{here} stored bytes of {total} were read here: {}",
        phos.tail()
    );
    finish(&world, phos, &spec)
}

#[test]
fn what_is_damaged_here_is_read_from_the_store() -> Result<()> {
    let (world, spec, _) = under_way_as(mostly_still())?;
    world.kill_everything()?;
    // Most of it is what never changes, and that is in the store as well.
    let largest = (packs_here(&world)?.into_iter()).max_by_key(|(_, bytes)| bytes.len());
    let (path, mut bytes) = largest.context("no pack here")?;
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x40;
    fs::write(path, bytes)?;
    let phos = world.start(&spec)?;
    wait_said(
        &phos,
        &[
            "is damaged; what it lacks is looked for in the store",
            "what the damaged checkpoint lacked came from the store",
            "resumed checkpoint=l",
        ],
    )?;
    finish(&world, phos, &spec)
}

#[test]
fn while_the_store_is_away_checkpoints_go_on_and_a_crash_is_resumed() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    let spec = fast().with_env("AWS_ENDPOINT_URL", &cable.url());
    disturbed(&world, &spec, |world, phos| {
        wait_for_both(world, phos)?;
        let count = |world: &World| {
            world.json(&["status"])?["checkpoints"]
                .as_u64()
                .context("no count")
        };
        cable.cut(true);
        let before = count(world)?;
        wait_for("checkpoints without the store", LIMIT, || {
            (count(world).ok()? > before).then_some(())
        })?;
        let status = world.json(&["status"])?;
        ensure!(status["failures"] == 0, "{status}");
        kill_job_and_wait(world, phos)?;
        wait_said(phos, &["resumed checkpoint=l"])?;
        let asked = checkpoint(world, phos)?;
        let status = world.json(&["status"])?;
        ensure!(status["remote"]["local"].as_u64() < Some(asked), "{status}");
        cable.cut(false);
        wait_stored(world, phos, asked)
    })
}

/// A request that gets no answer is given up after minutes.
#[test]
fn a_store_that_does_not_answer_keeps_no_job_from_its_checkpoint_here() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    let spec = fast().with_env("AWS_ENDPOINT_URL", &cable.url());
    disturbed(&world, &spec, |world, phos| {
        wait_for_both(world, phos)?;
        cable.silence();
        kill_job_and_wait(world, phos)?;
        wait_said(phos, &["resumed checkpoint=l"])?;
        cable.cut(false);
        Ok(())
    })
}

#[test]
fn a_directory_on_another_disk_is_a_store_elsewhere() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let store = world.path("store");
    in_memory(&store, None, || {
        disturbed(&world, &spec(), |world, phos| {
            wait_for("one there and a newer one here", LIMIT, || {
                let rows = listed(world).ok()?;
                let here = |(id, _): &(String, String)| id.starts_with('L');
                (rows.first().is_some_and(here) && !rows.iter().all(here)).then_some(())
            })?;
            kill_job_and_wait(world, phos)?;
            wait_said(phos, &["resumed checkpoint=l"])
        })
    })
}

#[test]
fn a_full_disk_here_sends_checkpoints_to_the_store() -> Result<()> {
    let (world, _) = with_s3()?;
    let local = world.path("state/local");
    in_memory(&local, Some(c"size=2m"), || {
        disturbed(&world, &spec(), |world, phos| {
            wait_for("a checkpoint in the store", LIMIT, || {
                let rows = listed(world).ok()?;
                rows.iter()
                    .any(|(id, _)| !id.starts_with('L'))
                    .then_some(())
            })?;
            wait_said(
                phos,
                &["no space", "goes to the store, not to this machine"],
            )?;
            kill_job_and_wait(world, phos)
        })
    })
}

/// What was left behind here goes when a person says so, as in the store.
#[test]
fn branches_that_are_dropped_go_from_this_machine_as_well() -> Result<()> {
    let (world, spec, _) = under_way()?;
    world.kill_everything()?;
    let stored = (listed(&world)?.into_iter()).find(|(id, _)| !id.starts_with('L'));
    let (stored, _) = stored.context("none in the store")?;
    let phos = world.start(&spec.with_phos(&["--from", &stored]))?;
    wait_said(&phos, &[&format!("resumed checkpoint={stored} ")])?;
    let left_behind = |world: &World| -> Result<usize> {
        let rows = world.json(&["list"])?;
        let rows = rows["checkpoints"].as_array().context("no list")?;
        let left = |row: &&serde_json::Value| {
            row["branch"].is_u64() && row["id"].as_str().is_some_and(|id| id.starts_with('L'))
        };
        Ok(rows.iter().filter(left).count())
    };
    // The fork is written with the first checkpoint here.
    let asked = checkpoint(&world, &phos)?;
    wait_stored(&world, &phos, asked)?;
    ensure!(left_behind(&world)? > 0, "{:?}", world.json(&["list"])?);
    let dry = world.json(&["prune", "--drop-branches", "--dry-run"])?;
    ensure!(
        dry["local"]["removed"]
            .as_array()
            .is_some_and(|all| !all.is_empty()),
        "{dry}"
    );
    ensure!(left_behind(&world)? > 0, "{:?}", world.json(&["list"])?);
    world.json(&["prune", "--drop-branches"])?;
    ensure!(left_behind(&world)? == 0, "{:?}", world.json(&["list"])?);
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, &["resumed checkpoint=l"])?;
    finish(&world, phos, &spec)
}

/// Where the disk cannot even note that the job went back, what is on it is not resumed either.
#[test]
fn what_was_left_behind_is_not_resumed_from_a_full_disk() -> Result<()> {
    let (world, _) = with_s3()?;
    let local = world.path("state/local");
    in_memory(&local, Some(c"size=256m"), || {
        let phos = world.start(&spec())?;
        let asked = checkpoint(&world, &phos)?;
        wait_stored(&world, &phos, asked)?;
        wait_for_both(&world, &phos)?;
        world.kill_everything()?;
        let stored = (listed(&world)?.into_iter()).find(|(id, _)| !id.starts_with('L'));
        let (stored, _) = stored.context("none in the store")?;
        let mut rest = fs::File::create(local.join("rest"))?;
        let full = std::io::copy(&mut std::io::repeat(1), &mut rest);
        ensure!(full.is_err_and(|e| e.kind() == std::io::ErrorKind::StorageFull));

        let phos = world.start(&spec().with_phos(&["--from", &stored]))?;
        wait_said(
            &phos,
            &[
                "no checkpoints are kept on this machine",
                &format!("resumed checkpoint={stored} "),
            ],
        )?;
        checkpoint(&world, &phos)?;
        kill_job_and_wait(&world, &phos)?;
        wait_for("the second resume", LIMIT, || {
            (phos.times(Event::Resumed) == 2).then_some(())
        })?;
        resumed_elsewhere(&phos)?;
        world.kill_everything()?;

        // The trainer appends to what is there.
        fs::remove_file(world.log())?;
        let phos = world.start(&spec().with_phos(&["--start-fresh"]))?;
        wait_said(&phos, &["the job was started"])?;
        ensure!(phos.times(Event::Resumed) == 0, "{}", phos.tail());
        finish(&world, phos, &spec())
    })
}

#[test]
fn what_others_went_on_with_is_not_mixed_up_with_what_is_here() -> Result<()> {
    let (world, spec, _) = under_way()?;
    world.kill_everything()?;
    // Another machine goes on from the store.
    let (here, away) = (world.path("state"), world.path("state.away"));
    fs::rename(&here, &away)?;
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    let asked = checkpoint(&world, &phos)?;
    wait_stored(&world, &phos, asked)?;
    world.kill_everything()?;
    fs::remove_dir_all(&here)?;
    fs::rename(&away, &here)?;
    // What is here counts no more. Who names it hears so, and it is not deleted for that.
    let stale = listed(&world)?
        .into_iter()
        .find(|(id, _)| id.starts_with('L'));
    let (stale, _) = stale.context("nothing is left here")?;
    let mut refused = world.start(&spec.with_phos(&["--from", &stale]))?;
    ensure!(!refused.wait(LIMIT)?.success(), "{}", refused.tail());
    ensure!(
        refused.said().contains("another machine had the job since"),
        "{}",
        refused.tail()
    );
    ensure!(
        world.run(&["show", &stale])?.status.success(),
        "{stale} was deleted"
    );
    let phos = world.start(&spec)?;
    wait_said(
        &phos,
        &[
            "resumed checkpoint=",
            "of a history that others went on with are deleted",
        ],
    )?;
    resumed_elsewhere(&phos)?;
    finish(&world, phos, &spec)
}

#[test]
fn the_last_checkpoint_is_sent_before_phos_ft_ends() -> Result<()> {
    let (world, spec, mut phos) = under_way()?;
    let pid = Pid::from_raw(phos.child.id() as i32).context("no PID")?;
    kill_process(pid, Signal::TERM)?;
    phos.wait(LIMIT)?;
    let rows = world.json(&["list"])?;
    let newest = &rows["checkpoints"][0];
    ensure!(
        newest["durability"] == "remote" && newest["trigger"] == "terminate",
        "{rows}"
    );
    world.lose_node()?;
    let phos = world.start(&spec)?;
    wait_said(
        &phos,
        &[&format!("resumed checkpoint={} ", newest["number"])],
    )?;
    finish(&world, phos, &spec)
}

/// The files of the packs here.
fn packs_here(world: &World) -> Result<Vec<(PathBuf, Vec<u8>)>> {
    let files = files_below(&world.path("state/local"))?.into_iter();
    Ok(files
        .filter(|(path, _)| path.to_string_lossy().contains("/packs/"))
        .collect())
}

#[test]
fn a_copy_that_meets_damage_sends_the_next_checkpoint_to_the_store() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    // None but those asked for: a later one would be copied in place of the damaged one.
    let spec = JobSpec {
        interval: "never".into(),
        ..fast().with_env("AWS_ENDPOINT_URL", &cable.url())
    };
    let phos = world.start(&spec)?;
    let first = checkpoint(&world, &phos)?;
    wait_stored(&world, &phos, first)?;
    cable.cut(true);
    let asked = checkpoint(&world, &phos)?;
    // What is no longer needed is being deleted.
    let packs = wait_for("files that stay", LIMIT, || packs_here(&world).ok())?;
    for (path, mut bytes) in packs {
        bytes.iter_mut().step_by(1000).for_each(|byte| *byte ^= 1);
        // In place: who looks there meanwhile finds none that is too short.
        let file = fs::File::options().write(true).open(path)?;
        file.write_all_at(&bytes, 0)?;
    }
    let sent = |world: &World| {
        let rows = listed(world).ok()?;
        let newest = rows.iter().find(|(id, _)| !id.starts_with('L'))?;
        newest.0.parse::<u64>().ok()
    };
    let before = sent(&world).context("none in the store")?;
    cable.cut(false);
    wait_said(&phos, &["could not be copied to the store", "is damaged"])?;
    checkpoint(&world, &phos)?;
    wait_every(COSTLY, "a checkpoint that goes to the store", LIMIT, || {
        (sent(&world)? > before).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    let status = world.json(&["status"])?;
    ensure!(
        status["remote"]["local"].as_u64() != Some(asked),
        "the damaged checkpoint was sent: {status}"
    );
    finish(&world, phos, &spec)
}

#[test]
fn when_the_disk_here_loses_everything_checkpoints_go_to_the_store() -> Result<()> {
    let (world, spec, phos) = under_way()?;
    let stored = listed(&world)?
        .iter()
        .filter(|(id, _)| !id.starts_with('L'))
        .count();
    // Who writes there may make a file while it goes.
    let local = world.path("state/local");
    wait_for("all of it to be deleted", LIMIT, || {
        fs::remove_dir_all(&local).ok()
    })?;
    wait_said(
        &phos,
        &["were deleted or replaced by others: from now on each goes to the store"],
    )?;
    wait_for("a checkpoint that went to the store", LIMIT, || {
        let rows = listed(&world).ok()?;
        let now = rows.iter().filter(|(id, _)| !id.starts_with('L')).count();
        (now > stored).then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    kill_job_and_wait(&world, &phos)?;
    finish(&world, phos, &spec)
}

/// At the end of the job, which is told instead.
#[test]
fn what_is_gone_here_is_not_waited_for() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
    .with_phos(&["--remote-interval", "1h", "--max-restarts", "0"])
    .with_env("AWS_ENDPOINT_URL", &cable.url());
    let mut phos = world.start(&spec)?;
    let asked = checkpoint(&world, &phos)?;
    wait_stored(&world, &phos, asked)?;
    cable.cut(true);
    checkpoint(&world, &phos)?;
    fs::remove_dir_all(world.path("state/local"))?;
    cable.cut(false);
    kill_all(&world.tree().job);
    let status = phos.wait(LIMIT)?;
    ensure!(!status.success(), "{status}");
    let said = phos.said();
    // A collection may have found out before, and then nothing more is said of it.
    let is_told = said.contains("was on this machine only, and is gone")
        || said.contains("the collection of old checkpoints ended early");
    ensure!(
        said.contains("the job crashed too often")
            && said.contains("were deleted or replaced by others")
            && is_told,
        "{}",
        phos.tail()
    );
    ensure!(!said.contains("it is sent when"), "{}", phos.tail());
    Ok(())
}

#[test]
fn an_agent_that_comes_back_is_served_before_the_last_checkpoint_is_sent() -> Result<()> {
    let (world, endpoint) = with_s3()?;
    let cable = Cable::to(endpoint.trim_start_matches("http://"))?;
    let spec = fast().with_env("AWS_ENDPOINT_URL", &cable.url());
    let mut sidecar = world.spawn(world.phos_ft(&spec))?;
    let mut agent = world.spawn(world.agent(&spec))?;
    wait_for_both(&world, &sidecar)?;
    cable.cut(true);
    // As `docker restart` of the trainer does, while the store is away.
    let pid = Pid::from_raw(agent.child.id() as i32).context("no PID")?;
    kill_process(pid, Signal::TERM)?;
    agent.wait(LIMIT)?;
    wait_said(&sidecar, &["the job was ended; the next start resumes it"])?;
    let agent = world.spawn(world.agent(&spec))?;
    wait_said(
        &sidecar,
        &["the next agent is there: the last checkpoint is sent once the job runs again"],
    )?;
    ensure!(sidecar.wait(LIMIT)?.success(), "{}", sidecar.tail());
    ensure!(
        listed(&world)?.iter().any(|(_, place)| place == "local"),
        "it was sent although the store is away"
    );
    // Docker starts it again, too. Whose the job is, the store says.
    cable.cut(false);
    let mut sidecar = world.spawn(world.phos_ft(&spec))?;
    wait_said(&sidecar, &["resumed checkpoint=l"])?;
    finish(&world, agent, &spec)?;
    ensure!(sidecar.wait(LIMIT)?.success(), "{}", sidecar.tail());
    Ok(())
}
