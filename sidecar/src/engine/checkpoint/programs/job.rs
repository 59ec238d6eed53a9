//! The job: memory, and a program from a seed that writes it call by call.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

use phos_gpu::host::SLOT;
use phos_gpu::in_memory;
use phos_protocol::types::{Allocation, AllocationKey, AllocationKind, MemberId};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The job's one process.
pub(super) const MEMBER: MemberId = MemberId::here(4711);
/// Sizes of memory are a multiple of this.
const GRANULARITY: u64 = 4096;

/// What is written when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// As training does: activations all through a step, weights and the optimizer's state at its end. Each step is as the one before.
    Steady,
    /// Whatever comes.
    Wild,
}

/// Memory of the job's.
pub(super) struct Memory {
    pub(super) allocation: Allocation,
    pub(super) file: File,
    /// Weights: what a steady program writes at the end of its steps only.
    is_weight: bool,
    /// Its descriptor was sent.
    pub(super) is_known: bool,
}

/// What some memory held while the job was quiet.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::engine) struct Content {
    pub(super) key: AllocationKey,
    pub(super) device: i32,
    pub(super) bytes: Vec<u8>,
}

/// One call, or a wait.
#[derive(Debug, Clone, Copy)]
enum Op {
    /// Writes a part of the memory that is this one in the order of its kind.
    Write {
        weight: bool,
        which: u32,
        part: u32,
        what: What,
    },
    /// Copies from one to another.
    Copy {
        from: u32,
        to: u32,
    },
    /// Writes nothing.
    Read,
    Wait,
}

/// What is written. It belongs to the call, so that a steady job's step changes what the one before changed.
#[derive(Debug, Clone, Copy)]
enum What {
    Zeros,
    /// What is somewhere else as well.
    Common,
    /// What never was there before.
    New,
}

/// What came of the job's next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Call,
    /// It has waited for its own work, after so many calls.
    Wait(u32),
}

/// A job from a seed.
pub(in crate::engine) struct Job {
    rng: ChaCha8Rng,
    pub(super) order: Order,
    /// Somebody writes without a call that counts: another process, the host, a kernel that runs on.
    pub(super) is_haunted: bool,
    /// Memory comes and goes.
    pub(super) churns: bool,
    devices: i32,
    pub(super) memory: Vec<Memory>,
    step: Vec<Op>,
    /// Where in its step it is.
    at: usize,
    since_wait: u32,
    written: u64,
    last_id: u64,
    /// Its memory is in large parts, each a chunk or two, as a snapshot takes a chunk's room for any part of one.
    pub(super) is_large: bool,
}

impl Job {
    pub(in crate::engine) fn new(seed: u64, devices: usize) -> Job {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let one_in = |rng: &mut ChaCha8Rng, of: u32| rng.random_range(0..of) == 0;
        let order = if one_in(&mut rng, 5) {
            Order::Wild
        } else {
            Order::Steady
        };
        let mut job = Job {
            order,
            is_haunted: one_in(&mut rng, 5),
            churns: one_in(&mut rng, 4),
            devices: devices as i32,
            memory: Vec::new(),
            step: Vec::new(),
            at: 0,
            since_wait: 0,
            written: 0,
            last_id: 0,
            is_large: one_in(&mut rng, 6),
            rng,
        };
        let most = if job.is_large { 9 } else { 24 };
        for _ in 0..job.rng.random_range(4..most) {
            job.allocate();
        }
        job.step = job.write_a_step();
        if job.order == Order::Steady {
            // What its first steps change, later ones may leave as it is.
            for _ in 0..4 * job.step.len() {
                job.make(job.step[job.at]);
            }
        }
        job
    }

    /// A program's step: some 100 to 500 calls, and the waits in it.
    fn write_a_step(&mut self) -> Vec<Op> {
        let rng = &mut self.rng;
        let calls = rng.random_range(100..500);
        // A second one comes after so few of them that nobody takes it for the first.
        let second = (rng.random_range(0..3) == 0).then(|| rng.random_range(1..calls / 3));
        let optimizer = calls - rng.random_range(1..calls / 8);
        let mut step = Vec::with_capacity(calls + 2);
        for n in 0..calls {
            let weight = n >= optimizer;
            let (which, part) = (rng.random(), rng.random());
            step.push(match rng.random_range(0..6) {
                0 if !weight => Op::Read,
                1 if !weight => Op::Copy {
                    from: rng.random(),
                    to: which,
                },
                _ => Op::Write {
                    weight,
                    which,
                    part,
                    what: match rng.random_range(0..8) {
                        0 => What::Zeros,
                        1 => What::Common,
                        _ => What::New,
                    },
                },
            });
            if second == Some(n) {
                step.push(Op::Wait);
            }
        }
        step.push(Op::Wait);
        step
    }

    pub(super) fn allocate(&mut self) -> Allocation {
        let rng = &mut self.rng;
        // Some have several chunks, the last of them a short one.
        let pages = match (self.is_large, rng.random_range(0..12)) {
            (true, _) | (_, 0) => rng.random_range(200..500),
            _ => rng.random_range(1..16),
        };
        self.last_id += 1;
        let allocation = Allocation {
            key: AllocationKey {
                owner: MEMBER,
                id: self.last_id,
            },
            device: rng.random_range(0..self.devices),
            bytes: pages * GRANULARITY,
            kind: AllocationKind::Plain,
            rdma: false,
        };
        // Some of each.
        let is_weight = match self.memory.len() {
            0 => true,
            1 => false,
            _ => rng.random_range(0..6) > 0,
        };
        self.memory.push(Memory {
            file: in_memory::memory(allocation.bytes).unwrap(),
            allocation,
            is_weight,
            is_known: false,
        });
        allocation
    }

