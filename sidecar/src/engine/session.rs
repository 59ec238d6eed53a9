//! One connection to the agent, from `Hello` to its end: what happens, in which order.
//!
//! # Rules
//!
//! * One task owns the connection and does everything that is ordered by it. Long work runs beside it
//!   and comes back as a value; the task goes on listening.
//! * An event of the agent may arrive between any two answers: [`Session::answer`] deals with it.
//! * At most one checkpoint is in flight, from its first message until it is visible or dropped.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use phos_policies::lease::LeaseWatch;
use phos_policies::restart::Decision;
use phos_policies::schedule::{Action, Event, FailureKind, Trigger};
use phos_policies::terminate::{self, LastStep, TerminateInputs};
use phos_protocol::agent::{Exit, JobState, ToAgent, ToSidecar};
use phos_protocol::shim::Sequence;
use phos_storage::{CheckpointNumber, FaultKind, JobError};

use super::attempt::Stored;
use super::link::{Link, LinkError, Packet};
use super::near::Near;
use super::registry::Registry;
use super::restore::{RestoreError, STORE_WAITS};
use super::status::{CheckpointReport, Unprotected};
use super::tidy::Busy;
use super::{CheckpointId, Engine, EngineError, unix_millis};
use crate::known_history::Remembered;

/// How long after an agent ended, and how often from then on, its successor is looked for.
const LOOK: Duration = Duration::from_millis(500);
/// How long the agent may take for an answer that costs it nothing.
const ANSWER: Duration = Duration::from_secs(30);
/// Until the lease is read again after a failure.
const STAND_BY_AGAIN: Duration = Duration::from_secs(2);
/// The longest wait between two looks for the job's history.
const HISTORY_WAIT: Duration = Duration::from_secs(15);

/// Why an expected answer did not come.
#[derive(Debug, thiserror::Error)]
pub(super) enum WaitError {
    #[error("{0}")]
    Link(#[from] LinkError),
    #[error("the job ended")]
    JobExited,
    #[error("the agent did not answer within {0:?}")]
    Timeout(Duration),
}

/// How a holder names the agent whose job it is: so that an epoch whose sidecar died before the agent heard of it is known to
/// have been this agent's.
fn mark(agent: u64) -> String {
    format!("agent {agent:016x}")
}

/// Why a session ended.
pub(super) enum SessionEnd {
    /// Connect again.
    Lost(String),
    /// The job is over; nothing is left to do.
    Over,
}

/// The end of the job, not yet dealt with.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    exit: Exit,
    stopping: bool,
}

/// The agent wants to end.
#[derive(Debug, Clone, Copy)]
struct Termination {
    exit_at: Instant,
    /// Answer when the checkpoint in flight has ended, whatever the schedule says.
    after_flight: bool,
    sent: bool,
}

/// See the module.
pub(super) struct Session<'e> {
    pub(super) engine: &'e mut Engine,
    pub(super) link: Link,
    pub(super) registry: Registry,
    pub(super) command: Vec<String>,
    pub(super) seq: Sequence,
    /// The epoch that the job's processes belong to, as the agent knows it; 0: it does not.
    job_epoch: u64,
    /// Chosen by the agent when it started.
    agent: u64,
    ended: Option<Ended>,
    termination: Option<Termination>,
    running: bool,
    /// The attempt in flight, if it was made over this connection.
    pub(super) own_flight: Option<Sequence>,
    /// Since when the attempt that is being made holds the job.
    pub(super) held_since: Option<std::time::Instant>,
    /// How long it held the job before that.
    pub(super) held_for: Duration,
}

/// What woke the loop.
enum Wake {
    Packet(Result<Packet, LinkError>),
    Timer,
    Wanted(super::control::Wanted),
    Flight(Result<Stored, super::attempt::Dropped>),
    Copied(Option<super::copies::Outcome>),
    Stop,
    Demand,
    Lost(JobError),
}

