//! A small but real training program on the CUDA driver API: what the end-to-end tests checkpoint and resume.
//!
//! A multi-layer perceptron learns a classification rule from generated data. All of it is deterministic: two runs with
//! the same arguments print the same losses, bit for bit, on the same kind of GPU. Every kind of state a training process
//! has is there and takes part in the result or is verified: parameters and optimizer moments in device memory, random
//! generators and a data cursor in host memory, batches under way in pipes and pinned buffers, work in flight on several
//! streams, an open log file. Options add what real jobs do besides: worker processes, forks, captured graphs, expandable
//! segments, several devices, several processes.
//!
//! It knows nothing of phos-ft, unless it is to tell it its steps (`--hints`).

#![allow(
    clippy::too_many_lines,
    clippy::fn_params_excessive_bools,
    reason = "a program to be checkpointed, which reads from top to bottom"
)]

mod arrays;
mod beside;
mod collective;
mod companion;
mod cuda;
mod data;
mod extras;
mod follow;
mod hints;
mod hold;
mod large;
mod many;
mod memories;
mod model;
mod multicast;
mod processes;
mod program;
mod rng;
mod scratch;
mod sharing;
mod train;
mod variable;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::cuda::CudaUnavailable;
use crate::extras::VerificationFailed;

const EXIT_CODES: &str = "\
Exit codes: 0 trained to the last step; 1 failure, CUDA errors among them; 2 bad arguments; 3 no CUDA driver or device; \
4 memory did not keep its content.

Each step prints `STEP LOSS_BITS LOSS`: the number of the step from 0, the bits of the f32 loss in hex, the loss.";

