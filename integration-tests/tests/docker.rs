//! Containers: trainer and sidecar as services, real Docker, real CRIU, an S3 server over HTTP. Needs root, an engine and the
//! images of `scripts/docker-images.sh`; `make docker` sees to both.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use phos_integration_tests::docker::{
    FINISH_AT, Node, Services, Stack, compose_of, docker, same, wait_for,
};
use phos_integration_tests::{Event, LossTrace};
use rand::{RngExt, SeedableRng};

const LOG: &str = "/work/loss.log";

/// More steps than any test waits for: the job is stopped when the test has seen enough.
const ENDLESS: u64 = 100_000;

/// A trainer whose steps take 100 ms each, that logs to `log`. Slow, so that several of them leave the machine to what is
/// tested, and that a run to compare with is made quickly.
fn training(log: &str, more: &[&str]) -> Services {
    let steps = ENDLESS.to_string();
    let command = [
        "phos-trainer",
        "--steps",
        &steps,
        "--step-ms",
        "100",
        // Small: what is looked at does not depend on how long a processor multiplies.
        "--batch",
        "16",
        "--layers",
        "64,128,128,16",
        "--log",
        log,
    ];
    Services {
        command: command
            .into_iter()
            .chain(more.iter().copied())
            .map(str::to_owned)
            .collect(),
        ..Services::default()
    }
}

/// What a sidecar says once for each time that it brought the job back.
const RESUMED: &str = "resumed checkpoint=";

/// Kills the trainer's container and brings it back by `up`; the job goes on where a checkpoint was.
fn kill_and_resume(stack: &Stack, node: Node) -> Result<()> {
    let before = stack.times_said(node.sidecar(), RESUMED);
    docker(&["kill", &stack.container(node.trainer())?])?;
    // Nothing writes to its log any more.
    let at = stack.last_step(node).context("no step before the kill")?;
    stack.up(&[node.trainer()])?;
    stack.wait_said_again(node.sidecar(), RESUMED, before)?;
    stack.wait_step(node, at + 1).map(drop)
}

/// Ends a job that would go on for long; its losses are those of an undisturbed run of as many steps, none left out.
fn stopped_like_an_undisturbed_run(stack: &Stack, node: Node) -> Result<()> {
    stack.compose(&["kill", node.trainer()])?;
    like_an_undisturbed_run(stack, &stack.losses(node)?)
}

/// The same, and the job ends well.
fn finished_like_an_undisturbed_run(stack: &Stack, node: Node) -> Result<()> {
    // It trains there, too.
    let at = stack.wait_step(node, 0)?;
    stack.wait_step(node, at + 1)?;
    like_an_undisturbed_run(stack, &stack.finish(node)?)
}

fn like_an_undisturbed_run(stack: &Stack, trace: &LossTrace) -> Result<()> {
    let steps = trace.last_step().context("no step")? + 1;
    ensure!(
        trace.len() as u64 == steps,
        "{} of {steps} steps are in the log",
        trace.len()
    );
    same(
        trace,
        &stack.reference_with(&["--steps", &steps.to_string()])?,
    )
}

// ------------------------------------------------------------------------------------------------------- base systems

