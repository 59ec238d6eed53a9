//! A thread of the job's stays where it is until the control thread has had a look at it: outside the gate, and not for long.
//!
//! | state | a thread that comes by | the control thread |
//! |---|---|---|
//! | [`IDLE`] | passes, for the price of a load | |
//! | [`WANTED`] | makes it [`REACHED`], stays | looks every few ms |
//! | [`REACHED`] | passes | does what it wanted, then makes it [`IDLE`] |
//!
//! A thread that nobody has looked at in time continues, and makes it [`WANTED`] again: what is [`REACHED`] is reached now.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use rustix::time::Timespec;

use crate::gate;

const IDLE: u32 = 0;
const WANTED: u32 = 1;
const REACHED: u32 = 2;

/// A place where one thread of the job's is awaited.
pub struct Rendezvous(AtomicU32);

impl Rendezvous {
    /// A place where nobody is awaited.
    pub const fn new() -> Self {
        Self(AtomicU32::new(IDLE))
    }

    /// Whether a thread that comes by now is awaited.
    #[inline]
    pub fn is_wanted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == WANTED
    }

    /// Stays until [`Self::forget`], so long at most, if it is this thread that is awaited; then it does that first.
    #[cold]
    pub fn stay(&self, at_most: Duration, first: impl FnOnce()) {
        // Inside a call, or one of the shim's own threads: not what is awaited.
        if gate::is_inside() {
            return;
        }
        let change = |from, to| {
            let order = Ordering::SeqCst;
            self.0.compare_exchange(from, to, order, order).is_ok()
        };
        if !change(WANTED, REACHED) {
            return;
        }
        first();
        let begun = Instant::now();
        while self.is_reached() {
            let Some(left) = at_most.checked_sub(begun.elapsed()) else {
                // Unless it is let go just now.
                change(REACHED, WANTED);
                return;
            };
            let left = Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            };
            // Interrupted, spurious or late: the loop looks again.
            let _ = futex::wait(&self.0, futex::Flags::PRIVATE, REACHED, Some(&left));
        }
    }

    /// The next thread that comes by is awaited.
    pub fn want(&self) {
        self.0.store(WANTED, Ordering::SeqCst);
    }

    /// Whether one has come by since [`Self::want`].
    pub fn is_reached(&self) -> bool {
        self.0.load(Ordering::SeqCst) == REACHED
    }

    /// Nobody is awaited any more: a thread that stays continues, to the gate or past it. Whether one stayed until now.
    pub fn forget(&self) -> bool {
        let stayed = self.0.swap(IDLE, Ordering::SeqCst) == REACHED;
        if stayed {
            // It can fail only for a bad address.
            let _ = futex::wake(&self.0, futex::Flags::PRIVATE, u32::MAX >> 1);
        }
        stayed
    }

    /// Resets the state in a forked child, which is asked nothing.
    pub fn reset_in_child(&self) {
        self.0.store(IDLE, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_thread_stays_until_it_is_let_go() {
        static PLACE: Rendezvous = Rendezvous::new();
        // Nobody is awaited.
        PLACE.stay(Duration::from_secs(60), || {});
        PLACE.want();
        assert!(PLACE.is_wanted() && !PLACE.is_reached());
        let stays = std::thread::spawn(|| PLACE.stay(Duration::from_secs(60), || {}));
        while !PLACE.is_reached() {
            std::thread::yield_now();
        }
        // Another one passes.
        PLACE.stay(Duration::from_secs(60), || {});
        assert!(PLACE.forget());
        stays.join().unwrap();
        assert!(!PLACE.is_wanted() && !PLACE.is_reached());
    }

    #[test]
    fn a_thread_that_nobody_looks_at_continues() {
        let place = Rendezvous::new();
        place.want();
        let mut times = 0;
        for _ in 0..2 {
            place.stay(Duration::from_millis(1), || times += 1);
            // It is not there any more: the next one is awaited.
            assert!(place.is_wanted());
        }
        assert_eq!(times, 2);
        assert!(!place.forget() && !place.is_wanted());
    }
}
