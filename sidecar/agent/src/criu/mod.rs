//! CRIU: finding it, checking it, dump and restore.
//!
//! | option | why |
//! |---|---|
//! | `leave_running` | a checkpoint is not a stop |
//! | `tcp_close`, or `tcp_established` with nftables | see [`Tcp`](crate::config::Tcp) |
//! | `ext_unix_sk`, `file_locks`, `link_remap` | log daemons; locks; files by names that were removed |
//! | `config_file` | the limit of deleted files: `ghost_limit` itself is of 32 bits here |
//! | `manage_cgroups` ignore | the agent's cgroup is the job's |
//! | `shell_job` off | the job has a session of its own and no terminal |
//! | `rst_sibling` | the restored main process is the agent's child, as it was |
//! | `notify_scripts` | at `pre-dump`, before anything is frozen, it is made to wait for the control state; files are copied at `post-dump`, while the tree is still frozen; at `pre-resume` a job of another user is looked at before it runs |

mod errors;
pub mod ghosts;
pub mod images;
pub mod memory;
mod rpc;
pub mod sizes;
mod wire;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub use errors::CriuError;
pub use rpc::Inherited;
use rpc::{Worker, proto};

use crate::config::AgentConfig;
use crate::image::{CRIU_DIR, Connections, ImageDirectory};
use crate::job::namespace;
use crate::job::spawn;
use crate::network::netlock::Locks;
use crate::user::JobUser;

/// The oldest version that works on the kernels we support.
const NEEDED: (i32, i32) = (4, 1);

/// How long its set-up may take, before it looks at the tree: 0.1 s is usual.
const SET_UP: Duration = Duration::from_secs(60);

/// How long it may take to say its version: the agent does nothing else meanwhile. 0.01 s is usual.
const ANSWER: Duration = Duration::from_secs(10);

/// A dump or a restore may take a second longer for each so many bytes of the image. Measured: 2.0 s and 1.3 s for 3.7 GB.
/// CRIU itself waits for ever for a process that is killed while it brings it back.
const BYTES_PER_SECOND: u64 = 50_000_000;

/// The loader of a bundle (scripts/criu-bundle.sh).
const LOADER: &str = "lib/ld-linux-x86-64.so.2";

/// What lets it dump processes of other users where this one has no CAP_SYS_RESOURCE, work under a seccomp filter, leave the
/// content of memory to the agent, and go along a job's paths as the job's user: `shim/criu-preload`.
const PRELOAD_FILE: &str = "libphos_criu_preload.so";

/// Name of the socket in `criu/` by which CRIU is told of mappings while it dumps.
pub const MAPPINGS_SOCKET: &str = "mappings";
/// Name of the log of a dump in `criu/`.
pub const DUMP_LOG: &str = "dump.log";
/// Name of the log of a restore in `criu/`.
pub const RESTORE_LOG: &str = "restore.log";

/// How long CRIU may take for so many bytes, if it may take `least` for none.
pub fn patience(least: Duration, bytes: u64) -> Duration {
    least + Duration::from_secs(bytes / BYTES_PER_SECOND)
}

/// A CRIU program that can be used, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criu {
    /// The path of the program.
    pub program: PathBuf,
    /// The version, as in `4.2.1`.
    pub version: String,
}

/// Finds CRIU: `explicit`, else `$PHOS_CRIU`, else beside the program (`criu`, `criu/criu`, `../criu/criu`,
/// `../../.build/criu/criu` in a source tree), `/opt/phos/criu/criu`, the `PATH`.
///
/// # Errors
/// [`CriuError::Missing`], [`CriuError::TooOld`], [`CriuError::Start`].
pub fn locate(explicit: Option<&Path>) -> Result<Criu, CriuError> {
    let named = explicit
        .map(Path::to_owned)
        .or_else(|| std::env::var_os("PHOS_CRIU").map(PathBuf::from));
    let places = match named {
        Some(path) => vec![path],
        None => usual_places(),
    };
    let Some(program) = places.iter().find(|p| p.is_file()) else {
        let looked: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
        return Err(CriuError::Missing(looked.join(", ")));
    };
    // CRIU is started in another directory than ours.
    check(&std::path::absolute(program).unwrap_or_else(|_| program.clone()))
}

/// [`locate`] with what the agent was told.
///
/// # Errors
/// As [`locate`].
pub fn for_config(config: &AgentConfig) -> Result<Criu, CriuError> {
    locate(config.criu.as_deref())
}

