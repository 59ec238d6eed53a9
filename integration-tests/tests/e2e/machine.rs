//! A machine that cannot take the image: refused before anything starts, with what is missing and what to do, and the
//! job goes on from its checkpoint on a machine that can.

use std::fs;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{checkpoint, files_below, finish, refused};
use phos_integration_tests::{JobSpec, SimGpu, World, rewrite_newest};

/// This machine cannot take the image (`phos-ft --help`).
const MACHINE: i32 = 78;
/// The store or the checkpoint cannot be used.
const DATA: i32 = 65;

fn spec() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..JobSpec::default()
    }
}

/// A world whose job ran until a checkpoint and died with its machine.
fn after_a_checkpoint(devices: u32, spec: &JobSpec) -> Result<World> {
    let world = World::simulated(devices, 256)?;
    let phos = world.start(spec)?;
    checkpoint(&world, &phos)?;
    world.kill_everything()?;
    Ok(world)
}

/// [`refused`], and the store holds the very same objects as before: not even the history changed hands.
fn refused_untouched(world: &World, spec: &JobSpec, code: i32, words: &[&str]) -> Result<()> {
    let before = files_below(&world.path("store"))?;
    refused(world, spec, code, words)?;
    ensure!(
        files_below(&world.path("store"))? == before,
        "the store was changed"
    );
    Ok(())
}

/// [`refused`], and every checkpoint is there as before; the history may have changed hands.
fn refused_nothing_lost(world: &World, spec: &JobSpec, code: i32, words: &[&str]) -> Result<()> {
    let images = || -> Result<_> {
        let mut files = files_below(&world.path("store"))?;
        // Who has the job may change, and that it is alive.
        let of_the_holder = ["head", "lease"];
        files.retain(|path, _| {
            !(path.iter()).any(|part| of_the_holder.iter().any(|of| part == *of))
        });
        Ok(files)
    };
    let numbers =
        || -> Result<Vec<u64>> { Ok(world.checkpoints()?.iter().map(|c| c.number).collect()) };
    let before = (images()?, numbers()?);
    refused(world, spec, code, words)?;
    ensure!((images()?, numbers()?) == before, "the store was changed");
    Ok(())
}

fn goes_on(world: &World, spec: &JobSpec) -> Result<()> {
    let phos = world.start(spec)?;
    finish(world, phos, spec)
}

