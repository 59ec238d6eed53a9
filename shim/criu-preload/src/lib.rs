//! `libphos_criu_preload.so`: lets CRIU dump a process of another user without `CAP_SYS_RESOURCE`, work under a seccomp filter,
//! leave the content of memory to the agent, and get at the files of a job with the rights of the job's user.
//!
//! # Limits
//!
//! CRIU asks for the resource limits of each process by `prlimit64`, which the kernel answers only to a process with the same
//! real user and group, or with that capability: the only step of a dump that root with the other capabilities is refused. The
//! same numbers stand in `/proc/PID/limits`, for everybody to read. The agent preloads this library into a CRIU that dumps such a
//! process, where it does not have the capability; CRIU makes this call through the C library's `syscall`, which is taken over
//! here.
//!
//! # Filters
//!
//! To a process that has a seccomp filter itself, the kernel neither suspends the filters of others nor shows them
//! (`PTRACE_O_SUSPEND_SECCOMP`, `PTRACE_SECCOMP_GET_FILTER`), whatever its capabilities. In a container with a seccomp profile,
//! CRIU has that profile's filter, and so has the job, with the one more that the agent put on it. That one is known: the agent
//! gives its program to CRIU in [`FILTER`], and an image gets it alone. The filters that a container puts on its processes come,
//! for a restored job as for CRIU, from the container that it is restored in.
//!
//! CRIU then works on the job with the job's filters in force. They must let through what its code in the job calls: the agent's does,
//! and `docker/seccomp.json` does.
//!
//! # Pages
//!
//! CRIU copies the job's memory in one thread, while the job stands still. The agent does the same with all cores. Where it says
//! so in [`PAGES`], CRIU is told that no private memory has a page of its own (`PAGEMAP_SCAN`) and that shared memory is one hole
//! (`SEEK_DATA`): it saves everything but the content, and the agent puts that into the image before CRIU is done
//! (`sidecar/agent/src/dump/pages`). Only questions about other processes are answered that way, and of shared memory only those
//! about what is no file: anonymous mappings and memfds.
//!
//! # Mappings
//!
//! What CRIU asks the kernel of each process's mappings, the agent has read for all of them at once: [`mappings`].
//!
//! # Paths
//!
//! CRIU restores what the job had by paths, as root. Where the job is another user's, these calls are made with that user's rights:
//! [`user`].
//!
//! # Runs
//!
//! What CRIU leaves in the firewall when it is killed is named so that it can be told whose it is: [`run`].
//!
//! # Rules
//!
//! * But for that, every call goes to the kernel first, as it is. Only refusals are answered otherwise: that (`EPERM`) of a `prlimit64` that reads, that
//!   (`EPERM`) of options with a suspension, which are set without it, and that (`EACCES`) of looking at a filter.
//! * A thread whose filters are other than CRIU's and one more has a filter of its own, which cannot be known here. The refusal
//!   stays.
//! * What cannot be read or understood stays the kernel's refusal: CRIU then fails as it would without this library.
//! * It needs the C library and nothing else, not Rust's standard library either: that names libraries (`libdl.so.2`,
//!   `libpthread.so.0`) which the CRIU bundle, with a newer C library of its own, does not have, and the machine's own do not
//!   work with that C library.
//! * The library is for CRIU alone: it is loaded into neither the job nor the agent.

// The standard library is left out of what does not unwind: a release, and what the Makefile builds for tests (`CRIU_PRELOAD`).
#![cfg_attr(all(not(test), panic = "abort"), no_std)]

mod mappings;
mod run;
mod user;

use core::ffi::{CStr, c_int, c_long};

// The standard library would ask for it.
#[link(name = "c")]
unsafe extern "C" {}

#[cfg(all(not(test), panic = "abort"))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: takes nothing, does not return.
    unsafe { libc::abort() }
}

/// Named by the unwinding tables of Rust's core library as it is shipped. Nothing unwinds here.
#[cfg(all(not(test), panic = "abort"))]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// A soft and a hard limit as the kernel has them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Limit {
    soft: u64,
    hard: u64,
}

const UNLIMITED: u64 = u64::MAX;

