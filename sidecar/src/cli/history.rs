//! `phos-ft list`, `show` and the first half of `restore`: they show what the store has, and only read.

use std::collections::BTreeMap;
use std::ffi::OsString;

use phos_storage::{
    CheckpointSummary, Codec, Durability, Job, Listing, Manifest, Rollback, SkippedCheckpoint,
};
use serde::Serialize;
use serde_json::json;

use super::args::{Common, Output};
use super::look::{Found, local_tier, open, open_checkpoint, open_if_there, print_json, time};
use super::picture::Characters;
use super::{exit, fail, runtime};
use crate::engine::{self, CheckpointId, Tier};
use crate::report::timeline;
use crate::size::human;

/// Characters of the bar beside the size of a checkpoint.
const BAR: usize = 8;
/// Characters of the time of a stop.
const STRETCH: usize = 40;

/// A checkpoint in a listing.
#[derive(Serialize)]
struct Row {
    id: CheckpointId,
    #[serde(flatten)]
    summary: CheckpointSummary,
}

/// A checkpoint in a listing that cannot be used.
#[derive(Serialize)]
struct DamagedRow {
    id: CheckpointId,
    #[serde(flatten)]
    damage: SkippedCheckpoint,
}

/// What there is of a job: in the store, and on this machine alone.
#[derive(Default, Serialize)]
struct Rows {
    /// The checkpoints, newest first.
    checkpoints: Vec<Row>,
    damaged: Vec<DamagedRow>,
    /// What this machine saw of the job's history and the store does not show.
    rollback: Option<Rollback>,
}

impl Rows {
    /// Both listings; a checkpoint that is in both counts as in the store.
    fn new(store: Listing, local: Listing) -> Rows {
        let mut rows = Rows::default();
        for (tier, listing) in [(Tier::Remote, store), (Tier::Local, local)] {
            for summary in listing.checkpoints {
                let known = (rows.checkpoints.iter()).any(|r| r.summary.created == summary.created);
                if tier == Tier::Remote || !known {
                    let number = summary.number;
                    let id = CheckpointId { tier, number };
                    rows.checkpoints.push(Row { id, summary });
                }
            }
            for damage in listing.damaged {
                let number = damage.number;
                let id = CheckpointId { tier, number };
                rows.damaged.push(DamagedRow { id, damage });
            }
        }
        // Within one place the order is that of the log, whatever the clocks said.
        rows.checkpoints
            .sort_by_key(|r| std::cmp::Reverse(r.summary.created));
        rows
    }
}

async fn listing(job: Option<&Job>) -> Result<Listing, u8> {
    match job {
        Some(job) => job.list().await.map_err(|e| fail(&e, exit::job(&e))),
        None => Ok(Listing::default()),
    }
}

pub(super) fn list(common: &Common, output: Output) -> u8 {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    runtime.block_on(async {
        let Found { job, rollback } = match open_if_there(common).await {
            Ok(found) => found,
            Err(code) => return code,
        };
        // Before the first start there is no directory, and nothing wrong with that.
        let local = match local_tier(common).await {
            Ok(local) => local,
            Err(code) => return code,
        };
        let (stored, here) = (listing(job.as_ref()).await, listing(local.as_ref()).await);
        let listing = match (stored, here) {
            (Ok(stored), Ok(here)) => Rows {
                rollback,
                ..Rows::new(stored, here)
            },
            (Err(code), _) | (_, Err(code)) => return code,
        };
        if output == Output::Json {
            print_json(&listing);
            return exit::OK;
        }
        if listing.checkpoints.is_empty() && listing.damaged.is_empty() {
            println!(
                "job {} has no checkpoints in {}{}",
                common.job,
                common.store(),
                if job.is_none() {
                    ": there is no such directory"
                } else {
                    ""
                }
            );
            return exit::OK;
        }
        println!(
            "{:>6}  {:20}  {:>10}  {:>10}  {:8}  {:>8}  {:6}  why",
            "ID", "taken", "image", "stored", "", "stop", "where"
        );
        let stored = listing.checkpoints.iter().map(|c| c.summary.stored_bytes);
        let most = stored.max().unwrap_or_default();
        for c in &listing.checkpoints {
            print_row(c, most);
        }
        for d in &listing.damaged {
            println!("{:>6}  DAMAGED: {}", d.id, d.damage.reason);
        }
        exit::OK
    })
}

