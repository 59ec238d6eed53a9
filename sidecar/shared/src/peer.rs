//! Who is at the other end of a socket.

use std::os::fd::{AsRawFd, BorrowedFd};

/// The process at the other end of a socket, by the kernel's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// In our PID namespace; 0 for a process outside it.
    pub pid: u32,
    /// The user that the process had when it connected.
    pub uid: u32,
}

/// Asks the kernel. By hand: a PID of 0, of a peer in another container, is no error here.
pub fn peer(socket: BorrowedFd<'_>) -> Option<Peer> {
    let mut cred = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: pointers to a ucred and its length; the kernel writes at most that much.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut cred).cast(),
            &raw mut length,
        )
    };
    (result == 0).then_some(Peer {
        pid: cred.pid.unsigned_abs(),
        uid: cred.uid,
    })
}
