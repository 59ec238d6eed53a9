//! The job, the agent, the sidecar or the whole node die; the loss trace does not show it.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::scenario::{
    LIMIT, checkpoint, disturbed, finish, finished, kill_job_and_wait, last_step, sidecar,
    wait_said, wait_step,
};
use phos_integration_tests::{Event, JobSpec, PhosFt, World, kill_all, processes_with, wait_for};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};

fn spec() -> JobSpec {
    JobSpec {
        interval: "700ms".into(),
        ..JobSpec::default()
    }
}

fn with_trainer(args: &[&str]) -> JobSpec {
    let mut spec = spec();
    spec.trainer.extend(args.iter().map(|a| (*a).to_owned()));
    spec
}

#[test]
fn an_undisturbed_run_under_phos_ft_has_the_same_losses() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &spec(), |world, phos| {
        // By the interval, and with all that the job makes.
        world.wait_checkpoints(phos, 1, LIMIT)?;
        checkpoint(world, phos).map(drop)
    })
}

#[test]
fn kill_9_of_the_trainer() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &spec(), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// A job that has more than half of its GPU: there is no room for its memory twice. Its sidecar's restores hold where processes wait for their memory,
/// until the file is removed.
fn held_before_memory_is_filled(world: &World) -> Result<(JobSpec, PathBuf)> {
    let hold = world.path("hold");
    std::fs::write(&hold, "")?;
    let point = format!("sidecar:before-filled=hold:{}", hold.display());
    let spec = with_trainer(&["--state-mib", "120"]).with_env("PHOS_FAILPOINT", &point);
    Ok((spec, hold))
}

/// The job was killed, and its processes are back and wait.
fn waits_for_its_memory(world: &World, phos: &PhosFt, hold: &Path) -> Result<Vec<i32>> {
    checkpoint(world, phos)?;
    kill_job_and_wait(world, phos)?;
    let reached = hold.with_extension("reached");
    wait_for("the sidecar to hold", LIMIT, || {
        reached.exists().then_some(())
    })?;
    let waiting = world.tree().job;
    ensure!(
        !waiting.is_empty() && phos.times(Event::Resumed) == 0,
        "{}",
        phos.tail()
    );
    Ok(waiting)
}

fn goes_on(world: &World, phos: &PhosFt) -> Result<()> {
    let step = last_step(world).unwrap_or(0);
    wait_step(world, phos, step + 3)
}

/// Who was filling it is gone: another sidecar resumes the job.
#[test]
fn kill_9_of_the_sidecar_while_processes_wait_for_their_memory() -> Result<()> {
    let world = World::simulated(1, 192)?;
    let (spec, hold) = held_before_memory_is_filled(&world)?;
    disturbed(&world, &spec, |world, phos| {
        let waiting = waits_for_its_memory(world, phos, &hold)?;
        kill_all(&[sidecar(world)?]);
        std::fs::remove_file(&hold)?;
        wait_said(phos, &["resumed checkpoint="])?;
        let job = world.tree().job;
        ensure!(
            job.iter().all(|pid| !waiting.contains(pid)),
            "{}",
            phos.tail()
        );
        goes_on(world, phos)
    })
}

/// They are brought back once more, from the same checkpoint and in the same memory.
#[test]
fn kill_9_of_processes_that_wait_for_their_memory() -> Result<()> {
    let world = World::simulated(1, 192)?;
    let (spec, hold) = held_before_memory_is_filled(&world)?;
    disturbed(&world, &spec, |world, phos| {
        let waiting = waits_for_its_memory(world, phos, &hold)?;
        kill_all(&waiting);
        std::fs::remove_file(&hold)?;
        wait_said(
            phos,
            &["trying the same checkpoint again", "resumed checkpoint="],
        )?;
        goes_on(world, phos)
    })
}

/// The new sidecar knows nothing of the job's memory, of which there is no room for two.
#[test]
fn a_crash_soon_after_the_sidecar_was_restarted() -> Result<()> {
    let world = World::simulated(1, 192)?;
    let spec = JobSpec {
        interval: "never".into(),
        ..with_trainer(&["--state-mib", "120"])
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let old = sidecar(world)?;
        kill_all(&[old]);
        wait_for("another sidecar", LIMIT, || {
            let connected = phos.said().matches("connected to the agent").count() == 2;
            (connected && sidecar(world).is_ok_and(|new| new != old)).then_some(())
        })
        .map_err(|e| e.context(phos.tail()))?;
        kill_job_and_wait(world, phos)?;
        wait_said(phos, &["resumed checkpoint="])
    })
}

