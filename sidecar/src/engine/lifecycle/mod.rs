//! The job from its start to its end, over one connection to the agent: what happens in which order.
//!
//! * [`start`]: a job that does not run yet is resumed or started;
//! * checkpoints are taken at their times while it runs;
//! * [`terminate`]: it is to end, with a last checkpoint;
//! * [`end`]: it ended, and is done, resumed or given up.

mod end;
mod preemption;
mod start;
pub(super) mod terminate;

use std::time::{Duration, Instant};

use phos_policies::schedule::{Action, Event, Trigger};
use phos_protocol::agent::{JobState, ToAgent};
use phos_storage::JobError;

use super::checkpoint::outcome::{Failed, Stored};
use super::control::socket::Wanted;
use super::ownership::{Ownership, lease};
use super::session::link::{LinkError, Packet};
use super::session::{Ended, Session, Stop, WaitError};
use super::tiers::{Tiers, replicate};
use super::{
    Engine, EngineError, LAST_STORE, LINGER, Signals, asked_to_end, stop_wanted, unix_millis,
};
use crate::preemption::Notice;
use crate::report::event::Event as Happened;

/// Why a session with the agent ended.
pub(super) enum SessionEnd {
    /// The connection was lost, for this reason: connect again.
    Lost(String),
    /// The job is over; nothing is left to do.
    Over,
}

/// What became of a job that was started, or that had ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    /// The job runs.
    Runs,
    /// The job is over, and nothing is left to do.
    Over,
}

/// The event that woke the session's loop.
enum Wake {
    Packet(Result<Packet, LinkError>),
    Timer,
    Wanted(Wanted),
    Checkpoint(Result<Stored, Failed>),
    Copied(Option<replicate::Outcome>),
    /// This process is asked to end, and does so when what is being stored is visible.
    Asked,
    Stop,
    Demand,
    Notice(Option<Notice>),
    Lost(JobError),
}

