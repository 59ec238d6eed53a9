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
//! * What the job writes next depends on where in its step it was held, so what was seen holds for that [`Place`] only. A step may have several
//!   waits: where too little is left alone at one, another is looked for ([`Speculation::looks_for`]).
//! * A stop that would be longer by [`WORTH`] at most is not worth it.

use std::ops::RangeInclusive;
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

/// A wait that comes after fewer calls is like too many others; and where no wait comes after more, nothing is left alone for long enough.
const LEAST: u32 = 32;
/// From one step to the next the number of calls before a wait may differ by this part of it.
const LIKE: u32 = 16;
/// Places at which too little is left alone, at most, before the job is left to itself for a while.
const POOR: usize = 4;

/// Where in its steps a job was held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the end of one, as its program says.
    Step,
    /// Where it waited for its own work, after so many calls of work since its wait before.
    Wait {
        /// The calls.
        calls: u32,
    },
}

impl Place {
    /// Calls before a wait that is likely to be this one.
    fn after(self) -> Option<RangeInclusive<u32>> {
        match self {
            Place::Step => None,
            Place::Wait { calls } => {
                let about = calls / LIKE;
                Some(calls - about..=calls.saturating_add(about))
            }
        }
    }

    /// Whether that is likely to be the same one.
    fn is_like(self, other: Place) -> bool {
        match (self.after(), other) {
            (None, Place::Step) => true,
            (Some(after), Place::Wait { calls }) => after.contains(&calls),
            _ => false,
        }
    }
}

/// What came of looking for a place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Found {
    /// The job is held there.
    At(Place),
    /// It is held anywhere: no place was looked for.
    #[default]
    NotLookedFor,
    /// It is held anywhere: such a place did not come in time.
    Nothing,
}

/// The waits of a job's at one of which it is to be held next, by the calls before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Waits {
    /// After so many.
    pub after: RangeInclusive<u32>,
    /// But not after so many.
    pub except: Vec<RangeInclusive<u32>>,
}

