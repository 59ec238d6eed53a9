//! `phos-ft init`, and what `phos-ft doctor` says of an S3 store.

use std::process::Output;

use anyhow::{Context, Result, ensure};
use phos_integration_tests::World;
use serde_json::Value;

/// A world whose store is the S3 server that the tests run with.
fn with_s3(bucket: &str) -> Result<World> {
    let endpoint = std::env::var("PHOS_TEST_S3_ENDPOINT").context(
        "this test needs an S3 server, and PHOS_TEST_S3_ENDPOINT names none: run it under scripts/with-s3.sh, as \
         `make test` does",
    )?;
    let mut world = World::simulated(1, 64)?;
    world.store = format!("s3://{bucket}/{}", world.job);
    for (name, value) in [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "AKIDOFTEST"),
        ("AWS_SECRET_ACCESS_KEY", "verysecret"),
        ("AWS_REGION", "us-east-1"),
    ] {
        world.env.push((name.to_owned(), value.to_owned()));
    }
    Ok(world)
}

fn said(output: &Output) -> String {
    let out = String::from_utf8_lossy(&output.stdout);
    format!("{out}{}", String::from_utf8_lossy(&output.stderr))
}

/// Runs it with `--json` and gives setting, outcome and what was there.
fn init(world: &World, args: &[&str]) -> Result<Vec<(String, String, String)>> {
    let mut all = vec!["init", "--json"];
    all.extend(args);
    let output = world.run(&all)?;
    ensure!(output.status.success(), "{args:?}: {}", said(&output));
    let lines: Vec<Value> = serde_json::from_slice(&output.stdout)?;
    let text = |line: &Value, key: &str| line[key].as_str().unwrap_or_default().to_owned();
    Ok(lines
        .iter()
        .map(|l| (text(l, "setting"), text(l, "outcome"), text(l, "was")))
        .collect())
}

fn outcome<'a>(lines: &'a [(String, String, String)], setting: &str) -> &'a str {
    let line = lines.iter().find(|line| line.0 == setting);
    line.map_or("missing", |line| &line.1)
}

fn doctor(world: &World) -> Result<Vec<Value>> {
    let output = world.run(&["doctor", "--json"])?;
    serde_json::from_slice(&output.stdout).with_context(|| said(&output))
}

fn line<'a>(lines: &'a [Value], check: &str) -> Result<&'a Value> {
    let line = lines.iter().find(|line| line["check"] == check);
    line.with_context(|| format!("no line {check:?} in {lines:?}"))
}

#[test]
fn a_bucket_from_nothing_to_a_healthy_doctor() -> Result<()> {
    let mut world = with_s3("phos-test")?;
    let bucket = format!("phos-init-{}", std::process::id());
    world.store = format!("s3://{bucket}/runs");

    let missing = world.run(&["init"])?;
    ensure!(
        missing.status.code() == Some(66) && said(&missing).contains("--create-bucket"),
        "{}",
        said(&missing)
    );
    let asked = ["--create-bucket", "--versioning", "--sse-kms", "alias/k"];
    let dry = init(&world, &[&asked[..], &["--dry-run"]].concat())?;
    for setting in ["bucket", "incomplete uploads", "versioning", "store"] {
        ensure!(outcome(&dry, setting) == "would change", "{dry:?}");
    }
    ensure!(
        world.run(&["init"])?.status.code() == Some(66),
        "the dry run made the bucket"
    );
    let done = init(&world, &asked)?;
    for setting in [
        "bucket",
        "incomplete uploads",
        "versioning",
        "default encryption",
        "store",
    ] {
        ensure!(outcome(&done, setting) == "changed", "{done:?}");
    }
    ensure!(outcome(&done, "object lock") == "not asked", "{done:?}");
    let again = init(&world, &asked)?;
    ensure!(
        again
            .iter()
            .all(|l| matches!(l.1.as_str(), "as asked" | "not asked")),
        "{again:?}"
    );
    // For people: a table, and what versioning costs.
    let table = world.run(&["init"])?;
    let text = said(&table);
    ensure!(
        text.contains("end after 1 day") && text.contains("--expire-versions-after"),
        "{text}"
    );

    let lines = doctor(&world)?;
    ensure!(
        line(&lines, "versioning")?["verdict"] == "warn",
        "{lines:?}"
    );
    init(&world, &["--expire-versions-after", "14"])?;
    let lines = doctor(&world)?;
    for check in [
        "s3 credentials",
        "s3 endpoint",
        "store",
        "incomplete uploads",
        "versioning",
        "object lock",
        "default encryption",
    ] {
        ensure!(
            line(&lines, check)?["verdict"] == "ok",
            "{check}: {lines:?}"
        );
    }
    let credentials = line(&lines, "s3 credentials")?["found"].to_string();
    ensure!(credentials.contains("the environment"), "{credentials}");
    let all = serde_json::to_string(&lines)?;
    ensure!(!all.contains("verysecret") && !all.contains("AKIDOFTEST"));
    Ok(())
}

#[test]
fn a_bucket_that_was_not_set_up_is_a_warning_with_its_remedy() -> Result<()> {
    let world = with_s3("phos-test")?;
    let lines = doctor(&world)?;
    let uploads = line(&lines, "incomplete uploads")?;
    ensure!(
        uploads["verdict"] == "warn"
            && uploads["remedy"]
                .as_str()
                .is_some_and(|r| r.contains(&format!("phos-ft init {}", world.store))),
        "{uploads}"
    );
    Ok(())
}

#[test]
fn a_directory_gets_its_marker_and_nothing_of_a_bucket() -> Result<()> {
    let world = World::simulated(1, 64)?;
    let dry = init(&world, &["--dry-run"])?;
    ensure!(
        dry.len() == 1 && outcome(&dry, "store") == "would change" && !world.path("store").exists(),
        "{dry:?}"
    );
    ensure!(outcome(&init(&world, &[])?, "store") == "changed");
    ensure!(world.path("store/phos-format").exists());
    ensure!(outcome(&init(&world, &[])?, "store") == "as asked");
    let refused = world.run(&["init", "--versioning"])?;
    ensure!(
        refused.status.code() == Some(64) && said(&refused).contains("no S3 bucket"),
        "{}",
        said(&refused)
    );
    Ok(())
}

#[test]
fn no_credentials_are_named_by_doctor_and_init() -> Result<()> {
    let mut world = with_s3("phos-test")?;
    world.env.retain(|(name, _)| !name.contains("KEY"));
    for (name, value) in [
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("HOME", "/nonexistent"),
    ] {
        world.env.push((name.into(), value.into()));
    }
    let lines = doctor(&world)?;
    let credentials = line(&lines, "s3 credentials")?;
    ensure!(
        credentials["verdict"] == "fail"
            && credentials["found"].to_string().contains("AWS_PROFILE"),
        "{credentials}"
    );
    let output = world.run(&["init"])?;
    ensure!(
        output.status.code() == Some(77) && said(&output).contains("no credentials for S3"),
        "{}",
        said(&output)
    );
    Ok(())
}