impl Session<'_> {
    /// Runs until the connection or the job ends.
    pub(in crate::engine) async fn run(mut self, job: JobState) -> Result<SessionEnd, EngineError> {
        match self.serve(job).await {
            Ok(end) => Ok(end),
            Err(Stop::Link(e)) => Ok(self.lost(&e)),
            Err(Stop::Over) => Ok(SessionEnd::Over),
            Err(Stop::Engine(e)) => {
                // A store that lost its history fences as well. That ends this sidecar and not the job: the next one finds no
                // other holder.
                if !e.is_fenced() {
                    return Err(e);
                }
                match self.other_holder().await {
                    Ok(None) => return Err(EngineError::HistoryLost(e.to_string())),
                    Ok(Some(_)) => {
                        let message = e.to_string();
                        self.engine.happened(Happened::Fenced { message });
                        // Whoever is not connected any more has ended, or hears it from the next sidecar.
                        let _ = self.link.send(&ToAgent::Fenced {
                            reason: e.to_string(),
                        });
                    }
                    Err(_) => {}
                }
                Err(e)
            }
        }
    }

    /// The connection to the agent is lost: whether the job runs is not known any more.
    fn lost(&mut self, cause: &WaitError) -> SessionEnd {
        let message = cause.to_string();
        if self.running {
            let message = message.clone();
            self.engine.happened(Happened::AgentLost { message });
        }
        // What comes next waits for it.
        self.engine.hurry();
        self.job_stopped();
        SessionEnd::Lost(message)
    }

    async fn serve(&mut self, job: JobState) -> Result<SessionEnd, Stop> {
        if self.take_up(job).await? == Outcome::Over {
            return Ok(SessionEnd::Over);
        }
        loop {
            if let Some(ended) = self.ended.take() {
                if self.job_ended(ended).await? == Outcome::Over {
                    return Ok(SessionEnd::Over);
                }
                continue;
            }
            let notice_at = self.heed_notice();
            let mut timer = None;
            let now = self.engine.now();
            match self.engine.schedule.next(now) {
                // Of a job that was told to end there is one more, and none while it ends.
                Action::Start(trigger)
                    if self.running
                        && !self.engine.in_progress.is_storing()
                        && (self.termination.is_none() || trigger == Trigger::Terminate) =>
                {
                    self.checkpoint(trigger).await?;
                    continue;
                }
                Action::WaitUntil(at) => timer = Some(at),
                Action::Finish => self.send_terminate()?,
                Action::Start(_) | Action::Idle => {}
            }
            self.engine.copy_if_due();
            let timer = [timer, notice_at].into_iter().flatten().min();
            match self.wake(timer).await {
                Wake::Packet(packet) => self.event(packet?).await?,
                Wake::Timer => {}
                Wake::Wanted(client) => {
                    self.engine.requests.next.push(client);
                    self.engine.wanted();
                }
                Wake::Demand => self.engine.wanted(),
                Wake::Notice(notice) => self.noticed(notice),
                Wake::Checkpoint(outcome) => self.checkpoint_ended(outcome)?,
                Wake::Copied(outcome) => {
                    self.engine.copy_ended(outcome)?;
                    self.tell_newest()?;
                }
                Wake::Asked => self.engine.hurry(),
                Wake::Stop => return Ok(SessionEnd::Over),
                Wake::Lost(e) => return Err(EngineError::Job(e).into()),
            }
            if let Some(t) = self.termination
                && Instant::now() >= t.exit_at
            {
                self.send_terminate()?;
            }
        }
    }

    /// Takes the job up as the agent has it.
    async fn take_up(&mut self, job: JobState) -> Result<Outcome, Stop> {
        match job {
            JobState::Running => {
                // That was for the start of the job; what comes after a crash now is its newest checkpoint.
                self.engine.resume.had_its_turn();
                self.engine.happened(Happened::JobFound);
                self.job_runs();
            }
            JobState::Waiting => {
                let begun = self.begin().await;
                if let Err(Stop::Engine(EngineError::Job(e @ JobError::NoCheckpoint { .. }))) =
                    &begun
                {
                    let message = e.to_string();
                    self.engine.happened(Happened::GivenUp { message });
                    // What a person asked to go back to is not there: the job is not begun anew for that, by nobody.
                    let _ = self.link.send(&ToAgent::GiveUp);
                }
                return begun;
            }
            JobState::Ended(exit) => {
                // As above: it ran, and its newest checkpoint is what comes now.
                self.engine.resume.had_its_turn();
                self.ended = Some(Ended {
                    exit,
                    stopping: false,
                    found: true,
                });
            }
        }
        Ok(Outcome::Runs)
    }

    async fn wake(&mut self, at: Option<Duration>) -> Wake {
        let exit_at = self.exit_at();
        let at = at.map(|at| self.engine.origin + at);
        let copy_at = self.engine.next_copy();
        let until = [at, exit_at, copy_at].into_iter().flatten().min();
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        // Not while the agent waits for the last checkpoint, which has an end of its own.
        let may_stop = self.termination.is_none();
        let linger = if self.engine.in_progress.is_storing() {
            LAST_STORE
        } else {
            LINGER
        };
        let Engine {
            requests,
            in_progress,
            signals,
            demand,
            preemption,
            tiers: Tiers { replication, .. },
            ownership: Ownership { keeper, .. },
            ..
        } = &mut *self.engine;
        tokio::select! {
            biased;
            outcome = in_progress.landed() => Wake::Checkpoint(outcome),
            outcome = replicate::ended(replication) => Wake::Copied(outcome),
            packet = self.link.recv() => Wake::Packet(packet),
            Some(client) = requests.incoming.recv() => Wake::Wanted(client),
            _ = demand.recv() => Wake::Demand,
            notice = preemption.notices.changed() => Wake::Notice(notice),
            e = lease::lost(keeper) => Wake::Lost(e),
            wake = end_wanted(signals, linger), if may_stop => wake,
            () = tokio::time::sleep_until(until.into()) => Wake::Timer,
        }
    }

    /// Notes that the job runs from now on.
    fn job_runs(&mut self) {
        self.running = true;
        let now = self.engine.now();
        self.engine.schedule.on(Event::JobStarted, now);
        self.engine.interval.job_started(now);
        if let Some(replication) = &mut self.engine.tiers.replication {
            replication.calm();
        }
        self.engine.run.running = true;
        self.engine.run.since = unix_millis();
        self.engine.status.state("running");
    }

    /// The job does not run any more: nobody gets a checkpoint.
    fn job_stopped(&mut self) {
        self.running = false;
        self.engine.run.running = false;
        for client in self.engine.requests.next.drain(..) {
            let _ = client.send(Err("the job does not run".into()));
        }
        let now = self.engine.now();
        self.engine.schedule.on(Event::JobExited, now);
        self.engine.interval.job_ended(now);
        self.engine.preemption.plan.job_ended();
    }
}

/// Waits for a request to end, and the next time for when that is. Cancel safe.
async fn end_wanted(signals: &mut Signals, linger: Duration) -> Wake {
    if signals.asked.is_none() {
        asked_to_end(signals).await;
        return Wake::Asked;
    }
    stop_wanted(signals, linger).await;
    Wake::Stop
}
