//! Processes of the job that are this program again, each with a part of its own: they answer one request at a time over pipes.
//!
//! | part | what it does |
//! |---|---|
//! | `monitor` | asks NVML about the GPU, and nothing else: CUDA is not initialised in it |
//! | `worker` | works on the host, until a file is there: from then on it has memory on the GPU as well, as a compile worker that begins to measure |
//! | `peer` | shares device memory and an event with the trainer by legacy IPC (see [`crate::sharing`]) |

use std::ffi::{CStr, c_void};
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;

use crate::cuda::{self, Buffer, Gpu, alloc, checksum, pattern, stream};
use crate::processes::die_with_parent;
use crate::rng::mix;
use crate::{Args, sharing};

/// Which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    Monitor,
    Worker,
    Peer,
}

/// What it is asked: an operation, a number, and the bytes of a handle.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub what: u64,
    pub number: u64,
    pub handle: [u8; 64],
}

/// Bytes of a request.
const REQUEST: usize = 80;

impl Request {
    pub(crate) const fn plain(what: u64, number: u64) -> Self {
        Self {
            what,
            number,
            handle: [0; 64],
        }
    }

    fn bytes(&self) -> [u8; REQUEST] {
        let mut bytes = [0; REQUEST];
        bytes[..8].copy_from_slice(&self.what.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.number.to_le_bytes());
        bytes[16..].copy_from_slice(&self.handle);
        bytes
    }

    fn read(bytes: &[u8; REQUEST]) -> Self {
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let mut handle = [0; 64];
        handle.copy_from_slice(&bytes[16..]);
        Self {
            what: word(0),
            number: word(8),
            handle,
        }
    }
}

