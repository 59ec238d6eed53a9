//! Containers: the services of `docker/compose.two-nodes.yaml` and `docker/compose.sim.yaml`, brought up, cut off and killed.
//!
//! # Rules
//!
//! * Everything of a [`Stack`] has its project's label, and is gone, volumes included, when it is dropped. What a test left
//!   behind that was killed goes when the next stack is made.
//! * Compose is used for what users do with it (`up`, `stop`, `restart`); what failing machines do is done with Docker.
//! * The images are made by `scripts/docker-images.sh`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::trace::LossTrace;
use crate::world::{Checkpoint, Listing, wait_every};

/// Long enough for anything that works, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// Between two looks: each is a `docker` of its own, and the machine has other work.
const PAUSE: Duration = Duration::from_millis(500);

/// A job that was given this path as `--finish-at` ends when [`Stack::finish`] says so.
pub const FINISH_AT: &str = "/work/finish";

/// The label by which Compose knows what is a project's.
const PROJECT: &str = "com.docker.compose.project";

/// Waits until `condition` yields something; not for longer than [`LIMIT`].
///
/// # Errors
/// Names `what` it was waiting for.
pub fn wait_for<T>(what: &str, condition: impl FnMut() -> Option<T>) -> Result<T> {
    wait_every(PAUSE, what, LIMIT, condition)
}

/// The project's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap_or(Path::new("."))
        .to_path_buf()
}

/// Runs a program to its end; its standard output.
///
/// # Errors
/// When it fails; what it said is quoted.
pub fn run(command: &mut Command) -> Result<String> {
    let output = outcome(command)?;
    ensure!(
        output.status.success(),
        "{command:?} ended with {}: {}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// One that hangs is not waited for: what polls would never end.
fn outcome(command: &mut Command) -> Result<Output> {
    let mut limited = Command::new("timeout");
    limited.args(["--foreground", "400"]);
    limited.arg(command.get_program());
    limited.args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        limited.current_dir(directory);
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    limited
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("running {command:?}"))
}

/// `docker ARGUMENT…`; its standard output.
///
/// # Errors
/// As [`run`].
pub fn docker(arguments: &[&str]) -> Result<String> {
    run(Command::new("docker").args(arguments))
}

/// What of the compose file is set by variables.
#[derive(Debug, Clone)]
pub struct Services {
    /// The trainer's image.
    pub image: String,
    /// The trainer's command.
    pub command: Vec<String>,
    /// `--user`.
    pub user: String,
    /// `--interval`.
    pub interval: String,
    /// Further variables.
    pub env: Vec<(String, String)>,
}

impl Default for Services {
    fn default() -> Self {
        Services {
            image: "phos-trainer:trixie".into(),
            command: Vec::new(),
            user: "0:0".into(),
            interval: "2s".into(),
            env: Vec::new(),
        }
    }
}

/// Compose with a file of `docker/`, in that folder: some versions look there for a relative seccomp profile, others in the current one.
pub fn compose_of(file: &str) -> Command {
    static PLUGIN: OnceLock<bool> = OnceLock::new();
    let plugin = PLUGIN.get_or_init(|| docker(&["compose", "version"]).is_ok());
    let mut command = if *plugin {
        let mut command = Command::new("docker");
        command.arg("compose");
        command
    } else {
        Command::new("docker-compose")
    };
    command
        .arg("--file")
        .arg(file)
        .current_dir(root().join("docker"));
    command
}

/// A node, as its services are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Node {
    /// The first.
    A,
    /// The one that takes over.
    B,
    /// The only one, of `compose.sim.yaml`.
    Only,
}

