//! `phos-ft init`: makes a store ready before the first job, for a user who may do more than a sidecar.
//!
//! It shows the settings of an S3 bucket and changes those that are asked for; any store gets its marker. Everything may be
//! repeated: a setting that is as asked stays.

use phos_s3_admin::{Administration, BucketError, BucketSetup, Outcome, SetupLine, SetupMode};
use phos_storage::Store;
use serde::Serialize;

use super::args::{Common, InitArgs, Output};
use super::look::print_json;
use super::{exit, fail, runtime};
use crate::engine::{self, EngineError};

/// One setting or step of `init`, as it is printed.
#[derive(Debug, Serialize)]
struct Line {
    setting: &'static str,
    was: String,
    asked: Option<String>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(skip)]
    refused: bool,
}

pub(super) fn run(common: &Common, args: &InitArgs) -> u8 {
    let mut common = common.clone();
    if let Some(address) = &args.address {
        common.store = Some(address.clone());
    }
    match runtime() {
        Ok(runtime) => runtime.block_on(async {
            match init(&common, args).await {
                Ok(code) | Err(code) => code,
            }
        }),
        Err(code) => code,
    }
}

async fn init(common: &Common, args: &InitArgs) -> Result<u8, u8> {
    let address = common.store();
    let options = common.store_options(None);
    let failed = |e: BucketError| fail(&e, bucket_code(&e));
    let bucket = Administration::connect(&address, &options.retry, &options.s3)
        .await
        .map_err(failed)?;
    let mut lines = Vec::new();
    let mode = match args.dry_run {
        true => SetupMode::DryRun,
        false => SetupMode::Apply,
    };
    let mut place = Place::Exists;
    match bucket {
        Some(bucket) => {
            let set = bucket.set_up(&args.setup(), mode).await.map_err(failed)?;
            let is_missing = |line: &SetupLine| line.setting == "bucket" && line.was != "there";
            if mode == SetupMode::DryRun && set.iter().any(is_missing) {
                place = Place::Missing;
            }
            lines.extend(set.into_iter().map(|line| told(line, args)));
        }
        None if args.asks_for_a_bucket() => {
            return Err(fail(
                format_args!(
                    "--store {address} is no S3 bucket: of it, only the store itself can be set up"
                ),
                exit::USAGE,
            ));
        }
        None => {}
    }
    let store = store_line(common, mode, place).await;
    // Also where the store itself fails: what was changed in the bucket is said.
    let failure = store.map(|line| lines.push(line)).err();
    match args.output.into() {
        Output::Json => print_json(&lines),
        Output::Text => print(&address, &lines, args),
    }
    if let Some(code) = failure {
        return Err(code);
    }
    Ok(if lines.iter().any(|line| line.refused) {
        exit::FAILED
    } else {
        exit::OK
    })
}

/// Whether there is a place that a store can be in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The bucket exists by now, or the store needs none.
    Exists,
    /// The bucket does not exist, and a dry run does not create it.
    Missing,
}

/// The marker of the store, after the probe.
async fn store_line(common: &Common, mode: SetupMode, place: Place) -> Result<Line, u8> {
    let address = common.store();
    let failed = |e: phos_storage::OpenError| {
        let e = EngineError::Open(e);
        fail(&e, exit::engine(&e))
    };
    let mut line = Line {
        setting: "store",
        was: "no marker".into(),
        asked: Some(format!("format {}", phos_storage::STORE_FORMAT)),
        outcome: match mode {
            SetupMode::DryRun => "would change",
            SetupMode::Apply => "changed",
        },
        note: String::new(),
        refused: false,
    };
    if place == Place::Exists {
        let store = Store::open_existing(&address, common.store_options(None)).await;
        if let Some(store) = store.map_err(failed)?
            && let Some(format) = store.format().await.map_err(failed)?
        {
            line.was = format!("format {format}");
            if format >= phos_storage::STORE_FORMAT {
                line.outcome = "as asked";
            }
        }
    }
    if mode == SetupMode::Apply {
        let opened = engine::open_store(&address, common.store_options(None)).await;
        opened.map_err(|e| fail(&e, exit::engine(&e)))?;
        line.note = "writes, reads, lists, deletes; conditional writes are honest".into();
    }
    Ok(line)
}

