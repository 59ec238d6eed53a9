//! The command line: what there is to say, and what is refused with which words.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use phos_policies::restart::RestartBudget;
use phos_policies::retention::Retention;
use phos_storage::{CheckpointNumber, JobName};

use super::{exit, size};

const EXAMPLES: &str = "\
Examples:
  phos-ft -- python train.py
        train under protection: a checkpoint every minute into /var/lib/phos-ft
  phos-ft --interval 5m --store s3://bucket/runs --job llama -- torchrun train.py
        checkpoints in object storage: survives the loss of the machine; start the
        same line on another machine and it goes on where the job was
  phos-ft run -- python train.py         (container A)
  phos-ft --store s3://bucket/runs       (container B, sharing /run/phos and the GPUs)
        the same as two services
  phos-ft checkpoint                     take one now and wait for it
  phos-ft list                           what there is to resume from
  phos-ft restore 12                     go on from checkpoint 12
  phos-ft prune --keep-last 5            delete what is older
  phos-ft verify --deep                  could all of it be restored?
  phos-ft doctor                         is this machine fit?
";

/// See `--help`.
#[derive(Debug, Parser)]
#[command(
    name = "phos-ft",
    version,
    about = "Keeps an unmodified GPU training job alive through crashes and the loss of its machine",
    long_about = "Keeps an unmodified GPU training job alive through crashes and the loss of its machine.\n\n\
        Takes consistent, incremental images of the whole job (processes and GPU memory) while it trains, \
        stores them, and resumes the job from the newest one, bit for bit, on this machine or another. The \
        job needs no change. Without a subcommand phos-ft is the sidecar; with `-- CMD` it starts the job \
        as well.",
    after_help = EXAMPLES,
    after_long_help = const_format_help(),
    subcommand_negates_reqs = true
)]
pub struct Cli {
    /// What all of them take.
    #[command(flatten)]
    pub common: Common,
    /// The sidecar's own.
    #[command(flatten)]
    pub sidecar: SidecarArgs,
    /// For the job, if CMD is given.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// Another thing to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The job: program and arguments. Without it, waits for a job started by `phos-ft run`.
    #[arg(last = true, value_name = "CMD")]
    pub job_command: Vec<OsString>,
}

fn const_format_help() -> String {
    format!("{EXAMPLES}\n{}", exit::HELP)
}

/// Options of every subcommand.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Name of the job: its history in the store, and how agent and sidecar find each other.
    #[arg(long, global = true, default_value = "default", value_name = "NAME", env = "PHOS_JOB", value_parser = job_name)]
    pub job: JobName,
    /// Where checkpoints go: a directory, file:///path, s3://bucket/prefix, gs://…, az://….
    /// [default: the directory `store` in the state directory]
    #[arg(long, global = true, value_name = "URL", env = "PHOS_STORE")]
    pub store: Option<String>,
    /// Where phos-ft keeps what is its own.
    #[arg(
        long,
        global = true,
        default_value = "/var/lib/phos-ft",
        value_name = "DIR",
        env = "PHOS_STATE_DIR"
    )]
    pub state_dir: PathBuf,
    /// Directory shared by agent and sidecar, for their sockets.
    #[arg(
        long,
        global = true,
        default_value = "/run/phos",
        value_name = "DIR",
        env = "PHOS_RUN_DIR"
    )]
    pub run_dir: PathBuf,
    /// How to log, to standard error. $PHOS_LOG sets what (default "info").
    #[arg(
        long,
        global = true,
        default_value = "text",
        value_name = "FORMAT",
        env = "PHOS_LOG_FORMAT"
    )]
    pub log_format: LogFormat,
}

impl Common {
    /// The store's address.
    pub fn store(&self) -> String {
        match &self.store {
            Some(address) => address.clone(),
            None => self.state_dir.join("store").to_string_lossy().into_owned(),
        }
    }
}

