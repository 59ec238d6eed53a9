//! The server for shims: one connection per process with CUDA.
//!
//! # Rules
//!
//! * Processes of the job's tree may connect, under their own PID and as whatever user they have become. A process that somebody
//!   else started beside the job in the container (`docker exec`) does not belong to the tree, and one that left it (a daemon) no
//!   longer does.
//! * While the job is detached nothing listens: shims wait for the path of the socket to appear.
//! * Sending never waits: a shim imports the memory of one packet before it takes the next, and all the others are to get
//!   theirs meanwhile. What a socket has no room for is queued.
//! * Nobody gets more than its turn: connections are heard one after the other, one message each. A process that does not read
//!   what it asked for is not heard until it does.
//! * Connections are bounded, in all and for each process.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use phos_protocol::agent::Process;
use phos_protocol::channel::SendError;
use phos_protocol::shim::{Place, Sequence, ToAgent, ToShim, Usage};
use phos_protocol::types::{Device, MemberId, ProcessId};
use rustix::event::PollFlags;

use crate::channels::lines::Lines;
use crate::channels::link::{Link, Listener, Received, Sent};
use crate::proc;

/// Connections of one process: one, and those that it has given up and that were not heard to end.
const OF_ONE: usize = 4;
/// Connections in all. A job with more processes that use CUDA is not known.
const OF_ALL: usize = 4096;
/// Taken in one go: the rest waits for the next turn of the loop.
const ACCEPTED: usize = 64;
/// Messages that wait for a shim to read, above which it is not heard: the largest jobs have more only while they attach, and say
/// nothing meanwhile.
const UNREAD: usize = 256;

/// Number of a connection, never used twice.
pub type ConnectionId = u64;

/// A connection of a process.
#[derive(Debug)]
pub struct Connection {
    /// The socket of the connection.
    pub link: Link,
    /// The PID of the process that connected, by the kernel's word.
    pub pid: ProcessId,
    /// Whether `Hello` came.
    pub greeted: bool,
    /// Messages that the socket had no room for, oldest first.
    queue: VecDeque<(ToShim, Vec<Arc<OwnedFd>>)>,
    /// Since when nothing of it could be sent, and why.
    blocked: Option<(Instant, Sent)>,
}

impl Connection {
    /// Whether it is its turn to speak.
    fn is_heard(&self) -> bool {
        self.queue.len() < UNREAD
    }

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

/// What a process says of its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum End {
    /// It would say nothing.
    #[default]
    Untold,
    /// It will say when it ends, unless it is killed.
    ToBeTold,
    /// It said that it ends, with this code.
    Told(u8),
}

/// A process of the job that uses CUDA.
#[derive(Debug)]
pub struct CudaProcess {
    /// The number that tells the process from a later one with its PID: see `Hello`.
    pub instance: u64,
    /// The GPUs that the process sees.
    pub devices: Vec<Device>,
    /// The connection of the process; `None` while it has none.
    pub connection: Option<ConnectionId>,
    /// Becomes readable when the process ends.
    pub alive: Option<OwnedFd>,
    /// Why it rules checkpoints out, if it does.
    pub unsupported: Option<String>,
    /// A tool has attached itself to the driver in it.
    pub instrumented: bool,
    /// What it said last of its memory; none: nothing yet.
    pub usage: Option<Usage>,
    /// Whether the process can say when it waits for its work.
    pub watches: bool,
    /// Whether the process can be let go on for so many calls.
    pub takes_credit: bool,
    /// Where in its steps it is held, as it said last, and for which attempt.
    pub place: Option<(Sequence, Place)>,
    /// Whether the process has NCCL communicators whose calls it counts.
    pub communicates: bool,
    /// Its work in flight did not end in a try, once.
    pub busy: bool,
    /// Whether its program uses hints.
    pub hints: bool,
    /// Whether its program tells its steps.
    pub steps: bool,
    /// The attempt for which it said the last one.
    pub step_said: Option<Sequence>,
    /// What is known of its end.
    pub end: End,
}