/// One that runs. It ends when its requests do.
#[derive(Debug)]
pub(crate) struct Companion {
    part: Part,
    child: std::process::Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Companion {
    /// Starts this program again, with its own arguments otherwise.
    pub(crate) fn start(part: Part) -> Result<Self> {
        let parent = std::process::id() as libc::pid_t;
        let program = std::env::current_exe().context("finding this program")?;
        let name = part
            .to_possible_value()
            .context("a part without a name")?
            .get_name()
            .to_owned();
        let mut command = Command::new(&program);
        command
            .args(std::env::args_os().skip(1))
            // Later options win over earlier ones.
            .args(["--part", &name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        // SAFETY: prctl and getppid are async-signal-safe.
        unsafe { command.pre_exec(move || die_with_parent(parent)) };
        let mut child = command
            .spawn()
            .with_context(|| format!("starting the {name}"))?;
        let (Some(requests), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the {name} has no pipes");
        };
        Ok(Self {
            part,
            child,
            requests,
            answers,
        })
    }

    /// Its answer.
    pub(crate) fn ask(&mut self, request: Request) -> Result<u64> {
        let mut answer = [0; 8];
        self.requests
            .write_all(&request.bytes())
            .and_then(|()| self.answers.read_exact(&mut answer))
            .with_context(|| format!("the {:?} is gone", self.part))?;
        Ok(u64::from_le_bytes(answer))
    }

    /// Lets it end.
    pub(crate) fn finish(mut self) -> Result<()> {
        drop(self.requests);
        let status = self.child.wait()?;
        ensure!(status.success(), "the {:?} ended with {status}", self.part);
        Ok(())
    }
}

/// The life of one.
pub(crate) fn run(part: Part, args: &Args) -> Result<()> {
    match part {
        Part::Monitor => {
            let nvml = Nvml::load()?;
            serve(|| Ok(()), |_| nvml.total())
        }
        Part::Worker => {
            let file = args.work_when.as_deref();
            let work = std::cell::RefCell::new(None);
            serve(
                || {
                    let mut work = work.borrow_mut();
                    if work.is_none()
                        && let Some(file) = file.filter(|file| file.exists())
                    {
                        *work = Some(Work::begin(args.seed)?);
                        std::fs::remove_file(file)?;
                    }
                    Ok(())
                },
                |request| {
                    if let Some(work) = &*work.borrow() {
                        work.verify()?;
                    }
                    Ok(mix(request.number))
                },
            )
        }
        Part::Peer => {
            let mut peer = sharing::Peer::new()?;
            serve(|| Ok(()), |request| peer.answer(request))
        }
    }
}

/// Answers requests until there are no more; `idle` is called about every millisecond while there is none.
fn serve(
    mut idle: impl FnMut() -> Result<()>,
    mut answer: impl FnMut(Request) -> Result<u64>,
) -> Result<()> {
    let (mut input, mut output) = (std::io::stdin().lock(), std::io::stdout().lock());
    loop {
        let mut poll = libc::pollfd {
            fd: input.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure, which lives for the call.
        if unsafe { libc::poll(&raw mut poll, 1, 1) } <= 0 {
            idle()?;
            continue;
        }
        let mut bytes = [0; REQUEST];
        match input.read_exact(&mut bytes) {
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let number = answer(Request::read(&bytes))?;
        output.write_all(&number.to_le_bytes())?;
        output.flush()?;
    }
}

/// What a worker has on the GPU.
struct Work {
    gpu: Gpu,
    buffer: Buffer,
    result: Buffer,
    stream: cudarc::driver::sys::CUstream,
    expected: u64,
}

impl Work {
    fn begin(seed: u64) -> Result<Self> {
        cuda::init()?;
        let gpu = Gpu::open(0)?;
        let stream = stream()?;
        let (buffer, result) = (alloc(3 << 20)?, alloc(8)?);
        pattern(&gpu, buffer, mix(seed), stream)?;
        let expected = checksum(&gpu, buffer, result, stream)?;
        Ok(Self {
            gpu,
            buffer,
            result,
            stream,
            expected,
        })
    }

    fn verify(&self) -> Result<()> {
        let sum = checksum(&self.gpu, self.buffer, self.result, self.stream)?;
        ensure!(sum == self.expected, "the worker's memory has changed");
        Ok(())
    }
}

/// NVML, loaded by name and left open.
struct Nvml {
    device: *mut c_void,
    memory: unsafe extern "C" fn(*mut c_void, *mut [u64; 3]) -> i32,
}

impl Nvml {
    fn load() -> Result<Self> {
        // SAFETY: loads a library whose initialisers are made for that.
        let library = unsafe { libc::dlopen(c"libnvidia-ml.so.1".as_ptr(), libc::RTLD_NOW) };
        ensure!(!library.is_null(), "libnvidia-ml.so.1 could not be loaded");
        let find = |name: &CStr| -> Result<*mut c_void> {
            // SAFETY: an open library and a name.
            let found = unsafe { libc::dlsym(library, name.as_ptr()) };
            ensure!(!found.is_null(), "NVML has no {name:?}");
            Ok(found)
        };
        let (init, get, memory) = (
            find(c"nvmlInit_v2")?,
            find(c"nvmlDeviceGetHandleByIndex_v2")?,
            find(c"nvmlDeviceGetMemoryInfo")?,
        );
        let mut device = std::ptr::null_mut();
        // SAFETY: functions of these types, by NVML's documentation; the device is written to a live variable.
        unsafe {
            let init: unsafe extern "C" fn() -> i32 = std::mem::transmute(init);
            let get: unsafe extern "C" fn(u32, *mut *mut c_void) -> i32 = std::mem::transmute(get);
            let begun = (init(), get(0, &raw mut device));
            ensure!(begun == (0, 0), "NVML answers {begun:?}");
            Ok(Self {
                device,
                memory: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut c_void, *mut [u64; 3]) -> i32,
                >(memory),
            })
        }
    }

    /// Memory of the first GPU, in bytes.
    fn total(&self) -> Result<u64> {
        let mut memory = [0; 3];
        // SAFETY: a device of NVML's, and room for the three numbers of `nvmlMemory_t`.
        let result = unsafe { (self.memory)(self.device, &raw mut memory) };
        ensure!(result == 0, "nvmlDeviceGetMemoryInfo answers {result}");
        Ok(memory[0])
    }
}

/// What looks from outside like a rank with communicators of NCCL's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Communicator {
    /// A thread that watches over one.
    Thread,
    /// Memory that ranks share.
    Segment,
    /// A socket by which ranks hand descriptors to each other.
    Socket,
}

impl Communicator {
    /// Has it for as long as this process lives.
    pub(crate) fn imitate(self) -> Result<()> {
        match self {
            Self::Thread => {
                let idle = || {
                    loop {
                        std::thread::park();
                    }
                };
                std::thread::Builder::new()
                    .name("pt_nccl_watchdg".into())
                    .spawn(idle)?;
            }
            Self::Segment => map_shared(&format!("/dev/shm/nccl-{}", std::process::id()))?,
            Self::Socket => {
                let name = format!("/tmp/nccl-socket-{}", std::process::id());
                let address = SocketAddr::from_abstract_name(name)?;
                // Open until the process ends.
                let _ = UnixDatagram::bind_addr(&address)?.into_raw_fd();
            }
        }
        Ok(())
    }
}

/// Maps a page of a file that has no name any more, as NCCL's ranks do once they have all opened it.
fn map_shared(path: &str) -> Result<()> {
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(path)?;
    file.set_len(4096)?;
    std::fs::remove_file(path)?;
    // SAFETY: a new mapping wherever the kernel puts it, which nobody uses.
    let at = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    ensure!(at != libc::MAP_FAILED, "mapping {path}");
    Ok(())
}