/// One image: a checkpoint, `docker kill`, resumed, the losses those of an undisturbed run.
fn survives_a_kill(services: Services, log: &str) -> Result<()> {
    let stack = Stack::new(services, log)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    kill_and_resume(&stack, Node::A)?;
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

#[test]
fn debian_11_with_glibc_2_31() -> Result<()> {
    survives_a_kill(
        Services {
            image: "phos-trainer:bullseye".into(),
            ..training(LOG, &["--workers", "2"])
        },
        LOG,
    )
}

#[test]
fn debian_12() -> Result<()> {
    survives_a_kill(
        Services {
            image: "phos-trainer:bookworm".into(),
            ..training(LOG, &[])
        },
        LOG,
    )
}

#[test]
fn debian_13() -> Result<()> {
    survives_a_kill(training(LOG, &["--graph"]), LOG)
}

#[test]
fn an_image_without_a_shell() -> Result<()> {
    survives_a_kill(
        Services {
            image: "phos-trainer:noshell".into(),
            ..training(LOG, &[])
        },
        LOG,
    )
}

#[test]
fn a_read_only_root_file_system() -> Result<()> {
    let mut services = training("/data/loss.log", &[]);
    services
        .env
        .push(("TRAINER_READ_ONLY".into(), "true".into()));
    survives_a_kill(services, "/data/loss.log")
}

#[test]
fn a_job_of_another_user_has_no_privilege_before_and_after_a_restore() -> Result<()> {
    let stack = Stack::new(
        Services {
            user: "train".into(),
            ..training(LOG, &["--workers", "1"])
        },
        LOG,
    )?;
    stack.up(&[Node::A.trainer()])?;
    let unprivileged = || -> Result<()> {
        // The job's first process: the lowest PID of those that jobs begin at.
        let first = "cat /proc/$(ls /proc | grep -E '^[0-9]{5}$' | sort -n | head -n 1)/status";
        let status = stack.exec(Node::A.trainer(), &["sh", "-c", first])?;
        let field = |name: &str| {
            status
                .lines()
                .find_map(|line| line.strip_prefix(name))
                .map(|value| value.split_whitespace().collect::<Vec<_>>().join(" "))
                .unwrap_or_default()
        };
        ensure!(field("Uid:") == "1000 1000 1000 1000", "{status}");
        ensure!(field("Gid:") == "1000 1000 1000 1000", "{status}");
        ensure!(field("CapEff:") == "0000000000000000", "{status}");
        ensure!(field("CapPrm:") == "0000000000000000", "{status}");
        // Nor may a program that it runs give it any.
        ensure!(field("CapBnd:") == "0000000000000000", "{status}");
        ensure!(field("NoNewPrivs:") == "1", "{status}");
        Ok(())
    };
    stack.wait_checkpoint(Node::A, 0)?;
    unprivileged()?;
    kill_and_resume(&stack, Node::A)?;
    unprivileged()?;
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

#[test]
fn the_compose_file_to_try_out_trains_and_resumes_and_its_commands_know_the_job() -> Result<()> {
    let services = training(LOG, &["--finish-at", FINISH_AT]);
    let stack = Stack::of("compose.sim.yaml", services, LOG)?;
    stack.up(&[])?;
    let first = stack.wait_checkpoint(Node::Only, 0)?;
    // Nothing but the names of the services is said.
    let run = ["run", "--rm", "--no-deps", "-T", Node::Only.sidecar()];
    let listed = stack.compose(&[&run[..], &["list", "--json"]].concat())?;
    let listed: serde_json::Value = serde_json::from_str(&listed).context(listed)?;
    ensure!(
        listed["checkpoints"][0]["number"].as_u64() >= Some(first),
        "{listed}"
    );
    let status = stack.exec(Node::Only.sidecar(), &["phos-ft", "status"])?;
    ensure!(status.contains("train"), "{status}");
    kill_and_resume(&stack, Node::Only)?;
    finished_like_an_undisturbed_run(&stack, Node::Only)
}

// ------------------------------------------------------------------------------------------------------- jobs as root

/// What a job that is root tries against the machine. Each line says what, and whether it was let; what it writes is what is there.
const TRIES: &str = r#"
try() { what=$1; shift; if "$@" >/dev/null 2>&1; then echo "$what: done"; else echo "$what: refused"; fi; }
pattern() { cat /proc/sys/kernel/core_pattern >/tmp/pattern && cat /tmp/pattern >"$1"; }
same_pattern() { pattern /proc/sys/kernel/core_pattern; }
own_proc() { mount -t proc proc /mnt && pattern /mnt/sys/kernel/core_pattern; }
# By their numbers: fsopen, clone3 with CLONE_NEWUSER, keyctl (the number of the session's keyring).
by_fsopen() { perl -e 'my $name = "proc"; exit(syscall(430, $name, 0) >= 0 ? 0 : 1)'; }
by_keyctl() { perl -e 'exit(syscall(250, 0, -3, 0) >= 0 ? 0 : 1)'; }
by_clone3() { perl -e 'my $a = pack("Q8", 0x10000000, 0, 0, 0, 17, 0, 0, 0); my $r = syscall(435, $a, 64); exit($r < 0 ? 1 : 0)'; }
try core_pattern same_pattern
try "a tmpfs" mount -t tmpfs tmpfs /mnt
try "a proc" own_proc
try fsopen by_fsopen
try umount umount /proc/sys
try "a user namespace" unshare -U true
try "a mount namespace" unshare -m true
try clone3 by_clone3
try keyctl by_keyctl
try "the agent's memory" grep -q . /proc/1/maps
try "the agent's environment" cat /proc/1/environ
try "its own file" touch /work/mine
"#;

/// What comes of them.
const TRIED: &str = "core_pattern: refused
a tmpfs: refused
a proc: refused
fsopen: refused
umount: refused
a user namespace: refused
a mount namespace: refused
clone3: refused
keyctl: refused
the agent's memory: refused
the agent's environment: refused
its own file: done
";

#[test]
fn a_job_that_is_root_neither_mounts_nor_writes_to_the_machines_settings() -> Result<()> {
    let mut stack = Stack::new(training(LOG, &[]), LOG)?;
    let trainer = stack.services.command.clone();
    // It does what it finds in a file, beside the training.
    let script = format!(
        "'(while :; do if [ -e /work/try ]; then sh /work/try >/work/tried.new 2>&1; rm /work/try; \
         mv /work/tried.new /work/tried; fi; sleep 0.2; done) & exec {}'",
        trainer.join(" ")
    );
    stack.services.command = vec!["sh".into(), "-c".into(), script];
    stack.up(&[Node::A.trainer()])?;
    let tried = || -> Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), TRIES)?;
        let container = stack.container(Node::A.trainer())?;
        let from = file.path().display().to_string();
        docker(&["cp", &from, &format!("{container}:/work/try.new")])?;
        let begin = "rm -f /work/tried && chmod 644 /work/try.new && mv /work/try.new /work/try";
        stack.exec(Node::A.trainer(), &["sh", "-c", begin])?;
        let said = wait_for("the job to have tried", || {
            stack.exec(Node::A.trainer(), &["cat", "/work/tried"]).ok()
        })?;
        ensure!(said == TRIED, "{said}");
        Ok(())
    };
    stack.wait_checkpoint(Node::A, 0)?;
    tried()?;
    // Under the profile there is a checkpoint, and it comes back as it was.
    let options = stack.inspect(Node::A.trainer(), "{{.HostConfig.SecurityOpt}}")?;
    ensure!(options.contains("SCMP_ACT_ERRNO"), "{options}");
    kill_and_resume(&stack, Node::A)?;
    tried()?;
    let newest = stack.wait_checkpoint(Node::A, 0)?;
    stack.wait_checkpoint(Node::A, newest)?;
    stack.services.command = trainer;
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