fn told(line: SetupLine, args: &InitArgs) -> Line {
    let explicit = line.setting != "incomplete uploads" || args.abort_uploads_after.is_some();
    let (outcome, note, refused) = match line.outcome {
        Outcome::Left => ("not asked", String::new(), false),
        Outcome::AsAsked => ("as asked", String::new(), false),
        Outcome::Changed => ("changed", String::new(), false),
        Outcome::WouldChange => ("would change", String::new(), false),
        Outcome::Unsupported => (
            "unsupported",
            match line.setting {
                "incomplete uploads" => {
                    "phos-ft ends its own when it collects (prune, --keep-…)".into()
                }
                _ => "this server does not have it".into(),
            },
            explicit,
        ),
        Outcome::Denied(permission) => (
            "denied",
            format!("allow {permission}, or let somebody run this who may"),
            true,
        ),
        Outcome::Failed(detail) => ("failed", detail, true),
    };
    let changes = matches!(outcome, "changed" | "would change");
    let note = if note.is_empty() && changes && line.whole_bucket && line.setting != "bucket" {
        "for the whole bucket".into()
    } else {
        note
    };
    Line {
        setting: line.setting,
        was: line.was,
        asked: line.asked,
        outcome,
        note,
        refused,
    }
}

fn print(address: &str, lines: &[Line], args: &InitArgs) {
    println!(
        "{address}{}",
        if args.dry_run {
            " (dry run: nothing is changed)"
        } else {
            ""
        }
    );
    let rows: Vec<[&str; 5]> = std::iter::once(["setting", "was", "asked", "outcome", ""])
        .chain(lines.iter().map(|line| {
            let asked = line.asked.as_deref().unwrap_or("–");
            [line.setting, &line.was, asked, line.outcome, &line.note]
        }))
        .collect();
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        widths.max().unwrap_or_default()
    };
    let widths: [usize; 4] = std::array::from_fn(width);
    for row in &rows {
        let [setting, was, asked, outcome, note] = row;
        let [a, b, c, d] = widths;
        let line = format!("  {setting:a$}  {was:b$}  {asked:c$}  {outcome:d$}  {note}");
        println!("{}", line.trim_end());
    }
    let kept = |name: &str| {
        lines
            .iter()
            .find(|line| line.setting == name)
            .is_some_and(|line| line.was == "stay for ever" && line.outcome == "not asked")
    };
    let versions = lines
        .iter()
        .find(|line| line.setting == "versioning")
        .is_some_and(|line| line.was == "on" || line.asked.is_some());
    if versions && kept("old versions") {
        println!(
            "With versioning, what phos-ft deletes stays as an old version and is paid for: --expire-versions-after DAYS \
             lets it go."
        );
    }
}

fn bucket_code(error: &BucketError) -> u8 {
    match error {
        BucketError::Address { .. } | BucketError::Elsewhere { .. } => exit::USAGE,
        BucketError::Credentials { source, .. } if source.is_permanent() => exit::PERMISSION,
        BucketError::Missing { .. } => exit::NOT_FOUND,
        BucketError::Request {
            permanent: true, ..
        } => exit::FAILED,
        BucketError::Credentials { .. } | BucketError::Request { .. } => exit::UNAVAILABLE,
    }
}

impl InitArgs {
    /// What a bucket gets where nothing is said: a pack goes up within minutes.
    const UPLOADS_END: u32 = 1;

    fn setup(&self) -> BucketSetup {
        BucketSetup {
            create: self.create_bucket,
            uploads_end: Some(self.abort_uploads_after.unwrap_or(Self::UPLOADS_END)),
            versioning: self.versioning,
            old_versions_go: self.expire_versions_after,
            object_lock: self.object_lock,
            sse_kms_key: self.sse_kms.clone(),
        }
    }

    fn asks_for_a_bucket(&self) -> bool {
        let default = BucketSetup {
            uploads_end: Some(Self::UPLOADS_END),
            ..BucketSetup::default()
        };
        self.abort_uploads_after.is_some() || self.setup() != default
    }
}