/// A small deterministic training program for the tests of phos-ft
#[derive(Parser, Debug, Clone)]
#[command(name = "phos-trainer", version, about, after_help = EXIT_CODES, args_override_self = true)]
pub(crate) struct Args {
    /// Number of training steps
    #[arg(long, default_value_t = 100)]
    pub steps: u64,
    /// Host-side pause after each step, in milliseconds
    #[arg(long, default_value_t = 0)]
    pub step_ms: u64,
    /// No pause from when FILE is there: who started it has seen enough and waits for its end
    #[arg(long, value_name = "FILE")]
    pub hurry_at: Option<PathBuf>,
    /// The step at which FILE is there is the last one
    #[arg(long, value_name = "FILE")]
    pub finish_at: Option<PathBuf>,
    /// Tell phos-ft the end of each step, as a program may that likes to
    #[arg(long)]
    pub hints: bool,
    /// Spend the pause computing instead of sleeping
    #[arg(long)]
    pub spin: bool,
    /// Append each step's line to this file too; it stays open
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Do not print the lines on stdout
    #[arg(long)]
    pub quiet: bool,
    /// Widths of the layers, from the input to the classes
    #[arg(
        long,
        value_name = "N,N,...",
        value_delimiter = ',',
        default_value = "64,256,256,16"
    )]
    pub layers: Vec<u32>,
    /// Samples in a batch (for each device)
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=65536))]
    pub batch: u32,
    /// Probability that dropout zeroes a hidden value
    #[arg(long, default_value_t = 0.1)]
    pub dropout: f32,
    /// Learning rate
    #[arg(long, default_value_t = 1e-3)]
    pub learning_rate: f32,
    /// Seed of data, initial weights and dropout
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Train on this many devices of this process, data parallel
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub devices: u32,
    /// Device memory that is filled once, never changes and is verified at the end, in MiB for each device
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub ballast_mib: u64,
    /// Verify the ballast every so many steps as well
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    pub verify_every: u64,
    /// Device memory that is verified, freed, allocated and filled anew at each step, in MiB for each device
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub churn_mib: u64,
    /// Device memory that is written anew at the end of each step, and verified at the beginning of the next, in MiB
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub state_mib: u64,
    /// Small calls of the driver that each step makes before that
    #[arg(long, value_name = "CALLS", default_value_t = 400)]
    pub state_calls: u64,
    /// Wait after each so many of these calls, so that the wait for the loss is the only one that comes after many
    #[arg(long, value_name = "CALLS", default_value_t = 0)]
    pub state_waits: u64,
    /// While FILE is there, that memory is written before these calls
    #[arg(long, value_name = "FILE")]
    pub state_early_at: Option<PathBuf>,
    /// Each part of that memory is written between any two of these calls, others in each step
    #[arg(long)]
    pub state_anywhere: bool,
    /// When FILE appears: this much more device memory, in MiB, allocated, filled, verified and freed once. FILE is removed
    #[arg(long, value_name = "MIB", default_value_t = 0, requires = "surge_at")]
    pub surge_mib: u64,
    /// The file for --surge-mib
    #[arg(long, value_name = "FILE")]
    pub surge_at: Option<PathBuf>,
    /// Stream-ordered memory (cuMemAllocAsync) that is filled once and verified at the end, in MiB for each device
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub pool_mib: u64,
    /// Run each step as captured CUDA graphs
    #[arg(long)]
    pub graph: bool,
    /// Keep the parameters in an expandable segment: virtual memory management of our own, as PyTorch does it
    #[arg(long)]
    pub expandable: bool,
    /// Copy to and fro on a second thread all the time and verify what comes back
    #[arg(long)]
    pub noise_thread: bool,
    /// Ask the driver on two further threads, without pause: about streams and events, about all else
    #[arg(long)]
    pub polling_thread: bool,
    /// Count in pinned, write-combined and registered host memory on a further thread, without pause, and verify that no write
    /// is lost
    #[arg(long)]
    pub counting_thread: bool,
    /// Call this process what is no text, as one with accents in its name is called once the kernel has cut it off
    #[arg(long)]
    pub strange_name: bool,
    /// As a profiler does, take the driver's private tables once this file is there
    #[arg(long, value_name = "FILE")]
    pub profile_at: Option<PathBuf>,
    /// Hold so many small allocations on the first device, one of which is verified and replaced at each step
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub allocations: usize,
    /// Of those, every Nth is a MiB and more, which the driver would not put together with others
    #[arg(long, value_name = "N", default_value_t = 0, requires = "allocations")]
    pub large_every: usize,
    /// Keep a field in arrays, from which each step makes the next one
    #[arg(long)]
    pub arrays: bool,
    /// Hold so many MiB more in an array
    #[arg(long, value_name = "MIB", default_value_t = 0, requires = "arrays")]
    pub array_mib: usize,
    /// Also run a program that follows from SEED: memory of every kind comes, is written in every way and goes
    #[arg(long, value_name = "SEED")]
    pub program: Option<u64>,
    /// Load a module with a variable of so many MiB, in use at each step
    #[arg(long, value_name = "MIB", default_value_t = 0)]
    pub variable_mib: usize,
    /// Have a multicast object over the devices of this process; a little is written to it at each step
    #[arg(long)]
    pub multicast: bool,
    /// Share device memory and an event with a further process by legacy IPC; both write to it at each step
    #[arg(long)]
    pub share: bool,
    /// Ask a further process about the GPU at each step, which uses NVML and no CUDA
    #[arg(long)]
    pub monitor: bool,
    /// Ask a further process at each step, which begins to use the GPU when FILE appears, and removes it then
    #[arg(long, value_name = "FILE")]
    pub work_when: Option<PathBuf>,
    /// Have what looks from outside like a communicator of NCCL's
    #[arg(long, value_name = "KIND")]
    pub communicator: Option<companion::Communicator>,
    /// Data-generating child processes, forked before CUDA is initialised
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub workers: u32,
    /// Fork a short-lived child every so many steps
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    pub fork_every: u64,
    /// Keep a TCP connection to a helper process, in use at each step
    #[arg(long)]
    pub tcp: bool,
    /// Have that connection on this address of the machine
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub tcp_address: std::net::IpAddr,
    /// End with success on SIGTERM, as a program with a handler does
    #[arg(long)]
    pub handle_sigterm: bool,
    /// Keep a TCP connection to whoever listens there
    #[arg(long, value_name = "IP:PORT")]
    pub connect: Option<std::net::SocketAddr>,
    /// Keep a socket, a named pipe, a mapped file and a removed one in a directory of our own in $TMPDIR, in use at each step
    #[arg(long)]
    pub scratch: bool,
    /// Keep named shared memory of 100 MiB and a deleted file of 4.5 GiB, a little of each written at each step
    #[arg(long, value_name = "NAME")]
    pub large: Option<String>,
    /// Keep CPU memory of every kind (without access, with guards, shared, sparse, changed pages of a file), a little of each
    /// written and verified at each step
    #[arg(long)]
    pub memories: bool,
    /// Keep named semaphores with these names' beginning, as Python's multiprocessing does under spawn, in use at each step with a
    /// helper process
    #[arg(long, value_name = "NAME")]
    pub semaphores: Option<String>,
    /// Keep FILE open and mapped for reading, a little of it at each step: numbers from 0 of 8 bytes each, that somebody else
    /// may go on appending
    #[arg(long, value_name = "FILE")]
    pub follow: Option<PathBuf>,
    /// While FILE is there, stand in a checkpoint's way: "work" keeps GPU work in flight that waits for the host, "capture" a
    /// stream capture, the path of a device keeps that open
    #[arg(long, value_name = "KIND", requires = "hold_while")]
    pub hold: Option<hold::Kind>,
    /// The file for --hold
    #[arg(long, value_name = "FILE")]
    pub hold_while: Option<PathBuf>,
    /// Start this many further trainers, ranks 1 to N, each a process with CUDA of its own; this one is rank 0
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=64))]
    pub rank_processes: u32,
    /// Meet the other ranks on the GPU at each step, through this NCCL or what looks like it
    #[arg(long, value_name = "LIBRARY")]
    pub nccl: Option<PathBuf>,
    /// With --nccl, have the last rank be late by this at each step
    #[arg(long, value_name = "MS", default_value_t = 0)]
    pub late_ms: u64,
    /// Compute in this process, as rank 0, what so many ranks would reduce with --nccl on the simulated GPU
    #[arg(long, value_name = "N", conflicts_with_all = ["nccl", "rank_processes"], value_parser = clap::value_parser!(u32).range(1..=64))]
    pub ranks_alone: Option<u32>,
    /// How many ranks there are: for the trainer that starts the others
    #[arg(long, hide = true, default_value_t = 1)]
    pub ranks: u32,
    /// This process's rank: shifts the seed and the first device; above 0 names the log FILE.rankR, prefixes stdout with
    /// [R]
    #[arg(long, default_value_t = 0)]
    pub rank: u32,
    /// Be one of the further processes: for the trainer that starts it
    #[arg(long, hide = true)]
    pub part: Option<companion::Part>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.layers.len() < 2 || args.layers.iter().any(|&n| n == 0 || n > 1 << 16) {
        eprintln!("phos-trainer: --layers needs at least two widths, each 1 to 65536");
        return ExitCode::from(2);
    }
    if !(0.0..1.0).contains(&args.dropout) {
        eprintln!("phos-trainer: --dropout is a probability below 1");
        return ExitCode::from(2);
    }
    if args.strange_name {
        let name = c"entra\xc3\xaenemen\xff\xc3";
        if let Err(error) = rustix::thread::set_name(name) {
            eprintln!("phos-trainer: --strange-name: {error}");
            return ExitCode::from(2);
        }
    }
    let ended = match args.part {
        None => train::run(&args),
        Some(part) => companion::run(part, &args),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("phos-trainer: {error:#}");
            ExitCode::from(if error.is::<CudaUnavailable>() {
                3
            } else if error.is::<VerificationFailed>() {
                4
            } else {
                1
            })
        }
    }
}
