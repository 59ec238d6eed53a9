//! A checkpoint as the shim sees it, on the simulated driver (needs root, for the devices' tmpfs).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(
    clippy::too_many_lines,
    reason = "tests, which read from top to bottom"
)]

mod support;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use phos_protocol::shim::{
    Calls, Count, Place, Refusal, ShimState, ToAgent, ToShim, Waits, WatchTime,
};
use phos_protocol::types::{Allocation, AllocationKind, MemberId};
use support::{Agent, Link, MIB, Puppet, World, library, pattern, until, user_of_nccl};

#[test]
fn memory_outlives_detach_and_attach() {
    let world = World::new(&[256]);
    let mut agent = world.agent();
    let mut puppet = world.puppet();
    puppet.all(&["init", "device 0"]);
    let mut link = agent.accept();
    let (state, devices) = Link::greeting();
    assert_eq!(state, ShimState::Fresh);
    assert_eq!(link.pid, puppet.pid());
    assert_eq!(devices.len(), 1);
    assert!(devices[0].total_bytes > 0 && !devices[0].name.is_empty());
    link = link.welcome(&[]);
    let bare = puppet.device_memory();

    // By each way to the driver.
    puppet.all(&[
        "alloc a 5000000",
        "allocby D b 3000000",
        "allocby P c 300000",
        "allocby T d 700",
    ]);
    puppet.all(&[
        "fill a 5000000 1",
        "fill b 3000000 2",
        "fillby T c 300000 3",
        "fillby D d 700 4",
    ]);

    let mut vault = BTreeMap::new();
    for seq in 1..=3 {
        let (facts, table, imported) = link.quiesce(seq, 5000).unwrap();
        assert!(facts.gate_ns < 1_000_000_000);
        assert!(imported.is_empty());
        assert_eq!(table.len(), 3, "a slab and two of their own: {table:?}");
        assert_eq!(
            table
                .iter()
                .filter(|e| e.allocation.kind == AllocationKind::Slab)
                .count(),
            1
        );
        assert!(
            table.iter().all(|e| e.with_fd == (seq == 1)),
            "exported once"
        );
        // What the vault holds is the memory itself.
        let a = table.iter().find(|e| e.requested == 5_000_000).unwrap();
        assert_eq!(a.allocation.bytes, 6 * MIB);
        assert_eq!(a.allocation.key.owner, MemberId::here(puppet.pid()));
        if seq == 1 && support::real_gpu().is_none() {
            let data = read(&link.vault[&a.allocation.key], 5_000_000);
            assert!(
                data.iter()
                    .enumerate()
                    .all(|(i, &b)| b == pattern(1, i as u64))
            );
        }
        if seq > 1 {
            link.vault = vault;
        }
        assert!(support::real_gpu().is_some() || puppet.device_memory().len() > bare.len());
        vault = link.detach(&agent, seq);
        assert_eq!(puppet.sockets(), 0);
        assert_eq!(
            puppet.device_memory(),
            bare,
            "only what the simulated context takes for itself"
        );

        // The driver's own memory is of huge pages while the process is detached, and nobody's at other times.
        assert_eq!(puppet.ok("populate"), "huge");
        // Work waits, and does not fail.
        puppet.send("check a 5000000 1");
        puppet.silent(Duration::from_millis(100));
        agent = agent.again();
        link = agent.accept();
        assert_eq!(Link::greeting().0, ShimState::Detached(seq));
        let held: Vec<u64> = vault.keys().map(|k| k.id).collect();
        link.send(&ToShim::Welcome { held });
        assert_eq!(link.attach(seq, &vault), Ok(()));
        puppet.silent(Duration::from_millis(50));
        link.send(&ToShim::Resume { seq });
        assert_eq!(puppet.answer(), "ok");
        assert_eq!(puppet.ok("populate"), "small");
        puppet.check("b", 3_000_000, 2);
        puppet.check("c", 300_000, 3);
        puppet.check("d", 700, 4);
    }
    // Freed memory is named, and the next table does not have it.
    puppet.ok("free a");
    let freed = loop {
        if let ToAgent::Freed { ids } = link.receive().0 {
            break ids;
        }
    };
    assert_eq!(freed.len(), 1);
    puppet.ok("alloc e 2500000");
    let (_, table, _) = link.quiesce(9, 5000).unwrap();
    assert_eq!(table.len(), 3);
    assert_eq!(table.iter().filter(|e| e.with_fd).count(), 1);
    link.send(&ToShim::Resume { seq: 9 });
    puppet.check("b", 3_000_000, 2);
    puppet.ok("quit");
}

fn read(fd: &std::os::fd::OwnedFd, bytes: usize) -> Vec<u8> {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::from(fd.try_clone().unwrap());
    let mut data = vec![0; bytes];
    file.read_exact_at(&mut data, 0).unwrap();
    data
}

#[test]
fn an_abandoned_checkpoint_costs_nothing() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let mut puppet = world.puppet();
    puppet.all(&["init", "device 0"]);
    let mut link = agent.accept().welcome(&[]);
    puppet.all(&["alloc a 4000000", "fill a 4000000 7"]);
    link.quiesce(1, 5000).unwrap();
    puppet.send("check a 4000000 7");
    puppet.silent(Duration::from_millis(100));
    link.send(&ToShim::Resume { seq: 1 });
    assert_eq!(puppet.answer(), "ok");
    // A detach that was not prepared is refused.
    link.send(&ToShim::Detach { seq: 2 });
    assert!(matches!(
        link.receive().0,
        ToAgent::Detached {
            outcome: Err(Refusal::Other(_)),
            ..
        }
    ));
    puppet.check("a", 4_000_000, 7);
}

/// A started puppet on device 0 and its connection.
fn started(world: &World, agent: &Agent) -> (Puppet, Link) {
    let mut puppet = world.puppet();
    puppet.all(&["init", "device 0"]);
    let link = agent.accept().welcome(&[]);
    (puppet, link)
}

/// An agent and a process of its job with one more setting of the simulated GPU, which has done `words`.
fn connected(world: &World, setting: (&str, &str), words: &[&str]) -> (Agent, Puppet, Link) {
    let agent = world.agent();
    let socket = world.socket();
    let socket = ("PHOS_SHIM_SOCKET", socket.to_str().unwrap());
    let mut puppet = world.puppet_with(&[socket, setting]);
    puppet.all(words);
    let link = agent.accept().welcome(&[]);
    (agent, puppet, link)
}

/// How long a job that has waited is held for an answer: long enough for a test that is to answer in time, also on a busy machine, ...
const IN_TIME_MS: u32 = 20_000;
/// ... and for one that has it go on by itself.
const TOO_SHORT_MS: u32 = 100;

fn watch_for(for_ms: u32, answer_ms: u32) -> WatchTime {
    WatchTime {
        for_ms,
        glance_ms: 100,
        answer_ms,
    }
}

/// Waits until the job has waited for its work, and is held for who asked.
fn waits(link: &mut Link, seq: u64, answer_ms: u32) {
    link.send(&ToShim::Watch {
        seq,
        time: watch_for(60_000, answer_ms),
    });
    assert_eq!(link.receive().0, ToAgent::Moment { seq });
}

const fn millis(ms: u32) -> Duration {
    Duration::from_millis(ms as u64)
}

/// Detach, attach, resume.
fn cycle(agent: Agent, link: Link, seq: u64) -> (Agent, Link) {
    cycle_around(agent, link, seq, || {})
}

/// As [`cycle`]; `detached` is done while the process has no memory.
fn cycle_around(
    mut agent: Agent,
    mut link: Link,
    seq: u64,
    detached: impl FnOnce(),
) -> (Agent, Link) {
    let vault = {
        let known = std::mem::take(&mut link.vault);
        link.quiesce(seq, 5000).unwrap();
        link.vault.extend(known);
        link.detach(&agent, seq)
    };
    detached();
    agent = agent.again();
    let mut link = agent.accept();
    assert_eq!(Link::greeting().0, ShimState::Detached(seq));
    let held = vault.keys().map(|k| k.id).collect::<Vec<_>>();
    link = link.welcome(&held);
    assert_eq!(link.attach(seq, &vault), Ok(()));
    link.send(&ToShim::Resume { seq });
    link.vault = vault;
    (agent, link)
}

