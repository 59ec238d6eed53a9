//! A job of simulated processes, a sidecar and a worker, as the machine of an attempt meets them. They do what they are told to do by
//! a script, or the opposite; what must hold at each effect is checked where it is issued.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use phos_policies::cut::{Meeting, Part, Standing};
use phos_protocol::agent::{AttemptError, DumpFacts, DumpTimes, QuiesceTime, ToSidecar};
use phos_protocol::shim::{HeldMulticast, Refusal, Sequence};
use phos_protocol::types::{Allocation, AllocationKey, AllocationKind, MemberId, ProcessId};

use crate::attempt::rejoin::{Asked, Done};
use crate::attempt::{Attempts, Effect, Input, Tables, Undumped};
use crate::config::Timeouts;

/// Processes of the job at most.
pub const PROCESSES: ProcessId = 4;
/// How long a process may take to fall quiet, in milliseconds.
pub const TIMEOUT_MS: u32 = 1000;
/// Deadlines that an attempt can meet from any state on: one for each stage, and a few more.
const DEADLINES: usize = 16;

/// What a process does with the next thing it was told, or by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// What it was told.
    Obeys,
    /// It says that it cannot.
    Refuses,
    /// Its connection ends.
    Disconnects,
    /// It connects again, or for the first time.
    Connects,
    /// It connects although nobody listens any more: it waited at the socket before that went.
    SlipsIn,
    /// It ends.
    Dies,
}

/// One event of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// The sidecar asks for a checkpoint.
    Begin,
    /// The sidecar asks for the dump; `true`: of the attempt under way.
    Dump(bool),
    /// The sidecar has the job attached; `true`: of the attempt under way.
    Attach(bool),
    /// The sidecar gives the attempt up.
    Abandon,
    /// The sidecar disconnects, or connects again.
    Sidecar(bool),
    /// A process does something.
    Process(ProcessId, Does),
    /// A process says something that it was not asked for: the number of the message.
    Babbles(ProcessId, u8),
    /// The dump ends with an image.
    Dumped,
    /// The dump fails; `true`: a process could not be brought back.
    DumpFails(bool),
    /// From now on the agent itself fails at this: the tables, the image, the thread, the socket; 4: at nothing.
    Agent(u8),
    /// So many milliseconds pass.
    Passes(u64),
    /// Time passes until the deadline.
    Deadline,
    /// The job's main process ends.
    JobEnds,
}

/// What was said to a process and waits for it to listen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Quiesce(Sequence),
    QuiesceAtCut(Sequence),
    /// Until it has made so many calls.
    Continue(Sequence, u64),
    Settle(Sequence),
    Detach(Sequence),
    Memory(Sequence),
    Remake(Sequence, AllocationKey),
    Join(Sequence),
    Bind(Sequence),
    Resume,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// Mapped where the process expects it.
    There,
    /// Released in this attempt.
    Released(Sequence),
    /// Released in part: the process could not go on with it.
    Partly(Sequence),
}

/// A process with a shim, as the agent sees it.
#[derive(Debug)]
pub struct Process {
    pub is_connected: bool,
    pub is_gate_open: bool,
    pub memory: Memory,
    pub inbox: VecDeque<Told>,
    /// It was asked to fall quiet where no rank is behind.
    pub is_asked: bool,
    /// Calls of its communicator's that it has made.
    pub calls: u64,
    /// Its multicast object is as it was, if it has one.
    pub is_whole: bool,
    /// It has joined its object anew.
    has_joined: bool,
}

impl Process {
    pub fn new() -> Self {
        Self {
            is_connected: true,
            is_gate_open: true,
            memory: Memory::There,
            inbox: VecDeque::new(),
            is_asked: false,
            calls: 0,
            is_whole: true,
            has_joined: false,
        }
    }
}

