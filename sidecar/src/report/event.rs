//! What happens to a job under phos-ft, as events with stable names.
//!
//! One JSON object each, by the names and fields of these types; a field may be added, none is renamed or removed. `docs/events.md` lists
//! them, and a test compares the two.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::reason::FailureReason;
use super::status::{CheckpointReport, RemoteReport};

/// An event, with its place among all of a job's on this machine.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// From 1, one more with each event; a sidecar that follows another continues its numbers.
    pub seq: u64,
    /// When, in ms since 1970.
    pub at_ms: u64,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// A sidecar started for the job.
    SidecarStarted {
        /// The version of phos-ft.
        version: String,
    },
    /// The job was started with its first step.
    JobStarted {
        /// Its command, without secrets.
        command: Vec<String>,
    },
    /// The job ran already when this sidecar came to it.
    JobFound,
    /// The job was resumed from a checkpoint.
    JobResumed(Resumed),
    /// The job's processes ended.
    JobEnded {
        /// What follows from that.
        how: Ending,
        /// Their exit, in words: `code 1`, `signal 9`.
        exit: String,
    },
    /// The agent is not heard of any more; its job may have ended with it.
    AgentLost {
        /// Why, in words for people.
        message: String,
    },
    /// The job is not brought back any more.
    GivenUp {
        /// Why, in words for people.
        message: String,
    },
    /// A checkpoint was begun.
    CheckpointStarted {
        /// Why, as the schedule names it.
        trigger: String,
    },
    /// The job was held for a checkpoint, did not fall quiet in time and runs on; it is tried again.
    QuiesceRetried {
        /// Why it did not.
        reason: FailureReason,
        /// How long it was held for that, in ms.
        held_ms: f64,
    },
    /// A checkpoint can be restored from now on.
    CheckpointStored(Box<CheckpointReport>),
    /// A checkpoint was given up. The job runs on.
    CheckpointFailed {
        /// Why it was begun.
        trigger: String,
        /// Why it failed.
        reason: FailureReason,
        /// The same, in words for people.
        message: String,
        /// How long the job was held for it, all tries together, in ms.
        stop_ms: f64,
    },
    /// A checkpoint of this machine is in the store as well.
    CheckpointCopied(RemoteReport),
    /// A checkpoint of this machine could not be copied to the store; it is tried again.
    CopyFailed {
        /// Why, in words for people.
        message: String,
    },
    /// From now on, what the job does would be lost.
    Unprotected {
        /// Why.
        reason: FailureReason,
        /// The same, in words for people.
        message: String,
        /// What was done since then would be lost, in ms since 1970.
        since_ms: u64,
    },
    /// What the job does is protected again.
    Protected,
    /// Checkpoints are ruled out by what the job does at present.
    RuledOut {
        /// By what, in words for people.
        message: String,
    },
    /// They are possible again.
    Possible,
    /// A checkpoint could not be restored; an older one is tried.
    RestoreFailed {
        /// The checkpoint.
        checkpoint: String,
        /// Why, in words for people.
        message: String,
    },
    /// A checkpoint lacks something that it needs.
    Damaged {
        /// The checkpoint.
        checkpoint: String,
        /// What is wrong, in words for people.
        message: String,
    },
    /// The store cannot be read, and the job waits for it.
    StoreUnreachable {
        /// Why, in words for people.
        message: String,
    },
    /// Another machine has the job now: this one ends it here.
    Fenced {
        /// Who, in words for people.
        message: String,
    },
    /// The machine will be taken away.
    PreemptionNoticed {
        /// Who says so: `aws`, `gcp`, `azure`, `file`.
        source: String,
        /// What will happen, in the source's words.
        what: String,
        /// When, in ms since 1970, if that is known.
        ends_ms: Option<u64>,
    },
    /// The machine stays after all.
    PreemptionWithdrawn,
}

