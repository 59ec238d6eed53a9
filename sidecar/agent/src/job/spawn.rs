//! Starts CMD.
//!
//! The job gets a session of its own, the shim preloaded, pipes as its standard streams, and a seccomp filter that answers
//! `ENOSYS` to io_uring: rings cannot be dumped, and programs that find none fall back. It answers the same to `clone3`, whose
//! flags no filter can see: CRIU needs the call, so a container's profile lets it through, and the job could make a user
//! namespace with it. The job inherits no other descriptors: what somebody else opened belongs to another mount namespace or
//! process and cannot be in an image. Nor does it get the capabilities that are there for the agent and CRIU.

use std::ffi::{OsStr, OsString};
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use phos_protocol::env;

use crate::config::AgentConfig;
use crate::job::environment;
use crate::job::signals;
use crate::job::stdio::JobEnds;
use crate::user::way::Entry;
use crate::user::{JobUser, Privileges, forgo_ours};

/// Why CMD could not be started.
#[derive(Debug, thiserror::Error)]
pub enum SpawnError {
    /// The program cannot be started.
    #[error("cannot start {}: {cause}{}", .program.display(), remedy(.cause))]
    Program {
        /// The first word of CMD.
        program: PathBuf,
        /// The error of looking for it or starting it.
        cause: io::Error,
    },
    /// The library could not be put where the job finds it.
    #[error("cannot copy the shim {} to {}: {cause}. The run directory must be writable", .from.display(), .to.display())]
    Shim {
        /// The path at which the library is installed.
        from: PathBuf,
        /// The path of the copy in the run directory.
        to: PathBuf,
        /// The error of the file system.
        cause: io::Error,
    },
}

impl SpawnError {
    /// The exit code a shell would give: 127 for a missing program, 126 for one that cannot be run.
    pub fn exit_code(&self) -> i32 {
        match self {
            Self::Program { cause, .. } if cause.kind() == io::ErrorKind::NotFound => 127,
            Self::Program { .. } => 126,
            Self::Shim { .. } => 1,
        }
    }
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::NotFound => ": check its name and the PATH",
        io::ErrorKind::PermissionDenied => ": make it executable",
        _ => "",
    }
}

/// The shim as the job has it: a copy under a name that depends on its content, so that a restore can put the
/// exact bytes back beside another version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledShim {
    /// The path of the copy.
    pub path: PathBuf,
    /// BLAKE3 of its bytes, in hex.
    pub blake3: String,
}

/// Copies the shim into the job's run directory.
///
/// # Errors
/// [`SpawnError::Shim`].
pub fn install_shim(from: &Path, job_dir: &Path) -> Result<InstalledShim, SpawnError> {
    let failed = |to: &Path, cause| SpawnError::Shim {
        from: from.to_owned(),
        to: to.to_owned(),
        cause,
    };
    let bytes = std::fs::read(from).map_err(|e| failed(job_dir, e))?;
    let hash = blake3::hash(&bytes).to_hex().to_string();
    let name = format!("{SHIM_NAME}{}.so", &hash[..16]);
    let path = job_dir.join(&name);
    // The run directory is where somebody said, by whatever links.
    std::fs::canonicalize(job_dir)
        .and_then(|real| write_library(&real.join(&name), &bytes))
        .map_err(|e| failed(&path, e))?;
    Ok(InstalledShim { path, blake3: hash })
}

/// The prefix of the names of such copies.
const SHIM_NAME: &str = "libphos_shim-";

/// Puts a copy back that an image has, where it was. Its directory must be there.
///
/// # Errors
/// The error of the file system; a link of another user on the way; the name of something else.
pub fn put_back_shim(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = path.file_name().and_then(OsStr::to_str);
    if !name.is_some_and(|name| name.starts_with(SHIM_NAME)) {
        return Err(io::Error::other(
            "that is no name of a shim; use the checkpoint before",
        ));
    }
    write_library(path, bytes)
}

