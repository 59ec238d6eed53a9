//! `phos-ft doctor`: is this machine fit? Every check is one line: ok, note (it could not be looked at), warn or fail, with
//! the remedy.
//!
//! Changes nothing but what it removes again: a probe object in the store, a file in the run directory. With `--fix` it also does what is said
//! to be done where that is its own affair ([`Repair`]), says so, and looks again.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use phos_agent::namespace;
use phos_gpu as gpu;
use phos_s3_admin::{Administration, BucketError, Look, Versioning};
use phos_shared::host_memory;
use phos_storage::Key;
use phos_storage::s3::{S3Options, StorageClass};
use rustix::fs::{Mode, OFlags};
use serde::Serialize;

use super::args::{Common, Output};
use super::{exit, runtime};
use crate::engine;
use crate::size::human;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Note,
    Warn,
    Fail,
}

/// One check of the machine, as a line of the output.
#[derive(Debug, Clone, Serialize)]
struct Line {
    verdict: Verdict,
    check: &'static str,
    found: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    remedy: String,
}

/// What `--fix` can do.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Repair {
    /// Takes these rights to a directory from all but its owner, who is root or phos-ft's user.
    Close { directory: PathBuf, rights: u32 },
    /// Loads a module of the kernel.
    Load(&'static str),
}

impl Repair {
    fn make(&self) -> std::io::Result<()> {
        match self {
            Self::Close { directory, rights } => {
                // Not one that somebody has put in its place.
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let opened = rustix::fs::open(directory, flags, Mode::empty())?;
                let meta = std::fs::File::from(opened.try_clone()?).metadata()?;
                if !is_own(&meta) {
                    return Err(std::io::Error::other("it has another owner now"));
                }
                let closed = Mode::from_raw_mode(meta.mode() & !rights & 0o7777);
                Ok(rustix::fs::fchmod(&opened, closed)?)
            }
            Self::Load(module) => {
                let made = std::process::Command::new("modprobe")
                    .arg(module)
                    .output()?;
                if made.status.success() {
                    return Ok(());
                }
                let said = String::from_utf8_lossy(&made.stderr).trim().to_owned();
                Err(std::io::Error::other(said))
            }
        }
    }
}

impl std::fmt::Display for Repair {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Close { directory, rights } => {
                write!(
                    f,
                    "chmod {}: rights {rights:03o} taken away",
                    directory.display()
                )
            }
            Self::Load(module) => write!(f, "modprobe {module}"),
        }
    }
}

/// Whether what can be mended is mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repairs {
    Leave,
    Make,
}

#[derive(Default)]
struct Lines(Vec<Line>, Vec<Repair>);

impl Lines {
    fn add(
        &mut self,
        verdict: Verdict,
        check: &'static str,
        found: impl Into<String>,
        remedy: &str,
    ) {
        let remedy = if verdict == Verdict::Ok { "" } else { remedy };
        self.0.push(Line {
            verdict,
            check,
            found: found.into(),
            remedy: remedy.into(),
        });
    }

    /// A directory is to be closed, which can be done if nobody else owns it and nobody else has anything in it.
    fn close(&mut self, directory: &Path, meta: &std::fs::Metadata, rights: u32) {
        let rights = rights << 3 | rights;
        if is_own(meta) && meta.mode() & rights != 0 && has_only_ours(directory) {
            let directory = directory.to_owned();
            self.1.push(Repair::Close { directory, rights });
        }
    }
}

/// What phos-ft makes in a directory of states and in one of a store.
const OURS: [&str; 6] = [
    "phos-format",
    "jobs",
    "store",
    "local",
    "cache",
    "histories",
];

fn has_only_ours(directory: &Path) -> bool {
    let is_ours = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| OURS.iter().any(|name| entry.file_name() == *name))
    };
    std::fs::read_dir(directory).is_ok_and(|mut entries| entries.all(is_ours))
}

/// Whether it belongs to root or to phos-ft's user.
fn is_own(meta: &std::fs::Metadata) -> bool {
    [0, rustix::process::geteuid().as_raw()].contains(&meta.uid())
}