#[test]
fn another_gpu_an_older_driver_and_another_architecture_are_refused() -> Result<()> {
    let spec = spec();
    let world = after_a_checkpoint(1, &spec)?;
    refused_untouched(
        &world,
        &spec
            .with_env("PHOS_SIM_NAME", "simulated gpu b")
            .with_env("PHOS_SIM_UUID_SALT", "elsewhere"),
        MACHINE,
        &[
            "needs a gpu of model phos simulated gpu",
            "free here are: simulated gpu b",
            "restore on such a machine",
        ],
    )
    .context("another model")?;
    refused_untouched(
        &world,
        &spec.with_env("PHOS_SIM_DRIVER_VERSION", "12080"),
        MACHINE,
        &["cuda 13.0", "cuda 12.8", "update the nvidia driver"],
    )
    .context("an older driver")?;
    rewrite_newest(&world, |body| body.architecture = "sparc64".into())?;
    refused_untouched(
        &world,
        &spec,
        MACHINE,
        &["sparc64", std::env::consts::ARCH, "of that architecture"],
    )
    .context("another architecture")?;
    // As a phos-ft writes it that knows jobs of several machines.
    rewrite_newest(&world, |body| {
        body.architecture = std::env::consts::ARCH.into();
        body.agent = body.agent.replace(r#""member":[0,"#, r#""member":[1,"#);
    })?;
    refused_untouched(
        &world,
        &spec,
        MACHINE,
        &["ran on another machine of the job", "update phos-ft"],
    )
    .context("a job of several machines")?;
    rewrite_newest(&world, |body| {
        body.agent = body.agent.replace(r#""member":[1,"#, r#""member":[0,"#);
    })?;
    goes_on(&world, &spec)
}

/// Libraries ask the CPU at the start and keep to it: resumed without, the job would die of SIGILL.
#[test]
fn a_cpu_without_what_the_job_found_is_refused() -> Result<()> {
    let machines = tempfile::tempdir()?;
    let machine = |name: &str, flags: &str| -> Result<String> {
        let path = machines.path().join(name);
        fs::write(&path, format!("processor\t: 0\nflags\t\t: fpu {flags}\n"))?;
        Ok(path.display().to_string())
    };
    let large = machine("large", "vmx sse4_2 avx2 avx512f amx_tile")?;
    let small = machine("small", "sse4_2 avx2 md_clear")?;
    let world = after_a_checkpoint(1, &spec().with_env("PHOS_CPUINFO", &large))?;
    let spec = spec().with_env("PHOS_CPUINFO", &small);
    refused_untouched(
        &world,
        &spec,
        MACHINE,
        &[
            "a cpu with amx_tile, avx512f",
            "restore the job on a machine with that",
            "glibc_tunables",
        ],
    )?;
    // It is not begun afresh, however often it is started.
    refused_untouched(&world, &spec, MACHINE, &["amx_tile"])?;
    // Who knows that it does not use them says so.
    let spec = spec.with_phos(&["--without-cpu-features", "avx512f,amx_tile"]);
    goes_on(&world, &spec)
}

#[test]
fn a_newer_driver_is_fine() -> Result<()> {
    let spec = spec();
    let world = after_a_checkpoint(1, &spec)?;
    goes_on(&world, &spec.with_env("PHOS_SIM_DRIVER_VERSION", "13010"))
}

#[test]
fn fewer_gpus_are_refused() -> Result<()> {
    let spec = spec().with_trainer(&["--devices", "2"]);
    let world = after_a_checkpoint(2, &spec)?;
    let small = SimGpu::new(&world.path("another-machine"), 1, 256)?;
    let dir = small.dir().display().to_string();
    refused_untouched(
        &world,
        &spec.with_env("PHOS_SIM_DIR", &dir),
        MACHINE,
        &[
            "needs 2 gpu(s)",
            "1 are visible here",
            "cuda_visible_devices",
        ],
    )?;
    goes_on(&world, &spec)
}

#[test]
fn too_little_device_memory_is_refused() -> Result<()> {
    let spec = spec().with_trainer(&["--ballast-mib", "64"]);
    let world = after_a_checkpoint(1, &spec)?;
    // A machine whose GPU is too small, whatever else runs there.
    let small = SimGpu::new(&world.path("another-machine"), 1, 48)?;
    let dir = small.dir().display().to_string();
    refused_untouched(
        &world,
        &spec.with_env("PHOS_SIM_DIR", &dir),
        MACHINE,
        &["has 48.0 mib", "of allocations", "restore on a larger gpu"],
    )
    .context("a small GPU")?;
    // One that is large enough and used by somebody else.
    let hog = world.sim()?.dir().join("dev0/somebody-else");
    let file = fs::File::create(&hog)?;
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, 200 << 20)?;
    refused_nothing_lost(
        &world,
        &spec,
        MACHINE,
        &["free", "nvidia-smi", "restore elsewhere"],
    )
    .context("a GPU in use")?;
    drop(file);
    fs::remove_file(&hog)?;
    goes_on(&world, &spec)
}

#[test]
fn too_little_host_memory_is_refused() -> Result<()> {
    let spec = spec();
    let world = after_a_checkpoint(1, &spec)?;
    refused_nothing_lost(
        &world,
        &spec.with_phos(&["--image-limit", "1MiB"]),
        MACHINE,
        &["the cpu image needs", "1.0 mib", "--image-limit"],
    )?;
    goes_on(&world, &spec)
}

#[test]
fn a_store_of_a_newer_format_is_refused() -> Result<()> {
    let spec = spec();
    let world = after_a_checkpoint(1, &spec)?;
    let marker = world.path("store/phos-format");
    let ours = fs::read(&marker)?;
    // docs/format.md: the version is the two bytes at 8.
    let mut newer = ours.clone();
    newer[8..10].copy_from_slice(&9_u16.to_le_bytes());
    fs::write(&marker, &newer)?;
    let known = format!("knows up to {}", phos_storage::STORE_FORMAT);
    let words = ["format 9", known.as_str(), "use the newer phos-ft"];
    refused_untouched(&world, &spec, DATA, &words)?;
    for command in [&["list"][..], &["show", "2"], &["restore"]] {
        let output = world.run(command)?;
        let said = String::from_utf8_lossy(&output.stderr).to_lowercase();
        ensure!(
            output.status.code() == Some(DATA) && words.iter().all(|w| said.contains(w)),
            "{command:?} ended with {} and said {said}",
            output.status
        );
    }
    fs::write(&marker, &ours)?;
    goes_on(&world, &spec)
}

/// Nothing changes hands for a command that cannot be started.
#[test]
fn a_command_that_is_not_there_is_refused() -> Result<()> {
    let spec = spec();
    let world = after_a_checkpoint(1, &spec)?;
    let before = files_below(&world.path("store"))?;
    for (program, code) in [("/nowhere/train", 127), ("/etc/passwd", 126)] {
        let output = world.phos_ft(&spec).args(["--", program]).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.code() == Some(code) && said.contains(program),
            "{program} ended with {} and said {said}",
            output.status
        );
    }
    ensure!(
        files_below(&world.path("store"))? == before,
        "the store was changed"
    );
    goes_on(&world, &spec)
}