#[test]
fn the_agents_death_at_any_step_leaves_the_job_running_or_detached() {
    let world = World::new(&[128]);
    let mut agent = world.agent();
    let mut puppet = world.puppet();
    puppet.all(&["init", "device 0", "alloc a 4000000", "fill a 4000000 7"]);
    // Before Welcome.
    drop(agent.accept());
    // Connected and idle.
    let link = agent.accept().welcome(&[]);
    drop(link);
    // Quiesced: the gate opens by itself.
    let mut link = agent.accept().welcome(&[]);
    assert_eq!(Link::greeting().0, ShimState::Running);
    link.quiesce(1, 5000).unwrap();
    puppet.send("check a 4000000 7");
    puppet.silent(Duration::from_millis(100));
    drop(link);
    assert_eq!(puppet.answer(), "ok");
    // While quiescing: the work in flight does not end.
    let link = agent.accept().welcome(&[]);
    puppet.all(&["stream s", "nap s 1500"]);
    link.send(&ToShim::Quiesce {
        seq: 2,
        timeout_ms: 60_000,
    });
    puppet.send("check a 4000000 7");
    std::thread::sleep(Duration::from_millis(100));
    drop(link);
    assert_eq!(puppet.answer(), "ok");
    puppet.ok("sync");
    // Detached: it waits, however long, and a new agent with the same fds brings it back. A new agent that was told
    // that nothing is held gets everything again.
    let mut link = agent.accept().welcome(&[]);
    let (_, table, _) = loop {
        match link.quiesce(3, 5000) {
            // The thread that waited for the nap has not seen its end yet.
            Err(Refusal::Timeout) => std::thread::yield_now(),
            quiet => break quiet.unwrap(),
        }
    };
    assert!(table.iter().all(|e| e.with_fd));
    let vault = link.detach(&agent, 3);
    let held: Vec<u64> = vault.keys().map(|k| k.id).collect();
    puppet.send("check a 4000000 7");
    agent = agent.again();
    drop(agent.accept());
    let link = agent.accept();
    assert_eq!(Link::greeting().0, ShimState::Detached(3));
    link.send(&ToShim::Welcome { held: held.clone() });
    link.send_memory(3, &vault);
    drop(link);
    // Attached and not resumed.
    let mut link = agent.accept();
    assert_eq!(Link::greeting().0, ShimState::Detached(3));
    link.send(&ToShim::Welcome { held: held.clone() });
    link.attach(3, &vault).unwrap();
    puppet.silent(Duration::from_millis(100));
    drop(link);
    assert_eq!(puppet.answer(), "ok");
    // Memory that came back by an import cannot be exported again: an agent that lost it is told so.
    let mut link = agent.accept().welcome(&[]);
    assert!(
        matches!(link.quiesce(4, 5000), Err(Refusal::Unsupported(why)) if why.contains("restart the job"))
    );
    puppet.check("a", 4_000_000, 7);
}

#[test]
fn a_detach_with_missing_memory_is_answered_and_can_be_mended() {
    let world = World::new(&[128]);
    let mut agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&[
        "alloc a 4000000",
        "fill a 4000000 7",
        "alloc b 4000000",
        "fill b 4000000 8",
    ]);
    link.quiesce(1, 5000).unwrap();
    let vault = link.detach(&agent, 1);
    agent = agent.again();
    let mut link = agent.accept();
    link.send(&ToShim::Welcome { held: vec![] });
    let half: BTreeMap<_, _> = vault
        .iter()
        .take(1)
        .map(|(k, f)| (*k, f.try_clone().unwrap()))
        .collect();
    assert!(matches!(link.attach(1, &half), Err(Refusal::Other(_))));
    // The gate stays closed whatever is said.
    link.send(&ToShim::Resume { seq: 1 });
    puppet.send("check a 4000000 7");
    puppet.silent(Duration::from_millis(100));
    assert_eq!(link.attach(1, &vault), Ok(()));
    link.send(&ToShim::Resume { seq: 1 });
    assert_eq!(puppet.answer(), "ok");
    puppet.check("b", 4_000_000, 8);
}

#[test]
fn running_out_of_memory_is_retried_once_phos_has_given_back_its_own() {
    if support::real_gpu().is_some() {
        return; // needs devices of its own making
    }
    let world = World::new(&[80]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 50000000", "fill a 50000000 1"]);
    link.quiesce(1, 5000).unwrap();
    link.send(&ToShim::Resume { seq: 1 });
    puppet.ok("free a");
    puppet.send("alloc b 50000000");
    let mut freed = false;
    loop {
        match link.receive().0 {
            ToAgent::Freed { .. } => freed = true,
            ToAgent::OutOfMemory { device, bytes } => {
                assert_eq!((device, bytes), (0, 50_000_000));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(freed, "the agent must know what to let go");
    puppet.silent(Duration::from_millis(100));
    link.vault.clear();
    link.send(&ToShim::MemoryReleased);
    assert!(puppet.answer().starts_with("ok"));
    puppet.all(&["fill b 50000000 2"]);
    // When nothing can be given back, the driver's own answer.
    puppet.send("alloc c 50000000");
    assert!(matches!(link.receive().0, ToAgent::OutOfMemory { .. }));
    link.send(&ToShim::MemoryReleased);
    assert_eq!(puppet.answer(), "err 2");
    // An agent that does not answer costs three seconds.
    let start = Instant::now();
    assert_eq!(puppet.ask("alloc c 50000000"), "err 2");
    assert!((2..6).contains(&start.elapsed().as_secs()));
    drop(link);
    drop(agent);
    std::thread::sleep(Duration::from_millis(50));
    let start = Instant::now();
    assert_eq!(puppet.ask("alloc c 50000000"), "err 2");
    assert!(
        start.elapsed() < Duration::from_secs(1),
        "no agent, no wait"
    );
}

/// Its memory need not be saved; the application sees nothing of it.
#[test]
fn stacks_of_the_gpu_are_given_up_while_detached() {
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[128]);
    let (agent, mut puppet, mut link) = connected(
        &world,
        ("PHOS_SIM_STACK_MIB", "32"),
        &["init", "device 0", "setlimit 0 2048"],
    );
    let used = |puppet: &mut Puppet| -> u64 {
        let info = puppet.ok("info");
        let numbers: Vec<u64> = info.split(' ').map(|n| n.parse().unwrap()).collect();
        numbers[1] - numbers[0]
    };
    let before = used(&mut puppet);
    assert!(before >= 64 * MIB, "{before}");
    let (_, _, _) = link.quiesce(1, 5000).unwrap();
    let vault = link.detach(&agent, 1);
    let now = world.device_used();
    assert!(now <= before - 60 * MIB, "{now} of {before}");
    // Asked now, it is answered when all is as it was.
    puppet.send("limit 0");
    puppet.silent(Duration::from_millis(100));
    let agent = agent.again();
    let mut link = agent.accept();
    link.send(&ToShim::Welcome { held: Vec::new() });
    assert_eq!(link.attach(1, &vault), Ok(()));
    puppet.silent(Duration::from_millis(50));
    link.send(&ToShim::Resume { seq: 1 });
    assert_eq!(puppet.answer(), "ok 2048");
    assert_eq!(used(&mut puppet), before);
}

/// Somebody else took the memory behind the stacks meanwhile: the application's limit comes back when there is room, and
/// one that it sets itself before that is the one that counts.
#[test]
fn a_stack_limit_that_cannot_be_put_back_is_tried_again_or_gives_way_to_the_applications() {
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[128]);
    let hog = world.node.dir().join("dev0/somebody-else");
    let mut puppet = world.puppet_with(&[
        ("PHOS_SHIM_SOCKET", world.socket().to_str().unwrap()),
        ("PHOS_SIM_STACK_MIB", "32"),
    ]);
    let mut agent = world.agent();
    puppet.all(&["init", "device 0", "setlimit 0 2048"]);
    let mut held = Some(agent.accept().welcome(&[]));
    let mut seq = 0;
    let mut cycle = |agent: Agent, link: &mut Option<Link>, crowded: bool| -> Agent {
        seq += 1;
        let mut old = link.take().unwrap();
        old.quiesce(seq, 5000).unwrap();
        let vault = old.detach(&agent, seq);
        if crowded {
            let room = 128 * MIB - world.device_used();
            let file = std::fs::File::create(&hog).unwrap();
            rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, room - MIB)
                .unwrap();
        }
        let agent = agent.again();
        let mut new = agent.accept();
        new.send(&ToShim::Welcome { held: Vec::new() });
        assert_eq!(new.attach(seq, &vault), Ok(()));
        new.send(&ToShim::Resume { seq });
        let _ = std::fs::remove_file(&hog);
        *link = Some(new);
        agent
    };
    agent = cycle(agent, &mut held, true);
    let lowered: u64 = puppet.ok("limit 0").parse().unwrap();
    assert!(lowered < 100, "{lowered}");
    agent = cycle(agent, &mut held, false);
    assert_eq!(puppet.ok("limit 0"), "2048", "there is room again");
    agent = cycle(agent, &mut held, true);
    puppet.ok("setlimit 0 512");
    agent = cycle(agent, &mut held, false);
    assert_eq!(puppet.ok("limit 0"), "512", "the application's own");
    drop((agent, held));
}

/// A job with a second of work queued at any time, and an agent that holds it for a tenth at most.
#[test]
fn a_deep_queue_is_taken_when_the_job_waits_for_it() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["stream s", "laps s 10 100"]);
    assert_eq!(link.quiesce(1, 100).unwrap_err(), Refusal::Timeout);
    for seq in [2, 3] {
        waits(&mut link, seq, IN_TIME_MS);
        link.quiesce(seq, 1000).unwrap();
        // The lap that has just ended may not be counted yet. Two more take two seconds.
        let mut laps = || puppet.ok("spins").parse::<u64>().unwrap();
        let before = laps();
        std::thread::sleep(Duration::from_millis(2500));
        assert!(laps() <= before + 1, "it is held");
        link.send(&ToShim::Resume { seq });
    }
    // Nobody asks for more: it goes on by itself, and what was told says nothing of later.
    for seq in [4, 6] {
        waits(&mut link, seq, TOO_SHORT_MS);
        let laps = puppet.ok("spins");
        until("the job goes on", || puppet.ok("spins") != laps);
        // Between laps it might fall quiet by chance: in the midst of one it does not.
        std::thread::sleep(Duration::from_millis(300));
        assert!(matches!(
            link.quiesce(seq + 1, 100),
            Err(Refusal::Timeout | Refusal::Slow { .. })
        ));
    }
    // A watch whose time is over tells nothing, nor does one that was taken back.
    link.send(&ToShim::Watch {
        seq: 8,
        time: watch_for(1, TOO_SHORT_MS),
    });
    std::thread::sleep(Duration::from_millis(50));
    let laps = puppet.ok("spins");
    until("the job waits", || puppet.ok("spins") != laps);
    link.send(&ToShim::Watch {
        seq: 9,
        time: watch_for(60_000, TOO_SHORT_MS),
    });
    link.send(&ToShim::Resume { seq: 9 });
    let laps = puppet.ok("spins");
    until("the job waits", || puppet.ok("spins") != laps);
    waits(&mut link, 10, IN_TIME_MS);
    // The agent's death lets go of who stays.
    drop(link);
    let laps = puppet.ok("spins");
    until("the job goes on", || puppet.ok("spins") != laps);
    puppet.ok("stopjob");
    drop(agent);
}

