//! A real agent with real CRIU and jobs without CUDA, driven by a sidecar made of a few lines.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

use crate::support::{Agent, Checkpoint, Options, Sidecar, can_run, no_memory, numbers, until};
use phos_protocol::agent::{AttemptError, Exit, JobState, QuiesceTime, ToAgent, ToSidecar};
use phos_protocol::shim::WatchTime;
use rustix::process::Signal;

/// Counts in several threads and a child process, to a log file and to stdout, in memory only.
const COUNTER: &str = r#"
import os, sys, threading, time
log = open(sys.argv[1], "a")
child = os.fork()
if child == 0:
    n = 0
    shared = open(sys.argv[1] + ".child", "a")
    while True:
        n += 1
        shared.write(f"child {n}\n"); shared.flush()
        time.sleep(0.02)
spin = 0
def worker():
    global spin
    while True:
        spin += 1
        time.sleep(0.005)
for _ in range(3):
    threading.Thread(target=worker, daemon=True).start()
n = 0
while True:
    n += 1
    log.write(f"step {n}\n"); log.flush()
    print(f"out {n}", flush=True)
    time.sleep(0.02)
"#;

fn counter(dir: &Path) -> (Agent, Sidecar) {
    let log = dir.join("log.txt");
    let agent = Agent::start(
        dir,
        &["python3", "-c", COUNTER, log.to_str().unwrap()],
        &Options::default(),
    );
    let sidecar = agent.sidecar();
    (agent, sidecar)
}

/// One that runs, and a checkpoint of it.
fn checkpointed(dir: &Path) -> (Agent, Sidecar, Checkpoint) {
    let (agent, mut sidecar) = counter(dir);
    sidecar.start();
    grows(dir, 5);
    let checkpoint = sidecar.checkpoint(&dir.join("image"));
    (agent, sidecar, checkpoint)
}

fn log(dir: &Path) -> Vec<u64> {
    numbers(
        &std::fs::read_to_string(dir.join("log.txt")).unwrap_or_default(),
        "step ",
    )
}

fn consecutive(found: &[u64]) {
    for (i, n) in found.iter().enumerate() {
        assert_eq!(*n, i as u64 + 1, "{found:?}");
    }
}

fn grows(dir: &Path, by: usize) {
    let before = log(dir).len();
    until("the log to grow", || {
        (log(dir).len() >= before + by).then_some(())
    });
}

/// Kills the job's main process from outside.
fn kill_job(agent: &Agent, dir: &Path) {
    agent.kill_root(dir.join("log.txt").to_str().unwrap());
}

#[test]
fn a_job_is_checkpointed_killed_and_resumed_three_times() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut agent, mut sidecar) = counter(dir.path());
    assert_eq!(sidecar.job, JobState::Waiting);
    sidecar.start();
    grows(dir.path(), 10);
    for generation in 0..3 {
        let image = dir.path().join(format!("image-{generation}"));
        let checkpoint = sidecar.checkpoint(&image);
        let at = numbers(
            &std::fs::read_to_string(image_file(&image, "log.txt")).unwrap(),
            "step ",
        )
        .len();
        grows(dir.path(), 10);
        kill_job(&agent, dir.path());
        assert_eq!(sidecar.exited(), (Exit::Signal(9), false));
        assert!(log(dir.path()).len() > at);
        let printed = agent.out().lines().count();
        sidecar.restore(&checkpoint, no_memory).unwrap();
        grows(dir.path(), 20);
        // The log shows no step twice; stdout goes on through the new pipe.
        consecutive(&log(dir.path()));
        assert!(agent.out().lines().count() > printed);
        let last = *numbers(&agent.out(), "out ").last().unwrap();
        assert!(last as usize > at, "{last} {at}");
        consecutive(&numbers(
            &std::fs::read_to_string(dir.path().join("log.txt.child")).unwrap(),
            "child ",
        ));
    }
    let cuts = std::fs::read_dir(dir.path())
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().contains("phos-cut"))
        .count();
    assert!(cuts >= 3);
    agent.signal(Signal::TERM);
    // The sidecar may work first.
    assert!(matches!(sidecar.recv().0, ToSidecar::Terminating { .. }));
    sidecar.send(&ToAgent::Terminate);
    assert_eq!(sidecar.exited(), (Exit::Signal(15), true));
    assert_eq!(agent.wait(), 143);
}

/// Runs on in its handler for SIGTERM until it is told to end.
const HANDLES: &str = r#"
import os, signal, sys, time
log = sys.argv[1]
def handle(*_):
    open(log + ".handles", "w").close()
    while not os.path.exists(log + ".end"):
        time.sleep(0.01)
    sys.exit(0)
signal.signal(signal.SIGTERM, handle)
open(log, "w").close()
while True:
    time.sleep(0.01)
