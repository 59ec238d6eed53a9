//! What a job that is not root can make of an agent that is: nothing.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, finish, kill_job_and_wait, refused, wait_said, wait_step,
};
use phos_integration_tests::{JobSpec, World, bin_dir, wait_for};

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
    finish(&world, phos, &spec)
}

/// What another process of the same user does between the look at an image's paths and CRIU's way along them: `directory` becomes a link
/// to one that looks the same to CRIU, where only root may go. The job does not run, and nothing was made or changed there, not for an
/// instant.
fn swapped_meanwhile(spec: &JobSpec, directory: fn(&World) -> Result<PathBuf>) -> Result<()> {
    let world = world()?.0;
    let phos = world.start(spec)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    let waits = world.path("waits");
    let failpoint = format!("agent:mid-restore=wait:{}", waits.display());
    let mut command = world.trainer(spec);
    command
        .env("PHOS_FAILPOINT", failpoint)
        .current_dir(world.path("tmp"));
    let phos = world.spawn(command)?;
    wait_for("the agent to wait", LIMIT, || waits.exists().then_some(()))?;
    let (directory, vault) = (directory(&world)?, world.path("vault"));
    let victim = vault.join("victim");
    fs::create_dir(&vault)?;
    fs::set_permissions(&vault, Permissions::from_mode(0o700))?;
    let copied = Command::new("cp")
        .arg("--archive")
        .args([&directory, &victim])
        .status()?;
    ensure!(copied.success(), "cp: {copied}");
    // What is made and removed again leaves its time in the directory.
    let state = || -> Result<_> {
        let mut files = Vec::new();
        for entry in fs::read_dir(&victim)? {
            let entry = entry?;
            let meta = entry.metadata()?;
            let content = meta.is_file().then(|| fs::read(entry.path())).transpose()?;
            files.push((entry.file_name(), meta.uid(), meta.mode(), content));
        }
        files.sort();
        let meta = fs::metadata(&victim)?;
        Ok((files, meta.mtime(), meta.mtime_nsec()))
    };
    let before = state()?;
    swap(&directory, &victim)?;
    fs::remove_file(&waits)?;
    wait_said(&phos, &[&format!("is a symbolic link of user {USER}")])?;
    ensure!(
        world.tree().job.is_empty() && state()? == before,
        "{}",
        phos.tail()
    );
    // Nothing is lost by that.
    world.kill_everything()?;
    swap_back(&directory)?;
    let phos = world.start(spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finish(&world, phos, spec)
}

#[test]
fn a_directory_swapped_while_the_job_comes_back_gives_it_nothing() -> Result<()> {
    swapped_meanwhile(&world()?.1, |world| Ok(world.path("work")))
}

/// Sockets, and files that have no name any more, which CRIU makes by the names they had.
#[test]
fn a_directory_swapped_while_the_job_comes_back_has_nothing_made_elsewhere() -> Result<()> {
    let spec = world()?.1.with_trainer(&["--scratch"]);
    swapped_meanwhile(&spec, |world| {
        let tmp = world.path("tmp");
        let found = fs::read_dir(tmp)?.next().context("no scratch directory")?;
        Ok(found?.path())
    })
}

/// One in a directory of the user's, and one where only root makes files: a library that was replaced while the job had it mapped.
#[test]
fn files_of_others_without_a_name_come_back() -> Result<()> {
    let (world, spec) = world()?;
    let library = world.path("library");
    fs::create_dir(&library)?;
    fs::set_permissions(&library, Permissions::from_mode(0o755))?;
    let file = library.join("numbers");
    let numbers: Vec<u8> = (0..100_000_u64).flat_map(u64::to_le_bytes).collect();
    fs::write(&file, &numbers)?;
    let spec = spec.with_trainer(&["--scratch", "--follow", &file.display().to_string()]);
    let phos = world.start(&spec)?;
    wait_step(&world, &phos, 1)?;
    fs::remove_file(&file)?;
    let main = *world.tree().job.first().context("no job")?;
    let removed = fs::read_dir(format!("/proc/{main}/fd"))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| {
            let link = fs::read_link(path).unwrap_or_default();
            link.to_string_lossy().ends_with("/removed (deleted)")
        });
    chown(removed.context("no removed file")?, Some(0), Some(0))?;
    checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    ensure!(fs::read_dir(&library)?.next().is_none(), "{}", phos.tail());
    // For the undisturbed run.
    fs::write(&file, &numbers)?;
    finish(&world, phos, &spec)
}

