//! What to do when the job is to end within a grace time (SIGTERM, a preemption notice): whether one last checkpoint
//! fits, and by when to give up.
//!
//! # Rules
//!
//! * The job's end is never later than the grace time less what ending takes.
//! * A checkpoint in flight is finished first if it fits; one that does not fit is abandoned if a fresh one does.
//! * A checkpoint that was never measured is tried: there is nothing to lose.
//! * If none fits, the job gets all of the grace time for itself.

use std::time::Duration;

/// What is known when the notice of termination arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminateInputs {
    /// The time of the notice, measured from the caller's origin.
    pub now: Duration,
    /// Time from now until the job is killed.
    pub grace: Duration,
    /// Time that passing the signal on and ending takes.
    pub ending: Duration,
    /// Time that a whole checkpoint takes, from its trigger to its commit; `None` if there was none yet.
    pub estimate: Option<Duration>,
    /// Time until the checkpoint in flight is committed, if there is one.
    pub in_flight: Option<Duration>,
}

/// What to do about the last checkpoint, and when to give it up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminatePlan {
    /// About the last checkpoint.
    pub step: LastStep,
    /// When to give up what is not committed by then, and pass the signal on.
    pub exit_at: Duration,
}

/// About the last checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastStep {
    /// Wait for the one in flight, if any, then take one more.
    Checkpoint,
    /// Give up the one in flight and take another at once.
    AbandonAndCheckpoint,
    /// Wait for the one in flight; there is no time for one more.
    FinishInFlight,
    /// There is no time: pass the signal on now.
    ExitNow,
}

/// Makes the plan for the grace time that `inputs` describe.
#[must_use]
pub fn plan(inputs: &TerminateInputs) -> TerminatePlan {
    let TerminateInputs {
        now,
        grace,
        ending,
        estimate,
        in_flight,
    } = *inputs;
    let budget = grace.saturating_sub(ending);
    let estimate = estimate.unwrap_or_default();
    let waiting = in_flight.unwrap_or_default();
    let step = if budget.is_zero() {
        LastStep::ExitNow
    } else if waiting.saturating_add(estimate) <= budget {
        LastStep::Checkpoint
    } else if in_flight.is_some() && waiting <= budget {
        LastStep::FinishInFlight
    } else if in_flight.is_some() && estimate <= budget {
        LastStep::AbandonAndCheckpoint
    } else {
        LastStep::ExitNow
    };
    let exit_at = if step == LastStep::ExitNow {
        now
    } else {
        now.saturating_add(budget)
    };
    TerminatePlan { step, exit_at }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn step(grace: u64, estimate: Option<u64>, in_flight: Option<u64>) -> LastStep {
        let inputs = TerminateInputs {
            now: s(1000),
            grace: s(grace),
            ending: s(2),
            estimate: estimate.map(s),
            in_flight: in_flight.map(s),
        };
        plan(&inputs).step
    }

    #[test]
    fn what_fits() {
        assert_eq!(step(30, Some(10), None), LastStep::Checkpoint);
        assert_eq!(step(30, Some(10), Some(15)), LastStep::Checkpoint);
        assert_eq!(step(30, Some(20), Some(15)), LastStep::FinishInFlight);
        assert_eq!(step(30, Some(20), Some(40)), LastStep::AbandonAndCheckpoint);
        assert_eq!(step(30, Some(40), Some(40)), LastStep::ExitNow);
        assert_eq!(step(30, Some(29), None), LastStep::ExitNow);
        assert_eq!(step(30, None, None), LastStep::Checkpoint);
        assert_eq!(step(2, None, None), LastStep::ExitNow);
    }

    proptest! {
        #[test]
        fn the_end_is_in_time(
            now in any::<u32>(), grace in any::<u64>(), ending in any::<u64>(),
            estimate in prop::option::of(any::<u64>()), in_flight in prop::option::of(any::<u64>()),
        ) {
            let at = |ms| Duration::from_millis(ms);
            let inputs = TerminateInputs {
                now: s(u64::from(now)), grace: at(grace), ending: at(ending),
                estimate: estimate.map(at), in_flight: in_flight.map(at),
            };
            let TerminatePlan { step, exit_at } = plan(&inputs);
            prop_assert!(exit_at >= inputs.now);
            prop_assert!(exit_at <= inputs.now + inputs.grace.saturating_sub(inputs.ending));
            let needs = match step {
                LastStep::Checkpoint => at(0).saturating_add(inputs.in_flight.unwrap_or_default()).saturating_add(inputs.estimate.unwrap_or_default()),
                LastStep::AbandonAndCheckpoint => inputs.estimate.unwrap_or_default(),
                LastStep::FinishInFlight => inputs.in_flight.unwrap_or_default(),
                LastStep::ExitNow => Duration::ZERO,
            };
            prop_assert!(inputs.now + needs <= exit_at.max(inputs.now));
        }
    }
}
