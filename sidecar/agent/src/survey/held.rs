//! How much device memory the driver would save into the job's processes: at least, while the job runs.
//!
//! It is what the processes hold by NVML, less what is released before the driver saves anything: memory that was taken over, and
//! what the stacks of GPU threads may take. Stacks that a kernel made larger than that count as if they were saved.
//!
//! # Rules
//!
//! * NVML answers within 0.2 ms. The main loop waits [`TOGETHER`] for it and no longer, and asks once at a time: a driver that hangs
//!   answers when it likes, and an answer that comes late is not used.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::time::{Duration, Instant};

use phos_protocol::shim::Usage;
use phos_protocol::types::ProcessId;

use crate::control::Control;

/// How long a look waits for the answers of all processes.
const TOGETHER: Duration = Duration::from_millis(60);
/// After so long an answer is about another job than the one that is looked at.
const LATE: Duration = Duration::from_secs(1);
/// What else a process may hold for a moment and not keep, in bytes.
const MARGIN: u64 = 64 << 20;

/// What each process holds on each device on which it holds something, in bytes; none: that cannot be told.
type Answer = Option<Vec<(ProcessId, u64)>>;

/// A question that was put.
#[derive(Debug)]
struct Question {
    answer: Receiver<Answer>,
    /// What the processes had said of their memory when the question was put.
    usage: BTreeMap<ProcessId, Usage>,
    since: Instant,
}

/// What is known of the bytes that the driver would save.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// The driver would save at least so many bytes.
    AtLeast(u64),
    /// No answer has come since then.
    NotYet(Instant),
    /// The number cannot be told on this machine.
    Nothing,
}

/// The question to NVML that is open, if one is.
#[derive(Debug, Default)]
pub struct Held(Option<Question>);

impl Held {
    /// The least that the driver would save of the processes, as far as it is known.
    pub fn native_at_least(
        &mut self,
        control: &Control,
        usage: &BTreeMap<ProcessId, Usage>,
        now: Instant,
    ) -> Said {
        if let Some(open) = &self.0
            && now.saturating_duration_since(open.since) >= LATE
        {
            match open.answer.try_recv() {
                Err(TryRecvError::Empty) => return Said::NotYet(open.since),
                Ok(_) | Err(TryRecvError::Disconnected) => self.0 = None,
            }
        }
        let Some(question) = self.0.take().or_else(|| put(control, usage, now)) else {
            return Said::Nothing;
        };
        match question.answer.recv_timeout(TOGETHER) {
            Ok(Some(held)) => Said::AtLeast(less_what_goes(&held, &question.usage)),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Said::Nothing,
            Err(RecvTimeoutError::Timeout) => {
                let since = question.since;
                self.0 = Some(question);
                Said::NotYet(since)
            }
        }
    }
}

fn put(control: &Control, usage: &BTreeMap<ProcessId, Usage>, now: Instant) -> Option<Question> {
    let (sender, answer) = channel();
    let (control, pids) = (control.clone(), usage.keys().copied().collect::<Vec<_>>());
    std::thread::Builder::new()
        .name("nvml-asked".into())
        .spawn(move || sender.send(control.held_by(&pids)))
        .ok()?;
    Some(Question {
        answer,
        usage: usage.clone(),
        since: now,
    })
}

fn less_what_goes(held: &[(ProcessId, u64)], usage: &BTreeMap<ProcessId, Usage>) -> u64 {
    let of_one = |(&pid, usage): (&ProcessId, &Usage)| {
        let devices = || held.iter().filter(|(of, _)| *of == pid);
        let stacks = usage.stacks.saturating_mul(devices().count() as u64);
        devices()
            .fold(0, |sum: u64, (_, bytes)| sum.saturating_add(*bytes))
            .saturating_sub(usage.taken_over)
            .saturating_sub(stacks)
            .saturating_sub(MARGIN)
    };
    usage.iter().map(of_one).fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use phos_gpu::control::DeviceUsage;

    const MIB: u64 = 1 << 20;

    fn of(taken_over: u64, stacks: u64) -> Usage {
        Usage {
            taken_over: taken_over * MIB,
            stacks: stacks * MIB,
            native: 0,
        }
    }

    #[test]
    fn what_goes_before_the_driver_saves_is_not_counted() {
        let usage = BTreeMap::from([(7, of(4000, 264)), (9, of(1000, 264)), (11, of(0, 264))]);
        // The first on two devices; of the last NVML does not know.
        let held = [(7, 4000 * MIB), (7, 1000 * MIB), (9, 2000 * MIB)];
        assert_eq!(
            less_what_goes(&held, &usage),
            (5000 - 4000 - 2 * 264 - 64 + 2000 - 1000 - 264 - 64) * MIB
        );
        // What one has to spare is nothing to another.
        let held = [(7, 100 * MIB), (9, 2000 * MIB)];
        assert_eq!(
            less_what_goes(&held, &usage),
            (2000 - 1000 - 264 - 64) * MIB
        );
        let absurd = BTreeMap::from([(7, of(0, u64::MAX / MIB)), (9, of(0, 0))]);
        assert_eq!(less_what_goes(&[(9, u64::MAX)], &absurd), u64::MAX - MARGIN);
    }

    /// It answers when it is told to.
    struct Slow(Mutex<Receiver<u64>>);

    impl DeviceUsage for Slow {
        fn of(&self, processes: &[ProcessId]) -> Answer {
            let bytes = self.0.lock().unwrap().recv().ok()?;
            Some(processes.iter().map(|&pid| (pid, bytes)).collect())
        }
    }

    #[test]
    fn who_does_not_answer_is_asked_once_and_a_late_answer_is_not_used() {
        let (say, said) = channel();
        let control = Control::with_usage(Slow(Mutex::new(said)));
        let mut held = Held::default();
        let usage = BTreeMap::from([(7, of(0, 0))]);
        let start = Instant::now();
        let mut ask = |seconds: f64| {
            let now = start + Duration::from_secs_f64(seconds);
            held.native_at_least(&control, &usage, now)
        };
        for seconds in [0.0, 0.5, 5.0] {
            assert_eq!(ask(seconds), Said::NotYet(start));
        }
        // The first is for the open question, and comes too late.
        say.send(9000 * MIB).unwrap();
        say.send(1064 * MIB).unwrap();
        let answer = loop {
            match ask(6.0) {
                Said::NotYet(_) => {}
                answer => break answer,
            }
        };
        assert_eq!(answer, Said::AtLeast(1000 * MIB));
        // Without NVML.
        drop(say);
        assert_eq!(ask(6.0), Said::Nothing);
    }
}
