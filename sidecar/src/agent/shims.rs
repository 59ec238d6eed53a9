//! The server for shims: one connection per process with CUDA.
//!
//! Who may connect: processes of the job, that is descendants of this process, under their own PID; whatever user they
//! have become. A process that somebody else started beside it in the container (`docker exec`) is none. While the job is
//! detached nothing listens: shims wait for the path of the socket to appear.
//!
//! Sending never waits: a shim imports the memory of one packet before it takes the next, and all the others are to get
//! theirs meanwhile. What a socket has no room for is queued.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_protocol::agent::Process;
use phos_protocol::channel::SendError;
use phos_protocol::shim::{ToAgent, ToShim};
use phos_protocol::types::{Device, ProcessId};

use super::link::{Link, Listener, Received, Sent};

/// Number of a connection, never used twice.
pub type ConnectionId = u64;

/// A connection of a process.
#[derive(Debug)]
pub struct Connection {
    /// The socket.
    pub link: Link,
    /// Who connected, by the kernel's word.
    pub pid: ProcessId,
    /// Whether `Hello` came.
    pub greeted: bool,
    /// What the socket had no room for.
    queue: VecDeque<(ToShim, Vec<Arc<OwnedFd>>)>,
    /// Since when nothing of it could be sent, and why.
    blocked: Option<(Instant, Sent)>,
}

