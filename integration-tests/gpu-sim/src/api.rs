//! The boundary: the macro that defines exported entry points, and the pointers that C passes.
//!
//! Every exported function is written once, inside [`api!`]. The macro gives it its C symbol, an entry in its module's
//! table (which `cuGetProcAddress` searches, so both ways of finding a function give one address), and the gate: the
//! process check after `fork`, the initialisation check and the checkpoint lock. A body returns [`Res`], never panics.
//!
//! Pointers arrive as [`Out`] and [`In`]. Their only rule is the driver API's own: what the caller passes is null or
//! valid for the call. Null is answered with `CUDA_ERROR_INVALID_VALUE`.

use crate::error::{ERROR_INVALID_VALUE, Res};
use std::ffi::CStr;

/// One exported function: symbol, the CUDA version its ABI appeared in, address.
pub struct Entry {
    pub name: &'static str,
    pub since: i32,
    pub address: *const (),
}

// SAFETY: an entry holds the address of a function, which every thread may read.
unsafe impl Sync for Entry {}

/// Defines exported driver functions and the table of them.
///
/// `since fn name(args) |driver| { body }` passes the gate. With `@query` before `|driver|` the call goes on while a
/// checkpoint has the process locked, as plain questions do on the real driver. `@polled` goes on as well, and the process
/// dies of it once it is checkpointed. `@free` needs no driver at all.
macro_rules! api {
    (@one $name:ident ($($a:ident : $t:ty),*) |$d:ident| $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: $t),*) -> $crate::error::CUresult {
            $crate::gate::call(|$d| -> $crate::error::Res { $body })
        }
    };
    (@one $name:ident ($($a:ident : $t:ty),*) @query |$d:ident| $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: $t),*) -> $crate::error::CUresult {
            $crate::gate::question(|$d| -> $crate::error::Res { $body })
        }
    };
    (@one $name:ident ($($a:ident : $t:ty),*) @polled |$d:ident| $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: $t),*) -> $crate::error::CUresult {
            $crate::gate::polled(|$d| -> $crate::error::Res { $body })
        }
    };
    (@one $name:ident ($($a:ident : $t:ty),*) @free $body:block) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name($($a: $t),*) -> $crate::error::CUresult {
            $crate::gate::free(|| -> $crate::error::Res { $body })
        }
    };
    ($table:ident; $($since:literal fn $name:ident ($($a:ident : $t:ty),* $(,)?)
        $(@$kind:ident)? $(|$d:ident|)? $body:block)*) => {
        $($crate::api::api! { @one $name ($($a: $t),*) $(@$kind)? $(|$d|)? $body })*
        pub static $table: &[$crate::api::Entry] = &[
            $($crate::api::Entry { name: stringify!($name), since: $since, address: $name as *const () }),*
        ];
    };
}
pub(crate) use api;

/// A pointer that a result is written to.
#[repr(transparent)]
pub struct Out<T>(*mut T);

impl<T> Clone for Out<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Out<T> {}

impl<T> Out<T> {
    /// Writes the result; null is an invalid value.
    pub fn set(self, value: T) -> Res {
        if self.0.is_null() {
            return Err(ERROR_INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the driver API promises that it is valid for the write.
        unsafe { self.0.write_unaligned(value) };
        Ok(())
    }

    /// Writes the result where the caller asked for it.
    pub fn set_optional(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: as in `set`.
            unsafe { self.0.write_unaligned(value) };
        }
    }

    /// Null is an invalid value.
    pub fn check(self) -> Res {
        if self.0.is_null() {
            Err(ERROR_INVALID_VALUE)
        } else {
            Ok(())
        }
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }

    /// The current value: for arguments that go both ways.
    pub fn get(self) -> Res<T>
    where
        T: Copy,
    {
        In(self.0.cast_const()).get()
    }

    /// Writes `values` to consecutive places.
    pub fn set_all(self, values: &[T]) -> Res
    where
        T: Copy,
    {
        if values.is_empty() {
            return Ok(());
        }
        self.check()?;
        // SAFETY: not null, and the caller promises room for as many values as the call documents.
        unsafe { std::ptr::copy_nonoverlapping(values.as_ptr(), self.0, values.len()) };
        Ok(())
    }

    /// The pointer with an address: for arguments whose type another argument decides.
    pub fn at(address: u64) -> Self {
        Self(address as *mut T)
    }

    /// A result that nobody asked for.
    pub fn nothing() -> Self {
        Self(std::ptr::null_mut())
    }
}

/// A pointer that an argument is read from.
#[repr(transparent)]
pub struct In<T>(pub *const T);

impl<T> Clone for In<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for In<T> {}

impl<T: Copy> In<T> {
    pub fn get(self) -> Res<T> {
        self.at(0)
    }

    /// The `index`th value.
    pub fn at(self, index: usize) -> Res<T> {
        if self.0.is_null() {
            return Err(ERROR_INVALID_VALUE);
        }
        // SAFETY: not null, and the caller of the driver API promises `index + 1` readable values.
        Ok(unsafe { self.0.add(index).read_unaligned() })
    }

    /// The first `count` values.
    pub fn all(self, count: usize) -> Res<Vec<T>> {
        (0..count).map(|i| self.at(i)).collect()
    }

    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl In<u8> {
    /// A C string.
    pub fn text(self) -> Res<String> {
        if self.0.is_null() {
            return Err(ERROR_INVALID_VALUE);
        }
        // SAFETY: not null, and the caller promises a NUL-terminated string.
        Ok(unsafe { CStr::from_ptr(self.0.cast()) }
            .to_string_lossy()
            .into_owned())
    }
}

/// Writes a C string into a caller's buffer of `room` bytes, cut to fit.
pub fn put_text(buffer: Out<u8>, room: i32, text: &str) -> Res {
    let room = usize::try_from(room).map_err(|_| ERROR_INVALID_VALUE)?;
    if room == 0 {
        return Err(ERROR_INVALID_VALUE);
    }
    let mut bytes: Vec<u8> = text.bytes().take(room - 1).collect();
    bytes.push(0);
    buffer.set_all(&bytes)
}
