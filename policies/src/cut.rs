//! The consistent cut of a job of ranks: how far each of them continues before all are held.
//!
//! Ranks meet in collectives and in sends and receives, each of which runs on the GPU from the moment at which a rank issues it until
//! every rank that takes part has issued it. A rank that is held before one that another rank has issued keeps the other one's GPU
//! busy for ever. So every rank says what it has issued, as counts, and those that are behind continue to where the others are.
//!
//! # The algorithm
//!
//! What two ranks or more do together is a *meeting*: the collectives of a communicator, or the messages from one of its ranks to
//! another. For each meeting, each rank that takes part has a count. The target of a meeting is the largest of its counts. A rank
//! whose counts are all at their targets is held; one that is behind anywhere continues until it is behind nowhere, and is held after
//! the very call with which it gets there. If it passes a target on its way (it must, where the call it lacks comes after others),
//! that target rises, and ranks that were held before it continue in their turn. When all are held and nobody is behind, every issued
//! call has been issued by everyone who takes part, so all of them end by themselves. This is the cut of MANA's collective clocks
//! (Xu and Cooperman, arXiv 2212.05701), with messages counted as well, since a GPU that waits to send is as busy as one that waits
//! for an all-reduce.
//!
//! # Why it ends
//!
//! A rank continues only towards a call that another rank has issued already, so everything that is issued on the way comes before
//! that call in the program's order: what is issued in the end is the smallest set of calls that contains those issued at first and, with
//! each, whatever anyone who takes part in it issues before it. No rank is asked for a call that the program would not have made, and
//! none is held before a call that another one waits for. Where each rank synchronises with the others at the end of a step, the set ends
//! there at the latest, since all that came before is matched there. Ranks that are always ahead of each other in different meetings (a pipeline
//! that is never flushed) have no such end, and ranks can also wait for each other outside of what is counted: whoever carries this
//! out gives up after a while, and lets everyone continue.
//!
//! # Rules
//!
//! * Counts never fall, and neither do targets.
//! * A report may come late: the cut is complete only when the last report of each process says that it is held.

use std::collections::BTreeMap;

/// What the ranks of a communicator do together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Meeting {
    /// Collectives, in which all ranks take part.
    Collectives,
    /// Messages from one rank to another.
    Messages {
        /// The rank that sends.
        from: u32,
        /// The rank that receives.
        to: u32,
    },
}

/// A meeting of a communicator, as one of its ranks takes part in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Part {
    /// The communicator: a number that is the same on all of its ranks, and no other communicator's.
    pub communicator: u64,
    /// The rank that takes part.
    pub rank: u32,
    /// What it takes part in.
    pub meeting: Meeting,
}

/// What a process has issued: how often, for each part that it has.
pub type Position = BTreeMap<Part, u64>;

/// Whether a process issues anything at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is held.
    Held,
    /// It continues towards its goals.
    Continues,
}

#[derive(Debug)]
struct Process {
    position: Position,
    /// `None`: it has not reported yet.
    standing: Option<Standing>,
    /// The goals that it was given last.
    goals: Position,
}

/// What is to be done with a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<P> {
    /// These processes continue, each until its counts are at least what is said; then they are held again.
    Continue(Vec<(P, Position)>),
    /// Nothing, until there is another report.
    Wait,
    /// All are held, and whatever one has issued, all who take part have.
    Complete,
}

/// A cut that is looked for. `P` names a process.
#[derive(Debug)]
pub struct Cut<P> {
    processes: BTreeMap<P, Process>,
}

impl<P: Ord + Copy> Default for Cut<P> {
    fn default() -> Self {
        Self {
            processes: BTreeMap::new(),
        }
    }
}

impl<P: Ord + Copy> Cut<P> {
    /// A process that takes part, of which nothing is known yet.
    pub fn expect(&mut self, process: P) {
        self.processes.entry(process).or_insert_with(|| Process {
            position: Position::new(),
            standing: None,
            goals: Position::new(),
        });
    }

    /// A process that takes part no more: it ended.
    pub fn forget(&mut self, process: P) {
        self.processes.remove(&process);
    }

    /// The processes that take part.
    #[must_use]
    pub fn processes(&self) -> Vec<P> {
        self.processes.keys().copied().collect()
    }

    /// What a process has issued, as it says. A process that is not expected is ignored.
    pub fn report(&mut self, process: P, standing: Standing, position: Position) {
        if let Some(known) = self.processes.get_mut(&process) {
            known.position = position;
            known.standing = Some(standing);
        }
    }

