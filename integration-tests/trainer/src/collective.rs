//! Ranks that meet on the GPU at each step, through NCCL (or what looks like it) and with no wait on the host but now and then: an
//! all-reduce over all, one over every second rank, messages around the ring in a group, and all-reduces from a captured graph.
//!
//! Ranks are ahead of each other by what each of them sleeps, so that holding them at a time leaves some waiting for others.

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, ensure};
use cudarc::driver::sys::{CUgraphExec, CUstream};

use crate::cuda::{self, Arg, Buffer, Gpu, cu};
use crate::processes::{NAME, name_of_job};
use crate::rng::mix;

const FLOATS: usize = 4096;
/// `ncclFloat32`, `ncclSum`.
const FLOAT: c_int = 7;
const SUM: c_int = 0;
/// Steps from one look at the result to the next: between them the host waits for nothing.
const LOOK: u64 = 8;

type Comm = *mut c_void;

#[derive(Clone, Copy)]
#[repr(C)]
struct UniqueId([u8; 128]);

type Init = unsafe extern "C" fn(*mut Comm, c_int, UniqueId, c_int) -> c_int;
type Split = unsafe extern "C" fn(Comm, c_int, c_int, *mut Comm, *mut c_void) -> c_int;
type Destroy = unsafe extern "C" fn(Comm) -> c_int;
type AllReduce =
    unsafe extern "C" fn(*const c_void, *mut c_void, usize, c_int, c_int, Comm, CUstream) -> c_int;
type Send = unsafe extern "C" fn(*const c_void, usize, c_int, c_int, Comm, CUstream) -> c_int;
type Receive = unsafe extern "C" fn(*mut c_void, usize, c_int, c_int, Comm, CUstream) -> c_int;
type Group = unsafe extern "C" fn() -> c_int;

struct Library {
    init: Init,
    split: Split,
    destroy: Destroy,
    all_reduce: AllReduce,
    send: Send,
    receive: Receive,
    start: Group,
    end: Group,
}

impl Library {
    fn load(path: &Path) -> Result<Self> {
        let name = CString::new(path.as_os_str().as_encoded_bytes())?;
        // SAFETY: a terminated name of a library whose initialisers do nothing.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        ensure!(!library.is_null(), "cannot load {}", path.display());
        let find = |name: &CStr| {
            // SAFETY: a handle of dlopen and a terminated name.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            ensure!(!found.is_null(), "{} has no {name:?}", path.display());
            Ok(found)
        };
        // SAFETY: the addresses are those of NCCL's functions of these names, whose C signatures stand above.
        unsafe {
            Ok(Self {
                init: std::mem::transmute::<*mut c_void, Init>(find(c"ncclCommInitRank")?),
                split: std::mem::transmute::<*mut c_void, Split>(find(c"ncclCommSplit")?),
                destroy: std::mem::transmute::<*mut c_void, Destroy>(find(c"ncclCommDestroy")?),
                all_reduce: std::mem::transmute::<*mut c_void, AllReduce>(find(c"ncclAllReduce")?),
                send: std::mem::transmute::<*mut c_void, Send>(find(c"ncclSend")?),
                receive: std::mem::transmute::<*mut c_void, Receive>(find(c"ncclRecv")?),
                start: std::mem::transmute::<*mut c_void, Group>(find(c"ncclGroupStart")?),
                end: std::mem::transmute::<*mut c_void, Group>(find(c"ncclGroupEnd")?),
            })
        }
    }
}

fn check(what: &str, result: c_int) -> Result<()> {
    ensure!(result == 0, "{what}: NCCL answered {result}");
    Ok(())
}

/// What all ranks reduce, in one process and without NCCL: all words of a buffer are the same, so one stands for them. It is what the others are compared
/// with where the GPU and NCCL are the simulated ones, which add in the order of the ranks.
pub(crate) struct Alone(Vec<Words>);

/// A rank's buffers.
#[derive(Clone, Copy)]
struct Words {
    mine: f32,
    sum: f32,
    neighbour: f32,
}

impl Alone {
    pub(crate) fn new(ranks: u32) -> Self {
        let words = |rank| {
            let value = first(rank);
            Words {
                mine: value,
                sum: value,
                neighbour: value,
            }
        };
        Self((0..ranks).map(words).collect())
    }

