//! `phos-ft diff A B`: what changed from one checkpoint to another. Reads manifests only.

use phos_storage::{Change, Diff, FileDiff};

use super::args::{Common, Output};
use super::look::{open_checkpoint, print_json};
use super::{exit, runtime};
use crate::engine::CheckpointId;
use crate::size::human;

pub(super) fn run(common: &Common, a: CheckpointId, b: CheckpointId, output: Output) -> u8 {
    let diff = runtime().and_then(|runtime| {
        runtime.block_on(async {
            let (_, from) = open_checkpoint(common, a).await?;
            let (_, to) = open_checkpoint(common, b).await?;
            Ok(from.diff(&to))
        })
    });
    match diff {
        Ok(diff) => match output {
            Output::Json => print_json(&diff),
            Output::Text => print(&diff),
        },
        Err(code) => return code,
    }
    exit::OK
}

fn word(change: Change) -> &'static str {
    match change {
        Change::Kept => "",
        Change::Added => "added",
        Change::Removed => "removed",
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    format!("{:.1}%", 100.0 * part as f64 / whole as f64)
}

fn print(diff: &Diff) {
    println!(
        "{:>8} {:>8}  {:12} {:>10}  {:>10} {:>7}",
        "process", "number", "kind", "size", "changed", ""
    );
    let mut same = (0, 0);
    for a in &diff.allocations {
        if a.changed_bytes == 0 && a.change == Change::Kept {
            same = (same.0 + 1, same.1 + a.bytes);
            continue;
        }
        println!(
            "{:>8} {:>8}  {:12} {:>10}  {:>10} {:>7}  {}",
            a.pid,
            a.id,
            a.kind,
            human(a.bytes),
            human(a.changed_bytes),
            percent(a.changed_bytes, a.bytes),
            word(a.change)
        );
    }
    println!("unchanged    {} allocations, {}", same.0, human(same.1));
    print_files(&diff.cpu_image);
    println!(
        "from {} to {}: {} of device memory changed; {} new to the store, {} once encoded",
        diff.from,
        diff.to,
        human(diff.device_changed()),
        human(diff.new_bytes),
        human(diff.new_stored_bytes)
    );
}

fn print_files(files: &[FileDiff]) {
    let changed = files
        .iter()
        .filter(|f| f.changed_bytes > 0 || f.change != Change::Kept);
    for file in changed {
        println!(
            "cpu image    {}: {} of {} {}",
            file.path,
            human(file.changed_bytes),
            human(file.bytes),
            word(file.change)
        );
    }
}
