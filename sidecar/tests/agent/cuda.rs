//! The agent with the real shim, the simulated driver, the test trainer and real CRIU. The sidecar is a few lines:
//! it reads simulated device memory as files.
//!
//! Needs `libphos_shim.so`, `libphos_gpu_sim.so` and `phos-trainer` beside the phos-ft binary (`cargo build --workspace`);
//! without them these tests fail and say so.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use crate::support::{Agent, Checkpoint, Options, Sidecar, can_run, until};
use phos_protocol::agent::{AttemptError, Exit, JobState, ToAgent, ToSidecar};
use phos_protocol::types::Allocation;
use rustix::fs::{Mode, OFlags};

fn built(name: &str) -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_phos-ft")).with_file_name(name)
}

/// A node with a simulated GPU, and what to start.
struct World {
    dir: tempfile::TempDir,
    devices: u32,
    extra: Vec<String>,
}

impl World {
    fn new(devices: u32, extra: &[&str]) -> Option<Self> {
        if !can_run() {
            return None;
        }
        for name in ["libphos_shim.so", "libphos_gpu_sim.so", "phos-trainer"] {
            assert!(
                built(name).exists(),
                "{} is not built: cargo build --workspace",
                built(name).display()
            );
        }
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("lib")).unwrap();
        for name in ["libcuda.so.1", "libcuda.so"] {
            std::os::unix::fs::symlink(
                built("libphos_gpu_sim.so"),
                dir.path().join("lib").join(name),
            )
            .unwrap();
        }
        std::fs::create_dir_all(dir.path().join("sim/proc")).unwrap();
        for device in 0..devices {
            let path = dir.path().join(format!("sim/dev{device}"));
            std::fs::create_dir_all(&path).unwrap();
            rustix::mount::mount(
                "sim",
                &path,
                "tmpfs",
                rustix::mount::MountFlags::empty(),
                Some(c"size=512m"),
            )
            .unwrap();
        }
        Some(Self {
            dir,
            devices,
            extra: extra.iter().map(|s| (*s).to_owned()).collect(),
        })
    }

    fn env(&self) -> Vec<(&'static str, String)> {
        vec![
            (
                "LD_LIBRARY_PATH",
                self.dir.path().join("lib").display().to_string(),
            ),
            (
                "PHOS_SIM_DIR",
                self.dir.path().join("sim").display().to_string(),
            ),
            ("PHOS_SHIM_LOG", "info".into()),
        ]
    }

    fn log(&self) -> PathBuf {
        self.dir.path().join("log.txt")
    }

    fn command(&self, log: &Path, steps: u64, pause: u64) -> Vec<String> {
        let mut words = vec![
            built("phos-trainer").display().to_string(),
            "--steps".into(),
            steps.to_string(),
            "--step-ms".into(),
            pause.to_string(),
            "--layers".into(),
            "16,64,64,8".into(),
            "--batch".into(),
            "16".into(),
            "--log".into(),
            log.display().to_string(),
        ];
        words.extend(self.extra.iter().cloned());
        words
    }

    /// The losses of an undisturbed run without phos-ft.
    fn reference(&self, steps: u64) -> String {
        let log = self.dir.path().join("reference.txt");
        let words = self.command(&log, steps, 0);
        let status = std::process::Command::new(&words[0])
            .args(&words[1..])
            .envs(self.env())
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success());
        std::fs::read_to_string(log).unwrap()
    }

    fn agent(&self, steps: u64, more_env: &[(&'static str, String)]) -> (Agent, Sidecar) {
        let words = self.command(&self.log(), steps, 10);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut env = self.env();
        env.extend(more_env.iter().cloned());
        let options = Options {
            env,
            shim: built("libphos_shim.so"),
            ..Options::default()
        };
        let agent = Agent::start(self.dir.path(), &words, &options);
        let sidecar = agent.sidecar();
        (agent, sidecar)
    }

    fn steps(&self) -> usize {
        std::fs::read_to_string(self.log())
            .unwrap_or_default()
            .lines()
            .count()
    }

    fn grows(&self, by: usize) {
        let before = self.steps();
        until("training", || (self.steps() >= before + by).then_some(()));
    }

    fn kill_job(&self, agent: &Agent) {
        agent.kill_root(self.log().to_str().unwrap());
    }

    /// Simulated device memory with this content.
    fn memory(&self, allocation: &Allocation, bytes: &[u8]) -> OwnedFd {
        let device = self
            .dir
            .path()
            .join(format!("sim/dev{}", allocation.device));
        let fd = rustix::fs::open(
            &device,
            OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o600),
        )
        .unwrap();
        let mut at = 0;
        while at < bytes.len() {
            at += rustix::io::pwrite(&fd, &bytes[at..], at as u64).unwrap();
        }
        fd
    }

    fn restore(&self, sidecar: &mut Sidecar, checkpoint: &Checkpoint) {
        sidecar
            .restore(checkpoint, |a, bytes| self.memory(a, bytes))
            .unwrap();
    }

    fn finish(&self, mut agent: Agent, sidecar: &Sidecar, steps: u64) {
        assert_eq!(sidecar.exited(), (Exit::Code(0), false));
        assert_eq!(agent.wait(), 0);
        let losses = std::fs::read_to_string(self.log()).unwrap();
        assert_eq!(
            losses,
            self.reference(steps),
            "losses differ from those of an undisturbed run"
        );
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for device in 0..self.devices {
            let path = self.dir.path().join(format!("sim/dev{device}"));
            let _ = rustix::mount::unmount(&path, rustix::mount::UnmountFlags::DETACH);
        }
    }
}