"#;

/// A checkpoint of a job that handles its SIGTERM would be resumed in the handler, end with success, and be taken for complete.
#[test]
fn a_job_that_was_told_to_end_is_not_checkpointed() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log_file = dir.path().join("log.txt");
    let file = |name: &str| dir.path().join(name);
    let agent = Agent::start(
        dir.path(),
        &["python3", "-c", HANDLES, log_file.to_str().unwrap()],
        &Options::default(),
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    until("the job to run", || file("log.txt").exists().then_some(()));
    sidecar.checkpoint(&file("image"));
    agent.signal(Signal::TERM);
    assert!(matches!(sidecar.recv().0, ToSidecar::Terminating { .. }));
    sidecar.send(&ToAgent::Terminate);
    until("the handler to run", || {
        file("log.txt.handles").exists().then_some(())
    });
    assert_eq!(sidecar.quiesce(), Err(AttemptError::JobEnded));
    std::fs::write(file("log.txt.end"), "").unwrap();
    assert_eq!(sidecar.exited(), (Exit::Code(0), true));
}

/// The stored content of a file of the job.
fn image_file(image: &Path, name: &str) -> std::path::PathBuf {
    let agent: serde_json::Value =
        serde_json::from_slice(&std::fs::read(image.join("agent.json")).unwrap()).unwrap();
    let content = agent["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["path"].as_str().unwrap().ends_with(name))
        .unwrap()["content"]
        .as_str()
        .unwrap()
        .to_owned();
    image.join("files").join(content)
}

#[test]
fn node_loss_files_deleted_another_run_dir() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut agent, mut sidecar) = counter(dir.path());
    sidecar.start();
    grows(dir.path(), 10);
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    grows(dir.path(), 3);
    agent.kill();
    until("the job to end with its agent", || {
        agent
            .find(dir.path().join("log.txt").to_str().unwrap())
            .is_empty()
            .then_some(())
    });
    // The files and the run directory are gone as well.
    std::fs::remove_file(dir.path().join("log.txt")).unwrap();
    std::fs::remove_file(dir.path().join("log.txt.child")).unwrap();
    std::fs::remove_dir_all(dir.path().join("run")).unwrap();
    let other = dir.path().join("other");
    let agent = Agent::start(
        &other,
        &["python3", "-c", COUNTER, "unused"],
        &Options::default(),
    );
    let mut sidecar = agent.sidecar();
    assert_eq!(sidecar.job, JobState::Waiting);
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 20);
    consecutive(&log(dir.path()));
    // And again from there.
    let second = sidecar.checkpoint(&dir.path().join("image-2"));
    kill_job(&agent, dir.path());
    sidecar.exited();
    sidecar.restore(&second, no_memory).unwrap();
    grows(dir.path(), 20);
    consecutive(&log(dir.path()));
}

#[test]
fn a_restore_replaces_a_job_that_runs() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_agent, mut sidecar, checkpoint) = checkpointed(dir.path());
    grows(dir.path(), 10);
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 10);
    consecutive(&log(dir.path()));
}

/// The processes come back beside the last of a transfer: the job runs when that has ended, and is ended with what has failed.
#[test]
fn processes_that_are_back_wait_for_their_memory() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (agent, mut sidecar, checkpoint) = checkpointed(dir.path());
    kill_job(&agent, dir.path());
    sidecar.exited();
    let file = dir.path().join("log.txt").display().to_string();
    let gone = || {
        until("the tree to be gone", || {
            agent.find(&file).is_empty().then_some(())
        });
    };
    let back = || {
        until("the processes to be back", || {
            (!agent.find(&file).is_empty()).then_some(())
        });
    };
    gone();
    // It fails while they are being brought back, and when they are there.
    for wait in [false, true] {
        sidecar.ask_revive(&checkpoint, no_memory);
        if wait {
            back();
            assert!(sidecar.heard().is_none(), "nothing was filled yet");
        }
        sidecar.send(&ToAgent::Filled(Err("a pack is damaged".into())));
        assert_eq!(sidecar.restored(), Err("a pack is damaged".into()));
        gone();
    }
    // Nobody fills it any more.
    for wait in [false, true] {
        sidecar.ask_revive(&checkpoint, no_memory);
        if wait {
            back();
        }
        drop(sidecar);
        // Answered when nothing of that is in its way any more.
        sidecar = agent.sidecar();
        gone();
        assert!(
            matches!(sidecar.job, JobState::Ended(_)),
            "{:?}",
            sidecar.job
        );
    }
    // It is there before they are, and after them.
    for wait in [false, true] {
        sidecar.ask_revive(&checkpoint, no_memory);
        if wait {
            back();
        }
        sidecar.send(&ToAgent::Filled(Ok(())));
        sidecar.restored().unwrap();
        // Of no restore: nothing follows.
        sidecar.send(&ToAgent::Filled(Err("late".into())));
        grows(dir.path(), 5);
        consecutive(&log(dir.path()));
        kill_job(&agent, dir.path());
        sidecar.exited();
        gone();
    }
}

