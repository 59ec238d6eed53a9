//! Sockets that outlive a killed tree.
//!
//! The kernel keeps closed TCP connections in `TIME_WAIT` for a minute, at whichever end closed first. A restore that binds their
//! port fails meanwhile with "Address already in use", and one that brings the connection back fails with "Cannot assign
//! requested address". They are destroyed through `SOCK_DESTROY` where the kernel has it; where not, CRIU's error says what to
//! do.

use std::io;
use std::net::IpAddr;

use crate::network::netlink::{ACK, Netlink, REQUEST, message};
use crate::tree::{self, TcpSocket};

const TIME_WAIT: u8 = 6;
/// `FIN_WAIT1`, `FIN_WAIT2`, `TIME_WAIT`, `LAST_ACK`, `CLOSING`: on their way out.
const LEAVING: [u8; 5] = [4, 5, TIME_WAIT, 9, 11];
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DESTROY: u16 = 21;

/// Destroys what lingers of connections to these ports of this machine, at either end.
pub fn destroy(ports: &[u16]) {
    if ports.is_empty() {
        return;
    }
    let lingering: Vec<TcpSocket> = tree::tcp_sockets(std::process::id())
        .into_iter()
        .filter(|s| {
            LEAVING.contains(&s.state)
                && (ports.contains(&s.local.1)
                    || s.remote.0 == s.local.0 && ports.contains(&s.remote.1))
        })
        .collect();
    if lingering.is_empty() {
        return;
    }
    let socket = match Netlink::open(NETLINK_SOCK_DIAG) {
        Ok(socket) => socket,
        Err(e) => {
            tracing::debug!(cause = %e, "cannot destroy lingering sockets");
            return;
        }
    };
    for found in &lingering {
        if let Err(e) = destroy_one(&socket, found) {
            tracing::debug!(port = found.local.1, cause = %e, "cannot destroy a lingering socket");
        }
    }
}

/// ```text
/// family, protocol, ext, pad │ states u32 │ sport dport be16 │ src 16 B │ dst 16 B │ if u32 │ cookie 8 B
/// ```
fn request(found: &TcpSocket) -> Vec<u8> {
    let mut payload = Vec::with_capacity(56);
    let family = match found.local.0 {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    payload.extend_from_slice(&[family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    let states: u32 = LEAVING.iter().map(|state| 1 << state).sum();
    payload.extend_from_slice(&states.to_ne_bytes());
    payload.extend_from_slice(&found.local.1.to_be_bytes());
    payload.extend_from_slice(&found.remote.1.to_be_bytes());
    for address in [found.local.0, found.remote.0] {
        let mut bytes = [0_u8; 16];
        match address {
            IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => bytes.copy_from_slice(&v6.octets()),
        }
        payload.extend_from_slice(&bytes);
    }
    payload.extend_from_slice(&[0; 4]);
    // No cookie: any socket with these addresses.
    payload.extend_from_slice(&[0xff; 8]);
    message(SOCK_DESTROY, REQUEST | ACK, &payload)
}

fn destroy_one(socket: &Netlink, found: &TcpSocket) -> io::Result<()> {
    socket.send(&request(found))?;
    socket.answer(|_, _| {})
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_lingering_socket_is_destroyed_where_the_kernel_can() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (server, _) = listener.accept().unwrap();
        // The side that closes first lingers.
        drop(server);
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).unwrap();
        drop(client);
        drop(listener);
        let lingers = || {
            tree::tcp_sockets(std::process::id())
                .iter()
                .any(|s| s.state == TIME_WAIT && s.local.1 == port)
        };
        assert!(lingers());
        destroy(&[port]);
        // Without the capability or the kernel option nothing may change, and nothing may fail.
        if rustix::process::geteuid().is_root() {
            eprintln!("lingers after destroy: {}", lingers());
        }
    }
}
