//! `cuGetExportTable`, the driver's private tables: tools that record or debug the driver (CUPTI, hence torch.profiler, Nsight)
//! begin with it. From then on the driver may refuse to checkpoint the process. Only the driver can say whether it does, and the
//! agent asks it before anything stops, where this module has told it to.
//!
//! A tool is known by how many tables it takes. Measured on driver 580: CUPTI 13 takes 37 at the first use of a profiler, one of the
//! CPU alone too, and none before; a PyTorch process without one has taken one (NVML's).
#![allow(non_snake_case)]

use std::ffi::c_void;
use std::sync::Mutex;

use crate::link;
use crate::sync::lock;
use crate::table::{Entry, tracked};
use crate::{abi, gate};

/// More different tables than whatever is no tool takes.
const MANY: usize = 16;

/// The private tables that the process has taken, each listed once.
struct Taken {
    ids: [[u8; 16]; MANY],
    count: usize,
}

static TAKEN: Mutex<Taken> = Mutex::new(Taken {
    ids: [[0; 16]; MANY],
    count: 0,
});

/// Whether a tool has taken the driver's tables.
pub fn is_instrumented() -> bool {
    lock(&TAKEN).count >= MANY
}

/// Notes a table; whether it is the one by which a tool is known.
fn note(id: [u8; 16]) -> bool {
    let mut taken = lock(&TAKEN);
    let count = taken.count;
    if count >= MANY || taken.ids[..count].contains(&id) {
        return false;
    }
    taken.ids[count] = id;
    taken.count += 1;
    taken.count == MANY
}

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuGetExportTable(entry: Entry, table: *mut *const c_void, id: *const c_void) -> u32 {
    let result = {
        let _inside = gate::enter_query();
        // SAFETY: the caller's promise.
        unsafe { tracked::cuGetExportTable(entry, table, id) }
    };
    if result != abi::SUCCESS || id.is_null() {
        return result;
    }
    // SAFETY: the driver has just read the 16 bytes of a `CUuuid` there.
    if note(unsafe { id.cast::<[u8; 16]>().read_unaligned() }) {
        link::tell_instrumented();
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_known_by_how_many_tables_it_takes() {
        let id = |n: usize| [n as u8; 16];
        for _ in 0..3 {
            // Each copy of the runtime asks for the same ones.
            assert!((1..MANY).all(|n| !note(id(n))));
        }
        assert!(!is_instrumented());
        assert!(note(id(0)));
        assert!(is_instrumented());
        assert!(!note(id(MANY)));
    }
}