#[test]
fn a_damaged_image_is_refused_and_the_one_before_works() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (agent, mut sidecar) = counter(dir.path());
    sidecar.start();
    grows(dir.path(), 5);
    let good = sidecar.checkpoint(&dir.path().join("good"));
    let bad = sidecar.checkpoint(&dir.path().join("bad"));
    std::fs::write(dir.path().join("bad/criu/pstree.img"), b"nonsense").unwrap();
    kill_job(&agent, dir.path());
    sidecar.exited();
    let error = sidecar.restore(&bad, no_memory).unwrap_err();
    assert!(error.contains("CRIU"), "{error}");
    std::fs::write(dir.path().join("bad/agent.json"), b"{").unwrap();
    let error = sidecar.restore(&bad, no_memory).unwrap_err();
    assert!(error.contains("damaged"), "{error}");
    sidecar.restore(&good, no_memory).unwrap();
    grows(dir.path(), 10);
    consecutive(&log(dir.path()));
}

#[test]
fn the_sidecar_vanishing_at_any_step_leaves_the_job_running() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (agent, sidecar) = counter(dir.path());
    sidecar.start();
    grows(dir.path(), 3);
    drop(sidecar);
    for step in 0..5 {
        let mut sidecar = agent.sidecar();
        assert_eq!(sidecar.job, JobState::Running);
        match step {
            0 => sidecar.send(&ToAgent::Quiesce {
                seq: 100,
                time: QuiesceTime::at_once(1000),
                insist: false,
            }),
            1 => {
                sidecar.quiesce().unwrap();
            }
            2 => {
                sidecar.quiesce().unwrap();
                sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
                // In the middle of it.
                std::thread::sleep(Duration::from_millis(20));
            }
            3 => {
                sidecar.quiesce().unwrap();
                sidecar.dump().unwrap();
            }
            _ => {
                sidecar.quiesce().unwrap();
                sidecar.dump().unwrap();
                sidecar.send(&ToAgent::Attach { seq: sidecar.seq });
            }
        }
        drop(sidecar);
        grows(dir.path(), 5);
        // The next checkpoint is good.
        let mut next = agent.sidecar();
        let image = dir.path().join(format!("image-{step}"));
        until("the attempt before to be undone", || match next.quiesce() {
            Ok(_) => Some(()),
            Err(AttemptError::OutOfOrder(_)) => {
                std::thread::sleep(Duration::from_millis(50));
                None
            }
            Err(e) => panic!("{e}"),
        });
        next.send(&ToAgent::Abandon { seq: next.seq });
        next.resumed();
        next.checkpoint(&image);
    }
    consecutive(&log(dir.path()));
}

#[test]
fn requests_out_of_order_are_refused_and_a_second_sidecar_is_busy() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (agent, mut sidecar) = counter(dir.path());
    assert!(matches!(sidecar.quiesce(), Err(AttemptError::JobEnded)));
    sidecar.start();
    sidecar.send(&ToAgent::Dump { seq: 77 });
    assert!(matches!(
        sidecar.recv().0,
        ToSidecar::Dumped {
            seq: 77,
            outcome: Err(AttemptError::OutOfOrder(_))
        }
    ));
    sidecar.send(&ToAgent::Restore { gpus: vec![] });
    assert!(matches!(sidecar.recv().0, ToSidecar::Restored(Err(_))));
    sidecar.send(&ToAgent::Start);
    assert!(matches!(sidecar.recv().0, ToSidecar::Started(Err(_))));
    let second = rustix::net::socket_with(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::SEQPACKET,
        rustix::net::SocketFlags::CLOEXEC,
        None,
    )
    .unwrap();
    rustix::net::connect(
        &second,
        &rustix::net::SocketAddrUnix::new(agent.dir.join("run/t/agent.sock")).unwrap(),
    )
    .unwrap();
    let (answer, _): (ToSidecar, _) = phos_protocol::channel::recv(&second).unwrap();
    assert_eq!(answer, ToSidecar::Busy);
    // No process of the job's can say when it waits for GPU work: that is said at once.
    sidecar.send(&ToAgent::Watch {
        seq: 998,
        time: WatchTime {
            for_ms: 60_000,
            glance_ms: 60,
            answer_ms: 100,
        },
    });
    let nobody = ToSidecar::Moment {
        seq: 998,
        waited: false,
    };
    assert_eq!(sidecar.recv().0, nobody);
    sidecar.quiesce().unwrap();
    sidecar.send(&ToAgent::Quiesce {
        seq: 999,
        time: QuiesceTime::at_once(10),
        insist: false,
    });
    assert!(matches!(
        sidecar.recv().0,
        ToSidecar::Quiesced {
            seq: 999,
            outcome: Err(AttemptError::OutOfOrder(_))
        }
    ));
    sidecar.send(&ToAgent::Abandon { seq: sidecar.seq });
    sidecar.resumed();
}