/// The ranks share a multicast object, to which each has bound its memory.
pub fn multicast(ranks: u32) -> HeldMulticast {
    HeldMulticast {
        object: Allocation {
            key: AllocationKey {
                owner: MemberId::here(2),
                id: 1,
            },
            device: 0,
            bytes: 2 << 20,
            kind: AllocationKind::Multicast { devices: ranks },
            rdma: false,
        },
        added: 1,
    }
}

/// Every other process is a rank of one communicator.
fn communicates(pid: ProcessId) -> bool {
    pid.is_multiple_of(2)
}

fn part(pid: ProcessId) -> Part {
    Part {
        communicator: 1,
        rank: pid,
        meeting: Meeting::Collectives,
    }
}

/// How far a job has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Job {
    Runs,
    /// It was sent SIGKILL, or is about to be.
    Condemned,
    Ended,
}

/// Effects that happen once in an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Once {
    TakeTables,
    TellQuiesced,
    Prepare,
    StopListening,
    StartDump,
    CancelDump,
    TellDumped,
    Listen,
    LoseJob,
    Kill,
    GiveUp,
    CleanUp,
    Detach(ProcessId),
}

pub struct World {
    pub now: Instant,
    pub attempts: Attempts,
    pub job: Job,
    pub processes: BTreeMap<ProcessId, Process>,
    pub sidecar_is_there: bool,
    pub is_listening: bool,
    /// The dump that the worker is at.
    pub dump: Option<Sequence>,
    /// The processes that were connected when the socket went.
    known: Vec<ProcessId>,
    /// What the agent fails at.
    pub agent_fails: u8,
    pub seq: Sequence,
    /// Ranks that there were when the attempt began.
    ranks: u32,
    /// Events that follow from effects.
    pub waiting: VecDeque<Input>,
    /// Of the attempt under way.
    done: BTreeSet<Once>,
    /// Processes that got memory and have not been heard of since.
    pub sent: BTreeSet<ProcessId>,
    /// Answers that the sidecar is still to get: to `Quiesce`, to `Dump`.
    pub owed: (usize, usize),
    pub gave_up: bool,
    pub is_farewell: bool,
}

impl World {
    pub fn new(processes: ProcessId) -> Self {
        Self {
            now: Instant::now(),
            attempts: Attempts::new(Timeouts::default()),
            job: Job::Runs,
            processes: (1..=processes)
                .map(|pid| {
                    let calls = u64::from(pid * 7 % 5);
                    (
                        pid,
                        Process {
                            calls,
                            ..Process::new()
                        },
                    )
                })
                .collect(),
            sidecar_is_there: true,
            is_listening: true,
            dump: None,
            known: Vec::new(),
            agent_fails: u8::MAX,
            seq: 0,
            ranks: 0,
            waiting: VecDeque::new(),
            done: BTreeSet::new(),
            sent: BTreeSet::new(),
            owed: (0, 0),
            gave_up: false,
            is_farewell: false,
        }
    }

    pub fn connected(&self) -> Vec<ProcessId> {
        self.processes
            .iter()
            .filter(|(_, process)| process.is_connected)
            .map(|(&pid, _)| pid)
            .collect()
    }

    // ------------------------------------------------------------------------------------- the agent around it

    /// As the main loop does: an event, its effects to the end, and the events that follow from them.
    pub fn input(&mut self, input: Input) {
        self.waiting.push_back(input);
        while let Some(input) = self.waiting.pop_front() {
            let effects = self.attempts.step(self.now, input);
            self.carry_out(effects);
        }
    }