/// Finds a resource in the text of `/proc/PID/limits`: a heading, then one line for each resource in the order of their numbers, its
/// name padded to the same width.
///
/// ```text
/// Limit                     Soft Limit           Hard Limit           Units
/// Max cpu time              unlimited            unlimited            seconds
/// ```
fn find(text: &[u8], resource: usize) -> Option<Limit> {
    let mut lines = text.split(|&byte| byte == b'\n');
    let heading = lines.next()?;
    // Of "Soft Limit".
    let names = heading.iter().position(|&byte| byte == b'S')?;
    let line = lines.nth(resource)?.get(names..)?;
    let mut words = line
        .split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty());
    Some(Limit {
        soft: number(words.next()?)?,
        hard: number(words.next()?)?,
    })
}

fn number(word: &[u8]) -> Option<u64> {
    if word == b"unlimited" {
        return Some(UNLIMITED);
    }
    word.iter().try_fold(0_u64, |number, &digit| {
        let digit = digit.checked_sub(b'0').filter(|&digit| digit < 10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

/// Reads a resource of a process.
fn read(pid: c_long, resource: c_long) -> Option<Limit> {
    let mut text = [0_u8; 4096];
    let text = contents(c"/proc/%ld/limits", pid, &mut text)?;
    find(text, usize::try_from(resource).ok()?)
}

/// What a file of a process says, as far as there is room. `format` is the file's path with a place for the PID.
fn contents<'t>(format: &CStr, pid: c_long, text: &'t mut [u8]) -> Option<&'t [u8]> {
    let mut path = [0_u8; 40];
    // SAFETY: `snprintf` writes no more than it is told, and ends it with a zero; one number for one place in the format.
    let file = unsafe {
        libc::snprintf(path.as_mut_ptr().cast(), path.len(), format.as_ptr(), pid);
        libc::open(path.as_ptr().cast(), libc::O_RDONLY | libc::O_CLOEXEC)
    };
    if file < 0 {
        return None;
    }
    let mut length = 0;
    while let Some(rest) = text.get_mut(length..).filter(|rest| !rest.is_empty()) {
        // SAFETY: as many bytes as there is room for.
        let more = unsafe { libc::read(file, rest.as_mut_ptr().cast(), rest.len()) };
        match usize::try_from(more) {
            Ok(more) if more > 0 => length = more.saturating_add(length),
            _ => break,
        }
    }
    // SAFETY: it was opened above, and nobody else knows it.
    unsafe { libc::close(file) };
    text.get(..length)
}

/// The variable in which CRIU has the program of the filter that the agent puts on the job: each byte in two hexadecimal digits.
const FILTER: &CStr = c"PHOS_JOB_FILTER";

/// The most instructions that are taken from there; the kernel itself takes 4096.
const INSTRUCTIONS: usize = 64;

/// An instruction: `struct sock_filter`.
type Instruction = [u8; 8];

/// Reads a program of instructions. None: it is none, or there is no room for it.
fn program(text: &[u8], room: &mut [Instruction; INSTRUCTIONS]) -> Option<usize> {
    let (digits, rest) = text.as_chunks::<16>();
    if digits.is_empty() || !rest.is_empty() {
        return None;
    }
    let value = |digit: u8| char::from(digit).to_digit(16);
    for (n, digits) in digits.iter().enumerate() {
        let place = room.get_mut(n)?;
        for (byte, pair) in place.iter_mut().zip(digits.as_chunks::<2>().0) {
            let [high, low] = pair.map(value);
            *byte = u8::try_from(high? << 4 | low?).ok()?;
        }
    }
    Some(digits.len())
}

/// How many filters a thread has by its `/proc/TID/status`.
fn filters_in(status: &[u8]) -> Option<u64> {
    let line = status
        .split(|&byte| byte == b'\n')
        .find_map(|line| line.strip_prefix(b"Seccomp_filters:"))?;
    number(line.trim_ascii())
}

fn filters(pid: c_long) -> Option<u64> {
    let mut text = [0_u8; 8192];
    filters_in(contents(c"/proc/%ld/status", pid, &mut text)?)
}

/// Whether a thread has the filters of this process and one more.
fn has_one_more(tid: c_long) -> bool {
    // SAFETY: takes nothing.
    let own = c_long::from(unsafe { libc::getpid() });
    match (filters(own), filters(tid)) {
        (Some(own), Some(its)) => own.checked_add(1) == Some(its),
        _ => false,
    }
}

fn set_errno(errno: c_int) {
    // SAFETY: the C library gives the address of this thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}

/// A system call as the kernel takes it: the result, or the negative of an error.
///
/// # Safety
/// The same as for the system call.
unsafe fn kernel(number: c_long, arguments: [c_long; 6]) -> c_long {
    let [a, b, c, d, e, f] = arguments;
    let result: c_long;
    // SAFETY: the kernel changes the registers that are named and memory that the arguments say.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") e,
            in("r9") f,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a => result,
            in("x1") b,
            in("x2") c,
            in("x3") d,
            in("x4") e,
            in("x5") f,
            options(nostack),
        );
    }
    result
}

/// In place of the C library's, which takes a number and up to six arguments, whatever they are: on the architectures there are,
/// they arrive where seven words arrive.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn syscall(
    number: c_long,
    a: c_long,
    b: c_long,
    c: c_long,
    d: c_long,
    e: c_long,
    f: c_long,
) -> c_long {
    // SAFETY: what the caller gave.
    let result = unsafe { kernel(number, [a, b, c, d, e, f]) };
    // The last page is no address and no result of any call.
    if !(-4095..0).contains(&result) {
        return result;
    }
    // prlimit64(pid, resource, new, old)
    let (pid, resource, new, old) = (a, b, c, d);
    let refused = result == c_long::from(-libc::EPERM);
    if refused
        && number == libc::SYS_prlimit64
        && new == 0
        && old != 0
        && let Some(limit) = read(pid, resource)
    {
        // SAFETY: the caller gave the address of what the kernel would have written: two 64-bit numbers.
        unsafe { (old as *mut [u64; 2]).write_unaligned([limit.soft, limit.hard]) };
        return 0;
    }
    set_errno(result.wrapping_neg() as c_int);
    -1
}