fn examine(common: &Common, criu: Option<&Path>) -> Lines {
    let mut lines = Lines::default();
    privileges(&mut lines);
    kernel(&mut lines);
    check_criu(&mut lines, criu);
    driver(&mut lines);
    memory(&mut lines);
    directories(&mut lines, common);
    store(&mut lines, common);
    lines
}

/// Does what can be done; what was, and what could not.
fn mend(repairs: &[Repair]) -> Vec<Line> {
    let line = |repair: &Repair| match repair.make() {
        Ok(()) => Line {
            verdict: Verdict::Ok,
            check: "fixed",
            found: repair.to_string(),
            remedy: String::new(),
        },
        Err(e) => Line {
            verdict: Verdict::Warn,
            check: "not fixed",
            found: format!("{repair}: {e}"),
            remedy: "see below".into(),
        },
    };
    repairs.iter().map(line).collect()
}

pub(super) fn run(common: &Common, criu: Option<PathBuf>, repairs: Repairs, output: Output) -> u8 {
    let Lines(mut lines, found) = examine(common, criu.as_deref());
    if repairs == Repairs::Make && !found.is_empty() {
        let mended = mend(&found);
        let Lines(now, _) = examine(common, criu.as_deref());
        lines = mended.into_iter().chain(now).collect();
    }
    match output {
        Output::Json => match serde_json::to_string_pretty(&lines) {
            Ok(text) => println!("{text}"),
            Err(e) => eprintln!("phos-ft: {e}"),
        },
        Output::Text => {
            for line in &lines {
                let verdict = match line.verdict {
                    Verdict::Ok => "ok  ",
                    Verdict::Note => "note",
                    Verdict::Warn => "warn",
                    Verdict::Fail => "fail",
                };
                println!("{verdict}  {:22} {}", line.check, line.found);
                if !line.remedy.is_empty() {
                    println!("      {:22} → {}", "", line.remedy);
                }
            }
        }
    }
    if lines.iter().any(|l| l.verdict == Verdict::Fail) {
        exit::FAILED
    } else {
        exit::OK
    }
}

fn privileges(lines: &mut Lines) {
    let uid = rustix::process::geteuid();
    let (verdict, found) = match uid.is_root() {
        true => (Verdict::Ok, "root".to_owned()),
        false => (Verdict::Fail, format!("uid {}", uid.as_raw())),
    };
    lines.add(
        verdict,
        "user",
        found,
        "run phos-ft as root (sudo, or user: root in the container)",
    );
    let effective = namespace::own_status("CapEff")
        .and_then(|hex| u64::from_str_radix(&hex, 16).ok())
        .unwrap_or(0);
    let needed = [
        ("SYS_PTRACE", 19),
        ("SYS_ADMIN", 21),
        ("NET_ADMIN", 12),
        ("SYS_TIME", 25),
    ];
    let missing: Vec<&str> = needed
        .iter()
        .filter(|(_, bit)| effective & (1 << bit) == 0)
        .map(|(name, _)| *name)
        .collect();
    let (verdict, found) = match missing.is_empty() {
        true => (Verdict::Ok, "all there".to_owned()),
        false => (Verdict::Fail, format!("missing: {}", missing.join(", "))),
    };
    lines.add(
        verdict,
        "capabilities",
        found,
        "start the container with --cap-add SYS_PTRACE,SYS_ADMIN,NET_ADMIN,SYS_TIME",
    );
    let library = phos_agent::criu::preload_library();
    let way = library.map(|path| path.display().to_string());
    let (verdict, found) = match &way {
        Some(way) => (Verdict::Ok, format!("by {way}")),
        None => (Verdict::Warn, "are not begun (--user)".to_owned()),
    };
    lines.add(
        verdict,
        "jobs not of root",
        found,
        "install libphos_criu_preload.so beside phos-ft or in ../lib",
    );
    let filtered = namespace::is_filtered();
    let (verdict, found) = match (filtered, way) {
        (false, _) => (Verdict::Ok, "unconfined".to_owned()),
        (true, Some(way)) => {
            let found = format!("a filter is in force; CRIU works under it by {way}");
            (Verdict::Ok, found)
        }
        (true, None) => (Verdict::Warn, "a filter is in force".to_owned()),
    };
    lines.add(
        verdict,
        "seccomp",
        found,
        "install libphos_criu_preload.so beside phos-ft or in ../lib, or start the container with --security-opt seccomp=unconfined",
    );
    let apparmor = std::fs::read_to_string("/proc/self/attr/current").unwrap_or_default();
    let apparmor = apparmor.trim_matches(['\0', '\n', ' ']);
    let free = apparmor.is_empty() || apparmor.starts_with("unconfined") || apparmor == "kernel";
    let (verdict, found) = match free {
        true => (Verdict::Ok, "unconfined"),
        false => (Verdict::Warn, apparmor),
    };
    lines.add(
        verdict,
        "apparmor",
        found,
        "start the container with --security-opt apparmor=unconfined",
    );
}

