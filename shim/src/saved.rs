//! The memory that the driver saves control state in.
//!
//! `cuCheckpointProcessCheckpoint` works in the process that is checkpointed, on a thread of the driver's. It asks the C library for one private
//! mapping for all that it saves, with `MAP_POPULATE`: 776 MB for PyTorch on an H200 (580.159.04). The kernel takes and clears 189,000 pages for it, one
//! after another, while the job stands still: with huge pages the call takes 0.34 s instead of 0.45 s, and giving them back is faster as well. So it gets
//! huge pages here, which several threads take.
//!
//! # Rules
//!
//! * It is what was asked for, in all that a program can tell: private memory of zeros.
//! * Only while the process is detached, when the driver alone has a reason to ask for that; otherwise `mmap` costs a comparison and the system
//!   call, and neither allocates nor locks, nor looks anything up.
//! * What cannot be had is left to the kernel, as if this were not here.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::sync::{lock, wait};
use crate::{control, log};

/// Less is not worth a thread, in bytes.
const WORTH: usize = 16 << 20;
/// A huge page, in bytes.
const HUGE: usize = 2 << 20;
/// Bytes of pages that are taken in one call: whoever wants to map something waits for its end.
const STEP: usize = 16 << 20;
/// Threads that take pages: more have to wait for each other.
const THREADS: usize = 4;
/// How long one of the others is waited for: what it has not taken by then comes when it is touched.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the process is detached.
static DETACHED: AtomicBool = AtomicBool::new(false);
/// The C library's `mmap`, or another one preloaded after this library; 0: the system call.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Looks up the `mmap` that this library's stands before.
pub fn start() {
    #[cfg(target_arch = "x86_64")]
    let version = c"GLIBC_2.2.5";
    #[cfg(target_arch = "aarch64")]
    let version = c"GLIBC_2.17";
    if let Some(next) = crate::driver::next(c"mmap", version) {
        NEXT.store(next as usize, Ordering::Release);
    }
}

/// The process is detached: the driver may ask from now on.
pub fn begin() {
    DETACHED.store(true, Ordering::Release);
}

/// It has no reason to ask any longer.
pub fn end() {
    DETACHED.store(false, Ordering::Release);
}

/// The size of a page in bytes.
fn page() -> Option<usize> {
    // SAFETY: takes a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
}

/// Takes the pages of a part of a mapping, where the kernel can be asked to (from 5.14); others are taken as they are touched.
fn take_pages(from: usize, to: usize) {
    for at in (from..to).step_by(STEP) {
        let part = std::ptr::with_exposed_provenance_mut(at);
        // SAFETY: a part of a mapping of `give`, of which no byte is changed.
        unsafe { libc::madvise(part, STEP.min(to - at), libc::MADV_POPULATE_WRITE) };
    }
}

/// Threads that are at work.
type Left = Arc<(Mutex<usize>, Condvar)>;

/// The same with several threads.
fn take_all_pages(from: usize, to: usize) {
    let part = (to - from).div_ceil(THREADS).next_multiple_of(HUGE);
    let left = Left::default();
    // The first is this thread's.
    for at in (from..to).step_by(part).skip(1) {
        *lock(&left.0) += 1;
        let counter = Arc::clone(&left);
        let begun = control::spawn("phos-pages", move || {
            take_pages(at, to.min(at + part));
            *lock(&counter.0) -= 1;
            counter.1.notify_all();
        });
        if begun.is_err() {
            *lock(&left.0) -= 1;
        }
    }
    take_pages(from, to.min(from + part));
    let mut count = lock(&left.0);
    while *count > 0 {
        let before = *count;
        count = wait(&left.1, count, PATIENCE);
        if *count == before {
            break;
        }
    }
}

/// A new mapping of so many bytes in huge pages, all of which are there.
#[cold]
fn give(bytes: usize) -> Option<*mut c_void> {
    let bytes = bytes.checked_next_multiple_of(page()?)?;
    // Older kernels put it anywhere.
    let whole = bytes.checked_add(HUGE)?;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping, wherever the kernel likes.
    let start = unsafe { forward(std::ptr::null_mut(), whole, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    let start = start.expose_provenance();
    let base = start.next_multiple_of(HUGE);
    let end = base + bytes;
    for (at, length) in [(start, base - start), (end, start + whole - end)] {
        if length > 0 {
            // SAFETY: a part of the mapping that nobody knows of.
            unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(at), length) };
        }
    }
    let at = std::ptr::with_exposed_provenance_mut(base);
    // SAFETY: the mapping is this function's own.
    unsafe { libc::madvise(at, bytes, libc::MADV_HUGEPAGE) };
    take_all_pages(base, end);
    Some(at)
}