/// Writes a library so that it is there whole or not at all, and never changes under a process that maps it.
fn write_library(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let entry = Entry::of(path)?;
    if let Some(found) = entry.find()?
        && found.length() == bytes.len() as u64
        && let Ok(mut file) = found.open(OpenOptions::new().read(true))
    {
        let mut there = Vec::with_capacity(bytes.len());
        file.read_to_end(&mut there)?;
        if there == bytes {
            return Ok(());
        }
    }
    let mut name = entry.name().to_owned();
    name.push(".new");
    let new = entry.beside(name)?;
    new.remove()?;
    let mut file = new.create()?;
    file.write_all(bytes)?;
    file.set_permissions(Permissions::from_mode(0o755))?;
    new.rename_over(&entry)
}

/// `LD_PRELOAD` of the job: the shim first, then what was there.
fn preload(shim: &Path, present: Option<OsString>) -> OsString {
    let mut value = shim.as_os_str().to_owned();
    if let Some(present) = present.filter(|p| !p.is_empty()) {
        value.push(OsStr::new(":"));
        value.push(present);
    }
    value
}

/// Looks for CMD's program the way `execvp` does, so that a wrong name is said before anything is changed.
///
/// # Errors
/// [`SpawnError::Program`].
pub fn check_program(command: &[OsString]) -> Result<(), SpawnError> {
    let Some(program) = command.first() else {
        return Ok(());
    };
    let executable = |path: &Path| match std::fs::metadata(path) {
        Ok(found) if !found.is_file() => Err(io::ErrorKind::PermissionDenied.into()),
        Ok(_) => rustix::fs::access(path, rustix::fs::Access::EXEC_OK).map_err(io::Error::from),
        Err(e) => Err(e),
    };
    let outcome = if program.as_encoded_bytes().contains(&b'/') {
        executable(Path::new(program))
    } else {
        let mut outcome = Err(io::ErrorKind::NotFound.into());
        for directory in std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()) {
            match executable(&directory.join(program)) {
                Ok(()) => return Ok(()),
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => outcome = Err(e),
                Err(_) => {}
            }
        }
        outcome
    };
    outcome.map_err(|cause| SpawnError::Program {
        program: PathBuf::from(program),
        cause,
    })
}

/// Starts CMD; returns its PID.
///
/// # Errors
/// [`SpawnError::Program`].
pub fn start(
    config: &AgentConfig,
    shim: Option<&InstalledShim>,
    user: Option<JobUser>,
    ends: JobEnds,
    limit: NofileLimit,
) -> Result<u32, SpawnError> {
    let Some((program, arguments)) = config.command.split_first() else {
        return Err(SpawnError::Program {
            program: PathBuf::new(),
            cause: io::ErrorKind::NotFound.into(),
        });
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::from(ends.stdin))
        .stdout(Stdio::from(ends.stdout))
        .stderr(Stdio::from(ends.stderr));
    hide_ours(&mut command, config);
    if let Some(devices) = &config.visible_devices {
        command.env("CUDA_VISIBLE_DEVICES", devices);
    }
    if let Some(shim) = shim {
        command
            .env(
                "LD_PRELOAD",
                preload(&shim.path, std::env::var_os("LD_PRELOAD")),
            )
            .env(env::SHIM_SOCKET, config.shim_socket());
        if config.nvls {
            command.env(env::SHIM_MULTICAST, "1");
        }
    }
    set_home(&mut command, user.as_ref());
    let home = command
        .get_envs()
        .find_map(|(name, value)| (name == "HOME").then(|| value.map(PathBuf::from))?)
        .or_else(|| std::env::var_os("HOME").map(PathBuf::from));
    let present =
        |name: &str| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
    let configured = environment::nccl_configured(home.as_deref());
    let chosen = environment::Chosen {
        nvls: config.nvls,
        lean: config.lean_context,
    };
    command.envs(environment::defaults(present, &configured, chosen));
    let privileges = config.privileges();
    let filter = job_filter();
    // SAFETY: between fork and exec only system calls are made, on data that was allocated before.
    unsafe {
        command.pre_exec(move || {
            if libc::setsid() < 0 {
                return Err(io::Error::last_os_error());
            }
            limit.set()?;
            close_the_rest()?;
            install_filter(&filter)?;
            signals::unblock_all()?;
            // Last: what stands above needs root.
            become_the_jobs(user.as_ref(), privileges)
        });
    }
    let spawned = {
        let _guard = signals::children();
        command.spawn()
    };
    match spawned {
        // Reaped by the main loop; dropping it neither waits nor kills.
        Ok(child) => Ok(child.id()),
        Err(cause) => Err(SpawnError::Program {
            program: PathBuf::from(program),
            cause,
        }),
    }
}

