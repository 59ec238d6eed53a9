//! A real agent process and a sidecar made of a few lines, for the tests of the agent.
#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use phos_protocol::agent::{
    AttemptError, DumpFacts, Exit, JobState, Process, QuiesceTime, RestoreTimes, ToAgent, ToSidecar,
};
use phos_protocol::channel;
use phos_protocol::shim::TableEntry;
use phos_protocol::types::{Allocation, AllocationKey};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

/// Left out where the environment says so, else real agents must be able to run here.
pub fn can_run() -> bool {
    if std::env::var_os("PHOS_TEST_UNPRIVILEGED").is_some() {
        eprintln!("left out: PHOS_TEST_UNPRIVILEGED is set");
        return false;
    }
    assert!(
        rustix::process::geteuid().is_root()
            && phos_agent::namespace::missing_capabilities().is_empty(),
        "needs root and its capabilities; PHOS_TEST_UNPRIVILEGED=1 leaves these tests out"
    );
    if let Err(e) = phos_agent::criu::locate(None) {
        panic!("{e}; PHOS_TEST_UNPRIVILEGED=1 leaves these tests out");
    }
    true
}

/// Waits until `done` gives a value.
pub fn until<T>(what: &str, mut done: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Some(value) = done() {
            return value;
        }
        assert!(Instant::now() < deadline, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A running agent.
pub struct Agent {
    pub child: Child,
    pub dir: PathBuf,
    pub job: String,
}

/// How an agent is started.
pub struct Options<'a> {
    pub args: Vec<&'a str>,
    pub env: Vec<(&'a str, String)>,
    pub shim: PathBuf,
    /// What phos-ft is started by.
    pub wrap: Vec<&'a str>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        // Any harmless library: the jobs of these tests do not use CUDA.
        let shim = [
            "/lib/x86_64-linux-gnu/libm.so.6",
            "/usr/lib/x86_64-linux-gnu/libm.so.6",
            "/lib64/libm.so.6",
            "/lib/aarch64-linux-gnu/libm.so.6",
        ]
        .iter()
        .map(PathBuf::from)
        .find(|p| p.is_file())
        .expect("libm");
        Self {
            args: vec!["--sidecar-wait", "20s"],
            env: vec![],
            shim,
            wrap: vec![],
        }
    }
}

impl Agent {
    /// Starts `phos-ft run` in `dir` with its output in `dir/out` and `dir/err`.
    pub fn start(dir: &Path, command: &[&str], options: &Options<'_>) -> Self {
        std::fs::create_dir_all(dir).unwrap();
        let open = |name: &str| {
            std::fs::File::options()
                .create(true)
                .append(true)
                .open(dir.join(name))
                .unwrap()
        };
        let mut words: Vec<&str> = options.wrap.clone();
        words.push(env!("CARGO_BIN_EXE_phos-ft"));
        let mut child = Command::new(words[0]);
        child
            .args(&words[1..])
            .arg("run")
            .args(["--job", "t", "--run-dir"])
            .arg(dir.join("run"))
            .arg("--shim")
            .arg(&options.shim)
            .args(&options.args)
            .arg("--")
            .args(command)
            .current_dir(dir)
            .env("RUST_LOG", "debug")
            .stdin(Stdio::null())
            .stdout(open("out"))
            .stderr(open("err"));
        for (key, value) in &options.env {
            child.env(key, value);
        }
        Self {
            child: child.spawn().unwrap(),
            dir: dir.to_owned(),
            job: "t".into(),
        }
    }

    pub fn out(&self) -> String {
        std::fs::read_to_string(self.dir.join("out")).unwrap_or_default()
    }

    pub fn err(&self) -> String {
        std::fs::read_to_string(self.dir.join("err")).unwrap_or_default()
    }

    /// Connects as the sidecar.
    pub fn sidecar(&self) -> Sidecar {
        Sidecar::connect(&self.dir.join("run/t/agent.sock"))
    }

    /// The exit code.
    pub fn wait(&mut self) -> i32 {
        use std::os::unix::process::ExitStatusExt;
        let status = until("the agent to end", || self.child.try_wait().unwrap());
        status
            .code()
            .unwrap_or_else(|| 128 + status.signal().unwrap())
    }

    /// SIGKILL from outside: node loss.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(
            rustix::process::Pid::from_raw(self.child.id() as i32).unwrap(),
            signal,
        )
        .unwrap();
    }

    /// The PID, as the host sees it, of the CRIU that this agent has started.
    pub fn criu(&self) -> Option<u32> {
        let namespace = |path: String| std::fs::read_link(path).ok();
        let ours = namespace(format!("/proc/{}/ns/pid_for_children", self.child.id()))?;
        std::fs::read_dir("/proc")
            .unwrap()
            .flatten()
            .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
            .find(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline"))
                    .is_ok_and(|line| line.split(|b| *b == 0).any(|word| word == b"swrk"))
                    && namespace(format!("/proc/{pid}/ns/pid")).as_ref() == Some(&ours)
            })
    }

    /// PIDs, as the host sees them, of processes whose command line contains `text`.
    pub fn find(&self, text: &str) -> Vec<u32> {
        let mut found = vec![];
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|s| s.parse::<u32>().ok())
            else {
                continue;
            };
            let mut line = vec![];
            if let Ok(mut f) = std::fs::File::open(entry.path().join("cmdline")) {
                let _ = f.read_to_end(&mut line);
            }
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(text) && !line.contains("phos-ft") && pid != std::process::id() {
                found.push(pid);
            }
        }
        found
    }

    /// The one of these that none of the others has started. Numbers do not say it: they begin again at some point.
    pub fn find_root(&self, text: &str) -> Option<u32> {
        let found = self.find(text);
        let parent = |pid: &u32| -> Option<u32> {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            stat.rsplit_once(')')?
                .1
                .split_whitespace()
                .nth(1)?
                .parse()
                .ok()
        };
        let is_root = |pid: &u32| parent(pid).is_some_and(|parent| !found.contains(&parent));
        found.iter().copied().find(is_root)
    }

    /// Kills it from outside.
    pub fn kill_root(&self, text: &str) {
        let root = self.find_root(text).expect("a process to kill");
        let root = rustix::process::Pid::from_raw(root as i32).unwrap();
        rustix::process::kill_process(root, rustix::process::Signal::KILL).unwrap();
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!(
                "---- agent's stderr\n{}\n---- out (end)\n{}",
                self.err(),
                self.out()
                    .lines()
                    .rev()
                    .take(5)
                    .collect::<Vec<_>>()
                    .join("\n")
            );
        }
    }
}

