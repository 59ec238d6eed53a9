//! The conversation with one `criu swrk` process: a request, notifications, an answer.
//!
//! ```text
//! agent                                   criu swrk
//!  │ DUMP | RESTORE | VERSION ──────────▶│
//!  │◀──────────── NOTIFY(post-dump, …)   │ waits for the answer: the tree is frozen meanwhile
//!  │ NOTIFY ok ─────────────────────────▶│
//!  │◀──────────── DUMP | RESTORE answer  │ and exits
//! ```
//!
//! # Rules
//!
//! * A CRIU that dumps has code of its own running inside the job: it is killed only when it hangs, far beyond the time
//!   its work takes. Its own `timeout` option bounds the freezing.
//! * The child is reaped by the main loop like any other; here only the socket counts.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use prost::Message;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};

use super::CriuError;
use crate::job::signals;

/// The types of CRIU's RPC that are used here. Generated from `proto/criu.proto`.
#[allow(missing_docs, clippy::all, rust_2018_idioms)]
pub mod proto {
    include!(concat!(env!("OUT_DIR"), "/criu.rs"));
}

/// The number of its socket inside the criu process.
const SOCKET: RawFd = 60;
/// Inherited files start here inside the criu process.
const FIRST_INHERITED: RawFd = 61;
/// Above every number used here.
const PARKED: RawFd = 200;
/// The most fds that are placed.
const PLACES: usize = 8;

/// A running `criu swrk`.
#[derive(Debug)]
pub struct Worker {
    socket: OwnedFd,
    pid: u32,
}

fn system(what: &'static str) -> impl Fn(io::Error) -> CriuError {
    move |cause| CriuError::System { what, cause }
}

/// An fd for a restore: `key` as CRIU names the object, and the fd in this process.
#[derive(Debug)]
pub struct Inherited {
    /// CRIU's name for the object, as in `pipe:[123]`.
    pub key: String,
    /// The fd that the job gets in its place.
    pub fd: OwnedFd,
}

impl Worker {
    /// Starts CRIU with `inherited` open at the numbers that [`inherit_options`] names, and `preload` loaded into it. What it writes
    /// as its errors goes to `words`.
    ///
    /// # Errors
    /// [`CriuError::Start`], [`CriuError::System`].
    pub fn start(
        program: &Path,
        inherited: &[Inherited],
        preload: Option<&super::Preload<'_>>,
        words: Option<File>,
    ) -> Result<Self, CriuError> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )
        .map_err(|e| system("make a socket pair for CRIU")(e.into()))?;
        let mut moves = vec![(theirs.as_raw_fd(), SOCKET)];
        for (i, file) in (0..).zip(inherited) {
            moves.push((file.fd.as_raw_fd(), FIRST_INHERITED + i));
        }
        let mut command = super::command(program);
        command
            .arg("swrk")
            .arg(SOCKET.to_string())
            .env_remove("CRTOOLS_SCRIPT_ACTION")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(words.map_or_else(Stdio::null, Stdio::from));
        if let Some(preload) = preload {
            preload.load_into(&mut command);
        }
        // SAFETY: between fork and exec only dup2, fcntl, close and sigprocmask are called, which are
        // async-signal-safe; `moves` was allocated before and is only read.
        unsafe {
            command.pre_exec(move || {
                signals::unblock_all()?;
                place(&moves)
            });
        }
        let mut helpers = signals::children();
        let child = command.spawn().map_err(|cause| CriuError::Start {
            program: program.to_owned(),
            cause,
        })?;
        let pid = child.id();
        helpers.insert(pid);
        drop(helpers);
        Ok(Self { socket: ours, pid })
    }

    /// Bounds the wait for the next message. `None`: no bound.
    ///
    /// # Errors
    /// [`CriuError::System`].
    pub fn set_patience(&self, limit: Option<Duration>) -> Result<(), CriuError> {
        rustix::net::sockopt::set_socket_timeout(
            &self.socket,
            rustix::net::sockopt::Timeout::Recv,
            limit,
        )
        .map_err(|e| system("bound the wait for CRIU")(e.into()))
    }

    /// Ends a CRIU that hangs: one that has touched nothing yet, or whose work is thrown away.
    fn kill(&self) {
        let pid = i32::try_from(self.pid)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }

    /// Sends a request and answers notifications through `on_notify` until the final answer.
    /// A notification answered with `false` makes CRIU undo what it did and fail.
    ///
    /// # Errors
    /// [`CriuError::Died`], [`CriuError::Garbled`], [`CriuError::System`].
    pub fn call(
        &self,
        request: &proto::Request,
        mut on_notify: impl FnMut(&str) -> bool,
    ) -> Result<proto::Response, CriuError> {
        self.send(request)?;
        loop {
            let response = self.receive()?;
            if response.r#type() != proto::RequestType::Notify {
                return Ok(response);
            }
            let script = response
                .notify
                .as_ref()
                .map_or_else(String::new, |n| n.script().to_owned());
            let good = on_notify(&script);
            self.send(&proto::Request {
                r#type: proto::RequestType::Notify.into(),
                notify_success: Some(good),
                ..Default::default()
            })?;
        }
    }

    fn send(&self, request: &proto::Request) -> Result<(), CriuError> {
        let bytes = request.encode_to_vec();
        loop {
            match rustix::net::send(&self.socket, &bytes, SendFlags::NOSIGNAL) {
                Ok(_) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => {
                    return Err(CriuError::Died);
                }
                Err(e) => return Err(system("send to CRIU")(e.into())),
            }
        }
    }

    fn receive(&self) -> Result<proto::Response, CriuError> {
        let mut buffer = vec![0_u8; 64 << 10];
        let n = loop {
            match rustix::net::recv(&self.socket, &mut buffer[..], RecvFlags::empty()) {
                Ok((n, _)) => break n,
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::CONNRESET) => return Err(CriuError::Died),
                Err(rustix::io::Errno::AGAIN) => {
                    self.kill();
                    return Err(CriuError::Died);
                }
                Err(e) => return Err(system("receive from CRIU")(e.into())),
            }
        };
        if n == 0 {
            return Err(CriuError::Died);
        }
        proto::Response::decode(&buffer[..n]).map_err(|e| CriuError::Garbled(e.to_string()))
    }
}

/// How a restore's options name the inherited fds.
pub fn inherit_options(inherited: &[Inherited]) -> Vec<proto::InheritFd> {
    (FIRST_INHERITED..)
        .zip(inherited)
        .map(|(fd, file)| proto::InheritFd {
            key: file.key.clone(),
            fd,
        })
        .collect()
}

/// Gives fds their numbers, first parking all of them above every target: a source may have the number of
/// another's target.
fn place(moves: &[(RawFd, RawFd)]) -> io::Result<()> {
    let mut parked = [-1; PLACES];
    for (slot, &(from, _)) in parked.iter_mut().zip(moves) {
        // SAFETY: fcntl on numbers; an invalid one is reported.
        *slot = unsafe { libc::fcntl(from, libc::F_DUPFD, PARKED) };
        if *slot < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    for (&slot, &(_, to)) in parked.iter().zip(moves) {
        // SAFETY: as above.
        if unsafe { libc::dup2(slot, to) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the parked number is ours.
        unsafe { libc::close(slot) };
    }
    Ok(())
}
