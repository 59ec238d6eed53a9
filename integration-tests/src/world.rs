//! A world: one machine's worth of directories, a GPU, a store, and phos-ft started in it.

use std::fs;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use tempfile::TempDir;

use crate::events::Event;
use crate::gpu::{Gpu, SimGpu};
use crate::processes::{Tree, kill_all, processes, processes_with};
use crate::reference;
use crate::trace::LossTrace;

/// Where the built programs are.
pub fn bin_dir() -> PathBuf {
    if let Some(dir) = std::env::var_os("PHOS_BIN_DIR") {
        return dir.into();
    }
    let exe = std::env::current_exe().unwrap_or_default();
    let dir = exe.parent().unwrap_or(Path::new("."));
    // Tests lie in target/<profile>/deps, programs one above.
    if dir.ends_with("deps") {
        dir.parent().unwrap_or(dir).to_path_buf()
    } else {
        dir.to_path_buf()
    }
}

/// Polls `condition` until it yields something or `limit` has passed.
///
/// # Errors
/// Names `what` it was waiting for.
pub fn wait_for<T>(what: &str, limit: Duration, condition: impl FnMut() -> Option<T>) -> Result<T> {
    wait_every(Duration::from_millis(5), what, limit, condition)
}

/// The same for a condition that is costly to look at.
///
/// # Errors
/// Names `what` it was waiting for.
pub fn wait_every<T>(
    pause: Duration,
    what: &str,
    limit: Duration,
    mut condition: impl FnMut() -> Option<T>,
) -> Result<T> {
    let start = Instant::now();
    loop {
        let look = Instant::now();
        if let Some(value) = condition() {
            return Ok(value);
        }
        if start.elapsed() > limit {
            bail!("gave up after {:.0?} waiting for {what}", start.elapsed());
        }
        // A look at all processes of a busy machine takes the time that those need who are waited for: most of it is left to them.
        std::thread::sleep(pause.max((look.elapsed() * 10).min(COSTLY)));
    }
}

/// Between two looks that are a program or a long file each.
pub const COSTLY: Duration = Duration::from_millis(100);

/// The same command in a session of its own, as a user's would be. It is killed if the test, or the thread that has started it, ends before it. Only the
/// program, its arguments, its directory and its changes of the environment are taken over; redirections, `uid` and `process_group` are not.
///
/// Where the kernel groups by sessions (`sched_autogroup_enabled`), threads in `SCHED_IDLE` have what the rest of their session leaves. With all
/// tests in one session, those of a sidecar would have what no other test wants.
fn in_a_session(command: &Command) -> Command {
    let mut own = Command::new("setpriv");
    own.args(["--pdeathsig", "KILL", "setsid"])
        .arg(command.get_program())
        .args(command.get_args())
        .stdin(Stdio::null());
    if let Some(dir) = command.get_current_dir() {
        own.current_dir(dir);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => own.env(name, value),
            None => own.env_remove(name),
        };
    }
    own
}

/// A checkpoint as `phos-ft list --json` prints it.
#[derive(Debug, Clone, Deserialize)]
pub struct Checkpoint {
    /// Its number, growing with each commit of the job.
    pub number: u64,
    /// The time the job was held back, in microseconds.
    pub stop_us: u64,
    /// Bytes of the image: GPU memory, CPU image and files.
    pub image_bytes: u64,
    /// Bytes in chunks that no earlier image had.
    pub new_bytes: u64,
    /// Bytes added to the store.
    pub stored_bytes: u64,
    /// Why it was taken.
    pub trigger: String,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Listing {
    pub(crate) checkpoints: Vec<Checkpoint>,
}

/// Steps of a job, which has no end of its own: however slow the machine is, it trains until the test has seen enough and
/// tells it to finish.
const ENDLESS: u64 = 1 << 40;

/// What the job is and how phos-ft runs it.
#[derive(Debug, Clone)]
pub struct JobSpec {
    /// Further arguments of the trainer.
    pub trainer: Vec<String>,
    /// `--interval`.
    pub interval: String,
    /// Further arguments of phos-ft.
    pub phos: Vec<String>,
    /// Further environment of everything that is started.
    pub env: Vec<(String, String)>,
}

impl JobSpec {
    /// The same with one more variable.
    #[must_use]
    pub fn with_env(&self, name: &str, value: &str) -> JobSpec {
        let mut spec = self.clone();
        spec.env.push((name.to_owned(), value.to_owned()));
        spec
    }

