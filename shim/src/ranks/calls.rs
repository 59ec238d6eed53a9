//! NCCL's functions, as programs call them: each does what NCCL's own does, and notes what was asked for.
//!
//! Signatures and the sizes of what is passed by value are those of nccl.h, versions 2.18 to 2.32; nothing else of it is used.
//! One-sided operations (`ncclPutSignal`, `ncclWaitSignal`), and collectives that take a configuration, are not counted.
#![allow(non_snake_case)]

use std::ffi::{CStr, c_int, c_void};

use phos_protocol::shim::Counted;

use super::communicators;
use super::library::{self, Caller};
use super::position::{self, Call, Fate, Made};
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

/// The address of a function of ours.
pub struct Ours(pub *const c_void);

// SAFETY: the address of a function; nothing is written through it.
unsafe impl Sync for Ours {}

/// Where the function of ours was called from that this thread is in: written by what is exported, read by it at once.
#[cfg(all(not(test), target_arch = "x86_64"))]
mod caller {
    std::arch::global_asm!(
        ".section .tbss.phos_nccl_caller,\"awT\",@nobits",
        ".balign 8",
        ".globl phos_nccl_caller",
        ".hidden phos_nccl_caller",
        ".type phos_nccl_caller, @object",
        ".size phos_nccl_caller, 8",
        "phos_nccl_caller:",
        ".zero 8",
        ".text",
    );

    #[inline(always)]
    pub fn get() -> usize {
        let at: usize;
        // SAFETY: reads the word of this thread whose offset the loader has written.
        unsafe {
            std::arch::asm!(
                "mov {at}, qword ptr [rip + phos_nccl_caller@GOTTPOFF]",
                "mov {at}, qword ptr fs:[{at}]",
                at = out(reg) at,
                options(readonly, nostack),
            );
        }
        at
    }
}

#[cfg(not(all(not(test), target_arch = "x86_64")))]
mod caller {
    pub fn get() -> usize {
        0
    }
}

/// For each name, what is exported, which notes where it is called from, and what `dlsym` hands out, which is called from nowhere in
/// particular; both are ours otherwise.
macro_rules! entries {
    ($($name:ident),* $(,)?) => {
        #[cfg(all(not(test), target_arch = "x86_64"))]
        mod exported {
            $(
                /// See NCCL's documentation.
                ///
                /// # Safety
                /// The same as for NCCL's function.
                #[unsafe(no_mangle)]
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    // Neither register is an argument's.
                    std::arch::naked_asm!(
                        "endbr64",
                        "mov r11, [rsp]",
                        "mov rax, qword ptr [rip + phos_nccl_caller@GOTTPOFF]",
                        "mov qword ptr fs:[rax], r11",
                        "jmp {ours}",
                        ours = sym super::$name,
                    )
                }
            )*
        }

        #[cfg(all(not(test), target_arch = "x86_64"))]
        mod handed_out {
            $(
                /// See NCCL's documentation.
                ///
                /// # Safety
                /// The same as for NCCL's function.
                #[unsafe(naked)]
                pub unsafe extern "C" fn $name() {
                    std::arch::naked_asm!(
                        "endbr64",
                        "mov rax, qword ptr [rip + phos_nccl_caller@GOTTPOFF]",
                        "mov qword ptr fs:[rax], 0",
                        "jmp {ours}",
                        ours = sym super::$name,
                    )
                }
            )*
        }

        /// The functions that have one of ours in their place. In order: they are looked up.
        pub const NAMES: [&CStr; 0 $(+ { stringify!($name); 1 })*] = [$(name_of(concat!(stringify!($name), "\0"))),*];

        /// What is exported, in the order of [`NAMES`].
        pub static EXPORTED: [Ours; NAMES.len()] = [$(Ours(exported::$name as *const c_void)),*];

        /// What `dlsym` hands out in place of the first `libnccl.so.2`'s, in the same order.
        pub static HANDED_OUT: [Ours; NAMES.len()] = [$(Ours(handed_out::$name as *const c_void)),*];
    };
}

/// Calls NCCL's own function of this name, as the caller would have.
macro_rules! nccl {
    ($caller:ident, $name:ident($($argument:expr => $kind:ty),* $(,)?)) => {{
        const NUMBER: usize = number(stringify!($name));
        const _: () = assert!(NUMBER < NAMES.len());
        match library::real(NUMBER, $caller) {
            // SAFETY: the address is that of NCCL's function of this name, whose C signature stands here, and the arguments are
            // those of the caller, who has promised what NCCL asks for.
            Some(address) => unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($kind),*) -> c_int>(address)($($argument),*)
            },
            None => INTERNAL_ERROR,
        }
    }};
}

