//! Undisturbed runs, which all tests on this machine share.
//!
//! The trainer is deterministic, and what it logs up to a step does not depend on how many follow. So one run stands for every test
//! that asks for the same program with the same arguments, in the same environment, on the same simulated GPU, and as many steps or
//! fewer. What a program does besides its training ([`APART`]) is left out, so that most tests ask for the same. The logs lie beside the programs,
//! under a hash of all that and of when the programs were built. Only one process trains the same at a time; a log appears there complete.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Context, Result};
use rustix::fs::{FlockOperation, flock};

use crate::trace::LossTrace;
use crate::world::{JobSpec, bin_dir};

/// The programs on which a run's result depends.
const PROGRAMS: [&str; 3] = ["phos-trainer", "libphos_gpu_sim.so", "libphos_nccl_sim.so"];

/// Arguments of the trainer that have no part in its losses, and whether a value follows. `tests/e2e/undisturbed.rs` shows it of each of them that has no
/// need of somebody outside.
pub const APART: [(&str, bool); 38] = [
    ("--allocations", true),
    ("--array-mib", true),
    ("--ballast-mib", true),
    ("--churn-mib", true),
    ("--communicator", true),
    ("--connect", true),
    ("--counting-thread", false),
    ("--expandable", false),
    ("--follow", true),
    ("--fork-every", true),
    ("--graph", false),
    ("--handle-sigterm", false),
    ("--hints", false),
    ("--hold", true),
    ("--hold-while", true),
    ("--large", true),
    ("--large-every", true),
    ("--late-ms", true),
    ("--memories", false),
    ("--noise-thread", false),
    ("--polling-thread", false),
    ("--pool-mib", true),
    ("--profile-at", true),
    ("--scratch", false),
    ("--semaphores", true),
    ("--spin", false),
    ("--state-anywhere", false),
    ("--state-calls", true),
    ("--state-early-at", true),
    ("--state-mib", true),
    ("--state-waits", true),
    ("--step-ms", true),
    ("--strange-name", false),
    ("--surge-at", true),
    ("--surge-mib", true),
    ("--tcp", false),
    ("--tcp-address", true),
    ("--verify-every", true),
];

/// How the names of variables begin that may have a part in them.
const VARIABLES: [&str; 2] = ["CUDA_", "LD_"];

/// What the losses of rank 0 depend on. On the simulated GPU it alone is trained: it computes what the others would reduce with it, and without NCCL no
/// rank hears of another.
pub(crate) fn essential(spec: &JobSpec) -> JobSpec {
    let mut essential = JobSpec {
        trainer: Vec::new(),
        ..spec.clone()
    };
    let (mut others, mut reduce) = (None, false);
    let mut trainer = spec.trainer.iter();
    while let Some(argument) = trainer.next() {
        match APART.iter().find(|(name, _)| name == argument) {
            Some((_, true)) => drop(trainer.next()),
            Some((_, false)) => {}
            None if argument == "--rank-processes" => {
                others = trainer.next().and_then(|number| number.parse::<u32>().ok());
            }
            None if argument == "--nccl" => {
                trainer.next();
                reduce = true;
            }
            None => essential.trainer.push(argument.clone()),
        }
    }
    if reduce {
        let ranks = others.unwrap_or(0) + 1;
        essential
            .trainer
            .extend(["--ranks-alone".to_owned(), ranks.to_string()]);
    }
    let has_part = |name: &str| VARIABLES.iter().any(|start| name.starts_with(start));
    essential.env.retain(|(name, _)| has_part(name));
    essential
}

/// How many steps are trained for somebody who asks for `steps`: so many more that others, who ask for a few more, need not train all of them again.
fn trained(steps: u64) -> u64 {
    steps.max(256).next_power_of_two()
}

/// The first `steps` steps of the run that `what` describes. `train` makes the log of as many steps as it is told at the path that it is given.
///
/// # Errors
/// Those of `train` and of files; when the run has fewer steps.
pub(crate) fn shared(
    what: &impl Hash,
    steps: u64,
    train: impl FnOnce(u64, &Path) -> Result<()>,
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
    train(trained(steps), &unfinished)?;
    let trace = LossTrace::read(&unfinished)?;
    fs::rename(&unfinished, &log)?;
    Ok(trace.first(steps))
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    #[test]
    fn a_run_is_made_once_and_again_for_more_steps() -> Result<()> {
        let mut runs = 0;
        let mut ask = |steps: u64| {
            shared(&("a test", std::process::id()), steps, |trained, log| {
                runs += 1;
                let text = (0..trained).fold(String::new(), |mut text, step| {
                    let _ = writeln!(text, "{step} {:08x} 0", step * 3);
                    text
                });
                Ok(fs::write(log, text)?)
            })
        };
        let (five, three, many) = (ask(5)?, ask(3)?, ask(300)?);
        assert_eq!((five.len(), three.len(), many.len()), (5, 3, 300));
        assert_eq!(three.first_difference(&many), Some(3));
        let more = ask(512)?;
        assert_eq!((more.len(), runs), (512, 2));
        Ok(())
    }

    #[test]
    fn what_is_apart_is_left_out_with_its_value() {
        let arguments = [
            "--devices",
            "2",
            "--scratch",
            "--state-mib",
            "150",
            "--workers",
            "1",
        ];
        let spec = JobSpec {
            trainer: Vec::new(),
            ..JobSpec::default()
        }
        .with_trainer(&arguments)
        .with_env("PHOS_LOG", "debug")
        .with_env("CUDA_VISIBLE_DEVICES", "1,0");
        let ranks = spec.with_trainer(&["--rank-processes", "3"]);
        let essential = essential(&spec);
        assert_eq!(essential.trainer, ["--devices", "2", "--workers", "1"]);
        assert_eq!(
            essential.env,
            [("CUDA_VISIBLE_DEVICES".into(), "1,0".into())]
        );
        assert_eq!(super::essential(&ranks).trainer, essential.trainer);
        let meet = super::essential(&ranks.with_trainer(&["--nccl", "/x/nccl.so"])).trainer;
        assert_eq!(
            meet,
            ["--devices", "2", "--workers", "1", "--ranks-alone", "4"]
        );
    }
}
