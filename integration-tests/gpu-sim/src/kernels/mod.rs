//! Kernels as Rust functions, bound by the name of their PTX entry.
//!
//! A kernel is called once per launch and does the work of the whole grid. It reads its arguments with
//! [`Launch::param`] and reaches device memory only through [`Launch::view`], which checks every byte against the
//! mappings and rights of the device it runs on. Results depend on nothing but arguments and memory: floating point is
//! done in one fixed order, so two runs give the same bits (though not the bits of a GPU).
//!
//! To add one: write `fn name(launch: &Launch<'_>) -> Res` in a module here and name it in that module's table.

mod blake3;
mod probe;
mod trainer;

use crate::error::{ERROR_INVALID_VALUE, ERROR_MISALIGNED_ADDRESS, Res};
use crate::memory::space::{Tables, Who};
use crate::ptx::Param;
use std::cell::Cell;
use std::marker::PhantomData;
use std::time::Duration;

/// A kernel.
pub type Kernel = fn(&Launch<'_>) -> Res;

/// The kernel with a name.
pub fn find(name: &str) -> Option<Kernel> {
    [blake3::TABLE, trainer::TABLE, probe::TABLE]
        .into_iter()
        .flatten()
        .find(|(known, _)| *known == name)
        .map(|(_, kernel)| *kernel)
}

/// A type whose every bit pattern is a value: what arguments and device memory are made of.
///
/// # Safety
/// Any bytes of its size must be a valid value.
pub unsafe trait Plain: Copy {}

macro_rules! plain {
    ($($name:ty),*) => {$(
        // SAFETY: a number of fixed size.
        unsafe impl Plain for $name {}
    )*};
}
plain!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

// SAFETY: numbers of fixed size, one after the other.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// One launch. Its shape is not part of it: the trainer's and our own kernels do not depend on theirs.
pub struct Launch<'a> {
    pub(crate) params: &'a [u8],
    pub(crate) layout: &'a [Param],
    pub(crate) tables: &'a Tables,
    pub(crate) device: usize,
    /// How long the kernel goes on after its function returned: the table must not be held for so long.
    pub(crate) lasts: Cell<Duration>,
}

impl<'a> Launch<'a> {
    /// The `index`th argument.
    pub fn param<T: Plain>(&self, index: usize) -> Res<T> {
        let param = self
            .layout
            .get(index)
            .filter(|param| param.size == size_of::<T>())
            .ok_or(ERROR_INVALID_VALUE)?;
        let bytes = self
            .params
            .get(param.offset..param.offset + param.size)
            .ok_or(ERROR_INVALID_VALUE)?;
        // SAFETY: as many bytes as `T` has, of which any are a value.
        Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
    }

    /// Lets the kernel take so much longer.
    pub fn busy(&self, time: Duration) {
        self.lasts.set(self.lasts.get() + time);
    }

    /// `count` values of device memory at `address`, to be read and (if `write`) written.
    pub fn view<T: Plain>(&self, address: u64, count: u64, write: bool) -> Res<View<'a, T>> {
        if !address.is_multiple_of(align_of::<T>() as u64) {
            return Err(ERROR_MISALIGNED_ADDRESS);
        }
        let bytes = count
            .checked_mul(size_of::<T>() as u64)
            .ok_or(ERROR_INVALID_VALUE)?;
        let at = if count == 0 {
            std::ptr::dangling_mut()
        } else {
            self.tables
                .resolve(address, bytes, write, Who::Kernel(self.device))?
                .cast()
        };
        Ok(View {
            at,
            count: count as usize,
            write,
            life: PhantomData,
        })
    }
}

/// Device memory that a kernel may use. Views may overlap, as pointers of a kernel may.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    at: *mut T,
    count: usize,
    write: bool,
    life: PhantomData<&'a Tables>,
}

impl<T: Plain> View<'_, T> {
    /// The value at `index`; the caller stays within what it asked for.
    pub fn get(&self, index: usize) -> T {
        assert!(
            index < self.count,
            "a simulated kernel reads behind its view"
        );
        // SAFETY: within the range that `Launch::view` resolved; the table is held while the view lives.
        unsafe { self.at.add(index).read() }
    }

    /// Writes the value at `index` of a writable view.
    pub fn set(&self, index: usize, value: T) {
        assert!(
            self.write && index < self.count,
            "a simulated kernel writes behind its view"
        );
        // SAFETY: as in `get`.
        unsafe { self.at.add(index).write(value) }
    }

    /// A copy of everything.
    pub fn to_vec(self) -> Vec<T> {
        let mut values = Vec::with_capacity(self.count);
        // SAFETY: the whole range was resolved, and there is room for it; any bytes are values.
        unsafe {
            std::ptr::copy_nonoverlapping(self.at, values.as_mut_ptr(), self.count);
            values.set_len(self.count);
        }
        values
    }
}