#[test]
fn training_is_bit_identical_through_checkpoints_kills_and_node_loss() {
    let Some(world) = World::new(1, &["--noise-thread", "--ballast-mib", "8"]) else {
        return;
    };
    let steps = 400;
    let (agent, mut sidecar) = world.agent(steps, &[]);
    sidecar.start();
    world.grows(10);
    for generation in 0..3 {
        let checkpoint = sidecar.checkpoint(&world.dir.path().join(format!("image-{generation}")));
        assert!(!checkpoint.memory.is_empty());
        assert_eq!(checkpoint.facts.processes.len(), 1);
        world.grows(10);
        world.kill_job(&agent);
        sidecar.exited();
        world.restore(&mut sidecar, &checkpoint);
        world.grows(10);
    }
    // Node loss.
    let checkpoint = sidecar.checkpoint(&world.dir.path().join("image-last"));
    world.grows(5);
    drop((agent, sidecar));
    until("the end", || {
        (!Path::new("/proc/self").exists() || world.steps() > 0).then_some(())
    });
    std::fs::remove_file(world.log()).unwrap();
    let _ = std::fs::remove_dir_all(world.dir.path().join("run"));
    let (agent, mut sidecar) = world.agent(steps, &[]);
    assert_eq!(sidecar.job, JobState::Waiting);
    world.restore(&mut sidecar, &checkpoint);
    // And one more checkpoint of the restored job on the new agent, not used.
    world.grows(5);
    sidecar.checkpoint(&world.dir.path().join("image-unused"));
    world.finish(agent, &sidecar, steps);
}

#[test]
fn the_sidecar_vanishing_at_any_step_changes_no_loss() {
    let Some(world) = World::new(1, &["--expandable"]) else {
        return;
    };
    let steps = 300;
    let (agent, sidecar) = world.agent(steps, &[]);
    sidecar.start();
    world.grows(5);
    drop(sidecar);
    for step in 0..6 {
        let mut sidecar = agent.sidecar();
        until("an attempt", || match sidecar.quiesce() {
            Ok(_) => Some(()),
            // The attempt before is not over, or NVML has not answered: the sidecar would try again as well.
            Err(AttemptError::OutOfOrder(_) | AttemptError::Soon(_)) => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                None
            }
            Err(e) => panic!("{e}"),
        });
        match step {
            0 => {}
            1 => {
                sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
            }
            2 => {
                sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
                std::thread::sleep(std::time::Duration::from_millis(30));
            }
            3 => {
                sidecar.dump().unwrap();
            }
            4 => {
                sidecar.dump().unwrap();
                sidecar.send(&ToAgent::Attach { seq: sidecar.seq });
            }
            _ => {
                sidecar.send(&ToAgent::Abandon { seq: sidecar.seq });
                sidecar.resumed();
            }
        }
        drop(sidecar);
        world.grows(5);
    }
    let mut sidecar = agent.sidecar();
    let checkpoint = sidecar.checkpoint(&world.dir.path().join("image"));
    world.grows(3);
    world.kill_job(&agent);
    sidecar.exited();
    world.restore(&mut sidecar, &checkpoint);
    world.finish(agent, &sidecar, steps);
}