#[test]
fn exit_codes_and_output_are_passed_on() {
    if !can_run() {
        return;
    }
    for (script, code) in [
        ("echo hello; exit 0", 0),
        ("echo oops >&2; exit 7", 7),
        ("kill -9 $$", 137),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let mut agent = Agent::start(dir.path(), &["sh", "-c", script], &Options::default());
        let sidecar = agent.sidecar();
        sidecar.start();
        let (exit, stopping) = sidecar.exited();
        assert_eq!((exit.shell_code(), stopping), (code, false));
        if code != 0 {
            sidecar.send(&ToAgent::GiveUp);
        }
        assert_eq!(agent.wait(), code);
        assert_eq!(agent.out(), if code == 0 { "hello\n" } else { "" });
        assert_eq!(agent.err().contains("oops"), code == 7);
    }
}

#[test]
fn without_a_sidecar_the_job_runs_on_its_own() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        args: vec!["--sidecar-wait", "0s"],
        ..Default::default()
    };
    let mut agent = Agent::start(
        dir.path(),
        &[
            "sh",
            "-c",
            "echo pid $$; cat /proc/1/comm; grep Seccomp: /proc/self/status; exit 0",
        ],
        &options,
    );
    assert_eq!(agent.wait(), 0);
    let out = agent.out();
    assert!(numbers(&out, "pid ")[0] >= 10_000, "{out}");
    assert!(out.contains("phos-ft"), "{out}");
    assert!(out.contains("Seccomp:\t2"), "{out}");
}

#[test]
fn a_missing_command_is_127() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        args: vec!["--sidecar-wait", "0s"],
        ..Default::default()
    };
    let mut agent = Agent::start(dir.path(), &["/no/such/program"], &options);
    assert_eq!(agent.wait(), 127);
    assert!(agent.err().contains("/no/such/program"));
}

#[test]
fn signals_are_forwarded_and_the_grace_time_ends() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        args: vec!["--sidecar-wait", "0s", "--grace", "1s"],
        ..Default::default()
    };
    let script =
        "trap 'echo usr1' USR1; trap 'echo term' TERM; echo ready; while :; do sleep 0.05; done";
    let mut agent = Agent::start(dir.path(), &["sh", "-c", script], &options);
    until("the job", || agent.out().contains("ready").then_some(()));
    agent.signal(Signal::USR1);
    until("the signal", || agent.out().contains("usr1").then_some(()));
    agent.signal(Signal::TERM);
    assert_eq!(agent.wait(), 137);
    assert!(agent.out().contains("term"));
}

#[test]
fn a_job_that_cannot_be_dumped_runs_on_with_the_reason() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // A daemon: its parent has ended.
    let script = "(setsid sleep 1000 &) ; echo ready; i=0; while :; do i=$((i+1)); echo out $i; sleep 0.02; done";
    let agent = Agent::start(dir.path(), &["sh", "-c", script], &Options::default());
    let mut sidecar = agent.sidecar();
    sidecar.start();
    until("the job", || {
        (numbers(&agent.out(), "out ").len() > 5).then_some(())
    });
    // A helper that ends by itself is no daemon: for a moment the agent only asks to be asked again.
    let error = until("the refusal", || match sidecar.quiesce() {
        Err(AttemptError::Soon(_)) => None,
        other => Some(other.unwrap_err()),
    });
    assert!(error.to_string().contains("sleep"), "{error}");
    let before = numbers(&agent.out(), "out ").len();
    until("the job to go on", || {
        (numbers(&agent.out(), "out ").len() > before + 5).then_some(())
    });
}

#[test]
fn criu_missing_is_said_and_the_job_runs_on() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let options = Options {
        args: vec!["--criu", "/no/such/criu", "--sidecar-wait", "20s"],
        ..Default::default()
    };
    let agent = Agent::start(
        dir.path(),
        &[
            "sh",
            "-c",
            "i=0; while :; do i=$((i+1)); echo out $i; sleep 0.02; done",
        ],
        &options,
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    let error = sidecar.quiesce().unwrap_err();
    assert!(
        error.to_string().contains("/no/such/criu") && error.to_string().contains("make setup"),
        "{error}"
    );
    let before = numbers(&agent.out(), "out ").len();
    until("the job to go on", || {
        (numbers(&agent.out(), "out ").len() > before + 5).then_some(())
    });
}

