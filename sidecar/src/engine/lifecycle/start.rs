//! The start of a job that does not run yet.

use phos_protocol::agent::{ToAgent, ToSidecar};

use super::Outcome;
use crate::engine::Start;
use crate::engine::restore::Occasion;
use crate::engine::session::{ANSWER, Session, Stop, WaitError};
use crate::report::event::Event;

impl Session<'_> {
    /// Nothing runs yet: resume what the store has, else start CMD.
    pub(super) async fn begin(&mut self) -> Result<Outcome, Stop> {
        // Nothing runs that could be left anything.
        let _raised = self.engine.background.raise();
        self.await_history().await?;
        self.once_fresh().await?;
        // What this machine or this command rules out is found before the history changes hands.
        self.refuse_early().await?;
        self.stand_by().await?;
        self.take_over().await?;
        match self.restore_newest(Occasion::Start).await? {
            Some(_) => self.job_runs(),
            None => return self.start_afresh().await,
        }
        Ok(Outcome::Runs)
    }

    /// `--start-fresh` counts once: left in a script, it must not throw away what the job does from then on.
    async fn once_fresh(&mut self) -> Result<(), Stop> {
        if self.engine.resume.start == Start::Fresh && self.engine.job.began_afresh().await? {
            tracing::warn!(
                "the job's history already began anew with --start-fresh, and is resumed: leave the flag out. To begin anew \
                 once more, give another --job name, or resume from a checkpoint with --from"
            );
            self.engine.resume.start = Start::Resume;
        }
        Ok(())
    }

    /// Has the agent start the job with its first step.
    pub(super) async fn start_afresh(&mut self) -> Result<Outcome, Stop> {
        self.take_over().await?;
        self.link.send(&ToAgent::Start)?;
        let started = self
            .answer(ANSWER, |message, _| match message {
                ToSidecar::Started(outcome) => Ok(outcome),
                other => Err(other),
            })
            .await;
        match started {
            Ok(Ok(())) => {
                tracing::info!(command = self.command.join(" "), "the job was started");
                let command = self.command.clone();
                self.engine.happened(Event::JobStarted { command });
                // There is nothing yet that could be lost.
                self.engine.protected();
                self.engine.resume.start = Start::Resume;
                self.job_runs();
                Ok(Outcome::Runs)
            }
            Ok(Err(reason)) => {
                tracing::error!(reason, "the job could not be started");
                self.engine.happened(Event::GivenUp {
                    message: format!("the job could not be started: {reason}"),
                });
                self.link.send(&ToAgent::GiveUp)?;
                Ok(Outcome::Over)
            }
            // Its end is dealt with by the caller.
            Err(WaitError::JobExited) => Ok(Outcome::Runs),
            Err(e) => Err(e.into()),
        }
    }
}