    /// As [`Collective::step`] answers rank 0.
    pub(crate) fn step(&mut self, step: u64) -> u64 {
        let ranks = self.0.len();
        let all = self.0.iter().map(|words| words.mine).sum::<f32>();
        for words in &mut self.0 {
            words.sum = all;
            words.mine = (words.mine + words.sum) * (0.5 / (ranks as f32 + 1.0));
            words.mine = (words.mine + own(step)) * 1.0;
        }
        for rank in 0..ranks {
            self.0[rank].neighbour = self.0[(rank + ranks - 1) % ranks].sum;
        }
        if step.is_multiple_of(3) {
            self.reduce_halves(|words| &mut words.sum);
            for words in &mut self.0 {
                words.mine = (words.mine + words.sum) * (0.1 / ranks as f32);
            }
        }
        self.reduce_halves(|words| &mut words.neighbour);
        for words in &mut self.0 {
            words.mine = (words.mine + words.neighbour) * (0.1 / ranks as f32);
        }
        match step.is_multiple_of(LOOK) {
            true => mix(u64::from(self.0[0].mine.to_bits())),
            false => 0,
        }
    }

    fn reduce_halves(&mut self, word: fn(&mut Words) -> &mut f32) {
        for half in 0..2 {
            let members = self.0.iter_mut().skip(half).step_by(2);
            let sum = members.map(|words| *word(words)).sum::<f32>();
            for words in self.0.iter_mut().skip(half).step_by(2) {
                *word(words) = sum;
            }
        }
    }
}

/// What a rank begins with.
fn first(rank: u32) -> f32 {
    1.0 + rank as f32 / 8.0
}

/// What a step adds.
fn own(step: u64) -> f32 {
    (mix(step) % 1000) as f32 / 1000.0
}

/// This rank's part of it.
pub(crate) struct Collective {
    nccl: Library,
    world: Comm,
    half: Comm,
    rank: u32,
    ranks: u32,
    stream: CUstream,
    mine: Buffer,
    sum: Buffer,
    neighbour: Buffer,
    own: Buffer,
    graph: CUgraphExec,
}

impl Collective {
    /// Joins the other ranks.
    pub(crate) fn join(gpu: &Gpu, library: &Path, rank: u32, ranks: u32) -> Result<Self> {
        let nccl = Library::load(library)?;
        let name = std::env::var(NAME).unwrap_or_else(|_| name_of_job());
        let mut id = UniqueId([0; 128]);
        ensure!(name.len() < 128, "${NAME} is too long");
        id.0[..name.len()].copy_from_slice(name.as_bytes());
        let (mut world, mut half) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: each writes one handle.
        unsafe {
            check(
                "joining",
                (nccl.init)(&raw mut world, ranks.cast_signed(), id, rank.cast_signed()),
            )?;
            let (color, key) = ((rank % 2).cast_signed(), rank.cast_signed());
            check(
                "splitting",
                (nccl.split)(world, color, key, &raw mut half, std::ptr::null_mut()),
            )?;
        }
        gpu.select()?;
        let stream = cuda::stream()?;
        let [mine, sum, neighbour, own] = [(); 4].map(|()| cuda::alloc(FLOATS * 4));
        let [mine, sum, neighbour, own] = [mine?, sum?, neighbour?, own?];
        let value = first(rank);
        for buffer in [mine, sum, neighbour, own] {
            let arguments = [
                Arg::Ptr(buffer.ptr),
                Arg::U32(FLOATS as u32),
                Arg::F32(value),
            ];
            cuda::launch_each(gpu.kernels.fill, FLOATS as u32, stream, &arguments)?;
        }
        let mut collective = Self {
            nccl,
            world,
            half,
            rank,
            ranks,
            stream,
            mine,
            sum,
            neighbour,
            own,
            graph: std::ptr::null_mut(),
        };
        collective.graph = cuda::capture(stream, || {
            collective.all_reduce(collective.half, neighbour, neighbour)
        })?;
        Ok(collective)
    }

    /// Whether this is the one that `--late-ms` is about.
    pub(crate) fn is_last_rank(&self) -> bool {
        self.rank + 1 == self.ranks
    }

    fn all_reduce(&self, comm: Comm, from: Buffer, to: Buffer) -> Result<()> {
        let (from, to) = (from.ptr as *const c_void, to.ptr as *mut c_void);
        // SAFETY: buffers of this length, in a stream of their device.
        check("reducing", unsafe {
            (self.nccl.all_reduce)(from, to, FLOATS, FLOAT, SUM, comm, self.stream)
        })
    }