/// What is known of a job, and how often that was right.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Speculation {
    /// Where it was seen what the job leaves alone.
    known: Option<Place>,
    /// Whether that place did not come when it was looked for last.
    missed: bool,
    /// Where that is worth seeing first.
    promising: Option<Place>,
    /// Where it is being seen.
    searched: Option<Place>,
    /// Where it was seen to be too little.
    poor: [Option<Place>; POOR],
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
    /// The way of a checkpoint whose stop would be longer by so much, if the job is held there.
    pub fn way(&mut self, longer: Duration, found: Found) -> Way {
        if longer < WORTH {
            return Way::Held;
        }
        if self.rest > 0 {
            self.rest -= 1;
            return Way::Held;
        }
        match (found, self.known) {
            (Found::At(place), Some(known)) if known.is_like(place) => {
                self.missed = false;
                Way::Running
            }
            // The program has begun to tell its steps, whose ends are waited for from now on.
            (Found::At(Place::Step), Some(Place::Wait { .. })) => {
                self.known = None;
                self.searched = Some(Place::Step);
                Way::Search
            }
            (Found::At(_), Some(_)) | (Found::NotLookedFor, _) => Way::Held,
            (Found::At(place), None) if !self.is_poor(place) => {
                self.searched = Some(place);
                Way::Search
            }
            (Found::Nothing, None) if self.promising.take().is_some() => Way::Held,
            (Found::Nothing, Some(_)) if !self.missed => {
                self.missed = true;
                Way::Held
            }
            (Found::At(_), None) | (Found::Nothing, _) => {
                // The program may do something else by now.
                self.known = None;
                self.pause();
                Way::Held
            }
        }
    }

    fn is_poor(&self, place: Place) -> bool {
        self.poor.iter().flatten().any(|poor| poor.is_like(place))
    }

    /// The waits that are worth waiting for, if the next stop would be longer by so much.
    #[must_use]
    pub fn looks_for(&self, longer: Duration) -> Option<Waits> {
        if longer < WORTH || self.rest > 0 {
            return None;
        }
        let wanted = self.known.or(self.promising).and_then(Place::after);
        Some(match wanted {
            Some(after) => Waits {
                after,
                except: Vec::new(),
            },
            None => Waits {
                after: LEAST..=u32::MAX,
                except: (self.poor.iter().flatten())
                    .filter_map(|poor| poor.after())
                    .collect(),
            },
        })
    }

    /// It was seen what the job leaves alone, and that is enough.
    pub fn found_enough(&mut self) {
        self.known = self.end_search();
    }

    fn end_search(&mut self) -> Option<Place> {
        self.promising = None;
        self.missed = false;
        self.searched.take()
    }

    /// It was seen what the job leaves alone, and that is too little. There may be a better place.
    pub fn found_too_little(&mut self) {
        let place = self.end_search();
        self.known = None;
        if let Some(poor) = self.poor.iter_mut().find(|poor| poor.is_none()) {
            *poor = place;
        }
        // A program that tells its steps is waited for at no other place.
        if place == Some(Place::Step) || self.poor.iter().all(Option::is_some) {
            self.pause();
        }
    }

    /// It was to be seen what the job leaves alone, and nothing was: it made too few calls, or had something else to say. Another time, if that does not go on.
    pub fn saw_nothing(&mut self) {
        self.searched = None;
        self.was_of_no_use();
    }

    /// What was seen to be left alone is still what makes stops longer.
    pub fn was_of_use(&mut self) {
        self.useless = 0;
    }

    /// It is not what makes stops longer any more. If that is so several times in a row, it is looked for again, though not at once.
    pub fn was_of_no_use(&mut self) {
        self.useless += 1;
        if self.useless >= USELESS {
            self.useless = 0;
            self.known = None;
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

    /// The job has written what it was to leave alone: what was seen no longer holds, or there are several places that look like one.
    pub fn was_wrong(&mut self) {
        let place = self.known.take();
        self.pause();
        self.poor[0] = place.filter(|place| *place != Place::Step);
    }

    /// The job was resumed: its memory has other names. What it does is what it did, and where.
    pub fn forget(&mut self) {
        self.missed = false;
        self.promising = self.known.take();
    }

    fn pause(&mut self) {
        self.good = 0;
        self.poor = Default::default();
        self.promising = None;
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
    const PLACE: Place = Place::Wait { calls: 1000 };
    const THERE: Found = Found::At(PLACE);

    const fn wait(calls: u32) -> Found {
        Found::At(Place::Wait { calls })
    }

    /// One that has seen that enough is left alone there.
    fn knows(place: Found) -> Speculation {
        let mut speculation = Speculation::default();
        assert_eq!(speculation.way(LONG, place), Way::Search);
        speculation.found_enough();
        speculation
    }

    #[test]
    fn a_job_is_looked_at_once_and_then_trusted() {
        let mut speculation = Speculation::default();
        assert_eq!(speculation.way(Duration::from_millis(49), THERE), Way::Held);
        assert_eq!(speculation.way(LONG, THERE), Way::Search);
        speculation.found_enough();
        for _ in 0..3 {
            assert_eq!(speculation.way(LONG, THERE), Way::Running);
            speculation.was_right();
        }
        // It is another process, and does the same.
        speculation.forget();
        assert_eq!(speculation.way(LONG, THERE), Way::Search);
    }

    #[test]
    fn what_was_wrong_is_not_tried_again_soon() {
        let mut speculation = Speculation::default();
        let mut pauses = Vec::new();
        // Another place each time, so that each is looked at.
        for place in (1..=9).map(|n| wait(n * 1000)) {
            let held = (0..).take_while(|_| speculation.way(LONG, place) == Way::Held);
            pauses.push(held.count());
            speculation.found_enough();
            assert_eq!(speculation.way(LONG, place), Way::Running);
            speculation.was_wrong();
        }
        assert_eq!(pauses, [0, 4, 8, 16, 32, 64, 128, 256, 256]);
        // Good ones make up for it.
        let mut speculation = Speculation {
            rest: 0,
            ..speculation
        };
        assert_eq!(speculation.way(LONG, THERE), Way::Search);
        speculation.found_enough();
        for _ in 0..GOOD * 9 {
            assert_eq!(speculation.way(LONG, THERE), Way::Running);
            speculation.was_right();
        }
        speculation.was_wrong();
        let held = (0..).take_while(|_| speculation.way(LONG, wait(9)) == Way::Held);
        assert_eq!(held.count(), 4);
    }

    #[test]
    fn a_better_place_is_looked_for() {
        let mut speculation = Speculation::default();
        let waits = speculation.looks_for(LONG).unwrap();
        assert_eq!((waits.after, waits.except.len()), (LEAST..=u32::MAX, 0));
        for calls in [160, 1600] {
            assert_eq!(speculation.way(LONG, wait(calls)), Way::Search);
            speculation.found_too_little();
        }
        let waits = speculation.looks_for(LONG).unwrap();
        assert_eq!(waits.except, [150..=170, 1500..=1700]);
        assert_eq!(speculation.way(LONG, wait(320)), Way::Search);
        speculation.found_enough();
        let waits = speculation.looks_for(LONG).unwrap();
        assert_eq!((waits.after.clone(), waits.except.len()), (300..=340, 0));
        for (found, way) in [
            (wait(300), Way::Running),
            (wait(341), Way::Held),
            (wait(160), Way::Held),
            (Found::NotLookedFor, Way::Held),
            (wait(340), Way::Running),
        ] {
            assert_eq!(speculation.way(LONG, found), way, "{found:?}");
        }
        let mut tells_steps = speculation;
        let step = Found::At(Place::Step);
        assert_eq!(tells_steps.way(LONG, step), Way::Search);
        tells_steps.found_enough();
        assert_eq!(tells_steps.way(LONG, step), Way::Running);
        // It is another process, and that is still the place.
        speculation.forget();
        assert_eq!(speculation.looks_for(LONG).unwrap().after, waits.after);
        // Unless it does not come: then any may be it.
        assert_eq!(speculation.way(LONG, Found::Nothing), Way::Held);
        assert_eq!(speculation.looks_for(LONG).unwrap().except.len(), 2);
    }

    #[test]
    fn a_job_whose_places_are_all_poor_is_left_to_itself() {
        let mut speculation = Speculation::default();
        let mut searched = 0;
        for checkpoint in 0..1000 {
            // Five waits in each step.
            let found = wait(100 << (checkpoint % 5));
            if speculation.way(LONG, found) == Way::Search {
                searched += 1;
                speculation.found_too_little();
            }
        }
        assert!(searched <= 9 * 5, "{searched}");
        // One that tells its steps has no other.
        let mut speculation = Speculation::default();
        assert_eq!(speculation.way(LONG, Found::At(Place::Step)), Way::Search);
        speculation.found_too_little();
        assert_eq!(speculation.looks_for(LONG), None);
    }

    /// The program does something else from some step on: it is not waited for at a wait that it does not have any more.
    #[test]
    fn a_place_that_does_not_come_any_more_is_given_up() {
        let mut speculation = knows(THERE);
        // Once is nothing.
        for _ in 0..9 {
            assert_eq!(speculation.way(LONG, Found::Nothing), Way::Held);
            assert_eq!(speculation.way(LONG, THERE), Way::Running);
        }
        let mut searched = 0;
        for _ in 0..100 {
            let waits = speculation.looks_for(LONG);
            let comes = waits
                .as_ref()
                .is_some_and(|waits| waits.after.contains(&1200));
            let found = match (waits, comes) {
                (None, _) => Found::NotLookedFor,
                (Some(_), true) => wait(1200),
                (Some(_), false) => Found::Nothing,
            };
            match speculation.way(LONG, found) {
                Way::Search => {
                    searched += 1;
                    speculation.found_enough();
                }
                way => assert!(searched > 0 || way == Way::Held),
            }
        }
        assert_eq!(searched, 1);
        assert_eq!(speculation.way(LONG, wait(1200)), Way::Running);
    }

    #[test]
    fn a_search_that_saw_nothing_says_nothing_of_the_place() {
        let mut speculation = Speculation::default();
        for _ in 0..USELESS {
            assert_eq!(speculation.looks_for(LONG).unwrap().except, []);
            assert_eq!(speculation.way(LONG, THERE), Way::Search);
            speculation.saw_nothing();
        }
        assert_eq!(speculation.looks_for(LONG), None);
    }

    /// Two waits that cannot be told apart: what was wrong there is not the place again at once.
    #[test]
    fn a_place_at_which_a_guess_was_wrong_is_avoided() {
        let mut speculation = knows(THERE);
        speculation.was_wrong();
        speculation.rest = 0;
        let waits = speculation.looks_for(LONG).unwrap();
        assert_eq!(waits.except, [938..=1062]);
        assert_eq!(speculation.way(LONG, wait(64)), Way::Search);
    }

    #[test]
    fn what_is_of_no_use_any_more_is_looked_for_anew() {
        let mut speculation = knows(THERE);
        for is_of_use in [false, false, true, false, false] {
            assert_eq!(speculation.way(LONG, THERE), Way::Running);
            match is_of_use {
                true => speculation.was_of_use(),
                false => speculation.was_of_no_use(),
            }
        }
        assert_eq!(speculation.way(LONG, THERE), Way::Running);
        speculation.was_of_no_use();
        let held = (0..).take_while(|_| speculation.way(LONG, THERE) == Way::Held);
        assert_eq!(held.count(), 4);
        assert_eq!(speculation.way(LONG, THERE), Way::Search);
    }

    #[test]
    fn a_job_that_never_waits_is_waited_for_ever_less() {
        let mut speculation = Speculation::default();
        assert_eq!(speculation.way(LONG, Found::NotLookedFor), Way::Held);
        let mut waited = 0;
        for _ in 0..1000 {
            let found = match speculation.looks_for(LONG) {
                Some(_) => {
                    waited += 1;
                    Found::Nothing
                }
                None => Found::NotLookedFor,
            };
            assert_eq!(speculation.way(LONG, found), Way::Held);
        }
        assert!(waited <= 9, "{waited}");
        let little = Speculation::default().looks_for(Duration::from_millis(49));
        assert_eq!(little, None);
    }

    /// A job without order costs a bounded share of its checkpoints.
    #[test]
    fn of_a_thousand_checkpoints_of_a_job_without_order_few_are_lost() {
        let mut speculation = Speculation::default();
        let (mut lost, mut searched) = (0, 0);
        for _ in 0..1000 {
            match speculation.way(LONG, THERE) {
                Way::Held => {}
                Way::Search => {
                    searched += 1;
                    speculation.found_enough();
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
