//! Why CRIU failed, in words that a user can act on.

use std::io;
use std::path::{Path, PathBuf};

/// Why an operation of CRIU failed.
#[derive(Debug, thiserror::Error)]
pub enum CriuError {
    /// The job is another user's, and CRIU would be root on its paths.
    #[error(
        "libphos_criu_preload.so is not installed, by which CRIU restores a job of another user (--user) with that user's rights: \
         install it beside phos-ft or in ../lib, as it is in the image"
    )]
    Library,
    /// No CRIU was found at any of these paths.
    #[error(
        "no criu program was found (looked at: {0}): run `make setup`, install criu 4.1 or newer, or name it with --criu PATH"
    )]
    Missing(String),
    /// The program cannot be started.
    #[error(
        "{} cannot be started: {cause}. Run `make setup`, or name another with --criu PATH",
        .program.display()
    )]
    Start {
        /// The path of the program.
        program: PathBuf,
        /// The error of starting it.
        cause: io::Error,
    },
    /// The program starts and does not say its version.
    #[error(
        "{} ended without an answer{words}. Run `make setup`, or name another CRIU with --criu PATH (that of a bundle is \
         criu/criu, which finds the libraries beside it, not criu/bin/criu)",
        .program.display()
    )]
    Silent {
        /// The path of the program.
        program: PathBuf,
        /// What it wrote first, after a colon; empty for nothing.
        words: String,
    },
    /// The version is too old for this kernel.
    #[error(
        "{} is version {found}; kernels from 6.13 on need 4.1 or newer: run `make setup`, or name a newer one with --criu PATH",
        .program.display()
    )]
    TooOld {
        /// The path of the program.
        program: PathBuf,
        /// The version that the program says.
        found: String,
    },
    /// CRIU went away without an answer.
    #[error("criu ended without an answer (killed, or a crash): see its log")]
    Died,
    /// An answer is not the protobuf message that it should be.
    #[error("criu answered something that is not its protocol: {0}")]
    Garbled(String),
    /// The agent's own part of the operation failed.
    #[error("cannot {what}: {cause}")]
    System {
        /// What the agent tried.
        what: &'static str,
        /// The error that the system call returned.
        cause: io::Error,
    },
    /// CRIU answered that the operation failed.
    #[error("{what} failed: {reason}{}", tail_text(.tail))]
    Failed {
        /// The operation: a dump or a restore.
        what: &'static str,
        /// The first error, with a remedy when it is a known one.
        reason: String,
        /// Last error lines of the log.
        tail: Vec<String>,
    },
}

fn tail_text(tail: &[String]) -> String {
    if tail.is_empty() {
        String::new()
    } else {
        format!("; criu's log: {}", tail.join(" | "))
    }
}

/// What a line of the log means, and what helps. The first match counts.
const KNOWN: &[(&str, &str)] = &[
    (
        "anon_inode:[io_uring]",
        "the job uses io_uring, which cannot be dumped: start it with `phos-ft run` (which denies io_uring to it), or set \
         kernel.io_uring_disabled=2",
    ),
    (
        "io_uring",
        "the job uses io_uring, which cannot be dumped: start it with `phos-ft run` (which denies io_uring to it), or set \
         kernel.io_uring_disabled=2",
    ),
    (
        "Address already in use",
        "a TCP port the job listens on is taken, perhaps by connections of the killed job that linger for a minute: end the \
         program that has it, wait a minute, or restore in a fresh container",
    ),
    (
        "Can't get rlimit",
        "a process of the job is not root (--user, or by itself), and the kernel tells its limits to nobody else without \
         SYS_RESOURCE: install libphos_criu_preload.so, with which CRIU does without, beside phos-ft or in ../lib, or add that \
         capability",
    ),
    (
        "suspending seccomp failed",
        "phos-ft has a seccomp filter, under which CRIU needs libphos_criu_preload.so: install it beside phos-ft or in ../lib",
    ),
    (
        "seccomp: Can't fetch filter",
        "phos-ft has a seccomp filter, and the kernel does not show it those that the job has put on itself: start the job without \
         (a sandbox of a browser, say), or the container with --security-opt seccomp=unconfined",
    ),
    (
        "Fail to make dir /tmp",
        "CRIU makes directories in /tmp: give a container with a read-only root file system a `tmpfs: [/tmp]`",
    ),
    (
        "Operation not permitted",
        "a capability is missing: run as root with SYS_PTRACE, SYS_ADMIN, NET_ADMIN and SYS_TIME, phos-ft's \
         seccomp profile (docker/seccomp.json) and AppArmor unconfined",
    ),
    (
        "File exists",
        "a PID of the image is in use: restore in a fresh PID namespace (`phos-ft run` makes one)",
    ),
    (
        "Can't lookup mount",
        "the job has a file open on a mount of another mount namespace: let it open the file itself",
    ),
    (
        "has bad size",
        "a file that the job had open or mapped has another length now: put back the version of the checkpoint",
    ),
    (
        "bad build-ID",
        "a library or program that the job had mapped is another build now: use the same image or installation as at the checkpoint",
    ),
    (
        "has bad mode",
        "a file that the job had open has other permissions now: put them back",
    ),
    (
        "Can't open file",
        "a file that the job had open is missing: put it back where it was",
    ),
    (
        "No space left on device",
        "the image directory is full: free host memory or raise --image-limit",
    ),
    (
        "Cannot allocate memory",
        "not enough host memory: the image and the job must fit together",
    ),
    (
        "ghost",
        "the job has a deleted file open that cannot be kept in the image",
    ),
    (
        "handle_device_vma plugin failed",
        "a process of the job began to use a device while the checkpoint was taken (the next one will have it), or inherited it \
         by a bare clone",
    ),
    (
        "kerndat_has_nftables_concat",
        "CRIU runs on no kernel without nftables, whatever is done about TCP connections: `modprobe nf_tables` on the host",
    ),
    (
        "Can't create inotify",
        "the user that phos-ft runs as has all the inotify instances that it may have: raise fs.inotify.max_user_instances on the host",
    ),
    (
        "unix: Can't bind",
        "the directory of a unix socket of the job is missing or cannot be written to: make it, with the owner that it had",
    ),
    (
        "nft",
        "TCP connections cannot be held back during the dump: make nftables work in this network namespace (NET_ADMIN), or use \
         --tcp close",
    ),
    (
        "nvidia",
        "a GPU device is still open in the job: its CUDA state was not detached; the driver must be 570 or newer",
    ),
    (
        "external",
        "the job holds something outside its own tree (a pipe, socket or terminal of another process): start that process from \
         the job, or redirect the stream to a file",
    ),
    (
        "unix socket",
        "the job is connected through a unix socket to a process outside its tree: start that process from the job",
    ),
    (
        "time namespace",
        "CAP_SYS_TIME is missing: add `--cap-add SYS_TIME`",
    ),
    (
        "Unable to send a fin packet",
        "a TCP connection cannot be dumped in its state: try again, or use --tcp close",
    ),
];

