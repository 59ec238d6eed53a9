//! Which checkpoints to keep.
//!
//! # Rules
//!
//! * The newest checkpoint is always kept, whatever is asked for.
//! * `last` keeps the newest N. `hourly` and `daily` keep the newest checkpoint of each of the N newest hours and days
//!   (UTC) *that have one*, so a job that rested over the weekend loses nothing on Monday. A checkpoint is kept if any
//!   rule wants it.
//! * Each branch of the history is thinned out for itself: a run that began again, or resumed from an older checkpoint, never
//!   costs the run before it its newest checkpoints, and neither does a run that follows one that ended. They stay until a person
//!   drops the branches ([`Retention::drop_branches`]).
//! * Order is that of the numbers, never that of the times: a clock that was set back or forward moves a checkpoint into
//!   another hour, no more.
//! * Deciding after every checkpoint keeps the same as deciding once at the end, and deciding twice changes nothing: so
//!   it does not matter how often, or by whom, a history is pruned.

use std::collections::{BTreeMap, BTreeSet};

/// Milliseconds of an hour.
const HOUR: u64 = 3_600_000;
/// Milliseconds of a day.
const DAY: u64 = 24 * HOUR;

/// What to keep. Without any rule, everything is kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retention {
    /// How many of the newest checkpoints to keep; `None`: this rule is not in force.
    pub last: Option<u32>,
    /// The newest checkpoint of each of the newest so many hours that have one.
    pub hourly: Option<u32>,
    /// The newest checkpoint of each of the newest so many days that have one.
    pub daily: Option<u32>,
    /// Whether what was left behind goes altogether.
    pub drop_branches: bool,
}

/// A checkpoint as retention sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The checkpoint's number: a greater one is newer.
    pub number: u64,
    /// When it was taken, in milliseconds since 1970 UTC.
    pub created_ms: u64,
    /// The branch that it is on, or what the runs before the current one are called; `None`: the current one.
    pub branch: Option<u64>,
}

impl Retention {
    /// Whether there is any rule: without one nothing is ever removed.
    #[must_use]
    pub const fn is_set(&self) -> bool {
        self.has_rule() || self.drop_branches
    }

    const fn has_rule(&self) -> bool {
        self.last.is_some() || self.hourly.is_some() || self.daily.is_some()
    }

    /// The numbers of the checkpoints to keep, of those there are, in any order.
    #[must_use]
    pub fn keep(&self, candidates: &[Candidate]) -> BTreeSet<u64> {
        let mut branches: BTreeMap<Option<u64>, Vec<Candidate>> = BTreeMap::new();
        for candidate in candidates {
            if candidate.branch.is_none() || !self.drop_branches {
                branches
                    .entry(candidate.branch)
                    .or_default()
                    .push(*candidate);
            }
        }
        (branches.into_values())
            .flat_map(|branch| self.keep_of(branch))
            .collect()
    }

