//! Listening sockets and connections of the main loop: never blocking to receive, bounded to send.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use phos_protocol::channel::{self, RecvError, SendError};
use phos_shared::peer::{Peer, peer};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A listening socket at a path, which is removed when it is dropped.
#[derive(Debug)]
pub struct Listener {
    socket: OwnedFd,
    path: PathBuf,
}

impl Listener {
    /// Listens at `path`, in place of a socket that was left there.
    ///
    /// # Errors
    /// The error of the system call that failed.
    pub fn bind(path: &Path, mode: u32) -> io::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        match std::fs::remove_file(path) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
        let socket = socket_with(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC | SocketFlags::NONBLOCK,
            None,
        )?;
        // Nobody connects before the mode is right: connecting is refused until `listen`.
        bind(&socket, &SocketAddrUnix::new(path)?)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))?;
        listen(&socket, 128)?;
        Ok(Self {
            socket,
            path: path.to_owned(),
        })
    }

    /// The descriptor to poll for connections.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Takes one connection, if there is one.
    pub fn accept(&self) -> Option<(Link, Peer)> {
        let socket =
            accept_with(&self.socket, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK).ok()?;
        let peer = peer(socket.as_fd())?;
        Some((Link { socket }, peer))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // Shims wait for this path to appear: it must go with the listener. Failing, it is replaced later.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// A connected socket of the agent.
#[derive(Debug)]
pub struct Link {
    socket: OwnedFd,
}

/// The result of receiving from a connection.
#[derive(Debug)]
pub enum Received<M> {
    /// A message and its fds.
    Message(M, Vec<OwnedFd>),
    /// No message has arrived yet.
    Nothing,
    /// The connection is of no further use; why, unless it was simply closed.
    Gone(Option<String>),
}

/// The result of sending to a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The message is on its way.
    Yes,
    /// The peer has to read before there is room for the message.
    Full,
    /// Too many fds are on their way to whomever.
    Crowded,
}

impl Link {
    /// The descriptor to poll for messages.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Receives without waiting.
    pub fn receive<M: DeserializeOwned>(&self) -> Received<M> {
        match channel::recv(&self.socket) {
            Ok((message, fds)) => Received::Message(message, fds),
            Err(e) if e.is_would_block() => Received::Nothing,
            Err(RecvError::Closed) => Received::Gone(None),
            Err(RecvError::Io(e)) if e.kind() == io::ErrorKind::ConnectionReset => {
                Received::Gone(None)
            }
            Err(e) => Received::Gone(Some(e.to_string())),
        }
    }

    /// Sends if the peer's queue has room.
    ///
    /// # Errors
    /// [`SendError`]; the connection is of no further use then.
    pub fn try_send<M: Serialize>(
        &self,
        message: &M,
        fds: &[BorrowedFd<'_>],
    ) -> Result<Sent, SendError> {
        match channel::send(&self.socket, message, fds) {
            Ok(()) => Ok(Sent::Yes),
            Err(SendError::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => Ok(Sent::Full),
            // The kernel counts the fds under way per user, against our limit of open files.
            Err(SendError::Io(e)) if e.raw_os_error() == Some(libc::ETOOMANYREFS) => {
                Ok(Sent::Crowded)
            }
            Err(e) => Err(e),
        }
    }

    /// Sends, waiting at most `bound` for a peer that does not read.
    ///
    /// # Errors
    /// [`SendError`]; the connection is of no further use then.
    pub fn send<M: Serialize>(
        &self,
        message: &M,
        fds: &[BorrowedFd<'_>],
        bound: Duration,
    ) -> Result<(), SendError> {
        let until = Instant::now() + bound;
        loop {
            match channel::send(&self.socket, message, fds) {
                Err(SendError::Io(e)) if e.kind() == io::ErrorKind::WouldBlock => {
                    let left = until.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(SendError::Io(io::ErrorKind::TimedOut.into()));
                    }
                    let mut waited = [PollFd::new(&self.socket, PollFlags::OUT)];
                    let limit = timespec(left.min(Duration::from_millis(100)));
                    // An error shows at the next attempt.
                    let _ = poll(&mut waited, Some(&limit));
                }
                other => return other,
            }
        }
    }
}

/// A duration for `poll`.
pub fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(duration.subsec_nanos()),
    }
}