/// A step with two waits: the one that is meant is the one at which the job is held, and who asks too late is not told that it is there.
#[test]
fn one_wait_of_several_is_the_place_of_a_checkpoint() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["stream s", "steps s 40 90"]);
    let calls = |least, most| Calls { least, most };
    let any = calls(32, u32::MAX);
    let watch = |link: &mut Link, seq, answer_ms, after, except: &[Calls]| {
        let waits = Waits {
            after,
            except: except.to_vec(),
        };
        let time = watch_for(60_000, answer_ms);
        link.send(&ToShim::WatchFor { seq, time, waits });
        assert_eq!(link.receive().0, ToAgent::Moment { seq });
    };
    let spins = |puppet: &mut Puppet| puppet.ok("spins").parse::<u64>().unwrap();
    let mut seq = 0;
    for _ in 0..10 {
        for (after, except, at) in [
            (calls(38, 42), vec![], 40),
            (calls(85, 95), vec![], 90),
            (any, vec![calls(39, 41)], 90),
            (any, vec![calls(0, 1), calls(89, 91)], 40),
        ] {
            seq += 1;
            watch(&mut link, seq, IN_TIME_MS, after, &except);
            link.quiesce(seq, 1000).unwrap();
            assert_eq!(link.place, Some(Place::Wait { calls: at }));
            // The thread has ended its wait, and on a busy machine has yet to say so.
            until("the wait is the one that is meant", || {
                spins(&mut puppet) % 2 == u64::from(at == 40)
            });
            link.send(&ToShim::Resume { seq });
        }
    }
    // By then it has gone on.
    watch(&mut link, 101, TOO_SHORT_MS, any, &[]);
    let before = spins(&mut puppet);
    until("the job goes on", || spins(&mut puppet) > before + 2);
    link.quiesce(101, 1000).unwrap();
    assert_eq!(link.place, None);
    link.send(&ToShim::Resume { seq: 101 });
    // Any wait: which one is not known.
    waits(&mut link, 102, IN_TIME_MS);
    link.quiesce(102, 1000).unwrap();
    assert_eq!(link.place, None);
    link.send(&ToShim::Resume { seq: 102 });
    // None that is meant comes, and the job runs.
    let waits = Waits {
        after: calls(1000, 2000),
        except: Vec::new(),
    };
    let time = watch_for(300, IN_TIME_MS);
    link.send(&ToShim::WatchFor {
        seq: 103,
        time,
        waits,
    });
    let before = spins(&mut puppet);
    until("the job runs", || spins(&mut puppet) > before + 20);
    link.quiesce(103, 1000).unwrap();
    assert_eq!(link.place, None);
    link.send(&ToShim::Resume { seq: 103 });
    puppet.ok("stopjob");
    drop(agent);
}

/// A job that has half a second queued whenever it waits: in turns it falls quiet, and no thread stands for longer than it may.
#[test]
fn a_job_that_is_never_idle_falls_quiet_in_turns() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["stream s", "pipeline s 10 50"]);
    assert_eq!(link.quiesce(1, 100).unwrap_err(), Refusal::Timeout);
    let mut seq = 1;
    let mut in_turns = |link: &mut Link, timeout_ms, hold_ms| {
        let mut outcome = Err(Refusal::Timeout);
        // The thread that waited for the try before has not seen its end yet.
        until("an answer to this try", || {
            seq += 1;
            let begun = Instant::now();
            link.send(&ToShim::QuiesceInTurns {
                seq,
                timeout_ms,
                hold_ms,
            });
            outcome = link.quiesced(seq).map(drop);
            outcome != Err(Refusal::Timeout) || begun.elapsed() >= millis(timeout_ms)
        });
        (seq, outcome)
    };
    let (quiet, outcome) = in_turns(&mut link, 20_000, 100);
    outcome.unwrap();
    let batches = puppet.ok("spins");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(batches, puppet.ok("spins"), "it is held");
    link.send(&ToShim::Resume { seq: quiet });
    until("the job goes on", || puppet.ok("spins") != batches);
    puppet.ok("stopjob");

    // Work that needs calls of the host's to end: behind a gate that stays closed it never does, in turns it does.
    puppet.all(&["stream t", "late t 3 300"]);
    let (_, outcome) = in_turns(&mut link, 1000, 1000);
    assert_eq!(outcome, Err(Refusal::Timeout));
    let (quiet, outcome) = in_turns(&mut link, 20_000, 100);
    outcome.unwrap();
    link.send(&ToShim::Resume { seq: quiet });
    puppet.ok("stopjob");
}

/// The next position, and whether the process is held there: the collectives that it has issued.
fn position(link: &mut Link, of: u64) -> (bool, Vec<Count>) {
    match link.receive() {
        (ToAgent::Position { seq, held, counts }, _) if seq == of => (held, counts),
        other => panic!("unexpected {other:?}"),
    }
}

/// The first position at which the process is held.
fn held_at(link: &mut Link, of: u64) -> Count {
    loop {
        let (held, counts) = position(link, of);
        if held {
            assert_eq!(counts.len(), 1, "{counts:?}");
            return counts[0];
        }
    }
}

