//! The connection to the agent as the rest of the shim sees it: send, ask, and know whether it is there. Only the
//! control thread connects, receives and closes.

use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use phos_protocol::channel::{self, BATCH, SendError};
use phos_protocol::shim::ToAgent;
use phos_protocol::types::{Allocation, AllocationId, AllocationKey};

use crate::log;
use crate::sync::{lock, wait};

/// How long an application thread waits for memory to be given back.
const MEMORY_WAIT: Duration = Duration::from_secs(3);
/// How long it waits for an answer about shared memory.
const ANSWER_WAIT: Duration = Duration::from_secs(10);
/// How long to wait for room in a socket that is full.
const SEND_WAIT: Duration = Duration::from_secs(5);

/// Why a question to the agent was not answered.
#[derive(Debug)]
pub enum AskError {
    /// No agent is connected.
    NotConnected,
    /// The connection went while the answer was awaited.
    Lost,
    /// The agent refused, with this reason.
    Refused(String),
}

struct State {
    /// Counts connections; an answer belongs to one.
    generation: u64,
    socket: Option<Arc<OwnedFd>>,
    /// How often the agent said that memory was given back.
    released: u64,
    shared: Option<Result<OwnedFd, String>>,
    identified: Option<(Option<Allocation>, Option<OwnedFd>)>,
    freed: VecDeque<AllocationId>,
    /// Allocations of others that are no longer imported.
    let_go: VecDeque<AllocationKey>,
}

static STATE: Mutex<State> = Mutex::new(State {
    generation: 0,
    socket: None,
    released: 0,
    shared: None,
    identified: None,
    freed: VecDeque::new(),
    let_go: VecDeque::new(),
});
static CHANGED: Condvar = Condvar::new();

/// The socket's number for the fork handler; -1: none.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
static LOST_FREED: AtomicU64 = AtomicU64::new(0);

/// While it is held the process is not dumped: the connection is closed before, which waits for this. A thread that has a
/// descriptor of device memory outside the gate holds a line for as long, and does not wait at the gate with it.
#[must_use]
#[derive(Debug)]
pub struct Line {
    _socket: Option<Arc<OwnedFd>>,
}

/// An allocation of another process.
#[derive(Debug)]
pub struct Fetched {
    pub allocation: Allocation,
    /// Goes before the line does.
    pub fd: OwnedFd,
    _line: Line,
}

/// One question about shared memory at a time: answers carry no number.
static TURN: Mutex<()> = Mutex::new(());

/// In a forked child: the socket is the parent's.
pub fn close_in_child() {
    let fd = SOCKET.swap(-1, Ordering::AcqRel);
    if fd >= 0 {
        // SAFETY: the descriptor number of this process's copy of the socket. Its owner in this copied memory is never
        // used or dropped: the child is inert.
        unsafe { libc::close(fd) };
    }
}

/// The socket that is about to connect, for the fork handler (control thread).
pub fn opened(socket: &OwnedFd) {
    SOCKET.store(socket.as_raw_fd(), Ordering::Release);
}

/// A connection is there (control thread).
pub fn connected(socket: Arc<OwnedFd>) {
    let mut state = lock(&STATE);
    state.generation += 1;
    state.socket = Some(socket);
    state.shared = None;
    state.identified = None;
    // A new table says what is left.
    state.freed.clear();
    state.let_go.clear();
    drop(state);
    CHANGED.notify_all();
}

/// The connection is gone (control thread). A thread that waits for an answer continues.
pub fn disconnected() {
    SOCKET.store(-1, Ordering::Release);
    let mut state = lock(&STATE);
    state.generation += 1;
    state.socket = None;
    // An answer that nobody took is a descriptor.
    state.shared = None;
    state.identified = None;
    drop(state);
    CHANGED.notify_all();
}

/// The connection that there is, if any, for as long as the proof is kept.
pub fn hold() -> Line {
    Line { _socket: socket() }
}

fn socket() -> Option<Arc<OwnedFd>> {
    lock(&STATE).socket.clone()
}

/// Waits a moment for the agent to be there; whether it is.
pub fn wait_connected() -> bool {
    wait_until(|state| state.socket.is_some())
}

/// Waits at most two seconds; whether it is so then.
fn wait_until(is_so: impl Fn(&State) -> bool) -> bool {
    let start = Instant::now();
    let mut state = lock(&STATE);
    while !is_so(&state) && start.elapsed() < Duration::from_secs(2) {
        state = wait(&CHANGED, state, Duration::from_millis(100));
    }
    is_so(&state)
}

