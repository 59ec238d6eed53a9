//! `libphos_criu_limits.so`: lets CRIU dump a process of another user without `CAP_SYS_RESOURCE`.
//!
//! CRIU asks for the resource limits of each process by `prlimit64`, which the kernel answers only to a process with the same
//! real user and group, or with that capability: the one thing of a dump that root with the other capabilities is refused.
//! The same numbers stand in `/proc/PID/limits`, for everybody to read. The agent preloads this library into a CRIU that dumps
//! such a process, where it does not have the capability; CRIU makes this call through the C library's `syscall`, which is taken over here.
//!
//! # Rules
//!
//! * Every call goes to the kernel first, as it is. Only the refusal (`EPERM`) of a `prlimit64` that reads is answered otherwise.
//! * What cannot be read or understood stays the kernel's refusal: CRIU then fails as it would without this library.
//! * It needs the C library and nothing else, not Rust's standard library either: that names libraries (`libdl.so.2`,
//!   `libpthread.so.0`) which the CRIU bundle, with a newer C library of its own, does not have, and those of the machine do not
//!   go together with it.
//! * The library is for CRIU alone. Neither the job nor the agent has it.

#![cfg_attr(not(test), no_std)]

use core::ffi::{c_int, c_long};

// The standard library would ask for it.
#[link(name = "c")]
unsafe extern "C" {}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // SAFETY: takes nothing, does not return.
    unsafe { libc::abort() }
}

/// Named by the unwinding tables of Rust's core library as it is shipped. Nothing unwinds here.
#[cfg(not(test))]
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
    let mut path = [0_u8; 40];
    let mut text = [0_u8; 4096];
    // SAFETY: `snprintf` writes no more than it is told, and ends it with a zero; one number for one place in the format.
    let file = unsafe {
        libc::snprintf(
            path.as_mut_ptr().cast(),
            path.len(),
            c"/proc/%ld/limits".as_ptr(),
            pid,
        );
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
    find(text.get(..length)?, usize::try_from(resource).ok()?)
}

fn set_errno(errno: c_int) {
    // SAFETY: the C library gives the address of this thread's own errno.
    unsafe { *libc::__errno_location() = errno };
}

/// A system call as the kernel takes it: the result, or the negative of an error.
///
/// # Safety
/// As of the system call.
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
/// As of the system call.
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

#[cfg(test)]
mod tests {
    use super::*;

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