/// `most`: the bytes of the one that grew the store most, which has the longest bar.
fn print_row(Row { id, summary: c }: &Row, most: u64) {
    println!(
        "{:>6}  {:20}  {:>10}  {:>10}  {}  {:>5} ms  {:6}  {}{}",
        id,
        time(c.created.0),
        human(c.image_bytes),
        human(c.stored_bytes),
        Characters::of_output().bar(c.stored_bytes, most, BAR),
        c.stop_us / 1000,
        place(c.durability),
        c.trigger,
        match (c.earlier_run, c.branch) {
            (true, _) => " (earlier run)".into(),
            (false, Some(branch)) => format!(" (branch {branch})"),
            (false, None) => String::new(),
        }
    );
}

pub(super) fn place(durability: Durability) -> &'static str {
    match durability {
        Durability::Local => "local",
        Durability::Remote => "remote",
    }
}

pub(super) fn show(common: &Common, id: CheckpointId, output: Output) -> u8 {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(code) => return code,
    };
    runtime.block_on(async {
        let (job, m) = match open_checkpoint(common, id).await {
            Ok(found) => found,
            Err(code) => return code,
        };
        let whole = job.check_packs(&m).await;
        match output {
            Output::Json => print_json(&describe(
                &job,
                &m,
                whole.as_ref().err().map(ToString::to_string),
            )),
            Output::Text => {
                print_manifest(&job, &m);
                match &whole {
                    Ok(()) => println!("packs        {}, all there", m.packs.len()),
                    Err(e) => println!("packs        DAMAGED: {e}"),
                }
            }
        }
        match whole {
            Ok(()) => exit::OK,
            Err(e) => exit::job(&e),
        }
    })
}

/// Chunks, their bytes and what these take, for each way in which chunks are stored.
fn codecs(m: &Manifest) -> Vec<(Codec, u64, u64, u64)> {
    let mut found: Vec<(Codec, u64, u64, u64)> = Vec::new();
    for chunk in &m.chunks {
        let (raw, stored) = (u64::from(chunk.raw), u64::from(chunk.stored));
        match found.iter_mut().find(|(codec, ..)| *codec == chunk.codec) {
            Some(sum) => *sum = (sum.0, sum.1 + 1, sum.2 + raw, sum.3 + stored),
            None => found.push((chunk.codec, 1, raw, stored)),
        }
    }
    found.sort_by_key(|(codec, ..)| *codec as u8);
    found
}

/// Everything that a manifest says, for programs.
pub(super) fn describe(job: &Job, m: &Manifest, damage: Option<String>) -> serde_json::Value {
    json!({
        "job": m.job, "id": m.number, "epoch": m.epoch, "created_ms": m.created,
        "durability": job.durability(),
        "trigger": m.body.trigger, "step": engine::step_of(m), "phos_version": m.body.phos_version,
        "architecture": m.body.architecture, "driver": m.body.driver_version,
        "command": engine::command_of(m),
        "gpus": m.body.gpus.iter().map(|g| json!({
            "uuid": g.uuid.to_string(), "name": g.name, "total_bytes": g.total_bytes, "ordinal": g.ordinal
        })).collect::<Vec<_>>(),
        "processes": m.body.processes.iter().map(|p| json!({
            "node": p.member.node, "pid": p.member.process
        })).collect::<Vec<_>>(),
        "contexts": m.body.processes.iter().flat_map(|p| p.devices.iter().map(|d| json!({
            "node": p.member.node, "pid": p.member.process, "gpu": d.gpu.to_string(), "reserve_bytes": d.reserve_bytes
        }))).collect::<Vec<_>>(),
        "allocations": m.body.allocations.len(),
        "memory": m.body.allocations.iter().map(|a| json!({
            "node": a.owner.node, "pid": a.owner.process, "id": a.id, "gpu": a.gpu.to_string(), "kind": a.kind,
            "bytes": a.size_bytes, "requested_bytes": a.requested_bytes, "chunks": a.chunks.len()
        })).collect::<Vec<_>>(),
        "device_bytes": m.body.allocations.iter().map(|a| a.size_bytes).sum::<u64>(),
        "cpu_image_bytes": m.body.cpu_image.iter().map(|f| f.length).sum::<u64>(),
        "cpu_image": m.body.cpu_image.iter().map(|f| json!({
            "path": f.path.as_path(), "bytes": f.length
        })).collect::<Vec<_>>(),
        "image_bytes": m.image_bytes(), "encoded_bytes": m.stored_bytes(),
        "chunks": m.chunks.len(), "packs": m.packs.len(),
        "pack_bytes": m.packs.iter().map(|p| p.length).sum::<u64>(),
        "encoding": codecs(m).into_iter().map(|(codec, chunks, bytes, stored)| json!({
            "codec": codec.name(), "chunks": chunks, "bytes": bytes, "stored_bytes": stored
        })).collect::<Vec<_>>(),
        "stop_us": m.body.timings.stop_us, "phases_us": m.body.timings.phases_us,
        "figures": m.body.timings.figures, "damage": damage,
    })
}

