//! A netlink socket: the few calls that [`lingering`](crate::network::lingering) and [`netlock`](crate::network::netlock) need.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

pub const REQUEST: u16 = 1;
pub const ACK: u16 = 4;
pub const DUMP: u16 = 0x300;
/// Length of `nlmsghdr`, bytes.
pub const HEADER: usize = 16;

const ERROR: u16 = 2;
const DONE: u16 = 3;

/// A socket for a netlink protocol, in the network namespace of the calling thread.
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Opens it. Answers are waited for one second at most: the kernel answers at once or never.
    ///
    /// # Errors
    /// The error that the kernel returns.
    pub fn open(protocol: i32) -> io::Result<Self> {
        // SAFETY: a plain socket call; the result is checked before it is owned.
        let fd = unsafe {
            libc::socket(
                libc::AF_NETLINK,
                libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                protocol,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just opened, owned by nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Recv,
            Some(std::time::Duration::from_secs(1)),
        )?;
        Ok(Self(socket))
    }

    /// Sends one or more messages.
    ///
    /// # Errors
    /// The error that the kernel returns.
    pub fn send(&self, messages: &[u8]) -> io::Result<()> {
        // SAFETY: a buffer and its length.
        let sent = unsafe {
            libc::send(
                self.0.as_raw_fd(),
                messages.as_ptr().cast(),
                messages.len(),
                0,
            )
        };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Hands every message of the answer to `each`, as type and payload, until an acknowledgement or the end of a dump.
    ///
    /// # Errors
    /// What the kernel answered, or that it did not.
    pub fn answer(&self, mut each: impl FnMut(u16, &[u8])) -> io::Result<()> {
        let mut buffer = vec![0_u8; 64 << 10];
        loop {
            // SAFETY: a buffer and its length.
            let received = unsafe {
                libc::recv(
                    self.0.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    0,
                )
            };
            let Ok(received) = usize::try_from(received) else {
                return Err(io::Error::last_os_error());
            };
            let mut rest = &buffer[..received];
            while let Some((kind, payload, after)) = split(rest) {
                match kind {
                    // The negative errno, 0 for done.
                    ERROR => {
                        let code = payload.first_chunk().map_or(0, |c| i32::from_ne_bytes(*c));
                        return if code == 0 {
                            Ok(())
                        } else {
                            Err(io::Error::from_raw_os_error(-code))
                        };
                    }
                    DONE => return Ok(()),
                    _ => each(kind, payload),
                }
                rest = after;
            }
        }
    }
}

/// The first message: its type, its payload, what follows.
fn split(bytes: &[u8]) -> Option<(u16, &[u8], &[u8])> {
    let length = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
    let payload = bytes.get(HEADER..length)?;
    let next = length.next_multiple_of(4).min(bytes.len());
    Some((kind, payload, &bytes[next..]))
}

/// A message: `nlmsghdr` and the payload, padded.
pub fn message(kind: u16, flags: u16, payload: &[u8]) -> Vec<u8> {
    let length = HEADER + payload.len();
    let mut message = Vec::with_capacity(length.next_multiple_of(4));
    message.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_ne_bytes());
    message.extend_from_slice(&kind.to_ne_bytes());
    message.extend_from_slice(&flags.to_ne_bytes());
    // Sequence number and port: nobody else reads from the socket.
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(payload);
    message.resize(length.next_multiple_of(4), 0);
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_padded_and_split_again() {
        let mut bytes = message(7, REQUEST, b"abcde");
        assert_eq!(bytes.len(), 24);
        bytes.extend(message(8, 0, b""));
        let (kind, payload, rest) = split(&bytes).unwrap();
        assert_eq!((kind, payload), (7, &b"abcde"[..]));
        let (kind, payload, rest) = split(rest).unwrap();
        assert_eq!((kind, payload.len(), rest.len()), (8, 0, 0));
        // Cut short, or with a length of nothing.
        assert!(split(&bytes[..20]).is_none());
        assert!(split(&[0; 16]).is_none());
    }
}
