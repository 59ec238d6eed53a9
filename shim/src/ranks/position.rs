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
use crate::{abi, gate, mode};

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
    /// It is made in the background, and is there when this one is ready.
    pub parent: Option<communicators::Handle>,
    pub at: usize,
    pub number: u64,
    pub rank: Option<u32>,
}

/// Communicators that are made in the background.
static IN_PROGRESS: Mutex<Vec<Made>> = Mutex::new(Vec::new());

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

/// What was issued to every communicator.
pub fn counts() -> Vec<Count> {
    communicators::with(|all| all.iter().flat_map(counts_of).collect())
}

/// Whether that is more than can be said.
pub fn are_too_many() -> bool {
    counts().len() > COUNTS
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
    // Before it is looked at what is reached: a call that is counted from here on looks at the goals.
    PURSUES.store(true, Ordering::SeqCst);
    if are_reached(&goals) {
        PURSUES.store(current.is_some(), Ordering::SeqCst);
        return false;
    }
    *current = Some(goals);
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

/// In a forked child: nobody opens a gate there.
pub fn reset_in_child() {
    PURSUES.store(false, Ordering::SeqCst);
}

/// The group that this thread is in. One that a thread left behind which ended in it, and whose number this thread has now, is none:
/// who is in a group is inside the gate.
fn in_group<R>(work: impl FnOnce(&mut Group) -> R) -> Option<R> {
    let mut groups = lock(&GROUPS);
    if !gate::is_inside() {
        groups.remove(&thread());
    }
    groups.get_mut(&thread()).map(work)
}

/// What became of a call that was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs, or will.
    Issued,
    /// It was refused, and the other ranks need not make it.
    Refused,
}

/// Issues a call, waiting at the gate; `nccl` answers, and says what became of it.
pub fn issue<R>(call: Call, nccl: impl FnOnce() -> (R, Fate)) -> R {
    if !mode::is_active() {
        return nccl().0;
    }
    if in_group(|group| group.calls.push(call)).is_some() {
        let (result, fate) = nccl();
        if fate == Fate::Refused {
            in_group(|group| group.calls.pop());
        }
        return result;
    }
    // One of NCCL's functions calls another one, which counts already.
    let is_nested = gate::is_inside();
    let _inside = gate::enter();
    if is_nested {
        return nccl().0;
    }
    let counted = count(&[call]);
    let (result, fate) = nccl();
    finish(&counted, fate);
    result
}

/// What was counted was issued, or was not after all.
fn finish(counted: &[Call], fate: Fate) {
    if fate == Fate::Refused {
        communicators::with(|all| {
            for call in counted {
                all.take_back(call.communicator, call.what, 1);
            }
        });
    }
    issued();
}

/// Counts calls before they are issued; those that are, and not captured.
fn count(calls: &[Call]) -> Vec<Call> {
    let counted: Vec<Call> = calls
        .iter()
        .copied()
        .filter(|call| !graphs::captured(call))
        .collect();
    communicators::with(|all| {
        for call in &counted {
            all.count(call.communicator, call.what, 1);
        }
    });
    counted
}

/// Whether the rank of a call's communicator is to be found out.
pub fn has_no_rank(call: &Call) -> bool {
    mode::is_active() && communicators::with(|all| all.has_no_rank(call.communicator))
}

/// Notes the rank of a call's communicator.
pub fn set_rank(call: &Call, rank: Option<u32>) {
    communicators::with(|all| all.set_rank(call.communicator, rank));
}

/// The number of a communicator that is made of another one.
pub fn child(parent: communicators::Handle, which: i32) -> Option<u64> {
    mode::is_active()
        .then(|| communicators::with(|all| all.child(parent, which)))
        .flatten()
}

/// A communicator ends.
pub fn forget(handle: communicators::Handle) {
    if mode::is_active() {
        communicators::with(|all| all.remove(handle));
        lock(&IN_PROGRESS).retain(|made| made.parent != Some(handle));
    }
}

/// Launches a graph that calls were captured into.
pub fn launch(calls: &Calls, launch: impl FnOnce() -> u32) -> u32 {
    communicators::with(|all| {
        for ((communicator, what), times) in calls {
            all.count(*communicator, *what, *times);
        }
    });
    let result = launch();
    if result != abi::SUCCESS {
        communicators::with(|all| {
            for ((communicator, what), times) in calls {
                all.take_back(*communicator, *what, *times);
            }
        });
    }
    issued();
    result
}

/// A group begins: the thread is inside the gate until its end.
pub fn begin_group() {
    if !mode::is_active() || in_group(|group| group.depth += 1).is_some() {
        return;
    }
    gate::enter_unscoped();
    let group = Group {
        depth: 1,
        ..Group::default()
    };
    lock(&GROUPS).insert(thread(), group);
}

/// The outermost group of this thread, if it ends now.
fn ended() -> Option<Group> {
    if !mode::is_active() {
        return None;
    }
    let is_over = in_group(|group| {
        group.depth -= 1;
        group.depth == 0
    });
    if is_over != Some(true) {
        return None;
    }
    lock(&GROUPS).remove(&thread())
}

/// A group ends: `nccl` tells NCCL, answers, and says what became of what is in the group.
pub fn end_group<R>(nccl: impl FnOnce() -> (R, Fate)) -> R {
    let Some(group) = ended() else {
        return nccl().0;
    };
    let counted = count(&group.calls);
    let (result, fate) = nccl();
    for made in group.made {
        self::made(made);
    }
    finish(&counted, fate);
    gate::leave();
    result
}

/// A group ends, or did not begin, and nothing of it is issued.
pub fn forget_group() {
    if ended().is_some() {
        gate::leave();
    }
}

/// A communicator was made, or will be when the thread's group ends or its parent is ready.
pub fn made(made: Made) {
    if in_group(|group| group.made.push(made)).is_some() {
        return;
    }
    if made.parent.is_some() {
        lock(&IN_PROGRESS).push(made);
    } else {
        register(&made);
    }
}

/// A communicator is ready, and with it what was made of it.
pub fn are_made(parent: communicators::Handle) {
    if !mode::is_active() {
        return;
    }
    let mut waiting = lock(&IN_PROGRESS);
    let (ready, others) = waiting
        .drain(..)
        .partition(|made| made.parent == Some(parent));
    *waiting = others;
    drop(waiting);
    let ready: Vec<Made> = ready;
    ready.iter().for_each(register);
}

fn register(made: &Made) {
    // SAFETY: where the caller wanted the handle, which must be valid until the call, its group or what it does in the background has
    // ended: NCCL writes to it at that time.
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
