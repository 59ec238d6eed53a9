//! One connection: whole messages and file descriptors over a `SOCK_SEQPACKET` unix socket.
//!
//! ```text
//! packet   0        4        6        8                         n ≤ MAX_PACKET
//!          ┌────────┬────────┬────────┬─────────────────────────┐
//!          │ "PHOS" │ version│ 0      │ postcard payload        │   + ≤ MAX_FDS fds (SCM_RIGHTS)
//!          └────────┴────────┴────────┴─────────────────────────┘
//! ```
//!
//! Blocking and non-blocking sockets both work: `WouldBlock` comes back as [`std::io::Error`].
//! Received fds are close-on-exec.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Version of all types of this crate together.
pub const VERSION: u16 = 1;

/// Largest packet, header included, in bytes. Below the default `SO_SNDBUF` of Linux.
pub const MAX_PACKET: usize = 64 * 1024;

/// Most fds in a packet. The kernel's limit is 253 (`SCM_MAX_FD`).
pub const MAX_FDS: usize = 128;

/// Entries of a list that go into one packet, so that neither limit is met.
pub const BATCH: usize = 100;

/// Most fds in a packet from or to a shim: so many descriptors the job's process needs free at once, whatever its
/// `ulimit -n` and however much memory it has.
pub const SHIM_FDS: usize = 16;

const MAGIC: [u8; 4] = *b"PHOS";
const HEADER: usize = 8;

/// Why a message could not be sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The socket failed.
    #[error("cannot send: {0}")]
    Io(#[from] io::Error),
    /// A bug of the caller: the message must be split.
    #[error("message of {0} bytes with {1} fds exceeds the packet limit")]
    TooLarge(usize, usize),
    /// Serialisation failed.
    #[error("cannot encode message: {0}")]
    Encode(postcard::Error),
}

impl SendError {
    /// Whether the peer has gone. What it said before that can still be received.
    pub fn peer_is_gone(&self) -> bool {
        matches!(self, SendError::Io(e)
            if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset))
    }
}

/// Why no message was received.
#[derive(Debug, thiserror::Error)]
pub enum RecvError {
    /// The socket failed.
    #[error("cannot receive: {0}")]
    Io(#[from] io::Error),
    /// The peer closed the connection.
    #[error("the peer closed the connection")]
    Closed,
    /// The packet is not one of this protocol, or is cut off.
    #[error("not a phos-ft packet: {0}")]
    Malformed(&'static str),
    /// The fds beside the packet did not fit into this process: the kernel dropped them.
    #[error("the process has no file descriptors left: raise ulimit -n")]
    NoDescriptors,
    /// The peer speaks another version of the protocol.
    #[error(
        "the peer speaks protocol version {0}, this program version {VERSION}: run the shim, \
         agent and sidecar of one phos-ft release together"
    )]
    Version(u16),
    /// The payload of a packet is not an encoded message.
    #[error("cannot decode message: {0}")]
    Decode(postcard::Error),
}

impl RecvError {
    /// Whether the socket merely has nothing to read.
    pub fn is_would_block(&self) -> bool {
        matches!(self, RecvError::Io(e) if e.kind() == io::ErrorKind::WouldBlock)
    }
}

/// Encodes `message` as a packet.
///
/// # Errors
/// [`SendError::TooLarge`] and [`SendError::Encode`].
pub fn encode<M: Serialize>(message: &M, fds: usize) -> Result<Vec<u8>, SendError> {
    let mut packet = Vec::with_capacity(256);
    packet.extend_from_slice(&MAGIC);
    packet.extend_from_slice(&VERSION.to_le_bytes());
    packet.extend_from_slice(&[0, 0]);
    let packet = postcard::to_extend(message, packet).map_err(SendError::Encode)?;
    if packet.len() > MAX_PACKET || fds > MAX_FDS {
        return Err(SendError::TooLarge(packet.len(), fds));
    }
    Ok(packet)
}

/// Decodes a packet.
///
/// # Errors
/// [`RecvError::Malformed`], [`RecvError::Version`] and [`RecvError::Decode`].
pub fn decode<M: DeserializeOwned>(packet: &[u8]) -> Result<M, RecvError> {
    if packet.len() < HEADER || packet.len() > MAX_PACKET {
        return Err(RecvError::Malformed("length"));
    }
    if packet[..4] != MAGIC {
        return Err(RecvError::Malformed("magic"));
    }
    let version = u16::from_le_bytes([packet[4], packet[5]]);
    if version != VERSION {
        return Err(RecvError::Version(version));
    }
    let (message, rest) =
        postcard::take_from_bytes(&packet[HEADER..]).map_err(RecvError::Decode)?;
    if !rest.is_empty() {
        return Err(RecvError::Malformed("trailing bytes"));
    }
    Ok(message)
}

/// Sends one message with its fds.
///
/// # Errors
/// The message could not be sent: see [`SendError`].
pub fn send<M: Serialize>(
    socket: impl AsFd,
    message: &M,
    fds: &[BorrowedFd<'_>],
) -> Result<(), SendError> {
    let packet = encode(message, fds.len())?;
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(SendError::TooLarge(packet.len(), fds.len()));
    }
    loop {
        match sendmsg(
            &socket,
            &[IoSlice::new(&packet)],
            &mut ancillary,
            SendFlags::NOSIGNAL,
        ) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(e) => return Err(SendError::Io(e.into())),
        }
    }
}

