//! A data set that somebody else goes on appending to: open for reading and mapped, never written.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::extras::VerificationFailed;
use crate::scratch::map;

/// The file, and how far it was read.
#[derive(Debug)]
pub(crate) struct Follow {
    file: File,
    next: u64,
    beginning: &'static [u64],
}

impl Follow {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("opening {}", path.display()))?;
        let beginning = map(&file)?;
        Ok(Self {
            file,
            next: 0,
            beginning,
        })
    }

    /// Reads on where the last step stopped.
    pub(crate) fn step(&mut self, step: u64) -> Result<()> {
        let mut number = [0; 8];
        self.file
            .read_exact(&mut number)
            .context("reading the followed file")?;
        if u64::from_le_bytes(number) != self.next {
            bail!(VerificationFailed(format!(
                "the followed file has {} at step {step}, not {}",
                u64::from_le_bytes(number),
                self.next
            )));
        }
        self.next += 1;
        if (self.beginning.iter().zip(0_u64..)).any(|(&word, n)| u64::from_le(word) != n) {
            bail!(VerificationFailed(format!(
                "the mapped beginning of the followed file, at step {step}"
            )));
        }
        Ok(())
    }
}