/// Sends if there is room. False: there is none.
pub fn try_send_on(socket: &OwnedFd, message: &ToAgent) -> Result<bool, SendError> {
    match channel::send(socket, message, &[]) {
        Ok(()) => Ok(true),
        Err(SendError::Io(error)) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

/// Sends, waiting while the socket is full.
pub fn send_on(
    socket: &OwnedFd,
    message: &ToAgent,
    fds: &[BorrowedFd<'_>],
) -> Result<(), SendError> {
    let start = Instant::now();
    loop {
        match channel::send(socket, message, fds) {
            // The kernel counts the fds under way per user, against this process's limit of open files.
            Err(SendError::Io(error))
                if error.raw_os_error() == Some(libc::ETOOMANYREFS)
                    && start.elapsed() < SEND_WAIT =>
            {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(SendError::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock
                    && start.elapsed() < SEND_WAIT =>
            {
                let mut poll = [rustix::event::PollFd::new(
                    socket,
                    rustix::event::PollFlags::OUT,
                )];
                let limit = rustix::event::Timespec {
                    tv_sec: 0,
                    tv_nsec: 50_000_000,
                };
                // Interrupted or not: tried again.
                let _ = rustix::event::poll(&mut poll, Some(&limit));
            }
            other => return other,
        }
    }
}

/// Sends the last packet of this process, if it is connected and there is room. Atomics and system calls only.
pub fn say_last(packet: &[u8]) {
    let socket = SOCKET.load(Ordering::Acquire);
    if socket >= 0 {
        let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
        // The number may have become another one's just now.
        let (mut kind, mut length) = (0_i32, 4);
        // SAFETY: room for an integer.
        let known = unsafe {
            let kind = (&raw mut kind).cast();
            libc::getsockopt(
                socket,
                libc::SOL_SOCKET,
                libc::SO_TYPE,
                kind,
                &raw mut length,
            )
        };
        if known == 0 && kind == libc::SOCK_SEQPACKET {
            // SAFETY: bytes of that length.
            unsafe { libc::send(socket, packet.as_ptr().cast(), packet.len(), flags) };
        }
    }
}

/// Tells the agent that checkpoints are ruled out, or no longer.
pub fn announce(reason: Option<String>) {
    if let Some(socket) = socket() {
        let message = match reason {
            Some(reason) => ToAgent::Unsupported { reason },
            None => ToAgent::Supported,
        };
        if let Err(error) = send_on(&socket, &message, &[]) {
            log::debug!("cannot tell the agent: {error}");
        }
    }
}

/// Tells the agent that a tool has taken the driver's private tables.
pub fn tell_instrumented() {
    tell(&ToAgent::Instrumented);
}

/// The process has a communicator. Where no agent is connected, the next one is told.
pub fn tell_communicates() {
    tell(&ToAgent::Communicates);
}

/// Tells what the program said of itself. Whether there is an agent that heard it.
pub fn tell_hints(message: &ToAgent) -> bool {
    tell(message)
}

/// Whether an agent is connected.
pub fn is_connected() -> bool {
    lock(&STATE).socket.is_some()
}

fn tell(message: &ToAgent) -> bool {
    let Some(socket) = socket() else {
        return false;
    };
    let sent = send_on(&socket, message, &[]);
    if let Err(error) = &sent {
        log::debug!("cannot tell the agent: {error}");
    }
    sent.is_ok()
}

/// An allocation whose fd the agent holds was freed.
pub fn freed(id: AllocationId) {
    lock(&STATE).freed.push_back(id);
    flush_freed();
}

/// Notes that memory of another process is no longer imported.
pub fn let_go(key: AllocationKey) {
    lock(&STATE).let_go.push_back(key);
    flush_freed();
}

/// Sends what was let go and not sent.
fn flush_let_go() {
    loop {
        let (socket, keys) = {
            let mut state = lock(&STATE);
            let Some(socket) = state.socket.clone() else {
                return;
            };
            let count = state.let_go.len().min(BATCH);
            (socket, state.let_go.drain(..count).collect::<Vec<_>>())
        };
        if keys.is_empty() {
            return;
        }
        if let Err(error) = channel::send(&*socket, &ToAgent::LetGo { keys: keys.clone() }, &[]) {
            log::debug!("cannot tell the agent what was let go: {error}");
            lock(&STATE).let_go.extend(keys);
            return;
        }
    }
}

/// Sends what was freed and not sent.
pub fn flush_freed() {
    flush_let_go();
    loop {
        let (socket, ids) = {
            let mut state = lock(&STATE);
            let Some(socket) = state.socket.clone() else {
                return;
            };
            let count = state.freed.len().min(BATCH);
            (socket, state.freed.drain(..count).collect::<Vec<_>>())
        };
        if ids.is_empty() {
            return;
        }
        if let Err(error) = channel::send(&*socket, &ToAgent::Freed { ids: ids.clone() }, &[]) {
            // A full socket: with the next one. A broken one: the table after the next connection says it.
            LOST_FREED.fetch_add(1, Ordering::Relaxed);
            log::debug!("cannot tell the agent what was freed: {error}");
            lock(&STATE).freed.extend(ids);
            return;
        }
    }
}

/// The job has no memory left: has phos-ft give back what it can. Whether it is worth trying again.
pub fn out_of_memory(device: i32, bytes: u64) -> bool {
    flush_freed();
    let (socket, generation, before) = {
        let state = lock(&STATE);
        let Some(socket) = state.socket.clone() else {
            return false;
        };
        (socket, state.generation, state.released)
    };
    if send_on(&socket, &ToAgent::OutOfMemory { device, bytes }, &[]).is_err() {
        return false;
    }
    drop(socket);
    let start = Instant::now();
    let mut state = lock(&STATE);
    while state.released == before && state.generation == generation {
        let Some(left) = MEMORY_WAIT.checked_sub(start.elapsed()) else {
            log::error!("the agent did not answer within {MEMORY_WAIT:?} when memory ran out");
            return true;
        };
        state = wait(&CHANGED, state, left);
    }
    true
}

fn question<T>(
    message: &ToAgent,
    fds: &[BorrowedFd<'_>],
    mut answer: impl FnMut(&mut State) -> Option<T>,
) -> Result<(T, Line), AskError> {
    let _turn = lock(&TURN);
    let (socket, generation) = {
        let mut state = lock(&STATE);
        state.shared = None;
        state.identified = None;
        let Some(socket) = state.socket.clone() else {
            return Err(AskError::NotConnected);
        };
        (socket, state.generation)
    };
    if send_on(&socket, message, fds).is_err() {
        // Until the control thread has noticed, the next question would go the same way, and the tries be used up at once.
        wait_until(|state| state.generation != generation);
        return Err(AskError::Lost);
    }
    let start = Instant::now();
    let mut state = lock(&STATE);
    loop {
        if let Some(answer) = answer(&mut state) {
            drop(state);
            return Ok((
                answer,
                Line {
                    _socket: Some(socket),
                },
            ));
        }
        if state.generation != generation {
            return Err(AskError::Lost);
        }
        let Some(left) = ANSWER_WAIT.checked_sub(start.elapsed()) else {
            drop(state);
            // A late answer must not be taken for the next one: the connection starts anew.
            let _ = rustix::net::shutdown(&*socket, rustix::net::Shutdown::Both);
            return Err(AskError::Refused(format!(
                "no answer within {ANSWER_WAIT:?}"
            )));
        };
        state = wait(&CHANGED, state, left);
    }
}

/// Gives memory to the vault and gets its fd for the application. A caller that has a descriptor holds a [`Line`] for it.
pub fn share(allocation: Allocation, fd: Option<BorrowedFd<'_>>) -> Result<OwnedFd, AskError> {
    let message = ToAgent::Share {
        allocation,
        with_fd: fd.is_some(),
    };
    let fds: Vec<BorrowedFd<'_>> = fd.into_iter().collect();
    let (shared, _) = question(&message, &fds, |state| state.shared.take())?;
    shared.map_err(AskError::Refused)
}

/// Asks whose memory a descriptor is.
pub fn identify(fd: BorrowedFd<'_>) -> Result<Option<Allocation>, AskError> {
    let ((allocation, _), _) = question(&ToAgent::Identify, &[fd.as_fd()], |state| {
        state.identified.take()
    })?;
    Ok(allocation)
}

/// Gets memory of another process; none if it is not there.
pub fn fetch(key: AllocationKey, instance: u64) -> Result<Option<Fetched>, AskError> {
    let ((allocation, fd), line) = question(&ToAgent::Fetch { key, instance }, &[], |state| {
        state.identified.take()
    })?;
    Ok(allocation.zip(fd).map(|(allocation, fd)| Fetched {
        allocation,
        fd,
        _line: line,
    }))
}

/// An answer came (control thread).
pub fn memory_released() {
    lock(&STATE).released += 1;
    CHANGED.notify_all();
}

/// An answer came (control thread).
pub fn shared(answer: Result<OwnedFd, String>) {
    lock(&STATE).shared = Some(answer);
    CHANGED.notify_all();
}

/// An answer came (control thread).
pub fn identified(answer: Option<Allocation>, fd: Option<OwnedFd>) {
    lock(&STATE).identified = Some((answer, fd));
    CHANGED.notify_all();
}