/// The sidecar's end.
pub struct Sidecar {
    pub socket: OwnedFd,
    pub job: JobState,
    pub restarts: u32,
    /// Fds by allocation, as received.
    pub memory: std::collections::BTreeMap<AllocationKey, (Allocation, OwnedFd)>,
    /// The last table.
    pub table: Vec<TableEntry>,
    pub seq: u64,
}

impl Sidecar {
    /// Connects and says hello, again while an agent that is going away answers.
    pub fn connect(path: &Path) -> Self {
        until("the agent's welcome", || {
            let socket = rustix::net::socket_with(
                AddressFamily::UNIX,
                SocketType::SEQPACKET,
                SocketFlags::CLOEXEC,
                None,
            )
            .unwrap();
            rustix::net::connect(&socket, &SocketAddrUnix::new(path).unwrap()).ok()?;
            rustix::net::sockopt::set_socket_timeout(
                &socket,
                rustix::net::sockopt::Timeout::Recv,
                Some(Duration::from_secs(60)),
            )
            .unwrap();
            channel::send(
                &socket,
                &ToAgent::Hello {
                    version: "test".into(),
                },
                &[],
            )
            .ok()?;
            match channel::recv::<ToSidecar>(&socket).ok()?.0 {
                ToSidecar::Welcome {
                    job, restarts, seq, ..
                } => Some(Self {
                    socket,
                    job,
                    restarts,
                    memory: Default::default(),
                    table: vec![],
                    seq,
                }),
                other => panic!("{other:?}"),
            }
        })
    }

    pub fn send(&self, message: &ToAgent) {
        channel::send(&self.socket, message, &[]).unwrap();
    }

    /// To one that may be gone by now.
    pub fn send_if_there(&self, message: &ToAgent) {
        let _ = channel::send(&self.socket, message, &[]);
    }

