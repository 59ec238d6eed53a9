//! The command line: its grammar, and the words with which something is refused.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};
use phos_policies::host_buffer::Bounds;
use phos_policies::restart::RestartBudget;
use phos_policies::retention::Retention;
use phos_storage::s3::{ChecksumChoice, S3Options, StorageClass};
use phos_storage::{JobName, Key, StoreOptions};

use super::exit;
use crate::engine::{self, CheckpointId, Interval, Start};
use crate::observe::listen::Endpoint;
use crate::observe::traces;
use crate::preemption::Cloud;
use crate::size;

const EXAMPLES: &str = "\
Examples:
  phos-ft -- python train.py
        run the job and checkpoint it every minute to /var/lib/phos-ft
  phos-ft --interval 5m --store s3://bucket/runs --job llama -- torchrun train.py
        checkpoint to object storage, which survives the loss of the machine: run the
        same command on another machine and the job resumes there
  phos-ft run -- python train.py         (container A)
  phos-ft --store s3://bucket/runs       (container B, sharing /run/phos and the GPUs)
        the same as two services, as in docker compose
  phos-ft checkpoint                     take a checkpoint now and wait until it is stored
  phos-ft top                            watch the job: is it safe, what would be lost now
  phos-ft list                           list the checkpoints of the job
  phos-ft restore 12                     resume from checkpoint 12
  phos-ft prune --keep-last 5            keep the newest five checkpoints, delete the rest
  phos-ft verify --deep                  read and check everything that a restore needs
  phos-ft doctor                         check whether this machine can checkpoint and restore
  phos-ft init s3://bucket/runs          set up the bucket (once)
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
    /// Options of every subcommand.
    #[command(flatten)]
    pub common: Common,
    /// Options of the sidecar.
    #[command(flatten)]
    pub sidecar: SidecarArgs,
    /// Options of the agent, which take effect if CMD is given.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// What to do instead of running the sidecar.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// The job: program and arguments. Without it, waits for a job started by `phos-ft run`.
    #[arg(last = true, value_name = "CMD")]
    pub job_command: Vec<OsString>,
}

/// Subcommands that write to a store: only their help shows how objects are written to S3.
const WRITERS: [&str; 5] = ["restore", "init", "prune", "verify", "doctor"];

/// The command line, with each option in the help of those for whom it matters.
pub fn command() -> clap::Command {
    let mut command = Cli::command();
    // Only now the options of all are those of each.
    command.build();
    let others: Vec<String> = (command.get_subcommands())
        .map(|subcommand| subcommand.get_name().to_owned())
        .filter(|name| !WRITERS.contains(&name.as_str()))
        .collect();
    for name in others {
        command = command.mut_subcommand(name, |subcommand| {
            subcommand.mut_args(|arg| match arg.get_help_heading() {
                Some(S3) => arg.hide(true),
                _ => arg,
            })
        });
    }
    command
}

fn const_format_help() -> String {
    format!("{EXAMPLES}\n{}", exit::HELP)
}

/// Headings of the help.
const JOB: &str = "Job";
const STORE: &str = "Store";
const SCHEDULE: &str = "Schedule";
const RESUME: &str = "Resume";
const LIMITS: &str = "Limits";
const OBSERVE: &str = "Metrics and events";
const S3: &str = "Amazon S3";

/// Options of every subcommand.
#[derive(Debug, Clone, Args)]
pub struct Common {
    /// Name of the job: it names the history in the store, and is how agent and sidecar find each other.
    #[arg(long, help_heading = JOB, global = true, default_value = "default", value_name = "NAME", env = "PHOS_JOB", value_parser = job_name)]
    pub job: JobName,
    /// Where checkpoints go: a directory, file:///path, s3://bucket/prefix, gs://…, az://…. Without encryption, anyone who can write there
    /// can run programs on the machine that resumes the job next, and anyone who can read there has the job's memory.
    /// [default: the directory `store` in the state directory]
    #[arg(long, help_heading = STORE, global = true, value_name = "URL", env = "PHOS_STORE")]
    pub store: Option<String>,
    /// Encrypt the job's checkpoints with the key in this file (`phos-ft keygen` makes one), and accept none that is not
    /// encrypted with it. The store never sees the key: if you lose it, you lose the checkpoints. [default: not encrypted]
    #[arg(
        long, help_heading = STORE,
        global = true,
        value_name = "FILE",
        env = "PHOS_ENCRYPTION_KEY_FILE"
    )]
    pub encryption_key_file: Option<PathBuf>,
    /// Refuse to open a store without --encryption-key-file.
    #[arg(long, help_heading = STORE, global = true, env = "PHOS_REQUIRE_ENCRYPTION")]
    pub require_encryption: bool,
    /// How objects are written to S3.
    #[command(flatten)]
    pub s3: S3Args,
    /// Where phos-ft keeps its own data.
    #[arg(
        long, help_heading = STORE,
        global = true,
        default_value = "/var/lib/phos-ft",
        value_name = "DIR",
        env = "PHOS_STATE_DIR"
    )]
    pub state_dir: PathBuf,
    /// Directory shared by agent and sidecar, for their sockets.
    #[arg(
        long, help_heading = JOB,
        global = true,
        default_value = "/run/phos",
        value_name = "DIR",
        env = "PHOS_RUN_DIR"
    )]
    pub run_dir: PathBuf,
    /// A file with values for options that are neither on the command line nor in the environment, in TOML: `interval = "5m"` is what
    /// --interval 5m would be. `phos-ft config` shows where each value comes from. [default: /etc/phos-ft.toml, if it is there]
    #[arg(long, global = true, value_name = "FILE", env = "PHOS_CONFIG")]
    pub config: Option<PathBuf>,
    /// Format of the log, which goes to standard error. $PHOS_LOG sets what is logged (default "info"; "info,phos=debug" for
    /// more of what phos-ft does).
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