/// As the entrypoint of a container: PID 1 already, `/proc/sys` read-only.
#[test]
fn as_pid_1_with_a_read_only_proc_sys() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log_file = dir.path().join("log.txt");
    let options = Options {
        wrap: vec![
            "unshare",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            "mount --bind /proc/sys /proc/sys && mount -o remount,bind,ro /proc/sys && exec \"$@\"",
            "sh",
        ],
        ..Default::default()
    };
    let agent = Agent::start(
        dir.path(),
        &["python3", "-c", COUNTER, log_file.to_str().unwrap()],
        &options,
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    grows(dir.path(), 5);
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    grows(dir.path(), 5);
    kill_job(&agent, dir.path());
    sidecar.exited();
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 10);
    consecutive(&log(dir.path()));
}

#[test]
fn an_old_criu_is_said_and_the_job_runs_on() {
    if !can_run() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    // Answers VERSION with 3.17.
    let fake = dir.path().join("criu");
    std::fs::write(
        &fake,
        "#!/usr/bin/env python3\nimport socket, sys\ns = socket.socket(fileno=int(sys.argv[2]))\ns.recv(4096)\n\
         s.send(bytes.fromhex('080a10015204080310'+'11'))\n",
    )
    .unwrap();
    std::fs::set_permissions(&fake, std::fs::Permissions::from_mode(0o755)).unwrap();
    let options = Options {
        args: vec!["--criu", fake.to_str().unwrap(), "--sidecar-wait", "20s"],
        ..Default::default()
    };
    let agent = Agent::start(
        dir.path(),
        &["sh", "-c", "while :; do echo out; sleep 0.02; done"],
        &options,
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    let error = sidecar.quiesce().unwrap_err();
    assert!(
        error.to_string().contains("3.17") && error.to_string().contains("4.1"),
        "{error}"
    );
    let before = agent.out().len();
    until("the job to go on", || {
        (agent.out().len() > before + 20).then_some(())
    });
}

#[test]
fn without_privileges_nothing_starts_unless_asked_to() {
    if !can_run() {
        return;
    }
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    // Where everybody may run it.
    let program = dir.path().join("phos-ft");
    std::fs::copy(env!("CARGO_BIN_EXE_phos-ft"), &program).unwrap();
    let run = |more: &[&str]| {
        // The user must change and the capabilities go: the shell's `setpriv` does both.
        std::process::Command::new("setpriv")
            .args([
                "--reuid",
                "65534",
                "--regid",
                "65534",
                "--clear-groups",
                "--inh-caps=-all",
            ])
            .arg(&program)
            .args(["run", "--run-dir"])
            .arg(dir.path().join("run"))
            .arg("--shim")
            .arg(Options::default().shim)
            .args(more)
            .args(["--", "echo", "it runs"])
            .output()
            .unwrap()
    };
    let refused = run(&[]);
    let text = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(77), "{text}");
    assert!(
        text.contains("CAP_SYS_ADMIN") && text.contains("--cap-add"),
        "{text}"
    );
    assert!(refused.stdout.is_empty());
    let plain = run(&["--allow-unprotected"]);
    assert_eq!(plain.stdout, b"it runs\n");
    assert_eq!(plain.status.code(), Some(0));
}

#[test]
fn a_second_agent_for_the_job_is_refused() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_agent, _sidecar) = counter(dir.path());
    let second = dir.path().join("second");
    std::fs::create_dir_all(&second).unwrap();
    std::os::unix::fs::symlink(dir.path().join("run"), second.join("run")).unwrap();
    let mut agent = Agent::start(&second, &["true"], &Options::default());
    assert_eq!(agent.wait(), 69);
    assert!(agent.err().contains("running already"), "{}", agent.err());
}

#[test]
fn a_large_file_without_content_is_cut_or_named() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let log_file = dir.path().join("log.txt");
    let options = Options {
        args: vec!["--sidecar-wait", "20s", "--max-file-size", "8"],
        ..Default::default()
    };
    let agent = Agent::start(
        dir.path(),
        &["python3", "-c", COUNTER, log_file.to_str().unwrap()],
        &options,
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    grows(dir.path(), 10);
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    grows(dir.path(), 5);
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 5);
    consecutive(&log(dir.path()));
    kill_job(&agent, dir.path());
    sidecar.exited();
    let kept = std::fs::read(&log_file).unwrap();
    std::fs::remove_file(&log_file).unwrap();
    let error = sidecar.restore(&checkpoint, no_memory).unwrap_err();
    assert!(
        error.contains("log.txt") && error.contains("--max-file-size"),
        "{error}"
    );
    // The remedy it names works.
    std::fs::write(&log_file, kept).unwrap();
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 5);
    consecutive(&log(dir.path()));
}

