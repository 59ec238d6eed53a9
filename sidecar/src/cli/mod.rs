//! The command line: parsing, dispatch, logging, and what needs no job (`list`, `show`, `doctor`).
//!
//! * [`args`]: the grammar; [`exit`]: exit codes;
//! * [`supervise`]: `phos-ft … -- CMD`, agent and sidecar as one; [`client`]: `status`, `checkpoint`; [`events`]; [`top`];
//! * [`look`]: opening a store to look at it; [`history`]: `list`, `show`; [`diff`], [`export`], [`verify`], [`prune`];
//! * [`config`]: the configuration file; [`keygen`]: making a key file; [`shell`]: completions and manual pages;
//! * [`init`]: setting a store up; [`doctor`].

pub mod args;
mod client;
mod config;
mod diff;
mod doctor;
mod events;
pub mod exit;
mod export;
mod history;
mod init;
mod keygen;
mod look;
mod picture;
mod prune;
mod shell;

mod supervise;
mod top;
mod verify;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{ArgMatches, FromArgMatches};
use phos_agent::{AgentConfig, AgentError, RankFailure, Shim, Tcp};
use phos_policies::retention::Retention;
use phos_storage::{CollectOptions, VerifyOptions};
use tracing_subscriber::EnvFilter;

use self::args::{
    AgentArgs, Cli, Command, Common, CopyBesideArg, LogFormat, RankFailureArg, SidecarArgs, TcpArg,
};
use self::config::ConfigFile;
use self::doctor::Repairs;
use crate::background::{self, Background};
use crate::engine::{self, CopyBeside};
use crate::heap;
use crate::observe;
use crate::preemption;

/// Parses the command line and does what it says.
pub fn main() -> ExitCode {
    abort_at_panic();
    ExitCode::from(match parse() {
        Ok((cli, given)) => {
            log(cli.common.log_format);
            dispatch(cli, &given)
        }
        Err(code) => code,
    })
}

/// What was given, for `phos-ft config`.
struct Given {
    matches: ArgMatches,
    file: ConfigFile,
}

/// The command line, with the configuration file for what it does not say; or the code with which the process ends.
fn parse() -> Result<(Cli, Given), u8> {
    let refused = |e: clap::Error| {
        let _ = e.print();
        match e.use_stderr() {
            true => exit::USAGE,
            false => exit::OK,
        }
    };
    // Whether help is wanted, and which file is meant.
    let matches = args::command().try_get_matches().map_err(refused)?;
    let file = ConfigFile::find(&matches).map_err(|e| fail(&e, config::code(&e)))?;
    let matches = (file.apply(args::command()))
        .try_get_matches()
        .map_err(refused)?;
    let cli = Cli::from_arg_matches(&matches).map_err(refused)?;
    Ok((cli, Given { matches, file }))
}

/// A panic ends the process, on whatever thread: the others would wait for what does not come. A release does so by itself.
fn abort_at_panic() {
    #[cfg(panic = "unwind")]
    {
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::abort();
        }));
    }
}

fn log(format: LogFormat) {
    // What the AWS crates look for and do not find is said in our own words, if it matters.
    const DEFAULT: &str = "info,aws_config=error,aws_runtime=error,aws_smithy_runtime=error,\
        aws_smithy_runtime_api=error,aws_sdk_s3=error";
    let filter = EnvFilter::try_from_env("PHOS_LOG").unwrap_or_else(|_| EnvFilter::new(DEFAULT));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(|| Words);
    let outcome = match format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => {
            use std::io::IsTerminal;
            builder
                .with_ansi(std::io::stderr().is_terminal())
                .try_init()
        }
    };
    // Only fails when somebody has set one before: then logs go there.
    drop(outcome);
}

/// Standard error, of which it does not matter whether anybody reads it or there is room for it: what cannot be said must not end a
/// process on which a job depends. (`tracing_subscriber` panics when its writer fails and standard error does.)
struct Words;