fn usual_places() -> Vec<PathBuf> {
    let mut places = Vec::new();
    if let Ok(program) = std::env::current_exe()
        && let Some(dir) = program.parent()
    {
        for relative in [
            "criu/criu",
            "../criu/criu",
            "../.build/criu/criu",
            "../../.build/criu/criu",
            "../../../.build/criu/criu",
        ] {
            places.push(dir.join(relative));
        }
        let beside = dir.join("criu");
        if beside.is_file() {
            places.push(beside);
        }
    }
    places.push(PathBuf::from("/opt/phos/criu/criu"));
    if let Some(path) = std::env::var_os("PATH") {
        places.extend(std::env::split_paths(&path).map(|d| d.join("criu")));
    }
    for dir in ["/usr/sbin", "/usr/local/sbin"] {
        places.push(Path::new(dir).join("criu"));
    }
    places
}

/// The command that runs CRIU. A bundled CRIU is run through its own loader, as its wrapper does it: an image need not have the
/// shell that the wrapper is written for.
pub fn command(program: &Path) -> Command {
    let bundle = program.parent().unwrap_or(Path::new("/"));
    let (loader, binary) = (bundle.join(LOADER), bundle.join("bin/criu"));
    let mut command = if loader.is_file() && binary.is_file() {
        let mut command = Command::new(loader);
        command
            .args(["--argv0", "criu", "--library-path"])
            .arg(bundle.join("lib"))
            .arg(binary);
        command
    } else {
        Command::new(program)
    };
    // Meant for the job.
    command
        .env_remove("LD_PRELOAD")
        .env_remove("LD_LIBRARY_PATH");
    command
}

/// The users that the processes of a tree belong to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Users {
    /// All processes are of this process's user.
    Own,
    /// Some of another user.
    Others,
}

/// Who copies the content of the tree's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// CRIU copies it.
    Copied,
    /// The agent copies it, while CRIU is at work and at the end; CRIU does where the library that tells it to leave the content is not installed.
    Left,
}

/// The library that is preloaded into a CRIU, and what it is to do there.
struct Preload<'a> {
    library: PathBuf,
    content: Content,
    user: Option<&'a JobUser>,
    locks: Option<Locks>,
    /// The path of [`MAPPINGS_SOCKET`] for other processes, if there is one.
    mappings: Option<String>,
}

/// What is preloaded into a CRIU that dumps processes of these users. None: nothing has to be, or it is not installed, and CRIU
/// fails and says so.
fn preload(users: Users, content: Content, locks: Option<Locks>) -> Option<Preload<'static>> {
    let asks_for_limits = users == Users::Others && !namespace::may_ask_for_limits();
    let is_needed =
        asks_for_limits || namespace::is_filtered() || content == Content::Left || locks.is_some();
    let library = is_needed.then(preload_library).flatten()?;
    Some(Preload {
        library,
        content,
        user: None,
        locks,
        mappings: None,
    })
}

/// The same for one that restores the processes of this user.
///
/// # Errors
/// [`CriuError::Library`]: without it, CRIU would go along the job's paths as root.
fn preload_for(user: &JobUser) -> Result<Preload<'_>, CriuError> {
    Ok(Preload {
        library: preload_library().ok_or(CriuError::Library)?,
        content: Content::Copied,
        user: Some(user),
        locks: None,
        mappings: None,
    })
}

impl Preload<'_> {
    /// Has a CRIU load the library, and tells it by which program it knows the job's filter, and whose rights it has.
    fn load_into(&self, command: &mut Command) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("PHOS_JOB_FILTER", spawn::job_filter_in_words());
        if self.content == Content::Left {
            command.env("PHOS_PAGES", "left");
        }
        if let Some(path) = &self.mappings {
            let named = format!("{}:{path}", std::process::id());
            command.env("PHOS_MAPPINGS", named);
        }
        if let Some(locks) = self.locks {
            command.env("PHOS_CRIU_RUN", locks.in_digits());
        }
        if let Some(user) = self.user {
            command.env("PHOS_JOB_USER", user.in_numbers());
        }
    }
}

/// The command `criu check`, to be run by the caller.
pub fn self_check(program: &Path) -> Command {
    let mut command = command(program);
    command.arg("check");
    if let Some(preload) = preload(Users::Own, Content::Copied, None) {
        preload.load_into(&mut command);
    }
    command
}

/// The library that is preloaded into CRIU, where it is installed: without it no job of another user begins, and CRIU does not work
/// under a seccomp filter.
pub fn preload_library() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    let dir = program.parent()?;
    // As with the shim: beside the program in a build, in `lib` where it is installed.
    [
        dir.join(PRELOAD_FILE),
        dir.join("../lib").join(PRELOAD_FILE),
    ]
    .into_iter()
    .find(|path| path.is_file())
}

