//! What is done with what is stored: `diff`, `export`, `verify`, `prune`, and retention by the sidecar itself.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, files_below, finish, kill_job_and_wait, last_step, wait_step,
};
use phos_integration_tests::{COSTLY, JobSpec, World, wait_every};

const CHUNK: usize = 1 << 20;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a command that must end with `code`; what it said on both.
fn ends(world: &World, args: &[&str], code: i32) -> Result<String> {
    let output = world.run(args)?;
    let said = format!("{}{}", text(&output.stdout), text(&output.stderr));
    ensure!(
        output.status.code() == Some(code),
        "{args:?} ended with {}, not {code}: {said}",
        output.status
    );
    Ok(said)
}

#[test]
fn looking_at_a_store_that_is_not_there_makes_none() -> Result<()> {
    let world = World::simulated(1, 64)?;
    let export = world.path("export");
    let export = export.to_str().context("no text")?;
    let nothing = ends(&world, &["list"], 0)?;
    ensure!(nothing.contains("no such directory"), "{nothing}");
    ensure!(world.checkpoints()?.is_empty());
    for args in [
        &["show", "7"][..],
        &["diff", "7", "8"],
        &["export", "7", export],
        &["verify"],
        &["verify", "--deep", "--json"],
        &["prune", "--keep-last", "1"],
        &["prune", "--dry-run"],
        &["restore"],
    ] {
        let said = ends(&world, args, 66)?;
        ensure!(said.contains("no such directory"), "{args:?}: {said}");
    }
    ensure!(!world.path("store").exists(), "a directory was made");
    ensure!(!world.path("export").exists());
    // There, and empty.
    fs::create_dir(world.path("store"))?;
    ends(&world, &["prune", "--dry-run"], 66)?;
    ends(&world, &["show", "7"], 66)?;
    ends(&world, &["verify"], 0)?;
    ensure!(
        fs::read_dir(world.path("store"))?.next().is_none(),
        "something was written"
    );
    Ok(())
}

/// Bytes of chunks that differ between two exported files, as `diff` counts them.
fn differing(a: &Path, b: &Path) -> Result<u64> {
    let (a, b) = (fs::read(a)?, fs::read(b)?);
    ensure!(a.len() == b.len());
    let pairs = a.chunks(CHUNK).zip(b.chunks(CHUNK));
    Ok(pairs
        .filter(|(a, b)| a != b)
        .map(|(a, _)| a.len() as u64)
        .sum())
}

