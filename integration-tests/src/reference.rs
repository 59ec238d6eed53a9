//! Undisturbed runs, which all tests on this machine share.
//!
//! The trainer is deterministic, and what it logs up to a step does not depend on how many follow. So one run stands for every test
//! that asks for the same program with the same arguments, in the same environment, on the same simulated GPU, and as many steps or
//! fewer. The logs lie beside the programs, under a hash of all that and of when the programs were built. Only one process trains the
//! same at a time; a log appears there complete.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::trace::LossTrace;
use crate::world::bin_dir;

/// The programs on which a run's result depends.
const PROGRAMS: [&str; 3] = ["phos-trainer", "libphos_gpu_sim.so", "libphos_nccl_sim.so"];

/// The first `steps` steps of the run that `what` describes. `train` makes its log at the path that it is given.
///
/// # Errors
/// Those of `train` and of files; when the run has fewer steps.
pub(crate) fn shared(
    what: &impl Hash,
    steps: u64,
    train: impl FnOnce(&Path) -> Result<()>,
) -> Result<LossTrace> {
    let mut key = DefaultHasher::new();
    what.hash(&mut key);
    for program in PROGRAMS {
        let path = bin_dir().join(program);
        let built = fs::metadata(&path).with_context(|| format!("reading {}", path.display()))?;
        (built.len(), built.mtime(), built.mtime_nsec()).hash(&mut key);
    }
    let dir = bin_dir().join("references");
    fs::create_dir_all(&dir).with_context(|| format!("making {}", dir.display()))?;
    let name = format!("{:016x}", key.finish());
    let lock = File::create(dir.join(format!("{name}.lock")))?;
    flock(&lock, FlockOperation::LockExclusive)?;

    let log = dir.join(format!("{name}.log"));
    if let Ok(trace) = LossTrace::read(&log)
        && trace.len() as u64 >= steps
    {
        return Ok(trace.first(steps));
    }
    let unfinished = dir.join(format!("{name}.new"));
    // What a test left that was killed here.
    let _ = fs::remove_file(&unfinished);
    train(&unfinished)?;
    let trace = LossTrace::read(&unfinished)?;
    fs::rename(&unfinished, &log)?;
    Ok(trace)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn a_run_is_made_once_and_again_for_more_steps() -> Result<()> {
        let mut runs = 0;
        let mut ask = |steps: u64| {
            shared(&("a test", std::process::id()), steps, |log| {
                runs += 1;
                let text = (0..steps).fold(String::new(), |mut text, step| {
                    let _ = writeln!(text, "{step} {:08x} 0", step * 3);
                    text
                });
                Ok(fs::write(log, text)?)
            })
        };
        let (five, three, seven) = (ask(5)?, ask(3)?, ask(7)?);
        assert_eq!((five.len(), three.len(), seven.len()), (5, 3, 7));
        assert_eq!(three.first_difference(&seven), Some(3));
        assert_eq!(runs, 2);
        Ok(())
    }
}
