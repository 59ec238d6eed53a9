//! The job falls quiet: the agent is asked more than once if need be, with the job running in between, and never for longer
//! at a time than the policy allows.

use std::time::{Duration, Instant};

use phos_policies::tries::{Answer, Next, Tries, TriesConfig};
use phos_protocol::agent::{AttemptError, Process, ToAgent, ToSidecar};
use phos_protocol::shim::Refusal;

use super::outcome::Cause;
use crate::engine::memory::registry::Table;
use crate::engine::session::{Session, at};
use crate::engine::stop_wanted;

/// Beyond the time for the shims, for the agent's own work.
const MARGIN: Duration = Duration::from_secs(10);

/// Whether the agent looks at the job again although what kept it from a checkpoint lately may still be there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Insist {
    /// Somebody asked for this checkpoint, or it is the last.
    Yes,
    /// The schedule's.
    No,
}

/// What a failed try says about the next one in the same checkpoint, if there is to be one.
fn answer_of(error: &AttemptError) -> Option<Answer> {
    match error {
        AttemptError::Shim { refusal, .. } => match refusal {
            Refusal::Timeout => Some(Answer::Busy),
            Refusal::Capturing => Some(Answer::Capturing),
            Refusal::Slow { needs_ms } => {
                Some(Answer::Needs(Duration::from_millis((*needs_ms).into())))
            }
            _ => None,
        },
        // Nothing was asked of the job: waited for as a capture's end is.
        AttemptError::Soon(_) => Some(Answer::Capturing),
        _ => None,
    }
}

impl Session<'_> {
    /// Asks the job to fall quiet until it does, or the time for that is over.
    pub(super) async fn fall_quiet(
        &mut self,
        insist: Insist,
    ) -> Result<(Table, Vec<Process>), Cause> {
        let now = self.engine.now();
        let mut tries = Tries::new(TriesConfig::within(self.engine.quiesce_timeout), now);
        loop {
            let began = Instant::now();
            self.attempt.held_since = Some(began);
            let outcome = self.quiesce(tries.bound(), insist).await;
            let (error, answer) = match outcome {
                Err(Cause::Agent(e)) => match answer_of(&e) {
                    Some(answer) => (e, answer),
                    None => return Err(Cause::Agent(e)),
                },
                outcome => {
                    if outcome.is_ok() {
                        self.engine.long_tries.succeeded();
                    }
                    return outcome;
                }
            };
            let held = began.elapsed();
            self.attempt.held_since = None;
            self.attempt.held_for += held;
            let now = self.engine.now();
            match tries.after(answer, held, &mut self.engine.long_tries, now) {
                Next::Try { after, bound } => {
                    tracing::debug!(cause = %error, after_ms = after.as_millis() as u64, bound_ms = bound.as_millis() as u64, "the job is asked again");
                    self.run_on(after).await?;
                    self.attempt.seq += 1;
                }
                Next::GiveUp if tries.failed() > 1 => {
                    return Err(Cause::Unquiet(format!(
                        "{error} ({} short tries within {:?}, with the job running in between)",
                        tries.failed(),
                        self.engine.quiesce_timeout
                    )));
                }
                // It was waited for already.
                Next::GiveUp => return Err(Cause::Unquiet(error.to_string())),
            }
        }
    }

    /// Lets the job run between two tries; ends early when somebody wants an end.
    async fn run_on(&mut self, time: Duration) -> Result<(), Cause> {
        let until = Instant::now() + time;
        loop {
            let time_is_up = self.exit_at();
            let signals = &mut self.engine.signals;
            tokio::select! {
                packet = self.link.recv() => self.event_while_waiting(packet?).await?,
                () = stop_wanted(signals, Duration::ZERO) => {
                    return Err(Cause::Task("the sidecar is to end, and the job has not fallen quiet".into()));
                }
                () = at(time_is_up) => {
                    return Err(Cause::Task("the job is to end, and has not fallen quiet".into()));
                }
                () = tokio::time::sleep_until(until.into()) => return Ok(()),
            }
        }
    }

    /// One try: the table of the job's memory, and its processes.
    async fn quiesce(
        &mut self,
        timeout: Duration,
        insist: Insist,
    ) -> Result<(Table, Vec<Process>), Cause> {
        let seq = self.attempt.seq;
        let timeout_ms = u32::try_from(timeout.as_millis()).unwrap_or(u32::MAX);
        self.link.send(&ToAgent::Quiesce {
            seq,
            timeout_ms,
            insist: insist == Insist::Yes,
        })?;
        let mut table = Table::default();
        let mut bad = None;
        let outcome = self
            .answer(timeout + MARGIN, |message, fds| match message {
                ToSidecar::Quiesced { seq: s, outcome } if s == seq => Ok(Some(outcome)),
                ToSidecar::Table { seq: s, entries } if s == seq => {
                    if let Err(e) = table.add(entries, std::mem::take(fds)) {
                        bad.get_or_insert(e);
                    }
                    Err(ToSidecar::Table {
                        seq: s,
                        entries: Vec::new(),
                    })
                }
                other => Err(other),
            })
            .await?;
        match (outcome, bad) {
            (Some(Err(e)), _) => Err(Cause::Agent(e)),
            (_, Some(e)) => Err(Cause::Table(e)),
            (Some(Ok(processes)), None) => Ok((table, processes)),
            (None, None) => Err(Cause::Task("no outcome".into())),
        }
    }
}