#[test]
fn the_agent_dying_at_any_step_ends_the_job_and_the_image_before_works() {
    if !can_run() {
        return;
    }
    for point in [
        "agent:after-quiesce",
        "agent:before-criu",
        "agent:frozen",
        "agent:after-criu",
        "agent:before-attach",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let (agent, sidecar, checkpoint) = checkpointed(dir.path());
        drop((agent, sidecar));
        let log_file = dir.path().join("log.txt");
        let options = Options {
            env: vec![("PHOS_FAILPOINT", point.into())],
            ..Default::default()
        };
        let mut agent = Agent::start(
            dir.path(),
            &["python3", "-c", COUNTER, log_file.to_str().unwrap()],
            &options,
        );
        let mut sidecar = agent.sidecar();
        sidecar.restore(&checkpoint, no_memory).unwrap();
        grows(dir.path(), 5);
        sidecar.send(&ToAgent::Quiesce {
            seq: 50,
            time: QuiesceTime::at_once(1000),
            insist: false,
        });
        sidecar.send_if_there(&ToAgent::Dump { seq: 50 });
        if point == "agent:before-attach" {
            loop {
                if matches!(sidecar.recv().0, ToSidecar::Dumped { .. }) {
                    break;
                }
            }
            sidecar.send(&ToAgent::Attach { seq: 50 });
        }
        assert_eq!(agent.wait(), 137, "{point}");
        until("the job to end with its agent", || {
            agent
                .find(log_file.to_str().unwrap())
                .is_empty()
                .then_some(())
        });
        let agent = Agent::start(
            dir.path(),
            &["python3", "-c", COUNTER, log_file.to_str().unwrap()],
            &Options::default(),
        );
        let mut sidecar = agent.sidecar();
        sidecar.restore(&checkpoint, no_memory).unwrap();
        grows(dir.path(), 10);
        consecutive(&log(dir.path()));
    }
}

#[test]
fn tcp_is_closed_and_listening_goes_on() {
    if !can_run() {
        return;
    }
    const SERVER: &str = r#"
import socket, sys, threading, time
server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
server.bind(("127.0.0.1", 0)); server.listen(5)
open(sys.argv[1], "w").write(str(server.getsockname()[1]))
def serve(c):
    try:
        while True:
            d = c.recv(10)
            if not d: break
            c.sendall(d)
    except OSError: pass
while True:
    c, _ = server.accept()
    threading.Thread(target=serve, args=(c,), daemon=True).start()
"#;
    use std::io::{Read, Write};
    let dir = tempfile::tempdir().unwrap();
    let port_file = dir.path().join("log.txt");
    let agent = Agent::start(
        dir.path(),
        &["python3", "-c", SERVER, port_file.to_str().unwrap()],
        &Options::default(),
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    let port: u16 = until("the server", || {
        std::fs::read_to_string(&port_file).ok()?.parse().ok()
    });
    let echo = || {
        let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        client.write_all(b"x").unwrap();
        let mut answer = [0];
        client.read_exact(&mut answer).unwrap();
        client
    };
    // A connection from outside the tree, open during the checkpoint.
    let mut outside = echo();
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    // The running job keeps it.
    outside.write_all(b"y").unwrap();
    outside.read_exact(&mut [0]).unwrap();
    kill_job(&agent, dir.path());
    sidecar.exited();
    sidecar.restore(&checkpoint, no_memory).unwrap();
    echo();
}

/// A process and its child, who talk over TCP.
const PAIR: &str = r#"
import os, socket, sys, time
server = socket.socket(); server.bind(("127.0.0.1", 0)); server.listen(1)
if os.fork() == 0:
    c = socket.create_connection(server.getsockname())
    while True:
        d = c.recv(4)
        if not d: os._exit(3)
        c.sendall(d)
c, _ = server.accept()
log = open(sys.argv[1], "a")
n = 0
while True:
    n += 1
    c.sendall(n.to_bytes(4, "big"))
    back = int.from_bytes(c.recv(4), "big")
    assert back == n, (back, n)
    log.write(f"step {n}\n"); log.flush()
    time.sleep(0.02)
"#;

fn pair(dir: &Path) -> (Agent, Sidecar) {
    let file = dir.join("log.txt");
    let agent = Agent::start(
        dir,
        &["python3", "-c", PAIR, file.to_str().unwrap()],
        &Options {
            env: vec![("PHOS_TIMEOUTS", "criu=4000,freeze=4000".into())],
            ..Options::default()
        },
    );
    let sidecar = agent.sidecar();
    sidecar.start();
    grows(dir, 5);
    (agent, sidecar)
}

#[test]
fn tcp_inside_the_tree_is_kept() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (agent, mut sidecar) = pair(dir.path());
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    grows(dir.path(), 5);
    kill_job(&agent, dir.path());
    sidecar.exited();
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 20);
    consecutive(&log(dir.path()));
}