/// A rank that reduces without a pause continues to exactly where others wait for it, call by call or group by group.
#[test]
fn a_rank_continues_as_far_as_others_wait_for_it() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 4096", "stream s"]);
    let nccl = library("libphos_nccl_sim.so");
    let name = format!("shim-test-{}", puppet.pid());
    puppet.ok(&format!("join {} {name} a s", nccl.display()));
    let at_cut =
        |link: &Link, seq, timeout_ms| link.send(&ToShim::QuiesceAtCut { seq, timeout_ms });
    let mut seq = 0;
    // The calls of those that reduced before.
    let mut earlier = 0;
    for group in [1, 4] {
        puppet.ok(&format!("reducing {group}"));
        seq += 1;
        at_cut(&link, seq, 20_000);
        let first = held_at(&mut link, seq);
        // One call further is a whole group further.
        let goal = Count {
            times: first.times + 9,
            ..first
        };
        link.send(&ToShim::Continue {
            seq,
            goals: vec![goal],
        });
        let there = held_at(&mut link, seq);
        assert_eq!(there.times, first.times + 9_u64.next_multiple_of(group));
        let made = (there.times - earlier).to_string();
        until("the last call has returned", || puppet.ok("spins") == made);
        // Said again, and again of an attempt that is over: nothing comes of it.
        for of in [seq, seq - 1] {
            link.send(&ToShim::Continue {
                seq: of,
                goals: vec![goal],
            });
        }
        assert_eq!(held_at(&mut link, seq), there);
        link.send(&ToShim::Settle { seq });
        link.quiesced(seq).unwrap();
        assert_eq!(puppet.ok("spins"), made, "it is held");
        link.send(&ToShim::Resume { seq });
        until("the job goes on", || puppet.ok("spins") != made);
        puppet.ok("stopjob");
        earlier += puppet.ok("spins").parse::<u64>().unwrap();
    }

    // Towards a goal that nobody reaches the job runs, and it runs on when the time is over.
    puppet.ok("reducing 1");
    seq += 1;
    at_cut(&link, seq, 300);
    let first = held_at(&mut link, seq);
    let goal = Count {
        communicator: first.communicator + 1,
        ..first
    };
    link.send(&ToShim::Continue {
        seq,
        goals: vec![goal],
    });
    let mut counts = vec![first];
    let outcome = loop {
        match link.receive().0 {
            ToAgent::Position {
                held, counts: now, ..
            } => {
                assert!(!held, "it has not been there");
                counts = now;
            }
            ToAgent::Quiesced { outcome, .. } => break outcome,
            other => panic!("unexpected {other:?}"),
        }
    };
    assert_eq!(outcome.unwrap_err(), Refusal::Timeout);
    assert!(counts[0].times > first.times, "it ran meanwhile");

    // The same when the attempt is given up: the call that would have been the last one closes no gate any more.
    seq += 1;
    at_cut(&link, seq, 20_000);
    let first = held_at(&mut link, seq);
    let goal = Count {
        times: first.times + 200,
        ..first
    };
    link.send(&ToShim::Continue {
        seq,
        goals: vec![goal],
    });
    link.send(&ToShim::Resume { seq });
    let before: u64 = puppet.ok("spins").parse().unwrap();
    until("the job goes on beyond its goal", || {
        puppet.ok("spins").parse::<u64>().unwrap() > before + 400
    });
    puppet.ok("stopjob");
}

/// Who is linked with NCCL gets the one that it would have had without the shim, be it inside another library, and is counted.
#[test]
fn every_user_of_nccl_gets_its_own() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 4096", "stream s"]);
    // What the shim exports is not there as long as NCCL is not.
    assert_eq!(puppet.ok("globally ncclAllReduce"), "0");
    assert_eq!(puppet.ok("globally cuMemAlloc_v2"), "1");
    let name = format!("shim-users-{}", puppet.pid());
    for (kind, times) in [("static", 2), ("linked", 3), ("stub", 4)] {
        let library = user_of_nccl(kind);
        puppet.ok(&format!(
            "joinby {} {name}-{kind} comm-{kind} lib-{kind}",
            library.display()
        ));
        for _ in 0..times {
            puppet.ok(&format!("reduceby comm-{kind} lib-{kind} a s"));
        }
    }
    assert_eq!(puppet.ok("reducedby lib-static"), "2");
    // One of another's communicators is refused, and is not counted.
    assert_eq!(puppet.ask("reduceby comm-linked lib-static a s"), "err 5");
    assert_eq!(puppet.ok("globally ncclAllReduce"), "1");
    link.send(&ToShim::QuiesceAtCut {
        seq: 1,
        timeout_ms: 20_000,
    });
    let counts = loop {
        if let (true, counts) = position(&mut link, 1) {
            break counts;
        }
    };
    let mut times: Vec<u64> = counts.iter().map(|count| count.times).collect();
    times.sort_unstable();
    assert_eq!(times, [2, 3, 4]);
    link.send(&ToShim::Settle { seq: 1 });
    link.quiesced(1).unwrap();
    link.send(&ToShim::Resume { seq: 1 });
}

/// What is captured is issued by each launch of its graph, and by nothing else.
#[test]
fn calls_in_graphs_count_when_they_are_launched() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 4096", "stream s"]);
    let nccl = library("libphos_nccl_sim.so");
    let name = format!("shim-graphs-{}", puppet.pid());
    puppet.ok(&format!("join {} {name} a s", nccl.display()));
    let mut seq = 0;
    let mut issued = |link: &mut Link| {
        seq += 1;
        link.send(&ToShim::QuiesceAtCut {
            seq,
            timeout_ms: 20_000,
        });
        let times = held_at(link, seq).times;
        link.send(&ToShim::Settle { seq });
        link.quiesced(seq).unwrap();
        link.send(&ToShim::Resume { seq });
        times
    };
    puppet.all(&[
        "reduce",
        "begin s",
        "reduce",
        "reduce",
        "end s g",
        "startgraph g x",
    ]);
    assert_eq!(issued(&mut link), 1);
    puppet.all(&["launch x s", "launch x s"]);
    assert_eq!(issued(&mut link), 5);
    // A launch in another capture is part of that one's graph.
    puppet.all(&[
        "begin s",
        "launch x s",
        "reduce",
        "end s g",
        "startgraph g y",
    ]);
    assert_eq!(issued(&mut link), 5);
    puppet.ok("launch y s");
    assert_eq!(issued(&mut link), 8);
}

#[test]
fn work_that_does_not_end_times_out_and_goes_on() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&[
        "alloc a 4000000",
        "fill a 4000000 7",
        "stream s",
        "nap s 4000",
    ]);
    let start = Instant::now();
    assert_eq!(link.quiesce(1, 200).unwrap_err(), Refusal::Timeout);
    assert!(start.elapsed() < Duration::from_millis(3000));
    puppet.ok("nap s 1");
    // The thread that waits is still busy: until it has ended, a try is refused at once and the gate stays open.
    let mut seq = 1;
    until("the work has ended", || {
        seq += 1;
        match link.quiesce(seq, 8000) {
            Ok(_) => true,
            Err(refusal) => {
                assert_eq!(refusal, Refusal::Timeout);
                false
            }
        }
    });
    link.send(&ToShim::Resume { seq });
    puppet.check("a", 4_000_000, 7);
}

#[test]
fn a_capture_is_not_interrupted() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 4000000", "fill a 4000000 7", "stream s", "begin s"]);
    assert_eq!(link.quiesce(1, 2000).unwrap_err(), Refusal::Capturing);
    // Allocation and free while capturing work, and the free happens afterwards.
    puppet.all(&["alloc b 4000000", "free a", "end s g", "fill b 4000000 3"]);
    let (_, table, _) = link.quiesce(2, 2000).unwrap();
    assert_eq!(table.len(), 1);
    link.send(&ToShim::Resume { seq: 2 });
    // A stream that is destroyed takes its capture along.
    puppet.all(&["begin s", "streamdestroy s"]);
    assert!(link.quiesce(3, 2000).is_ok());
    link.send(&ToShim::Resume { seq: 3 });
    puppet.check("b", 4_000_000, 3);
}

#[test]
fn the_applications_own_virtual_memory_lives_on() {
    let world = World::new(&[256]);
    let agent = world.agent();
    let (mut puppet, link) = started(&world, &agent);
    let size = 4 * MIB;
    puppet.ok(&format!("reserve r {}", 8 * size));
    for i in 0..4 {
        puppet.ok(&format!("create h{i} {size} 0 {}", i % 2));
        puppet.all(&[
            &format!("map r {} {size} 0 h{i}", i * size),
            &format!("add p{i} r {}", i * size),
        ]);
    }
    puppet.ok(&format!("access r 0 {} 0", 4 * size));
    for i in 0..4 {
        puppet.ok(&format!("fill p{i} {size} {i}"));
    }
    // The properties are those asked for.
    assert_eq!(puppet.ok("types h0"), "0");
    assert_eq!(puppet.ok("types h1"), "1");
    // A released handle is gone, its memory is not; another is got from the address.
    puppet.ok("release h0");
    assert_eq!(puppet.ask("release h0"), "err 1");
    assert_eq!(puppet.ask("types h0"), "err 1");
    let (agent, link) = cycle(agent, link, 1);
    for i in 0..4 {
        puppet.check(&format!("p{i}"), size, i);
    }
    // Handles made before are valid after: mapped a second time elsewhere.
    puppet.all(&[
        &format!("map r {} {size} 0 h1", 4 * size),
        &format!("access r {} {size} 0", 4 * size),
    ]);
    puppet.ok(&format!("add q r {}", 4 * size));
    puppet.check("q", size, 1);
    let retained = puppet.ok("retain h9 p0 4096");
    assert!(
        u64::from_str_radix(&retained, 16).unwrap() > 1 << 48,
        "a handle of ours"
    );
    puppet.ok("release h9");
    // Several mappings by one unmap; both mappings of h1 keep it alive.
    puppet.ok(&format!("unmap r 0 {}", 2 * size));
    puppet.all(&["release h1"]);
    let (agent, mut link) = cycle(agent, link, 2);
    puppet.check("q", size, 1);
    puppet.check("p2", size, 2);
    puppet.ok(&format!("unmap r {} {}", 2 * size, 3 * size));
    puppet.all(&["release h2", "release h3"]);
    link.vault.clear();
    let (_, table, _) = link.quiesce(3, 5000).unwrap();
    assert!(table.is_empty(), "{table:?}");
    link.send(&ToShim::Resume { seq: 3 });
    puppet.ok(&format!("unreserve r {}", 8 * size));
    drop(agent);
}