impl Common {
    /// How the store is used, by what the command line says of it.
    pub fn store_options(&self, key: Option<Key>) -> StoreOptions {
        let mut options = engine::store_options(key);
        options.s3 = self.s3.options();
        options
    }
}

/// How objects are written to S3; without effect on other stores.
#[derive(Debug, Clone, Default, Args)]
pub struct S3Args {
    /// Storage class of packs in S3, such as INTELLIGENT_TIERING or STANDARD_IA. [default: the bucket's]
    #[arg(
        long, help_heading = S3,
        global = true,
        value_name = "CLASS",
        env = "PHOS_S3_STORAGE_CLASS"
    )]
    pub s3_storage_class: Option<StorageClass>,
    /// Key (id, ARN or alias) of the key management service with which S3 encrypts what phos-ft writes.
    /// [default: as the bucket is set]
    #[arg(long, help_heading = S3, global = true, value_name = "KEY", env = "PHOS_S3_SSE_KMS_KEY", value_parser = key)]
    pub s3_sse_kms_key: Option<String>,
    /// Checksum kept with each object in S3: auto, none, sha256 or crc64nvme. "auto" is sha256 on AWS and none
    /// elsewhere, where some servers refuse it.
    #[arg(
        long, help_heading = S3,
        global = true,
        default_value = "auto",
        value_name = "KIND",
        env = "PHOS_S3_CHECKSUM"
    )]
    pub s3_checksum: ChecksumChoice,
}

impl S3Args {
    /// As the store takes them.
    pub fn options(&self) -> S3Options {
        S3Options {
            storage_class: self.s3_storage_class.clone(),
            sse_kms_key: self.s3_sse_kms_key.clone(),
            checksum: self.s3_checksum,
        }
    }

    /// As a command line.
    pub fn flags(&self) -> Vec<String> {
        let class = self
            .s3_storage_class
            .as_ref()
            .map(|c| c.as_str().to_owned());
        [
            ("--s3-storage-class", class),
            ("--s3-sse-kms-key", self.s3_sse_kms_key.clone()),
            ("--s3-checksum", Some(self.s3_checksum.to_string())),
        ]
        .into_iter()
        .filter_map(|(flag, value)| Some([flag.to_owned(), value?]))
        .flatten()
        .collect()
    }
}

/// Options of `init`.
#[derive(Debug, Clone, Default, Args)]
pub struct InitArgs {
    /// The store; as --store.
    #[arg(value_name = "URL")]
    pub address: Option<String>,
    /// S3: end uploads below the prefix that are incomplete after this many days. [default: 1]
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub abort_uploads_after: Option<u32>,
    /// S3: keep versions of objects. Applies to the whole bucket.
    #[arg(long)]
    pub versioning: bool,
    /// S3: delete versions below the prefix that were deleted or replaced this many days ago.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub expire_versions_after: Option<u32>,
    /// S3: Object Lock, which keeps each version for this many days whoever deletes it (GOVERNANCE), and versions. Applies to the
    /// whole bucket; cannot be undone.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub object_lock: Option<u32>,
    /// S3: encrypt new objects with this key of the key management service. Applies to the whole bucket.
    #[arg(long, value_name = "KEY", value_parser = key)]
    pub sse_kms: Option<String>,
    /// S3: create the bucket if it does not exist.
    #[arg(long)]
    pub create_bucket: bool,
    /// Only say what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// How the result is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

/// How a subcommand prints its result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// As text, for people.
    Text,
    /// As JSON, for programs.
    Json,
}

/// The option of every subcommand that prints a result.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct OutputArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

impl From<OutputArgs> for Output {
    fn from(args: OutputArgs) -> Self {
        match args.json {
            true => Self::Json,
            false => Self::Text,
        }
    }
}

