//! `phos-ft prune`: retention and collection by hand. Safe beside a running sidecar, restores and other prunes. The collection
//! itself is in the storage crate, and the rules of what to keep are in the policies.

use phos_policies::retention::Retention;
use phos_storage::{CollectOptions, Collected, Job};
use serde::Serialize;

use super::args::{Common, Output};
use super::look::{NOT_LOOKED_AT, local_tier_or_why, open, print_json};
use super::{exit, fail, runtime};
use crate::engine;
use crate::size::human;

pub(super) fn run(
    common: &Common,
    rules: Retention,
    options: CollectOptions,
    output: Output,
) -> u8 {
    match runtime() {
        Ok(runtime) => runtime.block_on(async {
            match prune(common, rules, options, output).await {
                Ok(()) => exit::OK,
                Err(code) => code,
            }
        }),
        Err(code) => code,
    }
}

async fn prune(
    common: &Common,
    rules: Retention,
    options: CollectOptions,
    output: Output,
) -> Result<(), u8> {
    let mut job = open(common).await?;
    let there = job.state().await.map_err(|e| super::look::job_failed(&e))?;
    if there.tail == 0 {
        return Err(fail(
            format_args!(
                "job {} has no history in {}: `phos-ft prune` needs the --job and --store it was started with",
                common.job,
                common.store()
            ),
            exit::NOT_FOUND,
        ));
    }
    if !options.dry_run {
        // It is written to: it must be fit for that, and of the current format.
        let store_options = common.store_options(super::look::key(common)?);
        let store = engine::open_store_of(&common.job, &common.store(), store_options, None)
            .await
            .map_err(|e| fail(&e, exit::engine(&e)))?;
        job = store.job(common.job.clone());
    }
    let done = collect(&job, rules, options).await?;
    // The tier keeps its newest few of each branch by itself.
    let local = match rules.drop_branches {
        true => drop_in_local_tier(common, options).await,
        false => Ok(None),
    };
    // What was done is said whatever came of the tier.
    let there = local.as_ref().ok().and_then(Option::as_ref);
    match output {
        Output::Json => print_json(&Report {
            store: &done,
            local: there,
        }),
        Output::Text => {
            print(&done, options);
            if let Some(local) = there {
                println!("and of the checkpoints on this machine alone:");
                print(local, options);
            }
        }
    }
    local.map(drop)
}

/// Drops what was left behind in the tier on this machine, if there is one.
async fn drop_in_local_tier(
    common: &Common,
    options: CollectOptions,
) -> Result<Option<Collected>, u8> {
    let tier = local_tier_or_why(common).await?.map_err(|e| {
        let why = format_args!("{NOT_LOOKED_AT}, and none of them was dropped: {e}");
        fail(why, exit::UNAVAILABLE)
    })?;
    let Some(tier) = tier else {
        return Ok(None);
    };
    let branches = Retention {
        drop_branches: true,
        ..Retention::default()
    };
    collect(&tier, branches, options).await.map(Some)
}

async fn collect(job: &Job, rules: Retention, options: CollectOptions) -> Result<Collected, u8> {
    job.collect(&engine::keep(rules), options, engine::unix_millis)
        .await
        .map_err(|e| fail(&e, exit::collect(&e)))
}

/// What `--json` prints.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    store: &'a Collected,
    /// The result for the tier on this machine, where branches were dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    local: Option<&'a Collected>,
}

fn numbers(numbers: &[phos_storage::CheckpointNumber]) -> String {
    if numbers.is_empty() {
        return "none".into();
    }
    let text: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    text.join(" ")
}

fn print(done: &Collected, options: CollectOptions) {
    let would = if options.dry_run { "would be " } else { "" };
    println!("kept         {}", numbers(&done.kept));
    println!("{would}removed  {}", numbers(&done.removed));
    println!(
        "{would}deleted  {} packs, {}; {} other objects",
        done.packs,
        human(done.pack_bytes),
        done.other_objects
    );
    if done.repacked_packs > 0 {
        println!(
            "{would}repacked {} packs, {} of them still needed",
            done.repacked_packs,
            human(done.repacked_bytes)
        );
    }
    if done.unfinished_uploads > 0 {
        println!("{} unfinished uploads were ended", done.unfinished_uploads);
    }
    if done.protected_packs > 0 {
        println!(
            "{} packs were left to a checkpoint being written or to {} reader(s); a later prune deletes them",
            done.protected_packs, done.readers
        );
    }
    for past in &done.gone_past {
        println!(
            "what an earlier collection wrote down (record {}) is damaged, and {} decided once more: {}",
            past.number,
            if options.dry_run { "would be" } else { "was" },
            past.reason
        );
    }
    for skipped in &done.blocked {
        println!(
            "NOTHING IS DELETED while checkpoint {} is kept and cannot be read: {}",
            skipped.number, skipped.reason
        );
    }
}