impl Event {
    /// Cuts texts off that are longer than so many bytes, commands as a whole.
    pub fn cut_texts(&mut self, longest: usize) {
        match self {
            Self::JobStarted { command } => {
                let mut left = longest;
                let mut whole = 0;
                // A byte between two of them.
                while let Some(word) = command.get(whole)
                    && word.len() < left
                {
                    left -= word.len() + 1;
                    whole += 1;
                }
                if let Some(word) = command.get_mut(whole) {
                    cut(word, left);
                    command.truncate(whole + 1);
                }
            }
            Self::AgentLost { message }
            | Self::GivenUp { message }
            | Self::CheckpointFailed { message, .. }
            | Self::CopyFailed { message }
            | Self::Unprotected { message, .. }
            | Self::RuledOut { message }
            | Self::RestoreFailed { message, .. }
            | Self::Damaged { message, .. }
            | Self::StoreUnreachable { message }
            | Self::Fenced { message }
            | Self::PreemptionNoticed { what: message, .. } => cut(message, longest),
            Self::SidecarStarted { .. }
            | Self::JobFound
            | Self::JobResumed(_)
            | Self::JobEnded { .. }
            | Self::CheckpointStarted { .. }
            | Self::QuiesceRetried { .. }
            | Self::CheckpointStored(_)
            | Self::CheckpointCopied(_)
            | Self::Protected
            | Self::Possible
            | Self::PreemptionWithdrawn => {}
        }
    }

    /// The name under which programs know it.
    #[must_use]
    pub fn name(&self) -> String {
        // Said once, by the attribute above.
        let value = serde_json::to_value(self).unwrap_or_default();
        value["event"].as_str().unwrap_or_default().to_owned()
    }
}

/// Cuts a text off between characters, and marks that.
fn cut(text: &mut String, longest: usize) {
    if text.len() > longest {
        let mut at = longest;
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        text.truncate(at);
        text.push('…');
    }
}

/// How a job was resumed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumed {
    /// The checkpoint, as `phos-ft list` names it.
    pub checkpoint: String,
    /// Where that is.
    pub place: Place,
    /// When it was stored, in ms since 1970.
    pub taken_ms: u64,
    /// What the resume followed.
    pub after: After,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// The parts of that, in ms; some of them beside each other.
    pub phases_ms: BTreeMap<String, f64>,
    /// The size of the image, in bytes.
    pub total_bytes: u64,
    /// Bytes of it that were not on the GPU any more.
    pub fetched_bytes: u64,
}

/// Where a checkpoint is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// On this machine.
    Local,
    /// In the store.
    Store,
}

/// What a resume followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum After {
    /// The start of phos-ft: nothing ran on this machine.
    Start,
    /// The job's end, by a signal or with an error.
    Crash,
}

/// What follows from the end of a job's processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ending {
    /// The job is done.
    Finished,
    /// Somebody asked for its end; the next start resumes it.
    Requested,
    /// By a signal or with an error: it is brought back, or given up.
    Crashed,
}

impl Place {
    /// The name under which programs know it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Store => "store",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const DOCUMENTED: &str = include_str!("../../../docs/events.md");