impl CudaProcess {
    /// The process says that it tells its end; it may have told it already.
    pub fn will_tell_end(&mut self) {
        if self.end == End::Untold {
            self.end = End::ToBeTold;
        }
    }
}

/// The listening sockets for shims, and the connections that were taken there.
#[derive(Debug, Default)]
pub struct ShimServer {
    listeners: Vec<Listener>,
    connections: BTreeMap<ConnectionId, Connection>,
    next: ConnectionId,
    /// The connection that was heard last: those after it come first.
    heard: ConnectionId,
    /// What is said of processes that do what no shim does.
    pub lines: Lines,
}

/// An event at the shims' sockets.
#[derive(Debug)]
pub enum ShimEvent {
    /// A message came over this connection, with fds beside it.
    Message(ConnectionId, ToAgent, Vec<OwnedFd>),
    /// The connection ended; why, if it was not simply closed.
    Closed(ConnectionId, Option<String>),
}

/// Whether a process is `root` or descends from it: one that was put into the namespace from outside does not, nor does one whose
/// parent has ended.
fn is_descendant(pid: ProcessId, root: ProcessId) -> bool {
    let mut pid = pid;
    // A tree is not deeper than it has processes; a process that ends meanwhile ends the search.
    for _ in 0..4096 {
        if pid == root {
            return true;
        }
        if pid <= 1 {
            return false;
        }
        let Ok(status) = proc::text(pid, "status") else {
            return false;
        };
        let parent = proc::field(&status, "PPid").and_then(|parent| parent.parse().ok());
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

    /// The descriptors to poll, and the events to poll each for.
    pub fn fds(&self) -> impl Iterator<Item = (std::os::fd::BorrowedFd<'_>, PollFlags)> {
        let connections = self.connections.values().map(|c| {
            let mut events = PollFlags::empty();
            events.set(PollFlags::IN, c.is_heard());
            let full = c.blocked.is_some_and(|(_, why)| why == Sent::Full);
            events.set(PollFlags::OUT, full);
            (c.link.fd(), events)
        });
        self.listeners
            .iter()
            .map(|l| (l.fd(), PollFlags::IN))
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

    /// Takes new connections of the tree of `root`.
    pub fn accept(&mut self, root: Option<ProcessId>) {
        let now = Instant::now();
        let Self {
            listeners,
            connections,
            lines,
            ..
        } = self;
        let waiting = listeners
            .iter()
            .flat_map(|listener| std::iter::from_fn(|| listener.accept()));
        for (link, peer) in waiting.take(ACCEPTED) {
            if peer.pid == 0 {
                if lines.may(now) {
                    tracing::warn!(
                        uid = peer.uid,
                        "a process outside the job tried to connect as a shim: refused"
                    );
                }
                continue;
            }
            if !root.is_some_and(|root| is_descendant(peer.pid, root)) {
                if lines.may(now) {
                    tracing::warn!(
                        pid = peer.pid,
                        uid = peer.uid,
                        "a process that is not of the job tried to connect as a shim: refused"
                    );
                }
                continue;
            }
            let of_it = connections.values().filter(|c| c.pid == peer.pid).count();
            if of_it >= OF_ONE || connections.len() >= OF_ALL {
                if lines.may(now) {
                    tracing::warn!(
                        pid = peer.pid,
                        connections = of_it,
                        of_all = connections.len(),
                        "a process tried to connect more often than any shim does: refused"
                    );
                }
                continue;
            }
            self.next += 1;
            connections.insert(
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

    /// The next event, if any connection has one: of those that come after the one heard last, first.
    pub fn next_event(&mut self) -> Option<ShimEvent> {
        let after = self.connections.range(self.heard.saturating_add(1)..);
        let around = self.connections.range(..=self.heard);
        for (&id, connection) in after.chain(around) {
            if !connection.is_heard() {
                continue;
            }
            match connection.link.receive() {
                Received::Nothing => {}
                Received::Message(message, fds) => {
                    self.heard = id;
                    return Some(ShimEvent::Message(id, message, fds));
                }
                Received::Gone(why) => {
                    self.heard = id;
                    self.connections.remove(&id);
                    return Some(ShimEvent::Closed(id, why));
                }
            }
        }
        None
    }

    /// The connection of that number, if it is open.
    pub fn get_mut(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    /// Closes a connection.
    pub fn close(&mut self, id: ConnectionId) {
        self.connections.remove(&id);
    }

    /// Closes every connection.
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

/// The processes that use CUDA, as the protocol lists them.
pub fn list(processes: &BTreeMap<ProcessId, CudaProcess>) -> Vec<Process> {
    processes
        .iter()
        .map(|(&pid, p)| Process {
            member: MemberId::here(pid),
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
    proc::has_thread(pid, |name| name == CONTROL_THREAD)
}

/// The paths to listen at: the agent's own, and the one an image was made with.
pub fn listen_paths(own: &Path, recorded: Option<&Path>) -> Vec<PathBuf> {
    let mut paths = vec![own.to_owned()];
    if let Some(recorded) = recorded.filter(|r| *r != own) {
        paths.push(recorded.to_owned());
    }
    paths
}

#[cfg(test)]
mod tests {
    use phos_protocol::channel;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};

    use super::*;

    /// A server, and so many connections of this process.
    fn connected(count: usize) -> (tempfile::TempDir, ShimServer, Vec<OwnedFd>) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shim.sock");
        let mut server = ShimServer::default();
        server.listen(std::slice::from_ref(&path)).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        let clients = (0..count)
            .map(|_| {
                let client = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
                connect(&client, &address).unwrap();
                client
            })
            .collect();
        (dir, server, clients)
    }

    fn heard(server: &mut ShimServer) -> Vec<ConnectionId> {
        std::iter::from_fn(|| match server.next_event()? {
            ShimEvent::Message(id, ..) => Some(id),
            ShimEvent::Closed(..) => panic!("nobody left"),
        })
        .collect()
    }

    #[test]
    fn only_the_tree_connects_and_no_process_more_often_than_it_needs() {
        let (_dir, mut server, _clients) = connected(OF_ONE + 2);
        server.accept(Some(std::process::id()));
        assert_eq!(server.connections.len(), OF_ONE);
        for root in [None, Some(u32::MAX), Some(1_u32)] {
            let (_dir, mut server, _clients) = connected(1);
            server.accept(root);
            // Of this process everything descends from the first.
            assert_eq!(server.connections.len(), usize::from(root == Some(1)));
        }
    }

    #[test]
    fn everybody_has_a_turn() {
        let (_dir, mut server, clients) = connected(3);
        server.accept(Some(std::process::id()));
        let say = |client: &OwnedFd| channel::send(client, &ToAgent::Identify, &[]).unwrap();
        for _ in 0..3 {
            say(&clients[0]);
        }
        say(&clients[1]);
        say(&clients[2]);
        assert_eq!(heard(&mut server), [1, 2, 3, 1, 1]);
    }

    #[test]
    fn who_does_not_read_is_not_heard() {
        let (_dir, mut server, clients) = connected(2);
        server.accept(Some(std::process::id()));
        let say = |client: &OwnedFd| channel::send(client, &ToAgent::Identify, &[]).unwrap();
        while server.connections[&1].is_heard() {
            assert!(server.send(1, ToShim::MemoryReleased, Vec::new()));
        }
        say(&clients[0]);
        say(&clients[1]);
        assert_eq!(heard(&mut server), [2]);
        // Now it reads.
        for _ in 0..UNREAD {
            let _: (ToShim, _) = channel::recv(&clients[0]).unwrap();
            assert!(server.flush(Duration::MAX).is_empty());
        }
        assert_eq!(heard(&mut server), [1]);
    }
}
