//! The server for shims: one connection per process with CUDA.
//!
//! Who may connect: processes of the job, that is descendants of this process, under their own PID; whatever user they
//! have become. A process that somebody else started beside it in the container (`docker exec`) is none. While the job is
//! detached nothing listens: shims wait for the path of the socket to appear.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use phos_protocol::agent::Process;
use phos_protocol::shim::{ToAgent, ToShim};
use phos_protocol::types::{Device, ProcessId};

use super::link::{Link, Listener, Received};

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

    /// What to poll.
    pub fn fds(&self) -> impl Iterator<Item = std::os::fd::BorrowedFd<'_>> {
        self.listeners
            .iter()
            .map(Listener::fd)
            .chain(self.connections.values().map(|c| c.link.fd()))
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

    /// Sends; a connection that fails is closed and reported by `false`.
    pub fn send(
        &mut self,
        id: ConnectionId,
        message: &ToShim,
        fds: &[std::os::fd::BorrowedFd<'_>],
        bound: Duration,
    ) -> bool {
        let Some(connection) = self.connections.get(&id) else {
            return false;
        };
        match connection.link.send(message, fds, bound) {
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

/// Whether a shim's library is mapped in a process that has initialised nothing with us yet.
pub fn has_shim(pid: ProcessId) -> bool {
    super::tree::maps_library(pid, "libphos_shim")
}

/// The paths to listen at: the agent's own, and the one an image was made with.
pub fn listen_paths(own: &Path, recorded: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = vec![own.to_owned()];
    if let Some(recorded) = recorded.filter(|r| *r != own) {
        paths.push(recorded.to_owned());
    }
    paths
}
