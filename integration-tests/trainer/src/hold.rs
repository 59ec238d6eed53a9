//! What stands in a checkpoint's way for as long as a file is there: as real programs do it, beside their training.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result};
use cudarc::driver::sys::{self, CUstream};

use crate::cuda::{Pinned, cu, stream, synchronize};

/// What it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    /// GPU work that ends when the host sets a flag in its own memory, as of a persistent kernel.
    Work,
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
            "capture" => Ok(Self::Capture),
            path if path.starts_with("/dev/") => Ok(Self::Device(path.into())),
            other => Err(format!("{other:?} is neither work, capture nor a device")),
        }
    }
}

#[derive(Debug)]
enum Held {
    Work(CUstream, Pinned),
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
            (_, held) => self.held = held,
        }
        Ok(())
    }

    fn begin(&self) -> Result<Held> {
        Ok(match &self.kind {
            Kind::Work => {
                let stream = stream()?;
                let mut flag = Pinned::new(1)?;
                flag.as_mut()[0] = 0;
                let equal = sys::CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ as u32;
                cu!(cuStreamWaitValue32_v2(stream, flag.ptr as u64, 1, equal))?;
                Held::Work(stream, flag)
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

fn end(held: Held) -> Result<()> {
    match held {
        Held::Work(stream, flag) => {
            // SAFETY: one word of pinned memory, which the device only reads.
            unsafe { flag.ptr.write_volatile(1) };
            synchronize(stream)?;
            flag.free()?;
            cu!(cuStreamDestroy_v2(stream))?;
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
