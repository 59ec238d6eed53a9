//! A look-alike of NCCL for ranks on the simulated GPU: what matters to a checkpoint is that work which one rank has enqueued keeps its
//! stream busy until every other rank that takes part has enqueued its own.
//!
//! | module | its reason to change |
//! |---|---|
//! | [`shared`] | what ranks of a communicator share, and how they take turns at it |
//! | [`peers`] | the memory and the connections by which ranks reach each other |
//! | [`work`] | what runs in a stream |
//! | [`driver`] | the driver, reached as NCCL reaches it: by `dlopen` and `dlsym` |
//!
//! A group has at most one message from a rank to another. What it does not imitate: the monitor of NCCL's ranks (RAS), which phos-ft turns off, and PyTorch's watchdog, which `phos-trainer --beside` stands for.
#![allow(non_snake_case)]

mod driver;
mod peers;
mod shared;
mod work;

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use peers::{Offer, Peers};
use shared::{MAX_BYTES, Shared};
use work::{Kind, Operation};

const SUCCESS: c_int = 0;
const SYSTEM_ERROR: c_int = 2;
const INVALID_ARGUMENT: c_int = 4;
const INVALID_USAGE: c_int = 5;
/// `ncclFloat32`: the only kind of values.
const FLOAT: c_int = 7;
/// `ncclSum`: the only operation.
const SUM: c_int = 0;

/// Buffers that a communicator has from the beginning.
const BUFFERS: usize = 16;

/// `ncclUniqueId`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UniqueId([u8; 128]);

/// A communicator: one rank of it.
#[derive(Debug)]
pub struct Communicator {
    shared: Arc<Shared>,
    peers: Peers,
    /// Buffers of operations that have ended.
    buffers: Arc<Mutex<Vec<usize>>>,
    splits: AtomicU64,
}

struct Enqueued {
    communicator: *const Communicator,
    stream: *mut c_void,
    operation: Operation,
}

thread_local! {
    static GROUP: RefCell<(u32, Vec<Enqueued>)> = const { RefCell::new((0, Vec::new())) };
}

fn enqueue(enqueued: Enqueued) -> c_int {
    let alone = GROUP.with_borrow_mut(|(depth, waiting)| {
        if *depth == 0 {
            return Some(enqueued);
        }
        waiting.push(enqueued);
        None
    });
    alone.map_or(SUCCESS, |enqueued| launch(vec![enqueued]))
}

/// Enqueues what belongs to one stream and communicator together: none of it has to wait for another part.
fn launch(mut waiting: Vec<Enqueued>) -> c_int {
    while let Some(first) = waiting.first() {
        let (communicator, stream) = (first.communicator, first.stream);
        let (now, later): (Vec<_>, Vec<_>) = waiting
            .into_iter()
            .partition(|e| e.communicator == communicator && e.stream == stream);
        waiting = later;
        // SAFETY: a handle that `make` gave out and that was not destroyed, as the caller promises.
        let of = unsafe { &*communicator };
        let operations = now.into_iter().map(|e| e.operation).collect();
        if !work::enqueue(of, stream, operations) {
            return SYSTEM_ERROR;
        }
    }
    SUCCESS
}

fn operation(
    kind: Kind,
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    communicator: *mut Communicator,
    stream: *mut c_void,
) -> c_int {
    if communicator.is_null() || count * 4 > MAX_BYTES {
        return INVALID_ARGUMENT;
    }
    let operation = Operation {
        kind,
        from: from as u64,
        to: to as u64,
        bytes: count * 4,
    };
    enqueue(Enqueued {
        communicator,
        stream,
        operation,
    })
}

fn message(
    of: impl Fn(u32) -> Kind,
    kind: c_int,
    peer: c_int,
    enqueue: impl FnOnce(Kind) -> c_int,
) -> c_int {
    match u32::try_from(peer) {
        Ok(peer) if kind == FLOAT => enqueue(of(peer)),
        _ => INVALID_ARGUMENT,
    }
}

fn join(name: &str, rank: u32, ranks: u32) -> std::io::Result<Communicator> {
    let driver = driver::get().ok_or_else(|| std::io::Error::other("there is no driver"))?;
    let (offer, port) = Offer::new(driver, name, rank, ranks)?;
    let shared = Shared::join(name, rank, ranks, port)?;
    let peers = offer.taken(driver, &shared)?;
    // As many as there may be at first: during a capture none can be made.
    let new = || driver.alloc_host(MAX_BYTES).map(|at| at as usize);
    let buffers = (0..BUFFERS).filter_map(|_| new()).collect();
    Ok(Communicator {
        shared: Arc::new(shared),
        peers,
        buffers: Arc::new(Mutex::new(buffers)),
        splits: AtomicU64::new(0),
    })
}

