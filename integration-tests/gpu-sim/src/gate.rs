//! What every call passes on its way in: the checkpoint lock, and the check that this is the process that initialised.
//!
//! Rules. `cuCheckpointProcessLock` closes the gate: a call that has not entered waits until it opens again, a call
//! that is inside is let finish; questions about devices and the current context are answered at any time (measured on
//! an H200). Calls that look at what the GPU has finished are not held back either: they read pages that a checkpoint takes
//! away, so a process with a thread in one of them is killed by it. Calls made from a host callback are refused. After `fork` the child holds no driver.

use crate::driver::{self, Driver};
use crate::error::{CUresult, ERROR_NOT_PERMITTED, Res};
use crate::sync::lock;
use std::cell::Cell;
use std::sync::{Condvar, Mutex};
use std::time::Instant;

thread_local! {
    static IN_CALLBACK: Cell<bool> = const { Cell::new(false) };
}

#[derive(Default)]
struct State {
    closed: bool,
    inside: u64,
}

/// Counts the calls inside and keeps new ones out.
#[derive(Default)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

/// A call inside the gate.
struct Pass<'a>(&'a Gate);

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.inside -= 1;
        if state.closed && state.inside == 0 {
            self.0.changed.notify_all();
        }
    }
}

impl Gate {
    /// Runs a call that is not CUDA's.
    pub fn pass<T>(&self, body: impl FnOnce() -> T) -> T {
        let _pass = self.enter();
        body()
    }

    fn enter(&self) -> Pass<'_> {
        let mut state = lock(&self.state);
        while state.closed {
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        state.inside += 1;
        Pass(self)
    }

    /// Keeps new calls out, and waits for those inside; opens again and says false when `deadline` passes first.
    pub fn close(&self, deadline: Option<Instant>) -> bool {
        let mut state = lock(&self.state);
        state.closed = true;
        while state.inside > 0 {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                state.closed = false;
                self.changed.notify_all();
                return false;
            }
            let step = left.unwrap_or(std::time::Duration::from_secs(3600));
            state = self
                .changed
                .wait_timeout(state, step)
                .unwrap_or_else(std::sync::PoisonError::into_inner)
                .0;
        }
        true
    }

    pub fn open(&self) {
        lock(&self.state).closed = false;
        self.changed.notify_all();
    }
}

/// A result as C sees it.
pub fn code(result: Res) -> CUresult {
    match result {
        Ok(()) => 0,
        Err(error) => error.0,
    }
}

/// Runs the body of a driver call.
pub fn call(body: impl FnOnce(&'static Driver) -> Res) -> CUresult {
    let driver = match driver::get() {
        Ok(driver) => driver,
        Err(error) => return error.0,
    };
    if IN_CALLBACK.try_with(Cell::get).unwrap_or(false) {
        return ERROR_NOT_PERMITTED.0;
    }
    let _pass = driver.gate.enter();
    code(body(driver))
}

/// Runs the body of a call that needs no driver.
pub fn free(body: impl FnOnce() -> Res) -> CUresult {
    code(body())
}

/// Runs the body of a call that a locked process may still make.
pub fn question(body: impl FnOnce(&'static Driver) -> Res) -> CUresult {
    match driver::get() {
        Ok(driver) => code(body(driver)),
        Err(error) => error.0,
    }
}

/// Runs the body of a call that polls or waits for what the GPU has finished: the lock does not hold it back, and the
/// process dies if it is checkpointed at the beginning or the end of the call (measured on an H200).
pub fn polled(body: impl FnOnce(&'static Driver) -> Res) -> CUresult {
    let driver = match driver::get() {
        Ok(driver) => driver,
        Err(error) => return error.0,
    };
    if IN_CALLBACK.try_with(Cell::get).unwrap_or(false) {
        return ERROR_NOT_PERMITTED.0;
    }
    driver.checkpoint.touch_pages();
    let result = code(body(driver));
    driver.checkpoint.touch_pages();
    result
}

/// Runs a host callback, in which driver calls are refused.
pub fn callback(run: impl FnOnce()) {
    let _ = IN_CALLBACK.try_with(|flag| flag.set(true));
    run();
    let _ = IN_CALLBACK.try_with(|flag| flag.set(false));
}