#[test]
fn diff_export_verify_and_prune() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    };
    let phos = world.start(&spec)?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(checkpoint(&world, &phos)?);
        wait_step(&world, &phos, last_step(&world).unwrap_or(0) + 10)?;
    }
    let name: Vec<String> = ids.iter().map(ToString::to_string).collect();
    let [a, b, c] = &name[..] else {
        anyhow::bail!("{name:?}")
    };

    // Exported memory differs by what `diff` says, allocation by allocation.
    let (first, second) = (world.path("a"), world.path("b"));
    for (id, to) in [(a, &first), (b, &second)] {
        let done = world.json(&["export", id, to.to_str().context("no text")?])?;
        let shown = world.json(&["show", id])?;
        ensure!(done["bytes"] == shown["image_bytes"], "{done} {shown}");
        let described: serde_json::Value =
            serde_json::from_slice(&fs::read(to.join("manifest.json"))?)?;
        ensure!(described["id"] == shown["id"] && described["memory"] == shown["memory"]);
        for file in described["cpu_image"].as_array().context("no files")? {
            let path = to
                .join("cpu")
                .join(file["path"].as_str().context("no path")?);
            ensure!(Some(fs::metadata(path)?.len()) == file["bytes"].as_u64());
        }
    }
    let diff = world.json(&["diff", a, b])?;
    let mut changed = 0;
    for allocation in diff["allocations"].as_array().context("no allocations")? {
        ensure!(allocation["change"] == "kept", "{allocation}");
        let file = format!("gpu/{}-{}", allocation["pid"], allocation["id"]);
        let found = differing(&first.join(&file), &second.join(&file))?;
        ensure!(
            allocation["changed_bytes"] == found,
            "{allocation}: {found}"
        );
        changed += found;
    }
    ensure!(changed > 0, "nothing changed in ten steps");
    let table = ends(&world, &["diff", a, b], 0)?;
    ensure!(table.contains("of device memory changed"), "{table}");
    let same = world.json(&["diff", a, a])?;
    ensure!(same["new_bytes"] == 0, "{same}");
    let again = first.to_str().context("no text")?;
    ends(&world, &["export", b, again], 73)?;
    ends(
        &world,
        &[
            "export",
            "999",
            world.path("c").to_str().context("no text")?,
        ],
        66,
    )?;
    ensure!(!world.path("c").exists());

    // All is whole, and stays so beside a job that runs.
    let verified = world.json(&["verify", "--deep"])?;
    ensure!(verified["whole"] == serde_json::json!(ids), "{verified}");
    ensure!(verified["chunks"].as_u64() > Some(0), "{verified}");

    // A dry run says what is done, and does nothing.
    let before = files_below(&world.path("store"))?;
    let would = world.json(&["prune", "--keep-last", "2", "--dry-run"])?;
    ensure!(files_below(&world.path("store"))? == before);
    let done = world.json(&["prune", "--keep-last", "2"])?;
    ensure!(
        would["removed"] == done["removed"] && done["removed"] == serde_json::json!([ids[0]]),
        "{would} {done}"
    );
    ensure!(world.checkpoints()?.len() == 2);
    let gone = ends(&world, &["show", a], 66)?;
    ensure!(gone.contains("removed by retention"), "{gone}");
    let kept = ends(&world, &["verify", "--deep"], 0)?;
    ensure!(kept.contains(&format!("whole        {b} {c}")), "{kept}");

    // The job comes back from what is left.
    kill_job_and_wait(&world, &phos)?;

    // One more. No other needs the packs that it brings: what `prune` repacked lies there already.
    let packs = world.path("store/jobs").join(&world.job).join("packs");
    let shared = files_below(&packs)?;
    let d = checkpoint(&world, &phos)?.to_string();
    let own = files_below(&packs)?;
    finish(&world, phos, &spec)?;

    // A flipped bit in a pack of the newest is found, named, and passed over.
    let mut newest = None;
    for pack in own.keys().filter(|pack| !shared.contains_key(*pack)) {
        let mut bytes = fs::read(pack)?;
        bytes[70] ^= 1;
        fs::write(pack, bytes)?;
        newest = Some(pack);
    }
    let newest = newest.context("no pack")?;
    let shallow = ends(&world, &["verify"], 0)?;
    ensure!(shallow.contains("--deep does"), "{shallow}");
    let only_said = ends(&world, &["verify", "--deep", "--no-quarantine"], 65)?;
    let pack = newest.file_name().context("no name")?.to_string_lossy();
    ensure!(
        only_said.contains(&*pack) && only_said.contains("quarantined  nothing"),
        "{only_said}"
    );
    let said = ends(&world, &["verify", "--deep"], 65)?;
    ensure!(
        said.contains("passes it over") || said.contains("pass it over"),
        "{said}"
    );
    let shown = ends(&world, &["show", &d], 65)?;
    ensure!(shown.contains("quarantined"), "{shown}");
    ends(&world, &["show", c], 0)?;
    Ok(())
}

#[test]
fn the_sidecar_removes_what_it_is_not_told_to_keep() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "400ms".into(),
        ..JobSpec::default()
    }
    .with_phos(&["--keep-last", "2"]);
    disturbed(&world, &spec, |world, phos| {
        let status = wait_every(COSTLY, "retention to remove checkpoints", LIMIT, || {
            let status = world.json(&["status"]).ok()?;
            (status["collected"]["removed"].as_u64()? >= 2
                && status["collected"]["packs"].as_u64()? >= 1)
                .then_some(status)
        })
        .map_err(|e| e.context(phos.tail()))?;
        ensure!(status["collected"]["failure"].is_null(), "{status}");
        // More may have been committed since the last collection and while that ran: not for long.
        wait_every(COSTLY, "at most four to be left", LIMIT, || {
            let left = world.checkpoints().ok()?.len();
            (1..=4).contains(&left).then_some(())
        })?;
        let verified = world.run(&["verify", "--deep"])?;
        ensure!(verified.status.success(), "{}", text(&verified.stdout));
        kill_job_and_wait(world, phos)
    })
}