    /// What to do, as far as is known now. To be asked after each report.
    pub fn decide(&mut self) -> Next<P> {
        if self.processes.is_empty() || self.processes.values().any(|p| p.standing.is_none()) {
            return Next::Wait;
        }
        let targets = self.targets();
        let mut continuing = Vec::new();
        let mut complete = true;
        for (&name, process) in &mut self.processes {
            let goals = behind(process, &targets);
            let is_held = process.standing == Some(Standing::Held);
            complete &= is_held && goals.is_empty();
            // One that continues towards these goals already is left alone.
            let is_on_its_way = !is_held
                && goals
                    .iter()
                    .all(|goal| process.goals.get(goal.0) == Some(goal.1));
            if !goals.is_empty() && !is_on_its_way {
                process.goals.clone_from(&goals);
                process.standing = Some(Standing::Continues);
                continuing.push((name, goals));
            }
        }
        match (continuing.is_empty(), complete) {
            (false, _) => Next::Continue(continuing),
            (true, true) => Next::Complete,
            (true, false) => Next::Wait,
        }
    }

    /// The largest count of each meeting.
    fn targets(&self) -> BTreeMap<(u64, Meeting), u64> {
        let mut targets = BTreeMap::new();
        for (part, &count) in self.processes.values().flat_map(|p| &p.position) {
            let target = targets
                .entry((part.communicator, part.meeting))
                .or_insert(0);
            *target = count.max(*target);
        }
        targets
    }
}

