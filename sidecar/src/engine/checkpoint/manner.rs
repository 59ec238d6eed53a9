//! How a checkpoint is taken, by what it is taken for. Pure.

use phos_policies::schedule::Trigger;

/// Whether the agent looks at the job again although what kept it from a checkpoint lately may still be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insist {
    /// Somebody asked for this checkpoint, or it is the last.
    Yes,
    /// It does not: the schedule asked for the checkpoint.
    No,
}

/// Whether the end of a step is waited for, where the program tells its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AtStep {
    /// For a while.
    Yes,
    /// It is not.
    No,
}

/// Who asked for a checkpoint on demand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Askers {
    /// The job's own program.
    pub(super) program: bool,
    /// Somebody else.
    pub(super) others: bool,
}

/// How a checkpoint is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Manner {
    pub(super) insist: Insist,
    pub(super) at_step: AtStep,
    /// Somebody waits until it is stored.
    pub(super) is_waited_for: bool,
    /// It has to be stored before the job or the machine ends: it is encoded at once, and nothing is copied when the job runs again.
    pub(super) is_urgent: bool,
}

impl Manner {
    /// Of a checkpoint that is taken for this reason.
    pub(super) fn of(trigger: Trigger, askers: Askers) -> Self {
        let by_program = trigger == Trigger::OnDemand && askers.program;
        // A program that waits for its own checkpoint leaves all processors.
        let is_programs = by_program && !askers.others;
        Self {
            insist: match trigger {
                Trigger::Interval => Insist::No,
                Trigger::OnDemand | Trigger::Preemption | Trigger::Terminate => Insist::Yes,
            },
            at_step: match trigger {
                // Wanted where the program is: the thread that asks may wait for it, and end no step meanwhile.
                Trigger::OnDemand if by_program => AtStep::No,
                Trigger::Interval | Trigger::OnDemand => AtStep::Yes,
                // There is no time.
                Trigger::Preemption | Trigger::Terminate => AtStep::No,
            },
            is_waited_for: trigger != Trigger::Interval && !is_programs,
            is_urgent: matches!(trigger, Trigger::Preemption | Trigger::Terminate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Askers = Askers {
        program: true,
        others: false,
    };
    const OTHERS: Askers = Askers {
        program: false,
        others: true,
    };
    const BOTH: Askers = Askers {
        program: true,
        others: true,
    };

    #[test]
    fn no_checkpoint_that_has_no_time_waits_for_a_step_nor_one_that_a_thread_waits_for() {
        for trigger in Trigger::ALL {
            let waits = matches!(trigger, Trigger::Interval | Trigger::OnDemand);
            let at_step = Manner::of(trigger, OTHERS).at_step;
            assert_eq!(at_step == AtStep::Yes, waits, "{trigger:?}");
        }
        for askers in [PROGRAM, BOTH] {
            let at_step = |trigger| Manner::of(trigger, askers).at_step;
            assert_eq!(at_step(Trigger::OnDemand), AtStep::No);
            assert_eq!(at_step(Trigger::Interval), AtStep::Yes);
        }
    }

    #[test]
    fn what_nobody_waits_for_leaves_the_processors_to_the_job() {
        let is_waited_for = |trigger, askers| Manner::of(trigger, askers).is_waited_for;
        assert!(!is_waited_for(Trigger::Interval, BOTH));
        assert!(!is_waited_for(Trigger::OnDemand, PROGRAM));
        assert!(is_waited_for(Trigger::OnDemand, OTHERS));
        assert!(is_waited_for(Trigger::OnDemand, BOTH));
        // Whoever asked for another one meanwhile.
        assert!(is_waited_for(Trigger::Preemption, PROGRAM));
        assert!(is_waited_for(Trigger::Terminate, PROGRAM));
    }
}