/// Receives one message and the fds that came with it.
///
/// # Errors
/// No message was received: see [`RecvError`]. Fds of a rejected packet are closed.
pub fn recv<M: DeserializeOwned>(socket: impl AsFd) -> Result<(M, Vec<OwnedFd>), RecvError> {
    let mut buffer = vec![0_u8; MAX_PACKET];
    let mut space = vec![MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(
            &socket,
            &mut [IoSliceMut::new(&mut buffer)],
            &mut ancillary,
            RecvFlags::CMSG_CLOEXEC,
        ) {
            Ok(received) => break received,
            // A reset is reported once, by a peer that has gone without having read everything, and ahead of what it sent before:
            // that comes next, then the end.
            Err(rustix::io::Errno::INTR | rustix::io::Errno::CONNRESET) => {}
            Err(e) => return Err(RecvError::Io(e.into())),
        }
    };
    let mut fds = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            fds.extend(received);
        }
    }
    if received.bytes == 0 {
        return Err(RecvError::Closed);
    }
    // There is always room for the numbers of MAX_FDS: what is cut off are descriptors that could not be made.
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(RecvError::NoDescriptors);
    }
    if received.flags.contains(ReturnFlags::TRUNC) {
        return Err(RecvError::Malformed("truncated"));
    }
    Ok((decode(&buffer[..received.bytes])?, fds))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use proptest::prelude::*;
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;
    use crate::shim::{Sequence, ToShim};
    use crate::types::{AllocationKey, MemberId};

    fn pair() -> (OwnedFd, OwnedFd) {
        socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .unwrap()
    }

    #[test]
    fn a_message_arrives_whole_with_its_fds_in_order() {
        let (a, b) = pair();
        let files: Vec<_> = (0..BATCH)
            .map(|_| rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
            .collect();
        for (i, f) in files.iter().enumerate() {
            rustix::fs::ftruncate(f, i as u64).unwrap();
        }
        let keys = (0..BATCH as u64)
            .map(|id| AllocationKey {
                owner: MemberId::here(10_000),
                id,
            })
            .collect();
        let message = ToShim::Memory { seq: 7, keys };
        let borrowed: Vec<_> = files.iter().map(|f| f.as_fd()).collect();
        send(&a, &message, &borrowed).unwrap();
        let (received, fds): (ToShim, _) = recv(&b).unwrap();
        assert_eq!(received, message);
        assert_eq!(fds.len(), BATCH);
        for (i, f) in fds.iter().enumerate() {
            assert_eq!(rustix::fs::fstat(f).unwrap().st_size, i as i64);
        }
        drop(a);
        assert!(matches!(recv::<ToShim>(&b), Err(RecvError::Closed)));
    }

    // Lowers the limit of its process for a moment: nextest gives each test a process.
    #[test]
    fn descriptors_that_do_not_fit_are_told_from_a_broken_packet() {
        let (a, b) = pair();
        let files: Vec<_> = (0..SHIM_FDS)
            .map(|_| rustix::fs::memfd_create("x", rustix::fs::MemfdFlags::CLOEXEC).unwrap())
            .collect();
        let borrowed: Vec<_> = files.iter().map(|f| f.as_fd()).collect();
        send(&a, &ToShim::MemoryReleased, &borrowed).unwrap();
        // The kernel gives out the lowest number that is free: with the limit below it, it gives out none.
        let free = files[0].try_clone().unwrap();
        let next = std::os::fd::AsRawFd::as_raw_fd(&free) as u64;
        drop(free);
        let before = rustix::process::getrlimit(rustix::process::Resource::Nofile);
        let low = rustix::process::Rlimit {
            current: Some(next),
            ..before
        };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, low).unwrap();
        let received = recv::<ToShim>(&b);
        rustix::process::setrlimit(rustix::process::Resource::Nofile, before).unwrap();
        assert!(
            matches!(received, Err(RecvError::NoDescriptors)),
            "{received:?}"
        );
    }

    #[test]
    fn another_version_is_named() {
        let mut packet = encode(&ToShim::MemoryReleased, 0).unwrap();
        packet[4] = 9;
        assert!(matches!(
            decode::<ToShim>(&packet),
            Err(RecvError::Version(9))
        ));
    }

    #[test]
    fn a_packet_over_the_limit_is_refused() {
        let held = vec![u64::MAX; MAX_PACKET];
        assert!(matches!(
            encode(&ToShim::Welcome { held }, 0),
            Err(SendError::TooLarge(..))
        ));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..4096)) {
            let _ = decode::<crate::shim::ToAgent>(&bytes);
            let mut packet = encode(&ToShim::MemoryReleased, 0).unwrap();
            packet.truncate(HEADER);
            packet.extend_from_slice(&bytes);
            let _ = decode::<crate::shim::ToAgent>(&packet);
            let _ = decode::<crate::agent::ToAgent>(&packet);
            let _ = decode::<crate::agent::ToSidecar>(&packet);
        }

        #[test]
        fn round_trip(seq: Sequence, ids in proptest::collection::vec(any::<u64>(), 0..BATCH)) {
            let message = ToShim::Memory {
                seq,
                keys: ids.iter().map(|&id| AllocationKey { owner: MemberId::here(1), id }).collect(),
            };
            let packet = encode(&message, 0).unwrap();
            prop_assert_eq!(decode::<ToShim>(&packet).unwrap(), message);
        }
    }
}
