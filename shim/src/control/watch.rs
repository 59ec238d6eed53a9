//! Tells the agent when the job has itself waited for its work and the GPU has none left: the moment for a checkpoint.
//!
//! A wait of the job's ([`moment`]) may be for a part of what is in flight: for the copy of a batch, in the midst of a step. So
//! the gate is closed for a glance; only if nothing is in flight by its end, the agent is told, and the gate stays closed for its
//! answer, for no longer than the agent said. Otherwise the job continues, and the next glance is a while away: it is likely to
//! be at another of the job's waits. A job that has the next step queued when it waits for this one is never idle, and needs a
//! longer one: glances grow, from a few ms to what the agent allows, and so do the pauses between them.
//!
//! Where the program tells its steps ([`hints`]), the agent may want the end of one instead. The thread that ends it stays, with the gate open,
//! until the GPU has done what it was given, which loses no time of the GPU's; then the gate is closed, and the job is idle.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use phos_protocol::shim::{Place, Sequence, ToAgent, Waits, WatchTime};

use super::{Control, End, Phase, millis, say, synchronizer};
use crate::rendezvous::Rendezvous;
use crate::{abi, capture, context, gate, hints, moment};

/// How often it is looked whether the job has waited.
pub const LOOK: Duration = Duration::from_millis(2);
/// How long the first glances last, at most. Every other one is [`LONGER`] times as long as the one before.
const GLANCE: Duration = Duration::from_millis(2);
const LONGER: u32 = 8;
/// From a glance that found work to the next, in lengths of it and of the look before it: they cost the job a twentieth of its
/// time at most. Uneven, so as not to meet the same wait of every step.
const AGAIN: [u32; 3] = [20, 27, 33];
/// How long the synchronizer's thread may take to begin.
const ENTER: Duration = Duration::from_millis(10);
/// Between looks whether calls have left.
const STEP: Duration = Duration::from_micros(100);

/// How long a thread that has ended a step stays for the GPU to become idle, at most. A job with more work queued is asked in another way.
const DRAINS: Duration = Duration::from_secs(1);

/// What the agent waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Awaited {
    /// The job waits for its work by itself.
    Wait,
    /// It does so after a certain number of calls.
    OneWait,
    /// The program says that a step has ended.
    Step,
}

/// See [`ToShim::Watch`](phos_protocol::shim::ToShim::Watch).
#[derive(Debug, Clone, Copy)]
pub struct Watch {
    seq: Sequence,
    awaited: Awaited,
    /// When the watch ends without an answer.
    until: Instant,
    /// The longest that one glance may last.
    longest: Duration,
    /// How long the gate stays closed for an answer. The agent and the sidecar take a few ms; a job is not held for one that is slow.
    answer: Duration,
    /// Glances that found work.
    glances: u32,
    state: State,
}

impl Watch {
    /// How long the next glance may last.
    fn glance(&self) -> Duration {
        let longer = LONGER.saturating_pow(self.glances / 2);
        GLANCE.saturating_mul(longer).min(self.longest)
    }

    /// How long the job runs after that glance before the next one.
    fn again(&self) -> Duration {
        (self.glance() + LOOK) * AGAIN[self.glances as usize % AGAIN.len()]
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// The next wait of the job's that ends is looked at.
    Wanted,
    /// One was looked at, and there was work left. The next, from then on.
    Later(Instant),
    /// A step has ended, and its work is waited for until then.
    Draining(Instant),
    /// The agent knows, and the gate is closed.
    Told,
}

impl Control {
    /// Serves `WatchFor`.
    pub(super) fn begin_watch_for(&mut self, seq: Sequence, time: WatchTime, waits: &Waits) {
        self.begin_watch(seq, time, Awaited::OneWait);
        if self.watch.is_some() {
            moment::want_some(waits);
        }
    }

    pub(super) fn begin_watch(&mut self, seq: Sequence, time: WatchTime, awaited: Awaited) {
        if self.phase != Phase::Running {
            return;
        }
        self.end_watch();
        if time == WatchTime::OVER {
            return;
        }
        self.end_credit();
        self.watch = Some(Watch {
            seq,
            awaited,
            until: Instant::now() + millis(time.for_ms),
            longest: millis(time.glance_ms),
            answer: millis(time.answer_ms),
            glances: 0,
            state: State::Wanted,
        });
        match awaited {
            Awaited::Wait => moment::WAITED.want(),
            // When it is known which.
            Awaited::OneWait => {}
            Awaited::Step => hints::STEP_ENDS.want(),
        }
    }

    /// Tells the agent when the job has waited for all its work, once, and ends a watch whose time is over.
    pub(super) fn look_for_moment(&mut self, socket: &OwnedFd) -> Result<(), End> {
        let Some(watch) = &mut self.watch else {
            return Ok(());
        };
        if watch.awaited == Awaited::OneWait && watch.state != State::Told {
            // For a thread that was about to sleep, for want of credit, when the gate began to count again.
            gate::remind();
        }
        let now = Instant::now();
        match watch.state {
            State::Wanted if watch.awaited == Awaited::Step => {
                if hints::STEP_ENDS.is_reached() {
                    if !begin_draining() {
                        return self.step_has_ended(socket);
                    }
                    watch.state = State::Draining(now + DRAINS);
                }
            }
            State::Draining(until) => {
                let outcome = synchronizer::outcome(Duration::ZERO);
                if outcome == Some(abi::SUCCESS)
                    && glance(watch.longest, &hints::STEP_ENDS) == Glance::Idle
                {
                    watch.state = State::Told;
                    watch.until = Instant::now() + watch.answer;
                    return say(socket, &ToAgent::Moment { seq: watch.seq });
                }
                if outcome.is_some() || now >= until {
                    return self.step_has_ended(socket);
                }
            }
            State::Wanted if moment::WAITED.is_reached() => {
                match glance(watch.glance(), &moment::WAITED) {
                    Glance::Idle => {
                        watch.state = State::Told;
                        watch.until = Instant::now() + watch.answer;
                        return say(socket, &ToAgent::Moment { seq: watch.seq });
                    }
                    Glance::Gone => moment::WAITED.want(),
                    Glance::Busy => {
                        watch.state = State::Later(Instant::now() + watch.again());
                        watch.glances = watch.glances.saturating_add(1);
                    }
                }
            }
            State::Later(at) if now >= at => {
                watch.state = State::Wanted;
                moment::WAITED.want();
            }
            State::Wanted | State::Later(_) | State::Told => {}
        }
        if now >= watch.until {
            self.end_watch();
        }
        Ok(())
    }