/// The agent is told to end while processes wait for their memory, and does not wait with them.
fn ends_while_processes_wait(signal: Signal) -> Result<()> {
    let world = World::simulated(1, 192)?;
    let (spec, hold) = held_before_memory_is_filled(&world)?;
    let spec = spec.with_phos(&["--grace", "300s"]);
    let mut phos = world.start(&spec)?;
    waits_for_its_memory(&world, &phos, &hold)?;
    let agent = *world.tree().agent.first().context("no agent")?;
    kill_process(Pid::from_raw(agent).context("no agent")?, signal)?;
    // The sidecar holds, and hears of nothing.
    wait_for("the agent to end", LIMIT, || {
        world.tree().agent.is_empty().then_some(())
    })
    .map_err(|e| e.context(phos.tail()))?;
    std::fs::remove_file(&hold)?;
    let status = phos.wait(LIMIT)?;
    ensure!(!status.success(), "{status}: {}", phos.tail());
    let resumed = phos.times(Event::Resumed);
    ensure!(
        resumed == 0 && !phos.said().contains("the job was restored"),
        "{}",
        phos.tail()
    );
    let mut phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finished(&world, &mut phos, &spec)
}

/// There is nothing that a grace time would be of use for.
#[test]
fn sigterm_while_processes_wait_for_their_memory() -> Result<()> {
    ends_while_processes_wait(Signal::TERM)
}

/// The job, whose main process dies of it, is not brought back.
#[test]
fn sigint_while_processes_wait_for_their_memory() -> Result<()> {
    ends_while_processes_wait(Signal::INT)
}

/// Ten seeds a test, so that nextest may run them side by side.
fn kill_9_at_random_times(seeds: std::ops::Range<u64>) -> Result<()> {
    for seed in seeds {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let world = World::simulated(1, 256)?;
        let spec = JobSpec {
            interval: format!("{}ms", rng.random_range(300..1200)),
            ..with_trainer(&["--churn-mib", "3", "--step-ms", "20"])
        };
        disturbed(&world, &spec, |world, phos| {
            world.wait_checkpoints(phos, 1, LIMIT)?;
            for _ in 0..rng.random_range(1..3) {
                let step = last_step(world).unwrap_or(0) + rng.random_range(0..60);
                wait_step(world, phos, step)?;
                std::thread::sleep(Duration::from_micros(rng.random_range(0..20_000)));
                kill_job_and_wait(world, phos)?;
            }
            Ok(())
        })
        .map_err(|e| e.context(format!("seed {seed}")))?;
    }
    Ok(())
}

#[test]
fn kill_9_at_random_times_seeds_0_to_9() -> Result<()> {
    kill_9_at_random_times(0..10)
}

/// Two thirds of them in the profile `slow`.
mod in_full {
    use super::*;

    #[test]
    fn kill_9_at_random_times_seeds_10_to_19() -> Result<()> {
        kill_9_at_random_times(10..20)
    }

    #[test]
    fn kill_9_at_random_times_seeds_20_to_29() -> Result<()> {
        kill_9_at_random_times(20..30)
    }

    #[test]
    fn more_checkpoints_beside_a_job_that_is_killed_again_and_again() -> Result<()> {
        checkpoints_beside_kills(15)
    }
}

#[test]
fn checkpoints_beside_a_job_that_is_killed_again_and_again() -> Result<()> {
    checkpoints_beside_kills(6)
}

/// Two jobs on one machine keep their TCP connections, in one network: what one does when it was killed, and is resumed, leaves alone what
/// holds back the other one's connections while that is dumped. So many times.
fn checkpoints_beside_kills(checkpoints: u32) -> Result<()> {
    let (world, beside) = (World::simulated(1, 256)?, World::simulated(1, 256)?);
    let spec = JobSpec {
        interval: "never".into(),
        ..with_trainer(&["--tcp", "--step-ms", "5"])
    }
    .with_phos(&["--max-restarts", "1000"]);
    let mut other = beside.start(&spec)?;
    checkpoint(&beside, &other)?;
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let kills = scope.spawn(|| -> Result<()> {
                while !done.load(Ordering::Acquire) {
                    kill_job_and_wait(&beside, &other)?;
                }
                Ok(())
            });
            // None of them fails.
            let taken = (0..checkpoints).try_for_each(|_| world.json(&["checkpoint"]).map(drop));
            done.store(true, Ordering::Release);
            kills.join().map_err(|_| anyhow::anyhow!("it panicked"))??;
            taken
        })
    })?;
    finished(&beside, &mut other, &spec)
}

