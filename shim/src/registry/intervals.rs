//! A map from ranges of addresses to values.

use std::collections::BTreeMap;
use std::ops::Range;

/// Disjoint, non-empty, half-open ranges with a value each.
#[derive(Debug, Default)]
pub struct Intervals<T> {
    /// Start → (end, value).
    ranges: BTreeMap<u64, (u64, T)>,
}

impl<T: Clone + PartialEq> Intervals<T> {
    /// A map without ranges.
    pub const fn new() -> Self {
        Self {
            ranges: BTreeMap::new(),
        }
    }

    /// Cuts the range that contains `at` in its inside in two.
    fn split(&mut self, at: u64) {
        let Some((&start, (end, _))) = self.ranges.range(..at).next_back() else {
            return;
        };
        let end = *end;
        if end <= at {
            return;
        }
        if let Some((left_end, value)) = self.ranges.get_mut(&start) {
            *left_end = at;
            let value = value.clone();
            self.ranges.insert(at, (end, value));
        }
    }

    /// Forgets what is known about `range`.
    pub fn remove(&mut self, range: Range<u64>) {
        self.update(range, |_| None);
    }

    /// Replaces the value of every part of `range`: `change` gets what is known about the part (nothing for gaps) and
    /// answers what is to be known (nothing: a gap).
    pub fn update(&mut self, range: Range<u64>, mut change: impl FnMut(Option<&T>) -> Option<T>) {
        if range.is_empty() {
            return;
        }
        self.split(range.start);
        self.split(range.end);
        let inside: Vec<(u64, u64, T)> = self
            .ranges
            .range(range.clone())
            .map(|(&s, (e, v))| (s, *e, v.clone()))
            .collect();
        let mut at = range.start;
        let mut parts: Vec<(u64, u64, Option<T>)> = Vec::new();
        for (start, end, value) in &inside {
            if at < *start {
                parts.push((at, *start, change(None)));
            }
            parts.push((*start, *end, change(Some(value))));
            at = *end;
        }
        if at < range.end {
            parts.push((at, range.end, change(None)));
        }
        for (start, _, _) in &inside {
            self.ranges.remove(start);
        }
        for (start, end, value) in parts {
            if let Some(value) = value {
                self.ranges.insert(start, (end, value));
            }
        }
    }

    /// Known parts of `range`, in order, neighbours with equal values joined.
    pub fn joined(&self, range: Range<u64>) -> Vec<(Range<u64>, T)> {
        let mut result: Vec<(Range<u64>, T)> = Vec::new();
        let first = self
            .ranges
            .range(..range.start)
            .next_back()
            .filter(|(_, (end, _))| *end > range.start);
        for (&start, (end, value)) in first.into_iter().chain(self.ranges.range(range.clone())) {
            let (start, end) = (start.max(range.start), (*end).min(range.end));
            match result.last_mut() {
                Some((last, known)) if last.end == start && known == value => last.end = end,
                _ => result.push((start..end, value.clone())),
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPACE: u64 = 40;

    proptest! {
        /// Against one value per address.
        #[test]
        fn like_an_array(steps in proptest::collection::vec((0..SPACE, 0..SPACE, 0_u8..4, any::<bool>()), 0..40)) {
            let mut map = Intervals::new();
            let mut model = [None::<u8>; SPACE as usize];
            for (a, b, value, add) in steps {
                let range = a.min(b)..a.max(b);
                if add {
                    // A change that depends on what was there.
                    let change = |old: Option<&u8>| match old { Some(3) => None, Some(v) => Some(v + 1), None => Some(value) };
                    map.update(range.clone(), change);
                    for at in range { model[at as usize] = change(model[at as usize].as_ref()); }
                } else {
                    map.remove(range.clone());
                    for at in range { model[at as usize] = None; }
                }
                let mut seen = [None; SPACE as usize];
                let joined = map.joined(0..SPACE);
                for (range, value) in &joined {
                    prop_assert!(!range.is_empty());
                    for at in range.clone() { seen[at as usize] = Some(*value); }
                }
                prop_assert_eq!(seen, model);
                for pair in joined.windows(2) {
                    prop_assert!(pair[0].0.end < pair[1].0.start || pair[0].1 != pair[1].1);
                }
                let cut = map.joined(5..9);
                for (range, value) in cut {
                    for at in range { prop_assert!((5..9).contains(&at)); prop_assert_eq!(model[at as usize], Some(value)); }
                }
            }
        }
    }
}