/// Asks a program for its version.
///
/// # Errors
/// [`CriuError::TooOld`], [`CriuError::Start`], [`CriuError::Silent`].
pub fn check(program: &Path) -> Result<Criu, CriuError> {
    let system = |cause: io::Error| CriuError::System {
        what: "read what CRIU says",
        cause,
    };
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut words =
        File::from(rustix::fs::memfd_create("criu-words", flags).map_err(|e| system(e.into()))?);
    let to = words.try_clone().map_err(system)?;
    let worker = Worker::start(program, &[], None, Some(to))?;
    worker.set_patience(Some(ANSWER))?;
    let request = proto::Request {
        r#type: proto::RequestType::Version.into(),
        ..Default::default()
    };
    let answer = worker.call(&request, |_| true).map_err(|e| match e {
        CriuError::Died => CriuError::Silent {
            program: program.to_owned(),
            words: first_line(&mut words),
        },
        e => e,
    })?;
    let Some(version) = answer.version else {
        return Err(CriuError::Garbled("no version in its answer".into()));
    };
    let (major, minor) = (version.major_number, version.minor_number);
    let mut text = format!("{major}.{minor}");
    if let Some(sub) = version.sublevel.filter(|&s| s != 0) {
        text.push_str(&format!(".{sub}"));
    }
    if (major, minor) < NEEDED {
        return Err(CriuError::TooOld {
            program: program.to_owned(),
            found: text,
        });
    }
    Ok(Criu {
        program: program.to_owned(),
        version: text,
    })
}