/// Options of `events`.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct EventsArgs {
    /// Go on with what happens next, until the job is over.
    #[arg(long, short)]
    pub follow: bool,
    /// Only events after this number; each event has one in its JSON.
    #[arg(long, value_name = "SEQ", default_value_t = 0)]
    pub after: u64,
    /// How events are printed.
    #[command(flatten)]
    pub output: OutputArgs,
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
    /// Time between checkpoints, such as 30s, 5m or 1h; "never" for checkpoints on demand only; "auto" for the time that loses least of
    /// the job's work, between 5 s and an hour, chosen after each checkpoint from how long it took, how long it held the job and how often the
    /// job has failed so far (at first, one failure a day is assumed). The time is longer where stops would otherwise take more than a tenth of
    /// the job's time.
    #[arg(long, help_heading = SCHEDULE, default_value = "60s", value_name = "TIME", value_parser = interval)]
    pub interval: Interval,
    /// Pinned host memory for GPU memory on its way to or from the store: a size, or two as in 1GiB..64GiB. What leaves a
    /// GPU while the job is held waits there for the store: where a GPU is too full for a snapshot, stops are short only if
    /// everything that changed fits in. So the buffer grows to that size, as long as a quarter of the host's memory (of the container's, if that
    /// is less) stays available, and is given back when memory is short. "auto" is 4GiB and as much more as that allows.
    #[arg(long, help_heading = LIMITS, default_value = "auto", value_name = "SIZE", value_parser = host_buffer)]
    pub host_buffer: HostBuffer,
    /// Whether GPU memory that the job was seen to leave alone after a checkpoint leaves while the job runs, where the GPU has no room for a snapshot.
    /// A checkpoint is dropped if the job writes it too early after all.
    #[arg(long, help_heading = LIMITS, default_value = "auto", value_name = "WHEN")]
    pub copy_beside: CopyBesideArg,
    /// How long a checkpoint may take to begin while GPU work is in flight: it is tried briefly, with the job running in between, the
    /// next try when the job itself waits for its work. At least a minute where the queued work is known to end.
    #[arg(long, help_heading = SCHEDULE, default_value = "10s", value_name = "TIME", value_parser = some_time)]
    pub quiesce_timeout: Duration,
    /// How long a checkpoint may hold the job before its GPU work has ended; after that the job runs and the checkpoint is tried again. A job with
    /// seconds of work queued that never waits for that work needs as many seconds here.
    #[arg(long, help_heading = SCHEDULE, default_value = "250ms", value_name = "TIME", value_parser = some_time)]
    pub hold_limit: Duration,
    /// Which cloud's metadata service is asked every two seconds whether this machine will be taken away (spot interruptions, preemption, and the
    /// maintenance that Google Cloud and Azure announce): a checkpoint is then taken at once, and another one as late as it can be stored. "auto" asks the service of the cloud that the
    /// machine's firmware names, if it does.
    #[arg(long, help_heading = SCHEDULE, default_value = "auto", value_name = "CLOUD", env = "PHOS_PREEMPTION_NOTICES")]
    pub preemption_notices: Cloud,
    /// A file whose existence says that this machine will be taken away, as --preemption-notices does: for schedulers and other clouds. It may hold the
    /// time at which that happens, as in 2026-01-31T08:22:00Z.
    #[arg(long, help_heading = SCHEDULE, value_name = "PATH", env = "PHOS_PREEMPTION_FILE")]
    pub preemption_file: Option<PathBuf>,
    /// Serve metrics (OpenMetrics, at /metrics) and a page about the job over HTTP at this address, such as 127.0.0.1:9464, for everyone who
    /// reaches it; or at a socket for root and the sidecar's user alone, as in unix:/run/x.sock. The socket http.sock in the job's run directory, for root alone, is there in any case.
    #[arg(long, help_heading = OBSERVE, value_name = "ADDRESS", env = "PHOS_METRICS")]
    pub metrics: Option<Endpoint>,
    /// Call this program for each event (`phos-ft events` shows them) as PROGRAM NAME JOB, with the event as a line of JSON on its standard
    /// input. One call at a time, of up to 30 seconds; the job never waits for it, and the sidecar only at its end, for 5 seconds.
    #[arg(long, help_heading = OBSERVE, value_name = "PROGRAM", env = "PHOS_ON_EVENT")]
    pub on_event: Option<PathBuf>,
    /// Send a trace of each checkpoint, with its phases, and of each resume to the collector of OpenTelemetry's at this address, by OTLP over HTTP: such as
    /// http://127.0.0.1:4318. The variables OTEL_EXPORTER_OTLP_HEADERS, OTEL_RESOURCE_ATTRIBUTES and OTEL_SERVICE_NAME have their usual effect.
    #[arg(long, help_heading = OBSERVE, value_name = "URL", env = "PHOS_OTLP_ENDPOINT", value_parser = traces::endpoint)]
    pub otlp_endpoint: Option<String>,
    /// How often a crashed job is brought back within the window before phos-ft gives up.
    #[arg(long, help_heading = RESUME, default_value_t = 5, value_name = "N")]
    pub max_restarts: u32,
    /// The window for --max-restarts.
    #[arg(long, help_heading = RESUME, default_value = "1h", value_name = "TIME", value_parser = duration)]
    pub restart_window: Duration,
    /// Resume from this checkpoint instead of the newest one. Later ones are left behind as a branch of the history: a crash
    /// resumes from what is taken from here on, or from this one. The flag applies each time the job is started, so take it out of a
    /// compose file or a unit once the job has gone back.
    #[arg(long, help_heading = RESUME, value_name = "ID", value_parser = checkpoint)]
    pub from: Option<CheckpointId>,
    /// Begin with the job's first step, whatever checkpoints it has. They are kept as a branch of its history (`phos-ft list`).
    /// This also applies where the store does not show the checkpoints that this machine knows of; without this flag, they are waited for.
    /// It counts once: where the history already began anew like this, it is resumed.
    #[arg(long, help_heading = RESUME, conflicts_with = "from")]
    pub start_fresh: bool,
    /// CPU features (names from /proc/cpuinfo) that the job does not use, although it was started where it could find them:
    /// it is also resumed on a machine without them. If that is wrong, it dies of SIGILL.
    #[arg(long, help_heading = RESUME, value_name = "NAME,…", value_delimiter = ',')]
    pub without_cpu_features: Vec<String>,
    /// How long a starting node waits for a current holder of the job that has missed its renewals: two nodes with the same job do
    /// not take it from each other, and when one is lost the other continues. A start on the same machine never waits. "0s":
    /// the job is taken over at once.
    #[arg(long, help_heading = RESUME, default_value = "30s", value_name = "TIME", value_parser = lease)]
    pub lease: Duration,
    /// Name of this machine in the lease. [default: its host name and start time]
    #[arg(long, help_heading = RESUME, env = "PHOS_NODE_NAME", value_name = "NAME", value_parser = node_name)]
    pub node_name: Option<String>,
    /// Most of the link that uploads to the store may take, per second, such as 100MB or 1GiB. Checkpoints then take longer,
    /// including the last one before the job ends. [default: no limit]
    #[arg(long, help_heading = STORE, value_name = "SIZE", value_parser = upload_limit)]
    pub upload_limit: Option<u64>,
    /// Most host memory for copies of what is stored, which a resume reads before any disk. With room for the whole image (the
    /// job's GPU memory and its CPU image), it is kept decoded, and a resume takes a fraction of the time; twice as much keeps one
    /// whole while the next is stored. It is the sidecar's own memory and is given up when the machine runs short.
    /// [default: none are kept]
    #[arg(long, help_heading = STORE, value_name = "SIZE", value_parser = cache_size)]
    pub host_cache: Option<u64>,
    /// Most disk space, in the state directory, for copies of what goes to a remote store and what comes from there, which a resume
    /// on this machine reads. [default: none are kept]
    #[arg(long, help_heading = STORE, value_name = "SIZE", value_parser = cache_size)]
    pub cache_size: Option<u64>,
    /// Send a checkpoint, the newest at the time, to the (remote) store this often; those in between stay on this machine, in
    /// the state directory, the newest two of them. A crash then costs at most --interval, and the loss of the machine at most TIME. A
    /// checkpoint on demand and the last one before the job ends are sent at once. [default: each is sent]
    #[arg(long, help_heading = STORE, value_name = "TIME", value_parser = duration)]
    pub remote_interval: Option<Duration>,
    /// Which checkpoints to keep.
    #[command(flatten)]
    pub keep: RetentionArgs,
}

