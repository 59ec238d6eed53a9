//! `phos-ft status` and `phos-ft checkpoint`: ask a running sidecar.

use std::io;
use std::path::{Path, PathBuf};

use phos_storage::CheckpointNumber;

use super::args::{Common, Output};
use super::history::place;
use super::look::time;
use super::{exit, fail};
use crate::engine::control::messages::{Answer, Request};
use crate::engine::control::socket::{SOCKET_FILE, ask};
use crate::engine::{CheckpointId, Tier};
use crate::report::status::{CheckpointReport, Report};
use crate::size::human;

/// Where the sidecar of the job answers.
pub(super) fn socket(common: &Common) -> PathBuf {
    common.run_dir.join(common.job.as_str()).join(SOCKET_FILE)
}

/// Says that no sidecar answers.
pub(super) fn no_answer(path: &Path, e: &io::Error) -> u8 {
    match e.kind() {
        io::ErrorKind::PermissionDenied => fail(
            format_args!(
                "{} may not be opened: run this as the user of the sidecar (root)",
                path.display()
            ),
            exit::PERMISSION,
        ),
        _ => fail(
            format_args!(
                "no sidecar answers at {} ({e}): start one with `phos-ft`, or give the --job and --run-dir \
                 of the one you mean",
                path.display()
            ),
            exit::UNAVAILABLE,
        ),
    }
}

pub(super) fn request(common: &Common, request: &Request) -> Result<Answer, u8> {
    let path = socket(common);
    ask(&path, request).map_err(|e| no_answer(&path, &e))
}

fn json(value: &impl serde::Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => println!("{text}"),
        Err(e) => eprintln!("phos-ft: {e}"),
    }
}

fn print_checkpoint(report: &CheckpointReport) {
    println!("{}", describe_checkpoint(report));
}

/// A checkpoint in one line.
pub(super) fn describe_checkpoint(report: &CheckpointReport) -> String {
    let id = CheckpointId {
        tier: if report.local {
            Tier::Local
        } else {
            Tier::Remote
        },
        number: CheckpointNumber(report.id),
    };
    format!(
        "checkpoint {id}{}{}: stop {:.0} ms, {} of {} changed, {} copied, {} stored, {:.1} s",
        match report.durability {
            Some(durability) => format!(" ({})", place(durability)),
            None => String::new(),
        },
        report
            .step
            .map_or_else(String::new, |step| format!(" at step {step}")),
        report.stop_ms,
        human(report.changed_bytes),
        human(report.total_bytes),
        human(report.copied_bytes),
        human(report.stored_bytes),
        report.seconds
    )
}

pub(super) fn checkpoint(common: &Common, output: Output) -> u8 {
    match request(common, &Request::Checkpoint) {
        Ok(Answer::Checkpoint(report)) => {
            match output {
                Output::Json => json(&report),
                Output::Text => print_checkpoint(&report),
            }
            exit::OK
        }
        Ok(Answer::Error(reason)) => fail(format_args!("no checkpoint: {reason}"), exit::FAILED),
        Ok(_) => fail("the sidecar answered something else", exit::FAILED),
        Err(code) => code,
    }
}

pub(super) fn status(common: &Common, output: Output) -> u8 {
    match request(common, &Request::Status) {
        Ok(Answer::Status(report)) => {
            match output {
                Output::Json => json(&report),
                Output::Text => print_status(&report),
            }
            exit::OK
        }
        Ok(Answer::Error(reason)) => fail(reason, exit::FAILED),
        Ok(_) => fail("the sidecar answered something else", exit::FAILED),
        Err(code) => code,
    }
}

fn print_status(report: &Report) {
    println!("job          {}: {}", report.job, report.state);
    if !report.command.is_empty() {
        println!("command      {}", report.command.join(" "));
    }
    println!("store        {}", report.store);
    if report.interval_seconds > 0.0 {
        println!("interval     {} s", report.interval_seconds);
    }
    println!(
        "checkpoints  {} stored, {} given up",
        report.checkpoints, report.failures
    );
    if let Some(id) = report.resumed_from {
        println!(
            "resumed      {} time(s), last from checkpoint {}{id}",
            report.restarts,
            if report.resumed_locally { "L" } else { "" }
        );
    }
    if let Some(last) = &report.last {
        print!("last         ");
        print_checkpoint(last);
    }
    if let Some(remote) = &report.remote {
        println!(
            "in the store checkpoint {} as {}, taken {}; {} sent in {:.1} s",
            CheckpointId {
                tier: Tier::Local,
                number: CheckpointNumber(remote.local)
            },
            remote.id,
            time(remote.taken_ms),
            human(remote.sent_bytes),
            remote.seconds
        );
    }
    if let Some(reason) = &report.remote_failure {
        println!("NOT SENT     {reason}");
    }
    if let Some(sum) = &report.collected {
        println!(
            "collected    {} checkpoints removed, {} in {} packs deleted",
            sum.removed,
            human(sum.pack_bytes),
            sum.packs
        );
        if let Some(reason) = &sum.failure {
            println!("collection   {reason}");
        }
    }
    if let Some(unprotected) = &report.unprotected {
        println!(
            "UNPROTECTED  since {}, because {}",
            time(unprotected.since_ms),
            unprotected.because
        );
    }
    if let Some(notice) = &report.preemption {
        let at = notice
            .at_ms
            .map_or_else(String::new, |at| format!(" at {}", time(at)));
        println!("PREEMPTION   {}{at}, says {}", notice.what, notice.source);
    }
    if let Some(reason) = &report.history_away {
        println!("HISTORY AWAY {reason}");
    }
    if let Some(reason) = &report.last_failure {
        println!("last failure {reason}");
    }
    if let Some(reason) = &report.unsupported {
        println!("RULED OUT    {reason}");
    }
}