fn kernel(lines: &mut Lines) {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|p| p.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let verdict = match version >= (5, 9) {
        true => Verdict::Ok,
        false => Verdict::Fail,
    };
    lines.add(
        verdict,
        "kernel",
        release,
        "CRIU and time namespaces need Linux 5.9 or newer",
    );
    let features = [
        (
            "pid namespaces",
            "/proc/self/ns/pid",
            "use a kernel with CONFIG_PID_NS",
        ),
        (
            "checkpoint/restore",
            "/proc/sys/kernel/ns_last_pid",
            "use a kernel with CONFIG_CHECKPOINT_RESTORE",
        ),
    ];
    for (check, file, remedy) in features {
        let (verdict, found) = match Path::new(file).exists() {
            true => (Verdict::Ok, "there"),
            false => (Verdict::Fail, "missing"),
        };
        lines.add(verdict, check, found, remedy);
    }
}

/// What CRIU misses in containers, and phos-ft does not need: processes get their numbers by clone3, not through `/proc/sys`, which is closed
/// there; and no job has a tunnel.
const NOT_NEEDED: [&str; 2] = ["ns_last_pid", "(criu/tun.c"];

fn check_criu(lines: &mut Lines, explicit: Option<&Path>) {
    match phos_agent::criu::locate(explicit) {
        Ok(criu) => {
            lines.add(
                Verdict::Ok,
                "criu",
                format!("{} at {}", criu.version, criu.program.display()),
                "",
            );
            match phos_agent::criu::self_check(&criu.program).output() {
                Ok(output) if output.status.success() => {
                    lines.add(Verdict::Ok, "criu check", "looks good", "")
                }
                Ok(output) => {
                    let text = String::from_utf8_lossy(&output.stderr).into_owned();
                    let errors: Vec<_> = text.lines().filter(|l| l.contains("Error")).collect();
                    let matters = |line: &&str| !NOT_NEEDED.iter().any(|what| line.contains(what));
                    match errors.iter().copied().rfind(matters) {
                        None if !errors.is_empty() => {
                            let found =
                                "looks good; what is missing in this container is not needed";
                            lines.add(Verdict::Ok, "criu check", found, "");
                        }
                        last => {
                            let found = last.unwrap_or("failed").trim();
                            if found.contains("nft") {
                                lines.1.push(Repair::Load("nf_tables"));
                            }
                            let remedy =
                                "see `criu check -v4`; most often privileges are missing (above)";
                            lines.add(Verdict::Fail, "criu check", found, remedy);
                        }
                    }
                }
                Err(e) => lines.add(
                    Verdict::Fail,
                    "criu check",
                    e.to_string(),
                    "reinstall CRIU: make setup",
                ),
            }
        }
        Err(e) => lines.add(
            Verdict::Fail,
            "criu",
            e.to_string(),
            "`make setup` installs it; or name one (4.1 or newer) with --criu",
        ),
    }
}