#[test]
fn a_criu_that_is_killed_in_a_dump_leaves_a_job_that_goes_on_or_is_resumed() {
    if can_run() {
        a_dump_whose_criu_gets(Signal::KILL);
    }
}

#[test]
fn a_criu_that_hangs_in_a_dump_leaves_a_job_that_goes_on_or_is_resumed() {
    if can_run() {
        a_dump_whose_criu_gets(Signal::STOP);
    }
}

#[test]
fn a_criu_that_hangs_in_a_restore_is_tried_again() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (agent, mut sidecar) = pair(dir.path());
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    let file = dir.path().join("log.txt");
    kill_job(&agent, dir.path());
    sidecar.exited();
    until("the tree to be gone", || {
        agent.find(file.to_str().unwrap()).is_empty().then_some(())
    });
    // Once in the middle of its work, and not the one that was only asked for its version. One that is done before is killed like the
    // first, and brought back again.
    until("CRIU to be met in the middle of its work", || {
        sidecar.ask_restore(&checkpoint, no_memory);
        let met = until("CRIU to begin", || {
            if let Some(said) = sidecar.heard() {
                return Some(Err(said));
            }
            let criu = agent.criu()?;
            let files = std::fs::read_dir(format!("/proc/{criu}/fd")).ok()?;
            files
                .flatten()
                .filter_map(|file| std::fs::read_link(file.path()).ok())
                .any(|file| file.ends_with("restore.log"))
                .then_some(Ok(criu))
        });
        let said = match met {
            Ok(criu) => {
                let criu = rustix::process::Pid::from_raw(criu as i32).unwrap();
                let _ = rustix::process::kill_process(criu, Signal::STOP);
                sidecar.recv().0
            }
            Err(said) => said,
        };
        match said {
            ToSidecar::Restored(Err(why)) => {
                assert!(why.contains("CRIU"), "{why}");
                Some(())
            }
            ToSidecar::Restored(Ok(_)) => {
                kill_job(&agent, dir.path());
                sidecar.exited();
                until("the tree to be gone", || {
                    agent.find(file.to_str().unwrap()).is_empty().then_some(())
                });
                None
            }
            other => panic!("{other:?}"),
        }
    });
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 20);
    consecutive(&log(dir.path()));
}

fn a_dump_whose_criu_gets(signal: Signal) {
    let dir = tempfile::tempdir().unwrap();
    let (agent, mut sidecar) = pair(dir.path());
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    // A little later each time: while it looks at the processes, and while it writes them down.
    for looks in [1, 10, 50, 200] {
        let job = agent.find(dir.path().join("log.txt").to_str().unwrap());
        assert_eq!(job.len(), 2);
        let held = || {
            job.iter().all(|pid| {
                std::fs::read_to_string(format!("/proc/{pid}/stat"))
                    .is_ok_and(|stat| stat.rsplit(')').next().unwrap().starts_with(" t"))
            })
        };
        // One that is done before that makes a checkpoint like any other.
        let goes_on = until("CRIU to be met in the middle of its work", || {
            sidecar.quiesce().unwrap();
            sidecar.send(&ToAgent::Dump { seq: sidecar.seq });
            let mut said = until("CRIU to hold the job", || {
                if held() {
                    return Some(None);
                }
                sidecar.heard().map(Some)
            });
            let before = log(dir.path()).len();
            if said.is_none() {
                for _ in 0..looks {
                    std::hint::black_box(held());
                }
                if let Some(criu) = agent.criu() {
                    let criu = rustix::process::Pid::from_raw(criu as i32).unwrap();
                    let _ = rustix::process::kill_process(criu, signal);
                }
                // A process whose connection was in CRIU's hands meets an error there, or is ended before it can.
                let goes_on = until("the job to go on or to end", || {
                    if log(dir.path()).len() >= before + 20 {
                        return Some(true);
                    }
                    (job.iter()
                        .any(|pid| !Path::new(&format!("/proc/{pid}")).exists()))
                    .then_some(false)
                });
                if !goes_on {
                    return Some(false);
                }
                said = Some(sidecar.recv().0);
            }
            match said {
                Some(ToSidecar::Dumped { outcome: Ok(_), .. }) => {
                    sidecar.send(&ToAgent::Attach { seq: sidecar.seq });
                    sidecar.resumed();
                    sidecar.send(&ToAgent::Finish { seq: sidecar.seq });
                    None
                }
                Some(ToSidecar::Dumped {
                    outcome: Err(AttemptError::Criu(_)),
                    ..
                }) => Some(true),
                other => panic!("{other:?}"),
            }
        });
        eprintln!("{looks} looks: goes on: {goes_on}");
        if !goes_on {
            // In either order.
            let said = [sidecar.recv().0, sidecar.recv().0];
            let exits = |m: &&ToSidecar| matches!(m, ToSidecar::JobExited { .. });
            let refusals = |m: &&ToSidecar| {
                matches!(
                    m,
                    ToSidecar::Dumped {
                        outcome: Err(_),
                        ..
                    }
                )
            };
            assert_eq!(said.iter().filter(exits).count(), 1, "{said:?}");
            assert_eq!(said.iter().filter(refusals).count(), 1, "{said:?}");
            until("the tree to be gone", || {
                job.iter()
                    .all(|pid| !Path::new(&format!("/proc/{pid}")).exists())
                    .then_some(())
            });
            sidecar.restore(&checkpoint, no_memory).unwrap();
            grows(dir.path(), 20);
        }
    }
    let checkpoint = sidecar.checkpoint(&dir.path().join("image2"));
    kill_job(&agent, dir.path());
    sidecar.exited();
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 20);
    consecutive(&log(dir.path()));
}