    /// One of each, and how many there are.
    #[allow(clippy::too_many_lines, reason = "one of each event")]
    fn samples() -> Vec<Event> {
        let message = || "because".to_owned();
        let reason = FailureReason::Store;
        let samples = vec![
            Event::SidecarStarted { version: message() },
            Event::JobStarted {
                command: vec![message()],
            },
            Event::JobFound,
            Event::JobResumed(Resumed {
                checkpoint: "L5".into(),
                place: Place::Local,
                taken_ms: 1,
                after: After::Crash,
                seconds: 1.5,
                phases_ms: BTreeMap::from([("criu".into(), 2.5)]),
                total_bytes: 3,
                fetched_bytes: 2,
            }),
            Event::JobEnded {
                how: Ending::Crashed,
                exit: "signal 9".into(),
            },
            Event::AgentLost { message: message() },
            Event::GivenUp { message: message() },
            Event::CheckpointStarted { trigger: message() },
            Event::QuiesceRetried {
                reason,
                held_ms: 1.0,
            },
            Event::CheckpointStored(Box::new(CheckpointReport {
                id: 5,
                local: true,
                durability: None,
                trigger: message(),
                taken_ms: 2,
                held_at_ms: 1,
                step: None,
                stop_ms: 0.5,
                parts_ms: BTreeMap::new(),
                rates: BTreeMap::new(),
                total_bytes: 4,
                changed_bytes: 3,
                copied_bytes: 2,
                stored_bytes: 1,
                seconds: 0.1,
            })),
            Event::CheckpointFailed {
                trigger: message(),
                reason,
                message: message(),
                stop_ms: 1.0,
            },
            Event::CheckpointCopied(RemoteReport {
                id: 1,
                local: 5,
                taken_ms: 1,
                sent_bytes: 1,
                seconds: 1.0,
            }),
            Event::CopyFailed { message: message() },
            Event::Unprotected {
                reason,
                message: message(),
                since_ms: 1,
            },
            Event::Protected,
            Event::RuledOut { message: message() },
            Event::Possible,
            Event::RestoreFailed {
                checkpoint: "5".into(),
                message: message(),
            },
            Event::Damaged {
                checkpoint: "5".into(),
                message: message(),
            },
            Event::StoreUnreachable { message: message() },
            Event::Fenced { message: message() },
            Event::PreemptionNoticed {
                source: message(),
                what: message(),
                ends_ms: Some(1),
            },
            Event::PreemptionWithdrawn,
        ];
        // Whoever adds an event meets this, and adds a sample as well.
        for sample in &samples {
            match sample {
                Event::SidecarStarted { .. }
                | Event::JobStarted { .. }
                | Event::JobFound
                | Event::JobResumed(_)
                | Event::JobEnded { .. }
                | Event::AgentLost { .. }
                | Event::GivenUp { .. }
                | Event::CheckpointStarted { .. }
                | Event::QuiesceRetried { .. }
                | Event::CheckpointStored(_)
                | Event::CheckpointFailed { .. }
                | Event::CheckpointCopied(_)
                | Event::CopyFailed { .. }
                | Event::Unprotected { .. }
                | Event::Protected
                | Event::RuledOut { .. }
                | Event::Possible
                | Event::RestoreFailed { .. }
                | Event::Damaged { .. }
                | Event::StoreUnreachable { .. }
                | Event::Fenced { .. }
                | Event::PreemptionNoticed { .. }
                | Event::PreemptionWithdrawn => {}
            }
        }
        samples
    }

    /// The first column of a table of the documentation, with its rows.
    fn rows(of: &str) -> Vec<(&str, &str)> {
        let table = DOCUMENTED.split(of).nth(1).unwrap_or_default();
        let table = table.trim_start_matches(|c| c != '\n').trim_start();
        let lines = table
            .lines()
            .skip(1)
            .take_while(|line| line.starts_with('|'));
        let name = |line: &'static str| Some((line.split('`').nth(1)?, line));
        lines.filter_map(name).collect()
    }

    #[test]
    fn each_event_reads_back_and_is_documented_with_its_fields() {
        let rows = rows("| event |");
        let mut names = BTreeSet::new();
        for event in samples() {
            let name = event.name();
            let record = Record {
                seq: 7,
                at_ms: 8,
                event,
            };
            let text = serde_json::to_string(&record).unwrap();
            assert_eq!(serde_json::from_str::<Record>(&text).unwrap(), record);
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let (_, row) = *rows.iter().find(|(known, _)| *known == name).unwrap();
            for field in value.as_object().unwrap().keys() {
                let common = ["seq", "at_ms", "event"].contains(&field.as_str());
                assert!(
                    common || row.contains(&format!("`{field}`")),
                    "{name}: {field}"
                );
            }
            names.insert(name);
        }
        let documented: BTreeSet<_> = rows.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(names, documented);
    }

    #[test]
    fn each_reason_is_documented() {
        let rows = rows("| reason |");
        let names: Vec<_> = rows.iter().map(|(name, _)| *name).collect();
        for reason in FailureReason::ALL {
            assert!(names.contains(&reason.name()), "{reason:?}");
            let value = serde_json::to_value(reason).unwrap();
            assert_eq!(value, reason.name());
        }
        assert_eq!(names.len(), FailureReason::ALL.len());
    }
}