impl<'e> Session<'e> {
    /// Says hello. None: another sidecar is connected.
    pub(super) async fn open(
        engine: &'e mut Engine,
        link: Link,
    ) -> Result<Option<(Session<'e>, JobState)>, WaitError> {
        let mut session = Session {
            engine,
            link,
            registry: Registry::default(),
            command: Vec::new(),
            seq: 0,
            job_epoch: 0,
            agent: 0,
            held_since: None,
            held_for: Duration::ZERO,
            ended: None,
            termination: None,
            running: false,
            own_flight: None,
        };
        session.link.send(&ToAgent::Hello {
            version: env!("CARGO_PKG_VERSION").into(),
        })?;
        let welcome = session
            .answer(ANSWER, |message, _| match message {
                ToSidecar::Welcome {
                    version,
                    agent,
                    job,
                    restarts,
                    command,
                    seq,
                    epoch,
                } => Ok(Some((version, agent, job, restarts, command, seq, epoch))),
                ToSidecar::Busy => Ok(None),
                other => Err(other),
            })
            .await?;
        let Some((version, agent, job, restarts, command, seq, epoch)) = welcome else {
            return Ok(None);
        };
        tracing::info!(%version, agent = format!("{agent:016x}"), ?job, "connected to the agent");
        if version != env!("CARGO_PKG_VERSION") {
            tracing::warn!(
                agent = version,
                sidecar = env!("CARGO_PKG_VERSION"),
                "agent and sidecar are of different releases: update both together"
            );
        }
        {
            let mut status = session.engine.status.lock();
            status.command.clone_from(&command);
            status.restarts = restarts;
        }
        session.command = command;
        session.seq = seq;
        session.job_epoch = epoch;
        session.agent = agent;
        Ok(Some((session, job)))
    }

