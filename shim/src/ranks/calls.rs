//! NCCL's functions, as programs call them: each does what NCCL's own does, and notes what was asked for.
//!
//! Signatures and the sizes of what is passed by value are those of nccl.h, versions 2.18 to 2.32; nothing else of it is used.
//! One-sided operations (`ncclPutSignal`, `ncclWaitSignal`), and collectives that take a
//! configuration, are not counted.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_int, c_void};

use phos_protocol::shim::Counted;

use super::communicators;
use super::library;
use super::position::{self, Call, Made};
use crate::mode;

type Comm = *mut c_void;
type Stream = *mut c_void;

/// `ncclUniqueId`: bytes, passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct UniqueId([u8; 128]);

/// `ncclInternalError`: what a call gets whose function NCCL does not have.
const INTERNAL_ERROR: c_int = 3;
/// `ncclSuccess`.
const SUCCESS: c_int = 0;
/// `ncclInProgress`: a communicator that does not block is made in the background.
const IN_PROGRESS: c_int = 7;

/// The functions that have one of ours in their place, in order.
pub const NAMES: [&CStr; 22] = [
    c"ncclAllGather",
    c"ncclAllReduce",
    c"ncclAlltoAll",
    c"ncclBcast",
    c"ncclBroadcast",
    c"ncclCommAbort",
    c"ncclCommDestroy",
    c"ncclCommInitAll",
    c"ncclCommInitRank",
    c"ncclCommInitRankConfig",
    c"ncclCommInitRankScalable",
    c"ncclCommShrink",
    c"ncclCommSplit",
    c"ncclCommUserRank",
    c"ncclGather",
    c"ncclGroupEnd",
    c"ncclGroupStart",
    c"ncclRecv",
    c"ncclReduce",
    c"ncclReduceScatter",
    c"ncclScatter",
    c"ncclSend",
];

/// Ours, in the same order.
pub static OURS: [Ours; NAMES.len()] = [
    Ours(ncclAllGather as *const c_void),
    Ours(ncclAllReduce as *const c_void),
    Ours(ncclAlltoAll as *const c_void),
    Ours(ncclBcast as *const c_void),
    Ours(ncclBroadcast as *const c_void),
    Ours(ncclCommAbort as *const c_void),
    Ours(ncclCommDestroy as *const c_void),
    Ours(ncclCommInitAll as *const c_void),
    Ours(ncclCommInitRank as *const c_void),
    Ours(ncclCommInitRankConfig as *const c_void),
    Ours(ncclCommInitRankScalable as *const c_void),
    Ours(ncclCommShrink as *const c_void),
    Ours(ncclCommSplit as *const c_void),
    Ours(ncclCommUserRank as *const c_void),
    Ours(ncclGather as *const c_void),
    Ours(ncclGroupEnd as *const c_void),
    Ours(ncclGroupStart as *const c_void),
    Ours(ncclRecv as *const c_void),
    Ours(ncclReduce as *const c_void),
    Ours(ncclReduceScatter as *const c_void),
    Ours(ncclScatter as *const c_void),
    Ours(ncclSend as *const c_void),
];

/// The address of a function of ours.
pub struct Ours(pub *const c_void);

// SAFETY: the address of a function; nothing is written through it.
unsafe impl Sync for Ours {}

/// Calls NCCL's own function of this name.
macro_rules! nccl {
    ($name:ident($($argument:expr => $kind:ty),* $(,)?)) => {{
        const NUMBER: usize = number(stringify!($name));
        const _: () = assert!(NUMBER < NAMES.len());
        match library::real(NUMBER) {
            // SAFETY: the address is that of NCCL's function of this name, whose C signature stands here, and the arguments are
            // those of the caller, who has promised what NCCL asks for.
            Some(address) => unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> c_int>(address)($($argument),*)
            },
            None => INTERNAL_ERROR,
        }
    }};
}

/// The place of a name in [`NAMES`]; behind all of them for one that is not there.
const fn number(name: &str) -> usize {
    let mut i = 0;
    while i < NAMES.len() {
        let (known, name) = (NAMES[i].to_bytes(), name.as_bytes());
        let mut same = known.len() == name.len();
        let mut at = 0;
        while same && at < name.len() {
            same = known[at] == name[at];
            at += 1;
        }
        if same {
            return i;
        }
        i += 1;
    }
    NAMES.len()
}

macro_rules! collective {
    ($name:ident($($argument:ident: $kind:ty),*)) => {
        /// See NCCL's documentation.
        ///
        /// # Safety
        /// The same as for NCCL's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind,)* comm: Comm, stream: Stream) -> c_int {
            let _issuing = position::issue(Call {
                communicator: comm as usize,
                what: Counted::Collectives,
                stream: stream as usize,
            });
            nccl!($name($($argument => $kind,)* comm => Comm, stream => Stream))
        }
    };
}
collective!(ncclReduce(from: *const c_void, to: *mut c_void, count: usize, kind: c_int, op: c_int, root: c_int));
collective!(ncclBcast(to: *mut c_void, count: usize, kind: c_int, root: c_int));
collective!(ncclBroadcast(from: *const c_void, to: *mut c_void, count: usize, kind: c_int, root: c_int));
collective!(ncclAllReduce(from: *const c_void, to: *mut c_void, count: usize, kind: c_int, op: c_int));
collective!(ncclReduceScatter(from: *const c_void, to: *mut c_void, count: usize, kind: c_int, op: c_int));
collective!(ncclAllGather(from: *const c_void, to: *mut c_void, count: usize, kind: c_int));
collective!(ncclAlltoAll(from: *const c_void, to: *mut c_void, count: usize, kind: c_int));
collective!(ncclGather(from: *const c_void, to: *mut c_void, count: usize, kind: c_int, root: c_int));
collective!(ncclScatter(from: *const c_void, to: *mut c_void, count: usize, kind: c_int, root: c_int));

