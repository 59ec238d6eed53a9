//! The phases of a stop in the order in which they follow each other. Pure.
//!
//! What is reported of a phase is how long it took. It begins where the one before it ended: those of the sidecar and those of the agent follow each
//! other beside each other, as `docs/architecture.md` draws them, but for a few ms.

use std::collections::BTreeMap;

/// A phase of a stop, in ms from its beginning.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// The name under which it is reported.
    pub name: &'static str,
    /// When it began.
    pub begins: f64,
    /// When it ended.
    pub ends: f64,
}

/// What the sidecar does from when the job is quiet.
const SIDECAR: [&str; 3] = ["import", "name", "hold_drain"];
/// What the agent does from then on.
const AGENT: [&str; 4] = ["detach", "control_checkpoint", "criu", "control_restore"];

/// The phases of a stop that held the job for so many ms, as far as they were measured.
pub fn of_stop(took: &BTreeMap<String, f64>, stop_ms: f64) -> Vec<Phase> {
    let known = |name: &'static str| took.get(name).copied();
    let mut phases = Vec::new();
    let mut follow = |mut at: f64, names: &[&'static str]| {
        for &name in names {
            if let Some(ms) = known(name) {
                phases.push(Phase {
                    name,
                    begins: at,
                    ends: at + ms,
                });
                at += ms;
            }
        }
        at
    };
    let quiet = follow(0.0, &["quiesce"]);
    follow(quiet, &SIDECAR);
    follow(quiet, &AGENT);
    let last = ["attach", "held_again"];
    let lasted: f64 = last.iter().filter_map(|name| known(name)).sum();
    follow((stop_ms - lasted).max(0.0), &last);
    phases
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phases_follow_each_other() {
        let took = [
            ("quiesce", 20.0),
            ("name", 9.0),
            ("detach", 10.0),
            ("criu", 200.0),
            ("attach", 15.0),
            ("held_again", 50.0),
            ("commit", 30.0),
        ];
        let took = took.map(|(name, ms)| (name.to_owned(), ms)).into();
        let found: Vec<_> = (of_stop(&took, 450.0).into_iter())
            .map(|phase| (phase.name, phase.begins, phase.ends))
            .collect();
        assert_eq!(
            found,
            [
                ("quiesce", 0.0, 20.0),
                ("name", 20.0, 29.0),
                ("detach", 20.0, 30.0),
                ("criu", 30.0, 230.0),
                ("attach", 385.0, 400.0),
                ("held_again", 400.0, 450.0),
            ]
        );
        assert_eq!(of_stop(&BTreeMap::new(), 1.0), []);
    }
}
