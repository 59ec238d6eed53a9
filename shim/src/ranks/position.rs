//! What this process has issued, and the goals that it continues towards.
//!
//! The gate is closed by the very thread whose call reaches the last goal, before it can make another one; the control thread, which
//! opens it, takes the goals back before that. Both happen under one lock, so a gate that is given up is not closed afterwards.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use phos_protocol::shim::{COUNTS, Count, Counted};

use super::communicators::{self, Communicator};
use super::graphs::{self, Calls};
use crate::sync::lock;
use crate::{gate, mode};

/// A call inside a group, which is issued at the group's end.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub communicator: communicators::Handle,
    pub what: Counted,
    /// The stream that it is for.
    pub stream: usize,
}

/// Groups that threads have begun, by thread.
static GROUPS: Mutex<BTreeMap<i32, Group>> = Mutex::new(BTreeMap::new());

#[derive(Debug, Default)]
struct Group {
    depth: u32,
    calls: Vec<Call>,
    /// What is to be done at the end, with communicators that are made in the group.
    made: Vec<Made>,
}

/// A communicator that is being made: where its handle will stand, its number, and its rank where that is known.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    pub at: usize,
    pub number: u64,
    pub rank: Option<u32>,
}

static GOALS: Mutex<Option<Vec<Count>>> = Mutex::new(None);
/// Whether there are goals: most calls see that there are none.
static PURSUES: AtomicBool = AtomicBool::new(false);

fn thread() -> i32 {
    // SAFETY: no arguments.
    unsafe { libc::gettid() }
}

/// Whether this process has a communicator whose calls are counted.
pub fn there_are() -> bool {
    !communicators::with(|all| all.is_empty())
}

/// What was issued to every communicator. Nothing, where that is more than can be said.
pub fn counts() -> Vec<Count> {
    let counts = communicators::with(|all| all.iter().flat_map(counts_of).collect::<Vec<_>>());
    if counts.len() > COUNTS {
        Vec::new()
    } else {
        counts
    }
}

fn counts_of(of: &Communicator) -> Vec<Count> {
    let Some(rank) = of.rank else {
        return Vec::new();
    };
    let count = |what, times| Count {
        communicator: of.number,
        rank,
        of: what,
        times,
    };
    let sent = of
        .sent
        .iter()
        .map(|(peer, times)| count(Counted::Sent(*peer), *times));
    let received = of
        .received
        .iter()
        .map(|(peer, times)| count(Counted::Received(*peer), *times));
    std::iter::once(count(Counted::Collectives, of.collectives))
        .chain(sent)
        .chain(received)
        .collect()
}

/// Whether all goals are reached. One that no communicator of this process can reach never is.
fn are_reached(goals: &[Count]) -> bool {
    let counts = counts();
    goals.iter().all(|goal| {
        let same = |c: &&Count| {
            c.communicator == goal.communicator && c.rank == goal.rank && c.of == goal.of
        };
        counts.iter().find(same).map_or(0, |count| count.times) >= goal.times
    })
}

/// Opens the gate until these goals are reached. False: they are, and it stays as it is.
pub fn pursue(goals: Vec<Count>) -> bool {
    let mut current = lock(&GOALS);
    if are_reached(&goals) {
        return false;
    }
    *current = Some(goals);
    PURSUES.store(true, Ordering::SeqCst);
    gate::open();
    true
}

/// Whether the goals were reached, and the gate began to close.
pub fn have_arrived() -> bool {
    lock(&GOALS).is_none()
}

/// There are no goals any more: nobody closes the gate from here on but the control thread.
pub fn give_up() {
    *lock(&GOALS) = None;
    PURSUES.store(false, Ordering::SeqCst);
}

/// A call was issued, and is still inside the gate.
fn issued() {
    if !PURSUES.load(Ordering::SeqCst) {
        return;
    }
    let mut goals = lock(&GOALS);
    if goals.as_ref().is_some_and(|goals| are_reached(goals)) {
        *goals = None;
        PURSUES.store(false, Ordering::SeqCst);
        gate::hold();
    }
}

