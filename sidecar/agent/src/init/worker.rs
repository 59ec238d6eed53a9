//! Threads for blocking work, and how their results come back to the main loop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use phos_protocol::agent::{DumpFacts, RestoreTimes, ToSidecar};
use phos_protocol::shim::Sequence;
use phos_protocol::types::ProcessId;

use super::Init;
use crate::dump::DumpFailure;
use crate::restore::ReviveError;

/// A result that a worker brings back to the main loop.
#[derive(Debug)]
pub(super) enum Done {
    /// [`dump`](crate::dump::dump) ended.
    Dumped(Result<Box<DumpFacts>, DumpFailure>),
    /// The dump of this attempt has saved the control state and continues.
    ControlSaved(Sequence),
    /// [`revive`](crate::restore::revive) ended.
    Revived(Result<(ProcessId, RestoreTimes), ReviveError>),
    /// The CUDA state of a job about to be killed was saved, as far as it went.
    Saved,
    /// Whether the files that an image needs are here.
    FilesChecked(Result<(), String>),
}

/// Threads for what blocks, and the way their results come back.
#[derive(Debug)]
pub(super) struct Worker {
    sender: Sender<Done>,
    results: Receiver<Done>,
    wake: Arc<OwnedFd>,
}

impl Worker {
    pub(super) fn new() -> std::io::Result<Self> {
        use rustix::event::{EventfdFlags, eventfd};
        let (sender, results) = channel();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self {
            sender,
            results,
            wake: Arc::new(wake),
        })
    }

    /// Runs `work` in a thread. What it gives to the function it gets arrives before its result.
    pub(super) fn run(
        &self,
        name: &str,
        work: impl FnOnce(&dyn Fn(Done)) -> Done + Send + 'static,
    ) -> std::io::Result<()> {
        let sender = self.sender.clone();
        let wake = Arc::clone(&self.wake);
        let tell = move |done| {
            // The receiver lives as long as the process.
            let _ = sender.send(done);
            let _ = rustix::io::write(&*wake, &1_u64.to_ne_bytes());
        };
        std::thread::Builder::new()
            .name(name.into())
            .spawn(move || tell(work(&tell)))
            .map(drop)
    }

    /// Becomes readable when there is a result.
    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    /// The next result, without waiting.
    pub(super) fn take(&self) -> Option<Done> {
        let mut count = [0_u8; 8];
        let _ = rustix::io::read(&*self.wake, &mut count);
        self.results.try_recv().ok()
    }
}

impl Init {
    pub(super) fn on_done(&mut self, done: Done) {
        match done {
            Done::Dumped(outcome) => self.dump_ended(outcome),
            Done::ControlSaved(seq) => {
                self.sidecar.send(&ToSidecar::ControlSaved { seq }, &[]);
            }
            Done::Revived(outcome) => self.revive_ended(outcome),
            // Late: they were killed without it.
            Done::Saved if self.kill.saving.take().is_none() => {}
            Done::Saved => self.kill_everything(),
            Done::FilesChecked(outcome) => {
                if let Err(reason) = &outcome {
                    tracing::error!(reason, "a checkpoint does not fit this place");
                }
                self.sidecar.send(&ToSidecar::FilesChecked(outcome), &[]);
            }
        }
    }
}
