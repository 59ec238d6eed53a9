//! `make figures`: what agent and sidecar take in containers, idle and while checkpoints are taken all the time. Memory and CPU
//! of the processes are from `/proc`, those of the containers from `docker stats`. The table of `docs/deploy.md`.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use phos_integration_tests::docker::{Node, Services, Stack, docker};

/// For how long each case is looked at.
const TIME: Duration = Duration::from_secs(30);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(250);

/// Ticks a second in `/proc/PID/stat`: the same on all Linux but that of Alpha.
const USER_HZ: f64 = 100.0;

/// What was found of a service.
struct Figures {
    /// Resident memory of its first process, in bytes: the median and the most of what was seen.
    resident: (u64, u64),
    /// CPU time of that process for each second, in percent of one core.
    cpu: f64,
    /// What `docker stats` says of the container's memory and CPU at the end.
    container: String,
}

fn main() -> Result<()> {
    println!("phos-ft in containers, on a simulated GPU, {TIME:?} each:");
    for (case, interval) in [("idle", "1h"), ("a checkpoint every 2 s", "2s")] {
        let command = "phos-trainer --steps 1000000 --step-ms 20 --workers 2 --ballast-mib 32 --log /work/loss.log";
        let services = Services {
            command: command.split(' ').map(str::to_owned).collect(),
            interval: interval.into(),
            ..Services::default()
        };
        let stack = Stack::new(services, "/work/loss.log")?;
        stack.up(&[Node::A.trainer()])?;
        stack.wait_step(Node::A, 50)?;
        let had = if case == "idle" {
            0
        } else {
            stack.wait_checkpoint(Node::A, 0)?
        };
        let services = [Node::A.trainer(), Node::A.sidecar()];
        let figures = look_at(&stack, services)?;
        let stored = stack.checkpoints(Node::A)?;
        let stored = stored.iter().filter(|c| c.number > had);
        println!("{case} ({} checkpoints meanwhile):", stored.count());
        for (service, figures) in services.iter().zip(figures) {
            println!(
                "  {service:<10} resident {:>4} MiB, at most {:>4} MiB, CPU {:>4.1} %; its container: {}",
                figures.resident.0 >> 20,
                figures.resident.1 >> 20,
                figures.cpu,
                figures.container
            );
        }
    }
    Ok(())
}

fn look_at(stack: &Stack, services: [&str; 2]) -> Result<Vec<Figures>> {
    let pids = services
        .iter()
        .map(|service| stack.inspect(service, "{{.State.Pid}}"))
        .collect::<Result<Vec<_>>>()?;
    let ticks = || {
        pids.iter()
            .map(|pid| cpu_seconds(pid))
            .collect::<Result<Vec<_>>>()
    };
    let (began, before) = (Instant::now(), ticks()?);
    let mut seen = vec![Vec::new(); pids.len()];
    while began.elapsed() < TIME {
        for (pid, seen) in pids.iter().zip(&mut seen) {
            seen.push(resident(pid)?);
        }
        std::thread::sleep(PAUSE);
    }
    let (seconds, after) = (began.elapsed().as_secs_f64(), ticks()?);
    let mut figures = Vec::new();
    for (i, mut seen) in seen.into_iter().enumerate() {
        seen.sort_unstable();
        let container = stack.container(services[i])?;
        let template = "{{.MemUsage}}, CPU {{.CPUPerc}}";
        let stats = docker(&["stats", "--no-stream", "--format", template, &container])?;
        figures.push(Figures {
            resident: (seen[seen.len() / 2], seen[seen.len() - 1]),
            cpu: (after[i] - before[i]) / seconds * 100.0,
            container: stats.trim().to_owned(),
        });
    }
    Ok(figures)
}

/// Resident memory in bytes.
fn resident(pid: &str) -> Result<u64> {
    let status = std::fs::read_to_string(Path::new("/proc").join(pid).join("status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("no VmRSS")? * 1024)
}

/// CPU time so far, user and system.
fn cpu_seconds(pid: &str) -> Result<f64> {
    let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"))?;
    // After the name, which may hold anything: state is the first, utime and stime the 12th and 13th.
    let fields = stat.rsplit(')').next().context("no fields")?;
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |n: usize| -> Result<f64> {
        Ok(fields.get(n).context("a short stat")?.parse::<u64>()? as f64)
    };
    Ok((ticks(11)? + ticks(12)?) / USER_HZ)
}