/// How to log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Options of the sidecar.
#[derive(Debug, Clone, Args)]
pub struct SidecarArgs {
    /// Time between checkpoints, such as 30s, 5m or 1h; "never" for checkpoints on demand only. Longer where stops
    /// would otherwise take more than a tenth of the job's time.
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = interval)]
    pub interval: Interval,
    /// Most host memory, pinned, for GPU memory on its way to or from the store.
    #[arg(long, default_value = "4GiB", value_name = "SIZE", value_parser = host_buffer)]
    pub host_buffer: u64,
    /// How long GPU work in flight may take to end when a checkpoint begins; it is tried again later.
    #[arg(long, default_value = "10s", value_name = "TIME", value_parser = duration)]
    pub quiesce_timeout: Duration,
    /// How often a crashed job is brought back within the window before phos-ft gives up.
    #[arg(long, default_value_t = 5, value_name = "N")]
    pub max_restarts: u32,
    /// The window for --max-restarts.
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = duration)]
    pub restart_window: Duration,
    /// Resume from this checkpoint instead of the newest one.
    #[arg(long, value_name = "ID", value_parser = checkpoint)]
    pub from: Option<CheckpointNumber>,
    /// Most that uploads to the store may take of the link, a second, such as 100MB or 1GiB. Checkpoints take longer
    /// then, also the last one before the job ends. [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = upload_limit)]
    pub upload_limit: Option<u64>,
    /// Most disk space, in the state directory, for copies of what goes to a remote store: a resume on this machine reads
    /// them there. [default: none are kept]
    #[arg(long, value_name = "SIZE", value_parser = cache_size)]
    pub cache_size: Option<u64>,
    /// Which checkpoints to keep.
    #[command(flatten)]
    pub keep: RetentionArgs,
}

/// Which checkpoints to keep. A checkpoint is kept if any of the rules wants it, and the newest is always kept.
/// Without a rule all are kept.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RetentionArgs {
    /// Keep the newest N checkpoints. Without any --keep-… all are kept.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_last: Option<u32>,
    /// Keep the newest checkpoint of each of the newest N hours that have one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_hourly: Option<u32>,
    /// Keep the newest checkpoint of each of the newest N days (UTC) that have one.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_daily: Option<u32>,
}

impl RetentionArgs {
    /// As the policy takes them.
    pub const fn rules(&self) -> Retention {
        Retention {
            last: self.keep_last,
            hourly: self.keep_hourly,
            daily: self.keep_daily,
        }
    }

    /// As a command line.
    pub fn flags(&self) -> Vec<String> {
        let rules = [
            ("--keep-last", self.keep_last),
            ("--keep-hourly", self.keep_hourly),
            ("--keep-daily", self.keep_daily),
        ];
        rules
            .into_iter()
            .filter_map(|(flag, n)| Some([flag.to_owned(), n?.to_string()]))
            .flatten()
            .collect()
    }
}

/// `--interval`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interval(pub Option<Duration>);

impl SidecarArgs {
    /// As the policy takes it.
    pub fn budget(&self) -> RestartBudget {
        RestartBudget {
            max_restarts: self.max_restarts,
            window: self.restart_window,
            ..RestartBudget::default()
        }
    }
}

/// Options of the agent.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// The criu program (4.1 or newer). [default: beside phos-ft, else from PATH]
    #[arg(long, value_name = "PATH", env = "PHOS_CRIU")]
    pub criu: Option<PathBuf>,
    /// The shim to preload into the job. [default: beside phos-ft, ../lib or /opt/phos/lib]
    #[arg(long, value_name = "PATH", env = "PHOS_SHIM")]
    pub shim: Option<PathBuf>,
    /// On SIGTERM: time for a last checkpoint and for the job to end.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = duration)]
    pub grace: Duration,
    /// Files that the job has open for writing are kept in the image up to this size; of larger ones
    /// only the length.
    #[arg(long, default_value = "64MiB", value_name = "SIZE", value_parser = size::parse)]
    pub max_file_size: u64,
    /// Most memory for the CPU image of one checkpoint. [default: half of the machine's]
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub image_limit: Option<u64>,
    /// Start the job without a sidecar after waiting this long for one; "forever" to wait.
    #[arg(long, default_value = "30s", value_name = "TIME", value_parser = wait)]
    pub sidecar_wait: Wait,
    /// Start the job unprotected, instead of refusing, where privileges are missing.
    #[arg(long)]
    pub allow_unprotected: bool,
    /// Run the job as this user: USER or USER:GROUP, names of the image's /etc/passwd and /etc/group or numbers. phos-ft
    /// itself needs root. [default: as phos-ft]
    #[arg(long, value_name = "USER", env = "PHOS_USER")]
    pub user: Option<String>,
    /// TCP connections of the job at a restore.
    #[arg(long, default_value = "auto", value_name = "HOW")]
    pub tcp: TcpArg,
}

/// `--sidecar-wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Option<Duration>);

