//! The training loop.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use cudarc::driver::sys;

use crate::Args;
use crate::arrays::Arrays;
use crate::beside::{self, Beside};
use crate::collective::{Alone, Collective};
use crate::companion::{Companion, Part, Request};
use crate::cuda::{self, CudaUnavailable, Gpu, cu};
use crate::data::Loader;
use crate::extras::{Content, Link, State, VerificationFailed, Written, make_noise};
use crate::follow::Follow;
use crate::hints::Hints;
use crate::hold::Hold;
use crate::large::{Large, Semaphores};
use crate::many::{Many, Sizes};
use crate::memories::Memories;
use crate::model::{HISTORY, Replica, SLOTS, Shape, StepParameters};
use crate::multicast;
use crate::processes::{self, Ranks, ShortLived};
use crate::program::Program;
use crate::rng::{Pcg, mix};
use crate::scratch::Scratch;
use crate::sharing::Shared;
use crate::variable::Variable;

/// Where the losses go: stdout, and a file that is opened once.
struct Report {
    file: Option<File>,
    quiet: bool,
    prefix: String,
}

impl Report {
    fn open(args: &Args) -> Result<Self> {
        let path: Option<PathBuf> = args.log.as_deref().map(|path| rank_path(path, args.rank));
        let file = match &path {
            Some(path) => Some(
                OpenOptions::new()
                    .append(true)
                    .create(true)
                    .open(path)
                    .with_context(|| format!("opening {}", path.display()))?,
            ),
            None => None,
        };
        let prefix = match args.rank {
            0 => String::new(),
            rank => format!("[{rank}] "),
        };
        Ok(Self {
            file,
            quiet: args.quiet,
            prefix,
        })
    }

    fn step(&mut self, step: u64, loss: f32) -> Result<()> {
        let line = format!("{step} {:08x} {loss:.6}\n", loss.to_bits());
        if let Some(file) = &mut self.file {
            file.write_all(line.as_bytes()).context("writing the log")?;
        }
        if !self.quiet {
            let mut out = std::io::stdout().lock();
            out.write_all(format!("{}{line}", self.prefix).as_bytes())
                .and_then(|()| out.flush())
                .context("writing to stdout")?;
        }
        Ok(())
    }
}

fn rank_path(path: &Path, rank: u32) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if rank > 0 {
        name.push(format!(".rank{rank}"));
    }
    name.into()
}

/// What a device holds besides the model.
struct Ballast {
    ballast: Content,
    pool: Content,
    churn: Option<Content>,
}

/// Whether somebody has seen enough of how slow it is.
fn is_hurried(args: &Args) -> bool {
    args.hurry_at.as_deref().is_some_and(Path::exists)
}

