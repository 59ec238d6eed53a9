//! A job that is to end (its container, its machine): a last checkpoint as far as there is time for one.

use std::time::{Duration, Instant};

use phos_policies::schedule::Event;
use phos_policies::terminate::{self, LastStep, TerminateInputs};
use phos_protocol::agent::ToAgent;

use crate::engine::session::link::LinkError;
use crate::engine::session::{Session, Termination};

impl Session<'_> {
    /// When the agent must be told that the job may end, if it asked.
    pub(in crate::engine) fn exit_at(&self) -> Option<Instant> {
        self.termination.filter(|t| !t.sent).map(|t| t.exit_at)
    }

    /// The agent wants to end in so much time: what can be done until then.
    pub(in crate::engine) fn terminating(&mut self, grace: Duration) {
        let now = self.engine.now();
        let in_flight = self.engine.in_progress.is_storing();
        let estimate = self
            .engine
            .status
            .lock()
            .last
            .as_ref()
            .map(|l| Duration::from_secs_f64(l.seconds));
        let plan = terminate::plan(&TerminateInputs {
            now,
            grace,
            ending: Duration::from_millis(500).min(grace / 10),
            estimate,
            in_flight: in_flight.then(|| estimate.unwrap_or(grace / 4)),
        });
        tracing::info!(?grace, step = ?plan.step, "the job is to end");
        let exit_at = self.engine.origin + plan.exit_at;
        let mut termination = Termination {
            exit_at,
            after_flight: false,
            sent: false,
        };
        match plan.step {
            LastStep::Checkpoint => {
                self.engine.schedule.on(
                    Event::Terminate {
                        until: plan.exit_at,
                    },
                    now,
                );
            }
            LastStep::AbandonAndCheckpoint => {
                (self.engine.in_progress).cancel_for_job("the job ends before it can be stored");
                self.engine.schedule.on(
                    Event::Terminate {
                        until: plan.exit_at,
                    },
                    now,
                );
            }
            LastStep::FinishInFlight => termination.after_flight = true,
            LastStep::ExitNow => {}
        }
        self.termination = Some(termination);
    }

    /// Tells the agent, once, that the job may end.
    pub(in crate::engine) fn send_terminate(&mut self) -> Result<(), LinkError> {
        if let Some(t) = &mut self.termination
            && !t.sent
        {
            t.sent = true;
            tracing::info!("the job may end now");
            self.link.send(&ToAgent::Terminate)?;
        }
        Ok(())
    }

    /// The checkpoint that was being stored has ended: it may have been the last.
    pub(in crate::engine) fn last_checkpoint_ended(&mut self) -> Result<(), LinkError> {
        if self.termination.is_some_and(|t| t.after_flight) {
            self.send_terminate()?;
        }
        Ok(())
    }
}