    /// Around the ring: to the next rank, from the one before.
    fn pass_on(&self) -> Result<()> {
        let next = (self.rank + 1) % self.ranks;
        let before = (self.rank + self.ranks - 1) % self.ranks;
        // SAFETY: as above.
        unsafe {
            check("a group", (self.nccl.start)())?;
            let (from, to) = (
                self.sum.ptr as *const c_void,
                self.neighbour.ptr as *mut c_void,
            );
            check(
                "sending",
                (self.nccl.send)(
                    from,
                    FLOATS,
                    FLOAT,
                    next.cast_signed(),
                    self.world,
                    self.stream,
                ),
            )?;
            check(
                "receiving",
                (self.nccl.receive)(
                    to,
                    FLOATS,
                    FLOAT,
                    before.cast_signed(),
                    self.world,
                    self.stream,
                ),
            )?;
            check("a group's end", (self.nccl.end)())
        }
    }

    /// One step with the others; what came of it, now and then.
    pub(crate) fn step(&self, gpu: &Gpu, step: u64) -> Result<u64> {
        gpu.select()?;
        self.all_reduce(self.world, self.mine, self.sum)?;
        let scale = |of: Buffer, to: Buffer, by: f32| {
            let arguments = [
                Arg::Ptr(to.ptr),
                Arg::Ptr(of.ptr),
                Arg::U32(FLOATS as u32),
                Arg::F32(by),
            ];
            cuda::launch_each(
                gpu.kernels.add_scaled,
                FLOATS as u32,
                self.stream,
                &arguments,
            )
        };
        // Each step adds something of its own, and the sums are scaled down so that all of it stays finite.
        let ranks = self.ranks as f32;
        scale(self.sum, self.mine, 0.5 / (ranks + 1.0))?;
        let arguments = [
            Arg::Ptr(self.own.ptr),
            Arg::U32(FLOATS as u32),
            Arg::F32(own(step)),
        ];
        cuda::launch_each(gpu.kernels.fill, FLOATS as u32, self.stream, &arguments)?;
        scale(self.own, self.mine, 1.0)?;
        if mix(step ^ u64::from(self.rank) << 32).is_multiple_of(5) {
            // Some are late, the others go ahead.
            std::thread::sleep(Duration::from_micros(mix(step) % 3000));
        }
        self.pass_on()?;
        if step.is_multiple_of(3) {
            self.all_reduce(self.half, self.sum, self.sum)?;
            scale(self.sum, self.mine, 0.1 / ranks)?;
        }
        cu!(cuGraphLaunch(self.graph, self.stream))?;
        scale(self.neighbour, self.mine, 0.1 / ranks)?;
        if !step.is_multiple_of(LOOK) {
            return Ok(0);
        }
        let bits = self.read(self.mine)?;
        ensure!(
            f32::from_bits(bits).is_finite(),
            "what the ranks reduce is {}",
            f32::from_bits(bits)
        );
        Ok(mix(u64::from(bits)))
    }

    /// Whether this step is the last one: all ranks find the same, once one of them wants it.
    pub(crate) fn is_last(&self, gpu: &Gpu, step: u64, wanted: bool) -> Result<bool> {
        if !step.is_multiple_of(LOOK) {
            return Ok(false);
        }
        gpu.select()?;
        let arguments = [
            Arg::Ptr(self.own.ptr),
            Arg::U32(FLOATS as u32),
            Arg::F32(f32::from(u8::from(wanted))),
        ];
        cuda::launch_each(gpu.kernels.fill, FLOATS as u32, self.stream, &arguments)?;
        self.all_reduce(self.world, self.own, self.own)?;
        Ok(f32::from_bits(self.read(self.own)?) > 0.0)
    }

    fn read(&self, buffer: Buffer) -> Result<u32> {
        cuda::synchronize(self.stream)?;
        let mut bits = 0_u32;
        cu!(cuMemcpyDtoH_v2((&raw mut bits).cast(), buffer.ptr, 4))?;
        Ok(bits)
    }

    /// Leaves the others.
    pub(crate) fn finish(self, gpu: &Gpu) -> Result<()> {
        gpu.select()?;
        cuda::synchronize(self.stream)?;
        for comm in [self.half, self.world] {
            // SAFETY: a communicator that is used no more.
            check("leaving", unsafe { (self.nccl.destroy)(comm) })?;
        }
        Ok(())
    }
}