impl std::io::Write for Words {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let _ = std::io::stderr().write_all(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn dispatch(cli: Cli, given: &Given) -> u8 {
    let Cli {
        common,
        sidecar,
        agent,
        command,
        job_command,
    } = cli;
    match command {
        None if job_command.is_empty()
            && std::env::args_os()
                .next_back()
                .is_some_and(|last| last == "--") =>
        {
            fail(
                "no command after --: name the job's program, as in phos-ft -- python train.py (without -- phos-ft is the \
             sidecar of a job that `phos-ft run` starts)",
                exit::USAGE,
            )
        }
        None if job_command.is_empty() => run_sidecar(&common, &sidecar),
        None => supervise::run(&common, &sidecar, &agent, &job_command),
        Some(Command::Run { agent, job_command }) => run_agent(&common, &agent, job_command),
        Some(Command::Checkpoint { output }) => client::checkpoint(&common, output.into()),
        Some(Command::Status { output }) => client::status(&common, output.into()),
        Some(Command::Top) => top::run(&common),
        Some(Command::Events(args)) => events::run(&common, &args),
        Some(Command::List { output }) => history::list(&common, output.into()),
        Some(Command::Show { id, output }) => history::show(&common, id, output.into()),
        Some(Command::Diff { from, to, output }) => diff::run(&common, from, to, output.into()),
        Some(Command::Export {
            id,
            directory,
            output,
        }) => export::run(&common, id, &directory, output.into()),
        Some(Command::Verify {
            deep,
            no_quarantine,
            output,
        }) => {
            let quarantine = !no_quarantine;
            verify::run(&common, VerifyOptions { deep, quarantine }, output.into())
        }
        Some(Command::Prune {
            keep,
            drop_branches,
            dry_run,
            output,
        }) => {
            let rules = Retention {
                drop_branches,
                ..keep.rules()
            };
            let options = CollectOptions {
                dry_run,
                ..CollectOptions::default()
            };
            prune::run(&common, rules, options, output.into())
        }
        Some(Command::Restore {
            id,
            mut sidecar,
            agent,
        }) => match history::command_to_restore(&common, id) {
            Ok((id, command)) => {
                sidecar.from = id;
                supervise::run(&common, &sidecar, &agent, &command)
            }
            Err(code) => code,
        },
        Some(Command::Config { output }) => {
            config::show(&given.matches, &given.file, output.into())
        }
        Some(Command::Completions { shell }) => shell::completions(shell),
        Some(Command::Man { directory }) => shell::manual(&directory),
        Some(Command::Keygen { file }) => keygen::run(&file),
        Some(Command::Init(args)) => init::run(&common, &args),
        Some(Command::Doctor { fix, criu, output }) => {
            let repairs = match fix {
                true => Repairs::Make,
                false => Repairs::Leave,
            };
            doctor::run(&common, criu, repairs, output.into())
        }
    }
}

/// Says what is wrong and with which code the process ends.
fn fail(message: impl std::fmt::Display, code: u8) -> u8 {
    let _ = writeln!(Words, "phos-ft: {message}");
    code
}

fn runtime() -> Result<tokio::runtime::Runtime, u8> {
    heap::bound();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .on_thread_start(|| {
            // They make way for the job and for what holds it. (What a stop waits for runs on the main thread and on threads that it starts itself.)
            // Of the calling thread alone, on Linux. Raising it is always allowed.
            let _ = rustix::process::setpriority_process(None, background::NICE);
        })
        .build()
        .map_err(|e| fail(format_args!("cannot start threads: {e}"), exit::SYSTEM))
}

fn run_sidecar(common: &Common, sidecar: &SidecarArgs) -> u8 {
    supervise::follow_supervisor();
    let key = match look::key(common) {
        Ok(key) => key,
        Err(code) => return code,
    };
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    let (threads, background) = match Background::start() {
        Ok(started) => started,
        Err(e) => return fail(format_args!("cannot start threads: {e}"), exit::SYSTEM),
    };
    let config = engine::Config {
        background,
        job: common.job.clone(),
        run_dir: common.run_dir.clone(),
        store: common.store(),
        interval: sidecar.interval,
        host_buffer: sidecar.host_buffer.0,
        copy_beside: match sidecar.copy_beside {
            CopyBesideArg::Auto => CopyBeside::Auto,
            CopyBesideArg::Never => CopyBeside::Never,
        },
        quiesce_timeout: sidecar.quiesce_timeout,
        hold_limit: sidecar.hold_limit,
        restarts: sidecar.budget(),
        from: sidecar.from,
        start: sidecar.start(),
        unused_cpu_features: sidecar.without_cpu_features.clone(),
        lease: sidecar.lease,
        node: sidecar.node_name.clone(),
        remote: (sidecar.remote_interval).map(|every| (every, common.state_dir.clone())),
        state_dir: common.state_dir.clone(),
        retention: sidecar.keep.rules(),
        upload_limit: sidecar.upload_limit,
        preemption: preemption::Config {
            cloud: sidecar.preemption_notices,
            file: sidecar.preemption_file.clone(),
        },
        observe: observe::Config {
            metrics: sidecar.metrics.clone(),
            on_event: sidecar.on_event.clone(),
            otlp_endpoint: sidecar.otlp_endpoint.clone(),
        },
        s3: common.s3.options(),
        host_cache: sidecar.host_cache,
        cache: sidecar.cache_size.map(|limit| {
            let directory = common.state_dir.join("cache").join(common.job.as_str());
            (directory, limit)
        }),
        key,
    };
    // An fd for every allocation of the job.
    phos_agent::spawn::NofileLimit::raise();
    let outcome = runtime.block_on(engine::run(config));
    // Workers that still wait for a store must not hold the process back.
    runtime.shutdown_background();
    threads.shutdown_background();
    match outcome {
        Ok(()) => exit::OK,
        Err(e) => {
            tracing::error!(error = %e, "the sidecar ends");
            exit::engine(&e)
        }
    }
}

fn agent_config(
    common: &Common,
    agent: &AgentArgs,
    command: Vec<std::ffi::OsString>,
) -> AgentConfig {
    let mut config = AgentConfig::new(common.job.as_str(), command);
    config.run_dir.clone_from(&common.run_dir);
    config.criu.clone_from(&agent.criu);
    config.shim = agent.shim.clone().map_or(Shim::Find, Shim::At);
    config.max_file_size = agent.max_file_size;
    config.image_limit = agent.image_limit;
    config.sidecar_wait = agent.sidecar_wait.0;
    config.grace = agent.grace;
    config.allow_unprotected = agent.allow_unprotected;
    config.user.clone_from(&agent.user);
    config.allow_new_privileges = agent.allow_new_privileges;
    config.keep_env.clone_from(&agent.keep_env);
    config.tcp = match agent.tcp {
        TcpArg::Auto => Tcp::Auto,
        TcpArg::Close => Tcp::Close,
        TcpArg::Keep => Tcp::Keep,
    };
    config.nvls = agent.nvls;
    config.lean_context = agent.lean_context;
    config.rank_failure = match agent.rank_failure {
        RankFailureArg::Resume => RankFailure::Resume,
        RankFailureArg::Leave => RankFailure::Leave,
    };
    config
}

fn run_agent(common: &Common, agent: &AgentArgs, command: Vec<std::ffi::OsString>) -> u8 {
    supervise::follow_supervisor();
    match phos_agent::run(agent_config(common, agent, command)) {
        Ok(code) => u8::try_from(code).unwrap_or(exit::FAILED),
        Err(e) => {
            let code = agent_code(&e);
            fail(e, code)
        }
    }
}

/// The exit code for an error of the agent.
fn agent_code(error: &AgentError) -> u8 {
    match error {
        AgentError::Config(_) => exit::USAGE,
        AgentError::Namespace(_) => exit::PERMISSION,
        AgentError::RunDir { .. } | AgentError::OpenRunDir { .. } | AgentError::Socket { .. } => {
            exit::CANNOT_CREATE
        }
        AgentError::AlreadyRunning { .. } => exit::UNAVAILABLE,
        AgentError::System { .. } | AgentError::DriverHangs | AgentError::Criu(_) => exit::SYSTEM,
        AgentError::Fenced { .. } => exit::FENCED,
        // 126 and 127, as a shell has them.
        AgentError::Spawn(_) => u8::try_from(error.exit_code()).unwrap_or(exit::FAILED),
    }
}