/// Trains as the arguments say.
pub(crate) fn run(args: &Args) -> Result<()> {
    let rank = args.rank;
    let seed = mix(args.seed ^ u64::from(rank) << 32);
    let (features, classes) = (args.layers[0], args.layers[args.layers.len() - 1]);

    if args.handle_sigterm {
        processes::end_on_sigterm();
    }
    let ranks = Ranks::start(args.rank_processes)?;
    let mut companions = Companions::start(args)?;
    // Forked children first, while this process has one thread and no CUDA.
    let mut loader = Loader::start(args.workers, seed, features, classes, args.batch)?;
    let mut link = if args.tcp {
        Some(Link::start(args.tcp_address)?)
    } else {
        None
    };
    // Open until the process ends.
    let _outside = (args.connect)
        .map(|address| {
            std::net::TcpStream::connect(address)
                .with_context(|| format!("connecting to {address}"))
        })
        .transpose()?;
    let mut scratch = if args.scratch {
        Some(Scratch::start()?)
    } else {
        None
    };
    let mut large = args.large.as_deref().map(Large::start).transpose()?;
    let mut semaphores = (args.semaphores.as_deref())
        .map(Semaphores::start)
        .transpose()?;
    let mut memories = args.memories.then(Memories::start).transpose()?;
    let mut follow = args.follow.as_deref().map(Follow::open).transpose()?;

    let available = cuda::init()?;
    if args.devices > available {
        bail!(CudaUnavailable(format!(
            "{} devices asked for, the driver sees {available}",
            args.devices
        )));
    }
    let shape = Shape {
        layers: args.layers.clone(),
        batch: args.batch,
        dropout: args.dropout,
        graph: args.graph,
        expandable: args.expandable,
    };
    let mut replicas = Vec::new();
    let mut extras = Vec::new();
    for number in 0..args.devices {
        let gpu = Gpu::open((rank + number) % available)
            .with_context(|| format!("opening device {number}"))?;
        let replica = Replica::new(gpu, &shape, seed, args.devices > 1 && number == 0)?;
        let (gpu, stream, seed) = (&replica.gpu, replica.compute, mix(seed ^ u64::from(number)));
        extras.push(Ballast {
            ballast: Content::plain("ballast", gpu, args.ballast_mib, seed, stream)?,
            pool: Content::stream_ordered("pool", gpu, args.pool_mib, !seed, stream)?,
            churn: None,
        });
        replicas.push(replica);
    }
    if let Some(communicator) = args.communicator {
        communicator.imitate()?;
    }
    if args.nccl.is_some() {
        ranks.watch()?;
    }
    let collective = (args.nccl.as_deref())
        .map(|library| {
            let ranks = args.ranks.max(args.rank_processes + 1);
            Collective::join(&replicas[0].gpu, library, rank, ranks)
        })
        .transpose()?;
    let mut alone = args.ranks_alone.map(Alone::new);
    let sizes = Sizes {
        count: args.allocations,
        large_every: args.large_every,
    };
    let mut state = (args.state_mib > 0)
        .then(|| {
            State::new(
                &replicas[0].gpu,
                args.state_mib,
                (args.state_calls, args.state_waits),
                replicas[0].compute,
            )
        })
        .transpose()?;
    let mut many = Many::new(&replicas[0].gpu, sizes, replicas[0].compute)?;
    let mut shared = match companions.peer.take() {
        Some(peer) => Some(Shared::new(&replicas[0].gpu, peer, replicas[0].compute)?),
        None => None,
    };
    let (first, compute) = (&replicas[0].gpu, replicas[0].compute);
    let arrays = args
        .arrays
        .then(|| Arrays::new(first, args.array_mib, compute))
        .transpose()?;
    let mut variable = match args.variable_mib {
        0 => None,
        mib => Some(Variable::load(mib)?),
    };
    let mut program = (args.program)
        .map(|seed| Program::new(&gpus(&replicas), seed))
        .transpose()?;
    let multicast = args
        .multicast
        .then(|| multicast::Object::new(&gpus(&replicas)))
        .transpose()?;
    let threads = threads(args, &replicas[0].gpu)?;
    let mut hold = args
        .hold
        .clone()
        .zip(args.hold_while.clone())
        .map(|(kind, file)| Hold::new(kind, file));
    let mut children = ShortLived::default();
    let mut report = Report::open(args)?;
    // Dropout's seeds: drawn one a step, so the state of this generator is part of the result.
    let mut rng = Pcg::new(seed, 1 << 40);

    let mut shown = Vec::new();
    let hints = Hints::new(args.hints);
    let mut steps = 0;
    for step in 0..args.steps {
        let finishes = args.finish_at.as_deref().is_some_and(Path::exists);
        let is_last = match &collective {
            Some(collective) => collective.is_last(&replicas[0].gpu, step, finishes)?,
            None => finishes,
        };
        if is_last {
            break;
        }
        steps = step + 1;
        let slot = step as usize % SLOTS;
        let mut random = rng.next_u64();
        if let Some(shared) = &mut shared {
            random ^= shared.step(&replicas[0].gpu, step, replicas[0].compute)?;
        }
        if let Some(arrays) = &arrays {
            random ^= arrays.step(&replicas[0].gpu, step, replicas[0].compute)?;
        }
        if let Some(variable) = &mut variable {
            random ^= variable.step(step)?;
        }
        if let Some(program) = &mut program {
            random ^= program.step(&gpus(&replicas), step)?;
        }
        if let Some(multicast) = &multicast {
            random ^= multicast.step(&gpus(&replicas), step)?;
        }
        random ^= companions.step(step)?;
        if let Some(collective) = &collective {
            if args.late_ms > 0 && collective.is_last_rank() && !is_hurried(args) {
                std::thread::sleep(Duration::from_millis(args.late_ms));
            }
            random ^= collective.step(&replicas[0].gpu, step)?;
        }
        if let Some(alone) = &mut alone {
            random ^= alone.step(step);
        }
        let parameters = step_parameters(step, args.learning_rate, random);
        for replica in &mut replicas {
            replica.feed(slot, &loader.next()?, parameters)?;
            replica.gradients(slot)?;
        }
        Replica::average(&replicas)?;
        for replica in &mut replicas {
            replica.update(slot, step)?;
        }
        if let Some(state) = state.as_ref().filter(|_| !is_hurried(args)) {
            state.forward(&replicas[0].gpu, replicas[0].compute)?;
        }
        // The step before this one is reported now: there is always work under way while the host waits.
        if let Some(before) = step.checked_sub(1) {
            let loss = mean_loss(&mut replicas, before)?;
            report.step(before, loss)?;
            remember(&mut shown, loss);
        }
        children.reap(false);
        if due(step, args.fork_every) {
            children.fork()?;
        }
        if let Some(link) = &mut link {
            link.exchange(step)?;
        }
        if let Some(scratch) = &mut scratch {
            scratch.step(step)?;
        }
        if let Some(follow) = &mut follow {
            follow.step(step)?;
        }
        if let Some(large) = &mut large {
            large.step(step)?;
        }
        if let Some(semaphores) = &mut semaphores {
            semaphores.step(step)?;
        }
        if let Some(memories) = &mut memories {
            memories.step(step)?;
        }
        if threads.iter().any(Beside::has_failed) {
            break;
        }
        many.step(&replicas[0].gpu, step, replicas[0].compute)?;
        for (replica, extra) in replicas.iter().zip(&mut extras) {
            let (gpu, stream) = (&replica.gpu, replica.compute);
            if args.churn_mib > 0 {
                if let Some(churn) = extra.churn.take() {
                    churn.verify(gpu, stream)?;
                    churn.free(gpu, stream)?;
                }
                extra.churn = Some(Content::plain(
                    "churn",
                    gpu,
                    args.churn_mib,
                    mix(step),
                    stream,
                )?);
            }
            if due(step, args.verify_every) {
                extra.ballast.verify(gpu, stream)?;
            }
        }
        if let Some(state) = &mut state
            && !is_hurried(args)
        {
            let early = args.state_early_at.as_deref().is_some_and(Path::exists);
            let written = match (early, args.state_anywhere) {
                (true, _) => Written::First,
                (false, true) => Written::Anywhere,
                (false, false) => Written::Last,
            };
            state.step(&replicas[0].gpu, step, written, replicas[0].compute)?;
        }
        surge(args, &replicas[0], step)?;
        if args.profile_at.as_deref().is_some_and(Path::exists) {
            take_tables()?;
        }
        if let Some(hold) = &mut hold {
            replicas[0].gpu.select()?;
            hold.step()?;
        }
        hints.step(step);
        if !is_hurried(args) {
            pause(Duration::from_millis(args.step_ms), args.spin);
        }
    }
    for thread in threads {
        let (name, rounds) = thread.stop()?;
        eprintln!("phos-trainer: {name} thread: {rounds} rounds");
    }
    if let Some(state) = state {
        state.finish(&replicas[0].gpu, replicas[0].compute)?;
    }
    many.finish(&replicas[0].gpu, replicas[0].compute)?;
    if let Some(shared) = shared {
        shared.finish(&replicas[0].gpu)?;
    }
    if let Some(arrays) = arrays {
        arrays.finish(&replicas[0].gpu)?;
    }
    if let Some(variable) = variable {
        variable.finish()?;
    }
    if let Some(program) = program {
        program.finish(&gpus(&replicas))?;
    }
    if let Some(multicast) = multicast {
        multicast.finish(&gpus(&replicas))?;
    }
    companions.finish()?;
    if let Some(collective) = collective {
        collective.finish(&replicas[0].gpu)?;
    }
    if let Some(memories) = memories {
        memories.finish()?;
    }
    if let Some(last) = steps.checked_sub(1) {
        let loss = mean_loss(&mut replicas, last)?;
        report.step(last, loss)?;
        remember(&mut shown, loss);
    }
    children.reap(true);
    if let Some(hold) = hold {
        replicas[0].gpu.select()?;
        hold.finish()?;
    }
    if let Some(scratch) = scratch {
        scratch.finish()?;
    }
    if let Some(large) = large {
        large.finish()?;
    }
    if let Some(semaphores) = semaphores {
        semaphores.finish();
    }
    if let Some(link) = &link {
        eprintln!("phos-trainer: TCP: {} reconnects", link.reconnects());
    }
    finish(replicas, extras, &shown, steps)?;
    ranks.finish()
}

