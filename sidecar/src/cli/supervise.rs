//! `phos-ft … -- CMD`: agent and sidecar on one machine, started by one command.
//!
//! ```text
//! phos-ft -- CMD (this process)
//!  ├─ phos-ft run -- CMD     the agent: its end is ours, its code is ours
//!  └─ phos-ft                the sidecar: may die; started again
//! ```
//!
//! # Rules
//!
//! * Whatever can be refused is refused before either is started, when nothing has changed yet.
//! * Signals go to the agent, which decides what becomes of the job. The sidecar has a process group of
//!   its own, so that Ctrl-C does not end it before the job's last checkpoint.
//! * If this process dies, both are told to end.
//! * The agent, and with it the job, gets none of the variables that say how the store is reached: what the job has is in its
//!   image, and everybody who can read the store can read that.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use phos_agent::AgentError;
use phos_storage::Key;
use rustix::process::{Pid, Signal};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use super::args::{AgentArgs, Common, SidecarArgs};
use super::{exit, fail};
use crate::engine::{self, Interval, Start};

/// Set for children; tells them to end with their supervisor.
const SUPERVISED: &str = "PHOS_SUPERVISED";

/// Whether this process is the child of a supervisor, whose command line says everything.
pub(super) fn is_supervised() -> bool {
    std::env::var_os(SUPERVISED).is_some()
}

/// How long the sidecar may take to store the last checkpoint when the job is over.
const LAST_STORE: Duration = Duration::from_secs(75);

/// In a child of a supervisor: end when it ends.
pub(super) fn follow_supervisor() {
    if is_supervised() {
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    }
}

/// Runs agent and sidecar; the exit code is the agent's.
pub(super) fn run(
    common: &Common,
    sidecar: &SidecarArgs,
    agent: &AgentArgs,
    command: &[OsString],
) -> u8 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(e) => return fail(format_args!("cannot start: {e}"), exit::SYSTEM),
    };
    if let Err(e) = super::agent_config(common, agent, command.to_vec()).validate() {
        return fail(e, exit::USAGE);
    }
    if let Err(e) = phos_agent::check_program(command) {
        let e = AgentError::from(e);
        return fail(&e, super::agent_code(&e));
    }
    runtime.block_on(async {
        let key = match super::look::key(common) {
            Ok(key) => key,
            Err(code) => return code,
        };
        if let Err(code) = check(common, key, sidecar.start()).await {
            return code;
        }
        match supervise(common, sidecar, agent, command).await {
            Ok(code) => code,
            Err(e) => fail(e, exit::SYSTEM),
        }
    })
}

/// Before anything starts: the run directory and the store.
async fn check(common: &Common, key: Option<Key>, start: Start) -> Result<(), u8> {
    let checks = async {
        engine::make_run_dir(&common.run_dir, &common.job)?;
        let (store, options) = (common.store(), common.store_options(key));
        let known = match start {
            Start::Fresh => None,
            Start::Resume => {
                engine::known_history(&common.run_dir, &common.state_dir, &common.job, &store)
            }
        };
        let opened = engine::open_store_of(&common.job, &store, options, known).await;
        match opened {
            // That is waited for, by the sidecar.
            Err(e) if e.is_away() => Ok(()),
            other => other.map(drop),
        }
    };
    checks.await.map_err(|e| fail(&e, exit::engine(&e)))
}

fn program() -> PathBuf {
    std::env::current_exe().unwrap_or_else(|_| PathBuf::from("phos-ft"))
}

fn base(common: &Common) -> Command {
    let mut command = Command::new(program());
    command
        .arg("--job")
        .arg(common.job.as_str())
        .arg("--run-dir")
        .arg(&common.run_dir)
        .arg("--state-dir")
        .arg(&common.state_dir)
        .arg("--store")
        .arg(common.store())
        .args(common.s3.flags())
        .arg("--log-format")
        .arg(match common.log_format {
            super::args::LogFormat::Text => "text",
            super::args::LogFormat::Json => "json",
        })
        .env(SUPERVISED, "1");
    command
}

fn time(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// How the names of variables begin that say how stores are reached, and with which secrets. Which store it is does not matter: a
/// job that needs some of them itself is better asked once than when the store is another.
const STORES: [&str; 3] = ["AWS_", "GOOGLE_", "AZURE_"];
/// One that does not: Google's, too.
const SERVICE_ACCOUNT: &str = "SERVICE_ACCOUNT";

/// Which of them are here and not to be given to the job.
fn of_the_store(keep: &[String]) -> Vec<OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| is_of_the_store(name, keep)).collect()
}

fn is_of_the_store(name: &OsStr, keep: &[String]) -> bool {
    let begins = |start: &str| name.as_encoded_bytes().starts_with(start.as_bytes());
    (STORES.iter().any(|start| begins(start)) || name == SERVICE_ACCOUNT)
        && keep.iter().all(|kept| name != kept.as_str())
}

