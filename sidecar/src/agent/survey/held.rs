//! How much device memory the driver would save into the job's processes: at least, while the job runs.
//!
//! What NVML says that the processes hold, less what goes before the driver saves anything: memory that was taken over, and what
//! the stacks of GPU threads may take.
//!
//! # Rules
//!
//! * NVML answers within 0.2 ms. The main loop waits [`TOGETHER`] for it and no longer, and asks once at a time: a driver that hangs
//!   answers when it likes, and until then nothing is known.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use phos_protocol::shim::Usage;
use phos_protocol::types::ProcessId;

use crate::agent::control::Control;

/// How long a look waits.
const TOGETHER: Duration = Duration::from_millis(60);
/// What else a process may hold for a moment and not keep, in bytes.
const MARGIN: u64 = 64 << 20;

/// A question that was put.
#[derive(Debug)]
struct Question {
    answer: Receiver<Option<u64>>,
    /// What the processes had said until then.
    usage: BTreeMap<ProcessId, Usage>,
}

/// The question that is open.
#[derive(Debug, Default)]
pub struct Held(Option<Question>);

impl Held {
    /// In bytes; none: that is not known now.
    pub fn native_at_least(
        &mut self,
        control: &Control,
        usage: &BTreeMap<ProcessId, Usage>,
    ) -> Option<u64> {
        let question = match self.0.take() {
            Some(open) => open,
            None => put(control, usage)?,
        };
        match question.answer.recv_timeout(TOGETHER) {
            Ok(held) => Some(less_what_goes(held?, &question.usage)),
            Err(RecvTimeoutError::Timeout) => {
                self.0 = Some(question);
                None
            }
            Err(RecvTimeoutError::Disconnected) => None,
        }
    }
}

fn put(control: &Control, usage: &BTreeMap<ProcessId, Usage>) -> Option<Question> {
    let (sender, answer) = channel();
    let (control, pids) = (control.clone(), usage.keys().copied().collect::<Vec<_>>());
    std::thread::Builder::new()
        .name("nvml-asked".into())
        .spawn(move || sender.send(control.held(&pids)))
        .ok()?;
    Some(Question {
        answer,
        usage: usage.clone(),
    })
}

fn less_what_goes(held: u64, usage: &BTreeMap<ProcessId, Usage>) -> u64 {
    usage.values().fold(held, |left, usage| {
        left.saturating_sub(usage.taken_over)
            .saturating_sub(usage.stacks)
            .saturating_sub(MARGIN)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn what_goes_before_the_driver_saves_is_not_counted() {
        let of = |taken_over, stacks| Usage {
            taken_over: taken_over * MIB,
            stacks: stacks * MIB,
            native: 0,
        };
        let usage = BTreeMap::from([(7, of(4000, 264)), (9, of(1000, 264))]);
        let margin = 2 * MARGIN;
        assert_eq!(
            less_what_goes(6000 * MIB + margin, &usage),
            (6000 - 5528) * MIB
        );
        // Memory that two processes share is subtracted twice.
        assert_eq!(less_what_goes(5000 * MIB, &usage), 0);
    }
}