#[test]
fn a_fresh_proc_in_a_container_is_masked_like_the_containers() -> Result<()> {
    // The agent is not PID 1 there, and makes a PID namespace with a proc of its own.
    let write = "cat /proc/sys/kernel/core_pattern >/tmp/pattern; cat /tmp/pattern >/proc/sys/kernel/core_pattern";
    let look = "umount /proc/sys || echo and stays so; wc -c /proc/keys";
    let job = format!("{write} || echo core_pattern is read-only; {look}");
    let agent = format!("/opt/phos/bin/phos-ft run --sidecar-wait=0s -- sh -c '{job}' 2>&1; true");
    let said = docker(&[
        "run",
        "--rm",
        "--network=none",
        "--cap-add=SYS_PTRACE",
        "--cap-add=SYS_ADMIN",
        "--cap-add=NET_ADMIN",
        "--cap-add=SYS_TIME",
        &format!("--security-opt=seccomp={}", profile()?),
        "--security-opt=apparmor=unconfined",
        &format!("--volume={}:/opt/phos:ro", program()?),
        "--entrypoint=sh",
        "phos-trainer:trixie",
        "-c",
        &agent,
    ])?;
    ensure!(said.contains("core_pattern is read-only"), "{said}");
    ensure!(said.contains("and stays so"), "{said}");
    ensure!(said.contains("0 /proc/keys"), "{said}");
    Ok(())
}

#[test]
fn a_filter_of_the_jobs_own_is_named_under_a_profile() -> Result<()> {
    // One that allows everything: PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP.
    let filter = r#"perl -e "syscall(157, 38, 1, 0, 0, 0); my \$f = pack(qq(SCCL), 6, 0, 0, 0x7fff0000); my \$p = pack(qq(S x6 P), 1, \$f); syscall(157, 22, 2, \$p, 0, 0) == 0 or die; exec qw(phos-trainer --steps 100000 --step-ms 100 --log /work/loss.log)""#;
    let stack = Stack::new(
        Services {
            command: vec!["sh".into(), "-c".into(), format!("'{filter}'")],
            ..Services::default()
        },
        LOG,
    )?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_said(
        Node::A.sidecar(),
        "does not show it those that the job has put on itself",
    )?;
    // It trains on.
    let at = stack.last_step(Node::A).unwrap_or(0);
    stack.wait_step(Node::A, at + 1).map(drop)
}

#[test]
fn compose_asks_for_the_user_of_the_job() -> Result<()> {
    let config = |user: Option<&str>| -> Result<(bool, String)> {
        let mut compose = compose_of("compose.yaml");
        compose.arg("config").env_remove("PHOS_USER");
        if let Some(user) = user {
            compose.env("PHOS_USER", user);
        }
        let output = compose.output()?;
        let said = [output.stdout, output.stderr].concat();
        Ok((
            output.status.success(),
            String::from_utf8_lossy(&said).into_owned(),
        ))
    };
    for user in [None, Some("")] {
        let (done, said) = config(user)?;
        ensure!(!done, "{said}");
        ensure!(
            said.contains("say which user the job runs as") && said.contains("PHOS_USER=1000:1000"),
            "{said}"
        );
    }
    let (done, said) = config(Some("1000:1000"))?;
    ensure!(done && said.contains("--user=1000:1000"), "{said}");
    ensure!(!said.contains("seccomp:unconfined"), "{said}");
    Ok(())
}

// ------------------------------------------------------------------------------------------------------- the other node

/// The node is lost and another one takes its place.
fn to_node_b(stack: &Stack) -> Result<()> {
    stack.destroy(Node::A)?;
    stack.up(&[Node::B.trainer()])
}

#[test]
fn a_volume_that_the_other_node_lacks_is_named_and_the_job_goes_on_once_it_is_there() -> Result<()>
{
    let services = training(LOG, &["--finish-at", FINISH_AT]);
    let mut stack = Stack::new(services.clone(), LOG)?;
    // The job reads a data set on its volume.
    let trainer = stack.services.command.join(" ");
    let script =
        format!("'head -c 1000 /dev/zero >/data/set.bin; exec 3</data/set.bin; exec {trainer}'");
    stack.services.command = vec!["sh".into(), "-c".into(), script];
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    to_node_b(&stack)?;
    for service in [Node::B.sidecar(), Node::B.trainer()] {
        stack.wait_said(service, "/data/set.bin is missing. Mount the volumes")?;
    }
    let said = stack.said(Node::B.sidecar())?;
    ensure!(Event::TookOver.times_in(&said) == 0, "{said}");
    let set = |bytes: u32| -> Result<()> {
        let volume = format!("--volume={}:/data", stack.volume("data-b"));
        let script = format!("head -c {bytes} /dev/zero >/data/set.bin");
        let run = [
            "run",
            "--rm",
            "--network=none",
            &volume,
            "phos-trainer:trixie",
        ];
        docker(&[&run[..], &["sh", "-c", &script]].concat()).map(drop)
    };
    // Docker starts both again and again; the message is that of the code 78.
    set(5)?;
    let differs = "/data/set.bin has 5 bytes, 1000 at the checkpoint";
    stack.wait_said(Node::B.sidecar(), differs)?;
    set(1000)?;
    stack.wait_said(Node::B.sidecar(), RESUMED)?;
    stack.services = services;
    finished_like_an_undisturbed_run(&stack, Node::B)
}

#[test]
fn the_other_node_has_other_gpus_and_the_job_had_chosen_one_by_its_number() -> Result<()> {
    let mut services = training(LOG, &["--ballast-mib", "8"]);
    services.env = vec![
        ("SECOND_GPU".into(), "/run/phos-gpu-sim/dev1".into()),
        ("CUDA_VISIBLE_DEVICES".into(), "1".into()),
    ];
    let stack = Stack::new(services, LOG)?;
    let gpus = |node: Node, number: u64| -> Result<Vec<String>> {
        let shown = stack.show(node, number)?;
        let gpus = shown["gpus"].as_array().context("no GPUs")?;
        Ok(gpus.iter().map(|g| g["uuid"].to_string()).collect())
    };
    stack.up(&[Node::A.trainer()])?;
    let first = stack.wait_checkpoint(Node::A, 0)?;
    let before = gpus(Node::A, first)?;
    ensure!(before.len() == 1, "{before:?}");
    to_node_b(&stack)?;
    stack.wait_said(Node::B.sidecar(), RESUMED)?;
    // A may have stored more than one before it was lost; the next after that is B's.
    let lost = stack.wait_checkpoint(Node::B, 0)?;
    let second = stack.wait_checkpoint(Node::B, lost)?;
    let after = gpus(Node::B, second)?;
    ensure!(after.len() == 1 && after != before, "{before:?}, {after:?}");
    kill_and_resume(&stack, Node::B)?;
    stopped_like_an_undisturbed_run(&stack, Node::B)
}