    pub fn send_fds(&self, message: &ToAgent, fds: &[BorrowedFd<'_>]) {
        channel::send(&self.socket, message, fds).unwrap();
    }

    pub fn recv(&self) -> (ToSidecar, Vec<OwnedFd>) {
        loop {
            match channel::recv(&self.socket).expect("a message of the agent") {
                (ToSidecar::Freed { .. } | ToSidecar::ControlSaved { .. }, _) => {}
                other => return other,
            }
        }
    }

    /// What the agent has said by now, if anything.
    pub fn heard(&self) -> Option<ToSidecar> {
        let now = rustix::event::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        loop {
            let mut socket = [rustix::event::PollFd::new(
                &self.socket,
                rustix::event::PollFlags::IN,
            )];
            if rustix::event::poll(&mut socket, Some(&now)).unwrap() == 0 {
                return None;
            }
            match channel::recv(&self.socket)
                .expect("a message of the agent")
                .0
            {
                ToSidecar::Freed { .. } | ToSidecar::ControlSaved { .. } => {}
                other => return Some(other),
            }
        }
    }

    pub fn start(&self) {
        self.send(&ToAgent::Start);
        assert_eq!(self.recv().0, ToSidecar::Started(Ok(())));
    }

    /// Quiesces; keeps the memory it is sent. As the sidecar does, it asks again where something that is asked beside the job has not answered yet.
    pub fn quiesce(&mut self) -> Result<Vec<Process>, AttemptError> {
        let begun = Instant::now();
        loop {
            match self.quiesce_once() {
                Err(AttemptError::Soon(_)) if begun.elapsed() < Duration::from_secs(60) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                outcome => return outcome,
            }
        }
    }

    /// Asks for one until the agent dies of it: its shim may not have connected yet.
    pub fn quiesce_until_it_dies(&mut self) {
        let begun = Instant::now();
        loop {
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not die");
            self.seq += 1;
            self.send(&ToAgent::Quiesce {
                seq: self.seq,
                time: QuiesceTime::at_once(10_000),
                insist: false,
            });
            loop {
                match channel::recv::<ToSidecar>(&self.socket) {
                    Err(_) => return,
                    Ok((ToSidecar::Quiesced { outcome, .. }, _)) => {
                        assert!(matches!(outcome, Err(AttemptError::Soon(_))));
                        break;
                    }
                    Ok(_) => {}
                }
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn quiesce_once(&mut self) -> Result<Vec<Process>, AttemptError> {
        self.seq += 1;
        self.send(&ToAgent::Quiesce {
            seq: self.seq,
            time: QuiesceTime::at_once(10_000),
            insist: false,
        });
        self.table.clear();
        loop {
            match self.recv() {
                (ToSidecar::Table { entries, .. }, fds) => {
                    let mut fds = fds.into_iter();
                    for entry in entries {
                        if entry.with_fd {
                            let fd = fds.next().expect("an fd");
                            self.memory
                                .insert(entry.allocation.key, (entry.allocation, fd));
                        }
                        self.table.push(entry);
                    }
                }
                (ToSidecar::Quiesced { seq, outcome }, _) => {
                    assert_eq!(seq, self.seq);
                    let live: std::collections::BTreeSet<_> =
                        self.table.iter().map(|e| e.allocation.key).collect();
                    self.memory.retain(|k, _| live.contains(k));
                    return outcome;
                }
                (ToSidecar::TakesCredit { seq, .. }, _) => assert_eq!(seq, self.seq),
                // Of an attempt that another sidecar began and left.
                (ToSidecar::Resumed { seq, .. }, _) if seq != self.seq => {}
                (other, _) => panic!("{other:?}"),
            }
        }
    }

    pub fn dump(&mut self) -> Result<(DumpFacts, OwnedFd), AttemptError> {
        self.send(&ToAgent::Dump { seq: self.seq });
        match self.recv() {
            (ToSidecar::Dumped { outcome, .. }, mut fds) => {
                outcome.map(|facts| (*facts, fds.pop().expect("the directory")))
            }
            (other, _) => panic!("{other:?}"),
        }
    }

    pub fn resumed(&mut self) -> (u64, u64) {
        match self.recv().0 {
            ToSidecar::Resumed {
                seq,
                stop_ns,
                attach_ns,
                ..
            } => {
                assert_eq!(seq, self.seq);
                (stop_ns, attach_ns)
            }
            other => panic!("{other:?}"),
        }
    }

    /// A whole checkpoint, its image copied to `to`, with the bytes of the memory.
    pub fn checkpoint(&mut self, to: &Path) -> Checkpoint {
        self.quiesce().expect("quiesce");
        let memory = self
            .memory
            .values()
            .map(|(a, fd)| (*a, read_all(fd.as_fd(), a.bytes)))
            .collect();
        let (facts, directory) = self.dump().expect("dump");
        copy_dir(
            &PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())),
            to,
        );
        self.send(&ToAgent::Attach { seq: self.seq });
        let (stop_ns, attach_ns) = self.resumed();
        self.send(&ToAgent::Finish { seq: self.seq });
        eprintln!(
            "checkpoint: stop {:.1} ms, attach {:.1} ms, {:?}, {} bytes",
            stop_ns as f64 / 1e6,
            attach_ns as f64 / 1e6,
            facts.times,
            facts.image_bytes
        );
        Checkpoint {
            dir: to.to_owned(),
            memory,
            facts,
        }
    }

    /// Asks for the job to be brought back from a checkpoint.
    pub fn ask_restore(
        &mut self,
        from: &Checkpoint,
        bring: impl Fn(&Allocation, &[u8]) -> OwnedFd,
    ) {
        self.bring(from, bring);
        self.send(&ToAgent::Restore { gpus: vec![] });
    }

    /// Asks for the job to be brought back from a checkpoint whose memory is not filled yet.
    pub fn ask_revive(&mut self, from: &Checkpoint, bring: impl Fn(&Allocation, &[u8]) -> OwnedFd) {
        self.bring(from, bring);
        self.send(&ToAgent::Revive { gpus: vec![] });
    }

    /// Brings all that a restore needs.
    fn bring(&mut self, from: &Checkpoint, bring: impl Fn(&Allocation, &[u8]) -> OwnedFd) {
        self.send(&ToAgent::NewImageDirectory);
        let directory = match self.recv() {
            (ToSidecar::ImageDirectory(Ok(())), mut fds) => fds.pop().expect("the directory"),
            (other, _) => panic!("{other:?}"),
        };
        copy_dir(
            &from.dir,
            &PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd())),
        );
        for batch in from.memory.chunks(channel::BATCH) {
            let fds: Vec<OwnedFd> = batch.iter().map(|(a, bytes)| bring(a, bytes)).collect();
            let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
            let allocations = batch.iter().map(|(a, _)| *a).collect();
            self.send_fds(&ToAgent::RestoreMemory { allocations }, &borrowed);
        }
    }