fn print_manifest(job: &Job, m: &Manifest) {
    let device: u64 = m.body.allocations.iter().map(|a| a.size_bytes).sum();
    let cpu: u64 = m.body.cpu_image.iter().map(|f| f.length).sum();
    println!(
        "checkpoint   {} of job {}, epoch {}",
        m.number, m.job, m.epoch
    );
    println!("taken        {} ({})", time(m.created.0), m.body.trigger);
    if let Some(step) = engine::step_of(m) {
        println!("step         {step}");
    }
    println!(
        "where        {}",
        match job.durability() {
            Durability::Local => "local: on this machine only",
            Durability::Remote => "remote: survives the loss of the machine",
        }
    );
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
    for (codec, chunks, bytes, stored) in codecs(m) {
        println!(
            "  {:18} {chunks} chunks, {} in {}",
            codec.name(),
            human(bytes),
            human(stored)
        );
    }
    println!("stop         {} ms", m.body.timings.stop_us / 1000);
    print_phases(m);
    for (name, figure) in &m.body.timings.figures {
        println!("  {name:18} {figure}");
    }
}

/// What the stop consisted of, over its time; then what came after it.
fn print_phases(m: &Manifest) {
    let took = &m.body.timings.phases_us;
    let took: BTreeMap<String, f64> = (took.iter())
        .map(|(name, us)| (name.clone(), *us as f64 / 1e3))
        .collect();
    let stop = m.body.timings.stop_us as f64 / 1e3;
    let phases = timeline::of_stop(&took, stop);
    let characters = Characters::of_output();
    for phase in &phases {
        let (begins, ends) = (phase.begins, phase.ends);
        let stretch = characters.stretch(begins, ends, stop, STRETCH);
        println!("  {:18} {:>8.1} ms  |{stretch}|", phase.name, ends - begins);
    }
    for (name, ms) in &took {
        if !phases.iter().any(|phase| phase.name == name) {
            println!("  {name:18} {ms:>8.1} ms");
        }
    }
}

/// The newest checkpoint that a restore would use, and its name if it is certain: whether those on this machine count is
/// found out when the job is taken over.
async fn newest(common: &Common) -> Result<(Option<CheckpointId>, Job, Manifest), u8> {
    let store = open(common).await?;
    let local = local_tier(common).await?;
    let certain = local.is_none();
    for job in [Some(store), local].into_iter().flatten() {
        let found = job.newest_restorable().await;
        let found = found.map_err(|e| fail(&e, exit::job(&e)))?;
        for skipped in &found.skipped {
            eprintln!(
                "phos-ft: checkpoint {} IS DAMAGED and is passed over: {}",
                skipped.number, skipped.reason
            );
        }
        if let Some(manifest) = found.manifest {
            let number = manifest.number;
            let tier = Tier::Remote;
            let id = certain.then_some(CheckpointId { tier, number });
            return Ok((id, job, manifest));
        }
    }
    Err(fail(
        format_args!(
            "job {} has nothing to resume in {}: `phos-ft list` shows what there is; give the ID of a checkpoint of an \
             earlier run to go back to it",
            common.job,
            common.store()
        ),
        exit::NOT_FOUND,
    ))
}

/// The checkpoint to resume from, unless the sidecar is to choose the newest, and the command it was made of.
pub(super) fn command_to_restore(
    common: &Common,
    id: Option<CheckpointId>,
) -> Result<(Option<CheckpointId>, Vec<OsString>), u8> {
    runtime()?.block_on(async {
        let (id, job, m) = match id {
            Some(id) => {
                let (job, m) = open_checkpoint(common, id).await?;
                (Some(id), job, m)
            }
            None => newest(common).await?,
        };
        job.check_packs(&m)
            .await
            .map_err(|e| fail(&e, exit::job(&e)))?;
        match engine::command_of(&m) {
            Some(command) if !command.is_empty() => {
                Ok((id, command.into_iter().map(OsString::from).collect()))
            }
            _ => Err(fail(
                format_args!(
                    "checkpoint {} does not say which command made it: use `phos-ft --from {} -- CMD`",
                    m.number, m.number
                ),
                exit::DATA,
            )),
        }
    })
}