#[test]
fn workers_and_several_cuda_processes_are_one_image() {
    let Some(world) = World::new(
        2,
        &[
            "--workers",
            "2",
            "--rank-processes",
            "1",
            "--fork-every",
            "7",
        ],
    ) else {
        return;
    };
    let steps = 400;
    let (agent, mut sidecar) = world.agent(steps, &[]);
    sidecar.start();
    world.grows(10);
    until("the other rank to train", || {
        let log = world.log().with_extension("txt.rank1");
        (std::fs::metadata(log).ok()?.len() > 0).then_some(())
    });
    let checkpoint = sidecar.checkpoint(&world.dir.path().join("image"));
    assert_eq!(checkpoint.facts.processes.len(), 2);
    world.grows(10);
    world.kill_job(&agent);
    sidecar.exited();
    world.restore(&mut sidecar, &checkpoint);
    world.grows(5);
    let again = sidecar.checkpoint(&world.dir.path().join("image-2"));
    world.restore(&mut sidecar, &again);
    world.finish(agent, &sidecar, steps);
}

#[test]
fn the_agent_dying_at_any_step_loses_nothing_but_the_attempt() {
    for point in [
        "agent:after-quiesce",
        "agent:after-detach",
        "agent:before-criu",
        "agent:after-criu",
        "agent:before-attach",
        "agent:mid-attach",
    ] {
        let Some(world) = World::new(1, &[]) else {
            return;
        };
        let steps = 300;
        let (agent, mut sidecar) = world.agent(steps, &[]);
        sidecar.start();
        world.grows(5);
        let checkpoint = sidecar.checkpoint(&world.dir.path().join("image"));
        drop((agent, sidecar));
        let (mut agent, mut sidecar) = world.agent(steps, &[]);
        world.restore(&mut sidecar, &checkpoint);
        world.grows(3);
        drop((agent, sidecar));
        // The failpoint is met in the first checkpoint of a fresh job, so that the restore does not meet it.
        let _ = std::fs::remove_file(world.log());
        (agent, sidecar) = world.agent(steps, &[("PHOS_FAILPOINT", point.into())]);
        sidecar.start();
        world.grows(3);
        if point == "agent:after-quiesce" {
            sidecar.quiesce_until_it_dies();
        } else {
            sidecar.quiesce().unwrap();
            sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
        }
        if point.ends_with("attach") {
            while !matches!(sidecar.recv().0, ToSidecar::Dumped { .. }) {}
            sidecar.send(&ToAgent::Attach { seq: sidecar.seq });
        }
        assert_eq!(agent.wait(), 137, "{point}");
        drop((agent, sidecar));
        let (agent, mut sidecar) = world.agent(steps, &[]);
        world.restore(&mut sidecar, &checkpoint);
        world.finish(agent, &sidecar, steps);
    }
}

#[test]
fn a_driver_without_checkpoint_calls_is_said_and_the_job_runs_on() {
    let Some(world) = World::new(1, &[]) else {
        return;
    };
    let (agent, mut sidecar) = world.agent(300, &[("PHOS_SIM_NO_CHECKPOINT", "1".into())]);
    sidecar.start();
    world.grows(3);
    let error = match sidecar.quiesce() {
        Err(e) => e,
        Ok(_) => sidecar.dump().unwrap_err(),
    };
    assert!(
        matches!(error, AttemptError::Control(_) | AttemptError::Shim { .. }),
        "{error}"
    );
    eprintln!("{error}");
    world.finish(agent, &sidecar, 300);
}

