//! Places at which a test lets the sidecar die, or holds it.
//!
//! `PHOS_FAILPOINT=sidecar:<step>` makes the process send itself SIGKILL when it reaches the step: nothing is flushed and nothing
//! is told, as in a real death. With `PHOS_FAILPOINT_ONCE=<file>` only the process that creates the file dies. Without the
//! variable a step costs a comparison; release builds contain no failpoints.
//!
//! With `PHOS_FAILPOINT_HOLD=<file>` nothing dies: while the file is there, a process that reaches the step makes
//! `<file>.reached` and waits.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

/// A step of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    AfterQuiesce,
    AfterName,
    AfterDumpRequest,
    AfterDumped,
    BeforeAttach,
    AfterAttach,
    MidDrain,
    BeforeManifest,
    BeforeHead,
    AfterHead,
}

impl Step {
    const ALL: [(&'static str, Step); 10] = [
        ("after-quiesce", Step::AfterQuiesce),
        ("after-name", Step::AfterName),
        ("after-dump-request", Step::AfterDumpRequest),
        ("after-dumped", Step::AfterDumped),
        ("before-attach", Step::BeforeAttach),
        ("after-attach", Step::AfterAttach),
        ("mid-drain", Step::MidDrain),
        ("before-manifest", Step::BeforeManifest),
        ("before-head", Step::BeforeHead),
        ("after-head", Step::AfterHead),
    ];

    fn parse(setting: &str) -> Option<Step> {
        let name = setting.strip_prefix("sidecar:")?;
        Step::ALL
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, step)| *step)
    }
}

/// Dies here, or waits, if the test asked for it.
pub(super) fn reach(step: Step) {
    if !cfg!(debug_assertions) {
        return;
    }
    static WANTED: OnceLock<Option<Step>> = OnceLock::new();
    let wanted = WANTED.get_or_init(|| {
        std::env::var("PHOS_FAILPOINT")
            .ok()
            .and_then(|setting| Step::parse(&setting))
    });
    if *wanted != Some(step) {
        return;
    }
    if let Some(file) = std::env::var_os("PHOS_FAILPOINT_HOLD") {
        hold(Path::new(&file));
    } else if first() {
        let _ =
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        // PID 1 of a container is not reached by signals from inside it.
        // SAFETY: `_exit` has no preconditions.
        unsafe { libc::_exit(137) }
    }
}

/// Waits until the file is gone.
fn hold(file: &Path) {
    let mut reached = file.as_os_str().to_owned();
    reached.push(".reached");
    while file.exists() {
        if let Err(e) = std::fs::write(&reached, b"") {
            tracing::error!(error = %e, "failpoint: cannot say that it was reached");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether this process is the one to die.
fn first() -> bool {
    match std::env::var_os("PHOS_FAILPOINT_ONCE") {
        None => true,
        Some(path) => std::fs::File::create_new(path).is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::Step;

    #[test]
    fn only_this_process_and_known_steps() {
        assert_eq!(Step::parse("sidecar:mid-drain"), Some(Step::MidDrain));
        assert_eq!(Step::parse("agent:mid-drain"), None);
        assert_eq!(Step::parse("sidecar:later"), None);
    }
}
