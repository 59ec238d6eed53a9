//! Asks the driver whether it would refuse to checkpoint processes that run: by a lock that is given back at once.
//!
//! Measured on driver 580: a process with a profiler is refused within 0.5 ms and notices nothing; any other is held for 14 ms at
//! most. So the driver is asked only about processes in which a tool has attached itself to the driver.
//!
//! # Rules
//!
//! * The main loop waits [`TOGETHER`] for all answers of one look, and no longer: a process that was stopped, or a driver that hangs,
//!   answers when it likes.
//! * There is one question at a time about a process, and no checkpoint while one is open: a lock that comes late would meet the
//!   checkpoint's own.
//! * A process that was locked and cannot be unlocked is lost, as after a checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use phos_gpu::control::{ControlError, ControlState, ProcessState};
use phos_protocol::types::ProcessId;

use crate::tree;

/// How long a lock waits for calls under way.
const LOCK: Duration = Duration::from_millis(50);
/// How long a look waits for all of its answers: an answer takes as long as the lock at most.
const TOGETHER: Duration = Duration::from_millis(60);
/// How long an unlock that fails is tried again.
const UNLOCK: (Duration, u32) = (Duration::from_millis(10), 100);
/// Most questions that are open: no job has more processes with a profiler, and of others the checkpoint itself says it.
const MOST: usize = 32;

/// The driver's answer to a question about a process.
#[derive(Debug)]
enum Answer {
    /// Nothing against it, or something that may be over when it is asked again.
    Fine,
    /// It uses what the driver does not checkpoint.
    Refused(ControlError),
    /// The process stays locked.
    Lost(ControlError),
}

/// Why no checkpoint is to begin, by what the driver says.
#[derive(Debug)]
pub enum Against {
    /// The driver would refuse to checkpoint the process.
    Refused(ControlError),
    /// This process stays locked: it cannot continue.
    Lost(ControlError),
    /// The driver has not said yet, since then.
    Silent(ProcessId, Instant),
}

#[derive(Debug)]
struct Question {
    answer: Receiver<Answer>,
    since: Instant,
}

/// The questions that the driver has not answered yet.
#[derive(Debug, Default)]
pub struct Questions {
    open: BTreeMap<ProcessId, Question>,
}

impl Questions {
    /// Asks about these processes, and hears the answers to earlier questions.
    ///
    /// # Errors
    /// [`Against`].
    pub fn ask(
        &mut self,
        driver: Option<&Arc<dyn ControlState>>,
        pids: &[ProcessId],
        now: Instant,
    ) -> Result<(), Against> {
        for &pid in pids {
            // One that stands still answers nobody; the checkpoint says so.
            if self.open.len() < MOST
                && let Some(driver) = driver
                && !self.open.contains_key(&pid)
                && !tree::is_stopped(pid)
                && let Some(answer) = put(Arc::clone(driver), pid)
            {
                self.open.insert(pid, Question { answer, since: now });
            }
        }
        self.hear(TOGETHER)
    }

    /// Waits so long for the answers that are not there.
    ///
    /// # Errors
    /// [`Against`].
    pub fn hear(&mut self, patience: Duration) -> Result<(), Against> {
        let end = Instant::now() + patience;
        let mut against = None;
        self.open.retain(|&pid, question| {
            let left = end.saturating_duration_since(Instant::now());
            let (open, found) = match question.answer.recv_timeout(left) {
                Ok(Answer::Fine) | Err(RecvTimeoutError::Disconnected) => (false, None),
                Ok(Answer::Refused(error)) => (false, Some(Against::Refused(error))),
                Ok(Answer::Lost(error)) => (false, Some(Against::Lost(error))),
                Err(RecvTimeoutError::Timeout) => {
                    (true, Some(Against::Silent(pid, question.since)))
                }
            };
            let is_worse = match (&against, &found) {
                (_, None) | (Some(Against::Lost(_)), _) => false,
                (None | Some(Against::Silent(..)), _) | (_, Some(Against::Lost(_))) => true,
                (Some(Against::Refused(_)), _) => false,
            };
            if is_worse {
                against = found;
            }
            open
        });
        against.map_or(Ok(()), Err)
    }
}

/// Asks about one process, in a thread: nobody waits for a driver that does not answer.
fn put(driver: Arc<dyn ControlState>, pid: ProcessId) -> Option<Receiver<Answer>> {
    let (sender, answer) = channel();
    std::thread::Builder::new()
        .name("driver-asked".into())
        .spawn(move || answer_one(driver.as_ref(), pid, &sender))
        .ok()?;
    Some(answer)
}

fn answer_one(driver: &dyn ControlState, pid: ProcessId, to: &Sender<Answer>) {
    let answer = match driver.lock(pid, LOCK) {
        Ok(()) => match unlock(driver, pid) {
            Ok(()) => Answer::Fine,
            Err(error) => Answer::Lost(error),
        },
        Err(error) if error.refused_process().is_some() => Answer::Refused(error),
        // Whatever else it is, the checkpoint itself will say.
        Err(_) => Answer::Fine,
    };
    let _ = to.send(answer);
}

