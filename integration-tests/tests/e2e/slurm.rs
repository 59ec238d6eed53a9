//! Users of a Slurm cluster: real sudo, `docker/slurm/phos-ft-job` and `train.sbatch` as a site installs them, in a copy of the machine's
//! directories (`slurm-site.sh`). Slurm itself is not there: what it would answer stands in a file.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::{LossTrace, bin_dir, wait_for};

/// Long enough for anything that works, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

/// The user's home, where its jobs run.
const HOME: &str = "/run/home/train";
const WRAPPER: &str = "/usr/local/sbin/phos-ft-job";

fn here(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

/// A node with users, in namespaces of its own: when it is dropped, nothing of it is left.
struct Site {
    holder: Child,
    /// The first process inside.
    inner: u32,
}

impl Site {
    fn new() -> Result<Site> {
        let mut holder = Command::new("unshare")
            .args(["--mount", "--propagation", "private"])
            .args(["--pid", "--fork", "--kill-child", "--mount-proc"])
            .arg(here("slurm-site.sh"))
            .arg(bin_dir())
            .args(["sh", "-c", "touch /run/ready && exec cat"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .context("unshare")?;
        let children = format!("/proc/{0}/task/{0}/children", holder.id());
        let inner = wait_for("the site to be there", LIMIT, || {
            if let Ok(Some(status)) = holder.try_wait() {
                return Some(Err(anyhow::anyhow!("slurm-site.sh: {status}")));
            }
            let text = std::fs::read_to_string(&children).ok()?;
            let inner: u32 = text.split_whitespace().next()?.parse().ok()?;
            let ready = format!("/proc/{inner}/root/run/ready");
            Path::new(&ready).exists().then_some(Ok(inner))
        })??;
        Ok(Site { holder, inner })
    }

    fn enter(&self) -> Command {
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--target={}", self.inner))
            .args(["--mount", "--pid", "--"])
            .stdin(Stdio::null());
        command
    }

    /// What root's shell says there.
    fn root(&self, script: &str) -> Result<String> {
        let output = self.enter().args(["bash", "-euc", script]).output()?;
        ensure!(output.status.success(), "{script}: {}", said(&output));
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// A command of a user, at home, in job 7 unless `env` says otherwise.
    fn user(&self, number: u32, env: &[(&str, &str)], command: &[&str]) -> Command {
        let mut entered = self.enter();
        entered
            .args(["setpriv", "--init-groups"])
            .arg(format!("--reuid={number}"))
            .arg(format!("--regid={number}"))
            .args(["env", "-C", HOME, "-u", "XDG_RUNTIME_DIR", "SLURM_JOB_ID=7"])
            .args(env.iter().map(|(name, value)| format!("{name}={value}")))
            .args(command);
        entered
    }

    /// `sudo phos-ft-job ARGUMENT…`.
    fn job(&self, env: &[(&str, &str)], arguments: &[&str]) -> Result<Output> {
        let sudo = [&["sudo", "-n", WRAPPER], arguments].concat();
        Ok(self.user(54242, env, &sudo).output()?)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

fn said(output: &Output) -> String {
    format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

fn refused(output: &Output, words: &str) -> Result<()> {
    let said = said(output);
    ensure!(output.status.code() != Some(0), "it was done: {said}");
    ensure!(said.contains(words), "{words:?} is not in: {said}");
    Ok(())
}

#[test]
fn who_may_call_the_wrapper_of_a_cluster_says_the_command_and_nothing_else() -> Result<()> {
    let site = Site::new()?;
    // Whatever root would run of it leaves a mark.
    site.root(
        "mkdir -m 777 /run/evil; printf '#!/bin/sh\\ntouch /run/evil/as-$(id -u)\\n' >/run/evil/squeue
         chmod 755 /run/evil/squeue; for name in criu phos-ft getent id stat sh env; do ln -s squeue /run/evil/$name; done",
    )?;
    let hostile = [
        ("PATH", "/run/evil:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("BASH_ENV", "/run/evil/squeue"),
        ("ENV", "/run/evil/squeue"),
        ("LD_PRELOAD", ""),
        ("LD_LIBRARY_PATH", "/run/evil"),
        ("SLURM_CONF", "/run/evil/slurm.conf"),
        ("SUDO_UID", "0"),
        ("PHOS_USER", "0:0"),
        ("PHOS_CRIU", "/run/evil/criu"),
        ("PHOS_SHIM", "/run/evil/criu"),
        ("PHOS_STORE", "/run/evil/store"),
        ("PHOS_RUN_DIR", "/run/evil/run"),
        ("PHOS_STATE_DIR", "/run/evil/state"),
        ("AWS_ENDPOINT_URL", "http://127.0.0.1:1"),
        ("AWS_SECRET_ACCESS_KEY", "of-the-user"),
        ("CUDA_VISIBLE_DEVICES", "0"),
        ("SLURM_JOB_NAME", "evil\nPHOS_USER=0:0"),
        ("SLURM_NNODES", "1"),
    ];
    let look =
        "id -u; id -g; id -G; pwd; env; grep -E '^(Cap|NoNew)' /proc/self/status; touch mine";
    let output = site.job(
        &hostile,
        &["run", "--interval", "10s", "--", "sh", "-c", look],
    )?;
    let text = said(&output);
    ensure!(output.status.success(), "{text}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let lines: Vec<&str> = stdout.lines().collect();
    ensure!(lines.len() > 4, "{text}");
    ensure!(lines[..2] == ["54242", "54242"], "{text}");
    let mut groups: Vec<&str> = lines[2].split(' ').collect();
    groups.sort_unstable();
    ensure!(groups == ["100", "54242", "54243"], "{text}");
    ensure!(lines[3] == HOME, "{text}");
    for expected in [
        "SLURM_JOB_ID=7",
        "SLURM_NNODES=1",
        "CUDA_VISIBLE_DEVICES=0",
        "HOME=/run/home/train",
        "USER=train",
        "CapBnd:\t0000000000000000",
        "NoNewPrivs:\t1",
    ] {
        ensure!(lines.contains(&expected), "{expected} is not in {text}");
    }
    for (name, value) in [("AWS", "of-the"), ("PATH", "evil:"), ("SLURM_CONF", "=")] {
        let bad = lines
            .iter()
            .any(|line| line.starts_with(name) && line.contains(value));
        ensure!(!bad, "{name}: {text}");
    }
    let owner = site.root(&format!("stat -c %u {HOME}/mine; ls /run/evil /run/store"))?;
    ensure!(owner.starts_with("54242\n"), "{owner}");
    ensure!(owner.contains("/run/store:\n54242"), "{owner}");
    ensure!(!owner.contains("as-"), "{owner}");

    // Flags are not the caller's, wherever they stand before the command.
    for flags in [
        &["--criu", "/run/evil/criu"][..],
        &["--criu=/run/evil/criu"],
        &["--shim", "/run/evil/criu"],
        &["--store", "/run/evil/store"],
        &["--run-dir", "/run/evil"],
        &["--user", "0"],
        &["--interval", "10s", "--user", "0"],
        &["--interval", "10s --user 0"],
        &["--interval", "10s\n--user\n0"],
        &["--interval", "1s"],
        &["--interval", "1000h"],
        &["--interval"],
        &["touch"],
    ] {
        let arguments = [&["run"], flags, &["--", "touch", "/run/evil/done"]].concat();
        refused(&site.job(&[], &arguments)?, "phos-ft-job: ")?;
    }
    // Behind it they are the command's: there is no such program.
    let output = site.job(&[], &["run", "--", "--user", "0"])?;
    ensure!(output.status.code() == Some(127), "{}", said(&output));
    // The job is one that Slurm says is running, and the caller's.
    for (id, words) in [
        ("", "is not the number of a job"),
        ("0", "is not the number of a job"),
        ("../7", "is not the number of a job"),
        ("7\n8", "is not the number of a job"),
        ("7 ", "is not the number of a job"),
        ("$(id)", "is not the number of a job"),
        ("8", "is not a running one of yours"),
        ("9", "is not a running one of yours"),
        ("12", "Slurm does not know job 12"),
    ] {
        let output = site.job(
            &[("SLURM_JOB_ID", id)],
            &["run", "--", "touch", "/run/evil/done"],
        )?;
        refused(&output, words).with_context(|| format!("job {id:?}"))?;
    }
    // Nothing else is allowed, and nothing of the environment by sudo's own flags.
    for command in [
        &["sudo", "-n", "/opt/phos/bin/phos-ft", "doctor"][..],
        &["sudo", "-n", "kill", "1"],
        &["sudo", "-n", "sh"],
        &["sudo", "-n", "-u", "other", WRAPPER, "stop"],
        &["sudo", "-n", "-E", WRAPPER, "stop"],
        &["sudo", "-n", "PHOS_USER=0", WRAPPER, "stop"],
        &["sudo", "-n", "LD_PRELOAD=/run/evil/criu", WRAPPER, "stop"],
    ] {
        refused(&site.user(54242, &[], command).output()?, "sudo: ")?;
    }
    // Places that somebody else could change, or that lead elsewhere.
    let job = |spoil: &str, mend: &str, words: &str| -> Result<()> {
        site.root(spoil)?;
        let output = site.job(&[], &["run", "--", "touch", "/run/evil/done"])?;
        refused(&output, words).with_context(|| spoil.to_owned())?;
        site.root(mend).map(drop)
    };
    job(
        "mv /run/phos-ft-slurm /run/real; ln -s real /run/phos-ft-slurm",
        "rm /run/phos-ft-slurm; mv /run/real /run/phos-ft-slurm",
        "/run/phos-ft-slurm is a link",
    )?;
    job(
        "mv /run/state/54242 /run/state/real; ln -s real /run/state/54242",
        "rm /run/state/54242; mv /run/state/real /run/state/54242",
        "/run/state/54242 is a link",
    )?;
    job(
        "chown 54242 /run/state",
        "chown 0 /run/state",
        "/run/state belongs to user 54242",
    )?;
    job(
        "chmod 777 /opt/phos",
        "chmod 755 /opt/phos",
        "/opt/phos can be changed by others than root",
    )?;
    job(
        "chmod 666 /etc/phos-ft/slurm.conf",
        "chmod 644 /etc/phos-ft/slurm.conf",
        "/etc/phos-ft/slurm.conf can be changed by others than root",
    )?;
    let marks = site.root("ls /run/evil")?;
    ensure!(
        !marks.contains("done") && !marks.contains("as-0"),
        "{marks}"
    );
    Ok(())
}

#[test]
fn a_slurm_job_is_stopped_with_a_checkpoint_queued_again_and_resumed() -> Result<()> {
    let site = Site::new()?;
    site.root(&format!(
        "cd {HOME}; cp {} train.sbatch; chmod 755 train.sbatch
         printf '#!/bin/sh\\nexec /opt/phos/bin/phos-trainer --steps 400 --step-ms 50 --log loss.log\\n' >train.sh
         chmod 755 train.sh; chown 54242:54242 train.sh train.sbatch
         printf '#!/bin/sh\\necho \"$*\" >>{HOME}/scontrol.said\\n' >/opt/slurm/scontrol; chmod 755 /opt/slurm/scontrol
         /opt/phos/bin/phos-trainer --steps 400 --step-ms 0 --log /run/reference.log >/dev/null",
        here("../docker/slurm/train.sbatch").display()
    ))?;
    let inside = |path: &str| PathBuf::from(format!("/proc/{}/root{path}", site.inner));
    let path = [("PATH", "/opt/slurm:/usr/sbin:/usr/bin:/sbin:/bin")];
    let log = inside(&format!("{HOME}/slurm-7.out"));
    let steps = || {
        LossTrace::read(&inside(&format!("{HOME}/loss.log")))
            .ok()?
            .last_step()
    };
    let batch = || -> Result<Child> {
        let run = "exec ./train.sbatch >>slurm-7.out 2>&1";
        Ok(site.user(54242, &path, &["sh", "-c", run]).spawn()?)
    };
    // The batch shell, as its number is inside.
    let shell = || {
        let found = site
            .root("pgrep -u 54242 -f '^/bin/bash ./train.sbatch'")
            .ok()?;
        found.lines().next().map(str::to_owned)
    };
    let text = || std::fs::read_to_string(&log).unwrap_or_default();

    let mut first = batch()?;
    wait_for("steps", LIMIT, || steps().filter(|&step| step > 30)).with_context(text)?;
    // Somebody else ends nothing.
    let stop = ["sudo", "-n", WRAPPER, "stop"];
    let elsewhere = ["env", "-C", "/", "sudo", "-n", WRAPPER, "stop"];
    let mut other = site.enter();
    other
        .args(["setpriv", "--init-groups", "--reuid=54244", "--regid=54244"])
        .args(["env", "SLURM_JOB_ID=7"])
        .args(elsewhere);
    refused(&other.output()?, "job 7 is not yours")?;
    refused(
        &site.user(54242, &[("SLURM_JOB_ID", "9")], &stop).output()?,
        "has no phos-ft",
    )?;

    let pid = wait_for("the batch shell", LIMIT, shell)?;
    site.root(&format!("kill -TERM {}", pid.trim()))?;
    let ended = wait_for("the batch script to end", LIMIT, || {
        first.try_wait().ok()?
    })?;
    ensure!(ended.code() == Some(143), "{ended}: {}", text());
    let asked = std::fs::read_to_string(inside(&format!("{HOME}/scontrol.said")))?;
    ensure!(asked == "requeue 7\n", "{asked}");
    ensure!(text().contains("trigger=\"terminate\""), "{}", text());
    let stopped = steps().context("no step")?;

    let mut second = batch()?;
    let ended = wait_for("the job to end", LIMIT, || second.try_wait().ok()?).with_context(text)?;
    ensure!(ended.success(), "{ended}: {}", text());
    ensure!(text().contains("resumed checkpoint="), "{}", text());
    let trace = LossTrace::read(&inside(&format!("{HOME}/loss.log")))?;
    ensure!(
        stopped < 399 && trace.len() == 400,
        "{stopped}, {}",
        trace.len()
    );
    let reference = LossTrace::read(&inside("/run/reference.log"))?;
    ensure!(trace.first_difference(&reference).is_none());
    Ok(())
}
