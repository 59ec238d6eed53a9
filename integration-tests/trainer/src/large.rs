//! Memory and files that are shared by name or have lost their names: named shared memory and a deleted file, both longer than what
//! is usually carried, and the named semaphores of glibc, which Python's multiprocessing makes under spawn.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::extras::VerificationFailed;
use crate::processes::{Child, fork_child};
use crate::rng::mix;

/// From the word of one step to that of the next.
const STRIDE: u64 = 256 << 10;
const MEMORY: u64 = 100 << 20;
const DELETED: u64 = (9 << 30) / 2;

/// Both of them: each has a word for each step that was made, and none of a step that was not.
#[derive(Debug)]
pub(crate) struct Large {
    memory: File,
    name: PathBuf,
    deleted: File,
}

impl Large {
    pub(crate) fn start(name: &str) -> Result<Self> {
        let open = |path: &PathBuf| {
            let mut options = OpenOptions::new();
            let file = options
                .read(true)
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path);
            file.with_context(|| format!("making {}", path.display()))
        };
        let name = PathBuf::from("/dev/shm").join(name);
        let memory = open(&name)?;
        memory.set_len(MEMORY)?;
        let path =
            std::env::temp_dir().join(format!("phos-trainer-{}.deleted", std::process::id()));
        let deleted = open(&path)?;
        std::fs::remove_file(&path)?;
        // Taken from the disk and not written.
        // SAFETY: an open file and numbers.
        let taken = unsafe { libc::fallocate(deleted.as_raw_fd(), 0, 0, DELETED.cast_signed()) };
        if taken != 0 {
            return Err(io::Error::last_os_error()).context("making the deleted file");
        }
        Ok(Self {
            memory,
            name,
            deleted,
        })
    }

    pub(crate) fn step(&mut self, step: u64) -> Result<()> {
        for (what, file, length) in [
            ("shared memory", &self.memory, MEMORY),
            ("the deleted file", &self.deleted, DELETED),
        ] {
            // The words of the deleted file lie at its end, beyond 4 GiB.
            let last = length / STRIDE - 1;
            let at = |step: u64| (last - step % (last / 2)) * STRIDE;
            let read = |step: u64| -> Result<u64> {
                let mut word = [0; 8];
                file.read_exact_at(&mut word, at(step))?;
                Ok(u64::from_le_bytes(word))
            };
            if file.metadata()?.len() != length {
                bail!(VerificationFailed(format!("{what} has another length")));
            }
            let before = step.checked_sub(1).map(|last| (last, mix(last)));
            let is = before.map(|(last, _)| read(last)).transpose()?;
            if is != before.map(|(_, word)| word) {
                bail!(VerificationFailed(format!("{what}, before step {step}")));
            }
            let turns = step / (last / 2);
            if turns == 0 && read(step)? != 0 {
                bail!(VerificationFailed(format!(
                    "{what} has the word of step {step} before that step"
                )));
            }
            file.write_all_at(&mix(step).to_le_bytes(), at(step))?;
        }
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<()> {
        std::fs::remove_file(&self.name)
            .with_context(|| format!("removing {}", self.name.display()))
    }
}

/// A named semaphore that is open.
#[derive(Debug, Clone, Copy)]
struct Semaphore(*mut libc::sem_t);

impl Semaphore {
    fn make(name: &CString) -> Result<Self> {
        // SAFETY: name is a string that ends with 0.
        let opened =
            unsafe { libc::sem_open(name.as_ptr(), libc::O_CREAT | libc::O_EXCL, 0o600, 0) };
        Self::of(opened).with_context(|| format!("making the semaphore {name:?}"))
    }

    fn open(name: &CString) -> io::Result<Self> {
        // SAFETY: name is a string that ends with 0.
        Self::of(unsafe { libc::sem_open(name.as_ptr(), 0) })
    }

    fn of(opened: *mut libc::sem_t) -> io::Result<Self> {
        if opened == libc::SEM_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Self(opened))
    }

    fn post(self) {
        // SAFETY: opened and never closed.
        unsafe { libc::sem_post(self.0) };
    }

    fn wait(self) {
        // SAFETY: opened and never closed. A signal makes it return before.
        while unsafe { libc::sem_wait(self.0) } != 0 {}
    }

    fn wait_for(self, limit: Duration) -> bool {
        let until = std::time::Instant::now() + limit;
        // SAFETY: opened and never closed.
        while unsafe { libc::sem_trywait(self.0) } != 0 {
            if std::time::Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_micros(100));
        }
        true
    }

    fn value(self) -> i32 {
        let mut value = 0;
        // SAFETY: opened and never closed.
        unsafe { libc::sem_getvalue(self.0, &mut value) };
        value
    }
}

/// One to ask a helper, one for its answer, one that counts steps. This process has them mapped by names that are gone, the
/// helper by those that they have.
#[derive(Debug)]
pub(crate) struct Semaphores {
    names: [CString; 3],
    ask: Semaphore,
    answer: Semaphore,
    count: Semaphore,
    _helper: Child,
}

impl Semaphores {
    /// Forks the helper: before CUDA is initialised, and before this process has a second thread.
    pub(crate) fn start(name: &str) -> Result<Self> {
        let name = |part: &str| CString::new(format!("/{name}-{part}"));
        let names = [name("ask")?, name("answer")?, name("count")?];
        let theirs = names.clone();
        // Before they are made: what it inherited it would not open again.
        let helper = fork_child(move || {
            let [ask, answer, _] = theirs.map(|name| {
                loop {
                    match Semaphore::open(&name) {
                        Ok(semaphore) => return semaphore,
                        Err(_) => std::thread::sleep(Duration::from_millis(1)),
                    }
                }
            });
            loop {
                ask.wait();
                answer.post();
            }
        })?;
        let [ask, answer, count] = [
            Semaphore::make(&names[0])?,
            Semaphore::make(&names[1])?,
            Semaphore::make(&names[2])?,
        ];
        Ok(Self {
            names,
            ask,
            answer,
            count,
            _helper: helper,
        })
    }

    pub(crate) fn step(&mut self, step: u64) -> Result<()> {
        let steps = self.count.value();
        if i64::from(steps) != step.cast_signed() {
            bail!(VerificationFailed(format!(
                "the semaphore that counts steps is at {steps} before step {step}"
            )));
        }
        self.count.post();
        self.ask.post();
        if !self.answer.wait_for(Duration::from_secs(30)) {
            bail!("the helper does not share the semaphores any more");
        }
        Ok(())
    }

    pub(crate) fn finish(self) {
        for name in &self.names {
            // SAFETY: name is a string that ends with 0.
            unsafe { libc::sem_unlink(name.as_ptr()) };
        }
    }
}