// ------------------------------------------------------------------------------------------------------- the entrypoint

/// `docker run` of a trainer's image under the agent alone, with the program from the phos-ft image's own folder, and with
/// no terminal and no standard input unless `flags` ask for them.
fn agent_alone(flags: &[&str], agent: &[&str], command: &[&str]) -> Result<Command> {
    let mut run = docker_run()?;
    run.arg(format!("--volume={}:/opt/phos:ro", program()?))
        .args(flags)
        .args(["--entrypoint=/opt/phos/bin/phos-ft", "phos-trainer:trixie"])
        .args(["run", "--sidecar-wait=0s"])
        .args(agent)
        .arg("--")
        .args(command);
    Ok(run)
}

/// `docker run` with what an agent needs, but for SYS_TIME, and without a network.
fn docker_run() -> Result<Command> {
    let mut run = Command::new("timeout");
    run.args(["--foreground", "300"])
        .args(["docker", "run", "--rm", "--network=none"])
        .args(["--cap-add=SYS_PTRACE", "--cap-add=SYS_ADMIN"])
        .args(["--cap-add=NET_ADMIN"])
        .arg(format!("--security-opt=seccomp={}", profile()?))
        .args(["--security-opt=apparmor=unconfined"]);
    Ok(run)
}

/// The seccomp profile of the compose files.
fn profile() -> Result<String> {
    let profile = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docker/seccomp.json");
    Ok(profile.canonicalize()?.display().to_string())
}

/// What the phos-ft image puts into the volume.
fn program() -> Result<String> {
    built(".build/dist-debug", "scripts/docker-images.sh debug")
}

/// A folder of the repository that a script makes.
fn built(folder: &str, maker: &str) -> Result<String> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let found = (repository.join(folder).canonicalize())
        .with_context(|| format!("no {folder}: {maker} makes it"))?;
    Ok(found.display().to_string())
}

/// A package, installed in an image that has nothing of phos-ft's, runs a job that is killed and resumed.
fn installed(package: &str, image: &str) -> Result<()> {
    bare(image, "installed.sh", package)
}

/// docs/tour.md, as it stands there, on a machine that has nothing of phos-ft's.
#[test]
fn the_demo_in_containers() -> Result<()> {
    let said = Command::new(env!("CARGO_BIN_EXE_phos-demo-compose"))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(
        said.status.success(),
        "{}: {}",
        said.status,
        String::from_utf8_lossy(&said.stdout)
    );
    Ok(())
}

#[test]
fn the_tour_of_the_documentation() -> Result<()> {
    bare("phos-trainer:bookworm-python", "tour.py", "/docs/tour.md")
}

/// Runs a script of this folder in an image that has nothing of phos-ft's, with the packages beside it.
fn bare(image: &str, script: &str, argument: &str) -> Result<()> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = here.join("../docs").canonicalize()?;
    let script = here.join(script);
    let packages = built(".build/packages-debug", "scripts/packages.sh debug")?;
    let venv = here.join("../.build/venv/lib");
    let python = (std::fs::read_dir(&venv)?.next()).context("no Python in .build/venv")??;
    let pip = python.path().join("site-packages").canonicalize()?;
    let mut run = docker_run()?;
    run.arg("--cap-add=SYS_TIME")
        .arg(format!("--volume={packages}:/packages:ro"))
        .arg(format!("--volume={}:/pip:ro", pip.display()))
        // The simulated GPU, with its memory.
        .arg("--tmpfs=/run/phos-gpu-sim/dev0:size=512m")
        .arg(format!("--volume={}:/docs:ro", docs.display()))
        .arg(format!("--volume={}:/script:ro", script.display()))
        // The first process of a container ends it, and nothing outlives that.
        .args([image, "timeout", "280", "/script", argument]);
    let output = run.output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success()
            && said
                .lines()
                .last()
                .is_some_and(|last| last.contains(": ok")),
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

#[test]
fn a_debian_package_on_debian_11_which_is_as_old_as_ubuntu_20_04() -> Result<()> {
    installed("deb", "phos-trainer:bullseye")
}

#[test]
fn a_debian_package_on_debian_12() -> Result<()> {
    installed("deb", "phos-trainer:bookworm")
}

#[test]
fn a_debian_package_on_debian_13() -> Result<()> {
    installed("deb", "phos-trainer:trixie")
}

#[test]
fn a_wheel_with_the_python_of_debian_11() -> Result<()> {
    installed("wheel", "phos-trainer:bullseye-python")
}

#[test]
fn a_wheel_with_the_python_of_debian_12() -> Result<()> {
    installed("wheel", "phos-trainer:bookworm-python")
}

#[test]
fn a_wheel_with_the_python_of_debian_13() -> Result<()> {
    installed("wheel", "phos-trainer:trixie-python")
}