    /// The numbers of the checkpoints of one branch that the rules keep.
    fn keep_of(&self, mut newest_first: Vec<Candidate>) -> BTreeSet<u64> {
        newest_first.sort_unstable_by_key(|c| std::cmp::Reverse(c.number));
        if !self.has_rule() {
            return newest_first.iter().map(|c| c.number).collect();
        }
        let mut kept: BTreeSet<u64> = newest_first.first().map(|c| c.number).into_iter().collect();
        let last = self.last.unwrap_or(0) as usize;
        kept.extend(newest_first.iter().take(last).map(|c| c.number));
        for (rule, length) in [(self.hourly, HOUR), (self.daily, DAY)] {
            let limit = rule.unwrap_or(0) as usize;
            let mut seen = BTreeSet::new();
            for candidate in &newest_first {
                if seen.len() == limit {
                    break;
                }
                if seen.insert(candidate.created_ms / length) {
                    kept.insert(candidate.number);
                }
            }
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn every(step_ms: u64, count: u64) -> Vec<Candidate> {
        (0..count)
            .map(|n| Candidate {
                number: n + 2,
                created_ms: n * step_ms,
                branch: None,
            })
            .collect()
    }

    #[test]
    fn the_rules_by_example() {
        // Three days, one every 20 minutes: numbers 2 to 217, three an hour.
        let history = every(HOUR / 3, 3 * 24 * 3);
        let keep = |last, hourly, daily| {
            let rules = Retention {
                last,
                hourly,
                daily,
                drop_branches: false,
            };
            rules.keep(&history).into_iter().rev().collect::<Vec<_>>()
        };
        assert_eq!(keep(Some(3), None, None), [217, 216, 215]);
        assert_eq!(keep(None, Some(3), None), [217, 214, 211]);
        assert_eq!(keep(None, None, Some(9)), [217, 145, 73]);
        assert_eq!(keep(Some(2), Some(2), Some(2)), [217, 216, 214, 145]);
        assert_eq!(keep(Some(0), None, None), [217], "never nothing");
        assert_eq!(keep(None, None, None).len(), history.len());
        assert!(
            Retention {
                last: Some(1),
                ..Retention::default()
            }
            .keep(&[])
            .is_empty()
        );
    }

    #[test]
    fn hours_without_a_checkpoint_do_not_count() {
        let history =
            [(2, 0), (3, HOUR), (4, 50 * HOUR), (5, 50 * HOUR + 1)].map(|(number, created_ms)| {
                Candidate {
                    number,
                    created_ms,
                    branch: None,
                }
            });
        let rules = Retention {
            hourly: Some(3),
            ..Retention::default()
        };
        assert_eq!(rules.keep(&history), BTreeSet::from([2, 3, 5]));
    }

    #[test]
    fn what_was_left_behind_keeps_its_newest_until_it_is_dropped() {
        let on = |branch, numbers: std::ops::Range<u64>| {
            numbers.map(move |number| Candidate {
                number,
                created_ms: number,
                branch,
            })
        };
        let history: Vec<Candidate> = on(None, 2..4)
            .chain(on(Some(9), 4..9))
            .chain(on(None, 10..13))
            .collect();
        let mut rules = Retention {
            last: Some(2),
            ..Retention::default()
        };
        assert_eq!(rules.keep(&history), BTreeSet::from([7, 8, 11, 12]));
        rules.drop_branches = true;
        assert_eq!(rules.keep(&history), BTreeSet::from([11, 12]));
        rules.last = None;
        assert!(rules.is_set());
        assert_eq!(rules.keep(&history), BTreeSet::from([2, 3, 10, 11, 12]));
        // As it is right after a new beginning.
        rules = Retention::default();
        rules.last = Some(1);
        let left: Vec<Candidate> = on(Some(9), 4..9).collect();
        assert_eq!(rules.keep(&left), BTreeSet::from([8]));
    }

    fn rules() -> impl Strategy<Value = Retention> {
        let rule = || prop::option::of(0..6u32);
        (rule(), rule(), rule()).prop_map(|(last, hourly, daily)| Retention {
            last,
            hourly,
            daily,
            drop_branches: false,
        })
    }

    /// Histories whose clock runs on, and jumps now and then.
    fn history() -> impl Strategy<Value = Vec<Candidate>> {
        let step = prop_oneof![
            4 => 0..2 * HOUR as i64,
            1 => -3 * DAY as i64..3 * DAY as i64,
        ];
        prop::collection::vec(step, 0..60).prop_map(|steps| {
            let mut at = 30 * DAY as i64;
            let mut history = Vec::new();
            for (number, step) in steps.into_iter().enumerate() {
                at = (at + step).max(0);
                history.push(Candidate {
                    branch: None,
                    number: 2 + 3 * number as u64,
                    created_ms: at as u64,
                });
            }
            history
        })
    }

    proptest! {
        #[test]
        fn what_always_holds(rules in rules(), history in history(), shift in any::<prop::sample::Index>()) {
            let kept = rules.keep(&history);
            let numbers: BTreeSet<u64> = history.iter().map(|c| c.number).collect();
            prop_assert!(kept.is_subset(&numbers));
            prop_assert!(numbers.last().is_none_or(|newest| kept.contains(newest)), "the newest is kept");
            if rules.is_set() {
                let most = [rules.last, rules.hourly, rules.daily].iter().flatten().sum::<u32>() as usize;
                prop_assert!(kept.len() <= most.max(1));
            }
            // The newest `last` are kept, whatever the clock did.
            for number in numbers.iter().rev().take(rules.last.unwrap_or(0) as usize) {
                prop_assert!(kept.contains(number));
            }
            let mut shuffled = history.clone();
            if !shuffled.is_empty() {
                let at = shift.index(shuffled.len());
                shuffled.rotate_left(at);
            }
            prop_assert_eq!(rules.keep(&shuffled), kept.clone(), "order of the input means nothing");
            let left: Vec<Candidate> = history.iter().copied().filter(|c| kept.contains(&c.number)).collect();
            prop_assert_eq!(rules.keep(&left), kept, "twice changes nothing");
        }

        #[test]
        fn after_every_checkpoint_is_the_same_as_once_at_the_end(rules in rules(), history in history()) {
            let mut left: Vec<Candidate> = Vec::new();
            for candidate in &history {
                left.push(*candidate);
                let kept = rules.keep(&left);
                left.retain(|c| kept.contains(&c.number));
            }
            let kept: BTreeSet<u64> = left.iter().map(|c| c.number).collect();
            prop_assert_eq!(kept, rules.keep(&history));
        }

        #[test]
        fn a_further_rule_removes_nothing(a in rules(), b in rules(), history in history()) {
            prop_assume!(a.is_set());
            let both = Retention {
                last: a.last.max(b.last), hourly: a.hourly.max(b.hourly), drop_branches: false,
                daily: a.daily.max(b.daily),
            };
            prop_assert!(a.keep(&history).is_subset(&both.keep(&history)));
        }
    }
}