fn driver(lines: &mut Lines) {
    let remedy = "install driver 570 or newer; in a container: --gpus all";
    let driver = match gpu::discover() {
        Ok(driver) => driver,
        Err(e) => return lines.add(Verdict::Fail, "driver", e.to_string(), remedy),
    };
    match driver.version() {
        Ok(v) => lines.add(
            Verdict::Ok,
            "driver",
            format!("CUDA {}.{}", v / 1000, v % 1000 / 10),
            "",
        ),
        Err(e) => lines.add(Verdict::Fail, "driver", e.to_string(), remedy),
    }
    match gpu::control() {
        Ok(_) => lines.add(Verdict::Ok, "checkpoint calls", "there", ""),
        Err(e) => lines.add(Verdict::Fail, "checkpoint calls", e.to_string(), remedy),
    }
    match driver.gpus() {
        Ok(gpus) if gpus.is_empty() => {
            lines.add(
                Verdict::Fail,
                "gpus",
                "none",
                "check nvidia-smi and CUDA_VISIBLE_DEVICES",
            );
        }
        Ok(gpus) => {
            for g in gpus {
                lines.add(
                    Verdict::Ok,
                    "gpu",
                    format!("{} {}, {}", g.uuid, g.name, human(g.total_bytes)),
                    "",
                );
            }
        }
        Err(e) => lines.add(Verdict::Fail, "gpus", e.to_string(), remedy),
    }
}

fn memory(lines: &mut Lines) {
    let available = host_memory::available().unwrap_or(0);
    let verdict = match available >= 8 << 30 {
        true => Verdict::Ok,
        false => Verdict::Warn,
    };
    lines.add(
        verdict,
        "host memory",
        format!("{} available", human(available)),
        "a CPU image is held in memory (about the job's RSS), beside --host-buffer: lower --host-buffer or add memory",
    );
    let tmpfs = std::fs::read_to_string("/proc/filesystems").is_ok_and(|t| t.contains("\ttmpfs"));
    let (verdict, found) = match tmpfs {
        true => (Verdict::Ok, "there"),
        false => (Verdict::Fail, "missing"),
    };
    lines.add(verdict, "tmpfs", found, "use a kernel with CONFIG_TMPFS");
}

fn directories(lines: &mut Lines, common: &Common) {
    let job_dir = common.run_dir.join(common.job.as_str());
    // What is made to try it goes again, innermost first. What is not empty by then stays.
    let to_remove: Vec<_> = job_dir.ancestors().take_while(|d| !d.exists()).collect();
    let made = engine::make_run_dir(&common.run_dir, &common.job);
    let tried = made.map_err(|e| e.to_string()).and_then(|dir| {
        let file = dir.join(format!("doctor.{}", std::process::id()));
        std::fs::write(&file, b"x")
            .and_then(|()| std::fs::remove_file(&file))
            .map(|()| dir.display().to_string())
            .map_err(|e| format!("{}: {e}", dir.display()))
    });
    for directory in to_remove {
        let _ = std::fs::remove_dir(directory);
    }
    match tried {
        Ok(found) => lines.add(Verdict::Ok, "run directory", found, ""),
        Err(found) => lines.add(
            Verdict::Fail,
            "run directory",
            found,
            "choose one that is writable with --run-dir (agent and sidecar must share it)",
        ),
    }
    who_writes_in(lines, &common.state_dir);
}

