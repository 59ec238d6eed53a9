//! The entry points the shim knows: numbers, names, what takes their place, and what a name outside the table means.

#[rustfmt::skip]
mod generated;

use std::ffi::CStr;

pub use generated::{COUNT, NAMES, real, tracked};

/// An entry point by number: an index of [`NAMES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry(pub u16);

impl Entry {
    /// The index of the entry point in the tables.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// The address of a wrapper function.
#[derive(Clone, Copy)]
pub struct Wrapper(pub *const ());

// SAFETY: the address of a function; nothing is written through it.
unsafe impl Sync for Wrapper {}

/// The wrapper that takes the place of an entry point, if it has one.
pub fn wrapper(entry: Entry) -> Option<*const ()> {
    generated::WRAPPERS.get(entry.index()).map(|w| w.0)
}

/// What a function of the driver is that is not in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outside {
    /// Holding it back as work is all that it takes: a newer version of something that is only held, or unknown and by
    /// its name nothing that enqueues, allocates or shares.
    Held,
    /// Checkpoints are ruled out from its first call on.
    NotUnderstood,
}

/// Judges a function of the driver by its name.
pub fn outside(name: &CStr) -> Outside {
    let Ok(name) = name.to_str() else {
        return Outside::NotUnderstood;
    };
    let base = base(name);
    if generated::TRACKED.binary_search(&base).is_ok() {
        return Outside::NotUnderstood;
    }
    let harmless = || generated::HARMLESS.iter().any(|p| base.starts_with(p));
    let refused = || generated::REFUSED.iter().any(|w| base.contains(w));
    if generated::HELD.binary_search(&base).is_ok() || harmless() || !refused() {
        return Outside::Held;
    }
    Outside::NotUnderstood
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
    fn only_what_enqueues_allocates_or_shares_and_is_unknown_is_not_understood() {
        for name in [
            c"cuMemAlloc_v3",
            c"cuMemExportToShareableHandle_v2",
            c"cuStreamLaunchTomorrow",
            c"cuTensorAllocTomorrow",
            c"cuGraphicsGLRegisterBuffer",
            c"cuEGLStreamConsumerConnect",
        ] {
            assert_eq!(outside(name), Outside::NotUnderstood, "{name:?}");
        }
        for name in [
            c"cuMemcpyBatchAsync_v9_ptsz",
            c"cuLaunchKernelEx_v2",
            c"cuEventElapsedTime_v3",
            c"cuDeviceGetTomorrow",
            c"cuDeviceGetFabricTomorrow",
            c"cuSomethingNobodyKnows",
            c"cuProfilerStart",
        ] {
            assert_eq!(outside(name), Outside::Held, "{name:?}");
        }
    }

    #[test]
    fn every_entry_point_has_a_wrapper() {
        for (i, name) in NAMES.iter().enumerate() {
            let wrapped = wrapper(Entry(u16::try_from(i).unwrap()));
            assert!(wrapped.is_some_and(|w| !w.is_null()), "{name:?}");
        }
    }
}
