//! The job falls quiet: the agent is asked more than once if need be, with the job running in between, and never for longer
//! at a time than the policy allows; best when the job has just waited for its work itself.

use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use phos_policies::speculation::{Found, Place, Waits};
use phos_policies::tries::{Answer, Haste, Moment, Next, Tries, TriesConfig, Try};
use phos_protocol::agent::{AttemptError, Process, QuiesceTime, ToAgent, ToSidecar};
use phos_protocol::shim::{self, Refusal, Sequence, WatchTime};

use super::manner::{AtStep, Insist};
use super::outcome::{Cause, ms, reason_of};
use crate::engine::memory::registry::Table;
use crate::engine::session::{Session, at};
use crate::engine::stop_wanted;
use crate::report::event::Event;
use crate::report::reason::FailureReason;

/// Beyond the time for the shims, for the agent's own work.
const MARGIN: Duration = Duration::from_secs(10);

/// What a failed try says about the next one in the same checkpoint, if there is to be one.
fn answer_of(error: &AttemptError) -> Option<Answer> {
    match error {
        AttemptError::Shim { refusal, .. } => match refusal {
            Refusal::Timeout => Some(Answer::Busy),
            // Both end without anything having been held.
            Refusal::Capturing | Refusal::Section => Some(Answer::Capturing),
            Refusal::Slow { needs_ms } => {
                Some(Answer::Deep(Duration::from_millis((*needs_ms).into())))
            }
            _ => None,
        },
        // Nothing was asked of the job: waited for as a capture's end is.
        AttemptError::Soon(_) => Some(Answer::Capturing),
        _ => None,
    }
}

/// As the shim is told.
fn wire(waits: &Waits) -> shim::Waits {
    let calls = |calls: &RangeInclusive<u32>| shim::Calls {
        least: *calls.start(),
        most: *calls.end(),
    };
    shim::Waits {
        after: calls(&waits.after),
        except: waits.except.iter().map(calls).collect(),
    }
}

/// There is no more time for it.
fn unquiet(message: &str) -> Cause {
    Cause::Unquiet(message.to_owned(), FailureReason::NotQuiet)
}

