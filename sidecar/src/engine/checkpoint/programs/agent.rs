//! The agent's side of the conversation, played by a thread that runs the job as well, call by call.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

use phos_gpu::in_memory::InMemory;
use phos_protocol::agent::{
    AttemptError, DumpFacts, DumpTimes, JobState, Process, ToAgent, ToSidecar,
};
use phos_protocol::channel::{self, BATCH, RecvError};
use phos_protocol::shim::{self, Calls, Place, Sequence, TableEntry, Waits};
use phos_protocol::types::{Device, GpuUuid};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::job::{Content, Job, MEMBER, Made, Memory};

/// What is meant where any wait of the job's is.
const ANY: Calls = Calls {
    least: 0,
    most: u32::MAX,
};
/// Calls of the job's after which no certain wait is awaited any more.
const ENOUGH: u32 = 5000;
/// A job with nothing to do has waited for its sidecar in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// How often somebody else writes while the job itself waits.
const HAUNTED: Duration = Duration::from_millis(1);
/// A sidecar gives up after five seconds.
const LATE: Duration = Duration::from_millis(4500);

/// What happened to an attempt, for the test.
pub(in crate::engine) enum Told {
    /// The job was quiet, and held this.
    Quiet {
        seq: Sequence,
        content: Vec<Content>,
    },
    /// It was dumped to this.
    Dumped(Vec<u8>),
    /// The agent has it fail.
    Failed(Sequence),
    /// The job has made all its calls, and waits for the sidecar.
    Spent,
    /// It went on by itself, or could have: the sidecar had no more time than that.
    Late(Sequence),
}

/// What the job is doing.
enum Doing {
    /// It makes so many more calls, and then none until it is asked for something.
    Runs(u64),
    /// It makes as many as it takes to come to such a wait.
    Until {
        seq: Sequence,
        waits: Waits,
        calls: u32,
    },
    /// It waits for memory, and makes so many more calls then.
    Memory(u64),
    /// It is held, where it had waited after so many calls if that is known.
    Held { place: Option<u32> },
}

/// How far the job may go.
struct Credit {
    seq: Sequence,
    /// Calls that it has made since it runs again.
    made: u64,
    /// Since when.
    since: Instant,
    /// Calls that it may have made.
    most: u64,
    /// Then it goes on by itself.
    until: Instant,
}

impl Credit {
    const fn is_spent(&self) -> bool {
        self.made >= self.most
    }
}

/// The agent with its job.
pub(super) struct Agent {
    socket: OwnedFd,
    job: Job,
    gpus: Arc<InMemory>,
    devices: Vec<Device>,
    told: Sender<Told>,
    /// The directory that the images are in.
    images: PathBuf,
    credit: Option<Credit>,
    faults: Faults,
}

/// Whether attempts fail for no fault of the sidecar's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::engine) enum Faults {
    /// One in forty at each of two steps.
    Some,
    None,
}

impl Agent {
    pub(super) fn new(
        socket: OwnedFd,
        job: Job,
        gpus: &Arc<InMemory>,
        devices: Vec<Device>,
        told: Sender<Told>,
        images: PathBuf,
        faults: Faults,
    ) -> Agent {
        Agent {
            socket,
            job,
            gpus: Arc::clone(gpus),
            devices,
            told,
            images,
            credit: None,
            faults,
        }
    }

    /// Serves one sidecar until it has gone.
    pub(super) fn serve(mut self) {
        let mut doing = Doing::Runs(0);
        loop {
            let within = self.has_time(&doing);
            doing = match self.receive(within) {
                Some(Ok(message)) => self.answer(doing, message),
                Some(Err(RecvError::Closed)) => return,
                Some(Err(e)) => panic!("{e}"),
                None => self.go_on(doing),
            };
        }
    }

    /// How long it can wait for the sidecar's next word; no time: the job has something to do.
    fn has_time(&self, doing: &Doing) -> Duration {
        match (doing, &self.credit) {
            (Doing::Runs(_), Some(credit)) if credit.is_spent() => {
                let left = credit.until.saturating_duration_since(Instant::now());
                match self.job.is_haunted {
                    true => left.min(HAUNTED),
                    false => left,
                }
            }
            (Doing::Until { .. }, _) | (Doing::Runs(1..), _) | (Doing::Runs(0), Some(_)) => {
                Duration::ZERO
            }
            (Doing::Runs(0), None) | (Doing::Memory(_) | Doing::Held { .. }, _) => PATIENCE,
        }
    }