/// Requests of `ptrace` by number, where the kernel's answer differs from the C library's or is not the last word here.
const PEEKS: core::ops::RangeInclusive<c_int> = 1..=3;
const SET_OPTIONS: c_int = 0x4200;
const GET_FILTER: c_int = 0x420c;
const GET_METADATA: c_int = 0x420d;
/// `PTRACE_O_SUSPEND_SECCOMP`, one of the options of `ptrace`.
const SUSPEND_SECCOMP: c_long = 1 << 21;

/// In place of the C library's. To a look it gives what was found, where the kernel writes it to an address.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ptrace(
    request: c_int,
    pid: c_int,
    address: c_long,
    data: c_long,
) -> c_long {
    let call = |data: c_long| {
        let arguments = [request.into(), pid.into(), address, data, 0, 0];
        // SAFETY: what the caller gave.
        unsafe { kernel(libc::SYS_ptrace, arguments) }
    };
    let mut found: c_long = 0;
    let result = match PEEKS.contains(&request) {
        true => call((&raw mut found) as c_long),
        false => call(data),
    };
    let refusal = c_int::try_from(result.wrapping_neg()).unwrap_or(0);
    let answer = match (request, refusal) {
        (SET_OPTIONS, libc::EPERM) if data & SUSPEND_SECCOMP != 0 => call(data & !SUSPEND_SECCOMP),
        // SAFETY: `data` is an address by the caller's word, or zero.
        (GET_FILTER, libc::EACCES) => unsafe { known_filter(pid.into(), address, data) },
        // SAFETY: as above.
        (GET_METADATA, libc::EACCES) => unsafe { known_metadata(pid.into(), address, data) },
        _ => result,
    };
    if (-4095..0).contains(&answer) {
        set_errno(answer.wrapping_neg() as c_int);
        return -1;
    }
    if PEEKS.contains(&request) {
        // -1 may be what was found.
        set_errno(0);
        return found;
    }
    answer
}

/// The only filter of a thread: how many instructions it has, and the instructions to `to` if that is not zero.
///
/// # Safety
/// There is room for them at `to`.
unsafe fn known_filter(tid: c_long, index: c_long, to: c_long) -> c_long {
    let mut room = [[0; 8]; INSTRUCTIONS];
    let length = match variable(FILTER).and_then(|text| program(text, &mut room)) {
        Some(length) if has_one_more(tid) => length,
        _ => return c_long::from(-libc::EACCES),
    };
    if index != 0 {
        return c_long::from(-libc::ENOENT);
    }
    if to != 0 {
        let mut place = to as *mut Instruction;
        for instruction in room.iter().take(length) {
            // SAFETY: the caller has asked before how many there are.
            unsafe {
                place.write_unaligned(*instruction);
                place = place.add(1);
            }
        }
    }
    length as c_long
}