/// Bounds that a test can wait for.
const SHORT: &str = "driver=1500,lock=1500,criu=4000,freeze=4000";

/// A world in which a call of the driver hangs when the file is made, and a job with a checkpoint in it.
fn with_a_call_that_hangs(
    call: &str,
    steps: u64,
) -> Option<(World, PathBuf, Agent, Sidecar, Checkpoint)> {
    let world = World::new(1, &["--ballast-mib", "4"])?;
    let hang = world.dir.path().join("hang");
    let env = [
        ("PHOS_SIM_HANG", format!("{call}={}", hang.display())),
        (
            "PHOS_TIMEOUTS",
            // One that comes back when its process has ended has time for it.
            if call.ends_with('!') {
                format!("{SHORT},reap=1500")
            } else {
                SHORT.into()
            },
        ),
    ];
    let (agent, mut sidecar) = world.agent(steps, &env);
    sidecar.start();
    world.grows(5);
    let checkpoint = sidecar.checkpoint(&world.dir.path().join("image"));
    world.grows(5);
    Some((world, hang, agent, sidecar, checkpoint))
}

#[test]
fn a_driver_that_hangs_in_a_checkpoint_costs_the_steps_since_the_last_one() {
    for call in ["checkpoint", "restore"] {
        let steps = 200;
        let Some((world, hang, agent, mut sidecar, checkpoint)) =
            with_a_call_that_hangs(call, steps)
        else {
            return;
        };
        sidecar.quiesce().unwrap();
        std::fs::write(&hang, "").unwrap();
        sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
        // In either order.
        let said = [sidecar.recv().0, sidecar.recv().0];
        assert!(
            said.iter().any(|m| matches!(
                m,
                ToSidecar::JobExited {
                    exit: Exit::Signal(9),
                    stopping: false
                }
            )),
            "{call}: {said:?}"
        );
        assert!(
            said.iter().any(|m| matches!(
                m,
                ToSidecar::Dumped {
                    outcome: Err(_),
                    ..
                }
            )),
            "{call}: {said:?}"
        );
        assert!(!hang.exists(), "{call} was not called");
        world.restore(&mut sidecar, &checkpoint);
        // The agent is none the worse for it.
        let next = sidecar.checkpoint(&world.dir.path().join("image-2"));
        world.kill_job(&agent);
        sidecar.exited();
        world.restore(&mut sidecar, &next);
        world.finish(agent, &sidecar, steps);
    }
}

#[test]
fn a_driver_that_hangs_in_a_restore_is_tried_again() {
    let steps = 200;
    let Some((world, hang, agent, mut sidecar, checkpoint)) =
        with_a_call_that_hangs("restore", steps)
    else {
        return;
    };
    world.kill_job(&agent);
    sidecar.exited();
    std::fs::write(&hang, "").unwrap();
    let refused = sidecar.restore(&checkpoint, |a, bytes| world.memory(a, bytes));
    assert!(refused.is_err() && !hang.exists(), "{refused:?}");
    world.restore(&mut sidecar, &checkpoint);
    world.finish(agent, &sidecar, steps);
}

#[test]
fn a_driver_that_never_comes_back_ends_the_agent_and_another_one_resumes() {
    for dumping in [true, false] {
        let steps = 200;
        let Some((world, hang, mut agent, mut sidecar, checkpoint)) =
            with_a_call_that_hangs("restore!", steps)
        else {
            return;
        };
        if dumping {
            sidecar.quiesce().unwrap();
            std::fs::write(&hang, "").unwrap();
            sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
        } else {
            world.kill_job(&agent);
            sidecar.exited();
            std::fs::write(&hang, "").unwrap();
            sidecar.ask_restore(&checkpoint, |a, bytes| world.memory(a, bytes));
        }
        assert_eq!(agent.wait(), 71, "dumping: {dumping}");
        assert!(agent.err().contains("dmesg"), "{}", agent.err());
        drop((agent, sidecar));
        let (agent, mut sidecar) = world.agent(steps, &[]);
        world.restore(&mut sidecar, &checkpoint);
        world.finish(agent, &sidecar, steps);
    }
}
