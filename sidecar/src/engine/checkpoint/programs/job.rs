//! The job: memory, and a program from a seed that writes it call by call.

use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

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
pub(super) enum Habit {
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
pub(super) struct Content {
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

/// What came of the job's next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Made {
    Call,
    /// It has waited for its own work, after so many calls.
    Wait(u32),
}

/// A job from a seed.
pub(super) struct Job {
    rng: ChaCha8Rng,
    pub(super) habit: Habit,
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
}

impl Job {
    pub(super) fn new(seed: u64, devices: usize) -> Job {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let one_in = |rng: &mut ChaCha8Rng, of: u32| rng.random_range(0..of) == 0;
        let habit = if one_in(&mut rng, 5) {
            Habit::Wild
        } else {
            Habit::Steady
        };
        let mut job = Job {
            habit,
            is_haunted: one_in(&mut rng, 5),
            churns: one_in(&mut rng, 4),
            devices: devices as i32,
            memory: Vec::new(),
            step: Vec::new(),
            at: 0,
            since_wait: 0,
            written: 0,
            last_id: 0,
            rng,
        };
        for _ in 0..job.rng.random_range(4..24) {
            job.allocate();
        }
        job.step = job.write_a_step();
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
        let pages = match rng.random_range(0..12) {
            0 => rng.random_range(200..700),
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
        self.most_of(|_| true)
    }

    /// The same without weights.
    pub(super) fn used_by_others_than_weights(&self) -> u64 {
        self.most_of(|memory| !memory.is_weight)
    }

    fn most_of(&self, counts: impl Fn(&Memory) -> bool) -> u64 {
        let on = |device| {
            let here = self.memory.iter();
            let here = here.filter(|m| m.allocation.device == device && counts(m));
            here.map(|m| m.allocation.bytes).sum::<u64>()
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
        let op = match self.habit {
            Habit::Steady => self.step[self.at],
            Habit::Wild => {
                let which = self.rng.random_range(0..self.step.len());
                self.step[which]
            }
        };
        self.at = (self.at + 1) % self.step.len();
        if self.is_haunted && self.now_and_then(8) {
            self.haunt();
        }
        match op {
            Op::Wait => return Made::Wait(std::mem::take(&mut self.since_wait)),
            Op::Read => {}
            Op::Write {
                weight,
                which,
                part,
            } => {
                if let Some(memory) = self.of_kind(weight, which) {
                    let bytes = self.memory[memory].allocation.bytes;
                    self.write(memory, part_of(bytes, part));
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
        self.write(which, part);
    }

    fn of_kind(&self, weight: bool, which: u32) -> Option<usize> {
        let of_kind = |i: &usize| self.memory[*i].is_weight == weight;
        let all: Vec<usize> = (0..self.memory.len()).filter(of_kind).collect();
        all.get(which as usize % all.len().max(1)).copied()
    }

    /// Into what is no weight.
    fn copy(&mut self, from: u32, to: u32) {
        let Some(to) = self.of_kind(false, to) else {
            return;
        };
        let from = from as usize % self.memory.len();
        let (source, target) = (&self.memory[from], &self.memory[to]);
        let bytes = source.allocation.bytes.min(target.allocation.bytes);
        let mut content = vec![0; bytes as usize];
        source.file.read_exact_at(&mut content, 0).unwrap();
        target.file.write_all_at(&content, 0).unwrap();
    }

    fn write(&mut self, which: usize, part: Range<u64>) {
        self.written += 1;
        // Now and then zeros, and content that is somewhere else as well.
        let value: u64 = match self.written % 7 {
            0 => 0,
            1 => 77,
            _ => self.written | 1 << 40,
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
