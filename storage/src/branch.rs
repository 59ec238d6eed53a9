//! Branches of a job's history: what the job continues from, and what it left behind.
//!
//! ```text
//! record   1    2    3    4    5      6            7    8
//!          TO   c2   c3   c4   c5     TO after 3   c7   c8
//!                    └──── branch 6 ──┘
//!                    └───────────────────────────  c7   c8   the current branch: 2, 3, 7, 8
//! ```
//!
//! A take-over that continues from an older checkpoint than the newest says so in its record: a *fork*. What stands between that
//! checkpoint and the fork is left behind; it is a branch of its own from then on, named by the number of the fork. The current
//! branch is what is met from the newest record backwards, jumping at each fork that is itself on the way.
//!
//! # Rules
//!
//! * A crash resumes on the current branch. `--from` reaches any.
//! * Retention keeps the last checkpoints of every branch, each for itself.
//! * A fork is part of the log, so nothing is known of one that cannot be read: what it left behind counts again, behind what was
//!   made since.

use serde::{Deserialize, Serialize};

/// A take-over that continued from an older checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fork {
    /// Number of its record.
    pub at: u64,
    /// The last record before it that is on its branch; 0: none.
    pub after: u64,
}

impl Fork {
    fn leaves(&self, number: u64) -> bool {
        self.after < number && number < self.at
    }
}

/// The forks of a log: where its history was left to continue from an older checkpoint. In any order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Forks(Vec<Fork>);

impl Forks {
    /// Adds those that are not known yet; what cannot be a fork is none.
    pub(crate) fn add(&mut self, more: impl IntoIterator<Item = Fork>) {
        self.0
            .extend(more.into_iter().filter(|fork| fork.after < fork.at));
        // Newest first.
        self.0
            .sort_unstable_by_key(|fork| std::cmp::Reverse(fork.at));
        self.0.dedup_by_key(|fork| fork.at);
    }

    /// The branch that a record is on: `None` for the current one, else the number of the fork that left it behind. All forks
    /// after it must be known.
    pub(crate) fn branch_of(&self, number: u64) -> Option<u64> {
        let is_left = self.current().any(|fork| fork.leaves(number));
        let first = || {
            self.0
                .iter()
                .filter(|fork| fork.leaves(number))
                .map(|f| f.at)
        };
        is_left.then(|| first().min()).flatten()
    }

    /// The forks on the current branch, newest first.
    fn current(&self) -> impl Iterator<Item = &Fork> {
        let mut next = u64::MAX;
        self.0.iter().filter(move |fork| {
            let is_current = fork.at <= next;
            if is_current {
                next = fork.after;
            }
            is_current
        })
    }

    /// Whether the current branch began with the job's beginning while there were checkpoints.
    pub(crate) fn began_afresh(&self) -> bool {
        self.current().any(|fork| fork.after == 0)
    }

    /// Those that are needed to tell where these records are, oldest first.
    pub(crate) fn needed_by(&self, records: &[u64]) -> Vec<Fork> {
        let mut needed: Vec<Fork> = Vec::new();
        for fork in self.0.iter().rev() {
            let leaves_one = records.iter().any(|&number| fork.leaves(number));
            // A fork that was left behind does not count, as long as that is known.
            let leaves_a_fork = needed.iter().any(|older| fork.leaves(older.at));
            if leaves_one || leaves_a_fork || fork.after == 0 {
                needed.push(*fork);
            }
        }
        needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn forks(pairs: &[(u64, u64)]) -> Forks {
        let mut forks = Forks::default();
        forks.add(pairs.iter().map(|&(at, after)| Fork { at, after }));
        forks
    }

    #[test]
    fn what_is_left_behind_has_the_name_of_the_fork() {
        let one = forks(&[(6, 3)]);
        let branches: Vec<_> = (1..9).map(|n| one.branch_of(n)).collect();
        let left = Some(6);
        assert_eq!(branches, [None, None, None, left, left, None, None, None]);
        // Back to what was left behind: then the other one is.
        let two = forks(&[(4, 1), (6, 3)]);
        assert_eq!(
            [1, 2, 3, 5].map(|n| two.branch_of(n)),
            [None, None, None, Some(6)]
        );
        // Further back than that: each keeps its name.
        let two = forks(&[(6, 1), (4, 1)]);
        assert_eq!(
            [1, 2, 3, 5, 7].map(|n| two.branch_of(n)),
            [None, Some(4), Some(4), Some(6), None]
        );
        assert!(!two.began_afresh());
        let anew = forks(&[(6, 0), (4, 1)]);
        assert_eq!(
            [1, 2, 5].map(|n| anew.branch_of(n)),
            [Some(6), Some(4), Some(6)]
        );
        assert!(anew.began_afresh());
        // Back on a branch that was left for a new beginning.
        assert!(!forks(&[(6, 0), (9, 5)]).began_afresh());
        assert_eq!(forks(&[(3, 3), (4, 9)]), Forks::default(), "no forks");
    }

    /// Forks as they can be: each goes on from a checkpoint before it.
    fn history() -> impl Strategy<Value = Vec<(u64, u64)>> {
        prop::collection::btree_map(2..40_u64, any::<u64>(), 0..8).prop_map(|forks| {
            (forks.into_iter())
                .map(|(at, after)| (at, after % at))
                .collect()
        })
    }

    proptest! {
        /// As one would find it record by record.
        #[test]
        fn the_current_branch_is_met_from_the_newest_record_backwards(history in history()) {
            let forks = forks(&history);
            let (mut on, mut next) = (vec![false; 41], 40);
            while next > 0 {
                on[next as usize] = true;
                next = match history.iter().find(|(at, _)| *at == next) {
                    Some((_, after)) => *after,
                    None => next - 1,
                };
            }
            for number in 1..=40 {
                prop_assert_eq!(forks.branch_of(number).is_none(), on[number as usize], "{}", number);
            }
        }

        #[test]
        fn what_is_kept_of_the_forks_tells_the_same(history in history(), kept in prop::collection::btree_set(1..40_u64, 0..10)) {
            let forks = forks(&history);
            let kept: Vec<u64> = kept.into_iter().filter(|n| history.iter().all(|(at, _)| at != n)).collect();
            let mut fewer = Forks::default();
            fewer.add(forks.needed_by(&kept));
            for &number in &kept {
                prop_assert_eq!(fewer.branch_of(number).is_none(), forks.branch_of(number).is_none(), "{}", number);
            }
            prop_assert_eq!(fewer.began_afresh(), forks.began_afresh());
        }
    }
}
