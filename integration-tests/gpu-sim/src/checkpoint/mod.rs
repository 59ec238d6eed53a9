//! `cuCheckpointProcess*`: lock, checkpoint, restore, unlock another process (or this one) by pid.
//!
//! The caller ([`client`]) leaves a command as a file in the node's `proc` directory; a thread of the target
//! ([`server`]) finds it, does it, and leaves the answer. Files are named by PID namespace and pid, read at the moment
//! of use, so that a process that CRIU put into another namespace is found there. The waiting thread polls by `stat`
//! and keeps nothing open: neither sockets nor descriptors stand in CRIU's way.
//!
//! States as on the real driver: running, locked, checkpointed, and failed for good. A call in the wrong state is
//! `CUDA_ERROR_ILLEGAL_STATE`.

pub mod client;
pub mod server;

use crate::api::{In, Out, api};
use crate::config;
use crate::device::Uuid;
use crate::error::{ERROR_INVALID_VALUE, ERROR_NOT_SUPPORTED, Res};
use client::Command;
use std::time::Duration;

/// `CUcheckpointGpuPair`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct GpuPair {
    pub old: Uuid,
    pub new: Uuid,
}

/// `CUcheckpointRestoreArgs`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct RestoreArgs {
    pairs: In<GpuPair>,
    count: u32,
    reserved: [u8; 44],
    reserved1: u64,
}

/// The argument of the other calls: for a lock, a timeout in milliseconds in the low half of the first word.
pub type Args = [u64; 8];

const _: () = assert!(size_of::<RestoreArgs>() == 64 && size_of::<Args>() == 64);

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    State,
    Thread,
    Lock,
    Checkpoint,
    Restore,
    Unlock,
}

impl Operation {
    pub const ALL: [(Self, &'static str); 6] = [
        (Self::State, "state"),
        (Self::Thread, "thread"),
        (Self::Lock, "lock"),
        (Self::Checkpoint, "checkpoint"),
        (Self::Restore, "restore"),
        (Self::Unlock, "unlock"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(operation, _)| *operation == self)
            .map_or("", |(_, name)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == name)
            .map(|(operation, _)| *operation)
    }
}

/// Arguments that are reserved must be zero.
fn reserved(args: In<Args>, from: usize) -> Res {
    if !args.is_null() && args.get()?[from..].iter().any(|word| *word != 0) {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(())
}

fn supported() -> Res {
    if config::no_checkpoint() {
        Err(ERROR_NOT_SUPPORTED)
    } else {
        Ok(())
    }
}

fn lock_timeout(args: In<Args>) -> Res<Option<Duration>> {
    if args.is_null() {
        return Ok(None);
    }
    let first = args.get()?[0];
    if first >> 32 != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok((first != 0).then(|| Duration::from_millis(first)))
}

fn restore_pairs(args: In<RestoreArgs>) -> Res<Vec<GpuPair>> {
    if args.is_null() {
        return Ok(Vec::new());
    }
    let args = args.get()?;
    if args.reserved.iter().any(|byte| *byte != 0) || args.reserved1 != 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    args.pairs.all(args.count as usize)
}

// These calls pass no gate: a locked process may still be asked to unlock itself.
api! { TABLE;
    12080 fn cuCheckpointProcessGetRestoreThreadId(pid: i32, tid: Out<i32>) @free {
        supported()?;
        tid.check()?;
        tid.set(Command::new(Operation::Thread).send(pid)?)
    }
    12080 fn cuCheckpointProcessGetState(pid: i32, state: Out<i32>) @free {
        supported()?;
        state.check()?;
        state.set(Command::new(Operation::State).send(pid)?)
    }
    12080 fn cuCheckpointProcessLock(pid: i32, args: In<Args>) @free {
        supported()?;
        reserved(args, 1)?;
        Command::new(Operation::Lock).timeout(lock_timeout(args)?).send(pid).map(drop)
    }
    12080 fn cuCheckpointProcessCheckpoint(pid: i32, args: In<Args>) @free {
        supported()?;
        reserved(args, 0)?;
        Command::new(Operation::Checkpoint).send(pid).map(drop)
    }
    12080 fn cuCheckpointProcessRestore(pid: i32, args: In<RestoreArgs>) @free {
        supported()?;
        Command::new(Operation::Restore).pairs(restore_pairs(args)?).send(pid).map(drop)
    }
    12080 fn cuCheckpointProcessUnlock(pid: i32, args: In<Args>) @free {
        supported()?;
        reserved(args, 0)?;
        Command::new(Operation::Unlock).send(pid).map(drop)
    }
}