#[test]
fn rights_are_put_back_as_they_were() {
    if support::real_gpu().is_some() {
        return; // needs devices of its own making
    }
    let world = World::new(&[128, 128]);
    let agent = world.agent();
    let (mut puppet, link) = started(&world, &agent);
    let size = 2 * MIB;
    puppet.all(&["device 1", "device 0"]);
    puppet.all(&[&format!("reserve r {}", 4 * size)]);
    puppet.ok(&format!("create h {} 0 0", 2 * size));
    puppet.all(&[
        &format!("map r 0 {} 0 h", 2 * size),
        &format!("access r 0 {} 0", 2 * size),
        &format!("access r 0 {} 1", 2 * size),
    ]);
    puppet.ok("alloc a 4000000");
    puppet.ok("alloc s 1000");
    puppet.all(&[
        "device 1",
        "alloc b 4000000",
        "fill b 4000000 5",
        "peer ctx0",
    ]);
    puppet.all(&["device 0", "fill a 4000000 4"]);
    let rights = |puppet: &mut Puppet| {
        [
            "r 0 0", "r 0 1", "a 0 0", "a 0 1", "s 0 1", "b 0 0", "b 0 1",
        ]
        .map(|what| puppet.ok(&format!("getaccess {what}")))
        .join(" ")
    };
    assert_eq!(rights(&mut puppet), "3 3 3 3 3 0 3");
    let (agent, link) = cycle(agent, link, 1);
    assert_eq!(rights(&mut puppet), "3 3 3 3 3 0 3");
    puppet.check("a", 4_000_000, 4);
    // A peer sees what is allocated later, until it is shut out.
    puppet.ok("alloc c 4000000");
    assert_eq!(puppet.ok("getaccess c 0 1"), "3");
    puppet.all(&["device 1", "check b 4000000 5", "unpeer ctx0"]);
    assert_eq!(puppet.ok("getaccess c 0 1"), "0");
    let (_agent, _link) = cycle(agent, link, 2);
    assert_eq!(puppet.ok("getaccess c 0 1"), "0");
    assert_eq!(puppet.ok("getaccess c 0 0"), "3");
    puppet.check("b", 4_000_000, 5);
}

#[test]
fn memory_goes_with_its_context() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc keep 3000000", "fill keep 3000000 1", "context c 0"]);
    for name in ["a", "b", "x"] {
        puppet.ok(&format!(
            "alloc {name} {}",
            if name == "x" { 100 } else { 20_000_000 }
        ));
    }
    assert_eq!(link.quiesce(1, 5000).unwrap().1.len(), 4);
    link.send(&ToShim::Resume { seq: 1 });
    puppet.all(&["destroy c", "device 0"]);
    assert_eq!(link.quiesce(2, 5000).unwrap().1.len(), 1);
    link.send(&ToShim::Resume { seq: 2 });
    puppet.check("keep", 3_000_000, 1);
    // A reset of the primary context as well.
    puppet.all(&["reset 0", "device 0"]);
    assert!(link.quiesce(3, 5000).unwrap().1.is_empty());
    link.send(&ToShim::Resume { seq: 3 });
    puppet.ok("alloc again 60000000");
}

#[test]
fn threads_that_never_stop_working_see_nothing_of_a_checkpoint() {
    let world = World::new(&[128]);
    let mut agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 4000000", "fill a 4000000 7", "spin a"]);
    let mut before = 0;
    for seq in 1..=10 {
        (agent, link) = cycle(agent, link, seq);
        until("work", || {
            puppet.ok("spins").parse::<u64>().unwrap() > before + 10
        });
        before = puppet.ok("spins").parse().unwrap();
    }
    puppet.ok("stopspin");
    puppet.check("a", 4_000_000, 7);
    let _ = (agent, link);
}

#[test]
fn calls_past_the_wrappers_are_noticed_and_named() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.ok("alloc a 4000000");
    assert_eq!(puppet.ok("bypass cuStreamQuery"), "1");
    match link.quiesce(1, 5000) {
        Err(Refusal::Unsupported(reason)) => {
            assert!(
                reason.contains("the program itself calls the driver past phos-ft"),
                "{reason}"
            );
        }
        other => panic!("{other:?}"),
    }
    // The job is not held.
    puppet.ok("fill a 4000000 7");
}

#[test]
fn what_is_left_to_the_driver_is_counted() {
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[128]);
    let (_agent, mut puppet, mut link) =
        connected(&world, ("PHOS_SIM_NO_VMM", "1"), &["init", "device 0"]);
    puppet.all(&[
        "alloc a 4000000",
        "alloc b 3000000",
        "pitch c 1000 1000",
        "free b",
    ]);
    let pitch: u64 = puppet.ok("pitch d 1000 10").parse().unwrap();
    let (_, table, _) = link.quiesce(1, 5000).unwrap();
    assert!(table.is_empty(), "{table:?}");
    assert_eq!(link.native, 4_000_000 + pitch * 1010);
    link.send(&ToShim::Resume { seq: 1 });
    // The same is told while the job runs.
    link.wait_usage(|usage| usage.native == 4_000_000 + pitch * 1010);
    assert_eq!(link.usage.taken_over, 0);
    puppet.all(&["free a", "free c", "free d"]);
    link.wait_usage(|usage| usage.native == 0);
    link.native = 0;
    link.quiesce(2, 5000).unwrap();
    assert_eq!(link.native, 0);
}

#[test]
fn what_is_taken_over_is_told_over_checkpoints_and_to_every_agent() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    let small = link.wait_usage(|usage| usage.stacks > 0);
    puppet.all(&["alloc a 30000000", "fill a 30000000 7"]);
    let large = link.wait_usage(|usage| usage.taken_over >= small.taken_over + 30_000_000);
    let (agent, link) = cycle(agent, link, 1);
    drop((agent, link));
    let agent = world.agent();
    let mut link = agent.accept().welcome(&[]);
    let again = link.wait_usage(|usage| usage.taken_over > 0);
    assert_eq!(again, large);
    puppet.ok("free a");
    link.wait_usage(|usage| usage.taken_over == small.taken_over);
}

/// As [`cycle`], with the driver's own checkpoint of the process in between, made by another process.
fn cycle_with_control(
    agent: Agent,
    link: Link,
    seq: u64,
    puppet: &Puppet,
    controller: &mut Puppet,
) -> (Agent, Link) {
    cycle_around(agent, link, seq, || {
        for step in ["lock", "checkpoint", "restore", "unlock"] {
            controller.ok(&format!("control {step} {}", puppet.pid()));
        }
    })
}

#[test]
fn no_thread_is_inside_the_driver_while_it_is_checkpointed() {
    let world = World::new(&[128]);
    let mut agent = world.agent();
    let mut controller = world.puppet_with(&[]);
    controller.ok("init");
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 4000000", "fill a 4000000 7", "pollall", "pollall"]);
    let mut before = 0;
    for seq in 1..=10 {
        (agent, link) = cycle_with_control(agent, link, seq, &puppet, &mut controller);
        until("polling", || {
            puppet.ok("spins").parse::<u64>().unwrap() > before + 10
        });
        before = puppet.ok("spins").parse().unwrap();
    }
    puppet.ok("stopspin");
    puppet.check("a", 4_000_000, 7);
    let _ = (agent, link);
}