fn store(lines: &mut Lines, common: &Common) {
    let address = common.store();
    let Ok(runtime) = runtime() else { return };
    runtime.block_on(async {
        let key = match common
            .encryption_key_file
            .as_deref()
            .map(Key::read)
            .transpose()
        {
            Ok(key) => key,
            Err(e) => {
                lines.add(
                    Verdict::Fail,
                    "encryption key",
                    e.to_string(),
                    "see above: no checkpoint can be read or written without it",
                );
                return;
            }
        };
        let options = common.store_options(key.clone());
        let bucket = Administration::connect(&address, &options.retry, &options.s3).await;
        // What is wrong with the address is told by opening it.
        let bucket = bucket.ok().flatten();
        if let Some(bucket) = &bucket {
            s3_access(lines, bucket).await;
        }
        let opened = phos_storage::Store::open(&address, options).await;
        let store = match opened {
            Ok(store) => store,
            Err(e) => {
                // S3 itself says better where the bucket is.
                let found = match &bucket {
                    Some(bucket) => match bucket.look().await {
                        Err(elsewhere @ BucketError::Elsewhere { .. }) => elsewhere.to_string(),
                        _ => e.to_string(),
                    },
                    None => e.to_string(),
                };
                let remedy = "give a reachable one with --store";
                return lines.add(Verdict::Fail, "store", found, remedy);
            }
        };
        match store.probe().await {
            Ok(()) => {
                let found =
                    format!("{address}: writes, reads, lists; conditional writes are honest");
                lines.add(Verdict::Ok, "store", found, "");
                if bucket.is_some() {
                    lines.add(Verdict::Ok, "s3 objects", taken(&common.s3.options()), "");
                }
            }
            Err(e) => {
                let remedy = "see above, or use another --store";
                lines.add(Verdict::Fail, "store", e.to_string(), remedy);
            }
        }
        if let Some(directory) = store.directory() {
            who_looks_in(lines, directory, key.as_ref());
        }
        if address.starts_with("gs://") {
            lines.add(
                Verdict::Note,
                "incomplete uploads",
                "phos-ft cannot end those that a killed sidecar leaves in Google Cloud Storage",
                "give the bucket the lifecycle rule AbortIncompleteMultipartUpload, age 1 (docs/deploy.md)",
            );
        }
        let fits = store.job(common.job.clone()).check_key().await;
        encryption(lines, fits.err(), key.as_ref());
        if let Some(bucket) = &bucket {
            s3_bucket(lines, &address, bucket).await;
        }
        if store.is_discarding() {
            lines.add(
                Verdict::Warn,
                "store keeps data",
                "no: it drops its packs",
                "use another store for anything but measuring",
            );
        }
    });
}

/// Whether the checkpoints of the job can be read and written with the key. `error`: what looking at them said.
fn encryption(lines: &mut Lines, error: Option<phos_storage::JobError>, key: Option<&Key>) {
    let name = "encryption key";
    match (error, key) {
        (Some(e), _) if exit::job(&e) == exit::KEY => {
            let remedy = "see above: no checkpoint of this job can be read or written so";
            lines.add(Verdict::Fail, name, e.to_string(), remedy);
        }
        (_, Some(key)) => {
            let found = format!("key {}: checkpoints are encrypted", key.id());
            lines.add(Verdict::Ok, name, found, "");
        }
        (_, None) => {}
    }
}

/// Checks which other users may look into a directory of checkpoints. A user that may write there is as good as root on the
/// machine that resumes from it, where the checkpoints are not encrypted.
fn who_looks_in(lines: &mut Lines, directory: &Path, key: Option<&Key>) {
    // What cannot be looked at failed before.
    let Ok(meta) = std::fs::metadata(directory) else {
        return;
    };
    let others = others(&meta, READ | WRITE | PASS);
    let (verdict, found) = match (&*others, key) {
        ("", _) => (Verdict::Ok, "closed to other users".to_owned()),
        (_, Some(_)) => {
            let found = format!("open to {others}; this job's checkpoints are encrypted");
            (Verdict::Ok, found)
        }
        (_, None) => {
            lines.close(directory, &meta, READ | WRITE | PASS);
            let found = format!("open to {others}; images hold what the job has in memory");
            (Verdict::Warn, found)
        }
    };
    lines.add(
        verdict,
        "store directory",
        format!("{}: {found}", directory.display()),
        "chown it to the user of phos-ft and chmod 700 it, or encrypt the job's checkpoints (--encryption-key-file)",
    );
}