/// What a program said first, in few words: that of the loader names the library which is missing.
fn first_line(words: &mut File) -> String {
    /// The most bytes that are looked at.
    const MOST: u64 = 512;
    let mut bytes = Vec::new();
    let read = words
        .rewind()
        .and_then(|()| words.take(MOST).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    match (
        read,
        text.lines().map(str::trim).find(|line| !line.is_empty()),
    ) {
        (Ok(_), Some(line)) => format!(": {line}"),
        _ => String::new(),
    }
}

fn base_options(images: &OwnedFd, connections: Connections, log: &str) -> proto::Options {
    let (keep, close, lock) = match connections {
        Connections::Kept => (Some(true), None, proto::NetworkLock::Nftables),
        Connections::Closed => (None, Some(true), proto::NetworkLock::Skip),
    };
    proto::Options {
        images_dir_fd: images.as_raw_fd(),
        log_level: Some(3),
        log_file: Some(log.to_owned()),
        ext_unix_sk: Some(true),
        tcp_established: keep,
        tcp_close: close,
        tcp_skip_in_flight: Some(true),
        network_lock: Some(lock.into()),
        shell_job: Some(false),
        file_locks: Some(true),
        link_remap: Some(true),
        manage_cgroups_mode: Some(proto::CgroupMode::Ignore.into()),
        orphan_pts_master: Some(true),
        notify_scripts: Some(true),
        ..Default::default()
    }
}

/// The options of a dump.
#[derive(Debug, Clone, Copy)]
pub struct DumpOptions {
    /// The PID of the tree's root.
    pub root: u32,
    /// Whether TCP connections go into the image.
    pub connections: Connections,
    /// CRIU's bound for freezing the tree, in seconds.
    pub freeze_seconds: u32,
    /// The bound for the work after that, see [`patience`].
    pub work: Duration,
    /// The users that the tree's processes belong to.
    pub users: Users,
    /// Who copies the content of the tree's memory.
    pub content: Content,
    /// What the table in the firewall is named by that holds connections back.
    pub locks: Locks,
}

impl Criu {
    /// Dumps the tree into `criu/` of the image and leaves it running. `ready` is called when CRIU has started and
    /// found out what the kernel can do (80 ms), and has not looked at the tree yet: it waits for the right moment.
    /// `frozen` is called when the image is complete and the tree still stands still. `false` from either makes the
    /// dump fail (the tree runs on).
    ///
    /// # Errors
    /// [`CriuError`]; the tree runs on.
    pub fn dump(
        &self,
        image: &ImageDirectory,
        options: DumpOptions,
        mut ready: impl FnMut() -> bool,
        mut frozen: impl FnMut() -> bool,
    ) -> Result<(), CriuError> {
        let images = open_criu_dir(image)?;
        let settings = settings().map_err(|cause| CriuError::System {
            what: "write CRIU's settings",
            cause,
        })?;
        let locks = (options.connections == Connections::Kept).then_some(options.locks);
        let mut preload = preload(options.users, options.content, locks);
        if let Some(preload) = &mut preload
            && image.path_of(CRIU_DIR).join(MAPPINGS_SOCKET).exists()
        {
            let images = path_for_others(&images);
            preload.mappings = Some(format!("{images}/{MAPPINGS_SOCKET}"));
        }
        let worker = Worker::start(&self.program, &[], preload.as_ref(), None)?;
        let request = proto::Request {
            r#type: proto::RequestType::Dump.into(),
            opts: Some(proto::Options {
                pid: Some(options.root.cast_signed()),
                leave_running: Some(true),
                timeout: Some(options.freeze_seconds),
                config_file: Some(path_for_others(&settings)),
                ..base_options(&images, options.connections, DUMP_LOG)
            }),
            ..Default::default()
        };
        // Until then it has touched nothing: one that hangs in its set-up must not hold the job.
        worker.set_patience(Some(SET_UP))?;
        // One that hangs later is killed too: its code inside the processes then ends by itself, and they go on.
        let work = options.work + Duration::from_secs(options.freeze_seconds.into());
        let answer = worker.call(&request, |script| match script {
            "pre-dump" => worker.set_patience(Some(work)).is_ok() && ready(),
            "post-dump" => frozen(),
            _ => true,
        });
        let log = image.path_of(CRIU_DIR).join(DUMP_LOG);
        match answer {
            Ok(answer) if answer.success => Ok(()),
            Ok(answer) => Err(errors::from_log("dump", &log, answer.cr_errmsg.as_deref())),
            Err(CriuError::Died) => Err(errors::from_log(
                "dump",
                &log,
                Some("criu ended without an answer"),
            )),
            Err(e) => Err(e),
        }
    }

    /// Restores the tree of the image as a child of this process. `inherited` are the ends of the stdio pipes
    /// that the job gets; `work` is the bound, see [`patience`]; `user` is the job's, if it is another than this process's, and CRIU
    /// then goes along the job's paths with that user's rights. `whole` is called when the processes are what they were and
    /// stand still; it ends those that must not run, since CRIU does not go by what it says.
    ///
    /// # Errors
    /// [`CriuError`]; CRIU has ended what it had restored.
    pub fn restore(
        &self,
        image: &ImageDirectory,
        connections: Connections,
        work: Duration,
        inherited: Vec<Inherited>,
        user: Option<&JobUser>,
        mut whole: impl FnMut(),
    ) -> Result<u32, CriuError> {
        let images = open_criu_dir(image)?;
        let preload = match user {
            Some(user) => Some(preload_for(user)?),
            None => preload(Users::Own, Content::Copied, None),
        };
        let worker = Worker::start(&self.program, &inherited, preload.as_ref(), None)?;
        let request = proto::Request {
            r#type: proto::RequestType::Restore.into(),
            opts: Some(proto::Options {
                rst_sibling: Some(true),
                inherit_fd: rpc::inherit_options(&inherited),
                ..base_options(&images, connections, RESTORE_LOG)
            }),
            ..Default::default()
        };
        // One that is killed for it leaves half a tree, which whoever asked for the restore ends.
        worker.set_patience(Some(work))?;
        let answer = worker.call(&request, |script| {
            if script == "pre-resume" {
                whole();
            }
            true
        });
        drop(inherited);
        let log = image.path_of(CRIU_DIR).join(RESTORE_LOG);
        match answer {
            Ok(proto::Response {
                success: true,
                restore: Some(restored),
                ..
            }) => Ok(restored.pid.unsigned_abs()),
            Ok(answer) => Err(errors::from_log(
                "restore",
                &log,
                answer.cr_errmsg.as_deref(),
            )),
            Err(CriuError::Died) => Err(errors::from_log(
                "restore",
                &log,
                Some("criu ended without an answer"),
            )),
            Err(e) => Err(e),
        }
    }
}

/// What cannot be asked for by a request: that deleted files are dumped whatever their size. The room for the image bounds them.
fn settings() -> io::Result<File> {
    let flags = rustix::fs::MemfdFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::memfd_create("criu-settings", flags)?);
    file.write_all(b"ghost-limit 1048576G\n")?;
    Ok(file)
}

/// The path of an open file for other processes of this namespace.
fn path_for_others(file: &impl AsRawFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd())
}

fn open_criu_dir(image: &ImageDirectory) -> Result<OwnedFd, CriuError> {
    image.subdirectory(CRIU_DIR).map_err(|e| CriuError::System {
        what: "open criu/ in the image",
        cause: io::Error::other(e.to_string()),
    })
}