#[test]
fn threads_compute_on_pinned_memory_through_a_checkpoint() {
    // Ordinary, and write-combined, which the driver takes away.
    for flags in [0, 4] {
        let world = World::new(&[128]);
        let mut agent = world.agent();
        let mut controller = world.puppet_with(&[]);
        controller.ok("init");
        let (mut puppet, mut link) = started(&world, &agent);
        puppet.ok(&format!("count {flags}"));
        let mut before = 0;
        for seq in 1..=5 {
            (agent, link) = cycle_with_control(agent, link, seq, &puppet, &mut controller);
            until("counting", || {
                puppet.ok("spins").parse::<u64>().unwrap() > before + 10
            });
            before = puppet.ok("spins").parse().unwrap();
        }
        assert_eq!(puppet.ok("stopcount"), format!("0 {flags}"));
        let _ = (agent, link);
    }
}

#[test]
fn more_allocations_than_fit_a_packet() {
    let world = World::new(&[1024]);
    let agent = world.agent();
    let (mut puppet, link) = started(&world, &agent);
    for i in 0..230 {
        puppet.ok(&format!("alloc m{i} 1100000"));
        puppet.ok(&format!("fill m{i} 4096 {i}"));
    }
    let (_agent, link) = cycle(agent, link, 1);
    assert_eq!(link.vault.len(), 230);
    for i in (0..230).step_by(17) {
        puppet.check(&format!("m{i}"), 4096, i);
    }
}

#[test]
fn more_allocations_than_the_process_may_have_open_files() {
    const MANY: u64 = 3000;
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[64]);
    let (agent, mut puppet, link) = connected(
        &world,
        ("PHOS_SIM_SPARSE", "1"),
        &["nofile 64", "init", "device 0"],
    );
    puppet.ok(&format!("bulk {MANY} 1100000"));
    let (agent, link) = cycle(agent, link, 1);
    assert_eq!(link.vault.len() as u64, MANY);
    assert_eq!(puppet.ok("bulkcheck"), format!("0 of {MANY}"));
    // What was attached once is not exported again, and a reconnect changes nothing about it.
    let vault = link.vault;
    drop(link.socket);
    let mut link = agent.accept();
    assert_eq!(Link::greeting().0, ShimState::Running);
    link.vault = vault;
    let held = link.vault.keys().map(|k| k.id).collect::<Vec<_>>();
    let mut link = link.welcome(&held);
    let (_, table, _) = link.quiesce(2, 5000).unwrap();
    assert_eq!(table.len() as u64, MANY);
    assert!(table.iter().all(|entry| !entry.with_fd));
    link.send(&ToShim::Resume { seq: 2 });
    let (agent, mut link) = cycle(agent, link, 3);
    assert_eq!(puppet.ok("bulkcheck"), format!("0 of {MANY}"));
    assert_eq!(puppet.ok("limitis"), "64");
    // Without any left the checkpoint is refused, and the reason named.
    puppet.ok("openall");
    let refusal = link.quiesce(4, 5000).unwrap_err().to_string();
    assert!(refusal.contains("ulimit -n"), "{refusal}");
    puppet.all(&["closeall 64"]);
    let (_agent, _link) = cycle(agent, link, 5);
    assert_eq!(puppet.ok("bulkcheck"), format!("0 of {MANY}"));
}

/// The list of a `Welcome` may take several packets.
#[test]
fn more_allocations_than_fit_the_welcome() {
    const MANY: u64 = 14_000;
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[128]);
    let (agent, mut puppet, link) =
        connected(&world, ("PHOS_SIM_SPARSE", "1"), &["init", "device 0"]);
    puppet.ok(&format!("bulk {MANY} 1100000"));
    let (agent, link) = cycle(agent, link, 1);
    let held = link.vault.keys().map(|k| k.id).collect::<Vec<_>>();
    drop(link);
    let mut link = agent.accept().welcome(&held);
    // Nothing that is held is exported, which it could not be a second time.
    let (_, table, _) = link.quiesce(2, 20_000).unwrap();
    assert_eq!(table.len() as u64, MANY);
    assert!(table.iter().all(|entry| !entry.with_fd));
}

#[test]
fn two_threads_that_import_one_descriptor_have_one_allocation() {
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut owner, mut first) = started(&world, &agent);
    let socket = world.socket();
    let mut user = world.puppet_with(&[
        ("PHOS_SHIM_SOCKET", socket.to_str().unwrap()),
        // Both threads are in the driver's import at once.
        ("PHOS_SIM_IMPORT_US", "200000"),
    ]);
    user.all(&["init", "device 0"]);
    let mut second = agent.accept().welcome(&[]);
    let size = 2 * MIB;
    owner.ok(&format!("alloc a {size}"));
    owner.ok(&format!("fill a {size} 3"));
    let (_, table, _) = first.quiesce(1, 5000).unwrap();
    first.send(&ToShim::Resume { seq: 1 });
    let allocation = table[0].allocation;
    let fd = std::os::fd::AsRawFd::as_raw_fd(&first.vault[&allocation.key]);
    user.ok(&format!("getfd got {} {fd}", std::process::id()));
    user.send("importtwice g h got");
    for _ in 0..2 {
        assert_eq!(second.receive().0, ToAgent::Identify);
        second.send(&ToShim::Identified(Some(allocation)));
    }
    assert_eq!(user.answer(), "ok 1", "the same handle, as from one import");
    user.all(&[
        "close got",
        "release g",
        &format!("reserve r {size}"),
        &format!("map r 0 {size} 0 h"),
        &format!("access r 0 {size} 0"),
    ]);
    let vault = std::mem::take(&mut first.vault);
    second.vault = vault;
    let (agent, mut second) = cycle(agent, second, 2);
    user.check("r", size, 3);
    user.all(&[&format!("unmap r 0 {size}"), "release h"]);
    let (_, _, imported) = second.quiesce(3, 5000).unwrap();
    assert!(imported.is_empty(), "released as often as imported");
    let _ = (agent, owner);
}

/// Answers a `Share`, with the fd that it brings or else with `known`. The allocation, and what was brought.
fn answer_share(link: &mut Link, known: Option<&OwnedFd>) -> (Allocation, Option<OwnedFd>) {
    let (message, fds) = link.receive();
    let ToAgent::Share {
        allocation,
        with_fd,
    } = message
    else {
        panic!("{message:?}")
    };
    assert_eq!(usize::from(with_fd), fds.len());
    let brought = fds.into_iter().next();
    let answer = brought.as_ref().or(known).unwrap();
    let shared = ToShim::Shared(Ok(()));
    phos_protocol::channel::send(&link.socket, &shared, &[answer.as_fd()]).unwrap();
    (allocation, brought)
}

/// One that brings its fd, which the test keeps.
fn take_shared(link: &mut Link) -> (Allocation, OwnedFd) {
    let (allocation, fd) = answer_share(link, None);
    (allocation, fd.unwrap())
}

/// One of memory that the agent has already, by this fd: it is told that handles of it are given out. The number of the allocation.
fn shared_as_known(link: &mut Link, fd: &OwnedFd) -> u64 {
    let (allocation, brought) = answer_share(link, Some(fd));
    assert!(brought.is_none());
    allocation.key.id
}

#[test]
fn shared_events_say_what_the_host_knows_and_stand_in_no_checkpoints_way() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut owner, mut first) = started(&world, &agent);
    let mut user = world.puppet();
    user.all(&["init", "device 0"]);
    let mut second = agent.accept().welcome(&[]);
    owner.all(&["stream s", "event e", "nap s 300", "record e s"]);
    // The record came back when its work was done.
    owner.ok("query e");
    let handle = owner.ok("ipcevent e");
    assert_eq!(owner.ask(&format!("openevent own {handle}")), "err 201");
    user.ok(&format!("openevent e {handle}"));
    user.all(&["stream s", "waitevent s e", "query e"]);
    // The other way round, and again.
    user.all(&["nap s 300", "record e s", "query e"]);
    owner.all(&["waitevent s e", "nap s 300", "record e s", "query e"]);
    for link in [&mut first, &mut second] {
        link.quiesce(1, 5000).unwrap();
        link.send(&ToShim::Resume { seq: 1 });
    }
}