fn agent_command(common: &Common, agent: &AgentArgs, job: &[OsString]) -> Command {
    let mut command = base(common);
    command.arg("run").arg("--grace").arg(time(agent.grace));
    command
        .arg("--max-file-size")
        .arg(agent.max_file_size.to_string());
    command
        .arg("--sidecar-wait")
        .arg(agent.sidecar_wait.0.map_or("forever".into(), time));
    command
        .arg("--tcp")
        .arg(word(agent.tcp))
        .arg("--rank-failure")
        .arg(word(agent.rank_failure));
    for (flag, is_set) in [
        ("--nvls", agent.nvls),
        ("--lean-context", agent.lean_context),
    ] {
        if is_set {
            command.arg(flag);
        }
    }
    for (flag, path) in [("--criu", &agent.criu), ("--shim", &agent.shim)] {
        if let Some(path) = path {
            command.arg(flag).arg(path);
        }
    }
    if let Some(limit) = agent.image_limit {
        command.arg("--image-limit").arg(limit.to_string());
    }
    if let Some(user) = &agent.user {
        command.arg("--user").arg(user);
    }
    if agent.allow_new_privileges {
        command.arg("--allow-new-privileges");
    }
    for name in &agent.keep_env {
        command.arg("--keep-env").arg(name);
    }
    for name in of_the_store(&agent.keep_env) {
        command.env_remove(name);
    }
    if agent.allow_unprotected {
        command.arg("--allow-unprotected");
    }
    command.arg(OsStr::new("--")).args(job);
    command
}

/// Each sidecar is told where the job goes back to: the one before may have died before it took the job over. It counts for a job
/// that waits to be begun alone, so that no later one goes back once more.
fn sidecar_command(common: &Common, sidecar: &SidecarArgs) -> Command {
    let mut command = base(common);
    command
        .arg("--interval")
        .arg(match sidecar.interval {
            Interval::Never => "never".into(),
            Interval::Auto => "auto".into(),
            Interval::Every(interval) => time(interval),
        })
        .arg("--host-buffer")
        .arg(sidecar.host_buffer.to_string())
        .arg("--copy-beside")
        .arg(word(sidecar.copy_beside))
        .arg("--quiesce-timeout")
        .arg(time(sidecar.quiesce_timeout))
        .arg("--hold-limit")
        .arg(time(sidecar.hold_limit))
        .arg("--max-restarts")
        .arg(sidecar.max_restarts.to_string())
        .arg("--restart-window")
        .arg(time(sidecar.restart_window))
        .arg("--lease")
        .arg(time(sidecar.lease))
        .args(
            sidecar
                .node_name
                .iter()
                .flat_map(|name| ["--node-name", name]),
        )
        .arg("--preemption-notices")
        .arg(word(sidecar.preemption_notices))
        .args(sidecar.keep.flags())
        .args(sized("--upload-limit", sidecar.upload_limit))
        .args(sized("--host-cache", sidecar.host_cache))
        .args(sized("--cache-size", sidecar.cache_size))
        .args(timed("--remote-interval", sidecar.remote_interval))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    if let Some(file) = &common.encryption_key_file {
        command.arg("--encryption-key-file").arg(file);
    }
    if let Some(place) = &sidecar.metrics {
        command.arg("--metrics").arg(place.to_string());
    }
    if let Some(program) = &sidecar.on_event {
        command.arg("--on-event").arg(program);
    }
    if let Some(endpoint) = &sidecar.otlp_endpoint {
        command.arg("--otlp-endpoint").arg(endpoint);
    }
    if let Some(file) = &sidecar.preemption_file {
        command.arg("--preemption-file").arg(file);
    }
    if common.require_encryption {
        command.arg("--require-encryption");
    }
    if !sidecar.without_cpu_features.is_empty() {
        let names = sidecar.without_cpu_features.join(",");
        command.args(["--without-cpu-features", &names]);
    }
    if let Some(from) = sidecar.from {
        command.arg("--from").arg(from.to_string());
    }
    if sidecar.start_fresh {
        command.arg("--start-fresh");
    }
    command.as_std_mut().process_group(0);
    command
}

/// As it is written on the command line.
fn word(value: impl ValueEnum) -> String {
    value
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_owned())
}

/// A time as a command line, if there is one.
fn timed(flag: &str, length: Option<Duration>) -> Vec<String> {
    length
        .map(|length| vec![flag.to_owned(), time(length)])
        .unwrap_or_default()
}

/// A size as a command line, if there is one.
fn sized(flag: &str, size: Option<u64>) -> Vec<String> {
    size.map(|size| vec![flag.to_owned(), size.to_string()])
        .unwrap_or_default()
}

