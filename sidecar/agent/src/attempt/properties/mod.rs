//! The invariants of an attempt, whatever happens and in whichever order: a job of simulated processes, a sidecar and a worker
//! that do what a random script says, and the machine between them. No process is started and no time passes.
//!
//! | property | checked |
//! |---|---|
//! | no attempt gets stuck: a deadline, or the end of a job that is being killed, always leads on | [`World::settle`] |
//! | the gate of every process that was asked to close it is opened again, or the job ends | [`World::check_end`] |
//! | every process that released its memory gets it back, or the job ends | [`World::check_end`] |
//! | no memory is sent from the moment that the dump starts until it is over | [`World::note`] |
//! | nothing is dumped but a job of which every process is detached | [`World::note`] |
//! | multicast objects are made anew when all that had them have attached, are bound when all have joined, and nobody goes on without | [`World::note`] |
//! | ranks are to fall quiet only when none is behind another | [`World::note`] |
//! | no effect is issued twice: each step happens once in an attempt, and what concerns one process once for each reason | [`World::note`] |
//! | at most one attempt at a time, with one answer to the sidecar for each thing it asked | [`World::note`] |
//! | an attempt that only the sidecar or the time ended leaves the job running | [`an_abandoned_attempt_ends_with_the_job_running`] |
//! | a farewell ends the job once, and gives nothing back | [`a_farewell_kills_the_job_once`] |

mod world;

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use phos_protocol::agent::QuiesceTime;
use phos_protocol::types::ProcessId;
use proptest::prelude::*;

use self::world::{Does, Event, Job, PROCESSES, TIMEOUT_MS, Told, World};
use super::{Attempts, Effect, Input, Timeouts};

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        12 => Just(Does::Obeys),
        1 => Just(Does::Refuses),
        1 => Just(Does::Disconnects),
        6 => Just(Does::Connects),
        2 => Just(Does::SlipsIn),
        1 => Just(Does::Dies),
    ]
}

fn anything() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Begin),
        6 => Just(Event::Dump(true)),
        1 => any::<bool>().prop_map(Event::Dump),
        3 => Just(Event::Attach(true)),
        1 => Just(Event::Attach(false)),
        1 => Just(Event::Abandon),
        1 => any::<bool>().prop_map(Event::Sidecar),
        1 => Just(Event::Sidecar(true)),
        40 => (1..=PROCESSES, does()).prop_map(|(pid, does)| Event::Process(pid, does)),
        2 => (1..=PROCESSES, 0..32_u8).prop_map(|(pid, what)| Event::Babbles(pid, what)),
        6 => Just(Event::Dumped),
        2 => any::<bool>().prop_map(Event::DumpFails),
        1 => (0..8_u8).prop_map(Event::Agent),
        1 => (0..200_000_u64).prop_map(Event::Passes),
        1 => Just(Event::Deadline),
        1 => prop::bool::weighted(0.1).prop_map(|ends| match ends {
            true => Event::JobEnds,
            false => Event::Deadline,
        }),
    ]
}

/// Only what leaves the job unharmed: it obeys, and the sidecar does what it likes.
fn harmless() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => Just(Event::Begin),
        4 => Just(Event::Dump(true)),
        2 => Just(Event::Attach(true)),
        1 => Just(Event::Abandon),
        1 => any::<bool>().prop_map(Event::Sidecar),
        20 => (1..=PROCESSES).prop_map(|pid| Event::Process(pid, Does::Obeys)),
        8 => (1..=PROCESSES).prop_map(|pid| Event::Process(pid, Does::Connects)),
        3 => Just(Event::Dumped),
        1 => Just(Event::DumpFails(false)),
    ]
}

/// What an attempt of this many processes answers, if all goes well.
fn a_whole_attempt(processes: ProcessId) -> Vec<Event> {
    let all = |does| (1..=processes).map(move |pid| Event::Process(pid, does));
    let mut script = vec![Event::Begin];
    // Ranks say where they are, one continues, and all fall quiet.
    for _ in 0..3 {
        script.extend(all(Does::Obeys));
    }
    script.push(Event::Dump(true));
    script.extend(all(Does::Obeys));
    script.extend([Event::Dumped, Event::Attach(true)]);
    // Memory, and three rounds for their multicast object.
    for does in [
        Does::Connects,
        Does::Obeys,
        Does::Obeys,
        Does::Obeys,
        Does::Obeys,
        Does::Obeys,
    ] {
        script.extend(all(does));
    }
    script
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn every_attempt_ends_with_the_job_running_or_ended(
        processes in 0..=PROCESSES,
        script in prop::collection::vec(anything(), 0..120),
    ) {
        let mut world = World::new(processes);
        for event in script {
            world.event(event);
            if world.gave_up {
                return Ok(());
            }
        }
        world.settle();
        world.check_end();
    }

    /// As above, from within an attempt: random scripts seldom get far.
    #[test]
    fn an_attempt_that_is_disturbed_at_any_step_ends_so_too(
        processes in 1..=PROCESSES,
        cut in 0..40_usize,
        script in prop::collection::vec(anything(), 1..30),
        goes_on in any::<bool>(),
    ) {
        let mut world = World::new(processes);
        let whole = a_whole_attempt(processes);
        let (before, after) = whole.split_at(cut.min(whole.len()));
        let after = if goes_on { after } else { &[] };
        for &event in before.iter().chain(&script).chain(after) {
            world.event(event);
            if world.gave_up {
                return Ok(());
            }
        }
        world.settle();
        world.check_end();
    }

    #[test]
    fn an_abandoned_attempt_ends_with_the_job_running(
        processes in 0..=PROCESSES,
        cut in 0..40_usize,
        script in prop::collection::vec(harmless(), 0..60),
    ) {
        let mut world = World::new(processes);
        let whole = a_whole_attempt(processes);
        for &event in whole.iter().take(cut).chain(&script) {
            world.event(event);
            world.seen_running();
        }
        world.event(Event::Abandon);
        world.event(Event::Dumped);
        world.obey();
        world.seen_running();
        prop_assert!(!world.attempts.is_under_way(), "{:?}", world.attempts);
        world.check_end();
    }

    #[test]
    fn a_farewell_kills_the_job_once(
        processes in 0..=PROCESSES,
        script in prop::collection::vec(anything(), 0..60),
    ) {
        let mut world = World::new(processes);
        world.is_farewell = true;
        world.seq = 1;
        let pids = world.connected();
        let effects = world
            .attempts
            .begin_farewell(world.now, 1, Duration::from_secs(10), &pids);
        world.carry_out(effects);
        let mut script = script.into_iter();
        while world.attempts.is_under_way() {
            let Some(event) = script.next() else {
                world.meet_deadline();
                continue;
            };
            if event != Event::Begin {
                world.event(event);
            }
        }
        prop_assert!(world.job != Job::Runs);
        prop_assert_eq!(world.attempts.deadline(), None);
    }
}