impl Node {
    /// Its trainer service.
    pub fn trainer(self) -> &'static str {
        match self {
            Node::A => "trainer-a",
            Node::B => "trainer-b",
            Node::Only => "trainer",
        }
    }

    /// Its phos-ft service.
    pub fn sidecar(self) -> &'static str {
        match self {
            Node::A => "phos-ft-a",
            Node::B => "phos-ft-b",
            Node::Only => "phos-ft",
        }
    }

    /// What ends the names of its network and volumes.
    fn letter(self) -> &'static str {
        match self {
            Node::A => "a",
            Node::B => "b",
            Node::Only => "",
        }
    }
}

/// A compose project.
pub struct Stack {
    project: String,
    /// The compose file, in `docker/`.
    file: &'static str,
    /// What its services are made of.
    pub services: Services,
    log: PathBuf,
    /// The services' containers, as far as they are known: Compose may replace each.
    containers: Mutex<BTreeMap<String, String>>,
}

impl Stack {
    /// A project of its own with the S3 server up. `log` is the loss log's path in the trainer's container.
    ///
    /// # Errors
    /// No Docker, no images: their makers are named.
    pub fn new(services: Services, log: &str) -> Result<Stack> {
        Stack::of("compose.two-nodes.yaml", services, log)
    }

    /// The same of another compose file of `docker/`.
    ///
    /// # Errors
    /// As [`Stack::new`].
    pub fn of(file: &'static str, services: Services, log: &str) -> Result<Stack> {
        for image in [&services.image, "phos-ft-sim", "phos-s3"] {
            docker(&["image", "inspect", "-f", "ok", image]).with_context(|| {
                format!("the image {image} is missing: scripts/docker-images.sh makes it")
            })?;
        }
        remove_abandoned();
        let stack = Stack {
            // Whose it is shows when it is left behind.
            project: format!(
                "{}{}x{:08x}",
                prefix(),
                std::process::id(),
                rand::random::<u32>()
            ),
            file,
            services,
            log: log.into(),
            containers: Mutex::default(),
        };
        stack.up(&["s3"])?;
        Ok(stack)
    }

    /// The name of the project.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// Docker's name of a volume of the compose file.
    pub fn volume(&self, name: &str) -> String {
        format!("{}_{name}", self.project)
    }

    fn compose_command(&self) -> Command {
        let mut command = compose_of(self.file);
        command
            .arg("--project-name")
            .arg(&self.project)
            .env("TRAINER_IMAGE", &self.services.image)
            .env("TRAINER_COMMAND", self.services.command.join(" "))
            .env("PHOS_USER", &self.services.user)
            .env("PHOS_INTERVAL", &self.services.interval)
            .env("COMPOSE_HTTP_TIMEOUT", "300")
            // That of a node is in `env`.
            .env_remove("CUDA_VISIBLE_DEVICES")
            .envs(self.services.env.iter().cloned());
        command
    }