/// Calls the kernel, or another library's `mmap` that stands before it.
///
/// # Safety
/// The same as for `mmap`.
unsafe fn forward(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    type Mmap =
        unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, c_int, libc::off_t) -> *mut c_void;
    let next = NEXT.load(Ordering::Acquire);
    if next == 0 {
        // SAFETY: the caller's promise.
        let result = unsafe { libc::syscall(libc::SYS_mmap, at, bytes, access, flags, fd, offset) };
        return std::ptr::with_exposed_provenance_mut(result as usize);
    }
    // SAFETY: the address of a function of that name.
    let next: Mmap = unsafe { std::mem::transmute(next) };
    // SAFETY: the caller's promise.
    unsafe { next(at, bytes, access, flags, fd, offset) }
}

/// Whether this is how the driver asks.
fn is_drivers(at: *mut c_void, bytes: usize, access: c_int, flags: c_int) -> bool {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
    at.is_null() && bytes >= WORTH && access == libc::PROT_READ | libc::PROT_WRITE && flags == FLAGS
}

/// Stands before the C library's.
///
/// # Safety
/// The same as for `mmap`.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off_t,
) -> *mut c_void {
    if DETACHED.load(Ordering::Relaxed) && is_drivers(at, bytes, access, flags) {
        let began = Instant::now();
        if let Some(given) = give(bytes) {
            log::debug!(
                "{bytes} bytes in huge pages for control state, taken in {} us",
                began.elapsed().as_micros()
            );
            return given;
        }
        log::debug!("no huge pages for {bytes} bytes of control state");
    }
    // SAFETY: the caller's promise.
    unsafe { forward(at, bytes, access, flags, fd, offset) }
}

/// The same by the name that it has for offsets of 64 bits, which it has here in any case.
///
/// # Safety
/// The same as for `mmap64`.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    bytes: usize,
    access: c_int,
    flags: c_int,
    fd: c_int,
    offset: libc::off64_t,
) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { mmap(at, bytes, access, flags, fd, offset) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCESS: c_int = libc::PROT_READ | libc::PROT_WRITE;
    const AS_DRIVER: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;

    fn ask(bytes: usize, flags: c_int) -> *mut c_void {
        // SAFETY: a new mapping.
        let at = unsafe { mmap(std::ptr::null_mut(), bytes, ACCESS, flags, -1, 0) };
        assert_ne!(at, libc::MAP_FAILED);
        at
    }

    fn give_back(at: *mut c_void, bytes: usize) {
        // SAFETY: a mapping of the test's.
        assert_eq!(unsafe { libc::munmap(at, bytes) }, 0);
    }

    /// The length of the mapping that begins there in bytes, how much of it is there, and what the kernel was told of it.
    fn mapping(at: *mut c_void) -> Option<(usize, usize, String)> {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut lines = smaps.lines();
        let start = format!("{:x}-", at.addr());
        let first = lines.find(|line| line.starts_with(&start))?;
        let end = first[start.len()..].split(' ').next().unwrap();
        let length = usize::from_str_radix(end, 16).unwrap() - at.addr();
        let mut value = |name: &str| lines.find_map(|line| line.strip_prefix(name)).unwrap();
        let resident = value("Rss:")
            .trim()
            .strip_suffix(" kB")
            .unwrap()
            .parse::<usize>();
        Some((
            length,
            resident.unwrap() << 10,
            value("VmFlags:").to_owned(),
        ))
    }

    #[test]
    fn what_the_driver_asks_for_while_detached_is_of_huge_pages_and_all_there() {
        // Neither a multiple of a huge page nor of a page, as the driver asks.
        let bytes = (40_usize << 20) + 5000;
        let whole = bytes.next_multiple_of(page().unwrap());
        begin();
        let at = ask(bytes, AS_DRIVER);
        let small = ask(WORTH - 1, AS_DRIVER);
        let lazy = ask(bytes, AS_DRIVER & !libc::MAP_POPULATE);
        end();
        let running = ask(bytes, AS_DRIVER);
        let (length, resident, flags) = mapping(at).unwrap();
        assert_eq!((length, resident, at.addr() % HUGE), (whole, whole, 0));
        assert!(flags.split(' ').any(|flag| flag == "hg"), "{flags}");
        // SAFETY: the test's own mapping.
        let content = unsafe { std::slice::from_raw_parts_mut(at.cast::<u8>(), bytes) };
        assert!(content.iter().all(|&byte| byte == 0));
        content.fill(7);
        for other in [small, lazy, running] {
            let flags = mapping(other).map(|(_, _, flags)| flags);
            assert!(flags.is_none_or(|flags| !flags.contains("hg")));
        }
        give_back(at, bytes);
        assert!(mapping(at).is_none());
        for (at, bytes) in [(small, WORTH - 1), (lazy, bytes), (running, bytes)] {
            give_back(at, bytes);
        }
    }

    #[test]
    fn an_error_is_the_kernels() {
        let flags = libc::MAP_PRIVATE | libc::MAP_POPULATE;
        // SAFETY: no mapping comes of it.
        let at = unsafe { mmap(std::ptr::null_mut(), WORTH, ACCESS, flags, -1, 0) };
        assert_eq!(at, libc::MAP_FAILED);
        let error = std::io::Error::last_os_error().raw_os_error();
        assert_eq!(error, Some(libc::EBADF));
    }
}
