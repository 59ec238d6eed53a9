//! CRIU dumps, kills and restores a process of the simulated driver in checkpointed state.
//!
//! Needs root and a CRIU: `PHOS_CRIU`, else the bundle in `.build/criu`. Without one the test says so and passes.

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "tests, which read from top to bottom"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod harness;

use harness::{Cuda, MIB, Process, heard, node, noise, tell, used};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[test]
fn scenario() {
    match std::env::var("PHOS_SIM_SCENARIO").as_deref() {
        Ok("job") => job(),
        Ok("control") => control(),
        _ => {}
    }
}

/// Talks through files: pipes to the parent would be outside of what CRIU dumps.
fn job() {
    let dir = PathBuf::from(std::env::var("PHOS_SIM_FILES").unwrap());
    let cuda = Cuda::ready();
    let mut native = 0;
    assert_eq!(cuda.cuMemAlloc_v2(&mut native, 6 * MIB), 0);
    cuda.upload(native, &noise(6 * MIB, 1));
    let (handle, at) = cuda.vmm(4 * MIB);
    cuda.upload(at, &noise(4 * MIB, 2));
    // A handle released while its mapping lives, and addresses without memory.
    assert_eq!(cuda.cuMemRelease(handle), 0);
    let mut spare = 0;
    assert_eq!(cuda.cuMemAddressReserve(&mut spare, 1 << 30, 0, 0, 0), 0);
    fs::write(dir.join("ready"), "").unwrap();
    while !dir.join("go").exists() {
        std::thread::sleep(Duration::from_millis(2));
    }
    let same = cuda.download(native, 6 * MIB) == noise(6 * MIB, 1)
        && cuda.download(at, 4 * MIB) == noise(4 * MIB, 2);
    let (mut late, mut handle) = (0, 0);
    let works = cuda.cuMemAlloc_v2(&mut late, 3 * MIB) == 0
        && cuda.cuMemsetD8_v2(late, 8, 3 * MIB) == 0
        && cuda.download(late, 4) == [8; 4]
        && cuda.cuMemCreate(&mut handle, 2 * MIB, &harness::properties(true), 0) == 0
        && cuda.cuMemMap(spare, 2 * MIB, 0, handle, 0) == 0;
    fs::write(dir.join("result.part"), format!("{same} {works}")).unwrap();
    fs::rename(dir.join("result.part"), dir.join("result")).unwrap();
    std::thread::sleep(Duration::from_secs(60));
}

fn control() {
    let cuda = Cuda::open();
    assert_eq!(cuda.cuInit(0), 0);
    tell("ready");
    while let Some(line) = heard() {
        let (pid, operation) = line.split_once(' ').unwrap();
        let pid = pid.parse().unwrap();
        let none = std::ptr::null();
        tell(match operation {
            "lock" => cuda.cuCheckpointProcessLock(pid, &[10_000, 0, 0, 0, 0, 0, 0, 0]),
            "checkpoint" => cuda.cuCheckpointProcessCheckpoint(pid, none),
            "restore" => cuda.cuCheckpointProcessRestore(pid, none),
            _ => cuda.cuCheckpointProcessUnlock(pid, none),
        });
    }
}

fn criu() -> Option<PathBuf> {
    let bundle = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.build/criu/criu");
    std::env::var_os("PHOS_CRIU")
        .map(PathBuf::from)
        .or(Some(bundle))
        .filter(|path| path.exists())
}

fn run_criu(criu: &Path, images: &Path, args: &[&str]) {
    let output = Command::new(criu)
        .args(args)
        .arg("-D")
        .arg(images)
        .args(["-v4", "-o", "log"])
        .output()
        .unwrap();
    if !output.status.success() {
        let log = fs::read_to_string(images.join("log")).unwrap_or_default();
        let end: Vec<_> = log.lines().rev().take(40).collect();
        panic!(
            "criu {args:?}: {}\n{}",
            output.status,
            end.into_iter().rev().collect::<Vec<_>>().join("\n")
        );
    }
}

fn appears(path: &Path) {
    let until = Instant::now() + Duration::from_secs(30);
    while !path.exists() {
        assert!(Instant::now() < until, "{} does not appear", path.display());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_checkpointed_process_survives_dump_kill_and_restore() {
    let Some(criu) = criu() else {
        eprintln!("no CRIU found: nothing was tested");
        return;
    };
    let node = node("criu", &[64 * MIB]);
    let files = node.dir().join("files");
    let images = node.dir().join("images");
    fs::create_dir_all(&files).unwrap();
    fs::create_dir_all(&images).unwrap();
    let mut command = Process::command(
        "job",
        node.dir(),
        &[("PHOS_SIM_FILES", files.to_str().unwrap())],
    );
    command
        .stdin(Stdio::null())
        .stdout(File::create(files.join("out")).unwrap());
    command.stderr(File::create(files.join("err")).unwrap());
    // SAFETY: setsid is safe between fork and exec.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 {
                Err(std::io::Error::last_os_error())
            } else {
                Ok(())
            }
        })
    };
    let mut job = command.spawn().unwrap();
    let pid = job.id() as i32;
    appears(&files.join("ready"));
    let mut control = Process::start("control", node.dir(), &[]);
    assert_eq!(control.hear(), "ready");
    let mut order = |operation: &str| control.ask(&format!("{pid} {operation}"));
    assert_eq!(
        (order("lock").as_str(), order("checkpoint").as_str()),
        ("0", "0")
    );
    assert_eq!(used(&node, 0), 0);
    run_criu(&criu, &images, &["dump", "--tree", &pid.to_string()]);
    let _ = job.wait();
    assert!(!Path::new(&format!("/proc/{pid}")).exists());
    run_criu(&criu, &images, &["restore", "--restore-detached"]);
    assert_eq!(order("restore"), "0");
    assert_eq!(used(&node, 0), (8 + 6 + 4) * MIB);
    assert_eq!(order("unlock"), "0");
    fs::write(files.join("go"), "").unwrap();
    appears(&files.join("result"));
    assert_eq!(
        fs::read_to_string(files.join("result")).unwrap(),
        "true true"
    );
    // SAFETY: the pid is the job's, restored above.
    unsafe { libc::kill(pid, libc::SIGKILL) };
    let size: u64 = fs::read_dir(&images)
        .unwrap()
        .flatten()
        .map(|file| file.metadata().unwrap().len())
        .sum();
    assert!(
        size < 40 << 20,
        "images of {size} bytes: reserved addresses must cost nothing"
    );
    let _ = fs::remove_dir_all(node.dir().join("images"));
}