fn gpus(replicas: &[Replica]) -> Vec<&Gpu> {
    replicas.iter().map(|replica| &replica.gpu).collect()
}

/// Further processes that answer at each step.
struct Companions {
    peer: Option<Companion>,
    others: Vec<Companion>,
}

impl Companions {
    /// While this process has one thread and no CUDA.
    fn start(args: &Args) -> Result<Self> {
        let start = |wanted: bool, part| wanted.then(|| Companion::start(part)).transpose();
        let others = [
            start(args.monitor, Part::Monitor)?,
            start(args.work_when.is_some(), Part::Worker)?,
        ];
        Ok(Self {
            peer: start(args.share, Part::Peer)?,
            others: others.into_iter().flatten().collect(),
        })
    }

    /// What they say.
    fn step(&mut self, step: u64) -> Result<u64> {
        let mut sum = 0;
        for companion in &mut self.others {
            sum ^= mix(companion.ask(Request::plain(0, step))?);
        }
        Ok(sum)
    }

    fn finish(self) -> Result<()> {
        self.others.into_iter().try_for_each(Companion::finish)
    }
}

/// The threads that work beside the training.
fn threads(args: &Args, gpu: &Gpu) -> Result<Vec<Beside>> {
    let mut threads = Vec::new();
    if args.noise_thread {
        threads.push(Beside::start("noise", gpu, make_noise)?);
    }
    if args.polling_thread {
        threads.push(Beside::start("polling", gpu, beside::poll)?);
        threads.push(Beside::start("asking", gpu, beside::ask)?);
    }
    if args.counting_thread {
        threads.push(Beside::start("counting", gpu, beside::count)?);
    }
    Ok(threads)
}