    /// The same with further arguments of phos-ft.
    #[must_use]
    pub fn with_phos(&self, args: &[&str]) -> JobSpec {
        let mut spec = self.clone();
        spec.phos.extend(args.iter().map(|a| (*a).to_owned()));
        spec
    }

    /// The same with further arguments of the trainer.
    #[must_use]
    pub fn with_trainer(&self, args: &[&str]) -> JobSpec {
        let mut spec = self.clone();
        spec.trainer.extend(args.iter().map(|a| (*a).to_owned()));
        spec
    }
}

impl Default for JobSpec {
    fn default() -> Self {
        JobSpec {
            trainer: vec!["--step-ms".into(), "80".into()],
            interval: "1s".into(),
            phos: Vec::new(),
            env: Vec::new(),
        }
    }
}

/// One machine.
pub struct World {
    /// Its GPU. Dropped before the directory that its memory is mounted in.
    pub gpu: Gpu,
    /// `--store`.
    pub store: String,
    /// `--job`, unique on this machine.
    pub job: String,
    /// Environment of everything that is started here, besides the GPU's.
    pub env: Vec<(String, String)>,
    dir: TempDir,
}

impl World {
    /// A world with one simulated GPU and a directory as its store.
    ///
    /// # Errors
    /// See [`SimGpu::new`].
    pub fn simulated(devices: u32, mib: u64) -> Result<World> {
        World::new(|dir| Ok(Gpu::Sim(SimGpu::new(dir, devices, mib)?)))
    }

    /// A world with the GPU that `make` yields, given the world's directory.
    ///
    /// # Errors
    /// Those of `make`, and when the directory cannot be made.
    pub fn new(make: impl FnOnce(&Path) -> Result<Gpu>) -> Result<World> {
        let dir = tempfile::Builder::new()
            .prefix("phos-world-")
            .tempdir()
            .context("making the world's directory")?;
        let gpu = make(dir.path())?;
        let store = format!("file://{}", dir.path().join("store").display());
        let unique = dir
            .path()
            .file_name()
            .and_then(|n| n.to_str())
            .unwrap_or("x")
            .trim_start_matches("phos-world-")
            .replace(|c: char| !c.is_ascii_alphanumeric(), "");
        for below in ["work", "tmp"] {
            fs::create_dir_all(dir.path().join(below))?;
        }
        Ok(World {
            store,
            job: format!("job-{unique}"),
            env: Vec::new(),
            gpu,
            dir,
        })
    }

    /// Its directory.
    pub fn path(&self, below: &str) -> PathBuf {
        self.dir.path().join(below)
    }

    /// The file that the trainer logs its losses to.
    pub fn log(&self) -> PathBuf {
        self.path("work/loss.log")
    }

    /// Once this is there the job makes no pauses: the test has done its work, and waits for the end.
    fn hurry_at(&self) -> PathBuf {
        self.path("work/hurry")
    }

    /// Lets the job go on to its end without pauses.
    ///
    /// # Errors
    /// The file system's.
    pub fn hurry(&self) -> Result<()> {
        Ok(fs::write(self.hurry_at(), b"")?)
    }

    /// The step at which this is there is the job's last one.
    fn finish_at(&self) -> PathBuf {
        self.path("work/finish")
    }

    /// Lets the job end with the step that it is at.
    ///
    /// # Errors
    /// The file system's.
    pub fn finish(&self) -> Result<()> {
        Ok(fs::write(self.finish_at(), b"")?)
    }

    /// `--run-dir`.
    pub fn run_dir(&self) -> PathBuf {
        self.path("run")
    }

    /// The simulated GPU.
    ///
    /// # Errors
    /// When the world's GPU is real.
    pub fn sim(&self) -> Result<&SimGpu> {
        match &self.gpu {
            Gpu::Sim(sim) => Ok(sim),
            Gpu::Real => bail!("this world has a real GPU"),
        }
    }