    fn receive(&self, within: Duration) -> Option<Result<ToAgent, RecvError>> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        let within = Timespec::try_from(within).unwrap();
        let heard = poll(&mut fds, Some(&within)).unwrap() > 0;
        heard.then(|| channel::recv(&self.socket).map(|(message, _)| message))
    }

    fn say(&self, message: &ToSidecar) {
        say(&self.socket, message, &[]);
    }

    fn tell(&self, told: Told) {
        // Not every test listens.
        let _ = self.told.send(told);
    }

    /// A number of calls after which the job has nothing to do for a while.
    fn some(&mut self) -> Doing {
        Doing::Runs(self.job.number(600))
    }

    /// The job goes on.
    fn go_on(&mut self, doing: Doing) -> Doing {
        match doing {
            Doing::Runs(left) => match &mut self.credit {
                Some(credit) if credit.is_spent() => {
                    let seq = credit.seq;
                    if Instant::now() < credit.until {
                        if self.job.is_haunted {
                            self.job.haunt();
                        }
                        return Doing::Runs(left);
                    }
                    self.tell(Told::Late(seq));
                    self.credit = None;
                    self.some()
                }
                Some(_) => {
                    if self.job.go_on() == Made::Call
                        && let Some(credit) = &mut self.credit
                    {
                        credit.made += 1;
                        let (seq, is_spent) = (credit.seq, credit.is_spent());
                        if is_spent {
                            self.tell(Told::Spent);
                            self.say(&ToSidecar::Spent { seq });
                        }
                    }
                    self.come_and_go(left)
                }
                None => {
                    self.job.go_on();
                    self.come_and_go(left - 1)
                }
            },
            Doing::Until { seq, waits, calls } => {
                let is = |some: &Calls, n| (some.least..=some.most).contains(&n);
                let is_meant =
                    |n| is(&waits.after, n) && !waits.except.iter().any(|some| is(some, n));
                match self.job.go_on() {
                    Made::Wait(n) if is_meant(n) => {
                        self.say(&ToSidecar::Moment { seq, waited: true });
                        Doing::Held { place: Some(n) }
                    }
                    _ if calls == ENOUGH => {
                        self.say(&ToSidecar::Moment { seq, waited: false });
                        Doing::Runs(0)
                    }
                    _ => Doing::Until {
                        seq,
                        waits,
                        calls: calls + 1,
                    },
                }
            }
            Doing::Memory(_) | Doing::Held { .. } => panic!("the sidecar has nothing to say"),
        }
    }

    /// Memory comes and goes, and the job may have to wait for it.
    fn come_and_go(&mut self, left: u64) -> Doing {
        if !self.job.churns || !self.job.now_and_then(10) {
            return Doing::Runs(left);
        }
        if self.job.now_and_then(2) {
            let keys = Vec::from_iter(self.job.free());
            self.gpus.set_used(self.job.used());
            self.say(&ToSidecar::Freed { keys });
            return Doing::Runs(left);
        }
        let allocation = self.job.allocate();
        self.gpus.set_used(self.job.used());
        if self.job.now_and_then(3) {
            return Doing::Runs(left);
        }
        self.say(&ToSidecar::NeedMemory {
            gpu: GpuUuid([allocation.device as u8; 16]),
            bytes: allocation.bytes,
        });
        Doing::Memory(left)
    }

    /// Does what the sidecar says.
    fn answer(&mut self, doing: Doing, message: ToAgent) -> Doing {
        match (message, doing) {
            (ToAgent::Hello { .. }, doing) => {
                self.say(&ToSidecar::Welcome {
                    version: env!("CARGO_PKG_VERSION").into(),
                    agent: 1,
                    job: JobState::Running,
                    restarts: 0,
                    command: vec!["program".into()],
                    seq: 0,
                    epoch: 0,
                });
                doing
            }
            (ToAgent::TakenOver { .. } | ToAgent::Terminate, doing) => doing,
            (ToAgent::Finish { seq }, doing) => {
                std::fs::remove_dir_all(self.image(seq)).unwrap();
                doing
            }
            (ToAgent::MemoryReleased, Doing::Memory(left)) => Doing::Runs(left),
            (ToAgent::MemoryReleased, doing) => doing,
            (ToAgent::Watch { time, .. }, doing) if time.for_ms == 0 => match doing {
                Doing::Until { .. } => Doing::Runs(0),
                Doing::Held { .. } => self.some(),
                doing => doing,
            },
            (ToAgent::Watch { seq, .. }, _) => Doing::Until {
                seq,
                waits: Waits {
                    after: ANY,
                    except: Vec::new(),
                },
                calls: 0,
            },
            (ToAgent::WatchFor { seq, waits, .. }, _) => Doing::Until {
                seq,
                waits,
                calls: 0,
            },
            (ToAgent::Quiesce { seq, .. }, doing) => {
                let place = match doing {
                    Doing::Held { place } => place,
                    _ => None,
                };
                self.fall_quiet(seq, place);
                Doing::Held { place }
            }
            (ToAgent::Dump { seq }, held @ Doing::Held { .. }) => match self.dump(seq) {
                true => held,
                false => self.some(),
            },
            (ToAgent::Credit { seq, credit }, doing) => {
                let since = self.credit.as_ref().map(|credit| credit.since);
                if since.is_some_and(|since| since.elapsed() > LATE) {
                    self.tell(Told::Late(seq));
                }
                self.credit = self.credit(seq, credit);
                doing
            }
            (ToAgent::Attach { seq }, Doing::Held { .. }) => {
                if let Some(credit) = &mut self.credit {
                    credit.since = Instant::now();
                }
                self.run_again(seq);
                self.some()
            }
            (ToAgent::Abandon { seq }, Doing::Held { .. }) => {
                self.credit = None;
                self.run_again_undone(seq);
                self.some()
            }
            (message, _) => panic!("that was not to be said now: {message:?}"),
        }
    }

    /// The credit from now on: calls are counted from when the job ran again.
    fn credit(&self, seq: Sequence, credit: Option<shim::Credit>) -> Option<Credit> {
        let now = (0, Instant::now());
        let (made, since) = (self.credit.as_ref()).map_or(now, |c| (c.made, c.since));
        credit.map(|given| Credit {
            seq,
            made,
            since,
            most: given.calls,
            until: Instant::now() + Duration::from_millis(given.for_ms.into()),
        })
    }

    fn fall_quiet(&mut self, seq: Sequence, place: Option<u32>) {
        self.credit = None;
        let content = self.job.content();
        self.tell(Told::Quiet { seq, content });
        let place = place.map(|calls| Place::Wait { calls });
        self.say(&ToSidecar::TakesCredit { seq, place });
        for some in self.job.memory.chunks_mut(BATCH) {
            let entry = |memory: &Memory| TableEntry {
                allocation: memory.allocation,
                requested: memory.allocation.bytes,
                with_fd: !memory.is_known,
            };
            let entries = some.iter().map(entry).collect();
            let new = some.iter().filter(|memory| !memory.is_known);
            let fds: Vec<_> = new.map(|memory| memory.file.as_fd()).collect();
            say(&self.socket, &ToSidecar::Table { seq, entries }, &fds);
            some.iter_mut().for_each(|memory| memory.is_known = true);
        }
        let outcome = Ok(vec![self.process()]);
        self.say(&ToSidecar::Quiesced { seq, outcome });
    }

    fn process(&self) -> Process {
        Process {
            member: MEMBER,
            devices: self.devices.clone(),
        }
    }

    /// Dumps; false: it fails, and the job runs on.
    fn dump(&mut self, seq: Sequence) -> bool {
        self.say(&ToSidecar::ControlSaved { seq });
        if self.fails() {
            self.tell(Told::Failed(seq));
            let outcome = Err(AttemptError::Criu("there is none".into()));
            self.say(&ToSidecar::Dumped { seq, outcome });
            return false;
        }
        std::thread::sleep(Duration::from_micros(self.job.number(2000)));
        if self.fails() {
            self.tell(Told::Failed(seq));
            // It would wait no longer.
            self.run_again_undone(seq);
            return false;
        }
        let image = self.image(seq);
        let pages: Vec<u8> = (0..self.job.number(3000))
            .map(|_| self.job.number(256) as u8)
            .collect();
        let bytes = pages.len() as u64;
        std::fs::create_dir(&image).unwrap();
        std::fs::write(image.join("pages.img"), &pages).unwrap();
        self.tell(Told::Dumped(pages));
        let facts = DumpFacts {
            times: DumpTimes::default(),
            processes: vec![self.process()],
            image_bytes: bytes,
            driver_version: 13_000,
        };
        let outcome = Ok(Box::new(facts));
        let directory = std::fs::File::open(image).unwrap();
        say(
            &self.socket,
            &ToSidecar::Dumped { seq, outcome },
            &[directory.as_fd()],
        );
        true
    }

    fn fails(&mut self) -> bool {
        self.faults == Faults::Some && self.job.now_and_then(40)
    }

    /// The directory of the job's image.
    fn image(&self, seq: Sequence) -> PathBuf {
        self.images.join(seq.to_string())
    }

    fn run_again(&self, seq: Sequence) {
        self.say(&ToSidecar::Resumed {
            seq,
            stop_ns: 1_000_000,
            attach_ns: 1000,
            whole: true,
        });
    }

    /// The same where the attempt was undone.
    fn run_again_undone(&self, seq: Sequence) {
        self.say(&ToSidecar::Resumed {
            seq,
            stop_ns: 1_000_000,
            attach_ns: 1000,
            whole: false,
        });
    }
}

fn say(socket: &OwnedFd, message: &ToSidecar, fds: &[BorrowedFd<'_>]) {
    match channel::send(socket, message, fds) {
        Err(e) if !e.peer_is_gone() => panic!("{e}"),
        _ => {}
    }
}