    /// `docker compose ARGUMENT…`.
    ///
    /// # Errors
    /// As [`run`].
    pub fn compose(&self, arguments: &[&str]) -> Result<String> {
        let said = run(self.compose_command().args(arguments));
        self.known().clear();
        said
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        self.containers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// `docker compose up -d SERVICE…` with what they depend on.
    ///
    /// # Errors
    /// As [`run`].
    pub fn up(&self, services: &[&str]) -> Result<()> {
        self.compose(&[&["up", "-d"], services].concat()).map(drop)
    }

    /// A service's container.
    ///
    /// # Errors
    /// There is none.
    pub fn container(&self, service: &str) -> Result<String> {
        if let Some(id) = self.known().get(service) {
            return Ok(id.clone());
        }
        let ids = docker(&[
            "ps",
            "-aq",
            "--no-trunc",
            "--filter",
            &format!("label={PROJECT}={}", self.project),
            "--filter",
            &format!("label=com.docker.compose.service={service}"),
        ])?;
        let id = ids.lines().next();
        let id = id.with_context(|| format!("no container of {service}"))?;
        self.known().insert(service.to_owned(), id.to_owned());
        Ok(id.to_owned())
    }

    /// What `docker inspect` says of a service's container, by a template of its.
    ///
    /// # Errors
    /// There is none.
    pub fn inspect(&self, service: &str, template: &str) -> Result<String> {
        let said = docker(&["inspect", "-f", template, &self.container(service)?])?;
        Ok(said.trim().to_owned())
    }

    /// `docker exec` in a service's container.
    ///
    /// # Errors
    /// As [`run`].
    pub fn exec(&self, service: &str, arguments: &[&str]) -> Result<String> {
        docker(&[&["exec", &self.container(service)?], arguments].concat())
    }

    /// What a service's container has said.
    ///
    /// # Errors
    /// There is no container.
    pub fn said(&self, service: &str) -> Result<String> {
        let output = outcome(Command::new("docker").args(["logs", &self.container(service)?]))?;
        Ok(format!(
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        ))
    }

    /// The losses that a node's trainer has logged.
    ///
    /// # Errors
    /// There is no log, or it is not one.
    pub fn losses(&self, node: Node) -> Result<LossTrace> {
        let dir = tempfile::tempdir()?;
        let copy = dir.path().join("loss.log");
        let from = format!("{}:{}", self.container(node.trainer())?, self.log.display());
        docker(&["cp", &from, &copy.display().to_string()])?;
        LossTrace::read(&copy)
    }

    /// The last step in a node's log.
    pub fn last_step(&self, node: Node) -> Option<u64> {
        self.losses(node).ok()?.last_step()
    }

    /// Waits until a node's trainer has logged `step`.
    ///
    /// # Errors
    /// It does not; what the services said is quoted.
    pub fn wait_step(&self, node: Node, step: u64) -> Result<u64> {
        wait_for(&format!("step {step} on node {node:?}"), || {
            self.last_step(node).filter(|&last| last >= step)
        })
        .map_err(|e| e.context(self.tail(node)))
    }

    /// `phos-ft list` in a node's sidecar, oldest first.
    ///
    /// # Errors
    /// It does not answer.
    pub fn checkpoints(&self, node: Node) -> Result<Vec<Checkpoint>> {
        let text = self.exec(node.sidecar(), &["phos-ft", "list", "--json"])?;
        let listing: Listing = serde_json::from_str(&text).with_context(|| text.clone())?;
        let mut list = listing.checkpoints;
        list.sort_by_key(|c| c.number);
        Ok(list)
    }

    /// What `phos-ft show` says of a checkpoint in a node's sidecar.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn show(&self, node: Node, number: u64) -> Result<serde_json::Value> {
        let number = number.to_string();
        let text = self.exec(node.sidecar(), &["phos-ft", "show", &number, "--json"])?;
        Ok(serde_json::from_str(&text)?)
    }

    /// Waits for a checkpoint newer than `after`.
    ///
    /// # Errors
    /// None comes; what the services said is quoted.
    pub fn wait_checkpoint(&self, node: Node, after: u64) -> Result<u64> {
        wait_for(&format!("a checkpoint after {after}"), || {
            let newest = self
                .checkpoints(node)
                .ok()
                .and_then(|c| Some(c.last()?.number));
            if let Some(newest) = newest.filter(|&newest| newest > after) {
                return Some(Ok(newest));
            }
            let status = self.inspect(node.trainer(), "{{.State.Status}}").ok()?;
            (status == "exited").then(|| Err(anyhow::anyhow!("the trainer ended before")))
        })
        .and_then(|found| found)
        .map_err(|e| e.context(self.tail(node)))
    }

    /// Waits until a service has said something.
    ///
    /// # Errors
    /// It does not; what it said is quoted.
    pub fn wait_said(&self, service: &str, words: &str) -> Result<()> {
        wait_for(&format!("{service} to say {words:?}"), || {
            self.said(service).ok()?.contains(words).then_some(())
        })
        .map_err(|e| e.context(tail(&self.said(service).unwrap_or_default())))
    }

    /// How often a service's container has said something; 0 if there is none.
    pub fn times_said(&self, service: &str, words: &str) -> usize {
        self.said(service)
            .unwrap_or_default()
            .matches(words)
            .count()
    }

