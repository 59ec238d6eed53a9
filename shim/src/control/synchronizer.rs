//! A thread that waits for contexts, so that the control thread can give up waiting.
//!
//! A wait that was given up goes on, since nothing can end it, with the gate open again. When it ends it has told how long
//! the work that was in flight takes: that is the only evidence that a job that did not fall quiet in a short time will do
//! so in a longer one, and is no persistent kernel.

use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant};

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
    began: Option<Instant>,
    /// From its begin until it was given up: the gate was closed.
    closed: Option<Duration>,
    /// See [`take_needs`].
    needs: Option<Duration>,
}

static STATE: Mutex<State> = Mutex::new(State {
    started: false,
    contexts: None,
    busy: false,
    cancelled: false,
    result: 0,
    began: None,
    closed: None,
    needs: None,
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

/// Nobody waits for the outcome any more: contexts not begun are left alone, since the application may destroy them.
pub fn cancel() {
    let mut state = lock(&STATE);
    state.cancelled = true;
    state.closed = state.began.map(|began| began.elapsed());
}

/// How long a quiesce should be given, going by the last wait that came to an end; told once, so that it does not outlive
/// what it was seen of.
pub fn take_needs() -> Option<Duration> {
    lock(&STATE).needs.take()
}

/// Twice what it took. Of a wait that was given up, the time until then counts once: what ended because the gate was
/// opened (ranks that wait for each other) would else be given longer each time.
fn needs(took: Duration, closed: Option<Duration>) -> Duration {
    took.saturating_mul(2)
        .saturating_sub(closed.unwrap_or_default().min(took))
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
        state.needs = state
            .began
            .take()
            .map(|began| needs(began.elapsed(), state.closed));
        CHANGED.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_open_gate_ended_needs_no_longer_a_time() {
        let ms = Duration::from_millis;
        // A deep queue: two seconds, of which the gate was closed for a quarter.
        assert_eq!(needs(ms(2000), Some(ms(250))), ms(3750));
        // Ranks that went on as soon as they could.
        assert_eq!(needs(ms(255), Some(ms(250))), ms(260));
        // One that fell quiet in time.
        assert_eq!(needs(ms(100), None), ms(200));
        assert_eq!(needs(ms(1), Some(ms(2))), ms(1));
    }
}