/// With which flags it was put on: none.
///
/// # Safety
/// `at` is the address of so many bytes as `size` says: the filter's index, then a place for its flags.
unsafe fn known_metadata(tid: c_long, size: c_long, at: c_long) -> c_long {
    let both = size_of::<[u64; 2]>() as c_long;
    if at == 0 || size < both || !has_one_more(tid) {
        return c_long::from(-libc::EACCES);
    }
    // SAFETY: two 64-bit numbers by the caller's word.
    unsafe {
        let place = at as *mut [u64; 2];
        let [index, _] = place.read_unaligned();
        if index != 0 {
            return c_long::from(-libc::ENOENT);
        }
        place.write_unaligned([index, 0]);
    }
    both
}

/// The variable with which CRIU leaves the content of memory to the agent.
const PAGES: &CStr = c"PHOS_PAGES";

fn leaves_pages() -> bool {
    variable(PAGES).is_some()
}

/// What a variable of CRIU's environment says.
fn variable(name: &CStr) -> Option<&'static [u8]> {
    // SAFETY: a name that ends with a zero; what it gives does too, and nobody changes the environment of CRIU.
    unsafe {
        let text = libc::getenv(name.as_ptr());
        (!text.is_null()).then(|| CStr::from_ptr(text).to_bytes())
    }
}

/// What a file descriptor leads to, as far as there is room.
fn link(file: c_int, room: &mut [u8]) -> Option<&[u8]> {
    let mut path = [0_u8; 40];
    // SAFETY: `snprintf` writes no more than it is told, and ends it with a zero; one number for one place in the format. As many
    // bytes are read as there is room for.
    let length = unsafe {
        libc::snprintf(
            path.as_mut_ptr().cast(),
            path.len(),
            c"/proc/self/fd/%d".as_ptr(),
            file,
        );
        libc::readlink(path.as_ptr().cast(), room.as_mut_ptr().cast(), room.len())
    };
    room.get(..usize::try_from(length).ok()?)
}

/// The process whose pages a file tells of, if it is `/proc/PID/pagemap`.
fn pagemap_of(link: &[u8]) -> Option<u64> {
    number(link.strip_prefix(b"/proc/")?.strip_suffix(b"/pagemap")?)
}

/// `struct pm_scan_arg` of the kernel's `fs.h`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Scan {
    size: u64,
    flags: u64,
    start: u64,
    end: u64,
    walk_end: u64,
    vec: u64,
    vec_len: u64,
    max_pages: u64,
    category_inverted: u64,
    category_mask: u64,
    category_anyof_mask: u64,
    return_mask: u64,
}

/// The request of `PAGEMAP_SCAN`, an `ioctl` of `/proc/PID/pagemap`.
const PAGEMAP_SCAN: libc::c_ulong = 0xc060_6610;
/// `PAGE_IS_PRESENT | PAGE_IS_SWAPPED`: a caller that asks for these asks what there is to copy, and not for guards.
const CONTENT: u64 = 1 << 3 | 1 << 4;

/// In place of the C library's, which takes whatever the request wants: a word, where there is anything.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn ioctl(file: c_int, request: libc::c_ulong, argument: c_long) -> c_int {
    if request == PAGEMAP_SCAN && argument != 0 && leaves_pages() {
        let scan = argument as *mut Scan;
        // SAFETY: the caller gave the address of what the request takes.
        let mut asked = unsafe { scan.read_unaligned() };
        // SAFETY: takes nothing.
        let own = u64::try_from(unsafe { libc::getpid() }).ok();
        let mut room = [0_u8; 64];
        let link = link(file, &mut room);
        if link.is_none() {
            // Half of a process must not be CRIU's and half the agent's.
            set_errno(libc::EIO);
            return -1;
        }
        let of = link.and_then(pagemap_of);
        if asked.category_anyof_mask == CONTENT && of.is_some() && of != own {
            asked.walk_end = asked.end;
            // SAFETY: as above.
            unsafe { scan.write_unaligned(asked) };
            return 0;
        }
    }
    let arguments = [file.into(), request.cast_signed(), argument, 0, 0, 0];
    // SAFETY: what the caller gave.
    let result = unsafe { kernel(libc::SYS_ioctl, arguments) };
    if (-4095..0).contains(&result) {
        set_errno(result.wrapping_neg() as c_int);
        return -1;
    }
    result as c_int
}