#[test]
fn legacy_ipc_goes_through_the_vault_and_survives_a_checkpoint() {
    if support::real_gpu().is_some() {
        return;
    }
    let world = World::new(&[128]);
    let mut agent = world.agent();
    let (mut owner, mut first) = started(&world, &agent);
    let mut user = world.puppet();
    user.all(&["init", "device 0"]);
    let mut second = agent.accept().welcome(&[]);
    // What its context takes.
    let before = user.device_memory();
    // One in a slab that it does not begin, and one of its own.
    owner.all(&["alloc a 1000", "alloc b 5000", "alloc c 3000000"]);
    owner.all(&["fill b 5000 4", "fill c 3000000 5"]);
    let mut vault = BTreeMap::new();
    let mut handles = Vec::new();
    for name in ["b", "c"] {
        owner.send(&format!("ipcget {name}"));
        let (allocation, fd) = take_shared(&mut first);
        vault.insert(allocation.key, fd);
        let handle = owner.answer().strip_prefix("ok ").unwrap().to_owned();
        handles.push((handle, allocation));
    }
    // What the agent has is not exported again, and the owner cannot open its own.
    owner.send("ipcget c");
    let known = handles[1].1.key;
    assert_eq!(shared_as_known(&mut first, &vault[&known]), known.id);
    assert_eq!(owner.answer(), format!("ok {}", handles[1].0));
    assert_eq!(owner.ask(&format!("ipcopen x {}", handles[1].0)), "err 201");
    for (name, (handle, allocation)) in ["b", "c"].iter().zip(&handles) {
        user.send(&format!("ipcopen {name} {handle}"));
        let message = second.receive().0;
        assert!(
            matches!(message, ToAgent::Fetch { key, .. } if key == allocation.key),
            "{message:?}"
        );
        let answer = ToShim::Identified(Some(*allocation));
        let fd = std::os::fd::AsFd::as_fd(&vault[&allocation.key]);
        phos_protocol::channel::send(&second.socket, &answer, &[fd]).unwrap();
        let opened = user.answer();
        assert!(opened.starts_with("ok"), "{opened}");
        // The same pointer again, closed as often.
        assert_eq!(user.ask(&format!("ipcopen again {handle}")), opened);
        user.ok("ipcclose again");
    }
    user.check("b", 5000, 4);
    user.check("c", 3_000_000, 5);
    assert_eq!(user.ok("range c 10"), "0 3000000");
    // Between the gate and the question a connection may end with a detach: it is asked over the next one.
    user.ok("ipcclose c");
    second.receive();
    // The shim's control thread hears of the end only later than who asks: that one waits for it.
    rustix::net::shutdown(&second.socket, rustix::net::Shutdown::Read).unwrap();
    user.send(&format!("ipcopen c {}", handles[1].0));
    user.silent(Duration::from_millis(100));
    drop(second);
    second = agent.accept().welcome(&[]);
    let message = second.receive().0;
    assert!(matches!(message, ToAgent::Fetch { .. }), "{message:?}");
    let answer = ToShim::Identified(Some(handles[1].1));
    let fd = std::os::fd::AsFd::as_fd(&vault[&handles[1].1.key]);
    phos_protocol::channel::send(&second.socket, &answer, &[fd]).unwrap();
    assert!(user.answer().starts_with("ok"));
    user.check("c", 3_000_000, 5);

    for (link, imports) in [(&mut first, 0), (&mut second, 2)] {
        let (_, table, imported) = link.quiesce(1, 5000).unwrap();
        assert_eq!(imported.len(), imports);
        assert!(table.iter().all(|e| !e.with_fd));
    }
    agent.remove_path();
    for link in [&mut first, &mut second] {
        link.send(&ToShim::Detach { seq: 1 });
        let answer = link.receive().0;
        assert!(
            matches!(
                answer,
                ToAgent::Detached {
                    outcome: Ok(()),
                    ..
                }
            ),
            "{answer:?}"
        );
    }
    assert_eq!(user.device_memory(), before);
    drop((first, second, agent));
    agent = world.agent();
    let mut links = Vec::new();
    for _ in 0..2 {
        let mut link = agent.accept();
        let own = link.pid == owner.pid();
        let held: Vec<u64> = vault.keys().filter(|_| own).map(|k| k.id).collect();
        link = link.welcome(&held);
        link.attach(1, &vault).unwrap();
        link.send(&ToShim::Resume { seq: 1 });
        links.push(link);
    }
    user.check("b", 5000, 4);
    user.ok("fill c 3000000 6");
    owner.check("c", 3_000_000, 6);
    user.ok("ipcclose b");
    let link = links.iter_mut().find(|l| l.pid == user.pid()).unwrap();
    let let_go = ToAgent::LetGo {
        keys: vec![handles[0].1.key],
    };
    assert_eq!(link.receive().0, let_go);
    assert_eq!(user.ask("ipcclose b"), "err 1");
    // What is not there any more is not opened.
    user.send(&format!("ipcopen b {}", handles[0].0));
    assert!(matches!(link.receive().0, ToAgent::Fetch { .. }));
    link.send(&ToShim::Identified(None));
    assert_eq!(user.answer(), "err 205");
    // What the agent has from a checkpoint it is told of once handles are given out.
    owner.ok("alloc d 3000000");
    let link = links.iter_mut().find(|l| l.pid == owner.pid()).unwrap();
    let (_, table, _) = link.quiesce(2, 5000).unwrap();
    link.send(&ToShim::Resume { seq: 2 });
    let new: Vec<u64> = (table.iter().filter(|e| e.with_fd))
        .map(|e| e.allocation.key.id)
        .collect();
    owner.send("ipcget d");
    assert_eq!([shared_as_known(link, &vault[&known])], new[..]);
    assert!(owner.answer().starts_with("ok"));
    let _ = agent;
}

#[test]
fn addresses_answer_as_the_drivers_own_would() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    puppet.all(&["alloc a 1000", "alloc b 3000001"]);
    assert_eq!(puppet.ok("range a 999"), "0 1000");
    assert_eq!(puppet.ask("range a 1000"), "err 500");
    assert_eq!(puppet.ok("range b 3000000"), "0 3000001");
    assert_eq!(puppet.ok("attrs b"), "0 3000001");
    assert_eq!(puppet.ok("attr b 12"), format!("{:x}", 3_000_001));
    assert_eq!(puppet.ok("attr b 10"), "1", "legacy IPC");
    let context = puppet.ok("attr b 1");
    assert_ne!(context, "0");
    assert_eq!(
        puppet.ask("retain h b 0"),
        "err 1",
        "as for the driver's own"
    );
    let pitch: u64 = puppet.ok("pitch p 1000 30").parse().unwrap();
    assert_eq!(pitch, 1024);
    assert_eq!(puppet.ok("range p 0"), format!("0 {}", 1024 * 30));
    // Twice freed, and never allocated.
    puppet.ok("free a");
    assert_eq!(puppet.ask("free a"), "err 1");
    puppet.ok("add middle b 512");
    assert_eq!(puppet.ask("free middle"), "err 1");
    assert_eq!(puppet.ask("alloc z 0"), "err 1");
    assert_eq!(link.quiesce(1, 1000).unwrap().1.len(), 2);
    link.send(&ToShim::Resume { seq: 1 });
}

#[test]
fn every_way_to_a_function_leads_to_the_wrapper() {
    let world = World::new(&[64]);
    let agent = world.agent();
    let (mut puppet, _link) = started(&world, &agent);
    for (symbol, base) in [
        ("cuMemAlloc_v2", "cuMemAlloc"),
        ("cuMemcpyHtoD_v2", "cuMemcpyHtoD"),
        ("cuLaunchKernel", "cuLaunchKernel"),
        ("cuGetProcAddress_v2", "cuGetProcAddress"),
        ("cuStreamBeginCapture_v2", "cuStreamBeginCapture"),
        ("cuStreamSynchronize", "cuStreamSynchronize"),
    ] {
        assert_eq!(
            puppet.ok(&format!("same D {symbol} {base}")),
            "1",
            "{symbol}"
        );
        assert_eq!(
            puppet.ok(&format!("same P {symbol} {base}")),
            "1",
            "{symbol}"
        );
    }
    assert_eq!(puppet.ok("same T cuMemcpyHtoD_v2_ptds cuMemcpyHtoD"), "1");
    assert_eq!(puppet.ok("same T cuLaunchKernel_ptsz cuLaunchKernel"), "1");
    assert_eq!(puppet.ok("same T cuMemcpyHtoD_v2 cuMemcpyHtoD"), "0");
}

#[test]
fn managed_memory_rules_checkpoints_out_while_it_lives() {
    let world = World::new(&[64]);
    let agent = world.agent();
    let (mut puppet, mut link) = started(&world, &agent);
    if !puppet.ask("managed m 4096").starts_with("ok") {
        return; // a simulated driver without it
    }
    assert!(
        matches!(link.receive().0, ToAgent::Unsupported { reason } if reason.contains("managed memory"))
    );
    assert!(matches!(
        link.quiesce(1, 1000),
        Err(Refusal::Unsupported(_))
    ));
    puppet.ok("free m");
    assert_eq!(link.receive().0, ToAgent::Supported);
    assert!(link.quiesce(2, 1000).is_ok());
    link.send(&ToShim::Resume { seq: 2 });
}

