//! The connection to the agent.
//!
//! # Rules
//!
//! * A thread reads packets and passes them on in order; the queue is bounded, so a sidecar that is
//!   busy slows the agent's table down and holds no more of it than the queue.
//! * Sending blocks for at most [`SEND_TIMEOUT`]: an agent that does not read for so long is treated
//!   as gone. It brings the job back by itself.
//! * What the agent said before it went is read, whatever is sent to it meanwhile.
//! * Dropping the link closes the socket; the agent then ends whatever attempt is under way.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use phos_protocol::agent::{ToAgent, ToSidecar};
use phos_protocol::channel::{self, RecvError, SendError};
use phos_shared::peer::peer;
use rustix::net::{AddressFamily, Shutdown, SocketAddrUnix, SocketFlags, SocketType};
use tokio::sync::mpsc;

/// Longest time that a packet may take to be taken by the agent's socket.
const SEND_TIMEOUT: Duration = Duration::from_secs(10);

/// Packets read and not yet looked at.
const QUEUE: usize = 64;

/// A message of the agent with its fds.
pub(in crate::engine) type Packet = (ToSidecar, Vec<OwnedFd>);

/// Why no connection to the agent could be made.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum ConnectError {
    #[error(
        "no agent at {path}: {source}; start the job with `phos-ft run -- CMD` and the same --job and --run-dir"
    )]
    Absent { path: PathBuf, source: io::Error },
    #[error(
        "the agent's socket {path} may not be opened: run the sidecar as the same user as the agent (root)"
    )]
    Denied { path: PathBuf },
    #[error(
        "{path} is served by user {uid}, not by root or this user: somebody else made it; remove it"
    )]
    Foreign { path: PathBuf, uid: u32 },
    #[error("the socket path {path} is too long: choose a shorter --run-dir")]
    Path { path: PathBuf },
    #[error("cannot make a socket: {0}")]
    Socket(io::Error),
}

impl ConnectError {
    /// Whether waiting may help.
    pub(in crate::engine) fn is_transient(&self) -> bool {
        matches!(self, ConnectError::Absent { .. })
    }
}

/// Why a connection to the agent ended.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum LinkError {
    #[error("the agent is gone")]
    Closed,
    #[error("{0}")]
    Receive(RecvError),
    #[error("{0}")]
    Send(#[from] SendError),
}

/// The connection to the agent, with the thread that receives from it: see the module's documentation.
pub(in crate::engine) struct Link {
    socket: Arc<OwnedFd>,
    packets: mpsc::Receiver<Result<Packet, RecvError>>,
}

/// See [`Link::sender`].
pub(in crate::engine) struct Sender(Arc<OwnedFd>);

impl Sender {
    /// As [`Link::send`].
    pub(in crate::engine) fn send(&self, message: &ToAgent) -> Result<(), LinkError> {
        send(&self.0, message, &[])
    }
}

fn send(socket: &OwnedFd, message: &ToAgent, fds: &[BorrowedFd<'_>]) -> Result<(), LinkError> {
    tracing::trace!(?message, fds = fds.len(), "to agent");
    match tokio::task::block_in_place(|| channel::send(socket, message, fds)) {
        Err(e) if e.peer_is_gone() => {
            tracing::debug!(error = %e, "the agent is gone");
            Ok(())
        }
        sent => Ok(sent?),
    }
}

impl Link {
    /// Connects; does not wait.
    pub(in crate::engine) fn connect(path: &Path) -> Result<Link, ConnectError> {
        let here = || path.to_owned();
        let address = SocketAddrUnix::new(path).map_err(|_| ConnectError::Path { path: here() })?;
        let socket = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|e| ConnectError::Socket(e.into()))?;
        rustix::net::connect(&socket, &address).map_err(|e| match e {
            rustix::io::Errno::ACCESS | rustix::io::Errno::PERM => {
                ConnectError::Denied { path: here() }
            }
            e => ConnectError::Absent {
                path: here(),
                source: e.into(),
            },
        })?;
        let peer =
            peer(socket.as_fd()).ok_or_else(|| ConnectError::Socket(io::Error::last_os_error()))?;
        if peer.uid != rustix::process::geteuid().as_raw() && peer.uid != 0 {
            return Err(ConnectError::Foreign {
                path: here(),
                uid: peer.uid,
            });
        }
        let _ = rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Send,
            Some(SEND_TIMEOUT),
        );
        let socket = Arc::new(socket);
        let (sender, packets) = mpsc::channel(QUEUE);
        let reader = Arc::clone(&socket);
        std::thread::Builder::new()
            .name("agent-link".into())
            .spawn(move || read(&reader, &sender))
            .map_err(ConnectError::Socket)?;
        Ok(Link { socket, packets })
    }

    /// Sends a message. It is no failure that the agent is gone: it may have said why, such as that the job has ended, and that is to be
    /// dealt with first. [`Link::recv`] tells both, in that order.
    pub(in crate::engine) fn send(&self, message: &ToAgent) -> Result<(), LinkError> {
        self.send_with(message, &[])
    }

    /// Sends a message with fds.
    pub(in crate::engine) fn send_with(
        &self,
        message: &ToAgent,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(), LinkError> {
        send(&self.socket, message, fds)
    }

    /// Sends to the same agent, while somebody waits for what it says.
    pub(in crate::engine) fn sender(&self) -> Sender {
        Sender(Arc::clone(&self.socket))
    }

    /// Waits for the next message from the agent. Cancel safe.
    pub(in crate::engine) async fn recv(&mut self) -> Result<Packet, LinkError> {
        match self.packets.recv().await {
            Some(Ok(packet)) => {
                tracing::trace!(message = ?packet.0, fds = packet.1.len(), "from agent");
                Ok(packet)
            }
            Some(Err(RecvError::Closed)) | None => Err(LinkError::Closed),
            Some(Err(e)) => Err(LinkError::Receive(e)),
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // Wakes the reader, which then ends.
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}

fn read(socket: &OwnedFd, sender: &mpsc::Sender<Result<Packet, RecvError>>) {
    loop {
        let received = channel::recv::<ToSidecar>(socket);
        let last = received.is_err();
        if sender.blocking_send(received).is_err() || last {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use phos_protocol::agent::Exit;
    use rustix::net::{accept, bind, listen};

    use super::*;

    /// A sidecar and an agent, connected.
    fn connected() -> (Link, OwnedFd) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent.sock");
        let listener =
            rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&listener, 1).unwrap();
        let link = Link::connect(&path).unwrap();
        (link, accept(&listener).unwrap())
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_last_words_of_an_agent_that_did_not_read_to_the_end_are_heard() {
        let (mut link, agent) = connected();
        let seq = 1;
        link.send(&ToAgent::Finish { seq }).unwrap();
        let last = ToSidecar::JobExited {
            exit: Exit::Code(0),
            stopping: false,
        };
        channel::send(&agent, &last, &[]).unwrap();
        drop(agent);
        link.send(&ToAgent::Finish { seq }).unwrap();
        assert!(matches!(
            link.recv().await,
            Ok((
                ToSidecar::JobExited {
                    exit: Exit::Code(0),
                    ..
                },
                _
            ))
        ));
        assert!(matches!(link.recv().await, Err(LinkError::Closed)));
    }
}
