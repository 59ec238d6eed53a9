//! A list of chunk numbers, kept and stored as runs: most objects are made of consecutive chunks of the table or of
//! one chunk over and over (zeros), so their lists are a few bytes.

use serde::{Deserialize, Serialize};

/// Numbers of chunks in a manifest's table, in the order in which they make up an object.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ChunkList(Vec<Run>);

/// `count` numbers from `first`, each `step` (0 or 1) more than the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Run(u32, u32, u8);

impl Run {
    fn last(self) -> Option<u32> {
        self.0
            .checked_add(self.1.checked_sub(1)?.checked_mul(u32::from(self.2))?)
    }
}

impl ChunkList {
    /// The number of chunks in the object.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.iter().map(|run| u64::from(run.1)).sum()
    }

    /// Whether the object has no chunks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers of the chunks, in the order of the object.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.0.iter().flat_map(|&Run(first, count, step)| {
            (0..count).map(move |i| first.saturating_add(i.saturating_mul(u32::from(step))))
        })
    }

    /// Checks that every run is sound and below `table` entries.
    pub(crate) fn check(&self, table: usize) -> Result<(), String> {
        for run in &self.0 {
            if run.2 > 1 || run.1 == 0 || run.last().is_none_or(|last| last as usize >= table) {
                return Err(format!(
                    "a list of chunks names chunk {} and following, the table has {table}",
                    run.0
                ));
            }
        }
        Ok(())
    }
}

impl FromIterator<u32> for ChunkList {
    fn from_iter<I: IntoIterator<Item = u32>>(numbers: I) -> Self {
        let mut runs: Vec<Run> = Vec::new();
        for number in numbers {
            if let Some(run) = runs.last_mut()
                && run.1 < u32::MAX
            {
                if run.1 == 1 && (number == run.0 || run.0.checked_add(1) == Some(number)) {
                    run.1 = 2;
                    run.2 = u8::from(number != run.0);
                    continue;
                }
                let next = run
                    .last()
                    .and_then(|last| last.checked_add(u32::from(run.2)));
                if run.1 > 1 && next == Some(number) {
                    run.1 += 1;
                    continue;
                }
            }
            runs.push(Run(number, 1, 1));
        }
        Self(runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn runs_are_short() {
        let list: ChunkList = (5..1000).chain(std::iter::repeat_n(3, 1000)).collect();
        assert_eq!(list.0.len(), 2);
        assert_eq!(list.len(), 1995);
    }

    proptest! {
        #[test]
        fn round_trip(numbers in prop::collection::vec(prop_oneof![0..4u32, any::<u32>()], 0..60)) {
            let list: ChunkList = numbers.iter().copied().collect();
            prop_assert_eq!(list.len() as usize, numbers.len());
            prop_assert_eq!(list.iter().collect::<Vec<_>>(), numbers.clone());
            let max = numbers.iter().max().map_or(0, |m| *m as usize + 1);
            prop_assert!(list.check(max).is_ok());
            prop_assert!(max == 0 || list.check(max - 1).is_err());
        }
    }
}