/// The parts in which a process is behind, with their targets. A rank that has not sent or received anything yet has no count of
/// its own for messages that others have issued to it: every rank has one for collectives, by which it is known.
fn behind(process: &Process, targets: &BTreeMap<(u64, Meeting), u64>) -> Position {
    let ranks = process
        .position
        .keys()
        .filter(|part| part.meeting == Meeting::Collectives);
    ranks
        .flat_map(|rank| {
            let all = (rank.communicator, Meeting::Collectives)..;
            targets
                .range(all)
                .take_while(|((communicator, _), _)| *communicator == rank.communicator)
                .filter(|((_, meeting), _)| match meeting {
                    Meeting::Collectives => true,
                    Meeting::Messages { from, to } => *from == rank.rank || *to == rank.rank,
                })
                .map(|(&(_, meeting), &target)| (Part { meeting, ..*rank }, target))
        })
        .filter(|(part, target)| process.position.get(part).copied().unwrap_or(0) < *target)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// A call that several ranks make: all of a communicator's, or two. Several calls at once are a group.
    #[derive(Debug, Clone)]
    struct Call {
        parts: Vec<Part>,
        /// Each rank waits on its host for all that it has issued before it continues.
        waits: bool,
    }

    /// A job as its ranks run it: `calls[i]` in this order, each rank those that it takes part in. Its processes may have several
    /// ranks, one thread each.
    struct World {
        calls: Vec<Call>,
        /// The process of each rank.
        process: Vec<usize>,
        /// How many calls each rank has gone through, whether it takes part in them or not.
        at: Vec<usize>,
        /// What each process was told to reach; `None`: it is held.
        goals: Vec<Option<Position>>,
    }

    impl World {
        /// Ranks in a few communicators, some of which overlap, and calls of all kinds.
        fn new(rng: &mut ChaCha8Rng) -> Self {
            let ranks = rng.random_range(2..=16_u32);
            let mut communicators: Vec<Vec<u32>> = vec![(0..ranks).collect()];
            for _ in 0..rng.random_range(0..6) {
                let from = communicators[rng.random_range(0..communicators.len())].clone();
                let members: Vec<u32> = from.into_iter().filter(|_| rng.random_bool(0.6)).collect();
                if members.len() > 1 {
                    communicators.push(members);
                }
            }
            let part = |communicator: usize, rank, meeting| Part {
                communicator: communicator as u64 * 7 + 3,
                rank,
                meeting,
            };
            let mut calls = Vec::new();
            for _ in 0..rng.random_range(1..120) {
                let group = if rng.random_bool(0.2) {
                    rng.random_range(2..5)
                } else {
                    1
                };
                let mut parts = Vec::new();
                let which = rng.random_range(0..communicators.len());
                let members = &communicators[which];
                // What is in a group without anyone in common is not one call.
                let hub = members[rng.random_range(0..members.len())];
                for _ in 0..group {
                    if rng.random_bool(0.5) {
                        parts.extend(
                            members
                                .iter()
                                .map(|rank| part(which, *rank, Meeting::Collectives)),
                        );
                    } else {
                        let other = members[rng.random_range(0..members.len())];
                        let (from, to) = if rng.random_bool(0.5) {
                            (hub, other)
                        } else {
                            (other, hub)
                        };
                        if from != to {
                            let meeting = Meeting::Messages { from, to };
                            parts.extend([from, to].map(|rank| part(which, rank, meeting)));
                        }
                    }
                }
                if !parts.is_empty() {
                    calls.push(Call {
                        parts,
                        waits: rng.random_bool(0.1),
                    });
                }
            }
            let processes = rng.random_range(1..=ranks as usize);
            let process = (0..ranks as usize).map(|rank| rank % processes).collect();
            Self {
                calls,
                process,
                at: vec![0; ranks as usize],
                goals: vec![Some(Position::new()); processes],
            }
        }

        fn takes_part(&self, rank: usize, call: usize) -> bool {
            self.calls[call]
                .parts
                .iter()
                .any(|p| p.rank as usize == rank)
        }

        /// Whether everyone who takes part in a call has issued it, and all that they issued before has ended: it has run.
        fn has_run(&self, call: usize) -> bool {
            (0..self.at.len())
                .filter(|rank| self.takes_part(*rank, call))
                .all(|rank| {
                    self.at[rank] > call
                        && (0..call)
                            .filter(|c| self.takes_part(rank, *c))
                            .all(|c| self.has_run_alone(c))
                })
        }

        fn has_run_alone(&self, call: usize) -> bool {
            (0..self.at.len())
                .filter(|rank| self.takes_part(*rank, call))
                .all(|rank| self.at[rank] > call)
        }

        /// A rank makes its next call, if it can.
        fn advance(&mut self, rank: usize) -> bool {
            let Some(next) = (self.at[rank]..self.calls.len()).find(|c| self.takes_part(rank, *c))
            else {
                return false;
            };
            // What it waits for on the host comes before that.
            let waits = (0..next).rev().find(|c| self.takes_part(rank, *c));
            if waits.is_some_and(|c| self.calls[c].waits && !self.has_run(c)) {
                return false;
            }
            self.at[rank] = next + 1;
            true
        }

        fn position(&self, process: usize) -> Position {
            let mut position = Position::new();
            for rank in (0..self.at.len()).filter(|rank| self.process[*rank] == process) {
                for (index, call) in self.calls.iter().enumerate() {
                    for part in call.parts.iter().filter(|p| p.rank as usize == rank) {
                        // It is a member, whatever it has done.
                        let of_all = Part {
                            meeting: Meeting::Collectives,
                            ..*part
                        };
                        position.entry(of_all).or_insert(0);
                        if index < self.at[rank] {
                            *position.entry(*part).or_insert(0) += 1;
                        }
                    }
                }
            }
            position
        }

        fn is_there(&self, process: usize) -> bool {
            self.goals[process].as_ref().is_none_or(|goals| {
                let position = self.position(process);
                goals
                    .iter()
                    .all(|(part, goal)| position.get(part).copied().unwrap_or(0) >= *goal)
            })
        }

        fn ranks_of(&self, process: usize) -> Vec<usize> {
            (0..self.at.len())
                .filter(|rank| self.process[*rank] == process)
                .collect()
        }

        /// The smallest set of calls that is closed: how far each rank has to go.
        fn closure(&self) -> Vec<usize> {
            let mut at = self.at.clone();
            loop {
                let before = at.clone();
                for call in 0..self.calls.len() {
                    let members: Vec<usize> = (0..at.len())
                        .filter(|r| self.takes_part(*r, call))
                        .collect();
                    if members.iter().any(|r| at[*r] > call) {
                        for rank in members {
                            at[rank] = at[rank].max(call + 1);
                        }
                    }
                }
                if at == before {
                    return at;
                }
            }
        }
    }

    /// Holds all processes of a job wherever they are and looks for a cut, reports arriving in any order.
    fn a_cut_is_found(seed: u64) {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut world = World::new(&mut rng);
        let (ranks, processes) = (world.at.len(), world.goals.len());
        for _ in 0..rng.random_range(0..400) {
            world.advance(rng.random_range(0..ranks));
        }
        let wanted = world.closure();
        let mut cut = Cut::default();
        (0..processes).for_each(|process| cut.expect(process));
        world.goals = vec![None; processes];
        // Reports on their way, oldest first, of each process.
        let mut underway: Vec<Vec<(Standing, Position)>> = (0..processes)
            .map(|p| vec![(Standing::Held, world.position(p))])
            .collect();
        let alone = world.process.iter().collect::<BTreeSet<_>>().len() == ranks;
        let mut complete = false;
        for _ in 0..200_000 {
            let process = rng.random_range(0..processes);
            if rng.random_bool(0.5) {
                if underway[process].is_empty() {
                    continue;
                }
                let (standing, position) = underway[process].remove(0);
                cut.report(process, standing, position);
                match cut.decide() {
                    Next::Continue(some) => {
                        for (process, goals) in some {
                            world.goals[process] = Some(goals);
                            if world.is_there(process) {
                                world.goals[process] = None;
                                underway[process].push((Standing::Held, world.position(process)));
                            }
                        }
                    }
                    Next::Wait => {}
                    Next::Complete => {
                        complete = true;
                        break;
                    }
                }
            } else if world.goals[process].is_some() {
                let mine = world.ranks_of(process);
                world.advance(mine[rng.random_range(0..mine.len())]);
                let standing = if world.is_there(process) {
                    world.goals[process] = None;
                    Standing::Held
                } else {
                    Standing::Continues
                };
                if standing == Standing::Held || rng.random_bool(0.3) {
                    underway[process].push((standing, world.position(process)));
                }
            }
        }
        assert!(complete, "seed {seed}: no cut was found");
        assert!(
            world.goals.iter().all(Option::is_none),
            "seed {seed}: somebody continues"
        );
        for call in 0..world.calls.len() {
            let issued =
                (0..ranks).any(|rank| world.takes_part(rank, call) && world.at[rank] > call);
            assert!(
                !issued || world.has_run(call),
                "seed {seed}: call {call} never ends"
            );
        }
        // With a rank to each process, nobody went further than had to be.
        if alone {
            for (rank, &enough) in wanted.iter().enumerate() {
                let made = (0..world.calls.len()).filter(|c| world.takes_part(rank, *c));
                let of = |at: usize| made.clone().filter(|c| *c < at).count();
                assert_eq!(of(world.at[rank]), of(enough), "seed {seed}: rank {rank}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]
        #[test]
        fn ranks_that_are_held_anywhere_come_to_a_cut(seed: u64) {
            a_cut_is_found(seed);
        }
    }

    mod hundred_thousand {
        use super::*;

        #[test]
        fn programs_of_ranks_come_to_a_cut() {
            let mut seeds = ChaCha8Rng::seed_from_u64(18);
            (0..100_000).for_each(|_| a_cut_is_found(seeds.next_u64()));
        }
    }

    fn part(rank: u32, meeting: Meeting) -> Part {
        Part {
            communicator: 1,
            rank,
            meeting,
        }
    }

    #[test]
    fn one_that_is_behind_continues_and_whoever_it_passes_follows() {
        let mut cut = Cut::default();
        cut.expect('a');
        cut.expect('b');
        let message = Meeting::Messages { from: 0, to: 1 };
        let all = Meeting::Collectives;
        cut.report('a', Standing::Held, [(part(0, all), 4)].into());
        assert_eq!(cut.decide(), Next::Wait, "nothing is known of the other");
        cut.report('b', Standing::Held, [(part(1, all), 5)].into());
        let goals: Position = [(part(0, all), 5)].into();
        assert_eq!(cut.decide(), Next::Continue(vec![('a', goals)]));
        assert_eq!(cut.decide(), Next::Wait, "it is on its way");
        // It sent something first: the other one has to receive it.
        cut.report(
            'a',
            Standing::Held,
            [(part(0, all), 5), (part(0, message), 1)].into(),
        );
        let goals: Position = [(part(1, message), 1)].into();
        assert_eq!(cut.decide(), Next::Continue(vec![('b', goals)]));
        cut.report(
            'b',
            Standing::Continues,
            [(part(1, all), 6), (part(1, message), 0)].into(),
        );
        let goals: Position = [(part(0, all), 6)].into();
        assert_eq!(
            cut.decide(),
            Next::Continue(vec![('a', goals)]),
            "it waits for that on its way"
        );
        cut.report(
            'b',
            Standing::Held,
            [(part(1, all), 6), (part(1, message), 1)].into(),
        );
        assert_eq!(cut.decide(), Next::Wait);
        cut.report(
            'a',
            Standing::Held,
            [(part(0, all), 6), (part(0, message), 1)].into(),
        );
        assert_eq!(cut.decide(), Next::Complete);
    }

    #[test]
    fn one_that_ended_is_waited_for_no_more() {
        let mut cut = Cut::default();
        cut.expect(1);
        cut.expect(2);
        cut.report(
            1,
            Standing::Held,
            [(part(0, Meeting::Collectives), 4)].into(),
        );
        assert_eq!(cut.decide(), Next::Wait);
        cut.forget(2);
        assert_eq!(cut.decide(), Next::Complete);
        assert_eq!(cut.processes(), [1]);
    }
}