    pub fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.note(&effect);
            self.do_it(effect);
        }
        if !self.attempts.is_under_way() {
            self.done.clear();
            self.sent.clear();
        }
    }

    fn once(&mut self, what: Once) {
        assert!(self.done.insert(what), "twice in an attempt: {what:?}");
    }

    /// What must hold when an effect is issued.
    fn note(&mut self, effect: &Effect) {
        assert!(!self.gave_up, "after the agent has given up: {effect:?}");
        if self.is_farewell {
            let is_part_of_it = matches!(
                effect,
                Effect::Quiesce { .. }
                    | Effect::QuiesceAtCut { .. }
                    | Effect::TakeTables { .. }
                    | Effect::StopListening
                    | Effect::Detach { .. }
                    | Effect::CleanUp(_)
                    | Effect::SaveAndKill
                    | Effect::RefuseDump { .. }
            );
            assert!(is_part_of_it, "in a farewell: {effect:?}");
        }
        match *effect {
            Effect::TakeTables { .. } => self.once(Once::TakeTables),
            Effect::TellQuiesced { .. } => self.once(Once::TellQuiesced),
            Effect::Prepare { .. } => self.once(Once::Prepare),
            Effect::StopListening => {
                self.once(Once::StopListening);
                self.known = self.connected();
            }
            Effect::Detach { pid, .. } => self.once(Once::Detach(pid)),
            Effect::StartDump { .. } => {
                self.once(Once::StartDump);
                for pid in &self.known {
                    assert!(
                        self.done.contains(&Once::Detach(*pid)),
                        "process {pid} was there and was not asked to detach"
                    );
                }
                for (pid, process) in &self.processes {
                    // One that connects late has not been asked for anything.
                    let is_fine = match process.memory {
                        Memory::There => process.is_gate_open,
                        Memory::Released(_) => true,
                        Memory::Partly(_) => false,
                    };
                    assert!(is_fine, "process {pid} is dumped before it is detached");
                }
            }
            Effect::CancelDump => {
                assert!(self.dump.is_some(), "no dump to cancel");
                self.once(Once::CancelDump);
            }
            Effect::TellDumped { .. } => self.once(Once::TellDumped),
            Effect::Listen { .. } => self.once(Once::Listen),
            Effect::SendMemory { pid, .. } => {
                assert!(
                    self.dump.is_none(),
                    "memory is sent to {pid} during the dump"
                );
                assert!(self.sent.insert(pid), "memory is sent to {pid} twice");
            }
            Effect::Resume { pid, .. } => {
                assert!(self.dump.is_none(), "{pid} goes on during the dump");
            }
            Effect::Rejoin { ref asked, .. } => {
                let attached = |p: &Process| p.memory == Memory::There && !p.is_gate_open;
                // One that has come since takes no part.
                let mut ranks = self.processes.values().filter(|rank| !rank.is_whole);
                assert!(
                    ranks.clone().all(attached),
                    "an object is made before all have attached"
                );
                if matches!(asked, Asked::Bind { .. }) {
                    // The driver has whoever binds wait for the others.
                    assert!(ranks.all(|rank| rank.has_joined));
                }
            }
            Effect::LoseJob(_) => self.once(Once::LoseJob),
            Effect::KillEverything | Effect::SaveAndKill => self.once(Once::Kill),
            Effect::GiveUpOnDriver => self.once(Once::GiveUp),
            Effect::CleanUp(tables) => {
                self.once(Once::CleanUp);
                assert!(
                    !self.attempts.is_under_way(),
                    "tidied up while it is under way"
                );
                assert_eq!(
                    tables == Tables::Drop,
                    self.is_farewell || self.job == Job::Ended
                );
            }
            Effect::Settle { .. } => {
                // Whoever was asked: the others have no gate to be held at.
                let ranks = self.processes.iter().filter(|(pid, process)| {
                    communicates(**pid) && process.is_connected && process.is_asked
                });
                let calls: BTreeSet<u64> = ranks.map(|(_, process)| process.calls).collect();
                assert!(calls.len() <= 1, "a rank is behind: {calls:?}");
            }
            Effect::Quiesce { .. }
            | Effect::QuiesceAtCut { .. }
            | Effect::Continue { .. }
            | Effect::RefuseDump { .. }
            | Effect::Answer(_)
            | Effect::Failpoint(_) => {}
        }
    }

    fn tell(&mut self, pid: ProcessId, told: Told) {
        if let Some(process) = self.processes.get_mut(&pid)
            && process.is_connected
        {
            process.inbox.push_back(told);
        }
    }

    fn fails(&self, at: u8) -> Result<(), AttemptError> {
        match self.agent_fails == at {
            true => Err(AttemptError::Files("no room".into())),
            false => Ok(()),
        }
    }

    fn do_it(&mut self, effect: Effect) {
        match effect {
            Effect::Quiesce { pid, seq, .. } => {
                if self.processes.get(&pid).is_some_and(|p| !p.is_connected) {
                    self.waiting
                        .push_back(Input::Disconnected { pid, why: None });
                }
                self.tell(pid, Told::Quiesce(seq));
            }
            Effect::QuiesceAtCut { pid, seq, .. } => {
                if self.processes.get(&pid).is_some_and(|p| !p.is_connected) {
                    self.waiting
                        .push_back(Input::Disconnected { pid, why: None });
                }
                self.tell(pid, Told::QuiesceAtCut(seq));
            }
            Effect::Continue { pid, seq, goals } => {
                let calls = goals.get(&part(pid)).copied().unwrap_or(0);
                self.tell(pid, Told::Continue(seq, calls));
            }
            Effect::Settle { pid, seq } => self.tell(pid, Told::Settle(seq)),
            Effect::Rejoin { seq, asked } => match asked {
                Asked::Remake { pid, key } => self.tell(pid, Told::Remake(seq, key)),
                Asked::Join { pid, .. } => self.tell(pid, Told::Join(seq)),
                Asked::Bind { pid } => self.tell(pid, Told::Bind(seq)),
            },
            Effect::TakeTables { seq } => {
                let outcome = self.fails(0);
                self.waiting.push_back(Input::Collected { seq, outcome });
            }
            Effect::TellQuiesced { seq } => {
                self.owed.0 -= 1;
                if !self.sidecar_is_there {
                    self.waiting.push_back(Input::Abandon { seq: Some(seq) });
                }
            }
            Effect::Prepare { seq } => {
                let outcome = self.fails(1);
                let connected = self.connected();
                self.waiting.push_back(Input::Prepared {
                    seq,
                    outcome,
                    connected,
                });
            }
            Effect::RefuseDump { .. } => self.owed.1 -= 1,
            Effect::StopListening => self.is_listening = false,
            Effect::Detach { pid, seq } => match self.connected().contains(&pid) {
                true => self.tell(pid, Told::Detach(seq)),
                false => self
                    .waiting
                    .push_back(Input::Disconnected { pid, why: None }),
            },
            Effect::StartDump { seq, .. } => {
                self.dump = Some(seq);
                match self.fails(2) {
                    Ok(()) => self.waiting.push_back(Input::DumpBegan {
                        seq,
                        bound: Duration::from_secs(400),
                    }),
                    Err(error) => self.end_dump(Err(Undumped { error, lost: None })),
                }
            }
            Effect::TellDumped { seq, .. } => {
                self.owed.1 -= 1;
                if !self.sidecar_is_there {
                    self.waiting.push_back(Input::Abandon { seq: Some(seq) });
                }
            }
            Effect::Listen { seq } => {
                self.is_listening = self.fails(3).is_ok();
                let connected = match self.is_listening {
                    true => Ok(self.connected()),
                    false => Err("no socket".to_owned()),
                };
                self.waiting.push_back(Input::Listening { seq, connected });
            }
            Effect::SendMemory { pid, seq } => self.tell(pid, Told::Memory(seq)),
            Effect::Resume { pid, .. } => self.tell(pid, Told::Resume),
            Effect::Answer(ToSidecar::Quiesced { .. }) => self.owed.0 -= 1,
            Effect::Answer(ToSidecar::Dumped { .. }) => self.owed.1 -= 1,
            // It answers whatever was asked before.
            Effect::Answer(ToSidecar::Resumed { .. }) => self.owed = (0, 0),
            Effect::LoseJob(_) | Effect::KillEverything | Effect::SaveAndKill => {
                if self.job == Job::Runs {
                    self.job = Job::Condemned;
                }
            }
            Effect::GiveUpOnDriver => self.gave_up = true,
            Effect::CancelDump | Effect::Answer(_) | Effect::CleanUp(_) | Effect::Failpoint(_) => {}
        }
    }

    fn end_dump(&mut self, outcome: Result<Box<DumpFacts>, Undumped>) {
        if self.dump.take().is_some() {
            self.waiting.push_back(Input::DumpEnded { outcome });
        }
    }

    // ---------------------------------------------------------------------------------------------- the job

    fn process(&mut self, pid: ProcessId, does: Does) {
        if self.job == Job::Ended {
            return;
        }
        match does {
            Does::Obeys | Does::Refuses => self.listens(pid, does),
            Does::Disconnects => self.disconnects(pid),
            Does::Connects => {
                if self.is_listening {
                    self.connects(pid);
                }
            }
            Does::SlipsIn => self.connects(pid),
            Does::Dies => {
                self.sent.remove(&pid);
                if self.processes.remove(&pid).is_some() {
                    self.input(Input::ProcessEnded { pid });
                }
            }
        }
    }

    fn listens(&mut self, pid: ProcessId, does: Does) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        let Some(told) = process.inbox.pop_front() else {
            return;
        };
        let outcome = match does {
            Does::Obeys => Ok(()),
            _ => Err(Refusal::Capturing),
        };
        match told {
            Told::QuiesceAtCut(seq) | Told::Continue(seq, _) => {
                if process.inbox.front() == Some(&Told::Resume) {
                    return;
                }
                process.is_asked = outcome.is_ok();
                if outcome.is_err() {
                    process.is_gate_open = true;
                    self.input(Input::Quiesced { pid, seq, outcome });
                    return;
                }
                if let Told::Continue(_, calls) = told {
                    process.calls = process.calls.max(calls);
                }
                process.is_gate_open = false;
                let position = [(part(pid), process.calls)].into();
                self.input(Input::Position {
                    pid,
                    seq,
                    standing: Standing::Held,
                    position,
                });
            }
            Told::Quiesce(seq) | Told::Settle(seq) => {
                // One that was told to go on meanwhile answers nothing.
                if process.inbox.front() == Some(&Told::Resume) {
                    return;
                }
                process.is_gate_open = outcome.is_err();
                if outcome.is_ok() && communicates(pid) {
                    self.input(Input::Multicasts {
                        pid,
                        seq,
                        attached: false,
                        held: vec![multicast(self.ranks)],
                    });
                }
                self.input(Input::Quiesced { pid, seq, outcome });
            }
            Told::Detach(seq) => {
                process.memory = match outcome {
                    Ok(()) => Memory::Released(seq),
                    Err(_) => Memory::Partly(seq),
                };
                process.is_whole &= !communicates(pid);
                process.has_joined = false;
                let is_whole = outcome.is_ok();
                self.input(Input::Detached { pid, seq, outcome });
                if is_whole {
                    self.disconnects(pid);
                }
            }
            Told::Memory(seq) => self.gets_memory(pid, seq, outcome),
            Told::Remake(seq, key) => {
                let outcome = outcome.map(|()| Done::Remade(key));
                self.input(Input::Rejoined { pid, seq, outcome });
            }
            Told::Join(seq) => {
                process.has_joined = outcome.is_ok();
                let outcome = outcome.map(|()| Done::Joined);
                self.input(Input::Rejoined { pid, seq, outcome });
            }
            Told::Bind(seq) => {
                process.is_whole = outcome.is_ok();
                let outcome = outcome.map(|()| Done::Bound);
                self.input(Input::Rejoined { pid, seq, outcome });
            }
            Told::Resume => {
                assert_eq!(
                    process.memory,
                    Memory::There,
                    "process {pid} goes on without its memory"
                );
                assert!(
                    process.is_whole || self.job != Job::Runs,
                    "process {pid} goes on without its multicast object"
                );
                process.is_gate_open = true;
                process.is_asked = false;
            }
        }
    }

    fn gets_memory(&mut self, pid: ProcessId, seq: Sequence, outcome: Result<(), Refusal>) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        self.sent.remove(&pid);
        // One whose request to detach was lost runs, and cannot take its object apart.
        let runs = process.memory == Memory::There && process.is_gate_open;
        let outcome = match runs && communicates(pid) {
            true => Err(Refusal::Capturing),
            false => outcome,
        };
        if outcome.is_ok() {
            process.memory = Memory::There;
            if communicates(pid) {
                process.is_whole = false;
                process.has_joined = false;
                self.input(Input::Multicasts {
                    pid,
                    seq,
                    attached: true,
                    held: vec![multicast(self.ranks)],
                });
            }
        }
        self.input(Input::Attached { pid, seq, outcome });
    }

    fn disconnects(&mut self, pid: ProcessId) {
        let Some(process) = self.processes.get_mut(&pid) else {
            return;
        };
        if !process.is_connected {
            return;
        }
        process.is_connected = false;
        process.is_asked = false;
        process.inbox.clear();
        self.sent.remove(&pid);
        if process.memory == Memory::There {
            // Without the agent it opens its gate by itself.
            process.is_gate_open = true;
        }
        self.input(Input::Disconnected { pid, why: None });
    }

    fn connects(&mut self, pid: ProcessId) {
        let process = self.processes.entry(pid).or_insert_with(|| Process {
            is_connected: false,
            ..Process::new()
        });
        if process.is_connected {
            return;
        }
        process.is_connected = true;
        match process.memory {
            Memory::There => self.input(Input::Newcomer { pid }),
            Memory::Released(seq) | Memory::Partly(seq) => {
                self.input(Input::Returned { pid, seq });
            }
        }
    }

    /// Says what nobody asked for.
    fn babbles(&mut self, pid: ProcessId, what: u8) {
        let seq = self.seq.saturating_sub(u64::from(what / 8));
        let refusal = || Err(Refusal::Capturing);
        self.input(match what % 8 {
            0 => Input::Detached {
                pid,
                seq,
                outcome: Ok(()),
            },
            1 => Input::Detached {
                pid,
                seq: 0,
                outcome: refusal(),
            },
            2 => Input::Native {
                pid,
                seq,
                bytes: 1 << 30,
            },
            3 if (what / 8).is_multiple_of(2) => Input::Position {
                pid: PROCESSES + 9,
                seq,
                standing: Standing::Held,
                position: [(part(2), u64::MAX)].into(),
            },
            3 => Input::Quiesced {
                pid: PROCESSES + 9,
                seq,
                outcome: Ok(()),
            },
            4 => Input::Collected {
                seq: 0,
                outcome: Ok(()),
            },
            5 => Input::Listening {
                seq: 0,
                connected: Ok(vec![pid]),
            },
            6 => Input::DumpBegan {
                seq: 0,
                bound: Duration::from_secs(1),
            },
            _ => Input::Tick,
        });
    }

    fn end_job(&mut self) {
        if self.job != Job::Ended {
            self.job = Job::Ended;
            self.processes.clear();
            self.input(Input::JobEnded);
        }
    }

    // ---------------------------------------------------------------------------------------------- a script

    pub fn event(&mut self, event: Event) {
        let number = |right| match right {
            true => self.seq,
            false => self.seq + 7,
        };
        match event {
            Event::Begin => self.begin(),
            Event::Dump(right) => {
                self.owed.1 += 1;
                let seq = number(right);
                self.input(Input::Dump { seq });
            }
            Event::Attach(right) => {
                let seq = number(right);
                self.input(Input::Attach { seq });
            }
            Event::Abandon => {
                let seq = Some(self.seq);
                self.input(Input::Abandon { seq });
            }
            Event::Sidecar(is_there) => {
                self.sidecar_is_there = is_there;
                if !is_there {
                    self.input(Input::Abandon { seq: None });
                }
            }
            Event::Process(pid, does) => self.process(pid, does),
            Event::Babbles(pid, what) => self.babbles(pid, what),
            Event::Dumped => {
                let seq = self.dump;
                self.end_dump(Ok(facts()));
                if seq.is_some() {
                    self.input(Input::Tick);
                }
            }
            Event::DumpFails(lost) => {
                self.end_dump(Err(Undumped {
                    error: AttemptError::Criu("it failed".into()),
                    lost: lost.then(|| "a process stays locked".into()),
                }));
                self.input(Input::Tick);
            }
            Event::Agent(what) => self.agent_fails = what,
            Event::Passes(ms) => {
                self.now += Duration::from_millis(ms);
                self.input(Input::Tick);
            }
            Event::Deadline => self.meet_deadline(),
            Event::JobEnds => self.end_job(),
        }
    }

    /// As the main loop begins one: not while anything is under way, or a process is about to connect again.
    fn begin(&mut self) {
        let all_there = self.processes.values().all(|process| process.is_connected);
        if self.job != Job::Runs || !all_there || !self.is_listening {
            return;
        }
        let was_under_way = self.attempts.is_under_way();
        let seq = self.seq + 1;
        self.owed.0 += 1;
        if !was_under_way {
            self.seq = seq;
            let ranks = self.processes.keys().filter(|pid| communicates(**pid));
            self.ranks = ranks.count() as u32;
        }
        let processes = self.connected();
        let communicating = (processes.iter().copied())
            .filter(|pid| communicates(*pid))
            .collect();
        self.input(Input::Begin {
            seq,
            time: QuiesceTime::at_once(TIMEOUT_MS),
            processes,
            communicating,
        });
        assert!(!was_under_way || self.seq < seq, "two attempts at a time");
    }

    pub fn meet_deadline(&mut self) {
        if let Some(deadline) = self.attempts.deadline() {
            self.now = self.now.max(deadline);
            self.input(Input::Tick);
        }
    }

    /// Nothing happens any more but that time passes and jobs that are killed end. It must not take long.
    pub fn settle(&mut self) {
        for _ in 0..DEADLINES {
            if !self.attempts.is_under_way() || self.gave_up {
                return;
            }
            if self.attempts.deadline().is_some() {
                self.meet_deadline();
            } else {
                assert_eq!(
                    self.job,
                    Job::Condemned,
                    "nothing leads on: {:?}",
                    self.attempts
                );
                self.end_job();
            }
        }
        panic!("it does not come to an end: {:?}", self.attempts);
    }

    /// Every process does what it was told, and comes back where it can, until nobody has anything left to do.
    pub fn obey(&mut self) {
        for _ in 0..64 {
            let pids: Vec<ProcessId> = self.processes.keys().copied().collect();
            for pid in pids {
                self.process(pid, Does::Connects);
                self.process(pid, Does::Obeys);
            }
        }
    }

    pub fn check_end(&mut self) {
        if self.gave_up || self.job != Job::Runs {
            return;
        }
        self.obey();
        assert!(!self.attempts.is_under_way());
        for (pid, process) in &self.processes {
            assert!(process.is_connected, "process {pid} cannot come back");
            assert_eq!(process.memory, Memory::There, "process {pid}");
            assert!(
                process.is_gate_open,
                "the gate of process {pid} stays closed"
            );
        }
        assert_eq!(self.owed, (0, 0), "answers to Quiesce and Dump");
        assert!(self.is_listening);
    }
}

fn facts() -> Box<DumpFacts> {
    Box::new(DumpFacts {
        times: DumpTimes::default(),
        processes: Vec::new(),
        image_bytes: 1,
        driver_version: 13000,
    })
}

impl World {
    pub fn seen_running(&self) {
        assert_eq!(self.job, Job::Runs, "nobody but the sidecar did anything");
    }
}
