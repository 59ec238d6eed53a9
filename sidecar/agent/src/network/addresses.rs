//! Addresses of the machine that a job was on.
//!
//! The ranks of a job on one machine talk through the first interface that they find, and so from and to that machine's own
//! address. On another machine the kernel refuses to bind it. Since both ends are in the job, any interface will do: what is missing
//! is added to the loopback interface, with a prefix of its full length, and removed when the agent ends.
//!
//! # Rules
//!
//! * An address is added only if no interface here has it, and only what was added is removed.
//! * Meanwhile another machine with that address cannot be reached from this network namespace; the agent says so.
//! * If the agent is killed, the address stays until the machine, or the container, restarts; the next restore of the job finds
//!   it there.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::sync::{Mutex, PoisonError};

use crate::network::netlink::{ACK, Netlink, REQUEST, message};

const CREATE_EXCLUSIVELY: u16 = 0x600;
/// The loopback interface is the first one of every network namespace.
const LOOPBACK: u32 = 1;
/// `IFA_F_NODAD`: an IPv6 address can be used at once, instead of when nobody else on the link was found to have it.
const USABLE_AT_ONCE: u8 = 2;
/// `IFA_ADDRESS`, `IFA_LOCAL`.
const ATTRIBUTES: [u16; 2] = [1, 2];

static ADDED: Mutex<BTreeSet<IpAddr>> = Mutex::new(BTreeSet::new());

fn added() -> std::sync::MutexGuard<'static, BTreeSet<IpAddr>> {
    ADDED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_here(address: IpAddr) -> io::Result<bool> {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::AddrNotAvailable => Ok(false),
        Err(e) => Err(e),
    }
}

/// Makes sure that sockets can be bound to it.
///
/// # Errors
/// The error that the kernel returns.
pub fn provide(address: IpAddr) -> io::Result<()> {
    if is_here(address)? {
        return Ok(());
    }
    match change(libc::RTM_NEWADDR, CREATE_EXCLUSIVELY, address) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => return Err(e),
        _ => {}
    }
    added().insert(address);
    tracing::warn!(
        %address,
        "the job's TCP connections are on an address that this machine does not have: it is added to the loopback interface while \
         the job is here, and a machine that has it cannot be reached from here meanwhile"
    );
    Ok(())
}

/// Removes what was added.
pub fn withdraw() {
    for address in std::mem::take(&mut *added()) {
        if let Err(e) = change(libc::RTM_DELADDR, 0, address) {
            tracing::warn!(%address, cause = %e, "cannot remove the address that was added to the loopback interface");
        }
    }
}

fn change(kind: u16, flags: u16, address: IpAddr) -> io::Result<()> {
    let socket = Netlink::open(libc::NETLINK_ROUTE)?;
    socket.send(&message(kind, REQUEST | ACK | flags, &request(address)))?;
    socket.answer(|_, _| {})
}

/// `ifaddrmsg` and two attributes (`linux/if_addr.h`):
/// ```text
/// family, prefix length, flags, scope │ interface u32 │ length u16, type u16, address │ length u16, type u16, address
/// ```
fn request(address: IpAddr) -> Vec<u8> {
    let (family, bytes) = match address {
        IpAddr::V4(v4) => (libc::AF_INET, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, v6.octets().to_vec()),
    };
    // The scope is the host: it is announced to nobody.
    let prefix = bytes.len() as u8 * 8;
    let mut payload = vec![family as u8, prefix, USABLE_AT_ONCE, libc::RT_SCOPE_HOST];
    payload.extend_from_slice(&LOOPBACK.to_ne_bytes());
    for attribute in ATTRIBUTES {
        payload.extend_from_slice(&(4 + bytes.len() as u16).to_ne_bytes());
        payload.extend_from_slice(&attribute.to_ne_bytes());
        payload.extend_from_slice(&bytes);
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_added_and_only_that_is_removed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // For documentation (RFC 5737, RFC 3849): nobody has them.
        let missing: [IpAddr; 2] = [
            [192, 0, 2, std::process::id() as u8].into(),
            format!("2001:db8::{:x}", std::process::id() & 0xffff)
                .parse()
                .unwrap(),
        ];
        provide("127.0.0.1".parse().unwrap()).unwrap();
        assert!(added().is_empty());
        for address in missing {
            if address.is_ipv6() && UdpSocket::bind(("::1", 0)).is_err() {
                continue;
            }
            assert!(!is_here(address).unwrap());
            provide(address).unwrap();
            provide(address).unwrap();
            assert!(is_here(address).unwrap());
        }
        withdraw();
        for address in missing {
            assert!(!is_here(address).unwrap_or(false));
        }
    }
}
