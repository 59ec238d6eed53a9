//! The job's standard streams: pipes whose other ends the agent holds, so that a restored job can get fresh ones and its output
//! continues to go where the agent's goes.
//!
//! # Rules
//!
//! * A generation of the job (start or restore) has pipes of its own. Output is copied by one thread per pipe,
//!   which ends when the last writer has gone.
//! * Input is copied by one thread for the agent's whole life; it writes to the pipe of the current generation.
//!   With `/dev/null` (or nothing) as its own standard input, the agent gives the job `/dev/null`.
//! * When the reader of the agent's output goes away, the job's pipe is closed: the job gets SIGPIPE, as it would without
//!   phos-ft. A job that ends of that has ended by itself ([`Generation::ended_for_want_of_a_reader`]): if it were brought back,
//!   it would end again, for ever. A SIGPIPE while somebody reads comes from a pipe or socket inside the job, and is a crash.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use phos_protocol::agent::Exit;
use rustix::pipe::{PipeFlags, pipe_with};

use crate::image::StdioPipe;

/// How much of the end of the job's standard error is looked at for the reason why it ended.
const TAIL: usize = 64 << 10;

/// Its last words: so many lines. Node's name the error in the fourth from the end.
const LAST_WORDS: usize = 4;

/// How soon after its output was closed a job ends of that, where it cannot say so.
const SOON: Duration = Duration::from_secs(60);

/// The ends of a generation's streams that the job gets.
#[derive(Debug)]
pub struct JobEnds {
    /// Standard input: the reading end, or `/dev/null`.
    pub stdin: OwnedFd,
    /// Standard output: the writing end.
    pub stdout: OwnedFd,
    /// Standard error: the writing end.
    pub stderr: OwnedFd,
}

/// The streams of one generation of the job, the agent's side.
#[derive(Debug)]
pub struct Generation {
    /// The pipes, by the inodes that the kernel gave them.
    pub pipes: Vec<StdioPipe>,
    done: Receiver<()>,
    pumps: usize,
    output: Arc<Mutex<Output>>,
}

/// What is remembered of the output of a generation.
#[derive(Debug, Default)]
struct Output {
    /// When the pipes of standard output and standard error were closed because nobody reads them any more.
    closed: [Option<Instant>; 2],
    /// The end of what was written to standard error.
    tail: Vec<u8>,
}

impl Output {
    fn wrote(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        let surplus = self.tail.len().saturating_sub(TAIL);
        // Twice as much at most, so that few writes move anything.
        if surplus > TAIL {
            self.tail.drain(..surplus);
        }
    }

    /// Whether the job's last words are of a broken pipe: languages that ignore SIGPIPE (Python, Rust) end with an error of their
    /// own. What it said of one before is not why it ended: Python's `logging` passes over it, and says so at each line.
    fn speaks_of_a_broken_pipe(&self) -> bool {
        let lines = self.tail.rsplit(|&b| b == b'\n');
        lines
            .filter(|line| !line.trim_ascii().is_empty())
            .take(LAST_WORDS)
            .any(|line| {
                [&b"Broken pipe"[..], b"BrokenPipe", b"EPIPE"]
                    .iter()
                    .any(|words| line.windows(words.len()).any(|w| w == *words))
            })
    }

    fn ended_for_want_of_a_reader(&self, exit: Exit, now: Instant) -> bool {
        let [out, err] = self.closed;
        let Some(since) = out.max(err).filter(|_| !exit.is_success()) else {
            return false;
        };
        // With standard error closed as well, nothing else can be said of it.
        let both = out.is_some() && err.is_some() && now.saturating_duration_since(since) < SOON;
        match exit {
            Exit::Signal(signal) => signal == libc::SIGPIPE,
            // A shell's code for a child that ended so.
            Exit::Code(code) => {
                code == 128 + libc::SIGPIPE || both || self.speaks_of_a_broken_pipe()
            }
        }
    }
}

impl Generation {
    /// Waits until all output was copied, at most `bound`: a process that left the tree may hold a pipe open.
    pub fn finish(&self, bound: Duration) {
        let until = Instant::now() + bound;
        for _ in 0..self.pumps {
            let left = until.saturating_duration_since(Instant::now());
            if let Err(RecvTimeoutError::Timeout) = self.done.recv_timeout(left) {
                return;
            }
        }
    }

    /// Whether a job that ended like this did so because nobody reads its output any more.
    pub fn ended_for_want_of_a_reader(&self, exit: Exit) -> bool {
        if lock(&self.output).closed == [None, None] {
            return false;
        }
        // What it said of it is on its way.
        self.finish(Duration::from_millis(500));
        lock(&self.output).ended_for_want_of_a_reader(exit, Instant::now())
    }
}

