//! A process of a job that speaks to the agent as no shim does, for the tests of what the agent bears.
//!
//! `flood FILE`: says things without end, and makes FILE once it does. `claim FILE`: takes part in checkpoints as a shim does, and says
//! that it imports memory of its parent; what it is given of it is written to FILE. `leave FILE`: waits until its parent has ended,
//! and writes to FILE whether the agent speaks to it.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use phos_protocol::channel::{self, RecvError, SendError};
use phos_protocol::shim::{QuiesceFacts, ShimState, TableEntry, ToAgent, ToShim};
use phos_protocol::types::{Allocation, AllocationKey, AllocationKind, MemberId};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketType, connect, send, socket};

/// An allocation of the parent: the first that a shim makes.
const CLAIMED: u64 = 1;
/// So many messages of a kind, over one connection, are a flood: each of them takes the agent a millisecond or more, and fifteen others
/// send theirs meanwhile.
const ONCE_IT_FLOODS: u64 = 50;

fn socket_path() -> Result<PathBuf> {
    Ok(std::env::var_os("PHOS_SHIM_SOCKET")
        .context("PHOS_SHIM_SOCKET is not set")?
        .into())
}

/// Connects as soon as somebody listens.
fn connected(path: &Path) -> Result<OwnedFd> {
    loop {
        let ours = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None)?;
        if connect(&ours, &SocketAddrUnix::new(path)?).is_ok() {
            return Ok(ours);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn greet(socket: &OwnedFd, state: ShimState) -> Result<(), SendError> {
    let hello = ToAgent::Hello {
        pid: std::process::id(),
        instance: 1,
        state,
        devices: Vec::new(),
    };
    channel::send(socket, &hello, &[])
}

/// A message that costs whoever reads it more than whoever sends it.
fn table_of_nothing() -> Result<Vec<u8>> {
    let entry = |id| TableEntry {
        allocation: Allocation {
            key: AllocationKey {
                owner: MemberId::here(0),
                id,
            },
            device: 0,
            bytes: 0,
            kind: AllocationKind::Plain,
            rdma: false,
        },
        requested: 0,
        with_fd: false,
    };
    let table = ToAgent::Table {
        seq: 0,
        entries: (0..4000).map(entry).collect(),
        imported: Vec::new(),
    };
    Ok(channel::encode(&table, 0)?)
}

fn flood(path: &Path, file: &Path) -> Result<()> {
    let table = table_of_nothing()?;
    loop {
        let socket = connected(path)?;
        let mut said = greet(&socket, ShimState::Fresh).is_ok();
        for number in 0_u64.. {
            let reason = format!("reason {number}\nwith a line of its own");
            said = said
                && send(&socket, &table, SendFlags::NOSIGNAL).is_ok()
                && channel::send(&socket, &ToAgent::Unsupported { reason }, &[]).is_ok()
                && channel::send(&socket, &ToAgent::Supported, &[]).is_ok();
            if !said {
                break;
            }
            if number == ONCE_IT_FLOODS {
                std::fs::write(file, "")?;
            }
        }
    }
}

fn of_the_parent() -> AllocationKey {
    AllocationKey {
        owner: MemberId::here(std::os::unix::process::parent_id()),
        id: CLAIMED,
    }
}

fn claim(path: &Path, file: &Path) -> Result<()> {
    let mut state = ShimState::Fresh;
    loop {
        let socket = connected(path)?;
        if greet(&socket, state).is_err() {
            continue;
        }
        state = take_part(&socket, file)?;
    }
}

fn with_more(file: &Path, more: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(more);
    name.into()
}

/// Until the connection ends; what to connect as after that.
fn take_part(socket: &OwnedFd, file: &Path) -> Result<ShimState> {
    loop {
        let (message, fds) = match channel::recv::<ToShim>(socket) {
            Ok(received) => received,
            Err(RecvError::Closed | RecvError::Io(_)) => {
                return Ok(ShimState::Running);
            }
            Err(e) => return Err(e.into()),
        };
        let outcome = Ok(());
        let answers = match message {
            ToShim::Quiesce { seq, .. } => vec![
                ToAgent::Table {
                    seq,
                    entries: Vec::new(),
                    imported: vec![of_the_parent()],
                },
                ToAgent::Quiesced {
                    seq,
                    outcome: Ok(QuiesceFacts {
                        gate_ns: 0,
                        sync_ns: 0,
                        export_ns: 0,
                    }),
                },
            ],
            ToShim::Detach { seq } => {
                channel::send(socket, &ToAgent::Detached { seq, outcome }, &[])?;
                return Ok(ShimState::Detached(seq));
            }
            ToShim::Memory { keys, .. } => {
                std::fs::write(file, format!("given {} of {keys:?}", fds.len()))?;
                Vec::new()
            }
            ToShim::Welcome { .. } => {
                std::fs::write(with_more(file, ".welcome"), "")?;
                Vec::new()
            }
            ToShim::Attach { seq } => vec![ToAgent::Attached { seq, outcome }],
            _ => Vec::new(),
        };
        for answer in answers {
            channel::send(socket, &answer, &[])?;
        }
    }
}

fn leave(path: &Path, file: &Path) -> Result<()> {
    while std::os::unix::process::parent_id() != 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let socket = connected(path)?;
    // One that is refused may be so before it has spoken.
    let _ = greet(&socket, ShimState::Fresh);
    let word = match channel::recv::<ToShim>(&socket) {
        Ok(_) => "welcomed",
        Err(_) => "refused",
    };
    Ok(std::fs::write(file, word)?)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(what), Some(file)) = (arguments.next(), arguments.next()) else {
        bail!("usage: phos-hostile-shim flood|claim|leave FILE");
    };
    let (path, file) = (socket_path()?, PathBuf::from(file));
    match what.as_str() {
        "flood" => flood(&path, &file),
        "claim" => claim(&path, &file),
        "leave" => leave(&path, &file),
        _ => bail!("no such behaviour: {what}"),
    }
}