/// A call, from before NCCL is asked until it has answered.
#[must_use]
pub struct Issuing(Option<gate::Inside>);

impl Drop for Issuing {
    fn drop(&mut self) {
        if self.0.is_some() {
            issued();
        }
    }
}

/// Begins a call, waiting at the gate.
pub fn issue(call: Call) -> Issuing {
    if !mode::is_active() {
        return Issuing(None);
    }
    let inside = gate::enter();
    if let Some(group) = lock(&GROUPS).get_mut(&thread()) {
        group.calls.push(call);
        return Issuing(None);
    }
    count(&[call]);
    Issuing(Some(inside))
}

fn count(calls: &[Call]) {
    for call in calls {
        if communicators::with(|all| all.has_no_rank(call.communicator)) {
            let rank = super::calls::rank_of(call.communicator);
            communicators::with(|all| all.set_rank(call.communicator, rank));
        }
        if !graphs::captured(call) {
            communicators::with(|all| all.count(call.communicator, call.what, 1));
        }
    }
}

/// Launches a graph that calls were captured into.
pub fn launch<R>(calls: &Calls, launch: impl FnOnce() -> R) -> R {
    communicators::with(|all| {
        for ((communicator, what), times) in calls {
            all.count(*communicator, *what, *times);
        }
    });
    let result = launch();
    issued();
    result
}

/// A group begins: the thread is inside the gate until its end.
pub fn begin_group() {
    if !mode::is_active() {
        return;
    }
    let thread = thread();
    let is_first = !lock(&GROUPS).contains_key(&thread);
    if is_first {
        gate::enter_unscoped();
    }
    lock(&GROUPS).entry(thread).or_default().depth += 1;
}

/// A group ends, or did not begin: `end` tells NCCL.
pub fn end_group<R>(end: impl FnOnce() -> R) -> R {
    let mut groups = lock(&GROUPS);
    let over = groups.get_mut(&thread()).is_some_and(|group| {
        group.depth -= 1;
        group.depth == 0
    });
    let group = if over { groups.remove(&thread()) } else { None };
    drop(groups);
    let Some(group) = group else {
        return end();
    };
    count(&group.calls);
    let result = end();
    for made in &group.made {
        register(made);
    }
    issued();
    gate::leave();
    result
}

/// A communicator was made, or will be when the thread's group ends.
pub fn made(made: Made) {
    if let Some(group) = lock(&GROUPS).get_mut(&thread()) {
        group.made.push(made);
        return;
    }
    register(&made);
}

fn register(made: &Made) {
    // SAFETY: where the caller wanted the handle, which must be valid until the call, or its group, has ended.
    let handle = unsafe { (made.at as *const usize).read() };
    if handle == 0 {
        return;
    }
    let first = communicators::with(|all| {
        let first = all.is_empty();
        all.add(handle, made.number, made.rank);
        first
    });
    if first {
        crate::link::tell_communicates();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goals_are_reached_call_by_call_and_by_whom_they_name() {
        communicators::with(|all| all.add(11, 5, Some(2)));
        let collective = |times| Count {
            communicator: 5,
            rank: 2,
            of: Counted::Collectives,
            times,
        };
        let sent = Count {
            of: Counted::Sent(1),
            times: 1,
            ..collective(0)
        };
        assert!(are_reached(&[]));
        assert!(!are_reached(&[collective(1)]));
        communicators::with(|all| all.count(11, Counted::Collectives, 1));
        assert!(are_reached(&[collective(1)]));
        assert!(!are_reached(&[collective(1), sent]));
        communicators::with(|all| {
            all.count(11, Counted::Sent(1), 1);
            all.count(12, Counted::Sent(1), 1);
        });
        assert!(are_reached(&[collective(1), sent]));
        assert!(!are_reached(&[Count {
            rank: 3,
            ..collective(1)
        }]));
        assert_eq!(counts().len(), 2);
        communicators::with(|all| all.remove(11));
        assert!(!there_are());
    }
}
