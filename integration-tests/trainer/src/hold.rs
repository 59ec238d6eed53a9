//! What stands in a checkpoint's way for as long as a file is there: as real programs do it, beside their training.

use std::fs::File;
use std::path::PathBuf;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use cudarc::driver::sys::{self, CUstream};

use crate::cuda::{Pinned, cu, stream, synchronize};

/// What it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// GPU work that ends when the host sets a flag in its own memory, as of a persistent kernel.
    Work,
    /// GPU work that ends when a slow thread of the host has made a call of the driver's, which it does in the end; again and again.
    Late,
    /// A stream capture.
    Capture,
    /// An open device.
    Device(PathBuf),
}

impl std::str::FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "work" => Ok(Self::Work),
            "late" => Ok(Self::Late),
            "capture" => Ok(Self::Capture),
            path if path.starts_with("/dev/") => Ok(Self::Device(path.into())),
            other => Err(format!(
                "{other:?} is neither work, late, capture nor a device"
            )),
        }
    }
}

#[derive(Debug)]
enum Held {
    Work(CUstream, Pinned),
    Late(CUstream, Pinned, JoinHandle<Result<()>>),
    Capture(CUstream),
    Device(File),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Hold {
    kind: Kind,
    file: PathBuf,
    held: Option<Held>,
}

impl Hold {
    pub(crate) fn new(kind: Kind, file: PathBuf) -> Self {
        Self {
            kind,
            file,
            held: None,
        }
    }

    /// Begins or ends it, as the file says.
    pub(crate) fn step(&mut self) -> Result<()> {
        match (self.file.exists(), self.held.take()) {
            (true, None) => self.held = Some(self.begin()?),
            (false, Some(held)) => end(held)?,
            // Steps without it in between would be moments at which nothing stands in the way.
            (true, Some(Held::Late(stream, flag, thread))) if thread.is_finished() => {
                end(Held::Late(stream, flag, thread))?;
                self.held = Some(self.begin()?);
            }
            (_, held) => self.held = held,
        }
        Ok(())
    }

    fn begin(&self) -> Result<Held> {
        Ok(match &self.kind {
            Kind::Work => {
                let (stream, flag) = waiting()?;
                Held::Work(stream, flag)
            }
            Kind::Late => {
                let (stream, flag) = waiting()?;
                let mut context = std::ptr::null_mut();
                cu!(cuCtxGetCurrent(&mut context))?;
                let context = context.expose_provenance();
                let word = flag.ptr.expose_provenance();
                let thread = std::thread::spawn(move || {
                    std::thread::sleep(LATE);
                    cu!(cuCtxSetCurrent(std::ptr::with_exposed_provenance_mut(
                        context
                    )))?;
                    let (mut free, mut total) = (0, 0);
                    cu!(cuMemGetInfo_v2(&mut free, &mut total))?;
                    set(std::ptr::with_exposed_provenance_mut(word));
                    Ok(())
                });
                Held::Late(stream, flag, thread)
            }
            Kind::Capture => {
                let stream = stream()?;
                cu!(cuStreamBeginCapture_v2(
                    stream,
                    sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED
                ))?;
                Held::Capture(stream)
            }
            Kind::Device(path) => Held::Device(
                File::open(path).with_context(|| format!("opening {}", path.display()))?,
            ),
        })
    }

    pub(crate) fn finish(self) -> Result<()> {
        self.held.map_or(Ok(()), end)
    }
}

/// For how long [`Kind::Late`]'s thread sleeps.
const LATE: Duration = Duration::from_millis(1500);

/// A stream that waits until the word is set.
fn waiting() -> Result<(CUstream, Pinned)> {
    let stream = stream()?;
    let mut flag = Pinned::new(1)?;
    flag.as_mut()[0] = 0;
    let equal = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ as u32;
    cu!(cuStreamWaitValue32_v2(stream, flag.ptr as u64, 1, equal))?;
    Ok((stream, flag))
}

fn set(word: *mut u32) {
    // SAFETY: one word of pinned memory, which the device only reads.
    unsafe { word.write_volatile(1) };
}

fn free(stream: CUstream, flag: Pinned) -> Result<()> {
    synchronize(stream)?;
    flag.free()?;
    cu!(cuStreamDestroy_v2(stream))?;
    Ok(())
}

fn end(held: Held) -> Result<()> {
    match held {
        Held::Work(stream, flag) => {
            set(flag.ptr);
            free(stream, flag)?;
        }
        Held::Late(stream, flag, thread) => {
            thread
                .join()
                .map_err(|_| anyhow::anyhow!("the thread panicked"))??;
            free(stream, flag)?;
        }
        Held::Capture(stream) => {
            let mut graph = std::ptr::null_mut();
            cu!(cuStreamEndCapture(stream, &mut graph))?;
            if !graph.is_null() {
                cu!(cuGraphDestroy(graph))?;
            }
            cu!(cuStreamDestroy_v2(stream))?;
        }
        Held::Device(file) => drop(file),
    }
    Ok(())
}
