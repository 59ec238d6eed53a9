//! The texts of other processes' mappings, which the agent has read for CRIU.
//!
//! CRIU reads `/proc/PID/smaps` of one process after another, when all stand still. The kernel walks through all pages of a process for it: 9 to 15 ms for
//! each of the 18 processes of a job with torch.compile. The agent reads all of them at once, when CRIU asks for the first, and says where each is. Its socket
//! is named in [`SOCKET`].
//!
//! ```text
//! here      PID, 4 bytes
//! the agent the number of a descriptor of its own, 4 bytes; -1: it has none
//! ```
//!
//! # Rules
//!
//! * Only `smaps` in a directory of `/proc` that is not CRIU's own. Whatever fails, the kernel is asked.

use core::ffi::{CStr, c_char, c_int, c_long};

use crate::{kernel, link, number, variable};

/// The variable with the path of the agent's socket, and the agent's PID before it: `PID:PATH`.
const SOCKET: &CStr = c"PHOS_MAPPINGS";

/// How long the agent may take for all texts, in seconds.
const PATIENCE: libc::time_t = 30;

/// Opens the text, if this is one that the agent has.
///
/// # Safety
/// `path` ends with a zero.
pub(crate) unsafe fn open(directory: c_int, path: *const c_char) -> Option<c_int> {
    // SAFETY: by the caller's word.
    if path.is_null() || unsafe { CStr::from_ptr(path) } != c"smaps" {
        return None;
    }
    let mut room = [0_u8; 64];
    let pid = process_of(link(directory, &mut room)?)?;
    // SAFETY: takes nothing.
    if pid == unsafe { libc::getpid() } {
        return None;
    }
    let named = variable(SOCKET)?;
    let colon = named.iter().position(|&byte| byte == b':')?;
    let (agent, socket) = (number(named.get(..colon)?)?, named.get(colon + 1..)?);
    let descriptor = ask(socket, pid)?;
    let mut place = [0_u8; 64];
    // SAFETY: `snprintf` writes no more than it is told, and ends it with a zero; two numbers for two places in the format.
    let opened = unsafe {
        libc::snprintf(
            place.as_mut_ptr().cast(),
            place.len(),
            c"/proc/%lu/fd/%d".as_ptr(),
            agent,
            descriptor,
        );
        let flags = libc::O_RDONLY | libc::O_CLOEXEC;
        call(
            libc::SYS_openat,
            [
                libc::AT_FDCWD.into(),
                place.as_ptr() as c_long,
                flags.into(),
                0,
            ],
        )
    };
    c_int::try_from(opened).ok().filter(|file| *file >= 0)
}

/// The process that a directory of `/proc` is of.
fn process_of(link: &[u8]) -> Option<c_int> {
    c_int::try_from(number(link.strip_prefix(b"/proc/")?)?).ok()
}

/// A system call with up to four arguments.
///
/// # Safety
/// The same as for the system call.
unsafe fn call(number: c_long, [a, b, c, d]: [c_long; 4]) -> c_long {
    // SAFETY: by the caller's word.
    unsafe { kernel(number, [a, b, c, d, 0, 0]) }
}

/// The address of a socket: `struct sockaddr_un`.
fn address(path: &[u8]) -> Option<libc::sockaddr_un> {
    // SAFETY: a struct of numbers may be all zeros.
    let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    // The zero at its end has to have a place as well.
    if path.is_empty() || path.len() >= address.sun_path.len() {
        return None;
    }
    for (place, &byte) in address.sun_path.iter_mut().zip(path) {
        *place = byte as c_char;
    }
    Some(address)
}

/// Asks the agent for the descriptor of a process's text.
fn ask(socket: &[u8], pid: c_int) -> Option<c_int> {
    let address = address(socket)?;
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: no address.
    let file = unsafe { call(libc::SYS_socket, [libc::AF_UNIX.into(), kind.into(), 0, 0]) };
    if file < 0 {
        return None;
    }
    let mut answer = [0_u8; 4];
    let limit = libc::timeval {
        tv_sec: PATIENCE,
        tv_usec: 0,
    };
    let asked = pid.to_ne_bytes();
    let (length, four) = (
        size_of::<libc::sockaddr_un>() as c_long,
        asked.len() as c_long,
    );
    // SAFETY: the addresses are of these, and as long as is said.
    let got = unsafe {
        let to = (&raw const address) as c_long;
        let (kind, name) = (libc::SOL_SOCKET.into(), libc::SO_RCVTIMEO.into());
        let time = (&raw const limit) as c_long;
        let long = size_of::<libc::timeval>() as c_long;
        kernel(libc::SYS_setsockopt, [file, kind, name, time, long, 0]);
        match call(libc::SYS_connect, [file, to, length, 0]) {
            0 if call(libc::SYS_write, [file, asked.as_ptr() as c_long, four, 0]) == four => {
                call(
                    libc::SYS_read,
                    [file, answer.as_mut_ptr() as c_long, four, 0],
                ) == four
            }
            _ => false,
        }
    };
    // SAFETY: it was opened above, and nobody else knows it.
    unsafe { call(libc::SYS_close, [file, 0, 0, 0]) };
    let descriptor = c_int::from_ne_bytes(answer);
    (got && descriptor >= 0).then_some(descriptor)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_process_is_known_by_its_directory() {
        assert_eq!(process_of(b"/proc/417"), Some(417));
        for other in [
            &b"/proc/self"[..],
            b"/proc/417/task",
            b"/tmp/proc/417",
            b"/proc/",
        ] {
            assert_ne!(process_of(other), Some(417));
        }
    }

    #[test]
    fn the_agent_is_asked_for_a_descriptor() {
        let dir = std::env::temp_dir().join(format!("phos-mappings-{}", std::process::id()));
        let listener = UnixListener::bind(&dir).unwrap();
        let agent = std::thread::spawn(move || {
            for answer in [7, -1] {
                let (mut client, _) = listener.accept().unwrap();
                let mut asked = [0; 4];
                client.read_exact(&mut asked).unwrap();
                assert_eq!(c_int::from_ne_bytes(asked), 417);
                client.write_all(&c_int::to_ne_bytes(answer)).unwrap();
            }
            // One that ends without an answer.
            drop(listener.accept().unwrap());
        });
        let path = dir.as_os_str().as_bytes();
        assert_eq!(ask(path, 417), Some(7));
        assert_eq!(ask(path, 417), None);
        assert_eq!(ask(path, 417), None);
        agent.join().unwrap();
        std::fs::remove_file(&dir).unwrap();
        assert_eq!(ask(path, 417), None);
        assert_eq!(ask(&[b'x'; 200], 417), None);
    }

    #[test]
    fn other_paths_and_other_directories_are_the_kernels() {
        let own = std::fs::File::open("/proc/self").unwrap();
        let root = std::fs::File::open("/").unwrap();
        // SAFETY: names that end with a zero.
        unsafe {
            assert_eq!(open(own.as_raw_fd(), c"smaps".as_ptr()), None);
            assert_eq!(open(own.as_raw_fd(), c"smaps_rollup".as_ptr()), None);
            assert_eq!(open(root.as_raw_fd(), c"smaps".as_ptr()), None);
            assert_eq!(open(-1, core::ptr::null()), None);
        }
    }
}