macro_rules! message {
    ($name:ident, $buffer:ty, $counted:path) => {
        /// See NCCL's documentation.
        ///
        /// # Safety
        /// The same as for NCCL's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            buffer: $buffer,
            count: usize,
            kind: c_int,
            peer: c_int,
            comm: Comm,
            stream: Stream,
        ) -> c_int {
            let _issuing = position::issue(Call {
                communicator: comm as usize,
                what: $counted(peer.cast_unsigned()),
                stream: stream as usize,
            });
            nccl!($name(
                buffer => $buffer, count => usize, kind => c_int, peer => c_int, comm => Comm, stream => Stream
            ))
        }
    };
}
message!(ncclSend, *const c_void, Counted::Sent);
message!(ncclRecv, *mut c_void, Counted::Received);

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupStart() -> c_int {
    position::begin_group();
    let result = nccl!(ncclGroupStart());
    if result != SUCCESS {
        position::end_group(|| ());
    }
    result
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupEnd() -> c_int {
    position::end_group(|| nccl!(ncclGroupEnd()))
}

/// Notes a communicator whose handle NCCL writes to `comm`, if it made one.
fn made(result: c_int, comm: *mut Comm, number: Option<u64>, rank: Option<c_int>) -> c_int {
    let Some(number) = number.filter(|_| mode::is_active() && !comm.is_null()) else {
        return result;
    };
    if result == SUCCESS || result == IN_PROGRESS {
        position::made(Made {
            at: comm as usize,
            number,
            rank: rank.map(c_int::cast_unsigned),
        });
    }
    result
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommUserRank(comm: Comm, rank: *mut c_int) -> c_int {
    nccl!(ncclCommUserRank(comm => Comm, rank => *mut c_int))
}

/// The rank that a communicator is in this process, as NCCL says.
pub fn rank_of(comm: usize) -> Option<u32> {
    let mut rank: c_int = -1;
    // SAFETY: a communicator of the application's, which is ready or says that it is not; writes one integer.
    let result = unsafe { ncclCommUserRank(comm as Comm, &raw mut rank) };
    (result == SUCCESS)
        .then(|| u32::try_from(rank).ok())
        .flatten()
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitRank(
    comm: *mut Comm,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
) -> c_int {
    let result =
        nccl!(ncclCommInitRank(comm => *mut Comm, ranks => c_int, id => UniqueId, rank => c_int));
    made(
        result,
        comm,
        Some(communicators::by_identifier(&id.0)),
        Some(rank),
    )
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    comm: *mut Comm,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
    config: *mut c_void,
) -> c_int {
    let result = nccl!(ncclCommInitRankConfig(
        comm => *mut Comm, ranks => c_int, id => UniqueId, rank => c_int, config => *mut c_void
    ));
    made(
        result,
        comm,
        Some(communicators::by_identifier(&id.0)),
        Some(rank),
    )
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitRankScalable(
    comm: *mut Comm,
    ranks: c_int,
    rank: c_int,
    count: c_int,
    ids: *mut UniqueId,
    config: *mut c_void,
) -> c_int {
    let result = nccl!(ncclCommInitRankScalable(
        comm => *mut Comm, ranks => c_int, rank => c_int, count => c_int, ids => *mut UniqueId, config => *mut c_void
    ));
    let first = (count > 0 && !ids.is_null()).then(|| {
        // SAFETY: the caller has promised that there are `count`.
        communicators::by_identifier(&unsafe { (*ids).0 })
    });
    made(result, comm, first, Some(rank))
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitAll(
    comms: *mut Comm,
    count: c_int,
    devices: *const c_int,
) -> c_int {
    let result =
        nccl!(ncclCommInitAll(comms => *mut Comm, count => c_int, devices => *const c_int));
    if result == SUCCESS {
        let number = communicators::of_this_process(mode::instance());
        for rank in 0..count {
            // NCCL has written as many.
            made(
                result,
                comms.wrapping_offset(rank as isize),
                Some(number),
                Some(rank),
            );
        }
    }
    result
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommSplit(
    parent: Comm,
    color: c_int,
    key: c_int,
    comm: *mut Comm,
    config: *mut c_void,
) -> c_int {
    let number = communicators::with(|all| all.child(parent as usize, color));
    let result = nccl!(ncclCommSplit(
        parent => Comm, color => c_int, key => c_int, comm => *mut Comm, config => *mut c_void
    ));
    // Without a color the rank is in none.
    made(result, comm, number.filter(|_| color >= 0), None)
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommShrink(
    parent: Comm,
    excluded: *mut c_int,
    count: c_int,
    comm: *mut Comm,
    config: *mut c_void,
    flags: c_int,
) -> c_int {
    let number = communicators::with(|all| all.child(parent as usize, -1));
    let result = nccl!(ncclCommShrink(
        parent => Comm, excluded => *mut c_int, count => c_int, comm => *mut Comm, config => *mut c_void, flags => c_int
    ));
    made(result, comm, number, None)
}

macro_rules! end {
    ($name:ident) => {
        /// See NCCL's documentation.
        ///
        /// # Safety
        /// The same as for NCCL's function.
        #[cfg_attr(not(test), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(comm: Comm) -> c_int {
            // Before: another one may get the handle.
            communicators::with(|all| all.remove(comm as usize));
            nccl!($name(comm => Comm))
        }
    };
}
end!(ncclCommDestroy);
end!(ncclCommAbort);