/// Checks which other users may write where checkpoints, caches of packs and notes of this machine are kept, which root believes.
fn who_writes_in(lines: &mut Lines, directory: &Path) {
    // It is made at the first start.
    let Ok(meta) = std::fs::metadata(directory) else {
        return;
    };
    let others = others(&meta, WRITE);
    let (verdict, found) = match others.is_empty() {
        true => (Verdict::Ok, "only its owner writes there".to_owned()),
        false => {
            lines.close(directory, &meta, WRITE);
            (Verdict::Warn, format!("{others} may write there"))
        }
    };
    lines.add(
        verdict,
        "state directory",
        format!("{}: {found}", directory.display()),
        "chown it to the user of phos-ft and chmod 700 it: what lies there is believed by root",
    );
}

const READ: u32 = 0o4;
const WRITE: u32 = 0o2;
const PASS: u32 = 0o1;

/// Which users but root and phos-ft's have one of these rights to a directory, in words; none: empty. Its owner has them all, since he
/// may give them to himself.
fn others(meta: &std::fs::Metadata, rights: u32) -> String {
    let own = rustix::process::geteuid().as_raw();
    let mut found = Vec::new();
    if ![0, own].contains(&meta.uid()) {
        found.push(format!("user {}, its owner", meta.uid()));
    }
    if meta.mode() & (rights << 3) != 0 {
        found.push(format!("group {}", meta.gid()));
    }
    if meta.mode() & rights != 0 {
        found.push("all users".to_owned());
    }
    found.join(", ")
}

/// How objects are written, once the bucket took such ones.
fn taken(s3: &S3Options) -> String {
    let class = s3.storage_class.as_ref();
    let class = class.map_or("the bucket's", StorageClass::as_str);
    let key = s3.sse_kms_key.as_deref();
    let key = key.unwrap_or("the bucket's");
    let checksum = s3.checksum;
    format!("accepted: storage class {class}, checksum {checksum}, encryption key {key}")
}

/// Checks with which credentials the bucket is reached, and where it is.
async fn s3_access(lines: &mut Lines, bucket: &Administration) {
    match bucket.credentials().await {
        Ok(None) => lines.add(
            Verdict::Ok,
            "s3 credentials",
            "none: AWS_SKIP_SIGNATURE is set",
            "",
        ),
        Ok(Some(found)) => {
            let end = found.expires.map_or_else(
                || "do not end".to_owned(),
                |end| {
                    format!(
                        "end {}, renewed before",
                        humantime::format_rfc3339_seconds(end)
                    )
                },
            );
            let said = format!("from {}; they {end}", found.source);
            lines.add(Verdict::Ok, "s3 credentials", said, "");
        }
        Err(e) => lines.add(
            Verdict::Fail,
            "s3 credentials",
            e.to_string(),
            "give phos-ft credentials in any of the ways of the AWS tools (docs/deploy.md)",
        ),
    }
    let place = match bucket.endpoint() {
        Some(endpoint) => format!("{endpoint}, signed for {}", bucket.region()),
        None => format!("AWS, {}", bucket.region()),
    };
    lines.add(Verdict::Ok, "s3 endpoint", place, "");
}

/// Checks the settings of the bucket that the store is in.
async fn s3_bucket(lines: &mut Lines, address: &str, bucket: &Administration) {
    let state = match bucket.look().await {
        Ok(state) => state,
        Err(e) => {
            let remedy = "its settings could not be looked at; correct what is said";
            return lines.add(Verdict::Note, "bucket settings", e.to_string(), remedy);
        }
    };
    let init = |flags: &str| format!("`phos-ft init {address}{flags}` sets it");
    let versions_stay = matches!(state.old_versions_go, Look::Known(None));
    settled(
        lines,
        "incomplete uploads",
        &state.uploads_end,
        |days| match days {
            Some(days) => {
                let days = format!("{days} day{}", if *days == 1 { "" } else { "s" });
                (Verdict::Ok, format!("end after {days}"), String::new())
            }
            None => (
                Verdict::Warn,
                "stay, and are paid for, when a sidecar dies while it uploads".into(),
                init(""),
            ),
        },
    );
    settled(
        lines,
        "versioning",
        &state.versioning,
        |versioning| match versioning {
            Versioning::Off => (Verdict::Ok, "off".into(), String::new()),
            is if versions_stay => (
                Verdict::Warn,
                format!("{is}: what phos-ft deletes stays as old versions, and is paid for"),
                init(" --expire-versions-after DAYS"),
            ),
            is => (Verdict::Ok, format!("{is}, old versions go"), String::new()),
        },
    );
    settled(lines, "object lock", &state.object_lock, |lock| {
        let found = match lock {
            None => "off".into(),
            Some(None) => "on, no default retention".into(),
            Some(Some(kept)) => format!(
                "{}, {} days: deleted packs stay so long",
                kept.mode, kept.days
            ),
        };
        (Verdict::Ok, found, String::new())
    });
    settled(
        lines,
        "default encryption",
        &state.encryption,
        |encryption| {
            let found = encryption
                .as_ref()
                .map_or("none".into(), ToString::to_string);
            let verdict = if encryption.is_some() {
                Verdict::Ok
            } else {
                Verdict::Note
            };
            (verdict, found, init(" --sse-kms KEY"))
        },
    );
}