    /// Waits until a service has said something more often than `before`.
    ///
    /// # Errors
    /// It does not; what it said is quoted.
    pub fn wait_said_again(&self, service: &str, words: &str, before: usize) -> Result<()> {
        wait_for(&format!("{service} to say {words:?} again"), || {
            (self.times_said(service, words) > before).then_some(())
        })
        .map_err(|e| e.context(tail(&self.said(service).unwrap_or_default())))
    }

    /// Waits until a service's container is not running; its exit code.
    ///
    /// # Errors
    /// It goes on.
    pub fn wait_ended(&self, service: &str) -> Result<i32> {
        wait_for(&format!("{service} to end"), || {
            let state = self
                .inspect(service, "{{.State.Status}} {{.State.ExitCode}}")
                .ok()?;
            let (status, code) = state.split_once(' ')?;
            (status == "exited").then(|| code.parse().ok())?
        })
        .map_err(|e| e.context(tail(&self.said(service).unwrap_or_default())))
    }

    /// Tells a node's job to end with the step that it is at, and waits until it has ended well; its losses.
    ///
    /// # Errors
    /// It has ended before, has not ended well, or has no log.
    pub fn finish(&self, node: Node) -> Result<LossTrace> {
        self.exec(node.trainer(), &["touch", FINISH_AT])
            .map_err(|e| e.context(self.tail(node)))?;
        let code = self.wait_ended(node.trainer())?;
        ensure!(
            code == 0,
            "the trainer ended with {code}:\n{}",
            self.tail(node)
        );
        self.losses(node)
    }

    /// The same training without phos-ft, in the same image, with further arguments: what every other run must equal.
    ///
    /// # Errors
    /// It fails.
    pub fn reference_with(&self, more: &[&str]) -> Result<LossTrace> {
        // Pacing has no part in the result; the losses are on its standard output as well.
        let more = [&["--step-ms", "0"], more].concat();
        let text = self.alone("reference", &["--rm"], &more);
        let text = text.context("the undisturbed run")?;
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        LossTrace::read(file.path())
    }

    /// Starts the same training without phos-ft, at its own pace, beside the node's: what slows the machine slows both.
    ///
    /// # Errors
    /// It does not start.
    pub fn start_beside(&self) -> Result<()> {
        self.alone("beside", &["--detach"], &[]).map(drop)
    }

    /// How far that one is.
    ///
    /// # Errors
    /// It does not run, or has made no step.
    pub fn beside_step(&self) -> Result<u64> {
        let name = format!("{}-beside", self.project);
        let last = docker(&["logs", "--tail", "1", &name])?;
        let step = last.split_whitespace().next().context("no step")?;
        Ok(step.parse()?)
    }

    /// `docker run` of the trainer without phos-ft.
    fn alone(&self, name: &str, flags: &[&str], more: &[&str]) -> Result<String> {
        let name = format!("{}-{name}", self.project);
        let label = format!("{PROJECT}={}", self.project);
        let command: Vec<&str> = self.services.command.iter().map(String::as_str).collect();
        let mut arguments = vec!["run", "--name", &name, "--label", &label];
        arguments.extend(flags);
        arguments.extend([
            "--tmpfs=/run/phos-gpu-sim/dev0:size=512m,mode=1777",
            "--tmpfs=/run/phos-gpu-sim/proc:mode=777",
            "--user",
            &self.services.user,
            "--network=none",
            "--entrypoint",
        ]);
        let (program, rest) = command.split_first().context("no command")?;
        arguments.extend([*program, self.services.image.as_str()]);
        arguments.extend(rest);
        arguments.extend(["--log", "/dev/null"]);
        arguments.extend(more);
        docker(&arguments)
    }

