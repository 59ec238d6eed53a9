//! The server for the sidecar: one at a time, root or the agent's own user, over a 0600 socket.
//!
//! What a sidecar was sent is kept with its connection: a new one gets every fd again.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use phos_protocol::agent::{ToAgent, ToSidecar};
use phos_protocol::channel::BATCH;
use phos_protocol::shim::{Sequence, TableEntry};
use phos_protocol::types::AllocationKey;

use crate::channels::link::{Link, Listener, Received, timespec};
use crate::vault::Vault;

#[derive(Debug)]
struct Connected {
    link: Link,
    greeted: bool,
    /// Serial of the vault's entry that was sent, by key.
    sent: HashMap<AllocationKey, u64>,
}

impl Connected {
    fn new(link: Link) -> Self {
        Self {
            link,
            greeted: false,
            sent: HashMap::new(),
        }
    }
}

fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
    matches!(poll(&mut fds, Some(&timespec(Duration::ZERO))), Ok(n) if n > 0)
}

/// The socket for the sidecar, and at most one sidecar that is connected.
#[derive(Debug)]
pub struct SidecarServer {
    listener: Listener,
    current: Option<Connected>,
    /// Came while the one before had gone and was not yet noticed to have.
    next: Option<Link>,
    bound: Duration,
}

/// An event at the sidecar's socket.
#[derive(Debug)]
pub enum SidecarEvent {
    /// The sidecar sent a message, with fds beside it.
    Message(ToAgent, Vec<OwnedFd>),
    /// The connection of the sidecar ended.
    Closed,
}

impl SidecarServer {
    /// Serves on a bound listener; `bound` limits every send.
    pub fn new(listener: Listener, bound: Duration) -> Self {
        Self {
            listener,
            current: None,
            next: None,
            bound,
        }
    }

    /// The descriptors to poll for connections and messages.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        std::iter::once(self.listener.fd()).chain(self.current.iter().map(|c| c.link.fd()))
    }

    /// Takes a new connection, or tells it that there is one already.
    pub fn accept(&mut self) {
        while let Some((link, peer)) = self.listener.accept() {
            if peer.uid != 0 && peer.uid != rustix::process::getuid().as_raw() {
                tracing::warn!(
                    uid = peer.uid,
                    "a stranger tried to connect as sidecar: refused"
                );
                continue;
            }
            match &self.current {
                None => self.current = Some(Connected::new(link)),
                Some(current) if self.next.is_none() && has_hung_up(current.link.fd()) => {
                    self.next = Some(link);
                }
                Some(_) => {
                    tracing::warn!("a second sidecar tried to connect: refused");
                    // It may have gone again.
                    let _ = link.send(&ToSidecar::Busy, &[], Duration::from_millis(100));
                }
            }
        }
    }

    /// Whether a sidecar is connected and has said hello.
    pub fn is_connected(&self) -> bool {
        self.current.as_ref().is_some_and(|c| c.greeted)
    }

    /// Notes that the sidecar has said hello.
    pub fn greet(&mut self) {
        if let Some(current) = &mut self.current {
            current.greeted = true;
        }
    }

    /// The next event of the connected sidecar, without waiting.
    pub fn next_event(&mut self) -> Option<SidecarEvent> {
        match self.current.as_ref()?.link.receive() {
            Received::Nothing => None,
            Received::Message(message, fds) => Some(SidecarEvent::Message(message, fds)),
            Received::Gone(why) => {
                if let Some(why) = why {
                    tracing::warn!(why, "the sidecar's connection is unusable");
                }
                self.current = self.next.take().map(Connected::new);
                Some(SidecarEvent::Closed)
            }
        }
    }

    /// Sends, if there is somebody to send to. `false`: there is not, or not any more.
    pub fn send(&mut self, message: &ToSidecar, fds: &[BorrowedFd<'_>]) -> bool {
        let Some(current) = &self.current else {
            return false;
        };
        match current.link.send(message, fds, self.bound) {
            Ok(()) => true,
            Err(e) => {
                tracing::warn!(cause = %e, "cannot talk to the sidecar");
                // The loop sees the end of the connection and acts on it.
                let _ = rustix::net::shutdown(current.link.fd(), rustix::net::Shutdown::Both);
                false
            }
        }
    }

    /// Sends the whole table of the vault, with the fds this sidecar does not have.
    pub fn send_table(&mut self, seq: Sequence, vault: &Vault) -> bool {
        let Some(current) = &mut self.current else {
            return false;
        };
        let all: Vec<_> = vault.entries().collect();
        for batch in all.chunks(BATCH) {
            let mut entries = Vec::with_capacity(batch.len());
            let mut fds = Vec::new();
            for entry in batch {
                let key = entry.allocation.key;
                let with_fd = current.sent.get(&key) != Some(&entry.serial);
                if with_fd {
                    fds.push(entry.fd());
                }
                entries.push(TableEntry {
                    allocation: entry.allocation,
                    requested: entry.requested,
                    with_fd,
                });
            }
            let message = ToSidecar::Table { seq, entries };
            if let Err(e) = current.link.send(&message, &fds, self.bound) {
                tracing::warn!(cause = %e, "cannot send the table to the sidecar");
                let _ = rustix::net::shutdown(current.link.fd(), rustix::net::Shutdown::Both);
                return false;
            }
            for entry in batch {
                current.sent.insert(entry.allocation.key, entry.serial);
            }
        }
        current
            .sent
            .retain(|key, serial| vault.get(key).is_some_and(|e| e.serial == *serial));
        true
    }
}
