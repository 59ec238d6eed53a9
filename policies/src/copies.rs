//! When a checkpoint is copied from this machine to the store that survives it: `--remote-interval`.
//!
//! All times are measured from an origin that the caller chooses.

use std::time::Duration;

/// The first wait after a failure, and the longest.
const WAITS: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

/// Whether the copy of a checkpoint waits for its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Urgency {
    /// It does not: somebody waits for it, or it is the last one.
    Immediate,
    /// It does.
    Scheduled,
}

/// Decides when to copy the newest checkpoint. One copy at a time.
#[derive(Debug, Clone)]
pub struct Copies {
    every: Duration,
    /// There is a checkpoint that was not copied.
    wanted: bool,
    /// Whether the copy need not wait for its turn.
    urgent: bool,
    running: bool,
    /// When the last copy began, measured from the caller's origin; `None` before the first.
    began: Option<Duration>,
    failures: u32,
    /// The time before which no copy begins, because of failures.
    rested: Duration,
}

impl Copies {
    /// A copy is to begin every so often, if there is anything new.
    #[must_use]
    pub const fn new(every: Duration) -> Self {
        Self {
            every,
            wanted: false,
            urgent: false,
            running: false,
            began: None,
            failures: 0,
            rested: Duration::ZERO,
        }
    }

    /// A checkpoint became visible on this machine.
    pub const fn stored_here(&mut self, urgency: Urgency) {
        self.wanted = true;
        self.urgent |= matches!(urgency, Urgency::Immediate);
    }

    /// A checkpoint went to the store without a stay on this machine: what is here is older.
    pub const fn stored_there(&mut self, now: Duration) {
        self.wanted = false;
        self.urgent = false;
        self.began = Some(now);
    }

    /// A copy of the newest checkpoint begins.
    pub const fn begin(&mut self, now: Duration) {
        self.running = true;
        self.wanted = false;
        self.urgent = false;
        self.began = Some(now);
    }

    /// The copy ended, or was cut off, which counts as neither.
    pub fn ended(&mut self, outcome: Option<bool>, now: Duration) {
        self.running = false;
        match outcome {
            Some(true) => self.failures = 0,
            Some(false) => {
                let wait = WAITS.0.saturating_mul(1 << self.failures.min(16));
                self.rested = now + wait.min(WAITS.1);
                self.failures += 1;
            }
            None => {}
        }
        if outcome != Some(true) {
            // It is made up for, without waiting for another turn.
            self.wanted = true;
            self.urgent = true;
        }
    }

    /// The copy found that the store has the newest checkpoint: no turn was taken.
    pub const fn had_nothing_to_do(&mut self) {
        self.running = false;
        self.began = None;
        self.failures = 0;
    }

    /// Whether anything is left to do: a copy runs, or is wanted.
    #[must_use]
    pub const fn is_pending(&self) -> bool {
        self.running || self.wanted
    }

    /// Makes what is left urgent, after failures too: the job is over.
    pub const fn hurry(&mut self) {
        self.urgent = self.wanted;
        self.rested = Duration::ZERO;
    }

    /// When the next copy is due; `None` while one runs or nothing is new.
    #[must_use]
    pub fn due(&self) -> Option<Duration> {
        if self.running || !self.wanted {
            return None;
        }
        let turn = match self.began {
            Some(began) if !self.urgent => began + self.every,
            _ => Duration::ZERO,
        };
        Some(turn.max(self.rested))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn the_first_goes_at_once_and_later_ones_wait_for_their_turn() {
        let mut copies = Copies::new(s(600));
        assert_eq!(copies.due(), None);
        copies.stored_here(Urgency::Scheduled);
        assert_eq!(copies.due(), Some(s(0)));
        copies.begin(s(100));
        copies.stored_here(Urgency::Scheduled);
        assert_eq!(copies.due(), None, "one at a time");
        copies.ended(Some(true), s(130));
        assert_eq!(
            copies.due(),
            Some(s(700)),
            "counted from the beginning of the last"
        );
        copies.stored_here(Urgency::Immediate);
        assert_eq!(copies.due(), Some(s(0)), "somebody waits");
        copies.begin(s(200));
        copies.ended(Some(true), s(210));
        assert_eq!(copies.due(), None);
        assert!(!copies.is_pending());
    }

    #[test]
    fn failures_are_made_up_for_and_back_off() {
        let mut copies = Copies::new(s(600));
        copies.stored_here(Urgency::Scheduled);
        let mut now = s(0);
        let mut waits = Vec::new();
        for _ in 0..7 {
            copies.begin(now);
            copies.ended(Some(false), now);
            let due = copies.due().unwrap();
            waits.push((due - now).as_secs());
            now = due;
        }
        assert_eq!(waits, [2, 4, 8, 16, 32, 60, 60]);
        copies.begin(now);
        copies.ended(Some(true), now);
        copies.stored_here(Urgency::Scheduled);
        assert_eq!(copies.due(), Some(now + s(600)));
        // One that was cut off for a restore is resumed at once.
        copies.begin(now + s(600));
        copies.ended(None, now + s(601));
        assert!(copies.due().unwrap() <= now + s(601));
    }

    #[test]
    fn a_checkpoint_that_went_past_this_machine_leaves_nothing_to_copy() {
        let mut copies = Copies::new(s(60));
        copies.stored_here(Urgency::Immediate);
        copies.stored_there(s(5));
        assert_eq!(copies.due(), None);
        copies.stored_here(Urgency::Scheduled);
        assert_eq!(copies.due(), Some(s(65)));
        copies.hurry();
        assert_eq!(copies.due(), Some(s(0)));
    }

    #[test]
    fn a_copy_with_nothing_to_do_takes_no_turn() {
        let mut copies = Copies::new(s(600));
        copies.stored_here(Urgency::Immediate);
        copies.begin(s(10));
        copies.had_nothing_to_do();
        assert!(!copies.is_pending());
        copies.stored_here(Urgency::Scheduled);
        assert_eq!(copies.due(), Some(s(0)));
    }

    proptest! {
        /// Whatever happens, what was stored here and not copied since is due some time.
        #[test]
        fn nothing_is_forgotten(steps in prop::collection::vec(0_u8..5, 0..60)) {
            let mut copies = Copies::new(s(30));
            let (mut newest, mut copied, mut copying) = (0, 0, None);
            for (i, step) in (0..).zip(steps) {
                let now = s(i);
                match (step, copying) {
                    (0, _) => { newest += 1; copies.stored_here(Urgency::Scheduled); }
                    (1, _) => { newest += 1; copies.stored_here(Urgency::Immediate); }
                    (2, None) if copies.due().is_some() => { copies.begin(now); copying = Some(newest); }
                    (3, Some(number)) => { copies.ended(Some(true), now); copied = number; copying = None; }
                    (4, Some(_)) => { copies.ended(Some(false), now); copying = None; }
                    _ => {}
                }
                prop_assert_eq!(copies.is_pending(), copying.is_some() || copied < newest);
                prop_assert_eq!(copies.due().is_some(), copying.is_none() && copied < newest);
            }
        }
    }
}