    fn command(&self, program: &str, spec_env: &[(String, String)]) -> Command {
        let mut command = Command::new(bin_dir().join(program));
        command
            .current_dir(self.path("work"))
            .env("TMPDIR", self.path("tmp"))
            .envs(self.gpu.env())
            .envs(self.env.iter().cloned())
            .envs(spec_env.iter().cloned())
            .stdin(Stdio::null());
        command
    }

    fn trainer_args(&self, spec: &JobSpec, steps: u64, log: &Path) -> Vec<String> {
        let mut args = vec![
            "--steps".to_owned(),
            steps.to_string(),
            "--log".to_owned(),
            log.display().to_string(),
        ];
        if matches!(self.gpu, Gpu::Sim(_)) {
            // What is looked at does not depend on how long a processor multiplies.
            args.extend(["--batch".to_owned(), "16".to_owned()]);
            // Given twice, it would be both.
            if !spec.trainer.iter().any(|argument| argument == "--layers") {
                args.extend(["--layers".to_owned(), "64,128,128,16".to_owned()]);
            }
        }
        args.extend(spec.trainer.iter().cloned());
        args
    }

    /// The trainer's arguments for a job whose end the test decides.
    pub fn job_args(&self, spec: &JobSpec) -> Vec<String> {
        let mut args = vec![
            "--hurry-at".to_owned(),
            self.hurry_at().display().to_string(),
            "--finish-at".to_owned(),
            self.finish_at().display().to_string(),
        ];
        args.extend(self.trainer_args(spec, ENDLESS, &self.log()));
        args
    }

    /// What the first `steps` steps of a run without phos-ft log: what every other run must equal. It is trained once for all tests that need the same
    /// ([`crate::reference`]).
    ///
    /// # Errors
    /// When the trainer fails; its standard error is quoted.
    pub fn reference(&self, spec: &JobSpec, steps: u64) -> Result<LossTrace> {
        match &self.gpu {
            Gpu::Sim(sim) => {
                let spec = &reference::essential(spec);
                let arguments = self.trainer_args(spec, 0, Path::new(""));
                let what = (arguments, &spec.env, sim.devices());
                reference::shared(&what, steps, |steps, log| self.train(spec, steps, log))
            }
            Gpu::Real => self.alone(spec, steps),
        }
    }

    /// The same trained for this world, with all that the program does besides, but its pauses.
    ///
    /// # Errors
    /// As [`Self::reference`].
    pub fn alone(&self, spec: &JobSpec, steps: u64) -> Result<LossTrace> {
        let spec = &spec.with_trainer(&["--step-ms", "0"]);
        let log = self.path("work/alone.log");
        self.train(spec, steps, &log)?;
        LossTrace::read(&log)
    }

    fn train(&self, spec: &JobSpec, steps: u64, log: &Path) -> Result<()> {
        let output = self
            .command("phos-trainer", &spec.env)
            .args(self.trainer_args(spec, steps, log))
            .output()
            .context("starting phos-trainer")?;
        if !output.status.success() {
            bail!(
                "the undisturbed run failed ({}): {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(())
    }

    /// Starts `phos-ft --interval … --store … -- phos-trainer …`. Output goes to
    /// `phos-ft.<n>.log` in the world's directory.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn start(&self, spec: &JobSpec) -> Result<PhosFt> {
        self.spawn(self.trainer(spec))
    }

    /// What [`Self::start`] starts.
    pub fn trainer(&self, spec: &JobSpec) -> Command {
        let mut command = self.phos_ft(spec);
        command
            .arg("--")
            .arg(bin_dir().join("phos-trainer"))
            .args(self.job_args(spec));
        command
    }

    /// `phos-ft` with the flags that place it in this world, to be completed by the caller.
    pub fn phos_ft(&self, spec: &JobSpec) -> Command {
        self.phos_ft_at(spec, "")
    }

    fn phos_ft_at(&self, spec: &JobSpec, below: &str) -> Command {
        let mut command = self.command("phos-ft", &spec.env);
        command
            .args(["--interval", &spec.interval])
            .args(["--store", &self.store])
            .args(["--job", &self.job])
            .arg("--run-dir")
            .arg(self.path(below).join("run"))
            .arg("--state-dir")
            .arg(self.path(below).join("state"))
            .args(&spec.phos);
        command
    }

    /// The same job on another machine: with directories of its own, and what the job writes where it always is. The two
    /// must not run it at a time. [`Self::tree`] does not have what runs there.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_elsewhere(&self, spec: &JobSpec) -> Result<PhosFt> {
        let mut command = self.phos_ft_at(spec, "elsewhere");
        command
            .arg("--")
            .arg(bin_dir().join("phos-trainer"))
            .args(self.job_args(spec));
        self.spawn(command)
    }