/// `--tcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TcpArg {
    /// Kept when both ends are in the job, else closed.
    Auto,
    /// Closed.
    Close,
    /// Kept.
    Keep,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the job under the agent; the sidecar is another process or container.
    #[command(after_help = "Example: phos-ft run -- python train.py")]
    Run {
        /// How.
        #[command(flatten)]
        agent: AgentArgs,
        /// The job: program and arguments.
        #[arg(last = true, value_name = "CMD", required = true)]
        job_command: Vec<OsString>,
    },
    /// Take a checkpoint now and wait until it is stored.
    Checkpoint {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What the sidecar is doing.
    Status {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// The checkpoints of the job.
    List {
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Everything about one checkpoint.
    Show {
        /// Its number, as `phos-ft list` prints it.
        #[arg(value_name = "ID", value_parser = checkpoint)]
        id: CheckpointNumber,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// What changed from one checkpoint to another, by allocation and file.
    Diff {
        /// The first.
        #[arg(value_name = "A", value_parser = checkpoint)]
        from: CheckpointNumber,
        /// The second.
        #[arg(value_name = "B", value_parser = checkpoint)]
        to: CheckpointNumber,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write a checkpoint out as plain files: device memory, CPU image, files of the job.
    Export {
        /// Its number, as `phos-ft list` prints it.
        #[arg(value_name = "ID", value_parser = checkpoint)]
        id: CheckpointNumber,
        /// A directory that is empty or not there.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Check that what is stored could be restored; what is damaged is named and quarantined.
    #[command(
        after_help = "Quarantined means: restores pass it over at once, and the next checkpoint stores what it held \
        again.\nEnds with 65 if anything is damaged."
    )]
    Verify {
        /// Read every chunk and compare it with its name. Without: records, manifests and the indices of packs.
        #[arg(long)]
        deep: bool,
        /// Only say what is damaged.
        #[arg(long)]
        no_quarantine: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove checkpoints that no rule keeps, and delete what is needed by none.
    #[command(
        after_help = "Safe while the job is running, being restored or verified. A running sidecar does the same \
        after each checkpoint if it is given --keep-…\nExample: phos-ft --job llama prune --keep-last 5 --keep-daily 7"
    )]
    Prune {
        /// Which checkpoints to keep.
        #[command(flatten)]
        keep: RetentionArgs,
        /// Only say what would be done.
        #[arg(long)]
        dry_run: bool,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Go on from a checkpoint: starts the job from it, with the command it was made of.
    #[command(after_help = "Example: phos-ft --job llama restore 12")]
    Restore {
        /// Its number; the newest if left out.
        #[arg(value_name = "ID", value_parser = checkpoint)]
        id: Option<CheckpointNumber>,
        /// The sidecar's options.
        #[command(flatten)]
        sidecar: Box<SidecarArgs>,
        /// The agent's options.
        #[command(flatten)]
        agent: Box<AgentArgs>,
    },
    /// Check whether this machine is fit, with a remedy for what is not.
    Doctor {
        /// The criu program to check.
        #[arg(long, value_name = "PATH", env = "PHOS_CRIU")]
        criu: Option<PathBuf>,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

fn job_name(text: &str) -> Result<JobName, String> {
    JobName::new(text).map_err(|e| e.to_string())
}

fn duration(text: &str) -> Result<Duration, String> {
    humantime::parse_duration(text).map_err(|_| {
        format!("{text:?} is not a time: write a number with a unit, as in 90s, 5m or 1h30m")
    })
}

fn interval(text: &str) -> Result<Interval, String> {
    if text == "never" {
        return Ok(Interval(None));
    }
    let interval = duration(text)?;
    if interval < Duration::from_millis(100) {
        return Err(format!(
            "an interval of {text} would hold the job back without end: give at least 100ms, or \"never\" \
             for checkpoints on demand only"
        ));
    }
    Ok(Interval(Some(interval)))
}

fn wait(text: &str) -> Result<Wait, String> {
    if text == "forever" {
        Ok(Wait(None))
    } else {
        duration(text).map(|d| Wait(Some(d)))
    }
}

fn host_buffer(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text).map_err(|e| e.to_string())?;
    if bytes < 64 << 20 {
        return Err(format!(
            "{text} is too small for a pipeline: give at least 64MiB"
        ));
    }
    Ok(bytes)
}

fn upload_limit(text: &str) -> Result<u64, String> {
    let size = text.strip_suffix("/s").unwrap_or(text);
    let bytes = size::parse(size).map_err(|e| e.to_string())?;
    if bytes < 64 << 10 {
        return Err(format!(
            "{text} a second would not store a checkpoint in a day: give at least 64KiB"
        ));
    }
    Ok(bytes)
}

fn cache_size(text: &str) -> Result<u64, String> {
    let bytes = size::parse(text).map_err(|e| e.to_string())?;
    if bytes < 256 << 20 {
        return Err(format!(
            "{text} is less than a few packs: give at least 256MiB"
        ));
    }
    Ok(bytes)
}

fn checkpoint(text: &str) -> Result<CheckpointNumber, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is not a checkpoint's number: `phos-ft list` shows them"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use rstest::rstest;

    use super::*;

    fn parse(line: &str) -> Result<Cli, String> {
        Cli::try_parse_from(line.split_whitespace())
            .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())
    }

    #[test]
    fn it_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_lines_of_the_design() {
        let cli = parse("phos-ft --interval 60s --store s3://bucket/prefix -- python train.py -v")
            .unwrap();
        assert_eq!(cli.job_command, ["python", "train.py", "-v"]);
        assert_eq!(
            cli.sidecar.interval,
            Interval(Some(Duration::from_secs(60)))
        );
        assert_eq!(cli.common.store(), "s3://bucket/prefix");
        let cli = parse("phos-ft run --job a -- python train.py").unwrap();
        assert!(
            matches!(cli.command, Some(Command::Run { ref job_command, .. }) if job_command.len() == 2)
        );
        assert_eq!(cli.common.job.as_str(), "a");
        let cli = parse("phos-ft --store /tmp/x --interval never").unwrap();
        assert!(cli.job_command.is_empty() && cli.sidecar.interval == Interval(None));
        assert!(matches!(
            parse("phos-ft restore 12").unwrap().command,
            Some(Command::Restore { id: Some(_), .. })
        ));
        let limited = parse("phos-ft --upload-limit 100MiB/s").unwrap();
        assert_eq!(limited.sidecar.upload_limit, Some(100 << 20));
        let cached = parse("phos-ft --cache-size 64GiB").unwrap();
        assert_eq!(cached.sidecar.cache_size, Some(64 << 30));
        assert!(parse("phos-ft --cache-size 1MiB").is_err());
        let kept = RetentionArgs {
            keep_last: Some(5),
            keep_hourly: None,
            keep_daily: Some(7),
        };
        let line = format!("phos-ft {} -- x", kept.flags().join(" "));
        let cli = parse(&line).unwrap();
        assert_eq!(cli.sidecar.keep.rules(), kept.rules());
        let line = format!("phos-ft prune --dry-run {}", kept.flags().join(" "));
        assert!(matches!(
            parse(&line).unwrap().command,
            Some(Command::Prune { keep, dry_run: true, .. }) if keep.rules() == kept.rules()
        ));
        assert_eq!(
            parse("phos-ft list").unwrap().common.store(),
            "/var/lib/phos-ft/store"
        );
    }

    #[rstest]
    #[case(
        "phos-ft --interval soon",
        r#"error: invalid value 'soon' for '--interval <TIME>': "soon" is not a time: write a number with a unit, as in 90s, 5m or 1h30m"#
    )]
    #[case(
        "phos-ft --interval 0s",
        r#"error: invalid value '0s' for '--interval <TIME>': an interval of 0s would hold the job back without end: give at least 100ms, or "never" for checkpoints on demand only"#
    )]
    #[case(
        "phos-ft --host-buffer 1MiB",
        "error: invalid value '1MiB' for '--host-buffer <SIZE>': 1MiB is too small for a pipeline: give at least 64MiB"
    )]
    #[case(
        "phos-ft --job a/b",
        r#"error: invalid value 'a/b' for '--job <NAME>': the job name "a/b" holds '/': use letters, digits, '.', '_' and '-' only, for example --job a_b"#
    )]
    #[case(
        "phos-ft show last",
        r#"error: invalid value 'last' for '<ID>': "last" is not a checkpoint's number: `phos-ft list` shows them"#
    )]
    #[case(
        "phos-ft run",
        "error: the following required arguments were not provided:"
    )]
    #[case("phos-ft --max-restarts -1", "error: unexpected argument '-1' found")]
    #[case(
        "phos-ft --upload-limit 10",
        "error: invalid value '10' for '--upload-limit <SIZE>': 10 a second would not store a checkpoint in a day: give at least 64KiB"
    )]
    #[case(
        "phos-ft --keep-last 0",
        "error: invalid value '0' for '--keep-last <N>': 0 is not in 1..=4294967295"
    )]
    fn bad_input_is_named_with_its_remedy(#[case] line: &str, #[case] message: &str) {
        assert_eq!(parse(line).unwrap_err(), message);
    }
}