/// The job's processes exist before CRIU, the driver and the shim are done with them.
#[test]
fn kill_9_in_the_middle_of_a_restore() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        phos: vec!["--max-restarts".into(), "20".into()],
        ..spec()
    };
    disturbed(&world, &spec, |world, phos| {
        checkpoint(world, phos)?;
        // Each returns as soon as CRIU has made a process, so the next kill hits the restore.
        for _ in 0..4 {
            kill_job_and_wait(world, phos)?;
        }
        Ok(())
    })
}

#[test]
fn node_loss_with_nothing_but_the_store_left() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = spec();
    let mut phos = world.start(&spec)?;
    world.wait_checkpoints(&mut phos, 1, LIMIT)?;
    checkpoint(&world, &phos)?;
    world.lose_node()?;
    ensure!(!world.log().exists());
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint="])?;
    finish(&world, phos, &spec)
}

#[test]
fn the_agent_dies_and_all_of_the_job_with_it() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = with_trainer(&["--workers", "2"]);
    let mut phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    kill_all(&world.tree().agent);
    wait_for("the job to be gone", LIMIT, || {
        world.tree().job.is_empty().then_some(())
    })?;
    let _ = phos.wait(LIMIT)?;
    world.kill_everything()?;
    let phos = world.start(&spec)?;
    finish(&world, phos, &spec)
}

#[test]
fn three_generations() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = JobSpec {
        interval: "700ms".into(),
        ..spec()
    };
    disturbed(&world, &spec, |world, phos| {
        for _ in 0..3 {
            checkpoint(world, phos)?;
            kill_job_and_wait(world, phos)?;
        }
        Ok(())
    })
}

#[test]
fn a_tree_of_workers() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &with_trainer(&["--workers", "3"]), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

#[test]
fn a_job_that_forks() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(
        &world,
        &with_trainer(&["--fork-every", "3"]),
        |world, phos| {
            checkpoint(world, phos)?;
            kill_job_and_wait(world, phos)
        },
    )
}

#[test]
fn captured_graphs() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &with_trainer(&["--graph"]), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

#[test]
fn the_applications_own_vmm() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &with_trainer(&["--expandable"]), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

