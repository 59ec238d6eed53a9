//! The end of the process: the agent is told its code, so that a process that says nothing was killed.
//!
//! Whoever started a process of the job asks for its code, and takes it from the agent, which must know whether a rank failed.
//!
//! # Rules
//!
//! * Two ways lead out: `exit`, which calls [`at_exit`], and `_exit`, which is called directly by children of `multiprocessing` and is
//!   exported here. The code that was said counts, whatever happens to the process after. It is said again to an agent that connects later: destructors
//!   may wait at the gate for a whole checkpoint.
//! * `_exit` may be called by a signal handler: no lock, no allocation. What is sent was encoded when the shim started.

use std::ffi::{c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

use phos_protocol::channel;
use phos_protocol::shim::ToAgent;

use crate::{driver, link, log, mode};

/// A packet for each code that a process can end with.
static PACKETS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
/// The code that the process ends with; -1: it does not end.
static CODE: AtomicI32 = AtomicI32::new(-1);
/// The `_exit` behind this library: the C library's, or that of another one that has to know.
static REAL: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" {
    /// Has the C library call `handler` with the code of `exit` (on_exit(3)).
    fn on_exit(handler: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// Has the end of this process told from now on.
pub fn register() {
    // SAFETY: a function of this library, which is never unloaded.
    if unsafe { on_exit(at_exit, std::ptr::null_mut()) } != 0 {
        log::debug!("the end of this process is not told: on_exit failed");
        return;
    }
    REAL.store(driver::next(c"_exit"), Ordering::Release);
    let encode = |code| channel::encode(&ToAgent::Ends { code }, 0);
    if let Ok(packets) = (0..=u8::MAX).map(encode).collect() {
        // Once: the start of the shim is claimed.
        let _ = PACKETS.set(packets);
    }
}

/// What an agent is told that has just connected, if the end of this process is told.
pub fn greeting() -> Option<ToAgent> {
    PACKETS.get()?;
    Some(match u8::try_from(CODE.load(Ordering::Acquire)) {
        Ok(code) => ToAgent::Ends { code },
        Err(_) => ToAgent::TellsEnd,
    })
}

extern "C" fn at_exit(code: c_int, _: *mut c_void) {
    tell(code);
}

/// Says that the process ends, if it is one of those that say so and not a child that shares its memory.
fn tell(code: c_int) {
    // The kernel keeps as much of it.
    let code = code & 0xff;
    let packet = usize::try_from(code)
        .ok()
        .and_then(|code| PACKETS.get()?.get(code));
    if let Some(packet) = packet
        && mode::active()
    {
        CODE.store(code, Ordering::Release);
        link::say_last(packet);
    }
}

/// Replaces the C library's.
///
/// # Safety
/// The same as for the C library's function.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _exit(code: c_int) -> ! {
    tell(code);
    let real = REAL.load(Ordering::Acquire);
    if !real.is_null() {
        // SAFETY: the address of a function of this name.
        let real = unsafe { std::mem::transmute::<*mut c_void, extern "C" fn(c_int)>(real) };
        real(code);
    }
    loop {
        // SAFETY: ends the process, with all of its threads.
        unsafe { libc::syscall(libc::SYS_exit_group, code) };
    }
}

/// The same by the name that C gave it.
///
/// # Safety
/// The same as for the C library's function.
#[cfg(not(test))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn _Exit(code: c_int) -> ! {
    // SAFETY: the caller's promise.
    unsafe { _exit(code) }
}