#[test]
fn standard_input_reaches_the_job_and_its_successor() {
    if !can_run() {
        return;
    }
    use std::io::Write;
    let dir = tempfile::tempdir().unwrap();
    let shim = Options::default().shim;
    let out = std::fs::File::create(dir.path().join("out")).unwrap();
    let child = std::process::Command::new(env!("CARGO_BIN_EXE_phos-ft"))
        .args(["run", "--job", "t", "--run-dir"])
        .arg(dir.path().join("run"))
        .arg("--shim")
        .arg(shim)
        .args(["--", "python3", "-u", "-c", "import sys\nwhile True:\n l = sys.stdin.readline()\n if not l: break\n print('got', l.strip(), flush=True)", "log.txt"])
        .stdin(std::process::Stdio::piped())
        .stdout(out)
        .stderr(std::fs::File::create(dir.path().join("err")).unwrap())
        .spawn()
        .unwrap();
    let mut agent = Agent {
        child,
        dir: dir.path().to_owned(),
        job: "t".into(),
    };
    let mut input = agent.child.stdin.take().unwrap();
    let mut sidecar = agent.sidecar();
    sidecar.start();
    input.write_all(b"one\n").unwrap();
    until("one", || agent.out().contains("got one").then_some(()));
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    sidecar.restore(&checkpoint, no_memory).unwrap();
    input.write_all(b"two\n").unwrap();
    until("two", || agent.out().contains("got two").then_some(()));
    drop(input);
    assert_eq!(sidecar.exited(), (Exit::Code(0), false));
    assert_eq!(agent.wait(), 0);
}

#[test]
fn a_command_line_that_fits_no_message_starts_all_the_same() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..20_000).map(|i| format!("shard-{i:05}")).collect();
    let mut command = vec!["python3", "-c", "import sys; print(len(sys.argv))"];
    command.extend(many.iter().map(String::as_str));
    let mut agent = Agent::start(dir.path(), &command, &Options::default());
    let sidecar = agent.sidecar();
    sidecar.start();
    assert_eq!(sidecar.exited(), (Exit::Code(0), false));
    assert_eq!(agent.wait(), 0);
    assert_eq!(agent.out().trim(), "20001");
}

#[test]
fn an_interrupt_ends_the_job_as_it_would_alone() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut agent, sidecar) = counter(dir.path());
    sidecar.start();
    grows(dir.path(), 5);
    agent.signal(Signal::INT);
    let (exit, stopping) = sidecar.exited();
    assert!(!exit.is_success() && stopping, "{exit:?}");
    assert_eq!(agent.wait(), exit.shell_code());
}

#[test]
fn paths_that_are_no_utf_8_are_part_of_the_image() {
    if !can_run() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let code = format!(
        "import os\nos.mkdir(b'd\\xe9'); os.chdir(b'd\\xe9')\nlatin = open(b'caf\\xe9.log', 'a')\nlatin.write('here')\n\
         latin.flush()\n{COUNTER}"
    );
    let log = dir.path().join("log.txt");
    let agent = Agent::start(
        dir.path(),
        &["python3", "-c", &code, log.to_str().unwrap()],
        &Options::default(),
    );
    let mut sidecar = agent.sidecar();
    sidecar.start();
    grows(dir.path(), 5);
    let checkpoint = sidecar.checkpoint(&dir.path().join("image"));
    kill_job(&agent, dir.path());
    sidecar.exited();
    let strange = dir
        .path()
        .join(std::ffi::OsStr::from_bytes(b"d\xe9/caf\xe9.log"));
    std::fs::remove_file(&strange).unwrap();
    sidecar.restore(&checkpoint, no_memory).unwrap();
    grows(dir.path(), 5);
    assert_eq!(std::fs::read_to_string(strange).unwrap(), "here");
}