    /// Runs until the connection or the job ends.
    pub(super) async fn run(mut self, job: JobState) -> Result<SessionEnd, EngineError> {
        match self.serve(job).await {
            Ok(end) => Ok(end),
            Err(Stop::Link(e)) => {
                self.job_is(false);
                Ok(SessionEnd::Lost(e.to_string()))
            }
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

    /// Who else has the job: the holder of the epoch in force, if it is neither the one that the job here belongs to nor
    /// one that a sidecar of this agent began and died before it could say so.
    async fn other_holder(&self) -> Result<Option<(u64, String)>, JobError> {
        let job = &self.engine.job;
        let Some(now) = job.state().await?.epoch else {
            return Ok(None);
        };
        if now.0 == self.job_epoch {
            return Ok(None);
        }
        let holder = job.holder_of(now).await?.unwrap_or_default();
        Ok((!holder.contains(&mark(self.agent))).then_some((now.0, holder)))
    }

    /// Whether a job that runs may be taken into the history. One that the agent started by itself, because no sidecar was here in
    /// time, began with its first step: its checkpoints must not come after those that another start would resume.
    pub(super) async fn may_adopt(&self) -> Result<Result<(), String>, JobError> {
        if self.engine.epoch.is_some() || self.job_epoch != 0 {
            return Ok(Ok(()));
        }
        let Engine {
            job, node, origin, ..
        } = &*self.engine;
        let now = || origin.elapsed();
        if !self.engine.lease.is_zero()
            && let Some(holder) =
                super::lease::holder(job, node, &mut LeaseWatch::default(), now).await?
        {
            return Ok(Err(format!(
                "the job was started here without a sidecar, and another node has it: {}. No checkpoint is taken. End one \
                 of the two",
                holder.name
            )));
        }
        let mut newest = job
            .state()
            .await?
            .newest
            .map(|newest| (newest.to_string(), "in the store"));
        if let (None, Some(near)) = (&newest, self.engine.near.as_ref().and_then(Near::reading)) {
            let here = near.state().await?.newest;
            newest = here.map(|newest| (format!("L{newest}"), "on this machine"));
        }
        Ok(match newest {
            Some((newest, place)) => Err(format!(
                "the job was started from its beginning, as no sidecar was here in time, and checkpoint {newest} of it is \
                 {place}: none is taken of this one, so that they do not replace that. To resume from checkpoint {newest}, \
                 end this job and start it again; to keep this one, give it another --job name"
            )),
            None => Ok(()),
        })
    }

    /// Takes the job over, once, and tells the agent. A job that runs already and belongs to an epoch which is no longer
    /// in force was taken over by another node while no sidecar was here: it is not taken back.
    pub(super) async fn take_over(&mut self) -> Result<(), EngineError> {
        if self.engine.epoch.is_none()
            && self.job_epoch != 0
            && let Some((now, holder)) = self.other_holder().await.map_err(EngineError::Job)?
        {
            return Err(EngineError::Fenced(format!(
                "job {} was taken over by {holder} in epoch {now}, while the job here, of epoch {}, had no sidecar",
                self.engine.job.name(),
                self.job_epoch
            )));
        }
        self.engine.take_over(&mark(self.agent)).await?;
        if let Some(epoch) = self.engine.epoch
            && epoch.0 != self.job_epoch
        {
            self.job_epoch = epoch.0;
            // If it has gone, the next connection finds out.
            let _ = self.link.send(&ToAgent::TakenOver { epoch: epoch.0 });
        }
        Ok(())
    }

    async fn serve(&mut self, job: JobState) -> Result<SessionEnd, Stop> {
        match job {
            JobState::Running => {
                // That was for the start of the job; what comes after a crash now is its newest checkpoint.
                self.engine.from = None;
                self.engine.start_fresh = false;
                self.job_is(true);
            }
            JobState::Waiting => {
                let begun = self.begin().await;
                if let Err(Stop::Engine(EngineError::Job(JobError::NoCheckpoint { .. }))) = &begun {
                    // What a person asked to go back to is not there: the job is not begun anew for that, by nobody.
                    let _ = self.link.send(&ToAgent::GiveUp);
                }
                if begun? {
                    return Ok(SessionEnd::Over);
                }
            }
            JobState::Ended(exit) => {
                // As above: it ran, and its newest checkpoint is what comes now.
                self.engine.from = None;
                self.engine.start_fresh = false;
                self.ended = Some(Ended {
                    exit,
                    stopping: false,
                })
            }
        }
        loop {
            if let Some(ended) = self.ended.take() {
                if self.job_ended(ended).await? {
                    return Ok(SessionEnd::Over);
                }
                continue;
            }
            let mut timer = None;
            let now = self.engine.now();
            match self.engine.schedule.next(now) {
                Action::Start(trigger) if self.running && !self.engine.is_in_flight() => {
                    self.engine.busy(Busy::Holding);
                    let started = self.start(trigger).await;
                    self.engine.busy(if self.engine.is_in_flight() {
                        Busy::Storing
                    } else {
                        Busy::No
                    });
                    started?;
                    continue;
                }
                Action::WaitUntil(at) => timer = Some(at),
                Action::Finish => self.send_terminate()?,
                Action::Start(_) | Action::Idle => {}
            }
            self.engine.copy_if_due();
            match self.wake(timer).await {
                Wake::Packet(packet) => self.event(packet?).await?,
                Wake::Timer => {}
                Wake::Wanted(client) => {
                    self.engine.wanted_now.push(client);
                    self.engine.schedule.on(Event::Requested, self.engine.now());
                }
                Wake::Demand => self.engine.schedule.on(Event::Requested, self.engine.now()),
                Wake::Flight(outcome) => self.flight_ended(outcome)?,
                Wake::Copied(outcome) => self.engine.copy_ended(outcome)?,
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

    async fn wake(&mut self, at: Option<Duration>) -> Wake {
        let exit_at = self.exit_at();
        let at = at.map(|at| self.engine.origin + at);
        let copy_at = self.engine.next_copy();
        let until = [at, exit_at, copy_at].into_iter().flatten().min();
        let until = until.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
        // Not while the agent waits for the last checkpoint, which has an end of its own.
        let may_stop = self.termination.is_none();
        let linger = if self.engine.is_in_flight() {
            super::LAST_STORE
        } else {
            super::LINGER
        };
        let Engine {
            wanted,
            flight,
            shutdown,
            demand,
            copies,
            keeper,
            ..
        } = &mut *self.engine;
        tokio::select! {
            biased;
            outcome = super::attempt::landed(flight) => Wake::Flight(outcome),
            outcome = super::copies::ended(copies) => Wake::Copied(outcome),
            packet = self.link.recv() => Wake::Packet(packet),
            Some(client) = wanted.recv() => Wake::Wanted(client),
            _ = demand.recv() => Wake::Demand,
            e = super::lease::lost(keeper) => Wake::Lost(e),
            () = super::stop_wanted(shutdown, linger), if may_stop => Wake::Stop,
            () = tokio::time::sleep_until(until.into()) => Wake::Timer,
        }
    }

    /// The job began to run, or stopped doing so.
    pub(super) fn job_is(&mut self, running: bool) {
        self.running = running;
        self.engine.job_runs = running;
        let now = self.engine.now();
        if running {
            self.engine.schedule.on(Event::JobStarted, now);
            self.engine.running_since = unix_millis();
            self.engine.status.lock().unprotected = None;
            self.engine.status.state("running");
        } else {
            self.engine.job_gone();
        }
    }

    /// Deals with a message that nobody waits for.
    async fn event(&mut self, (message, fds): Packet) -> Result<(), LinkError> {
        if let Some(message) = self.unexpected(message, fds).await? {
            tracing::warn!(
                ?message,
                "the agent said something that was not expected now"
            );
        }
        Ok(())
    }

    /// Deals with events; gives anything else back.
    async fn unexpected(
        &mut self,
        message: ToSidecar,
        _fds: Vec<OwnedFd>,
    ) -> Result<Option<ToSidecar>, LinkError> {
        match message {
            ToSidecar::JobExited { exit, stopping } => {
                tracing::info!(?exit, stopping, "the job ended");
                self.ended = Some(Ended { exit, stopping });
            }
            ToSidecar::NeedMemory { gpu, bytes } => {
                let freed = self.engine.release_memory().await;
                tracing::info!(%gpu, bytes, freed, "the job needs device memory");
                self.link.send(&ToAgent::MemoryReleased)?;
            }
            ToSidecar::Terminating { grace_ms } => {
                self.terminating(Duration::from_millis(grace_ms))
            }
            ToSidecar::Unsupported { reason } => {
                if reason.is_empty() {
                    tracing::info!("checkpoints are possible again");
                } else {
                    tracing::warn!(reason, "checkpoints are ruled out for now");
                }
                self.engine.status.lock().unsupported = (!reason.is_empty()).then_some(reason);
            }
            ToSidecar::Freed { keys } => self.registry.remove(&keys),
            // The rest of an attempt that was given up.
            ToSidecar::Resumed { .. }
            | ToSidecar::Table { .. }
            | ToSidecar::ControlSaved { .. } => {}
            ToSidecar::Quiesced { .. } | ToSidecar::Dumped { .. } => {}
            other => return Ok(Some(other)),
        }
        Ok(None)
    }

    /// Waits for the message that `accept` takes; everything else is dealt with meanwhile. Ends early
    /// when the job ends.
    pub(super) async fn answer<T>(
        &mut self,
        limit: Duration,
        mut accept: impl FnMut(ToSidecar, &mut Vec<OwnedFd>) -> Result<T, ToSidecar>,
    ) -> Result<T, WaitError> {
        let deadline = Instant::now() + limit;
        loop {
            let packet = tokio::time::timeout_at(deadline.into(), self.link.recv())
                .await
                .map_err(|_| WaitError::Timeout(limit))?;
            let (message, mut fds) = packet?;
            match accept(message, &mut fds) {
                Ok(answer) => return Ok(answer),
                Err(other) => {
                    self.event((other, fds)).await?;
                    if self.ended.is_some() {
                        return Err(WaitError::JobExited);
                    }
                }
            }
        }
    }

    /// Like [`Session::answer`], beside some other work.
    pub(super) async fn event_while_waiting(&mut self, packet: Packet) -> Result<(), WaitError> {
        self.event(packet).await?;
        if self.ended.is_some() {
            return Err(WaitError::JobExited);
        }
        Ok(())
    }

    async fn start(&mut self, trigger: Trigger) -> Result<(), Stop> {
        let now = self.engine.now();
        self.engine.schedule.on(Event::Started, now);
        let reason = self.engine.status.lock().unsupported.clone();
        let serving = if trigger == Trigger::OnDemand {
            std::mem::take(&mut self.engine.wanted_now)
        } else {
            Vec::new()
        };
        self.engine.serving = serving;
        if let Some(reason) = reason {
            self.engine
                .failed(&reason, FailureKind::Permanent, Duration::ZERO);
            return Ok(());
        }
        self.engine.status.state("checkpointing");
        match self.attempt(trigger).await {
            Ok(()) => self.engine.status.state("running, storing a checkpoint"),
            Err(failure) => {
                self.engine.status.state("running");
                self.engine
                    .failed(&failure.message, failure.kind, failure.stop);
                if let Some(e) = failure.fatal {
                    return Err(Stop::Engine(e));
                }
                if let Some(reason) = failure.relink {
                    return Err(Stop::Link(reason));
                }
            }
        }
        Ok(())
    }

    fn flight_ended(
        &mut self,
        outcome: Result<Stored, super::attempt::Dropped>,
    ) -> Result<(), Stop> {
        self.engine.flight = None;
        self.engine.busy(Busy::No);
        if self.running {
            self.engine.status.state("running");
        }
        let fenced = match outcome {
            Ok(stored) => {
                self.engine.committed(stored);
                None
            }
            Err(dropped) => {
                if dropped.tier_lost {
                    self.engine.tier_is_lost();
                } else if dropped.place_failed {
                    self.engine.not_stored();
                }
                self.engine
                    .failed(&dropped.message, dropped.kind, dropped.stop);
                dropped.fatal
            }
        };
        if let Some(e) = fenced {
            return Err(Stop::Engine(e));
        }
        if let Some(seq) = self.own_flight.take() {
            self.link.send(&ToAgent::Finish { seq })?;
        }
        if self.termination.is_some_and(|t| t.after_flight) {
            self.send_terminate()?;
        }
        Ok(())
    }

    fn terminating(&mut self, grace: Duration) {
        let now = self.engine.now();
        let in_flight = self.engine.is_in_flight();
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
                self.engine
                    .cancel_flight("the job ends before it can be stored");
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

    fn send_terminate(&mut self) -> Result<(), LinkError> {
        if let Some(t) = &mut self.termination
            && !t.sent
        {
            t.sent = true;
            tracing::info!("the job may end now");
            self.link.send(&ToAgent::Terminate)?;
        }
        Ok(())
    }

    /// Nothing runs yet: resume what the store has, else start CMD. True: over.
    async fn begin(&mut self) -> Result<bool, Stop> {
        self.await_history().await?;
        self.once_fresh().await?;
        // What this machine or this command rules out is found before the history changes hands.
        self.refuse_early().await?;
        self.stand_by().await?;
        self.take_over().await?;
        match self.restore_newest(true).await? {
            Some(_) => self.job_is(true),
            None => return self.start_afresh().await,
        }
        Ok(false)
    }

    /// Waits until the store shows the history that the job has there. What the store answers otherwise is for those to deal
    /// with who need it; but of a job that had checkpoints, no refusal is taken for the last word.
    async fn await_history(&mut self) -> Result<(), Stop> {
        let has_tier = self.engine.near.as_ref().and_then(Near::reading).is_some();
        if self.engine.epoch.is_some() && has_tier {
            // The newest checkpoint may be on this machine, and the job is ours.
            return Ok(());
        }
        let mut wait = STORE_WAITS.0;
        let mut waited = false;
        while self.engine.job.expected().is_some() && !self.engine.job.store().is_discarding() {
            let error = match self.engine.job.known().await {
                Err(JobError::Store(fault)) if fault.kind() != FaultKind::Key => fault,
                _ => break,
            };
            tracing::error!(
                %error,
                again_ms = wait.as_millis() as u64,
                "THE JOB WAITS FOR ITS HISTORY: it has checkpoints, and is not begun anew without them. It is resumed when the \
                 store shows them again"
            );
            self.engine
                .status
                .state(format!("waiting for the store: {error}"));
            waited = true;
            self.pause(wait).await?;
            wait = (wait * 2).min(HISTORY_WAIT);
        }
        if waited {
            tracing::info!("the store shows the job's history again");
        }
        Ok(())
    }

    /// `--start-fresh` counts once: left in a script, it must not throw away what the job does from then on.
    async fn once_fresh(&mut self) -> Result<(), Stop> {
        if self.engine.start_fresh && self.engine.job.began_afresh().await? {
            tracing::warn!(
                "the job's history already began anew with --start-fresh, and is gone on with: leave the flag out. To begin anew \
                 once more, give another --job name, or go on from a checkpoint with --from"
            );
            self.engine.start_fresh = false;
        }
        Ok(())
    }

    /// Waits while another node has the job and is well. One that starts here again, or that already had it, does not.
    async fn stand_by(&mut self) -> Result<(), Stop> {
        let mut watch = LeaseWatch::default();
        let mut said = String::new();
        let wanted = !self.engine.lease.is_zero() && !self.engine.job.store().is_discarding();
        while wanted && self.engine.epoch.is_none() {
            let Engine {
                job, node, origin, ..
            } = &*self.engine;
            let held = super::lease::holder(job, node, &mut watch, || origin.elapsed()).await;
            let wait = match held {
                Ok(None) => return Ok(()),
                Ok(Some(holder)) => {
                    if said != holder.name {
                        tracing::warn!(
                            holder = holder.name,
                            lease_ends_s = holder.left.as_secs(),
                            "another node has the job: standing by until it does not renew its lease any more. \
                             To run the job here, stop it there, or give --lease 0s to take it over at once"
                        );
                        said.clone_from(&holder.name);
                    }
                    let state = format!("standing by: the job is {}'s", holder.name);
                    self.engine.status.state(state);
                    holder.look_again()
                }
                // What the lease says is not needed.
                Err(error) if error.is_permanent() => {
                    tracing::warn!(%error, "the lease of the job cannot be read");
                    return Ok(());
                }
                Err(_) => {
                    watch.missed(self.engine.origin.elapsed());
                    STAND_BY_AGAIN
                }
            };
            self.pause(wait).await?;
        }
        Ok(())
    }

    /// Copies what is on this machine alone to the store, until the time for that is over or the next agent is there, which
    /// must not wait: what is left is copied when the job runs again.
    async fn copy_the_rest(&mut self) -> Result<(), EngineError> {
        let asked = self.engine.shutdown.asked.unwrap_or_else(Instant::now);
        let until = asked + super::LAST_STORE;
        let mut gone: Option<Instant> = None;
        self.engine.hurry_copies();
        while self.engine.has_copies_to_make() {
            self.engine.copy_if_due();
            let due = self.engine.next_copy();
            let look = gone.map(|_| Instant::now() + LOOK);
            let wake = [due, look].into_iter().flatten().fold(until, Instant::min);
            tokio::select! {
                outcome = super::copies::ended(&mut self.engine.copies) => self.engine.copy_ended(outcome)?,
                packet = self.link.recv(), if gone.is_none() => {
                    gone = packet.is_err().then(Instant::now);
                }
                () = tokio::time::sleep_until(wake.into()) => {}
            }
            let may_follow = gone.is_some_and(|since| since.elapsed() >= LOOK);
            if may_follow && Link::connect(&self.engine.agent).is_ok() {
                tracing::info!(
                    "the next agent is there: the last checkpoint is sent once the job runs again"
                );
                break;
            }
            if Instant::now() >= until {
                tracing::error!(
                    "the last checkpoint is on this machine only: the store did not take it in time; it is sent when \
                     the job runs here again"
                );
                break;
            }
        }
        Ok(())
    }

    async fn start_afresh(&mut self) -> Result<bool, Stop> {
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
                self.engine.start_fresh = false;
                self.job_is(true);
                Ok(false)
            }
            Ok(Err(reason)) => {
                tracing::error!(reason, "the job could not be started");
                self.link.send(&ToAgent::GiveUp)?;
                Ok(true)
            }
            // Its end is dealt with by the caller.
            Err(WaitError::JobExited) => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// The job ended: it is done, or brought back. True: over.
    async fn job_ended(&mut self, Ended { exit, stopping }: Ended) -> Result<bool, Stop> {
        self.job_is(false);
        // A checkpoint whose job was attached again is whole without the job: the newest there is.
        self.settle_flight().await?;
        // Whatever its code: a job that answers SIGTERM with a success is not done, and what it trained is gone on with.
        if stopping {
            tracing::info!(
                ?exit,
                "the job was ended; the next start resumes it from its newest checkpoint"
            );
            self.engine.status.state("ended on request");
            // It may have ended already: it waits for nothing then.
            let _ = self.link.send(&ToAgent::GiveUp);
            self.copy_the_rest().await?;
            return Ok(true);
        }
        if exit.is_success() {
            self.take_over().await?;
            // Not one that becomes visible after that.
            self.engine.stop_background();
            self.engine.mark_completed(0).await?;
            tracing::info!("the job ended successfully");
            self.engine.status.state("ended successfully");
            // It may have ended already: it waits for nothing then.
            let _ = self.link.send(&ToAgent::GiveUp);
            return Ok(true);
        }
        let decision = {
            let (now, jitter) = (self.engine.now(), super::random_u64());
            self.engine.restarts.on_crash(now, jitter)
        };
        let after = match decision {
            Decision::Restart { after, attempt } => {
                tracing::warn!(
                    ?exit,
                    attempt,
                    after_ms = after.as_millis() as u64,
                    "the job crashed; bringing it back"
                );
                after
            }
            Decision::GiveUp { restarts } => {
                tracing::error!(
                    ?exit,
                    restarts,
                    "the job crashed too often: giving up; see its log, or raise --max-restarts"
                );
                self.engine.status.state("gave up after too many crashes");
                self.link.send(&ToAgent::GiveUp)?;
                self.copy_the_rest().await?;
                return Ok(true);
            }
        };
        self.pause(after).await?;
        self.await_history().await?;
        self.stand_by().await?;
        self.take_over().await?;
        if self.restore_newest(false).await?.is_some() {
            self.job_is(true);
            return Ok(false);
        }
        match exit {
            Exit::Signal(signal) => {
                tracing::warn!(
                    signal,
                    "there is no checkpoint yet: the job is started afresh"
                );
                self.start_afresh().await
            }
            Exit::Code(code) => {
                tracing::error!(
                    code,
                    "the job failed before its first checkpoint: there is nothing to resume"
                );
                self.engine
                    .status
                    .state("failed before its first checkpoint");
                self.link.send(&ToAgent::GiveUp)?;
                Ok(true)
            }
        }
    }

    /// When the agent must be told that the job may end, if it asked.
    pub(super) fn exit_at(&self) -> Option<Instant> {
        self.termination.filter(|t| !t.sent).map(|t| t.exit_at)
    }

    /// Waits while nothing runs; goes on listening, so that an agent or a user who wants an end gets it.
    pub(super) async fn pause(&mut self, time: Duration) -> Result<(), Stop> {
        let until = Instant::now() + time;
        loop {
            let Engine { shutdown, .. } = &mut *self.engine;
            tokio::select! {
                packet = self.link.recv() => self.event(packet?).await?,
                () = super::stop_wanted(shutdown, super::LINGER) => return Err(Stop::Over),
                () = tokio::time::sleep_until(until.into()) => return Ok(()),
            }
            if self.termination.is_some() {
                self.send_terminate()?;
            }
        }
    }

    /// Waits for the checkpoint in flight.
    async fn settle_flight(&mut self) -> Result<(), Stop> {
        while self.engine.is_in_flight() {
            let outcome = super::attempt::landed(&mut self.engine.flight).await;
            self.flight_ended(outcome)?;
        }
        Ok(())
    }

    /// Tells the agent to end the job for good, after a restore that cannot be.
    pub(super) fn give_up(&mut self, reason: &str) -> Result<(), LinkError> {
        tracing::error!(reason, "the job cannot be resumed");
        self.engine
            .status
            .state(format!("cannot be resumed: {reason}"));
        self.link.send(&ToAgent::GiveUp)
    }
}

/// Why [`Session::serve`] ended without deciding.
pub(super) enum Stop {
    Link(WaitError),
    /// This process was asked to end.
    Over,
    Engine(EngineError),
}

impl From<LinkError> for Stop {
    fn from(e: LinkError) -> Stop {
        Stop::Link(WaitError::Link(e))
    }
}

impl From<WaitError> for Stop {
    fn from(e: WaitError) -> Stop {
        Stop::Link(e)
    }
}

impl From<EngineError> for Stop {
    fn from(e: EngineError) -> Stop {
        Stop::Engine(e)
    }
}

impl From<JobError> for Stop {
    fn from(e: JobError) -> Stop {
        Stop::Engine(EngineError::Job(e))
    }
}

impl From<RestoreError> for Stop {
    fn from(e: RestoreError) -> Stop {
        match e {
            RestoreError::Wait(e) => Stop::Link(e),
            other => Stop::Engine(EngineError::Restore(other.to_string())),
        }
    }
}

/// Fills in what the engine remembers of checkpoints.
impl Engine {
    /// A checkpoint is visible.
    fn committed(&mut self, stored: Stored) {
        let Stored {
            report,
            created,
            stop,
            measured,
        } = stored;
        self.newest = created;
        let local = report.local;
        let urgent = report.trigger != Trigger::Interval.as_str();
        tracing::info!(
            id = %CheckpointId { local, number: CheckpointNumber(report.id) },
            trigger = report.trigger,
            stop_ms = round(report.stop_ms),
            parts_ms = %parts(&report),
            total = report.total_bytes,
            changed = report.changed_bytes,
            copied = report.copied_bytes,
            stored = report.stored_bytes,
            seconds = round(report.seconds),
            "checkpoint"
        );
        self.expected_dump = measured.dump;
        self.crowded = self.crowded.saturating_sub(1);
        if let Some(rate) = measured.link {
            self.link_rate = rate;
        }
        // Before anybody hears of it: from then on it must not be taken for lost.
        self.remember();
        for client in self.serving.drain(..) {
            let _ = client.send(Ok(report.clone()));
        }
        let now = self.now();
        self.schedule.on(Event::Committed { stop }, now);
        {
            let mut status = self.status.lock();
            status.checkpoints += 1;
            status.last = Some(report);
            if status.unprotected.take().is_some() {
                tracing::info!("the job is protected again");
            }
        }
        self.stored(local, urgent);
    }

    /// There is a checkpoint of the job, in the store or on its way there: from here on it is known on this machine which history
    /// it belongs to.
    pub(super) fn remember(&self) {
        let Some(known) = self.job.expected() else {
            return;
        };
        // Two small files.
        let fresh = self.fresh;
        self.history
            .note(Remembered { known, fresh }, unix_millis());
    }

    /// An attempt failed; the job runs on.
    fn failed(&mut self, message: &str, kind: FailureKind, stop: Duration) {
        let unprotected = Unprotected {
            since_ms: self.newest.max(self.running_since).0,
            because: message.to_owned(),
        };
        let since = super::utc(unprotected.since_ms);
        let known = {
            let mut status = self.status.lock();
            status.unprotected.replace(unprotected.clone()) == Some(unprotected)
        };
        // One line for each reason, however often it is met.
        match kind {
            _ if known => tracing::debug!(reason = message, "checkpoint given up again"),
            FailureKind::Transient => tracing::warn!(
                reason = message,
                unprotected_since = since,
                "checkpoint given up; it will be tried again"
            ),
            _ => tracing::error!(
                reason = message,
                unprotected_since = since,
                "checkpoint given up"
            ),
        }
        for client in self.serving.drain(..) {
            let _ = client.send(Err(message.to_owned()));
        }
        let now = self.now();
        self.schedule.on(Event::Failed { kind, stop }, now);
        let mut status = self.status.lock();
        status.failures += 1;
        status.last_failure = Some(message.to_owned());
    }

    /// The job does not run: nobody gets a checkpoint.
    fn job_gone(&mut self) {
        for client in self.wanted_now.drain(..) {
            let _ = client.send(Err("the job does not run".into()));
        }
        let now = self.now();
        self.schedule.on(Event::JobExited, now);
    }

    async fn mark_completed(&mut self, code: i32) -> Result<(), EngineError> {
        let Some(epoch) = self.epoch else {
            return Ok(());
        };
        if let Some(near) = &mut self.near {
            near.mark_completed(code).await;
        }
        match self.job.mark_completed(epoch, code, unix_millis()).await {
            Ok(()) => {
                self.history.forget();
                Ok(())
            }
            Err(e) => {
                tracing::error!(
                    error = %e,
                    "it could not be noted that the job is done: the next start will resume it from its \
                     newest checkpoint; use another --job then"
                );
                Ok(())
            }
        }
    }
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn parts(report: &CheckpointReport) -> String {
    let parts: Vec<String> = report
        .parts_ms
        .iter()
        .map(|(name, ms)| format!("{name}={:.1}", ms))
        .collect();
    parts.join(" ")
}
