//! What the kernel says of the processes' mappings, read for CRIU by all cores.
//!
//! CRIU reads `/proc/PID/smaps` of one process after another, with one thread. The kernel walks through all pages of the process for it: 9 to 15 ms for
//! each of the 18 processes of a job with torch.compile, of 426 ms in which CRIU describes them. `shim/criu-preload` asks here first, by a
//! socket in the image's directory; when it asks for the first process, all of them are read at once.
//!
//! # Rules
//!
//! * A text is read while its process stands still for CRIU, and before CRIU has touched it: CRIU asks for it before it puts its code in. It is given
//!   out once. For a process that does not stand still there is none.
//! * CRIU reads for itself what it is not given.
//! * The socket is gone before the image is complete.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::{Order, copy};
use crate::criu::MAPPINGS_SOCKET;
use crate::proc;

/// How long a question may take to come, once CRIU has connected.
const QUESTION: Duration = Duration::from_secs(2);

/// The thread that answers CRIU. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct Mappings<'scope> {
    thread: Option<ScopedJoinHandle<'scope, ()>>,
    /// Closed, it tells the thread that there will be nothing more for it.
    end: Option<OwnedFd>,
    socket: PathBuf,
    given: Arc<AtomicUsize>,
}

impl<'scope> Mappings<'scope> {
    /// Begins to listen. CRIU has not been started.
    ///
    /// # Errors
    /// There can be no socket, or no thread.
    pub(super) fn listen<'env>(
        scope: &'scope Scope<'scope, 'env>,
        order: &'env Order<'env>,
    ) -> io::Result<Self> {
        let (ended, end) = pipe_with(PipeFlags::CLOEXEC)?;
        let socket = order.images.join(MAPPINGS_SOCKET);
        let listener = UnixListener::bind(&socket)?;
        let given = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&given);
        let thread = Builder::new()
            .name("phos-mappings".into())
            .spawn_scoped(scope, move || {
                let mut texts = Texts::default();
                while let Some(client) = next(&listener, &ended) {
                    match texts.answer(client, order.processes) {
                        Ok(given) => {
                            count.fetch_add(given, Ordering::Relaxed);
                        }
                        Err(e) => tracing::debug!(cause = %e, "CRIU asks the kernel itself"),
                    }
                }
            });
        let thread = match thread {
            Ok(thread) => thread,
            Err(e) => {
                remove(&socket);
                return Err(e);
            }
        };
        Ok(Self {
            thread: Some(thread),
            end: Some(end),
            socket,
            given,
        })
    }

    /// Ends it: how many texts CRIU was given.
    pub(super) fn finish(self) -> usize {
        let given = Arc::clone(&self.given);
        drop(self);
        given.load(Ordering::Relaxed)
    }
}

impl Drop for Mappings<'_> {
    fn drop(&mut self) {
        remove(&self.socket);
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // It answers at once, or not at all.
            let _ = thread.join();
        }
    }
}

fn remove(socket: &Path) {
    if let Err(e) = std::fs::remove_file(socket) {
        tracing::warn!(cause = %e, path = %socket.display(), "the socket for CRIU cannot be removed from the image");
    }
}

/// The next one that asks; `None` when `ended` was, on its other side, or nobody can ask.
fn next(listener: &UnixListener, ended: &OwnedFd) -> Option<UnixStream> {
    use io::ErrorKind::{ConnectionAborted, Interrupted};
    loop {
        let mut fds = [
            PollFd::new(listener, PollFlags::IN),
            PollFd::from_borrowed_fd(ended.as_fd(), PollFlags::IN),
        ];
        match poll(&mut fds, None) {
            Err(Errno::INTR) => continue,
            Err(_) => return None,
            Ok(_) => {}
        }
        if fds.last().is_some_and(|fd| !fd.revents().is_empty()) {
            return None;
        }
        match listener.accept() {
            Ok((client, _)) => return Some(client),
            Err(e) if matches!(e.kind(), Interrupted | ConnectionAborted) => {}
            // Whoever waits is let go with the listener, and reads for itself.
            Err(e) => {
                tracing::debug!(cause = %e, "CRIU asks the kernel itself");
                return None;
            }
        }
    }
}

