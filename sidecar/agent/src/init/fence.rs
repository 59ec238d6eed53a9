//! The note that another node has taken this job over: `<run_dir>/<job>/fenced`.
//!
//! Two nodes that each believe to have the job must not take it from one another for ever: the one that was fenced ends its
//! job, and restart policies start its container again. So an agent that finds the note does not start the job, and ends
//! with the same message and code.
//!
//! # Rules
//!
//! * The note applies to one host name, which is the container's own identity: a container that was made anew (`docker compose
//!   down` and `up`, another Pod) was started by somebody who wants the job here, and the note no longer counts. Where the name
//!   is always the same, the message says which file to remove.
//! * Failing to write it fails nothing: the job ends all the same.

use std::io;
use std::path::{Path, PathBuf};

use crate::AgentError;

/// The path of the note.
pub(super) fn path(job_dir: &Path) -> PathBuf {
    job_dir.join("fenced")
}

fn here() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .into_owned()
}

/// Writes the note that another node has the job, with the reason given.
pub(super) fn note(job_dir: &Path, reason: &str) {
    let path = path(job_dir);
    if let Err(e) = std::fs::write(&path, format!("{}\n{reason}\n", here())) {
        tracing::error!(
            cause = %e,
            path = %path.display(),
            "cannot note that another node has the job: a restart of this one takes it back"
        );
    }
}

/// Refuses to continue where a note of this host lies; removes a note of another host.
///
/// # Errors
/// [`AgentError::Fenced`]; [`AgentError::RunDir`] if the note cannot be read or removed.
pub(super) fn check(job: &str, job_dir: &Path) -> Result<(), AgentError> {
    let path = path(job_dir);
    let failed = |cause: io::Error| AgentError::RunDir {
        path: path.clone(),
        cause,
    };
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(failed(e)),
    };
    let (host, reason) = text.split_once('\n').unwrap_or((&text, ""));
    if host == here() {
        return Err(AgentError::Fenced {
            job: job.to_owned(),
            reason: reason.trim_end().to_owned(),
            note: path,
        });
    }
    tracing::info!(
        host,
        reason = reason.trim_end(),
        "the job was fenced in a container before this one: it is started here again"
    );
    std::fs::remove_file(&path).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_counts_where_it_was_written_and_nowhere_else() {
        let dir = tempfile::tempdir().unwrap();
        check("j", dir.path()).unwrap();
        note(dir.path(), "node b has it");
        for _ in 0..2 {
            let refused = check("j", dir.path()).unwrap_err();
            assert_eq!(refused.exit_code(), 76);
            let text = refused.to_string();
            assert!(
                text.contains("node b has it") && text.contains("/fenced"),
                "{text}"
            );
        }
        std::fs::write(path(dir.path()), "another-host\nnode b has it\n").unwrap();
        check("j", dir.path()).unwrap();
        assert!(!path(dir.path()).exists());
    }
}
