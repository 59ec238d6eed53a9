//! `cuGetProcAddress`: functions by base name, CUDA version and default-stream flavour.
//!
//! The table is made of the modules' own tables, so what is found here is what `dlsym` finds. Of the functions with the
//! base name the newest that the wanted version knows is given; with the per-thread flag, its `_ptsz` or `_ptds` form
//! if there is one.

use crate::api::{Entry, In, Out, api};
use crate::driver;
use crate::error::{ERROR_INVALID_VALUE, ERROR_NOT_FOUND, Res};

const TABLES: &[&[Entry]] = &[
    TABLE,
    crate::checkpoint::TABLE,
    crate::context::TABLE,
    crate::device::TABLE,
    crate::driver::TABLE,
    crate::error::TABLE,
    crate::event::TABLE,
    crate::graph::TABLE,
    crate::launch::TABLE,
    crate::memory::array::TABLE,
    crate::memory::copy::TABLE,
    crate::memory::host::TABLE,
    crate::memory::ipc::TABLE,
    crate::memory::multicast::TABLE,
    crate::memory::native::TABLE,
    crate::memory::pointer::TABLE,
    crate::memory::pool::TABLE,
    crate::memory::texture::TABLE,
    crate::memory::vmm::TABLE,
    crate::module::TABLE,
    crate::stream::TABLE,
];

const PER_THREAD: u64 = 2;

/// `CUdriverProcAddressQueryResult`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    Yes(*const ()),
    Unknown,
    TooOld,
}

/// A symbol's base name, its version number and whether it is a per-thread form.
fn split(symbol: &str) -> (&str, u32, bool) {
    let stripped = symbol
        .strip_suffix("_ptsz")
        .or_else(|| symbol.strip_suffix("_ptds"));
    let rest = stripped.unwrap_or(symbol);
    match rest
        .rsplit_once("_v")
        .and_then(|(base, number)| Some((base, number.parse().ok()?)))
    {
        Some((base, version)) => (base, version, stripped.is_some()),
        None => (rest, 1, stripped.is_some()),
    }
}

fn find(name: &str, version: i32, flags: u64) -> Found {
    let mut best: Option<(bool, i32, u32, *const ())> = None;
    let mut known = false;
    for entry in TABLES.iter().copied().flatten() {
        let (base, revision, per_thread) = split(entry.name);
        if base != name || per_thread && flags & PER_THREAD == 0 {
            continue;
        }
        known = true;
        if entry.since > version {
            continue;
        }
        let candidate = (per_thread, entry.since, revision, entry.address);
        // Revision first, then the flavour: a per-thread form of an older revision is another function.
        let rank = |(flavour, since, revision, _): &(bool, i32, u32, *const ())| {
            (*revision, *flavour, *since)
        };
        if best
            .as_ref()
            .is_none_or(|best| rank(best) < rank(&candidate))
        {
            best = Some(candidate);
        }
    }
    match best {
        Some((_, _, _, address)) => Found::Yes(address),
        None if known => Found::TooOld,
        None => Found::Unknown,
    }
}

fn checked(name: In<u8>, out: Out<*const ()>, version: i32, flags: u64) -> Res<Found> {
    out.check()?;
    if !(2000..=driver::VERSION).contains(&version) || flags & !3 != 0 || flags == 3 {
        return Err(ERROR_INVALID_VALUE);
    }
    Ok(find(&name.text()?, version, flags))
}

/// How the numbers of the tables begin that there are here: a tool's, without anything in them but their size.
const TOOLS: &[u8] = b"phos tools";
static NO_FUNCTIONS: [usize; 1] = [size_of::<usize>()];

api! { TABLE;
    11030 fn cuGetProcAddress(name: In<u8>, out: Out<*const ()>, version: i32, flags: u64) @free {
        match checked(name, out, version, flags)? {
            Found::Yes(address) => out.set(address),
            Found::Unknown | Found::TooOld => Err(ERROR_NOT_FOUND),
        }
    }
    12000 fn cuGetProcAddress_v2(
        name: In<u8>,
        out: Out<*const ()>,
        version: i32,
        flags: u64,
        status: Out<i32>,
    ) @free {
        // Measured: what is not found is a success with a null pointer; only the first version has an error for it.
        let (code, address) = match checked(name, out, version, flags)? {
            Found::Yes(address) => (0, address),
            Found::Unknown => (1, std::ptr::null()),
            Found::TooOld => (2, std::ptr::null()),
        };
        status.set_optional(code);
        out.set(address)
    }
    3000 fn cuGetExportTable(table: Out<*const ()>, id: In<[u8; 16]>) @free {
        let id = id.get()?;
        if !id.starts_with(TOOLS) {
            table.set(std::ptr::null())?;
            return Err(ERROR_NOT_FOUND);
        }
        driver::get()?.checkpoint.tools.note(id);
        table.set((&raw const NO_FUNCTIONS).cast())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(symbol: &str) -> Option<*const ()> {
        TABLES
            .iter()
            .copied()
            .flatten()
            .find(|entry| entry.name == symbol)
            .map(|entry| entry.address)
    }

    #[test]
    fn picks_version_and_flavour() {
        let is = |name, version, flags, symbol| {
            assert!(
                address(symbol).is_some_and(|at| find(name, version, flags) == Found::Yes(at)),
                "{name}"
            );
        };
        is("cuMemAlloc", 13000, 0, "cuMemAlloc_v2");
        is("cuCtxCreate", 13000, 0, "cuCtxCreate_v4");
        is("cuCtxCreate", 11000, 0, "cuCtxCreate_v2");
        is("cuMemcpyHtoD", 12000, 2, "cuMemcpyHtoD_v2_ptds");
        is("cuMemcpyHtoD", 12000, 1, "cuMemcpyHtoD_v2");
        is("cuLaunchKernel", 12000, 2, "cuLaunchKernel_ptsz");
        is(
            "cuStreamBeginCapture",
            12000,
            2,
            "cuStreamBeginCapture_v2_ptsz",
        );
        is("cuGetProcAddress", 12000, 0, "cuGetProcAddress_v2");
        is("cuGetProcAddress", 11030, 0, "cuGetProcAddress");
        assert_eq!(find("cuMemCreate", 9000, 0), Found::TooOld);
        assert_eq!(find("cuMemAlloc_v2", 13000, 0), Found::Unknown);
        assert_eq!(find("cuNoSuchThing", 13000, 0), Found::Unknown);
    }
}