#[test]
fn all_goes_well() {
    for processes in 0..=PROCESSES {
        let mut world = World::new(processes);
        for event in a_whole_attempt(processes) {
            world.event(event);
            world.seen_running();
        }
        assert!(!world.attempts.is_under_way(), "{:?}", world.attempts);
        world.check_end();
    }
}

/// A rank loses its connection with the request to detach in it, and is back: it runs, and the others cannot make their object anew with it.
#[test]
fn a_rank_that_missed_the_detach_loses_the_job() {
    let mut world = World::new(4);
    let whole = a_whole_attempt(4);
    let (before, after) = whole.split_at(13);
    let does = |does| Event::Process(4, does);
    let disturbed = [
        Event::Dump(true),
        does(Does::Disconnects),
        does(Does::SlipsIn),
    ];
    for &event in before.iter().chain(&disturbed).chain(after) {
        world.event(event);
    }
    world.settle();
    assert!(world.job != Job::Runs);
}

/// One that is only being made: nothing is taken apart, and the job runs on.
#[test]
fn a_multicast_object_that_is_not_whole_ends_the_attempt_before_it_is_taken_apart() {
    for (added, is_whole) in [(1, false), (2, true)] {
        let now = Instant::now();
        let mut attempts = Attempts::new(Timeouts::default());
        attempts.step(
            now,
            Input::Begin {
                seq: 1,
                time: QuiesceTime::at_once(TIMEOUT_MS),
                processes: vec![1],
                communicating: BTreeSet::new(),
            },
        );
        let mut held = world::multicast(2);
        held.added = added;
        let said = Input::Multicasts {
            pid: 1,
            seq: 1,
            attached: false,
            held: vec![held],
        };
        attempts.step(now, said);
        let outcome = Ok(());
        attempts.step(
            now,
            Input::Quiesced {
                pid: 1,
                seq: 1,
                outcome,
            },
        );
        let outcome = Ok(());
        let effects = attempts.step(now, Input::Collected { seq: 1, outcome });
        let runs_on = effects.contains(&Effect::Resume { pid: 1, seq: 1 });
        assert_eq!(
            (runs_on, attempts.is_under_way()),
            (!is_whole, is_whole),
            "{effects:?}"
        );
    }
}

#[test]
fn who_comes_while_another_takes_turns_ends_the_attempt() {
    let now = Instant::now();
    for (hold_ms, ends) in [(250, true), (5000, false)] {
        let mut attempts = Attempts::new(Timeouts::default());
        let time = QuiesceTime {
            timeout_ms: 5000,
            hold_ms,
        };
        let processes = vec![1];
        attempts.step(
            now,
            Input::Begin {
                seq: 1,
                time,
                processes,
                communicating: BTreeSet::new(),
            },
        );
        let effects = attempts.step(now, Input::Newcomer { pid: 2 });
        let taken_back = effects.contains(&Effect::Resume { pid: 1, seq: 1 });
        let asked = effects
            .iter()
            .any(|e| matches!(e, Effect::Quiesce { pid: 2, .. }));
        assert_eq!((taken_back, asked), (ends, !ends), "{effects:?}");
    }
}

#[test]
fn who_was_taken_back_before_it_was_asked_is_not_asked_after_all() {
    // The first connection turns out to be broken when its process is asked: the second is asked before it is told to go on.
    let mut world = World::new(2);
    world.processes.get_mut(&1).unwrap().is_connected = false;
    world.seq = 1;
    world.owed.0 = 1;
    world.input(Input::Begin {
        seq: 1,
        time: QuiesceTime::at_once(TIMEOUT_MS),
        processes: vec![1, 2],
        communicating: BTreeSet::new(),
    });
    assert_eq!(
        world.processes[&2].inbox,
        [Told::Quiesce(1), Told::Resume],
        "in this order"
    );
    assert!(!world.attempts.is_under_way());
    world.check_end();
}
