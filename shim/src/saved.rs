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
//! * Only while the process is detached, when hardly anybody but the driver has a reason to ask for that; otherwise `mmap` costs a comparison, and neither
//!   allocates nor locks, nor looks anything up.
//! * The driver's thread waits for no lock that anybody holds while the program's own code runs, and writes nothing: the job stands still until it is done.
//! * What cannot be had is left to the kernel, as if this were not here.

use std::ffi::{c_int, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Less is not worth a thread, in bytes.
const WORTH: usize = 16 << 20;
/// A huge page on machines with pages of 4 KiB, in bytes.
const HUGE: usize = 2 << 20;
/// Bytes of pages that are taken in one call: whoever wants to map something waits for its end.
const STEP: usize = 16 << 20;
/// Threads that take pages: more have to wait for each other.
const THREADS: usize = 4;
/// The stack of such a thread, in bytes: the application's own may be of any size.
const STACK: usize = 512 << 10;
/// How long one step may take before huge pages are taken for too dear: the kernel makes them of small ones where memory is in pieces. Memory that
/// the machine has not used for long takes 25 ms.
const DEAR: Duration = Duration::from_millis(100);
/// How long the other threads are waited for: what they have not taken by then comes when it is touched.
const PATIENCE: Duration = Duration::from_secs(1);

/// Whether the process is detached.
static DETACHED: AtomicBool = AtomicBool::new(false);
/// The `mmap` behind this library: the C library's, or another one's that wants to know; 0: the system call.
static NEXT: AtomicUsize = AtomicUsize::new(0);
/// What the driver got since the process was detached, in bytes, and how long that took, in microseconds.
static GIVEN: AtomicUsize = AtomicUsize::new(0);
static TAKEN_IN: AtomicUsize = AtomicUsize::new(0);

/// Looks up the `mmap` that this library's stands before, when the process starts: others watch it (MPI libraries, tracers), in whichever process.
#[used]
#[unsafe(link_section = ".init_array")]
static START: extern "C" fn() = start;

extern "C" fn start() {
    let next = crate::driver::next(c"mmap");
    NEXT.store(next.expose_provenance(), Ordering::Release);
}

/// The process is detached: the driver may ask from now on.
pub fn begin() {
    GIVEN.store(0, Ordering::Relaxed);
    TAKEN_IN.store(0, Ordering::Relaxed);
    DETACHED.store(true, Ordering::Release);
}

/// It has no reason to ask any longer. What it got since the beginning: bytes, and how long they took.
pub fn end() -> Option<(usize, Duration)> {
    let was_detached = DETACHED.swap(false, Ordering::AcqRel);
    let given = GIVEN.load(Ordering::Relaxed);
    let taken_in = Duration::from_micros(TAKEN_IN.load(Ordering::Relaxed) as u64);
    (was_detached && given > 0).then_some((given, taken_in))
}

/// The size of a page in bytes.
fn page() -> Option<usize> {
    // SAFETY: takes a number.
    usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).ok()
}

/// How long this thread has worked so far: other than what passes on a clock, it says nothing of how busy the machine is.
fn worked() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: writes one structure.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The pages of a mapping, which threads take one step after another.
struct Pages {
    base: usize,
    end: usize,
    /// Where the next step begins.
    next: AtomicUsize,
    /// Threads beside the one that waits.
    others: AtomicUsize,
    /// Set when nobody waits any longer: the mapping may be another one's soon.
    given_up: AtomicBool,
}

impl Pages {
    /// Takes pages until there are none left.
    fn take(&self) {
        while !self.given_up.load(Ordering::Acquire) {
            let at = self.next.fetch_add(STEP, Ordering::Relaxed);
            if at >= self.end {
                break;
            }
            let part = std::ptr::with_exposed_provenance_mut(at);
            let began = worked();
            // Where the kernel cannot be asked to (before 5.14), pages are taken as they are touched.
            // SAFETY: a part of a mapping of `give`, of which no byte is changed.
            unsafe { libc::madvise(part, STEP.min(self.end - at), libc::MADV_POPULATE_WRITE) };
            let took = worked().saturating_sub(began);
            let are_left = self.next.load(Ordering::Relaxed) < self.end;
            if took > DEAR && are_left && !self.given_up.load(Ordering::Acquire) {
                let all = std::ptr::with_exposed_provenance_mut(self.base);
                // SAFETY: as above.
                unsafe { libc::madvise(all, self.end - self.base, libc::MADV_NOHUGEPAGE) };
            }
        }
    }

