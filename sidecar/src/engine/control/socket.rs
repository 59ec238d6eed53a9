//! The sidecar's own socket, `<run_dir>/<job>/sidecar.sock`: JSON lines for `phos-ft status`, `phos-ft checkpoint` and
//! `phos-ft events`.
//!
//! # Rules
//!
//! * Mode 0600, and the peer must be root or the same user.
//! * It belongs to the sidecar that holds the lock beside it: another one of the same job, started by mistake or early,
//!   leaves it alone and takes it over when the lock is free.
//! * A line is at most [`MAX_LINE`]; at most [`MAX_CLIENTS`] clients; a client that is gone costs
//!   nothing. Those who follow events are counted apart ([`MAX_FOLLOWERS`]): however many terminals somebody has forgotten, a checkpoint can
//!   be asked for. One that says or reads nothing is let go ([`PATIENCE`]).

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, poll};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::unix::WriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use crate::engine::control::messages::{Answer, Request};
use crate::lock::try_lock;
use crate::report::journal::Follower;
use crate::report::shared::Shared;
use crate::report::status::CheckpointReport;

const MAX_LINE: u64 = 4096;
const MAX_CLIENTS: usize = 16;
const MAX_FOLLOWERS: usize = 32;
/// How long a client may take to ask, or to read a part of an answer.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// File name of the socket below the job's run directory.
pub const SOCKET_FILE: &str = "sidecar.sock";

/// The channel on which a client that wants a checkpoint now is answered.
pub(in crate::engine) type Wanted = oneshot::Sender<Result<CheckpointReport, String>>;

/// Events that are read at a time.
const AT_A_TIME: usize = 64;
/// How often a client that follows events hears something, at least.
const HEARTBEAT: std::time::Duration = std::time::Duration::from_secs(10);

/// How often a lock that another sidecar holds is tried.
const TURN: std::time::Duration = std::time::Duration::from_secs(1);

