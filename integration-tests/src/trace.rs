//! The loss trace of a run: what "bit for bit" is measured by.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail};

/// Bytes at the end of the trainer's log that are looked at for its last step: a line has 40 at most, and one may be incomplete.
const END: u64 = 512;

/// Loss per step, as the trainer printed its bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LossTrace {
    losses: BTreeMap<u64, String>,
}

impl LossTrace {
    /// Reads the trainer's log: a line per step, `step loss_bits …`. A last line without its
    /// newline is being written and does not count.
    ///
    /// # Errors
    /// When the file cannot be read, a line does not parse, or a step stands there twice: a log
    /// put back to its length at the checkpoint never repeats a step.
    pub fn read(path: &Path) -> Result<LossTrace> {
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("reading the loss trace {}", path.display()))?;
        let mut losses = BTreeMap::new();
        for line in text.split_inclusive('\n').filter(|l| l.ends_with('\n')) {
            let mut words = line.split_whitespace();
            let (Some(step), Some(bits)) = (words.next(), words.next()) else {
                bail!("{}: not a step line: {line:?}", path.display());
            };
            let step: u64 = step
                .parse()
                .with_context(|| format!("{}: {line:?}", path.display()))?;
            if losses.insert(step, bits.to_owned()).is_some() {
                bail!("{}: step {step} stands there twice", path.display());
            }
        }
        Ok(LossTrace { losses })
    }

    /// The last step in the trainer's log, whose end alone is looked at: tests that wait for a step look often, at logs that grow.
    ///
    /// # Errors
    /// When the file cannot be read, or its last line does not parse.
    pub fn last_step_of(path: &Path) -> Result<Option<u64>> {
        let mut file = File::open(path)?;
        let length = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(length.saturating_sub(END)))?;
        let mut end = Vec::new();
        file.read_to_end(&mut end)?;
        let end = String::from_utf8_lossy(&end);
        let Some((complete, _)) = end.rsplit_once('\n') else {
            return Ok(None);
        };
        let line = complete.rsplit('\n').next().unwrap_or_default();
        let step = line.split_whitespace().next().unwrap_or_default();
        let parsed = step
            .parse()
            .with_context(|| format!("{}: {line:?}", path.display()))?;
        Ok(Some(parsed))
    }

    /// How many steps it holds.
    pub fn len(&self) -> usize {
        self.losses.len()
    }

    /// Its steps before `end`.
    pub fn first(&self, end: u64) -> LossTrace {
        let losses = self.losses.range(..end);
        LossTrace {
            losses: losses.map(|(&step, bits)| (step, bits.clone())).collect(),
        }
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.losses.is_empty()
    }

    /// The last step.
    pub fn last_step(&self) -> Option<u64> {
        self.losses.keys().next_back().copied()
    }

    /// The first step at which the two differ (also: which one of them lacks), if any.
    pub fn first_difference(&self, other: &LossTrace) -> Option<u64> {
        let steps = self.losses.keys().chain(other.losses.keys());
        steps
            .filter(|step| self.losses.get(step) != other.losses.get(step))
            .min()
            .copied()
    }
}

#[cfg(test)]
mod tests {
    use super::LossTrace;

    fn trace(text: &str) -> anyhow::Result<LossTrace> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(file.path(), text)?;
        LossTrace::read(file.path())
    }

    #[test]
    fn differences_are_found_in_bits_and_in_length() -> anyhow::Result<()> {
        let a = trace("0 3f800000 1.0\n1 3f000000 0.5\n2 3e")?;
        assert_eq!(a.len(), 2);
        assert_eq!(a.first_difference(&a), None);
        let b = trace("0 3f800000 1.0\n1 3f000001 0.5\n")?;
        assert_eq!(a.first_difference(&b), Some(1));
        let c = trace("0 3f800000 1.0\n")?;
        assert_eq!(a.first_difference(&c), Some(1));
        Ok(())
    }

    #[test]
    fn the_last_step_is_that_of_the_last_whole_line() -> anyhow::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        let mut text = String::new();
        for (more, last) in [
            ("", None),
            ("0 3f80", None),
            ("0000 1.0\n", Some(0)),
            ("1 3f000000 0.5\n", Some(1)),
            ("2", Some(1)),
        ] {
            text.push_str(more);
            std::fs::write(file.path(), &text)?;
            assert_eq!(LossTrace::last_step_of(file.path())?, last, "{text:?}");
        }
        text.clear();
        for step in 0..1000 {
            text.push_str(&format!("{step} 3f800000 1.000000\n"));
        }
        std::fs::write(file.path(), &text)?;
        assert_eq!(LossTrace::last_step_of(file.path())?, Some(999));
        std::fs::write(file.path(), "no step\n")?;
        assert!(LossTrace::last_step_of(file.path()).is_err());
        Ok(())
    }

    #[test]
    fn a_step_twice_is_an_error() {
        assert!(trace("0 3f800000 1.0\n0 3f800000 1.0\n").is_err());
    }
}
