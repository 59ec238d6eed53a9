//! The real driver: where its functions are, and which of them a given address is.
//!
//! Filled from the one libcuda of the process by the real `dlsym`. Everything here may run inside our `dlsym`, so:
//! no allocation, no formatting, no locks; several threads may fill the table at once, with the same values.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicUsize, Ordering};

use crate::abi;
use crate::table::{COUNT, Entry, NAMES};

type Dlsym = unsafe extern "C" fn(*mut c_void, *const c_char) -> *mut c_void;

unsafe extern "C" {
    fn dlvsym(handle: *mut c_void, name: *const c_char, version: *const c_char) -> *mut c_void;
}

/// The real `dlsym`; null until [`find_dlsym`].
pub static REAL_DLSYM: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

static REAL: [AtomicPtr<()>; COUNT] = [const { AtomicPtr::new(std::ptr::null_mut()) }; COUNT];

// Addresses in order, and whose they are.
static SORTED_ADDRESS: [AtomicUsize; COUNT] = [const { AtomicUsize::new(0) }; COUNT];
static SORTED_ENTRY: [AtomicU16; COUNT] = [const { AtomicU16::new(0) }; COUNT];
static SORTED_LEN: AtomicUsize = AtomicUsize::new(0);
static READY: AtomicBool = AtomicBool::new(false);

/// Address at which libcuda was loaded; 0 until resolved.
static LIBCUDA: AtomicUsize = AtomicUsize::new(0);

/// Finds the real `dlsym` behind the shim's and remembers it; null if there is none.
pub extern "C" fn find_dlsym() -> *mut c_void {
    let known = REAL_DLSYM.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    for version in [c"GLIBC_2.34", c"GLIBC_2.2.5", c"GLIBC_2.17"] {
        // SAFETY: both strings are terminated; RTLD_NEXT is resolved from this library, which defines the other one.
        let found = unsafe { dlvsym(libc::RTLD_NEXT, c"dlsym".as_ptr(), version.as_ptr()) };
        if !found.is_null() {
            REAL_DLSYM.store(found, Ordering::Release);
            return found;
        }
    }
    std::ptr::null_mut()
}

/// The definition of a function of the C library behind the shim's: the C library's, or that of another library that is preloaded and wants to know of the
/// calls. Such libraries seldom have the C library's version of the name, so that it is not asked for. Null if there is none.
pub fn next(name: &CStr) -> *mut c_void {
    // SAFETY: a terminated name; RTLD_NEXT is resolved from this library, to which `dlsym` returns.
    unsafe { dlsym(libc::RTLD_NEXT, name.as_ptr()) }
}

/// Calls the real `dlsym` with a handle of a library.
///
/// # Safety
/// As `dlsym`; `RTLD_NEXT` means behind this library, from which the C library is called here.
pub unsafe fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    let real = find_dlsym();
    if real.is_null() {
        return std::ptr::null_mut();
    }
    // SAFETY: the address is that of the C library's dlsym.
    let real: Dlsym = unsafe { std::mem::transmute::<*mut c_void, Dlsym>(real) };
    // SAFETY: the caller's promise.
    unsafe { real(handle, name) }
}

/// Address of the driver's own function, if this driver has it.
#[inline]
pub fn address(entry: Entry) -> Option<*const ()> {
    let address = REAL[entry.index()].load(Ordering::Acquire);
    if address.is_null() {
        return address_slowly(entry);
    }
    Some(address.cast_const())
}

#[cold]
fn address_slowly(entry: Entry) -> Option<*const ()> {
    if !READY.load(Ordering::Acquire) {
        resolve(Load::IfNeeded);
    }
    let address = REAL[entry.index()].load(Ordering::Acquire);
    (!address.is_null()).then_some(address.cast_const())
}

/// What a wrapper answers when the driver lacks the function, or when there is no driver.
#[cold]
pub fn missing() -> u32 {
    if READY.load(Ordering::Acquire) {
        abi::NOT_SUPPORTED
    } else {
        abi::NOT_INITIALIZED
    }
}

/// Whether libcuda may be loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// It may, if it is not in the process yet.
    IfNeeded,
    /// It may not.
    Never,
}

/// Fills the table if libcuda is in the process, or can be brought in.
pub fn resolve(load: Load) -> bool {
    if READY.load(Ordering::Acquire) {
        return true;
    }
    let name = c"libcuda.so.1".as_ptr();
    // SAFETY: a terminated name. The reference taken is never given back: the table points into the library.
    let mut library = unsafe { libc::dlopen(name, libc::RTLD_LAZY | libc::RTLD_NOLOAD) };
    if library.is_null() && load == Load::IfNeeded {
        // SAFETY: as above.
        library = unsafe { libc::dlopen(name, libc::RTLD_LAZY) };
    }
    if library.is_null() {
        return false;
    }
    let mut sorted = [(0_usize, 0_u16); COUNT];
    let mut len = 0;
    for (i, name) in NAMES.iter().enumerate() {
        // SAFETY: a handle of dlopen and a terminated name.
        let address = unsafe { dlsym(library, name.as_ptr()) };
        if address.is_null() {
            continue;
        }
        REAL[i].store(address.cast(), Ordering::Release);
        sorted[len] = (address as usize, i as u16);
        len += 1;
    }
    if len == 0 {
        return false;
    }
    let sorted = &mut sorted[..len];
    sorted.sort_unstable();
    for (i, (address, entry)) in sorted.iter().enumerate() {
        SORTED_ADDRESS[i].store(*address, Ordering::Relaxed);
        SORTED_ENTRY[i].store(*entry, Ordering::Relaxed);
    }
    SORTED_LEN.store(len, Ordering::Relaxed);
    if let Some(found) = object_of(sorted[0].0) {
        LIBCUDA.store(found.base, Ordering::Relaxed);
    }
    READY.store(true, Ordering::Release);
    true
}