#[test]
fn two_devices() -> Result<()> {
    let world = World::simulated(2, 256)?;
    disturbed(&world, &with_trainer(&["--devices", "2"]), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

#[test]
fn several_processes_with_cuda() -> Result<()> {
    let world = World::simulated(1, 512)?;
    disturbed(
        &world,
        &with_trainer(&["--rank-processes", "2"]),
        |world, phos| {
            checkpoint(world, phos)?;
            kill_job_and_wait(world, phos)
        },
    )
}

#[test]
fn established_tcp_is_closed_not_fatal() -> Result<()> {
    let world = World::simulated(1, 256)?;
    disturbed(&world, &with_trainer(&["--tcp"]), |world, phos| {
        checkpoint(world, phos)?;
        kill_job_and_wait(world, phos)
    })
}

/// An address of a network of its own for documentation (RFC 5737) on this machine's loopback interface, as on a network card.
struct Address(String);

impl Address {
    fn add() -> Result<Address> {
        let address = Address(format!("198.51.100.{}", 1 + std::process::id() % 254));
        address.change("add")?;
        Ok(address)
    }

    fn change(&self, what: &str) -> Result<()> {
        let done = Command::new("ip")
            .args(["address", what, &format!("{}/32", self.0), "dev", "lo"])
            .output()?;
        ensure!(done.status.success(), "{done:?}");
        Ok(())
    }

    fn is_there(&self) -> bool {
        std::net::TcpListener::bind((self.0.as_str(), 0)).is_ok()
    }
}

impl Drop for Address {
    fn drop(&mut self) {
        let _ = self.change("del");
    }
}

/// As the ranks of a job on one machine talk, through its network card: the connection is there after a crash, and on a machine
/// that has another address.
#[test]
fn tcp_on_an_address_that_the_next_machine_lacks() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let address = Address::add()?;
    let spec = with_trainer(&["--tcp", "--tcp-address", &address.0]);
    let phos = world.start(&spec)?;
    checkpoint(&world, &phos)?;
    kill_job_and_wait(&world, &phos)?;
    checkpoint(&world, &phos)?;
    world.lose_node()?;
    address.change("del")?;
    ensure!(!address.is_there());
    let phos = world.start(&spec)?;
    wait_said(&phos, &["resumed checkpoint=", &address.0])?;
    ensure!(address.is_there());
    let output = phos.output.clone();
    // Nothing has that address in an undisturbed run; what is sent is the same.
    finish(&world, phos, &with_trainer(&["--tcp"]))?;
    ensure!(!address.is_there(), "it was left behind");
    let said = std::fs::read_to_string(output)?;
    ensure!(said.contains("TCP: 0 reconnects"), "{said}");
    Ok(())
}

fn on_demand() -> JobSpec {
    JobSpec {
        interval: "never".into(),
        ..spec()
    }
}

/// Starts what writes to its standard output, of which the caller has the other end.
fn start_read(world: &World, mut command: Command) -> Result<(PhosFt, BufReader<ChildStdout>)> {
    let output = world.path("phos-ft.log");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(File::create(&output)?)
        .spawn()?;
    let reader = BufReader::new(child.stdout.take().context("no pipe")?);
    Ok((PhosFt { child, output }, reader))
}

/// As of `phos-ft … -- python train.py | head`: a checkpoint, and then nobody reads any more. How phos-ft ends.
fn ends_without_reader(world: &World, command: Command) -> Result<Option<i32>> {
    let (mut phos, mut reader) = start_read(world, command)?;
    let mut line = String::new();
    for _ in 0..5 {
        reader.read_line(&mut line)?;
    }
    let taken = wait_for("a checkpoint", LIMIT, || {
        world.json(&["checkpoint"]).ok()?["id"].as_u64()
    });
    taken.map_err(|e| e.context(phos.tail()))?;
    drop(reader);
    let status = phos.wait(LIMIT)?;
    let said = phos.said();
    ensure!(
        said.contains("the reader of the job's output has gone") && phos.times(Event::Crashed) == 0,
        "{status}: {said}"
    );
    ensure!(!world.checkpoints()?.is_empty(), "no checkpoint is left");
    Ok(status.code())
}

#[test]
fn a_job_that_dies_of_sigpipe_because_its_reader_left_is_not_brought_back() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let mut command = world.phos_ft(&on_demand());
    command.args([
        "--",
        "sh",
        "-c",
        "while :; do echo at work; sleep 0.05; done",
    ]);
    ensure!(ends_without_reader(&world, command)? == Some(141));
    Ok(())
}

/// Programs in Python and Rust get an error instead of the signal.
#[test]
fn a_job_that_fails_because_its_reader_left_is_not_brought_back() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = on_demand();
    ensure!(ends_without_reader(&world, world.trainer(&spec))? == Some(1));
    // Started again, it goes on from its checkpoint.
    let phos = world.start(&spec)?;
    finish(&world, phos, &spec)
}

/// Of a socket between ranks, say.
#[test]
fn a_sigpipe_while_somebody_reads_is_a_crash() -> Result<()> {
    let world = World::simulated(1, 256)?;
    let spec = on_demand();
    let marker = world.path("work/marker").display().to_string();
    let mut command = world.phos_ft(&spec);
    let script = format!("while :; do echo at work; sleep 0.05; done # {marker}");
    command.args(["--", "sh", "-c", &script]);
    let (phos, mut reader) = start_read(&world, command)?;
    let mut line = String::new();
    reader.read_line(&mut line)?;
    std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    wait_for("a checkpoint", LIMIT, || {
        world.json(&["checkpoint"]).ok()?["id"].as_u64()
    })
    .map_err(|e| e.context(phos.tail()))?;
    let of_phos_ft = processes_with(&["phos-ft"]);
    let shells: Vec<i32> = (processes_with(&["sh", &marker]).into_iter())
        .filter(|pid| !of_phos_ft.contains(pid))
        .collect();
    ensure!(!shells.is_empty(), "no job");
    for pid in shells {
        let pid = rustix::process::Pid::from_raw(pid).context("no PID")?;
        rustix::process::kill_process(pid, rustix::process::Signal::PIPE)?;
    }
    wait_said(&phos, &["bringing it back", "the job was restored"])
}
