//! The stacks of GPU threads, given up while the job is detached.
//!
//! The driver backs the stack of every thread that a GPU can run at once: limit × threads, 264 MiB on an H200 at the default of 1
//! KiB. It saves that memory with the control state and brings it back, and CRIU writes it down in between, although no kernel
//! runs and nothing in it is ever read again. So the limit is lowered before, and put back before the job continues.
//!
//! # Rules
//!
//! * It is changed only while the gate is closed and every context idle. `cuCtxGetLimit` and `cuCtxSetLimit` wait at the gate, so
//!   that the application never sees the lowered limit.
//! * It is an optimisation: a limit that cannot be lowered stays. One that cannot be put back, because somebody took the memory,
//!   is tried for again at the next attach; kernels get the stack that they were compiled to need all the same, since the driver
//!   grows it at the launch.
//! * What was lowered is remembered in the process, so that an image of it puts it back wherever it is restored.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::sync::lock;
use crate::table::real;
use crate::{abi, context, log};

/// `CU_LIMIT_STACK_SIZE`, bytes for each GPU thread.
const STACK: u32 = 0;
/// What is asked for; the driver rounds it up to its own minimum.
const LOWERED: usize = 16;
/// How long memory that is not there is waited for.
const PATIENCE: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

/// What a lowered limit was, and what it became.
#[derive(Clone, Copy)]
struct Limit {
    own: usize,
    lowered: usize,
}

/// The limits of the contexts that were lowered.
static LIMITS: Mutex<BTreeMap<usize, Limit>> = Mutex::new(BTreeMap::new());

/// The stack limit of the current context, in bytes per GPU thread.
fn current() -> Option<usize> {
    let mut limit = 0_usize;
    // SAFETY: writes one size.
    let result = unsafe { real::cuCtxGetLimit(&mut limit, STACK) };
    (result == abi::SUCCESS).then_some(limit)
}

/// Lowers the limit of every context.
pub fn give_up() {
    for context in context::live() {
        let known = lock(&LIMITS).get(&context).copied();
        let lowered = context::with(context, || {
            let own = current()?;
            // It could not be put back, and the application has not set another since.
            if own <= LOWERED || known.is_some_and(|known| known.lowered == own) {
                return known;
            }
            // SAFETY: no pointers; the context is idle and the gate closed.
            let result = unsafe { real::cuCtxSetLimit(STACK, LOWERED) };
            if result != abi::SUCCESS {
                return None;
            }
            let lowered = current().unwrap_or(LOWERED);
            Some(Limit { own, lowered })
        });
        match lowered.flatten() {
            Some(limit) => lock(&LIMITS).insert(context, limit),
            None => lock(&LIMITS).remove(&context),
        };
    }
}

/// Forgets a context that is gone.
pub fn forget(context: usize) {
    lock(&LIMITS).remove(&context);
}

/// Puts the limits back.
pub fn take_back() {
    let lowered: Vec<(usize, usize)> = lock(&LIMITS).iter().map(|(c, l)| (*c, l.own)).collect();
    for (context, limit) in lowered {
        let start = Instant::now();
        loop {
            // SAFETY: no pointers; the context is idle and the gate closed.
            let result = context::with(context, || unsafe { real::cuCtxSetLimit(STACK, limit) });
            match result {
                // A context that is gone needs none.
                None | Some(abi::SUCCESS) => {
                    lock(&LIMITS).remove(&context);
                    break;
                }
                Some(result) if start.elapsed() >= PATIENCE => {
                    log::error!(
                        "the stack limit of {limit} bytes could not be set again ({result}): kernels that need more stack \
                         than they were compiled for may fail until it can; free device memory"
                    );
                    break;
                }
                Some(_) => std::thread::sleep(STEP),
            }
        }
    }
}
