//! What the kernel's scheduler is told of a thread, and what it says.
//!
//! Sources: sched(7) on policies, sched_setscheduler(2) on what it takes to leave `SCHED_IDLE`, the kernel's `Documentation/scheduler/sched-stats.rst` on
//! `/proc/PID/schedstat`, which each thread has as well.

use std::io;

use rustix::process::Pid;

/// When a thread gets a processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// In turn with others, as their nice values say.
    Normal,
    /// When nobody of another class wants it, and a little so that it does not starve.
    Idle,
}

/// Changes a thread's class, whichever process it is of. The calling thread: the result of `gettid`.
///
/// # Errors
/// The thread is gone, is somebody else's, or has the class [`Class::Idle`], which nobody leaves without `CAP_SYS_NICE` or a limit
/// `RLIMIT_NICE` that allows the thread's nice value.
pub fn set_class(thread: Pid, class: Class) -> io::Result<()> {
    let policy = match class {
        Class::Normal => libc::SCHED_OTHER,
        Class::Idle => libc::SCHED_IDLE,
    };
    let none = libc::sched_param { sched_priority: 0 };
    // SAFETY: the pointer is to a value on the stack, which the kernel reads and does not keep.
    let result = unsafe { libc::sched_setscheduler(thread.as_raw_pid(), policy, &raw const none) };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// A thread's class; none: the thread is gone, or has another one still.
pub fn class_of(thread: Pid) -> Option<Class> {
    // SAFETY: takes and returns a number.
    match unsafe { libc::sched_getscheduler(thread.as_raw_pid()) } {
        libc::SCHED_OTHER => Some(Class::Normal),
        libc::SCHED_IDLE => Some(Class::Idle),
        _ => None,
    }
}

/// How long a thread of this process ran, and how long it had to wait for a processor, since it was started, in ns. None: the thread is gone, or the
/// kernel does not count that.
pub fn ran_and_waited(thread: Pid) -> Option<(u64, u64)> {
    let thread = thread.as_raw_pid();
    let counts = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut counts = counts.split_ascii_whitespace().map(str::parse);
    Some((counts.next()?.ok()?, counts.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use rustix::thread::gettid;

    use super::*;

    #[test]
    fn a_thread_becomes_idle_and_others_do_not() {
        let before = class_of(gettid());
        let idle = std::thread::spawn(|| {
            set_class(gettid(), Class::Idle).unwrap();
            class_of(gettid())
        });
        assert_eq!(idle.join().unwrap(), Some(Class::Idle));
        assert_eq!((before, class_of(gettid())), (Some(Class::Normal), before));
    }

    #[test]
    fn a_thread_that_is_not_there_has_no_class() {
        // More than the kernel ever gives.
        let gone = Pid::from_raw(i32::MAX).unwrap();
        assert!(set_class(gone, Class::Idle).is_err());
        assert_eq!(class_of(gone), None);
        assert_eq!(ran_and_waited(gone), None);
    }

    #[test]
    fn what_a_thread_has_run_is_counted() {
        let ran = || ran_and_waited(gettid()).unwrap().0;
        let before = ran();
        while ran() < before + 1_000_000 {
            std::hint::spin_loop();
        }
    }
}