    /// `phos-ft run` with the job, whose sidecar is another process.
    #[must_use]
    pub fn agent(&self, spec: &JobSpec) -> Command {
        self.agent_with(spec, &[])
    }

    /// The same with further flags.
    #[must_use]
    pub fn agent_with(&self, spec: &JobSpec, flags: &[&str]) -> Command {
        let mut command = self.command("phos-ft", &spec.env);
        command
            .args(["run", "--store", &self.store])
            .args(["--job", &self.job])
            .arg("--run-dir")
            .arg(self.run_dir())
            .args(flags)
            .arg("--")
            .arg(bin_dir().join("phos-trainer"))
            .args(self.job_args(spec));
        command
    }

    /// Starts a prepared command with its output in a fresh log file.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub fn spawn(&self, command: Command) -> Result<PhosFt> {
        self.spawn_logged(in_a_session(&command))
    }

    /// The same as another user, in the group of the same number.
    ///
    /// # Errors
    /// As [`Self::spawn`].
    pub fn spawn_as(&self, user: u32, command: Command) -> Result<PhosFt> {
        let mut command = in_a_session(&command);
        command.uid(user).gid(user);
        self.spawn_logged(command)
    }

    fn spawn_logged(&self, mut command: Command) -> Result<PhosFt> {
        let n = (0..)
            .find(|n| !self.path(&format!("phos-ft.{n}.log")).exists())
            .unwrap_or(0);
        let output = self.path(&format!("phos-ft.{n}.log"));
        let file = fs::File::create(&output)?;
        let child = command
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        Ok(PhosFt { child, output })
    }