/// The device that a regular file lies on; `None` for any other kind of file.
fn device(file: c_int) -> Option<libc::dev_t> {
    // SAFETY: a struct of numbers may be all zeros; the kernel fills it.
    let (found, done) = unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        let done = libc::fstat(file, &raw mut found);
        (found, done)
    };
    (done == 0 && found.st_mode & libc::S_IFMT == libc::S_IFREG).then_some(found.st_dev)
}

/// The device that memfds are on: a file system of the kernel's own, where nobody can make a file by a name.
fn memfd_device() -> Option<libc::dev_t> {
    // SAFETY: a name that ends with a zero; the descriptor is closed below.
    let own = unsafe { libc::memfd_create(c"phos".as_ptr(), libc::MFD_CLOEXEC) };
    if own < 0 {
        return None;
    }
    let found = device(own);
    // SAFETY: it was opened above, and nobody else knows it.
    unsafe { libc::close(own) };
    found
}

/// Whether a file is memory that processes share and that CRIU leaves. None: that cannot be found out.
fn is_shared_memory(file: c_int) -> Option<bool> {
    let Some(on) = device(file) else {
        return Some(false);
    };
    if on != memfd_device()? {
        return Some(false);
    }
    // System V's is there as well, and numbered otherwise.
    let mut room = [0_u8; 64];
    Some(!link(file, &mut room)?.starts_with(b"/SYSV"))
}

/// In place of the C library's.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn lseek64(file: c_int, offset: i64, whence: c_int) -> i64 {
    if whence == libc::SEEK_DATA && leaves_pages() {
        let errno = match is_shared_memory(file) {
            Some(false) => None,
            // There is nothing from there to its end.
            Some(true) => Some(libc::ENXIO),
            // Half of a file must not be CRIU's and half the agent's.
            None => Some(libc::EIO),
        };
        if let Some(errno) = errno {
            set_errno(errno);
            return -1;
        }
    }
    // SAFETY: what the caller gave; it is no address.
    let result = unsafe {
        kernel(
            libc::SYS_lseek,
            [file.into(), offset, whence.into(), 0, 0, 0],
        )
    };
    if (-4095..0).contains(&result) {
        set_errno(result.wrapping_neg() as c_int);
        return -1;
    }
    result
}