/// The socket, open or waiting for its turn.
pub(in crate::engine) struct Control {
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Control {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Removes the socket when the lock is given up, before it is.
struct Bound {
    path: PathBuf,
    _lock: File,
}

impl Drop for Bound {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn bind(path: &Path, lock: File) -> io::Result<(UnixListener, Bound)> {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    let bound = Bound {
        path: path.to_owned(),
        _lock: lock,
    };
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok((listener, bound))
}

/// Binds and serves, when its turn comes.
pub(in crate::engine) fn serve(
    path: &Path,
    status: Shared,
    wanted: mpsc::Sender<Wanted>,
) -> io::Result<Control> {
    let lock_path = path.with_extension("lock");
    let mut held = match try_lock(&lock_path)? {
        Some(lock) => Some(bind(path, lock)?),
        None => None,
    };
    let path = path.to_owned();
    let clients = Arc::new(Semaphore::new(MAX_CLIENTS));
    let followers = Arc::new(Semaphore::new(MAX_FOLLOWERS));
    let task = tokio::spawn(async move {
        let (listener, _bound) = loop {
            if let Some(held) = held.take() {
                break held;
            }
            tokio::time::sleep(TURN).await;
            held = match try_lock(&lock_path).map(|lock| lock.map(|lock| bind(&path, lock))) {
                Ok(Some(Ok(held))) => Some(held),
                Ok(None) => None,
                Ok(Some(Err(e))) | Err(e) => {
                    tracing::debug!(error = %e, "the control socket cannot be bound");
                    None
                }
            };
        };
        loop {
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            };
            let Ok(permit) = Arc::clone(&clients).acquire_owned().await else {
                return;
            };
            let (status, wanted) = (status.clone(), wanted.clone());
            let places = (permit, Arc::clone(&followers));
            tokio::spawn(async move {
                if let Err(e) = client(stream, status, wanted, places).await {
                    tracing::debug!(error = %e, "control client");
                }
            });
        }
    });
    Ok(Control { task })
}

async fn client(
    mut stream: UnixStream,
    status: Shared,
    wanted: mpsc::Sender<Wanted>,
    (place, followers): (OwnedSemaphorePermit, Arc<Semaphore>),
) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let peer = stream.peer_cred()?.uid();
    if peer != 0 && peer != own {
        return Ok(());
    }
    let (read, mut write) = stream.split();
    let mut lines = BufReader::new(read.take(MAX_LINE));
    let mut line = String::new();
    let asked = tokio::time::timeout(PATIENCE, lines.read_line(&mut line)).await;
    if asked?? == 0 {
        return Ok(());
    }
    let answer = match serde_json::from_str::<Request>(&line) {
        Ok(Request::Status) => Answer::Status(Box::new(status.report())),
        Ok(Request::Checkpoint) => checkpoint(&wanted).await,
        Ok(Request::Events { after }) => match followers.try_acquire() {
            Ok(_follower) => {
                drop(place);
                return tokio::select! {
                    told = events(&mut write, status.follow(after)) => told,
                    // It says nothing more: it is gone.
                    _ = lines.read_line(&mut line) => Ok(()),
                };
            }
            Err(_) => Answer::Error(format!(
                "{MAX_FOLLOWERS} others follow the events already: end some of them"
            )),
        },
        Err(e) => Answer::Error(format!("request not understood: {e}")),
    };
    send(&mut write, &answer).await
}

async fn send(write: &mut WriteHalf<'_>, answer: &Answer) -> io::Result<()> {
    let mut text = serde_json::to_string(answer)?;
    text.push('\n');
    tokio::time::timeout(PATIENCE, write.write_all(text.as_bytes())).await?
}

/// Passes events on until the client is gone, or nothing happens any more.
async fn events(write: &mut WriteHalf<'_>, mut follower: Follower) -> io::Result<()> {
    loop {
        loop {
            let records = follower.known(AT_A_TIME);
            if records.is_empty() {
                break;
            }
            for record in records {
                send(write, &Answer::Event(Some(Box::new(record)))).await?;
            }
        }
        // Where the caught-up client waits for the next event.
        send(write, &Answer::Event(None)).await?;
        if tokio::time::timeout(HEARTBEAT, follower.more()).await == Ok(false) {
            return Ok(());
        }
    }
}

async fn checkpoint(wanted: &mpsc::Sender<Wanted>) -> Answer {
    let (sender, answer) = oneshot::channel();
    if wanted.send(sender).await.is_err() {
        return Answer::Error("the sidecar is ending".into());
    }
    match answer.await {
        Ok(Ok(report)) => Answer::Checkpoint(Box::new(report)),
        Ok(Err(reason)) => Answer::Error(reason),
        Err(_) => Answer::Error("the sidecar is ending".into()),
    }
}

/// Asks a running sidecar. Blocks until it answers; for a checkpoint that is when it is visible.
///
/// # Errors
/// No sidecar is there, or its answer does not parse.
pub fn ask(path: &Path, request: &Request) -> io::Result<Answer> {
    Answers::of(path, request)?.next_one()
}

/// What a running sidecar answers, one after another.
pub struct Answers(std::io::BufReader<std::os::unix::net::UnixStream>);

impl Answers {
    /// Asks a running sidecar.
    ///
    /// # Errors
    /// No sidecar is there.
    pub fn of(path: &Path, request: &Request) -> io::Result<Answers> {
        use std::io::Write;
        let mut stream = std::os::unix::net::UnixStream::connect(path)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let mut text = serde_json::to_string(request)?;
        text.push('\n');
        stream.write_all(text.as_bytes())?;
        Ok(Answers(std::io::BufReader::new(stream)))
    }

    /// From now on waits no longer than that for an answer.
    ///
    /// # Errors
    /// Those of the socket.
    pub fn within(self, time: std::time::Duration) -> io::Result<Answers> {
        self.0.get_ref().set_read_timeout(Some(time))?;
        Ok(self)
    }

    /// Waits for the next answer, or until nobody reads any more what is written to this pipe: then there is none.
    ///
    /// # Errors
    /// As those of [`Answers::next_one`].
    pub fn next_while_read(&mut self, pipe: BorrowedFd<'_>) -> io::Result<Option<Answer>> {
        let mut fds = [
            PollFd::new(self.0.get_ref(), PollFlags::IN),
            // Asked for or not, it is said when the other end is gone.
            PollFd::from_borrowed_fd(pipe, PollFlags::empty()),
        ];
        // What was read already is an answer that is there.
        if self.0.buffer().is_empty() {
            rustix::io::retry_on_intr(|| poll(&mut fds, None))?;
        }
        if (fds[1].revents()).intersects(PollFlags::ERR | PollFlags::HUP) {
            return Ok(None);
        }
        self.next_one().map(Some)
    }

    /// Waits for the next answer.
    ///
    /// # Errors
    /// The sidecar is gone ([`io::ErrorKind::UnexpectedEof`]), or its answer does not parse.
    pub fn next_one(&mut self) -> io::Result<Answer> {
        use std::io::BufRead;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        if line.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the sidecar ended before it answered",
            ));
        }
        Ok(serde_json::from_str(&line)?)
    }
}