/// Without what gives CRIU the user's rights, a checkpoint could not be restored safely: that is said before anything begins.
#[test]
fn without_the_library_no_job_of_another_user_begins() -> Result<()> {
    let (world, spec) = world()?;
    let trainer = world.trainer(&spec);
    // Everything else that belongs beside it is named.
    let alone = world.path("alone");
    fs::create_dir(&alone)?;
    fs::copy(trainer.get_program(), alone.join("phos-ft"))?;
    let criu = bin_dir().join("../../.build/criu/criu");
    let mut command = Command::new(alone.join("phos-ft"));
    command.args(["--criu".as_ref(), criu.as_os_str()]);
    command.arg("--shim").arg(bin_dir().join("libphos_shim.so"));
    command.args(trainer.get_args());
    for (name, value) in trainer.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    let mut phos = world.spawn(command)?;
    wait_said(
        &phos,
        &["libphos_criu_preload.so is not installed", "--user"],
    )?;
    let status = phos.wait(LIMIT)?;
    ensure!(status.code() == Some(71), "{status}: {}", phos.tail());
    ensure!(!world.log().exists(), "the job began: {}", phos.tail());
    Ok(())
}

/// The sockets that root goes to are found by names, which nobody else may give to others.
#[test]
fn a_run_directory_that_the_user_may_change_is_refused() -> Result<()> {
    let (world, spec) = world()?;
    let run = world.path("run");
    let above = run.parent().context("no directory above")?;
    chown(above, Some(USER), None)?;
    let named = format!("user {USER}, whom --user names, may put something else");
    refused(&world, &spec, 73, &[&named, "--run-dir"])?;
    chown(above, Some(0), None)?;
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos).map(drop)
    })
}

#[test]
fn a_set_user_id_program_makes_nobody_root_unless_that_was_asked_for() -> Result<()> {
    let (world, spec) = world()?;
    let id = world.path("id");
    fs::copy("/usr/bin/id", &id)?;
    fs::set_permissions(&id, Permissions::from_mode(0o4755))?;
    let user = USER.to_string();
    for (flags, is) in [(&[][..], user.as_str()), (&["--allow-new-privileges"], "0")] {
        let mut command = world.phos_ft(&spec);
        command.args(flags).arg("--").arg(&id).arg("-u");
        let ran = command.output()?;
        let said = String::from_utf8_lossy(&ran.stdout);
        ensure!(ran.status.success() && said.trim() == is, "{ran:?}");
    }
    Ok(())
}

/// CRIU makes what an image says: who wrote it may have been root, or somebody who could write to the store.
#[test]
fn an_image_of_root_is_not_brought_back_for_a_user() -> Result<()> {
    let (world, spec) = world()?;
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
    finish(&world, phos, &spec)
}

/// The job sees neither how the store is reached nor where the key is, and so neither does who reads its image. It has what was asked for.
#[test]
fn the_job_does_not_have_the_secrets_of_the_sidecar() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec::default()
        .with_env("AWS_SECRET_ACCESS_KEY", "of-the-store")
        .with_env("AWS_PROFILE", "of-the-job")
        .with_env("AZURE_CLIENT_SECRET", "of-the-store")
        .with_env("PHOS_NODE_NAME", "of-the-sidecar")
        .with_env("OTHER", "of-the-job")
        .with_phos(&["--keep-env", "AWS_PROFILE", "--lean-context"]);
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
        let added = "CUDA_DEVICE_MAX_CONNECTIONS=1";
        ensure!(environment.split('\0').any(|v| v == added), "{names:?}");
        for kept in ["AWS_PROFILE", "OTHER", "LD_PRELOAD"] {
            ensure!(names.contains(&kept), "{kept} is not in {names:?}");
        }
        wait_said(
            phos,
            &["aws_secret_access_key", "azure_client_secret", "--keep-env"],
        )
    })
}