impl Connection {
    /// Sends what there is room for.
    fn flush(&mut self) -> Result<(), SendError> {
        while let Some((message, fds)) = self.queue.front() {
            let fds: Vec<_> = fds.iter().map(|fd| fd.as_fd()).collect();
            match self.link.try_send(message, &fds)? {
                Sent::Yes => {
                    self.queue.pop_front();
                    self.blocked = None;
                }
                why => {
                    let since = self.blocked.map_or_else(Instant::now, |(since, _)| since);
                    self.blocked = Some((since, why));
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// A process of the job that uses CUDA.
#[derive(Debug)]
pub struct CudaProcess {
    /// See `Hello`.
    pub instance: u64,
    /// The GPUs it sees.
    pub devices: Vec<Device>,
    /// Its connection, when it has one.
    pub connection: Option<ConnectionId>,
    /// Becomes readable when the process ends.
    pub alive: Option<OwnedFd>,
    /// Why it rules checkpoints out, if it does.
    pub unsupported: Option<String>,
}

/// The sockets and their connections.
#[derive(Debug, Default)]
pub struct ShimServer {
    listeners: Vec<Listener>,
    connections: BTreeMap<ConnectionId, Connection>,
    next: ConnectionId,
}

/// One thing that happened.
#[derive(Debug)]
pub enum ShimEvent {
    /// A message.
    Message(ConnectionId, ToAgent, Vec<OwnedFd>),
    /// The connection ended; why, if it was not simply closed.
    Closed(ConnectionId, Option<String>),
}

/// Whether a process descends from this one, which is PID 1: one that was put into the namespace from outside has a
/// parent of number 0.
fn is_descendant(pid: ProcessId) -> bool {
    let mut pid = pid;
    // A tree is not deeper than it has processes; a process that ends meanwhile ends the search.
    for _ in 0..4096 {
        match pid {
            0 => return false,
            1 => return true,
            _ => {}
        }
        let Ok(status) = std::fs::read_to_string(format!("/proc/{pid}/status")) else {
            return false;
        };
        let parent = status
            .lines()
            .find_map(|line| line.strip_prefix("PPid:")?.trim().parse().ok());
        let Some(parent) = parent else { return false };
        pid = parent;
    }
    false
}

impl ShimServer {
    /// Listens at each path.
    ///
    /// # Errors
    /// The path that cannot be bound, and why.
    pub fn listen(&mut self, paths: &[PathBuf]) -> Result<(), (PathBuf, std::io::Error)> {
        self.listeners.clear();
        for path in paths {
            let listener = Listener::bind(path, 0o666).map_err(|e| (path.clone(), e))?;
            self.listeners.push(listener);
        }
        Ok(())
    }

    /// Stops listening and removes the paths; connections stay.
    pub fn stop_listening(&mut self) {
        self.listeners.clear();
    }

    /// What to poll, and whether for room to send too.
    pub fn fds(&self) -> impl Iterator<Item = (std::os::fd::BorrowedFd<'_>, bool)> {
        let connections = self.connections.values().map(|c| {
            let full = c.blocked.is_some_and(|(_, why)| why == Sent::Full);
            (c.link.fd(), full)
        });
        self.listeners
            .iter()
            .map(|l| (l.fd(), false))
            .chain(connections)
    }

    /// When to [`Self::flush`] at the latest, where shims get `bound` to read.
    pub fn deadline(&self, bound: Duration) -> Option<Instant> {
        self.connections
            .values()
            .filter_map(|c| c.blocked)
            .map(|(since, why)| match why {
                // No socket tells when others have read.
                Sent::Crowded => Instant::now() + Duration::from_millis(1),
                _ => since + bound,
            })
            .min()
    }

    /// Sends what there is room for now. Connections that failed, or took nothing for `bound`, are closed and returned.
    pub fn flush(&mut self, bound: Duration) -> Vec<ConnectionId> {
        let mut lost = Vec::new();
        for (&id, connection) in &mut self.connections {
            if connection.queue.is_empty() {
                continue;
            }
            let failed = match connection.flush() {
                Err(e) => Some(e.to_string()),
                Ok(()) => connection
                    .blocked
                    .filter(|(since, _)| since.elapsed() >= bound)
                    .map(|_| format!("it has read nothing for {bound:?}")),
            };
            if let Some(cause) = failed {
                tracing::warn!(pid = connection.pid, cause, "cannot talk to a shim");
                lost.push(id);
            }
        }
        for id in &lost {
            self.connections.remove(id);
        }
        lost
    }

    /// Takes new connections.
    pub fn accept(&mut self) {
        for listener in &self.listeners {
            while let Some((link, peer)) = listener.accept() {
                if peer.pid == 0 {
                    tracing::warn!(
                        uid = peer.uid,
                        "a process outside the job tried to connect as a shim: refused"
                    );
                    continue;
                }
                if !is_descendant(peer.pid) {
                    tracing::warn!(
                        pid = peer.pid,
                        uid = peer.uid,
                        "a process that is not of the job tried to connect as a shim: refused"
                    );
                    continue;
                }
                self.next += 1;
                self.connections.insert(
                    self.next,
                    Connection {
                        link,
                        pid: peer.pid,
                        greeted: false,
                        queue: VecDeque::new(),
                        blocked: None,
                    },
                );
            }
        }
    }

    /// The next event, if any connection has one.
    pub fn next_event(&mut self) -> Option<ShimEvent> {
        let mut found = None;
        for (&id, connection) in &self.connections {
            match connection.link.receive() {
                Received::Nothing => {}
                Received::Message(message, fds) => {
                    return Some(ShimEvent::Message(id, message, fds));
                }
                Received::Gone(why) => {
                    found = Some((id, why));
                    break;
                }
            }
        }
        let (id, why) = found?;
        self.connections.remove(&id);
        Some(ShimEvent::Closed(id, why))
    }

    /// A connection.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// Closes a connection.
    pub fn close(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// Closes all.
    pub fn close_all(&mut self) {
        self.connections.clear();
    }

    /// Sends, now or when the shim has read what was sent before; a connection that fails is closed and reported by
    /// `false`.
    pub fn send(&mut self, id: ConnectionId, message: ToShim, fds: Vec<Arc<OwnedFd>>) -> bool {
        let Some(connection) = self.connections.get_mut(&id) else {
            return false;
        };
        connection.queue.push_back((message, fds));
        if connection.queue.len() > 1 {
            return true;
        }
        match connection.flush() {
            Ok(()) => true,
            Err(e) => {
                tracing::warn!(pid = connection.pid, cause = %e, "cannot talk to a shim");
                self.connections.remove(&id);
                false
            }
        }
    }
}

/// The registry as the protocol lists it.
pub fn list(processes: &BTreeMap<ProcessId, CudaProcess>) -> Vec<Process> {
    processes
        .iter()
        .map(|(&pid, p)| Process {
            pid,
            devices: p.devices.clone(),
        })
        .collect()
}

/// Opens what tells the end of a process.
pub fn watch(pid: ProcessId) -> Option<OwnedFd> {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed())?;
    rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
}

/// Whether a process that has not connected is about to: its shim's control thread, which the shim starts when the process
/// initialises CUDA, is there. A process in which only NVML uses the driver (a GPU monitor) has the shim mapped as well
/// and is known to the driver, but its shim sleeps.
pub fn is_about_to_connect(pid: ProcessId) -> bool {
    /// Its name, as `shim/src/control/mod.rs` gives it.
    const CONTROL_THREAD: &str = "phos-control";
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return false;
    };
    tasks.flatten().any(|task| {
        std::fs::read_to_string(task.path().join("comm"))
            .is_ok_and(|name| name.trim_end() == CONTROL_THREAD)
    })
}

/// The paths to listen at: the agent's own, and the one an image was made with.
pub fn listen_paths(own: &Path, recorded: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = vec![own.to_owned()];
    if let Some(recorded) = recorded.filter(|r| *r != own) {
        paths.push(recorded.to_owned());
    }
    paths
}