    /// The node is lost: its containers killed, they and its volumes removed.
    ///
    /// # Errors
    /// Docker does not do it.
    pub fn destroy(&self, node: Node) -> Result<()> {
        for service in [node.trainer(), node.sidecar()] {
            docker(&["rm", "-f", "-v", &self.container(service)?])?;
        }
        self.known().clear();
        for volume in ["phos-N", "run-N", "state-N", "gpu-N", "gpu-N2", "data-N"] {
            let volume = volume.replace('N', node.letter());
            docker(&["volume", "rm", "-f", &self.volume(&volume)])?;
        }
        Ok(())
    }

    /// Cuts a node off from the store, or puts it back.
    ///
    /// # Errors
    /// Docker does not do it.
    pub fn connect(&self, node: Node, connected: bool) -> Result<()> {
        let network = format!("{}_{}", self.project, node.letter());
        let container = self.container(node.sidecar())?;
        let verb = if connected { "connect" } else { "disconnect" };
        docker(&["network", verb, &network, &container]).map(drop)
    }

    /// The last words of a node's services.
    pub fn tail(&self, node: Node) -> String {
        [node.trainer(), node.sidecar()]
            .map(|service| {
                let said = self.said(service).unwrap_or_default();
                format!("---- {service}\n{}", tail(&said))
            })
            .join("\n")
    }
}

fn tail(said: &str) -> String {
    // Without the losses.
    let lines: Vec<&str> = said
        .lines()
        .filter(|line| !line.starts_with(|c: char| c.is_ascii_digit()) || line.contains('T'))
        .collect();
    lines[lines.len().saturating_sub(40)..].join("\n")
}

impl Drop for Stack {
    fn drop(&mut self) {
        if std::env::var_os("PHOS_KEEP_STACK").is_some() {
            eprintln!("the stack {} is kept until the next is made", self.project);
            return;
        }
        if std::thread::panicking() {
            for node in [Node::A, Node::B, Node::Only] {
                eprintln!("{}", self.tail(node));
            }
        }
        remove(&self.project);
    }
}

/// Removes all that has a project's label.
fn remove(project: &str) {
    let label = format!("label={PROJECT}={project}");
    for (list, remove) in [
        (&["ps", "-aq"][..], &["rm", "-f", "-v"][..]),
        (&["network", "ls", "-q"], &["network", "rm"]),
        (&["volume", "ls", "-q"], &["volume", "rm", "-f"]),
    ] {
        let found = docker(&[list, &["--filter", &label]].concat()).unwrap_or_default();
        let ids: Vec<&str> = found.lines().collect();
        if !ids.is_empty()
            && let Err(e) = docker(&[remove, &ids].concat())
        {
            eprintln!("{project}: {e:#}");
        }
    }
}

/// How the names of projects begin whose makers this process could see: those of its PID namespace.
fn prefix() -> String {
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let digits = namespace
        .to_string_lossy()
        .replace(|c: char| !c.is_ascii_digit(), "");
    format!("phos{digits}p")
}

/// Removes the stacks of tests that were killed: their processes are gone.
fn remove_abandoned() {
    let template = format!("{{{{.Label \"{PROJECT}\"}}}}");
    let Ok(projects) = docker(&["network", "ls", "--format", &template]) else {
        return;
    };
    let mut projects: Vec<&str> = projects.lines().collect();
    projects.sort_unstable();
    projects.dedup();
    for project in projects {
        let owner = (project.strip_prefix(prefix().as_str())).and_then(|p| p.split_once('x'));
        if let Some((pid, _)) = owner
            && pid.parse::<u32>().is_ok()
            && !Path::new("/proc").join(pid).exists()
        {
            eprintln!("{project} was left behind: removed");
            remove(project);
        }
    }
}

/// Fails with the first step at which two runs differ.
///
/// # Errors
/// They differ.
pub fn same(trace: &LossTrace, reference: &LossTrace) -> Result<()> {
    if let Some(step) = trace.first_difference(reference) {
        bail!("the loss trace differs from the undisturbed run at step {step}");
    }
    Ok(())
}