    /// Takes all of them, with several threads.
    fn take_all(self) {
        let pages = Arc::new(self);
        for _ in 1..THREADS {
            // Not more than there is to do.
            if pages.next.load(Ordering::Relaxed) + STEP < pages.end {
                help(&pages);
            }
        }
        pages.take();
        let began = Instant::now();
        while pages.others.load(Ordering::Acquire) > 0 {
            if began.elapsed() > PATIENCE {
                pages.given_up.store(true, Ordering::Release);
                break;
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

/// Starts another thread. By the C library alone: this is the driver's thread, and the start of one by Rust's library takes the loader's lock, which a
/// thread that waits at the gate may have.
fn help(pages: &Arc<Pages>) {
    extern "C" fn run(pages: *mut c_void) -> *mut c_void {
        // SAFETY: what `help` gave away.
        let pages = unsafe { Arc::from_raw(pages.cast::<Pages>().cast_const()) };
        pages.take();
        pages.others.fetch_sub(1, Ordering::AcqRel);
        std::ptr::null_mut()
    }
    let of_thread = Arc::into_raw(Arc::clone(pages));
    pages.others.fetch_add(1, Ordering::AcqRel);
    let mut thread = std::mem::MaybeUninit::<libc::pthread_t>::uninit();
    let mut signals = std::mem::MaybeUninit::<(libc::sigset_t, libc::sigset_t)>::uninit();
    // SAFETY: each is written before it is read. The new thread inherits the mask, so that the application's handlers run on its own threads; nobody
    // else knows the thread, which is detached once.
    let failed = unsafe {
        let (all, before) = {
            let both = signals.as_mut_ptr();
            (&raw mut (*both).0, &raw mut (*both).1)
        };
        libc::sigfillset(all);
        libc::pthread_sigmask(libc::SIG_SETMASK, all, before);
        let argument = of_thread.cast_mut().cast();
        let mut how = std::mem::MaybeUninit::<libc::pthread_attr_t>::uninit();
        libc::pthread_attr_init(how.as_mut_ptr());
        libc::pthread_attr_setstacksize(how.as_mut_ptr(), STACK);
        let failed = libc::pthread_create(thread.as_mut_ptr(), how.as_ptr(), run, argument);
        libc::pthread_attr_destroy(how.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut());
        if failed == 0 {
            libc::pthread_detach(thread.assume_init());
        }
        failed
    };
    if failed != 0 {
        // SAFETY: the thread that it was for does not exist.
        drop(unsafe { Arc::from_raw(of_thread) });
        pages.others.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A new mapping of so many bytes in huge pages, all of which are there.
#[cold]
fn give(bytes: usize) -> Option<*mut c_void> {
    let began = Instant::now();
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
    let pages = Pages {
        base,
        end,
        next: AtomicUsize::new(base),
        others: AtomicUsize::new(0),
        given_up: AtomicBool::new(false),
    };
    pages.take_all();
    GIVEN.fetch_add(bytes, Ordering::Relaxed);
    TAKEN_IN.fetch_add(began.elapsed().as_micros() as usize, Ordering::Relaxed);
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
    if DETACHED.load(Ordering::Relaxed)
        && is_drivers(at, bytes, access, flags)
        && let Some(given) = give(bytes)
    {
        return given;
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
        let ended = end();
        let given = GIVEN.load(Ordering::Relaxed);
        assert_eq!((ended.map(|ended| ended.0), given), (Some(whole), whole));
        assert_eq!(end(), None);
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
    fn no_page_is_taken_once_nobody_waits() {
        let bytes = 2 * STEP;
        let at = ask(bytes, AS_DRIVER & !libc::MAP_POPULATE);
        let base = at.expose_provenance();
        let pages = |given_up| Pages {
            base,
            end: base + bytes,
            next: AtomicUsize::new(base),
            others: AtomicUsize::new(0),
            given_up: AtomicBool::new(given_up),
        };
        pages(true).take_all();
        assert_eq!(mapping(at).unwrap().1, 0);
        pages(false).take_all();
        assert_eq!(mapping(at).unwrap().1, bytes);
        give_back(at, bytes);
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
