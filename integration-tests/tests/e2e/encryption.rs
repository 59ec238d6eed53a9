//! A job whose checkpoints are encrypted: it is resumed bit for bit, its store tells nothing of it, and without its key
//! nothing is started or written.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, files_below, finish, kill_job_and_wait, refused, wait_said,
};
use phos_integration_tests::{JobSpec, World};
use phos_storage::Digest;

const CHUNK: usize = 1 << 20;
/// Bytes that are looked for: as many as never come by chance.
const NEEDLE: usize = 16;
/// A user that is not root.
const NOBODY: u32 = 65534;
const VARIABLE: &str = "PHOS_ENCRYPTION_KEY_FILE";

fn spec() -> JobSpec {
    JobSpec {
        interval: "700ms".into(),
        ..JobSpec::default()
    }
    // Memory that neither shrinks nor repeats: it stands in packs as it is. Some is there at any moment, some comes and
    // goes with each step.
    .with_trainer(&["--ballast-mib", "4", "--churn-mib", "3"])
}

fn text(path: &Path) -> Result<String> {
    Ok(path.to_str().context("no text")?.to_owned())
}

/// Runs a command that must end with `code`; what it said on both.
fn ends(world: &World, args: &[&str], code: i32) -> Result<String> {
    let output = world.run(args)?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    ensure!(
        output.status.code() == Some(code),
        "{args:?} ended with {}, not {code}: {said}",
        output.status
    );
    Ok(said)
}

/// Makes a key file and gives it to all that is started in this world from here on.
fn with_key(world: &mut World, name: &str) -> Result<PathBuf> {
    let file = world.path(name);
    ends(world, &["keygen", &text(&file)?], 0)?;
    give_key(world, &file)?;
    Ok(file)
}

fn give_key(world: &mut World, file: &Path) -> Result<()> {
    take_key(world);
    world.env.push((VARIABLE.into(), text(file)?));
    Ok(())
}

fn take_key(world: &mut World) {
    world.env.retain(|(name, _)| name != VARIABLE);
}

/// What a known checkpoint would show: pieces of its memory, and the plain names of the chunks there.
#[derive(Default)]
struct Needles {
    contents: HashSet<[u8; NEEDLE]>,
    names: HashSet<[u8; NEEDLE]>,
}

impl Needles {
    /// Of an exported checkpoint.
    fn of(export: &Path) -> Result<Needles> {
        let mut needles = Needles::default();
        for bytes in files_below(&export.join("gpu"))?.values() {
            for chunk in bytes.chunks(CHUNK) {
                let name = Digest::of(chunk);
                needles.names.extend(name.as_bytes().first_chunk());
                let piece = chunk.get(chunk.len() / 2..).unwrap_or_default();
                let piece = piece.first_chunk::<NEEDLE>();
                // What is mostly zeros stands in headers as well.
                let telling =
                    |p: &&[u8; NEEDLE]| p.iter().filter(|b| **b != 0).count() > NEEDLE / 2;
                needles.contents.extend(piece.filter(telling));
            }
        }
        ensure!(
            needles.contents.len() >= 3 && needles.names.len() > 3,
            "too little to look for"
        );
        Ok(needles)
    }

    /// How many pieces and names stand anywhere below a directory.
    fn found(&self, store: &Path) -> Result<(usize, usize)> {
        // Most places are passed over by their first two bytes.
        let mut first = vec![false; 1 << 16];
        for needle in self.contents.iter().chain(&self.names) {
            first[usize::from(u16::from_le_bytes([needle[0], needle[1]]))] = true;
        }
        let mut contents: HashSet<[u8; NEEDLE]> = HashSet::new();
        let mut names: HashSet<[u8; NEEDLE]> = HashSet::new();
        for bytes in files_below(store)?.values() {
            for window in bytes.windows(NEEDLE) {
                if !first[usize::from(u16::from_le_bytes([window[0], window[1]]))] {
                    continue;
                }
                contents.extend(self.contents.get(window));
                names.extend(self.names.get(window));
            }
        }
        Ok((contents.len(), names.len()))
    }
}

/// Runs a job to a checkpoint and looks for what is in it in everything that is stored.
fn shown(world: &World) -> Result<(usize, usize)> {
    let spec = JobSpec {
        interval: "never".into(),
        ..spec()
    };
    let phos = world.start(&spec)?;
    let id = checkpoint(world, &phos)?.to_string();
    world.kill_everything()?;
    let export = world.path("export");
    ends(world, &["export", &id, &text(&export)?], 0)?;
    Needles::of(&export)?.found(&world.path("store"))
}

#[test]
fn an_encrypted_store_shows_neither_content_nor_names_of_chunks() -> Result<()> {
    // Where nothing is encrypted, the same search finds both.
    let mut world = World::simulated(1, 256)?;
    let (contents, names) = shown(&world)?;
    ensure!(
        contents >= 3 && names > 3,
        "{contents} pieces, {names} names"
    );
    drop(world);
    world = World::simulated(1, 256)?;
    with_key(&mut world, "key")?;
    let found = shown(&world)?;
    ensure!(found == (0, 0), "{found:?}");
    // Nor anything else that is known to be there, in any object or its name.
    for (path, bytes) in files_below(&world.path("store"))? {
        let path = path.display().to_string();
        for word in ["phos-trainer", "taken-over", "loss.log", "churn"] {
            let shows = bytes.windows(word.len()).any(|w| w == word.as_bytes());
            ensure!(!shows, "{word:?} stands in {path}");
        }
    }
    Ok(())
}

