//! A program that nobody wrote: calls of the driver that follow from a seed and the number of the step. Memory of every kind comes, is
//! written in every way and goes: by kernels that are told where it is and by such that find its address on the device, by copies,
//! fills and graphs, through peers and by the host. Streams run beside each other, and the host waits for none of them in most steps.
//!
//! What is written follows from what was there, so that a write that is lost, or done twice, or late, shows in the sums that become part
//! of the losses.

use std::alloc::{Layout, alloc_zeroed, dealloc};

use anyhow::{Context, Result, bail, ensure};
use cudarc::driver::sys::{self, CUevent, CUgraphExec, CUmodule, CUstream};

use crate::cuda::{
    Arg, Buffer, Gpu, THREADS, alloc, capture, checksum, cu, event, free, launch, location, map,
    on_device, pattern, record, stream, synchronize, wait,
};
use crate::rng::{Pcg, mix};
use crate::variable::module_with_variable;

/// Pieces of memory, at most, and at least.
const MOST: usize = 20;
const LEAST: usize = 5;
/// What is done in a step.
const OPERATIONS: usize = 8;
/// Streams of each device.
const LANES: usize = 2;
/// Graphs, at most.
const GRAPHS: usize = 3;
/// All memory is looked at in one of so many steps.
const ALL: u64 = 8;
/// The stream of numbers before the first step; each step has its own.
const BEGINNING: u64 = 1 << 40;
const PAGE: usize = 4096;
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`, and the same of `cuMemHostRegister`.
const MAPPED: u32 = 3;

/// What memory is made by.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Plain,
    /// `cuMemAllocAsync`.
    Ordered,
    /// Physical memory that is mapped, and now and then at another address.
    Mapped {
        handle: u64,
        reserved: usize,
    },
    /// The host's, which kernels reach.
    Pinned(*mut u32),
    Registered(*mut u32, Layout),
    /// A variable of a module.
    Variable(CUmodule),
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    kind: Kind,
    buffer: Buffer,
    gpu: usize,
    /// Where it was used last.
    lane: usize,
}

impl Slot {
    /// Whether kernels and copies of a device reach it.
    fn is_reached_by(&self, gpu: usize) -> bool {
        self.gpu == gpu || !matches!(self.kind, Kind::Ordered | Kind::Variable(_))
    }

    fn host(&self) -> Option<*mut u32> {
        match self.kind {
            Kind::Pinned(at) | Kind::Registered(at, _) => Some(at),
            _ => None,
        }
    }
}

/// A stream, and what was done there last.
#[derive(Debug)]
struct Lane {
    gpu: usize,
    stream: CUstream,
    done: CUevent,
}

#[derive(Debug)]
struct Graph {
    executable: CUgraphExec,
    lane: usize,
    slots: Vec<usize>,
}

/// What is done to memory on a stream, and may be captured.
#[derive(Debug, Clone, Copy)]
enum Operation {
    Stir { at: usize, seed: u64 },
    StirHidden { at: usize, seed: u64 },
    Fill { at: usize, value: u32 },
    Copy { from: usize, to: usize, offset: u64 },
}

impl Operation {
    fn slots(self) -> Vec<usize> {
        match self {
            Self::Stir { at, .. } | Self::StirHidden { at, .. } | Self::Fill { at, .. } => vec![at],
            Self::Copy { from, to, .. } => vec![from, to],
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Program {
    seed: u64,
    slots: Vec<Option<Slot>>,
    lanes: Vec<Lane>,
    graphs: Vec<Graph>,
    /// For each device: the addresses of all memory, and where a sum is put.
    tables: Vec<Buffer>,
    results: Vec<Buffer>,
}

impl Program {
    /// Begins the program of a seed on these devices.
    pub(crate) fn new(gpus: &[&Gpu], seed: u64) -> Result<Self> {
        let mut program = Self {
            seed,
            slots: vec![None; MOST],
            lanes: Vec::new(),
            graphs: Vec::new(),
            tables: Vec::new(),
            results: Vec::new(),
        };
        for (number, gpu) in gpus.iter().enumerate() {
            gpu.select()?;
            for (_, peer) in gpus
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != number)
            {
                cu!(cuCtxEnablePeerAccess(peer.context, 0))?;
            }
            for _ in 0..LANES {
                program.lanes.push(Lane {
                    gpu: number,
                    stream: stream()?,
                    done: event()?,
                });
            }
            program.tables.push(alloc(MOST * 8)?);
            program.results.push(alloc(8)?);
        }
        let mut rng = Pcg::new(seed, BEGINNING);
        for _ in 0..2 * LEAST {
            program.make(gpus, &mut rng)?;
        }
        Ok(program)
    }

    /// Goes on by one step; a sum of some of the memory.
    pub(crate) fn step(&mut self, gpus: &[&Gpu], step: u64) -> Result<u64> {
        let mut rng = Pcg::new(self.seed, step);
        for _ in 0..OPERATIONS {
            self.operate(gpus, &mut rng)?;
        }
        let looked_at = match step.is_multiple_of(ALL) {
            true => self.present(),
            false => Vec::from_iter(rng.choose(&self.present())),
        };
        let mut sum = 0;
        for at in looked_at {
            sum = mix(sum ^ self.sum(gpus, at)?);
        }
        Ok(sum)
    }

    /// Frees everything.
    pub(crate) fn finish(mut self, gpus: &[&Gpu]) -> Result<()> {
        for at in self.present() {
            self.free(gpus, at)?;
        }
        for lane in self.lanes {
            gpus[lane.gpu].select()?;
            cu!(cuEventDestroy_v2(lane.done))?;
            cu!(cuStreamDestroy_v2(lane.stream))?;
        }
        for (number, gpu) in gpus.iter().enumerate() {
            gpu.select()?;
            free(self.tables[number])?;
            free(self.results[number])?;
        }
        Ok(())
    }

    fn present(&self) -> Vec<usize> {
        (0..MOST).filter(|at| self.slots[*at].is_some()).collect()
    }

    fn slot(&self, at: usize) -> Result<Slot> {
        self.slots[at].context("no memory there")
    }

    fn operate(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        let present = self.present();
        match rng.below(20) {
            0 | 1 if present.len() < MOST => self.make(gpus, rng),
            2 | 3 if present.len() > LEAST => {
                let at = rng.choose(&present).context("no memory")?;
                self.free(gpus, at)
            }
            4 | 5 => self.write_by_host(gpus, rng),
            6 => self.move_mapping(gpus, rng),
            7 => self.copy_from_host(gpus, rng),
            8 | 9 => self.capture(gpus, rng),
            10..=12 => self.launch_graph(gpus, rng),
            _ => {
                let lane = rng.below(self.lanes.len());
                match self.draw(lane, rng)? {
                    None => Ok(()),
                    Some(operation) => self.run(gpus, lane, &operation.slots(), |program| {
                        program.enqueue(gpus, lane, operation)
                    }),
                }
            }
        }
    }

    /// An operation on memory that a stream's device reaches.
    fn draw(&self, lane: usize, rng: &mut Pcg) -> Result<Option<Operation>> {
        let gpu = self.lanes[lane].gpu;
        let mut reached = self.present();
        reached.retain(|at| self.slots[*at].is_some_and(|slot| slot.is_reached_by(gpu)));
        let (Some(at), Some(from)) = (rng.choose(&reached), rng.choose(&reached)) else {
            return Ok(None);
        };
        let seed = rng.next_u64();
        Ok(Some(match rng.below(8) {
            0..=2 => Operation::Stir { at, seed },
            3 | 4 => Operation::StirHidden { at, seed },
            5 => Operation::Fill {
                at,
                value: seed as u32,
            },
            _ if at != from => {
                let most = self
                    .slot(at)?
                    .buffer
                    .bytes
                    .min(self.slot(from)?.buffer.bytes);
                Operation::Copy {
                    from,
                    to: at,
                    offset: ((rng.below(most) / 2) & !3) as u64,
                }
            }
            _ => Operation::Stir { at, seed },
        }))
    }

    /// Puts an operation on a stream.
    fn enqueue(&self, gpus: &[&Gpu], lane: usize, operation: Operation) -> Result<()> {
        let Lane { gpu, stream, .. } = self.lanes[lane];
        let kernels = &gpus[gpu].kernels;
        let shape = ((64, 1), (THREADS, 1));
        match operation {
            Operation::Stir { at, seed } => {
                let buffer = self.slot(at)?.buffer;
                let words = Arg::U64(u64::from(buffer.words()));
                let args = [Arg::Ptr(buffer.ptr), words, Arg::U64(seed)];
                launch(kernels.stir, shape.0, shape.1, stream, &args)
            }
            Operation::StirHidden { at, seed } => {
                let words = u64::from(self.slot(at)?.buffer.words());
                let table = Arg::Ptr(self.tables[gpu].ptr);
                let args = [table, Arg::U64(at as u64), Arg::U64(words), Arg::U64(seed)];
                launch(kernels.stir_hidden, shape.0, shape.1, stream, &args)
            }
            // The first third of it, which leaves something that was there.
            Operation::Fill { at, value } => {
                let Buffer { ptr, bytes } = self.slot(at)?.buffer;
                Ok(cu!(cuMemsetD32Async(
                    ptr,
                    value,
                    bytes.div_ceil(12),
                    stream
                ))?)
            }
            Operation::Copy { from, to, offset } => {
                let (from, to) = (self.slot(from)?.buffer, self.slot(to)?.buffer);
                let rest = from.bytes.min(to.bytes) as u64 - offset;
                let bytes = ((rest / 2) & !3).max(4);
                Ok(cu!(cuMemcpyDtoDAsync_v2(
                    to.ptr + offset,
                    from.ptr,
                    bytes as usize,
                    stream
                ))?)
            }
        }
    }

    /// Does something on a stream, after all that was done to this memory on others.
    fn run(
        &mut self,
        gpus: &[&Gpu],
        lane: usize,
        slots: &[usize],
        work: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<()> {
        gpus[self.lanes[lane].gpu].select()?;
        let Lane { stream, done, .. } = self.lanes[lane];
        for at in slots {
            if let Some(slot) = &mut self.slots[*at]
                && slot.lane != lane
            {
                wait(stream, self.lanes[slot.lane].done)?;
                slot.lane = lane;
            }
        }
        work(self)?;
        record(done, stream)
    }

    /// Waits for everything.
    fn settle(&self, gpus: &[&Gpu]) -> Result<()> {
        for lane in &self.lanes {
            gpus[lane.gpu].select()?;
            synchronize(lane.stream)?;
        }
        Ok(())
    }

    fn sum(&mut self, gpus: &[&Gpu], at: usize) -> Result<u64> {
        let slot = self.slot(at)?;
        let lane = slot.gpu * LANES;
        self.run(gpus, lane, &[at], |_| Ok(()))?;
        let Lane { gpu, stream, .. } = self.lanes[lane];
        checksum(gpus[gpu], slot.buffer, self.results[gpu], stream)
    }

    /// More memory, with something in it.
    fn make(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        let gpu = rng.below(gpus.len());
        let lane = gpu * LANES + rng.below(LANES);
        let at = self.slots.iter().position(Option::is_none);
        let at = at.context("all memory is in use")?;
        let words = match rng.below(8) {
            0..=4 => 1 + rng.below(64 << 10),
            5 | 6 => 1 + rng.below(256 << 10),
            _ => 1 + rng.below(700 << 10),
        };
        let bytes = words * 4;
        gpus[gpu].select()?;
        let (kind, ptr) = match rng.below(10) {
            0..=2 => (Kind::Plain, alloc(bytes)?.ptr),
            3 | 4 => {
                let mut ptr = 0;
                cu!(cuMemAllocAsync(&mut ptr, bytes, self.lanes[lane].stream))?;
                (Kind::Ordered, ptr)
            }
            5 | 6 => create(gpus, gpu, bytes)?,
            7 => pinned(bytes)?,
            8 => registered(bytes)?,
            _ => {
                let (module, variable) = module_with_variable(bytes)?;
                (Kind::Variable(module), variable.ptr)
            }
        };
        self.slots[at] = Some(Slot {
            kind,
            buffer: Buffer { ptr, bytes },
            gpu,
            lane,
        });
        let seed = rng.next_u64();
        self.run(gpus, lane, &[at], |program| {
            let stream = program.lanes[lane].stream;
            pattern(gpus[gpu], Buffer { ptr, bytes }, seed, stream)
        })?;
        self.publish(gpus, at)
    }

    /// Tells kernels where memory is.
    fn publish(&self, gpus: &[&Gpu], at: usize) -> Result<()> {
        self.settle(gpus)?;
        let address = self.slot(at)?.buffer.ptr;
        for (number, table) in self.tables.iter().enumerate() {
            gpus[number].select()?;
            let (entry, stream) = (table.ptr + 8 * at as u64, self.lanes[number * LANES].stream);
            let from = (&raw const address).cast();
            cu!(cuMemcpyHtoDAsync_v2(entry, from, 8, stream))?;
            // On a stream, as a copy of ordinary memory without one may be under way when the call returns.
            synchronize(stream)?;
        }
        Ok(())
    }

    fn free(&mut self, gpus: &[&Gpu], at: usize) -> Result<()> {
        self.settle(gpus)?;
        for graph in self
            .graphs
            .extract_if(.., |graph| graph.slots.contains(&at))
        {
            cu!(cuGraphExecDestroy(graph.executable))?;
        }
        let slot = self.slots[at].take().context("no memory to free")?;
        gpus[slot.gpu].select()?;
        let ptr = slot.buffer.ptr;
        match slot.kind {
            Kind::Plain => free(slot.buffer)?,
            Kind::Ordered => cu!(cuMemFreeAsync(ptr, self.lanes[slot.lane].stream))?,
            Kind::Mapped { handle, reserved } => {
                cu!(cuMemUnmap(ptr, reserved))?;
                cu!(cuMemAddressFree(ptr, reserved))?;
                cu!(cuMemRelease(handle))?;
            }
            Kind::Pinned(host) => cu!(cuMemFreeHost(host.cast()))?,
            Kind::Registered(host, layout) => {
                cu!(cuMemHostUnregister(host.cast()))?;
                // SAFETY: allocated with this layout, and nothing refers to it from here on.
                unsafe { dealloc(host.cast(), layout) };
            }
            Kind::Variable(module) => cu!(cuModuleUnload(module))?,
        }
        Ok(())
    }

    /// The host writes to its own memory, which kernels have written and will read.
    fn write_by_host(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        let mut hosts = self.present();
        hosts.retain(|at| self.slots[*at].is_some_and(|slot| slot.host().is_some()));
        let Some(at) = rng.choose(&hosts) else {
            return Ok(());
        };
        let slot = self.slot(at)?;
        let lane = &self.lanes[slot.lane];
        gpus[lane.gpu].select()?;
        synchronize(lane.stream)?;
        let (words, host) = (slot.buffer.words() as usize, slot.host());
        let host = host.context("not the host's")?;
        let (first, seed) = (rng.below(words), rng.next_u64());
        for i in first..words.min(first + 3000) {
            // SAFETY: within the memory, which nobody else uses: all that was enqueued for it is done.
            unsafe {
                let word = host.add(i).read_volatile();
                host.add(i)
                    .write_volatile(mix(u64::from(word) ^ seed) as u32);
            }
        }
        Ok(())
    }

    /// Physical memory is mapped elsewhere.
    fn move_mapping(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        let is_mapped = |slot: Slot| matches!(slot.kind, Kind::Mapped { .. });
        let mut mapped = self.present();
        mapped.retain(|at| self.slots[*at].is_some_and(is_mapped));
        // Graphs have the old address.
        mapped.retain(|at| !self.graphs.iter().any(|graph| graph.slots.contains(at)));
        let Some(at) = rng.choose(&mapped) else {
            return Ok(());
        };
        let slot = self.slot(at)?;
        let Kind::Mapped { handle, reserved } = slot.kind else {
            bail!("memory {at} is not mapped");
        };
        self.settle(gpus)?;
        let ptr = map(gpus, handle, reserved)?;
        cu!(cuMemUnmap(slot.buffer.ptr, reserved))?;
        cu!(cuMemAddressFree(slot.buffer.ptr, reserved))?;
        if let Some(slot) = &mut self.slots[at] {
            slot.buffer.ptr = ptr;
        }
        self.publish(gpus, at)
    }

    /// Ordinary memory of the host, part of which becomes part of some other.
    fn copy_from_host(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        let Some(at) = rng.choose(&self.present()) else {
            return Ok(());
        };
        let slot = self.slot(at)?;
        let words = (slot.buffer.words() as usize).min(2000);
        let seed = rng.next_u64();
        let content: Vec<u32> = (0..words as u64).map(|i| mix(seed ^ i) as u32).collect();
        self.run(gpus, slot.gpu * LANES, &[at], |program| {
            let stream = program.lanes[slot.gpu * LANES].stream;
            let from = content.as_ptr().cast();
            cu!(cuMemcpyHtoDAsync_v2(
                slot.buffer.ptr,
                from,
                words * 4,
                stream
            ))?;
            // The content goes with this function.
            synchronize(stream)
        })
    }

    fn capture(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        if self.graphs.len() == GRAPHS {
            self.settle(gpus)?;
            let graph = self.graphs.swap_remove(rng.below(GRAPHS));
            return Ok(cu!(cuGraphExecDestroy(graph.executable))?);
        }
        let lane = rng.below(self.lanes.len());
        let mut operations = Vec::new();
        for _ in 0..1 + rng.below(5) {
            operations.extend(self.draw(lane, rng)?);
        }
        if operations.is_empty() {
            return Ok(());
        }
        gpus[self.lanes[lane].gpu].select()?;
        let executable = capture(self.lanes[lane].stream, || {
            let mut all = operations.iter();
            all.try_for_each(|operation| self.enqueue(gpus, lane, *operation))
        })?;
        self.graphs.push(Graph {
            executable,
            lane,
            slots: operations
                .iter()
                .flat_map(|operation| operation.slots())
                .collect(),
        });
        Ok(())
    }

    fn launch_graph(&mut self, gpus: &[&Gpu], rng: &mut Pcg) -> Result<()> {
        if self.graphs.is_empty() {
            return Ok(());
        }
        let graph = &self.graphs[rng.below(self.graphs.len())];
        let (executable, lane, slots) = (graph.executable, graph.lane, graph.slots.clone());
        self.run(gpus, lane, &slots, |program| {
            Ok(cu!(cuGraphLaunch(executable, program.lanes[lane].stream))?)
        })
    }
}

/// Physical memory of a device, mapped.
fn create(gpus: &[&Gpu], gpu: usize, bytes: usize) -> Result<(Kind, u64)> {
    let properties = on_device(location(gpus[gpu]));
    let least = sys::CUmemAllocationGranularity_flags::CU_MEM_ALLOC_GRANULARITY_MINIMUM;
    let mut granularity = 0;
    cu!(cuMemGetAllocationGranularity(
        &mut granularity,
        &properties,
        least
    ))?;
    let reserved = bytes.next_multiple_of(granularity);
    let mut handle = 0;
    cu!(cuMemCreate(&mut handle, reserved, &properties, 0))?;
    let ptr = map(gpus, handle, reserved)?;
    Ok((Kind::Mapped { handle, reserved }, ptr))
}

fn pinned(bytes: usize) -> Result<(Kind, u64)> {
    let mut host = std::ptr::null_mut();
    cu!(cuMemHostAlloc(&mut host, bytes, MAPPED))?;
    let mut ptr = 0;
    cu!(cuMemHostGetDevicePointer_v2(&mut ptr, host, 0))?;
    Ok((Kind::Pinned(host.cast()), ptr))
}

fn registered(bytes: usize) -> Result<(Kind, u64)> {
    let layout = Layout::from_size_align(bytes.next_multiple_of(PAGE), PAGE)?;
    // SAFETY: the layout is not empty.
    let host = unsafe { alloc_zeroed(layout) };
    ensure!(!host.is_null(), "no memory for {bytes} bytes");
    cu!(cuMemHostRegister_v2(host.cast(), layout.size(), MAPPED))?;
    let mut ptr = 0;
    cu!(cuMemHostGetDevicePointer_v2(&mut ptr, host.cast(), 0))?;
    Ok((Kind::Registered(host.cast(), layout), ptr))
}
