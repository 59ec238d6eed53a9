//! A simulated node, a puppet process under the shim, and an agent that does what the test says.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use phos_gpu_sim::Node;
use phos_protocol::channel as wire;
use phos_protocol::shim::{
    HELD, Place, QuiesceFacts, Refusal, Sequence, ShimState, TableEntry, ToAgent, ToShim, Usage,
};
use phos_protocol::types::{AllocationKey, Device};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

pub const MIB: u64 = 1 << 20;
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether the tests run on a real GPU: `PHOS_TEST_GPU` names a folder with `puppet` and `libphos_shim.so`. What needs
/// a device of a certain size, or looks into the simulation, is left out then.
pub fn real_gpu() -> Option<PathBuf> {
    std::env::var_os("PHOS_TEST_GPU").map(PathBuf::from)
}

pub fn library(name: &str) -> PathBuf {
    if let Some(folder) = real_gpu() {
        return folder.join(name);
    }
    let deps = std::env::current_exe().unwrap();
    let deps = deps.parent().unwrap();
    let candidates = [deps.join(name), deps.parent().unwrap().join(name)];
    candidates
        .into_iter()
        .filter(|p| p.exists())
        .max_by_key(|p| p.metadata().unwrap().modified().unwrap())
        .unwrap_or_else(|| panic!("{name} was not built"))
}

/// The puppet's binary and the folder of `libcuda.so.1`, made once.
fn built() -> &'static (PathBuf, PathBuf) {
    static BUILT: OnceLock<(PathBuf, PathBuf)> = OnceLock::new();
    BUILT.get_or_init(|| {
        if let Some(folder) = real_gpu() {
            return (folder.join("puppet"), PathBuf::new());
        }
        // It stays when the process ends, and another gets its number: the name is no one's before.
        let folder = tempfile::Builder::new()
            .prefix("shim-")
            .tempdir_in(env!("CARGO_TARGET_TMPDIR"))
            .unwrap()
            .keep();
        std::os::unix::fs::symlink(library("libphos_gpu_sim.so"), folder.join("libcuda.so.1"))
            .unwrap();
        std::os::unix::fs::symlink(library("libphos_nccl_sim.so"), folder.join("libnccl.so.2"))
            .unwrap();
        for (name, how) in [
            ("linked", "-DLINKED"),
            ("static", "-DSTATIC"),
            ("stub", "-DSTUB"),
        ] {
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/rank.c");
            let mut cc = Command::new("cc");
            cc.args(["-O1", "-shared", "-fPIC", how, "-o"])
                .arg(folder.join(format!("librank-{name}.so")))
                .arg(source);
            if name == "linked" {
                cc.arg(folder.join("libnccl.so.2"));
            }
            assert!(cc.status().unwrap().success());
        }
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/puppet.c");
        let puppet = folder.join("puppet");
        let status = Command::new("cc")
            .args(["-O1", "-g", "-o"])
            .arg(&puppet)
            .arg(source)
            .arg(folder.join("libcuda.so.1"))
            .args(["-ldl", "-lpthread"])
            .status()
            .unwrap();
        assert!(status.success());
        (puppet, folder)
    })
}

/// A library that uses NCCL: "linked" with it, with a "static" one inside, or by a "stub" that asks `dlsym`.
pub fn user_of_nccl(kind: &str) -> PathBuf {
    built().1.join(format!("librank-{kind}.so"))
}

/// A node and its folder.
pub struct World {
    pub folder: tempfile::TempDir,
    pub node: Node,
}

impl World {
    /// Devices of the sizes given, in MiB.
    pub fn new(sizes: &[u64]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sizes: Vec<u64> = sizes.iter().map(|s| s * MIB).collect();
        let sizes = if real_gpu().is_some() {
            Vec::new()
        } else {
            sizes
        };
        let node = Node::new(&folder.path().join("node"), &sizes).unwrap();
        Self { folder, node }
    }

    /// Memory of the first simulated device that is taken, in bytes.
    pub fn device_used(&self) -> u64 {
        let stat = rustix::fs::statfs(self.node.dir().join("dev0")).unwrap();
        (stat.f_blocks - stat.f_bavail) * stat.f_bsize as u64
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("shim.sock")
    }