    /// Frees some of the memory, if there is enough of it.
    pub(super) fn free(&mut self) -> Option<AllocationKey> {
        let which = self.rng.random_range(0..self.memory.len());
        (self.memory.len() > 2).then(|| self.memory.swap_remove(which).allocation.key)
    }

    /// Bytes of its memory on the GPU that has most of it.
    pub(super) fn used(&self) -> u64 {
        self.most(|memory| memory.allocation.bytes)
    }

    /// The same without weights.
    pub(super) fn used_by_others_than_weights(&self) -> u64 {
        self.most(|memory| match memory.is_weight {
            true => 0,
            false => memory.allocation.bytes,
        })
    }

    /// What a snapshot of it takes, on the GPU where it takes most: chunks of a size.
    pub(super) fn room_for_others_than_weights(&self) -> u64 {
        self.most(|memory| match memory.is_weight {
            true => 0,
            false => memory.allocation.bytes.next_multiple_of(SLOT as u64),
        })
    }

    fn most(&self, of: impl Fn(&Memory) -> u64) -> u64 {
        let on = |device| {
            let here = self.memory.iter();
            let here = here.filter(|m| m.allocation.device == device);
            here.map(&of).sum::<u64>()
        };
        (0..self.devices).map(on).max().unwrap_or(0)
    }

    /// One in so many times.
    pub(super) fn now_and_then(&mut self, one_in: u32) -> bool {
        self.rng.random_range(0..one_in) == 0
    }

    pub(super) fn number(&mut self, below: u64) -> u64 {
        self.rng.random_range(0..below)
    }

    /// Its next call, or its wait for them.
    pub(super) fn go_on(&mut self) -> Made {
        let op = match self.order {
            Order::Steady => self.step[self.at],
            Order::Wild => {
                let which = self.rng.random_range(0..self.step.len());
                self.step[which]
            }
        };
        if self.is_haunted && self.now_and_then(8) {
            self.haunt();
        }
        self.make(op)
    }

    /// Makes this call; it is at the next one then.
    fn make(&mut self, op: Op) -> Made {
        self.at = (self.at + 1) % self.step.len();
        match op {
            Op::Wait => return Made::Wait(std::mem::take(&mut self.since_wait)),
            Op::Read => {}
            Op::Write {
                weight,
                which,
                part,
                what,
            } => {
                if let Some(memory) = self.any(which, |memory| memory.is_weight == weight) {
                    let bytes = self.memory[memory].allocation.bytes;
                    self.write(memory, part_of(bytes, part), what);
                }
            }
            Op::Copy { from, to } => self.copy(from, to),
        }
        self.since_wait += 1;
        Made::Call
    }

    /// Writes without a call.
    pub(super) fn haunt(&mut self) {
        let which = self.rng.random_range(0..self.memory.len());
        let part = part_of(self.memory[which].allocation.bytes, self.rng.random());
        self.write(which, part, What::New);
    }

    /// One of those for which that holds.
    fn any(&self, which: u32, holds: impl Fn(&Memory) -> bool) -> Option<usize> {
        let holds = |i: &usize| holds(&self.memory[*i]);
        let all: Vec<usize> = (0..self.memory.len()).filter(holds).collect();
        all.get(which as usize % all.len().max(1)).copied()
    }

    /// Into what is no weight.
    fn copy(&mut self, from: u32, to: u32) {
        let Some(to) = self.any(to, |memory| !memory.is_weight) else {
            return;
        };
        let from = from as usize % self.memory.len();
        let (source, target) = (&self.memory[from], &self.memory[to]);
        let bytes = source.allocation.bytes.min(target.allocation.bytes);
        let mut content = vec![0; bytes as usize];
        source.file.read_exact_at(&mut content, 0).unwrap();
        target.file.write_all_at(&content, 0).unwrap();
    }

    fn write(&mut self, which: usize, part: Range<u64>, what: What) {
        self.written += 1;
        let value: u64 = match what {
            What::Zeros => 0,
            What::Common => 77,
            What::New => self.written | 1 << 40,
        };
        let words = (part.end - part.start) / 8;
        let bytes = value.to_le_bytes().repeat(words as usize);
        let file = &self.memory[which].file;
        file.write_all_at(&bytes, part.start).unwrap();
    }

    /// What all its memory holds, in the order of names.
    pub(super) fn content(&self) -> Vec<Content> {
        let content = |memory: &Memory| {
            let mut bytes = vec![0; memory.allocation.bytes as usize];
            memory.file.read_exact_at(&mut bytes, 0).unwrap();
            Content {
                key: memory.allocation.key,
                device: memory.allocation.device,
                bytes,
            }
        };
        let mut all: Vec<Content> = self.memory.iter().map(content).collect();
        all.sort_unstable_by_key(|content| content.key);
        all
    }
}

/// Some part of so many bytes, in words; half of the time all of them.
fn part_of(bytes: u64, part: u32) -> Range<u64> {
    if part.is_multiple_of(2) {
        return 0..bytes;
    }
    let words = bytes / 8;
    let from = u64::from(part) % words;
    let length = 1 + u64::from(part >> 8) % (words - from).min(2000);
    from * 8..(from + length) * 8
}