const fn name_of(terminated: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(terminated.as_bytes()) {
        Ok(name) => name,
        Err(_) => c"",
    }
}

// In order.
entries!(
    ncclAllGather,
    ncclAllReduce,
    ncclAlltoAll,
    ncclBcast,
    ncclBroadcast,
    ncclCommAbort,
    ncclCommDestroy,
    ncclCommGetAsyncError,
    ncclCommInitAll,
    ncclCommInitRank,
    ncclCommInitRankConfig,
    ncclCommInitRankScalable,
    ncclCommShrink,
    ncclCommSplit,
    ncclCommUserRank,
    ncclGather,
    ncclGroupEnd,
    ncclGroupSimulateEnd,
    ncclGroupStart,
    ncclRecv,
    ncclReduce,
    ncclReduceScatter,
    ncclScatter,
    ncclSend,
);

#[cfg(not(all(not(test), target_arch = "x86_64")))]
use self as exported;
#[cfg(not(all(not(test), target_arch = "x86_64")))]
use self as handed_out;

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
        #[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name($($argument: $kind,)* comm: Comm, stream: Stream) -> c_int {
            let caller = caller::get();
            let call = Call {
                communicator: comm as usize,
                what: Counted::Collectives,
                stream: stream as usize,
            };
            issue(caller, call, || nccl!(caller, $name($($argument => $kind,)* comm => Comm, stream => Stream)))
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
        #[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(
            buffer: $buffer,
            count: usize,
            kind: c_int,
            peer: c_int,
            comm: Comm,
            stream: Stream,
        ) -> c_int {
            let caller = caller::get();
            let call = Call {
                communicator: comm as usize,
                what: $counted(peer.cast_unsigned()),
                stream: stream as usize,
            };
            issue(caller, call, || nccl!(caller, $name(
                buffer => $buffer, count => usize, kind => c_int, peer => c_int, comm => Comm, stream => Stream
            )))
        }
    };
}
message!(ncclSend, *const c_void, Counted::Sent);
message!(ncclRecv, *mut c_void, Counted::Received);

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupStart() -> c_int {
    let caller = caller::get();
    position::begin_group();
    let result = nccl!(caller, ncclGroupStart());
    if result != SUCCESS {
        position::forget_group();
    }
    result
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupEnd() -> c_int {
    let caller = caller::get();
    position::end_group(|| {
        let result = nccl!(caller, ncclGroupEnd());
        (result, fate(result))
    })
}

/// See NCCL's documentation: it ends a group of which nothing is issued.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclGroupSimulateEnd(info: *mut c_void) -> c_int {
    let caller = caller::get();
    let result = nccl!(caller, ncclGroupSimulateEnd(info => *mut c_void));
    position::forget_group();
    result
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommGetAsyncError(comm: Comm, error: *mut c_int) -> c_int {
    let caller = caller::get();
    let result = nccl!(caller, ncclCommGetAsyncError(comm => Comm, error => *mut c_int));
    // SAFETY: NCCL has just written it.
    if result == SUCCESS && !error.is_null() && unsafe { *error } == SUCCESS {
        position::are_made(comm as usize);
    }
    result
}

fn fate(result: c_int) -> Fate {
    match result {
        SUCCESS | IN_PROGRESS => Fate::Issued,
        _ => Fate::Refused,
    }
}

/// Issues a call. The rank of a communicator that was made in the background is known by the first one.
fn issue(caller: Caller, call: Call, nccl: impl FnOnce() -> c_int) -> c_int {
    if position::has_no_rank(&call) {
        position::set_rank(&call, rank_of(caller, call.communicator));
    }
    position::issue(call, || {
        let result = nccl();
        (result, fate(result))
    })
}

/// Notes a communicator whose handle NCCL writes to `comm`, if it made one.
fn made(
    result: c_int,
    parent: Comm,
    comm: *mut Comm,
    number: Option<u64>,
    rank: Option<c_int>,
) -> c_int {
    let Some(number) = number.filter(|_| mode::is_active() && !comm.is_null()) else {
        return result;
    };
    if fate(result) == Fate::Issued {
        position::made(Made {
            parent: (result == IN_PROGRESS && !parent.is_null()).then_some(parent as usize),
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
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommUserRank(comm: Comm, rank: *mut c_int) -> c_int {
    let caller = caller::get();
    nccl!(caller, ncclCommUserRank(comm => Comm, rank => *mut c_int))
}

/// The rank that a communicator is in this process, as NCCL says.
fn rank_of(caller: Caller, comm: usize) -> Option<u32> {
    let mut rank: c_int = -1;
    // A communicator of the application's, which is ready or says that it is not; it writes one integer.
    let result = nccl!(caller, ncclCommUserRank(comm as Comm => Comm, &raw mut rank => *mut c_int));
    (result == SUCCESS)
        .then(|| u32::try_from(rank).ok())
        .flatten()
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitRank(
    comm: *mut Comm,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
) -> c_int {
    let caller = caller::get();
    let result = nccl!(caller, ncclCommInitRank(comm => *mut Comm, ranks => c_int, id => UniqueId, rank => c_int));
    made(
        result,
        std::ptr::null_mut(),
        comm,
        Some(communicators::by_identifier(&id.0)),
        Some(rank),
    )
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitRankConfig(
    comm: *mut Comm,
    ranks: c_int,
    id: UniqueId,
    rank: c_int,
    config: *mut c_void,
) -> c_int {
    let caller = caller::get();
    let result = nccl!(caller, ncclCommInitRankConfig(
        comm => *mut Comm, ranks => c_int, id => UniqueId, rank => c_int, config => *mut c_void
    ));
    made(
        result,
        std::ptr::null_mut(),
        comm,
        Some(communicators::by_identifier(&id.0)),
        Some(rank),
    )
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitRankScalable(
    comm: *mut Comm,
    ranks: c_int,
    rank: c_int,
    count: c_int,
    ids: *mut UniqueId,
    config: *mut c_void,
) -> c_int {
    let caller = caller::get();
    let result = nccl!(caller, ncclCommInitRankScalable(
        comm => *mut Comm, ranks => c_int, rank => c_int, count => c_int, ids => *mut UniqueId, config => *mut c_void
    ));
    let first = (count > 0 && !ids.is_null()).then(|| {
        // SAFETY: the caller has promised that there are `count`.
        communicators::by_identifier(&unsafe { (*ids).0 })
    });
    made(result, std::ptr::null_mut(), comm, first, Some(rank))
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommInitAll(
    comms: *mut Comm,
    count: c_int,
    devices: *const c_int,
) -> c_int {
    let caller = caller::get();
    let result =
        nccl!(caller, ncclCommInitAll(comms => *mut Comm, count => c_int, devices => *const c_int));
    if result == SUCCESS {
        let number = communicators::of_this_process(mode::instance());
        for rank in 0..count {
            // NCCL has written as many.
            made(
                result,
                std::ptr::null_mut(),
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
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommSplit(
    parent: Comm,
    color: c_int,
    key: c_int,
    comm: *mut Comm,
    config: *mut c_void,
) -> c_int {
    let caller = caller::get();
    let number = position::child(parent as usize, color);
    let result = nccl!(caller, ncclCommSplit(
        parent => Comm, color => c_int, key => c_int, comm => *mut Comm, config => *mut c_void
    ));
    // Without a color the rank is in none.
    made(result, parent, comm, number.filter(|_| color >= 0), None)
}

/// See NCCL's documentation.
///
/// # Safety
/// The same as for NCCL's function.
#[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
pub unsafe extern "C" fn ncclCommShrink(
    parent: Comm,
    excluded: *mut c_int,
    count: c_int,
    comm: *mut Comm,
    config: *mut c_void,
    flags: c_int,
) -> c_int {
    let caller = caller::get();
    let number = position::child(parent as usize, -1);
    let result = nccl!(caller, ncclCommShrink(
        parent => Comm, excluded => *mut c_int, count => c_int, comm => *mut Comm, config => *mut c_void, flags => c_int
    ));
    made(result, parent, comm, number, None)
}

macro_rules! end {
    ($name:ident) => {
        /// See NCCL's documentation.
        ///
        /// # Safety
        /// The same as for NCCL's function.
        #[cfg_attr(all(not(test), not(target_arch = "x86_64")), unsafe(no_mangle))]
        pub unsafe extern "C" fn $name(comm: Comm) -> c_int {
            let caller = caller::get();
            // Before: another one may get the handle.
            position::forget(comm as usize);
            nccl!(caller, $name(comm => Comm))
        }
    };
}
end!(ncclCommDestroy);
end!(ncclCommAbort);