fn make(name: &str, rank: u32, ranks: u32, at: *mut *mut Communicator) -> c_int {
    match join(name, rank, ranks) {
        Ok(made) => {
            // SAFETY: the caller's place for the handle.
            unsafe { at.write(Box::into_raw(Box::new(made))) };
            SUCCESS
        }
        Err(error) => {
            eprintln!("nccl-sim: {name}: {error}");
            SYSTEM_ERROR
        }
    }
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommInitRank(
    communicator: *mut *mut Communicator,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
) -> c_int {
    let name: String =
        id.0.iter()
            .take_while(|b| **b != 0)
            .map(|b| char::from(*b))
            .collect();
    match (u32::try_from(rank), u32::try_from(ranks)) {
        (Ok(rank), Ok(ranks)) if rank < ranks => make(&name, rank, ranks, communicator),
        _ => INVALID_ARGUMENT,
    }
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommSplit(
    parent: *mut Communicator,
    color: c_int,
    key: c_int,
    communicator: *mut *mut Communicator,
    _config: *mut c_void,
) -> c_int {
    if parent.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: as in `launch`.
    let parent = unsafe { &*parent };
    let number = parent.splits.fetch_add(1, Ordering::SeqCst) + 1;
    let all = parent.shared.exchange(number, color, key);
    let mut members: Vec<(c_int, u32)> = (all.iter().zip(0_u32..))
        .filter(|((other, _), _)| *other == color)
        .map(|((_, key), rank)| (*key, rank))
        .collect();
    members.sort_unstable();
    let rank = members
        .iter()
        .position(|(_, rank)| *rank == parent.shared.rank);
    match rank.and_then(|rank| u32::try_from(rank).ok()) {
        Some(rank) if color >= 0 => {
            let name = format!("{}.{number}.{color}", parent.shared.name);
            make(
                &name,
                rank,
                u32::try_from(members.len()).unwrap_or(0),
                communicator,
            )
        }
        _ => {
            // SAFETY: the caller's place for the handle.
            unsafe { communicator.write(std::ptr::null_mut()) };
            SUCCESS
        }
    }
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommDestroy(communicator: *mut Communicator) -> c_int {
    if communicator.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: made by `make`, and the caller uses it no more.
    let gone = unsafe { Box::from_raw(communicator) };
    gone.shared.leave();
    SUCCESS
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclCommUserRank(
    communicator: *const Communicator,
    rank: *mut c_int,
) -> c_int {
    if communicator.is_null() || rank.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: as in `launch`; the caller's place for the rank.
    unsafe { rank.write((&*communicator).shared.rank.cast_signed()) };
    SUCCESS
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclAllReduce(
    from: *const c_void,
    to: *mut c_void,
    count: usize,
    kind: c_int,
    op: c_int,
    communicator: *mut Communicator,
    stream: *mut c_void,
) -> c_int {
    if kind != FLOAT || op != SUM {
        return INVALID_ARGUMENT;
    }
    operation(Kind::AllReduce, from, to, count, communicator, stream)
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclSend(
    from: *const c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    communicator: *mut Communicator,
    stream: *mut c_void,
) -> c_int {
    message(Kind::Send, kind, peer, |kind| {
        operation(
            kind,
            from,
            std::ptr::null_mut(),
            count,
            communicator,
            stream,
        )
    })
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclRecv(
    to: *mut c_void,
    count: usize,
    kind: c_int,
    peer: c_int,
    communicator: *mut Communicator,
    stream: *mut c_void,
) -> c_int {
    message(Kind::Receive, kind, peer, |kind| {
        operation(kind, std::ptr::null(), to, count, communicator, stream)
    })
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGroupStart() -> c_int {
    GROUP.with_borrow_mut(|(depth, _)| *depth += 1);
    SUCCESS
}

/// As NCCL's.
///
/// # Safety
/// As NCCL's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGroupEnd() -> c_int {
    let waiting = GROUP.with_borrow_mut(|(depth, waiting)| {
        *depth = depth.checked_sub(1)?;
        Some(if *depth == 0 {
            std::mem::take(waiting)
        } else {
            Vec::new()
        })
    });
    waiting.map_or(INVALID_USAGE, launch)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