fn millis(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

impl Session<'_> {
    /// Asks the job to fall quiet until it does, or the time for that is over.
    pub(super) async fn fall_quiet(
        &mut self,
        insist: Insist,
        at_step: AtStep,
    ) -> Result<(Table, Vec<Process>), Cause> {
        let config = TriesConfig::within(self.engine.quiesce_timeout, self.engine.hold_limit);
        // Who asked for the end of the job does not wait for a good moment.
        let haste = match self.termination {
            Some(_) => Haste::Yes,
            None => Haste::No,
        };
        let mut tries = Tries::new(config, self.engine.habit, haste, self.engine.now());
        let wanted = at_step == AtStep::Yes && haste == Haste::No;
        let looked = wanted && (self.has_steps || self.engine.planning.looks_for().is_some());
        let mut at_step = wanted && self.good_moment(&tries).await?;
        let has_come = at_step;
        // The time for tries begins with the first.
        tries = Tries::new(config, self.engine.habit, haste, self.engine.now());
        loop {
            let current = tries.current();
            let has_step = std::mem::take(&mut at_step);
            let moment = match has_step {
                true => Moment::HavingWaited,
                false => self.run_on(current, &tries).await?,
            };
            let began = Instant::now();
            self.attempt.held_since = Some(began);
            let hold = tries.bound(moment);
            let length = match moment {
                Moment::HavingWaited => hold,
                Moment::Any => current.length,
            };
            let time = QuiesceTime {
                timeout_ms: millis(length),
                hold_ms: millis(hold),
            };
            let outcome = self.quiesce(time, insist).await;
            let (error, answer) = match outcome {
                Err(Cause::Agent(e)) => match answer_of(&e) {
                    Some(answer) => (e, answer),
                    None => return Err(Cause::Agent(e)),
                },
                outcome => {
                    self.attempt.found = match (self.attempt.place.take(), looked) {
                        (Some(place), _) => Found::At(place),
                        (None, true) if !has_come => Found::Nothing,
                        // The job had to go on before it was asked: it says nothing of the place.
                        (None, _) => Found::NotLookedFor,
                    };
                    // The end of a step is waited for in any case.
                    if outcome.is_ok() && !has_step {
                        tries.succeeded(moment, &mut self.engine.habit);
                    }
                    return outcome;
                }
            };
            let held = began.elapsed();
            self.attempt.held_since = None;
            self.attempt.held_for += held;
            let now = self.engine.now();
            match tries.after(answer, held, &mut self.engine.habit, now) {
                Next::Try(next) => {
                    let waited = moment == Moment::HavingWaited;
                    tracing::debug!(cause = %error, waited, ?next, "the job is asked again");
                    self.engine.happened(Event::QuiesceRetried {
                        reason: reason_of(&error),
                        held_ms: ms(held),
                    });
                    self.attempt.seq += 1;
                }
                Next::GiveUp if tries.failed() > 1 => {
                    let message = format!(
                        "{error} ({} short tries within {:?}, with the job running in between)",
                        tries.failed(),
                        self.engine.quiesce_timeout
                    );
                    return Err(Cause::Unquiet(message, reason_of(&error)));
                }
                // It was waited for already.
                Next::GiveUp => {
                    return Err(Cause::Unquiet(error.to_string(), reason_of(&error)));
                }
            }
        }
    }

    /// Where the program tells its steps, waits for the end of one, and where much depends on it, for the job to wait for its own work; though not for
    /// long: whether it came.
    async fn good_moment(&mut self, tries: &Tries) -> Result<bool, Cause> {
        let waits = match (self.has_steps, self.engine.planning.looks_for()) {
            (true, _) => None,
            (false, Some(waits)) => Some(wire(&waits)),
            (false, None) => return Ok(false),
        };
        let interval = self.engine.interval.current();
        let at_most = phos_policies::schedule::wait_for_step(interval);
        let seq = self.attempt.seq;
        let time = WatchTime {
            for_ms: millis(at_most),
            glance_ms: millis(tries.glance()),
            answer_ms: millis(tries.answer()),
        };
        self.link.send(&match waits {
            None => ToAgent::AwaitStep { seq, time },
            Some(waits) => ToAgent::WatchFor { seq, time, waits },
        })?;
        let moment = self
            .until_moment(Some(seq), at_most + tries.glance() * 2)
            .await;
        if !matches!(moment, Ok(Moment::HavingWaited)) {
            let time = WatchTime::OVER;
            self.link.send(&ToAgent::Watch { seq, time })?;
        }
        Ok(moment? == Moment::HavingWaited)
    }

    /// Lets the job run before a try; ends early when somebody wants an end.
    async fn run_on(&mut self, next: Try, tries: &Tries) -> Result<Moment, Cause> {
        if !next.pause.is_zero() {
            self.until_moment(None, next.pause).await?;
        }
        if next.watch.is_zero() {
            return Ok(Moment::Any);
        }
        let seq = self.attempt.seq;
        let time = WatchTime {
            for_ms: millis(next.watch),
            glance_ms: millis(tries.glance()),
            answer_ms: millis(tries.answer()),
        };
        self.link.send(&ToAgent::Watch { seq, time })?;
        // When the time is over, the job may have been held a moment ago.
        let time = next.watch + tries.glance() * 2;
        let moment = self.until_moment(Some(seq), time).await;
        if moment.is_err() {
            let time = WatchTime::OVER;
            self.link.send(&ToAgent::Watch { seq, time })?;
        }
        moment
    }

    /// Waits for the moment that was asked for, no longer than `time`: [`Moment::Any`] if it did not come.
    async fn until_moment(
        &mut self,
        wanted: Option<Sequence>,
        time: Duration,
    ) -> Result<Moment, Cause> {
        let until = Instant::now() + time;
        // Then the signal was heard.
        let ending = self.termination.is_some();
        loop {
            let time_is_up = self.exit_at();
            let signals = &mut self.engine.signals;
            tokio::select! {
                packet = self.link.recv() => {
                    let packet = packet?;
                    if let (ToSidecar::Moment { seq, waited }, Some(wanted)) = (&packet.0, wanted)
                        && *seq == wanted
                    {
                        return Ok(match waited {
                            true => Moment::HavingWaited,
                            false => Moment::Any,
                        });
                    }
                    self.event_while_waiting(packet).await?;
                    if self.termination.is_some() && !ending {
                        // No time for a better moment.
                        return Ok(Moment::Any);
                    }
                }
                () = stop_wanted(signals, Duration::ZERO), if !ending => {
                    return Err(unquiet("the sidecar is to end, and the job has not fallen quiet"));
                }
                () = at(time_is_up) => {
                    return Err(unquiet("the job is to end, and has not fallen quiet"));
                }
                () = tokio::time::sleep_until(until.into()) => return Ok(Moment::Any),
            }
        }
    }

    /// One try: the table of the job's memory, and its processes.
    async fn quiesce(
        &mut self,
        time: QuiesceTime,
        insist: Insist,
    ) -> Result<(Table, Vec<Process>), Cause> {
        let seq = self.attempt.seq;
        let timeout = Duration::from_millis(time.timeout_ms.into());
        self.link.send(&ToAgent::Quiesce {
            seq,
            time,
            insist: insist == Insist::Yes,
        })?;
        let mut table = Table::default();
        let mut bad = None;
        let mut last_step = None;
        let (mut takes_credit, mut place) = (false, None);
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
                ToSidecar::Step { seq: s, step } if s == seq => {
                    // Ranks may differ by one; what the slowest has done is done.
                    last_step = Some(last_step.map_or(step, |least: u64| least.min(step)));
                    Err(ToSidecar::Step { seq: s, step })
                }
                ToSidecar::TakesCredit {
                    seq: s,
                    place: said,
                } if s == seq => {
                    (takes_credit, place) = (true, said);
                    Err(ToSidecar::TakesCredit {
                        seq: s,
                        place: said,
                    })
                }
                other => Err(other),
            })
            .await?;
        self.attempt.step = last_step;
        self.attempt.takes_credit = takes_credit;
        self.attempt.place = place.map(|place| match place {
            shim::Place::Step => Place::Step,
            shim::Place::Wait { calls } => Place::Wait { calls },
        });
        match (outcome, bad) {
            (Some(Err(e)), _) => Err(Cause::Agent(e)),
            (_, Some(e)) => Err(Cause::Table(e)),
            (Some(Ok(processes)), None) => Ok((table, processes)),
            (None, None) => Err(Cause::Task("no outcome".into())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_kept_the_job_from_falling_quiet_is_the_reason_of_the_failure() {
        for (refusal, reason) in [
            (Refusal::Section, FailureReason::Section),
            (Refusal::Capturing, FailureReason::Capturing),
            (Refusal::Timeout, FailureReason::NotQuiet),
        ] {
            let member = phos_protocol::types::MemberId::here(7);
            let error = AttemptError::Shim { member, refusal };
            assert!(answer_of(&error).is_some());
            let cause = Cause::Unquiet(error.to_string(), reason_of(&error));
            assert_eq!(cause.into_failed(Duration::ZERO).reason, reason);
        }
    }
}
