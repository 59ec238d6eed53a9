//! Sockets that outlive a killed tree.
//!
//! The kernel keeps closed TCP connections in `TIME_WAIT` for a minute, and a restore that binds their port fails
//! meanwhile with "Address already in use". They are destroyed through `SOCK_DESTROY` where the kernel has it; where
//! not, CRIU's error says what to do.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};

use super::tree::{self, TcpSocket};

const TIME_WAIT: u8 = 6;
const NETLINK_SOCK_DIAG: i32 = 4;
const SOCK_DESTROY: u16 = 21;
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;

/// Destroys what lingers on these local ports.
pub fn destroy(ports: &[u16]) {
    if ports.is_empty() {
        return;
    }
    let lingering: Vec<TcpSocket> = tree::tcp_sockets(std::process::id())
        .into_iter()
        .filter(|s| s.state == TIME_WAIT && ports.contains(&s.local.1))
        .collect();
    if lingering.is_empty() {
        return;
    }
    let socket = match open() {
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

fn open() -> io::Result<OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: a plain socket call; the result is checked before it is owned.
    let fd = unsafe {
        libc::socket(
            libc::AF_NETLINK,
            libc::SOCK_RAW | libc::SOCK_CLOEXEC,
            NETLINK_SOCK_DIAG,
        )
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: just opened, owned by nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// ```text
/// nlmsghdr 16 B │ family, protocol, ext, pad │ states u32 │ sport dport be16 │ src 16 B │ dst 16 B │ if u32 │ cookie 8 B
/// ```
fn request(found: &TcpSocket) -> Vec<u8> {
    let mut message = Vec::with_capacity(72);
    message.extend_from_slice(&72_u32.to_ne_bytes());
    message.extend_from_slice(&SOCK_DESTROY.to_ne_bytes());
    message.extend_from_slice(&(NLM_F_REQUEST | NLM_F_ACK).to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    let family = match found.local.0 {
        IpAddr::V4(_) => libc::AF_INET,
        IpAddr::V6(_) => libc::AF_INET6,
    };
    message.extend_from_slice(&[family as u8, libc::IPPROTO_TCP as u8, 0, 0]);
    message.extend_from_slice(&(1_u32 << TIME_WAIT).to_ne_bytes());
    message.extend_from_slice(&found.local.1.to_be_bytes());
    message.extend_from_slice(&found.remote.1.to_be_bytes());
    for address in [found.local.0, found.remote.0] {
        let mut bytes = [0_u8; 16];
        match address {
            IpAddr::V4(v4) => bytes[..4].copy_from_slice(&v4.octets()),
            IpAddr::V6(v6) => bytes.copy_from_slice(&v6.octets()),
        }
        message.extend_from_slice(&bytes);
    }
    message.extend_from_slice(&[0; 4]);
    // No cookie: any socket with these addresses.
    message.extend_from_slice(&[0xff; 8]);
    message
}

fn destroy_one(socket: &OwnedFd, found: &TcpSocket) -> io::Result<()> {
    let message = request(found);
    // SAFETY: a buffer and its length.
    let sent = unsafe {
        libc::send(
            socket.as_raw_fd(),
            message.as_ptr().cast(),
            message.len(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut answer = [0_u8; 1024];
    // SAFETY: a buffer and its length.
    let received = unsafe {
        libc::recv(
            socket.as_raw_fd(),
            answer.as_mut_ptr().cast(),
            answer.len(),
            0,
        )
    };
    if received < 20 {
        return Err(io::Error::last_os_error());
    }
    // NLMSG_ERROR carries the negative errno, 0 for done.
    let code = i32::from_ne_bytes([answer[16], answer[17], answer[18], answer[19]]);
    if code == 0 {
        Ok(())
    } else {
        Err(io::Error::from_raw_os_error(-code))
    }
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
        if open().is_ok() && rustix::process::geteuid().is_root() {
            eprintln!("lingers after destroy: {}", lingers());
        }
    }
}