    /// A step has ended, and the GPU has work: another thread's, or more than ends soon. The attempt begins without a pause of the job's.
    fn step_has_ended(&mut self, socket: &OwnedFd) -> Result<(), End> {
        let seq = self.watch.map(|watch| watch.seq);
        self.end_watch();
        seq.map_or(Ok(()), |seq| say(socket, &ToAgent::Moment { seq }))
    }

    /// Whether the agent was to be told when the job waits, whatever came of it.
    pub(super) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// Whether the gate is closed, and nothing was in flight when it was.
    pub(super) fn has_waited(&self) -> bool {
        matches!(self.watch, Some(watch) if watch.state == State::Told)
    }

    /// Where in its steps the process has been held since the agent was told, if that is known.
    pub(super) fn place(&self) -> Option<Place> {
        let watch = self.watch.filter(|_| self.has_waited())?;
        match watch.awaited {
            Awaited::Wait => None,
            Awaited::OneWait => moment::calls().map(|calls| Place::Wait { calls }),
            Awaited::Step => Some(Place::Step),
        }
    }

    /// No more of it; the gate is as the phase wants it.
    pub(super) fn end_watch(&mut self) {
        let closed = self.has_waited();
        let draining = self
            .watch
            .take()
            .is_some_and(|w| matches!(w.state, State::Draining(_)));
        if draining && synchronizer::is_busy() {
            synchronizer::cancel();
        }
        moment::WAITED.forget();
        hints::STEP_ENDS.forget();
        let counted = moment::want_any();
        if (closed || counted) && self.phase == Phase::Running {
            gate::open();
        }
    }
}

/// What a glance shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Glance {
    /// Nothing is in flight, or nothing any more after the time for it. The gate is closed now.
    Idle,
    /// There is work.
    Busy,
    /// The thread that was there has not stayed for it: on a busy machine it has gone on.
    Gone,
}

/// Closes the gate for so long at most, to see whether anything is in flight while a thread stays here.
fn glance(length: Duration, at: &Rendezvous) -> Glance {
    let until = Instant::now() + length;
    let closed = gate::close();
    // Who has waited is held by the gate from here on, if by anything.
    let glance = match at.forget() {
        false => Glance::Gone,
        true if closed && calls_left(until) && !capture::any() && contexts_idle(until) => {
            Glance::Idle
        }
        true => Glance::Busy,
    };
    if glance != Glance::Idle {
        gate::open();
    }
    glance
}

/// Begins to wait for the GPU with the gate open. Whether that can be: the driver is asked in a moment in which no thread is in a call, as its wait
/// would spoil a capture that begins at the same time, and about one context, as a second one may be gone when its turn comes.
fn begin_draining() -> bool {
    let contexts = context::live();
    // What an earlier attempt gave up waiting for has to end first.
    if contexts.len() > 1 || synchronizer::is_busy() {
        return false;
    }
    let begun = gate::close()
        && calls_left(Instant::now() + ENTER)
        && !capture::any()
        && synchronizer::begin(contexts).is_ok();
    let entered = begun && synchronizer::entered(ENTER).is_some();
    if begun && !entered {
        synchronizer::cancel();
    }
    gate::open();
    entered
}

fn calls_left(until: Instant) -> bool {
    while !gate::is_quiet() {
        if Instant::now() >= until {
            return false;
        }
        gate::forget_the_dead();
        std::thread::sleep(STEP);
    }
    true
}

fn contexts_idle(until: Instant) -> bool {
    // One that was given up ends when the work does that it was begun for, which may be now.
    if outcome(until).is_none() || synchronizer::begin(context::live()).is_err() {
        return false;
    }
    // The time is the driver's: a thread that was not woken in time looks as if there were work.
    match synchronizer::entered(ENTER).and_then(|()| outcome(until.max(Instant::now() + GLANCE))) {
        Some(result) => result == abi::SUCCESS,
        None => {
            synchronizer::cancel();
            false
        }
    }
}

/// What the synchronizer came to, if by then it did; a thread that has ended its wait needs a moment to say so.
fn outcome(until: Instant) -> Option<u32> {
    synchronizer::outcome(until.saturating_duration_since(Instant::now()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn glances_grow_and_cost_the_job_a_twentieth() {
        let ms = Duration::from_millis;
        let now = Instant::now();
        let mut watch = Watch {
            seq: 1,
            awaited: Awaited::Wait,
            until: now,
            longest: ms(60),
            answer: ms(100),
            glances: 0,
            state: State::Wanted,
        };
        let mut lengths = Vec::new();
        for glances in (0..9).chain([u32::MAX]) {
            watch.glances = glances;
            lengths.push(watch.glance().as_millis());
            assert!(watch.again() >= (watch.glance() + LOOK) * 20);
        }
        assert_eq!(lengths, [2, 2, 16, 16, 60, 60, 60, 60, 60, 60]);
    }
}
