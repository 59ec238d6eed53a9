//! `phos-ft list`, `show` and the first half of `restore`: what the store has. Reads only.

use std::ffi::OsString;
use std::time::{Duration, UNIX_EPOCH};

use phos_storage::{CheckpointNumber, CheckpointSummary, Job, Manifest, Store};
use serde_json::json;

use super::args::Common;
use super::size::human;
use super::{exit, fail, runtime};
use crate::engine;

async fn open(common: &Common) -> Result<Job, u8> {
    let store = Store::open(&common.store(), engine::store_options()).await;
    let store = store.map_err(|e| {
        let e = engine::EngineError::Open(e);
        fail(&e, exit::engine(&e))
    })?;
    Ok(store.job(common.job.clone()))
}

fn time(millis: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(millis)).to_string()
}

fn print_json(value: &impl serde::Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => println!("{text}"),
        Err(e) => eprintln!("phos-ft: {e}"),
    }
}

pub(super) fn list(common: &Common, as_json: bool) -> u8 {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    runtime.block_on(async {
        let job = match open(common).await {
            Ok(job) => job,
            Err(code) => return code,
        };
        let listing = match job.list().await {
            Ok(listing) => listing,
            Err(e) => return fail(&e, exit::job(&e)),
        };
        if as_json {
            print_json(&listing);
            return exit::OK;
        }
        if listing.checkpoints.is_empty() && listing.damaged.is_empty() {
            println!(
                "job {} has no checkpoints in {}",
                common.job,
                common.store()
            );
            return exit::OK;
        }
        println!(
            "{:>6}  {:20}  {:>10}  {:>10}  {:>8}  why",
            "ID", "taken", "image", "stored", "stop"
        );
        for c in &listing.checkpoints {
            print_row(c);
        }
        for d in &listing.damaged {
            println!("{:>6}  DAMAGED: {}", d.number, d.reason);
        }
        exit::OK
    })
}

fn print_row(c: &CheckpointSummary) {
    println!(
        "{:>6}  {:20}  {:>10}  {:>10}  {:>5} ms  {}{}",
        c.number,
        time(c.created.0),
        human(c.image_bytes),
        human(c.stored_bytes),
        c.stop_us / 1000,
        c.trigger,
        if c.earlier_run { " (earlier run)" } else { "" }
    );
}

async fn manifest(job: &Job, id: CheckpointNumber) -> Result<Manifest, u8> {
    job.manifest(id).await.map_err(|e| fail(&e, exit::job(&e)))
}

pub(super) fn show(common: &Common, id: CheckpointNumber, as_json: bool) -> u8 {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    runtime.block_on(async {
        let job = match open(common).await {
            Ok(job) => job,
            Err(code) => return code,
        };
        let m = match manifest(&job, id).await {
            Ok(m) => m,
            Err(code) => return code,
        };
        let whole = job.check_packs(&m).await;
        if as_json {
            print_json(&describe(&m, whole.as_ref().err().map(ToString::to_string)));
        } else {
            print_manifest(&m);
            match &whole {
                Ok(()) => println!("packs        {}, all there", m.packs.len()),
                Err(e) => println!("packs        DAMAGED: {e}"),
            }
        }
        match whole {
            Ok(()) => exit::OK,
            Err(e) => exit::job(&e),
        }
    })
}

fn describe(m: &Manifest, damage: Option<String>) -> serde_json::Value {
    json!({
        "job": m.job, "id": m.number, "epoch": m.epoch, "created_ms": m.created,
        "trigger": m.body.trigger, "phos_version": m.body.phos_version,
        "architecture": m.body.architecture, "driver": m.body.driver_version,
        "command": engine::command_of(m),
        "gpus": m.body.gpus.iter().map(|g| json!({
            "uuid": g.uuid.to_string(), "name": g.name, "total_bytes": g.total_bytes
        })).collect::<Vec<_>>(),
        "processes": m.body.processes.iter().map(|p| p.pid).collect::<Vec<_>>(),
        "allocations": m.body.allocations.len(),
        "device_bytes": m.body.allocations.iter().map(|a| a.size_bytes).sum::<u64>(),
        "cpu_image_bytes": m.body.cpu_image.iter().map(|f| f.length).sum::<u64>(),
        "image_bytes": m.image_bytes(), "encoded_bytes": m.stored_bytes(),
        "chunks": m.chunks.len(), "packs": m.packs.len(),
        "stop_us": m.body.timings.stop_us, "phases_us": m.body.timings.phases_us,
        "figures": m.body.timings.figures, "damage": damage,
    })
}

fn print_manifest(m: &Manifest) {
    let device: u64 = m.body.allocations.iter().map(|a| a.size_bytes).sum();
    let cpu: u64 = m.body.cpu_image.iter().map(|f| f.length).sum();
    println!(
        "checkpoint   {} of job {}, epoch {}",
        m.number, m.job, m.epoch
    );
    println!("taken        {} ({})", time(m.created.0), m.body.trigger);
    if let Some(command) = engine::command_of(m) {
        println!("command      {}", command.join(" "));
    }
    println!(
        "machine      {}, {}, phos-ft {}",
        m.body.architecture, m.body.driver_version, m.body.phos_version
    );
    for g in &m.body.gpus {
        println!(
            "gpu          {} {} ({})",
            g.uuid,
            g.name,
            human(g.total_bytes)
        );
    }
    println!(
        "device       {} in {} allocations of {} process(es)",
        human(device),
        m.body.allocations.len(),
        m.body.processes.len()
    );
    println!(
        "cpu image    {} in {} files",
        human(cpu),
        m.body.cpu_image.len()
    );
    println!(
        "stored       {} for {} distinct chunks",
        human(m.stored_bytes()),
        m.chunks.len()
    );
    println!("stop         {} ms", m.body.timings.stop_us / 1000);
    for (name, us) in &m.body.timings.phases_us {
        println!("  {name:18} {:.1} ms", *us as f64 / 1e3);
    }
}

/// The checkpoint to resume from and the command it was made of.
pub(super) fn command_to_restore(
    common: &Common,
    id: Option<CheckpointNumber>,
) -> Result<(CheckpointNumber, Vec<OsString>), u8> {
    runtime()?.block_on(async {
        let job = open(common).await?;
        let m = match id {
            Some(id) => manifest(&job, id).await?,
            None => {
                let found = job.newest_restorable().await.map_err(|e| fail(&e, exit::job(&e)))?;
                for skipped in &found.skipped {
                    eprintln!("phos-ft: checkpoint {} IS DAMAGED and is passed over: {}", skipped.number, skipped.reason);
                }
                found.manifest.ok_or_else(|| {
                    fail(
                        format_args!(
                            "job {} has nothing to resume in {}: `phos-ft list` shows what there is; give \
                             the ID of a checkpoint of an earlier run to go back to it",
                            common.job,
                            common.store()
                        ),
                        exit::NOT_FOUND,
                    )
                })?
            }
        };
        job.check_packs(&m).await.map_err(|e| fail(&e, exit::job(&e)))?;
        match engine::command_of(&m) {
            Some(command) if !command.is_empty() => {
                Ok((m.number, command.into_iter().map(OsString::from).collect()))
            }
            _ => Err(fail(
                format_args!("checkpoint {} does not say which command made it: use `phos-ft --from {} -- CMD`", m.number, m.number),
                exit::DATA,
            )),
        }
    })
}