#[test]
fn without_an_agent_named_nothing_is_taken_over() {
    let world = World::new(&[64]);
    let mut puppet = world.puppet_with(&[]);
    puppet.all(&["init", "device 0", "alloc a 100", "fill a 100 3"]);
    puppet.check("a", 100, 3);
    assert_eq!(puppet.sockets(), 0);
    assert_eq!(puppet.ok("range a 0"), "0 100");
    puppet.all(&["ipc a"]);
}

#[test]
fn a_process_that_does_not_initialise_cuda_has_no_thread_and_no_socket() {
    let world = World::new(&[64]);
    let _agent = world.agent();
    let mut puppet = world.puppet();
    puppet.all(&["fork", "fds"]);
    assert_eq!((puppet.threads(), puppet.sockets()), (1, 0));
}

#[test]
fn the_agent_may_come_late_and_come_back() {
    let world = World::new(&[64]);
    let mut puppet = world.puppet();
    puppet.all(&["init", "device 0", "alloc a 4000000", "fill a 4000000 7"]);
    let agent = world.agent();
    let mut link = agent.accept().welcome(&[]);
    assert_eq!(Link::greeting().0, ShimState::Fresh);
    link.quiesce(1, 1000).unwrap();
    link.send(&ToShim::Resume { seq: 1 });
    drop((agent, link));
    puppet.check("a", 4_000_000, 7);
    // The new agent holds nothing: everything is exported again.
    let agent = world.agent();
    let mut link = agent.accept().welcome(&[]);
    assert_eq!(Link::greeting().0, ShimState::Running);
    assert!(link.quiesce(2, 1000).unwrap().1.iter().all(|e| e.with_fd));
    link.send(&ToShim::Resume { seq: 2 });
    puppet.check("a", 4_000_000, 7);
}

#[test]
fn forked_children_stand_aside() {
    let world = World::new(&[128]);
    let agent = world.agent();
    let mut puppet = world.puppet();
    puppet.send("forkwork");
    // The child forked before cuInit is a process of its own.
    let child = agent.accept();
    assert_ne!(child.pid, puppet.pid());
    let child = child.welcome(&[]);
    assert_eq!(puppet.answer(), "ok");
    drop(child);
    puppet.all(&["init", "device 0", "alloc a 4000000", "fill a 4000000 7"]);
    let mut link = agent.accept().welcome(&[]);
    // On a real GPU the driver has a socket of its own.
    let child = if support::real_gpu().is_some() {
        "err 1"
    } else {
        "ok"
    };
    assert_eq!(
        puppet.ask("fork"),
        child,
        "the child has no socket of ours and does not hang"
    );
    assert_eq!(puppet.ask("fork exit"), child);
    // Nothing of the driver's that CRIU could stumble over.
    assert_eq!(puppet.ok("forknvidia"), "fds 0 maps 0");
    link.quiesce(1, 2000).unwrap();
    // Forked while the gate is closed: the child does not wait at it.
    assert_eq!(puppet.ask("fork"), child);
    link.send(&ToShim::Resume { seq: 1 });
    puppet.check("a", 4_000_000, 7);
    let (_agent, _link) = cycle(agent, link, 2);
}

/// Memory that is shared before the agent is reached would be nobody's to those who import it, and rule their checkpoints out for good.
#[test]
fn memory_that_is_shared_early_waits_for_the_agent() {
    let world = World::new(&[128]);
    let mut owner = world.puppet();
    owner.all(&["init", "device 0"]);
    owner.ok(&format!("create h {} 0 1", 4 * MIB));
    owner.send("export fd h");
    owner.silent(Duration::from_millis(50));
    let agent = world.agent();
    let mut link = agent.accept().welcome(&[]);
    let fd = loop {
        // The first messages are of what it has.
        if let (ToAgent::Share { .. }, fds) = link.receive() {
            break fds.into_iter().next().unwrap();
        }
    };
    phos_protocol::channel::send(
        &link.socket,
        &ToShim::Shared(Ok(())),
        &[std::os::fd::AsFd::as_fd(&fd)],
    )
    .unwrap();
    assert!(owner.answer().starts_with("ok"));
}

#[test]
fn shared_memory_is_recognised_and_comes_back_in_both_processes() {
    let world = World::new(&[128]);
    let mut agent = world.agent();
    let (mut owner, mut first) = started(&world, &agent);
    let size = 4 * MIB;
    let mut user = world.puppet();
    user.all(&["init", "device 0"]);
    let mut second = agent.accept().welcome(&[]);
    owner.ok(&format!("create h {size} 0 1"));
    owner.all(&[
        &format!("reserve r {size}"),
        &format!("map r 0 {size} 0 h"),
        &format!("access r 0 {size} 0"),
    ]);
    owner.ok(&format!("fill r {size} 3"));
    owner.send("export fd h");
    let (message, fds) = first.receive();
    let ToAgent::Share {
        allocation,
        with_fd: true,
    } = message
    else {
        panic!("{message:?}")
    };
    let fd = fds.into_iter().next().unwrap();
    phos_protocol::channel::send(
        &first.socket,
        &ToShim::Shared(Ok(())),
        &[std::os::fd::AsFd::as_fd(&fd)],
    )
    .unwrap();
    assert!(owner.answer().starts_with("ok"));
    // A second export is the vault's fd again.
    owner.send("export fd2 h");
    assert!(matches!(
        first.receive().0,
        ToAgent::Share { with_fd: false, .. }
    ));
    phos_protocol::channel::send(
        &first.socket,
        &ToShim::Shared(Ok(())),
        &[std::os::fd::AsFd::as_fd(&fd)],
    )
    .unwrap();
    assert!(owner.answer().starts_with("ok"));
    owner.all(&["close fd", "close fd2"]);
    // The other process gets it (by pidfd_getfd, standing in for SCM_RIGHTS).
    let number = std::os::fd::AsRawFd::as_raw_fd(&fd);
    user.ok(&format!("getfd got {} {number}", std::process::id()));
    user.send("importvar h got");
    let (message, fds) = second.receive();
    assert_eq!((message, fds.len()), (ToAgent::Identify, 1));
    second.send(&ToShim::Identified(Some(allocation)));
    assert!(user.answer().starts_with("ok"));
    user.all(&[
        "close got",
        &format!("reserve r {size}"),
        &format!("map r 0 {size} 0 h"),
        &format!("access r 0 {size} 0"),
    ]);
    user.check("r", size, 3);

    let vault = BTreeMap::from([(allocation.key, fd)]);
    let (_, table, imported) = first.quiesce(1, 5000).unwrap();
    assert!(table.iter().all(|e| !e.with_fd) && imported.is_empty());
    let (_, table, imported) = second.quiesce(1, 5000).unwrap();
    assert!(table.is_empty());
    assert_eq!(imported, [allocation.key]);
    agent.remove_path();
    for link in [&mut first, &mut second] {
        link.send(&ToShim::Detach { seq: 1 });
        assert_eq!(
            link.receive().0,
            ToAgent::Detached {
                seq: 1,
                outcome: Ok(())
            }
        );
    }
    drop((first, second, agent));
    agent = world.agent();
    let mut links = Vec::new();
    for _ in 0..2 {
        let mut link = agent.accept();
        let held = if link.pid == owner.pid() {
            vec![allocation.key.id]
        } else {
            vec![]
        };
        link.send(&ToShim::Welcome { held });
        link.attach(1, &vault).unwrap();
        link.send(&ToShim::Resume { seq: 1 });
        links.push(link);
    }
    owner.check("r", size, 3);
    owner.ok(&format!("fill r {size} 4"));
    user.check("r", size, 4);
    // Memory that nobody in the job knows rules checkpoints out.
    let link = links.iter_mut().find(|l| l.pid == user.pid()).unwrap();
    user.ok(&format!("getfd other {} {number}", std::process::id()));
    user.send("importvar g other");
    assert_eq!(link.receive().0, ToAgent::Identify);
    link.send(&ToShim::Identified(None));
    assert!(user.answer().starts_with("ok"));
    assert!(matches!(link.receive().0, ToAgent::Unsupported { .. }));
    user.ok("release g");
    assert_eq!(link.receive().0, ToAgent::Supported);
}
