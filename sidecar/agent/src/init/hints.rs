//! What the job's program says of itself, for the sidecar, and what it is told in answer.
//!
//! A program may say anything as often as it likes. Requests are passed on at most once in [`ASK`]; the sidecar decides what comes of them.

use std::time::{Duration, Instant};

use phos_protocol::agent::ToSidecar;
use phos_protocol::shim::{Newest, Sequence, ToShim, WatchTime};

use super::Init;
use crate::channels::shims::ConnectionId;

/// Between two requests of the program's that are passed on.
const ASK: Duration = Duration::from_millis(100);

/// What is known of the job's hints.
#[derive(Debug, Default)]
pub(super) struct Hints {
    /// Whether the sidecar has said which checkpoint is the newest.
    pub(super) is_newest_known: bool,
    /// The newest checkpoint, if there is one.
    pub(super) newest: Option<Newest>,
    /// What the sidecar was told: whether steps are told.
    told: Option<bool>,
    /// When a request was passed on last.
    asked: Option<Instant>,
}

impl Hints {
    /// Whether a request is passed on now.
    pub(super) fn may_ask(&mut self, now: Instant) -> bool {
        let may = self.asked.is_none_or(|asked| now >= asked + ASK);
        if may {
            self.asked = Some(now);
        }
        may
    }
}

/// When the sidecar is told of hints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HintsTold {
    /// It is another one, which knows nothing.
    Anew,
    /// When there is something to add to what it was told.
    OnlyNews,
}

impl Init {
    /// Tells the sidecar whether the job's program uses hints.
    pub(super) fn tell_hints(&mut self, when: HintsTold) {
        if when == HintsTold::Anew {
            self.hints.told = None;
        }
        if !self.processes.values().any(|process| process.hints) {
            return;
        }
        let steps = self.processes.values().any(|process| process.steps);
        let is_news = match self.hints.told {
            None => true,
            Some(told) => steps && !told,
        };
        if is_news && self.sidecar.send(&ToSidecar::Hints { steps }, &[]) {
            self.hints.told = Some(steps);
        }
    }

    /// The sidecar says which checkpoint is the newest: so are the processes told whose programs may ask.
    pub(super) fn newest_is(&mut self, newest: Option<Newest>) {
        self.hints.is_newest_known = true;
        self.hints.newest = newest;
        let able = self.processes.values().filter(|process| process.hints);
        let told: Vec<ConnectionId> = able.filter_map(|process| process.connection).collect();
        for id in told {
            self.tell_shim(id, &ToShim::Newest(newest));
        }
    }

    /// Has those tell when a step ends whose programs tell steps. If there are none, the sidecar hears that at once.
    pub(super) fn await_step(&mut self, seq: Sequence, time: WatchTime) {
        let able = self.processes.values().filter(|process| process.steps);
        let asked = able.filter_map(|process| process.connection).collect();
        self.await_moment(seq, asked, &ToShim::AwaitStep { seq, time });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_asks_all_the_time_is_heard_ten_times_a_second() {
        let (mut hints, begun) = (Hints::default(), Instant::now());
        let heard = (0..1000).filter(|ms| hints.may_ask(begun + Duration::from_millis(*ms)));
        assert_eq!(heard.count(), 10);
    }
}
