//! `phos-ft verify`: whether what is stored could be restored, in the store and, if there is a tier on this machine, there as
//! well. What is damaged is named and quarantined: restores pass it over, and the next checkpoint stores it again.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use phos_storage::{
    CheckpointNumber, FaultKind, Job, JobError, PackId, Rollback, Verified, VerifyOptions,
    VerifyProgress,
};
use serde::Serialize;

use super::args::{Common, Output};
use super::look::{Found, job_failed, local_tier, open_and_compare, print_json};
use super::{exit, runtime};
use crate::engine::{self, CheckpointId, Reading, Tier};
use crate::size::human;

/// The result of a verification, as it is printed with `--json`.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    store: &'a Verified,
    /// In the tier on this machine, if there is one.
    local: Option<&'a Verified>,
    /// What this machine saw of the job's history and the store does not show.
    rollback: Option<Rollback>,
}

pub(super) fn run(common: &Common, options: VerifyOptions, output: Output) -> u8 {
    match runtime() {
        Ok(runtime) => runtime.block_on(async {
            match verify(common, options, output).await {
                Ok(code) | Err(code) => code,
            }
        }),
        Err(code) => code,
    }
}

/// A bar on a terminal, a line for each tenth elsewhere: a verification takes hours, and a log should show that it
/// gets on.
struct Progress {
    bar: ProgressBar,
    terminal: bool,
    tenths: std::sync::atomic::AtomicU64,
}

impl Progress {
    fn new() -> Progress {
        let terminal = std::io::stderr().is_terminal();
        let target = if terminal {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let style = ProgressStyle::with_template(
            "verifying [{wide_bar}] {bytes}/{total_bytes} {bytes_per_sec} {eta}",
        )
        .unwrap_or_else(|_| ProgressStyle::default_bar());
        Progress {
            bar: ProgressBar::with_draw_target(Some(0), target).with_style(style),
            terminal,
            tenths: std::sync::atomic::AtomicU64::new(0),
        }
    }

    fn add(&self, step: VerifyProgress) {
        use std::sync::atomic::Ordering;
        self.bar.set_length(step.total_bytes);
        self.bar.inc(step.bytes);
        let tenths = 10 * self.bar.position() / step.total_bytes.max(1);
        if !self.terminal && self.tenths.fetch_max(tenths, Ordering::Relaxed) < tenths {
            eprintln!(
                "phos-ft: verified {} of {}",
                human(self.bar.position()),
                human(step.total_bytes)
            );
        }
    }
}

async fn verify(common: &Common, options: VerifyOptions, output: Output) -> Result<u8, u8> {
    let Found { job, rollback } = open_and_compare(common).await?;
    // One that cannot be opened has been said.
    let local = local_tier(common).await?;
    let (store, done) = verify_one(&job, Tier::Remote, options).await?;
    if output == Output::Text {
        print(&store, Tier::Remote, done);
    }
    // What fails there does not hide what the store has.
    let local = match local {
        Some(local) => Some(verify_one(&local, Tier::Local, options).await),
        None => None,
    };
    let found = local.as_ref().and_then(|local| local.as_ref().ok());
    match (output, found) {
        (Output::Json, _) => print_json(&Report {
            store: &store,
            local: found.map(|(verified, _)| verified),
            rollback,
        }),
        (Output::Text, Some((verified, done))) => print(verified, Tier::Local, *done),
        (Output::Text, None) => {}
    }
    // What is missing at the log's end is damage as well, which only a machine that saw it notices.
    let sound = store.is_sound()
        && rollback.is_none()
        && found.is_none_or(|(verified, _)| verified.is_sound());
    Ok(match local {
        _ if !sound => exit::DATA,
        Some(Err(code)) => code,
        _ => exit::OK,
    })
}

/// Verifies a history. Also the options that were carried out: without quarantine where that was refused.
async fn verify_one(
    job: &Job,
    tier: Tier,
    mut options: VerifyOptions,
) -> Result<(Verified, VerifyOptions), u8> {
    let hold = job
        .hold_all(&engine::reader("verify"), engine::unix_millis())
        .await
        .map_err(|e| job_failed(&e))?;
    let left_out = hold.left_out();
    if left_out > 0 {
        eprintln!(
            "phos-ft: there are too many checkpoints to hold all of them: what retention removes meanwhile of the oldest \
             {left_out}{} is not verified",
            place(tier)
        );
    }
    let held = Reading::keep(hold);
    let progress = Progress::new();
    let add = |step| progress.add(step);
    let mut outcome = job.verify(options, engine::unix_millis(), &add).await;
    if let Err(JobError::Store(fault)) = &outcome
        && options.quarantine
        && matches!(fault.kind(), FaultKind::Denied | FaultKind::ReadOnly)
    {
        // Who may only read is told what there is to be told.
        progress.bar.set_position(0);
        options.quarantine = false;
        outcome = job.verify(options, engine::unix_millis(), &add).await;
    }
    progress.bar.finish_and_clear();
    held.release().await;
    let verified = outcome.map_err(|e| job_failed(&e))?;
    Ok((verified, options))
}

/// Said of what is not in the store.
fn place(tier: Tier) -> &'static str {
    match tier {
        Tier::Local => " on this machine",
        Tier::Remote => "",
    }
}

fn print(verified: &Verified, tier: Tier, options: VerifyOptions) {
    let id = |&number: &CheckpointNumber| CheckpointId { tier, number }.to_string();
    println!(
        "verified     {} packs{}, {}{}",
        verified.packs,
        place(tier),
        human(verified.pack_bytes),
        if options.deep {
            format!(", {} chunks read", verified.chunks)
        } else {
            "; their chunks were not read (--deep does)".into()
        }
    );
    for name in &verified.lifted {
        let what = match PackId::parse(name) {
            Some(_) => "pack",
            None => "manifest",
        };
        println!("lifted       {what} {name}: it is sound again");
    }
    for pack in &verified.damaged_packs {
        let needed: Vec<String> = pack.checkpoints.iter().map(id).collect();
        println!(
            "DAMAGED      pack {}: {}; needed by checkpoint {}",
            pack.pack,
            pack.reason,
            needed.join(" ")
        );
    }
    for checkpoint in &verified.damaged {
        println!(
            "DAMAGED      checkpoint {}: {}",
            id(&checkpoint.number),
            checkpoint.reason
        );
    }
    if !verified.is_sound() {
        if options.quarantine {
            println!(
                "quarantined  restores pass it over, and the next checkpoint stores what it held again"
            );
        } else {
            println!("quarantined  nothing: restores find the damage when they read it");
        }
    }
    let whole: Vec<String> = verified.whole.iter().map(id).collect();
    println!(
        "whole        {}",
        if whole.is_empty() {
            "none".into()
        } else {
            whole.join(" ")
        }
    );
}
