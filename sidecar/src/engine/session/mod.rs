//! One connection to the agent: who it is, what it says, and what is waited for.
//!
//! What is done over it is in modules of their own: `lifecycle` (the job from its start to its end), `checkpoint`, `restore`,
//! `ownership`.
//!
//! # Rules
//!
//! * One task owns the connection and does everything that is ordered by it. Long work runs beside it and comes back as a value;
//!   the task continues to listen.
//! * An event of the agent may arrive between any two answers: [`Session::answer`] deals with it.
//! * At most one checkpoint is in flight, from its first message until it is visible or has failed.

pub(super) mod link;
mod listen;

use std::time::{Duration, Instant};

use phos_policies::speculation::{Found, Place};
use phos_protocol::agent::{Exit, JobState, ToAgent, ToSidecar};
use phos_protocol::shim::Sequence;
use phos_storage::JobError;

use self::link::{Link, LinkError};
use super::memory::registry::Registry;
use super::{Engine, EngineError, LINGER, stop_wanted};

/// How long the agent may take for an answer that costs it nothing.
pub(super) const ANSWER: Duration = Duration::from_secs(30);

/// Why an answer that was waited for did not come.
#[derive(Debug, thiserror::Error)]
pub(in crate::engine) enum WaitError {
    #[error("{0}")]
    Link(#[from] LinkError),
    #[error("the job ended")]
    JobExited,
    #[error("the agent did not answer within {0:?}")]
    Timeout(Duration),
}

/// Why a session ended without deciding about the job.
pub(in crate::engine) enum Stop {
    /// The agent is gone or does not answer.
    Link(WaitError),
    /// This process was asked to end.
    Over,
    /// This process cannot continue.
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

/// The end of the job, not yet dealt with.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Ended {
    pub(in crate::engine) exit: Exit,
    /// Whether somebody asked for its end.
    pub(in crate::engine) stopping: bool,
    /// Whether it was heard of as it happened, or found later: a sidecar before this one may have heard of it.
    pub(in crate::engine) found: bool,
}

/// The agent wants to end, and waits for our word until then.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) struct Termination {
    /// When it must be told that the job may end.
    pub(in crate::engine) exit_at: Instant,
    /// It is told when the checkpoint that is being stored has ended, whatever the schedule says.
    pub(in crate::engine) after_flight: bool,
    /// Whether the agent was told that it may end.
    pub(in crate::engine) sent: bool,
}

/// The attempt that a session is making, or whose checkpoint it is storing.
#[derive(Debug, Default)]
pub(in crate::engine) struct Attempt {
    /// The number of the last one that was begun.
    pub(in crate::engine) seq: Sequence,
    /// The one that is being stored, if it was made over this connection.
    pub(in crate::engine) storing: Option<Sequence>,
    /// Since when the attempt that is being made holds the job.
    pub(in crate::engine) held_since: Option<Instant>,
    /// How long the attempt held the job before that.
    pub(in crate::engine) held_for: Duration,
    /// The last step before it, if the program tells steps.
    pub(in crate::engine) step: Option<u64>,
    /// Where in its steps the job is held, if it was found there.
    pub(in crate::engine) place: Option<Place>,
    /// What came of looking for such a place.
    pub(in crate::engine) found: Found,
    /// Whether its processes can be let go on for so many calls.
    pub(in crate::engine) takes_credit: bool,
}

/// One connection to the agent and what is known over it: see the module's documentation.
pub(in crate::engine) struct Session<'e> {
    pub(in crate::engine) engine: &'e mut Engine,
    pub(in crate::engine) link: Link,
    /// The job's device memory, as it was at the last checkpoint.
    pub(in crate::engine) registry: Registry,
    /// The job's command, as the agent was given it, without secrets.
    pub(in crate::engine) command: Vec<String>,
    pub(in crate::engine) attempt: Attempt,
    /// The epoch that the job's processes belong to, as the agent knows it; 0: it does not.
    pub(in crate::engine) job_epoch: u64,
    /// Chosen by the agent when it started.
    pub(in crate::engine) agent: u64,
    /// Whether it understands everything that this sidecar may say.
    pub(in crate::engine) same_release: bool,
    /// The job ended, and that was not dealt with yet.
    pub(in crate::engine) ended: Option<Ended>,
    pub(in crate::engine) termination: Option<Termination>,
    /// Whether the job runs, as far as the agent said.
    pub(in crate::engine) running: bool,
    /// Whether the job's program uses hints, and is told of checkpoints.
    pub(in crate::engine) has_hints: bool,
    /// Whether it tells its steps.
    pub(in crate::engine) has_steps: bool,
    /// Whether the next checkpoint on demand is one that it asked for.
    pub(in crate::engine) program_asked: bool,
}

impl<'e> Session<'e> {
    /// Says hello. None: another sidecar is connected. An agent that does not answer does not keep a sidecar that is asked to end.
    pub(in crate::engine) async fn open(
        engine: &'e mut Engine,
        link: Link,
    ) -> Result<Option<(Session<'e>, JobState)>, Stop> {
        let mut session = Session {
            engine,
            link,
            registry: Registry::default(),
            command: Vec::new(),
            attempt: Attempt::default(),
            job_epoch: 0,
            agent: 0,
            same_release: false,
            ended: None,
            termination: None,
            running: false,
            has_hints: false,
            has_steps: false,
            program_asked: false,
        };
        session.link.send(&ToAgent::Hello {
            version: env!("CARGO_PKG_VERSION").into(),
        })?;
        let deadline = Instant::now() + ANSWER;
        let (version, agent, job, restarts, command, seq, epoch) = loop {
            let signals = &mut session.engine.signals;
            let received = tokio::select! {
                received = tokio::time::timeout_at(deadline.into(), session.link.recv()) => received,
                () = stop_wanted(signals, LINGER) => return Err(Stop::Over),
            };
            let (message, fds) = received.map_err(|_| WaitError::Timeout(ANSWER))??;
            match message {
                ToSidecar::Welcome {
                    version,
                    agent,
                    job,
                    restarts,
                    command,
                    seq,
                    epoch,
                } => break (version, agent, job, restarts, command, seq, epoch),
                ToSidecar::Busy => return Ok(None),
                other => session.event_while_waiting((other, fds)).await?,
            }
        };
        tracing::info!(%version, agent = format!("{agent:016x}"), ?job, "connected to the agent");
        session.same_release = version == env!("CARGO_PKG_VERSION");
        if !session.same_release {
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
        session.attempt.seq = seq;
        session.job_epoch = epoch;
        session.agent = agent;
        Ok(Some((session, job)))
    }
}

/// Waits for that time; for ever without one.
pub(in crate::engine) async fn at(when: Option<Instant>) {
    match when {
        Some(when) => tokio::time::sleep_until(when.into()).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

    use super::*;
    use crate::engine::checkpoint::programs::{Faults, Job, World};

    #[tokio::test(flavor = "multi_thread")]
    async fn an_agent_that_says_nothing_keeps_nobody_who_is_to_end() {
        let (mut world, _quiet) = World::new(Job::new(1, 1), 1, Faults::None).await;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("silent");
        let silent = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
        bind(&silent, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&silent, 1).unwrap();
        world.engine.signals.asked = Instant::now().checked_sub(LINGER);
        let link = Link::connect(&path).unwrap();
        let began = Instant::now();
        let opened = Session::open(&mut world.engine, link).await;
        assert!(matches!(opened, Err(Stop::Over)));
        assert!(began.elapsed() < ANSWER, "it was waited for to the end");
    }
}
