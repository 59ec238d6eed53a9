//! Whether memory that changed may be copied while the job already runs again, from where the job itself has it.
//!
//! A GPU that is nearly full has no room for a snapshot, and a stop that lasts until all of it has left grows with its size. But a job writes
//! its memory in an order: weights and the optimizer's state change at the end of a step, and can leave during the one after the checkpoint.
//!
//! # Rules
//!
//! * What the job leaves alone is seen, and never assumed: after a checkpoint it makes some calls and waits, and what has changed by then is found
//!   by content, several times ([`Search`]). Later checkpoints copy first what is written first, and let the job make as many calls as what is left allows
//!   ([`allowed`]).
//! * It remains a guess: whoever copies compares each chunk with its name. A wrong one costs the checkpoint, and no image is ever wrong.
//! * After a wrong guess, and after a search that found too little, nothing of the kind is tried for [`REST`] checkpoints, then for twice as many,
//!   and so on: a job without order gets the checkpoints that it would get anyway. Checkpoints that went well shorten that again.
//! * A stop that would be longer by [`WORTH`] at most is not worth it.

use std::time::Duration;

/// A stop that is longer by less is left alone.
pub const WORTH: Duration = Duration::from_millis(50);
/// Checkpoints without a guess after the first that was wrong.
const REST: u32 = 4;
/// The most of them.
const LONGEST: u32 = 256;
/// After so many guesses in a row that were of no use, what the job leaves alone is looked for anew.
const USELESS: u32 = 3;
/// So many good guesses in a row make up for a wrong one.
const GOOD: u32 = 8;

/// How what fits into no snapshot leaves the GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// While the job is held.
    Held,
    /// While the job is held; afterwards it is seen what it leaves alone.
    Search,
    /// While the job makes as many calls as were seen to leave it alone.
    Running,
}

/// Where in its steps a job was held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Place {
    /// At the end of one, or as it waited for its own work: where it is held each time.
    Same,
    /// Anywhere: it was not waited for such a place.
    #[default]
    NotLookedFor,
    /// Anywhere: such a place did not come in time.
    NotFound,
}

/// What is known of a job, and how often that was right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speculation {
    /// Whether it was seen what the job leaves alone.
    known: bool,
    /// Guesses that were wrong and are not made up for.
    wrong: u32,
    /// Good guesses since the last wrong one, or since one was made up for.
    good: u32,
    /// Checkpoints without a guess that are still to come.
    rest: u32,
    /// Guesses in a row that made no stop shorter.
    useless: u32,
}

impl Speculation {
    /// The way of a checkpoint whose stop would be longer by so much, if the job was held at such a place.
    pub fn way(&mut self, longer: Duration, place: Place) -> Way {
        if longer < WORTH {
            return Way::Held;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return Way::Held;
        }
        match (place, self.known) {
            (Place::Same, true) => Way::Running,
            (Place::Same, false) => Way::Search,
            (Place::NotLookedFor, _) => Way::Held,
            (Place::NotFound, _) => {
                self.pause();
                Way::Held
            }
        }
    }

    /// Whether it is worth looking for the same place of the job's steps, if the next stop would be longer by so much.
    #[must_use]
    pub fn looks_for_place(&self, longer: Duration) -> bool {
        longer >= WORTH && self.rest == 0
    }

    /// It was seen what the job leaves alone: whether that is enough.
    pub fn searched(&mut self, enough: bool) {
        self.known = enough;
        if !enough {
            self.pause();
        }
    }

    /// Whether what was seen to be left alone is still what makes stops longer. If it was not several times in a row, it is looked for again, though not at
    /// once.
    pub fn was_of_use(&mut self, of_use: bool) {
        self.useless = if of_use { 0 } else { self.useless + 1 };
        if self.useless >= USELESS {
            self.useless = 0;
            self.known = false;
            self.pause();
        }
    }

    /// All that was copied while the job ran was what it had been.
    pub fn was_right(&mut self) {
        self.good += 1;
        if self.good >= GOOD {
            self.good = 0;
            self.wrong = self.wrong.saturating_sub(1);
        }
    }

    /// The job has written what it was to leave alone: what was seen no longer holds.
    pub fn was_wrong(&mut self) {
        self.known = false;
        self.pause();
    }

    /// The job was resumed: its memory has other names. What it does is what it did.
    pub fn forget(&mut self) {
        self.known = false;
    }

    fn pause(&mut self) {
        self.good = 0;
        self.rest = REST.saturating_mul(1 << self.wrong.min(16)).min(LONGEST);
        self.wrong = self.wrong.saturating_add(1);
    }
}

/// The first look at what has changed comes after so many calls.
const FIRST: u64 = 64;
/// The last one after so many, at most.
const LAST: u64 = 1 << 15;
/// What is left alone for longer than this part of what is needed is of no more use.
const LITTLE: u64 = 16;

/// Sees after how many calls memory is written: looks after 64 calls, 96, 144, and so on, until little is left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Search {
    /// Bytes that are to be left alone, for a while at least.
    needed: u64,
    /// After so many calls it was looked.
    looks: Vec<u64>,
    /// The next look.
    next: u64,
    /// Whether there was enough at the first.
    enough: bool,
}

impl Search {
    /// Looks for so many bytes.
    #[must_use]
    pub const fn new(needed: u64) -> Search {
        Search {
            needed,
            looks: Vec::new(),
            next: FIRST,
            enough: false,
        }
    }

