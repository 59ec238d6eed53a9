//! Whose turn it is to copy memory: the agent's, or CRIU's after the agent failed. Pure.

/// Most dumps that are CRIU's after a failure: two to this power.
const MOST: u32 = 10;

/// After a failure the next dump is CRIU's, after a second in a row the next two, then four.
#[derive(Debug)]
pub(super) struct Turns {
    /// The number of dumps in which CRIU copies before the agent does again.
    left: u32,
    /// The number of failures in a row.
    failures: u32,
}

impl Turns {
    pub(super) const fn new() -> Turns {
        Turns {
            left: 0,
            failures: 0,
        }
    }

    /// Begins a dump: whether the agent copies the memory.
    pub(super) const fn begin(&mut self) -> bool {
        let is_ours = self.left == 0;
        self.left = self.left.saturating_sub(1);
        is_ours
    }

    /// Notes that the agent failed to copy: CRIU has the next turns.
    pub(super) fn failed(&mut self) {
        self.left = 1 << self.failures.min(MOST);
        self.failures = self.failures.saturating_add(1);
    }

    /// Notes that the agent copied the memory.
    pub(super) const fn went_well(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_in_a_row_passes_on_twice_as_many() {
        let mut turns = Turns::new();
        let mut passed_on = |until: u32| {
            let mut count = 0;
            while !turns.begin() {
                count += 1;
                assert!(count <= until);
            }
            turns.failed();
            count
        };
        let counts: Vec<u32> = (0..14).map(|_| passed_on(1 << MOST)).collect();
        assert_eq!(
            counts,
            [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024, 1024]
        );
        while !turns.begin() {}
        turns.went_well();
        assert!(turns.begin());
        turns.failed();
        assert!(!turns.begin() && turns.begin());
    }
}
