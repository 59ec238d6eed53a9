//! The entry points the shim knows: numbers, names, what takes their place, and what a name outside the table means.

#[rustfmt::skip]
mod generated;

use std::ffi::CStr;

pub use generated::{COUNT, NAMES, real, tracked};

/// An entry point by number: an index of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub u16);

impl Entry {
    /// Its index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The address of a wrapper.
#[derive(Clone, Copy)]
pub struct Wrapper(pub *const ());

// SAFETY: the address of a function; nothing is written through it.
unsafe impl Sync for Wrapper {}

/// What takes the place of an entry point; none if it is only called by the shim itself.
pub fn wrapper(entry: Entry) -> Option<*const ()> {
    let address = generated::WRAPPERS.get(entry.index())?.0;
    (!address.is_null()).then_some(address)
}

/// What a function of the driver is that is not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// It may pass.
    Pass,
    /// It may enqueue work or change memory: a newer version of something guarded, or unknown.
    Guard,
}

/// Judges a function of the driver by its name.
pub fn outside(name: &CStr) -> Outside {
    let Ok(name) = name.to_str() else {
        return Outside::Guard;
    };
    let base = base(name);
    if generated::GUARDED.binary_search(&base).is_ok() {
        return Outside::Guard;
    }
    if generated::PASSED.binary_search(&base).is_ok()
        || generated::PASSED_PREFIXES
            .iter()
            .any(|p| base.starts_with(p))
    {
        return Outside::Pass;
    }
    Outside::Guard
}

/// The name without its stream suffix (`_ptds`, `_ptsz`) and version (`_v2`).
fn base(name: &str) -> &str {
    let name = name
        .strip_suffix("_ptsz")
        .or_else(|| name.strip_suffix("_ptds"))
        .unwrap_or(name);
    match name.rsplit_once("_v") {
        Some((front, digits))
            if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) =>
        {
            front
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_complete() {
        assert!(NAMES.is_sorted());
        for name in [
            c"cuMemAlloc_v2",
            c"cuLaunchKernel_ptsz",
            c"cuMemcpyHtoD_v2_ptds",
            c"cuStreamBeginCapture_v2",
        ] {
            assert!(NAMES.binary_search(&name).is_ok(), "{name:?}");
        }
    }

    #[test]
    fn suffixes_come_off() {
        assert_eq!(base("cuMemcpyHtoDAsync_v2_ptsz"), "cuMemcpyHtoDAsync");
        assert_eq!(base("cuMemcpy_ptds"), "cuMemcpy");
        assert_eq!(base("cuFoo_vX"), "cuFoo_vX");
    }

    #[test]
    fn a_newer_version_of_a_guarded_name_is_guarded() {
        assert_eq!(outside(c"cuMemcpyBatchAsync_v9_ptsz"), Outside::Guard);
        assert_eq!(outside(c"cuMemAlloc_v3"), Outside::Guard);
        assert_eq!(outside(c"cuSomethingNobodyKnows"), Outside::Guard);
        assert_eq!(outside(c"cuEventElapsedTime_v3"), Outside::Pass);
        assert_eq!(outside(c"cuDeviceGetTomorrow"), Outside::Pass);
    }

    #[test]
    fn blocking_calls_do_not_hold_the_gate() {
        for name in [
            c"cuCtxSynchronize",
            c"cuStreamSynchronize",
            c"cuEventSynchronize",
        ] {
            let wrapped = NAMES
                .binary_search(&name)
                .ok()
                .and_then(|i| wrapper(Entry(u16::try_from(i).unwrap())));
            assert!(wrapped.is_none(), "{name:?}");
        }
    }
}
