//! The gate: every call that enqueues work or touches memory is counted while it is inside the driver; when the gate is
//! closed such calls wait outside, holding nothing.
//!
//! Open, an entry and a leave are one atomic addition each, on a cache line that few threads share. The counter goes up
//! before the flag is read, and the closer sets the flag before it reads the counters; both are sequentially consistent,
//! so either the call sees the closed gate and steps back, or the closer sees the call.
//!
//! A thread that is inside may enter again (the driver calls itself through exported names); a host callback runs on a
//! thread of the driver's, which is outside.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};

const STRIPES: usize = 64;

const OPEN: u32 = 0;
const CLOSED: u32 = 1;

#[repr(align(128))]
struct Stripe(AtomicU32);

static INSIDE: [Stripe; STRIPES] = [const { Stripe(AtomicU32::new(0)) }; STRIPES];
static GATE: AtomicU32 = AtomicU32::new(OPEN);
static NEXT_STRIPE: AtomicU32 = AtomicU32::new(0);

struct Local {
    depth: Cell<u32>,
    /// Index of the stripe plus one; 0: none yet.
    stripe: Cell<u32>,
}

thread_local! {
    // No destructor: one would take the loader's lock at its registration.
    static LOCAL: Local = const { Local { depth: Cell::new(0), stripe: Cell::new(0) } };
}

/// Proof of being inside; leaves when dropped.
#[must_use]
pub struct Inside {
    stripe: u32,
}

/// Enters, waiting while the gate is closed.
#[inline]
pub fn enter() -> Inside {
    LOCAL.with(|local| {
        let depth = local.depth.get();
        local.depth.set(depth + 1);
        let mut stripe = local.stripe.get();
        if stripe == 0 {
            stripe = NEXT_STRIPE.fetch_add(1, Ordering::Relaxed) % STRIPES as u32 + 1;
            local.stripe.set(stripe);
        }
        if depth == 0 {
            let counter = &INSIDE[stripe as usize - 1].0;
            counter.fetch_add(1, Ordering::SeqCst);
            if GATE.load(Ordering::SeqCst) != OPEN {
                wait_outside(counter);
            }
        }
        Inside { stripe }
    })
}

impl Drop for Inside {
    #[inline]
    fn drop(&mut self) {
        LOCAL.with(|local| {
            let depth = local.depth.get() - 1;
            local.depth.set(depth);
            if depth == 0 {
                INSIDE[self.stripe as usize - 1]
                    .0
                    .fetch_sub(1, Ordering::SeqCst);
            }
        });
    }
}

#[cold]
fn wait_outside(counter: &AtomicU32) {
    loop {
        counter.fetch_sub(1, Ordering::SeqCst);
        wait_until_open();
        counter.fetch_add(1, Ordering::SeqCst);
        if GATE.load(Ordering::SeqCst) == OPEN {
            return;
        }
    }
}

/// Waits while the gate is closed, without entering.
pub fn wait_until_open() {
    while GATE.load(Ordering::SeqCst) != OPEN {
        // An interrupted or spurious return only looks again.
        let _ =
            rustix::thread::futex::wait(&GATE, rustix::thread::futex::Flags::PRIVATE, CLOSED, None);
    }
}

/// Closes the gate. Calls inside go on; see [`is_idle`].
pub fn close() {
    GATE.store(CLOSED, Ordering::SeqCst);
}

/// Whether, since [`close`], every call inside has left. Once true it stays true until [`open`].
pub fn is_idle() -> bool {
    // Each stripe by itself: after the flag is set, nobody passes it in a stripe that was seen empty.
    INSIDE.iter().all(|s| s.0.load(Ordering::SeqCst) == 0)
}

/// Opens the gate and wakes who waits.
pub fn open() {
    GATE.store(OPEN, Ordering::SeqCst);
    // It can fail only for a bad address.
    let _ =
        rustix::thread::futex::wake(&GATE, rustix::thread::futex::Flags::PRIVATE, u32::MAX >> 1);
}

/// Whether the gate is closed.
pub fn is_closed() -> bool {
    GATE.load(Ordering::SeqCst) != OPEN
}

/// In a forked child, which has one thread: forget everybody else.
pub fn reset_in_child() {
    GATE.store(OPEN, Ordering::SeqCst);
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, AtomicU64};
    use std::time::{Duration, Instant};

    use super::*;

    static ONE_GATE: Mutex<()> = Mutex::new(());

    fn wait_idle() {
        let start = Instant::now();
        while !is_idle() {
            assert!(start.elapsed() < Duration::from_secs(10));
            std::thread::yield_now();
        }
    }

    #[test]
    fn nobody_is_inside_while_closed_and_idle() {
        let _one = crate::sync::lock(&ONE_GATE);
        static HELD: AtomicBool = AtomicBool::new(false);
        static DONE: AtomicBool = AtomicBool::new(false);
        static PASSES: AtomicU64 = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while !DONE.load(Ordering::SeqCst) {
                        let _a = enter();
                        let _nested = enter();
                        assert!(!HELD.load(Ordering::SeqCst));
                        PASSES.fetch_add(1, Ordering::Relaxed);
                        assert!(!HELD.load(Ordering::SeqCst));
                    }
                });
            }
            for _ in 0..200 {
                close();
                wait_idle();
                HELD.store(true, Ordering::SeqCst);
                let before = PASSES.load(Ordering::SeqCst);
                std::thread::sleep(Duration::from_micros(200));
                assert_eq!(before, PASSES.load(Ordering::SeqCst));
                HELD.store(false, Ordering::SeqCst);
                open();
                std::thread::sleep(Duration::from_micros(200));
            }
            DONE.store(true, Ordering::SeqCst);
        });
        assert!(PASSES.load(Ordering::SeqCst) > 100);
        assert!(is_idle());
    }

    /// `cargo test --release -p phos-shim -- --ignored --nocapture cost_of_the_gate`
    #[test]
    #[ignore = "a measurement"]
    fn cost_of_the_gate() {
        let _one = crate::sync::lock(&ONE_GATE);
        for threads in [1, 2] {
            const ROUNDS: u32 = 20_000_000;
            let start = Instant::now();
            std::thread::scope(|scope| {
                for _ in 0..threads {
                    scope.spawn(|| {
                        for _ in 0..ROUNDS {
                            drop(std::hint::black_box(enter()));
                        }
                    });
                }
            });
            let ns = start.elapsed().as_nanos() as f64 / f64::from(ROUNDS);
            println!("gate, {threads} thread(s): {ns:.1} ns per enter and leave");
        }
    }
}