/// The texts of the processes, once the first was asked for.
#[derive(Debug, Default)]
struct Texts {
    /// Those that were not given out yet. `None`: nobody has asked.
    of: Option<BTreeMap<u32, Vec<u8>>>,
    /// The last one that was. Who got its number has opened it when it asks for the next.
    given: Option<File>,
}

impl Texts {
    /// Answers one question: how many texts were given.
    fn answer(&mut self, mut client: UnixStream, processes: &[u32]) -> io::Result<usize> {
        let asks = rustix::net::sockopt::socket_peercred(&client)?.pid;
        client.set_read_timeout(Some(QUESTION))?;
        let mut asked = [0; 4];
        client.read_exact(&mut asked)?;
        let tracer = asks.as_raw_nonzero().get().cast_unsigned();
        let text = self.text(u32::from_ne_bytes(asked), tracer, processes)?;
        let number = text.map_or(-1, AsRawFd::as_raw_fd);
        client.write_all(&number.to_ne_bytes())?;
        Ok(usize::from(number >= 0))
    }

    /// The text of one of these processes, if this tracer has stopped it.
    fn text(&mut self, pid: u32, tracer: u32, processes: &[u32]) -> io::Result<Option<&File>> {
        if !processes.contains(&pid) {
            return Ok(None);
        }
        let of = self.of.get_or_insert_with(|| {
            let one = |&pid: &u32| Ok(read(pid, tracer).map(|text| (pid, text)).ok());
            let all = copy::each(processes, 1, one);
            all.into_iter().flatten().flatten().collect()
        });
        let Some(text) = of.remove(&pid) else {
            return Ok(None);
        };
        let flags = rustix::fs::MemfdFlags::CLOEXEC;
        let mut file = File::from(rustix::fs::memfd_create("phos-mappings", flags)?);
        file.write_all(&text)?;
        Ok(Some(&*self.given.insert(file)))
    }
}

/// Reads the text of a process that this tracer has stopped.
fn read(pid: u32, tracer: u32) -> io::Result<Vec<u8>> {
    let status = proc::text(pid, "status")?;
    let field = |name| proc::field(&status, name).unwrap_or_default();
    // As CRIU stops it, also where it was stopped before.
    if !field("State").starts_with('t') || field("TracerPid").parse() != Ok(tracer) {
        return Err(io::Error::other("it runs"));
    }
    std::fs::read(format!("/proc/{pid}/smaps"))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn ask(socket: &Path, pid: u32) -> i32 {
        let mut client = UnixStream::connect(socket).unwrap();
        client.write_all(&pid.to_ne_bytes()).unwrap();
        let mut answer = [0; 4];
        client.read_exact(&mut answer).unwrap();
        i32::from_ne_bytes(answer)
    }

    #[test]
    fn there_is_none_of_a_process_that_runs_or_is_not_the_jobs() {
        let images = tempfile::tempdir().unwrap();
        let not = AtomicBool::new(false);
        let processes = [std::process::id()];
        let order = Order {
            images: images.path(),
            processes: &processes,
            patience: Duration::from_secs(60),
            cancelled: &not,
        };
        std::thread::scope(|scope| {
            let mappings = Mappings::listen(scope, &order).unwrap();
            let socket = images.path().join(MAPPINGS_SOCKET);
            assert_eq!(ask(&socket, 1), -1);
            assert_eq!(ask(&socket, processes[0]), -1);
            // One that goes without a word is forgotten.
            drop(UnixStream::connect(&socket).unwrap());
            assert_eq!(ask(&socket, processes[0]), -1);
            assert_eq!(mappings.finish(), 0);
            assert!(!socket.exists());
        });
    }

    #[test]
    fn a_text_is_given_once() {
        let mut texts = Texts {
            of: Some(BTreeMap::from([(7, b"text".to_vec())])),
            given: None,
        };
        let mut content = String::new();
        let mut text = texts.text(7, 1, &[7, 8]).unwrap().unwrap();
        std::io::Seek::rewind(&mut text).unwrap();
        text.read_to_string(&mut content).unwrap();
        assert_eq!(content, "text");
        assert!(texts.text(7, 1, &[7, 8]).unwrap().is_none());
        assert!(texts.text(8, 1, &[7, 8]).unwrap().is_none());
    }
}
