//! What libraries leave in temporary directories and go on using: a listening socket that is connected to by its path, as
//! Python's multiprocessing does for a DataLoader's workers; a file of compiled code that is mapped and never written again, as
//! Triton's and TorchInductor's; a named pipe; a file without a name, as `tempfile` makes it. On another machine that directory is not there.

use std::ffi::CString;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};

use crate::extras::VerificationFailed;
use crate::processes::{Child, fork_child};
use crate::rng::mix;

const WORDS: usize = 8192;

/// A directory of our own in the temporary one.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: PathBuf,
    pipe: File,
    removed: File,
    code: &'static [u64],
    _helper: Child,
}

impl Scratch {
    /// Forks a helper: before CUDA is initialised, and before this process has a second thread.
    pub(crate) fn start() -> Result<Self> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos();
        let dir = std::env::temp_dir().join(format!("phos-trainer-{}-{now}", std::process::id()));
        let made = DirBuilder::new().mode(0o700).create(&dir);
        made.with_context(|| format!("making {}", dir.display()))?;
        let listener = UnixListener::bind(dir.join("listener"))?;
        let helper = fork_child(|| serve(&listener))?;
        drop(listener);

        let name = CString::new(dir.join("pipe").as_os_str().as_bytes())?;
        // SAFETY: name is a string that ends with 0.
        if unsafe { libc::mkfifo(name.as_ptr(), 0o600) } != 0 {
            return Err(io::Error::last_os_error()).context("mkfifo");
        }
        let mut pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .open(dir.join("pipe"))?;
        pipe.write_all(&0_u64.to_le_bytes())?;

        let removed = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(dir.join("removed"))?;
        std::fs::remove_file(dir.join("removed"))?;
        removed.write_all_at(&0_u64.to_le_bytes(), 0)?;

        let bytes: Vec<u8> = (0..WORDS as u64)
            .flat_map(|n| mix(n).to_le_bytes())
            .collect();
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o755)
            .open(dir.join("code.bin"))?
            .write_all(&bytes)?;
        let code = map(&File::open(dir.join("code.bin"))?)?;
        Ok(Self {
            dir,
            pipe,
            removed,
            code,
            _helper: helper,
        })
    }

    /// Uses all of it.
    pub(crate) fn step(&mut self, step: u64) -> Result<()> {
        let path = self.dir.join("listener");
        let mut connection = UnixStream::connect(&path)
            .with_context(|| format!("connecting to {}", path.display()))?;
        connection.write_all(&step.to_le_bytes())?;
        let mut answer = [0; 8];
        connection.read_exact(&mut answer)?;
        if u64::from_le_bytes(answer) != mix(step) {
            bail!(
                "the helper behind {} answered something else",
                path.display()
            );
        }
        let mut token = [0; 8];
        self.pipe.read_exact(&mut token)?;
        if u64::from_le_bytes(token) != step {
            bail!(VerificationFailed(format!(
                "the named pipe, at step {step}"
            )));
        }
        self.pipe.write_all(&(step + 1).to_le_bytes())?;
        self.removed.read_exact_at(&mut token, 0)?;
        if u64::from_le_bytes(token) != step {
            bail!(VerificationFailed(format!(
                "the removed file, at step {step}"
            )));
        }
        self.removed.write_all_at(&(step + 1).to_le_bytes(), 0)?;
        if (self.code.iter().zip(0_u64..)).any(|(&word, n)| u64::from_le(word) != mix(n)) {
            bail!(VerificationFailed(format!("mapped code, at step {step}")));
        }
        Ok(())
    }

    /// Removes the directory, as its owner may.
    pub(crate) fn finish(self) -> Result<()> {
        let dir = self.dir;
        std::fs::remove_dir_all(&dir).with_context(|| format!("removing {}", dir.display()))
    }
}

/// Maps the words of a file to be read, for as long as this process lives.
pub(crate) fn map(file: &File) -> Result<&'static [u64]> {
    // SAFETY: a new mapping of a file of that length, which nobody writes to and nobody unmaps; pages are aligned for words.
    unsafe {
        let address = libc::mmap(
            std::ptr::null_mut(),
            WORDS * 8,
            libc::PROT_READ,
            libc::MAP_PRIVATE,
            file.as_raw_fd(),
            0,
        );
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error()).context("mmap");
        }
        Ok(std::slice::from_raw_parts(address.cast(), WORDS))
    }
}

/// The helper's life: one number from each connection.
fn serve(listener: &UnixListener) {
    for mut connection in listener.incoming().flatten() {
        let mut number = [0; 8];
        if connection.read_exact(&mut number).is_ok() {
            let _ = connection.write_all(&mix(u64::from_le_bytes(number)).to_le_bytes());
        }
    }
}