#[test]
fn an_encrypted_job_is_resumed_bit_for_bit_and_not_without_its_key() -> Result<()> {
    let mut world = World::simulated(1, 256)?;
    let key = with_key(&mut world, "key")?;
    ensure!(fs::metadata(&key)?.permissions().mode() & 0o7777 == 0o600);
    let kept = fs::read(&key)?;
    ends(&world, &["keygen", &text(&key)?], 73)?;
    ensure!(fs::read(&key)? == kept, "a key was overwritten");
    let spec = spec();
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 1, LIMIT)?;
    // Memory that is still held is compared by its keyed names, and used again.
    kill_job_and_wait(&world, &phos)?;
    world.wait_checkpoints(&mut phos, 2, LIMIT)?;
    world.lose_node()?;
    ensure!(!world.log().exists());

    // Without the key, with another one, and with one that others may read: said, and nothing done.
    let before = files_below(&world.path("store"))?;
    take_key(&mut world);
    for args in [
        &["list"][..],
        &["show", "2"],
        &["diff", "2", "3"],
        &["export", "2", "/nonexistent/export"],
        &["verify"],
        &["prune", "--keep-last", "1"],
        &["restore"],
    ] {
        let said = ends(&world, args, 67)?;
        ensure!(said.contains("--encryption-key-file"), "{args:?}: {said}");
    }
    refused(
        &world,
        &spec,
        67,
        &["--encryption-key-file", "is encrypted with key"],
    )?;
    with_key(&mut world, "other")?;
    let said = ends(&world, &["list"], 67)?;
    ensure!(said.contains("the file given is key"), "{said}");
    refused(&world, &spec, 67, &["the file given is key"])?;
    fs::set_permissions(&key, PermissionsExt::from_mode(0o644))?;
    give_key(&mut world, &key)?;
    refused(&world, &spec, 67, &["chmod 600"])?;
    fs::set_permissions(&key, PermissionsExt::from_mode(0o600))?;
    ensure!(
        files_below(&world.path("store"))? == before,
        "the store was changed"
    );

    // With nothing but the store and the key.
    let phos = world.start(&spec)?;
    finish(&world, phos, &spec)?;
    ends(&world, &["verify", "--deep"], 0)?;
    ends(&world, &["prune", "--keep-last", "1"], 0)?;
    let said = ends(&world, &["doctor"], 0).or_else(|_| ends(&world, &["doctor"], 1))?;
    ensure!(said.contains("checkpoints are encrypted"), "{said}");
    Ok(())
}

#[test]
fn a_job_that_was_begun_without_encryption_takes_no_key() -> Result<()> {
    let mut world = World::simulated(1, 256)?;
    let spec = spec();
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let before = files_below(&world.path("store"))?;
    with_key(&mut world, "key")?;
    let said = ends(&world, &["list"], 67)?;
    ensure!(said.contains("take another --job"), "{said}");
    fs::remove_file(world.log())?;
    refused(&world, &spec, 67, &["take another --job"])?;
    ensure!(
        files_below(&world.path("store"))? == before,
        "the store was changed"
    );
    Ok(())
}

#[test]
fn who_requires_encryption_opens_no_store_without_a_key() -> Result<()> {
    let mut world = World::simulated(1, 256)?;
    let spec = spec().with_phos(&["--require-encryption"]);
    refused(&world, &spec, 67, &["phos-ft keygen"])?;
    ensure!(!world.path("store").exists(), "a store was made");
    let said = ends(&world, &["list", "--require-encryption"], 67)?;
    ensure!(said.contains("--encryption-key-file"), "{said}");
    with_key(&mut world, "key")?;
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    ends(&world, &["list", "--require-encryption"], 0)?;
    finish(&world, phos, &spec)
}

/// As another process of the same user, that is not root, sees it: what it says on standard error, and whether it could read.
fn looked_at(path: &str) -> Result<(bool, String)> {
    let output = std::process::Command::new("cat")
        .arg(path)
        .uid(NOBODY)
        .gid(NOBODY)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ok((output.status.success(), said))
}

#[test]
fn nobody_looks_into_a_process_that_has_a_key() -> Result<()> {
    let mut world = World::simulated(1, 256)?;
    for dir in ["", "work"] {
        fs::set_permissions(world.path(dir), fs::Permissions::from_mode(0o777))?;
    }
    // Without a key the same look sees everything.
    for has_key in [false, true] {
        if has_key {
            let file = with_key(&mut world, "key")?;
            std::os::unix::fs::chown(file, Some(NOBODY), Some(NOBODY))?;
        }
        world.store = text(&world.path(&format!("store-{has_key}")))?;
        // A sidecar of its own, which waits for an agent.
        let mut phos = world.spawn_as(NOBODY, world.phos_ft(&spec()))?;
        wait_said(&phos, &["waiting: "])?;
        let process = format!("/proc/{}", phos.child.id());
        let (read, said) = looked_at(&format!("{process}/environ"))?;
        ensure!(read != has_key, "environ, key {has_key}: {said}");
        if has_key {
            let (_, said) = looked_at(&format!("{process}/mem"))?;
            ensure!(said.contains("Permission denied"), "mem: {said}");
        }
        let status = fs::read_to_string(format!("{process}/status"))?;
        let locked = status.lines().find_map(|line| line.strip_prefix("VmLck:"));
        let locked: u64 = (locked.and_then(|line| line.split_whitespace().next()))
            .context("no VmLck")?
            .parse()?;
        // The file's and the job's, a page each.
        ensure!(locked >= if has_key { 8 } else { 0 }, "{locked} KiB");
        ensure!(has_key || locked == 0, "{locked} KiB without a key");
        phos.child.kill()?;
        phos.child.wait()?;
    }
    Ok(())
}
