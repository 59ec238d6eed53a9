//! Places where a test can make the agent die, or wait: `PHOS_FAILPOINT=<name>` sends SIGKILL to the agent when it gets there;
//! with `PHOS_FAILPOINT=<name>@<file>` it makes the file when it gets there first, and continues when somebody has removed it.
//! Without the variable a failpoint is one load of a static; release builds contain no failpoints.
//!
//! | name | where |
//! |---|---|
//! | `agent:after-quiesce` | every shim is quiesced, the sidecar was not told yet |
//! | `agent:after-detach` | every shim is detached, nothing was checkpointed yet |
//! | `agent:before-criu` | control state saved, CRIU not started |
//! | `agent:frozen` | CRIU holds the tree frozen, files are about to be copied |
//! | `agent:after-criu` | dump complete, control state not yet restored |
//! | `agent:before-attach` | the job is detached and the sidecar asked to attach |
//! | `agent:mid-attach` | the first process has its memory back, the others not |
//! | `agent:before-restore` | the old tree is gone, nothing of the image was used yet |
//! | `agent:mid-restore` | files are put back, CRIU not started |
//! | `agent:after-restore` | CRIU restored the tree, its control state is not restored |

use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Dies or waits here if the environment says so.
pub fn hit(name: &str) {
    if !cfg!(debug_assertions) {
        return;
    }
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    let Some(wanted) = WANTED.get_or_init(|| std::env::var("PHOS_FAILPOINT").ok()) else {
        return;
    };
    let Some(rest) = wanted.strip_prefix(name) else {
        return;
    };
    if rest.is_empty() {
        tracing::error!(name, "failpoint: the agent kills itself");
        die();
    }
    if let Some(file) = rest.strip_prefix('@') {
        wait(name, Path::new(file));
    }
}

/// Waits until somebody has removed the file that is made here. Once: what the test wants to happen has happened then.
fn wait(name: &str, file: &Path) {
    static DONE: AtomicBool = AtomicBool::new(false);
    if DONE.swap(true, Ordering::AcqRel) || std::fs::write(file, b"").is_err() {
        return;
    }
    tracing::warn!(name, file = %file.display(), "failpoint: the agent waits");
    while file.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// SIGKILL does not reach PID 1 from inside its own namespace, so what is meant is done by hand: the
/// process ends at once, without unwinding, flushing or answering anybody.
fn die() -> ! {
    // SAFETY: `_exit` has no preconditions.
    unsafe { libc::_exit(137) }
}