    pub fn puppet(&self) -> Puppet {
        self.puppet_with(&[("PHOS_SHIM_SOCKET", self.socket().to_str().unwrap())])
    }

    pub fn puppet_with(&self, env: &[(&str, &str)]) -> Puppet {
        let (binary, folder) = built();
        let mut child = Command::new(binary)
            .envs(real_gpu().is_none().then_some(("LD_LIBRARY_PATH", folder)))
            .env("LD_PRELOAD", library("libphos_shim.so"))
            .env("PHOS_SIM_DIR", self.node.dir())
            .env(
                "PHOS_SHIM_LOG",
                std::env::var("PHOS_SHIM_LOG").unwrap_or("debug".into()),
            )
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let stdin = child.stdin.take().unwrap();
        Puppet {
            child,
            stdin,
            lines,
        }
    }

    pub fn agent(&self) -> Agent {
        Agent::new(&self.socket())
    }
}

pub struct Puppet {
    child: Child,
    stdin: ChildStdin,
    lines: Receiver<String>,
}

impl Puppet {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn send(&mut self, command: &str) {
        writeln!(self.stdin, "{command}").unwrap();
    }

    pub fn answer(&mut self) -> String {
        self.lines
            .recv_timeout(PATIENCE)
            .expect("no answer from the puppet")
    }

    /// No answer may come for that long.
    pub fn silent(&mut self, limit: Duration) {
        if let Ok(line) = self.lines.recv_timeout(limit) {
            panic!("unexpected answer {line:?}");
        }
    }

    pub fn ask(&mut self, command: &str) -> String {
        self.send(command);
        self.answer()
    }

    /// Asks and takes the text after "ok".
    pub fn ok(&mut self, command: &str) -> String {
        let answer = self.ask(command);
        match answer.strip_prefix("ok") {
            Some(rest) => rest.trim().to_owned(),
            None => panic!("{command}: {answer}"),
        }
    }

    /// Each command must be answered by a bare "ok".
    pub fn all(&mut self, commands: &[&str]) {
        for command in commands {
            self.ok(command);
        }
    }

    /// The data must be right.
    pub fn check(&mut self, name: &str, bytes: u64, seed: u64) {
        assert_eq!(self.ask(&format!("check {name} {bytes} {seed}")), "ok");
    }

    /// Descriptors and mappings of device memory that the process has.
    pub fn device_memory(&self) -> Vec<String> {
        let proc = PathBuf::from(format!("/proc/{}", self.pid()));
        let mut found: Vec<String> = std::fs::read_dir(proc.join("fd"))
            .unwrap()
            .filter_map(|e| std::fs::read_link(e.ok()?.path()).ok())
            .map(|p| p.to_string_lossy().into_owned())
            .collect();
        let maps = std::fs::read_to_string(proc.join("maps")).unwrap();
        found.extend(maps.lines().map(str::to_owned));
        found.retain(|l| l.contains("/dev0") || l.contains("/dev1") || l.contains("memfd:"));
        found
    }

    /// Sockets it has, without the one that the real driver keeps.
    pub fn sockets(&self) -> usize {
        self.all_sockets() - usize::from(real_gpu().is_some() && self.has_driver())
    }

    fn has_driver(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/maps", self.pid()))
            .unwrap()
            .contains("/dev/nvidia")
    }

    fn all_sockets(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.pid()))
            .unwrap()
            .filter_map(|e| std::fs::read_link(e.ok()?.path()).ok())
            .filter(|p| p.to_string_lossy().starts_with("socket:"))
            .count()
    }

    pub fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.pid()))
            .unwrap()
            .count()
    }
}

impl Drop for Puppet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The listening side.
pub struct Agent {
    path: PathBuf,
    listener: OwnedFd,
}

impl Agent {
    pub fn new(path: &Path) -> Self {
        let listener = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap();
        // Bound under another name first: the path appears when it can be connected to.
        let early = path.with_extension("early");
        rustix::net::bind(&listener, &SocketAddrUnix::new(early.as_path()).unwrap()).unwrap();
        rustix::net::listen(&listener, 16).unwrap();
        std::fs::rename(early, path).unwrap();
        Self {
            path: path.to_owned(),
            listener,
        }
    }