#[test]
fn the_agent_as_entrypoint_changes_nothing_that_the_job_sees() -> Result<()> {
    let script = "read line; echo \"$line|$PWD|$GREETING|$(id -un)|$(id -G)|$HOME\"; echo to-stderr >&2; \
                  echo again >/dev/stdout; exit 7";
    let mut command = agent_alone(
        &[
            "-i",
            "--cap-add=SYS_TIME",
            "--workdir=/tmp",
            "--env=GREETING=hi",
        ],
        &["--user=train"],
        &["sh", "-c", script],
    )?;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    std::io::Write::write_all(
        &mut child.stdin.take().context("no stdin")?,
        b"from outside\n",
    )?;
    let output = child.wait_with_output()?;
    let (out, err) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    ensure!(output.status.code() == Some(7), "{}: {err}", output.status);
    ensure!(
        out == "from outside|/tmp|hi|train|1000|/work\nagain\n",
        "{out}"
    );
    ensure!(err.contains("to-stderr"), "{err}");
    Ok(())
}

#[test]
fn neither_a_terminal_nor_no_standard_input_troubles_the_job() -> Result<()> {
    // `tty: true`, where nobody ever types; and neither that nor `stdin_open: true`.
    let streams = "[ -t 1 ] && echo terminal || echo pipe";
    let ends = format!("read line && echo got || {{ {streams}; }}");
    for (flag, script) in [("--tty", streams), ("--tty=false", ends.as_str())] {
        let mut command = agent_alone(&["--cap-add=SYS_TIME", flag], &[], &["sh", "-c", script])?;
        let output = command.stdin(Stdio::null()).output()?;
        let out = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "{flag}: {}: {out}", output.status);
        let said: Vec<&str> = out.lines().filter(|line| !line.contains("phos_")).collect();
        ensure!(said == ["pipe"], "{flag}: {out}");
    }
    Ok(())
}

#[test]
fn signals_reach_the_job() -> Result<()> {
    let name = format!("phos-signals-{:08x}", rand::random::<u32>());
    let mut command = agent_alone(
        &["--cap-add=SYS_TIME", "--name", &name],
        &[],
        &[
            "sh",
            "-c",
            "trap 'echo usr1' USR1; trap 'echo bye; exit 9' TERM; echo ready; while :; do sleep 0.05; done",
        ],
    )?;
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()?;
    let said = |what: &str| {
        wait_for(what, || {
            let said = docker(&["logs", &name]).ok()?;
            said.contains(what).then_some(())
        })
    };
    let tried = (|| {
        said("ready")?;
        docker(&["kill", "--signal=USR1", &name])?;
        said("usr1")?;
        docker(&["stop", "-t", "60", &name]).map(drop)
    })();
    if tried.is_err() {
        let _ = docker(&["kill", &name]);
    }
    let output = child.wait_with_output()?;
    tried?;
    ensure!(output.status.code() == Some(9), "{}", output.status);
    ensure!(String::from_utf8_lossy(&output.stdout).contains("bye"));
    Ok(())
}

#[test]
fn a_missing_capability_is_named_and_the_job_trains_all_the_same() -> Result<()> {
    let mut command = agent_alone(
        &[
            "--tmpfs=/run/phos-gpu-sim/dev0:size=256m,mode=1777",
            "--tmpfs=/run/phos-gpu-sim/proc:mode=777",
        ],
        &["--allow-unprotected"],
        &["phos-trainer", "--steps", "20"],
    )?;
    let output = command.stdin(Stdio::null()).output()?;
    let err = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}: {err}", output.status);
    ensure!(err.contains("CAP_SYS_TIME"), "{err}");
    ensure!(String::from_utf8_lossy(&output.stdout).lines().count() == 20);

    // Nor does a job without checkpoints get more than one with them.
    let script = "grep -E '^(Uid|CapBnd|NoNewPrivs):' /proc/self/status; env";
    let mut command = agent_alone(
        &["--env=PHOS_NODE_NAME=ours", "--env=GREETING=hi"],
        &["--allow-unprotected", "--user=1000:1000"],
        &["sh", "-c", script],
    )?;
    let output = command.stdin(Stdio::null()).output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    for line in [
        "Uid:\t1000\t1000\t1000\t1000",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
        "GREETING=hi",
    ] {
        ensure!(out.lines().any(|found| found == line), "{line:?}: {out}");
    }
    ensure!(!out.contains("PHOS_NODE_NAME"), "{out}");

    let mut doctor = Command::new("docker");
    doctor
        .args(["run", "--rm", "--network=none", "--cap-add=SYS_ADMIN"])
        .args(["phos-ft-sim", "doctor", "--store=/tmp/store"]);
    let output = doctor.stdin(Stdio::null()).output()?;
    let out = String::from_utf8_lossy(&output.stdout);
    ensure!(!output.status.success(), "{out}");
    let line = out
        .lines()
        .find(|line| line.contains("missing:"))
        .with_context(|| out.to_string())?;
    for name in ["SYS_PTRACE", "NET_ADMIN", "SYS_TIME"] {
        ensure!(line.contains(name), "{line}");
    }
    ensure!(!line.contains("SYS_ADMIN"), "{line}");
    Ok(())
}

// ------------------------------------------------------------------------------------------------------- who may connect