fn due(step: u64, every: u64) -> bool {
    every > 0 && step % every == every - 1
}

/// Bounded by what the device keeps as well.
fn remember(shown: &mut Vec<u32>, loss: f32) {
    if shown.len() < HISTORY {
        shown.push(loss.to_bits());
    }
}

fn step_parameters(step: u64, rate: f32, seed: u64) -> StepParameters {
    let t = i32::try_from(step + 1).unwrap_or(i32::MAX);
    let (first, second) = (1.0 - 0.9f64.powi(t), 1.0 - 0.999f64.powi(t));
    StepParameters {
        seed,
        rate: (f64::from(rate) / first) as f32,
        scale: (1.0 / second.sqrt()) as f32,
    }
}

fn mean_loss(replicas: &mut [Replica], step: u64) -> Result<f32> {
    let count = replicas.len() as f32;
    let mut sum = 0.0;
    for replica in replicas {
        sum += replica.loss(step as usize % SLOTS)?;
    }
    Ok(sum / count)
}

/// Verifies all that has known content, then frees everything.
fn finish(replicas: Vec<Replica>, extras: Vec<Ballast>, shown: &[u32], steps: u64) -> Result<()> {
    // With one device the losses shown are the ones it kept.
    if let [replica] = &replicas[..]
        && steps <= HISTORY as u64
    {
        let kept = replica.history(steps)?;
        if let Some(step) = kept
            .iter()
            .zip(shown)
            .position(|(kept, shown)| kept != shown)
        {
            bail!(VerificationFailed(format!(
                "the device's record of the loss of step {step}"
            )));
        }
    }
    for (replica, extra) in replicas.into_iter().zip(extras) {
        let (gpu, stream) = (&replica.gpu, replica.compute);
        for content in [Some(extra.ballast), Some(extra.pool), extra.churn]
            .into_iter()
            .flatten()
        {
            content.verify(gpu, stream)?;
            content.free(gpu, stream)?;
        }
        replica.close()?;
    }
    Ok(())
}

/// Takes a lot of memory on the first device for a moment, if it is asked to now.
/// What a profiler begins with; only the simulated driver has these tables.
fn take_tables() -> Result<()> {
    for number in 0..37 {
        let mut id = *b"phos tools      ";
        id[15] = number;
        let uuid = sys::CUuuid {
            bytes: id.map(|byte| byte.cast_signed()),
        };
        let mut table = std::ptr::null();
        cu!(cuGetExportTable(&mut table, &uuid))?;
    }
    Ok(())
}

fn surge(args: &Args, replica: &Replica, step: u64) -> Result<()> {
    let Some(file) = args.surge_at.as_deref().filter(|file| file.exists()) else {
        return Ok(());
    };
    let (gpu, stream) = (&replica.gpu, replica.compute);
    let content = Content::plain("surge", gpu, args.surge_mib, mix(step), stream)?;
    content.verify(gpu, stream)?;
    content.free(gpu, stream)?;
    std::fs::remove_file(file).with_context(|| format!("removing {}", file.display()))
}

fn pause(length: Duration, spin: bool) {
    if spin {
        let start = Instant::now();
        let mut x = 0;
        while start.elapsed() < length {
            for _ in 0..1000 {
                x = mix(std::hint::black_box(x));
            }
        }
    } else if !length.is_zero() {
        std::thread::sleep(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn corrections_approach_one() {
        let first = step_parameters(0, 1e-3, 0);
        assert!((first.rate - 1e-2).abs() < 1e-6);
        let late = step_parameters(1_000_000, 1e-3, 0);
        assert!((late.rate - 1e-3).abs() < 1e-9 && (late.scale - 1.0).abs() < 1e-6);
    }

    #[test]
    fn steps_fall_due_at_the_end_of_each_period() {
        assert!(!due(0, 0) && !due(0, 2) && due(1, 2) && due(3, 2) && due(0, 1));
    }

    #[test]
    fn ranks_have_logs_of_their_own() {
        assert_eq!(rank_path(Path::new("/x/log"), 2), Path::new("/x/log.rank2"));
        assert_eq!(rank_path(Path::new("/x/log"), 0), Path::new("/x/log"));
    }
}