/// Which checkpoints to keep. A checkpoint is kept if any of the rules wants it, and the newest is always kept.
/// Without a rule all are kept.
#[derive(Debug, Clone, Copy, Default, Args)]
pub struct RetentionArgs {
    /// Keep the newest N checkpoints. Without any --keep-… flag all are kept.
    #[arg(long, help_heading = STORE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_last: Option<u32>,
    /// Keep the newest checkpoint of each of the newest N hours that have one.
    #[arg(long, help_heading = STORE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_hourly: Option<u32>,
    /// Keep the newest checkpoint of each of the newest N days (UTC) that have one.
    #[arg(long, help_heading = STORE, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub keep_daily: Option<u32>,
}

impl RetentionArgs {
    /// As the policy takes them.
    pub const fn rules(&self) -> Retention {
        Retention {
            last: self.keep_last,
            hourly: self.keep_hourly,
            daily: self.keep_daily,
            drop_branches: false,
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

/// `--host-buffer`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostBuffer(pub Bounds);

impl fmt::Display for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            AUTO => f.write_str("auto"),
            Bounds { least, most } if least == most => write!(f, "{least}"),
            Bounds { least, most } => write!(f, "{least}..{most}"),
        }
    }
}

/// `--host-buffer auto`.
const AUTO: Bounds = Bounds {
    least: 4 << 30,
    most: u64::MAX,
};

impl SidecarArgs {
    /// As the policy takes it.
    pub fn budget(&self) -> RestartBudget {
        RestartBudget {
            max_restarts: self.max_restarts,
            window: self.restart_window,
            ..RestartBudget::default()
        }
    }

    /// As the engine takes it.
    pub fn start(&self) -> Start {
        match self.start_fresh {
            true => Start::Fresh,
            false => Start::Resume,
        }
    }
}