/// Lines that are logged as errors and are none: CRIU does without (hosts that do not grant SYS_RESOURCE, containers without
/// /dev/net/tun).
const HARMLESS: &[&str] = &[
    "rlimit: Can't setup RLIMIT_NOFILE",
    "tun: Unable to create tun",
];

/// Reads a log and makes the error of it. `message` is what CRIU answered.
pub fn from_log(what: &'static str, log: &Path, message: Option<&str>) -> CriuError {
    let text = std::fs::read(log).unwrap_or_default();
    explain(what, &String::from_utf8_lossy(&text), message)
}

fn explain(what: &'static str, log: &str, message: Option<&str>) -> CriuError {
    let errors: Vec<&str> = log
        .lines()
        .filter(|l| l.contains("Error") && !HARMLESS.iter().any(|h| l.contains(h)))
        .map(strip)
        .collect();
    let known = errors.iter().find_map(|line| {
        KNOWN
            .iter()
            .find(|(pattern, _)| line.contains(pattern))
            .map(|(_, remedy)| format!("{line}: {remedy}"))
    });
    let reason = known.unwrap_or_else(|| {
        message
            .filter(|m| !m.is_empty() && !HARMLESS.iter().any(|h| m.contains(h)))
            .map(|m| m.trim().to_owned())
            .or_else(|| errors.first().map(|l| (*l).to_owned()))
            .unwrap_or_else(|| "no reason given".into())
    });
    let from = errors.len().saturating_sub(4);
    CriuError::Failed {
        what,
        reason,
        tail: errors[from..].iter().map(|l| (*l).to_owned()).collect(),
    }
}

/// Without time stamp and process number.
fn strip(line: &str) -> &str {
    line.find("Error").map_or(line, |at| line[at..].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_cause_gets_its_remedy() {
        let log = "(00.01) 12: fine\n(00.02)   12: Error (criu/files-reg.c:2175): File /a/log.txt has bad size 5 (expect 3)\n\
                   (00.03) Error (criu/cr-restore.c:1): Restoring FAILED.\n";
        let text = explain("restore", log, None).to_string();
        assert!(text.contains("/a/log.txt"), "{text}");
        assert!(text.contains("another length"), "{text}");
        assert!(text.contains("Restoring FAILED"), "{text}");
    }

    #[test]
    fn what_is_no_error_in_a_container_hides_none() {
        let log = "(0.03) Error (criu/tun.c:85): tun: Unable to create tun: No such file or directory\n\
                   (0.12) Error (criu/kerndat.c:1087): Fail to make dir /tmp/.criu.move_mount_set_group.eCItaV: Read-only file system\n";
        let message = "Error (criu/tun.c:85): tun: Unable to create tun: No such file or directory";
        let text = explain("dump", log, Some(message)).to_string();
        assert!(
            text.contains("tmpfs: [/tmp]") && !text.contains("tun"),
            "{text}"
        );
    }

    #[test]
    fn what_closing_connections_cannot_mend_is_not_told_to_be_mended_so() {
        let log = "(00.01) Error (criu/kerndat.c:1922): kerndat_has_nftables_concat failed when initializing kerndat.\n";
        let text = explain("dump", log, None).to_string();
        assert!(
            text.contains("modprobe") && !text.contains("--tcp"),
            "{text}"
        );
    }

    #[test]
    fn an_unknown_cause_is_quoted() {
        let text =
            explain("dump", "(0.1) Error (criu/x.c:1): odd thing\n", Some("odd")).to_string();
        assert!(text.contains("odd"), "{text}");
        let text = explain("dump", "", None).to_string();
        assert!(text.contains("no reason given"), "{text}");
    }
}