/// Makes the calling process who the job is. Between `fork` and `exec`: system calls only.
fn become_the_jobs(user: Option<&JobUser>, privileges: Privileges) -> io::Result<()> {
    if privileges == Privileges::Forgone {
        forgo_ours()?;
    }
    user.map_or(Ok(()), |user| user.become_it(privileges))
}

/// What is said to phos-ft alone is kept from the job.
fn hide_ours(command: &mut Command, config: &AgentConfig) {
    for (name, _) in std::env::vars_os() {
        if environment::is_of_the_agent(&name, &config.keep_env) {
            command.env_remove(name);
        }
    }
}

fn set_home(command: &mut Command, user: Option<&JobUser>) {
    let present = std::env::var_os("HOME").map(PathBuf::from);
    if let Some(home) = user.and_then(|user| user.home(present.as_deref())) {
        command.env("HOME", home);
    }
}

/// Every descriptor but the standard streams closes at `exec`.
fn close_the_rest() -> io::Result<()> {
    // SAFETY: three integers; descriptors stay open until exec.
    let result = unsafe {
        libc::syscall(
            libc::SYS_close_range,
            3_u32,
            u32::MAX,
            libc::CLOSE_RANGE_CLOEXEC,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Replaces the calling process by CMD, without any protection.
///
/// # Errors
/// [`SpawnError::Program`]; only an error returns.
pub fn exec_unprotected(config: &AgentConfig) -> SpawnError {
    let Some((program, arguments)) = config.command.split_first() else {
        return SpawnError::Program {
            program: PathBuf::new(),
            cause: io::ErrorKind::NotFound.into(),
        };
    };
    let mut command = Command::new(program);
    command.args(arguments);
    hide_ours(&mut command, config);
    // Who is that user already (a container without `user: root`) needs no change, and may not make one.
    let root = rustix::process::geteuid().is_root();
    if root {
        let user = config.job_user().ok().flatten();
        set_home(&mut command, user.as_ref());
        let privileges = config.privileges();
        // SAFETY: called before exec in this very process; only system calls are made.
        unsafe { command.pre_exec(move || become_the_jobs(user.as_ref(), privileges)) };
    }
    let cause = command.exec();
    SpawnError::Program {
        program: PathBuf::from(program),
        cause,
    }
}

/// The limit of open files that the agent was started with: the job gets it back.
#[derive(Debug, Clone, Copy)]
pub struct NofileLimit {
    soft: libc::rlim_t,
    hard: libc::rlim_t,
}

impl NofileLimit {
    /// Raises the process's own limit as far as it may and returns what it was: the vault holds an fd per allocation,
    /// and so does the sidecar.
    pub fn raise() -> Self {
        let mut limit = libc::rlimit {
            rlim_cur: 0,
            rlim_max: 0,
        };
        // SAFETY: a valid pointer to a struct of the right type.
        unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
        let before = Self {
            soft: limit.rlim_cur,
            hard: limit.rlim_max,
        };
        // With CAP_SYS_RESOURCE also the hard limit, as far as the kernel goes at all.
        let most = std::fs::read_to_string("/proc/sys/fs/nr_open")
            .ok()
            .and_then(|text| text.trim().parse::<libc::rlim_t>().ok())
            .unwrap_or(limit.rlim_max);
        for hard in [most.max(limit.rlim_max), limit.rlim_max] {
            limit.rlim_cur = hard;
            limit.rlim_max = hard;
            // SAFETY: as above; failing leaves the limit as it was.
            if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } == 0 {
                break;
            }
        }
        before
    }

    fn set(self) -> io::Result<()> {
        let limit = libc::rlimit {
            rlim_cur: self.soft,
            rlim_max: self.hard,
        };
        // SAFETY: a valid pointer to a struct of the right type.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

/// What x32 adds to the numbers of its calls.
const X32: u32 = 0x4000_0000;

/// A filter that answers `ENOSYS` to io_uring_setup, _enter and _register and to clone3 and lets everything else through. Calls that
/// are as new as these have one number on all architectures, so it does not look at which a call is of: a 32-bit call is no way around.
fn job_filter() -> Vec<libc::sock_filter> {
    const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    const JUMP_EQ: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    const AND: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    const JUMP_GE: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    const JUMP_GT: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    vec![
        // seccomp_data.nr
        step(LOAD, 0, 0, 0),
        step(AND, 0, 0, !X32),
        step(JUMP_EQ, 2, 0, libc::SYS_clone3 as u32),
        step(JUMP_GE, 0, 2, libc::SYS_io_uring_setup as u32),
        step(JUMP_GT, 1, 0, libc::SYS_io_uring_register as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32),
        step(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ]
}

/// The filter in words that an environment can have: see `shim/criu-preload`.
pub fn job_filter_in_words() -> String {
    let mut words = String::new();
    for step in job_filter() {
        let [code, code_high] = step.code.to_ne_bytes();
        let [k0, k1, k2, k3] = step.k.to_ne_bytes();
        for byte in [code, code_high, step.jt, step.jf, k0, k1, k2, k3] {
            words.push_str(&format!("{byte:02x}"));
        }
    }
    words
}

fn install_filter(filter: &[libc::sock_filter]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_ptr().cast_mut(),
    };
    // With CAP_SYS_ADMIN no_new_privs is not needed, so that setuid programs work where they are allowed.
    // SAFETY: a valid program that outlives the call; the kernel copies it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            &raw const program,
        )
    };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preload_keeps_what_was_there() {
        assert_eq!(preload(Path::new("/a.so"), None), "/a.so");
        assert_eq!(preload(Path::new("/a.so"), Some("".into())), "/a.so");
        assert_eq!(
            preload(Path::new("/a.so"), Some("/b.so".into())),
            "/a.so:/b.so"
        );
    }

    #[test]
    fn the_copy_of_the_shim_is_named_by_content() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("lib.so");
        std::fs::write(&from, b"one").unwrap();
        let first = install_shim(&from, dir.path()).unwrap();
        std::fs::write(&from, b"two").unwrap();
        let second = install_shim(&from, dir.path()).unwrap();
        assert_ne!(first.path, second.path);
        assert_eq!(std::fs::read(&first.path).unwrap(), b"one");
        assert_eq!(install_shim(&from, dir.path()).unwrap(), second);
    }

    #[test]
    fn a_copy_is_put_back_where_no_link_of_others_leads_and_under_no_other_name() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: needs root");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for directory in ["run", "victim"] {
            std::fs::create_dir(at(directory)).unwrap();
        }
        let shim = "libphos_shim-0123456789abcdef.so";
        put_back_shim(&at("run").join(shim), b"one").unwrap();
        put_back_shim(&at("run").join(shim), b"two").unwrap();
        assert_eq!(std::fs::read(at("run").join(shim)).unwrap(), b"two");
        std::os::unix::fs::symlink("victim", at("link")).unwrap();
        std::os::unix::fs::lchown(at("link"), Some(1234), None).unwrap();
        put_back_shim(&at("link").join(shim), b"x").unwrap_err();
        put_back_shim(&at("victim/ld.so.preload"), b"x").unwrap_err();
        assert_eq!(std::fs::read_dir(at("victim")).unwrap().count(), 0);
    }

    #[test]
    fn io_uring_and_clone3_are_denied_and_the_rest_is_not() {
        // Installing needs CAP_SYS_ADMIN; in a thread of its own, so that it ends with the thread.
        let result = std::thread::spawn(|| {
            if install_filter(&job_filter()).is_err() {
                return None;
            }
            let errno = |number| {
                // SAFETY: an invalid call on purpose: no pointer is given.
                let result = unsafe { libc::syscall(number, 0, 0) };
                (result, io::Error::last_os_error().raw_os_error())
            };
            let denied = [
                libc::SYS_io_uring_setup,
                libc::SYS_io_uring_register,
                libc::SYS_clone3,
            ];
            Some((denied.map(errno), std::fs::metadata("/").is_ok()))
        })
        .join()
        .unwrap();
        if let Some(found) = result {
            assert_eq!(found, ([(-1, Some(libc::ENOSYS)); 3], true));
        }
    }
}
