//! A thread that waits for contexts, so that the control thread can give up waiting.
//!
//! A wait that was given up continues, since nothing can end it, with the gate open again. Its end tells how long the work that
//! was in flight takes: a job with so much of it queued is no persistent kernel, and falls quiet when it waits for that work
//! itself.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::relaxed::Relaxed;
use crate::sync::{lock, wait};
use crate::{abi, context};

struct State {
    started: bool,
    /// Work given out; `None` inside when it was taken.
    contexts: Option<Vec<usize>>,
    busy: bool,
    /// A call for the contexts given out is, or was, in the driver.
    entered: bool,
    cancelled: bool,
    /// First result that is not success.
    result: u32,
    began: Option<Instant>,
    /// From its begin until it was given up: the gate was closed.
    closed: Option<Duration>,
    /// See [`take_lasts`].
    lasts: Option<Duration>,
}

static STATE: Mutex<State> = Mutex::new(State {
    started: false,
    contexts: None,
    busy: false,
    entered: false,
    cancelled: false,
    result: 0,
    began: None,
    closed: None,
    lasts: None,
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
        state.entered = false;
        state.cancelled = false;
        state.result = abi::SUCCESS;
        state.began = Some(Instant::now());
        state.closed = None;
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

/// Whether the first call has been made, or there was none to make, within `limit`. What is cancelled before makes none.
pub fn entered(limit: Duration) -> Option<()> {
    let until = Instant::now() + limit;
    let mut state = lock(&STATE);
    while state.busy && !state.entered {
        let left = until.checked_duration_since(Instant::now())?;
        state = wait(&CHANGED, state, left);
    }
    Some(())
}

/// Nobody waits for the outcome any more: contexts not begun are left alone, since the application may destroy them.
pub fn cancel() {
    let mut state = lock(&STATE);
    state.cancelled = true;
    state.closed = state.began.map(|began| began.elapsed());
}

/// How long the work lasted that the last wait came to the end of; told once, so that it does not outlive what it was seen of.
pub fn take_lasts() -> Option<Duration> {
    lock(&STATE).lasts.take()
}

/// If the work ended soon after a wait was given up, the time until then does not count: because the gate was opened (ranks that
/// wait for each other), or because little was left.
fn lasts(took: Duration, closed: Option<Duration>) -> Duration {
    let closed = closed.unwrap_or_default();
    let open = took.saturating_sub(closed);
    if open < closed / 4 { open } else { took }
}

fn run() {
    let _relaxed = Relaxed::new();
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
            if !std::mem::replace(&mut state.entered, true) {
                CHANGED.notify_all();
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
        state.lasts = state
            .began
            .take()
            .map(|began| lasts(began.elapsed(), state.closed));
        CHANGED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_open_gate_ended_does_not_last() {
        let ms = Duration::from_millis;
        // A deep queue: two seconds, of which the gate was closed for a quarter.
        assert_eq!(lasts(ms(2000), Some(ms(250))), ms(2000));
        // Ranks that went on as soon as they could.
        assert_eq!(lasts(ms(255), Some(ms(250))), ms(5));
        // One that fell quiet in time.
        assert_eq!(lasts(ms(100), None), ms(100));
        assert_eq!(lasts(ms(1), Some(ms(2))), ms(0));
    }
}