/// The line of a setting: what could not be looked at is no failure.
fn settled<T>(
    lines: &mut Lines,
    check: &'static str,
    look: &Look<T>,
    judge: impl FnOnce(&T) -> (Verdict, String, String),
) {
    let (verdict, found, remedy) = match look {
        Look::Known(is) => judge(is),
        Look::Unsupported => (
            Verdict::Note,
            "this server does not have it".into(),
            "nothing to do, unless it is wanted: then use another store".into(),
        ),
        Look::Denied(permission) => (
            Verdict::Note,
            "these credentials may not ask".into(),
            format!("to have it checked, allow {permission}"),
        ),
        Look::Failed(detail) => (
            Verdict::Note,
            format!("could not be asked: {detail}"),
            "run doctor again".into(),
        ),
    };
    lines.add(verdict, check, found, &remedy);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, chown};

    use super::*;

    fn look(owner: Option<u32>, mode: u32, look: impl Fn(&mut Lines, &Path)) -> (Verdict, String) {
        let place = tempfile::tempdir().unwrap();
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(place.path(), permissions).unwrap();
        chown(place.path(), owner, Some(77)).unwrap();
        let mut lines = Lines::default();
        look(&mut lines, place.path());
        let line = lines.0.pop().unwrap();
        let path = place.path().display().to_string();
        (line.verdict, line.found.replace(&path, "it"))
    }

    #[test]
    fn a_directory_is_closed_only_to_whom_owner_and_group_keep_out() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let key = Key::random(|| 7);
        for (owner, mode, others) in [
            (None, 0o700, ""),
            (Some(99), 0o700, "user 99, its owner"),
            (None, 0o750, "group 77"),
            (None, 0o701, "all users"),
            (Some(99), 0o777, "user 99, its owner, group 77, all users"),
        ] {
            let (verdict, found) = look(owner, mode, |lines, path| who_looks_in(lines, path, None));
            let expected = match others {
                "" => (Verdict::Ok, "it: closed to other users".to_owned()),
                _ => (
                    Verdict::Warn,
                    format!("it: open to {others}; images hold what the job has in memory"),
                ),
            };
            assert_eq!((verdict, found), expected, "{mode:o}");
            let encrypted = |lines: &mut Lines, path: &Path| who_looks_in(lines, path, Some(&key));
            assert_eq!(look(owner, mode, encrypted).0, Verdict::Ok);
        }
        for (owner, mode, others) in [
            (None, 0o755, ""),
            (Some(99), 0o700, "user 99, its owner"),
            (None, 0o775, "group 77"),
            (None, 0o1777, "group 77, all users"),
        ] {
            let (verdict, found) = look(owner, mode, who_writes_in);
            let expected = match others {
                "" => (Verdict::Ok, "it: only its owner writes there".to_owned()),
                _ => (Verdict::Warn, format!("it: {others} may write there")),
            };
            assert_eq!((verdict, found), expected, "{mode:o}");
        }
    }
}