    /// Runs a subcommand (`list`, `status`, …) with this world's store, job and directories.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn run(&self, subcommand: &[&str]) -> Result<std::process::Output> {
        let mut command = self.command("phos-ft", &[]);
        command
            .args(subcommand)
            .args(["--store", &self.store])
            .args(["--job", &self.job])
            .arg("--run-dir")
            .arg(self.run_dir())
            .arg("--state-dir")
            .arg(self.path("state"));
        command
            .output()
            .with_context(|| format!("running {command:?}"))
    }

    /// Committed checkpoints, oldest first.
    ///
    /// # Errors
    /// When `phos-ft list --json` fails or prints something else.
    pub fn checkpoints(&self) -> Result<Vec<Checkpoint>> {
        let output = self.run(&["list", "--json"])?;
        if !output.status.success() {
            bail!(
                "phos-ft list failed ({}): {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        let listing: Listing = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{}", String::from_utf8_lossy(&output.stdout)))?;
        let mut list = listing.checkpoints;
        list.sort_by_key(|c| c.number);
        Ok(list)
    }

    /// What a subcommand prints as JSON.
    ///
    /// # Errors
    /// When it fails (its standard error is quoted) or prints something else.
    pub fn json(&self, subcommand: &[&str]) -> Result<serde_json::Value> {
        let output = self.run(&[subcommand, &["--json"]].concat())?;
        if !output.status.success() {
            bail!(
                "phos-ft {subcommand:?} ended with {}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{}", String::from_utf8_lossy(&output.stdout)))
    }

    /// A figure of a checkpoint, as `phos-ft show --json` prints it.
    ///
    /// # Errors
    /// When there is no such checkpoint or figure.
    pub fn figure(&self, checkpoint: u64, name: &str) -> Result<u64> {
        let output = self.run(&["show", &checkpoint.to_string(), "--json"])?;
        let shown: serde_json::Value = serde_json::from_slice(&output.stdout)
            .with_context(|| format!("{}", String::from_utf8_lossy(&output.stderr)))?;
        shown["figures"][name]
            .as_u64()
            .with_context(|| format!("checkpoint {checkpoint} has no figure {name}: {shown}"))
    }

    /// Waits until `n` checkpoints are committed and returns them.
    ///
    /// # Errors
    /// When `limit` passes, or phos-ft ends before (its output is quoted).
    pub fn wait_checkpoints(
        &self,
        phos: &mut PhosFt,
        n: usize,
        limit: Duration,
    ) -> Result<Vec<Checkpoint>> {
        let what = format!("{n} checkpoints");
        wait_every(COSTLY, &what, limit, || {
            if let Ok(Some(status)) = phos.child.try_wait() {
                return Some(Err(anyhow::anyhow!(
                    "phos-ft ended ({status}) before {n} checkpoints:\n{}",
                    phos.tail()
                )));
            }
            match self.checkpoints() {
                Ok(list) if list.len() >= n => Some(Ok(list)),
                Ok(_) => None,
                Err(_) => None,
            }
        })
        .with_context(|| phos.tail())?
    }

    /// Its processes that are alive.
    pub fn tree(&self) -> Tree {
        let log = self.log().display().to_string();
        let run_dir = self.run_dir().display().to_string();
        let mut tree = Tree::default();
        for (pid, line) in processes() {
            if line.contains("phos-ft") {
                if line.contains(&run_dir) {
                    tree.of_phos_ft(&line).push(pid);
                }
            } else if line.contains("phos-trainer") && line.contains(&log) {
                tree.job.push(pid);
            }
        }
        tree
    }

    /// Everything dies at once and everything local is lost: run directory, state, the trainer's
    /// files, temporary ones too. The store is what is left.
    ///
    /// # Errors
    /// When processes survive SIGKILL or files cannot be removed.
    pub fn lose_node(&self) -> Result<()> {
        self.kill_everything()?;
        for below in ["run", "state", "tmp"] {
            match fs::remove_dir_all(self.path(below)) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(e.into()),
                _ => {}
            }
        }
        fs::create_dir(self.path("tmp"))?;
        for entry in fs::read_dir(self.path("work"))? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    /// SIGKILLs agent, sidecar and job and waits until they are gone.
    ///
    /// # Errors
    /// When something survives.
    pub fn kill_everything(&self) -> Result<()> {
        wait_for("all processes to be gone", Duration::from_secs(20), || {
            let tree = self.tree();
            kill_all(&tree.sidecar);
            kill_all(&tree.agent);
            kill_all(&tree.job);
            kill_all(&tree.commands);
            (tree == Tree::default()).then_some(())
        })
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Else it brings back what is killed.
        kill_all(&processes_with(&[
            "phos-ft",
            &self.path("elsewhere").display().to_string(),
        ]));
        let _ = self.kill_everything();
        if std::thread::panicking() || std::env::var_os("PHOS_KEEP_WORLD").is_some() {
            eprintln!("the world is kept at {}", self.dir.path().display());
            self.dir.disable_cleanup(true);
        }
    }
}

/// A started `phos-ft`.
pub struct PhosFt {
    /// The process.
    pub child: Child,
    /// Its standard output and error.
    pub output: PathBuf,
}

impl PhosFt {
    /// The end of its output, and what it warned of before that, for messages.
    pub fn tail(&self) -> String {
        let text = fs::read_to_string(&self.output).unwrap_or_default();
        // A store that is away would be all that is seen.
        let is_told = |line: &&str| !line.contains(" object_store::client::retry: ");
        let lines: Vec<&str> = text.lines().filter(is_told).collect();
        let (before, end) = lines.split_at(lines.len().saturating_sub(60));
        (before.iter())
            .filter(|line| line.contains(" WARN ") || line.contains(" ERROR "))
            .chain(end)
            .copied()
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// All of its output, in lower case.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.output)
            .unwrap_or_default()
            .to_lowercase()
    }

    /// How often that happened, by its log.
    pub fn times(&self, event: Event) -> usize {
        event.times_in(&fs::read_to_string(&self.output).unwrap_or_default())
    }

    /// Waits until it ends.
    ///
    /// # Errors
    /// When `limit` passes; its output is quoted.
    pub fn wait(&mut self, limit: Duration) -> Result<ExitStatus> {
        let child = &mut self.child;
        wait_for("phos-ft to end", limit, || child.try_wait().ok().flatten())
            .with_context(|| self.tail())
    }
}