fn unlock(driver: &dyn ControlState, pid: ProcessId) -> Result<(), ControlError> {
    let mut tries = 0;
    loop {
        let Err(error) = driver.unlock(pid) else {
            return Ok(());
        };
        // It has ended, or is not locked.
        if !matches!(driver.state(pid), Ok(ProcessState::Locked)) {
            return Ok(());
        }
        tries += 1;
        if tries == UNLOCK.1 {
            return Err(error);
        }
        std::thread::sleep(UNLOCK.0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU32, Ordering};

    use phos_protocol::types::GpuUuid;

    use super::*;
    use phos_gpu::control::ControlMeaning;

    /// A driver of one process, which does with locks what the test says.
    #[derive(Default)]
    struct Fake {
        locks: AtomicU32,
        unlocks: AtomicU32,
        /// What a lock answers.
        refuses: Option<u32>,
        keeps_locked: bool,
        /// A lock waits until this is gone.
        hangs: Mutex<Option<Receiver<()>>>,
    }

    fn error(call: &'static str, pid: ProcessId, result: u32) -> ControlError {
        ControlError::Call {
            call,
            pid,
            result,
            name: "x".into(),
            hint: "",
            // As the driver's are understood.
            meaning: match result {
                801 => ControlMeaning::Unsupported,
                _ => ControlMeaning::Other,
            },
        }
    }

    impl ControlState for Fake {
        fn driver_version(&self) -> u32 {
            13000
        }
        fn gpus(&self) -> Vec<GpuUuid> {
            Vec::new()
        }
        fn state(&self, _: ProcessId) -> Result<ProcessState, ControlError> {
            Ok(ProcessState::Locked)
        }
        fn lock(&self, pid: ProcessId, _: Duration) -> Result<(), ControlError> {
            let hangs = self.hangs.lock().unwrap().take();
            if let Some(hangs) = hangs {
                let _ = hangs.recv();
            }
            self.locks.fetch_add(1, Ordering::SeqCst);
            match self.refuses {
                Some(result) => Err(error("cuCheckpointProcessLock", pid, result)),
                None => Ok(()),
            }
        }
        fn checkpoint(&self, _: ProcessId) -> Result<(), ControlError> {
            Ok(())
        }
        fn restore(&self, _: ProcessId, _: &[(GpuUuid, GpuUuid)]) -> Result<(), ControlError> {
            Ok(())
        }
        fn unlock(&self, pid: ProcessId) -> Result<(), ControlError> {
            self.unlocks.fetch_add(1, Ordering::SeqCst);
            match self.keeps_locked {
                true => Err(error("cuCheckpointProcessUnlock", pid, 999)),
                false => Ok(()),
            }
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    /// One question about this process, and its answer.
    fn asked(fake: Fake) -> (Arc<Fake>, Result<(), Against>) {
        let fake = Arc::new(fake);
        let driver: Arc<dyn ControlState> = Arc::clone(&fake) as _;
        let mut questions = Questions::default();
        let answer = questions.ask(Some(&driver), &[std::process::id()], Instant::now());
        let answer = match answer {
            // A busy machine.
            Err(Against::Silent(..)) => questions.hear(LONG),
            answer => answer,
        };
        (fake, answer)
    }

    fn calls(fake: &Fake) -> (u32, u32) {
        let load = |count: &AtomicU32| count.load(Ordering::SeqCst);
        (load(&fake.locks), load(&fake.unlocks))
    }

    #[test]
    fn who_is_asked_about_is_left_as_it_was() {
        let (fake, answer) = asked(Fake::default());
        assert!(answer.is_ok() && calls(&fake) == (1, 1), "{answer:?}");
        // Only what will be the same at the checkpoint is a refusal.
        for (result, is_refused) in [(801, true), (999, false)] {
            let (fake, answer) = asked(Fake {
                refuses: Some(result),
                ..Fake::default()
            });
            assert_eq!(
                matches!(answer, Err(Against::Refused(_))),
                is_refused,
                "{result}"
            );
            assert_eq!(calls(&fake), (1, 0));
        }
    }

    #[test]
    fn one_that_stays_locked_is_lost() {
        let (fake, answer) = asked(Fake {
            keeps_locked: true,
            ..Fake::default()
        });
        assert!(matches!(answer, Err(Against::Lost(_))), "{answer:?}");
        assert_eq!(calls(&fake), (1, UNLOCK.1));
    }

    #[test]
    fn a_driver_that_does_not_answer_is_asked_once_and_holds_nobody() {
        let (go, hangs) = channel();
        let fake = Arc::new(Fake {
            hangs: Mutex::new(Some(hangs)),
            ..Fake::default()
        });
        let driver: Arc<dyn ControlState> = Arc::clone(&fake) as _;
        let mut questions = Questions::default();
        let pid = std::process::id();
        let start = Instant::now();
        for _ in 0..3 {
            let answer = questions.ask(Some(&driver), &[pid], Instant::now());
            let Err(Against::Silent(found, since)) = answer else {
                panic!("{answer:?}");
            };
            assert!(found == pid && since >= start);
        }
        // Nor does a checkpoint begin because nobody asks about it any more.
        let answer = questions.ask(None, &[], Instant::now());
        assert!(matches!(answer, Err(Against::Silent(..))), "{answer:?}");
        drop(go);
        questions.hear(LONG).unwrap();
        assert_eq!(calls(&fake), (1, 1));
        questions.ask(Some(&driver), &[], Instant::now()).unwrap();
    }
}