/// Options of the agent.
#[derive(Debug, Clone, Args)]
pub struct AgentArgs {
    /// The criu program (4.1 or newer). [default: beside phos-ft, else from PATH]
    #[arg(long, help_heading = JOB, value_name = "PATH", env = "PHOS_CRIU")]
    pub criu: Option<PathBuf>,
    /// The shim to preload into the job. [default: beside phos-ft, ../lib or /opt/phos/lib]
    #[arg(long, help_heading = JOB, value_name = "PATH", env = "PHOS_SHIM")]
    pub shim: Option<PathBuf>,
    /// Time after SIGTERM for a last checkpoint and for the job to end.
    #[arg(long, help_heading = JOB, default_value = "30s", value_name = "TIME", value_parser = duration)]
    pub grace: Duration,
    /// Files that the job has open for writing are kept in the image up to this size; for larger ones
    /// only the length is kept. Shared memory (/dev/shm) is kept whatever its size.
    #[arg(long, help_heading = LIMITS, default_value = "64MiB", value_name = "SIZE", value_parser = size::parse)]
    pub max_file_size: u64,
    /// Most memory for the CPU image of one checkpoint. [default: half of the machine's]
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = size::parse)]
    pub image_limit: Option<u64>,
    /// Start the job without a sidecar after waiting this long for one; "forever" to wait.
    #[arg(long, help_heading = JOB, default_value = "30s", value_name = "TIME", value_parser = wait)]
    pub sidecar_wait: Wait,
    /// Where privileges are missing, start the job unprotected instead of refusing.
    #[arg(long, help_heading = JOB)]
    pub allow_unprotected: bool,
    /// Run the job as this user: USER, USER:GROUP or USER:GROUP,GROUP,…, given as numbers or as names from the image's /etc/passwd and /etc/group.
    /// phos-ft itself needs root. [default: as phos-ft]
    #[arg(long, help_heading = JOB, value_name = "USER", env = "PHOS_USER")]
    pub user: Option<String>,
    /// With --user: let set-user-ID programs and programs with capabilities (sudo, ping) give the job what they give elsewhere. A job is
    /// not checkpointed while one of its processes has more privileges than its user. Without --user: let the job, which is root, have NET_ADMIN,
    /// SYS_PTRACE, SYS_ADMIN and SYS_TIME as phos-ft has them; in a container such a job is root on the machine.
    #[arg(long, help_heading = JOB)]
    pub allow_new_privileges: bool,
    /// Let the job have this environment variable although it is phos-ft's: PHOS_*, and with `phos-ft … -- CMD`, where job
    /// and sidecar are started with one environment, AWS_*, GOOGLE_* and AZURE_*. Whatever the job has is in its checkpoints.
    /// [default: none of them]
    #[arg(long, help_heading = JOB, value_name = "NAME", value_delimiter = ',', value_parser = variable)]
    pub keep_env: Vec<String>,
    /// What happens to the job's TCP connections at a restore.
    #[arg(long, help_heading = JOB, default_value = "auto", value_name = "HOW")]
    pub tcp: TcpArg,
    /// Let NCCL use NVLink SHARP (NVLS): its multicast objects are taken apart for each checkpoint and made anew after it. Experimental: no
    /// machine with NVLink multicast has tried it yet, and the driver's checkpoint hangs where one stays alive. Without this, NCCL does
    /// without them, which costs all-reduce bandwidth where there is NVSwitch.
    #[arg(long, help_heading = JOB)]
    pub nvls: bool,
    /// Make stops shorter by a smaller CUDA context: the driver has less to save and to restore. Sets CUDA_DEVICE_MAX_CONNECTIONS=1 for the
    /// job, unless it is set already: all streams of a process then share one queue of the GPU, so that independent kernels which are too small
    /// to fill it overlap less. Some trainings ask for it (Megatron-LM with tensor parallelism), others for more than one (Megatron-LM with FSDP,
    /// which does not start then). A job that is resumed has what it was begun with.
    #[arg(long, help_heading = JOB)]
    pub lean_context: bool,
    /// What follows when a process with NCCL communicators is killed or fails and the job's main process goes on without it, as a launcher does
    /// that starts its ranks anew (torchrun --max-restarts).
    #[arg(long, help_heading = RESUME, default_value = "resume", value_name = "WHAT")]
    pub rank_failure: RankFailureArg,
}

/// `--sidecar-wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait(pub Option<Duration>);

/// `--tcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum TcpArg {
    /// Kept when both ends are in the job, otherwise closed.
    Auto,
    /// Closed.
    Close,
    /// Kept.
    Keep,
}

/// `--copy-beside`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum CopyBesideArg {
    /// Where that makes the stop shorter.
    Auto,
    /// Never: everything leaves while the job is held, or from a snapshot.
    Never,
}

/// `--rank-failure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RankFailureArg {
    /// The whole job is ended when other ranks wait for that one for a second, or when new ones are there, and resumes from its newest checkpoint; without
    /// one it is left to the launcher, and where it happens more than three times within ten minutes. A rank that SIGTERM ended did not fail.
    Resume,
    /// It is left to the launcher.
    Leave,
}

/// Subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the job under the agent; the sidecar is another process or container.
    #[command(after_help = "Example: phos-ft run -- python train.py")]
    Run {
        /// Options of the agent.
        #[command(flatten)]
        agent: AgentArgs,
        /// The job: program and arguments.
        #[arg(last = true, value_name = "CMD", required = true)]
        job_command: Vec<OsString>,
    },
    /// Take a checkpoint now and wait until it is stored.
    Checkpoint {
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show what the sidecar is doing.
    Status {
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show the job as it runs, on a terminal: whether it is safe, stops, work under way, events.
    Top,
    /// Show what happened to the job, as far back as the sidecar knows.
    Events(EventsArgs),
    /// List the checkpoints of the job.
    List {
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show everything about one checkpoint.
    Show {
        /// Its number, as `phos-ft list` prints it.
        #[arg(value_name = "ID", value_parser = checkpoint)]
        id: CheckpointId,
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show what changed from one checkpoint to another, by allocation and file.
    Diff {
        /// The first checkpoint.
        #[arg(value_name = "A", value_parser = checkpoint)]
        from: CheckpointId,
        /// The second checkpoint.
        #[arg(value_name = "B", value_parser = checkpoint)]
        to: CheckpointId,
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Write a checkpoint out as plain files: device memory, CPU image, files of the job.
    Export {
        /// Its number, as `phos-ft list` prints it.
        #[arg(value_name = "ID", value_parser = checkpoint)]
        id: CheckpointId,
        /// A directory that is empty or does not exist yet.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Check that what is stored could be restored; damage is named and quarantined.
    #[command(
        after_help = "Restores skip a quarantined checkpoint, and the next checkpoint stores its content again.\n\
        The exit code is 65 if anything is damaged."
    )]
    Verify {
        /// Read every chunk and compare it with its name. Without this flag, only records, manifests and the indices of packs are read.
        #[arg(long)]
        deep: bool,
        /// Only report what is damaged.
        #[arg(long)]
        no_quarantine: bool,
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Remove checkpoints that no rule keeps, and delete what no checkpoint needs.
    #[command(
        after_help = "Safe while the job is running, being restored or verified. A running sidecar does the same \
        after each checkpoint if it is given --keep-…\nExample: phos-ft --job llama prune --keep-last 5 --keep-daily 7"
    )]
    Prune {
        /// Which checkpoints to keep.
        #[command(flatten)]
        keep: RetentionArgs,
        /// Also remove what was left behind when the job resumed from an older checkpoint or began anew, including after it had
        /// ended. Otherwise the rules keep the newest checkpoint of each such branch.
        #[arg(long)]
        drop_branches: bool,
        /// Only show what would be done.
        #[arg(long)]
        dry_run: bool,
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Resume from a checkpoint: starts the job from it, with the command that the job was started with.
    #[command(after_help = "Example: phos-ft --job llama restore 12")]
    Restore {
        /// Its number; the newest checkpoint if left out.
        #[arg(value_name = "ID", value_parser = checkpoint)]
        id: Option<CheckpointId>,
        /// The sidecar's options.
        #[command(flatten)]
        sidecar: Box<SidecarArgs>,
        /// The agent's options.
        #[command(flatten)]
        agent: Box<AgentArgs>,
    },
    /// Make a key file for --encryption-key-file.
    #[command(
        after_help = "Keep a copy of the key outside the store: without it no checkpoint can be restored.\n\
        Example: phos-ft keygen /etc/phos-ft/llama.key"
    )]
    Keygen {
        /// The file to create, which must not exist yet; only its owner may read it.
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Set up a store: write its marker and, for an S3 bucket, apply the requested settings. Shows each setting and what was done about it.
    #[command(
        after_help = "Without options it only adds the rule that ends incomplete uploads below the prefix; rules of others are kept.\n\
        Can be run again at any time. The exit code is 1 if the service refused a requested setting.\n\
        Example: phos-ft init s3://bucket/runs --sse-kms alias/training --dry-run"
    )]
    Init(InitArgs),
    /// Check whether this machine can checkpoint and restore jobs, and name a remedy for what is missing.
    Doctor {
        /// Do what can be done here (close directories to other users, load a module of the kernel), say what was done, and check again.
        #[arg(long)]
        fix: bool,
        /// The criu program to check.
        #[arg(long, value_name = "PATH", env = "PHOS_CRIU")]
        criu: Option<PathBuf>,
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Show the value of each option, and whether it comes from the command line, the environment or the configuration file.
    #[command(
        after_help = "Options of the sidecar stand before `config`, as they do without it.\n\
        Example: phos-ft --interval 5m config"
    )]
    Config {
        /// How the result is printed.
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Print a script that completes phos-ft's command line in a shell.
    #[command(
        after_help = "Examples:\n  phos-ft completions bash > /usr/share/bash-completion/completions/phos-ft\n  \
        phos-ft completions zsh > \"${fpath[1]}/_phos-ft\""
    )]
    Completions {
        /// The shell.
        #[arg(value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of phos-ft and of each subcommand.
    #[command(after_help = "Example: phos-ft man /usr/local/share/man/man1")]
    Man {
        /// The directory to write them to, which must exist.
        #[arg(value_name = "DIR")]
        directory: PathBuf,
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

fn some_time(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    if length.is_zero() {
        return Err("a time greater than zero is needed".into());
    }
    Ok(length)
}

fn lease(text: &str) -> Result<Duration, String> {
    let length = duration(text)?;
    let allowed = Duration::from_secs(3)..=Duration::from_secs(3600);
    if !length.is_zero() && !allowed.contains(&length) {
        return Err(format!(
            "{text:?} is no length for a lease: give 3s to 1h, or 0s to take the job over at once"
        ));
    }
    Ok(length)
}

fn variable(text: &str) -> Result<String, String> {
    if text.is_empty() || text.contains(['=', '\0']) {
        return Err(format!(
            "{text:?} is no name of a variable: give NAME, not NAME=VALUE"
        ));
    }
    Ok(text.to_owned())
}

fn node_name(text: &str) -> Result<String, String> {
    let fits = (1..=64).contains(&text.len());
    if !fits || text.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(format!(
            "{text:?} is no name of a machine: give 1 to 64 characters without spaces"
        ));
    }
    Ok(text.to_owned())
}

fn interval(text: &str) -> Result<Interval, String> {
    if text == "never" {
        return Ok(Interval::Never);
    }
    if text == "auto" {
        return Ok(Interval::Auto);
    }
    let interval = duration(text)?;
    if interval < Duration::from_millis(100) {
        return Err(format!(
            "an interval of {text} would hold the job back without end: give at least 100ms, \"auto\", or \"never\" \
             for checkpoints on demand only"
        ));
    }
    Ok(Interval::Every(interval))
}

fn wait(text: &str) -> Result<Wait, String> {
    if text == "forever" {
        Ok(Wait(None))
    } else {
        duration(text).map(|d| Wait(Some(d)))
    }
}

fn host_buffer(text: &str) -> Result<HostBuffer, String> {
    if text == "auto" {
        return Ok(HostBuffer(AUTO));
    }
    let (least, most) = text.split_once("..").unwrap_or((text, text));
    let size = |text: &str| size::parse(text).map_err(|e| e.to_string());
    let (least, most) = (size(least)?, size(most)?);
    if least < 64 << 20 {
        return Err(format!(
            "{text} is too small for a pipeline: give at least 64MiB"
        ));
    }
    if most < least {
        return Err(format!(
            "{text} ends below its beginning: write the smaller size first"
        ));
    }
    Ok(HostBuffer(Bounds { least, most }))
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

fn key(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("name a key: its id, ARN or alias, as in alias/training".into()),
        key => Ok(key.to_owned()),
    }
}

fn checkpoint(text: &str) -> Result<CheckpointId, String> {
    text.parse()
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;
    use rstest::rstest;

    use super::*;

    fn parse(line: &str) -> Result<Cli, String> {
        (command().try_get_matches_from(line.split_whitespace()))
            .and_then(|matches| Cli::from_arg_matches(&matches))
            .map_err(|e| e.to_string().lines().next().unwrap_or_default().to_owned())
    }

    #[test]
    fn it_is_sound() {
        Cli::command().debug_assert();
    }

    fn help(line: &str) -> String {
        let outcome = command().try_get_matches_from(line.split_whitespace());
        outcome.unwrap_err().to_string()
    }

    #[test]
    fn help_is_grouped_and_shows_what_matters() {
        let text = help("phos-ft --help");
        let headings: Vec<&str> = [JOB, STORE, SCHEDULE, RESUME, LIMITS, S3].into();
        for heading in headings {
            assert!(
                text.contains(&format!("\n{heading}:\n")),
                "{heading}:\n{text}"
            );
        }
        for (line, shown) in [
            ("phos-ft --help", true),
            ("phos-ft prune --help", true),
            ("phos-ft init --help", true),
            ("phos-ft list --help", false),
            ("phos-ft keygen --help", false),
            ("phos-ft run --help", false),
        ] {
            let text = help(line);
            assert_eq!(text.contains("--s3-checksum"), shown, "{line}:\n{text}");
        }
        // Hidden is not refused.
        let cli = parse("phos-ft list --s3-checksum none").unwrap();
        assert_eq!(cli.common.s3.s3_checksum, ChecksumChoice::None);
    }

    #[test]
    fn the_lines_of_the_design() {
        let cli = parse("phos-ft --interval 60s --store s3://bucket/prefix -- python train.py -v")
            .unwrap();
        assert_eq!(cli.job_command, ["python", "train.py", "-v"]);
        assert_eq!(
            cli.sidecar.interval,
            Interval::Every(Duration::from_secs(60))
        );
        assert_eq!(cli.common.store(), "s3://bucket/prefix");
        let cli = parse("phos-ft run --job a -- python train.py").unwrap();
        assert!(
            matches!(cli.command, Some(Command::Run { ref job_command, .. }) if job_command.len() == 2)
        );
        assert_eq!(cli.common.job.as_str(), "a");
        let cli = parse("phos-ft --store /tmp/x --interval never").unwrap();
        assert!(cli.job_command.is_empty() && cli.sidecar.interval == Interval::Never);
        assert!(matches!(
            parse("phos-ft restore 12").unwrap().command,
            Some(Command::Restore { id: Some(_), .. })
        ));
        let limited = parse("phos-ft --upload-limit 100MiB/s").unwrap();
        assert_eq!(limited.sidecar.upload_limit, Some(100 << 20));
        let tiered = parse("phos-ft --remote-interval 10m --from L7").unwrap();
        assert_eq!(
            tiered.sidecar.remote_interval,
            Some(Duration::from_secs(600))
        );
        assert_eq!(tiered.sidecar.from.unwrap().to_string(), "L7");
        let cached = parse("phos-ft --cache-size 64GiB").unwrap();
        assert_eq!(cached.sidecar.cache_size, Some(64 << 30));
        assert!(parse("phos-ft --cache-size 1MiB").is_err());
        let leased = parse("phos-ft --lease 1m --node-name a1").unwrap();
        assert_eq!(leased.sidecar.lease, Duration::from_secs(60));
        assert_eq!(leased.sidecar.node_name.as_deref(), Some("a1"));
        assert_eq!(
            parse("phos-ft --lease 0s").unwrap().sidecar.lease,
            Duration::ZERO
        );
        for bad in ["--lease 1s", "--lease 2h", "--lease x", "--node-name="] {
            assert!(parse(&format!("phos-ft {bad}")).is_err(), "{bad}");
        }
        let in_memory = parse("phos-ft --host-cache 16GiB").unwrap();
        assert_eq!(in_memory.sidecar.host_cache, Some(16 << 30));
        assert!(parse("phos-ft --host-cache 1MiB").is_err());
        for line in [
            "phos-ft --encryption-key-file k -- x",
            "phos-ft list --encryption-key-file k",
        ] {
            let file = parse(line).unwrap().common.encryption_key_file;
            assert_eq!(file, Some(PathBuf::from("k")), "{line}");
        }
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
        let cli =
            parse("phos-ft --s3-storage-class standard_ia --s3-sse-kms-key alias/k -- x").unwrap();
        let line = format!("phos-ft {} run -- x", cli.common.s3.flags().join(" "));
        assert_eq!(
            parse(&line).unwrap().common.s3.options(),
            cli.common.s3.options()
        );
        assert!(matches!(
            parse("phos-ft init s3://bucket/runs --object-lock 7 --dry-run")
                .unwrap()
                .command,
            Some(Command::Init(InitArgs {
                object_lock: Some(7),
                dry_run: true,
                ..
            }))
        ));
        assert_eq!(
            parse("phos-ft list").unwrap().common.store(),
            "/var/lib/phos-ft/store"
        );
    }

    #[rstest]
    #[case("auto", 4 << 30, u64::MAX)]
    #[case("512MiB", 512 << 20, 512 << 20)]
    #[case("64MiB..2GiB", 64 << 20, 2 << 30)]
    fn a_host_buffer_is_a_size_or_a_range(
        #[case] text: &str,
        #[case] least: u64,
        #[case] most: u64,
    ) {
        let buffer = host_buffer(text).unwrap();
        assert_eq!(buffer.0, Bounds { least, most });
        // The supervisor hands it on to each sidecar.
        assert_eq!(host_buffer(&buffer.to_string()), Ok(buffer));
    }

    #[rstest]
    #[case(
        "phos-ft --interval soon",
        r#"error: invalid value 'soon' for '--interval <TIME>': "soon" is not a time: write a number with a unit, as in 90s, 5m or 1h30m"#
    )]
    #[case(
        "phos-ft --interval 0s",
        r#"error: invalid value '0s' for '--interval <TIME>': an interval of 0s would hold the job back without end: give at least 100ms, "auto", or "never" for checkpoints on demand only"#
    )]
    #[case(
        "phos-ft --host-buffer 1MiB",
        "error: invalid value '1MiB' for '--host-buffer <SIZE>': 1MiB is too small for a pipeline: give at least 64MiB"
    )]
    #[case(
        "phos-ft --host-buffer 4GiB..1GiB",
        "error: invalid value '4GiB..1GiB' for '--host-buffer <SIZE>': 4GiB..1GiB ends below its beginning: write the smaller size first"
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
        "phos-ft --s3-storage-class glacier",
        "error: invalid value 'glacier' for '--s3-storage-class <CLASS>': objects of the class GLACIER cannot be read before they are restored, which takes hours: use STANDARD, INTELLIGENT_TIERING, STANDARD_IA, ONEZONE_IA or GLACIER_IR"
    )]
    #[case(
        "phos-ft init --object-lock 0",
        "error: invalid value '0' for '--object-lock <DAYS>': 0 is not in 1..=3650"
    )]
    #[case(
        "phos-ft --keep-last 0",
        "error: invalid value '0' for '--keep-last <N>': 0 is not in 1..=4294967295"
    )]
    fn bad_input_is_named_with_its_remedy(#[case] line: &str, #[case] message: &str) {
        assert_eq!(parse(line).unwrap_err(), message);
    }
}
