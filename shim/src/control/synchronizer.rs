//! A thread that waits for contexts, so that the control thread can give up waiting.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use crate::sync::{lock, wait};
use crate::{abi, context, memory};

struct State {
    started: bool,
    /// Work given out; `None` inside when it was taken.
    contexts: Option<Vec<usize>>,
    busy: bool,
    cancelled: bool,
    /// First result that is not success.
    result: u32,
}

static STATE: Mutex<State> = Mutex::new(State {
    started: false,
    contexts: None,
    busy: false,
    cancelled: false,
    result: 0,
});
static CHANGED: Condvar = Condvar::new();

/// Whether the thread still waits for work of an earlier attempt.
pub fn is_busy() -> bool {
    lock(&STATE).busy
}

/// Begins to wait for the contexts. Only when not busy.
pub fn begin(contexts: Vec<usize>) -> std::io::Result<()> {
    let start = {
        let mut state = lock(&STATE);
        state.contexts = Some(contexts);
        state.busy = true;
        state.cancelled = false;
        state.result = abi::SUCCESS;
        !std::mem::replace(&mut state.started, true)
    };
    CHANGED.notify_all();
    if start && let Err(error) = super::spawn("phos-sync", run) {
        let mut state = lock(&STATE);
        state.started = false;
        state.busy = false;
        state.contexts = None;
        return Err(error);
    }
    Ok(())
}

/// The outcome, if it is there within `limit`.
pub fn outcome(limit: Duration) -> Option<u32> {
    let state = lock(&STATE);
    let state = if state.busy {
        wait(&CHANGED, state, limit)
    } else {
        state
    };
    (!state.busy).then_some(state.result)
}

/// Nobody waits for the outcome any more: contexts not begun are left alone, since the application may destroy them.
pub fn cancel() {
    lock(&STATE).cancelled = true;
}

fn run() {
    let _relaxed = memory::Relaxed::new();
    let mut state = lock(&STATE);
    loop {
        let Some(contexts) = state.contexts.take() else {
            state = wait(&CHANGED, state, Duration::from_secs(3600));
            continue;
        };
        for context in contexts {
            if state.cancelled {
                break;
            }
            drop(state);
            let result = context::synchronize(context);
            state = lock(&STATE);
            // A context that is gone has no work.
            if !matches!(
                result,
                abi::SUCCESS
                    | abi::INVALID_CONTEXT
                    | abi::CONTEXT_IS_DESTROYED
                    | abi::INVALID_HANDLE
            ) && state.result == abi::SUCCESS
            {
                state.result = result;
            }
        }
        state.busy = false;
        CHANGED.notify_all();
    }
}
