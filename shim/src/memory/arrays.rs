//! Arrays (textures, surfaces): memory of the driver's own, in layouts of its own, which stays the driver's. The driver saves
//! them with the control state, into the host memory of the process; [`bytes`] says how much that will be. An array for which
//! there is no memory is tried again when phos-ft has given back what it holds, like every other allocation.
#![allow(non_snake_case)]

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Mutex;

use super::with_retry;
use crate::abi::{self, Handle};
use crate::sync::lock;
use crate::table::{Entry, tracked};
use crate::{context, gate, mode};

/// `CUDA_ARRAY3D_LAYERED` and `CUDA_ARRAY3D_CUBEMAP`: the depth counts layers.
const LAYERS: u32 = 0x01 | 0x04;
/// `CUDA_ARRAY3D_SPARSE` and `CUDA_ARRAY3D_DEFERRED_MAPPING`: the memory is mapped later, from elsewhere.
const WITHOUT_MEMORY: u32 = 0x40 | 0x80;

/// `CUDA_ARRAY_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Flat {
    width: usize,
    height: usize,
    format: u32,
    channels: u32,
}

/// `CUDA_ARRAY3D_DESCRIPTOR`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Solid {
    width: usize,
    height: usize,
    depth: usize,
    format: u32,
    channels: u32,
    flags: u32,
}

impl From<Flat> for Solid {
    fn from(flat: Flat) -> Self {
        Self {
            width: flat.width,
            height: flat.height,
            depth: 0,
            format: flat.format,
            channels: flat.channels,
            flags: 0,
        }
    }
}

impl Solid {
    /// About how much memory it takes with so many levels, each half as large as the one before. Formats that are not numbers
    /// count as four bytes for each channel, which is no less than they take.
    fn bytes(&self, levels: u32) -> u64 {
        if self.flags & WITHOUT_MEMORY != 0 {
            return 0;
        }
        let element: u64 = match self.format {
            0x01 | 0x08 => 1,
            0x02 | 0x09 | 0x10 => 2,
            _ => 4,
        };
        let mut sides = [self.width, self.height, self.depth].map(|side| side.max(1) as u64);
        let mut total = 0_u64;
        for _ in 0..levels.clamp(1, 64) {
            let level = sides
                .iter()
                .fold(element * u64::from(self.channels.max(1)), |all, &side| {
                    all.saturating_mul(side)
                });
            total = total.saturating_add(level);
            let halved = if self.flags & LAYERS == 0 { 3 } else { 2 };
            for side in &mut sides[..halved] {
                *side = (*side / 2).max(1);
            }
        }
        total
    }
}

/// Context and bytes of each, by handle.
static ARRAYS: Mutex<BTreeMap<usize, (usize, u64)>> = Mutex::new(BTreeMap::new());

/// Device memory in arrays, in bytes.
pub fn bytes() -> u64 {
    lock(&ARRAYS)
        .values()
        .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
}

/// A context is gone and its arrays with it. Inside the gate.
pub fn context_gone(context: usize) {
    lock(&ARRAYS).retain(|_, (of, _)| *of != context);
}

/// Makes one by `attempt`, and notes it.
fn create(array: *mut Handle, bytes: u64, attempt: impl Fn() -> u32) -> u32 {
    if !mode::active() {
        let _inside = gate::enter();
        return attempt();
    }
    let (context, device) = context::current().unwrap_or((0, 0));
    with_retry(device, bytes, || {
        let _inside = gate::enter();
        let result = attempt();
        if result == abi::SUCCESS && !array.is_null() {
            // SAFETY: the driver has just written it.
            let handle = unsafe { *array }.expose_provenance();
            lock(&ARRAYS).insert(handle, (context, bytes));
        }
        result
    })
}

macro_rules! create {
    ($name:ident, $descriptor:ty) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, array: *mut Handle, shape: *const c_void) -> u32 {
            let bytes = if shape.is_null() {
                0
            } else {
                // SAFETY: the caller's promise that it is such a descriptor; it need not be aligned for us.
                Solid::from(unsafe { shape.cast::<$descriptor>().read_unaligned() }).bytes(1)
            };
            // SAFETY: the caller's promise.
            create(array, bytes, || unsafe {
                tracked::$name(entry, array, shape)
            })
        }
    };
}
create!(cuArrayCreate_v2, Flat);
create!(cuArray3DCreate_v2, Solid);

/// See the driver's documentation.
///
/// # Safety
/// The same as for the driver's function.
pub unsafe fn cuMipmappedArrayCreate(
    entry: Entry,
    array: *mut Handle,
    shape: *const c_void,
    levels: u32,
) -> u32 {
    let bytes = if shape.is_null() {
        0
    } else {
        // SAFETY: the caller's promise that it is such a descriptor; it need not be aligned for us.
        unsafe { shape.cast::<Solid>().read_unaligned() }.bytes(levels)
    };
    create(array, bytes, || {
        // SAFETY: the caller's promise.
        unsafe { tracked::cuMipmappedArrayCreate(entry, array, shape, levels) }
    })
}

macro_rules! destroy {
    ($name:ident) => {
        /// See the driver's documentation.
        ///
        /// # Safety
        /// The same as for the driver's function.
        pub unsafe fn $name(entry: Entry, array: Handle) -> u32 {
            let _inside = gate::enter();
            // Before the driver may give the handle to another array.
            let known = lock(&ARRAYS).remove(&array.addr());
            // SAFETY: the caller's promise.
            let result = unsafe { tracked::$name(entry, array) };
            if result != abi::SUCCESS
                && let Some(known) = known
            {
                lock(&ARRAYS).insert(array.addr(), known);
            }
            result
        }
    };
}
destroy!(cuArrayDestroy);
destroy!(cuMipmappedArrayDestroy);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_an_array_follows_from_its_shape() {
        let flat = Flat {
            width: 100,
            height: 20,
            format: 0x20,
            channels: 2,
        };
        assert_eq!(Solid::from(flat).bytes(1), 100 * 20 * 8);
        let line = Flat { height: 0, ..flat };
        assert_eq!(Solid::from(line).bytes(1), 100 * 8);
        let solid = Solid {
            width: 16,
            height: 8,
            depth: 4,
            format: 0x10,
            channels: 1,
            flags: 0,
        };
        assert_eq!(solid.bytes(1), 2 * 16 * 8 * 4);
        assert_eq!(solid.bytes(2), 2 * (16 * 8 * 4 + 8 * 4 * 2));
        let layered = Solid { flags: 1, ..solid };
        assert_eq!(layered.bytes(2), 2 * 4 * (16 * 8 + 8 * 4));
        let sparse = Solid {
            flags: 0x40,
            ..solid
        };
        assert_eq!(sparse.bytes(1), 0);
    }
}