/// A client in Perl, which every Debian image has: connects to a packet socket and says what became of it.
const CLIENT: &str = r#"
use Socket; socket(S, AF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!\n";
connect(S, sockaddr_un($ARGV[0])) or do { print "refused: $!\n"; exit 0 };
my $n = sysread(S, my $bytes, 65536);
print defined $n && $n == 0 ? "closed\n" : defined $n ? "answered\n" : "error: $!\n";
"#;

/// The same for the sidecar's stream socket, which is asked for the job's state.
const ASK: &str = r#"
use Socket; socket(S, AF_UNIX, SOCK_STREAM, 0) or die "socket: $!\n";
connect(S, sockaddr_un($ARGV[0])) or do { print "refused: $!\n"; exit 0 };
$SIG{PIPE} = "IGNORE"; syswrite(S, "\"status\"\n");
my $n = sysread(S, my $bytes, 65536);
print defined $n && $n > 0 ? "answered\n" : "closed\n";
"#;

#[test]
fn who_is_not_of_the_job_gets_nothing_from_the_sockets() -> Result<()> {
    let stack = Stack::new(training(LOG, &[]), LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    let trainer = stack.container(Node::A.trainer())?;
    let connect = |user: &str, socket: &str| {
        let path = format!("/run/phos/train/{socket}");
        docker(&["exec", "-u", user, &trainer, "perl", "-e", CLIENT, &path])
    };
    for socket in ["agent.sock", "sidecar.sock"] {
        let said = connect("1000", socket)?;
        ensure!(said.contains("Permission denied"), "{socket}: {said}");
    }
    // Nobody else lists what lies there.
    let listed = Command::new("docker")
        .args(["exec", "-u", "1000", &trainer, "ls", "/run/phos/train"])
        .output()?;
    ensure!(!listed.status.success(), "{listed:?}");
    // Even where somebody opened the files to all, agent and sidecar look at who connects.
    let open = "chmod 666 /run/phos/train/agent.sock /run/phos/train/sidecar.sock";
    docker(&["exec", &trainer, "sh", "-c", open])?;
    let said = connect("1000", "agent.sock")?;
    ensure!(said == "closed\n", "{said}");
    stack.wait_said(
        Node::A.trainer(),
        "a stranger tried to connect as sidecar: refused",
    )?;
    let ask = |user: &str| {
        let path = "/run/phos/train/sidecar.sock";
        docker(&["exec", "-u", user, &trainer, "perl", "-e", ASK, path])
    };
    let said = ask("1000")?;
    ensure!(said == "closed\n", "{said}");
    let said = ask("0")?;
    ensure!(said == "answered\n", "{said}");
    // There is a sidecar already: another hears that, and no more, whoever else may be root.
    connect("0", "agent.sock")?;
    stack.wait_said(
        Node::A.trainer(),
        "a second sidecar tried to connect: refused",
    )?;
    // The shims' socket is not there while a checkpoint has the job, and comes and goes in steps: then again.
    let passing = ["No such file", "Permission denied", "refused", "reset"];
    let refused = |who: &str, connect: &dyn Fn() -> Result<String>| -> Result<()> {
        let said = wait_for("the shims' socket to be there", || {
            let said = connect().unwrap_or_else(|e| format!("{e:#}"));
            (!passing.iter().any(|p| said.contains(p))).then_some(said)
        })?;
        ensure!(said == "closed\n", "{who}: {said}");
        Ok(())
    };
    // Not of the job, whoever it is: neither a user nor root, beside it in the container nor from another.
    for user in ["1000", "0"] {
        refused(user, &|| connect(user, "shim.sock"))?;
    }
    stack.wait_said(
        Node::A.trainer(),
        "a process that is not of the job tried to connect as a shim: refused",
    )?;
    let volume = format!("--volume={}:/run/phos", stack.volume("run-a"));
    let elsewhere = ["run", "--rm", "--network=none", &volume];
    let socket = "/run/phos/train/shim.sock";
    let client = ["phos-trainer:trixie", "perl", "-e", CLIENT, socket];
    refused("another container", &|| {
        docker(&[&elsewhere[..], &client].concat())
    })?;
    stack.wait_said(
        Node::A.trainer(),
        "a process outside the job tried to connect as a shim: refused",
    )?;
    // The job and its sidecar have not noticed.
    let newest = stack.wait_checkpoint(Node::A, 0)?;
    stack.wait_checkpoint(Node::A, newest)?;
    Ok(())
}

#[test]
fn nothing_listens_on_tcp() -> Result<()> {
    let stack = Stack::new(training(LOG, &[]), LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    for service in [Node::A.trainer(), Node::A.sidecar()] {
        let table = stack.exec(service, &["cat", "/proc/net/tcp", "/proc/net/tcp6"])?;
        let listening: Vec<&str> = table
            .lines()
            .filter(|line| line.split_whitespace().nth(3) == Some("0A"))
            // Docker's own name server, 127.0.0.11.
            .filter(|line| !line.contains("0B00007F:"))
            .collect();
        ensure!(listening.is_empty(), "{service}: {listening:#?}");
        let ports = stack.inspect(service, "{{json .NetworkSettings.Ports}}")?;
        ensure!(!ports.contains("HostPort"), "{service}: {ports}");
    }
    // The sidecar has no capability at all, the trainer is not privileged.
    let status = stack.exec(Node::A.sidecar(), &["cat", "/proc/1/status"])?;
    ensure!(status.contains("CapEff:\t0000000000000000"), "{status}");
    ensure!(status.contains("CapBnd:\t0000000000000000"), "{status}");
    let privileged = stack.inspect(Node::A.trainer(), "{{.HostConfig.Privileged}}")?;
    ensure!(privileged == "false", "{privileged}");
    Ok(())
}

// ------------------------------------------------------------------------------------------------------- stop and restart

#[test]
fn docker_stop_takes_a_last_checkpoint_and_up_resumes_it() -> Result<()> {
    let stack = Stack::new(
        Services {
            // None by itself.
            interval: "1h".into(),
            ..training(LOG, &["--workers", "2"])
        },
        LOG,
    )?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_step(Node::A, 50)?;
    stack.compose(&["stop", Node::A.trainer()])?;
    // Not killed for being late: as the job itself ends at SIGTERM.
    ensure!(stack.wait_ended(Node::A.trainer())? == 143);
    let stopped_at = stack.last_step(Node::A).context("no step")?;
    // The sidecar has ended with the job, and is started again.
    let list = || stack.checkpoints(Node::A).ok();
    let checkpoints = wait_for("the sidecar to list checkpoints", list)?;
    let last = checkpoints.last().context("no checkpoint was taken")?;
    ensure!(last.trigger == "terminate", "{last:?}");
    stack.compose(&["stop", Node::A.sidecar()])?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_said(Node::A.sidecar(), RESUMED)?;
    // From there, and not from the beginning: the log of the container goes on, and repeats no step.
    stack.wait_step(Node::A, stopped_at + 1)?;
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

#[test]
fn twenty_restarts_in_any_order_under_a_running_job() -> Result<()> {
    let stack = Stack::new(training(LOG, &["--workers", "1"]), LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    let seed = rand::random();
    eprintln!("seed {seed}");
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
    for n in 1..=20 {
        let step = || wait_for("the log", || stack.last_step(Node::A));
        let at = step()?;
        match rng.random_range(0..5) {
            // As rude as it gets: no last checkpoint.
            0 => {
                docker(&["kill", &stack.container(Node::A.trainer())?])?;
                stack.up(&[Node::A.trainer()])?;
            }
            1 => stack
                .compose(&["restart", Node::A.trainer(), Node::A.sidecar()])
                .map(drop)?,
            2 => stack.compose(&["restart", Node::A.trainer()]).map(drop)?,
            // The job does not notice.
            _ => {
                stack.compose(&["restart", Node::A.sidecar()])?;
                ensure!(step()? >= at, "restart {n} lost steps");
            }
        }
        // It runs.
        let now = step()?;
        stack
            .wait_step(Node::A, now + 1)
            .with_context(|| format!("restart {n}"))?;
    }
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

#[test]
fn a_newer_release_arrives_under_a_running_job() -> Result<()> {
    let mut stack = Stack::new(training(LOG, &[]), LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    let release = |of: &Stack| -> Result<String> {
        let exe = of.exec(Node::A.trainer(), &["readlink", "/proc/1/exe"])?;
        Ok(exe.trim().to_owned())
    };
    let old = release(&stack)?;

    // The same programs under another name: what an upgrade is to the volume.
    let newer = "phos-ft-sim:newer";
    let mut build = Command::new("docker")
        .args(["build", "-q", "-t", newer, "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    std::io::Write::write_all(
        &mut build.stdin.take().context("no stdin")?,
        b"FROM phos-ft-sim\nRUN echo 00000000000newer >/usr/lib/phos-ft/release\n",
    )?;
    ensure!(build.wait()?.success());
    stack.services.env.push(("PHOS_IMAGE".into(), newer.into()));
    let at = stack.last_step(Node::A).unwrap_or(0);
    stack.compose(&["up", "-d", "--no-deps", Node::A.sidecar()])?;
    // The job has not noticed, and its agent goes on with what it was started from.
    stack.wait_step(Node::A, at + 1)?;
    ensure!(release(&stack)? == old);
    let newest = stack.wait_checkpoint(Node::A, 0)?;
    stack.wait_checkpoint(Node::A, newest)?;
    // The next start has the new one.
    stack.compose(&["restart", Node::A.trainer()])?;
    stack.wait_said(Node::A.sidecar(), RESUMED)?;
    let new = release(&stack)?;
    ensure!(new != old && new.contains("00000000000newer"), "{new}");
    let at = stack.last_step(Node::A).context("no step")?;
    stack.wait_step(Node::A, at + 1)?;
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

#[test]
fn a_sidecar_that_dies_at_any_step_of_a_checkpoint_comes_back() -> Result<()> {
    let mut stack = Stack::new(training(LOG, &["--workers", "1"]), LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    let pid = stack.inspect(Node::A.trainer(), "{{.State.Pid}}")?;
    for step in [
        "after-quiesce",
        "after-name",
        "after-dump-request",
        "after-dumped",
        "before-attach",
        "after-attach",
        "mid-drain",
        "before-manifest",
        "before-head",
        "after-head",
    ] {
        let once = format!("/run/phos/died-{step}");
        stack.services.env = vec![(
            "PHOS_FAILPOINT".into(),
            format!("sidecar:{step}=once:{once}"),
        )];
        stack.compose(&["up", "-d", "--no-deps", Node::A.sidecar()])?;
        // It has died, Docker has brought it back, and the next checkpoint is stored.
        wait_for(&format!("the sidecar to die at {step}"), || {
            stack.exec(Node::A.trainer(), &["test", "-e", &once]).ok()
        })?;
        // One more than whoever died may have stored.
        let had = stack.wait_checkpoint(Node::A, 0)?;
        stack.wait_checkpoint(Node::A, had)?;
        let restarts = stack.inspect(Node::A.sidecar(), "{{.RestartCount}}")?;
        ensure!(restarts != "0", "{step}: it was not restarted");
        let at = stack.last_step(Node::A).unwrap_or(0);
        stack.wait_step(Node::A, at + 1)?;
    }
    // The same container, never resumed.
    ensure!(stack.inspect(Node::A.trainer(), "{{.State.Pid}}")? == pid);
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

// ------------------------------------------------------------------------------------------------------- the network

#[test]
fn a_store_that_is_out_for_a_minute_costs_the_job_nothing() -> Result<()> {
    let stack = Stack::new(training(LOG, &[]), LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    // What slows the machine slows the same training beside it, which no phos-ft has.
    stack.start_beside()?;
    let steps = || -> Result<(u64, u64)> {
        let beside = wait_for("steps beside it", || stack.beside_step().ok())?;
        let job = wait_for("the log", || stack.last_step(Node::A))?;
        Ok((job, beside))
    };
    let share = |seconds: u64| -> Result<f64> {
        let (job, beside) = steps()?;
        let began = Instant::now();
        let time = Duration::from_secs(seconds);
        wait_for("time to pass", || (began.elapsed() >= time).then_some(()))?;
        let (job_then, beside_then) = steps()?;
        ensure!(beside_then > beside, "nothing went on beside the job");
        Ok((job_then - job) as f64 / (beside_then - beside) as f64)
    };
    let before = share(15)?;
    let s3 = stack.container("s3")?;
    let newest = stack.wait_checkpoint(Node::A, 0)?;
    // It answers nothing at first, then it is not there; what it has stored is there again when it is.
    // runc gives up on a container whose processes it does not catch at once, as on a busy machine.
    wait_for("the store to be paused", || docker(&["pause", &s3]).ok())?;
    let silent = share(30);
    docker(&["unpause", &s3])?;
    docker(&["stop", &s3])?;
    // Else it comes back empty, which is an outage that no checkpoint ends.
    stack.wait_said("s3", "saved")?;
    let absent = share(30);
    docker(&["start", &s3])?;
    let absent = absent?;
    let silent = silent?;
    eprintln!(
        "steps for each beside it: {before:.2} before, {silent:.2} silent, {absent:.2} absent"
    );
    for (name, found) in [("silent", silent), ("absent", absent)] {
        ensure!(
            found > before * 0.7,
            "{found:.2} steps for each beside it while the store was {name}, {before:.2} before"
        );
    }
    // They catch up, on top of what was stored before; and the job comes back from there.
    stack.wait_checkpoint(Node::A, newest + 1)?;
    let numbers: Vec<u64> = stack
        .checkpoints(Node::A)?
        .iter()
        .map(|c| c.number)
        .collect();
    ensure!(numbers.contains(&newest), "{newest} is not in {numbers:?}");
    kill_and_resume(&stack, Node::A)?;
    stopped_like_an_undisturbed_run(&stack, Node::A)
}

/// What is said of a node that lost its job to B.
fn is_fenced(stack: &Stack) -> Result<()> {
    stack.wait_said(Node::A.trainer(), "another node has this job")?;
    // Docker starts its container again; it refuses.
    wait_for("the fenced agent to be started again", || {
        let restarts = stack.inspect(Node::A.trainer(), "{{.RestartCount}}").ok()?;
        (restarts != "0").then_some(())
    })?;
    stack.wait_said(Node::A.trainer(), "another node has job train")?;
    let code = wait_for("the code of the fenced agent", || {
        let state = stack
            .inspect(Node::A.trainer(), "{{.State.Status}} {{.State.ExitCode}}")
            .ok()?;
        state.strip_prefix("restarting ").map(str::to_owned)
    })?;
    ensure!(code == "76", "{code}");
    Ok(())
}

/// While it is there, the sidecar of a node is held before it writes the manifest.
const HOLD: &str = "/run/phos/hold";

/// A is cut off, B goes on from A's checkpoint, A is connected again (`meanwhile` happens to it before): A ends its job, B's
/// losses are those of an undisturbed run, and the history is whole.
fn partitioned(meanwhile: impl FnOnce(&Stack) -> Result<()>) -> Result<()> {
    let mut services = training(LOG, &["--ballast-mib", "32"]);
    let point = format!("sidecar:before-manifest=hold:{HOLD}");
    services.env = vec![("PHOS_FAILPOINT".into(), point)];
    let stack = Stack::new(services, LOG)?;
    stack.up(&[Node::A.trainer()])?;
    stack.wait_checkpoint(Node::A, 0)?;
    // In the middle of the next checkpoint: all of it is on its way but what makes it visible.
    stack.exec(Node::A.trainer(), &["touch", HOLD])?;
    wait_for("a checkpoint to be nearly stored", || {
        let reached = format!("{HOLD}.reached");
        stack
            .exec(Node::A.trainer(), &["test", "-e", &reached])
            .ok()
    })?;
    let held = stack.checkpoints(Node::A)?.last().map(|c| c.number);
    let held = held.context("no checkpoint")?;
    stack.connect(Node::A, false)?;
    stack.exec(Node::A.trainer(), &["rm", HOLD])?;
    let cut_at = stack.last_step(Node::A).context("no step")?;
    // Training goes on.
    stack.wait_step(Node::A, cut_at + 20)?;

    stack.up(&[Node::B.trainer()])?;
    stack.wait_said(Node::B.sidecar(), RESUMED)?;
    let taken = stack.wait_checkpoint(Node::B, held)?;
    meanwhile(&stack)?;
    stack.connect(Node::A, true)?;
    is_fenced(&stack)?;
    // Nothing of A's came after B's.
    let numbers = |of: &Stack| -> Result<BTreeSet<u64>> {
        Ok(of.checkpoints(Node::B)?.iter().map(|c| c.number).collect())
    };
    ensure!(numbers(&stack)?.contains(&taken));
    stack.wait_checkpoint(Node::B, taken)?;
    for number in numbers(&stack)? {
        let shown = stack.show(Node::B, number)?;
        // What A had nearly stored did not become visible.
        let by_b = shown["epoch"].as_u64() > Some(1);
        ensure!(by_b == (number > held), "{shown}");
    }
    stopped_like_an_undisturbed_run(&stack, Node::B)
}

#[test]
fn a_node_cut_off_in_the_middle_of_a_checkpoint_is_fenced_when_it_comes_back() -> Result<()> {
    partitioned(|_| Ok(()))
}

#[test]
fn a_sidecar_restarted_while_it_was_cut_off_does_not_take_the_job_back() -> Result<()> {
    // It waits for its upload for longer than that, and is killed.
    partitioned(|stack| {
        let sidecar = stack.container(Node::A.sidecar())?;
        docker(&["restart", "-t", "5", &sidecar]).map(drop)
    })
}