    pub fn accept(&self) -> Link {
        ready(&self.listener, PATIENCE).expect("no shim connects");
        let socket = rustix::net::accept_with(&self.listener, SocketFlags::CLOEXEC).unwrap();
        let mut link = Link {
            socket,
            vault: BTreeMap::new(),
            native: 0,
            place: None,
            usage: Usage::default(),
            pid: 0,
        };
        let (message, _) = link.receive();
        let ToAgent::Hello {
            pid,
            state,
            devices,
            ..
        } = message
        else {
            panic!("not Hello: {message:?}")
        };
        link.pid = pid;
        link.socket_state(state, devices)
    }

    pub fn remove_path(&self) {
        std::fs::remove_file(&self.path).unwrap();
    }

    /// The path comes back, as after a dump.
    pub fn again(self) -> Self {
        let path = self.path.clone();
        drop(self);
        Self::new(&path)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn ready(fd: impl AsFd, limit: Duration) -> Option<()> {
    let limit = Timespec {
        tv_sec: limit.as_secs() as i64,
        tv_nsec: i64::from(limit.subsec_nanos()),
    };
    let mut poll = [PollFd::from_borrowed_fd(fd.as_fd(), PollFlags::IN)];
    (rustix::event::poll(&mut poll, Some(&limit)).unwrap() > 0).then_some(())
}

/// A connection, with the vault of what came through it.
pub struct Link {
    pub socket: OwnedFd,
    pub vault: BTreeMap<AllocationKey, OwnedFd>,
    /// Device memory that the driver saves, in bytes, as was said last.
    pub native: u64,
    /// Where in its steps the process was held at the last quiesce, as it said.
    pub place: Option<Place>,
    /// What the process has, as it said last.
    pub usage: Usage,
    pub pid: u32,
}

impl Link {
    fn socket_state(self, state: ShimState, devices: Vec<Device>) -> Link {
        GREETING.with(|g| *g.borrow_mut() = Some((state, devices)));
        self
    }

    /// What the last `Hello` said.
    pub fn greeting() -> (ShimState, Vec<Device>) {
        GREETING.with(|g| g.borrow().clone().unwrap())
    }

    pub fn send(&self, message: &ToShim) {
        wire::send(&self.socket, message, &[]).unwrap();
    }

    /// The next message but those of what the process has, which come when they like.
    pub fn receive(&mut self) -> (ToAgent, Vec<OwnedFd>) {
        loop {
            match self.receive_any() {
                (ToAgent::Usage(usage), _) => self.usage = usage,
                (
                    ToAgent::Watches
                    | ToAgent::TakesCredit
                    | ToAgent::Communicates
                    | ToAgent::TellsEnd
                    | ToAgent::Ends { .. },
                    _,
                ) => {}
                other => return other,
            }
        }
    }

    fn receive_any(&self) -> (ToAgent, Vec<OwnedFd>) {
        ready(&self.socket, PATIENCE).expect("nothing comes from the shim");
        wire::recv(&self.socket).unwrap()
    }

    /// Waits until the process has said that it has this, while somebody speaks to it all the time.
    pub fn wait_usage(&mut self, mut wanted: impl FnMut(&Usage) -> bool) -> Usage {
        let begun = Instant::now();
        while !wanted(&self.usage) {
            assert!(begun.elapsed() < PATIENCE, "it has {:?}", self.usage);
            self.send(&ToShim::MemoryReleased);
            if ready(&self.socket, Duration::from_millis(100)).is_some() {
                match self.receive_any() {
                    (ToAgent::Usage(usage), _) => self.usage = usage,
                    (
                        ToAgent::Freed { .. }
                        | ToAgent::Watches
                        | ToAgent::TakesCredit
                        | ToAgent::TellsEnd,
                        _,
                    ) => {}
                    other => panic!("unexpected {other:?}"),
                }
            }
        }
        self.usage
    }

    pub fn welcome(self, held: &[u64]) -> Self {
        let mut rest = held;
        loop {
            let (part, more) = rest.split_at(rest.len().min(HELD));
            let last = part.len() < HELD;
            self.send(&ToShim::Welcome {
                held: part.to_vec(),
            });
            rest = more;
            if last {
                return self;
            }
        }
    }

    /// Quiesces and takes the table and its fds.
    pub fn quiesce(
        &mut self,
        seq: Sequence,
        timeout_ms: u32,
    ) -> Result<(QuiesceFacts, Vec<TableEntry>, Vec<AllocationKey>), Refusal> {
        self.send(&ToShim::Quiesce { seq, timeout_ms });
        self.quiesced(seq)
    }

    pub fn quiesced(
        &mut self,
        seq: Sequence,
    ) -> Result<(QuiesceFacts, Vec<TableEntry>, Vec<AllocationKey>), Refusal> {
        let (mut table, mut all_imported) = (Vec::new(), Vec::new());
        self.place = None;
        loop {
            let (message, fds) = self.receive();
            match message {
                ToAgent::Place { seq: s, place } => {
                    assert_eq!(s, seq);
                    self.place = Some(place);
                }
                ToAgent::Table {
                    seq: s,
                    entries,
                    imported,
                } => {
                    assert_eq!(s, seq);
                    assert!(entries.len() <= wire::BATCH);
                    let mut fds = fds.into_iter();
                    for entry in &entries {
                        if entry.with_fd {
                            self.vault.insert(entry.allocation.key, fds.next().unwrap());
                        }
                    }
                    assert!(fds.next().is_none());
                    table.extend(entries);
                    all_imported.extend(imported);
                }
                ToAgent::Quiesced { seq: s, outcome } => {
                    assert_eq!(s, seq);
                    return outcome.map(|facts| (facts, table, all_imported));
                }
                ToAgent::Native { seq: s, bytes } => {
                    assert_eq!(s, seq);
                    self.native = bytes;
                }
                ToAgent::Freed { .. }
                | ToAgent::LetGo { .. }
                | ToAgent::Unsupported { .. }
                | ToAgent::Supported
                | ToAgent::Instrumented => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }

    /// Detaches; the shim closes the connection.
    pub fn detach(mut self, agent: &Agent, seq: Sequence) -> BTreeMap<AllocationKey, OwnedFd> {
        agent.remove_path();
        self.send(&ToShim::Detach { seq });
        let (message, _) = self.receive();
        assert_eq!(
            message,
            ToAgent::Detached {
                seq,
                outcome: Ok(())
            }
        );
        ready(&self.socket, PATIENCE).unwrap();
        assert!(matches!(
            wire::recv::<ToAgent>(&self.socket),
            Err(wire::RecvError::Closed)
        ));
        self.vault
    }

    pub fn send_memory(&self, seq: Sequence, vault: &BTreeMap<AllocationKey, OwnedFd>) {
        let all: Vec<(&AllocationKey, &OwnedFd)> = vault.iter().collect();
        for part in all.chunks(wire::SHIM_FDS) {
            let keys = part.iter().map(|(k, _)| **k).collect();
            let fds: Vec<BorrowedFd<'_>> = part.iter().map(|(_, f)| f.as_fd()).collect();
            wire::send(&self.socket, &ToShim::Memory { seq, keys }, &fds).unwrap();
        }
    }

    /// Gives the memory back.
    pub fn attach(
        &mut self,
        seq: Sequence,
        vault: &BTreeMap<AllocationKey, OwnedFd>,
    ) -> Result<(), Refusal> {
        self.send_memory(seq, vault);
        self.send(&ToShim::Attach { seq });
        loop {
            match self.receive().0 {
                ToAgent::Attached { seq: s, outcome } => {
                    assert_eq!(s, seq);
                    return outcome;
                }
                ToAgent::Freed { .. }
                | ToAgent::LetGo { .. }
                | ToAgent::Unsupported { .. }
                | ToAgent::Supported
                | ToAgent::Instrumented => {}
                other => panic!("unexpected {other:?}"),
            }
        }
    }
}

thread_local! {
    static GREETING: std::cell::RefCell<Option<(ShimState, Vec<Device>)>> = const { std::cell::RefCell::new(None) };
}

/// Waits until something holds.
pub fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < PATIENCE, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The puppet's pattern.
pub fn pattern(seed: u64, i: u64) -> u8 {
    let x = (i / 8 + 1)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
    let x = x ^ (x >> 29);
    (x >> (i % 8 * 8)) as u8
}