    /// Brings the job back from a checkpoint.
    pub fn restore(
        &mut self,
        from: &Checkpoint,
        bring: impl Fn(&Allocation, &[u8]) -> OwnedFd,
    ) -> Result<RestoreTimes, String> {
        self.ask_restore(from, bring);
        self.restored()
    }

    /// What a restore came to.
    pub fn restored(&mut self) -> Result<RestoreTimes, String> {
        match self.recv().0 {
            ToSidecar::Restored(outcome) => {
                eprintln!("restore: {outcome:?}");
                outcome
            }
            other => panic!("{other:?}"),
        }
    }

    pub fn exited(&self) -> (Exit, bool) {
        match self.recv().0 {
            ToSidecar::JobExited { exit, stopping } => (exit, stopping),
            other => panic!("{other:?}"),
        }
    }
}

/// No memory to bring.
pub fn no_memory(_: &Allocation, _: &[u8]) -> OwnedFd {
    panic!("no memory was expected")
}

/// A checkpoint as the tests keep it.
pub struct Checkpoint {
    pub dir: PathBuf,
    pub memory: Vec<(Allocation, Vec<u8>)>,
    pub facts: DumpFacts,
}

pub fn read_all(fd: BorrowedFd<'_>, bytes: u64) -> Vec<u8> {
    let mut data = vec![0; bytes as usize];
    let mut at = 0;
    while at < data.len() {
        let n = rustix::io::pread(fd, &mut data[at..], at as u64).unwrap();
        assert_ne!(n, 0);
        at += n;
    }
    data
}

pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Numbers at the ends of the lines `<prefix> <n>`.
pub fn numbers(text: &str, prefix: &str) -> Vec<u64> {
    text.lines()
        .filter_map(|l| l.strip_prefix(prefix)?.trim().parse().ok())
        .collect()
}