fn send(child: &Child, signal: Signal) {
    let pid = child
        .id()
        .and_then(|id| i32::try_from(id).ok())
        .and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => u8::try_from(code).unwrap_or(exit::FAILED),
        (None, Some(signal)) => u8::try_from(128 + signal).unwrap_or(exit::FAILED),
        (None, None) => exit::FAILED,
    }
}

async fn supervise(
    common: &Common,
    sidecar: &SidecarArgs,
    agent: &AgentArgs,
    job: &[OsString],
) -> std::io::Result<u8> {
    let mut signals = [
        (signal(SignalKind::terminate())?, Signal::TERM),
        (signal(SignalKind::hangup())?, Signal::HUP),
        (signal(SignalKind::user_defined1())?, Signal::USR1),
        (signal(SignalKind::user_defined2())?, Signal::USR2),
        (signal(SignalKind::interrupt())?, Signal::INT),
        (signal(SignalKind::quit())?, Signal::QUIT),
    ];
    // From a terminal, Ctrl-C has reached the agent already: it is in our process group.
    let terminal = std::io::IsTerminal::is_terminal(&std::io::stdin());
    let hidden = of_the_store(&agent.keep_env);
    if !hidden.is_empty() {
        let names: Vec<_> = hidden.iter().map(|name| name.to_string_lossy()).collect();
        tracing::warn!(
            names = names.join(","),
            "the job is not given what stores are reached with: for those of these variables that it needs itself, give --keep-env NAME"
        );
    }
    let mut agent_child = agent_command(common, agent, job).spawn()?;
    let mut sidecar_child = Some(sidecar_command(common, sidecar).spawn()?);
    let mut started = Instant::now();
    let mut wait = Duration::from_millis(250);
    let mut again: Option<Instant> = None;
    let mut verdict = None;
    let [term, hup, usr1, usr2, int, quit] = &mut signals;
    let status = loop {
        tokio::select! {
            status = agent_child.wait() => break status?,
            status = ended(&mut sidecar_child), if sidecar_child.is_some() => {
                sidecar_child = None;
                let code = code(status?);
                if exit::is_final(code) {
                    // It said why. The job runs on if it runs.
                    verdict = (code != exit::OK).then_some(code);
                    continue;
                }
                if started.elapsed() > Duration::from_secs(60) {
                    wait = Duration::from_millis(250);
                }
                tracing::warn!(code, again_ms = wait.as_millis() as u64, "the sidecar ended; starting another");
                again = Some(Instant::now() + wait);
                wait = (wait * 2).min(Duration::from_secs(30));
            }
            () = at(again), if again.is_some() => {
                again = None;
                started = Instant::now();
                sidecar_child = Some(sidecar_command(common, sidecar).spawn()?);
            }
            _ = term.0.recv() => send(&agent_child, term.1),
            _ = hup.0.recv() => send(&agent_child, hup.1),
            _ = usr1.0.recv() => send(&agent_child, usr1.1),
            _ = usr2.0.recv() => send(&agent_child, usr2.1),
            _ = int.0.recv() => if !terminal { send(&agent_child, int.1) },
            _ = quit.0.recv() => if !terminal { send(&agent_child, quit.1) },
        }
    };
    if let Some(mut child) = sidecar_child {
        send(&child, Signal::TERM);
        match tokio::time::timeout(LAST_STORE, child.wait()).await {
            Ok(status) => {
                let code = code(status?);
                verdict = (exit::is_final(code) && code != exit::OK)
                    .then_some(code)
                    .or(verdict);
            }
            Err(_) => {
                let _ = child.kill().await;
            }
        }
    }
    let job = code(status);
    // A job that could not be resumed has no code of its own.
    Ok(match verdict {
        // Whatever became of it here: the job is another node's, and so is its history.
        Some(exit::FENCED) => exit::FENCED,
        Some(code @ (exit::MACHINE | exit::DATA | exit::NOT_FOUND | exit::KEY))
            if job != exit::OK =>
        {
            code
        }
        _ => job,
    })
}

async fn ended(child: &mut Option<Child>) -> std::io::Result<ExitStatus> {
    match child {
        Some(child) => child.wait().await,
        None => std::future::pending().await,
    }
}

async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_the_store_are_not_the_jobs() {
        let keep = ["AWS_REGION".to_owned()];
        for (name, is) in [
            ("AWS_SECRET_ACCESS_KEY", true),
            ("GOOGLE_APPLICATION_CREDENTIALS", true),
            ("AZURE_CLIENT_SECRET", true),
            ("SERVICE_ACCOUNT", true),
            ("AWS_REGION", false),
            ("AWS", false),
            ("MY_AWS_KEY", false),
            ("PATH", false),
        ] {
            assert_eq!(is_of_the_store(OsStr::new(name), &keep), is, "{name}");
        }
    }
}