/// The same under the name that it has where there is no other.
///
/// # Safety
/// The same as for the system call.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn lseek(file: c_int, offset: i64, whence: c_int) -> i64 {
    // SAFETY: what the caller gave.
    unsafe { lseek64(file, offset, whence) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pagemap_is_known_by_its_path() {
        assert_eq!(pagemap_of(b"/proc/417/pagemap"), Some(417));
        assert_eq!(pagemap_of(b"/proc/self/pagemap"), None);
        assert_eq!(pagemap_of(b"/proc/417/maps"), None);
        assert_eq!(pagemap_of(b"/tmp/proc/417/pagemap"), None);
    }

    #[test]
    fn a_descriptor_leads_to_its_file() {
        use std::os::fd::AsRawFd;
        let file = std::fs::File::open("/proc/self/pagemap").unwrap();
        let mut room = [0_u8; 64];
        let own = u64::from(std::process::id());
        let of = link(file.as_raw_fd(), &mut room).and_then(pagemap_of);
        assert_eq!(of, Some(own));
        assert_eq!(link(-1, &mut room), None);
    }

    #[test]
    fn shared_memory_is_known_by_its_file_system() {
        use std::os::fd::AsRawFd;
        // SAFETY: a name that ends with a zero.
        let memory = unsafe { libc::memfd_create(c"any".as_ptr(), libc::MFD_CLOEXEC) };
        assert_eq!(is_shared_memory(memory), Some(true));
        let dir = std::env::temp_dir().join(format!("memfd:{}", std::process::id()));
        let file = std::fs::File::create(&dir).unwrap();
        std::fs::remove_file(&dir).unwrap();
        assert_eq!(is_shared_memory(file.as_raw_fd()), Some(false));
        assert_eq!(is_shared_memory(-1), Some(false));
        // SAFETY: the descriptor of above.
        unsafe { libc::close(memory) };
    }

    #[test]
    fn files_are_sought_in_as_ever() {
        use std::os::fd::AsRawFd;
        let file = std::fs::File::open("/proc/self/exe").unwrap();
        // SAFETY: no addresses.
        let (at, nowhere) = unsafe {
            (
                lseek64(file.as_raw_fd(), 7, libc::SEEK_SET),
                lseek(-1, 0, 0),
            )
        };
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((at, nowhere, errno), (7, -1, Some(libc::EBADF)));
    }

    #[test]
    fn a_program_is_read_whole_or_not_at_all() {
        let mut room = [[0; 8]; INSTRUCTIONS];
        let text = b"2000000004000000060000000000ff7F";
        assert_eq!(program(text, &mut room), Some(2));
        assert_eq!(room[0], [0x20, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(room[1], [6, 0, 0, 0, 0, 0, 0xff, 0x7f]);
        assert_eq!(program(b"", &mut room), None);
        assert_eq!(program(&text[1..], &mut room), None);
        assert_eq!(program(b"200000000400000g", &mut room), None);
        let most = vec![b'0'; INSTRUCTIONS * 16];
        assert_eq!(program(&most, &mut room), Some(INSTRUCTIONS));
        assert_eq!(program(&[&most[..], text].concat(), &mut room), None);
    }

    #[test]
    fn filters_are_counted_where_the_kernel_says_so() {
        assert_eq!(
            filters_in(b"Seccomp:\t2\nSeccomp_filters:\t3\nSpeculation"),
            Some(3)
        );
        assert_eq!(filters_in(b"Seccomp:\t2\n"), None);
        assert_eq!(filters_in(b"Seccomp_filters:\tmany\n"), None);
        // This process has as many as it has, and not one more.
        let own = c_long::from(std::process::id());
        assert!(filters(own).is_some());
        assert!(!has_one_more(own));
    }

    #[test]
    fn ptrace_is_the_kernels_where_nothing_is_refused() {
        // SAFETY: a request for a process that does not exist writes nothing.
        let result = unsafe { ptrace(GET_FILTER, -1, 0, 0) };
        let errno = std::io::Error::last_os_error().raw_os_error();
        assert_eq!((result, errno), (-1, Some(libc::ESRCH)));
    }

    #[test]
    fn limits_of_proc_are_those_of_the_call() {
        let text = std::fs::read("/proc/self/limits").unwrap();
        for resource in 0..16 {
            let mut limit = libc::rlimit64 {
                rlim_cur: 0,
                rlim_max: 0,
            };
            // SAFETY: a valid pointer to a struct of the right type.
            let result = unsafe { libc::getrlimit64(resource, &raw mut limit) };
            assert_eq!(result, 0);
            let expected = Limit {
                soft: limit.rlim_cur,
                hard: limit.rlim_max,
            };
            assert_eq!(find(&text, resource as usize), Some(expected), "{resource}");
            let own = c_long::from(std::process::id());
            assert_eq!(read(own, c_long::from(resource)), Some(expected));
        }
        assert_eq!(find(&text, 16), None);
        assert_eq!(find(b"", 0), None);
        assert_eq!(find(b"Limit  Soft Limit\nMax cpu time\n", 0), None);
        assert_eq!(read(-1, 0), None);
    }

    #[test]
    fn other_calls_are_the_kernels() {
        let call = |number, a: c_long, b: c_long| {
            // SAFETY: calls without a pointer.
            let result = unsafe { syscall(number, a, b, 0, 0, 0, 0) };
            (result, std::io::Error::last_os_error().raw_os_error())
        };
        let own = c_long::from(std::process::id());
        assert_eq!(call(libc::SYS_getpid, 0, 0).0, own);
        assert_eq!(call(libc::SYS_close, -1, 0), (-1, Some(libc::EBADF)));
        // No place for the answer: the kernel's own.
        assert_eq!(
            call(libc::SYS_prlimit64, own, 999),
            (-1, Some(libc::EINVAL))
        );
    }
}