    /// The calls that the job is to have made until the next look, in all.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// After these calls so many bytes had not changed since the checkpoint: whether there is to be another look.
    pub fn seen(&mut self, unchanged: u64) -> bool {
        self.enough |= self.looks.is_empty() && unchanged >= self.needed;
        self.looks.push(self.next);
        self.next += self.next / 2;
        self.enough && unchanged > self.needed / LITTLE && self.next <= LAST
    }

    /// Whether enough memory is left alone at all.
    #[must_use]
    pub const fn is_enough(&self) -> bool {
        self.enough
    }

    /// After how many calls it was looked, in this order.
    #[must_use]
    pub fn looks(&self) -> &[u64] {
        &self.looks
    }
}

/// How many calls a job may make while memory is not copied yet that was unchanged when it was looked after so many: fewer, as threads that make calls
/// from time to time may have made some of those.
#[must_use]
pub const fn allowed(looked: u64) -> u64 {
    (looked - looked / 4).saturating_sub(FIRST / 4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LONG: Duration = Duration::from_secs(1);

    #[test]
    fn a_job_is_looked_at_once_and_then_trusted() {
        let mut speculation = Speculation::default();
        assert_eq!(
            speculation.way(Duration::from_millis(49), Place::Same),
            Way::Held
        );
        assert_eq!(speculation.way(LONG, Place::Same), Way::Search);
        speculation.searched(true);
        for _ in 0..3 {
            assert_eq!(speculation.way(LONG, Place::Same), Way::Running);
            speculation.was_right();
        }
        // It is another process, and does the same.
        speculation.forget();
        assert_eq!(speculation.way(LONG, Place::Same), Way::Search);
    }

    #[test]
    fn what_was_wrong_is_not_tried_again_soon() {
        let mut speculation = Speculation::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            speculation.searched(true);
            assert_eq!(speculation.way(LONG, Place::Same), Way::Running);
            speculation.was_wrong();
            let mut held = 0;
            while speculation.way(LONG, Place::Same) == Way::Held {
                held += 1;
            }
            pauses.push(held);
        }
        assert_eq!(pauses, [4, 8, 16, 32, 64, 128, 256, 256, 256]);
        for _ in 0..GOOD * 9 {
            speculation.was_right();
        }
        speculation.searched(false);
        let held = (0..).take_while(|_| speculation.way(LONG, Place::Same) == Way::Held);
        assert_eq!(held.count(), 4);
    }

    #[test]
    fn what_is_of_no_use_any_more_is_looked_for_anew() {
        let mut speculation = Speculation::default();
        speculation.searched(true);
        for of_use in [false, false, true, false, false] {
            assert_eq!(speculation.way(LONG, Place::Same), Way::Running);
            speculation.was_of_use(of_use);
        }
        assert_eq!(speculation.way(LONG, Place::Same), Way::Running);
        speculation.was_of_use(false);
        let held = (0..).take_while(|_| speculation.way(LONG, Place::Same) == Way::Held);
        assert_eq!(held.count(), 4);
        assert_eq!(speculation.way(LONG, Place::Same), Way::Search);
    }

    #[test]
    fn a_job_that_never_waits_is_waited_for_ever_less() {
        let mut speculation = Speculation::default();
        assert_eq!(speculation.way(LONG, Place::NotLookedFor), Way::Held);
        let mut waited = 0;
        for _ in 0..1000 {
            let place = match speculation.looks_for_place(LONG) {
                true => {
                    waited += 1;
                    Place::NotFound
                }
                false => Place::NotLookedFor,
            };
            assert_eq!(speculation.way(LONG, place), Way::Held);
        }
        assert!(waited <= 9, "{waited}");
        assert!(!Speculation::default().looks_for_place(Duration::from_millis(49)));
    }

    /// A job without order costs a bounded share of its checkpoints.
    #[test]
    fn of_a_thousand_checkpoints_of_a_job_without_order_few_are_lost() {
        let mut speculation = Speculation::default();
        let (mut lost, mut searched) = (0, 0);
        for _ in 0..1000 {
            match speculation.way(LONG, Place::Same) {
                Way::Held => {}
                Way::Search => {
                    searched += 1;
                    speculation.searched(true);
                }
                Way::Running => {
                    lost += 1;
                    speculation.was_wrong();
                }
            }
        }
        assert!(lost <= 9 && searched <= 9, "{lost} {searched}");
    }

    proptest! {
        #[test]
        fn nothing_is_allowed_that_was_seen_to_be_too_much(
            needed in 1..1000u64,
            // After so many calls each byte is written first.
            written in prop::collection::vec(1..300_000u64, 1..1000),
        ) {
            let unchanged = |calls: u64| written.iter().filter(|&&at| at > calls).count() as u64;
            let mut search = Search::new(needed);
            let mut made = search.next();
            while search.seen(unchanged(made)) {
                prop_assert!(search.next() > made);
                made = search.next();
            }
            prop_assert_eq!(search.is_enough(), unchanged(FIRST) >= needed);
            let looks = search.looks();
            prop_assert!(looks.len() < 24 && looks.is_sorted());
            for &at in &written {
                // The last look at which it was as it had been.
                if let Some(&look) = looks.iter().rev().find(|&&look| look < at) {
                    prop_assert!(allowed(look) < at);
                    prop_assert!(allowed(look) >= look / 2);
                }
            }
        }
    }
}
