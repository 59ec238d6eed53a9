//! A program of the user's that hears of each event: `--on-event PROGRAM`.
//!
//! # Rules
//!
//! * It is called as `PROGRAM NAME JOB`, with the event as one line of JSON on its standard input; what it writes goes to the log of phos-ft.
//! * One call at a time, in the order of the events, of those that this sidecar saw happen. A call that takes longer than [`PATIENCE`]
//!   is killed, with all that it started.
//! * Nobody waits for it: not the job, not a checkpoint. Events queue up in the journal meanwhile; what falls out of that is left
//!   out, and said. Only at its end the sidecar waits a moment for the last calls ([`LAST_CALLS`]).
//! * A program that fails or cannot be started is said once for each reason.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::report::event::Record;
use crate::report::shared::Shared;

/// How long a call may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long the sidecar waits at its end for calls that are left.
pub(super) const LAST_CALLS: Duration = Duration::from_secs(5);

/// Calls the program for each event after this number, until nothing happens any more and all are told.
pub(super) async fn follow(program: PathBuf, status: Shared, mut told: u64) {
    let job = status.lock().job.clone();
    let mut follower = status.follow(told);
    let mut last_failure = String::new();
    while let Some(record) = follower.next(1).await.and_then(|mut next| next.pop()) {
        if record.seq > told + 1 {
            tracing::warn!(
                left_out = record.seq - told - 1,
                "the program of --on-event is slower than things happen: events were left out"
            );
        }
        told = record.seq;
        if let Err(reason) = call(&program, &record, &job).await
            && reason != last_failure
        {
            tracing::warn!(
                program = %program.display(), event = record.event.name(), reason,
                "the program of --on-event failed"
            );
            last_failure = reason;
        }
    }
}

async fn call(program: &Path, record: &Record, job: &str) -> Result<(), String> {
    let mut line = serde_json::to_string(record).map_err(|e| e.to_string())?;
    line.push('\n');
    let mut command = Command::new(program);
    command
        .args([record.event.name().as_str(), job])
        .stdin(Stdio::piped())
        .stdout(Stdio::from(std::io::stderr()))
        .process_group(0)
        .kill_on_drop(true);
    let mut child = Group(command.spawn().map_err(|e| format!("cannot start: {e}"))?);
    let stdin = child.0.stdin.take();
    let answered = async {
        if let Some(mut stdin) = stdin {
            // Who does not read it need not.
            let _ = stdin.write_all(line.as_bytes()).await;
        }
        child.0.wait().await
    };
    match tokio::time::timeout(PATIENCE, answered).await {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => Err(status.to_string()),
        Ok(Err(e)) => Err(e.to_string()),
        Err(_) => Err(format!("it took longer than {PATIENCE:?} and was killed")),
    }
}

/// A child in a process group of its own, all of which ends with it.
struct Group(Child);

impl Drop for Group {
    fn drop(&mut self) {
        // Gone already, unless it took too long or the sidecar ends: then it was not waited for, so that the number is still its own.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok());
        if let Some(group) = id.and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}