#[derive(Debug, Default)]
struct Input {
    /// The writing end of the current generation.
    target: Option<Arc<OwnedFd>>,
    /// Whether the agent's own input has ended.
    ended: bool,
}

/// Makes the streams of every generation.
#[derive(Debug)]
pub struct Stdio {
    /// `None`: the job gets `/dev/null`.
    input: Option<Arc<(Mutex<Input>, Condvar)>>,
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stdio {
    /// Looks at the agent's own input and starts its thread if there is something to read.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn new() -> io::Result<Self> {
        if !has_input() {
            return Ok(Self { input: None });
        }
        let input = Arc::new((Mutex::new(Input::default()), Condvar::new()));
        let shared = Arc::clone(&input);
        std::thread::Builder::new()
            .name("stdin".into())
            .spawn(move || pump_input(&shared))?;
        Ok(Self { input: Some(input) })
    }

    /// Makes the pipes of a new generation and starts copying.
    ///
    /// # Errors
    /// No pipe or thread can be made.
    pub fn generation(&self) -> io::Result<(JobEnds, Generation)> {
        let (out_read, out_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let (err_read, err_write) = pipe_with(PipeFlags::CLOEXEC)?;
        let mut pipes = vec![
            StdioPipe {
                stream: 1,
                inode: inode(&out_read)?,
            },
            StdioPipe {
                stream: 2,
                inode: inode(&err_read)?,
            },
        ];
        let stdin = match &self.input {
            None => File::open("/dev/null")?.into(),
            Some(input) => {
                let (read, write) = pipe_with(PipeFlags::CLOEXEC)?;
                pipes.push(StdioPipe {
                    stream: 0,
                    inode: inode(&read)?,
                });
                let mut state = lock(&input.0);
                // After the end of the agent's own input the job's ends at once.
                state.target = (!state.ended).then(|| Arc::new(write));
                input.1.notify_all();
                read
            }
        };
        let (sender, done) = channel();
        let output = Arc::new(Mutex::new(Output::default()));
        let mut pumps = 0;
        for (from, to, name) in [(out_read, 1, "stdout"), (err_read, 2, "stderr")] {
            let sender: Sender<()> = sender.clone();
            let output = Arc::clone(&output);
            std::thread::Builder::new()
                .name(name.into())
                .spawn(move || {
                    pump_output(from.into(), to, &output);
                    // Nobody may be waiting.
                    let _ = sender.send(());
                })?;
            pumps += 1;
        }
        Ok((
            JobEnds {
                stdin,
                stdout: out_write,
                stderr: err_write,
            },
            Generation {
                pipes,
                done,
                pumps,
                output,
            },
        ))
    }
}

/// Lets go of a terminal in whose background this process is: its input is the shell's. To be called before this process gets a session of
/// its own, as the kernel then no longer stops it where it reads. What is brought to the foreground later has no input.
///
/// # Errors
/// `/dev/null` cannot be opened.
pub fn leave_to_the_shell() -> io::Result<()> {
    let stdin = rustix::stdio::stdin();
    let foreground = rustix::termios::tcgetpgrp(stdin);
    if foreground.is_ok_and(|group| group != rustix::process::getpgrp()) {
        tracing::info!(
            "started in the background of a terminal: the command gets no input from it"
        );
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    }
    Ok(())
}

fn inode(fd: impl AsFd) -> io::Result<u64> {
    Ok(rustix::fs::fstat(fd)?.st_ino)
}

/// Whether the agent has an input worth passing on.
fn has_input() -> bool {
    // SAFETY: fd 0 is only looked at; if it is not open, fstat reports it.
    let stdin = unsafe { BorrowedFd::borrow_raw(0) };
    let Ok(mine) = rustix::fs::fstat(stdin) else {
        return false;
    };
    let Ok(null) = std::fs::metadata("/dev/null") else {
        return true;
    };
    use std::os::unix::fs::MetadataExt;
    !(null.file_type().is_char_device() && null.rdev() == mine.st_rdev)
}

/// A file for one of the agent's own streams that does not close it.
fn own_stream(fd: i32) -> std::mem::ManuallyDrop<File> {
    // SAFETY: streams 0 to 2 stay open for the life of the process, and ManuallyDrop never closes them.
    std::mem::ManuallyDrop::new(unsafe { File::from_raw_fd(fd) })
}

fn pump_output(mut from: File, to: i32, output: &Mutex<Output>) {
    let mut target = own_stream(to);
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        let n = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        if to == 2 {
            lock(output).wrote(&buffer[..n]);
        }
        if let Err(e) = write_all(&mut target, &buffer[..n]) {
            if is_without_reader(&e) {
                // Before the pipe is closed: the job's end comes after that.
                lock(output).closed[usize::from(to == 2)] = Some(Instant::now());
            }
            return;
        }
    }
}

fn is_without_reader(cause: &io::Error) -> bool {
    matches!(
        cause.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset
    )
}