/// The entry point whose real function stands at `address`.
pub fn entry_at(address: *const ()) -> Option<Entry> {
    if !READY.load(Ordering::Acquire) {
        return None;
    }
    let (mut low, mut high) = (0, SORTED_LEN.load(Ordering::Relaxed));
    while low < high {
        let middle = (low + high) / 2;
        let found = SORTED_ADDRESS[middle].load(Ordering::Relaxed);
        match found.cmp(&(address as usize)) {
            std::cmp::Ordering::Less => low = middle + 1,
            std::cmp::Ordering::Greater => high = middle,
            std::cmp::Ordering::Equal => {
                return Some(Entry(SORTED_ENTRY[middle].load(Ordering::Relaxed)));
            }
        }
    }
    None
}

/// From the first to behind the last address of an entry point; none until resolved.
pub fn range() -> Option<std::ops::Range<usize>> {
    let len = SORTED_LEN.load(Ordering::Relaxed);
    if !READY.load(Ordering::Acquire) || len == 0 {
        return None;
    }
    let first = SORTED_ADDRESS[0].load(Ordering::Relaxed);
    Some(first..SORTED_ADDRESS[len - 1].load(Ordering::Relaxed) + 1)
}

/// The file that an address belongs to, and the symbol at the address.
pub struct Object {
    /// The address at which the file was loaded.
    pub base: usize,
    /// The symbol that begins exactly there, or null.
    pub symbol: *const c_char,
    /// Path of the file, or null; the loader's, for as long as the file is loaded.
    pub file: *const c_char,
}

/// Asks the loader what `address` belongs to.
pub fn object_of(address: usize) -> Option<Object> {
    let mut info = std::mem::MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: dladdr writes the structure if it returns non-zero, and takes any address.
    let found: c_int = unsafe { libc::dladdr(address as *const c_void, info.as_mut_ptr()) };
    if found == 0 {
        return None;
    }
    // SAFETY: written above; all zero is a valid value as well.
    let info = unsafe { info.assume_init() };
    let exact = info.dli_saddr as usize == address;
    Some(Object {
        base: info.dli_fbase as usize,
        file: info.dli_fname,
        symbol: if exact {
            info.dli_sname
        } else {
            std::ptr::null()
        },
    })
}

/// If `address` lies in libcuda: the name of the exported function that begins there, if one does.
pub fn in_libcuda(address: *const ()) -> Option<Option<&'static CStr>> {
    let object = object_of(address as usize)?;
    if object.base == 0 || object.base != LIBCUDA.load(Ordering::Relaxed) {
        return None;
    }
    if object.symbol.is_null() {
        return Some(None);
    }
    // SAFETY: the loader's string table of a library that is never unloaded (see resolve).
    Some(Some(unsafe { CStr::from_ptr(object.symbol) }))
}

/// How many copies of the driver library the process has mapped. More than one means that calls may reach a copy that
/// is not the one wrapped (`dlmopen`, a second file). 1 if it cannot be told.
pub fn copies_mapped() -> usize {
    let Ok(maps) = std::fs::read("/proc/self/maps") else {
        return 1;
    };
    // A file may have any name.
    let maps = String::from_utf8_lossy(&maps);
    let base = LIBCUDA.load(Ordering::Relaxed);
    count_copies(&maps, base)
}

/// Lines of `maps` that map the beginning of a file that is libcuda by name, or the file that is mapped at `base`.
fn count_copies(maps: &str, base: usize) -> usize {
    let lines = || {
        maps.lines().filter_map(|line| {
            let mut fields = line.split_whitespace();
            let start = usize::from_str_radix(fields.next()?.split('-').next()?, 16).ok()?;
            let _permissions = fields.next()?;
            let offset = u64::from_str_radix(fields.next()?, 16).ok()?;
            let _device = fields.next()?;
            let inode = fields.next()?;
            let path = fields.next()?;
            Some((start, offset, inode, path))
        })
    };
    let ours = lines().find(|l| l.0 == base).map(|l| (l.2, l.3));
    let count = lines()
        .filter(|(_, offset, inode, path)| {
            let file = path.rsplit('/').next().unwrap_or_default();
            *offset == 0 && (ours == Some((*inode, *path)) || file.starts_with("libcuda.so"))
        })
        .count();
    count.max(1)
}

#[cfg(test)]
mod tests {
    use super::count_copies;

    #[test]
    fn copies_are_counted_by_their_beginnings() {
        let one = "7f00-7f10 r--p 00000000 08:01 42 /usr/lib/libcuda.so.580.1\n\
                   7f10-7f20 r-xp 00010000 08:01 42 /usr/lib/libcuda.so.580.1\n\
                   7f30-7f40 r--p 00000000 08:01 43 /usr/lib/libcudart.so.13\n\
                   7f40-7f50 rw-p 00000000 00:00 0 \n";
        assert_eq!(count_copies(one, 0x7f00), 1);
        let two = format!("{one}8000-8010 r--p 00000000 08:01 42 /usr/lib/libcuda.so.580.1\n");
        assert_eq!(count_copies(&two, 0x7f00), 2);
        let renamed = "7f00-7f10 r--p 00000000 08:01 42 /x/libphos_gpu_sim.so\n";
        assert_eq!(count_copies(renamed, 0x7f00), 1);
    }
}