/// As `Write::write_all`, for streams that somebody made non-blocking (terminals are shared) as well.
fn write_all(target: &mut File, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match target.write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                wait(target.as_fd(), rustix::event::PollFlags::OUT);
            }
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

fn wait(fd: BorrowedFd<'_>, flags: rustix::event::PollFlags) {
    let mut fds = [rustix::event::PollFd::new(&fd, flags)];
    // An error shows at the next read or write.
    let _ = rustix::event::poll(&mut fds, None);
}

fn pump_input(shared: &(Mutex<Input>, Condvar)) {
    let mut source = own_stream(0);
    let mut buffer = vec![0_u8; 64 << 10];
    loop {
        // Read only when there is somebody to write to.
        let mut state = lock(&shared.0);
        while state.target.is_none() {
            state = shared.1.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        drop(state);
        let n = match source.read(&mut buffer) {
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                wait(source.as_fd(), rustix::event::PollFlags::IN);
                continue;
            }
            Err(_) => 0,
        };
        if n == 0 {
            let mut state = lock(&shared.0);
            state.ended = true;
            state.target = None;
            return;
        }
        let mut sent = 0;
        while sent < n {
            // The lock is not held while the job does not read.
            let Some(target) = lock(&shared.0).target.clone() else {
                break;
            };
            match rustix::io::write(&*target, &buffer[sent..n]) {
                Ok(written) => sent += written,
                Err(rustix::io::Errno::INTR) => {}
                Err(_) => {
                    // This generation has closed its input; the next one gets what comes then.
                    let mut state = lock(&shared.0);
                    if state
                        .target
                        .as_ref()
                        .is_some_and(|t| Arc::ptr_eq(t, &target))
                    {
                        state.target = None;
                    }
                    break;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::sigpipe_with_a_reader_is_of_inside([false, false], b"", Exit::Signal(libc::SIGPIPE), false)]
    #[case::sigpipe_without([true, false], b"", Exit::Signal(libc::SIGPIPE), true)]
    #[case::in_a_shell([true, false], b"", Exit::Code(141), true)]
    #[case::another_signal_is_a_crash([true, true], b"Broken pipe", Exit::Signal(libc::SIGSEGV), false)]
    #[case::python([true, false], b"BrokenPipeError: [Errno 32] Broken pipe\n", Exit::Code(1), true)]
    #[case::python_with_a_reader([false, false], b"BrokenPipeError: [Errno 32]", Exit::Code(1), false)]
    #[case::it_went_on_and_failed_of_something_else([true, false], b"ValueError: nan", Exit::Code(1), false)]
    #[case::nothing_can_be_said([true, true], b"", Exit::Code(1), true)]
    #[case::success([true, true], b"", Exit::Code(0), false)]
    fn whose_end_it_was(
        #[case] closed: [bool; 2],
        #[case] said: &[u8],
        #[case] exit: Exit,
        #[case] own: bool,
    ) {
        let now = Instant::now();
        let mut output = Output {
            closed: closed.map(|closed| closed.then_some(now)),
            ..Output::default()
        };
        output.wrote(said);
        assert_eq!(output.ended_for_want_of_a_reader(exit, now), own);
    }

    /// It went on for hours without a reader: what ends it then is something else.
    #[test]
    fn a_crash_long_after_the_reader_left_is_one() {
        let closed = Instant::now();
        let mut output = Output {
            closed: [Some(closed), None],
            ..Output::default()
        };
        for line in 0..20 {
            output.wrote(
                b"--- Logging error ---\nBrokenPipeError: [Errno 32] Broken pipe\nCall stack:\n",
            );
            output.wrote(format!("Message: 'step {line}'\nArguments: ()\n").as_bytes());
        }
        output.wrote(b"Traceback (most recent call last):\n  File \"train.py\", line 9\n    step()\nRuntimeError: CUDA error\n");
        let later = closed + Duration::from_secs(20 * 3600);
        assert!(!output.ended_for_want_of_a_reader(Exit::Code(1), later));
        output.closed[1] = Some(closed);
        assert!(!output.ended_for_want_of_a_reader(Exit::Code(1), later));
        assert!(output.ended_for_want_of_a_reader(Exit::Signal(libc::SIGPIPE), later));
    }

    #[test]
    fn the_end_of_what_was_said_is_kept_and_no_more() {
        let mut output = Output::default();
        for _ in 0..100 {
            output.wrote(&[b'x'; 5000]);
        }
        output.wrote(b"\nBroken pipe\n");
        assert!(output.tail.len() <= 2 * TAIL + 5000);
        assert!(output.speaks_of_a_broken_pipe());
        for _ in 0..100 {
            output.wrote(&[b'x'; 5000]);
        }
        assert!(!output.speaks_of_a_broken_pipe());
    }
}
